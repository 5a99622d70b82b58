#include "sched/reach.h"

#include <stdlib.h>

enum { RUNS_MAX = 4096 };  // of the side with fewer, when two patterns are compared run by run

// ---- objects

typedef struct placed {
    uint64_t lo, hi;
    uint32_t tensor;
} placed;

static int by_address(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->lo != y->lo) {
        return x->lo < y->lo ? -1 : 1;
    }
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

void objects_make(arena *mem, const ir *p, objects *o)
{
    uint32_t nt = p->tensors.n, n = 0;
    *o = (objects){.mem = mem};
    o->of = NEW_N(mem, uint32_t, nt);
    o->base = NEW_N(mem, uint64_t, nt);
    uint32_t in_hbm = 0;
    for (uint32_t t = 0; t < nt; t++) {
        in_hbm += !buffer_on_chip((buffer_kind)p->tensors.at[t].buffer);
    }
    o->bytes = NEW_N(mem, uint64_t, OBJ_FIRST_HBM + in_hbm);
    for (uint32_t k = 0; k < OBJ_FIRST_HBM; k++) {
        o->bytes[k] = 1;
    }
    o->bytes[OBJ_SBUF] = p->target->sbuf_partition_bytes;
    o->bytes[OBJ_PSUM] = p->target->psum_partition_bytes;
    o->n = OBJ_FIRST_HBM;
    placed *seg = NEW_N(mem, placed, in_hbm);
    for (uint32_t t = 0; t < nt; t++) {
        const ir_tensor *ten = &p->tensors.at[t];
        if (buffer_on_chip((buffer_kind)ten->buffer)) {
            o->of[t] = ten->buffer == BUF_SBUF ? OBJ_SBUF : OBJ_PSUM;
            o->base[t] = ten->addr_bytes;
        } else if (ten->role == ROLE_ARG || ten->addr_bytes == ADDR_AUTO) {
            o->bytes[o->n] = ten->size_bytes;
            o->of[t] = o->n++;
        } else {
            seg[n++] = (placed){ten->addr_bytes, ten->addr_bytes + ten->size_bytes, t};
        }
    }
    qsort(seg, n, sizeof *seg, by_address);
    uint64_t lo = 0, hi = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (k == 0 || seg[k].lo >= hi) {
            lo = seg[k].lo;
            hi = lo;
            o->n++;
        }
        hi = seg[k].hi > hi ? seg[k].hi : hi;
        o->of[seg[k].tensor] = o->n - 1;
        o->base[seg[k].tensor] = seg[k].lo - lo;
        o->bytes[o->n - 1] = hi - lo;
    }
}

// ---- a view's reach

// Adds a dimension whose stride is at least that of those before it. false: it is not nested.
static bool add_dim(lattice *l, uint64_t stride, uint64_t count)
{
    if (l->n == 0) {
        if (stride <= l->run) {
            l->run += stride * (count - 1);
            return true;
        }
    } else {
        lattice_dim *top = &l->dim[l->n - 1];
        // A multiple of the stride below, without a hole between: the same dimension, longer.
        if (stride % top->stride == 0 && stride / top->stride <= top->count) {
            top->count += stride / top->stride * (count - 1);
            return true;
        }
        if (stride < lattice_end(l) - l->off) {
            return false;
        }
    }
    if (l->n == LATTICE_DIMS) {
        return false;
    }
    l->dim[l->n++] = (lattice_dim){stride, count};
    return true;
}

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? (uint64_t)0 - (uint64_t)v : (uint64_t)v;
}

// Dimensions from..ndim-1 of a pattern, in units of `unit` bytes. false: l is the box around it.
static bool make_lattice(const ir_dim *d, uint32_t from, uint32_t ndim, uint64_t unit, lattice *l)
{
    uint32_t order[IR_MAX_DIMS], n = 0;
    for (uint32_t k = from; k < ndim; k++) {
        if (d[k].count <= 1 || d[k].stride == 0) {
            continue;
        }
        if (d[k].stride < 0) {
            l->off -= magnitude(d[k].stride) * unit * (d[k].count - 1);
        }
        uint32_t at = n++;
        for (; at && magnitude(d[order[at - 1]].stride) > magnitude(d[k].stride); at--) {
            order[at] = order[at - 1];
        }
        order[at] = k;
    }
    bool exact = true;
    uint64_t extent = l->run;
    for (uint32_t k = 0; k < n; k++) {
        uint64_t stride = magnitude(d[order[k]].stride) * unit;
        extent += stride * (d[order[k]].count - 1);
        exact = exact && add_dim(l, stride, d[order[k]].count);
    }
    if (!exact) {
        l->n = 0;
        l->run = extent;
    }
    return exact;
}

// The shape of v's pattern: on chip or not, with a dynamic offset (which may be any byte) or not.
static const shape *shape_of(const ir *p, objects *o, const ir_view *v, bool chip)
{
    uint32_t size = dtype_size((dtype)v->dtype);
    uint32_t key = v->ap << 4 | (uint32_t)chip << 3 | (uint32_t)(v->dyn != 0) << 2 | size >> 1;
    if (key >= o->shapes.n) {
        uint32_t more = (p->aps.n << 4) - o->shapes.n;
        vec_reserve(o->mem, &o->shapes, more);
        memset(o->shapes.at + o->shapes.n, 0, more * sizeof(const shape *));
        o->shapes.n += more;
    }
    if (!o->shapes.at[key]) {
        const ir_dim *d = ir_dims(p, v);
        uint32_t n = ir_ndim(p, v);
        shape *s = NEW(o->mem, shape);
        s->rows.run = 1;
        s->bytes.run = size;
        s->inexact = chip && !make_lattice(d, 0, n ? 1 : 0, 1, &s->rows);
        if (!v->dyn) {
            s->inexact |= !make_lattice(d, chip ? 1 : 0, n, size, &s->bytes);
        }
        s->rows_span = lattice_end(&s->rows) - s->rows.off;
        s->bytes_span = lattice_end(&s->bytes) - s->bytes.off;
        s->box = !s->rows.n && !s->bytes.n;
        o->shapes.at[key] = s;
    }
    return o->shapes.at[key];
}

reach reach_of(const ir *p, objects *o, const ir_view *v)
{
    const ir_tensor *t = &p->tensors.at[v->tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    const shape *s = shape_of(p, o, v, chip);
    reach r;
    r.object = o->of[v->tensor];
    r.inexact = s->inexact || v->dyn != IR_NONE;
    r.shape = s->box ? NULL : s;
    r.row = 0;
    r.row_end = 1;
    if (chip && v->dyn && p->dyns.at[v->dyn].partition) {
        r.row = (uint16_t)t->addr_part;
        r.row_end = (uint16_t)(t->addr_part + t->partitions);
        r.shape = NULL;
    } else if (chip) {
        r.row = (uint16_t)(t->addr_part + v->part + s->rows.off);
        r.row_end = (uint16_t)(r.row + s->rows_span);
    }
    r.lo = o->base[v->tensor];
    r.hi = r.lo + t->size_bytes;
    if (!v->dyn) {
        r.lo += (uint64_t)(v->offset * (int64_t)dtype_size((dtype)v->dtype)) + s->bytes.off;
        r.hi = r.lo + s->bytes_span;
    }
    return r;
}

reach reach_state(uint32_t object)
{
    return (reach){.object = object, .hi = 1, .row_end = 1};
}

// ---- comparing

// Whether [lo, hi) meets the first n dimensions of l, shifted to begin at 0.
static bool run_hits(const lattice *l, uint32_t n, int64_t lo, int64_t hi)
{
    if (n == 0) {
        return lo < (int64_t)l->run && hi > 0;
    }
    int64_t stride = (int64_t)l->dim[n - 1].stride, count = (int64_t)l->dim[n - 1].count;
    int64_t first = lo / stride;  // the last copy that begins at or before lo
    if (lo < 0) {
        first = 0;
    }
    // A copy that begins inside [lo, hi) is met at its first byte; only the one that begins before
    // lo has to be looked into.
    if (first >= count) {
        first = count - 1;
    }
    int64_t next = lo <= 0 ? 0 : (lo + stride - 1) / stride;
    if (next < count && next * stride < hi) {
        return true;
    }
    return first * stride < hi && run_hits(l, n - 1, lo - first * stride, hi - first * stride);
}

static uint64_t runs_of(const lattice *l)
{
    uint64_t n = 1;
    for (uint32_t k = 0; k < l->n; k++) {
        n = n > RUNS_MAX ? n : n * l->dim[k].count;
    }
    return n;
}

static bool any_run_hits(const lattice *a, uint32_t n, uint64_t at, const lattice *b)
{
    if (n == 0) {
        int64_t lo = (int64_t)(at - b->off);
        return run_hits(b, b->n, lo, lo + (int64_t)a->run);
    }
    for (uint64_t i = 0; i < a->dim[n - 1].count; i++) {
        if (any_run_hits(a, n - 1, at + i * a->dim[n - 1].stride, b)) {
            return true;
        }
    }
    return false;
}

// Both have one dimension of one stride: runs meet when some k strides bring them together.
static bool same_stride_meet(const lattice *a, const lattice *b)
{
    int64_t s = (int64_t)a->dim[0].stride, d = (int64_t)(b->off - a->off);
    int64_t kmin = -(int64_t)(a->dim[0].count - 1), kmax = (int64_t)(b->dim[0].count - 1);
    // -run_b < d + k * s < run_a: the smallest k with d + k * s > -run_b
    int64_t x = -(int64_t)b->run - d;
    int64_t k = x >= 0 ? x / s + 1 : -(-x / s) + (-x % s != 0 ? 0 : 1);
    k = k < kmin ? kmin : k;
    return k <= kmax && d + k * s < (int64_t)a->run;
}

bool lattices_meet(const lattice *a, const lattice *b, bool *unsure)
{
    if (a->off >= lattice_end(b) || b->off >= lattice_end(a)) {
        return false;
    }
    if (a->n == 0 && b->n == 0) {
        return true;
    }
    if (a->n == 1 && b->n == 1 && a->dim[0].stride == b->dim[0].stride) {
        return same_stride_meet(a, b);
    }
    uint64_t na = runs_of(a), nb = runs_of(b);
    if (na > RUNS_MAX && nb > RUNS_MAX) {
        *unsure = true;
        return true;
    }
    return na <= nb ? any_run_hits(a, a->n, a->off, b) : any_run_hits(b, b->n, b->off, a);
}

bool lattice_covers(const lattice *a, const lattice *b)
{
    if (b->off < a->off || lattice_end(b) > lattice_end(a)) {
        return false;
    }
    if (a->n == 0) {
        return true;
    }
    uint64_t rel = b->off - a->off;
    if (a->n == 1 && b->n <= 1 && (b->n == 0 || b->dim[0].stride == a->dim[0].stride)) {
        return rel % a->dim[0].stride + b->run <= a->run;
    }
    return rel == 0 && a->n == b->n && a->run == b->run &&
           memcmp(a->dim, b->dim, a->n * sizeof *a->dim) == 0;
}

static lattice rows_of(const reach *r)
{
    lattice l = {.run = (uint64_t)r->row_end - r->row};
    if (r->shape) {
        l = r->shape->rows;
    }
    l.off = r->row;
    return l;
}

static lattice bytes_of(const reach *r)
{
    lattice l = {.run = r->hi - r->lo};
    if (r->shape && r->shape->bytes.n) {
        l = r->shape->bytes;
    }
    l.off = r->lo;
    return l;
}

static bool gaps_in_rows(const reach *r)
{
    return r->shape && r->shape->rows.n;
}

bool shapes_meet(const reach *a, const reach *b, bool *unsure)
{
    if (gaps_in_rows(a) || gaps_in_rows(b)) {
        lattice ra = rows_of(a), rb = rows_of(b);
        if (!lattices_meet(&ra, &rb, unsure)) {
            return false;
        }
    }
    lattice ba = bytes_of(a), bb = bytes_of(b);
    return lattices_meet(&ba, &bb, unsure);
}

bool shapes_cover(const reach *a, const reach *b)
{
    if (!rows_cover(a, b)) {
        return false;
    }
    lattice ba = bytes_of(a), bb = bytes_of(b);
    return lattice_covers(&ba, &bb);
}

bool rows_cover(const reach *a, const reach *b)
{
    if (b->row < a->row || b->row_end > a->row_end) {
        return false;
    }
    if (!gaps_in_rows(a)) {
        return true;
    }
    lattice ra = rows_of(a), rb = rows_of(b);
    return lattice_covers(&ra, &rb);
}
