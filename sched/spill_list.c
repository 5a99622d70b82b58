#include "sched/spill_list.h"

#include "lang/place.h"

#include <inttypes.h>
#include <stdlib.h>

bool spill_home(const ir *p, uint32_t tensor)
{
    const ir_tensor *t = &p->tensors.at[tensor];
    const char *name = ir_text(p, t->name);
    size_t n = strlen(name), m = strlen(SPILL_SUFFIX);
    return t->buffer == BUF_HBM && t->role == ROLE_TEMP && n >= m &&
           strcmp(name + n - m, SPILL_SUFFIX) == 0;
}

spill_side spill_of(const ir *p, const ir_instr *in, uint32_t *home)
{
    if (in->op != ISA_dma_copy) {
        return SPILL_NONE;
    }
    for (uint32_t k = 0; k < 2; k++) {  // dst, src
        ir_arg a = p->args.at[in->args + k];
        if (a.kind == IRA_VIEW && spill_home(p, p->views.at[a.v].tensor)) {
            if (home) {
                *home = p->views.at[a.v].tensor;
            }
            return k == 0 ? SPILL_SAVE : SPILL_RELOAD;
        }
    }
    return SPILL_NONE;
}

static int most_first(const void *a, const void *b)
{
    const spill_entry *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? 1 : -1;
    }
    return x->home < y->home ? -1 : x->home > y->home;
}

void spill_list(arena *mem, const ir *p, spill_entries *out)
{
    *out = (spill_entries){0};
    uint32_t *entry = NEW_N(mem, uint32_t, p->tensors.n);  // + 1
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        uint32_t home;
        spill_side side = spill_of(p, &p->instrs.at[i], &home);
        if (!side) {
            continue;
        }
        if (!entry[home]) {
            vec_push(mem, out, ((spill_entry){.home = home}));
            entry[home] = out->n;
        }
        spill_entry *e = &out->at[entry[home] - 1];
        *(side == SPILL_SAVE ? &e->stores : &e->loads) += 1;
        e->bytes += p->tensors.at[home].size_bytes;
    }
    if (out->n) {
        qsort(out->at, out->n, sizeof *out->at, most_first);
    }
}

void spill_entry_text(const ir *p, const spill_entry *e, textbuf *out)
{
    const ir_tensor *t = &p->tensors.at[e->home];
    const char *name = ir_text(p, t->name);
    size_t n = strlen(name) - strlen(SPILL_SUFFIX);
    text_add(out, name, n);
    text_printf(out, "%s%s[%" PRIu32 ", %" PRIu32 "], %" PRIu64 " bytes", n ? " " : "",
                dtype_name((dtype)t->dtype), t->shape[0], t->shape[1], t->size_bytes);
    loc at = ir_place_loc(p, t->place);
    if (at.src) {
        text_printf(out, " (%s:%" PRIu32 ")", at.src->name, source_locate(at.src, at.at.lo).line);
    }
    text_printf(out, ", stored %" PRIu32 " time%s, loaded %" PRIu32 " time%s", e->stores,
                e->stores == 1 ? "" : "s", e->loads, e->loads == 1 ? "" : "s");
}

void spills_text(const program *pr, textbuf *out)
{
    spill_entries all;
    spill_list(out->mem, pr->ir, &all);
    for (uint32_t k = 0; k < all.n; k++) {
        text_cstr(out, "  spilled ");
        spill_entry_text(pr->ir, &all.at[k], out);
        text_char(out, '\n');
    }
}
