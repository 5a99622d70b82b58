// Cases of the Tensor engine, block-scaled formats and the random generators.

#include "tests/unit/grid.h"

static float flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

// One step with subnormals as zero; a result is tiny when it is before the exponent is bounded, so
// what IEEE rounds up to the smallest normal number may be flushed: decided in double, where the
// product of two floats is exact and such a sum too.
static float step(float a, float b, float c)
{
    float r = fmaf(flush(a), flush(b), c);
    if (fabsf(r) == 0x1p-126f) {
        double exact = (double)flush(a) * (double)flush(b) + (double)c;
        return fabs(exact) < 0x1p-126 - 0x1p-151 ? copysignf(0, r) : r;
    }
    return flush(r);
}

static void matmul_case(const ref_format *sf, const ref_format *mf, uint32_t turn)
{
    static const uint32_t shapes[][3] = {{128, 128, 512}, {1, 1, 1},     {33, 21, 70},
                                         {128, 5, 31},    {64, 128, 16}, {7, 13, 513}};
    const uint32_t *sh = shapes[turn % (grid_all ? 6 : 5) + (grid_all ? 0 : 1)];
    uint32_t k = sh[0], m = sh[1], n = sh[2];
    grid_begin(4);
    side *s = grid_source(sf, k, m, turn % GRID_BROADCAST, turn % 3 ? GRID_MODERATE : GRID_CROSS0);
    side *v = grid_source(mf, k, n, turn / 2 % GRID_KINDS, GRID_MODERATE);
    side *d = grid_dest_psum(grid_format(turn % 4 ? DT_float32 : DT_bfloat16), m, n);
    side *e = grid_dest_psum(grid_format(DT_float32), m, n);
    GRID_EMIT(nc_matmul, ENG_TENSOR, V(d->view), V(s->view), V(v->view), B(0), B(0), B(0), B(0),
              NONE, NONE, EN(0));
    GRID_EMIT(nc_matmul, ENG_TENSOR, V(e->view), V(s->view), V(v->view), B(0), B(0), B(0), B(0),
              NONE, NONE, EN(0));
    GRID_EMIT(nc_matmul, ENG_TENSOR, V(e->view), V(s->view), V(v->view), B(0), B(0), B(0), B(1),
              NONE, NONE, EN(0));
    for (uint32_t i = 0; i < m * n; i++) {
        float acc = 0;
        for (uint32_t q = 0; q < k; q++) {
            acc = step((float)s->v[q * m + i / n], (float)v->v[q * n + i % n], acc);
        }
        grid_exact(d, i, (double)acc);
        grid_exact(e, i, (double)flush(acc + acc));
    }
    grid_run("nc_matmul");
}

// Products and partial sums among the subnormals.
static void tiny_case(uint32_t turn)
{
    enum { K = 9, M = 17, N = 40 };
    static double a[K * M], b[K * N];
    uint32_t seed = 77 + turn;
    for (int i = 0; i < K * M; i++) {
        double r = (double)(int32_t)ref_next(&seed) * 0x1p-31;
        a[i] = (double)(float)(i % 23 == 5 ? r * 0x1p-128 : r * 0x1p-60);
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = (double)(float)((double)(int32_t)ref_next(&seed) * 0x1p-31 * 0x1p-64);
    }
    grid_begin(3);
    const ref_format *f = grid_format(DT_float32);
    side *s = grid_given(f, K, M, a), *v = grid_given(f, K, N, b), *d = grid_dest_psum(f, M, N);
    GRID_EMIT(nc_matmul, ENG_TENSOR, V(d->view), V(s->view), V(v->view), B(0), B(0), B(0), B(0),
              NONE, NONE, EN(0));
    for (int i = 0; i < M * N; i++) {
        float acc = 0;
        for (int q = 0; q < K; q++) {
            acc = step((float)a[q * M + i / N], (float)b[q * N + i % N], acc);
        }
        grid_exact(d, (size_t)i, (double)acc);
    }
    grid_run("nc_matmul near the subnormals");
}

static void double_row_case(uint32_t turn)
{
    const ref_format *f = grid_format(turn % 2 ? DT_float8_e4m3 : DT_float8_e5m2);
    enum { K = 50, M = 11, N = 45 };
    grid_begin(3);
    side *s = grid_source(f, K, 2 * M, GRID_PLAIN, GRID_MODERATE);
    side *v = grid_source(f, K, 2 * N, GRID_PLAIN, GRID_MODERATE);
    side *d = grid_dest_psum(grid_format(DT_float32), M, N);
    GRID_EMIT(nc_matmul, ENG_TENSOR, V(d->view), V(s->view), V(v->view), B(0), B(0), B(0), B(0),
              NONE, NONE, EN(ISAE_matmul_perf_mode_double_row));
    for (uint32_t i = 0; i < M * N; i++) {
        float acc = 0;
        for (uint32_t q = 0; q < 2 * K; q++) {
            uint32_t row = q / 2, plane = q % 2;
            acc = step((float)s->v[row * 2 * M + plane * M + i / N],
                       (float)v->v[row * 2 * N + plane * N + i % N], acc);
        }
        grid_exact(d, i, (double)acc);
    }
    grid_run("nc_matmul double_row");
}

void grid_matmul(void **state)
{
    (void)state;
    uint32_t turn = 0;
    for (int i = 0; i < 7; i++) {  // float32 to float8_e4m3fn
        for (int j = 0; j < 7; j++) {
            matmul_case(&ref_formats[i], &ref_formats[j], turn++);
        }
    }
    for (turn = 0; turn < (grid_all ? 40 : 4); turn++) {
        double_row_case(turn);
        tiny_case(turn);
    }
}

// ---- block-scaled formats

// The view of a tile of bytes [parts, 4 n] as packed words [parts, n].
static uint32_t as_words(uint32_t bytes, dtype packed, uint32_t parts, uint32_t n)
{
    prog *g = &grid_prog;
    uint32_t words = prog_ap(g, bytes, 0, 0, 2, (const int64_t[][2]){{1, parts}, {1, n}});
    ir_view v = ir_view_at(g->p, words);
    v.dtype = (uint8_t)packed;
    return ir_view_add(g->p, v);
}

static void quantize_case(uint32_t turn)
{
    bool e5 = turn % 2;
    const ref_format *f = grid_format(e5 ? DT_float8_e5m2 : DT_float8_e4m3fn);
    const ref_format *sf = grid_format(turn / 2 % 2 ? DT_bfloat16 : DT_float16);
    uint32_t parts = 32 * (1 + turn % 4), n = 1 + turn * 7 % 30, emax = e5 ? 15 : 8;
    grid_begin(4);
    side *x = grid_source(sf, parts, 4 * n, turn % GRID_BROADCAST,
                          turn % 3 ? GRID_MODERATE : GRID_CROSS0);
    side *d = grid_dest(f, parts, 4 * n, GRID_PLAIN),
         *sc = grid_dest(grid_format(DT_uint8), parts, n, GRID_PLAIN);
    GRID_EMIT(quantize_mx, ENG_VECTOR,
              V(as_words(d->view, e5 ? DT_float8_e5m2_x4 : DT_float8_e4m3fn_x4, parts, n)),
              V(x->view), V(sc->view));
    for (uint32_t p = 0; p < parts; p++) {
        for (uint32_t c = 0; c < n; c++) {
            grid_exact(sc, p * n + c, 0x2b);  // rows without a group keep what they have
        }
    }
    for (uint32_t p = 0; p < parts; p += 8) {
        for (uint32_t c = 0; c < n; c++) {
            double a = 0;
            bool finite = true;
            for (uint32_t i = 0; i < 32; i++) {
                double v = fabs(x->v[(p + i / 4) * 4 * n + 4 * c + i % 4]);
                finite = finite && isfinite(v);
                a = v > a ? v : a;
            }
            int byte = finite ? a > 0 ? ilogb(a) - (int)(emax - 1) + 127 : 0 : 255;
            byte = byte < 0 ? 0 : byte;
            grid_exact(sc, (p / 32 * 32 + p % 32 / 8) * n + c, byte);
            for (uint32_t i = 0; i < 32; i++) {
                size_t e = (p + i / 4) * 4 * n + 4 * c + i % 4;
                grid_exact(d, e, finite ? x->v[e] * ldexp(1, 127 - byte) : x->v[e]);
            }
        }
    }
    grid_run("quantize_mx");
}

static void matmul_mx_case(uint32_t turn)
{
    static const dtype packed[] = {DT_float8_e5m2_x4, DT_float8_e4m3fn_x4};
    static const dtype element[] = {DT_float8_e5m2, DT_float8_e4m3fn};
    uint32_t k = 32 * (1 + turn % 4), m = 2 + 2 * (turn % 9), n = 1 + turn * 11 % 60;
    static double ss[128 * 20], ms[128 * 70];
    for (uint32_t i = 0; i < k * m; i++) {
        ss[i] = turn % 5 == 4 && i % 97 == 3 ? 255 : 120 + (i * 7 + turn) % 14;
    }
    for (uint32_t i = 0; i < k * n; i++) {
        ms[i] = 120 + (i * 5 + turn) % 14;
    }
    grid_begin(4);
    const ref_format *u8 = grid_format(DT_uint8);
    side *s = grid_source(grid_format(element[turn % 2]), k, 4 * m, GRID_PLAIN, GRID_MODERATE);
    side *v = grid_source(grid_format(element[turn / 2 % 2]), k, 4 * n, GRID_PLAIN,
                          turn % 3 ? GRID_MODERATE : GRID_CROSS0);
    side *sb = grid_given(u8, k, m, ss), *mb = grid_given(u8, k, n, ms);
    side *d = grid_dest_psum(grid_format(turn % 4 ? DT_float32 : DT_bfloat16), m, n);
    ir_arg empty = prog_ints(&grid_prog, 0, NULL);
    GRID_EMIT(nc_matmul_mx, ENG_TENSOR, V(d->view), V(as_words(s->view, packed[turn % 2], k, m)),
              V(as_words(v->view, packed[turn / 2 % 2], k, n)), V(sb->view), V(mb->view), empty,
              empty, B(0));
    for (uint32_t i = 0; i < m * n; i++) {
        float acc = 0;
        for (uint32_t q = 0; q < 4 * k; q++) {
            uint32_t p = q / 4, row = p / 32 * 32 + p % 32 / 8;
            double a = ss[row * m + i / n], b = ms[row * n + i % n];
            float x = a == 255
                          ? NAN
                          : (float)(s->v[p * 4 * m + 4 * (i / n) + q % 4] * ldexp(1, (int)a - 127));
            float y = b == 255
                          ? NAN
                          : (float)(v->v[p * 4 * n + 4 * (i % n) + q % 4] * ldexp(1, (int)b - 127));
            acc = step(x, y, acc);
        }
        grid_exact(d, i, (double)acc);
    }
    grid_run("nc_matmul_mx");
}

void grid_mx(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < (grid_all ? 200 : 20); turn++) {
        quantize_case(turn);
        matmul_mx_case(turn);
    }
}

// ---- random generators: states are set, so that what follows is known

static uint32_t xorwow(uint32_t w[6])
{
    uint32_t t = w[0] ^ (w[0] >> 2);
    for (int i = 0; i < 4; i++) {
        w[i] = w[i + 1];
    }
    w[4] = (w[4] ^ (w[4] << 4)) ^ (t ^ (t << 1));
    w[5] += 362437;
    return w[4] + w[5];
}

static void generator_case(uint32_t turn)
{
    bool gpsimd = turn % 2;
    engine_id eng = gpsimd ? ENG_GPSIMD : ENG_VECTOR;
    ir_arg where = EN(gpsimd ? ISAE_engine_gpsimd : ISAE_engine_vector);
    static const dtype types[] = {DT_uint32, DT_int32, DT_uint16, DT_int16, DT_uint8, DT_int8};
    const ref_format *f = grid_format(types[turn % 6]), *u32 = grid_format(DT_uint32);
    uint32_t parts = 1 + turn * 41 % 128, n = 1 + turn * 23 % 61, words = gpsimd ? 6 : 24;
    static double init[128 * 24];
    uint32_t seed = 99 + turn;
    for (uint32_t i = 0; i < parts * words; i++) {
        init[i] = ref_next(&seed);
    }
    grid_begin(4);
    side *s = grid_given(u32, parts, words, init);
    side *d = grid_dest(f, parts, n, turn % GRID_KINDS);
    side *after = grid_dest(u32, parts, words, GRID_PLAIN);
    GRID_EMIT(rand_set_state, eng, V(s->view), where);
    GRID_EMIT(rng, eng, V(d->view), where);
    GRID_EMIT(rand_get_state, eng, V(after->view), where);
    side *u = NULL, *x = NULL, *y = NULL;
    if (!gpsimd) {
        u = grid_dest(grid_format(DT_float32), parts, n, GRID_PLAIN);
        x = grid_source(grid_format(DT_float32), parts, n, GRID_PLAIN, GRID_MODERATE);
        y = grid_dest(grid_format(DT_float32), parts, n, GRID_PLAIN);
        GRID_EMIT(rand2, ENG_VECTOR, V(u->view), F(-1.5f), F(2.5f));
        GRID_EMIT(dropout, ENG_VECTOR, V(y->view), V(x->view), F(0.3f));
    }
    d->raw = after->raw = true;
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t w[4][6];
        for (uint32_t i = 0; i < words; i++) {
            w[i / 6][i % 6] = (uint32_t)init[p * words + i];
        }
        uint32_t states = gpsimd ? 1 : 4;
        for (uint32_t i = 0; i < n; i++) {
            grid_exact(d, p * n + i, ref_value(f, xorwow(w[i % states])));
        }
        for (uint32_t i = 0; i < words; i++) {
            grid_exact(after, p * words + i, w[i / 6][i % 6]);
        }
        for (uint32_t i = 0; u && i < n; i++) {
            float r = (float)(xorwow(w[i % 4]) >> 8) * 0x1p-24f;
            grid_exact(u, p * n + i, (double)(-1.5f + (2.5f - -1.5f) * r));
        }
        for (uint32_t i = 0; u && i < n; i++) {
            float r = (float)(xorwow(w[i % 4]) >> 8) * 0x1p-24f;
            grid_exact(y, p * n + i, r < 0.3f ? 0.0 : x->v[p * n + i]);
        }
    }
    grid_run("rng, rand2, dropout and the states");
}

// Generation 2 and 3: consecutive numbers of a lane are the register's steps; a seed repeats them.
static void register_case(uint32_t gen)
{
    enum { P = 128, N = 50 };
    static uint32_t first[P * N], again[P * N], other[P * N];
    grid_begin((int)gen);
    prog *g = &grid_prog;
    const ref_format *u32 = grid_format(DT_uint32);
    double seeds[2] = {42, 43};
    side *a = grid_given(u32, 1, 1, &seeds[0]), *b = grid_given(u32, 1, 1, &seeds[1]);
    uint32_t *to[3] = {first, again, other};
    for (int i = 0; i < 3; i++) {
        uint32_t z = prog_sbuf(g, DT_uint32, P, N);
        GRID_EMIT(set_rng_seed, ENG_VECTOR, V(i == 2 ? b->view : a->view));
        GRID_EMIT(rng, ENG_VECTOR, V(z), EN(ISAE_engine_vector));
        prog_out(g, z, to[i]);
    }
    grid_run("set_rng_seed");
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    for (int i = 0; i < P * N; i++) {
        uint32_t v = i % N ? first[i - 1] : 0;
        assert_true(i % N == 0 || first[i] == ref_next(&v));
        assert_true(i < N || i % N || first[i] != first[i - N]);  // lanes differ
    }
}

void grid_random(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < (grid_all ? 200 : 20); turn++) {
        generator_case(turn);
    }
    register_case(2);
    register_case(3);
}
