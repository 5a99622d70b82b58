#include "sched/live.h"

#include "sched/cover.h"

// What of an instruction's arguments changes how it treats memory.
typedef struct instr_traits {
    bool may_skip;     // oob_mode.skip: any write may leave bytes as they were
    bool accumulates;  // a matmul that adds to dst, or might
    bool res_idle;     // reduce_cmd idle: reduce_res may stay as it was
} instr_traits;

static instr_traits traits_of(const ir *p, const ir_instr *in)
{
    instr_traits t = {0};
    const isa_param *par = isa_table[in->op].params;
    bool matmul = in->op == ISA_nc_matmul || in->op == ISA_nc_matmul_mx;
    for (uint32_t i = 0; i < in->nargs; i++) {
        ir_arg a = p->args.at[in->args + i];
        if (par[i].type == PT_OOB) {
            t.may_skip = a.kind == IRA_ENUM && a.v == ISAE_oob_mode_skip;
        } else if (par[i].type == PT_REDCMD) {
            t.res_idle = a.kind == IRA_ENUM && a.v == ISAE_reduce_cmd_idle;
        } else if (matmul && par[i].type == PT_TRI) {
            t.accumulates = a.kind != IRA_BOOL || a.v != 0;
        }
    }
    return t;
}

static void add_access(arena *mem, const ir *p, access_list *out, uint32_t view, unsigned kind)
{
    uint32_t dyn = ir_view_at(p, view).dyn;
    if (dyn) {
        kind &= ~(unsigned)ACC_FULL;
        if (p->dyns.at[dyn].kind != DYN_REG) {
            vec_push(mem, out, ((access){p->dyns.at[dyn].src, ACC_READ}));
        }
    }
    vec_push(mem, out, ((access){view, (uint8_t)kind}));
}

static void add_arg(arena *mem, const ir *p, access_list *out, ir_arg a, unsigned kind)
{
    if (a.kind == IRA_VIEW) {
        add_access(mem, p, out, a.v, kind);
    } else if (a.kind == IRA_LIST) {
        for (uint32_t i = 0; i < (uint32_t)a.aux; i++) {
            add_arg(mem, p, out, p->args.at[a.v + i], kind);
        }
    }
}

static unsigned access_of(const isa_param *par, instr_traits t)
{
    switch ((param_type)par->type) {
    case PT_OUT: {
        bool dst = strcmp(par->name, "dst") == 0;
        if (t.accumulates && dst) {
            return ACC_READ | ACC_WRITE;
        }
        bool sure = !t.may_skip && !(t.res_idle && !dst);
        return sure ? ACC_WRITE | ACC_FULL : ACC_WRITE;
    }
    case PT_INOUT: return ACC_READ | ACC_WRITE;
    case PT_TENSORS:
    case PT_ANY:
        // The collectives' lists: dsts, dsts_by_channel.
        return strncmp(par->name, "dst", 3) == 0 ? ACC_WRITE : ACC_READ;
    default: return ACC_READ;
    }
}

void access_collect(arena *mem, const ir *p, const ir_instr *in, access_list *out)
{
    out->n = 0;
    instr_traits t = traits_of(p, in);
    const isa_param *par = isa_table[in->op].params;
    for (int writes = 0; writes < 2; writes++) {
        for (uint32_t i = 0; i < in->nargs; i++) {
            ir_arg a = p->args.at[in->args + i];
            if (a.kind != IRA_VIEW && a.kind != IRA_LIST) {
                continue;
            }
            unsigned kind = access_of(&par[i], t);
            if (((kind & ACC_READ) == 0) == writes) {
                add_arg(mem, p, out, a, kind);
            }
        }
    }
}

static void find_loops(arena *mem, const ir *p, liveness *lv)
{
    lv->loop_of = NEW_N(mem, uint32_t, p->instrs.n);
    vec_push(mem, &lv->loops, ((loop_info){.last = p->instrs.n ? p->instrs.n - 1 : 0}));
    uint32_t in = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *ins = &p->instrs.at[i];
        if (ins->op == ISA_loop_end) {
            loop_info *l = &lv->loops.at[in];
            l->last = i;
            in = l->parent;
            lv->loops.at[in].engines |= l->engines;
        }
        lv->loop_of[i] = in;
        if (ins->op == ISA_loop_for || ins->op == ISA_loop_while) {
            uint8_t depth = (uint8_t)(lv->loops.at[in].depth + 1);
            vec_push(mem, &lv->loops, ((loop_info){i, i, in, depth, 0}));
            in = lv->loops.n - 1;
        } else if (ins->op != ISA_loop_end) {
            lv->loops.at[in].engines |= (uint8_t)(1u << ins->engine);
        }
    }
}

static uint32_t common_loop(const liveness *lv, uint32_t a, uint32_t b)
{
    const loop_info *l = lv->loops.at;
    while (a != b) {
        if (l[a].depth >= l[b].depth) {
            a = l[a].parent;
        } else {
            b = l[b].parent;
        }
    }
    return a;
}

// The child of `base` around loop `in`, or base itself.
static uint32_t loop_below(const liveness *lv, uint32_t in, uint32_t base)
{
    uint32_t at = in;
    while (at != base && lv->loops.at[at].parent != base) {
        at = lv->loops.at[at].parent;
    }
    return at;
}

typedef struct proof_state {
    cover *part;    // NULL: nothing written yet
    uint32_t home;  // innermost loop around all touches
    bool full, broken;
} proof_state;

typedef struct prover {
    arena *mem;
    const ir *p;
    liveness *lv;
    proof_state *of;
    VEC(cover *) spare;
} prover;

static void drop_cover(prover *pv, proof_state *s)
{
    if (s->part) {
        vec_push(pv->mem, &pv->spare, s->part);
        s->part = NULL;
    }
}

static void prove_read(prover *pv, const ir_view *v, proof_state *s)
{
    bool seen = false;
    if (s->part && !v->dyn) {
        region r = region_bound(pv->p, v);
        seen = cover_has(s->part, &r);
        if (!seen && region_exact(pv->p, v, &r)) {
            seen = cover_has(s->part, &r);
        }
    }
    if (!seen) {
        s->broken = true;
        drop_cover(pv, s);
    }
}

static void prove_write(prover *pv, const ir_view *v, proof_state *s)
{
    region r;
    if (!region_exact(pv->p, v, &r)) {
        return;
    }
    if (!s->part) {
        s->part = pv->spare.n ? pv->spare.at[--pv->spare.n] : NEW(pv->mem, cover);
        s->part->n = 0;
    }
    cover_add(s->part, r);
    region whole = region_whole(&pv->p->tensors.at[v->tensor]);
    if (cover_has(s->part, &whole)) {
        s->full = true;
        drop_cover(pv, s);
    }
}

static bool has_lifetime(const ir_tensor *t)
{
    return t->role == ROLE_TEMP || t->role == ROLE_OUT;
}

static void find_touches(prover *pv, access_list *acc)
{
    const ir *p = pv->p;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        access_collect(pv->mem, p, &p->instrs.at[i], acc);
        for (uint32_t k = 0; k < acc->n; k++) {
            uint32_t t = p->views.at[acc->at[k].view].tensor;
            live_range *r = &pv->lv->of[t];
            if (!r->touched) {
                r->touched = true;
                r->touch = r->first = i;
                pv->of[t].home = pv->lv->loop_of[i];
            } else {
                pv->of[t].home = common_loop(pv->lv, pv->of[t].home, pv->lv->loop_of[i]);
            }
            r->last = i;
        }
    }
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        if (p->tensors.at[t].role == ROLE_OUT) {
            pv->of[t].home = 0;  // its reader is the caller
        }
    }
}

static void prove(prover *pv, access_list *acc)
{
    const ir *p = pv->p;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        access_collect(pv->mem, p, &p->instrs.at[i], acc);
        for (uint32_t k = 0; k < acc->n; k++) {
            const ir_view *v = ir_view_ref(p, acc->at[k].view);
            proof_state *s = &pv->of[v->tensor];
            if (s->full || s->broken || !has_lifetime(&p->tensors.at[v->tensor])) {
                continue;
            }
            if (acc->at[k].kind & ACC_READ) {
                prove_read(pv, v, s);
            } else if ((acc->at[k].kind & ACC_FULL) && pv->lv->loop_of[i] == s->home) {
                prove_write(pv, v, s);
            }
        }
    }
}

static void extend(prover *pv, uint32_t t)
{
    liveness *lv = pv->lv;
    live_range *r = &lv->of[t];
    const proof_state *s = &pv->of[t];
    const ir_tensor *ten = &pv->p->tensors.at[t];
    r->home = s->home;
    r->unproven = has_lifetime(ten) && (s->broken || (ten->role == ROLE_OUT && !s->full));
    if (!r->touched) {
        return;
    }
    uint32_t base = r->unproven ? 0 : s->home;
    uint32_t a = loop_below(lv, lv->loop_of[r->first], base);
    uint32_t b = loop_below(lv, lv->loop_of[r->last], base);
    if (a != base) {
        r->first = lv->loops.at[a].first;
    }
    if (b != base) {
        r->last = lv->loops.at[b].last;
    }
}

void live_compute(arena *mem, const ir *p, liveness *lv)
{
    *lv = (liveness){0};
    find_loops(mem, p, lv);
    lv->of = NEW_N(mem, live_range, p->tensors.n);
    prover pv = {.mem = mem, .p = p, .lv = lv, .of = NEW_N(mem, proof_state, p->tensors.n)};
    access_list acc = {0};
    find_touches(&pv, &acc);
    prove(&pv, &acc);
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        extend(&pv, t);
    }
}
