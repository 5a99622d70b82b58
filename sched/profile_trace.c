#include "sched/profile.h"

#include <inttypes.h>
#include <stdio.h>

// The trace-event form that Perfetto and Chrome read: a process for each core, a thread for each
// engine and lane of a DMA queue, a counter for each semaphore and memory, a flow for each wait.

enum { LANES = 4, TID_LANES = 16 };  // lanes of one DMA queue: transfers in flight overlap

static void name_of_thread(textbuf *out, uint32_t pid, unsigned tid, const char *name,
                           unsigned lane)
{
    text_printf(out,
                ",\n{\"ph\":\"M\",\"pid\":%" PRIu32
                ",\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"%s",
                pid, tid, name);
    if (lane) {
        text_printf(out, " (%u)", lane + 1);
    }
    text_printf(out,
                "\"}},\n{\"ph\":\"M\",\"pid\":%" PRIu32
                ",\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}",
                pid, tid, tid);
}

static unsigned tid_of(unsigned track, unsigned lane)
{
    return 1 + track * TID_LANES + lane;
}

// The lane of each kept event: engines have one; a queue's transfer takes the first that is free.
static uint8_t *lanes_of(const profile *pr, arena *mem, unsigned used[TRACK_COUNT])
{
    const clock_event *ev = pr->clock.events.at;
    uint8_t *lane = NEW_N(mem, uint8_t, pr->clock.events.n + 1);
    int64_t until[TRACK_COUNT][LANES] = {{0}};
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &ev[i];
        unsigned best = 0;
        for (unsigned k = 0; k < LANES && e->track >= TRACK_DMA0; k++) {
            if (until[e->track][k] <= e->start_ps) {
                best = k;
                break;
            }
            best = until[e->track][k] < until[e->track][best] ? k : best;
        }
        until[e->track][best] = e->end_ps;
        lane[i] = (uint8_t)best;
        used[e->track] = used[e->track] > best + 1 ? used[e->track] : best + 1;
    }
    return lane;
}

static void slice(const profile *pr, uint32_t pid, const clock_event *e, unsigned lane,
                  textbuf *out)
{
    const ir *p = pr->p;
    // A slice of an engine ends when the next may begin, so that slices of one thread never
    // overlap.
    int64_t end = e->track < TRACK_DMA0 ? e->issued_ps : e->end_ps;
    uint32_t line, col;
    const char *path = place_path(p, p->instrs.at[e->instr].place, &line, &col);
    text_printf(out,
                ",\n{\"ph\":\"X\",\"pid\":%" PRIu32
                ",\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,\"name\":\"%s\",\"args\":{\"at\":",
                pid, tid_of(e->track, lane), ns_of_ps(e->start_ps) / 1e3,
                ns_of_ps(end - e->start_ps) / 1e3, isa_table[p->instrs.at[e->instr].op].name);
    json_quoted(out, path);
    text_printf(out,
                ",\"line\":%" PRIu32 ",\"wait_ns\":%.3f,\"done_ns\":%.3f,\"instr\":%" PRIu32 "}}",
                line, ns_of_ps(e->wait_ps), ns_of_ps(e->end_ps - e->start_ps), e->instr);
}

static void flow(uint32_t pid, uint32_t id, const clock_event *from, unsigned from_lane,
                 const clock_event *to, unsigned to_lane, textbuf *out)
{
    text_printf(out,
                ",\n{\"ph\":\"s\",\"pid\":%" PRIu32 ",\"tid\":%u,\"ts\":%.6f,\"id\":%" PRIu32
                ",\"name\":\"waits\",\"cat\":\"dep\"},\n{\"ph\":\"f\",\"bp\":\"e\",\"pid\":%" PRIu32
                ",\"tid\":%u,\"ts\":%.6f,\"id\":%" PRIu32 ",\"name\":\"waits\",\"cat\":\"dep\"}",
                pid, tid_of(from->track, from_lane), ns_of_ps(from->start_ps) / 1e3, id, pid,
                tid_of(to->track, to_lane), ns_of_ps(to->start_ps) / 1e3, id);
}

static void counter(uint32_t pid, const char *name, int64_t at_ps, int64_t value, textbuf *out)
{
    text_printf(out,
                ",\n{\"ph\":\"C\",\"pid\":%" PRIu32
                ",\"ts\":%.6f,\"name\":\"%s\",\"args\":{\"value\":%" PRId64 "}}",
                pid, ns_of_ps(at_ps) / 1e3, name, value);
}

static void memory(const profile *pr, uint32_t pid, textbuf *out)
{
    static const char *const names[2] = {"SBUF bytes a partition", "PSUM bytes a partition"};
    for (unsigned k = 0; k < 2; k++) {
        profile_step *at;
        uint32_t n = profile_memory_steps(pr, out->mem, k == 0 ? BUF_SBUF : BUF_PSUM, &at);
        for (uint32_t i = 0; i < n; i++) {
            counter(pid, names[k], at[i].at_ps, at[i].value, out);
        }
    }
}

static void semaphores(const profile *pr, uint32_t pid, textbuf *out)
{
    profile_update *u;
    uint32_t n = profile_updates(pr, out->mem, &u);
    for (uint32_t i = 0; i < n; i++) {
        const semaphore_info *s = &pr->program->semaphores.at[u[i].semaphore];
        char name[64];
        snprintf(name, sizeof name, "s%" PRIu32 " %s to %s", u[i].semaphore,
                 stream_name(s->producer), stream_name(s->consumer));
        counter(pid, name, u[i].at_ps, u[i].value, out);
    }
}

static void core(const profile *pr, uint32_t number, uint32_t n, uint32_t *id, textbuf *out)
{
    uint32_t pid = number + 1;
    unsigned used[TRACK_COUNT] = {0};
    const uint8_t *lane = lanes_of(pr, out->mem, used);
    text_printf(
        out, "%s\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"name\":\"process_name\",\"args\":{\"name\":",
        number ? "," : "", pid);
    const char *kernel = ir_text(pr->p, pr->p->kernel);
    json_quoted(out, n > 1 ? arena_printf(out->mem, "%s core %" PRIu32, kernel, number) : kernel);
    text_cstr(out, "}}");
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        for (unsigned k = 0; k < used[t]; k++) {
            name_of_thread(out, pid, tid_of(t, k), track_name(t), k);
        }
    }
    const clock_event *all = pr->clock.events.at;
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &all[i];
        slice(pr, pid, e, lane[i], out);
        if (e->from) {
            flow(pid, ++*id, &all[e->from - 1], lane[e->from - 1], e, lane[i], out);
        }
    }
    memory(pr, pid, out);
    semaphores(pr, pid, out);
}

void profile_perfetto(const profile *cores, uint32_t n, textbuf *out)
{
    uint32_t id = 0;
    text_cstr(out, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
    for (uint32_t i = 0; i < n; i++) {
        core(&cores[i], i, n, &id, out);
    }
    text_cstr(out, "\n]}\n");
}
