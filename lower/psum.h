#ifndef LOWER_PSUM_H
#define LOWER_PSUM_H

#include "lang/ir.h"

// Which part of each PSUM tensor has been written, at compile time: what accumulate=None needs.
// A map is a list of bands of partitions, each with one bit for two bytes of a partition.

typedef struct psum_band {
    uint16_t lo, hi;  // partitions [lo, hi)
    uint64_t *row;    // words bits
} psum_band;

typedef struct psum_map {
    bool known;    // has been looked at
    bool foreign;  // something other than a matmul has written it
    bool warned;
    bool unknown;  // written at a place that only run time knows
    uint16_t words;
    uint16_t nbands, cap;
    psum_band *bands;
    psum_band *maybe;  // written if a loop ran at all; nmaybe bands
    uint16_t nmaybe;
    uint16_t foreign_op;  // isa_id of the last foreign writer
    uint32_t last_ap;     // the view last marked: written for certain
    int64_t last_offset;
    uint32_t last_part;  // part << 8 | dtype
} psum_map;

typedef struct psum_save {
    struct psum_save *next;
    uint32_t tensor;
    psum_map map;
} psum_save;

typedef struct psum_maps {
    arena *mem;
    psum_map *at;  // by tensor
    uint32_t n, cap;
} psum_maps;

typedef enum psum_state { PSUM_UNWRITTEN, PSUM_WRITTEN, PSUM_MIXED, PSUM_UNKNOWN } psum_state;

psum_map *psum_of(psum_maps *m, const ir *p, uint32_t tensor);
void psum_fresh(psum_maps *m, uint32_t tensor);
psum_map psum_copy(psum_maps *m, const psum_map *from);
void psum_mark(psum_maps *m, const ir *p, const ir_view *v);
psum_state psum_ask(psum_maps *m, const ir *p, const ir_view *v);
// After a loop that may not have run: what it wrote is only perhaps written.
void psum_weaken(psum_maps *m, uint32_t tensor, const psum_map *before);

// A part of a matmul's result whose elements are all written or all not.
typedef struct psum_piece {
    uint32_t m, mcount;  // rows: partitions of dst from its first
    uint32_t n, ncount;  // columns: flattened free elements of dst
    bool written;
} psum_piece;
// Divides v (PSUM_MIXED) into pieces; returns them in mem.
psum_piece *psum_split(psum_maps *m, const ir *p, const ir_view *v, uint32_t *count);

#endif
