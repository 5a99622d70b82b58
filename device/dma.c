#include "device/internal.h"

// DMA: element i of the source's pattern, row-major, goes to element i of the destination's.

enum { NEST = 2 * IR_MAX_DIMS + 2, SLOT_DMA = 3 };

// A loop nest over both sides, outermost first, in bytes.
typedef struct nest {
    uint32_t ndim;
    struct nest_dim {
        uint64_t count;
        int64_t d, s;
    } dim[NEST];
} nest;

// One side as plain dimensions.
typedef struct side {
    uint32_t ndim;
    uint64_t count[FREE_DIMS + 1];
    int64_t stride[FREE_DIMS + 1];
} side;

// rows: dimension 0 too.
static side side_of(const layout *l, int64_t ps, bool with_rows)
{
    side s = {0};
    if (with_rows && l->parts > 1) {
        s.count[s.ndim] = l->parts;
        s.stride[s.ndim++] = ps;
    }
    for (uint32_t i = 0; i < l->ndim; i++) {
        s.count[s.ndim] = l->dim[i].count;
        s.stride[s.ndim++] = l->dim[i].stride;
    }
    return s;
}

static side side_flat(uint64_t n, unsigned size)
{
    return (side){1, {n}, {size}};
}

// The common refinement of two patterns of equal element count; false when their dimensions do not
// divide each other.
static bool nest_make(nest *out, side d, side s)
{
    struct nest_dim dims[NEST];
    uint32_t n = 0;
    while (d.ndim && s.ndim) {
        uint64_t *cd = &d.count[d.ndim - 1], *cs = &s.count[s.ndim - 1];
        uint64_t g = *cd < *cs ? *cd : *cs;
        if (*cd % g || *cs % g || n == NEST) {
            return false;
        }
        int64_t *sd = &d.stride[d.ndim - 1], *ss = &s.stride[s.ndim - 1];
        if (n && dims[n - 1].d * (int64_t)dims[n - 1].count == *sd &&
            dims[n - 1].s * (int64_t)dims[n - 1].count == *ss) {
            dims[n - 1].count *= g;
        } else if (g > 1) {
            dims[n++] = (struct nest_dim){g, *sd, *ss};
        }
        *sd *= (int64_t)g;
        *ss *= (int64_t)g;
        *cd /= g;
        *cs /= g;
        d.ndim -= *cd == 1;
        s.ndim -= *cs == 1;
    }
    while (d.ndim && d.count[d.ndim - 1] == 1) {
        d.ndim--;
    }
    while (s.ndim && s.count[s.ndim - 1] == 1) {
        s.ndim--;
    }
    if (d.ndim || s.ndim) {
        return false;
    }
    out->ndim = n;
    for (uint32_t i = 0; i < n; i++) {
        out->dim[i] = dims[n - 1 - i];
    }
    return true;
}

// The two innermost dimensions at once when one side runs along each: a transpose.
static bool move_plane(const kernels *k, char *d, const char *s, const struct nest_dim *outer,
                       const struct nest_dim *inner, unsigned size)
{
    if (inner->d == size && outer->s == size && inner->s != size) {
        k->transpose((rows){d, outer->d}, (crows){s, inner->s}, inner->count, outer->count, size);
        return true;
    }
    if (inner->s == size && outer->d == size && inner->d != size) {
        k->transpose((rows){d, inner->d}, (crows){s, outer->s}, outer->count, inner->count, size);
        return true;
    }
    return false;
}

// Rows of adjacent bytes, written past the caches. false: they are not.
static bool stream_rows(const kernels *k, const nest *n, char *d, const char *s, unsigned size)
{
    const struct nest_dim *in = n->ndim ? &n->dim[n->ndim - 1] : NULL;
    if (!in || n->ndim > 2 || in->d != size || in->s != size) {
        return false;
    }
    for (uint64_t i = 0; i < (n->ndim == 2 ? n->dim[0].count : 1); i++) {
        k->stream(d + (int64_t)i * n->dim[0].d * (n->ndim == 2),
                  s + (int64_t)i * n->dim[0].s * (n->ndim == 2), in->count * size);
    }
    return true;
}

static void move_nest(const kernels *k, const struct nest_dim *dim, uint32_t ndim, char *d,
                      const char *s, dtype dd, dtype sd)
{
    unsigned size = dtype_size(sd);
    if (ndim == 0) {
        convert_with(k, d, dd, dtype_size(dd), s, sd, size, 1);
        return;
    }
    if (ndim == 1) {
        if (dd == sd) {
            copy_strided(d, dim->d, s, dim->s, dim->count, size);
        } else {
            convert_with(k, d, dd, dim->d, s, sd, dim->s, dim->count);
        }
        return;
    }
    if (ndim == 2 && dd == sd && move_plane(k, d, s, &dim[0], &dim[1], size)) {
        return;
    }
    if (ndim == 2 && dd == sd && dim[1].d == (int64_t)size && dim[1].s == (int64_t)size) {
        size_t row = dim[1].count * size;
        for (uint64_t i = 0; i < dim->count; i++) {
            memcpy(d + (int64_t)i * dim->d, s + (int64_t)i * dim->s, row);
        }
        return;
    }
    for (uint64_t i = 0; i < dim->count; i++) {
        move_nest(k, dim + 1, ndim - 1, d + (int64_t)i * dim->d, s + (int64_t)i * dim->s, dd, sd);
    }
}

// ---- plans

typedef struct dma_args {
    uint64_t n;  // elements
    bool joint;  // `whole` is good; else through a packed copy
    nest whole;
    nest pack, unpack;  // source to packed, packed to destination
    bool row_mode;      // dynamic rows: moved one by one
    bool row_joint;
    nest row;  // of one index of dimension 0 on both sides
    uint64_t row_n;
    uint32_t nrows;
    bool skip;
    uint32_t nsrc;  // dma_compute
} dma_args;

// Bytes from the lowest to past the highest that a tile touches.
static void extent(const tile *t, const char **lo, const char **hi)
{
    int64_t reach = (int64_t)(t->parts - 1) * t->ps;
    *lo = t->p + t->l->lo + (reach < 0 ? reach : 0);
    *hi = t->p + t->l->hi + (reach > 0 ? reach : 0);
}

static bool tiles_overlap(const tile *d, const tile *s)
{
    const char *a, *b, *c, *e;
    extent(d, &a, &b);
    extent(s, &c, &e);
    return a < e && c < b &&
           !(d->p == s->p && d->ps == s->ps && d->size == s->size && d->l == s->l);
}

static void move_packed(exec *x, const dma_args *a, const tile *d, const tile *s)
{
    char *mid = exec_slot(x, SLOT_DMA, a->n * s->size);
    if (mid) {
        move_nest(x->k, a->pack.dim, a->pack.ndim, mid, s->p, (dtype)s->dtype, (dtype)s->dtype);
        move_nest(x->k, a->unpack.dim, a->unpack.ndim, d->p, mid, (dtype)d->dtype, (dtype)s->dtype);
    }
}

static void run_dma(exec *x, const bound *b, const tile *t)
{
    const dma_args *a = b->a;
    nest some;
    const nest *n = &a->whole;
    if (t[0].parts != b->o[0].parts) {  // some of the rows (dma_is_rowwise)
        some = a->whole;
        some.dim[0].count = t[0].parts;
        n = &some;
    }
    if (!a->joint || tiles_overlap(&t[0], &t[1])) {
        move_packed(x, a, &t[0], &t[1]);
    } else if (!(b->flags & BOUND_STREAM) || !stream_rows(x->k, n, t[0].p, t[1].p, t[1].size)) {
        move_nest(x->k, n->dim, n->ndim, t[0].p, t[1].p, (dtype)t[0].dtype, (dtype)t[1].dtype);
    }
}

static bool plan_ends(dma_args *a, const opnd *d, const opnd *s)
{
    a->joint = nest_make(&a->whole, side_of(d->l, d->ps, true), side_of(s->l, s->ps, true));
    side flat = side_flat(a->n, s->size);
    return nest_make(&a->pack, flat, side_of(s->l, s->ps, true)) &&
           nest_make(&a->unpack, side_of(d->l, d->ps, true), flat);
}

static bool plan(binder *b, dma_args *a, int d, int s)
{
    const opnd *p = &b->o[d], *q = &b->o[s];
    uint64_t nd = p->l->parts * p->l->n, ns = q->l->parts * q->l->n;
    if (nd != ns) {
        return bind_fail(b, "the source has %llu elements, the destination %llu",
                         (unsigned long long)ns, (unsigned long long)nd);
    }
    if (p->dtype != q->dtype && (!bind_computes(b, d) || !bind_computes(b, s))) {
        return false;
    }
    a->n = nd;
    return plan_ends(a, p, q) ? true : bind_fail(b, "an access pattern is too complex");
}

bool dma_as_rows(const bound *b, dma_rows *out)
{
    const dma_args *a = b->a;
    const struct nest_dim *dim = a->whole.dim;
    int64_t size = b->o[1].size;
    if (b->fn != run_dma || !a->joint || a->whole.ndim > 2 || b->o[0].dtype != b->o[1].dtype) {
        return false;
    }
    *out = (dma_rows){1, size, 0, 0};
    uint32_t n = a->whole.ndim;
    if (n && dim[n - 1].d == size && dim[n - 1].s == size) {
        out->row_bytes = (int64_t)dim[--n].count * size;
    }
    if (n) {
        out->nrows = dim[0].count;
        out->d = dim[0].d;
        out->s = dim[0].s;
    }
    return n < 2;
}

bool dma_is_rowwise(const bound *b)
{
    const dma_args *a = b->a;
    const opnd *d = &b->o[0], *s = &b->o[1];
    const struct nest_dim *out = a->whole.dim;
    return b->fn == run_dma && a->joint && a->whole.ndim > 1 && out->count == d->parts &&
           d->parts == s->parts && out->d == d->ps && out->s == s->ps && d->base != s->base;
}

const void *dma_retarget(arena *mem, const bound *b, const opnd *d, const opnd *s)
{
    dma_args *a = NEW(mem, dma_args);
    *a = *(const dma_args *)b->a;
    return plan_ends(a, d, s) ? a : NULL;
}

// ---- dynamic rows

char *dma_row_at(exec *x, const bound *b, const opnd *o, const tile *t, uint32_t i, bool skip)
{
    const ir *p = x->dp->p;
    if (!o->dyn || !o->late) {
        return t->p + (int64_t)i * t->ps;
    }
    const ir_dyn *d = &p->dyns.at[o->dyn];
    const ir_view *v = ir_view_ref(p, o->view);
    const ir_tensor *tn = &p->tensors.at[v->tensor];
    bool chip = buffer_on_chip((buffer_kind)tn->buffer);
    int64_t start = v->offset * o->size, value, at, low, high;
    int64_t step = d->step * o->size, size = (int64_t)tn->size_bytes;
    int64_t row0 = chip ? 0 : (int64_t)i * t->ps;  // of a row that is not indexed
    if (d->kind == DYN_VECTOR) {
        const opnd *io = &x->dp->index[o->index];
        tile ix = exec_tile(x, io);
        value = tile_int(x, &ix, i);
        row0 = 0;
    } else {
        exec_dyn_value(x, b, o, &value);
    }
    bool part = chip && d->partition;
    bool bad = __builtin_mul_overflow(value, part ? d->step : step, &at);
    int64_t move;
    if (part) {
        int64_t p0 = v->part + (int64_t)i * o->l->step0;
        bad = bad || at > PARTS || at < -PARTS || p0 + at < 0 || p0 + at >= tn->partitions ||
              start + o->l->lo < 0 || start + o->l->hi > size;
        low = -p0;
        high = (int64_t)tn->partitions - 1 - p0;
        move = bad ? 0
                   : at * (tn->buffer == BUF_PSUM ? core_psum_stride(x->dp->p->target)
                                                  : core_sbuf_stride(x->dp->p->target)) +
                         (int64_t)i * t->ps;
    } else {
        bad = bad || at > INT64_MAX / 4 || at < -(INT64_MAX / 4) ||
              start + row0 + at + o->l->lo < 0 || start + row0 + at + o->l->hi > size ||
              (chip && v->part + (int64_t)i * o->l->step0 >= tn->partitions);
        low = step ? -((start + row0 + o->l->lo) / step) : 0;
        high = step ? (size - start - row0 - o->l->hi) / step : 0;
        move = bad ? 0 : at + (chip ? (int64_t)i * t->ps : row0);
    }
    if (bad) {
        if (!skip) {
            exec_oob(x, b, o, d->kind == DYN_VECTOR ? "index" : "dynamic offset", value, low, high);
        }
        return NULL;
    }
    return t->p + move;
}

static void run_dma_rows(exec *x, const bound *b, const tile *t)
{
    const dma_args *a = b->a;
    const tile *d = &t[0], *s = &t[1];
    char *mid = NULL;
    uint32_t base0 = b->o[0].base, base1 = b->o[1].base;
    // Where both sides may meet (parameters can alias), the source is read whole first.
    bool aside = !a->row_joint || base0 == base1 || (base0 >= BASE_HBM && base1 >= BASE_HBM);
    if (aside) {  // rows of the source packed first, whatever rows the destination has
        mid = exec_slot(x, SLOT_DMA, a->n * s->size);
        if (!mid) {
            return;
        }
    }
    unsigned size = s->size;
    if (!aside) {
        for (uint32_t i = 0; i < a->nrows; i++) {
            char *q = dma_row_at(x, b, &b->o[0], d, i, a->skip);
            char *p = q ? dma_row_at(x, b, &b->o[1], s, i, a->skip) : NULL;
            if (p && q) {
                move_nest(x->k, a->row.dim, a->row.ndim, q, p, (dtype)d->dtype, (dtype)s->dtype);
            }
            if (x->status != NKI_OK) {
                return;
            }
        }
        return;
    }
    uint64_t sn = s->l->n, dn = d->l->n;
    // Rows of the source that exist, packed; then each row of the destination element by element.
    unsigned char *have = exec_slot(x, SLOT_DMA - 1, s->parts);
    if (!have) {
        return;
    }
    for (uint32_t i = 0; i < s->parts; i++) {
        const char *p = dma_row_at(x, b, &b->o[1], s, i, a->skip);
        have[i] = p != NULL;
        if (p) {
            gather(mid + i * sn * size, p, s->l, 0, sn, size);
        }
        if (x->status != NKI_OK) {
            return;
        }
    }
    for (uint32_t i = 0; i < d->parts; i++) {
        char *q = dma_row_at(x, b, &b->o[0], d, i, a->skip);
        if (x->status != NKI_OK) {
            return;
        }
        for (uint64_t e = 0; q && e < dn;) {
            uint64_t at = i * dn + e, left = sn - at % sn;
            size_t m = (size_t)(left < dn - e ? left : dn - e);
            m = m > CHUNK ? CHUNK : m;
            if (have[at / sn]) {
                void *v = mid + at * size;
                if (d->dtype != s->dtype) {
                    convert_with(x->k, x->s->raw[1], (dtype)d->dtype, d->size, v,
                                 (dtype)s->dtype, size, m);
                    v = x->s->raw[1];
                }
                scatter(q, d->l, e, v, m, d->size);
            }
            e += m;
        }
    }
}

// Dynamic parts that are resolved row by row: vectors always, scalars when rows may be skipped.
static bool mark_late(binder *b, opnd *o, bool skip)
{
    const ir_dyn *d = o->dyn ? &b->p->dyns.at[o->dyn] : NULL;
    if (!d || d->kind == DYN_INDIRECT) {
        return false;
    }
    if (d->kind == DYN_VECTOR) {
        const opnd *ix = &b->index[o->index];
        if (ix->l->parts * ix->l->n < o->l->parts) {
            bind_fail(b, "%u rows have only %llu indices", o->l->parts,
                      (unsigned long long)(ix->l->parts * ix->l->n));
            return false;
        }
    }
    o->late = d->kind == DYN_VECTOR || skip;
    return o->late;
}

static bool plan_rows(binder *b, dma_args *a)
{
    opnd *d = &b->o[0], *s = &b->o[1];
    bool rows_ = mark_late(b, d, a->skip);
    rows_ = mark_late(b, s, a->skip) || rows_;
    if (b->err) {
        return false;
    }
    a->row_mode = rows_;
    if (!rows_) {
        return true;
    }
    a->nrows = d->l->parts;
    a->row_joint = d->l->parts == s->l->parts &&
                   nest_make(&a->row, side_of(d->l, 0, false), side_of(s->l, 0, false));
    return true;
}

static bool bind_ends(binder *b, dma_args *a, uint32_t dst, uint32_t src, uint32_t oob)
{
    if (bind_operand(b, dst, true) < 0 || bind_operand(b, src, false) < 0) {
        return false;
    }
    if (!b->o[0].l || !b->o[1].l) {
        return bind_fail(b, "a tensor is missing");
    }
    a->skip = bind_arg(b, oob).v == ISAE_oob_mode_skip;
    return true;
}

// DMA checks overlap itself: parameters may alias in ways known only at the call.
static bool dma_done(binder *b, exec_fn fn, const dma_args *a)
{
    if (!bind_done(b, fn, a, true)) {
        return false;
    }
    uint32_t indirect = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const opnd *o = &b->b->o[i];
        if (o->l && o->dyn && b->p->dyns.at[o->dyn].kind == DYN_INDIRECT) {
            indirect = 1;
        }
    }
    if (indirect) {
        return bind_fail(b, "an indirect tensor cannot be moved by DMA");
    }
    b->b->stage_in = b->b->stage_out = 0;
    b->b->fn = fn;
    return true;
}

bool bind_dma_copy(binder *b)
{
    dma_args *a = BIND_ARGS(b, dma_args);
    return bind_ends(b, a, 0, 1, 3) && plan(b, a, 0, 1) && plan_rows(b, a) &&
           dma_done(b, a->row_mode ? run_dma_rows : run_dma, a);
}

// ---- transpose

// The source with permuted dimensions is a pattern like any other: then it is a copy.
static bool permuted(binder *b, const opnd *o, const uint32_t *perm, uint32_t n, side *out,
                     uint64_t *counts)
{
    const ir_view *v = ir_view_ref(b->p, o->view);
    const ir_dim *dims = ir_dims(b->p, v);
    bool chip = o->base <= BASE_PSUM;
    out->ndim = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = perm[i];
        counts[i] = dims[d].count;
        if (dims[d].count > 1) {
            out->count[out->ndim] = dims[d].count;
            out->stride[out->ndim++] = d == 0 && chip ? o->ps : dims[d].stride * o->size;
        }
    }
    return true;
}

static void run_dma_indexed_transpose(exec *x, const bound *b, const tile *t)
{
    // Indexed rows are packed in order, then the packed block is permuted.
    const dma_args *a = b->a;
    const tile *s = &t[1];
    uint64_t sn = s->l->n;
    char *mid = exec_slot(x, SLOT_DMA, a->n * s->size);
    char *old = mid ? exec_slot(x, SLOT_DMA - 1, a->n * s->size) : NULL;
    if (!old) {
        return;
    }
    // What a skipped row leaves alone is what the destination holds now: read it back permuted.
    nest back = a->unpack;
    for (uint32_t i = 0; i < back.ndim; i++) {
        int64_t d = back.dim[i].d;
        back.dim[i].d = back.dim[i].s;
        back.dim[i].s = d;
    }
    move_nest(x->k, back.dim, back.ndim, mid, t[0].p, (dtype)s->dtype, (dtype)s->dtype);
    for (uint32_t i = 0; i < s->parts; i++) {
        const char *p = dma_row_at(x, b, &b->o[1], s, i, a->skip);
        if (p) {
            gather(mid + i * sn * s->size, p, s->l, 0, sn, s->size);
        }
        if (x->status != NKI_OK) {
            return;
        }
    }
    move_nest(x->k, a->unpack.dim, a->unpack.ndim, t[0].p, mid, (dtype)t[0].dtype, (dtype)s->dtype);
}

static bool transpose_axes(binder *b, uint32_t n, uint32_t *perm)
{
    ir_arg axes = bind_arg(b, 2);
    static const uint32_t dflt[3][4] = {{1, 0}, {2, 1, 0}, {3, 1, 2, 0}};
    if (axes.kind != IRA_LIST || axes.aux == 0) {
        if (n < 2 || n > 4) {
            return bind_fail(b, "axes are needed for %u dimensions", n);
        }
        memcpy(perm, dflt[n - 2], n * sizeof *perm);
        return true;
    }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t d = (uint32_t)axes.aux == n && axes.v + i < b->p->args.n
                        ? ira_integer(b->p->args.at[axes.v + i])
                        : -1;
        if (d < 0 || d >= n || seen >> d & 1) {
            return bind_fail(b, "axes are not a permutation of %u dimensions", n);
        }
        seen |= 1u << d;
        perm[i] = (uint32_t)d;
    }
    return true;
}

bool bind_dma_transpose(binder *b)
{
    dma_args *a = BIND_ARGS(b, dma_args);
    uint32_t perm[IR_MAX_DIMS];
    uint64_t counts[IR_MAX_DIMS];
    if (!bind_ends(b, a, 0, 1, 5)) {
        return false;
    }
    opnd *d = &b->o[0], *s = &b->o[1];
    uint32_t n = ir_ndim(b->p, ir_view_ref(b->p, s->view));
    if (!transpose_axes(b, n, perm)) {
        return false;
    }
    if (d->size != s->size || d->dtype != s->dtype) {
        return bind_fail(b, "dst is %s, src is %s", dtype_name((dtype)d->dtype),
                         dtype_name((dtype)s->dtype));
    }
    a->n = s->l->parts * s->l->n;
    if (d->l->parts * d->l->n != a->n) {
        return bind_fail(b, "dst and src have different numbers of elements");
    }
    side p, to = side_of(d->l, d->ps, true);
    permuted(b, s, perm, n, &p, counts);
    a->joint = nest_make(&a->whole, to, p);
    side flat = side_flat(a->n, s->size);
    if (!nest_make(&a->pack, flat, p) || !nest_make(&a->unpack, to, flat)) {
        return bind_fail(b, "an access pattern is too complex");
    }
    if (mark_late(b, d, false) || b->err) {
        return b->err ? false : bind_fail(b, "dst cannot be indexed");
    }
    if (!mark_late(b, s, a->skip)) {
        return b->err ? false : dma_done(b, run_dma, a);
    }
    // Strides of the packed rows, permuted the same way.
    const ir_dim *dims = ir_dims(b->p, ir_view_ref(b->p, s->view));
    int64_t packed[IR_MAX_DIMS], stride = s->size;
    for (uint32_t i = n; i-- > 0;) {
        packed[i] = stride;
        stride *= dims[i].count;
    }
    side q = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (counts[i] > 1) {
            q.count[q.ndim] = counts[i];
            q.stride[q.ndim++] = packed[perm[i]];
        }
    }
    if (!nest_make(&a->unpack, to, q)) {
        return bind_fail(b, "dst and the permuted source have different shapes");
    }
    return dma_done(b, run_dma_indexed_transpose, a);
}

// ---- sums

// dst = cvt(sum of the sources in fp32, left to right).
static void run_dma_compute(exec *x, const bound *b, const tile *t)
{
    const dma_args *a = b->a;
    const tile *d = &t[0];
    uint64_t dn = d->l->n;
    float *sum = exec_slot(x, SLOT_DMA, a->n * sizeof(float));
    if (!sum) {
        return;
    }
    unsigned char *have = exec_slot(x, SLOT_DMA - 1, d->parts);
    if (!have) {
        return;
    }
    memset(have, 1, d->parts);
    memset(sum, 0, a->n * sizeof(float));
    for (uint32_t k = 0; k < a->nsrc; k++) {
        const tile *s = &t[1 + k];
        const opnd *o = &b->o[1 + k];
        for (uint32_t i = 0; i < s->parts; i++) {
            const char *p = dma_row_at(x, b, o, s, i, a->skip);
            if (x->status != NKI_OK) {
                return;
            }
            if (!p) {
                have[i < d->parts ? i : 0] = 0;
                continue;
            }
            tile row = *s;
            memcpy(&row.p, &p, sizeof p);
            for (uint64_t e = 0; e < s->l->n; e += CHUNK) {
                size_t m = s->l->n - e < CHUNK ? (size_t)(s->l->n - e) : CHUNK;
                crows c = load_rows(x, &row, 0, 1, e, m, x->s->buf[0]);
                float *to = sum + i * s->l->n + e;
                if (k == 0) {
                    memcpy(to, c.p, m * sizeof *to);
                } else {
                    x->k->bin[OPR_add][KERN_VV]((rows){to, 0}, (crows){to, 0}, c, 1, m);
                }
            }
        }
    }
    for (uint32_t i = 0; i < d->parts; i++) {
        char *q = have[i] ? dma_row_at(x, b, &b->o[0], d, i, a->skip) : NULL;
        if (x->status != NKI_OK) {
            return;
        }
        tile row = *d;
        row.p = q;
        for (uint64_t e = 0; q && e < dn; e += CHUNK) {
            size_t m = dn - e < CHUNK ? (size_t)(dn - e) : CHUNK;
            store_rows(x, &row, 0, 1, e, m, (crows){sum + i * dn + e, 0});
        }
    }
}

bool bind_dma_compute(binder *b)
{
    dma_args *a = BIND_ARGS(b, dma_args);
    ir_arg srcs = bind_arg(b, 1), op = bind_arg(b, 2), scales = bind_arg(b, 3);
    if (op.kind != IRA_OP || op.v != OPR_add) {
        return bind_fail(b, "reduce_op must be add");
    }
    for (uint32_t i = 0; scales.kind == IRA_LIST && i < (uint32_t)scales.aux; i++) {
        if (scales.v + i >= b->p->args.n || ira_float(b->p->args.at[scales.v + i]) != 1.0f) {
            return bind_fail(b, "scales must be 1.0");
        }
    }
    if (srcs.kind != IRA_LIST || srcs.aux < 1 || srcs.aux > 16 ||
        (uint64_t)srcs.v + (uint64_t)srcs.aux > b->p->args.n) {
        return bind_fail(b, "1 to 16 sources are needed");
    }
    if (bind_operand(b, 0, true) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    a->nsrc = (uint32_t)srcs.aux;
    a->n = b->o[0].l->parts * b->o[0].l->n;
    a->skip = bind_arg(b, 5).v == ISAE_oob_mode_skip;
    mark_late(b, &b->o[0], a->skip);
    for (uint32_t i = 0; i < a->nsrc && !b->err; i++) {
        ir_arg s = b->p->args.at[srcs.v + i];
        if (s.kind != IRA_VIEW || bind_view(b, s.v, 1, false) < 0) {
            return b->err ? false : bind_fail(b, "a source is not a tensor");
        }
        opnd *o = &b->o[1 + i];
        if (o->l->parts * o->l->n != a->n) {
            return bind_fail(b, "a source and dst have different numbers of elements");
        }
        if (!bind_computes(b, (int)(1 + i))) {
            return false;
        }
        mark_late(b, o, a->skip);
    }
    return !b->err && bind_computes(b, 0) && dma_done(b, run_dma_compute, a);
}
