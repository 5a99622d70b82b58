#ifndef RUNTIME_KERNEL_H
#define RUNTIME_KERNEL_H

#include "runtime/tensor.h"

#include <nki/kernel.h>

// One core's program: container bytes, what was read from them, what was bound.
typedef struct kernel_core {
    unsigned char *neff;
    size_t neff_len;
    program *pr;  // in the kernel's mem
    device_program *bound;
} kernel_core;

struct nki_kernel {
    atomic_uint refs;
    nki_context *ctx;
    arena mem;
    jmp_buf oom;
    uint32_t core_count;
    kernel_core core[COMPILE_CORES_MAX];
    // Of the compile; empty for a kernel that was loaded.
    char **arg_names;
    size_t arg_count;
    compile_source *sources;
};

#endif
