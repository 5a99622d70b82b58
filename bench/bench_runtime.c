// What the runtime adds to a kernel: calls, submissions, loading.
//
//   bench_runtime
//
// Prints TSV: name, iters, ns_per_op (median), spread ((third quartile - first) / median). The
// trivial kernel copies one element from HBM to HBM; its own run is part of call.* and not of
// submit.*, where the device runs meanwhile.
#include <nki/nki.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 41, BATCH = 400 };

static const char text[] = "import nki\n"
                           "import nki.isa as nisa\n"
                           "import nki.language as nl\n"
                           "@nki.jit\n"
                           "def trivial(x):\n"
                           "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
                           "    nisa.dma_copy(dst=y, src=x)\n"
                           "    return y\n"
                           "@nki.jit\n"
                           "def long(x, n):\n"
                           "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
                           "    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
                           "    nisa.dma_copy(dst=t, src=x)\n"
                           "    for i in range(n):\n"
                           "        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)\n"
                           "    nisa.dma_copy(dst=y, src=t)\n"
                           "    return y\n"
                           "@nki.jit\n"
                           "def tiles(x, n):\n"
                           "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
                           "    for i in range(n // 5):\n"
                           "        at = i % 8 * 64\n"
                           "        a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)\n"
                           "        b = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
                           "        nisa.dma_copy(dst=a, src=x[:, at:at + 64])\n"
                           "        nisa.tensor_scalar(dst=b, data=a, op0=nl.add, operand0=1.0)\n"
                           "        nisa.tensor_tensor(dst=b, data1=b, data2=a, op=nl.multiply)\n"
                           "        nisa.activation(dst=a, data=b, op=nl.exp)\n"
                           "        nisa.dma_copy(dst=y[:, at:at + 64], src=a)\n"
                           "    return y\n";

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, double *ns, int n, int per)
{
    qsort(ns, (size_t)n, sizeof *ns, by_value);
    double median = ns[n / 2];
    printf("%s\t%d\t%.1f\t%.3f\n", name, n * per, median / per,
           (ns[3 * n / 4] - ns[n / 4]) / median);
    fflush(stdout);
}

static nki_context *ctx;

static void must(nki_status st)
{
    if (st != NKI_OK) {
        fprintf(stderr, "bench_runtime: %s: %s\n", nki_status_name(st), nki_context_error(ctx));
        exit(1);
    }
}

static void calls(nki_kernel *k, nki_tensor *x)
{
    static double ns[ROUNDS];
    nki_tensor *y;
    for (int r = 0; r < ROUNDS; r++) {
        double start = now_ns();
        for (int i = 0; i < BATCH; i++) {
            must(nki_kernel_call(k, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL));
            nki_tensor_release(y);
        }
        ns[r] = now_ns() - start;
    }
    report("call.new_output", ns, ROUNDS, BATCH);
}

// With and without the pause in which the device's thread falls asleep.
static void submits(nki_kernel *k, nki_tensor *x, nki_tensor *y, nki_stream *s)
{
    static double submit[ROUNDS], whole[ROUNDS], pair[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double start = now_ns();
        for (int i = 0; i < BATCH; i++) {
            must(nki_kernel_submit_into(k, s, NKI_ARGS(NKI_T(x)), &y, 1));
        }
        submit[r] = now_ns() - start;
        must(nki_stream_synchronize(s, NKI_FOREVER, NULL));
        whole[r] = now_ns() - start;
    }
    report("submit.burst", submit, ROUNDS, BATCH);
    report("submit.burst_and_run", whole, ROUNDS, BATCH);
    for (int r = 0; r < ROUNDS; r++) {
        double start = now_ns();
        for (int i = 0; i < BATCH; i++) {
            must(nki_kernel_submit_into(k, s, NKI_ARGS(NKI_T(x)), &y, 1));
            must(nki_stream_synchronize(s, NKI_FOREVER, NULL));
        }
        pair[r] = now_ns() - start;
    }
    report("submit.and_synchronize", pair, ROUNDS, BATCH);
    for (int r = 0; r < ROUNDS; r++) {
        nanosleep(&(const struct timespec){0, 300000}, NULL);
        double start = now_ns();
        must(nki_kernel_submit_into(k, s, NKI_ARGS(NKI_T(x)), &y, 1));
        pair[r] = now_ns() - start;
        must(nki_stream_synchronize(s, NKI_FOREVER, NULL));
    }
    report("submit.to_a_sleeping_device", pair, ROUNDS, 1);
}

// The stages of the last load, from its log line.
static double stage_ms[2];

static void stages(void *arg, nki_log_level level, const char *line, size_t len)
{
    static const char *const names[] = {"read_ms=", "bind_ms="};
    char copy[1024];
    (void)arg;
    (void)level;
    snprintf(copy, sizeof copy, "%.*s", (int)len, line);
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(copy, names[i]);
        stage_ms[i] = at ? strtod(at + strlen(names[i]), NULL) : stage_ms[i];
    }
}

static void loads(const char *entry, const nki_arg *args, size_t arg_count)
{
    enum { LOADS = 9 };
    static const char *const rows[] = {"", ".read", ".bind", ".verify"};
    char name[64];
    const nki_source src = {"bench.nki", text, sizeof text - 1};
    nki_kernel *k, *again;
    size_t len;
    double ns[4][LOADS];
    must(nki_kernel_compile(ctx, &src, entry, args, arg_count, NULL, NULL, &k));
    const void *bytes = nki_kernel_neff(k, &len);
    for (int r = 0; r < LOADS; r++) {
        double start = now_ns();
        must(nki_kernel_load(ctx, bytes, len, &again));
        ns[0][r] = now_ns() - start;
        for (int i = 0; i < 2; i++) {
            ns[1 + i][r] = stage_ms[i] * 1e6;
        }
        start = now_ns();
        must(nki_kernel_verify(again));
        ns[3][r] = now_ns() - start;
        nki_kernel_release(again);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "load.%s.100k_instructions%s", entry, rows[i]);
        report(name, ns[i], LOADS, 1);
    }
    nki_kernel_release(k);
}

static void ops(nki_tensor *x)
{
    static double ns[ROUNDS];
    nki_tensor *y;
    must(nki_elementwise(ctx, NULL, "relu(x0) + 1", &x, 1, NULL, &y, 1));
    nki_tensor_release(y);
    for (int r = 0; r < ROUNDS; r++) {
        double start = now_ns();
        must(nki_elementwise(ctx, NULL, "relu(x0) + 1", &x, 1, NULL, &y, 1));
        ns[r] = now_ns() - start;
        nki_tensor_release(y);
    }
    report("elementwise.warm", ns, ROUNDS, 1);
}

int main(void)
{
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.log = stages;
    o.log_level = NKI_LOG_INFO;
    if (nki_context_create(&o, &ctx, NULL) != NKI_OK) {
        return 1;
    }
    const nki_source src = {"bench.nki", text, sizeof text - 1};
    nki_tensor *x, *y;
    nki_kernel *k;
    nki_stream *s;
    must(nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){1, 1}, &x));
    must(nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){1, 1}, &y));
    must(nki_kernel_compile(ctx, &src, "trivial", NKI_ARGS(NKI_T(x)), NULL, NULL, &k));
    must(nki_stream_create(ctx, NULL, NULL, &s));
    printf("name\titers\tns_per_op\tspread\n");
    calls(k, x);
    submits(k, x, y, s);
    ops(x);
    const nki_tensor_info wide = {.dtype = NKI_FLOAT32, .ndim = 2, .shape = {128, 512}};
    loads("long", NKI_ARGS(NKI_T(x), NKI_I(100000)));
    loads("tiles", NKI_ARGS({.spec = &wide}, NKI_I(100000)));
    nki_stream_release(s);
    nki_kernel_release(k);
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_context_release(ctx);
    return 0;
}
