// Operators against long double formulas, and every CPU level against every other, bit for bit.

#include "device/kern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 60000 };

static uint32_t rng = 99;
static uint32_t next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return rng;
}

static float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

// Error of got in units of the last place of the exact value.
static double ulp(float got, long double exact)
{
    if (isnan(exact)) {
        return isnan(got) ? 0 : 1e9;
    }
    long double limit = 0x1.ffffffp127L;  // halfway past the largest float
    if (fabsl(exact) >= limit) {
        return isinf(got) && (got < 0) == (exact < 0) ? 0 : 1e9;
    }
    if (!isfinite(got)) {
        return 1e9;
    }
    int e;
    frexpl(exact, &e);
    e = e - 24 < -149 ? -149 : e - 24;
    return (double)fabsl(((long double)got - exact) / ldexpl(1.0L, e));
}

typedef long double (*ref1)(long double);

static const long double pi_l = 3.14159265358979323846264338327950288L;

static long double r_abs(long double x)
{
    return fabsl(x);
}
static long double r_square(long double x)
{
    return x * x;
}
static long double r_relu(long double x)
{
    return x > 0 || isnan(x) ? x : 0;
}
static long double r_rsqrt(long double x)
{
    return 1 / sqrtl(x);
}
static long double r_reciprocal(long double x)
{
    return 1 / x;
}
static long double r_copy(long double x)
{
    return x;
}
static long double r_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}
static long double r_silu(long double x)
{
    return isinf(x) && x < 0 ? 0 : x * r_sigmoid(x);
}
static long double r_silu_dx(long double x)
{
    return isinf(x) ? (x > 0) : r_sigmoid(x) * (1 + x * r_sigmoid(-x));
}
static long double phi_l(long double x)
{
    return erfcl(-x / sqrtl(2)) / 2;
}
static long double r_gelu(long double x)
{
    return isinf(x) && x < 0 ? 0 : x * phi_l(x);
}
static long double r_gelu_dx(long double x)
{
    return isinf(x) ? (x > 0) : phi_l(x) + x * expl(-x * x / 2) / sqrtl(2 * pi_l);
}
static long double r_gelu_apprx_tanh(long double x)
{
    long double s = r_sigmoid(2 * sqrtl(2 / pi_l) * (x + 0.044715L * x * x * x));
    return isinf(x) && x < 0 ? 0 : x * s;
}
static long double r_gelu_apprx_sigmoid(long double x)
{
    return isinf(x) && x < 0 ? 0 : x * r_sigmoid(1.702L * x);
}
static long double r_gelu_apprx_sigmoid_dx(long double x)
{
    long double y = 1.702L * x;
    return isinf(x) ? (x > 0) : r_sigmoid(y) * (1 + y * r_sigmoid(-y));
}
static long double r_softplus(long double x)
{
    return isinf(x) ? (x > 0 ? x : 0) : x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}
static long double r_mish(long double x)
{
    return isinf(x) && x < 0 ? 0 : x * tanhl(r_softplus(x));
}
static long double r_erf_dx(long double x)
{
    return 2 / sqrtl(pi_l) * expl(-x * x);
}
static long double r_sin(long double x)
{
    if (fabsl(x) <= 3.14159265358979323846L) {
        return sinl(x);
    }
    long double y = fabsl(x) - pi_l, r = y * y * y / 6 - y;
    return x < 0 ? -r : r;
}
static long double r_sign(long double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}
static long double r_negative(long double x)
{
    return -x;
}
static long double r_prelu(long double x)
{
    return r_relu(x);
}

static const struct {
    op_id op;
    ref1 ref;
    double max_ulp;
    float lo, hi;  // range of random arguments besides all patterns
} unary[] = {
    {OPR_abs, r_abs, 0, -9, 9},
    {OPR_square, r_square, 0.5, -9, 9},
    {OPR_relu, r_relu, 0, -9, 9},
    {OPR_rsqrt, r_rsqrt, 1.5, 0, 100},
    {OPR_reciprocal, r_reciprocal, 0.5, -9, 9},
    {OPR_copy, r_copy, 0, -9, 9},
    {OPR_bypass, r_copy, 0, -9, 9},
    {OPR_exp, expl, 1.0, -104, 90},
    {OPR_log, logl, 0.51, 0, 10},
    {OPR_sqrt, sqrtl, 0.5, 0, 100},
    {OPR_tanh, tanhl, 1.5, -10, 10},
    {OPR_sigmoid, r_sigmoid, 2.0, -105, 20},
    {OPR_silu, r_silu, 3.0, -105, 20},
    {OPR_silu_dx, r_silu_dx, 4, -20, 20},
    {OPR_gelu, r_gelu, 0.51, -14, 6},
    {OPR_gelu_dx, r_gelu_dx, 64, -10, 6},
    {OPR_gelu_apprx_tanh, r_gelu_apprx_tanh, 0.51, -10, 6},
    {OPR_gelu_apprx_sigmoid, r_gelu_apprx_sigmoid, 0.51, -60, 20},
    {OPR_gelu_apprx_sigmoid_dx, r_gelu_apprx_sigmoid_dx, 4, -20, 20},
    {OPR_softplus, r_softplus, 0.51, -104, 40},
    {OPR_mish, r_mish, 0.51, -104, 40},
    {OPR_erf, erfl, 0.51, -4, 4},
    {OPR_erf_dx, r_erf_dx, 0.51, -10, 10},
    {OPR_sin, r_sin, 0.51, -10, 10},
    {OPR_arctan, atanl, 0.51, -10, 10},
    {OPR_sign, r_sign, 0, -9, 9},
    {OPR_prelu, r_prelu, 0, -9, 9},
    {OPR_cos, cosl, 0.51, -1000, 1000},
    {OPR_tan, tanl, 0.51, -1000, 1000},
    {OPR_ceil, ceill, 0, -9, 9},
    {OPR_floor, floorl, 0, -9, 9},
    {OPR_trunc, truncl, 0, -9, 9},
    {OPR_negative, r_negative, 0, -9, 9},
};

static const char *const levels[] = {"portable", "avx2", "avx512"};
static float in[N], other[N], out[3][N];

static void fill(float *v, float lo, float hi)
{
    static const float special[] = {
        0.0f,           -0.0f,      1.0f,   -1.0f,           INFINITY,
        -INFINITY,      NAN,        1e-45f, -1e-45f,         0.5f,
        2.0f,           -2.0f,      3.0f,   1.17549435e-38f, 3.4028235e38f,
        -3.4028235e38f, 3.1415927f, 9.0f,   8388608.0f,      8388607.5f,
        -3.7f,          -3.2f,      2.5f,   -2.5f,           0.41421357f};
    for (int i = 0; i < N; i++) {
        if (i < 25 * 25) {
            v[i] = special[v == in ? i % 25 : i / 25];
        } else if (i % 2) {
            v[i] = bits_float(next());
        } else {
            v[i] = lo + (hi - lo) * ((float)(next() >> 8) * 0x1p-24f);
        }
    }
}

// Runs one loop at each level; returns the level's kernels that ran last.
static int each_level(void (*run)(const kernels *k, op_id op, int mode, float *o), op_id op,
                      int mode)
{
    int n = 0;
    for (int l = 0; l < 3; l++) {
        if (kern_force(levels[l])) {
            run(kern_get(), op, mode, out[n++]);
        }
    }
    kern_force(NULL);
    for (int l = 1; l < n; l++) {
        for (int i = 0; i < N; i++) {
            if (float_bits(out[l][i]) != float_bits(out[0][i]) &&
                !(isnan(out[l][i]) && isnan(out[0][i]))) {
                fail_msg("%s(%a, %a): level %d gives %a, portable %a", op_table[op].name,
                         (double)in[i], (double)other[i], l, (double)out[l][i], (double)out[0][i]);
            }
        }
    }
    return n;
}

static void run_unary(const kernels *k, op_id op, int mode, float *o)
{
    (void)mode;
    k->un[op]((rows){o, 0}, (crows){in, 0}, 1, N);
}

static void functions(void **state)
{
    (void)state;
    for (size_t u = 0; u < sizeof unary / sizeof *unary; u++) {
        double worst = 0;
        float at = 0;
        fill(in, unary[u].lo, unary[u].hi);
        each_level(run_unary, unary[u].op, 0);
        for (int i = 0; i < N; i++) {
            double e = ulp(out[0][i], unary[u].ref((long double)in[i]));
            if (e > worst) {
                worst = e;
                at = in[i];
            }
        }
        if (worst > unary[u].max_ulp) {
            fail_msg("%s: %.3f ulp at %a", op_table[unary[u].op].name, worst, (double)at);
        }
    }
}

static void every_unary_has_a_reference(void **state)
{
    (void)state;
    for (int op = 0; op < OPR_COUNT; op++) {
        bool found = op_table[op].cls != OPC_U;
        for (size_t u = 0; u < sizeof unary / sizeof *unary; u++) {
            found = found || unary[u].op == (op_id)op;
        }
        if (!found) {
            fail_msg("%s", op_table[op].name);
        }
    }
}

// The operators' definitions, in double.
static double ref2(op_id op, double a, double b)
{
    switch (op) {
    case OPR_add:
    case OPR_average: return a + b;
    case OPR_subtract: return a - b;
    case OPR_multiply: return a * b;
    case OPR_maximum:
        return isnan(a) || isnan(b) ? (double)NAN : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
    case OPR_minimum:
        return isnan(a) || isnan(b) ? (double)NAN : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
    case OPR_power: return (double)powl((long double)a, (long double)b);
    case OPR_abs_max: return isnan(a) || isnan(b) ? (double)NAN : fabs(a) > fabs(b) ? a : b;
    case OPR_abs_min: return isnan(a) || isnan(b) ? (double)NAN : fabs(a) < fabs(b) ? a : b;
    case OPR_divide: return a / b;
    case OPR_fmod: return fmod(a, b);
    case OPR_equal: return a == b;
    case OPR_not_equal: return a != b;
    case OPR_less: return a < b;
    case OPR_less_equal: return a <= b;
    case OPR_greater: return a > b;
    case OPR_greater_equal: return a >= b;
    case OPR_logical_and: return a != 0 && b != 0;
    case OPR_logical_or: return a != 0 || b != 0;
    case OPR_logical_xor: return (a != 0) != (b != 0);
    default: return (double)NAN;
    }
}

static void run_binary(const kernels *k, op_id op, int mode, float *o)
{
    if (mode == KERN_VV) {
        k->bin[op][KERN_VV]((rows){o, 0}, (crows){in, 0}, (crows){other, 0}, 1, N);
    } else if (mode == KERN_VS) {  // one scalar a row: rows of one
        k->bin[op][KERN_VS]((rows){o, 4}, (crows){in, 4}, (crows){other, 4}, N, 1);
    } else {
        k->bin[op][KERN_SV]((rows){o, 4}, (crows){in, 4}, (crows){other, 4}, N, 1);
    }
}

static void operators(void **state)
{
    (void)state;
    for (int op = 0; op < OPR_COUNT; op++) {
        if (op_table[op].cls == OPC_U || op_table[op].cls == OPC_B) {
            continue;
        }
        for (int mode = 0; mode < KERN_MODES; mode++) {
            fill(in, -20, 20);
            fill(other, -8, 8);
            for (int i = 700; i < N; i += 7) {
                other[i] = op == OPR_power ? (float)((int)(next() % 21) - 10) : in[i];
            }
            each_level(run_binary, (op_id)op, mode);
            for (int i = 0; i < N; i++) {
                float got = out[0][i];
                if (op == OPR_mod) {  // Python's: same sign as the divisor, congruent
                    double a = (double)in[i], b = (double)other[i], r = fmod(a, b);
                    r = r != 0 && (r < 0) != (b < 0) ? r + b : r;
                    if (!(isnan(r) ? isnan(got) : got == (float)r)) {
                        fail_msg("mod(%a, %a) = %a, want %a", a, b, (double)got, r);
                    }
                    continue;
                }
                double want = ref2((op_id)op, (double)in[i], (double)other[i]);
                double e = ulp(got, (long double)want);
                if (op == OPR_add || op == OPR_subtract || op == OPR_average) {
                    e = (isnan(want) && isnan(got)) || got == (float)want || e <= 0.5000001 ? 0 : e;
                }
                bool zero_sign =
                    got == 0 && want == 0 && op <= OPR_abs_min && !signbit(got) != !signbit(want);
                if (e > (op == OPR_power ? 0.51 : 0.5000001) || zero_sign) {
                    fail_msg("%s(%a, %a) = %a, want %a", op_table[op].name, (double)in[i],
                             (double)other[i], (double)got, want);
                }
            }
        }
    }
}

static void documented_values(void **state)
{
    (void)state;
    const kernels *k = kern_get();
    float x = 9.0f, r;
    k->un[OPR_sin]((rows){&r, 0}, (crows){&x, 0}, 1, 1);
    assert_true(fabsf(r - 27.65f) < 0.01f);
    assert_true(kern_scalar(k, OPR_abs_max, -5, 3) == -5.0f);
    assert_true(kern_scalar(k, OPR_abs_max, 1, -1) == -1.0f);
    assert_true(kern_scalar(k, OPR_abs_min, -5, 3) == 3.0f);
    assert_true(kern_scalar(k, OPR_abs_min, 1, -1) == -1.0f);
}

static void affine(void **state)
{
    (void)state;
    float s[2] = {1.7f, -0.3f}, b[2] = {1e-3f, 4.0f};
    fill(in, -3, 3);
    for (int l = 0; l < 3; l++) {
        if (!kern_force(levels[l])) {
            continue;
        }
        kern_get()->affine((rows){out[0], N / 2 * 4}, (crows){in, N / 2 * 4}, (crows){s, 4},
                           (crows){b, 4}, 2, N / 2);
        for (int i = 0; i < N; i++) {
            int r = i / (N / 2);
            float want = fmaf(in[i], s[r], b[r]);
            assert_true(isnan(want) ? isnan(out[0][i]) : float_bits(want) == float_bits(out[0][i]));
        }
    }
    kern_force(NULL);
}

static void bits(void **state)
{
    (void)state;
    static uint32_t a[N], b[N], d[N];
    static const op_id ops[] = {OPR_bitwise_and, OPR_bitwise_or, OPR_bitwise_xor,
                                OPR_invert,      OPR_left_shift, OPR_right_shift};
    static const unsigned widths[] = {8, 16, 32};
    for (int i = 0; i < N; i++) {
        a[i] = next();
        b[i] = i % 2 ? next() : next() % 40;
    }
    for (size_t o = 0; o < 6; o++) {
        for (int w = 0; w < 3; w++) {
            uint64_t mask = (1ull << widths[w]) - 1;
            kern_get()->bits(ops[o], d, a, b, N, widths[w], false);
            for (int i = 0; i < N; i++) {
                uint64_t x = a[i] & mask, y = b[i] & mask, want = 0;
                switch (ops[o]) {
                case OPR_bitwise_and: want = x & y; break;
                case OPR_bitwise_or: want = x | y; break;
                case OPR_bitwise_xor: want = x ^ y; break;
                case OPR_invert: want = ~x; break;
                case OPR_left_shift: want = y < widths[w] ? x << y : 0; break;
                default: want = y < widths[w] ? x >> y : 0; break;
                }
                assert_int_equal(d[i] & mask, want & mask);
            }
        }
    }
}

// Order of a fold written out: sixteen partial results, then halves.
static float fold_ref(op_id op, const float *v, size_t n)
{
    float p[16];
    for (int j = 0; j < 16; j++) {
        p[j] = op == OPR_multiply || op == OPR_logical_and ? 1
               : op == OPR_maximum                         ? -INFINITY
               : op == OPR_minimum || op == OPR_abs_min    ? INFINITY
                                                           : 0;
    }
    for (size_t i = 0; i < n; i++) {
        p[i % 16] = (float)ref2(op, (double)p[i % 16], (double)v[i]);
    }
    for (int h = 8; h; h /= 2) {
        for (int j = 0; j < h; j++) {
            p[j] = (float)ref2(op, (double)p[j], (double)p[j + h]);
        }
    }
    return p[0];
}

static void folds(void **state)
{
    (void)state;
    static const op_id ops[] = {OPR_add,        OPR_average,    OPR_multiply, OPR_maximum,
                                OPR_minimum,    OPR_abs_max,    OPR_abs_min,  OPR_logical_and,
                                OPR_logical_or, OPR_logical_xor};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        for (size_t n = 1; n < 300; n = n * 3 / 2 + 1) {
            for (int special = 0; special < 2; special++) {
                for (size_t i = 0; i < n; i++) {
                    in[i] = (float)((int)(next() % 2000) - 1000) * 0.0021f;
                    in[i] = special && next() % 40 == 0 ? (next() % 2 ? -0.0f : NAN) : in[i];
                }
                float want = fold_ref(ops[o], in, n);
                for (int l = 0; l < 3; l++) {
                    if (!kern_force(levels[l])) {
                        continue;
                    }
                    float acc[16];
                    for (int j = 0; j < 16; j++) {
                        acc[j] = kern_identity(ops[o]);
                    }
                    kern_get()->fold[ops[o]](acc, in, n);
                    float got = kern_tree(kern_get(), ops[o], acc);
                    if (isnan(want) ? !isnan(got) : float_bits(got) != float_bits(want)) {
                        fail_msg("%s of %zu: %a, want %a", op_table[ops[o]].name, n, (double)got,
                                 (double)want);
                    }
                }
            }
        }
    }
    kern_force(NULL);
}

static float flush(float x)
{
    return fabsf(x) < 1.17549435e-38f ? copysignf(0, x) : x;
}

static void matmul(void **state)
{
    (void)state;
    enum { KK = 37, MM = 29, NN = 75 };
    static float a[KK * MM], b[KK * NN], c[MM * NN], want[MM * NN];
    for (int round = 0; round < 2; round++) {  // the second near the subnormals
        for (int i = 0; i < KK * MM; i++) {
            a[i] = ((float)next() * 0x1p-31f - 1) * (round ? 0x1p-64f : 1);
            a[i] = next() % 50 ? a[i] : bits_float(next() % 0x800000);
        }
        for (int i = 0; i < KK * NN; i++) {
            b[i] = ((float)next() * 0x1p-31f - 1) * (round ? 0x1p-62f : 1);
        }
        for (int m = 0; m < MM; m++) {
            for (int n = 0; n < NN; n++) {
                float s = 0;
                for (int k = 0; k < KK; k++) {
                    s = flush(fmaf(flush(a[k * MM + m]), flush(b[k * NN + n]), s));
                }
                want[m * NN + n] = s;
            }
        }
        for (int l = 0; l < 3; l++) {
            if (!kern_force(levels[l])) {
                continue;
            }
            kern_get()->matmul((rows){c, NN * 4}, (crows){a, MM * 4}, (crows){b, NN * 4}, KK, MM,
                               NN);
            for (int i = 0; i < MM * NN; i++) {
                if (float_bits(c[i]) != float_bits(want[i])) {
                    fail_msg("%s: element %d is %a, want %a", levels[l], i, (double)c[i],
                             (double)want[i]);
                }
            }
        }
    }
    kern_force(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions), cmocka_unit_test(every_unary_has_a_reference),
        cmocka_unit_test(operators), cmocka_unit_test(documented_values),
        cmocka_unit_test(affine),    cmocka_unit_test(bits),
        cmocka_unit_test(folds),     cmocka_unit_test(matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
