#ifndef SCHED_LIVE_H
#define SCHED_LIVE_H

#include "sched/access.h"

// A register loop; number 0 is the whole program.
typedef struct loop_info {
    uint32_t first, last;  // loop_for or loop_while, and its loop_end
    uint32_t parent;
    uint8_t depth;
    uint8_t engines;  // E_* of what runs in its body, inner loops included
} loop_info;

// When a tensor's memory is in use.
//
// A tensor is unproven when some read may see a byte that no write has set before. A proven one is
// written anew wherever it is used, so it needs no memory outside [first, last]; an unproven one
// may carry its value from one iteration of a loop to the next, so it lives through every loop (the
// outermost one) that touches it.
typedef struct live_range {
    uint32_t touch;        // first instruction that touches it, as it stands
    uint32_t first, last;  // extended over loops
    uint32_t home;         // innermost loop around all touches; of an output: the program
    bool touched, unproven;
} live_range;

typedef struct liveness {
    VEC(loop_info) loops;
    uint32_t *loop_of;  // of each instruction; a loop's own instructions belong to its parent
    live_range *of;     // of each tensor
} liveness;

// Requires: a verified program; acc of it. Time: linear in instructions and operands.
void live_compute(arena *mem, const ir *p, const access_table *acc, liveness *lv);

#endif
