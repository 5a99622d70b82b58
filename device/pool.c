#include "device/internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// A job is a number of items that anyone may take, one after the other. Whoever brings it works
// too, so a helper that sleeps, or that has lost its processor before it took an item, is not
// waited for. One job at a time: who comes with another meanwhile does it alone.
//
// Helpers look for work for SPIN_NS after the last, then sleep. There are no more threads than
// processors: they would only take time from each other.

enum { SPIN_NS = 50000, LOOKS = 64 };

typedef struct helper {
    device_pool *pool;
    pthread_t thread;
    workspace s;
} helper;

struct device_pool {
    uint32_t threads;
    int64_t spin_ns;
    atomic_flag taken;  // by a run, for one job
    // The job. left: its number << 32 | items that nobody has taken. What it consists of changes
    // only while no item is left, and an item is taken by a change of left, so what was read before
    // belongs to it.
    _Atomic uint64_t left;
    _Atomic(pool_fn) fn;
    void *_Atomic ctx;
    _Atomic uint32_t done;
    pthread_mutex_t lock;
    pthread_cond_t work;
    _Atomic uint32_t asleep;
    _Atomic bool quit;
    helper **helpers;  // made for the first job
    uint32_t count;
    bool started;
};

static _Atomic bool forced;

void pool_force(bool all)
{
    atomic_store_explicit(&forced, all, memory_order_relaxed);
}

bool pool_is_forced(void)
{
    return atomic_load_explicit(&forced, memory_order_relaxed);
}

static void relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Takes an item of the job and does it. false: none is left.
static bool work_once(device_pool *p, workspace *s)
{
    uint64_t left = atomic_load_explicit(&p->left, memory_order_acquire);
    for (;;) {
        uint32_t items = (uint32_t)left;
        if (items == 0) {
            return false;
        }
        pool_fn fn = atomic_load_explicit(&p->fn, memory_order_relaxed);
        void *ctx = atomic_load_explicit(&p->ctx, memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&p->left, &left, left - 1, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            fn(ctx, items - 1, s);
            atomic_fetch_add_explicit(&p->done, 1, memory_order_release);
            return true;
        }
    }
}

static bool has_work(device_pool *p)
{
    return (uint32_t)atomic_load(&p->left) != 0 || atomic_load(&p->quit);
}

static void sleep_until_work(device_pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while (!has_work(p)) {
        pthread_cond_wait(&p->work, &p->lock);
    }
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->lock);
}

static void *help(void *arg)
{
    helper *h = arg;
    device_pool *p = h->pool;
    while (!atomic_load_explicit(&p->quit, memory_order_relaxed)) {
        while (work_once(p, &h->s)) {
        }
        int64_t until = p->spin_ns ? now_ns() + p->spin_ns : 0;
        bool found = false;
        while (!found && until && now_ns() < until) {
            for (int i = 0; i < LOOKS && !found; i++) {
                relax();
                found = has_work(p);
            }
        }
        if (!found) {
            sleep_until_work(p);
        }
    }
    return NULL;
}

device_pool *device_pool_create(uint32_t threads)
{
    device_pool *p = calloc(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    bool many = cpus > 0 && threads > (uint64_t)cpus;
    p->threads = many && !pool_is_forced() ? (uint32_t)cpus : threads;
    p->spin_ns = many && pool_is_forced() ? 0 : SPIN_NS;
    atomic_flag_clear(&p->taken);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    return p;
}

// Fewer helpers than wanted, or none, are enough.
static void start(device_pool *p)
{
    p->started = true;
    p->helpers = calloc(p->threads, sizeof *p->helpers);
    while (p->helpers && p->count + 1 < p->threads) {
        helper *h = aligned_new(sizeof *h);
        if (!h) {
            return;
        }
        h->pool = p;
        if (pthread_create(&h->thread, NULL, help, h) != 0) {
            free(h);
            return;
        }
        p->helpers[p->count++] = h;
    }
}

void device_pool_release(device_pool *p)
{
    if (!p) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->quit, true);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < p->count; i++) {
        pthread_join(p->helpers[i]->thread, NULL);
        workspace_fini(&p->helpers[i]->s);
        free(p->helpers[i]);
    }
    free(p->helpers);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

uint32_t pool_threads(const device_pool *p)
{
    return p ? p->threads : 1;
}

void pool_run(device_pool *p, uint32_t items, bool wake, pool_fn fn, void *ctx, workspace *own)
{
    if (!p || items < 2 || p->threads < 2 ||
        atomic_flag_test_and_set_explicit(&p->taken, memory_order_acquire)) {
        for (uint32_t i = 0; i < items; i++) {
            fn(ctx, i, own);
        }
        return;
    }
    if (!p->started) {
        start(p);
    }
    atomic_store_explicit(&p->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&p->ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    uint64_t number = (atomic_load_explicit(&p->left, memory_order_relaxed) >> 32) + 1;
    atomic_store(&p->left, number << 32 | items);
    if (wake && atomic_load(&p->asleep)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
    }
    while (work_once(p, own)) {
    }
    // What others have taken: soon done, unless one of them has lost its processor.
    for (uint32_t looks = 0; atomic_load_explicit(&p->done, memory_order_acquire) != items;
         looks++) {
        if (looks < 1000) {
            relax();
        } else {
            sched_yield();
        }
    }
    atomic_flag_clear_explicit(&p->taken, memory_order_release);
}
