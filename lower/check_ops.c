#include "lower/check.h"

#include <math.h>
#include <string.h>

// Rows that take operators: which operator where (lang/op.def's classes and roles, and the engines
// that have it), what its operands must be, and the engine where that follows from the operator.

#define I32U32 (DTM(int32) | DTM(uint32))

static bool is_bits(op_id op)
{
    return op_table[op].cls == OPC_B;
}

static bool is_unary(op_id op)
{
    return op_table[op].cls == OPC_U || op == OPR_invert;
}

// Names of operators with a role (and, with gen4_only unset, on this target).
static const char *ops_with(check *c, unsigned role, unsigned classes)
{
    textbuf out;
    text_init(&out, c->e->mem);
    text_cstr(&out, "");
    for (int i = 0; i < OPR_COUNT; i++) {
        if (op_table[i].roles & role && classes >> op_table[i].cls & 1u &&
            !(op_table[i].roles & OP_SIM)) {
            text_printf(&out, out.len ? ", %s" : "%s", op_table[i].name);
        }
    }
    return out.at;
}

enum { ALL_CLASSES = 31, BINARY = 1 << OPC_A | 1 << OPC_C | 1 << OPC_L | 1 << OPC_B };
enum { FP_BINARY = 1 << OPC_A | 1 << OPC_C | 1 << OPC_L, FP_ANY = FP_BINARY | 1 << OPC_U };

static diag *op_role(check *c, uint8_t i, unsigned role, unsigned classes)
{
    op_id op = arg_op(c, i);
    const op_info *info = &op_table[op];
    if (!(info->roles & role) || !(classes >> info->cls & 1u)) {
        return diag_op_not_allowed(c->e->pend, c->at, INSN(c), c->info->params[i].name, info->name,
                                   "", ops_with(c, role, classes));
    }
    if (info->roles & OP_SIM && check_warn_first(c->e, D_op_simulator_only, c->at)) {
        diag_op_simulator_only(c->e->warn, c->at, INSN(c), info->name);
    }
    return NULL;
}

// ALU operators: abs_max, abs_min, and square and relu outside the Scalar engine came with gen4.
static diag *op_alu(check *c, uint8_t i, unsigned classes)
{
    op_id op = arg_op(c, i);
    if (c->e->gen < 4 &&
        (op == OPR_abs_max || op == OPR_abs_min || op == OPR_square || op == OPR_relu)) {
        return diag_op_not_on_target(c->e->pend, c->at, INSN(c), op_table[op].name, c->t->name);
    }
    return op_role(c, i, OP_ALU, classes);
}

static diag *op_one_of(check *c, uint8_t i, const op_id *set, uint32_t n)
{
    op_id op = arg_op(c, i);
    textbuf out;
    for (uint32_t k = 0; k < n; k++) {
        if (set[k] == op) {
            return NULL;
        }
    }
    text_init(&out, c->e->mem);
    for (uint32_t k = 0; k < n; k++) {
        text_printf(&out, k ? ", %s" : "%s", op_table[set[k]].name);
    }
    return diag_op_not_allowed(c->e->pend, c->at, INSN(c), c->info->params[i].name,
                               op_table[op].name, "", out.at);
}

void check_to_f32(check *c, uint8_t i)
{
    ir_arg *a = &c->args[i];
    if (a->kind == IRA_INT || a->kind == IRA_BOOL) {
        *a = ira_f32((float)ira_integer(*a));
    }
}

// Tiles of bit operators hold integers.
static diag *bit_tile(check *c, op_id op, uint8_t i)
{
    if (!c->in[i].view || dtype_is_int((dtype)c->in[i].dtype) || c->in[i].dtype == DT_bool_) {
        return NULL;
    }
    diag *d =
        diag_bitvec_needs_int(c->e->pend, c->at, INSN(c), op_table[op].name, check_what(c, i));
    diag_help(c->e->pend, d,
              "reinterpret the tile's bits with .view(nl.uint32) or convert it with "
              "tensor_copy");
    return d;
}

// An operand that goes with one operator: absent for a unary one, an int for a bit one, else fp32.
static diag *op_operand(check *c, uint8_t opi, uint8_t i)
{
    op_id op = arg_op(c, opi);
    ir_arg *a = &c->args[i];
    const char *param = c->info->params[i].name;
    if (is_unary(op)) {
        bool zero = a->kind == IRA_NONE || (a->kind == IRA_F32 && ira_float(*a) == 0.0f) ||
                    ((a->kind == IRA_INT || a->kind == IRA_BOOL) && ira_integer(*a) == 0);
        if (!zero && op_table[op].cls == OPC_U) {
            return diag_unary_operand(c->e->pend, c->at, INSN(c), op_table[op].name, param);
        }
        if (a->kind == IRA_NONE || op_table[op].cls == OPC_U) {
            *a = is_bits(op) ? ira_int(0) : ira_f32(0.0f);
        }
    }
    if (a->kind == IRA_NONE) {
        return diag_op_needs_operand(c->e->pend, c->at, INSN(c), op_table[op].name, param);
    }
    if (is_bits(op)) {
        if (a->kind == IRA_F32) {
            char buf[40];
            text_float(buf, ira_float(*a));
            diag *d = diag_bitvec_needs_int(c->e->pend, c->at, INSN(c), op_table[op].name,
                                            check_text(c, "%s=%s", param, buf));
            if (ira_float(*a) == floorf(ira_float(*a)) && fabsf(ira_float(*a)) < 2147483648.0f) {
                diag_help(c->e->pend, d, "write %s=%lld", param, (long long)ira_float(*a));
            }
            return d;
        }
        if (a->kind == IRA_BOOL) {
            *a = ira_int(ira_integer(*a));
        }
        return bit_tile(c, op, i);
    }
    check_to_f32(c, i);
    return c->op == ISA_tensor_scalar ? check_dtype_in(c, i, DTM(float32)) : NULL;
}

static diag *same_class(check *c, uint8_t a, uint8_t b)
{
    op_id x = arg_op(c, a), y = arg_op(c, b);
    if (is_bits(x) == is_bits(y)) {
        return NULL;
    }
    return diag_op_class_mixed(c->e->pend, c->at, INSN(c), op_table[is_bits(x) ? x : y].name,
                               op_table[is_bits(x) ? y : x].name);
}

static bool engine_asked(const check *c)
{
    uint8_t i = c->e->plan[c->op].engine_arg;
    return i != 0xff && c->args[i].v != ISAE_engine_unknown;
}

static diag *wrong_engine(check *c, op_id op, unsigned allowed)
{
    diag *d = diag_engine_not_allowed(c->e->pend, c->at, INSN(c), engine_name((engine_id)c->engine),
                                      check_text(c, " with op %s", op_table[op].name), c->t->name,
                                      check_engine_list(c->e->mem, allowed));
    diag_help(c->e->pend, d, "leave engine= out");
    return d;
}

static bool in_psum(const check *c, uint8_t i)
{
    return c->in[i].view && c->in[i].buffer == BUF_PSUM;
}

// ---- Vector and GpSimd

diag *check_tensor_tensor(check *c)
{
    enum {
        DST = ARG(tensor_tensor, dst),
        A = ARG(tensor_tensor, data1),
        B = ARG(tensor_tensor, data2)
    };
    const uint8_t opi = ARG(tensor_tensor, op);
    op_id op = arg_op(c, opi);
    diag *d = op_alu(c, opi, BINARY);
    if (!d && op == OPR_invert) {
        d = op_role(c, opi, 0, BINARY);
    }
    if (d) {
        return d;
    }
    if (is_bits(op)) {
        for (uint8_t i = 0; i <= 2 && !d; i++) {
            d = bit_tile(c, op, i);
        }
        if (!d && c->engine == ENG_GPSIMD) {
            d = wrong_engine(c, op, E_V);
        }
        return d;
    }
    if (!engine_asked(c)) {
        uint32_t all = DTM(int32) | DTM(uint32);
        bool ints =
            (all >> c->in[DST].dtype & all >> c->in[A].dtype & all >> c->in[B].dtype & 1u) != 0;
        bool psum = in_psum(c, DST) || in_psum(c, A) || in_psum(c, B);
        bool exact = op == OPR_add || op == OPR_subtract || op == OPR_multiply ||
                     op == OPR_maximum || op == OPR_minimum;
        if (op == OPR_power || (ints && exact && !psum)) {
            c->engine = ENG_GPSIMD;
        }
    } else if (op == OPR_power && c->engine == ENG_VECTOR) {
        return wrong_engine(c, op, E_G);
    }
    return NULL;
}

// The Scalar engine of gen3 has multiply-add in this order and its parts.
static bool scalar_has(const check *c, op_id op0, bool two, op_id op1)
{
    if (c->e->gen >= 4) {
        return true;
    }
    return (op0 == OPR_multiply && (!two || op1 == OPR_add)) || (op0 == OPR_add && !two);
}

diag *check_tensor_scalar(check *c)
{
    const uint8_t op0 = ARG(tensor_scalar, op0), op1 = ARG(tensor_scalar, op1);
    const uint8_t v0 = ARG(tensor_scalar, operand0), v1 = ARG(tensor_scalar, operand1);
    bool two = !arg_none(c, op1);
    op_id a = arg_op(c, op0), b = two ? arg_op(c, op1) : OPR_COUNT;
    diag *d = op_alu(c, op0, ALL_CLASSES);
    if (!d && two) {
        d = op_alu(c, op1, ALL_CLASSES);
    }
    if (!d && two) {
        d = same_class(c, op0, op1);
    }
    if (!d) {
        d = op_operand(c, op0, v0);
    }
    if (!d && two) {
        d = op_operand(c, op1, v1);
    } else if (!d && !arg_none(c, v1)) {
        check_to_f32(c, v1);
    }
    if (d) {
        return d;
    }
    if (is_bits(a)) {
        d = bit_tile(c, a, ARG(tensor_scalar, dst));
        if (!d) {
            d = bit_tile(c, a, ARG(tensor_scalar, data));
        }
        return d || c->engine == ENG_VECTOR ? d : wrong_engine(c, a, E_V);
    }
    bool rsqrt = a == OPR_rsqrt || b == OPR_rsqrt;
    if (!engine_asked(c)) {
        bool psum = in_psum(c, 0) || in_psum(c, 1) || in_psum(c, v0) || in_psum(c, v1);
        if (rsqrt && !psum) {
            c->engine = ENG_GPSIMD;
        }
        return NULL;
    }
    if (c->engine == ENG_GPSIMD && !rsqrt && a != OPR_power && b != OPR_power) {
        return wrong_engine(c, a, E_V);
    }
    if (c->engine == ENG_SCALAR && !scalar_has(c, a, two, b)) {
        return wrong_engine(c, two && a == OPR_multiply ? b : a, E_V);
    }
    return NULL;
}

diag *check_scalar_tensor_tensor(check *c)
{
    const uint8_t op0 = ARG(scalar_tensor_tensor, op0), op1 = ARG(scalar_tensor_tensor, op1);
    diag *d = op_alu(c, op0, FP_ANY);
    if (!d) {
        d = op_alu(c, op1, FP_BINARY);
    }
    return d ? d : op_operand(c, op0, ARG(scalar_tensor_tensor, operand0));
}

// reduce_cmd must be one of a set (bits by value); load_reduce needs its first value.
static diag *reduce_cmd(check *c, uint8_t i, unsigned allowed, int init)
{
    int cmd = (int)c->args[i].v;
    if (!(allowed >> cmd & 1u)) {
        textbuf out;
        text_init(&out, c->e->mem);
        for (int k = 0; k <= ISAE_reduce_cmd_load_reduce; k++) {
            if (allowed >> k & 1u) {
                text_printf(&out, out.len ? ", %s" : "%s", isa_enum_member(ISA_ENUM_reduce_cmd, k));
            }
        }
        const char *name = isa_enum_member(ISA_ENUM_reduce_cmd, cmd);
        return diag_reduce_cmd_not_allowed(c->e->pend, c->at, INSN(c), name ? name : "?", out.at);
    }
    if (init >= 0 && cmd == ISAE_reduce_cmd_load_reduce && arg_none(c, (uint8_t)init)) {
        return diag_reduce_argument(
            c->e->pend, c->at, INSN(c),
            check_text(c, "reduce_cmd load_reduce needs %s", c->info->params[init].name));
    }
    return NULL;
}

#define CMD(x) (1u << ISAE_reduce_cmd_##x)

diag *check_tensor_scalar_reduce(check *c)
{
    static const op_id folds[] = {OPR_add, OPR_multiply, OPR_maximum, OPR_minimum};
    const uint8_t op0 = ARG(tensor_scalar_reduce, op0);
    diag *d = op_alu(c, op0, FP_ANY);
    if (!d) {
        d = op_operand(c, op0, ARG(tensor_scalar_reduce, operand0));
    }
    if (!d) {
        d = op_one_of(c, ARG(tensor_scalar_reduce, reduce_op), folds, 4);
    }
    check_to_f32(c, ARG(tensor_scalar_reduce, reduce_init));
    return d ? d
             : reduce_cmd(c, ARG(tensor_scalar_reduce, reduce_cmd),
                          CMD(reset_reduce) | CMD(reduce) | CMD(load_reduce),
                          ARG(tensor_scalar_reduce, reduce_init));
}

diag *check_tensor_scalar_cumulative(check *c)
{
    static const op_id folds[] = {OPR_add, OPR_subtract, OPR_multiply, OPR_maximum, OPR_minimum};
    const uint8_t op0 = ARG(tensor_scalar_cumulative, op0);
    diag *d = op_alu(c, op0, FP_ANY);
    if (!d) {
        d = op_one_of(c, ARG(tensor_scalar_cumulative, op1), folds, 5);
    }
    if (!d) {
        d = op_operand(c, op0, ARG(tensor_scalar_cumulative, imm0));
    }
    check_to_f32(c, ARG(tensor_scalar_cumulative, imm1));
    return d ? d
             : reduce_cmd(c, ARG(tensor_scalar_cumulative, reduce_cmd),
                          CMD(reset_reduce) | CMD(reduce) | CMD(load_reduce),
                          ARG(tensor_scalar_cumulative, imm1));
}

diag *check_tensor_tensor_scan(check *c)
{
    diag *d = op_alu(c, ARG(tensor_tensor_scan, op0), FP_BINARY);
    if (!d) {
        d = op_alu(c, ARG(tensor_tensor_scan, op1), FP_BINARY);
    }
    check_to_f32(c, ARG(tensor_tensor_scan, initial));
    return d;
}

// axis: made non-negative; the last dimensions, in any order, never the partitions.
static diag *fold_axes(check *c, uint8_t axisi, uint8_t data, uint64_t *kept)
{
    int64_t axis[IR_MAX_DIMS];
    const operand *o = &c->in[data];
    uint32_t n = check_ints(c, axisi, axis, IR_MAX_DIMS), seen = 0;
    int64_t nd = (int64_t)o->ndim;
    bool rewrite = false;
    textbuf t;
    text_init(&t, c->e->mem);
    for (uint32_t i = 0; i < n && i < IR_MAX_DIMS; i++) {
        int64_t a = axis[i];
        if (a < -nd || a >= nd) {
            return diag_axis_range(c->e->pend, c->at, INSN(c), (long long)a, check_what(c, data));
        }
        if (a < 0) {
            rewrite = true;
            a = axis[i] = a + nd;
        }
        if (a == 0) {
            diag *d = diag_axis_partition(c->e->pend, c->at, INSN(c), check_what(c, data));
            diag_help(c->e->pend, d,
                      "fold over partitions with tensor_partition_reduce, with nc_matmul "
                      "against ones, or after nc_transpose");
            return d;
        }
        seen |= 1u << a;
    }
    uint32_t k = 0;
    while (seen >> (nd - 1 - k) & 1u) {
        seen &= ~(1u << (nd - 1 - k));
        k++;
    }
    if (seen || k == 0) {
        for (uint32_t i = 0; i < n && i < IR_MAX_DIMS; i++) {
            text_printf(&t, i ? ", %lld" : "%lld", (long long)axis[i]);
        }
        diag *d = diag_axis_not_trailing(c->e->pend, c->at, INSN(c), n ? t.at : "()",
                                         check_what(c, data));
        diag_help(c->e->pend, d,
                  "reorder the view with permute or ap so that the folded axes are last");
        return d;
    }
    *kept = 1;
    for (uint32_t i = 1; i < o->ndim - k; i++) {
        *kept *= o->dims[i].count;
    }
    if (rewrite || c->args[axisi].kind != IRA_LIST) {
        ir_arg list[IR_MAX_DIMS];
        for (uint32_t i = 0; i < k; i++) {
            list[i] = ira_int(nd - (int64_t)k + (int64_t)i);
        }
        c->args[axisi] = (ir_arg){IRA_LIST, 0, (int16_t)k, ir_list(c->e->p, list, k)};
    }
    return NULL;
}

diag *check_tensor_reduce(check *c)
{
    enum { DST = ARG(tensor_reduce, dst), DATA = ARG(tensor_reduce, data) };
    const uint8_t opi = ARG(tensor_reduce, op);
    uint64_t kept = 0;
    op_id op = arg_op(c, opi);
    diag *d = op_role(c, opi, OP_RED, BINARY);
    if (!d && is_bits(op)) {
        d = bit_tile(c, op, DST);
        if (!d) {
            d = bit_tile(c, op, DATA);
        }
        if (!d && ira_integer(c->args[ARG(tensor_reduce, negate)])) {
            d = diag_reduce_argument(c->e->pend, c->at, INSN(c), "negate needs an arithmetic op");
        }
    }
    if (!d) {
        d = fold_axes(c, ARG(tensor_reduce, axis), DATA, &kept);
    }
    if (!d && c->in[DST].free_elems != kept) {
        d = diag_shape_mismatch(
            c->e->pend, c->at, INSN(c), check_what(c, DST), check_what(c, DATA),
            check_text(c, "folding leaves %llu elements a partition, dst has %llu",
                       (unsigned long long)kept, (unsigned long long)c->in[DST].free_elems));
    }
    return d;
}

diag *check_tensor_partition_reduce(check *c)
{
    static const op_id folds[] = {OPR_add, OPR_average, OPR_maximum, OPR_bitwise_or,
                                  OPR_bitwise_and};
    enum { DST = ARG(tensor_partition_reduce, dst), DATA = ARG(tensor_partition_reduce, data) };
    op_id op = arg_op(c, ARG(tensor_partition_reduce, op));
    diag *d = op_one_of(c, ARG(tensor_partition_reduce, op), folds, 5);
    if (!d && is_bits(op)) {
        d = bit_tile(c, op, DST);
        if (!d) {
            d = bit_tile(c, op, DATA);
        }
    }
    if (!d && (c->in[DST].partitions != 1 || c->in[DST].free_elems != c->in[DATA].free_elems)) {
        d = diag_shape_expected(c->e->pend, c->at, INSN(c), check_what(c, DST),
                                check_text(c, "one partition of %llu elements",
                                           (unsigned long long)c->in[DATA].free_elems));
    }
    return d;
}

// ---- Scalar

static diag *activation_op(check *c, uint8_t i)
{
    return op_role(c, i, OP_ACT, 1u << OPC_U);
}

// bias: on gen2 a tile; gen3 and later also a number. scale: number or tile.
static diag *bias_scale(check *c, uint8_t bias, uint8_t scale)
{
    if (c->e->gen == 2 && !arg_none(c, bias) && c->args[bias].kind != IRA_VIEW) {
        diag *d = diag_operand_kind(c->e->pend, c->at, INSN(c), "bias", "a (P, 1) tile on trn1",
                                    "a number");
        diag_help(c->e->pend, d, "fill a (P, 1) tile with memset and pass that");
        return d;
    }
    op_id op = arg_op(c, ARG(activation, op));  // activation_reduce has it at the same place
    if (c->e->gen == 2 && !arg_none(c, bias) && op == OPR_reciprocal) {
        return diag_activation_bias(c->e->pend, c->at, INSN(c), op_table[op].name, c->t->name);
    }
    check_to_f32(c, bias);
    check_to_f32(c, scale);
    return check_dtype_in(c, scale, DTM(float32));
}

diag *check_activation(check *c)
{
    static const op_id add[] = {OPR_add};
    const uint8_t red = ARG(activation, reduce_op);
    diag *d = activation_op(c, ARG(activation, op));
    if (!d) {
        d = bias_scale(c, ARG(activation, bias), ARG(activation, scale));
    }
    if (!d && !arg_none(c, red)) {
        d = op_one_of(c, red, add, 1);
    }
    if (!d) {
        d = reduce_cmd(c, ARG(activation, reduce_cmd),
                       CMD(idle) | CMD(reset) | CMD(reduce) | CMD(reset_reduce), -1);
    }
    return d;
}

diag *check_activation_reduce(check *c)
{
    static const op_id add[] = {OPR_add};
    diag *d = activation_op(c, ARG(activation_reduce, op));
    if (!d) {
        d = bias_scale(c, ARG(activation_reduce, bias), ARG(activation_reduce, scale));
    }
    return d ? d : op_one_of(c, ARG(activation_reduce, reduce_op), add, 1);
}

diag *check_activate2(check *c)
{
    static const struct {
        uint8_t op0, op1;
    } pairs[] = {
        {OPR_multiply, OPR_add}, {OPR_multiply, OPR_subtract}, {OPR_multiply, OPR_bypass},
        {OPR_add, OPR_bypass},   {OPR_subtract, OPR_bypass},   {OPR_bypass, OPR_bypass},
    };
    static const op_id folds[] = {OPR_add, OPR_maximum, OPR_minimum, OPR_abs_max, OPR_abs_min};
    const uint8_t i0 = ARG(activate2, op0), i1 = ARG(activate2, op1),
                  red = ARG(activate2, reduce_op);
    diag *d = activation_op(c, ARG(activate2, op));
    if (d) {
        return d;
    }
    bool ok = false;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        ok |= arg_op(c, i0) == pairs[i].op0 && arg_op(c, i1) == pairs[i].op1;
    }
    if (!ok) {
        return diag_op_not_allowed(c->e->pend, c->at, INSN(c), "op1", op_table[arg_op(c, i1)].name,
                                   check_text(c, " after op0=%s", op_table[arg_op(c, i0)].name),
                                   "multiply then add, subtract or bypass; add, subtract or bypass "
                                   "then bypass");
    }
    check_to_f32(c, ARG(activate2, imm0));
    check_to_f32(c, ARG(activate2, imm1));
    check_to_f32(c, ARG(activate2, relu_param));
    d = check_same_dtype(c, ARG(activate2, imm0), ARG(activate2, imm1));
    if (!d && !arg_none(c, red)) {
        d = op_one_of(c, red, folds, 5);
    }
    return d ? d
             : reduce_cmd(c, ARG(activate2, reduce_cmd),
                          CMD(idle) | CMD(reset) | CMD(reduce) | CMD(reset_reduce), -1);
}

// ---- others

diag *check_exponential(check *c)
{
    check_to_f32(c, ARG(exponential, max_value));
    check_to_f32(c, ARG(exponential, reduce_init));
    return reduce_cmd(c, ARG(exponential, reduce_cmd),
                      CMD(idle) | CMD(reset_reduce) | CMD(reduce) | CMD(load_reduce), -1);
}

diag *check_range_select(check *c)
{
    static const op_id compare[] = {OPR_equal, OPR_less, OPR_less_equal, OPR_greater,
                                    OPR_greater_equal};
    static const op_id max[] = {OPR_maximum};
    const uint8_t fill = ARG(range_select, on_false_value);
    diag *d = op_one_of(c, ARG(range_select, comp_op0), compare, 5);
    if (!d) {
        d = op_one_of(c, ARG(range_select, comp_op1), compare, 5);
    }
    if (!d) {
        d = op_one_of(c, ARG(range_select, reduce_op), max, 1);
    }
    if (!d) {
        d = reduce_cmd(c, ARG(range_select, reduce_cmd),
                       CMD(idle) | CMD(reset) | CMD(reset_reduce) | CMD(reduce), -1);
    }
    if (d) {
        return d;
    }
    check_to_f32(c, fill);
    check_to_f32(c, ARG(range_select, bound0));
    check_to_f32(c, ARG(range_select, bound1));
    if (ira_float(c->args[fill]) != -3.4028235e38f) {
        d = diag_range_select_value(c->e->pend, c->at, INSN(c),
                                    "on_false_value must be -3.4028235e38, the smallest float32");
        diag_help(c->e->pend, d, "leave on_false_value out");
        return d;
    }
    int64_t start = ira_integer(c->args[ARG(range_select, range_start)]);
    int64_t end = start + (int64_t)c->in[ARG(range_select, on_true_tile)].free_elems;
    if (start < -(1 << 24) || end > (1 << 24)) {
        return diag_range_select_value(
            c->e->pend, c->at, INSN(c),
            check_text(c, "indices %lld to %lld do not all fit fp32's 24 bits", (long long)start,
                       (long long)(end - 1)));
    }
    return NULL;
}

diag *check_select_reduce(check *c)
{
    static const op_id max[] = {OPR_maximum};
    diag *d = op_one_of(c, ARG(select_reduce, reduce_op), max, 1);
    check_to_f32(c, ARG(select_reduce, on_false));
    return d ? d
             : reduce_cmd(c, ARG(select_reduce, reduce_cmd),
                          CMD(idle) | CMD(reset_reduce) | CMD(reduce), -1);
}

diag *check_tensor_copy_predicated(check *c)
{
    const uint8_t src = ARG(tensor_copy_predicated, src);
    if (!c->in[src].view && dtype_is_float((dtype)c->in[0].dtype)) {
        check_to_f32(c, src);
    }
    return check_same_dtype(c, ARG(tensor_copy_predicated, dst), src);
}

diag *check_pattern(check *c, uint8_t pattern, uint8_t dst)
{
    const ir_arg *a = &c->args[pattern];
    uint32_t n = (uint16_t)a->aux;
    if (n < 1 || n > 4) {
        return diag_pattern_rank(c->e->pend, c->at, INSN(c), n);
    }
    int64_t count = 1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t k = ira_integer(c->p->args.at[c->p->args.at[a->v + i].v + 1]);
        count = k < 0 || count > (1 << 24) ? -1 : count * k;
    }
    if (count < 0 || (uint64_t)count != c->in[dst].free_elems) {
        return diag_pattern_count(c->e->pend, c->at, INSN(c), (long long)count, check_what(c, dst),
                                  (unsigned long long)c->in[dst].free_elems);
    }
    return NULL;
}

diag *check_affine_select(check *c)
{
    check_to_f32(c, ARG(affine_select, on_false_value));
    diag *d = op_role(c, ARG(affine_select, cmp_op), OP_ALU, 1u << OPC_C);
    return d ? d : check_pattern(c, ARG(affine_select, pattern), ARG(affine_select, dst));
}
