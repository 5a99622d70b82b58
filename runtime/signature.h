#ifndef RUNTIME_SIGNATURE_H
#define RUNTIME_SIGNATURE_H

#include <nki/tensor.h>

#include <stdbool.h>

// The text of nki/host.h, parsed.

enum { SIG_PARAMS_MAX = 32, SIG_NAME_BYTES = 48, SIG_TEXT_MAX = 4096 };

typedef enum sig_kind { SIG_TENSOR, SIG_I32, SIG_I64, SIG_F32, SIG_F64, SIG_PTR } sig_kind;
typedef enum sig_mode { SIG_IN, SIG_OUT, SIG_INOUT } sig_mode;

typedef struct sig_dim {
    char name[SIG_NAME_BYTES];  // "": a number
    size_t size;
} sig_dim;

typedef struct sig_param {
    sig_kind kind;
    sig_mode mode;  // of a tensor
    nki_dtype dtype;
    size_t ndim;
    sig_dim dim[NKI_MAX_DIMS];
    char name[SIG_NAME_BYTES];
    bool is_size;  // a number whose name is a dimension's
} sig_param;

typedef struct signature {
    bool returns_i32;
    size_t count;
    sig_param param[SIG_PARAMS_MAX];
} signature;

// false: why (room bytes) says what is wrong and where.
bool signature_parse(const char *text, signature *out, char *why, size_t room);
// The text that parses to the same. Returns the length that it needs, without the zero.
size_t signature_print(const signature *s, char *out, size_t room);

// Sizes of names, as tensors bind them.
typedef struct sig_sizes {
    size_t count;
    struct {
        const char *name;
        size_t size;
    } at[SIG_PARAMS_MAX * NKI_MAX_DIMS];
} sig_sizes;

// Checks a shape against a tensor parameter and binds its names. false: why says what differs.
bool signature_bind(const sig_param *p, nki_dtype d, size_t ndim, const size_t *shape, sig_sizes *z,
                    char *why, size_t room);
bool signature_size(const sig_sizes *z, const char *name, size_t *out);

#endif
