#include "runtime/kernel.h"

#include "driver/clock.h"
#include "lang/place.h"
#include "neff/neff.h"
#include "runtime/cache.h"
#include "runtime/host.h"
#include "runtime/log.h"
#include "runtime/trace.h"
#include "sched/verify_schedule.h"

#include <nki/tool.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MIN_BYTES = 4096 };

void kernel_free(nki_kernel *k)
{
    compile_result owned = {.arg_names = k->arg_names,
                            .arg_count = k->arg_count,
                            .sources = k->sources,
                            .absent = k->absent};
    for (uint32_t i = 0; i < COMPILE_CORES_MAX; i++) {
        if (k->core[i].bound) {
            device_program_release(k->core[i].bound);
        }
        if (k->core[i].reordered) {
            device_program_release(k->core[i].reordered);
        }
    }
    if (k->file_block) {
        context_block_free(k->ctx, k->file, k->file_len);
    } else {
        owned.neff[0] = k->file;
    }
    host_closures_free(k);
    free(atomic_load(&k->written));
    free(atomic_load(&k->signature));
    arena_fini(&k->mem);
    compile_result_fini(&owned);
    context_free(k->ctx, k, sizeof *k);
}

void nki_kernel_release(nki_kernel *k)
{
    if (!k || k->ctx->generation != context_generation()) {
        return;
    }
    if (k->shared) {
        cache_give_back(k);
    } else if (atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) == 1) {
        nki_context *ctx = k->ctx;
        kernel_free(k);
        nki_context_release(ctx);
    }
}

nki_kernel *nki_kernel_retain(nki_kernel *k)
{
    if (k) {
        atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    }
    return k;
}

static nki_kernel *kernel_new(nki_context *ctx)
{
    nki_kernel *k = context_alloc(ctx, sizeof *k);
    if (k) {
        atomic_init(&k->refs, 1);
        k->ctx = nki_context_retain(ctx);
        arena_init(&k->mem, 0, &k->oom);
        k->mem.from = &ctx->allocator;
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

// Sets needs_ranks when an instruction is of several ranks.
static void find_collective(nki_kernel *k)
{
    for (uint32_t c = 0; c < k->core_count; c++) {
        const ir *p = k->core[c].pr->ir;
        for (uint32_t i = 0; i < p->instrs.n; i++) {
            const ir_instr *in = &p->instrs.at[i];
            if (isa_table[in->op].group != ISAG_NCC) {
                continue;
            }
            loc at = ir_place_loc(p, in->place);
            linecol l = at.src ? source_locate(at.src, at.at.lo) : (linecol){0};
            k->needs_ranks = arena_printf(
                &k->mem,
                "%s%s%.0zu%snki.collectives.%s of several ranks: nothing connects devices here, so that "
                "the kernel compiles but does not run",
                at.src ? at.src->name : "", at.src ? ":" : "", (size_t)l.line, at.src ? ": " : "",
                isa_table[in->op].name);
            return;
        }
    }
}

// Names, types and shapes of what goes in and out, in k's mem.
static void describe(nki_kernel *k)
{
    const ir *p = k->core[0].pr->ir;
    k->param_count = p->params.n;
    k->output_count = p->outputs.n;
    k->params = NEW_N(&k->mem, nki_tensor_info, k->param_count);
    k->outputs = NEW_N(&k->mem, nki_tensor_info, k->output_count);
    for (uint32_t i = 0; i < p->params.n; i++) {
        const ir_tensor *t = &p->tensors.at[p->params.at[i].tensor];
        nki_tensor_info *o = &k->params[i];
        *o = (nki_tensor_info){.name = ir_text(p, p->params.at[i].name),
                               .dtype = (nki_dtype)t->dtype,
                               .ndim = t->ndim};
        for (uint32_t d = 0; d < t->ndim; d++) {
            o->shape[d] = t->shape[d];
        }
    }
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        const ir_view *v = ir_view_ref(p, p->outputs.at[i]);
        nki_tensor_info *o = &k->outputs[i];
        *o = (nki_tensor_info){.name = ir_text(p, p->tensors.at[v->tensor].name),
                               .dtype = (nki_dtype)v->dtype,
                               .ndim = ir_ndim(p, v)};
        for (uint32_t d = 0; d < o->ndim && d < NKI_MAX_DIMS; d++) {
            o->shape[d] = ir_dims(p, v)[d].count;
        }
    }
}

static nki_status check_schedule(nki_kernel *k, const program *pr)
{
    arena mem;
    jmp_buf oom;
    arena_init(&mem, 0, &oom);
    mem.from = &k->ctx->allocator;
    nki_status st = NKI_OK;
    if (setjmp(oom)) {
        st = context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory while loading a kernel");
    } else {
        const char *why = schedule_verify(pr, &mem);
        if (why) {
            st = context_fail(k->ctx, NKI_ERR_FORMAT, "the container's schedule is not sound: %s",
                              why);
        }
    }
    arena_fini(&mem);
    return st;
}

nki_status nki_kernel_verify(nki_kernel *k)
{
    if (!k || !context_alive(k->ctx)) {
        return NKI_ERR_ARG;
    }
    nki_status st = NKI_OK;
    if (!atomic_load_explicit(&k->sound, memory_order_relaxed)) {
        for (uint32_t i = 0; i < k->core_count && st == NKI_OK; i++) {
            st = check_schedule(k, k->core[i].pr);
        }
        atomic_store_explicit(&k->sound, st == NKI_OK, memory_order_relaxed);
    }
    return st;
}

// Container bytes to something that runs, for each core.
static nki_status load(nki_kernel *k)
{
    const char *why = NULL;
    if (setjmp(k->oom)) {
        return context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory while loading a kernel");
    }
    int64_t start = trace_begin(k->ctx);
    double begin = clock_ms();
    nki_status st = NKI_OK;
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
            return context_fail(k->ctx, NKI_ERR_FORMAT,
                                "the container holds one program of a launch of %u, which cannot "
                                "run alone",
                                c->pr->ir->grid);
        }
        if (c->pr->ir->core != i) {
            return context_fail(k->ctx, NKI_ERR_FORMAT,
                                "container %u of the file holds program %u of the launch", i,
                                c->pr->ir->core);
        }
        attach_sources(k, c->pr->ir);
    }
    double bind = clock_ms();
    for (uint32_t i = 0; i < k->core_count; i++) {
        kernel_core *c = &k->core[i];
        st = device_bind_from(c->pr, &k->ctx->allocator, &c->bound, &why);
        if (st != NKI_OK) {
            return context_fail(k->ctx, st, "%s", why ? why : nki_status_text(st));
        }
    }
    describe(k);
    find_collective(k);
    st = host_sites_read(k);
    if (st != NKI_OK) {
        return st;
    }
    COUNT(k->ctx, loads, 1);
    trace_span(k->ctx, "load", nki_kernel_name(k), start);
    LOG(k->ctx, NKI_LOG_INFO, "load", {"kernel", nki_kernel_name(k), 0},
        {"bytes", NULL, (double)k->core[0].neff_len},
        {"instructions", NULL, (double)k->core[0].pr->ir->instrs.n},
        {"read_ms", NULL, bind - begin}, {"bind_ms", NULL, clock_ms() - bind});
    return NKI_OK;
}

static nki_status check_args(nki_context *ctx, const nki_arg *args, size_t n)
{
    bool named = false;
    for (size_t i = 0; i < n; i++) {
        if (!!args[i].tensor + !!args[i].expr + !!args[i].spec + !!args[i].value != 1) {
            return context_fail(ctx, NKI_ERR_ARG,
                                "argument %zu must be one of tensor, value, expression and "
                                "specification",
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

void kernel_args_free(compile_arg *args, size_t n)
{
    for (size_t i = 0; args && i < n; i++) {
        free((char *)(uintptr_t)args[i].expr);  // ours: texts are copies
    }
    free(args);
}

static bool own_text(compile_arg *c, const nki_arg *a, bool *bad)
{
    c->expr = a->value ? value_text(a->value, bad) : strdup(a->expr);
    return c->expr != NULL;
}

nki_status kernel_args(nki_context *ctx, const nki_arg *args, size_t n, compile_arg **out)
{
    *out = NULL;
    nki_status st = check_args(ctx, args, n);
    if (st != NKI_OK) {
        return st;
    }
    compile_arg *c = calloc(n + 1, sizeof *c);
    bool bad = false, ok = c != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        c[i].name = args[i].name;
        const nki_tensor *t = args[i].tensor;
        const nki_tensor_info *spec = args[i].spec;
        if (args[i].expr || args[i].value) {
            ok = own_text(&c[i], &args[i], &bad);
            continue;
        }
        c[i].type = (dtype)(t ? t->dtype : spec->dtype);
        c[i].ndim = (uint32_t)(t ? t->ndim : spec->ndim);
        const size_t *shape = t ? t->shape : spec->shape;
        for (uint32_t d = 0; d < c[i].ndim; d++) {
            c[i].shape[d] = (uint32_t)shape[d];
        }
    }
    if (!ok) {
        kernel_args_free(c, n);
        return bad ? context_fail(ctx, NKI_ERR_ARG,
                                  "a value has an unknown kind, or nests too deep")
                   : context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    *out = c;
    return NKI_OK;
}

static void log_compile(nki_context *ctx, const compile_request *rq, const nki_times *t,
                        nki_status st, const char *why)
{
    double ms = t->parse_ms + t->specialize_ms + t->compile_ms;
    COUNT(ctx, compiles, 1);
    if (st == NKI_OK) {
        LOG(ctx, NKI_LOG_INFO, "compile", {"source", rq->path, 0},
            {"entry", rq->entry ? rq->entry : "", 0}, {"ms", NULL, ms});
    } else {
        COUNT(ctx, compile_failures, 1);
        LOG(ctx, NKI_LOG_WARN, "compile", {"source", rq->path, 0},
            {"entry", rq->entry ? rq->entry : "", 0}, {"ms", NULL, ms},
            {"status", nki_status_name(st), 0}, {"why", why, 0});
    }
}

// Puts the containers of a compile one after the other, where they stay.
static bool join(compile_result *r, nki_kernel *k)
{
    for (uint32_t i = 0; i < r->cores; i++) {
        k->file_len += r->neff_len[i];
    }
    k->file_block = r->cores > 1 || k->ctx->allocator.alloc;
    k->file = k->file_block ? context_block(k->ctx, k->file_len) : r->neff[0];
    if (!k->file) {
        k->file_block = false;
        return false;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < r->cores; i++) {
        k->core[i].neff = k->file + at;
        k->core[i].neff_len = r->neff_len[i];
        if (k->file_block) {
            memcpy(k->file + at, r->neff[i], r->neff_len[i]);
            free(r->neff[i]);
        }
        r->neff[i] = NULL;
        at += r->neff_len[i];
    }
    k->core_count = r->cores;
    return true;
}

nki_status kernel_build(nki_context *ctx, const compile_request *rq, nki_diags *ds,
                        nki_times *times, nki_kernel **out)
{
    compile_result r;
    int64_t begin = trace_begin(ctx);
    nki_status st = compile(rq, ds, &r);
    *times = r.times;
    trace_span(ctx, "compile", rq->entry ? rq->entry : rq->path, begin);
    log_compile(ctx, rq, times, st, r.why);
    if (st != NKI_OK || r.cores == 0) {
        if (st != NKI_OK) {
            context_fail(ctx, st, "%s", r.why);
        }
        compile_result_fini(&r);
        return st;
    }
    nki_kernel *k = kernel_new(ctx);
    if (!k || !join(&r, k)) {
        nki_kernel_release(k);
        compile_result_fini(&r);
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    k->arg_names = r.arg_names;
    k->arg_count = r.arg_count;
    k->sources = r.sources;
    k->absent = r.absent;
    k->absent_bytes = r.absent_bytes;
    double start = clock_ms();
    atomic_store(&k->sound, true);  // the compiler made it
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
    if (!ctx || !src || !out || (!src->path && !src->text) || (arg_count && !args) ||
        !context_alive(ctx)) {
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
    compile_arg *cargs;
    nki_status st = kernel_args(ctx, args, arg_count, &cargs);
    if (st != NKI_OK) {
        return st;
    }
    compile_request rq = context_request(ctx, src);
    rq.entry = entry;
    rq.args = cargs;
    rq.arg_count = arg_count;
    rq.grid = opts->grid;
    rq.rank = opts->rank;
    rq.list = opts->schedule == NKI_SCHEDULE_LIST;
    rq.verify |= opts->verify != 0;
    rq.spill = opts->spill != 0;
    rq.fp32_store = opts->fp32_store != 0;
    rq.dump = opts->dump;
    rq.dump_ctx = opts->dump_ctx;
    rq.dump_stages = opts->dump_stages;
    rq.stop_after = opts->stop_after;
    nki_times times = {0};
    st = kernel_build(ctx, &rq, ds, &times, out);
    if (opts->times) {
        *opts->times = times;
    }
    kernel_args_free(cargs, arg_count);
    return st;
}

// Takes bytes (a context_block of len) over.
static nki_status load_bytes(nki_context *ctx, unsigned char *bytes, size_t len, nki_kernel **out)
{
    nki_kernel *k = kernel_new(ctx);
    if (!k) {
        context_block_free(ctx, bytes, len);
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    k->file = bytes;
    k->file_len = len;
    k->file_block = true;
    k->core_count = neff_parts(bytes, len, COMPILE_CORES_MAX);
    size_t at = 0;
    for (uint32_t i = 0; i < k->core_count; i++) {
        k->core[i].neff = bytes + at;
        k->core[i].neff_len = i + 1 < k->core_count ? neff_file_bytes(bytes + at) : len - at;
        at += k->core[i].neff_len;
    }
    nki_status st = load(k);
    const char *verify = getenv("NKI_VERIFY");
    if (st == NKI_OK && verify && *verify && strcmp(verify, "0") != 0) {
        st = nki_kernel_verify(k);
    }
    if (st != NKI_OK) {
        nki_kernel_release(k);
        return st;
    }
    *out = k;
    return NKI_OK;
}

nki_status nki_kernel_load(nki_context *ctx, const void *neff, size_t len, nki_kernel **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !neff || !out || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    unsigned char *bytes = context_block(ctx, len);
    if (!bytes) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    memcpy(bytes, neff, len);
    return load_bytes(ctx, bytes, len, out);
}

const void *nki_kernel_neff(const nki_kernel *k, size_t *len)
{
    *len = k->file_len;
    return k->file;
}

const char *nki_kernel_name(const nki_kernel *k)
{
    const ir *p = k->core[0].pr->ir;
    return ir_text(p, p->kernel);
}

size_t nki_kernel_param_count(const nki_kernel *k)
{
    return k->param_count;
}

size_t nki_kernel_output_count(const nki_kernel *k)
{
    return k->output_count;
}

nki_status nki_kernel_param(const nki_kernel *k, size_t i, nki_tensor_info *out)
{
    if (!out || i >= k->param_count) {
        return NKI_ERR_ARG;
    }
    *out = k->params[i];
    return NKI_OK;
}

nki_status nki_kernel_output(const nki_kernel *k, size_t i, nki_tensor_info *out)
{
    if (!out || i >= k->output_count) {
        return NKI_ERR_ARG;
    }
    *out = k->outputs[i];
    return NKI_OK;
}

const char *nki_tool_arg_name(const nki_kernel *k, size_t i)
{
    return i < k->arg_count ? k->arg_names[i] : NULL;
}

// Marks the tensors that argument a of instruction parameter type t writes into.
static void mark(const ir *p, param_type t, ir_arg a, uint8_t *tensors)
{
    if (a.kind == IRA_LIST) {
        for (int i = 0; i < a.aux; i++) {
            mark(p, t, p->args.at[a.v + (uint32_t)i], tensors);
        }
    } else if ((t == PT_OUT || t == PT_INOUT) && a.kind == IRA_VIEW) {
        tensors[p->views.at[a.v].tensor] = 1;
    }
}

static uint8_t *find_written(const nki_kernel *k)
{
    uint8_t *params = calloc(k->param_count + 1, 1);
    for (uint32_t core = 0; params && core < k->core_count; core++) {
        const ir *p = k->core[core].pr->ir;
        uint8_t *tensors = calloc(p->tensors.n + 1, 1);
        if (!tensors) {
            free(params);
            return NULL;
        }
        for (uint32_t n = 0; n < p->instrs.n; n++) {
            const ir_instr *in = &p->instrs.at[n];
            const isa_info *info = &isa_table[in->op];
            for (uint32_t a = 0; a < in->nargs; a++) {
                mark(p, (param_type)info->params[a].type, p->args.at[in->args + a], tensors);
            }
        }
        for (size_t i = 0; i < k->param_count; i++) {
            params[i] |= tensors[p->params.at[i].tensor];
        }
        free(tensors);
    }
    return params;
}

const uint8_t *kernel_written(nki_kernel *k)
{
    uint8_t *w = atomic_load_explicit(&k->written, memory_order_acquire), *none = NULL;
    if (!w && (w = find_written(k)) && !atomic_compare_exchange_strong(&k->written, &none, w)) {
        free(w);
        w = none;
    }
    return w;
}

int nki_tool_param_written(const nki_kernel *k, size_t i)
{
    nki_kernel *own = (nki_kernel *)(uintptr_t)k;  // fills in what can be found at any time
    const uint8_t *w = i < k->param_count ? kernel_written(own) : NULL;
    return w && w[i];
}

// All of f as a context_block of exactly *len. A file is read and not mapped: another process that
// cuts it short would end this one.
static nki_status read_file(nki_context *ctx, FILE *f, const char *path, unsigned char **bytes,
                            size_t *len)
{
    struct stat sb;
    size_t cap = fstat(fileno(f), &sb) == 0 && S_ISREG(sb.st_mode) ? (size_t)sb.st_size : 0;
    cap = cap < FILE_MIN_BYTES ? FILE_MIN_BYTES : cap;
    unsigned char *at = context_block(ctx, cap);
    size_t n = 0, got = 1;
    while (at && got) {
        if (n == cap) {
            int next = fgetc(f);
            if (next == EOF) {
                break;
            }
            unsigned char *more = cap > SIZE_MAX / 4 ? NULL : context_block(ctx, cap * 2);
            if (more) {
                memcpy(more, at, n);
                more[n++] = (unsigned char)next;
            }
            context_block_free(ctx, at, cap);
            at = more;
            cap *= 2;
            continue;
        }
        got = fread(at + n, 1, cap - n, f);
        n += got;
    }
    int bad = at && ferror(f) ? errno : 0;
    unsigned char *exact = NULL;
    if (at && !bad && n != cap) {
        exact = context_block(ctx, n);
        if (exact) {
            memcpy(exact, at, n);
        }
        context_block_free(ctx, at, cap);
        at = exact;
    } else if (bad) {
        context_block_free(ctx, at, cap);
        return context_fail(ctx, NKI_ERR_IO, "cannot read '%s': %s", path, strerror(bad));
    }
    *bytes = at;
    *len = n;
    return at ? NKI_OK : context_fail(ctx, NKI_ERR_NOMEM, "out of memory for '%s'", path);
}

nki_status nki_kernel_load_file(nki_context *ctx, const char *path, nki_kernel **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !path || !out || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    FILE *f = fopen(path, "rb");
    if (!f) {
        return context_fail(ctx, NKI_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    }
    unsigned char *bytes = NULL;
    size_t len = 0;
    nki_status st = read_file(ctx, f, path, &bytes, &len);
    fclose(f);
    if (st == NKI_OK) {
        st = load_bytes(ctx, bytes, len, out);
    }
    if (st == NKI_ERR_FORMAT) {
        context_fail(ctx, st, "'%s': %s", path, nki_context_error(ctx));
    }
    return st;
}
