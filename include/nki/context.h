#ifndef NKI_CONTEXT_H
#define NKI_CONTEXT_H

#include <nki/export.h>
#include <nki/status.h>

#include <stddef.h>
#include <stdint.h>

// Settings shared by compiles, and a simulated core to run on.
typedef struct nki_context nki_context;

typedef struct nki_env {
    const char *name, *value;
} nki_env;

typedef struct nki_context_opts {
    size_t size;         // sizeof(nki_context_opts), set by the initialiser
    const char *target;  // "trn1", "trn2", "trn3" (or gen2, gen3, gen4); NULL: trn2
    // Where imports are searched after the kernel's own folders; each also with /src.
    const char *const *import_roots;
    size_t import_root_count;
    const nki_env *env;  // os.environ as kernels see it; nothing else of the environment is seen
    size_t env_count;
    // "NAME" on, "no-NAME" off, "error" all warnings are errors, "error=NAME".
    const char *const *warnings;
    size_t warning_count;
    size_t memory_limit_bytes;  // of one compile; 0: 8 GiB
    uint64_t step_limit;        // evaluated nodes of a meta-program; 0: 4e8
    uint32_t threads;           // of one run; 0: 1. The result does not depend on it
    uint32_t seed;              // initial state of the device's random generators
    // print() at compile time and device_print at run time. NULL: dropped.
    // Called on the thread that compiles or calls; text is not zero-terminated.
    void (*print)(void *print_ctx, const char *text, size_t len);
    void *print_ctx;
} nki_context_opts;
#define NKI_CONTEXT_OPTS_INIT                                                                      \
    {sizeof(nki_context_opts), NULL, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL}

// opts may be NULL. All texts are copied.
//
// Errors: NKI_ERR_ARG (a size that this library does not know, an unknown target or warning: *out is
// then NULL and *why, when why is not NULL, a static sentence), NKI_ERR_NOMEM.
NKI_API nki_status nki_context_create(const nki_context_opts *opts, nki_context **out,
                                      const char **why);
NKI_API nki_context *nki_context_retain(nki_context *ctx);
NKI_API void nki_context_release(nki_context *ctx);

NKI_API const char *nki_context_target(const nki_context *ctx);  // "trn2"

// A sentence about the last call with this context (or a handle made from it) that did not return
// NKI_OK: what failed, on which file, with which values. "" when none did. Borrowed: until the next
// call.
NKI_API const char *nki_context_error(const nki_context *ctx);

#endif
