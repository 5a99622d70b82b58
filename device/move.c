#include "device/internal.h"

#include <math.h>

void copy_strided(char *dst, int64_t ds, const char *src, int64_t ss, size_t n, unsigned size)
{
    if (ds == size && ss == size) {
        memcpy(dst, src, n * size);
        return;
    }
    switch (size) {
    case 1:
        for (size_t i = 0; i < n; i++) {
            dst[(int64_t)i * ds] = src[(int64_t)i * ss];
        }
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            memcpy(dst + (int64_t)i * ds, src + (int64_t)i * ss, 2);
        }
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            memcpy(dst + (int64_t)i * ds, src + (int64_t)i * ss, 4);
        }
        break;
    }
}

// Walks n elements of a pattern from element e0 in runs along its last dimension.
typedef struct walk {
    const layout *l;
    uint32_t at[FREE_DIMS];
    int64_t off;
} walk;

static walk walk_at(const layout *l, uint64_t e0)
{
    walk w = {.l = l};
    for (uint32_t d = l->ndim; d-- > 0;) {
        w.at[d] = (uint32_t)(e0 % l->dim[d].count);
        e0 /= l->dim[d].count;
        w.off += (int64_t)w.at[d] * l->dim[d].stride;
    }
    return w;
}

// The length of the run at hand, at most n; *stride its step.
static size_t walk_run(const walk *w, size_t n, int64_t *stride)
{
    if (w->l->ndim == 0) {
        *stride = 0;
        return n;
    }
    uint32_t d = w->l->ndim - 1;
    size_t left = w->l->dim[d].count - w->at[d];
    *stride = w->l->dim[d].stride;
    return left < n ? left : n;
}

static void walk_step(walk *w, size_t n)
{
    if (w->l->ndim == 0) {
        return;
    }
    uint32_t d = w->l->ndim - 1;
    w->at[d] += (uint32_t)n;
    w->off += (int64_t)n * w->l->dim[d].stride;
    while (w->at[d] == w->l->dim[d].count && d > 0) {
        w->off -= (int64_t)w->at[d] * w->l->dim[d].stride;
        w->at[d] = 0;
        d--;
        w->at[d]++;
        w->off += w->l->dim[d].stride;
    }
}

void gather(void *dst, const char *src, const layout *l, uint64_t e0, size_t n, unsigned size)
{
    char *d = dst;
    walk w = walk_at(l, e0);
    while (n) {
        int64_t stride;
        size_t run = walk_run(&w, n, &stride);
        copy_strided(d, size, src + w.off, stride, run, size);
        d += run * size;
        n -= run;
        walk_step(&w, run);
    }
}

void scatter(char *dst, const layout *l, uint64_t e0, const void *src, size_t n, unsigned size)
{
    const char *s = src;
    walk w = walk_at(l, e0);
    while (n) {
        int64_t stride;
        size_t run = walk_run(&w, n, &stride);
        copy_strided(dst + w.off, stride, s, size, run, size);
        s += run * size;
        n -= run;
        walk_step(&w, run);
    }
}

crows load_rows(exec *x, const tile *t, size_t r0, size_t nrows, uint64_t e0, size_t n, float *buf)
{
    const char *p = t->p + (int64_t)r0 * t->ps;
    if (t->l->contig) {
        p += e0 * t->size;
        if (t->dtype == DT_float32) {
            return (crows){p, t->ps};
        }
        for (size_t r = 0; r < nrows; r++) {
            x->k->load[t->dtype](buf + r * n, p + (int64_t)r * t->ps, n);
        }
    } else {
        for (size_t r = 0; r < nrows; r++) {
            void *raw = t->dtype == DT_float32 ? (void *)(buf + r * n) : x->s->raw[0];
            gather(raw, p + (int64_t)r * t->ps, t->l, e0, n, t->size);
            if (t->dtype != DT_float32) {
                x->k->load[t->dtype](buf + r * n, raw, n);
            }
        }
    }
    return (crows){buf, (ptrdiff_t)(n * sizeof *buf)};
}

void store_rows(exec *x, const tile *t, size_t r0, size_t nrows, uint64_t e0, size_t n, crows s)
{
    char *p = t->p + (int64_t)r0 * t->ps;
    for (size_t r = 0; r < nrows; r++) {
        const float *v =
            (const float *)((const void *)((const char *)s.p + (ptrdiff_t)r * s.stride));
        char *q = p + (int64_t)r * t->ps;
        if (t->l->contig) {
            x->k->store[t->dtype](q + e0 * t->size, v, n);
        } else if (t->dtype == DT_float32) {
            scatter(q, t->l, e0, v, n, 4);
        } else {
            x->k->store[t->dtype](x->s->raw[0], v, n);
            scatter(q, t->l, e0, x->s->raw[0], n, t->size);
        }
    }
}

void load_bits(exec *x, const tile *t, size_t r, uint64_t e0, size_t n, uint32_t *buf)
{
    const char *p = t->p + (int64_t)r * t->ps;
    if (t->size == 4) {
        gather(buf, p, t->l, e0, n, 4);
        return;
    }
    void *raw = x->s->raw[0];
    gather(raw, p, t->l, e0, n, t->size);
    bool is_signed = dtype_class_of((dtype)t->dtype) == DTC_I;
    if (t->size == 1) {
        const uint8_t *u = raw;
        for (size_t i = 0; i < n; i++) {
            buf[i] = is_signed ? (uint32_t)(int32_t)(int8_t)u[i] : u[i];
        }
    } else {
        const u16u *u = raw;
        for (size_t i = 0; i < n; i++) {
            buf[i] = is_signed ? (uint32_t)(int32_t)(int16_t)u[i] : u[i];
        }
    }
}

void store_bits(exec *x, const tile *t, size_t r, uint64_t e0, size_t n, const uint32_t *s)
{
    char *p = t->p + (int64_t)r * t->ps;
    if (t->size == 4) {
        scatter(p, t->l, e0, s, n, 4);
        return;
    }
    void *raw = x->s->raw[0];
    if (t->size == 1) {
        uint8_t *u = raw;
        for (size_t i = 0; i < n; i++) {
            u[i] = (uint8_t)s[i];
        }
    } else {
        u16u *u = raw;
        for (size_t i = 0; i < n; i++) {
            u[i] = (uint16_t)s[i];
        }
    }
    scatter(p, t->l, e0, raw, n, t->size);
}

void copy_tile(const tile *d, const tile *s)
{
    uint64_t n = s->l->n;
    for (uint32_t r = 0; r < s->parts; r++) {
        char *q = d->p + (int64_t)r * d->ps;
        const char *p = s->p + (int64_t)r * s->ps;
        if (d->l->contig && s->l->contig) {
            memmove(q, p, n * s->size);
        } else if (d->l->contig) {
            gather(q, p, s->l, 0, n, s->size);
        } else if (s->l->contig) {
            scatter(q, d->l, 0, p, n, s->size);
        } else {
            char part[1024];
            size_t step = sizeof part / s->size;
            for (uint64_t e = 0; e < n; e += step) {
                size_t m = n - e < step ? (size_t)(n - e) : step;
                gather(part, p, s->l, e, m, s->size);
                scatter(q, d->l, e, part, m, s->size);
            }
        }
    }
}

// ---- instructions that set or copy bits: memset, fill_uninit, tensor_copy_predicated

typedef struct fill_args {
    uint32_t bits;
} fill_args;

static void run_fill(exec *x, const bound *b, const tile *t)
{
    const fill_args *a = b->a;
    const tile *d = &t[0];
    uint64_t n = d->l->n;
    size_t len = n < CHUNK ? (size_t)n : CHUNK;
    char *v = (char *)x->s->raw[1];
    for (size_t i = 0; i < len; i++) {
        memcpy(v + i * d->size, &a->bits, d->size);
    }
    for (uint32_t r = 0; r < d->parts; r++) {
        for (uint64_t e0 = 0; e0 < n; e0 += len) {
            size_t m = n - e0 < len ? (size_t)(n - e0) : len;
            scatter(d->p + r * d->ps, d->l, e0, v, m, d->size);
        }
    }
}

bool bind_memset(binder *b)
{
    fill_args *a = BIND_ARGS(b, fill_args);
    ir_arg v = bind_arg(b, 1);
    if (bind_operand(b, 0, true) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    dtype dt = (dtype)b->o[0].dtype;
    if (dtype_class_of(dt) == DTC_X) {
        float zero = v.kind == IRA_F32 ? ira_float(v) : (float)ira_integer(v);
        return zero == 0.0f ? bind_done(b, run_fill, a, true)
                            : bind_fail(b, "a packed dtype can only be set to 0");
    }
    if ((dt == DT_int32 || dt == DT_uint32) && v.kind == IRA_INT) {
        int64_t i = ira_integer(v);  // exact, saturating
        int64_t lo = dt == DT_int32 ? INT32_MIN : 0, hi = dt == DT_int32 ? INT32_MAX : UINT32_MAX;
        a->bits = (uint32_t)(i < lo ? lo : i > hi ? hi : i);
        return bind_done(b, run_fill, a, true);
    }
    float f = v.kind == IRA_F32 ? ira_float(v) : (float)ira_integer(v);
    device_convert(&a->bits, dt, 4, &f, DT_float32, 4, 1);
    return bind_done(b, run_fill, a, true);
}

uint32_t uninit_bits(dtype d)
{
    float nan = NAN;
    uint32_t bits = 4;
    switch (dtype_class_of(d)) {
    case DTC_F:
    case DTC_E: device_convert(&bits, d, 4, &nan, DT_float32, 4, 1); return bits;
    case DTC_X: return 0x7f7f7f7fu;
    default: return bits;
    }
}

bool bind_fill_uninit(binder *b)
{
    fill_args *a = BIND_ARGS(b, fill_args);
    if (bind_operand(b, 0, true) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    a->bits = uninit_bits((dtype)b->o[0].dtype);
    return bind_done(b, run_fill, a, true);
}

typedef struct pred_args {
    bool reverse;
    bool imm;
    uint32_t bits;
} pred_args;

static void run_copy_predicated(exec *x, const bound *b, const tile *t)
{
    const pred_args *a = b->a;
    uint32_t *d = x->s->raw[1], *p = x->s->raw[2], *s = (uint32_t *)(void *)x->s->buf[0];
    for (uint32_t r = 0; r < t[0].parts; r++) {
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            load_bits(x, &t[0], r, e0, n, d);
            load_bits(x, &t[1], r, e0, n, p);
            if (a->imm) {
                for (size_t i = 0; i < n; i++) {
                    d[i] = (p[i] != 0) != a->reverse ? a->bits : d[i];
                }
            } else {
                load_bits(x, &t[2], r, e0, n, s);
                for (size_t i = 0; i < n; i++) {
                    d[i] = (p[i] != 0) != a->reverse ? s[i] : d[i];
                }
            }
            store_bits(x, &t[0], r, e0, n, d);
        }
    }
}

// Source of another dtype than dst: converted through fp32.
static void run_copy_predicated_cast(exec *x, const bound *b, const tile *t)
{
    const pred_args *a = b->a;
    uint32_t *d = x->s->raw[1], *p = x->s->raw[2];
    uint32_t *s = (uint32_t *)(void *)x->s->buf[2];
    for (uint32_t r = 0; r < t[0].parts; r++) {
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            load_bits(x, &t[0], r, e0, n, d);
            load_bits(x, &t[1], r, e0, n, p);
            crows v = load_rows(x, &t[2], r, 1, e0, n, x->s->buf[0]);
            x->k->store[t[0].dtype](s, v.p, n);
            for (size_t i = 0; i < n; i++) {
                uint32_t u = 0;
                memcpy(&u, (const char *)s + i * t[0].size, t[0].size);
                d[i] = (p[i] != 0) != a->reverse ? u : d[i];
            }
            store_bits(x, &t[0], r, e0, n, d);
        }
    }
}

bool bind_tensor_copy_predicated(binder *b)
{
    pred_args *a = BIND_ARGS(b, pred_args);
    ir_arg v = bind_arg(b, 1);
    a->reverse = bind_arg(b, 3).kind == IRA_BOOL && bind_arg(b, 3).v;
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 2, false) < 0) {
        return false;
    }
    if (!b->o[0].l || !b->o[1].l) {
        return bind_fail(b, "a tensor is missing");
    }
    if (!bind_same_shape(b, 0, 1)) {
        return false;
    }
    if (v.kind == IRA_VIEW) {
        if (bind_operand(b, 1, false) < 0 || !bind_same_shape(b, 0, 2)) {
            return false;
        }
        if (b->o[2].dtype == b->o[0].dtype) {
            return bind_done(b, run_copy_predicated, a, true);
        }
        return bind_computes(b, 0) && bind_computes(b, 2) &&
               bind_done(b, run_copy_predicated_cast, a, true);
    }
    a->imm = true;
    float f = v.kind == IRA_F32 ? ira_float(v) : (float)ira_integer(v);
    if (!bind_computes(b, 0)) {
        return false;
    }
    if (v.kind != IRA_F32 && b->o[0].size == 4 && dtype_is_int((dtype)b->o[0].dtype)) {
        a->bits = (uint32_t)ira_integer(v);
    } else {
        device_convert(&a->bits, (dtype)b->o[0].dtype, 4, &f, DT_float32, 4, 1);
    }
    return bind_done(b, run_copy_predicated, a, true);
}
