#include "runtime/tensor.h"

#include <stdlib.h>
#include <string.h>

// The DLPack ABI, version 1: structures as others pass them (github.com/dmlc/dlpack, dlpack.h).

typedef struct dl_device {
    int32_t type, id;
} dl_device;

typedef struct dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;

typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_dtype dtype;
    int64_t *shape, *strides;  // strides: elements; NULL: row-major
    uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
    dl_tensor t;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    dl_tensor t;
};

enum { DL_CPU = 1, DL_MAJOR = 1, DL_MINOR = 1 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };
// Since 1.1.
enum { DL_E4M3FN = 10, DL_E5M2 = 12, DL_E8M0FNU = 14, DL_E4M3 = 8 };
#define DL_FLAG_READ_ONLY 1u

static const struct {
    nki_dtype d;
    uint8_t code, bits;
    bool versioned;
} dtypes[] = {
    {NKI_FLOAT32, DL_FLOAT, 32, false},      {NKI_BFLOAT16, DL_BFLOAT, 16, false},
    {NKI_FLOAT16, DL_FLOAT, 16, false},      {NKI_INT8, DL_INT, 8, false},
    {NKI_UINT8, DL_UINT, 8, false},          {NKI_INT16, DL_INT, 16, false},
    {NKI_UINT16, DL_UINT, 16, false},        {NKI_INT32, DL_INT, 32, false},
    {NKI_UINT32, DL_UINT, 32, false},        {NKI_BOOL, DL_BOOL, 8, false},
    {NKI_FLOAT8_E5M2, DL_E5M2, 8, true},     {NKI_FLOAT8_E4M3, DL_E4M3, 8, true},
    {NKI_FLOAT8_E4M3FN, DL_E4M3FN, 8, true}, {NKI_FLOAT8_E8M0FNU, DL_E8M0FNU, 8, true},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof *dtypes };

static void release_plain(void *ctx, void *data)
{
    struct DLManagedTensor *m = ctx;
    (void)data;
    if (m->deleter) {
        m->deleter(m);
    }
}

static void release_versioned(void *ctx, void *data)
{
    struct DLManagedTensorVersioned *m = ctx;
    (void)data;
    if (m->deleter) {
        m->deleter(m);
    }
}

static nki_status take(nki_context *ctx, const dl_tensor *t, void (*release)(void *, void *),
                       void *managed, nki_tensor **out)
{
    if (t->device.type != DL_CPU) {
        return context_fail(ctx, NKI_ERR_ARG, "DLPack device %d is not the CPU",
                            (int)t->device.type);
    }
    if (t->ndim < 0 || t->ndim > NKI_MAX_DIMS || (t->ndim && !t->shape)) {
        return context_fail(ctx, NKI_ERR_ARG, "a DLPack tensor of %d dimensions", (int)t->ndim);
    }
    int found = -1;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (dtypes[i].code == t->dtype.code && dtypes[i].bits == t->dtype.bits &&
            t->dtype.lanes == 1) {
            found = i;
        }
    }
    if (found < 0) {
        return context_fail(ctx, NKI_ERR_ARG,
                            "no dtype is DLPack's code %u with %u bits and %u lanes", t->dtype.code,
                            t->dtype.bits, t->dtype.lanes);
    }
    size_t shape[NKI_MAX_DIMS];
    ptrdiff_t strides[NKI_MAX_DIMS];
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] < 0) {
            return context_fail(ctx, NKI_ERR_ARG, "DLPack dimension %d is negative", i);
        }
        shape[i] = (size_t)t->shape[i];
        strides[i] = t->strides ? (ptrdiff_t)t->strides[i] : 0;
    }
    void *data = t->data ? (char *)t->data + t->byte_offset : NULL;
    return nki_tensor_wrap(ctx, dtypes[found].d, (size_t)t->ndim, shape,
                           t->strides ? strides : NULL, data, release, managed, out);
}

nki_status nki_tensor_from_dlpack(nki_context *ctx, struct DLManagedTensor *m, nki_tensor **out)
{
    if (!ctx || !m || !out || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    *out = NULL;
    return take(ctx, &m->t, release_plain, m, out);
}

nki_status nki_tensor_from_dlpack_versioned(nki_context *ctx, struct DLManagedTensorVersioned *m,
                                            nki_tensor **out)
{
    if (!ctx || !m || !out || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    *out = NULL;
    if (m->major != DL_MAJOR) {
        return context_fail(ctx, NKI_ERR_ARG, "DLPack version %u.%u; this library knows 1",
                            m->major, m->minor);
    }
    if (m->flags & DL_FLAG_READ_ONLY) {
        return context_fail(ctx, NKI_ERR_ARG, "the DLPack tensor is read-only; copy it");
    }
    return take(ctx, &m->t, release_versioned, m, out);
}

// What is given out: the structure first, so that its address is the block's.
typedef struct export
{
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } m;
    nki_tensor *held;
    int64_t shape[NKI_MAX_DIMS], strides[NKI_MAX_DIMS];
}
export;

static void drop(export *e)
{
    nki_tensor_release(e->held);
    free(e);
}

static void delete_plain(struct DLManagedTensor *m)
{
    drop(m->manager_ctx);
}

static void delete_versioned(struct DLManagedTensorVersioned *m)
{
    drop(m->manager_ctx);
}

static nki_status give(nki_tensor *t, bool versioned, export **out)
{
    if (!t || !context_alive(t->ctx)) {
        return NKI_ERR_ARG;
    }
    int found = -1;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        found = dtypes[i].d == t->dtype && (versioned || !dtypes[i].versioned) ? i : found;
    }
    if (found < 0) {
        return context_fail(t->ctx, NKI_ERR_ARG, "DLPack%s has no type for %s",
                            versioned ? "" : " without version", nki_dtype_name(t->dtype));
    }
    failure *failed = NULL;
    nki_status st = queue_wait_tensor(t, true, &failed);
    if (st == NKI_OK) {
        st = failure_report(t->ctx, failed, NULL);
        failure_release(failed);
    }
    if (st != NKI_OK) {
        return st;
    }
    export *e = calloc(1, sizeof *e);
    if (!e) {
        return context_fail(t->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    e->held = nki_tensor_retain(t);
    for (size_t i = 0; i < t->ndim; i++) {
        e->shape[i] = (int64_t)t->shape[i];
        e->strides[i] = (int64_t)t->strides[i];
    }
    dl_tensor d = {.data = t->data,
                   .device = {DL_CPU, 0},
                   .ndim = (int32_t)t->ndim,
                   .dtype = {dtypes[found].code, dtypes[found].bits, 1},
                   .shape = e->shape,
                   .strides = e->strides};
    if (versioned) {
        e->m.versioned =
            (struct DLManagedTensorVersioned){DL_MAJOR, DL_MINOR, e, delete_versioned, 0, d};
    } else {
        e->m.plain = (struct DLManagedTensor){d, e, delete_plain};
    }
    *out = e;
    return NKI_OK;
}

nki_status nki_tensor_to_dlpack(nki_tensor *t, struct DLManagedTensor **out)
{
    export *e = NULL;
    nki_status st = out ? give(t, false, &e) : NKI_ERR_ARG;
    if (out) {
        *out = e ? &e->m.plain : NULL;
    }
    return st;
}

nki_status nki_tensor_to_dlpack_versioned(nki_tensor *t, struct DLManagedTensorVersioned **out)
{
    export *e = NULL;
    nki_status st = out ? give(t, true, &e) : NKI_ERR_ARG;
    if (out) {
        *out = e ? &e->m.versioned : NULL;
    }
    return st;
}
