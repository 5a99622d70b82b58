#ifndef SCHED_REACH_H
#define SCHED_REACH_H

#include "lang/ir.h"

// The bytes that a view may touch, in physical memory. docs/sched.md, "Reach".

// off + i0 * stride0 + i1 * stride1 + ... + [0, run), dimensions by ascending stride, nested: a
// dimension's stride is larger than all that the ones before it span.
enum { LATTICE_DIMS = 4 };
typedef struct lattice_dim {
    uint64_t stride, count;
} lattice_dim;
typedef struct lattice {
    uint64_t off, run;
    uint32_t n;
    lattice_dim dim[LATTICE_DIMS];
} lattice;

// What can share memory: SBUF, PSUM, each group of overlapping tensors of the HBM segment, each
// parameter; and states that are not memory, of one byte each.
typedef struct objects {
    uint32_t *of;     // of each tensor
    uint64_t *base;   // of each tensor: its first byte in the object
    uint64_t *bytes;  // of each object: its size (of a partition, on chip)
    uint32_t n;
} objects;
enum {
    OBJ_SBUF,
    OBJ_PSUM,
    OBJ_PRINT,
    OBJ_RANDOM,
    OBJ_ACC_VECTOR,
    OBJ_ACC_SCALAR,
    OBJ_REGISTERS,
    OBJ_FIRST_HBM
};

void objects_make(arena *mem, const ir *p, objects *o);

typedef struct reach {
    uint32_t object;
    bool inexact;  // may name bytes that are never touched
    lattice rows;  // partitions; HBM: row 0
    lattice bytes;
} reach;

reach reach_of(const ir *p, const objects *o, const ir_view *v);
reach reach_state(uint32_t object);

static inline uint64_t lattice_end(const lattice *l)
{
    uint64_t reach_bytes = l->run;
    for (uint32_t k = 0; k < l->n; k++) {
        reach_bytes += l->dim[k].stride * (l->dim[k].count - 1);
    }
    return l->off + reach_bytes;
}

// Whether some byte is in both. *unsure: true when it was too much to decide, and the answer is
// then yes.
bool lattices_meet(const lattice *a, const lattice *b, bool *unsure);
// Whether every byte of b is in a; false may also mean not known.
bool lattice_covers(const lattice *a, const lattice *b);

bool reaches_meet(const reach *a, const reach *b, bool *unsure);
bool reach_covers(const reach *a, const reach *b);

#endif
