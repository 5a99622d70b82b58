#ifndef SCHED_PASSES_H
#define SCHED_PASSES_H

#include "lang/diag.h"
#include "lang/program.h"
#include "sched/live.h"

// The steps of schedule(), in order.

// Requires: live ranges. Fills: addr_part, addr_bytes of every tensor in use, pr's peaks and
// hbm_bytes. false: an error is in ds.
bool place_tensors(arena *mem, program *pr, const liveness *lv, diags *ds);

// Inserts transfers of SBUF tensors to HBM and back, outside loops, so that at most budget_bytes of
// a partition are in use. Counts them. Makes lv obsolete. false: some instruction or loop needs
// more; tensors and views may have been added, the instructions are as they were.
bool spill_sbuf(arena *mem, ir *p, const liveness *lv, uint64_t budget_bytes, spill_count *count);

// Requires: placed tensors (a range that the kernel placed over another is not filled). Fills:
// ir_tensor.fill; inserts fill_uninit before the lifetime. Keeps: order; user dependences follow.
void insert_fills(arena *mem, ir *p, const liveness *lv);

#endif
