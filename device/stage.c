#include "device/internal.h"

// Operands that must be copied aside: a source that overlaps a destination without being it, and
// gen4's indirect tensors, gathered before the instruction and scattered after it.

enum { GROUP = 16, GROUP_TENSOR = 32 };

// Element i of partition p lies at index[group of p][i mod G, i div G] elements (times step) from
// the start of the partition's row. false: out of bounds, reported.
static bool indirect_at(exec *x, const bound *b, const opnd *o, const tile *ix, uint32_t group,
                        uint32_t p, uint64_t i, int64_t *at)
{
    const ir *ir_ = x->dp->p;
    const ir_view *v = &ir_->views.at[o->view];
    const ir_tensor *t = &ir_->tensors.at[v->tensor];
    const ir_dyn *d = &ir_->dyns.at[o->dyn];
    uint64_t row = p / group * group + i % group, col = i / group;
    if (row >= ix->l->parts || col >= ix->l->n) {
        exec_oob(x, b, o, "number of indices", (int64_t)i, 0, (int64_t)(ix->l->n * group) - 1);
        return false;
    }
    int64_t value = tile_int(x, ix, row * ix->l->n + col);
    int64_t start = v->offset * o->size, step = d->step * o->size;
    int64_t limit = (int64_t)t->size_bytes;
    bool bad = __builtin_mul_overflow(value, step, at);
    if (bad || *at < -limit || *at > limit || start + *at < 0 || start + *at + o->size > limit) {
        exec_oob(x, b, o, "index", value, 0,
                 d->limit ? (int64_t)d->limit - 1
                 : step   ? (limit - start - o->size) / step
                          : 0);
        return false;
    }
    return true;
}

static void indirect_move(exec *x, const bound *b, const opnd *o, const tile *t, const tile *flat,
                          bool out)
{
    const opnd *io = &x->dp->index[o->index];
    tile ix = {x->base[io->base] + io->offset, io->ps, io->l, io->dtype, io->size};
    uint32_t group = x->dp->p->instrs.at[b->instr].engine == ENG_TENSOR ? GROUP_TENSOR : GROUP;
    for (uint32_t p = 0; p < t->l->parts; p++) {
        char *f = flat->p + p * flat->ps;
        for (uint64_t i = 0; i < t->l->n; i++, f += t->size) {
            int64_t at;
            if (!indirect_at(x, b, o, &ix, group, p, i, &at)) {
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
        flat[k] = (layout){.parts = t[k].l->parts, .n = t[k].l->n, .contig = true};
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
        at += (t[k].l->parts * (uint64_t)flat[k].hi + 63) & ~63ull;
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
