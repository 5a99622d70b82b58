#include "base/vec.h"

void *vec_grow(arena *a, void *old, uint32_t n, uint32_t *cap, uint32_t need, size_t size,
               size_t align)
{
    uint64_t want = *cap ? (uint64_t)*cap * 2 : 8;
    if (want < need) {
        want = need;
    }
    if (want > UINT32_MAX) {
        longjmp(*a->oom, 1);
    }
    void *p = arena_alloc(a, size, align, (size_t)want);
    if (n) {
        memcpy(p, old, (size_t)n * size);
    }
    *cap = (uint32_t)want;
    return p;
}
