// Placement, dependences, order and semaphores take work in proportion to the program: counted, not
// timed.
#include "tests/support/sched_fixture.h"

#include "tests/support/long_program.h"

#include <math.h>

enum { LENGTHS = 3 };
static const uint32_t lengths[LENGTHS] = {1000, 10000, 100000};

static uint64_t steps_of(arena *a, const char *name, uint32_t n, bool list)
{
    arena_mark before = arena_save(a);
    diags ds;
    diags_init(&ds, a);
    ir *p = long_program(a, name, n);
    const program *pr = schedule(a, p, &(sched_opts){.list = list}, &ds);
    assert_non_null(pr);
    uint64_t steps = pr->steps;
    assert_true(steps > p->instrs.n);
    arena_restore(a, before);
    return steps;
}

// The slope of log steps over log instructions, by least squares.
static double slope_of(arena *a, const char *name, bool list)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int k = 0; k < LENGTHS; k++) {
        double x = log(lengths[k]), y = log((double)steps_of(a, name, lengths[k], list));
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    return (LENGTHS * sxy - sx * sy) / (LENGTHS * sxx - sx * sx);
}

static void growth__is_linear(void **state)
{
    for (int i = 0; i < LONG_PROGRAMS; i++) {
        for (int list = 0; list < 2; list++) {
            double slope = slope_of(*state, long_programs[i], list);
            print_message("%s %s: %.3f\n", long_programs[i], list ? "list" : "program", slope);
            assert_true(slope <= 1.1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IR_TEST(growth__is_linear),
    };
    return cmocka_run_group_tests_name("sched.growth", tests, NULL, NULL);
}
