#ifndef SCHED_VERIFY_MEMORY_H
#define SCHED_VERIFY_MEMORY_H

#include "lang/program.h"

// The checker's own account of who touches what: accesses of instructions, whether two meet, and
// an index of past accesses by address. Used by verify_schedule.c alone.

// A set of numbers: first + a0 * step0 + a1 * step1 + ... + [0, width), 0 <= ak < countk.
enum { GRID_AXES = 8 };
typedef struct grid {
    uint64_t first, width;
    uint32_t axes;
    uint64_t step[GRID_AXES], count[GRID_AXES];  // steps descending
} grid;

typedef struct footprint {
    uint32_t memory;  // number of what it lies in: two footprints in different ones never meet
    bool write;
    grid rows, bytes;
} footprint;

typedef VEC(footprint) footprint_list;

typedef struct memory_map memory_map;
memory_map *memory_map_new(arena *mem, const ir *p);
// What instruction i touches, in memory that something writes.
void memory_footprints(memory_map *m, uint32_t i, footprint_list *out);
bool footprints_meet(const footprint *a, const footprint *b);
// Every byte of b is in a. false may also mean: not known.
bool footprint_contains(const footprint *a, const footprint *b);

// One past access. `next` and below are the index's.
typedef struct visit {
    footprint at;
    uint32_t instr, home, child, stream, tick;
    bool dead;
    uint32_t seen;
} visit;

typedef struct visit_index visit_index;
visit_index *visit_index_new(arena *mem, memory_map *m);
void visit_index_clear(visit_index *x);
void visit_index_add(visit_index *x, const visit *v);
// Calls fn for every living visit whose bytes lie between those of `at`, once each; fn may set
// dead.
void visit_index_find(visit_index *x, const footprint *at, void (*fn)(void *ctx, visit *v),
                      void *ctx);

#endif
