#ifndef RUNTIME_TENSOR_H
#define RUNTIME_TENSOR_H

#include "runtime/queue.h"

#include <nki/tensor.h>

struct nki_tensor {
    atomic_uint refs;
    nki_context *ctx;
    nki_dtype dtype;
    bool contiguous;
    size_t ndim;
    size_t shape[NKI_MAX_DIMS];
    ptrdiff_t strides[NKI_MAX_DIMS];  // elements
    size_t count, size_bytes;         // of the elements, packed
    char *data;                       // the first element
    nki_tensor *root;                 // whose memory it is: itself, or retained
    // Of a root.
    void *memory;  // NULL: the embedder's
    size_t memory_bytes;
    void (*release)(void *release_ctx, void *data);
    void *release_ctx, *wrapped;
    usage_list use;
};

// As nki_tensor_create; clear: the contents are zero, else unspecified.
nki_status tensor_make(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape, bool clear,
                       nki_tensor **out);
// To and from packed row-major elements.
void tensor_pack(const nki_tensor *t, void *dst);
void tensor_unpack(nki_tensor *t, const void *src);

#endif
