#include "sched/profile.h"

#include <inttypes.h>

static double ns(int64_t ps)
{
    return (double)ps / 1000.0;
}

void json_quoted(textbuf *out, const char *s)
{
    text_char(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            text_char(out, '\\');
            text_char(out, (char)c);
        } else if (c < 0x20 || c == '<') {
            text_printf(out, "\\u%04x", c);
        } else {
            text_char(out, (char)c);
        }
    }
    text_char(out, '"');
}

// A count, ratio or number of flops has its unit in its name already.
static bool unit_in_name(const char *unit)
{
    return strcmp(unit, "count") == 0 || strcmp(unit, "ratio") == 0 || strcmp(unit, "flops") == 0;
}

static void number(textbuf *out, double v)
{
    char b[40];
    if (v >= -1e15 && v <= 1e15 && v == (double)(int64_t)v) {
        text_printf(out, "%" PRId64, (int64_t)v);
        return;
    }
    text_add(out, b, (size_t)text_double(b, v));
}

static void member(textbuf *out, const char *name, const char *unit, double v, bool first)
{
    text_printf(out, "%s\n    \"%s%s%s\": ", first ? "" : ",", name, unit_in_name(unit) ? "" : "_",
                unit_in_name(unit) ? "" : unit);
    number(out, v);
}

static const char *key_of(unsigned track)
{
    static const char *const keys[ENG_DMA] = {"tensor", "scalar", "vector", "gpsimd", "sync"};
    return keys[track];
}

static void summary(const profile *pr, textbuf *out)
{
    bool first = true;
#define X(name, unit)                                                                              \
    member(out, #name, #unit, pr->sum.name##_##unit, first);                                       \
    first = false;
    PROFILE_SUMMARY(X)
#undef X
    for (unsigned t = 0; t < ENG_DMA; t++) {
        const track_time *k = &pr->clock.track[t];
        double active = ns(k->active_ps), total = pr->sum.total_time_ns;
        text_printf(out, ",\n    \"%s_engine_active_time_ns\": ", key_of(t));
        number(out, active);
        text_printf(out, ",\n    \"%s_engine_active_time_percent\": ", key_of(t));
        number(out, total > 0 ? 100 * active / total : 0);
        text_printf(out, ",\n    \"%s_engine_instruction_time_ns\": ", key_of(t));
        number(out, ns(k->busy_ps));
        text_printf(out, ",\n    \"%s_engine_instruction_count\": %" PRIu64, key_of(t), k->count);
    }
}

static void engines(const profile *pr, textbuf *out)
{
    bool first = true;
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        const track_time *k = &pr->clock.track[t];
        if (!k->count && t >= ENG_DMA) {
            continue;
        }
        text_printf(out, "%s\n    {\"name\": \"%s\", \"active_time_ns\": ", first ? "" : ",",
                    track_name(t));
        number(out, ns(k->active_ps));
        text_cstr(out, ", \"active_time_percent\": ");
        number(out, 100 * ns(k->active_ps) / pr->sum.total_time_ns);
        text_printf(out, ", \"instruction_count\": %" PRIu64 ", \"wait_time_ns\": ", k->count);
        number(out, ns(k->wait_ps));
        text_char(out, '}');
        first = false;
    }
}

static void place_members(const ir *p, uint32_t instr, textbuf *out)
{
    uint32_t line = 0, col = 0;
    const char *path =
        instr == UINT32_MAX ? "" : place_path(p, p->instrs.at[instr].place, &line, &col);
    text_cstr(out, "\"path\": ");
    json_quoted(out, path);
    text_printf(out, ", \"line\": %" PRIu32, line);
}

static void findings(const profile *pr, textbuf *out)
{
    for (uint32_t i = 0; i < pr->findings.n; i++) {
        const finding *f = &pr->findings.at[i];
        text_printf(out, "%s\n    {\"kind\": \"%s\", \"text\": ", i ? "," : "",
                    finding_name(f->kind));
        json_quoted(out, f->text);
        text_cstr(out, ", ");
        place_members(pr->p, f->instr, out);
        text_cstr(out, ", \"cost_ns\": ");
        number(out, f->cost_ns);
        text_char(out, '}');
    }
}

static void view_text(const ir *p, uint32_t view, textbuf *out)
{
    const ir_view *v = &p->views.at[view];
    const ir_dim *d = ir_dims(p, v);
    text_printf(out, "%s %s[", ir_text(p, p->tensors.at[v->tensor].name),
                dtype_name((dtype)v->dtype));
    for (uint32_t k = 0; k < ir_ndim(p, v); k++) {
        text_printf(out, "%s%" PRIu32, k ? "," : "", d[k].count);
    }
    text_char(out, ']');
}

// Operands of an instruction as "dst=... data=...".
static void operands(const ir *p, uint32_t instr, textbuf *scratch, textbuf *out)
{
    const ir_instr *in = &p->instrs.at[instr];
    scratch->len = 0;
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (a.kind == IRA_VIEW || a.kind == IRA_OP) {
            text_printf(scratch, "%s%s=", scratch->len ? " " : "",
                        isa_table[in->op].params[k].name);
            if (a.kind == IRA_OP) {
                text_cstr(scratch, op_table[a.v].name);
            } else {
                view_text(p, a.v, scratch);
            }
        }
    }
    json_quoted(out, scratch->len ? scratch->at : "");
}

static void instructions(const profile *pr, textbuf *out)
{
    const ir *p = pr->p;
    textbuf scratch;
    text_init(&scratch, out->mem);
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &pr->clock.events.at[i];
        text_printf(out, "%s\n    {\"start_ns\": %.3f, \"end_ns\": %.3f, \"issue_ns\": %.3f, ",
                    i ? "," : "", ns(e->start_ps), ns(e->end_ps), ns(e->issued_ps - e->start_ps));
        text_printf(out,
                    "\"engine\": \"%s\", \"opcode\": \"%s\", \"operands\": ", track_name(e->track),
                    isa_table[p->instrs.at[e->instr].op].name);
        operands(p, e->instr, &scratch, out);
        text_cstr(out, ", ");
        place_members(p, e->instr, out);
        text_printf(out, ", \"wait_ns\": %.3f, \"waited_for\": ", ns(e->wait_ps));
        if (e->waited_for) {
            text_printf(out, "%" PRIu32, e->waited_for - 1);
        } else {
            text_cstr(out, "null");
        }
        text_printf(out, ", \"instr\": %" PRIu32 "}", e->instr);
    }
}

void profile_json(const profile *pr, bool with_instructions, textbuf *out)
{
    text_cstr(out, "{\n  \"kernel\": ");
    json_quoted(out, ir_text(pr->p, pr->p->kernel));
    text_printf(out, ",\n  \"target\": \"%s\",\n  \"is_simulation\": true,\n  \"summary\": {",
                pr->p->target->name);
    summary(pr, out);
    text_cstr(out, "\n  },\n  \"engine\": [");
    engines(pr, out);
    text_cstr(out, "\n  ],\n  \"finding\": [");
    findings(pr, out);
    text_cstr(out, "\n  ],\n  \"line\": [");
    for (uint32_t i = 0; i < pr->lines.n; i++) {
        const profile_line *l = &pr->lines.at[i];
        text_printf(out, "%s\n    {\"path\": ", i ? "," : "");
        json_quoted(out, l->path);
        text_printf(out,
                    ", \"line\": %" PRIu32 ", \"count\": %" PRIu64 ", \"busy_ns\": %.3f, "
                    "\"wait_ns\": %.3f}",
                    l->line, l->count, l->busy_ns, l->wait_ns);
    }
    text_cstr(out, "\n  ]");
    if (with_instructions) {
        text_cstr(out, ",\n  \"instruction\": [");
        instructions(pr, out);
        text_printf(out, "\n  ],\n  \"instructions_cut\": %s",
                    pr->clock.events_cut ? "true" : "false");
    }
    text_cstr(out, "\n}\n");
}

// RFC 4180.
static void csv_field(textbuf *out, const char *s)
{
    if (!strpbrk(s, ",\"\n\r")) {
        text_cstr(out, s);
        return;
    }
    text_char(out, '"');
    for (; *s; s++) {
        if (*s == '"') {
            text_char(out, '"');
        }
        text_char(out, *s);
    }
    text_char(out, '"');
}

void profile_csv(const profile *pr, textbuf *out)
{
    const ir *p = pr->p;
    text_cstr(out, "start_ts,end_ts,duration_ns,engine,opcode,nki_source_location,"
                   "evt_wait_time_ns,instr\n");
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &pr->clock.events.at[i];
        uint32_t line, col;
        const char *path = place_path(p, p->instrs.at[e->instr].place, &line, &col);
        text_printf(out, "%.3f,%.3f,%.3f,%s,%s,", ns(e->start_ps), ns(e->end_ps),
                    ns(e->end_ps - e->start_ps), track_name(e->track),
                    isa_table[p->instrs.at[e->instr].op].name);
        csv_field(out, path);
        text_printf(out, ":%" PRIu32 ",%.3f,%" PRIu32 "\n", line, ns(e->wait_ps), e->instr);
    }
}

// The trace-event form that Perfetto and Chrome read: one process, a thread for each track, flows
// from what an instruction waited for.
void profile_perfetto(const profile *pr, textbuf *out)
{
    const ir *p = pr->p;
    text_cstr(out, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
    text_cstr(out, "\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    json_quoted(out, ir_text(p, p->kernel));
    text_cstr(out, "}}");
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        text_printf(out,
                    ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":"
                    "{\"name\":\"%s\"}}",
                    t + 1, track_name(t));
        text_printf(out,
                    ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_sort_index\","
                    "\"args\":{\"sort_index\":%u}}",
                    t + 1, t);
    }
    const clock_event *all = pr->clock.events.at;
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &all[i];
        // A slice ends when the next may begin, so that slices of one track never overlap.
        int64_t end = e->track < TRACK_DMA0 ? e->issued_ps : e->end_ps;
        uint32_t line, col;
        const char *path = place_path(p, p->instrs.at[e->instr].place, &line, &col);
        text_printf(out,
                    ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,"
                    "\"name\":\"%s\",\"args\":{\"at\":",
                    e->track + 1u, ns(e->start_ps) / 1e3, ns(end - e->start_ps) / 1e3,
                    isa_table[p->instrs.at[e->instr].op].name);
        json_quoted(out, path);
        text_printf(out, ",\"line\":%" PRIu32 ",\"wait_ns\":%.3f,\"instr\":%" PRIu32 "}}", line,
                    ns(e->wait_ps), e->instr);
        if (e->from) {
            const clock_event *f = &all[e->from - 1];
            text_printf(out,
                        ",\n{\"ph\":\"s\",\"pid\":1,\"tid\":%u,\"ts\":%.6f,\"id\":%" PRIu32
                        ",\"name\":\"waits\",\"cat\":\"dep\"},\n{\"ph\":\"f\",\"bp\":\"e\","
                        "\"pid\":1,\"tid\":%u,\"ts\":%.6f,\"id\":%" PRIu32
                        ",\"name\":\"waits\",\"cat\":\"dep\"}",
                        f->track + 1u, ns(f->start_ps) / 1e3, i + 1, e->track + 1u,
                        ns(e->start_ps) / 1e3, i + 1);
        }
    }
    text_cstr(out, "\n]}\n");
}
