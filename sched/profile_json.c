#include "sched/profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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

static void view_text(const profile *pr, uint32_t view, textbuf *out)
{
    const ir *p = pr->p;
    const ir_view *v = ir_view_ref(p, view);
    const ir_dim *d = ir_dims(p, v);
    text_printf(out, "%s %s[", pr->tensor_names[v->tensor], dtype_name((dtype)v->dtype));
    for (uint32_t k = 0; k < ir_ndim(p, v); k++) {
        text_printf(out, "%s%" PRIu32, k ? "," : "", d[k].count);
    }
    text_char(out, ']');
}

void operands_text(const profile *pr, uint32_t instr, textbuf *out)
{
    const ir_instr *in = &pr->p->instrs.at[instr];
    const char *sep = "";
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = pr->p->args.at[in->args + k];
        if (a.kind == IRA_VIEW || a.kind == IRA_OP) {
            text_printf(out, "%s%s=", sep, isa_table[in->op].params[k].name);
            sep = " ";
            if (a.kind == IRA_OP) {
                text_cstr(out, op_table[a.v].name);
            } else {
                view_text(pr, a.v, out);
            }
        }
    }
}

// ---- members

static void number(textbuf *out, double v)
{
    char b[40];
    if (isnan(v)) {
        text_cstr(out, "null");
    } else if (v >= -1e15 && v <= 1e15 && v == (double)(int64_t)v) {
        text_printf(out, "%" PRId64, (int64_t)v);
    } else {
        text_add(out, b, (size_t)text_double(b, v));
    }
}

// A ratio or number of flops has its unit in its name already.
static bool unit_in_name(const char *unit)
{
    return strcmp(unit, "ratio") == 0 || strcmp(unit, "flops") == 0;
}

static void member(textbuf *out, const char *name, const char *unit, double v, const char *sep)
{
    text_printf(out, "%s\n    \"%s%s%s\": ", sep, name, unit_in_name(unit) ? "" : "_",
                unit_in_name(unit) ? "" : unit);
    number(out, v);
}

static void summary(const profile *pr, textbuf *out)
{
    static const char *const keys[ENG_DMA] = {"tensor", "scalar", "vector", "gpsimd", "sync"};
    const char *sep = "";
#define METRIC(name, unit)                                                                         \
    member(out, #name, #unit, pr->sum.name##_##unit, sep);                                         \
    sep = ",";
#include "sched/profile.def"
    for (unsigned t = 0; t < ENG_DMA; t++) {
        const track_time *k = &pr->clock.track[t];
        double active = ns_of_ps(k->active_ps), total = pr->sum.total_time_ns;
        char name[64];
        struct {
            const char *what, *unit;
            double v;
        } rows[] = {{"active_time", "ns", active},
                    {"active_time", "percent", total > 0 ? 100 * active / total : 0},
                    {"instruction_time", "ns", ns_of_ps(k->busy_ps)},
                    {"instruction", "count", (double)k->count}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            snprintf(name, sizeof name, "%s_engine_%s", keys[t], rows[i].what);
            member(out, name, rows[i].unit, rows[i].v, ",");
        }
    }
}

static void engines(const profile *pr, textbuf *out)
{
    const char *sep = "";
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        const track_time *k = &pr->clock.track[t];
        if (!k->count && t >= ENG_DMA) {
            continue;
        }
        text_printf(out, "%s\n    {\"name\": \"%s\", \"active_time_ns\": ", sep, track_name(t));
        number(out, ns_of_ps(k->active_ps));
        text_cstr(out, ", \"active_time_percent\": ");
        number(out, 100 * ns_of_ps(k->active_ps) / pr->sum.total_time_ns);
        text_printf(out, ", \"instruction_time_ns\": ");
        number(out, ns_of_ps(k->busy_ps));
        text_printf(out, ", \"instruction_count\": %" PRIu64 ", \"wait_time_ns\": ", k->count);
        number(out, ns_of_ps(k->wait_ps));
        text_cstr(out, ", \"critical_time_ns\": ");
        number(out, pr->critical_ns[t]);
        if (t >= TRACK_DMA0) {
            const profile_queue *q = &pr->queue[t];
            text_printf(out,
                        ", \"transfer_bytes\": %" PRIu64 ", \"packet_count\": %" PRIu64
                        ", \"moving_time_ns\": ",
                        q->bytes, q->packets);
            number(out, q->moving_ns);
        }
        text_char(out, '}');
        sep = ",";
    }
}

static void place_members(const ir *p, uint32_t instr, textbuf *out)
{
    uint32_t line = 0, col = 0;
    const char *path = place_path(p, p->instrs.at[instr].place, &line, &col);
    text_cstr(out, "\"path\": ");
    json_quoted(out, path);
    text_printf(out, ", \"line\": %" PRIu32, line);
}

static void instr_members(const ir *p, uint32_t instr, textbuf *out)
{
    const ir_instr *in = &p->instrs.at[instr];
    text_printf(out, "\"instr\": %" PRIu32 ", \"engine\": \"%s\", \"opcode\": \"%s\", ", instr,
                engine_name((engine_id)in->engine), isa_table[in->op].name);
    place_members(p, instr, out);
}

static void findings(const profile *pr, textbuf *out)
{
    for (uint32_t i = 0; i < pr->findings.n; i++) {
        const finding *f = &pr->findings.at[i];
        text_printf(out, "%s\n    {\"kind\": \"%s\", \"text\": ", i ? "," : "",
                    finding_name(f->kind));
        json_quoted(out, f->text);
        text_cstr(out, ", \"cost_ns\": ");
        number(out, f->cost_ns);
        text_cstr(out, ", \"gain_ns\": ");
        number(out, f->gain_ns);
        text_cstr(out, ", \"at\": [");
        for (uint32_t k = 0; k < f->places; k++) {
            text_cstr(out, k ? ", {" : "{");
            instr_members(pr->p, f->at[k], out);
            text_char(out, '}');
        }
        text_cstr(out, "]}");
    }
}

static void stalls(const profile *pr, textbuf *out)
{
    for (uint32_t i = 0; i < pr->stalls.n; i++) {
        const profile_stall *s = &pr->stalls.at[i];
        text_printf(out, "%s\n    {", i ? "," : "");
        instr_members(pr->p, s->instr, out);
        text_printf(out, ", \"count\": %" PRIu64 ", \"lost_ns\": ", s->count);
        number(out, s->lost_ns);
        text_cstr(out, ", \"worst_ns\": ");
        number(out, s->worst_ns);
        text_cstr(out, ", \"waited_for\": ");
        if (s->by) {
            text_char(out, '{');
            instr_members(pr->p, s->by - 1, out);
            text_char(out, '}');
        } else {
            text_cstr(out, "null");
        }
        text_char(out, '}');
    }
}

static void lines(const profile *pr, textbuf *out)
{
    for (uint32_t i = 0; i < pr->lines.n; i++) {
        const profile_line *l = &pr->lines.at[i];
        text_printf(out, "%s\n    {\"path\": ", i ? "," : "");
        json_quoted(out, l->path);
        text_printf(out,
                    ", \"line\": %" PRIu32 ", \"count\": %" PRIu64 ", \"busy_ns\": %.3f, "
                    "\"wait_ns\": %.3f, \"critical_ns\": %.3f}",
                    l->line, l->count, l->busy_ns, l->wait_ns, l->critical_ns);
    }
}

static void opcodes(const profile *pr, textbuf *out)
{
    for (uint32_t i = 0; i < pr->opcodes.n; i++) {
        const profile_opcode *o = &pr->opcodes.at[i];
        text_printf(out,
                    "%s\n    {\"engine\": \"%s\", \"opcode\": \"%s\", \"count\": %" PRIu64
                    ", \"busy_ns\": %.3f, \"wait_ns\": %.3f, \"flops\": %" PRIu64
                    ", \"bytes\": %" PRIu64 "}",
                    i ? "," : "", engine_name((engine_id)o->engine), isa_table[o->op].name,
                    o->count, o->busy_ns, o->wait_ns, o->flops, o->bytes);
    }
}

static void instructions(const profile *pr, textbuf *out)
{
    const ir *p = pr->p;
    textbuf scratch;
    text_init(&scratch, out->mem);
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &pr->clock.events.at[i];
        text_printf(out, "%s\n    {\"start_ns\": %.3f, \"end_ns\": %.3f, \"issue_ns\": %.3f, ",
                    i ? "," : "", ns_of_ps(e->start_ps), ns_of_ps(e->end_ps),
                    ns_of_ps(e->issued_ps - e->start_ps));
        text_printf(out,
                    "\"engine\": \"%s\", \"opcode\": \"%s\", \"operands\": ", track_name(e->track),
                    isa_table[p->instrs.at[e->instr].op].name);
        scratch.len = 0;
        text_cstr(&scratch, "");
        operands_text(pr, e->instr, &scratch);
        json_quoted(out, scratch.at);
        text_cstr(out, ", ");
        place_members(p, e->instr, out);
        text_printf(out, ", \"wait_ns\": %.3f, \"waited_for\": ", ns_of_ps(e->wait_ps));
        if (e->waited_for) {
            text_printf(out, "%" PRIu32, e->waited_for - 1);
        } else {
            text_cstr(out, "null");
        }
        text_printf(out, ", \"instr\": %" PRIu32 "}", e->instr);
    }
}

static void core(const profile *pr, bool with_instructions, textbuf *out)
{
    static const struct {
        const char *name;
        void (*rows)(const profile *pr, textbuf *out);
    } tables[] = {{"engine", engines},
                  {"finding", findings},
                  {"stall", stalls},
                  {"line", lines},
                  {"opcode", opcodes}};
    text_cstr(out, "\"summary\": {");
    summary(pr, out);
    text_cstr(out, "\n  }");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        text_printf(out, ",\n  \"%s\": [", tables[i].name);
        tables[i].rows(pr, out);
        text_cstr(out, "\n  ]");
    }
    if (with_instructions) {
        text_cstr(out, ",\n  \"instruction\": [");
        instructions(pr, out);
        text_printf(out, "\n  ],\n  \"instructions_cut\": %s",
                    pr->clock.events_cut ? "true" : "false");
    }
}

void profile_json(const profile *cores, uint32_t n, bool with_instructions, textbuf *out)
{
    const ir *p = cores->p;
    text_cstr(out, "{\n  \"kernel\": ");
    json_quoted(out, ir_text(p, p->kernel));
    text_printf(out,
                ",\n  \"target\": \"%s\",\n  \"is_simulation\": true,\n  \"core_count\": %" PRIu32
                ",\n  ",
                p->target->name, n);
    core(cores, with_instructions, out);
    text_cstr(out, ",\n  \"other_cores\": [");
    for (uint32_t i = 1; i < n; i++) {
        text_cstr(out, "{\n  ");
        core(&cores[i], with_instructions, out);
        text_cstr(out, "\n  }");
    }
    text_cstr(out, "]\n}\n");
}
