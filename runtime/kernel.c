#include "runtime/kernel.h"

#include "driver/clock.h"
#include "neff/neff.h"

#include <nki/tool.h>

#include <stdlib.h>
#include <string.h>

void nki_kernel_release(nki_kernel *k)
{
    if (!k || atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    compile_result owned = {
        .arg_names = k->arg_names, .arg_count = k->arg_count, .sources = k->sources};
    for (uint32_t i = 0; i < COMPILE_CORES_MAX; i++) {
        if (k->core[i].bound) {
            device_program_release(k->core[i].bound);
        }
        owned.neff[i] = k->core[i].neff;
    }
    arena_fini(&k->mem);  // what was read may refer to the bytes, so it goes first
    compile_result_fini(&owned);
    nki_context_release(k->ctx);
    free(k);
}

nki_kernel *nki_kernel_retain(nki_kernel *k)
{
    atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    return k;
}

static nki_kernel *kernel_new(nki_context *ctx)
{
    nki_kernel *k = calloc(1, sizeof *k);
    if (k) {
        atomic_init(&k->refs, 1);
        k->ctx = nki_context_retain(ctx);
        arena_init(&k->mem, 0, &k->oom);
    }
    return k;
}

// A program that was compiled here gets its source texts back, so that run-time errors can show
// them.
static void attach_sources(const nki_kernel *k, ir *p)
{
    for (uint32_t i = 0; i < p->files.n; i++) {
        const char *name = ir_text(p, p->files.at[i].name);
        for (const compile_source *c = k->sources; c; c = c->next) {
            if (strcmp(c->path, name) == 0 || strcmp(c->src.name, name) == 0) {
                p->files.at[i].src = &c->src;
                break;
            }
        }
    }
}

// Container bytes to something that runs, for each core.
static nki_status load(nki_kernel *k)
{
    const char *why = NULL;
    if (setjmp(k->oom)) {
        return context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory while loading a kernel");
    }
    nki_status st = context_cores(k->ctx, k->core_count);
    if (st != NKI_OK) {
        return st;
    }
    for (uint32_t i = 0; i < k->core_count; i++) {
        kernel_core *c = &k->core[i];
        st = neff_read(&k->mem, c->neff, c->neff_len, &c->pr, &why);
        if (st != NKI_OK) {
            return context_fail(k->ctx, st, "%s", why ? why : nki_status_text(st));
        }
        if (c->pr->ir->target != k->ctx->target) {
            return context_fail(k->ctx, NKI_ERR_ARG, "the program is for %s; the context is for %s",
                                c->pr->ir->target->name, k->ctx->target->name);
        }
        if (c->pr->ir->grid != k->core_count) {
            return context_fail(k->ctx, NKI_ERR_ARG,
                                "the container holds one program of a launch of %u, which cannot "
                                "run alone",
                                c->pr->ir->grid);
        }
        attach_sources(k, c->pr->ir);
    }
    for (uint32_t i = 0; i < k->core_count; i++) {
        kernel_core *c = &k->core[i];
        st = device_bind(c->pr, &c->bound, &why);
        if (st != NKI_OK) {
            return context_fail(k->ctx, st, "%s", why ? why : nki_status_text(st));
        }
    }
    return NKI_OK;
}

static nki_status check_args(nki_context *ctx, const nki_arg *args, size_t n)
{
    bool named = false;
    for (size_t i = 0; i < n; i++) {
        if (!!args[i].tensor + !!args[i].expr + !!args[i].spec != 1) {
            return context_fail(ctx, NKI_ERR_ARG,
                                "argument %zu must be one of tensor, expression and specification",
                                i + 1);
        }
        const nki_tensor_info *t = args[i].spec;
        if (t && (t->ndim > NKI_MAX_DIMS || !nki_dtype_name(t->dtype))) {
            return context_fail(ctx, NKI_ERR_ARG, "argument %zu has a bad type or rank", i + 1);
        }
        for (size_t d = 0; t && d < t->ndim; d++) {
            if (t->shape[d] > UINT32_MAX) {
                return context_fail(ctx, NKI_ERR_ARG, "argument %zu: dimension %zu is too large",
                                    i + 1, d);
            }
        }
        if (named && !args[i].name) {
            return context_fail(ctx, NKI_ERR_ARG,
                                "argument %zu has no name but stands after one that has", i + 1);
        }
        named = args[i].name != NULL;
    }
    return NKI_OK;
}

static compile_arg *compile_args(const nki_arg *args, size_t n)
{
    compile_arg *c = calloc(n + 1, sizeof *c);
    for (size_t i = 0; c && i < n; i++) {
        c[i].name = args[i].name;
        c[i].expr = args[i].expr;
        const nki_tensor *t = args[i].tensor;
        const nki_tensor_info *spec = args[i].spec;
        if (args[i].expr) {
            continue;
        }
        c[i].type = (dtype)(t ? t->dtype : spec->dtype);
        c[i].ndim = (uint32_t)(t ? t->ndim : spec->ndim);
        const size_t *shape = t ? t->shape : spec->shape;
        for (uint32_t d = 0; d < c[i].ndim; d++) {
            c[i].shape[d] = (uint32_t)shape[d];
        }
    }
    return c;
}

static nki_status build(nki_context *ctx, const compile_request *rq, nki_diags *ds,
                        nki_times *times, nki_kernel **out)
{
    compile_result r;
    nki_status st = compile(rq, ds, &r);
    *times = r.times;
    if (st != NKI_OK || r.cores == 0) {
        if (st != NKI_OK) {
            context_fail(ctx, st, "%s", r.why);
        }
        compile_result_fini(&r);
        return st;
    }
    nki_kernel *k = kernel_new(ctx);
    if (!k) {
        compile_result_fini(&r);
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    k->core_count = r.cores;
    for (uint32_t i = 0; i < r.cores; i++) {
        k->core[i].neff = r.neff[i];
        k->core[i].neff_len = r.neff_len[i];
    }
    k->arg_names = r.arg_names;
    k->arg_count = r.arg_count;
    k->sources = r.sources;
    double start = clock_ms();
    st = load(k);
    times->load_ms = clock_ms() - start;
    if (st != NKI_OK) {
        nki_kernel_release(k);
        return st;
    }
    *out = k;
    return NKI_OK;
}

nki_status nki_kernel_compile(nki_context *ctx, const nki_source *src, const char *entry,
                              const nki_arg *args, size_t arg_count, const nki_compile_opts *opts,
                              nki_diags *ds, nki_kernel **out)
{
    static const nki_compile_opts defaults = NKI_COMPILE_OPTS_INIT;
    opts = opts ? opts : &defaults;
    if (out) {
        *out = NULL;
    }
    if (!ctx || !src || !out || (!src->path && !src->text) || (arg_count && !args)) {
        return NKI_ERR_ARG;
    }
    if (opts->size != sizeof *opts) {
        return context_fail(ctx, NKI_ERR_ARG,
                            "nki_compile_opts has a size that this library does not know");
    }
    if (opts->grid > COMPILE_CORES_MAX) {
        return context_fail(ctx, NKI_ERR_ARG, "the grid is %u; a launch has 1 or 2 programs",
                            opts->grid);
    }
    nki_status st = check_args(ctx, args, arg_count);
    if (st != NKI_OK) {
        return st;
    }
    compile_request rq = context_request(ctx, src);
    compile_arg *cargs = compile_args(args, arg_count);
    if (!cargs) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    rq.entry = entry;
    rq.args = cargs;
    rq.arg_count = arg_count;
    rq.grid = opts->grid;
    rq.dump = opts->dump;
    rq.dump_ctx = opts->dump_ctx;
    rq.dump_stages = opts->dump_stages;
    rq.stop_after = opts->stop_after;
    nki_times times = {0};
    st = build(ctx, &rq, ds, &times, out);
    if (opts->times) {
        *opts->times = times;
    }
    free(cargs);
    return st;
}

nki_status nki_kernel_load(nki_context *ctx, const void *neff, size_t len, nki_kernel **out)
{
    if (!ctx || !neff || !out) {
        return NKI_ERR_ARG;
    }
    *out = NULL;
    nki_kernel *k = kernel_new(ctx);
    unsigned char *bytes = k ? malloc(len ? len : 1) : NULL;
    if (!bytes) {
        nki_kernel_release(k);
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    memcpy(bytes, neff, len);
    k->core_count = 1;
    k->core[0].neff = bytes;
    k->core[0].neff_len = len;
    nki_status st = load(k);
    if (st != NKI_OK) {
        nki_kernel_release(k);
        return st;
    }
    *out = k;
    return NKI_OK;
}

const void *nki_kernel_neff(const nki_kernel *k, size_t *len)
{
    *len = k->core[0].neff_len;
    return k->core[0].neff;
}

const char *nki_kernel_name(const nki_kernel *k)
{
    const ir *p = k->core[0].pr->ir;
    return ir_text(p, p->kernel);
}

size_t nki_kernel_param_count(const nki_kernel *k)
{
    return k->core[0].pr->ir->params.n;
}

size_t nki_kernel_output_count(const nki_kernel *k)
{
    return k->core[0].pr->ir->outputs.n;
}

nki_status nki_kernel_param(const nki_kernel *k, size_t i, nki_tensor_info *out)
{
    const ir *p = k->core[0].pr->ir;
    if (!out || i >= p->params.n) {
        return NKI_ERR_ARG;
    }
    const ir_tensor *t = &p->tensors.at[p->params.at[i].tensor];
    *out = (nki_tensor_info){
        .name = ir_text(p, p->params.at[i].name), .dtype = (nki_dtype)t->dtype, .ndim = t->ndim};
    for (uint32_t d = 0; d < t->ndim; d++) {
        out->shape[d] = t->shape[d];
    }
    return NKI_OK;
}

nki_status nki_kernel_output(const nki_kernel *k, size_t i, nki_tensor_info *out)
{
    const ir *p = k->core[0].pr->ir;
    if (!out || i >= p->outputs.n) {
        return NKI_ERR_ARG;
    }
    const ir_view *v = &p->views.at[p->outputs.at[i]];
    *out = (nki_tensor_info){.name = ir_text(p, p->tensors.at[v->tensor].name),
                             .dtype = (nki_dtype)v->dtype,
                             .ndim = ir_ndim(p, v)};
    for (uint32_t d = 0; d < out->ndim && d < NKI_MAX_DIMS; d++) {
        out->shape[d] = ir_dims(p, v)[d].count;
    }
    return NKI_OK;
}

const char *nki_tool_arg_name(const nki_kernel *k, size_t i)
{
    return i < k->arg_count ? k->arg_names[i] : NULL;
}

// Whether argument a of instruction parameter type `t` writes into the tensor.
static bool writes(const ir *p, param_type t, ir_arg a, uint32_t tensor)
{
    if (a.kind == IRA_LIST) {
        for (int i = 0; i < a.aux; i++) {
            if (writes(p, t, p->args.at[a.v + (uint32_t)i], tensor)) {
                return true;
            }
        }
        return false;
    }
    return (t == PT_OUT || t == PT_INOUT || t == PT_TENSORS) && a.kind == IRA_VIEW &&
           p->views.at[a.v].tensor == tensor;
}

int nki_tool_param_written(const nki_kernel *k, size_t i)
{
    const ir *p = k->core[0].pr->ir;
    if (i >= p->params.n) {
        return 0;
    }
    uint32_t tensor = p->params.at[i].tensor;
    for (uint32_t n = 0; n < p->instrs.n; n++) {
        const ir_instr *in = &p->instrs.at[n];
        const isa_info *info = &isa_table[in->op];
        for (uint32_t a = 0; a < in->nargs; a++) {
            if (writes(p, (param_type)info->params[a].type, p->args.at[in->args + a], tensor)) {
                return 1;
            }
        }
    }
    return 0;
}
