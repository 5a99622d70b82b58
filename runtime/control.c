#include "runtime/control.h"

#include "sched/clock.h"

#include <stdlib.h>

typedef struct core_record {
    const ir *p;
    control_trace trace;
    size_t cap;
    uint32_t *first;  // of each loop_end: its loop's first instruction
    uint64_t *trips;  // of each loop's first instruction, since it was entered last: + 1; 0: never
} core_record;

struct control_record {
    core_record core[COMPILE_CORES_MAX];
    control_trace traces[COMPILE_CORES_MAX];
    uint32_t n;
    device_observer observer;
    bool full;  // out of memory
};

bool control_varies(const nki_kernel *k)
{
    bool any = false;
    for (uint32_t i = 0; i < k->core_count; i++) {
        any |= clock_needs_trace(k->core[i].pr->ir);
    }
    return any;
}

// ---- the record

static void add(control_record *c, core_record *r, control_entry e)
{
    if (r->trace.n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 64;
        control_entry *at = realloc(r->trace.at, cap * sizeof *at);
        if (!at) {
            c->full = true;
            return;
        }
        r->trace.at = at;
        r->cap = cap;
    }
    r->trace.at[r->trace.n++] = e;
}

static void end_entry(control_record *c, core_record *r, uint32_t loop)
{
    if (r->trips[loop]) {
        add(c, r, (control_entry){loop, 0, r->trips[loop] - 1});
    }
    r->trips[loop] = 0;
}

static bool may_skip(const ir *p, const ir_instr *in)
{
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (isa_table[in->op].params[k].type == PT_OOB && a.kind == IRA_ENUM) {
            return a.v == ISAE_oob_mode_skip;
        }
    }
    return false;
}

static void add_rows(control_record *c, core_record *r, const device_event *e)
{
    uint32_t rows = 0, moved = 0;
    for (uint32_t o = 0; o < e->operands; o++) {
        uint32_t n = device_operand_at(e, o).rows;
        rows = n > rows ? n : rows;
    }
    for (uint32_t i = 0; i < rows; i++) {
        bool all = true;
        for (uint32_t o = 0; o < e->operands && all; o++) {
            all = i >= device_operand_at(e, o).rows || device_element(e, o, i, 0) != NULL;
        }
        moved += all;
    }
    add(c, r, (control_entry){e->instr, rows, moved});
}

static bool before(void *ctx, const device_event *e)
{
    control_record *c = ctx;
    core_record *r = &c->core[e->core];
    const ir_instr *in = &r->p->instrs.at[e->instr];
    switch (in->op) {
    case ISA_loop_for:
    case ISA_loop_while:
        end_entry(c, r, e->instr);
        r->trips[e->instr] = 1;
        break;
    case ISA_loop_end: r->trips[r->first[e->instr]]++; break;
    default:
        if (in->engine == ENG_DMA && may_skip(r->p, in)) {
            add_rows(c, r, e);
        }
    }
    return !c->full;
}

static bool prepare(core_record *r, const ir *p)
{
    uint32_t open[IR_MAX_LOOPS + 1] = {0}, depth = 0;
    r->p = p;
    r->first = calloc(p->instrs.n + 1, sizeof *r->first);
    r->trips = calloc(p->instrs.n + 1, sizeof *r->trips);
    for (uint32_t i = 0; r->first && r->trips && i < p->instrs.n; i++) {
        uint16_t op = p->instrs.at[i].op;
        if (op == ISA_loop_end) {
            r->first[i] = open[depth--];
        } else if (op == ISA_loop_for || op == ISA_loop_while) {
            open[++depth] = i;
        }
    }
    return r->first && r->trips;
}

void control_release(control_record *c)
{
    for (uint32_t i = 0; c && i < c->n; i++) {
        free(c->core[i].trace.at);
        free(c->core[i].first);
        free(c->core[i].trips);
    }
    free(c);
}

const device_observer *control_observer(control_record *c)
{
    return &c->observer;
}

const control_trace *control_traces(const control_record *c)
{
    return c->traces;
}

nki_status control_run(nki_kernel *k, const nki_arg *args, size_t n, nki_diags *ds,
                       control_record **out)
{
    control_record *c = calloc(1, sizeof *c);
    *out = NULL;
    nki_status st = c ? NKI_OK : NKI_ERR_NOMEM;
    for (uint32_t i = 0; st == NKI_OK && i < k->core_count; i++) {
        c->n = i + 1;
        st = prepare(&c->core[i], k->core[i].pr->ir) ? NKI_OK : NKI_ERR_NOMEM;
    }
    if (st == NKI_OK) {
        c->observer = (device_observer){.before = before, .ctx = c};
        st = call_observed(k, args, n, c, ds);
    }
    if (st != NKI_OK || c->full) {
        bool full = st == NKI_ERR_NOMEM || (c && c->full);
        control_release(c);
        return full ? context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory while recording a run")
                    : st;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        core_record *r = &c->core[i];
        for (uint32_t at = 0; at < r->p->instrs.n; at++) {
            end_entry(c, r, at);
        }
        c->traces[i] = r->trace;
    }
    *out = c;
    return NKI_OK;
}
