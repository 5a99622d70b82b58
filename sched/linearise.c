#include "sched/linearise.h"

enum { PENDING_MAX = 16 };  // transfers of a ring between issue and completion

typedef struct transfer {
    uint32_t slot;
    bool done;
} transfer;

typedef struct runner {
    const program *pr;
    uint64_t random;
    uint64_t *value;   // of each semaphore
    uint32_t *copies;  // of each instruction: entries in streams
    uint32_t *here;    // of each instruction: streams that stand before it
    uint32_t *order, n;
    uint32_t at[STREAM_COUNT];
    bool standing[STREAM_COUNT];
    transfer pending[STREAM_COUNT][PENDING_MAX];
    uint32_t npending[STREAM_COUNT];
} runner;

static uint32_t draw(runner *r, uint32_t below)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return (uint32_t)((r->random >> 32) % below);
}

static const ir_instr *next_instr(const runner *r, uint32_t s)
{
    return &r->pr->ir->instrs.at[r->pr->slots.at[r->at[s]].instr];
}

static bool waits_hold(const runner *r, const queue_slot *q)
{
    for (uint32_t k = 0; k < q->nsync; k++) {
        const sync_op *o = &r->pr->syncs.at[q->sync + k];
        if (o->kind == SYNC_WAIT && r->value[o->semaphore] < o->value) {
            return false;
        }
    }
    return true;
}

static void signal_all(runner *r, const queue_slot *q)
{
    for (uint32_t k = 0; k < q->nsync; k++) {
        const sync_op *o = &r->pr->syncs.at[q->sync + k];
        if (o->kind == SYNC_SIGNAL) {
            r->value[o->semaphore] += o->value;
        }
    }
}

static bool stream_has(const runner *r, uint32_t s)
{
    return r->at[s] < r->pr->stream_first[s + 1];
}

// Lets all streams that stand before instruction i pass it: past the end of a loop.
static void pass(runner *r, uint32_t i)
{
    const program *pr = r->pr;
    uint32_t last = i;
    bool loop =
        pr->ir->instrs.at[i].op == ISA_loop_for || pr->ir->instrs.at[i].op == ISA_loop_while;
    for (uint32_t depth = 0; loop; last++) {
        uint16_t op = pr->ir->instrs.at[last].op;
        depth += op == ISA_loop_for || op == ISA_loop_while;
        r->order[r->n++] = last;
        if (op == ISA_loop_end && --depth == 0) {
            break;
        }
    }
    if (!loop) {
        r->order[r->n++] = i;
    }
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (r->standing[s] && pr->slots.at[r->at[s]].instr == i) {
            while (pr->slots.at[r->at[s]].instr != last) {
                r->at[s]++;
            }
            signal_all(r, &pr->slots.at[r->at[s]]);
            r->at[s]++;
            r->standing[s] = false;
        }
    }
}

// One transfer takes effect, or those at the front complete.
static bool step_ring(runner *r, uint32_t s)
{
    uint32_t n = r->npending[s];
    if (n == 0) {
        return false;
    }
    transfer *t = &r->pending[s][draw(r, n)];
    t = t->done && !r->pending[s][0].done ? r->pending[s] : t;
    if (!t->done) {
        t->done = true;
        r->order[r->n++] = r->pr->slots.at[t->slot].instr;
        return true;
    }
    uint32_t k = 0;
    for (; k < n && r->pending[s][k].done; k++) {
        signal_all(r, &r->pr->slots.at[r->pending[s][k].slot]);
    }
    memmove(r->pending[s], r->pending[s] + k, (n - k) * sizeof *t);
    r->npending[s] = n - k;
    return true;
}

static bool step(runner *r, uint32_t s)
{
    bool ring = stream_is_ring(s);
    if (ring && (draw(r, 2) || !stream_has(r, s)) && step_ring(r, s)) {
        return true;
    }
    if (!stream_has(r, s) || r->standing[s]) {
        return false;
    }
    const queue_slot *q = &r->pr->slots.at[r->at[s]];
    if (!waits_hold(r, q)) {
        return ring && step_ring(r, s);
    }
    const ir_instr *in = next_instr(r, s);
    if (r->copies[q->instr] > 1 || in->op == ISA_loop_for || in->op == ISA_loop_while) {
        if (ring && r->npending[s]) {
            return step_ring(r, s);
        }
        r->standing[s] = true;
        if (++r->here[q->instr] == r->copies[q->instr]) {
            pass(r, q->instr);
        }
        return true;
    }
    if (ring) {
        if (r->npending[s] == PENDING_MAX) {
            return step_ring(r, s);
        }
        r->pending[s][r->npending[s]++] = (transfer){r->at[s]++, false};
        return true;
    }
    r->order[r->n++] = q->instr;
    signal_all(r, q);
    r->at[s]++;
    return true;
}

bool sched_linearise(const program *pr, arena *mem, uint64_t seed, uint32_t *order)
{
    runner *r = NEW(mem, runner);
    r->pr = pr;
    r->random = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    r->value = NEW_N(mem, uint64_t, pr->semaphores.n);
    r->copies = NEW_N(mem, uint32_t, pr->ir->instrs.n);
    r->here = NEW_N(mem, uint32_t, pr->ir->instrs.n);
    r->order = order;
    for (uint32_t k = 0; k < pr->slots.n; k++) {
        r->copies[pr->slots.at[k].instr]++;
    }
    memcpy(r->at, pr->stream_first, sizeof r->at);
    uint32_t idle = 0;  // streams in a row that could not move
    for (uint32_t s = draw(r, STREAM_COUNT); idle < STREAM_COUNT;) {
        bool moved = step(r, s);
        for (uint32_t burst = draw(r, 4); moved && burst; burst--) {
            step(r, s);
        }
        idle = moved ? 0 : idle + 1;
        s = moved ? draw(r, STREAM_COUNT) : (s + 1) % STREAM_COUNT;
    }
    return r->n == pr->ir->instrs.n;
}
