// libffi both ways: kernels as C functions, C functions as ops.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nki/nki.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel__is_a_c_function),
        cmocka_unit_test(signature__errors_have_a_place),
        cmocka_unit_test(host_function__runs_between_kernels),
    };
    return cmocka_run_group_tests_name("runtime.host", tests, NULL, NULL);
}
