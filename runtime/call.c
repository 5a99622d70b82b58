#include "runtime/kernel.h"

#include "driver/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe(const nki_tensor_info *t, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "%s[", nki_dtype_name(t->dtype));
    for (size_t d = 0; d < t->ndim && n < room; d++) {
        n += (size_t)snprintf(out + n, room - n, "%s%zu", d ? ", " : "", t->shape[d]);
    }
    if (n < room) {
        snprintf(out + n, room - n, "]");
    }
}

// The tensor given for parameter i: by the name it was bound to at the compile, or by order.
static nki_tensor *find_arg(const nki_kernel *k, const nki_arg *args, size_t n, const char *name,
                            size_t i)
{
    size_t tensors = 0;
    for (size_t a = 0; a < n; a++) {
        const char *bound = args[a].name                       ? args[a].name
                            : k->arg_names && a < k->arg_count ? k->arg_names[a]
                                                               : NULL;
        if (bound ? strcmp(bound, name) == 0 : tensors == i) {
            return args[a].tensor;
        }
        tensors += args[a].tensor != NULL;
    }
    return NULL;
}

static nki_status bind(nki_kernel *k, const nki_arg *args, size_t n, void **params)
{
    size_t count = nki_kernel_param_count(k);
    for (size_t i = 0; i < count; i++) {
        nki_tensor_info want, got;
        nki_kernel_param(k, i, &want);
        nki_tensor *t = find_arg(k, args, n, want.name, i);
        if (!t) {
            return context_fail(k->ctx, NKI_ERR_ARG, "no tensor is given for parameter '%s' of %s",
                                want.name, nki_kernel_name(k));
        }
        got = (nki_tensor_info){.dtype = t->dtype, .ndim = t->ndim};
        memcpy(got.shape, t->shape, sizeof got.shape);
        if (got.dtype != want.dtype || got.ndim != want.ndim ||
            memcmp(got.shape, want.shape, got.ndim * sizeof *got.shape) != 0) {
            char a[200], b[200];
            describe(&got, a, sizeof a);
            describe(&want, b, sizeof b);
            return context_fail(k->ctx, NKI_ERR_ARG,
                                "parameter '%s' of %s got %s; it was compiled for %s", want.name,
                                nki_kernel_name(k), a, b);
        }
        params[i] = t->data;
    }
    return NKI_OK;
}

// A run that succeeds writes every byte of its outputs: they are not cleared.
static nki_status make_outputs(nki_kernel *k, nki_tensor **outputs, void **data)
{
    for (size_t i = 0; i < nki_kernel_output_count(k); i++) {
        nki_tensor_info t;
        nki_kernel_output(k, i, &t);
        nki_status st = tensor_make(k->ctx, t.dtype, t.ndim, t.shape, false, &outputs[i]);
        if (st != NKI_OK) {
            return st;
        }
        data[i] = outputs[i]->data;
    }
    return NKI_OK;
}

typedef struct run_boundary {
    arena mem;
    jmp_buf oom;
    diags ds;
} run_boundary;

static nki_status run(nki_kernel *k, void **params, void **data, nki_diags *ds)
{
    nki_context *ctx = k->ctx;
    run_boundary b;
    arena_init(&b.mem, 0, &b.oom);
    if (setjmp(b.oom)) {
        arena_fini(&b.mem);
        return NKI_ERR_NOMEM;
    }
    diags_init(&b.ds, &b.mem);
    b.ds.policy = &ctx->policy;
    device_run_opts o = {.threads = ctx->opts.threads,
                         .seed = ctx->opts.seed,
                         .print = ctx->opts.print,
                         .print_ctx = ctx->opts.print_ctx};
    const device_program *programs[COMPILE_CORES_MAX];
    for (uint32_t i = 0; i < k->core_count; i++) {
        programs[i] = k->core[i].bound;
    }
    nki_status st = device_launch(ctx->core, programs, k->core_count, params, data, &o, &b.ds);
    nki_status taken = diag_store_take(ds, &b.ds);
    char first[400];
    snprintf(first, sizeof first, "%s", b.ds.first ? b.ds.first->text : nki_status_text(st));
    arena_fini(&b.mem);
    if (st != NKI_OK) {
        return context_fail(ctx, st, "%s: %s", nki_kernel_name(k), first);
    }
    return taken;
}

// Runs are one at a time on the context's core.
static nki_status run_locked(nki_kernel *k, void **params, void **data, nki_diags *ds)
{
    nki_context *ctx = k->ctx;
    pthread_mutex_lock(&ctx->core_lock);
    nki_status st = run(k, params, data, ds);
    pthread_mutex_unlock(&ctx->core_lock);
    return st;
}

nki_status nki_kernel_call(nki_kernel *k, const nki_arg *args, size_t arg_count,
                           nki_tensor **outputs, size_t output_count, nki_diags *ds,
                           nki_times *times)
{
    if (!k || (arg_count && !args) || (output_count && !outputs)) {
        return NKI_ERR_ARG;
    }
    for (size_t i = 0; i < output_count; i++) {
        outputs[i] = NULL;
    }
    if (output_count != nki_kernel_output_count(k)) {
        return context_fail(k->ctx, NKI_ERR_ARG, "%s returns %zu tensors; there is room for %zu",
                            nki_kernel_name(k), nki_kernel_output_count(k), output_count);
    }
    void **params = calloc(nki_kernel_param_count(k) + 1, sizeof *params);
    void **data = calloc(output_count + 1, sizeof *data);
    nki_status st = NKI_ERR_NOMEM;
    if (!params || !data) {
        context_fail(k->ctx, st, "out of memory");
        goto done;
    }
    st = bind(k, args, arg_count, params);
    if (st == NKI_OK) {
        st = make_outputs(k, outputs, data);
    }
    if (st == NKI_OK) {
        double start = clock_ms();
        st = run_locked(k, params, data, ds);
        if (times) {
            times->run_ms = clock_ms() - start;
        }
    }
done:
    if (st != NKI_OK) {
        for (size_t i = 0; i < output_count; i++) {
            nki_tensor_release(outputs[i]);
            outputs[i] = NULL;
        }
    }
    free(params);
    free(data);
    return st;
}
