#ifndef SCHED_DIGEST_H
#define SCHED_DIGEST_H

#include "sched/access.h"
#include "sched/cost.h"

// What the steps of schedule() ask of each instruction, found once: it holds for one state of the
// IR.

typedef struct instr_cost {
    int64_t issue_ps, latency_ps, work_ps;  // as in cost
    uint8_t kind, unit;                     // as in cost
    uint8_t engines;                        // DMA: how many take part
} instr_cost;

typedef struct digest {
    access_table acc;
    instr_cost *time;  // of each instruction
    bool *movable;     // of each of pr->dmas: a hardware generator could make its descriptors
    coster cost;
} digest;

// Requires: a verified program; addr_part of the kernel's own addresses, 0 of others. Fills:
// pr->dmas. Time: linear.
void digest_make(arena *mem, program *pr, digest *d);

// Engines that the kernel leaves open and that give the same bits: from trn2 on GpSimd fills PSUM,
// as published profiles show, so that Vector's copies out of PSUM do not hold up the next tile's
// start.
void choose_engines(ir *p, digest *d);
// Moves transfers whose descriptors the kernel leaves open from GpSimd to the hardware generators,
// if GpSimd computes too and would be the busiest engine: loads to Sync's, stores to Scalar's.
// times: d->time follows.
void choose_generators(program *pr, digest *d, bool times);

#endif
