#include "lang/ir.h"

#include <inttypes.h>

// Every table is checked before anything that refers to it is followed, so that a program made of
// hostile bytes ends in a sentence. Sizes are bounded first (the limits below), which keeps all
// later arithmetic inside 64 bits. Time: linear in the tables.

#define MAX_BYTES ((uint64_t)1 << 46)  // of a tensor
#define MAX_STEP  ((int64_t)1 << 46)   // of an offset, a stride or a step
enum {
    MAX_REGISTERS = 1 << 20,
    MAX_LIST_DEPTH = 4,
    LIST_SHARING = 16,  // an element of args or deps may be walked this often, on average
};

// In checker.view_traits: where the view begins depends on a register.
#define ADDRESSED 0x80

typedef struct checker {
    const ir *p;
    arena *mem;
    const char *err;
    uint8_t *defined;      // of each register
    uint8_t *view_traits;  // of each view: its memory's SPACE_*, and ADDRESSED
    uint64_t list_budget;  // elements of lists still to be walked
    uint32_t instr;        // being checked
} checker;

#define BAD(c, ...) ((c)->err = arena_printf((c)->mem, __VA_ARGS__), false)

static bool good_str(checker *c, uint32_t str, const char *table, uint32_t i)
{
    return str < c->p->strs.n ||
           BAD(c, "%s %" PRIu32 ": string %" PRIu32 " does not exist", table, i, str);
}

static bool good_place(checker *c, uint32_t place, const char *table, uint32_t i)
{
    return place < c->p->places.n ||
           BAD(c, "%s %" PRIu32 ": place %" PRIu32 " does not exist", table, i, place);
}

// ---- tables without instructions

static bool check_heads(checker *c)
{
    const ir *p = c->p;
    if (!p->target) {
        return BAD(c, "the program has no target");
    }
    if (!p->views.n || !p->forms.n || !p->aps.n || !p->dyns.n || !p->places.n || !p->deps.n ||
        !p->strs.n) {
        return BAD(c, "a table lacks its entry 0");
    }
    if (p->kernel >= p->strs.n) {
        return BAD(c, "kernel: string %" PRIu32 " does not exist", p->kernel);
    }
    if (p->grid < 1 || p->grid > 2 || p->core >= p->grid) {
        return BAD(c, "core %" PRIu32 " of a grid of %" PRIu32, p->core, p->grid);
    }
    if (p->registers > MAX_REGISTERS) {
        return BAD(c, "%" PRIu32 " registers; at most %d", p->registers, MAX_REGISTERS);
    }
    if (p->strs.at[0][0] || p->dyns.at[0].kind != DYN_NONE || p->aps.at[0].ndim ||
        p->views.at[0].form || p->forms.at[0].dyn) {
        return BAD(c, "an entry 0 is not empty");
    }
    return true;
}

static bool check_places(checker *c)
{
    const ir *p = c->p;
    for (uint32_t i = 0; i < p->files.n; i++) {
        if (!good_str(c, p->files.at[i].name, "file", i)) {
            return false;
        }
    }
    if (p->places.at[0].kind != PLACE_ROOT) {
        return BAD(c, "place 0: not the root");
    }
    for (uint32_t i = 1; i < p->places.n; i++) {
        const ir_place *pl = &p->places.at[i];
        if (pl->kind > PLACE_ITER || pl->kind == PLACE_ROOT) {
            return BAD(c, "place %" PRIu32 ": kind %u does not exist", i, pl->kind);
        }
        if (pl->parent >= i) {
            return BAD(c, "place %" PRIu32 ": parent %" PRIu32 " does not come before it", i,
                       pl->parent);
        }
        if (!good_str(c, pl->what, "place", i)) {
            return false;
        }
        if (pl->kind != PLACE_ITER && (pl->file >= p->files.n || pl->lo > pl->hi)) {
            return BAD(c, "place %" PRIu32 ": bytes %" PRIu32 " to %" PRIu32 " of file %" PRIu32, i,
                       pl->lo, pl->hi, pl->file);
        }
    }
    return true;
}

static bool check_address(checker *c, uint32_t i)
{
    const ir_tensor *t = &c->p->tensors.at[i];
    const target *tg = c->p->target;
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    if (t->addr_bytes == ADDR_AUTO) {
        return !t->manual || BAD(c, "tensor %" PRIu32 ": a manual address that is none", i);
    }
    uint64_t limit = t->buffer == BUF_SBUF   ? tg->sbuf_partition_bytes
                     : t->buffer == BUF_PSUM ? tg->psum_partition_bytes
                                             : MAX_BYTES;
    if (t->addr_bytes > limit || t->size_bytes > limit - t->addr_bytes ||
        (chip &&
         (t->addr_part > tg->partitions || t->partitions > tg->partitions - t->addr_part))) {
        return BAD(c, "tensor %" PRIu32 ": address (%" PRIu32 ", %" PRIu64 ") is outside %s", i,
                   t->addr_part, t->addr_bytes, buffer_name((buffer_kind)t->buffer));
    }
    if (t->addr_bytes % dtype_size((dtype)t->dtype)) {
        return BAD(c,
                   "tensor %" PRIu32 ": address %" PRIu64 " is not a multiple of its dtype's size",
                   i, t->addr_bytes);
    }
    return true;
}

static bool check_role(checker *c, uint32_t i)
{
    const ir *p = c->p;
    const ir_tensor *t = &p->tensors.at[i];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    if (chip && t->role != ROLE_TEMP) {
        return BAD(c, "tensor %" PRIu32 ": role %u in %s", i, t->role,
                   buffer_name((buffer_kind)t->buffer));
    }
    if (t->manual && !chip) {
        return BAD(c, "tensor %" PRIu32 ": a manual address in %s", i,
                   buffer_name((buffer_kind)t->buffer));
    }
    if (t->role == ROLE_ARG && (t->param >= p->params.n || p->params.at[t->param].tensor != i)) {
        return BAD(c, "tensor %" PRIu32 ": parameter %" PRIu32 " is not this tensor", i, t->param);
    }
    if (t->shared && (t->buffer != BUF_SHARED || t->role == ROLE_ARG || t->role == ROLE_CONST ||
                      p->grid < 2 || t->shared > IR_MAX_SHARED)) {
        return BAD(c, "tensor %" PRIu32 ": cannot have shared number %" PRIu32, i, t->shared);
    }
    if (t->role == ROLE_CONST &&
        (t->data % 64 || t->data > p->blob.n || t->size_bytes > p->blob.n - t->data)) {
        return BAD(c,
                   "tensor %" PRIu32 ": %" PRIu64 " bytes at %" PRIu32
                   " of the constants, which have %" PRIu32,
                   i, t->size_bytes, t->data, p->blob.n);
    }
    return true;
}

static bool check_shape(checker *c, uint32_t i)
{
    const ir_tensor *t = &c->p->tensors.at[i];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    if (t->ndim > IR_MAX_DIMS || (chip && t->ndim == 0)) {
        return BAD(c, "tensor %" PRIu32 ": %u dimensions", i, t->ndim);
    }
    uint64_t bytes = dtype_size((dtype)t->dtype);
    for (uint32_t d = 0; d < t->ndim; d++) {
        if (t->shape[d] == 0) {
            return BAD(c, "tensor %" PRIu32 ": dimension %" PRIu32 " is 0", i, d);
        }
        if (chip && d == 0) {
            continue;
        }
        if (t->shape[d] > MAX_BYTES / bytes) {
            return BAD(c, "tensor %" PRIu32 ": too large", i);
        }
        bytes *= t->shape[d];
    }
    if (t->size_bytes != bytes) {
        return BAD(c, "tensor %" PRIu32 ": size_bytes %" PRIu64 ", but its shape has %" PRIu64, i,
                   t->size_bytes, bytes);
    }
    uint32_t parts = chip ? t->shape[0] : 0;
    if (t->partitions != parts || parts > c->p->target->partitions) {
        return BAD(c, "tensor %" PRIu32 ": %u partitions for shape[0] %" PRIu32, i, t->partitions,
                   chip ? t->shape[0] : 0);
    }
    return true;
}

static bool check_tensors(checker *c)
{
    const ir *p = c->p;
    for (uint32_t i = 0; i < p->tensors.n; i++) {
        const ir_tensor *t = &p->tensors.at[i];
        if (!good_str(c, t->name, "tensor", i) || !good_place(c, t->place, "tensor", i)) {
            return false;
        }
        if (t->dtype >= DT_COUNT || t->buffer >= BUF_COUNT || t->role > ROLE_CONST ||
            t->manual > 1 || t->fill > 1) {
            return BAD(c, "tensor %" PRIu32 ": dtype %u, buffer %u, role %u, manual %u, fill %u", i,
                       t->dtype, t->buffer, t->role, t->manual, t->fill);
        }
        if (!check_shape(c, i) || !check_role(c, i) || !check_address(c, i)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < p->params.n; i++) {
        uint32_t t = p->params.at[i].tensor;
        if (!good_str(c, p->params.at[i].name, "parameter", i)) {
            return false;
        }
        if (t >= p->tensors.n || p->tensors.at[t].role != ROLE_ARG || p->tensors.at[t].param != i) {
            return BAD(c, "parameter %" PRIu32 ": tensor %" PRIu32 " is not its tensor", i, t);
        }
    }
    return true;
}

static bool check_aps(checker *c)
{
    const ir *p = c->p;
    for (uint32_t i = 0; i < p->dims.n; i++) {
        const ir_dim *d = &p->dims.at[i];
        if (d->count == 0 || d->stride > MAX_STEP || d->stride < -MAX_STEP) {
            return BAD(c, "dim %" PRIu32 ": [%" PRId64 ", %" PRIu32 "]", i, d->stride, d->count);
        }
    }
    for (uint32_t i = 1; i < p->aps.n; i++) {
        const ir_ap *a = &p->aps.at[i];
        if (a->ndim > IR_MAX_DIMS || a->first > p->dims.n || a->ndim > p->dims.n - a->first) {
            return BAD(c, "ap %" PRIu32 ": %" PRIu32 " dims from %" PRIu32, i, a->ndim, a->first);
        }
    }
    return true;
}

// ---- views

static bool within(checker *c, uint32_t i)
{
    const ir_view *v = ir_view_ref(c->p, i);
    const ir_tensor *t = &c->p->tensors.at[v->tensor];
    const ir_dim *d = ir_dims(c->p, v);
    uint32_t chip = buffer_on_chip((buffer_kind)t->buffer);
    int64_t lo = v->offset, hi = v->offset;  // first and last element
    for (uint32_t k = chip; k < ir_ndim(c->p, v); k++) {
        int64_t reach;
        if (__builtin_mul_overflow(d[k].stride, (int64_t)d[k].count - 1, &reach) ||
            __builtin_add_overflow(reach < 0 ? lo : hi, reach, reach < 0 ? &lo : &hi)) {
            return BAD(c, "view %" PRIu32 ": offsets overflow", i);
        }
    }
    if (v->dyn) {
        return true;  // where it begins is known, and checked, when it runs
    }
    // Below 2^46 elements: no overflow in bytes.
    uint64_t elems = t->size_bytes / dtype_size((dtype)v->dtype);
    if (lo < 0 || (uint64_t)hi >= elems) {
        return BAD(c,
                   "view %" PRIu32 ": elements %" PRId64 " to %" PRId64 " of tensor %" PRIu32
                   ", which has %" PRIu64 "%s",
                   i, lo, hi, v->tensor, elems, chip ? " in a partition" : "");
    }
    return true;
}

static bool check_partitions(checker *c, uint32_t i)
{
    const ir_view *v = ir_view_ref(c->p, i);
    const ir_tensor *t = &c->p->tensors.at[v->tensor];
    const ir_dim *d = ir_dims(c->p, v);
    bool moves = v->dyn && c->p->dyns.at[v->dyn].partition;
    if (d->count > c->p->target->partitions || d->stride < 0 || d->stride > 128) {
        return BAD(c, "view %" PRIu32 ": [%" PRId64 ", %" PRIu32 "] partitions", i, d->stride,
                   d->count);
    }
    if (!moves && v->part + d->stride * (d->count - 1) >= t->partitions) {
        return BAD(c,
                   "view %" PRIu32 ": %" PRIu32 " partitions from %u of tensor %" PRIu32
                   ", which has %u",
                   i, d->count, v->part, v->tensor, t->partitions);
    }
    return true;
}

static bool check_view(checker *c, uint32_t i)
{
    const ir *p = c->p;
    const ir_view *v = ir_view_ref(p, i);
    if (v->tensor >= p->tensors.n || v->ap == 0 || v->ap >= p->aps.n || v->dyn >= p->dyns.n ||
        v->dtype >= DT_COUNT) {
        return BAD(c,
                   "view %" PRIu32 ": tensor %" PRIu32 ", ap %" PRIu32 ", dtype %u, dyn %" PRIu32,
                   i, v->tensor, v->ap, v->dtype, v->dyn);
    }
    const ir_tensor *t = &p->tensors.at[v->tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    uint32_t ndim = ir_ndim(p, v);
    if (v->offset > MAX_STEP || v->offset < -MAX_STEP) {
        return BAD(c, "view %" PRIu32 ": offset %" PRId64, i, v->offset);
    }
    if (chip ? ndim < 1 || ndim > IR_CHIP_DIMS : v->part != 0) {
        return BAD(c, "view %" PRIu32 ": %" PRIu32 " dimensions from partition %u in %s", i, ndim,
                   v->part, buffer_name((buffer_kind)t->buffer));
    }
    if (chip && !check_partitions(c, i)) {
        return false;
    }
    if (t->addr_bytes != ADDR_AUTO && t->addr_bytes % dtype_size((dtype)v->dtype)) {
        return BAD(
            c, "view %" PRIu32 ": address %" PRIu64 " of tensor %" PRIu32 " is not aligned for %s",
            i, t->addr_bytes, v->tensor, dtype_name((dtype)v->dtype));
    }
    return within(c, i);
}

static bool check_dyn(checker *c, uint32_t i)
{
    const ir *p = c->p;
    const ir_dyn *d = &p->dyns.at[i];
    if (d->kind == DYN_NONE || d->kind > DYN_INDIRECT || d->partition > 1 || d->step > MAX_STEP ||
        d->step < -MAX_STEP) {
        return BAD(c, "dyn %" PRIu32 ": kind %u, partition %u, step %" PRId64, i, d->kind,
                   d->partition, d->step);
    }
    if (d->kind == DYN_REG) {
        return d->src < p->registers ||
               BAD(c, "dyn %" PRIu32 ": register %" PRIu32 " does not exist", i, d->src);
    }
    if (d->src == IR_NONE || d->src >= p->views.n) {
        return BAD(c, "dyn %" PRIu32 ": view %" PRIu32 " does not exist", i, d->src);
    }
    if (ir_view_at(p, d->src).dyn) {
        return BAD(c, "dyn %" PRIu32 ": its source is itself dynamic", i);
    }
    return true;
}

// What the source of a dynamic part must be. Requires: all views and dyns checked one by one.
static bool check_source(checker *c, uint32_t i)
{
    const ir *p = c->p;
    const ir_view *v = ir_view_ref(p, i);
    const ir_dyn *d = &p->dyns.at[v->dyn];
    bool chip = buffer_on_chip((buffer_kind)p->tensors.at[v->tensor].buffer);
    if (d->partition && (!chip || d->kind == DYN_VECTOR || d->kind == DYN_INDIRECT)) {
        return BAD(c, "view %" PRIu32 ": a dynamic partition in %s", i,
                   buffer_name((buffer_kind)p->tensors.at[v->tensor].buffer));
    }
    if (d->kind == DYN_REG) {
        return true;
    }
    const ir_view *s = ir_view_ref(p, d->src);
    bool src_chip = buffer_on_chip((buffer_kind)p->tensors.at[s->tensor].buffer);
    if (d->kind == DYN_SCALAR) {
        for (uint32_t k = 0; k < ir_ndim(p, s); k++) {
            if (ir_dims(p, s)[k].count != 1) {
                return BAD(c, "view %" PRIu32 ": a scalar offset of more than one element", i);
            }
        }
        return true;
    }
    if (!src_chip || !dtype_is_int((dtype)s->dtype)) {
        return BAD(c, "view %" PRIu32 ": indices of type %s in %s", i, dtype_name((dtype)s->dtype),
                   buffer_name((buffer_kind)p->tensors.at[s->tensor].buffer));
    }
    if (d->kind == DYN_VECTOR) {
        uint64_t per_part = 1;
        for (uint32_t k = 1; k < ir_ndim(p, s); k++) {
            per_part = ir_dims(p, s)[k].count == 1 ? per_part : 2;
        }
        if (chip || ir_ndim(p, v) < 1 || per_part != 1 ||
            ir_partitions(p, s) < ir_dims(p, v)[0].count) {
            return BAD(c, "view %" PRIu32 ": a vector offset needs HBM and an index a row", i);
        }
    } else if (!chip) {
        return BAD(c, "view %" PRIu32 ": an indirect view in HBM", i);
    }
    return true;
}

static bool check_views(checker *c)
{
    const ir *p = c->p;
    for (uint32_t i = 1; i < p->views.n; i++) {  // before any view is taken apart
        if (p->views.at[i].form >= p->forms.n) {
            return BAD(c, "view %" PRIu32 ": form %" PRIu32 " does not exist", i,
                       p->views.at[i].form);
        }
    }
    for (uint32_t i = 1; i < p->dyns.n; i++) {
        if (!check_dyn(c, i)) {
            return false;
        }
    }
    for (uint32_t i = 1; i < p->views.n; i++) {
        if (!check_view(c, i)) {
            return false;
        }
    }
    for (uint32_t i = 1; i < p->views.n; i++) {
        if (ir_view_at(p, i).dyn && !check_source(c, i)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        uint32_t v = p->outputs.at[i];
        if (v == IR_NONE || v >= p->views.n || ir_view_at(p, v).dyn ||
            p->tensors.at[p->views.at[v].tensor].role == ROLE_TEMP) {
            return BAD(c,
                       "output %" PRIu32 ": view %" PRIu32
                       " is not a static view of a tensor that outlives the kernel",
                       i, v);
        }
    }
    return true;
}

// ---- arguments

// Ranges of every argument, whoever refers to it. A list stands before the argument that names it,
// so lists cannot contain themselves.
static bool bad_arg_range(checker *c, uint32_t i)
{
    const ir_arg *a = &c->p->args.at[i];
    switch (a->kind) {
    case IRA_INT: return BAD(c, "arg %" PRIu32 ": upper bits %d", i, a->aux);
    case IRA_LIST: return BAD(c, "arg %" PRIu32 ": a list of %d from %" PRIu32, i, a->aux, a->v);
    case IRA_NONE:
    case IRA_VIEW:
    case IRA_F32:
    case IRA_BOOL:
    case IRA_ENUM:
    case IRA_OP:
    case IRA_REG:
    case IRA_STR: return BAD(c, "arg %" PRIu32 ": %" PRIu32 " is out of range", i, a->v);
    default: return BAD(c, "arg %" PRIu32 ": kind %u does not exist", i, a->kind);
    }
}

static bool check_arg_ranges(checker *c)
{
    const ir *p = c->p;
    const uint64_t any = (uint64_t)1 << 32;
    // By kind: v is at least the first and below the second.
    const struct {
        uint64_t least, limit;
    } range[] = {[IRA_NONE] = {0, any},     [IRA_VIEW] = {IR_NONE + 1, p->views.n},
                 [IRA_F32] = {0, any},      [IRA_INT] = {0, any},
                 [IRA_BOOL] = {0, 2},       [IRA_ENUM] = {0, 256},
                 [IRA_OP] = {0, OPR_COUNT}, [IRA_REG] = {0, p->registers},
                 [IRA_LIST] = {0, any},     [IRA_STR] = {0, p->strs.n}};
    for (uint32_t i = 0; i < p->args.n; i++) {
        ir_arg a = p->args.at[i];
        bool good = a.kind < sizeof range / sizeof *range && a.v >= range[a.kind].least &&
                    a.v < range[a.kind].limit;
        if (a.kind == IRA_INT) {
            good = a.aux == 0 || a.aux == -1;
        } else if (a.kind == IRA_LIST) {
            good = a.aux >= 0 && (a.aux == 0 || (a.v < i && (uint32_t)a.aux <= i - a.v));
        }
        if (!good) {
            return bad_arg_range(c, i);
        }
    }
    return true;
}

enum {
    K_VIEW = 1 << IRA_VIEW,
    K_F32 = 1 << IRA_F32,
    K_INT = 1 << IRA_INT,
    K_BOOL = 1 << IRA_BOOL,
    K_ENUM = 1 << IRA_ENUM,
    K_OP = 1 << IRA_OP,
    K_REG = 1 << IRA_REG,
    K_LIST = 1 << IRA_LIST,
    K_STR = 1 << IRA_STR,
    K_ALL = 0x3ff
};

// K_* of the argument, of a list's elements, and of what lists among these hold.
static const uint16_t kinds_of[][3] = {
    [PT_OUT] = {K_VIEW, 0, 0},
    [PT_INOUT] = {K_VIEW, 0, 0},
    [PT_IN] = {K_VIEW, 0, 0},
    [PT_SCAL] = {K_VIEW | K_F32 | K_INT, 0, 0},
    [PT_SRC] = {K_VIEW | K_F32 | K_INT, 0, 0},
    [PT_F32] = {K_F32 | K_INT, 0, 0},
    [PT_INT] = {K_INT, 0, 0},
    [PT_REG] = {K_INT | K_REG, 0, 0},
    [PT_IREG] = {K_INT | K_REG, 0, 0},
    [PT_TRI] = {K_BOOL, 0, 0},
    [PT_BOOL] = {K_BOOL, 0, 0},
    [PT_OP] = {K_OP, 0, 0},
    [PT_ENGINE] = {K_ENUM, 0, 0},
    [PT_REDCMD] = {K_ENUM, 0, 0},
    [PT_DGE] = {K_ENUM, 0, 0},
    [PT_OOB] = {K_ENUM, 0, 0},
    [PT_PERF] = {K_ENUM, 0, 0},
    [PT_DMAENG] = {K_ENUM, 0, 0},
    [PT_INTS] = {K_LIST, K_INT, 0},
    [PT_PAIRS] = {K_LIST, K_LIST | K_INT, K_INT},
    [PT_TENSORS] = {K_LIST, K_VIEW, 0},
    [PT_FLOATS] = {K_LIST, K_F32 | K_INT | K_VIEW, 0},
    [PT_REGOUT] = {K_REG, 0, 0},
    [PT_STR] = {K_STR, 0, 0},
    [PT_LEGACY] = {K_ALL, K_ALL, K_ALL},
};
_Static_assert(sizeof kinds_of / sizeof *kinds_of == PT_LEGACY + 1, "a row for each param_type");

static bool bad_arg(checker *c, const isa_param *par, const char *what)
{
    return BAD(c, "instruction %" PRIu32 " (%s), %s: %s", c->instr,
               isa_table[c->p->instrs.at[c->instr].op].name, par->name, what);
}

static void fill_traits(checker *c)
{
    static const uint8_t bit[BUF_COUNT] = {SPACE_B, SPACE_Q, SPACE_H, SPACE_H};
    const ir *p = c->p;
    c->view_traits = NEW_N(c->mem, uint8_t, p->views.n);
    for (uint32_t i = 1; i < p->views.n; i++) {
        uint32_t dyn = ir_view_at(p, i).dyn;
        bool addressed = dyn && p->dyns.at[dyn].kind == DYN_REG;
        c->view_traits[i] = (uint8_t)(bit[p->tensors.at[p->views.at[i].tensor].buffer] |
                                      (addressed ? ADDRESSED : 0));
    }
}

static bool check_space(checker *c, const isa_param *par, uint32_t view)
{
    if (!par->spaces || (par->spaces & c->view_traits[view])) {
        return true;
    }
    buffer_kind b = (buffer_kind)c->p->tensors.at[c->p->views.at[view].tensor].buffer;
    return bad_arg(c, par, arena_printf(c->mem, "a tensor in %s", buffer_name(b)));
}

static bool check_read_reg(checker *c, const isa_param *par, uint32_t reg)
{
    return c->defined[reg] ||
           bad_arg(c, par,
                   arena_printf(c->mem, "register %" PRIu32 " is read before it is written", reg));
}

static bool check_value(checker *c, const isa_param *par, ir_arg a, const uint16_t *allowed,
                        int depth)
{
    if (!(allowed[depth < 2 ? depth : 2] >> a.kind & 1)) {
        return bad_arg(c, par, "a value of the wrong kind");
    }
    if (a.kind == IRA_VIEW) {
        if (c->view_traits[a.v] & ADDRESSED &&
            !check_read_reg(c, par, c->p->dyns.at[ir_view_at(c->p, a.v).dyn].src)) {
            return false;
        }
        return check_space(c, par, a.v);
    }
    if (a.kind == IRA_REG && par->type != PT_REGOUT) {
        return check_read_reg(c, par, a.v);
    }
    if (a.kind == IRA_ENUM && par->type >= PT_ENGINE && par->type <= PT_DMAENG) {
        return isa_enum_member(isa_param_enum((param_type)par->type), (int)a.v) ||
               bad_arg(c, par, "no such member");
    }
    if (a.kind != IRA_LIST) {
        return true;
    }
    if (depth == MAX_LIST_DEPTH) {
        return bad_arg(c, par, "lists too deep");
    }
    if ((uint64_t)a.aux > c->list_budget) {
        return bad_arg(c, par, "lists overlap");
    }
    c->list_budget -= (uint64_t)a.aux;
    for (uint32_t k = 0; k < (uint32_t)a.aux; k++) {
        if (!check_value(c, par, c->p->args.at[a.v + k], allowed, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool check_args(checker *c, const ir_instr *in)
{
    const isa_info *row = &isa_table[in->op];
    const ir_arg *args = &c->p->args.at[in->args];
    bool defines = false;
    for (uint32_t i = 0; i < in->nargs; i++) {
        const isa_param *par = &row->params[i];
        if (args[i].kind == IRA_NONE) {
            if (par->dflt == DK_REQ) {
                return bad_arg(c, par, "absent");
            }
            continue;
        }
        if (!check_value(c, par, args[i], kinds_of[par->type], 0)) {
            return false;
        }
        defines |= par->type == PT_REGOUT;
    }
    for (uint32_t i = 0; defines && i < in->nargs; i++) {
        if (row->params[i].type == PT_REGOUT && args[i].kind == IRA_REG) {
            c->defined[args[i].v] = 1;
        }
    }
    return true;
}

static bool check_deps(checker *c, const ir_instr *in)
{
    const ir *p = c->p;
    uint32_t at = in->deps;
    if (at == IR_NONE) {
        return true;
    }
    for (;; at++) {
        if (at >= p->deps.n || c->list_budget == 0) {
            return BAD(c, "instruction %" PRIu32 ": its dependences have no end", c->instr);
        }
        c->list_budget--;
        if (p->deps.at[at] == IR_DEPS_END) {
            return true;
        }
        if (p->deps.at[at] >= c->instr) {
            return BAD(c,
                       "instruction %" PRIu32 ": depends on %" PRIu32 ", which does not precede it",
                       c->instr, p->deps.at[at]);
        }
    }
}

static bool check_instr(checker *c, uint32_t i)
{
    const ir *p = c->p;
    const ir_instr *in = &p->instrs.at[i];
    c->instr = i;
    if (in->op >= ISA_COUNT || in->engine >= ENG_COUNT) {
        return BAD(c, "instruction %" PRIu32 ": op %u on engine %u does not exist", i, in->op,
                   in->engine);
    }
    const isa_info *row = &isa_table[in->op];
    if (!(row->engines[p->target->gen - 2] >> in->engine & 1)) {
        return BAD(c, "instruction %" PRIu32 ": %s does not run on the %s engine of %s", i,
                   row->name, engine_name((engine_id)in->engine), p->target->name);
    }
    if (in->nargs != row->nparams || in->args > p->args.n || in->nargs > p->args.n - in->args) {
        return BAD(c, "instruction %" PRIu32 " (%s): %u arguments from %" PRIu32, i, row->name,
                   in->nargs, in->args);
    }
    return good_str(c, in->name, "instruction", i) && good_place(c, in->place, "instruction", i) &&
           check_args(c, in) && check_deps(c, in);
}

static bool check_instrs(checker *c)
{
    const ir *p = c->p;
    if (!check_arg_ranges(c)) {
        return false;
    }
    fill_traits(c);
    c->list_budget = (uint64_t)LIST_SHARING * ((uint64_t)p->args.n + p->deps.n);
    c->defined = NEW_N(c->mem, uint8_t, p->registers);
    uint32_t depth = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        if (!check_instr(c, i)) {
            return false;
        }
        uint16_t op = p->instrs.at[i].op;
        if (op == ISA_loop_end && depth-- == 0) {
            return BAD(c, "instruction %" PRIu32 ": loop_end without a loop", i);
        }
        if ((op == ISA_loop_for || op == ISA_loop_while) && ++depth > IR_MAX_LOOPS) {
            return BAD(c, "instruction %" PRIu32 ": more than %d loops inside each other", i,
                       IR_MAX_LOOPS);
        }
    }
    return depth == 0 || BAD(c, "%" PRIu32 " loops have no loop_end", depth);
}

const char *ir_verify(const ir *p, arena *mem)
{
    checker c = {.p = p, .mem = mem};
    if (check_heads(&c) && check_places(&c) && check_aps(&c) && check_tensors(&c) &&
        check_views(&c)) {
        check_instrs(&c);
    }
    return c.err;
}
