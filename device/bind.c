#include "device/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

const bind_fn bind_table[ISA_COUNT] = {
#define ROW(name) [ISA_##name] = bind_##name
    ROW(tensor_tensor),
    ROW(tensor_scalar),
    ROW(scalar_tensor_tensor),
    ROW(tensor_scalar_reduce),
    ROW(reciprocal),
    ROW(activation),
    ROW(activation_reduce),
    ROW(activate2),
    ROW(exponential),
    ROW(range_select),
    ROW(select_reduce),
    ROW(tensor_copy),
    ROW(tensor_copy_predicated),
    ROW(memset),
    ROW(fill_uninit),
    ROW(iota),
    ROW(affine_select),
    ROW(tensor_scalar_cumulative),
    ROW(tensor_tensor_scan),
    ROW(tensor_reduce),
    ROW(tensor_partition_reduce),
    ROW(bn_stats),
    ROW(bn_aggr),
    ROW(nc_matmul),
    ROW(nc_transpose),
    ROW(nc_stream_shuffle),
    ROW(local_gather),
    ROW(nc_n_gather),
    ROW(sequence_bounds),
    ROW(nonzero_with_count),
    ROW(topk),
    ROW(max8),
    ROW(nc_find_index8),
    ROW(nc_match_replace8),
    ROW(dropout),
    ROW(rng),
    ROW(rand2),
    ROW(set_rng_seed),
    ROW(rand_set_state),
    ROW(rand_get_state),
    ROW(quantize_mx),
    ROW(nc_matmul_mx),
    ROW(core_barrier),
    ROW(sendrecv),
    ROW(dma_copy),
    ROW(dma_transpose),
    ROW(dma_compute),
    ROW(register_alloc),
    ROW(register_move),
    ROW(register_load),
    ROW(register_store),
    ROW(loop_for),
    ROW(loop_while),
    ROW(loop_end),
    ROW(device_print),
    ROW(host_call),
#undef ROW
#define ROW(name) [ISA_##name] = bind_collective
    ROW(all_reduce),
    ROW(all_gather),
    ROW(all_gather_v),
    ROW(reduce_scatter),
    ROW(all_to_all),
    ROW(all_to_all_v),
    ROW(collective_permute),
    ROW(collective_permute_implicit),
    ROW(collective_permute_implicit_reduce),
#undef ROW
};

bool bind_fail(binder *b, const char *fmt, ...)
{
    static _Thread_local char text[320];  // until this thread's next failure
    int at = b->info ? snprintf(text, sizeof text, "%s: ", b->info->name) : 0;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + at, sizeof text - (size_t)at, fmt, ap);
    va_end(ap);
    b->err = text;
    return false;
}

ir_arg bind_arg(const binder *b, uint32_t param)
{
    return b->p->args.at[b->in->args + param];
}

bool bind_has(const binder *b, uint32_t param)
{
    return bind_arg(b, param).kind == IRA_VIEW;
}

regnum bind_reg(const binder *b, ir_arg a)
{
    (void)b;
    if (a.kind == IRA_REG) {
        return (regnum){true, (int32_t)a.v};
    }
    return (regnum){false, a.kind == IRA_NONE ? 0 : (int32_t)ira_integer(a)};
}

// (count - 1) * stride when it is a distance that can be added up without overflow.
static bool reach_of(uint32_t count, int64_t stride, int64_t *reach)
{
    const int64_t limit = (int64_t)1 << 58;
    return !__builtin_mul_overflow((int64_t)count - 1, stride, reach) &&
           *reach<limit && * reach> - limit && stride < limit && stride > -limit;
}

static bool layout_fill(binder *b, layout *l, const ir_ap *ap, uint32_t size, bool on_chip)
{
    const ir_dim *d = &b->p->dims.at[ap->first];
    int64_t reach0;
    l->parts = ap->ndim ? d[0].count : 1;
    if (ap->ndim && (__builtin_mul_overflow(d[0].stride, on_chip ? 1 : (int64_t)size, &l->step0) ||
                     !reach_of(l->parts ? l->parts : 1, l->step0, &reach0))) {
        return bind_fail(b, "an access pattern is too large");
    }
    l->n = 1;
    l->hi = size;
    for (uint32_t i = 1; i < ap->ndim; i++) {
        uint32_t count = d[i].count;
        int64_t stride, reach;
        if (__builtin_mul_overflow(d[i].stride, (int64_t)size, &stride) ||
            !reach_of(count ? count : 1, stride, &reach) || l->n > (uint64_t)1 << 31) {
            return bind_fail(b, "an access pattern is too large");
        }
        l->n *= count;
        if (count == 1) {
            continue;
        }
        *(reach < 0 ? &l->lo : &l->hi) += reach;
        if (l->ndim && l->dim[l->ndim - 1].stride == stride * count &&
            (uint64_t)l->dim[l->ndim - 1].count * count <= UINT32_MAX) {
            l->dim[l->ndim - 1].count *= count;
            l->dim[l->ndim - 1].stride = stride;
            continue;
        }
        l->dim[l->ndim].count = count;
        l->dim[l->ndim++].stride = stride;
    }
    if (l->n > (uint64_t)1 << 36) {
        return bind_fail(b, "an access pattern is too large");
    }
    l->contig = l->ndim == 0 || (l->ndim == 1 && l->dim[0].stride == (int64_t)size);
    return true;
}

static const layout *layout_of(binder *b, uint32_t ap, uint32_t size, bool on_chip)
{
    const layout **slot = &b->layouts[(ap * 3 + (size == 4 ? 2 : size - 1)) * 2 + on_chip];
    if (!*slot) {
        const ir_ap *a = &b->p->aps.at[ap];
        if (a->ndim > IR_MAX_DIMS) {
            bind_fail(b, "an access pattern has more than %d dimensions", IR_MAX_DIMS);
            return NULL;
        }
        layout *l = NEW(&b->dp->mem, layout);
        if (!layout_fill(b, l, a, size, on_chip)) {
            return NULL;
        }
        *slot = l;
    }
    return *slot;
}

// The start, base and limits of a view; checks that what is fixed stays inside its tensor.
static bool operand_of(binder *b, uint32_t view, opnd *o)
{
    const ir *p = b->p;
    if (view == IR_NONE || view >= p->views.n) {
        return bind_fail(b, "no such view");
    }
    const ir_view *v = ir_view_ref(p, view);
    if (v->tensor >= p->tensors.n || v->ap >= p->aps.n || v->dyn >= p->dyns.n ||
        v->dtype >= DT_COUNT) {
        return bind_fail(b, "malformed view");
    }
    const ir_tensor *t = &p->tensors.at[v->tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    memset(o, 0, sizeof *o);
    o->view = view;
    o->dyn = v->dyn;
    o->dtype = v->dtype;
    o->size = (uint8_t)dtype_size((dtype)v->dtype);
    o->l = layout_of(b, v->ap, o->size, chip);
    if (!o->l) {
        return false;
    }
    if (o->l->parts == 0 || o->l->n == 0) {
        return bind_fail(b, "an operand is empty");
    }
    o->parts = o->l->parts;
    if (v->offset > INT32_MAX * (int64_t)4096 || v->offset < -(INT32_MAX * (int64_t)4096)) {
        return bind_fail(b, "an offset is too large");
    }
    int64_t off = v->offset * o->size, lo = off + o->l->lo, hi = off + o->l->hi;
    bool indirect = v->dyn && p->dyns.at[v->dyn].kind == DYN_INDIRECT;
    bool fixed = !v->dyn;
    if (indirect && !chip) {
        return bind_fail(b, "an indirect tensor is not on chip");
    }
    if (chip) {
        bool psum = t->buffer == BUF_PSUM;
        uint32_t limit = psum ? p->target->psum_partition_bytes : p->target->sbuf_partition_bytes;
        if (t->addr_bytes == ADDR_AUTO || t->addr_bytes + t->size_bytes > limit ||
            t->addr_part + t->partitions > PARTS) {
            return bind_fail(b, "tensor '%s' is not placed inside the %s", ir_text(p, t->name),
                             buffer_name((buffer_kind)t->buffer));
        }
        int64_t last = v->part + (int64_t)(o->l->parts - 1) * o->l->step0;
        if (o->l->parts > PARTS || o->l->step0 < 0 || o->l->step0 > PARTS ||
            (indirect && last >= t->partitions) ||
            (fixed && (last >= t->partitions || lo < 0 || hi > (int64_t)t->size_bytes))) {
            return bind_fail(b, "a view reaches outside tensor '%s'", ir_text(p, t->name));
        }
        o->base = psum ? BASE_PSUM : BASE_SBUF;
        int64_t stride = psum ? core_psum_stride(p->target) : core_sbuf_stride(p->target);
        o->offset = (t->addr_part + (int64_t)v->part) * stride + (int64_t)t->addr_bytes + off;
        o->ps = o->l->step0 * stride;
        return true;
    }
    int64_t reach = (int64_t)(o->l->parts - 1) * o->l->step0;
    *(reach < 0 ? &lo : &hi) += reach;
    if (fixed && (lo < 0 || hi > (int64_t)t->size_bytes)) {
        return bind_fail(b, "a view reaches outside tensor '%s'", ir_text(p, t->name));
    }
    o->ps = o->l->step0;
    if (t->role == ROLE_ARG) {
        if (t->param >= p->params.n) {
            return bind_fail(b, "no such parameter");
        }
        o->base = BASE_PARAM0 + t->param;
        o->offset = off;
    } else if (t->shared) {
        o->base = BASE_PARAM0 + p->params.n + b->shared_of[v->tensor];
        o->offset = off;
    } else {
        if (t->addr_bytes == ADDR_AUTO || t->addr_bytes > b->dp->hbm_bytes ||
            t->size_bytes > b->dp->hbm_bytes - t->addr_bytes) {
            return bind_fail(b, "tensor '%s' is not placed in HBM", ir_text(p, t->name));
        }
        uint32_t direct = b->dp->direct[v->tensor];
        o->base = direct ? direct : BASE_HBM;
        o->offset = direct ? off : (int64_t)t->addr_bytes + off;
    }
    return true;
}

// The operand that a dynamic part reads, fixed itself.
static bool bind_index(binder *b, opnd *o)
{
    const ir_dyn *d = &b->p->dyns.at[o->dyn];
    if (d->kind == DYN_REG) {
        return d->src < b->p->registers ? true : bind_fail(b, "no such register");
    }
    if (d->kind == DYN_NONE || d->kind > DYN_INDIRECT) {
        return bind_fail(b, "malformed dynamic part");
    }
    opnd ix;
    if (!operand_of(b, d->src, &ix)) {
        return false;
    }
    if (ix.dyn) {
        return bind_fail(b, "an index is dynamic itself");
    }
    if (!dtype_is_int((dtype)ix.dtype) && !dtype_is_float((dtype)ix.dtype)) {
        return bind_fail(b, "an index has dtype %s", dtype_name((dtype)ix.dtype));
    }
    if (b->nindex == b->index_cap) {
        uint32_t cap = b->index_cap ? b->index_cap * 2 : 16;
        opnd *at = NEW_N(&b->dp->mem, opnd, cap);
        if (b->nindex) {
            memcpy(at, b->index, b->nindex * sizeof *at);
        }
        b->index = at;
        b->index_cap = cap;
    }
    o->index = b->nindex;
    b->index[b->nindex++] = ix;
    return true;
}

int bind_view(binder *b, uint32_t view, uint32_t param, bool out)
{
    if (b->n == MAX_OPNDS) {
        bind_fail(b, "too many operands");
        return -1;
    }
    opnd *o = &b->o[b->n];
    if (!operand_of(b, view, o) || (o->dyn && !bind_index(b, o))) {
        return -1;
    }
    // Only DMA copes with more rows than there are partitions.
    if (o->base >= BASE_HBM && !(b->info->params[param].spaces & SPACE_H)) {
        bind_fail(b, "%s is in HBM", b->info->params[param].name);
        return -1;
    }
    o->param = (uint8_t)param;
    b->is_out[b->n] = out;
    return (int)b->n++;
}

int bind_operand(binder *b, uint32_t param, bool out)
{
    ir_arg a = bind_arg(b, param);
    if (a.kind == IRA_VIEW) {
        return bind_view(b, a.v, param, out);
    }
    if (a.kind != IRA_NONE) {
        bind_fail(b, "%s is not a tensor", b->info->params[param].name);
        return -1;
    }
    memset(&b->o[b->n], 0, sizeof b->o[b->n]);
    b->is_out[b->n] = false;
    return (int)b->n++;
}

bool bind_same_shape(binder *b, int x, int y)
{
    const opnd *p = &b->o[x], *q = &b->o[y];
    if (p->l->parts != q->l->parts || p->l->n != q->l->n) {
        return bind_fail(b, "%s is [%u, %llu], %s is [%u, %llu]", b->info->params[p->param].name,
                         p->l->parts, (unsigned long long)p->l->n, b->info->params[q->param].name,
                         q->l->parts, (unsigned long long)q->l->n);
    }
    return true;
}

bool bind_computes(binder *b, int o)
{
    if (dtype_class_of((dtype)b->o[o].dtype) == DTC_X) {
        return bind_fail(b, "%s has the packed dtype %s", b->info->params[b->o[o].param].name,
                         dtype_name((dtype)b->o[o].dtype));
    }
    return true;
}

// ---- overlap

region region_of(const ir *p, const opnd *o)
{
    const ir_view *v = ir_view_ref(p, o->view);
    const ir_tensor *t = &p->tensors.at[v->tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    int64_t start = o->base > BASE_HBM ? 0 : (int64_t)t->addr_bytes;
    if (o->dyn) {  // anywhere in the tensor
        return (region){o->base, start, start + (int64_t)t->size_bytes, chip ? t->addr_part : 0,
                        chip ? t->addr_part + t->partitions : 1};
    }
    int64_t off = start + v->offset * o->size;
    region r = {o->base, off + o->l->lo, off + o->l->hi, 0, 1};
    if (chip) {
        r.p0 = t->addr_part + v->part;
        r.p1 = r.p0 + (int64_t)(o->l->parts - 1) * o->l->step0 + 1;
    } else {
        int64_t reach = (int64_t)(o->l->parts - 1) * o->l->step0;
        *(reach < 0 ? &r.lo : &r.hi) += reach;
    }
    return r;
}

static bool overlap(const binder *b, const opnd *x, const opnd *y)
{
    region r = region_of(b->p, x), s = region_of(b->p, y);
    return r.base == s.base && r.lo < s.hi && s.lo < r.hi && r.p0 < s.p1 && s.p0 < r.p1;
}

static bool same_view(const opnd *x, const opnd *y)
{
    return x->offset == y->offset && x->ps == y->ps && x->size == y->size && x->dyn == y->dyn &&
           (x->l == y->l || memcmp(x->l, y->l, sizeof *x->l) == 0);
}

static bool is_indirect(const binder *b, const opnd *o)
{
    return o->dyn && b->p->dyns.at[o->dyn].kind == DYN_INDIRECT;
}

bool bind_done(binder *b, exec_fn fn, const void *args, bool same_ok)
{
    bound *c = b->b;
    c->fn = fn;
    c->a = args;
    c->nops = (uint8_t)b->n;
    c->o = NEW_N(&b->dp->mem, opnd, b->n ? b->n : 1);
    memcpy(c->o, b->o, b->n * sizeof *b->o);
    for (uint32_t i = 0; i < b->n; i++) {
        if (!b->o[i].l) {
            continue;
        }
        c->outs |= (uint32_t)b->is_out[i] << i;
        const ir_dyn *d = b->o[i].dyn ? &b->p->dyns.at[b->o[i].dyn] : NULL;
        if (d && d->kind == DYN_INDIRECT) {
            *(b->is_out[i] ? &c->stage_out : &c->stage_in) |= 1u << i;
        } else if (d && d->kind == DYN_VECTOR && !b->o[i].late) {
            return bind_fail(b, "%s cannot be indexed by a vector here",
                             b->info->params[b->o[i].param].name);
        }
        for (uint32_t j = 0; j < b->n && !b->is_out[i]; j++) {
            if (b->o[j].l && b->is_out[j] && !b->o[i].late && overlap(b, &b->o[i], &b->o[j]) &&
                !(same_ok && same_view(&b->o[i], &b->o[j]) && !is_indirect(b, &b->o[i]))) {
                c->stage_in |= 1u << i;
            }
        }
    }
    if (c->stage_in || c->stage_out) {
        uint64_t size = 0;
        for (uint32_t i = 0; i < b->n; i++) {
            if ((c->stage_in | c->stage_out) >> i & 1) {
                size += ((uint64_t)b->o[i].l->parts * b->o[i].l->n * b->o[i].size + 63) & ~63ull;
            }
        }
        b->dp->stage_bytes = size > b->dp->stage_bytes ? size : b->dp->stage_bytes;
        c->inner = fn;
        c->fn = run_staged;
    }
    return true;
}

// ---- what is alike is kept once

// Byte strings met lately, by hash: a slot holds the last one that fell on it, so that a long
// program neither outgrows the caches nor moves tables that grow.
enum { MEMO_MIN = 64, MEMO_MAX = 4096 };

typedef struct bind_memo {
    struct memo_entry {
        uint64_t hash;
        const void *bytes;  // NULL: none yet
        uint32_t size, value;
    } * at;
    uint32_t mask;
} bind_memo;

static bind_memo *memo_new(arena *mem, uint32_t instrs)
{
    bind_memo *m = NEW(mem, bind_memo);
    uint32_t n = MEMO_MIN;
    while (n < instrs && n < MEMO_MAX) {
        n *= 2;
    }
    m->mask = n - 1;
    m->at = NEW_N(mem, struct memo_entry, n);
    return m;
}

static struct memo_entry *memo_slot(const bind_memo *m, uint64_t hash)
{
    return &m->at[hash & m->mask];
}

static bool memo_holds(const struct memo_entry *e, uint64_t hash, const void *bytes, size_t size)
{
    return e->bytes && e->hash == hash && e->size == size && memcmp(e->bytes, bytes, size) == 0;
}

void *bind_args(binder *b, size_t size)
{
    if (b->args_size || size > sizeof b->args) {
        return arena_alloc(&b->dp->mem, 1, _Alignof(max_align_t), size);
    }
    b->args_size = size;
    return memset(b->args, 0, size);
}

// Moves the arguments of the instruction that was bound to where they stay.
static void settle_args(binder *b)
{
    const unsigned char *a = b->b->a;
    if (a < b->args || a >= b->args + sizeof b->args) {
        return;
    }
    uint64_t hash = XXH3_64bits(b->args, b->args_size);
    struct memo_entry *e = memo_slot(b->args_memo, hash);
    if (!memo_holds(e, hash, b->args, b->args_size)) {
        void *copy = arena_alloc(&b->dp->mem, 1, _Alignof(max_align_t), b->args_size);
        memcpy(copy, b->args, b->args_size);
        *e = (struct memo_entry){hash, copy, (uint32_t)b->args_size, 0};
    }
    b->b->a = (const char *)e->bytes + (a - b->args);
}

// ---- the program

// An instruction with the arguments of an earlier one is bound as that one.
static bool bind_again(binder *b, uint64_t *hash)
{
    const ir_instr *in = b->in;
    if (in->nargs == 0) {
        return false;
    }
    const ir_arg *args = &b->p->args.at[in->args];
    size_t size = in->nargs * sizeof *args;
    *hash = XXH3_64bits_withSeed(args, size, (uint64_t)in->op << 8 | in->engine);
    const struct memo_entry *e = memo_slot(b->instr_memo, *hash);
    if (!memo_holds(e, *hash, args, size)) {
        return false;
    }
    const bound *old = &b->dp->code[e->value];
    const ir_instr *was = &b->p->instrs.at[old->instr];
    if (was->op != in->op || was->engine != in->engine) {
        return false;
    }
    uint32_t instr = b->b->instr;
    *b->b = *old;
    b->b->instr = instr;
    b->dp->ncode++;
    return true;
}

static bool bind_instr(binder *b, uint32_t i)
{
    b->in = &b->p->instrs.at[i];
    b->n = 0;
    b->args_size = 0;
    b->b = &b->dp->code[b->dp->ncode];
    b->b->instr = i;
    b->info = NULL;
    if (b->in->op >= ISA_COUNT) {
        return bind_fail(b, "no such instruction");
    }
    b->info = &isa_table[b->in->op];
    if (b->in->nargs != b->info->nparams || (uint64_t)b->in->args + b->in->nargs > b->p->args.n) {
        return bind_fail(b, "malformed arguments");
    }
    if (!bind_table[b->in->op]) {
        return bind_fail(b, "the device has no such instruction yet");
    }
    uint64_t hash = 0;
    if (bind_again(b, &hash)) {
        return true;
    }
    if (!bind_table[b->in->op](b)) {
        return false;
    }
    settle_args(b);
    if (b->in->nargs) {
        const ir_arg *args = &b->p->args.at[b->in->args];
        *memo_slot(b->instr_memo, hash) =
            (struct memo_entry){hash, args, (uint32_t)(b->in->nargs * sizeof *args), b->dp->ncode};
    }
    b->dp->ncode++;
    return true;
}

// An output that is a tensor of the kernel, whole and in order, lies in the caller's memory.
// Programs of a launch of two share theirs instead.
static void bind_direct(binder *b)
{
    const ir *p = b->p;
    b->dp->direct = NEW_N(&b->dp->mem, uint32_t, p->tensors.n + 1);
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        uint32_t view = p->outputs.at[i];
        const ir_view *v = view < p->views.n ? ir_view_ref(p, view) : NULL;
        if (!v || v->tensor >= p->tensors.n || v->ap >= p->aps.n || v->dyn || v->offset) {
            continue;
        }
        const ir_tensor *t = &p->tensors.at[v->tensor];
        if (t->role != ROLE_OUT || b->dp->direct[v->tensor] || t->shared || p->grid > 1 ||
            buffer_on_chip((buffer_kind)t->buffer) || v->dtype >= DT_COUNT) {
            continue;
        }
        int64_t stride = 1;
        const ir_dim *dims = ir_dims(p, v);
        bool whole = ir_ndim(p, v) <= IR_MAX_DIMS;
        for (uint32_t d = whole ? ir_ndim(p, v) : 0; d-- > 0 && whole;) {
            whole = dims[d].stride == stride || dims[d].count == 1;
            whole = whole && !__builtin_mul_overflow(stride, (int64_t)dims[d].count, &stride);
        }
        if (whole && (uint64_t)stride <= t->size_bytes &&
            (uint64_t)stride * dtype_size((dtype)v->dtype) == t->size_bytes) {
            b->dp->direct[v->tensor] = direct_base(b->dp, i);
        }
    }
}

static bool bind_outputs(binder *b)
{
    b->info = NULL;
    b->dp->nout = b->p->outputs.n;
    b->dp->out = NEW_N(&b->dp->mem, opnd, b->p->outputs.n ? b->p->outputs.n : 1);
    for (uint32_t i = 0; i < b->p->outputs.n; i++) {
        opnd *o = &b->dp->out[i];
        if (!operand_of(b, b->p->outputs.at[i], o)) {
            return false;
        }
        if (o->dyn) {
            return bind_fail(b, "an output is dynamic");
        }
    }
    return true;
}

static bool bind_consts(binder *b)
{
    device_program *dp = b->dp;
    dp->consts = NEW_N(&dp->mem, struct hbm_const, b->p->tensors.n ? b->p->tensors.n : 1);
    for (uint32_t i = 0; i < b->p->tensors.n; i++) {
        const ir_tensor *t = &b->p->tensors.at[i];
        if (t->role != ROLE_CONST) {
            continue;
        }
        if (buffer_on_chip((buffer_kind)t->buffer) || t->addr_bytes > b->dp->hbm_bytes ||
            t->size_bytes > b->dp->hbm_bytes - t->addr_bytes || t->data > b->p->blob.n ||
            t->size_bytes > b->p->blob.n - t->data) {
            return bind_fail(b, "malformed constant");
        }
        dp->consts[dp->nconsts++] = (struct hbm_const){t->addr_bytes, t->data, t->size_bytes};
    }
    return true;
}

// Numbers the tensors that the programs of a launch share.
static void bind_shared(binder *b)
{
    device_program *dp = b->dp;
    uint32_t n = b->p->tensors.n;
    dp->shared = NEW_N(&dp->mem, uint32_t, n + 1);
    b->shared_of = NEW_N(&b->scratch, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (b->p->tensors.at[i].shared) {
            b->shared_of[i] = dp->nshared;
            dp->shared[dp->nshared++] = i;
        }
    }
}

static bool bind_program(binder *b)
{
    device_program *dp = b->dp;
    uint32_t n = b->p->instrs.n;
    bind_shared(b);
    dp->code = NEW_N(&dp->mem, bound, n + 1);
    bind_direct(b);
    b->layouts = NEW_N(&b->scratch, const layout *, (size_t)b->p->aps.n * 6);
    b->args_memo = memo_new(&b->scratch, n);
    b->instr_memo = memo_new(&b->scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        if (!bind_instr(b, i)) {
            return false;
        }
    }
    dp->index = b->index;
    dp->nindex = b->nindex;
    if (!bind_loops(b) || !bind_outputs(b) || !bind_consts(b)) {
        return false;
    }
    plan_copies(dp, &b->scratch);
    return true;
}

nki_status device_bind(const program *pr, device_program **out, const char **err)
{
    return device_bind_from(pr, NULL, out, err);
}

nki_status device_bind_from(const program *pr, const nki_allocator *from, device_program **out,
                            const char **err)
{
    *out = NULL;
    *err = NULL;
    device_program *volatile dp = calloc(1, sizeof *dp);
    binder *volatile b = calloc(1, sizeof *b);
    volatile nki_status st = NKI_ERR_NOMEM;
    jmp_buf oom;
    if (!dp || !b) {
        goto done;
    }
    arena_init(&dp->mem, 0, &oom);
    arena_init(&b->scratch, 0, &oom);
    dp->mem.from = b->scratch.from = from;
    if (setjmp(oom) == 0) {
        dp->p = pr->ir;
        dp->hbm_bytes = pr->hbm_bytes;
        if (dp->p->fp32_store) {
            dp->host = dp->p;
            dp->p = widen_program(&dp->mem, dp->host, &dp->hbm_bytes);
        }
        b->dp = dp;
        b->p = dp->p;
        st = bind_program(b) ? NKI_OK : NKI_ERR_FORMAT;
        *err = b->err;
    } else {
        st = NKI_ERR_NOMEM;
    }
    arena_fini(&b->scratch);
done:
    free(b);
    if (st == NKI_OK) {
        *out = dp;
    } else {
        device_program_release(dp);
    }
    return st;
}

void device_program_release(device_program *dp)
{
    if (dp) {
        arena_fini(&dp->mem);
        free(dp);
    }
}
