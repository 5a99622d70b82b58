// Element-wise expressions of any bytes: refused with a place, or steps within bounds.
#include "runtime/expression.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const expression *e, const expr_operand *o, uint32_t steps)
{
    if ((o->kind == EXPR_INPUT && o->index >= e->input_count) ||
        (o->kind == EXPR_STEP && o->index >= steps)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static expression e;
    static char text_of[EXPR_STEPS_MAX * 120];
    char why[200] = "";
    char *text = malloc(size + 1);
    if (!text) {
        return 0;
    }
    if (size) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    e.input_count = 3;
    e.input[0] = EXPR_FLOAT;
    e.input[1] = EXPR_INT;
    e.input[2] = EXPR_UINT;
    if (!expression_parse(text, &e, why, sizeof why)) {
        if (strncmp(why, "expression, character ", 22) != 0) {
            abort();
        }
    } else {
        for (uint32_t i = 0; i < e.step_count; i++) {
            for (uint32_t k = 0; k < e.step[i].operands; k++) {
                check(&e, &e.step[i].operand[k], i);  // only earlier steps
            }
        }
        for (uint32_t i = 0; i < e.result_count; i++) {
            check(&e, &e.result[i], e.step_count);
        }
        if (!expression_steps(&e, text_of, sizeof text_of)) {
            abort();
        }
    }
    free(text);
    return 0;
}
