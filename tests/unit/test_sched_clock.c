#include "tests/support/ir_fixture.h"

#include "base/text.h"
#include "sched/clock.h"
#include "sched/place.h"
#include "sched/profile.h"

#include <stdio.h>
#include <time.h>

// Tensors of every test, then its instructions.
static const char head[] = "%0 \"x\" float32[128, 512] shared_hbm param=0 \"x\"\n"
                           "%1 \"y\" float32[128, 512] shared_hbm param=1 \"y\"\n"
                           "%2 \"n\" int32[1, 1] hbm param=2 \"n\"\n"
                           "%3 \"a\" float32[128, 512] sbuf address=(0, 0)\n"
                           "%4 \"b\" float32[128, 512] sbuf address=(0, 4096)\n"
                           "%5 \"c\" float32[128, 512] sbuf address=(0, 8192)\n"
                           "%6 \"w\" bfloat16[128, 128] sbuf address=(0, 12288)\n"
                           "%7 \"m\" bfloat16[128, 512] sbuf address=(0, 16384)\n"
                           "%8 \"p\" float32[128, 512] psum address=(0, 0)\n"
                           "%9 \"q\" float32[128, 512] psum address=(0, 2048)\n"
                           "%10 \"s\" float32[128, 1] sbuf address=(0, 20480)\n";

static ir *parse(arena *a, const char *chip, const char *body)
{
    const char *err = NULL;
    char *text =
        arena_printf(a, "kernel \"k\" target=%s grid=1 core=0 registers=8\n%s%s", chip, head, body);
    ir *p = ir_parse(a, text, strlen(text), &err);
    const char *why = p ? ir_verify(p, a) : err;
    assert_string_equal(why ? why : "sound", "sound");
    return p;
}

static bool time_one(arena *a, const program *pr, const clock_opts *o, clock_result *r)
{
    return clock_run(a, &pr, 1, o, r);
}

static clock_result timed_on(arena *a, const char *chip, const char *body, clock_opts o)
{
    diags ds;
    diags_init(&ds, a);
    program *pr = schedule(a, parse(a, chip, body), NULL, &ds);
    assert_non_null(pr);
    clock_result r;
    assert_true(time_one(a, pr, &o, &r));
    return r;
}

static clock_result timed(arena *a, const char *body)
{
    return timed_on(a, "trn2", body, (clock_opts){.events_max = 100000});
}

static char *repeated(arena *a, const char *first, const char *line, unsigned n)
{
    textbuf t;
    text_init(&t, a);
    text_cstr(&t, first);
    for (unsigned i = 0; i < n; i++) {
        text_cstr(&t, line);
    }
    return t.at;
}

#define COPY   "Vector.tensor_copy dst=%4 src=%3\n"
#define EXP    "Scalar.activation dst=%5 op=exp data=%3\n"
#define MATMUL "Tensor.nc_matmul dst=%8 stationary=%6 moving=%7 accumulate=False\n"
#define SET    "Vector.memset dst=%3 value=0.0\n"
#define SETW   "Vector.memset dst=%6 value=0.0\nVector.memset dst=%7 value=0.0\n"

static void clock__more_work_on_an_engine_never_takes_less(void **state)
{
    static const char *const lines[] = {
        COPY,
        EXP,
        "Vector.tensor_reduce dst=%10 op=add data=%3 axis=[1]\n",
        "Vector.tensor_tensor dst=%4 data1=%3 data2=%5 op=add\n",
        "DMA.dma_copy dst=%3 src=%0\n",
        "DMA.dma_copy dst=%1 src=%3\n",
    };
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        int64_t last = 0;
        for (unsigned n = 1; n < 12; n++) {
            clock_result r = timed(*state, repeated(*state, SET SETW, lines[k], n));
            assert_true(r.end_ps >= last);
            last = r.end_ps;
        }
    }
    int64_t last = 0;
    for (unsigned n = 1; n < 60; n++) {
        clock_result r = timed(*state, repeated(*state, SETW, MATMUL, n));
        assert_true(r.end_ps >= last);
        last = r.end_ps;
    }
}

static void clock__independent_engines_overlap(void **state)
{
    clock_result v = timed(*state, repeated(*state, SET, COPY, 50));
    clock_result s = timed(*state, repeated(*state, SET, EXP, 50));
    clock_result both = timed(*state, repeated(*state, SET, COPY EXP, 50));
    int64_t longer = v.end_ps > s.end_ps ? v.end_ps : s.end_ps;
    assert_true(both.end_ps >= longer);
    assert_true(both.end_ps < longer + longer / 50);
}

// Every execution starts after what it depends on has ended, in the events themselves.
static void clock__dependences_are_respected(void **state)
{
    clock_result r = timed(*state, "DMA.dma_copy dst=%3 src=%0\n" COPY
                                   "Scalar.activation dst=%5 op=exp data=%4\n"
                                   "Vector.tensor_reduce dst=%10 op=add data=%5 axis=[1]\n"
                                   "DMA.dma_copy dst=%1 src=%5\n");
    assert_int_equal(r.events.n, 5);
    int64_t end[5], start[5];
    for (uint32_t i = 0; i < 5; i++) {
        start[r.events.at[i].instr] = r.events.at[i].start_ps;
        end[r.events.at[i].instr] = r.events.at[i].end_ps;
    }
    for (unsigned i = 1; i < 4; i++) {
        assert_true(start[i] >= end[i - 1]);
    }
    assert_true(start[4] >= end[2]);  // the store reads what the activation wrote
    for (uint32_t i = 0; i < 5; i++) {
        if (r.events.at[i].instr == 2) {
            assert_int_equal(r.events.at[i].waited_for, 1 + 1);
        }
    }
}

// A write waits for earlier readers of the same bytes, and not for readers of others.
static void clock__reuse_of_a_bank_waits(void **state)
{
    const char *one = "Vector.tensor_copy dst=%4 src=%8\n" MATMUL;
    const char *two = "Vector.tensor_copy dst=%4 src=%8\n"
                      "Tensor.nc_matmul dst=%9 stationary=%6 moving=%7 accumulate=False\n"
                      "Vector.tensor_copy dst=%5 src=%9\n" MATMUL;
    clock_result a = timed(*state, repeated(*state, SETW MATMUL, one, 40));
    clock_result b = timed(*state, repeated(*state, SETW MATMUL, two, 20));
    assert_true(b.end_ps < a.end_ps - a.end_ps / 10);
}

static void clock__a_loop_takes_what_it_takes_unrolled(void **state)
{
    char *flat = repeated(*state, SET,
                          COPY EXP "Vector.tensor_tensor dst=%3 data1=%4 data2=%5 op=add\n", 200);
    clock_result a = timed(*state, flat);
    clock_result b =
        timed(*state, SET "Sync.loop_for counter=r0 lower=0 upper=200 step=1\n" COPY EXP
                          "Vector.tensor_tensor dst=%3 data1=%4 data2=%5 op=add\n"
                          "Sync.loop_end\n");
    assert_int_equal(a.of[1].count, 1);
    assert_int_equal(b.of[2].count, 200);
    double ratio = (double)b.end_ps / (double)a.end_ps;
    assert_true(ratio > 0.999 && ratio < 1.15);  // counting costs something
}

static void clock__a_loop_of_unknown_length_asks_for_its_trips(void **state)
{
    const char *body =
        SET "Sync.register_load dst=r1 src=%2\n"
            "Sync.loop_for counter=r0 lower=0 upper=r1 step=1\n" COPY "Sync.loop_end\n";
    clock_opts o = {0};
    clock_result r;
    diags ds;
    diags_init(&ds, *state);
    program *pr = schedule(*state, parse(*state, "trn2", body), NULL, &ds);
    assert_false(time_one(*state, pr, &o, &r));
    assert_int_equal(r.error, CLOCK_NEEDS_TRIP);
    assert_int_equal(r.error_instr, 2);
    clock_trip t = {"r0", 7};
    o.trips = &t;
    o.trip_count = 1;
    assert_true(time_one(*state, pr, &o, &r));
    assert_int_equal(r.of[3].count, 7);
    t.count = 0;
    assert_true(time_one(*state, pr, &o, &r));
    assert_int_equal(r.of[3].count, 0);
    t.count = UINT64_MAX;
    o.steps_max = 100000;
    assert_false(time_one(*state, pr, &o, &r));
}

// The published intervals that the constants stand for.
static void clock__intervals_are_the_published_ones(void **state)
{
    clock_result r = timed(*state, repeated(*state, SETW, MATMUL, 400));
    const clock_event *e = &r.events.at[r.events.n - 2];
    assert_int_equal((e[1].start_ps - e[0].start_ps + 500) / 1000, 216);  // bf16, 512 columns
    assert_int_equal((e[1].end_ps - e[1].start_ps + 500) / 1000, 377);
    assert_true(r.pe_cold_ps > 6000000 && r.pe_cold_ps < 7500000);  // about 6.7 us at half clock
    r = timed(*state, repeated(*state, SET, EXP, 10));
    e = &r.events.at[r.events.n - 2];
    int64_t gap = (e[1].start_ps - e[0].start_ps) / 1000;
    assert_true(gap > 600 && gap < 625);  // 612
    assert_int_equal(r.table_loads, 1);
    r = timed(*state, repeated(*state, SETW MATMUL, "Vector.tensor_copy dst=%4 src=%8\n", 10));
    e = &r.events.at[r.events.n - 2];
    gap = (e[1].start_ps - e[0].start_ps) / 1000;
    assert_true(gap > 590 && gap < 612);  // 597..607
}

static void clock__functions_that_alternate_reload_their_tables(void **state)
{
    char *mixed = repeated(*state, SET, EXP "Scalar.activation dst=%5 op=tanh data=%3\n", 10);
    char *sorted = repeated(*state, repeated(*state, SET, EXP, 10),
                            "Scalar.activation dst=%5 op=tanh data=%3\n", 10);
    clock_result a = timed(*state, mixed), b = timed(*state, sorted);
    assert_int_equal(a.table_loads, 20);
    assert_int_equal(b.table_loads, 2);
    assert_true(a.end_ps - b.end_ps > (int64_t)17 * 1283000);
}

// trn1: Vector and Scalar take turns at PSUM; trn2: they do not.
static void clock__psum_port_is_shared_on_trn1(void **state)
{
    char *body = repeated(*state, SETW MATMUL,
                          "Vector.tensor_copy dst=%4 src=%8\n"
                          "Scalar.activation dst=%5 op=copy data=%8\n",
                          20);
    clock_result a = timed_on(*state, "trn1", body, (clock_opts){0});
    clock_result b = timed_on(*state, "trn2", body, (clock_opts){0});
    assert_true(a.port_ps > 0);
    assert_int_equal(b.port_ps, 0);
}

static void clock__a_constant_changes_what_it_should(void **state)
{
    machine m = *machine_of(target_find("trn2"));
    const char *body = SET EXP "DMA.dma_copy dst=%1 src=%5\n";
    clock_result a = timed_on(*state, "trn2", body, (clock_opts){.m = &m});
    assert_true(machine_set(&m, "scalar_table_ns", m.scalar_table_ns + 1000));
    clock_result b = timed_on(*state, "trn2", body, (clock_opts){.m = &m});
    assert_int_equal(b.end_ps - a.end_ps, 1000000);
    assert_false(machine_set(&m, "scalar_table", 1));
    assert_false(machine_set(&m, "scalar_table_ns", -1));
}

static double seconds(arena *a, const program *p)
{
    struct timespec t0, t1;
    clock_opts o = {0};
    clock_result r;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    assert_true(time_one(a, p, &o, &r));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    return (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9;
}

static const program *long_program(arena *a, unsigned rounds)
{
    diags ds;
    diags_init(&ds, a);
    const char *round = "DMA.dma_copy dst=%3 src=%0\n" COPY EXP MATMUL
                        "Vector.tensor_copy dst=%4 src=%8\nDMA.dma_copy dst=%1 src=%4\n";
    return schedule(a, parse(a, "trn2", repeated(a, SET SETW, round, rounds)), NULL, &ds);
}

static void clock__time_is_linear(void **state)
{
    const program *small = long_program(*state, 2000), *large = long_program(*state, 16000);
    double s = seconds(*state, small), l = seconds(*state, large);
    print_message("%.0f instructions a second\n", 96000 / l);
    assert_true(l < 8 * s * 3 + 0.05);
}

static void profile__forms_are_well_formed(void **state)
{
    diags ds;
    diags_init(&ds, *state);
    program *pr =
        schedule(*state,
                 parse(*state, "trn2",
                       "DMA.dma_copy dst=%3 src=%0\n" COPY EXP "DMA.dma_copy dst=%1 src=%5\n"),
                 NULL, &ds);
    clock_opts o = {.events_max = 100};
    profile f;
    const program *const cores[] = {pr};
    assert_true(profile_make(*state, cores, 1, &o, &f));
    assert_true(f.sum.total_time_ns > f.sum.body_time_ns);
    assert_true(f.sum.hbm_read_bytes == 128 * 512 * 4);
    textbuf t;
    text_init(&t, *state);
    profile_json(&f, 1, true, &t);
    int depth = 0, deepest = 0;
    bool quoted = false;
    for (const char *c = t.at; *c; c++) {
        if (*c == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            depth += *c == '{' || *c == '[';
            depth -= *c == '}' || *c == ']';
            deepest = depth > deepest ? depth : deepest;
        }
    }
    assert_int_equal(depth, 0);
    assert_true(deepest >= 3);
    assert_non_null(strstr(t.at, "\"total_time_ns\": "));
    assert_non_null(strstr(t.at, "\"mfu_estimated_percent\": "));
    assert_non_null(strstr(t.at, "\"opcode\": \"activation\""));
    size_t json_len = t.len;
    profile_text(&f, 1, &t);
    for (unsigned k = 0; k < TABLE_COUNT; k++) {
        profile_csv(&f, 1, (profile_table)k, &t);
    }
    profile_perfetto(&f, 1, &t);
    profile_against(&f, 1, &f, 1, &t);
    assert_true(t.len > json_len);
    assert_non_null(strstr(t.at, "start_ts,end_ts,"));
    assert_non_null(strstr(t.at, "\"ph\":\"X\""));
    t.len = 0;
    profile_html(&f, 1, &t);
    assert_int_equal(strncmp(t.at, "<!doctype html>", 15), 0);
    assert_non_null(strstr(t.at, "</html>"));
    t.len = 0;
    json_quoted(&t, "a\"b\\</script>\n");
    assert_string_equal(t.at, "\"a\\\"b\\\\\\u003c/script>\\u000a\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IR_TEST(clock__more_work_on_an_engine_never_takes_less),
        IR_TEST(clock__independent_engines_overlap),
        IR_TEST(clock__dependences_are_respected),
        IR_TEST(clock__reuse_of_a_bank_waits),
        IR_TEST(clock__a_loop_takes_what_it_takes_unrolled),
        IR_TEST(clock__a_loop_of_unknown_length_asks_for_its_trips),
        IR_TEST(clock__intervals_are_the_published_ones),
        IR_TEST(clock__functions_that_alternate_reload_their_tables),
        IR_TEST(clock__psum_port_is_shared_on_trn1),
        IR_TEST(clock__a_constant_changes_what_it_should),
        IR_TEST(clock__time_is_linear),
        IR_TEST(profile__forms_are_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
