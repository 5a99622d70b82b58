#include "device/internal.h"

#include <stdlib.h>

// Instructions that move or search elements by position.

enum { SLOT_ROW = 0, SLOT_AUX = 1, WAYS = 8, CORE_LANES = 16 };

static bool need(binder *b, int n)
{
    for (int i = 0; i < n; i++) {
        if (!b->o[i].l) {
            return bind_fail(b, "a tensor is missing");
        }
    }
    return true;
}

// A whole row as fp32, in place or in a slot.
static const f32u *row_f32(exec *x, const tile *t, uint32_t r, int slot)
{
    size_t n = t->l->n;
    if (t->l->contig && t->dtype == DT_float32) {
        return (const f32u *)(t->p + r * t->ps);
    }
    float *buf = exec_slot(x, slot, n * sizeof *buf);
    for (size_t i = 0; buf && i < n; i += CHUNK) {
        size_t m = n - i < CHUNK ? n - i : CHUNK;
        crows c = load_rows(x, t, r, 1, i, m, buf + i);
        if (c.p != buf + i) {
            memcpy(buf + i, c.p, m * sizeof *buf);
        }
    }
    return buf;
}

// A whole row of bits, in place or in a slot.
static const char *row_bits(exec *x, const tile *t, uint32_t r, int slot)
{
    const char *p = t->p + r * t->ps;
    if (t->l->contig) {
        return p;
    }
    char *buf = exec_slot(x, slot, t->l->n * t->size);
    if (buf) {
        gather(buf, p, t->l, 0, t->l->n, t->size);
    }
    return buf;
}

// Order of max8 and topk: by value, NaN above all.
static inline bool above(float a, float b)
{
    return a > b || (a != a && b == b);
}

// ---- eight at a time

static void run_max8(exec *x, const bound *b, const tile *t)
{
    (void)b;
    size_t n = t[1].l->n;
    for (uint32_t r = 0; r < t[1].parts; r++) {
        const f32u *v = row_f32(x, &t[1], r, SLOT_ROW);
        float top[WAYS];
        size_t have = 0;
        for (size_t i = 0; v && i < n; i++) {
            if (have == WAYS && !above(v[i], top[WAYS - 1])) {
                continue;
            }
            size_t at = have < WAYS ? have++ : WAYS - 1;
            for (; at > 0 && above(v[i], top[at - 1]); at--) {
                top[at] = top[at - 1];
            }
            top[at] = v[i];
        }
        if (v) {
            store_rows(x, &t[0], r, 1, 0, WAYS, (crows){top, 0});
        }
    }
}

bool bind_max8(binder *b)
{
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 || !need(b, 2)) {
        return false;
    }
    if (b->o[0].l->n != WAYS || b->o[1].l->n < WAYS || b->o[0].l->parts != b->o[1].l->parts) {
        return bind_fail(b, "dst is not 8 values a partition of at least 8");
    }
    return bind_computes(b, 0) && bind_computes(b, 1) && bind_done(b, run_max8, NULL, false);
}

// The first position from `from` where v equals x; n when there is none.
static size_t find(const f32u *v, size_t n, size_t from, float x)
{
    size_t i = from;
    while (i < n && v[i] != x) {
        i++;
    }
    return i;
}

static void run_find_index8(exec *x, const bound *b, const tile *t)
{
    (void)b;
    size_t n = t[1].l->n;
    for (uint32_t r = 0; r < t[1].parts; r++) {
        const f32u *v = row_f32(x, &t[1], r, SLOT_ROW);
        if (!v) {
            return;
        }
        const f32u *want = load_rows(x, &t[2], r, 1, 0, WAYS, x->s->buf[1]).p;
        uint32_t at[WAYS];
        for (int i = 0; i < WAYS; i++) {
            size_t from = 0;
            for (int j = 0; j < i; j++) {  // after the one that an equal value took
                if (want[j] == want[i]) {
                    from = at[j] == UINT32_MAX ? n : at[j] + 1;
                }
            }
            size_t pos = find(v, n, from, want[i]);
            at[i] = pos < n ? (uint32_t)pos : UINT32_MAX;
        }
        store_bits(x, &t[0], r, 0, WAYS, at);
    }
}

bool bind_nc_find_index8(binder *b)
{
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 ||
        bind_operand(b, 2, false) < 0 || !need(b, 3)) {
        return false;
    }
    uint32_t parts = b->o[1].l->parts;
    if (b->o[0].l->n != WAYS || b->o[2].l->n != WAYS || b->o[0].l->parts != parts ||
        b->o[2].l->parts != parts) {
        return bind_fail(b, "dst and vals are not 8 values a partition");
    }
    return bind_computes(b, 0) && bind_computes(b, 1) && bind_computes(b, 2) &&
           bind_done(b, run_find_index8, NULL, false);
}

typedef struct replace_args {
    float imm;
    int idx;  // operand, -1
} replace_args;

static void run_match_replace8(exec *x, const bound *b, const tile *t)
{
    const replace_args *a = b->a;
    size_t n = t[1].l->n;
    for (uint32_t r = 0; r < t[1].parts; r++) {
        const f32u *v = row_f32(x, &t[1], r, SLOT_ROW);
        float *out = exec_slot(x, SLOT_AUX, n * sizeof *out);
        if (!v || !out) {
            return;
        }
        const f32u *want = load_rows(x, &t[2], r, 1, 0, WAYS, x->s->buf[1]).p;
        uint32_t at[WAYS];
        memcpy(out, v, n * sizeof *out);
        for (int i = WAYS - 1; i >= 0; i--) {
            size_t from = 0;
            for (int j = i + 1; j < WAYS; j++) {
                if (want[j] == want[i]) {
                    from = at[j] == UINT32_MAX ? n : at[j] + 1;
                    break;
                }
            }
            size_t pos = find(v, n, from, want[i]);
            at[i] = pos < n ? (uint32_t)pos : UINT32_MAX;
        }
        for (int i = 0; i < WAYS; i++) {
            if (at[i] != UINT32_MAX) {
                out[at[i]] = a->imm;
            }
        }
        for (size_t i = 0; i < n; i += CHUNK) {
            store_rows(x, &t[0], r, 1, i, n - i < CHUNK ? n - i : CHUNK, (crows){out + i, 0});
        }
        if (a->idx >= 0) {
            store_bits(x, &t[a->idx], r, 0, WAYS, at);
        }
    }
}

bool bind_nc_match_replace8(binder *b)
{
    replace_args *a = BIND_ARGS(b, replace_args);
    ir_arg imm = bind_arg(b, 3);
    a->imm = imm.kind == IRA_F32 ? ira_float(imm) : (float)ira_integer(imm);
    a->idx = -1;
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 ||
        bind_operand(b, 2, false) < 0 || !need(b, 3)) {
        return false;
    }
    uint32_t parts = b->o[1].l->parts;
    if (b->o[2].l->n != WAYS || b->o[2].l->parts != parts) {
        return bind_fail(b, "vals is not 8 values a partition");
    }
    if (bind_has(b, 4)) {
        a->idx = bind_operand(b, 4, true);
        if (a->idx < 0) {
            return false;
        }
        if (b->o[a->idx].l->n != WAYS || b->o[a->idx].l->parts != parts) {
            return bind_fail(b, "dst_idx is not 8 values a partition");
        }
    }
    // Row by row the data is read whole before it is written: the same view is fine, but vals in
    // its own row too, so only an equal view goes unstaged.
    return bind_same_shape(b, 0, 1) && bind_computes(b, 0) && bind_computes(b, 1) &&
           bind_computes(b, 2) && bind_done(b, run_match_replace8, a, true);
}

// ---- shuffles and gathers

typedef struct shuffle_args {
    uint8_t mask[32];
} shuffle_args;

static void run_stream_shuffle(exec *x, const bound *b, const tile *t)
{
    const shuffle_args *a = b->a;
    (void)x;
    const tile *d = &t[0], *s = &t[1];
    for (uint32_t r = 0; r < d->parts; r++) {
        uint32_t m = a->mask[r % 32], from = r / 32 * 32 + m;
        if (m == 255 || from >= s->parts) {
            continue;
        }
        tile q = *d, p = *s;
        q.p += r * d->ps;
        p.p += from * s->ps;
        q.parts = p.parts = 1;
        copy_tile(&q, &p);
    }
}

bool bind_nc_stream_shuffle(binder *b)
{
    shuffle_args *a = BIND_ARGS(b, shuffle_args);
    ir_arg m = bind_arg(b, 2);
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 || !need(b, 2)) {
        return false;
    }
    if (m.kind != IRA_LIST || m.aux != 32 || (uint64_t)m.v + 32 > b->p->args.n) {
        return bind_fail(b, "shuffle_mask is not 32 numbers");
    }
    for (uint32_t i = 0; i < 32; i++) {
        int64_t v = ira_integer(b->p->args.at[m.v + i]);
        if (v != 255 && (v < 0 || v > 31)) {
            return bind_fail(b, "shuffle_mask has %lld", (long long)v);
        }
        a->mask[i] = (uint8_t)v;
    }
    if (b->o[0].l->n != b->o[1].l->n || b->o[0].size != b->o[1].size) {
        return bind_fail(b, "dst and src differ in size");
    }
    return bind_done(b, run_stream_shuffle, a, false);
}

typedef struct gather_args {
    uint64_t each, valid;
} gather_args;

static void run_local_gather(exec *x, const bound *b, const tile *t)
{
    const gather_args *a = b->a;
    const tile *d = &t[0], *s = &t[1], *ix = &t[2];
    unsigned size = s->size;
    for (uint32_t r = 0; r < d->parts; r++) {
        const char *row = row_bits(x, s, r, SLOT_ROW);
        char *out = exec_slot(x, SLOT_AUX, a->valid * a->each * size);
        if (!row || !out) {
            return;
        }
        for (uint64_t i = 0; i < a->valid; i++) {
            uint32_t p = r / CORE_LANES * CORE_LANES + (uint32_t)(i % CORE_LANES);
            int64_t id = tile_int(x, ix, p * ix->l->n + i / CORE_LANES);
            if (id < 0 || (uint64_t)id + a->each > s->l->n) {
                exec_oob(x, b, &b->o[2], "index", id, 0, (int64_t)(s->l->n - a->each));
                return;
            }
            memcpy(out + i * a->each * size, row + (size_t)id * size, a->each * size);
        }
        scatter(d->p + r * d->ps, d->l, 0, out, a->valid * a->each, size);
    }
}

bool bind_local_gather(binder *b)
{
    gather_args *a = BIND_ARGS(b, gather_args);
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 ||
        bind_operand(b, 2, false) < 0 || !need(b, 3)) {
        return false;
    }
    int64_t each = ira_integer(bind_arg(b, 3));
    uint64_t all = b->o[2].l->n * CORE_LANES;
    int64_t valid = bind_arg(b, 4).kind == IRA_NONE ? (int64_t)all : ira_integer(bind_arg(b, 4));
    uint32_t parts = b->o[0].l->parts;
    if (parts % CORE_LANES || b->o[1].l->parts != parts || b->o[2].l->parts != parts ||
        b->o[0].dtype != b->o[1].dtype) {
        return bind_fail(b,
                         "dst, src_buffer and index must have the same multiple of 16 partitions");
    }
    if (each < 1 || valid < 0 || (uint64_t)valid > all || (uint64_t)each > b->o[1].l->n ||
        (uint64_t)valid * (uint64_t)each > b->o[0].l->n || !dtype_is_int((dtype)b->o[2].dtype)) {
        return bind_fail(b, "%lld indices of %lld elements do not fit dst", (long long)valid,
                         (long long)each);
    }
    a->each = (uint64_t)each;
    a->valid = (uint64_t)valid;
    return bind_done(b, run_local_gather, a, false);
}

static void run_n_gather(exec *x, const bound *b, const tile *t)
{
    const tile *d = &t[0], *s = &t[1];
    unsigned size = s->size;
    bool is_signed = dtype_class_of((dtype)t[2].dtype) == DTC_I;
    for (uint32_t r = 0; r < d->parts; r++) {
        const char *row = row_bits(x, s, r, SLOT_ROW);
        for (uint64_t e0 = 0; row && e0 < d->l->n; e0 += CHUNK) {
            size_t n = d->l->n - e0 < CHUNK ? (size_t)(d->l->n - e0) : CHUNK;
            uint32_t *at = x->s->raw[1];
            char *out = (char *)x->s->raw[2];
            load_bits(x, &t[2], r, e0, n, at);
            for (size_t i = 0; i < n; i++) {
                int64_t id = is_signed ? (int64_t)(int32_t)at[i] : (int64_t)at[i];
                if (id < 0 || (uint64_t)id >= s->l->n) {
                    exec_oob(x, b, &b->o[2], "index", id, 0, (int64_t)s->l->n - 1);
                    return;
                }
                memcpy(out + i * size, row + (size_t)id * size, size);
            }
            scatter(d->p + r * d->ps, d->l, e0, out, n, size);
        }
    }
}

bool bind_nc_n_gather(binder *b)
{
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 ||
        bind_operand(b, 2, false) < 0 || !need(b, 3)) {
        return false;
    }
    if (!bind_same_shape(b, 0, 2)) {
        return false;
    }
    if (b->o[1].l->parts != b->o[0].l->parts || b->o[0].dtype != b->o[1].dtype ||
        !dtype_is_int((dtype)b->o[2].dtype)) {
        return bind_fail(b, "dst and data differ, or indices are not integers");
    }
    return bind_done(b, run_n_gather, NULL, false);
}

// ---- positions as data

static void store_ints(exec *x, const tile *t, uint32_t r, uint64_t e0, size_t n, const int32_t *v)
{
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t m = n - i < CHUNK ? n - i : CHUNK;
        if (t->dtype == DT_int32 || t->dtype == DT_uint32) {
            scatter(t->p + r * t->ps, t->l, e0 + i, v + i, m, 4);
        } else {
            x->k->load[DT_int32](x->s->buf[0], v + i, m);
            store_rows(x, t, r, 1, e0 + i, m, (crows){x->s->buf[0], 0});
        }
    }
}

static void run_sequence_bounds(exec *x, const bound *b, const tile *t)
{
    (void)b;
    size_t n = t[1].l->n;
    const f32u *f = NULL;
    const u32u *u = NULL;
    if (t[1].dtype == DT_float32) {
        f = row_f32(x, &t[1], 0, SLOT_ROW);
    } else {
        u = (const u32u *)(const void *)row_bits(x, &t[1], 0, SLOT_ROW);
    }
    int32_t *out = exec_slot(x, SLOT_AUX, 2 * n * sizeof *out);
    if ((!f && !u) || !out) {
        return;
    }
    for (size_t i = 0; i < n;) {
        size_t j = i + 1;
        bool zero = f ? f[i] == 0.0f : u[i] == 0;
        while (j < n && (f ? f[j] == f[i] : u[j] == u[i])) {
            j++;
        }
        for (size_t q = i; q < j; q++) {
            out[q] = zero ? (int32_t)n : (int32_t)i;
            out[n + q] = zero ? -1 : (int32_t)j;
        }
        i = j;
    }
    store_ints(x, &t[0], 0, 0, 2 * n, out);
}

bool bind_sequence_bounds(binder *b)
{
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 || !need(b, 2)) {
        return false;
    }
    const opnd *d = &b->o[0], *s = &b->o[1];
    if (d->l->parts != 1 || s->l->parts != 1 || d->l->n != 2 * s->l->n || d->dtype != s->dtype ||
        (s->dtype != DT_float32 && s->dtype != DT_int32) || s->l->n > INT32_MAX / 2) {
        return bind_fail(b, "dst is not [1, 2, n] for segment_ids [1, n] of float32 or int32");
    }
    return bind_done(b, run_sequence_bounds, NULL, false);
}

typedef struct nonzero_args {
    int32_t offset, padding;
} nonzero_args;

static void run_nonzero(exec *x, const bound *b, const tile *t)
{
    const nonzero_args *a = b->a;
    size_t n = t[1].l->n;
    for (uint32_t r = 0; r < t[1].parts; r += CORE_LANES) {
        int32_t *out = exec_slot(x, SLOT_AUX, (n + 1) * sizeof *out);
        size_t count = 0;
        if (!out) {
            return;
        }
        for (uint64_t e0 = 0; e0 < n; e0 += CHUNK) {
            size_t m = n - e0 < CHUNK ? (size_t)(n - e0) : CHUNK;
            const f32u *v = load_rows(x, &t[1], r, 1, e0, m, x->s->buf[0]).p;
            for (size_t i = 0; i < m; i++) {
                if (v[i] != 0.0f) {
                    out[count++] = (int32_t)((uint32_t)(e0 + i) + (uint32_t)a->offset);
                }
            }
        }
        for (size_t i = count; i < n; i++) {
            out[i] = a->padding;
        }
        out[n] = (int32_t)count;
        store_ints(x, &t[0], r, 0, n + 1, out);
    }
}

bool bind_nonzero_with_count(binder *b)
{
    nonzero_args *a = BIND_ARGS(b, nonzero_args);
    a->offset = (int32_t)ira_integer(bind_arg(b, 2));
    a->padding = (int32_t)ira_integer(bind_arg(b, 3));
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 || !need(b, 2)) {
        return false;
    }
    if (b->o[0].l->parts != b->o[1].l->parts || b->o[0].l->n != b->o[1].l->n + 1 ||
        b->o[1].l->n > INT32_MAX / 2) {
        return bind_fail(b, "dst is not one element longer than src");
    }
    return bind_computes(b, 0) && bind_computes(b, 1) && bind_done(b, run_nonzero, a, false);
}

// ---- topk

typedef struct ranked {
    float v;
    uint32_t at;
} ranked;

// Descending; of equal values the lower index first.
static int by_rank(const void *p, const void *q)
{
    const ranked *a = p, *b = q;
    if (above(a->v, b->v)) {
        return -1;
    }
    if (above(b->v, a->v)) {
        return 1;
    }
    return a->at < b->at ? -1 : a->at > b->at;
}

static void run_topk(exec *x, const bound *b, const tile *t)
{
    const gather_args *a = b->a;
    size_t n = a->valid, keep = t[0].l->n;
    for (uint32_t g = 0; g < t[2].parts; g += CORE_LANES) {
        ranked *all = exec_slot(x, SLOT_ROW, n * sizeof *all);
        char *out = exec_slot(x, SLOT_AUX, keep * 8);
        if (!all || !out) {
            return;
        }
        for (uint32_t p = 0; p < CORE_LANES; p++) {
            for (uint64_t c0 = 0; c0 * CORE_LANES + p < n; c0 += CHUNK) {
                uint64_t left = (n - p + CORE_LANES - 1) / CORE_LANES - c0;
                size_t m = left < CHUNK ? (size_t)left : CHUNK;
                const f32u *v = load_rows(x, &t[2], g + p, 1, c0, m, x->s->buf[0]).p;
                for (size_t c = 0; c < m; c++) {
                    uint32_t e = (uint32_t)((c0 + c) * CORE_LANES + p);
                    all[e] = (ranked){v[c], e};
                }
            }
        }
        qsort(all, n, sizeof *all, by_rank);
        float *val = (float *)(void *)out;
        int32_t *idx = (int32_t *)(void *)(out + keep * 4);
        for (size_t i = 0; i < keep; i++) {  // ascending
            val[i] = all[keep - 1 - i].v;
            idx[i] = (int32_t)all[keep - 1 - i].at;
        }
        for (uint32_t p = 0; p < CORE_LANES; p++) {
            for (size_t i = 0; i < keep; i += CHUNK) {
                size_t m = keep - i < CHUNK ? keep - i : CHUNK;
                store_rows(x, &t[0], g + p, 1, i, m, (crows){val + i, 0});
            }
            store_ints(x, &t[1], g + p, 0, keep, idx);
        }
    }
}

bool bind_topk(binder *b)
{
    gather_args *a = BIND_ARGS(b, gather_args);
    int64_t n = ira_integer(bind_arg(b, 3));
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, true) < 0 ||
        bind_operand(b, 2, false) < 0 || !need(b, 3)) {
        return false;
    }
    const opnd *v = &b->o[0], *i = &b->o[1], *s = &b->o[2];
    if (n < 1 || n >= 65536 || s->l->parts % CORE_LANES || v->l->parts != s->l->parts ||
        i->l->parts != s->l->parts || v->l->n != i->l->n || v->l->n > (uint64_t)n ||
        s->l->n < ((uint64_t)n + 15) / 16) {
        return bind_fail(b, "val_dst, idx_dst, src and n do not fit");
    }
    a->valid = (uint64_t)n;
    return bind_computes(b, 0) && bind_computes(b, 1) && bind_computes(b, 2) &&
           bind_done(b, run_topk, a, false);
}
