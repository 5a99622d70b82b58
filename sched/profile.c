#include "sched/profile.h"

#include "lang/place.h"
#include "sched/profile_make.h"

#include <math.h>

const char *place_path(const ir *p, uint32_t place, uint32_t *line, uint32_t *col)
{
    loc at = ir_place_loc(p, place);
    *line = *col = 0;
    if (at.src) {
        linecol lc = source_locate(at.src, at.at.lo);
        *line = (uint32_t)lc.line;
        *col = (uint32_t)lc.col;
        return at.src->name;
    }
    for (uint32_t k = place; k; k = p->places.at[k].parent) {
        uint8_t kind = p->places.at[k].kind;
        if (kind == PLACE_SITE || kind == PLACE_CALL) {
            return ir_text(p, p->files.at[p->places.at[k].file].name);
        }
    }
    return "";
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0;
}

// ---- sums over instructions

typedef struct sums {
    work all;
    uint64_t spill_save, spill_reload;
    uint64_t dma_bytes[DU_COUNT];
    uint64_t collectives;
    uint64_t instructions;  // that ran
} sums;

static void add_opcode(maker *mk, uint32_t i, const work *w, uint64_t bytes, uint32_t *seen)
{
    profile *pr = mk->pr;
    const ir_instr *in = &pr->p->instrs.at[i];
    const instr_time *t = &pr->clock.of[i];
    uint32_t *k = &seen[in->op * (ENG_DMA + 1u) + in->engine];
    if (!*k) {
        profile_opcode o = {.op = in->op, .engine = in->engine};
        vec_push(mk->mem, &pr->opcodes, o);
        *k = pr->opcodes.n;
    }
    profile_opcode *o = &pr->opcodes.at[*k - 1];
    o->count += t->count;
    o->busy_ns += ns_of_ps(t->busy_ps);
    o->wait_ns += ns_of_ps(t->wait_ps);
    o->flops += t->count * (w->flops + w->transpose_flops);
    o->bytes += t->count * bytes;
}

static void add_dma(maker *mk, uint32_t i, sums *s, const cost *c)
{
    const ir_instr *in = &mk->pr->p->instrs.at[i];
    uint64_t bytes = mk->pr->clock.of[i].count * c->bytes;
    s->dma_bytes[c->unit] += bytes;
    spill_side side = spill_of(mk->pr->p, in, NULL);
    s->spill_save += side == SPILL_SAVE ? bytes : 0;
    s->spill_reload += side == SPILL_RELOAD ? bytes : 0;
    s->collectives += isa_table[in->op].group == ISAG_NCC ? mk->pr->clock.of[i].count : 0;
}

static void sum_up(maker *mk, sums *s)
{
    const ir *p = mk->pr->p;
    uint32_t *seen = NEW_N(mk->mem, uint32_t, (size_t)ISA_COUNT * (ENG_DMA + 1));
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        uint64_t n = mk->pr->clock.of[i].count;
        if (!n) {
            continue;
        }
        s->instructions++;
        work w;
        work_of(&mk->cs, i, &w);
        s->all.flops += w.flops * n;
        s->all.transpose_flops += w.transpose_flops * n;
        for (unsigned k = 0; k < 3; k++) {
            s->all.read[k] += w.read[k] * n;
            s->all.write[k] += w.write[k] * n;
        }
        cost c = {0};
        if (p->instrs.at[i].engine == ENG_DMA) {
            cost_of(&mk->cs, i, &c);
            if (c.kind == CK_DMA) {
                add_dma(mk, i, s, &c);
            }
        }
        uint64_t bytes = c.kind == CK_DMA ? c.bytes
                                          : w.read[0] + w.read[1] + w.read[2] + w.write[0] +
                                                w.write[1] + w.write[2];
        add_opcode(mk, i, &w, bytes, seen);
    }
}

// ---- queues

static void make_queues(maker *mk)
{
    profile *pr = mk->pr;
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &pr->clock.events.at[i];
        if (e->track < TRACK_DMA0) {
            continue;
        }
        cost c;
        cost_of(&mk->cs, e->instr, &c);
        profile_queue *q = &pr->queue[e->track];
        q->bytes += c.bytes;
        q->packets += c.pieces;
        q->moving_ns += ns_of_ps(e->end_ps - e->issued_ps);
    }
}

// ---- the summary

static bool is_engine(const maker *mk, const clock_event *e)
{
    (void)mk;
    return e->track < TRACK_DMA0;
}

static unsigned unit_of(const maker *mk, const clock_event *e)
{
    cost c;
    cost_of(&mk->cs, e->instr, &c);
    return c.kind == CK_DMA ? c.unit : DU_COUNT;
}

static bool is_static(const maker *mk, const clock_event *e)
{
    return e->track >= TRACK_DMA0 && unit_of(mk, e) == DU_STATIC;
}

static bool is_software(const maker *mk, const clock_event *e)
{
    return e->track >= TRACK_DMA0 && unit_of(mk, e) == DU_GPSIMD;
}

static bool is_hardware(const maker *mk, const clock_event *e)
{
    unsigned u = e->track >= TRACK_DMA0 ? unit_of(mk, e) : DU_COUNT;
    return u == DU_SYNC || u == DU_SCALAR;
}

static bool is_collective(const maker *mk, const clock_event *e)
{
    return isa_table[mk->pr->p->instrs.at[e->instr].op].group == ISAG_NCC;
}

// What only the executions themselves can say.
static void summarize_events(maker *mk)
{
    profile_summary *s = &mk->pr->sum;
    bool known = mk->pr->clock.events.n && !mk->pr->clock.events_cut;
    s->total_active_time_ns = known ? events_cover_ns(mk, is_engine) : NAN;
    s->total_active_time_percent = 100 * s->total_active_time_ns / s->total_time_ns;
    s->static_dma_active_time_ns = known ? events_cover_ns(mk, is_static) : NAN;
    s->software_dynamic_dma_active_time_ns = known ? events_cover_ns(mk, is_software) : NAN;
    s->hardware_dynamic_dma_active_time_ns = known ? events_cover_ns(mk, is_hardware) : NAN;
    s->cc_op_active_time_ns = known ? events_cover_ns(mk, is_collective) : NAN;
}

static void summarize_work(maker *mk, const work *w)
{
    profile_summary *s = &mk->pr->sum;
    const machine *m = &mk->cs.m;
    s->model_flops_flops = (double)w->flops;
    s->transpose_flops_flops = (double)w->transpose_flops;
    s->hardware_flops_flops = (double)(w->flops + w->transpose_flops);
    double peak = 2.0 * 128 * 128 * m->pe_ghz;  // flops a ns, 2-byte types
    double hbm = (double)(w->read[2] + w->write[2]);
    s->mfu_estimated_percent = percent(s->model_flops_flops, peak * s->total_time_ns);
    s->hfu_estimated_percent = percent(s->hardware_flops_flops, peak * s->total_time_ns);
    s->mbu_estimated_percent = percent(hbm, m->hbm_stack_rate * s->total_time_ns);
    s->mm_arithmetic_intensity_ratio = hbm > 0 ? s->model_flops_flops / hbm : 0;
    s->peak_flops_bandwidth_ratio_ratio = peak / m->hbm_stack_rate;
    double reach = s->mm_arithmetic_intensity_ratio / s->peak_flops_bandwidth_ratio_ratio;
    s->mfu_max_achievable_estimated_percent = 100 * (reach < 1 ? reach : 1);
    s->roofline_ceiling_flops_per_ns = peak * (reach < 1 ? reach : 1);
    s->roofline_achieved_flops_per_ns =
        s->body_time_ns > 0 ? s->model_flops_flops / s->body_time_ns : 0;
    s->roofline_achieved_percent =
        percent(s->roofline_achieved_flops_per_ns, s->roofline_ceiling_flops_per_ns);
    s->sbuf_read_bytes = (double)w->read[0];
    s->sbuf_write_bytes = (double)w->write[0];
    s->psum_read_bytes = (double)w->read[1];
    s->psum_write_bytes = (double)w->write[1];
    s->hbm_read_bytes = (double)w->read[2];
    s->hbm_write_bytes = (double)w->write[2];
}

static void summarize_dma(maker *mk, const sums *sum)
{
    profile_summary *s = &mk->pr->sum;
    const clock_result *c = &mk->pr->clock;
    double bytes = (double)c->dma_bytes, moving = 0;
    s->dma_active_time_ns = ns_of_ps(c->dma_active_ps);
    s->dma_active_time_percent = percent(s->dma_active_time_ns, s->total_time_ns);
    s->dma_transfer_count = (double)c->dma_count;
    s->dma_transfer_total_bytes = bytes;
    s->dma_transfer_average_bytes = c->dma_count ? bytes / (double)c->dma_count : 0;
    s->dma_throughput_bytes_per_ns = c->dma_active_ps ? bytes / s->dma_active_time_ns : 0;
    s->dma_packet_count = (double)c->dma_pieces;
    s->dma_packet_average_bytes = c->dma_pieces ? bytes / (double)c->dma_pieces : 0;
    for (unsigned e = 0; e < 16; e++) {
        moving += ns_of_ps(c->dma_engine_ps[e]);
    }
    s->dma_engine_utilization_percent = percent(moving / 16, s->body_time_ns);
    s->static_dma_count = (double)c->dma_unit_count[DU_STATIC];
    s->static_dma_bytes = (double)sum->dma_bytes[DU_STATIC];
    s->software_dynamic_dma_count = (double)c->dma_unit_count[DU_GPSIMD];
    s->software_dynamic_dma_bytes = (double)sum->dma_bytes[DU_GPSIMD];
    s->hardware_dynamic_dma_count =
        (double)(c->dma_unit_count[DU_SYNC] + c->dma_unit_count[DU_SCALAR]);
    s->hardware_dynamic_dma_bytes = (double)(sum->dma_bytes[DU_SYNC] + sum->dma_bytes[DU_SCALAR]);
    s->cc_op_count = (double)sum->collectives;
    s->spill_save_bytes = (double)sum->spill_save;
    s->spill_reload_bytes = (double)sum->spill_reload;
}

static void summarize(maker *mk)
{
    profile *pr = mk->pr;
    const clock_result *c = &pr->clock;
    profile_summary *s = &pr->sum;
    sums sum = {0};
    sum_up(mk, &sum);
    s->total_time_ns = ns_of_ps(c->total_ps);
    s->body_time_ns = ns_of_ps(c->body_ps);
    s->launch_time_ns = mk->cs.m.launch_ns;
    s->teardown_time_ns = mk->cs.m.teardown_ns;
    s->neuroncore_cycle_count = floor(s->total_time_ns * mk->cs.m.gpsimd_ghz);
    s->instruction_count = (double)sum.instructions;
    s->executed_instruction_count = (double)c->steps;
    s->matmul_instruction_count = (double)c->hardware_multiplies;
    summarize_work(mk, &sum.all);
    summarize_dma(mk, &sum);
    summarize_events(mk);
    s->sbuf_peak_bytes = pr->program->sbuf_peak_bytes;
    s->psum_peak_bytes = pr->program->psum_peak_bytes;
    s->tensor_cold_time_ns = ns_of_ps(c->pe_cold_ps);
    s->activation_table_load_count = c->table_loads;
    s->activation_table_load_time_ns = ns_of_ps(c->table_ps);
    s->port_conflict_time_ns = ns_of_ps(c->port_ps);
    s->core_wait_time_ns = ns_of_ps(c->core_ps);
}

static void make(arena *mem, profile *pr)
{
    maker *mk = NEW(mem, maker);
    mk->mem = mem;
    mk->pr = pr;
    coster_init(&mk->cs, pr->p, &pr->m);
    coster_take_dmas(&mk->cs, pr->program);
    summarize(mk);
    make_critical(mk);
    make_lines(mk);
    make_names(mk);
    make_areas(mk);
    make_queues(mk);
    make_findings(mk);
}

bool profile_make(arena *mem, const program *const *cores, uint32_t n, const clock_opts *opts,
                  profile *out)
{
    clock_result *all = NEW_N(mem, clock_result, CLOCK_CORES);
    bool fine = clock_run(mem, cores, n, opts, all);
    for (uint32_t i = 0; i < n; i++) {
        const ir *p = cores[i]->ir;
        out[i] = (profile){.program = cores[i],
                           .p = p,
                           .m = opts->m ? *opts->m : *machine_of(p->target),
                           .clock = all[i]};
    }
    for (uint32_t i = 0; i < n && fine; i++) {
        make(mem, &out[i]);
    }
    return fine;
}
