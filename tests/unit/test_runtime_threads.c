// Kernels on several threads: the bits of one thread, from every kernel of bench/kernels.nki (tiles
// that are shared by rows, by columns, and not at all), on two simulated cores, on several devices
// that share the helpers, and in a child of fork().
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/internal.h"

#include <nki/nki.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct shape {
    const char *kernel;
    size_t a[2], b[2];
} shape;

static const shape shapes[] = {
    {"matmul", {256, 128}, {256, 512}}, {"rmsnorm", {256, 512}, {128, 512}},
    {"softmax", {256, 512}, {1, 1}},    {"attention", {128, 512}, {256, 512}},
    {"add", {256, 512}, {256, 512}},    {"small", {128, 8}, {128, 8}},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static nki_context *context_of(uint32_t threads, uint32_t devices)
{
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.threads = threads;
    o.device_count = devices;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    return ctx;
}

static nki_tensor *filled(nki_context *ctx, const size_t *sizes, uint32_t salt)
{
    nki_tensor *t = NULL;
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, sizes, &t), NKI_OK);
    float *v = nki_tensor_data(t);
    for (size_t i = 0; i < sizes[0] * sizes[1]; i++) {
        v[i] = ((float)((i * 37 + salt) % 101) - 50.0f) / 64.0f;
    }
    return t;
}

// The results of a kernel of bench/kernels.nki.
static float *results(nki_context *ctx, const shape *s, size_t *n)
{
    nki_arg args[] = {{.name = "a", .tensor = filled(ctx, s->a, 1)},
                      {.name = "b", .tensor = filled(ctx, s->b, 2)}};
    nki_source src = {NKI_BENCH_KERNELS, NULL, 0};
    nki_kernel *k = NULL;
    nki_tensor *out = NULL;
    nki_status st = nki_kernel_compile(ctx, &src, s->kernel, args, 2, NULL, NULL, &k);
    assert_string_equal(st == NKI_OK ? "" : nki_context_error(ctx), "");
    assert_int_equal(nki_kernel_call(k, args, 2, &out, 1, NULL, NULL), NKI_OK);
    *n = nki_tensor_count(out);
    float *v = malloc(*n * sizeof *v);
    assert_non_null(v);
    memcpy(v, nki_tensor_data(out), *n * sizeof *v);
    nki_tensor_release(out);
    nki_kernel_release(k);
    nki_tensor_release(args[0].tensor);
    nki_tensor_release(args[1].tensor);
    return v;
}

static void threads__same_bits(void **state)
{
    (void)state;
    static const uint32_t counts[] = {2, 3, 8, 16};
    for (int i = 0; i < SHAPES; i++) {
        size_t n, m;
        nki_context *one = context_of(1, 1);
        float *want = results(one, &shapes[i], &n);
        nki_context_release(one);
        for (int c = 0; c < 4; c++) {
            for (int forced = c == 0 ? 0 : 1; forced < 2; forced++) {
                pool_force(forced);
                nki_context *ctx = context_of(counts[c], 1);
                float *got = results(ctx, &shapes[i], &m);
                assert_int_equal(m, n);
                if (memcmp(got, want, n * sizeof *got) != 0) {
                    fail_msg("%s: other bits with %u threads", shapes[i].kernel, counts[c]);
                }
                free(got);
                nki_context_release(ctx);
                pool_force(false);
            }
        }
        free(want);
    }
}

static const char two_cores[] =
    "import nki\n"
    "import nki.isa as nisa\n"
    "import nki.language as nl\n"
    "@nki.jit\n"
    "def k(x):\n"
    "    out = nl.ndarray((256, 512), dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    i = nl.program_id(0)\n"
    "    t = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=t, src=x[i * 128:i * 128 + 128, :])\n"
    "    nisa.activation(dst=t, op=nl.exp, data=t)\n"
    "    nisa.dma_copy(dst=out[i * 128:i * 128 + 128, :], src=t)\n"
    "    return out\n";

// Devices run at the same time; each has the helpers when they are free.
static void threads__shared_by_devices(void **state)
{
    (void)state;
    enum { DEVICES = 4, ROUNDS = 20 };
    pool_force(true);
    nki_context *ctx = context_of(3, DEVICES);
    nki_compile_opts o = NKI_COMPILE_OPTS_INIT;
    o.grid = 2;
    size_t sizes[] = {256, 512};
    nki_arg arg = {.name = "x", .tensor = filled(ctx, sizes, 3)};
    nki_source src = {"k.nki", two_cores, strlen(two_cores)};
    nki_kernel *k = NULL;
    nki_status st = nki_kernel_compile(ctx, &src, NULL, &arg, 1, &o, NULL, &k);
    assert_string_equal(st == NKI_OK ? "" : nki_context_error(ctx), "");
    nki_tensor *want = NULL;
    assert_int_equal(nki_kernel_call(k, &arg, 1, &want, 1, NULL, NULL), NKI_OK);
    nki_stream *streams[DEVICES];
    nki_tensor *got[DEVICES][ROUNDS];
    for (size_t d = 0; d < DEVICES; d++) {
        assert_int_equal(nki_stream_create(ctx, nki_context_device(ctx, d), NULL, &streams[d]),
                         NKI_OK);
    }
    for (int r = 0; r < ROUNDS; r++) {
        for (size_t d = 0; d < DEVICES; d++) {
            got[d][r] = NULL;
            assert_int_equal(nki_kernel_submit(k, streams[d], &arg, 1, &got[d][r], 1), NKI_OK);
        }
    }
    for (size_t d = 0; d < DEVICES; d++) {
        assert_int_equal(nki_stream_synchronize(streams[d], NKI_FOREVER, NULL), NKI_OK);
        for (int r = 0; r < ROUNDS; r++) {
            assert_memory_equal(nki_tensor_data(got[d][r]), nki_tensor_data(want), 256 * 512 * 4);
            nki_tensor_release(got[d][r]);
        }
        nki_stream_release(streams[d]);
    }
    nki_tensor_release(want);
    nki_tensor_release(arg.tensor);
    nki_kernel_release(k);
    nki_context_release(ctx);
    pool_force(false);
}

// The parent's helpers are not there in the child, which is not to wait for them.
static void threads__fork(void **state)
{
    (void)state;
    size_t n, m;
    pool_force(true);
    nki_context *ctx = context_of(4, 1);
    float *want = results(ctx, &shapes[0], &n);
    pid_t child = fork();
    if (child == 0) {
        nki_context_release(ctx);
#if defined(__SANITIZE_THREAD__)
        enum { THREADS = 1 };  // TSan cannot start threads after a fork of several
#else
        enum { THREADS = 4 };
#endif
        nki_context *own = context_of(THREADS, 1);
        float *got = results(own, &shapes[0], &m);
        bool same = m == n && memcmp(got, want, n * sizeof *got) == 0;
        nki_context_release(own);
        _exit(same ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    free(want);
    want = results(ctx, &shapes[0], &m);
    assert_int_equal(m, n);
    free(want);
    nki_context_release(ctx);
    pool_force(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads__same_bits),
        cmocka_unit_test(threads__shared_by_devices),
        cmocka_unit_test(threads__fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
