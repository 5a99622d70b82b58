#include "sched/issue.h"

issue_order issue_program(arena *mem, const ir *p)
{
    uint32_t *instr = NEW_N(mem, uint32_t, p->instrs.n), *rank = NEW_N(mem, uint32_t, p->instrs.n);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        instr[i] = i;
        rank[i] = i + 1;
    }
    return (issue_order){instr, rank};
}

void schedule_streams(arena *mem, program *pr, const sched_opts *opts)
{
    stream_plan sp;
    (void)opts;
    pr->slots.n = pr->syncs.n = pr->semaphores.n = pr->dmas.n = 0;
    pr->pairs_exact = pr->pairs_conservative = 0;
    stream_plan_make(mem, pr, &sp);
    synchronise(mem, pr, &sp, issue_program(mem, pr->ir));
}
