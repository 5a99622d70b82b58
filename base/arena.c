#define _DEFAULT_SOURCE  // MAP_ANONYMOUS, madvise
#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_MIN_BYTES = 64 * 1024, BLOCK_MAX_BYTES = 4 * 1024 * 1024 };

// Sanitizers look for pointers in malloc's memory only.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MAPS 0
#endif
#endif
#if !defined(MAPS)
#define MAPS 1
#endif

// Bytes at `at` and after it are zero: what is granted needs no clearing.
struct arena_block {
    arena_block *prev;
    size_t size_bytes;  // of all of it
    bool mapped;
    _Alignas(max_align_t) unsigned char data[];
};

// A block of zeros; NULL: no memory.
static arena_block *block_new(const arena *a, size_t size_bytes)
{
    arena_block *b = NULL;
    bool mapped = false;
    if (a->from && a->from->alloc) {
        b = a->from->alloc(a->from->alloc_ctx, size_bytes, _Alignof(max_align_t));
        if (b) {
            memset(b, 0, size_bytes);
        }
    } else if (MAPS && size_bytes >= BLOCK_MAX_BYTES) {
        void *p =
            mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        b = p == MAP_FAILED ? NULL : p;
        mapped = b != NULL;
#if defined(MADV_HUGEPAGE)
        if (b) {
            madvise(b, size_bytes, MADV_HUGEPAGE);
        }
#endif
    } else {
        b = calloc(1, size_bytes);
    }
    if (b) {
        b->size_bytes = size_bytes;
        b->mapped = mapped;
    }
    return b;
}

static void block_free(const arena *a, arena_block *b)
{
    if (b->mapped) {
        munmap(b, b->size_bytes);
    } else if (a->from && a->from->alloc) {
        a->from->release(a->from->alloc_ctx, b, b->size_bytes, _Alignof(max_align_t));
    } else {
        free(b);
    }
}

void arena_init(arena *a, size_t limit_bytes, jmp_buf *oom)
{
    *a = (arena){.limit_bytes = limit_bytes, .oom = oom};
}

static void free_blocks(arena *a)
{
    for (arena_block *b = a->head; b;) {
        arena_block *prev = b->prev;
        block_free(a, b);
        b = prev;
    }
    a->head = NULL;
}

void arena_fini(arena *a)
{
    for (arena *s = a->scratch; s; s = s->next) {  // they stand in blocks of a's
        arena_fini(s);
    }
    free_blocks(a);
    *a = (arena){.oom = a->oom, .from = a->from, .next = a->next};
}

arena *arena_scratch(arena *parent)
{
    arena *a = NEW(parent, arena);
    *a = (arena){.oom = parent->oom, .from = parent->from, .parent = parent};
    a->next = parent->scratch;
    parent->scratch = a;
    return a;
}

void arena_drop(arena *scratch)
{
    arena *p = scratch->parent;
    p->peak_bytes = p->used_bytes > p->peak_bytes ? p->used_bytes : p->peak_bytes;
    for (arena **at = &p->scratch; *at; at = &(*at)->next) {
        if (*at == scratch) {
            *at = scratch->next;
            break;
        }
    }
    size_t used = scratch->used_bytes;
    arena_fini(scratch);
    for (; p; p = p->parent) {
        p->used_bytes -= used;
    }
}

// Blocks double up to a cap, so that ten million nodes cost a few thousand mallocs.
static int grow(arena *a, size_t need)
{
    size_t size = a->head ? a->head->size_bytes * 2 : BLOCK_MIN_BYTES;
    if (size > BLOCK_MAX_BYTES) {
        size = BLOCK_MAX_BYTES;
    }
    if (need > SIZE_MAX - sizeof(arena_block)) {
        return 0;
    }
    if (size < need + sizeof(arena_block)) {
        size = need + sizeof(arena_block);
    }
    arena_block *b = block_new(a, size);
    if (!b) {
        return 0;
    }
    b->prev = a->head;
    a->head = b;
    a->at = b->data;
    a->end = (unsigned char *)b + size;
    return 1;
}

void *arena_alloc(arena *a, size_t size, size_t align, size_t count)
{
    if (count && size > SIZE_MAX / count) {
        longjmp(*a->oom, 1);
    }
    size_t n = size * count;
    size_t pad = (size_t)(-(uintptr_t)a->at) & (align - 1);
    for (const arena *p = a; p; p = p->parent) {
        if (p->limit_bytes && (n > p->limit_bytes || p->used_bytes > p->limit_bytes - n)) {
            longjmp(*a->oom, 1);
        }
    }
    if (!a->head || (size_t)(a->end - a->at) < pad || (size_t)(a->end - a->at) - pad < n) {
        if (n > SIZE_MAX - align || !grow(a, n + align)) {
            longjmp(*a->oom, 1);
        }
        pad = (size_t)(-(uintptr_t)a->at) & (align - 1);
    }
    unsigned char *p = a->at + pad;
    a->at = p + n;
    for (; a; a = a->parent) {
        a->used_bytes += n;
    }
    return p;
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
    // Of a block that was left for a newer one it is not known how much was used.
    unsigned char *used = a->head == m.head ? a->at : m.end;
    while (a->head != m.head) {
        arena_block *prev = a->head->prev;
        block_free(a, a->head);
        a->head = prev;
    }
    if (m.at) {
        memset(m.at, 0, (size_t)(used - m.at));
    }
    a->at = m.at;
    a->end = m.end;
    a->used_bytes = m.used_bytes;
}
