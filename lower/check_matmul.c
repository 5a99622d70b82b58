#include "lower/check.h"

#include <string.h>

// The Tensor engine's instructions and what feeds them.

#define F32S  (DTM(float32) | DTM(tfloat32))
#define F16S  (DTM(bfloat16) | DTM(float16))
#define F8OLD (DTM(float8_e4m3) | DTM(float8_e5m2))
#define F8NEW DTM(float8_e4m3fn)
#define F8S   (F8OLD | F8NEW)

static bool in_set(const operand *o, uint32_t mask)
{
    return mask >> o->dtype & 1u;
}

static diag *wrong_tile(check *c, const char *why)
{
    return diag_matmul_tile(c->e->pend, c->at, INSN(c), why);
}

typedef struct tile_args {
    int64_t pos[2], size[2];  // row, column
    uint32_t np, ns;          // numbers given
} tile_args;

static tile_args tile_of(const check *c, uint8_t posi, uint8_t sizei)
{
    tile_args t = {{0}, {0}, 0, 0};
    t.np = check_ints(c, posi, t.pos, 2);
    t.ns = check_ints(c, sizei, t.size, 2);
    return t;
}

// tile_position and tile_size: rows (and columns) of the systolic array that take part.
static diag *tiling(check *c, tile_args t, uint64_t k, uint64_t m)
{
    const int64_t *pos = t.pos, *size = t.size;
    uint32_t np = t.np, ns = t.ns;
    if (np == 0 && ns == 0) {
        return NULL;
    }
    if (np == 0 || ns == 0) {
        return wrong_tile(c, "tile_position and tile_size go together: give both or neither");
    }
    if (np != 2 || ns != 2) {
        return wrong_tile(c, "tile_position and tile_size are (row, column) pairs");
    }
    static const char *const axis[2] = {"row", "column"};
    for (int i = 0; i < 2; i++) {
        bool legal = size[i] == 32 || size[i] == 64 || size[i] == 128;
        if (!legal || (c->e->gen == 2 && size[0] == 32 && size[1] == 32)) {
            return wrong_tile(c,
                              check_text(c, "tile_size (%lld, %lld): a %s count is 32, 64 or 128%s",
                                         (long long)size[0], (long long)size[1], axis[i],
                                         c->e->gen == 2 ? ", and not both 32 on trn1" : ""));
        }
        if (pos[i] < 0 || pos[i] % size[i] || pos[i] + size[i] > 128) {
            return wrong_tile(
                c, check_text(c,
                              "tile_position (%lld, %lld): its %s must be a multiple of "
                              "the tile's %lld below 128",
                              (long long)pos[0], (long long)pos[1], axis[i], (long long)size[i]));
        }
    }
    if ((int64_t)k > size[0] || (int64_t)m > size[1]) {
        return wrong_tile(c, check_text(c,
                                        "tile_size (%lld, %lld) is smaller than the operands' %llu "
                                        "partitions or %llu stationary columns",
                                        (long long)size[0], (long long)size[1],
                                        (unsigned long long)k, (unsigned long long)m));
    }
    return NULL;
}

// The bytes of a partition from the first to the last that a view touches.
static void extent(const operand *o, uint64_t *lo, uint64_t *hi)
{
    int64_t first = o->view->offset, last = first;
    for (uint32_t d = 1; d < o->ndim; d++) {
        int64_t reach = o->dims[d].stride * ((int64_t)o->dims[d].count - 1);
        if (reach < 0) {
            first += reach;
        } else {
            last += reach;
        }
    }
    uint64_t size = dtype_size((dtype)o->dtype);
    *lo = (uint64_t)(first < 0 ? 0 : first) * size;
    *hi = (uint64_t)(last < 0 ? 0 : last + 1) * size;
}

static diag *one_bank(check *c, uint8_t dst)
{
    const operand *o = &c->in[dst];
    uint64_t lo, hi, bank = c->t->psum_bank_bytes;
    if (c->e->gen >= 4 || o->dyn || o->tensor->size_bytes <= bank) {
        return NULL;
    }
    extent(o, &lo, &hi);
    if (hi == 0 || lo / bank == (hi - 1) / bank) {
        return NULL;
    }
    return diag_matmul_bank_overflow(c->e->pend, c->at, INSN(c), check_what(c, dst),
                                     (unsigned long long)lo, (unsigned long long)hi,
                                     (unsigned)bank);
}

// dst is [M, N].
static diag *result_shape(check *c, uint8_t dst, uint8_t rows, uint64_t m, uint8_t cols, uint64_t n)
{
    const operand *o = &c->in[dst];
    if (o->partitions != m) {
        return diag_shape_mismatch(
            c->e->pend, c->at, INSN(c), check_what(c, dst), check_what(c, rows),
            check_text(c, "dst has %u partitions for %llu columns of %s", o->partitions,
                       (unsigned long long)m, c->info->params[rows].name));
    }
    if (o->free_elems != n) {
        return diag_shape_mismatch(
            c->e->pend, c->at, INSN(c), check_what(c, dst), check_what(c, cols),
            check_text(c, "dst has %llu elements a partition for %llu columns of %s",
                       (unsigned long long)o->free_elems, (unsigned long long)n,
                       c->info->params[cols].name));
    }
    return NULL;
}

static diag *limits(check *c, uint8_t dst, uint8_t stat, uint64_t m, uint8_t mov, uint64_t n)
{
    if (c->in[stat].partitions != c->in[mov].partitions) {
        return diag_matmul_contract(c->e->pend, c->at, INSN(c), check_what(c, stat),
                                    check_what(c, mov));
    }
    if (m > c->t->matmul_stationary_max) {
        return diag_matmul_stationary_limit(c->e->pend, c->at, INSN(c), check_what(c, stat),
                                            (unsigned long long)m, c->t->matmul_stationary_max);
    }
    unsigned limit = c->t->matmul_moving_max;
    if (c->e->gen >= 4 && dtype_size((dtype)c->in[dst].dtype) == 2) {
        limit *= 2;
    }
    if (n > limit) {
        diag *d = diag_matmul_moving_limit(c->e->pend, c->at, INSN(c), check_what(c, mov),
                                           (unsigned long long)n, limit,
                                           dtype_name((dtype)c->in[dst].dtype), c->t->name);
        diag_help(c->e->pend, d, "split the moving operand into slices of at most %u columns",
                  limit);
        return d;
    }
    return NULL;
}

static uint32_t operand_types(const check *c)
{
    return F32S | F16S | F8OLD | (c->e->gen >= 4 ? F8NEW : 0u);
}

static diag *matmul_types(check *c, uint8_t dst, uint8_t stat, uint8_t mov)
{
    diag *d = check_dtype_in(c, stat, operand_types(c));
    if (!d) {
        d = check_dtype_in(c, mov, operand_types(c));
    }
    if (d) {
        return d;
    }
    const operand *s = &c->in[stat], *m = &c->in[mov];
    const char *why = NULL;
    if (in_set(s, F32S) != in_set(m, F32S)) {
        why = "float32 and tfloat32 pair only with each other";
    } else if ((s->dtype == DT_float8_e4m3 && m->dtype == DT_float8_e4m3fn) ||
               (s->dtype == DT_float8_e4m3fn && m->dtype == DT_float8_e4m3)) {
        why = "float8_e4m3 and float8_e4m3fn are decoded differently";
    }
    if (why) {
        d = diag_matmul_dtype_pair(c->e->pend, c->at, INSN(c), check_what(c, stat),
                                   check_what(c, mov), why);
        if (in_set(s, F32S) != in_set(m, F32S)) {
            diag_help(c->e->pend, d, "convert %s with tensor_copy",
                      c->info->params[in_set(s, F32S) ? stat : mov].name);
        }
        return d;
    }
    bool ok = c->in[dst].dtype == DT_float32 || (c->e->gen >= 4 && c->in[dst].dtype == DT_bfloat16);
    return ok ? NULL
              : diag_matmul_dst_dtype(c->e->pend, c->at, INSN(c), check_what(c, dst),
                                      c->e->gen >= 4 ? "float32 or bfloat16" : "float32",
                                      c->t->name);
}

// A transpose keeps the dtype; public kernels also widen into a float32 PSUM tile.
static diag *transpose_types(check *c, uint8_t dst, uint8_t src)
{
    const operand *d = &c->in[dst], *s = &c->in[src];
    if (d->dtype == s->dtype) {
        return NULL;
    }
    bool fp8 = in_set(s, F8S) && dtype_size((dtype)d->dtype) == 2;
    if (fp8) {
        return NULL;
    }
    bool widens = d->dtype == DT_float32 && in_set(s, F32S | F16S | F8S);
    if (!widens) {
        return diag_dtype_mismatch(c->e->pend, c->at, INSN(c), check_what(c, dst),
                                   check_what(c, src));
    }
    if (c->e->gen > 2 && check_warn_first(c->e, D_dtype_widening_transpose, c->at)) {
        diag_dtype_widening_transpose(c->e->warn, c->at, INSN(c), check_what(c, src),
                                      check_what(c, dst));
    }
    return NULL;
}

// Indirect operands: 16-bit or float8, the whole array; a transpose gathers only what it moves.
static diag *indirect_matmul(check *c, tile_args t, bool transpose)
{
    enum {
        DST = ARG(nc_matmul, dst),
        STAT = ARG(nc_matmul, stationary),
        MOV = ARG(nc_matmul, moving)
    };
    if (transpose && c->in[MOV].dyn == DYN_INDIRECT) {
        return diag_indirect_not_allowed(c->e->pend, c->at, INSN(c), check_what(c, MOV));
    }
    bool any = false;
    for (uint8_t i = DST; i <= MOV; i++) {
        if (c->in[i].dyn != DYN_INDIRECT) {
            continue;
        }
        any = true;
        diag *d = i == DST ? NULL : check_dtype_in(c, i, F16S | F8S);
        if (d) {
            return d;
        }
    }
    return any && (t.pos[0] || t.pos[1])
               ? wrong_tile(c, "an indirect operand needs tile_position (0, 0)")
               : NULL;
}

static diag *double_row(check *c, uint8_t i, uint64_t *columns)
{
    const operand *o = &c->in[i];
    uint32_t f8 = c->e->gen >= 4 ? F8S : F8OLD;
    const char *why = NULL;
    if (c->e->gen < 3) {
        why = check_text(c, "needs trn2 (gen3) or later; the target is %s", c->t->name);
    } else if (!in_set(o, f8)) {
        why = check_text(c, "multiplies fp8 operands; %s is not", check_what(c, i));
    } else if (o->ndim < 3 || o->dims[1].count != 2) {
        why = check_text(c, "takes operands of shape [K, 2, columns]; %s is not", check_what(c, i));
    }
    if (why) {
        return diag_matmul_double_row(c->e->pend, c->at, INSN(c), why);
    }
    *columns = o->free_elems / 2;
    return NULL;
}

diag *check_nc_matmul(check *c)
{
    enum {
        DST = ARG(nc_matmul, dst),
        STAT = ARG(nc_matmul, stationary),
        MOV = ARG(nc_matmul, moving)
    };
    ir_arg *acc = &c->args[ARG(nc_matmul, accumulate)];
    tile_args tile = tile_of(c, ARG(nc_matmul, tile_position), ARG(nc_matmul, tile_size));
    bool transpose = ira_integer(c->args[ARG(nc_matmul, is_transpose)]) != 0;
    bool rows2 = c->args[ARG(nc_matmul, perf_mode)].v == ISAE_matmul_perf_mode_double_row;
    uint64_t m = c->in[STAT].free_elems, n = c->in[MOV].free_elems;
    diag *d = NULL;
    if (rows2) {
        d = transpose ? diag_matmul_double_row(c->e->pend, c->at, INSN(c), "cannot transpose")
                      : double_row(c, STAT, &m);
        if (!d) {
            d = double_row(c, MOV, &n);
        }
        if (!d && tile.ns == 2 && tile.size[1] != 128) {
            d = diag_matmul_double_row(c->e->pend, c->at, INSN(c), "takes no column tiles");
        }
    }
    if (!d && transpose) {
        if (acc->kind == IRA_BOOL && acc->v) {
            d = diag_transpose_accumulate(c->e->pend, c->at, INSN(c));
        } else {
            *acc = ira_kind(IRA_BOOL, 0);
            d = transpose_types(c, DST, STAT);
        }
    } else if (!d) {
        d = matmul_types(c, DST, STAT, MOV);
    }
    if (!d) {
        d = limits(c, DST, STAT, m, MOV, n);
    }
    if (!d) {
        d = result_shape(c, DST, STAT, m, MOV, n);
    }
    if (!d) {
        d = one_bank(c, DST);
    }
    if (!d) {
        d = indirect_matmul(c, tile, transpose);
    }
    return d ? d : tiling(c, tile, c->in[STAT].partitions, m);
}

static diag *mx_fault(check *c, uint8_t i, const char *why)
{
    return diag_mx_operand(c->e->pend, c->at, INSN(c), check_what(c, i), why);
}

// Scales of a tile of `partitions` rows of packed words: one byte for eight rows.
static diag *mx_scale(check *c, uint8_t scale, uint8_t data, uint64_t columns)
{
    const operand *s = &c->in[scale], *x = &c->in[data];
    if (s->free_elems < columns) {
        return mx_fault(c, scale,
                        check_text(c, "must have a scale for each of the %llu columns of %s",
                                   (unsigned long long)columns, c->info->params[data].name));
    }
    // The last quadrant's four scales end the tile; a slice for pack slot 1 to 3 starts 4, 8 or 12
    // in.
    uint32_t need = x->partitions <= 32 ? x->partitions / 8 : x->partitions - 28;
    if (s->partitions < need || s->partitions > 128) {
        return mx_fault(c, scale,
                        check_text(c, "must have at least %u partitions for the %u of %s", need,
                                   x->partitions, c->info->params[data].name));
    }
    if (s->start % 32 > 12 || s->start % 4) {
        return mx_fault(c, scale,
                        check_text(c,
                                   "starts at partition %u; scales start 0, 4, 8 or 12 into a "
                                   "quadrant of 32",
                                   s->start));
    }
    return check_start(c, data, x->partitions);
}

diag *check_nc_matmul_mx(check *c)
{
    enum {
        DST = ARG(nc_matmul_mx, dst),
        STAT = ARG(nc_matmul_mx, stationary),
        MOV = ARG(nc_matmul_mx, moving)
    };
    uint64_t m = c->in[STAT].free_elems, n = c->in[MOV].free_elems;
    diag *d = limits(c, DST, STAT, m, MOV, n);
    if (d) {
        return d;
    }
    if (c->in[STAT].partitions % 32) {
        return mx_fault(c, STAT, "must have a multiple of 32 partitions");
    }
    if (m % 2) {
        return mx_fault(c, STAT, "must have an even number of columns");
    }
    d = mx_scale(c, ARG(nc_matmul_mx, stationary_scale), STAT, m);
    if (!d) {
        d = mx_scale(c, ARG(nc_matmul_mx, moving_scale), MOV, n);
    }
    if (!d) {
        d = result_shape(c, DST, STAT, m, MOV, n);
    }
    if (!d && c->in[DST].dtype != DT_float32 && c->in[DST].dtype != DT_bfloat16) {
        d = diag_matmul_dst_dtype(c->e->pend, c->at, INSN(c), check_what(c, DST),
                                  "float32 or bfloat16", c->t->name);
    }
    tile_args tile = tile_of(c, ARG(nc_matmul_mx, tile_position), ARG(nc_matmul_mx, tile_size));
    if (!d && tile.ns == 2 && (tile.size[1] != 128 || tile.pos[1])) {
        d = wrong_tile(c, "it has row tiles only: columns (0, 128)");
    }
    return d ? d : tiling(c, tile, c->in[STAT].partitions, m);
}

diag *check_quantize_mx(check *c)
{
    enum {
        DST = ARG(quantize_mx, dst),
        SRC = ARG(quantize_mx, src),
        SCALE = ARG(quantize_mx, dst_scale)
    };
    diag *d = check_same_partitions(c, DST, SRC);
    if (d) {
        return d;
    }
    if (c->in[SRC].partitions % 32) {
        return mx_fault(c, SRC, "must have a multiple of 32 partitions");
    }
    if (c->in[SRC].free_elems != 4 * c->in[DST].free_elems) {
        return mx_fault(c, SRC,
                        check_text(c,
                                   "must have 4 elements for each of the %llu packed words of dst",
                                   (unsigned long long)c->in[DST].free_elems));
    }
    return mx_scale(c, SCALE, DST, c->in[DST].free_elems);
}

// ---- nc_transpose

static diag *too_large(check *c, uint8_t data, unsigned limit, engine_id engine)
{
    diag *d = diag_transpose_limit(c->e->pend, c->at, INSN(c), check_what(c, data), limit, limit,
                                   engine_name(engine));
    if (limit == 32) {
        diag_help(c->e->pend, d,
                  "allocate dst in PSUM: the Tensor engine transposes up to [128, 128]");
    }
    return d;
}

diag *check_nc_transpose(check *c)
{
    enum { DST = ARG(nc_transpose, dst), DATA = ARG(nc_transpose, data) };
    const operand *o = &c->in[DATA], *r = &c->in[DST];
    bool small = o->partitions <= 32 && o->free_elems <= 32;
    if (c->args[ARG(nc_transpose, engine)].v == ISAE_engine_unknown) {
        bool tensor = r->buffer == BUF_PSUM && o->buffer == BUF_SBUF;
        c->engine = tensor ? ENG_TENSOR : ENG_VECTOR;
    }
    if (c->engine == ENG_VECTOR && !small) {
        return too_large(c, DATA, 32, ENG_VECTOR);
    }
    if (c->engine == ENG_TENSOR) {
        if (r->buffer != BUF_PSUM) {
            diag *d = diag_space_not_allowed(c->e->pend, c->at, INSN(c), check_what(c, DST),
                                             "PSUM on the Tensor engine");
            diag_help(c->e->pend, d, "allocate it with buffer=nl.psum");
            return d;
        }
        if (o->buffer != BUF_SBUF) {
            return diag_space_not_allowed(c->e->pend, c->at, INSN(c), check_what(c, DATA),
                                          "SBUF on the Tensor engine");
        }
        if (o->free_elems > 128) {
            return too_large(c, DATA, 128, ENG_TENSOR);
        }
    }
    if (r->partitions != o->free_elems || r->free_elems != o->partitions) {
        return diag_shape_mismatch(c->e->pend, c->at, INSN(c), check_what(c, DST),
                                   check_what(c, DATA),
                                   check_text(c, "the transpose has %llu partitions of %u elements",
                                              (unsigned long long)o->free_elems, o->partitions));
    }
    diag *d = transpose_types(c, DST, DATA);
    return d ? d : c->engine == ENG_TENSOR ? one_bank(c, DST) : NULL;
}
