#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MIN_BYTES = 64 * 1024, BLOCK_MAX_BYTES = 4 * 1024 * 1024 };

struct arena_block {
    arena_block *prev;
    size_t cap;
    _Alignas(max_align_t) unsigned char data[];
};

void arena_init(arena *a, size_t limit_bytes, jmp_buf *oom)
{
    *a = (arena){.limit_bytes = limit_bytes, .oom = oom};
}

void arena_fini(arena *a)
{
    for (arena_block *b = a->head; b;) {
        arena_block *prev = b->prev;
        free(b);
        b = prev;
    }
    *a = (arena){.oom = a->oom};
}

// Blocks double up to a cap, so that ten million nodes cost a few thousand mallocs.
static int grow(arena *a, size_t need)
{
    size_t cap = a->head ? a->head->cap * 2 : BLOCK_MIN_BYTES;
    if (cap > BLOCK_MAX_BYTES) {
        cap = BLOCK_MAX_BYTES;
    }
    if (cap < need) {
        cap = need;
    }
    if (cap > SIZE_MAX - sizeof(arena_block)) {
        return 0;
    }
    arena_block *b = malloc(sizeof *b + cap);
    if (!b) {
        return 0;
    }
    b->prev = a->head;
    b->cap = cap;
    a->head = b;
    a->at = b->data;
    a->end = b->data + cap;
    return 1;
}

void *arena_alloc(arena *a, size_t size, size_t align, size_t count)
{
    if (count && size > SIZE_MAX / count) {
        longjmp(*a->oom, 1);
    }
    size_t n = size * count;
    size_t pad = (size_t)(-(uintptr_t)a->at) & (align - 1);
    if (a->limit_bytes && (n > a->limit_bytes || a->used_bytes > a->limit_bytes - n)) {
        longjmp(*a->oom, 1);
    }
    if (!a->head || (size_t)(a->end - a->at) < pad || (size_t)(a->end - a->at) - pad < n) {
        if (n > SIZE_MAX - align || !grow(a, n + align)) {
            longjmp(*a->oom, 1);
        }
        pad = (size_t)(-(uintptr_t)a->at) & (align - 1);
    }
    unsigned char *p = a->at + pad;
    a->at = p + n;
    a->used_bytes += n;
    return n ? memset(p, 0, n) : p;
}

char *arena_text(arena *a, const char *p, size_t len)
{
    char *t = NEW_N(a, char, len + 1);
    if (len) {
        memcpy(t, p, len);
    }
    return t;
}

char *arena_printf(arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char small[256];
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) {
        return arena_text(a, "", 0);
    }
    if ((size_t)n < sizeof small) {
        return arena_text(a, small, (size_t)n);
    }
    char *t = NEW_N(a, char, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(t, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return t;
}

arena_mark arena_save(const arena *a)
{
    return (arena_mark){a->head, a->at, a->end, a->used_bytes};
}

void arena_restore(arena *a, arena_mark m)
{
    while (a->head != m.head) {
        arena_block *prev = a->head->prev;
        free(a->head);
        a->head = prev;
    }
    a->at = m.at;
    a->end = m.end;
    a->used_bytes = m.used_bytes;
}
