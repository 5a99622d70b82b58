#include "sched/passes.h"

// Makes room in SBUF: where the tensors in use do not fit, the one whose next use is farthest goes
// to a temporary in HBM and comes back, as a new tensor, before that use. A register loop counts as
// one step, so nothing is moved inside one.

#define NONE UINT32_MAX  // no tensor

// A step of the program: an instruction, or a whole loop.
typedef struct item {
    uint32_t first, end;  // instructions
    uint32_t use;         // its first, in uses; up to that of the next item
} item;

typedef struct use {
    uint32_t tensor, item;
    uint32_t next;  // use of the same tensor, + 1
    bool writes;
} use;

// A tensor of the program as it came in.
typedef struct state {
    uint32_t now;     // the tensor that has its value
    uint32_t home;    // in HBM, + 1; 0: none yet
    uint32_t last;    // use, + 1; while they are listed
    uint32_t ahead;   // next use, + 1
    uint32_t pinned;  // item, + 1
    bool spillable, resident, away, dirty;
} state;

typedef struct spiller {
    arena *mem;
    ir *p;
    spill_count *count;
    VEC(item) items;
    VEC(use) uses;
    state *of;
    uint32_t tensors;  // of the program as it came in
    VEC(uint32_t) resident;
    uint64_t in_use_bytes, budget_bytes;
    VEC(ir_instr) out;
    uint32_t *moved;    // of each instruction
    uint32_t *copy;     // of each view: the last one made of it
    uint32_t *copy_of;  // and the tensor that it has
} spiller;

static bool opens_loop(const ir_instr *in)
{
    return in->op == ISA_loop_for || in->op == ISA_loop_while;
}

static uint64_t room(const ir_tensor *t)
{
    return (t->size_bytes + 63) / 64 * 64;
}

// ---- who uses what, and when

static void list_use(spiller *s, uint32_t tensor, bool writes)
{
    state *st = &s->of[tensor];
    uint32_t k = s->items.n - 1;
    if (!st->spillable) {
        return;
    }
    if (st->last && s->uses.at[st->last - 1].item == k) {
        s->uses.at[st->last - 1].writes |= writes;
        return;
    }
    vec_push(s->mem, &s->uses, ((use){tensor, k, 0, writes}));
    if (st->last) {
        s->uses.at[st->last - 1].next = s->uses.n;
    } else {
        st->ahead = s->uses.n;
    }
    st->last = s->uses.n;
}

static void list_items(spiller *s)
{
    const ir *p = s->p;
    access_list acc = {0};
    uint32_t depth = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *in = &p->instrs.at[i];
        if (depth == 0) {
            vec_push(s->mem, &s->items, ((item){i, i + 1, s->uses.n}));
        }
        depth += opens_loop(in);
        depth -= in->op == ISA_loop_end;
        s->items.at[s->items.n - 1].end = i + 1;
        acc.n = 0;
        access_collect(s->mem, p, in, &acc);
        for (uint32_t k = 0; k < acc.n; k++) {
            list_use(s, p->views.at[acc.at[k].view].tensor, (acc.at[k].kind & ACC_WRITE) != 0);
        }
    }
}

// ---- the transfers

static uint32_t whole(ir *p, uint32_t tensor)
{
    const ir_tensor *t = &p->tensors.at[tensor];
    if (!buffer_on_chip((buffer_kind)t->buffer)) {
        return ir_view_add(p, ir_view_whole(p, tensor));
    }
    ir_dim d[2] = {{1, t->partitions, 0},
                   {1, (uint32_t)(t->size_bytes / dtype_size((dtype)t->dtype)), 0}};
    return ir_view_add(p, (ir_view){.tensor = tensor, .ap = ir_ap_of(p, d, 2), .dtype = t->dtype});
}

static void move(spiller *s, uint32_t dst, uint32_t src, uint32_t place)
{
    ir *p = s->p;
    ir_arg a[] = {ira_view(whole(p, dst)),
                  ira_view(whole(p, src)),
                  ira_none(),
                  ira_kind(IRA_ENUM, ISAE_oob_mode_error),
                  ira_kind(IRA_ENUM, ISAE_dge_mode_unknown),
                  ira_kind(IRA_ENUM, ISAE_engine_unknown)};
    _Static_assert(sizeof a / sizeof *a == 6, "dma_copy");
    vec_push(s->mem, &s->out,
             ((ir_instr){.op = ISA_dma_copy,
                         .engine = ENG_DMA,
                         .nargs = 6,
                         .args = ir_list(p, a, 6),
                         .place = place}));
    const ir_tensor *t = &p->tensors.at[src];
    s->count->bytes += t->buffer == BUF_SBUF ? t->size_bytes * t->partitions : t->size_bytes;
}

// To its home in HBM, unless that has its value already.
static void put_away(spiller *s, uint32_t tensor, uint32_t place)
{
    ir *p = s->p;
    state *st = &s->of[tensor];
    if (!st->home) {
        ir_tensor h = p->tensors.at[tensor];
        uint32_t elems = (uint32_t)(h.size_bytes / dtype_size((dtype)h.dtype));
        h.buffer = BUF_HBM;
        h.ndim = 2;
        memset(h.shape, 0, sizeof h.shape);
        h.shape[0] = h.partitions;
        h.shape[1] = elems;
        h.size_bytes *= h.partitions;
        h.partitions = 0;
        h.fill = 0;
        h.addr_part = 0;
        h.addr_bytes = ADDR_AUTO;
        const char *name = arena_printf(s->mem, "%s" SPILL_SUFFIX, ir_text(p, h.name));
        h.name = ir_str(p, name, strlen(name));
        st->home = ir_tensor_add(p, h) + 1;
    }
    if (st->dirty) {
        move(s, st->home - 1, st->now, place);
        s->count->stores++;
    }
    st->dirty = st->resident = false;
    st->away = true;
    s->in_use_bytes -= room(&p->tensors.at[tensor]);
}

static void bring_back(spiller *s, uint32_t tensor, uint32_t place)
{
    ir *p = s->p;
    state *st = &s->of[tensor];
    ir_tensor t = p->tensors.at[tensor];
    st->now = ir_tensor_add(p, t);
    move(s, st->now, st->home - 1, place);
    s->count->loads++;
    st->away = false;
}

// ---- instructions on the tensors that have the values now

static uint32_t follow_view(spiller *s, uint32_t view)
{
    ir *p = s->p;
    ir_view v = ir_view_at(p, view);
    bool moved = v.tensor < s->tensors && s->of[v.tensor].now != v.tensor;
    uint32_t src = 0;
    if (v.dyn && p->dyns.at[v.dyn].kind != DYN_REG) {
        src = follow_view(s, p->dyns.at[v.dyn].src);
        if (src != p->dyns.at[v.dyn].src) {
            ir_dyn d = p->dyns.at[v.dyn];
            d.src = src;
            v.dyn = ir_dyn_add(p, d);
        }
    }
    bool same_dyn = v.dyn == ir_view_at(p, view).dyn;
    if (!moved && same_dyn) {
        return view;
    }
    v.tensor = moved ? s->of[v.tensor].now : v.tensor;
    if (!same_dyn) {
        return ir_view_add(p, v);
    }
    if (!s->copy[view] || s->copy_of[view] != v.tensor) {
        s->copy[view] = ir_view_add(p, v);
        s->copy_of[view] = v.tensor;
    }
    return s->copy[view];
}

static ir_arg follow_arg(spiller *s, ir_arg a)
{
    ir *p = s->p;
    if (a.kind == IRA_VIEW) {
        a.v = follow_view(s, a.v);
    } else if (a.kind == IRA_LIST) {
        bool changed = false;
        ir_arg *list = NEW_N(s->mem, ir_arg, (size_t)a.aux);
        for (uint32_t k = 0; k < (uint32_t)a.aux; k++) {
            ir_arg old = p->args.at[a.v + k];
            list[k] = follow_arg(s, old);
            changed |= list[k].v != old.v;
        }
        a.v = changed ? ir_list(p, list, (uint32_t)a.aux) : a.v;
    }
    return a;
}

static void copy_item(spiller *s, const item *it)
{
    ir *p = s->p;
    for (uint32_t i = it->first; i < it->end; i++) {
        ir_instr in = p->instrs.at[i];
        ir_arg args[UINT8_MAX];
        bool changed = false;
        for (uint32_t k = 0; k < in.nargs; k++) {
            args[k] = follow_arg(s, p->args.at[in.args + k]);
            changed |= args[k].v != p->args.at[in.args + k].v;
        }
        // A list in front of the arguments is theirs; new ones may lie anywhere before.
        in.args = changed ? ir_list(p, args, in.nargs) : in.args;
        s->moved[i] = s->out.n;
        vec_push(s->mem, &s->out, in);
    }
}

// ---- the sweep

// Room for `need` more bytes. false: what this item uses alone does not fit.
static bool make_room(spiller *s, uint32_t k, uint64_t need, uint32_t place)
{
    while (s->in_use_bytes + need > s->budget_bytes) {
        uint32_t best = NONE, far = 0, kept = 0;
        for (uint32_t i = 0; i < s->resident.n; i++) {
            uint32_t t = s->resident.at[i];
            const state *st = &s->of[t];
            if (!st->resident) {
                continue;
            }
            s->resident.at[kept++] = t;
            uint32_t next = s->uses.at[st->ahead - 1].item;
            if (st->pinned != k + 1 && (best == NONE || next > far)) {
                best = t;
                far = next;
            }
        }
        s->resident.n = kept;
        if (best == NONE) {
            return false;
        }
        put_away(s, best, place);
    }
    return true;
}

static bool step(spiller *s, uint32_t k)
{
    const item *it = &s->items.at[k];
    uint32_t end = k + 1 < s->items.n ? s->items.at[k + 1].use : s->uses.n;
    uint32_t place = s->p->instrs.at[it->first].place;
    uint64_t need = 0;
    for (uint32_t u = it->use; u < end; u++) {
        state *st = &s->of[s->uses.at[u].tensor];
        st->pinned = k + 1;
        need += st->resident ? 0 : room(&s->p->tensors.at[s->uses.at[u].tensor]);
    }
    if (!make_room(s, k, need, place)) {
        return false;
    }
    for (uint32_t u = it->use; u < end; u++) {
        uint32_t t = s->uses.at[u].tensor;
        state *st = &s->of[t];
        if (st->away) {
            bring_back(s, t, place);
        }
        if (!st->resident) {
            st->resident = true;
            s->in_use_bytes += room(&s->p->tensors.at[t]);
            vec_push(s->mem, &s->resident, t);
        }
        // What nobody has written yet has a value too, once it is filled.
        st->dirty |= s->uses.at[u].writes || !st->home;
    }
    copy_item(s, it);
    for (uint32_t u = it->use; u < end; u++) {
        uint32_t t = s->uses.at[u].tensor;
        s->of[t].ahead = s->uses.at[u].next;
        if (!s->of[t].ahead) {
            s->of[t].resident = false;
            s->in_use_bytes -= room(&s->p->tensors.at[t]);
        }
    }
    return true;
}

bool spill_sbuf(arena *mem, ir *p, const liveness *lv, uint64_t budget_bytes, spill_count *count)
{
    spiller s = {.mem = mem, .p = p, .count = count, .tensors = p->tensors.n};
    s.of = NEW_N(mem, state, p->tensors.n);
    uint64_t manual = 0;
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        const ir_tensor *ten = &p->tensors.at[t];
        s.of[t].now = t;
        if (ten->buffer == BUF_SBUF && lv->of[t].touched) {
            s.of[t].spillable = ten->role == ROLE_TEMP && !ten->manual;
            manual += ten->manual ? room(ten) : 0;
        }
    }
    s.budget_bytes = budget_bytes > manual ? budget_bytes - manual : 0;
    s.moved = NEW_N(mem, uint32_t, p->instrs.n + 1);
    s.copy = NEW_N(mem, uint32_t, p->views.n);
    s.copy_of = NEW_N(mem, uint32_t, p->views.n);
    list_items(&s);
    spill_count before = *count;
    for (uint32_t k = 0; k < s.items.n; k++) {
        if (!step(&s, k)) {
            *count = before;
            return false;
        }
    }
    for (uint32_t i = 1; i < p->deps.n; i++) {
        if (p->deps.at[i] < p->instrs.n) {
            p->deps.at[i] = s.moved[p->deps.at[i]];
        }
    }
    p->instrs.at = NEW_N(p->mem, ir_instr, s.out.n);
    memcpy(p->instrs.at, s.out.at, s.out.n * sizeof *s.out.at);
    p->instrs.n = p->instrs.cap = s.out.n;
    return true;
}
