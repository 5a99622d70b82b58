// Programs whose low-precision tensors hold fp32 (--precise-fp=off), against chains of fp32.

#include "tests/unit/device_program.h"
#include "tests/unit/numerics_reference.h"

enum { P = 9, N = 24, PN = P * N };
static const dtype low[] = {DT_tfloat32,    DT_bfloat16,     DT_float16,
                            DT_float8_e5m2, DT_float8_e4m3, DT_float8_e4m3fn};

static uint32_t rng = 5;
static float a[PN], b[PN], got[PN];

static void fill(float *v)
{
    for (int i = 0; i < PN; i++) {
        v[i] = (float)(int32_t)ref_next(&rng) * 0x1p-30f;
    }
}

static const ref_format *format(dtype d)
{
    const ref_format *f = ref_formats;
    while (f->d != d) {
        f++;
    }
    return f;
}

// Three tiles of one type, one of them of other views, and one of every other type between them:
// nothing is rounded, and nothing lies over anything else.
static void nothing_is_rounded(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof low / sizeof *low; k++) {
        prog g;
        prog_init(&g, 4);
        g.p->fp32_store = true;
        fill(a);
        fill(b);
        uint32_t x = prog_load(&g, DT_float32, P, N, a), y = prog_load(&g, DT_float32, P, N, b);
        uint32_t t = prog_sbuf(&g, low[k], P, N), between = prog_sbuf(&g, low[(k + 1) % 6], P, N);
        uint32_t bytes = prog_sbuf(&g, DT_uint8, P, N), u = prog_sbuf(&g, low[k], P, N);
        uint32_t q = prog_psum(&g, low[k], P, N), o = prog_sbuf(&g, DT_float32, P, N);
        uint32_t back = prog_ap(&g, u, N - 1, 0, 2, (const int64_t[][2]){{1, P}, {-1, N}});
        uint32_t hbm = prog_view(&g, prog_tensor(&g, BUF_HBM, low[k], 2, (uint32_t[]){P, N}));
        EMIT(&g, memset, ENG_VECTOR, V(bytes), I(255), EN(0));
        EMIT(&g, memset, ENG_VECTOR, V(between), F(7), EN(0));
        EMIT(&g, tensor_tensor, ENG_VECTOR, V(t), V(x), V(y), OP(multiply), EN(0));
        EMIT(&g, tensor_scalar, ENG_VECTOR, V(back), V(t), OP(add), F(0.3f), B(0), NONE, NONE, B(0),
             EN(0));
        prog_copy(&g, hbm, u);
        EMIT(&g, memset, ENG_VECTOR, V(u), F(0), EN(0));
        prog_copy(&g, u, hbm);
        EMIT(&g, tensor_copy, ENG_VECTOR, V(q), V(u), EN(0), NONE);
        EMIT(&g, tensor_tensor, ENG_VECTOR, V(o), V(q), V(between), OP(multiply), EN(0));
        prog_out(&g, o, got);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (int i = 0; i < PN; i++) {
            int from = i / N * N + N - 1 - i % N;
            float want = a[from] * b[from] + 0.3f;
            assert_true(got[i] == want * 7);
        }
        prog_fini(&g);
    }
}

// Arguments are converted on the way in; a result and a written argument once, on the way out.
static void host_memory_keeps_its_types(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof low / sizeof *low; k++) {
        const ref_format *f = format(low[k]);
        size_t size = (size_t)f->bits / 8;
        static unsigned char in[PN * 4], written[PN * 4], result[PN * 4];
        static double v[PN];
        fill(a);
        for (int i = 0; i < PN; i++) {
            v[i] = ref_stored(f, (double)a[i]);
            uint32_t u = ref_pattern(f, v[i]);
            memcpy(in + (size_t)i * size, &u, size);
        }
        prog g;
        prog_init(&g, 3);
        g.p->fp32_store = true;
        uint32_t x = prog_load(&g, low[k], P, N, in), t = prog_sbuf(&g, low[k], P, N);
        uint32_t w = prog_param(&g, low[k], P, N, written);
        EMIT(&g, tensor_scalar, ENG_VECTOR, V(t), V(x), OP(multiply), F(1.01f), B(0), OP(multiply),
             F(1.01f), B(0), EN(0));
        EMIT(&g, tensor_scalar, ENG_VECTOR, V(t), V(t), OP(multiply), F(1.01f), B(0), NONE, NONE,
             B(0), EN(0));
        prog_copy(&g, w, t);
        prog_out(&g, t, result);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (int i = 0; i < PN; i++) {
            float r = (float)v[i] * 1.01f;
            r = r * 1.01f;
            r = r * 1.01f;  // one rounding to the type, not three
            uint32_t want = ref_pattern(f, ref_stored(f, (double)r));
            assert_int_equal(ref_load(f, result + (size_t)i * size), want);
            assert_int_equal(ref_load(f, written + (size_t)i * size), want);
        }
        prog_fini(&g);
    }
}

static void bit_casts_do_not_bind(void **state)
{
    (void)state;
    prog g;
    prog_init(&g, 3);
    g.p->fp32_store = true;
    uint32_t t = prog_sbuf(&g, DT_bfloat16, P, N), o = prog_sbuf(&g, DT_uint16, P, N);
    ir_view v = ir_view_at(g.p, t);
    v.dtype = DT_uint16;
    uint32_t cast = ir_view_add(g.p, v);
    EMIT(&g, tensor_copy, ENG_VECTOR, V(o), V(cast), EN(0), NONE);
    assert_int_equal(prog_run(&g), NKI_ERR_FORMAT);
    prog_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_rounded),
                                       cmocka_unit_test(host_memory_keeps_its_types),
                                       cmocka_unit_test(bit_casts_do_not_bind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
