#ifndef NKI_HOST_H
#define NKI_HOST_H

#include <nki/op.h>

#ifdef __cplusplus
extern "C" {
#endif

// C functions as kernels, kernels as C functions. A signature is
//
//     RESULT ( PARAMETER, ... )        i32(in f32[n,m] x, out f32[n] sums, i64 n, f64 scale)
//
//     RESULT     void, or i32: not 0 is a failure
//     PARAMETER  [in|out|inout] DTYPE [ DIMS ] NAME   a pointer to packed elements, row-major
//                i32|i64|f32|f64 NAME                 a number
//                ptr NAME                             the pointer that was registered
//     DIMS       numbers and names, between commas; a name means one size throughout. An i32 or i64
//                parameter of that name receives it.
//
// Without in, out, inout a tensor is in. DTYPE is a name or short name of nki/tensor.h.

typedef void (*nki_fn)(void);  // cast to the signature's type before the call

// A C function with the kernel's tensors as pointers: parameters in the kernel's order (in, or
// inout where the kernel writes), then outputs (out). Calling it runs the kernel and waits; with
// result i32 it returns the nki_status. Shapes and types in the signature must be the kernel's.
//
// Owns:    *out lives as long as k.
// Threads: any number may call it.
// Errors:  NKI_ERR_ARG (the signature, with the place in the sentence; it does not fit the kernel),
//          NKI_ERR_NOMEM.
NKI_API nki_status nki_kernel_function(nki_kernel *k, const char *signature, nki_fn *out);
// The signature that fits: "i32(in float32[128,512] x, out float32[128,512] out0)"; an output is "out0_"
// where a parameter is called out0. Borrowed from k. Errors: NKI_ERR_NOMEM.
NKI_API nki_status nki_kernel_signature(nki_kernel *k, const char **out);

// Registers fn under a name: nki_op_host() makes an op of it, which then runs in streams between
// kernels as a kernel does. A name registered again replaces the function for later nki_op_host()
// and later calls of kernels.
//
// A kernel calls it itself with
//
//     from nki.host import call
//     call("NAME", "i32(in f32[n,m] x, out f32[n] sums, i64 n)", x, sums)
//
// tensors in HBM, one a tensor parameter, at most 6 to read and 6 to write; sizes and the pointer
// are passed by themselves, other numbers are not. The signature is part of the kernel, and checked
// against its tensors when the kernel is compiled or loaded (NKI_ERR_ARG). When the kernel is
// called, a function must be registered under the name with an equal signature: else NKI_ERR_ARG
// before anything runs. It sees what the kernel did before, and is done before what comes after.
// Views may begin at a register's value. In a launch of two each program calls by itself, between
// two barriers the program of core 0 first.
//
// fn is called on the thread that runs the device, one call at a time for each device. It may
// submit work but not synchronise with its device.
//
// Errors: NKI_ERR_ARG, NKI_ERR_NOMEM.
NKI_API nki_status nki_host_function(nki_context *ctx, const char *name, const char *signature,
                                     nki_fn fn, void *ptr);
// An op that calls the function. Arguments of nki_op_call: its in and inout tensors and its numbers
// that are not sizes, in order; numbers as values. out tensors are results: each name in their
// shapes must occur in an in tensor, or be an i32 or i64 number.
//
// Errors: NKI_ERR_ARG when nothing is registered under the name.
NKI_API nki_status nki_op_host(nki_context *ctx, const char *name, nki_op **out);

#ifdef __cplusplus
}
#endif

#endif
