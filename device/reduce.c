#include "device/internal.h"

// Folds, scans and statistics. Order of arithmetic: docs/numerics.md.

static inline float apply(const kernels *k, op_id op, float a, float b)
{
    switch (op) {
    case OPR_add: return a + b;
    case OPR_subtract: return a - b;
    case OPR_multiply: return a * b;
    default: return kern_scalar(k, op, a, b);
    }
}

static op_id arg_op(const binder *b, uint32_t param)
{
    ir_arg a = bind_arg(b, param);
    return a.kind == IRA_OP && a.v < OPR_COUNT ? (op_id)a.v : OPR_COUNT;
}

static bool two(binder *b, uint32_t dst, uint32_t src)
{
    if (bind_operand(b, dst, true) < 0 || bind_operand(b, src, false) < 0) {
        return false;
    }
    return b->o[0].l && b->o[1].l ? true : bind_fail(b, "a tensor is missing");
}

// ---- tensor_reduce

typedef struct reduce_args {
    uint8_t op;
    bool negate;
    uint64_t each;  // elements folded into one
} reduce_args;

static float left_fold(exec *x, const tile *s, uint32_t r, uint64_t e0, uint64_t n)
{
    float v = 0;
    for (uint64_t i = 0; i < n; i += CHUNK) {
        size_t m = n - i < CHUNK ? (size_t)(n - i) : CHUNK;
        const f32u *p = load_rows(x, s, r, 1, e0 + i, m, x->s->buf[0]).p;
        for (size_t j = 0; j < m; j++) {
            v = i + j ? v - p[j] : p[j];
        }
    }
    return v;
}

static float fold_range(exec *x, op_id op, const tile *s, uint32_t r, uint64_t e0, uint64_t n)
{
    float acc[16], id = kern_identity(op);
    if (op == OPR_subtract) {
        return left_fold(x, s, r, e0, n);
    }
    for (int j = 0; j < 16; j++) {
        acc[j] = id;
    }
    for (uint64_t i = 0; i < n; i += CHUNK) {
        size_t m = n - i < CHUNK ? (size_t)(n - i) : CHUNK;
        x->k->fold[op](acc, load_rows(x, s, r, 1, e0 + i, m, x->s->buf[0]).p, m);
    }
    return kern_tree(x->k, op, acc);
}

// Whole rows that need no conversion, side by side.
static void reduce_rows(exec *x, const reduce_args *a, const tile *d, const tile *s)
{
    float(*acc)[16] = x->s->part, id = kern_identity((op_id)a->op);
    uint32_t parts = d->parts;
    for (uint32_t r = 0; r < parts; r++) {
        for (int q = 0; q < 16; q++) {
            acc[r][q] = id;
        }
    }
    x->k->folds[a->op](acc, s->p, s->ps, parts, a->each);
    for (uint32_t r = 0; r < parts; r++) {
        float v = kern_tree(x->k, (op_id)a->op, acc[r]);
        v = a->negate ? -v : v;
        store_rows(x, d, r, 1, 0, 1, (crows){&v, 0});
    }
}

static void run_tensor_reduce(exec *x, const bound *b, const tile *t)
{
    const reduce_args *a = b->a;
    const tile *d = &t[0], *s = &t[1];
    if (d->l->n == 1 && s->l->contig && s->dtype == DT_float32 && a->op != OPR_subtract) {
        reduce_rows(x, a, d, s);
        return;
    }
    uint64_t kept = d->l->n, each = a->each;
    uint64_t batch = each <= CHUNK && a->op != OPR_subtract ? CHUNK / each : 0;
    float *out = x->s->buf[2];
    for (uint32_t r = 0; r < d->parts; r++) {
        for (uint64_t i = 0; i < kept;) {
            size_t m = (size_t)(kept - i < CHUNK ? kept - i : CHUNK);
            if (batch) {
                m = m < batch ? m : (size_t)batch;
                const char *p = load_rows(x, s, r, 1, i * each, m * each, x->s->buf[0]).p;
                float id = kern_identity((op_id)a->op);
                for (size_t j = 0; j < m; j++) {
                    float acc[16];
                    for (int q = 0; q < 16; q++) {
                        acc[q] = id;
                    }
                    x->k->fold[a->op](acc, p + j * each * 4, each);
                    out[j] = kern_tree(x->k, (op_id)a->op, acc);
                }
            } else {
                for (size_t j = 0; j < m; j++) {
                    out[j] = fold_range(x, (op_id)a->op, s, r, (i + j) * each, each);
                }
            }
            for (size_t j = 0; a->negate && j < m; j++) {
                out[j] = -out[j];
            }
            store_rows(x, d, r, 1, i, m, (crows){out, 0});
            i += m;
        }
    }
}

static void run_bit_reduce(exec *x, const bound *b, const tile *t)
{
    const reduce_args *a = b->a;
    uint32_t *p = x->s->raw[1];
    for (uint32_t r = 0; r < t[0].parts; r++) {
        for (uint64_t i = 0; i < t[0].l->n; i++) {
            uint32_t v = a->op == OPR_bitwise_and ? UINT32_MAX : 0;
            for (uint64_t e = 0; e < a->each; e += CHUNK) {
                size_t m = a->each - e < CHUNK ? (size_t)(a->each - e) : CHUNK;
                load_bits(x, &t[1], r, i * a->each + e, m, p);
                for (size_t j = 0; j < m; j++) {
                    v = a->op == OPR_bitwise_and  ? v & p[j]
                        : a->op == OPR_bitwise_or ? v | p[j]
                                                  : v ^ p[j];
                }
            }
            store_bits(x, &t[0], r, i, 1, &v);
        }
    }
}

bool bind_tensor_reduce(binder *b)
{
    reduce_args *a = BIND_ARGS(b, reduce_args);
    op_id op = arg_op(b, 1);
    ir_arg axis = bind_arg(b, 3);
    if (!two(b, 0, 2)) {
        return false;
    }
    const ir_view *v = ir_view_ref(b->p, b->o[1].view);
    uint32_t ndim = ir_ndim(b->p, v), want = 0;
    uint32_t naxes = axis.kind == IRA_LIST ? (uint32_t)axis.aux : axis.kind == IRA_INT ? 1 : 0;
    a->each = 1;
    for (uint32_t i = 0; i < naxes; i++) {
        ir_arg e = axis.kind == IRA_INT        ? axis
                   : axis.v + i < b->p->args.n ? b->p->args.at[axis.v + i]
                                               : ira_none();
        int64_t d = e.kind == IRA_INT ? ira_integer(e) : 0;
        d = d < 0 ? d + ndim : d;
        if (d <= 0 || d >= ndim || want >> d & 1) {
            return bind_fail(b, "malformed axis");
        }
        want |= 1u << d;
        a->each *= ir_dims(b->p, v)[d].count;
    }
    for (uint32_t i = 0; i < naxes; i++) {
        if (!(want >> (ndim - 1 - i) & 1)) {
            return bind_fail(b, "axis is not the last free dimensions");
        }
    }
    if (naxes == 0 || b->o[0].l->parts != b->o[1].l->parts ||
        b->o[0].l->n * a->each != b->o[1].l->n) {
        return bind_fail(b, "dst is [%u, %llu], the reduced data [%u, %llu]", b->o[0].l->parts,
                         (unsigned long long)b->o[0].l->n, b->o[1].l->parts,
                         (unsigned long long)(b->o[1].l->n / a->each));
    }
    a->op = (uint8_t)op;
    a->negate = bind_arg(b, 4).kind == IRA_BOOL && bind_arg(b, 4).v;
    if (op == OPR_bitwise_and || op == OPR_bitwise_or || op == OPR_bitwise_xor) {
        return bind_done(b, run_bit_reduce, a, false);
    }
    if (op >= OPR_COUNT || (op != OPR_subtract && !kern_get()->fold[op])) {
        return bind_fail(b, "this operator cannot fold");
    }
    return bind_computes(b, 0) && bind_computes(b, 1) && bind_done(b, run_tensor_reduce, a, false);
}

// ---- over the partitions

static void run_partition_reduce(exec *x, const bound *b, const tile *t)
{
    const reduce_args *a = b->a;
    enum { STEP = CHUNK / 16 };
    op_id op = (op_id)a->op;
    const tile *s = &t[1];
    float id = kern_identity(op);
    float *acc = x->s->buf[1];
    for (uint64_t e0 = 0; e0 < s->l->n; e0 += STEP) {
        size_t n = s->l->n - e0 < STEP ? (size_t)(s->l->n - e0) : STEP;
        for (size_t i = 0; i < 16 * n; i++) {
            acc[i] = id;
        }
        for (uint32_t p = 0; p < s->parts; p++) {
            float *to = acc + (p % 16) * n;
            x->k->bin[op][KERN_VV]((rows){to, 0}, (crows){to, 0},
                                   load_rows(x, s, p, 1, e0, n, x->s->buf[0]), 1, n);
        }
        for (size_t half = 8; half; half /= 2) {
            x->k->bin[op][KERN_VV]((rows){acc, 0}, (crows){acc, 0}, (crows){acc + half * n, 0}, 1,
                                   half * n);
        }
        if (op == OPR_average) {
            float count = (float)s->parts;
            x->k->bin[OPR_divide][KERN_VS]((rows){acc, 0}, (crows){acc, 0}, (crows){&count, 0}, 1,
                                           n);
        }
        store_rows(x, &t[0], 0, 1, e0, n, (crows){acc, 0});
    }
}

static void run_partition_bits(exec *x, const bound *b, const tile *t)
{
    const reduce_args *a = b->a;
    uint32_t *acc = x->s->raw[1], *v = x->s->raw[2];
    for (uint64_t e0 = 0; e0 < t[1].l->n; e0 += CHUNK) {
        size_t n = t[1].l->n - e0 < CHUNK ? (size_t)(t[1].l->n - e0) : CHUNK;
        load_bits(x, &t[1], 0, e0, n, acc);
        for (uint32_t p = 1; p < t[1].parts; p++) {
            load_bits(x, &t[1], p, e0, n, v);
            x->k->bits((op_id)a->op, acc, acc, v, n, 32, false);
        }
        store_bits(x, &t[0], 0, e0, n, acc);
    }
}

bool bind_tensor_partition_reduce(binder *b)
{
    reduce_args *a = BIND_ARGS(b, reduce_args);
    op_id op = arg_op(b, 1);
    a->op = (uint8_t)op;
    if (!two(b, 0, 2)) {
        return false;
    }
    if (b->o[0].l->parts != 1 || b->o[0].l->n != b->o[1].l->n) {
        return bind_fail(b, "dst is not one partition with data's free size");
    }
    if (op == OPR_bitwise_and || op == OPR_bitwise_or || op == OPR_bitwise_xor) {
        return bind_done(b, run_partition_bits, a, false);
    }
    if (op >= OPR_COUNT || !kern_get()->fold[op]) {
        return bind_fail(b, "this operator cannot fold");
    }
    return bind_computes(b, 0) && bind_computes(b, 1) &&
           bind_done(b, run_partition_reduce, a, false);
}

// ---- scans

typedef struct scan_args {
    uint8_t op0, op1, cmd;
    bool reverse0, reverse1;
    int8_t s0, s1;  // operand of a (P, 1) value, -1: the number
    float imm0, imm1;
} scan_args;

static float row_scalar(exec *x, const tile *t, int8_t which, float imm, uint32_t r)
{
    float v = imm;
    if (which >= 0) {
        crows c = load_rows(x, &t[which], r, 1, 0, 1, &v);
        memcpy(&v, c.p, sizeof v);
    }
    return v;
}

static bool is_f32(const tile *t)
{
    return t->l->contig && t->dtype == DT_float32;
}

static void scan_fast(exec *x, const scan_args *a, const tile *t)
{
    uint32_t parts = t[0].parts;
    uint64_t n = t[0].l->n;
    float state[PARTS];
    for (uint32_t r = 0; r < parts; r++) {
        state[r] = row_scalar(x, t, a->s0, a->imm0, r);
    }
    bool direct = is_f32(&t[0]);
    bool all = direct && is_f32(&t[1]) && is_f32(&t[2]);
    uint32_t batch = all ? parts : 8;
    for (uint32_t r0 = 0; r0 < parts; r0 += batch) {
        uint32_t m = parts - r0 < batch ? parts - r0 : batch;
        size_t step = all ? (size_t)n : CHUNK / batch;
        for (uint64_t e0 = 0; e0 < n; e0 += step) {
            size_t len = n - e0 < step ? (size_t)(n - e0) : step;
            crows p = load_rows(x, &t[1], r0, m, e0, len, x->s->buf[0]);
            crows q = load_rows(x, &t[2], r0, m, e0, len, x->s->buf[1]);
            rows o = {x->s->buf[2], (ptrdiff_t)(len * sizeof(float))};
            if (direct) {
                o = (rows){t[0].p + r0 * t[0].ps + (int64_t)e0 * 4, t[0].ps};
            }
            x->k->scan_mul_add(o, p, q, state + r0, m, len);
            if (!direct) {
                store_rows(x, &t[0], r0, m, e0, len, (crows){o.p, o.stride});
            }
        }
    }
}

static void run_scan(exec *x, const bound *b, const tile *t)
{
    const scan_args *a = b->a;
    if (a->op0 == OPR_multiply && a->op1 == OPR_add) {
        scan_fast(x, a, t);
        return;
    }
    float *out = x->s->buf[2];
    for (uint32_t r = 0; r < t[0].parts; r++) {
        float s = row_scalar(x, t, a->s0, a->imm0, r);
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            const f32u *p = load_rows(x, &t[1], r, 1, e0, n, x->s->buf[0]).p;
            const f32u *q = load_rows(x, &t[2], r, 1, e0, n, x->s->buf[1]).p;
            for (size_t i = 0; i < n; i++) {
                float u = a->reverse0 ? apply(x->k, (op_id)a->op0, s, p[i])
                                      : apply(x->k, (op_id)a->op0, p[i], s);
                s = a->reverse1 ? apply(x->k, (op_id)a->op1, q[i], u)
                                : apply(x->k, (op_id)a->op1, u, q[i]);
                out[i] = s;
            }
            store_rows(x, &t[0], r, 1, e0, n, (crows){out, 0});
        }
    }
}

static void run_cumulative(exec *x, const bound *b, const tile *t)
{
    const scan_args *a = b->a;
    float *out = x->s->buf[2];
    for (uint32_t r = 0; r < t[0].parts; r++) {
        float *reg = &x->core->acc[ACC_VECTOR][(b->lane0 + x->row0 + r) % PARTS];
        float imm = row_scalar(x, t, a->s0, a->imm0, r);
        float s = *reg;
        if (a->cmd == ISAE_reduce_cmd_reset_reduce || a->cmd == ISAE_reduce_cmd_reset) {
            s = kern_identity((op_id)a->op1);
        } else if (a->cmd == ISAE_reduce_cmd_load_reduce) {
            s = row_scalar(x, t, a->s1, a->imm1, r);
        }
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            crows p = load_rows(x, &t[1], r, 1, e0, n, x->s->buf[0]);
            if (op_table[a->op0].cls == OPC_U) {
                x->k->un[a->op0]((rows){out, 0}, p, 1, n);
            } else {
                x->k->bin[a->op0][KERN_VS]((rows){out, 0}, p, (crows){&imm, 0}, 1, n);
            }
            for (size_t i = 0; i < n; i++) {
                s = apply(x->k, (op_id)a->op1, out[i], s);
                out[i] = s;
            }
            store_rows(x, &t[0], r, 1, e0, n, (crows){out, 0});
        }
        *reg = s;
    }
}

static bool scan_scalar(binder *b, uint32_t param, int8_t *which, float *imm)
{
    ir_arg a = bind_arg(b, param);
    *which = -1;
    switch (a.kind) {
    case IRA_NONE: return true;
    case IRA_F32: *imm = ira_float(a); return true;
    case IRA_INT:
    case IRA_BOOL: *imm = (float)ira_integer(a); return true;
    default: break;
    }
    int o = bind_operand(b, param, false);
    if (o < 0 || !bind_computes(b, o)) {
        return false;
    }
    *which = (int8_t)o;
    return b->o[o].l->n == 1 && b->o[o].l->parts == b->o[0].l->parts
               ? true
               : bind_fail(b, "%s is not one value a partition", b->info->params[param].name);
}

static bool scan_op(binder *b, uint32_t param, bool unary_too, uint8_t *op)
{
    op_id o = arg_op(b, param);
    *op = (uint8_t)o;
    return o < OPR_COUNT && (kern_get()->bin[o][KERN_VV] || (unary_too && kern_get()->un[o]))
               ? true
               : bind_fail(b, "%s is not an arithmetic operator", b->info->params[param].name);
}

bool bind_tensor_tensor_scan(binder *b)
{
    scan_args *a = BIND_ARGS(b, scan_args);
    if (!two(b, 0, 1) || bind_operand(b, 2, false) < 0 || !b->o[2].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    a->reverse0 = bind_arg(b, 6).kind == IRA_BOOL && bind_arg(b, 6).v;
    a->reverse1 = bind_arg(b, 7).kind == IRA_BOOL && bind_arg(b, 7).v;
    return bind_same_shape(b, 0, 1) && bind_same_shape(b, 0, 2) && bind_computes(b, 0) &&
           bind_computes(b, 1) && bind_computes(b, 2) && scan_op(b, 4, false, &a->op0) &&
           scan_op(b, 5, false, &a->op1) && scan_scalar(b, 3, &a->s0, &a->imm0) &&
           bind_done(b, run_scan, a, true);
}

bool bind_tensor_scalar_cumulative(binder *b)
{
    scan_args *a = BIND_ARGS(b, scan_args);
    if (!two(b, 0, 1)) {
        return false;
    }
    a->cmd = (uint8_t)bind_arg(b, 6).v;
    b->b->flags |= BOUND_LANES;
    b->b->lane0 = (uint8_t)(b->o[1].base <= BASE_PSUM
                                ? b->o[1].offset / (b->o[1].base == BASE_PSUM
                                                        ? core_psum_stride(b->p->target)
                                                        : core_sbuf_stride(b->p->target))
                                : 0);
    if (a->cmd == ISAE_reduce_cmd_load_reduce && bind_arg(b, 5).kind == IRA_NONE) {
        return bind_fail(b, "load_reduce needs an initial value");
    }
    return bind_same_shape(b, 0, 1) && bind_computes(b, 0) && bind_computes(b, 1) &&
           scan_op(b, 2, true, &a->op0) && scan_op(b, 3, false, &a->op1) &&
           scan_scalar(b, 4, &a->s0, &a->imm0) && scan_scalar(b, 5, &a->s1, &a->imm1) &&
           bind_done(b, run_cumulative, a, true);
}

// ---- batch norm statistics

static float fold_buffer(const exec *x, op_id op, const float *v, size_t n)
{
    float acc[16];
    for (int j = 0; j < 16; j++) {
        acc[j] = kern_identity(op);
    }
    x->k->fold[op](acc, v, n);
    return kern_tree(x->k, op, acc);
}

static void run_bn_stats(exec *x, const bound *b, const tile *t)
{
    (void)b;
    float *half = x->s->buf[1], *sq = x->s->buf[2];
    size_t n = t[1].l->n;
    for (uint32_t r = 0; r < t[1].parts; r++) {
        const f32u *v = load_rows(x, &t[1], r, 1, 0, n, x->s->buf[0]).p;
        float out[6];
        for (size_t odd = 0; odd < 2; odd++) {
            size_t m = 0;
            for (size_t i = odd; i < n; i += 2) {
                half[m++] = v[i];
            }
            float mean = m ? fold_buffer(x, OPR_add, half, m) / (float)m : 0.0f;
            for (size_t i = 0; i < m; i++) {
                float d = half[i] - mean;
                sq[i] = d * d;
            }
            out[odd * 3] = (float)m;
            out[odd * 3 + 1] = mean;
            out[odd * 3 + 2] = fold_buffer(x, OPR_add, sq, m);
        }
        store_rows(x, &t[0], r, 1, 0, 6, (crows){out, 0});
    }
}

static void run_bn_aggr(exec *x, const bound *b, const tile *t)
{
    (void)b;
    size_t n = t[1].l->n / 3;
    float *c = x->s->buf[1], *w = x->s->buf[2];
    for (uint32_t r = 0; r < t[1].parts; r++) {
        const f32u *v = load_rows(x, &t[1], r, 1, 0, 3 * n, x->s->buf[0]).p;
        for (size_t i = 0; i < n; i++) {
            c[i] = v[3 * i];
            w[i] = v[3 * i] * v[3 * i + 1];
        }
        float count = fold_buffer(x, OPR_add, c, n);
        float mean = fold_buffer(x, OPR_add, w, n) / count;
        for (size_t i = 0; i < n; i++) {
            float d = v[3 * i + 1] - mean;
            w[i] = c[i] * (d * d);
            c[i] = v[3 * i + 2];
        }
        float var = (fold_buffer(x, OPR_add, c, n) + fold_buffer(x, OPR_add, w, n)) / count;
        float out[2] = {mean, var};
        store_rows(x, &t[0], r, 1, 0, 2, (crows){out, 0});
    }
}

static bool bind_stats(binder *b, exec_fn fn, uint64_t out, uint64_t max)
{
    if (!two(b, 0, 1)) {
        return false;
    }
    if (b->o[0].l->n != out || b->o[0].l->parts != b->o[1].l->parts || b->o[1].l->n > max) {
        return bind_fail(b, "dst is not %llu values a partition, or data more than %llu",
                         (unsigned long long)out, (unsigned long long)max);
    }
    return bind_computes(b, 0) && bind_computes(b, 1) && bind_done(b, fn, NULL, false);
}

bool bind_bn_stats(binder *b)
{
    return bind_stats(b, run_bn_stats, 6, CHUNK);
}

bool bind_bn_aggr(binder *b)
{
    return bind_has(b, 1) && b->p->views.n > bind_arg(b, 1).v &&
                   ir_free_elems(b->p, ir_view_ref(b->p, bind_arg(b, 1).v)) % 3
               ? bind_fail(b, "data is not triples")
               : bind_stats(b, run_bn_aggr, 2, CHUNK);
}
