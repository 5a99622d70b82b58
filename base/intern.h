#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/arena.h"

#include <stdbool.h>

// An interned string: equal text is the same pointer, for the life of the table's arena.
typedef struct name_rec {
    uint32_t len;
    uint32_t hash;
    void *user;  // free for one stage at a time (keyword tables and the like); NULL at first
    char text[];
} name_rec;
typedef const name_rec *sym;

typedef struct intern {
    arena *mem;
    name_rec **slot;  // power of two, open addressing
    uint32_t cap, count;
} intern;

void intern_init(intern *t, arena *mem);
sym intern_add(intern *t, const char *p, size_t len);
sym intern_cstr(intern *t, const char *text);

// 32-bit hash of bytes; the same on every machine.
uint32_t hash_bytes(const void *p, size_t len);

#endif
