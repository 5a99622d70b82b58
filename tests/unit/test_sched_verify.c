#include "tests/support/sched_fixture.h"

#include "sched/issue.h"
#include "tests/support/remove_waits.h"
#include "tests/unit/random_program.h"

static const char loop_text[] =
    IR_HEAD "%0 \"x\" float32[4, 128, 64] hbm param=0 \"x\"\n"
            "%1 \"t\" float32[128, 64] sbuf\n"
            "%2 \"u\" float32[128, 64] sbuf\n"
            "%3 \"n\" int32[1, 1] hbm param=1 \"n\"\n"
            "Vector.memset dst=%2 value=0.0\n"
            "Sync.register_load dst=r1 src=%3\n"
            "Sync.loop_for counter=r0 lower=0 upper=r1 step=1\n"
            "  DMA.dma_copy dst=%1 src=%0.ap([[64, 128], [1, 64]]).register(r0, step=8192)\n"
            "  Vector.tensor_tensor dst=%2 data1=%2 data2=%1 op=add\n"
            "  Scalar.tensor_copy dst=%1 src=%2\n"
            "Sync.loop_end\n"
            "Sync.register_store dst=%3 src=r1\n"
            "DMA.dma_copy dst=%0.ap([[64, 128], [1, 64]]) src=%2\n";

static uint32_t waits_of(arena *a, program *pr)
{
    uint32_t waits = 0;
    const char *why = remove_each(a, pr, &waits);
    assert_string_equal(why ? why : "none can go", "none can go");
    return waits;
}

static void verify__no_wait_or_signal_can_go(void **state)
{
    assert_true(waits_of(*state, scheduled(*state, loop_text)) >= 6);
}

static void verify__no_wait_or_signal_can_go_in_random_programs(void **state)
{
    arena *a = *state;
    uint32_t waits = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        arena_mark m = arena_save(a);
        chooser c = {NULL, NULL, seed};
        diags ds;
        diags_init(&ds, a);
        program *pr = schedule(a, random_program_make(a, c, 30), NULL, &ds);
        for (int list = 0; pr && list < 2; list++) {
            schedule_streams(a, pr, &(sched_opts){.list = list});
            waits += waits_of(a, pr);
        }
        arena_restore(a, m);
    }
    assert_true(waits > 1000);
}

// A value one step lower waits for less than it should; one higher for what never comes, or never
// may.
static void verify__waits_have_the_exact_value(void **state)
{
    arena *a = *state;
    program *pr = scheduled(a, loop_text);
    for (uint32_t k = 0; k < pr->syncs.n; k++) {
        sync_op *o = &pr->syncs.at[k];
        for (int up = 0; up < 2; up++) {
            uint32_t was = o->value,
                     step = pr->semaphores.at[o->semaphore].producer >= STREAM_RING0 ? 16 : 1;
            o->value = up ? was + step : was - step;
            const char *why = schedule_verify(pr, a);
            // A wait for more is stricter, a signal of more may be too much for nobody.
            if (!why && !(up && (o->kind == SYNC_WAIT || o->kind == SYNC_SIGNAL))) {
                print_error("operation %u, kind %u: %u for %u\n", k, o->kind, o->value, was);
                assert_non_null(why);
            }
            o->value = was;
        }
    }
}

static queue_slot *slot_of(program *pr, uint32_t stream, uint32_t instr)
{
    for (uint32_t k = pr->stream_first[stream]; k < pr->stream_first[stream + 1]; k++) {
        if (pr->slots.at[k].instr == instr) {
            return &pr->slots.at[k];
        }
    }
    fail_msg("@%u is not in %s", instr, stream_name(stream));
    return NULL;
}

static void verify__names_both_accesses(void **state)
{
    program *pr = scheduled(*state, IR_HEAD "%0 \"t\" float32[128, 64] sbuf\n"
                                            "Vector.memset dst=%0 value=0.0\n"
                                            "GpSimd.tensor_copy dst=%0[:, 0:8] src=%0[:, 8:16]\n");
    slot_of(pr, ENG_GPSIMD, 1)->nsync = 0;
    assert_string_equal(schedule_verify(pr, *state),
                        "tensor_copy @1 in GpSimd may write before @0 in Vector has written");
}

static void verify__finds_a_deadlock(void **state)
{
    program *pr = scheduled(*state, IR_HEAD "%0 \"t\" float32[128, 64] sbuf\n"
                                            "Vector.memset dst=%0 value=0.0\n"
                                            "GpSimd.tensor_copy dst=%0 src=%0\n"
                                            "Vector.tensor_copy dst=%0 src=%0\n");
    assert_null(schedule_verify(pr, *state));
    // Vector's two change places: the first now waits for GpSimd, which waits for the second.
    queue_slot *v = &pr->slots.at[pr->stream_first[ENG_VECTOR]], swap = v[0];
    v[0] = v[1];
    v[1] = swap;
    assert_non_null(strstr(schedule_verify(pr, *state), "deadlock: "));
}

static void verify__order_within_a_stream_counts(void **state)
{
    program *pr = scheduled(*state, IR_HEAD "%0 \"t\" float32[128, 64] sbuf\n"
                                            "Vector.memset dst=%0 value=0.0\n"
                                            "Vector.memset dst=%0 value=1.0\n");
    queue_slot *v = &pr->slots.at[pr->stream_first[ENG_VECTOR]];
    v[0].instr = 1;
    v[1].instr = 0;
    assert_non_null(schedule_verify(pr, *state));
}

static void verify__rejects_malformed_structure(void **state)
{
    arena *a = *state;
    program *pr = scheduled(a, loop_text);
    queue_slot *load = slot_of(pr, STREAM_RING0 + RING_LOAD, 3);
    queue_slot was = *load;
    load->instr = pr->ir->instrs.n;
    assert_non_null(schedule_verify(pr, a));
    load->instr = 4;  // in another engine's stream
    assert_non_null(schedule_verify(pr, a));
    load->instr = 2;  // twice
    assert_non_null(schedule_verify(pr, a));
    *load = was;
    load->sync = UINT32_MAX;
    assert_non_null(schedule_verify(pr, a));
    *load = was;
    // A ring without the register that its address comes from.
    queue_slot *reg = slot_of(pr, STREAM_RING0 + RING_LOAD, 2);
    assert_int_equal(reg->instr, 2);
    uint32_t last = pr->stream_first[STREAM_RING0 + RING_LOAD + 1];
    pr->stream_first[STREAM_RING0 + RING_LOAD + 1] = last + 1;
    assert_non_null(schedule_verify(pr, a));
    pr->stream_first[STREAM_RING0 + RING_LOAD + 1] = last;
    for (uint32_t k = 0; k < pr->syncs.n; k++) {
        sync_op o = pr->syncs.at[k];
        pr->syncs.at[k].semaphore = (uint16_t)pr->semaphores.n;
        assert_non_null(schedule_verify(pr, a));
        pr->syncs.at[k] = o;
        pr->syncs.at[k].kind = SYNC_KIND_COUNT;
        assert_non_null(schedule_verify(pr, a));
        pr->syncs.at[k] = o;
    }
    assert_null(schedule_verify(pr, a));
}

static void verify__semaphores_are_few(void **state)
{
    arena *a = *state;
    program *pr = scheduled(a, loop_text);
    while (pr->semaphores.n <= pr->ir->target->semaphores) {
        vec_push(a, &pr->semaphores, ((semaphore_info){0, 1, 0}));
    }
    assert_non_null(strstr(schedule_verify(pr, a), "257 semaphores, the core has 256"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IR_TEST(verify__no_wait_or_signal_can_go),
        IR_TEST(verify__no_wait_or_signal_can_go_in_random_programs),
        IR_TEST(verify__waits_have_the_exact_value),
        IR_TEST(verify__names_both_accesses),
        IR_TEST(verify__finds_a_deadlock),
        IR_TEST(verify__order_within_a_stream_counts),
        IR_TEST(verify__rejects_malformed_structure),
        IR_TEST(verify__semaphores_are_few),
    };
    return cmocka_run_group_tests_name("sched.verify", tests, NULL, NULL);
}
