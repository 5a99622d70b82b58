#ifndef DEVICE_SHADOW_H
#define DEVICE_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is known of one memory beside its contents: which bytes were written, and, where two cores
// meet in it, which bytes each of them touched since the last barrier. Offsets and lengths are
// bytes; all ranges lie inside the memory.

enum { SHADOW_CORES = 2, SHADOW_READ = 0, SHADOW_WRITE = 1, SHADOW_SIDES = 2, SHADOW_GRANULE = 64 };
#define SHADOW_NONE UINT64_MAX

// A number for an instruction of a core; 0: nobody.
typedef uint32_t shadow_who;
static inline shadow_who shadow_who_of(uint32_t core, uint32_t instr)
{
    return ((instr + 1) << 1) | core;
}
static inline uint32_t shadow_core(shadow_who w)
{
    return w & 1;
}
static inline uint32_t shadow_instr(shadow_who w)
{
    return (w >> 1) - 1;
}

typedef struct shadow_side {
    uint64_t *bits;   // one a byte
    shadow_who *who;  // who touched it last, one for SHADOW_GRANULE bytes
    uint64_t lo, hi;  // nothing is set outside
} shadow_side;

typedef struct shadow {
    uint64_t size;
    uint64_t *written;   // one a byte; NULL: all of it was written before the run
    uint8_t *dirty;      // blocks in which a bit of `written` may be set
    bool shared;         // by the cores of a launch: side counts
    shadow_side side[SHADOW_CORES][SHADOW_SIDES];
} shadow;

// false: out of memory; release it all the same.
bool shadow_init(shadow *s, uint64_t size, bool written, bool shared);
void shadow_release(shadow *s);
// Forgets all writes. Of a shadow that is not shared and was not written before.
void shadow_reset(shadow *s);

// The start of a lifetime: nobody has written it.
void shadow_forget(shadow *s, uint64_t at, uint64_t len);
// Returns how many of the bytes were not written before.
uint64_t shadow_write(shadow *s, uint64_t at, uint64_t len);
// The first byte of the range that was never written, SHADOW_NONE: all were; and how many were not.
uint64_t shadow_unwritten(const shadow *s, uint64_t at, uint64_t len);
uint64_t shadow_count_unwritten(const shadow *s, uint64_t at, uint64_t len);

// Notes what `core` does; the first byte that the other core touched in a way that does not go with
// it (a write of either side), SHADOW_NONE: none. *other: who did, *wrote: that it was a write.
uint64_t shadow_race(shadow *s, unsigned side, uint64_t at, uint64_t len, shadow_who who,
                     shadow_who *other, bool *wrote);
// Both cores have met: what they did before is ordered before what follows.
void shadow_meet(shadow *s);

#endif
