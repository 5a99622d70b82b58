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
    arena *mem;
    uint32_t *of;     // of each tensor
    uint64_t *base;   // of each tensor: its first byte in the object
    uint64_t *bytes;  // of each object: its size (of a partition, on chip)
    uint32_t n;
    VEC(const struct shape *) shapes;  // by shape_key(); NULL: not made yet
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

// Where an access pattern's elements lie, from the lowest: the same for all views of one pattern.
// `off` of both is how far the pattern's first element lies above it, negated.
typedef struct shape {
    lattice rows, bytes;
    uint64_t rows_span, bytes_span;
    bool inexact;  // a box around what is not nested
    bool box;      // both are single runs
} shape;

typedef struct reach {
    uint64_t lo, hi;     // bytes: the first, and the one behind the last
    const shape *shape;  // which of the box; NULL: all of it
    uint32_t object;
    uint16_t row, row_end;  // partitions; HBM: 0, 1
    bool inexact;           // may name bytes that are never touched
} reach;

// Not const: keeps shapes.
reach reach_of(const ir *p, objects *o, const ir_view *v);
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

// ---- of reaches whose boxes meet, or are one in the other

bool shapes_meet(const reach *a, const reach *b, bool *unsure);
bool shapes_cover(const reach *a, const reach *b);

static inline bool reaches_meet(const reach *a, const reach *b, bool *unsure)
{
    *unsure = false;
    if (a->lo >= b->hi || b->lo >= a->hi || a->row >= b->row_end || b->row >= a->row_end ||
        a->object != b->object) {
        return false;
    }
    bool meet = (!a->shape && !b->shape) || shapes_meet(a, b, unsure);
    *unsure |= meet && (a->inexact || b->inexact);
    return meet;
}

static inline bool reach_covers(const reach *a, const reach *b)
{
    return a->lo <= b->lo && b->hi <= a->hi && a->row <= b->row && b->row_end <= a->row_end &&
           a->object == b->object && (!a->shape || shapes_cover(a, b));
}
// Whether every row of b is one of a.
bool rows_cover(const reach *a, const reach *b);

#endif
