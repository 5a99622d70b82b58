#include "device/internal.h"

#include <math.h>

// Block-scaled (MX) operands: packed words of four fp8 or fp4 elements, element 0 lowest, and one
// e8m0 byte, 2^(byte - 127), for the four elements of eight rows. The scales of rows 8g .. 8g + 7
// of quadrant q (32 rows each) are row 32q + g of the scale tile. docs/numerics.md.

enum { SLOT_A, SLOT_B };
enum { LANES = 4, GROUP = 8, QUADRANT = 32, N_BLOCK = 512, COLUMNS = CHUNK / (GROUP * LANES) };
enum { SCALE_NAN = 255, SCALE_BIAS = 127 };

static uint32_t scale_row(uint32_t part)
{
    return part / QUADRANT * QUADRANT + part % QUADRANT / GROUP;
}

// The dtype of one of the four elements; DT_COUNT: fp4.
static dtype element_of(dtype packed)
{
    return packed == DT_float8_e5m2_x4     ? DT_float8_e5m2
           : packed == DT_float8_e4m3fn_x4 ? DT_float8_e4m3fn
                                           : DT_COUNT;
}

// ---- quantize_mx

// The power of two 2^n, -127 <= n <= 127.
static float power_of_two(int n)
{
    uint32_t bits = n > -127 ? (uint32_t)(n + 127) << 23 : 0x00400000u;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// The scale byte of a group whose largest magnitude has these fp32 bits. shift: the exponent that
// the largest element keeps.
static int scale_byte(uint32_t bits, int shift)
{
    if (bits >= 0x7f800000u) {
        return SCALE_NAN;
    }
    int e = (int)(bits >> 23) - 127;
    if (bits < 0x00800000u) {  // zero or subnormal
        e = bits ? 31 - __builtin_clz(bits) - 149 : -1000;
    }
    int byte = e - shift + SCALE_BIAS;
    return byte < 0 ? 0 : byte;
}

// Columns [c0, c0 + n) of a group: v[GROUP][n * LANES] in, scaled; their scale bytes.
static void scale_group(float *v, size_t n, int shift, unsigned char *bytes)
{
    for (size_t c = 0; c < n; c++) {
        uint32_t top = 0;
        for (int r = 0; r < GROUP; r++) {
            for (int j = 0; j < LANES; j++) {
                uint32_t u;
                memcpy(&u, &v[((size_t)r * n + c) * LANES + (size_t)j], sizeof u);
                u &= 0x7fffffffu;
                top = u > top ? u : top;
            }
        }
        int byte = scale_byte(top, shift);
        bytes[c] = (unsigned char)byte;
        float f = byte == SCALE_NAN ? 1.0f : power_of_two(SCALE_BIAS - byte);
        for (int r = 0; r < GROUP; r++) {
            for (int j = 0; j < LANES; j++) {
                v[((size_t)r * n + c) * LANES + (size_t)j] *= f;
            }
        }
    }
}

static void run_quantize(exec *x, const bound *b, const tile *t)
{
    const tile *d = &t[0], *s = &t[1], *sc = &t[2];
    dtype e = element_of((dtype)d->dtype);
    int shift = e == DT_float8_e5m2 ? 14 : 7;
    float *v = x->s->buf[0];
    unsigned char *packed = (unsigned char *)x->s->raw[0], bytes[COLUMNS];
    (void)b;
    for (uint32_t p = 0; p < d->parts; p += GROUP) {
        for (uint64_t c0 = 0; c0 < d->l->n; c0 += COLUMNS) {
            size_t n = d->l->n - c0 < COLUMNS ? (size_t)(d->l->n - c0) : COLUMNS;
            for (uint32_t r = 0; r < GROUP; r++) {
                float *row = v + r * n * LANES;
                crows in = load_rows(x, s, p + r, 1, c0 * LANES, n * LANES, row);
                if (in.p != row) {
                    memcpy(row, in.p, n * LANES * sizeof *row);
                }
            }
            scale_group(v, n, shift, bytes);
            scatter(sc->p + (int64_t)scale_row(p) * sc->ps, sc->l, c0, bytes, n, 1);
            for (uint32_t r = 0; r < GROUP; r++) {
                x->k->store[e](packed, v + r * n * LANES, n * LANES);
                scatter(d->p + (int64_t)(p + r) * d->ps, d->l, c0, packed, n, LANES);
            }
        }
    }
}

// The scale tile holds a byte for each column of each group.
static bool scale_fits(binder *b, int scale, int data)
{
    const opnd *s = &b->o[scale], *d = &b->o[data];
    if (s->size != 1 || s->l->n < d->l->n || s->l->parts <= scale_row(d->l->parts - 1)) {
        return bind_fail(b, "%s [%u, %llu] does not hold the scales of %s [%u, %llu]",
                         b->info->params[s->param].name, s->l->parts, (unsigned long long)s->l->n,
                         b->info->params[d->param].name, d->l->parts, (unsigned long long)d->l->n);
    }
    return d->l->parts % QUADRANT ? bind_fail(b, "%s has %u partitions, not a multiple of %d",
                                              b->info->params[d->param].name, d->l->parts, QUADRANT)
                                  : true;
}

bool bind_quantize_mx(binder *b)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (bind_operand(b, i, i != 1) < 0 || !b->o[i].l) {
            return b->err ? false : bind_fail(b, "a tensor is missing");
        }
    }
    const opnd *d = &b->o[0], *s = &b->o[1];
    if (s->l->parts != d->l->parts || s->l->n != LANES * d->l->n) {
        return bind_fail(b, "src [%u, %llu] does not hold four elements for each word of dst",
                         s->l->parts, (unsigned long long)s->l->n);
    }
    if (element_of((dtype)d->dtype) == DT_COUNT || d->size != LANES) {
        return bind_fail(b, "dst has dtype %s", dtype_name((dtype)d->dtype));
    }
    return bind_computes(b, 1) && scale_fits(b, 2, 0) && bind_done(b, run_quantize, NULL, false);
}

// ---- nc_matmul_mx

// float4_e2m1: sign, two exponent bits, one mantissa bit.
static const float fp4_value[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

static void unpack(exec *x, const tile *t, const void *words, size_t n, float *out)
{
    dtype e = element_of((dtype)t->dtype);
    if (e != DT_COUNT) {
        x->k->load[e](out, words, n * LANES);
        return;
    }
    const unsigned char *at = words;
    for (size_t i = 0; i < n * LANES; i++) {
        out[i] = fp4_value[at[i / 2] >> 4 * (i % 2) & 15];
    }
}

// Columns [c0, c0 + n) of a packed tile as fp32 times their scales: element j of partition p is row
// 4p + j. n <= N_BLOCK.
static crows widen(exec *x, const tile *t, const tile *scale, int slot, uint64_t c0, size_t n)
{
    size_t stride = ((n + 15) & ~(size_t)15) + 16;
    float *buf = exec_slot(x, slot, (size_t)t->parts * LANES * stride * sizeof *buf);
    float *v = x->s->buf[0], *factor = x->s->buf[1];
    unsigned char bytes[N_BLOCK];
    for (uint32_t p = 0; buf && p < t->parts; p++) {
        gather(x->s->raw[0], t->p + (int64_t)p * t->ps, t->l, c0, n, t->size);
        unpack(x, t, x->s->raw[0], n, v);
        if (p % GROUP == 0) {
            gather(bytes, scale->p + (int64_t)scale_row(p) * scale->ps, scale->l, c0, n, 1);
            for (size_t i = 0; i < n; i++) {
                factor[i] = bytes[i] == SCALE_NAN ? NAN : power_of_two((int)bytes[i] - SCALE_BIAS);
            }
        }
        for (size_t j = 0; j < LANES; j++) {
            float *to = buf + ((size_t)p * LANES + j) * stride;
            for (size_t i = 0; i < n; i++) {
                to[i] = v[i * LANES + j] * factor[i];
            }
        }
    }
    return (crows){buf, (ptrdiff_t)(stride * sizeof *buf)};
}

typedef struct mx_args {
    bool accumulate;
} mx_args;

static crows moving_columns(exec *x, const void *ctx, uint64_t c0, size_t n)
{
    const tile *t = ctx;
    return widen(x, &t[2], &t[4], SLOT_B, c0, n);
}

static void run_matmul_mx(exec *x, const bound *b, const tile *t)
{
    const mx_args *a = b->a;
    multiply(x, &t[0], widen(x, &t[1], &t[3], SLOT_A, 0, (size_t)t[1].l->n),
             (size_t)t[1].parts * LANES, a->accumulate, moving_columns, t);
}

bool bind_nc_matmul_mx(binder *b)
{
    mx_args *a = BIND_ARGS(b, mx_args);
    ir_arg acc = bind_arg(b, 7);
    a->accumulate = acc.kind == IRA_BOOL && acc.v;
    for (uint32_t i = 0; i < 5; i++) {
        if (bind_operand(b, i, i == 0) < 0 || !b->o[i].l) {
            return b->err ? false : bind_fail(b, "a tensor is missing");
        }
    }
    const opnd *d = &b->o[0], *s = &b->o[1], *m = &b->o[2];
    if (s->l->parts != m->l->parts || s->l->n > PARTS || d->l->parts != s->l->n ||
        d->l->n != m->l->n) {
        return bind_fail(b, "dst [%u, %llu], stationary [%u, %llu], moving [%u, %llu] do not fit",
                         d->l->parts, (unsigned long long)d->l->n, s->l->parts,
                         (unsigned long long)s->l->n, m->l->parts, (unsigned long long)m->l->n);
    }
    for (int i = 1; i < 3; i++) {
        if (dtype_class_of((dtype)b->o[i].dtype) != DTC_X) {
            return bind_fail(b, "%s has dtype %s, not a packed one",
                             b->info->params[b->o[i].param].name, dtype_name((dtype)b->o[i].dtype));
        }
    }
    return bind_computes(b, 0) && scale_fits(b, 3, 1) && scale_fits(b, 4, 2) &&
           bind_done(b, run_matmul_mx, a, false);
}
