// Built-in functions and types.
#include "lower/methods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[T_COUNT] = {
    [T_OBJECT] = "object",
    [T_INT] = "int",
    [T_FLOAT] = "float",
    [T_BOOL] = "bool",
    [T_STR] = "str",
    [T_BYTES] = "bytes",
    [T_LIST] = "list",
    [T_TUPLE] = "tuple",
    [T_DICT] = "dict",
    [T_SET] = "set",
    [T_FROZENSET] = "frozenset",
    [T_RANGE] = "range",
    [T_SLICE] = "slice",
    [T_TYPE] = "type",
    [T_FUNCTION] = "function",
    [T_NONETYPE] = "NoneType",
    [T_TENSOR] = "NkiTensor",
    [T_REGISTER] = "VirtualRegister",
    [T_INSTR] = "NkiInstruction",
    [T_DTYPE] = "DType",
    [T_REGION] = "MemoryRegion",
    [T_MODULE] = "module",
    [T_PROPERTY] = "property",
    [T_STATICMETHOD] = "staticmethod",
    [T_CLASSMETHOD] = "classmethod",
    [T_SUPER] = "super",
    [T_ENUMERATE] = "enumerate",
    [T_ZIP] = "zip",
    [T_MAP] = "map",
    [T_FILTER] = "filter",
    [T_REVERSED] = "reversed",
    [T_ELLIPSIS] = "ellipsis",
    [T_METHOD] = "method",
    [T_GENERATOR] = "generator",
    [T_COMPLEX] = "complex",
    [T_BUILTIN] = "builtin_function_or_method",
};

const char *vtype_name(vtype t)
{
    return type_names[t];
}

static bool arity(interp *it, const char *name, const args *a, uint32_t lo, uint32_t hi)
{
    if (a->nkw) {
        type_error(it, "%s() takes no keyword arguments", name);
        return false;
    }
    if (a->n >= lo && a->n <= hi) {
        return true;
    }
    if (lo == hi) {
        type_error(it,
                   lo == 1 ? "%s() takes exactly one argument (%u given)"
                           : "%s expected %u arguments, got %u",
                   name, lo == 1 ? a->n : lo, a->n);
    } else if (a->n < lo) {
        type_error(it, "%s expected at least %u argument%s, got %u", name, lo, lo == 1 ? "" : "s",
                   a->n);
    } else {
        type_error(it, "%s expected at most %u argument%s, got %u", name, hi, hi == 1 ? "" : "s",
                   a->n);
    }
    return false;
}

static bool is_num(value v)
{
    return v.tag == V_INT || v.tag == V_BOOL || v.tag == V_FLOAT;
}

static int64_t as_int(value v)
{
    return v.tag == V_BOOL ? v.u.b : v.u.i;
}

static double as_double(value v)
{
    return v.tag == V_FLOAT ? v.u.d : (double)as_int(v);
}

// ---- output

static value b_print(interp *it, const args *a)
{
    textbuf t;
    text_init(&t, it->mem);
    value sep = VNONE, end = VNONE, file = VNONE;
    for (uint32_t j = 0; j < a->nkw; j++) {
        value v = a->at[a->n + j];
        if (a->kw[j] == N(sep)) {
            sep = v;
        } else if (a->kw[j] == N(end)) {
            end = v;
        } else if (a->kw[j] == N(file)) {
            file = v;
        } else if (a->kw[j] != N(flush)) {
            return type_error(it, "'%s' is an invalid keyword argument for print()",
                              a->kw[j]->text);
        }
    }
    if ((sep.tag != V_NONE && sep.tag != V_STR) || (end.tag != V_NONE && end.tag != V_STR)) {
        bool bad_sep = sep.tag != V_NONE && sep.tag != V_STR;
        return type_error(it, "%s must be None or a string, not %s", bad_sep ? "sep" : "end",
                          type_name(it, bad_sep ? sep : end));
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (i) {
            if (sep.tag == V_STR) {
                text_add(&t, sep.u.str->p, sep.u.str->len);
            } else {
                text_char(&t, ' ');
            }
        }
        if (!str_into(it, a->at[i], &t)) {
            return VERR;
        }
    }
    if (end.tag == V_STR) {
        text_add(&t, end.u.str->p, end.u.str->len);
    } else {
        text_char(&t, '\n');
    }
    if (file.tag == V_OBJ) {
        return call_method(it, file, intern_cstr(it->names, "write"),
                           (value[]){v_str(it, t.at, t.len)}, 1);
    }
    if (it->o->print) {
        it->o->print(it->o->print_ctx, t.at, t.len);
    }
    return VNONE;
}

// ---- sizes and numbers

static value length(interp *it, value v)
{
    switch ((vtag)v.tag) {
    case V_STR: return VINT(v.u.str->chars);
    case V_BYTES: return VINT(v.u.str->len);
    case V_LIST: return VINT(v.u.list->n);
    case V_TUPLE: return VINT(v.u.tuple->n);
    case V_DICT:
    case V_SET: return VINT(v.u.dict->live);
    case V_RANGE: {
        const vrange *r = v.u.range;
        return VINT(r->step > 0
                        ? (r->start < r->stop ? (r->stop - r->start - 1) / r->step + 1 : 0)
                        : (r->start > r->stop ? (r->start - r->stop - 1) / -r->step + 1 : 0));
    }
    case V_CLASS:
        if (v.u.cls->is_enum) {
            return VINT(v.u.cls->enum_members.u.list->n);
        }
        break;
    case V_TENSOR: return VINT(v.u.tensor->ndim ? v.u.tensor->shape[0] : 0);
    case V_OBJ: {
        value r = call_special(it, v, N(__len__), NULL, 0);
        if (r.tag == V_UNDEF && v.u.obj->base.tag != V_UNDEF) {
            return length(it, v.u.obj->base);
        }
        if (r.tag == V_INT && r.u.i < 0) {
            return value_error(it, "__len__() should return >= 0");
        }
        if (r.tag != V_UNDEF) {
            return r;
        }
        break;
    }
    default: break;
    }
    return type_error(it, "object of type '%s' has no len()", type_name(it, v));
}

static value b_len(interp *it, const args *a)
{
    return arity(it, "len", a, 1, 1) ? length(it, a->at[0]) : VERR;
}

static value b_abs(interp *it, const args *a)
{
    if (!arity(it, "abs", a, 1, 1)) {
        return VERR;
    }
    value v = a->at[0];
    if (v.tag == V_FLOAT) {
        return VFLT(fabs(v.u.d));
    }
    if (v.tag == V_INT || v.tag == V_BOOL) {
        int64_t i = as_int(v);
        return i == INT64_MIN ? raise_msg(it, "OverflowError", "abs() does not fit in 64 bits")
                              : VINT(i < 0 ? -i : i);
    }
    value r = call_special(it, v, N(__abs__), NULL, 0);
    return r.tag != V_UNDEF ? r
                            : type_error(it, "bad operand type for abs(): '%s'", type_name(it, v));
}

static value extreme(interp *it, const args *a, bool max)
{
    const char *name = max ? "max" : "min";
    value key = VNONE, dflt = VUNDEF;
    for (uint32_t j = 0; j < a->nkw; j++) {
        if (a->kw[j] == N(key)) {
            key = a->at[a->n + j];
        } else if (a->kw[j] == N(default_)) {
            dflt = a->at[a->n + j];
        } else {
            return type_error(it, "%s() got an unexpected keyword argument '%s'", name,
                              a->kw[j]->text);
        }
    }
    if (a->n == 0) {
        return type_error(it, "%s expected at least 1 argument, got 0", name);
    }
    uint32_t n = a->n;
    value *at = a->at;
    if (n == 1) {
        at = items_of(it, a->at[0], &n);
        if (!at) {
            return VERR;
        }
    }
    if (n == 0) {
        return dflt.tag != V_UNDEF ? dflt : value_error(it, "%s() arg is an empty sequence", name);
    }
    value best = at[0], bk = VUNDEF;
    if (key.tag != V_NONE) {
        bk = call_values(it, key, &at[0], 1);
        if (IS_ERR(bk)) {
            return bk;
        }
    }
    for (uint32_t i = 1; i < n; i++) {
        value k = VUNDEF;
        if (key.tag != V_NONE) {
            k = call_values(it, key, &at[i], 1);
            if (IS_ERR(k)) {
                return k;
            }
        }
        value x = key.tag != V_NONE ? k : at[i], y = key.tag != V_NONE ? bk : best;
        value c = compare(it, max ? OP_GT : OP_LT, x, y);
        int t = IS_ERR(c) ? -1 : truth(it, c);
        if (t < 0) {
            return VERR;
        }
        if (t) {
            best = at[i];
            bk = k;
        }
    }
    return best;
}

static value b_min(interp *it, const args *a)
{
    return extreme(it, a, false);
}

static value b_max(interp *it, const args *a)
{
    return extreme(it, a, true);
}

static value b_sum(interp *it, const args *a)
{
    static const char *const params[] = {"iterable", "start"};
    value p[2];
    if (!bind_native(it, "sum", a, params, 2, 1, p)) {
        return VERR;
    }
    value acc = p[1].tag == V_UNDEF ? VINT(0) : p[1], x;
    if (acc.tag == V_STR) {
        return type_error(it, "sum() can't sum strings [use ''.join(seq) instead]");
    }
    viter s;
    if (!iter_init(it, &s, p[0])) {
        return VERR;
    }
    int r;
    while ((r = iter_next(it, &s, &x)) == 1) {
        acc = binary_op(it, OP_ADD, acc, x);
        if (IS_ERR(acc) || !interp_step(it)) {
            return VERR;
        }
    }
    return r < 0 ? VERR : acc;
}

static value round_int(interp *it, int64_t v, int64_t digits)
{
    if (digits >= 0) {
        return VINT(v);
    }
    if (digits < -18) {
        return VINT(0);
    }
    int64_t p = 1;
    for (int64_t i = digits; i < 0; i++) {
        p *= 10;
    }
    int64_t q = v / p, r = v % p;
    if (r < 0) {
        r += p;
        q--;
    }
    if (2 * r > p || (2 * r == p && (q & 1))) {
        q++;
    }
    (void)it;
    return VINT(q * p);
}

static value float_to_int(interp *it, double d, const char *what)
{
    if (isnan(d)) {
        return value_error(it, "cannot convert float NaN to integer");
    }
    if (isinf(d)) {
        return raise_msg(it, "OverflowError", "cannot convert float infinity to integer");
    }
    if (fabs(d) >= 9223372036854775808.0) {
        return raise_msg(it, "OverflowError", "%s of %g does not fit in 64 bits", what, d);
    }
    return VINT((int64_t)d);
}

static value b_round(interp *it, const args *a)
{
    static const char *const params[] = {"number", "ndigits"};
    value p[2];
    if (!bind_native(it, "round", a, params, 2, 1, p)) {
        return VERR;
    }
    bool whole = p[1].tag == V_UNDEF || p[1].tag == V_NONE;
    if (p[0].tag == V_INT || p[0].tag == V_BOOL) {
        return whole ? VINT(as_int(p[0])) : round_int(it, as_int(p[0]), p[1].u.i);
    }
    if (p[0].tag == V_FLOAT) {
        double d = p[0].u.d;
        if (whole) {
            return float_to_int(it, rint(d), "round()");
        }
        if (!isfinite(d) || p[1].u.i > 300) {
            return VFLT(d);
        }
        if (p[1].u.i < -308) {
            return VFLT(0.0 * d);
        }
        if (p[1].u.i < 0) {
            double q = pow(10, (double)-p[1].u.i);
            return VFLT(rint(d / q) * q);
        }
        char buf[700];
        snprintf(buf, sizeof buf, "%.*f", (int)p[1].u.i,
                 d);  // correctly rounded, half to even of the exact value
        double r;
        return text_to_double(buf, strlen(buf), &r) ? VFLT(r) : VFLT(d);
    }
    value r = call_special(it, p[0], N(__round__), &p[1], whole ? 0 : 1);
    return r.tag != V_UNDEF
               ? r
               : type_error(it, "type %s doesn't define __round__ method", type_name(it, p[0]));
}

static value b_divmod(interp *it, const args *a)
{
    if (!arity(it, "divmod", a, 2, 2)) {
        return VERR;
    }
    if ((a->at[0].tag == V_FLOAT || a->at[1].tag == V_FLOAT) && is_num(a->at[0]) &&
        is_num(a->at[1]) && as_double(a->at[1]) == 0) {
        return raise_msg(it, "ZeroDivisionError", "float divmod()");
    }
    value q = binary_op(it, OP_FLOORDIV, a->at[0], a->at[1]);
    value r = IS_ERR(q) ? q : binary_op(it, OP_MOD, a->at[0], a->at[1]);
    return IS_ERR(r) ? r : v_tuple(it, (value[]){q, r}, 2);
}

static value b_pow(interp *it, const args *a)
{
    static const char *const params[] = {"base", "exp", "mod"};
    value p[3];
    if (!bind_native(it, "pow", a, params, 3, 2, p)) {
        return VERR;
    }
    if (p[2].tag == V_UNDEF || p[2].tag == V_NONE) {
        return binary_op(it, OP_POW, p[0], p[1]);
    }
    if (p[0].tag != V_INT || p[1].tag != V_INT || p[2].tag != V_INT) {
        return type_error(it, "pow() 3rd argument not allowed unless all arguments are integers");
    }
    if (p[2].u.i == 0) {
        return value_error(it, "pow() 3rd argument cannot be 0");
    }
    int64_t m = p[2].u.i, e = p[1].u.i;
    __extension__ typedef __int128 wide;
    wide am = m < 0 ? -(wide)m : m, b = p[0].u.i % am, r = 1 % am;
    b = b < 0 ? b + am : b;
    if (e < 0) {
        // The inverse by extended Euclid.
        wide x0 = 1, x1 = 0, r0 = b, r1 = am;
        while (r1) {
            wide q = r0 / r1, t = r0 - q * r1;
            r0 = r1;
            r1 = t;
            t = x0 - q * x1;
            x0 = x1;
            x1 = t;
        }
        if (r0 != 1) {
            return value_error(it, "base is not invertible for the given modulus");
        }
        b = (x0 % am + am) % am;
        e = -e;
    }
    while (e) {
        if (e & 1) {
            r = r * b % am;
        }
        b = b * b % am;
        e >>= 1;
    }
    if (m < 0 && r) {
        r += m;
    }
    return VINT((int64_t)r);
}

static value base_text(interp *it, const args *a, const char *name, int base, const char *prefix)
{
    int64_t v;
    if (!arity(it, name, a, 1, 1) || !as_index(it, a->at[0], &v)) {
        return VERR;
    }
    char buf[72];
    int i = sizeof buf - 1;
    buf[i] = '\0';
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        buf[--i] = "0123456789abcdef"[u % (unsigned)base];
        u /= (unsigned)base;
    } while (u);
    return v_cstr(it, arena_printf(it->mem, "%s%s%s", v < 0 ? "-" : "", prefix, buf + i));
}

static value b_hex(interp *it, const args *a)
{
    return base_text(it, a, "hex", 16, "0x");
}

static value b_oct(interp *it, const args *a)
{
    return base_text(it, a, "oct", 8, "0o");
}

static value b_bin(interp *it, const args *a)
{
    return base_text(it, a, "bin", 2, "0b");
}

static value b_chr(interp *it, const args *a)
{
    int64_t c;
    if (!arity(it, "chr", a, 1, 1) || !as_index(it, a->at[0], &c)) {
        return VERR;
    }
    if (c < 0 || c > 0x10ffff) {
        return value_error(it, "chr() arg not in range(0x110000)");
    }
    char b[4];
    size_t n;
    if (c < 0x80) {
        b[0] = (char)c;
        n = 1;
    } else if (c < 0x800) {
        b[0] = (char)(0xC0 | c >> 6);
        b[1] = (char)(0x80 | (c & 63));
        n = 2;
    } else if (c < 0x10000) {
        b[0] = (char)(0xE0 | c >> 12);
        b[1] = (char)(0x80 | (c >> 6 & 63));
        b[2] = (char)(0x80 | (c & 63));
        n = 3;
    } else {
        b[0] = (char)(0xF0 | c >> 18);
        b[1] = (char)(0x80 | (c >> 12 & 63));
        b[2] = (char)(0x80 | (c >> 6 & 63));
        b[3] = (char)(0x80 | (c & 63));
        n = 4;
    }
    return v_str(it, b, n);
}

static value b_ord(interp *it, const args *a)
{
    if (!arity(it, "ord", a, 1, 1)) {
        return VERR;
    }
    if (a->at[0].tag != V_STR) {
        return type_error(it, "ord() expected string of length 1, but %s found",
                          type_name(it, a->at[0]));
    }
    const vstr *s = a->at[0].u.str;
    if (s->chars != 1) {
        return type_error(it, "ord() expected a character, but string of length %u found",
                          s->chars);
    }
    const unsigned char *p = (const unsigned char *)s->p;
    int64_t c = p[0];
    if (s->len == 2) {
        c = (p[0] & 31) << 6 | (p[1] & 63);
    } else if (s->len == 3) {
        c = (p[0] & 15) << 12 | (p[1] & 63) << 6 | (p[2] & 63);
    } else if (s->len == 4) {
        c = (p[0] & 7) << 18 | (p[1] & 63) << 12 | (p[2] & 63) << 6 | (p[3] & 63);
    }
    return VINT(c);
}

// ---- iteration

static value b_any_all(interp *it, const args *a, bool any)
{
    viter s;
    value x;
    if (!arity(it, any ? "any" : "all", a, 1, 1) || !iter_init(it, &s, a->at[0])) {
        return VERR;
    }
    int r;
    while ((r = iter_next(it, &s, &x)) == 1) {
        int t = truth(it, x);
        if (t < 0 || !interp_step(it)) {
            return VERR;
        }
        if (t == any) {
            return VBOOL(any);
        }
    }
    return r < 0 ? VERR : VBOOL(!any);
}

static value b_any(interp *it, const args *a)
{
    return b_any_all(it, a, true);
}

static value b_all(interp *it, const args *a)
{
    return b_any_all(it, a, false);
}

static value b_sorted(interp *it, const args *a)
{
    value key = VNONE, rev = VBOOL(false);
    for (uint32_t j = 0; j < a->nkw; j++) {
        if (a->kw[j] == N(key)) {
            key = a->at[a->n + j];
        } else if (a->kw[j] == N(reverse)) {
            rev = a->at[a->n + j];
        } else {
            return type_error(it, "sort() got an unexpected keyword argument '%s'", a->kw[j]->text);
        }
    }
    if (a->n != 1) {
        return type_error(it, "sorted expected 1 argument, got %u", a->n);
    }
    value l = list_from(it, a->at[0]);
    int r = truth(it, rev);
    return IS_ERR(l) || r < 0 || IS_ERR(sort_list(it, l.u.list, key, r)) ? VERR : l;
}

static value b_iter(interp *it, const args *a)
{
    return arity(it, "iter", a, 1, 1) ? iter_new(it, a->at[0]) : VERR;
}

static value b_next(interp *it, const args *a)
{
    if (!arity(it, "next", a, 1, 2)) {
        return VERR;
    }
    value v = a->at[0], out;
    int r;
    if (v.tag == V_ITER) {
        r = iter_next(it, v.u.iter, &out);
    } else {
        out = call_special(it, v, N(__next__), NULL, 0);
        if (out.tag == V_UNDEF) {
            return type_error(it, "'%s' object is not an iterator", type_name(it, v));
        }
        r = IS_ERR(out) ? -1 : 1;
        if (r < 0 && a->n == 2 && it->exc.tag == V_OBJ &&
            class_is(it->exc.u.obj->cls, exc_class(it, "StopIteration"))) {
            it->exc = VUNDEF;
            return a->at[1];
        }
    }
    if (r == 0) {
        value ret = iter_result(v.u.iter);
        return a->n == 2 ? a->at[1]
                         : raise_obj(it, exc_new(it, exc_class(it, "StopIteration"),
                                                 ret.tag == V_NONE ? VUNDEF : ret));
    }
    return r < 0 ? VERR : out;
}

// ---- objects

static value b_isinstance(interp *it, const args *a)
{
    bool r;
    return arity(it, "isinstance", a, 2, 2) && is_instance(it, a->at[0], a->at[1], &r) ? VBOOL(r)
                                                                                       : VERR;
}

static value b_issubclass(interp *it, const args *a)
{
    bool r;
    return arity(it, "issubclass", a, 2, 2) && is_subclass(it, a->at[0], a->at[1], &r) ? VBOOL(r)
                                                                                       : VERR;
}

static bool attr_name(interp *it, const char *fn, const args *a, sym *out)
{
    if (a->at[1].tag != V_STR) {
        type_error(it, "%s(): attribute name must be string", fn);
        return false;
    }
    *out = str_sym(it, a->at[1]);
    return true;
}

static bool is_attribute_error(interp *it)
{
    return it->exc.tag == V_OBJ && class_is(it->exc.u.obj->cls, exc_class(it, "AttributeError"));
}

static value b_getattr(interp *it, const args *a)
{
    sym id;
    if (!arity(it, "getattr", a, 2, 3) || !attr_name(it, "getattr", a, &id)) {
        return VERR;
    }
    value v = find_attr(it, a->at[0], id);
    if (IS_ERR(v) && a->n == 3 && is_attribute_error(it)) {
        it->exc = VUNDEF;
        return a->at[2];
    }
    if (v.tag != V_UNDEF) {
        return v;
    }
    return a->n == 3 ? a->at[2] : get_attr(it, a->at[0], id);
}

static value b_hasattr(interp *it, const args *a)
{
    sym id;
    if (!arity(it, "hasattr", a, 2, 2) || !attr_name(it, "hasattr", a, &id)) {
        return VERR;
    }
    value v = find_attr(it, a->at[0], id);
    if (IS_ERR(v)) {
        if (!is_attribute_error(it)) {
            return v;
        }
        it->exc = VUNDEF;
        return VBOOL(false);
    }
    return VBOOL(v.tag != V_UNDEF);
}

static value b_setattr(interp *it, const args *a)
{
    sym id;
    return arity(it, "setattr", a, 3, 3) && attr_name(it, "setattr", a, &id) &&
                   set_attr(it, a->at[0], id, a->at[2])
               ? VNONE
               : VERR;
}

static value b_delattr(interp *it, const args *a)
{
    sym id;
    return arity(it, "delattr", a, 2, 2) && attr_name(it, "delattr", a, &id) &&
                   del_attr(it, a->at[0], id)
               ? VNONE
               : VERR;
}

static value b_callable(interp *it, const args *a)
{
    if (!arity(it, "callable", a, 1, 1)) {
        return VERR;
    }
    switch ((vtag)a->at[0].tag) {
    case V_FUNC:
    case V_METHOD:
    case V_NATIVE:
    case V_CLASS:
    case V_TYPE:
    case V_ISA:
    case V_BUILTIN_METHOD: return VBOOL(true);
    case V_OBJ: return VBOOL(class_lookup(a->at[0].u.obj->cls, N(__call__)).tag != V_UNDEF);
    default: return VBOOL(false);
    }
}

static value b_repr(interp *it, const args *a)
{
    return arity(it, "repr", a, 1, 1) ? v_repr(it, a->at[0]) : VERR;
}

static value b_hash(interp *it, const args *a)
{
    uint32_t h;
    if (!arity(it, "hash", a, 1, 1)) {
        return VERR;
    }
    if (a->at[0].tag == V_INT || a->at[0].tag == V_BOOL) {
        int64_t i = as_int(a->at[0]), m = (int64_t)0x1fffffffffffffff;
        int64_t r = i % m;
        return VINT(r == -1 ? -2 : r);
    }
    if (a->at[0].tag == V_FLOAT && floor(a->at[0].u.d) == a->at[0].u.d &&
        fabs(a->at[0].u.d) < 9e18) {
        return b_hash(it, &(args){(value[]){VINT((int64_t)a->at[0].u.d)}, 1, 0, NULL});
    }
    if (a->at[0].tag == V_OBJ) {
        value r = call_special(it, a->at[0], N(__hash__), NULL, 0);
        if (r.tag == V_INT || IS_ERR(r)) {
            return r;
        }
    }
    return hash_value(it, a->at[0], &h) ? VINT(h) : VERR;
}

static value b_ascii(interp *it, const args *a)
{
    return arity(it, "ascii", a, 1, 1) ? v_ascii(it, a->at[0]) : VERR;
}

static value b_id(interp *it, const args *a)
{
    return arity(it, "id", a, 1, 1) ? VINT((int64_t)((uintptr_t)a->at[0].u.p >> 4)) : VERR;
}

static value b_format(interp *it, const args *a)
{
    if (!arity(it, "format", a, 1, 2)) {
        return VERR;
    }
    return format_value(it, a->at[0], a->n == 2 ? a->at[1] : v_str(it, "", 0));
}

static value b_vars(interp *it, const args *a)
{
    return arity(it, "vars", a, 1, 1) ? get_attr(it, a->at[0], N(__dict__)) : VERR;
}

static value b_dir(interp *it, const args *a)
{
    if (!arity(it, "dir", a, 1, 1)) {
        return VERR;
    }
    value l = v_list(it, NULL, 0), v = a->at[0];
    const attrs *own = v.tag == V_OBJ      ? &v.u.obj->attrs
                       : v.tag == V_MODULE ? &v.u.module->attrs
                                           : NULL;
    for (uint32_t i = 0; own && i < own->n; i++) {
        list_push(it, l.u.list, v_sym(it, own->at[i].id));
    }
    const vclass *c = v.tag == V_CLASS ? v.u.cls : class_of(v);
    for (uint32_t k = 0; c && k < c->nmro; k++) {
        for (uint32_t i = 0; i < c->mro[k]->attrs.n; i++) {
            list_push(it, l.u.list, v_sym(it, c->mro[k]->attrs.at[i].id));
        }
    }
    return IS_ERR(sort_list(it, l.u.list, VNONE, false)) ? VERR : l;
}

static value b_globals(interp *it, const args *a)
{
    (void)a;
    value d = v_dict(it);
    const frame *f = it->top;
    for (uint32_t i = 0; i < f->module->attrs.n; i++) {
        dict_set(it, d.u.dict, v_sym(it, f->module->attrs.at[i].id), f->module->attrs.at[i].val);
    }
    return d;
}

static value b_locals(interp *it, const args *a)
{
    (void)a;
    value d = v_dict(it);
    const frame *f = it->top;
    for (uint32_t i = 0; i < f->unit->nlocals; i++) {
        if (f->locals[i].tag != V_UNDEF) {
            dict_set(it, d.u.dict, v_sym(it, f->unit->slot_name[i]), f->locals[i]);
        }
    }
    return d;
}

static value b_import(interp *it, const args *a)
{
    if (a->n < 1 || a->at[0].tag != V_STR) {
        return type_error(it, "__import__() takes a module name");
    }
    value m = import_module(it, it->top->module, 0, str_sym(it, a->at[0]), false);
    return m.tag == V_UNDEF
               ? raise_msg(it, "ModuleNotFoundError", "No module named '%s'", a->at[0].u.str->p)
               : m;
}

static value b_refuse(interp *it, const args *a)
{
    (void)a;
    return raise_msg(it, "NotImplementedError",
                     "input(), open(), exec() and eval() are not available in kernels");
}

// ---- types as functions

static value parse_int(interp *it, const vstr *s, int base)
{
    const char *p = s->p, *end = p + s->len;
    while (p < end && strchr(" \t\n\r\f\v", *p)) {
        p++;
    }
    while (end > p && strchr(" \t\n\r\f\v", end[-1])) {
        end--;
    }
    bool neg = false;
    if (p < end && (*p == '+' || *p == '-')) {
        neg = *p++ == '-';
    }
    if (end - p > 2 && p[0] == '0' && (base == 0 || base == 16 || base == 8 || base == 2)) {
        char c = p[1] | 32;
        int b = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (b && (base == 0 || base == b)) {
            base = b;
            p += 2;
            if (p < end && *p == '_') {
                p++;
            }
        }
    }
    base = base == 0 ? 10 : base;
    uint64_t v = 0;
    bool ok = p < end, over = false, last_us = false, any = false;
    for (; p < end && ok; p++) {
        if (*p == '_') {
            ok = !last_us && any && p + 1 < end;
            last_us = true;
            continue;
        }
        last_us = false;
        any = true;
        int d = *p >= '0' && *p <= '9'   ? *p - '0'
                : *p >= 'a' && *p <= 'z' ? *p - 'a' + 10
                : *p >= 'A' && *p <= 'Z' ? *p - 'A' + 10
                                         : 99;
        ok = d < base;
        over |= v > (UINT64_MAX - (uint64_t)d) / (uint64_t)base;
        v = v * (uint64_t)base + (uint64_t)d;
    }
    if (!ok || last_us) {
        value r = v_repr(it, (value){.tag = V_STR, .u.str = (vstr *)(uintptr_t)s});
        return value_error(it, "invalid literal for int() with base %d: %s", base, r.u.str->p);
    }
    if (over || v > (neg ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX)) {
        return raise_msg(it, "OverflowError", "integer %s does not fit in 64 bits", s->p);
    }
    return VINT(neg ? (int64_t)(0 - v) : (int64_t)v);
}

static value make_int(interp *it, const args *a)
{
    if (a->n == 0) {
        return VINT(0);
    }
    value v = a->at[0];
    value basev = a->n > 1 ? a->at[1] : a->nkw == 1 ? a->at[a->n] : VUNDEF;
    if (basev.tag != V_UNDEF) {
        int64_t base;
        if (!as_index(it, basev, &base)) {
            return VERR;
        }
        basev = VINT(base);
        if (v.tag != V_STR) {
            return type_error(it, "int() can't convert non-string with explicit base");
        }
        if (basev.u.i != 0 && (basev.u.i < 2 || basev.u.i > 36)) {
            return value_error(it, "int() base must be >= 2 and <= 36, or 0");
        }
        return parse_int(it, v.u.str, (int)basev.u.i);
    }
    switch ((vtag)v.tag) {
    case V_INT: return v;
    case V_BOOL: return VINT(v.u.b);
    case V_FLOAT: return float_to_int(it, trunc(v.u.d), "int()");
    case V_STR: return parse_int(it, v.u.str, 10);
    case V_OBJ: {
        value r = call_special(it, v, N(__int__), NULL, 0);
        if (r.tag == V_UNDEF) {
            r = call_special(it, v, N(__index__), NULL, 0);
        }
        if (r.tag != V_UNDEF) {
            return r;
        }
        if (v.u.obj->base.tag == V_INT || v.u.obj->base.tag == V_STR) {
            args b = {&v.u.obj->base, 1, 0, NULL};
            return make_int(it, &b);
        }
        break;
    }
    case V_REG:
        return type_error(it,
                          "int() of a register: it has no value while the kernel is specialized");
    default: break;
    }
    return type_error(
        it, "int() argument must be a string, a bytes-like object or a real number, not '%s'",
        type_name(it, v));
}

// NaNs made at two places are two objects: `is` tells them apart by the low bits of their payload.
static value fresh_nan(interp *it)
{
    uint64_t bits = 0x7ff8000000000000u | (++it->nans & 0xffffff);
    double d;
    memcpy(&d, &bits, sizeof d);
    return VFLT(d);
}

static value make_float(interp *it, const args *a)
{
    if (a->n == 0) {
        return VFLT(0);
    }
    value v = a->at[0];
    if (is_num(v)) {
        return VFLT(as_double(v));
    }
    if (v.tag == V_STR) {
        const char *p = v.u.str->p, *end = p + v.u.str->len;
        while (p < end && strchr(" \t\n\r\f\v", *p)) {
            p++;
        }
        while (end > p && strchr(" \t\n\r\f\v", end[-1])) {
            end--;
        }
        char buf[64];
        size_t n = 0;
        bool us = false;
        for (const char *q = p; q < end && n < sizeof buf - 1; q++) {
            us |= *q == '_';
            if (*q != '_') {
                buf[n++] = *q;
            }
        }
        double d;
        bool hex = memchr(p, 'x', (size_t)(end - p)) || memchr(p, 'X', (size_t)(end - p));
        if (end > p && !hex &&
            ((us && text_to_double(buf, n, &d)) ||
             (!us && text_to_double(p, (size_t)(end - p), &d)))) {
            return isnan(d) ? fresh_nan(it) : VFLT(d);
        }
        value r = v_repr(it, v);
        return value_error(it, "could not convert string to float: %s", r.u.str->p);
    }
    value r = call_special(it, v, N(__float__), NULL, 0);
    if (r.tag != V_UNDEF) {
        return r;
    }
    if (v.tag == V_OBJ && is_num(v.u.obj->base)) {
        return VFLT(as_double(v.u.obj->base));
    }
    return type_error(it, "float() argument must be a string or a real number, not '%s'",
                      type_name(it, v));
}

static bool fill_dict(interp *it, vdict *d, value src)
{
    value m = src.tag == V_OBJ && src.u.obj->base.tag == V_DICT ? src.u.obj->base : src;
    if (m.tag == V_DICT) {
        for (uint32_t i = 0; i < m.u.dict->n; i++) {
            if (m.u.dict->at[i].key.tag != V_UNDEF &&
                !dict_set(it, d, m.u.dict->at[i].key, m.u.dict->at[i].val)) {
                return false;
            }
        }
        return true;
    }
    viter s;
    value x;
    if (!iter_init(it, &s, src)) {
        return false;
    }
    int r;
    uint32_t k = 0;
    while ((r = iter_next(it, &s, &x)) == 1) {
        uint32_t n;
        value *at = items_of(it, x, &n);
        if (!at) {
            it->exc = VUNDEF;
            type_error(it, "cannot convert dictionary update sequence element #%u to a sequence",
                       k);
            return false;
        }
        if (n != 2) {
            value_error(it, "dictionary update sequence element #%u has length %u; 2 is required",
                        k, n);
            return false;
        }
        if (!dict_set(it, d, at[0], at[1])) {
            return false;
        }
        k++;
    }
    return r == 0;
}

static value make_dict(interp *it, const args *a)
{
    value d = v_dict(it);
    if (a->n > 1) {
        return type_error(it, "dict expected at most 1 argument, got %u", a->n);
    }
    if (a->n == 1 && !fill_dict(it, d.u.dict, a->at[0])) {
        return VERR;
    }
    for (uint32_t j = 0; j < a->nkw; j++) {
        dict_set(it, d.u.dict, v_sym(it, a->kw[j]), a->at[a->n + j]);
    }
    return d;
}

static value make_set(interp *it, const args *a, bool frozen)
{
    value s = v_set(it), x;
    viter i;
    if (a->n == 1) {
        if (!iter_init(it, &i, a->at[0])) {
            return VERR;
        }
        int r;
        while ((r = iter_next(it, &i, &x)) == 1) {
            if (!dict_set(it, s.u.dict, x, VNONE) || !interp_step(it)) {
                return VERR;
            }
        }
        if (r < 0) {
            return VERR;
        }
    }
    if (frozen) {
        s.u.dict->dflt = VTAG(V_ELLIPSIS);
    }
    return s;
}

static value make_range(interp *it, const args *a)
{
    int64_t p[3] = {0, 0, 1};
    if (a->n < 1 || a->n > 3 || a->nkw) {
        return type_error(it, "range expected %s argument%s, got %u",
                          a->n < 1 ? "at least 1" : "at most 3", a->n < 1 ? "" : "s", a->n);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].tag == V_REG) {
            return type_error(
                it,
                "range() needs numbers known while the kernel is specialized, not a register; use "
                "nl.dynamic_range or nl.fori_loop");
        }
        if (!as_index(it, a->at[i], &p[a->n == 1 ? 1 : i])) {
            return VERR;
        }
    }
    if (p[2] == 0) {
        return value_error(it, "range() arg 3 must not be zero");
    }
    vrange *r = NEW(it->mem, vrange);
    *r = (vrange){p[0], p[1], p[2]};
    return VPTR(V_RANGE, r);
}

static value make_slice(interp *it, const args *a)
{
    if (a->n < 1 || a->n > 3) {
        return type_error(it, "slice expected 1 to 3 arguments, got %u", a->n);
    }
    vslice *s = NEW(it->mem, vslice);
    *s = a->n == 1 ? (vslice){VNONE, a->at[0], VNONE}
                   : (vslice){a->at[0], a->at[1], a->n == 3 ? a->at[2] : VNONE};
    return VPTR(V_SLICE, s);
}

static value make_type(interp *it, const args *a)
{
    if (a->n == 3 && a->at[0].tag == V_STR) {
        uint32_t n;
        value *bases = items_of(it, a->at[1], &n);
        if (!bases) {
            return VERR;
        }
        vclass **b = NEW_N(it->mem, vclass *, n + 1);
        uint32_t k = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (bases[i].tag == V_CLASS) {
                b[k++] = bases[i].u.cls;
            }
        }
        vclass *c = class_new(it, str_sym(it, a->at[0]), b, k, it->top->module);
        if (!c) {
            return VERR;
        }
        for (uint32_t i = 0; a->at[2].tag == V_DICT && i < a->at[2].u.dict->n; i++) {
            const dict_entry *e = &a->at[2].u.dict->at[i];
            if (e->key.tag == V_STR) {
                attrs_set(it, &c->attrs, str_sym(it, e->key), e->val);
            }
        }
        return class_finish(it, c) ? (value){.tag = V_CLASS, .u.cls = c} : VERR;
    }
    if (a->n != 1) {
        return type_error(it, "type() takes 1 or 3 arguments");
    }
    vclass *c = class_of(a->at[0]);
    return c ? (value){.tag = V_CLASS, .u.cls = c} : VID(V_TYPE, type_of(a->at[0]));
}

static value make_descr(interp *it, const args *a, descr_kind k)
{
    vdescr *d = NEW(it->mem, vdescr);
    d->kind = k;
    value p[4] = {VUNDEF, VUNDEF, VUNDEF, VUNDEF};
    static const char *const params[] = {"fget", "fset", "fdel", "doc"};
    if (!bind_native(it, "property", a, params, 4, 1, p)) {
        return VERR;
    }
    d->get = p[0];
    d->set = p[1].tag == V_NONE ? VUNDEF : p[1];
    d->del = p[2].tag == V_NONE ? VUNDEF : p[2];
    return VPTR(V_DESCR, d);
}

static value make_super(interp *it, const args *a)
{
    vsuper *s = NEW(it->mem, vsuper);
    if (a->n == 2 && a->at[0].tag == V_CLASS) {
        *s = (vsuper){a->at[0].u.cls, a->at[1]};
        return VPTR(V_SUPER, s);
    }
    const frame *f = it->top;
    if (!f->cls || !f->unit || f->unit->nparams == 0) {
        return raise_msg(it, "RuntimeError", "super(): no arguments");
    }
    // self may have become a cell.
    value self = f->locals[f->unit->param_slot[0]];
    for (uint32_t i = 0; i < f->unit->nown; i++) {
        if (f->unit->own_slot[i] == f->unit->param_slot[0]) {
            self = f->cells[i]->v;
        }
    }
    *s = (vsuper){f->cls, self};
    return VPTR(V_SUPER, s);
}

static value make_bool(interp *it, const args *a)
{
    if (a->n == 0) {
        return VBOOL(false);
    }
    int t = truth(it, a->at[0]);
    return t < 0 ? VERR : VBOOL(t);
}

static value make_str(interp *it, const args *a)
{
    if (a->n == 0) {
        return v_str(it, "", 0);
    }
    if (a->at[0].tag == V_BYTES && a->n > 1) {
        value s = a->at[0];
        s.tag = V_STR;
        return v_str(it, s.u.str->p, s.u.str->len);
    }
    return v_strof(it, a->at[0]);
}

static value make_bytes(interp *it, const args *a)
{
    textbuf t;
    text_init(&t, it->mem);
    if (a->n && a->at[0].tag == V_STR) {
        text_add(&t, a->at[0].u.str->p, a->at[0].u.str->len);
    } else if (a->n && a->at[0].tag == V_INT) {
        if (a->at[0].u.i < 0) {
            return value_error(it, "negative count");
        }
        if (a->at[0].u.i > MAX_TEXT_BYTES) {
            return raise_msg(it, "MemoryError", "%lld bytes are too many", (long long)a->at[0].u.i);
        }
        size_t zeros = (size_t)a->at[0].u.i;
        value z = v_str(it, NEW_N(it->mem, char, zeros + 1), zeros);
        z.tag = V_BYTES;
        return z;
    } else if (a->n) {
        uint32_t n;
        value *at = items_of(it, a->at[0], &n);
        if (!at) {
            return VERR;
        }
        for (uint32_t i = 0; i < n; i++) {
            int64_t b;
            if (!as_index(it, at[i], &b)) {
                return VERR;
            }
            if (b < 0 || b > 255) {
                return value_error(it, "bytes must be in range(0, 256)");
            }
            text_char(&t, (char)b);
        }
    }
    value v = v_str(it, t.at, t.len);
    v.tag = V_BYTES;
    return v;
}

value type_call(interp *it, vtype t, const args *a)
{
    switch (t) {
    case T_INT: return make_int(it, a);
    case T_FLOAT: return make_float(it, a);
    case T_BOOL: return make_bool(it, a);
    case T_STR: return make_str(it, a);
    case T_BYTES: return make_bytes(it, a);
    case T_LIST: return a->n ? list_from(it, a->at[0]) : v_list(it, NULL, 0);
    case T_TUPLE: {
        if (a->n == 0) {
            return v_tuple(it, NULL, 0);
        }
        if (a->at[0].tag == V_TUPLE && !a->at[0].u.tuple->cls) {
            return a->at[0];
        }
        value l = list_from(it, a->at[0]);
        return IS_ERR(l) ? l : v_tuple(it, l.u.list->at, l.u.list->n);
    }
    case T_DICT: return make_dict(it, a);
    case T_SET: return make_set(it, a, false);
    case T_FROZENSET: return make_set(it, a, true);
    case T_RANGE: return make_range(it, a);
    case T_SLICE: return make_slice(it, a);
    case T_TYPE: return make_type(it, a);
    case T_PROPERTY: return make_descr(it, a, DESCR_PROPERTY);
    case T_STATICMETHOD: return make_descr(it, a, DESCR_STATIC);
    case T_CLASSMETHOD: return make_descr(it, a, DESCR_CLASS);
    case T_SUPER: return make_super(it, a);
    case T_ENUMERATE: {
        static const char *const params[] = {"iterable", "start"};
        value p[2];
        if (!bind_native(it, "enumerate", a, params, 2, 1, p)) {
            return VERR;
        }
        return iter_enumerate(it, p[0], p[1].tag == V_INT ? p[1].u.i : 0);
    }
    case T_ZIP: {
        bool strict = a->nkw == 1 && a->kw[0] == N(strict) && truth(it, a->at[a->n]) == 1;
        return iter_zip(it, a->at, a->n, strict);
    }
    case T_MAP:
        return a->n < 2 ? type_error(it, "map() must have at least two arguments.")
                        : iter_map(it, a->at[0], a->at + 1, a->n - 1);
    case T_FILTER:
        return a->n != 2 ? type_error(it, "filter expected 2 arguments, got %u", a->n)
                         : iter_filter(it, a->at[0], a->at[1]);
    case T_REVERSED:
        return a->n != 1 ? type_error(it, "reversed expected 1 argument, got %u", a->n)
                         : iter_reversed(it, a->at[0]);
    case T_COMPLEX: {
        static const char *const params[] = {"real", "imag"};
        value p[2];
        if (!bind_native(it, "complex", a, params, 2, 0, p)) {
            return VERR;
        }
        vobj *o = NEW(it->mem, vobj);
        o->cls = class_new(it, intern_cstr(it->names, "complex"), NULL, 0, NULL);
        o->base = VUNDEF;
        for (int i = 0; i < 2; i++) {
            value x = p[i].tag == V_UNDEF ? VFLT(0) : make_float(it, &(args){&p[i], 1, 0, NULL});
            if (IS_ERR(x)) {
                return x;
            }
            attrs_set(it, &o->attrs, i ? N(imag) : N(real), x);
        }
        return (value){.tag = V_OBJ, .u.obj = o};
    }
    case T_OBJECT: {
        vobj *o = NEW(it->mem, vobj);
        o->cls = class_new(it, intern_cstr(it->names, "object"), NULL, 0, NULL);
        o->base = VUNDEF;
        return (value){.tag = V_OBJ, .u.obj = o};
    }
    default: return type_error(it, "cannot create '%s' instances", vtype_name(t));
    }
}

static value dict_fromkeys(interp *it, const args *a)
{
    uint32_t n;
    value *at = a->n ? items_of(it, a->at[0], &n) : NULL;
    if (!at) {
        return a->n ? VERR : type_error(it, "fromkeys expected at least 1 argument, got 0");
    }
    value d = v_dict(it);
    for (uint32_t i = 0; i < n; i++) {
        if (!dict_set(it, d.u.dict, at[i], a->n > 1 ? a->at[1] : VNONE)) {
            return VERR;
        }
    }
    return d;
}

// str.upper(s): the method of the first argument.
static value unbound(interp *it, const args *a)
{
    value id = it->native_self;
    if (a->n == 0) {
        return type_error(it, "unbound method %s() needs an argument", id.u.str->p);
    }
    // Of a subclass's instance it is the built-in type's own method that is meant.
    bool sub = a->at[0].tag == V_OBJ && a->at[0].u.obj->base.tag != V_UNDEF;
    value f =
        sub ? find_method(it, a->at[0], str_sym(it, id)) : find_attr(it, a->at[0], str_sym(it, id));
    if (f.tag == V_UNDEF) {
        return type_error(it, "descriptor '%s' doesn't apply to a '%s' object", id.u.str->p,
                          type_name(it, a->at[0]));
    }
    args b = {a->at + 1, a->n - 1, a->nkw, a->kw};
    return IS_ERR(f) ? f : call(it, f, &b);
}

static value object_new(interp *it, const args *a)
{
    if (a->n < 1 || a->at[0].tag != V_CLASS) {
        return type_error(it, "object.__new__(X): X is not a type object");
    }
    vobj *o = NEW(it->mem, vobj);
    o->cls = a->at[0].u.cls;
    o->base = VUNDEF;
    return (value){.tag = V_OBJ, .u.obj = o};
}

static value object_setattr(interp *it, const args *a)
{
    if (a->n != 3 || a->at[0].tag != V_OBJ || a->at[1].tag != V_STR) {
        return type_error(it, "object.__setattr__() takes an object, a name and a value");
    }
    attrs_set(it, &a->at[0].u.obj->attrs, str_sym(it, a->at[1]), a->at[2]);
    return VNONE;
}

value type_attr(interp *it, vtype t, sym id)
{
    if (t == T_DICT && strcmp(id->text, "fromkeys") == 0) {
        return v_native(it, "fromkeys", dict_fromkeys);
    }
    if (id == N(__new__)) {
        return v_native(it, "__new__", object_new);
    }
    if (t == T_OBJECT && id == N(__setattr__)) {
        return v_native(it, "__setattr__", object_setattr);
    }
    value sample;
    args none = {NULL, 0, 0, NULL};
    switch (t) {
    case T_STR:
    case T_INT:
    case T_FLOAT:
    case T_LIST:
    case T_DICT:
    case T_TUPLE:
    case T_SET:
    case T_BYTES: sample = type_call(it, t, &none); break;
    default: return VUNDEF;
    }
    value m = find_method(it, sample, id);
    if (m.tag == V_UNDEF) {
        return VUNDEF;
    }
    if (strcmp(id->text, "maketrans") == 0 || strcmp(id->text, "fromhex") == 0) {
        return m;
    }
    vnative *n = NEW(it->mem, vnative);
    *n = (vnative){id->text, unbound, v_sym(it, id)};
    return (value){.tag = V_NATIVE, .u.native = n};
}

static value base_repr(interp *it, const args *a)
{
    (void)a;
    return v_repr(it, it->native_self);
}

static value base_str(interp *it, const args *a)
{
    (void)a;
    return v_strof(it, it->native_self);
}

static value exception_text(interp *it, const args *a)
{
    (void)a;
    value args_of = attrs_get(&it->native_self.u.obj->attrs, N(args));
    if (args_of.tag != V_TUPLE || args_of.u.tuple->n == 0) {
        return v_str(it, "", 0);
    }
    return v_strof(it, args_of.u.tuple->n == 1 ? args_of.u.tuple->at[0] : args_of);
}

static value dataclass_repr(interp *it, const args *a)
{
    (void)a;
    textbuf t;
    text_init(&t, it->mem);
    value v = it->native_self;
    const vclass *c = v.u.obj->cls;
    text_printf(&t, "%s(", c->id->text);
    for (uint32_t i = 0; i < c->nfields; i++) {
        text_printf(&t, "%s%s=", i ? ", " : "", c->fields[i].id->text);
        value f = find_attr(it, v, c->fields[i].id);
        if (IS_ERR(f) || !repr_into(it, f, &t)) {
            return VERR;
        }
    }
    text_char(&t, ')');
    return v_str(it, t.at, t.len);
}

value repr_of_base(interp *it, value v, bool str)
{
    vnative *n = NEW(it->mem, vnative);
    native_fn fn = str ? base_str : base_repr;
    if (v.tag == V_OBJ) {
        fn = v.u.obj->cls->is_exception ? exception_text : dataclass_repr;
    }
    *n = (vnative){str ? "__str__" : "__repr__", fn, v};
    return (value){.tag = V_NATIVE, .u.native = n};
}

// ---- exceptions

static const struct {
    const char *name, *base;
} exceptions[] = {
    {"BaseException", NULL},
    {"_Stop", "BaseException"},
    {"Exception", "BaseException"},
    {"GeneratorExit", "BaseException"},
    {"KeyboardInterrupt", "BaseException"},
    {"SystemExit", "BaseException"},
    {"ArithmeticError", "Exception"},
    {"ZeroDivisionError", "ArithmeticError"},
    {"OverflowError", "ArithmeticError"},
    {"FloatingPointError", "ArithmeticError"},
    {"AssertionError", "Exception"},
    {"AttributeError", "Exception"},
    {"FrozenInstanceError", "AttributeError"},
    {"BufferError", "Exception"},
    {"EOFError", "Exception"},
    {"ImportError", "Exception"},
    {"ModuleNotFoundError", "ImportError"},
    {"LookupError", "Exception"},
    {"IndexError", "LookupError"},
    {"KeyError", "LookupError"},
    {"MemoryError", "Exception"},
    {"NameError", "Exception"},
    {"UnboundLocalError", "NameError"},
    {"OSError", "Exception"},
    {"FileNotFoundError", "OSError"},
    {"PermissionError", "OSError"},
    {"TimeoutError", "OSError"},
    {"RuntimeError", "Exception"},
    {"NotImplementedError", "RuntimeError"},
    {"RecursionError", "RuntimeError"},
    {"StopIteration", "Exception"},
    {"StopAsyncIteration", "Exception"},
    {"SyntaxError", "Exception"},
    {"IndentationError", "SyntaxError"},
    {"SystemError", "Exception"},
    {"TypeError", "Exception"},
    {"ValueError", "Exception"},
    {"UnicodeError", "ValueError"},
    {"UnicodeDecodeError", "UnicodeError"},
    {"UnicodeEncodeError", "UnicodeError"},
    {"NkiValidationError", "Exception"},
    {"Warning", "Exception"},
    {"UserWarning", "Warning"},
    {"DeprecationWarning", "Warning"},
    {"RuntimeWarning", "Warning"},
    {"FutureWarning", "Warning"},
};

void builtins_init(interp *it)
{
    static const struct {
        const char *name;
        native_fn fn;
    } fns[] = {
        {"print", b_print},
        {"len", b_len},
        {"abs", b_abs},
        {"min", b_min},
        {"max", b_max},
        {"sum", b_sum},
        {"round", b_round},
        {"divmod", b_divmod},
        {"pow", b_pow},
        {"hex", b_hex},
        {"oct", b_oct},
        {"bin", b_bin},
        {"chr", b_chr},
        {"ord", b_ord},
        {"any", b_any},
        {"all", b_all},
        {"sorted", b_sorted},
        {"iter", b_iter},
        {"next", b_next},
        {"isinstance", b_isinstance},
        {"issubclass", b_issubclass},
        {"getattr", b_getattr},
        {"hasattr", b_hasattr},
        {"setattr", b_setattr},
        {"delattr", b_delattr},
        {"callable", b_callable},
        {"repr", b_repr},
        {"ascii", b_ascii},
        {"hash", b_hash},
        {"id", b_id},
        {"format", b_format},
        {"vars", b_vars},
        {"dir", b_dir},
        {"globals", b_globals},
        {"locals", b_locals},
        {"__import__", b_import},
        {"input", b_refuse},
        {"open", b_refuse},
        {"exec", b_refuse},
        {"eval", b_refuse},
    };
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) {
        attrs_set(it, &it->builtins, intern_cstr(it->names, fns[i].name),
                  v_native(it, fns[i].name, fns[i].fn));
    }
    static const vtype public_types[] = {
        T_OBJECT,      T_INT,   T_FLOAT,     T_BOOL,  T_STR,   T_BYTES,  T_LIST,     T_TUPLE,
        T_DICT,        T_SET,   T_FROZENSET, T_RANGE, T_SLICE, T_TYPE,   T_PROPERTY, T_STATICMETHOD,
        T_CLASSMETHOD, T_SUPER, T_ENUMERATE, T_ZIP,   T_MAP,   T_FILTER, T_REVERSED, T_COMPLEX,
    };
    for (size_t i = 0; i < sizeof public_types / sizeof *public_types; i++) {
        attrs_set(it, &it->builtins, intern_cstr(it->names, vtype_name(public_types[i])),
                  VID(V_TYPE, public_types[i]));
    }
    attrs_set(it, &it->builtins, intern_cstr(it->names, "Ellipsis"), VTAG(V_ELLIPSIS));
    attrs_set(it, &it->builtins, intern_cstr(it->names, "NotImplemented"), VTAG(V_NOTIMPLEMENTED));
    attrs_set(it, &it->builtins, N(__debug__), VBOOL(true));
    attrs_set(it, &it->builtins, intern_cstr(it->names, "__builtins__"), VNONE);
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        vclass **bases = NEW_N(it->mem, vclass *, 1);
        uint32_t n = 0;
        if (exceptions[i].base) {
            value b = attrs_get(&it->builtins, intern_cstr(it->names, exceptions[i].base));
            bases[n++] = b.u.cls;
        }
        vclass *c = class_new(it, intern_cstr(it->names, exceptions[i].name), bases, n, NULL);
        c->is_exception = true;
        if (i == 0) {
            it->exc_base = c;
        }
        attrs_set(it, &it->builtins, c->id, (value){.tag = V_CLASS, .u.cls = c});
    }
    value os = attrs_get(&it->builtins, intern_cstr(it->names, "OSError"));
    attrs_set(it, &it->builtins, intern_cstr(it->names, "IOError"), os);
    attrs_set(it, &it->builtins, intern_cstr(it->names, "EnvironmentError"), os);
}
