#include "sched/verify_memory.h"

enum { LEVELS = 48, LEVEL_MIN = 6, SPLITS_MAX = 1 << 14 };

struct memory_map {
    arena *mem;
    const ir *p;
    uint32_t memories;
    uint32_t *param_memory;  // of each tensor
    uint8_t *written;        // of each memory
};

enum { MEM_SBUF, MEM_PSUM, MEM_HBM, MEM_PAPER, MEM_DICE, MEM_PARAM0 };

// ---- grids

static uint64_t grid_last(const grid *g)  // one past the highest number
{
    uint64_t top = g->first + g->width;
    for (uint32_t k = 0; k < g->axes; k++) {
        top += g->step[k] * (g->count[k] - 1);
    }
    return top;
}

static void grid_add(grid *g, uint64_t step, uint64_t count)
{
    uint32_t at = g->axes++;
    for (; at && g->step[at - 1] < step; at--) {
        g->step[at] = g->step[at - 1];
        g->count[at] = g->count[at - 1];
    }
    g->step[at] = step;
    g->count[at] = count;
}

// Removes axis k.
static void grid_drop(grid *g, uint32_t k)
{
    g->axes--;
    for (; k < g->axes; k++) {
        g->step[k] = g->step[k + 1];
        g->count[k] = g->count[k + 1];
    }
}

// Axes that leave no gap are folded away; what then still overlaps itself becomes its hull
// (docs/sched.md, "Reach").
static void grid_normalise(grid *g)
{
    while (g->axes && g->step[g->axes - 1] <= g->width) {
        g->width += g->step[g->axes - 1] * (g->count[g->axes - 1] - 1);
        g->axes--;
    }
    for (uint32_t k = g->axes; k-- > 1;) {
        uint64_t ratio = g->step[k - 1] / g->step[k];
        if (g->step[k - 1] == ratio * g->step[k] && ratio <= g->count[k]) {
            g->count[k] += ratio * (g->count[k - 1] - 1);
            grid_drop(g, k - 1);
        }
    }
    uint64_t low = g->width;
    bool nested = g->axes <= 4;
    for (uint32_t k = g->axes; k-- > 0;) {
        nested = nested && g->step[k] >= low;
        low += g->step[k] * (g->count[k] - 1);
    }
    if (!nested) {
        g->width = low;
        g->axes = 0;
    }
}

static void grid_of(grid *g, const ir_dim *d, uint32_t from, uint32_t to, int64_t unit)
{
    for (uint32_t k = from; k < to; k++) {
        int64_t step = d[k].stride * unit;
        if (d[k].count > 1 && step != 0) {
            if (step < 0) {
                g->first -= (uint64_t)(-step) * (d[k].count - 1);
                step = -step;
            }
            grid_add(g, (uint64_t)step, d[k].count);
        }
    }
    grid_normalise(g);
}

// Halves the outer axis of the longer one until two runs are left or the hulls are apart.
static bool grids_split(grid a, grid b, uint32_t *budget)
{
    uint64_t ea = grid_last(&a), eb = grid_last(&b);
    if (a.first >= eb || b.first >= ea) {
        return false;
    }
    if (!a.axes && !b.axes) {
        return true;
    }
    if (*budget == 0) {
        return true;
    }
    --*budget;
    bool longer = !b.axes || (a.axes && ea - a.first >= eb - b.first);
    grid *g = longer ? &a : &b;
    uint64_t half = g->count[0] / 2;
    grid upper = *g;
    upper.first += half * g->step[0];
    upper.count[0] -= half;
    g->count[0] = half;
    if (g->count[0] == 1) {
        grid_drop(g, 0);
    }
    if (upper.count[0] == 1) {
        grid_drop(&upper, 0);
    }
    return grids_split(a, b, budget) ||
           (longer ? grids_split(upper, b, budget) : grids_split(a, upper, budget));
}

// One axis each, equal steps: shifted by whole steps, the runs either overlap or they do not.
static bool combs_meet(const grid *a, const grid *b)
{
    const grid *lo = a->first <= b->first ? a : b, *hi = lo == a ? b : a;
    uint64_t shift = hi->first - lo->first, step = a->step[0], teeth = shift / step;
    uint64_t rest = shift % step;
    if (rest < lo->width && teeth < lo->count[0]) {
        return true;  // hi's first run and lo's run number `teeth`
    }
    // hi's first run and lo's next one; or, with lo's last passed, nothing.
    return rest + hi->width > step && teeth + 1 < lo->count[0];
}

static bool grids_meet(const grid *a, const grid *b)
{
    if (a->first >= grid_last(b) || b->first >= grid_last(a)) {
        return false;
    }
    if (a->axes == 0 && b->axes == 0) {
        return true;
    }
    if (a->axes == 1 && b->axes == 1 && a->step[0] == b->step[0]) {
        return combs_meet(a, b);
    }
    uint32_t budget = SPLITS_MAX;
    return grids_split(*a, *b, &budget);
}

static bool grid_contains(const grid *a, const grid *b)
{
    if (b->first < a->first || grid_last(b) > grid_last(a)) {
        return false;
    }
    if (a->axes == 0) {
        return true;
    }
    bool same = a->axes == b->axes && a->first == b->first && a->width == b->width;
    for (uint32_t k = 0; same && k < a->axes; k++) {
        same = a->step[k] == b->step[k] && a->count[k] == b->count[k];
    }
    if (same) {
        return true;
    }
    // Teeth of b, in teeth of a.
    uint64_t into = (b->first - a->first) % a->step[0];
    return a->axes == 1 && into + b->width <= a->width &&
           (b->axes == 0 || (b->axes == 1 && b->step[0] == a->step[0]));
}

bool footprints_meet(const footprint *a, const footprint *b)
{
    return a->memory == b->memory && grids_meet(&a->rows, &b->rows) &&
           grids_meet(&a->bytes, &b->bytes);
}

bool footprint_contains(const footprint *a, const footprint *b)
{
    return a->memory == b->memory && grid_contains(&a->rows, &b->rows) &&
           grid_contains(&a->bytes, &b->bytes);
}

// ---- accesses

static void add_tensor(memory_map *m, uint32_t view, bool write, footprint_list *out)
{
    const ir *p = m->p;
    const ir_view *v = ir_view_ref(p, view);
    const ir_tensor *t = &p->tensors.at[v->tensor];
    const ir_dim *dims = &p->dims.at[p->aps.at[v->ap].first];
    uint32_t n = p->aps.at[v->ap].ndim;
    const ir_dyn *dyn = v->dyn ? &p->dyns.at[v->dyn] : NULL;
    bool chip = t->buffer == BUF_SBUF || t->buffer == BUF_PSUM;
    if (dyn && dyn->kind != DYN_REG) {
        add_tensor(m, dyn->src, false, out);
    }
    footprint f = {.write = write, .rows = {.width = 1}};
    int64_t unit = (int64_t)dtype_size((dtype)v->dtype);
    uint64_t start = 0;
    if (chip) {
        f.memory = t->buffer == BUF_SBUF ? MEM_SBUF : MEM_PSUM;
        f.rows.first = t->addr_part;
        start = t->addr_bytes;
        if (dyn && dyn->partition) {
            f.rows.width = t->partitions;
        } else {
            f.rows.first += v->part;
            grid_of(&f.rows, dims, 0, n < 1 ? n : 1, 1);
        }
    } else if (t->role == ROLE_ARG || t->addr_bytes == ADDR_AUTO) {
        f.memory = m->param_memory[v->tensor];
    } else {
        f.memory = MEM_HBM;
        start = t->addr_bytes;
    }
    if (!m->written[f.memory]) {
        if (!write) {
            return;
        }
        m->written[f.memory] = 1;
    }
    if (dyn) {
        f.bytes.first = start;
        f.bytes.width = t->size_bytes;
    } else {
        f.bytes.first = start + (uint64_t)(v->offset * unit);
        f.bytes.width = (uint64_t)unit;
        grid_of(&f.bytes, dims, chip ? 1 : 0, n, unit);
    }
    vec_push(m->mem, out, f);
}

static void add_value(memory_map *m, ir_arg a, bool write, footprint_list *out)
{
    if (a.kind == IRA_VIEW) {
        add_tensor(m, a.v, write, out);
    }
    for (int k = 0; a.kind == IRA_LIST && k < a.aux; k++) {
        add_value(m, m->p->args.at[a.v + (uint32_t)k], write, out);
    }
}

static void add_state(memory_map *m, uint32_t memory, footprint_list *out)
{
    m->written[memory] = 1;
    vec_push(m->mem, out,
             ((footprint){
                 .memory = memory, .write = true, .rows = {.width = 1}, .bytes = {.width = 1}}));
}

static bool writes_param(const isa_param *par)
{
    bool list = par->type == PT_TENSORS;
    return par->type == PT_OUT || par->type == PT_INOUT ||
           (list && par->name[0] == 'd' && par->name[1] == 's' && par->name[2] == 't');
}

void memory_footprints(memory_map *m, uint32_t i, footprint_list *out)
{
    const ir *p = m->p;
    const ir_instr *in = &p->instrs.at[i];
    out->n = 0;
    for (uint32_t k = 0; k < in->nargs; k++) {
        add_value(m, p->args.at[in->args + k], writes_param(&isa_table[in->op].params[k]), out);
    }
    switch (in->op) {
    case ISA_host_call:
    case ISA_device_print: add_state(m, MEM_PAPER, out); break;
    case ISA_rng:
    case ISA_rand2:
    case ISA_dropout:
    case ISA_set_rng_seed:
    case ISA_rand_set_state:
    case ISA_rand_get_state: add_state(m, MEM_DICE, out); break;
    case ISA_core_barrier:
        for (uint32_t t = 0; t < p->tensors.n; t++) {
            const ir_tensor *ten = &p->tensors.at[t];
            if (ten->buffer == BUF_SHARED) {
                bool own = ten->role == ROLE_ARG || ten->addr_bytes == ADDR_AUTO;
                footprint f = {
                    .memory = own ? m->param_memory[t] : (uint32_t)MEM_HBM,
                    .write = true,
                    .rows = {.width = 1},
                    .bytes = {.first = own ? 0 : ten->addr_bytes, .width = ten->size_bytes}};
                m->written[f.memory] = 1;
                vec_push(m->mem, out, f);
            }
        }
        break;
    default: break;
    }
}

memory_map *memory_map_new(arena *mem, const ir *p)
{
    memory_map *m = NEW(mem, memory_map);
    m->mem = mem;
    m->p = p;
    m->memories = MEM_PARAM0;
    m->param_memory = NEW_N(mem, uint32_t, p->tensors.n);
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        const ir_tensor *ten = &p->tensors.at[t];
        bool chip = ten->buffer == BUF_SBUF || ten->buffer == BUF_PSUM;
        if (!chip && (ten->role == ROLE_ARG || ten->addr_bytes == ADDR_AUTO)) {
            m->param_memory[t] = m->memories++;
        }
    }
    m->written = NEW_N(mem, uint8_t, m->memories);
    footprint_list scratch = {0};
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        memory_footprints(m, i, &scratch);
    }
    return m;
}

// ---- index
//
// A visit of b bytes stands in blocks of 2^l bytes, 2^l >= b: in one or two of them. Blocks are
// found by hashing; a question asks each size of block that is in use.

typedef struct block {
    uint64_t number;
    uint32_t memory, level;
    uint32_t epoch;
    uint32_t next;  // of the same memory and level: index + 1
    VEC(uint32_t) list;
} block;

struct visit_index {
    arena *mem;
    uint32_t memories, epoch, seen;
    VEC(block) blocks;
    uint32_t nblocks;     // of this epoch
    uint32_t *slot, cap;  // block + 1
    uint32_t *slot_epoch;
    uint32_t *first, *count;  // of each memory and level
    uint32_t *first_epoch;
    VEC(visit) visits;
    VEC(uint32_t) spare;
    VEC(uint8_t) refs;  // blocks that a visit stands in
};

visit_index *visit_index_new(arena *mem, memory_map *m)
{
    visit_index *x = NEW(mem, visit_index);
    x->mem = mem;
    x->memories = m->memories;
    x->cap = 1024;
    x->slot = NEW_N(mem, uint32_t, x->cap);
    x->slot_epoch = NEW_N(mem, uint32_t, x->cap);
    x->first = NEW_N(mem, uint32_t, (size_t)m->memories * LEVELS);
    x->count = NEW_N(mem, uint32_t, (size_t)m->memories * LEVELS);
    x->first_epoch = NEW_N(mem, uint32_t, (size_t)m->memories * LEVELS);
    x->epoch = 1;
    return x;
}

void visit_index_clear(visit_index *x)
{
    x->epoch++;
    x->nblocks = 0;
    x->visits.n = x->spare.n = x->refs.n = 0;
}

static uint32_t level_of(uint64_t bytes)
{
    uint32_t l = LEVEL_MIN;
    while (l < LEVELS - 1 && ((uint64_t)1 << l) < bytes) {
        l++;
    }
    return l;
}

static uint32_t spread(uint32_t memory, uint32_t level, uint64_t number)
{
    uint64_t h =
        (number * 0x9e3779b97f4a7c15u) ^ ((uint64_t)memory << 40) ^ ((uint64_t)level << 20);
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

static block *find_block(visit_index *x, uint32_t memory, uint32_t level, uint64_t number,
                         bool make)
{
    uint32_t at = spread(memory, level, number) & (x->cap - 1);
    for (; x->slot_epoch[at] == x->epoch; at = (at + 1) & (x->cap - 1)) {
        block *b = &x->blocks.at[x->slot[at]];
        if (b->number == number && b->memory == memory && b->level == level) {
            return b;
        }
    }
    if (!make) {
        return NULL;
    }
    if (x->nblocks == x->blocks.n) {
        vec_push(x->mem, &x->blocks, (block){0});
    }
    block *b = &x->blocks.at[x->nblocks];
    b->number = number;
    b->memory = memory;
    b->level = level;
    b->list.n = 0;
    uint32_t list = memory * LEVELS + level;
    bool fresh = x->first_epoch[list] != x->epoch;
    b->next = fresh ? 0 : x->first[list];
    x->count[list] = fresh ? 1 : x->count[list] + 1;
    x->first_epoch[list] = x->epoch;
    x->first[list] = ++x->nblocks;
    x->slot[at] = x->nblocks - 1;
    x->slot_epoch[at] = x->epoch;
    return b;
}

static void grow_slots(visit_index *x)
{
    if (x->nblocks * 2 < x->cap) {
        return;
    }
    x->cap *= 2;
    x->slot = NEW_N(x->mem, uint32_t, x->cap);
    x->slot_epoch = NEW_N(x->mem, uint32_t, x->cap);
    for (uint32_t k = 0; k < x->nblocks; k++) {
        const block *b = &x->blocks.at[k];
        uint32_t at = spread(b->memory, b->level, b->number) & (x->cap - 1);
        while (x->slot_epoch[at] == x->epoch) {
            at = (at + 1) & (x->cap - 1);
        }
        x->slot[at] = k;
        x->slot_epoch[at] = x->epoch;
    }
}

void visit_index_add(visit_index *x, const visit *v)
{
    uint32_t id;
    if (x->spare.n) {
        id = x->spare.at[--x->spare.n];
    } else {
        vec_push(x->mem, &x->visits, (visit){0});
        vec_push(x->mem, &x->refs, 0);
        id = x->visits.n - 1;
    }
    x->visits.at[id] = *v;
    x->visits.at[id].seen = x->seen;
    uint64_t lo = v->at.bytes.first, hi = grid_last(&v->at.bytes) - 1;
    uint32_t level = level_of(hi - lo + 1);
    x->refs.at[id] = 0;
    for (uint64_t n = lo >> level; n <= hi >> level; n++) {
        grow_slots(x);
        block *b = find_block(x, v->at.memory, level, n, true);
        vec_push(x->mem, &b->list, id);
        x->refs.at[id]++;
    }
}

static void ask_block(visit_index *x, block *b, void (*fn)(void *ctx, visit *v), void *ctx)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->list.n; k++) {
        uint32_t id = b->list.at[k];
        visit *v = &x->visits.at[id];
        if (!v->dead && v->seen != x->seen) {
            v->seen = x->seen;
            fn(ctx, v);
        }
        if (!v->dead) {
            b->list.at[n++] = id;
        } else if (--x->refs.at[id] == 0) {
            vec_push(x->mem, &x->spare, id);
        }
    }
    b->list.n = n;
}

void visit_index_find(visit_index *x, const footprint *at, void (*fn)(void *ctx, visit *v),
                      void *ctx)
{
    uint64_t lo = at->bytes.first, hi = grid_last(&at->bytes) - 1;
    x->seen++;
    for (uint32_t level = LEVEL_MIN; level < LEVELS; level++) {
        uint32_t list = at->memory * LEVELS + level;
        if (x->first_epoch[list] != x->epoch) {
            continue;
        }
        if ((hi >> level) - (lo >> level) >= x->count[list]) {
            for (uint32_t k = x->first[list]; k; k = x->blocks.at[k - 1].next) {
                block *b = &x->blocks.at[k - 1];
                if (b->number >= lo >> level && b->number <= hi >> level) {
                    ask_block(x, b, fn, ctx);
                }
            }
            continue;
        }
        for (uint64_t n = lo >> level; n <= hi >> level; n++) {
            block *b = find_block(x, at->memory, level, n, false);
            if (b) {
                ask_block(x, b, fn, ctx);
            }
        }
    }
}
