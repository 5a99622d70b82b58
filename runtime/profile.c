#include "sched/profile.h"
#include "runtime/kernel.h"

#include <nki/profile.h>

#include <stdlib.h>

struct nki_profile {
    nki_kernel *k;
    arena mem;
    jmp_buf oom;
    machine m;
    profile pr;
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

// Says why the clock gave up.
static nki_status untimed(nki_profile *p)
{
    const clock_result *r = &p->pr.clock;
    const ir *g = p->pr.p;
    const ir_instr *in = &g->instrs.at[r->error_instr];
    uint32_t line, col;
    place_path(g, in->place, &line, &col);
    switch (r->error) {
    case CLOCK_TOO_LONG:
        return context_fail(p->k->ctx, NKI_ERR_LIMIT,
                            "the program executes more instructions than the clock follows");
    case CLOCK_STUCK:
        return context_fail(p->k->ctx, NKI_ERR_ARG, "%s waits for ever in line %u",
                            isa_table[in->op].name, line);
    default: break;
    }
    uint32_t reg = in->nargs ? g->args.at[in->args].v : 0;
    return context_fail(p->k->ctx, NKI_ERR_ARG,
                        "how often the %s in line %u runs depends on data: give --trip %u=N (or "
                        "r%u=N)",
                        in->op == ISA_loop_for ? "loop" : "while loop", line, line, reg);
}

static nki_status run(nki_profile *p, const nki_profile_opts *o)
{
    if (setjmp(p->oom)) {
        return context_fail(p->k->ctx, NKI_ERR_NOMEM, "out of memory while profiling");
    }
    const program *cores[COMPILE_CORES_MAX];
    for (uint32_t i = 0; i < p->k->core_count; i++) {
        cores[i] = p->k->core[i].pr;
    }
    clock_trip *trips = NEW_N(&p->mem, clock_trip, o->trip_count);
    for (size_t i = 0; i < o->trip_count; i++) {
        trips[i] = (clock_trip){o->trips[i].name, o->trips[i].count};
    }
    clock_opts c = {.m = &p->m,
                    .trips = trips,
                    .trip_count = (uint32_t)o->trip_count,
                    .events_max = o->events_max,
                    .steps_max = o->executions_max};
    if (!profile_make(&p->mem, cores, p->k->core_count, o->core, &c, &p->pr)) {
        return untimed(p);
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
    if (opts->core >= k->core_count) {
        return context_fail(k->ctx, NKI_ERR_ARG, "the kernel has no core %u", opts->core);
    }
    nki_profile *p = calloc(1, sizeof *p);
    if (!p) {
        return context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    p->k = nki_kernel_retain(k);
    arena_init(&p->mem, 0, &p->oom);
    p->m = *machine_of(k->core[opts->core].pr->ir->target);
    nki_status st = set_machine(p, opts);
    if (st == NKI_OK) {
        st = run(p, opts);
    }
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
    case NKI_PROFILE_TEXT: profile_text(&p->pr, &t); break;
    case NKI_PROFILE_JSON: profile_json(&p->pr, false, &t); break;
    case NKI_PROFILE_JSON_INSTRUCTIONS: profile_json(&p->pr, true, &t); break;
    case NKI_PROFILE_CSV: profile_csv(&p->pr, &t); break;
    case NKI_PROFILE_PERFETTO: profile_perfetto(&p->pr, &t); break;
    case NKI_PROFILE_HTML: profile_html(&p->pr, &t); break;
    default: return NKI_ERR_ARG;
    }
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
    profile_against(&other->pr, &p->pr, &t);
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
