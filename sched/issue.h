#ifndef SCHED_ISSUE_H
#define SCHED_ISSUE_H

#include "sched/depend.h"
#include "sched/digest.h"
#include "sched/place.h"

// Order of issue: the kernel's.
issue_order issue_program(arena *mem, const ir *p);

// Order of issue by critical path: within each run of instructions between loop instructions.
issue_order issue_list(arena *mem, program *pr, const stream_plan *sp, const digest *dg, depend *d);

// Fills: pr->slots, stream_first, syncs, semaphores. Requires: an order that keeps every
// dependence.
void synchronise(arena *mem, program *pr, const stream_plan *sp, depend *d, issue_order order);

// Order, streams and semaphores of a placed program, whatever it had before. Fills: all of pr but
// memory. mem: needed until it returns.
void order_streams(arena *mem, program *pr, digest *dg, const sched_opts *opts);
// The same of a program of which nothing else is at hand.
void schedule_streams(arena *mem, program *pr, const sched_opts *opts);

#endif
