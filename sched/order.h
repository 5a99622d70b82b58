#ifndef SCHED_ORDER_H
#define SCHED_ORDER_H

#include "lang/ir.h"

// Which instructions must be complete before one may start, from the physical memory that they
// touch. The clock's view: an edge between two instructions of one engine is kept only where the
// second reads what the first wrote.
typedef struct order {
    uint32_t *first;  // of each instruction: its edges are pred[first[i] .. first[i + 1] - 1]
    VEC(uint32_t) pred;
} order;

// Requires: every tensor placed. An edge from a later instruction is carried by a register loop.
// Time: linear in instructions, operands and the pieces of memory that they touch.
void order_make(arena *mem, const ir *p, order *o);

#endif
