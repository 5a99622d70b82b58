#ifndef SCHED_SPILL_LIST_H
#define SCHED_SPILL_LIST_H

#include "lang/program.h"

// What --spill moved, as the program shows it: the same of a compile and of a file.

typedef enum spill_side { SPILL_NONE, SPILL_SAVE, SPILL_RELOAD } spill_side;
// Which half of a spill this instruction is. *home: the tensor's place in HBM; may be NULL.
spill_side spill_of(const ir *p, const ir_instr *in, uint32_t *home);
// Whether this tensor is such a place.
bool spill_home(const ir *p, uint32_t tensor);

// A tensor that was moved, by its home.
typedef struct spill_entry {
    uint32_t home;           // tensor
    uint32_t stores, loads;  // transfers in the program
    uint64_t bytes;          // of all of them
} spill_entry;
typedef VEC(spill_entry) spill_entries;

// The most bytes first, then in order of the program.
void spill_list(arena *mem, const ir *p, spill_entries *out);
// The name, when it has one: "name float32[128, 512], 262144 bytes (file.nki:7), stored 1 time, loaded 2 times"
void spill_entry_text(const ir *p, const spill_entry *e, textbuf *out);
// A line for each.
void spills_text(const program *pr, textbuf *out);

#endif
