#include "runtime/queue.h"

#include "runtime/log.h"
#include "runtime/tensor.h"
#include "runtime/trace.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// linger_ns of the options: in a burst of submissions a device's thread is woken once.
enum { LINGER_NS = 30000, SPARE_MAX = 64, LOCK_TRIES = 200 };

// The command that this thread runs.
static _Thread_local command *current;
// Set when the context went away under the device's own thread.
static _Thread_local bool orphaned;

int64_t queue_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void queue_lock(queue *q)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (pthread_mutex_trylock(&q->lock) == 0) {
            return;
        }
        pause_briefly();
    }
    pthread_mutex_lock(&q->lock);
}

void queue_unlock(queue *q)
{
    pthread_mutex_unlock(&q->lock);
}

// Returns when *counter is not `seen` any more, or until_ns has come. The lock is not held.
static void linger(const _Atomic uint64_t *counter, uint64_t seen, int64_t until_ns)
{
    while (atomic_load_explicit(counter, memory_order_relaxed) == seen &&
           queue_now_ns() < until_ns) {
        sched_yield();
    }
}

// ---- commands

static command *spare_take(queue *q)
{
    command *c = NULL;
    if (!atomic_flag_test_and_set_explicit(&q->spare_busy, memory_order_acquire)) {
        c = q->spare;
        if (c) {
            q->spare = c->next;
            q->spare_count--;
        }
        atomic_flag_clear_explicit(&q->spare_busy, memory_order_release);
    }
    return c;
}

static void spare_give(queue *q, command *c)
{
    bool kept = false;
    if (!atomic_flag_test_and_set_explicit(&q->spare_busy, memory_order_acquire)) {
        kept = q->spare_count < SPARE_MAX;
        if (kept) {
            c->next = q->spare;
            q->spare = c;
            q->spare_count++;
        }
        atomic_flag_clear_explicit(&q->spare_busy, memory_order_release);
    }
    if (!kept) {
        free(c);
    }
}

command *command_create(nki_context *ctx, nki_stream *s, uint32_t tensors)
{
    command *c = spare_take(ctx->queue);
    c = c ? c : malloc(sizeof *c);
    if (!c) {
        return NULL;
    }
    size_t kept = offsetof(command, own_tensors);
    memset(c, 0, kept);
    memset(c->arg, 0, sizeof *c - offsetof(command, arg));
    c->tensors = c->own_tensors;
    c->writes = c->own_writes;
    if (tensors > COMMAND_TENSORS) {
        c->tensors = malloc(tensors * (sizeof *c->tensors + 1));
        if (!c->tensors) {
            free(c);
            return NULL;
        }
        c->writes = (uint8_t *)(c->tensors + tensors);
    }
    c->stream = nki_stream_retain(s);
    nki_context_retain(ctx);
    return c;
}

void command_use(command *c, nki_tensor *t, int access)
{
    c->tensors[c->tensor_count] = nki_tensor_retain(t);
    c->writes[c->tensor_count++] = (uint8_t)access;
}

void command_release(command *c)
{
    nki_stream *s = c->stream;
    nki_context *ctx = s->ctx;
    if (c->fini) {
        c->fini(c);
    }
    for (uint32_t i = 0; i < c->tensor_count; i++) {
        nki_tensor_release(c->tensors[i]);
    }
    if (c->tensors != c->own_tensors) {
        free(c->tensors);
    }
    free(c->deps);
    point_release(c->point);
    failure_release(c->failed);
    spare_give(ctx->queue, c);
    nki_stream_release(s);
    nki_context_release(ctx);
}

// ---- dependences

static bool done(const queue *q, dependence d)
{
    return q->slots[d.slot] >= d.serial;
}

static bool depend(command *c, dependence d)
{
    for (uint32_t i = 0; i < c->dep_count; i++) {
        if (c->deps[i].slot == d.slot) {
            c->deps[i].serial = d.serial > c->deps[i].serial ? d.serial : c->deps[i].serial;
            return true;
        }
    }
    if (c->dep_count == c->dep_cap) {
        uint32_t cap = c->dep_cap ? c->dep_cap * 2 : 4;
        dependence *p = realloc(c->deps, cap * sizeof *p);
        if (!p) {
            return false;
        }
        c->deps = p;
        c->dep_cap = cap;
    }
    c->deps[c->dep_count++] = d;
    return true;
}

// Makes room for one more entry, and drops those that are done.
static bool tidy(const queue *q, usage_list *u)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < u->n; i++) {
        if (!done(q, u->at[i].at)) {
            u->at[n++] = u->at[i];
        }
    }
    u->n = n;
    if (n == u->cap) {
        uint32_t cap = u->cap ? u->cap * 2 : 2;
        usage *p = realloc(u->at, cap * sizeof *p);
        if (!p) {
            return false;
        }
        u->at = p;
        u->cap = cap;
    }
    return true;
}

// A reader waits for the writers before it, a writer for everyone. Nothing is recorded yet.
static bool find_dependences(const queue *q, command *c)
{
    for (uint32_t i = 0; i < c->tensor_count; i++) {
        usage_list *u = &c->tensors[i]->root->use;
        if (!tidy(q, u)) {
            return false;
        }
        for (uint32_t k = 0; k < u->n; k++) {
            const usage *e = &u->at[k];
            if (e->at.slot != c->stream->slot && (e->write || c->writes[i]) && !depend(c, e->at)) {
                return false;
            }
        }
    }
    return true;
}

static void record_usage(command *c)
{
    dependence self = {c->stream->slot, c->serial};
    for (uint32_t i = 0; i < c->tensor_count; i++) {
        usage_list *u = &c->tensors[i]->root->use;
        if (c->writes[i]) {
            u->at[0] = (usage){self, true};
            u->n = 1;
            continue;
        }
        uint32_t k = 0;
        while (k < u->n && (u->at[k].at.slot != self.slot || u->at[k].write)) {
            k++;
        }
        if (k < u->n) {
            u->at[k].at = self;
        } else if (u->n < u->cap) {  // else: the same memory named twice, and there already
            u->at[u->n++] = (usage){self, false};
        } else {
            u->at[0] = (usage){self, true};  // no room: as a write, which orders more
            u->n = 1;
        }
    }
}

void usage_fini(nki_context *ctx, usage_list *u)
{
    (void)ctx;
    free(u->at);
    failure_release(u->failed);
}

// ---- choosing and running; the lock is held

static bool ready(const queue *q, const nki_stream *s)
{
    const command *c = s->head;
    if (s->running || (c->waits && !c->cancelled && !c->point->reached)) {
        return false;
    }
    for (uint32_t i = 0; i < c->dep_count; i++) {
        if (!done(q, c->deps[i])) {
            return false;
        }
    }
    return true;
}

static nki_stream *pick(const queue *q, const nki_device *dev)
{
    nki_stream *best = NULL;
    if (dev->busy) {
        return NULL;
    }
    for (nki_stream *s = dev->active; s; s = s->next_active) {
        bool better = !best || s->priority > best->priority ||
                      (s->priority == best->priority && s->head->serial < best->head->serial);
        if (better && ready(q, s)) {
            best = s;
        }
    }
    return best;
}

static void activate(nki_stream *s)
{
    nki_device *dev = s->dev;
    s->next_active = dev->active;
    s->prev_active = &dev->active;
    if (dev->active) {
        dev->active->prev_active = &s->next_active;
    }
    dev->active = s;
}

static void deactivate(nki_stream *s)
{
    *s->prev_active = s->next_active;
    if (s->next_active) {
        s->next_active->prev_active = s->prev_active;
    }
    s->prev_active = NULL;
}

static void fail_usage(command *c, failure *f)
{
    for (uint32_t i = 0; i < c->tensor_count; i++) {
        nki_tensor *t = c->tensors[i];
        usage_list *u = &t->root->use;
        if (f && c->writes[i]) {
            failure_release(u->failed);
            u->failed = failure_retain(f);
        } else if (!f && c->writes[i] == ACCESS_REPLACE && u->failed &&
                   t->count * nki_dtype_size_bytes(t->dtype) ==
                       t->root->count * nki_dtype_size_bytes(t->root->dtype)) {
            failure_release(u->failed);
            u->failed = NULL;
        }
    }
}

// Why c cannot run: an earlier failure of its stream or of what it reads. Retained.
static failure *earlier_failure(nki_context *ctx, const command *c)
{
    nki_stream *s = c->stream;
    if (s->failed) {
        return failure_retain(s->failed);
    }
    if (c->cancelled) {
        COUNT(ctx, cancelled, 1);
        return failure_create(NKI_ERR_CANCELLED, NULL, "work of the stream was cancelled");
    }
    for (uint32_t i = 0; i < c->tensor_count; i++) {
        failure *f = c->tensors[i]->root->use.failed;
        if (f && c->writes[i] != ACCESS_REPLACE) {
            return failure_retain(f);
        }
    }
    return c->waits ? failure_retain(c->point->failed) : NULL;
}

static failure *run(nki_context *ctx, command *c, bool inlined)
{
    queue *q = ctx->queue;
    queue_unlock(q);
    command *outer = current;
    current = c;
    int64_t start = trace_begin(ctx);
    c->inlined = inlined;
    failure *f = c->run(c);
    trace_command(ctx, c, start, f != NULL);
    current = outer;
    if (f && f->st == NKI_ERR_CANCELLED) {
        COUNT(ctx, cancelled, 1);
    } else if (f) {
        COUNT(ctx, failures, 1);
        LOG(ctx, NKI_LOG_ERROR, "failure", {"work", c->label ? c->label : "", 0},
            {"stream", c->stream->name, 0}, {"serial", NULL, (double)c->serial},
            {"status", nki_status_name(f->st), 0}, {"why", f->text, 0});
    }
    queue_lock(q);
    if (f && f != failure_nomem()) {
        f->serial = c->serial;
    }
    return f;
}

void device_wake(nki_device *dev)
{
    if (dev->asleep && !dev->busy) {
        dev->asleep = false;
        pthread_cond_signal(&dev->work);
    }
}

static void wake_others(queue *q, const nki_device *dev)
{
    for (size_t i = 0; q->device_count > 1 && i < q->device_count; i++) {
        nki_device *d = &q->devices[i];
        if (d != dev && d->active) {
            device_wake(d);
        }
    }
}

// Ends the command: its stream, memory and waiters learn of it. Takes f over. Returns c when nobody
// else will release it.
static command *finish(nki_context *ctx, command *c, failure *f)
{
    queue *q = ctx->queue;
    nki_stream *s = c->stream;
    if (c->point && !c->waits) {
        c->point->reached = true;
        c->point->failed = failure_retain(f);
        c->point->at_ns = queue_now_ns();
    }
    fail_usage(c, f);
    q->slots[s->slot] = c->serial;
    q->pending--;
    uint64_t finished = atomic_load_explicit(&q->finished, memory_order_relaxed) + 1;
    atomic_store_explicit(&q->finished, finished, memory_order_relaxed);
    c->done = true;
    if (c->direct) {
        c->failed = f;
    } else if (f && !s->failed) {
        s->failed = f;
    } else {
        failure_release(f);
    }
    if (q->waiting) {
        pthread_cond_broadcast(&q->done);
    }
    wake_others(q, s->dev);
    return c->direct ? NULL : c;
}

// Runs the command at the head of s. Returns as finish().
static command *step(nki_context *ctx, nki_stream *s, bool inlined)
{
    command *c = s->head;
    nki_device *dev = s->dev;
    failure *f = earlier_failure(ctx, c);
    if (c->run && f) {
        COUNT(ctx, skipped, !c->cancelled);
    } else if (c->run) {
        dev->busy = s->running = true;
        f = run(ctx, c, inlined);
        dev->busy = s->running = false;
    }
    s->head = c->next;
    if (!s->head) {
        s->tail = &s->head;
        deactivate(s);
    }
    return finish(ctx, c, f);
}

static void *device_main(void *arg)
{
    nki_device *dev = arg;
    nki_context *ctx = dev->ctx;
    queue *q = ctx->queue;
    trace_thread_name("device");
    queue_lock(q);
    while (!dev->quit) {
        nki_stream *s = pick(q, dev);
        if (s) {
            command *c = step(ctx, s, false);
            if (c) {
                queue_unlock(q);
                command_release(c);
                if (orphaned) {
                    return NULL;
                }
                queue_lock(q);
            }
            continue;
        }
        uint64_t seen = atomic_load_explicit(&q->serial, memory_order_relaxed);
        if (!dev->busy && q->pending == 0) {
            queue_unlock(q);
            linger(&q->serial, seen, queue_now_ns() + q->linger_ns);
            queue_lock(q);
        }
        if (!dev->quit && !pick(q, dev)) {
            dev->asleep = true;
            pthread_cond_wait(&dev->work, &q->lock);
            dev->asleep = false;
        }
    }
    queue_unlock(q);
    return NULL;
}

static bool start_thread(nki_device *dev)
{
    if (!dev->threaded) {
        dev->threaded = pthread_create(&dev->thread, NULL, device_main, dev) == 0;
    }
    return dev->threaded;
}

// ---- submitting

static void append(queue *q, command *c)
{
    nki_stream *s = c->stream;
    c->serial = atomic_load_explicit(&q->serial, memory_order_relaxed) + 1;
    atomic_store_explicit(&q->serial, c->serial, memory_order_relaxed);
    s->last = c->serial;
    q->pending++;
    record_usage(c);
    if (!s->head) {
        activate(s);
    }
    *s->tail = c;
    s->tail = &c->next;
}

static bool direct_done(void *arg)
{
    return ((command *)arg)->done;
}

// A kept failure of the stream is returned by whoever synchronises first.
static failure *take_failure(nki_stream *s)
{
    failure *f = s->failed;
    s->failed = NULL;
    return f;
}

nki_status queue_call(command *c, nki_diags *ds)
{
    nki_stream *s = c->stream;
    nki_context *ctx = s->ctx;
    queue *q = ctx->queue;
    c->direct = true;
    if (current && current->stream->dev == s->dev) {
        command_release(c);
        return context_fail(ctx, NKI_ERR_ARG,
                            "a host function cannot wait for the device that runs it");
    }
    queue_lock(q);
    bool ok = find_dependences(q, c), ended = false;
    if (ok) {
        append(q, c);
        // Nothing else is there: no need to look for what runs next.
        if (q->pending == 1 && !s->dev->busy) {
            step(ctx, s, true);
            if (s->dev->active) {
                device_wake(s->dev);
            }
            ended = c->done;
        }
    }
    queue_unlock(q);
    nki_status st = NKI_OK;
    if (!ok) {
        st = context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    } else {
        if (!ended) {
            st = queue_wait(ctx, s->dev, UINT64_MAX, direct_done, c);
        }
        if (st == NKI_OK && c->failed) {
            // The stream's own kept failure was why: it has now been returned.
            queue_lock(q);
            failure *kept = s->failed == c->failed ? take_failure(s) : NULL;
            queue_unlock(q);
            failure_release(kept);
            st = failure_report(ctx, c->failed, ds);
        }
    }
    command_release(c);
    return st;
}

nki_status queue_submit(command *c)
{
    nki_stream *s = c->stream;
    nki_context *ctx = s->ctx;
    queue *q = ctx->queue;
    if (s->blocking && !(current && current->stream->dev == s->dev)) {
        return queue_call(c, NULL);
    }
    c->submit_ns = trace_begin(ctx);
    c->submit_tid = c->submit_ns ? trace_thread(ctx) : 0;
    queue_lock(q);
    nki_device *dev = s->dev;
    bool ok = find_dependences(q, c) && start_thread(dev), wake = false;
    if (ok) {
        append(q, c);
        LOG(ctx, NKI_LOG_DEBUG, "submit", {"work", c->label ? c->label : "", 0},
            {"stream", s->name, 0}, {"serial", NULL, (double)c->serial});
        wake = dev->asleep && !dev->busy;
        dev->asleep = dev->asleep && !wake;
    }
    queue_unlock(q);
    if (wake) {
        pthread_cond_signal(&dev->work);  // without the lock, which the thread wants at once
    }
    if (!ok) {
        command_release(c);
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory, or no thread for the device");
    }
    return NKI_OK;
}

// ---- waiting

static struct timespec deadline_of(uint64_t timeout_ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t ns = timeout_ns % 1000000000 + (uint64_t)t.tv_nsec;
    uint64_t sec = timeout_ns / 1000000000 + ns / 1000000000;
    t.tv_sec = sec > (uint64_t)INT32_MAX ? INT32_MAX : t.tv_sec + (time_t)sec;
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

// One command of the device, or of any other (dev NULL), on this thread. The lock is held, and let
// go meanwhile.
static bool help(nki_context *ctx, nki_device *dev)
{
    queue *q = ctx->queue;
    for (size_t i = 0; i < q->device_count; i++) {
        nki_device *d = &q->devices[i];
        nki_stream *s = dev && d != dev ? NULL : pick(q, d);
        if (s) {
            command *c = step(ctx, s, true);
            if (c) {
                queue_unlock(q);
                command_release(c);
                queue_lock(q);
            }
            return true;
        }
    }
    return false;
}

nki_status queue_wait(nki_context *ctx, nki_device *dev, uint64_t timeout_ns,
                      bool (*reached)(void *arg), void *arg)
{
    queue *q = ctx->queue;
    bool forever = timeout_ns == NKI_FOREVER;
    struct timespec until = {0};
    if (!forever) {
        until = deadline_of(timeout_ns);
    }
    nki_status st = NKI_OK;
    bool lingered = false;
    queue_lock(q);
    while (st == NKI_OK && !reached(arg)) {
        if (current && current->stream->ctx == ctx) {
            st = NKI_ERR_ARG;
        } else if (forever && help(ctx, dev)) {
            lingered = false;
        } else if (!lingered) {
            // What runs elsewhere may end soon.
            uint64_t seen = atomic_load_explicit(&q->finished, memory_order_relaxed);
            int64_t now = queue_now_ns(), most = q->linger_ns;
            queue_unlock(q);
            linger(&q->finished, seen,
                   now + (timeout_ns < (uint64_t)most ? (int64_t)timeout_ns : most));
            queue_lock(q);
            lingered = true;
        } else {
            lingered = false;
            q->waiting++;
            int e = forever ? pthread_cond_wait(&q->done, &q->lock)
                            : pthread_cond_timedwait(&q->done, &q->lock, &until);
            q->waiting--;
            st = e == ETIMEDOUT && !reached(arg) ? NKI_ERR_TIMEOUT : NKI_OK;
        }
    }
    // What is left is the threads'.
    for (size_t i = 0; i < q->device_count; i++) {
        if (q->devices[i].active) {
            device_wake(&q->devices[i]);
        }
    }
    queue_unlock(q);
    if (st == NKI_ERR_ARG) {
        return context_fail(ctx, st, "a host function cannot wait for the device that runs it");
    }
    return st == NKI_OK ? st : context_fail(ctx, st, "%s", nki_status_text(st));
}

typedef struct tensor_wait {
    queue *q;
    usage_list *u;
    bool reads_too;
} tensor_wait;

// Inside a host function, later submissions count as later.
static bool tensor_quiet(void *arg)
{
    const tensor_wait *w = arg;
    for (uint32_t i = 0; i < w->u->n; i++) {
        const usage *e = &w->u->at[i];
        if ((e->write || w->reads_too) && !done(w->q, e->at) &&
            !(current && e->at.serial >= current->serial)) {
            return false;
        }
    }
    return true;
}

nki_status queue_wait_tensor(nki_tensor *t, bool reads_too, failure **failed)
{
    nki_context *ctx = t->ctx;
    tensor_wait w = {ctx->queue, &t->root->use, reads_too};
    queue_lock(w.q);
    bool quiet = tensor_quiet(&w);
    queue_unlock(w.q);
    nki_status st = quiet ? NKI_OK : queue_wait(ctx, NULL, NKI_FOREVER, tensor_quiet, &w);
    queue_lock(w.q);
    *failed = st == NKI_OK ? failure_retain(t->root->use.failed) : NULL;
    queue_unlock(w.q);
    return st;
}

void queue_mark_written(nki_tensor *t)
{
    queue *q = t->ctx->queue;
    queue_lock(q);
    usage_list *u = &t->root->use;
    failure *f = NULL;
    if (t->size_bytes == t->root->size_bytes) {
        f = u->failed;
        u->failed = NULL;
    }
    queue_unlock(q);
    failure_release(f);
}

// ---- devices

nki_status device_cores(nki_device *dev, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!dev->core[i] && !(dev->core[i] = device_core_create(dev->ctx->target))) {
            return NKI_ERR_NOMEM;
        }
    }
    return NKI_OK;
}

static void device_fini(queue *q, nki_device *dev)
{
    if (dev->threaded) {
        queue_lock(q);
        dev->quit = true;
        atomic_fetch_add_explicit(&q->serial, 1, memory_order_relaxed);  // it may linger
        pthread_cond_signal(&dev->work);
        queue_unlock(q);
        if (pthread_equal(dev->thread, pthread_self())) {
            orphaned = true;
            pthread_detach(dev->thread);
        } else {
            pthread_join(dev->thread, NULL);
        }
    }
    nki_stream_release(dev->stream);
    failure_release(dev->lost);
    for (uint32_t i = 0; i < COMPILE_CORES_MAX; i++) {
        device_core_release(dev->core[i]);
    }
    pthread_cond_destroy(&dev->work);
}

nki_status queue_create(nki_context *ctx, queue **out)
{
    queue *q = calloc(1, sizeof *q);
    *out = q;
    if (!q) {
        return NKI_ERR_NOMEM;
    }
    atomic_flag_clear(&q->spare_busy);
    uint64_t linger_ns = ctx->opts.linger_ns ? ctx->opts.linger_ns : LINGER_NS;
    q->linger_ns = linger_ns < INT64_MAX / 4 ? (int64_t)linger_ns : INT64_MAX / 4;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    size_t n = ctx->opts.device_count ? ctx->opts.device_count : 1;
    q->devices = calloc(n, sizeof *q->devices);
    if (!q->devices) {
        return NKI_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        nki_device *dev = &q->devices[i];
        dev->ctx = ctx;
        dev->index = i;
        pthread_cond_init(&dev->work, NULL);
        q->device_count = i + 1;
        if (stream_open(ctx, dev, NULL, true, &dev->stream) != NKI_OK) {
            return NKI_ERR_NOMEM;
        }
    }
    return NKI_OK;
}

void queue_release(queue *q)
{
    if (!q) {
        return;
    }
    for (size_t i = 0; i < q->device_count; i++) {
        device_fini(q, &q->devices[i]);
    }
    while (q->spare) {
        command *c = q->spare;
        q->spare = c->next;
        free(c);
    }
    free(q->devices);
    free(q->slots);
    free(q->slot_used);
    pthread_cond_destroy(&q->done);
    pthread_mutex_destroy(&q->lock);
    free(q);
}
