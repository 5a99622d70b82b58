#ifndef SCHED_ISSUE_H
#define SCHED_ISSUE_H

#include "sched/depend.h"
#include "sched/place.h"

// Order of issue: the kernel's.
issue_order issue_program(arena *mem, const ir *p);

// Order of issue by critical path: within each run of instructions between loop instructions.
issue_order issue_list(arena *mem, program *pr, const stream_plan *sp);

// Fills: pr->slots, stream_first, syncs, semaphores. Requires: an order that keeps every
// dependence.
void synchronise(arena *mem, program *pr, const stream_plan *sp, issue_order order);

// Order, streams and semaphores of a placed program, whatever it had before. Fills: all of pr but
// memory.
void schedule_streams(arena *mem, program *pr, const sched_opts *opts);

#endif
