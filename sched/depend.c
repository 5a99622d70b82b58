#include "sched/depend.h"

#include "sched/live.h"

// Memory is cut into stretches, at the bytes where accesses begin and end (all of them known in
// advance), and each stretch lists the accesses that a later one may still have to wait for. An
// access is dropped when a later write covers it (whoever conflicts with the first also conflicts
// with the second, which is ordered after it) or when a later read of the same stream does.

enum {
    STRETCHES_MAX = 512,
    GRANULES_MAX = 1 << 14,
    READERS_FREE = 64,  // ranks within which readers of one place may change places
};

typedef struct past {
    reach r;
    uint32_t rank;  // to wait for
    uint32_t instr;
    uint32_t home;   // the loop it stands in
    uint32_t child;  // inner loop that stands for it in the level, else 0
    uint32_t refs;   // stretches that list it
    uint32_t stamp;
    stream_mask streams;
    bool write, dead;
} past;

typedef struct stretch {
    uint32_t epoch;
    VEC(uint32_t) list;  // of past
} stretch;

typedef struct object_map {
    bool written;
    uint32_t shift;  // of a granule
    uint32_t granules;
    uint32_t *index;  // of each granule: its stretch, from `first`
    uint32_t first;
} object_map;

struct depend {
    arena *mem;
    program *pr;
    const ir *p;
    const stream_plan *sp;
    issue_order order;
    bool with_states;
    objects obj;
    object_map *maps;
    VEC(stretch) stretches;
    VEC(past) pasts;
    VEC(uint32_t) spare;
    uint32_t epoch, stamp;
    access_list acc;
    // The level at hand.
    const depend_sink *sink;
    uint32_t level;
    bool carried;
    uint32_t child;  // the inner loop being passed, else 0
    uint32_t need[STREAM_COUNT];
    uint32_t (*child_need)[STREAM_COUNT];  // of each stream of the inner loop
};

// ---- what an instruction touches besides memory

typedef void (*touch_fn)(depend *d, uint32_t instr, const reach *r, bool write);

// What the host sees of a program, in order.
static bool prints(const ir_instr *in)
{
    return in->op == ISA_device_print || in->op == ISA_host_call;
}

static bool draws(const ir_instr *in)
{
    return in->op == ISA_rng || in->op == ISA_rand2 || in->op == ISA_dropout ||
           in->op == ISA_set_rng_seed || in->op == ISA_rand_set_state ||
           in->op == ISA_rand_get_state;
}

static bool folds(const ir_instr *in)
{
    const isa_info *row = &isa_table[in->op];
    for (uint32_t k = 0; k < row->nparams; k++) {
        if (row->params[k].type == PT_REDCMD) {
            return true;
        }
    }
    return in->op == ISA_activation_reduce;
}

static void touch_registers(depend *d, uint32_t i, touch_fn touch)
{
    const ir *p = d->p;
    const ir_instr *in = &p->instrs.at[i];
    reach r = reach_state(OBJ_REGISTERS);
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (a.kind == IRA_REG) {
            touch(d, i, &r, isa_table[in->op].params[k].type == PT_REGOUT);
        } else if (a.kind == IRA_VIEW || a.kind == IRA_LIST) {
            touch(d, i, &r, false);
        }
    }
}

static void touch_states(depend *d, uint32_t i, touch_fn touch)
{
    const ir_instr *in = &d->p->instrs.at[i];
    reach r = reach_state(OBJ_PRINT);
    if (prints(in)) {
        touch(d, i, &r, true);
    }
    if (draws(in)) {
        r.object = OBJ_RANDOM;
        touch(d, i, &r, true);
    }
    if (!d->with_states) {
        return;
    }
    if ((in->engine == ENG_VECTOR || in->engine == ENG_SCALAR) && folds(in)) {
        r.object = in->engine == ENG_VECTOR ? OBJ_ACC_VECTOR : OBJ_ACC_SCALAR;
        touch(d, i, &r, true);
    }
    if (d->p->registers) {
        touch_registers(d, i, touch);
    }
}

// A barrier with the other core: all shared memory before it is done, none after it has begun.
static void touch_shared(depend *d, uint32_t i, touch_fn touch)
{
    const ir *p = d->p;
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        if (!buffer_on_chip((buffer_kind)p->tensors.at[t].buffer) &&
            p->tensors.at[t].buffer == BUF_SHARED) {
            reach r = reach_state(d->obj.of[t]);
            r.bytes.off = d->obj.base[t];
            r.bytes.run = p->tensors.at[t].size_bytes;
            touch(d, i, &r, true);
        }
    }
}

static void touch_all(depend *d, uint32_t i, touch_fn touch)
{
    const ir_instr *in = &d->p->instrs.at[i];
    access_collect(d->mem, d->p, in, &d->acc);
    // Writes, which stand last, go first: a read may drop what the write has to be compared with.
    for (uint32_t k = d->acc.n; k-- > 0;) {
        const ir_view *v = ir_view_ref(d->p, d->acc.at[k].view);
        reach r = reach_of(d->p, &d->obj, v);
        touch(d, i, &r, (d->acc.at[k].kind & ACC_WRITE) != 0);
    }
    if (isa_table[in->op].group != ISAG_NISA || in->op == ISA_core_barrier || prints(in) ||
        draws(in) || d->with_states) {
        touch_states(d, i, touch);
        if (in->op == ISA_core_barrier) {
            touch_shared(d, i, touch);
        }
    }
}

// ---- cutting memory

static void mark_written(depend *d, uint32_t i, const reach *r, bool write)
{
    (void)i;
    d->maps[r->object].written |= write;
}

static void mark_bounds(depend *d, uint32_t i, const reach *r, bool write)
{
    object_map *m = &d->maps[r->object];
    (void)i;
    (void)write;
    if (m->written) {
        m->index[r->bytes.off >> m->shift] = 1;
        uint64_t end = ((lattice_end(&r->bytes) - 1) >> m->shift) + 1;
        if (end < m->granules) {
            m->index[end] = 1;
        }
    }
}

static void size_map(depend *d, uint32_t o)
{
    object_map *m = &d->maps[o];
    uint64_t bytes = d->obj.bytes[o] ? d->obj.bytes[o] : 1;
    for (m->shift = bytes == 1 ? 0 : 4; (bytes - 1) >> m->shift >= GRANULES_MAX;) {
        m->shift++;
    }
    m->granules = (uint32_t)((bytes - 1) >> m->shift) + 1;
    m->index = NEW_N(d->mem, uint32_t, m->granules);
}

static void cut(depend *d, uint32_t o)
{
    object_map *m = &d->maps[o];
    uint32_t bounds = 1;
    for (uint32_t g = 1; g < m->granules; g++) {
        bounds += m->index[g];
    }
    uint32_t keep = (bounds + STRETCHES_MAX - 1) / STRETCHES_MAX, seen = 0, n = 0;
    m->first = d->stretches.n;
    for (uint32_t g = 0; g < m->granules; g++) {
        if (g && m->index[g] && ++seen % keep == 0) {
            n++;
        }
        m->index[g] = n;
    }
    vec_reserve(d->mem, &d->stretches, n + 1);
    memset(d->stretches.at + d->stretches.n, 0, (n + 1) * sizeof *d->stretches.at);
    d->stretches.n += n + 1;
}

depend *depend_new(arena *mem, program *pr, const stream_plan *sp, issue_order order,
                   bool with_states)
{
    depend *d = NEW(mem, depend);
    d->mem = mem;
    d->pr = pr;
    d->p = pr->ir;
    d->sp = sp;
    d->order = order;
    d->with_states = with_states;
    objects_make(mem, d->p, &d->obj);
    d->maps = NEW_N(mem, object_map, d->obj.n);
    d->child_need = arena_alloc(mem, sizeof *d->child_need, _Alignof(uint32_t), STREAM_COUNT);
    for (uint32_t i = 0; i < d->p->instrs.n; i++) {
        touch_all(d, i, mark_written);
    }
    for (uint32_t o = 0; o < d->obj.n; o++) {
        if (d->maps[o].written) {
            size_map(d, o);
        }
    }
    for (uint32_t i = 0; i < d->p->instrs.n; i++) {
        touch_all(d, i, mark_bounds);
    }
    for (uint32_t o = 0; o < d->obj.n; o++) {
        if (d->maps[o].written) {
            cut(d, o);
        }
    }
    return d;
}

// ---- one access against those before it

static void require(depend *d, stream_mask streams, uint32_t rank)
{
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if ((streams >> s & 1) && d->need[s] < rank) {
            d->need[s] = rank;
        }
    }
}

static bool same_stream(const past *q, stream_mask streams)
{
    return q->streams == streams && (streams & (streams - 1)) == 0;
}

// Whether order must be asked for: not between entries of one in-order stream.
static bool apart(const depend *d, const past *q, stream_mask streams)
{
    return !same_stream(q, streams) || streams >> STREAM_RING0 || d->sink->pair;
}

static void compare(depend *d, uint32_t i, const reach *r, bool write, past *q)
{
    uint32_t home = d->sp->loop_of[i];
    // Whoever is ordered after i is ordered after q too: i stands in the level itself; or both
    // stand in one inner loop and one stream. (What orders the streams of an inner loop is that
    // loop's.)
    bool certain =
        home == d->level || (!d->carried && home == q->home && same_stream(q, d->sp->mask[i]));
    if (!write && !q->write) {
        bool older = !d->sink->pair || d->order.rank[i] - d->order.rank[q->instr] > READERS_FREE;
        if (!d->carried && certain && older && q->streams == d->sp->mask[i] && q->instr != i &&
            reach_covers(r, &q->r)) {
            q->dead = true;
            if (d->sink->pair && home == q->home) {
                d->sink->pair(d->sink->ctx, q->instr, i);
            }
        }
        return;
    }
    bool inside = !d->carried && (q->instr == i || (d->child && q->child == d->child));
    bool met = inside;
    if (!inside && apart(d, q, d->sp->mask[i])) {
        bool unsure;
        met = reaches_meet(r, &q->r, &unsure);
        if (unsure) {
            d->pr->pairs_conservative++;
        } else {
            d->pr->pairs_exact++;
        }
        if (met) {
            require(d, q->streams, q->rank);
            if (d->sink->pair && !d->carried && home == q->home) {
                d->sink->pair(d->sink->ctx, q->instr, i);
            }
        }
    } else {
        met = true;
    }
    if (met && write && certain && q->instr != i && reach_covers(r, &q->r)) {
        q->dead = true;
    }
}

static uint32_t new_past(depend *d)
{
    if (d->spare.n) {
        return d->spare.at[--d->spare.n];
    }
    vec_push(d->mem, &d->pasts, (past){0});
    return d->pasts.n - 1;
}

static void sweep_stretch(depend *d, stretch *s, uint32_t i, const reach *r, bool write)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->list.n; k++) {
        uint32_t id = s->list.at[k];
        past *q = &d->pasts.at[id];
        if (!q->dead && q->stamp != d->stamp) {
            q->stamp = d->stamp;
            compare(d, i, r, write, q);
        }
        if (q->dead) {
            if (--q->refs == 0) {
                vec_push(d->mem, &d->spare, id);
            }
        } else {
            s->list.at[n++] = id;
        }
    }
    s->list.n = n;
}

static void touch_past(depend *d, uint32_t i, const reach *r, bool write)
{
    const object_map *m = &d->maps[r->object];
    if (!m->written) {
        return;
    }
    uint32_t lo = m->first + m->index[r->bytes.off >> m->shift];
    uint32_t hi = m->first + m->index[(lattice_end(&r->bytes) - 1) >> m->shift];
    d->stamp++;
    for (uint32_t k = lo; k <= hi; k++) {
        stretch *s = &d->stretches.at[k];
        if (s->epoch != d->epoch) {
            s->epoch = d->epoch;
            s->list.n = 0;
        }
        sweep_stretch(d, s, i, r, write);
    }
    if (d->carried) {
        return;
    }
    uint32_t id = new_past(d);
    uint32_t last = d->child ? d->sp->loops.at[d->child].last : i;
    d->pasts.at[id] = (past){.r = *r,
                             .rank = d->order.rank[last],
                             .instr = i,
                             .home = d->sp->loop_of[i],
                             .child = d->child,
                             .refs = hi - lo + 1,
                             .stamp = d->stamp,
                             .streams = d->sp->mask[i],
                             .write = write};
    for (uint32_t k = lo; k <= hi; k++) {
        vec_push(d->mem, &d->stretches.at[k].list, id);
    }
}

// ---- a level

// The child of the level at hand around loop `in`; 0 when `in` is the level itself or outside it.
static uint32_t child_around(const depend *d, uint32_t in)
{
    const loop_node *l = d->sp->loops.at;
    while (in && in != d->level && l[in].parent != d->level) {
        in = l[in].parent;
    }
    return in == d->level ? 0 : in;
}

static bool in_level(const depend *d, uint32_t in)
{
    const loop_node *l = d->sp->loops.at;
    while (in != d->level && l[in].depth > l[d->level].depth) {
        in = l[in].parent;
    }
    return in == d->level;
}

// Dependences that the kernel states.
static void require_stated(depend *d, uint32_t i)
{
    const ir *p = d->p;
    for (uint32_t k = p->instrs.at[i].deps; k && p->deps.at[k] != IR_DEPS_END; k++) {
        uint32_t from = p->deps.at[k];
        const ir_instr *in = &p->instrs.at[from];
        uint32_t home = d->sp->loop_of[from];
        if (!in_level(d, home)) {
            continue;
        }
        // A loop's own instructions stand for the loop.
        uint32_t child = child_around(d, home), last = from;
        if (child && child == d->child) {
            continue;
        }
        if (!child && instr_opens_loop(in)) {
            last = d->sp->loops.at[loop_at(d->sp, from)].last;
            if (i <= last) {
                continue;
            }
        } else if (child) {
            last = d->sp->loops.at[child].last;
        }
        require(d, d->sp->mask[from], d->order.rank[last]);
        if (d->sink->pair && home == d->sp->loop_of[i]) {
            d->sink->pair(d->sink->ctx, from, i);
        }
    }
}

static void report(depend *d, uint32_t i)
{
    stream_mask m = d->sp->mask[i];
    if (!d->child) {
        d->sink->item(d->sink->ctx, i, m, d->need, d->carried);
        return;
    }
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        for (uint32_t f = 0; (m >> s & 1) && f < STREAM_COUNT; f++) {
            if (d->child_need[s][f] < d->need[f]) {
                d->child_need[s][f] = d->need[f];
            }
        }
    }
}

static void end_child(depend *d)
{
    const loop_node *l = &d->sp->loops.at[d->child];
    d->child = 0;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        if (l->streams >> s & 1) {
            d->sink->item(d->sink->ctx, l->first, (stream_mask)(1u << s), d->child_need[s],
                          d->carried);
        }
    }
}

static void sweep(depend *d, uint32_t lo, uint32_t hi)
{
    for (uint32_t r = lo; r < hi; r++) {
        uint32_t i = d->order.instr[r];
        const ir_instr *in = &d->p->instrs.at[i];
        if (!d->child && instr_opens_loop(in)) {
            d->child = loop_at(d->sp, i);
            memset(d->child_need, 0, STREAM_COUNT * sizeof *d->child_need);
        }
        memset(d->need, 0, sizeof d->need);
        touch_all(d, i, touch_past);
        if (!d->carried) {
            require_stated(d, i);
        }
        report(d, i);
        if (d->child && d->sp->loops.at[d->child].last == i) {
            end_child(d);
        }
    }
}

void depend_level(depend *d, uint32_t loop, const depend_sink *sink)
{
    const loop_node *l = &d->sp->loops.at[loop];
    uint32_t lo = loop ? d->order.rank[l->first] : 0;
    uint32_t hi = loop ? d->order.rank[l->last] - 1 : d->p->instrs.n;
    d->sink = sink;
    d->level = loop;
    d->child = 0;
    d->carried = false;
    d->epoch++;
    d->pasts.n = d->spare.n = 0;
    sweep(d, lo, hi);
    if (loop) {
        d->carried = true;
        sink->second_sweep(sink->ctx);
        sweep(d, lo, hi);
    }
}
