#include "tests/support/sched_fixture.h"

#include "sched/issue.h"
#include "sched/program_text.h"
#include "tests/unit/random_program.h"

static const char *print(arena *a, const program *pr)
{
    textbuf t;
    text_init(&t, a);
    program_print(pr, &t);
    return t.at;
}

static const char sample[] = IR_HEAD "%0 \"x\" float32[4, 128, 64] hbm param=0 \"x\"\n"
                                     "%1 \"t\" float32[128, 64] sbuf\n"
                                     "Vector.memset dst=%1 value=0.0\n"
                                     "Sync.loop_for counter=r0 lower=0 upper=4 step=1\n"
                                     "  Vector.tensor_tensor dst=%1 data1=%1 data2=%1 op=add\n"
                                     "  DMA.dma_copy dst=%0.ap([[64, 128], [1, 64]]) src=%1\n"
                                     "Sync.loop_end\n";

static void text__comes_back_the_same(void **state)
{
    arena *a = *state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        arena_mark m = arena_save(a);
        chooser c = {NULL, NULL, seed};
        diags ds;
        diags_init(&ds, a);
        program *pr = schedule(a, random_program_make(a, c, 30), NULL, &ds);
        for (int list = 0; pr && list < 2; list++) {
            schedule_streams(a, pr, &(sched_opts){.list = list});
            pr->spills.loads = (uint32_t)seed % 2;
            if (pr->dmas.n) {
                pr->dmas.at[0].priority = (uint8_t)(seed % 4);
            }
            const char *text = print(a, pr), *err = NULL;
            program *back = program_parse(a, pr->ir, text, strlen(text), &err);
            assert_string_equal(err ? err : "", "");
            assert_string_equal(print(a, back), text);
            assert_null(schedule_verify(back, a));
            assert_memory_equal(back->stream_first, pr->stream_first, sizeof pr->stream_first);
        }
        arena_restore(a, m);
    }
}

// Any prefix of a text, and any byte of it replaced, ends in a program or a sentence.
static void text__survives_damage(void **state)
{
    arena *a = *state;
    program *pr = scheduled(a, sample);
    const char *text = print(a, pr);
    size_t len = strlen(text);
    static const char junk[] = "@=sx0 9\n->D.\x80";
    for (size_t i = 0; i < len; i++) {
        arena_mark m = arena_save(a);
        char *own = malloc(len);
        memcpy(own, text, len);
        own[i] = junk[i * 5 % (sizeof junk - 1)];
        for (int whole = 0; whole < 2; whole++) {
            const char *err = NULL;
            program *back = program_parse(a, pr->ir, own, whole ? len : i, &err);
            assert_true(!back == (err != NULL));
            if (back) {
                schedule_verify(back, a);
                print(a, back);
            }
        }
        free(own);
        arena_restore(a, m);
    }
}

static void text__says_where_it_stops(void **state)
{
    arena *a = *state;
    program *pr = scheduled(a, sample);
    static const struct {
        const char *text, *err;
    } bad[] = {
        {"semaphore s1 Vector -> DMA.store\n", "line 1: semaphore s1 where s0 is next"},
        {"semaphore s0 Victor -> DMA.store\n",
         "line 1: a stream expected at 'Victor -> DMA.store'"},
        {"queue Vector 1\n", "line 1: 1 more slots expected"},
        {"queue Vector 1\n  @9 memset\n", "line 2: a number of at most 4 expected"},
        {"queue Vector 1\n  @0 iota\n", "line 2: @0 is a memset"},
        {"queue Vector 1\n  @0 memset wait s0>=1\n", "line 2: semaphore s0 does not exist"},
        {"queue Vector 0\nqueue Tensor 0\n", "line 2: stream Tensor comes too late"},
        {"memory hbm=1 sbuf_peak=0 psum_peak=0 more\n", "line 1: nothing expected at ' more'"},
        {"hello\n", "line 1: 'queue ' expected at 'hello'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *err = NULL;
        assert_null(program_parse(a, pr->ir, bad[i].text, strlen(bad[i].text), &err));
        assert_string_equal(err, bad[i].err);
    }
}

// A schedule written by hand: the streams of a load and its use, without the wait and with it.
static void text__of_a_schedule_can_be_proven(void **state)
{
    arena *a = *state;
    program *pr = scheduled(a, IR_HEAD "%0 \"x\" float32[128, 64] hbm param=0 \"x\"\n"
                                       "%1 \"t\" float32[128, 64] sbuf\n"
                                       "DMA.dma_copy dst=%1 src=%0\n"
                                       "Vector.tensor_copy dst=%1 src=%1\n");
    static const char head[] = "semaphore s0 DMA.load -> Vector\n";
    static const char load[] = "queue DMA.load 1\n  @0 dma_copy signal s0+=16\n";
    for (int waits = 0; waits < 2; waits++) {
        const char *text = arena_printf(a, "%squeue Vector 1\n  @1 tensor_copy%s\n%s", head,
                                        waits ? " wait s0>=16" : "", load);
        const char *err = NULL;
        program *back = program_parse(a, pr->ir, text, strlen(text), &err);
        assert_string_equal(err ? err : "", "");
        back->dmas.at = pr->dmas.at;
        back->dmas.n = pr->dmas.n;
        assert_int_equal(schedule_verify(back, a) == NULL, waits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IR_TEST(text__comes_back_the_same),
        IR_TEST(text__survives_damage),
        IR_TEST(text__says_where_it_stops),
        IR_TEST(text__of_a_schedule_can_be_proven),
    };
    return cmocka_run_group_tests_name("sched.text", tests, NULL, NULL);
}
