#ifndef NKI_CONTEXT_H
#define NKI_CONTEXT_H

#include <nki/export.h>
#include <nki/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Settings shared by compiles, simulated devices to run on, the memory of tensors, and the cache of
// compiled kernels.
typedef struct nki_context nki_context;

typedef struct nki_env {
    const char *name, *value;
} nki_env;

// Where memory comes from: handles, contents of tensors, all that compiles, loads and runs build
// up, compiled and loaded kernels with their containers. Not: a container while it is written,
// nki_diags, the bookkeeping of queues, caches, logs and traces (the C library's malloc, small),
// threads, and the memories of simulated devices (mappings).
//
// align is a power of two. release gets what alloc was asked for. Both are called from any thread,
// also from two at a time. alloc may fail at any time: the call that needed it returns
// NKI_ERR_NOMEM, and a run that needed it fails with that.
typedef struct nki_allocator {
    void *(*alloc)(void *alloc_ctx, size_t size_bytes, size_t align);  // NULL: no memory
    void (*release)(void *alloc_ctx, void *p, size_t size_bytes, size_t align);
    void *alloc_ctx;
} nki_allocator;

// Numbers are those of NKI_LOG: a level contains those before it.
typedef enum nki_log_level {
    NKI_LOG_OFF,
    NKI_LOG_ERROR,  // runs and host functions that fail
    NKI_LOG_WARN,   // compiles that fail, findings of the run-time checks
    NKI_LOG_INFO,   // compiles, loads, cache misses and evictions
    NKI_LOG_DEBUG,  // every submission and run
} nki_log_level;

// A module that an import asks for.
typedef struct nki_module_text {
    const char *path;  // as shown in messages; NULL: the dotted name
    const char *text;  // copied before the call that compiles goes on
    size_t len;
    int is_package;
} nki_module_text;

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
    uint64_t step_limit;        // evaluated nodes of a meta-program; 0: 4e9
    uint32_t threads;           // of one run; 0: 1. The result does not depend on it. No more than
                                // there are processors
    uint32_t seed;              // initial state of the device's random generators
    // print() at compile time and device_print at run time. NULL: dropped.
    // Called on the thread that compiles or runs (a device's own, for work that was submitted);
    // text is not zero-terminated.
    void (*print)(void *print_ctx, const char *text, size_t len);
    void *print_ctx;
    const nki_allocator *allocator;  // copied. NULL: the C library's
    // One line without its end, of log_level or more urgent. NULL: standard error. Called from any
    // thread, one call at a time; must not call into this context.
    void (*log)(void *log_ctx, nki_log_level level, const char *line, size_t len);
    void *log_ctx;
    nki_log_level log_level;  // the variable NKI_LOG, where set, counts instead
    // Asked for each import that is not built in, before files are. Returns not 0 when *out is
    // filled. Must answer alike for the life of the context: what was compiled is kept. NULL: none.
    int (*resolve)(void *resolve_ctx, const char *dotted, nki_module_text *out);
    void *resolve_ctx;
    uint32_t device_count;  // 0: 1
    size_t cache_bytes;     // of compiled kernels that are not in use; 0: 256 MiB
    int blocking;           // not 0: every submission runs before it returns; no thread is made
    // A run of a kernel that takes longer ends with NKI_ERR_LIMIT. 0: none. A stream may have its
    // own; checked between instructions.
    uint64_t run_timeout_ns;
    // Not 0: every run looks for reads of memory never written, outputs written in part, races
    // between the cores of a launch, integers lost in a conversion and the first NaN or infinity
    // (docs/checks.md). What it finds is a warning in the call's nki_diags, and in the log of a run
    // that was submitted; the results are the same, the run is slower.
    int check;
    // A device's thread without work, and one that waits for it, look this long for more before
    // they sleep: to be woken costs tens of microseconds, and the submission that wakes pays some
    // of them. More for answers at once, 1 to sleep at once. 0: 30,000.
    uint64_t linger_ns;
} nki_context_opts;
// clang-format off
#define NKI_CONTEXT_OPTS_INIT {.size = sizeof(nki_context_opts)}
// clang-format on

// opts may be NULL. All texts are copied.
//
// Fork: a context belongs to the process that made it. In a child of fork() every function that is
// given one of its handles returns NKI_ERR_ARG or does nothing; the child makes a context of its
// own. What the parent had submitted runs in the parent alone.
//
// Errors: NKI_ERR_ARG (a size that this library does not know, an unknown target or warning: *out
// is then NULL and *why, when why is not NULL, a static sentence), NKI_ERR_NOMEM.
NKI_API nki_status nki_context_create(const nki_context_opts *opts, nki_context **out,
                                      const char **why);
NKI_API nki_context *nki_context_retain(nki_context *ctx);
// Does not wait: work that was submitted keeps what it needs and runs to its end.
NKI_API void nki_context_release(nki_context *ctx);

NKI_API const char *nki_context_target(const nki_context *ctx);  // "trn2"

// A sentence about this thread's last call with this context (or a handle made from it) that did
// not return NKI_OK: what failed, on which file, with which values. "" when none did. Borrowed:
// until this thread's next call.
NKI_API const char *nki_context_error(const nki_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
