#include "sched/place.h"

#include "lang/place.h"
#include "sched/issue.h"
#include "sched/passes.h"
#include "sched/space.h"

#include <stdlib.h>

// Placement by live range: a sweep over the instructions frees what ended before each and places
// what begins there, first-fit by address. Where first-fit leaves memory in pieces too small, that
// memory is placed anew, largest tensors first. Time: linear, times the number of holes.

enum { REPACK_MAX = 1 << 14 };

typedef struct held_tensor {
    uint32_t tensor;
    int64_t until;  // as placer.passed counts
} held_tensor;

typedef struct placer {
    arena *mem;
    ir *p;
    const liveness *lv;
    diags *ds;
    space of[BUF_COUNT];   // SBUF, PSUM; all of HBM is of[BUF_HBM]
    uint64_t hbm_base;     // constants and outputs stand before the temporaries
    bool done[BUF_COUNT];  // placed as a whole
    uint32_t *begins, *ends, *begin_next, *end_next;  // by instruction: tensor + 1
    // What ended and is held back, oldest first, so that the rounds of an unrolled loop use
    // different memory and can overlap. Given back when memory is short.
    VEC(held_tensor) held[BUF_COUNT];
    uint32_t first_held[BUF_COUNT];  // those before it have been given back
    const digest *dg;
    int64_t
        *passed;  // of each instruction: what the busiest engine has done before it, picoseconds
    int64_t notify_ps;  // of a DMA
} placer;

static buffer_kind memory_of(const ir_tensor *t)
{
    return t->buffer == BUF_SHARED ? BUF_HBM : (buffer_kind)t->buffer;
}

static span_time when_of(const placer *pl, uint32_t t)
{
    return (span_time){pl->lv->of[t].first, pl->lv->of[t].last};
}

// Placed by the sweep: temporaries in use that the kernel gave no address.
static bool is_auto(const placer *pl, uint32_t t)
{
    const ir_tensor *ten = &pl->p->tensors.at[t];
    return ten->role == ROLE_TEMP && !ten->manual && pl->lv->of[t].touched;
}

static uint32_t align_of(const ir_tensor *t)
{
    if (t->size_bytes >= SPACE_ALIGN || !buffer_on_chip((buffer_kind)t->buffer)) {
        return SPACE_ALIGN;
    }
    uint32_t size = dtype_size((dtype)t->dtype);
    return size > 4 ? size : 4;
}

// ---- addresses that the kernel gave

static void reserve(placer *pl, uint32_t t, span_time when)
{
    const ir_tensor *ten = &pl->p->tensors.at[t];
    space_reserve(&pl->of[ten->buffer], ten->addr_bytes, ten->addr_bytes + ten->size_bytes, when);
}

// Keeps placed tensors off the kernel's addresses. An unproven manual tensor may read what another
// one left at its address, at any time before: its bytes are reserved from the start.
static void reserve_manual(placer *pl)
{
    ir *p = pl->p;
    uint32_t *head = NULL, *next = NULL;
    for (uint32_t t = p->tensors.n; t-- > 0;) {
        const ir_tensor *ten = &p->tensors.at[t];
        if (!ten->manual || !pl->lv->of[t].touched) {
            continue;
        }
        if (pl->lv->of[t].unproven) {
            reserve(pl, t, (span_time){0, pl->lv->of[t].last});
            continue;
        }
        if (!head) {
            head = NEW_N(pl->mem, uint32_t, p->instrs.n + 1);
            next = NEW_N(pl->mem, uint32_t, p->tensors.n);
        }
        next[t] = head[pl->lv->of[t].first];
        head[pl->lv->of[t].first] = t + 1;
    }
    for (uint32_t i = 0; head && i < p->instrs.n; i++) {
        for (uint32_t t = head[i]; t; t = next[t - 1]) {
            reserve(pl, t - 1, when_of(pl, t - 1));
        }
    }
}

// ---- HBM: constants, then outputs, then temporaries

static bool place_fixed(placer *pl, tensor_role role)
{
    ir *p = pl->p;
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        ir_tensor *ten = &p->tensors.at[t];
        if (ten->role != role || buffer_on_chip((buffer_kind)ten->buffer)) {
            continue;
        }
        ten->addr_part = 0;
        ten->addr_bytes = pl->hbm_base;
        if (ten->size_bytes > CORE_HBM_BYTES - pl->hbm_base) {
            refuse_full(pl->p->mem, p, pl->lv, t, 0, 0, pl->ds);
            return false;
        }
        pl->hbm_base += (ten->size_bytes + SPACE_ALIGN - 1) / SPACE_ALIGN * SPACE_ALIGN;
    }
    return true;
}

// ---- the sweep

static void chain_all(placer *pl)
{
    const ir *p = pl->p;
    pl->begins = NEW_N(pl->mem, uint32_t, p->instrs.n + 1);
    pl->ends = NEW_N(pl->mem, uint32_t, p->instrs.n + 1);
    pl->begin_next = NEW_N(pl->mem, uint32_t, p->tensors.n);
    pl->end_next = NEW_N(pl->mem, uint32_t, p->tensors.n);
    for (uint32_t t = p->tensors.n; t-- > 0;) {
        if (is_auto(pl, t)) {
            span_time w = when_of(pl, t);
            pl->begin_next[t] = pl->begins[w.first];
            pl->begins[w.first] = t + 1;
            pl->end_next[t] = pl->ends[w.last];
            pl->ends[w.last] = t + 1;
        }
    }
}

typedef struct packed {
    uint64_t size, addr;
    uint32_t tensor;
    span_time when;
} packed;

static int larger_first(const void *a, const void *b)
{
    const packed *x = a, *y = b;
    if (x->size != y->size) {
        return x->size < y->size ? 1 : -1;
    }
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

// All tensors of one memory at once, largest first, each at the lowest address that is free while
// it lives. false: that does not fit either, or there are too many to try.
static bool repack(placer *pl, buffer_kind b)
{
    ir *p = pl->p;
    VEC(packed) todo = {0};
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        if (is_auto(pl, t) && memory_of(&p->tensors.at[t]) == b) {
            packed k = {p->tensors.at[t].size_bytes, 0, t, when_of(pl, t)};
            vec_push(pl->mem, &todo, k);
        }
    }
    if (todo.n > REPACK_MAX) {
        return false;
    }
    qsort(todo.at, todo.n, sizeof *todo.at, larger_first);
    packed *set = NEW_N(pl->mem, packed, todo.n);  // placed so far, by address
    space *s = &pl->of[b];
    uint64_t peak = 0;
    for (uint32_t i = 0; i < todo.n; i++) {
        packed k = todo.at[i];
        uint32_t align = align_of(&p->tensors.at[k.tensor]), j = 0;
        if (k.size > s->limit_bytes) {
            return false;
        }
        for (;;) {
            uint64_t moved = space_conflict(s, k.addr, k.size, k.when);
            for (; !moved && j < i && set[j].addr < k.addr + k.size; j++) {
                bool together =
                    set[j].when.first <= k.when.last && k.when.first <= set[j].when.last;
                if (together && set[j].addr + set[j].size > k.addr) {
                    moved = set[j].addr + set[j].size;
                }
            }
            if (!moved) {
                break;
            }
            k.addr = space_begin(s, moved, k.size, align);
            j = 0;
            if (k.addr + k.size > s->limit_bytes) {
                return false;
            }
        }
        uint32_t at = i;
        for (; at && set[at - 1].addr > k.addr; at--) {
            set[at] = set[at - 1];
        }
        set[at] = k;
        peak = k.addr + k.size > peak ? k.addr + k.size : peak;
    }
    for (uint32_t i = 0; i < todo.n; i++) {
        p->tensors.at[set[i].tensor].addr_bytes = set[i].addr;
    }
    s->peak_bytes = peak > s->peak_bytes ? peak : s->peak_bytes;
    return true;
}

// How long memory rests after its last use (docs/decisions/0006): TURNS times what its next tensor
// needs to be filled and it to be read out, on a machine whose busiest engine never stops. Then the
// next tensor's load does not wait, and the executor's cache loses no more than that.
enum { TURNS = 4 };

static void estimate(placer *pl)
{
    enum { MOVING = ENG_COUNT, COUNT };
    const ir *p = pl->p;
    int64_t busy[COUNT] = {0}, most = 0;
    pl->notify_ps = ps_of_ns(pl->dg->cost.m.dma_notify_ns);
    pl->passed = NEW_N(pl->mem, int64_t, p->instrs.n + 1);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const instr_cost *t = &pl->dg->time[i];
        pl->passed[i] = most;
        unsigned e = p->instrs.at[i].engine;
        if (t->kind == CK_DMA) {
            busy[MOVING] += t->work_ps * t->engines / 16;
            most = busy[MOVING] > most ? busy[MOVING] : most;
            e = t->unit == DU_GPSIMD ? ENG_GPSIMD : ENG_DMA;
        }
        busy[e] += t->issue_ps;
        most = e != ENG_DMA && busy[e] > most ? busy[e] : most;
    }
}

static int64_t latency_of(const placer *pl, uint32_t instr)
{
    const instr_cost *t = &pl->dg->time[instr];
    return t->latency_ps + (t->kind == CK_DMA ? pl->notify_ps : 0);
}

static void give(placer *pl, buffer_kind b)
{
    const ir_tensor *ten = &pl->p->tensors.at[pl->held[b].at[pl->first_held[b]++].tensor];
    uint64_t at = ten->addr_bytes - (b == BUF_HBM ? pl->hbm_base : 0);
    space_give(&pl->of[b], at, at + ten->size_bytes);
}

static void retire(placer *pl, buffer_kind b, uint32_t t)
{
    span_time w = when_of(pl, t);
    int64_t rest = TURNS * (latency_of(pl, w.first) + latency_of(pl, w.last));
    vec_push(pl->mem, &pl->held[b], ((held_tensor){t, pl->passed[w.last] + rest}));
}

static bool take(placer *pl, buffer_kind b, uint32_t t, uint64_t *addr)
{
    const ir_tensor *ten = &pl->p->tensors.at[t];
    int64_t now = pl->passed[when_of(pl, t).first];
    while (pl->first_held[b] < pl->held[b].n && pl->held[b].at[pl->first_held[b]].until <= now) {
        give(pl, b);
    }
    while (!space_take(&pl->of[b], ten->size_bytes, align_of(ten), when_of(pl, t), addr)) {
        if (pl->first_held[b] == pl->held[b].n) {
            return false;
        }
        give(pl, b);
    }
    return true;
}

static bool place_one(placer *pl, uint32_t t)
{
    ir_tensor *ten = &pl->p->tensors.at[t];
    buffer_kind b = memory_of(ten);
    if (pl->done[b]) {
        return true;
    }
    uint64_t addr;
    if (take(pl, b, t, &addr)) {
        ten->addr_part = 0;
        ten->addr_bytes = addr + (b == BUF_HBM ? pl->hbm_base : 0);
        return true;
    }
    if (b != BUF_HBM && ten->size_bytes <= pl->of[b].limit_bytes && repack(pl, b)) {
        pl->done[b] = true;
        return true;
    }
    uint64_t largest = 0, avail = space_available(&pl->of[b], when_of(pl, t), &largest);
    refuse_full(pl->p->mem, pl->p, pl->lv, t, avail, largest, pl->ds);
    return false;
}

static bool sweep(placer *pl)
{
    ir *p = pl->p;
    chain_all(pl);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (uint32_t t = i ? pl->ends[i - 1] : 0; t; t = pl->end_next[t - 1]) {
            const ir_tensor *ten = &p->tensors.at[t - 1];
            buffer_kind b = memory_of(ten);
            if (!pl->done[b]) {
                retire(pl, b, t - 1);
            }
        }
        for (uint32_t t = pl->begins[i]; t; t = pl->begin_next[t - 1]) {
            if (!place_one(pl, t - 1)) {
                return false;
            }
        }
    }
    return true;
}

void forget_addresses(ir *p)
{
    for (uint32_t i = 0; i < p->tensors.n; i++) {
        if (!p->tensors.at[i].manual) {
            p->tensors.at[i].addr_part = 0;
            p->tensors.at[i].addr_bytes = ADDR_AUTO;
        }
    }
}

bool place_tensors(arena *mem, program *pr, const liveness *lv, const digest *dg, diags *ds)
{
    ir *p = pr->ir;
    placer pl = {.mem = mem, .p = p, .lv = lv, .dg = dg, .ds = ds};
    const target *t = p->target;
    space_init(&pl.of[BUF_SBUF], mem, t->sbuf_partition_bytes, 0);
    space_init(&pl.of[BUF_PSUM], mem, t->psum_partition_bytes, t->psum_bank_bytes);
    forget_addresses(p);
    if (!place_fixed(&pl, ROLE_CONST) || !place_fixed(&pl, ROLE_OUT)) {
        return false;
    }
    space_init(&pl.of[BUF_HBM], mem, CORE_HBM_BYTES - pl.hbm_base, 0);
    reserve_manual(&pl);
    estimate(&pl);
    if (!sweep(&pl)) {
        return false;
    }
    pr->sbuf_peak_bytes = (uint32_t)pl.of[BUF_SBUF].peak_bytes;
    pr->psum_peak_bytes = (uint32_t)pl.of[BUF_PSUM].peak_bytes;
    pr->steps += pl.of[BUF_SBUF].steps + pl.of[BUF_PSUM].steps + pl.of[BUF_HBM].steps;
    pr->hbm_bytes =
        pl.hbm_base + (pl.of[BUF_HBM].peak_bytes + SPACE_ALIGN - 1) / SPACE_ALIGN * SPACE_ALIGN;
    return true;
}

// What the steps work with, in memory of their own.
typedef struct workspace {
    arena *mem;
    program *pr;
    digest dg;
    liveness lv;
} workspace;

static void look_at(workspace *w)
{
    digest_make(w->mem, w->pr, &w->dg);
    live_compute(w->mem, w->pr->ir, &w->dg.acc, &w->lv);
}

// Places; what does not fit in SBUF is moved out of the way, with less and less memory to count on,
// since pieces of it may be lost between tensors. On failure `first` says what was in the way.
static bool place_with_spills(workspace *w, diags *first, spill_report *report)
{
    enum { TRIES = 8 };
    arena *keep = w->pr->ir->mem;
    uint64_t all = w->pr->ir->target->sbuf_partition_bytes;
    for (uint32_t k = 0; k < TRIES; k++) {
        diags trial;
        diags_init(&trial, keep);
        trial.policy = first->policy;
        if (place_tensors(w->mem, w->pr, &w->lv, &w->dg, &trial)) {
            return true;
        }
        if (k == 0) {
            *first = trial;
        }
        if (trial.first->id != D_sbuf_full ||
            !spill_sbuf(keep, w->pr->ir, &w->lv, all - all * k / (2 * TRIES), report)) {
            break;
        }
        look_at(w);
    }
    return false;
}

// Places, with spills when they are wanted; a refusal says what they would do.
static bool place_all(workspace *w, bool spill, diags *ds)
{
    program *pr = w->pr;
    diags first;
    diags_init(&first, pr->ir->mem);
    first.policy = ds->policy;
    spill_report report = {0};
    bool fits = place_with_spills(w, &first, &report);
    if (fits && (spill || !report.tensors.n)) {
        for (uint32_t k = 0; k < report.tensors.n; k++) {
            const spilled *r = &report.tensors.at[k];
            pr->spills.stores += r->stores;
            pr->spills.loads += r->loads;
            pr->spills.bytes += r->bytes;
        }
        return true;
    }
    if (first.first->id == D_sbuf_full) {
        refuse_says_spill(pr->ir, &first, first.first, fits, &report);
    }
    for (diag *d = first.first, *next; d; d = next) {
        next = d->next;
        diags_adopt(ds, d);
    }
    return false;
}

program *schedule(arena *mem, ir *p, const sched_opts *opts, diags *ds)
{
    program *pr = NEW(mem, program);
    pr->ir = p;
    workspace w = {.mem = arena_scratch(mem), .pr = pr};
    forget_addresses(p);
    look_at(&w);
    bool placed = place_all(&w, opts && opts->spill, ds);
    if (placed) {
        if (insert_fills(w.mem, p, &w.lv)) {
            digest_make(w.mem, pr, &w.dg);
        }
        order_streams(w.mem, pr, &w.dg, opts ? opts : &(sched_opts){0});
    }
    arena_drop(w.mem);
    return placed ? pr : NULL;
}
