#include "tests/support/sched_fixture.h"

#include "sched/issue.h"
#include "sched/linearise.h"
#include "sched/program_text.h"
#include "tests/unit/random_program.h"
#include "tests/unit/sched_oracle.h"

// The queues' part of the text.
static const char *queues_of(arena *a, const program *pr)
{
    textbuf t;
    text_init(&t, a);
    program_print(pr, &t);
    const char *at = strstr(t.at, "queue ");
    return at ? at : "";
}

static void semaphore__straight_line(void **state)
{
    const program *pr =
        scheduled(*state, IR_HEAD "%0 \"x\" float32[128, 64] hbm param=0 \"x\"\n"
                                  "%1 \"t\" float32[128, 64] sbuf\n"
                                  "%2 \"u\" float32[128, 64] sbuf\n"
                                  "DMA.dma_copy dst=%1 src=%0\n"
                                  "Scalar.tensor_copy dst=%2 src=%1\n"
                                  "Vector.tensor_tensor dst=%2 data1=%2 data2=%1 op=add\n"
                                  "DMA.dma_copy dst=%0 src=%2\n");
    // Vector needs the load too, but Scalar's signal says that it is done. The store writes what
    // the load read: Vector's signal says that too.
    assert_string_equal(queues_of(*state, pr), "queue Scalar 1\n"
                                               "  @1 tensor_copy wait s0>=16 signal s1+=1\n"
                                               "queue Vector 1\n"
                                               "  @2 tensor_tensor wait s1>=1 signal s2+=1\n"
                                               "queue DMA.load 1\n"
                                               "  @0 dma_copy signal s0+=16\n"
                                               "queue DMA.store 1\n"
                                               "  @3 dma_copy wait s2>=1\n");
}

static void semaphore__loop_counts_return_to_zero(void **state)
{
    const program *pr =
        scheduled(*state, IR_HEAD "%0 \"x\" float32[128, 64] hbm param=0 \"x\"\n"
                                  "%1 \"t\" float32[128, 64] sbuf\n"
                                  "%2 \"u\" float32[128, 64] sbuf\n"
                                  "Vector.memset dst=%2 value=0.0\n"
                                  "Sync.loop_for counter=r0 lower=0 upper=4 step=1\n"
                                  "  DMA.dma_copy dst=%1 src=%0\n"
                                  "  Vector.tensor_tensor dst=%2 data1=%2 data2=%1 op=add\n"
                                  "Sync.loop_end\n"
                                  "DMA.dma_copy dst=%0 src=%2\n");
    assert_string_equal(queues_of(*state, pr),
                        "queue Vector 4\n"
                        "  @0 memset\n"
                        "  @1 loop_for\n"
                        "    @3 tensor_tensor wait s2>=16 signal s3+=1\n"
                        "  @4 loop_end signal s0+=1 take s2-=16\n"
                        "queue DMA.load 3\n"
                        "  @1 loop_for credit s3+=1\n"
                        "    @2 dma_copy wait s3>=1 signal s2+=16\n"
                        "  @4 loop_end signal s1+=16 take s3-=1 drain s3>=1 drain s3-=1\n"
                        "queue DMA.store 1\n"
                        "  @5 dma_copy wait s0>=1 wait s1>=16\n");
}

static void semaphore__registers_have_a_copy_in_each_stream(void **state)
{
    const program *pr =
        scheduled(*state, IR_HEAD "%0 \"x\" float32[128, 64] hbm param=0 \"x\"\n"
                                  "%1 \"n\" int32[1, 1] hbm param=1 \"n\"\n"
                                  "%2 \"t\" float32[128, 64] sbuf\n"
                                  "Vector.memset dst=%2 value=0.0\n"
                                  "Sync.register_load dst=r0 src=%1\n"
                                  "Sync.register_move dst=r1 src=r0\n"
                                  "DMA.dma_copy dst=%2 src=%0[0:128, :]\n"
                                  "Scalar.tensor_copy dst=%2[:, 0:8].register(r1) src=%2[:, 8:16]\n"
                                  "Sync.register_store dst=%1 src=r0\n");
    // The store to %1 has to wait for Scalar's own load of it.
    assert_string_equal(queues_of(*state, pr), "queue Scalar 3\n"
                                               "  @1 register_load signal s2+=1\n"
                                               "  @2 register_move\n"
                                               "  @4 tensor_copy wait s1>=16\n"
                                               "queue Vector 1\n"
                                               "  @0 memset signal s0+=1\n"
                                               "queue Sync 2\n"
                                               "  @1 register_load\n"
                                               "  @5 register_store wait s2>=1\n"
                                               "queue DMA.load 1\n"
                                               "  @3 dma_copy wait s0>=1 signal s1+=16\n");
}

static void semaphore__dma_is_split_over_engines(void **state)
{
    const program *pr =
        scheduled(*state, IR_HEAD "%0 \"x\" float32[128, 512] hbm param=0 \"x\"\n"
                                  "%1 \"t\" float32[128, 512] sbuf\n"
                                  "%2 \"u\" bfloat16[16, 512] sbuf\n"
                                  "DMA.dma_copy dst=%1 src=%0\n"
                                  "DMA.dma_copy dst=%2 src=%0[0:16, :]\n"
                                  "DMA.dma_copy dst=%0[:, 0:512:2] src=%1[:, 0:256] engine=scalar\n"
                                  "Vector.tensor_copy dst=%2 src=%2\n");
    const dma_info *d = pr->dmas.at;
    assert_int_equal(pr->dmas.n, 3);
    assert_int_equal(d[0].engines, 0xffff);  // eight partitions each
    assert_int_equal(d[0].descriptors, 128);
    assert_int_equal(d[0].bytes, 128 * 512 * 4);
    assert_int_equal(d[0].ring, RING_LOAD);
    assert_int_equal(d[0].dge, ISAE_dge_mode_swdge);
    assert_int_equal(d[0].trigger, ENG_GPSIMD);
    assert_int_equal(d[1].engines, 3);
    assert_int_equal(d[1].bytes, 16 * 512 * 4);
    assert_int_equal(d[2].ring, RING_SCALAR);
    assert_int_equal(d[2].trigger, ENG_SCALAR);
    assert_int_equal(d[2].dge, ISAE_dge_mode_hwdge);
    assert_int_equal(d[2].descriptors, 128 * 256);
}

// ---- random programs

static void play(arena *a, uint64_t seed, uint32_t n, uint32_t games)
{
    chooser c = {NULL, NULL, seed * 7919 + 3};
    ir *p = random_program_make(a, c, n);
    const char *why = ir_verify(p, a);
    assert_string_equal(why ? why : "sound", "sound");
    diags ds;
    diags_init(&ds, a);
    program *pr = schedule(a, p, NULL, &ds);
    if (!pr) {
        return;
    }
    for (int list = 0; list < 2; list++) {
        schedule_streams(a, pr, &(sched_opts){.list = list});
        why = schedule_verify(pr, a);
        if (why) {
            print_error("seed %d list %d: %s\n", (int)seed, list, why);
        }
        assert_null(why);
        oracle *o = oracle_new(a, pr);
        for (uint32_t k = 0; k < games; k++) {
            why = oracle_play(o, a, seed * 1000 + k);
            if (why) {
                print_error("seed %d list %d game %d: %s\n", (int)seed, list, (int)k, why);
            }
            assert_null(why);
        }
        uint32_t *order = NEW_N(a, uint32_t, p->instrs.n), *seen = NEW_N(a, uint32_t, p->instrs.n);
        for (uint32_t k = 0; k < 3; k++) {
            assert_true(sched_linearise(pr, a, seed + k, order));
            for (uint32_t i = 0; i < p->instrs.n; i++) {
                assert_int_equal(seen[order[i]]++, k);
            }
        }
    }
}

static void semaphore__every_interleaving_keeps_program_order(void **state)
{
    arena *a = *state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        arena_mark m = arena_save(a);
        play(a, seed, 40, 12);
        arena_restore(a, m);
    }
}

static void semaphore__same_program_same_schedule(void **state)
{
    arena *a = *state;
    const char *first = NULL;
    for (int k = 0; k < 2; k++) {
        chooser c = {NULL, NULL, 5};
        diags ds;
        diags_init(&ds, a);
        program *pr = schedule(a, random_program_make(a, c, 60), NULL, &ds);
        assert_non_null(pr);
        const char *text = queues_of(a, pr);
        first = first ? first : text;
        assert_string_equal(text, first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IR_TEST(semaphore__straight_line),
        IR_TEST(semaphore__loop_counts_return_to_zero),
        IR_TEST(semaphore__registers_have_a_copy_in_each_stream),
        IR_TEST(semaphore__dma_is_split_over_engines),
        IR_TEST(semaphore__every_interleaving_keeps_program_order),
        IR_TEST(semaphore__same_program_same_schedule),
    };
    return cmocka_run_group_tests_name("sched.semaphore", tests, NULL, NULL);
}
