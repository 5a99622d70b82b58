#ifndef RUNTIME_OP_H
#define RUNTIME_OP_H

#include "runtime/kernel.h"

#include <nki/op.h>

struct nki_op {
    atomic_uint refs;
    nki_context *ctx;
    char *path, *text, *entry;  // malloc'ed; entry may be NULL
    size_t len;
    struct host_fn *host;  // or NULL: a kernel
};

nki_status op_new(nki_context *ctx, nki_op **out);

#endif
