#include "sched/stream.h"

// Replication is a worklist: an instruction is put on it whenever it gains a stream, at most
// STREAM_COUNT times.

typedef struct planner {
    arena *mem;
    const ir *p;
    stream_plan *sp;
    stream_mask *need;        // of each register: streams that read it
    uint32_t *writer, *next;  // chain of the copies that write each register: instruction + 1
    VEC(uint32_t) work;
} planner;

static bool is_copied(const ir_instr *in)
{
    return in->op == ISA_register_move || in->op == ISA_register_load || instr_opens_loop(in) ||
           in->op == ISA_loop_end;
}

static void find_loops(planner *pl)
{
    const ir *p = pl->p;
    stream_plan *sp = pl->sp;
    vec_push(pl->mem, &sp->loops, ((loop_node){.last = p->instrs.n}));
    uint32_t in = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *ins = &p->instrs.at[i];
        if (ins->op == ISA_loop_end) {
            sp->loops.at[in].last = i;
            in = sp->loops.at[in].parent;
        }
        sp->loop_of[i] = in;
        if (instr_opens_loop(ins)) {
            uint32_t depth = sp->loops.at[in].depth + 1;
            vec_push(pl->mem, &sp->loops, ((loop_node){i, i, in, depth, 0}));
            in = sp->loops.n - 1;
        }
    }
}

uint32_t loop_at(const stream_plan *sp, uint32_t first)
{
    uint32_t lo = 1, hi = sp->loops.n;  // loops are numbered in program order
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (sp->loops.at[mid].first <= first) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void grow(planner *pl, uint32_t i, stream_mask m)
{
    if ((m & ~pl->sp->mask[i]) != 0) {
        pl->sp->mask[i] |= m;
        vec_push(pl->mem, &pl->work, i);
    }
}

static void need_register(planner *pl, uint32_t reg, stream_mask m)
{
    if ((m & ~pl->need[reg]) == 0) {
        return;
    }
    pl->need[reg] |= m;
    for (uint32_t w = pl->writer[reg]; w; w = pl->next[w - 1]) {
        grow(pl, w - 1, m);
    }
}

static void need_by_arg(planner *pl, ir_arg a, stream_mask m)
{
    const ir *p = pl->p;
    if (a.kind == IRA_REG) {
        need_register(pl, a.v, m);
    } else if (a.kind == IRA_VIEW) {
        uint32_t dyn = ir_view_at(p, a.v).dyn;
        if (dyn && p->dyns.at[dyn].kind == DYN_REG) {
            need_register(pl, p->dyns.at[dyn].src, m);
        }
    } else if (a.kind == IRA_LIST) {
        for (uint32_t k = 0; k < (uint32_t)a.aux; k++) {
            need_by_arg(pl, p->args.at[a.v + k], m);
        }
    }
}

static uint32_t register_written(const ir *p, const ir_instr *in)
{
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (isa_table[in->op].params[k].type == PT_REGOUT && a.kind == IRA_REG) {
            return a.v;
        }
    }
    return UINT32_MAX;
}

// Everything that follows from instruction i being in its streams.
static void propagate(planner *pl, uint32_t i)
{
    const ir *p = pl->p;
    const ir_instr *in = &p->instrs.at[i];
    stream_mask m = pl->sp->mask[i];
    for (uint32_t k = 0; p->registers && k < in->nargs; k++) {
        if (isa_table[in->op].params[k].type != PT_REGOUT) {
            need_by_arg(pl, p->args.at[in->args + k], m);
        }
    }
    if (pl->sp->loop_of[i]) {
        grow(pl, pl->sp->loops.at[pl->sp->loop_of[i]].first, m);
    }
}

static void settle(planner *pl)
{
    while (pl->work.n) {
        propagate(pl, pl->work.at[--pl->work.n]);
    }
}

static stream_mask own_stream(const planner *pl, const program *pr, uint32_t i, uint32_t *dma)
{
    const ir_instr *in = &pl->p->instrs.at[i];
    if (in->engine != ENG_DMA) {
        return (stream_mask)(1u << in->engine);
    }
    while (*dma < pr->dmas.n && pr->dmas.at[*dma].instr < i) {
        ++*dma;
    }
    return (stream_mask)(1u << (STREAM_RING0 + pr->dmas.at[*dma].ring));
}

static void chain_writers(planner *pl)
{
    const ir *p = pl->p;
    pl->need = NEW_N(pl->mem, stream_mask, p->registers);
    pl->writer = NEW_N(pl->mem, uint32_t, p->registers);
    pl->next = NEW_N(pl->mem, uint32_t, p->instrs.n);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        uint32_t reg =
            is_copied(&p->instrs.at[i]) ? register_written(p, &p->instrs.at[i]) : UINT32_MAX;
        if (reg != UINT32_MAX) {
            pl->next[i] = pl->writer[reg];
            pl->writer[reg] = i + 1;
        }
    }
}

void stream_plan_make(arena *mem, const program *pr, stream_plan *sp)
{
    const ir *p = pr->ir;
    *sp = (stream_plan){0};
    sp->loop_of = NEW_N(mem, uint32_t, p->instrs.n);
    sp->mask = NEW_N(mem, stream_mask, p->instrs.n);
    planner pl = {.mem = mem, .p = p, .sp = sp};
    find_loops(&pl);
    if (p->registers) {
        chain_writers(&pl);
    }
    uint32_t dma = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        if (is_copied(&p->instrs.at[i])) {
            continue;
        }
        sp->mask[i] = own_stream(&pl, pr, i, &dma);
        if (p->registers || sp->loop_of[i]) {
            propagate(&pl, i);
            settle(&pl);
        }
    }
    // Copies that nothing reads stay where the kernel put them.
    dma = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        if (!sp->mask[i] && p->instrs.at[i].op != ISA_loop_end) {
            grow(&pl, i, own_stream(&pl, pr, i, &dma));
            settle(&pl);
        }
    }
    for (uint32_t l = 1; l < sp->loops.n; l++) {
        loop_node *n = &sp->loops.at[l];
        n->streams = sp->mask[n->last] = sp->mask[n->first];
    }
    sp->loops.at[0].streams = (stream_mask)((1u << STREAM_COUNT) - 1);
}

// ---- DMA

// Contiguous pieces of v: the inner dimensions that follow each other without a gap are one piece.
static uint64_t pieces_of(const ir *p, const ir_view *v, bool chip, uint64_t elems)
{
    const ir_dim *d = ir_dims(p, v);
    int64_t run = 1;
    for (uint32_t k = ir_ndim(p, v); k-- > (chip ? 1u : 0u);) {
        if (d[k].count != 1 && d[k].stride != run) {
            break;
        }
        run *= d[k].count;
    }
    return run ? elems / (uint64_t)run : 0;
}

static void add_side(const ir *p, uint32_t view, dma_side *s)
{
    const ir_view *v = ir_view_ref(p, view);
    const ir_tensor *t = &p->tensors.at[v->tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    uint64_t elems = ir_elems(p, v);
    if (v->dyn) {
        unsigned kind = p->dyns.at[v->dyn].kind;
        s->indexed |= kind == DYN_VECTOR || kind == DYN_INDIRECT;
        s->dynamic = true;
    }
    if (!s->any) {
        s->chip = chip;
        s->part0 = chip ? t->addr_part + v->part : 0;
        s->parts = chip ? ir_partitions(p, v) : 0;
        s->dtype = v->dtype;
        s->any = true;
    }
    uint64_t pieces = pieces_of(p, v, chip, elems);
    if (s->indexed && pieces == 1 && ir_ndim(p, v)) {
        pieces = ir_dims(p, v)[0].count;  // rows lie where the index says
    }
    s->pieces += pieces;
    s->bytes += elems * dtype_size((dtype)v->dtype);
}

static void add_sides(const ir *p, ir_arg a, dma_side *s)
{
    if (a.kind == IRA_VIEW) {
        add_side(p, a.v, s);
    } else if (a.kind == IRA_LIST) {
        for (uint32_t k = 0; k < (uint32_t)a.aux; k++) {
            add_sides(p, p->args.at[a.v + k], s);
        }
    }
}

// Who makes the descriptors where the kernel leaves it open. From trn2 on: GpSimd, as published
// traces of such kernels show for loads and stores alike, or the queue that the kernel names.
static uint8_t choose_dge(const ir *p, const dma_side *dst, const dma_side *src, uint32_t asked,
                          uint32_t engine)
{
    if (asked != ISAE_dge_mode_unknown) {
        return (uint8_t)asked;
    }
    bool fixed = !dst->indexed && !src->indexed && !dst->dynamic && !src->dynamic;
    if (p->target->gen < 3) {
        return fixed ? ISAE_dge_mode_none : ISAE_dge_mode_swdge;
    }
    bool hardware = engine == ISAE_engine_sync || engine == ISAE_engine_scalar;
    return hardware && !dst->indexed && !src->indexed && dst->dtype == src->dtype
               ? ISAE_dge_mode_hwdge
               : ISAE_dge_mode_swdge;
}

static uint8_t trigger_of(uint32_t asked, uint8_t dge)
{
    static const uint8_t of[] = {
        [ISAE_engine_unknown] = ENG_SYNC,  [ISAE_engine_tensor] = ENG_TENSOR,
        [ISAE_engine_scalar] = ENG_SCALAR, [ISAE_engine_gpsimd] = ENG_GPSIMD,
        [ISAE_engine_dma] = ENG_SYNC,      [ISAE_engine_vector] = ENG_VECTOR,
        [ISAE_engine_sync] = ENG_SYNC,
    };
    return dge == ISAE_dge_mode_swdge ? ENG_GPSIMD : asked < sizeof of ? of[asked] : ENG_SYNC;
}

static dma_ring ring_of(const dma_info *d, uint32_t engine, const dma_side *dst,
                        const dma_side *src)
{
    if (dst->indexed || src->indexed || engine == ISAE_engine_gpsimd) {
        return RING_SOFTWARE;
    }
    if (d->trigger == ENG_SCALAR) {
        return RING_SCALAR;
    }
    if (d->trigger == ENG_TENSOR || d->trigger == ENG_VECTOR) {
        return RING_OTHER;
    }
    if (!src->any) {  // a fill: where its first reader or writer most likely is
        return dst->chip ? RING_LOAD : RING_STORE;
    }
    return dst->chip ? (src->chip ? RING_CHIP : RING_LOAD) : (src->chip ? RING_STORE : RING_HBM);
}

// Eight partitions an engine; between HBM and HBM all engines share the bytes.
static uint16_t engines_of(const ir *p, const dma_side *dst, const dma_side *src)
{
    uint32_t n = p->target->dma_engines < 16 ? p->target->dma_engines : 16;
    uint32_t each = p->target->partitions / n;
    const dma_side *s = dst->chip ? dst : src;
    uint16_t all = (uint16_t)((1u << n) - 1), m = 0;
    if (!s->chip) {
        return all;
    }
    for (uint32_t part = s->part0 / each; part * each < s->part0 + s->parts && part < n; part++) {
        m |= (uint16_t)(1u << part);
    }
    return m ? m : 1;
}

static bool is_named(const isa_param *par, const char *head)
{
    return par->name[0] == head[0] && strncmp(par->name, head, strlen(head)) == 0;
}

void dma_plan(const ir *p, uint32_t instr, dma_planned *out)
{
    const ir_instr *in = &p->instrs.at[instr];
    const isa_info *row = &isa_table[in->op];
    *out = (dma_planned){.info.instr = instr};
    dma_info *d = &out->info;
    dma_side *dst = &out->dst, *src = &out->src;
    uint32_t dge = ISAE_dge_mode_unknown, engine = ISAE_engine_unknown;
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (row->params[k].type == PT_DGE && a.kind == IRA_ENUM) {
            dge = a.v;
        } else if (row->params[k].type == PT_ENGINE && a.kind == IRA_ENUM) {
            engine = a.v;
        } else if (a.kind == IRA_INT && is_named(&row->params[k], "priority")) {
            d->priority = (uint8_t)(a.v & 3);
        } else if (a.kind == IRA_VIEW || a.kind == IRA_LIST) {
            add_sides(p, a, is_named(&row->params[k], "dst") ? dst : src);
        }
    }
    d->dge = choose_dge(p, dst, src, dge, engine);
    d->trigger = trigger_of(engine, d->dge);
    d->ring = (uint8_t)ring_of(d, engine, dst, src);
    if (row->group == ISAG_NCC || in->op == ISA_sendrecv || in->op == ISA_core_barrier) {
        d->ring = RING_GROUP;
    }
    d->engines = engines_of(p, dst, src);
    uint64_t pieces = dst->pieces > src->pieces ? dst->pieces : src->pieces;
    d->descriptors = pieces > UINT32_MAX ? UINT32_MAX : (uint32_t)pieces;
    d->bytes = dst->bytes > src->bytes ? dst->bytes : src->bytes;
}
