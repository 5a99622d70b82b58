#include "runtime/tensor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The public numbers are the internal ones.
#define ROW(name, number, size_bytes, text) _Static_assert((number) < (int)DT_COUNT, "dtype " text);
NKI_DTYPE_LIST(ROW)
#undef ROW
_Static_assert((int)NKI_FLOAT32 == (int)DT_float32 && (int)NKI_BFLOAT16 == (int)DT_bfloat16 &&
                   (int)NKI_FLOAT8_E8M0FNU == (int)DT_float8_e8m0fnu &&
                   (int)NKI_UINT32 == (int)DT_uint32 && (int)NKI_BOOL == (int)DT_bool_ &&
                   (int)NKI_FLOAT4_E2M1FN_X4 == (int)DT_float4_e2m1fn_x4 &&
                   (int)NKI_FLOAT4_E2M1FN_X4 + 1 == (int)DT_COUNT,
               "nki/tensor.h and lang/dtype.def list the same types");

static bool known(nki_dtype d)
{
    return (int)d >= 0 && (int)d < (int)DT_COUNT;
}

const char *nki_dtype_name(nki_dtype d)
{
    return known(d) ? dtype_name((dtype)d) : NULL;
}

size_t nki_dtype_size_bytes(nki_dtype d)
{
    return known(d) ? dtype_size((dtype)d) : 0;
}

int nki_dtype_is_float(nki_dtype d)
{
    return known(d) && dtype_is_float((dtype)d);
}

int nki_dtype_find(const char *text, size_t len, nki_dtype *out)
{
    dtype d;
    if (!text || !out || !dtype_find(text, len, &d)) {
        return 0;
    }
    *out = (nki_dtype)d;
    return 1;
}

// Elements of a shape; false: a sentence was recorded.
static bool count_of(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape, size_t *count,
                     nki_status *st)
{
    *st = NKI_ERR_ARG;
    if (!known(d) || ndim > NKI_MAX_DIMS) {
        context_fail(ctx, *st, "a tensor has at most %d dimensions of a known type", NKI_MAX_DIMS);
        return false;
    }
    size_t size_bytes = dtype_size((dtype)d), n = 1;
    bool empty = false;
    for (size_t i = 0; i < ndim; i++) {
        if (shape[i] > UINT32_MAX) {
            context_fail(ctx, *st, "dimension %zu is %zu; the limit is %u", i, shape[i],
                         UINT32_MAX);
            return false;
        }
        empty = empty || shape[i] == 0;
    }
    for (size_t i = 0; i < ndim && !empty; i++) {
        if (n > SIZE_MAX / 2 / size_bytes / shape[i]) {
            *st = NKI_ERR_NOMEM;
            context_fail(ctx, *st, "the tensor's size does not fit the address space");
            return false;
        }
        n *= shape[i];
    }
    *count = empty ? 0 : n;
    return true;
}

static void set_row_major(nki_tensor *t)
{
    ptrdiff_t step = 1;
    for (size_t i = t->ndim; i-- > 0;) {
        t->strides[i] = step;
        step *= (ptrdiff_t)(t->shape[i] ? t->shape[i] : 1);
    }
}

static void find_contiguous(nki_tensor *t)
{
    ptrdiff_t step = 1;
    t->contiguous = true;
    for (size_t i = t->ndim; i-- > 0 && t->count;) {
        t->contiguous = t->contiguous && (t->shape[i] == 1 || t->strides[i] == step);
        step *= (ptrdiff_t)t->shape[i];
    }
}

// A handle without memory. root NULL: it is one.
static nki_tensor *handle(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape,
                          size_t count, nki_tensor *root)
{
    nki_tensor *t = context_alloc(ctx, sizeof *t);
    if (!t) {
        context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
        return NULL;
    }
    atomic_init(&t->refs, 1);
    t->ctx = nki_context_retain(ctx);
    t->dtype = d;
    t->ndim = ndim;
    for (size_t i = 0; i < ndim; i++) {
        t->shape[i] = shape[i];
    }
    t->count = count;
    t->size_bytes = count * dtype_size((dtype)d);
    t->contiguous = true;
    set_row_major(t);
    t->root = root ? nki_tensor_retain(root) : t;
    t->data = root ? root->data : NULL;
    return t;
}

nki_status tensor_make(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape, bool clear,
                       nki_tensor **out)
{
    size_t count = 0;
    nki_status st;
    if (out) {
        *out = NULL;
    }
    if (!ctx || !out || (ndim && !shape) || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    if (!count_of(ctx, d, ndim, shape, &count, &st)) {
        return st;
    }
    nki_tensor *t = handle(ctx, d, ndim, shape, count, NULL);
    if (!t) {
        return NKI_ERR_NOMEM;
    }
    t->memory = context_take(ctx, t->size_bytes);
    if (!t->memory) {
        st = context_fail(ctx, NKI_ERR_NOMEM, "out of memory for a tensor of %zu bytes",
                          t->size_bytes);
        nki_tensor_release(t);
        return st;
    }
    t->memory_bytes = t->size_bytes;
    t->data = t->memory;
    if (clear && t->size_bytes) {
        memset(t->data, 0, t->size_bytes);
    }
    *out = t;
    return NKI_OK;
}

nki_status nki_tensor_create(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape,
                             nki_tensor **out)
{
    return tensor_make(ctx, d, ndim, shape, true, out);
}

nki_status nki_tensor_wrap(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape,
                           const ptrdiff_t *strides, void *data,
                           void (*release)(void *release_ctx, void *data), void *release_ctx,
                           nki_tensor **out)
{
    size_t count = 0;
    nki_status st;
    if (out) {
        *out = NULL;
    }
    if (!ctx || !out || (ndim && !shape) || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    if (!count_of(ctx, d, ndim, shape, &count, &st)) {
        return st;
    }
    for (size_t i = 0; strides && i < ndim; i++) {
        if (strides[i] < 0) {
            return context_fail(ctx, NKI_ERR_ARG, "the stride of dimension %zu is negative", i);
        }
    }
    if (count && !data) {
        return context_fail(ctx, NKI_ERR_ARG, "the tensor's data is NULL");
    }
    nki_tensor *t = handle(ctx, d, ndim, shape, count, NULL);
    if (!t) {
        return NKI_ERR_NOMEM;
    }
    for (size_t i = 0; strides && i < ndim; i++) {
        t->strides[i] = strides[i];
    }
    find_contiguous(t);
    t->data = data;
    t->release = release;
    t->release_ctx = release_ctx;
    t->wrapped = data;
    *out = t;
    return NKI_OK;
}

nki_status nki_tensor_from(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape,
                           const void *src, nki_dtype from, nki_tensor **out)
{
    nki_status st = tensor_make(ctx, d, ndim, shape, false, out);
    if (st == NKI_OK) {
        st = nki_tensor_copy_in(*out, src, from, (*out)->count);
        if (st != NKI_OK) {
            nki_tensor_release(*out);
            *out = NULL;
        }
    }
    return st;
}

nki_tensor *nki_tensor_retain(nki_tensor *t)
{
    if (t) {
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    }
    return t;
}

void nki_tensor_release(nki_tensor *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1 ||
        t->ctx->generation != context_generation()) {
        return;
    }
    nki_context *ctx = t->ctx;
    if (t->root != t) {
        nki_tensor_release(t->root);
    }
    if (t->memory) {
        context_give(ctx, t->memory, t->memory_bytes);
    }
    if (t->release) {
        t->release(t->release_ctx, t->wrapped);
    }
    usage_fini(ctx, &t->use);
    context_free(ctx, t, sizeof *t);
    nki_context_release(ctx);
}

nki_dtype nki_tensor_dtype(const nki_tensor *t)
{
    return t->dtype;
}

size_t nki_tensor_ndim(const nki_tensor *t)
{
    return t->ndim;
}

const size_t *nki_tensor_shape(const nki_tensor *t)
{
    return t->shape;
}

const ptrdiff_t *nki_tensor_strides(const nki_tensor *t)
{
    return t->strides;
}

int nki_tensor_is_contiguous(const nki_tensor *t)
{
    return t->contiguous;
}

size_t nki_tensor_count(const nki_tensor *t)
{
    return t->count;
}

size_t nki_tensor_size_bytes(const nki_tensor *t)
{
    return t->size_bytes;
}

void *nki_tensor_data(nki_tensor *t)
{
    return t->data;
}

// ---- views

nki_status nki_tensor_slice(nki_tensor *t, size_t dim, size_t start, size_t stop, size_t step,
                            nki_tensor **out)
{
    if (out) {
        *out = NULL;
    }
    if (!t || !out || !context_alive(t->ctx)) {
        return NKI_ERR_ARG;
    }
    if (dim >= t->ndim || step == 0 || start > stop || stop > t->shape[dim]) {
        return context_fail(
            t->ctx, NKI_ERR_ARG,
            "no slice %zu:%zu:%zu of dimension %zu: the tensor has %zu dimensions%s", start, stop,
            step, dim, t->ndim, dim < t->ndim ? ", and this one is shorter" : "");
    }
    size_t shape[NKI_MAX_DIMS], count = 1;
    memcpy(shape, t->shape, sizeof shape);
    shape[dim] = (stop - start + step - 1) / step;
    for (size_t i = 0; i < t->ndim; i++) {
        count *= shape[i];
    }
    nki_tensor *v = handle(t->ctx, t->dtype, t->ndim, shape, count, t->root);
    if (!v) {
        return NKI_ERR_NOMEM;
    }
    memcpy(v->strides, t->strides, sizeof v->strides);
    v->strides[dim] *= (ptrdiff_t)step;
    v->data = count ? t->data + (ptrdiff_t)start * t->strides[dim] *
                                    (ptrdiff_t)dtype_size((dtype)t->dtype)
                    : t->data;
    find_contiguous(v);
    *out = v;
    return NKI_OK;
}

nki_status nki_tensor_reshape(nki_tensor *t, size_t ndim, const size_t *shape, nki_tensor **out)
{
    size_t count = 0;
    nki_status st;
    if (out) {
        *out = NULL;
    }
    if (!t || !out || (ndim && !shape) || !context_alive(t->ctx)) {
        return NKI_ERR_ARG;
    }
    if (!count_of(t->ctx, t->dtype, ndim, shape, &count, &st)) {
        return st;
    }
    if (count != t->count) {
        return context_fail(t->ctx, NKI_ERR_ARG, "the new shape has %zu elements, the tensor %zu",
                            count, t->count);
    }
    if (!t->contiguous) {
        return context_fail(t->ctx, NKI_ERR_ARG, "a view that is not contiguous has no reshape");
    }
    nki_tensor *v = handle(t->ctx, t->dtype, ndim, shape, count, t->root);
    if (!v) {
        return NKI_ERR_NOMEM;
    }
    v->data = t->data;
    *out = v;
    return NKI_OK;
}

nki_status nki_tensor_permute(nki_tensor *t, const size_t *order, nki_tensor **out)
{
    if (out) {
        *out = NULL;
    }
    if (!t || !out || (t->ndim && !order) || !context_alive(t->ctx)) {
        return NKI_ERR_ARG;
    }
    size_t shape[NKI_MAX_DIMS];
    bool seen[NKI_MAX_DIMS] = {false};
    for (size_t i = 0; i < t->ndim; i++) {
        if (order[i] >= t->ndim || seen[order[i]]) {
            return context_fail(t->ctx, NKI_ERR_ARG, "the order is not one of %zu dimensions",
                                t->ndim);
        }
        seen[order[i]] = true;
        shape[i] = t->shape[order[i]];
    }
    nki_tensor *v = handle(t->ctx, t->dtype, t->ndim, shape, t->count, t->root);
    if (!v) {
        return NKI_ERR_NOMEM;
    }
    for (size_t i = 0; i < t->ndim; i++) {
        v->strides[i] = t->strides[order[i]];
    }
    v->data = t->data;
    find_contiguous(v);
    *out = v;
    return NKI_OK;
}

nki_status nki_tensor_bitcast(nki_tensor *t, nki_dtype d, nki_tensor **out)
{
    if (out) {
        *out = NULL;
    }
    if (!t || !out || !context_alive(t->ctx)) {
        return NKI_ERR_ARG;
    }
    if (!known(d) || dtype_size((dtype)d) != dtype_size((dtype)t->dtype)) {
        return context_fail(t->ctx, NKI_ERR_ARG, "%s has no view as %s: their sizes differ",
                            nki_dtype_name(t->dtype), known(d) ? nki_dtype_name(d) : "?");
    }
    nki_tensor *v = handle(t->ctx, d, t->ndim, t->shape, t->count, t->root);
    if (!v) {
        return NKI_ERR_NOMEM;
    }
    memcpy(v->strides, t->strides, sizeof v->strides);
    v->contiguous = t->contiguous;
    v->data = t->data;
    *out = v;
    return NKI_OK;
}

// ---- contents

// Walks the rows (last dimension) of t, taken as of dtype td; `other` is packed, of dtype od. in:
// other to t.
static void walk(const nki_tensor *t, nki_dtype td, char *other, nki_dtype od, bool in)
{
    size_t size = dtype_size((dtype)td), osize = dtype_size((dtype)od);
    size_t at[NKI_MAX_DIMS] = {0};
    // A packed tensor is one row.
    size_t n = t->contiguous || t->ndim == 0 ? t->count : t->shape[t->ndim - 1];
    size_t outer = t->contiguous || t->ndim == 0 ? 0 : t->ndim - 1;
    ptrdiff_t step = t->contiguous || t->ndim == 0 ? 1 : t->strides[t->ndim - 1];
    for (size_t done = 0; done < t->count; done += n) {
        char *row = t->data;
        for (size_t i = 0; i < outer; i++) {
            row += (ptrdiff_t)at[i] * t->strides[i] * (ptrdiff_t)size;
        }
        ptrdiff_t rs = step * (ptrdiff_t)size, os = (ptrdiff_t)osize;
        if (step == 1 && od == td) {
            memcpy(in ? row : other, in ? other : row, n * size);
        } else if (in) {
            device_convert(row, (dtype)td, rs, other, (dtype)od, os, n);
        } else {
            device_convert(other, (dtype)od, os, row, (dtype)td, rs, n);
        }
        other += n * osize;
        for (size_t i = outer; i-- > 0 && ++at[i] == t->shape[i];) {
            at[i] = 0;
        }
    }
}

// Bits only: an unsigned type of the element's size, so that nothing is converted.
static nki_dtype bits_of(nki_dtype d)
{
    size_t size = dtype_size((dtype)d);
    return size == 1 ? NKI_UINT8 : size == 2 ? NKI_UINT16 : NKI_UINT32;
}

void tensor_pack(const nki_tensor *t, void *dst)
{
    nki_dtype d = bits_of(t->dtype);
    walk(t, d, dst, d, false);
}

void tensor_unpack(nki_tensor *t, const void *src)
{
    nki_dtype d = bits_of(t->dtype);
    walk(t, d, (char *)(uintptr_t)src, d, true);  // read only
}

static bool packed(nki_dtype d)
{
    return dtype_class_of((dtype)d) == DTC_X;
}

static nki_status convertible(const nki_tensor *t, nki_dtype from, nki_dtype to)
{
    if (from != to && (packed(from) || packed(to))) {
        return context_fail(t->ctx, NKI_ERR_ARG, "packed words have no conversion: %s to %s",
                            nki_dtype_name(from), nki_dtype_name(to));
    }
    return NKI_OK;
}

static nki_status check_count(const nki_tensor *t, const void *host, nki_dtype d, size_t count)
{
    if (!t || !context_alive(t->ctx)) {
        return NKI_ERR_ARG;
    }
    if (!known(d) || (count && !host)) {
        return context_fail(t->ctx, NKI_ERR_ARG, "no memory to copy, or an unknown type");
    }
    return count == t->count
               ? NKI_OK
               : context_fail(t->ctx, NKI_ERR_ARG, "%zu elements to copy; the tensor has %zu",
                              count, t->count);
}

nki_status nki_tensor_copy_in(nki_tensor *t, const void *src, nki_dtype from, size_t count)
{
    nki_status st = check_count(t, src, from, count);
    if (st == NKI_OK) {
        st = convertible(t, from, t->dtype);
    }
    failure *failed = NULL;
    if (st == NKI_OK) {
        st = queue_wait_tensor(t, true, &failed);
        failure_release(failed);
    }
    if (st != NKI_OK) {
        return st;
    }
    if (from == t->dtype) {
        tensor_unpack(t, src);
    } else {
        walk(t, t->dtype, (char *)(uintptr_t)src, from, true);  // read only
    }
    if (failed) {
        queue_mark_written(t);
    }
    return NKI_OK;
}

nki_status nki_tensor_copy_out(const nki_tensor *t, void *dst, nki_dtype to, size_t count)
{
    nki_status st = check_count(t, dst, to, count);
    if (st == NKI_OK) {
        st = convertible(t, t->dtype, to);
    }
    if (st != NKI_OK) {
        return st;
    }
    failure *failed = NULL;
    st = queue_wait_tensor(t->root, false, &failed);
    if (st == NKI_OK) {
        st = failure_report(t->ctx, failed, NULL);
        failure_release(failed);
    }
    if (st == NKI_OK && to == t->dtype) {
        tensor_pack(t, dst);
    } else if (st == NKI_OK) {
        walk(t, t->dtype, dst, to, false);
    }
    return st;
}
