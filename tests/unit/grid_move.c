// Cases of the instructions that move, fill and gather, and of DMA.

#include "tests/unit/grid.h"

static const ref_format *type(uint32_t i)
{
    return &ref_formats[i % REF_FORMATS];
}

// A copy keeps bits when the types are one, else converts through fp32.
static void expect_copy(side *d, size_t i, const side *s, size_t from)
{
    d->raw = d->f->d == s->f->d;
    grid_exact(d, i, d->raw ? s->v[from] : (double)(float)s->v[from]);
}

static void copy_case(uint32_t st, uint32_t dt, uint32_t turn)
{
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    side *x = grid_source(type(st), parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *d = grid_dest(type(dt), parts, n, turn / 2 % GRID_KINDS);
    side *e = grid_dest(type(dt), parts, n, turn / 3 % GRID_KINDS);
    GRID_EMIT(tensor_copy, ENG_VECTOR, V(d->view), V(x->view), EN(0), NONE);
    GRID_EMIT(dma_copy, ENG_DMA, V(e->view), V(x->view), NONE, EN(0), EN(0), EN(0));
    for (uint32_t i = 0; i < parts * n; i++) {
        expect_copy(d, i, x, i);
        expect_copy(e, i, x, i);
    }
    grid_run("tensor_copy, dma_copy");
}

static void memset_case(uint32_t turn)
{
    static const double values[] = {0, 1, -1, 2.5, 3.5, 1e30, -1e-30, 300, -0.0};
    const ref_format *f = type(turn);
    double v = values[turn / 2 % 9];
    uint32_t parts, n;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    side *d = grid_dest(f, parts, n, turn % GRID_KINDS);
    bool exact = f->d == DT_int32 && turn % 2;  // an integer above 2^24
    GRID_EMIT(memset, ENG_VECTOR, V(d->view), exact ? I(0x1234567) : F((float)v), EN(0));
    d->raw = exact;
    for (uint32_t i = 0; i < parts * n; i++) {
        grid_exact(d, i, exact ? 0x1234567 : (double)(float)v);
    }
    grid_run("memset");
}

static void iota_case(uint32_t turn)
{
    const ref_format *f = type(turn);
    grid_begin(3);
    uint32_t parts = 1 + turn * 37 % 128, a = 2 + turn % 3, b = 9;
    int64_t sa = 1000 - 300 * (int64_t)(turn % 8), sb = turn % 5 == 0 ? 1 << 27 : -7;
    int64_t offset = turn % 4 == 0 ? INT32_MAX - 3 : -20, channel = (int64_t)(turn % 3) * 5;
    side *d = grid_dest(f, parts, a * b, turn % GRID_KINDS);
    GRID_EMIT(iota, ENG_GPSIMD, V(d->view),
              prog_ints(&grid_prog, 4, (const int64_t[]){sa, a, sb, b}), I((int32_t)offset),
              I((int32_t)channel));
    d->raw = f->d == DT_int32 || f->d == DT_uint32;
    for (uint32_t i = 0; i < parts * a * b; i++) {
        int64_t v = offset + channel * (i / (a * b)) + sa * (i % (a * b) / b) + sb * (i % b);
        int32_t wrapped = (int32_t)(uint32_t)(uint64_t)v;
        double at = f->d == DT_uint32 ? (double)(uint32_t)wrapped : (double)wrapped;
        grid_exact(d, i, d->raw ? at : (double)(float)wrapped);
    }
    grid_run("iota");
}

static void shuffle_case(uint32_t turn)
{
    const ref_format *f = type(turn);
    grid_begin(3);
    uint32_t quads = 1 + turn % 4, n = 1 + turn * 7 % 40;
    int64_t mask[32];
    for (uint32_t i = 0; i < 32; i++) {
        mask[i] = turn % 3 && i % 5 == 2 ? 255 : (i * 11 + turn) % 32;
    }
    side *x = grid_source(f, 32 * quads, n, turn % GRID_KINDS, GRID_CROSS0);
    side *y = grid_source(f, 32 * quads, n, GRID_PLAIN, GRID_CROSS1);
    side *d = grid_dest(f, 32 * quads, n, turn / 2 % GRID_KINDS);
    GRID_EMIT(tensor_copy, ENG_VECTOR, V(d->view), V(y->view), EN(0), NONE);
    GRID_EMIT(nc_stream_shuffle, ENG_VECTOR, V(d->view), V(x->view),
              prog_ints(&grid_prog, 32, mask));
    for (uint32_t p = 0; p < 32 * quads; p++) {
        uint32_t from = mask[p % 32] == 255 ? 0 : p / 32 * 32 + (uint32_t)mask[p % 32];
        for (uint32_t i = 0; i < n; i++) {
            expect_copy(d, p * n + i, mask[p % 32] == 255 ? y : x,
                        mask[p % 32] == 255 ? p * n + i : from * n + i);
        }
    }
    grid_run("nc_stream_shuffle");
}

static void transpose_case(uint32_t turn)
{
    const ref_format *f = type(turn);
    grid_begin(3);
    uint32_t parts = 1 + turn * 29 % 128, n = 1 + turn * 43 % 128;
    side *x = grid_source(f, parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *d = grid_dest(f, n, parts, turn / 2 % GRID_KINDS);
    side *e = grid_dest(f, n, parts, turn / 3 % GRID_KINDS);
    GRID_EMIT(nc_transpose, ENG_VECTOR, V(d->view), V(x->view), EN(0));
    GRID_EMIT(dma_transpose, ENG_DMA, V(e->view), V(x->view), NONE, NONE, EN(0), EN(0));
    // A column view has three dimensions; the transpose of two takes rows as they are.
    bool plain = x->kind != GRID_COLUMNS && x->kind != GRID_BROADCAST && e->kind != GRID_COLUMNS;
    e->lo = plain ? e->lo : NULL;
    for (uint32_t i = 0; i < parts * n; i++) {
        expect_copy(d, i % n * parts + i / n, x, i);
        if (plain) {
            expect_copy(e, i % n * parts + i / n, x, i);
        }
    }
    if (!plain) {
        grid_prog.p->instrs.n--;
    }
    grid_run("nc_transpose, dma_transpose");
}

void grid_moves(void **state)
{
    (void)state;
    uint32_t turn = 0;
    for (uint32_t st = 0; st < REF_FORMATS; st++) {
        for (uint32_t dt = 0; dt < REF_FORMATS; dt++) {
            for (int k = 0; k < (grid_all ? 6 : 1); k++) {
                copy_case(st, dt, turn++);
            }
        }
    }
    for (turn = 0; turn < (grid_all ? 450 : 45); turn++) {
        memset_case(turn);
        iota_case(turn);
        shuffle_case(turn);
        transpose_case(turn);
    }
}

// ---- gathers

static void gather_case(uint32_t turn)
{
    const ref_format *f = type(turn);
    uint32_t groups = 1 + turn % 8, parts = 16 * groups, n = 8 + turn * 13 % 60, k = 1 + turn % 9;
    uint32_t each = 1u << turn % 3, valid = 16 * k - turn % 4;
    static double at[128 * 16], ids[128 * 16];
    for (uint32_t i = 0; i < parts * k; i++) {
        at[i] = (turn * 7 + i * 31) % n;
        ids[i] = (turn * 3 + i * 17) % (n - each + 1);
    }
    grid_begin(3);
    side *x = grid_source(f, parts, n, turn % GRID_KINDS, GRID_CROSS0);
    side *u = grid_given(grid_format(DT_uint32), parts, k, at);
    side *w = grid_given(grid_format(DT_uint16), parts, k, ids);
    side *y = grid_source(f, parts, 16 * k * each, GRID_PLAIN, GRID_CROSS1);
    side *d = grid_dest(f, parts, k, turn / 2 % GRID_KINDS);
    side *e = grid_dest(f, parts, 16 * k * each, turn / 3 % GRID_KINDS);
    GRID_EMIT(nc_n_gather, ENG_GPSIMD, V(d->view), V(x->view), V(u->view));
    GRID_EMIT(tensor_copy, ENG_VECTOR, V(e->view), V(y->view), EN(0), NONE);
    GRID_EMIT(local_gather, ENG_GPSIMD, V(e->view), V(x->view), V(w->view), I((int32_t)each),
              I((int32_t)valid));
    for (uint32_t p = 0; p < parts; p++) {
        for (uint32_t i = 0; i < k; i++) {
            expect_copy(d, p * k + i, x, p * n + (uint32_t)at[p * k + i]);
        }
        for (uint32_t i = 0; i < 16 * k; i++) {
            uint32_t id = (uint32_t)ids[(p / 16 * 16 + i % 16) * k + i / 16];
            for (uint32_t j = 0; j < each; j++) {
                uint32_t to = (p * 16 * k + i) * each + j;
                expect_copy(e, to, i < valid ? x : y, i < valid ? p * n + id + j : to);
            }
        }
    }
    grid_run("nc_n_gather, local_gather");
}

void grid_gathers(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < (grid_all ? 300 : 30); turn++) {
        gather_case(turn);
    }
}

// ---- DMA

static void sum_case(uint32_t turn)
{
    uint32_t parts, n, count = 1 + turn % 4;
    grid_shape(turn, &parts, &n);
    grid_begin(3);
    side *s[4];
    ir_arg list[4];
    for (uint32_t i = 0; i < count; i++) {
        s[i] = grid_source(type(turn + i), parts, n, (turn + i) % GRID_KINDS,
                           i ? GRID_CROSS1 : GRID_CROSS0);
        list[i] = V(s[i]->view);
    }
    side *d = grid_dest(type(turn / 2), parts, n, turn / 3 % GRID_KINDS);
    GRID_EMIT(dma_compute, ENG_DMA, V(d->view),
              ((ir_arg){IRA_LIST, 0, (int16_t)count, ir_list(grid_prog.p, list, count)}), OP(add),
              NONE, B(1), EN(0));
    for (uint32_t i = 0; i < parts * n; i++) {
        float sum = (float)s[0]->v[i];
        for (uint32_t k = 1; k < count; k++) {
            sum += (float)s[k]->v[i];
        }
        grid_exact(d, i, (double)sum);
        d->raw = count == 1 && s[0]->f->d == d->f->d;
        if (d->raw) {
            grid_exact(d, i, s[0]->v[i]);
        }
    }
    grid_run("dma_compute");
}

// Rows gathered and scattered by an index, those outside left out.
static void indexed_case(uint32_t turn)
{
    const ref_format *f = type(turn);
    uint32_t height = 24, parts = 5 + turn % 11, n = 1 + turn * 19 % 50;
    static double at[128];
    static unsigned char host[24 * 50 * 4];
    for (uint32_t p = 0; p < parts; p++) {
        at[p] = p == 3 ? 1000 : (p * 5 + turn) % height;
    }
    grid_begin(3);
    prog *g = &grid_prog;
    side *x = grid_source(f, height, n, GRID_PLAIN, GRID_CROSS0);
    side *ix = grid_given(grid_format(DT_uint32), parts, 1, at);
    side *y = grid_source(f, parts, n, GRID_PLAIN, GRID_CROSS1);
    side *d = grid_dest(f, parts, n, turn / 3 % GRID_KINDS);
    memcpy(host, x->host, (size_t)height * n * (size_t)f->bits / 8);
    uint32_t hbm = prog_param(g, f->d, height, n, host);
    ir_dyn by = {.kind = DYN_VECTOR, .src = ix->view, .step = n};
    uint32_t block = prog_ap(g, hbm, 0, 0, 2, (const int64_t[][2]){{n, parts}, {1, n}});
    ir_view v = ir_view_at(g->p, block);
    v.dyn = ir_dyn_add(g->p, by);
    GRID_EMIT(tensor_copy, ENG_VECTOR, V(d->view), V(y->view), EN(0), NONE);
    GRID_EMIT(dma_copy, ENG_DMA, V(d->view), V(ir_view_add(g->p, v)), NONE, EN(ISAE_oob_mode_skip),
              EN(0), EN(0));
    for (uint32_t p = 0; p < parts; p++) {
        for (uint32_t i = 0; i < n; i++) {
            expect_copy(d, p * n + i, p == 3 ? y : x, p == 3 ? p * n + i : (uint32_t)at[p] * n + i);
        }
    }
    grid_run("dma_copy by an index");
}

void grid_dma(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < (grid_all ? 450 : 45); turn++) {
        sum_case(turn);
        indexed_case(turn);
    }
}
