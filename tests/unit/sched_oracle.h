#ifndef TESTS_SCHED_ORACLE_H
#define TESTS_SCHED_ORACLE_H

// A second opinion on schedules, by brute force: every element that every dynamic instance of an
// instruction touches is listed, and the streams are played with real counters, loops included, in
// random interleavings, each instruction taking a random time from issue to completion. Of two
// instances that touch one element (one of them writing), the earlier in program order must be
// complete before the other is issued.
//
// For the programs of random_program.h: int32 tensors, loops with constant bounds, dynamic offsets
// by loop counters.

#include "lang/program.h"

#include <stdlib.h>

enum { OR_TRIPS = 4, OR_KEYS = OR_TRIPS * OR_TRIPS * OR_TRIPS, OR_DEPTH = 3 };

typedef struct or_instance {
    uint32_t instr;
    int32_t counter[OR_DEPTH];
} or_instance;

typedef struct or_pair {
    uint32_t before, after;
} or_pair;

typedef struct oracle {
    arena *mem;
    const program *pr;
    const ir *p;
    VEC(or_instance) runs;  // in program order
    uint32_t *number;       // [instr][key] + 1
    VEC(or_pair) pairs;
    // Of each element: last write, reads since.
    struct or_cell {
        uint32_t write;  // instance + 1
        VEC(uint32_t) reads;
    } * cells;
    uint32_t *base;  // of each tensor without an address: first cell
} oracle;

static inline uint32_t or_key(const int32_t *counter)
{
    return (uint32_t)((counter[0] * OR_TRIPS + counter[1]) * OR_TRIPS + counter[2]);
}

static inline void or_touch(oracle *o, uint32_t cell, uint32_t run, bool write)
{
    struct or_cell *c = &o->cells[cell];
    if (c->write && c->write - 1 != run) {
        vec_push(o->mem, &o->pairs, ((or_pair){c->write - 1, run}));
    }
    if (!write) {
        vec_push(o->mem, &c->reads, run);
        return;
    }
    for (uint32_t k = 0; k < c->reads.n; k++) {
        if (c->reads.at[k] != run) {
            vec_push(o->mem, &o->pairs, ((or_pair){c->reads.at[k], run}));
        }
    }
    c->reads.n = 0;
    c->write = run + 1;
}

enum {
    OR_SBUF = 0,
    OR_PSUM = 128 * 2048,
    OR_HBM = OR_PSUM + 128 * 1024,
    OR_PARAM = OR_HBM + (1 << 16),
    OR_CELLS = OR_PARAM + (1 << 16)
};

static inline void or_view(oracle *o, uint32_t view, uint32_t run, bool write)
{
    const ir *p = o->p;
    const ir_view *v = ir_view_ref(p, view);
    const ir_tensor *t = &p->tensors.at[v->tensor];
    const ir_dim *d = ir_dims(p, v);
    uint32_t n = ir_ndim(p, v), at[IR_MAX_DIMS] = {0};
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    int64_t offset = v->offset, part = v->part;
    if (v->dyn) {
        const ir_dyn *y = &p->dyns.at[v->dyn];
        int64_t r = o->runs.at[run].counter[y->src];
        *(y->partition ? &part : &offset) += r * y->step;
    }
    for (;;) {
        int64_t row = chip ? t->addr_part + part : 0, word = offset;
        for (uint32_t k = 0; k < n; k++) {
            *(chip && k == 0 ? &row : &word) += d[k].stride * at[k];
        }
        uint32_t cell;
        if (chip) {
            uint32_t width = t->buffer == BUF_SBUF ? 2048 : 1024;
            cell = (t->buffer == BUF_SBUF ? OR_SBUF : OR_PSUM) + (uint32_t)row * width +
                   (uint32_t)(t->addr_bytes / 4) + (uint32_t)word;
        } else if (t->role == ROLE_ARG) {
            cell = OR_PARAM + t->param * 8192 + (uint32_t)word;
        } else {
            cell = OR_HBM + (uint32_t)(t->addr_bytes / 4) + (uint32_t)word;
        }
        or_touch(o, cell, run, write);
        uint32_t k = n;
        while (k && ++at[k - 1] == d[k - 1].count) {
            at[--k] = 0;
        }
        if (!k) {
            return;
        }
    }
}

static inline void or_run(oracle *o, uint32_t i, const int32_t *counter)
{
    const ir_instr *in = &o->p->instrs.at[i];
    or_instance r = {.instr = i};
    memcpy(r.counter, counter, sizeof r.counter);
    vec_push(o->mem, &o->runs, r);
    uint32_t run = o->runs.n - 1;
    o->number[i * OR_KEYS + or_key(counter)] = run + 1;
    for (int write = 0; write < 2; write++) {
        for (uint32_t k = 0; k < in->nargs; k++) {
            ir_arg a = o->p->args.at[in->args + k];
            bool out = isa_table[in->op].params[k].type == PT_OUT;
            if (a.kind == IRA_VIEW && out == write) {
                or_view(o, a.v, run, write);
            }
        }
    }
}

// Plays instructions lo .. hi-1 in program order.
static inline void or_play(oracle *o, uint32_t lo, uint32_t hi, int32_t *counter)
{
    for (uint32_t i = lo; i < hi; i++) {
        const ir_instr *in = &o->p->instrs.at[i];
        if (in->op != ISA_loop_for) {
            if (in->op != ISA_loop_end) {
                or_run(o, i, counter);
            }
            continue;
        }
        uint32_t end = i, depth = 0;
        do {
            depth += o->p->instrs.at[end].op == ISA_loop_for;
            depth -= o->p->instrs.at[end].op == ISA_loop_end;
            end++;
        } while (depth);
        uint32_t reg = o->p->args.at[in->args].v;
        int64_t upper = ira_integer(o->p->args.at[in->args + 2]);
        for (counter[reg] = 0; counter[reg] < upper; counter[reg]++) {
            or_play(o, i + 1, end - 1, counter);
        }
        counter[reg] = 0;
        i = end - 1;
    }
}

static inline oracle *oracle_new(arena *mem, const program *pr)
{
    oracle *o = NEW(mem, oracle);
    o->mem = mem;
    o->pr = pr;
    o->p = pr->ir;
    o->number = NEW_N(mem, uint32_t, (size_t)o->p->instrs.n * OR_KEYS);
    o->cells = arena_alloc(mem, sizeof *o->cells, _Alignof(max_align_t), OR_CELLS);
    int32_t counter[OR_DEPTH] = {0};
    or_play(o, 0, o->p->instrs.n, counter);
    return o;
}

// ---- the streams

typedef struct or_stream {
    uint32_t at, loops;
    uint32_t open[OR_DEPTH];
    int32_t counter[OR_DEPTH];
    bool draining;  // at a loop_end, past its last iteration
    struct {
        uint32_t slot, run;
    } flight[64];  // issued, not complete
    uint32_t nflight;
} or_stream;

typedef struct or_game {
    const oracle *o;
    uint64_t state;
    int64_t *value;
    uint32_t *issued, *complete;  // of each instance: when first issued, when last complete
    uint32_t now;
    const char *wrong;
    or_stream s[STREAM_COUNT];
} or_game;

static inline uint32_t or_draw(or_game *g, uint32_t below)
{
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->state >> 33) % below;
}

static inline bool or_holds(const or_game *g, const queue_slot *q, sync_kind kind)
{
    for (uint32_t k = 0; k < q->nsync; k++) {
        const sync_op *op = &g->o->pr->syncs.at[q->sync + k];
        if (op->kind == kind && g->value[op->semaphore] < (int64_t)op->value) {
            return false;
        }
    }
    return true;
}

static inline void or_do(or_game *g, const queue_slot *q, sync_kind kind)
{
    for (uint32_t k = 0; k < q->nsync; k++) {
        const sync_op *op = &g->o->pr->syncs.at[q->sync + k];
        if (op->kind == kind) {
            bool less = kind == SYNC_TAKE || kind == SYNC_DRAIN;
            g->value[op->semaphore] += less ? -(int64_t)op->value : (int64_t)op->value;
            if (g->value[op->semaphore] < 0) {
                g->wrong = "a semaphore below zero";
            }
        }
    }
}

// Issues what the stream stands before, when it may.
static inline bool or_issue(or_game *g, uint32_t s)
{
    const program *pr = g->o->pr;
    or_stream *x = &g->s[s];
    bool ring = stream_is_ring(s);
    if (x->at == pr->stream_first[s + 1] || (!ring && x->nflight) || x->nflight == 64) {
        return false;
    }
    const queue_slot *q = &pr->slots.at[x->at];
    const ir_instr *in = &pr->ir->instrs.at[q->instr];
    if (!or_holds(g, q, SYNC_WAIT) || (x->draining && !or_holds(g, q, SYNC_DRAIN_WAIT))) {
        return false;
    }
    uint32_t run = 0;
    if (in->op == ISA_loop_for) {
        or_do(g, q, SYNC_CREDIT);
        x->open[x->loops++] = x->at;
        x->counter[pr->ir->args.at[in->args].v] = 0;
        if (ira_integer(pr->ir->args.at[in->args + 2]) > 0) {
            x->at++;
            return true;
        }
        uint32_t depth = 0;
        do {
            uint16_t op = pr->ir->instrs.at[pr->slots.at[x->at].instr].op;
            depth += op == ISA_loop_for;
            depth -= op == ISA_loop_end;
            x->at++;
        } while (depth);
        x->at--;
        x->draining = true;
        return true;
    }
    if (in->op == ISA_loop_end && !x->draining) {
        const ir_instr *head = &pr->ir->instrs.at[pr->slots.at[x->open[x->loops - 1]].instr];
        int32_t *c = &x->counter[pr->ir->args.at[head->args].v];
        or_do(g, q, SYNC_TAKE);
        if (++*c < ira_integer(pr->ir->args.at[head->args + 2])) {
            x->at = x->open[x->loops - 1] + 1;
        } else {
            *c = 0;
            x->draining = true;
        }
        return true;
    }
    if (in->op == ISA_loop_end) {
        or_do(g, q, SYNC_DRAIN);
        x->draining = false;
        x->loops--;
    } else {
        run = g->o->number[q->instr * OR_KEYS + or_key(x->counter)];
        if (!run) {
            g->wrong = "an instance that the program does not have";
            return false;
        }
        if (!g->issued[run - 1]) {
            g->issued[run - 1] = g->now;
        }
    }
    x->flight[x->nflight].slot = x->at++;
    x->flight[x->nflight++].run = run;
    return true;
}

static inline bool or_finish(or_game *g, uint32_t s)
{
    or_stream *x = &g->s[s];
    if (!x->nflight) {
        return false;
    }
    if (x->flight[0].run) {
        g->complete[x->flight[0].run - 1] = g->now;
    }
    or_do(g, &g->o->pr->slots.at[x->flight[0].slot], SYNC_SIGNAL);
    memmove(x->flight, x->flight + 1, --x->nflight * sizeof *x->flight);
    return true;
}

// NULL, or what went wrong in the interleaving of this seed.
static inline const char *oracle_play(const oracle *o, arena *mem, uint64_t seed)
{
    or_game *g = NEW(mem, or_game);
    g->o = o;
    g->state = seed;
    g->value = NEW_N(mem, int64_t, o->pr->semaphores.n);
    g->issued = NEW_N(mem, uint32_t, o->runs.n);
    g->complete = NEW_N(mem, uint32_t, o->runs.n);
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        g->s[s].at = o->pr->stream_first[s];
    }
    // Each game prefers some streams and delays others.
    uint32_t slow = or_draw(g, 1u << STREAM_COUNT), idle = 0;
    for (uint32_t s = 0; idle < STREAM_COUNT && !g->wrong; s = (s + 1) % STREAM_COUNT) {
        g->now++;
        if ((slow >> s & 1) && idle == 0 && or_draw(g, 8)) {
            continue;
        }
        bool moved =
            or_draw(g, 3) ? or_issue(g, s) || or_finish(g, s) : or_finish(g, s) || or_issue(g, s);
        idle = moved ? 0 : idle + 1;
    }
    for (uint32_t r = 0; r < o->runs.n && !g->wrong; r++) {
        if (!g->complete[r]) {
            g->wrong = "an instance that never completes";
        }
    }
    for (uint32_t k = 0; k < o->pairs.n && !g->wrong; k++) {
        const or_pair *q = &o->pairs.at[k];
        uint32_t a = o->runs.at[q->before].instr, b = o->runs.at[q->after].instr;
        // An engine issues the next when the last is complete; only other streams can overtake.
        if (g->complete[q->before] > g->issued[q->after]) {
            g->wrong = arena_printf(mem, "@%u is issued before @%u is complete", b, a);
        }
    }
    return g->wrong;
}

#endif
