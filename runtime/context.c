#include "runtime/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t DEFAULT_MEMORY_LIMIT_BYTES = (size_t)8 << 30;

nki_status context_fail(nki_context *ctx, nki_status st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&ctx->lock);
    vsnprintf(ctx->error, sizeof ctx->error, fmt, ap);
    pthread_mutex_unlock(&ctx->lock);
    va_end(ap);
    return st;
}

static const char *copy(arena *mem, const char *s)
{
    return s ? arena_text(mem, s, strlen(s)) : NULL;
}

static const char *const *copy_list(arena *mem, const char *const *list, size_t n)
{
    const char **at = NEW_N(mem, const char *, n);
    for (size_t i = 0; i < n; i++) {
        at[i] = copy(mem, list[i]);
    }
    return at;
}

// Copies what the options point to.
static void own(nki_context *ctx)
{
    nki_context_opts *o = &ctx->opts;
    o->target = ctx->target->name;
    o->import_roots = copy_list(&ctx->mem, o->import_roots, o->import_root_count);
    o->warnings = copy_list(&ctx->mem, o->warnings, o->warning_count);
    lower_env *env = NEW_N(&ctx->mem, lower_env, o->env_count);
    nki_env *pub = NEW_N(&ctx->mem, nki_env, o->env_count);
    for (size_t i = 0; i < o->env_count; i++) {
        env[i] = (lower_env){copy(&ctx->mem, o->env[i].name), copy(&ctx->mem, o->env[i].value)};
        pub[i] = (nki_env){env[i].name, env[i].value};
    }
    o->env = pub;
}

static const char *check(const nki_context_opts *o)
{
    if (o->size != sizeof *o) {
        return "nki_context_opts has a size that this library does not know";
    }
    if ((o->import_root_count && !o->import_roots) || (o->env_count && !o->env) ||
        (o->warning_count && !o->warnings)) {
        return "a list in nki_context_opts is NULL";
    }
    for (size_t i = 0; i < o->import_root_count; i++) {
        if (!o->import_roots[i]) {
            return "an import root is NULL";
        }
    }
    for (size_t i = 0; i < o->env_count; i++) {
        if (!o->env[i].name || !o->env[i].value) {
            return "an environment entry has no name or value";
        }
    }
    return NULL;
}

static nki_status setup(nki_context *ctx, const char **why)
{
    const nki_context_opts *o = &ctx->opts;
    *why = check(o);
    if (*why) {
        return NKI_ERR_ARG;
    }
    ctx->target = target_find(o->target ? o->target : "trn2");
    if (!ctx->target) {
        *why = "unknown target; there are trn1 (gen2), trn2 (gen3) and trn3 (gen4)";
        return NKI_ERR_ARG;
    }
    for (size_t i = 0; i < o->warning_count; i++) {
        if (!o->warnings[i] || !diag_store_policy(&ctx->policy, o->warnings[i])) {
            *why = "unknown warning; `nki explain` lists them";
            return NKI_ERR_ARG;
        }
    }
    if (setjmp(ctx->oom)) {
        *why = "out of memory";
        return NKI_ERR_NOMEM;
    }
    own(ctx);
    return NKI_OK;
}

nki_status nki_context_create(const nki_context_opts *opts, nki_context **out, const char **why)
{
    static const nki_context_opts defaults = NKI_CONTEXT_OPTS_INIT;
    const char *dropped;
    why = why ? why : &dropped;
    *why = "out is NULL";
    if (!out) {
        return NKI_ERR_ARG;
    }
    *out = NULL;
    nki_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx) {
        *why = "out of memory";
        return NKI_ERR_NOMEM;
    }
    atomic_init(&ctx->refs, 1);
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_mutex_init(&ctx->core_lock, NULL);
    hostmem_init(&ctx->tensors);
    arena_init(&ctx->mem, 0, &ctx->oom);
    arena_init(&ctx->parse_mem, 0, &ctx->oom);
    ctx->opts = opts ? *opts : defaults;
    nki_status st = setup(ctx, why);
    if (st != NKI_OK) {
        nki_context_release(ctx);
        return st;
    }
    *out = ctx;
    return NKI_OK;
}

nki_context *nki_context_retain(nki_context *ctx)
{
    atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
    return ctx;
}

void nki_context_release(nki_context *ctx)
{
    if (!ctx || atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < COMPILE_CORES_MAX; i++) {
        if (ctx->core[i]) {
            device_core_release(ctx->core[i]);
        }
    }
    arena_fini(&ctx->mem);
    arena_fini(&ctx->parse_mem);
    pthread_mutex_destroy(&ctx->lock);
    pthread_mutex_destroy(&ctx->core_lock);
    hostmem_fini(&ctx->tensors);
    free(ctx);
}

const char *nki_context_target(const nki_context *ctx)
{
    return ctx->target->name;
}

const char *nki_context_error(const nki_context *ctx)
{
    return ctx->error;
}

nki_status context_cores(nki_context *ctx, uint32_t n)
{
    bool made = true;
    pthread_mutex_lock(&ctx->core_lock);
    for (uint32_t i = 0; i < n; i++) {
        if (!ctx->core[i]) {
            ctx->core[i] = device_core_create(ctx->target);
        }
        made = made && ctx->core[i];
    }
    pthread_mutex_unlock(&ctx->core_lock);
    return made ? NKI_OK
                : context_fail(ctx, NKI_ERR_NOMEM, "out of memory for the core's memories");
}

// lower_env and nki_env have the same members; the list is rebuilt where it is used.
_Static_assert(sizeof(lower_env) == sizeof(nki_env), "one environment entry");

compile_request context_request(const nki_context *ctx, const nki_source *src)
{
    const nki_context_opts *o = &ctx->opts;
    return (compile_request){
        .path = src->path ? src->path : "<string>",
        .text = src->text,
        .text_len = src->len,
        .target = ctx->target,
        .roots = o->import_roots,
        .root_count = o->import_root_count,
        .env = (const lower_env *)(const void *)o->env,
        .env_count = (uint32_t)o->env_count,
        .policy = &ctx->policy,
        .memory_limit_bytes =
            o->memory_limit_bytes ? o->memory_limit_bytes : DEFAULT_MEMORY_LIMIT_BYTES,
        .step_limit = o->step_limit,
        .print = o->print,
        .print_ctx = o->print_ctx,
    };
}
