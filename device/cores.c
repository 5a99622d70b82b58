#include "device/internal.h"
#include "lang/place.h"

#include <stdlib.h>

// The programs of a launch, and what they do together. An instruction that waits for the other core
// stops its program (EXEC_WAITS, what it waits for in exec.sync); when no program can go on, the
// exchange is made and both go on behind it.

enum { CORES_MAX = 2, SLOT_SENT = 3 };

typedef struct launch {
    exec x[CORES_MAX];
    uint32_t n;
    device_run_opts opts;
    char **shared;  // by shared number - 1
    uint32_t nshared;
    diags *ds;
} launch;

// ---- instructions

static void run_barrier(exec *x, const bound *b, const tile *t)
{
    (void)t;
    x->sync = (sync_point){.b = b, .barrier = true};
    x->status = EXEC_WAITS;
}

bool bind_core_barrier(binder *b)
{
    if (b->p->grid != CORES_MAX) {
        return bind_fail(b, "the program is not one of two");
    }
    return bind_done(b, run_barrier, NULL, true);
}

typedef struct sendrecv_args {
    regnum send_to, recv_from;
    int64_t pipe;
} sendrecv_args;

// The source is packed now: what the other core sends may lie over it.
static void run_sendrecv(exec *x, const bound *b, const tile *t)
{
    const sendrecv_args *a = b->a;
    size_t row = (size_t)t[0].l->n * t[0].size;
    char *sent = exec_slot(x, SLOT_SENT, row * t[0].parts);
    if (!sent) {
        return;
    }
    for (uint32_t r = 0; r < t[0].parts; r++) {
        gather(sent + r * row, t[0].p + (int64_t)r * t[0].ps, t[0].l, 0, t[0].l->n, t[0].size);
    }
    x->sync = (sync_point){.b = b,
                           .send_to = regnum_get(x, a->send_to),
                           .recv_from = regnum_get(x, a->recv_from),
                           .pipe = a->pipe,
                           .sent = sent,
                           .dst = t[1]};
    x->status = EXEC_WAITS;
}

// Operations of several ranks: nothing connects devices, so whoever runs a program looks for them first.
static void run_collective(exec *x, const bound *b, const tile *t)
{
    (void)b;
    (void)t;
    x->status = NKI_ERR_ARG;
}

bool bind_collective(binder *b)
{
    return bind_done(b, run_collective, NULL, true);
}

bool bind_sendrecv(binder *b)
{
    sendrecv_args *a = BIND_ARGS(b, sendrecv_args);
    ir_arg pipe = bind_arg(b, 4);
    a->send_to = bind_reg(b, bind_arg(b, 2));
    a->recv_from = bind_reg(b, bind_arg(b, 3));
    a->pipe = pipe.kind == IRA_INT ? ira_integer(pipe) : 0;
    if (b->p->grid != CORES_MAX) {
        return bind_fail(b, "the program is not one of two");
    }
    if ((a->send_to.is_reg && (uint32_t)a->send_to.v >= b->p->registers) ||
        (a->recv_from.is_reg && (uint32_t)a->recv_from.v >= b->p->registers)) {
        return bind_fail(b, "no such register");
    }
    if (bind_operand(b, 0, false) < 0 || bind_operand(b, 1, true) < 0 || !b->o[0].l || !b->o[1].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    if (b->o[0].dtype != b->o[1].dtype) {
        return bind_fail(b, "src is %s, dst is %s", dtype_name((dtype)b->o[0].dtype),
                         dtype_name((dtype)b->o[1].dtype));
    }
    if (b->o[1].dyn && b->p->dyns.at[b->o[1].dyn].kind == DYN_INDIRECT) {
        return bind_fail(b, "dst is indirect");
    }
    return bind_same_shape(b, 0, 1) && bind_done(b, run_sendrecv, a, false);
}

// ---- what goes wrong between cores

static const ir_instr *instr_at(const exec *x, uint32_t ip)
{
    return &x->dp->p->instrs.at[x->dp->code[ip].instr];
}

static uint32_t place_of(const exec *x)
{
    uint32_t n = x->dp->ncode;
    return n ? instr_at(x, x->ip < n ? x->ip : n - 1)->place : IR_NONE;
}

// What a core does: "waits in core_barrier", "has ended".
static const char *doing(launch *l, const exec *x)
{
    if (x->status == NKI_OK) {
        return "has ended";
    }
    return x->sync.barrier ? "waits in core_barrier"
                           : arena_printf(l->ds->mem, "waits in sendrecv with pipe_id %lld",
                                          (long long)x->sync.pipe);
}

static void note_other(launch *l, diag *d, const exec *other)
{
    uint32_t place = place_of(other);
    loc at = ir_place_loc(other->dp->p, place);
    if (other->status == NKI_OK) {
        diag_note_add(l->ds, d, at, "core %u ended after this", other->dp->p->core);
    } else {
        diag_note_add(l->ds, d, at, "core %u waits here", other->dp->p->core);
    }
    ir_place_notes(other->dp->p, place, l->ds, d);
}

// x waits for what will not happen.
static nki_status mismatch(launch *l, const exec *x, const exec *other)
{
    if (l->ds) {
        uint32_t place = place_of(x);
        diag *d = diag_sync_mismatch(l->ds, ir_place_loc(x->dp->p, place), x->dp->p->core,
                                     doing(l, x), other->dp->p->core, doing(l, other));
        ir_place_notes(x->dp->p, place, l->ds, d);
        note_other(l, d, other);
    }
    return NKI_ERR_DIAG;
}

static nki_status bad_exchange(launch *l, const exec *x, const exec *other, const char *why)
{
    if (l->ds) {
        uint32_t place = place_of(x);
        diag *d = diag_sendrecv_mismatch(l->ds, ir_place_loc(x->dp->p, place), why);
        ir_place_notes(x->dp->p, place, l->ds, d);
        note_other(l, d, other);
    }
    return NKI_ERR_DIAG;
}

// ---- the exchange

static const char *tile_text(launch *l, const tile *t)
{
    return arena_printf(l->ds->mem, "[%u, %llu] %s", t->parts, (unsigned long long)t->l->n,
                        dtype_name((dtype)t->dtype));
}

// Whether core i receives what its sender sends.
static nki_status check_receive(launch *l, uint32_t i)
{
    const exec *x = &l->x[i], *other = &l->x[1 - i];
    const sync_point *s = &x->sync;
    if (s->recv_from < 0 || s->recv_from >= l->n || s->send_to < 0 || s->send_to >= l->n) {
        int64_t bad = s->recv_from < 0 || s->recv_from >= l->n ? s->recv_from : s->send_to;
        return bad_exchange(
            l, x, other,
            l->ds ? arena_printf(l->ds->mem, "%lld is not a core: 0 or 1", (long long)bad) : "");
    }
    const sync_point *from = &l->x[s->recv_from].sync;
    if (from->send_to != i) {
        return bad_exchange(l, x, other,
                            l->ds
                                ? arena_printf(l->ds->mem,
                                               "core %u receives from core %lld, which sends to "
                                               "core %lld",
                                               i, (long long)s->recv_from, (long long)from->send_to)
                                : "");
    }
    // src and dst of one instruction agree, so the sender's dst has the shape of what it sends.
    if (from->dst.parts != s->dst.parts || from->dst.l->n != s->dst.l->n ||
        from->dst.dtype != s->dst.dtype) {
        return bad_exchange(l, x, other,
                            l->ds ? arena_printf(l->ds->mem,
                                                 "core %u receives into %s what core "
                                                 "%lld sends from %s",
                                                 i, tile_text(l, &s->dst), (long long)s->recv_from,
                                                 tile_text(l, &from->dst))
                                  : "");
    }
    return NKI_OK;
}

static void receive(const launch *l, const exec *x)
{
    const tile *d = &x->sync.dst;
    const char *sent = l->x[x->sync.recv_from].sync.sent;
    size_t row = (size_t)d->l->n * d->size;
    for (uint32_t r = 0; r < d->parts; r++) {
        scatter(d->p + (int64_t)r * d->ps, d->l, 0, sent + r * row, d->l->n, d->size);
    }
}

// Every program has stopped, and one of them at least waits.
static nki_status meet(launch *l)
{
    exec *a = &l->x[0], *b = &l->x[1];
    if (a->status != EXEC_WAITS) {
        return mismatch(l, b, a);
    }
    if (b->status != EXEC_WAITS || a->sync.barrier != b->sync.barrier ||
        (!a->sync.barrier && a->sync.pipe != b->sync.pipe)) {
        return mismatch(l, a, b);
    }
    for (uint32_t i = 0; i < l->n && !a->sync.barrier; i++) {
        nki_status st = check_receive(l, i);
        if (st != NKI_OK) {
            return st;
        }
    }
    for (uint32_t i = 0; i < l->n; i++) {
        if (!l->x[i].sync.barrier) {
            receive(l, &l->x[i]);
        }
    }
    if (a->check && a->sync.barrier) {
        check_met(a->check);
    }
    for (uint32_t i = 0; i < l->n; i++) {
        exec *x = &l->x[i];
        x->status = NKI_OK;
        x->ip++;
        if (exec_is_watched(x)) {
            observe_met(x, x->sync.b);
        }
        if (x->status != NKI_OK) {
            return (nki_status)x->status;
        }
    }
    return NKI_OK;
}

static nki_status run_all(launch *l)
{
    for (;;) {
        bool waits = false;
        for (uint32_t i = 0; i < l->n; i++) {
            run_code(&l->x[i]);
            if (l->x[i].status != NKI_OK && l->x[i].status != EXEC_WAITS) {
                return (nki_status)l->x[i].status;
            }
            waits |= l->x[i].status == EXEC_WAITS;
        }
        if (!waits) {
            return NKI_OK;
        }
        nki_status st = meet(l);
        if (st != NKI_OK) {
            return st;
        }
    }
}

static nki_status run_checked(launch *l)
{
    if (!l->opts.check || !l->ds) {
        l->opts.check = false;
        return run_all(l);
    }
    check *c = check_begin(l->x, l->n, l->ds);
    if (!c) {
        return NKI_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        l->x[i].check = c;
    }
    nki_status st = run_all(l);
    check_end(c, st == NKI_OK);
    check_release(c);
    return st;
}

// ---- shared memory

// By shared number - 1: the tensor, the same in every program that has it.
typedef struct shared_tensor {
    const ir_tensor *t;
    bool fill;
    size_t at;
} shared_tensor;

static bool same_tensor(const ir_tensor *a, const ir_tensor *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim && a->size_bytes == b->size_bytes &&
           memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

static void fill_tensor(char *p, const ir_tensor *t)
{
    uint32_t bits = uninit_bits((dtype)t->dtype);
    size_t size = dtype_size((dtype)t->dtype), done = size;
    memcpy(p, &bits, size);
    while (done < t->size_bytes) {
        size_t n = done < t->size_bytes - done ? done : t->size_bytes - done;
        memcpy(p + done, p, n);
        done += n;
    }
}

static nki_status place_shared(launch *l, shared_tensor *st, device_core *owner)
{
    size_t total = 0;
    for (uint32_t i = 0; i < l->nshared; i++) {
        st[i].at = total;
        total += st[i].t ? (st[i].t->size_bytes + 63) & ~(size_t)63 : 0;
    }
    char *base = core_reserve_shared(owner, total);
    for (uint32_t i = 0; base && i < l->nshared; i++) {
        l->shared[i] = base + st[i].at;
        if (st[i].t && st[i].fill) {
            fill_tensor(l->shared[i], st[i].t);
        }
    }
    return base ? NKI_OK : NKI_ERR_NOMEM;
}

static nki_status share(launch *l, device_core *owner)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const device_program *dp = l->x[i].dp;
        for (uint32_t k = 0; k < dp->nshared; k++) {
            uint32_t number = dp->p->tensors.at[dp->shared[k]].shared;
            l->nshared = number > l->nshared ? number : l->nshared;
        }
    }
    if (l->nshared == 0) {
        return NKI_OK;
    }
    shared_tensor *st = calloc(l->nshared, sizeof *st);
    l->shared = calloc(l->nshared, sizeof *l->shared);
    nki_status result = st && l->shared ? NKI_OK : NKI_ERR_NOMEM;
    for (uint32_t i = 0; i < l->n && result == NKI_OK; i++) {
        const device_program *dp = l->x[i].dp;
        for (uint32_t k = 0; k < dp->nshared && result == NKI_OK; k++) {
            const ir_tensor *t = &dp->p->tensors.at[dp->shared[k]];
            shared_tensor *s = &st[t->shared - 1];
            result = s->t && !same_tensor(s->t, t) ? NKI_ERR_ARG : NKI_OK;
            s->t = t;
            s->fill |= t->fill;
        }
    }
    if (result == NKI_OK) {
        result = place_shared(l, st, owner);
    }
    free(st);
    return result;
}

// ---- the launch

// Programs of one launch: of one grid, in rank order, with the same parameters.
static bool fit(device_core *const *cores, const device_program *const *programs, uint32_t n)
{
    const ir *first = programs[0]->p;
    for (uint32_t i = 0; i < n; i++) {
        const ir *p = programs[i]->p;
        if (cores[i]->t->gen != p->target->gen || p->grid != n || p->core != i ||
            p->params.n != first->params.n || p->outputs.n != first->outputs.n ||
            p->fp32_store != first->fp32_store) {
            return false;
        }
        for (uint32_t k = 0; k < p->params.n; k++) {
            const ir_tensor *t = &p->tensors.at[p->params.at[k].tensor];
            if (!same_tensor(t, &first->tensors.at[first->params.at[k].tensor])) {
                return false;
            }
        }
    }
    return true;
}

nki_status launch_bound(device_core *const *cores, const device_program *const *programs,
                        uint32_t n, void *const *params, void *const *outputs,
                        const device_run_opts *opts, diags *ds)
{
    launch l = {.n = n, .ds = ds};
    if (opts) {
        l.opts = *opts;
    }
    for (uint32_t i = 0; i < n; i++) {
        l.x[i] = (exec){.core = cores[i], .dp = programs[i], .opts = &l.opts, .ds = ds};
    }
    nki_status st = share(&l, cores[0]);
    for (uint32_t i = 0; i < n && st == NKI_OK; i++) {
        st = exec_begin(&l.x[i], params, l.shared, outputs) ? NKI_OK : NKI_ERR_NOMEM;
    }
    if (st == NKI_OK) {
        st = run_checked(&l);
    }
    if (st == NKI_OK) {
        copy_outputs(&l.x[0], outputs);
    }
    free(l.shared);
    return st;
}

nki_status device_launch(device_core *const *cores, const device_program *const *programs,
                         uint32_t n, void *const *params, void *const *outputs,
                         const device_run_opts *opts, diags *ds)
{
    if (n < 1 || n > CORES_MAX || !fit(cores, programs, n)) {
        return NKI_ERR_ARG;
    }
    return (programs[0]->host ? launch_widened : launch_bound)(cores, programs, n, params, outputs,
                                                               opts, ds);
}

nki_status device_run(device_core *core, const device_program *dp, void *const *params,
                      void *const *outputs, const device_run_opts *opts, diags *ds)
{
    return device_launch(&core, &dp, 1, params, outputs, opts, ds);
}
