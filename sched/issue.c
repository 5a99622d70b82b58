#include "sched/issue.h"

// List scheduling. Within a block (instructions between loop instructions) each stream takes, when
// it is free, the instruction that is ready and has the longest chain of costs behind it.

typedef struct waiting {
    int64_t key;  // time it is ready; or, negated, the chain behind it
    uint32_t instr;
} waiting;

typedef VEC(waiting) heap;

typedef struct entry {
    int64_t chain;      // picoseconds from its start to the end of the block
    int64_t ready;      // when the last of its predecessors is complete
    uint32_t blockers;  // instructions yet to be issued before it
    uint32_t after;     // first of those that wait for it, in lister.after
} entry;

typedef struct lister {
    arena *mem;
    program *pr;
    const ir *p;
    const stream_plan *sp;
    const digest *dg;
    entry *of;  // of each instruction, and one more
    // Who waits for whom: of each instruction, one after the other, those that it waits for; and
    // turned round.
    VEC(uint32_t) before;
    uint32_t *after;
    heap early[STREAM_COUNT], open[STREAM_COUNT];
    int64_t free_at[STREAM_COUNT];
    uint32_t *instr, n;
} lister;

// ---- heaps, smallest key first; of equal keys the earlier instruction

static bool before(const waiting *a, const waiting *b)
{
    return a->key != b->key ? a->key < b->key : a->instr < b->instr;
}

static void heap_push(lister *l, heap *h, waiting w)
{
    vec_push(l->mem, h, w);
    uint32_t at = h->n - 1;
    for (; at && before(&w, &h->at[(at - 1) / 2]); at = (at - 1) / 2) {
        h->at[at] = h->at[(at - 1) / 2];
        l->pr->steps++;
    }
    h->at[at] = w;
}

static waiting heap_pop(lister *l, heap *h)
{
    waiting top = h->at[0], w = h->at[--h->n];
    uint32_t at = 0;
    for (;;) {
        uint32_t k = 2 * at + 1;
        if (k >= h->n) {
            break;
        }
        k += k + 1 < h->n && before(&h->at[k + 1], &h->at[k]);
        if (!before(&h->at[k], &w)) {
            break;
        }
        h->at[at] = h->at[k];
        at = k;
        l->pr->steps++;
    }
    h->at[at] = w;
    return top;
}

// ---- the graph

// Called with ascending `to`.
static void add_edge(void *ctx, uint32_t from, uint32_t to)
{
    lister *l = ctx;
    l->pr->steps++;
    if (l->before.n && l->of[to].blockers && l->before.at[l->before.n - 1] == from) {
        return;
    }
    vec_push(l->mem, &l->before, from);
    l->of[to].blockers++;
    l->of[from].after++;
}

// Turns `before` round: from numbers of those that wait to where they stand.
static void turn(lister *l)
{
    uint32_t n = l->p->instrs.n, at = 0;
    for (uint32_t i = 0; i < n; i++) {
        at += l->of[i].after;
        l->of[i].after = at;
    }
    l->of[n].after = at;
    l->after = NEW_N(l->mem, uint32_t, at);
    for (uint32_t i = n, k = l->before.n; i-- > 0;) {
        for (uint32_t b = l->of[i].blockers; b; b--) {
            l->after[--l->of[l->before.at[--k]].after] = i;
        }
    }
}

// Its own time: until what it makes is there, and the stream is free.
static int64_t spent(const lister *l, uint32_t i)
{
    const instr_cost *t = &l->dg->time[i];
    return t->latency_ps > t->issue_ps ? t->latency_ps : t->issue_ps;
}

static void measure(lister *l)
{
    for (uint32_t i = l->p->instrs.n; i-- > 0;) {
        int64_t behind = 0;
        for (uint32_t e = l->of[i].after; e < l->of[i + 1].after; e++) {
            int64_t v = l->of[l->after[e]].chain;
            behind = v > behind ? v : behind;
        }
        l->of[i].chain = behind + spent(l, i);
    }
}

// ---- one block

static void enter(lister *l, uint32_t i)
{
    uint32_t s = (uint32_t)__builtin_ctz(l->sp->mask[i]);
    heap_push(l, &l->early[s], (waiting){l->of[i].ready, i});
}

static void issue(lister *l, uint32_t i, uint32_t s, int64_t now)
{
    const instr_cost *t = &l->dg->time[i];
    l->instr[l->n++] = i;
    for (stream_mask m = l->sp->mask[i]; m;) {
        uint32_t k = stream_take(&m);
        l->free_at[k] = l->free_at[k] < now + t->issue_ps ? now + t->issue_ps : l->free_at[k];
    }
    // A ring's transfers share the engines: the next begins when this one's bytes are moved.
    if (stream_is_ring(s)) {
        l->free_at[s] = now + (t->work_ps > t->issue_ps ? t->work_ps : t->issue_ps);
    }
    int64_t done = now + spent(l, i);
    for (uint32_t e = l->of[i].after; e < l->of[i + 1].after; e++) {
        entry *to = &l->of[l->after[e]];
        to->ready = to->ready > done ? to->ready : done;
        if (--to->blockers == 0) {
            enter(l, l->after[e]);
        }
    }
}

// When stream s can issue next. INT64_MAX: it has nothing.
static int64_t next_time(const lister *l, uint32_t s)
{
    if (l->open[s].n) {
        return l->free_at[s];
    }
    if (!l->early[s].n) {
        return INT64_MAX;
    }
    int64_t ready = l->early[s].at[0].key;
    return ready > l->free_at[s] ? ready : l->free_at[s];
}

static void run_block(lister *l, uint32_t lo, uint32_t hi)
{
    memset(l->free_at, 0, sizeof l->free_at);
    for (uint32_t i = lo; i < hi; i++) {
        if (l->of[i].blockers == 0) {
            enter(l, i);
        }
    }
    for (uint32_t left = hi - lo; left; left--) {
        uint32_t best = 0;
        int64_t when = INT64_MAX;
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            int64_t t = next_time(l, s);
            if (t < when) {
                when = t;
                best = s;
            }
        }
        heap *early = &l->early[best], *open = &l->open[best];
        while (early->n && early->at[0].key <= when) {
            uint32_t i = heap_pop(l, early).instr;
            heap_push(l, open, (waiting){-l->of[i].chain, i});
        }
        issue(l, heap_pop(l, open).instr, best, when);
    }
}

static issue_order new_order(arena *mem, const ir *p, uint32_t **instr, uint32_t **rank)
{
    *instr = NEW_N(mem, uint32_t, p->instrs.n);
    *rank = NEW_N(mem, uint32_t, p->instrs.n);
    return (issue_order){*instr, *rank};
}

issue_order issue_program(arena *mem, const ir *p)
{
    uint32_t *instr, *rank;
    issue_order o = new_order(mem, p, &instr, &rank);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        instr[i] = i;
        rank[i] = i + 1;
    }
    return o;
}

issue_order issue_list(arena *mem, program *pr, const stream_plan *sp, const digest *dg, depend *d)
{
    const ir *p = pr->ir;
    uint32_t n = p->instrs.n;
    lister *l = NEW(mem, lister);
    l->mem = mem;
    l->pr = pr;
    l->p = p;
    l->sp = sp;
    l->dg = dg;
    l->of = NEW_N(mem, entry, (size_t)n + 1);
    depend_pairs(d, issue_program(mem, p), add_edge, l);
    turn(l);
    pr->pairs_exact = pr->pairs_conservative = 0;  // counted again for the order that comes out
    measure(l);
    uint32_t *rank;
    issue_order o = new_order(mem, p, &l->instr, &rank);
    for (uint32_t lo = 0, hi; lo < n; lo = hi) {
        hi = lo + 1;
        while (hi < n && !instr_is_loop(&p->instrs.at[lo]) && !instr_is_loop(&p->instrs.at[hi])) {
            hi++;
        }
        run_block(l, lo, hi);
    }
    for (uint32_t r = 0; r < n; r++) {
        rank[l->instr[r]] = r + 1;
    }
    return o;
}

void order_streams(arena *mem, program *pr, digest *dg, const sched_opts *opts)
{
    stream_plan sp;
    pr->slots.n = pr->syncs.n = pr->semaphores.n = 0;
    pr->pairs_exact = pr->pairs_conservative = 0;
    choose_engines(pr->ir, dg);
    stream_plan_make(mem, pr, &sp);
    choose_generators(pr, dg, opts->list);
    depend *d = depend_new(mem, pr, &sp, &dg->acc);
    issue_order order = opts->list ? issue_list(mem, pr, &sp, dg, d) : issue_program(mem, pr->ir);
    synchronise(mem, pr, &sp, d, order);
}

void schedule_streams(arena *mem, program *pr, const sched_opts *opts)
{
    digest dg;
    digest_make(mem, pr, &dg);
    order_streams(mem, pr, &dg, opts);
}
