#include "base/arena.h"
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static jmp_buf oom;

static int fresh(void **state)
{
    static arena a;
    arena_init(&a, 0, &oom);
    *state = &a;
    return 0;
}

static int done(void **state)
{
    arena_fini(*state);
    return 0;
}

static void alloc__is_zeroed_and_aligned(void **state)
{
    arena *a = *state;
    for (size_t align = 1; align <= 64; align *= 2) {
        NEW(a, char);
        unsigned char *p = arena_alloc(a, 3, align, 5);
        assert_int_equal((uintptr_t)p % align, 0);
        for (int i = 0; i < 15; i++) {
            assert_int_equal(p[i], 0);
        }
        memset(p, 0xff, 15);
    }
}

static void restore__frees_later_blocks(void **state)
{
    arena *a = *state;
    char *p = NEW_N(a, char, 8);
    arena_mark m = arena_save(a);
    for (int i = 0; i < 4; i++) {
        assert_non_null(NEW_N(a, char, 1 << 16));
    }
    arena_restore(a, m);
    assert_int_equal(a->used_bytes, 8);
    assert_ptr_equal(NEW_N(a, char, 1), p + 8);
}

static void restore__leaves_no_old_bytes(void **state)
{
    arena *a = *state;
    arena_mark m = arena_save(a);
    memset(NEW_N(a, char, 100), 'x', 100);
    arena_restore(a, m);
    const char *p = NEW_N(a, char, 100);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(p[i], 0);
    }
}

static void alloc__past_the_limit_jumps(void **state)
{
    arena *a = *state;
    a->limit_bytes = 1000;
    volatile int granted = 0;
    if (setjmp(oom) == 0) {
        for (;;) {
            NEW_N(a, char, 100);
            granted++;
        }
    }
    assert_int_equal(granted, 10);
}

static void scratch__counts_and_goes_alone(void **state)
{
    arena *a = *state;
    const char *kept = arena_text(a, "kept", 4);
    arena *s = arena_scratch(a), *inner = arena_scratch(s);
    size_t before = a->used_bytes - inner->used_bytes - s->used_bytes;
    NEW_N(s, char, 1 << 20);
    NEW_N(inner, char, 1 << 20);
    assert_true(a->used_bytes >= before + (2 << 20));
    arena_drop(inner);
    assert_true(a->used_bytes < before + (2 << 20));
    arena_drop(s);
    assert_int_equal(a->used_bytes, before);
    assert_true(a->peak_bytes >= before + (1 << 20));
    assert_string_equal(kept, "kept");
    arena_scratch(a);  // what is not dropped goes with the arena
    NEW_N(a->scratch, char, 1 << 16);
}

static void scratch__counts_against_the_limit(void **state)
{
    arena *a = *state;
    arena *s = arena_scratch(a);
    a->limit_bytes = a->used_bytes + 1000;
    volatile int granted = 0;
    if (setjmp(oom) == 0) {
        for (;;) {
            NEW_N(granted % 2 ? a : s, char, 100);
            granted++;
        }
    }
    assert_int_equal(granted, 10);
}

static void alloc__of_an_impossible_count_jumps(void **state)
{
    arena *a = *state;
    volatile int jumped = 0;
    if (setjmp(oom) == 0) {
        NEW_N(a, uint64_t, SIZE_MAX / 4);
    } else {
        jumped = 1;
    }
    assert_int_equal(jumped, 1);
}

static void printf__is_not_cut(void **state)
{
    const char *p = arena_printf(*state, "%0600d|", 7);
    assert_int_equal(strlen(p), 601);
    assert_string_equal(p + 598, "07|");
}

static void vec__keeps_its_elements_as_it_grows(void **state)
{
    VEC(int) v = {0};
    for (int i = 0; i < 10000; i++) {
        vec_push(*state, &v, i);
    }
    assert_int_equal(v.n, 10000);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(v.at[i], i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alloc__is_zeroed_and_aligned, fresh, done),
        cmocka_unit_test_setup_teardown(restore__frees_later_blocks, fresh, done),
        cmocka_unit_test_setup_teardown(restore__leaves_no_old_bytes, fresh, done),
        cmocka_unit_test_setup_teardown(alloc__past_the_limit_jumps, fresh, done),
        cmocka_unit_test_setup_teardown(scratch__counts_and_goes_alone, fresh, done),
        cmocka_unit_test_setup_teardown(scratch__counts_against_the_limit, fresh, done),
        cmocka_unit_test_setup_teardown(alloc__of_an_impossible_count_jumps, fresh, done),
        cmocka_unit_test_setup_teardown(printf__is_not_cut, fresh, done),
        cmocka_unit_test_setup_teardown(vec__keeps_its_elements_as_it_grows, fresh, done),
    };
    return cmocka_run_group_tests_name("base.arena", tests, NULL, NULL);
}
