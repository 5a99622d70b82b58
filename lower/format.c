// format(): the format-spec language.
#include "lower/methods.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Digits of a double past these are zeros, whatever the precision asked for.
enum { EXACT_DIGITS = 1100, MAX_PRECISION = INT_MAX };

typedef struct format_spec {
    char fill[4];
    uint32_t fill_len;
    bool fill_given, align_given;
    char align, sign;  // sign: 0 not given
    bool zero_coerce, alt;
    int64_t width, precision;  // -1: not given
    char group;                // ',' or '_' or 0
    uint32_t type;             // a code point
} format_spec;

// A number cut up for padding: sign, prefix ("0x"), integer digits, the rest (".5e+10%").
typedef struct number_text {
    char sign;  // 0: none
    const char *prefix;
    const char *digits;
    size_t ndigits;
    const char *rest;
    size_t nrest;
} number_text;

static bool too_long(interp *it, uint64_t size_bytes)
{
    if (size_bytes > MAX_TEXT_BYTES) {
        raise_msg(it, "MemoryError", "a string of %llu bytes is too long",
                  (unsigned long long)size_bytes);
        return true;
    }
    return false;
}

int format_read_number(interp *it, const char **p, const char *end, int64_t *out)
{
    const char *s = *p;
    int64_t n = 0;
    while (s < end && *s >= '0' && *s <= '9') {
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *s - '0', &n)) {
            value_error(it, "Too many decimal digits in format string");
            return -1;
        }
        s++;
    }
    if (s == *p) {
        return 0;
    }
    *p = s;
    *out = n;
    return 1;
}

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '=' || c == '^';
}

static const char *parse_fill(const char *p, const char *end, format_spec *f)
{
    const char *q = p;
    if (p < end) {
        utf8_next(&q, end, false);
    }
    if (q < end && is_align(*q)) {
        f->fill_len = (uint32_t)(q - p);
        memcpy(f->fill, p, f->fill_len);
        f->align = *q;
        f->fill_given = f->align_given = true;
        return q + 1;
    }
    if (p < end && is_align(*p)) {
        f->align = *p;
        f->align_given = true;
        return p + 1;
    }
    return p;
}

static bool check_group(interp *it, const format_spec *f)
{
    if (!f->group) {
        return true;
    }
    static const char decimal[] = "defgEG%F", bits[] = "boxX";
    uint32_t t = f->type;
    if (t == 0 ||
        (t < 128 && (strchr(decimal, (char)t) || (f->group == '_' && strchr(bits, (char)t))))) {
        return true;
    }
    if (t > 32 && t < 128) {
        value_error(it, "Cannot specify '%c' with '%c'.", f->group, (char)t);
    } else {
        value_error(it, "Cannot specify '%c' with '\\x%x'.", f->group, (unsigned)t);
    }
    return false;
}

// [[fill]align][sign][z][#][0][width][grouping][.precision][type]
static bool parse_spec(interp *it, value v, const vstr *s, char align, char type, format_spec *f)
{
    const char *p = s->p, *end = p + s->len;
    *f = (format_spec){.fill = " ",
                       .fill_len = 1,
                       .align = align,
                       .width = -1,
                       .precision = -1,
                       .type = (uint8_t)type};
    p = parse_fill(p, end, f);
    if (p < end && (*p == '+' || *p == '-' || *p == ' ')) {
        f->sign = *p++;
    }
    if (p < end && *p == 'z') {
        f->zero_coerce = true;
        p++;
    }
    if (p < end && *p == '#') {
        f->alt = true;
        p++;
    }
    if (!f->fill_given && p < end && *p == '0') {
        f->fill[0] = '0';
        if (!f->align_given && align == '>') {
            f->align = '=';
        }
        p++;
    }
    if (format_read_number(it, &p, end, &f->width) < 0) {
        return false;
    }
    if (p < end && *p == ',') {
        f->group = *p++;
    }
    if (p < end && *p == '_') {
        if (f->group) {
            value_error(it, "Cannot specify both ',' and '_'.");
            return false;
        }
        f->group = *p++;
        if (p < end && *p == ',') {
            value_error(it, "Cannot specify both ',' and '_'.");
            return false;
        }
    }
    if (p < end && *p == '.') {
        p++;
        int r = format_read_number(it, &p, end, &f->precision);
        if (r <= 0) {
            if (r == 0) {
                value_error(it, "Format specifier missing precision");
            }
            return false;
        }
    }
    if (p < end) {
        f->type = utf8_next(&p, end, false);
    }
    if (p < end) {
        value_error(it, "Invalid format specifier '%s' for object of type '%s'", s->p,
                    type_name(it, v));
        return false;
    }
    return check_group(it, f);
}

static value unknown_code(interp *it, uint32_t c, value v)
{
    if (c > 32 && c < 128) {
        return value_error(it, "Unknown format code '%c' for object of type '%s'", (char)c,
                           type_name(it, v));
    }
    return value_error(it, "Unknown format code '\\x%x' for object of type '%s'", (unsigned)c,
                       type_name(it, v));
}

static void put_fill(textbuf *out, const format_spec *f, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        text_add(out, f->fill, f->fill_len);
    }
}

static bool fits(interp *it, const format_spec *f, size_t len)
{
    return !too_long(it, (uint64_t)len * 2 + (f->width > 0 ? (uint64_t)f->width : 0)) &&
           !too_long(it, (f->width > 0 ? (uint64_t)f->width : 0) * f->fill_len);
}

// ---- strings

static uint32_t count_chars(const char *p, size_t len)
{
    uint32_t n = 0;
    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)p[i] & 0xC0) != 0x80;
    }
    return n;
}

static bool pad_text(interp *it, const char *p, size_t len, const format_spec *f, textbuf *out)
{
    int64_t chars = count_chars(p, len);
    if (f->precision >= 0 && f->precision < chars) {
        const char *q = p, *end = p + len;
        for (int64_t i = 0; i < f->precision; i++) {
            utf8_next(&q, end, false);
        }
        len = (size_t)(q - p);
        chars = f->precision;
    }
    if (!fits(it, f, len)) {
        return false;
    }
    int64_t pad = f->width > chars ? f->width - chars : 0;
    int64_t left = f->align == '>' ? pad : f->align == '^' ? pad / 2 : 0;
    put_fill(out, f, left);
    text_add(out, p, len);
    put_fill(out, f, pad - left);
    return true;
}

static bool format_str(interp *it, value v, const vstr *spec, textbuf *out)
{
    format_spec f;
    if (!parse_spec(it, v, spec, '<', 's', &f)) {
        return false;
    }
    if (f.type != 's') {
        unknown_code(it, f.type, v);
        return false;
    }
    const char *bad = f.sign == ' ' ? "Space not allowed in string format specifier"
                      : f.sign      ? "Sign not allowed in string format specifier"
                      : f.zero_coerce
                          ? "Negative zero coercion (z) not allowed in string format specifier"
                      : f.alt          ? "Alternate form (#) not allowed in string format specifier"
                      : f.align == '=' ? "'=' alignment not allowed in string format specifier"
                                       : NULL;
    if (bad) {
        value_error(it, "%s", bad);
        return false;
    }
    return pad_text(it, v.u.str->p, v.u.str->len, &f, out);
}

// ---- numbers

// Writes the digits backwards from `end` with separators, zero-filled to min_width characters.
// Returns the first character. With p NULL only the length counts: end - result.
static size_t group_digits(char *end, const char *digits, size_t n, int64_t min_width, char sep,
                           int size)
{
    size_t count = 0, left = n;
    for (int in_group = 0; left > 0 || (int64_t)count < min_width; in_group++) {
        if (sep && in_group == size) {
            if (end) {
                end[-(ptrdiff_t)count - 1] = sep;
            }
            count++;
            in_group = 0;
        }
        char c = left > 0 ? digits[--left] : '0';
        if (end) {
            end[-(ptrdiff_t)count - 1] = c;
        }
        count++;
    }
    return count;
}

static bool pad_number(interp *it, const number_text *t, const format_spec *f, textbuf *out)
{
    size_t nprefix = strlen(t->prefix), fixed = (t->sign != 0) + nprefix + t->nrest;
    if (!fits(it, f, t->ndigits + t->nrest)) {
        return false;
    }
    bool zeros = f->fill_len == 1 && f->fill[0] == '0' && f->align == '=';
    int64_t min_width = zeros ? f->width - (int64_t)fixed : 0;
    uint32_t ty = f->type;
    int size = ty == 'b' || ty == 'o' || ty == 'x' || ty == 'X' ? 4 : 3;
    size_t ngrouped =
        t->ndigits ? group_digits(NULL, t->digits, t->ndigits, min_width, f->group, size) : 0;
    int64_t total = (int64_t)(fixed + ngrouped + 0);
    if (t->ndigits == 0) {
        total = (int64_t)(fixed - t->nrest + count_chars(t->rest, t->nrest));
    }
    int64_t pad = f->width > total ? f->width - total : 0;
    int64_t left = f->align == '>' ? pad : f->align == '^' ? pad / 2 : 0;
    put_fill(out, f, left);
    if (t->sign) {
        text_char(out, t->sign);
    }
    text_cstr(out, t->prefix);
    if (f->align == '=') {
        put_fill(out, f, pad);
    }
    if (ngrouped) {
        char *buf = NEW_N(it->mem, char, ngrouped + 1);
        group_digits(buf + ngrouped, t->digits, t->ndigits, min_width, f->group, size);
        text_add(out, buf, ngrouped);
    }
    text_add(out, t->rest, t->nrest);
    if (f->align == '<' || f->align == '^') {
        put_fill(out, f, pad - left);
    }
    return true;
}

static char sign_char(bool negative, char wanted)
{
    return negative ? '-' : wanted == '+' || wanted == ' ' ? wanted : 0;
}

const char *format_int_digits(uint64_t u, uint32_t base, bool upper, char buf[65])
{
    static const char lo[] = "0123456789abcdef", up[] = "0123456789ABCDEF";
    char *p = buf + 64;
    *p = '\0';
    do {
        *--p = (upper ? up : lo)[u % base];
        u /= base;
    } while (u);
    return p;
}

static uint64_t magnitude(int64_t i)
{
    return i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
}

static bool format_float_spec(interp *it, double d, const format_spec *f, textbuf *out);

static bool format_char(interp *it, int64_t i, const format_spec *f, textbuf *out)
{
    if (f->sign || f->alt) {
        value_error(it, f->sign
                            ? "Sign not allowed with integer format specifier 'c'"
                            : "Alternate form (#) not allowed with integer format specifier 'c'");
        return false;
    }
    if (i < 0 || i >= 0x110000) {
        raise_msg(it, "OverflowError", "%%c arg not in range(0x110000)");
        return false;
    }
    char buf[4];
    number_text t = {.prefix = "", .rest = buf, .nrest = utf8_put((uint32_t)i, buf)};
    return pad_number(it, &t, f, out);
}

static bool format_int(interp *it, value v, const vstr *spec, textbuf *out)
{
    int64_t i = v.tag == V_BOOL ? v.u.b : v.u.i;
    format_spec f;
    if (!parse_spec(it, v, spec, '>', 'd', &f)) {
        return false;
    }
    if (f.type < 128 && f.type && strchr("eEfFgG%", (char)f.type)) {
        return format_float_spec(it, (double)i, &f, out);
    }
    if (f.type >= 128 || !f.type || !strchr("bcdoxXn", (char)f.type)) {
        unknown_code(it, f.type, v);
        return false;
    }
    if (f.precision >= 0) {
        value_error(it, "Precision not allowed in integer format specifier");
        return false;
    }
    if (f.zero_coerce) {
        value_error(it, "Negative zero coercion (z) not allowed in integer format specifier");
        return false;
    }
    if (f.type == 'c') {
        return format_char(it, i, &f, out);
    }
    char buf[65];
    uint32_t base = f.type == 'b'                    ? 2
                    : f.type == 'o'                  ? 8
                    : f.type == 'x' || f.type == 'X' ? 16
                                                     : 10;
    number_text t = {.sign = sign_char(i < 0, f.sign), .prefix = "", .rest = ""};
    t.digits = format_int_digits(magnitude(i), base, f.type == 'X', buf);
    t.ndigits = strlen(t.digits);
    if (f.alt) {
        t.prefix = f.type == 'b'   ? "0b"
                   : f.type == 'o' ? "0o"
                   : f.type == 'x' ? "0x"
                   : f.type == 'X' ? "0X"
                                   : "";
    }
    return pad_number(it, &t, &f, out);
}

// ---- floats

// snprintf in the C locale; extra zeros beyond the exact digits are not written.
static char *print_double(interp *it, char kind, int precision, double d)
{
    char fmt[] = {'%', '.', '*', kind, '\0'};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int n = snprintf(NULL, 0, fmt, precision, d);
    char *buf = NEW_N(it->mem, char, (size_t)(n < 0 ? 0 : n) + 1);
    snprintf(buf, (size_t)(n < 0 ? 0 : n) + 1, fmt, precision, d);
#pragma GCC diagnostic pop
    const char *point = localeconv()->decimal_point;
    size_t len = strlen(point);
    char *at = len && (len > 1 || *point != '.') ? strstr(buf, point) : NULL;
    if (at) {
        *at = '.';
        memmove(at + 1, at + len, strlen(at + len) + 1);
    }
    return buf;
}

static void put_zeros(textbuf *out, int64_t n)
{
    static const char zeros[65] =
        "0000000000000000000000000000000000000000000000000000000000000000";
    for (; n > 0; n -= 64) {
        text_add(out, zeros, n < 64 ? (size_t)n : 64);
    }
}

static void put_exponent(textbuf *out, int e, bool upper)
{
    text_printf(out, "%c%c%02d", upper ? 'E' : 'e', e < 0 ? '-' : '+', e < 0 ? -e : e);
}

// Fixed and exponent forms: %.*f, %.*e.
static void float_fixed(interp *it, double d, char kind, int64_t precision, bool alt, bool upper,
                        textbuf *out)
{
    int64_t exact = precision < EXACT_DIGITS ? precision : EXACT_DIGITS;
    char *s = print_double(it, kind, (int)exact, d);
    char *e = kind == 'e' ? strchr(s, 'e') : NULL;
    text_add(out, s, e ? (size_t)(e - s) : strlen(s));
    if (precision == 0 && alt) {
        text_char(out, '.');
    }
    put_zeros(out, precision - exact);
    if (e) {
        put_exponent(out, atoi(e + 1), upper);
    }
}

// Significant digits as %g places them; shortest: those of repr(). dot_zero: "1.0", never "1".
typedef struct general {
    int64_t precision;
    bool alt, upper, dot_zero;
} general;

static void float_layout(const char *digits, size_t n, int exp10, bool use_exp, const general *g,
                         textbuf *out)
{
    int64_t zeros = g->alt && g->precision > (int64_t)n ? g->precision - (int64_t)n : 0;
    if (use_exp) {
        text_add(out, digits, 1);
        if (n > 1 || g->alt) {
            text_char(out, '.');
        }
        text_add(out, digits + 1, n - 1);
        put_zeros(out, zeros);
        put_exponent(out, exp10, g->upper);
        return;
    }
    if (exp10 < 0) {
        text_cstr(out, "0.");
        put_zeros(out, -exp10 - 1);
        text_add(out, digits, n);
        put_zeros(out, zeros);
        return;
    }
    size_t whole = (size_t)exp10 + 1;
    if (n <= whole) {
        text_add(out, digits, n);
        put_zeros(out, (int64_t)(whole - n));
        zeros -= (int64_t)(whole - n);
        if (g->dot_zero || g->alt) {
            text_char(out, '.');
        }
        put_zeros(out, g->dot_zero && zeros < 1 ? 1 : zeros);
        return;
    }
    text_add(out, digits, whole);
    text_char(out, '.');
    text_add(out, digits + whole, n - whole);
    put_zeros(out, zeros);
}

static void float_general(interp *it, double d, const general *g, textbuf *out)
{
    int64_t precision = g->precision == 0 ? 1 : g->precision;
    int exact = (int)(precision < EXACT_DIGITS ? precision : EXACT_DIGITS);
    char *s = print_double(it, 'e', exact - 1, d);
    char *e = strchr(s, 'e');
    int exp10 = atoi(e + 1);
    size_t n = 0;
    for (char *p = s; p < e; p++) {
        if (*p != '.') {
            s[n++] = *p;
        }
    }
    while (n > 1 && s[n - 1] == '0') {
        n--;
    }
    general h = *g;
    h.precision = precision;
    bool use_exp = exp10 < -4 || exp10 + 1 > precision - (g->dot_zero ? 1 : 0);
    float_layout(s, n, exp10, use_exp, &h, out);
}

// repr() with the alternate form's point kept.
static void float_repr(double d, bool alt, textbuf *out)
{
    char buf[40];
    text_double(buf, d);
    const char *e = strchr(buf, 'e');
    if (alt && e && !strchr(buf, '.')) {
        text_add(out, buf, (size_t)(e - buf));
        text_char(out, '.');
        text_cstr(out, e);
        return;
    }
    text_cstr(out, buf);
}

bool format_float_digits(interp *it, double d, uint32_t type, int64_t precision, bool alt,
                         textbuf *out)
{
    bool upper = type == 'E' || type == 'F' || type == 'G';
    if (precision > MAX_PRECISION) {
        value_error(it, "precision too big");
        return false;
    }
    if (too_long(it, (uint64_t)(precision > 0 ? precision : 0) + 400)) {
        return false;
    }
    if (type == '%') {
        d *= 100;
    }
    if (!isfinite(d)) {
        text_cstr(out, isnan(d) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf");
        if (type == '%') {
            text_char(out, '%');
        }
        return true;
    }
    switch (type) {
    case 'e':
    case 'E': float_fixed(it, d, 'e', precision < 0 ? 6 : precision, alt, upper, out); break;
    case 'f':
    case 'F':
    case '%':
        float_fixed(it, d, 'f', precision < 0 ? 6 : precision, alt, upper, out);
        if (type == '%') {
            text_char(out, '%');
        }
        break;
    case 0:
        if (precision < 0) {
            float_repr(d, alt, out);
            break;
        }
        float_general(it, d, &(general){precision, alt, false, true}, out);
        break;
    default:
        float_general(it, d, &(general){precision < 0 ? 6 : precision, alt, upper, false}, out);
        break;
    }
    return true;
}

static bool is_zero_text(const char *p)
{
    for (; *p && *p != 'e' && *p != 'E' && *p != '%'; p++) {
        if (*p >= '1' && *p <= '9') {
            return false;
        }
    }
    return true;
}

static bool format_float_spec(interp *it, double d, const format_spec *f, textbuf *out)
{
    textbuf t;
    text_init(&t, it->mem);
    if (!format_float_digits(it, fabs(d), f->type, f->precision, f->alt, &t)) {
        return false;
    }
    bool negative =
        signbit(d) && !isnan(d) && !(f->zero_coerce && isfinite(d) && is_zero_text(t.at));
    number_text n = {.sign = sign_char(negative, f->sign), .prefix = "", .digits = t.at};
    while (n.ndigits < t.len && t.at[n.ndigits] >= '0' && t.at[n.ndigits] <= '9') {
        n.ndigits++;
    }
    n.rest = t.at + n.ndigits;
    n.nrest = t.len - n.ndigits;
    return pad_number(it, &n, f, out);
}

static bool format_float(interp *it, value v, const vstr *spec, textbuf *out)
{
    format_spec f;
    if (!parse_spec(it, v, spec, '>', '\0', &f)) {
        return false;
    }
    if (f.type >= 128 || (f.type && !strchr("eEfFgGn%", (char)f.type))) {
        unknown_code(it, f.type, v);
        return false;
    }
    return format_float_spec(it, v.u.d, &f, out);
}

// ---- format()

static bool format_object(interp *it, value v, const vstr *spec, textbuf *out)
{
    value s = {.tag = V_STR, .u.str = (vstr *)(uintptr_t)spec};
    value r = call_special(it, v, N(__format__), &s, 1);
    if (IS_ERR(r)) {
        return false;
    }
    if (r.tag == V_STR) {
        text_add(out, r.u.str->p, r.u.str->len);
        return true;
    }
    if (r.tag != V_UNDEF) {
        type_error(it, "__format__ must return a str, not %s", type_name(it, r));
        return false;
    }
    if (spec->len == 0) {
        return str_into(it, v, out);
    }
    const vobj *o = v.u.obj;
    if (o->cls->is_enum) {
        value payload = o->cls->is_int_enum ? attrs_get(&o->attrs, N(_value_)) : v_strof(it, v);
        return !IS_ERR(payload) && format_into(it, payload, spec, out);
    }
    if (o->base.tag == V_INT || o->base.tag == V_FLOAT || o->base.tag == V_STR ||
        o->base.tag == V_BOOL) {
        return format_into(it, o->base, spec, out);
    }
    type_error(it, "unsupported format string passed to %s.__format__", type_name(it, v));
    return false;
}

bool format_into(interp *it, value v, const vstr *spec, textbuf *out)
{
    if (v.tag == V_OBJ) {
        return format_object(it, v, spec, out);
    }
    if (spec->len == 0) {
        return str_into(it, v, out);
    }
    switch ((vtag)v.tag) {
    case V_STR: return format_str(it, v, spec, out);
    case V_INT:
    case V_BOOL: return format_int(it, v, spec, out);
    case V_FLOAT: return format_float(it, v, spec, out);
    default: break;
    }
    type_error(it, "unsupported format string passed to %s.__format__", type_name(it, v));
    return false;
}

const vstr format_no_spec = {0, 0, ""};

value format_value(interp *it, value v, value spec)
{
    if (spec.tag == V_OBJ && spec.u.obj->base.tag == V_STR) {
        spec = spec.u.obj->base;
    }
    if (spec.tag != V_STR && spec.tag != V_UNDEF) {
        return type_error(it, "format() argument 2 must be str, not %s", type_name(it, spec));
    }
    textbuf t;
    text_init(&t, it->mem);
    return format_into(it, v, spec.tag == V_STR ? spec.u.str : &format_no_spec, &t)
               ? text_value(it, (value){.tag = V_STR}, t.at, t.len)
               : VERR;
}

value v_ascii(interp *it, value v)
{
    value r = v_repr(it, v);
    if (IS_ERR(r) || r.u.str->chars == r.u.str->len) {
        return r;
    }
    textbuf t;
    text_init(&t, it->mem);
    const char *p = r.u.str->p, *end = p + r.u.str->len;
    while (p < end) {
        uint32_t c = utf8_next(&p, end, false);
        if (c < 0x80) {
            text_char(&t, (char)c);
        } else {
            text_printf(&t,
                        c < 0x100     ? "\\x%02x"
                        : c < 0x10000 ? "\\u%04x"
                                      : "\\U%08x",
                        (unsigned)c);
        }
    }
    return text_value(it, (value){.tag = V_STR}, t.at, t.len);
}

value format_convert(interp *it, value v, uint32_t conv)
{
    switch (conv) {
    case 'r': return v_repr(it, v);
    case 's': return v_strof(it, v);
    case 'a': return v_ascii(it, v);
    default: return v;
    }
}
