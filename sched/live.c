#include "sched/live.h"

#include "sched/cover.h"

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
    const access_table *acc;
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

static void find_touches(prover *pv)
{
    const ir *p = pv->p;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (uint32_t k = pv->acc->first[i]; k < pv->acc->first[i + 1]; k++) {
            uint32_t t = p->views.at[pv->acc->all.at[k].view].tensor;
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

static void prove(prover *pv)
{
    const ir *p = pv->p;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (uint32_t k = pv->acc->first[i]; k < pv->acc->first[i + 1]; k++) {
            access a = pv->acc->all.at[k];
            uint32_t t = p->views.at[a.view].tensor;
            proof_state *s = &pv->of[t];
            if (s->full || s->broken || !has_lifetime(&p->tensors.at[t])) {
                continue;
            }
            if (a.kind & ACC_READ) {
                prove_read(pv, ir_view_ref(p, a.view), s);
            } else if ((a.kind & ACC_FULL) && pv->lv->loop_of[i] == s->home) {
                prove_write(pv, ir_view_ref(p, a.view), s);
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

void live_compute(arena *mem, const ir *p, const access_table *acc, liveness *lv)
{
    *lv = (liveness){0};
    find_loops(mem, p, lv);
    lv->of = NEW_N(mem, live_range, p->tensors.n);
    prover pv = {.mem = mem, .p = p, .acc = acc, .lv = lv};
    pv.of = NEW_N(mem, proof_state, p->tensors.n);
    find_touches(&pv);
    prove(&pv);
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        extend(&pv, t);
    }
}
