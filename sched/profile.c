#include "sched/profile.h"

#include "lang/place.h"

#include <inttypes.h>
#include <stdlib.h>

enum { STALLS_SHOWN = 8, LOADS_SHOWN = 8 };

const char *finding_name(finding_kind k)
{
    static const char *const names[FIND_KIND_COUNT] = {[FIND_STALL] = "stall",
                                                       [FIND_REPEATED_LOAD] = "repeated-load",
                                                       [FIND_SMALL_DMA] = "small-dma",
                                                       [FIND_FEW_DMA_ENGINES] = "few-dma-engines",
                                                       [FIND_TRANSPOSES] = "transposes",
                                                       [FIND_FP32_MATMUL] = "fp32-matmul",
                                                       [FIND_PE_COLD] = "tensor-cold",
                                                       [FIND_PE_IDLE] = "tensor-idle",
                                                       [FIND_TABLE_LOADS] = "table-loads",
                                                       [FIND_UNBALANCED] = "unbalanced",
                                                       [FIND_DMA_BOUND] = "dma-bound"};
    return k < FIND_KIND_COUNT ? names[k] : "?";
}

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

static double ns(int64_t ps)
{
    return (double)ps / 1000.0;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0;
}

typedef struct maker {
    arena *mem;
    profile *pr;
    coster cs;
    work total;
    uint64_t matmul_fp32_ps;  // Tensor time in fp32 multiplies that bf16 would save
    uint32_t matmul_fp32_at;
    double small_ns, few_ns, transpose_ns;
    uint32_t small_at, few_at, transpose_at;
    uint64_t small_count, few_count;
    uint64_t *loaded;   // bytes read from each HBM tensor
    uint32_t *load_at;  // instruction + 1
} maker;

static void add_work(work *sum, const work *w, uint64_t n)
{
    sum->flops += w->flops * n;
    sum->transpose_flops += w->transpose_flops * n;
    for (unsigned k = 0; k < 3; k++) {
        sum->read[k] += w->read[k] * n;
        sum->write[k] += w->write[k] * n;
    }
}

static void look_at_dma(maker *mk, uint32_t i, const cost *c, const instr_time *t)
{
    const ir *p = mk->pr->p;
    const ir_instr *in = &p->instrs.at[i];
    double n = (double)t->count;
    double bytes = (double)c->bytes / (double)c->pieces;
    double ideal = (double)c->bytes / 16 / mk->cs.m.dma_engine_rate;
    double work_ns = ns(c->work_ps);
    unsigned engines = 0;
    for (unsigned e = 0; e < 16; e++) {
        engines += c->engines >> e & 1;
    }
    if (bytes < 512 && c->bytes >= 1024 && in->op == ISA_dma_copy) {
        mk->small_ns += n * (work_ns - ideal * 16 / engines);
        mk->small_at = mk->small_count ? mk->small_at : i;
        mk->small_count += t->count;
    }
    if (engines < 16 && c->bytes >= 16384) {
        mk->few_ns += n * (work_ns - work_ns * engines / 16);
        mk->few_at = mk->few_count ? mk->few_at : i;
        mk->few_count += t->count;
    }
    const cost_roles *r = &mk->cs.roles[in->op];
    for (unsigned k = 0; k < r->nin; k++) {
        int arg = r->in[k];
        ir_arg a = p->args.at[in->args + (unsigned)arg];
        if (a.kind != IRA_VIEW) {
            continue;
        }
        const ir_view *v = &p->views.at[a.v];
        if (!buffer_on_chip((buffer_kind)p->tensors.at[v->tensor].buffer)) {
            mk->loaded[v->tensor] += t->count * ir_elems(p, v) * dtype_size((dtype)v->dtype);
            mk->load_at[v->tensor] = mk->load_at[v->tensor] ? mk->load_at[v->tensor] : i + 1;
        }
    }
}

static void look_at_all(maker *mk)
{
    profile *pr = mk->pr;
    const ir *p = pr->p;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const instr_time *t = &pr->clock.of[i];
        if (!t->count) {
            continue;
        }
        work w;
        work_of(&mk->cs, i, &w);
        add_work(&mk->total, &w, t->count);
        if (p->instrs.at[i].engine == ENG_DMA) {
            cost c;
            cost_of(&mk->cs, i, &c);
            if (c.kind == CK_DMA) {
                look_at_dma(mk, i, &c, t);
            }
        } else if (p->instrs.at[i].engine == ENG_TENSOR) {
            cost c;
            cost_of(&mk->cs, i, &c);
            if (w.transpose_flops) {
                mk->transpose_ns += ns(t->busy_ps);
                mk->transpose_at = i;
            } else if (c.passes > 1) {
                mk->matmul_fp32_ps += (uint64_t)t->busy_ps / 4 * 3;
                mk->matmul_fp32_at = i;
            }
        }
    }
}

static void summarize(maker *mk)
{
    profile *pr = mk->pr;
    const clock_result *c = &pr->clock;
    const machine *m = &mk->cs.m;
    const work *w = &mk->total;
    profile_summary *s = &pr->sum;
    s->total_time_ns = ns(c->total_ps);
    s->body_time_ns = ns(c->body_ps);
    s->launch_time_ns = m->launch_ns;
    s->teardown_time_ns = m->teardown_ns;
    s->instruction_count_count = pr->p->instrs.n;
    s->executed_instruction_count_count = (double)c->steps;
    s->matmul_instruction_count_count = (double)c->hardware_multiplies;
    s->model_flops_flops = (double)w->flops;
    s->transpose_flops_flops = (double)w->transpose_flops;
    s->hardware_flops_flops = (double)(w->flops + w->transpose_flops);
    double peak = 2.0 * 128 * 128 * m->pe_ghz;  // flops a ns
    s->mfu_estimated_percent = percent(s->model_flops_flops, peak * s->total_time_ns);
    s->hfu_estimated_percent = percent(s->hardware_flops_flops, peak * s->total_time_ns);
    double hbm = (double)(w->read[2] + w->write[2]);
    s->mbu_estimated_percent = percent(hbm, m->hbm_stack_rate * s->total_time_ns);
    s->mm_arithmetic_intensity_ratio = hbm > 0 ? s->model_flops_flops / hbm : 0;
    s->peak_flops_bandwidth_ratio_ratio = peak / m->hbm_stack_rate;
    double reach = s->mm_arithmetic_intensity_ratio / s->peak_flops_bandwidth_ratio_ratio;
    s->mfu_max_achievable_estimated_percent = 100 * (reach < 1 ? reach : 1);
    s->hbm_read_bytes = (double)w->read[2];
    s->hbm_write_bytes = (double)w->write[2];
    s->sbuf_read_bytes = (double)w->read[0];
    s->sbuf_write_bytes = (double)w->write[0];
    s->psum_read_bytes = (double)w->read[1];
    s->psum_write_bytes = (double)w->write[1];
    s->dma_active_time_ns = ns(c->dma_active_ps);
    s->dma_active_time_percent = percent(s->dma_active_time_ns, s->total_time_ns);
    s->dma_count_count = (double)c->dma_count;
    s->dma_transfer_total_bytes = (double)c->dma_bytes;
    s->dma_transfer_average_bytes = c->dma_count ? (double)c->dma_bytes / (double)c->dma_count : 0;
    s->dma_descriptor_average_bytes =
        c->dma_pieces ? (double)c->dma_bytes / (double)c->dma_pieces : 0;
    s->dma_static_count_count = (double)c->dma_unit_count[DU_STATIC];
    s->software_dynamic_dma_count_count = (double)c->dma_unit_count[DU_GPSIMD];
    s->hardware_dynamic_dma_count_count =
        (double)(c->dma_unit_count[DU_SYNC] + c->dma_unit_count[DU_SCALAR]);
    double moving = 0;
    for (unsigned e = 0; e < 16; e++) {
        moving += ns(c->dma_engine_ps[e]);
    }
    s->dma_engine_utilization_percent = percent(moving / 16, s->body_time_ns);
    s->tensor_cold_time_ns = ns(c->pe_cold_ps);
    s->activation_table_load_count_count = c->table_loads;
    s->activation_table_load_time_ns = ns(c->table_ps);
    s->port_conflict_time_ns = ns(c->port_ps);
    s->sbuf_peak_bytes = pr->prog->sbuf_peak_bytes;
    s->psum_peak_bytes = pr->prog->psum_peak_bytes;
}

// ---- lines

typedef struct line_key {
    const char *path;
    uint32_t line, instr;
} line_key;

static int by_line(const void *a, const void *b)
{
    const line_key *x = a, *y = b;
    int c = strcmp(x->path, y->path);
    return c                    ? c
           : x->line != y->line ? (x->line < y->line ? -1 : 1)
                                : (x->instr > y->instr) - (x->instr < y->instr);
}

static int most_time(const void *a, const void *b)
{
    const profile_line *x = a, *y = b;
    double p = x->busy_ns + x->wait_ns, q = y->busy_ns + y->wait_ns;
    return p != q ? (p < q ? 1 : -1) : x->line < y->line ? -1 : x->line > y->line;
}

static line_key *keys_of(maker *mk, uint32_t *n)
{
    const ir *p = mk->pr->p;
    line_key *k = NEW_N(mk->mem, line_key, p->instrs.n + 1);
    *n = 0;
    uint32_t last_place = UINT32_MAX, line = 0, col;
    const char *path = "";
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        if (!mk->pr->clock.of[i].count) {
            continue;
        }
        if (p->instrs.at[i].place != last_place) {
            last_place = p->instrs.at[i].place;
            path = place_path(p, last_place, &line, &col);
        }
        k[(*n)++] = (line_key){path, line, i};
    }
    qsort(k, *n, sizeof *k, by_line);
    return k;
}

static void stall_finding(maker *mk, const profile_line *l, uint32_t worst)
{
    const ir *p = mk->pr->p;
    const instr_time *t = &mk->pr->clock.of[worst];
    const ir_instr *in = &p->instrs.at[worst];
    const char *what = "an earlier instruction";
    if (t->waited_for) {
        const ir_instr *by = &p->instrs.at[t->waited_for - 1];
        uint32_t line, col;
        const char *path = place_path(p, by->place, &line, &col);
        what = line ? arena_printf(mk->mem, "%s.%s (%s:%" PRIu32 ")",
                                   engine_name((engine_id)by->engine), isa_table[by->op].name, path,
                                   line)
                    : arena_printf(mk->mem, "%s.%s", engine_name((engine_id)by->engine),
                                   isa_table[by->op].name);
    }
    finding f = {FIND_STALL, worst, l->wait_ns,
                 arena_printf(mk->mem,
                              "%s.%s stood still for %.0f ns in %" PRIu64
                              " executions; its longest wait, %.0f ns, was for %s",
                              engine_name((engine_id)in->engine), isa_table[in->op].name,
                              l->wait_ns, l->count, ns(t->worst_ps), what)};
    vec_push(mk->mem, &mk->pr->findings, f);
}

static void find_lines(maker *mk)
{
    profile *pr = mk->pr;
    uint32_t n;
    line_key *k = keys_of(mk, &n);
    VEC(uint32_t) worst_of = {0};
    for (uint32_t i = 0; i < n;) {
        profile_line l = {k[i].path, k[i].line, 0, 0, 0};
        uint32_t j = i, worst = k[i].instr;
        double most = -1;
        for (; j < n && k[j].line == l.line && strcmp(k[j].path, l.path) == 0; j++) {
            const instr_time *t = &pr->clock.of[k[j].instr];
            l.count += t->count;
            l.busy_ns += ns(t->busy_ps);
            // DMA rings wait for their turn; that costs nobody until an engine waits for them.
            l.wait_ns += pr->p->instrs.at[k[j].instr].engine == ENG_DMA ? 0 : ns(t->wait_ps);
            if (pr->p->instrs.at[k[j].instr].engine != ENG_DMA && ns(t->worst_ps) > most) {
                most = ns(t->worst_ps);
                worst = k[j].instr;
            }
        }
        vec_push(mk->mem, &pr->lines, l);
        vec_push(mk->mem, &worst_of, worst);
        i = j;
    }
    for (uint32_t shown = 0; shown < STALLS_SHOWN; shown++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < pr->lines.n; i++) {
            if (worst_of.at[i] != UINT32_MAX && pr->lines.at[i].wait_ns > 0 &&
                (best == UINT32_MAX || pr->lines.at[i].wait_ns > pr->lines.at[best].wait_ns)) {
                best = i;
            }
        }
        if (best == UINT32_MAX || pr->lines.at[best].wait_ns < 0.01 * pr->sum.body_time_ns) {
            break;
        }
        stall_finding(mk, &pr->lines.at[best], worst_of.at[best]);
        worst_of.at[best] = UINT32_MAX;
    }
    qsort(pr->lines.at, pr->lines.n, sizeof *pr->lines.at, most_time);
}

// ---- findings by rule

static void add(maker *mk, finding_kind k, uint32_t instr, double cost_ns, const char *text)
{
    if (cost_ns >= 0.005 * mk->pr->sum.body_time_ns && cost_ns > 0) {
        finding f = {k, instr, cost_ns, text};
        vec_push(mk->mem, &mk->pr->findings, f);
    }
}

static void find_repeats(maker *mk)
{
    const ir *p = mk->pr->p;
    uint32_t shown = 0;
    for (uint32_t t = 0; t < p->tensors.n && shown < LOADS_SHOWN; t++) {
        const ir_tensor *ten = &p->tensors.at[t];
        if (!mk->load_at[t] || !ten->size_bytes || mk->loaded[t] <= 2 * ten->size_bytes) {
            continue;
        }
        double extra = (double)(mk->loaded[t] - ten->size_bytes);
        double rate = 16 * mk->cs.m.dma_engine_rate;
        add(mk, FIND_REPEATED_LOAD, mk->load_at[t] - 1, extra / rate,
            arena_printf(mk->mem,
                         "`%s` (%" PRIu64 " bytes) is loaded %.1f times over; keeping what is "
                         "used again in SBUF saves %.0f bytes of traffic",
                         ir_text(p, ten->name), ten->size_bytes,
                         (double)mk->loaded[t] / (double)ten->size_bytes, extra));
        shown++;
    }
}

static double active(const maker *mk, unsigned track)
{
    return ns(mk->pr->clock.track[track].active_ps);
}

static void find_by_rule(maker *mk)
{
    profile *pr = mk->pr;
    const profile_summary *s = &pr->sum;
    const clock_result *c = &pr->clock;
    double body = s->body_time_ns;
    find_repeats(mk);
    add(mk, FIND_SMALL_DMA, mk->small_at, mk->small_ns,
        arena_printf(mk->mem,
                     "%" PRIu64 " transfers move pieces of fewer than 512 contiguous bytes; from "
                     "2048 bytes up a DMA engine runs near its rate",
                     mk->small_count));
    add(mk, FIND_FEW_DMA_ENGINES, mk->few_at, mk->few_ns,
        arena_printf(mk->mem,
                     "%" PRIu64 " transfers of 16 KiB and more use fewer than 16 DMA engines: "
                     "each serves 8 partitions, so spread the tile over 128",
                     mk->few_count));
    if (s->transpose_flops_flops > 0.1 * s->hardware_flops_flops) {
        add(mk, FIND_TRANSPOSES, mk->transpose_at, mk->transpose_ns,
            arena_printf(mk->mem,
                         "transposes take %.0f %% of the Tensor engine's flops: load the operand "
                         "transposed, or choose the layout so that none is needed",
                         percent(s->transpose_flops_flops, s->hardware_flops_flops)));
    }
    double fp32 = ns((int64_t)mk->matmul_fp32_ps);
    if (active(mk, ENG_TENSOR) > 0.4 * body) {
        add(mk, FIND_FP32_MATMUL, mk->matmul_fp32_at, fp32,
            "fp32 multiplies take four times as long as bf16 ones; where the precision allows it, "
            "convert the operands once");
    }
    add(mk, FIND_PE_COLD, UINT32_MAX, s->tensor_cold_time_ns / 2,
        arena_printf(mk->mem,
                     "the Tensor engine worked at half clock for %.0f ns: it needs about 7 us of "
                     "steady work to reach full clock, and gaps take it back",
                     s->tensor_cold_time_ns));
    double first = ns(c->track[ENG_TENSOR].first_ps), last = ns(c->track[ENG_TENSOR].last_ps);
    double idle = last - first - active(mk, ENG_TENSOR);
    if (active(mk, ENG_TENSOR) > 0.2 * body && idle > 0.1 * (last - first)) {
        add(mk, FIND_PE_IDLE, UINT32_MAX, idle,
            arena_printf(mk->mem,
                         "between its first and last multiply the Tensor engine is idle for "
                         "%.0f ns (%.0f %%); the stalls above say what it waits for",
                         idle, percent(idle, last - first)));
    }
    if (c->table_loads > 2) {
        add(mk, FIND_TABLE_LOADS, UINT32_MAX, ns(c->table_ps) - mk->cs.m.scalar_table_ns,
            arena_printf(mk->mem,
                         "%" PRIu32 " loads of activation tables: group activations of one "
                         "function",
                         c->table_loads));
    }
    double v = active(mk, ENG_VECTOR), sc = active(mk, ENG_SCALAR), g = active(mk, ENG_GPSIMD);
    double most = v > sc ? (v > g ? v : g) : (sc > g ? sc : g);
    double rest = v + sc + g - most;
    if (most > 0.6 * body && rest < 0.5 * most) {
        add(mk, FIND_UNBALANCED, UINT32_MAX, (most - rest) / 2,
            arena_printf(mk->mem,
                         "%s is busy for %.0f %% of the time and the other element-wise engines "
                         "for %.0f %% together: give them some of its work (engine=)",
                         most == v    ? "Vector"
                         : most == sc ? "Scalar"
                                      : "GpSimd",
                         percent(most, body), percent(rest, body)));
    }
    if (s->dma_engine_utilization_percent > 70 && active(mk, ENG_TENSOR) < 0.8 * body) {
        add(mk, FIND_DMA_BOUND, UINT32_MAX, body - most,
            arena_printf(mk->mem,
                         "the DMA engines are moving data for %.0f %% of the time: fewer bytes "
                         "(reuse, smaller dtype) is what makes this faster",
                         s->dma_engine_utilization_percent));
    }
}

static int dearest(const void *a, const void *b)
{
    const finding *x = a, *y = b;
    return x->cost_ns != y->cost_ns ? (x->cost_ns < y->cost_ns ? 1 : -1)
                                    : (int)x->kind - (int)y->kind;
}

bool profile_make(arena *mem, const program *const *cores, uint32_t n, uint32_t core,
                  const clock_opts *opts, profile *pr)
{
    const ir *p = cores[core]->ir;
    *pr = (profile){.prog = cores[core], .p = p};
    clock_result all[CLOCK_CORES];
    bool ok = clock_run(mem, cores, n, opts, all);
    for (uint32_t k = 0; k < n && !ok; k++) {
        core = all[k].error ? k : core;
    }
    pr->clock = all[core];
    if (!ok) {
        pr->prog = cores[core];
        pr->p = cores[core]->ir;
        return false;
    }
    maker *mk = NEW(mem, maker);
    mk->mem = mem;
    mk->pr = pr;
    mk->loaded = NEW_N(mem, uint64_t, p->tensors.n + 1);
    mk->load_at = NEW_N(mem, uint32_t, p->tensors.n + 1);
    coster_init(&mk->cs, p, opts->m ? opts->m : machine_of(p->target));
    look_at_all(mk);
    summarize(mk);
    find_lines(mk);
    find_by_rule(mk);
    if (pr->findings.n) {
        qsort(pr->findings.at, pr->findings.n, sizeof *pr->findings.at, dearest);
    }
    return true;
}
