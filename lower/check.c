#include "lower/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- words

const char *check_text(check *c, const char *fmt, ...)
{
    char buf[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    return arena_text(c->e->mem, buf,
                      n < 0                    ? 0
                      : (size_t)n < sizeof buf ? (size_t)n
                                               : sizeof buf - 1);
}

const char *check_view_text(emitter *e, const char *label, const ir_view *v)
{
    const ir_tensor *t = &e->p->tensors.at[v->tensor];
    textbuf out;
    text_init(&out, e->mem);
    if (label[0]) {
        text_cstr(&out, label);
        text_char(&out, ' ');
    }
    text_char(&out, '[');
    for (uint32_t d = 0; d < ir_ndim(e->p, v); d++) {
        text_printf(&out, d ? ", %u" : "%u", ir_dims(e->p, v)[d].count);
    }
    text_printf(&out, "] %s @%s", dtype_name((dtype)v->dtype), buffer_name((buffer_kind)t->buffer));
    return out.at;
}

const char *check_what(check *c, uint8_t param)
{
    return check_view_text(c->e, c->info->params[param].name, c->in[param].view);
}

const char *check_dtype_list(arena *mem, uint32_t mask)
{
    textbuf out;
    text_init(&out, mem);
    text_cstr(&out, "");
    for (int d = 0; d < DT_COUNT; d++) {
        if (mask >> d & 1u) {
            text_printf(&out, out.len ? ", %s" : "%s", dtype_name((dtype)d));
        }
    }
    return out.at;
}

const char *check_engine_list(arena *mem, unsigned mask)
{
    textbuf out;
    text_init(&out, mem);
    text_cstr(&out, "");
    for (int i = 0; i < ENG_COUNT; i++) {
        if (mask >> i & 1u) {
            text_printf(&out, out.len ? ", %s" : "%s", engine_name((engine_id)i));
        }
    }
    return out.at;
}

bool check_warn_first(emitter *e, diag_id id, loc at)
{
    if (e->warned_n * 2 >= e->warned_cap) {
        uint32_t cap = e->warned_cap ? e->warned_cap * 2 : 64;
        warn_key *old = e->warned;
        warn_key *new = NEW_N(e->mem, warn_key, cap);
        for (uint32_t i = 0; i < e->warned_cap; i++) {
            if (old[i].id) {
                uint32_t k = (old[i].lo * 31u + old[i].id) & (cap - 1);
                while (new[k].id) {
                    k = (k + 1) & (cap - 1);
                }
                new[k] = old[i];
            }
        }
        e->warned = new;
        e->warned_cap = cap;
    }
    warn_key w = {at.src, at.at.lo, (uint32_t)id + 1};
    uint32_t k = (w.lo * 31u + w.id) & (e->warned_cap - 1);
    for (; e->warned[k].id; k = (k + 1) & (e->warned_cap - 1)) {
        const warn_key *o = &e->warned[k];
        if (o->src == w.src && o->lo == w.lo && o->id == w.id) {
            return false;
        }
    }
    e->warned[k] = w;
    e->warned_n++;
    return true;
}

// ---- the plan: what the tables say, gathered for one target

static part_kind part_of(const isa_param *p)
{
    switch (p->type) {
    case PT_OUT:
    case PT_INOUT:
    case PT_IN:
    case PT_SRC: return strcmp(p->name, "reduce_res") == 0 ? PART_COLUMN : PART_TILE;
    case PT_SCAL: return PART_COLUMN;
    default: return PART_NONE;
    }
}

void check_plan(emitter *e)
{
    for (int op = 0; op < ISA_COUNT; op++) {
        const isa_info *info = &isa_table[op];
        row_plan *plan = &e->plan[op];
        plan->engine_arg = 0xff;
        plan->engines = info->engines[e->gen - 2];
        plan->pick = (plan->engines & E_V) ? ENG_VECTOR : ENG_SYNC;
        if (plan->engines != E_ALL && !(plan->engines & E_V)) {
            for (int i = 0; i < ENG_COUNT; i++) {
                if ((unsigned)plan->engines >> i & 1u) {
                    plan->pick = (uint8_t)i;
                    break;
                }
            }
        } else if (plan->engines == E_ALL) {
            plan->pick = ENG_SYNC;
        }
        for (uint8_t i = 0; i < info->nparams; i++) {
            plan->part[i] = (uint8_t)part_of(&info->params[i]);
            if (plan->part[i]) {
                plan->views = (uint8_t)(i + 1);
            }
            if (info->params[i].type == PT_ENGINE) {
                plan->engine_arg = i;
            }
        }
        const check_dtypes *d = check_table[op].dtypes;
        for (int i = 0; i < 4 && d[i].mask; i++) {
            plan->dtypes[d[i].param] = d[i].mask;
        }
    }
}

// ---- kinds of argument

#define K(x) (1u << IRA_##x)

static const struct {
    uint16_t kinds;
    const char *wanted;
} param_kinds[] = {
    [PT_OUT] = {K(VIEW), "a tensor"},
    [PT_INOUT] = {K(VIEW), "a tensor"},
    [PT_IN] = {K(VIEW), "a tensor"},
    [PT_SCAL] = {K(VIEW) | K(F32) | K(INT) | K(BOOL), "a number or a tensor"},
    [PT_SRC] = {K(VIEW) | K(F32) | K(INT) | K(BOOL), "a number or a tensor"},
    [PT_F32] = {K(F32) | K(INT) | K(BOOL), "a number"},
    [PT_INT] = {K(INT) | K(BOOL), "an integer known at compile time"},
    [PT_IREG] = {K(INT) | K(BOOL) | K(REG), "an integer or a register"},
    [PT_BOOL] = {K(BOOL) | K(INT), "True or False"},
    [PT_TRI] = {K(BOOL) | K(INT) | K(NONE), "True, False or None"},
    [PT_OP] = {K(OP), "an operator of nki.language"},
    [PT_ENGINE] = {K(ENUM), "a member of nki.isa.engine"},
    [PT_REDCMD] = {K(ENUM), "a member of nki.isa.reduce_cmd"},
    [PT_DGE] = {K(ENUM), "a member of nki.isa.dge_mode"},
    [PT_OOB] = {K(ENUM), "a member of nki.isa.oob_mode"},
    [PT_PERF] = {K(ENUM), "a member of nki.isa.matmul_perf_mode"},
    [PT_DMAENG] = {K(ENUM), "a member of nki.isa.dma_engine"},
    [PT_INTS] = {K(LIST) | K(INT) | K(NONE), "integers"},
    [PT_PAIRS] = {K(LIST), "a list of [step, count] pairs"},
    [PT_TENSORS] = {K(LIST), "a list of tensors"},
    [PT_FLOATS] = {K(LIST) | K(NONE), "a list of numbers"},
    [PT_REGOUT] = {K(REG), "a register"},
    [PT_REG] = {K(REG) | K(INT) | K(BOOL), "a register or an integer"},
    [PT_STR] = {K(STR), "a string"},
    [PT_LEGACY] = {0xffff, "a value"},
};
#undef K

static diag *bad_kind(check *c, uint8_t i)
{
    static const char *const got[] = {
        [IRA_NONE] = "None",      [IRA_VIEW] = "a tensor",  [IRA_F32] = "a float",
        [IRA_INT] = "an int",     [IRA_BOOL] = "a bool",    [IRA_ENUM] = "an enum member",
        [IRA_OP] = "an operator", [IRA_REG] = "a register", [IRA_LIST] = "a list",
        [IRA_STR] = "a string",
    };
    const isa_param *p = &c->info->params[i];
    return diag_operand_kind(c->e->pend, c->at, INSN(c), p->name, param_kinds[p->type].wanted,
                             got[c->args[i].kind]);
}

// Public kernels pass dge_mode=3; the language takes members only.
static bool enum_from_int(check *c, uint8_t i)
{
    ir_arg *a = &c->args[i];
    const isa_param *p = &c->info->params[i];
    if (a->kind != IRA_INT || p->type < PT_ENGINE || p->type > PT_DMAENG) {
        return false;
    }
    isa_enum type = isa_param_enum((param_type)p->type);
    const char *member = a->aux ? NULL : isa_enum_member(type, (int)a->v);
    if (!member) {
        return false;
    }
    if (check_warn_first(c->e, D_enum_as_int, c->at)) {
        diag *d =
            diag_enum_as_int(c->e->warn, c->at, INSN(c), p->name, (int)a->v, isa_enum_type(type));
        diag_help(c->e->warn, d, "write nki.isa.%s.%s", isa_enum_type(type), member);
    }
    *a = ira_kind(IRA_ENUM, a->v);
    return true;
}

// ---- operands

static void take_apart(check *c, uint8_t i)
{
    const ir *p = c->p;
    operand *o = &c->in[i];
    o->at = ir_view_at(p, c->args[i].v);
    o->view = &o->at;
    o->tensor = &p->tensors.at[o->view->tensor];
    const ir_ap *ap = &p->aps.at[o->view->ap];
    o->dims = &p->dims.at[ap->first];
    o->ndim = ap->ndim;
    o->partitions = ap->ndim ? o->dims[0].count : 1;
    uint64_t n = 1;
    for (uint32_t d = 1; d < ap->ndim; d++) {
        n *= o->dims[d].count;
    }
    o->free_elems = n;
    o->dtype = o->view->dtype;
    o->buffer = o->tensor->buffer;
    o->dyn = o->view->dyn ? p->dyns.at[o->view->dyn].kind : DYN_NONE;
    if (o->dyn > DYN_REG) {
        o->index = ir_view_at(p, p->dyns.at[o->view->dyn].src);
    }
    o->start = o->view->part + (o->tensor->manual ? o->tensor->addr_part : 0);
}

static unsigned space_of(uint8_t buffer)
{
    return buffer == BUF_SBUF ? SPACE_B : buffer == BUF_PSUM ? SPACE_Q : SPACE_H;
}

static diag *bad_space(check *c, uint8_t i)
{
    const operand *o = &c->in[i];
    diags *ds = c->e->pend;
    unsigned engines = c->e->plan[c->op].engines;
    diag *d;
    if (o->buffer == BUF_PSUM && engines == E_D) {
        d = diag_dma_psum(ds, c->at, INSN(c), check_what(c, i));
        diag_help(ds, d, "copy it to an SBUF tile with tensor_copy first");
        return d;
    }
    if (o->buffer == BUF_PSUM && engines == E_G) {
        d = diag_gpsimd_psum(ds, c->at, INSN(c), check_what(c, i));
        diag_help(ds, d, "copy it to an SBUF tile with tensor_copy first");
        return d;
    }
    static const char *const names[8] = {
        "nothing", "SBUF", "PSUM", "SBUF or PSUM", "HBM", "SBUF or HBM", "PSUM or HBM", "memory",
    };
    unsigned may = c->info->params[i].spaces;
    d = diag_space_not_allowed(ds, c->at, INSN(c), check_what(c, i), names[may & 7u]);
    if (!buffer_on_chip((buffer_kind)o->buffer)) {
        diag_help(ds, d, "load it into an SBUF tile with dma_copy first");
    } else if (may == SPACE_B) {
        diag_help(ds, d, "copy it to an SBUF tile with tensor_copy first");
    } else if (may == SPACE_Q) {
        diag_help(ds, d, "allocate it with buffer=nl.psum");
    }
    return d;
}

// Free dimensions of the access pattern once those that follow each other in memory are merged.
static uint32_t merged_free_dims(const operand *o)
{
    uint32_t n = 0;
    int64_t next = -1;
    for (uint32_t d = o->ndim; d-- > 1;) {
        if (o->dims[d].count == 1) {
            continue;
        }
        if (n == 0 || o->dims[d].stride != next) {
            n++;
        }
        next = o->dims[d].stride * o->dims[d].count;
    }
    return n;
}

// Elements of a partition without those that a broadcast repeats: published kernels read a column
// of PSUM more often than the limit counts.
static uint64_t held_elems(const operand *o)
{
    uint64_t n = 1;
    for (uint32_t d = 1; d < o->ndim; d++) {
        n *= o->dims[d].stride ? o->dims[d].count : 1;
    }
    return n;
}

diag *check_start(check *c, uint8_t i, uint32_t partitions)
{
    const operand *o = &c->in[i];
    const char *allowed = NULL;
    if (partitions > 64 ? o->start != 0 : partitions > 32 ? o->start % 64 : o->start % 32) {
        allowed = partitions > 64 ? "0" : partitions > 32 ? "0 or 64" : "0, 32, 64 or 96";
    }
    if (!allowed) {
        return NULL;
    }
    diag *d = diag_start_partition(c->e->pend, c->at, INSN(c), check_what(c, i), o->start,
                                   partitions, allowed);
    diag_help(c->e->pend, d, "a DMA may start anywhere: move the rows with dma_copy");
    return d;
}

// Steps are 16-bit numbers of elements.
static void wide_step(check *c, uint8_t i)
{
    const operand *o = &c->in[i];
    for (uint32_t d = 1; d < o->ndim; d++) {
        int64_t step = o->dims[d].stride;
        bool merged = d + 1 < o->ndim && step == o->dims[d + 1].stride * o->dims[d + 1].count;
        if (o->dims[d].count > 1 && (step > INT16_MAX || step < INT16_MIN) && !merged &&
            check_warn_first(c->e, D_access_pattern_step, c->at)) {
            diag_access_pattern_step(c->e->warn, c->at, INSN(c), check_what(c, i), (long long)step, INT16_MIN,
                                     INT16_MAX);
        }
    }
}

static diag *on_chip(check *c, uint8_t i, unsigned flags)
{
    const operand *o = &c->in[i];
    diags *ds = c->e->pend;
    if (o->partitions > c->t->partitions) {
        return diag_partition_limit(ds, c->at, INSN(c), check_what(c, i), o->partitions, c->t->name,
                                    c->t->partitions);
    }
    if (flags & ROW_ANY_START) {
        return NULL;
    }
    if (o->partitions > 1 && o->dims[0].stride != 1) {
        return diag_partition_stride(ds, c->at, INSN(c), check_what(c, i),
                                     (long long)o->dims[0].stride);
    }
    if (o->start) {
        diag *d = check_start(c, i, o->partitions);
        if (d) {
            return d;
        }
    }
    unsigned limit = o->buffer == BUF_PSUM ? 4096 : 65536;
    unsigned engines = c->e->plan[c->op].engines;
    if (o->free_elems > limit && held_elems(o) > limit && engines != E_T && engines != E_G) {
        return diag_free_limit(ds, c->at, INSN(c), check_what(c, i),
                               (unsigned long long)o->free_elems,
                               o->buffer == BUF_PSUM ? "PSUM" : "SBUF", limit);
    }
    wide_step(c, i);
    if (o->ndim > 5) {
        uint32_t n = merged_free_dims(o);
        if (n > 4) {
            return diag_access_pattern_rank(ds, c->at, INSN(c), check_what(c, i), n, 4);
        }
    }
    return NULL;
}

static diag *one_operand(check *c, uint8_t i, const check_row *row)
{
    const operand *o = &c->in[i];
    if (!(space_of(o->buffer) & c->info->params[i].spaces)) {
        return bad_space(c, i);
    }
    if (buffer_on_chip((buffer_kind)o->buffer)) {
        diag *d = on_chip(c, i, row->flags);
        if (d) {
            return d;
        }
    }
    if (o->dyn == DYN_INDIRECT) {
        if (!(row->indirect >> i & 1u)) {
            return diag_indirect_not_allowed(c->e->pend, c->at, INSN(c), check_what(c, i));
        }
        if (c->e->gen < 4) {
            return diag_not_on_target(c->e->pend, c->at,
                                      check_text(c, "%s: an indirect view", INSN(c)), "trn3 (gen4)",
                                      c->t->name);
        }
    }
    uint32_t mask = c->e->plan[c->op].dtypes[i];
    return mask ? check_dtype_in(c, i, mask) : NULL;
}

diag *check_dtype_in(check *c, uint8_t i, uint32_t mask)
{
    if (!c->in[i].view || mask >> c->in[i].dtype & 1u) {
        return NULL;
    }
    return diag_dtype_not_allowed(c->e->pend, c->at, INSN(c), check_what(c, i), c->t->name,
                                  check_dtype_list(c->e->mem, mask));
}

diag *check_same_dtype(check *c, uint8_t a, uint8_t b)
{
    if (!c->in[a].view || !c->in[b].view || c->in[a].dtype == c->in[b].dtype) {
        return NULL;
    }
    return diag_dtype_mismatch(c->e->pend, c->at, INSN(c), check_what(c, a), check_what(c, b));
}

diag *check_same_partitions(check *c, uint8_t a, uint8_t b)
{
    const operand *x = &c->in[a], *y = &c->in[b];
    if (!x->view || !y->view || x->partitions == y->partitions) {
        return NULL;
    }
    diag *d = diag_shape_mismatch(c->e->pend, c->at, INSN(c), check_what(c, a), check_what(c, b),
                                  check_text(c, "%u partition%s against %u", x->partitions,
                                             x->partitions == 1 ? "" : "s", y->partitions));
    if (x->partitions == 1 || y->partitions == 1) {
        diag_help(c->e->pend, d,
                  "a tile of one partition is not broadcast over the others: load it into all of "
                  "them with a dma_copy from HBM, or multiply it by ones with nc_matmul");
    }
    return d;
}

static diag *same_free(check *c, uint8_t a, uint8_t b)
{
    const operand *x = &c->in[a], *y = &c->in[b];
    if (x->free_elems == y->free_elems) {
        return NULL;
    }
    return diag_shape_mismatch(c->e->pend, c->at, INSN(c), check_what(c, a), check_what(c, b),
                               check_text(c, "%llu elements a partition against %llu",
                                          (unsigned long long)x->free_elems,
                                          (unsigned long long)y->free_elems));
}

static diag *shapes(check *c, const check_row *row)
{
    const row_plan *plan = &c->e->plan[c->op];
    int first = -1;
    for (uint8_t i = 0; i < plan->views; i++) {
        if (!c->in[i].view) {
            continue;
        }
        if (plan->part[i] == PART_TILE) {
            if (first < 0) {
                first = i;
                continue;
            }
            diag *d = row->shape == SHAPE_OWN ? NULL : check_same_partitions(c, (uint8_t)first, i);
            if (!d && row->shape == SHAPE_SAME) {
                d = same_free(c, (uint8_t)first, i);
            }
            if (d) {
                return d;
            }
        } else if (plan->part[i] == PART_COLUMN) {
            uint32_t partitions = first < 0 ? c->in[i].partitions : c->in[first].partitions;
            if (c->in[i].free_elems != 1 || c->in[i].partitions != partitions) {
                return diag_operand_not_per_partition(c->e->pend, c->at, INSN(c), check_what(c, i),
                                                      partitions);
            }
        }
    }
    return NULL;
}

static diag *psum_inputs(check *c)
{
    const row_plan *plan = &c->e->plan[c->op];
    int seen = -1;
    for (uint8_t i = 0; i < plan->views; i++) {
        uint8_t type = c->info->params[i].type;
        if (!c->in[i].view || c->in[i].buffer != BUF_PSUM || (type != PT_IN && type != PT_SRC)) {
            continue;
        }
        if (seen >= 0) {
            diag *d = diag_both_psum(c->e->pend, c->at, INSN(c), check_what(c, (uint8_t)seen),
                                     check_what(c, i));
            diag_help(c->e->pend, d, "copy %s to an SBUF tile with tensor_copy first",
                      c->info->params[i].name);
            return d;
        }
        seen = i;
    }
    return NULL;
}

// ---- engines

static const int8_t engine_of_enum[] = {
    [ISAE_engine_unknown] = -1,        [ISAE_engine_tensor] = ENG_TENSOR,
    [ISAE_engine_scalar] = ENG_SCALAR, [ISAE_engine_gpsimd] = ENG_GPSIMD,
    [ISAE_engine_dma] = ENG_DMA,       [ISAE_engine_vector] = ENG_VECTOR,
    [ISAE_engine_sync] = ENG_SYNC,
};

diag *check_engine(check *c)
{
    const row_plan *plan = &c->e->plan[c->op];
    c->engine = plan->pick;
    if (plan->engine_arg == 0xff || c->op == ISA_dma_copy) {
        return NULL;
    }
    uint32_t v = c->args[plan->engine_arg].v;
    int asked = v < sizeof engine_of_enum ? engine_of_enum[v] : -1;
    if (asked < 0) {
        return NULL;
    }
    if (!((unsigned)plan->engines >> asked & 1u)) {
        return diag_engine_not_allowed(c->e->pend, c->at, INSN(c), engine_name((engine_id)asked),
                                       "", c->t->name, check_engine_list(c->e->mem, plan->engines));
    }
    c->engine = (uint8_t)asked;
    return NULL;
}

// ---- indirect views

static const ir_view *index_of(const operand *o)
{
    return &o->index;
}

static bool placed(const check *c, const ir_view *v, uint32_t *start)
{
    const ir_tensor *t = &c->p->tensors.at[v->tensor];
    *start = v->part + (t->manual ? t->addr_part : 0u);
    return t->manual;
}

static diag *index_fault(check *c, uint8_t i, const char *why)
{
    return diag_indirect_placement(c->e->pend, c->at, INSN(c), check_what(c, i), why);
}

// The operand whose partitions a scattered dst follows: the first input.
static int first_input(const check *c)
{
    for (uint8_t i = 0; i < c->e->plan[c->op].views; i++) {
        uint8_t type = c->info->params[i].type;
        if (c->in[i].view && (type == PT_IN || type == PT_SRC)) {
            return i;
        }
    }
    return -1;
}

// What the index of the indirect operand i must start with: the tile that is gathered, or the
// first input of a scatter (its index when it is itself indirect and in PSUM).
static const ir_view *goes_with(const check *c, uint8_t i)
{
    if (c->info->params[i].type == PT_IN || c->info->params[i].type == PT_SRC) {
        return c->in[i].view;
    }
    int k = first_input(c);
    if (k < 0 || c->in[k].buffer == BUF_SBUF) {
        return k < 0 ? NULL : c->in[k].view;
    }
    return c->in[k].dyn == DYN_INDIRECT ? index_of(&c->in[k]) : NULL;
}

static diag *indirect_views(check *c)
{
    uint32_t group = c->engine == ENG_TENSOR ? 32 : 16;
    for (uint8_t i = 0; i < c->e->plan[c->op].views; i++) {
        const operand *o = &c->in[i];
        if (!o->view || o->dyn != DYN_INDIRECT) {
            continue;
        }
        bool written = c->info->params[i].type != PT_IN && c->info->params[i].type != PT_SRC;
        const ir_view *index = index_of(o), *with = goes_with(c, i);
        uint64_t room = group * (uint64_t)ir_free_elems(c->p, index);
        uint32_t start, other = 0;
        if (c->p->dyns.at[o->view->dyn].num_elem > room) {
            return diag_indirect_index(
                c->e->pend, c->at, INSN(c),
                check_text(c, "%s holds %llu offsets for %u partitions, %s takes %u",
                           check_view_text(c->e, "index", index), (unsigned long long)room, group,
                           check_what(c, i), c->p->dyns.at[o->view->dyn].num_elem));
        }
        if (written && c->engine == ENG_SCALAR && o->buffer == BUF_PSUM) {
            return index_fault(c, i, "the Scalar engine does not scatter into PSUM");
        }
        bool fixed = placed(c, index, &start);
        if (start % 32) {
            return index_fault(c, i,
                               check_text(c, "its index starts at partition %u, not at a multiple "
                                             "of 32",
                                          start));
        }
        if (with && fixed && placed(c, with, &other) && start != other) {
            return index_fault(c, i,
                               check_text(c, "its index starts at partition %u and %s at %u", start,
                                          written ? "the first input" : "the tile", other));
        }
    }
    return NULL;
}

// After the engine is known: GpSimd and PSUM.
static diag *engine_spaces(check *c)
{
    if (c->engine != ENG_GPSIMD) {
        return NULL;
    }
    for (uint8_t i = 0; i < c->e->plan[c->op].views; i++) {
        if (c->in[i].view && c->in[i].buffer == BUF_PSUM) {
            diag *d = diag_gpsimd_psum(c->e->pend, c->at, INSN(c), check_what(c, i));
            diag_help(c->e->pend, d, "copy it to an SBUF tile with tensor_copy first");
            return d;
        }
    }
    return NULL;
}

// ---- lists

uint32_t check_ints(const check *c, uint8_t i, int64_t *out, uint32_t cap)
{
    const ir_arg *a = &c->args[i];
    if (a->kind == IRA_INT || a->kind == IRA_BOOL) {
        out[0] = ira_integer(*a);
        return 1;
    }
    if (a->kind != IRA_LIST) {
        return 0;
    }
    uint32_t n = (uint16_t)a->aux;
    for (uint32_t k = 0; k < n && k < cap; k++) {
        out[k] = ira_integer(c->p->args.at[a->v + k]);
    }
    return n;
}

static diag *list_kinds(check *c, uint8_t i)
{
    const ir_arg *a = &c->args[i];
    uint8_t type = c->info->params[i].type;
    if (a->kind != IRA_LIST) {
        return NULL;
    }
    for (uint32_t k = 0; k < (uint16_t)a->aux; k++) {
        const ir_arg *x = &c->p->args.at[a->v + k];
        bool ok = true;
        if (type == PT_INTS) {
            ok = x->kind == IRA_INT || x->kind == IRA_BOOL;
        } else if (type == PT_TENSORS) {
            ok = x->kind == IRA_VIEW;
        } else if (type == PT_FLOATS) {
            ok = x->kind == IRA_F32 || x->kind == IRA_INT || x->kind == IRA_BOOL;
        } else if (type == PT_PAIRS) {
            ok = x->kind == IRA_LIST && x->aux == 2 && c->p->args.at[x->v].kind == IRA_INT &&
                 c->p->args.at[x->v + 1].kind == IRA_INT;
        }
        if (!ok) {
            return diag_operand_kind(c->e->pend, c->at, INSN(c), c->info->params[i].name,
                                     param_kinds[type].wanted, "a list with other members");
        }
    }
    return NULL;
}

// ---- one instruction

// The operand of a unary operator: check_ops.c says.
static bool operand_may_miss(isa_id op, uint8_t i)
{
    return (op == ISA_tensor_scalar && i == ARG(tensor_scalar, operand0)) ||
           (op == ISA_scalar_tensor_tensor && i == ARG(scalar_tensor_tensor, operand0)) ||
           (op == ISA_tensor_scalar_reduce && i == ARG(tensor_scalar_reduce, operand0)) ||
           (op == ISA_tensor_scalar_cumulative && i == ARG(tensor_scalar_cumulative, imm0));
}

static diag *arguments(check *c, const check_row *row)
{
    for (uint8_t i = 0; i < c->info->nparams; i++) {
        ir_arg *a = &c->args[i];
        const isa_param *p = &c->info->params[i];
        c->in[i].view = NULL;
        if (a->kind == IRA_VIEW) {
            if (!(param_kinds[p->type].kinds >> IRA_VIEW & 1u)) {
                return bad_kind(c, i);
            }
            take_apart(c, i);
            diag *d = one_operand(c, i, row);
            if (d) {
                return d;
            }
            continue;
        }
        if (a->kind == IRA_NONE) {
            if (p->type == PT_SCAL && p->dflt == DK_F) {
                *a = ira_f32((float)p->f);
            } else if (p->dflt != DK_NONE && !operand_may_miss(c->op, i) &&
                       !(param_kinds[p->type].kinds >> IRA_NONE & 1u)) {
                return bad_kind(c, i);
            }
            continue;
        }
        if (!(param_kinds[p->type].kinds >> a->kind & 1u) && !enum_from_int(c, i)) {
            return bad_kind(c, i);
        }
        if ((p->type == PT_BOOL || p->type == PT_TRI) && a->kind == IRA_INT) {
            *a = ira_kind(IRA_BOOL, ira_integer(*a) != 0);
        }
        if (a->kind == IRA_LIST) {
            diag *d = list_kinds(c, i);
            if (d) {
                return d;
            }
        }
    }
    return NULL;
}

diag *check_instr(check *c)
{
    const check_row *row = &check_table[c->op];
    const row_plan *plan = &c->e->plan[c->op];
    if (!plan->engines) {
        bool gen3 = c->info->engines[1] != 0;
        return diag_not_on_target(c->e->pend, c->at, INSN(c),
                                  gen3 ? "trn2 (gen3) or later" : "trn3 (gen4)", c->t->name);
    }
    diag *d = arguments(c, row);
    if (!d) {
        d = check_engine(c);
    }
    if (!d) {
        d = shapes(c, row);
    }
    if (!d && row->flags & ROW_ONE_PSUM) {
        d = psum_inputs(c);
    }
    if (!d && row->flags & ROW_SAME_DTYPE) {
        d = check_same_dtype(c, 0, 1);
    }
    if (!d && row->special) {
        d = row->special(c);
    }
    if (!d) {
        d = engine_spaces(c);
    }
    return d ? d : indirect_views(c);
}
