#ifndef SCHED_VERIFY_SCHEDULE_H
#define SCHED_VERIFY_SCHEDULE_H

#include "lang/program.h"

// Proves of a scheduled program that no interleaving which its queues and semaphores allow reads
// before a write, overwrites before a read or runs into a deadlock, loops by induction. It shares
// no code with the scheduler. Returns NULL, or the first thing that is wrong, as a sentence in mem.
//
// Requires: ir_verify() holds, tensors in use are placed. Time: near linear.
const char *schedule_verify(const program *pr, arena *mem);

#endif
