#include "sched/stream.h"

#include "sched/cost.h"

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

void choose_engines(ir *p)
{
    enum { DST, ENGINE = 2 };  // of memset
    for (uint32_t i = 0; p->target->gen >= 3 && i < p->instrs.n; i++) {
        ir_instr *in = &p->instrs.at[i];
        const ir_arg *a = &p->args.at[in->args];
        if (in->op == ISA_memset && in->nargs > ENGINE && a[ENGINE].v == ISAE_engine_unknown &&
            p->tensors.at[p->views.at[a[DST].v].tensor].buffer == BUF_PSUM) {
            in->engine = ENG_GPSIMD;
        }
    }
}

void stream_plan_make(arena *mem, program *pr, stream_plan *sp)
{
    const ir *p = pr->ir;
    *sp = (stream_plan){0};
    sp->loop_of = NEW_N(mem, uint32_t, p->instrs.n);
    sp->mask = NEW_N(mem, stream_mask, p->instrs.n);
    planner pl = {.mem = mem, .p = p, .sp = sp};
    find_loops(&pl);
    pr->dmas.n = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        if (p->instrs.at[i].engine == ENG_DMA) {
            vec_push(mem, &pr->dmas, dma_plan(p, i, NULL, NULL));
        }
    }
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

dma_info dma_plan(const ir *p, uint32_t instr, dma_side *dst_out, dma_side *src_out)
{
    const ir_instr *in = &p->instrs.at[instr];
    const isa_info *row = &isa_table[in->op];
    dma_side dst = {0}, src = {0};
    uint32_t dge = ISAE_dge_mode_unknown, engine = ISAE_engine_unknown;
    dma_info d = {.instr = instr};
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (row->params[k].type == PT_DGE && a.kind == IRA_ENUM) {
            dge = a.v;
        } else if (row->params[k].type == PT_ENGINE && a.kind == IRA_ENUM) {
            engine = a.v;
        } else if (a.kind == IRA_INT && strcmp(row->params[k].name, "priority") == 0) {
            d.priority = (uint8_t)(a.v & 3);
        } else {
            add_sides(p, a, strncmp(row->params[k].name, "dst", 3) == 0 ? &dst : &src);
        }
    }
    d.dge = choose_dge(p, &dst, &src, dge, engine);
    d.trigger = trigger_of(engine, d.dge);
    d.ring = (uint8_t)ring_of(&d, engine, &dst, &src);
    if (row->group == ISAG_NCC || in->op == ISA_sendrecv || in->op == ISA_core_barrier) {
        d.ring = RING_GROUP;
    }
    d.engines = engines_of(p, &dst, &src);
    uint64_t pieces = dst.pieces > src.pieces ? dst.pieces : src.pieces;
    d.descriptors = pieces > UINT32_MAX ? UINT32_MAX : (uint32_t)pieces;
    d.bytes = dst.bytes > src.bytes ? dst.bytes : src.bytes;
    if (dst_out) {
        *dst_out = dst;
    }
    if (src_out) {
        *src_out = src;
    }
    return d;
}

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

// Busy time of each engine; of GpSimd without what it does for transfers in *computing.
static void sum_busy(const program *pr, int64_t busy[ENG_COUNT], int64_t *computing)
{
    coster cs;
    coster_init(&cs, pr->ir, machine_of(pr->ir->target));
    *computing = 0;
    for (uint32_t i = 0; i < pr->ir->instrs.n; i++) {
        cost c;
        cost_of(&cs, i, &c);
        bool started = c.kind == CK_DMA && c.unit == DU_GPSIMD;
        unsigned e = started ? ENG_GPSIMD : pr->ir->instrs.at[i].engine;
        busy[e] += c.kind == CK_DMA && !started ? 0 : c.issue_ps;
        *computing += !started && e == ENG_GPSIMD ? c.issue_ps : 0;
    }
}

void choose_generators(program *pr)
{
    const ir *p = pr->ir;
    int64_t busy[ENG_COUNT] = {0}, computing;
    if (p->target->gen < 3) {
        return;
    }
    sum_busy(pr, busy, &computing);
    for (unsigned e = 0; e < ENG_COUNT; e++) {
        if (!computing || busy[e] > busy[ENG_GPSIMD]) {
            return;
        }
    }
    for (uint32_t k = 0; k < pr->dmas.n; k++) {
        dma_info *d = &pr->dmas.at[k];
        dma_side dst, src;
        dma_plan(p, d->instr, &dst, &src);
        if (d->dge != ISAE_dge_mode_swdge || asks(p, &p->instrs.at[d->instr]) || dst.indexed ||
            src.indexed || (src.any && dst.dtype != src.dtype)) {
            continue;
        }
        d->dge = ISAE_dge_mode_hwdge;
        d->trigger = d->ring == RING_STORE ? ENG_SCALAR : ENG_SYNC;
    }
}
