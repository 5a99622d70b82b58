#ifndef NKI_NKI_H
#define NKI_NKI_H

// NeuronCore kernels from C: compile a kernel file, run it on a simulated core.
//
//     nki_context *ctx;  nki_op *op;  nki_tensor *x, *y;
//     nki_context_create(NULL, &ctx, NULL);
//     nki_op_open(ctx, &(nki_source){.path = "softmax.nki"}, NULL, NULL, &op);
//     nki_tensor_from(ctx, NKI_FLOAT32, 2, (size_t[]){128, 512}, in, NKI_FLOAT32, &x);
//     nki_op_call(op, NULL, NKI_ARGS(NKI_T(x)), &y, 1, NULL);
//     nki_tensor_copy_out(y, out, NKI_FLOAT32, 128 * 512);
//
// Handles are counted: _create and the functions that fill an `out` give one reference, _retain
// adds one, _release drops one and accepts NULL. A handle keeps what it was made from alive.
//
// Threads: every function may run on any thread, and any number of threads may share a handle, but
// nki_diags, which one thread uses at a time. What a callback may do is said where it is declared.
//
// Fork: handles belong to the process that made them; see nki_context_create().
//
// Nothing here ends the process: a fault of the kernel is NKI_ERR_DIAG with diagnostics, one of the
// world a status with a sentence in nki_context_error().

#include <nki/context.h>
#include <nki/diag.h>
#include <nki/host.h>
#include <nki/kernel.h>
#include <nki/observe.h>
#include <nki/op.h>
#include <nki/status.h>
#include <nki/stream.h>
#include <nki/tensor.h>
#include <nki/version.h>

#endif
