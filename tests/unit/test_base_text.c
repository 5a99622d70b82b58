#include "base/source.h"
#include "base/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static jmp_buf oom;

static void check_double(double v, const char *want)
{
    char buf[32];
    assert_int_equal(text_double(buf, v), strlen(want));
    assert_string_equal(buf, want);
}

// The expectations are what Python's repr() prints.
static void double__looks_as_in_python(void **state)
{
    (void)state;
    check_double(0.0, "0.0");
    check_double(-0.0, "-0.0");
    check_double(1.0, "1.0");
    check_double(0.1, "0.1");
    check_double(1e-4, "0.0001");
    check_double(1e-5, "1e-05");
    check_double(123456.789, "123456.789");
    check_double(1e15, "1000000000000000.0");
    check_double(1e16, "1e+16");
    check_double(1.5e300, "1.5e+300");
    check_double(5e-324, "5e-324");
    check_double(1.7976931348623157e308, "1.7976931348623157e+308");
    check_double(0.1 + 0.2, "0.30000000000000004");
    check_double(-2.5, "-2.5");
    check_double((double)INFINITY, "inf");
    check_double((double)-INFINITY, "-inf");
    check_double((double)NAN, "nan");
}

static uint64_t next_bits(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s ^ *s >> 29;
}

// Against the C library: 17 digits always read back, so no shorter form may differ from v, and
// none may be longer than 17 digits.
static void double__reads_back(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next_bits(&seed);
        double v, back;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) {
            continue;
        }
        char ours[32], theirs[40];
        text_double(ours, v);
        snprintf(theirs, sizeof theirs, "%.17g", v);
        assert_true(strtod(ours, NULL) == strtod(theirs, NULL));
        assert_true(text_to_double(ours, strlen(ours), &back));
        assert_memory_equal(&back, &v, sizeof v);
        size_t digits = strspn(ours + (*ours == '-'), "0123456789.");
        assert_true(digits <= 23);
    }
}

static void float__reads_back_and_is_short(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < 100000; i++) {
        uint32_t bits = (uint32_t)(next_bits(&seed) >> 16);
        float v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) {
            continue;
        }
        char ours[32];
        text_float(ours, v);
        assert_true(strtof(ours, NULL) == v);
    }
    char buf[32];
    text_float(buf, 0.1f);
    assert_string_equal(buf, "0.1");
    text_float(buf, 16777216.0f);
    assert_string_equal(buf, "16777216.0");
}

static void to_double__takes_all_or_nothing(void **state)
{
    (void)state;
    double v;
    assert_true(text_to_double("1.5e3", 5, &v));
    assert_true(v == 1500.0);
    assert_true(text_to_double("12", 1, &v));
    assert_true(v == 1.0);
    assert_false(text_to_double("", 0, &v));
    assert_false(text_to_double("1.5x", 4, &v));
    char digits[400];
    memset(digits, '1', sizeof digits);
    assert_true(text_to_double(digits, sizeof digits, &v));
    assert_true(isinf(v));
}

static void add__grows_and_stays_terminated(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, 0, &oom);
    textbuf t;
    text_init(&t, &a);
    for (int i = 0; i < 3000; i++) {
        text_char(&t, (char)('a' + i % 26));
        assert_int_equal(t.at[t.len], 0);
    }
    text_printf(&t, "%0700d", 1);
    text_add(&t, "x\0y", 3);
    assert_int_equal(t.len, 3703);
    assert_int_equal(t.at[27], 'b');
    assert_int_equal(t.at[3699], '1');
    assert_int_equal(t.at[3702], 'y');
    arena_fini(&a);
}

static void locate__counts_every_kind_of_line_end(void **state)
{
    (void)state;
    const source s = {"x", "a\nbc\r\nd\re", 9};
    linecol p = source_locate(&s, 3);
    assert_int_equal(p.line, 2);
    assert_int_equal(p.col, 2);
    assert_int_equal(p.line_hi - p.line_lo, 2);
    p = source_locate(&s, 6);
    assert_int_equal(p.line, 3);
    p = source_locate(&s, 8);
    assert_int_equal(p.line, 4);
    assert_int_equal(p.col, 1);
    p = source_locate(&s, 9);
    assert_int_equal(p.line, 4);
    assert_int_equal(p.col, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double__looks_as_in_python),
        cmocka_unit_test(double__reads_back),
        cmocka_unit_test(float__reads_back_and_is_short),
        cmocka_unit_test(to_double__takes_all_or_nothing),
        cmocka_unit_test(add__grows_and_stays_terminated),
        cmocka_unit_test(locate__counts_every_kind_of_line_end),
    };
    return cmocka_run_group_tests_name("base.text", tests, NULL, NULL);
}
