#include "sched/passes.h"

#include "sched/cover.h"

// Makes room in SBUF: where the tensors in use do not fit, the one whose next use is farthest goes
// to a temporary in HBM and comes back, as a new tensor, before that use.
//
// A register loop is one step while what it uses fits. One that does not fit is opened: its body is
// stepped through like a program that has all of SBUF, and a value that comes from outside an
// iteration or leaves it is in HBM whenever an iteration begins or ends. So all iterations, and the
// code around them, agree on where it is, however often the loop runs.

#define NONE UINT32_MAX  // no tensor

// A step of a level: an instruction, or a whole loop.
typedef struct item {
    uint32_t first, end;  // instructions
    uint32_t use;         // its first, in uses; up to that of the next item
} item;

typedef struct use {
    uint32_t tensor, item;
    uint32_t next;  // use of the same tensor, + 1
    bool writes;
    bool anew;  // the item begins by writing all of it: its value before does not matter
} use;

// The program, or the body of an opened loop.
typedef struct level {
    uint32_t loop;  // of liveness
    VEC(item) items;
    VEC(use) uses;
} level;

// A tensor of the program as it came in. Fields of a use and of an item are those of the level that
// is stepped through: an opened loop leaves what it uses away, and sets them for the items after
// it.
typedef struct state {
    uint32_t now;       // the tensor that has its value
    uint32_t home;      // in HBM, + 1; 0: none yet
    uint32_t last;      // use, + 1; while they are listed
    uint32_t ahead;     // next use, + 1
    uint32_t pinned;    // item, + 1
    uint32_t reported;  // its entry in the report, + 1
    bool spillable, resident, dirty;
    bool away;  // its value is at home
    bool lost;  // it has none until it is written anew
} state;

typedef struct spiller {
    arena *mem;
    ir *p;
    const liveness *lv;
    spill_report *report;
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

// Whether its values are those of one iteration of the level's loop.
static bool is_local(const spiller *s, const level *lev, uint32_t tensor)
{
    const live_range *r = &s->lv->of[tensor];
    uint32_t at = r->home;
    while (at && at != lev->loop) {
        at = s->lv->loops.at[at].parent;
    }
    return lev->loop == 0 || (!r->unproven && at == lev->loop);
}

// ---- who uses what, and when

static bool writes_all(const ir *p, const access *acc)
{
    const ir_view *v = ir_view_ref(p, acc->view);
    cover c = {.n = 1};
    if (!(acc->kind & ACC_FULL) || (acc->kind & ACC_READ) || !region_exact(p, v, &c.at[0])) {
        return false;
    }
    region whole = region_whole(&p->tensors.at[v->tensor]);
    return cover_has(&c, &whole);
}

static void list_use(spiller *s, level *lev, const access *acc, bool in_loop)
{
    uint32_t tensor = s->p->views.at[acc->view].tensor, k = lev->items.n - 1;
    state *st = &s->of[tensor];
    bool writes = (acc->kind & ACC_WRITE) != 0;
    if (!st->spillable) {
        return;
    }
    if (st->last && lev->uses.at[st->last - 1].item == k) {
        lev->uses.at[st->last - 1].writes |= writes;
        return;
    }
    // Reads are listed first: a write of what the instruction reads is not its first use.
    bool anew = !in_loop && writes_all(s->p, acc);
    vec_push(s->mem, &lev->uses, ((use){tensor, k, 0, writes, anew}));
    if (st->last) {
        lev->uses.at[st->last - 1].next = lev->uses.n;
    } else {
        st->ahead = lev->uses.n;
    }
    st->last = lev->uses.n;
}

// Instructions [first, end) are the level.
static void list_items(spiller *s, level *lev, uint32_t first, uint32_t end)
{
    const ir *p = s->p;
    access_list acc = {0};
    uint32_t depth = 0;
    for (uint32_t i = first; i < end; i++) {
        const ir_instr *in = &p->instrs.at[i];
        if (depth == 0) {
            vec_push(s->mem, &lev->items, ((item){i, i + 1, lev->uses.n}));
        }
        depth += opens_loop(in);
        depth -= in->op == ISA_loop_end;
        lev->items.at[lev->items.n - 1].end = i + 1;
        access_collect(s->mem, p, in, &acc);
        for (uint32_t k = 0; k < acc.n; k++) {
            list_use(s, lev, &acc.at[k], depth > 0);
        }
    }
}

static uint32_t end_of_uses(const level *lev, uint32_t k)
{
    return k + 1 < lev->items.n ? lev->items.at[k + 1].use : lev->uses.n;
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
}

// A tensor's part of the report.
static spilled *reported(spiller *s, uint32_t tensor)
{
    spill_report *r = s->report;
    state *st = &s->of[tensor];
    if (!st->reported) {
        vec_push(s->mem, &r->tensors, ((spilled){.tensor = tensor}));
        st->reported = r->tensors.n;
    }
    return &r->tensors.at[st->reported - 1];
}

static uint32_t home_of(spiller *s, uint32_t tensor)
{
    ir *p = s->p;
    state *st = &s->of[tensor];
    if (!st->home) {
        ir_tensor h = p->tensors.at[tensor];
        h.buffer = BUF_HBM;
        h.ndim = 2;
        memset(h.shape, 0, sizeof h.shape);
        h.shape[0] = h.partitions;
        h.shape[1] = (uint32_t)(h.size_bytes / dtype_size((dtype)h.dtype));
        h.size_bytes *= h.partitions;
        h.partitions = 0;
        h.fill = 0;
        h.addr_part = 0;
        h.addr_bytes = ADDR_AUTO;
        const char *name = arena_printf(s->mem, "%s" SPILL_SUFFIX, ir_text(p, h.name));
        h.name = ir_str(p, name, strlen(name));
        st->home = ir_tensor_add(p, h) + 1;
    }
    return st->home - 1;
}

static uint64_t all_bytes(const ir_tensor *t)
{
    return t->size_bytes * t->partitions;
}

// To its home in HBM, unless that has its value already or nobody wants it.
static void put_away(spiller *s, const level *lev, uint32_t tensor, uint32_t place)
{
    state *st = &s->of[tensor];
    bool wanted = !(st->ahead && lev->uses.at[st->ahead - 1].anew) || !is_local(s, lev, tensor);
    if (st->dirty && wanted) {
        uint32_t home = home_of(s, tensor);
        move(s, home, st->now, place);
        spilled *r = reported(s, tensor);
        r->stores++;
        r->bytes += all_bytes(&s->p->tensors.at[tensor]);
    }
    st->lost = !wanted;
    st->dirty = st->resident = false;
    st->away = wanted;
    s->in_use_bytes -= room(&s->p->tensors.at[tensor]);
}

static void bring_back(spiller *s, uint32_t tensor, bool anew, uint32_t place)
{
    state *st = &s->of[tensor];
    ir_tensor t = s->p->tensors.at[tensor];
    st->now = ir_tensor_add(s->p, t);
    if (st->away && !anew) {
        move(s, st->now, st->home - 1, place);
        spilled *r = reported(s, tensor);
        r->loads++;
        r->bytes += all_bytes(&s->p->tensors.at[tensor]);
    }
    st->away = st->lost = false;
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

static void copy_instr(spiller *s, uint32_t i)
{
    ir *p = s->p;
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

// ---- the sweep

// Room for `need` more bytes. false: what this item uses alone does not fit.
static bool make_room(spiller *s, const level *lev, uint32_t k, uint64_t need, uint32_t place)
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
            uint32_t next = lev->uses.at[st->ahead - 1].item;
            if (st->pinned != k + 1 && (best == NONE || next > far)) {
                best = t;
                far = next;
            }
        }
        s->resident.n = kept;
        if (best == NONE) {
            return false;
        }
        put_away(s, lev, best, place);
    }
    return true;
}

static bool sweep(spiller *s, level *lev);

// Item k is a loop that uses more than there is room for.
static bool open_loop(spiller *s, level *lev, uint32_t k)
{
    const item it = lev->items.at[k];
    uint32_t place = s->p->instrs.at[it.first].place;
    for (uint32_t i = 0; i < s->resident.n; i++) {
        if (s->of[s->resident.at[i]].resident) {
            put_away(s, lev, s->resident.at[i], place);
        }
    }
    s->resident.n = 0;
    level body = {.loop = s->lv->loop_of[it.first + 1]};
    for (uint32_t u = it.use; u < end_of_uses(lev, k); u++) {
        uint32_t t = lev->uses.at[u].tensor;
        state *st = &s->of[t];
        if (!is_local(s, &body, t)) {
            home_of(s, t);
            st->away = true;
            st->lost = false;
        }
        st->last = st->ahead = st->pinned = 0;
    }
    list_items(s, &body, it.first + 1, it.end - 1);
    copy_instr(s, it.first);
    if (!sweep(s, &body)) {
        return false;
    }
    copy_instr(s, it.end - 1);
    return true;
}

// Whether item k has room for all that it uses.
static bool gather(spiller *s, const level *lev, uint32_t k)
{
    uint64_t need = 0, all = 0;
    uint32_t place = s->p->instrs.at[lev->items.at[k].first].place;
    for (uint32_t u = lev->items.at[k].use; u < end_of_uses(lev, k); u++) {
        uint32_t t = lev->uses.at[u].tensor;
        s->of[t].pinned = k + 1;
        need += s->of[t].resident ? 0 : room(&s->p->tensors.at[t]);
        all += room(&s->p->tensors.at[t]);
    }
    if (all <= s->budget_bytes) {
        return make_room(s, lev, k, need, place);
    }
    s->report->needs_bytes = all;
    s->report->needs_instr = lev->items.at[k].first;
    return false;
}

static void settle(spiller *s, const level *lev, uint32_t k)
{
    uint32_t place = s->p->instrs.at[lev->items.at[k].end - 1].place;
    for (uint32_t u = lev->items.at[k].use; u < end_of_uses(lev, k); u++) {
        uint32_t t = lev->uses.at[u].tensor;
        state *st = &s->of[t];
        st->ahead = lev->uses.at[u].next;
        if (st->ahead || !st->resident) {
            continue;
        }
        if (!is_local(s, lev, t)) {
            put_away(s, lev, t, place);  // for the next iteration, or for after the loop
            continue;
        }
        st->resident = false;
        s->in_use_bytes -= room(&s->p->tensors.at[t]);
    }
}

static bool step(spiller *s, level *lev, uint32_t k)
{
    const item it = lev->items.at[k];
    uint32_t place = s->p->instrs.at[it.first].place;
    if (!gather(s, lev, k)) {
        if (it.end == it.first + 1 || !open_loop(s, lev, k)) {
            return false;
        }
        settle(s, lev, k);
        return true;
    }
    for (uint32_t u = it.use; u < end_of_uses(lev, k); u++) {
        uint32_t t = lev->uses.at[u].tensor;
        state *st = &s->of[t];
        if (st->away || st->lost) {
            bring_back(s, t, lev->uses.at[u].anew, place);
        }
        if (!st->resident) {
            st->resident = true;
            s->in_use_bytes += room(&s->p->tensors.at[t]);
            vec_push(s->mem, &s->resident, t);
        }
        // What nobody has written yet has a value too, once it is filled.
        st->dirty |= lev->uses.at[u].writes || !st->home;
    }
    for (uint32_t i = it.first; i < it.end; i++) {
        copy_instr(s, i);
    }
    settle(s, lev, k);
    return true;
}

static bool sweep(spiller *s, level *lev)
{
    for (uint32_t k = 0; k < lev->items.n; k++) {
        if (!step(s, lev, k)) {
            return false;
        }
    }
    return true;
}

bool spill_sbuf(arena *mem, ir *p, const liveness *lv, uint64_t budget_bytes, spill_report *report)
{
    uint32_t reported = report->tensors.n;
    spiller s = {.mem = mem, .p = p, .lv = lv, .report = report, .tensors = p->tensors.n};
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
    level all = {0};
    list_items(&s, &all, 0, p->instrs.n);
    if (!sweep(&s, &all)) {
        report->tensors.n = reported;
        return false;
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
