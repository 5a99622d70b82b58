#ifndef RUNTIME_TENSOR_H
#define RUNTIME_TENSOR_H

#include "runtime/context.h"

#include <nki/tensor.h>

struct nki_tensor {
    atomic_uint refs;
    nki_context *ctx;
    nki_dtype dtype;
    size_t ndim;
    size_t shape[NKI_MAX_DIMS];
    size_t count, size_bytes;
    void *data;  // 64-byte aligned
};

// As nki_tensor_create; clear: the contents are zero, else unspecified.
nki_status tensor_make(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape, bool clear,
                       nki_tensor **out);

#endif
