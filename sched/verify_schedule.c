#include "sched/verify_schedule.h"

#include "sched/verify_memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

// Each level (the program, the body of each loop) is run once, in any order that its semaphores
// allow; inner loops are single items that all their streams enter together. One such run exists
// exactly when there is no deadlock, since a wait that holds stays true until its own stream moves.
//
// While it runs, each stream keeps a clock: the last item of each other stream that is certain to
// be complete. A wait for a value means: a certain signal of the producer, counted in its order. So
// what the clocks say holds in every interleaving, and each pair of accesses that meet has to be
// ordered by them as the program orders them.
//
// A loop's body is run twice. Each iteration leaves the semaphores as it found them, so iteration
// i + 1 stands to iteration i as the second does to the first: an access of iteration i comes
// before each that meets it in iteration i + 1, and so before those of all later ones.

typedef struct sent {
    uint64_t value;  // the producer's total with this signal
    uint32_t tick;
    uint32_t clock;  // number of first entry in `clocks`
} sent;

typedef struct counter {
    VEC(sent) sent;
    uint64_t base;   // when the level began, credits included
    uint64_t added;  // by the producer since
    uint64_t taken;  // by the consumer since
} counter;

typedef struct frame {                            // a level yet to be run
    uint32_t loop;                                // its first instruction + 1; 0: the program
    uint32_t lo[STREAM_COUNT], hi[STREAM_COUNT];  // slots of its body
    uint64_t *base;                               // of each semaphore
} frame;

typedef struct proof {
    arena *mem;
    const program *pr;
    const ir *p;
    const char *err;
    memory_map *memory;
    visit_index *index;
    footprint_list prints;
    // Structure.
    uint32_t *home;     // of each instruction: first instruction of the innermost loop + 1, or 0
    uint32_t *end_of;   // of each loop_for, loop_while: its loop_end
    uint32_t *partner;  // of each slot that opens a loop: the slot that ends it
    uint32_t *entries;  // of each instruction: streams that have it, as bits
    uint32_t *slot_in[STREAM_COUNT];  // lazily: slot of each instruction, for stated dependences
    // The level at hand.
    counter *counters;
    VEC(frame) frames;
    frame f;
    uint32_t at[STREAM_COUNT];  // next slot
    uint32_t tick[STREAM_COUNT];
    uint32_t clock[STREAM_COUNT][STREAM_COUNT];
    VEC(uint32_t) clocks;
    uint64_t *when;  // of each slot: level number << 32 | tick
    uint32_t level;
    int sweep;  // 0, 1
    // The access at hand.
    uint32_t instr, stream, child;
    const footprint *print;
    const visit *clash;
    // Streams that stand before an inner loop.
    uint32_t arrived[STREAM_COUNT];
} proof;

static bool fail(proof *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fail(proof *f, const char *fmt, ...)
{
    char buf[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    if (!f->err) {
        f->err = arena_text(f->mem, buf, strlen(buf));
    }
    return false;
}

static const ir_instr *instr_at(const proof *f, uint32_t slot)
{
    return &f->p->instrs.at[f->pr->slots.at[slot].instr];
}

static bool opens(const ir_instr *in)
{
    return in->op == ISA_loop_for || in->op == ISA_loop_while;
}

// ---- structure

static void find_homes(proof *f)
{
    const ir *p = f->p;
    uint32_t stack[IR_MAX_LOOPS + 1] = {0}, depth = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        if (p->instrs.at[i].op == ISA_loop_end && depth) {
            f->end_of[stack[depth] - 1] = i;
            depth--;
        }
        f->home[i] = stack[depth];
        if (opens(&p->instrs.at[i])) {
            stack[++depth] = i + 1;
        }
    }
}

// Whether streams may keep copies of it, each for its own registers.
static bool copied(const ir_instr *in)
{
    return opens(in) || in->op == ISA_loop_end || in->op == ISA_register_move ||
           in->op == ISA_register_load;
}

static bool check_sync(proof *f, uint32_t stream, uint32_t slot)
{
    const queue_slot *q = &f->pr->slots.at[slot];
    const ir_instr *in = instr_at(f, slot);
    if (q->sync > f->pr->syncs.n || q->nsync > f->pr->syncs.n - q->sync) {
        return fail(f, "slot %" PRIu32 ": its semaphore operations do not exist", slot);
    }
    for (uint32_t k = 0; k < q->nsync; k++) {
        const sync_op *o = &f->pr->syncs.at[q->sync + k];
        if (o->kind >= SYNC_KIND_COUNT || o->semaphore >= f->pr->semaphores.n ||
            (k && o->kind < o[-1].kind)) {
            return fail(f, "slot %" PRIu32 ": semaphore operation %" PRIu32 " is malformed", slot,
                        k);
        }
        const semaphore_info *s = &f->pr->semaphores.at[o->semaphore];
        if (stream != (o->kind == SYNC_SIGNAL ? s->producer : s->consumer)) {
            return fail(f, "slot %" PRIu32 ": semaphore s%u does not belong to %s", slot,
                        o->semaphore, stream_name(stream));
        }
        bool entry = o->kind == SYNC_CREDIT, end = o->kind >= SYNC_TAKE;
        if ((entry && !opens(in)) || (end && in->op != ISA_loop_end) ||
            (o->kind == SYNC_WAIT && in->op == ISA_loop_end) ||
            (o->kind == SYNC_SIGNAL && opens(in)) || o->value == 0) {
            return fail(f, "slot %" PRIu32 ": semaphore operation %" PRIu32 " is out of place",
                        slot, k);
        }
    }
    return true;
}

static bool check_stream(proof *f, uint32_t s)
{
    const program *pr = f->pr;
    uint32_t stack[IR_MAX_LOOPS + 1], depth = 0;
    for (uint32_t k = pr->stream_first[s]; k < pr->stream_first[s + 1]; k++) {
        uint32_t i = pr->slots.at[k].instr;
        if (i >= f->p->instrs.n) {
            return fail(f, "slot %" PRIu32 ": instruction %" PRIu32 " does not exist", k, i);
        }
        const ir_instr *in = &f->p->instrs.at[i];
        if (f->entries[i] >> s & 1) {
            return fail(f, "instruction %" PRIu32 " is twice in %s", i, stream_name(s));
        }
        f->entries[i] |= 1u << s;
        if (in->op == ISA_loop_end) {
            uint32_t open = depth ? stack[--depth] : k;
            if (open == k || f->end_of[pr->slots.at[open].instr] != i) {
                return fail(f, "slot %" PRIu32 ": ends another loop than it is in", k);
            }
            f->partner[open] = k;
        }
        uint32_t home = depth ? pr->slots.at[stack[depth - 1]].instr + 1 : 0;
        if (f->home[i] != home) {
            return fail(f, "slot %" PRIu32 ": instruction %" PRIu32 " is outside its loop in %s", k,
                        i, stream_name(s));
        }
        if (opens(in)) {
            stack[depth++] = k;  // as deep as the program's own nesting, which the homes follow
        }
        if (!check_sync(f, s, k)) {
            return false;
        }
    }
    return depth == 0 || fail(f, "%s: a loop does not end", stream_name(s));
}

static bool check_homes(proof *f)
{
    const program *pr = f->pr;
    uint32_t dma = 0;
    for (uint32_t i = 0; i < f->p->instrs.n; i++) {
        const ir_instr *in = &f->p->instrs.at[i];
        uint32_t own = in->engine;
        if (in->engine == ENG_DMA) {
            if (dma >= pr->dmas.n || pr->dmas.at[dma].instr != i ||
                pr->dmas.at[dma].ring >= DMA_RINGS) {
                return fail(f, "instruction %" PRIu32 " has no ring", i);
            }
            own = STREAM_RING0 + pr->dmas.at[dma++].ring;
        }
        if (copied(in) ? f->entries[i] == 0 : f->entries[i] != 1u << own) {
            return fail(f, "instruction %" PRIu32 " (%s) is not in its stream, %s", i,
                        isa_table[in->op].name, stream_name(own));
        }
    }
    return true;
}

// ---- registers: a stream that reads one has every instruction that writes it

static void registers_of(proof *f, ir_arg a, uint32_t *streams, uint32_t mask)
{
    if (a.kind == IRA_REG) {
        streams[a.v] |= mask;
    } else if (a.kind == IRA_VIEW) {
        uint32_t dyn = ir_view_at(f->p, a.v).dyn;
        if (dyn && f->p->dyns.at[dyn].kind == DYN_REG) {
            streams[f->p->dyns.at[dyn].src] |= mask;
        }
    }
    for (int k = 0; a.kind == IRA_LIST && k < a.aux; k++) {
        registers_of(f, f->p->args.at[a.v + (uint32_t)k], streams, mask);
    }
}

static bool check_registers(proof *f)
{
    const ir *p = f->p;
    uint32_t *readers = NEW_N(f->mem, uint32_t, p->registers);
    for (int pass = 0; p->registers && pass < 2; pass++) {
        for (uint32_t i = 0; i < p->instrs.n; i++) {
            const ir_instr *in = &p->instrs.at[i];
            for (uint32_t k = 0; k < in->nargs; k++) {
                ir_arg a = p->args.at[in->args + k];
                bool writes = isa_table[in->op].params[k].type == PT_REGOUT;
                if (pass == 0 && !writes) {
                    registers_of(f, a, readers, f->entries[i]);
                } else if (pass == 1 && writes && a.kind == IRA_REG &&
                           (readers[a.v] & ~f->entries[i])) {
                    return fail(f,
                                "instruction %" PRIu32 " writes register %" PRIu32
                                ", which a stream without it reads",
                                i, a.v);
                }
            }
        }
    }
    return true;
}

// ---- clocks and counters

static uint64_t value_of(const counter *c)
{
    return c->base + c->added - c->taken;
}

static void learn(uint32_t *to, const uint32_t *from)
{
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        to[s] = to[s] < from[s] ? from[s] : to[s];
    }
}

// Which signal `value` is: the first with which the count reaches it. NULL: one before the level.
// Requires: the count has reached it.
static const sent *sent_for(const counter *c, uint64_t value)
{
    if (value + c->taken <= c->base) {
        return NULL;
    }
    uint64_t total = value + c->taken - c->base;
    uint32_t lo = 0, hi = c->sent.n - 1;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (c->sent.at[mid].value >= total) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return &c->sent.at[lo];
}

static void wait_done(proof *f, uint32_t stream, const sync_op *o)
{
    const sent *s = sent_for(&f->counters[o->semaphore], o->value);
    if (s) {
        uint32_t producer = f->pr->semaphores.at[o->semaphore].producer;
        learn(f->clock[stream], &f->clocks.at[s->clock]);
        if (f->clock[stream][producer] < s->tick) {
            f->clock[stream][producer] = s->tick;
        }
    }
}

// Whether the waits of a slot hold now.
static bool ready(const proof *f, uint32_t slot)
{
    const queue_slot *q = &f->pr->slots.at[slot];
    for (uint32_t k = 0; k < q->nsync; k++) {
        const sync_op *o = &f->pr->syncs.at[q->sync + k];
        if (o->kind == SYNC_WAIT && value_of(&f->counters[o->semaphore]) < o->value) {
            return false;
        }
    }
    return true;
}

static void do_waits(proof *f, uint32_t stream, uint32_t slot)
{
    const queue_slot *q = &f->pr->slots.at[slot];
    for (uint32_t k = 0; k < q->nsync; k++) {
        if (f->pr->syncs.at[q->sync + k].kind == SYNC_WAIT) {
            wait_done(f, stream, &f->pr->syncs.at[q->sync + k]);
        }
    }
}

static void do_signals(proof *f, uint32_t stream, uint32_t slot)
{
    const queue_slot *q = &f->pr->slots.at[slot];
    for (uint32_t k = 0; k < q->nsync; k++) {
        const sync_op *o = &f->pr->syncs.at[q->sync + k];
        if (o->kind == SYNC_SIGNAL) {
            counter *c = &f->counters[o->semaphore];
            c->added += o->value;
            sent s = {c->added, f->tick[stream], f->clocks.n};
            vec_reserve(f->mem, &f->clocks, STREAM_COUNT);
            memcpy(f->clocks.at + f->clocks.n, f->clock[stream], sizeof f->clock[stream]);
            f->clocks.n += STREAM_COUNT;
            vec_push(f->mem, &c->sent, s);
        }
    }
}

// ---- accesses

// Whether what `stream` did at `tick` is certain to be over.
static bool over(const proof *f, uint32_t stream, uint32_t tick)
{
    bool own_engine = stream == f->stream && !stream_is_ring(stream);
    return own_engine ? tick <= f->tick[stream] : tick <= f->clock[f->stream][stream];
}

static void against(void *ctx, visit *v)
{
    proof *f = ctx;
    const footprint *a = f->print;
    // This access outlasts v in every proof to come: nothing that happens inside an inner loop is
    // known outside of it, but that a stream keeps its order.
    bool stays = f->home[f->instr] == f->f.loop ||
                 (f->sweep == 0 && f->home[f->instr] == v->home && v->stream == f->stream);
    bool copy = f->sweep == 0 && (v->instr == f->instr || (f->child && v->child == f->child));
    if (!a->write && !v->at.write) {
        if (f->sweep == 0 && stays && v->stream == f->stream && v->instr != f->instr &&
            footprint_contains(a, &v->at)) {
            v->dead = true;
        }
        return;
    }
    if (!copy && (!over(f, v->stream, v->tick) || (f->sweep == 0 && v->instr > f->instr))) {
        if (!f->clash && footprints_meet(a, &v->at)) {
            f->clash = v;
        }
        return;
    }
    if (a->write && stays && v->instr != f->instr && footprint_contains(a, &v->at)) {
        v->dead = true;
    }
}

static bool visit_all(proof *f, uint32_t stream, uint32_t i, uint32_t child)
{
    f->clash = NULL;
    visit_index_find(f->index, f->print, against, f);
    if (f->clash) {
        const visit *v = f->clash;
        return fail(f, "%s @%" PRIu32 " in %s may %s before @%" PRIu32 " in %s has %s%s",
                    isa_table[f->p->instrs.at[i].op].name, i, stream_name(stream),
                    f->print->write ? "write" : "read", v->instr, stream_name(v->stream),
                    v->at.write ? "written" : "read", f->sweep ? " an iteration earlier" : "");
    }
    if (f->sweep == 0) {
        visit v = {.at = *f->print,
                   .instr = i,
                   .home = f->home[i],
                   .child = child,
                   .stream = stream,
                   .tick = f->tick[stream] + 1};
        visit_index_add(f->index, &v);
    }
    return true;
}

static bool touch(proof *f, uint32_t stream, uint32_t i, uint32_t child)
{
    memory_footprints(f->memory, i, &f->prints);
    f->instr = i;
    f->stream = stream;
    f->child = child;
    // Writes first: a read may drop visits that the same instruction's write must be held against.
    for (uint32_t k = 0; k < 2 * f->prints.n; k++) {
        f->print = &f->prints.at[k % f->prints.n];
        if (f->print->write == (k < f->prints.n) && !visit_all(f, stream, i, child)) {
            return false;
        }
    }
    return true;
}

// The inner loop of the level at hand that holds i; 0 when i stands in the level itself or outside.
static uint32_t inner_loop(const proof *f, uint32_t i)
{
    uint32_t h = f->home[i];
    while (h && h != f->f.loop && f->home[h - 1] != f->f.loop) {
        h = f->home[h - 1];
    }
    return h == f->f.loop ? 0 : h;
}

static uint32_t slot_of(proof *f, uint32_t stream, uint32_t i)
{
    if (!f->slot_in[stream]) {
        f->slot_in[stream] = NEW_N(f->mem, uint32_t, f->p->instrs.n);
        for (uint32_t k = f->pr->stream_first[stream]; k < f->pr->stream_first[stream + 1]; k++) {
            f->slot_in[stream][f->pr->slots.at[k].instr] = k;
        }
    }
    return f->slot_in[stream][i];
}

// Dependences that the kernel states: within one iteration.
static bool check_stated(proof *f, uint32_t stream, uint32_t i, uint32_t child)
{
    const ir *p = f->p;
    f->stream = stream;
    for (uint32_t k = p->instrs.at[i].deps; k && p->deps.at[k] != IR_DEPS_END; k++) {
        uint32_t from = p->deps.at[k];
        bool here = !f->f.loop || (from >= f->f.loop && from < f->end_of[f->f.loop - 1]);
        uint32_t other = inner_loop(f, from);
        if (!here || (other && other == child) || from == i) {
            continue;
        }
        if (opens(&p->instrs.at[from])) {
            if (i <= f->end_of[from]) {
                continue;  // inside it
            }
            from = f->end_of[from];
        }
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            if (f->entries[from] >> s & 1) {
                uint64_t when = f->when[slot_of(f, s, from)];
                if (when >> 32 != f->level || !over(f, s, (uint32_t)when)) {
                    return fail(f, "@%" PRIu32 " may begin before @%" PRIu32 " is complete", i,
                                from);
                }
            }
        }
    }
    return true;
}

// ---- running a level

static bool run_slot(proof *f, uint32_t s)
{
    uint32_t slot = f->at[s], i = f->pr->slots.at[slot].instr;
    do_waits(f, s, slot);
    if (!touch(f, s, i, 0) || (f->sweep == 0 && !check_stated(f, s, i, 0))) {
        return false;
    }
    f->tick[s]++;
    f->when[slot] = (uint64_t)f->level << 32 | f->tick[s];
    do_signals(f, s, slot);
    f->at[s]++;
    return true;
}

// All streams of an inner loop stand before it.
static bool run_inner(proof *f, uint32_t i)
{
    frame in = {.loop = i + 1};
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (!(f->entries[i] >> s & 1)) {
            continue;
        }
        uint32_t slot = f->at[s], end = f->partner[slot];
        in.lo[s] = slot;
        in.hi[s] = end;
        do_waits(f, s, slot);
        for (uint32_t k = slot; k <= end; k++) {
            uint32_t x = f->pr->slots.at[k].instr;
            if (!touch(f, s, x, i + 1) || (f->sweep == 0 && !check_stated(f, s, x, i + 1))) {
                return false;
            }
            f->when[k] = (uint64_t)f->level << 32 | (f->tick[s] + 1);
        }
    }
    if (f->sweep == 0) {
        in.base = NEW_N(f->mem, uint64_t, f->pr->semaphores.n);
        for (uint32_t k = 0; k < f->pr->semaphores.n; k++) {
            in.base[k] = value_of(&f->counters[k]);
        }
        vec_push(f->mem, &f->frames, in);
    }
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (f->entries[i] >> s & 1) {
            f->tick[s]++;
            f->at[s] = in.hi[s] + 1;
            do_signals(f, s, in.hi[s]);
            f->arrived[s] = 0;
        }
    }
    return true;
}

// Runs stream s as far as it goes. Returns whether it moved.
static bool advance(proof *f, uint32_t s)
{
    bool moved = false;
    while (!f->err && !f->arrived[s] && f->at[s] < f->f.hi[s] && ready(f, f->at[s])) {
        uint32_t i = f->pr->slots.at[f->at[s]].instr;
        moved = true;
        if (!opens(&f->p->instrs.at[i])) {
            run_slot(f, s);
            continue;
        }
        f->arrived[s] = i + 1;
        bool all = true;
        for (uint32_t o = 0; o < STREAM_COUNT; o++) {
            all = all && (!(f->entries[i] >> o & 1) || f->arrived[o] == i + 1);
        }
        if (all) {
            run_inner(f, i);
        }
    }
    return moved;
}

static bool run_sweep(proof *f)
{
    memcpy(f->at, f->f.lo, sizeof f->at);
    memset(f->arrived, 0, sizeof f->arrived);
    for (uint32_t s = 0; f->f.loop && s < STREAM_COUNT; s++) {
        f->at[s] += f->f.lo[s] < f->f.hi[s];  // past the instruction that opens the loop
    }
    for (bool moved = true; moved && !f->err;) {
        moved = false;
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            moved |= advance(f, s);
        }
    }
    for (uint32_t s = 0; !f->err && s < STREAM_COUNT; s++) {
        if (f->at[s] < f->f.hi[s]) {
            return fail(f, "deadlock: %s never issues @%" PRIu32, stream_name(s),
                        f->pr->slots.at[f->at[s]].instr);
        }
    }
    return !f->err;
}

// ---- a loop's own operations

// The consumer lowers the count by `value` now: is the count certain to be that high?
static bool certain(proof *f, uint32_t s, const sync_op *o)
{
    const counter *c = &f->counters[o->semaphore];
    if (value_of(c) < o->value) {
        return false;
    }
    const sent *last = sent_for(c, o->value);
    f->stream = s;
    return !last || over(f, f->pr->semaphores.at[o->semaphore].producer, last->tick);
}

static bool take_all(proof *f)
{
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (f->f.lo[s] == f->f.hi[s]) {
            continue;
        }
        const queue_slot *q = &f->pr->slots.at[f->f.hi[s]];
        for (uint32_t k = 0; k < q->nsync; k++) {
            const sync_op *o = &f->pr->syncs.at[q->sync + k];
            if (o->kind != SYNC_TAKE) {
                continue;
            }
            if (!certain(f, s, o)) {
                return fail(f, "@%" PRIu32 " in %s may take s%u below zero", q->instr,
                            stream_name(s), o->semaphore);
            }
            f->counters[o->semaphore].taken += o->value;
        }
    }
    for (uint32_t k = 0; k < f->pr->semaphores.n; k++) {
        if (f->counters[k].taken != f->counters[k].added) {
            return fail(f, "loop @%" PRIu32 ": an iteration changes s%" PRIu32, f->f.loop - 1, k);
        }
    }
    return true;
}

// Credits at the entry, and that the exit takes back as much after waiting for it.
static bool begin_loop(proof *f, uint64_t *credit)
{
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (f->f.lo[s] == f->f.hi[s]) {
            continue;
        }
        const queue_slot *q = &f->pr->slots.at[f->f.lo[s]], *e = &f->pr->slots.at[f->f.hi[s]];
        for (uint32_t k = 0; k < q->nsync; k++) {
            const sync_op *o = &f->pr->syncs.at[q->sync + k];
            if (o->kind == SYNC_CREDIT) {
                credit[o->semaphore] += o->value;
                f->counters[o->semaphore].base += o->value;
            }
        }
        for (uint32_t k = 0; k < e->nsync; k++) {
            const sync_op *o = &f->pr->syncs.at[e->sync + k];
            if (o->kind != SYNC_DRAIN) {
                continue;
            }
            bool waited = false;
            for (uint32_t w = 0; w < k; w++) {
                const sync_op *d = &f->pr->syncs.at[e->sync + w];
                waited |= d->kind == SYNC_DRAIN_WAIT && d->semaphore == o->semaphore &&
                          d->value >= f->counters[o->semaphore].base;
            }
            if (!waited || credit[o->semaphore] < o->value) {
                return fail(f, "loop @%" PRIu32 ": s%u may be drained below zero", f->f.loop - 1,
                            o->semaphore);
            }
            credit[o->semaphore] -= o->value;
        }
        for (uint32_t k = 0; k < e->nsync; k++) {
            const sync_op *o = &f->pr->syncs.at[e->sync + k];
            if (o->kind == SYNC_DRAIN_WAIT && o->value > f->counters[o->semaphore].base) {
                return fail(f, "loop @%" PRIu32 ": its end waits for s%u for ever", f->f.loop - 1,
                            o->semaphore);
            }
        }
    }
    for (uint32_t k = 0; k < f->pr->semaphores.n; k++) {
        if (credit[k]) {
            return fail(f, "loop @%" PRIu32 ": changes s%" PRIu32, f->f.loop - 1, k);
        }
    }
    return true;
}

static bool run_level(proof *f)
{
    f->level++;
    f->sweep = 0;
    f->clocks.n = 0;
    visit_index_clear(f->index);
    memset(f->clock, 0, sizeof f->clock);
    memset(f->tick, 0, sizeof f->tick);
    for (uint32_t k = 0; k < f->pr->semaphores.n; k++) {
        counter *c = &f->counters[k];
        c->sent.n = 0;
        c->base = f->f.base ? f->f.base[k] : 0;
        c->added = c->taken = 0;
    }
    if (!f->f.loop) {
        return run_sweep(f);
    }
    uint64_t *credit = NEW_N(f->mem, uint64_t, f->pr->semaphores.n);
    if (!begin_loop(f, credit) || !run_sweep(f) || !take_all(f)) {
        return false;
    }
    f->sweep = 1;
    return run_sweep(f);
}

const char *schedule_verify(const program *pr, arena *mem)
{
    proof *f = NEW(mem, proof);
    f->mem = mem;
    f->pr = pr;
    f->p = pr->ir;
    uint32_t n = f->p->instrs.n;
    f->home = NEW_N(mem, uint32_t, n);
    f->end_of = NEW_N(mem, uint32_t, n);
    f->entries = NEW_N(mem, uint32_t, n);
    f->partner = NEW_N(mem, uint32_t, pr->slots.n);
    f->when = NEW_N(mem, uint64_t, pr->slots.n);
    f->counters = NEW_N(mem, counter, pr->semaphores.n);
    find_homes(f);
    if (pr->semaphores.n > f->p->target->semaphores) {
        fail(f, "%" PRIu32 " semaphores, the core has %" PRIu32, pr->semaphores.n,
             f->p->target->semaphores);
        return f->err;
    }
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (pr->stream_first[s] > pr->stream_first[s + 1] ||
            pr->stream_first[s + 1] > pr->slots.n) {
            fail(f, "%s: its slots do not exist", stream_name(s));
            return f->err;
        }
        if (!check_stream(f, s)) {
            return f->err;
        }
    }
    for (uint32_t k = 0; k < pr->semaphores.n; k++) {
        const semaphore_info *s = &pr->semaphores.at[k];
        if (s->producer >= STREAM_COUNT || s->consumer >= STREAM_COUNT) {
            fail(f, "semaphore s%" PRIu32 " belongs to no stream", k);
            return f->err;
        }
    }
    if (!check_homes(f) || !check_registers(f)) {
        return f->err;
    }
    f->memory = memory_map_new(mem, f->p);
    f->index = visit_index_new(mem, f->memory);
    frame top = {0};
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        top.lo[s] = pr->stream_first[s];
        top.hi[s] = pr->stream_first[s + 1];
    }
    vec_push(mem, &f->frames, top);
    for (uint32_t k = 0; k < f->frames.n && !f->err; k++) {
        f->f = f->frames.at[k];
        run_level(f);
    }
    return f->err;
}
