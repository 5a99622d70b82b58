#include "sched/clock_internal.h"

#include "lang/place.h"

#include <stdlib.h>

// Each stream has registers and counts its loops itself, as on the machine; a trip count that comes
// from data is the same in all of them: it comes from a trace, entry by entry, or from the caller.

static reg_value *register_of(clock_core *c, unsigned stream, uint32_t reg)
{
    return &c->reg[(size_t)stream * (c->p->registers + 1) + reg];
}

static bool value_of(clock_core *c, unsigned stream, ir_arg a, int64_t *v)
{
    if (a.kind == IRA_INT) {
        *v = ira_integer(a);
        return true;
    }
    if (a.kind != IRA_REG || !register_of(c, stream, a.v)->known) {
        return false;
    }
    *v = register_of(c, stream, a.v)->v;
    return true;
}

void clock_set_register(clock_core *c, unsigned stream, uint32_t instr)
{
    const ir *p = c->p;
    const ir_instr *in = &p->instrs.at[instr];
    for (uint32_t k = 0; p->registers && k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (isa_table[in->op].params[k].type == PT_REGOUT && a.kind == IRA_REG) {
            reg_value *r = register_of(c, stream, a.v);
            r->known = in->op == ISA_register_move && in->nargs > 1 &&
                       value_of(c, stream, p->args.at[in->args + 1], &r->v);
        }
    }
}

static uint32_t line_of(const ir *p, uint32_t place)
{
    loc at = ir_place_loc(p, place);
    return at.src ? (uint32_t)source_locate(at.src, at.at.lo).line : 0;
}

static bool trip_named(const sim *s, const ir *p, const ir_instr *in, uint64_t *n)
{
    uint32_t line = s->opts->trip_count ? line_of(p, in->place) : 0;
    for (uint32_t k = 0; k < s->opts->trip_count; k++) {
        const clock_trip *t = &s->opts->trips[k];
        char *end;
        unsigned long at = strtoul(t->name, &end, 10);
        ir_arg a = in->nargs ? p->args.at[in->args] : ira_none();
        bool reg = t->name[0] == 'r' && a.kind == IRA_REG && t->name[1] &&
                   strtoul(t->name + 1, &end, 10) == a.v && !*end;
        bool name = in->name && strcmp(ir_text(p, in->name), t->name) == 0;
        if (reg || name || (t->name[0] >= '0' && t->name[0] <= '9' && !*end && at == line)) {
            *n = t->count;
            return true;
        }
    }
    return false;
}

// The entry of the trace for what this stream now comes to.
static const control_entry *next_entry(clock_core *c, unsigned stream, uint32_t instr)
{
    uint32_t k = c->number ? c->number[instr] : 0;
    if (!k) {
        return NULL;
    }
    uint32_t *at = &c->entry_at[(size_t)stream * c->numbers + k - 1];
    uint32_t i = c->entry_first[k - 1] + *at;
    if (i >= c->entry_first[k]) {
        return NULL;
    }
    ++*at;
    return c->entries[i];
}

bool clock_loop_enter(sim *s, clock_core *c, unsigned stream, uint32_t instr, open_loop *l)
{
    const ir *p = c->p;
    const ir_instr *in = &p->instrs.at[instr];
    const ir_arg *a = &p->args.at[in->args];
    bool counts = in->op == ISA_loop_for;
    const control_entry *e = next_entry(c, stream, instr);
    int64_t lo = 0, hi = 0, by = 0;
    bool known = counts && value_of(c, stream, a[1], &lo) && value_of(c, stream, a[2], &hi) &&
                 value_of(c, stream, a[3], &by) && by > 0;
    *l = (open_loop){.reg = counts && a[0].kind == IRA_REG ? a[0].v + 1 : 0,
                     .value = lo,
                     .step = by};
    if (trip_named(s, p, in, &l->left)) {
    } else if (known) {
        l->left = hi > lo ? (uint64_t)((hi - lo - 1) / by + 1) : 0;
    } else if (e) {
        l->left = e->count;
    } else {
        c->r->error = CLOCK_NEEDS_TRIP;
        c->r->error_instr = instr;
        return false;
    }
    if (l->reg) {
        *register_of(c, stream, l->reg - 1) = (reg_value){by > 0, lo};
    }
    return true;
}

void clock_loop_next(clock_core *c, unsigned stream, open_loop *l)
{
    l->value += l->step;
    if (l->reg) {
        register_of(c, stream, l->reg - 1)->v = l->value;
    }
}

double clock_share_moved(clock_core *c, unsigned stream, uint32_t instr)
{
    const control_entry *e = next_entry(c, stream, instr);
    return e && e->rows ? (double)e->count / (double)e->rows : 1;
}

// ---- setting up

bool clock_needs_trace(const ir *p)
{
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *in = &p->instrs.at[i];
        for (uint32_t k = 0; k < in->nargs; k++) {
            ir_arg a = p->args.at[in->args + k];
            bool bound = in->op == ISA_loop_while || (in->op == ISA_loop_for && (k == 1 || k == 2));
            if ((bound && a.kind == IRA_REG) ||
                (isa_table[in->op].params[k].type == PT_OOB && a.kind == IRA_ENUM &&
                 a.v == ISAE_oob_mode_skip)) {
                return true;
            }
        }
    }
    return false;
}

// Entries by number, each number's in their order.
static void sort_entries(sim *s, clock_core *c, const control_trace *trace)
{
    c->entry_first = NEW_N(s->mem, uint32_t, c->numbers + 1);
    c->entries = NEW_N(s->mem, const control_entry *, trace->n + 1);
    c->entry_at = NEW_N(s->mem, uint32_t, (size_t)STREAM_COUNT * c->numbers);
    for (size_t i = 0; i < trace->n; i++) {
        uint32_t k = trace->at[i].instr < c->p->instrs.n ? c->number[trace->at[i].instr] : 0;
        c->entry_first[k ? k - 1 : 0] += k != 0;
    }
    uint32_t sum = 0;
    for (uint32_t k = 0; k <= c->numbers; k++) {
        uint32_t n = k < c->numbers ? c->entry_first[k] : 0;
        c->entry_first[k] = sum;
        sum += n;
    }
    for (size_t i = 0; i < trace->n; i++) {
        uint32_t k = trace->at[i].instr < c->p->instrs.n ? c->number[trace->at[i].instr] : 0;
        if (k) {
            c->entries[c->entry_first[k - 1] + c->entry_at[k - 1]++] = &trace->at[i];
        }
    }
    memset(c->entry_at, 0, c->numbers * sizeof *c->entry_at);
}

void clock_control_init(sim *s, clock_core *c, const control_trace *trace)
{
    const ir *p = c->p;
    c->reg = NEW_N(s->mem, reg_value, (size_t)STREAM_COUNT * (p->registers + 1));
    if (!trace || !trace->n) {
        return;
    }
    c->number = NEW_N(s->mem, uint32_t, p->instrs.n);
    for (size_t i = 0; i < trace->n; i++) {
        uint32_t at = trace->at[i].instr;
        if (at < p->instrs.n && !c->number[at]) {
            c->number[at] = ++c->numbers;
        }
    }
    sort_entries(s, c, trace);
}
