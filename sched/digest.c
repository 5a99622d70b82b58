#include "sched/digest.h"

#include "sched/stream.h"

static instr_cost brief(const cost *c)
{
    return (instr_cost){c->issue_ps, c->latency_ps, c->work_ps,
                        c->kind,     c->unit,       (uint8_t)__builtin_popcount(c->engines)};
}

// Whether the kernel says who makes the descriptors, or who starts the transfer.
static bool asks(const ir *p, const ir_instr *in)
{
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        unsigned type = isa_table[in->op].params[k].type;
        if (a.kind == IRA_ENUM && ((type == PT_DGE && a.v != ISAE_dge_mode_unknown) ||
                                   (type == PT_ENGINE && a.v != ISAE_engine_unknown))) {
            return true;
        }
    }
    return false;
}

static bool is_movable(const ir *p, const dma_planned *d)
{
    return p->target->gen >= 3 && d->info.dge == ISAE_dge_mode_swdge && !d->dst.indexed &&
           !d->src.indexed && (!d->src.any || d->dst.dtype == d->src.dtype) &&
           !asks(p, &p->instrs.at[d->info.instr]);
}

void digest_make(arena *mem, program *pr, digest *d)
{
    const ir *p = pr->ir;
    uint32_t moves = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        moves += p->instrs.at[i].engine == ENG_DMA;
    }
    pr->dmas.n = 0;
    vec_reserve(p->mem, &pr->dmas, moves);
    *d = (digest){.time = NEW_N(mem, instr_cost, p->instrs.n), .movable = NEW_N(mem, bool, moves)};
    access_table_make(mem, p, &d->acc);
    coster_init(&d->cost, p, machine_of(p->target));
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        cost c;
        dma_planned plan;
        bool transfer = p->instrs.at[i].engine == ENG_DMA;
        if (transfer) {
            dma_plan(p, i, &plan);
            d->movable[pr->dmas.n] = is_movable(p, &plan);
            vec_push(p->mem, &pr->dmas, plan.info);
        }
        cost_of_planned(&d->cost, i, transfer ? &plan : NULL, &c);
        d->time[i] = brief(&c);
    }
    coster_take_dmas(&d->cost, pr);
}

static void refresh(digest *d, uint32_t i)
{
    cost c;
    cost_of(&d->cost, i, &c);
    d->time[i] = brief(&c);
}

void choose_engines(ir *p, digest *d)
{
    enum { DST, ENGINE = 2 };  // of memset
    for (uint32_t i = 0; p->target->gen >= 3 && i < p->instrs.n; i++) {
        ir_instr *in = &p->instrs.at[i];
        const ir_arg *a = &p->args.at[in->args];
        if (in->op == ISA_memset && in->nargs > ENGINE && a[ENGINE].v == ISAE_engine_unknown &&
            p->tensors.at[p->views.at[a[DST].v].tensor].buffer == BUF_PSUM) {
            in->engine = ENG_GPSIMD;
            refresh(d, i);
        }
    }
}

// Busy time of each engine; of GpSimd without what it does for transfers in *computing.
static void sum_busy(const ir *p, const digest *d, int64_t busy[ENG_COUNT], int64_t *computing)
{
    *computing = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const instr_cost *t = &d->time[i];
        bool started = t->kind == CK_DMA && t->unit == DU_GPSIMD;
        unsigned e = started ? ENG_GPSIMD : p->instrs.at[i].engine;
        busy[e] += t->kind == CK_DMA && !started ? 0 : t->issue_ps;
        *computing += !started && e == ENG_GPSIMD ? t->issue_ps : 0;
    }
}

void choose_generators(program *pr, digest *d, bool times)
{
    int64_t busy[ENG_COUNT] = {0}, computing;
    if (pr->ir->target->gen < 3) {
        return;
    }
    sum_busy(pr->ir, d, busy, &computing);
    for (unsigned e = 0; e < ENG_COUNT; e++) {
        if (!computing || busy[e] > busy[ENG_GPSIMD]) {
            return;
        }
    }
    for (uint32_t k = 0; k < pr->dmas.n; k++) {
        dma_info *of = &pr->dmas.at[k];
        if (d->movable[k]) {
            of->dge = ISAE_dge_mode_hwdge;
            of->trigger = of->ring == RING_STORE ? ENG_SCALAR : ENG_SYNC;
            if (times) {
                refresh(d, of->instr);
            }
        }
    }
}
