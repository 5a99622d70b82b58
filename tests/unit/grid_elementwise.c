// Cases of the element-wise instructions: operators, functions, bits, selects.

#include "tests/unit/grid.h"

static const ref_format *type(uint32_t i)
{
    return &ref_formats[i % REF_FORMATS];
}

static double f32(double v)
{
    return (double)(float)v;
}

static void expect_operator(side *d, size_t i, op_id op, double x, double y)
{
    double r = ref_operator(op, x, y);
    if (op == OPR_power && !isnan(r)) {
        long double e = powl((long double)x, (long double)y);
        bool plain = isinf(r) || r == 0 || (e == nearbyintl(e) && fabsl(e) < 0x1p24L);
        grid_near(d, i, plain ? (long double)r : e, plain ? 0 : 0.51);
        return;
    }
    grid_exact(d, i, f32(r));
}

static double step(op_id op, double x, double y)
{
    return f32(ref_operator(op, x, y));
}

// One operator in the three instructions that take it, reversed too.
static void operator_case(op_id op, uint32_t st, uint32_t dt, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_kind k0 = turn % GRID_KINDS, k1 = turn / 2 % GRID_KINDS, kd = turn / 3 % GRID_KINDS;
    const ref_format *other = type(turn);
    grid_begin(4);
    side *x = grid_source(type(st), parts, n, k0, GRID_CROSS0);
    side *y = grid_source(other, parts, n, k1, GRID_CROSS1);
    side *s = grid_source(grid_format(DT_float32), parts, 1, GRID_PLAIN, GRID_CROSS1);
    bool rev = turn % 2;
    side *a = grid_dest(type(dt), parts, n, kd), *b = grid_dest(type(dt), parts, n, GRID_PLAIN),
         *c = grid_dest(type(dt), parts, n, kd), *e = grid_dest(type(dt), parts, n, GRID_PLAIN);
    const float imm = 1.75f;
    GRID_EMIT(tensor_tensor, ENG_VECTOR, V(a->view), V(x->view), V(y->view), OPID(op), EN(0));
    GRID_EMIT(tensor_scalar, ENG_VECTOR, V(b->view), V(x->view), OPID(op), V(s->view), B(rev), NONE,
              NONE, B(0), EN(0));
    GRID_EMIT(tensor_scalar, ENG_VECTOR, V(c->view), V(x->view), OP(multiply), F(imm), B(0),
              OPID(op), V(s->view), B(rev), EN(0));
    GRID_EMIT(scalar_tensor_tensor, ENG_VECTOR, V(e->view), V(x->view), OP(subtract), F(imm),
              OPID(op), V(y->view), B(rev), B(rev), NONE);
    grid_seen(ISA_tensor_tensor, op, OP_ALU);
    for (uint32_t i = 0; i < parts * n; i++) {
        double u = f32(x->v[i]), v = f32(y->v[i]), w = s->v[i / n];
        expect_operator(a, i, op, u, v);
        expect_operator(b, i, op, rev ? w : u, rev ? u : w);
        double m = step(OPR_multiply, u, (double)imm);
        expect_operator(c, i, op, rev ? w : m, rev ? m : w);
        double t = step(OPR_subtract, rev ? (double)imm : u, rev ? u : (double)imm);
        expect_operator(e, i, op, rev ? v : t, rev ? t : v);
    }
    grid_run(op_table[op].name);
}

void grid_elementwise(void **state)
{
    (void)state;
    uint32_t turn = 0;
    for (int op = 0; op < OPR_COUNT; op++) {
        if (op_table[op].cls == OPC_B || op_table[op].cls == OPC_U ||
            !(op_table[op].roles & OP_ALU)) {
            continue;
        }
        for (uint32_t dt = 0; dt < REF_FORMATS; dt++) {
            for (uint32_t k = 0; k < (grid_all ? REF_FORMATS : 1); k++) {
                operator_case((op_id)op, grid_all ? k : dt * 7 + (uint32_t)op, dt, turn++);
            }
        }
    }
}

// ---- functions

static void expect_function(side *d, size_t i, const ref_function *r, float x)
{
    long double e = r->f((long double)x);
    double ulp = r->ulp;
    if (r->zero != 0 && fabsf(x - r->zero) < 1.0f / 1024) {
        ulp = r->absolute / (double)ref_unit(e);
    }
    bool sign = !isnan(e) && (e == 0 || ulp == 0);
    grid_near(d, i, e, ulp);
    if (!sign && !isnan(e) && fabsl(e) < 0x1p-149L) {  // a zero of either sign of its own
        d->lo[i] = e < 0 ? -0x1p-149 : 0.0;
        d->hi[i] = e < 0 ? -0.0 : 0x1p-149;
    }
}

// slope and stages of activate2 are in stage_case.
static void function_case(const ref_function *r, uint32_t st, uint32_t dt, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(4);
    const ref_format *f32_ = grid_format(DT_float32);
    side *x =
        grid_source(type(st), parts, n, turn % GRID_KINDS, turn % 3 ? GRID_CROSS0 : GRID_MODERATE);
    side *sc = grid_source(f32_, parts, 1, GRID_PLAIN, GRID_MODERATE);
    side *bi = grid_source(type(turn / 2), parts, 1, GRID_PLAIN, GRID_MODERATE);
    side *a = grid_dest(type(dt), parts, n, turn / 3 % GRID_KINDS),
         *b = grid_dest(type(dt), parts, n, GRID_PLAIN),
         *c = grid_dest(type(dt), parts, n, GRID_PLAIN);
    GRID_EMIT(activation, ENG_SCALAR, V(a->view), OPID(r->op), V(x->view), NONE, F(1), NONE, NONE,
              EN(ISAE_reduce_cmd_idle));
    GRID_EMIT(activation, ENG_SCALAR, V(b->view), OPID(r->op), V(x->view), V(bi->view), V(sc->view),
              NONE, NONE, EN(ISAE_reduce_cmd_idle));
    bool bypass = r->op == OPR_bypass;
    GRID_EMIT(activate2, ENG_SCALAR, V(c->view), OPID(r->op), V(x->view), V(sc->view), F(0.5f),
              OPID(bypass ? OPR_bypass : OPR_multiply), OPID(bypass ? OPR_bypass : OPR_subtract),
              F(0), B(0), B(1), NONE, NONE, EN(ISAE_reduce_cmd_idle));
    grid_seen(ISA_activation, r->op, OP_ACT);
    side *t = NULL;
    if (op_table[r->op].roles & OP_ALU) {
        t = grid_dest(type(dt), parts, n, GRID_STEP2);
        GRID_EMIT(tensor_scalar, ENG_VECTOR, V(t->view), V(x->view), OPID(r->op), NONE, B(0), NONE,
                  NONE, B(0), EN(0));
        grid_seen(ISA_tensor_scalar, r->op, OP_ALU);
    }
    for (uint32_t i = 0; i < parts * n; i++) {
        float v = (float)x->v[i], s = (float)sc->v[i / n];
        expect_function(a, i, r, fmaf(v, 1.0f, 0.0f));
        expect_function(b, i, r, fmaf(v, s, (float)bi->v[i / n]));
        float z = bypass ? v : 0.5f - v * s;
        expect_function(c, i, r, z);
        if (r->op == OPR_prelu && z < 0) {
            grid_exact(c, i, (double)(0.0f * z));  // a slope of 0 is a factor
        }
        if (t) {
            expect_function(t, i, r, v);
        }
    }
    grid_run(op_table[r->op].name);
}

static void slope_case(uint32_t turn)
{
    grid_begin(4);
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *s = grid_source(grid_format(DT_float32), parts, 1, GRID_PLAIN, GRID_MODERATE);
    side *d = grid_dest(type(turn / 2), parts, n, GRID_PLAIN),
         *m = grid_dest(type(turn / 2), parts, n, GRID_PLAIN);
    GRID_EMIT(activate2, ENG_SCALAR, V(d->view), OP(prelu), V(x->view), F(0), F(0), OP(bypass),
              OP(bypass), V(s->view), B(0), B(0), NONE, NONE, EN(ISAE_reduce_cmd_idle));
    GRID_EMIT(activate2, ENG_SCALAR, V(m->view), OP(copy), V(x->view), V(s->view), F(0.3f),
              OP(multiply), OP(add), F(0), B(0), B(0), NONE, NONE, EN(ISAE_reduce_cmd_idle));
    for (uint32_t i = 0; i < parts * n; i++) {
        float v = (float)x->v[i], a = (float)s->v[i / n];
        grid_exact(d, i, (double)(v >= 0 ? v : a * v));
        grid_exact(m, i, (double)fmaf(v, a, 0.3f));  // one rounding
    }
    grid_run("activate2 with a slope");
}

// exponential and reciprocal, which have a function of their own.
static void own_function_case(uint32_t turn)
{
    grid_begin(4);
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *m = grid_source(grid_format(DT_float32), parts, 1, GRID_PLAIN, GRID_MODERATE);
    side *d = grid_dest(type(turn / 2), parts, n, GRID_PLAIN),
         *r = grid_dest(type(turn / 2), parts, n, GRID_PLAIN);
    GRID_EMIT(exponential, ENG_VECTOR, V(d->view), V(x->view), V(m->view), NONE,
              EN(ISAE_reduce_cmd_idle), F(0));
    GRID_EMIT(reciprocal, ENG_VECTOR, V(r->view), V(x->view));
    for (uint32_t i = 0; i < parts * n; i++) {
        float v = (float)x->v[i];
        expect_function(d, i, ref_function_of(OPR_exp), v - (float)m->v[i / n]);
        grid_exact(r, i, (double)(1.0f / v));
    }
    grid_run("exponential, reciprocal");
}

void grid_functions(void **state)
{
    (void)state;
    uint32_t turn = 0;
    for (int i = 0; i < REF_FUNCTIONS; i++) {
        for (uint32_t dt = 0; dt < REF_FORMATS; dt += grid_all ? 1 : 4) {
            for (uint32_t k = 0; k < (grid_all ? REF_FORMATS : 1); k++) {
                function_case(&ref_functions[i], grid_all ? k : dt * 7 + (uint32_t)i,
                              dt + (grid_all ? 0 : turn % 4), turn);
                turn++;
            }
        }
    }
    for (turn = 0; turn < (grid_all ? 225 : 15); turn++) {
        slope_case(turn);
        own_function_case(turn);
    }
}

// ---- bits and exact integers

static uint32_t bits_operator(op_id op, uint64_t x, uint64_t y, int bits)
{
    switch (op) {
    case OPR_bitwise_and: return (uint32_t)(x & y);
    case OPR_bitwise_or: return (uint32_t)(x | y);
    case OPR_bitwise_xor: return (uint32_t)(x ^ y);
    case OPR_invert: return (uint32_t)~x;
    case OPR_left_shift: return y < (uint64_t)bits ? (uint32_t)(x << y) : 0;
    default: return y < (uint64_t)bits ? (uint32_t)(x >> y) : 0;
    }
}

static uint32_t pattern_of(const side *s, size_t i)
{
    return ref_pattern(s->f, s->v[i]);
}

static void bits_case(op_id op, const ref_format *f, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    side *x = grid_source(f, parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *y = grid_source(f, parts, n, turn / 2 % GRID_KINDS, GRID_CROSS1);
    side *a = grid_dest(f, parts, n, turn / 3 % GRID_KINDS),
         *b = grid_dest(f, parts, n, GRID_PLAIN);
    GRID_EMIT(tensor_tensor, ENG_VECTOR, V(a->view), V(x->view), V(y->view), OPID(op), EN(0));
    GRID_EMIT(tensor_scalar, ENG_VECTOR, V(b->view), V(x->view), OPID(op), I(turn % 2 ? 3 : 1),
              B(turn % 2), OP(bitwise_xor), I(5), B(0), EN(0));
    grid_seen(ISA_tensor_tensor, op, OP_ALU);
    a->raw = true;
    b->raw = true;
    uint32_t imm = turn % 2 ? 3 : 1;
    for (uint32_t i = 0; i < parts * n; i++) {
        uint32_t u = pattern_of(x, i), v = pattern_of(y, i);
        grid_exact(a, i, ref_value(f, bits_operator(op, u, v, f->bits)));
        bool rev = turn % 2 && op != OPR_invert;
        grid_exact(b, i,
                   ref_value(f, 5 ^ bits_operator(op, rev ? imm : u, rev ? u : imm, f->bits)));
    }
    grid_run(op_table[op].name);
}

// GpSimd on 32-bit integers: exact, wrapping.
static void integer_case(op_id op, dtype t, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    const ref_format *f = grid_format(t);
    side *x = grid_source(f, parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *y = grid_source(f, parts, n, turn / 2 % GRID_KINDS, GRID_CROSS1);
    side *a = grid_dest(f, parts, n, turn / 3 % GRID_KINDS);
    GRID_EMIT(tensor_tensor, ENG_GPSIMD, V(a->view), V(x->view), V(y->view), OPID(op), EN(0));
    a->raw = true;
    for (uint32_t i = 0; i < parts * n; i++) {
        int64_t u = (int64_t)x->v[i], v = (int64_t)y->v[i];
        uint64_t r = op == OPR_add        ? (uint64_t)u + (uint64_t)v
                     : op == OPR_subtract ? (uint64_t)u - (uint64_t)v
                     : op == OPR_multiply ? (uint64_t)u * (uint64_t)v
                     : op == OPR_maximum  ? (uint64_t)(u > v ? u : v)
                                          : (uint64_t)(u < v ? u : v);
        grid_exact(a, i, ref_value(f, (uint32_t)r));
    }
    grid_run(op_table[op].name);
}

void grid_bits(void **state)
{
    (void)state;
    uint32_t turn = 0;
    for (int op = 0; op < OPR_COUNT; op++) {
        for (int i = 0; i < REF_FORMATS && op_table[op].cls == OPC_B; i++) {
            if (!ref_formats[i].eb && ref_formats[i].d != DT_bool_) {
                for (int k = 0; k < (grid_all ? 30 : 2); k++) {
                    bits_case((op_id)op, &ref_formats[i], turn++);
                }
            }
        }
    }
    static const op_id ops[] = {OPR_add, OPR_subtract, OPR_multiply, OPR_maximum, OPR_minimum};
    for (int k = 0; k < (grid_all ? 60 : 6); k++) {
        for (int i = 0; i < 5; i++) {
            integer_case(ops[i], DT_int32, turn++);
            integer_case(ops[i], DT_uint32, turn++);
        }
    }
}

// ---- selects

static void range_case(uint32_t turn)
{
    static const op_id ops[] = {OPR_equal, OPR_less, OPR_less_equal, OPR_greater,
                                OPR_greater_equal};
    op_id c0 = ops[turn % 5], c1 = ops[turn / 5 % 5];
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    const ref_format *f = grid_format(DT_float32);
    double lo[128], hi[128];
    for (uint32_t p = 0; p < parts; p++) {
        lo[p] = (double)(p * 3 % (n + 2)) + (p % 4 == 3 ? 0.5 : 0);
        hi[p] = p % 7 == 6 ? (double)NAN : (double)(p * 11 % (n + 3));
    }
    side *x = grid_source(type(turn % 7), parts, n, turn % GRID_KINDS, GRID_MODERATE);
    side *b0 = grid_given(f, parts, 1, lo), *b1 = grid_given(f, parts, 1, hi);
    side *d = grid_dest(f, parts, n, turn / 3 % GRID_KINDS),
         *r = grid_dest(f, parts, 1, GRID_PLAIN);
    const float other = -3.4028235e38f;
    const int start = 2;
    GRID_EMIT(range_select, ENG_VECTOR, V(d->view), V(x->view), OPID(c0), OPID(c1), V(b0->view),
              V(b1->view), EN(ISAE_reduce_cmd_reset_reduce), V(r->view), OP(maximum), I(start),
              F(other));
    for (uint32_t p = 0; p < parts; p++) {
        double top = -(double)INFINITY;
        for (uint32_t i = 0; i < n; i++) {
            double k = start + (double)i;
            bool in = ref_operator(c0, k, lo[p]) != 0 && ref_operator(c1, k, hi[p]) != 0;
            double v = in ? f32(x->v[p * n + i]) : (double)other;
            grid_exact(d, p * n + i, v);
            top = ref_operator(OPR_maximum, top, v);
        }
        grid_exact(r, p, top);
    }
    grid_run("range_select");
}

static void select_case(uint32_t turn)
{
    static const dtype preds[] = {DT_uint8, DT_int8, DT_uint16, DT_int16};
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    bool rev = turn % 2;
    grid_begin(3);
    side *p = grid_source(grid_format(preds[turn % 4]), parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *x = grid_source(type(turn), parts, n, turn / 2 % GRID_KINDS, GRID_MODERATE);
    side *o = grid_source(grid_format(DT_float32), parts, 1, GRID_PLAIN, GRID_CROSS1);
    side *d = grid_dest(type(turn / 3), parts, n, turn / 3 % GRID_KINDS),
         *r = grid_dest(grid_format(DT_float32), parts, 1, GRID_PLAIN);
    GRID_EMIT(select_reduce, ENG_VECTOR, V(d->view), V(p->view), V(x->view), V(o->view), V(r->view),
              EN(ISAE_reduce_cmd_reset_reduce), OP(maximum), B(rev));
    for (uint32_t q = 0; q < parts; q++) {
        double top = -(double)INFINITY;
        for (uint32_t i = q * n; i < (q + 1) * n; i++) {
            double v = (p->v[i] != 0) != rev ? f32(x->v[i]) : o->v[q];
            grid_exact(d, i, v);
            top = ref_operator(OPR_maximum, top, v);
        }
        grid_exact(r, q, top);
    }
    grid_run("select_reduce");
}

static void predicated_case(uint32_t turn)
{
    static const dtype preds[] = {DT_uint8, DT_uint16, DT_uint32};
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    bool rev = turn % 2;
    grid_begin(3);
    const ref_format *f = type(turn);
    side *p = grid_source(grid_format(preds[turn % 3]), parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *x = grid_source(f, parts, n, turn / 2 % GRID_KINDS, GRID_CROSS0);
    side *y = grid_source(f, parts, n, GRID_PLAIN, GRID_CROSS1);
    side *d = grid_dest(f, parts, n, turn / 3 % GRID_KINDS);
    GRID_EMIT(tensor_copy, ENG_VECTOR, V(d->view), V(y->view), EN(0), NONE);
    GRID_EMIT(tensor_copy_predicated, ENG_VECTOR, V(d->view), V(x->view), V(p->view), B(rev));
    d->raw = true;
    for (uint32_t i = 0; i < parts * n; i++) {
        grid_exact(d, i, (p->v[i] != 0) != rev ? x->v[i] : y->v[i]);
    }
    grid_run("tensor_copy_predicated");
}

static void affine_select_case(uint32_t turn)
{
    op_id cmp = (op_id)(OPR_equal + turn % 6);
    grid_begin(3);
    uint32_t parts = 1 + turn * 13 % 128, a = 3 + turn % 5, b = 7, n = a * b;
    int64_t sa = -3, sb = 2, channel = (int64_t)(turn % 3) - 1, offset = 5 - (int64_t)turn;
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *d = grid_dest(type(turn / 2), parts, n, turn / 3 % GRID_KINDS);
    GRID_EMIT(affine_select, ENG_GPSIMD, V(d->view),
              prog_ints(&grid_prog, 4, (const int64_t[]){sa, a, sb, b}), I((int32_t)channel),
              V(x->view), F(-2.5f), OPID(cmp), I((int32_t)offset));
    for (uint32_t i = 0; i < parts * n; i++) {
        int64_t v = offset + channel * (i / n) + sa * (i % n / b) + sb * (i % b);
        grid_exact(d, i, ref_operator(cmp, (double)v, 0) != 0 ? f32(x->v[i]) : -2.5);
    }
    grid_run("affine_select");
}

void grid_selects(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < (grid_all ? 450 : 30); turn++) {
        range_case(turn);
        select_case(turn);
        predicated_case(turn);
        affine_select_case(turn);
    }
}
