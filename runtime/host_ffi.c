#include "runtime/host_ffi.h"

#include <stdlib.h>
#include <string.h>

#ifdef NKI_HAVE_FFI

#include <ffi.h>

struct host_ffi {
    ffi_cif cif;
    bool returns;
    size_t count;
    ffi_type *types[SIG_PARAMS_MAX];
};

struct host_closure_code {
    ffi_closure *closure;
    const host_ffi *f;
    int32_t (*handler)(void *data, void *const *values);
    void *data;
};

static ffi_type *type_of(sig_kind k)
{
    switch (k) {
    case SIG_I32: return &ffi_type_sint32;
    case SIG_I64: return &ffi_type_sint64;
    case SIG_F32: return &ffi_type_float;
    case SIG_F64: return &ffi_type_double;
    case SIG_TENSOR:
    case SIG_PTR: break;
    }
    return &ffi_type_pointer;
}

nki_status host_ffi_prepare(const signature *s, host_ffi **out, const char **why)
{
    host_ffi *f = calloc(1, sizeof *f);
    *out = f;
    *why = "out of memory";
    if (!f) {
        return NKI_ERR_NOMEM;
    }
    f->returns = s->returns_i32;
    f->count = s->count;
    for (size_t i = 0; i < s->count; i++) {
        f->types[i] = type_of(s->param[i].kind);
    }
    ffi_type *result = f->returns ? &ffi_type_sint32 : &ffi_type_void;
    if (ffi_prep_cif(&f->cif, FFI_DEFAULT_ABI, (unsigned)s->count, result, f->types) != FFI_OK) {
        *why = "libffi cannot make a call of this signature";
        free(f);
        *out = NULL;
        return NKI_ERR_ARG;
    }
    return NKI_OK;
}

void host_ffi_free(host_ffi *f)
{
    free(f);
}

int32_t host_ffi_call(const host_ffi *f, nki_fn fn, host_value *values)
{
    void *at[SIG_PARAMS_MAX];
    for (size_t i = 0; i < f->count; i++) {
        at[i] = &values[i];
    }
    ffi_arg result = 0;  // libffi widens small results to this
    ffi_cif cif = f->cif;
    ffi_call(&cif, fn, &result, at);
    return f->returns ? (int32_t)result : 0;
}

static void enter(ffi_cif *cif, void *result, void **values, void *user)
{
    host_closure_code *c = user;
    (void)cif;
    int32_t r = c->handler(c->data, values);
    if (c->f->returns) {
        *(ffi_arg *)result = (ffi_arg)(ffi_sarg)r;
    }
}

host_closure_code *host_ffi_closure(host_ffi *f,
                                    int32_t (*handler)(void *data, void *const *values), void *data,
                                    nki_fn *out)
{
    void *code = NULL;
    host_closure_code *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    *c = (host_closure_code){NULL, f, handler, data};
    c->closure = ffi_closure_alloc(sizeof *c->closure, &code);
    if (!c->closure || ffi_prep_closure_loc(c->closure, &f->cif, enter, c, code) != FFI_OK) {
        host_ffi_closure_free(c);
        return NULL;
    }
    memcpy(out, &code, sizeof code);  // POSIX lets a data pointer be a function's
    return c;
}

void host_ffi_closure_free(host_closure_code *c)
{
    if (c && c->closure) {
        ffi_closure_free(c->closure);
    }
    free(c);
}

#else

nki_status host_ffi_prepare(const signature *s, host_ffi **out, const char **why)
{
    (void)s;
    *out = NULL;
    *why = "this build of nki has no libffi";
    return NKI_ERR_ARG;
}

void host_ffi_free(host_ffi *f)
{
    (void)f;
}

int32_t host_ffi_call(const host_ffi *f, nki_fn fn, host_value *values)
{
    (void)f;
    (void)fn;
    (void)values;
    return -1;
}

host_closure_code *host_ffi_closure(host_ffi *f,
                                    int32_t (*handler)(void *data, void *const *values), void *data,
                                    nki_fn *out)
{
    (void)f;
    (void)handler;
    (void)data;
    *out = NULL;
    return NULL;
}

void host_ffi_closure_free(host_closure_code *c)
{
    (void)c;
}

#endif
