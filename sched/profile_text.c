#include "sched/profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { LINES_SHOWN = 12, STALLS_SHOWN = 8, PATH_SHOWN = 44 };

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
    if (isnan(v)) {
        text_cstr(out, "not known: too many instructions ran");
    } else if (strcmp(unit, "ns") == 0) {
        time_text(out, v);
    } else if (strcmp(unit, "percent") == 0) {
        text_printf(out, "%.2f %%", v);
    } else if (strcmp(unit, "ratio") == 0) {
        text_printf(out, "%.2f", v);
    } else if (strcmp(unit, "count") == 0) {
        text_printf(out, "%.0f", v);
    } else if (strcmp(unit, "flops_per_ns") == 0) {
        text_printf(out, "%.1f GFLOP/s", v);
    } else if (strcmp(unit, "bytes_per_ns") == 0) {
        text_printf(out, "%.1f GB/s", v);
    } else {
        text_printf(out, "%.0f %s", v, unit);
    }
    text_char(out, '\n');
}

static void engines(const profile *pr, textbuf *out)
{
    text_cstr(out, "\nengine                       active  of total   issuing  instructions"
                   "      waits   critical\n");
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        const track_time *k = &pr->clock.track[t];
        if (!k->count && t >= TRACK_DMA0) {
            continue;
        }
        text_printf(out, "  %-20s %8.2f us %7.2f %% %6.2f us %13" PRIu64 " %7.2f us %7.2f us\n",
                    track_name(t), ns_of_ps(k->active_ps) / 1e3,
                    100 * ns_of_ps(k->active_ps) / pr->sum.total_time_ns,
                    ns_of_ps(k->busy_ps) / 1e3, k->count, ns_of_ps(k->wait_ps) / 1e3,
                    pr->critical_ns[t] / 1e3);
    }
}

static void queues(const profile *pr, textbuf *out)
{
    bool any = false;
    for (unsigned t = TRACK_DMA0; t < TRACK_COUNT; t++) {
        const profile_queue *q = &pr->queue[t];
        uint64_t n = pr->clock.track[t].count;
        if (!n || !q->packets) {
            continue;
        }
        if (!any) {
            text_cstr(out, "\nDMA queue               transfers         bytes   a transfer     a "
                           "packet       rate\n");
            any = true;
        }
        text_printf(out,
                    "  %-20s %10" PRIu64 " %13" PRIu64 " %12" PRIu64 " %12" PRIu64 " %6.1f GB/s\n",
                    track_name(t), n, q->bytes, q->bytes / n, q->bytes / q->packets,
                    q->moving_ns > 0 ? (double)q->bytes / q->moving_ns : 0);
    }
}

// "path:line", the end of a long path.
static const char *where(const char *path, uint32_t line, char *at, size_t size)
{
    size_t len = strlen(path);
    snprintf(at, size, "%s:%" PRIu32, len > PATH_SHOWN ? path + len - PATH_SHOWN : path, line);
    return at;
}

static const char *where_of(const profile *pr, uint32_t instr, char *at, size_t size)
{
    uint32_t line, col;
    const char *path = place_path(pr->p, pr->p->instrs.at[instr].place, &line, &col);
    return where(path, line, at, size);
}

static void lines(const profile *pr, textbuf *out)
{
    text_cstr(out, "\nline                              executed        busy       waits    "
                   "critical\n");
    for (uint32_t i = 0; i < pr->lines.n && i < LINES_SHOWN; i++) {
        const profile_line *l = &pr->lines.at[i];
        char at[64];
        text_printf(out, "  %-30s %9" PRIu64 " %8.2f us %8.2f us %8.2f us\n",
                    where(l->path, l->line, at, sizeof at), l->count, l->busy_ns / 1e3,
                    l->wait_ns / 1e3, l->critical_ns / 1e3);
    }
}

static void instr_name(const profile *pr, uint32_t instr, textbuf *out)
{
    const ir_instr *in = &pr->p->instrs.at[instr];
    char at[64];
    text_printf(out, "%s.%s (%s)", engine_name((engine_id)in->engine), isa_table[in->op].name,
                where_of(pr, instr, at, sizeof at));
}

static void stalls(const profile *pr, textbuf *out)
{
    text_cstr(out, pr->stalls.n ? "\nlongest stalls\n" : "\nno stalls\n");
    for (uint32_t i = 0; i < pr->stalls.n && i < STALLS_SHOWN; i++) {
        const profile_stall *s = &pr->stalls.at[i];
        text_printf(out, "  %8.2f us  ", s->lost_ns / 1e3);
        instr_name(pr, s->instr, out);
        text_printf(out, " in %" PRIu64 " executions\n               at most %.0f ns, for ",
                    s->count, s->worst_ns);
        if (s->by) {
            instr_name(pr, s->by - 1, out);
        } else {
            text_cstr(out, "an earlier instruction");
        }
        text_char(out, '\n');
    }
}

static void findings(const profile *pr, textbuf *out)
{
    text_cstr(out, pr->findings.n ? "\nwhat to do, largest gain first\n" : "\nno findings\n");
    for (uint32_t i = 0; i < pr->findings.n; i++) {
        const finding *f = &pr->findings.at[i];
        text_printf(out, "  %-15s", finding_name(f->kind));
        if (f->gain_ns > 0) {
            text_cstr(out, " gains up to ");
            time_text(out, f->gain_ns);
        }
        for (uint32_t k = 0; k < f->places; k++) {
            char at[64];
            text_printf(out, "%s%s", k ? ", " : "  ", where_of(pr, f->at[k], at, sizeof at));
        }
        text_printf(out, "\n      %s\n", f->text);
    }
}

void profile_text(const profile *cores, uint32_t n, textbuf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const profile *pr = &cores[i];
        text_printf(out, "%skernel %s on %s, simulated", i ? "\n" : "",
                    ir_text(pr->p, pr->p->kernel), pr->p->target->name);
        if (n > 1) {
            text_printf(out, ", core %" PRIu32 " of %" PRIu32, i, n);
        }
        text_cstr(out, "\n\n");
#define METRIC(name, unit) row(out, #name, #unit, pr->sum.name##_##unit);
#include "sched/profile.def"
        engines(pr, out);
        queues(pr, out);
        lines(pr, out);
        stalls(pr, out);
        findings(pr, out);
    }
}

// ---- two programs

// The text of a source line, without the blanks around it; empty when the program has no source.
static const char *line_text(const profile *pr, const profile_line *l, size_t *len)
{
    *len = 0;
    for (uint32_t f = 0; f < pr->p->files.n; f++) {
        const source *src = pr->p->files.at[f].src;
        if (!src || strcmp(src->name, l->path) != 0) {
            continue;
        }
        const char *at = src->text, *end = src->text + src->len;
        for (uint32_t n = 1; n < l->line && at; n++) {
            at = memchr(at, '\n', (size_t)(end - at));
            at = at ? at + 1 : NULL;
        }
        if (!at) {
            break;
        }
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        while (at < stop && (*at == ' ' || *at == '\t')) {
            at++;
        }
        while (stop > at && (stop[-1] == ' ' || stop[-1] == '\r')) {
            stop--;
        }
        *len = (size_t)(stop - at);
        return at;
    }
    return "";
}

static bool same_text(const profile *a, const profile_line *l, const profile *b,
                      const profile_line *m)
{
    size_t n, k;
    const char *x = line_text(a, l, &n), *y = line_text(b, m, &k);
    return n == k && memcmp(x, y, n) == 0;
}

// The line of b that l of a has become: in its place with its text; else elsewhere with its text;
// else in its place. taken: lines of b that have a partner.
static const profile_line *same_line(const profile *a, const profile_line *l, const profile *b,
                                     bool *taken)
{
    uint32_t best = UINT32_MAX, best_rank = 0;
    for (uint32_t i = 0; i < b->lines.n; i++) {
        const profile_line *m = &b->lines.at[i];
        bool place = m->line == l->line && strcmp(m->path, l->path) == 0;
        uint32_t rank = taken[i] ? 0 : same_text(a, l, b, m) ? (place ? 3 : 2) : place ? 1 : 0;
        if (rank > best_rank) {
            best = i;
            best_rank = rank;
        }
    }
    if (best == UINT32_MAX) {
        return NULL;
    }
    taken[best] = true;
    return &b->lines.at[best];
}

static void change(textbuf *out, const char *name, double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return;
    }
    text_printf(out, "  %-36s %14.1f %14.1f", name, a, b);
    if (fabs(a) > 0) {
        text_printf(out, " %+9.2f %%", 100 * (b - a) / a);
    } else {
        text_cstr(out, fabs(b) > 0 ? "       new  " : "            ");
    }
}

static void changed(textbuf *out, const char *name, double a, double b)
{
    size_t before = out->len;
    change(out, name, a, b);
    text_cstr(out, out->len > before ? "\n" : "");
}

static double spent(const profile_line *l)
{
    return l ? l->busy_ns + l->wait_ns : 0;
}

// One line of either; l or m may be NULL.
static void line_against(const profile *a, const profile_line *l, const profile *b,
                         const profile_line *m, textbuf *out)
{
    char at[64], name[96];
    size_t len;
    const char *text = l ? line_text(a, l, &len) : line_text(b, m, &len);
    where(l ? l->path : m->path, l ? l->line : m->line, at, sizeof at);
    if (l && m && l->line != m->line) {
        snprintf(name, sizeof name, "%s, now %" PRIu32, at, m->line);
    } else {
        snprintf(name, sizeof name, "%s", at);
    }
    change(out, name, spent(l), spent(m));
    text_printf(out, "  %.*s\n", (int)(len < 60 ? len : 60), text);
}

static void lines_against(const profile *a, const profile *b, textbuf *out)
{
    bool *taken = NEW_N(out->mem, bool, (size_t)b->lines.n + 1);
    for (uint32_t i = 0; i < a->lines.n; i++) {
        const profile_line *l = &a->lines.at[i];
        line_against(a, l, b, same_line(a, l, b, taken), out);
    }
    for (uint32_t i = 0; i < b->lines.n; i++) {
        if (!taken[i]) {
            line_against(a, NULL, b, &b->lines.at[i], out);
        }
    }
}

static void opcodes_against(const profile *a, const profile *b, textbuf *out)
{
    const profile *both[2] = {a, b};
    for (unsigned side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < both[side]->opcodes.n; i++) {
            const profile_opcode *o = &both[side]->opcodes.at[i];
            const profile *other = both[1 - side];
            double there = 0;
            bool found = false;
            for (uint32_t k = 0; k < other->opcodes.n; k++) {
                const profile_opcode *x = &other->opcodes.at[k];
                if (x->op == o->op && x->engine == o->engine) {
                    there = x->busy_ns;
                    found = true;
                }
            }
            char name[64];
            snprintf(name, sizeof name, "%s.%s", engine_name((engine_id)o->engine),
                     isa_table[o->op].name);
            if (side == 0 || !found) {
                changed(out, name, side ? there : o->busy_ns, side ? o->busy_ns : there);
            }
        }
    }
}

static void core_against(const profile *a, const profile *b, textbuf *out)
{
    text_printf(out, "%-38s %14s %14s\n", "", ir_text(a->p, a->p->kernel),
                ir_text(b->p, b->p->kernel));
#define METRIC(name, unit)                                                                         \
    changed(out, #name "_" #unit, a->sum.name##_##unit, b->sum.name##_##unit);
#include "sched/profile.def"
    text_cstr(out, "\nengines (active, ns)\n");
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        if (a->clock.track[t].count || b->clock.track[t].count) {
            changed(out, track_name(t), ns_of_ps(a->clock.track[t].active_ps),
                    ns_of_ps(b->clock.track[t].active_ps));
        }
    }
    text_cstr(out, "\ninstructions (issuing, ns)\n");
    opcodes_against(a, b, out);
    text_cstr(out, "\nlines (busy + waits, ns)\n");
    lines_against(a, b, out);
}

void profile_against(const profile *a, uint32_t na, const profile *b, uint32_t nb, textbuf *out)
{
    uint32_t n = na > nb ? na : nb;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = i < na ? i : 0, y = i < nb ? i : 0;
        if (n > 1) {
            text_printf(out,
                        "%score %" PRIu32 " of %" PRIu32 " against core %" PRIu32 " of %" PRIu32
                        "\n\n",
                        i ? "\n" : "", y, nb, x, na);
        }
        core_against(&a[x], &b[y], out);
    }
}
