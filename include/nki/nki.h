#ifndef NKI_NKI_H
#define NKI_NKI_H

// NeuronCore kernels from C: compile a kernel file, run it on a simulated core.
//
//     nki_context *ctx;  nki_kernel *k;  nki_tensor *x, *out;
//     nki_context_create(NULL, &ctx);
//     nki_tensor_create(ctx, NKI_FLOAT32, 2, (size_t[]){128, 512}, &x);
//     nki_arg arg = {.name = "x", .tensor = x};
//     nki_kernel_compile(ctx, &(nki_source){.path = "k.nki"}, NULL, &arg, 1, NULL, NULL, &k);
//     nki_kernel_call(k, &arg, 1, &out, 1, NULL, NULL);
//
// Handles are counted: _create and the functions that fill an `out` give one reference, _retain adds
// one, _release drops one and accepts NULL. A handle keeps what it was made from alive.
//
// Threads: a function may run on any thread. One handle is used by one thread at a time, except a
// kernel, which any number of threads may call, and _retain/_release, which are always safe.
//
// Nothing here ends the process: a fault of the kernel is NKI_ERR_DIAG with diagnostics, one of the
// world a status with a sentence in nki_context_error().

#include <nki/context.h>
#include <nki/diag.h>
#include <nki/kernel.h>
#include <nki/status.h>
#include <nki/tensor.h>
#include <nki/version.h>

#endif
