#include "runtime/trace.h"

#include "runtime/kernel.h"
#include "sched/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Trace events in Chrome's JSON form, which Perfetto opens: process 1 is the host (threads, and a
// track for each stream), process 10 + n is device n's simulated time.

enum {
    DETAIL_BYTES = 56,
    DEFAULT_LIMIT = 1000000,
    DEVICE_EVENTS_MAX = 20000,  // of a core
    STREAM_TID = 1000,
    CORE_TIDS = 100,  // of one core's tracks
};

typedef struct event {
    const char *what;  // a constant
    char detail[DETAIL_BYTES];
    int64_t start_ns, end_ns;
    int64_t submit_ns;  // of a run; 0: a span of a thread
    uint64_t serial;
    uint32_t tid, submit_tid;
    uint32_t device, stream;  // stream: in trace.streams
    bool failed;
    uint32_t timeline;  // + 1; 0: none
} event;

// A kernel's time on the simulated core, from its first instruction.
typedef struct tick {
    int64_t start_ps, end_ps;
    uint32_t core, track;
    const char *name;  // of the instruction table
} tick;

typedef struct timeline {
    char kernel[DETAIL_BYTES];
    uint64_t program;  // identity: the digest of the container's header
    tick *ticks;
    size_t count;
    const char *why_not;  // a constant; NULL: there are ticks
} timeline;

// A stream that had a run: it may be gone when the trace is written.
typedef struct stream_row {
    const nki_stream
        *stream;  // never looked into: another of that name may have come to this place
    char name[32];
} stream_row;

typedef struct thread_row {
    uint32_t tid;
    const char *name;
} thread_row;

enum { THREADS_MAX = 256 };

struct trace {
    pthread_mutex_t lock;
    event *events;
    size_t count, cap, limit;
    uint64_t dropped;
    timeline *timelines;
    size_t timeline_count;
    thread_row threads[THREADS_MAX];
    size_t thread_count;
    stream_row *streams;
    uint32_t stream_count;
    int64_t start_ns;
};

static _Atomic uint32_t thread_ids;
static _Thread_local uint32_t thread_id;
static _Thread_local const char *thread_name;

void trace_thread_name(const char *name)
{
    thread_name = name;
}

static uint32_t this_thread(trace *t)
{
    if (!thread_id) {
        thread_id = atomic_fetch_add(&thread_ids, 1) + 1;
    }
    size_t i = 0;
    while (i < t->thread_count && t->threads[i].tid != thread_id) {
        i++;
    }
    if (i == t->thread_count && i < THREADS_MAX) {
        t->threads[t->thread_count++] =
            (thread_row){thread_id, thread_name ? thread_name : "thread"};
    }
    return thread_id;
}

int64_t trace_begin(nki_context *ctx)
{
    return atomic_load_explicit(&ctx->trace, memory_order_acquire) ? queue_now_ns() : 0;
}

// NULL: full, or no memory. The lock is held.
static event *add(trace *t)
{
    if (t->count == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 1024;
        cap = cap < t->limit ? cap : t->limit;
        event *p = cap > t->cap ? realloc(t->events, cap * sizeof *p) : NULL;
        if (!p) {
            t->dropped++;
            return NULL;
        }
        t->events = p;
        t->cap = cap;
    }
    event *e = &t->events[t->count++];
    memset(e, 0, sizeof *e);
    return e;
}

// The trace, which stays until leave(); NULL when none is on.
static trace *enter(nki_context *ctx)
{
    atomic_fetch_add(&ctx->trace_users, 1);
    trace *t = atomic_load(&ctx->trace);
    if (!t) {
        atomic_fetch_sub(&ctx->trace_users, 1);
    }
    return t;
}

static void leave(nki_context *ctx)
{
    atomic_fetch_sub(&ctx->trace_users, 1);
}

void trace_span(nki_context *ctx, const char *what, const char *detail, int64_t start)
{
    trace *t = start ? enter(ctx) : NULL;
    if (!t) {
        return;
    }
    int64_t end = queue_now_ns();
    pthread_mutex_lock(&t->lock);
    event *e = add(t);
    if (e) {
        e->what = what;
        snprintf(e->detail, sizeof e->detail, "%s", detail);
        e->start_ns = start;
        e->end_ns = end;
        e->tid = this_thread(t);
    }
    pthread_mutex_unlock(&t->lock);
    leave(ctx);
}

// ---- the simulated core

static bool copy_ticks(timeline *l, const program *const *cores, const clock_result *r, uint32_t n)
{
    size_t count = 0;
    for (uint32_t c = 0; c < n; c++) {
        count += r[c].events.n;
    }
    l->ticks = calloc(count + 1, sizeof *l->ticks);
    for (uint32_t c = 0; l->ticks && c < n; c++) {
        for (uint32_t i = 0; i < r[c].events.n; i++) {
            const clock_event *e = &r[c].events.at[i];
            l->ticks[l->count++] = (tick){e->start_ps, e->end_ps, c, e->track,
                                          isa_table[cores[c]->ir->instrs.at[e->instr].op].name};
        }
    }
    return l->ticks != NULL;
}

static void clock_ticks(timeline *l, const nki_kernel *k)
{
    jmp_buf oom;
    arena mem;
    timeline *volatile to = l;
    arena_init(&mem, (size_t)1 << 30, &oom);
    if (setjmp(oom)) {
        to->why_not = "no memory for it";
        arena_fini(&mem);
        return;
    }
    clock_result r[CLOCK_CORES];
    const program *cores[CLOCK_CORES];
    for (uint32_t i = 0; i < k->core_count; i++) {
        cores[i] = k->core[i].pr;
    }
    clock_opts o = {.events_max = DEVICE_EVENTS_MAX, .steps_max = 10000000};
    if (!clock_run(&mem, cores, k->core_count, &o, r)) {
        l->why_not = "its length depends on data";
    } else if (!copy_ticks(l, cores, r, k->core_count)) {
        l->why_not = "no memory for it";
    }
    arena_fini(&mem);
}

// The kernel's timeline, made at its first run in the trace. Returns its number + 1.
static uint32_t timeline_of(trace *t, const nki_kernel *k)
{
    uint64_t id = 0;  // equal containers have equal times
    memcpy(&id, k->core[0].neff + 24, sizeof id);
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->timeline_count; i++) {
        if (t->timelines[i].program == id) {
            pthread_mutex_unlock(&t->lock);
            return (uint32_t)i + 1;
        }
    }
    pthread_mutex_unlock(&t->lock);
    timeline l = {.program = id};
    snprintf(l.kernel, sizeof l.kernel, "%s", nki_kernel_name(k));
    clock_ticks(&l, k);
    pthread_mutex_lock(&t->lock);
    timeline *p = realloc(t->timelines, (t->timeline_count + 1) * sizeof *p);
    uint32_t n = 0;
    if (p) {
        t->timelines = p;
        p[t->timeline_count++] = l;
        n = (uint32_t)t->timeline_count;
    } else {
        free(l.ticks);
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

// The row of a stream; the lock is held. Without memory, that of another.
static uint32_t stream_of(trace *t, const nki_stream *s)
{
    for (uint32_t i = t->stream_count; i-- > 0;) {
        if (t->streams[i].stream == s && strcmp(t->streams[i].name, s->name) == 0) {
            return i;
        }
    }
    stream_row *p = realloc(t->streams, (t->stream_count + 1) * sizeof *p);
    if (!p) {
        return 0;
    }
    t->streams = p;
    p[t->stream_count].stream = s;
    snprintf(p[t->stream_count].name, sizeof p->name, "%s", s->name);
    return t->stream_count++;
}

void trace_command(nki_context *ctx, const command *c, int64_t start, bool failed)
{
    trace *t = start ? enter(ctx) : NULL;
    if (!t) {
        return;
    }
    int64_t end = queue_now_ns();
    uint32_t line = c->kernel && !failed ? timeline_of(t, c->kernel) : 0;
    pthread_mutex_lock(&t->lock);
    event *e = add(t);
    if (e) {
        e->what = "run";
        snprintf(e->detail, sizeof e->detail, "%s", c->label ? c->label : "");
        e->start_ns = start;
        e->end_ns = end;
        e->submit_ns = c->submit_ns ? c->submit_ns : start;
        e->submit_tid = c->submit_tid;
        e->serial = c->serial;
        e->tid = this_thread(t);
        e->device = (uint32_t)c->stream->dev->index;
        e->stream = stream_of(t, c->stream);
        e->failed = failed;
        e->timeline = line;
    }
    pthread_mutex_unlock(&t->lock);
    leave(ctx);
}

uint32_t trace_thread(nki_context *ctx)
{
    trace *t = enter(ctx);
    if (!t) {
        return 0;
    }
    pthread_mutex_lock(&t->lock);
    uint32_t id = this_thread(t);
    pthread_mutex_unlock(&t->lock);
    leave(ctx);
    return id;
}

void trace_release(trace *t)
{
    if (!t) {
        return;
    }
    for (size_t i = 0; i < t->timeline_count; i++) {
        free(t->timelines[i].ticks);
    }
    free(t->timelines);
    free(t->streams);
    free(t->events);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

// ---- writing

static void put_text(FILE *f, const char *s)
{
    fputc('"', f);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        if (*p == '"' || *p == '\\') {
            fputc('\\', f);
        }
        if (*p < 32) {
            fprintf(f, "\\u%04x", *p);
        } else {
            fputc(*p, f);
        }
    }
    fputc('"', f);
}

static void put_name(FILE *f, const char *kind, int pid, uint32_t tid, const char *name)
{
    fprintf(f,
            ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%" PRIu32 ",\"args\":{\"name\":",
            kind, pid, tid);
    put_text(f, name);
    fprintf(f, "}}");
}

static double us(const trace *t, int64_t ns)
{
    return (double)(ns - t->start_ns) / 1e3;
}

static void put_span(FILE *f, int pid, uint32_t tid, double start_us, double length_us,
                     const char *category, const char *name)
{
    fprintf(f,
            ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%" PRIu32
            ",\"ts\":%.3f,\"dur\":%.6f,\"cat\":\"%s\""
            ",\"name\":",
            pid, tid, start_us, length_us, category);
    put_text(f, name);
}

static void put_flow(FILE *f, char phase, const event *e, uint32_t tid, double at_us)
{
    fprintf(f,
            ",\n{\"ph\":\"%c\",\"pid\":1,\"tid\":%" PRIu32 ",\"ts\":%.3f,\"id\":%" PRIu64
            ",\"cat\":\"submit\",\"name\":\"submit\"%s}",
            phase, tid, at_us, e->serial, phase == 'f' ? ",\"bp\":\"e\"" : "");
}

static void put_run(FILE *f, const trace *t, const event *e)
{
    double start = us(t, e->start_ns), length = (double)(e->end_ns - e->start_ns) / 1e3;
    put_span(f, 1, e->tid, start, length, "run", e->detail);
    fprintf(f, "}");
    put_span(f, 1, STREAM_TID + e->stream, start, length, "stream", e->detail);
    fprintf(f, ",\"args\":{\"serial\":%" PRIu64 ",\"failed\":%s}}", e->serial,
            e->failed ? "true" : "false");
    if (e->submit_tid) {
        put_span(f, 1, e->submit_tid, us(t, e->submit_ns), 0.1, "submit", e->detail);
        fprintf(f, "}");
        put_flow(f, 's', e, e->submit_tid, us(t, e->submit_ns));
        put_flow(f, 'f', e, STREAM_TID + e->stream, start);
    }
}

// The simulated time of a run begins where the run does; it has its own scale, so that its end says
// nothing about the host's.
static void put_device(FILE *f, const trace *t, const event *e)
{
    const timeline *l = &t->timelines[e->timeline - 1];
    int pid = 10 + (int)e->device;
    double at = us(t, e->start_ns);
    for (size_t i = 0; i < l->count; i++) {
        const tick *k = &l->ticks[i];
        put_span(f, pid, k->core * CORE_TIDS + k->track + 1, at + (double)k->start_ps / 1e6,
                 (double)(k->end_ps - k->start_ps) / 1e6, "device", k->name);
        fprintf(f, ",\"args\":{\"serial\":%" PRIu64 "}}", e->serial);
    }
}

static int by_start(const void *a, const void *b)
{
    const event *x = a, *y = b;
    return x->start_ns != y->start_ns ? (x->start_ns < y->start_ns ? -1 : 1)
                                      : (x->serial > y->serial) - (x->serial < y->serial);
}

// One device's simulated times must not overlap: a run's is shown when the last shown has ended.
static void put_devices(FILE *f, trace *t)
{
    int64_t end_ns[QUEUE_DEVICES_MAX] = {0};
    for (size_t i = 0; i < t->count; i++) {
        const event *e = &t->events[i];
        if (!e->timeline || e->device >= QUEUE_DEVICES_MAX) {
            continue;
        }
        const timeline *l = &t->timelines[e->timeline - 1];
        int64_t length_ps = 0;
        for (size_t k = 0; k < l->count; k++) {
            length_ps = l->ticks[k].end_ps > length_ps ? l->ticks[k].end_ps : length_ps;
        }
        event moved = *e;
        if (moved.start_ns < end_ns[e->device]) {
            moved.start_ns = end_ns[e->device];
        }
        end_ns[e->device] = moved.start_ns + length_ps / 1000 + 1;
        put_device(f, t, &moved);
    }
}

static void write_all(FILE *f, nki_context *ctx, trace *t)
{
    fprintf(f, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
               "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"host\"}}");
    for (size_t i = 0; i < t->thread_count; i++) {
        put_name(f, "thread_name", 1, t->threads[i].tid, t->threads[i].name);
    }
    queue *q = ctx->queue;
    for (size_t d = 0; d < q->device_count; d++) {
        char name[64];
        snprintf(name, sizeof name, "device %zu, simulated time", d);
        put_name(f, "process_name", 10 + (int)d, 0, name);
        for (uint32_t k = 0; k < COMPILE_CORES_MAX * TRACK_COUNT; k++) {
            uint32_t core = k / TRACK_COUNT, track = k % TRACK_COUNT;
            snprintf(name, sizeof name, "%s%s", core ? "core 1, " : "", track_name(track));
            put_name(f, "thread_name", 10 + (int)d, core * CORE_TIDS + track + 1, name);
        }
    }
    for (uint32_t i = 0; i < t->stream_count; i++) {
        put_name(f, "thread_name", 1, STREAM_TID + i, t->streams[i].name);
    }
    if (t->count) {
        qsort(t->events, t->count, sizeof *t->events, by_start);
    }
    for (size_t i = 0; i < t->count; i++) {
        const event *e = &t->events[i];
        if (e->submit_ns) {
            put_run(f, t, e);
        } else {
            char name[DETAIL_BYTES + 32];
            snprintf(name, sizeof name, "%s %s", e->what, e->detail);
            put_span(f, 1, e->tid, us(t, e->start_ns), (double)(e->end_ns - e->start_ns) / 1e3,
                     e->what, name);
            fprintf(f, "}");
        }
    }
    put_devices(f, t);
    fprintf(f, "\n],\"otherData\":{\"dropped\":%" PRIu64, t->dropped);
    for (size_t i = 0; i < t->timeline_count; i++) {
        if (t->timelines[i].why_not) {
            fprintf(f, ",");
            put_text(f, t->timelines[i].kernel);
            fprintf(f, ":");
            put_text(f, t->timelines[i].why_not);
        }
    }
    fprintf(f, "}}\n");
}

nki_status nki_trace_start(nki_context *ctx, size_t event_limit)
{
    if (!ctx || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    trace *t = calloc(1, sizeof *t), *none = NULL;
    if (!t) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    pthread_mutex_init(&t->lock, NULL);
    t->limit = event_limit ? event_limit : DEFAULT_LIMIT;
    t->start_ns = queue_now_ns();
    if (!atomic_compare_exchange_strong(&ctx->trace, &none, t)) {
        trace_release(t);
        return context_fail(ctx, NKI_ERR_ARG, "a trace is running");
    }
    return NKI_OK;
}

nki_status nki_trace_stop(nki_context *ctx, const char *path)
{
    if (!ctx || !path || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    trace *t = atomic_exchange(&ctx->trace, NULL);
    if (!t) {
        return context_fail(ctx, NKI_ERR_ARG, "no trace is running");
    }
    while (atomic_load(&ctx->trace_users)) {  // threads that record at this moment
        sched_yield();
    }
    nki_status st = NKI_OK;
    FILE *f = fopen(path, "w");
    if (f) {
        write_all(f, ctx, t);
    }
    bool bad = !f || ferror(f);
    bad = (f && fclose(f) != 0) || bad;
    if (bad) {
        st =
            context_fail(ctx, NKI_ERR_IO, "cannot write the trace '%s': %s", path, strerror(errno));
    }
    trace_release(t);
    return st;
}
