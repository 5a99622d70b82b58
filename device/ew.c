#include "device/internal.h"

#include <math.h>

// Element-wise instructions: a short chain of steps over chunks that stay in L1, each step one loop
// of kern.h, then the conversion to the destination, then the fold of the chunk if there is one.

enum { EW_CHUNK = CHUNK / 2 };  // three buffers of it stay in L1

typedef enum step_kind {
    STEP_BIN,  // cur = op(cur, operand) or reversed; operand a tile or a scalar
    STEP_UN,
    STEP_AFFINE,  // fma(cur, scalar[a], scalar[b])
    STEP_PRELU,   // slope scalar[a]
    STEP_SELECT,  // cur (a predicate) ? tile[a] : scalar[b]
    STEP_RANGE,   // range_select: index compared with scalar[a] and scalar[b], else scalar 2
    STEP_AFSEL,   // affine_select
    STEP_INVERT,  // 1 where cur is 0, else 0
} step_kind;

typedef struct ew_step {
    uint8_t kind, op, mode;
    int8_t a, b;  // scalar or operand numbers
} ew_step;

// A number, or an operand of shape (P, 1).
typedef struct ew_scalar {
    int8_t opnd;  // -1: imm
    float imm;
} ew_scalar;

typedef struct affine_pattern {
    int32_t step[4];
    uint32_t count[4];
    uint32_t n;
    int32_t channel;
    regnum offset;
} affine_pattern;

// Operand 0 is dst, 1 the first source.
typedef struct ew {
    uint8_t nsteps, nscalars;
    ew_step step[4];
    ew_scalar scalar[6];
    bool has_fold, negate;
    uint8_t fold;  // op
    uint8_t cmd;   // reduce_cmd
    uint8_t acc;   // ACC_VECTOR, ACC_SCALAR
    int8_t res;    // operand of reduce_res, -1
    int8_t init;   // scalar of load_reduce, -1
    uint8_t cmp0, cmp1;
    int64_t range_start;
    affine_pattern pattern;
} ew;

static crows scalar_rows(const exec *x, const ew *e, int s, size_t r0)
{
    if (e->scalar[s].opnd < 0) {
        return (crows){&e->scalar[s].imm, 0};
    }
    return (crows){&x->s->scal[s][r0], sizeof(float)};
}

static void load_scalars(exec *x, const ew *e, const tile *t)
{
    for (int s = 0; s < e->nscalars; s++) {
        if (e->scalar[s].opnd >= 0) {
            const tile *v = &t[e->scalar[s].opnd];
            for (uint32_t r = 0; r < v->parts; r++) {
                crows c = load_rows(x, v, r, 1, 0, 1, &x->s->scal[s][r]);
                memcpy(&x->s->scal[s][r], c.p, sizeof(float));
            }
        }
    }
}

// The affine value of element e of partition p, in wrapping 32-bit arithmetic.
static void affine_values(const exec *x, const affine_pattern *a, size_t p, uint64_t e0, size_t n,
                          int32_t *out)
{
    uint32_t base = (uint32_t)regnum_get(x, a->offset) + (uint32_t)a->channel * (uint32_t)p;
    uint32_t at[4] = {0, 0, 0, 0};
    for (uint32_t d = a->n; d-- > 0;) {
        at[d] = (uint32_t)(e0 % a->count[d]);
        e0 /= a->count[d];
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t v = base;
        for (uint32_t d = 0; d < a->n; d++) {
            v += at[d] * (uint32_t)a->step[d];
        }
        out[i] = (int32_t)v;
        for (uint32_t d = a->n; d-- > 0;) {
            if (++at[d] < a->count[d] || d == 0) {
                break;
            }
            at[d] = 0;
        }
    }
}

// A chunk: rows r0 .. r0 + nrows, elements e0 .. e0 + n.
typedef struct chunk {
    size_t r0, nrows, n;
    uint64_t e0;
} chunk;

static bool compare(op_id op, double a, double b)
{
    switch (op) {
    case OPR_equal: return a == b;
    case OPR_not_equal: return a != b;
    case OPR_less: return a < b;
    case OPR_less_equal: return a <= b;
    case OPR_greater: return a > b;
    default: return a >= b;
    }
}

static void step_special(exec *x, const ew *e, const ew_step *s, chunk c, crows cur, rows out)
{
    for (size_t r = 0; r < c.nrows; r++) {
        const f32u *in = (const f32u *)((const char *)cur.p + (ptrdiff_t)r * cur.stride);
        f32u *o = (f32u *)((char *)out.p + (ptrdiff_t)r * out.stride);
        if (s->kind == STEP_INVERT) {
            for (size_t i = 0; i < c.n; i++) {
                o[i] = in[i] != 0.0f ? 0.0f : 1.0f;
            }
        } else if (s->kind == STEP_RANGE) {
            float b0 = *(const float *)scalar_rows(x, e, 0, c.r0 + r).p;
            float b1 = *(const float *)scalar_rows(x, e, 1, c.r0 + r).p;
            float other = e->scalar[2].imm;
            for (size_t i = 0; i < c.n; i++) {
                float k = (float)(e->range_start + (int64_t)(c.e0 + i));
                bool in0 = compare((op_id)e->cmp0, (double)k, (double)b0);
                o[i] = in0 && compare((op_id)e->cmp1, (double)k, (double)b1) ? in[i] : other;
            }
        } else {
            int32_t *v = (int32_t *)x->s->raw[1];
            float other = e->scalar[0].imm;
            affine_values(x, &e->pattern, x->row0 + c.r0 + r, c.e0, c.n, v);
            for (size_t i = 0; i < c.n; i++) {
                o[i] = compare((op_id)s->op, (double)v[i], 0.0) ? in[i] : other;
            }
        }
    }
}

static void run_step(exec *x, const ew *e, const ew_step *s, const tile *t, chunk c, crows cur,
                     rows out)
{
    const kernels *k = x->k;
    switch ((step_kind)s->kind) {
    case STEP_BIN: {
        crows other = s->mode == KERN_VV && s->a >= 0
                          ? load_rows(x, &t[s->a], c.r0, c.nrows, c.e0, c.n, x->s->buf[1])
                          : scalar_rows(x, e, s->b, c.r0);
        if (s->mode == KERN_SV) {
            k->bin[s->op][KERN_SV](out, other, cur, c.nrows, c.n);
        } else if (s->mode == KERN_VV && s->b == 1) {  // reversed
            k->bin[s->op][KERN_VV](out, other, cur, c.nrows, c.n);
        } else {
            k->bin[s->op][s->mode](out, cur, other, c.nrows, c.n);
        }
        break;
    }
    case STEP_UN: k->un[s->op](out, cur, c.nrows, c.n); break;
    case STEP_AFFINE:
        k->affine(out, cur, scalar_rows(x, e, s->a, c.r0), scalar_rows(x, e, s->b, c.r0), c.nrows,
                  c.n);
        break;
    case STEP_PRELU: k->prelu(out, cur, scalar_rows(x, e, s->a, c.r0), c.nrows, c.n); break;
    case STEP_SELECT:
        k->select(out, cur, load_rows(x, &t[s->a], c.r0, c.nrows, c.e0, c.n, x->s->buf[1]),
                  scalar_rows(x, e, s->b, c.r0), c.nrows, c.n, true);
        break;
    default: step_special(x, e, s, c, cur, out); break;
    }
}

static void fold_start(exec *x, const ew *e, chunk c)
{
    float id = kern_identity((op_id)e->fold);
    for (size_t r = 0; r < c.nrows; r++) {
        for (int j = 0; j < 16; j++) {
            x->s->part[r][j] = id;
        }
    }
}

// Brings the folds of whole rows into the accumulator registers and the result tile.
static void fold_finish(exec *x, const bound *b, const ew *e, const tile *t, chunk c)
{
    float *acc = x->core->acc[e->acc];
    op_id op = (op_id)e->fold;
    for (size_t r = 0; r < c.nrows; r++) {
        float *reg = &acc[(b->lane0 + x->row0 + c.r0 + r) % PARTS];
        float v = 0;
        bool has = e->cmd == ISAE_reduce_cmd_reduce || e->cmd == ISAE_reduce_cmd_reset_reduce ||
                   e->cmd == ISAE_reduce_cmd_load_reduce;
        if (has) {
            v = kern_tree(x->k, op, x->s->part[r]);
        }
        switch (e->cmd) {
        case ISAE_reduce_cmd_reset: *reg = kern_identity(op); break;
        case ISAE_reduce_cmd_reduce: *reg = kern_scalar(x->k, op, *reg, v); break;
        case ISAE_reduce_cmd_reset_reduce: *reg = v; break;
        case ISAE_reduce_cmd_load_reduce:
            *reg = kern_scalar(x->k, op, *(const float *)scalar_rows(x, e, e->init, c.r0 + r).p, v);
            break;
        default: break;
        }
        if (e->res >= 0) {
            float out = e->negate ? -*reg : *reg;
            store_rows(x, &t[e->res], c.r0 + r, 1, 0, 1, (crows){&out, 0});
        }
    }
}

static void run_chunk(exec *x, const ew *e, const tile *t, chunk c, bool past_caches)
{
    const tile *d = &t[0];
    bool direct = d->l->contig && d->dtype == DT_float32 && !past_caches;
    rows mem = {d->p + (int64_t)c.r0 * d->ps + (int64_t)c.e0 * 4, d->ps};
    rows buf = {x->s->buf[2], (ptrdiff_t)(c.n * sizeof(float))};
    crows cur = load_rows(x, &t[1], c.r0, c.nrows, c.e0, c.n, x->s->buf[0]);
    for (int i = 0; i < e->nsteps; i++) {
        rows out = direct && i + 1 == e->nsteps ? mem : buf;
        run_step(x, e, &e->step[i], t, c, cur, out);
        cur = (crows){out.p, out.stride};
    }
    if (past_caches) {
        for (size_t r = 0; r < c.nrows; r++) {
            x->k->stream((char *)mem.p + (ptrdiff_t)r * mem.stride,
                         (const char *)cur.p + (ptrdiff_t)r * cur.stride, c.n * sizeof(float));
        }
    } else if (!direct || e->nsteps == 0) {
        store_rows(x, d, c.r0, c.nrows, c.e0, c.n, cur);
    }
    if (e->has_fold) {
        x->k->folds[e->fold](x->s->part, cur.p, cur.stride, c.nrows, c.n);
    }
}

static bool is_direct(const tile *t)
{
    return t->l->contig && t->dtype == DT_float32;
}

static void run_ew(exec *x, const bound *b, const tile *t)
{
    const ew *e = b->a;
    size_t nrows = t[0].parts, together = 1;
    uint64_t n = t[0].l->n;
    size_t len = n < EW_CHUNK ? (size_t)n : EW_CHUNK;
    bool past_caches = b->flags & BOUND_STREAM && is_direct(&t[0]);
    load_scalars(x, e, t);
    if (!past_caches && e->nsteps == 1 && e->step[0].kind <= STEP_PRELU && is_direct(&t[0]) &&
        is_direct(&t[1]) &&
        !(e->step[0].kind == STEP_BIN && e->step[0].a >= 0 && !is_direct(&t[e->step[0].a]))) {
        together = nrows;  // no buffer in between
        len = n;
    } else if (len == n) {
        together = EW_CHUNK / len;
        together = together > nrows ? nrows : together;
    }
    for (size_t r0 = 0; r0 < nrows; r0 += together) {
        chunk c = {r0, nrows - r0 < together ? nrows - r0 : together, len, 0};
        if (e->has_fold) {
            fold_start(x, e, c);
        }
        for (uint64_t e0 = 0; e0 < n; e0 += len) {
            c.e0 = e0;
            c.n = n - e0 < len ? (size_t)(n - e0) : len;
            run_chunk(x, e, t, c, past_caches);
        }
        if (e->has_fold || e->res >= 0) {
            fold_finish(x, b, e, t, c);
        }
    }
}

// ---- binding

static ew *new_ew(binder *b)
{
    ew *e = BIND_ARGS(b, ew);
    e->res = -1;
    e->init = -1;
    return e;
}

// dst and the first source, of equal shape.
static bool bind_pair(binder *b, uint32_t dst, uint32_t src)
{
    if (bind_operand(b, dst, true) < 0 || bind_operand(b, src, false) < 0) {
        return false;
    }
    if (!b->o[0].l || !b->o[1].l) {
        return bind_fail(b, "a tensor is missing");
    }
    b->b->lane0 = (uint8_t)(b->o[1].base <= BASE_PSUM
                                ? b->o[1].offset / (b->o[1].base == BASE_PSUM
                                                        ? core_psum_stride(b->p->target)
                                                        : core_sbuf_stride(b->p->target))
                                : 0);
    return bind_same_shape(b, 0, 1) && bind_computes(b, 0) && bind_computes(b, 1);
}

// A further full tile: its operand number or -1.
static int bind_tile(binder *b, uint32_t param)
{
    int o = bind_operand(b, param, false);
    if (o < 0 || !b->o[o].l) {
        return o < 0 ? o : (bind_fail(b, "a tensor is missing"), -1);
    }
    return bind_same_shape(b, 0, o) && bind_computes(b, o) ? o : -1;
}

// A number or (P, 1) tile: its scalar number or -1. An absent one is `dflt`.
static int bind_scalar(binder *b, ew *e, uint32_t param, float dflt)
{
    ir_arg a = bind_arg(b, param);
    ew_scalar *s = &e->scalar[e->nscalars];
    s->opnd = -1;
    switch (a.kind) {
    case IRA_NONE: s->imm = dflt; break;
    case IRA_F32: s->imm = ira_float(a); break;
    case IRA_INT:
    case IRA_BOOL: s->imm = (float)ira_integer(a); break;
    case IRA_VIEW: {
        int o = bind_operand(b, param, false);
        if (o < 0 || !bind_computes(b, o)) {
            return -1;
        }
        if (b->o[o].l->n != 1 || b->o[o].l->parts != b->o[0].l->parts) {
            bind_fail(b, "%s is [%u, %llu], not one value for each of %u partitions",
                      b->info->params[param].name, b->o[o].l->parts,
                      (unsigned long long)b->o[o].l->n, b->o[0].l->parts);
            return -1;
        }
        s->opnd = (int8_t)o;
        break;
    }
    default: bind_fail(b, "%s is not a number or a tensor", b->info->params[param].name); return -1;
    }
    return e->nscalars++;
}

static op_id arg_op(const binder *b, uint32_t param)
{
    ir_arg a = bind_arg(b, param);
    return a.kind == IRA_OP && a.v < OPR_COUNT ? (op_id)a.v : OPR_COUNT;
}

static bool arg_true(const binder *b, uint32_t param)
{
    ir_arg a = bind_arg(b, param);
    return (a.kind == IRA_BOOL || a.kind == IRA_INT) && a.v != 0;
}

static bool push(ew *e, ew_step s)
{
    e->step[e->nsteps++] = s;
    return true;
}

// cur = op(cur, scalar) or op(scalar, cur); unary operators ignore the scalar.
static bool push_op(binder *b, ew *e, op_id op, uint32_t operand, bool reverse)
{
    if (op >= OPR_COUNT) {
        return bind_fail(b, "an operator is missing");
    }
    if (op_table[op].cls == OPC_U) {
        return push(e, (ew_step){STEP_UN, (uint8_t)op, 0, 0, 0});
    }
    if (op_table[op].cls == OPC_B) {
        return bind_fail(b, "%s works on bits and cannot be mixed with arithmetic",
                         op_table[op].name);
    }
    int s = bind_scalar(b, e, operand, 0.0f);
    return s >= 0 &&
           push(e, (ew_step){STEP_BIN, (uint8_t)op, reverse ? KERN_SV : KERN_VS, -1, (int8_t)s});
}

static bool push_tile(binder *b, ew *e, op_id op, uint32_t operand, bool reverse)
{
    if (op >= OPR_COUNT || !kern_get()->bin[op][KERN_VV]) {
        return bind_fail(b, "an operator of two arithmetic operands is missing");
    }
    int o = bind_tile(b, operand);
    return o >= 0 && push(e, (ew_step){STEP_BIN, (uint8_t)op, KERN_VV, (int8_t)o, reverse});
}

// The fold of the results into an accumulator register. init < 0: none.
static bool bind_fold(binder *b, ew *e, op_id op, int res, int cmd, uint8_t acc)
{
    if (op >= OPR_COUNT || !kern_get()->fold[op]) {
        return bind_fail(b, "this operator cannot fold");
    }
    e->has_fold = cmd == ISAE_reduce_cmd_reduce || cmd == ISAE_reduce_cmd_reset_reduce ||
                  cmd == ISAE_reduce_cmd_load_reduce ||
                  cmd == ISAE_reduce_cmd_reset;  // reaches fold_finish; partial results are dropped
    b->b->flags |= BOUND_LANES;
    e->fold = (uint8_t)op;
    e->cmd = (uint8_t)cmd;
    e->acc = acc;
    if (cmd == ISAE_reduce_cmd_load_reduce && e->init < 0) {
        return bind_fail(b, "load_reduce needs an initial value");
    }
    if (res < 0 || !bind_has(b, (uint32_t)res)) {
        return true;
    }
    int o = bind_operand(b, (uint32_t)res, true);
    if (o < 0 || !bind_computes(b, o)) {
        return false;
    }
    if (b->o[o].l->n != 1 || b->o[o].l->parts != b->o[0].l->parts) {
        return bind_fail(b, "%s is not one value a partition", b->info->params[res].name);
    }
    e->res = (int8_t)o;
    return true;
}

static int arg_enum(const binder *b, uint32_t param)
{
    return (int)bind_arg(b, param).v;
}

static bool finish(binder *b, const ew *e)
{
    return bind_done(b, run_ew, e, true);
}

bool bind_scalar_tensor_tensor(binder *b)
{
    ew *e = new_ew(b);
    return bind_pair(b, 0, 1) && push_op(b, e, arg_op(b, 2), 3, arg_true(b, 6)) &&
           push_tile(b, e, arg_op(b, 4), 5, arg_true(b, 7)) && finish(b, e);
}

bool bind_tensor_scalar_reduce(binder *b)
{
    ew *e = new_ew(b);
    int cmd = arg_enum(b, 7);
    if (!bind_pair(b, 0, 1) || !push_op(b, e, arg_op(b, 2), 3, arg_true(b, 6))) {
        return false;
    }
    if (cmd == ISAE_reduce_cmd_load_reduce) {
        e->init = (int8_t)bind_scalar(b, e, 8, 0.0f);
        if (e->init < 0) {
            return false;
        }
    }
    e->negate = arg_true(b, 9);
    return bind_fold(b, e, arg_op(b, 4), 5, cmd, ACC_VECTOR) && finish(b, e);
}

bool bind_reciprocal(binder *b)
{
    ew *e = new_ew(b);
    return bind_pair(b, 0, 1) && push(e, (ew_step){STEP_UN, OPR_reciprocal, 0, 0, 0}) &&
           finish(b, e);
}

// x * 1 + 0 differs from x in the sign of zero alone, which these functions do not see.
static bool needs_no_scaling(const ew *e, op_id op)
{
    const ew_step *s = &e->step[0];
    bool same = e->nsteps == 1 && s->kind == STEP_AFFINE && e->scalar[s->a].opnd < 0 &&
                e->scalar[s->a].imm == 1.0f && e->scalar[s->b].opnd < 0 &&
                e->scalar[s->b].imm == 0.0f;
    return same && (op == OPR_square || op == OPR_abs || op == OPR_exp || op == OPR_sigmoid ||
                    op == OPR_relu);
}

// The function of the Scalar engine after its scale and bias.
static bool push_activation(binder *b, ew *e, op_id op, int slope)
{
    if (op >= OPR_COUNT || op_table[op].cls != OPC_U) {
        return bind_fail(b, "this operator is not an activation function");
    }
    if (needs_no_scaling(e, op)) {
        e->nsteps = 0;
    }
    if (op == OPR_prelu && slope >= 0) {
        return push(e, (ew_step){STEP_PRELU, 0, 0, (int8_t)slope, 0});
    }
    return op == OPR_copy || op == OPR_bypass ? true
                                              : push(e, (ew_step){STEP_UN, (uint8_t)op, 0, 0, 0});
}

static bool bind_scaled(binder *b, ew *e, uint32_t bias, uint32_t scale)
{
    int s = bind_scalar(b, e, scale, 1.0f);
    int t = s < 0 ? -1 : bind_scalar(b, e, bias, 0.0f);
    if (t < 0) {
        return false;
    }
    // x * 1 + 0 is not left out here: -0 becomes 0, as the fused operation gives.
    return push(e, (ew_step){STEP_AFFINE, 0, 0, (int8_t)s, (int8_t)t});
}

bool bind_activation(binder *b)
{
    ew *e = new_ew(b);
    if (!bind_pair(b, 0, 2) || !bind_scaled(b, e, 3, 4) ||
        !push_activation(b, e, arg_op(b, 1), -1)) {
        return false;
    }
    op_id red = arg_op(b, 5);
    int cmd = arg_enum(b, 7);
    if (red < OPR_COUNT || bind_has(b, 6) || cmd != ISAE_reduce_cmd_idle) {
        if (!bind_fold(b, e, red < OPR_COUNT ? red : OPR_add, 6, cmd, ACC_SCALAR)) {
            return false;
        }
    }
    return finish(b, e);
}

bool bind_activation_reduce(binder *b)
{
    ew *e = new_ew(b);
    return bind_pair(b, 0, 2) && bind_scaled(b, e, 5, 6) &&
           push_activation(b, e, arg_op(b, 1), -1) &&
           bind_fold(b, e, arg_op(b, 3), 4, ISAE_reduce_cmd_reset_reduce, ACC_SCALAR) &&
           finish(b, e);
}

bool bind_activate2(binder *b)
{
    ew *e = new_ew(b);
    op_id op0 = arg_op(b, 5), op1 = arg_op(b, 6);
    bool r0 = arg_true(b, 8), r1 = arg_true(b, 9);
    if (!bind_pair(b, 0, 2)) {
        return false;
    }
    if (op0 == OPR_multiply && op1 == OPR_add) {  // one fused operation, either way round
        int s = bind_scalar(b, e, 3, 1.0f), t = s < 0 ? -1 : bind_scalar(b, e, 4, 0.0f);
        if (t < 0) {
            return false;
        }
        push(e, (ew_step){STEP_AFFINE, 0, 0, (int8_t)s, (int8_t)t});
    } else {
        if ((op0 != OPR_bypass && !push_op(b, e, op0, 3, r0)) ||
            (op1 != OPR_bypass && !push_op(b, e, op1, 4, r1))) {
            return false;
        }
    }
    int slope = bind_scalar(b, e, 7, 0.0f);
    if (slope < 0 || !push_activation(b, e, arg_op(b, 1), slope)) {
        return false;
    }
    op_id red = arg_op(b, 10);
    int cmd = arg_enum(b, 12);
    if (red < OPR_COUNT || bind_has(b, 11) || cmd != ISAE_reduce_cmd_idle) {
        if (!bind_fold(b, e, red < OPR_COUNT ? red : OPR_add, 11, cmd, ACC_SCALAR)) {
            return false;
        }
    }
    return finish(b, e);
}

bool bind_exponential(binder *b)
{
    ew *e = new_ew(b);
    int s = -1, cmd = arg_enum(b, 4);
    if (!bind_pair(b, 0, 1) || (s = bind_scalar(b, e, 2, 0.0f)) < 0) {
        return false;
    }
    push(e, (ew_step){STEP_BIN, OPR_subtract, KERN_VS, -1, (int8_t)s});
    push(e, (ew_step){STEP_UN, OPR_exp, 0, 0, 0});
    if (cmd == ISAE_reduce_cmd_load_reduce && (e->init = (int8_t)bind_scalar(b, e, 5, 0.0f)) < 0) {
        return false;
    }
    return bind_fold(b, e, OPR_add, 3, cmd, ACC_VECTOR) && finish(b, e);
}

bool bind_range_select(binder *b)
{
    ew *e = new_ew(b);
    op_id c0 = arg_op(b, 2), c1 = arg_op(b, 3);
    if (!bind_pair(b, 0, 1) || bind_scalar(b, e, 4, 0.0f) < 0 || bind_scalar(b, e, 5, 0.0f) < 0 ||
        bind_scalar(b, e, 10, -3.4028235e38f) < 0) {
        return false;
    }
    if (c0 >= OPR_COUNT || c1 >= OPR_COUNT || op_table[c0].cls != OPC_C ||
        op_table[c1].cls != OPC_C) {
        return bind_fail(b, "a comparison is missing");
    }
    e->cmp0 = (uint8_t)c0;
    e->cmp1 = (uint8_t)c1;
    e->range_start = ira_integer(bind_arg(b, 9));
    push(e, (ew_step){STEP_RANGE, 0, 0, 0, 0});
    return bind_fold(b, e, arg_op(b, 8), 7, arg_enum(b, 6), ACC_VECTOR) && finish(b, e);
}

bool bind_select_reduce(binder *b)
{
    ew *e = new_ew(b);
    int t = -1, s = -1;
    if (!bind_pair(b, 0, 1) || (t = bind_tile(b, 2)) < 0 || (s = bind_scalar(b, e, 3, 0.0f)) < 0) {
        return false;
    }
    if (arg_true(b, 7)) {
        push(e, (ew_step){STEP_INVERT, 0, 0, 0, 0});
    }
    push(e, (ew_step){STEP_SELECT, 0, 0, (int8_t)t, (int8_t)s});
    return bind_fold(b, e, arg_op(b, 6), 4, arg_enum(b, 5), ACC_VECTOR) && finish(b, e);
}

// ---- bits and exact integers

typedef struct bit_step {
    uint8_t op;
    bool reverse;
    int8_t opnd;     // -1: imm
    bool is_scalar;  // (P, 1) or imm
    uint32_t imm;
} bit_step;

typedef struct bit_args {
    uint8_t nsteps;
    bit_step step[2];
} bit_args;

static void run_bits(exec *x, const bound *b, const tile *t)
{
    const bit_args *a = b->a;
    uint32_t *cur = x->s->raw[1], *other = x->s->raw[2];
    unsigned width = t[1].size * 8u;
    for (uint32_t r = 0; r < t[0].parts; r++) {
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            load_bits(x, &t[1], r, e0, n, cur);
            for (int i = 0; i < a->nsteps; i++) {
                const bit_step *s = &a->step[i];
                uint32_t one = s->imm;
                const uint32_t *y = &one;
                if (s->opnd >= 0 && s->is_scalar) {
                    load_bits(x, &t[s->opnd], r, 0, 1, &one);
                } else if (s->opnd >= 0) {
                    load_bits(x, &t[s->opnd], r, e0, n, other);
                    y = other;
                }
                if (!s->reverse) {
                    x->k->bits((op_id)s->op, cur, cur, y, n, width, y == &one);
                    continue;
                }
                if (y == &one) {
                    for (size_t j = 0; j < n; j++) {
                        other[j] = one;
                    }
                }
                x->k->bits((op_id)s->op, cur, other, cur, n, width, false);
            }
            store_bits(x, &t[0], r, e0, n, cur);
        }
    }
}

static bool bind_bit_step(binder *b, bit_args *a, op_id op, uint32_t param, bool reverse,
                          bool tile_)
{
    bit_step *s = &a->step[a->nsteps++];
    s->op = (uint8_t)op;
    s->reverse = reverse && op != OPR_invert;
    s->opnd = -1;
    s->is_scalar = !tile_;
    if (op_table[op].cls != OPC_B) {
        return bind_fail(b, "%s cannot be mixed with operators on bits", op_table[op].name);
    }
    ir_arg v = bind_arg(b, param);
    switch (v.kind) {
    case IRA_NONE: return true;
    case IRA_F32:
        s->imm = (uint32_t)(int64_t)fmaxf(fminf(ira_float(v), 4294967040.0f), -2147483648.0f);
        return true;
    case IRA_INT:
    case IRA_BOOL: s->imm = (uint32_t)ira_integer(v); return true;
    default: break;
    }
    int o = bind_operand(b, param, false);
    if (o < 0) {
        return false;
    }
    s->opnd = (int8_t)o;
    const layout *l = b->o[o].l;
    if (l->parts != b->o[0].l->parts || (tile_ ? l->n != b->o[0].l->n : l->n != 1)) {
        return bind_fail(b, "%s has another shape", b->info->params[param].name);
    }
    return true;
}

static bool bits_operands(binder *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        dtype_class c = dtype_class_of((dtype)b->o[i].dtype);
        if (c == DTC_F || c == DTC_E) {
            return bind_fail(b, "%s has dtype %s; operators on bits take integers",
                             b->info->params[b->o[i].param].name, dtype_name((dtype)b->o[i].dtype));
        }
    }
    return true;
}

bool bind_tensor_scalar(binder *b)
{
    op_id op0 = arg_op(b, 2), op1 = arg_op(b, 5);
    if (!bind_pair(b, 0, 1)) {
        return false;
    }
    if (op0 < OPR_COUNT && op_table[op0].cls == OPC_B) {
        bit_args *a = BIND_ARGS(b, bit_args);
        return bind_bit_step(b, a, op0, 3, arg_true(b, 4), false) &&
               (op1 >= OPR_COUNT || bind_bit_step(b, a, op1, 6, arg_true(b, 7), false)) &&
               bits_operands(b) && bind_done(b, run_bits, a, true);
    }
    ew *e = new_ew(b);
    return push_op(b, e, op0, 3, arg_true(b, 4)) &&
           (op1 >= OPR_COUNT || push_op(b, e, op1, 6, arg_true(b, 7))) && finish(b, e);
}

// GpSimd: 32-bit integers exactly, wrapping.
typedef struct int_args {
    uint8_t op;
    bool is_signed;
} int_args;

static void run_int32(exec *x, const bound *b, const tile *t)
{
    const int_args *a = b->a;
    uint32_t *p = x->s->raw[1], *q = x->s->raw[2];
    uint32_t flip = a->is_signed ? 0x80000000u : 0;
    for (uint32_t r = 0; r < t[0].parts; r++) {
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            load_bits(x, &t[1], r, e0, n, p);
            load_bits(x, &t[2], r, e0, n, q);
            switch (a->op) {
            case OPR_add:
                for (size_t i = 0; i < n; i++) {
                    p[i] += q[i];
                }
                break;
            case OPR_subtract:
                for (size_t i = 0; i < n; i++) {
                    p[i] -= q[i];
                }
                break;
            case OPR_multiply:
                for (size_t i = 0; i < n; i++) {
                    p[i] *= q[i];
                }
                break;
            case OPR_maximum:
                for (size_t i = 0; i < n; i++) {
                    p[i] = (p[i] ^ flip) > (q[i] ^ flip) ? p[i] : q[i];
                }
                break;
            default:
                for (size_t i = 0; i < n; i++) {
                    p[i] = (p[i] ^ flip) < (q[i] ^ flip) ? p[i] : q[i];
                }
                break;
            }
            store_bits(x, &t[0], r, e0, n, p);
        }
    }
}

static bool all_int32(const binder *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->o[i].dtype != DT_int32 && b->o[i].dtype != DT_uint32) {
            return false;
        }
    }
    return true;
}

bool bind_tensor_tensor(binder *b)
{
    op_id op = arg_op(b, 3);
    if (op >= OPR_COUNT || !bind_pair(b, 0, 1)) {
        return b->err ? false : bind_fail(b, "an operator is missing");
    }
    if (op_table[op].cls == OPC_B) {
        bit_args *a = BIND_ARGS(b, bit_args);
        return bind_bit_step(b, a, op, 2, false, true) && bits_operands(b) &&
               bind_done(b, run_bits, a, true);
    }
    ew *e = new_ew(b);
    if (op_table[op].cls == OPC_U) {
        return push(e, (ew_step){STEP_UN, (uint8_t)op, 0, 0, 0}) && finish(b, e);
    }
    if (!push_tile(b, e, op, 2, false)) {
        return false;
    }
    if (b->in->engine == ENG_GPSIMD && all_int32(b) && op <= OPR_minimum) {
        int_args *a = BIND_ARGS(b, int_args);
        a->op = (uint8_t)op;
        a->is_signed = b->o[1].dtype == DT_int32 && b->o[2].dtype == DT_int32;
        return bind_done(b, run_int32, a, true);
    }
    return finish(b, e);
}

// ---- copies and constants

static void run_copy(exec *x, const bound *b, const tile *t)
{
    (void)x;
    (void)b;
    copy_tile(&t[0], &t[1]);
}

bool bind_tensor_copy(binder *b)
{
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0) {
        return false;
    }
    if (!b->o[0].l || !b->o[1].l) {
        return bind_fail(b, "a tensor is missing");
    }
    if (!bind_same_shape(b, 0, 1)) {
        return false;
    }
    if (b->o[0].dtype == b->o[1].dtype) {
        return bind_done(b, run_copy, NULL, true);
    }
    return bind_computes(b, 0) && bind_computes(b, 1) && finish(b, new_ew(b));
}

// ---- iota, affine_select

static bool bind_pattern(binder *b, affine_pattern *a, uint32_t pattern, uint32_t channel,
                         uint32_t offset)
{
    ir_arg p = bind_arg(b, pattern);
    uint64_t n = 1;
    // A list of [step, count], or the numbers one after the other.
    ir_arg flat[8];
    uint32_t nflat = 0;
    for (uint32_t i = 0; p.kind == IRA_LIST && i < (uint32_t)p.aux; i++) {
        ir_arg q = p.v + i < b->p->args.n ? b->p->args.at[p.v + i] : ira_none();
        bool pair = q.kind == IRA_LIST && q.aux == 2 && (uint64_t)q.v + 2 <= b->p->args.n;
        if ((!pair && q.kind != IRA_INT) || nflat + (pair ? 2 : 1) > 8) {
            return bind_fail(b, "malformed pattern");
        }
        if (pair) {
            flat[nflat++] = b->p->args.at[q.v];
            q = b->p->args.at[q.v + 1];
        }
        flat[nflat++] = q;
    }
    if (nflat < 2 || nflat % 2) {
        return bind_fail(b, "malformed pattern");
    }
    a->n = nflat / 2;
    for (uint32_t d = 0; d < a->n; d++) {
        a->step[d] = (int32_t)ira_integer(flat[2 * d]);
        int64_t count = ira_integer(flat[2 * d + 1]);
        if (count < 1 || count > INT32_MAX || n > UINT32_MAX) {
            return bind_fail(b, "malformed pattern");
        }
        a->count[d] = (uint32_t)count;
        n *= (uint64_t)count;
    }
    a->channel = (int32_t)ira_integer(bind_arg(b, channel));
    a->offset = bind_reg(b, bind_arg(b, offset));
    if (a->offset.is_reg && (uint32_t)a->offset.v >= b->p->registers) {
        return bind_fail(b, "no such register");
    }
    if (n != b->o[0].l->n) {
        return bind_fail(b, "the pattern has %llu elements, dst has %llu a partition",
                         (unsigned long long)n, (unsigned long long)b->o[0].l->n);
    }
    return true;
}

static void run_iota(exec *x, const bound *b, const tile *t)
{
    const affine_pattern *a = b->a;
    int32_t *v = (int32_t *)x->s->raw[1];
    for (uint32_t r = 0; r < t[0].parts; r++) {
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            affine_values(x, a, x->row0 + r, e0, n, v);
            if (t[0].dtype == DT_int32 || t[0].dtype == DT_uint32) {
                store_bits(x, &t[0], r, e0, n, x->s->raw[1]);
            } else {
                float *f = x->s->buf[0];
                x->k->load[DT_int32](f, v, n);
                store_rows(x, &t[0], r, 1, e0, n, (crows){f, 0});
            }
        }
    }
}

bool bind_iota(binder *b)
{
    affine_pattern *a = BIND_ARGS(b, affine_pattern);
    if (bind_operand(b, 0, true) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    return bind_computes(b, 0) && bind_pattern(b, a, 1, 3, 2) && bind_done(b, run_iota, a, true);
}

bool bind_affine_select(binder *b)
{
    ew *e = new_ew(b);
    op_id cmp = arg_op(b, 5);
    if (!bind_pair(b, 0, 3) || !bind_pattern(b, &e->pattern, 1, 2, 6) ||
        bind_scalar(b, e, 4, 0.0f) < 0) {
        return false;
    }
    if (cmp >= OPR_COUNT || op_table[cmp].cls != OPC_C) {
        return bind_fail(b, "cmp_op is not a comparison");
    }
    push(e, (ew_step){STEP_AFSEL, (uint8_t)cmp, 0, 0, 0});
    return finish(b, e);
}
