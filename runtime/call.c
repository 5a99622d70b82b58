#include "runtime/kernel.h"

#include "runtime/control.h"

#include "driver/clock.h"
#include "lang/place.h"
#include "runtime/host.h"
#include "runtime/log.h"
#include "runtime/step.h"

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

// ---- binding

// The tensor given for parameter i: by the name it was bound to at the compile, or by order.
static nki_tensor *find_arg(const nki_kernel *k, const nki_arg *args, size_t n, size_t i)
{
    const char *name = k->params[i].name;
    size_t tensors = 0;
    for (size_t a = 0; a < n; a++) {
        const char *bound = args[a].name                       ? args[a].name
                            : k->arg_names && a < k->arg_count ? k->arg_names[a]
                                                               : NULL;
        if (bound ? bound == name || strcmp(bound, name) == 0 : tensors == i) {
            return args[a].tensor;
        }
        tensors += args[a].tensor != NULL;
    }
    return NULL;
}

static bool fits(const nki_tensor *t, const nki_tensor_info *want)
{
    if (t->dtype != want->dtype || t->ndim != want->ndim) {
        return false;
    }
    for (size_t d = 0; d < t->ndim; d++) {
        if (t->shape[d] != want->shape[d]) {
            return false;
        }
    }
    return true;
}

// Of parameter i or output i.
static nki_status misfit(nki_kernel *k, bool output, size_t i, const nki_tensor *t)
{
    const nki_tensor_info *want = output ? &k->outputs[i] : &k->params[i];
    nki_tensor_info got = {.dtype = t->dtype, .ndim = t->ndim};
    memcpy(got.shape, t->shape, sizeof got.shape);
    char a[200], b[200];
    describe(&got, a, sizeof a);
    describe(want, b, sizeof b);
    return output ? context_fail(k->ctx, NKI_ERR_ARG,
                                 "output %zu of %s got %s; it was compiled for %s", i,
                                 nki_kernel_name(k), a, b)
                  : context_fail(k->ctx, NKI_ERR_ARG,
                                 "parameter '%s' of %s got %s; it was compiled for %s", want->name,
                                 nki_kernel_name(k), a, b);
}

static nki_status bind_params(nki_kernel *k, const nki_arg *args, size_t n, command *c)
{
    const uint8_t *written = kernel_written(k);
    if (!written) {
        return context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < k->param_count; i++) {
        nki_tensor *t = find_arg(k, args, n, i);
        if (!t) {
            return context_fail(k->ctx, NKI_ERR_ARG, "no tensor is given for parameter '%s' of %s",
                                k->params[i].name, nki_kernel_name(k));
        }
        if (t->ctx != k->ctx) {
            return context_fail(k->ctx, NKI_ERR_ARG,
                                "the tensor for parameter '%s' belongs to another context",
                                k->params[i].name);
        }
        if (!fits(t, &k->params[i])) {
            return misfit(k, false, i, t);
        }
        command_use(c, t, written[i] ? ACCESS_CHANGE : ACCESS_READ);
    }
    return NKI_OK;
}

static nki_status check_output(nki_kernel *k, const command *c, size_t i, const nki_tensor *t)
{
    if (!t || t->ctx != k->ctx) {
        return context_fail(k->ctx, NKI_ERR_ARG, "output %zu of %s: no tensor of this context", i,
                            nki_kernel_name(k));
    }
    if (!fits(t, &k->outputs[i])) {
        return misfit(k, true, i, t);
    }
    for (uint32_t n = 0; n < c->tensor_count; n++) {
        if (c->tensors[n]->root == t->root) {
            return context_fail(k->ctx, NKI_ERR_ARG,
                                "output %zu of %s has the memory of another argument", i,
                                nki_kernel_name(k));
        }
    }
    return NKI_OK;
}

// ---- running, on the thread that runs the device

typedef struct run_boundary {
    arena mem;
    jmp_buf oom;
    diags ds;
} run_boundary;

// What ended the run; findings of the run-time checks may stand before it.
static const diag *first_error(const diags *from)
{
    const diag *d = from->first;
    while (d && d->next && d->id >= D_uninit_read && d->id <= D_nonfinite_made) {
        d = d->next;
    }
    return d;
}

// The failure's sentence: kernel, source place, what happened.
static failure *fail_run(nki_kernel *k, nki_status st, const diags *from)
{
    char text[CONTEXT_ERROR_BYTES];
    const diag *d = first_error(from);
    if (d && d->at.src) {
        linecol at = source_locate(d->at.src, d->at.at.lo);
        snprintf(text, sizeof text, "%s: %s:%zu:%zu: %s", nki_kernel_name(k), d->at.src->name,
                 (size_t)at.line, (size_t)at.col, d->text);
    } else {
        snprintf(text, sizeof text, "%s: %s", nki_kernel_name(k),
                 d ? d->text : nki_status_text(st));
    }
    nki_diags *ds = NULL;
    if (d && nki_diags_create(&ds) == NKI_OK && diag_store_take(ds, from) != NKI_OK) {
        nki_diags_release(ds);
        ds = NULL;
    }
    return failure_create(st, ds, text);
}

// A run that was ended from outside: its kernel, and where it was.
static failure *fail_stopped(nki_kernel *k, nki_status st, uint32_t place)
{
    const char *how = st == NKI_ERR_CANCELLED ? "cancelled while it ran"
                                              : "stopped: it ran longer than run_timeout_ns allows";
    char text[CONTEXT_ERROR_BYTES];
    loc at = ir_place_loc(k->core[0].pr->ir, place);
    if (at.src) {
        linecol l = source_locate(at.src, at.at.lo);
        snprintf(text, sizeof text, "%s: %s:%zu:%zu: %s", nki_kernel_name(k), at.src->name,
                 (size_t)l.line, (size_t)l.col, how);
    } else {
        snprintf(text, sizeof text, "%s: %s", nki_kernel_name(k), how);
    }
    return failure_create(st, NULL, text);
}

// Whether no parameter that the kernel writes shares memory with another.
static bool params_apart(const command *c, uint32_t params)
{
    for (uint32_t i = 0; i < params; i++) {
        for (uint32_t j = 0; c->writes[i] != ACCESS_READ && j < params; j++) {
            if (j != i && c->tensors[j]->root == c->tensors[i]->root) {
                return false;
            }
        }
    }
    return true;
}

// To the caller's diagnostics; a run that was submitted has none.
static void take_findings(nki_kernel *k, nki_diags *to, const diags *from)
{
    if (to) {
        diag_store_take(to, from);
        return;
    }
    for (const diag *d = from->first; d; d = d->next) {
        LOG(k->ctx, NKI_LOG_WARN, "check", {"kernel", nki_kernel_name(k), 0},
            {"name", diag_name(d->id), 0}, {"text", d->text, 0});
    }
}

static failure *launch(command *c, void **params, void **outputs, nki_diags *warnings)
{
    nki_kernel *k = c->arg[0];
    nki_device *dev = c->stream->dev;
    nki_context *ctx = k->ctx;
    run_boundary b;
    uint32_t stopped_at = 0;
    if (device_cores(dev, k->core_count) != NKI_OK) {
        return failure_nomem();
    }
    bool observed = k->observe_before || k->observe_after || k->observe_failed;
    device_observer ob;
    step_run *steps = observed ? step_run_create(k, &ob) : NULL;
    if (observed && !steps) {
        return failure_nomem();
    }
    arena_init(&b.mem, 0, &b.oom);
    b.mem.from = &ctx->allocator;
    if (setjmp(b.oom)) {
        arena_fini(&b.mem);
        step_run_free(steps);
        return failure_nomem();
    }
    diags_init(&b.ds, &b.mem);
    b.ds.policy = &ctx->policy;
    device_run_opts o = {.pool = ctx->pool,
                         .seed = ctx->opts.seed,
                         .print = ctx->opts.print,
                         .print_ctx = ctx->opts.print_ctx,
                         .host = c->arg[2] ? host_run_call : NULL,
                         .host_ctx = c->arg[2],
                         .check = ctx->opts.check != 0,
                         .stop = &c->stop,
                         .stopped_at = &stopped_at};
    uint64_t timeout_ns = c->stream->run_timeout_ns;
    if (timeout_ns) {
        o.deadline_ns =
            queue_now_ns() + (int64_t)(timeout_ns > INT64_MAX / 2 ? INT64_MAX / 2 : timeout_ns);
    }
    const device_program *programs[COMPILE_CORES_MAX];
    // A record numbers instructions as the clock does.
    o.observer = steps ? &ob : c->arg[3] ? control_observer(c->arg[3]) : NULL;
    bool reordered =
        !o.observer && k->core[0].reordered && params_apart(c, (uint32_t)k->param_count);
    for (uint32_t i = 0; i < k->core_count; i++) {
        programs[i] = reordered ? k->core[i].reordered : k->core[i].bound;
    }
    nki_status st = device_launch(dev->core, programs, k->core_count, params, outputs, &o, &b.ds);
    step_run_free(steps);
    failure *f = NULL;
    if (st == NKI_ERR_CANCELLED || st == NKI_ERR_LIMIT) {
        take_findings(k, warnings, &b.ds);
        f = fail_stopped(k, st, stopped_at);
    } else if (st == NKI_ERR_HOST) {
        f = host_run_failure(c->arg[2]);
        f = f ? f : fail_run(k, st, &b.ds);
    } else if (st != NKI_OK) {
        f = fail_run(k, st, &b.ds);
    } else if (b.ds.first) {
        take_findings(k, warnings, &b.ds);
    }
    arena_fini(&b.mem);
    return f;
}

// A view that is not packed is copied to packed memory, and back where it is written.
static bool pack_views(command *c, void **at, bool back)
{
    nki_context *ctx = c->stream->ctx;
    for (uint32_t i = 0; i < c->tensor_count; i++) {
        nki_tensor *t = c->tensors[i];
        if (t->contiguous) {
            at[i] = t->data;
        } else if (back) {
            if (at[i] && c->writes[i]) {
                tensor_unpack(t, at[i]);
            }
        } else {
            at[i] = context_take(ctx, t->size_bytes);
            if (!at[i]) {
                return false;
            }
            COUNT(ctx, packed_copies, 1);
            if (c->writes[i] != ACCESS_REPLACE) {
                tensor_pack(t, at[i]);
            }
        }
    }
    return true;
}

static failure *run_kernel(command *c)
{
    nki_kernel *k = c->arg[0];
    nki_context *ctx = k->ctx;
    void *own[COMMAND_TENSORS] = {NULL};
    void **at = c->tensor_count > COMMAND_TENSORS ? calloc(c->tensor_count, sizeof *at) : own;
    failure *f = NULL;
    if (!at || !pack_views(c, at, false)) {
        f = failure_nomem();
    } else {
        f = launch(c, at, at + k->param_count, c->arg[1]);
    }
    if (!f) {
        pack_views(c, at, true);
    }
    for (uint32_t i = 0; at && i < c->tensor_count; i++) {
        if (!c->tensors[i]->contiguous && at[i]) {
            context_give(ctx, at[i], c->tensors[i]->size_bytes);
        }
    }
    if (at != own) {
        free(at);
    }
    COUNT(ctx, runs, 1);
    COUNT(ctx, runs_inline, c->inlined);
    LOG(ctx, NKI_LOG_DEBUG, "run", {"kernel", nki_kernel_name(k), 0},
        {"stream", c->stream->name, 0}, {"serial", NULL, (double)c->serial},
        {"status", nki_status_name(f ? f->st : NKI_OK), 0});
    return f;
}

static void fini_kernel(command *c)
{
    host_run_close(c->arg[2]);
    nki_kernel_release(c->arg[0]);
}

nki_status call_prepare(nki_kernel *k, nki_stream *s, const nki_arg *args, size_t arg_count,
                        nki_tensor **outputs, size_t output_count, bool into, command **out)
{
    nki_context *ctx = k->ctx;
    *out = NULL;
    if (output_count != k->output_count) {
        return context_fail(ctx, NKI_ERR_ARG, "%s returns %zu tensors; there is room for %zu",
                            nki_kernel_name(k), k->output_count, output_count);
    }
    if (k->needs_ranks) {
        return context_fail(ctx, NKI_ERR_ARG, "%s", k->needs_ranks);
    }
    command *c = command_create(ctx, s, (uint32_t)(k->param_count + output_count));
    if (!c) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    c->run = run_kernel;
    c->fini = fini_kernel;
    c->arg[0] = nki_kernel_retain(k);
    c->label = nki_kernel_name(k);
    c->kernel = k;
    host_run *hosts;
    nki_status st = host_run_open(k, &hosts);
    c->arg[2] = hosts;
    st = st == NKI_OK ? bind_params(k, args, arg_count, c) : st;
    for (size_t i = 0; st == NKI_OK && i < output_count; i++) {
        const nki_tensor_info *t = &k->outputs[i];
        st = into ? check_output(k, c, i, outputs[i])
                  : tensor_make(ctx, t->dtype, t->ndim, t->shape, false, &outputs[i]);
        if (st == NKI_OK) {
            command_use(c, outputs[i], ACCESS_REPLACE);
        }
    }
    if (st != NKI_OK) {
        command_release(c);
        return st;
    }
    *out = c;
    return NKI_OK;
}

static void drop_outputs(nki_tensor **outputs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        nki_tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
}

static bool usable(const nki_kernel *k, const nki_stream *s, const nki_arg *args, size_t arg_count,
                   nki_tensor *const *outputs, size_t output_count)
{
    if (!k || (arg_count && !args) || (output_count && !outputs) || !context_alive(k->ctx)) {
        return false;
    }
    if (s && s->ctx != k->ctx) {
        context_fail(k->ctx, NKI_ERR_ARG, "the stream belongs to another context");
        return false;
    }
    return true;
}

nki_status nki_kernel_call(nki_kernel *k, const nki_arg *args, size_t arg_count,
                           nki_tensor **outputs, size_t output_count, nki_diags *ds,
                           nki_times *times)
{
    for (size_t i = 0; outputs && i < output_count; i++) {
        outputs[i] = NULL;
    }
    if (!usable(k, NULL, args, arg_count, outputs, output_count)) {
        return NKI_ERR_ARG;
    }
    command *c;
    nki_stream *s = k->ctx->queue->devices[0].stream;
    nki_status st = call_prepare(k, s, args, arg_count, outputs, output_count, false, &c);
    if (st == NKI_OK) {
        double start = times ? clock_ms() : 0;
        c->arg[1] = ds;
        st = queue_call(c, ds);
        if (times) {
            times->run_ms = clock_ms() - start;
        }
    }
    if (st != NKI_OK) {
        drop_outputs(outputs, output_count);
    }
    return st;
}

nki_status call_observed(nki_kernel *k, const nki_arg *args, size_t n, control_record *record,
                         nki_diags *ds)
{
    nki_tensor **outputs = calloc(k->output_count + 1, sizeof *outputs);
    command *c = NULL;
    nki_status st = outputs ? call_prepare(k, k->ctx->queue->devices[0].stream, args, n, outputs,
                                           k->output_count, false, &c)
                            : context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory");
    if (st == NKI_OK) {
        c->arg[1] = ds;
        c->arg[3] = record;
        st = queue_call(c, ds);
    }
    if (outputs) {
        drop_outputs(outputs, k->output_count);
    }
    free(outputs);
    return st;
}

nki_status nki_kernel_submit(nki_kernel *k, nki_stream *s, const nki_arg *args, size_t arg_count,
                             nki_tensor **outputs, size_t output_count)
{
    for (size_t i = 0; outputs && i < output_count; i++) {
        outputs[i] = NULL;
    }
    if (!usable(k, s, args, arg_count, outputs, output_count)) {
        return NKI_ERR_ARG;
    }
    command *c;
    s = s ? s : k->ctx->queue->devices[0].stream;
    nki_status st = call_prepare(k, s, args, arg_count, outputs, output_count, false, &c);
    if (st == NKI_OK) {
        COUNT(k->ctx, submits, 1);
        st = queue_submit(c);
    }
    if (st != NKI_OK) {
        drop_outputs(outputs, output_count);
    }
    return st;
}

nki_status nki_kernel_submit_into(nki_kernel *k, nki_stream *s, const nki_arg *args,
                                  size_t arg_count, nki_tensor *const *outputs, size_t output_count)
{
    if (!usable(k, s, args, arg_count, outputs, output_count)) {
        return NKI_ERR_ARG;
    }
    command *c;
    s = s ? s : k->ctx->queue->devices[0].stream;
    // Only read: `into`.
    nki_tensor **given = (nki_tensor **)(uintptr_t)outputs;
    nki_status st = call_prepare(k, s, args, arg_count, given, output_count, true, &c);
    if (st == NKI_OK) {
        COUNT(k->ctx, submits, 1);
        st = queue_submit(c);
    }
    return st;
}
