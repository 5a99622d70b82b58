// Attributes and methods of tensors. Every method is view algebra: no data moves.
#include "lower/tensor.h"

#include <string.h>

bool tensor_int_list(interp *it, value v, int64_t *out, uint32_t *n, const char *what)
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
        value_error(it, "%s has %u members; a tensor has at most %d dimensions", what, m,
                    IR_MAX_DIMS);
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

bool tensor_dim(interp *it, const vtensor *t, value v, uint32_t extra, uint32_t *out)
{
    int64_t d;
    if (!as_index(it, v, &d)) {
        return false;
    }
    int64_t n = t->ndim + extra;
    d += d < 0 ? n : 0;
    if (d < 0 || d >= n) {
        raise_msg(it, "IndexError", "dimension %lld is out of range for %s", (long long)v.u.i,
                  tensor_dims_text(it, t->shape, t->ndim));
        return false;
    }
    *out = (uint32_t)d;
    return true;
}

vtensor *tensor_self(interp *it)
{
    return it->native_self.u.tensor;
}

value tensor_invalid(interp *it, const char *text)
{
    return raise_msg(it, "NkiValidationError", "%s", text);
}

static value m_slice(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
    static const char *const params[] = {"dim", "start", "end", "step"};
    value p[4];
    uint32_t d;
    int64_t lo, hi, step = 1;
    if (!bind_native(it, "slice", a, params, 4, 3, p) || !tensor_dim(it, t, p[0], 0, &d) ||
        !as_index(it, p[1], &lo) || !as_index(it, p[2], &hi) ||
        (p[3].tag != V_UNDEF && !as_index(it, p[3], &step))) {
        return VERR;
    }
    if (d == 0 && t->fixed_rows) {
        return tensor_invalid(it, "the dimension that is indexed at run time cannot be sliced");
    }
    index_state s = {tensor_derive(it, t), d};
    if (!tensor_index_slice(it, t, d, lo, hi, step, &s)) {
        return VERR;
    }
    return tensor_wrap(s.n);
}

void tensor_drop_dim(vtensor *n, uint32_t d)
{
    for (uint32_t i = d; i + 1 < n->ndim; i++) {
        n->shape[i] = n->shape[i + 1];
        n->strides[i] = n->strides[i + 1];
    }
    n->ndim--;
}

void tensor_insert_dim(vtensor *n, uint32_t d, uint32_t size, int64_t stride)
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
    vtensor *t = tensor_self(it);
    static const char *const params[] = {"dim", "index"};
    value p[2];
    uint32_t d;
    if (!bind_native(it, "select", a, params, 2, 2, p) || !tensor_dim(it, t, p[0], 0, &d)) {
        return VERR;
    }
    vtensor *n = tensor_derive(it, t);
    if (p[1].tag == V_TENSOR || p[1].tag == V_REG) {
        if (tensor_on_chip(t) && d == 0) {
            return tensor_invalid(it,
                                  "select: the partition dimension cannot be selected at run time");
        }
        if (!tensor_dyn(it, p[1], t->strides[d], t, t->shape[d], DYN_SCALAR, &n->dyn)) {
            return VERR;
        }
        tensor_drop_dim(n, d);
        return tensor_wrap(n);
    }
    int64_t i;
    if (!as_index(it, p[1], &i)) {
        return VERR;
    }
    if (i < 0 || i >= t->shape[d]) {
        return tensor_bad_index(it, t, d, i);
    }
    n->offset += i * t->strides[d];
    if (tensor_on_chip(t) && d == 0) {
        n->shape[0] = 1;
    } else {
        tensor_drop_dim(n, d);
    }
    return tensor_wrap(n);
}

static value m_vector_select(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
    static const char *const params[] = {"dim", "vector_offset"};
    value p[2];
    uint32_t d;
    if (!bind_native(it, "vector_select", a, params, 2, 2, p) || !tensor_dim(it, t, p[0], 0, &d)) {
        return VERR;
    }
    if (d != 0 || tensor_on_chip(t)) {
        return tensor_invalid(it, "vector_select works on dimension 0 of a tensor in HBM");
    }
    if (p[1].tag != V_TENSOR) {
        return type_error(it, "vector_select: vector_offset is a (P, 1) tensor, got %s",
                          type_name(it, p[1]));
    }
    vtensor *n = tensor_derive(it, t);
    if (!tensor_dyn(it, p[1], t->strides[0], t, t->shape[0], DYN_VECTOR, &n->dyn)) {
        return VERR;
    }
    n->shape[0] = p[1].u.tensor->shape[0];
    n->fixed_rows = true;
    return tensor_wrap(n);
}

value tensor_permute(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
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
    if (!bind_native(it, "permute", &packed, params, 1, 1, p) ||
        !tensor_int_list(it, p[0], dims, &n, "permute: dims")) {
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
    if ((tensor_on_chip(t) || t->fixed_rows) && n && dims[0] != 0) {
        return tensor_invalid(it, "permute: the partition dimension must stay first on chip");
    }
    vtensor *r = tensor_derive(it, t);
    for (uint32_t i = 0; i < n; i++) {
        r->shape[i] = t->shape[dims[i]];
        r->strides[i] = t->strides[dims[i]];
    }
    return tensor_wrap(r);
}

static value m_broadcast(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
    static const char *const params[] = {"dim", "size"};
    value p[2];
    uint32_t d;
    int64_t size;
    if (!bind_native(it, "broadcast", a, params, 2, 2, p) || !tensor_dim(it, t, p[0], 0, &d) ||
        !as_index(it, p[1], &size)) {
        return VERR;
    }
    if (t->shape[d] != 1) {
        return raise_msg(it, "NkiValidationError",
                         "broadcast: dimension %u has size %u, only 1 can be broadcast", d,
                         t->shape[d]);
    }
    if (tensor_on_chip(t) && d == 0 && size != 1) {
        return tensor_invalid(it, "broadcast: the partition dimension cannot be broadcast on chip");
    }
    if (size < 1 || size > UINT32_MAX) {
        return value_error(it, "broadcast: size %lld is not positive", (long long)size);
    }
    vtensor *n = tensor_derive(it, t);
    n->shape[d] = (uint32_t)size;
    n->strides[d] = 0;
    return tensor_wrap(n);
}

// Partition step 0: only a DMA can read it.
static value m_partition_broadcast(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
    int64_t size;
    if (a->n != 1 || !as_index(it, a->at[0], &size)) {
        return type_error(it, "partition_broadcast() takes a size");
    }
    if (t->ndim == 0 || t->shape[0] != 1 || size < 1 || size > 128) {
        return value_error(it, "partition_broadcast needs one partition and a size of 1..128");
    }
    vtensor *n = tensor_derive(it, t);
    n->shape[0] = (uint32_t)size;
    n->strides[0] = 0;
    return tensor_wrap(n);
}

static value m_expand_dim(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
    static const char *const params[] = {"dim"};
    value p[1];
    uint32_t d;
    if (!bind_native(it, "expand_dim", a, params, 1, 1, p) || !tensor_dim(it, t, p[0], 1, &d)) {
        return VERR;
    }
    if ((tensor_on_chip(t) || t->fixed_rows) && d == 0) {
        return tensor_invalid(it, "expand_dim: the partition dimension must stay first");
    }
    if (t->ndim == IR_MAX_DIMS) {
        return value_error(it, "a tensor has at most %d dimensions", IR_MAX_DIMS);
    }
    vtensor *n = tensor_derive(it, t);
    tensor_insert_dim(n, d, 1, d < t->ndim ? t->strides[d] * (int64_t)t->shape[d] : 1);
    return tensor_wrap(n);
}

static value m_squeeze_dim(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
    static const char *const params[] = {"dim"};
    value p[1];
    uint32_t d;
    if (!bind_native(it, "squeeze_dim", a, params, 1, 1, p) || !tensor_dim(it, t, p[0], 0, &d)) {
        return VERR;
    }
    if (t->shape[d] != 1) {
        return raise_msg(it, "NkiValidationError", "squeeze_dim: dimension %u has size %u, not 1",
                         d, t->shape[d]);
    }
    if ((tensor_on_chip(t) || t->fixed_rows) && d == 0) {
        return tensor_invalid(it, "squeeze_dim: the partition dimension must stay");
    }
    vtensor *n = tensor_derive(it, t);
    tensor_drop_dim(n, d);
    return tensor_wrap(n);
}

static value bitcast(interp *it, const vtensor *t, dtype d)
{
    int64_t from = dtype_size((dtype)t->dtype), to = dtype_size(d);
    vtensor *n = tensor_derive(it, t);
    n->dtype = (uint8_t)d;
    if (from == to) {
        return tensor_wrap(n);
    }
    if (t->dyn != IR_NONE) {
        return tensor_invalid(it, "view: a dynamic view cannot change the element size");
    }
    uint32_t last = t->ndim ? t->ndim - 1u : 0;
    if (t->ndim == 0 || (t->strides[last] != 1 && t->shape[last] != 1)) {
        return tensor_invalid(
            it, "view: the last dimension must be contiguous to change the element size");
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
        if (!ok || (tensor_on_chip(t) && t->row % r)) {
            return raise_msg(
                it, "NkiValidationError",
                "view as %s: the last dimension %u (offset %lld) is not divisible by %lld",
                dtype_name(d), t->shape[last], (long long)t->offset, (long long)r);
        }
        n->shape[last] = (uint32_t)(t->shape[last] / r);
        n->offset = t->offset / r;
        n->row = t->row / r;
    }
    n->strides[last] = 1;
    return tensor_wrap(n);
}

static value m_view(interp *it, const args *a)
{
    const vtensor *t = tensor_self(it);
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
        return tensor_reshape(it, &s);
    }
    return v;
}

static value m_ap(interp *it, const args *a)
{
    const vtensor *t = tensor_self(it);
    static const char *const params[] = {"pattern",       "offset",       "scalar_offset",
                                         "vector_offset", "indirect_dim", "dtype"};
    value p[6];
    if (!bind_native(it, "ap", a, params, 6, 1, p)) {
        return VERR;
    }
    dtype d = (dtype)t->dtype;
    if (p[5].tag != V_UNDEF && p[5].tag != V_NONE && !dtype_of_value(it, p[5], &d)) {
        return VERR;
    }
    vtensor *n = tensor_derive(it, t);
    int64_t from = dtype_size((dtype)t->dtype), to = dtype_size(d);
    n->dtype = (uint8_t)d;
    n->row = t->row * from / to;
    n->offset = t->offset * from / to;
    uint32_t m;
    value *pairs = p[0].tag == V_LIST || p[0].tag == V_TUPLE ? items_of(it, p[0], &m) : NULL;
    if (!pairs) {
        return type_error(it, "ap: pattern is a list of [step, count] pairs, got %s",
                          type_name(it, p[0]));
    }
    if (m == 0 || m > IR_MAX_DIMS) {
        return value_error(it, "ap: pattern has %u pairs; 1 to %d are allowed", m, IR_MAX_DIMS);
    }
    for (uint32_t i = 0; i < m; i++) {
        int64_t q[IR_MAX_DIMS];
        uint32_t k = 0;
        if (!tensor_int_list(it, pairs[i], q, &k, "ap: a member of pattern")) {
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
            return type_error(
                it,
                "ap: offset is a compile-time integer; pass a register or tensor as scalar_offset");
        }
        if (!as_index(it, p[1], &off)) {
            return VERR;
        }
        n->offset += off;
    }
    bool scalar = p[2].tag != V_UNDEF && p[2].tag != V_NONE,
         vec = p[3].tag != V_UNDEF && p[3].tag != V_NONE;
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
        if (tensor_on_chip(t) && vec) {
            return tensor_invalid(it, "ap: vector_offset indexes a tensor in HBM");
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
        } else if (!tensor_dyn(it, scalar ? p[2] : p[3], step, &probe, t->shape[dim],
                               vec ? DYN_VECTOR : DYN_SCALAR, &n->dyn)) {
            return VERR;
        }
        n->fixed_rows = vec;
    }
    int64_t own = from;  // elements of one partition as the shape of the view counts them
    for (uint32_t i = 1; i < t->ndim; i++) {
        own = own * t->shape[i];
    }
    if (tensor_on_chip(t) && n->strides[0] * to == own) {
        n->strides[0] = n->row;  // consecutive partitions, written for a tensor of the view's shape
    }
    if (tensor_on_chip(t) && n->shape[0] > 1 && n->strides[0] != n->row) {
        return raise_msg(it, "NkiValidationError",
                         "ap: the partition step is %lld; on chip it must be %lld, the elements of "
                         "one partition",
                         (long long)n->strides[0], (long long)n->row);
    }
    return tensor_in_bounds(it, n) ? tensor_wrap(n) : VERR;
}

static value m_indirect(interp *it, const args *a)
{
    const vtensor *t = tensor_self(it);
    static const char *const params[] = {"index", "num_elem"};
    value p[2];
    if (!bind_native(it, "indirect", a, params, 2, 1, p)) {
        return VERR;
    }
    if (it->o->target->gen < 4) {
        return raise_msg(it, "NkiValidationError",
                         "indirect is available from NeuronCore-v4 (trn3) only; the target is %s",
                         it->o->target->name);
    }
    if (p[0].tag != V_TENSOR || !tensor_on_chip(t)) {
        return type_error(it, "indirect: index is a tensor in SBUF, and the tensor is on chip");
    }
    vtensor *index = p[0].u.tensor;
    if (index->buffer != BUF_SBUF || dtype_is_float((dtype)index->dtype) ||
        index->shape[0] != t->shape[0]) {
        textbuf what;
        text_init(&what, it->mem);
        tensor_describe(index, &what);
        return interp_raise(
            it, diag_indirect_index(&it->pend, interp_loc(it), "indirect",
                                    arena_printf(it->mem,
                                                 "index %s must hold integers in SBUF, with the %u "
                                                 "partitions of the tensor",
                                                 what.at, t->shape[0])));
    }
    int64_t n = (int64_t)tensor_count(index);
    if (p[1].tag != V_UNDEF && p[1].tag != V_NONE && !as_index(it, p[1], &n)) {
        return VERR;
    }
    vtensor *r = tensor_derive(it, t);
    ir_dyn d = {.kind = DYN_INDIRECT, .step = 1, .num_elem = (uint32_t)n};
    if (!tensor_view(it, index, &d.src)) {
        return VERR;
    }
    r->dyn = ir_dyn_add(it->p, d);
    r->ndim = 2;
    r->shape[1] = (uint32_t)n;
    r->strides[1] = 0;
    return tensor_wrap(r);
}

static value m_is_contiguous(interp *it, const args *a)
{
    (void)a;
    const vtensor *t = tensor_self(it);
    int64_t want = 1;
    for (uint32_t d = t->ndim; d-- > (tensor_on_chip(t) ? 1u : 0u);) {
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
    const vtensor *t = tensor_self(it);
    value l = v_list(it, NULL, 0);
    for (uint32_t d = 0; d < t->ndim; d++) {
        list_push(it, l.u.list, v_list(it, (value[]){VINT(t->strides[d]), VINT(t->shape[d])}, 2));
    }
    return l;
}

static value m_is_indirect(interp *it, const args *a)
{
    (void)a;
    return VBOOL(tensor_self(it)->dyn != IR_NONE);
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
        return VINT((int64_t)tensor_count(t));
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
        return s->manual
                   ? v_tuple(it, (value[]){VINT(s->addr_part), VINT((int64_t)s->addr_bytes)}, 2)
                   : VNONE;
    }
    static const struct {
        const char *name;
        native_fn fn;
    } methods[] = {
        {"ap", m_ap},
        {"reshape", tensor_reshape},
        {"slice", m_slice},
        {"select", m_select},
        {"permute", tensor_permute},
        {"broadcast", m_broadcast},
        {"expand_dim", m_expand_dim},
        {"squeeze_dim", m_squeeze_dim},
        {"reshape_dim", tensor_reshape_dim},
        {"flatten_dims", tensor_flatten_dims},
        {"rearrange", tensor_rearrange},
        {"view", m_view},
        {"reinterpret_cast", m_view},
        {"vector_select", m_vector_select},
        {"indirect", m_indirect},
        {"is_contiguous", m_is_contiguous},
        {"get_pattern", m_get_pattern},
        {"is_indirect", m_is_indirect},
        {"partition_broadcast", m_partition_broadcast},
        {"astype", m_astype},
        {"broadcast_to", m_broadcast_to},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(methods[i].name, id->text) == 0) {
            vnative *n = NEW(it->mem, vnative);
            *n = (vnative){methods[i].name, methods[i].fn, tv};
            return (value){.tag = V_NATIVE, .u.native = n};
        }
    }
    if (strcmp(id->text, "base_tensor") == 0) {
        return tensor_whole(it, t->id);
    }
    if (strcmp(id->text, "T") == 0 && t->ndim == 2 && !tensor_on_chip(t)) {
        value dims = v_tuple(it, (value[]){VINT(1), VINT(0)}, 2);
        args a = {&dims, 1, 0, NULL};
        it->native_self = tv;
        return tensor_permute(it, &a);
    }
    return VUNDEF;
}
