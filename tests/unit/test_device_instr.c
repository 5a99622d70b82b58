// Every instruction on a small program, against the formulas of the instruction's description.

#include "tests/unit/device_program.h"

static uint32_t rng = 7;
static uint32_t next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return rng;
}

static void randoms(float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = (float)((int)(next() % 4001) - 2000) * 0.00137f;
    }
}

static void near(const float *got, const float *want, size_t n, float rel)
{
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(got[i] - want[i]) <= rel * fmaxf(1.0f, fabsf(want[i]))) &&
            !(isnan(got[i]) && isnan(want[i]))) {
            fail_msg("element %zu: %.9g, want %.9g", i, (double)got[i], (double)want[i]);
        }
    }
}

static void same(const float *got, const float *want, size_t n)
{
    near(got, want, n, 0.0f);
}

enum { P = 20, N = 37, PN = P * N };
static float a[8192], b[8192], c[8192], out[8192], out2[8192], want[8192], want2[8192];

static void setup(prog *g, int gen)
{
    prog_init(g, gen);
    randoms(a, 8192);
    randoms(b, 8192);
    randoms(c, 8192);
}

static void tensor_tensor(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        prog g;
        setup(&g, 3);
        dtype d = kind == 1 ? DT_bfloat16 : DT_float32;
        uint32_t x = prog_load(&g, DT_float32, P, N, a), y = prog_load(&g, DT_float32, P, N, b);
        uint32_t xd = prog_sbuf(&g, d, P, N), z = prog_psum(&g, DT_float32, P, N);
        EMIT(&g, tensor_copy, ENG_VECTOR, V(xd), V(x), EN(0), NONE);
        if (kind == 2) {  // a transposed view of equal partitions and elements: flattened order
            uint32_t t3 = prog_ap(&g, y, 0, 0, 3, (const int64_t[][2]){{1, P}, {1, 1}, {1, N}});
            y = t3;
        }
        EMIT(&g, tensor_tensor, ENG_VECTOR, V(z), V(xd), V(y), OP(subtract), EN(0));
        prog_out(&g, z, out);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (int i = 0; i < PN; i++) {
            want[i] = (kind == 1 ? 0 : a[i]) - b[i];
        }
        if (kind != 1) {
            same(out, want, PN);
        } else {
            for (int i = 0; i < PN; i++) {
                float lost = out[i] + b[i];
                assert_true(fabsf(lost - a[i]) <= fabsf(a[i]) * 0.005f + 1e-6f);
            }
        }
        prog_fini(&g);
    }
}

static void strided(void **state)
{
    (void)state;
    // dst every third element backwards, a source with stride 2, a source broadcast by stride 0.
    prog g;
    setup(&g, 3);
    uint32_t x = prog_load(&g, DT_float32, P, 64, a), y = prog_load(&g, DT_float32, P, 16, b);
    uint32_t z = prog_sbuf(&g, DT_float32, P, 64);
    EMIT(&g, memset, ENG_VECTOR, V(z), F(-1), EN(0));
    uint32_t xv = prog_ap(&g, x, 1, 0, 2, (const int64_t[][2]){{1, P}, {2, 20}});
    uint32_t yv = prog_ap(&g, y, 3, 0, 3, (const int64_t[][2]){{1, P}, {0, 5}, {1, 4}});
    uint32_t zv = prog_ap(&g, z, 60, 0, 2, (const int64_t[][2]){{1, P}, {-3, 20}});
    EMIT(&g, tensor_tensor, ENG_VECTOR, V(zv), V(xv), V(yv), OP(multiply), EN(0));
    prog_out(&g, z, out);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < P; p++) {
        for (int i = 0; i < 64; i++) {
            want[p * 64 + i] = -1;
        }
        for (int i = 0; i < 20; i++) {
            want[p * 64 + 60 - 3 * i] = a[p * 64 + 1 + 2 * i] * b[p * 16 + 3 + i % 4];
        }
    }
    same(out, want, P * 64);
    prog_fini(&g);
}

static void overlap(void **state)
{
    (void)state;
    // dst is the source moved by one element: all is read before anything is written.
    prog g;
    setup(&g, 3);
    uint32_t x = prog_load(&g, DT_float32, P, 40, a);
    uint32_t s = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{1, P}, {1, 39}});
    uint32_t d = prog_ap(&g, x, 1, 0, 2, (const int64_t[][2]){{1, P}, {1, 39}});
    EMIT(&g, tensor_scalar, ENG_VECTOR, V(d), V(s), OP(add), F(1), B(0), NONE, NONE, B(0), EN(0));
    // And with the operand (P, 1) inside dst.
    uint32_t col = prog_ap(&g, x, 5, 0, 2, (const int64_t[][2]){{1, P}, {1, 1}});
    EMIT(&g, tensor_scalar, ENG_VECTOR, V(x), V(x), OP(subtract), V(col), B(0), NONE, NONE, B(0),
         EN(0));
    prog_out(&g, x, out);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < P; p++) {
        float t[40];
        for (int i = 0; i < 40; i++) {
            t[i] = i ? a[p * 40 + i - 1] + 1.0f : a[p * 40];
        }
        for (int i = 0; i < 40; i++) {
            want[p * 40 + i] = t[i] - t[5];
        }
    }
    same(out, want, P * 40);
    prog_fini(&g);
}

static void tensor_scalar(void **state)
{
    (void)state;
    prog g;
    setup(&g, 4);
    uint32_t x = prog_load(&g, DT_float32, P, N, a), s = prog_load(&g, DT_float32, P, 1, b);
    uint32_t z = prog_sbuf(&g, DT_float32, P, N), w = prog_sbuf(&g, DT_float32, P, N),
             y = prog_load(&g, DT_float32, P, N, c);
    EMIT(&g, tensor_scalar, ENG_VECTOR, V(z), V(x), OP(subtract), V(s), B(1), OP(maximum), F(0.25f),
         B(0), EN(0));
    EMIT(&g, scalar_tensor_tensor, ENG_VECTOR, V(w), V(x), OP(multiply), V(s), OP(subtract), V(y),
         B(0), B(1), NONE);
    prog_out(&g, z, out);
    prog_out(&g, w, out2);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < PN; i++) {
        want[i] = fmaxf(b[i / N] - a[i], 0.25f);
        float t = a[i] * b[i / N];
        want2[i] = c[i] - t;
    }
    same(out, want, PN);
    same(out2, want2, PN);
    prog_fini(&g);
}

static void bit_operators(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static uint32_t u[PN], v[PN], r[PN], r2[PN];
    static int8_t s8[PN], r8[PN];
    for (int i = 0; i < PN; i++) {
        u[i] = next();
        v[i] = next() % 36;
        s8[i] = (int8_t)next();
    }
    uint32_t x = prog_load(&g, DT_uint32, P, N, u), y = prog_load(&g, DT_uint32, P, N, v);
    uint32_t z = prog_sbuf(&g, DT_uint32, P, N), w = prog_sbuf(&g, DT_uint32, P, N);
    uint32_t q = prog_load(&g, DT_int8, P, N, s8), q2 = prog_sbuf(&g, DT_int8, P, N);
    EMIT(&g, tensor_tensor, ENG_VECTOR, V(z), V(x), V(y), OP(right_shift), EN(0));
    EMIT(&g, tensor_scalar, ENG_VECTOR, V(w), V(x), OP(bitwise_and), I(0xff00ff), B(0),
         OP(left_shift), I(3), B(0), EN(0));
    EMIT(&g, tensor_scalar, ENG_VECTOR, V(q2), V(q), OP(right_shift), I(2), B(0), OP(bitwise_xor),
         I(0x55), B(0), EN(0));
    prog_out(&g, z, r);
    prog_out(&g, w, r2);
    prog_out(&g, q2, r8);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < PN; i++) {
        assert_int_equal(r[i], v[i] < 32 ? u[i] >> v[i] : 0);
        assert_int_equal(r2[i], (u[i] & 0xff00ff) << 3);
        assert_int_equal((uint8_t)r8[i], ((uint8_t)s8[i] >> 2) ^ 0x55);
    }
    prog_fini(&g);
}

static void integers_on_gpsimd(void **state)
{
    (void)state;
    static const op_id ops[] = {OPR_add, OPR_subtract, OPR_multiply, OPR_maximum, OPR_minimum};
    for (int o = 0; o < 5; o++) {
        prog g;
        setup(&g, 3);
        static int32_t u[PN], v[PN], r[PN], r2[PN];
        for (int i = 0; i < PN; i++) {
            u[i] = (int32_t)next();
            v[i] = (int32_t)next();
        }
        uint32_t x = prog_load(&g, DT_int32, P, N, u), y = prog_load(&g, DT_int32, P, N, v);
        uint32_t z = prog_sbuf(&g, DT_int32, P, N), w = prog_sbuf(&g, DT_int32, P, N);
        EMIT(&g, tensor_tensor, ENG_GPSIMD, V(z), V(x), V(y), OPID(ops[o]), EN(0));
        EMIT(&g, tensor_tensor, ENG_VECTOR, V(w), V(x), V(y), OPID(ops[o]), EN(0));
        prog_out(&g, z, r);
        prog_out(&g, w, r2);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (int i = 0; i < PN; i++) {
            uint32_t p = (uint32_t)u[i], q = (uint32_t)v[i];
            int32_t exact = o == 0   ? (int32_t)(p + q)
                            : o == 1 ? (int32_t)(p - q)
                            : o == 2 ? (int32_t)(p * q)
                            : o == 3 ? (u[i] > v[i] ? u[i] : v[i])
                                     : (u[i] < v[i] ? u[i] : v[i]);
            assert_int_equal(r[i], exact);
            float f = (float)u[i], h = (float)v[i];  // Vector: fp32, saturating
            float t = o == 0   ? f + h
                      : o == 1 ? f - h
                      : o == 2 ? f * h
                      : o == 3 ? fmaxf(f, h)
                               : fminf(f, h);
            int32_t sat = t >= 2147483648.0f   ? INT32_MAX
                          : t < -2147483648.0f ? INT32_MIN
                                               : (int32_t)t;
            assert_int_equal(r2[i], sat);
        }
        prog_fini(&g);
    }
}

static float sum16(const float *v, size_t n)
{
    float p[16] = {0};
    for (size_t i = 0; i < n; i++) {
        p[i % 16] += v[i];
    }
    for (int h = 8; h; h /= 2) {
        for (int j = 0; j < h; j++) {
            p[j] += p[j + h];
        }
    }
    return p[0];
}

static void activations(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    uint32_t x = prog_load(&g, DT_float32, P, N, a), s = prog_load(&g, DT_float32, P, 1, b),
             t = prog_load(&g, DT_float32, P, 1, c);
    uint32_t z = prog_sbuf(&g, DT_float32, P, N), r = prog_sbuf(&g, DT_float32, P, 1),
             r2 = prog_sbuf(&g, DT_float32, P, 1), r3 = prog_sbuf(&g, DT_float32, P, 1);
    EMIT(&g, activation, ENG_SCALAR, V(z), OP(square), V(x), V(t), V(s), OP(add), V(r),
         EN(ISAE_reduce_cmd_reset_reduce));
    EMIT(&g, activation, ENG_SCALAR, V(z), OP(square), V(x), V(t), V(s), OP(add), V(r2),
         EN(ISAE_reduce_cmd_reduce));
    EMIT(&g, activation_reduce, ENG_SCALAR, V(z), OP(square), V(x), OP(add), V(r3), V(t), V(s));
    prog_out(&g, z, out);
    prog_out(&g, r, out2);
    prog_out(&g, r2, out2 + 100);
    prog_out(&g, r3, out2 + 200);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < PN; i++) {
        float y = fmaf(a[i], b[i / N], c[i / N]);
        want[i] = y * y;
    }
    same(out, want, PN);
    for (int p = 0; p < P; p++) {
        want2[p] = sum16(want + p * N, N);
        want2[p + 100] = want2[p] + want2[p];
    }
    same(out2, want2, P);
    same(out2 + 100, want2 + 100, P);
    same(out2 + 200, want2, P);
    prog_fini(&g);
}

static void activate2_exponential(void **state)
{
    (void)state;
    prog g;
    setup(&g, 4);
    uint32_t x = prog_load(&g, DT_float32, P, N, a), s = prog_load(&g, DT_float32, P, 1, b);
    uint32_t z = prog_sbuf(&g, DT_float32, P, N), w = prog_sbuf(&g, DT_float32, P, N),
             r = prog_sbuf(&g, DT_float32, P, 1), q = prog_sbuf(&g, DT_float32, P, 1);
    EMIT(&g, activate2, ENG_SCALAR, V(z), OP(prelu), V(x), V(s), F(0.5f), OP(multiply),
         OP(subtract), F(0.1f), B(0), B(1), OP(maximum), V(r), EN(ISAE_reduce_cmd_reset_reduce));
    EMIT(&g, exponential, ENG_VECTOR, V(w), V(x), V(s), V(q), EN(ISAE_reduce_cmd_load_reduce),
         F(2.0f));
    prog_out(&g, z, out);
    prog_out(&g, w, out2);
    prog_out(&g, r, out + 4000);
    prog_out(&g, q, out2 + 4000);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < PN; i++) {
        float m = a[i] * b[i / N], t = 0.5f - m;
        want[i] = t >= 0 ? t : 0.1f * t;
        want2[i] = (float)exp((double)(a[i] - b[i / N]));
    }
    same(out, want, PN);
    near(out2, want2, PN, 1e-6f);
    for (int p = 0; p < P; p++) {
        float m = -INFINITY;
        for (int i = 0; i < N; i++) {
            m = fmaxf(m, want[p * N + i]);
        }
        assert_true(out[4000 + p] == m);
        assert_true(fabsf(out2[4000 + p] - (2.0f + sum16(want2 + p * N, N))) < 1e-3f);
    }
    prog_fini(&g);
}

static void tensor_scalar_reduce(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    uint32_t x = prog_load(&g, DT_float32, P, N, a), s = prog_load(&g, DT_float32, P, 1, b);
    uint32_t z = prog_sbuf(&g, DT_bfloat16, P, N), r = prog_sbuf(&g, DT_float32, P, 1);
    EMIT(&g, tensor_scalar_reduce, ENG_VECTOR, V(z), V(x), OP(add), V(s), OP(add), V(r), B(0),
         EN(ISAE_reduce_cmd_reset_reduce), NONE, B(1));
    prog_out(&g, r, out);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < PN; i++) {
        want[i] = a[i] + b[i / N];
    }
    for (int p = 0; p < P; p++) {  // of the fp32 values, before the cast to bfloat16
        want2[p] = -sum16(want + p * N, N);
    }
    same(out, want2, P);
    prog_fini(&g);
}

static void selects(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static uint8_t pred[PN];
    for (int i = 0; i < PN; i++) {
        pred[i] = (uint8_t)(next() % 3);
    }
    for (int p = 0; p < P; p++) {
        b[p] = (float)(p % 7 + 100);
        c[p] = (float)(p % 11 + 120);
    }
    uint32_t x = prog_load(&g, DT_float32, P, N, a), lo = prog_load(&g, DT_float32, P, 1, b),
             hi = prog_load(&g, DT_float32, P, 1, c);
    uint32_t pr = prog_load(&g, DT_uint8, P, N, pred);
    uint32_t z = prog_sbuf(&g, DT_float32, P, N), r = prog_sbuf(&g, DT_float32, P, 1),
             w = prog_sbuf(&g, DT_float32, P, N), q = prog_sbuf(&g, DT_float32, P, 1),
             y = prog_load(&g, DT_float32, P, N, a + 4000);
    EMIT(&g, range_select, ENG_VECTOR, V(z), V(x), OP(greater_equal), OP(less), V(lo), V(hi),
         EN(ISAE_reduce_cmd_reset_reduce), V(r), OP(maximum), I(100), F(-3.4028235e38f));
    EMIT(&g, select_reduce, ENG_VECTOR, V(w), V(pr), V(x), F(0.125f), V(q),
         EN(ISAE_reduce_cmd_reset_reduce), OP(maximum), B(1));
    EMIT(&g, tensor_copy_predicated, ENG_VECTOR, V(y), V(x), V(pr), B(0));
    prog_out(&g, z, out);
    prog_out(&g, r, out + 4000);
    prog_out(&g, w, out2);
    prog_out(&g, q, out2 + 4000);
    prog_out(&g, y, out + 5000);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < P; p++) {
        float m = -INFINITY, m2 = -INFINITY;
        for (int i = 0; i < N; i++) {
            int k = 100 + i, at = p * N + i;
            want[at] = (float)k >= b[p] && (float)k < c[p] ? a[at] : -3.4028235e38f;
            want2[at] = pred[at] ? 0.125f : a[at];
            m = fmaxf(m, want[at]);
            m2 = fmaxf(m2, want2[at]);
            want[5000 + at] = pred[at] ? a[at] : a[4000 + at];
        }
        assert_true(out[4000 + p] == m);
        assert_true(out2[4000 + p] == m2);
    }
    same(out, want, PN);
    same(out2, want2, PN);
    same(out + 5000, want + 5000, PN);
    prog_fini(&g);
}

static void fills(void **state)
{
    (void)state;
    prog g;
    setup(&g, 4);
    static int32_t iv[PN];
    static uint8_t u8[PN];
    uint32_t z = prog_sbuf(&g, DT_float32, P, N), w = prog_sbuf(&g, DT_int32, P, N),
             q = prog_sbuf(&g, DT_uint8, P, N);
    uint32_t h = prog_view(&g, prog_tensor(&g, BUF_HBM, DT_float16, 2, (uint32_t[]){P, N})),
             hf = prog_sbuf(&g, DT_float32, P, N);
    EMIT(&g, memset, ENG_VECTOR, V(z), F(2.5f), EN(0));
    EMIT(&g, memset, ENG_VECTOR, V(w), I(-2147483647), EN(0));
    EMIT(&g, memset, ENG_VECTOR, V(q), I(300), EN(0));
    prog_emit(&g, ISA_fill_uninit, ENG_SYNC, (ir_arg[]){V(h)});
    prog_copy(&g, hf, h);
    prog_out(&g, z, out);
    prog_out(&g, w, iv);
    prog_out(&g, q, u8);
    prog_out(&g, hf, out2);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < PN; i++) {
        assert_true(out[i] == 2.5f);
        assert_int_equal(iv[i], -2147483647);
        assert_int_equal(u8[i], 255);
        assert_true(isnan(out2[i]));
    }
    prog_fini(&g);
}

static void iota_affine(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static int32_t iv[128 * 12];
    uint32_t z = prog_sbuf(&g, DT_int32, 128, 12), f = prog_sbuf(&g, DT_float32, 128, 12),
             one = prog_sbuf(&g, DT_float32, 128, 1);
    ir_arg pat = prog_ints(&g, 4, (const int64_t[]){10, 3, -1, 4}),
           pat1 = prog_ints(&g, 2, (const int64_t[]){1, 1});
    g.p->registers = 1;
    EMIT(&g, register_move, ENG_GPSIMD, R(0), I(1000));
    EMIT(&g, iota, ENG_GPSIMD, V(z), pat, R(0), I(7));
    EMIT(&g, iota, ENG_GPSIMD, V(f), pat, I(-5), I(2));
    EMIT(&g, iota, ENG_GPSIMD, V(one), pat1, I(5), I(2));
    uint32_t x = prog_load(&g, DT_float32, 64, 64, a), y = prog_sbuf(&g, DT_float32, 64, 64);
    ir_arg tri = prog_ints(&g, 2, (const int64_t[]){-1, 64});
    EMIT(&g, affine_select, ENG_GPSIMD, V(y), tri, I(1), V(x), F(-9), OP(greater), I(0));
    prog_out(&g, z, iv);
    prog_out(&g, f, out);
    prog_out(&g, one, out2);
    prog_out(&g, y, out2 + 1000);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < 128; p++) {
        for (int i = 0; i < 12; i++) {
            assert_int_equal(iv[p * 12 + i], 1000 + 7 * p + 10 * (i / 4) - i % 4);
            assert_true(out[p * 12 + i] == (float)(-5 + 2 * p + 10 * (i / 4) - i % 4));
        }
        assert_true(out2[p] == (float)(5 + 2 * p));
    }
    for (int p = 0; p < 64; p++) {
        for (int i = 0; i < 64; i++) {
            assert_true(out2[1000 + p * 64 + i] == (i < p ? a[p * 64 + i] : -9));
        }
    }
    prog_fini(&g);
}

static void scans(void **state)
{
    (void)state;
    static const op_id ops0[] = {OPR_multiply, OPR_add, OPR_maximum, OPR_subtract};
    static const op_id ops1[] = {OPR_add, OPR_minimum, OPR_multiply, OPR_subtract};
    for (int k = 0; k < 5; k++) {
        prog g;
        setup(&g, 3);
        op_id o0 = k < 4 ? ops0[k] : OPR_multiply, o1 = k < 4 ? ops1[k] : OPR_add;
        bool rev = k == 3;
        uint32_t x = prog_load(&g, DT_float32, P, N, a), y = prog_load(&g, DT_float32, P, N, b),
                 s = prog_load(&g, DT_float32, P, 1, c);
        uint32_t z = k == 4 ? x : prog_sbuf(&g, DT_float32, P, N);
        EMIT(&g, tensor_tensor_scan, ENG_VECTOR, V(z), V(x), V(y), V(s), OPID(o0), OPID(o1), B(rev),
             B(rev));
        prog_out(&g, z, out);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (int p = 0; p < P; p++) {
            float r = c[p];
            for (int i = 0; i < N; i++) {
                float u = a[p * N + i], v = b[p * N + i], t;
                t = o0 == OPR_multiply  ? u * r
                    : o0 == OPR_add     ? u + r
                    : o0 == OPR_maximum ? fmaxf(u, r)
                                        : r - u;
                r = o1 == OPR_add        ? t + v
                    : o1 == OPR_minimum  ? fminf(t, v)
                    : o1 == OPR_multiply ? t * v
                                         : v - t;
                want[p * N + i] = r;
            }
        }
        same(out, want, PN);
        prog_fini(&g);
    }
}

static void cumulative(void **state)
{
    (void)state;
    prog g;
    prog_init(&g, 3);
    for (int i = 0; i < 64 * 4; i++) {
        a[i] = 1;
    }
    uint32_t x = prog_load(&g, DT_float32, 4, 64, a), z[4];
    static const int cmds[] = {ISAE_reduce_cmd_reset_reduce, ISAE_reduce_cmd_reduce,
                               ISAE_reduce_cmd_load_reduce, ISAE_reduce_cmd_reduce};
    for (int i = 0; i < 4; i++) {
        z[i] = prog_sbuf(&g, DT_float32, 4, 64);
        EMIT(&g, tensor_scalar_cumulative, ENG_VECTOR, V(z[i]), V(x), OP(add), OP(add), F(0),
             i == 2 ? F(1) : NONE, EN(cmds[i]));
        prog_out(&g, z[i], out + i * 256);
    }
    assert_int_equal(prog_run(&g), NKI_OK);
    assert_true(out[63] == 64 && out[256 + 255] == 128 && out[512] == 2 && out[768] == 66 &&
                out[768 + 63] == 129);
    prog_fini(&g);
}

static void reduces(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static int32_t u[P * 24], r[P];
    for (int i = 0; i < P * 24; i++) {
        u[i] = (int32_t)next();
    }
    uint32_t x = prog_load(&g, DT_float32, P, 60, a);
    uint32_t x4 = prog_ap(&g, x, 0, 0, 4, (const int64_t[][2]){{1, P}, {20, 3}, {1, 4}, {4, 5}});
    uint32_t z = prog_sbuf(&g, DT_float32, P, 3), w = prog_sbuf(&g, DT_float32, P, 12),
             q = prog_sbuf(&g, DT_float32, P, 1), s = prog_sbuf(&g, DT_float32, P, 1);
    uint32_t iu = prog_load(&g, DT_int32, P, 24, u), io = prog_sbuf(&g, DT_int32, P, 1);
    ir_arg a23 = prog_ints(&g, 2, (const int64_t[]){2, 3}),
           a3 = prog_ints(&g, 1, (const int64_t[]){3}), a1 = prog_ints(&g, 1, (const int64_t[]){1});
    EMIT(&g, tensor_reduce, ENG_VECTOR, V(z), OP(add), V(x4), a23, B(1), B(0));
    EMIT(&g, tensor_reduce, ENG_VECTOR, V(w), OP(maximum), V(x4), a3, B(0), B(0));
    EMIT(&g, tensor_reduce, ENG_VECTOR, V(q), OP(subtract), V(x), a1, B(0), B(0));
    EMIT(&g, tensor_reduce, ENG_VECTOR, V(s), OP(minimum), V(x), a1, B(0), B(1));
    EMIT(&g, tensor_reduce, ENG_VECTOR, V(io), OP(bitwise_xor), V(iu), a1, B(0), B(0));
    prog_out(&g, z, out);
    prog_out(&g, w, out + 1000);
    prog_out(&g, q, out + 2000);
    prog_out(&g, s, out + 3000);
    prog_out(&g, io, r);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < P; p++) {
        for (int i = 0; i < 3; i++) {
            float v[20];
            for (int j = 0; j < 4; j++) {
                float m = -INFINITY;
                for (int k = 0; k < 5; k++) {
                    v[j * 5 + k] = a[p * 60 + i * 20 + j + 4 * k];
                    m = fmaxf(m, v[j * 5 + k]);
                }
                assert_true(out[1000 + p * 12 + i * 4 + j] == m);
            }
            assert_true(out[p * 3 + i] == -sum16(v, 20));
        }
        float t = a[p * 60], m = t;
        int32_t e = 0;
        for (int i = 1; i < 60; i++) {
            t -= a[p * 60 + i];
            m = fminf(m, a[p * 60 + i]);
        }
        for (int i = 0; i < 24; i++) {
            e ^= u[p * 24 + i];
        }
        assert_true(out[2000 + p] == t && out[3000 + p] == m);
        assert_int_equal(r[p], e);
    }
    prog_fini(&g);
}

static void partition_reduce(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    uint32_t x = prog_load(&g, DT_float32, P, N, a), s = prog_sbuf(&g, DT_float32, 1, N),
             m = prog_sbuf(&g, DT_float32, 1, N), av = prog_sbuf(&g, DT_float32, 1, N);
    EMIT(&g, tensor_partition_reduce, ENG_GPSIMD, V(s), OP(add), V(x));
    EMIT(&g, tensor_partition_reduce, ENG_GPSIMD, V(m), OP(maximum), V(x));
    EMIT(&g, tensor_partition_reduce, ENG_GPSIMD, V(av), OP(average), V(x));
    prog_out(&g, s, out);
    prog_out(&g, m, out + 100);
    prog_out(&g, av, out + 200);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < N; i++) {
        float v[P], top = -INFINITY;
        for (int p = 0; p < P; p++) {
            v[p] = a[p * N + i];
            top = fmaxf(top, v[p]);
        }
        float t = sum16(v, P);
        assert_true(out[i] == t && out[100 + i] == top && out[200 + i] == t / P);
    }
    prog_fini(&g);
}

static void batch_norm(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    uint32_t x = prog_load(&g, DT_float32, P, 51, a), s = prog_sbuf(&g, DT_float32, P, 6),
             r = prog_sbuf(&g, DT_float32, P, 2);
    EMIT(&g, bn_stats, ENG_VECTOR, V(s), V(x));
    EMIT(&g, bn_aggr, ENG_VECTOR, V(r), V(s));
    prog_out(&g, s, out);
    prog_out(&g, r, out2);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < P; p++) {
        double sum = 0, sq = 0;
        for (int i = 0; i < 51; i++) {
            sum += (double)a[p * 51 + i];
        }
        for (int i = 0; i < 51; i++) {
            sq += pow((double)a[p * 51 + i] - sum / 51, 2);
        }
        assert_true(out[p * 6] == 26 && out[p * 6 + 3] == 25);
        assert_true(fabs((double)out2[2 * p] - sum / 51) < 1e-5 &&
                    fabs((double)out2[2 * p + 1] - sq / 51) < 1e-5);
    }
    prog_fini(&g);
}

static void matmul(void **state)
{
    (void)state;
    enum { K = 33, M = 21, NN = 70 };
    static const dtype types[] = {DT_float32, DT_bfloat16, DT_float16, DT_float8_e5m2};
    for (int t = 0; t < 4; t++) {
        prog g;
        setup(&g, 3);
        uint32_t sf = prog_load(&g, DT_float32, K, M, a), mf = prog_load(&g, DT_float32, K, NN, b);
        uint32_t s = prog_sbuf(&g, types[t], K, M), m = prog_sbuf(&g, types[t], K, NN),
                 d = prog_psum(&g, DT_float32, M, NN);
        EMIT(&g, tensor_copy, ENG_VECTOR, V(s), V(sf), EN(0), NONE);
        EMIT(&g, tensor_copy, ENG_VECTOR, V(m), V(mf), EN(0), NONE);
        EMIT(&g, nc_matmul, ENG_TENSOR, V(d), V(s), V(m), B(0), B(0), B(0), B(0), NONE, NONE,
             EN(0));
        EMIT(&g, nc_matmul, ENG_TENSOR, V(d), V(s), V(m), B(0), B(0), B(0), B(1), NONE, NONE,
             EN(0));
        uint32_t rs = prog_sbuf(&g, DT_float32, K, M), rm = prog_sbuf(&g, DT_float32, K, NN);
        EMIT(&g, tensor_copy, ENG_VECTOR, V(rs), V(s), EN(0), NONE);
        EMIT(&g, tensor_copy, ENG_VECTOR, V(rm), V(m), EN(0), NONE);
        prog_out(&g, d, out);
        prog_out(&g, rs, a);
        prog_out(&g, rm, b);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (int i = 0; i < M; i++) {
            for (int j = 0; j < NN; j++) {
                float acc = 0;
                for (int k = 0; k < K; k++) {
                    acc = fmaf(a[k * M + i], b[k * NN + j], acc);
                }
                want[i * NN + j] = acc + acc;
            }
        }
        same(out, want, M * NN);
        prog_fini(&g);
    }
}

static void double_row(void **state)
{
    (void)state;
    prog g;
    prog_init(&g, 3);
    uint32_t s = prog_sbuf(&g, DT_float8_e4m3, 128, 2),
             m = prog_sbuf(&g, DT_float8_e4m3, 128, 2 * 512), d = prog_psum(&g, DT_float32, 1, 512);
    EMIT(&g, memset, ENG_VECTOR, V(s), F(1), EN(0));
    EMIT(&g, memset, ENG_VECTOR, V(m), F(1), EN(0));
    EMIT(&g, nc_matmul, ENG_TENSOR, V(d), V(s), V(m), B(0), B(0), B(0), B(0), NONE, NONE,
         EN(ISAE_matmul_perf_mode_double_row));
    prog_out(&g, d, out);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < 512; i++) {
        assert_true(out[i] == 256);
    }
    prog_fini(&g);
}

static void transposes(void **state)
{
    (void)state;
    static const dtype types[] = {DT_uint8, DT_uint16, DT_uint32};
    for (int t = 0; t < 3; t++) {
        prog g;
        prog_init(&g, 3);
        static uint8_t in[4 * PN], o1[4 * PN], o2[4 * PN];
        uint32_t size = dtype_size(types[t]);
        for (int i = 0; i < 4 * PN; i++) {
            in[i] = (uint8_t)next();
        }
        uint32_t x = prog_load(&g, types[t], P, N, in), d = prog_psum(&g, types[t], N, P),
                 id = prog_sbuf(&g, types[t], P, P), d2 = prog_psum(&g, types[t], N, P);
        EMIT(&g, nc_transpose, ENG_VECTOR, V(d), V(x), EN(0));
        EMIT(&g, nc_matmul, ENG_TENSOR, V(d2), V(x), V(id), B(0), B(0), B(1), NONE, NONE, NONE,
             EN(0));
        prog_out(&g, d, o1);
        prog_out(&g, d2, o2);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (uint32_t p = 0; p < P; p++) {
            for (uint32_t i = 0; i < N; i++) {
                assert_memory_equal(o1 + (i * P + p) * size, in + (p * N + i) * size, size);
                assert_memory_equal(o2 + (i * P + p) * size, in + (p * N + i) * size, size);
            }
        }
        prog_fini(&g);
    }
}

static void stream_shuffle(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    int64_t m[32], z[32] = {0};
    for (int i = 0; i < 32; i++) {
        m[i] = i == 5 ? 255 : (i + 31) % 32;
    }
    uint32_t x = prog_load(&g, DT_float32, 64, 10, a), y = prog_load(&g, DT_float32, 64, 10, b);
    uint32_t one = prog_load(&g, DT_float32, 1, 10, c), w = prog_sbuf(&g, DT_float32, 32, 10);
    EMIT(&g, nc_stream_shuffle, ENG_VECTOR, V(y), V(x), prog_ints(&g, 32, m));
    EMIT(&g, nc_stream_shuffle, ENG_VECTOR, V(x), V(x), prog_ints(&g, 32, m));
    EMIT(&g, nc_stream_shuffle, ENG_VECTOR, V(w), V(one), prog_ints(&g, 32, z));
    prog_out(&g, y, out);
    prog_out(&g, x, out2);
    prog_out(&g, w, out + 2000);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < 64; p++) {
        int from = p / 32 * 32 + (p + 31) % 32;
        for (int i = 0; i < 10; i++) {
            assert_true(out[p * 10 + i] == (p % 32 == 5 ? b[p * 10 + i] : a[from * 10 + i]));
            assert_true(out2[p * 10 + i] == (p % 32 == 5 ? a[p * 10 + i] : a[from * 10 + i]));
            assert_true(p >= 32 || out[2000 + p * 10 + i] == c[i]);
        }
    }
    prog_fini(&g);
}

static void gathers(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static uint32_t idx[32 * 11];
    static uint16_t local[32 * 3];
    for (int i = 0; i < 32 * 11; i++) {
        idx[i] = next() % 40;
    }
    for (int i = 0; i < 32 * 3; i++) {
        local[i] = (uint16_t)(next() % 20 * 2);
    }
    uint32_t x = prog_load(&g, DT_float32, 32, 40, a), ix = prog_load(&g, DT_uint32, 32, 11, idx),
             z = prog_sbuf(&g, DT_float32, 32, 11);
    uint32_t lx = prog_load(&g, DT_uint16, 32, 3, local), w = prog_sbuf(&g, DT_float32, 32, 96);
    EMIT(&g, nc_n_gather, ENG_GPSIMD, V(z), V(x), V(ix));
    EMIT(&g, memset, ENG_VECTOR, V(w), F(-7), EN(0));
    EMIT(&g, local_gather, ENG_GPSIMD, V(w), V(x), V(lx), I(2), I(40));
    prog_out(&g, z, out);
    prog_out(&g, w, out2);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < 32; p++) {
        for (int i = 0; i < 11; i++) {
            assert_true(out[p * 11 + i] == a[p * 40 + (int)idx[p * 11 + i]]);
        }
        for (int i = 0; i < 48; i++) {
            int id = local[(p / 16 * 16 + i % 16) * 3 + i / 16];
            for (int e = 0; e < 2; e++) {
                assert_true(out2[p * 96 + 2 * i + e] == (i < 40 ? a[p * 40 + id + e] : -7));
            }
        }
    }
    prog_fini(&g);
}

static void eights(void **state)
{
    (void)state;
    prog g;
    prog_init(&g, 3);
    float data[] = {1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8}, vals[] = {3, 8, 8, 8, 8, 8, 8, 8};
    float more[] = {5, 9, -1, 9, 2, 7, 7, 0, 3, 8, 6};
    uint32_t at[8], at2[8];
    uint32_t x = prog_load(&g, DT_float32, 1, 11, data), v = prog_load(&g, DT_float32, 1, 8, vals),
             y = prog_load(&g, DT_float32, 1, 11, more);
    uint32_t i1 = prog_sbuf(&g, DT_uint32, 1, 8), i2 = prog_sbuf(&g, DT_uint32, 1, 8),
             r = prog_sbuf(&g, DT_float32, 1, 11), m = prog_sbuf(&g, DT_float32, 1, 8);
    EMIT(&g, nc_find_index8, ENG_VECTOR, V(i1), V(x), V(v));
    EMIT(&g, nc_match_replace8, ENG_VECTOR, V(r), V(x), V(v), F(-1), V(i2));
    EMIT(&g, max8, ENG_VECTOR, V(m), V(y));
    prog_out(&g, i1, at);
    prog_out(&g, i2, at2);
    prog_out(&g, r, out);
    prog_out(&g, m, out2);
    assert_int_equal(prog_run(&g), NKI_OK);
    static const uint32_t up[] = {2, 4, 5, 6, 7, 8, 9, 10}, down[] = {2, 10, 9, 8, 7, 6, 5, 4};
    static const float top[] = {9, 9, 8, 7, 7, 6, 5, 3},
                       rep[] = {1, 2, -1, 4, -1, -1, -1, -1, -1, -1, -1};
    assert_memory_equal(at, up, sizeof up);
    assert_memory_equal(at2, down, sizeof down);
    same(out2, top, 8);
    same(out, rep, 11);
    prog_fini(&g);
}

static void positions(void **state)
{
    (void)state;
    prog g;
    prog_init(&g, 3);
    int32_t src[8] = {0, 1, 1, 0, 0, 1, 0, 0}, seg[9] = {0, 1, 1, 2, 2, 2, 0, 3, 3}, nz[9], sb[18];
    uint32_t x = prog_load(&g, DT_int32, 1, 8, src), z = prog_sbuf(&g, DT_int32, 1, 9),
             s = prog_load(&g, DT_int32, 1, 9, seg), q = prog_sbuf(&g, DT_int32, 1, 18);
    EMIT(&g, nonzero_with_count, ENG_GPSIMD, V(z), V(x), I(16), I(-1));
    EMIT(&g, sequence_bounds, ENG_GPSIMD, V(q), V(s));
    prog_out(&g, z, nz);
    prog_out(&g, q, sb);
    assert_int_equal(prog_run(&g), NKI_OK);
    static const int32_t w1[] = {17, 18, 21, -1, -1, -1, -1, -1, 3};
    static const int32_t w2[] = {9, 1, 1, 3, 3, 3, 9, 7, 7, -1, 3, 3, 6, 6, 6, -1, 9, 9};
    assert_memory_equal(nz, w1, sizeof w1);
    assert_memory_equal(sb, w2, sizeof w2);
    prog_fini(&g);
}

static void topk(void **state)
{
    (void)state;
    enum { NK = 50, K = 7 };
    prog g;
    prog_init(&g, 3);
    static float v[32 * 4], got[32 * K];
    static uint32_t at[32 * K];
    for (int i = 0; i < 32 * 4; i++) {
        v[i] = (float)(i * 37 % 128);  // distinct and exact in bfloat16
    }
    uint32_t xf = prog_load(&g, DT_float32, 32, 4, v), x = prog_sbuf(&g, DT_bfloat16, 32, 4);
    uint32_t d = prog_sbuf(&g, DT_bfloat16, 32, K), df = prog_sbuf(&g, DT_float32, 32, K),
             i = prog_sbuf(&g, DT_uint32, 32, K);
    EMIT(&g, tensor_copy, ENG_VECTOR, V(x), V(xf), EN(0), NONE);
    EMIT(&g, topk, ENG_GPSIMD, V(d), V(i), V(x), I(NK));
    EMIT(&g, tensor_copy, ENG_VECTOR, V(df), V(d), EN(0), NONE);
    prog_out(&g, df, got);
    prog_out(&g, i, at);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < 32; p++) {
        for (int k = 0; k < K; k++) {
            uint32_t e = at[p * K + k];
            assert_true(e < NK &&
                        got[p * K + k] == v[(p / 16 * 16 + (int)(e % 16)) * 4 + (int)(e / 16)]);
            assert_true(k == 0 || got[p * K + k] > got[p * K + k - 1]);
        }
        int above = 0;  // exactly K - 1 elements exceed the smallest kept
        for (int e = 0; e < NK; e++) {
            above += v[(p / 16 * 16 + e % 16) * 4 + e / 16] > got[p * K];
        }
        assert_int_equal(above, K - 1);
    }
    prog_fini(&g);
}

static void random_numbers(void **state)
{
    (void)state;
    for (int gen = 2; gen <= 4; gen++) {
        prog g;
        setup(&g, gen);
        static uint32_t r1[PN], r2[PN], r3[PN];
        uint32_t seed = 42;
        uint32_t s = prog_load(&g, DT_uint32, 1, 1, &seed), z1 = prog_sbuf(&g, DT_uint32, P, N),
                 z2 = prog_sbuf(&g, DT_uint32, P, N), z3 = prog_sbuf(&g, DT_uint32, P, N);
        uint32_t ones = prog_sbuf(&g, DT_float32, 128, 64), dr = prog_sbuf(&g, DT_float32, 128, 64),
                 all = prog_sbuf(&g, DT_float32, 4, 64), none = prog_sbuf(&g, DT_float32, 4, 64);
        EMIT(&g, set_rng_seed, ENG_VECTOR, V(s));
        EMIT(&g, rng, ENG_VECTOR, V(z1), EN(ISAE_engine_vector));
        EMIT(&g, rng, ENG_VECTOR, V(z2), EN(ISAE_engine_vector));
        EMIT(&g, set_rng_seed, ENG_VECTOR, V(s));
        EMIT(&g, rng, ENG_VECTOR, V(z3), EN(ISAE_engine_vector));
        EMIT(&g, memset, ENG_VECTOR, V(ones), F(1), EN(0));
        EMIT(&g, dropout, ENG_VECTOR, V(dr), V(ones), F(0.25f));
        uint32_t o4 = prog_ap(&g, ones, 0, 0, 2, (const int64_t[][2]){{1, 4}, {1, 64}});
        EMIT(&g, dropout, ENG_VECTOR, V(all), V(o4), F(1));
        EMIT(&g, dropout, ENG_VECTOR, V(none), V(o4), F(0));
        prog_out(&g, z1, r1);
        prog_out(&g, z2, r2);
        prog_out(&g, z3, r3);
        prog_out(&g, dr, out);
        prog_out(&g, all, out2);
        prog_out(&g, none, out2 + 256);
        uint32_t u = IR_NONE;
        if (gen == 4) {
            u = prog_sbuf(&g, DT_float32, 100, 80);
            EMIT(&g, rand2, ENG_VECTOR, V(u), F(-1), F(3));
            prog_out(&g, u, a);
        }
        assert_int_equal(prog_run(&g), NKI_OK);
        assert_memory_equal(r1, r3, sizeof r1);
        assert_memory_not_equal(r1, r2, sizeof r1);
        double bits = 0, kept = 0;
        for (int i = 0; i < PN; i++) {
            bits += __builtin_popcount(r1[i]);
        }
        assert_true(fabs(bits / PN - 16) < 0.5);
        for (int i = 0; i < 8192; i++) {
            kept += (double)out[i];
        }
        assert_true(fabs(kept / 8192 - 0.75) < 0.03);
        for (int i = 0; i < 256; i++) {
            assert_true(out2[i] == 0 && out2[256 + i] == 1);
        }
        if (u) {
            double sum = 0;
            for (int i = 0; i < 8000; i++) {
                assert_true(a[i] >= -1 && a[i] <= 3);
                sum += (double)a[i];
            }
            assert_true(fabs(sum / 8000 - 1) < 0.06);
        }
        prog_fini(&g);
    }
}

static void copies(void **state)
{
    (void)state;
    static const dtype types[] = {DT_bfloat16, DT_float16, DT_int32, DT_int8, DT_float32};
    for (int t = 0; t < 5; t++) {
        prog g;
        setup(&g, 3);
        uint32_t x = prog_load(&g, DT_float32, P, N, a), y = prog_sbuf(&g, types[t], P, N),
                 z = prog_psum(&g, DT_float32, P, N);
        EMIT(&g, tensor_copy, ENG_VECTOR, V(y), V(x), EN(0), NONE);
        EMIT(&g, tensor_copy, ENG_VECTOR, V(z), V(y), EN(0), NONE);
        prog_out(&g, z, out);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (int i = 0; i < PN; i++) {
            float tol = t == 0 ? 0.004f : t == 1 ? 0.0005f : 0;
            if (t == 2 || t == 3) {
                assert_true(out[i] == nearbyintf(a[i]));
            } else {
                assert_true(fabsf(out[i] - a[i]) <= tol * fabsf(a[i]));
            }
        }
        prog_fini(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_tensor),
        cmocka_unit_test(strided),
        cmocka_unit_test(overlap),
        cmocka_unit_test(tensor_scalar),
        cmocka_unit_test(bit_operators),
        cmocka_unit_test(integers_on_gpsimd),
        cmocka_unit_test(activations),
        cmocka_unit_test(activate2_exponential),
        cmocka_unit_test(tensor_scalar_reduce),
        cmocka_unit_test(selects),
        cmocka_unit_test(fills),
        cmocka_unit_test(iota_affine),
        cmocka_unit_test(scans),
        cmocka_unit_test(cumulative),
        cmocka_unit_test(reduces),
        cmocka_unit_test(partition_reduce),
        cmocka_unit_test(batch_norm),
        cmocka_unit_test(matmul),
        cmocka_unit_test(double_row),
        cmocka_unit_test(transposes),
        cmocka_unit_test(stream_shuffle),
        cmocka_unit_test(gathers),
        cmocka_unit_test(eights),
        cmocka_unit_test(positions),
        cmocka_unit_test(topk),
        cmocka_unit_test(random_numbers),
        cmocka_unit_test(copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
