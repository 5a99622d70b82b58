#define _DEFAULT_SOURCE  // madvise
#include "runtime/hostmem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const size_t SMALL_BYTES = (size_t)64 << 10;  // below: malloc's own lists do
static const size_t HUGE_BYTES = (size_t)2 << 20;    // a huge page
static const size_t KEPT_BYTES = (size_t)256 << 20;  // of all that are kept

void hostmem_init(hostmem *h)
{
    memset(h, 0, sizeof *h);
    pthread_mutex_init(&h->lock, NULL);
}

void hostmem_fini(hostmem *h)
{
    for (size_t i = 0; i < HOSTMEM_KEPT; i++) {
        free(h->kept[i].p);
    }
    pthread_mutex_destroy(&h->lock);
}

static size_t align_of(size_t size_bytes)
{
    return size_bytes < SMALL_BYTES      ? HOSTMEM_ALIGN_BYTES
           : size_bytes < 2 * HUGE_BYTES ? SMALL_BYTES
                                         : HUGE_BYTES;
}

// Never 0. The caller bounds size_bytes by SIZE_MAX / 2.
static size_t room_of(size_t size_bytes)
{
    size_t align = align_of(size_bytes);
    return size_bytes ? (size_bytes + align - 1) / align * align : align;
}

void *hostmem_take(hostmem *h, size_t size_bytes)
{
    size_t room = room_of(size_bytes);
    void *p = NULL;
    if (room >= SMALL_BYTES) {
        pthread_mutex_lock(&h->lock);
        for (size_t i = 0; i < HOSTMEM_KEPT && !p; i++) {
            if (h->kept[i].p && h->kept[i].room == room) {
                p = h->kept[i].p;
                h->kept[i].p = NULL;
                h->kept_bytes -= room;
            }
        }
        pthread_mutex_unlock(&h->lock);
    }
    if (p) {
        return p;
    }
    size_t align = align_of(size_bytes);
    p = aligned_alloc(align < HUGE_BYTES ? HOSTMEM_ALIGN_BYTES : align, room);
#if defined(MADV_HUGEPAGE)
    if (p && align == HUGE_BYTES) {
        madvise(p, room, MADV_HUGEPAGE);
    }
#endif
    return p;
}

void hostmem_give(hostmem *h, void *p, size_t size_bytes)
{
    size_t room = room_of(size_bytes);
    if (!p || room < SMALL_BYTES || room > KEPT_BYTES) {
        free(p);
        return;
    }
    pthread_mutex_lock(&h->lock);
    for (size_t tries = 0; tries < HOSTMEM_KEPT; tries++) {
        struct hostmem_block *b = &h->kept[h->next];
        if (b->p && h->kept_bytes + room > KEPT_BYTES) {  // the oldest makes room
            free(b->p);
            b->p = NULL;
            h->kept_bytes -= b->room;
        }
        if (!b->p && h->kept_bytes + room <= KEPT_BYTES) {
            *b = (struct hostmem_block){p, room};
            h->kept_bytes += room;
            p = NULL;
            break;
        }
        h->next = (h->next + 1) % HOSTMEM_KEPT;
    }
    if (p) {  // every slot holds a block: replace the one in turn
        struct hostmem_block *b = &h->kept[h->next];
        free(b->p);
        h->kept_bytes += room - b->room;
        *b = (struct hostmem_block){p, room};
        h->next = (h->next + 1) % HOSTMEM_KEPT;
    }
    pthread_mutex_unlock(&h->lock);
}
