// Methods that regroup the dimensions of a tensor: reshape, flatten, rearrange.
#include "lower/tensor.h"

// One -1 stands for what is left of total.
static bool infer(interp *it, int64_t *shape, uint32_t n, uint64_t total, const char *what)
{
    int64_t known = 1, hole = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (shape[i] == -1 && hole < 0) {
            hole = i;
        } else if (shape[i] < 1 || shape[i] > UINT32_MAX ||
                   __builtin_mul_overflow(known, shape[i], &known)) {
            value_error(it, "%s: size %lld is not allowed", what, (long long)shape[i]);
            return false;
        }
    }
    if (hole >= 0) {
        if (total % (uint64_t)known) {
            value_error(it, "%s: %llu elements do not divide into groups of %lld", what,
                        (unsigned long long)total, (long long)known);
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
        value_error(it, "%s: [%s] has %lld elements, %llu are needed", what, t.at, (long long)known,
                    (unsigned long long)total);
        return false;
    }
    return true;
}

static value split_dim(interp *it, const vtensor *t, uint32_t d, const int64_t *shape, uint32_t n)
{
    if (t->ndim - 1 + n > IR_MAX_DIMS) {
        return value_error(it, "a tensor has at most %d dimensions", IR_MAX_DIMS);
    }
    if ((tensor_on_chip(t) || t->fixed_rows) && d == 0 && !(n == 1 || shape[0] == t->shape[0])) {
        return tensor_invalid(it, "reshape_dim: the partition dimension cannot be split on chip");
    }
    vtensor *r = tensor_derive(it, t);
    int64_t stride = t->strides[d];
    tensor_drop_dim(r, d);
    for (uint32_t i = n; i-- > 0;) {
        tensor_insert_dim(r, d, (uint32_t)shape[i], stride);
        stride *= shape[i];
    }
    if (d == 0 && (tensor_on_chip(t) || t->fixed_rows) && n > 1) {
        r->strides[0] = t->strides[0];
    }
    return tensor_wrap(r);
}

value tensor_reshape_dim(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
    static const char *const params[] = {"dim", "shape"};
    value p[2];
    uint32_t d, n;
    int64_t shape[IR_MAX_DIMS];
    if (!bind_native(it, "reshape_dim", a, params, 2, 2, p) || !tensor_dim(it, t, p[0], 0, &d) ||
        !tensor_int_list(it, p[1], shape, &n, "reshape_dim: shape") ||
        !infer(it, shape, n, t->shape[d], "reshape_dim")) {
        return VERR;
    }
    return split_dim(it, t, d, shape, n);
}

static value flatten(interp *it, const vtensor *t, uint32_t lo, uint32_t hi)
{
    vtensor *r = tensor_derive(it, t);
    if (tensor_on_chip(t) && lo == 0 && hi > 0 && t->shape[0] != 1) {
        return tensor_invalid(it, "flatten_dims: the partition dimension cannot be merged on chip");
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
            return raise_msg(it, "NkiValidationError",
                             "flatten_dims: dimension %u is not contiguous with the next (stride "
                             "%lld, %lld expected)",
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
        tensor_drop_dim(r, lo);
    }
    r->shape[lo] = (uint32_t)n;
    r->strides[lo] = tensor_on_chip(t) && lo == 0 ? t->row : stride;
    return tensor_wrap(r);
}

value tensor_flatten_dims(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
    static const char *const params[] = {"start_dim", "end_dim"};
    value p[2];
    uint32_t lo, hi;
    if (!bind_native(it, "flatten_dims", a, params, 2, 2, p) || !tensor_dim(it, t, p[0], 0, &lo) ||
        !tensor_dim(it, t, p[1], 0, &hi)) {
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
    vtensor *r = tensor_derive(it, t);
    if (tensor_on_chip(t) && t->ndim) {
        if (n == 0 || shape[0] != t->shape[0]) {
            if (t->shape[0] == 1 && n && shape[0] != 1) {
                return raise_msg(it, "NkiValidationError",
                                 "reshape: %s would spread one partition over %lld; use a DMA copy",
                                 tensor_dims_text(it, t->shape, t->ndim), (long long)shape[0]);
            }
            return raise_msg(it, "NkiValidationError",
                             "reshape: the partition dimension is %u and must stay, got %lld",
                             t->shape[0], n ? (long long)shape[0] : 0);
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
            return raise_msg(it, "NkiValidationError",
                             "reshape of %s: the layout does not allow it without moving data",
                             tensor_dims_text(it, t->shape, t->ndim));
        }
        r->strides[d] = stride;
        left /= (uint64_t)shape[d];
        stride *= shape[d];
    }
    r->ndim = (uint8_t)n;
    return tensor_wrap(r);
}

value tensor_reshape(interp *it, const args *a)
{
    vtensor *t = tensor_self(it);
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
    if (!bind_native(it, "reshape", &packed, params, 1, 1, p) ||
        !tensor_int_list(it, p[0], shape, &n, "reshape: shape") ||
        !infer(it, shape, n, tensor_count(t), "reshape")) {
        return VERR;
    }
    bool column = tensor_on_chip(t) && t->buffer == BUF_SBUF && t->dyn == IR_NONE &&
                  tensor_count(t) == t->shape[0];
    if (column && n >= 2 && shape[0] == 1 && t->shape[0] > 1) {
        value m = import_module(it, it->top->module, 0,
                                intern_cstr(it->names, "nki.language._move"), true);
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

value tensor_rearrange(interp *it, const args *a)
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
        return value_error(it,
                           "rearrange: the source pattern has %u members, the tensor %u dimensions",
                           ns, t->ndim);
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
                return value_error(it,
                                   "rearrange: the sizes of two names in one group are not known");
            }
            names[nn + i] = g[i];
        }
        uint32_t size = t->shape[d];
        if (hole != UINT32_MAX) {
            shape[hole] = known > 0 && size % known == 0 ? size / known : 0;
            known *= shape[hole];
        }
        if (known != size) {
            return value_error(
                it, "rearrange: group %u does not multiply to the dimension's size %u", d, size);
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
    cur = tensor_permute(it, &pa);
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
