#include "sched/space.h"

enum { GRANULE_BYTES = 256 };

void space_init(space *s, arena *mem, uint64_t limit_bytes, uint64_t bank_bytes)
{
    *s = (space){.mem = mem, .limit_bytes = limit_bytes, .bank_bytes = bank_bytes};
    s->granule_bytes = GRANULE_BYTES;
    vec_push(mem, &s->holes, ((hole){0, limit_bytes}));
}

void space_reserve(space *s, uint64_t lo, uint64_t hi, span_time when)
{
    if (!s->reserved) {
        s->reserved = NEW_N(s->mem, time_list, s->limit_bytes / s->granule_bytes + 1);
    }
    if (hi > s->peak_bytes) {
        s->peak_bytes = hi;
    }
    for (uint64_t g = lo / s->granule_bytes; g * s->granule_bytes < hi; g++) {
        time_list *l = &s->reserved[g];
        span_time *back = l->n ? &l->at[l->n - 1] : NULL;
        if (back && when.first <= back->last + 1) {
            back->last = when.last > back->last ? when.last : back->last;
        } else {
            vec_push(s->mem, l, when);
        }
    }
}

static bool meets(const time_list *l, span_time when)
{
    uint32_t lo = 0, hi = l->n;  // the first entry that ends at or after when.first
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (l->at[mid].last < when.first) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < l->n && l->at[lo].first <= when.last;
}

uint64_t space_conflict(const space *s, uint64_t addr, uint64_t size, span_time when)
{
    if (!s->reserved) {
        return 0;
    }
    uint64_t lo = addr / s->granule_bytes, g = (addr + size - 1) / s->granule_bytes;
    for (;; g--) {
        if (meets(&s->reserved[g], when)) {
            return (g + 1) * s->granule_bytes;
        }
        if (g == lo) {
            return 0;
        }
    }
}

static uint64_t up(uint64_t v, uint64_t to)
{
    return (v + to - 1) / to * to;
}

uint64_t space_begin(const space *s, uint64_t lo, uint64_t size, uint32_t align)
{
    uint64_t at = up(lo, align);
    if (s->bank_bytes) {
        uint64_t in_bank = at % s->bank_bytes;
        if (in_bank && in_bank + size > s->bank_bytes) {
            at = up(at, s->bank_bytes);
        }
    }
    return at;
}

// Hole i loses [lo, hi), which lies in it.
static void carve(space *s, uint32_t i, uint64_t lo, uint64_t hi)
{
    hole h = s->holes.at[i];
    s->steps += s->holes.n - i;
    if (h.lo < lo && hi < h.hi) {
        vec_push(s->mem, &s->holes, ((hole){0, 0}));
        memmove(&s->holes.at[i + 1], &s->holes.at[i], (s->holes.n - 1 - i) * sizeof h);
        s->holes.at[i].hi = lo;
        s->holes.at[i + 1].lo = hi;
    } else if (h.lo < lo) {
        s->holes.at[i].hi = lo;
    } else if (hi < h.hi) {
        s->holes.at[i].lo = hi;
    } else {
        s->holes.n--;
        memmove(&s->holes.at[i], &s->holes.at[i + 1], (s->holes.n - i) * sizeof h);
    }
}

bool space_take(space *s, uint64_t size, uint32_t align, span_time when, uint64_t *addr)
{
    for (uint32_t i = 0; i < s->holes.n; i++) {
        hole h = s->holes.at[i];
        s->steps++;
        if (h.hi - h.lo < size) {
            continue;
        }
        uint64_t at = space_begin(s, h.lo, size, align);
        while (at + size <= h.hi) {
            uint64_t next = space_conflict(s, at, size, when);
            if (!next) {
                carve(s, i, at, at + size);
                if (at + size > s->peak_bytes) {
                    s->peak_bytes = at + size;
                }
                *addr = at;
                return true;
            }
            at = space_begin(s, next, size, align);
        }
    }
    return false;
}

void space_give(space *s, uint64_t lo, uint64_t hi)
{
    uint32_t a = 0, b = s->holes.n;  // the first hole after lo
    while (a < b) {
        uint32_t mid = a + (b - a) / 2;
        if (s->holes.at[mid].lo < lo) {
            a = mid + 1;
        } else {
            b = mid;
        }
    }
    s->steps += s->holes.n - a + 1;
    bool left = a > 0 && s->holes.at[a - 1].hi == lo;
    bool right = a < s->holes.n && s->holes.at[a].lo == hi;
    if (left && right) {
        s->holes.at[a - 1].hi = s->holes.at[a].hi;
        s->holes.n--;
        memmove(&s->holes.at[a], &s->holes.at[a + 1], (s->holes.n - a) * sizeof(hole));
    } else if (left) {
        s->holes.at[a - 1].hi = hi;
    } else if (right) {
        s->holes.at[a].lo = lo;
    } else {
        vec_push(s->mem, &s->holes, ((hole){0, 0}));
        memmove(&s->holes.at[a + 1], &s->holes.at[a], (s->holes.n - 1 - a) * sizeof(hole));
        s->holes.at[a] = (hole){lo, hi};
    }
}

uint64_t space_available(const space *s, span_time when, uint64_t *largest)
{
    uint64_t sum = 0;
    *largest = 0;
    for (uint32_t i = 0; i < s->holes.n; i++) {
        uint64_t at = s->holes.at[i].lo, hi = s->holes.at[i].hi, run = 0;
        while (at < hi) {
            uint64_t end = s->reserved ? (at / s->granule_bytes + 1) * s->granule_bytes : hi;
            end = end < hi ? end : hi;
            bool taken = s->reserved && meets(&s->reserved[at / s->granule_bytes], when);
            run = taken ? 0 : run + (end - at);
            sum += taken ? 0 : end - at;
            *largest = run > *largest ? run : *largest;
            at = end;
        }
    }
    return sum;
}
