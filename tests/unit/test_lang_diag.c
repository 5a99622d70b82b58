#include "lang/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static jmp_buf oom;
static arena mem;
static diags ds;
static const source src = {"k.nki", "x = 1\n\ty = \xc3\xa9 + \x01\xff z\nlast", 25};

static int fresh(void **state)
{
    (void)state;
    arena_init(&mem, 0, &oom);
    diags_init(&ds, &mem);
    return 0;
}

static int done(void **state)
{
    (void)state;
    arena_fini(&mem);
    return 0;
}

static loc at(uint32_t lo, uint32_t hi)
{
    return (loc){&src, {lo, hi}};
}

static void expect(diag_format format, bool color, const char *want)
{
    textbuf out;
    text_init(&out, &mem);
    diags_render(&ds, format, color, &out);
    assert_string_equal(out.at, want);
}

static void text__points_at_the_span(void **state)
{
    (void)state;
    diag_bad_dedent(&ds, at(4, 5));
    diag_bad_character(&ds, at(0, 3), "?");
    expect(DIAG_TEXT, false,
           "k.nki:1:5: error[bad_dedent]: this indentation matches no enclosing block\n"
           "    1 | x = 1\n"
           "      |     ^\n"
           "k.nki:1:1: error[bad_character]: unexpected character '?'\n"
           "    1 | x = 1\n"
           "      | ^~~\n");
}

static void text__keeps_tabs_and_counts_characters(void **state)
{
    (void)state;
    diag_bad_dedent(&ds, at(16, 18));
    expect(DIAG_TEXT, false,
           "k.nki:2:11: error[bad_dedent]: this indentation matches no enclosing block\n"
           "    2 | \ty = \xc3\xa9 + ?? z\n"
           "      | \t        ^~\n");
}

static void text__has_notes_and_help(void **state)
{
    (void)state;
    diag *d = diag_syntax(&ds, at(0, 1), "name", "; expected ':'");
    diag_note_add(&ds, d, at(21, 25), "called from '%s'", "f");
    diag_note_add(&ds, d, (loc){0}, "with i = %d", 3);
    diag_help(&ds, d, "write %s", "it");
    expect(DIAG_TEXT, false,
           "k.nki:1:1: error[syntax]: unexpected name; expected ':'\n"
           "    1 | x = 1\n"
           "      | ^\n"
           "k.nki:3:1: note: called from 'f'\n"
           "    3 | last\n"
           "      | ^~~~\n"
           "      = note: with i = 3\n"
           "      = help: write it\n");
}

static void text__without_a_place_names_the_tool(void **state)
{
    (void)state;
    diag_nul_byte(&ds, (loc){0});
    expect(DIAG_TEXT, false,
           "nki: error[nul_byte]: the file holds a NUL byte; it is not a text file\n");
}

static void text__is_colored_on_demand(void **state)
{
    (void)state;
    diag_fstring_brace(&ds, at(0, 1));
    textbuf out;
    text_init(&out, &mem);
    diags_render(&ds, DIAG_TEXT, true, &out);
    assert_non_null(strstr(out.at, "\033[1;31merror[fstring_brace]:\033[0m a single"));
    assert_non_null(strstr(out.at, "\033[1;31m^\033[0m\n"));
}

static void short__is_one_line_each(void **state)
{
    (void)state;
    diag *d = diag_bad_dedent(&ds, at(0, 1));
    diag_help(&ds, d, "not shown");
    diag_character_name(&ds, at(21, 22));
    expect(DIAG_SHORT, false,
           "k.nki:1:1: error[bad_dedent]: this indentation matches no enclosing block\n"
           "k.nki:3:1: warning[character_name]: character names are not known here; U+FFFD stands "
           "for this one\n");
}

static void json__is_an_object_a_line(void **state)
{
    (void)state;
    diag *d = diag_bad_character(&ds, at(12, 13), "\"\\\x01\xff");
    diag_note_add(&ds, d, at(0, 6), "here");
    diag_note_add(&ds, d, (loc){0}, "there");
    diag_help(&ds, d, "so");
    expect(
        DIAG_JSON, true,
        "{\"severity\":\"error\",\"name\":\"bad_character\",\"text\":\"unexpected character "
        "'\\\"\\\\\\u0001\\ufffd'\",\"path\":\"k.nki\",\"line\":2,\"column\":7,\"end_line\":2,"
        "\"end_column\":8,\"notes\":[{\"text\":\"here\",\"path\":\"k.nki\",\"line\":1,"
        "\"column\":1,\"end_line\":2,\"end_column\":1},{\"text\":\"there\"}],\"help\":\"so\"}\n");
}

static void limit__counts_what_it_drops(void **state)
{
    (void)state;
    for (int i = 0; i < 25; i++) {
        diag_bad_dedent(&ds, at(0, 1));
    }
    assert_int_equal(ds.errors, 25);
    int kept = 0;
    for (const diag *d = ds.first; d; d = d->next) {
        kept++;
    }
    assert_int_equal(kept, 20);
    textbuf out;
    text_init(&out, &mem);
    diags_render(&ds, DIAG_SHORT, false, &out);
    assert_non_null(strstr(out.at, "\nnki: 5 further errors are not shown\n"));
}

static void policy__turns_warnings_off_or_into_errors(void **state)
{
    (void)state;
    diag_policy p = {0};
    ds.policy = &p;
    diag_character_name(&ds, at(0, 1));
    assert_int_equal(ds.warnings, 1);
    p.warn[D_character_name] = -1;
    diag *off = diag_character_name(&ds, at(0, 1));
    assert_non_null(off);
    diag_note_add(&ds, off, at(0, 1), "a note on what is not kept");
    assert_int_equal(ds.warnings, 1);
    assert_int_equal(ds.errors, 0);
    p.warn[D_character_name] = 2;
    assert_int_equal(diag_character_name(&ds, at(0, 1))->sev, SEV_ERROR);
    p.warn[D_character_name] = 0;
    p.all_errors = true;
    assert_int_equal(diag_character_name(&ds, at(0, 1))->sev, SEV_ERROR);
    assert_int_equal(ds.errors, 2);
    p.warn[D_character_name] = -1;
    diag_character_name(&ds, at(0, 1));
    assert_int_equal(ds.errors, 2);
    p.warn[D_bad_dedent] = -1;  // an error stays one
    diag_bad_dedent(&ds, at(0, 1));
    assert_int_equal(ds.errors, 3);
}

static void adopt__appends_what_was_made_elsewhere(void **state)
{
    (void)state;
    diags other;
    diags_init(&other, &mem);
    diag *d = diag_bad_dedent(&other, at(0, 1));
    diag_nul_byte(&ds, at(0, 1));
    diags_adopt(&ds, d);
    assert_int_equal(ds.errors, 2);
    assert_ptr_equal(ds.first->next, d);
}

static void table__is_complete(void **state)
{
    (void)state;
    for (unsigned id = 0; id < D_COUNT; id++) {
        assert_int_equal(diag_find(diag_name((diag_id)id)), id);
        assert_true(strlen(diag_meaning((diag_id)id)) > 20);
        assert_true(strlen(diag_example((diag_id)id)) > 0);
        assert_true(strlen(diag_fix((diag_id)id)) > 0);
        assert_non_null(diag_exception((diag_id)id));
    }
    assert_int_equal(diag_find("no_such_row"), D_COUNT);
    assert_string_equal(diag_exception(D_tab_mix), "TabError");
    assert_int_equal(diag_severity(D_character_name), SEV_WARNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text__points_at_the_span, fresh, done),
        cmocka_unit_test_setup_teardown(text__keeps_tabs_and_counts_characters, fresh, done),
        cmocka_unit_test_setup_teardown(text__has_notes_and_help, fresh, done),
        cmocka_unit_test_setup_teardown(text__without_a_place_names_the_tool, fresh, done),
        cmocka_unit_test_setup_teardown(text__is_colored_on_demand, fresh, done),
        cmocka_unit_test_setup_teardown(short__is_one_line_each, fresh, done),
        cmocka_unit_test_setup_teardown(json__is_an_object_a_line, fresh, done),
        cmocka_unit_test_setup_teardown(limit__counts_what_it_drops, fresh, done),
        cmocka_unit_test_setup_teardown(policy__turns_warnings_off_or_into_errors, fresh, done),
        cmocka_unit_test_setup_teardown(adopt__appends_what_was_made_elsewhere, fresh, done),
        cmocka_unit_test_setup_teardown(table__is_complete, fresh, done),
    };
    return cmocka_run_group_tests_name("lang.diag", tests, NULL, NULL);
}
