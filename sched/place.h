#ifndef SCHED_PLACE_H
#define SCHED_PLACE_H

#include "lang/diag.h"
#include "lang/program.h"

typedef struct sched_opts {
    bool list;   // reorder independent instructions by critical path
    bool spill;  // SBUF tensors that do not fit go to HBM and back
} sched_opts;

// Gives every tensor of p an address in the target's physical SBUF, PSUM and the HBM segment, by
// live range, and inserts fill_uninit before the first use of a lifetime that is not proven written
// (ir_tensor.fill). Manual addresses are kept. What does not fit: sbuf_full / psum_full in ds with
// the map of what is live, as notes; then returns NULL. Requires: a verified program. Fills:
// addr_part, addr_bytes, queues, peaks; streams and semaphores. opts NULL: in program order.
program *schedule(arena *mem, ir *p, const sched_opts *opts, diags *ds);

#endif
