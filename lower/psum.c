#include "lower/psum.h"

#include <string.h>

// One bit stands for this many bytes of a partition: the smallest element a matmul writes.
enum { GRANULE_BYTES = 2, ROW_WORDS = 128, BANDS_MIN = 4 };

psum_map *psum_of(psum_maps *m, const ir *p, uint32_t tensor)
{
    if (tensor >= m->n) {
        uint32_t n = tensor + 1;
        if (n > m->cap) {
            m->at = vec_grow(m->mem, m->at, m->n, &m->cap, n, sizeof *m->at, _Alignof(max_align_t));
        }
        memset(m->at + m->n, 0, (n - m->n) * sizeof *m->at);
        m->n = n;
    }
    psum_map *s = &m->at[tensor];
    if (!s->known) {
        uint64_t bits = (p->tensors.at[tensor].size_bytes + GRANULE_BYTES - 1) / GRANULE_BYTES;
        uint64_t words = (bits + 63) / 64;
        *s = (psum_map){.known = true, .words = (uint16_t)(words < ROW_WORDS ? words : ROW_WORDS)};
    }
    return s;
}

void psum_fresh(psum_maps *m, uint32_t tensor)
{
    if (tensor < m->n) {
        m->at[tensor].known = false;
    }
}

static psum_band *copy_bands(psum_maps *m, const psum_band *from, uint32_t n, uint32_t words)
{
    psum_band *to = NEW_N(m->mem, psum_band, n ? n : 1);
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].row = NEW_N(m->mem, uint64_t, words);
        memcpy(to[i].row, from[i].row, words * sizeof(uint64_t));
    }
    return to;
}

psum_map psum_copy(psum_maps *m, const psum_map *from)
{
    psum_map to = *from;
    to.bands = copy_bands(m, from->bands, from->nbands, from->words);
    to.cap = to.nbands;
    to.maybe = copy_bands(m, from->maybe, from->nmaybe, from->words);
    return to;
}

// ---- the bits of a view in one partition

static void set_range(uint64_t *row, uint32_t words, uint64_t lo, uint64_t hi)
{
    if (hi > (uint64_t)words * 64) {
        hi = (uint64_t)words * 64;
    }
    if (lo >= hi) {
        return;
    }
    uint64_t a = lo / 64, b = (hi - 1) / 64;
    uint64_t first = ~0ull << (lo % 64), last = ~0ull >> (63 - (hi - 1) % 64);
    if (a == b) {
        row[a] |= first & last;
        return;
    }
    row[a] |= first;
    for (uint64_t i = a + 1; i < b; i++) {
        row[i] = ~0ull;
    }
    row[b] |= last;
}

// Dimensions 1.. without those of count 1, neighbours merged; innermost last.
static uint32_t free_dims(const ir *p, const ir_view *v, ir_dim *out)
{
    const ir_dim *dims = ir_dims(p, v);
    uint32_t n = 0;
    for (uint32_t d = 1; d < ir_ndim(p, v); d++) {
        if (dims[d].count == 1) {
            continue;
        }
        if (n && out[n - 1].stride == dims[d].stride * (int64_t)dims[d].count) {
            out[n - 1].stride = dims[d].stride;
            out[n - 1].count *= dims[d].count;
        } else {
            out[n++] = dims[d];
        }
    }
    return n;
}

static void mark_elems(uint64_t *row, uint32_t words, const ir_dim *dims, uint32_t n, int64_t at,
                       uint32_t size)
{
    if (n == 0 || (n == 1 && dims[0].stride == 1)) {
        uint64_t lo = (uint64_t)(at < 0 ? 0 : at) * size;
        uint64_t hi = lo + (uint64_t)(n ? dims[0].count : 1) * size;
        set_range(row, words, lo / GRANULE_BYTES, (hi + GRANULE_BYTES - 1) / GRANULE_BYTES);
        return;
    }
    for (uint32_t i = 0; i < dims[0].count; i++) {
        mark_elems(row, words, dims + 1, n - 1, at + (int64_t)i * dims[0].stride, size);
    }
}

// Sets `row` to the view's bits. True when two of its elements are one place.
static bool row_of(const ir *p, const ir_view *v, uint64_t *row, uint32_t words)
{
    ir_dim dims[IR_MAX_DIMS];
    memset(row, 0, words * sizeof *row);
    uint32_t n = free_dims(p, v, dims), size = dtype_size((dtype)v->dtype);
    mark_elems(row, words, dims, n, v->offset, size);
    if (n < 2 && (n == 0 || dims[0].stride)) {
        return false;
    }
    uint64_t bits = 0;
    for (uint32_t w = 0; w < words; w++) {
        bits += (uint64_t)__builtin_popcountll(row[w]);
    }
    return bits * GRANULE_BYTES < ir_free_elems(p, v) * size;
}

static void partitions_of(const ir *p, const ir_view *v, uint32_t *lo, uint32_t *hi)
{
    *lo = v->part;
    *hi = v->part + ir_partitions(p, v);
}

// ---- bands

static void insert_band(psum_maps *m, psum_map *s, uint32_t at, psum_band b)
{
    if (s->nbands == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2u : BANDS_MIN;
        psum_band *bands = NEW_N(m->mem, psum_band, cap);
        if (s->nbands) {
            memcpy(bands, s->bands, s->nbands * sizeof *bands);
        }
        s->bands = bands;
        s->cap = (uint16_t)cap;
    }
    memmove(s->bands + at + 1, s->bands + at, (s->nbands - at) * sizeof *s->bands);
    s->bands[at] = b;
    s->nbands++;
}

// Makes `at` a border between bands: splits the one that holds it.
static void cut(psum_maps *m, psum_map *s, uint32_t at)
{
    for (uint32_t i = 0; i < s->nbands; i++) {
        psum_band *b = &s->bands[i];
        if (b->lo < at && at < b->hi) {
            psum_band upper = {(uint16_t)at, b->hi, NEW_N(m->mem, uint64_t, s->words)};
            memcpy(upper.row, b->row, s->words * sizeof(uint64_t));
            b->hi = (uint16_t)at;
            insert_band(m, s, i + 1, upper);
            return;
        }
    }
}

static void join(psum_map *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nbands; i++) {
        psum_band *b = &s->bands[i];
        psum_band *last = n ? &s->bands[n - 1] : NULL;
        if (last && last->hi == b->lo &&
            memcmp(last->row, b->row, s->words * sizeof(uint64_t)) == 0) {
            last->hi = b->hi;
        } else {
            s->bands[n++] = *b;
        }
    }
    s->nbands = (uint16_t)n;
}

static void mark_row(psum_maps *m, psum_map *s, uint32_t lo, uint32_t hi, const uint64_t *row)
{
    cut(m, s, lo);
    cut(m, s, hi);
    uint32_t at = lo, i = 0;
    while (at < hi) {
        while (i < s->nbands && s->bands[i].hi <= at) {
            i++;
        }
        if (i == s->nbands || s->bands[i].lo > at) {
            uint32_t end = i < s->nbands && s->bands[i].lo < hi ? s->bands[i].lo : hi;
            psum_band b = {(uint16_t)at, (uint16_t)end, NEW_N(m->mem, uint64_t, s->words)};
            memcpy(b.row, row, s->words * sizeof(uint64_t));
            insert_band(m, s, i, b);
        } else {
            for (uint32_t w = 0; w < s->words; w++) {
                s->bands[i].row[w] |= row[w];
            }
        }
        at = s->bands[i].hi;
    }
    join(s);
}

static bool same_as_last(const psum_map *s, const ir_view *v)
{
    return s->last_ap && s->last_ap == v->ap + 1 && s->last_offset == v->offset &&
           s->last_part == ((uint32_t)v->part << 8 | v->dtype);
}

void psum_mark(psum_maps *m, const ir *p, const ir_view *v)
{
    psum_map *s = psum_of(m, p, v->tensor);
    if (same_as_last(s, v) && !v->dyn) {
        return;
    }
    if (v->dyn) {
        s->unknown = true;
        return;
    }
    uint64_t row[ROW_WORDS];
    uint32_t lo, hi;
    partitions_of(p, v, &lo, &hi);
    row_of(p, v, row, s->words);
    mark_row(m, s, lo, hi, row);
    s->last_ap = v->ap + 1;
    s->last_offset = v->offset;
    s->last_part = (uint32_t)v->part << 8 | v->dtype;
}

// What the bands say of `row` in partitions [lo, hi): bit 0 something unwritten, bit 1 something
// written.
static unsigned survey(const psum_band *bands, uint32_t n, uint32_t words, uint32_t lo, uint32_t hi,
                       const uint64_t *row)
{
    unsigned seen = 0;
    uint32_t at = lo, first = 0;
    while (first < words && !row[first]) {
        first++;
    }
    while (words > first && !row[words - 1]) {
        words--;
    }
    for (uint32_t i = 0; i < n && at < hi; i++) {
        const psum_band *b = &bands[i];
        if (b->hi <= at) {
            continue;
        }
        if (b->lo >= hi) {
            break;
        }
        if (b->lo > at) {
            seen |= 1;
        }
        for (uint32_t w = first; w < words; w++) {
            seen |= (row[w] & ~b->row[w] ? 1u : 0u) | (row[w] & b->row[w] ? 2u : 0u);
        }
        at = b->hi;
    }
    return at < hi ? seen | 1 : seen;
}

psum_state psum_ask(psum_maps *m, const ir *p, const ir_view *v)
{
    psum_map *s = psum_of(m, p, v->tensor);
    if (same_as_last(s, v) && !v->dyn) {
        return PSUM_WRITTEN;
    }
    uint64_t row[ROW_WORDS];
    uint32_t lo, hi;
    bool twice = false;
    if (v->dyn) {  // anywhere in the tensor
        memset(row, 0, sizeof row);
        set_range(row, s->words, 0,
                  (p->tensors.at[v->tensor].size_bytes + GRANULE_BYTES - 1) / GRANULE_BYTES);
        lo = 0;
        hi = p->tensors.at[v->tensor].partitions;
    } else {
        partitions_of(p, v, &lo, &hi);
        twice = row_of(p, v, row, s->words);
    }
    unsigned seen = survey(s->bands, s->nbands, s->words, lo, hi, row);
    if (seen == 2) {
        return PSUM_WRITTEN;
    }
    if (s->unknown || (v->dyn && seen == 3) ||
        (s->nmaybe && survey(s->maybe, s->nmaybe, s->words, lo, hi, row) & 2)) {
        return PSUM_UNKNOWN;
    }
    return seen == 3 || twice ? PSUM_MIXED : PSUM_UNWRITTEN;
}

void psum_weaken(psum_maps *m, uint32_t tensor, const psum_map *before)
{
    psum_map *s = &m->at[tensor];
    psum_map now = *s;
    if (!now.known) {
        return;
    }
    // perhaps = perhaps before + what is written now; certain = what was before.
    psum_map perhaps = {.known = true, .words = now.words};
    for (uint32_t i = 0; i < before->nmaybe; i++) {
        mark_row(m, &perhaps, before->maybe[i].lo, before->maybe[i].hi, before->maybe[i].row);
    }
    for (uint32_t i = 0; i < now.nbands; i++) {
        mark_row(m, &perhaps, now.bands[i].lo, now.bands[i].hi, now.bands[i].row);
    }
    s->bands = before->bands;
    s->nbands = before->nbands;
    s->cap = before->cap;
    s->maybe = perhaps.bands;
    s->nmaybe = perhaps.nbands;
    s->last_ap = 0;
}

// ---- dividing a mixed region

// Whether each flattened element of one row of v is written, in `have` or by an earlier element.
static void row_runs(const ir *p, const ir_view *v, uint64_t *have, uint8_t *out)
{
    ir_dim dims[IR_MAX_DIMS];
    uint32_t n = free_dims(p, v, dims), idx[IR_MAX_DIMS] = {0};
    uint64_t total = ir_free_elems(p, v), size = dtype_size((dtype)v->dtype);
    int64_t at = v->offset;
    for (uint64_t i = 0; i < total; i++) {
        uint64_t bit = (uint64_t)at * size / GRANULE_BYTES;
        if (bit < ROW_WORDS * 64) {
            out[i] = have[bit / 64] >> (bit % 64) & 1u;
            have[bit / 64] |= 1ull << (bit % 64);
        }
        for (uint32_t d = n; d-- > 0;) {
            at += dims[d].stride;
            if (++idx[d] < dims[d].count) {
                break;
            }
            at -= dims[d].stride * (int64_t)dims[d].count;
            idx[d] = 0;
        }
    }
}

psum_piece *psum_split(psum_maps *m, const ir *p, const ir_view *v, uint32_t *count)
{
    psum_map *s = psum_of(m, p, v->tensor);
    uint64_t total = ir_free_elems(p, v), full[ROW_WORDS];
    uint8_t *now = NEW_N(m->mem, uint8_t, total);
    VEC(psum_piece) out = {0};
    uint32_t lo, hi;
    partitions_of(p, v, &lo, &hi);
    for (uint32_t at = lo, i = 0; at < hi;) {
        while (i < s->nbands && s->bands[i].hi <= at) {
            i++;
        }
        bool in = i < s->nbands && s->bands[i].lo <= at;
        uint32_t end = in ? s->bands[i].hi : i < s->nbands ? s->bands[i].lo : hi;
        end = end < hi ? end : hi;
        memset(full, 0, sizeof full);
        if (in) {
            memcpy(full, s->bands[i].row, s->words * sizeof *full);
        }
        row_runs(p, v, full, now);
        for (uint64_t a = 0, b; a < total; a = b) {
            for (b = a + 1; b < total && now[b] == now[a]; b++) {
            }
            vec_push(m->mem, &out,
                     ((psum_piece){at - lo, end - at, (uint32_t)a, (uint32_t)(b - a), now[a]}));
        }
        at = end;
    }
    *count = out.n;
    return out.at;
}
