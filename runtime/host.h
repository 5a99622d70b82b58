#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

#include "runtime/host_ffi.h"
#include "runtime/queue.h"

#include <nki/host.h>

// C functions of any registered signature. libffi stays in host_ffi.c.
typedef struct host_fn {
    atomic_uint refs;
    struct host_fn *next;  // registered; guarded by the context's lock
    char *name;
    signature sig;
    host_ffi *ffi;
    nki_fn fn;
    void *ptr;
} host_fn;

host_fn *host_fn_find(nki_context *ctx, const char *name);  // retained; NULL: none is registered
void host_fn_release(host_fn *h);
void host_release_all(nki_context *ctx);  // those registered
nki_status host_op_call(nki_op *op, nki_stream *s, const nki_arg *args, size_t arg_count,
                        nki_tensor **outputs, size_t output_count);
void host_closures_free(nki_kernel *k);

// ---- calls that a kernel makes (host_kernel.c)

// Reads the host_call instructions of all cores into k->host_sites and checks each signature against
// its tensors. The kernel's oom boundary is set.
nki_status host_sites_read(nki_kernel *k);
// The functions of one run. *out NULL: the kernel calls none.
typedef struct host_run host_run;
nki_status host_run_open(nki_kernel *k, host_run **out);
void host_run_close(host_run *r);
// As device_run_opts.host; host_ctx is a host_run.
bool host_run_call(void *host_ctx, uint32_t core, uint32_t instr, void *const *data);
// What a function reported, once.
failure *host_run_failure(host_run *r);

#endif
