#ifndef RUNTIME_HOSTMEM_H
#define RUNTIME_HOSTMEM_H

#include <pthread.h>
#include <stddef.h>

// Memory of tensors. A large block that is given back is kept for the next one of its size: pages
// that the process has touched before cost nothing, fresh ones more than computing on them.

enum { HOSTMEM_ALIGN_BYTES = 64, HOSTMEM_KEPT = 8 };

typedef struct hostmem {
    pthread_mutex_t lock;
    size_t kept_bytes;
    size_t next;  // the slot to give up when all are taken
    struct hostmem_block {
        void *p;  // NULL: free slot
        size_t room;
    } kept[HOSTMEM_KEPT];
} hostmem;

void hostmem_init(hostmem *h);
void hostmem_fini(hostmem *h);
// 64-byte aligned, contents unspecified; NULL: out of memory.
void *hostmem_take(hostmem *h, size_t size_bytes);
void hostmem_give(hostmem *h, void *p, size_t size_bytes);  // the size it was taken with

#endif
