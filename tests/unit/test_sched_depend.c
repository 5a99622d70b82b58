#include "tests/support/sched_fixture.h"

#include "sched/issue.h"
#include "sched/verify_memory.h"
#include "tests/unit/random_program.h"

// ---- views against bitmaps of the bytes they touch

enum { ROWS = 128, BYTES = 512 };

typedef struct byte_set {
    uint8_t has[ROWS][BYTES];
} byte_set;

static void fill_set(const ir *p, const ir_view *v, byte_set *out)
{
    const ir_tensor *t = &p->tensors.at[v->tensor];
    const ir_dim *d = ir_dims(p, v);
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    uint32_t n = ir_ndim(p, v), at[IR_MAX_DIMS] = {0}, size = dtype_size((dtype)v->dtype);
    memset(out, 0, sizeof *out);
    for (;;) {
        int64_t row = chip ? t->addr_part + v->part : 0, elem = v->offset;
        for (uint32_t k = 0; k < n; k++) {
            *(chip && k == 0 ? &row : &elem) += d[k].stride * at[k];
        }
        memset(&out->has[row][(chip ? t->addr_bytes : 0) + (uint64_t)elem * size], 1, size);
        uint32_t k = n;
        while (k && ++at[k - 1] == d[k - 1].count) {
            at[--k] = 0;
        }
        if (!k) {
            return;
        }
    }
}

// A view with 1 to 4 free dimensions of any stride, that stays within `width` elements.
static uint32_t random_view(ir *p, chooser *c, uint32_t tensor, uint32_t width)
{
    const ir_tensor *t = &p->tensors.at[tensor];
    static const uint8_t sizes[] = {DT_int8, DT_int16, DT_int32};
    uint8_t type = sizes[choose(c, 3)];
    width = width * 4 / dtype_size((dtype)type);
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    ir_dim d[5];
    memset(d, 0, sizeof d);
    uint32_t n = 1 + choose(c, 4), first = chip ? 1 : 0;
    int64_t low = 0, high = 0;
    for (uint32_t k = 0; k < n; k++) {
        int64_t stride = (int64_t)choose(c, 40) - (choose(c, 4) == 0 ? 20 : 0);
        uint32_t count = 1 + choose(c, 6);
        int64_t lo = low, hi = high;
        *(stride < 0 ? &lo : &hi) += stride * (int64_t)(count - 1);
        if (hi - lo >= width) {
            stride = 0;
        } else {
            low = lo;
            high = hi;
        }
        d[first + k] = (ir_dim){stride, count, 0};
    }
    ir_view v = {.tensor = tensor, .dtype = type};
    if (chip) {
        uint32_t step = 1 + choose(c, 3), rows = 1 + choose(c, 8);
        v.part = (uint8_t)choose(c, t->partitions - step * (rows - 1));
        d[0] = (ir_dim){step, rows, 0};
    }
    v.ap = ir_ap_of(p, d, n + first);
    v.offset = -low + choose(c, (uint32_t)(width - (high - low)));
    return ir_view_add(p, v);
}

static bool sets_meet(const byte_set *a, const byte_set *b)
{
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; k < BYTES; k++) {
            if (a->has[r][k] && b->has[r][k]) {
                return true;
            }
        }
    }
    return false;
}

static bool set_within(const byte_set *b, const byte_set *a)
{
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; k < BYTES; k++) {
            if (b->has[r][k] && !a->has[r][k]) {
                return false;
            }
        }
    }
    return true;
}

static footprint print_of(memory_map *m, ir *p, arena *a, uint32_t view)
{
    // An instruction that only writes the view.
    ir_arg arg[3] = {ira_view(view), ira_int(0), ira_none()};
    ir_emit(p, ISA_memset, ENG_VECTOR, arg, 0, 0);
    footprint_list l = {0};
    memory_footprints(m, p->instrs.n - 1, &l);
    assert_int_equal(l.n, 1);
    (void)a;
    return l.at[0];
}

static void compare_views(arena *a, buffer_kind b, uint64_t seed, uint32_t *unsure_n)
{
    chooser c = {NULL, NULL, seed};
    ir *p = ir_new(a, target_by_gen(3));
    for (uint32_t k = 0; k < 2; k++) {
        bool chip = buffer_on_chip(b);
        ir_tensor t = {.dtype = DT_int32, .buffer = (uint8_t)b, .ndim = 2};
        t.shape[0] = chip ? 32 : 1;
        t.shape[1] = 64;
        t.partitions = chip ? 32 : 0;
        t.size_bytes = 256;
        t.addr_part = chip ? 16 * choose(&c, 3) : 0;
        t.addr_bytes = chip ? 4 * choose(&c, 30) : 0;
        ir_tensor_add(p, t);
    }
    objects o;
    objects_make(a, p, &o);
    memory_map *m = memory_map_new(a, p);
    byte_set *sa = NEW(a, byte_set), *sb = NEW(a, byte_set);
    for (int round = 0; round < 40; round++) {
        uint32_t va = random_view(p, &c, 0, 64);
        uint32_t vb = random_view(p, &c, buffer_on_chip(b) ? 1 : 0, 64);
        fill_set(p, ir_view_ref(p, va), sa);
        fill_set(p, ir_view_ref(p, vb), sb);
        bool unsure = false, truth = sets_meet(sa, sb);
        reach ra = reach_of(p, &o, ir_view_ref(p, va)), rb = reach_of(p, &o, ir_view_ref(p, vb));
        bool met = reaches_meet(&ra, &rb, &unsure);
        assert_int_equal(met, reaches_meet(&rb, &ra, &unsure));
        // Never "apart" when they meet; "meet" when apart only where it says so.
        assert_true(met || !truth);
        assert_true(!met || truth || unsure);
        *unsure_n += unsure;
        if (!ra.inexact && !rb.inexact && reach_covers(&ra, &rb)) {
            assert_true(set_within(sb, sa));
        }
        footprint fa = print_of(m, p, a, va), fb = print_of(m, p, a, vb);
        assert_int_equal(footprints_meet(&fa, &fb), met);
        assert_int_equal(footprints_meet(&fb, &fa), met);
        if (!ra.inexact && !rb.inexact && footprint_contains(&fa, &fb)) {
            assert_true(set_within(sb, sa));
        }
    }
}

static void reach__agrees_with_bitmaps_on_chip(void **state)
{
    uint32_t unsure = 0;
    for (uint64_t seed = 1; seed < 60; seed++) {
        compare_views(*state, seed % 3 ? BUF_SBUF : BUF_PSUM, seed, &unsure);
    }
    assert_true(unsure > 0);  // patterns that overlap themselves occur, and are counted
}

static void reach__agrees_with_bitmaps_in_hbm(void **state)
{
    uint32_t unsure = 0;
    for (uint64_t seed = 100; seed < 160; seed++) {
        compare_views(*state, BUF_HBM, seed, &unsure);
    }
    assert_true(unsure > 0);
}

// ---- which dependences

typedef struct found {
    arena *mem;
    VEC(uint32_t) at;  // instruction, stream, rank, carried
} found;

static void note_item(void *ctx, uint32_t instr, stream_mask streams, const need_set *need,
                      bool carried)
{
    found *f = ctx;
    (void)streams;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (need->rank[s]) {
            vec_push(f->mem, &f->at, instr);
            vec_push(f->mem, &f->at, s);
            vec_push(f->mem, &f->at, need->rank[s] - 1);
            vec_push(f->mem, &f->at, carried);
        }
    }
}

static void note_sweep(void *ctx)
{
    (void)ctx;
}

static found *depend_of(arena *a, const char *text, uint32_t loop)
{
    program *pr = scheduled(a, text);
    stream_plan sp;
    stream_plan_make(a, pr, &sp);
    found *f = NEW(a, found);
    f->mem = a;
    depend_sink sink = {note_item, note_sweep, f};
    access_table acc;
    access_table_make(a, pr->ir, &acc);
    depend *d = depend_new(a, pr, &sp, &acc);
    depend_level(d, issue_program(a, pr->ir), loop, &sink);
    return f;
}

static bool depends(const found *f, uint32_t instr, uint32_t stream, uint32_t from, bool carried)
{
    for (uint32_t k = 0; k < f->at.n; k += 4) {
        const uint32_t *q = &f->at.at[k];
        if (q[0] == instr && q[1] == stream && q[2] == from && q[3] == carried) {
            return true;
        }
    }
    return false;
}

static void depend__read_waits_for_the_last_write_of_each_stream(void **state)
{
    const found *f = depend_of(*state,
                               IR_HEAD "%0 \"t\" float32[128, 64] sbuf\n"
                                       "%1 \"u\" float32[128, 64] sbuf\n"
                                       "Vector.memset dst=%0[:, 0:32] value=0.0\n"
                                       "GpSimd.memset dst=%0[:, 32:64] value=1.0\n"
                                       "Vector.memset dst=%0[:, 0:16] value=2.0\n"
                                       "Scalar.tensor_copy dst=%1 src=%0\n",
                               0);
    assert_true(depends(f, 3, ENG_VECTOR, 2, false));
    assert_true(depends(f, 3, ENG_GPSIMD, 1, false));
    assert_int_equal(f->at.n, 2 * 4);  // halves of one tile do not conflict
}

static void depend__interleaved_columns_are_apart(void **state)
{
    const found *f = depend_of(*state,
                               IR_HEAD "%0 \"t\" float32[128, 64] sbuf\n"
                                       "Vector.memset dst=%0[:, 0:64:2] value=0.0\n"
                                       "GpSimd.memset dst=%0[:, 1:64:2] value=1.0\n"
                                       "Scalar.tensor_copy dst=%0[:, 0:8] src=%0[:, 8:16]\n",
                               0);
    assert_true(depends(f, 2, ENG_VECTOR, 0, false));
    assert_true(depends(f, 2, ENG_GPSIMD, 1, false));
    assert_int_equal(f->at.n, 2 * 4);
}

static void depend__addresses_count_and_not_tensors(void **state)
{
    // %1 lies over the second half of %0; %2 has the same bytes in other partitions.
    const found *f = depend_of(*state,
                               IR_HEAD "%0 \"t\" float32[32, 64] sbuf address=(0, 0)\n"
                                       "%1 \"u\" float32[32, 32] sbuf address=(0, 128)\n"
                                       "%2 \"v\" float32[32, 32] sbuf address=(32, 128)\n"
                                       "Vector.memset dst=%0 value=0.0\n"
                                       "GpSimd.memset dst=%1 value=0.0\n"
                                       "Scalar.tensor_copy dst=%2 src=%1\n",
                               0);
    assert_true(depends(f, 1, ENG_VECTOR, 0, false));
    assert_true(depends(f, 2, ENG_GPSIMD, 1, false));
    assert_int_equal(f->at.n, 2 * 4);  // where %1 lies, the second write stands for the first
}

static void depend__transfers_of_one_ring_are_not_ordered_by_it(void **state)
{
    const found *f = depend_of(*state,
                               IR_HEAD "%0 \"x\" float32[128, 64] hbm param=0 \"x\"\n"
                                       "%1 \"t\" float32[128, 64] sbuf\n"
                                       "DMA.dma_copy dst=%1 src=%0\n"
                                       "DMA.dma_copy dst=%1[:, 0:8] src=%0[:, 8:16]\n",
                               0);
    assert_true(depends(f, 1, STREAM_RING0 + RING_LOAD, 0, false));
}

static void depend__parameters_do_not_alias_each_other(void **state)
{
    const found *f = depend_of(*state,
                               IR_HEAD "%0 \"x\" float32[128, 64] hbm param=0 \"x\"\n"
                                       "%1 \"y\" float32[128, 64] hbm param=1 \"y\"\n"
                                       "%2 \"t\" float32[128, 64] sbuf\n"
                                       "%3 \"u\" float32[128, 64] sbuf\n"
                                       "Vector.memset dst=%2 value=0.0\n"
                                       "DMA.dma_copy dst=%0 src=%2\n"
                                       "DMA.dma_copy dst=%3 src=%1\n"
                                       "DMA.dma_copy dst=%3 src=%0\n"
                                       "Vector.tensor_copy dst=%2 src=%2\n",
                               0);
    assert_true(depends(f, 3, STREAM_RING0 + RING_STORE, 1, false));
    assert_true(depends(f, 3, STREAM_RING0 + RING_LOAD, 2, false));
    assert_true(depends(f, 1, ENG_VECTOR, 0, false));
    assert_true(depends(f, 4, STREAM_RING0 + RING_STORE, 1, false));
    assert_int_equal(f->at.n, 4 * 4);
}

static void depend__a_loop_stands_for_what_is_in_it(void **state)
{
    static const char text[] = IR_HEAD "%0 \"x\" float32[128, 64] hbm param=0 \"x\"\n"
                                       "%1 \"t\" float32[128, 64] sbuf\n"
                                       "%2 \"u\" float32[128, 64] sbuf\n"
                                       "Vector.memset dst=%2 value=0.0\n"
                                       "Sync.loop_for counter=r0 lower=0 upper=4 step=1\n"
                                       "  DMA.dma_copy dst=%1 src=%0\n"
                                       "  GpSimd.tensor_tensor dst=%2 data1=%2 data2=%1 op=add\n"
                                       "Sync.loop_end\n"
                                       "DMA.dma_copy dst=%0 src=%2\n";
    const found *f = depend_of(*state, text, 0);
    assert_true(depends(f, 1, ENG_VECTOR, 0, false));  // where the loop is entered
    assert_true(depends(f, 5, ENG_GPSIMD, 4, false));  // for its end
    assert_true(depends(f, 5, STREAM_RING0 + RING_LOAD, 4, false));
    f = depend_of(*state, text, 1);
    assert_true(depends(f, 3, STREAM_RING0 + RING_LOAD, 2, false));
    assert_true(depends(f, 2, ENG_GPSIMD, 3, true));  // of the iteration before
    assert_false(depends(f, 2, ENG_GPSIMD, 3, false));
}

static void depend__stated_dependences_and_prints_are_ordered(void **state)
{
    const found *f = depend_of(*state,
                               IR_HEAD "%0 \"t\" float32[128, 64] sbuf\n"
                                       "%1 \"u\" float32[128, 64] sbuf\n"
                                       "@0 Vector.memset dst=%0 value=0.0\n"
                                       "GpSimd.memset dst=%1 value=0.0 after=[@0]\n"
                                       "Vector.device_print prefix=\"a\" tensor=%0\n"
                                       "GpSimd.device_print prefix=\"b\" tensor=%1\n",
                               0);
    assert_true(depends(f, 1, ENG_VECTOR, 0, false));
    assert_true(depends(f, 3, ENG_VECTOR, 2, false));
}

static void depend__dynamic_views_reach_the_whole_row_and_are_counted(void **state)
{
    static const char text[] =
        IR_HEAD "%0 \"t\" float32[128, 64] sbuf\n"
                "GpSimd.memset dst=%0 value=0.0\n"
                "Sync.register_move dst=r0 src=3\n"
                "Vector.memset dst=%0[0:32, 0:8].register(r0) value=0.0\n"
                "GpSimd.memset dst=%0[0:32, 40:48] value=0.0\n"
                "Scalar.tensor_copy dst=%0[64:96, 0:8] src=%0[64:96, 8:16]\n";
    const found *f = depend_of(*state, text, 0);
    assert_true(depends(f, 3, ENG_VECTOR, 2, false));
    assert_false(depends(f, 4, ENG_VECTOR, 2, false));  // other partitions are other memory
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IR_TEST(reach__agrees_with_bitmaps_on_chip),
        IR_TEST(reach__agrees_with_bitmaps_in_hbm),
        IR_TEST(depend__read_waits_for_the_last_write_of_each_stream),
        IR_TEST(depend__interleaved_columns_are_apart),
        IR_TEST(depend__addresses_count_and_not_tensors),
        IR_TEST(depend__transfers_of_one_ring_are_not_ordered_by_it),
        IR_TEST(depend__parameters_do_not_alias_each_other),
        IR_TEST(depend__a_loop_stands_for_what_is_in_it),
        IR_TEST(depend__stated_dependences_and_prints_are_ordered),
        IR_TEST(depend__dynamic_views_reach_the_whole_row_and_are_counted),
    };
    return cmocka_run_group_tests_name("sched.depend", tests, NULL, NULL);
}
