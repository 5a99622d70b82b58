#include "device/shadow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 70000 };

// Against one byte a byte: random ranges, written and forgotten.
static void written_bytes(void **state)
{
    (void)state;
    static unsigned char want[SIZE];
    shadow s;
    assert_true(shadow_init(&s, SIZE, false, false));
    memset(want, 0, SIZE);
    srand(1);
    for (int i = 0; i < 3000; i++) {
        uint64_t len = 1 + (uint64_t)rand() % (i % 3 ? 200 : 9000),
                 at = (uint64_t)rand() % (SIZE - len + 1);
        uint64_t zeros = 0, first = SHADOW_NONE;
        for (uint64_t k = at + len; k-- > at;) {
            zeros += !want[k];
            first = want[k] ? first : k;
        }
        assert_true(shadow_unwritten(&s, at, len) == first);
        assert_true(shadow_count_unwritten(&s, at, len) == zeros);
        if (i % 4 == 3) {
            shadow_forget(&s, at, len);
        } else {
            assert_true(shadow_write(&s, at, len) == zeros);
        }
        memset(want + at, i % 4 != 3, len);
    }
    shadow_reset(&s);
    assert_true(shadow_unwritten(&s, 0, SIZE) == 0);
    assert_true(shadow_count_unwritten(&s, 0, SIZE) == SIZE);
    shadow_release(&s);
}

static void given_memory(void **state)
{
    (void)state;
    shadow s;
    assert_true(shadow_init(&s, SIZE, true, false));
    assert_true(shadow_unwritten(&s, 0, SIZE) == SHADOW_NONE);
    assert_true(shadow_count_unwritten(&s, 0, SIZE) == 0);
    assert_true(shadow_write(&s, 5, 10) == 0);
    shadow_who other;
    bool wrote;
    assert_true(shadow_race(&s, SHADOW_WRITE, 5, 10, shadow_who_of(1, 2), &other, &wrote) ==
                SHADOW_NONE);
    shadow_release(&s);
}

// What goes with what: reads with reads, nothing with a write of the other core until both met.
static void races(void **state)
{
    (void)state;
    shadow s;
    shadow_who other = 0;
    bool wrote = false;
    const shadow_who a = shadow_who_of(0, 41), b = shadow_who_of(1, 7);
    assert_true(shadow_core(b) == 1 && shadow_instr(b) == 7 && shadow_instr(a) == 41);
    assert_true(shadow_init(&s, SIZE, true, true));
    assert_true(shadow_race(&s, SHADOW_READ, 100, 50, a, &other, &wrote) == SHADOW_NONE);
    assert_true(shadow_race(&s, SHADOW_READ, 90, 90, b, &other, &wrote) == SHADOW_NONE);
    assert_true(shadow_race(&s, SHADOW_WRITE, 120, 4, a, &other, &wrote) == 120);
    assert_true(other == b && !wrote);
    assert_true(shadow_race(&s, SHADOW_READ, 0, SIZE, b, &other, &wrote) == 120);
    assert_true(other == a && wrote);
    assert_true(shadow_race(&s, SHADOW_WRITE, 124, 4, b, &other, &wrote) == 124);  // a read it
    assert_true(other == a && !wrote);
    assert_true(shadow_race(&s, SHADOW_WRITE, 122, 1, b, &other, &wrote) == 122);
    assert_true(other == a && wrote);
    assert_true(shadow_race(&s, SHADOW_WRITE, 150, 8, a, &other, &wrote) == 150);  // b read all
    shadow_meet(&s);
    assert_true(shadow_race(&s, SHADOW_WRITE, 0, SIZE, a, &other, &wrote) == SHADOW_NONE);
    assert_true(shadow_race(&s, SHADOW_WRITE, 0, SIZE, a, &other, &wrote) ==
                SHADOW_NONE);  // its own
    shadow_meet(&s);
    assert_true(shadow_race(&s, SHADOW_READ, 0, SIZE, b, &other, &wrote) == SHADOW_NONE);
    shadow_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_bytes),
        cmocka_unit_test(given_memory),
        cmocka_unit_test(races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
