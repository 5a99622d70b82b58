#ifndef RUNTIME_CONTEXT_H
#define RUNTIME_CONTEXT_H

#include "device/device.h"
#include "driver/compile.h"
#include "runtime/hostmem.h"

#include <nki/context.h>
#include <nki/observe.h>

#include <pthread.h>
#include <stdatomic.h>

enum { CONTEXT_ERROR_BYTES = 1024 };

typedef struct context_counters {
#define COUNTER_FIELD(name, meaning) _Atomic uint64_t name;
    NKI_COUNTER_LIST(COUNTER_FIELD)
#undef COUNTER_FIELD
} context_counters;

struct nki_context {
    atomic_uint refs;
    uint64_t serial;      // distinct for every context of the process
    uint32_t generation;  // context_generation() of the process that made it
    const target *target;
    nki_context_opts opts;    // texts and lists are the context's own copies
    nki_allocator allocator;  // alloc NULL: the C library's
    diag_policy policy;
    arena mem;  // of those copies and of nki_tool_parse's names
    jmp_buf oom;
    arena parse_mem;        // the last nki_tool_parse's names
    pthread_mutex_t lock;   // of hosts
    device_pool *pool;      // helps runs; NULL: opts.threads is 1
    struct queue *queue;    // devices and streams
    struct cache *cache;    // compiled kernels
    struct host_fn *hosts;  // registered functions, newest first
    hostmem tensors;        // their memory, unless the embedder gave an allocator
    struct log *log;
    struct trace *_Atomic trace;
    atomic_uint trace_users;  // threads that use it now
    context_counters count;
};

// Records the sentence for the calling thread and returns st.
nki_status context_fail(nki_context *ctx, nki_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Whether ctx belongs to this process; else records why not.
bool context_alive(nki_context *ctx);
// The number of fork()s between the process's first context and now.
uint32_t context_generation(void);

// A compile_request with the context's settings; the environment's NKI_VERIFY asks for proofs.
compile_request context_request(const nki_context *ctx, const nki_source *src);

// Memory of handles, zeroed, and of tensors; NULL when there is none.
void *context_alloc(nki_context *ctx, size_t size_bytes);
void context_free(nki_context *ctx, void *p, size_t size_bytes);
// Large memory, 64-byte aligned and not cleared.
void *context_block(nki_context *ctx, size_t size_bytes);
void context_block_free(nki_context *ctx, void *p, size_t size_bytes);
// The same for contents of tensors, counted as such.
void *context_take(nki_context *ctx, size_t size_bytes);
void context_give(nki_context *ctx, void *p, size_t size_bytes);

#define COUNT(ctx, name, n)                                                                        \
    atomic_fetch_add_explicit(&(ctx)->count.name, (uint64_t)(n), memory_order_relaxed)

#endif
