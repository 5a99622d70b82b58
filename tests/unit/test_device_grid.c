// Every instruction with numerics and every operator in every role over dtypes, shapes, access
// patterns and special values (grid.h). The last test fails for one that no case reached.
//
//   test_device_grid        dtypes, shapes and patterns in turn
//   test_device_grid all    each pair of dtypes

#include "tests/unit/grid.h"

#include "device/internal.h"

prog grid_prog;
bool grid_all;
uint32_t grid_turn;

enum { SIDES_MAX = 12 };

static side sides[SIDES_MAX];
static uint32_t nsides;
static uint32_t rng = 2024;
static device_core *cores[5];  // by generation, kept from case to case
static bool begun;
static bool seen[ISA_COUNT];
static unsigned seen_roles[OPR_COUNT];

const ref_format *grid_format(dtype d)
{
    for (int i = 0; i < REF_FORMATS; i++) {
        if (ref_formats[i].d == d) {
            return &ref_formats[i];
        }
    }
    return NULL;
}

void grid_shape(uint32_t turn, uint32_t *parts, uint32_t *n)
{
    static const uint32_t shapes[][2] = {{5, 60}, {1, 1}, {3, 7}, {128, 5}, {19, 16}, {2, 4100}};
    *parts = shapes[turn % 6][0];
    *n = shapes[turn % 6][1];
}

static void fini(void)
{
    if (begun) {
        device_program_release(grid_prog.dp);
        arena_fini(&grid_prog.mem);
    }
    begun = false;
}

void grid_begin(int gen)
{
    fini();
    prog *g = &grid_prog;
    memset(g, 0, sizeof *g);
    arena_init(&g->mem, 0, &g->oom);
    if (setjmp(g->oom)) {
        abort();
    }
    g->p = ir_new(&g->mem, target_by_gen(gen));
    g->pr.ir = g->p;
    diags_init(&g->ds, &g->mem);
    if (!cores[gen]) {
        cores[gen] = device_core_create(g->p->target);
    }
    g->core = cores[gen];
    begun = true;
    nsides = 0;
    grid_turn++;
}

static uint32_t position(const side *s, uint32_t i)
{
    switch (s->kind) {
    case GRID_STEP2: return 2 * i;
    case GRID_REVERSED: return s->n - 1 - i;
    case GRID_COLUMNS: return i / 2 + i % 2 * (s->n / 2);
    case GRID_BROADCAST: return i % (s->n / 3);
    default: return i;
    }
}

static side *new_side(const ref_format *f, uint32_t parts, uint32_t n, grid_kind kind)
{
    side *s = &sides[nsides++];
    assert_true(nsides <= SIDES_MAX);
    if ((kind == GRID_COLUMNS && n % 2) || (kind == GRID_BROADCAST && n % 3)) {
        kind = GRID_REVERSED;
    }
    *s = (side){.f = f, .parts = parts, .n = n, .kind = kind};
    s->width = kind == GRID_STEP2 ? 2 * n : kind == GRID_BROADCAST ? n / 3 : n;
    s->host = NEW_N(&grid_prog.mem, unsigned char, (size_t)parts * s->width * 4);
    return s;
}

static uint32_t view_of(const side *s, uint32_t whole)
{
    int64_t p = s->parts, n = s->n;
    switch (s->kind) {
    case GRID_STEP2:
        return prog_ap(&grid_prog, whole, 0, 0, 2, (const int64_t[][2]){{1, p}, {2, n}});
    case GRID_REVERSED:
        return prog_ap(&grid_prog, whole, n - 1, 0, 2, (const int64_t[][2]){{1, p}, {-1, n}});
    case GRID_COLUMNS:
        return prog_ap(&grid_prog, whole, 0, 0, 3,
                       (const int64_t[][2]){{1, p}, {1, n / 2}, {n / 2, 2}});
    case GRID_BROADCAST:
        return prog_ap(&grid_prog, whole, 0, 0, 3,
                       (const int64_t[][2]){{1, p}, {0, 3}, {1, n / 3}});
    default: return whole;
    }
}

// Patterns that are special in a format.
enum { SPECIALS = 18 };
static uint32_t special(const ref_format *f, uint32_t k)
{
    uint32_t top = f->bits == 32 ? UINT32_MAX : (1u << f->bits) - 1;
    if (!f->eb) {
        const uint32_t v[] = {0, 1, top, top >> 1, (top >> 1) + 1, 2, 3, top - 1, 5, 100};
        return f->d == DT_bool_ ? k % 2 : v[k % 10];
    }
    if (f->d == DT_float8_e8m0fnu) {
        const uint32_t v[] = {0, 1, 127, 128, 126, 254, 255, 130};
        return v[k % 8];
    }
    uint32_t sign = 1u << (f->eb + f->mb), inf = ((1u << f->eb) - 1) << f->mb;
    uint32_t one = ((1u << (f->eb - 1)) - 1) << f->mb, min = 1u << f->mb;
    const uint32_t v[SPECIALS] = {0,
                                  sign,
                                  1,
                                  sign | 1,
                                  min - 1,
                                  min | sign,
                                  one,
                                  sign | one,
                                  one + 1,
                                  inf - 1,
                                  inf,
                                  inf | sign,
                                  inf + 1,
                                  one | min,
                                  one - 1,
                                  sign | (inf - 1),
                                  one + min / 2 + (2u << f->mb),
                                  sign | (one + 3 * min / 4)};
    return v[k % SPECIALS];
}

static double value_at(const ref_format *f, grid_values values, uint32_t i)
{
    uint32_t r = ref_next(&rng);
    if (values == GRID_SMALL) {
        return r % 8;
    }
    if (values != GRID_MODERATE && i < SPECIALS * SPECIALS) {
        return ref_value(f, special(f, values == GRID_CROSS0 ? i % SPECIALS : i / SPECIALS));
    }
    if (values == GRID_MODERATE || r % 2) {
        double m = ldexp(1 + (r >> 8) * 0x1p-24, (int)(r >> 4 & 7) - 4) * (r & 2 ? -1 : 1);
        m = f->eb ? m : m * 7;
        return ref_stored(f, f->d == DT_float8_e8m0fnu ? fabs((double)(float)m) : (double)(float)m);
    }
    uint32_t u = ref_next(&rng);
    return ref_value(f, f->bits == 32 ? u : u & ((1u << f->bits) - 1));
}

static void put(side *s, uint32_t p, uint32_t i, uint32_t pattern)
{
    size_t size = (size_t)s->f->bits / 8;
    memcpy(s->host + ((size_t)p * s->width + position(s, i)) * size, &pattern, size);
}

static side *loaded(side *s)
{
    uint32_t whole = prog_load(&grid_prog, s->f->d, s->parts, s->width, s->host);
    s->view = view_of(s, whole);
    return s;
}

side *grid_given(const ref_format *f, uint32_t parts, uint32_t n, const double *v)
{
    side *s = new_side(f, parts, n, GRID_PLAIN);
    s->v = NEW_N(&grid_prog.mem, double, (size_t)parts *n);
    for (uint32_t i = 0; i < parts * n; i++) {
        s->v[i] = v[i];
        put(s, i / n, i % n, ref_pattern(f, v[i]));
    }
    return loaded(s);
}

side *grid_source(const ref_format *f, uint32_t parts, uint32_t n, grid_kind kind,
                  grid_values values)
{
    side *s = new_side(f, parts, n, kind);
    s->v = NEW_N(&grid_prog.mem, double, (size_t)parts *n);
    for (uint32_t p = 0; p < parts; p++) {
        for (uint32_t i = n; i-- > 0;) {
            put(s, p, i, ref_pattern(f, value_at(f, values, p * n + i)));
        }
        for (uint32_t i = 0; i < n; i++) {  // as read: broadcast elements are one
            size_t at = (size_t)p * s->width + position(s, i);
            s->v[p * n + i] = ref_value(f, ref_load(f, s->host + at * (size_t)f->bits / 8));
        }
    }
    return loaded(s);
}

static side *dest(const ref_format *f, uint32_t parts, uint32_t n, grid_kind kind, bool psum)
{
    side *s = new_side(f, parts, n, kind == GRID_BROADCAST ? GRID_PLAIN : kind);
    s->lo = NEW_N(&grid_prog.mem, double, (size_t)parts *n);
    s->hi = NEW_N(&grid_prog.mem, double, (size_t)parts *n);
    uint32_t whole = psum ? prog_psum(&grid_prog, f->d, parts, s->width)
                          : prog_sbuf(&grid_prog, f->d, parts, s->width);
    if (!psum) {  // a pattern that tells what was not written
        size_t size = (size_t)parts * s->width * (size_t)f->bits / 8;
        unsigned char *fill = NEW_N(&grid_prog.mem, unsigned char, size);
        memset(fill, 0x2b, size);
        prog_copy(&grid_prog, whole, prog_param(&grid_prog, f->d, parts, s->width, fill));
    }
    s->view = view_of(s, whole);
    prog_out(&grid_prog, whole, s->host);
    return s;
}

side *grid_dest(const ref_format *f, uint32_t parts, uint32_t n, grid_kind kind)
{
    return dest(f, parts, n, kind, false);
}

side *grid_dest_psum(const ref_format *f, uint32_t parts, uint32_t n)
{
    return dest(f, parts, n, GRID_PLAIN, true);
}

void grid_exact(side *d, size_t i, double v)
{
    d->lo[i] = v;
    d->hi[i] = v;
}

void grid_near(side *d, size_t i, long double e, double ulp)
{
    if (ulp == 0 || isnan(e) || isinf(e) || e == 0) {
        grid_exact(d, i, (double)(float)e);
        return;
    }
    long double off = (long double)ulp * ref_unit(e);
    d->lo[i] = (double)(float)(e - off);
    d->hi[i] = (double)(float)(e + off);
    // Rounding the ends to fp32 must not leave out a value that is inside.
    if ((long double)d->lo[i] > e - off) {
        d->lo[i] = (double)nextafterf((float)d->lo[i], -INFINITY);
    }
    if ((long double)d->hi[i] < e + off) {
        d->hi[i] = (double)nextafterf((float)d->hi[i], INFINITY);
    }
}

void grid_seen(isa_id in, op_id op, unsigned role)
{
    seen[in] = true;
    if (op < OPR_COUNT) {
        seen_roles[op] |= role;
    }
}

static void compare(const side *d, const char *what, const char *level)
{
    size_t size = (size_t)d->f->bits / 8;
    for (uint32_t p = 0; p < d->parts; p++) {
        for (uint32_t i = 0; i < d->n; i++) {
            size_t e = (size_t)p * d->n + i;
            uint32_t u = ref_load(d->f, d->host + ((size_t)p * d->width + position(d, i)) * size);
            double got = ref_value(d->f, u);
            double lo = d->raw ? d->lo[e] : ref_stored(d->f, d->lo[e]);
            double hi = d->raw ? d->hi[e] : ref_stored(d->f, d->hi[e]);
            bool ok = d->lo[e] == d->hi[e] || isnan(d->lo[e]) ? ref_same(got, lo)
                                                              : got >= lo && got <= hi;
            // The ends may fall off the range of a type without infinity.
            ok = ok || (isnan(hi) && (isnan(got) || got >= lo)) ||
                 (isnan(lo) && (isnan(got) || got <= hi)) ||
                 (d->f->d == DT_bool_ && d->lo[e] <= 0 && d->hi[e] >= 0 && d->lo[e] != d->hi[e]);
            if (!ok) {
                fail_msg("%s, %s, case %u: %s [%u, %u] element %u, %u is %a (0x%x), want %a to %a",
                         what, level, grid_turn, dtype_name(d->f->d), d->parts, d->n, p, i, got, u,
                         lo, hi);
            }
        }
    }
    for (uint32_t p = 0; p < d->parts && d->kind == GRID_STEP2; p++) {
        for (uint32_t i = 0; i < d->n; i++) {
            for (size_t b = 0; b < size; b++) {
                if (d->host[((size_t)p * d->width + 2 * i + 1) * size + b] != 0x2b) {
                    fail_msg("%s: wrote between the elements of dst", what);
                }
            }
        }
    }
}

// The same bits when rows and columns are spread over threads, however many.
static void run_shared(const char *what)
{
    static const uint32_t threads[] = {2, 3, 8, 16};
    static device_pool *pools[4];
    prog *g = &grid_prog;
    uint32_t turn = grid_turn % 4;
    const char *err = NULL;
    device_program *dp = NULL;
    unsigned char *alone[SIDES_MAX];
    pool_force(true);
    if (!pools[turn]) {
        pools[turn] = device_pool_create(threads[turn]);
    }
    for (uint32_t i = 0; i < nsides; i++) {
        size_t size = (size_t)sides[i].parts * sides[i].width * 4;
        alone[i] = NEW_N(&g->mem, unsigned char, size);
        memcpy(alone[i], sides[i].host, size);
    }
    assert_int_equal(device_bind(&g->pr, &dp, &err), NKI_OK);
    device_run_opts opts = {.pool = pools[turn]};
    assert_int_equal(device_run(g->core, dp, g->params, g->outs, &opts, &g->ds), NKI_OK);
    for (uint32_t i = 0; i < nsides; i++) {
        if (memcmp(alone[i], sides[i].host, (size_t)sides[i].parts * sides[i].width * 4) != 0) {
            fail_msg("%s, case %u: other bits with %u threads", what, grid_turn, threads[turn]);
        }
    }
    device_program_release(dp);
    pool_force(false);
}

void grid_run(const char *what)
{
    static const char *const levels[] = {"portable", "avx2", "avx512"};
    prog *g = &grid_prog;
    const char *err = NULL;
    if (device_bind(&g->pr, &g->dp, &err) != NKI_OK) {
        fail_msg("%s, case %u: %s", what, grid_turn, err);
    }
    for (int l = 0; l < 3; l++) {
        if (!kern_force(levels[l])) {
            continue;
        }
        assert_int_equal(device_run(g->core, g->dp, g->params, g->outs, NULL, &g->ds), NKI_OK);
        for (uint32_t i = 0; i < nsides; i++) {
            if (sides[i].lo) {
                compare(&sides[i], what, levels[l]);
            }
        }
    }
    kern_force(NULL);
    run_shared(what);
}

// Without numerics of their own: control, registers, what two cores do with each other
// (tests/ops/table/control.py, cores.py), and collectives, which expand into DMA.
static bool has_no_numerics(isa_id i)
{
    switch (i) {
    case ISA_core_barrier:
    case ISA_sendrecv:
    case ISA_register_alloc:
    case ISA_register_move:
    case ISA_register_load:
    case ISA_register_store: return true;
    default: return isa_table[i].group != ISAG_NISA;
    }
}

static void everything_has_a_case(void **state)
{
    (void)state;
    int missing = 0;
    for (int i = 0; i < ISA_COUNT; i++) {
        if (!seen[i] && !has_no_numerics((isa_id)i)) {
            print_error("instruction %s has no case\n", isa_table[i].name);
            missing++;
        }
    }
    for (int op = 0; op < OPR_COUNT; op++) {
        unsigned left = op_table[op].roles & (OP_ALU | OP_RED | OP_ACT) & ~seen_roles[op];
        if (left) {
            print_error("operator %s has no case as %s%s%s\n", op_table[op].name,
                        left & OP_ALU ? "op " : "", left & OP_RED ? "reduce_op " : "",
                        left & OP_ACT ? "activation" : "");
            missing++;
        }
    }
    assert_int_equal(missing, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid_elementwise),
        cmocka_unit_test(grid_functions),
        cmocka_unit_test(grid_bits),
        cmocka_unit_test(grid_selects),
        cmocka_unit_test(grid_folds),
        cmocka_unit_test(grid_scans),
        cmocka_unit_test(grid_statistics),
        cmocka_unit_test(grid_searches),
        cmocka_unit_test(grid_moves),
        cmocka_unit_test(grid_gathers),
        cmocka_unit_test(grid_dma),
        cmocka_unit_test(grid_matmul),
        cmocka_unit_test(grid_mx),
        cmocka_unit_test(grid_random),
        cmocka_unit_test(everything_has_a_case),
    };
    grid_all = argc > 1 && strcmp(argv[1], "all") == 0;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fini();
    for (int i = 0; i < 5; i++) {
        if (cores[i]) {
            device_core_release(cores[i]);
        }
    }
    return failed;
}
