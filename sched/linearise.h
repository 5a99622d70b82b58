#ifndef SCHED_LINEARISE_H
#define SCHED_LINEARISE_H

#include "lang/program.h"

// A random order in which the streams of a scheduled program may carry out its instructions, as
// permitted by their queues and semaphores: ir->instrs.n numbers. What several streams keep a copy
// of stands once, where all of them have come to it; a register loop stands as a whole, in program
// order. A ring's transfers take effect in any order between issue and completion.
// mem is for scratch. Returns false when the streams come to a stop before the end.
//
// Requires: schedule_verify() holds. Same seed, same order.
bool sched_linearise(const program *pr, arena *mem, uint64_t seed, uint32_t *order);

#endif
