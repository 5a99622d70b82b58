// DMA, dynamic addresses, registers and loops, and what happens outside the bounds.

#include "tests/unit/device_program.h"

#include "device/internal.h"

static uint32_t rng = 31;
static uint32_t next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return rng;
}

static float a[16384], b[16384], out[16384];

static void setup(prog *g, int gen)
{
    prog_init(g, gen);
    for (int i = 0; i < 16384; i++) {
        a[i] = (float)i;
        b[i] = -(float)i;
        out[i] = -12345;
    }
}

static uint32_t dyn_view(prog *g, uint32_t base, dyn_kind kind, uint32_t src, int64_t step)
{
    ir_view v = ir_view_at(g->p, base);
    v.dyn = ir_dyn_add(g->p, (ir_dyn){.kind = (uint8_t)kind, .src = src, .step = step});
    return ir_view_add(g->p, v);
}

static void copy_mode(prog *g, uint32_t dst, uint32_t src, int oob)
{
    EMIT(g, dma_copy, ENG_DMA, V(dst), V(src), NONE, EN(oob), EN(0), EN(0));
}

static void dma_shapes(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    // (6, 4, 5) of HBM, permuted, into 12 partitions of 10; then columns into a 1-D row.
    uint32_t x = prog_param(&g, DT_float32, 24, 5, a), t = prog_sbuf(&g, DT_float32, 12, 10);
    uint32_t perm = prog_ap(&g, x, 0, 0, 3, (const int64_t[][2]){{1, 5}, {20, 6}, {5, 4}});
    prog_copy(&g, t, perm);
    uint32_t h = prog_view(&g, prog_tensor(&g, BUF_HBM, DT_float32, 2, (uint32_t[]){1, 240}));
    uint32_t odd = prog_ap(&g, h, 1, 0, 1, (const int64_t[][2]){{2, 120}});
    uint32_t even = prog_ap(&g, h, 0, 0, 2, (const int64_t[][2]){{80, 3}, {2, 40}});
    prog_copy(&g, odd, t);
    prog_copy(&g, even, t);
    prog_out(&g, t, out);
    prog_out(&g, h, out + 1000);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < 120; i++) {
        float w = a[i / 24 + 20 * (i / 4 % 6) + 5 * (i % 4)];
        assert_true(out[i] == w && out[1000 + 2 * i + 1] == w && out[1000 + 2 * i] == w);
    }
    prog_fini(&g);
}

static void dma_unrefinable(void **state)
{
    (void)state;
    prog g;  // 6 x 4 with a gap against 4 x 6 with a gap: no common loop nest
    setup(&g, 3);
    uint32_t x = prog_param(&g, DT_float32, 6, 7, a), y = prog_param(&g, DT_int16, 4, 9, out);
    uint32_t xs = prog_ap(&g, x, 1, 0, 2, (const int64_t[][2]){{7, 6}, {1, 4}});
    uint32_t ys = prog_ap(&g, y, 2, 0, 2, (const int64_t[][2]){{9, 4}, {1, 6}});
    memset(out, 0, sizeof out);
    prog_copy(&g, ys, xs);
    assert_int_equal(prog_run(&g), NKI_OK);
    const int16_t *o = (const int16_t *)(const void *)out;
    for (int i = 0; i < 24; i++) {
        assert_int_equal(o[2 + 9 * (i / 6) + i % 6], (int)a[1 + 7 * (i / 4) + i % 4]);
    }
    assert_int_equal(o[0], 0);
    assert_int_equal(o[8], 0);
    prog_fini(&g);
}

static void dma_alias(void **state)
{
    (void)state;
    prog g;  // two parameters over one memory, shifted: read whole before writing
    setup(&g, 3);
    uint32_t x = prog_param(&g, DT_float32, 1, 500, a),
             y = prog_param(&g, DT_float32, 1, 500, a + 3);
    prog_copy(&g, y, x);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < 503; i++) {
        assert_true(a[i] == (float)(i < 3 ? i : i - 3));
    }
    prog_fini(&g);
}

static void row_gather(void **state)
{
    (void)state;
    for (int oob = 0; oob < 2; oob++) {
        prog g;
        setup(&g, 3);
        static int32_t idx[64];
        for (int i = 0; i < 64; i++) {
            idx[i] = 3 * i;
        }
        uint32_t x = prog_param(&g, DT_float32, 128, 16, a), t = prog_sbuf(&g, DT_float32, 64, 16),
                 ix = prog_load(&g, DT_int32, 64, 1, idx);
        EMIT(&g, memset, ENG_VECTOR, V(t), F(-1), EN(0));
        uint32_t block = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{16, 64}, {1, 16}});
        copy_mode(&g, t, dyn_view(&g, block, DYN_VECTOR, ix, 16), oob);
        prog_out(&g, t, out);
        nki_status st = prog_run(&g);
        if (oob == 0) {
            assert_int_equal(st, NKI_ERR_DIAG);
            assert_int_equal(g.ds.errors, 1);
            assert_non_null(strstr(g.ds.first->text, "found 129, allowed 0 to 127"));
            assert_non_null(strstr(g.ds.first->text, "[128, 16]"));
        } else {
            assert_int_equal(st, NKI_OK);
            for (int i = 0; i < 64 * 16; i++) {
                assert_true(out[i] == (i / 16 < 43 ? a[3 * (i / 16) * 16 + i % 16] : -1));
            }
        }
        prog_fini(&g);
    }
}

static void row_scatter(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static uint32_t idx[8] = {7, 0, 3, 9, 1, 4000000000u, 5, 2};
    static float dst[10 * 4];
    uint32_t d = prog_param(&g, DT_float32, 10, 4, dst), t = prog_load(&g, DT_float32, 8, 4, a),
             ix = prog_load(&g, DT_uint32, 8, 1, idx);
    uint32_t block = prog_ap(&g, d, 0, 0, 2, (const int64_t[][2]){{4, 8}, {1, 4}});
    copy_mode(&g, dyn_view(&g, block, DYN_VECTOR, ix, 4), t, ISAE_oob_mode_skip);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < 8; i++) {
        for (int e = 0; e < 4 && idx[i] < 10; e++) {
            assert_true(dst[idx[i] * 4 + (uint32_t)e] == a[i * 4 + e]);
        }
    }
    assert_true(dst[6 * 4] == 0 && dst[8 * 4 + 3] == 0);
    prog_fini(&g);
}

static void scalar_offset(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {  // register in, register out of bounds, skip, tensor
        prog g;
        setup(&g, 3);
        g.p->registers = 1;
        int32_t row = kind == 1 ? 29 : kind == 2 ? -2 : 5;
        uint32_t x = prog_param(&g, DT_float32, 32, 8, a), t = prog_sbuf(&g, DT_float32, 4, 8),
                 s = prog_load(&g, DT_int32, 1, 1, &row);
        EMIT(&g, memset, ENG_VECTOR, V(t), F(-1), EN(0));
        uint32_t four = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{8, 4}, {1, 8}});
        EMIT(&g, register_load, ENG_SYNC, R(0), V(s));
        uint32_t v =
            kind == 3 ? dyn_view(&g, four, DYN_SCALAR, s, 8) : dyn_view(&g, four, DYN_REG, 0, 8);
        copy_mode(&g, t, v, kind == 2 ? ISAE_oob_mode_skip : ISAE_oob_mode_error);
        prog_out(&g, t, out);
        nki_status st = prog_run(&g);
        if (kind == 1) {
            assert_int_equal(st, NKI_ERR_DIAG);
            assert_non_null(strstr(g.ds.first->text, "found 29, allowed 0 to 28"));
        } else {
            assert_int_equal(st, NKI_OK);
            for (int i = 0; i < 32; i++) {
                float w = kind == 2 ? (i < 16 ? -1 : a[i - 16]) : a[5 * 8 + i];
                assert_true(out[i] == w);
            }
        }
        prog_fini(&g);
    }
}

static void chip_offset(void **state)
{
    (void)state;
    for (int bad = 0; bad < 3; bad++) {
        prog g;
        setup(&g, 3);
        g.p->registers = 1;
        uint32_t x = prog_load(&g, DT_float32, 16, 40, a), t = prog_sbuf(&g, DT_float32, 16, 10);
        uint32_t part = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{1, 16}, {1, 10}});
        EMIT(&g, register_move, ENG_VECTOR, R(0), I(bad == 1 ? 31 : bad == 2 ? -1 : 30));
        EMIT(&g, tensor_copy, ENG_VECTOR, V(t), V(dyn_view(&g, part, DYN_REG, 0, 1)), EN(0), NONE);
        prog_out(&g, t, out);
        nki_status st = prog_run(&g);
        assert_int_equal(st, bad ? NKI_ERR_DIAG : NKI_OK);
        for (int i = 0; i < 160 && !bad; i++) {
            assert_true(out[i] == a[i / 10 * 40 + 30 + i % 10]);
        }
        if (bad) {
            assert_non_null(strstr(g.ds.first->text, "allowed 0 to 30"));
        }
        prog_fini(&g);
    }
}

static void transpose_dma(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    uint32_t x = prog_param(&g, DT_float32, 48, 20, a), t = prog_sbuf(&g, DT_float32, 20, 48);
    EMIT(&g, dma_transpose, ENG_DMA, V(t), V(x), NONE, NONE, EN(0), EN(0));
    uint32_t x3 = prog_ap(&g, x, 0, 0, 3, (const int64_t[][2]){{160, 6}, {20, 8}, {1, 20}});
    uint32_t u = prog_view(&g, prog_tensor(&g, BUF_SBUF, DT_float32, 3, (uint32_t[]){20, 8, 6}));
    EMIT(&g, dma_transpose, ENG_DMA, V(u), V(x3), prog_ints(&g, 3, (const int64_t[]){2, 1, 0}),
         NONE, EN(0), EN(0));
    prog_out(&g, t, out);
    prog_out(&g, u, out + 1000);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < 960; i++) {
        assert_true(out[i] == a[i % 48 * 20 + i / 48]);
        assert_true(out[1000 + i] == a[i % 6 * 160 + i / 6 % 8 * 20 + i / 48]);
    }
    prog_fini(&g);
}

static void indexed_transpose(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static uint32_t idx[16];
    for (int i = 0; i < 16; i++) {
        idx[i] = i == 7 ? 1000 : (uint32_t)(i * 5 % 64);
    }
    uint32_t x = prog_param(&g, DT_float32, 64, 12, a), t = prog_sbuf(&g, DT_float32, 12, 16),
             ix = prog_load(&g, DT_uint32, 16, 1, idx);
    EMIT(&g, memset, ENG_VECTOR, V(t), F(-1), EN(0));
    uint32_t block = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{12, 16}, {1, 12}});
    EMIT(&g, dma_transpose, ENG_DMA, V(t), V(dyn_view(&g, block, DYN_VECTOR, ix, 12)), NONE, NONE,
         EN(0), EN(ISAE_oob_mode_skip));
    prog_out(&g, t, out);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < 192; i++) {
        int col = i % 16;
        assert_true(out[i] == (col == 7 ? -1 : a[(int)idx[col] * 12 + i / 16]));
    }
    prog_fini(&g);
}

static void dma_sum(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static int32_t idx[4] = {3, 0, 7, 5};
    static float dst[8 * 6];
    for (int i = 0; i < 48; i++) {
        dst[i] = 100 + (float)i;
        b[i] = 0.5f * (float)i;
    }
    uint32_t x = prog_param(&g, DT_float32, 4, 6, a), y = prog_load(&g, DT_float32, 4, 6, b),
             t = prog_sbuf(&g, DT_float32, 4, 6);
    ir_arg two[] = {V(x), V(y)};
    EMIT(&g, dma_compute, ENG_DMA, V(t), ((ir_arg){IRA_LIST, 0, 2, ir_list(g.p, two, 2)}), OP(add),
         NONE, B(1), EN(0));
    uint32_t d = prog_param(&g, DT_float32, 8, 6, dst), ix = prog_load(&g, DT_int32, 4, 1, idx);
    uint32_t block = dyn_view(&g, prog_ap(&g, d, 0, 0, 2, (const int64_t[][2]){{6, 4}, {1, 6}}),
                              DYN_VECTOR, ix, 6);
    ir_arg rmw[] = {V(block), V(y)};
    EMIT(&g, dma_compute, ENG_DMA, V(block), ((ir_arg){IRA_LIST, 0, 2, ir_list(g.p, rmw, 2)}),
         OP(add), NONE, B(1), EN(0));
    prog_out(&g, t, out);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < 24; i++) {
        assert_true(out[i] == a[i] + b[i]);
        int at = idx[i / 6] * 6 + i % 6;
        assert_true(dst[at] == 100 + (float)at + b[i]);
    }
    assert_true(dst[6] == 106);
    prog_fini(&g);
}

static void loops(void **state)
{
    (void)state;
    prog g;  // for i in 2..10 step 3, for j in 0..i: counts; then a while loop counting down in
             // memory
    setup(&g, 3);
    g.p->registers = 4;
    int32_t init = 5, res[3];
    uint32_t one = prog_sbuf(&g, DT_int32, 1, 1), cnt = prog_sbuf(&g, DT_int32, 1, 1),
             w = prog_load(&g, DT_int32, 1, 1, &init), wc = prog_sbuf(&g, DT_int32, 1, 1);
    EMIT(&g, memset, ENG_VECTOR, V(one), I(1), EN(0));
    EMIT(&g, memset, ENG_VECTOR, V(cnt), I(0), EN(0));
    EMIT(&g, memset, ENG_VECTOR, V(wc), I(0), EN(0));
    EMIT(&g, register_move, ENG_VECTOR, R(3), I(10));
    EMIT(&g, loop_for, ENG_VECTOR, R(0), I(2), R(3), I(3));
    EMIT(&g, loop_for, ENG_VECTOR, R(1), I(0), R(0), I(1));
    EMIT(&g, tensor_tensor, ENG_GPSIMD, V(cnt), V(cnt), V(one), OP(add), EN(0));
    prog_emit(&g, ISA_loop_end, ENG_VECTOR, (ir_arg[]){NONE});
    prog_emit(&g, ISA_loop_end, ENG_VECTOR, (ir_arg[]){NONE});
    EMIT(&g, register_load, ENG_VECTOR, R(2), V(w));
    EMIT(&g, loop_while, ENG_VECTOR, R(2));
    EMIT(&g, tensor_tensor, ENG_GPSIMD, V(w), V(w), V(one), OP(subtract), EN(0));
    EMIT(&g, tensor_tensor, ENG_GPSIMD, V(wc), V(wc), V(one), OP(add), EN(0));
    EMIT(&g, register_load, ENG_VECTOR, R(2), V(w));
    prog_emit(&g, ISA_loop_end, ENG_VECTOR, (ir_arg[]){NONE});
    EMIT(&g, loop_for, ENG_VECTOR, R(0), I(4), I(4), I(1));  // no trips
    EMIT(&g, memset, ENG_VECTOR, V(cnt), I(0), EN(0));
    prog_emit(&g, ISA_loop_end, ENG_VECTOR, (ir_arg[]){NONE});
    EMIT(&g, register_store, ENG_VECTOR, V(one), R(1));
    prog_out(&g, cnt, &res[0]);
    prog_out(&g, wc, &res[1]);
    prog_out(&g, one, &res[2]);
    assert_int_equal(prog_run(&g), NKI_OK);
    assert_int_equal(res[0], 2 + 5 + 8);
    assert_int_equal(res[1], 5);
    assert_int_equal(res[2], 7);
    prog_fini(&g);
}

static void endless(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    g.p->registers = 1;
    EMIT(&g, register_move, ENG_VECTOR, R(0), I(1));
    EMIT(&g, loop_while, ENG_VECTOR, R(0));
    prog_emit(&g, ISA_loop_end, ENG_VECTOR, (ir_arg[]){NONE});
    const char *err;
    assert_int_equal(device_bind(&g.pr, &g.dp, &err), NKI_OK);
    device_run_opts o = {.max_loop_trips = 1000};
    assert_int_equal(device_run(g.core, g.dp, g.params, g.outs, &o, &g.ds), NKI_ERR_DIAG);
    assert_string_equal(diag_name(g.ds.first->id), "loop_too_long");
    prog_fini(&g);
}

static void collect(void *ctx, const char *s, size_t n)
{
    strncat(ctx, s, n);
}

static void print(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    static char text[4096];
    uint32_t t = prog_load(&g, DT_float32, 2, 3, a);
    int8_t small[2] = {-3, 7};
    uint32_t s = prog_load(&g, DT_int8, 1, 2, small);
    EMIT(&g, device_print, ENG_SYNC, ira_kind(IRA_STR, ir_str(g.p, "x", 1)), V(t));
    EMIT(&g, device_print, ENG_SYNC, ira_kind(IRA_STR, ir_str(g.p, "s", 1)), V(s));
    const char *err;
    assert_int_equal(device_bind(&g.pr, &g.dp, &err), NKI_OK);
    device_run_opts o = {.print = collect, .print_ctx = text};
    assert_int_equal(device_run(g.core, g.dp, g.params, g.outs, &o, &g.ds), NKI_OK);
    assert_string_equal(text, "x [[0.0 1.0 2.0]\n   [3.0 4.0 5.0]]\ns [[-3 7]]\n");
    prog_fini(&g);
}

static bool add_them(void *ctx, uint32_t core, uint32_t instr, void *const *data)
{
    float *x = data[0], *y = data[DEVICE_HOST_OPERANDS / 2];
    ++*(int *)ctx;
    for (int i = 0; i < 6; i++) {
        y[i] += x[i];
    }
    return data[1] == NULL && data[DEVICE_HOST_OPERANDS / 2 + 1] == NULL && core == 0 && instr == 0;
}

static void host_call(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    float left[6] = {0, 1, 2, 3, 4, 5}, right[6] = {5, 5, 5, 5, 5, 5};
    uint32_t x = prog_param(&g, DT_float32, 2, 3, left);
    uint32_t y = prog_param(&g, DT_float32, 2, 3, right);
    ir_arg name = ira_kind(IRA_STR, ir_str(g.p, "f", 1));
    EMIT(&g, host_call, ENG_SYNC, name, name, V(x), NONE, NONE, NONE, NONE, NONE, V(y), NONE, NONE,
         NONE, NONE, NONE);
    const char *err;
    int calls = 0;
    assert_int_equal(device_bind(&g.pr, &g.dp, &err), NKI_OK);
    device_run_opts o = {.host = add_them, .host_ctx = &calls};
    assert_int_equal(device_run(g.core, g.dp, g.params, g.outs, &o, &g.ds), NKI_OK);
    assert_int_equal(calls, 1);
    assert_true(right[0] == 5.0f && right[5] == 10.0f);
    assert_int_equal(g.p->instrs.at[0].op, ISA_host_call);
    o.host = NULL;
    assert_int_equal(device_run(g.core, g.dp, g.params, g.outs, &o, &g.ds), NKI_ERR_HOST);
    prog_fini(&g);
}

static void indirect(void **state)
{
    (void)state;
    prog g;  // gather of 20 elements: element i of a partition at index[i mod 16][i / 16] of its
             // group
    setup(&g, 4);
    static uint32_t idx[32 * 2];
    for (int i = 0; i < 64; i++) {
        idx[i] = next() % 30;
    }
    for (int p = 0; p < 32; p++) {  // distinct in a group, for the scatter
        idx[p * 2] = (uint32_t)(p % 16);
        idx[p * 2 + 1] = (uint32_t)(p % 16 + 16) % 30;
    }
    uint32_t x = prog_load(&g, DT_float32, 32, 30, a), ix = prog_load(&g, DT_uint32, 32, 2, idx),
             t = prog_sbuf(&g, DT_float32, 32, 20), y = prog_sbuf(&g, DT_float32, 32, 30);
    uint32_t shape = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{1, 32}, {1, 20}});
    ir_view v = ir_view_at(g.p, shape);
    v.dyn = ir_dyn_add(g.p, (ir_dyn){.kind = DYN_INDIRECT, .src = ix, .step = 1, .num_elem = 20});
    uint32_t gx = ir_view_add(g.p, v);
    v.tensor = g.p->views.at[y].tensor;
    uint32_t gy = ir_view_add(g.p, v);
    EMIT(&g, tensor_copy, ENG_VECTOR, V(t), V(gx), EN(0), NONE);
    EMIT(&g, memset, ENG_VECTOR, V(y), F(-1), EN(0));
    EMIT(&g, tensor_scalar, ENG_VECTOR, V(gy), V(t), OP(add), F(0.5f), B(0), NONE, NONE, B(0),
         EN(0));
    prog_out(&g, t, out);
    prog_out(&g, y, b);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int p = 0; p < 32; p++) {
        float row[30];
        for (int i = 0; i < 30; i++) {
            row[i] = -1;
        }
        for (int i = 0; i < 20; i++) {
            uint32_t at = idx[(p / 16 * 16 + i % 16) * 2 + i / 16];
            assert_true(out[p * 20 + i] == a[p * 30 + (int)at]);
            row[at] = out[p * 20 + i] + 0.5f;
        }
        assert_memory_equal(row, b + p * 30, sizeof row);
    }
    prog_fini(&g);
}

static void output_views(void **state)
{
    (void)state;
    prog g;
    setup(&g, 3);
    uint32_t h = prog_param(&g, DT_float32, 8, 10, a);
    prog_out(&g, prog_ap(&g, h, 0, 0, 2, (const int64_t[][2]){{1, 10}, {10, 8}}), out);
    assert_int_equal(prog_run(&g), NKI_OK);
    for (int i = 0; i < 80; i++) {
        assert_true(out[i] == a[i % 8 * 10 + i / 8]);
    }
    prog_fini(&g);
}

static void rejected(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        prog g;
        setup(&g, 3);
        g.p->registers = 1;
        uint32_t x = prog_load(&g, DT_float32, 8, 10, a), y = prog_sbuf(&g, DT_float32, 8, 11);
        uint32_t bad = x;
        switch (kind) {
        case 0: bad = prog_ap(&g, x, 1, 0, 2, (const int64_t[][2]){{1, 8}, {1, 10}}); break;
        case 1: bad = prog_ap(&g, x, 0, 1, 2, (const int64_t[][2]){{1, 8}, {1, 10}}); break;
        case 2:
            bad = prog_ap(&g, x, 0, 0, 2, (const int64_t[][2]){{1, 8}, {INT64_MAX / 4, 10}});
            break;
        case 3: bad = y; break;
        case 4: bad = dyn_view(&g, x, DYN_REG, 99, 1); break;
        case 5: bad = 4000000; break;
        case 6: bad = prog_param(&g, DT_float32, 8, 10, a); break;
        default: g.p->tensors.at[g.p->views.at[x].tensor].addr_bytes = 1 << 20; break;
        }
        EMIT(&g, tensor_copy, ENG_VECTOR, V(x), V(bad), EN(0), NONE);
        const char *err = NULL;
        assert_int_equal(device_bind(&g.pr, &g.dp, &err), NKI_ERR_FORMAT);
        assert_non_null(err);
        assert_null(g.dp);
        prog_fini(&g);
    }
}

// Programs with random dynamic offsets and indices: an error or a result, never an access outside
// (the sanitizers and the guard rows watch).
static void wild(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        prog g;
        prog_init(&g, 4);
        g.p->registers = 2;
        float *guarded = calloc(3 * 64, sizeof *guarded);
        static int32_t idx[4];
        for (int i = 0; i < 4; i++) {
            idx[i] = (int32_t)(next() % 4 ? next() % 12 : next());
        }
        uint32_t x = prog_param(&g, DT_float32, 8, 8, guarded + 64),
                 t = prog_load(&g, DT_float32, 4, 8, a), ix = prog_load(&g, DT_int32, 4, 1, idx);
        uint32_t block = prog_ap(&g, x, next() % 3, 0, 2, (const int64_t[][2]){{8, 4}, {1, 8}});
        EMIT(&g, register_load, ENG_SYNC, R(0),
             V(prog_ap(&g, ix, 0, 0, 2, (const int64_t[][2]){{1, 1}, {1, 1}})));
        int64_t step = (int64_t)(next() % 40) - 10;
        uint32_t dyn = next() % 2 ? dyn_view(&g, block, DYN_VECTOR, ix, step)
                                  : dyn_view(&g, block, DYN_REG, 0, step);
        if (next() % 2) {
            copy_mode(&g, dyn, t, (int)(next() % 2));
        } else {
            copy_mode(&g, t, dyn, (int)(next() % 2));
        }
        uint32_t chip = dyn_view(&g, prog_ap(&g, t, 0, 0, 2, (const int64_t[][2]){{1, 2}, {1, 3}}),
                                 DYN_REG, 0, step);
        g.p->dyns.at[ir_view_at(g.p, chip).dyn].partition = next() % 2;
        EMIT(&g, tensor_scalar, ENG_VECTOR, V(chip), V(chip), OP(add), F(1), B(0), NONE, NONE, B(0),
             EN(0));
        nki_status st = prog_run(&g);
        assert_true(st == NKI_OK || st == NKI_ERR_DIAG);
        for (int i = 0; i < 64; i++) {
            assert_true(guarded[i] == 0 && guarded[128 + i] == 0);
        }
        free(guarded);
        prog_fini(&g);
    }
}

static void again(void **state)
{
    (void)state;
    prog g;  // one bound program, two cores, different parameters
    setup(&g, 3);
    uint32_t x = prog_load(&g, DT_float32, 4, 4, a), z = prog_sbuf(&g, DT_float32, 4, 4);
    EMIT(&g, tensor_scalar, ENG_VECTOR, V(z), V(x), OP(add), F(1), B(0), NONE, NONE, B(0), EN(0));
    prog_out(&g, z, out);
    assert_int_equal(prog_run(&g), NKI_OK);
    device_core *second = device_core_create(g.p->target);
    g.params[0] = b;
    assert_int_equal(device_run(second, g.dp, g.params, g.outs, NULL, NULL), NKI_OK);
    assert_true(out[5] == b[5] + 1);
    device_core *other = device_core_create(target_by_gen(2));
    assert_int_equal(device_run(other, g.dp, g.params, g.outs, NULL, NULL), NKI_ERR_ARG);
    device_core_release(other);
    device_core_release(second);
    prog_fini(&g);
}

static void every_row_is_bound(void **state)
{
    (void)state;
    for (int i = 0; i < ISA_COUNT; i++) {
        bool run = isa_table[i].status == ISAS_DONE && i != ISA_rank_id &&
                   i != ISA_collective_permute_implicit_current_processing_rank_id;
        if (run != (bind_table[i] != NULL)) {
            fail_msg("%s", isa_table[i].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dma_shapes),
        cmocka_unit_test(dma_unrefinable),
        cmocka_unit_test(dma_alias),
        cmocka_unit_test(row_gather),
        cmocka_unit_test(row_scatter),
        cmocka_unit_test(scalar_offset),
        cmocka_unit_test(chip_offset),
        cmocka_unit_test(transpose_dma),
        cmocka_unit_test(indexed_transpose),
        cmocka_unit_test(dma_sum),
        cmocka_unit_test(loops),
        cmocka_unit_test(endless),
        cmocka_unit_test(print),
        cmocka_unit_test(host_call),
        cmocka_unit_test(indirect),
        cmocka_unit_test(output_views),
        cmocka_unit_test(rejected),
        cmocka_unit_test(wild),
        cmocka_unit_test(again),
        cmocka_unit_test(every_row_is_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
