// Operators against long double formulas, and every CPU level against every other, bit for bit.

#include "tests/unit/numerics_reference.h"

#include "device/kern.h"

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
    return ref_next(&rng);
}

static const char *const levels[] = {"portable", "avx2", "avx512"};
static float in[N], other[N], out[3][N];
static double wide[N];

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
            v[i] = ref_float(next());
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
            if (ref_bits(out[l][i]) != ref_bits(out[0][i]) &&
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

// What every level has alike is measured by test_device_functions.
static void functions(void **state)
{
    (void)state;
    for (int u = 0; u < REF_FUNCTIONS; u++) {
        fill(in, ref_functions[u].lo, ref_functions[u].hi);
        each_level(run_unary, ref_functions[u].op, 0);
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
                double want = ref_operator((op_id)op, (double)in[i], (double)other[i]);
                double e = ref_ulp(got, (long double)want);
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
            assert_true(isnan(want) ? isnan(out[0][i]) : ref_bits(want) == ref_bits(out[0][i]));
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
                for (size_t i = 0; i < n; i++) {
                    wide[i] = (double)in[i];
                }
                float want = ref_fold(ops[o], wide, n);
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
                    if (isnan(want) ? !isnan(got) : ref_bits(got) != ref_bits(want)) {
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
    static float a[KK * MM], at[KK * MM], b[KK * NN], c[MM * NN], want[MM * NN];
    for (int round = 0; round < 2; round++) {  // the second near the subnormals
        for (int i = 0; i < KK * MM; i++) {
            a[i] = ((float)next() * 0x1p-31f - 1) * (round ? 0x1p-64f : 1);
            a[i] = next() % 50 ? a[i] : ref_float(next() % 0x800000);
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
            const kernels *kn = kern_get();
            kn->pack(at, (crows){a, MM * 4}, KK, MM);
            for (int add = 0; add < 2; add++) {  // the second time to what the first left
                kn->matmul((rows){c, NN * 4}, at, (crows){b, NN * 4}, KK, MM, NN, add);
                for (int i = 0; i < MM * NN; i++) {
                    float w = add ? flush(want[i] + want[i]) : want[i];
                    if (ref_bits(c[i]) != ref_bits(w)) {
                        fail_msg("%s: element %d is %a, want %a", levels[l], i, (double)c[i],
                                 (double)w);
                    }
                }
            }
        }
    }
    kern_force(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions), cmocka_unit_test(operators), cmocka_unit_test(documented_values),
        cmocka_unit_test(affine),    cmocka_unit_test(bits),
        cmocka_unit_test(folds),     cmocka_unit_test(matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
