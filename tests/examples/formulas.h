// What each example computes, in double precision and plain loops: the other side of its test.
//
// A formula gets the arguments in the kernel's order (numbers as rank-0 tensors) and makes the
// results that it expects. It may give elements a slack of their own (struct expected.slack, one a
// result), where the right tolerance depends on the data: the bound on a sum's rounding error, an
// index that a tie makes ambiguous.
#ifndef NKI_TESTS_EXAMPLES_FORMULAS_H
#define NKI_TESTS_EXAMPLES_FORMULAS_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/examples/npy.h"

enum { RESULTS_MAX = 2 };

struct expected {
    size_t count;
    struct tensor want[RESULTS_MAX];
    struct tensor slack[RESULTS_MAX];  // .values NULL: none
};

typedef void formula_fn(const struct tensor *in, struct expected *out);

// For results that are random: whether they have the properties they must have.
typedef bool judge_fn(const struct tensor *in, const struct tensor *got, char *why,
                      size_t why_bytes);

// formulas_linear.c
formula_fn formula_vector_add;
formula_fn formula_matmul;  // of all five steps
formula_fn formula_transpose;
formula_fn formula_conv1d;
formula_fn formula_avgpool;
formula_fn formula_maxpool;

// formulas_rows.c
formula_fn formula_softmax;
formula_fn formula_layernorm;
formula_fn formula_rmsnorm;
formula_fn formula_attention;
formula_fn formula_rope;
formula_fn formula_quantize;
formula_fn formula_two_cores;

// formulas_sequence.c
formula_fn formula_mamba_scan;
formula_fn formula_cumsum;
formula_fn formula_topk;
formula_fn formula_gather_scatter;
formula_fn formula_sum_blocks;
judge_fn judge_dropout;

#endif
