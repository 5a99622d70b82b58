#include "runtime/op.h"

#include "driver/read_source.h"
#include "runtime/cache.h"
#include "runtime/host.h"
#include "stdlib/stdlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

nki_status op_new(nki_context *ctx, nki_op **out)
{
    nki_op *op = context_alloc(ctx, sizeof *op);
    *out = op;
    if (!op) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    atomic_init(&op->refs, 1);
    op->ctx = nki_context_retain(ctx);
    return NKI_OK;
}

nki_op *nki_op_retain(nki_op *op)
{
    if (op) {
        atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
    }
    return op;
}

void nki_op_release(nki_op *op)
{
    if (!op || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1 ||
        op->ctx->generation != context_generation()) {
        return;
    }
    nki_context *ctx = op->ctx;
    host_fn_release(op->host);
    free(op->path);
    free(op->text);
    free(op->entry);
    context_free(ctx, op, sizeof *op);
    nki_context_release(ctx);
}

typedef struct reading {
    arena mem;
    jmp_buf oom;
    source src;
    const char *why;
    int fd;
} reading;

// The whole file, malloc'ed.
static nki_status read_all(nki_context *ctx, const char *path, char **text, size_t *len)
{
    reading *r = calloc(1, sizeof *r);
    if (!r) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    nki_status st = NKI_ERR_NOMEM;
    r->fd = -1;
    arena_init(&r->mem, 0, &r->oom);
    r->mem.from = &ctx->allocator;
    if (setjmp(r->oom) == 0) {
        st = read_source(&r->mem, path, path, &r->fd, &r->src, &r->why);
        if (st == NKI_OK) {
            *text = malloc((size_t)r->src.len + 1);
            st = *text ? NKI_OK : NKI_ERR_NOMEM;
        }
        if (st == NKI_OK) {
            memcpy(*text, r->src.text, (size_t)r->src.len + 1);
            *len = r->src.len;
        }
    } else {
        st = NKI_ERR_NOMEM;
        if (r->fd >= 0) {
            close(r->fd);
        }
    }
    if (st != NKI_OK) {
        context_fail(ctx, st, "%s", r->why ? r->why : nki_status_text(st));
    }
    arena_fini(&r->mem);
    free(r);
    return st;
}

static void count_kernels(void *arg, const kernel_info *k, uint32_t n)
{
    (void)k;
    *(uint32_t *)arg = n;
}

// Whether the source parses, and which kernel is meant. That the entry exists only running the
// module can say.

static nki_status check_source(nki_op *op, nki_diags *ds)
{
    nki_source src = {op->path, op->text, op->len};
    compile_request rq = context_request(op->ctx, &src);
    uint32_t kernels = 0;
    rq.found = count_kernels;
    rq.found_ctx = &kernels;
    compile_result r;
    nki_status st = compile(&rq, ds, &r);
    if (st != NKI_OK) {
        context_fail(op->ctx, st, "%s", r.why);
    } else if (!op->entry && kernels > 1) {
        st = context_fail(op->ctx, NKI_ERR_ARG, "%s holds %u kernels: name one", op->path, kernels);
    }
    compile_result_fini(&r);
    return st;
}

// Without what it holds being looked at.
static nki_status open_op(nki_context *ctx, const nki_source *src, const char *entry, nki_op **out)
{
    nki_op *op;
    nki_status st = op_new(ctx, &op);
    if (st != NKI_OK) {
        return st;
    }
    op->path = strdup(src->path ? src->path : "<string>");
    op->entry = entry ? strdup(entry) : NULL;
    if (!op->path || (entry && !op->entry)) {
        st = context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    } else if (src->text) {
        op->len = src->len;
        op->text = malloc(src->len + 1);
        if (op->text) {
            memcpy(op->text, src->text, src->len);
            op->text[src->len] = '\0';
        } else {
            st = context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
        }
    } else {
        st = read_all(ctx, src->path, &op->text, &op->len);
    }
    if (st != NKI_OK) {
        nki_op_release(op);
        return st;
    }
    *out = op;
    return NKI_OK;
}

nki_status nki_op_open(nki_context *ctx, const nki_source *src, const char *entry, nki_diags *ds,
                       nki_op **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !out || !src || (!src->path && !src->text) || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    nki_op *op;
    nki_status st = open_op(ctx, src, entry, &op);
    if (st == NKI_OK) {
        st = check_source(op, ds);
        if (st != NKI_OK) {
            nki_op_release(op);
            op = NULL;
        }
        *out = op;
    }
    return st;
}

nki_status nki_op_builtin(nki_context *ctx, const char *name, nki_op **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !name || !out || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    const stdlib_module *m = stdlib_op_find(name);
    if (!m) {
        return context_fail(ctx, NKI_ERR_ARG, "there is no library op '%s'", name);
    }
    // As a user's own text: nothing below knows the difference.
    const nki_source src = {m->path, m->text, m->len};
    return open_op(ctx, &src, name, out);
}

nki_status nki_op_specialize(nki_op *op, const nki_arg *args, size_t arg_count,
                             const nki_compile_opts *opts, nki_diags *ds, nki_kernel **out)
{
    static const nki_compile_opts defaults = NKI_COMPILE_OPTS_INIT;
    opts = opts ? opts : &defaults;
    if (out) {
        *out = NULL;
    }
    if (!op || !out || (arg_count && !args) || !context_alive(op->ctx)) {
        return NKI_ERR_ARG;
    }
    nki_context *ctx = op->ctx;
    if (op->host) {
        return context_fail(ctx, NKI_ERR_ARG, "a host function is not compiled");
    }
    if (opts->size != sizeof *opts || opts->grid > COMPILE_CORES_MAX) {
        return context_fail(ctx, NKI_ERR_ARG,
                            "nki_compile_opts: an unknown size, or a grid other than 0, 1, 2");
    }
    compile_arg *cargs;
    nki_status st = kernel_args(ctx, args, arg_count, &cargs);
    if (st != NKI_OK) {
        return st;
    }
    nki_source src = {op->path, op->text, op->len};
    compile_request rq = context_request(ctx, &src);
    rq.entry = op->entry;
    rq.args = cargs;
    rq.arg_count = arg_count;
    rq.grid = opts->grid;
    rq.rank = opts->rank;
    rq.list = opts->schedule == NKI_SCHEDULE_LIST;
    rq.verify |= opts->verify != 0;
    rq.spill = opts->spill != 0;
    rq.fp32_store = opts->fp32_store != 0;
    nki_times times = {0};
    st = cache_get(ctx, &rq, ds, &times, out);
    if (opts->times) {
        *opts->times = times;
    }
    kernel_args_free(cargs, arg_count);
    return st;
}

nki_status nki_op_call(nki_op *op, nki_stream *s, const nki_arg *args, size_t arg_count,
                       nki_tensor **outputs, size_t output_count, nki_diags *ds)
{
    for (size_t i = 0; outputs && i < output_count; i++) {
        outputs[i] = NULL;
    }
    if (op && op->host) {
        return host_op_call(op, s, args, arg_count, outputs, output_count);
    }
    nki_kernel *k;
    nki_status st = nki_op_specialize(op, args, arg_count, NULL, ds, &k);
    if (st == NKI_OK) {
        st = s ? nki_kernel_submit(k, s, args, arg_count, outputs, output_count)
               : nki_kernel_call(k, args, arg_count, outputs, output_count, ds, NULL);
        nki_kernel_release(k);
    }
    return st;
}
