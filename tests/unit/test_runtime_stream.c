// Streams and events: order, failures, waiting, cancelling, forks, and random programs of all of
// these against a model that runs them in the order of submission.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nki/nki.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// mix returns (a + b) / 2, fold makes it of a in place; both exact to model in C.
static const char kernels_text[] =
    "import nki\n"
    "import nki.isa as nisa\n"
    "import nki.language as nl\n"
    "def half_sum(a, b):\n"
    "    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)\n"
    "    y = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=x, src=a)\n"
    "    nisa.dma_copy(dst=y, src=b)\n"
    "    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)\n"
    "    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=0.5)\n"
    "    return x\n"
    "@nki.jit\n"
    "def mix(a, b):\n"
    "    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
    "    nisa.dma_copy(dst=out, src=half_sum(a, b))\n"
    "    return out\n"
    "@nki.jit\n"
    "def fold(a, b):\n"
    "    nisa.dma_copy(dst=a, src=half_sum(a, b))\n"
    "    return a\n"
    "@nki.jit\n"
    "def pick(x, at):\n"
    "    out = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    t = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=t, src=at)\n"
    "    r = nisa.register_alloc(0)\n"
    "    nisa.register_load(dst=r, src=t)\n"
    "    row = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=row, src=x.ap(pattern=[[x.shape[1], 1], [1, x.shape[1]]],\n"
    "                                    scalar_offset=r, indirect_dim=0))\n"
    "    nisa.dma_copy(dst=out, src=row)\n"
    "    return out\n"
    "@nki.jit\n"
    "def spin(a):\n"
    "    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
    "    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=x, src=a)\n"
    "    nl.device_print('spins', x)\n"
    "    for i in nl.dynamic_range(1000000000):\n"
    "        nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=0.5)\n"
    "    nisa.dma_copy(dst=out, src=x)\n"
    "    return out\n";

enum { ROWS = 2, COLS = 4, CELLS = ROWS * COLS };

typedef struct rig {
    nki_context *ctx;
    nki_kernel *mix, *fold, *pick;
} rig;

static nki_kernel *kernel(nki_context *ctx, const char *name, const nki_arg *args, size_t n)
{
    const nki_source src = {"kernels.nki", kernels_text, sizeof kernels_text - 1};
    nki_kernel *k = NULL;
    nki_status st = nki_kernel_compile(ctx, &src, name, args, n, NULL, NULL, &k);
    if (st != NKI_OK) {
        print_message("%s\n", nki_context_error(ctx));
    }
    assert_int_equal(st, NKI_OK);
    return k;
}

static rig rig_open(uint32_t devices, int blocking)
{
    rig r;
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.device_count = devices;
    o.blocking = blocking;
    assert_int_equal(nki_context_create(&o, &r.ctx, NULL), NKI_OK);
    const nki_tensor_info t = {.dtype = NKI_FLOAT32, .ndim = 2, .shape = {ROWS, COLS}};
    const nki_tensor_info at = {.dtype = NKI_INT32, .ndim = 2, .shape = {1, 1}};
    const nki_arg two[] = {{.spec = &t}, {.spec = &t}};
    const nki_arg index[] = {{.spec = &t}, {.spec = &at}};
    r.mix = kernel(r.ctx, "mix", two, 2);
    r.fold = kernel(r.ctx, "fold", two, 2);
    r.pick = kernel(r.ctx, "pick", index, 2);
    return r;
}

static void rig_close(rig *r)
{
    nki_kernel_release(r->mix);
    nki_kernel_release(r->fold);
    nki_kernel_release(r->pick);
    nki_context_release(r->ctx);
}

static nki_tensor *filled(nki_context *ctx, float v)
{
    float data[CELLS];
    nki_tensor *t = NULL;
    for (int i = 0; i < CELLS; i++) {
        data[i] = v + (float)i;
    }
    assert_int_equal(
        nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){ROWS, COLS}, data, NKI_FLOAT32, &t),
        NKI_OK);
    return t;
}

static nki_stream *stream(nki_context *ctx, int priority)
{
    nki_stream *s = NULL;
    nki_stream_opts o = NKI_STREAM_OPTS_INIT;
    o.priority = priority;
    assert_int_equal(nki_stream_create(ctx, NULL, &o, &s), NKI_OK);
    return s;
}

static float first(nki_tensor *t)
{
    float data[CELLS] = {0};
    assert_int_equal(nki_tensor_copy_out(t, data, NKI_FLOAT32, nki_tensor_count(t)), NKI_OK);
    return data[0];
}

// ---- one thing at a time

static void stream__runs_in_order_and_reads_wait(void **state)
{
    (void)state;
    rig r = rig_open(1, 0);
    nki_stream *s = stream(r.ctx, 0);
    nki_tensor *a = filled(r.ctx, 0), *b = filled(r.ctx, 8), *out = NULL;
    for (int i = 0; i < 3; i++) {
        nki_tensor *same = NULL;
        assert_int_equal(nki_kernel_submit(r.fold, s, NKI_ARGS(NKI_T(a), NKI_T(b)), &same, 1),
                         NKI_OK);
        nki_tensor_release(same);
    }
    assert_int_equal(nki_kernel_submit(r.mix, s, NKI_ARGS(NKI_T(a), NKI_T(b)), &out, 1), NKI_OK);
    // 0 -> 4 -> 6 -> 7, then (7 + 8) / 2; the read waits by itself.
    assert_true(first(out) == 7.5f);
    int idle = 0;
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(nki_stream_query(s, &idle), NKI_OK);
    assert_true(idle);
    nki_tensor *into[] = {out};
    assert_int_equal(nki_kernel_submit_into(r.mix, s, NKI_ARGS(NKI_T(b), NKI_T(b)), into, 1),
                     NKI_OK);
    assert_true(first(out) == 8.0f);
    into[0] = b;
    assert_int_equal(nki_kernel_submit_into(r.mix, s, NKI_ARGS(NKI_T(b), NKI_T(b)), into, 1),
                     NKI_ERR_ARG);
    assert_non_null(strstr(nki_context_error(r.ctx), "memory of another"));
    nki_tensor_release(out);
    nki_tensor_release(a);
    nki_tensor_release(b);
    nki_stream_release(s);
    rig_close(&r);
}

static int fail_17(void *ctx)
{
    (void)ctx;
    return 17;
}

static int count(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
    return 0;
}

static void failure__is_kept_once_and_follows_the_data(void **state)
{
    (void)state;
    rig r = rig_open(1, 0);
    nki_stream *s = stream(r.ctx, 0), *other = stream(r.ctx, 0);
    nki_tensor *x = filled(r.ctx, 0), *at = NULL, *row = NULL, *next = NULL;
    const int32_t far = 99;
    assert_int_equal(
        nki_tensor_from(r.ctx, NKI_INT32, 2, (const size_t[]){1, 1}, &far, NKI_INT32, &at), NKI_OK);
    atomic_int ran;
    atomic_init(&ran, 0);
    assert_int_equal(nki_kernel_submit(r.pick, s, NKI_ARGS(NKI_T(x), NKI_T(at)), &row, 1), NKI_OK);
    assert_int_equal(nki_stream_submit_host(s, count, &ran), NKI_OK);  // skipped
    nki_diags *ds = NULL;
    assert_int_equal(nki_diags_create(&ds), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, ds), NKI_ERR_DIAG);
    // The kernel, its source place, the operand and the value found.
    const char *why = nki_context_error(r.ctx);
    assert_non_null(strstr(why, "pick: kernels.nki:"));
    assert_non_null(strstr(why, "99"));
    assert_int_equal(nki_diags_errors(ds), 1);
    nki_diag d;
    assert_int_equal(nki_diags_at(ds, 0, &d), NKI_OK);
    assert_int_equal(d.line, 29);
    assert_int_equal(atomic_load(&ran), 0);
    // Returned once; the stream goes on.
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, ds), NKI_OK);
    assert_int_equal(nki_stream_submit_host(s, count, &ran), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(atomic_load(&ran), 1);
    // What was not computed cannot be read, on any stream, until it is written.
    float data[COLS];
    assert_int_equal(nki_tensor_copy_out(row, data, NKI_FLOAT32, COLS), NKI_ERR_DIAG);
    nki_tensor *sum = NULL;
    assert_int_equal(nki_sum(r.ctx, other, row, &sum), NKI_OK);
    assert_int_equal(nki_stream_synchronize(other, NKI_FOREVER, NULL), NKI_ERR_DIAG);
    assert_non_null(strstr(nki_context_error(r.ctx), "pick: kernels.nki:"));
    nki_tensor_release(sum);
    const float fresh[COLS] = {1, 2, 3, 4};
    assert_int_equal(nki_tensor_copy_in(row, fresh, NKI_FLOAT32, COLS), NKI_OK);
    assert_int_equal(nki_sum(r.ctx, other, row, &sum), NKI_OK);
    assert_true(first(sum) == 10.0f);
    // A synchronous call returns its own failure.
    assert_int_equal(nki_kernel_call(r.pick, NKI_ARGS(NKI_T(x), NKI_T(at)), &next, 1, ds, NULL),
                     NKI_ERR_DIAG);
    assert_null(next);
    assert_int_equal(nki_diags_errors(ds), 2);
    assert_int_equal(nki_device_synchronize(nki_context_device(r.ctx, 0), NKI_FOREVER, NULL),
                     NKI_OK);
    nki_diags_release(ds);
    nki_tensor_release(sum);
    nki_tensor_release(row);
    nki_tensor_release(at);
    nki_tensor_release(x);
    nki_stream_release(other);
    nki_stream_release(s);
    rig_close(&r);
}

static void failure__crosses_events_and_devices(void **state)
{
    (void)state;
    rig r = rig_open(2, 0);
    nki_stream *a = stream(r.ctx, 0), *b = NULL;
    nki_device *second = nki_context_device(r.ctx, 1);
    assert_int_equal(nki_stream_create(r.ctx, second, NULL, &b), NKI_OK);
    nki_event *e = NULL;
    assert_int_equal(nki_event_create(r.ctx, &e), NKI_OK);
    atomic_int ran;
    atomic_init(&ran, 0);
    assert_int_equal(nki_stream_submit_host(a, fail_17, NULL), NKI_OK);
    assert_int_equal(nki_event_record(e, a), NKI_OK);
    assert_int_equal(nki_stream_wait(b, e), NKI_OK);
    assert_int_equal(nki_stream_submit_host(b, count, &ran), NKI_OK);
    assert_int_equal(nki_event_synchronize(e, NKI_FOREVER, NULL), NKI_ERR_HOST);
    assert_int_equal(nki_device_synchronize(second, NKI_FOREVER, NULL), NKI_ERR_HOST);
    assert_non_null(strstr(nki_context_error(r.ctx), "17"));
    assert_int_equal(nki_device_synchronize(second, NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(nki_stream_synchronize(a, NKI_FOREVER, NULL), NKI_ERR_HOST);
    assert_int_equal(atomic_load(&ran), 0);
    // A stream that goes away leaves its failure to the device.
    assert_int_equal(nki_stream_submit_host(b, fail_17, NULL), NKI_OK);
    nki_stream_release(b);
    assert_int_equal(nki_device_synchronize(second, NKI_FOREVER, NULL), NKI_ERR_HOST);
    nki_event_release(e);
    nki_stream_release(a);
    rig_close(&r);
}

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    int open, entered;
} gate;

static int wait_at(void *ctx)
{
    gate *g = ctx;
    pthread_mutex_lock(&g->lock);
    g->entered = 1;
    pthread_cond_broadcast(&g->opened);
    while (!g->open) {
        pthread_cond_wait(&g->opened, &g->lock);
    }
    pthread_mutex_unlock(&g->lock);
    return 0;
}

static void gate_wait_entered(gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->entered) {
        pthread_cond_wait(&g->opened, &g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}

static void gate_open(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = 1;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

static void timeout_and_cancel__leave_a_sound_stream(void **state)
{
    (void)state;
    rig r = rig_open(1, 0);
    nki_stream *s = stream(r.ctx, 0);
    nki_event *e = NULL;
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    atomic_int ran;
    atomic_init(&ran, 0);
    nki_tensor *a = filled(r.ctx, 0), *out = NULL;
    assert_int_equal(nki_event_create(r.ctx, &e), NKI_OK);
    assert_int_equal(nki_stream_submit_host(s, wait_at, &g), NKI_OK);
    gate_wait_entered(&g);
    assert_int_equal(nki_stream_submit_host(s, count, &ran), NKI_OK);
    assert_int_equal(nki_kernel_submit(r.mix, s, NKI_ARGS(NKI_T(a), NKI_T(a)), &out, 1), NKI_OK);
    assert_int_equal(nki_event_record(e, s), NKI_OK);
    int reached = 1, idle = 1;
    assert_int_equal(nki_stream_synchronize(s, 2000000, NULL), NKI_ERR_TIMEOUT);
    assert_int_equal(nki_event_synchronize(e, 0, NULL), NKI_ERR_TIMEOUT);
    assert_int_equal(nki_event_query(e, &reached), NKI_OK);
    assert_int_equal(nki_stream_query(s, &idle), NKI_OK);
    assert_false(reached || idle);
    assert_int_equal(nki_stream_cancel(s), NKI_OK);
    gate_open(&g);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_ERR_CANCELLED);
    assert_int_equal(nki_event_synchronize(e, NKI_FOREVER, NULL), NKI_ERR_CANCELLED);
    assert_int_equal(atomic_load(&ran), 0);
    float data[CELLS];
    assert_int_equal(nki_tensor_copy_out(out, data, NKI_FLOAT32, CELLS), NKI_ERR_CANCELLED);
    assert_int_equal(nki_stream_submit_host(s, count, &ran), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(atomic_load(&ran), 1);
    nki_counters c = NKI_COUNTERS_INIT;
    assert_int_equal(nki_context_counters(r.ctx, &c), NKI_OK);
    assert_int_equal(c.cancelled, 1);  // the rest was skipped because of it
    nki_tensor_release(out);
    nki_tensor_release(a);
    nki_event_release(e);
    nki_stream_release(s);
    rig_close(&r);
}

// ---- what runs is ended

typedef struct spinner {
    nki_context *ctx;
    nki_kernel *spin;
    nki_tensor *a;
    gate g;  // entered when the kernel runs
    pthread_t thread;
    nki_status st;
} spinner;

static void on_print(void *ctx, const char *text, size_t len)
{
    gate *g = ctx;
    (void)text;
    (void)len;
    pthread_mutex_lock(&g->lock);
    g->entered = 1;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

static void spinner_open(spinner *p, uint64_t run_timeout_ns)
{
    const nki_tensor_info t = {.dtype = NKI_FLOAT32, .ndim = 2, .shape = {ROWS, COLS}};
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    *p = (spinner){.g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}};
    o.print = on_print;
    o.print_ctx = &p->g;
    o.run_timeout_ns = run_timeout_ns;
    assert_int_equal(nki_context_create(&o, &p->ctx, NULL), NKI_OK);
    p->spin = kernel(p->ctx, "spin", &(const nki_arg){.spec = &t}, 1);
    p->a = filled(p->ctx, 1);
}

static void spinner_close(spinner *p)
{
    nki_tensor_release(p->a);
    nki_kernel_release(p->spin);
    nki_context_release(p->ctx);
}

static void *call_spin(void *arg)
{
    spinner *p = arg;
    nki_tensor *y;
    p->st = nki_kernel_call(p->spin, NKI_ARGS(NKI_T(p->a)), &y, 1, NULL, NULL);
    // The sentence is this thread's.
    assert_non_null(strstr(nki_context_error(p->ctx), "spin: kernels.nki:"));
    assert_non_null(strstr(nki_context_error(p->ctx), "cancelled while it ran"));
    assert_null(y);
    return NULL;
}

static void cancel__ends_the_kernel_that_runs(void **state)
{
    (void)state;
    spinner p;
    spinner_open(&p, 0);
    nki_stream *s = stream(p.ctx, 0);
    nki_tensor *y = NULL, *z = NULL;
    float data[CELLS];
    atomic_int ran;
    atomic_init(&ran, 0);
    assert_int_equal(nki_kernel_submit(p.spin, s, NKI_ARGS(NKI_T(p.a)), &y, 1), NKI_OK);
    assert_int_equal(nki_kernel_submit(p.spin, s, NKI_ARGS(NKI_T(y)), &z, 1), NKI_OK);
    gate_wait_entered(&p.g);
    assert_int_equal(nki_stream_cancel(s), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_ERR_CANCELLED);
    assert_non_null(strstr(nki_context_error(p.ctx), "spin: kernels.nki:"));
    assert_int_equal(nki_tensor_copy_out(y, data, NKI_FLOAT32, CELLS), NKI_ERR_CANCELLED);
    assert_int_equal(nki_tensor_copy_out(z, data, NKI_FLOAT32, CELLS), NKI_ERR_CANCELLED);
    // The device and the stream go on.
    assert_int_equal(nki_stream_submit_host(s, count, &ran), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(atomic_load(&ran), 1);
    nki_counters c = NKI_COUNTERS_INIT;
    assert_int_equal(nki_context_counters(p.ctx, &c), NKI_OK);
    assert_int_equal(c.cancelled, 1);
    assert_int_equal(c.failures, 0);
    nki_tensor_release(y);
    nki_tensor_release(z);
    nki_stream_release(s);
    spinner_close(&p);
}

static void cancel__ends_a_call_on_another_thread(void **state)
{
    (void)state;
    spinner p;
    spinner_open(&p, 0);
    assert_int_equal(pthread_create(&p.thread, NULL, call_spin, &p), 0);
    gate_wait_entered(&p.g);
    assert_int_equal(nki_stream_cancel(nki_device_stream(nki_context_device(p.ctx, 0))), NKI_OK);
    pthread_join(p.thread, NULL);
    assert_int_equal(p.st, NKI_ERR_CANCELLED);
    spinner_close(&p);
}

static void run_timeout__ends_the_kernel_that_runs(void **state)
{
    (void)state;
    spinner p;
    spinner_open(&p, 5000000);
    nki_tensor *y = NULL;
    assert_int_equal(nki_kernel_call(p.spin, NKI_ARGS(NKI_T(p.a)), &y, 1, NULL, NULL),
                     NKI_ERR_LIMIT);
    assert_non_null(strstr(nki_context_error(p.ctx), "run_timeout_ns"));
    nki_stream *s = NULL;
    nki_stream_opts o = NKI_STREAM_OPTS_INIT;
    o.run_timeout_ns = 1000000;
    assert_int_equal(nki_stream_create(p.ctx, NULL, &o, &s), NKI_OK);
    assert_int_equal(nki_kernel_submit(p.spin, s, NKI_ARGS(NKI_T(p.a)), &y, 1), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_ERR_LIMIT);
    nki_tensor_release(y);
    nki_stream_release(s);
    spinner_close(&p);
}

typedef struct order {
    char text[16];
    size_t n;
} order;

typedef struct mark {
    order *o;
    char c;
} mark;

static int note(void *ctx)
{
    mark *m = ctx;
    m->o->text[m->o->n++] = m->c;
    return 0;
}

static void priority__decides_among_what_is_ready(void **state)
{
    (void)state;
    rig r = rig_open(1, 0);
    nki_stream *low = stream(r.ctx, -1), *mid = stream(r.ctx, 0), *high = stream(r.ctx, 5);
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    order o = {{0}, 0};
    mark m[] = {{&o, 'a'}, {&o, 'b'}, {&o, 'c'}, {&o, 'd'}};
    assert_int_equal(nki_stream_submit_host(mid, wait_at, &g), NKI_OK);
    gate_wait_entered(&g);
    assert_int_equal(nki_stream_submit_host(low, note, &m[3]), NKI_OK);
    assert_int_equal(nki_stream_submit_host(mid, note, &m[2]), NKI_OK);
    assert_int_equal(nki_stream_submit_host(high, note, &m[0]), NKI_OK);
    assert_int_equal(nki_stream_submit_host(high, note, &m[1]), NKI_OK);
    gate_open(&g);
    assert_int_equal(nki_device_synchronize(nki_context_device(r.ctx, 0), NKI_FOREVER, NULL),
                     NKI_OK);
    assert_string_equal(o.text, "abcd");
    nki_stream_release(low);
    nki_stream_release(mid);
    nki_stream_release(high);
    rig_close(&r);
}

typedef struct inside {
    nki_stream *s;
    nki_status st;
} inside;

static int synchronize_inside(void *ctx)
{
    inside *i = ctx;
    // Something is pending: this very function.
    i->st = nki_stream_synchronize(i->s, NKI_FOREVER, NULL);
    return 0;
}

static void host_function__may_not_wait_for_itself(void **state)
{
    (void)state;
    rig r = rig_open(1, 0);
    inside i = {stream(r.ctx, 0), NKI_OK};
    assert_int_equal(nki_stream_submit_host(i.s, synchronize_inside, &i), NKI_OK);
    assert_int_equal(nki_stream_synchronize(i.s, NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(i.st, NKI_ERR_ARG);
    nki_stream_release(i.s);
    rig_close(&r);
}

static void blocking__runs_at_once_and_fails_at_once(void **state)
{
    (void)state;
    rig r = rig_open(1, 1);
    nki_stream *s = stream(r.ctx, 0);
    nki_tensor *a = filled(r.ctx, 2), *out = NULL;
    assert_int_equal(nki_stream_submit_host(s, fail_17, NULL), NKI_ERR_HOST);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(nki_kernel_submit(r.mix, s, NKI_ARGS(NKI_T(a), NKI_T(a)), &out, 1), NKI_OK);
    assert_true(((float *)nki_tensor_data(out))[0] == 2.0f);
    nki_event *e[2] = {NULL, NULL};
    int64_t ns = -1;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nki_event_create(r.ctx, &e[i]), NKI_OK);
        assert_int_equal(nki_event_elapsed(e[0], e[0], &ns), i ? NKI_OK : NKI_ERR_ARG);
        assert_int_equal(nki_event_record(e[i], s), NKI_OK);
    }
    assert_int_equal(nki_event_elapsed(e[0], e[1], &ns), NKI_OK);
    assert_true(ns >= 0);
    nki_event_release(e[0]);
    nki_event_release(e[1]);
    nki_tensor_release(out);
    nki_tensor_release(a);
    nki_stream_release(s);
    rig_close(&r);
}

static void handles__may_go_before_their_work(void **state)
{
    (void)state;
    rig r = rig_open(1, 0);
    atomic_int ran;
    atomic_init(&ran, 0);
    nki_tensor *a = filled(r.ctx, 2), *out = NULL;
    nki_stream *s = stream(r.ctx, 0);
    nki_event *e = NULL;
    assert_int_equal(nki_event_create(r.ctx, &e), NKI_OK);
    assert_int_equal(nki_kernel_submit(r.mix, s, NKI_ARGS(NKI_T(a), NKI_T(a)), &out, 1), NKI_OK);
    assert_int_equal(nki_stream_submit_host(s, count, &ran), NKI_OK);
    assert_int_equal(nki_event_record(e, s), NKI_OK);
    nki_tensor_release(a);
    nki_tensor_release(out);
    nki_event_release(e);
    nki_stream_release(s);
    rig_close(&r);
    while (!atomic_load(&ran)) {  // the device's thread ends the context
        nanosleep(&(const struct timespec){0, 100000}, NULL);
    }
}

static void fork__leaves_the_parents_context_to_it(void **state)
{
    (void)state;
    rig r = rig_open(1, 0);
    nki_stream *s = stream(r.ctx, 0);
    nki_tensor *a = filled(r.ctx, 2), *out = NULL;
    assert_int_equal(nki_kernel_submit(r.mix, s, NKI_ARGS(NKI_T(a), NKI_T(a)), &out, 1), NKI_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int bad = 0;
        nki_tensor *t = NULL;
        bad |= nki_stream_synchronize(s, NKI_FOREVER, NULL) != NKI_ERR_ARG;
        bad |= strstr(nki_context_error(r.ctx), "fork") == NULL;
        bad |= nki_tensor_create(r.ctx, NKI_INT8, 0, NULL, &t) != NKI_ERR_ARG;
        bad |=
            nki_kernel_call(r.mix, NKI_ARGS(NKI_T(a), NKI_T(a)), &t, 1, NULL, NULL) != NKI_ERR_ARG;
        nki_tensor_release(a);
        nki_stream_release(s);
        nki_kernel_release(r.mix);
        nki_context_release(r.ctx);
        nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
        nki_context *own = NULL;
        nki_stream *line = NULL;
        // A context of its own, with a thread of its own.
#if defined(__SANITIZE_THREAD__)
        o.blocking = 1;  // TSan cannot start threads after a fork of several
#endif
        bad |= nki_context_create(&o, &own, NULL) != NKI_OK;
        bad |= nki_stream_create(own, NULL, NULL, &line) != NKI_OK;
        bad |= nki_tensor_create(own, NKI_INT8, 0, NULL, &t) != NKI_OK;
        nki_tensor *sum = NULL;
        bad |= nki_elementwise(own, line, "x0 + 1", &t, 1, NULL, &sum, 1) != NKI_OK;
        bad |= nki_stream_synchronize(line, NKI_FOREVER, NULL) != NKI_OK;
        int8_t one = 0;
        bad |= nki_tensor_copy_out(sum, &one, NKI_INT8, 1) != NKI_OK || one != 1;
        nki_tensor_release(sum);
        nki_tensor_release(t);
        nki_stream_release(line);
        nki_context_release(own);
        _exit(bad);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(first(out) == 2.0f);
    nki_tensor_release(out);
    nki_tensor_release(a);
    nki_stream_release(s);
    rig_close(&r);
}

// ---- random programs
//
// The model runs each submission at once. What it cannot know, a cancelled stream asks the library:
// but whatever is not failed then still has the model's value.

enum { TENSORS = 6, STREAMS = 6, EVENTS = 3, BLOCKING = 5, LIMITED = 4 };

// As in nki_status; first of what happened.
typedef nki_status fault;

typedef struct world {
    rig *r;
    nki_op *host;  // doubles x into out; fails where the first cell is above 900
    nki_kernel *spin;
    uint64_t random;
    nki_tensor *t[TENSORS];
    nki_stream *s[STREAMS];
    nki_event *e[EVENTS];
    // The model: what is there after each submission, as if it ran at once.
    float value[TENSORS][CELLS];
    fault tensor[TENSORS], stream[STREAMS], event[EVENTS];
    uint32_t cancels, timeouts, limits, hosts, blocked;  // that had something to do
} world;

static uint32_t roll(world *w, uint32_t n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % n;
}

// The first of the faults of a submission; kept by its stream, or returned when that blocks.
static fault submitted(world *w, int s, fault f, nki_status returned)
{
    f = w->stream[s] ? w->stream[s] : f;
    if (s == BLOCKING) {
        assert_int_equal(returned, f);
        w->blocked += f != NKI_OK;
    } else {
        assert_int_equal(returned, NKI_OK);
        w->stream[s] = f;
    }
    return f;
}

static void step_kernel(world *w, int s)
{
    uint32_t a = roll(w, TENSORS), b = roll(w, TENSORS), o = roll(w, TENSORS);
    bool in_place = roll(w, 2) == 0;
    o = in_place ? a : o;
    if (a == b || (!in_place && (o == a || o == b))) {
        return;
    }
    nki_status st;
    if (in_place) {
        nki_tensor *same = NULL;
        st = nki_kernel_submit(w->r->fold, w->s[s], NKI_ARGS(NKI_T(w->t[a]), NKI_T(w->t[b])), &same,
                               1);
        nki_tensor_release(same);
    } else {
        st = nki_kernel_submit_into(w->r->mix, w->s[s], NKI_ARGS(NKI_T(w->t[a]), NKI_T(w->t[b])),
                                    &w->t[o], 1);
    }
    fault f = submitted(w, s, w->tensor[a] ? w->tensor[a] : w->tensor[b], st);
    w->tensor[o] = f;
    for (int i = 0; f == NKI_OK && i < CELLS; i++) {
        w->value[o][i] = (w->value[a][i] + w->value[b][i]) * 0.5f;
    }
}

// A C function between kernels: a new tensor takes the place of one.
static void step_host(world *w, int s)
{
    uint32_t a = roll(w, TENSORS), o = roll(w, TENSORS);
    nki_tensor *out = NULL;
    nki_status st = nki_op_call(w->host, w->s[s], NKI_ARGS(NKI_T(w->t[a])), &out, 1, NULL);
    fault f = w->tensor[a] ? w->tensor[a] : w->value[a][0] > 900 ? NKI_ERR_HOST : NKI_OK;
    f = submitted(w, s, f, st);
    if (!out) {
        assert_true(s == BLOCKING && f);
        return;
    }
    for (int i = 0; f == NKI_OK && i < CELLS; i++) {
        w->value[o][i] = w->value[a][i] * 0.5f;
    }
    if (o != a) {
        nki_tensor_release(w->t[o]);
        w->t[o] = out;
        w->tensor[o] = f;
    } else {
        nki_tensor_release(w->t[a]);
        w->t[a] = out;
        w->tensor[a] = f;
    }
    w->hosts++;
}

// A kernel without end, on the stream that ends it.
static void step_limited(world *w)
{
    uint32_t a = roll(w, TENSORS), o = roll(w, TENSORS);
    if (a != o) {
        nki_status st =
            nki_kernel_submit_into(w->spin, w->s[LIMITED], NKI_ARGS(NKI_T(w->t[a])), &w->t[o], 1);
        fault f = w->tensor[a] ? w->tensor[a] : NKI_ERR_LIMIT;
        w->limits += !w->stream[LIMITED] && f == NKI_ERR_LIMIT;
        w->tensor[o] = submitted(w, LIMITED, f, st);
    }
}

static void check_tensor(world *w, uint32_t i)
{
    float got[CELLS];
    assert_int_equal(nki_tensor_copy_out(w->t[i], got, NKI_FLOAT32, CELLS), w->tensor[i]);
    if (w->tensor[i] == NKI_OK) {
        assert_memory_equal(got, w->value[i], sizeof got);
    }
}

static void step_cancel(world *w, int s)
{
    assert_int_equal(nki_stream_cancel(w->s[s]), NKI_OK);
    // All that is pending may depend on it: what became of everything?
    bool taken = false;
    for (int i = 0; i < STREAMS; i++) {
        nki_status st = nki_stream_synchronize(w->s[i], NKI_FOREVER, NULL);
        taken |= st == NKI_ERR_CANCELLED;
        assert_true(st == w->stream[i] || st == NKI_ERR_CANCELLED);
        w->stream[i] = NKI_OK;
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        float got[CELLS];
        nki_status st = nki_tensor_copy_out(w->t[i], got, NKI_FLOAT32, CELLS);
        assert_true(st == w->tensor[i] || (st == NKI_ERR_CANCELLED && taken));
        w->tensor[i] = st;
        if (st == NKI_OK) {
            assert_memory_equal(got, w->value[i], sizeof got);
        }
    }
    for (int i = 0; i < EVENTS; i++) {
        nki_status st = nki_event_synchronize(w->e[i], NKI_FOREVER, NULL);
        assert_true(st == w->event[i] || (st == NKI_ERR_CANCELLED && taken));
        w->event[i] = st;
    }
    w->cancels += taken;
}

static void step(world *w)
{
    int s = (int)roll(w, STREAMS), e = (int)roll(w, EVENTS);
    uint32_t t = roll(w, TENSORS), what = roll(w, 1000);
    if (what < 500) {
        step_kernel(w, s);
    } else if (what < 590) {
        step_host(w, s);
    } else if (what < 680) {
        fault f = submitted(w, s, NKI_OK, nki_event_record(w->e[e], w->s[s]));
        w->event[e] = f;
    } else if (what < 770) {
        submitted(w, s, w->event[e], nki_stream_wait(w->s[s], w->e[e]));
    } else if (what < 790) {
        submitted(w, s, NKI_ERR_HOST, nki_stream_submit_host(w->s[s], fail_17, NULL));
    } else if (what < 850) {
        assert_int_equal(nki_stream_synchronize(w->s[s], NKI_FOREVER, NULL), w->stream[s]);
        w->stream[s] = NKI_OK;
    } else if (what < 890) {
        for (int i = 0; i < CELLS; i++) {
            w->value[t][i] = (float)roll(w, 1000);
        }
        assert_int_equal(nki_tensor_copy_in(w->t[t], w->value[t], NKI_FLOAT32, CELLS), NKI_OK);
        w->tensor[t] = NKI_OK;
    } else if (what < 930) {
        check_tensor(w, t);
    } else if (what < 950) {
        assert_int_equal(nki_event_synchronize(w->e[e], NKI_FOREVER, NULL), w->event[e]);
    } else if (what < 980) {
        // Too short, or not.
        nki_status st = nki_stream_synchronize(w->s[s], roll(w, 2) ? 0 : 20000, NULL);
        if (st == NKI_ERR_TIMEOUT) {
            w->timeouts++;
        } else {
            assert_int_equal(st, w->stream[s]);
            w->stream[s] = NKI_OK;
        }
    } else if (what < 990) {
        step_limited(w);
    } else {
        step_cancel(w, s);
    }
}

static void *random_program(void *arg)
{
    world *w = arg;
    nki_context *ctx = w->r->ctx;
    const nki_tensor_info info = {.dtype = NKI_FLOAT32, .ndim = 2, .shape = {ROWS, COLS}};
    w->spin = kernel(ctx, "spin", &(const nki_arg){.spec = &info}, 1);
    assert_int_equal(nki_op_host(ctx, "halve", &w->host), NKI_OK);
    for (int i = 0; i < TENSORS; i++) {
        w->t[i] = filled(ctx, (float)i);
        for (int k = 0; k < CELLS; k++) {
            w->value[i][k] = (float)(i + k);
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        nki_stream_opts o = NKI_STREAM_OPTS_INIT;
        o.priority = i % 3;
        o.blocking = i == BLOCKING;
        o.run_timeout_ns = i == LIMITED ? 50000000 : 0;
        assert_int_equal(
            nki_stream_create(ctx, nki_context_device(ctx, (size_t)i % 2), &o, &w->s[i]), NKI_OK);
    }
    for (int i = 0; i < EVENTS; i++) {
        assert_int_equal(nki_event_create(ctx, &w->e[i]), NKI_OK);
    }
    for (int i = 0; i < 1500; i++) {
        step(w);
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        check_tensor(w, i);
        nki_tensor_release(w->t[i]);
    }
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(nki_stream_synchronize(w->s[i], NKI_FOREVER, NULL), w->stream[i]);
        nki_stream_release(w->s[i]);
    }
    for (int i = 0; i < EVENTS; i++) {
        nki_event_release(w->e[i]);
    }
    nki_op_release(w->host);
    nki_kernel_release(w->spin);
    return NULL;
}

static int32_t halve(const float *x, float *out, int64_t n)
{
    for (int64_t i = 0; i < n * COLS && x[0] <= 900; i++) {
        out[i] = x[i] * 0.5f;
    }
    return x[0] > 900;
}

static void random_programs__equal_the_order_of_submission(void **state)
{
    (void)state;
    enum { THREADS = 2 };
    uint32_t seen[5] = {0};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        rig r = rig_open(2, 0);
        static world w[THREADS];
        pthread_t thread[THREADS];
        memset(w, 0, sizeof w);
        assert_int_equal(nki_host_function(r.ctx, "halve",
                                           "i32(in f32[n,4] x, out f32[n,4] out, i64 n)",
                                           (nki_fn)halve, NULL),
                         NKI_OK);
        for (int i = 0; i < THREADS; i++) {
            w[i].r = &r;
            w[i].random = seed * 100 + (uint64_t)i;
            assert_int_equal(pthread_create(&thread[i], NULL, random_program, &w[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
            const uint32_t had[] = {w[i].cancels, w[i].timeouts, w[i].limits, w[i].hosts,
                                    w[i].blocked};
            for (int k = 0; k < 5; k++) {
                seen[k] += had[k];
            }
        }
        rig_close(&r);
    }
    print_message("cancelled %u, timed out %u, ended %u, host %u, blocked %u\n", seen[0], seen[1],
                  seen[2], seen[3], seen[4]);
    for (int k = 0; k < 5; k++) {
        assert_true(seen[k] > 0);
    }
}

static void *call_many(void *arg)
{
    rig *r = arg;
    nki_tensor *a = filled(r->ctx, 1), *b = filled(r->ctx, 3), *out = NULL;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(nki_kernel_call(r->mix, NKI_ARGS(NKI_T(a), NKI_T(b)), &out, 1, NULL, NULL),
                         NKI_OK);
        assert_true(((float *)nki_tensor_data(out))[1] == 3.0f);
        nki_tensor_release(out);
    }
    nki_tensor_release(a);
    nki_tensor_release(b);
    return NULL;
}

static void call__from_many_threads(void **state)
{
    (void)state;
    rig r = rig_open(1, 0);
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, call_many, &r), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream__runs_in_order_and_reads_wait),
        cmocka_unit_test(failure__is_kept_once_and_follows_the_data),
        cmocka_unit_test(failure__crosses_events_and_devices),
        cmocka_unit_test(timeout_and_cancel__leave_a_sound_stream),
        cmocka_unit_test(cancel__ends_the_kernel_that_runs),
        cmocka_unit_test(cancel__ends_a_call_on_another_thread),
        cmocka_unit_test(run_timeout__ends_the_kernel_that_runs),
        cmocka_unit_test(priority__decides_among_what_is_ready),
        cmocka_unit_test(host_function__may_not_wait_for_itself),
        cmocka_unit_test(blocking__runs_at_once_and_fails_at_once),
        cmocka_unit_test(handles__may_go_before_their_work),
        cmocka_unit_test(fork__leaves_the_parents_context_to_it),
        cmocka_unit_test(random_programs__equal_the_order_of_submission),
        cmocka_unit_test(call__from_many_threads),
    };
    return cmocka_run_group_tests_name("runtime.stream", tests, NULL, NULL);
}
