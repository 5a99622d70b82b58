#include "lower/launch.h"

#include "lang/place.h"

#include <string.h>

static bool is_shared(const ir_tensor *t)
{
    return t->buffer == BUF_SHARED && (t->role == ROLE_TEMP || t->role == ROLE_OUT);
}

static const char *tensor_text(arena *mem, const ir *p, const ir_tensor *t)
{
    textbuf out;
    text_init(&out, mem);
    text_printf(&out, "'%s' [", ir_text(p, t->name));
    for (uint32_t d = 0; d < t->ndim; d++) {
        text_printf(&out, d ? ", %u" : "%u", t->shape[d]);
    }
    text_printf(&out, "] %s", dtype_name((dtype)t->dtype));
    return out.at;
}

static bool same_type(const ir_tensor *a, const ir_tensor *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

// Shared tensors of one name, in order of their allocation.
typedef struct name_list {
    uint32_t *at;
    uint32_t n, used, cap;
} name_list;

// By string number.
static name_list *by_name(arena *mem, const ir *p)
{
    name_list *lists = NEW_N(mem, name_list, p->strs.n + 1);
    for (uint32_t i = 0; i < p->tensors.n; i++) {
        if (!is_shared(&p->tensors.at[i])) {
            continue;
        }
        name_list *l = &lists[p->tensors.at[i].name];
        if (l->n == l->cap) {
            uint32_t cap = l->cap ? l->cap * 2 : 4;
            uint32_t *at = NEW_N(mem, uint32_t, cap);
            if (l->n) {
                memcpy(at, l->at, l->n * sizeof *at);
            }
            l->at = at;
            l->cap = cap;
        }
        l->at[l->n++] = i;
    }
    return lists;
}

static uint32_t find_str(const ir *p, const char *text)
{
    for (uint32_t i = 0; i < p->strs.n; i++) {
        if (strcmp(p->strs.at[i], text) == 0) {
            return i;
        }
    }
    return p->strs.n;  // its list is empty
}

static bool pair(arena *mem, const ir *p, const ir *q, const ir_tensor *t, ir_tensor *u, diags *ds)
{
    if (!same_type(t, u)) {
        diag *d = diag_shared_mismatch(ds, ir_place_loc(p, t->place), tensor_text(mem, p, t),
                                       tensor_text(mem, q, u));
        diag_note_add(ds, d, ir_place_loc(q, u->place), "core 1 allocates it here");
        return false;
    }
    u->shared = t->shared;
    return true;
}

static bool number(arena *mem, ir *p, ir *q, diags *ds)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < p->tensors.n; i++) {
        if (is_shared(&p->tensors.at[i])) {
            p->tensors.at[i].shared = ++next;
        }
    }
    name_list *mine = by_name(mem, p), *theirs = by_name(mem, q);
    for (uint32_t s = 0; s < q->strs.n; s++) {
        if (!theirs[s].n) {
            continue;
        }
        name_list *l = &mine[find_str(p, q->strs.at[s])];
        for (uint32_t k = 0; k < theirs[s].n; k++) {
            ir_tensor *u = &q->tensors.at[theirs[s].at[k]];
            if (k >= l->n) {
                u->shared = ++next;
            } else if (!pair(mem, p, q, &p->tensors.at[l->at[k]], u, ds)) {
                return false;
            }
        }
    }
    return true;
}

static bool same_view(const ir *p, const ir_view *v, const ir *q, const ir_view *w)
{
    const ir_tensor *t = &p->tensors.at[v->tensor], *u = &q->tensors.at[w->tensor];
    if (t->role != u->role || t->shared != u->shared ||
        (t->role == ROLE_ARG && t->param != u->param) || !same_type(t, u) ||
        v->offset != w->offset || v->dtype != w->dtype || ir_ndim(p, v) != ir_ndim(q, w)) {
        return false;
    }
    for (uint32_t d = 0; d < ir_ndim(p, v); d++) {
        const ir_dim *a = &ir_dims(p, v)[d], *b = &ir_dims(q, w)[d];
        if (a->stride != b->stride || a->count != b->count) {
            return false;
        }
    }
    return true;
}

static bool same_outputs(arena *mem, const ir *p, const ir *q, diags *ds)
{
    if (p->outputs.n != q->outputs.n) {
        diag_launch_outputs(
            ds, (loc){0},
            arena_printf(mem, "core 0 returns %u, core 1 returns %u", p->outputs.n, q->outputs.n));
        return false;
    }
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        const ir_view *v = ir_view_ref(p, p->outputs.at[i]), *w = ir_view_ref(q, q->outputs.at[i]);
        if (same_view(p, v, q, w)) {
            continue;
        }
        const ir_tensor *t = &p->tensors.at[v->tensor], *u = &q->tensors.at[w->tensor];
        diag *d =
            diag_launch_outputs(ds, ir_place_loc(p, t->place),
                                arena_printf(mem, "value %u is %s on core 0 and %s on core 1", i,
                                             tensor_text(mem, p, t), tensor_text(mem, q, u)));
        diag_note_add(ds, d, ir_place_loc(q, u->place), "core 1 allocates its tensor here");
        return false;
    }
    return true;
}

// ---- never written

static void mark_arg(const ir *p, ir_arg a, uint8_t *written)
{
    if (a.kind == IRA_LIST) {
        for (uint32_t k = 0; k < (uint16_t)a.aux; k++) {
            mark_arg(p, p->args.at[a.v + k], written);
        }
    } else if (a.kind == IRA_VIEW) {
        written[p->tensors.at[p->views.at[a.v].tensor].shared] = 1;
    }
}

static void mark_written(const ir *p, uint8_t *written)
{
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *in = &p->instrs.at[i];
        const isa_param *params = isa_table[in->op].params;
        for (uint32_t k = 0; k < in->nargs; k++) {
            if (params[k].type == PT_OUT || params[k].type == PT_INOUT) {
                mark_arg(p, p->args.at[in->args + k], written);
            }
        }
    }
}

static void warn_unwritten(arena *mem, const ir *p, uint8_t *written, diags *ds)
{
    for (uint32_t i = 0; i < p->tensors.n; i++) {
        const ir_tensor *t = &p->tensors.at[i];
        if (t->shared && !written[t->shared]) {
            written[t->shared] = 1;
            diag_output_unwritten(ds, ir_place_loc(p, t->place),
                                  arena_printf(mem, "%s @shared_hbm", tensor_text(mem, p, t)));
        }
    }
}

bool launch_link(arena *mem, ir *const programs[2], diags *ds)
{
    ir *p = programs[0], *q = programs[1];
    if (!number(mem, p, q, ds) || !same_outputs(mem, p, q, ds)) {
        return false;
    }
    uint8_t *written = NEW_N(mem, uint8_t, (size_t)p->tensors.n + q->tensors.n + 1);
    mark_written(p, written);
    mark_written(q, written);
    warn_unwritten(mem, p, written, ds);
    warn_unwritten(mem, q, written, ds);
    return true;
}
