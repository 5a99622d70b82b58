#include "device/internal.h"

#include <string.h>

// host_call: tensors in HBM to a function of the host. Rows that are not adjacent are packed first
// and put back.

enum { FIRST_OPERAND = 2, SLOT_HOST = 0 };

static bool packed(const tile *t)
{
    return t->l->contig && (t->parts == 1 || t->ps == (int64_t)(t->l->n * t->size));
}

static size_t tile_bytes(const tile *t)
{
    return (size_t)t->l->n * t->size * t->parts;
}

static void pack(char *to, const tile *t, bool back)
{
    size_t row = (size_t)t->l->n * t->size;
    for (uint32_t r = 0; r < t->parts; r++) {
        char *p = t->p + (int64_t)r * t->ps;
        if (back) {
            scatter(p, t->l, 0, to + r * row, t->l->n, t->size);
        } else {
            gather(to + r * row, p, t->l, 0, t->l->n, t->size);
        }
    }
}

static void run_host_call(exec *x, const bound *b, const tile *t)
{
    void *data[DEVICE_HOST_OPERANDS] = {NULL};
    size_t need = 0;
    for (uint32_t k = 0; k < b->nops; k++) {
        need += t[k].p && !packed(&t[k]) ? (tile_bytes(&t[k]) + 63) & ~(size_t)63 : 0;
    }
    char *at = need ? exec_slot(x, SLOT_HOST, need) : NULL;
    if (need && !at) {
        return;
    }
    for (uint32_t k = 0; k < b->nops; k++) {
        data[k] = t[k].p;
        if (t[k].p && !packed(&t[k])) {
            pack(at, &t[k], false);
            data[k] = at;
            at += (tile_bytes(&t[k]) + 63) & ~(size_t)63;
        }
    }
    const device_run_opts *o = x->opts;
    if (!o->host || !o->host(o->host_ctx, x->dp->p->core, b->instr, data)) {
        x->status = NKI_ERR_HOST;
        return;
    }
    for (uint32_t k = 0; k < b->nops; k++) {
        if (data[k] != t[k].p && b->outs >> k & 1) {
            pack(data[k], &t[k], true);
        }
    }
}

bool bind_host_call(binder *b)
{
    for (uint32_t k = 0; k < 2; k++) {
        ir_arg s = bind_arg(b, k);
        if (s.kind != IRA_STR || s.v >= b->p->strs.n) {
            return bind_fail(b, "%s is not a text", b->info->params[k].name);
        }
    }
    for (uint32_t k = 0; k < DEVICE_HOST_OPERANDS; k++) {
        int o = bind_operand(b, FIRST_OPERAND + k, k >= DEVICE_HOST_OPERANDS / 2);
        if (o < 0) {
            return false;
        }
        if (b->dp->host && b->o[o].l &&
            dtype_is_low_precision((dtype)ir_view_at(b->dp->host, b->o[o].view).dtype)) {
            return bind_fail(b, "%s would be fp32 with --precise-fp=off",
                             b->info->params[FIRST_OPERAND + k].name);
        }
    }
    return bind_done(b, run_host_call, NULL, true);
}
