#include "runtime/context.h"

#include "runtime/cache.h"
#include "runtime/host.h"
#include "runtime/log.h"
#include "runtime/queue.h"
#include "runtime/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t DEFAULT_MEMORY_LIMIT_BYTES = (size_t)8 << 30;

// ---- errors: one sentence a thread, so that threads sharing a context do not see each other's

static _Thread_local struct {
    uint64_t serial;  // of the context it is about
    char text[CONTEXT_ERROR_BYTES];
} last;

nki_status context_fail(nki_context *ctx, nki_status st, const char *fmt, ...)
{
    char text[CONTEXT_ERROR_BYTES];  // an argument may be the last sentence
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    last.serial = ctx->serial;
    memcpy(last.text, text, sizeof text);
    return st;
}

const char *nki_context_error(const nki_context *ctx)
{
    return ctx && last.serial == ctx->serial ? last.text : "";
}

// ---- fork

static _Atomic uint32_t generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

uint32_t context_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

bool context_alive(nki_context *ctx)
{
    if (ctx->generation == context_generation()) {
        return true;
    }
    context_fail(ctx, NKI_ERR_ARG, "the context was made before fork(), in the parent process");
    return false;
}

// ---- memory

void *context_alloc(nki_context *ctx, size_t size_bytes)
{
    const nki_allocator *a = &ctx->allocator;
    if (!a->alloc) {
        return calloc(1, size_bytes);
    }
    void *p = a->alloc(a->alloc_ctx, size_bytes, _Alignof(max_align_t));
    return p ? memset(p, 0, size_bytes) : NULL;
}

void context_free(nki_context *ctx, void *p, size_t size_bytes)
{
    const nki_allocator *a = &ctx->allocator;
    if (!a->alloc) {
        free(p);
    } else if (p) {
        a->release(a->alloc_ctx, p, size_bytes, _Alignof(max_align_t));
    }
}

void *context_block(nki_context *ctx, size_t size_bytes)
{
    const nki_allocator *a = &ctx->allocator;
    size_t room = size_bytes ? size_bytes : 1;
    return a->alloc ? a->alloc(a->alloc_ctx, room, HOSTMEM_ALIGN_BYTES)
                    : hostmem_take(&ctx->tensors, size_bytes);
}

void context_block_free(nki_context *ctx, void *p, size_t size_bytes)
{
    const nki_allocator *a = &ctx->allocator;
    if (!a->alloc) {
        hostmem_give(&ctx->tensors, p, size_bytes);
    } else if (p) {
        a->release(a->alloc_ctx, p, size_bytes ? size_bytes : 1, HOSTMEM_ALIGN_BYTES);
    }
}

void *context_take(nki_context *ctx, size_t size_bytes)
{
    void *p = context_block(ctx, size_bytes);
    if (p) {
        uint64_t now = COUNT(ctx, tensor_bytes, size_bytes) + size_bytes;
        uint64_t peak = atomic_load_explicit(&ctx->count.tensor_bytes_peak, memory_order_relaxed);
        while (now > peak &&
               !atomic_compare_exchange_weak_explicit(&ctx->count.tensor_bytes_peak, &peak, now,
                                                      memory_order_relaxed, memory_order_relaxed)) {
        }
    }
    return p;
}

void context_give(nki_context *ctx, void *p, size_t size_bytes)
{
    COUNT(ctx, tensor_bytes, -(uint64_t)size_bytes);
    context_block_free(ctx, p, size_bytes);
}

// ---- making

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
    if (o->allocator && (!o->allocator->alloc || !o->allocator->release)) {
        return "the allocator lacks a function";
    }
    if (o->device_count > QUEUE_DEVICES_MAX) {
        return "too many devices";
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
    if (o->allocator) {
        ctx->allocator = *o->allocator;
        ctx->opts.allocator = NULL;
        ctx->mem.from = ctx->parse_mem.from = &ctx->allocator;
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
    *why = "out of memory";
    ctx->cache = cache_create(o->cache_bytes);
    if (o->threads > 1 && !(ctx->pool = device_pool_create(o->threads))) {
        return NKI_ERR_NOMEM;
    }
    if (!ctx->cache || log_create(o, &ctx->log) != NKI_OK ||
        queue_create(ctx, &ctx->queue) != NKI_OK) {
        return NKI_ERR_NOMEM;
    }
    *why = NULL;
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
    static _Atomic uint64_t contexts;
    pthread_once(&fork_once, watch_forks);
    atomic_init(&ctx->refs, 1);
    ctx->serial = atomic_fetch_add(&contexts, 1) + 1;
    ctx->generation = context_generation();
    pthread_mutex_init(&ctx->lock, NULL);
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
    if (!ctx || atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) != 1 ||
        ctx->generation != context_generation()) {
        return;  // a child's copy of its parent's context may hold any lock, so it stays
    }
    queue_release(ctx->queue);
    device_pool_release(ctx->pool);
    cache_release(ctx->cache);
    host_release_all(ctx);
    trace_release(atomic_load(&ctx->trace));
    hostmem_fini(&ctx->tensors);
    log_release(ctx->log);
    arena_fini(&ctx->mem);
    arena_fini(&ctx->parse_mem);
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

const char *nki_context_target(const nki_context *ctx)
{
    return ctx->target->name;
}

nki_status nki_context_counters(const nki_context *ctx, nki_counters *out)
{
    if (!ctx || !out || out->size != sizeof *out) {
        return NKI_ERR_ARG;
    }
#define READ(name, meaning)                                                                        \
    out->name = atomic_load_explicit(&ctx->count.name, memory_order_relaxed);
    NKI_COUNTER_LIST(READ)
#undef READ
    return NKI_OK;
}

// lower_env and nki_env have the same members; the list is rebuilt where it is used.
_Static_assert(sizeof(lower_env) == sizeof(nki_env), "one environment entry");

compile_request context_request(const nki_context *ctx, const nki_source *src)
{
    const nki_context_opts *o = &ctx->opts;
    const char *verify = getenv("NKI_VERIFY");
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
        .allocator = &ctx->allocator,
        .print = o->print,
        .print_ctx = o->print_ctx,
        .resolve = o->resolve,
        .resolve_ctx = o->resolve_ctx,
        .verify = verify && *verify && strcmp(verify, "0") != 0,
    };
}
