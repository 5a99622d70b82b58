#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <nki/context.h>

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

// A chain of blocks with one lifetime. Nothing in an arena is freed alone.
//
// Out of memory (or past limit_bytes) is one longjmp to `oom`, set by the boundary that
// owns the arena, with the value 1: code that allocates never sees NULL. Between setjmp and
// arena_fini no file, lock or malloc may be held by code that allocates from the arena.
typedef struct arena_block arena_block;

typedef struct arena {
    arena_block *head;
    unsigned char *at, *end;
    size_t used_bytes;   // sum of granted sizes, scratch arenas included, for statistics and limits
    size_t peak_bytes;   // the most that it was when a scratch arena was dropped
    size_t limit_bytes;  // 0: none
    jmp_buf *oom;        // required before the first allocation
    // Where blocks come from; set before the first allocation. NULL: the C library and, for large
    // blocks, mappings on huge pages. Must outlive the arena.
    const nki_allocator *from;
    struct arena *parent, *scratch,
        *next;  // of a scratch arena; the newest of its own; the one before
} arena;

typedef struct arena_mark {
    arena_block *head;
    unsigned char *at, *end;
    size_t used_bytes;
} arena_mark;

void arena_init(arena *a, size_t limit_bytes, jmp_buf *oom);
void arena_fini(arena *a);

// Zeroed storage for `count` objects. Never NULL. align is a power of two.
void *arena_alloc(arena *a, size_t size, size_t align, size_t count);

// A zero-terminated copy of len bytes.
char *arena_text(arena *a, const char *p, size_t len);
// printf into the arena.
char *arena_printf(arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// An arena for what is needed for a while. It counts against the limit of `parent` and jumps where
// that jumps; what is not dropped by then goes with the parent.
arena *arena_scratch(arena *parent);
void arena_drop(arena *scratch);

// Everything allocated after the mark is released. Marks nest; scratch arenas made after it are
// dropped before.
arena_mark arena_save(const arena *a);
void arena_restore(arena *a, arena_mark m);

#define NEW(a, T)      ((T *)arena_alloc((a), sizeof(T), _Alignof(T), 1))
#define NEW_N(a, T, n) ((T *)arena_alloc((a), sizeof(T), _Alignof(T), (n)))

#endif
