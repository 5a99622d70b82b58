#ifndef RUNTIME_KERNEL_H
#define RUNTIME_KERNEL_H

#include "runtime/tensor.h"

#include <nki/tool.h>

// One core's program: container bytes, what was read from them, what was bound.
typedef struct kernel_core {
    const unsigned char *neff;  // in the kernel's file
    size_t neff_len;
    program *pr;  // in the kernel's mem
    device_program *bound;
    device_program *reordered;  // the same in another order: nki_tool_reorder(); else NULL
} kernel_core;

struct nki_kernel {
    atomic_uint refs;
    nki_context *ctx;
    arena mem;
    jmp_buf oom;
    atomic_bool sound;    // its schedule is proven, or made here
    bool shared;          // a cache made it: see cache_give_back()
    bool cached;          // and has it. Guarded by the cache's lock
    unsigned char *file;  // containers, one a core, one after the other
    size_t file_len;
    bool file_block;  // file is a context_block, else malloc'ed
    uint32_t core_count;
    kernel_core core[COMPILE_CORES_MAX];
    size_t param_count, output_count;
    nki_tensor_info *params, *outputs;  // in mem
    _Atomic(uint8_t *) written;     // of each param, whether the kernel writes it; made when asked
    struct host_closure *closures;  // C functions of the kernel; guarded by the context's lock
    char *_Atomic signature;
    nki_step_fn observe_before, observe_after, observe_failed;  // NULL: none
    void *observe_ctx;
    uint32_t **lines[COMPILE_CORES_MAX];  // by file: starts of lines, made when first asked (look.c)
    // Of the compile; empty for a kernel that was loaded.
    char **arg_names;
    size_t arg_count;
    compile_source *sources;
    struct host_site *host_sites;  // calls of host functions, by core and instruction; in mem
    size_t host_site_count;
    const char *needs_ranks;  // why a program with collectives of several ranks cannot run; in mem
    char *absent;  // as in compile_result
    size_t absent_bytes;
};

// Compile-time values and specifications of arguments as the compiler takes them. Errors:
// NKI_ERR_ARG, NKI_ERR_NOMEM.
nki_status kernel_args(nki_context *ctx, const nki_arg *args, size_t n, compile_arg **out);
void kernel_args_free(compile_arg *args, size_t n);
// Frees everything but the hold on the context.
void kernel_free(nki_kernel *k);
// Compiles and loads.
nki_status kernel_build(nki_context *ctx, const compile_request *rq, nki_diags *ds,
                        nki_times *times, nki_kernel **out);
// Which parameters the kernel writes; NULL: no memory.
const uint8_t *kernel_written(nki_kernel *k);

// A run as a command. outputs: where `into`, the tensors; else they are made, a reference each for
// the caller.
nki_status call_prepare(nki_kernel *k, nki_stream *s, const nki_arg *args, size_t arg_count,
                        nki_tensor **outputs, size_t output_count, bool into, command **out);

// A call whose outputs nobody needs, with each instruction shown to the record.
struct control_record;
nki_status call_observed(nki_kernel *k, const nki_arg *args, size_t n, struct control_record *c,
                         nki_diags *ds);

// Python text of a value, malloc'ed; NULL: no memory, or *bad: it has no text.
char *value_text(const nki_value *v, bool *bad);

#endif
