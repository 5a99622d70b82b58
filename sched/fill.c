#include "sched/passes.h"

// Manual tensors may share memory on purpose: what one wrote, another reads. So an unproven manual
// tensor is filled only where no manual tensor before it touched the same memory.

enum { LINE_BYTES = 64, QUADRANT = 32, QUADRANTS = 4 };

typedef struct line_map {
    uint64_t *bits[QUADRANTS];
    uint64_t lines;
} line_map;

static void map_init(line_map *m, arena *mem, uint64_t bytes)
{
    m->lines = bytes / LINE_BYTES + 1;
    for (int q = 0; q < QUADRANTS; q++) {
        m->bits[q] = NEW_N(mem, uint64_t, m->lines / 64 + 1);
    }
}

// Marks the memory of t; true when some of it was marked before.
static bool map_mark(line_map *m, const ir_tensor *t)
{
    bool seen = false;
    uint64_t lo = t->addr_bytes / LINE_BYTES, hi = (t->addr_bytes + t->size_bytes - 1) / LINE_BYTES;
    uint32_t q0 = t->addr_part / QUADRANT, q1 = (t->addr_part + t->partitions - 1) / QUADRANT;
    for (uint32_t q = q0; q <= q1 && q < QUADRANTS; q++) {
        for (uint64_t l = lo; l <= hi && l < m->lines; l++) {
            uint64_t *w = &m->bits[q][l / 64], bit = (uint64_t)1 << l % 64;
            seen |= (*w & bit) != 0;
            *w |= bit;
        }
    }
    return seen;
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

static void choose(arena *mem, ir *p, const liveness *lv)
{
    bool manual = false;
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        p->tensors.at[t].fill = lv->of[t].unproven;
        manual |= p->tensors.at[t].manual && lv->of[t].touched;
    }
    if (!manual) {
        return;
    }
    line_map maps[2];
    map_init(&maps[BUF_SBUF], mem, p->target->sbuf_partition_bytes);
    map_init(&maps[BUF_PSUM], mem, p->target->psum_partition_bytes);
    chain c = chain_by_touch(mem, p, lv);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (uint32_t t = c.head[i]; t; t = c.next[t - 1]) {
            ir_tensor *ten = &p->tensors.at[t - 1];
            if (buffer_on_chip((buffer_kind)ten->buffer) && map_mark(&maps[ten->buffer], ten)) {
                ten->fill = 0;
            }
        }
    }
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

void insert_fills(arena *mem, ir *p, const liveness *lv)
{
    choose(mem, p, lv);
    uint32_t old_n = p->instrs.n, fills = 0;
    uint32_t *head = NEW_N(mem, uint32_t, old_n + 1), *next = NEW_N(mem, uint32_t, p->tensors.n);
    for (uint32_t t = p->tensors.n; t-- > 0;) {
        if (filled_here(p, t)) {
            uint32_t at = lv->of[t].touched ? lv->of[t].first : 0;
            next[t] = head[at];
            head[at] = t + 1;
            fills++;
        }
    }
    if (!fills) {
        return;
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
}
