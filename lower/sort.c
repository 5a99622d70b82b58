// list.sort and sorted: stable, runs of insertion sort merged.
#include "lower/interp.h"

#include <string.h>

typedef struct sort_item {
    value key, val;
} sort_item;

typedef struct sorter {
    interp *it;
    bool reverse;
} sorter;

// Must b go before a, which stands left of it? -1 error.
static int goes_before(const sorter *s, const value *b, const value *a)
{
    const value *x = s->reverse ? a : b, *y = s->reverse ? b : a;
    if (x->tag == V_INT && y->tag == V_INT) {
        return x->u.i < y->u.i;
    }
    return less(s->it, *x, *y);
}

static bool insertion_sort(const sorter *s, sort_item *at, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        sort_item x = at[i];
        uint32_t j = i;
        while (j > 0) {
            int r = goes_before(s, &x.key, &at[j - 1].key);
            if (r < 0) {
                at[j] = x;
                return false;
            }
            if (!r) {
                break;
            }
            at[j] = at[j - 1];
            j--;
        }
        at[j] = x;
    }
    return true;
}

// Merges at[0..m) and at[m..n) through tmp.
static bool merge(const sorter *s, sort_item *at, uint32_t m, uint32_t n, sort_item *tmp)
{
    if (m >= n) {
        return true;
    }
    uint32_t i = 0, j = m, k = 0;
    bool ok = true;
    while (ok && i < m && j < n) {
        int r = goes_before(s, &at[j].key, &at[i].key);
        ok = r >= 0;
        tmp[k++] = r > 0 ? at[j++] : at[i++];
    }
    memcpy(tmp + k, at + i, (m - i) * sizeof *at);
    k += m - i;
    memcpy(tmp + k, at + j, (n - j) * sizeof *at);
    memcpy(at, tmp, n * sizeof *at);
    return ok;
}

static bool merge_sort(const sorter *s, sort_item *at, uint32_t n)
{
    enum { RUN = 16 };
    for (uint32_t i = 0; i < n; i += RUN) {
        if (!insertion_sort(s, at + i, n - i < RUN ? n - i : RUN)) {
            return false;
        }
    }
    sort_item *tmp = n > RUN ? NEW_N(s->it->mem, sort_item, n) : NULL;
    for (uint64_t w = RUN; w < n; w *= 2) {
        for (uint64_t i = 0; i + w < n; i += 2 * w) {
            uint64_t size = n - i < 2 * w ? n - i : 2 * w;
            if (!merge(s, at + i, (uint32_t)w, (uint32_t)size, tmp) || !interp_step(s->it)) {
                return false;
            }
        }
    }
    return true;
}

value sort_list(interp *it, vlist *l, value key, bool reverse)
{
    // The list is empty while it is sorted: a key function that changes it is found out.
    vlist all = *l;
    *l = (vlist){0};
    sort_item *at = NEW_N(it->mem, sort_item, all.n);
    bool ok = true;
    for (uint32_t i = 0; ok && i < all.n; i++) {
        at[i] = (sort_item){all.at[i], all.at[i]};
        if (key.tag != V_NONE) {
            at[i].key = call_values(it, key, &all.at[i], 1);
            ok = !IS_ERR(at[i].key);
        }
    }
    if (ok) {
        ok = merge_sort(&(sorter){it, reverse}, at, all.n);
        for (uint32_t i = 0; i < all.n; i++) {
            all.at[i] = at[i].val;
        }
    }
    bool changed = l->at || l->n;
    *l = all;
    if (!ok) {
        return VERR;
    }
    return changed ? value_error(it, "list modified during sort") : VNONE;
}
