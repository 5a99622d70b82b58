#include "runtime/queue.h"
#include "runtime/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Public streams, events and devices over queue.h.

struct nki_event {
    atomic_uint refs;
    nki_context *ctx;
    event_point *point;  // of the last record, or NULL. Guarded by the queue's lock
};

// ---- devices

size_t nki_context_device_count(const nki_context *ctx)
{
    return ctx ? ctx->queue->device_count : 0;
}

nki_device *nki_context_device(nki_context *ctx, size_t i)
{
    return ctx && i < ctx->queue->device_count ? &ctx->queue->devices[i] : NULL;
}

nki_status nki_device_get_info(const nki_device *dev, nki_device_info *out)
{
    if (!dev || !out) {
        return NKI_ERR_ARG;
    }
    const target *t = dev->ctx->target;
    *out = (nki_device_info){.target = t->name,
                             .index = dev->index,
                             .core_count = COMPILE_CORES_MAX,
                             .partitions = 128,
                             .sbuf_bytes = (size_t)t->sbuf_partition_bytes * 128,
                             .psum_bytes = (size_t)t->psum_partition_bytes * 128};
    return NKI_OK;
}

nki_stream *nki_device_stream(nki_device *dev)
{
    return dev ? dev->stream : NULL;
}

// ---- streams

// The lock is held.
static bool take_slot(queue *q, uint32_t *slot)
{
    for (uint32_t i = 0; i < q->slot_count; i++) {
        if (!q->slot_used[i]) {
            q->slot_used[i] = 1;
            *slot = i;
            return true;
        }
    }
    uint32_t n = q->slot_count ? q->slot_count * 2 : 16;
    uint64_t *slots = realloc(q->slots, n * sizeof *slots);
    q->slots = slots ? slots : q->slots;
    uint8_t *used = realloc(q->slot_used, n);
    q->slot_used = used ? used : q->slot_used;
    if (!slots || !used) {
        return false;
    }
    for (uint32_t i = q->slot_count; i < n; i++) {
        slots[i] = 0;
        used[i] = 0;
    }
    *slot = q->slot_count;
    used[*slot] = 1;
    q->slot_count = n;
    return true;
}

nki_status stream_open(nki_context *ctx, nki_device *dev, const nki_stream_opts *o, bool own,
                       nki_stream **out)
{
    nki_stream *s = context_alloc(ctx, sizeof *s);
    if (!s) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    queue *q = ctx->queue;
    atomic_init(&s->refs, 1);
    s->ctx = ctx;
    s->dev = dev;
    s->tail = &s->head;
    s->own = own;
    s->priority = o ? o->priority : 0;
    s->blocking = (o && o->blocking) || ctx->opts.blocking;
    s->run_timeout_ns = o && o->run_timeout_ns ? o->run_timeout_ns : ctx->opts.run_timeout_ns;
    queue_lock(q);
    bool ok = take_slot(q, &s->slot);
    if (ok) {
        s->next = dev->streams;
        s->prev = &dev->streams;
        if (s->next) {
            s->next->prev = &s->next;
        }
        dev->streams = s;
    }
    queue_unlock(q);
    if (!ok) {
        context_free(ctx, s, sizeof *s);
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    if (own) {
        snprintf(s->name, sizeof s->name, "device %zu", dev->index);
    } else if (o && o->name) {
        snprintf(s->name, sizeof s->name, "%s", o->name);
    } else {
        snprintf(s->name, sizeof s->name, "stream %u", s->slot);
    }
    if (!own) {
        nki_context_retain(ctx);
    }
    *out = s;
    return NKI_OK;
}

nki_status nki_stream_create(nki_context *ctx, nki_device *dev, const nki_stream_opts *opts,
                             nki_stream **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !out || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    if (opts && opts->size != sizeof *opts) {
        return context_fail(ctx, NKI_ERR_ARG,
                            "nki_stream_opts has a size that this library does not know");
    }
    if (dev && dev->ctx != ctx) {
        return context_fail(ctx, NKI_ERR_ARG, "the device belongs to another context");
    }
    return stream_open(ctx, dev ? dev : &ctx->queue->devices[0], opts, false, out);
}

// The earlier of two stays in *kept; the other is returned.
static failure *keep_earlier(failure **kept, failure *f)
{
    if (f && (!*kept || f->serial < (*kept)->serial)) {
        failure *old = *kept;
        *kept = f;
        return old;
    }
    return f;
}

nki_stream *nki_stream_retain(nki_stream *s)
{
    if (s) {
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    }
    return s;
}

void nki_stream_release(nki_stream *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1 ||
        s->ctx->generation != context_generation()) {
        return;
    }
    nki_context *ctx = s->ctx;
    queue *q = ctx->queue;
    bool own = s->own;
    queue_lock(q);
    q->slot_used[s->slot] = 0;
    *s->prev = s->next;
    if (s->next) {
        s->next->prev = s->prev;
    }
    failure *drop = keep_earlier(&s->dev->lost, s->failed);
    queue_unlock(q);
    failure_release(drop);
    context_free(ctx, s, sizeof *s);
    if (!own) {
        nki_context_release(ctx);
    }
}

typedef struct stream_wait {
    nki_stream *s;
    uint64_t serial;
} stream_wait;

static bool stream_reached(void *arg)
{
    const stream_wait *w = arg;
    return w->s->ctx->queue->slots[w->s->slot] >= w->serial;
}

nki_status nki_stream_synchronize(nki_stream *s, uint64_t timeout_ns, nki_diags *ds)
{
    if (!s || !context_alive(s->ctx)) {
        return NKI_ERR_ARG;
    }
    nki_context *ctx = s->ctx;
    queue *q = ctx->queue;
    queue_lock(q);
    stream_wait w = {s, s->last};
    bool reached = stream_reached(&w);
    failure *f = NULL;
    if (reached) {
        f = s->failed;
        s->failed = NULL;
    }
    queue_unlock(q);
    if (!reached) {
        int64_t start = trace_begin(ctx);
        nki_status st = queue_wait(ctx, s->dev, timeout_ns, stream_reached, &w);
        trace_span(ctx, "synchronize", s->name, start);
        if (st != NKI_OK) {
            return st;
        }
        queue_lock(q);
        f = s->failed;
        s->failed = NULL;
        queue_unlock(q);
    }
    nki_status st = failure_report(ctx, f, ds);
    failure_release(f);
    return st;
}

nki_status nki_stream_query(nki_stream *s, int *idle)
{
    if (!s || !idle || !context_alive(s->ctx)) {
        return NKI_ERR_ARG;
    }
    queue *q = s->ctx->queue;
    queue_lock(q);
    *idle = !s->head;
    queue_unlock(q);
    return NKI_OK;
}

nki_status nki_stream_cancel(nki_stream *s)
{
    if (!s || !context_alive(s->ctx)) {
        return NKI_ERR_ARG;
    }
    queue *q = s->ctx->queue;
    queue_lock(q);
    command *c = s->head;
    if (c && s->running) {
        atomic_store_explicit(&c->stop, NKI_ERR_CANCELLED, memory_order_relaxed);
        c = c->next;
    }
    // They are skipped in their order: what waits for them still waits for what they waited for.
    for (; c; c = c->next) {
        c->cancelled = true;
    }
    device_wake(s->dev);
    if (q->waiting) {
        pthread_cond_broadcast(&q->done);  // one that waits may run them
    }
    queue_unlock(q);
    return NKI_OK;
}

typedef struct device_wait {
    queue *q;
    nki_device *dev;
    uint64_t serial;
} device_wait;

static bool device_reached(void *arg)
{
    const device_wait *w = arg;
    for (const nki_stream *s = w->dev->active; s; s = s->next_active) {
        if (s->head->serial <= w->serial) {
            return false;
        }
    }
    return true;
}

static nki_status take_failures(nki_device *dev, nki_diags *ds)
{
    queue *q = dev->ctx->queue;
    queue_lock(q);
    failure *first = dev->lost;
    dev->lost = NULL;
    for (nki_stream *s = dev->streams; s; s = s->next) {
        failure *f = s->failed;
        s->failed = NULL;
        failure_release(keep_earlier(&first, f));
    }
    queue_unlock(q);
    nki_status st = failure_report(dev->ctx, first, ds);
    failure_release(first);
    return st;
}

nki_status nki_device_synchronize(nki_device *dev, uint64_t timeout_ns, nki_diags *ds)
{
    if (!dev || !context_alive(dev->ctx)) {
        return NKI_ERR_ARG;
    }
    queue *q = dev->ctx->queue;
    device_wait w = {q, dev, atomic_load_explicit(&q->serial, memory_order_relaxed)};
    nki_status st = queue_wait(dev->ctx, dev, timeout_ns, device_reached, &w);
    return st == NKI_OK ? take_failures(dev, ds) : st;
}

typedef struct host_call {
    int (*fn)(void *ctx);
    void *ctx;
} host_call;

static failure *run_host(command *c)
{
    const host_call *h = c->arg[0];
    COUNT(c->stream->ctx, host_calls, 1);
    int r = h->fn(h->ctx);
    if (r == 0) {
        return NULL;
    }
    char text[128];
    snprintf(text, sizeof text, "a host function on %s returned %d", c->stream->name, r);
    return failure_create(NKI_ERR_HOST, NULL, text);
}

static void fini_host(command *c)
{
    free(c->arg[0]);
}

nki_status nki_stream_submit_host(nki_stream *s, int (*fn)(void *fn_ctx), void *fn_ctx)
{
    if (!s || !fn || !context_alive(s->ctx)) {
        return NKI_ERR_ARG;
    }
    command *c = command_create(s->ctx, s, 0);
    host_call *h = c ? malloc(sizeof *h) : NULL;
    if (!h) {
        if (c) {
            command_release(c);
        }
        return context_fail(s->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    *h = (host_call){fn, fn_ctx};
    c->run = run_host;
    c->fini = fini_host;
    c->arg[0] = h;
    c->label = "host function";
    COUNT(s->ctx, submits, 1);
    return queue_submit(c);
}

// ---- events

event_point *point_retain(event_point *p)
{
    if (p) {
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    }
    return p;
}

void point_release(event_point *p)
{
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) {
        failure_release(p->failed);
        free(p);
    }
}

nki_status nki_event_create(nki_context *ctx, nki_event **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !out || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    nki_event *e = context_alloc(ctx, sizeof *e);
    if (!e) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    atomic_init(&e->refs, 1);
    e->ctx = nki_context_retain(ctx);
    *out = e;
    return NKI_OK;
}

nki_event *nki_event_retain(nki_event *e)
{
    if (e) {
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    }
    return e;
}

void nki_event_release(nki_event *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1 ||
        e->ctx->generation != context_generation()) {
        return;
    }
    nki_context *ctx = e->ctx;
    point_release(e->point);
    context_free(ctx, e, sizeof *e);
    nki_context_release(ctx);
}

static nki_status same_context(const nki_event *e, const nki_stream *s)
{
    if (!e || !s || !context_alive(s->ctx)) {
        return NKI_ERR_ARG;
    }
    return e->ctx == s->ctx ? NKI_OK
                            : context_fail(s->ctx, NKI_ERR_ARG,
                                           "the event and the stream belong to two contexts");
}

nki_status nki_event_record(nki_event *e, nki_stream *s)
{
    nki_status st = same_context(e, s);
    if (st != NKI_OK) {
        return st;
    }
    event_point *p = calloc(1, sizeof *p);
    command *c = p ? command_create(s->ctx, s, 0) : NULL;
    if (!c) {
        free(p);
        return context_fail(s->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    atomic_init(&p->refs, 1);
    p->dev = s->dev;
    c->point = p;
    event_point *mine = point_retain(p);
    queue *q = s->ctx->queue;
    queue_lock(q);
    event_point *old = e->point;
    e->point = mine;
    queue_unlock(q);
    point_release(old);
    return queue_submit(c);
}

static event_point *last_point(nki_event *e)
{
    queue *q = e->ctx->queue;
    queue_lock(q);
    event_point *p = point_retain(e->point);
    queue_unlock(q);
    return p;
}

nki_status nki_stream_wait(nki_stream *s, nki_event *e)
{
    nki_status st = same_context(e, s);
    event_point *p = st == NKI_OK ? last_point(e) : NULL;
    if (!p) {
        return st;
    }
    command *c = command_create(s->ctx, s, 0);
    if (!c) {
        point_release(p);
        return context_fail(s->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    c->point = p;
    c->waits = true;
    return queue_submit(c);
}

static bool point_reached(void *arg)
{
    return ((const event_point *)arg)->reached;
}

nki_status nki_event_synchronize(nki_event *e, uint64_t timeout_ns, nki_diags *ds)
{
    if (!e || !context_alive(e->ctx)) {
        return NKI_ERR_ARG;
    }
    event_point *p = last_point(e);
    if (!p) {
        return NKI_OK;
    }
    nki_status st = queue_wait(e->ctx, NULL, timeout_ns, point_reached, p);
    if (st == NKI_OK) {
        st = failure_report(e->ctx, p->failed, ds);
    }
    point_release(p);
    return st;
}

nki_status nki_event_query(nki_event *e, int *reached)
{
    if (!e || !reached || !context_alive(e->ctx)) {
        return NKI_ERR_ARG;
    }
    queue *q = e->ctx->queue;
    queue_lock(q);
    *reached = !e->point || e->point->reached;
    queue_unlock(q);
    return NKI_OK;
}

nki_status nki_event_elapsed(nki_event *from, nki_event *to, int64_t *ns)
{
    if (!from || !to || !ns || from->ctx != to->ctx || !context_alive(from->ctx)) {
        return NKI_ERR_ARG;
    }
    queue *q = from->ctx->queue;
    queue_lock(q);
    const event_point *a = from->point, *b = to->point;
    bool ok = a && b && a->reached && b->reached;
    *ns = ok ? b->at_ns - a->at_ns : 0;
    queue_unlock(q);
    return ok ? NKI_OK : context_fail(from->ctx, NKI_ERR_ARG, "an event is not reached yet");
}
