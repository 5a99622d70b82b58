#include "sched/passes.h"

// Manual tensors may share memory on purpose: what one wrote, another reads. An unproven one is
//
// * filled before its lifetime when no manual tensor before it touched its memory;
// * not filled when one that covers it wholly is known to be written wholly, or filled, before;
// * filled at the program's start otherwise, which leaves alone what the others write. (Its bytes
//   are reserved from there: place.c.)

enum { LINE_BYTES = 64, QUADRANT = 32, QUADRANTS = 4 };

// Of each line of memory: 0 untouched, 1 touched, else 2 + a tensor whose bytes are all set there.
typedef struct line_map {
    uint32_t *of[QUADRANTS];
    uint64_t lines;
} line_map;

static void map_init(line_map *m, arena *mem, uint64_t bytes)
{
    m->lines = bytes / LINE_BYTES + 1;
    for (int q = 0; q < QUADRANTS; q++) {
        m->of[q] = NEW_N(mem, uint32_t, m->lines);
    }
}

static bool contains(const ir_tensor *a, const ir_tensor *b)
{
    return a->addr_part <= b->addr_part &&
           a->addr_part + a->partitions >= b->addr_part + b->partitions &&
           a->addr_bytes <= b->addr_bytes &&
           a->addr_bytes + a->size_bytes >= b->addr_bytes + b->size_bytes;
}

// Whether the view is all of its tensor, element after element.
static bool is_whole(const ir *p, const ir_view *v)
{
    const ir_tensor *t = &p->tensors.at[v->tensor];
    const ir_dim *d = ir_dims(p, v);
    uint64_t run = dtype_size((dtype)v->dtype);
    if (v->dyn || v->offset || v->part || d[0].stride != 1 || d[0].count != t->partitions) {
        return false;
    }
    for (uint32_t k = ir_ndim(p, v); k-- > 1;) {
        if (d[k].count > 1 &&
            (d[k].stride <= 0 || (uint64_t)d[k].stride * dtype_size((dtype)v->dtype) != run)) {
            return false;
        }
        run *= d[k].count;
    }
    return run == t->size_bytes;
}

// Whether its first instruction writes all of it, for certain.
static bool starts_written(arena *mem, const ir *p, const liveness *lv, uint32_t t)
{
    access_list acc = {0};
    uint32_t first = lv->of[t].touch;
    if (lv->loop_of[first]) {
        return false;
    }
    access_collect(mem, p, &p->instrs.at[first], &acc);
    for (uint32_t k = 0; k < acc.n; k++) {
        const ir_view *v = ir_view_ref(p, acc.at[k].view);
        if (v->tensor == t && (acc.at[k].kind & ACC_FULL) && is_whole(p, v)) {
            return true;
        }
    }
    return false;
}

// What was in t's memory before it.
typedef struct history {
    bool touched;
    uint32_t cover;  // a tensor that covers it, all set, + 1; 0: none known
} history;

static history look_up(const line_map *m, const ir *p, const ir_tensor *t)
{
    history h = {0};
    uint64_t lo = t->addr_bytes / LINE_BYTES, hi = (t->addr_bytes + t->size_bytes - 1) / LINE_BYTES;
    uint32_t q0 = t->addr_part / QUADRANT, q1 = (t->addr_part + t->partitions - 1) / QUADRANT;
    for (uint32_t q = q0; q <= q1 && q < QUADRANTS; q++) {
        for (uint64_t l = lo; l <= hi && l < m->lines; l++) {
            uint32_t of = m->of[q][l];
            h.touched |= of != 0;
            if (of > 1 && !h.cover && contains(&p->tensors.at[of - 2], t)) {
                h.cover = of - 1;
            }
        }
    }
    return h;
}

static void note(line_map *m, const ir *p, uint32_t tensor, bool all_set)
{
    const ir_tensor *t = &p->tensors.at[tensor];
    uint64_t lo = t->addr_bytes / LINE_BYTES, hi = (t->addr_bytes + t->size_bytes - 1) / LINE_BYTES;
    uint32_t q0 = t->addr_part / QUADRANT, q1 = (t->addr_part + t->partitions - 1) / QUADRANT;
    for (uint32_t q = q0; q <= q1 && q < QUADRANTS; q++) {
        for (uint64_t l = lo; l <= hi && l < m->lines; l++) {
            uint32_t *of = &m->of[q][l];
            if (all_set && !(*of > 1 && contains(&p->tensors.at[*of - 2], t))) {
                *of = tensor + 2;
            } else if (!*of) {
                *of = 1;
            }
        }
    }
}

// Chains tensors by an instruction number: head[i] - 1 is the first, next[t] - 1 the following one,
// in ascending order of t.
typedef struct chain {
    uint32_t *head, *next;
} chain;

static chain chain_by_touch(arena *mem, const ir *p, const liveness *lv)
{
    chain c = {NEW_N(mem, uint32_t, p->instrs.n + 1), NEW_N(mem, uint32_t, p->tensors.n)};
    for (uint32_t t = p->tensors.n; t-- > 0;) {
        if (p->tensors.at[t].manual && lv->of[t].touched) {
            c.next[t] = c.head[lv->of[t].touch];
            c.head[lv->of[t].touch] = t + 1;
        }
    }
    return c;
}

// Fills: ir_tensor.fill. Returns which tensors are filled at the program's start; NULL: none.
static const bool *choose(arena *mem, ir *p, const liveness *lv)
{
    bool manual = false;
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        p->tensors.at[t].fill = lv->of[t].unproven;
        manual |= p->tensors.at[t].manual && lv->of[t].touched;
    }
    if (!manual) {
        return NULL;
    }
    bool *early = NEW_N(mem, bool, p->tensors.n);
    line_map maps[2];
    map_init(&maps[BUF_SBUF], mem, p->target->sbuf_partition_bytes);
    map_init(&maps[BUF_PSUM], mem, p->target->psum_partition_bytes);
    chain c = chain_by_touch(mem, p, lv);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (uint32_t t = c.head[i]; t; t = c.next[t - 1]) {
            ir_tensor *ten = &p->tensors.at[t - 1];
            if (!buffer_on_chip((buffer_kind)ten->buffer)) {
                continue;
            }
            line_map *m = &maps[ten->buffer];
            history h = look_up(m, p, ten);
            ten->fill = ten->fill && !h.cover;
            early[t - 1] = ten->fill && h.touched;
            note(m, p, t - 1, ten->fill || h.cover || starts_written(mem, p, lv, t - 1));
        }
    }
    return early;
}

// Shared HBM of a launch of two: the other program may have written it already.
static bool filled_here(const ir *p, uint32_t t)
{
    const ir_tensor *ten = &p->tensors.at[t];
    return ten->fill && !(ten->buffer == BUF_SHARED && p->grid > 1);
}

static ir_view fill_view(ir *p, uint32_t tensor)
{
    const ir_tensor *t = &p->tensors.at[tensor];
    if (!buffer_on_chip((buffer_kind)t->buffer)) {
        return ir_view_whole(p, tensor);
    }
    ir_dim d[2] = {{1, t->partitions, 0},
                   {1, (uint32_t)(t->size_bytes / dtype_size((dtype)t->dtype)), 0}};
    return (ir_view){.tensor = tensor, .ap = ir_ap_of(p, d, 2), .dtype = t->dtype};
}

static ir_instr make_fill(ir *p, uint32_t tensor, uint8_t engine)
{
    ir_arg a = ira_view(ir_view_add(p, fill_view(p, tensor)));
    return (ir_instr){.op = ISA_fill_uninit,
                      .engine = engine,
                      .nargs = 1,
                      .args = ir_list(p, &a, 1),
                      .place = p->tensors.at[tensor].place};
}

bool insert_fills(arena *mem, ir *p, const liveness *lv)
{
    const bool *early = choose(mem, p, lv);
    uint32_t old_n = p->instrs.n, fills = 0;
    uint32_t *head = NEW_N(mem, uint32_t, old_n + 1), *next = NEW_N(mem, uint32_t, p->tensors.n);
    for (uint32_t t = p->tensors.n; t-- > 0;) {
        if (filled_here(p, t)) {
            uint32_t at = lv->of[t].touched && !(early && early[t]) ? lv->of[t].first : 0;
            next[t] = head[at];
            head[at] = t + 1;
            fills++;
        }
    }
    if (!fills) {
        return false;
    }
    ir_instr *out = NEW_N(p->mem, ir_instr, (size_t)old_n + fills);
    uint32_t *moved = NEW_N(mem, uint32_t, old_n + 1), n = 0;
    for (uint32_t i = 0; i < old_n || (i == 0 && old_n == 0); i++) {
        for (uint32_t t = head[i]; t; t = next[t - 1]) {
            // On the engine that uses it first, so that no other engine has to wait.
            uint8_t engine =
                lv->of[t - 1].touched ? p->instrs.at[lv->of[t - 1].touch].engine : ENG_SYNC;
            out[n++] = make_fill(p, t - 1, engine);
        }
        if (i < old_n) {
            moved[i] = n;
            out[n++] = p->instrs.at[i];
        }
    }
    for (uint32_t i = 1; i < p->deps.n; i++) {
        if (p->deps.at[i] < old_n) {
            p->deps.at[i] = moved[p->deps.at[i]];
        }
    }
    p->instrs.at = out;
    p->instrs.n = p->instrs.cap = n;
    return true;
}
