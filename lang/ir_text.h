#ifndef LANG_IR_TEXT_H
#define LANG_IR_TEXT_H

#include "lang/ir.h"

// What ir_print and ir_parse must agree on (docs/ir.md). Private to the two.

// The table's default of a parameter, which the text form leaves out. false: it has none that an
// argument can equal (required).
bool ir_default_arg(const isa_param *par, ir_arg *out);

// A static view as one slice a dimension of its tensor. false: it is not of that form, and is
// written as .ap(...).
typedef struct ir_slice {
    uint32_t lo, step, count;
} ir_slice;
bool ir_view_slices(const ir *p, const ir_view *v, ir_slice *out);

#endif
