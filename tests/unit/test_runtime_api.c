// The C API: what an embedder may get wrong, what a kernel may get wrong, and no memory at any
// point.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/dlpack.h"
#include "tests/support/failing_alloc.h"

#include <nki/nki.h>
#include <nki/profile.h>
#include <nki/tool.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char add_text[] =
    "import nki\n"
    "import nki.isa as nisa\n"
    "import nki.language as nl\n"
    "@nki.jit\n"
    "def add(a, b):\n"
    "    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
    "    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)\n"
    "    y = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=x, src=a)\n"
    "    nisa.dma_copy(dst=y, src=b)\n"
    "    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)\n"
    "    nisa.dma_copy(dst=out, src=x)\n"
    "    return out\n";

static const nki_source add_source = {"add.nki", add_text, sizeof add_text - 1};

static nki_context *context(void)
{
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    return ctx;
}

static nki_tensor *iota(nki_context *ctx, size_t rows, size_t cols)
{
    nki_tensor *t = NULL;
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (size_t[]){rows, cols}, &t), NKI_OK);
    for (size_t i = 0; i < rows * cols; i++) {
        ((float *)nki_tensor_data(t))[i] = (float)i;
    }
    return t;
}

static void context__refuses_what_it_does_not_know(void **state)
{
    (void)state;
    nki_context *ctx = NULL;
    const char *why = NULL;
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.size--;
    assert_int_equal(nki_context_create(&o, &ctx, &why), NKI_ERR_ARG);
    assert_non_null(strstr(why, "size"));
    o = (nki_context_opts)NKI_CONTEXT_OPTS_INIT;
    o.target = "trn0";
    assert_int_equal(nki_context_create(&o, &ctx, &why), NKI_ERR_ARG);
    assert_null(ctx);
    o.target = "gen2";
    const char *warnings[] = {"no-such-warning"};
    o.warnings = warnings;
    o.warning_count = 1;
    assert_int_equal(nki_context_create(&o, &ctx, &why), NKI_ERR_ARG);
    o.warning_count = 0;
    assert_int_equal(nki_context_create(&o, &ctx, &why), NKI_OK);
    assert_string_equal(nki_context_target(ctx), "trn1");
    nki_context_release(ctx);
    nki_context_release(NULL);
    assert_int_equal(nki_context_create(NULL, NULL, NULL), NKI_ERR_ARG);
}

static void tensor__converts_in_and_out(void **state)
{
    (void)state;
    nki_context *ctx = context();
    nki_tensor *t = NULL;
    const float in[] = {1.0f, 1.00390625f, -3.5f, 1e9f};
    assert_int_equal(nki_tensor_create(ctx, NKI_BFLOAT16, 1, (size_t[]){4}, &t), NKI_OK);
    assert_int_equal(nki_tensor_copy_in(t, in, NKI_FLOAT32, 3), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_copy_in(t, in, NKI_FLOAT32, 4), NKI_OK);
    assert_int_equal(((uint16_t *)nki_tensor_data(t))[0], 0x3f80);
    assert_int_equal(((uint16_t *)nki_tensor_data(t))[1], 0x3f80);  // a tie goes to even
    int32_t out[4];
    assert_int_equal(nki_tensor_copy_out(t, out, NKI_INT32, 4), NKI_OK);
    assert_int_equal(out[0], 1);
    assert_int_equal(nki_tensor_copy_out(t, out, (nki_dtype)99, 4), NKI_ERR_ARG);
    nki_tensor_release(t);
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 9, (size_t[9]){1}, &t), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_create(ctx, (nki_dtype)-1, 0, NULL, &t), NKI_ERR_ARG);
    assert_int_equal(
        nki_tensor_create(ctx, NKI_FLOAT32, 3, (size_t[]){4000000000u, 4000000000u, 4}, &t),
        NKI_ERR_NOMEM);
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (size_t[]){0, 5}, &t), NKI_OK);
    assert_int_equal(nki_tensor_count(t), 0);
    nki_tensor_release(t);
    nki_context_release(ctx);
}

static void kernel__runs_again_on_other_tensors(void **state)
{
    (void)state;
    nki_context *ctx = context();
    nki_tensor *a = iota(ctx, 5, 7), *b = iota(ctx, 5, 7), *out = NULL;
    nki_kernel *k = NULL;
    nki_arg args[] = {{.tensor = a}, {.name = "b", .tensor = a}};
    assert_int_equal(nki_kernel_compile(ctx, &add_source, NULL, args, 2, NULL, NULL, &k), NKI_OK);
    assert_string_equal(nki_kernel_name(k), "add");
    assert_int_equal(nki_kernel_param_count(k), 2);
    assert_int_equal(nki_kernel_output_count(k), 1);
    for (int round = 1; round <= 2; round++) {
        ((float *)nki_tensor_data(b))[34] = (float)round;
        args[1].tensor = b;
        assert_int_equal(nki_kernel_call(k, args, 2, &out, 1, NULL, NULL), NKI_OK);
        assert_true(((float *)nki_tensor_data(out))[34] == 34.0f + (float)round);
        assert_true(((float *)nki_tensor_data(out))[3] == 6.0f);
        nki_tensor_release(out);
    }
    // What does not fit is refused before anything runs.
    nki_tensor *wide = iota(ctx, 5, 8);
    args[1].tensor = wide;
    assert_int_equal(nki_kernel_call(k, args, 2, &out, 1, NULL, NULL), NKI_ERR_ARG);
    assert_non_null(strstr(nki_context_error(ctx), "float32[5, 8]"));
    assert_null(out);
    assert_int_equal(nki_kernel_call(k, args, 1, &out, 1, NULL, NULL), NKI_ERR_ARG);
    assert_int_equal(nki_kernel_call(k, args, 2, &out, 0, NULL, NULL), NKI_ERR_ARG);
    nki_tensor_release(wide);

    // The container alone gives the same kernel.
    size_t len = 0;
    const void *neff = nki_kernel_neff(k, &len);
    nki_kernel *loaded = NULL;
    assert_int_equal(nki_kernel_load(ctx, neff, len, &loaded), NKI_OK);
    args[1].tensor = b;
    assert_int_equal(nki_kernel_call(loaded, args, 2, &out, 1, NULL, NULL), NKI_OK);
    assert_true(((float *)nki_tensor_data(out))[3] == 6.0f);
    nki_tensor_release(out);
    nki_kernel_release(loaded);
    assert_int_equal(nki_kernel_load(ctx, neff, len - 1, &loaded), NKI_ERR_FORMAT);
    assert_int_equal(nki_kernel_load(ctx, "x", 1, &loaded), NKI_ERR_FORMAT);
    assert_null(loaded);

    nki_kernel_release(k);
    nki_tensor_release(a);
    nki_tensor_release(b);
    nki_context_release(ctx);
}

static void compile__same_input_same_bytes(void **state)
{
    (void)state;
    nki_context *ctx = context();
    nki_tensor_info spec = {.dtype = NKI_BFLOAT16, .ndim = 2, .shape = {128, 64}};
    const nki_arg args[] = {{.name = "a", .spec = &spec}, {.name = "b", .spec = &spec}};
    nki_kernel *k[2];
    size_t len[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nki_kernel_compile(ctx, &add_source, "add", args, 2, NULL, NULL, &k[i]),
                         NKI_OK);
        nki_kernel_neff(k[i], &len[i]);
    }
    assert_int_equal(len[0], len[1]);
    assert_memory_equal(nki_kernel_neff(k[0], &len[0]), nki_kernel_neff(k[1], &len[1]), len[0]);
    nki_kernel_release(k[0]);
    nki_kernel_release(k[1]);
    nki_context_release(ctx);
}

static void compile__says_what_is_wrong(void **state)
{
    (void)state;
    nki_context *ctx = context();
    nki_kernel *k = NULL;
    nki_diags *ds = NULL;
    assert_int_equal(nki_diags_create(&ds), NKI_OK);
    const nki_source bad = {"bad.nki", "x = = 1\n", 8};
    assert_int_equal(nki_kernel_compile(ctx, &bad, NULL, NULL, 0, NULL, ds, &k), NKI_ERR_DIAG);
    assert_null(k);
    nki_diag d;
    assert_int_equal(nki_diags_errors(ds), 1);
    assert_int_equal(nki_diags_at(ds, 0, &d), NKI_OK);
    assert_string_equal(d.path, "bad.nki");
    assert_int_equal(d.line, 1);
    assert_int_equal(d.col, 5);
    assert_int_equal(nki_diags_at(ds, 1, &d), NKI_ERR_ARG);
    const char *text = NULL;
    assert_int_equal(nki_diags_render(ds, NKI_DIAG_TEXT, 0, &text), NKI_OK);
    assert_non_null(strstr(text, "bad.nki:1:5: error["));
    assert_non_null(strstr(text, "\n    1 | x = = 1\n"));
    nki_diags_clear(ds);
    assert_int_equal(nki_diags_count(ds), 0);

    const nki_source gone = {"no/such/file.nki", NULL, 0};
    assert_int_equal(nki_kernel_compile(ctx, &gone, NULL, NULL, 0, NULL, ds, &k), NKI_ERR_IO);
    assert_non_null(strstr(nki_context_error(ctx), "no/such/file.nki"));

    const nki_arg both = {.name = "a", .expr = "1", .spec = &(nki_tensor_info){.ndim = 0}};
    assert_int_equal(nki_kernel_compile(ctx, &add_source, NULL, &both, 1, NULL, ds, &k),
                     NKI_ERR_ARG);
    const nki_arg order[] = {{.name = "a", .expr = "1"}, {.expr = "2"}};
    assert_int_equal(nki_kernel_compile(ctx, &add_source, NULL, order, 2, NULL, ds, &k),
                     NKI_ERR_ARG);
    nki_compile_opts grid = NKI_COMPILE_OPTS_INIT;
    grid.grid = 3;
    assert_int_equal(nki_kernel_compile(ctx, &add_source, NULL, NULL, 0, &grid, ds, &k),
                     NKI_ERR_ARG);
    nki_diags_release(ds);
    nki_context_release(ctx);
}

static void memory_limit__is_a_status(void **state)
{
    (void)state;
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    nki_tensor_info spec = {.dtype = NKI_FLOAT32, .ndim = 2, .shape = {8, 8}};
    const nki_arg args[] = {{.spec = &spec}, {.spec = &spec}};
    int limited = 0;
    nki_status st = NKI_ERR_NOMEM;
    for (o.memory_limit_bytes = 1000; st != NKI_OK;
         o.memory_limit_bytes += o.memory_limit_bytes / 3) {
        nki_context *ctx = NULL;
        nki_kernel *k = NULL;
        assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
        st = nki_kernel_compile(ctx, &add_source, NULL, args, 2, NULL, NULL, &k);
        assert_true(st == NKI_OK || st == NKI_ERR_LIMIT || st == NKI_ERR_NOMEM);
        assert_int_equal(st == NKI_OK, *nki_context_error(ctx) == '\0');
        limited += st == NKI_ERR_LIMIT;
        nki_kernel_release(k);
        nki_context_release(ctx);
    }
    assert_true(limited > 3);
}

static int32_t twice(const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = 2 * x[i];
    }
    return 0;
}

static const nki_allocator *allocator_given;

// Views, streams, events, generated ops and host functions, in a context that makes no thread.
static nki_status more_steps(void)
{
    nki_context *ctx = NULL;
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.blocking = 1;
    o.allocator = allocator_given;
    nki_tensor *a = NULL, *v = NULL, *y = NULL, *z = NULL;
    nki_stream *s = NULL;
    nki_event *e = NULL;
    nki_op *op = NULL;
    nki_status st = nki_context_create(&o, &ctx, NULL);
    st = st ? st : nki_trace_start(ctx, 0);
    st = st ? st : nki_stream_create(ctx, NULL, NULL, &s);
    st = st ? st : nki_event_create(ctx, &e);
    st = st ? st : nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 4}, &a);
    st = st ? st : nki_tensor_permute(a, (const size_t[]){1, 0}, &v);
    st = st ? st : nki_sum(ctx, s, v, &y);
    st = st ? st : nki_event_record(e, s);
    st = st ? st : nki_stream_wait(s, e);
    st = st ? st
            : nki_host_function(ctx, "twice", "i32(f32[n] x, out f32[n] y, i64 n)", (nki_fn)twice,
                                NULL);
    st = st ? st : nki_op_host(ctx, "twice", &op);
    st = st ? st : nki_op_call(op, s, NKI_ARGS(NKI_T(y)), &z, 1, NULL);
    st = st ? st : nki_stream_synchronize(s, NKI_FOREVER, NULL);
    nki_op_release(op);
    nki_tensor_release(z);
    nki_tensor_release(y);
    nki_tensor_release(v);
    nki_tensor_release(a);
    nki_event_release(e);
    nki_stream_release(s);
    nki_context_release(ctx);
    return st;
}

// Kernels: loaded, as C functions, in another order, timed; tensors lent and taken.
static nki_status kernel_steps(nki_context *ctx, nki_kernel *k, nki_tensor *a)
{
    nki_kernel *again = NULL;
    nki_profile *p = NULL;
    nki_fn fn = NULL;
    const char *text = NULL;
    struct DLManagedTensorVersioned *lent = NULL;
    nki_tensor *taken = NULL, *out = NULL;
    size_t len = 0;
    const void *bytes = nki_kernel_neff(k, &len);
    nki_status st = nki_kernel_load(ctx, bytes, len, &again);
    st = st ? st : nki_kernel_verify(again);
    st = st ? st : nki_kernel_signature(again, &text);
    st = st ? st : nki_kernel_function(again, text, &fn);
    st = st ? st : nki_tool_reorder(again, 3);
    st = st ? st : nki_kernel_submit(again, NULL, NKI_ARGS(NKI_T(a), NKI_T(a)), &out, 1);
    st = st ? st : nki_device_synchronize(nki_context_device(ctx, 0), NKI_FOREVER, NULL);
    st = st ? st : nki_profile_create(k, NULL, &p);
    st = st ? st : nki_profile_render(p, NKI_PROFILE_JSON, &text, &len);
    st = st ? st : nki_tensor_to_dlpack_versioned(a, &lent);
    if (lent && nki_tensor_from_dlpack_versioned(ctx, lent, &taken) != NKI_OK) {
        st = NKI_ERR_NOMEM;
        lent->deleter(lent);
    }
    nki_tensor_release(taken);
    nki_tensor_release(out);
    nki_profile_release(p);
    nki_kernel_release(again);
    return st;
}

// Everything once; the status of the first step that failed.
static nki_status all_steps(void)
{
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.allocator = allocator_given;
    nki_context *ctx = NULL;
    nki_tensor *a = NULL, *out = NULL;
    nki_kernel *k = NULL;
    nki_diags *ds = NULL;
    nki_status st = nki_context_create(&o, &ctx, NULL);
    if (st == NKI_OK) {
        st = nki_diags_create(&ds);
    }
    if (st == NKI_OK) {
        st = nki_tensor_create(ctx, NKI_FLOAT32, 2, (size_t[]){3, 4}, &a);
    }
    const nki_arg args[] = {{.name = "a", .tensor = a}, {.name = "b", .tensor = a}};
    if (st == NKI_OK) {
        st = nki_kernel_compile(ctx, &add_source, NULL, args, 2, NULL, ds, &k);
    }
    if (st == NKI_OK) {
        st = nki_kernel_call(k, args, 2, &out, 1, ds, NULL);
    }
    if (st == NKI_OK) {
        st = kernel_steps(ctx, k, a);
    }
    nki_tensor_release(out);
    nki_kernel_release(k);
    nki_tensor_release(a);
    nki_diags_release(ds);
    nki_context_release(ctx);
    return st == NKI_OK ? more_steps() : st;
}

// Steps of n: all of the first, then fewer; all with NKI_ALLOC_ALL in the environment.
static long next_failure(long n)
{
    return n + 1 + (getenv("NKI_ALLOC_ALL") ? 0 : n / 100);
}

// once: what is allocated later works, and what does not hurt (a log line, an entry of a trace) may
// go missing.
static void fail_each(void (*arm)(long), bool once)
{
    long n = 0;
    for (;; n = next_failure(n)) {
        arm(n);
        nki_status st = all_steps();
        int hit = failing_alloc_hit();
        arm(-1);
        if (!hit) {
            assert_int_equal(st, NKI_OK);
            break;
        }
        if (st != NKI_ERR_NOMEM && !(once && st == NKI_OK)) {
            fail_msg("allocation %ld failed: %s", n, nki_status_name(st));
        }
        assert_true(n < 100000);
    }
    assert_true(n > 100);
}

static void every_allocation__may_fail(void **state)
{
    (void)state;
    fail_each(failing_alloc_set, false);
}

static void every_allocation__may_fail_alone(void **state)
{
    (void)state;
    fail_each(failing_alloc_once, true);
}

// ---- the embedder's allocator

typedef struct heap {
    atomic_size_t alive_bytes, peak_bytes;
    atomic_long calls;
    long fail_at;  // -1: never
} heap;

static void *heap_alloc(void *ctx, size_t size, size_t align)
{
    heap *h = ctx;
    if (atomic_fetch_add(&h->calls, 1) == h->fail_at) {
        return NULL;
    }
    size_t now = atomic_fetch_add(&h->alive_bytes, size) + size;
    size_t peak = atomic_load(&h->peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&h->peak_bytes, &peak, now)) {
    }
    void *p = NULL;  // not one of the counted
    return posix_memalign(&p, align, size) == 0 ? p : NULL;
}

static void heap_release(void *ctx, void *p, size_t size, size_t align)
{
    heap *h = ctx;
    (void)align;
    atomic_fetch_sub(&h->alive_bytes, size);
    free(p);
}

static void allocator__each_allocation_may_fail(void **state)
{
    (void)state;
    heap h = {0};
    const nki_allocator a = {heap_alloc, heap_release, &h};
    allocator_given = &a;
    for (h.fail_at = 0;; h.fail_at = next_failure(h.fail_at)) {
        atomic_store(&h.calls, 0);
        nki_status st = all_steps();
        assert_int_equal(atomic_load(&h.alive_bytes), 0);
        if (st == NKI_OK) {
            break;
        }
        assert_int_equal(st, NKI_ERR_NOMEM);
        assert_true(h.fail_at < 10000);
    }
    assert_true(h.fail_at > 20);
    allocator_given = NULL;
}

// A compile, a load and the bound kernel are the allocator's; the C library has bookkeeping and the
// container while it is written.
static void allocator__has_what_compiles_need(void **state)
{
    (void)state;
    static const char text[] =
        "import nki\n"
        "import nki.isa as nisa\n"
        "import nki.language as nl\n"
        "@nki.jit\n"
        "def long(x):\n"
        "    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
        "    nisa.dma_copy(dst=t, src=x)\n"
        "    for i in range(4000):\n"
        "        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)\n"
        "    nisa.dma_copy(dst=x, src=t)\n"
        "    return x\n";
    heap h = {.fail_at = -1};
    const nki_allocator a = {heap_alloc, heap_release, &h};
    const nki_source src = {"long.nki", text, sizeof text - 1};
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.allocator = &a;
    nki_context *ctx = NULL;
    nki_tensor *x = NULL;
    nki_kernel *k = NULL, *again = NULL;
    size_t len = 0;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){1, 8}, &x), NKI_OK);
    failing_alloc_set(-1);
    assert_int_equal(nki_kernel_compile(ctx, &src, NULL, NKI_ARGS(NKI_T(x)), NULL, NULL, &k),
                     NKI_OK);
    const void *bytes = nki_kernel_neff(k, &len);
    assert_true(atomic_load(&h.peak_bytes) > 3 * len);  // IR, container, bound instructions
    assert_true(failing_alloc_bytes() < len + (1 << 20));
    size_t before = atomic_load(&h.alive_bytes);
    failing_alloc_set(-1);
    assert_int_equal(nki_kernel_load(ctx, bytes, len, &again), NKI_OK);
    assert_true(atomic_load(&h.alive_bytes) - before > len);
    assert_true(failing_alloc_bytes() < 1 << 16);
    nki_kernel_release(again);
    nki_kernel_release(k);
    nki_tensor_release(x);
    nki_context_release(ctx);
    assert_int_equal(atomic_load(&h.alive_bytes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context__refuses_what_it_does_not_know),
        cmocka_unit_test(tensor__converts_in_and_out),
        cmocka_unit_test(kernel__runs_again_on_other_tensors),
        cmocka_unit_test(compile__same_input_same_bytes),
        cmocka_unit_test(compile__says_what_is_wrong),
        cmocka_unit_test(memory_limit__is_a_status),
        cmocka_unit_test(every_allocation__may_fail),
        cmocka_unit_test(every_allocation__may_fail_alone),
        cmocka_unit_test(allocator__each_allocation_may_fail),
        cmocka_unit_test(allocator__has_what_compiles_need),
    };
    return cmocka_run_group_tests_name("runtime.api", tests, NULL, NULL);
}
