#include "sched/depend.h"

// The memory of each object (sched/reach.h) is cut into stretches where accesses begin and end, as
// the sweep comes to them, and each stretch lists the accesses that a later one may still have to
// wait for. An access leaves the list of a stretch when
//
// * a later write covers its part of it: whoever conflicts with the first there conflicts with the
//   second, which waits for it;
// * a later read of the same streams does, and it is a read too.
//
// When the later one stands in an inner loop that the first is not in, only at the loop's end:
// until then others in the loop have to be held against the first, since how the streams of the
// loop wait for each other is not seen from here.
//
// Stretches whose lists have become equal (empty, before an access is added to both) are joined. So
// each access makes at most two stretches, and a stretch is passed again only by accesses that are
// longer than what was there before.

enum {
    READERS_FREE = 64,    // ranks within which readers of one place may change places
    GRANULES_MIN = 2048,  // of an object; more when it has many accesses
    GRANULES_EACH = 4,
    LEVELS = 6,  // of a map's bits
};

typedef enum past_kill { KILL_NOT, KILL_PART, KILL_ALL } past_kill;

// An access that someone may have to wait for.
typedef struct past {
    reach r;
    uint32_t rank;  // to wait for
    uint32_t instr;
    uint32_t child;  // inner loop that stands for it in the level, else 0
    uint32_t refs;   // stretches that list it
    uint32_t stamp;  // of the access that looked at it last
    stream_mask streams;
    bool write;
    uint8_t kill;  // past_kill: what that access does to it
} past;

typedef struct node {
    uint32_t past;
    uint32_t next;   // + 1
    uint32_t until;  // 0, or: leaves the list when this inner loop has been passed
} node;

// The stretches of an object, of its bytes in order or, where its accesses are columns of a matrix,
// of the bytes of a row (pitch). Bit g of level 0: a stretch begins at granule g; bit w of level l
// + 1: word w of level l is not 0.
typedef struct object_map {
    bool written;
    uint8_t shift;  // of a granule
    uint32_t granules;
    uint32_t accesses;
    uint64_t bounds;          // all places where an access begins or ends, or-ed
    uint64_t pitch;           // 0: bytes in order
    double straight, across;  // how much of the object the accesses span, both ways
    uint64_t *bits[LEVELS];
    uint32_t *head;  // of each granule where a stretch begins: node + 1
    uint32_t epoch;
} object_map;

struct depend {
    arena *mem;
    program *pr;
    const ir *p;
    const stream_plan *sp;
    const access_table *acc;
    objects obj;
    object_map *maps;
    uint8_t traits[ISA_COUNT];  // TRAIT_*
    VEC(past) pasts;
    VEC(uint32_t) spare_pasts;
    VEC(node) nodes;
    uint32_t spare_node;  // + 1
    uint32_t epoch, stamp;
    VEC(uint32_t) touched;  // objects with stretches
    // The level at hand.
    issue_order order;
    const depend_sink *sink;
    depend_pair pair;  // NULL, or: pairs are asked for, of the block at hand
    void *pair_ctx;
    uint32_t level;
    bool carried;
    uint32_t child;  // the inner loop being passed, else 0
    need_set need;
    need_set *child_need;  // of each stream of the inner loop
};

// ---- what an instruction touches besides memory

typedef void (*touch_fn)(depend *d, uint32_t instr, const reach *r, bool write);

enum { TRAIT_PRINTS = 1, TRAIT_DRAWS = 2, TRAIT_FOLDS = 4 };

// What an instruction uses besides memory: what the host sees of a program, in order; the random
// generators; an engine's accumulators.
static uint8_t traits_of(isa_id op)
{
    uint8_t t = 0;
    switch (op) {
    case ISA_device_print:
    case ISA_host_call: t = TRAIT_PRINTS; break;
    case ISA_rng:
    case ISA_rand2:
    case ISA_dropout:
    case ISA_set_rng_seed:
    case ISA_rand_set_state:
    case ISA_rand_get_state: t = TRAIT_DRAWS; break;
    case ISA_activation_reduce: t = TRAIT_FOLDS; break;
    default: break;
    }
    for (uint32_t k = 0; k < isa_table[op].nparams; k++) {
        t |= isa_table[op].params[k].type == PT_REDCMD ? TRAIT_FOLDS : 0;
    }
    return t;
}

static bool names_register(const ir *p, ir_arg a)
{
    if (a.kind == IRA_VIEW) {
        uint32_t dyn = ir_view_at(p, a.v).dyn;
        return dyn && p->dyns.at[dyn].kind == DYN_REG;
    }
    for (uint32_t k = 0; a.kind == IRA_LIST && k < (uint32_t)a.aux; k++) {
        if (names_register(p, p->args.at[a.v + k])) {
            return true;
        }
    }
    return a.kind == IRA_REG;
}

static void touch_registers(depend *d, uint32_t i, touch_fn touch)
{
    const ir *p = d->p;
    const ir_instr *in = &p->instrs.at[i];
    reach r = reach_state(OBJ_REGISTERS);
    bool reads = false, writes = false;
    for (uint32_t k = 0; k < in->nargs; k++) {
        if (names_register(p, p->args.at[in->args + k])) {
            *(isa_table[in->op].params[k].type == PT_REGOUT ? &writes : &reads) = true;
        }
    }
    if (writes) {
        touch(d, i, &r, true);
    }
    if (reads) {
        touch(d, i, &r, false);
    }
}

static void touch_states(depend *d, uint32_t i, touch_fn touch)
{
    const ir_instr *in = &d->p->instrs.at[i];
    uint8_t traits = d->traits[in->op];
    reach r = reach_state(OBJ_PRINT);
    if (traits & TRAIT_PRINTS) {
        touch(d, i, &r, true);
    }
    if (traits & TRAIT_DRAWS) {
        r.object = OBJ_RANDOM;
        touch(d, i, &r, true);
    }
    if (!d->pair) {
        return;
    }
    if ((traits & TRAIT_FOLDS) && (in->engine == ENG_VECTOR || in->engine == ENG_SCALAR)) {
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
        if (p->tensors.at[t].buffer == BUF_SHARED) {
            reach r = reach_state(d->obj.of[t]);
            r.lo = d->obj.base[t];
            r.hi = r.lo + p->tensors.at[t].size_bytes;
            touch(d, i, &r, true);
        }
    }
}

static void touch_all(depend *d, uint32_t i, touch_fn touch)
{
    const ir_instr *in = &d->p->instrs.at[i];
    // Writes, which stand last, go first: a read may drop what the write has to be compared with.
    for (uint32_t k = d->acc->first[i + 1]; k-- > d->acc->first[i];) {
        access a = d->acc->all.at[k];
        reach r = reach_of(d->p, &d->obj, ir_view_ref(d->p, a.view));
        touch(d, i, &r, (a.kind & ACC_WRITE) != 0);
    }
    touch_states(d, i, touch);
    if (in->op == ISA_core_barrier) {
        touch_shared(d, i, touch);
    }
}

// ---- stretches

// Where memory is cut for r: at its ends; for a pattern with gaps, where its outermost stride
// begins and ends, since such patterns lie side by side, and a cut within a gap tells none from
// another. pitch: of r as columns of rows of that many bytes.
static void ends_of(const reach *r, uint64_t pitch, uint64_t *lo, uint64_t *hi)
{
    const lattice *l = r->shape && r->shape->bytes.n ? &r->shape->bytes : NULL;
    const lattice_dim *top = l ? &l->dim[l->n - 1] : NULL;
    *lo = r->lo;
    *hi = r->hi;
    if (pitch) {
        uint64_t width = r->hi - r->lo;
        if (top && top->stride == pitch) {
            width -= pitch * (top->count - 1);
        }
        bool within = width < pitch && r->lo % pitch + width <= pitch;
        *lo = within ? r->lo % pitch : 0;
        *hi = within ? *lo + width : pitch;
    } else if (top) {
        *lo -= *lo % top->stride;
        *hi += (top->stride - *hi % top->stride) % top->stride;
    }
}

// Finds the pitch of an object in HBM: the longest stride.
static void note_pitch(object_map *m, const reach *r)
{
    if (r->shape && r->shape->bytes.n) {
        uint64_t stride = r->shape->bytes.dim[r->shape->bytes.n - 1].stride;
        m->pitch = stride > m->pitch ? stride : m->pitch;
    }
}

static void note_span(object_map *m, const reach *r, uint64_t bytes)
{
    uint64_t lo, hi;
    ends_of(r, 0, &lo, &hi);
    m->accesses++;
    m->bounds |= lo | hi;
    m->straight += (double)(hi - lo) / (double)bytes;
    if (m->pitch) {
        ends_of(r, m->pitch, &lo, &hi);
        m->across += (double)(hi - lo) / (double)m->pitch;
    }
}

// All accesses are known in advance: of HBM, where they begin and end; of the chip and of states it
// is enough who is written.
static void note_accesses(depend *d)
{
    const ir *p = d->p;
    for (int round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < d->acc->all.n; k++) {
            access a = d->acc->all.at[k];
            uint32_t o = d->obj.of[p->views.at[a.view].tensor];
            object_map *m = &d->maps[o];
            m->written |= (a.kind & ACC_WRITE) != 0;
            if (round ? !m->written : o < OBJ_FIRST_HBM) {
                continue;
            }
            reach r = reach_of(p, &d->obj, ir_view_ref(p, a.view));
            if (round) {
                note_span(m, &r, d->obj.bytes[o]);
            } else {
                note_pitch(m, &r);
            }
        }
    }
    for (uint32_t o = OBJ_PRINT; o < OBJ_FIRST_HBM; o++) {
        d->maps[o].written = true;
    }
    for (uint32_t t = 0; t < p->tensors.n && p->grid > 1; t++) {
        d->maps[d->obj.of[t]].written |= p->tensors.at[t].buffer == BUF_SHARED;  // by a barrier
    }
}

// Granules: as fine as the bounds ask for, but not more of them than the accesses are worth.
static void size_map(depend *d, uint32_t o)
{
    object_map *m = &d->maps[o];
    m->pitch = m->across < m->straight ? m->pitch : 0;
    uint64_t bytes = m->pitch ? m->pitch : d->obj.bytes[o] ? d->obj.bytes[o] : 1;
    uint64_t most = (uint64_t)m->accesses * GRANULES_EACH;
    most = most < GRANULES_MIN ? GRANULES_MIN : most;
    while (!m->pitch && m->bounds && !(m->bounds >> m->shift & 1)) {
        m->shift++;
    }
    while ((bytes - 1) >> m->shift >= most) {
        m->shift++;
    }
    m->granules = (uint32_t)((bytes - 1) >> m->shift) + 1;
    m->head = NEW_N(d->mem, uint32_t, m->granules);
    uint32_t n = m->granules;
    for (int l = 0; l < LEVELS && n > (l ? 1u : 0u); l++) {
        n = (n + 63) / 64;
        m->bits[l] = NEW_N(d->mem, uint64_t, n);
    }
}

static void set_bit(object_map *m, uint32_t g)
{
    for (int l = 0; l < LEVELS && m->bits[l]; l++) {
        uint64_t *w = &m->bits[l][g / 64], old = *w;
        *w |= (uint64_t)1 << g % 64;
        if (old) {
            return;
        }
        g /= 64;
    }
}

static void clear_bit(object_map *m, uint32_t g)
{
    for (int l = 0; l < LEVELS && m->bits[l]; l++) {
        uint64_t *w = &m->bits[l][g / 64];
        *w &= ~((uint64_t)1 << g % 64);
        if (*w) {
            return;
        }
        g /= 64;
    }
}

// The stretch that granule g lies in. Bit 0 of a map in use is set.
static uint32_t stretch_at(const object_map *m, uint32_t g)
{
    for (int l = 0;; l++) {
        uint64_t w = m->bits[l][g / 64] & (~(uint64_t)0 >> (63 - g % 64));
        if (w) {
            g = g / 64 * 64 + (63 - (uint32_t)__builtin_clzll(w));
            for (; l; l--) {
                g = g * 64 + (63 - (uint32_t)__builtin_clzll(m->bits[l - 1][g]));
            }
            return g;
        }
        g = g / 64 - 1;  // not the first word: bit 0 would have been found
    }
}

// Where the stretch that begins at g ends.
static uint32_t stretch_end(const object_map *m, uint32_t g)
{
    for (int l = 0; l < LEVELS && m->bits[l]; l++) {
        uint64_t w = g % 64 == 63 ? 0 : m->bits[l][g / 64] & (~(uint64_t)0 << (g % 64 + 1));
        if (w) {
            g = g / 64 * 64 + (uint32_t)__builtin_ctzll(w);
            for (; l; l--) {
                g = g * 64 + (uint32_t)__builtin_ctzll(m->bits[l - 1][g]);
            }
            return g;
        }
        g /= 64;
    }
    return m->granules;
}

static uint32_t push_node(depend *d, uint32_t of, uint32_t until, uint32_t next)
{
    uint32_t id = d->spare_node;
    if (id) {
        d->spare_node = d->nodes.at[id - 1].next;
    } else {
        vec_push(d->mem, &d->nodes, (node){0});
        id = d->nodes.n;
    }
    d->nodes.at[id - 1] = (node){of, next, until};
    return id;
}

static void cut(depend *d, object_map *m, uint32_t g)
{
    if (g >= m->granules || m->bits[0][g / 64] >> g % 64 & 1) {
        return;
    }
    uint32_t from = m->head[stretch_at(m, g)], to = 0;
    for (; from; from = d->nodes.at[from - 1].next) {
        node n = d->nodes.at[from - 1];
        to = push_node(d, n.past, n.until, to);
        d->pasts.at[n.past].refs++;
    }
    m->head[g] = to;
    set_bit(m, g);
}

static void forget_all(depend *d)
{
    for (uint32_t k = 0; k < d->touched.n; k++) {
        object_map *m = &d->maps[d->touched.at[k]];
        for (uint32_t g = 0, next; g < m->granules; g = next) {
            next = stretch_end(m, g);
            clear_bit(m, g);
            m->head[g] = 0;
        }
    }
    d->touched.n = d->pasts.n = d->spare_pasts.n = d->nodes.n = d->spare_node = 0;
    d->epoch++;
}

depend *depend_new(arena *mem, program *pr, const stream_plan *sp, const access_table *acc)
{
    depend *d = NEW(mem, depend);
    d->mem = mem;
    d->pr = pr;
    d->p = pr->ir;
    d->sp = sp;
    d->acc = acc;
    objects_make(mem, d->p, &d->obj);
    d->maps = NEW_N(mem, object_map, d->obj.n);
    d->child_need = NEW_N(mem, need_set, STREAM_COUNT);
    for (int op = 0; op < ISA_COUNT; op++) {
        d->traits[op] = traits_of((isa_id)op);
    }
    note_accesses(d);
    for (uint32_t o = 0; o < d->obj.n; o++) {
        if (d->maps[o].written) {
            size_map(d, o);
        }
    }
    return d;
}

// ---- one access against those before it

static void require(need_set *need, stream_mask streams, uint32_t rank)
{
    need->streams |= streams;
    for (stream_mask m = streams; m;) {
        uint32_t s = stream_take(&m);
        need->rank[s] = need->rank[s] < rank ? rank : need->rank[s];
    }
}

static uint8_t covered(const reach *r, const past *q)
{
    return reach_covers(r, &q->r)              ? KILL_ALL
           : !r->shape && rows_cover(r, &q->r) ? KILL_PART
                                               : KILL_NOT;
}

// Readers of one place. A later one of the same streams stands for the earlier; where instructions
// may change places, only when it is told to stay behind it.
static void compare_reads(depend *d, uint32_t i, const reach *r, past *q)
{
    bool older = !d->pair || d->order.rank[i] - d->order.rank[q->instr] > READERS_FREE;
    if (d->carried || !older || q->streams != d->sp->mask[i] || q->instr == i) {
        return;
    }
    q->kill = covered(r, q);
    if (q->kill && d->pair) {
        d->pair(d->pair_ctx, q->instr, i);
    }
}

static void compare(depend *d, uint32_t i, const reach *r, bool write, past *q)
{
    q->kill = KILL_NOT;
    if (!write && !q->write) {
        compare_reads(d, i, r, q);
        return;
    }
    stream_mask mask = d->sp->mask[i];
    // What orders the streams of one inner loop is that loop's; seen from here, one access of it
    // stands for another only in one stream.
    bool inside = !d->carried && (q->instr == i || (d->child && q->child == d->child));
    bool same = q->streams == mask && one_stream(mask);
    if (inside) {
        q->kill = write && same && q->instr != i ? covered(r, q) : KILL_NOT;
        return;
    }
    // Between entries of one engine's queue no order has to be asked for.
    if (!same || mask >> STREAM_RING0 || d->pair) {
        bool unsure, met = reaches_meet(r, &q->r, &unsure);
        *(unsure ? &d->pr->pairs_conservative : &d->pr->pairs_exact) += 1;
        if (!met) {
            return;
        }
        require(&d->need, q->streams, q->rank);
        if (d->pair) {
            d->pair(d->pair_ctx, q->instr, i);
        }
    }
    q->kill = write ? covered(r, q) : KILL_NOT;
}

// Whether access r takes q out of the stretch [lo, hi), which in a map with a pitch says nothing.
static bool leaves(const object_map *m, const reach *r, const past *q, uint64_t lo, uint64_t hi)
{
    if (q->kill != KILL_PART || m->pitch) {
        return q->kill == KILL_ALL;
    }
    lo = q->r.lo > lo ? q->r.lo : lo;
    hi = q->r.hi < hi ? q->r.hi : hi;
    return r->lo <= lo && hi <= r->hi;
}

static void sweep_stretch(depend *d, object_map *m, uint32_t g, uint32_t end, uint32_t i,
                          const reach *r, bool write)
{
    uint64_t lo = (uint64_t)g << m->shift, hi = (uint64_t)end << m->shift;
    d->pr->steps++;
    for (uint32_t *at = &m->head[g]; *at;) {
        node *n = &d->nodes.at[*at - 1];
        past *q = &d->pasts.at[n->past];
        d->pr->steps++;
        bool gone = n->until && n->until != d->child;
        if (!gone && q->stamp != d->stamp) {
            q->stamp = d->stamp;
            compare(d, i, r, write, q);
        }
        if (!gone && leaves(m, r, q, lo, hi)) {
            gone = !d->child || (q->child == d->child && !d->carried);
            n->until = d->child;
        }
        if (!gone) {
            at = &n->next;
            continue;
        }
        if (--q->refs == 0) {
            vec_push(d->mem, &d->spare_pasts, n->past);
        }
        uint32_t id = *at;
        *at = n->next;
        n->next = d->spare_node;
        d->spare_node = id;
    }
}

static uint32_t new_past(depend *d)
{
    if (d->spare_pasts.n) {
        return d->spare_pasts.at[--d->spare_pasts.n];
    }
    vec_push(d->mem, &d->pasts, (past){0});
    return d->pasts.n - 1;
}

static void touch_past(depend *d, uint32_t i, const reach *r, bool write)
{
    object_map *m = &d->maps[r->object];
    if (!m->written) {
        return;
    }
    if (m->epoch != d->epoch) {
        m->epoch = d->epoch;
        set_bit(m, 0);
        vec_push(d->mem, &d->touched, r->object);
    }
    uint64_t lo, hi;
    ends_of(r, m->pitch, &lo, &hi);
    uint64_t past_end = ((hi - 1) >> m->shift) + 1;
    uint32_t g0 = (uint32_t)(lo >> m->shift);
    uint32_t end = past_end < m->granules ? (uint32_t)past_end : m->granules;
    cut(d, m, g0);
    cut(d, m, end);
    d->stamp++;
    uint32_t id = 0, last = 0;
    for (uint32_t g = g0, next, empty = UINT32_MAX; g < end; g = next) {
        next = stretch_end(m, g);
        sweep_stretch(d, m, g, next, i, r, write);
        if (!m->head[g] && empty != UINT32_MAX) {
            clear_bit(m, g);  // joined to the one before
        } else {
            empty = m->head[g] ? UINT32_MAX : g;
        }
    }
    if (d->carried) {
        return;
    }
    id = new_past(d);
    last = d->child ? d->sp->loops.at[d->child].last : i;
    d->pasts.at[id] = (past){.r = *r,
                             .rank = d->order.rank[last],
                             .instr = i,
                             .child = d->child,
                             .stamp = d->stamp,
                             .streams = d->sp->mask[i],
                             .write = write};
    for (uint32_t g = g0; g < end; g = stretch_end(m, g)) {
        m->head[g] = push_node(d, id, 0, m->head[g]);
        d->pasts.at[id].refs++;
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
        require(&d->need, d->sp->mask[from], d->order.rank[last]);
    }
}

static void report(depend *d, uint32_t i)
{
    stream_mask m = d->sp->mask[i];
    if (!d->child) {
        d->sink->item(d->sink->ctx, i, m, &d->need, d->carried);
        return;
    }
    while (m) {
        need_set *of = &d->child_need[stream_take(&m)];
        for (stream_mask from = d->need.streams; from;) {
            uint32_t f = stream_take(&from);
            require(of, (stream_mask)(1u << f), d->need.rank[f]);
        }
    }
}

static void end_child(depend *d)
{
    const loop_node *l = &d->sp->loops.at[d->child];
    d->child = 0;
    for (stream_mask m = l->streams; m;) {
        uint32_t s = stream_take(&m);
        d->sink->item(d->sink->ctx, l->first, (stream_mask)(1u << s), &d->child_need[s],
                      d->carried);
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
        memset(&d->need, 0, sizeof d->need);
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

void depend_level(depend *d, issue_order order, uint32_t loop, const depend_sink *sink)
{
    const loop_node *l = &d->sp->loops.at[loop];
    d->order = order;
    uint32_t lo = loop ? d->order.rank[l->first] : 0;
    uint32_t hi = loop ? d->order.rank[l->last] - 1 : d->p->instrs.n;
    d->sink = sink;
    d->pair = NULL;
    d->level = loop;
    d->child = 0;
    d->carried = false;
    forget_all(d);
    sweep(d, lo, hi);
    if (loop) {
        d->carried = true;
        sink->second_sweep(sink->ctx);
        sweep(d, lo, hi);
    }
}

void depend_pairs(depend *d, issue_order order, depend_pair pair, void *ctx)
{
    const ir *p = d->p;
    d->order = order;
    d->pair = pair;
    d->pair_ctx = ctx;
    d->child = 0;
    d->carried = false;
    forget_all(d);
    for (uint32_t i = 0, first = 0; i < p->instrs.n; i++) {
        if (instr_is_loop(&p->instrs.at[i])) {
            first = i + 1;
            forget_all(d);
            continue;
        }
        touch_all(d, i, touch_past);
        for (uint32_t k = p->instrs.at[i].deps; k && p->deps.at[k] != IR_DEPS_END; k++) {
            if (p->deps.at[k] >= first) {
                pair(ctx, p->deps.at[k], i);
            }
        }
    }
}
