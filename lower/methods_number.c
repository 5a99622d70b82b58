// Methods and attributes of int, bool and float.
#include "lower/methods.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(t) (sizeof(t) / sizeof(t)[0])

static value int_bit_length(interp *it, const args *a)
{
    int64_t i = as_int(it->native_self);
    if (!method_args(it, a, "int", "bit_length", 0, 0)) {
        return VERR;
    }
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    return VINT(u ? 64 - __builtin_clzll(u) : 0);
}

static value int_bit_count(interp *it, const args *a)
{
    int64_t i = as_int(it->native_self);
    if (!method_args(it, a, "int", "bit_count", 0, 0)) {
        return VERR;
    }
    return VINT(__builtin_popcountll(i < 0 ? 0 - (uint64_t)i : (uint64_t)i));
}

static value number_conjugate(interp *it, const args *a)
{
    value self = it->native_self;
    if (!method_args(it, a, self.tag == V_FLOAT ? "float" : "int", "conjugate", 0, 0)) {
        return VERR;
    }
    return self.tag == V_BOOL ? VINT(self.u.b) : self;
}

static value int_ratio(interp *it, const args *a)
{
    int64_t i = as_int(it->native_self);
    return method_args(it, a, "int", "as_integer_ratio", 0, 0)
               ? v_tuple(it, (value[]){VINT(i), VINT(1)}, 2)
               : VERR;
}

static value int_is_integer(interp *it, const args *a)
{
    return method_args(it, a, "int", "is_integer", 0, 0) ? VBOOL(true) : VERR;
}

static const method int_table[] = {
    METHOD("bit_length", int_bit_length),  METHOD("bit_count", int_bit_count),
    METHOD("conjugate", number_conjugate), METHOD("as_integer_ratio", int_ratio),
    METHOD("is_integer", int_is_integer),
};

static value float_is_integer(interp *it, const args *a)
{
    double d = it->native_self.u.d;
    return method_args(it, a, "float", "is_integer", 0, 0) ? VBOOL(isfinite(d) && floor(d) == d)
                                                           : VERR;
}

static value float_hex(interp *it, const args *a)
{
    double d = it->native_self.u.d;
    if (!method_args(it, a, "float", "hex", 0, 0)) {
        return VERR;
    }
    if (!isfinite(d)) {
        return v_repr(it, VFLT(d));
    }
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int e = (int)(bits >> 52 & 0x7FF);
    textbuf t;
    text_init(&t, it->mem);
    text_cstr(&t, bits >> 63 ? "-0x" : "0x");
    if (d == 0) {
        text_cstr(&t, "0.0p+0");
    } else {
        text_printf(&t, "%d.%013llxp%+d", e != 0, (unsigned long long)fraction,
                    e ? e - 1023 : -1022);
    }
    return v_str(it, t.at, t.len);
}

static int hex_value(char c)
{
    char l = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    return c >= '0' && c <= '9' ? c - '0' : l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

static bool word_is(const char *p, const char *word)
{
    for (; *word; p++, word++) {
        if ((*p >= 'A' && *p <= 'Z' ? *p + 32 : *p) != *word) {
            return false;
        }
    }
    return *p == '\0';
}

// Hexadecimal digits with an optional point and exponent; scaled so that no point is needed.
static bool parse_hex(interp *it, const char *p, double *out)
{
    textbuf t;
    text_init(&t, it->mem);
    text_cstr(&t, "0x");
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        p += 2;
    }
    int64_t scale = 0, e = 0;
    bool point = false, any = false;
    for (; hex_value(*p) >= 0 || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        text_char(&t, *p);
        scale -= point ? 4 : 0;
        any = true;
    }
    if (*p == 'p' || *p == 'P') {
        bool minus = p[1] == '-';
        p += p[1] == '-' || p[1] == '+' ? 2 : 1;
        if (*p < '0' || *p > '9') {
            return false;
        }
        for (; *p >= '0' && *p <= '9'; p++) {
            e = e < 100000000 ? e * 10 + (*p - '0') : e;
        }
        e = minus ? -e : e;
    }
    if (!any || *p) {
        return false;
    }
    text_printf(&t, "p%lld", (long long)(e + scale));
    *out = strtod(t.at, NULL);
    return true;
}

static value float_fromhex(interp *it, const args *a)
{
    if (!method_args(it, a, "float", "fromhex", 1, 1)) {
        return VERR;
    }
    if (a->at[0].tag != V_STR) {
        return type_error(it, "bad argument type for built-in operation");
    }
    const vstr *s = a->at[0].u.str;
    const char *p = s->p, *end = p + s->len;
    while (p < end && char_is_space((unsigned char)*p) && (unsigned char)*p < 0x80) {
        p++;
    }
    while (end > p && char_is_space((unsigned char)end[-1]) && (unsigned char)end[-1] < 0x80) {
        end--;
    }
    const char *text = arena_text(it->mem, p, (size_t)(end - p));
    bool minus = *text == '-';
    text += *text == '-' || *text == '+';
    double d;
    if (word_is(text, "inf") || word_is(text, "infinity")) {
        d = INFINITY;
    } else if (word_is(text, "nan")) {
        d = NAN;
    } else if (!parse_hex(it, text, &d)) {
        return value_error(it, "invalid hexadecimal floating-point string");
    } else if (isinf(d)) {
        return raise_msg(it, "OverflowError",
                         "hexadecimal value too large to represent as a float");
    }
    return VFLT(minus ? -d : d);
}

static value float_ratio(interp *it, const args *a)
{
    double d = it->native_self.u.d;
    if (!method_args(it, a, "float", "as_integer_ratio", 0, 0)) {
        return VERR;
    }
    if (!isfinite(d)) {
        return raise_msg(it, isnan(d) ? "ValueError" : "OverflowError",
                         "cannot convert %s to integer ratio", isnan(d) ? "NaN" : "Infinity");
    }
    int e;
    double m = frexp(d, &e);
    int64_t den_log2 = 0;
    while (m != floor(m)) {
        m *= 2;
        e--;
    }
    while (e < 0) {
        den_log2++;
        e++;
    }
    if (den_log2 > 62 || fabs(ldexp(m, e)) >= 9.2233720368547758e18) {
        return raise_msg(it, "OverflowError",
                         "integer result of as_integer_ratio() does not fit in 64 bits");
    }
    return v_tuple(it, (value[]){VINT((int64_t)ldexp(m, e)), VINT(INT64_C(1) << den_log2)}, 2);
}

static const method float_table[] = {
    METHOD("is_integer", float_is_integer), METHOD("hex", float_hex),
    METHOD("fromhex", float_fromhex),       METHOD("as_integer_ratio", float_ratio),
    METHOD("conjugate", number_conjugate),
};

value number_method(interp *it, value self, sym id)
{
    bool is_float = self.tag == V_FLOAT;
    if (id == N(real) || (!is_float && strcmp(id->text, "numerator") == 0)) {
        return is_float ? self : VINT(as_int(self));
    }
    if (id == N(imag)) {
        return is_float ? VFLT(0) : VINT(0);
    }
    if (!is_float && strcmp(id->text, "denominator") == 0) {
        return VINT(1);
    }
    return is_float ? method_bind(it, float_table, COUNT(float_table), self, id)
                    : method_bind(it, int_table, COUNT(int_table), self, id);
}
