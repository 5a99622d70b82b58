#include "lower/check.h"

#include <string.h>

// Rows with rules of their own, and registers and loops.

static diag *shape_is(check *c, uint8_t i, const char *wanted)
{
    return diag_shape_expected(c->e->pend, c->at, INSN(c), check_what(c, i), wanted);
}

static diag *row_elems(check *c, uint8_t i, uint64_t n)
{
    if (c->in[i].free_elems == n) {
        return NULL;
    }
    return shape_is(c, i, check_text(c, "%llu elements a partition", (unsigned long long)n));
}

static const char *number_text(check *c, const ir_arg *a)
{
    char buf[40];
    if (a->kind == IRA_F32) {
        text_float(buf, ira_float(*a));
        return check_text(c, "%s", buf);
    }
    if (a->kind == IRA_BOOL) {
        return a->v ? "True" : "False";
    }
    return check_text(c, "%lld", (long long)ira_integer(*a));
}

static bool is_zero(const ir_arg *a)
{
    return a->kind == IRA_F32 ? ira_float(*a) == 0.0f : ira_integer(*a) == 0;
}

diag *check_memset(check *c)
{
    ir_arg *v = &c->args[ARG(memset, value)];
    dtype dt = (dtype)c->in[0].dtype;
    dtype_class cls = dtype_class_of(dt);
    if (cls == DTC_X) {
        if (!is_zero(v)) {
            return diag_memset_packed(c->e->pend, c->at, INSN(c), dtype_name(dt),
                                      number_text(c, v));
        }
        *v = ira_int(0);
        return NULL;
    }
    if (cls == DTC_F) {
        check_to_f32(c, ARG(memset, value));
        return NULL;
    }
    if (v->kind != IRA_F32) {
        return NULL;
    }
    // Public kernels fill integer tiles with 0.0, whose bits are those of 0.
    if (is_zero(v)) {
        diag_memset_float_zero(c->e->warn, c->at, INSN(c), dtype_name(dt));
        *v = ira_int(0);
        return NULL;
    }
    return diag_memset_value_type(c->e->pend, c->at, INSN(c), number_text(c, v), dtype_name(dt));
}

diag *check_nc_stream_shuffle(check *c)
{
    enum { DST = ARG(nc_stream_shuffle, dst), SRC = ARG(nc_stream_shuffle, src) };
    int64_t mask[32];
    uint32_t n = check_ints(c, ARG(nc_stream_shuffle, shuffle_mask), mask, 32);
    if (n != 32) {
        return diag_shuffle_mask(c->e->pend, c->at, INSN(c),
                                 check_text(c, "has %u members; it takes 32", n));
    }
    for (uint32_t i = 0; i < 32; i++) {
        if ((mask[i] < 0 || mask[i] > 31) && mask[i] != 255) {
            return diag_shuffle_mask(
                c->e->pend, c->at, INSN(c),
                check_text(c,
                           "member %u is %lld; a member is 0 to 31, or 255 to leave "
                           "the row alone",
                           i, (long long)mask[i]));
        }
    }
    diag *d = row_elems(c, DST, c->in[SRC].free_elems);
    uint32_t p = c->in[DST].partitions > c->in[SRC].partitions ? c->in[DST].partitions
                                                               : c->in[SRC].partitions;
    for (uint8_t i = DST; i <= SRC && !d; i++) {
        d = check_start(c, i, (p + 31) / 32 * 32);
    }
    return d;
}

diag *check_iota(check *c)
{
    return check_pattern(c, ARG(iota, pattern), ARG(iota, dst));
}

static diag *gather_fault(check *c, const char *why)
{
    return diag_gather_limits(c->e->pend, c->at, INSN(c), why);
}

diag *check_local_gather(check *c)
{
    enum {
        DST = ARG(local_gather, dst),
        SRC = ARG(local_gather, src_buffer),
        IDX = ARG(local_gather, index)
    };
    ir_arg *validi = &c->args[ARG(local_gather, num_valid_indices)];
    int64_t each = ira_integer(c->args[ARG(local_gather, num_elem_per_idx)]);
    int64_t all = 16 * (int64_t)c->in[IDX].free_elems;
    int64_t valid = validi->kind == IRA_NONE ? all : ira_integer(*validi);
    if (c->in[SRC].partitions % 16) {
        return shape_is(c, SRC, "a multiple of 16 partitions");
    }
    diag *d = check_same_partitions(c, SRC, IDX);
    if (!d) {
        d = check_same_partitions(c, SRC, DST);
    }
    if (d) {
        return d;
    }
    if (each < 1 || each > 32 || (each & (each - 1))) {
        return gather_fault(
            c, check_text(c, "num_elem_per_idx %lld is not 1, 2, 4, 8, 16 or 32", (long long)each));
    }
    if (all > 4096) {
        return gather_fault(
            c, check_text(c, "%s holds %lld indices for 16 partitions; the limit is 4096",
                          check_what(c, IDX), (long long)all));
    }
    if (valid < 0 || valid > all) {
        return gather_fault(c, check_text(c, "num_valid_indices %lld is not 0 to %lld",
                                          (long long)valid, (long long)all));
    }
    if ((uint64_t)(valid * each) > c->in[DST].free_elems) {
        return row_elems(c, DST, (uint64_t)(valid * each));
    }
    return NULL;
}

diag *check_nc_n_gather(check *c)
{
    enum {
        DST = ARG(nc_n_gather, dst),
        DATA = ARG(nc_n_gather, data),
        IDX = ARG(nc_n_gather, indices)
    };
    diag *d = check_same_partitions(c, DATA, IDX);
    if (!d) {
        d = check_same_partitions(c, DATA, DST);
    }
    return d ? d : row_elems(c, DST, c->in[IDX].free_elems);
}

diag *check_sequence_bounds(check *c)
{
    enum { DST = ARG(sequence_bounds, dst), IDS = ARG(sequence_bounds, segment_ids) };
    for (uint8_t i = 0; i < 2; i++) {
        if (c->in[i].partitions != 1) {
            return shape_is(c, i, "one partition");
        }
    }
    diag *d = check_same_dtype(c, DST, IDS);
    return d ? d : row_elems(c, DST, 2 * c->in[IDS].free_elems);
}

diag *check_nonzero_with_count(check *c)
{
    return row_elems(c, ARG(nonzero_with_count, dst),
                     c->in[ARG(nonzero_with_count, src)].free_elems + 1);
}

static diag *topk_fault(check *c, const char *why)
{
    return diag_topk_limits(c->e->pend, c->at, INSN(c), why);
}

diag *check_topk(check *c)
{
    enum { VAL = ARG(topk, val_dst), IDX = ARG(topk, idx_dst), SRC = ARG(topk, src) };
    int64_t n = ira_integer(c->args[ARG(topk, n)]);
    uint64_t k = c->in[VAL].free_elems;
    if (c->in[SRC].partitions % 16) {
        return shape_is(c, SRC, "a multiple of 16 partitions");
    }
    if (n < 8 || n >= 65536) {
        return topk_fault(c, check_text(c, "n %lld is not 8 to 65535", (long long)n));
    }
    if (k < 1 || k > (uint64_t)n || k >= 32768) {
        return topk_fault(
            c, check_text(c,
                          "%s asks for %llu of %lld; it may ask for at most n, and for fewer "
                          "than 32768",
                          check_what(c, VAL), (unsigned long long)k, (long long)n));
    }
    if (c->in[SRC].free_elems < (uint64_t)((n + 15) / 16)) {
        return topk_fault(c, check_text(c, "%s holds fewer than n = %lld elements in 16 partitions",
                                        check_what(c, SRC), (long long)n));
    }
    return row_elems(c, IDX, k);
}

// ---- eight at a time

static diag *index8_range(check *c, uint8_t i)
{
    const operand *o = &c->in[i];
    if (o->ndim > 3) {
        return shape_is(c, i, "at most 3 dimensions");
    }
    if (o->free_elems >= 8 && o->free_elems <= 16384) {
        return NULL;
    }
    return diag_index8_limits(c->e->pend, c->at, INSN(c), check_what(c, i), 8, 16384);
}

diag *check_max8(check *c)
{
    diag *d = index8_range(c, ARG(max8, src));
    return d ? d : row_elems(c, ARG(max8, dst), 8);
}

diag *check_nc_find_index8(check *c)
{
    diag *d = index8_range(c, ARG(nc_find_index8, data));
    if (!d) {
        d = row_elems(c, ARG(nc_find_index8, vals), 8);
    }
    return d ? d : row_elems(c, ARG(nc_find_index8, dst), 8);
}

diag *check_nc_match_replace8(check *c)
{
    enum { DST = ARG(nc_match_replace8, dst), DATA = ARG(nc_match_replace8, data) };
    check_to_f32(c, ARG(nc_match_replace8, imm));
    diag *d = index8_range(c, DATA);
    if (!d) {
        d = row_elems(c, DST, c->in[DATA].free_elems);
    }
    if (!d) {
        d = row_elems(c, ARG(nc_match_replace8, vals), 8);
    }
    if (!d && c->in[ARG(nc_match_replace8, dst_idx)].view) {
        d = row_elems(c, ARG(nc_match_replace8, dst_idx), 8);
    }
    return d;
}

// ---- batch norm, dropout

diag *check_bn_stats(check *c)
{
    const operand *o = &c->in[ARG(bn_stats, data)];
    if (o->free_elems > c->t->bn_stats_max) {
        diag *d =
            diag_bn_stats_limit(c->e->pend, c->at, INSN(c), check_what(c, ARG(bn_stats, data)),
                                (unsigned long long)o->free_elems, c->t->bn_stats_max);
        diag_help(c->e->pend, d, "take bn_stats of slices and join them with one bn_aggr");
        return d;
    }
    return row_elems(c, ARG(bn_stats, dst), 6);
}

diag *check_bn_aggr(check *c)
{
    if (c->in[ARG(bn_aggr, data)].free_elems % 3) {
        return shape_is(c, ARG(bn_aggr, data),
                        "a multiple of 3 elements a partition: (count, mean, M2) triples");
    }
    return row_elems(c, ARG(bn_aggr, dst), 2);
}

diag *check_dropout(check *c)
{
    const uint8_t prob = ARG(dropout, prob);
    check_to_f32(c, prob);
    if (!c->in[prob].view) {
        float f = ira_float(c->args[prob]);
        return f >= 0.0f && f <= 1.0f
                   ? NULL
                   : diag_random_argument(
                         c->e->pend, c->at, INSN(c),
                         check_text(c, "prob %s is not 0 to 1", number_text(c, &c->args[prob])));
    }
    if (dtype_is_int((dtype)c->in[ARG(dropout, data)].dtype)) {
        return check_dtype_in(c, prob, DTM(float32));
    }
    return dtype_is_float((dtype)c->in[prob].dtype) ? NULL : check_dtype_in(c, prob, DTM(float32));
}

// ---- random numbers

diag *check_rng(check *c)
{
    (void)c;
    return NULL;
}

diag *check_rand2(check *c)
{
    enum { MIN = ARG(rand2, min), MAX = ARG(rand2, max) };
    check_to_f32(c, MIN);
    check_to_f32(c, MAX);
    if (!c->in[MIN].view && !c->in[MAX].view &&
        !(ira_float(c->args[MIN]) < ira_float(c->args[MAX]))) {
        return diag_random_argument(c->e->pend, c->at, INSN(c),
                                    check_text(c, "min %s is not below max %s",
                                               number_text(c, &c->args[MIN]),
                                               number_text(c, &c->args[MAX])));
    }
    return NULL;
}

diag *check_set_rng_seed(check *c)
{
    if (c->in[0].partitions != 1 || c->in[0].free_elems != 1) {
        return shape_is(c, 0, "one element: shape [1, 1]");
    }
    return NULL;
}

diag *check_rand_state(check *c)
{
    uint64_t words = c->engine == ENG_VECTOR ? 24 : 6;
    if (c->engine != ENG_VECTOR && c->in[0].buffer == BUF_PSUM) {
        return NULL;  // gpsimd_psum follows
    }
    if (c->e->gen < 4 && c->in[0].buffer == BUF_PSUM) {
        return diag_space_not_allowed(c->e->pend, c->at, INSN(c), check_what(c, 0), "SBUF");
    }
    return row_elems(c, 0, words);
}

// ---- registers and loops

static bool induction(const check *c, uint32_t reg)
{
    return reg < c->e->induction.n && c->e->induction.at[reg];
}

static diag *write_register(check *c, uint8_t i)
{
    if (!induction(c, c->args[i].v)) {
        return NULL;
    }
    diag *d = diag_loop_var_write(c->e->pend, c->at, INSN(c));
    diag_help(c->e->pend, d,
              "copy it to a register of your own: r = register_alloc(); register_move(r, i)");
    return d;
}

static diag *one_element(check *c, uint8_t i)
{
    const operand *o = &c->in[i];
    if (o->free_elems * o->partitions == 1 && dtype_size((dtype)o->dtype) <= 4) {
        return NULL;
    }
    return diag_register_tensor(c->e->pend, c->at, INSN(c), check_what(c, i));
}

diag *check_register_move(check *c)
{
    return write_register(c, ARG(register_move, dst));
}

diag *check_register_load(check *c)
{
    diag *d = write_register(c, ARG(register_load, dst));
    return d ? d : one_element(c, ARG(register_load, src));
}

diag *check_register_store(check *c)
{
    return one_element(c, ARG(register_store, dst));
}

diag *check_loop_for(check *c)
{
    int64_t step = ira_integer(c->args[ARG(loop_for, step)]);
    return step > 0 ? NULL : diag_loop_step(c->e->pend, c->at, "dynamic_range", (long long)step);
}
