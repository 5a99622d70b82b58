#ifndef RUNTIME_EXPRESSION_H
#define RUNTIME_EXPRESSION_H

#include "lang/isa.h"

#include <nki/tensor.h>

// The text of nki_elementwise() as the steps that stdlib/ops/elementwise.nki takes. Equal steps are
// one. Constants are folded in double.

enum { EXPR_STEPS_MAX = 128, EXPR_INPUTS_MAX = 8, EXPR_RESULTS_MAX = 16, EXPR_TEXT_MAX = 1 << 16 };

// BOOL is 0 or 1, computed as INT.
typedef enum expr_type { EXPR_FLOAT, EXPR_INT, EXPR_UINT, EXPR_BOOL } expr_type;

typedef struct expr_operand {
    enum { EXPR_INPUT, EXPR_STEP, EXPR_CONST } kind;
    uint32_t index;
    double number;
    bool whole;  // a constant written as an integer
} expr_operand;

// An operator beyond the table, of three operands: condition, then, else.
#define EXPR_WHERE OPR_COUNT

typedef struct expr_step {
    op_id op;  // or EXPR_WHERE
    expr_type type;
    uint32_t operands;
    expr_operand operand[3];
} expr_step;

typedef struct expression {
    uint32_t step_count, result_count, input_count;
    expr_type input[EXPR_INPUTS_MAX];
    expr_step step[EXPR_STEPS_MAX];
    expr_operand result[EXPR_RESULTS_MAX];
} expression;

// e->input and input_count are given. false: why says what is wrong and at which character.
bool expression_parse(const char *text, expression *e, char *why, size_t room);
expr_type expression_type(const expression *e, const expr_operand *o);
// The three compile-time values as Python text; false: it does not fit.
bool expression_steps(const expression *e, char *out, size_t room);
bool expression_results(const expression *e, char *out, size_t room);

#endif
