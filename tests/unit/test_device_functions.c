// Error of the activation functions over every exponent of fp32, against long double.
//
//   test_device_functions          some samples: none is worse than docs/numerics.md's table says
//   test_device_functions all      2^12 an exponent and sign: the page says what is measured
//   test_device_functions write    the same, and writes the table
//
// Run in tests/.

#include "tests/unit/numerics_reference.h"

#include "device/kern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BATCH = 1 << 12, PAGE_MAX = 1 << 18 };
#define TABLE_BEGIN "<!-- functions: written by test_device_functions -->\n"
#define TABLE_END   "<!-- end of functions -->\n"

static const char page_path[] = "../docs/numerics.md";
static bool whole, writes;
static char page[PAGE_MAX];

typedef struct worst {
    double ulp, absolute;
    float ulp_at, absolute_at;
} worst;

static void measure(const ref_function *r, worst *w, const float *in, int n)
{
    static float out[BATCH];
    kern_get()->un[r->op]((rows){out, 0}, (crows){in, 0}, 1, (size_t)n);
    for (int i = 0; i < n; i++) {
        long double want = r->f((long double)in[i]);
        if (r->zero != 0 && fabsf(in[i] - r->zero) < 1.0f / 1024) {
            double e = fabs((double)((long double)out[i] - want));
            if (!(e <= w->absolute)) {
                w->absolute = e;
                w->absolute_at = in[i];
            }
            continue;
        }
        double e = ref_ulp(out[i], want);
        if (e > w->ulp) {
            w->ulp = e;
            w->ulp_at = in[i];
        }
    }
}

// Each exponent and sign: its ends, and mantissas drawn with a fixed seed. Then where the function
// does something, and the floats around its zero.
static worst measured(const ref_function *r)
{
    static float in[BATCH];
    worst w = {0, 0, 0, 0};
    uint32_t seed = 2463534242u;
    int each = whole ? 1 << 12 : 48;
    for (uint32_t top = 0; top < 512; top++) {
        for (int i = 0; i < each; i++) {
            uint32_t m = i == 0 ? 0 : i == 1 ? 1 : i == 2 ? 0x7fffff : ref_next(&seed) & 0x7fffff;
            in[i] = ref_float(top << 23 | m);
        }
        measure(r, &w, in, each);
    }
    for (int round = 0; round < (whole ? 64 : 3); round++) {
        for (int i = 0; i < BATCH; i++) {
            in[i] = r->lo + (r->hi - r->lo) * ((float)(ref_next(&seed) >> 8) * 0x1p-24f);
        }
        measure(r, &w, in, BATCH);
    }
    for (int i = 0; i < BATCH && r->zero != 0; i++) {
        in[i] = ref_float(ref_bits(r->zero) + (uint32_t)i - BATCH / 2);
    }
    if (r->zero != 0) {
        measure(r, &w, in, BATCH);
    }
    return w;
}

// Two decimals, rounded up.
static double upward(double ulp)
{
    return ceil(ulp * 100 - 1e-9) / 100;
}

// The error near the zero: one digit, rounded up.
static double one_digit(double e)
{
    double unit = pow(10, floor(log10(e)));
    return ceil(e / unit - 1e-9) * unit;
}

static int row_text(const ref_function *r, const worst *w, char *to, size_t size)
{
    const char *name = op_table[r->op].name;
    if (w->ulp == 0) {
        return snprintf(to, size, "| %s | exact | | |\n", name);
    }
    int n = snprintf(to, size, "| %s | %.2f | %.9g | ", name, upward(w->ulp), (double)w->ulp_at);
    return n + (r->zero != 0 ? snprintf(to + n, size - (size_t)n, "%.0e near %.6g |\n",
                                        one_digit(w->absolute), (double)r->zero)
                             : snprintf(to + n, size - (size_t)n, "|\n"));
}

// What the page says: ulp and error near the zero. false: no row.
static bool documented(op_id op, double *ulp, double *absolute)
{
    char key[64];
    int n = snprintf(key, sizeof key, "\n| %s | ", op_table[op].name);
    const char *at = strstr(page, TABLE_BEGIN);
    at = at ? strstr(at, key) : NULL;
    if (!at) {
        return false;
    }
    at += n;
    *ulp = strncmp(at, "exact", 5) == 0 ? 0 : atof(at);
    for (int column = 0; column < 2 && at; column++) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    *absolute = at ? atof(at) : 0;
    return true;
}

static void errors_are_those_of_the_page(void **state)
{
    (void)state;
    for (int i = 0; i < REF_FUNCTIONS && !writes; i++) {
        const ref_function *r = &ref_functions[i];
        const char *name = op_table[r->op].name;
        double ulp = 0, absolute = 0;
        worst w = measured(r);
        if (!documented(r->op, &ulp, &absolute)) {
            fail_msg("%s: no row in %s", name, page_path);
        }
        if (upward(w.ulp) > ulp || w.absolute > absolute * 1.0001) {
            fail_msg("%s: %.4f ulp at %a (%s says %g), %.3g near its zero (%g)", name, w.ulp,
                     (double)w.ulp_at, page_path, ulp, w.absolute, absolute);
        }
        // What holds for other C libraries too.
        if (whole && (ulp > w.ulp + 0.02 || absolute > 2 * w.absolute)) {
            fail_msg("%s: %s says %g ulp and %g, measured %.4f and %.3g", name, page_path, ulp,
                     absolute, w.ulp, w.absolute);
        }
        if (ulp > r->ulp || absolute > r->absolute) {
            fail_msg("%s: %g ulp and %g are more than numerics_reference.h allows", name, ulp,
                     absolute);
        }
    }
}

static void every_function_is_measured(void **state)
{
    (void)state;
    for (int op = 0; op < OPR_COUNT; op++) {
        if (op_table[op].cls == OPC_U && !ref_function_of((op_id)op)) {
            fail_msg("%s", op_table[op].name);
        }
    }
}

static bool write_page(void)
{
    static char row[256];
    char *begin = strstr(page, TABLE_BEGIN), *end = strstr(page, TABLE_END);
    FILE *f = begin && end ? fopen(page_path, "w") : NULL;
    if (!f) {
        return false;
    }
    begin += strlen(TABLE_BEGIN);
    fwrite(page, 1, (size_t)(begin - page), f);
    fputs("\n| function | error, ulp | worst at | absolute error near a zero |\n"
          "|---|---|---|---|\n",
          f);
    for (int i = 0; i < REF_FUNCTIONS; i++) {
        worst w = measured(&ref_functions[i]);
        row_text(&ref_functions[i], &w, row, sizeof row);
        fputs(row, f);
    }
    fputs("\n", f);
    fputs(end, f);
    return fclose(f) == 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_function_is_measured),
                                       cmocka_unit_test(errors_are_those_of_the_page)};
    writes = argc > 1 && strcmp(argv[1], "write") == 0;
    whole = writes || (argc > 1 && strcmp(argv[1], "all") == 0);
    FILE *f = fopen(page_path, "r");
    if (!f) {
        fprintf(stderr, "test_device_functions: cannot read %s\n", page_path);
        return 2;
    }
    page[fread(page, 1, sizeof page - 1, f)] = '\0';
    fclose(f);
    if (writes) {
        return write_page() ? 0 : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
