#ifndef SCHED_COVER_H
#define SCHED_COVER_H

#include "lang/ir.h"

// The bytes of one tensor that a static view touches: `count` runs of `run` bytes, `stride` bytes
// apart, in each of the partitions [p0, p1) (HBM: [0, 1)). count 1: one run, stride 0.
typedef struct region {
    uint32_t p0, p1;
    uint64_t off, run, stride, count;
} region;

// What is proven written of one tensor: at most COVER_MAX regions, in no order.
enum { COVER_MAX = 16 };
typedef struct cover {
    uint32_t n;
    region at[COVER_MAX];
} cover;

// Exactly what v touches, its dynamic part ignored. false: not of region's form.
bool region_exact(const ir *p, const ir_view *v, region *out);
// The smallest single run in each partition that holds all that v touches.
region region_bound(const ir *p, const ir_view *v);
region region_whole(const ir_tensor *t);

// Adds r, merging greedily. A region that finds no room is dropped: less is proven, never more.
void cover_add(cover *c, region r);
bool cover_has(const cover *c, const region *r);

#endif
