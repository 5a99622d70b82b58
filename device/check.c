#include "device/check.h"
#include "lang/place.h"

#include <stdlib.h>

// The run-time checks: what is kept for a launch, and what is due around each instruction.

// ---- the memories

// The size of what base `i` of a program points to.
static uint64_t base_size(const exec *x, uint32_t i)
{
    const device_program *dp = x->dp;
    const ir *p = dp->p;
    uint32_t n = p->params.n;
    switch (i) {
    case BASE_SBUF: return x->dp->host ? x->core->wide_sbuf_cap : x->core->sbuf_map;
    case BASE_PSUM: return x->dp->host ? x->core->wide_psum_cap : x->core->psum_map;
    case BASE_HBM: return dp->hbm_bytes;
    case BASE_STAGE: return 0;
    default: break;
    }
    i -= BASE_PARAM0;
    uint32_t t = i < n                 ? p->params.at[i].tensor
                 : i < n + dp->nshared ? dp->shared[i - n]
                                       : p->views.at[p->outputs.at[i - n - dp->nshared]].tensor;
    return p->tensors.at[t].size_bytes;
}

static bool make_space(check *c, shadow **slot, uint64_t size, bool written, bool shared)
{
    *slot = &c->shadows[c->nshadows++];
    return shadow_init(*slot, size, written, shared);
}

// A core's own memories keep their shadow from run to run: they are large and used in few places.
static bool chip_space(device_core *core, int which, uint64_t size, shadow **slot)
{
    shadow **own = &core->shadow[which];
    if (*own) {
        shadow_reset(*own);
    } else {
        *own = calloc(1, sizeof **own);
        if (*own && !shadow_init(*own, size, false, false)) {
            shadow_release(*own);
            free(*own);
            *own = NULL;
        }
    }
    *slot = *own;
    return *own != NULL;
}

void check_core_release(device_core *core)
{
    for (int i = 0; i < 2; i++) {
        if (core->shadow[i]) {
            shadow_release(core->shadow[i]);
            free(core->shadow[i]);
        }
    }
}

// Core 0's shadow of what both cores know under one number.
static shadow *shared_space(const check *c, uint32_t number)
{
    const check_core *first = &c->core[0];
    const device_program *dp = first->x->dp;
    for (uint32_t i = 0; i < dp->nshared; i++) {
        if (dp->p->tensors.at[dp->shared[i]].shared == number) {
            return first->space[BASE_PARAM0 + dp->p->params.n + i];
        }
    }
    return NULL;
}

static bool make_core(check *c, uint32_t rank)
{
    check_core *k = &c->core[rank];
    const device_program *dp = k->x->dp;
    uint32_t params = dp->p->params.n;
    bool two = c->n > 1, ok = true;
    for (uint32_t i = 0; i < k->nspace && ok; i++) {
        uint32_t number = i - BASE_PARAM0;
        bool param = i >= BASE_PARAM0 && number < params;
        bool both = i >= BASE_PARAM0 && number < params + dp->nshared;
        shadow *old = NULL;
        if (rank && param) {
            old = c->core[0].space[i];
        } else if (rank && both) {
            old = shared_space(c, dp->p->tensors.at[dp->shared[number - params]].shared);
        }
        if (i <= BASE_PSUM) {
            ok = chip_space(k->x->core, (int)i, base_size(k->x, i), &k->space[i]);
        } else if (old) {
            k->space[i] = old;
        } else {
            ok = make_space(c, &k->space[i], base_size(k->x, i), param, two && both);
        }
    }
    for (uint32_t i = 0; i < dp->nconsts && ok; i++) {
        shadow_write(k->space[BASE_HBM], dp->consts[i].at, dp->consts[i].size);
    }
    return ok;
}

static bool make(check *c)
{
    uint32_t total = 0;
    for (uint32_t r = 0; r < c->n; r++) {
        check_core *k = &c->core[r];
        const device_program *dp = k->x->dp;
        k->nspace = BASE_PARAM0 + dp->p->params.n + dp->nshared + dp->nout;
        k->space = calloc(k->nspace, sizeof(shadow *));
        k->tensor = calloc(dp->p->tensors.n + 1, sizeof *k->tensor);
        total += k->nspace;
        if (!k->space || !k->tensor) {
            return false;
        }
    }
    c->shadows = calloc(total, sizeof *c->shadows);
    for (uint32_t r = 0; r < c->n; r++) {
        if (!c->shadows || !make_core(c, r)) {
            return false;
        }
    }
    return true;
}

static op_traits traits_of(isa_id op)
{
    const isa_info *info = &isa_table[op];
    op_traits t = {.moves = info->cost == COST_DMA};
    for (uint32_t i = 0; i < info->nparams; i++) {
        param_type type = (param_type)info->params[i].type;
        t.accumulates |= type == PT_TRI;
        t.inout |= type == PT_INOUT;
        t.skips |= type == PT_OOB;
        t.folds |= type == PT_REDCMD;
        t.moves = t.moves && type != PT_OP;
    }
    return t;
}

check *check_begin(exec *x, uint32_t n, diags *ds)
{
    check *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->ds = ds;
    c->n = n;
    for (uint32_t r = 0; r < n; r++) {
        c->core[r].x = &x[r];
    }
    if (!make(c)) {
        check_release(c);
        return NULL;
    }
    check_watch_conversions(c);
    for (int i = 0; i < ISA_COUNT; i++) {
        c->traits[i] = traits_of((isa_id)i);
    }
    for (uint32_t r = 0; r < n; r++) {
        x[r].k = &c->k;
    }
    return c;
}

static void release_snapshot(snapshot *s)
{
    free(s->piece);
    free(s->bytes);
}

void check_release(check *c)
{
    if (!c) {
        return;
    }
    for (uint32_t i = 0; i < c->nshadows; i++) {
        shadow_release(&c->shadows[i]);
    }
    for (uint32_t r = 0; r < c->n; r++) {
        free(c->core[r].space);
        free(c->core[r].tensor);
    }
    release_snapshot(&c->writes);
    release_snapshot(&c->reads);
    release_snapshot(&c->first);
    free(c->shadows);
    free(c);
}

// ---- operands

static at_hand hand_of(check *c, exec *x, const bound *b, const opnd *o, tile t)
{
    const ir *p = x->dp->p;
    uint32_t tensor = p->views.at[o->view].tensor;
    return (at_hand){.c = c,
                     .x = x,
                     .b = b,
                     .o = o,
                     .t = t,
                     .s = c->core[p->core].space[o->base],
                     .mem = x->base[o->base],
                     .me = shadow_who_of(p->core, b->instr),
                     .ts = &c->core[p->core].tensor[tensor],
                     .tensor = &p->tensors.at[tensor]};
}

at_hand check_operand(check *c, exec *x, const bound *b, const tile *t, uint32_t k)
{
    return hand_of(c, x, b, &b->o[k], t[k]);
}

at_hand check_index(check *c, exec *x, const bound *b, const opnd *o)
{
    const opnd *ix = &x->dp->index[o->index];
    at_hand a = hand_of(c, x, b, ix,
                        exec_tile(x, ix));
    a.index = true;
    return a;
}

const isa_param *check_param(const exec *x, const bound *b, const opnd *o)
{
    return &isa_table[x->dp->p->instrs.at[b->instr].op].params[o->param];
}

const op_traits *check_traits(const check *c, const exec *x, const bound *b)
{
    return &c->traits[x->dp->p->instrs.at[b->instr].op];
}

bool check_accumulates(const check *c, const exec *x, const bound *b)
{
    const ir *p = x->dp->p;
    const ir_instr *in = &p->instrs.at[b->instr];
    for (uint32_t i = 0; c->traits[in->op].accumulates && i < in->nargs; i++) {
        const ir_arg *a = &p->args.at[in->args + i];
        if (isa_table[in->op].params[i].type == PT_TRI && a->kind == IRA_BOOL && a->v) {
            return true;
        }
    }
    return false;
}

static void extent(const at_hand *a, const char **lo, const char **hi)
{
    int64_t reach = (int64_t)(a->t.l->parts - 1) * a->t.ps;
    *lo = a->t.p + a->t.l->lo + (reach < 0 ? reach : 0);
    *hi = a->t.p + a->t.l->hi + (reach > 0 ? reach : 0);
    if (a->o->dyn && (a->o->late || a->x->dp->p->dyns.at[a->o->dyn].kind == DYN_INDIRECT)) {
        *lo = a->mem;  // anywhere
        *hi = a->mem + a->s->size;
    }
}

bool check_overlap(const at_hand *a, const at_hand *b)
{
    const char *p, *q, *r, *s;
    if (a->s != b->s) {
        return false;
    }
    extent(a, &p, &q);
    extent(b, &r, &s);
    bool same_rows = a->o->base <= BASE_PSUM && a->t.ps == b->t.ps && a->t.ps > 0;
    if (p >= s || r >= q) {
        return false;
    }
    // On chip the rows of two operands may lie side by side.
    int64_t stride = a->t.ps, wide = a->t.l->hi - a->t.l->lo, other = b->t.l->hi - b->t.l->lo;
    if (!same_rows || wide > stride || other > stride) {
        return true;
    }
    int64_t m = (r - p) % stride;
    m = m < 0 ? m + stride : m;
    return !(m >= wide && m + other <= stride);
}

// ---- runs of bytes

static bool nest_pieces(const at_hand *a, const char *at, uint32_t d, piece_fn fn, void *ctx)
{
    const layout *l = a->t.l;
    if (d == l->ndim) {
        return fn(ctx, (uint64_t)(at - a->mem), a->t.size);
    }
    int64_t stride = l->dim[d].stride;
    uint32_t count = stride ? l->dim[d].count : 1;
    if (d + 1 == l->ndim && stride == a->t.size) {
        return fn(ctx, (uint64_t)(at - a->mem), (uint64_t)count * a->t.size);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!nest_pieces(a, at + (int64_t)i * stride, d + 1, fn, ctx)) {
            return false;
        }
    }
    return true;
}

static bool indirect_pieces(const at_hand *a, piece_fn fn, void *ctx)
{
    for (uint32_t r = 0; r < a->t.l->parts; r++) {
        for (uint64_t i = 0; i < a->t.l->n; i++) {
            const char *p = indirect_element(a->x, a->b, a->o, &a->t, r, i);
            if (p && !fn(ctx, (uint64_t)(p - a->mem), a->t.size)) {
                return false;
            }
        }
    }
    return true;
}

bool check_pieces(const at_hand *a, piece_fn fn, void *ctx)
{
    const layout *l = a->t.l;
    uint64_t row = l->n * a->t.size;
    if (a->o->dyn && a->x->dp->p->dyns.at[a->o->dyn].kind == DYN_INDIRECT) {
        return indirect_pieces(a, fn, ctx);
    }
    if (!a->o->late && l->contig && (l->parts == 1 || a->t.ps == (int64_t)row)) {
        return fn(ctx, (uint64_t)(a->t.p - a->mem), row * l->parts);
    }
    uint32_t parts = a->t.ps || a->o->late ? l->parts : 1;
    for (uint32_t r = 0; r < parts; r++) {
        const char *p = dma_row_at(a->x, a->b, a->o, &a->t, r, true);
        if (!p) {
            continue;
        }
        if (l->contig ? !fn(ctx, (uint64_t)(p - a->mem), row) : !nest_pieces(a, p, 0, fn, ctx)) {
            return false;
        }
    }
    return true;
}

// ---- around an instruction

void check_before(check *c, exec *x, const bound *b, const tile *t)
{
    check_accesses(c, x, b, t);
    check_values_before(c, x, b, t);
}

void check_after(check *c, exec *x, const bound *b, const tile *t)
{
    check_values_after(c, x, b, t);
}

void check_met(check *c)
{
    for (uint32_t i = 0; i < c->nshadows; i++) {
        shadow_meet(&c->shadows[i]);
    }
}

// ---- the end

typedef struct unwritten {
    const shadow *s;
    uint64_t first, bytes;
} unwritten;

static bool count_unwritten(void *ctx, uint64_t at, uint64_t len)
{
    unwritten *u = ctx;
    uint64_t hit = shadow_unwritten(u->s, at, len);
    if (hit != SHADOW_NONE) {
        u->first = u->bytes ? u->first : hit;
        u->bytes += shadow_count_unwritten(u->s, at, len);
    }
    return true;
}

static void check_output(check *c, uint32_t i)
{
    exec *x = c->core[0].x;
    const ir *p = x->dp->p;
    const opnd *o = &x->dp->out[i];
    static const bound none;
    at_hand a = hand_of(c, x, &none, o,
                        exec_tile(x, o));
    unwritten u = {.s = a.s};
    if (!a.ts->full || a.s->shared) {
        check_pieces(&a, count_unwritten, &u);
    }
    if (!u.bytes) {
        return;
    }
    uint32_t tensor = p->views.at[o->view].tensor;
    const ir_tensor *t = &p->tensors.at[tensor];
    diag *d = diag_output_partial(
        c->ds, ir_place_loc(p, t->place), i, (unsigned long long)(u.bytes / o->size),
        (unsigned long long)(o->l->parts * o->l->n), check_element(&a, u.first));
    ir_place_notes(p, t->place, c->ds, d);
    for (uint32_t r = 0; r < c->n; r++) {
        const check_core *k = &c->core[r];
        const ir *q = k->x->dp->p;
        for (uint32_t n = 0; n < q->tensors.n; n++) {
            bool same = r == 0 ? n == tensor : t->shared && q->tensors.at[n].shared == t->shared;
            if (same) {
                check_note_writer(&a, d, k->tensor[n].last, "wrote to it last");
            }
        }
    }
}

void check_end(check *c, bool done)
{
    for (uint32_t i = 0; done && i < c->core[0].x->dp->nout; i++) {
        check_output(c, i);
    }
    for (uint32_t i = 0; i < c->nfindings; i++) {
        const finding *f = &c->finding[i];
        if (f->d && f->times > 1) {
            diag_note_add(c->ds, f->d, (loc){0}, "found %llu times here",
                          (unsigned long long)f->times);
        }
    }
}
