#ifndef SCHED_PASSES_H
#define SCHED_PASSES_H

#include "lang/diag.h"
#include "lang/program.h"
#include "sched/digest.h"
#include "sched/live.h"

// The steps of schedule(), in order.

// Leaves only the addresses that the kernel gave.
void forget_addresses(ir *p);

// Requires: live ranges. Fills: addr_part, addr_bytes of every tensor in use, pr's peaks and
// hbm_bytes. false: an error is in ds. mem: needed until it returns.
bool place_tensors(arena *mem, program *pr, const liveness *lv, const digest *dg, diags *ds);

// A tensor that was moved, and how often.
typedef struct spilled {
    uint32_t tensor;
    uint32_t stores, loads;
    uint64_t bytes;  // of both
} spilled;

typedef struct spill_report {
    VEC(spilled) tensors;
    // When there is no way: an instruction, and what it uses at once, in each partition.
    uint32_t needs_instr;
    uint64_t needs_bytes;
} spill_report;

// Inserts transfers of SBUF tensors to HBM and back so that at most budget_bytes of a partition are
// in use, and adds them to the report. Makes lv obsolete. false: some instruction needs more;
// tensors and views may have been added, the instructions are as they were.
bool spill_sbuf(arena *mem, ir *p, const liveness *lv, uint64_t budget_bytes, spill_report *report);

// ---- refusals (refuse.c)

#define CORE_HBM_BYTES ((uint64_t)96 << 30)  // a Trainium2 chip; the others have less

// Tensor t does not fit beside what is live with it, of which `avail` bytes are left, `largest` in
// one piece. Adds the error with the map of what is live.
diag *refuse_full(arena *mem, const ir *p, const liveness *lv, uint32_t t, uint64_t avail,
                  uint64_t largest, diags *ds);
// What --spill would do about it, or why it cannot: fits says which.
void refuse_says_spill(const ir *p, diags *ds, diag *d, bool fits, const spill_report *report);

// Requires: placed tensors (a range that the kernel placed over another is not filled). Fills:
// ir_tensor.fill; inserts fill_uninit before the lifetime. Keeps: order; user dependences follow.
// true: instructions were inserted; what is known of each holds no longer.
bool insert_fills(arena *mem, ir *p, const liveness *lv);

#endif
