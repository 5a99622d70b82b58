#include "sched/profile_make.h"

#include <inttypes.h>
#include <stdlib.h>

// Findings by rule. A rule looks at every instruction that ran and keeps a tally of what it
// dislikes.

const char *finding_name(finding_kind k)
{
    static const char *const names[FIND_KIND_COUNT] = {
#define FINDING(id, name) [FIND_##id] = name,
#include "sched/profile.def"
    };
    return k < FIND_KIND_COUNT ? names[k] : "?";
}

enum {
    SMALL_PIECE_BYTES = 512,    // a DMA engine spends most of its time on starting such a piece
    FEW_ENGINES_BYTES = 16384,  // from here on, more engines would be faster
    TABLE_LOADS_MIN = 3,
    FULL_ARRAY = 128 * 128,
};

typedef struct tally {
    double cost_ns, critical_ns;
    double bytes;
    uint64_t count;
    uint32_t at[FINDING_PLACES], places;
} tally;

// One static view of an HBM tensor that a transfer reads.
typedef struct load {
    uint32_t tensor, ap;
    int64_t offset;
    uint32_t instr;
    uint8_t dtype;
    bool fixed;  // no dynamic part
    uint64_t count, bytes;
} load;

typedef struct finder {
    maker *mk;
    tally of[FIND_KIND_COUNT];
    VEC(load) loads;
    double matmul_ns,
        filled_ns;  // Tensor's time in multiplies; of that, weighted by the array's use
} finder;

static bool same_line(const ir *p, uint32_t a, uint32_t b)
{
    uint32_t x, y, col;
    return p->instrs.at[a].place == p->instrs.at[b].place ||
           (strcmp(place_path(p, p->instrs.at[a].place, &x, &col),
                   place_path(p, p->instrs.at[b].place, &y, &col)) == 0 &&
            x == y);
}

static void name_place(const ir *p, tally *t, uint32_t instr)
{
    for (uint32_t k = 0; k < t->places; k++) {
        if (same_line(p, t->at[k], instr)) {
            return;
        }
    }
    if (t->places < FINDING_PLACES) {
        t->at[t->places++] = instr;
    }
}

static void tally_add(finder *f, finding_kind k, uint32_t instr, double cost_ns)
{
    tally *t = &f->of[k];
    t->cost_ns += cost_ns;
    t->critical_ns += f->mk->critical_ns[instr];
    t->count += f->mk->pr->clock.of[instr].count;
    name_place(f->mk->pr->p, t, instr);
}

// ---- transfers

static void note_loads(finder *f, uint32_t i, uint64_t count)
{
    const ir *p = f->mk->pr->p;
    const ir_instr *in = &p->instrs.at[i];
    const cost_roles *r = &f->mk->cs.roles[in->op];
    for (unsigned k = 0; k < r->nin; k++) {
        int arg = r->in[k];
        ir_arg a = p->args.at[in->args + (unsigned)arg];
        if (a.kind != IRA_VIEW) {
            continue;
        }
        const ir_view *v = ir_view_ref(p, a.v);
        if (!buffer_on_chip((buffer_kind)p->tensors.at[v->tensor].buffer)) {
            load l = {v->tensor, v->ap,   v->offset, i,
                      v->dtype,  !v->dyn, count,     ir_elems(p, v) * dtype_size((dtype)v->dtype)};
            vec_push(f->mk->mem, &f->loads, l);
        }
    }
}

static void look_at_dma(finder *f, uint32_t i, const cost *c, const instr_time *t)
{
    const maker *mk = f->mk;
    const ir_instr *in = &mk->pr->p->instrs.at[i];
    double n = (double)t->count, work_ns = ns_of_ps(c->work_ps);
    double ideal_ns = (double)c->bytes / 16 / mk->cs.m.dma_engine_rate;
    unsigned engines = 0;
    for (unsigned e = 0; e < 16; e++) {
        engines += c->engines >> e & 1;
    }
    if (c->bytes / c->pieces < SMALL_PIECE_BYTES && c->bytes >= 2 * SMALL_PIECE_BYTES &&
        in->op == ISA_dma_copy) {
        tally_add(f, FIND_SMALL_DMA, i, n * (work_ns - ideal_ns * 16 / engines));
    }
    if (engines < 16 && c->bytes >= FEW_ENGINES_BYTES) {
        tally_add(f, FIND_FEW_DMA_ENGINES, i, n * work_ns * (1 - engines / 16.0));
    }
    if (c->unit == DU_GPSIMD) {
        tally_add(f, FIND_SOFTWARE_DGE, i, n * ns_of_ps(c->issue_ps));
    }
    if (spill_of(mk->pr->p, in, NULL)) {
        tally_add(f, FIND_SPILLS, i, n * work_ns);
        f->of[FIND_SPILLS].bytes += n * (double)c->bytes;
    }
    note_loads(f, i, t->count);
}

static int by_view(const void *a, const void *b)
{
    const load *x = a, *y = b;
    if (x->tensor != y->tensor) {
        return x->tensor < y->tensor ? -1 : 1;
    }
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    if (x->ap != y->ap) {
        return x->ap < y->ap ? -1 : 1;
    }
    return (x->instr > y->instr) - (x->instr < y->instr);
}

static bool same_view(const load *a, const load *b)
{
    return a->fixed && b->fixed && a->tensor == b->tensor && a->offset == b->offset &&
           a->ap == b->ap && a->dtype == b->dtype;
}

// Bytes of one tensor that were loaded before: the same view again, or more than it holds.
static void repeats_of(finder *f, const load *l, uint32_t n, tally *t)
{
    const ir *p = f->mk->pr->p;
    uint64_t all = 0, again = 0;
    for (uint32_t k = 0; k < n; k++) {
        all += l[k].count * l[k].bytes;
        uint64_t more = k && same_view(&l[k - 1], &l[k]) ? l[k].count : l[k].count - 1;
        again += l[k].fixed ? more * l[k].bytes : 0;
        if (l[k].fixed && more) {
            name_place(p, t, l[k].instr);
        }
        t->critical_ns += f->mk->critical_ns[l[k].instr];
    }
    uint64_t size = p->tensors.at[l->tensor].size_bytes;
    uint64_t over = all > size ? all - size : 0;
    t->bytes = (double)(again > over ? again : over);
    t->count = all;
    name_place(p, t, l->instr);
}

static void push_finding(finder *f, finding_kind k, const tally *t, const char *text)
{
    profile *pr = f->mk->pr;
    double gain = t->cost_ns;
    if (t->places && pr->critical.n && t->critical_ns < gain) {
        gain = t->critical_ns;
    }
    if (t->cost_ns < 0.005 * pr->sum.body_time_ns || t->cost_ns <= 0) {
        return;
    }
    finding d = {
        .kind = k, .places = t->places, .cost_ns = t->cost_ns, .gain_ns = gain, .text = text};
    memcpy(d.at, t->at, sizeof d.at);
    vec_push(f->mk->mem, &pr->findings, d);
}

static void find_repeats(finder *f)
{
    const ir *p = f->mk->pr->p;
    if (f->loads.n) {
        qsort(f->loads.at, f->loads.n, sizeof *f->loads.at, by_view);
    }
    for (uint32_t i = 0, j; i < f->loads.n; i = j) {
        const load *l = &f->loads.at[i];
        for (j = i; j < f->loads.n && f->loads.at[j].tensor == l->tensor; j++) {
        }
        const ir_tensor *ten = &p->tensors.at[l->tensor];
        tally t = {0};
        repeats_of(f, l, j - i, &t);
        if (spill_home(p, l->tensor) || t.bytes <= 0) {
            continue;
        }
        t.cost_ns = t.bytes / (16 * f->mk->cs.m.dma_engine_rate);
        push_finding(f, FIND_REPEATED_LOAD, &t,
                     arena_printf(f->mk->mem,
                                  "`%s` (%" PRIu64 " bytes): %" PRIu64
                                  " bytes are loaded, %.0f of them again; what is used again can "
                                  "stay in SBUF",
                                  f->mk->pr->tensor_names[l->tensor], ten->size_bytes, t.count,
                                  t.bytes));
    }
}

// ---- Tensor

static void look_at_tensor(finder *f, uint32_t i, const cost *c, const instr_time *t)
{
    const maker *mk = f->mk;
    const ir *p = mk->pr->p;
    const ir_instr *in = &p->instrs.at[i];
    work w;
    work_of(&mk->cs, i, &w);
    double busy = ns_of_ps(t->busy_ps);
    if (w.transpose_flops) {
        tally_add(f, FIND_TRANSPOSES, i, busy);
        return;
    }
    int dst = mk->cs.roles[in->op].dst;
    ir_arg a = dst >= 0 ? p->args.at[in->args + (unsigned)dst] : ira_none();
    if (c->passes > 1) {
        tally_add(f, FIND_FP32_MATMUL, i, busy * 3 / 4);
    }
    if (a.kind != IRA_VIEW || !w.flops) {
        return;
    }
    const ir_view *v = ir_view_ref(p, a.v);
    double columns = (double)ir_elems(p, v) / (double)ir_partitions(p, v);
    double share = (double)w.flops / (2.0 * FULL_ARRAY * columns);
    share = share > 1 ? 1 : share;
    f->matmul_ns += busy;
    f->filled_ns += busy * share;
    if (share < 0.5) {
        tally_add(f, FIND_SMALL_MATMUL, i, busy * (1 - share));
    }
}

static void look(finder *f)
{
    const maker *mk = f->mk;
    const ir *p = mk->pr->p;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const instr_time *t = &mk->pr->clock.of[i];
        if (p->instrs.at[i].op == ISA_host_call) {  // free, so the clock does not count it
            f->of[FIND_HOST_CALLS].count++;
            name_place(p, &f->of[FIND_HOST_CALLS], i);
        }
        if (!t->count) {
            continue;
        }
        cost c;
        cost_of(&mk->cs, i, &c);
        if (c.kind == CK_DMA) {
            look_at_dma(f, i, &c, t);
        } else if (c.kind == CK_PE) {
            look_at_tensor(f, i, &c, t);
        } else if (p->instrs.at[i].engine == ENG_SCALAR && c.table) {
            name_place(p, &f->of[FIND_TABLE_LOADS], i);
            f->of[FIND_TABLE_LOADS].critical_ns += mk->critical_ns[i];
        }
    }
}

// ---- rules

static double active(const finder *f, unsigned track)
{
    return ns_of_ps(f->mk->pr->clock.track[track].active_ps);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

// ": t float32[4, 8], 128 bytes (file:7), stored 1 time, loaded 2 times; ..." of those with the most
// bytes.
static const char *spilled_names(const finder *f)
{
    enum { NAMED = 4 };
    arena *mem = f->mk->mem;
    spill_entries all;
    textbuf t;
    text_init(&t, mem);
    spill_list(mem, f->mk->pr->p, &all);
    for (uint32_t k = 0; k < all.n && k < NAMED; k++) {
        text_cstr(&t, k ? "; " : ": ");
        spill_entry_text(f->mk->pr->p, &all.at[k], &t);
    }
    if (all.n > NAMED) {
        text_printf(&t, "; and %" PRIu32 " more", all.n - NAMED);
    }
    return t.len ? t.at : "";
}

static void dma_rules(finder *f)
{
    arena *mem = f->mk->mem;
    const profile_summary *s = &f->mk->pr->sum;
    double body = s->body_time_ns;
    const tally *t = &f->of[FIND_SMALL_DMA];
    push_finding(f, FIND_SMALL_DMA, t,
                 arena_printf(mem,
                              "%" PRIu64
                              " transfers move pieces of fewer than %d contiguous bytes; "
                              "from 2048 bytes up a DMA engine runs near its rate",
                              t->count, SMALL_PIECE_BYTES));
    t = &f->of[FIND_FEW_DMA_ENGINES];
    push_finding(f, FIND_FEW_DMA_ENGINES, t,
                 arena_printf(mem,
                              "%" PRIu64 " transfers of 16 KiB and more use fewer than 16 DMA "
                              "engines: each serves 8 partitions, so spread the tile over 128",
                              t->count));
    t = &f->of[FIND_SOFTWARE_DGE];
    if (t->cost_ns > 0.2 * body) {
        push_finding(f, FIND_SOFTWARE_DGE, t,
                     arena_printf(mem,
                                  "GpSimd spends %.0f %% of the time on descriptors of %" PRIu64
                                  " transfers: where dtypes are equal, dge_mode=hwdge with "
                                  "engine=sync or scalar makes them in hardware",
                                  percent(t->cost_ns, body), t->count));
    }
    t = &f->of[FIND_SPILLS];
    push_finding(f, FIND_SPILLS, t,
                 arena_printf(mem,
                              "SBUF was full: %.0f bytes go to HBM and back; smaller tiles, or "
                              "tensors that live shorter, need no spill; moved%s",
                              t->bytes, spilled_names(f)));
    if (s->dma_engine_utilization_percent > 70 && active(f, ENG_TENSOR) < 0.8 * body) {
        double most = active(f, ENG_TENSOR);
        for (unsigned e = 0; e < ENG_DMA; e++) {
            most = active(f, e) > most ? active(f, e) : most;
        }
        tally none = {.cost_ns = body - most};
        push_finding(f, FIND_DMA_BOUND, &none,
                     arena_printf(mem,
                                  "the DMA engines are moving data for %.0f %% of the time: fewer "
                                  "bytes (reuse, smaller dtype) is what makes this faster",
                                  s->dma_engine_utilization_percent));
    }
}

static void tensor_rules(finder *f)
{
    arena *mem = f->mk->mem;
    const profile_summary *s = &f->mk->pr->sum;
    const clock_result *c = &f->mk->pr->clock;
    double body = s->body_time_ns, on = active(f, ENG_TENSOR);
    if (s->transpose_flops_flops > 0.1 * s->hardware_flops_flops) {
        push_finding(f, FIND_TRANSPOSES, &f->of[FIND_TRANSPOSES],
                     arena_printf(mem,
                                  "transposes take %.0f %% of the Tensor engine's flops: load the "
                                  "operand transposed, or choose a layout that needs none",
                                  percent(s->transpose_flops_flops, s->hardware_flops_flops)));
    }
    if (on > 0.4 * body) {
        push_finding(f, FIND_FP32_MATMUL, &f->of[FIND_FP32_MATMUL],
                     "fp32 multiplies take four times as long as bf16 ones; where the precision "
                     "allows it, convert the operands once");
    }
    if (on > 0.2 * body && f->filled_ns < 0.5 * f->matmul_ns) {
        push_finding(f, FIND_SMALL_MATMUL, &f->of[FIND_SMALL_MATMUL],
                     arena_printf(mem,
                                  "multiplies use %.0f %% of the 128 x 128 array: K (partitions) "
                                  "and the stationary's columns should both be 128",
                                  percent(f->filled_ns, f->matmul_ns)));
    }
    tally cold = {.cost_ns = s->tensor_cold_time_ns / 2};
    if (s->tensor_cold_time_ns > 0.2 * on) {
        push_finding(f, FIND_TENSOR_COLD, &cold,
                     arena_printf(mem,
                                  "the Tensor engine worked at half clock for %.0f ns: it needs "
                                  "about 7 us of steady work to reach full clock, and gaps take "
                                  "it back",
                                  s->tensor_cold_time_ns));
    }
    double whole = ns_of_ps(c->track[ENG_TENSOR].last_ps - c->track[ENG_TENSOR].first_ps);
    tally idle = {.cost_ns = whole - on};
    if (on > 0.2 * body && idle.cost_ns > 0.1 * whole) {
        push_finding(f, FIND_TENSOR_IDLE, &idle,
                     arena_printf(mem,
                                  "between its first and last multiply the Tensor engine is idle "
                                  "for %.0f ns (%.0f %%); the stalls say what it waits for",
                                  idle.cost_ns, percent(idle.cost_ns, whole)));
    }
}

static void element_rules(finder *f)
{
    arena *mem = f->mk->mem;
    const clock_result *c = &f->mk->pr->clock;
    double body = f->mk->pr->sum.body_time_ns;
    tally *t = &f->of[FIND_TABLE_LOADS];
    t->cost_ns = ns_of_ps(c->table_ps) - f->mk->cs.m.scalar_table_ns;
    if (c->table_loads >= TABLE_LOADS_MIN) {
        push_finding(f, FIND_TABLE_LOADS, t,
                     arena_printf(mem,
                                  "%" PRIu32 " loads of activation tables: group activations of "
                                  "one function",
                                  c->table_loads));
    }
    double v = active(f, ENG_VECTOR), s = active(f, ENG_SCALAR);
    double g = active(f, ENG_GPSIMD) - f->of[FIND_SOFTWARE_DGE].cost_ns;  // not element-wise work
    g = g > 0 ? g : 0;
    double most = v > s ? (v > g ? v : g) : (s > g ? s : g);
    double rest = v + s + g - most;
    tally half = {.cost_ns = (most - rest) / 2};
    if (most > 0.6 * body && rest < 0.5 * most) {
        push_finding(f, FIND_UNBALANCED, &half,
                     arena_printf(mem,
                                  "%s is busy for %.0f %% of the time and the other element-wise "
                                  "engines for %.0f %% together: give them some of its work "
                                  "(engine=)",
                                  most == v   ? "Vector"
                                  : most == s ? "Scalar"
                                              : "GpSimd",
                                  percent(most, body), percent(rest, body)));
    }
}

// What the clock cannot know, at no gain.
static void host_rule(finder *f)
{
    const tally *t = &f->of[FIND_HOST_CALLS];
    if (t->count == 0) {
        return;
    }
    finding d = {.kind = FIND_HOST_CALLS,
                 .places = t->places,
                 .text = arena_printf(
                     f->mk->mem,
                     "%" PRIu64 " instructions call C functions: the time of the host, and of "
                     "the way there and back, is not in this profile",
                     t->count)};
    memcpy(d.at, t->at, sizeof d.at);
    vec_push(f->mk->mem, &f->mk->pr->findings, d);
}

static int most_gain(const void *a, const void *b)
{
    const finding *x = a, *y = b;
    if (x->gain_ns != y->gain_ns) {
        return x->gain_ns < y->gain_ns ? 1 : -1;
    }
    return (int)x->kind - (int)y->kind;
}

void make_findings(maker *mk)
{
    finder *f = NEW(mk->mem, finder);
    f->mk = mk;
    look(f);
    find_repeats(f);
    dma_rules(f);
    tensor_rules(f);
    element_rules(f);
    host_rule(f);
    if (mk->pr->findings.n) {
        qsort(mk->pr->findings.at, mk->pr->findings.n, sizeof *mk->pr->findings.at, most_gain);
    }
}
