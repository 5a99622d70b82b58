#include "driver/diag_store.h"
#include "lang/place.h"
#include "runtime/control.h"
#include "sched/profile.h"

#include <nki/profile.h>

#include <stdlib.h>

struct nki_profile {
    nki_kernel *k;
    arena mem;
    jmp_buf oom;
    machine m;
    uint32_t cores;
    profile pr[COMPILE_CORES_MAX];
};

void nki_profile_release(nki_profile *p)
{
    if (!p) {
        return;
    }
    arena_fini(&p->mem);
    nki_kernel_release(p->k);
    free(p);
}

static nki_status set_machine(nki_profile *p, const nki_profile_opts *o)
{
    for (size_t i = 0; i < o->machine_count; i++) {
        if (!machine_set(&p->m, o->machine[i].name, o->machine[i].value)) {
            return context_fail(p->k->ctx, NKI_ERR_ARG,
                                "'%s' = %g: no such timing constant, or not a number it can take",
                                o->machine[i].name, o->machine[i].value);
        }
    }
    return NKI_OK;
}

// Of the core whose clock gave up.
static const profile *untimed_core(const nki_profile *p)
{
    const profile *pr = p->pr;
    while (pr + 1 < p->pr + p->cores && !pr->clock.error) {
        pr++;
    }
    return pr;
}

static diag *ask_for_trip(nki_profile *p, const profile *pr, diags *ds)
{
    const ir *g = pr->p;
    const ir_instr *in = &g->instrs.at[pr->clock.error_instr];
    loc at = ir_place_loc(g, in->place);
    bool counts = in->op == ISA_loop_for;
    ir_arg reg = g->args.at[in->args];
    const char *name = at.src
                           ? arena_printf(&p->mem, "%zu",
                                          (size_t)source_locate(at.src, at.at.lo).line)
                           : arena_printf(&p->mem, "r%u", reg.kind == IRA_REG ? reg.v : 0);
    diag *d = diag_trip_unknown(ds, at, counts ? "loop" : "while loop", name);
    ir_place_notes(g, in->place, ds, d);
    return d;
}

// Says why the clock gave up.
static nki_status untimed(nki_profile *p, const nki_profile_opts *o)
{
    const profile *pr = untimed_core(p);
    if (pr->clock.error == CLOCK_TOO_LONG) {
        return context_fail(p->k->ctx, NKI_ERR_LIMIT,
                            "the program executes more instructions than the clock follows");
    }
    if (pr->clock.error == CLOCK_STUCK) {
        return context_fail(p->k->ctx, NKI_ERR_INTERNAL, "%s waits for ever",
                            isa_table[pr->p->instrs.at[pr->clock.error_instr].op].name);
    }
    diags ds;
    diags_init(&ds, &p->mem);
    const char *text = ask_for_trip(p, pr, &ds)->text;
    if (diag_store_take(o->diags, &ds) != NKI_OK) {
        return context_fail(p->k->ctx, NKI_ERR_NOMEM, "out of memory while profiling");
    }
    return context_fail(p->k->ctx, NKI_ERR_DIAG, "%s", text);
}

static nki_status run(nki_profile *p, const nki_profile_opts *o, const control_record *record)
{
    if (setjmp(p->oom)) {
        return context_fail(p->k->ctx, NKI_ERR_NOMEM, "out of memory while profiling");
    }
    const program *cores[COMPILE_CORES_MAX];
    for (uint32_t i = 0; i < p->cores; i++) {
        cores[i] = p->k->core[i].pr;
    }
    clock_trip *trips = NEW_N(&p->mem, clock_trip, o->trip_count);
    for (size_t i = 0; i < o->trip_count; i++) {
        trips[i] = (clock_trip){o->trips[i].name, o->trips[i].count};
    }
    clock_opts c = {.m = &p->m,
                    .trips = trips,
                    .trip_count = (uint32_t)o->trip_count,
                    .traces = record ? control_traces(record) : NULL,
                    .events_max = o->events_max,
                    .steps_max = o->executions_max};
    if (!profile_make(&p->mem, cores, p->cores, &c, p->pr)) {
        return untimed(p, o);
    }
    return NKI_OK;
}

nki_status nki_profile_create(nki_kernel *k, const nki_profile_opts *opts, nki_profile **out)
{
    const nki_profile_opts none = NKI_PROFILE_OPTS_INIT;
    if (out) {
        *out = NULL;
    }
    if (!k || !out || (opts && opts->size != sizeof *opts)) {
        return NKI_ERR_ARG;
    }
    opts = opts ? opts : &none;
    nki_status st = nki_kernel_verify(k);
    if (st != NKI_OK) {
        return st;
    }
    nki_profile *p = calloc(1, sizeof *p);
    if (!p) {
        return context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    p->k = nki_kernel_retain(k);
    arena_init(&p->mem, 0, &p->oom);
    p->mem.from = &k->ctx->allocator;
    p->cores = k->core_count;
    p->m = *machine_of(k->core[0].pr->ir->target);
    st = set_machine(p, opts);
    control_record *record = NULL;
    if (st == NKI_OK && opts->arg_count && control_varies(k)) {
        st = control_run(k, opts->args, opts->arg_count, opts->diags, &record);
    }
    if (st == NKI_OK) {
        st = run(p, opts, record);
    }
    control_release(record);
    if (st != NKI_OK) {
        nki_profile_release(p);
        return st;
    }
    *out = p;
    return NKI_OK;
}

nki_status nki_profile_render(nki_profile *p, nki_profile_form form, const char **text, size_t *len)
{
    if (!p || !text || !len) {
        return NKI_ERR_ARG;
    }
    if (setjmp(p->oom)) {
        return context_fail(p->k->ctx, NKI_ERR_NOMEM, "out of memory while writing a profile");
    }
    textbuf t;
    text_init(&t, &p->mem);
    switch (form) {
    case NKI_PROFILE_TEXT: profile_text(p->pr, p->cores, &t); break;
    case NKI_PROFILE_JSON: profile_json(p->pr, p->cores, false, &t); break;
    case NKI_PROFILE_JSON_INSTRUCTIONS: profile_json(p->pr, p->cores, true, &t); break;
    case NKI_PROFILE_CSV: profile_csv(p->pr, p->cores, TABLE_INSTRUCTION, &t); break;
    case NKI_PROFILE_PERFETTO: profile_perfetto(p->pr, p->cores, &t); break;
    case NKI_PROFILE_HTML: profile_html(p->pr, p->cores, &t); break;
    default: return NKI_ERR_ARG;
    }
    *text = t.at;
    *len = t.len;
    return NKI_OK;
}

const char *nki_profile_table_name(size_t i)
{
    return i < TABLE_COUNT ? profile_table_name((profile_table)i) : NULL;
}

nki_status nki_profile_table(nki_profile *p, size_t i, const char **text, size_t *len)
{
    if (!p || !text || !len || i >= TABLE_COUNT) {
        return NKI_ERR_ARG;
    }
    if (setjmp(p->oom)) {
        return context_fail(p->k->ctx, NKI_ERR_NOMEM, "out of memory while writing a profile");
    }
    textbuf t;
    text_init(&t, &p->mem);
    profile_csv(p->pr, p->cores, (profile_table)i, &t);
    *text = t.at;
    *len = t.len;
    return NKI_OK;
}

nki_status nki_profile_compare(nki_profile *p, const nki_profile *other, const char **text,
                               size_t *len)
{
    if (!p || !other || !text || !len) {
        return NKI_ERR_ARG;
    }
    if (setjmp(p->oom)) {
        return context_fail(p->k->ctx, NKI_ERR_NOMEM, "out of memory while writing a profile");
    }
    textbuf t;
    text_init(&t, &p->mem);
    profile_against(other->pr, other->cores, p->pr, p->cores, &t);
    *text = t.at;
    *len = t.len;
    return NKI_OK;
}

size_t nki_machine_count(void)
{
    const machine_row *rows;
    return machine_rows(&rows);
}

nki_status nki_machine_at(size_t i, nki_machine_row *out)
{
    const machine_row *rows;
    if (!out || i >= machine_rows(&rows)) {
        return NKI_ERR_ARG;
    }
    const machine_row *r = &rows[i];
    *out = (nki_machine_row){
        r->name, r->unit, r->trust, r->source, {r->value[0], r->value[1], r->value[2]}};
    return NKI_OK;
}
