#include "device/internal.h"

// Operands that must be copied aside: a source that overlaps a destination without being it, and
// gen4's indirect tensors, gathered before the instruction and scattered after it.

enum { GROUP = 16, GROUP_TENSOR = 32 };

// Element i of partition p lies at index[group of p][i mod G, i div G] elements (times step) from
// the start of the partition's row.
typedef struct indirect {
    tile ix;
    uint32_t group;
    int64_t start, step, limit;  // bytes
    uint32_t indexed;            // size of the indexed dimension, 0: unknown
} indirect;

static indirect indirect_of(const exec *x, const bound *b, const opnd *o)
{
    const ir *p = x->dp->p;
    const ir_view *v = ir_view_ref(p, o->view);
    const ir_dyn *d = &p->dyns.at[o->dyn];
    const opnd *io = &x->dp->index[o->index];
    return (indirect){
        .ix = exec_tile(x, io),
        .group = p->instrs.at[b->instr].engine == ENG_TENSOR ? GROUP_TENSOR : GROUP,
        .start = v->offset * o->size,
        .step = d->step * o->size,
        .limit = (int64_t)p->tensors.at[v->tensor].size_bytes,
        .indexed = d->limit,
    };
}

typedef enum found { INSIDE, NO_INDEX, OUTSIDE } found;

static found indirect_at(const exec *x, const indirect *in, unsigned size, uint32_t p, uint64_t i,
                         int64_t *value, int64_t *at)
{
    const layout *l = in->ix.l;
    uint64_t row = p / in->group * in->group + i % in->group, col = i / in->group;
    if (row >= l->parts || col >= l->n) {
        return NO_INDEX;
    }
    *value = tile_int(x, &in->ix, row * l->n + col);
    if (__builtin_mul_overflow(*value, in->step, at) || *at < -in->limit || *at > in->limit ||
        in->start + *at < 0 || in->start + *at + size > in->limit) {
        return OUTSIDE;
    }
    return INSIDE;
}

static void indirect_fail(exec *x, const bound *b, const opnd *o, const indirect *in, found f,
                          uint64_t i, int64_t value)
{
    if (f == NO_INDEX) {
        exec_oob(x, b, o, "number of indices", (int64_t)i, 0,
                 (int64_t)(in->ix.l->n * in->group) - 1);
        return;
    }
    exec_oob(x, b, o, "index", value, 0,
             in->indexed ? (int64_t)in->indexed - 1
             : in->step  ? (in->limit - in->start - o->size) / in->step
                         : 0);
}

char *indirect_element(const exec *x, const bound *b, const opnd *o, const tile *t, uint32_t p,
                       uint64_t i)
{
    indirect in = indirect_of(x, b, o);
    int64_t value, at;
    return indirect_at(x, &in, o->size, p, i, &value, &at) == INSIDE ? t->p + p * t->ps + at : NULL;
}

static void indirect_move(exec *x, const bound *b, const opnd *o, const tile *t, const tile *flat,
                          bool out)
{
    indirect in = indirect_of(x, b, o);
    for (uint32_t p = 0; p < t->parts; p++) {
        char *f = flat->p + p * flat->ps;
        for (uint64_t i = 0; i < t->l->n; i++, f += t->size) {
            int64_t value = 0, at;
            found where = indirect_at(x, &in, o->size, p, i, &value, &at);
            if (where != INSIDE) {
                indirect_fail(x, b, o, &in, where, i, value);
                return;
            }
            char *q = t->p + p * t->ps + at;
            memcpy(out ? q : f, out ? f : q, t->size);
        }
    }
}

void run_staged(exec *x, const bound *b, const tile *t)
{
    tile s[MAX_OPNDS];
    layout flat[MAX_OPNDS];
    char *at = x->core->stage;
    memcpy(s, t, b->nops * sizeof *t);
    for (uint32_t k = 0; k < b->nops; k++) {
        if (!((b->stage_in | b->stage_out) >> k & 1)) {
            continue;
        }
        flat[k] = (layout){.parts = t[k].parts, .n = t[k].l->n, .contig = true};
        flat[k].hi = (int64_t)(t[k].l->n * t[k].size);
        flat[k].step0 = flat[k].hi;
        if (t[k].l->n > 1) {
            flat[k].ndim = 1;
            flat[k].dim[0].count = (uint32_t)t[k].l->n;
            flat[k].dim[0].stride = t[k].size;
        }
        s[k].p = at;
        s[k].ps = flat[k].hi;
        s[k].l = &flat[k];
        s[k].parts = t[k].parts;
        at += (t[k].parts * (uint64_t)flat[k].hi + 63) & ~63ull;
        if (b->stage_in >> k & 1) {
            if (b->o[k].dyn && x->dp->p->dyns.at[b->o[k].dyn].kind == DYN_INDIRECT) {
                indirect_move(x, b, &b->o[k], &t[k], &s[k], false);
            } else {
                copy_tile(&s[k], &t[k]);
            }
        } else {  // what the instruction leaves alone stays
            indirect_move(x, b, &b->o[k], &t[k], &s[k], false);
        }
        if (x->status != NKI_OK) {
            return;
        }
    }
    b->inner(x, b, s);
    for (uint32_t k = 0; k < b->nops && x->status == NKI_OK; k++) {
        if (b->stage_out >> k & 1) {
            indirect_move(x, b, &b->o[k], &t[k], &s[k], true);
        }
    }
}
