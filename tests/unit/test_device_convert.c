// Conversions from every type to every type, at every CPU level, against the formats' definitions.
//
//   test_device_convert        a fifth of the 16-bit patterns, all 8-bit ones, edges of fp32
//   test_device_convert all    all 16-bit patterns, 2^24 of the 32-bit ones

#include "tests/unit/numerics_reference.h"

#include "device/device.h"
#include "device/kern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BATCH = 1 << 16 };

static const char *const levels[] = {"portable", "avx2", "avx512"};
static bool whole;
static uint32_t rng = 12345;

// What conversions of n source patterns give, packed as the types lie in memory.
static unsigned char packed[BATCH * 4], got[BATCH * 4];
static double want[BATCH];

static void check_batch(const ref_format *s, const ref_format *d, const uint32_t *u, size_t n)
{
    size_t ss = (size_t)s->bits / 8, ds = (size_t)d->bits / 8;
    for (size_t i = 0; i < n; i++) {
        memcpy(packed + i * ss, &u[i], ss);
        want[i] = ref_stored(d, (double)(float)ref_value(s, u[i]));
    }
    for (int l = 0; l < 3; l++) {
        if (!kern_force(levels[l])) {
            continue;
        }
        device_convert(got, d->d, (ptrdiff_t)ds, packed, s->d, (ptrdiff_t)ss, n);
        for (size_t i = 0; i < n; i++) {
            uint32_t r = ref_load(d, got + i * ds);
            bool right = s->d == d->d ? r == ref_load(s, packed + i * ss)
                         : isnan(want[i]) ? isnan(ref_value(d, r))
                                          : r == ref_pattern(d, want[i]);
            if (!right) {
                fail_msg("%s: %s 0x%x (%a) to %s: 0x%x, want %a", levels[l], dtype_name(s->d), u[i],
                         ref_value(s, u[i]), dtype_name(d->d), r, want[i]);
            }
        }
    }
    kern_force(NULL);
}

static uint32_t batch[BATCH];
static size_t batched;

static void flush_batch(const ref_format *s, const ref_format *d)
{
    size_t n = batched;
    batched = 0;
    check_batch(s, d, batch, n);
}

static void probe(const ref_format *s, const ref_format *d, uint32_t u)
{
    batch[batched++] = u;
    if (batched == BATCH) {
        flush_batch(s, d);
    }
}

static void narrow_sources(void **state)
{
    (void)state;
    for (int i = 0; i < REF_FORMATS; i++) {
        const ref_format *s = &ref_formats[i];
        if (s->bits == 32) {
            continue;
        }
        uint32_t step = s->bits == 16 && !whole ? 5 : 1;
        for (int j = 0; j < REF_FORMATS; j++) {
            for (uint32_t u = 0; u < 1u << s->bits; u += step) {
                probe(s, &ref_formats[j], u);
            }
            flush_batch(s, &ref_formats[j]);
        }
    }
}

// x, its neighbours and their negatives.
static void probe_around(const ref_format *d, double x)
{
    float f = (float)x;
    float near[] = {f, nextafterf(f, INFINITY), nextafterf(f, -INFINITY)};
    for (int i = 0; i < 3; i++) {
        probe(&ref_formats[0], d, ref_bits(near[i]));
        probe(&ref_formats[0], d, ref_bits(-near[i]));
    }
}

// Each value of the type, the point halfway to the next, and what lies beside them.
static void edges_of_fp32(void **state)
{
    (void)state;
    static const uint32_t specials[] = {0,          1,          0x7fffff,   0x800000,  0x7f7fffff,
                                        0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff};
    for (int j = 0; j < REF_FORMATS; j++) {
        const ref_format *d = &ref_formats[j];
        for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
            probe(&ref_formats[0], d, specials[i]);
            probe(&ref_formats[0], d, specials[i] | 0x80000000u);
        }
        uint32_t step = d->bits == 16 && !whole ? 5 : 1;
        for (uint32_t u = 0; d->bits < 32 && u < 1u << d->bits; u += step) {
            double a = ref_value(d, u), b = ref_value(d, (u + 1) & ((1u << d->bits) - 1));
            if (isfinite(a)) {
                double below = u ? ref_value(d, u - 1) : 0;
                probe_around(d, a);
                probe_around(d, isfinite(b) ? (a + b) / 2 : a + (a - below) / 2);
            }
        }
        for (int e = -2; e < 34; e++) {  // integers: powers of two, halves beside them
            for (int k = -4; k <= 4; k++) {
                probe_around(d, ldexp(1, e) + k * 0.5);
            }
        }
        flush_batch(&ref_formats[0], d);
    }
}

static void wide_sources(void **state)
{
    (void)state;
    for (int i = 0; i < REF_FORMATS; i++) {
        const ref_format *s = &ref_formats[i];
        for (int j = 0; s->bits == 32 && j < REF_FORMATS; j++) {
            const ref_format *d = &ref_formats[j];
            for (uint32_t n = 0, u = 0; n < (whole ? 1u << 24 : 1u << 14); n++) {
                probe(s, d, whole ? u : n & 1 ? ref_next(&rng) : ref_next(&rng) >> (n / 2 & 31));
                u += 256 + (n & 1);
            }
            for (uint32_t k = 0; k < 32 * 9; k++) {
                probe(s, d, (1u << k % 32) + (k / 32) - 4);
            }
            flush_batch(s, d);
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
        assert_int_equal(out[i], ref_pattern(&ref_formats[2], ref_stored(&ref_formats[2], (double)in[2 * i])));
    }
    device_convert(back + 999, DT_bfloat16, -2, out, DT_bfloat16, 2, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(back[999 - i], out[i]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_sources), cmocka_unit_test(edges_of_fp32),
        cmocka_unit_test(wide_sources),   cmocka_unit_test(through_fp32),
        cmocka_unit_test(strides),
    };
    whole = argc > 1 && strcmp(argv[1], "all") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
