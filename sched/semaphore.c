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

// Of each stream: the rank known to be complete.
typedef struct ranks {
    uint32_t at[STREAM_COUNT];
} ranks;

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

// A pair of streams with waits in the level at hand.
typedef struct stream_pair {
    uint8_t producer, consumer;
    bool carries;       // one waits for the iteration before
    rank_list signals;  // ranks that are waited for, ascending
} stream_pair;

typedef struct level_info {
    uint32_t base[STREAM_COUNT][STREAM_COUNT];  // what the levels around add to a wait's value
} level_info;

enum { CHUNK = 1 << 10 };  // clocks

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
    ranks now[STREAM_COUNT], before[STREAM_COUNT];
    uint32_t clock_id[STREAM_COUNT];
    // Saved clocks, in chunks so that none moves; in a loop two each: now, before.
    VEC(ranks *) chunks;
    uint32_t nclocks;
    uint32_t *clock_of;     // by rank: a saved clock; of what several streams issue: in `several`
    VEC(uint32_t) several;  // STREAM_COUNT saved clocks each
    VEC(raw_wait) raw;
    uint32_t replay;  // first sweep's waits, merged again by the second
    VEC(stream_pair) pairs;
    uint16_t pair_of[STREAM_COUNT][STREAM_COUNT];  // + 1; 0: no waits in this level
} synchroniser;

static uint32_t unit_of(uint32_t producer)
{
    return stream_is_ring(producer) ? DMA_SIGNAL : 1;
}

// ---- clocks

static ranks *saved(const synchroniser *y, uint32_t id)
{
    return &y->chunks.at[id / CHUNK][id % CHUNK];
}

static uint32_t save_clock(synchroniser *y, uint32_t stream)
{
    uint32_t id = y->nclocks;
    if (id / CHUNK == y->chunks.n) {
        vec_push(y->mem, &y->chunks, NEW_N(y->mem, ranks, CHUNK));
    }
    *saved(y, id) = y->now[stream];
    if (y->level) {
        *saved(y, id + 1) = y->before[stream];
    }
    y->nclocks += y->level ? 2 : 1;
    return id;
}

static void note_clock(synchroniser *y, uint32_t rank, stream_mask all, uint32_t stream)
{
    uint32_t *of = &y->clock_of[rank - 1];
    if (one_stream(all)) {
        *of = y->clock_id[stream];
        return;
    }
    if (!*of) {
        vec_reserve(y->mem, &y->several, STREAM_COUNT);
        *of = y->several.n;
        y->several.n += STREAM_COUNT;
        memset(y->several.at + *of, 0, STREAM_COUNT * sizeof *y->several.at);
    }
    y->several.at[*of + stream] = y->clock_id[stream];
}

// What `stream` knew when it issued the item of this rank.
static const ranks *clock_at(const synchroniser *y, uint32_t rank, uint32_t stream)
{
    uint32_t at = y->clock_of[rank - 1];
    bool one = one_stream(y->sp->mask[y->order.instr[rank - 1]]);
    return saved(y, one ? at : y->several.at[at + stream]);
}

static void raise(ranks *to, const ranks *from)
{
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        to->at[s] = to->at[s] > from->at[s] ? to->at[s] : from->at[s];
    }
}

static bool known(const synchroniser *y, uint32_t consumer, uint32_t producer, uint32_t rank,
                  bool carried)
{
    if (consumer == producer && !stream_is_ring(producer)) {
        return true;
    }
    if (!carried) {
        return y->now[consumer].at[producer] >= rank;
    }
    // Whatever is complete in this iteration had everything of the one before complete.
    return y->before[consumer].at[producer] >= rank || y->now[consumer].at[producer] > y->body;
}

static void merge(synchroniser *y, const raw_wait *w)
{
    const ranks *s = clock_at(y, w->rank, w->producer);
    ranks *own = w->carried ? &y->before[w->consumer] : &y->now[w->consumer];
    raise(own, &s[0]);
    if (!w->carried && y->level) {
        raise(&y->before[w->consumer], &s[1]);
    }
    own->at[w->producer] = own->at[w->producer] > w->rank ? own->at[w->producer] : w->rank;
    // The clock of the item before is now two iterations old: what it knew of its own "before"
    // is implied.
}

static void wait_for(synchroniser *y, uint32_t instr, uint32_t consumer, const need_set *need,
                     bool carried)
{
    stream_mask todo = 0;
    for (stream_mask m = need->streams; m;) {
        uint32_t s = stream_take(&m);
        if (!known(y, consumer, s, need->rank[s], carried)) {
            todo |= (stream_mask)(1u << s);
        }
    }
    stream_mask keep = todo;
    for (stream_mask from = todo; from && !one_stream(todo);) {
        uint32_t q = stream_take(&from);
        const ranks *c = clock_at(y, need->rank[q], q);
        for (stream_mask m = (stream_mask)(todo & ~(1u << q)); m;) {
            uint32_t s = stream_take(&m);
            if (c->at[s] >= need->rank[s]) {
                keep &= (stream_mask) ~(1u << s);
            }
        }
    }
    for (stream_mask m = keep; m;) {
        uint32_t s = stream_take(&m);
        raw_wait w = {instr, need->rank[s], (uint8_t)consumer, (uint8_t)s, carried};
        vec_push(y->mem, &y->raw, w);
        merge(y, &w);
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

static void sync_item(void *ctx, uint32_t instr, stream_mask streams, const need_set *need,
                      bool carried)
{
    synchroniser *y = ctx;
    stream_mask all = y->sp->mask[instr];
    uint32_t last = instr;
    if (instr_opens_loop(&y->p->instrs.at[instr])) {
        last = y->sp->loops.at[loop_at(y->sp, instr)].last;  // the item is done there
    }
    while (streams) {
        uint32_t s = stream_take(&streams);
        if (carried) {
            merge_again(y, instr, s);
        }
        wait_for(y, instr, s, need, carried);
        note_clock(y, y->order.rank[last], all, s);
    }
}

static void sync_second_sweep(void *ctx)
{
    synchroniser *y = ctx;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        y->before[s] = y->now[s];
        y->now[s] = (ranks){{0}};
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
        vec_push(y->p->mem, &y->pr->semaphores,
                 ((semaphore_info){(uint8_t)producer, (uint8_t)consumer, 0}));
        *id = (uint16_t)y->pr->semaphores.n;
    }
    return *id - 1u;
}

static stream_pair *pair_of(synchroniser *y, uint32_t f, uint32_t c)
{
    uint16_t *at = &y->pair_of[f][c];
    if (!*at) {
        vec_reserve(y->mem, &y->pairs, 1);
        stream_pair *new = &y->pairs.at[y->pairs.n++];
        rank_list room = new->signals;  // of a pair of the level before
        room.n = 0;
        *new = (stream_pair){(uint8_t)f, (uint8_t)c, false, room};
        *at = (uint16_t)y->pairs.n;
    }
    return &y->pairs.at[*at - 1];
}

static void gather_signals(synchroniser *y)
{
    for (uint32_t k = 0; k < y->raw.n; k++) {
        const raw_wait *w = &y->raw.at[k];
        stream_pair *pr = pair_of(y, w->producer, w->consumer);
        vec_push(y->mem, &pr->signals, w->rank);
        pr->carries |= w->carried;
    }
    for (uint32_t i = 0; i < y->pairs.n; i++) {
        rank_list *l = &y->pairs.at[i].signals;
        if (y->level) {
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

// Signals of one pair, and how its consumer keeps the count of an iteration.
static void put_pair(synchroniser *y, const stream_pair *pr, const level_info *info)
{
    uint32_t f = pr->producer, c = pr->consumer;
    const rank_list *l = &pr->signals;
    uint32_t sem = semaphore_of(y, f, c), unit = unit_of(f), all = l->n * unit;
    for (uint32_t k = 0; k < l->n; k++) {
        put(y, y->order.instr[l->at[k] - 1], f, SYNC_SIGNAL, sem, unit);
    }
    if (!y->level) {
        return;
    }
    const loop_node *loop = &y->sp->loops.at[y->level];
    put(y, loop->last, c, SYNC_TAKE, sem, all);
    if (pr->carries) {
        put(y, loop->first, c, SYNC_CREDIT, sem, all);
        put(y, loop->last, c, SYNC_DRAIN_WAIT, sem, info->base[f][c] + all);
        put(y, loop->last, c, SYNC_DRAIN, sem, all);
    }
}

static void put_level(synchroniser *y, const level_info *info)
{
    uint32_t signals = 0;
    for (uint32_t i = 0; i < y->pairs.n; i++) {
        signals += y->pairs.at[i].signals.n;
    }
    vec_reserve(y->mem, &y->ops, y->raw.n + signals);
    y->pr->steps += y->raw.n + signals;
    for (uint32_t k = 0; k < y->raw.n; k++) {
        const raw_wait *w = &y->raw.at[k];
        uint32_t f = w->producer, c = w->consumer, unit = unit_of(f);
        const stream_pair *pr = pair_of(y, f, c);
        uint32_t value = info->base[f][c] + count_to(&pr->signals, w->rank) * unit;
        if (pr->carries && !w->carried) {
            value += pr->signals.n * unit;
        }
        put(y, w->instr, c, SYNC_WAIT, semaphore_of(y, f, c), value);
    }
    for (uint32_t i = 0; i < y->pairs.n; i++) {
        put_pair(y, &y->pairs.at[i], info);
    }
}

// What this level has added to each semaphore when its iteration reaches the inner loop.
static void base_of_inner(const synchroniser *y, const level_info *info, uint32_t loop,
                          level_info *out)
{
    uint32_t rank = y->order.rank[y->sp->loops.at[loop].first];
    *out = *info;
    for (uint32_t i = 0; i < y->pairs.n; i++) {
        const stream_pair *pr = &y->pairs.at[i];
        uint32_t n = count_to(&pr->signals, rank) + (pr->carries ? pr->signals.n : 0);
        out->base[pr->producer][pr->consumer] += n * unit_of(pr->producer);
    }
}

static void sync_level(synchroniser *y, uint32_t loop, level_info *infos)
{
    const loop_node *l = &y->sp->loops.at[loop];
    depend_sink sink = {sync_item, sync_second_sweep, y};
    y->level = loop;
    y->body = loop ? y->order.rank[l->first] : 0;
    y->raw.n = y->pairs.n = 0;
    memset(y->pair_of, 0, sizeof y->pair_of);
    memset(y->now, 0, sizeof y->now);
    memset(y->before, 0, sizeof y->before);
    memset(y->clock_id, 0, sizeof y->clock_id);
    y->nclocks = 0;
    save_clock(y, 0);  // number 0: nothing is known
    y->several.n = 0;
    vec_push(y->mem, &y->several, 0);  // number 0 is none
    uint32_t end = loop ? y->order.rank[l->last] : y->p->instrs.n;
    memset(y->clock_of + y->body, 0, (end - y->body) * sizeof *y->clock_of);
    depend_level(y->dep, y->order, loop, &sink);
    gather_signals(y);
    put_level(y, &infos[loop]);
    for (uint32_t k = loop + 1; k < y->sp->loops.n && y->sp->loops.at[k].depth > l->depth; k++) {
        if (y->sp->loops.at[k].parent == loop) {
            base_of_inner(y, &infos[loop], k, &infos[k]);
        }
    }
}

// ---- slots

static bool comes_before(const sync_op *x, const sync_op *y)
{
    return x->kind != y->kind ? x->kind < y->kind : x->semaphore < y->semaphore;
}

// Adds o to the slot that is being filled, in the order of kinds, then of semaphores.
static void add_sync(synchroniser *y, queue_slot *slot, const placed_op *o)
{
    sync_op new = {o->kind, 0, o->semaphore, o->value};
    vec_push(y->p->mem, &y->pr->syncs, new);
    uint32_t at = slot->sync + slot->nsync++;
    sync_op *all = y->pr->syncs.at;
    for (; at > slot->sync && comes_before(&new, &all[at - 1]); at--) {
        all[at] = all[at - 1];
    }
    all[at] = new;
}

static void fill_slots(synchroniser *y)
{
    program *pr = y->pr;
    const ir *p = y->p;
    uint32_t count[STREAM_COUNT] = {0}, at[STREAM_COUNT];
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (stream_mask m = y->sp->mask[i]; m;) {
            count[stream_take(&m)]++;
        }
    }
    uint32_t n = 0;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        pr->stream_first[s] = at[s] = n;
        n += count[s];
    }
    pr->stream_first[STREAM_COUNT] = n;
    vec_reserve(p->mem, &pr->slots, n);
    pr->slots.n = n;
    vec_reserve(p->mem, &pr->syncs, y->ops.n);
    for (uint32_t r = 0; r < p->instrs.n; r++) {
        uint32_t i = y->order.instr[r];
        for (stream_mask m = y->sp->mask[i]; m;) {
            uint32_t s = stream_take(&m);
            queue_slot slot = {i, pr->syncs.n, 0};
            for (uint32_t k = y->head[i]; k; k = y->ops.at[k - 1].next) {
                if (y->ops.at[k - 1].stream == s) {
                    add_sync(y, &slot, &y->ops.at[k - 1]);
                }
            }
            pr->slots.at[at[s]++] = slot;
        }
    }
}

void synchronise(arena *mem, program *pr, const stream_plan *sp, depend *d, issue_order order)
{
    synchroniser *y = NEW(mem, synchroniser);
    y->mem = mem;
    y->pr = pr;
    y->p = pr->ir;
    y->sp = sp;
    y->order = order;
    y->dep = d;
    y->head = NEW_N(mem, uint32_t, pr->ir->instrs.n);
    y->clock_of = NEW_N(mem, uint32_t, pr->ir->instrs.n);
    level_info *infos = NEW_N(mem, level_info, sp->loops.n);
    for (uint32_t l = 0; l < sp->loops.n; l++) {
        sync_level(y, l, infos);
    }
    fill_slots(y);
}
