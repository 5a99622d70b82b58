#ifndef LANG_PLACE_H
#define LANG_PLACE_H

#include "lang/diag.h"
#include "lang/ir.h"

// Source range of a place: of the site itself, or of the innermost call around it. src is NULL
// when the place is the root or the program carries no source text.
loc ir_place_loc(const ir *p, uint32_t place);

// Adds the chain that led to `place` as notes, innermost first: `called from "f"` at each call,
// "with i = 3" for each loop value. A chain of more than 24 is cut in the middle, with a count.
void ir_place_notes(const ir *p, uint32_t place, diags *ds, diag *d);

// What a reader would call the tensor: its name, else the variable that its allocation is assigned
// to in the source line, else "". In mem.
const char *ir_tensor_called(const ir *p, uint32_t tensor, arena *mem);

#endif
