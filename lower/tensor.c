// Tensors as values: storage and view. Every method is view algebra: no data moves.
#include "lower/interp.h"

#include <stdio.h>
#include <string.h>

static const char *dims_text(interp *it, const uint32_t *shape, uint32_t n)
{
    textbuf t;
    text_init(&t, it->mem);
    text_char(&t, '[');
    for (uint32_t i = 0; i < n; i++) {
        text_printf(&t, "%s%u", i ? ", " : "", shape[i]);
    }
    text_char(&t, ']');
    return t.at;
}

void tensor_describe(const vtensor *t, textbuf *out)
{
    text_char(out, '[');
    for (uint32_t i = 0; i < t->ndim; i++) {
        text_printf(out, "%s%u", i ? ", " : "", t->shape[i]);
    }
    text_printf(out, "] %s @%s", dtype_name((dtype)t->dtype), buffer_name((buffer_kind)t->buffer));
}

static bool on_chip(const vtensor *t)
{
    return buffer_on_chip((buffer_kind)t->buffer);
}

value tensor_whole(interp *it, uint32_t id)
{
    const ir_tensor *s = &it->p->tensors.at[id];
    vtensor *t = NEW(it->mem, vtensor);
    t->id = id;
    t->dtype = s->dtype;
    t->buffer = s->buffer;
    t->ndim = s->ndim;
    int64_t stride = 1;
    for (uint32_t d = s->ndim; d-- > 0;) {
        t->shape[d] = s->shape[d];
        t->strides[d] = stride;
        stride *= s->shape[d];
    }
    t->row = s->ndim ? t->strides[0] : 1;
    return (value){.tag = V_TENSOR, .u.tensor = t};
}

value tensor_new(interp *it, ir_tensor t)
{
    uint32_t id;
    t.place = interp_place(it);
    diag *d = emit_tensor(it->em, t, interp_loc(it), &id);
    return d ? interp_raise(it, d) : tensor_whole(it, id);
}

static vtensor *derive(interp *it, const vtensor *t)
{
    vtensor *n = NEW(it->mem, vtensor);
    *n = *t;
    n->view = IR_NONE;
    return n;
}

static value wrap(vtensor *t)
{
    return (value){.tag = V_TENSOR, .u.tensor = t};
}

static uint64_t count(const vtensor *t)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < t->ndim; d++) {
        n *= t->shape[d];
    }
    return n;
}

static const char *tensor_label(interp *it, const vtensor *t)
{
    const char *n = ir_text(it->p, it->p->tensors.at[t->id].name);
    return *n ? arena_printf(it->mem, " of tensor '%s'", n) : "";
}

// ---- bounds

// Elements of t's dtype that its storage holds.
static int64_t storage_elems(interp *it, const vtensor *t)
{
    const ir_tensor *s = &it->p->tensors.at[t->id];
    uint64_t size = dtype_size((dtype)t->dtype);
    return (int64_t)(on_chip(t) ? s->size_bytes / size * s->partitions : s->size_bytes / size);
}

// Static part of a view stays inside its storage (and, on chip, its row).
static bool in_bounds(interp *it, const vtensor *t)
{
    int64_t lo = t->offset, hi = t->offset, free_lo = 0, free_hi = 0;
    for (uint32_t d = 0; d < t->ndim; d++) {
        if (d == 0 && t->fixed_rows) {
            continue;
        }
        int64_t reach;
        if (__builtin_mul_overflow(t->strides[d], (int64_t)t->shape[d] - 1, &reach)) {
            reach = INT64_MAX / 4;
        }
        *(reach < 0 ? &lo : &hi) += reach;
        if (d > 0) {
            *(reach < 0 ? &free_lo : &free_hi) += reach;
        }
    }
    int64_t total = storage_elems(it, t);
    const ir_tensor *s = &it->p->tensors.at[t->id];
    if (t->dyn != IR_NONE && !on_chip(t)) {
        return true;  // checked when it runs
    }
    if (lo < 0 || hi >= total) {
        raise_msg(it, "IndexError",
                  "access pattern reaches element %lld%s, outside 0..%lld: the tensor is %s %s @%s",
                  (long long)(lo < 0 ? lo : hi), tensor_label(it, t), (long long)total - 1,
                  dims_text(it, s->shape, s->ndim), dtype_name((dtype)s->dtype), buffer_name((buffer_kind)s->buffer));
        return false;
    }
    if (on_chip(t) && t->row) {
        int64_t free = t->offset % t->row;
        if (free + free_lo < 0 || free + free_hi >= t->row) {
            raise_msg(it, "IndexError",
                      "access pattern leaves its partition: free elements %lld..%lld%s, a partition holds %lld",
                      (long long)(free + free_lo), (long long)(free + free_hi), tensor_label(it, t), (long long)t->row);
            return false;
        }
    }
    return true;
}

bool tensor_view(interp *it, vtensor *t, uint32_t *view)
{
    if (t->view != IR_NONE) {
        *view = t->view;
        return true;
    }
    ir_dim dims[IR_MAX_DIMS];
    memset(dims, 0, sizeof dims);
    ir_view v = {.tensor = t->id, .dtype = t->dtype, .dyn = t->dyn, .offset = t->offset};
    for (uint32_t d = 0; d < t->ndim; d++) {
        dims[d].stride = t->strides[d];
        dims[d].count = t->shape[d];
    }
    uint32_t ndim = t->ndim;
    if (on_chip(t)) {
        v.part = (uint8_t)(t->offset / t->row);
        v.offset = t->offset % t->row;
        if (ndim == 0) {
            dims[0].count = 1;
            ndim = 1;
        }
        dims[0].stride = dims[0].count > 1 ? dims[0].stride / t->row : 1;
    }
    v.ap = ir_ap_of(it->p, dims, ndim);
    t->view = *view = ir_view_add(it->p, v);
    return true;
}

// ---- indexing

static value bad_index(interp *it, const vtensor *t, uint32_t d, int64_t i)
{
    return raise_msg(it, "IndexError", "index %lld is out of bounds for dimension %u of size %u%s: shape %s", (long long)i, d,
                     t->shape[d], tensor_label(it, t), dims_text(it, t->shape, t->ndim));
}

static bool dyn_of(interp *it, value src, int64_t step, const vtensor *t, uint32_t limit, dyn_kind vector, uint32_t *out)
{
    ir_dyn d = {.kind = DYN_REG, .step = step, .limit = limit};
    if (src.tag == V_REG) {
        d.src = src.u.reg->id;
    } else if (src.tag == V_TENSOR) {
        d.kind = (uint8_t)vector;
        if (vector == DYN_SCALAR && count(src.u.tensor) != 1) {
            value_error(it, "a scalar offset has one element, got shape %s", dims_text(it, src.u.tensor->shape, src.u.tensor->ndim));
            return false;
        }
        if (src.u.tensor->dyn != IR_NONE) {
            value_error(it, "an offset tensor may not be a dynamic view itself");
            return false;
        }
        if (!tensor_view(it, src.u.tensor, &d.src)) {
            return false;
        }
    } else {
        type_error(it, "a dynamic offset is a register or a tensor, got %s", type_name(it, src));
        return false;
    }
    if (t->dyn != IR_NONE) {
        raise_msg(it, "NkiValidationError", "a view has at most one dynamic part: it was given one already");
        return false;
    }
    if (on_chip(t) && t->row && step % t->row == 0) {
        d.partition = 1;
        d.step = step / t->row;
    }
    *out = ir_dyn_add(it->p, d);
    return true;
}

typedef struct index_state {
    vtensor *n;        // result
    uint32_t nd;
} index_state;

static void keep(index_state *s, uint32_t size, int64_t stride)
{
    s->n->shape[s->nd] = size;
    s->n->strides[s->nd++] = stride;
}

static bool index_slice(interp *it, const vtensor *t, uint32_t d, int64_t a, int64_t b, int64_t c, index_state *s)
{
    if (c < 1) {
        value_error(it, "slice step %lld is not positive", (long long)c);
        return false;
    }
    if (a == b) {
        value_error(it, "slice %lld:%lld of dimension %u is empty; a slice needs start < end (shape %s)", (long long)a, (long long)b,
                    d, dims_text(it, t->shape, t->ndim));
        return false;
    }
    if (!(a >= 0 && a < b && b <= t->shape[d])) {
        raise_msg(it, "IndexError", "slice %lld:%lld is out of bounds for dimension %u of size %u%s: shape %s", (long long)a,
                  (long long)b, d, t->shape[d], tensor_label(it, t), dims_text(it, t->shape, t->ndim));
        return false;
    }
    s->n->offset += a * t->strides[d];
    keep(s, (uint32_t)((b - a + c - 1) / c), t->strides[d] * c);
    return true;
}

static bool bound(interp *it, value v, int64_t dflt, int64_t size, int64_t *out)
{
    if (v.tag == V_NONE) {
        *out = dflt;
        return true;
    }
    if (v.tag == V_REG) {
        type_error(it, "a register may not be a slice bound; use nl.ds(register, size)");
        return false;
    }
    if (v.tag == V_FLOAT) {
        type_error(it, "slice bounds are integers, got float %g", v.u.d);
        return false;
    }
    if (!as_index(it, v, out)) {
        return false;
    }
    *out += *out < 0 ? size : 0;
    return true;
}

static bool index_one(interp *it, const vtensor *t, uint32_t d, value k, index_state *s)
{
    int64_t size = t->shape[d], st = t->strides[d], a, b, c = 1;
    switch ((vtag)k.tag) {
    case V_SLICE:
        return bound(it, k.u.slice->start, 0, size, &a) && bound(it, k.u.slice->stop, size, size, &b) &&
               bound(it, k.u.slice->step, 1, 0, &c) && index_slice(it, t, d, a, b, c, s);
    case V_RANGE: return index_slice(it, t, d, k.u.range->start, k.u.range->stop, k.u.range->step, s);
    case V_DS:
        if (k.u.ds->start.tag == V_REG || k.u.ds->start.tag == V_TENSOR) {
            if (k.u.ds->size < 1 || k.u.ds->size > size) {
                raise_msg(it, "IndexError", "nl.ds size %lld is out of bounds for dimension %u of size %lld",
                          (long long)k.u.ds->size, d, (long long)size);
                return false;
            }
            if (!dyn_of(it, k.u.ds->start, st, t, (uint32_t)size, DYN_SCALAR, &s->n->dyn)) {
                return false;
            }
            keep(s, (uint32_t)k.u.ds->size, st);
            return true;
        }
        return as_index(it, k.u.ds->start, &a) && index_slice(it, t, d, a, a + k.u.ds->size, 1, s);
    case V_REG: case V_TENSOR:
        if (!dyn_of(it, k, st, t, (uint32_t)size, DYN_SCALAR, &s->n->dyn)) {
            return false;
        }
        break;
    case V_NONE:
        type_error(it, "None is not an index of a tensor; use expand_dim(dim)");
        return false;
    case V_FLOAT:
        type_error(it, "a tensor index is an integer, got float %g (use // for integer division)", k.u.d);
        return false;
    default:
        if (!as_index(it, k, &a)) {
            it->exc = VUNDEF;
            type_error(it, "index of type '%s' is not supported", type_name(it, k));
            return false;
        }
        a += a < 0 ? size : 0;
        if (a < 0 || a >= size) {
            bad_index(it, t, d, a);
            return false;
        }
        s->n->offset += a * st;
        break;
    }
    // An integer drops the dimension, except the partition and what would leave fewer than two on chip.
    if (on_chip(t) && (d == 0 || (d + 1 == t->ndim && s->nd < 2))) {
        keep(s, 1, st);
    }
    return true;
}

value tensor_index(interp *it, value tv, value key)
{
    const vtensor *t = tv.u.tensor;
    const value *k = &key;
    uint32_t n = 1;
    if (key.tag == V_TUPLE) {
        k = key.u.tuple->at;
        n = key.u.tuple->n;
    }
    uint32_t dots = UINT32_MAX, given = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (k[i].tag == V_ELLIPSIS) {
            if (dots != UINT32_MAX) {
                return raise_msg(it, "IndexError", "an index can only have a single ellipsis ('...')");
            }
            dots = i;
        } else {
            given++;
        }
    }
    if (given > t->ndim) {
        return raise_msg(it, "IndexError", "%u indices for a tensor of %u dimensions: shape %s", given, t->ndim,
                         dims_text(it, t->shape, t->ndim));
    }
    index_state s = {derive(it, t), 0};
    s.n->ndim = 0;
    uint32_t d = 0;
    vslice all = {VNONE, VNONE, VNONE};
    value whole = VPTR(V_SLICE, &all);
    for (uint32_t i = 0; i < n || d < t->ndim; i++) {
        uint32_t fill = i >= n ? t->ndim - d : k[i].tag == V_ELLIPSIS ? t->ndim - given : 0;
        if (i < n && k[i].tag != V_ELLIPSIS) {
            if (!index_one(it, t, d++, k[i], &s)) {
                return VERR;
            }
            continue;
        }
        for (uint32_t j = 0; j < fill; j++) {
            if (!index_one(it, t, d++, whole, &s)) {
                return VERR;
            }
        }
    }
    if (s.nd == 0) {
        keep(&s, 1, 1);
    }
    s.n->ndim = (uint8_t)s.nd;
    for (uint32_t i = s.nd; i < t->ndim && i < IR_MAX_DIMS; i++) {
        s.n->shape[i] = 0;
        s.n->strides[i] = 0;
    }
    return wrap(s.n);
}

// ---- methods

static bool int_list(interp *it, value v, int64_t *out, uint32_t *n, const char *what)
{
    uint32_t m;
    if (v.tag == V_INT) {
        out[0] = v.u.i;
        *n = 1;
        return true;
    }
    if (v.tag != V_TUPLE && v.tag != V_LIST) {
        type_error(it, "%s is a tuple of integers, got %s", what, type_name(it, v));
        return false;
    }
    value *at = items_of(it, v, &m);
    if (!at) {
        return false;
    }
    if (m > IR_MAX_DIMS) {
        value_error(it, "%s has %u members; a tensor has at most %d dimensions", what, m, IR_MAX_DIMS);
        return false;
    }
    for (uint32_t i = 0; i < m; i++) {
        if (!as_index(it, at[i], &out[i])) {
            return false;
        }
    }
    *n = m;
    return true;
}

static bool dim_of(interp *it, const vtensor *t, value v, uint32_t extra, uint32_t *out)
{
    int64_t d;
    if (!as_index(it, v, &d)) {
        return false;
    }
    int64_t n = t->ndim + extra;
    d += d < 0 ? n : 0;
    if (d < 0 || d >= n) {
        raise_msg(it, "IndexError", "dimension %lld is out of range for %s", (long long)v.u.i, dims_text(it, t->shape, t->ndim));
        return false;
    }
    *out = (uint32_t)d;
    return true;
}

static vtensor *self_of(interp *it)
{
    return it->native_self.u.tensor;
}

static value invalid(interp *it, const char *text)
{
    return raise_msg(it, "NkiValidationError", "%s", text);
}

static value m_slice(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"dim", "start", "end", "step"};
    value p[4];
    uint32_t d;
    int64_t lo, hi, step = 1;
    if (!bind_native(it, "slice", a, params, 4, 3, p) || !dim_of(it, t, p[0], 0, &d) || !as_index(it, p[1], &lo) ||
        !as_index(it, p[2], &hi) || (p[3].tag != V_UNDEF && !as_index(it, p[3], &step))) {
        return VERR;
    }
    if (d == 0 && t->fixed_rows) {
        return invalid(it, "the dimension that is indexed at run time cannot be sliced");
    }
    index_state s = {derive(it, t), d};
    if (!index_slice(it, t, d, lo, hi, step, &s)) {
        return VERR;
    }
    return wrap(s.n);
}

static void drop_dim(vtensor *n, uint32_t d)
{
    for (uint32_t i = d; i + 1 < n->ndim; i++) {
        n->shape[i] = n->shape[i + 1];
        n->strides[i] = n->strides[i + 1];
    }
    n->ndim--;
}

static void insert_dim(vtensor *n, uint32_t d, uint32_t size, int64_t stride)
{
    for (uint32_t i = n->ndim; i > d; i--) {
        n->shape[i] = n->shape[i - 1];
        n->strides[i] = n->strides[i - 1];
    }
    n->shape[d] = size;
    n->strides[d] = stride;
    n->ndim++;
}

static value m_select(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"dim", "index"};
    value p[2];
    uint32_t d;
    if (!bind_native(it, "select", a, params, 2, 2, p) || !dim_of(it, t, p[0], 0, &d)) {
        return VERR;
    }
    vtensor *n = derive(it, t);
    if (p[1].tag == V_TENSOR || p[1].tag == V_REG) {
        if (on_chip(t) && d == 0) {
            return invalid(it, "select: the partition dimension cannot be selected at run time");
        }
        if (!dyn_of(it, p[1], t->strides[d], t, t->shape[d], DYN_SCALAR, &n->dyn)) {
            return VERR;
        }
        drop_dim(n, d);
        return wrap(n);
    }
    int64_t i;
    if (!as_index(it, p[1], &i)) {
        return VERR;
    }
    if (i < 0 || i >= t->shape[d]) {
        return bad_index(it, t, d, i);
    }
    n->offset += i * t->strides[d];
    if (on_chip(t) && d == 0) {
        n->shape[0] = 1;
    } else {
        drop_dim(n, d);
    }
    return wrap(n);
}

static value m_vector_select(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"dim", "vector_offset"};
    value p[2];
    uint32_t d;
    if (!bind_native(it, "vector_select", a, params, 2, 2, p) || !dim_of(it, t, p[0], 0, &d)) {
        return VERR;
    }
    if (d != 0 || on_chip(t)) {
        return invalid(it, "vector_select works on dimension 0 of a tensor in HBM");
    }
    if (p[1].tag != V_TENSOR) {
        return type_error(it, "vector_select: vector_offset is a (P, 1) tensor, got %s", type_name(it, p[1]));
    }
    vtensor *n = derive(it, t);
    if (!dyn_of(it, p[1], t->strides[0], t, t->shape[0], DYN_VECTOR, &n->dyn)) {
        return VERR;
    }
    n->shape[0] = p[1].u.tensor->shape[0];
    n->fixed_rows = true;
    return wrap(n);
}

static value m_permute(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"dims"};
    value p[1];
    int64_t dims[IR_MAX_DIMS];
    uint32_t n;
    args packed = *a;
    value all;
    if (a->n > 1) {  // permute(0, 2, 1)
        all = v_tuple(it, a->at, a->n);
        packed = (args){&all, 1, 0, NULL};
    }
    if (!bind_native(it, "permute", &packed, params, 1, 1, p) || !int_list(it, p[0], dims, &n, "permute: dims")) {
        return VERR;
    }
    unsigned seen = 0;
    bool ok = n == t->ndim;
    for (uint32_t i = 0; i < n && ok; i++) {
        dims[i] += dims[i] < 0 ? t->ndim : 0;
        ok = dims[i] >= 0 && dims[i] < t->ndim && !(seen >> dims[i] & 1);
        seen |= ok ? 1u << dims[i] : 0;
    }
    if (!ok) {
        return value_error(it, "permute: dims must be a permutation of 0..%u", t->ndim - 1u);
    }
    if ((on_chip(t) || t->fixed_rows) && n && dims[0] != 0) {
        return invalid(it, "permute: the partition dimension must stay first on chip");
    }
    vtensor *r = derive(it, t);
    for (uint32_t i = 0; i < n; i++) {
        r->shape[i] = t->shape[dims[i]];
        r->strides[i] = t->strides[dims[i]];
    }
    return wrap(r);
}

static value m_broadcast(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"dim", "size"};
    value p[2];
    uint32_t d;
    int64_t size;
    if (!bind_native(it, "broadcast", a, params, 2, 2, p) || !dim_of(it, t, p[0], 0, &d) || !as_index(it, p[1], &size)) {
        return VERR;
    }
    if (t->shape[d] != 1) {
        return raise_msg(it, "NkiValidationError", "broadcast: dimension %u has size %u, only 1 can be broadcast", d, t->shape[d]);
    }
    if (on_chip(t) && d == 0 && size != 1) {
        return invalid(it, "broadcast: the partition dimension cannot be broadcast on chip");
    }
    if (size < 1 || size > UINT32_MAX) {
        return value_error(it, "broadcast: size %lld is not positive", (long long)size);
    }
    vtensor *n = derive(it, t);
    n->shape[d] = (uint32_t)size;
    n->strides[d] = 0;
    return wrap(n);
}

// Partition step 0: only a DMA can read it.
static value m_partition_broadcast(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    int64_t size;
    if (a->n != 1 || !as_index(it, a->at[0], &size)) {
        return type_error(it, "partition_broadcast() takes a size");
    }
    if (t->ndim == 0 || t->shape[0] != 1 || size < 1 || size > 128) {
        return value_error(it, "partition_broadcast needs one partition and a size of 1..128");
    }
    vtensor *n = derive(it, t);
    n->shape[0] = (uint32_t)size;
    n->strides[0] = 0;
    return wrap(n);
}

static value m_expand_dim(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"dim"};
    value p[1];
    uint32_t d;
    if (!bind_native(it, "expand_dim", a, params, 1, 1, p) || !dim_of(it, t, p[0], 1, &d)) {
        return VERR;
    }
    if ((on_chip(t) || t->fixed_rows) && d == 0) {
        return invalid(it, "expand_dim: the partition dimension must stay first");
    }
    if (t->ndim == IR_MAX_DIMS) {
        return value_error(it, "a tensor has at most %d dimensions", IR_MAX_DIMS);
    }
    vtensor *n = derive(it, t);
    insert_dim(n, d, 1, d < t->ndim ? t->strides[d] * (int64_t)t->shape[d] : 1);
    return wrap(n);
}

static value m_squeeze_dim(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"dim"};
    value p[1];
    uint32_t d;
    if (!bind_native(it, "squeeze_dim", a, params, 1, 1, p) || !dim_of(it, t, p[0], 0, &d)) {
        return VERR;
    }
    if (t->shape[d] != 1) {
        return raise_msg(it, "NkiValidationError", "squeeze_dim: dimension %u has size %u, not 1", d, t->shape[d]);
    }
    if ((on_chip(t) || t->fixed_rows) && d == 0) {
        return invalid(it, "squeeze_dim: the partition dimension must stay");
    }
    vtensor *n = derive(it, t);
    drop_dim(n, d);
    return wrap(n);
}

// One -1 stands for what is left of total.
static bool infer(interp *it, int64_t *shape, uint32_t n, uint64_t total, const char *what)
{
    int64_t known = 1, hole = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (shape[i] == -1 && hole < 0) {
            hole = i;
        } else if (shape[i] < 1 || shape[i] > UINT32_MAX || __builtin_mul_overflow(known, shape[i], &known)) {
            value_error(it, "%s: size %lld is not allowed", what, (long long)shape[i]);
            return false;
        }
    }
    if (hole >= 0) {
        if (total % (uint64_t)known) {
            value_error(it, "%s: %llu elements do not divide into groups of %lld", what, (unsigned long long)total, (long long)known);
            return false;
        }
        shape[hole] = (int64_t)(total / (uint64_t)known);
        known *= shape[hole];
    }
    if ((uint64_t)known != total) {
        textbuf t;
        text_init(&t, it->mem);
        for (uint32_t i = 0; i < n; i++) {
            text_printf(&t, "%s%lld", i ? ", " : "", (long long)shape[i]);
        }
        value_error(it, "%s: [%s] has %lld elements, %llu are needed", what, t.at, (long long)known, (unsigned long long)total);
        return false;
    }
    return true;
}

static value split_dim(interp *it, const vtensor *t, uint32_t d, const int64_t *shape, uint32_t n)
{
    if (t->ndim - 1 + n > IR_MAX_DIMS) {
        return value_error(it, "a tensor has at most %d dimensions", IR_MAX_DIMS);
    }
    if ((on_chip(t) || t->fixed_rows) && d == 0 && !(n == 1 || shape[0] == t->shape[0])) {
        return invalid(it, "reshape_dim: the partition dimension cannot be split on chip");
    }
    vtensor *r = derive(it, t);
    int64_t stride = t->strides[d];
    drop_dim(r, d);
    for (uint32_t i = n; i-- > 0;) {
        insert_dim(r, d, (uint32_t)shape[i], stride);
        stride *= shape[i];
    }
    if (d == 0 && (on_chip(t) || t->fixed_rows) && n > 1) {
        r->strides[0] = t->strides[0];
    }
    return wrap(r);
}

static value m_reshape_dim(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"dim", "shape"};
    value p[2];
    uint32_t d, n;
    int64_t shape[IR_MAX_DIMS];
    if (!bind_native(it, "reshape_dim", a, params, 2, 2, p) || !dim_of(it, t, p[0], 0, &d) ||
        !int_list(it, p[1], shape, &n, "reshape_dim: shape") || !infer(it, shape, n, t->shape[d], "reshape_dim")) {
        return VERR;
    }
    return split_dim(it, t, d, shape, n);
}

static value flatten(interp *it, const vtensor *t, uint32_t lo, uint32_t hi)
{
    vtensor *r = derive(it, t);
    if (on_chip(t) && lo == 0 && hi > 0 && t->shape[0] != 1) {
        return invalid(it, "flatten_dims: the partition dimension cannot be merged on chip");
    }
    // Size-1 dimensions join anything.
    uint64_t n = 1;
    int64_t stride = 0;
    bool have = false;
    for (uint32_t k = hi + 1; k-- > lo;) {
        if (t->shape[k] == 1) {
            continue;
        }
        if (have && t->strides[k] != stride * (int64_t)n) {
            return raise_msg(it, "NkiValidationError", "flatten_dims: dimension %u is not contiguous with the next (stride %lld, %lld expected)",
                             k, (long long)t->strides[k], (long long)(stride * (int64_t)n));
        }
        if (!have) {
            stride = t->strides[k];
            have = true;
        }
        n *= t->shape[k];
    }
    if (!have) {
        stride = t->strides[hi];
    }
    for (uint32_t k = lo; k < hi; k++) {
        drop_dim(r, lo);
    }
    r->shape[lo] = (uint32_t)n;
    r->strides[lo] = on_chip(t) && lo == 0 ? t->row : stride;
    return wrap(r);
}

static value m_flatten_dims(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"start_dim", "end_dim"};
    value p[2];
    uint32_t lo, hi;
    if (!bind_native(it, "flatten_dims", a, params, 2, 2, p) || !dim_of(it, t, p[0], 0, &lo) || !dim_of(it, t, p[1], 0, &hi)) {
        return VERR;
    }
    if (lo > hi) {
        return value_error(it, "flatten_dims: start_dim %u is after end_dim %u", lo, hi);
    }
    return flatten(it, t, lo, hi);
}

static value reshape_to(interp *it, const vtensor *t, const int64_t *shape, uint32_t n)
{
    // Merge old dimensions that are contiguous, then split each group.
    uint64_t gsize[IR_MAX_DIMS];
    int64_t gstride[IR_MAX_DIMS];
    uint32_t g = 0, first = 0;
    vtensor *r = derive(it, t);
    if (on_chip(t) && t->ndim) {
        if (n == 0 || shape[0] != t->shape[0]) {
            if (t->shape[0] == 1 && n && shape[0] != 1) {
                return raise_msg(it, "NkiValidationError",
                                 "reshape: %s would spread one partition over %lld; use a DMA copy", dims_text(it, t->shape, t->ndim),
                                 (long long)shape[0]);
            }
            return raise_msg(it, "NkiValidationError", "reshape: the partition dimension is %u and must stay, got %lld", t->shape[0],
                             n ? (long long)shape[0] : 0);
        }
        first = 1;
        r->shape[0] = t->shape[0];
        r->strides[0] = t->strides[0];
    }
    for (uint32_t d = first; d < t->ndim; d++) {
        if (t->shape[d] == 1) {
            continue;
        }
        if (g && gstride[g - 1] == (int64_t)t->shape[d] * t->strides[d]) {
            gsize[g - 1] *= t->shape[d];
            gstride[g - 1] = t->strides[d];
        } else {
            gsize[g] = t->shape[d];
            gstride[g++] = t->strides[d];
        }
    }
    uint64_t left = g ? gsize[g - 1] : 1;
    int64_t stride = g ? gstride[g - 1] : 1;
    for (uint32_t d = n; d-- > first;) {
        r->shape[d] = (uint32_t)shape[d];
        if (shape[d] == 1) {
            r->strides[d] = stride;
            continue;
        }
        if (left == 1 && g > 1) {
            g--;
            left = gsize[g - 1];
            stride = gstride[g - 1];
        }
        if (left % (uint64_t)shape[d]) {
            return raise_msg(it, "NkiValidationError", "reshape of %s: the layout does not allow it without moving data",
                             dims_text(it, t->shape, t->ndim));
        }
        r->strides[d] = stride;
        left /= (uint64_t)shape[d];
        stride *= shape[d];
    }
    r->ndim = (uint8_t)n;
    return wrap(r);
}

static value m_reshape(interp *it, const args *a)
{
    vtensor *t = self_of(it);
    static const char *const params[] = {"shape"};
    value p[1];
    int64_t shape[IR_MAX_DIMS];
    uint32_t n;
    args packed = *a;
    value all;
    if (a->n > 1) {  // reshape(2, 3)
        all = v_tuple(it, a->at, a->n);
        packed = (args){&all, 1, 0, NULL};
    }
    if (!bind_native(it, "reshape", &packed, params, 1, 1, p) || !int_list(it, p[0], shape, &n, "reshape: shape") ||
        !infer(it, shape, n, count(t), "reshape")) {
        return VERR;
    }
    bool column = on_chip(t) && t->buffer == BUF_SBUF && t->dyn == IR_NONE && count(t) == t->shape[0];
    if (column && n >= 2 && shape[0] == 1 && t->shape[0] > 1) {
        value m = import_module(it, it->top->module, 0, intern_cstr(it->names, "nki.language._move"), true);
        value f = IS_ERR(m) ? m : get_attr(it, m, intern_cstr(it->names, "column_to_row"));
        value dims[IR_MAX_DIMS], at[2] = {it->native_self};
        for (uint32_t i = 0; i < n; i++) {
            dims[i] = VINT(shape[i]);
        }
        at[1] = v_tuple(it, dims, n);
        return IS_ERR(f) ? f : call_values(it, f, at, 2);
    }
    return reshape_to(it, t, shape, n);
}

// Names of one member of a rearrange pattern.
static bool group_of(interp *it, value v, value **at, uint32_t *n, value *one)
{
    if (v.tag == V_STR) {
        *one = v;
        *at = one;
        *n = 1;
        return true;
    }
    if (v.tag != V_TUPLE && v.tag != V_LIST) {
        type_error(it, "rearrange: a pattern holds names and tuples of names");
        return false;
    }
    *at = items_of(it, v, n);
    return *at != NULL;
}

static value m_rearrange(interp *it, const args *a)
{
    value cur = it->native_self;
    static const char *const params[] = {"src_pattern", "dst_pattern", "fixed_sizes"};
    value p[3];
    if (!bind_native(it, "rearrange", a, params, 3, 2, p)) {
        return VERR;
    }
    uint32_t ns, nd;
    value *src = items_of(it, p[0], &ns), *dst = src ? items_of(it, p[1], &nd) : NULL;
    if (!dst) {
        return VERR;
    }
    const vtensor *t = cur.u.tensor;
    if (ns != t->ndim) {
        return value_error(it, "rearrange: the source pattern has %u members, the tensor %u dimensions", ns, t->ndim);
    }
    value names[IR_MAX_DIMS];
    uint32_t nn = 0;
    for (uint32_t d = 0; d < ns; d++) {
        value *g, one;
        uint32_t n, hole = UINT32_MAX;
        int64_t shape[IR_MAX_DIMS], known = 1;
        if (!group_of(it, src[d], &g, &n, &one)) {
            return VERR;
        }
        if (nn + n > IR_MAX_DIMS) {
            return value_error(it, "rearrange: more than %d dimensions", IR_MAX_DIMS);
        }
        for (uint32_t i = 0; i < n; i++) {
            value s = p[2].tag == V_DICT ? dict_get(it, p[2].u.dict, g[i]) : VUNDEF;
            if (s.tag == V_INT) {
                shape[i] = s.u.i;
                known *= s.u.i;
            } else if (hole == UINT32_MAX) {
                hole = i;
            } else {
                return value_error(it, "rearrange: the sizes of two names in one group are not known");
            }
            names[nn + i] = g[i];
        }
        uint32_t size = t->shape[d];
        if (hole != UINT32_MAX) {
            shape[hole] = known > 0 && size % known == 0 ? size / known : 0;
            known *= shape[hole];
        }
        if (known != size) {
            return value_error(it, "rearrange: group %u does not multiply to the dimension's size %u", d, size);
        }
        cur = split_dim(it, cur.u.tensor, nn, shape, n);
        if (IS_ERR(cur)) {
            return cur;
        }
        nn += n;
    }
    value perm[IR_MAX_DIMS];
    uint32_t np = 0;
    for (uint32_t d = 0; d < nd; d++) {
        value *g, one;
        uint32_t n;
        if (!group_of(it, dst[d], &g, &n, &one)) {
            return VERR;
        }
        for (uint32_t i = 0; i < n; i++) {
            uint32_t k = 0;
            while (k < nn && equal(it, names[k], g[i]) != 1) {
                k++;
            }
            if (k == nn || np == nn) {
                return value_error(it, "rearrange: the patterns must hold the same names");
            }
            perm[np++] = VINT(k);
        }
    }
    if (np != nn) {
        return value_error(it, "rearrange: the patterns must hold the same names");
    }
    value dims = v_tuple(it, perm, np);
    args pa = {&dims, 1, 0, NULL};
    it->native_self = cur;
    cur = m_permute(it, &pa);
    uint32_t at = 0;
    for (uint32_t d = 0; d < nd && !IS_ERR(cur); d++) {
        value *g, one;
        uint32_t n;
        if (!group_of(it, dst[d], &g, &n, &one)) {
            return VERR;
        }
        if (n > 1) {
            cur = flatten(it, cur.u.tensor, at, at + n - 1);
        }
        at++;
    }
    return cur;
}

static value bitcast(interp *it, const vtensor *t, dtype d)
{
    int64_t from = dtype_size((dtype)t->dtype), to = dtype_size(d);
    vtensor *n = derive(it, t);
    n->dtype = (uint8_t)d;
    if (from == to) {
        return wrap(n);
    }
    if (t->dyn != IR_NONE) {
        return invalid(it, "view: a dynamic view cannot change the element size");
    }
    uint32_t last = t->ndim ? t->ndim - 1u : 0;
    if (t->ndim == 0 || (t->strides[last] != 1 && t->shape[last] != 1)) {
        return invalid(it, "view: the last dimension must be contiguous to change the element size");
    }
    if (from > to) {
        int64_t r = from / to;
        n->shape[last] = (uint32_t)(t->shape[last] * r);
        n->offset = t->offset * r;
        n->row = t->row * r;
        for (uint32_t i = 0; i < last; i++) {
            n->strides[i] = t->strides[i] * r;
        }
    } else {
        int64_t r = to / from;
        bool ok = t->shape[last] % r == 0 && t->offset % r == 0;
        for (uint32_t i = 0; i < last; i++) {
            ok &= t->strides[i] % r == 0 || t->shape[i] == 1;
            n->strides[i] = t->strides[i] / r;
        }
        if (!ok || (on_chip(t) && t->row % r)) {
            return raise_msg(it, "NkiValidationError", "view as %s: the last dimension %u (offset %lld) is not divisible by %lld",
                             dtype_name(d), t->shape[last], (long long)t->offset, (long long)r);
        }
        n->shape[last] = (uint32_t)(t->shape[last] / r);
        n->offset = t->offset / r;
        n->row = t->row / r;
    }
    n->strides[last] = 1;
    return wrap(n);
}

static value m_view(interp *it, const args *a)
{
    const vtensor *t = self_of(it);
    static const char *const params[] = {"dtype", "shape"};
    value p[2];
    dtype d;
    if (!bind_native(it, "view", a, params, 2, 1, p) || !dtype_of_value(it, p[0], &d)) {
        return VERR;
    }
    value v = bitcast(it, t, d);
    if (!IS_ERR(v) && p[1].tag != V_UNDEF && p[1].tag != V_NONE) {
        args s = {&p[1], 1, 0, NULL};
        it->native_self = v;
        return m_reshape(it, &s);
    }
    return v;
}

static value m_ap(interp *it, const args *a)
{
    const vtensor *t = self_of(it);
    static const char *const params[] = {"pattern", "offset", "scalar_offset", "vector_offset", "indirect_dim", "dtype"};
    value p[6];
    if (!bind_native(it, "ap", a, params, 6, 1, p)) {
        return VERR;
    }
    dtype d = (dtype)t->dtype;
    if (p[5].tag != V_UNDEF && p[5].tag != V_NONE && !dtype_of_value(it, p[5], &d)) {
        return VERR;
    }
    vtensor *n = derive(it, t);
    int64_t from = dtype_size((dtype)t->dtype), to = dtype_size(d);
    n->dtype = (uint8_t)d;
    n->row = t->row * from / to;
    n->offset = t->offset * from / to;
    uint32_t m;
    value *pairs = p[0].tag == V_LIST || p[0].tag == V_TUPLE ? items_of(it, p[0], &m) : NULL;
    if (!pairs) {
        return type_error(it, "ap: pattern is a list of [step, count] pairs, got %s", type_name(it, p[0]));
    }
    if (m == 0 || m > IR_MAX_DIMS) {
        return value_error(it, "ap: pattern has %u pairs; 1 to %d are allowed", m, IR_MAX_DIMS);
    }
    for (uint32_t i = 0; i < m; i++) {
        int64_t q[IR_MAX_DIMS];
        uint32_t k = 0;
        if (!int_list(it, pairs[i], q, &k, "ap: a member of pattern")) {
            return VERR;
        }
        if (k != 2 || q[1] < 1 || q[1] > UINT32_MAX) {
            return value_error(it, "ap: pair %u is not [step, count] with a positive count", i);
        }
        n->strides[i] = q[0];
        n->shape[i] = (uint32_t)q[1];
    }
    n->ndim = (uint8_t)m;
    int64_t off;
    if (p[1].tag != V_UNDEF && p[1].tag != V_NONE) {
        if (p[1].tag == V_REG || p[1].tag == V_TENSOR) {
            return type_error(it, "ap: offset is a compile-time integer; pass a register or tensor as scalar_offset");
        }
        if (!as_index(it, p[1], &off)) {
            return VERR;
        }
        n->offset += off;
    }
    bool scalar = p[2].tag != V_UNDEF && p[2].tag != V_NONE, vec = p[3].tag != V_UNDEF && p[3].tag != V_NONE;
    if (scalar && vec) {
        return value_error(it, "ap: scalar_offset and vector_offset exclude each other");
    }
    if (scalar || vec) {
        int64_t dim = 0, step = 1;
        if (p[4].tag != V_UNDEF && !as_index(it, p[4], &dim)) {
            return VERR;
        }
        if (dim < 0 || dim >= t->ndim || (vec && dim != 0)) {
            return value_error(it, "ap: indirect_dim %lld is not allowed here", (long long)dim);
        }
        for (uint32_t i = (uint32_t)dim + 1; i < t->ndim; i++) {
            step *= t->shape[i];
        }
        if (on_chip(t) && vec) {
            return invalid(it, "ap: vector_offset indexes a tensor in HBM");
        }
        n->dyn = IR_NONE;
        step = step * from / to;
        vtensor probe = *t;
        probe.row = n->row;
        int64_t at;
        if (scalar && (p[2].tag == V_INT || p[2].tag == V_BOOL)) {
            if (!as_index(it, p[2], &at)) {
                return VERR;
            }
            n->offset += at * step;
        } else if (!dyn_of(it, scalar ? p[2] : p[3], step, &probe, t->shape[dim], vec ? DYN_VECTOR : DYN_SCALAR, &n->dyn)) {
            return VERR;
        }
        n->fixed_rows = vec;
    }
    int64_t own = from; // elements of one partition as the shape of the view counts them
    for (uint32_t i = 1; i < t->ndim; i++) {
        own = own * t->shape[i];
    }
    if (on_chip(t) && n->strides[0] * to == own) {
        n->strides[0] = n->row; // consecutive partitions, written for a tensor of the view's shape
    }
    if (on_chip(t) && n->shape[0] > 1 && n->strides[0] != n->row) {
        return raise_msg(it, "NkiValidationError",
                         "ap: the partition step is %lld; on chip it must be %lld, the elements of one partition",
                         (long long)n->strides[0], (long long)n->row);
    }
    return in_bounds(it, n) ? wrap(n) : VERR;
}

static value m_indirect(interp *it, const args *a)
{
    const vtensor *t = self_of(it);
    static const char *const params[] = {"index", "num_elem"};
    value p[2];
    if (!bind_native(it, "indirect", a, params, 2, 1, p)) {
        return VERR;
    }
    if (it->o->target->gen < 4) {
        return raise_msg(it, "NkiValidationError", "indirect is available from NeuronCore-v4 (trn3) only; the target is %s",
                         it->o->target->name);
    }
    if (p[0].tag != V_TENSOR || !on_chip(t)) {
        return type_error(it, "indirect: index is a tensor in SBUF, and the tensor is on chip");
    }
    int64_t n = (int64_t)count(p[0].u.tensor);
    if (p[1].tag != V_UNDEF && p[1].tag != V_NONE && !as_index(it, p[1], &n)) {
        return VERR;
    }
    vtensor *r = derive(it, t);
    ir_dyn d = {.kind = DYN_INDIRECT, .step = 1, .num_elem = (uint32_t)n};
    if (!tensor_view(it, p[0].u.tensor, &d.src)) {
        return VERR;
    }
    r->dyn = ir_dyn_add(it->p, d);
    r->ndim = 2;
    r->shape[1] = (uint32_t)n;
    r->strides[1] = 0;
    return wrap(r);
}

static value m_is_contiguous(interp *it, const args *a)
{
    (void)a;
    const vtensor *t = self_of(it);
    int64_t want = 1;
    for (uint32_t d = t->ndim; d-- > (on_chip(t) ? 1u : 0u);) {
        if (t->shape[d] != 1 && t->strides[d] != want) {
            return VBOOL(false);
        }
        want *= t->shape[d];
    }
    return VBOOL(true);
}

static value m_get_pattern(interp *it, const args *a)
{
    (void)a;
    const vtensor *t = self_of(it);
    value l = v_list(it, NULL, 0);
    for (uint32_t d = 0; d < t->ndim; d++) {
        list_push(it, l.u.list, v_list(it, (value[]){VINT(t->strides[d]), VINT(t->shape[d])}, 2));
    }
    return l;
}

static value m_is_indirect(interp *it, const args *a)
{
    (void)a;
    return VBOOL(self_of(it)->dyn != IR_NONE);
}

static value library_method(interp *it, const char *fn, value self, const args *a)
{
    value m = import_module(it, it->top->module, 0, intern_cstr(it->names, "nki.language"), true);
    value f = IS_ERR(m) ? m : get_attr(it, m, intern_cstr(it->names, fn));
    if (IS_ERR(f)) {
        return f;
    }
    value at[8] = {self};
    if (a->n > 7) {
        return type_error(it, "%s() takes fewer arguments", fn);
    }
    memcpy(at + 1, a->at, a->n * sizeof *at);
    return call_values(it, f, at, a->n + 1);
}

static value m_astype(interp *it, const args *a)
{
    return library_method(it, "copy", it->native_self, a);
}

static value m_broadcast_to(interp *it, const args *a)
{
    return library_method(it, "broadcast_to", it->native_self, a);
}

static value shape_tuple(interp *it, const vtensor *t)
{
    value at[IR_MAX_DIMS];
    for (uint32_t d = 0; d < t->ndim; d++) {
        at[d] = VINT(t->shape[d]);
    }
    return v_tuple(it, at, t->ndim);
}

value tensor_attr(interp *it, value tv, sym id)
{
    const vtensor *t = tv.u.tensor;
    if (id == N(shape)) {
        return shape_tuple(it, t);
    }
    if (id == N(dtype)) {
        return VID(V_DTYPE, t->dtype);
    }
    if (id == N(buffer)) {
        return VID(V_BUFFER, t->buffer);
    }
    if (id == N(ndim)) {
        return VINT(t->ndim);
    }
    if (id == N(size)) {
        return VINT((int64_t)count(t));
    }
    if (id == N(offset)) {
        return VINT(t->offset);
    }
    if (id == N(name)) {
        return v_cstr(it, ir_text(it->p, it->p->tensors.at[t->id].name));
    }
    if (id == N(strides)) {
        value at[IR_MAX_DIMS];
        for (uint32_t d = 0; d < t->ndim; d++) {
            at[d] = VINT(t->strides[d]);
        }
        return v_tuple(it, at, t->ndim);
    }
    if (id == N(itemsize)) {
        return VINT(dtype_size((dtype)t->dtype));
    }
    if (id == N(address)) {
        const ir_tensor *s = &it->p->tensors.at[t->id];
        return s->manual ? v_tuple(it, (value[]){VINT(s->addr_part), VINT((int64_t)s->addr_bytes)}, 2) : VNONE;
    }
    static const struct {
        const char *name;
        native_fn fn;
    } methods[] = {
        {"ap", m_ap}, {"reshape", m_reshape}, {"slice", m_slice}, {"select", m_select}, {"permute", m_permute},
        {"broadcast", m_broadcast}, {"expand_dim", m_expand_dim}, {"squeeze_dim", m_squeeze_dim},
        {"reshape_dim", m_reshape_dim}, {"flatten_dims", m_flatten_dims}, {"rearrange", m_rearrange}, {"view", m_view},
        {"reinterpret_cast", m_view}, {"vector_select", m_vector_select}, {"indirect", m_indirect},
        {"is_contiguous", m_is_contiguous}, {"get_pattern", m_get_pattern}, {"is_indirect", m_is_indirect},
        {"partition_broadcast", m_partition_broadcast}, {"astype", m_astype}, {"broadcast_to", m_broadcast_to},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(methods[i].name, id->text) == 0) {
            vnative *n = NEW(it->mem, vnative);
            *n = (vnative){methods[i].name, methods[i].fn, tv};
            return (value){.tag = V_NATIVE, .u.native = n};
        }
    }
    if (strcmp(id->text, "T") == 0 && t->ndim == 2 && !on_chip(t)) {
        value dims = v_tuple(it, (value[]){VINT(1), VINT(0)}, 2);
        args a = {&dims, 1, 0, NULL};
        it->native_self = tv;
        return m_permute(it, &a);
    }
    return VUNDEF;
}
