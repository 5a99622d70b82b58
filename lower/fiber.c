#define _DEFAULT_SOURCE  // MAP_ANONYMOUS, MAP_NORESERVE
#include "lower/fiber.h"

#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
enum { STACK_BYTES = 4 * 1024 * 1024, FIBERS_MAX = 512 };  // frames are several times as large
#else
enum { STACK_BYTES = 1024 * 1024, FIBERS_MAX = 8192 };
#endif

// For what does not ask stack_ok(): the parser, natives.
enum { RESERVE_BYTES = STACK_BYTES / 8 * 3 };

// Stands at the top of its own stack.
struct fiber {
    fiber *next_all, *next_idle;
    char *base;  // of the mapping: a guard page, the stack
    size_t size_bytes;
    ucontext_t in, out;
    void (*run)(void *);
    void *arg;
#ifdef FIBER_ASAN
    void *fake_in, *fake_out;
    const void *outer_base;
    size_t outer_bytes;
#endif
};

fiber *fiber_get(fiber_pool *p)
{
    fiber *f = p->idle;
    if (f) {
        p->idle = f->next_idle;
        return f;
    }
    if (p->made == FIBERS_MAX) {
        return NULL;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = STACK_BYTES + page;
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(base, page, PROT_NONE) != 0) {
        munmap(base, size);
        return NULL;
    }
    size_t own = (sizeof *f + 63) & ~(size_t)63;
    f = (fiber *)(void *)(base + size - own);
    *f = (fiber){.base = base, .size_bytes = size, .next_all = p->all};
    p->all = f;
    p->made++;
    return f;
}

void fiber_put(fiber_pool *p, fiber *f)
{
    f->next_idle = p->idle;
    p->idle = f;
}

void fiber_pool_fini(fiber_pool *p)
{
    for (fiber *f = p->all; f;) {
        fiber *next = f->next_all;
        char *base = f->base;
        size_t size = f->size_bytes;
#ifdef FIBER_ASAN
        __asan_unpoison_memory_region(base, size);
#endif
        munmap(base, size);
        f = next;
    }
    *p = (fiber_pool){0};
}

static char *stack_low(const fiber *f)
{
    return f->base + (f->size_bytes - STACK_BYTES);
}

static size_t stack_bytes(const fiber *f)
{
    return (size_t)((const char *)f - stack_low(f));
}

char *fiber_stack_limit(const fiber *f)
{
    return stack_low(f) + RESERVE_BYTES;
}

// makecontext passes ints: a pointer travels as two.
static void entry(unsigned hi, unsigned lo)
{
    fiber *f = (fiber *)((uintptr_t)hi << 32 | lo);  // NOLINT: the halves of a pointer
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(NULL, &f->outer_base, &f->outer_bytes);
#endif
    f->run(f->arg);
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(NULL, f->outer_base, f->outer_bytes);
#endif
    setcontext(&f->out);
}

void fiber_start(fiber *f, void (*run)(void *), void *arg)
{
    f->run = run;
    f->arg = arg;
#ifdef FIBER_ASAN
    __asan_unpoison_memory_region(stack_low(f), stack_bytes(f));
#endif
    getcontext(&f->in);
    f->in.uc_stack.ss_sp = stack_low(f);
    f->in.uc_stack.ss_size = stack_bytes(f);
    f->in.uc_link = NULL;
    uint64_t p = (uintptr_t)f;
    makecontext(&f->in, (void (*)(void))entry, 2, (unsigned)(p >> 32), (unsigned)p);
}

void fiber_enter(fiber *f)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&f->fake_out, stack_low(f), stack_bytes(f));
#endif
    swapcontext(&f->out, &f->in);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(f->fake_out, NULL, NULL);
#endif
}

void fiber_leave(fiber *f)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&f->fake_in, f->outer_base, f->outer_bytes);
#endif
    swapcontext(&f->in, &f->out);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(f->fake_in, &f->outer_base, &f->outer_bytes);
#endif
}
