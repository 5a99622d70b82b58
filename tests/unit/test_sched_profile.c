#include "tests/support/ir_fixture.h"

#include "base/text.h"
#include "sched/place.h"
#include "sched/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char head[] = "%0 \"x\" float32[128, 512] shared_hbm param=0 \"x\"\n"
                           "%1 \"y\" float32[128, 512] shared_hbm param=1 \"y\"\n"
                           "%2 \"a\" float32[128, 512] sbuf\n"
                           "%3 \"b\" float32[128, 512] sbuf\n"
                           "%4 \"w\" bfloat16[128, 128] sbuf\n"
                           "%5 \"m\" bfloat16[128, 512] sbuf\n"
                           "%6 \"p\" float32[128, 512] psum\n";

#define LOAD   "DMA.dma_copy dst=%2 src=%0\n"
#define SETS   "Vector.memset dst=%4 value=1.0\nVector.memset dst=%5 value=1.0\n"
#define MATMUL "Tensor.nc_matmul dst=%6 stationary=%4 moving=%5\n"
#define DRAIN  "Vector.tensor_copy dst=%3 src=%6\n"
#define ADD    "Vector.tensor_tensor dst=%3 data1=%3 data2=%2 op=add\n"
#define STORE  "DMA.dma_copy dst=%1 src=%3\n"
#define ALL    LOAD SETS MATMUL DRAIN ADD STORE

// The profile of a body, on one core.
static profile *profile_of(arena *a, const char *body)
{
    const char *err = NULL;
    char *text =
        arena_printf(a, "kernel \"k\" target=trn2 grid=1 core=0 registers=8\n%s%s", head, body);
    ir *p = ir_parse(a, text, strlen(text), &err);
    const char *why = p ? ir_verify(p, a) : err;
    assert_string_equal(why ? why : "sound", "sound");
    diags ds;
    diags_init(&ds, a);
    const program *pr = schedule(a, p, NULL, &ds);
    assert_non_null(pr);
    clock_opts o = {.events_max = 10000};
    profile *f = NEW(a, profile);
    const program *const cores[] = {pr};
    assert_true(profile_make(a, cores, 1, &o, f));
    return f;
}

static uint32_t instr_of(const profile *f, isa_id op)
{
    uint32_t i = 0;
    while (i < f->p->instrs.n && f->p->instrs.at[i].op != op) {
        i++;
    }
    assert_true(i < f->p->instrs.n);
    return i;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(a) + 1e-6;
}

static void profile__sums_are_those_of_the_instructions(void **state)
{
    const profile *f = profile_of(*state, ALL);
    const profile_summary *s = &f->sum;
    double tile = 128 * 512 * 4;
    assert_true(near(s->hbm_read_bytes, tile));
    assert_true(near(s->hbm_write_bytes, tile));
    assert_true(near(s->model_flops_flops, 2.0 * 128 * 128 * 512));
    assert_true(near(s->mm_arithmetic_intensity_ratio, 2.0 * 128 * 128 * 512 / (2 * tile)));
    assert_true(near(s->dma_transfer_count, 2));
    assert_true(near(s->dma_transfer_total_bytes, 2 * tile));
    assert_true(near(s->dma_transfer_average_bytes, tile));
    assert_true(near(s->dma_packet_average_bytes, 2048));
    assert_true(
        near(s->static_dma_count + s->software_dynamic_dma_count + s->hardware_dynamic_dma_count,
             s->dma_transfer_count));
    assert_true(
        near(s->static_dma_bytes + s->software_dynamic_dma_bytes + s->hardware_dynamic_dma_bytes,
             s->dma_transfer_total_bytes));
    assert_true(near(s->instruction_count, 7));
    assert_true(near(s->total_time_ns, s->launch_time_ns + s->body_time_ns + s->teardown_time_ns));
    assert_true(s->total_active_time_ns > 0 && s->total_active_time_ns < s->body_time_ns);
    assert_true(s->roofline_achieved_flops_per_ns < s->roofline_ceiling_flops_per_ns);
    uint64_t bytes = 0;
    for (unsigned t = TRACK_DMA0; t < TRACK_COUNT; t++) {
        bytes += f->queue[t].bytes;
    }
    assert_true(near((double)bytes, 2 * tile));
}

// The parts of the critical path are the time from its first start to the last end, without a hole.
static void profile__the_critical_path_is_the_whole_time(void **state)
{
    const profile *f = profile_of(*state, ALL);
    assert_true(f->critical.n >= 3);
    const clock_event *first = &f->clock.events.at[f->critical.at[f->critical.n - 1]];
    double all = 0;
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        all += f->critical_ns[t];
    }
    assert_true(near(all, ns_of_ps(f->clock.end_ps - first->start_ps)));
    double lines = 0;
    for (uint32_t i = 0; i < f->lines.n; i++) {
        lines += f->lines.at[i].critical_ns;
    }
    assert_true(near(lines, all));
    for (uint32_t i = 1; i < f->critical.n; i++) {
        assert_true(f->clock.events.at[f->critical.at[i]].start_ps <=
                    f->clock.events.at[f->critical.at[i - 1]].start_ps);
    }
}

static void profile__a_stall_names_what_it_waited_for(void **state)
{
    const profile *f = profile_of(*state, ALL);
    assert_true(f->stalls.n > 0);
    double last = INFINITY;
    bool product = false, drain = false;
    for (uint32_t i = 0; i < f->stalls.n; i++) {
        const profile_stall *s = &f->stalls.at[i];
        assert_true(s->lost_ns <= last && s->worst_ns <= s->lost_ns);
        last = s->lost_ns;
        assert_true(s->by > 0 && s->by - 1 < f->p->instrs.n);
        unsigned what = f->p->instrs.at[s->instr].op, by = f->p->instrs.at[s->by - 1].op;
        product |= what == ISA_nc_matmul && by == ISA_memset;
        drain |= what == ISA_tensor_copy && by == ISA_nc_matmul;
    }
    assert_true(product && drain);
}

static void profile__memory_is_in_use_from_the_first_to_the_last_touch(void **state)
{
    const profile *f = profile_of(*state, ALL);
    assert_int_equal(f->areas.n, 5);
    for (uint32_t i = 0; i < f->areas.n; i++) {
        const profile_area *a = &f->areas.at[i];
        const char *name = f->tensor_names[a->tensor];
        if (strcmp(name, "p") == 0) {
            assert_true(a->from_ps == f->clock.of[instr_of(f, ISA_nc_matmul)].first_ps);
            assert_true(a->to_ps == f->clock.of[instr_of(f, ISA_tensor_copy)].last_ps);
        }
    }
    profile_step *s;
    uint32_t n = profile_memory_steps(f, *state, BUF_SBUF, &s);
    int64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(s[i].value >= 0 && (!i || s[i].at_ps > s[i - 1].at_ps));
        most = s[i].value > most ? s[i].value : most;
    }
    assert_int_equal(s[n - 1].value, 0);
    assert_true(most >= 2048 && most <= f->program->sbuf_peak_bytes);
    n = profile_memory_steps(f, *state, BUF_PSUM, &s);
    assert_int_equal(n, 2);
    assert_int_equal(s[0].value, 2048);
}

static void profile__semaphores_never_go_below_zero(void **state)
{
    const profile *f = profile_of(
        *state, "Sync.loop_for counter=r0 lower=0 upper=5 step=1\n" LOAD SETS MATMUL DRAIN ADD STORE
                "Sync.loop_end\n");
    profile_update *u;
    uint32_t n = profile_updates(f, *state, &u);
    assert_true(n > 10);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(u[i].value >= 0);
        assert_true(u[i].semaphore < f->program->semaphores.n);
        assert_true(!i || u[i].at_ps >= u[i - 1].at_ps);
    }
}

static void profile__no_gain_is_more_than_its_cost(void **state)
{
    const profile *f = profile_of(*state, LOAD LOAD LOAD SETS MATMUL DRAIN ADD STORE);
    bool repeated = false;
    for (uint32_t i = 0; i < f->findings.n; i++) {
        const finding *d = &f->findings.at[i];
        assert_true(d->gain_ns <= d->cost_ns && d->gain_ns >= 0);
        assert_true(!i || d->gain_ns <= f->findings.at[i - 1].gain_ns);
        repeated |= d->kind == FIND_REPEATED_LOAD;
    }
    assert_true(repeated);
}

// ---- forms

// Every bracket of a JSON text closes the last that is open, and strings end.
static void assert_json(const char *s)
{
    char open[64];
    int depth = 0;
    for (; *s; s++) {
        if (*s == '"') {
            for (s++; *s != '"'; s += 1 + (*s == '\\')) {
                assert_true(*s && (unsigned char)*s >= 0x20);
            }
        } else if (*s == '{' || *s == '[') {
            assert_true(depth < 64);
            open[depth++] = *s == '{' ? '}' : ']';
        } else if (*s == '}' || *s == ']') {
            assert_true(depth > 0 && open[--depth] == *s);
        } else if (*s == ',') {
            size_t n = strspn(s + 1, " \n");
            assert_true(s[1 + n] != '}' && s[1 + n] != ']' && s[1 + n] != ',');
        }
    }
    assert_int_equal(depth, 0);
}

static unsigned occurs(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *s = text; (s = strstr(s, what)); s++) {
        n++;
    }
    return n;
}

static void profile__json_is_json(void **state)
{
    const profile *f = profile_of(*state, ALL);
    textbuf t;
    text_init(&t, *state);
    profile_json(f, 1, true, &t);
    assert_json(t.at);
    assert_int_equal(occurs(t.at, "\"operands\": "), f->clock.events.n);
    assert_non_null(strstr(t.at, "dst=b float32[128,512]"));
    assert_non_null(strstr(t.at, "\"tensor_engine_active_time_percent\": "));
    profile two[2] = {*f, *f};
    t.len = 0;
    profile_json(two, 2, false, &t);
    assert_json(t.at);
    assert_int_equal(occurs(t.at, "\"summary\": "), 2);
}

static void profile__a_trace_has_all_tracks_and_flows(void **state)
{
    const profile *f = profile_of(*state, ALL);
    textbuf t;
    text_init(&t, *state);
    profile_perfetto(f, 1, &t);
    assert_json(t.at);
    unsigned flows = 0;
    for (uint32_t i = 0; i < f->clock.events.n; i++) {
        flows += f->clock.events.at[i].from != 0;
    }
    assert_true(flows > 0);
    assert_int_equal(occurs(t.at, "\"ph\":\"X\""), f->clock.events.n);
    assert_int_equal(occurs(t.at, "\"ph\":\"s\""), flows);
    assert_int_equal(occurs(t.at, "\"ph\":\"f\""), flows);
    for (unsigned k = 0; k < TRACK_COUNT; k++) {
        char name[64];
        snprintf(name, sizeof name, "\"thread_name\",\"args\":{\"name\":\"%s\"", track_name(k));
        assert_int_equal(strstr(t.at, name) != NULL, f->clock.track[k].count > 0);
    }
    for (uint32_t k = 0; k < f->program->semaphores.n; k++) {
        char name[64];
        snprintf(name, sizeof name, "\"name\":\"s%u ", k);
        assert_non_null(strstr(t.at, name));
    }
    assert_non_null(strstr(t.at, "SBUF bytes a partition"));
    assert_non_null(strstr(t.at, "PSUM bytes a partition"));
}

static void profile__the_page_holds_its_data(void **state)
{
    const profile *f = profile_of(*state, ALL);
    textbuf t;
    text_init(&t, *state);
    profile_html(f, 1, &t);
    char *data = strstr(t.at, "id=\"data\">");
    assert_non_null(data);
    data = strchr(data, '{');
    char *end = strstr(data, "</script>");
    assert_non_null(end);
    *end = 0;
    assert_json(data);
    assert_non_null(strstr(data, "\"ev_start\":["));
    assert_null(strstr(data, "http"));
}

static void profile__against_itself_nothing_changes(void **state)
{
    const profile *f = profile_of(*state, ALL);
    textbuf t;
    text_init(&t, *state);
    profile_against(f, 1, f, 1, &t);
    assert_non_null(strstr(t.at, "+0.00 %"));
    assert_null(strstr(t.at, "new"));
    for (const char *s = t.at; (s = strchr(s, '%')); s++) {
        assert_memory_equal(s - 6, "+0.00 ", 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IR_TEST(profile__sums_are_those_of_the_instructions),
        IR_TEST(profile__the_critical_path_is_the_whole_time),
        IR_TEST(profile__a_stall_names_what_it_waited_for),
        IR_TEST(profile__memory_is_in_use_from_the_first_to_the_last_touch),
        IR_TEST(profile__semaphores_never_go_below_zero),
        IR_TEST(profile__no_gain_is_more_than_its_cost),
        IR_TEST(profile__json_is_json),
        IR_TEST(profile__a_trace_has_all_tracks_and_flows),
        IR_TEST(profile__the_page_holds_its_data),
        IR_TEST(profile__against_itself_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
