// Ops: generated and library kernels against C formulas, the cache, and that there is one path.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lang/isa.h"
#include "stdlib/stdlib.h"

#include <nki/nki.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static nki_context *context(void)
{
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    return ctx;
}

static nki_counters counters(const nki_context *ctx)
{
    nki_counters c = NKI_COUNTERS_INIT;
    assert_int_equal(nki_context_counters(ctx, &c), NKI_OK);
    return c;
}

#define SHAPE(...)                                                                                 \
    sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t), (const size_t[])                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

// Numbers that fp32 holds exactly, so that formulas can be too.
static nki_tensor *numbers(nki_context *ctx, nki_dtype d, int seed, size_t ndim,
                           const size_t *shape)
{
    nki_tensor *t = NULL;
    assert_int_equal(nki_tensor_create(ctx, d, ndim, shape, &t), NKI_OK);
    size_t n = nki_tensor_count(t);
    float *v = malloc((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        v[i] = (float)((int)((i * 37 + (size_t)seed * 11) % 61) - 30) * 0.25f;
    }
    assert_int_equal(nki_tensor_copy_in(t, v, NKI_FLOAT32, n), NKI_OK);
    free(v);
    return t;
}

static float *values(nki_tensor *t)
{
    size_t n = nki_tensor_count(t);
    float *v = malloc((n + 1) * sizeof *v);
    assert_int_equal(nki_tensor_copy_out(t, v, NKI_FLOAT32, n), NKI_OK);
    return v;
}

static nki_status elementwise(nki_context *ctx, const char *text, nki_tensor *a, nki_tensor *b,
                              nki_tensor **out)
{
    nki_tensor *in[] = {a, b};
    nki_status st = nki_elementwise(ctx, NULL, text, in, b ? 2 : 1, NULL, out, 1);
    if (st != NKI_OK) {
        print_message("'%s': %s\n", text, nki_context_error(ctx));
    }
    return st;
}

static void elementwise__broadcasts_any_shapes(void **state)
{
    (void)state;
    // a's shape, b's shape, their joint one; -1 ends.
    static const int cases[][3][5] = {
        {{130, 70, -1}, {130, 70, -1}, {130, 70, -1}},
        {{3, 5, 33, -1}, {5, 1, -1}, {3, 5, 33, -1}},
        {{7, 1, 9, -1}, {1, 130, 1, -1}, {7, 130, 9, -1}},
        {{1000, -1}, {1, -1}, {1000, -1}},
        {{4, 3, -1}, {3, -1}, {4, 3, -1}},
        {{129, 1, -1}, {1, 2100, -1}, {129, 2100, -1}},
        {{1, -1}, {-1}, {1, -1}},
        {{2, 1, 3, 1, -1}, {1, 4, 1, 5, -1}, {2, 4, 3, 5, -1}},
    };
    nki_context *ctx = context();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        size_t shape[3][5], rank[3];
        for (int k = 0; k < 3; k++) {
            rank[k] = 0;
            for (int i = 0; cases[c][k][i] >= 0; i++) {
                shape[k][rank[k]++] = (size_t)cases[c][k][i];
            }
        }
        nki_tensor *a = numbers(ctx, NKI_FLOAT32, 1, rank[0], shape[0]);
        nki_tensor *b = numbers(ctx, NKI_FLOAT32, 2, rank[1], shape[1]), *out = NULL;
        assert_int_equal(elementwise(ctx, "(x0 + x1) * x0 - 2", a, b, &out), NKI_OK);
        assert_int_equal(nki_tensor_ndim(out), rank[2]);
        float *va = values(a), *vb = values(b), *vo = values(out);
        size_t n = nki_tensor_count(out), at[5] = {0};
        for (size_t i = 0; i < n; i++) {
            size_t ia = 0, ib = 0;
            for (size_t d = 0; d < rank[2]; d++) {
                if (d + rank[0] >= rank[2]) {
                    size_t k = d + rank[0] - rank[2];
                    ia = ia * shape[0][k] + (shape[0][k] == 1 ? 0 : at[d]);
                }
                if (d + rank[1] >= rank[2]) {
                    size_t k = d + rank[1] - rank[2];
                    ib = ib * shape[1][k] + (shape[1][k] == 1 ? 0 : at[d]);
                }
            }
            if (vo[i] != (va[ia] + vb[ib]) * va[ia] - 2) {
                fail_msg("case %zu, element %zu: %g", c, i, (double)vo[i]);
            }
            for (size_t d = rank[2]; d-- > 0 && ++at[d] == shape[2][d];) {
                at[d] = 0;
            }
        }
        free(va);
        free(vb);
        free(vo);
        nki_tensor_release(a);
        nki_tensor_release(b);
        nki_tensor_release(out);
    }
    nki_context_release(ctx);
}

static void elementwise__operators_and_types(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double (*want)(double a, double b);
    } cases[] = {{"-x0 + 3 - x1 / 4", NULL},
                 {"2 - x0 * x1", NULL},
                 {"maximum(x0, x1) - minimum(x0, 1.5)", NULL},
                 {"(x0 < x1) + (x0 >= 0) * 2", NULL},
                 {"d = x0 - x1; abs(d) + square(d) ** 1", NULL}};
    nki_context *ctx = context();
    nki_tensor *a = numbers(ctx, NKI_FLOAT32, 3, SHAPE(17, 5));
    nki_tensor *b = numbers(ctx, NKI_BFLOAT16, 4, SHAPE(17, 5)), *out = NULL;
    float *va = values(a), *vb = values(b);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        assert_int_equal(elementwise(ctx, cases[c].text, a, b, &out), NKI_OK);
        assert_int_equal(nki_tensor_dtype(out), NKI_FLOAT32);
        float *vo = values(out);
        for (size_t i = 0; i < 85; i++) {
            double x = va[i], y = vb[i], d = x - y;
            double want[] = {-x + 3 - y / 4, 2 - x * y, fmax(x, y) - fmin(x, 1.5),
                             (x < y) + (x >= 0) * 2.0, fabs(d) + d * d};
            if (fabs(vo[i] - want[c]) > 1e-5 * (1 + fabs(want[c]))) {
                fail_msg("%s of %g and %g is %g, not %g", cases[c].text, x, y, (double)vo[i],
                         want[c]);
            }
        }
        free(vo);
        nki_tensor_release(out);
    }
    // Several results, and types that were asked for.
    nki_tensor *in[] = {a, b}, *two[2] = {NULL, NULL};
    const nki_dtype types[] = {NKI_FLOAT16, NKI_INT8};
    assert_int_equal(
        nki_elementwise(ctx, NULL, "s = x0 + x1; exp(s * 0.125); s", in, 2, types, two, 2), NKI_OK);
    assert_int_equal(nki_tensor_dtype(two[1]), NKI_INT8);
    float *e = values(two[0]), *s = values(two[1]);
    for (size_t i = 0; i < 85; i++) {
        double sum = va[i] + vb[i];
        assert_true(fabs(e[i] - exp(sum / 8)) <= 1e-3 * exp(sum / 8));
        assert_true(s[i] == (float)rint(sum));
    }
    free(e);
    free(s);
    free(va);
    free(vb);
    nki_tensor_release(two[0]);
    nki_tensor_release(two[1]);
    nki_tensor_release(a);
    nki_tensor_release(b);
    nki_context_release(ctx);
}

// ---- every function, against its formula in double

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double phi(double x)
{
    return 0.5 * (1 + erf(x / sqrt(2)));
}

static const double PI = 3.14159265358979323846;

static double unary(op_id op, double x)
{
    double s = sigmoid(x), t;
    switch ((int)op) {
    case OPR_abs: return fabs(x);
    case OPR_square: return x * x;
    case OPR_relu: return x > 0 ? x : 0;
    case OPR_rsqrt: return 1 / sqrt(x);
    case OPR_reciprocal: return 1 / x;
    case OPR_copy: return x;
    case OPR_exp: return exp(x);
    case OPR_log: return log(x);
    case OPR_sqrt: return sqrt(x);
    case OPR_tanh: return tanh(x);
    case OPR_sigmoid: return s;
    case OPR_silu: return x * s;
    case OPR_silu_dx: return s + x * s * (1 - s);
    case OPR_gelu: return x * phi(x);
    case OPR_gelu_dx: return phi(x) + x * exp(-x * x / 2) / sqrt(2 * PI);
    case OPR_gelu_apprx_tanh:
        return 0.5 * x * (1 + tanh(sqrt(2 / PI) * (x + 0.044715 * x * x * x)));
    case OPR_gelu_apprx_sigmoid: return x * sigmoid(1.702 * x);
    case OPR_gelu_apprx_sigmoid_dx: t = sigmoid(1.702 * x); return t + 1.702 * x * t * (1 - t);
    case OPR_softplus: return log1p(exp(x));
    case OPR_mish: return x * tanh(log1p(exp(x)));
    case OPR_erf: return erf(x);
    case OPR_erf_dx: return 2 / sqrt(PI) * exp(-x * x);
    case OPR_sin: return sin(x);
    case OPR_arctan: return atan(x);
    case OPR_sign: return (x > 0) - (x < 0);
    case OPR_negative: return -x;
    default: fail_msg("no formula for %s", op_table[op].name); return 0;
    }
}

static double binary(op_id op, double x, double y)
{
    switch ((int)op) {
    case OPR_add: return x + y;
    case OPR_subtract: return x - y;
    case OPR_multiply: return x * y;
    case OPR_divide: return x / y;
    case OPR_maximum: return fmax(x, y);
    case OPR_minimum: return fmin(x, y);
    case OPR_power: return pow(x, y);
    case OPR_abs_max: return fabs(x) > fabs(y) ? x : y;
    case OPR_abs_min: return fabs(x) < fabs(y) ? x : y;
    case OPR_equal: return x == y;
    case OPR_not_equal: return x != y;
    case OPR_less: return x < y;
    case OPR_less_equal: return x <= y;
    case OPR_greater: return x > y;
    case OPR_greater_equal: return x >= y;
    case OPR_logical_and: return x != 0 && y != 0;
    case OPR_logical_or: return x != 0 || y != 0;
    case OPR_logical_xor: return (x != 0) != (y != 0);
    default: fail_msg("no formula for %s", op_table[op].name); return 0;
    }
}

static void elementwise__computes_every_operator(void **state)
{
    (void)state;
    nki_context *ctx = context();
    enum { N = 61 };
    nki_tensor *a = numbers(ctx, NKI_FLOAT32, 0, SHAPE(N)),
               *b = numbers(ctx, NKI_FLOAT32, 4, SHAPE(N));
    nki_tensor *in[2] = {NULL, NULL}, *out = NULL;
    // Half the range: sin and tanh of the engines are made for it; and positive where needed.
    assert_int_equal(elementwise(ctx, "abs(x0) * 0.375 + 0.125", a, NULL, &in[0]), NKI_OK);
    assert_int_equal(elementwise(ctx, "x0 * 0.25", b, NULL, &in[1]), NKI_OK);
    float *x = values(in[0]), *y = values(in[1]);
    int seen = 0;
    for (int op = 0; op < OPR_COUNT; op++) {
        char text[64];
        bool sim = op_table[op].roles & OP_SIM, bits = op_table[op].cls == OPC_B;
        bool refused = !op_table[op].roles || op == OPR_prelu || bits ||
                       (sim && op != OPR_divide && op != OPR_negative);
        bool one = op_table[op].cls == OPC_U;
        snprintf(text, sizeof text, one ? "%s(x0)" : "%s(x0, x1)", op_table[op].name);
        nki_status st = nki_elementwise(ctx, NULL, text, in, 2, NULL, &out, 1);
        if (st != (refused ? NKI_ERR_ARG : NKI_OK)) {
            fail_msg("%s: %s: %s", text, nki_status_name(st), nki_context_error(ctx));
        }
        if (refused) {
            continue;
        }
        float *v = values(out);
        for (size_t i = 0; i < N; i++) {
            double want = one ? unary((op_id)op, x[i]) : binary((op_id)op, x[i], y[i]);
            if (fabs(v[i] - want) > 2e-5 * (0.1 + fabs(want))) {
                fail_msg("%s of %g, %g is %.9g, not %.9g", text, (double)x[i], (double)y[i],
                         (double)v[i], want);
            }
        }
        seen++;
        free(v);
        nki_tensor_release(out);
    }
    assert_true(seen >= 40);
    free(x);
    free(y);
    nki_tensor_release(in[0]);
    nki_tensor_release(in[1]);
    nki_tensor_release(a);
    nki_tensor_release(b);
    nki_context_release(ctx);
}

static void elementwise__selects(void **state)
{
    (void)state;
    nki_context *ctx = context();
    enum { ROWS = 131, COLS = 7, N = ROWS * COLS };
    nki_tensor *a = numbers(ctx, NKI_FLOAT32, 3, SHAPE(ROWS, COLS)), *out = NULL;
    nki_tensor *b = numbers(ctx, NKI_BFLOAT16, 4, SHAPE(COLS));
    static const char *const texts[] = {
        "where(x0 > x1, x0, x1)",
        "where(x0, 1, x1) * 2",
        "where(logical_not(x0 < 0), where(x1 == 0, 7, x0), -x1)",
        "where(2 > 1, x0, 0) + where(0, x0, x1)",
    };
    float *va = values(a), *vb = values(b);
    for (size_t c = 0; c < sizeof texts / sizeof *texts; c++) {
        if (c == 3) {
            // A condition of numbers is decided at once, so a comparison of numbers is none.
            assert_int_equal(
                nki_elementwise(ctx, NULL, texts[c], (nki_tensor *[]){a, b}, 2, NULL, &out, 1),
                NKI_ERR_ARG);
            assert_int_equal(elementwise(ctx, "where(1, x0, 0) + where(0, x0, x1)", a, b, &out),
                             NKI_OK);
        } else {
            assert_int_equal(elementwise(ctx, texts[c], a, b, &out), NKI_OK);
        }
        float *v = values(out);
        for (size_t i = 0; i < N; i++) {
            float x = va[i], y = vb[i % COLS];
            float want[] = {x > y ? x : y, (x != 0 ? 1 : y) * 2,
                            x < 0    ? -y
                            : y == 0 ? 7
                                     : x,
                            x + y};
            if (v[i] != want[c]) {
                fail_msg("%s: %g, %g gives %g", texts[c], (double)x, (double)y, (double)v[i]);
            }
        }
        free(v);
        nki_tensor_release(out);
    }
    // Integers keep their bits, and their type.
    const int32_t big[] = {2000000011, -7, 16777217, 5};
    nki_tensor *i32 = NULL;
    assert_int_equal(nki_tensor_from(ctx, NKI_INT32, 1, (const size_t[]){4}, big, NKI_INT32, &i32),
                     NKI_OK);
    assert_int_equal(elementwise(ctx, "where(x0 > 10, x0, x0 - 1)", i32, NULL, &out), NKI_OK);
    assert_int_equal(nki_tensor_dtype(out), NKI_INT32);
    const int32_t want[] = {2000000011, -8, 16777217, 4};
    assert_memory_equal(nki_tensor_data(out), want, sizeof want);
    nki_tensor_release(out);
    free(va);
    free(vb);
    nki_tensor_release(i32);
    nki_tensor_release(a);
    nki_tensor_release(b);
    nki_context_release(ctx);
}

// Inputs and results of every type that has elements.
static void elementwise__takes_every_type(void **state)
{
    (void)state;
    nki_context *ctx = context();
    enum { N = 9 };
    const float small[N] = {0, 1, 2, 4, 1, 8, 2, 1, 16};  // every type but bool has them
    for (int d = NKI_FLOAT32; d <= NKI_BOOL; d++) {
        nki_tensor *x = NULL, *y[2] = {NULL, NULL};
        const size_t shape[] = {3, 3};
        if (d == NKI_FLOAT8_E8M0FNU) {
            continue;  // scales: no zero, and no instruction computes on them
        }
        assert_int_equal(nki_tensor_from(ctx, (nki_dtype)d, 2, shape, small, NKI_FLOAT32, &x),
                         NKI_OK);
        float *vx = values(x);
        const nki_dtype types[] = {(nki_dtype)d, NKI_FLOAT32};
        if (nki_elementwise(ctx, NULL, "x0 * 2; x0 + 1", &x, 1, types, y, 2) != NKI_OK) {
            fail_msg("%s: %s", nki_dtype_name((nki_dtype)d), nki_context_error(ctx));
        }
        float *same = values(y[0]), *wide = values(y[1]);
        for (int i = 0; i < N; i++) {
            float twice = d == NKI_BOOL ? vx[i] != 0 : vx[i] * 2;
            if (same[i] != twice || wide[i] != vx[i] + 1) {
                fail_msg("%s of %g: %g and %g", nki_dtype_name((nki_dtype)d), (double)vx[i],
                         (double)same[i], (double)wide[i]);
            }
        }
        free(vx);
        free(same);
        free(wide);
        nki_tensor_release(x);
        nki_tensor_release(y[0]);
        nki_tensor_release(y[1]);
    }
    nki_context_release(ctx);
}

static void elementwise__integers_are_exact(void **state)
{
    (void)state;
    nki_context *ctx = context();
    const int32_t va[] = {16777217, -5, 2000000011, 7}, vb[] = {3, 1 << 20, 1, -7};
    nki_tensor *in[2] = {NULL, NULL}, *out = NULL;
    assert_int_equal(nki_tensor_from(ctx, NKI_INT32, 1, (const size_t[]){4}, va, NKI_INT32, &in[0]),
                     NKI_OK);
    assert_int_equal(nki_tensor_from(ctx, NKI_INT32, 1, (const size_t[]){4}, vb, NKI_INT32, &in[1]),
                     NKI_OK);
    assert_int_equal(
        nki_elementwise(ctx, NULL, "(x0 + x1 * 5) ^ (x0 & 255) | 1 << 3", in, 2, NULL, &out, 1),
        NKI_OK);
    assert_int_equal(nki_tensor_dtype(out), NKI_INT32);
    for (int i = 0; i < 4; i++) {
        int32_t want =
            (int32_t)(((uint32_t)va[i] + (uint32_t)vb[i] * 5u) ^ ((uint32_t)va[i] & 255u)) | 8;
        assert_int_equal(((int32_t *)nki_tensor_data(out))[i], want);
    }
    nki_tensor_release(out);
    nki_tensor_release(in[0]);
    nki_tensor_release(in[1]);
    nki_context_release(ctx);
}

static void elementwise__says_where_the_expression_is_wrong(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "character 1: it ends too soon"},
        {"x0 +", "character 5"},
        {"x0 x0", "character 4: expected an operator"},
        {"x2", "there is no x2: 2 inputs are given"},
        {"foo(x0)", "no function 'foo'"},
        {"floor(x0)", "no function 'floor'"},
        {"exp(x0, x1)", "'exp' takes 1 operand"},
        {"maximum(x0)", "'maximum' takes 2 operands"},
        {"where(x0, x1)", "'where' takes 3 operands"},
        {"where(x0, x1, 2, 3)", "'where' takes 3 operands"},
        {"logical_not(x0, x1)", "'logical_not' takes 1 operand"},
        {"x0 & 1", "'bitwise_and' is for integers"},
        {"x0; x1", "has 2 results; there is room for 1"},
        {"x0 = 3", "an input cannot be changed"},
        {"a = x0", "it has no result"},
        {"(x0", "expected ')'"},
        {"1e999 * x0", "too large"},
        {"exp(1) + x0", "of a number"},
        {"1 / 0 + x0", "not computed"},
    };
    nki_context *ctx = context();
    nki_tensor *a = numbers(ctx, NKI_FLOAT32, 3, SHAPE(3)), *out = NULL;
    nki_tensor *in[] = {a, a};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(nki_elementwise(ctx, NULL, cases[i][0], in, 2, NULL, &out, 1),
                         NKI_ERR_ARG);
        if (!strstr(nki_context_error(ctx), cases[i][1])) {
            fail_msg("'%s': %s", cases[i][0], nki_context_error(ctx));
        }
        assert_null(out);
    }
    nki_tensor *b = numbers(ctx, NKI_FLOAT32, 3, SHAPE(4));
    in[1] = b;
    assert_int_equal(nki_elementwise(ctx, NULL, "x0 + x1", in, 2, NULL, &out, 1), NKI_ERR_ARG);
    assert_non_null(strstr(nki_context_error(ctx), "broadcast"));
    assert_int_equal(counters(ctx).compiles, 0);
    nki_tensor_release(a);
    nki_tensor_release(b);
    nki_context_release(ctx);
}

static void matmul__any_sizes_and_batches(void **state)
{
    (void)state;
    static const size_t cases[][4] = {
        {1, 3, 5, 7},
        {1, 130, 200, 517},
        {2, 1, 129, 1},
        {3, 33, 64, 20},
        {1, 257, 12800, 3}};  // the last: more of K than is kept turned
    nki_context *ctx = context();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        size_t bt = cases[c][0], m = cases[c][1], k = cases[c][2], n = cases[c][3];
        for (int shared = 0; shared < 2; shared++) {
            nki_tensor *a = numbers(ctx, NKI_FLOAT32, 1, SHAPE(bt, m, k)), *out = NULL;
            nki_tensor *b = shared ? numbers(ctx, NKI_FLOAT32, 2, SHAPE(k, n))
                                   : numbers(ctx, NKI_FLOAT32, 2, SHAPE(bt, k, n));
            assert_int_equal(nki_matmul(ctx, NULL, a, b, &out), NKI_OK);
            float *va = values(a), *vb = values(b), *vo = values(out);
            for (size_t i = 0; i < bt * m * n; i++) {
                size_t g = i / (m * n), r = i / n % m, col = i % n;
                double want = 0;
                for (size_t j = 0; j < k; j++) {
                    want += (double)va[(g * m + r) * k + j] *
                            (double)vb[(shared ? 0 : g * k * n) + j * n + col];
                }
                if (fabs(vo[i] - want) > 1e-3 * (1 + fabs(want))) {
                    fail_msg("case %zu, element %zu: %g, not %g", c, i, (double)vo[i], want);
                }
            }
            free(va);
            free(vb);
            free(vo);
            nki_tensor_release(a);
            nki_tensor_release(b);
            nki_tensor_release(out);
        }
    }
    nki_context_release(ctx);
}

static void softmax_and_sum__any_rank_and_long_rows(void **state)
{
    (void)state;
    static const size_t cases[][3] = {
        {1, 1, 5}, {3, 50, 70}, {1, 2, 20000}, {1, 1, 300001}, {1, 1300, 3}};
    nki_context *ctx = context();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        size_t cols = cases[c][2], rows = cases[c][0] * cases[c][1];
        nki_tensor *x = numbers(ctx, NKI_FLOAT32, 5, 3, cases[c]), *y = NULL, *s = NULL;
        assert_int_equal(nki_softmax(ctx, NULL, x, &y), NKI_OK);
        assert_int_equal(nki_sum(ctx, NULL, x, &s), NKI_OK);
        assert_int_equal(nki_tensor_ndim(s), 2);
        float *vx = values(x), *vy = values(y), *vs = values(s);
        for (size_t r = 0; r < rows; r++) {
            double total = 0, sum = 0;
            for (size_t i = 0; i < cols; i++) {
                total += exp(vx[r * cols + i] - 7.5);
                sum += vx[r * cols + i];
            }
            assert_true(fabs(vs[r] - sum) <= 1e-3 * (1 + fabs(sum)));
            for (size_t i = 0; i < cols; i++) {
                double want = exp(vx[r * cols + i] - 7.5) / total;
                assert_true(fabs(vy[r * cols + i] - want) <= 1e-5 * want);
            }
        }
        free(vx);
        free(vy);
        free(vs);
        nki_tensor_release(x);
        nki_tensor_release(y);
        nki_tensor_release(s);
    }
    nki_tensor *v = numbers(ctx, NKI_BFLOAT16, 5, SHAPE(3)), *s = NULL;
    assert_int_equal(nki_sum(ctx, NULL, v, &s), NKI_OK);
    assert_int_equal(nki_tensor_ndim(s), 0);
    nki_tensor_release(s);
    nki_tensor_release(v);
    v = numbers(ctx, NKI_FLOAT32, 5, SHAPE(4, 0));
    assert_int_equal(nki_sum(ctx, NULL, v, &s), NKI_OK);
    assert_int_equal(nki_tensor_count(s), 4);
    assert_true(((float *)nki_tensor_data(s))[3] == 0.0f);
    nki_tensor_release(s);
    nki_tensor_release(v);
    nki_context_release(ctx);
}

// The library's kernel as a user's file: the same container, by the same steps.
static void path__is_one_for_library_and_user(void **state)
{
    (void)state;
    nki_context *ctx = context();
    nki_tensor *x = numbers(ctx, NKI_FLOAT32, 5, SHAPE(4, 6)), *y = NULL, *z = NULL;
    const stdlib_module *m = stdlib_op_find("softmax");
    assert_non_null(m);
    nki_counters before = counters(ctx);
    assert_int_equal(nki_softmax(ctx, NULL, x, &y), NKI_OK);
    nki_counters after = counters(ctx);
    nki_op *op = NULL, *lib = NULL;
    const nki_source src = {m->path, m->text, m->len};
    assert_int_equal(nki_op_open(ctx, &src, "softmax", NULL, &op), NKI_OK);
    assert_int_equal(nki_op_builtin(ctx, "softmax", &lib), NKI_OK);
    nki_kernel *k[3] = {NULL, NULL, NULL};
    assert_int_equal(nki_op_specialize(op, NKI_ARGS(NKI_T(x)), NULL, NULL, &k[0]), NKI_OK);
    assert_int_equal(nki_op_specialize(lib, NKI_ARGS(NKI_T(x)), NULL, NULL, &k[1]), NKI_OK);
    assert_ptr_equal(k[0], k[1]);  // one key, one kernel
    assert_int_equal(counters(ctx).compiles, 1);
    assert_int_equal(counters(ctx).cache_hits, 2);
    // Compiled apart from the cache: each counter moves as it did, and the bytes agree.
    nki_counters start = counters(ctx);
    assert_int_equal(
        nki_kernel_compile(ctx, &src, "softmax", NKI_ARGS(NKI_T(x)), NULL, NULL, &k[2]), NKI_OK);
    assert_int_equal(nki_kernel_call(k[2], NKI_ARGS(NKI_T(x)), &z, 1, NULL, NULL), NKI_OK);
    nki_counters end = counters(ctx);
    assert_int_equal(end.compiles - start.compiles, after.compiles - before.compiles);
    assert_int_equal(end.loads - start.loads, after.loads - before.loads);
    assert_int_equal(end.runs - start.runs, after.runs - before.runs);
    assert_int_equal(end.runs - start.runs, 1);
    size_t len[2];
    const void *bytes = nki_kernel_neff(k[0], &len[0]), *own = nki_kernel_neff(k[2], &len[1]);
    assert_int_equal(len[0], len[1]);
    assert_memory_equal(bytes, own, len[0]);
    assert_memory_equal(nki_tensor_data(y), nki_tensor_data(z), nki_tensor_size_bytes(y));
    for (int i = 0; i < 3; i++) {
        nki_kernel_release(k[i]);
    }
    nki_op_release(op);
    nki_op_release(lib);
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_tensor_release(z);
    nki_context_release(ctx);
}

// ---- the cache

static const char scale_text[] =
    "import nki\n"
    "import nki.isa as nisa\n"
    "import nki.language as nl\n"
    "from factor import FACTOR\n"
    "@nki.jit\n"
    "def scale(x, plus=0):\n"
    "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=t, src=x)\n"
    "    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply,\n"
    "                       operand0=FACTOR, op1=nl.add, operand1=plus)\n"
    "    nisa.dma_copy(dst=y, src=t)\n"
    "    return y\n";

static int resolve_factor(void *ctx, const char *dotted, nki_module_text *out)
{
    const char *text = ctx;
    if (strcmp(dotted, "factor") != 0) {
        return 0;
    }
    *out = (nki_module_text){.path = "memory/factor.nki", .text = text, .len = strlen(text)};
    return 1;
}

static float call_scale(nki_op *op, nki_tensor *x, int64_t plus)
{
    nki_tensor *y = NULL;
    nki_status st = nki_op_call(op, NULL, NKI_ARGS(NKI_T(x), NKI_I(plus)), &y, 1, NULL);
    assert_int_equal(st, NKI_OK);
    float v = ((float *)nki_tensor_data(y))[0];
    nki_tensor_release(y);
    return v;
}

static void resolver__answers_imports(void **state)
{
    (void)state;
    char text[] = "FACTOR = 3.0\n", broken[] = "FACTOR = = 3\n";
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.resolve = resolve_factor;
    const nki_source src = {"scale.nki", scale_text, sizeof scale_text - 1};
    for (int bad = 0; bad < 2; bad++) {
        nki_context *ctx = NULL;
        o.resolve_ctx = bad ? broken : text;
        assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
        nki_tensor *x = numbers(ctx, NKI_FLOAT32, 5, SHAPE(1, 4)), *y = NULL;
        float first = ((float *)nki_tensor_data(x))[0];
        nki_op *op = NULL;
        nki_diags *ds = NULL;
        assert_int_equal(nki_diags_create(&ds), NKI_OK);
        assert_int_equal(nki_op_open(ctx, &src, NULL, NULL, &op), NKI_OK);
        if (bad) {
            assert_int_equal(nki_op_call(op, NULL, NKI_ARGS(NKI_T(x)), &y, 1, ds), NKI_ERR_DIAG);
            nki_diag d;
            assert_int_equal(nki_diags_at(ds, 0, &d), NKI_OK);
            assert_string_equal(d.path, "memory/factor.nki");
        } else {
            assert_true(call_scale(op, x, 1) == first * 3 + 1);
        }
        nki_diags_release(ds);
        nki_op_release(op);
        nki_tensor_release(x);
        nki_context_release(ctx);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void cache__sees_values_and_changed_imports(void **state)
{
    (void)state;
    char dir[] = "/tmp/nki_op_XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/factor.nki", dir);
    write_file(path, "FACTOR = 2.0\n");
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    const char *roots[] = {dir};
    o.import_roots = roots;
    o.import_root_count = 1;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    nki_tensor *x = numbers(ctx, NKI_FLOAT32, 5, SHAPE(1, 4));
    float first = ((float *)nki_tensor_data(x))[0];
    nki_op *op = NULL;
    const nki_source src = {"scale.nki", scale_text, sizeof scale_text - 1};
    assert_int_equal(nki_op_open(ctx, &src, "scale", NULL, &op), NKI_OK);
    assert_true(call_scale(op, x, 1) == first * 2 + 1);
    assert_true(call_scale(op, x, 1) == first * 2 + 1);
    assert_true(call_scale(op, x, 2) == first * 2 + 2);
    assert_int_equal(counters(ctx).compiles, 2);
    assert_int_equal(counters(ctx).cache_hits, 1);
    write_file(path, "FACTOR = 10.0\n");
    assert_true(call_scale(op, x, 1) == first * 10 + 1);
    assert_int_equal(counters(ctx).compiles, 3);
    nki_op_release(op);
    nki_tensor_release(x);
    nki_context_release(ctx);
    unlink(path);
    rmdir(dir);
}

// A line of the log, to look for words in.
typedef struct log_text {
    char text[8192];
    size_t len;
} log_text;

static void keep_line(void *arg, nki_log_level level, const char *line, size_t len)
{
    log_text *l = arg;
    (void)level;
    if (l->len + len + 2 < sizeof l->text) {
        memcpy(l->text + l->len, line, len);
        l->len += len;
        l->text[l->len++] = '\n';
    }
}

// A name that no import found, and one found in a later folder: files that appear count.
static void cache__sees_files_that_appear(void **state)
{
    (void)state;
    static const char optional_text[] =
        "import nki\n"
        "import nki.isa as nisa\n"
        "import nki.language as nl\n"
        "try:\n"
        "    from factor import FACTOR\n"
        "except ImportError:\n"
        "    FACTOR = 3.0\n"
        "@nki.jit\n"
        "def scale(x, shift):\n"
        "    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
        "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nisa.dma_copy(dst=t, src=x)\n"
        "    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=FACTOR, op1=nl.add,\n"
        "                       operand1=shift)\n"
        "    nisa.dma_copy(dst=y, src=t)\n"
        "    return y\n";
    char dir[] = "/tmp/nki_op_XXXXXX", sub[64], early[64], late[96];
    assert_non_null(mkdtemp(dir));
    snprintf(sub, sizeof sub, "%s/later", dir);
    snprintf(early, sizeof early, "%s/factor.nki", dir);
    snprintf(late, sizeof late, "%s/factor.nki", sub);
    assert_int_equal(mkdir(sub, 0700), 0);
    log_text log = {.len = 0};
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    const char *roots[] = {dir, sub};
    o.import_roots = roots;
    o.import_root_count = 2;
    o.log = keep_line;
    o.log_ctx = &log;
    o.log_level = NKI_LOG_INFO;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    nki_tensor *x = numbers(ctx, NKI_FLOAT32, 5, SHAPE(1, 4));
    float first = ((float *)nki_tensor_data(x))[0];
    nki_op *op = NULL;
    const nki_source src = {"scale.nki", optional_text, sizeof optional_text - 1};
    assert_int_equal(nki_op_open(ctx, &src, "scale", NULL, &op), NKI_OK);
    assert_true(call_scale(op, x, 1) == first * 3 + 1);
    assert_true(call_scale(op, x, 1) == first * 3 + 1);
    assert_int_equal(counters(ctx).cache_hits, 1);
    write_file(late, "FACTOR = 2.0\n");
    assert_true(call_scale(op, x, 1) == first * 2 + 1);
    assert_int_equal(counters(ctx).cache_stale, 1);
    write_file(early, "FACTOR = 5.0\n");
    assert_true(call_scale(op, x, 1) == first * 5 + 1);
    assert_true(call_scale(op, x, 1) == first * 5 + 1);
    assert_int_equal(counters(ctx).cache_stale, 2);
    unlink(early);
    assert_true(call_scale(op, x, 1) == first * 2 + 1);
    assert_true(call_scale(op, x, 2) == first * 2 + 2);
    nki_counters c = counters(ctx);
    assert_int_equal(c.cache_stale, 3);
    assert_int_equal(c.compiles, 5);
    assert_int_equal(c.cache_hits, 2);
    log.text[log.len] = '\0';
    assert_non_null(strstr(log.text, "why=\"not seen before\""));
    assert_non_null(strstr(log.text, "why=\"dropped since it was compiled\""));
    assert_non_null(strstr(log.text, "why=\"others: compile-time values\""));
    assert_non_null(strstr(log.text, "was=absent"));
    assert_non_null(strstr(log.text, "was=another"));
    nki_op_release(op);
    nki_tensor_release(x);
    nki_context_release(ctx);
    unlink(late);
    rmdir(sub);
    rmdir(dir);
}

typedef struct racer {
    nki_context *ctx;
    nki_tensor *x;
    nki_status st;
    const char *text;
} racer;

static void *race(void *arg)
{
    racer *r = arg;
    nki_tensor *y = NULL;
    r->st = nki_elementwise(r->ctx, NULL, r->text, &r->x, 1, NULL, &y, 1);
    nki_tensor_release(y);
    return NULL;
}

static void cache__compiles_once_for_many_callers(void **state)
{
    (void)state;
    nki_context *ctx = context();
    nki_tensor *x = numbers(ctx, NKI_FLOAT32, 5, SHAPE(40, 60));
    enum { RACERS = 4 };
    racer r[RACERS];
    pthread_t t[RACERS];
    for (int i = 0; i < RACERS; i++) {
        r[i] = (racer){ctx, x, NKI_ERR_INTERNAL, "tanh(x0) * 2 + x0"};
        assert_int_equal(pthread_create(&t[i], NULL, race, &r[i]), 0);
    }
    for (int i = 0; i < RACERS; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(r[i].st, NKI_OK);
    }
    nki_counters c = counters(ctx);
    assert_int_equal(c.compiles, 1);
    assert_int_equal(c.cache_misses, 1);
    assert_int_equal(c.cache_hits, RACERS - 1);
    nki_tensor_release(x);
    nki_context_release(ctx);
}

static void cache__drops_the_oldest_that_nobody_has(void **state)
{
    (void)state;
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.cache_bytes = 1;  // nothing is kept that is not in use
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    nki_tensor *x = numbers(ctx, NKI_FLOAT32, 5, SHAPE(4, 6)), *y = NULL;
    nki_op *op = NULL;
    nki_kernel *held = NULL, *again = NULL;
    assert_int_equal(nki_op_builtin(ctx, "softmax", &op), NKI_OK);
    assert_int_equal(nki_op_specialize(op, NKI_ARGS(NKI_T(x)), NULL, NULL, &held), NKI_OK);
    assert_int_equal(nki_sum(ctx, NULL, x, &y), NKI_OK);
    nki_tensor_release(y);
    assert_int_equal(counters(ctx).cache_evictions, 1);  // the sum
    assert_int_equal(nki_op_specialize(op, NKI_ARGS(NKI_T(x)), NULL, NULL, &again), NKI_OK);
    assert_ptr_equal(held, again);
    nki_kernel_release(held);
    nki_kernel_release(again);
    assert_int_equal(counters(ctx).cache_evictions, 2);
    assert_int_equal(counters(ctx).cache_bytes, 0);
    nki_op_release(op);
    nki_tensor_release(x);
    nki_context_release(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise__broadcasts_any_shapes),
        cmocka_unit_test(elementwise__operators_and_types),
        cmocka_unit_test(elementwise__computes_every_operator),
        cmocka_unit_test(elementwise__selects),
        cmocka_unit_test(elementwise__takes_every_type),
        cmocka_unit_test(elementwise__integers_are_exact),
        cmocka_unit_test(elementwise__says_where_the_expression_is_wrong),
        cmocka_unit_test(matmul__any_sizes_and_batches),
        cmocka_unit_test(softmax_and_sum__any_rank_and_long_rows),
        cmocka_unit_test(path__is_one_for_library_and_user),
        cmocka_unit_test(resolver__answers_imports),
        cmocka_unit_test(cache__sees_values_and_changed_imports),
        cmocka_unit_test(cache__sees_files_that_appear),
        cmocka_unit_test(cache__compiles_once_for_many_callers),
        cmocka_unit_test(cache__drops_the_oldest_that_nobody_has),
    };
    return cmocka_run_group_tests_name("runtime.op", tests, NULL, NULL);
}
