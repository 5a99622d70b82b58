#include "device/internal.h"

// Tensor engine.

enum {
    SLOT_A,
    SLOT_B,
    SLOT_C,
    M_MAX = 128,
    N_BLOCK = 512,  // columns at hand
    COLUMNS = 32,   // an item has a multiple of it
    FMA_A_NS = 16,  // multiply-adds of a thread, roughly
};

typedef struct matmul_args {
    bool accumulate, transpose;
    uint32_t planes;  // 2 for double_row
    uint64_t m, n;
} matmul_args;

typedef struct moving_tile {
    const tile *t;
    uint64_t n;
    uint32_t planes;
} moving_tile;

// Rows of a tile as fp32: in place, or packed into a slot. Plane r of partition k becomes row
// k * planes + r, the order of the sum.
static crows as_rows(exec *x, const tile *t, int slot, uint64_t n, uint32_t planes, uint64_t e0,
                     size_t len)
{
    if (planes == 1 && t->l->contig && t->dtype == DT_float32) {
        return (crows){t->p + e0 * 4, t->ps};
    }
    size_t stride = ((len + 15) & ~(size_t)15) + 16;
    float *buf = exec_slot(x, slot, (size_t)t->parts * planes * stride * sizeof *buf);
    if (!buf) {
        return (crows){NULL, 0};
    }
    for (uint32_t p = 0; p < t->parts; p++) {
        for (uint32_t r = 0; r < planes; r++) {
            float *to = buf + ((size_t)p * planes + r) * stride;
            for (size_t i = 0; i < len; i += CHUNK) {
                size_t m = len - i < CHUNK ? len - i : CHUNK;
                crows c = load_rows(x, t, p, 1, r * n + e0 + i, m, to + i);
                if (c.p != to + i) {
                    memcpy(to + i, c.p, m * sizeof *to);
                }
            }
        }
    }
    return (crows){buf, (ptrdiff_t)(stride * sizeof *buf)};
}

static void store_product(exec *x, bool accumulate, const tile *d, uint64_t e0, size_t n, rows c)
{
    for (uint32_t r = 0; r < d->parts; r++) {
        for (size_t i = 0; i < n; i += CHUNK) {
            size_t m = n - i < CHUNK ? n - i : CHUNK;
            float *v = (float *)((void *)((char *)c.p + (ptrdiff_t)r * c.stride + i * 4));
            if (accumulate) {
                crows old = load_rows(x, d, r, 1, e0 + i, m, x->s->buf[0]);
                x->k->add_ftz((rows){v, 0}, old, (crows){v, 0}, 1, m);
            }
            store_rows(x, d, r, 1, e0 + i, m, (crows){v, 0});
        }
    }
}

// Columns of a product: some of the whole.
typedef struct product {
    const exec *x;
    const float *at;
    const tile *d;
    size_t k, m, cols;  // of an item
    uint64_t n;
    bool accumulate;
    moving_fn moving;
    const void *ctx;
    _Atomic int status;
} product;

static void multiply_columns(exec *x, const product *j, uint64_t e0, size_t n)
{
    const tile *d = j->d;
    bool direct = d->l->contig && d->dtype == DT_float32;
    rows c = {d->p + e0 * 4, d->ps};
    crows v = j->moving(x, j->ctx, e0, n);
    if (!direct) {
        c = (rows){exec_slot(x, SLOT_C, j->m * (N_BLOCK + 16) * sizeof(float)),
                   (N_BLOCK + 16) * sizeof(float)};
    }
    if (v.p && c.p) {
        x->k->matmul(c, j->at, v, j->k, j->m, n, direct && j->accumulate);
        if (!direct) {
            store_product(x, j->accumulate, d, e0, n, c);
        }
    }
}

static void multiply_item(void *ctx, uint32_t item, workspace *s)
{
    product *j = ctx;
    exec x = *j->x;
    x.s = s;
    uint64_t end = ((uint64_t)item + 1) * j->cols;
    for (uint64_t e0 = (uint64_t)item * j->cols; e0 < j->n && e0 < end; e0 += N_BLOCK) {
        uint64_t left = (end < j->n ? end : j->n) - e0;
        multiply_columns(&x, j, e0, left < N_BLOCK ? (size_t)left : N_BLOCK);
    }
    if (x.status != NKI_OK) {
        atomic_store_explicit(&j->status, x.status, memory_order_relaxed);
    }
}

void multiply(exec *x, const tile *d, crows stationary, size_t k, bool accumulate,
              moving_fn columns, const void *ctx)
{
    size_t m = d->parts;
    float *at = exec_slot(x, SLOT_PACKED, k * m * sizeof *at);
    if (!at || !stationary.p) {
        return;
    }
    x->k->pack(at, stationary, k, m);
    product j = {x, at, d, k, m, (size_t)d->l->n, d->l->n, accumulate, columns, ctx, NKI_OK};
    uint64_t cost_ns = k * m * d->l->n / FMA_A_NS;
    device_pool *pool = cost_ns < SHARE_NS && !pool_is_forced() ? NULL : x->opts->pool;
    if (pool) {
        uint64_t groups = (d->l->n + COLUMNS - 1) / COLUMNS;
        uint64_t each = groups / (8 * (uint64_t)pool_threads(pool));
        j.cols = (size_t)(each ? each : 1) * COLUMNS;
    }
    pool_run(pool, (uint32_t)((d->l->n + j.cols - 1) / j.cols), cost_ns >= WAKE_NS, multiply_item,
             &j, x->s);
    x->status = atomic_load_explicit(&j.status, memory_order_relaxed);
}

static crows moving_rows(exec *x, const void *ctx, uint64_t e0, size_t n)
{
    const moving_tile *v = ctx;
    return as_rows(x, v->t, SLOT_B, v->n, v->planes, e0, n);
}

static void run_matmul(exec *x, const bound *b, const tile *t)
{
    const matmul_args *a = b->a;
    moving_tile v = {&t[2], a->n, a->planes};
    multiply(x, &t[0], as_rows(x, &t[1], SLOT_A, a->m, a->planes, 0, a->m),
             t[1].parts * (size_t)a->planes, a->accumulate, moving_rows, &v);
}

// dst[m, k] = stationary[k, m]: no arithmetic, every bit kept when the types are one.
static void run_transpose(exec *x, const bound *b, const tile *t)
{
    (void)b;
    const tile *d = &t[0], *s = &t[1];
    uint32_t size = s->size;
    size_t nrows = s->parts, ncols = s->l->n;
    crows in = {s->p, s->ps};
    if (!s->l->contig) {
        char *buf = exec_slot(x, SLOT_A, nrows * ncols * size);
        if (!buf) {
            return;
        }
        for (size_t r = 0; r < nrows; r++) {
            gather(buf + r * ncols * size, s->p + (int64_t)r * s->ps, s->l, 0, ncols, size);
        }
        in = (crows){buf, (ptrdiff_t)(ncols * size)};
    }
    if (d->l->contig && d->dtype == s->dtype) {
        x->k->transpose((rows){d->p, d->ps}, in, nrows, ncols, size);
        return;
    }
    char *out = exec_slot(x, SLOT_B, nrows * ncols * size);
    if (!out) {
        return;
    }
    x->k->transpose((rows){out, (ptrdiff_t)(nrows * size)}, in, nrows, ncols, size);
    for (size_t r = 0; r < ncols; r++) {
        char *to = d->p + (int64_t)r * d->ps;
        const char *from = out + r * nrows * size;
        if (d->dtype == s->dtype) {
            scatter(to, d->l, 0, from, nrows, size);
        } else {
            uint32_t raw[M_MAX];
            if (size == 1 && d->size == 2) {  // fp8 through the array: the low byte of 16 bits
                for (size_t i = 0; i < nrows; i++) {
                    ((u16u *)(void *)raw)[i] = (unsigned char)from[i];
                }
                scatter(to, d->l, 0, raw, nrows, 2);
                continue;
            }
            convert_with(x->k, raw, (dtype)d->dtype, d->size, from, (dtype)s->dtype,
                         (ptrdiff_t)size, nrows);
            scatter(to, d->l, 0, raw, nrows, d->size);
        }
    }
}

static bool transpose_shapes(binder *b)
{
    const opnd *d = &b->o[0], *s = &b->o[1];
    if (s->l->n > PARTS || d->l->parts != s->l->n || d->l->n != s->l->parts) {
        return bind_fail(b, "dst is [%u, %llu], the transposed source [%llu, %u]", d->l->parts,
                         (unsigned long long)d->l->n, (unsigned long long)s->l->n, s->l->parts);
    }
    return d->dtype == s->dtype || (bind_computes(b, 0) && bind_computes(b, 1));
}

bool bind_nc_transpose(binder *b)
{
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 || !b->o[0].l || !b->o[1].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    return transpose_shapes(b) && bind_done(b, run_transpose, NULL, false);
}

bool bind_nc_matmul(binder *b)
{
    matmul_args *a = BIND_ARGS(b, matmul_args);
    ir_arg acc = bind_arg(b, 6);
    a->accumulate = acc.kind == IRA_BOOL && acc.v;
    a->transpose = bind_arg(b, 5).kind == IRA_BOOL && bind_arg(b, 5).v;
    a->planes = bind_arg(b, 9).v == ISAE_matmul_perf_mode_double_row ? 2 : 1;
    for (uint32_t i = 0; i < 3; i++) {
        if (bind_operand(b, i, i == 0) < 0 || !b->o[i].l) {
            return b->err ? false : bind_fail(b, "a tensor is missing");
        }
    }
    const opnd *d = &b->o[0], *s = &b->o[1], *m = &b->o[2];
    if (a->transpose) {
        return transpose_shapes(b) && bind_done(b, run_transpose, NULL, false);
    }
    a->m = s->l->n / a->planes;
    a->n = m->l->n / a->planes;
    if (s->l->parts != m->l->parts || a->m > M_MAX || s->l->n % a->planes || m->l->n % a->planes ||
        d->l->parts != a->m || d->l->n != a->n || a->m == 0 || a->n == 0) {
        return bind_fail(b, "dst [%u, %llu], stationary [%u, %llu], moving [%u, %llu] do not fit",
                         d->l->parts, (unsigned long long)d->l->n, s->l->parts,
                         (unsigned long long)s->l->n, m->l->parts, (unsigned long long)m->l->n);
    }
    return bind_computes(b, 0) && bind_computes(b, 1) && bind_computes(b, 2) &&
           bind_done(b, run_matmul, a, false);
}
