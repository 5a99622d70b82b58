// Insertion-ordered hash tables: dict and set of the language, and attribute tables.
#include "lower/interp.h"

#include <string.h>

enum { SMALL = 8 };

static void fill_slots(vdict *d)
{
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t at = d->at[i].hash & (d->slots - 1);
        while (d->slot[at]) {
            at = (at + 1) & (d->slots - 1);
        }
        d->slot[at] = i + 1;
    }
}

static void index_dict(interp *it, vdict *d)
{
    d->slots = 32;
    while (d->slots < d->cap * 2) {
        d->slots *= 2;
    }
    d->slot = NEW_N(it->mem, uint32_t, d->slots);
    fill_slots(d);
}

static int same_key(interp *it, const dict_entry *e, uint32_t hash, value key)
{
    if (e->hash != hash || e->key.tag == V_UNDEF) {
        return 0;
    }
    return is_same(e->key, key) ? 1 : equal(it, e->key, key);
}

// Index of the entry, -1 absent, -2 error.
static int64_t find(interp *it, const vdict *d, uint32_t hash, value key)
{
    if (!d->slot) {
        for (uint32_t i = 0; i < d->n; i++) {
            int same = same_key(it, &d->at[i], hash, key);
            if (same) {
                return same < 0 ? -2 : (int64_t)i;
            }
        }
        return -1;
    }
    for (uint32_t at = hash & (d->slots - 1); d->slot[at]; at = (at + 1) & (d->slots - 1)) {
        uint32_t i = d->slot[at] - 1;
        int same = same_key(it, &d->at[i], hash, key);
        if (same) {
            return same < 0 ? -2 : (int64_t)i;
        }
    }
    return -1;
}

value dict_get(interp *it, vdict *d, value key)
{
    uint32_t hash;
    if (!hash_value(it, key, &hash)) {
        return VERR;
    }
    int64_t i = find(it, d, hash, key);
    return i == -2 ? VERR : i < 0 ? VUNDEF : d->at[i].val;
}

// Drops deleted entries; the order of the others stays.
static void compact(vdict *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->at[i].key.tag != V_UNDEF) {
            d->at[n++] = d->at[i];
        }
    }
    d->n = n;
    d->settled = d->settled < n ? d->settled : n;
    d->slot = NULL;
}

bool dict_set(interp *it, vdict *d, value key, value val)
{
    uint32_t hash;
    if (!hash_value(it, key, &hash)) {
        return false;
    }
    int64_t i = find(it, d, hash, key);
    if (i == -2) {
        return false;
    }
    if (i >= 0) {
        d->at[i].val = val;
        return true;
    }
    if (d->n == d->cap) {
        if (d->live < d->n / 2) {
            compact(d);
        } else {
            uint32_t cap = d->cap;
            d->at =
                vec_grow(it->mem, d->at, d->n, &cap, d->n + 1, sizeof *d->at, _Alignof(dict_entry));
            d->cap = cap;
            d->slot = NULL;
        }
        if (d->n >= SMALL) {
            index_dict(it, d);
        }
    }
    d->at[d->n] = (dict_entry){hash, key, val};
    if (d->slot) {
        uint32_t at = hash & (d->slots - 1);
        while (d->slot[at]) {
            at = (at + 1) & (d->slots - 1);
        }
        d->slot[at] = d->n + 1;
    }
    d->n++;
    d->live++;
    return true;
}

int dict_del(interp *it, vdict *d, value key)
{
    uint32_t hash;
    if (!hash_value(it, key, &hash)) {
        return -1;
    }
    int64_t i = find(it, d, hash, key);
    if (i < 0) {
        return i == -2 ? -1 : 0;
    }
    d->at[i].key = VUNDEF;
    d->at[i].val = VUNDEF;
    d->live--;
    while (d->n && d->at[d->n - 1].key.tag == V_UNDEF && !d->slot) {
        d->n--;
    }
    d->settled = d->settled < d->n ? d->settled : d->n;
    return 1;
}

// ---- order of sets

typedef struct int_table {
    int32_t *slot;  // entry, or -1
    uint64_t mask;
} int_table;

static int64_t int_hash(value v)
{
    int64_t h = (v.tag == V_BOOL ? v.u.b : v.u.i) % 0x1fffffffffffffff;
    return h == -1 ? -2 : h;
}

// CPython's set: ten neighbours, then a jump that mixes in more of the hash.
static void table_add(int_table *t, int64_t hash, int32_t entry)
{
    uint64_t perturb = (uint64_t)hash, i = perturb & t->mask;
    for (;;) {
        uint64_t last = i + 9 <= t->mask ? i + 9 : i;
        for (uint64_t k = i; k <= last; k++) {
            if (t->slot[k] < 0) {
                t->slot[k] = entry;
                return;
            }
        }
        perturb >>= 5;
        i = (i * 5 + 1 + perturb) & t->mask;
    }
}

static void table_make(interp *it, int_table *t, uint64_t size)
{
    t->slot = NEW_N(it->mem, int32_t, size);
    memset(t->slot, 0xff, size * sizeof *t->slot);
    t->mask = size - 1;
}

void set_settle(interp *it, vdict *d)
{
    if (d->settled >= d->n || d->n > INT32_MAX / 16) {
        return;
    }
    d->settled = d->n;
    bool ints = d->live > 1;
    for (uint32_t i = 0; i < d->n && ints; i++) {
        ints =
            d->at[i].key.tag == V_INT || d->at[i].key.tag == V_BOOL || d->at[i].key.tag == V_UNDEF;
    }
    if (!ints) {
        return;
    }
    arena_mark mark = arena_save(it->mem);
    int_table t, old;
    table_make(it, &t, 8);
    uint64_t used = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->at[i].key.tag == V_UNDEF) {
            continue;
        }
        table_add(&t, int_hash(d->at[i].key), (int32_t)i);
        if (++used * 5 >= t.mask * 3) {
            uint64_t size = 8;
            while (size <= (used > 50000 ? used * 2 : used * 4)) {
                size *= 2;
            }
            old = t;
            table_make(it, &t, size);
            for (uint64_t k = 0; k <= old.mask; k++) {
                if (old.slot[k] >= 0) {
                    table_add(&t, int_hash(d->at[old.slot[k]].key), old.slot[k]);
                }
            }
        }
    }
    dict_entry *sorted = NEW_N(it->mem, dict_entry, d->live);
    uint32_t n = 0;
    for (uint64_t k = 0; k <= t.mask; k++) {
        if (t.slot[k] >= 0) {
            sorted[n++] = d->at[t.slot[k]];
        }
    }
    memcpy(d->at, sorted, n * sizeof *sorted);
    arena_restore(it->mem, mark);
    d->n = d->settled = n;
    if (d->slot) {
        memset(d->slot, 0, d->slots * sizeof *d->slot);
        fill_slots(d);
    }
}

vdict *dict_copy(interp *it, const vdict *d)
{
    vdict *c = NEW(it->mem, vdict);
    c->dflt = d->dflt;
    c->cls = d->cls;
    c->cap = d->live < 8 ? 8 : d->live;
    c->at = NEW_N(it->mem, dict_entry, c->cap);
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->at[i].key.tag != V_UNDEF) {
            c->at[c->n++] = d->at[i];
        }
    }
    c->live = c->n;
    if (c->n > SMALL) {
        index_dict(it, c);
    }
    return c;
}

void dict_clear(interp *it, vdict *d)
{
    (void)it;
    d->n = d->live = d->settled = 0;
    d->slot = NULL;
}

// ---- attributes: the key is an interned name

static uint32_t attr_find(const attrs *a, sym id)
{
    if (!a->slot) {
        for (uint32_t i = 0; i < a->n; i++) {
            if (a->at[i].id == id) {
                return i;
            }
        }
        return UINT32_MAX;
    }
    for (uint32_t at = id->hash & (a->slots - 1); a->slot[at]; at = (at + 1) & (a->slots - 1)) {
        if (a->at[a->slot[at] - 1].id == id) {
            return a->slot[at] - 1;
        }
    }
    return UINT32_MAX;
}

value attrs_get(const attrs *a, sym id)
{
    uint32_t i = attr_find(a, id);
    return i == UINT32_MAX ? VUNDEF : a->at[i].val;
}

static void attrs_index(interp *it, attrs *a)
{
    a->slots = 32;
    while (a->slots < a->cap * 2) {
        a->slots *= 2;
    }
    a->slot = NEW_N(it->mem, uint32_t, a->slots);
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t at = a->at[i].id->hash & (a->slots - 1);
        while (a->slot[at]) {
            at = (at + 1) & (a->slots - 1);
        }
        a->slot[at] = i + 1;
    }
}

void attrs_set(interp *it, attrs *a, sym id, value v)
{
    uint32_t i = attr_find(a, id);
    if (i != UINT32_MAX) {
        a->at[i].val = v;
        return;
    }
    if (a->n == a->cap) {
        uint32_t cap = a->cap;
        a->at = vec_grow(it->mem, a->at, a->n, &cap, a->n + 1, sizeof *a->at, _Alignof(attr));
        a->cap = cap;
        a->slot = NULL;
        if (a->n >= SMALL) {
            attrs_index(it, a);
        }
    }
    a->at[a->n] = (attr){id, v};
    if (a->slot) {
        uint32_t at = id->hash & (a->slots - 1);
        while (a->slot[at]) {
            at = (at + 1) & (a->slots - 1);
        }
        a->slot[at] = a->n + 1;
    }
    a->n++;
}

bool attrs_del(attrs *a, sym id)
{
    uint32_t i = attr_find(a, id);
    if (i == UINT32_MAX) {
        return false;
    }
    memmove(a->at + i, a->at + i + 1, (a->n - i - 1) * sizeof *a->at);
    a->n--;
    a->slot = NULL;  // linear until it grows again: deletions are rare
    return true;
}
