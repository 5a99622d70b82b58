// libffi both ways: kernels as C functions, C functions as ops.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nki/nki.h>
#include <nki/tool.h>

#include <string.h>

static nki_context *context(void)
{
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    return ctx;
}

static nki_kernel *softmax(nki_context *ctx)
{
    const nki_tensor_info spec = {.dtype = NKI_FLOAT32, .ndim = 2, .shape = {2, 3}};
    nki_op *op = NULL;
    nki_kernel *k = NULL;
    assert_int_equal(nki_op_builtin(ctx, "softmax", &op), NKI_OK);
    const nki_arg arg = {.spec = &spec};
    assert_int_equal(nki_op_specialize(op, &arg, 1, NULL, NULL, &k), NKI_OK);
    nki_op_release(op);
    return k;
}

static void kernel__is_a_c_function(void **state)
{
    (void)state;
    nki_context *ctx = context();
    nki_kernel *k = softmax(ctx);
    const char *text = NULL;
    assert_int_equal(nki_kernel_signature(k, &text), NKI_OK);
    assert_string_equal(text, "i32(in float32[2,3] x, out float32[2,3] out0)");
    nki_fn fn = NULL;
    assert_int_equal(nki_kernel_function(k, "i32(f32[2, n] x, out f32[2, n] y)", &fn), NKI_OK);
    int32_t (*f)(const float *, float *) = (int32_t(*)(const float *, float *))fn;
    const float x[6] = {1, 1, 1, 0, 0, 100};
    float y[6] = {0};
    assert_int_equal(f(x, y), NKI_OK);
    assert_true(y[5] == 1.0f && y[0] > 0.333f && y[0] < 0.334f);
    assert_int_equal(f(NULL, y), NKI_ERR_ARG);
    static const char *const wrong[][2] = {
        {"i32(f32[2,3] x)", "1 parameters"},
        {"i32(f32[2,4] x, out f32[2,4] y)", "dimension 1 of 'x' is 3"},
        {"i32(f32[n,n] x, out f32[2,3] y)", "says n = 2"},
        {"i32(bf16[2,3] x, out f32[2,3] y)", "bfloat16"},
        {"i32(inout f32[2,3] x, out f32[2,3] y)", "is in float32"},
        {"i32(f32[2,3] x, f32[2,3] y)", "is out float32"},
        {"i32(f32[2,3] x, i64 y)", "is out"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(nki_kernel_function(k, wrong[i][0], &fn), NKI_ERR_ARG);
        assert_null(fn);
        if (!strstr(nki_context_error(ctx), wrong[i][1])) {
            fail_msg("%s: %s", wrong[i][0], nki_context_error(ctx));
        }
    }
    nki_kernel_release(k);
    nki_context_release(ctx);
}

static void signature__errors_have_a_place(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "character 1: expected i32 or void"},
        {"int(f32[2] x)", "character 1: expected i32 or void"},
        {"void f32[2] x)", "expected '('"},
        {"void(f32[2 x)", "expected ']'"},
        {"void(f99[2] x)", "'f99' is no type"},
        {"void(f32[2])", "expected a name"},
        {"void(in i64 n)", "for tensors"},
        {"void(f32[99999999999] x)", "at most 4294967295"},
        {"void(f32[1,1,1,1,1,1,1,1,1] x)", "at most 8 dimensions"},
        {"void(f32[2] x, f32[2] x)", "two parameters are named 'x'"},
        {"void(ptr a, ptr b)", "one registered pointer"},
        {"void(f32[n] x, f64 n)", "'n' is a size"},
        {"void(out f32[n] x)", "how large 'n'"},
        {"void() x", "something follows"},
    };
    nki_context *ctx = context();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(nki_host_function(ctx, "f", wrong[i][0], (nki_fn)context, NULL),
                         NKI_ERR_ARG);
        if (!strstr(nki_context_error(ctx), wrong[i][1])) {
            fail_msg("%s: %s", wrong[i][0], nki_context_error(ctx));
        }
    }
    nki_op *op = NULL;
    assert_int_equal(nki_op_host(ctx, "f", &op), NKI_ERR_ARG);
    nki_context_release(ctx);
}

typedef struct seen {
    int calls;
} seen;

// sums[i] = scale * sum of row i, and x is doubled.
static int32_t row_sums(float *x, float *sums, int64_t n, int32_t m, double scale, seen *s)
{
    s->calls++;
    for (int64_t i = 0; i < n; i++) {
        sums[i] = 0;
        for (int32_t j = 0; j < m; j++) {
            sums[i] += (float)scale * x[i * m + j];
            x[i * m + j] *= 2;
        }
    }
    return scale < 0 ? 5 : 0;
}

static void host_function__runs_between_kernels(void **state)
{
    (void)state;
    nki_context *ctx = context();
    seen s = {0};
    assert_int_equal(
        nki_host_function(ctx, "row_sums",
                          "i32(inout f32[n,m] x, out f32[n] sums, i64 n, i32 m, f64 scale, ptr s)",
                          (nki_fn)row_sums, &s),
        NKI_OK);
    nki_op *op = NULL;
    nki_stream *st = NULL;
    assert_int_equal(nki_op_host(ctx, "row_sums", &op), NKI_OK);
    assert_int_equal(nki_stream_create(ctx, NULL, NULL, &st), NKI_OK);
    const float data[6] = {1, 2, 3, 4, 5, 6};
    nki_tensor *x = NULL, *y = NULL, *sums = NULL, *z = NULL, *turned = NULL;
    assert_int_equal(
        nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 2}, data, NKI_FLOAT32, &x),
        NKI_OK);
    // Kernel, host, kernel in one stream; the host stage sees a transposed view.
    assert_int_equal(nki_elementwise(ctx, st, "x0 + 1", &x, 1, NULL, &y, 1), NKI_OK);
    assert_int_equal(nki_tensor_permute(y, (const size_t[]){1, 0}, &turned), NKI_OK);
    assert_int_equal(nki_op_call(op, st, NKI_ARGS(NKI_T(turned), NKI_F(0.5)), &sums, 1, NULL),
                     NKI_OK);
    nki_tensor *in[] = {y, sums};
    assert_int_equal(nki_elementwise(ctx, st, "x0 + x1", in, 2, NULL, &z, 1), NKI_OK);
    float got[6];
    assert_int_equal(nki_tensor_copy_out(z, got, NKI_FLOAT32, 6), NKI_OK);
    const float want[6] = {4 + 6, 6 + 7.5f, 8 + 6, 10 + 7.5f, 12 + 6, 14 + 7.5f};
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(s.calls, 1);
    // Its failure is the stream's; wrong arguments are refused before any call.
    nki_tensor *bad = NULL;
    assert_int_equal(nki_op_call(op, st, NKI_ARGS(NKI_T(x), NKI_F(-1.0)), &bad, 1, NULL), NKI_OK);
    assert_int_equal(nki_stream_synchronize(st, NKI_FOREVER, NULL), NKI_ERR_HOST);
    assert_non_null(strstr(nki_context_error(ctx), "'row_sums' returned 5"));
    nki_tensor_release(bad);
    assert_int_equal(nki_op_call(op, NULL, NKI_ARGS(NKI_T(sums), NKI_F(1.0)), &bad, 1, NULL),
                     NKI_ERR_ARG);
    assert_int_equal(nki_op_call(op, NULL, NKI_ARGS(NKI_T(x)), &bad, 1, NULL), NKI_ERR_ARG);
    assert_int_equal(nki_op_call(op, NULL, NKI_ARGS(NKI_T(x), NKI_S("1")), &bad, 1, NULL),
                     NKI_ERR_ARG);
    assert_int_equal(nki_op_call(op, NULL, NKI_ARGS(NKI_T(x), NKI_I(1), NKI_I(1)), &bad, 1, NULL),
                     NKI_ERR_ARG);
    assert_null(bad);
    assert_int_equal(s.calls, 2);
    nki_kernel *k = NULL;
    assert_int_equal(nki_op_specialize(op, NKI_ARGS(NKI_T(x)), NULL, NULL, &k), NKI_ERR_ARG);
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_tensor_release(turned);
    nki_tensor_release(sums);
    nki_tensor_release(z);
    nki_stream_release(st);
    nki_op_release(op);
    nki_context_release(ctx);
}

// ---- calls that a kernel makes

// y = 2x on the chip, z = running sums on the host of a column of y, out = z + 1 on the chip.
static const char calls_text[] =
    "import nki\n"
    "import nki.isa as nisa\n"
    "import nki.language as nl\n"
    "from nki.host import call\n"
    "def on_chip(src, op, number):\n"
    "    t = nl.ndarray(src.shape, dtype=src.dtype, buffer=nl.sbuf)\n"
    "    out = nl.ndarray(src.shape, dtype=src.dtype, buffer=nl.shared_hbm)\n"
    "    nisa.dma_copy(dst=t, src=src)\n"
    "    nisa.tensor_scalar(dst=t, data=t, op0=op, operand0=number)\n"
    "    nisa.dma_copy(dst=out, src=t)\n"
    "    return out\n"
    "@nki.jit\n"
    "def sums(x):\n"
    "    y = on_chip(x, nl.multiply, 2.0)\n"
    "    z = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    call('running_sums', 'i32(f32[n,one] column, out f32[n,one] sums, i64 n, ptr calls)', "
    "y[:, 1:2], z)\n"
    "    return on_chip(z, nl.add, 1.0)\n"
    "@nki.jit\n"
    "def many(x):\n"
    "    y = on_chip(x, nl.multiply, 1.0)\n"
    "    for i in nl.dynamic_range(5):\n"
    "        call('bump', 'i32(inout f32[n,m] y, i32 n, i32 m)', y)\n"
    "    return on_chip(y, nl.add, 0.0)\n"
    "@nki.jit\n"
    "def wrong(x, signature, given):\n"
    "    y = on_chip(x, nl.multiply, 1.0)\n"
    "    call('bump', signature, *[y for i in range(given)])\n"
    "    return y\n"
    "@nki.jit\n"
    "def halves(x):\n"
    "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    n = x.shape[0] // 2\n"
    "    mine = slice(nl.program_id(0) * n, nl.program_id(0) * n + n)\n"
    "    t = nl.ndarray((n, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=t, src=x[mine])\n"
    "    nisa.dma_copy(dst=out[mine], src=t)\n"
    "    call('note', 'i32(inout f32[n,m] y, i64 n, i64 m, ptr log)', out[mine])\n"
    "    nisa.core_barrier(data=out, cores=(0, 1))\n"
    "    if nl.program_id(0) == 1:\n"
    "        call('note', 'i32(inout f32[n,m] y, i64 n, i64 m, ptr log)', out)\n"
    "    return out\n"
    "@nki.jit\n"
    "def rows(x, last):\n"
    "    y = on_chip(x, nl.multiply, 1.0)\n"
    "    for i in nl.dynamic_range(last):\n"
    "        row = y.ap(pattern=[[x.shape[1], 1], [1, x.shape[1]]], scalar_offset=i, "
    "indirect_dim=0)\n"
    "        call('note', 'i32(inout f32[n,m] y, i64 n, i64 m, ptr log)', row)\n"
    "    return y\n";

static int32_t running_sums(const float *x, float *out, int64_t n, void *calls)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        out[i] = sum += x[i];
    }
    ++*(int *)calls;
    return x[0] < 0 ? 7 : 0;
}

static int32_t bump(float *y, int32_t n, int32_t m)
{
    for (int32_t i = 0; i < n * m; i++) {
        y[i] += 1;
    }
    return 0;
}

static nki_status compile_calls(nki_context *ctx, const char *entry, const nki_arg *args, size_t n,
                                nki_kernel **k)
{
    const nki_source src = {"calls.nki", calls_text, sizeof calls_text - 1};
    return nki_kernel_compile(ctx, &src, entry, args, n, NULL, NULL, k);
}

static void kernel__calls_the_host(void **state)
{
    (void)state;
    nki_context *ctx = context();
    float in[3 * 2] = {1, 2, 3, 4, 5, 6}, out[3] = {0};
    nki_tensor *x = NULL, *y = NULL;
    nki_kernel *k = NULL, *again = NULL;
    size_t len = 0;
    int calls = 0;
    assert_int_equal(
        nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 2}, in, NKI_FLOAT32, &x), NKI_OK);
    if (compile_calls(ctx, "sums", NKI_ARGS(NKI_T(x)), &k) != NKI_OK) {
        fail_msg("%s", nki_context_error(ctx));
    }
    // Nothing, and another signature, under the name: refused before anything runs.
    assert_int_equal(nki_kernel_call(k, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_ERR_ARG);
    assert_non_null(strstr(nki_context_error(ctx), "calls.nki:16:"));
    assert_non_null(strstr(nki_context_error(ctx), "nothing is registered"));
    assert_int_equal(nki_host_function(ctx, "running_sums", "i32(f32[n] x, out f32[n] y)",
                                       (nki_fn)running_sums, NULL),
                     NKI_OK);
    assert_int_equal(nki_kernel_call(k, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_ERR_ARG);
    assert_non_null(strstr(nki_context_error(ctx), "it is registered as i32("));
    assert_int_equal(
        nki_host_function(ctx, "running_sums",
                          "i32(in float32[n,one] column, out f32[n, one] sums, i64 n, ptr calls)",
                          (nki_fn)running_sums, &calls),
        NKI_OK);
    // From its own container, in program order and in others, it is the same.
    const void *bytes = nki_kernel_neff(k, &len);
    assert_int_equal(nki_kernel_load(ctx, bytes, len, &again), NKI_OK);
    assert_int_equal(nki_kernel_verify(again), NKI_OK);
    for (int round = 0; round < 4; round++) {
        if (round) {
            assert_int_equal(nki_tool_reorder(again, (uint64_t)round), NKI_OK);
        }
        if (nki_kernel_call(again, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL) != NKI_OK) {
            fail_msg("%s", nki_context_error(ctx));
        }
        assert_int_equal(nki_tensor_copy_out(y, out, NKI_FLOAT32, 3), NKI_OK);
        assert_true(out[0] == 5.0f && out[1] == 13.0f && out[2] == 25.0f);
        nki_tensor_release(y);
    }
    assert_int_equal(calls, 4);
    // A failure has the place of the call.
    in[1] = -2;
    assert_int_equal(nki_tensor_copy_in(x, in, NKI_FLOAT32, 6), NKI_OK);
    assert_int_equal(nki_kernel_call(k, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_ERR_HOST);
    assert_non_null(strstr(nki_context_error(ctx), "calls.nki:16:"));
    assert_non_null(strstr(nki_context_error(ctx), "'running_sums': it returned 7"));
    nki_kernel_release(again);
    nki_kernel_release(k);
    // In a loop, read and written in place.
    assert_int_equal(
        nki_host_function(ctx, "bump", "i32(inout f32[n,m] y, i32 n, i32 m)", (nki_fn)bump, NULL),
        NKI_OK);
    assert_int_equal(compile_calls(ctx, "many", NKI_ARGS(NKI_T(x)), &k), NKI_OK);
    assert_int_equal(nki_kernel_call(k, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_OK);
    float six[6];
    assert_int_equal(nki_tensor_copy_out(y, six, NKI_FLOAT32, 6), NKI_OK);
    assert_true(six[0] == 6.0f && six[1] == 3.0f && six[5] == 11.0f);
    nki_tensor_release(y);
    nki_kernel_release(k);
    nki_tensor_release(x);
    nki_context_release(ctx);
}

typedef struct call_log {
    int64_t rows[8];
    float first[8];
    int n;
} call_log;

// Adds 10 to every element.
static int32_t note(float *y, int64_t n, int64_t m, void *ptr)
{
    call_log *log = ptr;
    assert_true(log->n < 8);
    log->rows[log->n] = n;
    log->first[log->n++] = y[0];
    for (int64_t i = 0; i < n * m; i++) {
        y[i] += 10;
    }
    return 0;
}

static void kernel__of_two_cores_calls_the_host(void **state)
{
    (void)state;
    nki_context *ctx = context();
    float in[4 * 2] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    call_log log = {.n = 0};
    nki_tensor *x = NULL, *y = NULL;
    nki_kernel *k = NULL, *again = NULL;
    size_t len = 0;
    assert_int_equal(
        nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){4, 2}, in, NKI_FLOAT32, &x), NKI_OK);
    assert_int_equal(nki_host_function(ctx, "note", "i32(inout f32[n,m] y, i64 n, i64 m, ptr log)",
                                       (nki_fn)note, &log),
                     NKI_OK);
    const nki_source src = {"calls.nki", calls_text, sizeof calls_text - 1};
    nki_compile_opts two = NKI_COMPILE_OPTS_INIT;
    two.grid = 2;
    nki_status st = nki_kernel_compile(ctx, &src, "halves", NKI_ARGS(NKI_T(x)), &two, NULL, &k);
    if (st != NKI_OK) {
        fail_msg("%s", nki_context_error(ctx));
    }
    const void *bytes = nki_kernel_neff(k, &len);
    assert_int_equal(nki_kernel_load(ctx, bytes, len, &again), NKI_OK);
    assert_int_equal(nki_kernel_call(again, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_OK);
    // Each core's half in the order of the cores, then core 1 all of it.
    assert_int_equal(log.n, 3);
    assert_true(log.rows[0] == 2 && log.rows[1] == 2 && log.rows[2] == 4);
    assert_true(log.first[0] == 1 && log.first[1] == 5 && log.first[2] == 11);
    assert_int_equal(nki_tensor_copy_out(y, out, NKI_FLOAT32, 8), NKI_OK);
    for (int i = 0; i < 8; i++) {
        assert_true(out[i] == in[i] + 20);
    }
    nki_tensor_release(y);
    nki_kernel_release(again);
    nki_kernel_release(k);
    nki_tensor_release(x);
    nki_context_release(ctx);
}

static void kernel__calls_the_host_on_rows_of_a_loop(void **state)
{
    (void)state;
    nki_context *ctx = context();
    float in[4 * 2] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    call_log log = {.n = 0};
    nki_tensor *x = NULL, *y = NULL;
    nki_kernel *k = NULL;
    assert_int_equal(
        nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){4, 2}, in, NKI_FLOAT32, &x), NKI_OK);
    assert_int_equal(nki_host_function(ctx, "note", "i32(inout f32[n,m] y, i64 n, i64 m, ptr log)",
                                       (nki_fn)note, &log),
                     NKI_OK);
    assert_int_equal(compile_calls(ctx, "rows", NKI_ARGS(NKI_T(x), NKI_I(3)), &k), NKI_OK);
    assert_int_equal(nki_kernel_call(k, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_OK);
    assert_int_equal(log.n, 3);
    assert_true(log.rows[0] == 1 && log.first[0] == 1 && log.first[1] == 3 && log.first[2] == 5);
    assert_int_equal(nki_tensor_copy_out(y, out, NKI_FLOAT32, 8), NKI_OK);
    for (int i = 0; i < 8; i++) {
        assert_true(out[i] == in[i] + (i < 6 ? 10 : 0));
    }
    nki_tensor_release(y);
    nki_kernel_release(k);
    // A row that is not there ends the run at the call.
    log.n = 0;
    assert_int_equal(compile_calls(ctx, "rows", NKI_ARGS(NKI_T(x), NKI_I(5)), &k), NKI_OK);
    assert_int_equal(nki_kernel_call(k, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_ERR_DIAG);
    assert_int_equal(log.n, 4);
    assert_non_null(strstr(nki_context_error(ctx), "rows: calls.nki:47:"));
    nki_kernel_release(k);
    nki_tensor_release(x);
    nki_context_release(ctx);
}

static void kernel__host_calls_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *signature;
        int given;
        nki_status st;
        const char *says;
    } cases[] = {
        {"i32(f32[n,m] y)", 2, NKI_ERR_DIAG, "takes 1 tensors, 2 are given"},
        {"bump", 1, NKI_ERR_DIAG, "is no signature"},
        {"i32(f32[1,2,3] y)", 1, NKI_ERR_ARG, "calls.nki:27:"},
        {"i32(f32[n,m,k] y)", 1, NKI_ERR_ARG, "with 2 dimensions; the signature says"},
        {"i32(f32[n,n] y)", 1, NKI_ERR_ARG, "the signature says n = 3"},
        {"i32(bf16[n,m] y)", 1, NKI_ERR_ARG, "the signature says bfloat16"},
        {"i32(f32[n,m] y, f64 scale)", 1, NKI_ERR_ARG, "no number but sizes"},
        {"i32(f32[n,m y)", 1, NKI_ERR_ARG, "signature"},
    };
    nki_context *ctx = context();
    nki_tensor *x = NULL;
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 2}, &x), NKI_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nki_kernel *k = NULL;
        nki_status st = compile_calls(
            ctx, "wrong", NKI_ARGS(NKI_T(x), NKI_S(cases[i].signature), NKI_I(cases[i].given)), &k);
        if (st != cases[i].st || !strstr(nki_context_error(ctx), cases[i].says)) {
            fail_msg("%s: %s: %s", cases[i].signature, nki_status_name(st), nki_context_error(ctx));
        }
        assert_null(k);
    }
    nki_tensor_release(x);
    nki_context_release(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel__calls_the_host),
        cmocka_unit_test(kernel__of_two_cores_calls_the_host),
        cmocka_unit_test(kernel__calls_the_host_on_rows_of_a_loop),
        cmocka_unit_test(kernel__host_calls_are_checked),
        cmocka_unit_test(kernel__is_a_c_function),
        cmocka_unit_test(signature__errors_have_a_place),
        cmocka_unit_test(host_function__runs_between_kernels),
    };
    return cmocka_run_group_tests_name("runtime.host", tests, NULL, NULL);
}
