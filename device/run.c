#include "device/internal.h"
#include "lang/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// ---- dynamic operands

int64_t tile_int(const exec *x, const tile *t, uint64_t i)
{
    uint32_t raw = 0;
    gather(&raw, t->p + (int64_t)(i / t->l->n) * t->ps, t->l, i % t->l->n, 1, t->size);
    switch (t->dtype) {
    case DT_int8: return (int8_t)raw;
    case DT_int16: return (int16_t)raw;
    case DT_int32: return (int32_t)raw;
    case DT_uint8:
    case DT_uint16:
    case DT_uint32:
    case DT_bool_: return raw;
    default: break;
    }
    float f = 0;
    if (x->k->load[t->dtype]) {
        x->k->load[t->dtype](&f, &raw, 1);
    }
    int32_t v;
    x->k->store[DT_int32](&v, &f, 1);
    return v;
}

static const char *shape_text(char *buf, size_t cap, const ir_tensor *t)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t d = 0; d < t->ndim && d < IR_MAX_DIMS && at + 16 < cap; d++) {
        at += (size_t)snprintf(buf + at, cap - at, "%s%u", d ? ", " : "[", t->shape[d]);
    }
    snprintf(buf + at, cap - at, "%s", at ? "]" : "[]");
    return buf;
}

void exec_oob(exec *x, const bound *b, const opnd *o, const char *what, int64_t found, int64_t lo,
              int64_t hi)
{
    const ir *p = x->dp->p;
    const ir_instr *in = &p->instrs.at[b->instr];
    const ir_tensor *t = &p->tensors.at[p->views.at[o->view].tensor];
    char shape[128];
    if (x->status != NKI_OK) {
        return;
    }
    x->status = NKI_ERR_DIAG;
    if (x->ds) {
        diag *d = diag_oob_access(x->ds, ir_place_loc(p, in->place), isa_table[in->op].name, what,
                                  isa_table[in->op].params[o->param].name, (long long)found,
                                  (long long)lo, (long long)hi, ir_text(p, t->name),
                                  shape_text(shape, sizeof shape, t));
        ir_place_notes(p, in->place, x->ds, d);
    }
}

bool exec_dyn_value(exec *x, const bound *b, const opnd *o, int64_t *v)
{
    (void)b;
    const ir_dyn *d = &x->dp->p->dyns.at[o->dyn];
    if (d->kind == DYN_REG) {
        *v = x->regs[d->src];
        return true;
    }
    const opnd *ix = &x->dp->index[o->index];
    tile t = exec_tile(x, ix);
    *v = tile_int(x, &t, 0);
    return true;
}

static int64_t div_floor(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

// The values v for which lo <= start + v * step and end + v * step <= limit. step != 0
static void allowed_range(int64_t start, int64_t end, int64_t limit, int64_t step, int64_t *lo,
                          int64_t *hi)
{
    if (step > 0) {
        *lo = -div_floor(start, step);
        *hi = div_floor(limit - end, step);
    } else {
        *lo = -div_floor(limit - end, -step);
        *hi = div_floor(start, -step);
    }
}

bool exec_resolve(exec *x, const bound *b, const opnd *o, tile *t)
{
    const ir *p = x->dp->p;
    const ir_dyn *d = &p->dyns.at[o->dyn];
    int64_t v = 0;
    *t = exec_tile(x, o);
    if (d->kind == DYN_INDIRECT || d->kind == DYN_VECTOR || o->late) {
        return true;
    }
    if (!exec_dyn_value(x, b, o, &v)) {
        return false;
    }
    const ir_view *w = ir_view_ref(p, o->view);
    const ir_tensor *tn = &p->tensors.at[w->tensor];
    bool chip = buffer_on_chip((buffer_kind)tn->buffer);
    int64_t off = w->offset * o->size, lo = off + o->l->lo, hi = off + o->l->hi;
    int64_t plo = w->part, phi = w->part + (int64_t)(o->l->parts - 1) * o->l->step0;
    if (!chip) {
        int64_t reach = (int64_t)(o->l->parts - 1) * o->l->step0;
        *(reach < 0 ? &lo : &hi) += reach;
        plo = phi = 0;
    }
    int64_t move;
    bool part = chip && d->partition;
    bool bad = __builtin_mul_overflow(v, part ? d->step : d->step * o->size, &move);
    if (part) {
        bad = bad || plo + move < 0 || phi + move >= tn->partitions || lo < 0 ||
              hi > (int64_t)tn->size_bytes || move > PARTS || move < -PARTS;
    } else {
        bad = bad || move > INT64_MAX / 4 || move < -(INT64_MAX / 4) || lo + move < 0 ||
              hi + move > (int64_t)tn->size_bytes || (chip && (phi >= tn->partitions));
    }
    if (bad) {
        int64_t a = 0, z = -1;
        if (d->step && part) {
            allowed_range(plo, phi, (int64_t)tn->partitions - 1, d->step, &a, &z);
        } else if (d->step) {
            allowed_range(lo, hi, (int64_t)tn->size_bytes, d->step * o->size, &a, &z);
        }
        exec_oob(x, b, o, "dynamic offset", v, a, z);
        return false;
    }
    t->p +=
        part ? move * (tn->buffer == BUF_PSUM ? core_psum_stride(p->target) : core_sbuf_stride(p->target)) : move;
    return true;
}

// ---- control

static void run_loop_for(exec *x, const bound *b, const tile *t)
{
    (void)t;
    const loop_info *l = b->a;
    loop_state *s = &x->core->loops[l->slot];
    s->next = regnum_get(x, l->lower);
    s->upper = regnum_get(x, l->upper);
    s->trips = 0;
    if (s->next >= s->upper) {
        x->ip = l->end;
        return;
    }
    x->regs[l->reg] = (int32_t)s->next;
}

static void run_loop_while(exec *x, const bound *b, const tile *t)
{
    (void)t;
    const loop_info *l = b->a;
    x->core->loops[l->slot].trips = 0;
    if (regnum_get(x, l->lower) == 0) {
        x->ip = l->end;
    }
}

static void run_loop_end(exec *x, const bound *b, const tile *t)
{
    (void)t;
    const loop_info *l = b->a;
    loop_state *s = &x->core->loops[l->slot];
    if (l->is_while) {
        if (regnum_get(x, l->lower) == 0) {
            return;
        }
    } else {
        s->next += l->step;
        if (s->next >= s->upper) {
            return;
        }
        x->regs[l->reg] = (int32_t)s->next;
    }
    uint64_t limit = x->opts->max_loop_trips ? x->opts->max_loop_trips : 1000000000;
    if (++s->trips >= limit) {
        const ir *p = x->dp->p;
        const ir_instr *in = &p->instrs.at[x->dp->code[l->begin].instr];
        x->status = NKI_ERR_DIAG;
        if (x->ds) {
            diag *d =
                diag_loop_too_long(x->ds, ir_place_loc(p, in->place), (unsigned long long)limit);
            ir_place_notes(p, in->place, x->ds, d);
        }
        return;
    }
    x->ip = l->begin;
}

static bool check_reg(binder *b, regnum r)
{
    return r.is_reg && (uint32_t)r.v >= b->p->registers ? bind_fail(b, "no such register") : true;
}

bool bind_loop_for(binder *b)
{
    loop_info *l = BIND_ARGS(b, loop_info);
    ir_arg step = bind_arg(b, 3), counter = bind_arg(b, 0);
    l->reg = counter.v;
    l->lower = bind_reg(b, bind_arg(b, 1));
    l->upper = bind_reg(b, bind_arg(b, 2));
    l->step = ira_integer(step);
    if (counter.kind != IRA_REG || counter.v >= b->p->registers || step.kind != IRA_INT ||
        l->step <= 0) {
        return bind_fail(b, "malformed loop");
    }
    return check_reg(b, l->lower) && check_reg(b, l->upper) && bind_done(b, run_loop_for, l, true);
}

bool bind_loop_while(binder *b)
{
    loop_info *l = BIND_ARGS(b, loop_info);
    l->is_while = true;
    l->lower = bind_reg(b, bind_arg(b, 0));
    return check_reg(b, l->lower) && bind_done(b, run_loop_while, l, true);
}

bool bind_loop_end(binder *b)
{
    return bind_done(b, run_loop_end, NULL, true);
}

bool bind_loops(binder *b)
{
    device_program *dp = b->dp;
    uint32_t depth = 0;
    loop_info **open = NEW_N(&dp->mem, loop_info *, dp->ncode + 1);
    for (uint32_t i = 0; i < dp->ncode; i++) {
        bound *c = &dp->code[i];
        if (c->fn == run_loop_for || c->fn == run_loop_while) {
            // The arguments were made by the binder above, for this instruction alone.
            loop_info *l = NEW(&dp->mem, loop_info);
            memcpy(l, c->a, sizeof *l);
            c->a = l;
            l->begin = i;
            l->slot = depth;
            open[depth++] = l;
            dp->nloops = depth > dp->nloops ? depth : dp->nloops;
        } else if (c->fn == run_loop_end) {
            if (depth == 0) {
                b->info = NULL;
                return bind_fail(b, "a loop ends that did not begin");
            }
            open[--depth]->end = i;
            c->a = open[depth];
        }
    }
    b->info = NULL;
    return depth == 0 ? true : bind_fail(b, "a loop has no end");
}

// ---- registers

typedef struct reg_args {
    uint32_t dst;
    regnum src;
} reg_args;

static void run_register_move(exec *x, const bound *b, const tile *t)
{
    (void)t;
    const reg_args *a = b->a;
    x->regs[a->dst] = (int32_t)regnum_get(x, a->src);
}

void run_nothing(exec *x, const bound *b, const tile *t)
{
    (void)x;
    (void)b;
    (void)t;
}

static void run_register_load(exec *x, const bound *b, const tile *t)
{
    const reg_args *a = b->a;
    x->regs[a->dst] = (int32_t)(uint32_t)tile_int(x, &t[0], 0);
}

static void run_register_store(exec *x, const bound *b, const tile *t)
{
    const reg_args *a = b->a;
    int32_t v = (int32_t)regnum_get(x, a->src);
    if (t[0].dtype == DT_int32 || t[0].dtype == DT_uint32) {
        memcpy(t[0].p, &v, 4);
    } else {
        convert_with(x->k, t[0].p, (dtype)t[0].dtype, t[0].size, &v, DT_int32, 4, 1);
    }
}

// Reads the parameter as the register written.
static bool reg_out(binder *b, uint32_t param, uint32_t *reg)
{
    ir_arg a = bind_arg(b, param);
    *reg = a.v;
    return a.kind == IRA_REG && a.v < b->p->registers ? true : bind_fail(b, "no such register");
}

bool bind_register_alloc(binder *b)
{
    return bind_done(b, run_nothing, NULL, true);
}

bool bind_register_move(binder *b)
{
    reg_args *a = BIND_ARGS(b, reg_args);
    a->src = bind_reg(b, bind_arg(b, 1));
    return reg_out(b, 0, &a->dst) && check_reg(b, a->src) &&
           bind_done(b, run_register_move, a, true);
}

bool bind_register_load(binder *b)
{
    reg_args *a = BIND_ARGS(b, reg_args);
    return reg_out(b, 0, &a->dst) && bind_operand(b, 1, false) >= 0 && bind_computes(b, 0) &&
           bind_done(b, run_register_load, a, true);
}

bool bind_register_store(binder *b)
{
    reg_args *a = BIND_ARGS(b, reg_args);
    a->src = bind_reg(b, bind_arg(b, 1));
    return check_reg(b, a->src) && bind_operand(b, 0, true) >= 0 && bind_computes(b, 0) &&
           bind_done(b, run_register_store, a, true);
}

// ---- the run

static bool reserve(device_core *c, const device_program *dp)
{
    uint32_t regs = dp->p->registers + 1,
             bases = BASE_PARAM0 + dp->p->params.n + dp->nshared + dp->nout;
    if (regs > c->regs_cap) {
        free(c->regs);
        c->regs = calloc(regs, sizeof *c->regs);
        c->regs_cap = c->regs ? regs : 0;
    }
    if (dp->nloops + 1 > c->loops_cap) {
        free(c->loops);
        c->loops = calloc(dp->nloops + 1, sizeof *c->loops);
        c->loops_cap = c->loops ? dp->nloops + 1 : 0;
    }
    if (bases > c->base_cap) {
        free(c->base);
        c->base = calloc(bases, sizeof *c->base);
        c->base_cap = c->base ? bases : 0;
    }
    if (dp->stage_bytes > c->stage_cap) {
        free(c->stage);
        c->stage = malloc(dp->stage_bytes);
        c->stage_cap = c->stage ? dp->stage_bytes : 0;
        if (!c->stage) {
            return false;
        }
    }
    return c->regs && c->loops && c->base && core_reserve_hbm(c, dp->hbm_bytes) &&
           (!dp->host || core_reserve_wide(c, dp->p->target));
}

void copy_outputs(exec *x, void *const *outputs)
{
    for (uint32_t i = 0; i < x->dp->nout; i++) {
        const opnd *o = &x->dp->out[i];
        if (o->base == direct_base(x->dp, i) && x->base[o->base] == outputs[i]) {
            continue;  // it was made there
        }
        tile s = exec_tile(x, o);
        int64_t row = (int64_t)(o->l->n * o->size);
        if (o->l->contig && o->ps == row) {
            memcpy(outputs[i], s.p, (size_t)row * o->l->parts);
            continue;
        }
        for (uint32_t r = 0; r < o->l->parts; r++) {
            gather((char *)outputs[i] + r * row, s.p + r * o->ps, o->l, 0, o->l->n, o->size);
        }
    }
}

// Memory [p, p + size) of parameter or output number i, parameters first.
static size_t host_size(const device_program *dp, uint32_t i)
{
    const ir *p = dp->p;
    uint32_t n = p->params.n;
    uint32_t t = i < n ? p->params.at[i].tensor : p->views.at[p->outputs.at[i - n]].tensor;
    return p->tensors.at[t].size_bytes;
}

static bool host_overlap(const void *a, size_t na, const void *b, size_t nb)
{
    uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;
    return p < q + nb && q < p + na;
}

// Parameters that overlap others while one of them is written: the order of copies is seen then.
static bool params_alias(const exec *x, void *const *params)
{
    const device_program *dp = x->dp;
    for (uint32_t i = 0; i < dp->p->params.n; i++) {
        for (uint32_t j = 0; dp->param_used[i] & PARAM_WRITTEN && j < dp->p->params.n; j++) {
            if (i != j && dp->param_used[j] &&
                host_overlap(params[i], host_size(dp, i), params[j], host_size(dp, j))) {
                return true;
            }
        }
    }
    return false;
}

// Where parameters and outputs are. An output that overlaps a parameter or another output is made
// in the HBM segment and copied at the end.
static void place_host(exec *x, void *const *params, char *const *shared, void *const *outputs)
{
    const device_program *dp = x->dp;
    uint32_t n = dp->p->params.n;
    for (uint32_t i = 0; i < n; i++) {
        x->base[BASE_PARAM0 + i] = params[i];
    }
    for (uint32_t i = 0; i < dp->nshared; i++) {
        x->base[BASE_PARAM0 + n + i] = shared[dp->p->tensors.at[dp->shared[i]].shared - 1];
    }
    for (uint32_t i = 0; i < dp->nout; i++) {
        uint32_t tensor = dp->p->views.at[dp->p->outputs.at[i]].tensor;
        bool apart = dp->direct[tensor] == direct_base(dp, i);
        if (!apart) {
            continue;  // never addressed
        }
        for (uint32_t j = 0; apart && j < n + dp->nout; j++) {
            apart =
                j == n + i || !host_overlap(outputs[i], host_size(dp, n + i),
                                            j < n ? params[j] : outputs[j - n], host_size(dp, j));
        }
        x->base[direct_base(dp, i)] =
            apart ? outputs[i] : x->core->hbm + dp->p->tensors.at[tensor].addr_bytes;
    }
}

bool exec_operands(exec *x, const bound *b, tile *t)
{
    for (uint32_t k = 0; k < b->nops; k++) {
        const opnd *o = &b->o[k];
        if (!o->dyn) {
            t[k] = exec_tile(x, o);
        } else if (!exec_resolve(x, b, o, &t[k])) {
            return false;
        }
    }
    return true;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// The clock is read every 16 instructions.
bool exec_interrupted(exec *x)
{
    const device_run_opts *o = x->opts;
    if (!o->stop && !o->deadline_ns) {
        return false;
    }
    int why = o->stop ? atomic_load_explicit(o->stop, memory_order_relaxed) : 0;
    if (!why && o->deadline_ns && x->steps++ % 16 == 0 && now_ns() > o->deadline_ns) {
        why = NKI_ERR_LIMIT;
    }
    if (!why) {
        return false;
    }
    x->status = why;
    if (o->stopped_at) {
        *o->stopped_at = x->dp->p->instrs.at[x->code[x->ip].instr].place;
    }
    return true;
}

void run_code(exec *x)
{
    const device_program *dp = x->dp;
    tile t[MAX_OPNDS];
    if (exec_is_watched(x)) {
        run_observed(x);
        return;
    }
    for (; x->ip < dp->ncode; x->ip++) {
        if (exec_interrupted(x)) {
            return;
        }
        const bound *b = &x->code[x->ip];
        if (b->run) {
            x->ip += run_lanes(x, b) - 1;
        } else {
            if (!exec_operands(x, b, t)) {
                return;
            }
            b->fn(x, b, t);
        }
        if (x->status != NKI_OK) {
            return;
        }
    }
}

bool exec_begin(exec *x, void *const *params, char *const *shared, void *const *outputs)
{
    device_core *core = x->core;
    const device_program *dp = x->dp;
    if (!reserve(core, dp)) {
        return false;
    }
    x->k = kern_get();
    x->s = &core->s;
    x->base = core->base;
    x->regs = core->regs;
    memset(core->regs, 0, core->regs_cap * sizeof *core->regs);
    x->base[BASE_SBUF] = dp->host ? core->wide_sbuf : core->sbuf;
    x->base[BASE_PSUM] = dp->host ? core->wide_psum : core->psum;
    x->base[BASE_HBM] = core->hbm;
    x->base[BASE_STAGE] = core->stage;
    place_host(x, params, shared, outputs);
    bool plain = x->opts->as_written || exec_is_watched(x) || !dp->fast || params_alias(x, params);
    x->code = plain ? dp->code : dp->fast;
    for (uint32_t i = 0; i < dp->nconsts; i++) {
        memcpy(core->hbm + dp->consts[i].at, dp->p->blob.at + dp->consts[i].data,
               dp->consts[i].size);
    }
    memset(core->acc, 0, sizeof core->acc);
    core->rank = dp->p->core;
    rng_seed_all(core, x->opts->seed);
    return true;
}
