// Conversions against tables made here from the formats' definitions: the value of each pattern is
// ldexp of its fields, and the right result is found by searching all values of the type.

#include "device/device.h"
#include "device/kern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct format {
    dtype d;
    int eb, mb;
    bool fn;
} format;

static const format formats[] = {
    {DT_bfloat16, 8, 7, false},    {DT_float16, 5, 10, false},     {DT_float8_e5m2, 5, 2, false},
    {DT_float8_e4m3, 4, 3, false}, {DT_float8_e4m3fn, 4, 3, true},
};
enum { NFORMATS = sizeof formats / sizeof *formats };

static double value_of(const format *f, uint32_t u)
{
    int bias = (1 << (f->eb - 1)) - 1;
    int e = (int)(u >> f->mb) & ((1 << f->eb) - 1);
    int m = (int)u & ((1 << f->mb) - 1);
    double sign = u >> (f->eb + f->mb) & 1 ? -1.0 : 1.0;
    if (e == (1 << f->eb) - 1) {
        if (f->fn) {
            if (m == (1 << f->mb) - 1) {
                return (double)NAN;
            }
        } else {
            return m ? (double)NAN : sign * (double)INFINITY;
        }
    }
    return sign * (e ? ldexp(1.0 + ldexp(m, -f->mb), e - bias) : ldexp(m, 1 - bias - f->mb));
}

static const char *const levels[] = {"portable", "avx2", "avx512"};

static void decode(void **state)
{
    (void)state;
    for (int l = 0; l < 3; l++) {
        if (!kern_force(levels[l])) {
            continue;
        }
        for (int k = 0; k < NFORMATS; k++) {
            const format *f = &formats[k];
            uint32_t n = 1u << (1 + f->eb + f->mb);
            for (uint32_t u = 0; u < n; u++) {
                float got;
                uint16_t in = (uint16_t)u;
                device_convert(&got, DT_float32, 4, &in, f->d, 2, 1);
                double want = value_of(f, u);
                if (isnan(want) ? !isnan(got)
                                : (double)got != want || !signbit(got) != !signbit(want)) {
                    fail_msg("%s 0x%x: %a, want %a", dtype_name(f->d), u, (double)got, want);
                }
            }
        }
    }
    kern_force(NULL);
}

// Nearest value of the format to x, ties to the pattern that ends in 0.
static uint32_t encode_ref(const format *f, float x)
{
    uint32_t sign = signbit(x) ? 1u << (f->eb + f->mb) : 0;
    double a = fabs((double)x);
    uint32_t top = ((1u << f->eb) - 1) << f->mb;                // infinity, or fn's last binade
    uint32_t last = f->fn ? top + (1u << f->mb) - 2 : top - 1;  // largest finite
    // The next value that an unbounded exponent would have.
    double over = value_of(f, last) + (value_of(f, last) - value_of(f, last - 1));
    uint32_t lo = 0, hi = last;
    while (lo < hi) {  // largest pattern with value <= a
        uint32_t mid = (lo + hi + 1) / 2;
        if (value_of(f, mid) <= a) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    double below = value_of(f, lo), above = lo == last ? over : value_of(f, lo + 1);
    double d0 = a - below, d1 = above - a;
    uint32_t r = d0 < d1 || (d0 == d1 && lo % 2 == 0) ? lo : lo + 1;
    return sign | r;  // last + 1 is infinity, or fn's NaN
}

static uint32_t rng = 12345;
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

static void check_encode(const format *f, float x)
{
    uint16_t got = 0;
    device_convert(&got, f->d, 2, &x, DT_float32, 4, 1);
    if (isnan(x)) {
        if (!isnan(value_of(f, got))) {
            fail_msg("%s of NaN: 0x%x", dtype_name(f->d), got);
        }
        return;
    }
    if (isinf(x)) {
        uint32_t top = ((1u << f->eb) - 1) << f->mb;
        uint32_t want =
            (x < 0 ? 1u << (f->eb + f->mb) : 0) | (f->fn ? top + (1u << f->mb) - 1 : top);
        assert_int_equal(got, want);
        return;
    }
    uint32_t want = encode_ref(f, x);
    if (got != want) {
        fail_msg("%s of %a: 0x%x, want 0x%x", dtype_name(f->d), (double)x, got, want);
    }
}

static void encode(void **state)
{
    (void)state;
    for (int l = 0; l < 3; l++) {
        if (!kern_force(levels[l])) {
            continue;
        }
        for (int k = 0; k < NFORMATS; k++) {
            const format *f = &formats[k];
            uint32_t n = 1u << (f->eb + f->mb);
            for (uint32_t u = 0; u + 1 < n;
                 u++) {  // each value, each midpoint and their neighbours
                double a = value_of(f, u), b = value_of(f, u + 1);
                if (!isfinite(a)) {
                    continue;
                }
                float mid =
                    isfinite(b) ? (float)((a + b) / 2) : (float)(a + (a - value_of(f, u - 1)) / 2);
                float probe[] = {(float)a, mid, nextafterf(mid, INFINITY), nextafterf(mid, 0.0f)};
                for (int i = 0; i < 4; i++) {
                    check_encode(f, probe[i]);
                    check_encode(f, -probe[i]);
                }
            }
            for (int i = 0; i < 200000; i++) {
                check_encode(f, bits_float(next()));
            }
            check_encode(f, INFINITY);
            check_encode(f, -INFINITY);
            check_encode(f, NAN);
            check_encode(f, 3.4028235e38f);
        }
    }
    kern_force(NULL);
}

static void tf32(void **state)
{
    (void)state;
    for (int i = 0; i < 300000; i++) {
        float x = bits_float(next()), got;
        device_convert(&got, DT_tfloat32, 4, &x, DT_float32, 4, 1);
        if (isnan(x)) {
            assert_true(isnan(got));
            continue;
        }
        // Ten mantissa bits: the nearest multiple of 2^(exponent - 10).
        int e;
        frexp((double)x, &e);
        e = e - 1 < -126 ? -126 : e - 1;
        double unit = ldexp(1.0, e - 10), q = (double)x / unit;
        double r = nearbyint(q) * unit;
        if (isinf(x)) {
            r = (double)x;
        }
        if ((double)got != (double)(float)r) {
            fail_msg("tf32 of %a: %a, want %a", (double)x, (double)got, r);
        }
    }
}

static void e8m0(void **state)
{
    (void)state;
    for (unsigned u = 0; u < 256; u++) {
        uint8_t in = (uint8_t)u, back;
        float v;
        device_convert(&v, DT_float32, 4, &in, DT_float8_e8m0fnu, 1, 1);
        if (u == 255) {
            assert_true(isnan(v));
        } else {
            assert_true((double)v == ldexp(1.0, (int)u - 127));
        }
        device_convert(&back, DT_float8_e8m0fnu, 1, &v, DT_float32, 4, 1);
        assert_int_equal(back, u);
    }
    static const struct {
        float x;
        unsigned want;
    } cases[] = {{1.4999f, 127}, {1.5f, 128}, {3.0f, 128},  {2.99f, 128},
                 {6.0f, 130},    {0.0f, 0},   {-1.0f, 255}, {INFINITY, 255}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t got;
        device_convert(&got, DT_float8_e8m0fnu, 1, &cases[i].x, DT_float32, 4, 1);
        assert_int_equal(got, cases[i].want);
    }
}

static const struct {
    dtype d;
    int64_t lo, hi;
} ints[] = {
    {DT_int8, INT8_MIN, INT8_MAX},    {DT_uint8, 0, UINT8_MAX},
    {DT_int16, INT16_MIN, INT16_MAX}, {DT_uint16, 0, UINT16_MAX},
    {DT_int32, INT32_MIN, INT32_MAX}, {DT_uint32, 0, UINT32_MAX},
};

static int64_t int_value(dtype d, const void *p)
{
    switch (d) {
    case DT_int8: return *(const int8_t *)p;
    case DT_uint8: return *(const uint8_t *)p;
    case DT_int16: return *(const int16_t *)p;
    case DT_uint16: return *(const uint16_t *)p;
    case DT_int32: return *(const int32_t *)p;
    default: return *(const uint32_t *)p;
    }
}

static void float_to_int(void **state)
{
    (void)state;
    for (int l = 0; l < 3; l++) {
        if (!kern_force(levels[l])) {
            continue;
        }
        for (size_t k = 0; k < sizeof ints / sizeof *ints; k++) {
            for (int i = 0; i < 300000; i++) {
                uint32_t u = next();
                // Half of them near the range that matters, with halves.
                float x = i % 2 ? bits_float(u) : (float)((int32_t)u >> (u & 31)) * 0.5f;
                uint32_t out = 0;
                device_convert(&out, ints[k].d, 4, &x, DT_float32, 4, 1);
                double r = isnan(x) ? 0.0 : nearbyint((double)x);
                r = r < (double)ints[k].lo ? (double)ints[k].lo : r;
                r = r > (double)ints[k].hi ? (double)ints[k].hi : r;
                if (int_value(ints[k].d, &out) != (int64_t)r) {
                    fail_msg("%s of %a: %lld, want %lld", dtype_name(ints[k].d), (double)x,
                             (long long)int_value(ints[k].d, &out), (long long)r);
                }
            }
        }
    }
    kern_force(NULL);
}

static void int_to_float(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof ints / sizeof *ints; k++) {
        for (int i = 0; i < 100000; i++) {
            uint32_t u = next() >> (next() & 31);
            float got;
            device_convert(&got, DT_float32, 4, &u, ints[k].d, 4, 1);
            double exact = (double)int_value(ints[k].d, &u);
            // The nearest float of an integer that a double holds: by candidates.
            float c = (float)exact, lo = nextafterf(c, -INFINITY), hi = nextafterf(c, INFINITY);
            assert_true(fabs((double)got - exact) <= fabs((double)lo - exact));
            assert_true(fabs((double)got - exact) <= fabs((double)hi - exact));
        }
    }
}

static void through_fp32(void **state)
{
    (void)state;
    int32_t big = 16777217, neg = -5;
    uint32_t u;
    device_convert(&u, DT_uint32, 4, &big, DT_int32, 4, 1);
    assert_int_equal(u, 16777216);  // int32 to uint32 loses what fp32 loses
    device_convert(&u, DT_uint32, 4, &neg, DT_int32, 4, 1);
    assert_int_equal(u, 0);
    device_convert(&u, DT_int32, 4, &big, DT_int32, 4, 1);
    assert_int_equal(u, 16777217);  // equal types keep bits
    float f = 0.25f;
    uint8_t b;
    device_convert(&b, DT_bool_, 1, &f, DT_float32, 4, 1);
    assert_int_equal(b, 1);
    f = -0.0f;
    device_convert(&b, DT_bool_, 1, &f, DT_float32, 4, 1);
    assert_int_equal(b, 0);
}

static void strides(void **state)
{
    (void)state;
    float in[2000];
    uint16_t out[1000], back[1000];
    for (int i = 0; i < 2000; i++) {
        in[i] = (float)i * 0.37f;
    }
    device_convert(out, DT_bfloat16, 2, in, DT_float32, 8, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(out[i], encode_ref(&formats[0], in[2 * i]));
    }
    device_convert(back + 999, DT_bfloat16, -2, out, DT_bfloat16, 2, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(back[999 - i], out[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode),       cmocka_unit_test(encode),
        cmocka_unit_test(tf32),         cmocka_unit_test(e8m0),
        cmocka_unit_test(float_to_int), cmocka_unit_test(int_to_float),
        cmocka_unit_test(through_fp32), cmocka_unit_test(strides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
