#ifndef NKI_TENSOR_H
#define NKI_TENSOR_H

#include <nki/context.h>

// Element types. Numbers are those of the container format: appended, never reused.
// Row: name, number, bytes an element, the language's name.
#define NKI_DTYPE_LIST(X)                              \
    X(FLOAT32,          0, 4, "float32")               \
    X(TFLOAT32,         1, 4, "tfloat32")              \
    X(BFLOAT16,         2, 2, "bfloat16")              \
    X(FLOAT16,          3, 2, "float16")               \
    X(FLOAT8_E5M2,      4, 1, "float8_e5m2")           \
    X(FLOAT8_E4M3,      5, 1, "float8_e4m3")           \
    X(FLOAT8_E4M3FN,    6, 1, "float8_e4m3fn")         \
    X(FLOAT8_E8M0FNU,   7, 1, "float8_e8m0fnu")        \
    X(INT8,             8, 1, "int8")                  \
    X(UINT8,            9, 1, "uint8")                 \
    X(INT16,           10, 2, "int16")                 \
    X(UINT16,          11, 2, "uint16")                \
    X(INT32,           12, 4, "int32")                 \
    X(UINT32,          13, 4, "uint32")                \
    X(BOOL,            14, 1, "bool")                  \
    X(FLOAT8_E5M2_X4,  15, 4, "float8_e5m2_x4")        \
    X(FLOAT8_E4M3FN_X4, 16, 4, "float8_e4m3fn_x4")     \
    X(FLOAT4_E2M1FN_X4, 17, 2, "float4_e2m1fn_x4")

typedef enum nki_dtype {
#define NKI_DTYPE_ENUM(name, number, size_bytes, text) NKI_##name = number,
    NKI_DTYPE_LIST(NKI_DTYPE_ENUM)
#undef NKI_DTYPE_ENUM
} nki_dtype;

enum { NKI_MAX_DIMS = 8 };

NKI_API const char *nki_dtype_name(nki_dtype d);        // "bfloat16"; NULL when there is none
NKI_API size_t nki_dtype_size_bytes(nki_dtype d);       // 0 when there is none
NKI_API int nki_dtype_is_float(nki_dtype d);            // packed words are not
// Long and short names ("bfloat16", "bf16"). Returns 0 when there is none.
NKI_API int nki_dtype_find(const char *text, size_t len, nki_dtype *out);

// Host memory that kernels read and write: row-major, its dtype's bits, 64-byte aligned.
typedef struct nki_tensor nki_tensor;

// ndim 0 is a scalar. A dimension may be 0. The contents are zero.
//
// Errors: NKI_ERR_ARG (ndim over NKI_MAX_DIMS, an unknown dtype), NKI_ERR_NOMEM (also when the size
// does not fit size_t).
NKI_API nki_status nki_tensor_create(nki_context *ctx, nki_dtype d, size_t ndim,
                                     const size_t *shape, nki_tensor **out);
NKI_API nki_tensor *nki_tensor_retain(nki_tensor *t);
NKI_API void nki_tensor_release(nki_tensor *t);

NKI_API nki_dtype nki_tensor_dtype(const nki_tensor *t);
NKI_API size_t nki_tensor_ndim(const nki_tensor *t);
NKI_API const size_t *nki_tensor_shape(const nki_tensor *t);  // Borrowed: lives as long as t
NKI_API size_t nki_tensor_count(const nki_tensor *t);         // elements
NKI_API size_t nki_tensor_size_bytes(const nki_tensor *t);
NKI_API void *nki_tensor_data(nki_tensor *t);                 // Borrowed: lives as long as t

// Copies `count` row-major elements of type `from` into t, converting as the machine does (round to
// nearest even; integers saturate; NaN to an integer is 0).
//
// Errors: NKI_ERR_ARG when count is not the tensor's.
NKI_API nki_status nki_tensor_copy_in(nki_tensor *t, const void *src, nki_dtype from, size_t count);
// The other way: all of t, converted to `to`.
NKI_API nki_status nki_tensor_copy_out(const nki_tensor *t, void *dst, nki_dtype to, size_t count);

#endif
