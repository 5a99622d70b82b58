#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

#include "runtime/context.h"

#include <nki/host.h>

// C functions of any registered signature. libffi stays in host_ffi.c.
typedef struct host_fn host_fn;

void host_fn_release(host_fn *h);
void host_release_all(nki_context *ctx);  // those registered
nki_status host_op_call(nki_op *op, nki_stream *s, const nki_arg *args, size_t arg_count,
                        nki_tensor **outputs, size_t output_count);
void host_closures_free(nki_kernel *k);

#endif
