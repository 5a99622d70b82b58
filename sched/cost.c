#include "sched/cost.h"

#include "sched/stream.h"

#include <string.h>

// ---- arguments

static cost_roles roles_of(const isa_info *row)
{
    cost_roles r;
    memset(&r, -1, sizeof r);
    r.nin = r.nscal = 0;
    for (int8_t k = 0; k < row->nparams; k++) {
        const isa_param *par = &row->params[k];
        switch ((param_type)par->type) {
        case PT_OUT:
        case PT_INOUT:
            if (r.dst < 0 && strncmp(par->name, "reduce", 6) != 0) {
                r.dst = k;
            } else if (strcmp(par->name, "reduce_res") == 0) {
                r.reduce_res = k;
            }
            break;
        case PT_IN:
        case PT_SRC:
            if (r.nin < COST_OPERANDS) {
                r.in[r.nin++] = k;
            }
            break;
        case PT_SCAL:
            if (r.nscal < COST_OPERANDS) {
                r.scal[r.nscal++] = k;
            }
            break;
        case PT_OP: r.op = r.op < 0 ? k : r.op; break;
        case PT_REDCMD: r.reduce_cmd = k; break;
        case PT_PERF: r.perf = k; break;
        case PT_BOOL:
            if (strcmp(par->name, "is_transpose") == 0) {
                r.transpose = k;
            } else if (strcmp(par->name, "is_stationary_onezero") == 0) {
                r.one0 = k;
            } else if (strcmp(par->name, "is_moving_onezero") == 0) {
                r.one1 = k;
            }
            break;
        default: break;
        }
    }
    return r;
}

void coster_init(coster *c, const ir *p, const machine *m)
{
    c->p = p;
    c->m = *m;
    c->dmas = NULL;
    c->ndmas = 0;
    for (unsigned op = 0; op < ISA_COUNT; op++) {
        c->roles[op] = roles_of(&isa_table[op]);
    }
}

void coster_take_dmas(coster *c, const program *pr)
{
    c->dmas = pr->dmas.at;
    c->ndmas = pr->dmas.n;
}

static ir_arg arg_at(const ir *p, const ir_instr *in, int k)
{
    return k >= 0 && k < in->nargs ? p->args.at[in->args + (unsigned)k] : ira_none();
}

// The view that argument k is, in *into; NULL: it is none.
static const ir_view *view_arg(const ir *p, const ir_instr *in, int k, ir_view *into)
{
    ir_arg a = arg_at(p, in, k);
    if (a.kind != IRA_VIEW) {
        return NULL;
    }
    *into = ir_view_at(p, a.v);
    return into;
}

static bool true_arg(const ir *p, const ir_instr *in, int k)
{
    ir_arg a = arg_at(p, in, k);
    return a.kind == IRA_BOOL && a.v;
}

static buffer_kind memory_of(const ir *p, const ir_view *v)
{
    return (buffer_kind)p->tensors.at[v->tensor].buffer;
}

static uint32_t size_of(const ir_view *v)
{
    return dtype_size((dtype)v->dtype);
}

// Innermost stride in bytes of the dimensions with more than one element; the element size when
// there is none.
static uint64_t inner_stride(const ir *p, const ir_view *v)
{
    const ir_dim *d = ir_dims(p, v);
    for (uint32_t k = ir_ndim(p, v); k-- > 1;) {
        if (d[k].count > 1) {
            int64_t s = d[k].stride < 0 ? -d[k].stride : d[k].stride;
            return (uint64_t)s * size_of(v);
        }
    }
    return size_of(v);
}

// ---- engines with a data path

// The longest operand, in elements a partition; dynamic: an address comes from a register.
typedef struct shape_sum {
    uint64_t n;
    bool dynamic, psum, sbuf, wide;
    bool all16, all32;  // dst and inputs: 2-byte floats; 4-byte elements
    bool contiguous;
    unsigned psum_inputs, inputs;
} shape_sum;

static void sum_view(const coster *c, const ir_view *v, bool input, shape_sum *s)
{
    const ir *p = c->p;
    uint64_t n = ir_free_elems(p, v), stride = inner_stride(p, v);
    uint32_t size = size_of(v);
    s->n = n > s->n ? n : s->n;
    s->dynamic |= v->dyn != IR_NONE;
    bool psum = memory_of(p, v) == BUF_PSUM;
    s->psum |= psum;
    s->sbuf |= !psum;
    s->psum_inputs += psum && input;
    s->inputs += input;
    s->wide |= n > 1 && stride > (uint64_t)c->m.wide_stride_bytes;
    s->contiguous &= stride == size;
    s->all16 &= size == 2 && dtype_is_float((dtype)v->dtype);
    s->all32 &= size == 4;
}

static shape_sum sum_operands(const coster *c, const ir_instr *in)
{
    const cost_roles *r = &c->roles[in->op];
    shape_sum s = {.all16 = true, .all32 = true, .contiguous = true};
    const ir_view *v = view_arg(c->p, in, r->dst, &(ir_view){0});
    if (v) {
        sum_view(c, v, false, &s);
    }
    for (unsigned k = 0; k < r->nin; k++) {
        v = view_arg(c->p, in, r->in[k], &(ir_view){0});
        if (v) {
            sum_view(c, v, true, &s);
        }
    }
    return s;
}

static unsigned tile_operands(const coster *c, const ir_instr *in)
{
    const cost_roles *r = &c->roles[in->op];
    unsigned n = 0;
    for (unsigned k = 0; k < r->nscal; k++) {
        n += view_arg(c->p, in, r->scal[k], &(ir_view){0}) != NULL;
    }
    return n;
}

static bool reads_out(const coster *c, const ir_instr *in)
{
    return view_arg(c->p, in, c->roles[in->op].reduce_res, &(ir_view){0}) != NULL;
}

// Cycles an element, and the mode it is reached in.
static double vector_slope(const coster *c, const ir_instr *in, const shape_sum *s, cost *out)
{
    const machine *m = &c->m;
    bool copies = in->op == ISA_tensor_copy || in->op == ISA_tensor_scalar;
    switch ((isa_cost)isa_table[in->op].cost) {
    case COST_TWO_INPUT:
        if (in->op == ISA_tensor_tensor_scan) {
            return m->vector_scan_cycles;
        }
        if (in->op != ISA_tensor_tensor && in->op != ISA_scalar_tensor_tensor) {
            return m->vector_select_cycles;
        }
        if (in->op == ISA_tensor_tensor && s->all16 && !s->psum) {
            out->perf = m->vector_half16_cycles < 1 ? 2 : 1;
            return m->vector_half16_cycles < m->vector_two_cycles ? m->vector_half16_cycles
                                                                  : m->vector_two_cycles;
        }
        return s->psum_inputs == 1 ? m->vector_two_psum_cycles : m->vector_two_cycles;
    case COST_MEMSET: return m->memset_cycles * m->vector_ghz / m->gpsimd_ghz;
    case COST_RECIPROCAL: return m->vector_reciprocal_cycles;
    case COST_BN_AGGR: return m->vector_bn_aggr_cycles;
    case COST_EXPONENTIAL: return m->vector_exp_cycles;
    case COST_QUANTIZE_MX:
    case COST_RAND2: return m->vector_quarter_cycles;
    default: break;
    }
    if (!copies) {
        return m->vector_one_cycles;
    }
    if (s->psum) {
        bool half = s->all16 && s->contiguous && s->sbuf;
        out->perf = half && m->vector_half16_cycles < 1 ? 2 : 1;
        return half ? m->vector_half16_cycles : m->vector_one_cycles;
    }
    if (s->all16) {
        double slope = s->contiguous ? m->vector_fast16_cycles : m->vector_half16_cycles;
        out->perf = slope < 0.4 ? 4 : slope < 1 ? 2 : 1;
        return slope;
    }
    if (s->all32 && s->contiguous) {
        out->perf = m->vector_fast32_cycles < 1 ? 2 : 1;
        return m->vector_fast32_cycles;
    }
    return s->contiguous ? m->vector_convert_cycles : m->vector_one_cycles;
}

static void finish(const coster *c, const shape_sum *s, double ghz, double start_ns, double busy_ns,
                   double overlap_ns, cost *out)
{
    double factor = s->wide ? c->m.wide_stride_factor : 1;
    double floor_ns = (s->dynamic ? c->m.dynamic_cycles : c->m.min_interval_cycles) / ghz;
    double latency = start_ns + busy_ns * factor;
    double issue = latency - overlap_ns;
    issue = issue < floor_ns ? floor_ns : issue;
    latency = latency < issue ? issue : latency;
    out->issue_ps = ps_of_ns(issue);
    out->latency_ps = ps_of_ns(latency);
    out->kind = CK_ENGINE;
    out->flags |= (uint8_t)((s->sbuf ? COST_SBUF : 0) | (s->psum ? COST_PSUM : 0));
}

static void vector_cost(const coster *c, const ir_instr *in, cost *out)
{
    const machine *m = &c->m;
    shape_sum s = sum_operands(c, in);
    double cycle = 1 / m->vector_ghz;
    double start = in->op == ISA_memset ? m->memset_start_ns : m->vector_start_ns;
    double overlap = in->op == ISA_memset ? 0 : m->vector_overlap_ns;
    if (in->op == ISA_nc_transpose) {
        const ir_view *v = view_arg(c->p, in, c->roles[in->op].in[0], &(ir_view){0});
        double blocks = v ? (double)((ir_free_elems(c->p, v) + 31) / 32) : 1;
        finish(c, &s, m->vector_ghz, m->vector_start_ns, blocks * m->vector_transpose_ns, overlap,
               out);
        return;
    }
    start += tile_operands(c, in) ? m->vector_tile_operand_ns : 0;
    double busy = (double)s.n * vector_slope(c, in, &s, out) * cycle;
    if (reads_out(c, in)) {
        busy += m->vector_reduce_out_cycles * cycle;
    }
    if (out->perf > 1) {
        out->flags |= COST_FAST;
    }
    finish(c, &s, m->vector_ghz, start, busy, overlap, out);
}

// Functions that share a table. Those that every table holds: 0.
static uint8_t table_of(op_id op)
{
    switch (op) {
    case OPR_copy:
    case OPR_square:
    case OPR_relu:
    case OPR_abs:
    case OPR_sign:
    case OPR_prelu:
    case OPR_negative: return 0;
    case OPR_sqrt:
    case OPR_rsqrt:
    case OPR_reciprocal: return 1;
    case OPR_gelu:
    case OPR_gelu_dx:
    case OPR_gelu_apprx_tanh:
    case OPR_gelu_apprx_sigmoid:
    case OPR_gelu_apprx_sigmoid_dx: return 2;
    case OPR_silu:
    case OPR_silu_dx: return 3;
    case OPR_erf:
    case OPR_erf_dx: return 4;
    case OPR_sin:
    case OPR_cos:
    case OPR_tan: return 5;
    default: return op >= OPR_COUNT ? 0 : (uint8_t)(8 + op);
    }
}

static void scalar_cost(const coster *c, const ir_instr *in, cost *out)
{
    const machine *m = &c->m;
    shape_sum s = sum_operands(c, in);
    bool function =
        in->op == ISA_activation || in->op == ISA_activation_reduce || in->op == ISA_activate2;
    op_id op = OPR_COUNT;
    if (function && c->roles[in->op].op >= 0) {
        ir_arg a = arg_at(c->p, in, c->roles[in->op].op);
        op = a.kind == IRA_OP ? (op_id)a.v : OPR_COUNT;
        out->table = table_of(op);
    }
    bool plain = !function || op == OPR_copy;
    bool from_psum = s.psum_inputs > 0;
    double start = plain ? (from_psum ? m->scalar_copy_start_psum_ns : m->scalar_copy_start_ns)
                         : (from_psum ? m->scalar_start_psum_ns : m->scalar_start_ns);
    start += (double)tile_operands(c, in) * m->scalar_tile_operand_ns;
    double slope = op == OPR_silu ? m->scalar_silu_cycles : m->scalar_one_cycles;
    if (plain && s.all16 && s.contiguous && m->scalar_fast_cycles < 1) {
        slope = m->scalar_fast_cycles;
        out->perf = 2;
    }
    finish(c, &s, m->scalar_ghz, start, (double)s.n * slope / m->scalar_ghz, m->scalar_overlap_ns,
           out);
    if (reads_out(c, in)) {
        out->issue_ps += ps_of_ns(m->scalar_readout_issue_ns);
        out->latency_ps += ps_of_ns(m->scalar_readout_ns);
    }
}

static void gpsimd_cost(const coster *c, const ir_instr *in, cost *out)
{
    const machine *m = &c->m;
    shape_sum s = sum_operands(c, in);
    double slope = m->gpsimd_one_cycles, n = (double)s.n;
    const cost_roles *r = &c->roles[in->op];
    if (in->op == ISA_memset) {
        finish(c, &s, m->gpsimd_ghz, m->memset_start_ns, n * m->memset_cycles / m->gpsimd_ghz, 0,
               out);
        return;
    }
    switch ((isa_cost)isa_table[in->op].cost) {
    case COST_TWO_INPUT: slope = m->gpsimd_two_cycles; break;
    case COST_TOPK: slope = 4; break;
    case COST_GPSIMD:
        slope = in->op == ISA_iota || in->op == ISA_affine_select ? slope : m->gpsimd_gather_cycles;
        break;
    default: break;
    }
    if (in->op == ISA_tensor_scalar && arg_at(c->p, in, r->op).v == OPR_rsqrt) {
        slope = m->gpsimd_rsqrt_cycles;
    }
    finish(c, &s, m->gpsimd_ghz, m->gpsimd_start_ns, n * slope / m->gpsimd_ghz,
           m->gpsimd_overlap_ns, out);
}

// ---- Tensor engine

// Hardware multiplies and cycles a column of each.
static double pe_cycles(const coster *c, const ir_instr *in, uint8_t *passes, uint64_t *columns,
                        uint64_t *weights, bool *transpose)
{
    const machine *m = &c->m;
    const cost_roles *r = &c->roles[in->op];
    const ir_view *a = view_arg(c->p, in, r->in[0], &(ir_view){0});
    *passes = 1;
    *columns = *weights = 1;
    *transpose = in->op == ISA_nc_transpose || true_arg(c->p, in, r->transpose);
    if (!a) {
        return 1;
    }
    if (in->op == ISA_nc_transpose) {
        uint64_t f = ir_free_elems(c->p, a), part = ir_partitions(c->p, a);
        *columns = part > (f < 64 ? f : 64) ? part : (f < 64 ? f : 64);
        *weights = f;
        return size_of(a) == 4 ? m->pe_fp32_transpose_cycles : 1;
    }
    const ir_view *b = view_arg(c->p, in, r->in[1], &(ir_view){0});
    *weights = ir_free_elems(c->p, a);
    *columns = b ? ir_free_elems(c->p, b) : 1;
    bool fp32 = a->dtype == DT_float32 || (b && b->dtype == DT_float32);
    if (!fp32) {
        return 1;
    }
    if (*transpose && m->pe_fp32_transpose_cycles < m->pe_fp32_cycles) {
        return m->pe_fp32_transpose_cycles;
    }
    if (true_arg(c->p, in, r->one0) || true_arg(c->p, in, r->one1)) {
        return m->pe_fp32_cycles / 2;
    }
    *passes = 2;
    return m->pe_fp32_cycles / 2;
}

static void pe_cost(const coster *c, const ir_instr *in, cost *out)
{
    const machine *m = &c->m;
    uint64_t columns, weights;
    bool transpose;
    double per = pe_cycles(c, in, &out->passes, &columns, &weights, &transpose);
    double cycles = (double)columns * per;
    cycles = cycles < m->pe_min_cycles ? m->pe_min_cycles : cycles;
    double pass = cycles / m->pe_ghz + m->pe_issue_ns;
    out->kind = CK_PE;
    out->issue_ps = ps_of_ns(pass * out->passes);
    out->latency_ps = out->issue_ps + ps_of_ns(m->pe_drain_ns);
    double load = (double)weights / 128 * m->pe_load_cycles / m->pe_ghz;
    out->load_ps = (uint32_t)ps_of_ns(load * (per > 1 ? m->pe_load_wide / out->passes : 1));
}

// ---- DMA

static void choose_unit(const coster *c, const dma_info *d, cost *out)
{
    const machine *m = &c->m;
    if (d->dge == ISAE_dge_mode_swdge) {
        out->unit = DU_GPSIMD;
        out->trigger_ps = ps_of_ns(m->dma_sw_issue_ns);
        out->issue_ps = ps_of_ns(m->dma_sw_start_ns + m->dma_sw_piece_ns * (double)out->pieces +
                                 m->dma_sw_issue_ns);
        out->dispatch_ps = ps_of_ns(m->dma_sw_dispatch_ns);
    } else if (d->dge == ISAE_dge_mode_hwdge && c->p->target->gen >= 3) {
        out->unit = d->trigger == ENG_SCALAR ? DU_SCALAR : DU_SYNC;
        out->issue_ps = ps_of_ns(m->dma_hw_issue_ns);
        out->dispatch_ps = ps_of_ns(m->dma_hw_dispatch_ns);
    } else {
        out->unit = DU_STATIC;
        out->issue_ps = ps_of_ns(m->dma_static_issue_ns);
        out->dispatch_ps = ps_of_ns(m->dma_static_dispatch_ns);
    }
}

static dma_planned plan_of(const coster *c, uint32_t instr)
{
    dma_planned plan;
    dma_plan(c->p, instr, &plan);
    uint32_t lo = 0, hi = c->ndmas;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        *(c->dmas[mid].instr < instr ? &lo : &hi) = c->dmas[mid].instr < instr ? mid + 1 : mid;
    }
    if (lo < c->ndmas && c->dmas[lo].instr == instr) {
        plan.info = c->dmas[lo];
    }
    return plan;
}

static void dma_cost(const coster *c, const ir_instr *in, const dma_planned *plan, cost *out)
{
    const machine *m = &c->m;
    dma_info d = plan->info;
    dma_side dst = plan->dst, src = plan->src;
    uint32_t used = (uint32_t)__builtin_popcount(d.engines);
    out->kind = CK_DMA;
    out->engines = d.engines;
    out->pieces = d.descriptors ? d.descriptors : 1;
    bool transposes = in->op == ISA_dma_transpose;
    if (transposes) {
        uint32_t parts = dst.chip ? dst.parts : src.parts;
        out->pieces = parts ? parts : used;
    }
    out->bytes = d.bytes;
    out->hbm_bytes = (src.chip ? 0 : src.bytes) + (dst.chip ? 0 : dst.bytes);
    double per_piece = m->dma_piece_ns;
    if (!dst.chip && !transposes && dst.bytes < out->pieces * (uint64_t)m->dma_small_write_bytes) {
        per_piece += m->dma_small_write_ns;
    }
    double share = transposes ? (src.chip ? m->dma_transpose_chip_share : m->dma_transpose_share)
                   : in->op == ISA_dma_compute ? m->dma_compute_share
                                               : 1;
    uint32_t mine = (out->pieces + used - 1) / used;
    double moved = (double)d.bytes / (double)used;
    out->work_ps = ps_of_ns((double)mine * per_piece + moved / (m->dma_engine_rate * share));
    out->tail_ps = ps_of_ns(dst.chip ? m->dma_load_ns : m->dma_store_ns);
    choose_unit(c, &d, out);
    out->latency_ps = out->issue_ps + out->dispatch_ps + out->work_ps + out->tail_ps;
}

// ---- all

static void control_cost(const coster *c, const ir_instr *in, cost *out)
{
    const machine *m = &c->m;
    double ns = m->register_ns;
    switch (in->op) {
    case ISA_register_load:
    case ISA_register_store: ns = m->register_load_ns; break;
    case ISA_loop_for:
    case ISA_loop_while: ns = 2 * m->register_ns; break;
    case ISA_loop_end: ns = m->loop_ns; break;
    case ISA_core_barrier: ns = m->core_barrier_ns; break;
    default: break;
    }
    out->kind = CK_CONTROL;
    out->issue_ps = out->latency_ps = ps_of_ns(ns);
}

void cost_of(const coster *c, uint32_t instr, cost *out)
{
    dma_planned plan;
    bool moves = c->p->instrs.at[instr].engine == ENG_DMA;
    if (moves) {
        plan = plan_of(c, instr);
    }
    cost_of_planned(c, instr, moves ? &plan : NULL, out);
}

void cost_of_planned(const coster *c, uint32_t instr, const dma_planned *plan, cost *out)
{
    const ir_instr *in = &c->p->instrs.at[instr];
    *out = (cost){.perf = 1};
    switch (in->op) {
    case ISA_fill_uninit:
    case ISA_device_print:
    case ISA_host_call:
    case ISA_register_alloc: return;
    case ISA_register_move:
    case ISA_register_load:
    case ISA_register_store:
    case ISA_loop_for:
    case ISA_loop_while:
    case ISA_loop_end:
    case ISA_core_barrier: control_cost(c, in, out); return;
    default: break;
    }
    switch ((engine_id)in->engine) {
    case ENG_TENSOR: pe_cost(c, in, out); break;
    case ENG_SCALAR: scalar_cost(c, in, out); break;
    case ENG_VECTOR: vector_cost(c, in, out); break;
    case ENG_GPSIMD: gpsimd_cost(c, in, out); break;
    case ENG_DMA: dma_cost(c, in, plan, out); break;
    default: control_cost(c, in, out); break;
    }
}

static void count_bytes(const ir *p, ir_arg a, uint64_t *into)
{
    if (a.kind == IRA_VIEW) {
        const ir_view *v = ir_view_ref(p, a.v);
        buffer_kind b = memory_of(p, v);
        into[b == BUF_SBUF ? 0 : b == BUF_PSUM ? 1 : 2] += ir_elems(p, v) * size_of(v);
    } else if (a.kind == IRA_LIST) {
        for (uint32_t k = 0; k < (uint32_t)a.aux; k++) {
            count_bytes(p, p->args.at[a.v + k], into);
        }
    }
}

void work_of(const coster *c, uint32_t instr, work *out)
{
    const ir *p = c->p;
    const ir_instr *in = &p->instrs.at[instr];
    const isa_info *row = &isa_table[in->op];
    *out = (work){0};
    if (in->op == ISA_fill_uninit || in->op == ISA_device_print || in->op == ISA_host_call) {
        return;
    }
    for (uint32_t k = 0; k < in->nargs; k++) {
        param_type t = (param_type)row->params[k].type;
        bool writes = t == PT_OUT || t == PT_INOUT ||
                      (t == PT_TENSORS && strncmp(row->params[k].name, "dst", 3) == 0);
        count_bytes(p, p->args.at[in->args + k], writes ? out->write : out->read);
    }
    if (in->engine == ENG_TENSOR) {
        uint64_t columns, weights;
        uint8_t passes;
        bool transpose;
        pe_cycles(c, in, &passes, &columns, &weights, &transpose);
        const ir_view *a = view_arg(p, in, c->roles[in->op].in[0], &(ir_view){0});
        uint64_t rows = a ? ir_partitions(p, a) : 0;
        uint64_t flops =
            in->op == ISA_nc_transpose ? 2 * rows * rows * weights : 2 * rows * weights * columns;
        *(transpose ? &out->transpose_flops : &out->flops) = flops;
    }
}
