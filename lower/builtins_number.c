// Built-in functions of numbers.
#include "lower/builtins.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static value b_abs(interp *it, const args *a)
{
    if (!builtin_arity(it, "abs", a, 1, 1)) {
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

value builtin_float_to_int(interp *it, double d, const char *what)
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
            return builtin_float_to_int(it, rint(d), "round()");
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
    if (!builtin_arity(it, "divmod", a, 2, 2)) {
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
    if (!builtin_arity(it, name, a, 1, 1) || !as_index(it, a->at[0], &v)) {
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

void builtins_number_init(interp *it)
{
    static const struct {
        const char *name;
        native_fn fn;
    } fns[] = {
        {"abs", b_abs},       {"min", b_min}, {"max", b_max}, {"sum", b_sum}, {"round", b_round},
        {"divmod", b_divmod}, {"pow", b_pow}, {"hex", b_hex}, {"oct", b_oct}, {"bin", b_bin},
    };
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) {
        attrs_set(it, &it->builtins, intern_cstr(it->names, fns[i].name),
                  v_native(it, fns[i].name, fns[i].fn));
    }
}
