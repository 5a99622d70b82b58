// Operators.
#include "lower/interp.h"

#include <math.h>
#include <string.h>

static value overflow(interp *it, const char *op)
{
    return raise_msg(it, "OverflowError", "integer result of %s does not fit in 64 bits", op);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double float_mod(double a, double b)
{
    double r = fmod(a, b);
    if (r != 0) {
        return (r < 0) != (b < 0) ? r + b : r;
    }
    return copysign(0.0, b);
}

static double float_floordiv(double a, double b)
{
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) {
        div -= 1.0;
    }
    if (div != 0) {
        double fl = floor(div);
        return div - fl > 0.5 ? fl + 1.0 : fl;
    }
    return copysign(0.0, a / b);
}

static value int_pow(interp *it, int64_t a, int64_t b)
{
    if (b < 0) {
        if (a == 0) {
            return raise_msg(it, "ZeroDivisionError", "0.0 cannot be raised to a negative power");
        }
        return VFLT(pow((double)a, (double)b));
    }
    int64_t r = 1;
    while (b) {
        if ((b & 1) && __builtin_mul_overflow(r, a, &r)) {
            return overflow(it, "**");
        }
        b >>= 1;
        if (b && __builtin_mul_overflow(a, a, &a)) {
            return overflow(it, "**");
        }
    }
    return VINT(r);
}

static value int_op(interp *it, ast_op op, int64_t a, int64_t b)
{
    int64_t r;
    switch (op) {
    case OP_ADD: return __builtin_add_overflow(a, b, &r) ? overflow(it, "+") : VINT(r);
    case OP_SUB: return __builtin_sub_overflow(a, b, &r) ? overflow(it, "-") : VINT(r);
    case OP_MUL: return __builtin_mul_overflow(a, b, &r) ? overflow(it, "*") : VINT(r);
    case OP_DIV:
        return b == 0 ? raise_msg(it, "ZeroDivisionError", "division by zero")
                      : VFLT((double)a / (double)b);
    case OP_FLOORDIV:
    case OP_MOD:
        if (b == 0) {
            return raise_msg(it, "ZeroDivisionError",
                             op == OP_MOD ? "integer modulo by zero"
                                          : "integer division or modulo by zero");
        }
        if (a == INT64_MIN && b == -1) {
            return op == OP_MOD ? VINT(0) : overflow(it, "//");
        }
        return VINT(op == OP_MOD ? floor_mod(a, b) : floor_div(a, b));
    case OP_POW: return int_pow(it, a, b);
    case OP_LSHIFT:
        if (b < 0) {
            return value_error(it, "negative shift count");
        }
        if (a == 0) {
            return VINT(0);
        }
        if (b > 63 || __builtin_mul_overflow(a, b == 63 ? INT64_MIN : (int64_t)1 << b, &r)) {
            return overflow(it, "<<");
        }
        return b == 63 ? overflow(it, "<<") : VINT(r);
    case OP_RSHIFT:
        if (b < 0) {
            return value_error(it, "negative shift count");
        }
        return VINT(b > 63 ? (a < 0 ? -1 : 0) : a >> b);
    case OP_BITAND: return VINT(a & b);
    case OP_BITOR: return VINT(a | b);
    case OP_BITXOR: return VINT(a ^ b);
    default: return VUNDEF;
    }
}

static value float_pow(interp *it, double a, double b)
{
    if (a == 0 && b < 0) {
        return raise_msg(it, "ZeroDivisionError", "0.0 cannot be raised to a negative power");
    }
    double r = pow(a, b);
    if (isinf(r) && isfinite(a) && isfinite(b)) {
        return raise_msg(it, "OverflowError", "(34, 'Numerical result out of range')");
    }
    if (isnan(r) && !isnan(a) && !isnan(b)) {
        return value_error(
            it, "a negative number to a fractional power is complex, which is not supported");
    }
    return VFLT(r);
}

static value float_op(interp *it, ast_op op, double a, double b)
{
    switch (op) {
    case OP_ADD: return VFLT(a + b);
    case OP_SUB: return VFLT(a - b);
    case OP_MUL: return VFLT(a * b);
    case OP_DIV:
        return b == 0 ? raise_msg(it, "ZeroDivisionError", "float division by zero") : VFLT(a / b);
    case OP_FLOORDIV:
        return b == 0 ? raise_msg(it, "ZeroDivisionError", "float floor division by zero")
                      : VFLT(float_floordiv(a, b));
    case OP_MOD:
        return b == 0 ? raise_msg(it, "ZeroDivisionError", "float modulo") : VFLT(float_mod(a, b));
    case OP_POW: return float_pow(it, a, b);
    default: return VUNDEF;
    }
}

static bool num(value v, double *d)
{
    switch ((vtag)v.tag) {
    case V_INT: *d = (double)v.u.i; return true;
    case V_BOOL: *d = v.u.b; return true;
    case V_FLOAT: *d = v.u.d; return true;
    default: return false;
    }
}

static value repeat(interp *it, value seq, int64_t n)
{
    n = n < 0 ? 0 : n;
    uint32_t len = seq.tag == V_LIST    ? seq.u.list->n
                   : seq.tag == V_TUPLE ? seq.u.tuple->n
                                        : seq.u.str->len;
    if (n && (uint64_t)len * (uint64_t)n > 0x3fffffff) {
        return raise_msg(it, "MemoryError", "a sequence of %llu items is too long",
                         (unsigned long long)len * (unsigned long long)n);
    }
    uint32_t total = len * (uint32_t)n;
    if (seq.tag == V_STR || seq.tag == V_BYTES) {
        char *p = NEW_N(it->mem, char, total + 1);
        for (int64_t i = 0; i < n; i++) {
            memcpy(p + (size_t)i * len, seq.u.str->p, len);
        }
        value s = v_str(it, p, total);
        s.tag = seq.tag;
        return s;
    }
    const value *src = seq.tag == V_LIST ? seq.u.list->at : seq.u.tuple->at;
    value *at = NEW_N(it->mem, value, total);
    for (int64_t i = 0; i < n; i++) {
        if (len) {
            memcpy(at + (size_t)i * len, src, len * sizeof *at);
        }
    }
    return seq.tag == V_LIST ? v_list(it, at, total) : v_tuple(it, at, total);
}

static value join(interp *it, const value *a, uint32_t n, const value *b, uint32_t m, bool list)
{
    value *at = NEW_N(it->mem, value, n + m);
    if (n) {
        memcpy(at, a, n * sizeof *at);
    }
    if (m) {
        memcpy(at + n, b, m * sizeof *at);
    }
    return list ? v_list(it, at, n + m) : v_tuple(it, at, n + m);
}

static value set_op(interp *it, ast_op op, vdict *a, vdict *b)
{
    value out = v_set(it);
    out.u.dict->dflt = a->dflt;
    set_settle(it, a);
    set_settle(it, b);
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].key.tag == V_UNDEF) {
            continue;
        }
        bool in = dict_get(it, b, a->at[i].key).tag != V_UNDEF;
        if (op == OP_BITOR || (op == OP_BITAND && in) ||
            ((op == OP_SUB || op == OP_BITXOR) && !in)) {
            dict_set(it, out.u.dict, a->at[i].key, VNONE);
        }
    }
    if (op == OP_BITOR || op == OP_BITXOR) {
        for (uint32_t i = 0; i < b->n; i++) {
            if (b->at[i].key.tag != V_UNDEF &&
                (op == OP_BITOR || dict_get(it, a, b->at[i].key).tag == V_UNDEF)) {
                dict_set(it, out.u.dict, b->at[i].key, VNONE);
            }
        }
    }
    return out;
}

// Operators between built-in containers; V_UNDEF when there is none.
static value seq_op(interp *it, ast_op op, value a, value b)
{
    if (op == OP_ADD && a.tag == b.tag) {
        switch ((vtag)a.tag) {
        case V_LIST: return join(it, a.u.list->at, a.u.list->n, b.u.list->at, b.u.list->n, true);
        case V_TUPLE:
            return join(it, a.u.tuple->at, a.u.tuple->n, b.u.tuple->at, b.u.tuple->n, false);
        case V_STR:
        case V_BYTES: {
            char *p = NEW_N(it->mem, char, (size_t)a.u.str->len + b.u.str->len + 1);
            memcpy(p, a.u.str->p, a.u.str->len);
            memcpy(p + a.u.str->len, b.u.str->p, b.u.str->len);
            vstr *s = NEW(it->mem, vstr);
            *s = (vstr){a.u.str->len + b.u.str->len, a.u.str->chars + b.u.str->chars, p};
            return (value){.tag = a.tag, .u.str = s};
        }
        default: break;
        }
    }
    if (op == OP_MUL) {
        bool sa = a.tag == V_LIST || a.tag == V_TUPLE || a.tag == V_STR || a.tag == V_BYTES;
        bool sb = b.tag == V_LIST || b.tag == V_TUPLE || b.tag == V_STR || b.tag == V_BYTES;
        if (sa && (b.tag == V_INT || b.tag == V_BOOL)) {
            return repeat(it, a, as_int(b));
        }
        if (sb && (a.tag == V_INT || a.tag == V_BOOL)) {
            return repeat(it, b, as_int(a));
        }
    }
    if (a.tag == V_SET && b.tag == V_SET &&
        (op == OP_BITOR || op == OP_BITAND || op == OP_SUB || op == OP_BITXOR)) {
        return set_op(it, op, a.u.dict, b.u.dict);
    }
    if (a.tag == V_DICT && b.tag == V_DICT && op == OP_BITOR) {
        vdict *d = dict_copy(it, a.u.dict);
        for (uint32_t i = 0; i < b.u.dict->n; i++) {
            if (b.u.dict->at[i].key.tag != V_UNDEF) {
                dict_set(it, d, b.u.dict->at[i].key, b.u.dict->at[i].val);
            }
        }
        return (value){.tag = V_DICT, .u.dict = d};
    }
    if (op == OP_MOD && a.tag == V_STR) {
        return format_percent(it, a, b);
    }
    return VUNDEF;
}

static void special_names(interp *it, ast_op op, sym *fwd, sym *rev, sym *inplace)
{
    const sym table[][3] = {
        [OP_ADD] = {N(__add__), N(__radd__), N(__iadd__)},
        [OP_SUB] = {N(__sub__), N(__rsub__), N(__isub__)},
        [OP_MUL] = {N(__mul__), N(__rmul__), N(__imul__)},
        [OP_DIV] = {N(__truediv__), N(__rtruediv__), N(__itruediv__)},
        [OP_FLOORDIV] = {N(__floordiv__), N(__rfloordiv__), N(__ifloordiv__)},
        [OP_MOD] = {N(__mod__), N(__rmod__), N(__imod__)},
        [OP_POW] = {N(__pow__), N(__rpow__), N(__ipow__)},
        [OP_MATMUL] = {N(__matmul__), N(__rmatmul__), N(__imatmul__)},
        [OP_LSHIFT] = {N(__lshift__), N(__rlshift__), N(__ilshift__)},
        [OP_RSHIFT] = {N(__rshift__), N(__rrshift__), N(__irshift__)},
        [OP_BITAND] = {N(__and__), N(__rand__), N(__iand__)},
        [OP_BITOR] = {N(__or__), N(__ror__), N(__ior__)},
        [OP_BITXOR] = {N(__xor__), N(__rxor__), N(__ixor__)},
    };
    *fwd = table[op][0];
    *rev = table[op][1];
    *inplace = table[op][2];
}

static bool is_type_like(value v)
{
    return v.tag == V_CLASS || v.tag == V_TYPE || v.tag == V_NONE || v.tag == V_OPAQUE ||
           v.tag == V_OBJ || v.tag == V_STR || v.tag == V_NATIVE || v.tag == V_FUNC;
}

// What computes an operator's result on the device, or NULL.
static const char *tensor_function(ast_op op)
{
    switch (op) {
    case OP_ADD: return "nl.add(x, y)";
    case OP_SUB: return "nl.subtract(x, y)";
    case OP_MUL: return "nl.multiply(x, y)";
    case OP_DIV: return "nl.divide(x, y)";
    case OP_MOD: return "nl.mod(x, y)";
    case OP_POW: return "nl.power(x, y)";
    case OP_MATMUL: return "nisa.nc_matmul(dst, stationary, moving)";
    case OP_LSHIFT: return "nl.left_shift(x, y)";
    case OP_RSHIFT: return "nl.right_shift(x, y)";
    case OP_BITAND: return "nl.bitwise_and(x, y)";
    case OP_BITOR: return "nl.bitwise_or(x, y)";
    case OP_BITXOR: return "nl.bitwise_xor(x, y)";
    case OP_NEG: return "nl.negative(x)";
    case OP_INVERT: return "nl.invert(x)";
    default: return NULL;
    }
}

static value bad_operands(interp *it, ast_op op, value a, value b)
{
    if (a.tag == V_OPAQUE || b.tag == V_OPAQUE) {
        const char *w = a.tag == V_OPAQUE ? a.u.opaque->path : b.u.opaque->path;
        return raise_msg(it, "ImportError",
                         "'%s' is not available here and was used as an operand of %s", w,
                         ast_op_text(op));
    }
    if (a.tag == V_TENSOR || b.tag == V_TENSOR) {
        const char *fn = tensor_function(op);
        return type_error(it, "operator %s is not defined on tensors; use %s%s", ast_op_text(op),
                          fn ? fn : "the instructions of nki.isa",
                          fn && op != OP_MATMUL ? " or nisa.tensor_tensor" : "");
    }
    if (a.tag == V_REG || b.tag == V_REG) {
        return type_error(
            it,
            "operator %s is not defined on registers: they have no value while the kernel is "
            "specialized; store, compute with an instruction, and load again",
            ast_op_text(op));
    }
    if (op == OP_ADD && (a.tag == V_STR || a.tag == V_LIST || a.tag == V_TUPLE) && a.tag != b.tag) {
        return type_error(it, "can only concatenate %s (not \"%s\") to %s", type_name(it, a),
                          type_name(it, b), type_name(it, a));
    }
    if (op == OP_MUL && ((a.tag == V_STR || a.tag == V_LIST || a.tag == V_TUPLE) ||
                         (b.tag == V_STR || b.tag == V_LIST || b.tag == V_TUPLE))) {
        bool first = a.tag == V_STR || a.tag == V_LIST || a.tag == V_TUPLE;
        return type_error(it, "can't multiply sequence by non-int of type '%s'",
                          type_name(it, first ? b : a));
    }
    return type_error(it, "unsupported operand type(s) for %s: '%s' and '%s'",
                      op == OP_POW ? "** or pow()" : ast_op_text(op), type_name(it, a),
                      type_name(it, b));
}

static value object_op(interp *it, ast_op op, value a, value b)
{
    sym fwd, rev, inplace;
    special_names(it, op, &fwd, &rev, &inplace);
    // A subclass's reflected method goes first.
    vclass *ca = class_of(a), *cb = class_of(b);
    if (ca && cb && ca != cb && class_is(cb, ca)) {
        value r = call_special(it, b, rev, &a, 1);
        if (r.tag != V_UNDEF && r.tag != V_NOTIMPLEMENTED) {
            return r;
        }
    }
    value r = call_special(it, a, fwd, &b, 1);
    if (r.tag == V_UNDEF || r.tag == V_NOTIMPLEMENTED) {
        r = call_special(it, b, rev, &a, 1);
    }
    if (r.tag != V_UNDEF && r.tag != V_NOTIMPLEMENTED) {
        return r;
    }
    value x = a.tag == V_OBJ && a.u.obj->base.tag != V_UNDEF ? a.u.obj->base : a;
    value y = b.tag == V_OBJ && b.u.obj->base.tag != V_UNDEF ? b.u.obj->base : b;
    if (x.tag != V_OBJ && y.tag != V_OBJ && (x.u.p != a.u.p || y.u.p != b.u.p)) {
        return binary_op(it, op, x, y);
    }
    return bad_operands(it, op, a, b);
}

value binary_op(interp *it, ast_op op, value a, value b)
{
    if (a.tag == V_INT && b.tag == V_INT) {
        value r = int_op(it, op, a.u.i, b.u.i);
        return r.tag == V_UNDEF ? bad_operands(it, op, a, b) : r;
    }
    double x, y;
    if (num(a, &x) && num(b, &y)) {
        if (a.tag != V_FLOAT && b.tag != V_FLOAT) {
            if (a.tag == V_BOOL && b.tag == V_BOOL &&
                (op == OP_BITAND || op == OP_BITOR || op == OP_BITXOR)) {
                return VBOOL(op == OP_BITAND  ? a.u.b & b.u.b
                             : op == OP_BITOR ? a.u.b | b.u.b
                                              : a.u.b != b.u.b);
            }
            value r = int_op(it, op, as_int(a), as_int(b));
            return r.tag == V_UNDEF ? bad_operands(it, op, a, b) : r;
        }
        value r = float_op(it, op, x, y);
        return r.tag == V_UNDEF ? bad_operands(it, op, a, b) : r;
    }
    value r = seq_op(it, op, a, b);
    if (r.tag != V_UNDEF) {
        return r;
    }
    if (class_of(a) || class_of(b)) {
        return object_op(it, op, a, b);
    }
    if (op == OP_BITOR && (is_type_like(a) || (a.tag == V_TUPLE && is_type_like(b))) &&
        (is_type_like(b) || b.tag == V_TUPLE)) {
        return v_tuple(it, (value[]){a, b}, 2);  // int | None as isinstance takes it
    }
    return bad_operands(it, op, a, b);
}

value unary_op(interp *it, ast_op op, value v)
{
    if (op == OP_NOT) {
        int t = truth(it, v);
        return t < 0 ? VERR : VBOOL(!t);
    }
    if (v.tag == V_INT || v.tag == V_BOOL) {
        int64_t i = as_int(v);
        if (op == OP_NEG) {
            return i == INT64_MIN ? overflow(it, "-") : VINT(-i);
        }
        return VINT(op == OP_INVERT ? ~i : i);
    }
    if (v.tag == V_FLOAT && op != OP_INVERT) {
        return VFLT(op == OP_NEG ? -v.u.d : v.u.d);
    }
    value r = call_special(it, v,
                           op == OP_NEG   ? N(__neg__)
                           : op == OP_POS ? N(__pos__)
                                          : N(__invert__),
                           NULL, 0);
    if (r.tag != V_UNDEF) {
        return r;
    }
    if (v.tag == V_OBJ && v.u.obj->base.tag != V_UNDEF) {
        return unary_op(it, op, v.u.obj->base);
    }
    if (v.tag == V_TENSOR && op != OP_POS) {
        return type_error(it, "operator %s is not defined on tensors; use %s",
                          op == OP_NEG ? "-" : "~", tensor_function(op));
    }
    return type_error(it, "bad operand type for unary %s: '%s'",
                      op == OP_NEG   ? "-"
                      : op == OP_POS ? "+"
                                     : "~",
                      type_name(it, v));
}
