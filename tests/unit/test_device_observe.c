#include "tests/unit/device_program.h"

// device_observer: what it is shown, when, and where operands lie.

enum { ROWS = 4, N = 8 };

typedef struct seen {
    char log[2048];
    int stop_at;  // the event that ends the run, -1: none
    int events;
    float values[64];
    uint32_t nvalues;
    const void *missing;
} seen;

static bool note(seen *s, const device_event *e, char when)
{
    size_t at = strlen(s->log);
    isa_id op = (isa_id)e->program->instrs.at[e->instr].op;
    snprintf(s->log + at, sizeof s->log - at, "%u%c%s ", e->core, when, isa_table[op].name);
    return s->events++ != s->stop_at;
}

static bool before(void *ctx, const device_event *e)
{
    return note(ctx, e, '<');
}

// Collects operand 1's elements of dma_copy, where it is a row that a register or an index chooses.
static bool after(void *ctx, const device_event *e)
{
    seen *s = ctx;
    if (e->program->instrs.at[e->instr].op == ISA_dma_copy) {
        device_operand o = device_operand_at(e, 1);
        assert_int_equal(o.param, 1);
        assert_false(o.written);
        assert_true(device_operand_at(e, 0).written);
        assert_int_equal(device_operand_at(e, 2).rows, 0);
        for (uint32_t r = 0; r < o.rows; r++) {
            const float *p = device_element(e, 1, r, o.row_elems - 1);
            if (p) {
                s->values[s->nvalues++] = *p;
            } else {
                s->missing = e;
            }
        }
        assert_null(device_element(e, 1, o.rows, 0));
        assert_null(device_element(e, 1, 0, o.row_elems));
    }
    return note(s, e, '>');
}

static uint32_t dynamic(prog *g, uint32_t base, dyn_kind kind, uint32_t src, int64_t step)
{
    ir_view v = ir_view_at(g->p, base);
    v.dyn = ir_dyn_add(g->p, (ir_dyn){.kind = (uint8_t)kind, .src = src, .step = step});
    return ir_view_add(g->p, v);
}

static nki_status run(prog *g, seen *s)
{
    const char *err = NULL;
    assert_int_equal(device_bind(&g->pr, &g->dp, &err), NKI_OK);
    device_observer ob = {.before = before, .after = after, .ctx = s};
    device_run_opts o = {.observer = &ob};
    return device_run(g->core, g->dp, g->params, g->outs, &o, &g->ds);
}

static void fill(float *p, int n)
{
    for (int i = 0; i < n; i++) {
        p[i] = (float)i;
    }
}

// A loop loads row r of a parameter for r = 1, 2: each copy is seen twice, with its own row, though
// the plain run would not make it at all.
static void loops_and_registers(void **state)
{
    (void)state;
    prog g;
    float in[ROWS * N], out[N];
    prog_init(&g, 3);
    fill(in, ROWS * N);
    g.p->registers = 1;
    uint32_t x = prog_param(&g, DT_float32, ROWS, N, in), t = prog_sbuf(&g, DT_float32, 1, N);
    uint32_t row = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{N, 1}, {1, N}});
    EMIT(&g, loop_for, ENG_VECTOR, R(0), I(1), I(3), I(1));
    prog_copy(&g, t, dynamic(&g, row, DYN_REG, 0, N));
    prog_emit(&g, ISA_loop_end, ENG_VECTOR, (ir_arg[]){NONE});
    prog_out(&g, t, out);
    seen s = {.stop_at = -1};
    assert_int_equal(run(&g, &s), NKI_OK);
    assert_string_equal(s.log, "0<loop_for 0>loop_for 0<dma_copy 0>dma_copy 0<loop_end 0>loop_end "
                               "0<dma_copy 0>dma_copy 0<loop_end 0>loop_end ");
    assert_int_equal(s.nvalues, 2);
    assert_true(s.values[0] == 2 * N - 1 && s.values[1] == 3 * N - 1);
    assert_null(s.missing);
    // Ended from inside: no diagnostic, and nothing after it.
    seen early = {.stop_at = 2};
    device_observer ob = {.before = before, .after = after, .ctx = &early};
    device_run_opts o = {.observer = &ob};
    assert_int_equal(device_run(g.core, g.dp, g.params, g.outs, &o, &g.ds), NKI_ERR_CANCELLED);
    assert_int_equal(early.events, 3);
    assert_null(g.ds.first);
    prog_fini(&g);
}

// Rows by an index vector; the one that is outside is skipped and has no address.
static void indexed_rows(void **state)
{
    (void)state;
    prog g;
    float in[ROWS * N];
    int32_t rows[3] = {2, 9, 0};
    prog_init(&g, 3);
    fill(in, ROWS * N);
    uint32_t x = prog_param(&g, DT_float32, ROWS, N, in), t = prog_sbuf(&g, DT_float32, 3, N);
    uint32_t ix = prog_load(&g, DT_int32, 3, 1, rows);
    uint32_t block = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{N, 3}, {1, N}});
    EMIT(&g, dma_copy, ENG_DMA, V(t), V(dynamic(&g, block, DYN_VECTOR, ix, N)), NONE,
         EN(ISAE_oob_mode_skip), EN(0), EN(0));
    seen s = {.stop_at = -1};
    assert_int_equal(run(&g, &s), NKI_OK);
    assert_int_equal(s.nvalues, 3 + 2);  // the indices themselves were loaded first
    assert_true(s.values[3] == 3 * N - 1 && s.values[4] == N - 1);
    assert_non_null(s.missing);
    prog_fini(&g);
}

static bool look_at_tensors(void *ctx, const device_event *e)
{
    uint32_t *found = ctx;
    for (uint32_t t = 0; t < e->program->tensors.n; t++) {
        const ir_tensor *ten = &e->program->tensors.at[t];
        uint32_t last = ten->partitions ? ten->partitions - 1u : 0;
        const float *p = device_tensor_byte(e, t, last, ten->size_bytes - 4);
        assert_non_null(p);
        found[t] += *p == ROWS * N - 1;
        assert_null(device_tensor_byte(e, t, last + 1, 0));
        assert_null(device_tensor_byte(e, t, 0, ten->size_bytes));
    }
    assert_null(device_tensor_byte(e, e->program->tensors.n, 0, 0));
    return true;
}

// Parameter, tile, HBM temporary, output in the caller's memory.
static void tensors_anywhere(void **state)
{
    (void)state;
    prog g;
    static float in[ROWS * N], out[ROWS * N];
    prog_init(&g, 3);
    fill(in, ROWS * N);
    uint32_t t = prog_load(&g, DT_float32, ROWS, N, in);
    uint32_t tmp = prog_tensor(&g, BUF_HBM, DT_float32, 2, (const uint32_t[]){ROWS, N});
    uint32_t res = prog_tensor(&g, BUF_SHARED, DT_float32, 2, (const uint32_t[]){ROWS, N});
    g.p->tensors.at[res].role = ROLE_OUT;
    uint32_t psum = prog_psum(&g, DT_float32, ROWS, N);
    prog_copy(&g, prog_view(&g, tmp), t);
    EMIT(&g, tensor_copy, ENG_VECTOR, V(psum), V(t), EN(0), NONE);
    prog_copy(&g, prog_view(&g, res), t);
    prog_out(&g, prog_view(&g, res), out);
    const char *err;
    uint32_t found[8] = {0};
    assert_int_equal(device_bind(&g.pr, &g.dp, &err), NKI_OK);
    device_observer ob = {.after = look_at_tensors, .ctx = found};
    device_run_opts o = {.observer = &ob};
    assert_int_equal(device_run(g.core, g.dp, g.params, g.outs, &o, &g.ds), NKI_OK);
    assert_true(out[ROWS * N - 1] == ROWS * N - 1);
    // In the order of creation: tile, parameter, temporary, result, PSUM; after 4 instructions.
    const uint32_t want[] = {4, 4, 3, 1, 2};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(found[i], want[i]);
    }
    prog_fini(&g);
}

// Both cores of a launch: each sees its own in order, the exchange once both are there.
static void two_cores(void **state)
{
    (void)state;
    prog g[2];
    float in[2][N], out[N];
    device_core *cores[2];
    const device_program *programs[2];
    for (uint32_t r = 0; r < 2; r++) {
        prog_init(&g[r], 3);
        g[r].p->grid = 2;
        g[r].p->core = r;
        fill(in[r], N);
        in[r][N - 1] = 100 + (float)r;
        uint32_t a = prog_load(&g[r], DT_float32, 1, N, in[0]),
                 b = prog_sbuf(&g[r], DT_float32, 1, N);
        EMIT(&g[r], sendrecv, ENG_GPSIMD, V(a), V(b), I(1 - r), I(1 - r), I(0), EN(1));
        prog_out(&g[r], b, out);
        const char *err;
        assert_int_equal(device_bind(&g[r].pr, &g[r].dp, &err), NKI_OK);
        cores[r] = g[r].core;
        programs[r] = g[r].dp;
    }
    seen s = {.stop_at = -1};
    device_observer ob = {.before = before, .after = after, .ctx = &s};
    device_run_opts o = {.observer = &ob};
    void *params[] = {in[0]}, *outs[] = {out};
    assert_int_equal(device_launch(cores, programs, 2, params, outs, &o, &g[0].ds), NKI_OK);
    assert_string_equal(s.log, "0<dma_copy 0>dma_copy 0<sendrecv 1<dma_copy 1>dma_copy 1<sendrecv "
                               "0>sendrecv 1>sendrecv ");
    prog_fini(&g[0]);
    prog_fini(&g[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_and_registers),
        cmocka_unit_test(indexed_rows),
        cmocka_unit_test(tensors_anywhere),
        cmocka_unit_test(two_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
