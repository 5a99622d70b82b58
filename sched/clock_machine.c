#include "sched/clock_internal.h"

// What is shared between instructions besides memory: the Tensor engine's pipeline and clock, ports,
// function tables, descriptor generators, DMA engines, HBM. Called in the order of time.

// ---- Tensor

static void close_window(sim *s, clock_core *c, int64_t width)
{
    const machine *m = s->m;
    if ((double)c->window_busy >= m->pe_busy_share * (double)width) {
        c->idle_windows = 0;
        if (++c->busy_windows >= (unsigned)m->pe_warm_windows) {
            c->warm = true;
        }
    } else {
        c->busy_windows = 0;
        if (++c->idle_windows >= (unsigned)m->pe_cold_windows) {
            c->warm = false;
        }
    }
    c->window_at += width;
    c->window_busy = 0;
}

// Moves the activity monitor to time t.
static void monitor_to(sim *s, clock_core *c, int64_t t)
{
    int64_t width = ps_of_ns(s->m->pe_window_ns);
    for (unsigned k = 0; width && t >= c->window_at + width; k++) {
        if (k > 8) {  // nothing ran for long
            int64_t skip = (t - c->window_at) / width * width;
            c->window_at += skip;
            c->window_busy = 0;
            break;
        }
        close_window(s, c, width);
    }
}

static void monitor_busy(sim *s, clock_core *c, int64_t from, int64_t to)
{
    int64_t width = ps_of_ns(s->m->pe_window_ns);
    while (width && from < to) {
        int64_t end = c->window_at + width;
        int64_t upto = to < end ? to : end;
        c->window_busy += upto - from;
        from = upto;
        if (from >= end) {
            close_window(s, c, width);
        }
    }
}

void clock_run_pe(sim *s, clock_core *c, int64_t start, clock_event *e)
{
    const machine *m = s->m;
    lane *l = &c->lane[ENG_TENSOR];
    if (!c->pe_began) {
        c->pe_began = true;
        c->window_at = start;
        c->warm = m->pe_window_ns <= 0;
    }
    monitor_to(s, c, start > c->window_at ? start : c->window_at);
    int64_t slow = c->warm ? 1 : 2;
    int64_t load = (int64_t)l->c.load_ps * slow;
    int64_t pass = l->c.issue_ps / l->c.passes * slow;
    pass = pass < load ? load : pass;
    // Weights load behind the multiply before, once that has begun.
    int64_t load_at = start > c->pe_start ? start : c->pe_start;
    int64_t at = load_at + load;
    if (start >= c->pe_free) {
        at += ps_of_ns(m->pe_load_start_ns) * slow;
    }
    at = at < c->pe_free ? c->pe_free : at;
    monitor_to(s, c, at);
    int64_t issue = pass * l->c.passes;
    e->cold = !c->warm;
    c->pe_start = at + pass * (l->c.passes - 1);
    c->pe_free = at + issue;
    monitor_busy(s, c, at, c->pe_free);
    // The queue may hand out the next one while this one multiplies; its weights need that.
    l->free = c->pe_start > start ? c->pe_start : start;
    c->r->pe_cold_ps += e->cold ? issue : 0;
    c->r->hardware_multiplies += l->c.passes;
    e->start_ps = at;
    e->issued_ps = c->pe_free;
    e->end_ps = c->pe_free + ps_of_ns(e->cold ? m->pe_drain_cold_ns : m->pe_drain_ns);
}

// ---- Vector, Scalar, GpSimd, and control on any of the five

// When the ports that an instruction needs are free of the engines it shares them with.
static int64_t port_free(const sim *s, const clock_core *c, unsigned engine, int64_t start)
{
    const machine *m = s->m;
    unsigned f = c->lane[engine].c.flags;
    int64_t other = 0;
    if (m->port_exclusive > 0) {
        if ((f & COST_SBUF) && (engine == ENG_VECTOR || engine == ENG_GPSIMD)) {
            other = c->port_until[engine == ENG_VECTOR ? ENG_GPSIMD : ENG_VECTOR];
        }
        if ((f & COST_PSUM) && (engine == ENG_VECTOR || engine == ENG_SCALAR)) {
            int64_t o = c->port_until[engine == ENG_VECTOR ? ENG_SCALAR : ENG_DMA];
            other = o > other ? o : other;
        }
    } else if (m->port_fast_exclusive > 0) {
        if (engine == ENG_VECTOR && (f & COST_FAST)) {
            other = c->port_until[ENG_GPSIMD];
        } else if (engine == ENG_GPSIMD) {
            other = c->port_until[ENG_VECTOR];
        }
    }
    return other > start ? other : start;
}

static void hold_port(const sim *s, clock_core *c, unsigned engine, int64_t until)
{
    const machine *m = s->m;
    unsigned f = c->lane[engine].c.flags;
    if (m->port_exclusive > 0) {
        if ((f & COST_SBUF) && engine != ENG_SCALAR) {
            c->port_until[engine] = until;
        }
        if (f & COST_PSUM) {  // Vector's PSUM use is kept under DMA, which has no port of its own
            c->port_until[engine == ENG_SCALAR ? ENG_SCALAR : ENG_DMA] = until;
        }
    } else if (engine == ENG_GPSIMD || (f & COST_FAST)) {
        c->port_until[engine] = until;
    }
}

void clock_run_engine(sim *s, clock_core *c, unsigned engine, int64_t start, clock_event *e)
{
    lane *l = &c->lane[engine];
    int64_t table = 0, at = start;
    if (l->c.kind == CK_ENGINE) {
        at = port_free(s, c, engine, start);
        c->r->port_ps += at - start;
    }
    if (l->c.table && l->c.table != c->table) {
        table = ps_of_ns(s->m->scalar_table_ns);
        c->table = l->c.table;
        c->r->table_loads++;
        c->r->table_ps += table;
    }
    l->free = at + table + l->c.issue_ps;
    if (l->c.kind == CK_ENGINE) {
        hold_port(s, c, engine, l->free);
    }
    e->table = (uint16_t)(table / 1000);
    e->start_ps = at;
    e->issued_ps = l->free;
    e->end_ps = at + table + l->c.latency_ps;
}

// ---- DMA

int64_t clock_unit_free(const clock_core *c, const lane *l)
{
    return l->c.unit == DU_STATIC   ? 0
           : l->c.unit == DU_GPSIMD ? c->lane[ENG_GPSIMD].free
                                    : c->unit_free[l->c.unit];
}

void clock_run_trigger(clock_core *c, lane *l, int64_t start, transfer *t)
{
    int64_t issued = start + l->c.issue_ps;
    if (l->c.unit == DU_GPSIMD) {
        c->lane[ENG_GPSIMD].free = issued;
        track_time *g = &c->r->track[ENG_GPSIMD];
        g->active_ps += l->c.issue_ps;
        g->busy_ps += l->c.issue_ps;
    } else if (l->c.unit != DU_STATIC) {
        c->unit_free[l->c.unit] = issued;
    }
    l->free = issued;
    c->r->dma_unit_count[l->c.unit]++;
    int64_t trigger = l->c.trigger_ps ? issued - l->c.trigger_ps : start;
    if (c->first_dma < 0 || trigger < c->first_dma) {
        c->first_dma = trigger;
    }
    t->start = start;
    t->issue = l->c.issue_ps;
    t->data = issued + l->c.dispatch_ps;
    t->engines = l->c.engines;
    t->pieces = l->c.pieces;
    t->work = l->c.work_ps;
    t->tail = l->c.tail_ps;
    t->bytes = l->c.bytes;
    t->hbm_bytes = l->c.hbm_bytes;
}

int64_t clock_run_data(sim *s, clock_core *c, const transfer *t, int64_t *first)
{
    clock_result *r = c->r;
    int64_t last = t->data;
    *first = CLOCK_NEVER;
    for (unsigned e = 0; e < 16; e++) {
        if (!(t->engines >> e & 1)) {
            continue;
        }
        int64_t at = c->engine_free[e] > t->data ? c->engine_free[e] : t->data;
        c->engine_free[e] = at + t->work;
        r->dma_engine_ps[e] += t->work;
        *first = at < *first ? at : *first;
        last = c->engine_free[e] > last ? c->engine_free[e] : last;
    }
    // One stack serves all cores of the launch.
    int64_t hbm = s->hbm_until > t->data ? s->hbm_until : t->data;
    s->hbm_until = hbm + (int64_t)((double)t->hbm_bytes * 1000.0 / s->m->hbm_stack_rate);
    last = t->hbm_bytes && s->hbm_until > last ? s->hbm_until : last;
    int64_t from = *first > c->dma_until ? *first : c->dma_until;
    if (last > from) {
        r->dma_active_ps += last - from;
        c->dma_until = last;
    }
    r->dma_bytes += t->bytes;
    r->dma_pieces += t->pieces;
    r->dma_count++;
    return last + t->tail;
}
