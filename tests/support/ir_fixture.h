#ifndef TESTS_SUPPORT_IR_FIXTURE_H
#define TESTS_SUPPORT_IR_FIXTURE_H

// A fresh arena for each test, and programs from their text. Include it first: CMocka's headers come
// in this order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lang/ir.h"

// The head of a program's text for trn2; its tensors and instructions follow.
#define IR_HEAD "kernel \"k\" target=trn2 grid=1 core=0 registers=8\n"

static inline int ir_setup(void **state)
{
    static jmp_buf oom;
    arena *a = malloc(sizeof *a);
    arena_init(a, 0, &oom);
    *state = a;
    return 0;
}

static inline int ir_teardown(void **state)
{
    arena_fini(*state);
    free(*state);
    return 0;
}

#define IR_TEST(name) cmocka_unit_test_setup_teardown(name, ir_setup, ir_teardown)

// The program that the text is, verified.
static inline ir *ir_from(arena *a, const char *text)
{
    const char *err = NULL;
    ir *p = ir_parse(a, text, strlen(text), &err);
    const char *why = p ? ir_verify(p, a) : err;
    assert_string_equal(why ? why : "sound", "sound");
    return p;
}

#endif
