#include "runtime/step.h"

#include <nki/tool.h>

#include <stdlib.h>
#include <string.h>

// Where a core is. An event's memory may be read until the run ends, its operands only during the
// call.
typedef struct core_state {
    bool begun, ended;
    device_event at;
    uint64_t *trips;  // by instruction that begins a loop
    uint32_t last;    // the instruction before; UINT32_MAX: none
} core_state;

struct nki_step {
    nki_kernel *k;
    uint32_t core;
    const char *failure;  // NULL: none
    core_state cores[COMPILE_CORES_MAX];
};

struct step_run {
    nki_step step;
};

// ---- following a run

static bool is_loop(const ir *p, uint32_t i)
{
    return p->instrs.at[i].op == ISA_loop_for || p->instrs.at[i].op == ISA_loop_while;
}

// A loop comes round when its first instruction follows its begin or its end.
static void count_trips(core_state *c, const device_event *e)
{
    const ir *p = e->program;
    if (is_loop(p, e->instr)) {
        c->trips[e->instr] = 0;
    }
    uint32_t before = e->instr - 1;
    if (e->instr > 0 && is_loop(p, before) &&
        (c->last == before || p->instrs.at[c->last].op == ISA_loop_end)) {
        c->trips[before]++;
    }
    c->last = e->instr;
}

static bool before(void *ctx, const device_event *e)
{
    nki_step *s = ctx;
    core_state *c = &s->cores[e->core];
    s->core = e->core;
    c->begun = true;
    c->ended = false;
    c->at = *e;
    count_trips(c, e);
    return !s->k->observe_before || s->k->observe_before(s->k->observe_ctx, s) == 0;
}

static bool after(void *ctx, const device_event *e)
{
    nki_step *s = ctx;
    core_state *c = &s->cores[e->core];
    s->core = e->core;
    c->at = *e;
    bool ok = !s->k->observe_after || s->k->observe_after(s->k->observe_ctx, s) == 0;
    c->ended = e->instr + 1 == e->program->instrs.n;  // or it jumps back: begun again by `before`
    return ok;
}

static void failed(void *ctx, const device_event *e, const char *why)
{
    nki_step *s = ctx;
    core_state *c = &s->cores[e->core];
    if (e->operands == 0 && (!c->begun || c->last != e->instr)) {
        count_trips(c, e);
    }
    s->core = e->core;
    s->failure = why;
    c->begun = true;
    c->ended = false;
    c->at = *e;
    if (s->k->observe_failed) {
        s->k->observe_failed(s->k->observe_ctx, s);
    }
}

step_run *step_run_create(nki_kernel *k, device_observer *ob)
{
    step_run *r = calloc(1, sizeof *r);
    bool ok = r != NULL;
    for (uint32_t i = 0; ok && i < k->core_count; i++) {
        r->step.cores[i].last = UINT32_MAX;
        r->step.cores[i].trips =
            calloc(k->core[i].pr->ir->instrs.n + 1, sizeof *r->step.cores[i].trips);
        ok = r->step.cores[i].trips != NULL;
    }
    if (!ok) {
        step_run_free(r);
        return NULL;
    }
    r->step.k = k;
    *ob = (device_observer){before, after, failed, &r->step};
    return r;
}

void step_run_free(step_run *r)
{
    for (uint32_t i = 0; r && i < COMPILE_CORES_MAX; i++) {
        free(r->step.cores[i].trips);
    }
    free(r);
}

nki_status nki_tool_observe(nki_kernel *k, nki_step_fn before_fn, nki_step_fn after_fn,
                            nki_step_fn failed_fn, void *fn_ctx)
{
    if (!k || k->shared) {
        return NKI_ERR_ARG;
    }
    k->observe_before = before_fn;
    k->observe_after = after_fn;
    k->observe_failed = failed_fn;
    k->observe_ctx = fn_ctx;
    return NKI_OK;
}

// ---- what a step tells

static const core_state *state(const nki_step *s, uint32_t core)
{
    return s && core < s->k->core_count && s->cores[core].begun ? &s->cores[core] : NULL;
}

uint32_t nki_step_core(const nki_step *s)
{
    return s->core;
}

const char *nki_step_failure(const nki_step *s)
{
    return s->failure;
}

size_t nki_step_instr(const nki_step *s, uint32_t core)
{
    const core_state *c = state(s, core);
    return c && !c->ended ? c->at.instr : NKI_NOWHERE;
}

uint64_t nki_step_trip(const nki_step *s, uint32_t core, size_t begin)
{
    const core_state *c = state(s, core);
    return c && begin < c->at.program->instrs.n ? c->trips[begin] : 0;
}

size_t nki_step_register_count(const nki_step *s, uint32_t core)
{
    const core_state *c = state(s, core);
    return c ? c->at.program->registers : 0;
}

nki_status nki_step_register(const nki_step *s, uint32_t core, size_t reg, int32_t *out)
{
    const core_state *c = state(s, core);
    if (!c || !out || reg >= c->at.program->registers) {
        return NKI_ERR_ARG;
    }
    *out = c->at.regs[reg];
    return NKI_OK;
}

// ---- reading memory

// Elements between neighbours of dimension d in a tensor's memory; on chip dimension 0 is apart.
static uint64_t pitch(const ir_tensor *t, uint32_t d)
{
    uint64_t n = 1;
    for (uint32_t k = d + 1; k < t->ndim; k++) {
        n *= t->shape[k];
    }
    return n;
}

static const void *element(const device_event *e, uint32_t tensor, const size_t *index)
{
    const ir_tensor *t = &e->program->tensors.at[tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    uint64_t at = 0;
    for (uint32_t d = chip ? 1 : 0; d < t->ndim; d++) {
        at += index[d] * pitch(t, d);
    }
    return device_tensor_byte(e, tensor, chip ? (uint32_t)index[0] : 0,
                              at * dtype_size((dtype)t->dtype));
}

// Steps through counts like an odometer; false at the end.
static bool next_index(size_t *at, const size_t *count, size_t ndim)
{
    for (size_t d = ndim; d-- > 0;) {
        if (++at[d] < count[d]) {
            return true;
        }
        at[d] = 0;
    }
    return false;
}

nki_status nki_step_read(const nki_step *s, uint32_t core, size_t tensor, const nki_range *ranges,
                         nki_tensor **out)
{
    const core_state *c = state(s, core);
    if (!c || !out || tensor >= c->at.program->tensors.n) {
        return NKI_ERR_ARG;
    }
    const ir_tensor *t = &c->at.program->tensors.at[tensor];
    size_t count[NKI_MAX_DIMS] = {0}, at[NKI_MAX_DIMS] = {0}, size = dtype_size((dtype)t->dtype);
    for (uint32_t d = 0; d < t->ndim; d++) {
        const nki_range *r = &ranges[d];
        if (r->count == 0 || r->lo >= t->shape[d] ||
            (r->count > 1 && r->step > (t->shape[d] - 1 - r->lo) / (r->count - 1))) {
            return NKI_ERR_ARG;
        }
        count[d] = r->count;
    }
    nki_status st = nki_tensor_create(s->k->ctx, (nki_dtype)t->dtype, t->ndim, count, out);
    if (st != NKI_OK) {
        return st;
    }
    char *to = nki_tensor_data(*out);
    do {
        size_t index[NKI_MAX_DIMS];
        for (uint32_t d = 0; d < t->ndim; d++) {
            index[d] = ranges[d].lo + at[d] * ranges[d].step;
        }
        const void *from = element(&c->at, (uint32_t)tensor, index);
        if (from) {
            memcpy(to, from, size);
        }
        to += size;
    } while (next_index(at, count, t->ndim));
    return NKI_OK;
}

// ---- operands

static uint32_t shape_of(const device_event *e, uint32_t i, size_t *shape)
{
    const ir *p = e->program;
    const ir_view *v = ir_view_ref(p, device_operand_at(e, i).view);
    uint32_t ndim = ir_ndim(p, v);
    for (uint32_t d = 0; d < ndim; d++) {
        shape[d] = ir_dims(p, v)[d].count;
    }
    return ndim;
}

// The index in its tensor of the element at p.
static void index_at(const device_event *e, uint32_t tensor, const char *p, size_t *index)
{
    const ir_tensor *t = &e->program->tensors.at[tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    const char *base = device_tensor_byte(e, tensor, 0, 0);
    uint64_t at = (uint64_t)(p - base);
    index[0] = 0;
    if (chip && t->partitions > 1) {
        const char *second = device_tensor_byte(e, tensor, 1, 0);
        uint64_t stride = (uint64_t)(second - base);
        index[0] = at / stride;
        at %= stride;
    }
    at /= dtype_size((dtype)t->dtype);
    for (uint32_t d = chip ? 1 : 0; d < t->ndim; d++) {
        uint64_t unit = pitch(t, d);
        index[d] = at / unit;
        at %= unit;
    }
}

// Finds first, last and number of distinct indices of each dimension; an operand that has as many
// elements as their product, evenly spaced, is those ranges.
typedef struct box {
    size_t lo[NKI_MAX_DIMS], hi[NKI_MAX_DIMS], step[NKI_MAX_DIMS];
    uint64_t elems;
} box;

static void box_add(box *b, const size_t *index, size_t ndim)
{
    for (size_t d = 0; d < ndim; d++) {
        if (b->elems == 0) {
            b->lo[d] = b->hi[d] = index[d];
            continue;
        }
        size_t away = index[d] > b->lo[d] ? index[d] - b->lo[d] : b->lo[d] - index[d];
        for (size_t a = b->step[d], r = away; r;) {  // greatest common divisor
            size_t next = a % r;
            a = r;
            r = next;
            b->step[d] = a;
        }
        b->lo[d] = index[d] < b->lo[d] ? index[d] : b->lo[d];
        b->hi[d] = index[d] > b->hi[d] ? index[d] : b->hi[d];
    }
    b->elems++;
}

static bool find_box(const device_event *e, uint32_t i, const device_operand *o, nki_range *ranges)
{
    uint32_t tensor = e->program->views.at[o->view].tensor;
    const ir_tensor *t = &e->program->tensors.at[tensor];
    box b = {.elems = 0};
    if (o->dtype != (dtype)t->dtype) {
        return false;
    }
    for (uint32_t r = 0; r < o->rows; r++) {
        for (uint64_t n = 0; n < o->row_elems; n++) {
            const char *p = device_element(e, i, r, n);
            size_t index[NKI_MAX_DIMS] = {0};
            if (!p) {
                return false;
            }
            index_at(e, tensor, p, index);
            box_add(&b, index, t->ndim);
        }
    }
    uint64_t inside = 1;
    for (uint32_t d = 0; d < t->ndim; d++) {
        size_t step = b.step[d] ? b.step[d] : 1, count = (b.hi[d] - b.lo[d]) / step + 1;
        ranges[d] = (nki_range){b.lo[d], count, step};
        inside *= count;
    }
    return inside == b.elems;
}

nki_status nki_step_operand_at(const nki_step *s, size_t i, nki_step_operand *out)
{
    const core_state *c = s ? state(s, s->core) : NULL;
    if (!c || !out || i >= c->at.operands) {
        return NKI_ERR_ARG;
    }
    const device_event *e = &c->at;
    device_operand o = device_operand_at(e, (uint32_t)i);
    *out = (nki_step_operand){.tensor = NKI_NOWHERE};
    if (o.rows == 0) {
        return NKI_OK;
    }
    out->param = isa_table[e->program->instrs.at[e->instr].op].params[o.param].name;
    out->tensor = e->program->views.at[o.view].tensor;
    out->written = o.written;
    out->dtype = (nki_dtype)o.dtype;
    out->ndim = shape_of(e, (uint32_t)i, out->shape);
    return NKI_OK;
}

nki_status nki_step_operand_ranges(const nki_step *s, size_t i, nki_range *ranges)
{
    const core_state *c = s ? state(s, s->core) : NULL;
    if (!c || !ranges || i >= c->at.operands) {
        return NKI_ERR_ARG;
    }
    device_operand o = device_operand_at(&c->at, (uint32_t)i);
    return o.rows && find_box(&c->at, (uint32_t)i, &o, ranges) ? NKI_OK : NKI_ERR_ARG;
}

nki_status nki_step_operand_read(const nki_step *s, size_t i, nki_tensor **out)
{
    const core_state *c = s ? state(s, s->core) : NULL;
    if (!c || !out || i >= c->at.operands) {
        return NKI_ERR_ARG;
    }
    device_operand o = device_operand_at(&c->at, (uint32_t)i);
    size_t shape[NKI_MAX_DIMS], size = dtype_size(o.dtype);
    if (o.rows == 0) {
        return NKI_ERR_ARG;
    }
    size_t ndim = shape_of(&c->at, (uint32_t)i, shape);
    nki_status st = nki_tensor_create(s->k->ctx, (nki_dtype)o.dtype, ndim, shape, out);
    if (st != NKI_OK) {
        return st;
    }
    char *to = nki_tensor_data(*out);
    for (uint32_t r = 0; r < o.rows; r++) {
        for (uint64_t n = 0; n < o.row_elems; n++, to += size) {
            const void *from = device_element(&c->at, (uint32_t)i, r, n);
            if (from) {
                memcpy(to, from, size);
            }
        }
    }
    return NKI_OK;
}
