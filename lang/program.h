#ifndef LANG_PROGRAM_H
#define LANG_PROGRAM_H

#include "lang/ir.h"

// What sched makes of an IR and the NEFF carries: the IR with every tensor placed, the order of
// each engine's queue, and the memory it needs.
typedef struct program {
    ir *ir;                             // every tensor placed
    VEC(uint32_t) queue[ENG_COUNT];     // instructions of each engine, in issue order
    uint64_t hbm_bytes;                 // HBM segment for temporaries and constants
    uint32_t sbuf_peak_bytes;           // highest byte used in a partition
    uint32_t psum_peak_bytes;
} program;

#endif
