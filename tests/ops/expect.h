// The expectation of one operation test: its arguments and its results (see make.py for the text
// form).
#ifndef NKI_TESTS_OPS_EXPECT_H
#define NKI_TESTS_OPS_EXPECT_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/examples/tool.h"

enum { EXPECT_ITEMS_MAX = 24 };

struct expect_item {
    char name[48];
    char literal[128];  // an argument that is not a tensor; else ""
    struct tensor tensor;
    struct tolerance tolerance;  // results only
};

struct expect {
    char target[16];  // "" when the file names none
    char grid[4];     // the same
    size_t arg_count, out_count;
    struct expect_item args[EXPECT_ITEMS_MAX];
    struct expect_item outs[EXPECT_ITEMS_MAX];
};

// false: why says which line is wrong. expect_free may be called in either case.
bool expect_read(const char *path, struct expect *e, char *why, size_t why_bytes);
void expect_free(struct expect *e);

#endif
