#include "device/check.h"
#include "lang/place.h"

#include <math.h>

// What becomes of values: integers that a conversion changes, the first NaN and the first infinity.
//
// Integers. A value on its way to an integer type is lost when it lies outside the type's range by
// more than rounding (a NaN too); one on its way from an int32 or uint32 to an integer type when
// fp32, through which all conversions go, cannot hold it; one on its way from integers to a float
// type of 16 bits or fewer when that type cannot hold it. A fraction that is rounded away is none,
// and neither is what fp32 rounds of an integer that ends as a float.
//
// The conversions of the run's kernels are replaced by ones that look first.

static _Thread_local check *watching;

// The values that an integer type holds after rounding are lo <= v < hi: half goes to even, so the
// upper half belongs to the next integer and the lower one to this.
typedef struct int_range {
    float lo, hi;
} int_range;

static int_range range_of(dtype d)
{
    switch (d) {
    case DT_int8: return (int_range){-128.5f, 127.5f};
    case DT_uint8: return (int_range){-0.5f, 255.5f};
    case DT_int16: return (int_range){-32768.5f, 32767.5f};
    case DT_uint16: return (int_range){-0.5f, 65535.5f};
    case DT_int32: return (int_range){-2147483648.0f, 2147483648.0f};
    default: return (int_range){-0.5f, 4294967296.0f};  // uint32
    }
}

// The first of n values outside; n: none.
static size_t first_outside(int_range r, const float *v, size_t n)
{
    size_t i = 0;
    while (i < n && v[i] >= r.lo && v[i] < r.hi) {
        i++;
    }
    return i;
}

// An integer as it is, anything else as fp32.
static double number_at(const check *c, dtype d, const void *at)
{
    uint32_t raw;
    float f;
    switch (d) {
    case DT_int32:
    case DT_uint32: memcpy(&raw, at, 4); return d == DT_int32 ? (double)(int32_t)raw : (double)raw;
    default: c->plain->load[d](&f, at, 1); return (double)f;
    }
}

static void lose(check *c, dtype d, bool read, const void *at, double value, double kept)
{
    c->lost = (lost_int){true, read, at, d, value, kept};
}

static void watch_store(dtype d, void *dst, const float *s, size_t n)
{
    check *c = watching;
    bool floats = dtype_is_float(d);
    size_t bad = n;
    float value = 0;
    if (!c->lost.found && !floats) {
        bad = first_outside(range_of(d), s, n);
        value = bad < n ? s[bad] : 0;
    }
    float in[CHUNK];
    size_t m = n < CHUNK ? n : CHUNK;
    bool look = floats && c->watch_floats && dtype_size(d) < 4 && !c->lost.found;
    if (look) {
        memcpy(in, s, m * sizeof *in);  // dst may be s
    }
    c->plain->store[d](dst, s, n);
    for (size_t i = 0; look && i < m; i++) {
        float kept;
        c->plain->load[d](&kept, (const char *)dst + i * dtype_size(d), 1);
        if (kept != in[i] && in[i] == truncf(in[i])) {
            bad = i;
            value = in[i];
            break;
        }
    }
    if (bad < n) {
        const char *at = (const char *)dst + bad * dtype_size(d);
        lose(c, d, false, at, (double)value, number_at(c, d, at));
    }
}

static void watch_load(dtype d, float *dst, const void *s, size_t n)
{
    check *c = watching;
    c->plain->load[d](dst, s, n);
    if (!c->watch_reads || c->lost.found) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)s + i * 4;
        double v = number_at(c, d, at);
        if ((double)dst[i] != v) {
            lose(c, d, true, at, v, (double)dst[i]);
            return;
        }
    }
}

#define DTYPE(id, name, size, cls, printed)                                                        \
    static void store_##id(void *d, const float *s, size_t n)                                      \
    {                                                                                              \
        watch_store(DT_##id, d, s, n);                                                             \
    }
#include "lang/dtype.def"
#undef DTYPE

static void load_int32(float *d, const void *s, size_t n)
{
    watch_load(DT_int32, d, s, n);
}

static void load_uint32(float *d, const void *s, size_t n)
{
    watch_load(DT_uint32, d, s, n);
}

void check_watch_conversions(check *c)
{
    static void (*const stores[DT_COUNT])(void *, const float *, size_t) = {
#define DTYPE(id, name, size, cls, printed) [DT_##id] = store_##id,
#include "lang/dtype.def"
#undef DTYPE
    };
    c->plain = kern_get();
    c->k = *c->plain;
    for (int d = 0; d < DT_COUNT; d++) {
        bool narrow = dtype_is_float((dtype)d) && dtype_size((dtype)d) < 4;
        if (c->k.store[d] && (dtype_is_int((dtype)d) || narrow)) {
            c->k.store[d] = stores[d];
        }
    }
    c->k.load[DT_int32] = load_int32;
    c->k.load[DT_uint32] = load_uint32;
}

// ---- integers that were lost

// The first element of a destination that holds `kept`: where a conversion went through scratch.
typedef struct search {
    const at_hand *a;
    const lost_int *l;
    uint64_t at;
} search;

static bool search_piece(void *ctx, uint64_t at, uint64_t len)
{
    search *s = ctx;
    unsigned size = s->a->t.size;
    for (uint64_t i = 0; i + size <= len; i += size) {
        double v = number_at(s->a->c, s->l->dtype, s->a->mem + at + i);
        if (v == (s->l->read ? s->l->value : s->l->kept)) {
            s->at = at + i;
            return false;
        }
    }
    return true;
}

static bool find_lost(check *c, exec *x, const bound *b, const tile *t, at_hand *found,
                      uint64_t *at)
{
    const lost_int *l = &c->lost;
    for (uint32_t k = 0; k < b->nops; k++) {
        bool out = b->outs >> k & 1;
        if (!b->o[k].l || out == l->read || b->o[k].dtype != l->dtype) {
            continue;
        }
        *found = check_operand(c, x, b, t, k);
        uintptr_t p = (uintptr_t)l->at, lo = (uintptr_t)found->mem;
        if (p >= lo && p - lo < found->s->size) {
            *at = p - lo;
            return true;
        }
        search s = {found, l, SHADOW_NONE};
        check_pieces(found, search_piece, &s);
        *at = s.at;
        if (s.at != SHADOW_NONE) {
            return true;
        }
    }
    return false;
}

// ---- NaN and infinity

typedef struct odd {
    bool nan, inf;
    uint64_t nan_at, inf_at;  // in the operand's memory
} odd;

typedef struct scan {
    const at_hand *a;
    odd o;
} scan;

static bool scan_piece(void *ctx, uint64_t at, uint64_t len)
{
    scan *s = ctx;
    const at_hand *a = s->a;
    unsigned size = a->t.size;
    float buf[1024];
    for (uint64_t n = len / size, e = 0; e < n;) {
        size_t m = n - e < 1024 ? (size_t)(n - e) : 1024;
        const char *p = a->mem + at + e * size;
        const f32u *v = (const f32u *)p;
        if (a->t.dtype != DT_float32) {
            a->c->plain->load[a->t.dtype](buf, p, m);
            v = buf;
        }
        if (!a->c->plain->finite(v, m)) {
            for (size_t i = 0; i < m; i++) {
                if (!s->o.nan && isnan(v[i])) {
                    s->o.nan = true;
                    s->o.nan_at = at + (e + i) * size;
                } else if (!s->o.inf && isinf(v[i])) {
                    s->o.inf = true;
                    s->o.inf_at = at + (e + i) * size;
                }
            }
        }
        if (s->o.nan && s->o.inf) {
            return false;
        }
        e += m;
    }
    return true;
}

static odd scan_operand(const at_hand *a)
{
    scan s = {.a = a};
    if (dtype_class_of((dtype)a->t.dtype) == DTC_F) {
        check_pieces(a, scan_piece, &s);
    }
    return s.o;
}

static bool overwritten(check *c, exec *x, const bound *b, const tile *t, uint32_t k)
{
    at_hand a = check_operand(c, x, b, t, k);
    for (uint32_t j = 0; j < b->nops; j++) {
        at_hand d = check_operand(c, x, b, t, j);
        if (b->outs >> j & 1 && check_overlap(&a, &d)) {
            return true;
        }
    }
    return false;
}

static bool is_input(const check *c, const exec *x, const bound *b, uint32_t k)
{
    return b->o[k].l && (!(b->outs >> k & 1) || (k == 0 && check_accumulates(c, x, b)));
}

static bool makes_floats(const check *c, const exec *x, const bound *b)
{
    bool moves = check_traits(c, x, b)->moves && b->o[0].dtype == b->o[1].dtype;
    if (moves || x->dp->p->instrs.at[b->instr].op == ISA_fill_uninit) {
        return false;
    }
    for (uint32_t k = 0; k < b->nops; k++) {
        if (b->outs >> k & 1 && dtype_class_of((dtype)b->o[k].dtype) == DTC_F) {
            return true;
        }
    }
    return false;
}

void check_values_before(check *c, exec *x, const bound *b, const tile *t)
{
    bool ints = true, any = false, to_int = false;
    c->lost.found = c->had_nan = c->had_inf = false;
    bool floats = makes_floats(c, x, b);
    for (uint32_t k = 0; k < b->nops; k++) {
        const opnd *o = &b->o[k];
        if (!o->l) {
            continue;
        }
        if (b->outs >> k & 1) {
            to_int = to_int || dtype_is_int((dtype)o->dtype);
        } else {
            any = true;
            ints = ints && dtype_is_int((dtype)o->dtype);
        }
        if (floats && is_input(c, x, b, k) && overwritten(c, x, b, t, k)) {
            at_hand a = check_operand(c, x, b, t, k);
            odd v = scan_operand(&a);
            c->had_nan |= v.nan;
            c->had_inf |= v.inf;
        }
    }
    for (int i = 0; floats && check_traits(c, x, b)->folds && i < 2;
         i++) {  // the accumulator registers are inputs as well
        for (uint32_t r = 0; r < PARTS; r++) {
            float v = x->core->acc[i][r];
            c->had_nan |= isnan(v);
            c->had_inf |= isinf(v);
        }
    }
    c->watch_reads = to_int;
    c->watch_floats = any && ints;
    watching = c;
}

// Numbers in the instruction itself.
static void odd_numbers(const exec *x, const bound *b, bool *nan, bool *inf)
{
    const ir *p = x->dp->p;
    const ir_instr *in = &p->instrs.at[b->instr];
    for (uint32_t i = 0; i < in->nargs; i++) {
        ir_arg a = p->args.at[in->args + i];
        if (a.kind == IRA_F32) {
            *nan |= isnan(ira_float(a));
            *inf |= isinf(ira_float(a));
        }
    }
}

// The values that an element of the result was made from, where shapes show which they are.
static void note_inputs(check *c, exec *x, const bound *b, const tile *t, const at_hand *d,
                        uint64_t at, diag *dg)
{
    // The element's place in the pattern, when rows are plain.
    const layout *l = d->t.l;
    int64_t off = (int64_t)at - (d->t.p - d->mem);
    if (!l->contig || d->o->dyn || d->t.ps < l->hi) {
        return;
    }
    uint32_t row = (uint32_t)(off / d->t.ps);
    uint64_t elem = (uint64_t)(off % d->t.ps) / d->t.size;
    for (uint32_t k = 0; k < b->nops; k++) {
        const layout *s = b->o[k].l;
        if (!is_input(c, x, b, k) || s->parts != l->parts || !s->contig || b->o[k].dyn ||
            (s->n != l->n && s->n != 1) || overwritten(c, x, b, t, k)) {
            continue;
        }
        at_hand a = check_operand(c, x, b, t, k);
        uint64_t from =
            (uint64_t)(a.t.p - a.mem + (int64_t)row * a.t.ps) + (s->n == 1 ? 0 : elem * a.t.size);
        const char *operand = check_param(x, b, a.o)->name, *element = check_element(&a, from);
        if (check_writer(&a)) {
            check_note_writer(&a, dg, check_writer(&a),
                              arena_printf(c->ds->mem, "wrote to operand '%s' last; %s is %s",
                                           operand, element, check_value(&a, from)));
        } else {
            diag_note_add(c->ds, dg, (loc){0}, "operand '%s': %s is %s", operand, element,
                          check_value(&a, from));
        }
    }
}

static void report_lost(check *c, exec *x, const bound *b, const tile *t)
{
    at_hand a;
    uint64_t at;
    if (!find_lost(c, x, b, t, &a, &at)) {
        return;
    }
    const ir *p = x->dp->p;
    const ir_instr *in = &p->instrs.at[b->instr];
    const lost_int *l = &c->lost;
    finding *f = check_first(c, x, b, D_int_lost, a.o->param);
    if (f) {
        const char *name = isa_table[in->op].name, *operand = check_param(x, b, a.o)->name;
        f->d = l->read ? diag_int_lost(c->ds, ir_place_loc(p, in->place), name, operand,
                                       check_element(&a, at), dtype_name(l->dtype),
                                       check_number(c, l->value), "is read as",
                                       check_number(c, l->kept))
                       : diag_int_lost(c->ds, ir_place_loc(p, in->place), name, operand,
                                       check_element(&a, at), dtype_name(l->dtype),
                                       check_number(c, l->value), "is stored as",
                                       check_number(c, l->kept));
        check_explain(&a, f, f->d);
        if (l->read) {
            check_note_writer(&a, f->d, check_writer(&a), "wrote to it last");
        } else {
            note_inputs(c, x, b, t, &a, at, f->d);
        }
    }
}

static void report_odd(check *c, exec *x, const bound *b, const tile *t, const at_hand *a,
                       uint64_t at, bool nan)
{
    const ir *p = x->dp->p;
    const ir_instr *in = &p->instrs.at[b->instr];
    finding *f = check_first(c, x, b, D_nonfinite_made, (uint8_t)(a->o->param | (nan ? 0x80 : 0)));
    if (f) {
        f->d = diag_nonfinite_made(c->ds, ir_place_loc(p, in->place), isa_table[in->op].name,
                                   check_param(x, b, a->o)->name, check_element(a, at),
                                   check_value(a, at),
                                   nan ? "no input is NaN" : "all inputs are finite");
        check_explain(a, f, f->d);
        note_inputs(c, x, b, t, a, at, f->d);
    }
}

static void check_odd(check *c, exec *x, const bound *b, const tile *t)
{
    bool nan = c->had_nan, inf = c->had_inf, asked = false;
    for (uint32_t k = 0; k < b->nops; k++) {
        if (!(b->outs >> k & 1)) {
            continue;
        }
        at_hand a = check_operand(c, x, b, t, k);
        odd v = scan_operand(&a);
        if (!v.nan && !v.inf) {
            continue;
        }
        if (!asked) {
            asked = true;
            odd_numbers(x, b, &nan, &inf);
            for (uint32_t j = 0; j < b->nops && !nan; j++) {
                if (is_input(c, x, b, j) && !overwritten(c, x, b, t, j)) {
                    at_hand in = check_operand(c, x, b, t, j);
                    odd o = scan_operand(&in);
                    nan |= o.nan;
                    inf |= o.inf;
                }
            }
        }
        if (v.nan && !nan) {
            report_odd(c, x, b, t, &a, v.nan_at, true);
        }
        if (v.inf && !inf && !nan) {
            report_odd(c, x, b, t, &a, v.inf_at, false);
        }
    }
}

void check_values_after(check *c, exec *x, const bound *b, const tile *t)
{
    if (c->lost.found) {
        report_lost(c, x, b, t);
    }
    if (makes_floats(c, x, b)) {
        check_odd(c, x, b, t);
    }
}
