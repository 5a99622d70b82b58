#include "lang/place.h"
#include "sched/live.h"
#include "sched/profile_make.h"

#include <inttypes.h>
#include <stdlib.h>

// ---- names

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The variable of a line `name = ...` around byte `at`; NULL: none.
static const char *assigned(arena *mem, const source *src, size_t at)
{
    size_t lo = at < src->len ? at : src->len;
    while (lo && src->text[lo - 1] != '\n') {
        lo--;
    }
    while (lo < src->len && src->text[lo] == ' ') {
        lo++;
    }
    size_t hi = lo;
    while (hi < src->len && in_word(src->text[hi])) {
        hi++;
    }
    size_t eq = hi;
    while (eq < src->len && src->text[eq] == ' ') {
        eq++;
    }
    bool is = hi > lo && eq + 1 < src->len && src->text[eq] == '=' && src->text[eq + 1] != '=';
    return is ? arena_text(mem, src->text + lo, hi - lo) : NULL;
}

// A tensor without a name has that of the variable where it, or a call around it, was made.
void make_names(maker *mk)
{
    const ir *p = mk->pr->p;
    mk->pr->tensor_names = NEW_N(mk->mem, const char *, p->tensors.n + 1);
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        const char *name = ir_text(p, p->tensors.at[t].name);
        for (uint32_t k = p->tensors.at[t].place; k && !*name; k = p->places.at[k].parent) {
            const ir_place *at = &p->places.at[k];
            const source *src =
                at->kind == PLACE_SITE || at->kind == PLACE_CALL ? p->files.at[at->file].src : NULL;
            const char *found = src ? assigned(mk->mem, src, at->lo) : NULL;
            name = found ? found : name;
        }
        mk->pr->tensor_names[t] = *name ? name : arena_printf(mk->mem, "%%%" PRIu32, t);
    }
}

// ---- time in use

// Widens the area of `tensor` by what an instruction took.
static void widen(profile_area *of, const clock_result *c, uint32_t instr)
{
    const instr_time *t = &c->of[instr];
    if (t->count) {
        of->from_ps = t->first_ps < of->from_ps ? t->first_ps : of->from_ps;
        of->to_ps = t->last_ps > of->to_ps ? t->last_ps : of->to_ps;
    }
}

void make_areas(maker *mk)
{
    profile *pr = mk->pr;
    const ir *p = pr->p;
    access_table acc;
    liveness lv;
    access_table_make(mk->mem, p, &acc);
    live_compute(mk->mem, p, &acc, &lv);
    profile_area *of = NEW_N(mk->mem, profile_area, p->tensors.n + 1);
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        of[t] = (profile_area){t, INT64_MAX, INT64_MIN};
        // A value that goes round a loop lives through all of it.
        if (lv.of[t].touched) {
            widen(&of[t], &pr->clock, lv.of[t].first);
            widen(&of[t], &pr->clock, lv.of[t].last);
        }
    }
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (uint32_t k = acc.first[i]; k < acc.first[i + 1]; k++) {
            widen(&of[p->views.at[acc.all.at[k].view].tensor], &pr->clock, i);
        }
    }
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        if (buffer_on_chip((buffer_kind)p->tensors.at[t].buffer) && of[t].from_ps < of[t].to_ps) {
            vec_push(mk->mem, &pr->areas, of[t]);
        }
    }
}

static int by_time(const void *a, const void *b)
{
    const profile_step *x = a, *y = b;
    return (x->at_ps > y->at_ps) - (x->at_ps < y->at_ps);
}

uint32_t profile_memory_steps(const profile *pr, arena *mem, buffer_kind b, profile_step **out)
{
    profile_step *s = *out = NEW_N(mem, profile_step, 2 * (size_t)pr->areas.n + 1);
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < pr->areas.n; i++) {
        const profile_area *a = &pr->areas.at[i];
        const ir_tensor *t = &pr->p->tensors.at[a->tensor];
        if (t->buffer == b) {
            s[n++] = (profile_step){a->from_ps, (int64_t)t->size_bytes};
            s[n++] = (profile_step){a->to_ps, -(int64_t)t->size_bytes};
        }
    }
    qsort(s, n, sizeof *s, by_time);
    int64_t value = 0;
    for (uint32_t i = 0; i < n; i++) {
        value += s[i].value;
        if (i + 1 == n || s[i + 1].at_ps != s[i].at_ps) {
            s[kept++] = (profile_step){s[i].at_ps, value};
        }
    }
    return kept;
}

// ---- semaphores

static int by_moment(const void *a, const void *b)
{
    const profile_update *x = a, *y = b;
    if (x->at_ps != y->at_ps) {
        return x->at_ps < y->at_ps ? -1 : 1;
    }
    // At one moment: what is added first, so that no value is below zero.
    return x->semaphore != y->semaphore ? (x->semaphore < y->semaphore ? -1 : 1)
                                        : (x->by < y->by) - (x->by > y->by);
}

uint32_t profile_updates(const profile *pr, arena *mem, profile_update **out)
{
    const clock_result *c = &pr->clock;
    profile_update *u = *out = NEW_N(mem, profile_update, (size_t)c->changes.n + 1);
    for (uint32_t i = 0; i < c->changes.n; i++) {
        const clock_change *g = &c->changes.at[i];
        u[i] = (profile_update){g->at_ps, g->semaphore, g->by, 0};
    }
    qsort(u, c->changes.n, sizeof *u, by_moment);
    int64_t *now = NEW_N(mem, int64_t, (size_t)pr->program->semaphores.n + 1);
    for (uint32_t i = 0; i < c->changes.n; i++) {
        u[i].value = now[u[i].semaphore] += u[i].by;
    }
    return c->changes.n;
}
