#include "device/check.h"
#include "lang/place.h"

#include <stdio.h>

// What a finding says.

finding *check_first(check *c, const exec *x, const bound *b, diag_id id, uint8_t detail)
{
    const ir_instr *in = &x->dp->p->instrs.at[b->instr];
    loc at = ir_place_loc(x->dp->p, in->place);
    for (uint32_t i = 0; i < c->nfindings; i++) {
        finding *f = &c->finding[i];
        if (f->id == id && f->src == at.src && f->lo == at.at.lo && f->hi == at.at.hi &&
            f->op == in->op && f->detail == detail) {
            f->times++;
            return NULL;
        }
    }
    if (c->nfindings == FINDINGS_MAX) {
        return NULL;
    }
    finding *f = &c->finding[c->nfindings++];
    *f = (finding){id, at.src, at.at.lo, at.at.hi, in->op, detail, NULL, 1};
    return f;
}

// ---- elements

static const char *name_of(const at_hand *a)
{
    const ir *p = a->x->dp->p;
    const char *name = ir_tensor_called(p, p->views.at[a->o->view].tensor, a->c->ds->mem);
    return *name ? name : "a tensor";
}

// "[3, 17]"; "" for none.
static const char *list_text(const at_hand *a, uint32_t n, const uint32_t *v)
{
    char text[IR_MAX_DIMS * 12 + 4];
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t d = 0; d < n; d++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", d ? ", " : "[", v[d]);
    }
    return arena_printf(a->c->ds->mem, "%s%s", text, n ? "]" : "");
}

// The byte of the tensor, and on chip the partition.
static uint64_t inside(const at_hand *a, uint64_t at, uint32_t *partition)
{
    const ir_tensor *t = a->tensor;
    *partition = 0;
    if (buffer_on_chip((buffer_kind)t->buffer)) {
        const target *m = a->x->dp->p->target;
        uint64_t stride =
            (uint64_t)(t->buffer == BUF_PSUM ? core_psum_stride(m) : core_sbuf_stride(m));
        *partition = (uint32_t)(at / stride) - t->addr_part;
        return at % stride - t->addr_bytes;
    }
    return a->o->base == BASE_HBM ? at - t->addr_bytes : at;
}

const char *check_element(const at_hand *a, uint64_t at)
{
    const ir_tensor *t = a->tensor;
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    uint32_t index[IR_MAX_DIMS] = {0}, from = chip ? 1 : 0;
    uint64_t e = inside(a, at, &index[0]) / dtype_size((dtype)t->dtype);
    for (uint32_t d = t->ndim; d-- > from;) {
        index[d] = t->shape[d] ? (uint32_t)(e % t->shape[d]) : 0;
        e = t->shape[d] ? e / t->shape[d] : 0;
    }
    return arena_printf(a->c->ds->mem, "%s%s", name_of(a), list_text(a, t->ndim, index));
}

const char *check_number(const check *c, double v)
{
    char text[64];
    if (v == (double)(int64_t)v && v > -1e15 && v < 1e15) {
        snprintf(text, sizeof text, "%lld", (long long)v);
    } else {
        text_float(text, (float)v);
    }
    return arena_printf(c->ds->mem, "%s", text);
}

const char *check_value(const at_hand *a, uint64_t at)
{
    dtype dt = (dtype)a->o->dtype;
    uint32_t raw = 0;
    memcpy(&raw, a->mem + at / a->o->size * a->o->size, a->o->size);
    if (dtype_class_of(dt) == DTC_X) {
        return arena_printf(a->c->ds->mem, "0x%0*x", a->o->size * 2, (unsigned)raw);
    }
    float f;
    a->c->plain->load[dt](&f, &raw, 1);
    char text[64];
    if (dtype_is_float(dt)) {
        text_float(text, f);
        return arena_printf(a->c->ds->mem, "%s", text);
    }
    double v = dt == DT_int32 ? (double)(int32_t)raw : dt == DT_uint32 ? (double)raw : (double)f;
    return check_number(a->c, v);
}

// ---- notes

static const char *tensor_text(const at_hand *a)
{
    const ir_tensor *t = a->tensor;
    return arena_printf(a->c->ds->mem, "%s %s %s @%s", name_of(a), list_text(a, t->ndim, t->shape),
                        dtype_name((dtype)t->dtype), buffer_name((buffer_kind)t->buffer));
}

void check_explain(const at_hand *a, finding *f, diag *d)
{
    const ir *p = a->x->dp->p;
    diags *ds = a->c->ds;
    f->d = d;
    ir_place_notes(p, p->instrs.at[a->b->instr].place, ds, d);
    const ir_tensor *t = a->tensor;
    loc at = ir_place_loc(p, t->place);
    if (t->role == ROLE_ARG) {
        diag_note_add(ds, d, at, "%s is a parameter", tensor_text(a));
    } else {
        diag_note_add(ds, d, at, "%s is allocated here", tensor_text(a));
    }
}

shadow_who check_writer(const at_hand *a)
{
    return a->ts->last == a->me ? a->ts->before : a->ts->last;
}

void check_note_writer(const at_hand *a, diag *d, shadow_who who, const char *did)
{
    const check *c = a->c;
    if (!who) {
        return;
    }
    const ir *p = c->core[shadow_core(who)].x->dp->p;
    const ir_instr *in = &p->instrs.at[shadow_instr(who)];
    if (c->n > 1) {
        diag_note_add(c->ds, d, ir_place_loc(p, in->place), "core %u: %s %s, here", p->core,
                      isa_table[in->op].name, did);
    } else {
        diag_note_add(c->ds, d, ir_place_loc(p, in->place), "%s %s, here", isa_table[in->op].name,
                      did);
    }
}
