#ifndef LANG_PROGRAM_H
#define LANG_PROGRAM_H

#include "lang/ir.h"

// What sched makes of an IR and the NEFF carries: the IR with every tensor placed, the order of
// each engine's queue, how the queues wait for each other, and the memory it needs. docs/sched.md.

// A stream issues instructions in order: the queue of an engine's sequencer (numbered as the
// engine), or a DMA ring. An engine completes an instruction before it issues the next; a ring
// issues ahead, and its transfers complete in order.
enum { STREAM_RING0 = ENG_DMA, DMA_RINGS = 8, STREAM_COUNT = STREAM_RING0 + DMA_RINGS };

typedef enum dma_ring {
    RING_LOAD,      // HBM to chip
    RING_STORE,     // chip to HBM
    RING_CHIP,      // chip to chip
    RING_HBM,       // HBM to HBM
    RING_SOFTWARE,  // descriptors made by GpSimd while the program runs
    RING_SCALAR,    // engine=scalar
    RING_OTHER,     // engine=tensor, vector
    RING_GROUP,     // collectives and transfers between cores
} dma_ring;
const char *stream_name(uint32_t stream);  // "Vector", "DMA.load"

static inline bool stream_is_ring(uint32_t stream)
{
    return stream >= STREAM_RING0;
}

typedef enum sync_kind {
    SYNC_WAIT,        // before issue (at a loop: before it is entered): semaphore >= value
    SYNC_SIGNAL,      // at completion (at loop_end: after the last iteration): semaphore += value
    SYNC_CREDIT,      // loop_for, loop_while, once, after the waits: semaphore += value
    SYNC_TAKE,        // loop_end, at the end of each iteration: semaphore -= value
    SYNC_DRAIN_WAIT,  // loop_end, after the last iteration: semaphore >= value
    SYNC_DRAIN,       // loop_end, then: semaphore -= value
    SYNC_KIND_COUNT
} sync_kind;

typedef struct sync_op {
    uint8_t kind;  // sync_kind
    uint8_t pad;
    uint16_t semaphore;
    uint32_t value;
} sync_op;

// One entry of a stream. An instruction that several streams keep a copy of (register and loop
// instructions) has an entry in each.
typedef struct queue_slot {
    uint32_t instr;
    uint32_t sync;  // first, in program.syncs; in the order of sync_kind
    uint32_t nsync;
} queue_slot;

// A counter that `producer` raises and `consumer` alone waits for and lowers. Starts at 0.
typedef struct semaphore_info {
    uint8_t producer, consumer;  // streams
    uint16_t pad;
} semaphore_info;

// How a DMA instruction is carried out.
typedef struct dma_info {
    uint32_t instr;   // ascending
    uint8_t ring;     // dma_ring
    uint8_t trigger;  // engine whose sequencer starts it
    uint8_t dge;      // ISAE_dge_mode_*, never unknown
    uint8_t priority;
    uint16_t engines;  // bit e: DMA engine e moves a part
    uint16_t pad;
    uint32_t descriptors;  // contiguous pieces, of the side that has more
    uint64_t bytes;        // moved, in the wider dtype
} dma_info;

// SBUF tensors that were moved to HBM and back because they did not fit. Their homes in HBM are
// temporaries whose names end so.
#define SPILL_SUFFIX ".spill"
typedef struct spill_count {
    uint32_t stores, loads;
    uint64_t bytes;  // of both
} spill_count;

typedef struct program {
    ir *ir;                    // every tensor placed
    uint64_t hbm_bytes;        // HBM segment for temporaries and constants
    uint32_t sbuf_peak_bytes;  // highest byte used in a partition
    uint32_t psum_peak_bytes;
    uint32_t stream_first[STREAM_COUNT + 1];  // stream s: slots stream_first[s] .. [s + 1] - 1
    VEC(queue_slot) slots;
    VEC(sync_op) syncs;
    VEC(semaphore_info) semaphores;
    VEC(dma_info) dmas;
    // Statistics: pairs of accesses decided byte by byte, and pairs taken to conflict because a
    // dynamic or irregular pattern could not be decided.
    uint64_t pairs_exact, pairs_conservative;
    uint64_t steps;  // what placement, order and dependences looked at, for tests of growth
    spill_count spills;
} program;

// What one run of a program did where control depends on data, in the order in which it happened.
// `trips` of a loop: an entry whenever it has ended. Transfers that may skip rows: how many they
// moved, of how many.
typedef struct control_entry {
    uint32_t instr;
    uint32_t rows;   // 0: a loop
    uint64_t count;  // trips, or rows moved
} control_entry;

typedef struct control_trace {
    control_entry *at;
    size_t n;
} control_trace;

#endif
