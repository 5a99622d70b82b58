#include "tests/support/sched_fixture.h"

#include <stdio.h>

static program *place(arena *a, const char *text)
{
    diags ds;
    diags_init(&ds, a);
    program *pr = schedule(a, ir_from(a, text), NULL, &ds);
    if (!pr) {
        print_error("%s\n", ds.first ? ds.first->text : "no diagnostic");
    }
    assert_non_null(pr);
    const char *why = ir_verify(pr->ir, a);
    assert_string_equal(why ? why : "sound", "sound");
    return pr;
}

static const diag *refused(arena *a, const char *text)
{
    diags *ds = NEW(a, diags);
    diags_init(ds, a);
    assert_null(schedule(a, ir_from(a, text), NULL, ds));
    assert_non_null(ds->first);
    return ds->first;
}

static uint64_t at(const program *pr, uint32_t tensor)
{
    return pr->ir->tensors.at[tensor].addr_bytes;
}

static void place__memory_is_reused_after_the_last_use(void **state)
{
    const program *pr =
        place(*state, IR_HEAD "%0 \"x\" float32[128, 25000] shared_hbm param=0 \"x\"\n"
                              "%1 \"a\" float32[128, 25000] sbuf\n"
                              "%2 \"b\" float32[128, 25000] sbuf\n"
                              "%3 \"c\" float32[128, 25000] sbuf\n"
                              "DMA.dma_copy dst=%1 src=%0\n"
                              "Vector.tensor_copy dst=%2 src=%1\n"
                              "Vector.tensor_copy dst=%3 src=%2\n"
                              "DMA.dma_copy dst=%0 src=%3\n");
    assert_int_equal(at(pr, 1), 0);
    assert_int_equal(at(pr, 2), 100032);  // read and written by one instruction: both in use
    assert_int_equal(at(pr, 3), 0);       // nothing else is left: the turns end early
    assert_int_equal(pr->sbuf_peak_bytes, 200032);
    assert_int_equal(pr->ir->instrs.n, 4);
}

static void place__small_tensors_align_to_their_dtype(void **state)
{
    const program *pr = place(*state, IR_HEAD "%0 \"a\" uint8[128, 3] sbuf\n"
                                              "%1 \"b\" float32[128, 1] sbuf\n"
                                              "%2 \"c\" float32[128, 16] sbuf\n"
                                              "Vector.memset dst=%0 value=0.0\n"
                                              "Vector.memset dst=%1 value=0.0\n"
                                              "Vector.memset dst=%2 value=0.0\n"
                                              "Vector.tensor_copy dst=%0 src=%1[:, :]\n"
                                              "Vector.tensor_copy dst=%2[:, 0:1] src=%1\n");
    assert_int_equal(at(pr, 0), 0);
    assert_int_equal(at(pr, 1), 4);
    assert_int_equal(at(pr, 2), 64);
}

static void place__psum_tiles_keep_to_banks(void **state)
{
    const program *pr =
        place(*state, IR_HEAD "%0 \"a\" float32[128, 300] psum\n"
                              "%1 \"b\" float32[128, 300] psum\n"
                              "%2 \"c\" float32[128, 100] psum\n"
                              "%3 \"d\" float32[128, 1024] psum\n"
                              "Vector.memset dst=%0 value=0.0\n"
                              "Vector.memset dst=%1 value=0.0\n"
                              "Vector.memset dst=%2 value=0.0\n"
                              "Vector.memset dst=%3 value=0.0\n"
                              "Vector.tensor_tensor dst=%0 data1=%0 data2=%1 op=add\n"
                              "Vector.tensor_copy dst=%3[:, 0:100] src=%2\n");
    assert_int_equal(at(pr, 0), 0);
    assert_int_equal(at(pr, 1), 2048);
    assert_int_equal(at(pr, 2), 1216);  // fits behind a: 1200 rounded up to 64
    assert_int_equal(at(pr, 3), 4096);
}

static void place__a_value_carried_by_a_loop_lives_through_it(void **state)
{
    // acc is read before it is written in the body: nothing of the loop may share its memory, nor
    // may what comes later in the loop.
    const program *pr =
        place(*state, IR_HEAD "%0 \"acc\" float32[128, 16] sbuf\n"
                              "%1 \"t\" float32[128, 30000] sbuf\n"
                              "%2 \"u\" float32[128, 30000] sbuf\n"
                              "Vector.memset dst=%0 value=0.0\n"
                              "Sync.loop_for counter=r0 lower=0 upper=4 step=1\n"
                              "Vector.tensor_scalar dst=%0 data=%0 op0=add operand0=1.0\n"
                              "Vector.memset dst=%1 value=0.0\n"
                              "Vector.tensor_copy dst=%1 src=%1\n"
                              "Vector.memset dst=%2 value=0.0\n"
                              "Vector.tensor_copy dst=%2 src=%2\n"
                              "Sync.loop_end\n");
    assert_int_equal(at(pr, 0), 0);
    assert_int_equal(at(pr, 1), 64);
    assert_int_equal(at(pr, 2), 64);  // t and u are written anew in each iteration
    assert_int_equal(pr->ir->instrs.n, 8);
    // The loop's own instructions: in the stream of every engine that takes part.
    assert_int_equal(pr->stream_first[ENG_VECTOR + 1] - pr->stream_first[ENG_VECTOR], 8);
    assert_int_equal(pr->stream_first[STREAM_COUNT], 8);
}

static void place__an_unproven_tensor_is_filled_before_the_outermost_loop(void **state)
{
    const program *pr =
        place(*state, IR_HEAD "%0 \"a\" float32[128, 16] sbuf\n"
                              "%1 \"b\" float32[128, 16] sbuf\n"
                              "Sync.loop_for counter=r0 lower=0 upper=4 step=1\n"
                              "Sync.loop_for counter=r1 lower=0 upper=4 step=1\n"
                              "Vector.memset dst=%0[:, 0:1].register(r1) value=0.0\n"
                              "Scalar.activation dst=%1 op=exp data=%0\n"
                              "Sync.loop_end\n"
                              "Sync.loop_end\n");
    const ir *p = pr->ir;
    assert_int_equal(p->instrs.n, 7);
    assert_int_equal(p->instrs.at[0].op, ISA_fill_uninit);
    assert_int_equal(p->instrs.at[0].engine, ENG_VECTOR);
    assert_int_equal(p->views.at[p->args.at[p->instrs.at[0].args].v].tensor, 0);
    assert_int_equal(p->tensors.at[0].fill, 1);
    assert_int_equal(p->tensors.at[1].fill, 0);
    assert_true(at(pr, 0) != at(pr, 1));
}

static uint32_t fills(arena *a, const char *text)
{
    const program *pr =
        place(a, arena_printf(a,
                              IR_HEAD "%%0 \"x\" float32[128, 64] shared_hbm param=0 "
                                      "\"x\"\n"
                                      "%%1 \"t\" float32[128, 64] sbuf\n"
                                      "%%2 \"q\" float32[128, 64] psum\n"
                                      "%%3 \"i\" uint32[128, 1] sbuf\n"
                                      "%%4 \"b\" bfloat16[128, 128] sbuf\n"
                                      "%%5 \"m\" float32[128, 4, 16] sbuf\n"
                                      "%s",
                              text));
    uint32_t n = 0;
    for (uint32_t i = 0; i < pr->ir->instrs.n; i++) {
        n += pr->ir->instrs.at[i].op == ISA_fill_uninit;
    }
    return n;
}

static void fill__what_counts_as_proof(void **state)
{
#define READ "Vector.tensor_copy dst=%1 src=%1\n"
    static const struct {
        const char *text;
        uint32_t fills;
    } cases[] = {
        {"Vector.memset dst=%1 value=0.0\n" READ, 0},
        {READ, 1},
        {"Vector.memset dst=%1[:, 0:32] value=0.0\n" READ, 1},
        // Halves, in either order, columns or rows, interleaved.
        {"Vector.memset dst=%1[:, 32:64] value=0.0\nVector.memset dst=%1[:, 0:32] value=0.0\n" READ,
         0},
        {"Vector.memset dst=%1[0:64, :] value=0.0\nVector.memset dst=%1[64:128, :] "
         "value=0.0\n" READ,
         0},
        {"Vector.memset dst=%1[:, 0:63:2] value=0.0\nVector.memset dst=%1[:, 1:64:2] "
         "value=0.0\n" READ,
         0},
        {"Vector.memset dst=%1[0:64, 0:32] value=0.0\nVector.memset dst=%1[64:128, 0:32] "
         "value=0.0\n"
         "Vector.memset dst=%1[0:64, 32:64] value=0.0\nVector.memset dst=%1[64:128, 32:64] "
         "value=0.0\n" READ,
         0},
        // One corner is missing.
        {"Vector.memset dst=%1[0:64, 0:32] value=0.0\nVector.memset dst=%1[64:128, 0:32] "
         "value=0.0\n"
         "Vector.memset dst=%1[0:64, 32:64] value=0.0\nVector.memset dst=%1[64:128, 32:63] "
         "value=0.0\n" READ,
         1},
        // What is read was written, though not the whole tensor.
        {"Vector.memset dst=%1[:, 0:32] value=0.0\nVector.tensor_copy dst=%1[:, 32:64] src=%1[:, "
         "0:32]\n" READ,
         0},
        {"Vector.memset dst=%1[:, 0:32] value=0.0\nVector.tensor_copy dst=%1[:, 32:64] src=%1[:, "
         "1:33]\n",
         1},
        // A 3-D tile by its middle and last dimension.
        {"Vector.memset dst=%5[:, 0:2, :] value=0.0\nVector.memset dst=%5[:, 2:4, :] value=0.0\n"
         "Vector.tensor_copy dst=%5 src=%5\n",
         0},
        {"Vector.memset dst=%5[:, :, 0:8] value=0.0\nVector.memset dst=%5[:, :, 8:16] value=0.0\n"
         "Vector.tensor_copy dst=%5 src=%5\n",
         0},
        // As another dtype, reversed, and transposed: still every byte.
        {"Vector.memset dst=%1.ap([[1, 128], [1, 128]], dtype=bfloat16) value=0.0\n" READ, 0},
        {"Vector.memset dst=%1.ap([[1, 128], [-1, 64]], offset=63) value=0.0\n" READ, 0},
        {"Vector.memset dst=%5.ap([[1, 128], [1, 16], [16, 4]]) value=0.0\n"
         "Vector.tensor_copy dst=%5 src=%5\n",
         0},
        // A broadcast write reaches one element only.
        {"Vector.memset dst=%1.ap([[1, 128], [0, 64]]) value=0.0\n" READ, 1},
        // A predicated copy, an accumulating matmul, a skipping DMA keep old bytes.
        {"Vector.memset dst=%3 value=0.0\n"
         "Vector.tensor_copy_predicated dst=%1 src=0.0 predicate=%1.ap([[1, 128], [0, 64]])\n",
         1},
        {"Vector.memset dst=%4 value=0.0\nTensor.nc_matmul dst=%2 stationary=%4 moving=%4[:, 0:64] "
         "accumulate=True\n",
         1},
        {"Vector.memset dst=%4 value=0.0\nTensor.nc_matmul dst=%2 stationary=%4 moving=%4[:, 0:64] "
         "accumulate=False\nVector.tensor_copy dst=%1 src=%2\n",
         0},
        {"Vector.memset dst=%3 value=0.0\nDMA.dma_copy dst=%1 src=%0.vector(%3, step=64) "
         "oob_mode=skip\n" READ,
         1},
        {"Vector.memset dst=%3 value=0.0\nDMA.dma_copy dst=%1 src=%0.vector(%3, step=64)\n" READ,
         0},
        // The index of a gather is read.
        {"DMA.dma_copy dst=%1 src=%0.vector(%3, step=64)\n", 1},
        // A loop may run no iteration: what it writes is no proof outside.
        {"Sync.loop_for counter=r0 lower=0 upper=1 step=1\nVector.memset dst=%1 "
         "value=0.0\nSync.loop_end\n" READ,
         1},
        {"Sync.loop_for counter=r0 lower=0 upper=1 step=1\nVector.memset dst=%1 value=0.0\n" READ
         "Sync.loop_end\n",
         0},
        {"Sync.loop_for counter=r0 lower=0 upper=1 step=1\n" READ "Vector.memset dst=%1 value=0.0\n"
         "Sync.loop_end\n",
         1},
        // Written, never read.
        {"Vector.memset dst=%1[:, 0:1] value=0.0\n", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t n = fills(*state, cases[i].text);
        if (n != cases[i].fills) {
            fail_msg("%u fills, not %u:\n%s", n, cases[i].fills, cases[i].text);
        }
    }
#undef READ
}

static void fill__an_output_that_is_not_wholly_written(void **state)
{
    static const char head[] = IR_HEAD "%0 \"o\" float32[256, 64] shared_hbm out\n"
                                       "%1 \"n\" float32[4] shared_hbm out\n"
                                       "%2 \"t\" float32[128, 64] sbuf\n"
                                       "Vector.memset dst=%2 value=1.0\n"
                                       "DMA.dma_copy dst=%0[0:128, :] src=%2\n"
                                       "DMA.dma_copy dst=%1 src=%2[0:1, 0:4]\n";
    arena *a = *state;
    const program *pr = place(a, arena_printf(a, "%sreturn %%0\nreturn %%1\n", head));
    assert_int_equal(pr->ir->tensors.at[0].fill, 1);
    assert_int_equal(pr->ir->tensors.at[1].fill, 0);
    pr =
        place(a, arena_printf(a, "%sDMA.dma_copy dst=%%0[128:256, :] src=%%2\nreturn %%0\n", head));
    assert_int_equal(pr->ir->tensors.at[0].fill, 0);
    assert_int_equal(at(pr, 0), 0);
    assert_int_equal(at(pr, 1), 65536);
    assert_int_equal(pr->hbm_bytes, 65536 + 64);
}

static void fill__leaves_memory_that_two_programs_share_to_the_launch(void **state)
{
    const program *pr = place(*state, "kernel \"k\" target=trn2 grid=2 core=1 registers=0\n"
                                      "%0 \"o\" float32[256, 64] shared_hbm out\n"
                                      "%1 \"t\" float32[128, 64] sbuf\n"
                                      "Vector.memset dst=%1 value=1.0\n"
                                      "DMA.dma_copy dst=%0[0:128, :] src=%1\n"
                                      "return %0\n");
    assert_int_equal(pr->ir->tensors.at[0].fill, 1);
    assert_int_equal(pr->ir->instrs.n, 2);
}

static void place__hbm_holds_constants_outputs_and_temporaries_in_turns(void **state)
{
    const program *pr =
        place(*state, IR_HEAD "%0 \"a\" float32[100] hbm\n"
                              "%1 \"o\" float32[1] shared_hbm out\n"
                              "%2 \"c\" uint8[3] hbm const=0\n"
                              "%3 \"b\" float32[100] hbm\n"
                              "%4 \"t\" float32[1, 100] sbuf\n"
                              "data 010203\n"
                              "Vector.memset dst=%4 value=1.0\n"
                              "DMA.dma_copy dst=%0 src=%4\n"
                              "DMA.dma_copy dst=%4 src=%0\n"
                              "DMA.dma_copy dst=%3 src=%4\n"
                              "DMA.dma_copy dst=%1 src=%3[0:1]\n"
                              "DMA.dma_copy dst=%4.ap([[1, 1], [1, 3]], dtype=uint8) src=%2\n"
                              "return %1\n");
    assert_int_equal(at(pr, 2), 0);
    assert_int_equal(at(pr, 1), 64);
    assert_int_equal(at(pr, 0), 128);
    assert_int_equal(at(pr, 3), 128 + 448);  // a's memory waits for its turn
    assert_int_equal(pr->hbm_bytes, 128 + 2 * 448);
}

static void fill__moves_user_dependences(void **state)
{
    const program *pr = place(*state, IR_HEAD "%0 \"a\" float32[128, 16] sbuf\n"
                                              "%1 \"b\" float32[128, 16] sbuf\n"
                                              "Vector.memset dst=%0 value=0.0\n"
                                              "@1 Vector.tensor_copy dst=%0 src=%1\n"
                                              "Vector.tensor_copy dst=%0 src=%1 after=[@1]\n");
    const ir *p = pr->ir;
    assert_int_equal(p->instrs.at[1].op, ISA_fill_uninit);
    assert_int_equal(p->deps.at[p->instrs.at[3].deps], 2);
}

static void manual__placed_tensors_avoid_addresses_in_use(void **state)
{
    const program *pr = place(*state, IR_HEAD "%0 \"m\" float32[64, 256] sbuf address=(64, 1024)\n"
                                              "%1 \"a\" float32[32, 256] sbuf\n"
                                              "%2 \"b\" float32[32, 256] sbuf\n"
                                              "%3 \"c\" float32[32, 57000] sbuf\n"
                                              "Vector.memset dst=%1 value=0.0\n"
                                              "Vector.memset dst=%2 value=0.0\n"
                                              "Vector.memset dst=%0 value=0.0\n"
                                              "Vector.tensor_copy dst=%1 src=%0[0:32, :]\n"
                                              "Vector.tensor_copy dst=%1 src=%2\n"
                                              "Vector.memset dst=%3 value=0.0\n");
    assert_int_equal(at(pr, 0), 1024);
    assert_int_equal(at(pr, 1), 0);
    assert_int_equal(at(pr, 2), 2048);  // m begins to live while b does
    assert_int_equal(at(pr, 3), 0);     // m is dead
}

static void manual__an_alias_keeps_what_another_wrote(void **state)
{
    // v reads what m left; nothing may be placed there in between, and v is not filled.
    const program *pr = place(*state, IR_HEAD "%0 \"m\" float32[128, 256] sbuf address=(0, 0)\n"
                                              "%1 \"v\" uint32[128, 256] sbuf address=(0, 0)\n"
                                              "%2 \"a\" float32[128, 16] sbuf\n"
                                              "%3 \"w\" float32[128, 16] sbuf address=(0, 4096)\n"
                                              "Vector.memset dst=%0 value=0.0\n"
                                              "Vector.memset dst=%2 value=0.0\n"
                                              "Vector.tensor_copy dst=%2 src=%2\n"
                                              "Vector.tensor_copy dst=%2 src=%1[:, 0:16]\n"
                                              "Vector.tensor_copy dst=%2 src=%3\n");
    assert_int_equal(at(pr, 2), 1024);
    assert_int_equal(pr->ir->tensors.at[1].fill, 0);
    assert_int_equal(pr->ir->tensors.at[3].fill, 1);  // nobody wrote there before
}

static void manual__an_alias_of_a_part_is_filled_at_the_start(void **state)
{
    // v reads behind what m wrote. The fill must not destroy m, so it stands before m's write; that
    // of w, whose memory nobody has before, stands before w's use.
    const program *pr = place(*state, IR_HEAD "%0 \"m\" float32[128, 64] sbuf address=(0, 0)\n"
                                              "%1 \"v\" float32[128, 128] sbuf address=(0, 0)\n"
                                              "%2 \"a\" float32[128, 128] sbuf\n"
                                              "%3 \"w\" float32[128, 16] sbuf address=(0, 4096)\n"
                                              "Vector.memset dst=%0 value=0.0\n"
                                              "Vector.tensor_copy dst=%2 src=%1\n"
                                              "Vector.tensor_copy dst=%2[:, 0:16] src=%3\n");
    const ir *p = pr->ir;
    assert_int_equal(p->tensors.at[0].fill, 0);
    assert_int_equal(p->tensors.at[1].fill, 1);
    assert_int_equal(p->instrs.n, 5);
    assert_int_equal(p->instrs.at[0].op, ISA_fill_uninit);
    assert_int_equal(p->views.at[p->args.at[p->instrs.at[0].args].v].tensor, 1);
    assert_int_equal(p->instrs.at[1].op, ISA_memset);
    assert_int_equal(p->instrs.at[3].op, ISA_fill_uninit);
}

static void manual__a_cover_that_is_not_written_wholly_is_no_proof(void **state)
{
    // m holds all of v, but writes a part, and in a loop that may not run.
    const program *pr = place(*state, IR_HEAD "%0 \"m\" float32[128, 64] sbuf address=(0, 0)\n"
                                              "%1 \"v\" float32[128, 32] sbuf address=(0, 64)\n"
                                              "%2 \"a\" float32[128, 32] sbuf\n"
                                              "%3 \"n\" float32[64, 64] sbuf address=(0, 1024)\n"
                                              "%4 \"u\" float32[32, 16] sbuf address=(32, 1024)\n"
                                              "Vector.memset dst=%0[:, 0:16] value=0.0\n"
                                              "Vector.tensor_copy dst=%2 src=%1\n"
                                              "Sync.loop_for counter=r0 lower=0 upper=0 step=1\n"
                                              "Vector.memset dst=%3 value=0.0\n"
                                              "Sync.loop_end\n"
                                              "Vector.tensor_copy dst=%2[0:32, 0:16] src=%4\n");
    const ir *p = pr->ir;
    assert_int_equal(p->tensors.at[1].fill, 1);
    assert_int_equal(p->tensors.at[4].fill, 1);
    assert_int_equal(p->instrs.at[0].op, ISA_fill_uninit);
    assert_int_equal(p->instrs.at[1].op, ISA_fill_uninit);
    assert_int_equal(p->instrs.at[2].op, ISA_memset);
}

// a, b and c take a third of SBUF each and d comes in between: a, whose next use is farthest, is
// stored once, since it is only read after that, and loaded for each of its uses.
static void spill__takes_the_farthest_and_stores_it_once(void **state)
{
    ir *p = ir_from(*state, IR_HEAD "%0 \"a\" float32[128, 19000] sbuf\n"
                                    "%1 \"b\" float32[128, 19000] sbuf\n"
                                    "%2 \"c\" float32[128, 19000] sbuf\n"
                                    "%3 \"d\" float32[128, 19000] sbuf\n"
                                    "%4 \"o\" float32[128, 19000] shared_hbm out\n"
                                    "Vector.memset dst=%0 value=1.0\n"
                                    "Vector.memset dst=%1 value=2.0\n"
                                    "Vector.memset dst=%2 value=3.0\n"
                                    "Vector.memset dst=%3 value=4.0\n"
                                    "DMA.dma_copy dst=%4 src=%1\n"
                                    "DMA.dma_copy dst=%4 src=%2\n"
                                    "DMA.dma_copy dst=%4 src=%3\n"
                                    "@7 DMA.dma_copy dst=%4 src=%0\n"
                                    "DMA.dma_copy dst=%4 src=%1[:, 0:19000] after=[@7]\n"
                                    "return %4\n");
    diags ds;
    diags_init(&ds, *state);
    program *pr = schedule(*state, p, &(sched_opts){.spill = true}, &ds);
    assert_non_null(pr);
    assert_int_equal(ds.errors, 0);
    assert_null(ir_verify(p, *state));
    assert_int_equal(pr->spills.stores, 1);
    assert_int_equal(pr->spills.loads, 1);
    assert_int_equal(pr->spills.bytes, 2 * 128 * 19000 * 4);
    assert_int_equal(p->instrs.n, 11);
    assert_int_equal(p->instrs.at[3].op, ISA_dma_copy);  // before d is made
    assert_int_equal(p->instrs.at[4].op, ISA_memset);
    assert_int_equal(p->deps.at[p->instrs.at[10].deps], 9);
    assert_int_equal(p->tensors.n, 7);
    assert_int_equal(p->tensors.at[5].buffer, BUF_HBM);
    assert_int_equal(p->tensors.at[6].buffer, BUF_SBUF);
}

// a, b and c take 4/10 of SBUF each and all are used in the loop, which is opened: what is there
// before an iteration and after it is in HBM between them.
static void spill__opens_a_loop_that_needs_too_much(void **state)
{
    ir *p = ir_from(*state, IR_HEAD
                    "%0 \"x\" float32[3, 128, 23000] shared_hbm param=0 \"x\"\n"
                    "%1 \"a\" float32[128, 23000] sbuf\n"
                    "%2 \"b\" float32[128, 23000] sbuf\n"
                    "%3 \"c\" float32[128, 23000] sbuf\n"
                    "%4 \"o\" float32[128, 23000] shared_hbm out\n"
                    "DMA.dma_copy dst=%1 src=%0.ap([[23000, 128], [1, 23000]])\n"
                    "DMA.dma_copy dst=%2 src=%0.ap([[23000, 128], [1, 23000]], offset=2944000)\n"
                    "Sync.loop_for counter=r0 lower=0 upper=5 step=1\n"
                    "  Vector.tensor_copy dst=%3 src=%1\n"
                    "  Vector.tensor_tensor dst=%2 data1=%2 data2=%3 op=add\n"
                    "Sync.loop_end\n"
                    "DMA.dma_copy dst=%4 src=%2\n"
                    "return %4\n");
    diags ds;
    diags_init(&ds, *state);
    program *pr = schedule(*state, p, &(sched_opts){.spill = true}, &ds);
    assert_non_null(pr);
    assert_null(ir_verify(p, *state));
    assert_null(schedule_verify(pr, *state));
    assert_null(ds.first);
    // a: to HBM before the loop, loaded in it. b: to HBM before and in it, loaded in it and after.
    // c, which no iteration leaves anything in, stays.
    assert_int_equal(pr->spills.stores, 3);
    assert_int_equal(pr->spills.loads, 3);
    assert_int_equal(p->instrs.n, 7 + 6);
    uint32_t in_loop = 0, depth = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        depth += p->instrs.at[i].op == ISA_loop_for;
        depth -= p->instrs.at[i].op == ISA_loop_end;
        in_loop += depth && p->instrs.at[i].op == ISA_dma_copy;
    }
    assert_int_equal(in_loop, 3);
}

static void spill__says_what_needs_more_than_there_is(void **state)
{
    ir *p = ir_from(*state, IR_HEAD "%0 \"a\" float32[128, 30000] sbuf  ; k.nki:2\n"
                                    "%1 \"b\" float32[128, 30000] sbuf  ; k.nki:3\n"
                                    "Vector.memset dst=%0 value=1.0\n"
                                    "Vector.tensor_copy dst=%1 src=%0  ; k.nki:7\n");
    diags ds;
    diags_init(&ds, *state);
    assert_null(schedule(*state, p, &(sched_opts){.spill = true}, &ds));
    assert_int_equal(ds.first->id, D_sbuf_full);
    const diag_note *last = ds.first->notes;
    while (last->next) {
        last = last->next;
    }
    assert_string_equal(last->text, "tensor_copy uses 240000 bytes of each partition at once, so "
                                    "--spill cannot help");
    assert_int_equal(source_locate(last->at.src, last->at.at.lo).line, 7);
}

// Without --spill the refusal says what it would do: a goes when b comes, b when a is stored, and
// each comes back.
static void full__says_when_spills_would_help(void **state)
{
    const diag *d = refused(*state, IR_HEAD "%0 \"a\" float32[128, 30000] sbuf\n"
                                            "%1 \"b\" float32[128, 30000] sbuf\n"
                                            "%2 \"o\" float32[128, 30000] shared_hbm out\n"
                                            "Vector.memset dst=%0 value=1.0\n"
                                            "Vector.memset dst=%1 value=2.0\n"
                                            "DMA.dma_copy dst=%2 src=%0\n"
                                            "DMA.dma_copy dst=%2 src=%1\n"
                                            "return %2\n");
    assert_string_equal(d->help, "--spill makes it fit: it moves 2 tensors to HBM and back, 4 "
                                 "transfers of 61440000 bytes in all; smaller tiles may need none");
}

// Tensors of many sizes: what is held back is found by size and by age without looking at the
// others, and given back when memory is short.
static void place__many_sizes_take_turns(void **state)
{
    enum { N = 4000 };
    textbuf t;
    text_init(&t, *state);
    text_cstr(&t, IR_HEAD);
    for (int i = 0; i < N; i++) {
        text_printf(&t, "%%%d \"\" uint8[128, %d] sbuf\n", i, 64 * (1 + i % 700));
    }
    for (int i = 0; i < N; i++) {
        text_printf(&t, "Vector.memset dst=%%%d value=1\n", i);
    }
    const program *pr = scheduled(*state, t.at);
    // The turns of a size: of its first eight, no two have the same place while there is room.
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < i; k++) {
            assert_true(at(pr, (uint32_t)i) != at(pr, (uint32_t)k));
        }
    }
    assert_in_range(pr->sbuf_peak_bytes, 200000, 229376);
}

static void full__sbuf_lists_what_is_in_use(void **state)
{
    const diag *d = refused(*state, IR_HEAD "%0 \"big\" float32[128, 50000] sbuf  ; k.nki:3\n"
                                            "%1 \"small\" float32[128, 16] sbuf  ; k.nki:4\n"
                                            "%2 \"next\" bfloat16[128, 8, 2048] sbuf  ; k.nki:5\n"
                                            "Vector.memset dst=%0 value=0.0\n"
                                            "Vector.memset dst=%1 value=0.0\n"
                                            "Vector.memset dst=%2 value=0.0\n"
                                            "Vector.tensor_copy dst=%1 src=%0[:, 0:16]\n");
    assert_int_equal(d->id, D_sbuf_full);
    assert_string_equal(
        d->text, "tensor `next` [128, 8, 2048] bfloat16 needs 32768 bytes in each partition; with "
                 "what is live that makes 232832, and SBUF of trn2 has 229376 (29312 free, 29312 "
                 "in one piece)");
    assert_string_equal(d->at.src->name, "k.nki");
    assert_int_equal(source_locate(d->at.src, d->at.at.lo).line, 5);
    assert_string_equal(d->notes->text,
                        "in use: `big` [128, 50000] float32, 200000 bytes in each partition at 0");
    assert_string_equal(d->notes->next->text,
                        "in use: `small` [128, 16] float32, 64 bytes in each partition at 200000");
    assert_null(d->notes->next->next);
}

static void full__psum_after_eight_banks(void **state)
{
    textbuf t;
    text_init(&t, *state);
    text_cstr(&t, IR_HEAD);
    for (int i = 0; i < 9; i++) {
        text_printf(&t, "%%%d \"p%d\" float32[128, 512] psum\n", i, i);
    }
    for (int i = 0; i < 9; i++) {
        text_printf(&t, "Vector.memset dst=%%%d value=0.0\n", i);
    }
    const diag *d;
    for (int i = 0; i < 9; i++) {
        text_printf(&t, "Vector.tensor_copy dst=%%%d src=%%%d\n", i, i);
    }
    d = refused(*state, t.at);
    assert_int_equal(d->id, D_psum_full);
    assert_non_null(strstr(d->text, "`p8` [128, 512] float32 needs 2048 bytes"));
}

// First-fit leaves two holes of 64 KiB on each side of b; packing anew finds room for 128 KiB.
static void full__only_if_no_order_of_placing_fits(void **state)
{
    const program *pr = place(*state, IR_HEAD "%0 \"a\" float32[128, 20000] sbuf\n"
                                              "%1 \"b\" float32[128, 4000] sbuf\n"
                                              "%2 \"c\" float32[128, 20000] sbuf\n"
                                              "%3 \"d\" float32[128, 40000] sbuf\n"
                                              "Vector.memset dst=%0 value=0.0\n"
                                              "Vector.memset dst=%1 value=0.0\n"
                                              "Vector.memset dst=%2 value=0.0\n"
                                              "Vector.tensor_copy dst=%2 src=%0\n"
                                              "Vector.memset dst=%3 value=0.0\n"
                                              "Vector.tensor_copy dst=%3[:, 0:4000] src=%1\n");
    assert_int_equal(at(pr, 3), 0);
    assert_true(at(pr, 1) >= 160000);
    assert_true(pr->sbuf_peak_bytes <= 229376);
}

static uint32_t random_below(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

// Random programs against the definition: two tensors in use at one instruction share no byte.
static void place__random_programs_never_overlap(void **state)
{
    arena *a = *state;
    uint32_t seed = 12345;
    for (int round = 0; round < 200; round++) {
        arena_mark m = arena_save(a);
        uint32_t nt = 2 + random_below(&seed, 30), ni = 1 + random_below(&seed, 60);
        textbuf t;
        text_init(&t, a);
        text_cstr(&t, IR_HEAD);
        for (uint32_t i = 0; i < nt; i++) {
            bool psum = random_below(&seed, 3) == 0;
            uint32_t rows = 1 + random_below(&seed, 128);
            uint32_t columns = 1 + random_below(&seed, psum ? 700 : 2000);
            text_printf(&t, "%%%u \"\" float32[%u, %u] %s", i, rows, columns,
                        psum ? "psum" : "sbuf");
            if (random_below(&seed, 8) == 0) {
                text_printf(&t, " address=(0, %u)", 2048 * random_below(&seed, 4));
            }
            text_char(&t, '\n');
        }
        for (uint32_t i = 0; i < ni; i++) {
            text_printf(&t, "Vector.memset dst=%%%u[0:1, 0:1] value=0.0\n",
                        random_below(&seed, nt));
        }
        diags ds;
        diags_init(&ds, a);
        ir *p = ir_from(a, t.at);
        uint32_t *first = NEW_N(a, uint32_t, nt), *last = NEW_N(a, uint32_t, nt);
        for (uint32_t i = ni; i-- > 0;) {
            uint32_t k = p->views.at[p->args.at[p->instrs.at[i].args].v].tensor;
            first[k] = i + 1;
            last[k] = last[k] ? last[k] : i + 1;
        }
        const program *pr = schedule(a, p, NULL, &ds);
        for (uint32_t x = 0; pr && x < nt; x++) {
            for (uint32_t y = x + 1; y < nt; y++) {
                const ir_tensor *tx = &p->tensors.at[x], *ty = &p->tensors.at[y];
                if (!first[x] || !first[y] || tx->buffer != ty->buffer ||
                    (tx->manual && ty->manual) || last[x] < first[y] || last[y] < first[x]) {
                    continue;
                }
                assert_true(tx->addr_bytes + tx->size_bytes <= ty->addr_bytes ||
                            ty->addr_bytes + ty->size_bytes <= tx->addr_bytes);
            }
        }
        assert_true(pr || ds.errors);
        arena_restore(a, m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) IR_TEST(name)
        T(place__memory_is_reused_after_the_last_use),
        T(place__small_tensors_align_to_their_dtype),
        T(place__psum_tiles_keep_to_banks),
        T(place__a_value_carried_by_a_loop_lives_through_it),
        T(place__an_unproven_tensor_is_filled_before_the_outermost_loop),
        T(place__random_programs_never_overlap),
        T(fill__what_counts_as_proof),
        T(fill__an_output_that_is_not_wholly_written),
        T(fill__moves_user_dependences),
        T(fill__leaves_memory_that_two_programs_share_to_the_launch),
        T(place__hbm_holds_constants_outputs_and_temporaries_in_turns),
        T(manual__placed_tensors_avoid_addresses_in_use),
        T(manual__an_alias_keeps_what_another_wrote),
        T(manual__an_alias_of_a_part_is_filled_at_the_start),
        T(manual__a_cover_that_is_not_written_wholly_is_no_proof),
        T(spill__takes_the_farthest_and_stores_it_once),
        T(spill__opens_a_loop_that_needs_too_much),
        T(spill__says_what_needs_more_than_there_is),
        T(full__says_when_spills_would_help),
        T(place__many_sizes_take_turns),
        T(full__sbuf_lists_what_is_in_use),
        T(full__psum_after_eight_banks),
        T(full__only_if_no_order_of_placing_fits),
#undef T
    };
    return cmocka_run_group_tests_name("sched.place", tests, NULL, NULL);
}
