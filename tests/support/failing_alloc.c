#include "tests/support/failing_alloc.h"

#include <stdatomic.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

// Any thread allocates.
static atomic_long left = -1;
static atomic_int hit, once;
static atomic_size_t bytes;

static void set(long n, int only)
{
    atomic_store(&left, -1);
    atomic_store(&hit, 0);
    atomic_store(&bytes, 0);
    atomic_store(&once, only);
    atomic_store(&left, n);
}

void failing_alloc_set(long n)
{
    set(n, 0);
}

void failing_alloc_once(long n)
{
    set(n, 1);
}

int failing_alloc_hit(void)
{
    return atomic_load(&hit);
}

size_t failing_alloc_bytes(void)
{
    return atomic_load(&bytes);
}

static int fails(size_t n)
{
    atomic_fetch_add(&bytes, n);
    long now = atomic_load(&left);
    while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1)) {
    }
    if (now != 0) {
        return 0;
    }
    if (atomic_load(&once)) {
        atomic_store(&left, -1);
    }
    atomic_store(&hit, 1);
    return 1;
}

void *__wrap_malloc(size_t n)
{
    return fails(n) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails(n * size) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails(n) ? NULL : __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return fails(n) ? NULL : __real_aligned_alloc(align, n);
}
