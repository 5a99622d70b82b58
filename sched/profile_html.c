#include "sched/profile.h"

#include <inttypes.h>

// One page that needs nothing else: data as a script, then the page of profile_page.def.

static const char *const page_lines[] = {
#define LINE(text) text "\n",
#include "sched/profile_page.def"
#undef LINE
};

static double ns(int64_t ps)
{
    return (double)ps / 1000.0;
}

static void files(const ir *p, textbuf *out)
{
    text_cstr(out, "files:[");
    for (uint32_t i = 0; i < p->files.n; i++) {
        const ir_file *f = &p->files.at[i];
        text_cstr(out, i ? ",[" : "[");
        json_quoted(out, f->src ? f->src->name : ir_text(p, f->name));
        text_char(out, ',');
        json_quoted(out, f->src ? arena_text(out->mem, f->src->text, f->src->len) : "");
        text_char(out, ']');
    }
    text_cstr(out, "],\n");
}

// Number of the file with this path; -1: none.
static int file_of(const ir *p, const char *path)
{
    for (uint32_t i = 0; i < p->files.n; i++) {
        const ir_file *f = &p->files.at[i];
        if (strcmp(f->src ? f->src->name : ir_text(p, f->name), path) == 0) {
            return (int)i;
        }
    }
    return -1;
}

// [opcode, file, line] of each instruction.
static void instructions(const ir *p, textbuf *out)
{
    text_cstr(out, "ins:[");
    uint32_t last = UINT32_MAX, line = 0, col;
    int file = -1;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *in = &p->instrs.at[i];
        if (in->place != last) {
            last = in->place;
            file = file_of(p, place_path(p, last, &line, &col));
        }
        text_printf(out, "%s[\"%s\",%d,%" PRIu32 "]", i ? "," : "", isa_table[in->op].name, file,
                    line);
    }
    text_cstr(out, "],\n");
}

// [track, start, slice, end, instruction, wait, waited for + 1, event waited for + 1], times in ns.
static void events(const profile *pr, textbuf *out)
{
    text_cstr(out, "ev:[");
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &pr->clock.events.at[i];
        int64_t slice = (e->track < TRACK_DMA0 ? e->issued_ps : e->end_ps) - e->start_ps;
        text_printf(out, "%s[%u,%.1f,%.1f,%.1f,%" PRIu32 ",%.1f,%" PRIu32 ",%" PRIu32 "]",
                    i ? "," : "", e->track, ns(e->start_ps), ns(slice), ns(e->end_ps), e->instr,
                    ns(e->wait_ps), e->waited_for, e->from);
    }
    text_cstr(out, "],\n");
}

static void rest(const profile *pr, textbuf *out)
{
    const ir *p = pr->p;
    text_cstr(out, "tracks:[");
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        text_printf(out, "%s[\"%s\",%.1f,%" PRIu64 "]", t ? "," : "", track_name(t),
                    ns(pr->clock.track[t].active_ps), pr->clock.track[t].count);
    }
    text_cstr(out, "],\nlines:[");
    for (uint32_t i = 0; i < pr->lines.n; i++) {
        const profile_line *l = &pr->lines.at[i];
        text_printf(out, "%s[%d,%" PRIu32 ",%" PRIu64 ",%.1f,%.1f]", i ? "," : "",
                    file_of(p, l->path), l->line, l->count, l->busy_ns, l->wait_ns);
    }
    text_cstr(out, "],\nfindings:[");
    for (uint32_t i = 0; i < pr->findings.n; i++) {
        const finding *f = &pr->findings.at[i];
        text_printf(out, "%s[\"%s\",%.1f,%d,", i ? "," : "", finding_name(f->kind), f->cost_ns,
                    f->instr == UINT32_MAX ? -1 : (int)f->instr);
        json_quoted(out, f->text);
        text_char(out, ']');
    }
    text_cstr(out, "],\nsummary:{");
    bool first = true;
#define X(name, unit)                                                                              \
    text_printf(out, "%s\"%s (%s)\":%.6g", first ? "" : ",", #name, #unit, pr->sum.name##_##unit); \
    first = false;
    PROFILE_SUMMARY(X)
#undef X
    text_printf(out, "},\ncut:%s,kernel:", pr->clock.events_cut ? "true" : "false");
    json_quoted(out, ir_text(p, p->kernel));
    text_printf(out, ",target:\"%s\",end:%.1f", p->target->name, ns(pr->clock.end_ps));
}

void profile_html(const profile *pr, textbuf *out)
{
    text_cstr(out,
              "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width\"><title>nki profile</title>\n"
              "<script>\"use strict\";\nconst D={\n");
    files(pr->p, out);
    instructions(pr->p, out);
    events(pr, out);
    rest(pr, out);
    text_cstr(out, "};\n</script>\n");
    for (size_t i = 0; i < sizeof page_lines / sizeof *page_lines; i++) {
        text_cstr(out, page_lines[i]);
    }
}
