#include "runtime/cache.h"

#include "base/intern.h"
#include "runtime/kernel.h"
#include "runtime/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BUCKETS = 1024, MISSES_KEPT = 64 };
static const size_t DEFAULT_LIMIT_BYTES = (size_t)256 << 20;

// A path that the compile looked at, as it was then.
typedef struct cache_file {
    bool absent;  // nothing was there; what follows is not used but path
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
    const char *path;  // in the kernel
} cache_file;

typedef struct entry {
    struct entry *chain;          // of its bucket
    struct entry *newer, *older;  // by use; ready entries only
    compile_digest key;
    nki_kernel *k;  // NULL: being compiled
    size_t size_bytes;
    cache_file *files;
    size_t file_count;
    uint32_t waiting;
    bool gone;        // no longer in the table: the last who waited frees it
    failure *failed;  // of the compile that was waited for
} entry;

// A request that was compiled, by parts.
typedef struct miss {
    uint32_t path;  // hash
    uint64_t part[PART_COUNT];
} miss;

struct cache {
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t limit_bytes, used_bytes;
    entry *bucket[BUCKETS];
    entry *newest, *oldest;
    miss misses[MISSES_KEPT];  // the latest
    size_t miss_count, next_miss;
};

cache *cache_create(size_t limit_bytes)
{
    cache *c = calloc(1, sizeof *c);
    if (c) {
        c->limit_bytes = limit_bytes ? limit_bytes : DEFAULT_LIMIT_BYTES;
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->done, NULL);
    }
    return c;
}

static void entry_free(entry *e)
{
    failure_release(e->failed);
    free(e->files);
    free(e);
}

void cache_release(cache *c)
{
    for (size_t i = 0; c && i < BUCKETS; i++) {
        for (entry *e = c->bucket[i]; e;) {
            entry *next = e->chain;
            kernel_free(e->k);  // nobody else has it: it would hold the context
            entry_free(e);
            e = next;
        }
    }
    if (c) {
        pthread_mutex_destroy(&c->lock);
        pthread_cond_destroy(&c->done);
        free(c);
    }
}

static entry **slot_of(cache *c, compile_digest key)
{
    entry **at = &c->bucket[key.lo % BUCKETS];
    while (*at && ((*at)->key.lo != key.lo || (*at)->key.hi != key.hi)) {
        at = &(*at)->chain;
    }
    return at;
}

static void unlink_use(cache *c, entry *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
    e->newer = e->older = NULL;
}

static void link_use(cache *c, entry *e)
{
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

// Takes a ready entry out. A kernel that others have lives until they give it back.
static void drop(nki_context *ctx, entry *e)
{
    cache *c = ctx->cache;
    *slot_of(c, e->key) = e->chain;
    unlink_use(c, e);
    c->used_bytes -= e->size_bytes;
    COUNT(ctx, cache_bytes, -(uint64_t)e->size_bytes);
    e->k->cached = false;
    if (atomic_load_explicit(&e->k->refs, memory_order_acquire) == 0) {
        kernel_free(e->k);
    }
    e->k = NULL;
    e->gone = true;
    if (e->waiting == 0) {
        entry_free(e);
    }
}

static void evict(nki_context *ctx)
{
    cache *c = ctx->cache;
    for (entry *e = c->oldest; e && c->used_bytes > c->limit_bytes;) {
        entry *next = e->newer;
        if (atomic_load_explicit(&e->k->refs, memory_order_acquire) == 0) {
            COUNT(ctx, cache_evictions, 1);
            LOG(ctx, NKI_LOG_INFO, "evict", {"kernel", nki_kernel_name(e->k), 0},
                {"bytes", NULL, (double)e->size_bytes});
            drop(ctx, e);
        }
        e = next;
    }
}

void cache_give_back(nki_kernel *k)
{
    // Not the last reference: no lock.
    unsigned n = atomic_load_explicit(&k->refs, memory_order_relaxed);
    while (n > 1) {
        if (atomic_compare_exchange_weak_explicit(&k->refs, &n, n - 1, memory_order_release,
                                                  memory_order_relaxed)) {
            return;
        }
    }
    nki_context *ctx = k->ctx;
    cache *c = ctx->cache;
    pthread_mutex_lock(&c->lock);
    bool last = atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) == 1;
    if (last && !k->cached) {
        kernel_free(k);
    } else if (last) {
        evict(ctx);
    }
    pthread_mutex_unlock(&c->lock);
    if (last) {
        nki_context_release(ctx);
    }
}

// ---- files

static bool look(const char *path, cache_file *f)
{
    struct stat sb;
    if (stat(path, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        return false;
    }
    *f = (cache_file){false, sb.st_dev, sb.st_ino, sb.st_size, sb.st_mtim, path};
    return true;
}

// The imported files and what an import did not find; the entry's text is in the key.
static bool note_files(entry *e, const compile_request *rq)
{
    const char *absent = e->k->absent, *end = absent + e->k->absent_bytes;
    size_t n = 0;
    for (const compile_source *s = e->k->sources; s; s = s->next) {
        n++;
    }
    for (const char *p = absent; p < end; p += strlen(p) + 1) {
        n++;
    }
    e->files = calloc(n + 1, sizeof *e->files);
    for (const compile_source *s = e->k->sources; e->files && s; s = s->next) {
        bool entry_file = strcmp(s->src.name, rq->path) == 0;
        e->file_count += !entry_file && look(s->src.name, &e->files[e->file_count]);
    }
    for (const char *p = absent; e->files && p < end; p += strlen(p) + 1) {
        e->files[e->file_count++] = (cache_file){.absent = true, .path = p};
    }
    return e->files != NULL;
}

static bool as_it_was(const cache_file *a)
{
    cache_file b;
    struct stat sb;
    if (a->absent) {
        return stat(a->path, &sb) != 0;
    }
    return look(a->path, &b) && a->dev == b.dev && a->ino == b.ino && a->size == b.size &&
           a->mtime.tv_sec == b.mtime.tv_sec && a->mtime.tv_nsec == b.mtime.tv_nsec;
}

// The first path that is not as it was; NULL: none.
static const cache_file *changed(const entry *e)
{
    for (size_t i = 0; i < e->file_count; i++) {
        if (!as_it_was(&e->files[i])) {
            return &e->files[i];
        }
    }
    return NULL;
}

// ---- why something is not there

// Remembers the request; `why` says how it differs from the one before it of that source's name.
// The lock is held.
static void explain(cache *c, const compile_request *rq, char *why, size_t room)
{
    miss now = {.path = hash_bytes(rq->path, strlen(rq->path))};
    const miss *best = NULL;
    int fewest = PART_COUNT + 1;
    compile_parts(rq, now.part);
    for (size_t i = 0; i < c->miss_count; i++) {
        const miss *m = &c->misses[(c->next_miss + MISSES_KEPT - 1 - i) % MISSES_KEPT];
        int differ = 0;
        for (int k = 0; k < PART_COUNT; k++) {
            differ += m->part[k] != now.part[k];
        }
        if (m->path == now.path && m->part[PART_ENTRY] == now.part[PART_ENTRY] && differ < fewest) {
            fewest = differ;
            best = m;
        }
    }
    size_t n = (size_t)snprintf(why, room, "%s",
                                !best         ? "not seen before"
                                : fewest == 0 ? "dropped since it was compiled"
                                              : "others: ");
    for (int k = 0; best && k < PART_COUNT && n < room; k++) {
        if (best->part[k] != now.part[k]) {
            n += (size_t)snprintf(why + n, room - n, "%s%s", why[n - 1] == ' ' ? "" : "; ",
                                  compile_part_words[k]);
        }
    }
    c->misses[c->next_miss] = now;
    c->next_miss = (c->next_miss + 1) % MISSES_KEPT;
    c->miss_count += c->miss_count < MISSES_KEPT;
}

// ---- getting

// A ready entry's kernel, for the caller.
static nki_kernel *take(nki_context *ctx, entry *e)
{
    unlink_use(ctx->cache, e);
    link_use(ctx->cache, e);
    if (atomic_fetch_add_explicit(&e->k->refs, 1, memory_order_relaxed) == 0) {
        nki_context_retain(ctx);
    }
    return e->k;
}

// Waits for another's compile of the key. The lock is held. NULL: look again.
static failure *wait_for(nki_context *ctx, entry *e)
{
    COUNT(ctx, cache_waits, 1);
    e->waiting++;
    while (!e->k && !e->gone) {
        pthread_cond_wait(&ctx->cache->done, &ctx->cache->lock);
    }
    failure *f = failure_retain(e->failed);
    if (--e->waiting == 0 && e->gone) {
        entry_free(e);
    }
    return f;
}

// Compiles for e, which is in the table; the lock is not held.
static nki_status fill(nki_context *ctx, entry *e, const compile_request *rq, nki_diags *ds,
                       nki_times *times, nki_kernel **out)
{
    cache *c = ctx->cache;
    nki_diags *mine = NULL;
    nki_kernel *k = NULL;
    nki_status st = nki_diags_create(&mine);
    if (st == NKI_OK) {
        st = kernel_build(ctx, rq, mine, times, &k);
    } else {
        context_fail(ctx, st, "out of memory");
    }
    diag_store_append(ds, mine);
    pthread_mutex_lock(&c->lock);
    if (st == NKI_OK) {
        k->shared = true;
        e->k = k;
        if (note_files(e, rq)) {
            k->cached = true;
            e->size_bytes = k->mem.used_bytes;
            for (uint32_t i = 0; i < k->core_count; i++) {
                e->size_bytes += k->core[i].neff_len;
            }
            c->used_bytes += e->size_bytes;
            COUNT(ctx, cache_bytes, e->size_bytes);
            link_use(c, e);
            evict(ctx);
        } else {
            e->k = NULL;  // it works, but is not kept
        }
    } else {
        e->failed = failure_create(st, mine, nki_context_error(ctx));
        mine = NULL;
    }
    if (!e->k) {
        *slot_of(c, e->key) = e->chain;
        e->gone = true;
        if (e->waiting == 0) {
            entry_free(e);
        }
    }
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
    nki_diags_release(mine);
    *out = k;
    return st;
}

nki_status cache_get(nki_context *ctx, const compile_request *rq, nki_diags *ds, nki_times *times,
                     nki_kernel **out)
{
    cache *c = ctx->cache;
    compile_digest key = compile_key(rq);
    *out = NULL;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        entry **at = slot_of(c, key), *e = *at;
        const cache_file *file;
        if (!e) {
            e = calloc(1, sizeof *e);
            if (e) {
                e->key = key;
                *at = e;
            }
            char why[200];
            explain(c, rq, why, sizeof why);
            pthread_mutex_unlock(&c->lock);
            COUNT(ctx, cache_misses, 1);
            LOG(ctx, NKI_LOG_INFO, "miss", {"source", rq->path, 0},
                {"entry", rq->entry ? rq->entry : "", 0}, {"why", why, 0});
            return e ? fill(ctx, e, rq, ds, times, out)
                     : context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
        }
        if (!e->k) {
            failure *f = wait_for(ctx, e);
            if (f) {
                pthread_mutex_unlock(&c->lock);
                nki_status st = failure_report(ctx, f, ds);
                failure_release(f);
                return st;
            }
        } else if ((file = changed(e))) {
            COUNT(ctx, cache_stale, 1);
            LOG(ctx, NKI_LOG_INFO, "stale", {"kernel", nki_kernel_name(e->k), 0},
                {"file", file->path, 0}, {"was", file->absent ? "absent" : "another", 0});
            drop(ctx, e);
        } else {
            *out = take(ctx, e);
            pthread_mutex_unlock(&c->lock);
            COUNT(ctx, cache_hits, 1);
            return NKI_OK;
        }
    }
}
