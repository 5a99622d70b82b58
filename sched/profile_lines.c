#include "sched/profile_make.h"

#include <stdlib.h>

typedef struct line_key {
    const char *path;
    uint32_t line, instr;
    uint8_t engine;
} line_key;

static int by_line(const void *a, const void *b)
{
    const line_key *x = a, *y = b;
    int c = strcmp(x->path, y->path);
    if (c != 0) {
        return c;
    }
    if (x->line != y->line) {
        return x->line < y->line ? -1 : 1;
    }
    if (x->engine != y->engine) {
        return x->engine < y->engine ? -1 : 1;
    }
    return (x->instr > y->instr) - (x->instr < y->instr);
}

static int most_time(const void *a, const void *b)
{
    const profile_line *x = a, *y = b;
    double p = x->busy_ns + x->wait_ns, q = y->busy_ns + y->wait_ns;
    return p != q ? (p < q ? 1 : -1) : (x->line > y->line) - (x->line < y->line);
}

static int most_lost(const void *a, const void *b)
{
    const profile_stall *x = a, *y = b;
    return x->lost_ns != y->lost_ns ? (x->lost_ns < y->lost_ns ? 1 : -1)
                                    : (x->instr > y->instr) - (x->instr < y->instr);
}

static line_key *keys_of(maker *mk, uint32_t *n)
{
    const ir *p = mk->pr->p;
    line_key *k = NEW_N(mk->mem, line_key, p->instrs.n + 1);
    *n = 0;
    uint32_t last_place = UINT32_MAX, line = 0, col;
    const char *path = "";
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        if (!mk->pr->clock.of[i].count) {
            continue;
        }
        if (p->instrs.at[i].place != last_place) {
            last_place = p->instrs.at[i].place;
            path = place_path(p, last_place, &line, &col);
        }
        k[(*n)++] = (line_key){path, line, i, p->instrs.at[i].engine};
    }
    qsort(k, *n, sizeof *k, by_line);
    return k;
}

// Instructions of one line on one engine, from k on. Returns how many.
static uint32_t add_engine(maker *mk, const line_key *k, uint32_t n, profile_line *l)
{
    const clock_result *c = &mk->pr->clock;
    profile_stall s = {.instr = k->instr};
    uint32_t j = 0;
    for (; j < n && k[j].engine == k->engine && k[j].line == k->line &&
           strcmp(k[j].path, k->path) == 0;
         j++) {
        const instr_time *t = &c->of[k[j].instr];
        l->count += t->count;
        l->busy_ns += ns_of_ps(t->busy_ps);
        l->critical_ns += mk->critical_ns[k[j].instr];
        s.count += t->count;
        s.lost_ns += ns_of_ps(t->wait_ps);
        if (ns_of_ps(t->worst_ps) > s.worst_ns) {
            s.worst_ns = ns_of_ps(t->worst_ps);
            s.instr = k[j].instr;
            s.by = t->waited_for;
        }
    }
    // A DMA queue that waits for its turn costs nobody until an engine waits for it.
    if (k->engine != ENG_DMA && s.lost_ns > 0) {
        l->wait_ns += s.lost_ns;
        vec_push(mk->mem, &mk->pr->stalls, s);
    }
    return j;
}

void make_lines(maker *mk)
{
    profile *pr = mk->pr;
    uint32_t n;
    const line_key *k = keys_of(mk, &n);
    for (uint32_t i = 0; i < n;) {
        profile_line l = {.path = k[i].path, .line = k[i].line};
        while (i < n && k[i].line == l.line && strcmp(k[i].path, l.path) == 0) {
            i += add_engine(mk, &k[i], n - i, &l);
        }
        vec_push(mk->mem, &pr->lines, l);
    }
    if (pr->lines.n) {
        qsort(pr->lines.at, pr->lines.n, sizeof *pr->lines.at, most_time);
    }
    if (pr->stalls.n) {
        qsort(pr->stalls.at, pr->stalls.n, sizeof *pr->stalls.at, most_lost);
    }
}

// ---- the critical path

// What let an execution start: what it waited for, or the one before it in its queue, whichever
// let go later. An engine lets the next start when it has issued, a ring when it is triggered.
static uint32_t starter(const clock_event *ev, uint32_t at, uint32_t before)
{
    const clock_event *e = &ev[at];
    if (!e->from || before == UINT32_MAX) {
        return e->from ? e->from - 1 : before;
    }
    const clock_event *b = &ev[before];
    int64_t free = b->track < TRACK_DMA0 ? b->issued_ps : b->start_ps;
    return ev[e->from - 1].end_ps >= free ? e->from - 1 : before;
}

// From the execution that ends last back to what let it start, and so on. Each gets the time from
// its own start to that of the next on the path.
void make_critical(maker *mk)
{
    profile *pr = mk->pr;
    const clock_event *ev = pr->clock.events.at;
    uint32_t n = pr->clock.events.n, at = UINT32_MAX;
    mk->critical_ns = NEW_N(mk->mem, double, pr->p->instrs.n + 1);
    if (!n || pr->clock.events_cut) {
        return;
    }
    uint32_t *before = NEW_N(mk->mem, uint32_t, n), last[TRACK_COUNT];
    memset(last, 0xff, sizeof last);
    for (uint32_t i = 0; i < n; i++) {
        before[i] = last[ev[i].track];
        last[ev[i].track] = i;
        at = at == UINT32_MAX || ev[i].end_ps > ev[at].end_ps ? i : at;
    }
    int64_t until = ev[at].end_ps;
    for (uint32_t steps = 0; at != UINT32_MAX && steps < n; steps++) {
        const clock_event *e = &ev[at];
        int64_t start = e->start_ps < until ? e->start_ps : until;
        double part = ns_of_ps(until - start);
        mk->critical_ns[e->instr] += part;
        pr->critical_ns[e->track] += part;
        vec_push(mk->mem, &pr->critical, at);
        until = start;
        at = starter(ev, at, before[at]);
    }
}

typedef struct stretch {
    int64_t from, to;
} stretch;

static int by_start(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

double events_cover_ns(const maker *mk, bool (*in)(const maker *mk, const clock_event *e))
{
    const clock_result *c = &mk->pr->clock;
    stretch *s = NEW_N(mk->mem, stretch, c->events.n + 1);
    uint32_t n = 0;
    bool sorted = true;
    for (uint32_t i = 0; i < c->events.n; i++) {
        const clock_event *e = &c->events.at[i];
        if (in(mk, e)) {
            s[n++] = (stretch){e->track < TRACK_DMA0 ? e->start_ps : e->issued_ps, e->end_ps};
            sorted &= n < 2 || s[n - 2].from <= s[n - 1].from;
        }
    }
    if (!sorted) {
        qsort(s, n, sizeof *s, by_start);
    }
    int64_t covered = 0, until = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t from = s[i].from > until ? s[i].from : until;
        if (s[i].to > from) {
            covered += s[i].to - from;
            until = s[i].to;
        }
    }
    return ns_of_ps(covered);
}
