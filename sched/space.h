#ifndef SCHED_SPACE_H
#define SCHED_SPACE_H

#include "base/vec.h"

#include <stdbool.h>

// The bytes of one partition of SBUF or PSUM, or of the HBM segment, handed out first-fit by
// address.
//
// Ranges that the kernel placed itself are reserved for spans of time (instruction numbers): what
// is handed out for [first, last] touches no byte reserved within it. Reservations are kept by
// granule.
typedef struct hole {
    uint64_t lo, hi;
} hole;

typedef struct span_time {
    uint32_t first, last;
} span_time;

typedef VEC(span_time) time_list;

typedef struct space {
    arena *mem;
    VEC(hole) holes;  // free, ascending, never adjacent
    uint64_t limit_bytes;
    uint64_t bank_bytes;  // 0: no banks
    uint64_t peak_bytes;  // end of the highest byte handed out or reserved
    uint64_t steps;       // holes looked at or moved
    uint32_t granule_bytes;
    time_list *reserved;  // of each granule, disjoint and ascending; NULL: nothing reserved
} space;

enum { SPACE_ALIGN = 64 };

void space_init(space *s, arena *mem, uint64_t limit_bytes, uint64_t bank_bytes);
// In ascending order of first.
void space_reserve(space *s, uint64_t lo, uint64_t hi, span_time when);
// First fit of size > 0 bytes. A size that fits a bank does not cross one; a larger one begins on
// one.
bool space_take(space *s, uint64_t size, uint32_t align, span_time when, uint64_t *addr);
void space_give(space *s, uint64_t lo, uint64_t hi);
// Bytes that are free and not reserved during `when`, and the longest run of them.
uint64_t space_available(const space *s, span_time when, uint64_t *largest);

// The first address >= lo at which size bytes may begin (alignment and banks), at most
// UINT64_MAX/2.
uint64_t space_begin(const space *s, uint64_t lo, uint64_t size, uint32_t align);
// End of a reserved range that [addr, addr + size) meets during `when`; 0: none.
uint64_t space_conflict(const space *s, uint64_t addr, uint64_t size, span_time when);

#endif
