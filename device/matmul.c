#include "device/internal.h"

// Tensor engine.

enum { SLOT_A, SLOT_B, SLOT_C, K_MAX = 256, M_MAX = 128, N_BLOCK = 512 };

typedef struct matmul_args {
    bool accumulate, transpose;
    uint32_t planes;  // 2 for double_row
    uint64_t m, n;
} matmul_args;

// Rows of a tile as fp32: in place, or packed into a slot. Plane r of partition k becomes row
// k * planes + r, the order of the sum.
static crows as_rows(exec *x, const tile *t, int slot, uint64_t n, uint32_t planes, uint64_t e0,
                     size_t len)
{
    if (planes == 1 && t->l->contig && t->dtype == DT_float32) {
        return (crows){t->p + e0 * 4, t->ps};
    }
    size_t stride = ((len + 15) & ~(size_t)15) + 16;
    float *buf = exec_slot(x, slot, (size_t)t->l->parts * planes * stride * sizeof *buf);
    if (!buf) {
        return (crows){NULL, 0};
    }
    for (uint32_t p = 0; p < t->l->parts; p++) {
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

void matmul_store(exec *x, bool accumulate, const tile *d, uint64_t e0, size_t n, rows c)
{
    for (uint32_t r = 0; r < d->l->parts; r++) {
        for (size_t i = 0; i < n; i += CHUNK) {
            size_t m = n - i < CHUNK ? n - i : CHUNK;
            float *v = (float *)((void *)((char *)c.p + (ptrdiff_t)r * c.stride + i * 4));
            if (accumulate) {
                crows old = load_rows(x, d, r, 1, e0 + i, m, x->core->buf[0]);
                x->k->add_ftz((rows){v, 0}, old, (crows){v, 0}, 1, m);
            }
            store_rows(x, d, r, 1, e0 + i, m, (crows){v, 0});
        }
    }
}

static void run_matmul(exec *x, const bound *b, const tile *t)
{
    const matmul_args *a = b->a;
    const tile *d = &t[0];
    size_t k = t[1].l->parts * (size_t)a->planes;
    crows s = as_rows(x, &t[1], SLOT_A, a->m, a->planes, 0, a->m);
    bool direct = !a->accumulate && d->l->contig && d->dtype == DT_float32;
    for (uint64_t e0 = 0; e0 < a->n && s.p; e0 += N_BLOCK) {
        size_t n = a->n - e0 < N_BLOCK ? (size_t)(a->n - e0) : N_BLOCK;
        crows v = as_rows(x, &t[2], SLOT_B, a->n, a->planes, e0, n);
        rows c = {d->p + e0 * 4, d->ps};
        if (!direct) {
            c = (rows){exec_slot(x, SLOT_C, a->m * (N_BLOCK + 16) * sizeof(float)),
                       (N_BLOCK + 16) * sizeof(float)};
        }
        if (!v.p || !c.p) {
            return;
        }
        x->k->matmul(c, s, v, k, a->m, n);
        if (a->accumulate && d->l->contig && d->dtype == DT_float32) {
            rows to = {d->p + e0 * 4, d->ps};
            x->k->add_ftz(to, (crows){to.p, to.stride}, (crows){c.p, c.stride}, a->m, n);
        } else if (!direct) {
            matmul_store(x, a->accumulate, d, e0, n, c);
        }
    }
}

// dst[m, k] = stationary[k, m]: no arithmetic, every bit kept when the types are one.
static void run_transpose(exec *x, const bound *b, const tile *t)
{
    (void)b;
    const tile *d = &t[0], *s = &t[1];
    uint32_t size = s->size;
    size_t nrows = s->l->parts, ncols = s->l->n;
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
