#define _DEFAULT_SOURCE  // MAP_ANONYMOUS, MAP_NORESERVE, madvise
#include "device/internal.h"

#include <stdlib.h>
#include <sys/mman.h>

// A partition stride that is an odd number of cache lines: 128 rows then spread over the cache
// sets.
static int64_t padded_stride(uint32_t bytes)
{
    return (int64_t)((bytes / 64 | 1) + (bytes / 64 % 2 ? 2 : 0)) * 64;
}

int64_t core_sbuf_stride(const target *t)
{
    return padded_stride(t->sbuf_partition_bytes);
}

int64_t core_psum_stride(const target *t)
{
    return padded_stride(t->psum_partition_bytes);
}

static void *map_pages(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }
#if defined(MADV_HUGEPAGE)
    madvise(p, size, MADV_HUGEPAGE);
#endif
    return p;
}

void *aligned_new(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) & ~(size_t)63);
    return p ? memset(p, 0, size) : NULL;
}

device_core *device_core_create(const target *t)
{
    device_core *c = aligned_new(sizeof *c);
    if (!c) {
        return NULL;
    }
    c->t = t;
    c->sbuf_map = (size_t)core_sbuf_stride(t) * PARTS;
    c->psum_map = (size_t)core_psum_stride(t) * PARTS;
    c->sbuf = map_pages(c->sbuf_map);
    c->psum = map_pages(c->psum_map);
    if (!c->sbuf || !c->psum) {
        device_core_release(c);
        return NULL;
    }
    return c;
}

void workspace_fini(workspace *s)
{
    for (int i = 0; i < SLOTS; i++) {
        free(s->slot[i]);
    }
}

void device_core_release(device_core *c)
{
    if (!c) {
        return;
    }
    if (c->sbuf) {
        munmap(c->sbuf, c->sbuf_map);
    }
    if (c->psum) {
        munmap(c->psum, c->psum_map);
    }
    workspace_fini(&c->s);
    if (c->wide_sbuf) {
        munmap(c->wide_sbuf, c->wide_sbuf_cap);
    }
    if (c->wide_psum) {
        munmap(c->wide_psum, c->wide_psum_cap);
    }
    if (c->hbm) {
        munmap(c->hbm, c->hbm_cap);
    }
    if (c->shared) {
        munmap(c->shared, c->shared_cap);
    }
    check_core_release(c);
    free(c->stage);
    free(c->regs);
    free(c->loops);
    free(c->base);
    free(c);
}

static bool reserve(char **at, size_t *cap, size_t size)
{
    if (size <= *cap) {
        return true;
    }
    if (*at) {
        munmap(*at, *cap);
    }
    size = (size + 4095) & ~(size_t)4095;
    *at = map_pages(size);
    *cap = *at ? size : 0;
    return *at != NULL;
}

bool core_reserve_hbm(device_core *c, size_t size)
{
    return reserve(&c->hbm, &c->hbm_cap, size);
}

bool core_reserve_wide(device_core *c, const target *t)
{
    return reserve(&c->wide_sbuf, &c->wide_sbuf_cap, (size_t)core_sbuf_stride(t) * PARTS) &&
           reserve(&c->wide_psum, &c->wide_psum_cap, (size_t)core_psum_stride(t) * PARTS);
}

char *core_reserve_shared(device_core *c, size_t size)
{
    return reserve(&c->shared, &c->shared_cap, size ? size : 1) ? c->shared : NULL;
}

void *exec_slot(exec *x, int slot, size_t size)
{
    workspace *s = x->s;
    if (size > s->slot_cap[slot]) {
        free(s->slot[slot]);
        s->slot[slot] = aligned_alloc(64, (size + 63) & ~(size_t)63);
        s->slot_cap[slot] = s->slot[slot] ? size : 0;
        if (!s->slot[slot]) {
            x->status = NKI_ERR_NOMEM;
        }
    }
    return s->slot[slot];
}
