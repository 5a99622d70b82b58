#ifndef LOWER_EMIT_H
#define LOWER_EMIT_H

#include "lang/diag.h"
#include "lang/ir.h"

// Turns bound arguments into checked instructions: what the chip would refuse is refused here, with
// the operand, the value found, the limit and the target; what decides a bit of the result (the
// engine, PSUM accumulate=None) is decided here.
typedef struct emitter emitter;

// pend receives errors (the caller may turn one into a catchable exception); warn receives warnings.
emitter *emitter_new(arena *mem, ir *p, diags *pend, diags *warn);

// Checks and emits one instruction; args has isa_table[op].nparams members, in table order, absent
// ones filled with their defaults by the binder, and may be rewritten (axis normalised, accumulate
// resolved). One call may emit several IR instructions (a matmul whose PSUM region is mixed).
// Returns NULL, or the error (in pend) after which nothing was emitted. *first: index of the first
// instruction emitted (may be NULL). loop_for, loop_while and loop_end are emitted here too: a
// loop whose first iteration overwrites PSUM and whose later ones add is emitted twice, as one trip
// and the rest, when its loop_end comes; an error there may leave the loop open.
diag *emit_instr(emitter *e, isa_id op, ir_arg *args, uint32_t place, uint32_t nm, loc at, uint32_t *first);

// A new tensor was made by nl.ndarray: checks shape, buffer, dtype, capacity of one tensor, manual
// address. On success the tensor has been added to the IR and *id is set.
diag *emit_tensor(emitter *e, ir_tensor t, loc at, uint32_t *id);

// End of the kernel: checks that span instructions (outputs never written, warnings once).
diag *emit_finish(emitter *e, loc at);

// --precise-fp=off (fp32_store.c): marks the finished program, and reports views that it cannot keep.
void fp32_store(ir *p, diags *ds);

#endif
