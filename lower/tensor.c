// Tensors as values: storage and view, bounds, indexing.
#include "lower/tensor.h"

#include <string.h>

const char *tensor_dims_text(interp *it, const uint32_t *shape, uint32_t n)
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

bool tensor_on_chip(const vtensor *t)
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

vtensor *tensor_derive(interp *it, const vtensor *t)
{
    vtensor *n = NEW(it->mem, vtensor);
    *n = *t;
    n->view = IR_NONE;
    return n;
}

value tensor_wrap(vtensor *t)
{
    return (value){.tag = V_TENSOR, .u.tensor = t};
}

uint64_t tensor_count(const vtensor *t)
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
    return (int64_t)(tensor_on_chip(t) ? s->size_bytes / size * s->partitions
                                       : s->size_bytes / size);
}

bool tensor_in_bounds(interp *it, const vtensor *t)
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
    if (t->dyn != IR_NONE && !tensor_on_chip(t)) {
        return true;  // checked when it runs
    }
    if (lo < 0 || hi >= total) {
        raise_msg(it, "IndexError",
                  "access pattern reaches element %lld%s, outside 0..%lld: the tensor is %s %s @%s",
                  (long long)(lo < 0 ? lo : hi), tensor_label(it, t), (long long)total - 1,
                  tensor_dims_text(it, s->shape, s->ndim), dtype_name((dtype)s->dtype),
                  buffer_name((buffer_kind)s->buffer));
        return false;
    }
    if (tensor_on_chip(t) && t->row) {
        int64_t free = t->offset % t->row;
        if (free + free_lo < 0 || free + free_hi >= t->row) {
            raise_msg(it, "IndexError",
                      "access pattern leaves its partition: free elements %lld..%lld%s, a "
                      "partition holds %lld",
                      (long long)(free + free_lo), (long long)(free + free_hi), tensor_label(it, t),
                      (long long)t->row);
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
    if (tensor_on_chip(t)) {
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

value tensor_bad_index(interp *it, const vtensor *t, uint32_t d, int64_t i)
{
    return raise_msg(
        it, "IndexError", "index %lld is out of bounds for dimension %u of size %u%s: shape %s",
        (long long)i, d, t->shape[d], tensor_label(it, t), tensor_dims_text(it, t->shape, t->ndim));
}

bool tensor_dyn(interp *it, value src, int64_t step, const vtensor *t, uint32_t limit,
                dyn_kind vector, uint32_t *out)
{
    ir_dyn d = {.kind = DYN_REG, .step = step, .limit = limit};
    if (src.tag == V_REG) {
        d.src = src.u.reg->id;
    } else if (src.tag == V_TENSOR) {
        d.kind = (uint8_t)vector;
        if (vector == DYN_SCALAR && tensor_count(src.u.tensor) != 1) {
            value_error(it, "a scalar offset has one element, got shape %s",
                        tensor_dims_text(it, src.u.tensor->shape, src.u.tensor->ndim));
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
        raise_msg(it, "NkiValidationError",
                  "a view has at most one dynamic part: it was given one already");
        return false;
    }
    if (tensor_on_chip(t) && t->row && step % t->row == 0) {
        d.partition = 1;
        d.step = step / t->row;
    }
    *out = ir_dyn_add(it->p, d);
    return true;
}

static void keep(index_state *s, uint32_t size, int64_t stride)
{
    s->n->shape[s->nd] = size;
    s->n->strides[s->nd++] = stride;
}

bool tensor_index_slice(interp *it, const vtensor *t, uint32_t d, int64_t a, int64_t b, int64_t c,
                        index_state *s)
{
    if (c < 1) {
        value_error(it, "slice step %lld is not positive", (long long)c);
        return false;
    }
    if (a == b) {
        value_error(
            it, "slice %lld:%lld of dimension %u is empty; a slice needs start < end (shape %s)",
            (long long)a, (long long)b, d, tensor_dims_text(it, t->shape, t->ndim));
        return false;
    }
    if (!(a >= 0 && a < b && b <= t->shape[d])) {
        raise_msg(it, "IndexError",
                  "slice %lld:%lld is out of bounds for dimension %u of size %u%s: shape %s",
                  (long long)a, (long long)b, d, t->shape[d], tensor_label(it, t),
                  tensor_dims_text(it, t->shape, t->ndim));
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
        return bound(it, k.u.slice->start, 0, size, &a) &&
               bound(it, k.u.slice->stop, size, size, &b) && bound(it, k.u.slice->step, 1, 0, &c) &&
               tensor_index_slice(it, t, d, a, b, c, s);
    case V_RANGE:
        return tensor_index_slice(it, t, d, k.u.range->start, k.u.range->stop, k.u.range->step, s);
    case V_DS:
        if (k.u.ds->start.tag == V_REG || k.u.ds->start.tag == V_TENSOR) {
            if (k.u.ds->size < 1 || k.u.ds->size > size) {
                raise_msg(it, "IndexError",
                          "nl.ds size %lld is out of bounds for dimension %u of size %lld",
                          (long long)k.u.ds->size, d, (long long)size);
                return false;
            }
            if (!tensor_dyn(it, k.u.ds->start, st, t, (uint32_t)size, DYN_SCALAR, &s->n->dyn)) {
                return false;
            }
            keep(s, (uint32_t)k.u.ds->size, st);
            return true;
        }
        return as_index(it, k.u.ds->start, &a) &&
               tensor_index_slice(it, t, d, a, a + k.u.ds->size, 1, s);
    case V_REG:
    case V_TENSOR:
        if (!tensor_dyn(it, k, st, t, (uint32_t)size, DYN_SCALAR, &s->n->dyn)) {
            return false;
        }
        break;
    case V_NONE:
        type_error(it, "None is not an index of a tensor; use expand_dim(dim)");
        return false;
    case V_FLOAT:
        type_error(it, "a tensor index is an integer, got float %g (use // for integer division)",
                   k.u.d);
        return false;
    default:
        if (!as_index(it, k, &a)) {
            it->exc = VUNDEF;
            type_error(it, "index of type '%s' is not supported", type_name(it, k));
            return false;
        }
        a += a < 0 ? size : 0;
        if (a < 0 || a >= size) {
            tensor_bad_index(it, t, d, a);
            return false;
        }
        s->n->offset += a * st;
        break;
    }
    // An integer drops the dimension, except the partition and what would leave fewer than two on
    // chip.
    if (tensor_on_chip(t) && (d == 0 || (d + 1 == t->ndim && s->nd < 2))) {
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
                return raise_msg(it, "IndexError",
                                 "an index can only have a single ellipsis ('...')");
            }
            dots = i;
        } else {
            given++;
        }
    }
    if (given > t->ndim) {
        return raise_msg(it, "IndexError", "%u indices for a tensor of %u dimensions: shape %s",
                         given, t->ndim, tensor_dims_text(it, t->shape, t->ndim));
    }
    index_state s = {tensor_derive(it, t), 0};
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
    return tensor_wrap(s.n);
}
