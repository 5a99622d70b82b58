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

nki_status tensor_make(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape, bool clear,
                       nki_tensor **out)
{
    if (!ctx || !out || (ndim && !shape)) {
        return NKI_ERR_ARG;
    }
    *out = NULL;
    if (!known(d) || ndim > NKI_MAX_DIMS) {
        return context_fail(ctx, NKI_ERR_ARG, "a tensor has at most %d dimensions of a known type",
                            NKI_MAX_DIMS);
    }
    size_t size_bytes = dtype_size((dtype)d), count = 1;
    for (size_t i = 0; i < ndim; i++) {
        if (shape[i] > UINT32_MAX) {
            return context_fail(ctx, NKI_ERR_ARG, "dimension %zu is %zu; the limit is %u", i,
                                shape[i], UINT32_MAX);
        }
        if (shape[i] && count > SIZE_MAX / 2 / size_bytes / shape[i]) {
            return context_fail(ctx, NKI_ERR_NOMEM,
                                "the tensor's size does not fit the address space");
        }
        count *= shape[i];
    }
    nki_tensor *t = calloc(1, sizeof *t);
    void *data = t ? hostmem_take(&ctx->tensors, count * size_bytes) : NULL;
    if (!data) {
        free(t);
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory for a tensor of %zu bytes",
                            count * size_bytes);
    }
    if (clear) {
        memset(data, 0, count * size_bytes);
    }
    *t = (nki_tensor){.ctx = nki_context_retain(ctx), .dtype = d, .ndim = ndim, .count = count};
    atomic_init(&t->refs, 1);
    if (ndim) {
        memcpy(t->shape, shape, ndim * sizeof *shape);
    }
    t->size_bytes = count * size_bytes;
    t->data = data;
    *out = t;
    return NKI_OK;
}

nki_status nki_tensor_create(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape,
                             nki_tensor **out)
{
    return tensor_make(ctx, d, ndim, shape, true, out);
}

nki_tensor *nki_tensor_retain(nki_tensor *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void nki_tensor_release(nki_tensor *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    hostmem_give(&t->ctx->tensors, t->data, t->size_bytes);
    nki_context_release(t->ctx);
    free(t);
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

static void convert(void *dst, nki_dtype dd, const void *src, nki_dtype sd, size_t n)
{
    if (dd == sd) {
        if (n) {
            memcpy(dst, src, n * dtype_size((dtype)dd));
        }
        return;
    }
    device_convert(dst, (dtype)dd, (ptrdiff_t)dtype_size((dtype)dd), src, (dtype)sd,
                   (ptrdiff_t)dtype_size((dtype)sd), n);
}

static bool packed(nki_dtype d)
{
    return dtype_class_of((dtype)d) == DTC_X;
}

nki_status nki_tensor_copy_in(nki_tensor *t, const void *src, nki_dtype from, size_t count)
{
    if (!t || !known(from) || count != t->count || (count && !src)) {
        return NKI_ERR_ARG;
    }
    if (from != t->dtype && (packed(from) || packed(t->dtype))) {
        return context_fail(t->ctx, NKI_ERR_ARG, "packed words have no conversion: %s to %s",
                            nki_dtype_name(from), nki_dtype_name(t->dtype));
    }
    convert(t->data, t->dtype, src, from, count);
    return NKI_OK;
}

nki_status nki_tensor_copy_out(const nki_tensor *t, void *dst, nki_dtype to, size_t count)
{
    if (!t || !known(to) || count != t->count || (count && !dst)) {
        return NKI_ERR_ARG;
    }
    if (to != t->dtype && (packed(to) || packed(t->dtype))) {
        return context_fail(t->ctx, NKI_ERR_ARG, "packed words have no conversion: %s to %s",
                            nki_dtype_name(t->dtype), nki_dtype_name(to));
    }
    convert(dst, to, t->data, t->dtype, count);
    return NKI_OK;
}
