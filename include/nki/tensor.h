#ifndef NKI_TENSOR_H
#define NKI_TENSOR_H

#include <nki/context.h>

#ifdef __cplusplus
extern "C" {
#endif

// Element types. Numbers are those of the container format: appended, never reused.
// Row: name, number, bytes an element, the language's name.
#define NKI_DTYPE_LIST(X)                                                                          \
    X(FLOAT32, 0, 4, "float32")                                                                    \
    X(TFLOAT32, 1, 4, "tfloat32")                                                                  \
    X(BFLOAT16, 2, 2, "bfloat16")                                                                  \
    X(FLOAT16, 3, 2, "float16")                                                                    \
    X(FLOAT8_E5M2, 4, 1, "float8_e5m2")                                                            \
    X(FLOAT8_E4M3, 5, 1, "float8_e4m3")                                                            \
    X(FLOAT8_E4M3FN, 6, 1, "float8_e4m3fn")                                                        \
    X(FLOAT8_E8M0FNU, 7, 1, "float8_e8m0fnu")                                                      \
    X(INT8, 8, 1, "int8")                                                                          \
    X(UINT8, 9, 1, "uint8")                                                                        \
    X(INT16, 10, 2, "int16")                                                                       \
    X(UINT16, 11, 2, "uint16")                                                                     \
    X(INT32, 12, 4, "int32")                                                                       \
    X(UINT32, 13, 4, "uint32")                                                                     \
    X(BOOL, 14, 1, "bool")                                                                         \
    X(FLOAT8_E5M2_X4, 15, 4, "float8_e5m2_x4")                                                     \
    X(FLOAT8_E4M3FN_X4, 16, 4, "float8_e4m3fn_x4")                                                 \
    X(FLOAT4_E2M1FN_X4, 17, 2, "float4_e2m1fn_x4")

typedef enum nki_dtype {
#define NKI_DTYPE_ENUM(name, number, size_bytes, text) NKI_##name = number,
    NKI_DTYPE_LIST(NKI_DTYPE_ENUM)
#undef NKI_DTYPE_ENUM
} nki_dtype;

enum { NKI_MAX_DIMS = 8 };

NKI_API const char *nki_dtype_name(nki_dtype d);   // "bfloat16"; NULL when there is none
NKI_API size_t nki_dtype_size_bytes(nki_dtype d);  // 0 when there is none
NKI_API int nki_dtype_is_float(nki_dtype d);       // packed words are not
// Long and short names ("bfloat16", "bf16"). Returns 0 when there is none.
NKI_API int nki_dtype_find(const char *text, size_t len, nki_dtype *out);

// Memory that kernels read and write: elements of one dtype at shape and strides. What
// nki_tensor_create makes is row-major and 64-byte aligned; a view may be neither.
//
// Threads: the handle's own facts (shape, dtype...) may be read by any number of threads; contents
// like any memory.
typedef struct nki_tensor nki_tensor;

// ndim 0 is a scalar. A dimension may be 0. The contents are zero.
//
// Errors: NKI_ERR_ARG (ndim over NKI_MAX_DIMS, a dimension of 2^32 or more, an unknown dtype),
// NKI_ERR_NOMEM (also when the size does not fit size_t).
NKI_API nki_status nki_tensor_create(nki_context *ctx, nki_dtype d, size_t ndim,
                                     const size_t *shape, nki_tensor **out);
// The caller's memory, without a copy, at any alignment. strides count elements, NULL: row-major.
// release (NULL: none) is called once, when neither a handle nor submitted work needs the memory,
// from any thread.
//
// Errors: NKI_ERR_ARG (a negative stride; data NULL while there are elements), NKI_ERR_NOMEM.
NKI_API nki_status nki_tensor_wrap(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape,
                                   const ptrdiff_t *strides, void *data,
                                   void (*release)(void *release_ctx, void *data),
                                   void *release_ctx, nki_tensor **out);
// A copy of row-major elements of type `from`, converted to d as nki_tensor_copy_in does.
//
// Errors: as nki_tensor_create and nki_tensor_copy_in.
NKI_API nki_status nki_tensor_from(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape,
                                   const void *src, nki_dtype from, nki_tensor **out);
NKI_API nki_tensor *nki_tensor_retain(nki_tensor *t);
NKI_API void nki_tensor_release(nki_tensor *t);

NKI_API nki_dtype nki_tensor_dtype(const nki_tensor *t);
NKI_API size_t nki_tensor_ndim(const nki_tensor *t);
NKI_API const size_t *nki_tensor_shape(const nki_tensor *t);       // Borrowed: lives as long as t
NKI_API const ptrdiff_t *nki_tensor_strides(const nki_tensor *t);  // elements. Borrowed, as shape
NKI_API int nki_tensor_is_contiguous(const nki_tensor *t);         // row-major without gaps
NKI_API size_t nki_tensor_count(const nki_tensor *t);              // elements
NKI_API size_t nki_tensor_size_bytes(const nki_tensor *t);         // of the elements, packed
// The first element. Does not wait for submitted work. Borrowed: lives as long as t.
NKI_API void *nki_tensor_data(nki_tensor *t);

// ---- views: other handles on the same memory, which they keep alive. A kernel gets a view that is
// not contiguous through a packed copy, and what it writes there is copied back.

// Elements start, start + step, ... before stop of one dimension. Errors: NKI_ERR_ARG (dim, start >
// stop, stop over the dimension, step 0), NKI_ERR_NOMEM.
NKI_API nki_status nki_tensor_slice(nki_tensor *t, size_t dim, size_t start, size_t stop,
                                    size_t step, nki_tensor **out);
// Errors: NKI_ERR_ARG (another number of elements, or t is not contiguous), NKI_ERR_NOMEM.
NKI_API nki_status nki_tensor_reshape(nki_tensor *t, size_t ndim, const size_t *shape,
                                      nki_tensor **out);
// Dimension i of the view is dimension order[i] of t. Errors: NKI_ERR_ARG, NKI_ERR_NOMEM.
NKI_API nki_status nki_tensor_permute(nki_tensor *t, const size_t *order, nki_tensor **out);
// The same bytes as another dtype of equal size. Errors: NKI_ERR_ARG (another size), NKI_ERR_NOMEM.
NKI_API nki_status nki_tensor_bitcast(nki_tensor *t, nki_dtype d, nki_tensor **out);

// ---- contents. These wait for submitted work that uses the tensor.

// Copies `count` row-major elements of type `from` into t, converting as the machine does (round to
// nearest even; integers saturate; NaN to an integer is 0).
//
// Errors: NKI_ERR_ARG (count is not the tensor's; an unknown dtype).
NKI_API nki_status nki_tensor_copy_in(nki_tensor *t, const void *src, nki_dtype from, size_t count);
// The other way: all of t, converted to `to`. Errors: also those of the work that was to write t.
NKI_API nki_status nki_tensor_copy_out(const nki_tensor *t, void *dst, nki_dtype to, size_t count);

// ---- DLPack 1.0 (dlpack.h declares the structures; here they are only named)

struct DLManagedTensor;
struct DLManagedTensorVersioned;

// Takes the tensor over without a copy: its deleter runs when the memory is no longer needed. CPU
// memory only. On failure it stays the caller's.
//
// Errors: NKI_ERR_ARG (another device, a dtype that nki lacks, a negative stride), NKI_ERR_NOMEM.
NKI_API nki_status nki_tensor_from_dlpack(nki_context *ctx, struct DLManagedTensor *m,
                                          nki_tensor **out);
NKI_API nki_status nki_tensor_from_dlpack_versioned(nki_context *ctx,
                                                    struct DLManagedTensorVersioned *m,
                                                    nki_tensor **out);
// A view of t for others, without a copy; waits for submitted work that uses t. The taker calls its
// deleter, from any thread. fp8 and fp4 need the versioned form.
//
// Errors: NKI_ERR_ARG (packed words, or fp8 in the old form), NKI_ERR_NOMEM.
NKI_API nki_status nki_tensor_to_dlpack(nki_tensor *t, struct DLManagedTensor **out);
NKI_API nki_status nki_tensor_to_dlpack_versioned(nki_tensor *t,
                                                  struct DLManagedTensorVersioned **out);

#ifdef __cplusplus
}
#endif

#endif
