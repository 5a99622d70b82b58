#ifndef LOWER_FIBER_H
#define LOWER_FIBER_H

#include <stdint.h>

// Stacks of their own for the bodies of generators. A fiber runs from fiber_enter() to its next
// fiber_leave(), or to the end of its function, and is entered from one thread only.
typedef struct fiber fiber;

typedef struct fiber_pool {
    fiber *all;   // every stack made
    fiber *idle;  // those that nobody uses
    uint32_t made;
} fiber_pool;

// NULL: no memory, or too many are in use.
fiber *fiber_get(fiber_pool *p);
void fiber_put(fiber_pool *p, fiber *f);
void fiber_pool_fini(fiber_pool *p);  // unfinished fibers are dropped as they stand

void fiber_start(fiber *f, void (*run)(void *), void *arg);  // fiber_enter() runs it
void fiber_enter(fiber *f);
void fiber_leave(fiber *f);
// The lowest address that a function may have its frame at and still call into C code.
char *fiber_stack_limit(const fiber *f);

#endif
