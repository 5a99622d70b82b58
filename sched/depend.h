#ifndef SCHED_DEPEND_H
#define SCHED_DEPEND_H

#include "sched/access.h"
#include "sched/reach.h"
#include "sched/stream.h"

// Dependences between the items of one level: the whole program, or the body of one loop. An item
// is an instruction that stands directly in the level, or a whole inner loop: what depends on an
// instruction of an inner loop waits for the loop's end, and an instruction of an inner loop waits
// where the loop is entered. Dependences within an inner loop belong to that loop's own level.
//
// Positions are ranks: places in the order of issue, counted from 1, so that 0 is "none".

typedef struct issue_order {
    const uint32_t *instr;  // by rank - 1; a loop's instructions are contiguous
    const uint32_t *rank;   // by instruction
} issue_order;

// Of each stream in `streams`: the rank of the latest item that is depended on (of a loop: the rank
// of its loop_end).
typedef struct need_set {
    stream_mask streams;
    uint32_t rank[STREAM_COUNT];
} need_set;

// Called for each item in order. carried: of the iteration before, in a second sweep over a loop's
// body. A loop's own item is reported once for each of its streams, after its body, others once for
// all of theirs.
typedef struct depend_sink {
    void (*item)(void *ctx, uint32_t instr, stream_mask streams, const need_set *need,
                 bool carried);
    void (*second_sweep)(void *ctx);
    void *ctx;
} depend_sink;

typedef struct depend depend;

// Requires: placed tensors; acc of the program.
depend *depend_new(arena *mem, program *pr, const stream_plan *sp, const access_table *acc);
// Time: linear in the instructions of the level, inner loops included, times the accesses that
// share a stretch of memory (few).
void depend_level(depend *d, issue_order order, uint32_t loop, const depend_sink *sink);

// Calls pair for instructions of one block (a run between loop instructions) of which one depends
// on the other, of one stream too, and through what is not memory too: accumulators, generators,
// registers. That is all that matters when instructions of a block change places. Enough pairs that
// all others follow from them.
typedef void (*depend_pair)(void *ctx, uint32_t from, uint32_t to);
void depend_pairs(depend *d, issue_order order, depend_pair pair, void *ctx);

#endif
