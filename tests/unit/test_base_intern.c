#include "base/intern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static jmp_buf oom;

static void add__gives_one_pointer_a_text(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, 0, &oom);
    intern t;
    intern_init(&t, &a);
    enum { N = 20000 };
    sym *first = NEW_N(&a, sym, N);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            char text[16];
            int len = snprintf(text, sizeof text, "n%d", i);
            sym s = intern_add(&t, text, (size_t)len);
            assert_string_equal(s->text, text);
            assert_int_equal(s->len, len);
            if (round == 0) {
                first[i] = s;
            } else {
                assert_ptr_equal(s, first[i]);
            }
        }
    }
    assert_int_equal(t.count, N);
    arena_fini(&a);
}

static void add__counts_bytes_not_characters(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, 0, &oom);
    intern t;
    intern_init(&t, &a);
    assert_ptr_not_equal(intern_add(&t, "a\0b", 3), intern_add(&t, "a\0c", 3));
    assert_ptr_not_equal(intern_add(&t, "a", 1), intern_add(&t, "a\0", 2));
    assert_ptr_equal(intern_add(&t, "", 0), intern_cstr(&t, ""));
    assert_ptr_equal(intern_add(&t, "abc", 2), intern_cstr(&t, "ab"));
    arena_fini(&a);
}

static void hash__depends_on_every_byte(void **state)
{
    (void)state;
    unsigned char text[40] = {0};
    uint32_t zero = hash_bytes(text, sizeof text);
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 1;
        assert_int_not_equal(hash_bytes(text, sizeof text), zero);
        text[i] = 0;
        assert_int_not_equal(hash_bytes(text, i), hash_bytes(text, i + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add__gives_one_pointer_a_text),
        cmocka_unit_test(add__counts_bytes_not_characters),
        cmocka_unit_test(hash__depends_on_every_byte),
    };
    return cmocka_run_group_tests_name("base.intern", tests, NULL, NULL);
}
