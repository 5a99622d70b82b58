#ifndef SCHED_COST_H
#define SCHED_COST_H

#include "lang/program.h"
#include "sched/machine.h"

// What one instruction costs on a target, apart from what other instructions do to it. Times are
// picoseconds.

enum { COST_OPERANDS = 4 };

// Which arguments of an instruction play which part; -1: none.
typedef struct cost_roles {
    int8_t dst, in[COST_OPERANDS], scal[COST_OPERANDS];
    int8_t op, reduce_res, reduce_cmd, transpose, one0, one1, perf;
    uint8_t nin, nscal;
} cost_roles;

typedef struct coster {
    const ir *p;
    machine m;
    cost_roles roles[ISA_COUNT];
    const dma_info *dmas;  // ascending; NULL: as dma_plan() says
    uint32_t ndmas;
} coster;

typedef enum cost_kind {
    CK_FREE,    // takes no time and no place in a queue
    CK_ENGINE,  // Vector, Scalar, GpSimd
    CK_PE,      // Tensor: weight load and multiply
    CK_DMA,
    CK_CONTROL,  // the sequencer's own
} cost_kind;

enum {
    COST_SBUF = 1,  // uses the SBUF port
    COST_PSUM = 2,  // uses the PSUM port
    COST_FAST = 4,  // a fast mode of Vector
};

// What starts a transfer.
typedef enum dma_unit { DU_SYNC, DU_SCALAR, DU_GPSIMD, DU_STATIC, DU_COUNT } dma_unit;

typedef struct cost {
    int64_t issue_ps;  // from its start to the start of the next one of its engine, at the earliest
    int64_t latency_ps;   // from its start to its results
    uint8_t kind;         // cost_kind
    uint8_t flags;        // COST_*
    uint8_t table;        // Scalar: which function table; 0: any
    uint8_t perf;         // Vector, Scalar: 1, 2 or 4
    uint8_t passes;       // PE: hardware multiplies
    uint8_t unit;         // DMA: dma_unit
    uint32_t load_ps;     // PE: weight load, one pass
    uint16_t engines;     // DMA: bit e, engine e takes part
    uint32_t pieces;      // DMA: contiguous pieces
    int64_t trigger_ps;   // DMA: the end of issue that starts it; before, descriptors are made
    int64_t dispatch_ps;  // DMA: from the end of issue to the first data
    int64_t work_ps;      // DMA: of each engine that takes part
    int64_t tail_ps;      // DMA: from the last engine's end to the last byte
    uint64_t bytes;       // DMA: moved
    uint64_t hbm_bytes;   // DMA: read from and written to HBM
} cost;

// Requires: a verified program.
void coster_init(coster *c, const ir *p, const machine *m);
// Transfers as the program carries them out.
void coster_take_dmas(coster *c, const program *pr);
void cost_of(const coster *c, uint32_t instr, cost *out);
// The same of a transfer whose plan is at hand.
struct dma_planned;
void cost_of_planned(const coster *c, uint32_t instr, const struct dma_planned *plan, cost *out);

// Arithmetic and traffic of one execution, for a profile.
typedef struct work {
    uint64_t flops;  // of multiplies that are not transposes
    uint64_t transpose_flops;
    uint64_t read[3], write[3];  // bytes by memory: SBUF, PSUM, HBM
} work;
void work_of(const coster *c, uint32_t instr, work *out);

static inline int64_t ps_of_ns(double ns)
{
    return (int64_t)(ns * 1000.0 + 0.5);
}

#endif
