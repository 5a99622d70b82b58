#include "driver/compile.h"

#include "driver/clock.h"
#include "driver/loader.h"
#include "lower/launch.h"
#include "neff/neff.h"
#include "parser/parse.h"
#include "sched/place.h"
#include "sched/program_text.h"
#include "sched/verify_schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// One compile: everything it makes lives in mem, whose oom jump ends in compile().
typedef struct session {
    const compile_request *rq;
    compile_result *out;
    arena mem;
    jmp_buf oom;
    intern names;
    loader ld;
    diags ds;
    lower_arg *args;
    bool stopped;  // stop_after was reached
    nki_status st;
} session;

static void fail(session *s, nki_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(session *s, nki_status st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->out->why, sizeof s->out->why, fmt, ap);
    va_end(ap);
    s->st = st;
}

// Whether the comma list holds the word.
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p && *p;) {
        size_t len = strcspn(p, ",");
        if (len == n && memcmp(p, word, n) == 0) {
            return true;
        }
        p += len + (p[len] == ',');
    }
    return false;
}

static bool wants(const session *s, const char *stage)
{
    return s->rq->dump && listed(s->rq->dump_stages, stage);
}

static void dump(session *s, const char *stage, const textbuf *t)
{
    s->rq->dump(s->rq->dump_ctx, stage, t->len ? t->at : "", t->len);
}

// True when the compile ends after this stage: it was asked to, or the stage recorded errors.
static bool ends(session *s, const char *stage)
{
    if (s->ds.errors) {
        s->st = NKI_ERR_DIAG;
        return true;
    }
    s->stopped = s->rq->stop_after && strcmp(s->rq->stop_after, stage) == 0;
    return s->stopped;
}

static const loaded_module *parse(session *s)
{
    const compile_request *rq = s->rq;
    const loaded_module *entry = NULL;
    const char *why = NULL;
    s->st = loader_open(&s->ld, rq->path, rq->text, rq->text_len, &s->ds, &entry, &why);
    if (s->st != NKI_OK) {
        fail(s, s->st, "%s", why);
        return NULL;
    }
    if (wants(s, "ast") && !s->ds.errors) {
        textbuf t;
        text_init(&t, &s->mem);
        ast_print(entry->ast, &t);
        dump(s, "ast", &t);
    }
    return ends(s, "ast") || ends(s, "parse") ? NULL : entry;
}

// The parameters of the kernel that will be chosen, when that can be told from the syntax.
static const ast *params_of(session *s, const loaded_module *entry)
{
    kernel_info found[64];
    uint32_t n = kernels_of(entry->ast, found, 64);
    for (uint32_t i = 0; i < n && i < 64; i++) {
        if (s->rq->entry ? strcmp(found[i].name, s->rq->entry) == 0 : n == 1) {
            return found[i].params;
        }
    }
    for (const ast *d = s->rq->entry ? entry->ast->body : NULL; d; d = d->next) {
        if (d->kind == AST_DEF && strcmp(d->u.def.id->text, s->rq->entry) == 0) {
            return d->u.def.params;
        }
    }
    return NULL;
}

// Records which parameter each argument is for.
static bool name_args(session *s, const loaded_module *entry)
{
    const ast *p = params_of(s, entry);
    for (size_t i = 0; i < s->rq->arg_count; i++) {
        const char *name = s->rq->args[i].name;
        if (!name && p && p->u.param.id && p->op <= PARAM_NORMAL) {
            name = p->u.param.id->text;
            p = p->next;
        }
        if (name && !(s->out->arg_names[i] = strdup(name))) {
            fail(s, NKI_ERR_NOMEM, "out of memory");
            return false;
        }
    }
    return true;
}

static bool bind_args(session *s)
{
    const compile_request *rq = s->rq;
    s->args = NEW_N(&s->mem, lower_arg, rq->arg_count);
    for (size_t i = 0; i < rq->arg_count; i++) {
        const compile_arg *a = &rq->args[i];
        lower_arg *l = &s->args[i];
        l->name = a->name;
        l->is_tensor = !a->expr;
        if (!a->expr) {
            l->type = a->type;
            l->ndim = a->ndim;
            memcpy(l->shape, a->shape, sizeof l->shape);
            continue;
        }
        source *src = NEW(&s->mem, source);
        const char *shown = a->name ? arena_printf(&s->mem, "<value of %s>", a->name)
                                    : arena_printf(&s->mem, "<value %zu>", i + 1);
        size_t len = strlen(a->expr);
        *src = (source){shown, arena_text(&s->mem, a->expr, len), (uint32_t)len};
        ast *e = NULL;
        parse_expression(src, &s->mem, &s->names, &s->ds, &e);
        l->expr = e;
        l->expr_src = src;
    }
    if (s->ds.errors) {
        s->st = NKI_ERR_DIAG;
    }
    return s->st == NKI_OK;
}

static void dump_ir(session *s, const char *stage, const ir *p)
{
    if (wants(s, stage)) {
        textbuf t;
        text_init(&t, &s->mem);
        ir_print(p, &t);
        dump(s, stage, &t);
    }
}

static bool verify(session *s, const ir *p, const char *after)
{
    const char *wrong = ir_verify(p, &s->mem);
    if (wrong) {
        fail(s, NKI_ERR_INTERNAL, "internal error in nki: after %s the program is not sound: %s",
             after, wrong);
    }
    return !wrong;
}

// Each stream's instructions with their waits and signals.
static void dump_streams(session *s, const program *pr)
{
    if (wants(s, "sched")) {
        textbuf t;
        text_init(&t, &s->mem);
        program_print(pr, &t);
        dump(s, "sched", &t);
    }
}

// Whether ds has this diagnostic already: what both programs of a launch say is said once.
static bool is_known(const diags *ds, const diag *d)
{
    for (const diag *e = ds->first; e; e = e->next) {
        if (e->id == d->id && e->at.src == d->at.src && e->at.at.lo == d->at.at.lo &&
            strcmp(e->text, d->text) == 0) {
            return true;
        }
    }
    return false;
}

// The program of one core of the grid; NULL when the compile ends here.
static ir *specialize_core(session *s, const loaded_module *entry, uint32_t core)
{
    const compile_request *rq = s->rq;
    module_loader imports = loader_interface(&s->ld);
    lower_opts lo = {.target = rq->target,
                     .grid = rq->grid,
                     .core = core,
                     .rank = rq->rank,
                     .loader = &imports,
                     .env = rq->env,
                     .env_n = rq->env_count,
                     .fp32_store = rq->fp32_store,
                     .step_limit = rq->step_limit,
                     .print = core == 0 ? rq->print : NULL,
                     .print_ctx = rq->print_ctx,
                     .names = &s->names};
    diags own;
    diags_init(&own, &s->mem);
    own.policy = s->ds.policy;
    double start = clock_ms(), parse_ms = s->ld.parse_ms;
    ir *p = specialize(&s->mem, &lo, entry, rq->entry, s->args, (uint32_t)rq->arg_count,
                       core == 0 ? &s->ds : &own);
    s->out->times.specialize_ms += clock_ms() - start - (s->ld.parse_ms - parse_ms);
    for (diag *d = own.first, *next; core && d; d = next) {
        next = d->next;
        if (!is_known(&s->ds, d)) {
            diags_adopt(&s->ds, d);
        }
    }
    if (p && !s->ds.errors) {
        dump_ir(s, "ir", p);
    }
    if (s->ds.errors) {
        s->st = NKI_ERR_DIAG;
        return NULL;
    }
    return verify(s, p, "specialize") ? p : NULL;
}

// The proof that no interleaving of the streams breaks the program.
static bool prove(session *s, const program *pr)
{
#ifdef NKI_VERIFY_SCHEDULE
    bool wanted = true;
#else
    bool wanted = s->rq->verify;
#endif
    const char *wrong = wanted ? schedule_verify(pr, &s->mem) : NULL;
    if (wrong) {
        fail(s, NKI_ERR_INTERNAL, "internal error in nki: the schedule is not sound: %s", wrong);
    }
    return !wrong;
}

static void schedule_core(session *s, ir *p, uint32_t core)
{
    double start = clock_ms();
    sched_opts so = {.list = s->rq->list, .spill = s->rq->spill};
    program *pr = schedule(&s->mem, p, &so, &s->ds);
    if (pr && !s->ds.errors) {
        dump_ir(s, "placed", pr->ir);
    }
    if (ends(s, "placed") || !verify(s, pr->ir, "schedule")) {
        return;
    }
    dump_streams(s, pr);
    if (!prove(s, pr) || ends(s, "sched")) {
        return;
    }
    s->out->neff[core] = neff_write(pr, &s->out->neff_len[core]);
    if (!s->out->neff[core]) {
        fail(s, NKI_ERR_NOMEM, "out of memory");
    }
    s->out->times.compile_ms += clock_ms() - start;
}

// The compiler: every stage is a call, each with a dump and a check. The programs of a launch are
// specialized one after the other, then joined.
static void compile_cores(session *s, const loaded_module *entry, uint32_t cores)
{
    ir *p[COMPILE_CORES_MAX] = {0};
    for (uint32_t core = 0; core < cores; core++) {
        p[core] = specialize_core(s, entry, core);
        if (!p[core]) {
            return;
        }
    }
    if (cores == 2 && !launch_link(&s->mem, p, &s->ds)) {
        s->st = NKI_ERR_DIAG;
        return;
    }
    if (ends(s, "ir")) {
        return;
    }
    for (uint32_t core = 0; core < cores && s->st == NKI_OK; core++) {
        schedule_core(s, p[core], core);
    }
}

static bool keep_sources(session *s)
{
    const source *src;
    const char *path = NULL;
    for (size_t i = 0; (src = loader_source_at(&s->ld, i, &path)); i++) {
        size_t pl = strlen(path) + 1, nl = strlen(src->name) + 1;
        compile_source *c = malloc(sizeof *c + pl + nl + src->len + 1);
        if (!c) {
            fail(s, NKI_ERR_NOMEM, "out of memory");
            return false;
        }
        char *at = (char *)(c + 1);
        memcpy(at, path, pl);
        memcpy(at + pl, src->name, nl);
        memcpy(at + pl + nl, src->text, src->len);
        at[pl + nl + src->len] = '\0';
        *c = (compile_source){s->out->sources, at, {at + pl, at + pl + nl, src->len}};
        s->out->sources = c;
    }
    return true;
}

static bool keep_absent(session *s)
{
    size_t n = 0;
    const loader_absent *first = s->ld.searched ? s->ld.absent : NULL;
    for (const loader_absent *a = first; a; a = a->next) {
        n += strlen(a->path) + 1;
    }
    char *at = s->out->absent = malloc(n ? n : 1);
    if (!at) {
        fail(s, NKI_ERR_NOMEM, "out of memory");
        return false;
    }
    s->out->absent_bytes = n;
    for (const loader_absent *a = first; a; a = a->next) {
        size_t len = strlen(a->path) + 1;
        memcpy(at, a->path, len);
        at += len;
    }
    return true;
}

static void compile_all(session *s)
{
    const loaded_module *entry = parse(s);
    if (!entry || !name_args(s, entry) || !bind_args(s)) {
        return;
    }
    uint32_t cores = s->rq->grid > 1 ? s->rq->grid : 1;
    compile_cores(s, entry, cores);
    if (s->st == NKI_OK && !s->stopped && keep_sources(s) && keep_absent(s)) {
        s->out->cores = cores;
    }
}

static void parse_only(session *s)
{
    const loaded_module *entry = parse(s);
    if (!entry) {
        return;
    }
    uint32_t n = kernels_of(entry->ast, NULL, 0);
    kernel_info *k = NEW_N(&s->mem, kernel_info, n);
    kernels_of(entry->ast, k, n);
    s->rq->found(s->rq->found_ctx, k, n);
}

// Out of memory: the machine's, or the compile's own limit.
static void out_of_memory(session *s)
{
    size_t limit = s->rq->memory_limit_bytes;
    if (s->ld.fd >= 0) {
        close(s->ld.fd);
    }
    if (limit && s->mem.used_bytes > limit / 2) {
        fail(s, NKI_ERR_LIMIT, "compiling '%s' needs more than the memory limit of %zu MiB",
             s->rq->path, limit >> 20);
    } else {
        fail(s, NKI_ERR_NOMEM, "out of memory while compiling '%s'", s->rq->path);
    }
}

nki_status compile(const compile_request *rq, nki_diags *ds, compile_result *out)
{
    *out = (compile_result){0};
    session *s = calloc(1, sizeof *s);
    out->arg_names = calloc(rq->arg_count + 1, sizeof *out->arg_names);
    if (!s || !out->arg_names) {
        free(s);
        snprintf(out->why, sizeof out->why, "out of memory");
        return NKI_ERR_NOMEM;
    }
    out->arg_count = rq->arg_count;
    s->rq = rq;
    s->out = out;
    s->st = NKI_OK;
    s->ld.fd = -1;
    arena_init(&s->mem, rq->memory_limit_bytes, &s->oom);
    s->mem.from = rq->allocator;
    if (setjmp(s->oom)) {
        out_of_memory(s);
    } else {
        intern_init(&s->names, &s->mem);
        diags_init(&s->ds, &s->mem);
        s->ds.policy = rq->policy;
        loader_init(&s->ld, &s->mem, &s->names, rq->roots, rq->root_count);
        s->ld.resolve = rq->resolve;
        s->ld.resolve_ctx = rq->resolve_ctx;
        if (rq->found) {
            parse_only(s);
        } else {
            compile_all(s);
        }
    }
    out->times.parse_ms = s->ld.parse_ms;
    if (diag_store_take(ds, &s->ds) != NKI_OK && s->st == NKI_OK) {
        fail(s, NKI_ERR_NOMEM, "out of memory");
    }
    if (s->st == NKI_ERR_DIAG && s->ds.first) {
        snprintf(out->why, sizeof out->why, "%s: %u error%s, first: %s", rq->path, s->ds.errors,
                 s->ds.errors == 1 ? "" : "s", s->ds.first->text);
    }
    nki_status st = s->st;
    arena_fini(&s->mem);
    free(s);
    return st;
}

void compile_result_fini(compile_result *r)
{
    for (size_t i = 0; i < COMPILE_CORES_MAX; i++) {
        free(r->neff[i]);
    }
    for (size_t i = 0; i < r->arg_count; i++) {
        free(r->arg_names[i]);
    }
    free(r->arg_names);
    free(r->absent);
    for (compile_source *c = r->sources; c;) {
        compile_source *next = c->next;
        free(c);
        c = next;
    }
    *r = (compile_result){0};
}
