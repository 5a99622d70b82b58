#ifndef SCHED_STREAM_H
#define SCHED_STREAM_H

#include "lang/program.h"

// Which streams issue each instruction, and the loops around it.

typedef uint16_t stream_mask;  // bit s: stream s
_Static_assert(STREAM_COUNT <= 16, "stream_mask");

// Takes the lowest stream out of *m, which has one.
static inline uint32_t stream_take(stream_mask *m)
{
    uint32_t s = (uint32_t)__builtin_ctz(*m);
    *m = (stream_mask)(*m & (*m - 1));
    return s;
}

static inline bool one_stream(stream_mask m)
{
    return (m & (m - 1)) == 0;
}

// A register loop; number 0 is the whole program.
typedef struct loop_node {
    uint32_t first, last;  // loop_for or loop_while, and its loop_end
    uint32_t parent;
    uint32_t depth;
    stream_mask streams;  // that take part
} loop_node;

typedef struct stream_plan {
    VEC(loop_node) loops;
    uint32_t *loop_of;  // of each instruction; a loop's own instructions belong to its parent
    stream_mask *mask;  // of each instruction; never 0
} stream_plan;

// Requires: a verified program; pr->dmas (digest.h). Time: linear.
//
// Every sequencer and ring has registers of its own. So an instruction that writes a register
// (register_move, register_load) has a copy in each stream that reads the register, directly or
// through other registers; a loop in each stream that has an instruction in its body, or needs its
// counter.
void stream_plan_make(arena *mem, const program *pr, stream_plan *sp);

// The loop that instruction `first` opens.
uint32_t loop_at(const stream_plan *sp, uint32_t first);

// What a DMA instruction reads from or writes to, all views together.
typedef struct dma_side {
    bool any, chip, indexed, dynamic;
    uint8_t dtype;
    uint32_t part0, parts;   // on chip
    uint64_t pieces, bytes;  // contiguous pieces
} dma_side;

// Ring and split of one DMA instruction.
typedef struct dma_planned {
    dma_info info;
    dma_side dst, src;
} dma_planned;
void dma_plan(const ir *p, uint32_t instr, dma_planned *out);

static inline bool instr_opens_loop(const ir_instr *in)
{
    return in->op == ISA_loop_for || in->op == ISA_loop_while;
}

static inline bool instr_is_loop(const ir_instr *in)
{
    return instr_opens_loop(in) || in->op == ISA_loop_end;
}

#endif
