#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/arena.h"

#include <string.h>

// A growable array in an arena: struct { T *at; uint32_t n, cap; }.
// Growing doubles and leaves the old storage in the arena.
#define VEC(T)             \
    struct {               \
        T *at;             \
        uint32_t n, cap;   \
    }

void *vec_grow(arena *a, void *old, uint32_t n, uint32_t *cap, uint32_t need, size_t size,
               size_t align);

// Room for `more` further elements.
#define vec_reserve(a, v, more)                                                                    \
    ((v)->n + (uint32_t)(more) <= (v)->cap                                                         \
         ? (void)0                                                                                 \
         : (void)((v)->at = vec_grow((a), (v)->at, (v)->n, &(v)->cap, (v)->n + (uint32_t)(more),   \
                                     sizeof *(v)->at, _Alignof(max_align_t))))
#define vec_push(a, v, x) (vec_reserve((a), (v), 1), (v)->at[(v)->n++] = (x))

#endif
