// Cases of the instructions that fold, scan, count and search.

#include "tests/unit/grid.h"

static const ref_format *type(uint32_t i)
{
    return &ref_formats[i % REF_FORMATS];
}

static const ref_format *f32_type(void)
{
    return grid_format(DT_float32);
}

static double f32(double v)
{
    return (double)(float)v;
}

// Sources that a fold reads: every kind of pattern, and the axes that it then has.
static ir_arg free_axes(const side *s)
{
    bool two = s->kind == GRID_COLUMNS || s->kind == GRID_BROADCAST;
    return prog_ints(&grid_prog, two ? 2 : 1, (const int64_t[]){1, 2});
}

static void reduce_case(op_id op, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    bool negate = turn % 3 == 1;
    grid_begin(3);
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS,
                          turn % 4 ? GRID_MODERATE : GRID_CROSS0);
    side *d = grid_dest(type(turn / 2), parts, 1, GRID_PLAIN);
    GRID_EMIT(tensor_reduce, ENG_VECTOR, V(d->view), OPID(op), V(x->view), free_axes(x), B(negate),
              B(0));
    uint32_t kept = n % 4 == 0 ? n / 4 : 1, each = n / kept;  // several results a partition
    side *y = grid_source(type(turn), parts, n, GRID_PLAIN, GRID_MODERATE);
    side *e = grid_dest(f32_type(), parts, kept, turn % GRID_KINDS);
    uint32_t y3 = prog_ap(&grid_prog, y->view, 0, 0, 3,
                          (const int64_t[][2]){{1, parts}, {each, kept}, {1, each}});
    GRID_EMIT(tensor_reduce, ENG_VECTOR, V(e->view), OPID(op), V(y3),
              prog_ints(&grid_prog, 1, (const int64_t[]){2}), B(0), B(0));
    grid_seen(ISA_tensor_reduce, op, OP_RED);
    for (uint32_t p = 0; p < parts; p++) {
        static double v[5000];
        for (uint32_t i = 0; i < n; i++) {
            v[i] = f32(x->v[p * n + i]);
        }
        double r = v[0];
        for (uint32_t i = 1; i < n; i++) {  // subtract: from the left
            r = f32(r - v[i]);
        }
        r = op == OPR_subtract ? r : (double)ref_fold(op, v, n);
        grid_exact(d, p, negate ? -r : r);
        for (uint32_t k = 0; k < kept; k++) {
            for (uint32_t i = 0; i < each; i++) {
                v[i] = f32(y->v[p * n + k * each + i]);
            }
            r = v[0];
            for (uint32_t i = 1; i < each; i++) {
                r = f32(r - v[i]);
            }
            grid_exact(e, p * kept + k, op == OPR_subtract ? r : (double)ref_fold(op, v, each));
        }
    }
    grid_run(op_table[op].name);
}

static void bit_reduce_case(op_id op, uint32_t turn)
{
    static const dtype types[] = {DT_int8, DT_uint8, DT_int16, DT_uint16, DT_int32, DT_uint32};
    const ref_format *f = grid_format(types[turn % 6]);
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    side *x = grid_source(f, parts, n, turn % GRID_KINDS, GRID_MODERATE);
    side *d = grid_dest(f, parts, 1, GRID_PLAIN), *e = grid_dest(f, 1, n, GRID_PLAIN);
    GRID_EMIT(tensor_reduce, ENG_VECTOR, V(d->view), OPID(op), V(x->view), free_axes(x), B(0),
              B(0));
    GRID_EMIT(tensor_partition_reduce, ENG_GPSIMD, V(e->view), OPID(op), V(x->view));
    grid_seen(ISA_tensor_reduce, op, OP_RED);
    d->raw = true;
    e->raw = true;
    for (int over = 0; over < 2; over++) {
        uint32_t outer = over ? n : parts, inner = over ? parts : n;
        for (uint32_t o = 0; o < outer; o++) {
            uint32_t r = op == OPR_bitwise_and ? UINT32_MAX : 0;
            for (uint32_t i = 0; i < inner; i++) {
                uint32_t u = ref_pattern(f, x->v[over ? i * n + o : o * n + i]);
                r = op == OPR_bitwise_and ? r & u : op == OPR_bitwise_or ? r | u : r ^ u;
            }
            grid_exact(over ? e : d, o, ref_value(f, r));
        }
    }
    grid_run(op_table[op].name);
}

static void partition_case(op_id op, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS,
                          turn % 4 ? GRID_MODERATE : GRID_CROSS0);
    side *d = grid_dest(type(turn / 2), 1, n, turn / 2 % GRID_KINDS);
    GRID_EMIT(tensor_partition_reduce, ENG_GPSIMD, V(d->view), OPID(op), V(x->view));
    for (uint32_t i = 0; i < n; i++) {
        double v[128];
        for (uint32_t p = 0; p < parts; p++) {
            v[p] = f32(x->v[p * n + i]);
        }
        float r = ref_fold(op, v, parts);
        grid_exact(d, i, (double)(op == OPR_average ? r / (float)parts : r));
    }
    grid_run("tensor_partition_reduce");
}

// Accumulator registers: three instructions in a row, with their commands.
static void accumulator_case(op_id op, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(4);
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS, GRID_MODERATE);
    side *init = grid_source(f32_type(), parts, 1, GRID_PLAIN, GRID_MODERATE);
    side *junk = grid_dest(type(turn / 2), parts, n, GRID_PLAIN);
    side *r[3];
    const int cmd[3] = {ISAE_reduce_cmd_reset_reduce, ISAE_reduce_cmd_reduce,
                        ISAE_reduce_cmd_load_reduce};
    for (int i = 0; i < 3; i++) {
        r[i] = grid_dest(f32_type(), parts, 1, GRID_PLAIN);
        GRID_EMIT(tensor_scalar_reduce, ENG_VECTOR, V(junk->view), V(x->view), OP(multiply),
                  F(1.5f), OPID(op), V(r[i]->view), B(0), EN(cmd[i]), i == 2 ? V(init->view) : NONE,
                  B(i == 1));
    }
    grid_seen(ISA_tensor_scalar_reduce, op, OP_RED);
    for (uint32_t p = 0; p < parts; p++) {
        static double v[5000];
        for (uint32_t i = 0; i < n; i++) {
            v[i] = f32(f32(x->v[p * n + i]) * 1.5);
            grid_exact(junk, p * n + i, v[i]);
        }
        double once = (double)ref_fold(op, v, n);
        grid_exact(r[0], p, once);
        grid_exact(r[1], p, -f32(ref_operator(op, once, once)));
        grid_exact(r[2], p, f32(ref_operator(op, init->v[p], once)));
    }
    grid_run("tensor_scalar_reduce");
}

static void activation_fold_case(uint32_t turn)
{
    static const op_id ops[] = {OPR_add, OPR_maximum, OPR_minimum, OPR_abs_max, OPR_abs_min};
    op_id op = ops[turn % 5];
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(4);
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS, GRID_MODERATE);
    side *a = grid_dest(type(turn / 2), parts, n, GRID_PLAIN),
         *s = grid_dest(f32_type(), parts, 1, 0), *t = grid_dest(f32_type(), parts, 1, 0),
         *u = grid_dest(f32_type(), parts, 1, 0), *w = grid_dest(f32_type(), parts, 1, 0),
         *e = grid_dest(type(turn / 2), parts, n, 0);
    GRID_EMIT(activation, ENG_SCALAR, V(a->view), OP(square), V(x->view), F(0.25f), F(2), OP(add),
              V(s->view), EN(ISAE_reduce_cmd_reset_reduce));
    GRID_EMIT(activation_reduce, ENG_SCALAR, V(a->view), OP(square), V(x->view), OP(add),
              V(t->view), F(0.25f), F(2));
    GRID_EMIT(activate2, ENG_SCALAR, V(a->view), OP(square), V(x->view), F(2), F(0.25f),
              OP(multiply), OP(add), F(0), B(0), B(0), OPID(op), V(u->view),
              EN(ISAE_reduce_cmd_reset_reduce));
    GRID_EMIT(exponential, ENG_VECTOR, V(e->view), V(x->view), F(0), V(w->view),
              EN(ISAE_reduce_cmd_reset_reduce), F(0));
    for (uint32_t p = 0; p < parts; p++) {
        static double v[5000];
        long double sum = 0;
        bool nan = false;
        for (uint32_t i = 0; i < n; i++) {
            float y = fmaf((float)x->v[p * n + i], 2, 0.25f);
            v[i] = (double)(y * y);
            grid_exact(a, p * n + i, v[i]);
            long double ex = expl((long double)(float)x->v[p * n + i]);
            nan = nan || isnan(ex);
            sum += ex >= 0x1.ffffffp127L ? (long double)INFINITY : ex;
            grid_near(e, p * n + i, ex, ref_function_of(OPR_exp)->ulp);
        }
        grid_exact(s, p, (double)ref_fold(OPR_add, v, n));
        grid_exact(t, p, (double)ref_fold(OPR_add, v, n));
        grid_exact(u, p, (double)ref_fold(op, v, n));
        // Positive terms, each within an ulp, n / 16 + 5 additions.
        grid_near(w, p, nan ? (long double)NAN : sum, 2 + n / 16 + 5);
    }
    grid_run("activation folds");
}

void grid_folds(void **state)
{
    (void)state;
    uint32_t turn = 0;
    static const op_id more[] = {OPR_average, OPR_maximum, OPR_add};
    for (int round = 0; round < (grid_all ? 90 : 6); round++) {
        for (int op = 0; op < OPR_COUNT; op++) {
            if (!(op_table[op].roles & OP_RED)) {
                continue;
            }
            if (op_table[op].cls == OPC_B) {
                bit_reduce_case((op_id)op, turn++);
                continue;
            }
            reduce_case((op_id)op, turn++);
            if (op != OPR_subtract) {
                accumulator_case((op_id)op, turn++);
            }
        }
        partition_case(more[round % 3], turn++);
        activation_fold_case(turn++);
    }
}

// ---- scans

static double step(op_id op, bool reverse, double x, double y)
{
    return f32(reverse ? ref_operator(op, y, x) : ref_operator(op, x, y));
}

static void scan_case(op_id op0, op_id op1, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    bool r0 = turn % 2, r1 = turn / 2 % 2;
    grid_begin(3);
    grid_values values = turn % 3 ? GRID_MODERATE : GRID_CROSS0;
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS, values);
    side *y = grid_source(type(turn / 2), parts, n, turn / 2 % GRID_KINDS, GRID_MODERATE);
    side *s = grid_source(f32_type(), parts, 1, GRID_PLAIN, GRID_MODERATE);
    side *d = grid_dest(type(turn / 3), parts, n, turn / 3 % GRID_KINDS);
    GRID_EMIT(tensor_tensor_scan, ENG_VECTOR, V(d->view), V(x->view), V(y->view), V(s->view),
              OPID(op0), OPID(op1), B(r0), B(r1));
    for (uint32_t p = 0; p < parts; p++) {
        double v = s->v[p];
        for (uint32_t i = p * n; i < (p + 1) * n; i++) {
            v = step(op1, r1, step(op0, r0, f32(x->v[i]), v), f32(y->v[i]));
            grid_exact(d, i, v);
        }
    }
    grid_run("tensor_tensor_scan");
}

static void cumulative_case(op_id op1, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    side *x = grid_source(type(turn), parts, n, turn % GRID_KINDS, GRID_MODERATE);
    side *s = grid_source(f32_type(), parts, 1, GRID_PLAIN, GRID_MODERATE);
    side *a = grid_dest(f32_type(), parts, n, GRID_PLAIN),
         *b = grid_dest(type(turn / 2), parts, n, turn / 3 % GRID_KINDS),
         *c = grid_dest(f32_type(), parts, n, GRID_PLAIN);
    const side *d[3] = {a, b, c};
    const int cmd[3] = {ISAE_reduce_cmd_reset_reduce, ISAE_reduce_cmd_reduce,
                        ISAE_reduce_cmd_load_reduce};
    for (int i = 0; i < 3; i++) {
        GRID_EMIT(tensor_scalar_cumulative, ENG_VECTOR, V(d[i]->view), V(x->view), OP(multiply),
                  OPID(op1), F(0.75f), i == 2 ? V(s->view) : NONE, EN(cmd[i]));
    }
    for (uint32_t p = 0; p < parts; p++) {
        double v = op1 == OPR_maximum ? -(double)INFINITY : ref_identity(op1);
        for (int k = 0; k < 3; k++) {
            v = k == 2 ? s->v[p] : v;
            for (uint32_t i = p * n; i < (p + 1) * n; i++) {
                v = step(op1, false, f32(f32(x->v[i]) * 0.75), v);
                grid_exact(k == 0 ? a : k == 1 ? b : c, i, v);
            }
        }
    }
    grid_run("tensor_scalar_cumulative");
}

void grid_scans(void **state)
{
    (void)state;
    static const op_id ops[] = {OPR_multiply, OPR_add, OPR_maximum, OPR_minimum, OPR_subtract};
    for (uint32_t turn = 0; turn < (grid_all ? 450 : 50); turn++) {
        scan_case(ops[turn % 5], ops[turn / 5 % 5], turn % 10 == 1 ? turn * 4 : turn);
        scan_case(OPR_multiply, OPR_add, turn * 4);
        cumulative_case(ops[turn % 5], turn);
    }
}

// ---- statistics

static void bn_case(uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn == 5 ? 0 : turn, &parts, &n);
    n = n > 512 ? 512 : n;
    grid_begin(3);
    side *x = grid_source(type(turn % 7), parts, n, turn % GRID_KINDS, GRID_MODERATE);
    side *d = grid_dest(f32_type(), parts, 6, GRID_PLAIN), *e = grid_dest(f32_type(), parts, 2, 0);
    GRID_EMIT(bn_stats, ENG_VECTOR, V(d->view), V(x->view));
    GRID_EMIT(bn_aggr, ENG_VECTOR, V(e->view), V(d->view));
    for (uint32_t p = 0; p < parts; p++) {
        float stat[6] = {0};
        for (uint32_t odd = 0; odd < 2; odd++) {
            double v[512], q[512];
            uint32_t m = 0;
            for (uint32_t i = odd; i < n; i += 2) {
                v[m++] = f32(x->v[p * n + i]);
            }
            float mean = m ? ref_fold(OPR_add, v, m) / (float)m : 0;
            for (uint32_t i = 0; i < m; i++) {
                float c = (float)v[i] - mean;
                q[i] = (double)(c * c);
            }
            stat[odd * 3] = (float)m;
            stat[odd * 3 + 1] = mean;
            stat[odd * 3 + 2] = ref_fold(OPR_add, q, m);
        }
        for (uint32_t i = 0; i < 6; i++) {
            grid_exact(d, p * 6 + i, (double)stat[i]);
        }
        double sum = 0, sq = 0;  // what the two together mean, in double
        for (uint32_t i = 0; i < n; i++) {
            sum += f32(x->v[p * n + i]);
        }
        for (uint32_t i = 0; i < n; i++) {
            sq += (f32(x->v[p * n + i]) - sum / n) * (f32(x->v[p * n + i]) - sum / n);
        }
        grid_exact(e, p * 2, sum / n);
        grid_exact(e, p * 2 + 1, sq / n);
        if (isfinite(sum) && isfinite((double)stat[2]) && isfinite((double)stat[5])) {
            double top = 16 * 7 * 0x1p-20;  // values are below 16 (integers: 7 times that)
            for (uint32_t i = 0; i < 2; i++) {
                double at = e->lo[p * 2 + i];
                e->lo[p * 2 + i] = at - top - fabs(at) * 1e-5;
                e->hi[p * 2 + i] = at + top + fabs(at) * 1e-5;
            }
        } else {
            e->lo[p * 2] = e->lo[p * 2 + 1] = (double)NAN;
            e->hi[p * 2] = e->hi[p * 2 + 1] = (double)NAN;
        }
    }
    grid_run("bn_stats, bn_aggr");
}

void grid_statistics(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < (grid_all ? 210 : 21); turn++) {
        bn_case(turn);
    }
}

// ---- searches

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return isnan(x) || isnan(y) ? !isnan(x) - !isnan(y) : (x < y) - (x > y);
}

static void eights_case(uint32_t turn)
{
    const ref_format *f = type(turn % 7), *w = grid_format(turn % 2 ? DT_uint32 : DT_uint16);
    uint32_t parts = 1 + turn * 31 % 128, n = 8 + turn * 17 % 90;
    grid_begin(3);
    side *x =
        grid_source(f, parts, n, turn % GRID_BROADCAST, turn % 3 ? GRID_SMALL : GRID_MODERATE);
    side *top = grid_dest(f32_type(), parts, 8, GRID_PLAIN);
    side *at = grid_dest(w, parts, 8, GRID_PLAIN), *rep = grid_dest(f, parts, n, GRID_PLAIN),
         *old = grid_dest(w, parts, 8, GRID_PLAIN);
    double want[128 * 8];
    for (uint32_t p = 0; p < parts; p++) {
        for (uint32_t i = 0; i < 8; i++) {
            want[p * 8 + i] = i == 5 ? 99 : x->v[p * n + (i * 7 + p) % n];
            want[p * 8 + i] = ref_stored(f, want[p * 8 + i]);
        }
    }
    side *vals = grid_given(f, parts, 8, want);
    GRID_EMIT(max8, ENG_VECTOR, V(top->view), V(x->view));
    GRID_EMIT(nc_find_index8, ENG_VECTOR, V(at->view), V(x->view), V(vals->view));
    GRID_EMIT(nc_match_replace8, ENG_VECTOR, V(rep->view), V(x->view), V(vals->view), F(-1),
              V(old->view));
    at->raw = old->raw = true;
    for (uint32_t p = 0; p < parts; p++) {
        double v[128], left[128];
        const double *row = x->v + p * n;
        memcpy(v, row, n * sizeof *v);
        qsort(v, n, sizeof *v, by_value);
        bool used[128] = {false}, gone[128] = {false};
        double none = w->bits == 32 ? 4294967295.0 : 65535;
        memcpy(left, row, n * sizeof *left);
        for (uint32_t i = 0; i < 8; i++) {
            grid_exact(top, p * 8 + i, f32(v[i]));
            uint32_t j = 0, k = 0;
            while (j < n && (used[j] || row[j] != want[p * 8 + i])) {
                j++;
            }
            while (k < n && (gone[k] || row[k] != want[p * 8 + 7 - i])) {
                k++;
            }
            grid_exact(at, p * 8 + i, j < n ? (double)j : none);
            grid_exact(old, p * 8 + 7 - i, k < n ? (double)k : none);
            used[j] = j < n;
            if (k < n) {
                gone[k] = true;
                left[k] = -1;
            }
        }
        for (uint32_t i = 0; i < n; i++) {
            grid_exact(rep, p * n + i, left[i]);
        }
    }
    grid_run("max8, nc_find_index8, nc_match_replace8");
}

static void topk_case(uint32_t turn)
{
    const ref_format *f = grid_format(DT_bfloat16);
    uint32_t parts = 16 * (1 + turn % 8), cols = 1 + turn * 3 % 20, n = 16 * cols - turn % 8, k = 1;
    k += turn * 5 % n;
    grid_begin(3);
    side *x = grid_source(f, parts, cols, GRID_PLAIN, turn % 2 ? GRID_SMALL : GRID_MODERATE);
    side *d = grid_dest(f, parts, k, GRID_PLAIN),
         *ix = grid_dest(grid_format(DT_uint32), parts, k, GRID_PLAIN);
    GRID_EMIT(topk, ENG_GPSIMD, V(d->view), V(ix->view), V(x->view), I((int32_t)n));
    ix->raw = true;
    for (uint32_t g = 0; g < parts; g += 16) {
        // The order of rank: larger first, of equal ones the lower index.
        static uint32_t rank[400];
        for (uint32_t e = 0; e < n; e++) {
            double v = x->v[(g + e % 16) * cols + e / 16];
            uint32_t r = 0;
            for (uint32_t o = 0; o < n; o++) {
                double u = x->v[(g + o % 16) * cols + o / 16];
                r += u > v || (u == v && o < e);
            }
            rank[r] = e;
        }
        for (uint32_t p = g; p < g + 16; p++) {
            for (uint32_t i = 0; i < k; i++) {
                uint32_t e = rank[k - 1 - i];
                grid_exact(d, p * k + i, x->v[(g + e % 16) * cols + e / 16]);
                grid_exact(ix, p * k + i, e);
            }
        }
    }
    grid_run("topk");
}

static void position_case(uint32_t turn)
{
    const ref_format *f = grid_format(turn % 2 ? DT_int32 : DT_float32),
                     *i32 = grid_format(DT_int32);
    uint32_t n = 1 + turn * 13 % 70, parts = 1 + turn * 29 % 128;
    grid_begin(3);
    static double ids[128], nz[128 * 128];
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = i && turn * (i + 3) % 7 < 4 ? ids[i - 1] : (turn + i * i) % 4;
    }
    for (uint32_t i = 0; i < parts * n; i++) {
        nz[i] = (turn + i * 7 + i / 5) % 3 ? 0 : 1.0 + i % 2;
    }
    side *s = grid_given(f, 1, n, ids), *x = grid_given(f, parts, n, nz);
    side *d = grid_dest(f, 1, 2 * n, GRID_PLAIN), *z = grid_dest(i32, parts, n + 1, GRID_PLAIN);
    GRID_EMIT(sequence_bounds, ENG_GPSIMD, V(d->view), V(s->view));
    GRID_EMIT(nonzero_with_count, ENG_GPSIMD, V(z->view), V(x->view), I(3), I(-9));
    z->raw = true;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lo = i, hi = i + 1;
        while (lo && ids[lo - 1] == ids[i]) {
            lo--;
        }
        while (hi < n && ids[hi] == ids[i]) {
            hi++;
        }
        grid_exact(d, i, ids[i] != 0 ? lo : n);
        grid_exact(d, n + i, ids[i] != 0 ? hi : -1.0);
    }
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i <= n; i++) {
            grid_exact(z, p * (n + 1) + i, p % 16 ? 0x2b2b2b2b : -9);
        }
        for (uint32_t i = 0; i < n && p % 16 == 0; i++) {
            if (nz[p * n + i] != 0) {
                grid_exact(z, p * (n + 1) + count++, 3.0 + i);
            }
        }
        if (p % 16 == 0) {
            grid_exact(z, p * (n + 1) + n, count);
        }
    }
    grid_run("sequence_bounds, nonzero_with_count");
}

void grid_searches(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < (grid_all ? 400 : 20); turn++) {
        eights_case(turn);
        topk_case(turn);
        position_case(turn);
    }
}
