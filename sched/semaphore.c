#include "sched/issue.h"

#include <stdlib.h>

// Waits and signals. Two steps for each level (the program, then each loop's body):
//
// 1. Which waits. Every stream has a clock: the rank in each other stream that it knows to be
//    complete. A dependence that the clock already answers needs no wait. A wait brings the clock
//    that the awaited item had when it was issued. In a loop, a second clock holds what is known of
//    the iteration before.
// 2. Which values. A semaphore belongs to a pair of streams. Its value, as the consumer sees it, is
//    the number of signals of the iterations at hand: at the end of each iteration the consumer
//    takes off what one iteration adds. Where it waits for the iteration before, it starts the loop
//    with one iteration's signals as credit, so that the count lags by one.

enum { DMA_SIGNAL = 16 };  // each of the 16 DMA engines adds one

typedef struct clock_pair {
    uint32_t now[STREAM_COUNT], before[STREAM_COUNT];
} clock_pair;

typedef struct raw_wait {
    uint32_t instr, rank;  // waits for this rank
    uint8_t consumer, producer, carried;
} raw_wait;

// A sync_op on its way to its slot.
typedef struct placed_op {
    uint32_t next;  // of the same instruction: index + 1
    uint32_t value;
    uint16_t semaphore;
    uint8_t stream, kind;
} placed_op;

typedef VEC(uint32_t) rank_list;

typedef struct level_info {
    uint32_t base[STREAM_COUNT][STREAM_COUNT];  // what the levels around add to a wait's value
} level_info;

typedef struct synchroniser {
    arena *mem;
    program *pr;
    const ir *p;
    const stream_plan *sp;
    issue_order order;
    depend *dep;
    uint32_t *head;  // of each instruction: placed_op + 1
    VEC(placed_op) ops;
    uint16_t semaphore[STREAM_COUNT][STREAM_COUNT];  // + 1
    // The level at hand.
    uint32_t level;
    uint32_t body;  // ranks above this are in the level
    clock_pair clock[STREAM_COUNT];
    uint32_t clock_id[STREAM_COUNT];
    VEC(clock_pair) clocks;
    uint32_t *clock_of;  // of each instruction (one in several streams: of STREAM_COUNT)
    VEC(raw_wait) raw;
    uint32_t replay;  // first sweep's waits, merged again by the second
    rank_list signals[STREAM_COUNT][STREAM_COUNT];
} synchroniser;

static uint32_t unit_of(uint32_t producer)
{
    return stream_is_ring(producer) ? DMA_SIGNAL : 1;
}

static bool one_stream(stream_mask m)
{
    return (m & (m - 1)) == 0;
}

// ---- clocks

static uint32_t save_clock(synchroniser *y, uint32_t stream)
{
    vec_push(y->mem, &y->clocks, y->clock[stream]);
    return y->clocks.n - 1;
}

static void note_clock(synchroniser *y, uint32_t instr, stream_mask all, uint32_t stream)
{
    if (one_stream(all)) {
        y->clock_of[instr] = y->clock_id[stream];
        return;
    }
    if (!y->clock_of[instr]) {
        y->clock_of[instr] = y->clocks.n;
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            vec_push(y->mem, &y->clocks, (clock_pair){0});
        }
    }
    y->clocks.at[y->clock_of[instr] + stream] = y->clock[stream];
}

static const clock_pair *clock_at(const synchroniser *y, uint32_t rank, uint32_t stream)
{
    uint32_t i = y->order.instr[rank - 1];
    uint32_t at = y->clock_of[i];
    return &y->clocks.at[one_stream(y->sp->mask[i]) ? at : at + stream];
}

static void raise(uint32_t *to, const uint32_t *from)
{
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        to[s] = to[s] > from[s] ? to[s] : from[s];
    }
}

static bool known(const synchroniser *y, uint32_t consumer, uint32_t producer, uint32_t rank,
                  bool carried)
{
    const clock_pair *c = &y->clock[consumer];
    if (consumer == producer && !stream_is_ring(producer)) {
        return true;
    }
    if (!carried) {
        return c->now[producer] >= rank;
    }
    // Whatever is complete in this iteration had everything of the one before complete.
    return c->before[producer] >= rank || c->now[producer] > y->body;
}

static void merge(synchroniser *y, const raw_wait *w)
{
    clock_pair *c = &y->clock[w->consumer];
    const clock_pair *s = clock_at(y, w->rank, w->producer);
    uint32_t *own = w->carried ? c->before : c->now;
    raise(own, s->now);
    if (!w->carried) {
        raise(c->before, s->before);
    }
    own[w->producer] = own[w->producer] > w->rank ? own[w->producer] : w->rank;
    // The clock of the item before is now two iterations old: what it knew of its own "before"
    // is implied.
}

static void wait_for(synchroniser *y, uint32_t instr, uint32_t consumer, const uint32_t *need,
                     bool carried)
{
    uint32_t todo = 0;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (need[s] && !known(y, consumer, s, need[s], carried)) {
            todo |= 1u << s;
        }
    }
    uint32_t keep = todo;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        for (uint32_t q = 0; (todo >> s & 1) && q < STREAM_COUNT; q++) {
            if (q != s && (todo >> q & 1) && clock_at(y, need[q], q)->now[s] >= need[s]) {
                keep &= ~(1u << s);
            }
        }
    }
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (keep >> s & 1) {
            raw_wait w = {instr, need[s], (uint8_t)consumer, (uint8_t)s, carried};
            vec_push(y->mem, &y->raw, w);
            merge(y, &w);
        }
    }
    if (keep) {
        y->clock_id[consumer] = save_clock(y, consumer);
    }
}

static void merge_again(synchroniser *y, uint32_t instr, uint32_t consumer)
{
    bool any = false;
    for (; y->replay < y->raw.n; y->replay++) {
        const raw_wait *w = &y->raw.at[y->replay];
        if (w->carried || w->instr != instr || w->consumer != consumer) {
            break;
        }
        merge(y, w);
        any = true;
    }
    if (any) {
        y->clock_id[consumer] = save_clock(y, consumer);
    }
}

static void sync_item(void *ctx, uint32_t instr, stream_mask streams, const uint32_t *need,
                      bool carried)
{
    synchroniser *y = ctx;
    stream_mask all = y->sp->mask[instr];
    uint32_t last = instr;
    if (instr_opens_loop(&y->p->instrs.at[instr])) {
        last = y->sp->loops.at[loop_at(y->sp, instr)].last;  // the item is done there
    }
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (streams >> s & 1) {
            if (carried) {
                merge_again(y, instr, s);
            }
            wait_for(y, instr, s, need, carried);
            note_clock(y, last, all, s);
        }
    }
}

static void sync_second_sweep(void *ctx)
{
    synchroniser *y = ctx;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        memcpy(y->clock[s].before, y->clock[s].now, sizeof y->clock[s].before);
        memset(y->clock[s].now, 0, sizeof y->clock[s].now);
        y->clock_id[s] = save_clock(y, s);
    }
    y->replay = 0;
}

// ---- values

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// Number of entries <= rank.
static uint32_t count_to(const rank_list *l, uint32_t rank)
{
    uint32_t lo = 0, hi = l->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (l->at[mid] <= rank) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void put(synchroniser *y, uint32_t instr, uint32_t stream, sync_kind kind,
                uint32_t semaphore, uint32_t value)
{
    vec_push(
        y->mem, &y->ops,
        ((placed_op){y->head[instr], value, (uint16_t)semaphore, (uint8_t)stream, (uint8_t)kind}));
    y->head[instr] = y->ops.n;
}

static uint32_t semaphore_of(synchroniser *y, uint32_t producer, uint32_t consumer)
{
    uint16_t *id = &y->semaphore[producer][consumer];
    if (!*id) {
        vec_push(y->mem, &y->pr->semaphores,
                 ((semaphore_info){(uint8_t)producer, (uint8_t)consumer, 0}));
        *id = (uint16_t)y->pr->semaphores.n;
    }
    return *id - 1u;
}

static void gather_signals(synchroniser *y, bool carries[STREAM_COUNT][STREAM_COUNT])
{
    for (uint32_t k = 0; k < y->raw.n; k++) {
        const raw_wait *w = &y->raw.at[k];
        vec_push(y->mem, &y->signals[w->producer][w->consumer], w->rank);
        carries[w->producer][w->consumer] |= w->carried;
    }
    for (uint32_t f = 0; f < STREAM_COUNT; f++) {
        for (uint32_t c = 0; c < STREAM_COUNT; c++) {
            rank_list *l = &y->signals[f][c];
            if (y->level && l->n) {
                qsort(l->at, l->n, sizeof *l->at, ascending);
            }
            uint32_t n = 0;
            for (uint32_t k = 0; k < l->n; k++) {
                if (n == 0 || l->at[n - 1] != l->at[k]) {
                    l->at[n++] = l->at[k];
                }
            }
            l->n = n;
        }
    }
}

// Signals of one pair, and how its consumer keeps the count of an iteration.
static void put_pair(synchroniser *y, uint32_t f, uint32_t c, uint32_t base, bool carries)
{
    const rank_list *l = &y->signals[f][c];
    if (!l->n) {
        return;
    }
    uint32_t sem = semaphore_of(y, f, c), unit = unit_of(f), all = l->n * unit;
    for (uint32_t k = 0; k < l->n; k++) {
        put(y, y->order.instr[l->at[k] - 1], f, SYNC_SIGNAL, sem, unit);
    }
    if (!y->level) {
        return;
    }
    const loop_node *loop = &y->sp->loops.at[y->level];
    put(y, loop->last, c, SYNC_TAKE, sem, all);
    if (carries) {
        put(y, loop->first, c, SYNC_CREDIT, sem, all);
        put(y, loop->last, c, SYNC_DRAIN_WAIT, sem, base + all);
        put(y, loop->last, c, SYNC_DRAIN, sem, all);
    }
}

static void put_level(synchroniser *y, const level_info *info,
                      bool carries[STREAM_COUNT][STREAM_COUNT])
{
    for (uint32_t k = 0; k < y->raw.n; k++) {
        const raw_wait *w = &y->raw.at[k];
        uint32_t f = w->producer, c = w->consumer, unit = unit_of(f);
        const rank_list *l = &y->signals[f][c];
        uint32_t value = info->base[f][c] + count_to(l, w->rank) * unit;
        if (carries[f][c] && !w->carried) {
            value += l->n * unit;
        }
        put(y, w->instr, c, SYNC_WAIT, semaphore_of(y, f, c), value);
    }
    for (uint32_t f = 0; f < STREAM_COUNT; f++) {
        for (uint32_t c = 0; c < STREAM_COUNT; c++) {
            put_pair(y, f, c, info->base[f][c], carries[f][c]);
        }
    }
}

// What this level has added to each semaphore when its iteration reaches the inner loop.
static void base_of_inner(const synchroniser *y, const level_info *info,
                          bool carries[STREAM_COUNT][STREAM_COUNT], uint32_t loop, level_info *out)
{
    uint32_t rank = y->order.rank[y->sp->loops.at[loop].first];
    for (uint32_t f = 0; f < STREAM_COUNT; f++) {
        for (uint32_t c = 0; c < STREAM_COUNT; c++) {
            const rank_list *l = &y->signals[f][c];
            uint32_t n = count_to(l, rank) + (carries[f][c] ? l->n : 0);
            out->base[f][c] = info->base[f][c] + n * unit_of(f);
        }
    }
}

static void sync_level(synchroniser *y, uint32_t loop, level_info *infos)
{
    const loop_node *l = &y->sp->loops.at[loop];
    depend_sink sink = {sync_item, sync_second_sweep, NULL, y};
    bool carries[STREAM_COUNT][STREAM_COUNT] = {{false}};
    y->level = loop;
    y->body = loop ? y->order.rank[l->first] : 0;
    y->raw.n = 0;
    memset(y->clock, 0, sizeof y->clock);
    y->clocks.n = 0;
    vec_push(y->mem, &y->clocks, (clock_pair){0});
    memset(y->clock_id, 0, sizeof y->clock_id);
    for (uint32_t r = y->body; loop && r < y->order.rank[l->last]; r++) {
        y->clock_of[y->order.instr[r]] = 0;
    }
    for (uint32_t f = 0; f < STREAM_COUNT; f++) {
        for (uint32_t c = 0; c < STREAM_COUNT; c++) {
            y->signals[f][c].n = 0;
        }
    }
    depend_level(y->dep, loop, &sink);
    gather_signals(y, carries);
    put_level(y, &infos[loop], carries);
    for (uint32_t k = loop + 1; k < y->sp->loops.n && y->sp->loops.at[k].depth > l->depth; k++) {
        if (y->sp->loops.at[k].parent == loop) {
            base_of_inner(y, &infos[loop], carries, k, &infos[k]);
        }
    }
}

// ---- slots

static int by_kind(const void *a, const void *b)
{
    const sync_op *x = a, *y = b;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : (int)x->semaphore - (int)y->semaphore;
}

static void fill_slots(synchroniser *y)
{
    program *pr = y->pr;
    const ir *p = y->p;
    uint32_t count[STREAM_COUNT] = {0}, at[STREAM_COUNT];
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            count[s] += y->sp->mask[i] >> s & 1;
        }
    }
    uint32_t n = 0;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        pr->stream_first[s] = at[s] = n;
        n += count[s];
    }
    pr->stream_first[STREAM_COUNT] = n;
    vec_reserve(y->mem, &pr->slots, n);
    pr->slots.n = n;
    vec_reserve(y->mem, &pr->syncs, y->ops.n);
    for (uint32_t r = 0; r < p->instrs.n; r++) {
        uint32_t i = y->order.instr[r];
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            if (!(y->sp->mask[i] >> s & 1)) {
                continue;
            }
            queue_slot slot = {i, pr->syncs.n, 0};
            for (uint32_t k = y->head[i]; k; k = y->ops.at[k - 1].next) {
                const placed_op *o = &y->ops.at[k - 1];
                if (o->stream == s) {
                    vec_push(y->mem, &pr->syncs, ((sync_op){o->kind, 0, o->semaphore, o->value}));
                }
            }
            slot.nsync = pr->syncs.n - slot.sync;
            if (slot.nsync > 1) {
                qsort(&pr->syncs.at[slot.sync], slot.nsync, sizeof *pr->syncs.at, by_kind);
            }
            pr->slots.at[at[s]++] = slot;
        }
    }
}

void synchronise(arena *mem, program *pr, const stream_plan *sp, issue_order order)
{
    synchroniser *y = NEW(mem, synchroniser);
    y->mem = mem;
    y->pr = pr;
    y->p = pr->ir;
    y->sp = sp;
    y->order = order;
    y->dep = depend_new(mem, pr, sp, order, false);
    y->head = NEW_N(mem, uint32_t, pr->ir->instrs.n);
    y->clock_of = NEW_N(mem, uint32_t, pr->ir->instrs.n);
    level_info *infos = NEW_N(mem, level_info, sp->loops.n);
    for (uint32_t l = 0; l < sp->loops.n; l++) {
        sync_level(y, l, infos);
    }
    fill_slots(y);
}
