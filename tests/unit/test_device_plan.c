// Copies that plan.c does away with: random programs over few overlapping tiles and rows give the
// same bytes as the programs as they are written.

#include "tests/unit/device_program.h"

#include "device/internal.h"

enum { ROWS = 24, COLS = 48, CELLS = ROWS * COLS, TILES = 10 };

static uint32_t rng = 1;
static uint32_t next(uint32_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return rng % n;
}

typedef struct world {
    prog g;
    uint32_t
        hbm[4];  // views of whole tensors [ROWS, COLS]: two parameters, the output, a temporary
    uint32_t tile[TILES];  // tensors that lie over each other
    uint32_t parts[TILES], cols[TILES];
} world;

static uint32_t tile_tensor(world *w, uint32_t i)
{
    ir_tensor t = {.dtype = DT_float32, .buffer = next(6) ? BUF_SBUF : BUF_PSUM, .ndim = 2};
    w->parts[i] = 1 + next(4) * (1 + next(2));
    w->cols[i] = 4 * (1 + next(4));
    t.name = ir_str(w->g.p, "t", 1);
    t.shape[0] = w->parts[i];
    t.shape[1] = w->cols[i];
    t.partitions = (uint16_t)w->parts[i];
    t.size_bytes = w->cols[i] * 4;
    t.addr_bytes = 16 * next(8) + (next(4) ? 0 : 1008);
    t.addr_part = next(3);
    return ir_tensor_add(w->g.p, t);
}

static void make(world *w, float *a, float *b, float *out)
{
    prog *g = &w->g;
    prog_init(g, 3);
    w->hbm[0] = prog_param(g, DT_float32, ROWS, COLS, a);
    w->hbm[1] = prog_param(g, DT_float32, ROWS, COLS, b);
    uint32_t o = prog_tensor(g, BUF_SHARED, DT_float32, 2, (uint32_t[]){ROWS, COLS});
    g->p->tensors.at[o].role = ROLE_OUT;
    w->hbm[2] = prog_view(g, o);
    w->hbm[3] = prog_view(g, prog_tensor(g, BUF_HBM, DT_float32, 2, (uint32_t[]){ROWS, COLS}));
    prog_out(g, w->hbm[2], out);
    for (uint32_t i = 0; i < TILES; i++) {
        w->tile[i] = prog_view(g, tile_tensor(w, i));
    }
}

// parts rows of cols values somewhere in a tensor of HBM; few places, so that they meet.
static uint32_t rows_of(world *w, uint32_t parts, uint32_t cols)
{
    uint32_t step = next(5) ? 1 : 2, base = w->hbm[next(4)];
    uint32_t row = 4 * next((ROWS - parts * step) / 4 + 1), col = 8 * next((COLS - cols) / 8 + 1);
    if (next(12) == 0) {  // one row for all partitions
        return prog_ap(&w->g, base, row * COLS + col, 0, 2,
                       (const int64_t[][2]){{0, parts}, {1, cols}});
    }
    return prog_ap(&w->g, base, row * COLS + col, 0, 2,
                   (const int64_t[][2]){{(int64_t)step * COLS, parts}, {1, cols}});
}

// A tile, or a part of one; a second call gives one of the same shape when there is one.
static uint32_t tile_of(world *w, uint32_t *parts, uint32_t *cols)
{
    for (uint32_t tries = 0; tries < 200; tries++) {
        uint32_t i = next(TILES), p = w->parts[i], c = w->cols[i];
        if (next(4) == 0) {
            c = 4 * (1 + next(c / 4));
            p = 1 + next(p);
        }
        if (*parts == 0 || (p == *parts && c == *cols)) {
            *parts = p;
            *cols = c;
            return p == w->parts[i] && c == w->cols[i]
                       ? w->tile[i]
                       : prog_ap(&w->g, w->tile[i], w->cols[i] - c, w->parts[i] - p, 2,
                                 (const int64_t[][2]){{1, p}, {1, c}});
        }
    }
    return IR_NONE;
}

static void emit_one(world *w)
{
    prog *g = &w->g;
    uint32_t p = 0, c = 0;
    uint32_t x = tile_of(w, &p, &c), y = tile_of(w, &p, &c), z = tile_of(w, &p, &c);
    switch (next(10)) {
    case 0:
    case 1:
    case 2: prog_copy(g, x, rows_of(w, p, c)); break;
    case 3:
    case 4:
    case 5: prog_copy(g, rows_of(w, p, c), x); break;
    case 6: EMIT(g, memset, ENG_VECTOR, V(x), F((float)next(100)), EN(0)); break;
    case 7:
        if (next(3) == 0) {
            prog_copy(g, rows_of(w, p, c), rows_of(w, p, c));
            break;
        }
        EMIT(g, tensor_copy, ENG_VECTOR, V(x), V(y ? y : x), EN(0), NONE);
        break;
    default:
        EMIT(g, tensor_tensor, ENG_VECTOR, V(x), V(y ? y : x), V(z ? z : x), OP(subtract), EN(0));
        break;
    }
}

static void emit(world *w)
{
    uint32_t n = 3 + next(30), loop = next(4) == 0 ? next(n) : n;
    for (uint32_t i = 0; i < n; i++) {
        if (i == loop) {
            w->g.p->registers = 1;
            EMIT(&w->g, loop_for, ENG_VECTOR, R(0), I(0), I(2), I(1));
            emit_one(w);
            emit_one(w);
            EMIT(&w->g, loop_end, ENG_VECTOR, NONE);
        }
        emit_one(w);
    }
}

static float first[3][CELLS], second[3][CELLS], third[3][CELLS];

static void fill(float m[3][CELLS])
{
    for (int i = 0; i < CELLS; i++) {
        m[0][i] = (float)i;
        m[1][i] = (float)(-7 * i);
        m[2][i] = 0.5f;
    }
}

static uint32_t left_out(const device_program *dp)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < dp->ncode; i++) {
        n += dp->fast[i].flags & BOUND_SKIP ? 1 : 0;
    }
    return n;
}

static void random_programs(void **state)
{
    (void)state;
    uint32_t skipped = 0, kept = 0, together = 0;
    pool_force(true);
    device_pool *pool = device_pool_create(3);
    pool_force(false);
    for (uint32_t seed = 1; seed <= 6000; seed++) {
        static world w;
        rng = seed * 2654435761u;
        fill(first);
        fill(second);
        fill(third);
        uint32_t shift = next(3) ? 0 : 1 + next(CELLS / 2);  // the parameters overlap
        make(&w, first[0], shift ? first[0] + shift : first[1], first[2]);
        emit(&w);
        assert_int_equal(prog_run(&w.g), NKI_OK);
        skipped += left_out(w.g.dp);
        device_core *other = device_core_create(w.g.p->target);
        void *params[2] = {second[0], shift ? second[0] + shift : second[1]};
        void *outs[1] = {second[2]};
        device_run_opts opts = {.as_written = true};
        assert_int_equal(device_run(other, w.g.dp, params, outs, &opts, NULL), NKI_OK);
        if (memcmp(first, second, sizeof first) != 0) {
            fail_msg("seed %u", seed);
        }
        // Row by row, on several threads.
        device_core_release(other);
        other = device_core_create(w.g.p->target);
        pool_force(true);
        device_program *dp = NULL;
        const char *err = NULL;
        assert_int_equal(device_bind(&w.g.pr, &dp, &err), NKI_OK);
        void *others[2] = {third[0], shift ? third[0] + shift : third[1]};
        outs[0] = third[2];
        opts = (device_run_opts){.pool = seed % 4 ? pool : NULL};
        assert_int_equal(device_run(other, dp, others, outs, &opts, NULL), NKI_OK);
        for (uint32_t i = 0; i < dp->nruns; i++) {
            kept += dp->runs[i].row_bytes != 0;
            together += dp->runs[i].n > 1;
        }
        device_program_release(dp);
        pool_force(false);
        device_core_release(other);
        if (memcmp(first, third, sizeof first) != 0) {
            fail_msg("seed %u, in runs", seed);
        }
        prog_fini(&w.g);
    }
    device_pool_release(pool);
    assert_true(skipped > 6000);  // else this tests nothing
    assert_true(kept > 300);
    assert_true(together > 6000);
}

// What must be left out for the speed that docs/performance.md states.
static void load_compute_store(void **state)
{
    (void)state;
    prog g;
    prog_init(&g, 3);
    static float a[256], b[256], out[256];
    for (int i = 0; i < 256; i++) {
        a[i] = (float)i;
        b[i] = 1;
    }
    uint32_t x = prog_load(&g, DT_float32, 4, 64, a), y = prog_load(&g, DT_float32, 4, 64, b);
    uint32_t o = prog_tensor(&g, BUF_SHARED, DT_float32, 2, (uint32_t[]){4, 64});
    g.p->tensors.at[o].role = ROLE_OUT;
    EMIT(&g, tensor_tensor, ENG_VECTOR, V(x), V(x), V(y), OP(add), EN(0));
    prog_copy(&g, prog_view(&g, o), x);
    prog_out(&g, prog_view(&g, o), out);
    assert_int_equal(prog_run(&g), NKI_OK);
    assert_int_equal(left_out(g.dp), 3);
    for (int i = 0; i < 256; i++) {
        assert_true(out[i] == (float)i + 1);
    }
    prog_fini(&g);
}

// Row r of the second instruction adds to a register that row r + 32 of the first has set: they
// must not go row by row together, though no tile on chip shows it when the loads are left out.
static void accumulators_of_other_lanes(void **state)
{
    (void)state;
    enum { P = 64, N = 8 };
    static float a[P * N], b[P * N], out[P];
    for (int i = 0; i < P * N; i++) {
        a[i] = (float)(i / N);
        b[i] = 1000;
    }
    prog g;
    prog_init(&g, 3);
    uint32_t low = prog_load(&g, DT_float32, P, N, a);
    uint32_t at = prog_sbuf(&g, DT_float32, 128, 4 * N);
    uint32_t high[3];
    for (int i = 0; i < 3; i++) {
        high[i] = prog_ap(&g, at, i * N, 32, 2, (const int64_t[][2]){{1, P}, {1, N}});
    }
    uint32_t sum = prog_ap(&g, at, 3 * N, 32, 2, (const int64_t[][2]){{1, P}, {1, 1}});
    prog_copy(&g, high[0], prog_param(&g, DT_float32, P, N, b));
    EMIT(&g, activation, ENG_SCALAR, V(high[1]), OP(copy), V(low), NONE, F(1), OP(add), NONE,
         EN(ISAE_reduce_cmd_reset_reduce));
    EMIT(&g, activation, ENG_SCALAR, V(high[2]), OP(copy), V(high[0]), NONE, F(1), OP(add), V(sum),
         EN(ISAE_reduce_cmd_reduce));
    uint32_t o = prog_tensor(&g, BUF_SHARED, DT_float32, 2, (uint32_t[]){P, 1});
    g.p->tensors.at[o].role = ROLE_OUT;
    prog_copy(&g, prog_view(&g, o), sum);
    prog_out(&g, prog_view(&g, o), out);
    pool_force(true);
    assert_int_equal(prog_run(&g), NKI_OK);
    pool_force(false);
    assert_int_equal(left_out(g.dp), 3);
    for (int i = 0; i < P; i++) {
        assert_true(out[i] == 1000.0f * N + (i < 32 ? (float)((i + 32) * N) : 0.0f));
    }
    prog_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accumulators_of_other_lanes),
        cmocka_unit_test(load_compute_store),
        cmocka_unit_test(random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
