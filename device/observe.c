#include "device/internal.h"

// The run with an observer or the run-time checks: each instruction is shown before and after it is
// carried out.

static device_event event_of(exec *x, const bound *b, const tile *t)
{
    return (device_event){.program = x->dp->p,
                          .core = x->dp->p->core,
                          .instr = b->instr,
                          .regs = x->regs,
                          .operands = b->nops,
                          .x = x,
                          .b = b,
                          .t = t};
}

typedef bool (*observe_fn)(void *ctx, const device_event *e);

static bool show(exec *x, bool after, const bound *b, const tile *t)
{
    const device_observer *ob = x->opts->observer;
    observe_fn fn = !ob ? NULL : after ? ob->after : ob->before;
    if (x->check) {
        (after ? check_after : check_before)(x->check, x, b, t);
    }
    if (fn) {
        device_event e = event_of(x, b, t);
        if (!fn(ob->ctx, &e) && x->status == NKI_OK) {
            x->status = NKI_ERR_CANCELLED;
        }
    }
    return x->status == NKI_OK;
}

// t NULL: it has no operands.
static void show_failure(exec *x, const bound *b, const tile *t)
{
    const device_observer *ob = x->opts->observer;
    if (!ob || !ob->failed || x->status == NKI_OK || x->status == EXEC_WAITS) {
        return;
    }
    const char *why = "";
    for (const diag *d = x->ds ? x->ds->first : NULL; d; d = d->next) {
        why = d->text;
    }
    device_event e = event_of(x, b, t);
    e.operands = t ? e.operands : 0;
    ob->failed(ob->ctx, &e, why);
}

void run_observed(exec *x)
{
    tile t[MAX_OPNDS];
    for (; x->ip < x->dp->ncode; x->ip++) {
        const bound *b = &x->code[x->ip];
        if (exec_interrupted(x)) {
            return;
        }
        if (!exec_operands(x, b, t)) {
            show_failure(x, b, NULL);
            return;
        }
        if (!show(x, false, b, t)) {
            return;
        }
        b->fn(x, b, t);
        if (x->status != NKI_OK) {
            show_failure(x, b, t);
            return;
        }
        if (!show(x, true, b, t)) {
            return;
        }
    }
}

void observe_met(exec *x, const bound *b)
{
    tile t[MAX_OPNDS];
    if (exec_operands(x, b, t)) {
        show(x, true, b, t);
    }
}

// ---- what an observer may ask

device_operand device_operand_at(const device_event *e, uint32_t operand)
{
    const opnd *o = operand < e->b->nops ? &e->b->o[operand] : NULL;
    if (!o || !o->l) {
        return (device_operand){0};
    }
    return (device_operand){.param = o->param,
                            .view = o->view,
                            .written = e->b->outs >> operand & 1,
                            .dtype = (dtype)o->dtype,
                            .rows = o->l->parts,
                            .row_elems = o->l->n};
}

// Bytes from the start of a row to element i of the pattern.
static int64_t element_offset(const layout *l, uint64_t i)
{
    int64_t at = 0;
    for (uint32_t d = l->ndim; d-- > 0;) {
        at += (int64_t)(i % l->dim[d].count) * l->dim[d].stride;
        i /= l->dim[d].count;
    }
    return at;
}

const void *device_element(const device_event *e, uint32_t operand, uint32_t row, uint64_t elem)
{
    const opnd *o = operand < e->b->nops ? &e->b->o[operand] : NULL;
    if (!o || !o->l || row >= o->l->parts || elem >= o->l->n) {
        return NULL;
    }
    if (o->dyn && e->program->dyns.at[o->dyn].kind == DYN_INDIRECT) {
        return indirect_element(e->x, e->b, o, &e->t[operand], row, elem);
    }
    const char *p = dma_row_at(e->x, e->b, o, &e->t[operand], row, true);
    return p ? p + element_offset(o->l, elem) : NULL;
}

const void *device_tensor_byte(const device_event *e, uint32_t tensor, uint32_t partition,
                               uint64_t at)
{
    const device_program *dp = e->x->dp;
    const device_core *c = e->x->core;
    if (tensor >= e->program->tensors.n) {
        return NULL;
    }
    const ir_tensor *t = &e->program->tensors.at[tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    if (at >= t->size_bytes || partition >= (chip ? t->partitions : 1u)) {
        return NULL;
    }
    if (chip) {
        bool psum = t->buffer == BUF_PSUM;
        int64_t stride = (psum ? core_psum_stride : core_sbuf_stride)(e->program->target);
        return e->x->base[psum ? BASE_PSUM : BASE_SBUF] + (t->addr_part + partition) * stride +
               t->addr_bytes + at;
    }
    if (t->role == ROLE_ARG) {
        return e->x->base[BASE_PARAM0 + t->param] + at;
    }
    for (uint32_t i = 0; t->shared && i < dp->nshared; i++) {
        if (dp->shared[i] == tensor) {
            return e->x->base[BASE_PARAM0 + e->program->params.n + i] + at;
        }
    }
    return dp->direct[tensor] ? e->x->base[dp->direct[tensor]] + at : c->hbm + t->addr_bytes + at;
}
