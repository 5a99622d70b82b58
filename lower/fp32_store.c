#include "lower/emit.h"

#include "lang/place.h"

// --precise-fp=off: low-precision tensors hold fp32, so a view of other bits than the tensor's own
// would read what is not there.
//
// Requires: a specialized program.  Fills: ir.fp32_store.  Complexity: linear in the operands.

static bool is_cast(const ir *p, const ir_view *v)
{
    dtype of = (dtype)p->tensors.at[v->tensor].dtype, as = (dtype)v->dtype;
    return as != of && (dtype_is_low_precision(as) || dtype_is_low_precision(of));
}

static void refuse(const ir *p, uint32_t view, const char *what, uint32_t place, diags *ds)
{
    const ir_view *v = ir_view_ref(p, view);
    if (is_cast(p, v)) {
        const ir_tensor *t = &p->tensors.at[v->tensor];
        const char *name = ir_text(p, t->name);
        diag *d = diag_bit_cast_fp32(ds, ir_place_loc(p, place), what, *name ? name : "a tensor",
                                     dtype_name((dtype)t->dtype), dtype_name((dtype)v->dtype));
        ir_place_notes(p, place, ds, d);
    }
}

static void walk(const ir *p, ir_arg a, const char *what, uint32_t place, diags *ds)
{
    if (a.kind == IRA_VIEW) {
        refuse(p, a.v, what, place, ds);
        uint32_t dyn = ir_view_at(p, a.v).dyn;
        const ir_dyn *d = &p->dyns.at[dyn];
        if (dyn && d->kind != DYN_REG) {
            refuse(p, d->src, what, place, ds);
        }
    }
    for (int i = 0; a.kind == IRA_LIST && i < a.aux; i++) {
        walk(p, p->args.at[a.v + (uint32_t)i], what, place, ds);
    }
}

void fp32_store(ir *p, diags *ds)
{
    p->fp32_store = true;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        const ir_instr *in = &p->instrs.at[i];
        for (uint32_t k = 0; k < in->nargs; k++) {
            walk(p, p->args.at[in->args + k], isa_table[in->op].name, in->place, ds);
        }
    }
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        uint32_t view = p->outputs.at[i];
        refuse(p, view, "return", p->tensors.at[p->views.at[view].tensor].place, ds);
    }
}
