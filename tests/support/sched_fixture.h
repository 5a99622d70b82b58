#ifndef TESTS_SUPPORT_SCHED_FIXTURE_H
#define TESTS_SUPPORT_SCHED_FIXTURE_H

#include "tests/support/ir_fixture.h"

#include "sched/place.h"
#include "sched/verify_schedule.h"

// The program that the text is, placed, in program order, and proven.
static inline program *scheduled(arena *a, const char *text)
{
    diags ds;
    diags_init(&ds, a);
    program *pr = schedule(a, ir_from(a, text), NULL, &ds);
    if (!pr) {
        print_error("%s\n", ds.first ? ds.first->text : "no diagnostic");
    }
    assert_non_null(pr);
    const char *why = schedule_verify(pr, a);
    assert_string_equal(why ? why : "ordered", "ordered");
    return pr;
}

#endif
