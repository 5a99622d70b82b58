#include "device/internal.h"

#include <string.h>

// Copies that only stage data are not made. A load is a version of the bytes on chip that it
// writes: when everything that reads them reads rows of that version, nobody changes the source
// meanwhile and all of it is overwritten before anything else looks, the readers read the source
// and the load goes. A result that is stored whole is a version too: its maker then writes the
// store's destination, when nobody touches that between the maker and the store. What is not
// understood (dynamic operands, overlaps, loops, other cores) ends or spoils versions; a spoilt one
// keeps its copy.
//
// Memory of different parameters may overlap: then run.c takes the code as it was bound.

enum {
    BUCKET_BYTES = 1024,  // of a partition
    BUCKETS = 512,        // of both memories
    DEPTH = 8,            // versions that one bucket remembers
    OPEN_MAX = 256,       // versions with a place in HBM
    RECENT = 256,         // accesses to HBM that are remembered
    PAST_CACHE_BYTES = 4 << 20,
    NO_VERSION = 0
};

const uint8_t instr_classes[ISA_COUNT] = {
    [ISA_tensor_tensor] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_tensor_scalar] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_scalar_tensor_tensor] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_tensor_scalar_reduce] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_reciprocal] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_activation] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_activation_reduce] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_activate2] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_exponential] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_range_select] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_select_reduce] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_tensor_copy] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_tensor_copy_predicated] = KNOWN | VIEWS | ROWWISE,
    [ISA_memset] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_fill_uninit] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_iota] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_affine_select] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_tensor_scalar_cumulative] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_tensor_tensor_scan] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_tensor_reduce] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_tensor_partition_reduce] = KNOWN,
    [ISA_bn_stats] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_bn_aggr] = KNOWN | VIEWS | FULL | ROWWISE,
    [ISA_nc_matmul] = KNOWN | VIEWS | FULL,  // but for accumulate
    [ISA_nc_matmul_mx] = KNOWN,
    [ISA_quantize_mx] = KNOWN,
    [ISA_nc_transpose] = KNOWN | VIEWS | FULL,
    [ISA_nc_stream_shuffle] = KNOWN,
    [ISA_local_gather] = KNOWN,
    [ISA_nc_n_gather] = KNOWN,
    [ISA_sequence_bounds] = KNOWN,
    [ISA_nonzero_with_count] = KNOWN,
    [ISA_topk] = KNOWN,
    [ISA_max8] = KNOWN,
    [ISA_nc_find_index8] = KNOWN,
    [ISA_nc_match_replace8] = KNOWN,
    [ISA_dropout] = KNOWN,
    [ISA_rng] = KNOWN,
    [ISA_rand2] = KNOWN,
    [ISA_rand_get_state] = KNOWN,
    [ISA_rand_set_state] = KNOWN,
    [ISA_set_rng_seed] = KNOWN,
    [ISA_dma_copy] = KNOWN | ROWWISE,  // when its patterns are
    [ISA_dma_transpose] = KNOWN,
    [ISA_dma_compute] = KNOWN,
    [ISA_register_alloc] = KNOWN,
    [ISA_register_move] = KNOWN,
    [ISA_register_load] = KNOWN,
    [ISA_register_store] = KNOWN,
    [ISA_device_print] = KNOWN,
};

// Rows in HBM: [lo, hi) of the first, nrows of them ps apart.
typedef struct box {
    uint32_t base;
    int64_t lo, hi, ps;
    uint64_t nrows;
} box;

typedef struct version {
    region r;        // as written
    int64_t lo, hi;  // what is left of it
    uint32_t at, k;  // who wrote it, and as which operand
    uint32_t store;  // the copy to `where`; of a load the load itself
    bool placed;     // where is known
    bool spoilt;     // the copy must stay
    bool settled;    // not to be placed any more
    bool damaged;    // a hole in [lo, hi)
    bool changed;    // `where` is not what was read any more
    bool gone;
    box where;
    uint32_t mark;
    uint32_t birth;    // distinct for each version
    uint32_t open_at;  // in planner.open
    ref *refs;
} version;

typedef struct access {
    uint32_t at;
    box b;
} access;

typedef struct bucket_slot {
    uint32_t id, birth;  // the version, while it has this birth
} bucket_slot;

typedef struct planner {
    device_program *dp;
    const ir *p;
    arena *mem;      // of what the program keeps
    arena *scratch;  // of the rest
    version *v;      // from 1
    uint32_t nv, cap;
    uint32_t unused;  // a version that is gone, the next in its open_at; 0: none
    ref *unused_refs;
    bucket_slot bucket[BUCKETS][DEPTH];
    uint32_t births;
    uint32_t open[OPEN_MAX];
    uint32_t nopen;
    access recent[RECENT];
    uint64_t nrecent;
    uint32_t stamp;
    uint32_t *seen;  // versions found by the last find
    uint32_t nseen, seen_cap;
    uint32_t *fresh;  // versions that did not go through keep_unplaced
    uint32_t nfresh, fresh_cap;
    bool *own;  // instructions whose operands are copied
    passing *passing;
    uint32_t npassing, passing_cap;
    bool failed;
} planner;

// ---- places

static box box_of(const planner *pl, const opnd *o)
{
    if (o->dyn) {
        region r = region_of(pl->p, o);
        return (box){o->base, r.lo, r.hi, 0, 1};
    }
    return (box){o->base, o->offset + o->l->lo, o->offset + o->l->hi, o->ps, o->l->parts};
}

static void hull(const box *b, int64_t *lo, int64_t *hi)
{
    int64_t reach = (int64_t)(b->nrows - 1) * b->ps;
    *lo = b->lo + (reach < 0 ? reach : 0);
    *hi = b->hi + (reach > 0 ? reach : 0);
}

static bool apart(const box *a, const box *b)
{
    int64_t alo, ahi, blo, bhi;
    if (a->base != b->base) {
        return true;
    }
    hull(a, &alo, &ahi);
    hull(b, &blo, &bhi);
    if (ahi <= blo || bhi <= alo) {
        return true;
    }
    // Columns of the same rows.
    int64_t ps = a->ps, wa = a->hi - a->lo, wb = b->hi - b->lo;
    if (ps <= 0 || b->ps != ps || wa > ps || wb > ps) {
        return false;
    }
    int64_t m = (b->lo - a->lo) % ps;
    m = m < 0 ? m + ps : m;
    return m >= wa && m + wb <= ps;
}

static void touch(planner *pl, uint32_t at, const box *b)
{
    pl->recent[pl->nrecent++ % RECENT] = (access){at, *b};
}

// Nobody touched b from instruction `since` on.
static bool untouched(const planner *pl, uint32_t since, const box *b)
{
    uint64_t n = pl->nrecent;
    uint64_t first = n > RECENT ? n - RECENT : 0;
    while (n > first) {
        const access *a = &pl->recent[--n % RECENT];
        if (a->at < since) {
            return true;
        }
        if (!apart(&a->b, b)) {
            return false;
        }
    }
    return first == 0;
}

// ---- versions

static bool chip(const opnd *o)
{
    return o->base <= BASE_PSUM;
}

static uint32_t bucket_of(uint32_t base, int64_t at)
{
    return (uint32_t)((at / BUCKET_BYTES) % (BUCKETS / 2)) + (base == BASE_PSUM ? BUCKETS / 2 : 0);
}

static uint32_t bucket_count(const region *r)
{
    int64_t n = (r->hi - 1) / BUCKET_BYTES - r->lo / BUCKET_BYTES + 1;
    return n > BUCKETS / 2 ? BUCKETS / 2 : (uint32_t)n;
}

static void release_place(planner *pl, version *v)
{
    if (v->placed) {
        uint32_t last = pl->open[--pl->nopen];
        pl->open[v->open_at] = last;
        pl->v[last].open_at = v->open_at;
    }
}

static opnd *own_operand(planner *pl, uint32_t at, uint32_t k)
{
    bound *c = &pl->dp->fast[at];
    if (!pl->own[at]) {
        opnd *o = NEW_N(pl->mem, opnd, c->nops);
        memcpy(o, c->o, c->nops * sizeof *o);
        c->o = o;
        pl->own[at] = true;
    }
    return &c->o[k];
}

// Lets operand k of instruction `at`, which lies in the version on chip, lie in the version's
// place.
static void move_operand(planner *pl, const version *v, uint32_t at, uint32_t k)
{
    const opnd *old = &pl->dp->code[at].o[k];
    region r = region_of(pl->p, old);
    opnd *o = own_operand(pl, at, k);
    o->base = v->where.base;
    o->offset = v->where.lo + (r.p0 - v->r.p0) * v->where.ps + (r.lo - old->l->lo - v->r.lo);
    o->ps = old->l->step0 * v->where.ps;
    bound *c = &pl->dp->fast[at];
    if (pl->p->instrs.at[c->instr].op == ISA_dma_copy) {
        c->a = dma_retarget(pl->mem, c, &c->o[0], &c->o[1]);
        pl->failed = pl->failed || !c->a;
    }
}

static uint64_t size_in_hbm(const planner *pl, const opnd *o)
{
    return pl->p->tensors.at[pl->p->views.at[o->view].tensor].size_bytes;
}

// Does away with the version's copy.
static void carry_out(planner *pl, const version *v)
{
    for (const ref *f = v->refs; f; f = f->next) {
        move_operand(pl, v, f->at, f->k);
    }
    bound *copy = &pl->dp->fast[v->store];
    if (v->at != v->store) {
        move_operand(pl, v, v->at, v->k);
        if (!v->refs && size_in_hbm(pl, &pl->dp->code[v->store].o[0]) >= PAST_CACHE_BYTES) {
            pl->dp->fast[v->at].flags |= BOUND_STREAM;
        }
    }
    copy->flags |= BOUND_SKIP;
}

// All that read the version are known, and nothing else does.
static void note_passing(planner *pl, version *v)
{
    if (pl->npassing == pl->passing_cap) {
        pl->passing_cap = pl->passing_cap ? pl->passing_cap * 2 : 64;
        passing *at = NEW_N(pl->scratch, passing, pl->passing_cap);
        if (pl->npassing) {
            memcpy(at, pl->passing, pl->npassing * sizeof *at);
        }
        pl->passing = at;
    }
    pl->passing[pl->npassing++] = (passing){v->at, v->k, v->refs};
    v->refs = NULL;
}

// Ends a version that nothing can look at any more.
static void finish(planner *pl, uint32_t id)
{
    version *v = &pl->v[id];
    release_place(pl, v);
    if (!v->spoilt && v->placed) {
        carry_out(pl, v);
    } else if (!v->spoilt && lanes_may_keep(&v->r, v->at, v->refs)) {
        note_passing(pl, v);
    }
    while (v->refs) {
        ref *f = v->refs;
        v->refs = f->next;
        f->next = pl->unused_refs;
        pl->unused_refs = f;
    }
    v->gone = true;
    v->open_at = pl->unused;
    pl->unused = id;
}

static bool is_live(const planner *pl, bucket_slot b)
{
    return b.id != NO_VERSION && pl->v[b.id].birth == b.birth && !pl->v[b.id].gone;
}

// Bucket i of those that a region meets, oldest first, without those that are gone.
static bucket_slot *bucket_at(planner *pl, const region *r, uint32_t i)
{
    bucket_slot *b = pl->bucket[bucket_of(r->base, r->lo + (int64_t)i * BUCKET_BYTES)];
    for (uint32_t j = 0; j < DEPTH && b[j].id != NO_VERSION;) {
        if (is_live(pl, b[j])) {
            j++;
            continue;
        }
        memmove(b + j, b + j + 1, (DEPTH - 1 - j) * sizeof *b);
        b[DEPTH - 1] = (bucket_slot){NO_VERSION, 0};
    }
    return b;
}

static void note_fresh(planner *pl, uint32_t id)
{
    if (pl->nfresh == pl->fresh_cap) {
        pl->fresh_cap *= 2;
        uint32_t *at = NEW_N(pl->scratch, uint32_t, pl->fresh_cap);
        memcpy(at, pl->fresh, pl->nfresh * sizeof *at);
        pl->fresh = at;
    }
    pl->fresh[pl->nfresh++] = id;
}

static void add_version(planner *pl, const version *made)
{
    if (!pl->unused && pl->nv == pl->cap) {
        uint32_t cap = pl->cap * 2;
        version *at = NEW_N(pl->scratch, version, cap);
        memcpy(at, pl->v, pl->nv * sizeof *at);
        pl->v = at;
        pl->cap = cap;
    }
    uint32_t id = pl->unused ? pl->unused : pl->nv;
    if (made->placed && pl->nopen == OPEN_MAX) {
        return;
    }
    if (pl->unused) {
        pl->unused = pl->v[id].open_at;
    } else {
        pl->nv++;
    }
    note_fresh(pl, id);
    version *v = &pl->v[id];
    *v = *made;
    v->birth = ++pl->births;
    if (v->placed) {
        v->open_at = pl->nopen;
        pl->open[pl->nopen++] = id;
    }
    v->lo = v->r.lo;
    v->hi = v->r.hi;
    for (uint32_t i = 0, n = bucket_count(&v->r); i < n; i++) {
        bucket_slot *b = bucket_at(pl, &v->r, i);
        uint32_t j = 0;
        while (j < DEPTH && b[j].id != NO_VERSION) {
            j++;
        }
        if (j == DEPTH) {  // the oldest is forgotten
            pl->v[b[0].id].spoilt = true;
            memmove(b, b + 1, (DEPTH - 1) * sizeof *b);
            j = DEPTH - 1;
        }
        b[j] = (bucket_slot){id, v->birth};
    }
}

// The versions that a region meets, in pl->seen.
static void find(planner *pl, const region *r)
{
    pl->stamp++;
    pl->nseen = 0;
    for (uint32_t i = 0, n = bucket_count(r); i < n; i++) {
        const bucket_slot *b = bucket_at(pl, r, i);
        for (uint32_t j = 0; j < DEPTH && b[j].id != NO_VERSION; j++) {
            version *v = &pl->v[b[j].id];
            if (v->mark == pl->stamp || v->r.base != r->base || v->hi <= r->lo || r->hi <= v->lo ||
                v->r.p1 <= r->p0 || r->p1 <= v->r.p0) {
                continue;
            }
            v->mark = pl->stamp;
            if (pl->nseen == pl->seen_cap) {
                pl->seen_cap *= 2;
                uint32_t *at = NEW_N(pl->scratch, uint32_t, pl->seen_cap);
                memcpy(at, pl->seen, pl->nseen * sizeof *at);
                pl->seen = at;
            }
            pl->seen[pl->nseen++] = b[j].id;
        }
    }
}

static void spoil_seen(planner *pl)
{
    for (uint32_t i = 0; i < pl->nseen; i++) {
        pl->v[pl->seen[i]].spoilt = true;
    }
}

static bool usable(const version *v)
{
    return !v->spoilt && !v->damaged && !v->changed;
}

// ---- what instructions do

static void read_hbm(planner *pl, uint32_t at, const opnd *o)
{
    box b = box_of(pl, o);
    touch(pl, at, &b);
}

static void write_hbm(planner *pl, uint32_t at, const opnd *o)
{
    box b = box_of(pl, o);
    touch(pl, at, &b);
    for (uint32_t i = 0; i < pl->nopen; i++) {
        version *v = &pl->v[pl->open[i]];
        v->changed = v->changed || !apart(&v->where, &b);
    }
}

// movable: the instruction can read the operand elsewhere.
static void read_chip(planner *pl, uint32_t at, uint32_t k, const opnd *o, bool movable)
{
    region r = region_of(pl->p, o);
    find(pl, &r);
    version *v = pl->nseen == 1 ? &pl->v[pl->seen[0]] : NULL;
    if (!v || !movable || o->dyn || !usable(v) || r.lo < v->lo || r.hi > v->hi || r.p0 < v->r.p0 ||
        r.p1 > v->r.p1) {
        spoil_seen(pl);
        return;
    }
    ref *f = pl->unused_refs ? pl->unused_refs : NEW(pl->scratch, ref);
    pl->unused_refs = f->next;
    *f = (ref){at, k, v->refs};
    v->refs = f;
    if (v->placed) {
        touch(pl, at, &v->where);
    }
}

// full: every element of a fixed operand is written. Other writes may leave old bytes.
// Returns its region.
static region write_chip(planner *pl, const opnd *o, bool full)
{
    region r = region_of(pl->p, o);
    bool dense = full && !o->dyn && o->l->contig && (o->l->parts == 1 || o->l->step0 == 1);
    find(pl, &r);
    for (uint32_t i = 0; i < pl->nseen; i++) {
        version *v = &pl->v[pl->seen[i]];
        bool lanes = r.p0 <= v->r.p0 && r.p1 >= v->r.p1;
        if (!dense) {
            v->spoilt = true;
            v->damaged = true;
        } else if (lanes && r.lo <= v->lo && r.hi >= v->hi) {
            finish(pl, pl->seen[i]);
        } else if (lanes && r.lo <= v->lo) {
            v->lo = r.hi;
        } else if (lanes && r.hi >= v->hi) {
            v->hi = r.lo;
        } else {
            v->damaged = true;
        }
    }
    return r;
}

static bool plain_rows(const opnd *o)
{
    return !o->dyn && o->l->contig && (o->l->parts == 1 || o->l->step0 == 1);
}

// A copy from HBM that becomes a version of its destination.
static void load(planner *pl, uint32_t at, const opnd *d, const opnd *s, const dma_rows *shape)
{
    box where = {s->base, s->offset, s->offset + shape->row_bytes, shape->s, shape->nrows};
    touch(pl, at, &where);
    region r = write_chip(pl, d, true);
    add_version(pl, &(version){.r = r, .at = at, .store = at, .placed = true, .where = where});
}

// A copy to HBM of a version that was made on chip: from here on that version lies there.
static bool store(planner *pl, uint32_t at, const opnd *d, const opnd *s, const dma_rows *shape)
{
    region r = region_of(pl->p, s);
    box where = {d->base, d->offset, d->offset + shape->row_bytes, shape->d, shape->nrows};
    find(pl, &r);
    version *v = pl->nseen == 1 ? &pl->v[pl->seen[0]] : NULL;
    if (!v || !usable(v) || v->placed || v->settled || pl->nopen == OPEN_MAX || v->lo != r.lo ||
        v->hi != r.hi || v->r.lo != r.lo || v->r.hi != r.hi || v->r.p0 != r.p0 || v->r.p1 != r.p1 ||
        (shape->nrows > 1 && shape->d < shape->row_bytes) || !untouched(pl, v->at, &where)) {
        return false;
    }
    write_hbm(pl, at, d);
    v->placed = true;
    v->where = where;
    v->store = at;
    v->open_at = pl->nopen;
    pl->open[pl->nopen++] = pl->seen[0];
    return true;
}

static void dma(planner *pl, uint32_t at, const bound *c)
{
    const opnd *d = &c->o[0], *s = &c->o[1];
    dma_rows shape;
    bool plain = dma_as_rows(c, &shape) && !d->dyn && !s->dyn;
    if (plain && chip(d) && !chip(s) && plain_rows(d) && shape.nrows == d->l->parts &&
        shape.row_bytes == (int64_t)(d->l->n * d->size)) {
        load(pl, at, d, s, &shape);
        return;
    }
    if (plain && !chip(d) && chip(s) && plain_rows(s) && shape.nrows == s->l->parts &&
        shape.row_bytes == (int64_t)(s->l->n * s->size) && store(pl, at, d, s, &shape)) {
        return;
    }
    bool movable = !d->dyn && !s->dyn && plain;
    if (chip(s)) {
        read_chip(pl, at, 1, s, movable);
    } else {
        read_hbm(pl, at, s);
    }
    if (chip(d)) {
        write_chip(pl, d, movable);
    } else {
        write_hbm(pl, at, d);
        if (plain && size_in_hbm(pl, d) >= PAST_CACHE_BYTES) {
            pl->dp->fast[at].flags |= BOUND_STREAM;
        }
    }
}

// Operands of dynamic parts are read where they are.
static void read_index(planner *pl, uint32_t at, const opnd *o)
{
    if (o->dyn && pl->p->dyns.at[o->dyn].kind != DYN_REG) {
        const opnd *ix = &pl->dp->index[o->index];
        if (chip(ix)) {
            read_chip(pl, at, 0, ix, false);
        } else {
            read_hbm(pl, at, ix);
        }
    }
}

static void general(planner *pl, uint32_t at, const bound *c, uint32_t what)
{
    bool staged = (c->stage_in | c->stage_out) != 0;
    for (uint32_t k = 0; k < c->nops; k++) {
        const opnd *o = &c->o[k];
        bool out = c->outs >> k & 1;
        if (!o->l || (out && what & FULL && !staged)) {
            continue;
        }
        if (chip(o)) {
            read_chip(pl, at, k, o, !out && !staged && what & VIEWS);
        } else {
            read_hbm(pl, at, o);
        }
    }
    for (uint32_t k = 0; k < c->nops; k++) {
        const opnd *o = &c->o[k];
        if (!o->l || !(c->outs >> k & 1)) {
            continue;
        }
        if (!chip(o)) {
            write_hbm(pl, at, o);
            continue;
        }
        bool full = what & FULL && !staged;
        region r = write_chip(pl, o, full);
        if (full && plain_rows(o)) {
            add_version(pl, &(version){.r = r, .at = at, .k = k});
        }
    }
}

// Anything may be read, written and left: versions end as they are.
static void end_all(planner *pl, bool last)
{
    for (uint32_t i = 1; i < pl->nv; i++) {
        if (!pl->v[i].gone) {
            pl->v[i].spoilt = pl->v[i].spoilt || !last;
            finish(pl, i);
        }
    }
    pl->nv = 1;
    pl->unused = 0;
    pl->nfresh = 0;
    memset(pl->bucket, 0, sizeof pl->bucket);
    pl->nrecent = 0;
}

// A dynamic operand can end the run: what was made before it must be in its place then.
static bool may_fail(const bound *c)
{
    for (uint32_t k = 0; k < c->nops; k++) {
        if (c->o[k].l && c->o[k].dyn) {
            return true;
        }
    }
    return false;
}

static void note_params(const planner *pl, const bound *c)
{
    uint32_t n = pl->p->params.n;
    for (uint32_t k = 0; k < c->nops; k++) {
        const opnd *o = &c->o[k];
        if (o->l && o->base >= BASE_PARAM0 && o->base - BASE_PARAM0 < n) {
            pl->dp->param_used[o->base - BASE_PARAM0] |=
                c->outs >> k & 1 ? PARAM_WRITTEN : PARAM_READ;
        }
    }
}

// Results that are not stored yet stay on chip.
static void keep_unplaced(planner *pl)
{
    while (pl->nfresh) {
        version *v = &pl->v[pl->fresh[--pl->nfresh]];
        v->settled = !v->placed;
    }
}

static void step(planner *pl, uint32_t at)
{
    const bound *c = &pl->dp->code[at];
    const ir_instr *in = &pl->p->instrs.at[c->instr];
    uint32_t what = instr_classes[in->op];
    if (in->op == ISA_nc_matmul) {
        ir_arg acc = pl->p->args.at[in->args + 6];
        what &= acc.kind == IRA_BOOL && acc.v ? ~(uint32_t)FULL : ~0u;
    }
    note_params(pl, c);
    if (!(what & KNOWN)) {
        end_all(pl, false);
        return;
    }
    if (may_fail(c)) {
        keep_unplaced(pl);
    }
    for (uint32_t k = 0; k < c->nops; k++) {
        if (c->o[k].l) {
            read_index(pl, at, &c->o[k]);
        }
    }
    if (in->op == ISA_dma_copy) {
        dma(pl, at, c);
    } else {
        general(pl, at, c, what);
    }
}

void plan_copies(device_program *dp, arena *scratch)
{
    planner *pl = NEW(scratch, planner);
    uint32_t n = dp->ncode;
    pl->dp = dp;
    pl->p = dp->p;
    pl->mem = &dp->mem;
    pl->scratch = scratch;
    pl->cap = 64;
    pl->v = NEW_N(scratch, version, pl->cap);
    pl->nv = 1;
    pl->fresh_cap = 64;
    pl->fresh = NEW_N(scratch, uint32_t, pl->fresh_cap);
    pl->seen_cap = 64;
    pl->seen = NEW_N(scratch, uint32_t, pl->seen_cap);
    pl->own = NEW_N(scratch, bool, n + 1);
    dp->param_used = NEW_N(pl->mem, uint8_t, dp->p->params.n + 1);
    dp->fast = NEW_N(pl->mem, bound, n + 1);
    memcpy(dp->fast, dp->code, n * sizeof *dp->fast);
    for (uint32_t i = 0; i < n; i++) {
        step(pl, i);
    }
    for (uint32_t i = 0; i < dp->nout; i++) {
        if (chip(&dp->out[i])) {
            read_chip(pl, n, 0, &dp->out[i], false);
        }
    }
    end_all(pl, true);
    for (uint32_t i = 0; i < n; i++) {
        bound *c = &dp->fast[i];
        if (c->flags & BOUND_SKIP) {
            c->fn = run_nothing;
            c->nops = 0;
        }
    }
    if (pl->failed) {
        dp->fast = NULL;
    } else {
        plan_lanes(dp, pl->passing, pl->npassing, scratch);
    }
}
