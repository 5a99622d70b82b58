#include "sched/clock_internal.h"

// Every stream of every core stands before a slot. It goes on when its engine is free and the
// semaphores that the slot waits for have the values asked for. The earliest of all goes first, so
// what instructions do to shared things happens in the order of time. A signal is given when the
// instruction that gives it is simulated, for the time of its completion; a transfer is simulated
// twice, when it is triggered and when its bytes move.

const char *track_name(unsigned track)
{
    return stream_name(track);
}

// ---- semaphores

// When the semaphore's value, as its consumer counts, is at least v. false: not known yet.
static bool value_reached(counter *k, uint64_t v)
{
    int64_t sum = k->taken + (int64_t)v;
    while ((int64_t)k->seen < sum && k->n) {
        const arrival *a = &k->ring[k->first];
        k->seen = a->sum;
        k->seen_at = a->at;
        k->seen_by = a->by;
        k->first = (k->first + 1) & (k->cap - 1);
        k->n--;
    }
    return (int64_t)k->seen >= sum;
}

static void add_arrival(sim *s, counter *k, arrival a)
{
    if (k->n == k->cap) {
        uint32_t cap = k->cap ? 2 * k->cap : 8;
        arrival *ring = NEW_N(s->mem, arrival, cap);
        for (uint32_t i = 0; i < k->n; i++) {
            ring[i] = k->ring[(k->first + i) & (k->cap - 1)];
        }
        k->ring = ring;
        k->cap = cap;
        k->first = 0;
    }
    k->ring[(k->first + k->n++) & (k->cap - 1)] = a;
}

static void note_change(sim *s, clock_core *c, uint16_t semaphore, int64_t at, int64_t by)
{
    if (c->r->changes.n < s->opts->events_max) {
        vec_push(s->mem, &c->r->changes, ((clock_change){at, (int32_t)by, semaphore}));
    } else if (s->opts->events_max) {
        c->r->events_cut = true;
    }
}

static int64_t hand_over(const sim *s, unsigned from, unsigned to)
{
    const machine *m = s->m;
    return ps_of_ns(stream_is_ring(from) ? m->dma_notify_ns
                    : to == ENG_TENSOR   ? m->semaphore_to_pe_ns
                                         : m->semaphore_ns);
}

static void settle(sim *s, clock_core *c, unsigned stream);

// The slot's signals, given at time `at`.
static void give_signals(sim *s, clock_core *c, unsigned stream, uint32_t slot, int64_t at,
                         culprit by)
{
    const queue_slot *q = &c->pr->slots.at[slot];
    for (uint32_t k = q->sync; k < q->sync + q->nsync; k++) {
        const sync_op *o = &c->pr->syncs.at[k];
        if (o->kind != SYNC_SIGNAL) {
            continue;
        }
        counter *n = &c->counters[o->semaphore];
        unsigned to = c->pr->semaphores.at[o->semaphore].consumer;
        int64_t seen = at + hand_over(s, stream, to);
        n->posted += o->value;
        by.semaphore = o->semaphore;
        add_arrival(s, n, (arrival){n->posted, seen, by});
        note_change(s, c, o->semaphore, seen, o->value);
        lane *l = &c->lane[to];
        if (l->state == LANE_BLOCKED && l->blocked == o->semaphore) {
            settle(s, c, to);
        }
    }
}

// ---- what a slot waits for

static void wait_until(lane *l, int64_t at, culprit by)
{
    if (at > l->ready) {
        l->ready = at;
        l->late = by;
    }
}

// Goes through the semaphore operations of the slot at pc. false: one does not hold yet.
static bool operations_hold(sim *s, clock_core *c, lane *l, const queue_slot *q, bool ends)
{
    bool last = ends && l->open[l->depth - 1].left <= 1, ran = ends && l->open[l->depth - 1].left;
    for (; l->looked < q->nsync; l->looked++) {
        const sync_op *o = &c->pr->syncs.at[q->sync + l->looked];
        counter *k = &c->counters[o->semaphore];
        int64_t now = l->ready > l->free ? l->ready : l->free, by = 0;
        switch ((sync_kind)o->kind) {
        case SYNC_DRAIN_WAIT:
        case SYNC_WAIT:
            if (o->kind == SYNC_DRAIN_WAIT && !last) {
                break;
            }
            if (!value_reached(k, o->value)) {
                l->state = LANE_BLOCKED;
                l->blocked = o->semaphore;
                return false;
            }
            wait_until(l, k->seen_at, k->seen_by);
            break;
        case SYNC_CREDIT: by = o->value; break;
        case SYNC_TAKE: by = ran ? -(int64_t)o->value : 0; break;
        case SYNC_DRAIN: by = last ? -(int64_t)o->value : 0; break;
        case SYNC_SIGNAL:
        case SYNC_KIND_COUNT: break;
        }
        if (by) {
            k->taken -= by;
            note_change(s, c, o->semaphore, now, by);
        }
    }
    return true;
}

// Whether two views of a core touch a common byte.
static bool views_meet(clock_core *c, uint32_t a, uint32_t b)
{
    const ir *p = c->p;
    const ir_tensor *t = &p->tensors.at[p->views.at[a].tensor],
                    *u = &p->tensors.at[p->views.at[b].tensor];
    if (t->buffer != u->buffer || t->addr_bytes >= u->addr_bytes + u->size_bytes ||
        u->addr_bytes >= t->addr_bytes + t->size_bytes) {
        return false;
    }
    bool unsure;
    reach x = reach_of(p, &c->objs, ir_view_ref(p, a)),
          y = reach_of(p, &c->objs, ir_view_ref(p, b));
    return reaches_meet(&x, &y, &unsure);
}

// An engine's pipeline has room for the next instruction before it has written the last: where that
// one is read, the next waits. No semaphore says so; the engine's own order does.
static void wait_for_pipeline(sim *s, clock_core *c, lane *l, uint32_t instr)
{
    int64_t hand = ps_of_ns(s->m->semaphore_same_ns);
    bool collected = false;
    for (unsigned k = 0; k < 2; k++) {
        const in_pipeline *r = &l->recent[k];
        int64_t at = r->end + hand;
        if (!r->n || at <= l->ready || at <= l->free) {
            continue;
        }
        if (!collected) {
            access_collect(s->mem, c->p, &c->p->instrs.at[instr], &c->acc);
            collected = true;
        }
        bool reads = false;
        for (uint32_t i = 0; !reads && i < c->acc.n; i++) {
            for (uint32_t w = 0; (c->acc.at[i].kind & ACC_READ) && !reads && w < r->n; w++) {
                reads = views_meet(c, c->acc.at[i].view, r->writes[w]);
            }
        }
        if (reads) {
            wait_until(l, at, r->by);
        }
    }
}

static bool has_pipeline(unsigned stream)
{
    return stream == ENG_VECTOR || stream == ENG_SCALAR || stream == ENG_GPSIMD;
}

static void enter_pipeline(sim *s, clock_core *c, lane *l, uint32_t instr, int64_t end, culprit by)
{
    l->recent[1] = l->recent[0];
    in_pipeline *r = &l->recent[0];
    *r = (in_pipeline){.by = by, .end = end};
    access_collect(s->mem, c->p, &c->p->instrs.at[instr], &c->acc);
    for (uint32_t i = 0; i < c->acc.n && r->n < PIPELINE_VIEWS; i++) {
        if (c->acc.at[i].kind & ACC_WRITE) {
            r->writes[r->n++] = c->acc.at[i].view;
        }
    }
}

// ---- loops

static void next_slot(lane *l)
{
    l->pc++;
    l->looked = 0;
}

// The slot after the loop's first, or where it ends when it does not run at all.
static bool enter_loop(sim *s, clock_core *c, unsigned stream)
{
    lane *l = &c->lane[stream];
    uint32_t slot = l->pc;
    open_loop *o = &l->open[l->depth];
    if (!clock_loop_enter(s, c, stream, c->pr->slots.at[slot].instr, o)) {
        return false;
    }
    o->slot = slot;
    l->depth++;
    next_slot(l);
    for (unsigned nest = o->left ? 0 : 1; nest;) {
        const ir_instr *in = &c->p->instrs.at[c->pr->slots.at[l->pc].instr];
        nest += instr_opens_loop(in);
        nest -= in->op == ISA_loop_end;
        l->pc += nest != 0;
    }
    return true;
}

// Back to the loop's second slot, or past its end. Returns whether the loop is over.
static bool end_iteration(clock_core *c, unsigned stream)
{
    lane *l = &c->lane[stream];
    open_loop *o = &l->open[l->depth - 1];
    l->looked = 0;
    if (o->left > 1) {
        o->left--;
        clock_loop_next(c, stream, o);
        l->pc = o->slot + 1;
        return false;
    }
    l->depth--;
    l->pc++;
    return true;
}

// ---- rings

static transfer *add_transfer(sim *s, transfers *q)
{
    if (q->n == q->cap) {
        uint32_t cap = q->cap ? 2 * q->cap : 8;
        transfer *ring = NEW_N(s->mem, transfer, cap);
        for (uint32_t i = 0; i < q->n; i++) {
            ring[i] = q->ring[(q->first + i) & (q->cap - 1)];
        }
        q->ring = ring;
        q->cap = cap;
        q->first = 0;
    }
    transfer *t = &q->ring[(q->first + q->n++) & (q->cap - 1)];
    *t = (transfer){0};
    return t;
}

static transfer *front(transfers *q)
{
    return &q->ring[q->first];
}

// A place in the ring that takes no time: its signals come after all before it.
static void add_empty(sim *s, clock_core *c, unsigned stream, uint32_t slot)
{
    lane *l = &c->lane[stream];
    transfer *t = add_transfer(s, &c->out[stream - STREAM_RING0]);
    t->slot = slot;
    t->instr = c->pr->slots.at[slot].instr;
    t->empty = true;
    t->data = l->ready > l->free ? l->ready : l->free;
}

// A slot of a ring that moves nothing: done at once. false: the slot moves data.
static bool ring_passes(sim *s, clock_core *c, unsigned stream, const ir_instr *in)
{
    lane *l = &c->lane[stream];
    if (l->c.kind == CK_DMA || c->r->error) {
        return false;
    }
    uint32_t slot = l->pc;
    if (instr_opens_loop(in)) {
        s->steps++;
        return enter_loop(s, c, stream);
    }
    if (in->op == ISA_loop_end) {
        s->steps++;
        if (end_iteration(c, stream)) {
            add_empty(s, c, stream, slot);
        }
        return true;
    }
    clock_set_register(c, stream, c->pr->slots.at[slot].instr);
    add_empty(s, c, stream, slot);
    next_slot(l);
    return true;
}

// ---- streams

// Finds out when the slot at pc can start, as far as that is known.
static void settle(sim *s, clock_core *c, unsigned stream)
{
    lane *l = &c->lane[stream];
    for (;;) {
        if (l->pc == l->end) {
            l->state = LANE_ENDED;
            return;
        }
        const queue_slot *q = &c->pr->slots.at[l->pc];
        const ir_instr *in = &c->p->instrs.at[q->instr];
        if (!operations_hold(s, c, l, q, in->op == ISA_loop_end)) {
            return;
        }
        cost_of(&c->cs, q->instr, &l->c);
        if (stream_is_ring(stream) && s->steps <= s->opts->steps_max &&
            ring_passes(s, c, stream, in)) {
            continue;
        }
        if (has_pipeline(stream) && l->c.kind == CK_ENGINE) {
            wait_for_pipeline(s, c, l, q->instr);
        }
        l->state = LANE_READY;
        return;
    }
}

static void record(sim *s, clock_core *c, unsigned track, clock_event *e, culprit late,
                   int64_t busy, culprit *self)
{
    clock_result *r = c->r;
    bool waited = e->wait_ps > 0;
    e->track = (uint8_t)track;
    e->waited_for = waited ? late.instr : 0;
    e->from = waited ? late.event : 0;
    e->semaphore = waited ? late.semaphore : CLOCK_NO_SEMAPHORE;
    instr_time *t = &r->of[e->instr];
    t->first_ps = t->count && t->first_ps < e->start_ps ? t->first_ps : e->start_ps;
    t->last_ps = e->end_ps > t->last_ps ? e->end_ps : t->last_ps;
    t->count++;
    t->busy_ps += busy;
    t->wait_ps += e->wait_ps;
    if (e->wait_ps > t->worst_ps) {
        t->worst_ps = e->wait_ps;
        t->waited_for = e->waited_for;
    }
    track_time *k = &r->track[track];
    k->first_ps = k->count && k->first_ps < e->start_ps ? k->first_ps : e->start_ps;
    k->last_ps = e->end_ps > k->last_ps ? e->end_ps : k->last_ps;
    k->count++;
    k->busy_ps += busy;
    k->wait_ps += e->wait_ps;
    lane *l = &c->lane[track];
    int64_t from = e->start_ps > l->active_until ? e->start_ps : l->active_until;
    if (e->end_ps > from) {
        k->active_ps += e->end_ps - from;
        l->active_until = e->end_ps;
    }
    c->last_end = e->end_ps > c->last_end ? e->end_ps : c->last_end;
    r->steps++;
    *self = (culprit){e->instr + 1, 0, CLOCK_NO_SEMAPHORE};
    if (r->events.n < s->opts->events_max) {
        vec_push(s->mem, &r->events, *e);
        self->event = r->events.n;
    } else if (s->opts->events_max) {
        r->events_cut = true;
    }
}

// The sequencer at a core barrier goes on when the other core's is at one too.
static bool meets(sim *s, clock_core *c, unsigned stream, int64_t start)
{
    lane *me = &c->lane[stream];
    if (s->n < 2) {
        return false;
    }
    clock_core *other = &s->core[c == s->core];
    for (unsigned e = 0; e < STREAM_RING0; e++) {
        lane *l = &other->lane[e];
        if (l->state == LANE_MEETS) {
            other->r->core_ps += start - l->ready;
            wait_until(l, start, (culprit){0, 0, CLOCK_NO_SEMAPHORE});
            l->state = LANE_READY;
            l->met = true;
            return false;
        }
    }
    me->ready = start;
    me->state = LANE_MEETS;
    return true;
}

static void run_slot(sim *s, clock_core *c, unsigned stream, int64_t start)
{
    lane *l = &c->lane[stream];
    uint32_t slot = l->pc;
    uint32_t i = c->pr->slots.at[slot].instr;
    const ir_instr *in = &c->p->instrs.at[i];
    if (in->op == ISA_core_barrier && !l->met && meets(s, c, stream, start)) {
        return;
    }
    l->met = false;
    int64_t free = stream == ENG_TENSOR ? c->pe_free : l->free;
    clock_event e = {.instr = i, .wait_ps = l->ready > free ? l->ready - free : 0};
    culprit self = l->last;
    s->steps++;
    if (l->c.kind == CK_FREE) {
        e.end_ps = start;
    } else {
        if (l->c.kind == CK_PE) {
            clock_run_pe(s, c, start, &e);
        } else {
            clock_run_engine(s, c, stream, start, &e);
        }
        record(s, c, stream, &e, l->late, e.issued_ps - e.start_ps, &self);
        if (l->c.kind == CK_ENGINE && has_pipeline(stream)) {
            enter_pipeline(s, c, l, i, e.end_ps, self);
        }
    }
    l->done = e.end_ps > l->done ? e.end_ps : l->done;
    if (instr_opens_loop(in)) {
        enter_loop(s, c, stream);
    } else if (in->op != ISA_loop_end) {
        clock_set_register(c, stream, i);
        l->last = self;
        next_slot(l);
        give_signals(s, c, stream, slot, l->done, self);
    } else if (end_iteration(c, stream)) {
        give_signals(s, c, stream, slot, l->done, l->last);
    }
}

static void run_transfer(sim *s, clock_core *c, unsigned stream, int64_t start)
{
    lane *l = &c->lane[stream];
    uint32_t slot = l->pc, i = c->pr->slots.at[slot].instr;
    transfers *q = &c->out[stream - STREAM_RING0];
    int64_t before = q->n ? q->ring[(q->first + q->n - 1) & (q->cap - 1)].data : 0;
    transfer *t = add_transfer(s, q);
    t->slot = slot;
    t->instr = i;
    t->late = l->late;
    t->wait = l->ready > l->free ? l->ready - l->free : 0;
    t->meets = s->n > 1 && c->p->instrs.at[i].op == ISA_sendrecv;
    clock_run_trigger(c, l, start, t);
    t->data = t->data > before ? t->data : before;
    double moved = clock_share_moved(c, stream, i);
    if (moved < 1) {
        t->work = (int64_t)((double)t->work * moved);
        t->bytes = (uint64_t)((double)t->bytes * moved);
        t->hbm_bytes = (uint64_t)((double)t->hbm_bytes * moved);
    }
    s->steps++;
    next_slot(l);
}

// Both sides of an exchange have been triggered: their bytes move when both are ready. false: the
// other has not.
static bool exchange(sim *s, clock_core *c, transfer *t)
{
    clock_core *other = &s->core[c == s->core];
    transfers *q = &other->out[RING_GROUP];
    transfer *u = q->n ? front(q) : NULL;
    t->reached = true;
    if (!u || !u->meets || !u->reached) {
        return false;
    }
    int64_t at = t->data > u->data ? t->data : u->data;
    c->r->core_ps += at - t->data;
    other->r->core_ps += at - u->data;
    t->data = u->data = at;
    t->meets = u->meets = false;
    return true;
}

static void run_front(sim *s, clock_core *c, unsigned ring)
{
    unsigned stream = STREAM_RING0 + ring;
    transfers *q = &c->out[ring];
    lane *l = &c->lane[stream];
    transfer t = *front(q);
    if (t.meets && !exchange(s, c, front(q))) {
        return;
    }
    t.data = front(q)->data;
    q->first = (q->first + 1) & (q->cap - 1);
    q->n--;
    culprit self = l->last;
    if (t.empty) {
        l->done = l->done > t.data ? l->done : t.data;
    } else {
        int64_t first;
        int64_t end = clock_run_data(s, c, &t, &first);
        l->done = end > l->done ? end : l->done;  // a ring completes in order
        clock_event e = {.instr = t.instr,
                         .wait_ps = t.wait,
                         .start_ps = t.start,
                         .issued_ps = first,
                         .end_ps = l->done};
        record(s, c, stream, &e, t.late, t.issue, &self);
        l->last = self;
    }
    give_signals(s, c, stream, t.slot, l->done, self);
}

// ---- all

// The earliest thing that can happen. false: nothing can.
static bool next_of(const sim *s, uint32_t *core, unsigned *what, int64_t *when)
{
    *when = CLOCK_NEVER;
    *core = *what = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        const clock_core *c = &s->core[k];
        for (unsigned i = 0; i < STREAM_COUNT; i++) {
            const lane *l = &c->lane[i];
            if (l->state != LANE_READY) {
                continue;
            }
            int64_t at = l->ready > l->free ? l->ready : l->free;
            if (stream_is_ring(i)) {
                int64_t unit = clock_unit_free(c, l);
                at = unit > at ? unit : at;
            }
            if (at < *when) {
                *when = at;
                *core = k;
                *what = i;
            }
        }
        for (unsigned r = 0; r < DMA_RINGS; r++) {
            const transfers *q = &c->out[r];
            if (q->n && q->ring[q->first].data < *when &&
                !(q->ring[q->first].meets && q->ring[q->first].reached)) {
                *when = q->ring[q->first].data;
                *core = k;
                *what = STREAM_COUNT + r;
            }
        }
    }
    return *when != CLOCK_NEVER;
}

static bool fail(clock_core *c, clock_error why, uint32_t instr)
{
    c->r->error = why;
    c->r->error_instr = instr;
    return false;
}

// Nothing can happen any more: all streams are at their end, or two of them wait for each other.
static bool all_ended(sim *s)
{
    for (uint32_t k = 0; k < s->n; k++) {
        clock_core *c = &s->core[k];
        for (unsigned i = 0; i < STREAM_COUNT; i++) {
            if (c->lane[i].state != LANE_ENDED) {
                return fail(c, CLOCK_STUCK, c->pr->slots.at[c->lane[i].pc].instr);
            }
        }
        for (unsigned r = 0; r < DMA_RINGS; r++) {
            if (c->out[r].n) {
                return fail(c, CLOCK_STUCK, front(&c->out[r])->instr);
            }
        }
    }
    return true;
}

static bool failed(sim *s)
{
    if (s->steps > s->opts->steps_max) {
        return !fail(&s->core[0], CLOCK_TOO_LONG, 0);
    }
    return s->core[0].r->error || (s->n > 1 && s->core[1].r->error);
}

static bool simulate(sim *s)
{
    uint32_t k;
    unsigned what;
    int64_t when;
    for (uint32_t c = 0; c < s->n; c++) {
        for (unsigned i = 0; i < STREAM_COUNT; i++) {
            settle(s, &s->core[c], i);
        }
    }
    while (!failed(s) && next_of(s, &k, &what, &when)) {
        clock_core *c = &s->core[k];
        if (what >= STREAM_COUNT) {
            run_front(s, c, what - STREAM_COUNT);
            continue;
        }
        if (stream_is_ring(what)) {
            run_transfer(s, c, what, when);
        } else {
            run_slot(s, c, what, when);
        }
        if (c->lane[what].state != LANE_MEETS) {
            settle(s, c, what);
        }
    }
    return !failed(s) && all_ended(s);
}

static void prepare(sim *s, uint32_t k, const program *pr, clock_result *r)
{
    clock_core *c = &s->core[k];
    const ir *p = pr->ir;
    *r = (clock_result){0};
    c->pr = pr;
    c->p = p;
    c->r = r;
    c->first_dma = -1;
    coster_init(&c->cs, p, s->m);
    coster_take_dmas(&c->cs, pr);
    objects_make(s->mem, p, &c->objs);
    c->counters = NEW_N(s->mem, counter, pr->semaphores.n + 1);
    clock_control_init(s, c, s->opts->traces ? &s->opts->traces[k] : NULL);
    for (unsigned i = 0; i < STREAM_COUNT; i++) {
        c->lane[i].pc = pr->stream_first[i];
        c->lane[i].end = pr->stream_first[i + 1];
        c->lane[i].late.semaphore = CLOCK_NO_SEMAPHORE;
    }
    r->of = NEW_N(s->mem, instr_time, p->instrs.n + 1);
}

bool clock_run(arena *mem, const program *const *cores, uint32_t n, const clock_opts *opts,
               clock_result *r)
{
    sim *s = NEW(mem, sim);
    clock_opts o = *opts;
    o.steps_max = o.steps_max ? o.steps_max : (uint64_t)1 << 27;
    s->mem = mem;
    s->opts = &o;
    s->m = o.m ? o.m : machine_of(cores[0]->ir->target);
    s->n = n;
    for (uint32_t k = 0; k < n; k++) {
        prepare(s, k, cores[k], &r[k]);
    }
    if (!simulate(s)) {
        return false;
    }
    int64_t first = CLOCK_NEVER, last = 0;
    for (uint32_t k = 0; k < n; k++) {
        const clock_core *c = &s->core[k];
        r[k].end_ps = c->last_end;
        last = c->last_end > last ? c->last_end : last;
        first = c->first_dma >= 0 && c->first_dma < first ? c->first_dma : first;
    }
    for (uint32_t k = 0; k < n; k++) {
        r[k].body_ps = last - (first == CLOCK_NEVER ? 0 : first);
        r[k].total_ps = r[k].body_ps + ps_of_ns(s->m->launch_ns) + ps_of_ns(s->m->teardown_ns);
    }
    return true;
}
