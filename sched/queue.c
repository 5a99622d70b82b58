#include "sched/passes.h"

static bool opens_loop(const ir_instr *in)
{
    return in->op == ISA_loop_for || in->op == ISA_loop_while;
}

// E_* of what runs in each loop, at the instructions that open and close it; 0 elsewhere.
static uint8_t *loop_engines(arena *mem, const ir *p)
{
    uint8_t *of = NEW_N(mem, uint8_t, p->instrs.n);
    uint32_t open[IR_MAX_LOOPS + 1], depth = 0;
    uint8_t mask[IR_MAX_LOOPS + 1] = {0};
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *in = &p->instrs.at[i];
        if (opens_loop(in)) {
            open[++depth] = i;
            mask[depth] = (uint8_t)(1u << in->engine);
        } else if (in->op == ISA_loop_end) {
            of[i] = of[open[depth]] = mask[depth];
            depth--;
            mask[depth] |= of[i];
        } else {
            mask[depth] |= (uint8_t)(1u << in->engine);
        }
    }
    return of;
}

void fill_queues(arena *mem, program *pr)
{
    const ir *p = pr->ir;
    const uint8_t *loop = loop_engines(mem, p);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        unsigned engines = loop[i] ? loop[i] : 1u << p->instrs.at[i].engine;
        for (unsigned e = 0; e < ENG_COUNT; e++) {
            if (engines >> e & 1) {
                vec_push(mem, &pr->queue[e], i);
            }
        }
    }
}
