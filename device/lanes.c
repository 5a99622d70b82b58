#include "device/internal.h"

#include <stdlib.h>

// Runs of instructions in which row r of what is written depends on row r of what is read alone: a
// few rows go through the whole run while they are in the cache, and different rows may go on
// different threads. Each row sees the same instructions in the same order as without, so no bit
// differs; nothing in a run can fail or be observed.

enum {
    RUN_MAX = 64,               // instructions
    PLACES_MAX = 16,            // places in HBM of a run
    KEPT_MIN_BYTES = 256,       // of a row that is worth keeping in BASE_ROWS
    KEPT_MAX_BYTES = 32 << 10,  // of a row there; all results of a run
    KEPT_MAX = 16,              // results there at a time
    CACHE_BYTES = 64 << 10,     // that the rows at hand may take
    TOGETHER = 8,               // rows that the kernels like to have at once
    ITEM_NS = 1500,             // of shared work that no item should be smaller than
    INSTR_NS = 600,             // and the same for each instruction
    ITEMS_A_THREAD = 4,
};

// An open run.
typedef struct open_run {
    uint32_t begin, n, real;  // instructions; without those that are skipped
    uint32_t rows;            // 0: none is open
    int64_t part;             // first partition of its operands on chip, -1: not known yet
    uint64_t row_bytes;       // that one row of all its operands takes
    uint64_t cost_ps;         // of all rows
    struct place {
        uint32_t base;
        bool written;
        int64_t lo, hi, ps;
    } at[PLACES_MAX];
    uint32_t nplaces;
} open_run;

static bool on_chip(const opnd *o)
{
    return o->base <= BASE_PSUM;
}

// Rows of one never meet other rows of the other.
static bool rows_apart(const struct place *a, const struct place *b, uint32_t nrows)
{
    if (a->base != b->base || (!a->written && !b->written)) {
        return true;
    }
    int64_t last_a = (nrows - 1) * a->ps, last_b = (nrows - 1) * b->ps;
    int64_t alo = a->lo + (last_a < 0 ? last_a : 0), ahi = a->hi + (last_a > 0 ? last_a : 0);
    int64_t blo = b->lo + (last_b < 0 ? last_b : 0), bhi = b->hi + (last_b > 0 ? last_b : 0);
    if (ahi <= blo || bhi <= alo) {
        return true;
    }
    // At one pitch: row r of either lies between row r - 1 and row r + 1 of the other.
    return a->ps == b->ps && a->ps > 0 && a->hi - b->lo <= a->ps && b->hi - a->lo <= a->ps;
}

static struct place place_of(const opnd *o, bool written)
{
    return (struct place){o->base, written, o->offset + o->l->lo, o->offset + o->l->hi, o->ps};
}

static int64_t partition_of(const ir *p, const opnd *o)
{
    return o->offset /
           (o->base == BASE_PSUM ? core_psum_stride(p->target) : core_sbuf_stride(p->target));
}

// Picoseconds for one element, roughly.
static uint64_t cost_of(uint16_t op)
{
    switch (op) {
    case ISA_activation:
    case ISA_activation_reduce:
    case ISA_activate2:
    case ISA_exponential: return 1000;
    case ISA_range_select:
    case ISA_affine_select:
    case ISA_tensor_tensor_scan:
    case ISA_tensor_scalar_cumulative: return 1500;
    default: return 150;
    }
}

// Rows of the instruction when it works row by row on fixed operands; 0: it does not.
static uint32_t rows_of(const device_program *dp, const bound *c)
{
    uint16_t op = dp->p->instrs.at[c->instr].op;
    uint32_t nrows = 0;
    if (!(instr_classes[op] & ROWWISE) || c->stage_in || c->stage_out) {
        return 0;
    }
    for (uint32_t k = 0; k < c->nops; k++) {
        const opnd *o = &c->o[k];
        if (!o->l) {
            continue;
        }
        int64_t pitch = o->ps < 0 ? -o->ps : o->ps;
        if (o->dyn || (nrows && o->parts != nrows) ||
            (c->outs >> k & 1 && o->parts > 1 && pitch < o->l->hi - o->l->lo)) {
            return 0;
        }
        nrows = o->parts;
    }
    return op == ISA_dma_copy && !dma_is_rowwise(c) ? 0 : nrows;
}

typedef enum joining {
    JOINS,
    OTHER_LANES,  // its operands begin in several partitions
    MEETS,        // its rows meet other rows of the run, or its own; or cannot be compared
} joining;

// Whether the instruction can join the run: its rows are the run's rows.
static joining joins(const device_program *dp, open_run *r, const bound *c, uint32_t nrows)
{
    if (r->rows && r->rows != nrows) {
        return OTHER_LANES;
    }
    int64_t part = r->part;
    uint32_t n = r->nplaces;
    joining lanes = JOINS;
    if (c->flags & BOUND_LANES) {
        lanes = part >= 0 && part != c->lane0 ? OTHER_LANES : JOINS;
        part = c->lane0;
    }
    for (uint32_t k = 0; k < c->nops; k++) {
        const opnd *o = &c->o[k];
        if (!o->l) {
            continue;
        }
        if (on_chip(o)) {
            int64_t at = partition_of(dp->p, o);
            if ((o->l->step0 != 1 && nrows > 1) || (part >= 0 && part != at)) {
                lanes = OTHER_LANES;
            }
            part = at;
            continue;
        }
        struct place p = place_of(o, c->outs >> k & 1);
        for (uint32_t i = 0; i < n; i++) {
            if (!rows_apart(&p, &r->at[i], nrows)) {
                return MEETS;
            }
        }
        if (n == PLACES_MAX) {
            return MEETS;
        }
        r->at[n++] = p;
    }
    if (lanes == JOINS) {
        r->part = part;
        r->nplaces = n;
    }
    return lanes;
}

static void add(const device_program *dp, open_run *r, const bound *c, uint32_t nrows)
{
    uint64_t most = 1;
    for (uint32_t k = 0; k < c->nops; k++) {
        const opnd *o = &c->o[k];
        if (o->l) {
            most = o->l->n > most ? o->l->n : most;
            r->row_bytes += o->l->n * o->size;
        }
    }
    r->rows = nrows;
    r->n++;
    r->real++;
    r->cost_ps += most * nrows * cost_of(dp->p->instrs.at[c->instr].op);
}

// Rows that go through the run together.
static uint32_t group_of(const lane_run *r, uint64_t bytes)
{
    uint64_t group = CACHE_BYTES / (bytes ? bytes : 1);
    group = group >= TOGETHER ? group / TOGETHER * TOGETHER : group ? group : 1;
    return group > r->rows ? r->rows : (uint32_t)group;
}

static void close_run(device_program *dp, open_run *r)
{
    uint64_t cost_ns = r->cost_ps / 1000;
    // Operands of several instructions are mostly the same ones.
    uint64_t bytes = r->rows ? r->row_bytes * 3 / (2 * r->real) : 0;
    if (r->rows > 1) {
        lane_run *to = &dp->runs[dp->nruns++];
        *to = (lane_run){r->n, r->rows, r->rows,
                         cost_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)cost_ns, 0};
        if (pool_is_forced()) {
            to->group = 1 + dp->nruns % 3;
            to->cost_ns = UINT32_MAX;
        } else if (r->real > 1) {
            to->group = group_of(to, bytes);
        }
        dp->fast[r->begin].run = dp->nruns;
    }
    r->rows = 0;
}

static void find_runs(device_program *dp, open_run *r)
{
    for (uint32_t i = 0; i < dp->ncode; i++) {
        const bound *c = &dp->fast[i];
        if (c->flags & BOUND_SKIP) {
            r->n += r->rows != 0;
            continue;
        }
        uint32_t nrows = rows_of(dp, c);
        if (r->rows && (nrows == 0 || r->n >= RUN_MAX || joins(dp, r, c, nrows) != JOINS)) {
            close_run(dp, r);
        } else if (r->rows) {
            add(dp, r, c, nrows);
            continue;
        }
        if (!nrows) {
            continue;
        }
        *r = (open_run){.begin = i, .part = -1};
        joining how = joins(dp, r, c, nrows);
        if (how != MEETS) {
            add(dp, r, c, nrows);
        }
        if (how == OTHER_LANES) {  // it goes by itself
            close_run(dp, r);
        }
    }
    close_run(dp, r);
}

// ---- results that never leave a run

bool lanes_may_keep(const region *r, uint32_t at, const ref *refs)
{
    int64_t bytes = r->hi - r->lo;
    return (bytes >= KEPT_MIN_BYTES || pool_is_forced()) && bytes <= KEPT_MAX_BYTES &&
           (!refs || refs->at - at < 2 * RUN_MAX);
}

static int by_place(const void *a, const void *b)
{
    const passing *p = a, *q = b;
    return p->at != q->at ? (p->at > q->at) - (p->at < q->at) : (p->k > q->k) - (p->k < q->k);
}

// Where the results of one run are kept, in a row.
typedef struct shelf {
    uint32_t bytes, n;
    struct {
        uint32_t at, bytes, until;  // the last instruction that looks
    } place[KEPT_MAX];
} shelf;

// The start of `bytes` in a row; false: there is no room.
static bool shelve(shelf *s, const passing *p, uint32_t bytes, uint32_t *at)
{
    uint32_t until = p->refs ? p->refs->at : p->at;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->place[i].until < p->at && s->place[i].bytes == bytes) {
            s->place[i].until = until;
            *at = s->place[i].at;
            return true;
        }
    }
    if (s->n == KEPT_MAX || s->bytes + bytes > KEPT_MAX_BYTES) {
        return false;
    }
    s->place[s->n].at = *at = s->bytes;
    s->place[s->n].bytes = bytes;
    s->place[s->n++].until = until;
    s->bytes += bytes;
    return true;
}

static bool in_run(const uint32_t *run_of, const passing *p)
{
    uint32_t run = run_of[p->at];
    for (const ref *f = p->refs; f && run; f = f->next) {
        run = run_of[f->at] == run ? run : 0;
    }
    return run != 0;
}

static opnd *own_operand(device_program *dp, bool *own, uint32_t at, uint32_t k)
{
    bound *c = &dp->fast[at];
    if (!own[at]) {
        opnd *o = NEW_N(&dp->mem, opnd, c->nops);
        memcpy(o, c->o, c->nops * sizeof *o);
        c->o = o;
        own[at] = true;
    }
    return &c->o[k];
}

static void keep(device_program *dp, bool *own, const passing *p, uint32_t at)
{
    int64_t start = dp->fast[p->at].o[p->k].offset;
    opnd *o = own_operand(dp, own, p->at, p->k);
    o->base = BASE_ROWS;
    o->offset = at;
    for (const ref *f = p->refs; f; f = f->next) {
        o = own_operand(dp, own, f->at, f->k);
        o->base = BASE_ROWS;
        o->offset += at - start;
    }
}

static void end_shelf(device_program *dp, uint32_t run, shelf *s)
{
    if (s->bytes) {
        lane_run *r = &dp->runs[run - 1];
        r->row_bytes = s->bytes;
    }
    *s = (shelf){0};
}

static void keep_results(device_program *dp, passing *at, uint32_t n, arena *scratch)
{
    uint32_t *run_of = NEW_N(scratch, uint32_t, dp->ncode + 1), run = 0;
    bool *own = NEW_N(scratch, bool, dp->ncode + 1);
    for (uint32_t i = 0; i < dp->ncode; i++) {
        for (uint32_t k = 0; dp->fast[i].run && k < dp->runs[dp->fast[i].run - 1].n; k++) {
            run_of[i + k] = dp->fast[i].run;
        }
    }
    if (n) {
        qsort(at, n, sizeof *at, by_place);
    }
    shelf s = {0};
    for (uint32_t i = 0; i < n; i++) {
        const passing *p = &at[i];
        const opnd *o = &dp->fast[p->at].o[p->k];
        uint32_t bytes = ((uint32_t)(o->l->n * o->size) + 63) / 64 * 64, to;
        if (!in_run(run_of, p)) {
            continue;
        }
        if (run_of[p->at] != run) {
            end_shelf(dp, run, &s);
            run = run_of[p->at];
        }
        if (shelve(&s, p, bytes, &to)) {
            keep(dp, own, p, to);
        }
    }
    end_shelf(dp, run, &s);
    // The pitch of the rows is known now.
    for (uint32_t i = 0; i < dp->ncode; i++) {
        for (uint32_t k = 0; own[i] && k < dp->fast[i].nops; k++) {
            if (dp->fast[i].o[k].base == BASE_ROWS) {
                dp->fast[i].o[k].ps = dp->runs[run_of[i] - 1].row_bytes;
            }
        }
    }
}

void plan_lanes(device_program *dp, passing *results, uint32_t n, arena *scratch)
{
    dp->runs = NEW_N(scratch, lane_run, dp->ncode + 1);
    find_runs(dp, NEW(scratch, open_run));
    keep_results(dp, results, n, scratch);
    // What is neither shared nor kept in the cache goes the plain way.
    for (uint32_t i = 0; i < dp->ncode; i++) {
        const lane_run *r = dp->fast[i].run ? &dp->runs[dp->fast[i].run - 1] : NULL;
        if (r && r->cost_ns < SHARE_NS && r->group == r->rows && !r->row_bytes) {
            dp->fast[i].run = 0;
        }
    }
    lane_run *runs = NEW_N(&dp->mem, lane_run, dp->nruns + 1);
    memcpy(runs, dp->runs, dp->nruns * sizeof *runs);
    dp->runs = runs;
}

// ---- running

static void run_rows(exec *x, const bound *b, const lane_run *r, uint32_t row0, uint32_t group)
{
    uint32_t n = r->n, nrows = r->rows - row0 < group ? r->rows - row0 : group;
    tile t[MAX_OPNDS];
    char *kept = NULL;
    if (r->row_bytes) {
        kept = exec_slot(x, SLOT_ROWS, (size_t)r->row_bytes * nrows);
    }
    x->row0 = row0;
    for (uint32_t i = 0; i < n && x->status == NKI_OK; i++, b++) {
        if (b->flags & BOUND_SKIP) {
            continue;
        }
        for (uint32_t k = 0; k < b->nops; k++) {
            const opnd *o = &b->o[k];
            char *base = o->base == BASE_ROWS ? kept : x->base[o->base] + (int64_t)row0 * o->ps;
            t[k] = (tile){o->l ? base + o->offset : NULL, o->ps, o->l, o->dtype, o->size, nrows};
        }
        b->fn(x, b, t);
    }
}

typedef struct lane_job {
    const exec *x;
    const bound *b;
    const lane_run *r;
    uint32_t group;
    _Atomic int status;
} lane_job;

static void run_item(void *ctx, uint32_t item, workspace *s)
{
    lane_job *j = ctx;
    exec x = *j->x;
    x.s = s;
    run_rows(&x, j->b, j->r, item * j->group, j->group);
    if (x.status != NKI_OK) {
        atomic_store_explicit(&j->status, x.status, memory_order_relaxed);
    }
}

uint32_t run_lanes(exec *x, const bound *b)
{
    const lane_run *r = &x->dp->runs[b->run - 1];
    device_pool *pool = x->opts->pool;
    if (pool && r->cost_ns >= SHARE_NS) {
        uint32_t items = pool_threads(pool) * ITEMS_A_THREAD;
        uint32_t most = r->cost_ns / (ITEM_NS + r->n * INSTR_NS);
        items = items < most ? items : most ? most : 1;
        uint32_t group = (r->rows + items - 1) / items;
        lane_job j = {.x = x, .b = b, .r = r, .group = group < r->group ? group : r->group};
        pool_run(pool, (r->rows + j.group - 1) / j.group, r->cost_ns >= WAKE_NS, run_item, &j,
                 x->s);
        x->status = atomic_load_explicit(&j.status, memory_order_relaxed);
    } else {
        for (uint32_t row0 = 0; row0 < r->rows && x->status == NKI_OK; row0 += r->group) {
            run_rows(x, b, r, row0, r->group);
        }
        x->row0 = 0;
    }
    return r->n;
}
