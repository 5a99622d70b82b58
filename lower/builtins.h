#ifndef LOWER_BUILTINS_H
#define LOWER_BUILTINS_H

#include "lower/methods.h"

// What builtins.c, builtins_number.c and types.c share; nothing else includes this.

static inline bool is_num(value v)
{
    return v.tag == V_INT || v.tag == V_BOOL || v.tag == V_FLOAT;
}
static inline double as_double(value v)
{
    return v.tag == V_FLOAT ? v.u.d : (double)as_int(v);
}

// ---- builtins.c
// Positional arguments only, lo to hi of them; false: TypeError set, in CPython's words.
bool builtin_arity(interp *it, const char *name, const args *a, uint32_t lo, uint32_t hi);

// ---- builtins_number.c
void builtins_number_init(interp *it);
// d is a whole number; what: who asks, for messages.
value builtin_float_to_int(interp *it, double d, const char *what);

#endif
