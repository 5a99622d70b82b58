// Expressions.
#include "lower/interp.h"

#include <math.h>
#include <string.h>

#define TRY(v, e)                                                                                  \
    value v = eval(it, (e));                                                                       \
    if (IS_ERR(v)) {                                                                               \
        return VERR;                                                                               \
    }

// ---- names

static value unbound(interp *it, const ast *e)
{
    if (e->scope == SCOPE_LOCAL || e->scope == SCOPE_CELL) {
        const unit *u = it->top->unit;
        bool own = e->scope == SCOPE_LOCAL || e->slot < u->nown;
        if (own) {
            return raise_msg(
                it, "UnboundLocalError",
                "cannot access local variable '%s' where it is not associated with a value",
                e->u.id->text);
        }
        return raise_msg(it, "NameError",
                         "cannot access free variable '%s' where it is not associated with a value "
                         "in enclosing scope",
                         e->u.id->text);
    }
    return raise_msg(it, "NameError", "name '%s' is not defined", e->u.id->text);
}

value load_global(interp *it, vmodule *m, sym id)
{
    uint32_t limit = UINT32_MAX;
    // While the module's own top level runs, a name means what it meant up to that statement.
    for (const frame *f = it->top; f; f = f->prev) {
        if (f->module == m && f->unit && f->unit->kind == UNIT_MODULE) {
            limit = f->limit;
            break;
        }
        if (f->module != m) {
            continue;
        }
    }
    value v = module_attr(it, m, id, limit);
    if (v.tag != V_UNDEF) {
        return v;
    }
    return attrs_get(&it->builtins, id);
}

static value load_name(interp *it, const ast *e)
{
    frame *f = it->top;
    value v;
    switch ((scope_kind)e->scope) {
    case SCOPE_LOCAL: v = f->locals[e->slot]; break;
    case SCOPE_CELL: v = f->cells[e->slot]->v; break;
    case SCOPE_CLASS:
        v = attrs_get(&f->cls->attrs, e->u.id);
        if (v.tag == V_UNDEF && e->slot) {
            v = f->cells[e->slot - 1]->v;
        }
        if (v.tag == V_UNDEF) {
            v = load_global(it, f->module, e->u.id);
        }
        break;
    case SCOPE_GLOBAL:
    case SCOPE_NONE:
    default: v = load_global(it, f->module, e->u.id); break;
    }
    return v.tag == V_UNDEF ? unbound(it, e) : v;
}

static bool store_name(interp *it, uint8_t scope, uint32_t slot, sym id, value v)
{
    frame *f = it->top;
    switch ((scope_kind)scope) {
    case SCOPE_LOCAL: f->locals[slot] = v; return true;
    case SCOPE_CELL: f->cells[slot]->v = v; return true;
    case SCOPE_CLASS: attrs_set(it, &f->cls->attrs, id, v); return true;
    case SCOPE_GLOBAL:
    case SCOPE_NONE:
    default:
        // A global statement may write a name whose own statements have not run yet.
        if (f->unit->kind != UNIT_MODULE) {
            value old = module_attr(it, f->module, id, UINT32_MAX);
            if (IS_ERR(old)) {
                return false;
            }
        }
        attrs_set(it, &f->module->attrs, id, v);
        return true;
    }
}

// ---- arithmetic

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

static int64_t int_or_bool(value v)
{
    return v.tag == V_INT ? v.u.i : v.u.b;
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
            return repeat(it, a, int_or_bool(b));
        }
        if (sb && (a.tag == V_INT || a.tag == V_BOOL)) {
            return repeat(it, b, int_or_bool(a));
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

static value bad_operands(interp *it, ast_op op, value a, value b)
{
    if (a.tag == V_OPAQUE || b.tag == V_OPAQUE) {
        const char *w = a.tag == V_OPAQUE ? a.u.opaque->path : b.u.opaque->path;
        return raise_msg(it, "ImportError",
                         "'%s' is not available here and was used as an operand of %s", w,
                         ast_op_text(op));
    }
    if (a.tag == V_TENSOR || b.tag == V_TENSOR) {
        return type_error(
            it, "operator %s is not defined on tensors; use nl.%s(x, y) or nisa.tensor_tensor",
            ast_op_text(op),
            op == OP_ADD   ? "add"
            : op == OP_SUB ? "subtract"
            : op == OP_MUL ? "multiply"
                           : "divide");
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
            value r = int_op(it, op, int_or_bool(a), int_or_bool(b));
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
        int64_t i = int_or_bool(v);
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
    return type_error(it, "bad operand type for unary %s: '%s'",
                      op == OP_NEG   ? "-"
                      : op == OP_POS ? "+"
                                     : "~",
                      type_name(it, v));
}

// ---- containers

value contains(interp *it, value c, value item)
{
    switch ((vtag)c.tag) {
    case V_STR:
        if (item.tag != V_STR) {
            return type_error(it, "'in <string>' requires string as left operand, not %s",
                              type_name(it, item));
        }
        return VBOOL(str_find(c.u.str, item.u.str, 0) >= 0);
    case V_DICT:
    case V_SET: {
        value v = dict_get(it, c.u.dict, item);
        return IS_ERR(v) ? VERR : VBOOL(v.tag != V_UNDEF);
    }
    case V_RANGE:
        if (item.tag == V_FLOAT && item.u.d == floor(item.u.d) && fabs(item.u.d) < 9e18) {
            item = VINT((int64_t)item.u.d);
        }
        if (item.tag != V_OBJ && item.tag != V_INT && item.tag != V_BOOL) {
            return VBOOL(false);
        }
        if (item.tag == V_INT || item.tag == V_BOOL) {
            const vrange *r = c.u.range;
            int64_t i = int_or_bool(item);
            bool in = r->step > 0 ? i >= r->start && i < r->stop : i <= r->start && i > r->stop;
            uint64_t d =
                r->step > 0 ? (uint64_t)i - (uint64_t)r->start : (uint64_t)r->start - (uint64_t)i;
            return VBOOL(in && d % (r->step > 0 ? (uint64_t)r->step : 0 - (uint64_t)r->step) == 0);
        }
        break;
    case V_OBJ: {
        value r = call_special(it, c, N(__contains__), &item, 1);
        if (r.tag != V_UNDEF) {
            int t = IS_ERR(r) ? -1 : truth(it, r);
            return t < 0 ? VERR : VBOOL(t);
        }
        if (c.u.obj->base.tag != V_UNDEF) {
            return contains(it, c.u.obj->base, item);
        }
        break;
    }
    case V_CLASS:
        if (c.u.cls->is_enum) {
            return VBOOL(item.tag == V_OBJ && item.u.obj->cls == c.u.cls);
        }
        break;
    default: break;
    }
    viter s;
    if (!iter_init(it, &s, c)) {
        it->exc = VUNDEF;
        return type_error(it, "argument of type '%s' is not iterable", type_name(it, c));
    }
    value x;
    int r;
    while ((r = iter_next(it, &s, &x)) == 1) {
        int e = is_same(x, item) ? 1 : equal(it, x, item);
        if (e) {
            return e < 0 ? VERR : VBOOL(true);
        }
        if (!interp_step(it)) {
            return VERR;
        }
    }
    return r < 0 ? VERR : VBOOL(false);
}

bool as_index(interp *it, value v, int64_t *out)
{
    if (v.tag == V_INT || v.tag == V_BOOL) {
        *out = int_or_bool(v);
        return true;
    }
    value r = call_special(it, v, N(__index__), NULL, 0);
    if (r.tag == V_INT) {
        *out = r.u.i;
        return true;
    }
    if (v.tag == V_OBJ && v.u.obj->base.tag == V_INT) {
        *out = v.u.obj->base.u.i;
        return true;
    }
    if (!IS_ERR(r)) {
        type_error(it, "'%s' object cannot be interpreted as an integer", type_name(it, v));
    }
    return false;
}

void slice_bounds(const vslice *s, int64_t n, int64_t *start, int64_t *stop, int64_t *step)
{
    *step = s->step.tag == V_NONE ? 1 : int_or_bool(s->step);
    int64_t lo = *step < 0 ? -1 : 0, hi = *step < 0 ? n - 1 : n;
    int64_t a = s->start.tag == V_NONE ? (*step < 0 ? hi : lo) : int_or_bool(s->start);
    int64_t b = s->stop.tag == V_NONE ? (*step < 0 ? lo : hi) : int_or_bool(s->stop);
    if (s->start.tag != V_NONE) {
        a = a < 0 ? (a + n < lo ? lo : a + n) : a > hi ? hi : a;
    }
    if (s->stop.tag != V_NONE) {
        b = b < 0 ? (b + n < lo ? lo : b + n) : b > hi ? hi : b;
    }
    *start = a;
    *stop = b;
}

bool slice_indices(interp *it, const vslice *s, int64_t n, int64_t *start, int64_t *step,
                   int64_t *count)
{
    value part[] = {s->start, s->stop, s->step};
    vslice t = *s;
    for (int i = 0; i < 3; i++) {
        if (part[i].tag != V_NONE && part[i].tag != V_INT) {
            int64_t x;
            if (!as_index(it, part[i], &x)) {
                it->exc = VUNDEF;
                type_error(it,
                           "slice indices must be integers or None or have an __index__ method");
                return false;
            }
            *(i == 0 ? &t.start : i == 1 ? &t.stop : &t.step) = VINT(x);
        }
    }
    if (t.step.tag == V_INT && t.step.u.i == 0) {
        value_error(it, "slice step cannot be zero");
        return false;
    }
    int64_t stop;
    slice_bounds(&t, n, start, &stop, step);
    *count = *step > 0 ? (*start < stop ? (stop - *start - 1) / *step + 1 : 0)
                       : (*start > stop ? (*start - stop - 1) / -*step + 1 : 0);
    return true;
}

static value index_seq(interp *it, value obj, value key, const value *at, uint32_t n)
{
    const char *what = obj.tag == V_LIST ? "list" : "tuple";
    if (key.tag == V_SLICE) {
        int64_t start, step, count;
        if (!slice_indices(it, key.u.slice, n, &start, &step, &count)) {
            return VERR;
        }
        value *out = NEW_N(it->mem, value, (size_t)count);
        for (int64_t i = 0; i < count; i++) {
            out[i] = at[start + i * step];
        }
        return obj.tag == V_LIST ? v_list(it, out, (uint32_t)count)
                                 : v_tuple(it, out, (uint32_t)count);
    }
    int64_t i;
    if (key.tag == V_INT) {
        i = key.u.i;
    } else if (!as_index(it, key, &i)) {
        it->exc = VUNDEF;
        return type_error(it, "%s indices must be integers or slices, not %s", what,
                          type_name(it, key));
    }
    i = i < 0 ? i + n : i;
    if (i < 0 || i >= n) {
        return raise_msg(it, "IndexError", "%s index out of range", what);
    }
    return at[i];
}

static value index_dict(interp *it, value obj, value key)
{
    vdict *d = obj.u.dict;
    value v = dict_get(it, d, key);
    if (v.tag != V_UNDEF) {
        return v;
    }
    if (d->dflt.tag != V_UNDEF && d->dflt.tag != V_NONE) {
        v = call_values(it, d->dflt, NULL, 0);
        if (IS_ERR(v) || !dict_set(it, d, key, v)) {
            return VERR;
        }
        return v;
    }
    value e = exc_new(it, exc_class(it, "KeyError"), key);
    return raise_obj(it, e);
}

value get_index(interp *it, value obj, value key)
{
    switch ((vtag)obj.tag) {
    case V_LIST: return index_seq(it, obj, key, obj.u.list->at, obj.u.list->n);
    case V_TUPLE: return index_seq(it, obj, key, obj.u.tuple->at, obj.u.tuple->n);
    case V_DICT: return index_dict(it, obj, key);
    case V_TENSOR: return tensor_index(it, obj, key);
    case V_STR:
    case V_BYTES: {
        int64_t start, step = 1, count = 1,
                       n = obj.tag == V_STR ? obj.u.str->chars : obj.u.str->len;
        if (key.tag == V_SLICE) {
            if (!slice_indices(it, key.u.slice, n, &start, &step, &count)) {
                return VERR;
            }
        } else {
            if (!as_index(it, key, &start)) {
                it->exc = VUNDEF;
                return type_error(it, "string indices must be integers, not '%s'",
                                  type_name(it, key));
            }
            start = start < 0 ? start + n : start;
            if (start < 0 || start >= n) {
                return raise_msg(it, "IndexError", "string index out of range");
            }
        }
        if (obj.tag == V_BYTES && key.tag != V_SLICE) {
            return VINT((unsigned char)obj.u.str->p[start]);
        }
        return str_slice(it, obj, start, step, count);
    }
    case V_RANGE: {
        const vrange *r = obj.u.range;
        int64_t n = r->step > 0
                        ? (r->start < r->stop ? (r->stop - r->start - 1) / r->step + 1 : 0)
                        : (r->start > r->stop ? (r->start - r->stop - 1) / -r->step + 1 : 0);
        if (key.tag == V_SLICE) {
            int64_t start, step, count;
            if (!slice_indices(it, key.u.slice, n, &start, &step, &count)) {
                return VERR;
            }
            vrange *s = NEW(it->mem, vrange);
            *s = (vrange){r->start + start * r->step, r->start + (start + count * step) * r->step,
                          r->step * step};
            return VPTR(V_RANGE, s);
        }
        int64_t i;
        if (!as_index(it, key, &i)) {
            return VERR;
        }
        i = i < 0 ? i + n : i;
        if (i < 0 || i >= n) {
            return raise_msg(it, "IndexError", "range object index out of range");
        }
        return VINT(r->start + i * r->step);
    }
    case V_OBJ: {
        value r = call_special(it, obj, N(__getitem__), &key, 1);
        if (r.tag != V_UNDEF) {
            return r;
        }
        if (obj.u.obj->base.tag == V_DICT) {
            value v = dict_get(it, obj.u.obj->base.u.dict, key);
            if (v.tag != V_UNDEF) {
                return v;
            }
            v = call_special(it, obj, N(__missing__), &key, 1);
            return v.tag != V_UNDEF ? v : index_dict(it, obj.u.obj->base, key);
        }
        if (obj.u.obj->base.tag != V_UNDEF) {
            return get_index(it, obj.u.obj->base, key);
        }
        break;
    }
    case V_CLASS:
        if (obj.u.cls->is_enum) {
            value v = key.tag == V_STR ? attrs_get(&obj.u.cls->attrs, str_sym(it, key)) : VUNDEF;
            if (v.tag == V_OBJ) {
                return v;
            }
            return raise_obj(it, exc_new(it, exc_class(it, "KeyError"), key));
        } else {
            value f = class_lookup(obj.u.cls, N(__class_getitem__));
            if (f.tag == V_DESCR) {
                return call_values(it, f.u.descr->get, (value[]){obj, key}, 2);
            }
        }
        return obj;           // Generic[T]
    case V_TYPE: return obj;  // list[int]
    case V_FUNC:
        if (obj.u.func->jit) {
            return obj;  // kernel[2](...) inside a kernel
        }
        break;
    case V_OPAQUE: return obj;
    case V_REG: return type_error(it, "a register cannot be indexed");
    default: break;
    }
    return type_error(it, "'%s' object is not subscriptable", type_name(it, obj));
}

static bool set_slice(interp *it, vlist *l, const vslice *s, value v)
{
    int64_t start, step, count;
    uint32_t n;
    if (!slice_indices(it, s, l->n, &start, &step, &count)) {
        return false;
    }
    viter probe;
    if (v.tag != V_LIST && v.tag != V_TUPLE && !iter_init(it, &probe, v)) {
        if (!class_of(v)) {
            it->exc = VUNDEF;
            type_error(it, step == 1 ? "can only assign an iterable"
                                     : "must assign iterable to extended slice");
        }
        return false;
    }
    value copy = list_from(it, v);
    if (IS_ERR(copy)) {
        return false;
    }
    n = copy.u.list->n;
    if (step != 1) {
        if (n != count) {
            value_error(it, "attempt to assign sequence of size %u to extended slice of size %lld",
                        n, (long long)count);
            return false;
        }
        for (uint32_t i = 0; i < n; i++) {
            l->at[start + i * step] = copy.u.list->at[i];
        }
        return true;
    }
    uint32_t tail = l->n - (uint32_t)(start + count), total = (uint32_t)start + n + tail;
    vec_reserve(it->mem, l, total > l->n ? total - l->n : 0);
    if (tail) {
        memmove(l->at + start + n, l->at + start + count, tail * sizeof *l->at);
    }
    if (n) {
        memcpy(l->at + start, copy.u.list->at, n * sizeof *l->at);
    }
    l->n = total;
    return true;
}

bool set_index(interp *it, value obj, value key, value v)
{
    switch ((vtag)obj.tag) {
    case V_LIST: {
        vlist *l = obj.u.list;
        if (key.tag == V_SLICE) {
            return set_slice(it, l, key.u.slice, v);
        }
        int64_t i;
        if (!as_index(it, key, &i)) {
            it->exc = VUNDEF;
            type_error(it, "list indices must be integers or slices, not %s", type_name(it, key));
            return false;
        }
        i = i < 0 ? i + l->n : i;
        if (i < 0 || i >= l->n) {
            raise_msg(it, "IndexError", "list assignment index out of range");
            return false;
        }
        l->at[i] = v;
        return true;
    }
    case V_DICT: return dict_set(it, obj.u.dict, key, v);
    case V_OBJ: {
        value r = call_special(it, obj, N(__setitem__), (value[]){key, v}, 2);
        if (r.tag != V_UNDEF) {
            return !IS_ERR(r);
        }
        if (obj.u.obj->base.tag != V_UNDEF) {
            return set_index(it, obj.u.obj->base, key, v);
        }
        break;
    }
    case V_TENSOR: {
        // t[...] = value: kept for kernels that commit a tile this way; a copy instruction.
        value view = tensor_index(it, obj, key);
        if (IS_ERR(view)) {
            return false;
        }
        value f = attrs_get(&it->builtins, intern_cstr(it->names, "__nki_assign__"));
        if (f.tag == V_UNDEF) {
            value m = import_module(it, it->top->module, 0,
                                    intern_cstr(it->names, "nki.language._move"), true);
            f = IS_ERR(m) ? m : find_attr(it, m, intern_cstr(it->names, "assign"));
            if (IS_ERR(f) || f.tag == V_UNDEF) {
                if (!IS_ERR(f)) {
                    type_error(it, "assignment into a tensor is not supported; use nl.store or "
                                   "nisa.tensor_copy");
                }
                return false;
            }
            attrs_set(it, &it->builtins, intern_cstr(it->names, "__nki_assign__"), f);
        }
        return !IS_ERR(call_values(it, f, (value[]){view, v}, 2));
    }
    default: break;
    }
    type_error(it, "'%s' object does not support item assignment", type_name(it, obj));
    return false;
}

bool del_index(interp *it, value obj, value key)
{
    switch ((vtag)obj.tag) {
    case V_LIST: {
        vlist *l = obj.u.list;
        if (key.tag == V_SLICE) {
            int64_t start, step, count;
            if (!slice_indices(it, key.u.slice, l->n, &start, &step, &count)) {
                return false;
            }
            if (step < 0) {
                start += (count - 1) * step;
                step = -step;
            }
            uint32_t out = 0;
            for (uint32_t i = 0; i < l->n; i++) {
                int64_t d = (int64_t)i - start;
                if (!(count > 0 && d >= 0 && d % step == 0 && d / step < count)) {
                    l->at[out++] = l->at[i];
                }
            }
            l->n = out;
            return true;
        }
        int64_t i;
        if (!as_index(it, key, &i)) {
            return false;
        }
        i = i < 0 ? i + l->n : i;
        if (i < 0 || i >= l->n) {
            raise_msg(it, "IndexError", "list assignment index out of range");
            return false;
        }
        memmove(l->at + i, l->at + i + 1, ((size_t)l->n - (size_t)i - 1) * sizeof *l->at);
        l->n--;
        return true;
    }
    case V_DICT: {
        int r = dict_del(it, obj.u.dict, key);
        if (r == 0) {
            raise_obj(it, exc_new(it, exc_class(it, "KeyError"), key));
        }
        return r == 1;
    }
    case V_OBJ: {
        value r = call_special(it, obj, N(__delitem__), &key, 1);
        if (r.tag != V_UNDEF) {
            return !IS_ERR(r);
        }
        if (obj.u.obj->base.tag != V_UNDEF) {
            return del_index(it, obj.u.obj->base, key);
        }
        break;
    }
    default: break;
    }
    type_error(it, "'%s' object doesn't support item deletion", type_name(it, obj));
    return false;
}

// ---- assignment

static bool unpack_count(interp *it, uint32_t want, uint32_t star, uint32_t n, bool more)
{
    if (more) {
        value_error(it, "too many values to unpack (expected %u)", want);
    } else if (star == UINT32_MAX) {
        value_error(it, "not enough values to unpack (expected %u, got %u)", want, n);
    } else {
        value_error(it, "not enough values to unpack (expected at least %u, got %u)", want - 1, n);
    }
    return false;
}

// The items of an iterator that `want` targets ask for, and no more. NULL: exception set.
static value *unpack_iterator(interp *it, value v, uint32_t want, uint32_t star, uint32_t *n)
{
    viter s;
    if (!iter_init(it, &s, v)) {
        if (class_of(v) == NULL && v.tag != V_OPAQUE && v.tag != V_DYNRANGE) {
            it->exc = VUNDEF;
            type_error(it, "cannot unpack non-iterable %s object", type_name(it, v));
        }
        return NULL;
    }
    value out = v_list(it, NULL, 0), x;
    vlist *l = out.u.list;
    vec_reserve(it->mem, l, want + 1);
    uint32_t before = star == UINT32_MAX ? want : star;
    int r = 1;
    while (l->n < before && (r = iter_next(it, &s, &x)) == 1) {
        list_push(it, l, x);
    }
    if (r == 1 && star == UINT32_MAX) {
        r = iter_next(it, &s, &x);
        if (r == 1) {
            unpack_count(it, want, star, l->n, true);
            return NULL;
        }
    } else if (r == 1) {
        // CPython makes a list of the iterator, and so asks for its __iter__ again.
        value rest = s.src.tag == V_OBJ ? list_from(it, s.src) : iter_rest(it, &s);
        if (IS_ERR(rest)) {
            return NULL;
        }
        for (uint32_t i = 0; i < rest.u.list->n; i++) {
            list_push(it, l, rest.u.list->at[i]);
        }
    }
    *n = l->n;
    return r < 0 ? NULL : l->at;
}

static bool unpack(interp *it, const ast *to, value v)
{
    uint32_t want = to->u.list.n, n, star = UINT32_MAX, k = 0;
    for (const ast *t = to->u.list.first; t; t = t->next, k++) {
        if (t->kind == AST_STARRED) {
            star = k;
        }
    }
    value small[8], *items = small;
    if (v.tag == V_TUPLE || v.tag == V_LIST) {
        const value *at = v.tag == V_TUPLE ? v.u.tuple->at : v.u.list->at;
        n = v.tag == V_TUPLE ? v.u.tuple->n : v.u.list->n;
        // A target may change the list being unpacked.
        items = n <= 8 ? small : NEW_N(it->mem, value, n);
        if (n) {
            memcpy(items, at, n * sizeof *items);
        }
    } else {
        items = unpack_iterator(it, v, want, star, &n);
        if (!items) {
            return false;
        }
    }
    if (star == UINT32_MAX ? n != want : n + 1 < want) {
        return unpack_count(it, want, star, n, n > want);
    }
    uint32_t i = 0;
    k = 0;
    for (const ast *t = to->u.list.first; t; t = t->next, k++) {
        if (k == star) {
            uint32_t m = n - (want - 1);
            if (!assign_to(it, t->u.bin.l, v_list(it, items + i, m))) {
                return false;
            }
            i += m;
        } else if (!assign_to(it, t, items[i++])) {
            return false;
        }
    }
    return true;
}

bool assign_to(interp *it, const ast *to, value v)
{
    switch ((ast_kind)to->kind) {
    case AST_NAME: return store_name(it, to->scope, to->slot, to->u.id, v);
    case AST_ATTR: {
        value o = eval(it, to->u.named.value);
        it->top->at = to;
        return !IS_ERR(o) && set_attr(it, o, to->u.named.id, v);
    }
    case AST_INDEX: {
        value o = eval(it, to->u.index.value);
        if (IS_ERR(o)) {
            return false;
        }
        value k = eval(it, to->u.index.key);
        it->top->at = to;
        return !IS_ERR(k) && set_index(it, o, k, v);
    }
    case AST_TUPLE:
    case AST_LIST: return unpack(it, to, v);
    case AST_PAT_CAPTURE:
    case AST_PAT_STAR:
    case AST_PAT_REST:
    case AST_PAT_AS: return store_name(it, to->scope, to->slot, to->u.pat.id, v);
    case AST_DEF:
    case AST_CLASS: return store_name(it, to->scope, to->slot, to->u.def.id, v);
    case AST_HANDLER: return store_name(it, to->scope, to->slot, to->u.handler.as, v);
    case AST_ALIAS: {
        sym id = to->u.alias.as;
        if (!id) {
            const char *dot = strchr(to->u.alias.path->text, '.');
            id = dot ? intern_add(it->names, to->u.alias.path->text,
                                  (size_t)(dot - to->u.alias.path->text))
                     : to->u.alias.path;
        }
        return store_name(it, to->scope, to->slot, id, v);
    }
    case AST_TYPE_ALIAS: return store_name(it, to->scope, to->slot, to->u.type.id, v);
    default: type_error(it, "cannot assign to this expression"); return false;
    }
}

// ---- displays and comprehensions

static value eval_items(interp *it, const ast *e, bool list)
{
    bool star = false;
    for (const ast *i = e->u.list.first; i; i = i->next) {
        star |= i->kind == AST_STARRED;
    }
    if (!star) {
        uint32_t n = 0;
        value small[16], *at = e->u.list.n <= 16 ? small : NEW_N(it->mem, value, e->u.list.n);
        for (const ast *i = e->u.list.first; i; i = i->next) {
            at[n] = eval(it, i);
            if (IS_ERR(at[n++])) {
                return VERR;
            }
        }
        return list ? v_list(it, at, n) : v_tuple(it, at, n);
    }
    value l = v_list(it, NULL, 0);
    for (const ast *i = e->u.list.first; i; i = i->next) {
        if (i->kind != AST_STARRED) {
            TRY(v, i);
            list_push(it, l.u.list, v);
            continue;
        }
        TRY(v, i->u.bin.l);
        uint32_t n;
        value *at = items_of(it, v, &n);
        if (!at) {
            if (class_of(v) == NULL) {
                it->exc = VUNDEF;
                return type_error(it, "Value after * must be an iterable, not %s",
                                  type_name(it, v));
            }
            return VERR;
        }
        for (uint32_t k = 0; k < n; k++) {
            list_push(it, l.u.list, at[k]);
        }
    }
    return list ? l : v_tuple(it, l.u.list->at, l.u.list->n);
}

static bool is_int_constant(const ast *e)
{
    return e->kind == AST_INT || (e->kind == AST_UNARY && e->u.bin.l->kind == AST_INT);
}

static value eval_set(interp *it, const ast *e)
{
    value l = eval_items(it, e, true);
    if (IS_ERR(l)) {
        return l;
    }
    value s = v_set(it);
    for (uint32_t i = 0; i < l.u.list->n; i++) {
        if (!dict_set(it, s.u.dict, l.u.list->at[i], VNONE)) {
            return VERR;
        }
    }
    // CPython keeps three constants or more as a frozenset that it builds twice, which shows where
    // numbers collide.
    bool constant = e->u.list.n >= 3;
    for (const ast *i = e->u.list.first; i && constant; i = i->next) {
        constant = is_int_constant(i);
    }
    if (constant) {
        set_settle(it, s.u.dict);
        s.u.dict->settled = 0;
    }
    return s;
}

static value eval_dict(interp *it, const ast *e)
{
    value d = v_dict(it);
    for (const ast *p = e->u.list.first; p; p = p->next) {
        if (!p->u.bin.l) {
            TRY(m, p->u.bin.r);
            value src = m.tag == V_OBJ && m.u.obj->base.tag == V_DICT ? m.u.obj->base : m;
            if (src.tag != V_DICT) {
                return type_error(it, "'%s' object is not a mapping", type_name(it, m));
            }
            for (uint32_t i = 0; i < src.u.dict->n; i++) {
                if (src.u.dict->at[i].key.tag != V_UNDEF &&
                    !dict_set(it, d.u.dict, src.u.dict->at[i].key, src.u.dict->at[i].val)) {
                    return VERR;
                }
            }
            continue;
        }
        TRY(k, p->u.bin.l);
        TRY(v, p->u.bin.r);
        if (!dict_set(it, d.u.dict, k, v)) {
            return VERR;
        }
    }
    return d;
}

static bool comp_add(interp *it, const ast *e, value out)
{
    value v = eval(it, e->u.comp.elt);
    if (IS_ERR(v)) {
        return false;
    }
    if (out.tag == V_LIST) {
        list_push(it, out.u.list, v);
        return true;
    }
    if (out.tag == V_SET) {
        return dict_set(it, out.u.dict, v, VNONE);
    }
    value w = eval(it, e->u.comp.value);
    return !IS_ERR(w) && dict_set(it, out.u.dict, v, w);
}

static bool comp_clause(interp *it, const ast *e, const ast *c, value out, const value *first)
{
    if (!c) {
        return comp_add(it, e, out);
    }
    value src = first ? *first : eval(it, c->u.clause.iter);
    viter s;
    if (IS_ERR(src) || !iter_init(it, &s, src)) {
        return false;
    }
    value x;
    int r;
    while ((r = iter_next(it, &s, &x)) == 1) {
        if (!interp_step(it) || !assign_to(it, c->u.clause.target, x)) {
            return false;
        }
        int keep = 1;
        for (const ast *k = c->u.clause.conds; k && keep == 1; k = k->next) {
            value t = eval(it, k);
            keep = IS_ERR(t) ? -1 : truth(it, t);
        }
        if (keep < 0 || (keep && !comp_clause(it, e, c->next, out, NULL))) {
            return false;
        }
    }
    return r == 0;
}

static value comp_run(interp *it, const ast *e, const value *first)
{
    value out = e->kind == AST_SETCOMP    ? v_set(it)
                : e->kind == AST_DICTCOMP ? v_dict(it)
                                          : v_list(it, NULL, 0);
    return comp_clause(it, e, e->u.comp.clauses, out, first) ? out : VERR;
}

// Its variables outlive the expression or are captured by a function inside: a frame of its own.
static value comp_in_frame(interp *it, const ast *e)
{
    value first = eval(it, e->u.comp.clauses->u.clause.iter);
    if (IS_ERR(first)) {
        return first;
    }
    it->top->at = e;
    unit *u = e->cache;
    frame on_stack, *f = e->kind == AST_GENEXP ? NEW(it->mem, frame) : &on_stack;
    *f = (frame){.prev = it->top,
                 .unit = u,
                 .module = it->top->module,
                 .cls = it->top->cls,
                 .call = e,
                 .at = e,
                 .id = it->top->id};
    f->locals = NEW_N(it->mem, value, u->nlocals);
    f->cells = NEW_N(it->mem, cell *, u->nown + u->nfree);
    for (uint32_t i = 0; i < u->nown; i++) {
        f->cells[i] = NEW(it->mem, cell);
    }
    for (uint32_t i = 0; i < u->nfree; i++) {
        f->cells[u->nown + i] = it->top->cells[u->free_from[i]];
    }
    if (e->kind == AST_GENEXP) {
        return gen_of_expression(it, e, f, first);
    }
    f->place = it->top->place;
    f->loops = it->top->loops;
    it->top = f;
    value out = comp_run(it, e, &first);
    it->top = f->prev;
    return out;
}

static value eval_comp(interp *it, const ast *e)
{
    return e->scope == 1 ? comp_in_frame(it, e) : comp_run(it, e, NULL);
}

static value eval_compare(interp *it, const ast *e)
{
    TRY(a, e->u.bin.l);
    for (const ast *c = e->u.bin.r; c; c = c->next) {
        TRY(b, c->u.bin.r);
        value r;
        it->top->at = e;
        switch ((ast_op)c->op) {
        case OP_IS: r = VBOOL(is_same(a, b)); break;
        case OP_IS_NOT: r = VBOOL(!is_same(a, b)); break;
        case OP_IN: r = contains(it, b, a); break;
        case OP_NOT_IN:
            r = contains(it, b, a);
            r = IS_ERR(r) ? r : VBOOL(!r.u.b);
            break;
        default: r = compare(it, (ast_op)c->op, a, b); break;
        }
        if (IS_ERR(r) || !c->next) {
            return r;
        }
        int t = truth(it, r);
        if (t <= 0) {
            return t < 0 ? VERR : r;
        }
        a = b;
    }
    return VBOOL(true);
}

static value eval_lambda(interp *it, const ast *e)
{
    return make_function(it, e);
}

static value eval_slice(interp *it, const ast *e)
{
    vslice *s = NEW(it->mem, vslice);
    s->start = e->u.three.a ? eval(it, e->u.three.a) : VNONE;
    if (IS_ERR(s->start)) {
        return VERR;
    }
    s->stop = e->u.three.b ? eval(it, e->u.three.b) : VNONE;
    if (IS_ERR(s->stop)) {
        return VERR;
    }
    s->step = e->u.three.c ? eval(it, e->u.three.c) : VNONE;
    return IS_ERR(s->step) ? VERR : VPTR(V_SLICE, s);
}

static value eval_constant(interp *it, const ast *e)
{
    switch ((ast_op)e->op) {
    case OP_C_NONE: return VNONE;
    case OP_C_TRUE: return VBOOL(true);
    case OP_C_FALSE: return VBOOL(false);
    default: (void)it; return VTAG(V_ELLIPSIS);
    }
}

// String constants are made once and kept on their node.
static value eval_str(interp *it, const ast *e)
{
    if (!e->cache) {
        value v = v_str(it, e->u.str.p, e->u.str.len);
        ((ast *)(uintptr_t)e)->cache = v.u.str;
    }
    return VPTR(e->kind == AST_BYTES ? V_BYTES : V_STR, e->cache);
}

value eval(interp *it, const ast *e)
{
    switch ((ast_kind)e->kind) {
    case AST_NAME: {
        if (e->scope == SCOPE_LOCAL) {
            value v = it->top->locals[e->slot];
            if (v.tag != V_UNDEF) {
                return v;
            }
        }
        if (e->scope == SCOPE_CELL) {
            value v = it->top->cells[e->slot]->v;
            if (v.tag != V_UNDEF) {
                return v;
            }
        }
        it->top->at = e;
        return load_name(it, e);
    }
    case AST_INT:
        if (e->flag) {
            it->top->at = e;
            return raise_msg(it, "OverflowError", "integer %s does not fit in 64 bits", e->u.str.p);
        }
        return VINT(e->u.i);
    case AST_FLOAT: return VFLT(e->u.d);
    case AST_IMAG: it->top->at = e; return type_error(it, "complex numbers are not supported");
    case AST_STR:
    case AST_BYTES: return eval_str(it, e);
    case AST_FSTRING: return eval_fstring(it, e);
    case AST_CONST: return eval_constant(it, e);
    default: break;
    }
    if (!stack_ok(it)) {
        return VERR;
    }
    switch ((ast_kind)e->kind) {
    case AST_TUPLE: return eval_items(it, e, false);
    case AST_LIST: return eval_items(it, e, true);
    case AST_SET: return eval_set(it, e);
    case AST_DICT: return eval_dict(it, e);
    case AST_UNARY: {
        TRY(v, e->u.bin.l);
        it->top->at = e;
        return unary_op(it, (ast_op)e->op, v);
    }
    case AST_BINARY: {
        TRY(a, e->u.bin.l);
        TRY(b, e->u.bin.r);
        if (a.tag == V_INT && b.tag == V_INT && e->op <= OP_MUL) {  // + - *
            int64_t r;
            bool over = e->op == OP_ADD   ? __builtin_add_overflow(a.u.i, b.u.i, &r)
                        : e->op == OP_SUB ? __builtin_sub_overflow(a.u.i, b.u.i, &r)
                                          : __builtin_mul_overflow(a.u.i, b.u.i, &r);
            if (!over) {
                return VINT(r);
            }
        }
        it->top->at = e;
        return binary_op(it, (ast_op)e->op, a, b);
    }
    case AST_BOOLOP: {
        TRY(a, e->u.bin.l);
        int t = truth(it, a);
        if (t < 0) {
            return VERR;
        }
        if (t == (e->op == OP_OR)) {
            return a;
        }
        return eval(it, e->u.bin.r);
    }
    case AST_COMPARE: return eval_compare(it, e);
    case AST_CALL: return eval_call(it, e);
    case AST_ATTR: {
        TRY(o, e->u.named.value);
        it->top->at = e;
        return get_attr(it, o, e->u.named.id);
    }
    case AST_INDEX: {
        TRY(o, e->u.index.value);
        TRY(k, e->u.index.key);
        it->top->at = e;
        return get_index(it, o, k);
    }
    case AST_SLICE: return eval_slice(it, e);
    case AST_TERNARY: {
        TRY(c, e->u.three.c);
        int t = truth(it, c);
        return t < 0 ? VERR : eval(it, t ? e->u.three.a : e->u.three.b);
    }
    case AST_LAMBDA: return eval_lambda(it, e);
    case AST_WALRUS: {
        TRY(v, e->u.bin.r);
        return assign_to(it, e->u.bin.l, v) ? v : VERR;
    }
    case AST_LISTCOMP:
    case AST_SETCOMP:
    case AST_DICTCOMP:
    case AST_GENEXP: return eval_comp(it, e);
    case AST_STARRED: it->top->at = e; return type_error(it, "can't use starred expression here");
    case AST_YIELD:
    case AST_YIELD_FROM: {
        value v = e->u.bin.l ? eval(it, e->u.bin.l) : VNONE;
        if (IS_ERR(v)) {
            return v;
        }
        it->top->at = e;
        return e->kind == AST_YIELD ? gen_yield(it, v) : gen_yield_from(it, v);
    }
    case AST_AWAIT:
        it->top->at = e;
        return raise_msg(it, "NotImplementedError", "await is not supported in kernels");
    default:
        it->top->at = e;
        return type_error(it, "this expression is not supported (%s)",
                          ast_kind_name((ast_kind)e->kind));
    }
}
