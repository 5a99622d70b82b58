#include "sched/profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { LINES_SHOWN = 12 };

static double ns(int64_t ps)
{
    return (double)ps / 1000.0;
}

static void time_text(textbuf *out, double t)
{
    if (t >= 1e6) {
        text_printf(out, "%.3f ms", t / 1e6);
    } else if (t >= 1e4) {
        text_printf(out, "%.2f us", t / 1e3);
    } else {
        text_printf(out, "%.0f ns", t);
    }
}

static void row(textbuf *out, const char *name, const char *unit, double v)
{
    text_printf(out, "  %-34s ", name);
    if (strcmp(unit, "ns") == 0) {
        time_text(out, v);
    } else if (strcmp(unit, "percent") == 0) {
        text_printf(out, "%.2f %%", v);
    } else if (strcmp(unit, "ratio") == 0) {
        text_printf(out, "%.2f", v);
    } else if (strcmp(unit, "count") == 0) {
        text_printf(out, "%.0f", v);
    } else {
        text_printf(out, "%.0f %s", v, unit);
    }
    text_char(out, '\n');
}

static void engines(const profile *pr, textbuf *out)
{
    text_cstr(out,
              "\nengine                       active      of total   instructions       waits\n");
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        const track_time *k = &pr->clock.track[t];
        if (!k->count && t >= TRACK_DMA0) {
            continue;
        }
        text_printf(out, "  %-20s %11.2f us %9.2f %% %14" PRIu64 " %8.2f us\n", track_name(t),
                    ns(k->active_ps) / 1e3, 100 * ns(k->active_ps) / pr->sum.total_time_ns,
                    k->count, ns(k->wait_ps) / 1e3);
    }
}

static void findings(const profile *pr, textbuf *out)
{
    const ir *p = pr->p;
    text_cstr(out, pr->findings.n ? "\nwhat to do, dearest first\n" : "\nno findings\n");
    for (uint32_t i = 0; i < pr->findings.n; i++) {
        const finding *f = &pr->findings.at[i];
        text_printf(out, "  %-15s up to ", finding_name(f->kind));
        time_text(out, f->cost_ns);
        if (f->instr != UINT32_MAX) {
            uint32_t line, col;
            const char *path = place_path(p, p->instrs.at[f->instr].place, &line, &col);
            text_printf(out, "  %s:%" PRIu32, path, line);
        }
        text_printf(out, "\n      %s\n", f->text);
    }
}

void profile_text(const profile *pr, textbuf *out)
{
    text_printf(out, "kernel %s on %s, simulated\n\n", ir_text(pr->p, pr->p->kernel),
                pr->p->target->name);
#define X(name, unit) row(out, #name, #unit, pr->sum.name##_##unit);
    PROFILE_SUMMARY(X)
#undef X
    engines(pr, out);
    text_cstr(out, "\nline                              executed        busy       waits\n");
    for (uint32_t i = 0; i < pr->lines.n && i < LINES_SHOWN; i++) {
        const profile_line *l = &pr->lines.at[i];
        char at[64];
        size_t len = strlen(l->path);
        snprintf(at, sizeof at, "%s:%" PRIu32, len > 40 ? l->path + len - 40 : l->path, l->line);
        text_printf(out, "  %-30s %9" PRIu64 " %8.2f us %8.2f us\n", at, l->count, l->busy_ns / 1e3,
                    l->wait_ns / 1e3);
    }
    findings(pr, out);
}

// ---- two programs

static const profile_line *same_line(const profile *b, const profile_line *l)
{
    for (uint32_t i = 0; i < b->lines.n; i++) {
        if (b->lines.at[i].line == l->line && strcmp(b->lines.at[i].path, l->path) == 0) {
            return &b->lines.at[i];
        }
    }
    return NULL;
}

static void change(textbuf *out, const char *name, double a, double b)
{
    text_printf(out, "  %-34s %14.1f %14.1f %+9.2f %%\n", name, a, b,
                fabs(a) > 0 ? 100 * (b - a) / a : 0);
}

void profile_against(const profile *a, const profile *b, textbuf *out)
{
    text_printf(out, "%-36s %14s %14s\n", "", ir_text(a->p, a->p->kernel),
                ir_text(b->p, b->p->kernel));
#define X(name, unit) change(out, #name "_" #unit, a->sum.name##_##unit, b->sum.name##_##unit);
    PROFILE_SUMMARY(X)
#undef X
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        if (a->clock.track[t].count || b->clock.track[t].count) {
            change(out, track_name(t), ns(a->clock.track[t].active_ps),
                   ns(b->clock.track[t].active_ps));
        }
    }
    text_cstr(out, "\nlines (busy + waits, ns)\n");
    for (uint32_t i = 0; i < a->lines.n; i++) {
        const profile_line *l = &a->lines.at[i], *m = same_line(b, l);
        char at[64];
        snprintf(at, sizeof at, "%.50s:%" PRIu32, l->path, l->line);
        change(out, at, l->busy_ns + l->wait_ns, m ? m->busy_ns + m->wait_ns : 0);
    }
    for (uint32_t i = 0; i < b->lines.n; i++) {
        const profile_line *m = &b->lines.at[i];
        if (!same_line(a, m)) {
            char at[64];
            snprintf(at, sizeof at, "%.50s:%" PRIu32, m->path, m->line);
            change(out, at, 0, m->busy_ns + m->wait_ns);
        }
    }
}
