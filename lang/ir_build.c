#include "base/intern.h"
#include "lang/ir.h"

#include <string.h>

// Open-addressing index of entries already made: slot = id + 1, 0 free.
typedef struct id_table {
    uint32_t *slot;
    uint32_t cap, count;
} id_table;

struct ir_intern {
    id_table aps, forms, strs;
};

const char *buffer_name(buffer_kind b)
{
    static const char *const names[BUF_COUNT] = {"sbuf", "psum", "hbm", "shared_hbm"};
    return names[b];
}

static void table_init(arena *mem, id_table *t)
{
    t->cap = 256;
    t->slot = NEW_N(mem, uint32_t, t->cap);
}

static uint32_t ap_hash(const ir *p, uint32_t id)
{
    const ir_ap *a = &p->aps.at[id];
    return hash_bytes(&p->dims.at[a->first], a->ndim * sizeof(ir_dim));
}

static uint32_t form_hash(const ir *p, uint32_t id)
{
    return hash_bytes(&p->forms.at[id], sizeof(ir_form));
}

static uint32_t str_hash(const ir *p, uint32_t id)
{
    return hash_bytes(p->strs.at[id], strlen(p->strs.at[id]));
}

static void table_grow(ir *p, id_table *t, uint32_t (*hash)(const ir *, uint32_t))
{
    uint32_t cap = t->cap * 2;
    uint32_t *slot = NEW_N(p->mem, uint32_t, cap);
    for (uint32_t i = 0; i < t->cap; i++) {
        if (t->slot[i]) {
            uint32_t at = hash(p, t->slot[i] - 1) & (cap - 1);
            while (slot[at]) {
                at = (at + 1) & (cap - 1);
            }
            slot[at] = t->slot[i];
        }
    }
    t->slot = slot;
    t->cap = cap;
}

ir *ir_new(arena *mem, const target *t)
{
    ir *p = NEW(mem, ir);
    p->mem = mem;
    p->target = t;
    p->grid = 1;
    p->intern = NEW(mem, struct ir_intern);
    table_init(mem, &p->intern->aps);
    table_init(mem, &p->intern->forms);
    table_init(mem, &p->intern->strs);
    vec_push(mem, &p->views, (ir_named){0});
    vec_push(mem, &p->forms, (ir_form){0});
    vec_push(mem, &p->aps, (ir_ap){0});
    vec_push(mem, &p->dyns, (ir_dyn){0});
    vec_push(mem, &p->places, (ir_place){0});
    vec_push(mem, &p->deps, 0);
    ir_str(p, "", 0);
    return p;
}

uint32_t ir_str(ir *p, const char *text, size_t len)
{
    id_table *t = &p->intern->strs;
    if (t->count * 2 >= t->cap) {
        table_grow(p, t, str_hash);
    }
    uint32_t at = hash_bytes(text, len) & (t->cap - 1);
    for (; t->slot[at]; at = (at + 1) & (t->cap - 1)) {
        const char *s = p->strs.at[t->slot[at] - 1];
        if (strlen(s) == len && memcmp(s, text, len) == 0) {
            return t->slot[at] - 1;
        }
    }
    vec_push(p->mem, &p->strs, arena_text(p->mem, text, len));
    t->slot[at] = p->strs.n;
    t->count++;
    return p->strs.n - 1;
}

uint32_t ir_ap_of(ir *p, const ir_dim *dims, uint32_t ndim)
{
    id_table *t = &p->intern->aps;
    if (t->count * 2 >= t->cap) {
        table_grow(p, t, ap_hash);
    }
    uint32_t at = hash_bytes(dims, ndim * sizeof *dims) & (t->cap - 1);
    for (; t->slot[at]; at = (at + 1) & (t->cap - 1)) {
        const ir_ap *a = &p->aps.at[t->slot[at] - 1];
        if (a->ndim == ndim && memcmp(&p->dims.at[a->first], dims, ndim * sizeof *dims) == 0) {
            return t->slot[at] - 1;
        }
    }
    uint32_t first = p->dims.n;
    for (uint32_t i = 0; i < ndim; i++) {
        vec_push(p->mem, &p->dims, dims[i]);
    }
    vec_push(p->mem, &p->aps, ((ir_ap){first, ndim}));
    t->slot[at] = p->aps.n;
    t->count++;
    return p->aps.n - 1;
}

static uint32_t form_of(ir *p, const ir_view *v)
{
    ir_form f;
    memset(&f, 0, sizeof f);  // padding is hashed too
    f.offset = v->offset;
    f.ap = v->ap;
    f.dyn = v->dyn;
    f.dtype = v->dtype;
    f.part = v->part;
    id_table *t = &p->intern->forms;
    if (t->count * 2 >= t->cap) {
        table_grow(p, t, form_hash);
    }
    uint32_t at = hash_bytes(&f, sizeof f) & (t->cap - 1);
    for (; t->slot[at]; at = (at + 1) & (t->cap - 1)) {
        if (memcmp(&p->forms.at[t->slot[at] - 1], &f, sizeof f) == 0) {
            return t->slot[at] - 1;
        }
    }
    vec_push(p->mem, &p->forms, f);
    t->slot[at] = p->forms.n;
    t->count++;
    return p->forms.n - 1;
}

uint32_t ir_view_add(ir *p, ir_view v)
{
    vec_push(p->mem, &p->views, ((ir_named){v.tensor, form_of(p, &v)}));
    return p->views.n - 1;
}

uint32_t ir_dyn_add(ir *p, ir_dyn d)
{
    vec_push(p->mem, &p->dyns, d);
    return p->dyns.n - 1;
}

uint32_t ir_tensor_add(ir *p, ir_tensor t)
{
    vec_push(p->mem, &p->tensors, t);
    return p->tensors.n - 1;
}

uint32_t ir_place_add(ir *p, ir_place pl)
{
    vec_push(p->mem, &p->places, pl);
    return p->places.n - 1;
}

uint32_t ir_file_add(ir *p, const char *name, const source *src)
{
    uint32_t str = ir_str(p, name, strlen(name));
    for (uint32_t i = 0; i < p->files.n; i++) {
        if (p->files.at[i].name == str) {
            return i;
        }
    }
    vec_push(p->mem, &p->files, ((ir_file){str, src}));
    return p->files.n - 1;
}

uint32_t ir_list(ir *p, const ir_arg *args, uint32_t n)
{
    uint32_t first = p->args.n;
    vec_reserve(p->mem, &p->args, n);
    if (n) {
        memcpy(p->args.at + first, args, n * sizeof *args);
    }
    p->args.n += n;
    return first;
}

uint32_t ir_emit(ir *p, isa_id op, engine_id engine, const ir_arg *args, uint32_t place,
                 uint32_t nm)
{
    uint8_t n = isa_table[op].nparams;
    uint32_t first = ir_list(p, args, n);
    vec_push(p->mem, &p->instrs,
             ((ir_instr){(uint16_t)op, (uint8_t)engine, n, first, place, nm, IR_NONE}));
    return p->instrs.n - 1;
}

ir_view ir_view_whole(ir *p, uint32_t tensor)
{
    const ir_tensor *t = &p->tensors.at[tensor];
    ir_dim dims[IR_MAX_DIMS];
    memset(dims, 0, sizeof dims);
    int64_t stride = 1;
    for (uint32_t d = t->ndim; d-- > 0;) {
        dims[d].stride = stride;
        dims[d].count = t->shape[d];
        stride *= t->shape[d];
    }
    if (buffer_on_chip((buffer_kind)t->buffer)) {
        dims[0].stride = 1;
    }
    return (ir_view){.tensor = tensor, .ap = ir_ap_of(p, dims, t->ndim), .dtype = t->dtype};
}

ir_arg ira_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return (ir_arg){IRA_F32, 0, 0, bits};
}

ir_arg ira_int(int64_t v)
{
    return (ir_arg){IRA_INT, 0, (int16_t)(v < 0 ? -1 : 0), (uint32_t)(uint64_t)v};
}

float ira_float(ir_arg a)
{
    float f;
    memcpy(&f, &a.v, 4);
    return f;
}

int64_t ira_integer(ir_arg a)
{
    return a.kind == IRA_INT && a.aux ? (int64_t)a.v - ((int64_t)1 << 32) : (int64_t)a.v;
}

uint32_t ir_partitions(const ir *p, const ir_view *v)
{
    return ir_dims(p, v)[0].count;
}

uint64_t ir_free_elems(const ir *p, const ir_view *v)
{
    uint64_t n = 1;
    for (uint32_t d = 1; d < ir_ndim(p, v); d++) {
        n *= ir_dims(p, v)[d].count;
    }
    return n;
}

uint64_t ir_elems(const ir *p, const ir_view *v)
{
    return ir_ndim(p, v) ? ir_free_elems(p, v) * ir_partitions(p, v) : 1;
}
