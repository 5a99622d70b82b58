#include "device/shadow.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64, BLOCK = 32768 };

static uint64_t words_of(uint64_t size)
{
    return (size + WORD - 1) / WORD;
}

static uint64_t granules_of(uint64_t size)
{
    return (size + SHADOW_GRANULE - 1) / SHADOW_GRANULE;
}

static uint64_t blocks_of(uint64_t size)
{
    return size / BLOCK + 1;
}

bool shadow_init(shadow *s, uint64_t size, bool written, bool shared)
{
    *s = (shadow){.size = size, .shared = shared};
    bool ok = true;
    if (!written) {
        s->written = calloc(words_of(size) + 1, sizeof *s->written);
        s->dirty = calloc(blocks_of(size), 1);
        ok = s->written && s->dirty;
    }
    for (int i = 0; shared && i < SHADOW_CORES * SHADOW_SIDES; i++) {
        shadow_side *side = &s->side[i / SHADOW_SIDES][i % SHADOW_SIDES];
        side->bits = calloc(words_of(size) + 1, sizeof *side->bits);
        // Read where a bit is set, so what is in it before does not matter.
        side->who = malloc((granules_of(size) + 1) * sizeof *side->who);
        side->lo = size;
        ok = ok && side->bits && side->who;
    }
    return ok;
}

void shadow_release(shadow *s)
{
    free(s->written);
    free(s->dirty);
    for (int i = 0; i < SHADOW_CORES * SHADOW_SIDES; i++) {
        shadow_side *side = &s->side[i / SHADOW_SIDES][i % SHADOW_SIDES];
        free(side->bits);
        free(side->who);
    }
    *s = (shadow){0};
}

void shadow_reset(shadow *s)
{
    for (uint64_t b = 0; b < blocks_of(s->size); b++) {
        if (s->dirty[b]) {
            uint64_t first = b * (BLOCK / WORD), n = words_of(s->size) + 1 - first;
            n = n < BLOCK / WORD ? n : BLOCK / WORD;
            memset(s->written + first, 0, n * sizeof *s->written);
            s->dirty[b] = 0;
        }
    }
}

// ---- ranges of bits

// The bits of word w that lie in [at, end).
static uint64_t mask_of(uint64_t w, uint64_t at, uint64_t end)
{
    uint64_t m = ~(uint64_t)0, first = w * WORD;
    if (at > first) {
        m &= ~(uint64_t)0 << (at - first);
    }
    if (end < first + WORD) {
        m &= ~(~(uint64_t)0 << (end - first));
    }
    return m;
}

// Returns how many bits changed.
static uint64_t set_bits(uint64_t *bits, uint64_t at, uint64_t len, bool on)
{
    uint64_t end = at + len, w = at / WORD, last = (end - 1) / WORD, changed = 0;
    for (; w <= last; w++) {
        uint64_t m = mask_of(w, at, end), now = on ? bits[w] | m : bits[w] & ~m;
        changed += (uint64_t)__builtin_popcountll(bits[w] ^ now);
        bits[w] = now;
    }
    return changed;
}

// The first bit that is `on`.
static uint64_t find_bit(const uint64_t *bits, uint64_t at, uint64_t len, bool on)
{
    uint64_t end = at + len, w = at / WORD, last = (end - 1) / WORD;
    for (; w <= last; w++) {
        uint64_t hit = (on ? bits[w] : ~bits[w]) & mask_of(w, at, end);
        if (hit) {
            return w * WORD + (uint64_t)__builtin_ctzll(hit);
        }
    }
    return SHADOW_NONE;
}

static void set_who(shadow_who *who, uint64_t at, uint64_t len, shadow_who w)
{
    for (uint64_t g = at / SHADOW_GRANULE, last = (at + len - 1) / SHADOW_GRANULE; g <= last; g++) {
        who[g] = w;
    }
}

// ---- written or not

void shadow_forget(shadow *s, uint64_t at, uint64_t len)
{
    if (s->written && len) {
        set_bits(s->written, at, len, false);
    }
}

uint64_t shadow_write(shadow *s, uint64_t at, uint64_t len)
{
    if (!s->written || !len) {
        return 0;
    }
    for (uint64_t b = at / BLOCK; b <= (at + len - 1) / BLOCK; b++) {
        s->dirty[b] = 1;
    }
    return set_bits(s->written, at, len, true);
}

uint64_t shadow_unwritten(const shadow *s, uint64_t at, uint64_t len)
{
    return s->written && len ? find_bit(s->written, at, len, false) : SHADOW_NONE;
}

uint64_t shadow_count_unwritten(const shadow *s, uint64_t at, uint64_t len)
{
    uint64_t n = 0, end = at + len;
    for (uint64_t w = at / WORD; s->written && len && w <= (end - 1) / WORD; w++) {
        n += (uint64_t)__builtin_popcountll(~s->written[w] & mask_of(w, at, end));
    }
    return n;
}

// ---- two cores

static void touch(shadow_side *side, uint64_t at, uint64_t len, shadow_who who)
{
    set_bits(side->bits, at, len, true);
    set_who(side->who, at, len, who);
    side->lo = at < side->lo ? at : side->lo;
    side->hi = at + len > side->hi ? at + len : side->hi;
}

static uint64_t meets(const shadow_side *side, uint64_t at, uint64_t len)
{
    return at < side->hi && at + len > side->lo ? find_bit(side->bits, at, len, true) : SHADOW_NONE;
}

uint64_t shadow_race(shadow *s, unsigned side, uint64_t at, uint64_t len, shadow_who who,
                     shadow_who *other, bool *wrote)
{
    if (!s->shared || !len) {
        return SHADOW_NONE;
    }
    unsigned core = shadow_core(who);
    const shadow_side *theirs = s->side[1 - core];
    unsigned found = SHADOW_WRITE;
    uint64_t hit = meets(&theirs[SHADOW_WRITE], at, len);
    if (hit == SHADOW_NONE && side == SHADOW_WRITE) {
        found = SHADOW_READ;
        hit = meets(&theirs[SHADOW_READ], at, len);
    }
    if (hit != SHADOW_NONE) {
        *other = theirs[found].who[hit / SHADOW_GRANULE];
        *wrote = found == SHADOW_WRITE;
    }
    touch(&s->side[core][side], at, len, who);
    return hit;
}

void shadow_meet(shadow *s)
{
    for (int i = 0; s->shared && i < SHADOW_CORES * SHADOW_SIDES; i++) {
        shadow_side *side = &s->side[i / SHADOW_SIDES][i % SHADOW_SIDES];
        if (side->hi > side->lo) {
            set_bits(side->bits, side->lo, side->hi - side->lo, false);
        }
        side->lo = s->size;
        side->hi = 0;
    }
}
