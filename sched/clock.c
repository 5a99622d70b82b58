#include "sched/clock.h"

#include "lang/place.h"
#include "sched/order.h"

#include <stdlib.h>

// The program is walked in its own order, loops as often as their trips say. Each execution becomes
// a step that knows how many steps it still waits for, in the queue of its track. The earliest head
// of all queues runs next: what it does to shared things (DMA engines, ports, the Tensor engine's
// clock) thus happens in the order of time. A window of steps is held; what left it lives on as the
// last completion of its instruction.

enum {
    WINDOW_MIN = 256,
    WINDOW_MAX = 1 << 15,
    AHEAD = 4096,
    DATA0 = TRACK_COUNT,
    EARLY0 = DATA0 + DP_COUNT,
    QUEUES = EARLY0 + ENG_DMA
};
#define NEVER INT64_MAX

typedef struct step {
    cost c;
    int64_t ready;        // latest completion of what it waits for, hand-over included
    int64_t start, data;  // DMA: trigger; earliest data
    uint32_t instr, crit, crit_event, event;
    uint32_t pending, out;  // out: first edge + 1
    uint32_t next;          // in its queue: slot + 1
    int64_t wait;
    uint8_t track;
    bool done;
} step;

typedef struct edge {
    uint32_t to, next;
} edge;

typedef struct queue {
    uint32_t head, tail;  // slot + 1
    int64_t free;         // when the next may start
    int64_t active_until;
} queue;

typedef struct open_loop {
    uint32_t first;
    uint64_t left;
} open_loop;

typedef struct reg_value {
    bool known;
    int64_t v;
} reg_value;

typedef struct sim {
    arena *mem;
    const ir *p;
    const clock_opts *opts;
    clock_result *r;
    coster cs;
    order ord;
    uint8_t *loop_mask;    // of each loop_for, loop_while, loop_end: sequencers that run it
    uint32_t *loop_first;  // of each loop_end
    // the walk
    uint32_t pc;
    open_loop open[IR_MAX_LOOPS + 1];
    uint32_t depth;
    reg_value *reg;
    // steps
    step *steps;
    uint32_t window;  // of steps, a power of two
    uint64_t made, low, done;
    uint64_t *last_step;  // of each instruction: its latest step + 1
    int64_t *last_end;    // of each instruction
    uint32_t *last_event;
    VEC(edge) edges;
    uint32_t spare_edge;  // + 1
    queue q[QUEUES];
    uint8_t *track;                 // of each instruction
    uint32_t last_of[TRACK_COUNT];  // last instruction of each track, + 1
    // machine state
    int64_t unit_free[DU_COUNT];
    int64_t engine_free[16];
    int64_t hbm_until;
    int64_t port_until[ENG_COUNT];
    int64_t dma_until;
    uint8_t table;
    // Tensor
    int64_t pe_start, pe_free, window_at, window_busy;
    bool pe_began, warm;
    unsigned busy_windows, idle_windows;
    int64_t first_dma, last_end_all;
} sim;

const char *track_name(unsigned track)
{
    static const char *const dma[DP_COUNT] = {[DP_LOAD] = "DMA load",
                                              [DP_STORE] = "DMA store",
                                              [DP_CHIP] = "DMA chip",
                                              [DP_HBM] = "DMA hbm",
                                              [DP_SOFT_LOAD] = "DMA software load",
                                              [DP_SOFT_STORE] = "DMA software store"};
    return track < TRACK_DMA0 ? engine_name((engine_id)track) : dma[track - TRACK_DMA0];
}

// ---- the walk

static void find_loops(sim *s)
{
    const ir *p = s->p;
    s->loop_mask = NEW_N(s->mem, uint8_t, p->instrs.n);
    s->loop_first = NEW_N(s->mem, uint32_t, p->instrs.n);
    uint32_t open[IR_MAX_LOOPS + 1] = {0}, depth = 0;
    uint8_t mask[IR_MAX_LOOPS + 2] = {0};
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *in = &p->instrs.at[i];
        if (in->op == ISA_loop_for || in->op == ISA_loop_while) {
            open[++depth] = i;
            mask[depth] = (uint8_t)(1u << in->engine);
        } else if (in->op == ISA_loop_end) {
            s->loop_first[i] = open[depth];
            s->loop_mask[i] = s->loop_mask[open[depth]] = mask[depth];
            mask[depth - 1] |= mask[depth];
            depth--;
        } else if (in->engine != ENG_DMA && in->op != ISA_fill_uninit) {
            mask[depth] |= (uint8_t)(1u << in->engine);
        }
    }
}

static bool fail(sim *s, uint32_t instr, const char *why)
{
    s->r->error = why;
    s->r->error_instr = instr;
    return false;
}

static bool value_of(const sim *s, ir_arg a, int64_t *v)
{
    if (a.kind == IRA_INT) {
        *v = ira_integer(a);
        return true;
    }
    if (a.kind == IRA_REG && s->reg[a.v].known) {
        *v = s->reg[a.v].v;
        return true;
    }
    return false;
}

static bool trip_named(const sim *s, const ir_instr *in, uint32_t line, uint64_t *n)
{
    for (uint32_t k = 0; k < s->opts->trip_count; k++) {
        const clock_trip *t = &s->opts->trips[k];
        char *end;
        unsigned long at = strtoul(t->name, &end, 10);
        ir_arg a = in->nargs ? s->p->args.at[in->args] : ira_none();
        bool reg = t->name[0] == 'r' && a.kind == IRA_REG && t->name[1] &&
                   strtoul(t->name + 1, &end, 10) == a.v && !*end;
        bool name = in->name && strcmp(ir_text(s->p, in->name), t->name) == 0;
        if (reg || name || (t->name[0] >= '0' && t->name[0] <= '9' && !*end && at == line)) {
            *n = t->count;
            return true;
        }
    }
    return false;
}

static bool trips_of(sim *s, uint32_t i, uint64_t *n)
{
    const ir *p = s->p;
    const ir_instr *in = &p->instrs.at[i];
    loc at = ir_place_loc(p, in->place);
    uint32_t line = at.src ? (uint32_t)source_locate(at.src, at.at.lo).line : 0;
    if (trip_named(s, in, line, n)) {
        return true;
    }
    int64_t lo, hi, by;
    if (in->op == ISA_loop_for && value_of(s, p->args.at[in->args + 1], &lo) &&
        value_of(s, p->args.at[in->args + 2], &hi) && value_of(s, p->args.at[in->args + 3], &by) &&
        by > 0) {
        *n = hi > lo ? (uint64_t)((hi - lo - 1) / by + 1) : 0;
        return true;
    }
    uint32_t r = in->nargs && p->args.at[in->args].kind == IRA_REG ? p->args.at[in->args].v : 0;
    const char *kind = in->op == ISA_loop_for ? "loop" : "while loop";
    return fail(s, i,
                line ? arena_printf(s->mem,
                                    "how often the %s in line %u runs depends on data: give "
                                    "--trip %u=N (or r%u=N)",
                                    kind, line, line, r)
                     : arena_printf(s->mem,
                                    "how often the %s over register r%u runs depends on data: "
                                    "give --trip r%u=N",
                                    kind, r, r));
}

static void set_register(sim *s, const ir_instr *in)
{
    const ir *p = s->p;
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (isa_table[in->op].params[k].type == PT_REGOUT && a.kind == IRA_REG) {
            reg_value *r = &s->reg[a.v];
            r->known = in->op == ISA_register_move && in->nargs > 1 &&
                       value_of(s, p->args.at[in->args + 1], &r->v);
        }
    }
}

// ---- steps

static step *step_at(sim *s, uint64_t id)
{
    return &s->steps[id & (s->window - 1)];
}

static void add_edge(sim *s, uint64_t from, uint64_t to)
{
    uint32_t e = s->spare_edge;
    if (e) {
        s->spare_edge = s->edges.at[e - 1].next;
    } else {
        vec_push(s->mem, &s->edges, ((edge){0, 0}));
        e = s->edges.n;
    }
    step *f = step_at(s, from);
    s->edges.at[e - 1] = (edge){(uint32_t)(to & (s->window - 1)), f->out};
    f->out = e;
    step_at(s, to)->pending++;
}

static int64_t hand_over(const sim *s, unsigned from, unsigned to)
{
    const machine *m = &s->cs.m;
    if (from >= TRACK_DMA0) {
        return 0;  // in the transfer's own tail
    }
    return ps_of_ns(from == to         ? m->semaphore_same_ns
                    : to == ENG_TENSOR ? m->semaphore_to_pe_ns
                                       : m->semaphore_ns);
}

static void wait_for(sim *s, uint64_t id, uint32_t pred)
{
    uint64_t from = s->last_step[pred];
    step *me = step_at(s, id);
    if (!from || from - 1 == id) {
        return;
    }
    if (from - 1 >= s->low && !step_at(s, from - 1)->done) {
        add_edge(s, from - 1, id);
        return;
    }
    int64_t at = s->last_end[pred] + hand_over(s, s->track[pred], me->track);
    if (at > me->ready) {
        me->ready = at;
        me->crit = pred + 1;
        me->crit_event = s->last_event[pred];
    }
}

static void push(sim *s, unsigned q, uint32_t slot)
{
    s->steps[slot].next = 0;
    if (s->q[q].tail) {
        s->steps[s->q[q].tail - 1].next = slot + 1;
    } else {
        s->q[q].head = slot + 1;
    }
    s->q[q].tail = slot + 1;
}

static void pop(sim *s, unsigned q)
{
    uint32_t slot = s->q[q].head - 1;
    s->q[q].head = s->steps[slot].next;
    if (!s->q[q].head) {
        s->q[q].tail = 0;
    }
}

static void make_step(sim *s, uint32_t i, const cost *c, unsigned track, bool owner)
{
    uint64_t id = s->made++;
    step *st = step_at(s, id);
    *st = (step){.c = *c, .instr = i, .track = (uint8_t)track};
    for (uint32_t k = s->ord.first[i]; k < s->ord.first[i + 1]; k++) {
        wait_for(s, id, s->ord.pred.at[k]);
    }
    if (owner) {
        s->last_step[i] = id + 1;
    }
    // A memset waits for nothing but its memory: compilers issue it ahead of what its engine is
    // stuck on, so it has a place of its own.
    bool early = s->p->instrs.at[i].op == ISA_memset;
    push(s, early ? EARLY0 + track : track, (uint32_t)(id & (s->window - 1)));
}

static void make_control(sim *s, uint32_t i, const cost *c)
{
    unsigned own = s->p->instrs.at[i].engine;
    unsigned mask = s->loop_mask[i] ? s->loop_mask[i] : 1u << own;
    for (unsigned e = 0; e < ENG_DMA; e++) {
        if (mask >> e & 1) {
            make_step(s, i, c, e, e == own);
        }
    }
}

// One instruction further. false: the end, or an error.
static bool walk(sim *s)
{
    const ir *p = s->p;
    if (s->pc >= p->instrs.n) {
        return false;
    }
    uint32_t i = s->pc++;
    const ir_instr *in = &p->instrs.at[i];
    cost c;
    cost_of(&s->cs, i, &c);
    if (in->op == ISA_loop_for || in->op == ISA_loop_while) {
        uint64_t n;
        if (!trips_of(s, i, &n)) {
            return false;
        }
        make_control(s, i, &c);
        s->open[++s->depth] = (open_loop){i, n};
        if (n == 0) {
            for (unsigned nest = 1; nest; s->pc++) {
                uint16_t op = p->instrs.at[s->pc].op;
                nest += op == ISA_loop_for || op == ISA_loop_while;
                nest -= op == ISA_loop_end;
            }
            s->depth--;
        }
        return true;
    }
    if (in->op == ISA_loop_end) {
        make_control(s, i, &c);
        open_loop *l = &s->open[s->depth];
        if (--l->left) {
            s->pc = l->first + 1;
        } else {
            s->depth--;
        }
        return true;
    }
    if (p->registers) {
        set_register(s, in);
    }
    if (c.kind != CK_FREE) {
        make_step(s, i, &c, s->track[i], true);
    }
    return true;
}

// ---- execution

static void record(sim *s, step *st, unsigned track, int64_t start, int64_t issued, int64_t end,
                   bool cold, int64_t table)
{
    clock_result *r = s->r;
    instr_time *t = &r->of[st->instr];
    t->first_ps = t->count ? (start < t->first_ps ? start : t->first_ps) : start;
    t->last_ps = end > t->last_ps ? end : t->last_ps;
    t->count++;
    t->busy_ps += st->c.issue_ps;
    t->wait_ps += st->wait;
    if (st->wait > t->worst_ps) {
        t->worst_ps = st->wait;
        t->waited_for = st->crit;
    }
    track_time *k = &r->track[track];
    k->first_ps = k->count ? (start < k->first_ps ? start : k->first_ps) : start;
    k->last_ps = end > k->last_ps ? end : k->last_ps;
    k->count++;
    k->busy_ps += st->c.issue_ps;
    k->wait_ps += st->wait;
    s->last_end_all = end > s->last_end_all ? end : s->last_end_all;
    queue *q = &s->q[track];
    int64_t from = start > q->active_until ? start : q->active_until;
    if (end > from) {
        k->active_ps += end - from;
        q->active_until = end;
    }
    st->event = 0;
    if (r->events.n < s->opts->events_max) {
        vec_push(s->mem, &r->events,
                 ((clock_event){st->instr, st->crit, (uint8_t)track, cold, (uint16_t)(table / 1000),
                                st->crit_event, st->wait, start, issued, end}));
        st->event = r->events.n;
    } else if (s->opts->events_max) {
        r->events_cut = true;
    }
}

static void complete(sim *s, uint32_t slot, int64_t end)
{
    step *st = &s->steps[slot];
    st->done = true;
    if (end > s->last_end[st->instr] || !s->last_event[st->instr]) {
        s->last_event[st->instr] = st->event;
    }
    s->last_end[st->instr] = end > s->last_end[st->instr] ? end : s->last_end[st->instr];
    for (uint32_t e = st->out; e;) {
        edge *g = &s->edges.at[e - 1];
        step *to = &s->steps[g->to];
        int64_t at = end + hand_over(s, st->track, to->track);
        if (at > to->ready) {
            to->ready = at;
            to->crit = st->instr + 1;
            to->crit_event = st->event;
        }
        to->pending--;
        uint32_t next = g->next;
        g->next = s->spare_edge;
        s->spare_edge = e;
        e = next;
    }
    st->out = 0;
    s->done++;
    while (s->low < s->made && step_at(s, s->low)->done) {
        s->low++;
    }
}

static void close_window(sim *s, int64_t width)
{
    const machine *m = &s->cs.m;
    if ((double)s->window_busy >= m->pe_busy_share * (double)width) {
        s->idle_windows = 0;
        if (++s->busy_windows >= (unsigned)m->pe_warm_windows) {
            s->warm = true;
        }
    } else {
        s->busy_windows = 0;
        if (++s->idle_windows >= (unsigned)m->pe_cold_windows) {
            s->warm = false;
        }
    }
    s->window_at += width;
    s->window_busy = 0;
}

// Moves the activity monitor to time t.
static void monitor_to(sim *s, int64_t t)
{
    int64_t width = ps_of_ns(s->cs.m.pe_window_ns);
    for (unsigned k = 0; width && t >= s->window_at + width; k++) {
        if (k > 8) {  // nothing ran for long
            int64_t skip = (t - s->window_at) / width * width;
            s->window_at += skip;
            s->window_busy = 0;
            break;
        }
        close_window(s, width);
    }
}

static void monitor_busy(sim *s, int64_t from, int64_t to)
{
    int64_t width = ps_of_ns(s->cs.m.pe_window_ns);
    while (width && from < to) {
        int64_t end = s->window_at + width;
        int64_t upto = to < end ? to : end;
        s->window_busy += upto - from;
        from = upto;
        if (from >= end) {
            close_window(s, width);
        }
    }
}

static void run_pe(sim *s, step *st, uint32_t slot, int64_t start)
{
    const machine *m = &s->cs.m;
    if (!s->pe_began) {
        s->pe_began = true;
        s->window_at = start;
        s->warm = m->pe_window_ns <= 0;
    }
    monitor_to(s, start > s->window_at ? start : s->window_at);
    int64_t slow = s->warm ? 1 : 2;
    int64_t load = (int64_t)st->c.load_ps * slow;
    int64_t pass = st->c.issue_ps / st->c.passes * slow;
    pass = pass < load ? load : pass;
    // Weights load behind the multiply before, once that has begun.
    int64_t load_at = start > s->pe_start ? start : s->pe_start;
    int64_t at = load_at + load;
    if (start >= s->pe_free) {
        at += ps_of_ns(m->pe_load_start_ns) * slow;
    }
    at = at < s->pe_free ? s->pe_free : at;
    monitor_to(s, at);
    int64_t issue = pass * st->c.passes;
    int64_t drain = ps_of_ns(s->warm ? m->pe_drain_ns : m->pe_drain_cold_ns);
    bool cold = !s->warm;
    s->pe_start = at + pass * (st->c.passes - 1);
    s->pe_free = at + issue;
    monitor_busy(s, at, s->pe_free);
    // The queue may hand out the next one while this one multiplies; its weights need that.
    s->q[ENG_TENSOR].free = s->pe_start > start ? s->pe_start : start;
    st->c.issue_ps = s->pe_free - at;
    s->r->pe_cold_ps += cold ? issue : 0;
    s->r->hardware_multiplies += st->c.passes;
    record(s, st, ENG_TENSOR, at, s->pe_free, s->pe_free + drain, cold, 0);
    complete(s, slot, s->pe_free + drain);
}

// When the ports that this instruction needs are free of the engines it shares them with.
static int64_t port_free(const sim *s, const step *st, int64_t start)
{
    const machine *m = &s->cs.m;
    unsigned f = st->c.flags;
    int64_t other = 0;
    if (m->port_exclusive > 0) {
        if ((f & COST_SBUF) && (st->track == ENG_VECTOR || st->track == ENG_GPSIMD)) {
            other = s->port_until[st->track == ENG_VECTOR ? ENG_GPSIMD : ENG_VECTOR];
        }
        if ((f & COST_PSUM) && (st->track == ENG_VECTOR || st->track == ENG_SCALAR)) {
            int64_t o = s->port_until[st->track == ENG_VECTOR ? ENG_SCALAR : ENG_DMA];
            other = o > other ? o : other;
        }
    } else if (m->port_fast_exclusive > 0) {
        if (st->track == ENG_VECTOR && (f & COST_FAST)) {
            other = s->port_until[ENG_GPSIMD];
        } else if (st->track == ENG_GPSIMD) {
            other = s->port_until[ENG_VECTOR];
        }
    }
    return other > start ? other : start;
}

static void hold_port(sim *s, const step *st, int64_t until)
{
    const machine *m = &s->cs.m;
    unsigned f = st->c.flags;
    if (m->port_exclusive > 0) {
        if ((f & COST_SBUF) && st->track != ENG_SCALAR) {
            s->port_until[st->track] = until;
        }
        if (f & COST_PSUM) {  // Vector's PSUM use is kept under DMA, which has no port of its own
            s->port_until[st->track == ENG_SCALAR ? ENG_SCALAR : ENG_DMA] = until;
        }
    } else if (st->track == ENG_GPSIMD || (f & COST_FAST)) {
        s->port_until[st->track] = until;
    }
}

static void run_engine(sim *s, step *st, uint32_t slot, int64_t start)
{
    int64_t table = 0, at = start;
    if (st->c.kind == CK_ENGINE) {
        at = port_free(s, st, start);
        s->r->port_ps += at - start;
    }
    if (st->c.table && st->c.table != s->table) {
        table = ps_of_ns(s->cs.m.scalar_table_ns);
        s->table = st->c.table;
        s->r->table_loads++;
        s->r->table_ps += table;
    }
    st->c.issue_ps += table;
    int64_t end = at + table + st->c.latency_ps;
    s->q[st->track].free = at + st->c.issue_ps;
    if (st->c.kind == CK_ENGINE) {
        hold_port(s, st, at + st->c.issue_ps);
    }
    record(s, st, st->track, at, at + st->c.issue_ps, end, false, table);
    complete(s, slot, end);
}

static void run_trigger(sim *s, step *st, uint32_t slot, int64_t start)
{
    st->start = start;
    int64_t issued = start + st->c.issue_ps;
    if (st->c.unit == DU_GPSIMD) {
        s->q[ENG_GPSIMD].free = issued;
        track_time *g = &s->r->track[ENG_GPSIMD];
        g->active_ps += st->c.issue_ps;
        g->busy_ps += st->c.issue_ps;
    } else if (st->c.unit != DU_STATIC) {
        s->unit_free[st->c.unit] = issued;
    }
    s->q[st->track].free = issued;
    s->r->dma_unit_count[st->c.unit]++;
    int64_t trigger = st->c.trigger_ps ? issued - st->c.trigger_ps : start;
    if (s->first_dma < 0 || trigger < s->first_dma) {
        s->first_dma = trigger;
    }
    st->data = issued + st->c.dispatch_ps;
    push(s, DATA0 + st->c.path, slot);
}

static void run_data(sim *s, step *st, uint32_t slot)
{
    const machine *m = &s->cs.m;
    clock_result *r = s->r;
    int64_t first = NEVER, last = st->data;
    for (unsigned e = 0; e < 16; e++) {
        if (!(st->c.engines >> e & 1)) {
            continue;
        }
        int64_t at = s->engine_free[e] > st->data ? s->engine_free[e] : st->data;
        s->engine_free[e] = at + st->c.work_ps;
        r->dma_engine_ps[e] += st->c.work_ps;
        first = at < first ? at : first;
        last = s->engine_free[e] > last ? s->engine_free[e] : last;
    }
    bool shared = (s->opts->cores ? s->opts->cores : s->p->grid) > 1;
    double rate = shared ? m->hbm_core_rate : m->hbm_stack_rate;
    int64_t hbm = s->hbm_until > st->data ? s->hbm_until : st->data;
    s->hbm_until = hbm + (int64_t)((double)st->c.hbm_bytes * 1000.0 / rate);
    last = s->hbm_until > last ? s->hbm_until : last;
    int64_t from = first > s->dma_until ? first : s->dma_until;
    if (last > from) {
        r->dma_active_ps += last - from;
        s->dma_until = last;
    }
    r->dma_bytes += st->c.bytes;
    r->dma_pieces += st->c.pieces;
    r->dma_count++;
    queue *q = &s->q[DATA0 + st->c.path];
    int64_t end = last + st->c.tail_ps;
    end = end < q->free ? q->free : end;
    q->free = end;  // a ring completes in order
    record(s, st, st->track, st->start, first, end, false, 0);
    complete(s, slot, end + ps_of_ns(m->dma_notify_ns));
}

// When the head of queue q can run; NEVER: it waits for a step that has not run.
static int64_t start_of(const sim *s, unsigned q)
{
    const step *st = &s->steps[s->q[q].head - 1];
    if (q >= DATA0 && q < EARLY0) {
        return st->data;
    }
    if (st->pending) {
        return NEVER;
    }
    int64_t free = s->q[st->track].free;
    int64_t at = free > st->ready ? free : st->ready;
    if (st->c.kind == CK_DMA && st->c.unit != DU_STATIC) {
        int64_t unit = st->c.unit == DU_GPSIMD ? s->q[ENG_GPSIMD].free : s->unit_free[st->c.unit];
        at = unit > at ? unit : at;
    }
    return at;
}

static void run_step(sim *s, unsigned q, int64_t start)
{
    uint32_t slot = s->q[q].head - 1;
    step *st = &s->steps[slot];
    pop(s, q);
    if (q >= DATA0 && q < EARLY0) {
        run_data(s, st, slot);
        return;
    }
    int64_t free = q == ENG_TENSOR ? s->pe_free : s->q[st->track].free;
    st->wait = st->ready > free ? st->ready - free : 0;
    if (!st->wait) {
        st->crit = st->crit_event = 0;
    }
    switch ((cost_kind)st->c.kind) {
    case CK_PE: run_pe(s, st, slot, start); break;
    case CK_DMA: run_trigger(s, st, slot, start); break;
    default: run_engine(s, st, slot, start); break;
    }
}

static void find_tracks(sim *s)
{
    s->track = NEW_N(s->mem, uint8_t, s->p->instrs.n + 1);
    for (uint32_t i = 0; i < s->p->instrs.n; i++) {
        uint8_t e = s->p->instrs.at[i].engine;
        if (e == ENG_DMA) {
            e = (uint8_t)(TRACK_DMA0 + cost_dma_path(&s->cs, i));
        }
        s->track[i] = e;
        s->last_of[e] = i + 1;
    }
}

// Some track has work further on in the program and none in its queue.
static bool starved(const sim *s)
{
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        if (!s->q[t].head && (s->depth || s->last_of[t] > s->pc)) {
            if (s->last_of[t] > (s->depth ? s->open[1].first : s->pc)) {
                return true;
            }
        }
    }
    return false;
}

static bool simulate(sim *s)
{
    uint64_t limit = s->opts->steps_max ? s->opts->steps_max : (uint64_t)1 << 27;
    bool more = true;
    for (;;) {
        while (more && s->made - s->low < s->window - ENG_COUNT &&
               (s->made - s->done < AHEAD || starved(s))) {
            more = walk(s);
        }
        if (s->r->error) {
            return false;
        }
        unsigned best = QUEUES;
        int64_t start = NEVER;
        for (unsigned q = 0; q < QUEUES; q++) {
            if (s->q[q].head) {
                int64_t at = start_of(s, q);
                if (at < start) {
                    start = at;
                    best = q;
                }
            }
        }
        if (best == QUEUES) {
            break;
        }
        run_step(s, best, start);
        if (s->done > limit) {
            return fail(s, 0, "the program executes more instructions than the clock follows");
        }
    }
    return true;
}

bool clock_run(arena *mem, const ir *p, const clock_opts *opts, clock_result *r)
{
    *r = (clock_result){0};
    sim *s = NEW(mem, sim);
    s->mem = mem;
    s->p = p;
    s->opts = opts;
    s->r = r;
    s->first_dma = -1;
    coster_init(&s->cs, p, opts->m ? opts->m : machine_of(p->target));
    order_make(mem, p, &s->ord);
    find_loops(s);
    find_tracks(s);
    s->reg = NEW_N(mem, reg_value, p->registers + 1);
    s->window = WINDOW_MIN;
    while (s->window < WINDOW_MAX && s->window < 2 * p->instrs.n) {
        s->window *= 2;
    }
    s->steps = NEW_N(mem, step, s->window);
    s->last_step = NEW_N(mem, uint64_t, p->instrs.n + 1);
    s->last_end = NEW_N(mem, int64_t, p->instrs.n + 1);
    s->last_event = NEW_N(mem, uint32_t, p->instrs.n + 1);
    r->of = NEW_N(mem, instr_time, p->instrs.n + 1);
    if (!simulate(s)) {
        return false;
    }
    r->steps = s->done;
    r->end_ps = s->last_end_all;
    r->body_ps = r->end_ps - (s->first_dma > 0 ? s->first_dma : 0);
    r->total_ps = r->body_ps + ps_of_ns(s->cs.m.launch_ns) + ps_of_ns(s->cs.m.teardown_ns);
    return true;
}
