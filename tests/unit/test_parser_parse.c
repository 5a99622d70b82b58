#include "parser/parse.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static jmp_buf oom;
static arena mem;
static intern names;
static diags ds;

static int fresh(void **state)
{
    (void)state;
    arena_init(&mem, 0, &oom);
    intern_init(&names, &mem);
    diags_init(&ds, &mem);
    return 0;
}

static int done(void **state)
{
    (void)state;
    arena_fini(&mem);
    return 0;
}

static source text_source(const char *p)
{
    return (source){"t.nki", p, (uint32_t)strlen(p)};
}

// The only expression statement of a file, or the value of its only assignment.
static ast *value_of(const char *text)
{
    source *src = NEW(&mem, source);
    *src = text_source(text);
    module_ast m;
    assert_true(parse_module(src, &mem, &names, &ds, &m));
    assert_non_null(m.body);
    assert_null(m.body->next);
    return m.body->kind == AST_ASSIGN ? m.body->u.assign.value : m.body->u.bin.l;
}

static void ints__fit_or_keep_their_digits(void **state)
{
    (void)state;
    assert_int_equal(value_of("0")->u.i, 0);
    assert_int_equal(value_of("0xFF_ff")->u.i, 65535);
    assert_int_equal(value_of("0b1_01")->u.i, 5);
    assert_int_equal(value_of("0O17")->u.i, 15);
    assert_true(value_of("9223372036854775807")->u.i == INT64_MAX);
    assert_true(value_of("0x7fffffffffffffff")->u.i == INT64_MAX);
    const ast *n = value_of("x = 9_223_372_036_854_775_808");
    assert_int_equal(n->kind, AST_INT);
    assert_int_equal(n->flag, 1);
    assert_memory_equal(n->u.str.p, "9_223_372_036_854_775_808", n->u.str.len);
    assert_int_equal(value_of("0x8000000000000000")->flag, 1);
}

static void floats__are_the_nearest_doubles(void **state)
{
    (void)state;
    assert_true(value_of("1.5")->u.d == 1.5);
    assert_true(value_of("1_0.0_1e1_0")->u.d == 10.01e10);
    assert_true(value_of(".1")->u.d == 0.1);
    assert_true(value_of("2.2250738585072011e-308")->u.d == 2.2250738585072011e-308);
    assert_true(isinf(value_of("1e400")->u.d));
    assert_int_equal(value_of("1e3j")->kind, AST_IMAG);
    assert_true(value_of("0_0.5")->u.d == 0.5);
    assert_true(value_of("09.5")->u.d == 9.5);
}

static void expect_str(const char *text, ast_kind kind, const char *want, uint32_t len)
{
    const ast *n = value_of(text);
    assert_int_equal(n->kind, kind);
    assert_int_equal(n->u.str.len, len);
    assert_memory_equal(n->u.str.p, want, len);
}

static void strings__are_decoded(void **state)
{
    (void)state;
    expect_str("'a\\n\\x41\\0'", AST_STR, "a\nA\0", 4);
    expect_str("'\\u00e9\\U0001F600'", AST_STR, "\xc3\xa9\xf0\x9f\x98\x80", 6);
    expect_str("'\\ud800'", AST_STR, "\xed\xa0\x80", 3);
    expect_str("'\\777'", AST_STR, "\xc7\xbf", 2);
    expect_str("b'\\777\\xff'", AST_BYTES, "\xff\xff", 2);
    expect_str("'a\\\nb'", AST_STR, "ab", 2);
    expect_str("'a\\\r\nb'", AST_STR, "ab", 2);
    expect_str("'''a\r\nb\rc'''", AST_STR, "a\nb\nc", 5);
    expect_str("r'\\n\\''", AST_STR, "\\n\\'", 4);
    expect_str("'\\q' 'x'", AST_STR, "\\qx", 3);
    expect_str("''''a''b'''", AST_STR, "'a''b", 5);
    expect_str("('a'\n 'b' # c\n  \"c\")", AST_STR, "abc", 3);
}

static void spans__are_the_text_of_their_node(void **state)
{
    (void)state;
    const char *text = "x = (f(a)[1 : 2] + (-b)) * 'c' 'd'";
    const ast *n = value_of(text);
    assert_int_equal(n->at.lo, 4);
    assert_int_equal(n->at.hi, strlen(text));
    const ast *sum = n->u.bin.l;
    assert_memory_equal(text + sum->at.lo, "f(a)[1 : 2] + (-b)", sum->at.hi - sum->at.lo);
    const ast *neg = sum->u.bin.r, *key = sum->u.bin.l->u.index.key;
    assert_memory_equal(text + neg->at.lo, "-b", neg->at.hi - neg->at.lo);
    assert_memory_equal(text + key->at.lo, "1 : 2", key->at.hi - key->at.lo);
}

static void names__are_interned(void **state)
{
    (void)state;
    assert_ptr_equal(value_of("abc")->u.id, intern_cstr(&names, "abc"));
    assert_ptr_equal(value_of("x.abc")->u.named.id, intern_cstr(&names, "abc"));
}

static void module__finds_its_docstring(void **state)
{
    (void)state;
    module_ast m;
    source src = text_source("# c\n\n'doc' 'string'\nx = 1\n");
    assert_true(parse_module(&src, &mem, &names, &ds, &m));
    assert_string_equal(m.docstring, "docstring");
    src = text_source("f'doc'\n");
    assert_true(parse_module(&src, &mem, &names, &ds, &m));
    assert_null(m.docstring);
    src = text_source("");
    assert_true(parse_module(&src, &mem, &names, &ds, &m));
    assert_null(m.body);
}

static void module__keeps_the_statements_that_parse(void **state)
{
    (void)state;
    module_ast m;
    source src = text_source("a = 1\nb = = 2\nc = 3\n");
    assert_false(parse_module(&src, &mem, &names, &ds, &m));
    assert_int_equal(ds.errors, 1);
    assert_non_null(m.body->next);
    assert_null(m.body->next->next);
}

static void expression__is_one_and_may_span_lines(void **state)
{
    (void)state;
    ast *e;
    source src = text_source(" (1,\n2) +\n x\n");
    assert_true(parse_expression(&src, &mem, &names, &ds, &e));
    assert_int_equal(e->kind, AST_BINARY);
    src = text_source("1, 'a'");
    assert_true(parse_expression(&src, &mem, &names, &ds, &e));
    assert_int_equal(e->u.list.n, 2);
    static const char *const bad[] = {"",   "1 2", "x = 1", "pass",    "(1",         "'a",
                                      "1)", "*a",  "x\n;",  "yield 1", "[1\nreturn", "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned before = ds.errors;
        src = text_source(bad[i]);
        e = (ast *)&src;
        assert_false(parse_expression(&src, &mem, &names, &ds, &e));
        assert_null(e);
        assert_true(ds.errors > before);
    }
}

static void errors__are_in_the_files_order(void **state)
{
    (void)state;
    module_ast m;
    source src = text_source("x = (a as b)\ny = = 1\nz = 'a\n");
    assert_false(parse_module(&src, &mem, &names, &ds, &m));
    uint32_t last = 0;
    for (const diag *d = ds.first; d; d = d->next) {
        assert_true(d->at.at.lo >= last);
        last = d->at.at.lo;
    }
    assert_int_equal(ds.errors, 3);
}

static void source__has_a_size_limit(void **state)
{
    (void)state;
    module_ast m;
    source src = {"big.nki", "", UINT32_MAX};  // refused before a byte is read
    assert_false(parse_module(&src, &mem, &names, &ds, &m));
    assert_int_equal(ds.first->id, D_source_too_large);
}

static void memory__ends_in_the_jump_at_every_size(void **state)
{
    (void)state;
    static const char text[] = "def f(a, b=1):\n    return [x * f\"{a=}\" for x in (b, 'c' 'd')]\n"
                               "match f:\n    case {'a': [1, *_]}: x = = 3\n";
    volatile bool finished = false;
    for (volatile size_t limit = 100; !finished; limit += limit / 16 + 16) {
        arena small;
        jmp_buf full;
        arena_init(&small, limit, &full);
        if (setjmp(full) == 0) {
            intern t;
            diags d;
            module_ast m;
            intern_init(&t, &small);
            diags_init(&d, &small);
            source src = text_source(text);
            assert_false(parse_module(&src, &small, &t, &d, &m));
            finished = true;
        }
        arena_fini(&small);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double parse_time(const char *unit, size_t count)
{
    size_t len = strlen(unit);
    char *text = malloc(len * count + 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * len, unit, len);
    }
    text[len * count] = '\0';
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        arena a;
        intern t;
        diags d;
        module_ast m;
        arena_init(&a, 0, &oom);
        intern_init(&t, &a);
        diags_init(&d, &a);
        source src = {"big.nki", text, (uint32_t)(len * count)};
        double start = seconds();
        parse_module(&src, &a, &t, &d, &m);
        double took = seconds() - start;
        best = took < best ? took : best;
        arena_fini(&a);
    }
    free(text);
    return best;
}

// Ten times the text may not take thirty times as long, whatever it holds.
static void time__is_linear(void **state)
{
    (void)state;
    static const char *const units[] = {
        "x = f(a[i * 128:(i + 1) * 128, :], b=c) + d\n",
        "x = = 1\n",
        "if a:\n    b\n",
        "a, b, c, d, e = [1, 2, 3, 4]\n",
        "'abc' f'{x}' \\\n",
        "(\n",
        "f(a b\n",
        "match (\ndef\n",
        "global x\n",
        "if (x:\n",
        "f'{a\n",
        "match x\n",
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double small = parse_time(units[i], 2000), large = parse_time(units[i], 20000);
        if (large > 60 * small && large > 2.0) {  // ten times the text: quadratic would be 100
            print_error("%s: %.4f s and %.4f s\n", units[i], small, large);
            fail();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ints__fit_or_keep_their_digits, fresh, done),
        cmocka_unit_test_setup_teardown(floats__are_the_nearest_doubles, fresh, done),
        cmocka_unit_test_setup_teardown(strings__are_decoded, fresh, done),
        cmocka_unit_test_setup_teardown(spans__are_the_text_of_their_node, fresh, done),
        cmocka_unit_test_setup_teardown(names__are_interned, fresh, done),
        cmocka_unit_test_setup_teardown(module__finds_its_docstring, fresh, done),
        cmocka_unit_test_setup_teardown(module__keeps_the_statements_that_parse, fresh, done),
        cmocka_unit_test_setup_teardown(expression__is_one_and_may_span_lines, fresh, done),
        cmocka_unit_test_setup_teardown(errors__are_in_the_files_order, fresh, done),
        cmocka_unit_test_setup_teardown(source__has_a_size_limit, fresh, done),
        cmocka_unit_test_setup_teardown(memory__ends_in_the_jump_at_every_size, fresh, done),
        cmocka_unit_test_setup_teardown(time__is_linear, fresh, done),
    };
    return cmocka_run_group_tests_name("parser.parse", tests, NULL, NULL);
}
