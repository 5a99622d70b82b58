#ifndef RUNTIME_CONTEXT_H
#define RUNTIME_CONTEXT_H

#include "device/device.h"
#include "driver/compile.h"
#include "runtime/hostmem.h"

#include <nki/context.h>

#include <pthread.h>
#include <stdatomic.h>

enum { CONTEXT_ERROR_BYTES = 1024 };

struct nki_context {
    atomic_uint refs;
    const target *target;
    nki_context_opts opts;  // texts and lists are the context's own copies
    diag_policy policy;
    arena mem;  // of those copies and of nki_tool_parse's names
    jmp_buf oom;
    arena parse_mem;            // the last nki_tool_parse's names
    pthread_mutex_t lock;       // guards error
    pthread_mutex_t core_lock;  // guards core
    device_core *core[COMPILE_CORES_MAX];  // made at a first load; one launch at a time
    hostmem tensors;            // of tensors
    char error[CONTEXT_ERROR_BYTES];
};

// Records the sentence and returns st.
nki_status context_fail(nki_context *ctx, nki_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Makes the memories of the first n cores unless they are there.
nki_status context_cores(nki_context *ctx, uint32_t n);

// A compile_request with the context's settings.
compile_request context_request(const nki_context *ctx, const nki_source *src);

#endif
