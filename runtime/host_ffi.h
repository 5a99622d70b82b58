#ifndef RUNTIME_HOST_FFI_H
#define RUNTIME_HOST_FFI_H

#include "runtime/signature.h"

#include <nki/host.h>

// A signature prepared for libffi. Without it at build, host_ffi_prepare fails and says so.
typedef struct host_ffi host_ffi;

typedef union host_value {
    void *p;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
} host_value;

// Errors: NKI_ERR_ARG, NKI_ERR_NOMEM, with a constant sentence in *why.
nki_status host_ffi_prepare(const signature *s, host_ffi **out, const char **why);
void host_ffi_free(host_ffi *f);
// Calls fn with one value a parameter. Returns its i32, or 0 where it returns void.
int32_t host_ffi_call(const host_ffi *f, nki_fn fn, host_value *values);

// A C function that calls handler(data, values) with one pointer a parameter to its argument. NULL:
// no memory. Freed by host_ffi_closure_free.
typedef struct host_closure_code host_closure_code;
host_closure_code *host_ffi_closure(host_ffi *f,
                                    int32_t (*handler)(void *data, void *const *values), void *data,
                                    nki_fn *out);
void host_ffi_closure_free(host_closure_code *c);

#endif
