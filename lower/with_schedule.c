// kernel.with_schedule(edges): dependences by the names of instructions, (consumer, producer) or
// (consumer, [producer, ...]), added at the end of each call.
#include "lower/check.h"
#include "lower/class.h"
#include "lower/interp.h"

#include <string.h>

// Elements of a list or tuple; false: it is neither.
static bool items(value v, const value **at, uint32_t *n)
{
    if (v.tag != V_LIST && v.tag != V_TUPLE) {
        return false;
    }
    *at = v.tag == V_LIST ? v.u.list->at : v.u.tuple->at;
    *n = v.tag == V_LIST ? v.u.list->n : v.u.tuple->n;
    return true;
}

static bool is_names(value v)
{
    const value *at = &v;
    uint32_t n = 1;
    (void)items(v, &at, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (at[i].tag != V_STR) {
            return false;
        }
    }
    return true;
}

static value with_schedule(interp *it, const args *a)
{
    const value *edge = NULL, *pair = NULL;
    uint32_t n = 0, two = 0;
    bool one = a->n + a->nkw == 1 && (!a->nkw || strcmp(a->kw[0]->text, "edges") == 0);
    if (!one || !items(a->at[0], &edge, &n)) {
        return type_error(it, "with_schedule() takes a list of (consumer, producer) pairs");
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!items(edge[i], &pair, &two) || two != 2 || pair[0].tag != V_STR ||
            !is_names(pair[1])) {
            return type_error(it,
                              "with_schedule(): edge %u is not a pair of an instruction's name and "
                              "one or a list of others",
                              i);
        }
    }
    vfunc *f = NEW(it->mem, vfunc);
    *f = *it->native_self.u.func;
    vschedule *s = NEW(it->mem, vschedule);
    *s = (vschedule){f->schedule, v_tuple(it, edge, n).u.tuple, interp_loc(it)};
    f->schedule = s;
    return (value){.tag = V_FUNC, .u.func = f};
}

value kernel_with_schedule(interp *it, value kernel)
{
    return v_bound_native(it, "with_schedule", with_schedule, kernel);
}

// ---- instructions by name

typedef struct named {
    uint32_t instr, count;
} named;

static bool fail(interp *it, const vschedule *s, const char *message)
{
    return !IS_ERR(interp_raise(it, diag_schedule_edge(&it->pend, s->at, message)));
}

static const char *all_names(interp *it, const named *by_name, uint32_t n)
{
    enum { SHOWN = 12 };
    textbuf t;
    text_init(&t, it->mem);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < n && shown <= SHOWN; i++) {
        if (by_name[i].count) {
            text_printf(&t, "%s%s", shown ? ", " : "", shown < SHOWN ? it->p->strs.at[i] : "...");
            shown++;
        }
    }
    return shown ? t.at : "none";
}

static bool find(interp *it, const vschedule *s, const named *by_name, uint32_t n, value name,
                 uint32_t *instr)
{
    const vstr *text = name.u.str;
    uint32_t id = ir_str(it->p, text->p, text->len);
    if (id >= n || by_name[id].count == 0) {
        return fail(it, s,
                    arena_printf(it->mem,
                                 "no instruction of the kernel is named '%s'; named are: %s",
                                 text->p, all_names(it, by_name, n)));
    }
    *instr = by_name[id].instr;
    return by_name[id].count == 1 ||
           fail(it, s,
                arena_printf(it->mem, "%u instructions are named '%s'; an edge needs a name of one",
                             by_name[id].count, text->p));
}

// A loop of the device that the producer runs in and the consumer does not.
static bool left_loop(const interp *it, uint32_t producer, uint32_t consumer)
{
    for (uint32_t i = 0; i < it->loops_ended.n; i++) {
        uint32_t begin = it->loops_ended.at[i].begin, end = it->loops_ended.at[i].end;
        if (begin < producer && producer < end && !(begin < consumer && consumer < end)) {
            return true;
        }
    }
    return false;
}

static bool add_edge(interp *it, const vschedule *s, const named *by_name, uint32_t n, value from,
                     value to)
{
    uint32_t consumer, producer;
    if (!find(it, s, by_name, n, from, &consumer) || !find(it, s, by_name, n, to, &producer)) {
        return false;
    }
    if (producer >= consumer) {
        return fail(
            it, s,
            arena_printf(it->mem,
                         producer == consumer
                             ? "'%s' cannot depend on itself"
                             : "'%s' cannot depend on '%s', which comes after it in the kernel",
                         from.u.str->p, to.u.str->p));
    }
    if (left_loop(it, producer, consumer)) {
        return fail(it, s,
                    arena_printf(it->mem, "'%s' runs in a loop on the device that '%s' is not in",
                                 to.u.str->p, from.u.str->p));
    }
    isa_add_deps(it, consumer, &producer, 1);
    return true;
}

bool schedule_apply(interp *it, const vschedule *s, uint32_t begin)
{
    const ir *p = it->p;
    uint32_t n = p->strs.n;
    named *by_name = NEW_N(it->mem, named, n + 1);
    for (uint32_t i = begin; i < p->instrs.n; i++) {
        uint32_t name = p->instrs.at[i].name;
        if (name != IR_NONE) {
            by_name[name].count++;
            by_name[name].instr = i;
        }
    }
    for (; s; s = s->before) {
        for (uint32_t i = 0; i < s->edges->n; i++) {
            const value *pair = NULL, *to = NULL;
            uint32_t two, many;
            (void)items(s->edges->at[i], &pair, &two);
            if (!items(pair[1], &to, &many)) {
                to = &pair[1];
                many = 1;
            }
            for (uint32_t k = 0; k < many; k++) {
                if (!add_edge(it, s, by_name, n, pair[0], to[k])) {
                    return false;
                }
            }
        }
    }
    return true;
}
