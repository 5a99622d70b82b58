#include "lower/emit.h"

#include "lower/check.h"

#include <string.h>

emitter *emitter_new(arena *mem, ir *p, diags *pend, diags *warn)
{
    emitter *e = NEW(mem, emitter);
    e->mem = mem;
    e->p = p;
    e->pend = pend;
    e->warn = warn;
    e->t = p->target;
    e->gen = p->target->gen;
    e->psum.mem = mem;
    check_plan(e);
    return e;
}

// ---- what has been written

static void grow_flags(emitter *e, uint32_t tensor)
{
    while (e->written.n <= tensor) {
        vec_push(e->mem, &e->written, 0);
    }
}

// A loop that may run no time must be able to forget what it wrote outside.
static void save_for_loops(emitter *e, uint32_t tensor)
{
    for (uint32_t i = 0; i < e->loops.n; i++) {
        loop_frame *f = &e->loops.at[i];
        psum_save *s = f->saved;
        if (tensor >= f->tensors) {
            continue;
        }
        while (s && s->tensor != tensor) {
            s = s->next;
        }
        if (!s) {
            s = NEW(e->mem, psum_save);
            s->tensor = tensor;
            s->map = psum_copy(&e->psum, psum_of(&e->psum, e->p, tensor));
            s->next = f->saved;
            f->saved = s;
        }
    }
}

static void mark_view(emitter *e, const ir_view *v, isa_id op, engine_id engine)
{
    uint8_t buffer = e->p->tensors.at[v->tensor].buffer;
    if (buffer == BUF_PSUM) {
        if (e->loops.n) {
            save_for_loops(e, v->tensor);
        }
        psum_mark(&e->psum, e->p, v);
        if (engine != ENG_TENSOR) {
            psum_map *s = psum_of(&e->psum, e->p, v->tensor);
            s->foreign = true;
            s->foreign_op = (uint16_t)op;
        }
    } else if (buffer == BUF_SHARED) {
        grow_flags(e, v->tensor);
        e->written.at[v->tensor] = 1;
    }
}

static void mark_list(emitter *e, const ir_arg *a, isa_id op)
{
    for (uint32_t k = 0; k < (uint16_t)a->aux; k++) {
        const ir_arg *x = &e->p->args.at[a->v + k];
        if (x->kind == IRA_VIEW) {
            mark_view(e, ir_view_ref(e->p, x->v), op, ENG_DMA);
        } else if (x->kind == IRA_LIST) {
            mark_list(e, x, op);
        }
    }
}

static void mark_writes(emitter *e, isa_id op, const ir_arg *args, engine_id engine)
{
    const isa_info *info = &isa_table[op];
    for (uint8_t i = 0; i < e->plan[op].views; i++) {
        uint8_t type = info->params[i].type;
        if ((type == PT_OUT || type == PT_INOUT) && args[i].kind == IRA_VIEW) {
            mark_view(e, ir_view_ref(e->p, args[i].v), op, engine);
        }
    }
    if (info->group == ISAG_NCC) {
        for (uint8_t i = 0; i < info->nparams; i++) {
            if (args[i].kind == IRA_LIST && strncmp(info->params[i].name, "dsts", 4) == 0) {
                mark_list(e, &args[i], op);
            }
        }
    }
}

// ---- matmul: accumulate=None

typedef struct matmul_args {
    uint8_t dst, stat, mov, stat_scale, mov_scale, acc;  // parameters; 0xff: none
    bool rows2;                                          // [K, 2, columns] operands
} matmul_args;

static matmul_args matmul_of(isa_id op, const ir_arg *args)
{
    if (op == ISA_nc_matmul_mx) {
        return (matmul_args){ARG(nc_matmul_mx, dst),
                             ARG(nc_matmul_mx, stationary),
                             ARG(nc_matmul_mx, moving),
                             ARG(nc_matmul_mx, stationary_scale),
                             ARG(nc_matmul_mx, moving_scale),
                             ARG(nc_matmul_mx, accumulate),
                             false};
    }
    return (matmul_args){ARG(nc_matmul, dst),
                         ARG(nc_matmul, stationary),
                         ARG(nc_matmul, moving),
                         0xff,
                         0xff,
                         ARG(nc_matmul, accumulate),
                         args[ARG(nc_matmul, perf_mode)].v == ISAE_matmul_perf_mode_double_row};
}

// Free dimensions from `from` on with neighbours merged; at least one.
static uint32_t merged(const ir *p, const ir_view *v, uint32_t from, ir_dim *out)
{
    const ir_dim *dims = ir_dims(p, v);
    uint32_t n = 0;
    for (uint32_t d = from; d < ir_ndim(p, v); d++) {
        if (dims[d].count == 1) {
            continue;
        }
        if (n && out[n - 1].stride == dims[d].stride * (int64_t)dims[d].count) {
            out[n - 1].stride = dims[d].stride;
            out[n - 1].count *= dims[d].count;
        } else {
            out[n++] = dims[d];
        }
    }
    if (n == 0) {
        out[n++] = (ir_dim){1, 1, 0};
    }
    return n;
}

// Columns from `at` that v reaches with one stride.
static uint32_t run_length(const ir *p, const ir_view *v, bool rows2, uint32_t at)
{
    ir_dim dims[IR_MAX_DIMS];
    uint32_t n = merged(p, v, rows2 ? 2 : 1, dims);
    return dims[n - 1].count - at % dims[n - 1].count;
}

// Columns [at, at + count) of an operand, which lie in one run; all partitions.
static ir_arg columns(ir *p, ir_arg arg, bool rows2, uint32_t at, uint32_t count, uint64_t total)
{
    ir_view v = ir_view_at(p, arg.v);
    ir_dim dims[IR_MAX_DIMS], out[3];
    if (at == 0 && count == total) {
        return arg;
    }
    memset(out, 0, sizeof out);
    uint32_t n = merged(p, &v, rows2 ? 2 : 1, dims), k = 0;
    out[k++] = ir_dims(p, &v)[0];
    if (rows2) {
        out[k++] = ir_dims(p, &v)[1];
    }
    uint32_t rest = at;
    for (uint32_t d = n; d-- > 0;) {
        v.offset += (int64_t)(rest % dims[d].count) * dims[d].stride;
        rest /= dims[d].count;
    }
    out[k].stride = dims[n - 1].stride;
    out[k++].count = count;
    v.ap = ir_ap_of(p, out, k);
    return ira_view(ir_view_add(p, v));
}

static ir_arg partitions(ir *p, ir_arg arg, uint32_t at, uint32_t count)
{
    ir_view v = ir_view_at(p, arg.v);
    ir_dim dims[IR_MAX_DIMS];
    uint32_t n = ir_ndim(p, &v);
    memcpy(dims, ir_dims(p, &v), n * sizeof *dims);
    if (at == 0 && dims[0].count == count) {
        return arg;
    }
    v.part = (uint8_t)(v.part + at);
    dims[0].count = count;
    v.ap = ir_ap_of(p, dims, n);
    return ira_view(ir_view_add(p, v));
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// Emits a matmul whose result is partly written as several whose results are wholly one or the
// other.
static uint32_t emit_split(check *c, matmul_args mm, uint32_t place, uint32_t nm)
{
    emitter *e = c->e;
    ir *p = e->p;
    uint32_t count, first = p->instrs.n;
    const ir_arg *a = c->args;
    const ir_view dst = ir_view_at(p, a[mm.dst].v);
    uint64_t all_m = c->in[mm.dst].partitions, all_n = c->in[mm.dst].free_elems;
    psum_piece *pieces = psum_split(&e->psum, p, &dst, &count);
    for (uint32_t i = 0; i < count; i++) {
        psum_piece *x = &pieces[i];
        for (uint32_t m = x->m, mc; m < x->m + x->mcount; m += mc) {
            mc = least(x->m + x->mcount - m,
                       run_length(p, ir_view_ref(p, a[mm.stat].v), mm.rows2, m));
            for (uint32_t n = x->n, nc; n < x->n + x->ncount; n += nc) {
                nc = least(x->n + x->ncount - n, run_length(p, &dst, false, n));
                nc = least(nc, run_length(p, ir_view_ref(p, a[mm.mov].v), mm.rows2, n));
                ir_arg part[CHECK_MAX_PARAMS];
                memcpy(part, a, c->info->nparams * sizeof *part);
                part[mm.dst] = columns(p, partitions(p, a[mm.dst], m, mc), false, n, nc, all_n);
                part[mm.stat] = columns(p, a[mm.stat], mm.rows2, m, mc, all_m);
                part[mm.mov] = columns(p, a[mm.mov], mm.rows2, n, nc, all_n);
                if (mm.stat_scale != 0xff) {
                    part[mm.stat_scale] = columns(p, a[mm.stat_scale], false, m, mc, all_m);
                    part[mm.mov_scale] = columns(p, a[mm.mov_scale], false, n, nc, all_n);
                }
                part[mm.acc] = ira_kind(IRA_BOOL, x->written);
                ir_emit(p, c->op, (engine_id)c->engine, part, place, nm);
            }
        }
    }
    return first;
}

// A later iteration adds where this one overwrites.
static diag *note_overwrite(check *c, uint8_t dst)
{
    emitter *e = c->e;
    uint32_t tensor = c->in[dst].view->tensor;
    for (uint32_t i = 0; i < e->loops.n; i++) {
        loop_frame *f = &e->loops.at[i];
        if (tensor >= f->tensors) {
            continue;
        }
        if (f->replay) {
            return diag_accumulate_in_loop(e->pend, c->at, INSN(c), check_what(c, dst),
                                           "loop whose iterations write different places");
        }
        if (!f->peel) {
            f->peel = true;
            f->insn = INSN(c);
            f->what = check_what(c, dst);
            f->what_at = c->at;
        }
    }
    return NULL;
}

static void warn_accumulate(check *c, uint8_t dst, psum_map *s, bool explicit, psum_state state)
{
    emitter *e = c->e;
    if (explicit && (state == PSUM_UNWRITTEN || state == PSUM_MIXED)) {
        if (check_warn_first(e, D_accumulate_unwritten, c->at)) {
            diag *d = diag_accumulate_unwritten(e->warn, c->at, INSN(c), check_what(c, dst));
            diag_help(e->warn, d,
                      "pass accumulate=False for the first one, or leave accumulate out");
        }
    } else if (s->foreign && !s->warned && e->gen < 4) {
        s->warned = true;
        if (check_warn_first(e, D_accumulate_on_memset, c->at)) {
            diag_accumulate_on_memset(e->warn, c->at, INSN(c), check_what(c, dst),
                                      isa_table[s->foreign_op].name, c->t->name);
        }
    }
}

static diag *unknown_state(check *c, uint8_t dst, const psum_map *s)
{
    const char *why = c->in[dst].dyn ? "a run-time offset"
                      : s->unknown   ? "a write at a run-time offset"
                                     : "whether a loop before it ran at all";
    diag *d = diag_accumulate_unknown(c->e->pend, c->at, INSN(c), check_what(c, dst), why);
    diag_help(c->e->pend, d, "pass accumulate=True or accumulate=False");
    return d;
}

static diag *emit_matmul(check *c, uint32_t place, uint32_t nm, uint32_t *first)
{
    emitter *e = c->e;
    matmul_args mm = matmul_of(c->op, c->args);
    ir_arg *acc = &c->args[mm.acc];
    psum_map *s = psum_of(&e->psum, e->p, c->in[mm.dst].view->tensor);
    bool split = false, marked = false;
    if (acc->kind == IRA_NONE || acc->v) {
        psum_state state = psum_ask(&e->psum, e->p, c->in[mm.dst].view);
        bool explicit = acc->kind != IRA_NONE;
        marked = state == PSUM_WRITTEN;
        if (!explicit) {
            if (state == PSUM_UNKNOWN) {
                return unknown_state(c, mm.dst, s);
            }
            diag *d = state == PSUM_WRITTEN || !e->loops.n ? NULL : note_overwrite(c, mm.dst);
            if (d) {
                return d;
            }
            split = state == PSUM_MIXED;
            *acc = ira_kind(IRA_BOOL, state == PSUM_WRITTEN);
        }
        if (explicit ? state != PSUM_WRITTEN || s->foreign
                     : s->foreign && state != PSUM_UNWRITTEN) {
            warn_accumulate(c, mm.dst, s, explicit, state);
        }
    } else if (s->foreign &&
               c->in[mm.dst].free_elems * c->in[mm.dst].partitions *
                       dtype_size((dtype)c->in[mm.dst].dtype) ==
                   c->in[mm.dst].tensor->size_bytes * c->in[mm.dst].tensor->partitions) {
        s->foreign = false;
    }
    uint32_t dst = c->args[mm.dst].v;
    *first = split ? emit_split(c, mm, place, nm)
                   : ir_emit(e->p, c->op, (engine_id)c->engine, c->args, place, nm);
    if (!marked) {
        ir_view v = ir_view_at(e->p, dst);
        mark_view(e, &v, c->op, ENG_TENSOR);
    }
    return NULL;
}

// ---- loops

static diag *process(emitter *e, isa_id op, ir_arg *args, uint32_t place, uint32_t nm, loc at,
                     uint32_t *first);

static void open_loop(emitter *e, isa_id op, const ir_arg *args, uint32_t place, uint32_t begin)
{
    loop_frame f = {.begin = begin,
                    .tensors = e->p->tensors.n,
                    .is_while = op == ISA_loop_while,
                    .place = place};
    f.log = e->replaying ? e->replaying : e->log.n;
    if (op == ISA_loop_for) {
        memcpy(f.args, args, sizeof f.args);
        uint32_t reg = args[ARG(loop_for, counter)].v;
        while (e->induction.n <= reg) {
            vec_push(e->mem, &e->induction, 0);
        }
        e->induction.at[reg] = 1;
    }
    vec_push(e->mem, &e->loops, f);
}

// Trips that compile time knows: 0, 1, 2 (or more); -1 when registers decide.
static int known_trips(const loop_frame *f)
{
    const ir_arg *lo = &f->args[ARG(loop_for, lower)], *hi = &f->args[ARG(loop_for, upper)];
    if (f->is_while || lo->kind == IRA_REG || hi->kind == IRA_REG) {
        return -1;
    }
    int64_t from = ira_integer(*lo), to = ira_integer(*hi),
            step = ira_integer(f->args[ARG(loop_for, step)]);
    return from >= to ? 0 : from + step >= to ? 1 : 2;
}

static diag *cannot_peel(emitter *e, const loop_frame *f, const char *loop)
{
    diag *d = diag_accumulate_in_loop(e->pend, f->what_at, f->insn, f->what, loop);
    diag_help(e->pend, d,
              "pass accumulate=True after a first matmul outside the loop, or "
              "accumulate=False if every iteration starts afresh");
    return d;
}

// User dependences of a replayed instruction: those inside the loop refer to the replayed ones.
static void copy_deps(emitter *e, uint32_t lo, uint32_t hi, const loop_log *x)
{
    uint32_t from = e->p->instrs.at[x->first].deps;
    if (from == IR_NONE || x->again == UINT32_MAX) {
        return;
    }
    uint32_t list = e->p->deps.n;
    for (;; from++) {
        uint32_t dep = e->p->deps.at[from];
        for (uint32_t i = lo; i < hi && dep != IR_DEPS_END; i++) {
            if (e->log.at[i].op != ISA_COUNT && e->log.at[i].first == dep &&
                e->log.at[i].again != UINT32_MAX) {
                dep = e->log.at[i].again;
                break;
            }
        }
        vec_push(e->mem, &e->p->deps, dep);
        if (dep == IR_DEPS_END) {
            break;
        }
    }
    e->p->instrs.at[x->again].deps = list;
}

static diag *replay(emitter *e, uint32_t lo, uint32_t hi)
{
    uint32_t outer = e->replaying;
    diag *d = NULL;
    for (uint32_t i = lo; i < hi; i++) {
        e->log.at[i].again = UINT32_MAX;
    }
    for (uint32_t i = lo; i < hi && !d; i++) {
        loop_log x = e->log.at[i];
        if (x.op == ISA_COUNT) {
            psum_fresh(&e->psum, x.args);
            continue;
        }
        ir_arg args[CHECK_MAX_PARAMS];
        memcpy(args, e->log_args.at + x.args, isa_table[x.op].nparams * sizeof *args);
        e->replaying = i + 1;
        uint32_t again = 0;
        d = process(e, (isa_id)x.op, args, x.place, x.nm, x.at, &again);
        e->log.at[i].again = again;
    }
    for (uint32_t i = lo; i < hi && !d; i++) {
        if (e->log.at[i].op != ISA_COUNT) {
            copy_deps(e, lo, hi, &e->log.at[i]);
        }
    }
    e->replaying = outer;
    return d;
}

// The first iteration becomes a loop of one trip; a second loop, with accumulate resolved for what
// the first has written, does the rest.
static diag *peel(emitter *e, loop_frame f, uint32_t end)
{
    ir *p = e->p;
    const ir_arg *lower = &f.args[ARG(loop_for, lower)], *upper = &f.args[ARG(loop_for, upper)];
    if (f.is_while) {
        return cannot_peel(e, &f, "while loop");
    }
    if (lower->kind == IRA_REG) {
        return cannot_peel(e, &f, "loop whose lower bound is a register");
    }
    int64_t lo = ira_integer(*lower), step = ira_integer(f.args[ARG(loop_for, step)]);
    if (lo + step > INT32_MAX || (upper->kind == IRA_REG && lo < 0)) {
        return cannot_peel(e, &f, "loop with these bounds");
    }
    ir_arg *once = &p->args.at[p->instrs.at[f.begin].args];
    if (upper->kind == IRA_REG) {
        once[ARG(loop_for, step)] = ira_int(INT32_MAX - lo);
    } else {
        once[ARG(loop_for, upper)] = ira_int(lo + step);
    }
    ir_emit(p, ISA_loop_end, ENG_SYNC, NULL, f.place, IR_NONE);
    ir_arg rest[4];
    memcpy(rest, f.args, sizeof rest);
    rest[ARG(loop_for, lower)] = ira_int(lo + step);
    loop_frame again = f;
    again.begin = ir_emit(p, ISA_loop_for, ENG_SYNC, rest, f.place, IR_NONE);
    again.replay = true;
    again.peel = false;
    vec_push(e->mem, &e->loops, again);
    diag *d = replay(e, f.log, end);
    e->loops.at[e->loops.n - 1].peel = false;
    return d;
}

static diag *close_loop(emitter *e, uint32_t place, uint32_t *first)
{
    if (e->loops.n == 0) {
        *first = ir_emit(e->p, ISA_loop_end, ENG_SYNC, NULL, place, IR_NONE);
        return NULL;
    }
    loop_frame f = e->loops.at[--e->loops.n];
    uint32_t end = e->replaying ? e->replaying - 1 : e->log.n - 1;
    int trips = known_trips(&f);
    if (f.peel && (trips < 0 || trips > 1)) {
        diag *d = peel(e, f, end);
        if (d) {
            return d;
        }
        f.saved = e->loops.at[--e->loops.n].saved;
    }
    *first = ir_emit(e->p, ISA_loop_end, ENG_SYNC, NULL, place, IR_NONE);
    for (psum_save *s = f.saved; s && trips <= 0; s = s->next) {
        if (trips == 0) {
            e->psum.at[s->tensor] = s->map;
        } else {
            psum_weaken(&e->psum, s->tensor, &s->map);
        }
    }
    return NULL;
}

// ---- one instruction

static diag *process(emitter *e, isa_id op, ir_arg *args, uint32_t place, uint32_t nm, loc at,
                     uint32_t *first)
{
    check c;
    c.e = e;
    c.p = e->p;
    c.t = e->t;
    c.op = op;
    c.info = &isa_table[op];
    c.args = args;
    c.at = at;
    diag *d = check_instr(&c);
    if (d) {
        return d;
    }
    switch (op) {
    case ISA_nc_matmul:
    case ISA_nc_matmul_mx: return emit_matmul(&c, place, nm, first);
    case ISA_loop_end: return close_loop(e, place, first);
    default: break;
    }
    *first = ir_emit(e->p, op, (engine_id)c.engine, args, place, nm);
    if (op == ISA_loop_for || op == ISA_loop_while) {
        open_loop(e, op, args, place, *first);
    } else {
        mark_writes(e, op, args, (engine_id)c.engine);
    }
    return NULL;
}

static void log_call(emitter *e, isa_id op, const ir_arg *args, uint32_t place, uint32_t nm, loc at)
{
    loop_log x = {.op = (uint16_t)op, .args = e->log_args.n, .place = place, .nm = nm, .at = at};
    for (uint8_t i = 0; i < isa_table[op].nparams; i++) {
        vec_push(e->mem, &e->log_args, args[i]);
    }
    vec_push(e->mem, &e->log, x);
}

diag *emit_instr(emitter *e, isa_id op, ir_arg *args, uint32_t place, uint32_t nm, loc at,
                 uint32_t *first)
{
    uint32_t index = 0, entry = e->log.n;
    bool in_loop = e->loops.n != 0;
    if (in_loop) {
        log_call(e, op, args, place, nm, at);
    }
    diag *d = process(e, op, args, place, nm, at, &index);
    if (in_loop) {
        if (d) {
            e->log.n = entry;
        } else {
            e->log.at[entry].first = index;
        }
        if (e->loops.n == 0) {
            e->log.n = e->log_args.n = 0;
        }
    }
    if (first && !d) {
        *first = index;
    }
    return d;
}

// ---- tensors

static const char *tensor_text(emitter *e, const ir_tensor *t, bool with_type)
{
    textbuf out;
    text_init(&out, e->mem);
    const char *name = ir_text(e->p, t->name);
    if (with_type && name[0]) {
        text_printf(&out, "'%s' ", name);
    }
    text_char(&out, '[');
    for (uint32_t d = 0; d < t->ndim && d < IR_MAX_DIMS; d++) {
        text_printf(&out, d ? ", %u" : "%u", t->shape[d]);
    }
    text_char(&out, ']');
    if (with_type) {
        text_printf(&out, " %s @%s", dtype_name((dtype)t->dtype),
                    buffer_name((buffer_kind)t->buffer));
    }
    return out.at;
}

static diag *manual_address(emitter *e, const ir_tensor *t, uint32_t capacity, loc at)
{
    const char *space = t->buffer == BUF_PSUM ? "PSUM" : "SBUF";
    uint64_t end = t->addr_bytes + t->size_bytes;
    if (t->addr_part + t->partitions > e->t->partitions || t->addr_bytes > capacity ||
        end > capacity) {
        return diag_address_out_of_range(e->pend, at, tensor_text(e, t, true), t->addr_part,
                                         (unsigned long long)t->addr_bytes,
                                         t->addr_part + t->partitions, (unsigned long long)end,
                                         space, e->t->name, e->t->partitions, capacity);
    }
    if (t->buffer == BUF_PSUM && t->addr_bytes % e->t->psum_bank_bytes) {
        diag *d = diag_psum_address_bank(e->pend, at, tensor_text(e, t, true),
                                         (unsigned long long)t->addr_bytes, e->t->psum_bank_bytes);
        diag_help(
            e->pend, d, "bank %llu starts at byte %llu",
            (unsigned long long)(t->addr_bytes / e->t->psum_bank_bytes),
            (unsigned long long)(t->addr_bytes / e->t->psum_bank_bytes * e->t->psum_bank_bytes));
        return d;
    }
    uint32_t size = dtype_size((dtype)t->dtype);
    if (t->addr_bytes % size) {
        return diag_address_alignment(e->pend, at, tensor_text(e, t, true),
                                      (unsigned long long)t->addr_bytes, size);
    }
    return NULL;
}

enum { ON_CHIP_MIN_DIMS = 2, LANGUAGE_MAX_DIMS = 5 };
static const uint64_t hbm_bytes = (uint64_t)96 << 30;  // a Trainium2 chip; the others have less

static diag *tensor_size(emitter *e, ir_tensor *t, uint64_t capacity, loc at)
{
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    uint64_t bytes = dtype_size((dtype)t->dtype);
    for (uint32_t d = chip ? 1 : 0; d < t->ndim; d++) {
        if (bytes > UINT64_MAX / t->shape[d]) {
            bytes = UINT64_MAX;
            break;
        }
        bytes *= t->shape[d];
    }
    t->size_bytes = bytes;
    if (bytes <= capacity) {
        return NULL;
    }
    diag *d = diag_tensor_too_large(e->pend, at, tensor_text(e, t, true), (unsigned long long)bytes,
                                    chip ? " a partition" : "",
                                    t->buffer == BUF_PSUM ? "PSUM"
                                    : chip                ? "SBUF"
                                                          : "HBM",
                                    e->t->name, (unsigned long long)capacity);
    if (chip) {
        diag_help(e->pend, d, "use tiles of at most %llu elements a partition",
                  (unsigned long long)(capacity / dtype_size((dtype)t->dtype)));
    }
    return d;
}

diag *emit_tensor(emitter *e, ir_tensor t, loc at, uint32_t *id)
{
    bool chip = buffer_on_chip((buffer_kind)t.buffer);
    unsigned lo = chip ? ON_CHIP_MIN_DIMS : 1;
    if (t.ndim < lo || t.ndim > IR_MAX_DIMS) {
        return diag_tensor_rank(e->pend, at, tensor_text(e, &t, false),
                                buffer_name((buffer_kind)t.buffer), t.ndim, lo, IR_MAX_DIMS);
    }
    for (uint32_t d = 0; d < t.ndim; d++) {
        if (t.shape[d] == 0) {
            return diag_empty_dimension(e->pend, at, d, tensor_text(e, &t, false));
        }
    }
    if (t.ndim > LANGUAGE_MAX_DIMS && check_warn_first(e, D_tensor_rank_wide, at)) {
        diag_tensor_rank_wide(e->warn, at, tensor_text(e, &t, false), t.ndim, LANGUAGE_MAX_DIMS);
    }
    if (chip && t.shape[0] > e->t->partitions) {
        diag *d = diag_partition_limit(e->pend, at, "nl.ndarray", tensor_text(e, &t, true),
                                       t.shape[0], e->t->name, e->t->partitions);
        diag_help(e->pend, d,
                  "dimension 0 of a tile is the partition dimension: use tiles of at most "
                  "%u rows",
                  e->t->partitions);
        return d;
    }
    uint32_t capacity =
        t.buffer == BUF_PSUM ? e->t->psum_partition_bytes : e->t->sbuf_partition_bytes;
    t.partitions = chip ? (uint16_t)t.shape[0] : 0;
    diag *d = tensor_size(e, &t, chip ? capacity : hbm_bytes, at);
    if (!d && t.manual && chip) {
        d = manual_address(e, &t, capacity, at);
    }
    if (d) {
        return d;
    }
    if (!t.manual) {
        t.addr_bytes = ADDR_AUTO;
    }
    *id = ir_tensor_add(e->p, t);
    if (e->loops.n) {
        vec_push(e->mem, &e->log, ((loop_log){.op = ISA_COUNT, .args = *id, .at = at}));
    }
    return NULL;
}

static loc place_loc(const ir *p, uint32_t place)
{
    while (place && p->places.at[place].kind != PLACE_SITE) {
        place = p->places.at[place].parent;
    }
    const ir_place *pl = &p->places.at[place];
    if (!place || pl->file >= p->files.n) {
        return (loc){0};
    }
    return (loc){p->files.at[pl->file].src, {pl->lo, pl->hi}};
}

diag *emit_finish(emitter *e, loc at)
{
    // Of a launch of two, launch_link says: the other program may write it.
    for (uint32_t i = 0; i < e->p->tensors.n && e->p->grid < 2; i++) {
        const ir_tensor *t = &e->p->tensors.at[i];
        bool written = i < e->written.n && e->written.at[i];
        if (t->buffer == BUF_SHARED && (t->role == ROLE_OUT || t->role == ROLE_TEMP) && !written) {
            loc where = place_loc(e->p, t->place);
            diag_output_unwritten(e->warn, where.src ? where : at, tensor_text(e, t, true));
        }
    }
    return NULL;
}
