#ifndef SCHED_ACCESS_H
#define SCHED_ACCESS_H

#include "lang/ir.h"

// What instructions do to memory.

typedef enum access_kind {
    ACC_READ = 1,
    ACC_WRITE = 2,  // some of the view's bytes
    ACC_FULL = 4,   // every byte that the view names, for certain
} access_kind;

typedef struct access {
    uint32_t view;
    uint8_t kind;  // ACC_*, or-ed
} access;

typedef VEC(access) access_list;

// What instruction `in` does to memory: reads first, sources of dynamic offsets included. Replaces
// what is in out.
void access_collect(arena *mem, const ir *p, const ir_instr *in, access_list *out);

// The same of all instructions, one after the other.
typedef struct access_table {
    access_list all;
    uint32_t *first;  // of instruction i: all.at[first[i]] .. all.at[first[i + 1] - 1]
} access_table;

void access_table_make(arena *mem, const ir *p, access_table *t);

#endif
