#ifndef NKI_OP_H
#define NKI_OP_H

#include <nki/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

// A kernel of any shapes: specialised for what it is called with, once for each combination of
// shapes, types and values; what was compiled is kept in the context's cache. Two callers of one
// combination compile once, the second waits.
typedef struct nki_op nki_op;

// src is read (files) or copied (text) now. Imported files that change are seen at the next call.
// entry: as in nki_kernel_compile.
//
// Errors: NKI_ERR_DIAG (it does not parse; that there is no such kernel is said when it is
//         specialised), NKI_ERR_IO, NKI_ERR_ARG (it holds several and entry names none),
//         NKI_ERR_NOMEM.
NKI_API nki_status nki_op_open(nki_context *ctx, const nki_source *src, const char *entry,
                               nki_diags *ds, nki_op **out);
// A kernel of the library's own: "elementwise", "matmul", "softmax", "sum"; docs/ops.md.
// Errors: NKI_ERR_ARG (no such kernel), NKI_ERR_NOMEM.
NKI_API nki_status nki_op_builtin(nki_context *ctx, const char *name, nki_op **out);
NKI_API nki_op *nki_op_retain(nki_op *op);
NKI_API void nki_op_release(nki_op *op);

// The kernel for these arguments, from the cache or compiled now. opts: grid and times are used;
// may be NULL.
//
// Errors: as nki_kernel_compile. A failed compile is not kept: the next call tries again.
NKI_API nki_status nki_op_specialize(nki_op *op, const nki_arg *args, size_t arg_count,
                                     const nki_compile_opts *opts, nki_diags *ds, nki_kernel **out);

// Specialises and submits to s. s NULL: runs on device 0 and waits, as nki_kernel_call.
//
// Errors: those of nki_op_specialize, and of nki_kernel_submit or nki_kernel_call.
NKI_API nki_status nki_op_call(nki_op *op, nki_stream *s, const nki_arg *args, size_t arg_count,
                               nki_tensor **outputs, size_t output_count, nki_diags *ds);

// ---- generated and library ops. s as in nki_op_call. Results have new tensors.

// Element by element with NumPy's broadcasting. The expression is statements between semicolons:
// "NAME = e" names a value, a plain "e" is a result. In e: x0, x1... the inputs, names, numbers,
// + - * / ** unary -, comparisons (1.0 or 0.0), & | ^ ~ << >> on integers, where(e, e, e), and
// f(e, ...) with any operator of nki.language (relu, exp, maximum...). "d = x0 - x1; d * d; exp(d)"
// has two results.
//
// Arithmetic is fp32, or 32-bit integers where all operands are (uint32 where all tensors are, else
// int32; it wraps); results have the type that the inputs have in common (fp32 for different float
// types, int32 for different integers), comparisons float32 unless `types` (one a result, may be
// NULL) says otherwise. Shapes: any rank with 0 to 8 dimensions; no elements, no work.
//
// Owns:   each outputs[i] is a reference for the caller; all NULL when the call fails.
// Errors: NKI_ERR_ARG (the expression, with the place in the sentence; an integer beyond 32 bits;
//         shapes that do not fit; another number of results), then as nki_op_call.
NKI_API nki_status nki_elementwise(nki_context *ctx, nki_stream *s, const char *expression,
                                   nki_tensor *const *inputs, size_t input_count,
                                   const nki_dtype *types, nki_tensor **outputs,
                                   size_t output_count);
// [..., M, K] x [K, N] or [..., K, N] -> [..., M, N] of a's type; sums in fp32. M, K, N any size.
// Float types, which may differ.
//
// Errors, here and below: NKI_ERR_ARG (another type, shapes that do not fit), then as nki_op_call.
NKI_API nki_status nki_matmul(nki_context *ctx, nki_stream *s, nki_tensor *a, nki_tensor *b,
                              nki_tensor **out);
// Over the last axis; same shape and type; fp32 inside. Errors: as nki_matmul; a scalar has no
// axis.
NKI_API nki_status nki_softmax(nki_context *ctx, nki_stream *s, nki_tensor *x, nki_tensor **out);
// Over the last axis, which goes; same type; fp32 inside. Errors: as nki_softmax.
NKI_API nki_status nki_sum(nki_context *ctx, nki_stream *s, nki_tensor *x, nki_tensor **out);

#ifdef __cplusplus
}
#endif

#endif
