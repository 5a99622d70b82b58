#include "base/intern.h"

#include <string.h>

uint32_t hash_bytes(const void *p, size_t len)
{
    const unsigned char *b = p;
    uint64_t h = 0x9e3779b97f4a7c15u ^ len;
    while (len >= 8) {
        uint64_t w;
        memcpy(&w, b, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
        b += 8;
        len -= 8;
    }
    uint64_t w = 0;
    for (size_t i = 0; i < len; i++) {
        w |= (uint64_t)b[i] << (8 * i);
    }
    h = (h ^ w) * 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h ^ (h >> 29));
}

void intern_init(intern *t, arena *mem)
{
    *t = (intern){.mem = mem, .cap = 1024};
    t->slot = NEW_N(mem, name_rec *, t->cap);
}

static void rehash(intern *t)
{
    uint32_t cap = t->cap * 2;
    name_rec **slot = NEW_N(t->mem, name_rec *, cap);
    for (uint32_t i = 0; i < t->cap; i++) {
        if (t->slot[i]) {
            uint32_t at = t->slot[i]->hash & (cap - 1);
            while (slot[at]) {
                at = (at + 1) & (cap - 1);
            }
            slot[at] = t->slot[i];
        }
    }
    t->slot = slot;
    t->cap = cap;
}

sym intern_add(intern *t, const char *p, size_t len)
{
    uint32_t h = hash_bytes(p, len);
    uint32_t at = h & (t->cap - 1);
    for (; t->slot[at]; at = (at + 1) & (t->cap - 1)) {
        const name_rec *r = t->slot[at];
        if (r->hash == h && r->len == len && memcmp(r->text, p, len) == 0) {
            return r;
        }
    }
    name_rec *r = arena_alloc(t->mem, sizeof *r + len + 1, _Alignof(name_rec), 1);
    r->len = (uint32_t)len;
    r->hash = h;
    if (len) {
        memcpy(r->text, p, len);
    }
    t->slot[at] = r;
    if (++t->count * 2 > t->cap) {
        rehash(t);
    }
    return r;
}

sym intern_cstr(intern *t, const char *text)
{
    return intern_add(t, text, strlen(text));
}
