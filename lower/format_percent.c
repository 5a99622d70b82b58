// "..." % values
#include "lower/methods.h"

#include <math.h>
#include <string.h>

typedef struct percent {
    interp *it;
    const char *p, *end, *start;
    value arg;
    const value *at;  // positional values
    uint32_t n, next;
    bool keyed;  // arg can be asked for keys
    bool used_key;
} percent;

typedef struct conversion {
    bool left, plus, space, alt, zero;
    int64_t width, precision;  // -1: not given
    uint32_t type;
    value key;  // V_UNDEF: none
} conversion;

static bool next_value(percent *s, value *out)
{
    if (s->next >= s->n) {
        type_error(s->it, "not enough arguments for format string");
        return false;
    }
    *out = s->at[s->next++];
    return true;
}

// (key), after the parenthesis: may hold balanced ones.
static bool read_key(percent *s, conversion *c)
{
    interp *it = s->it;
    if (!s->keyed) {
        type_error(it, "format requires a mapping");
        return false;
    }
    const char *key = s->p;
    int depth = 1;
    while (s->p < s->end && depth > 0) {
        depth += *s->p == '(' ? 1 : *s->p == ')' ? -1 : 0;
        s->p++;
    }
    if (depth > 0) {
        value_error(it, "incomplete format key");
        return false;
    }
    c->key = get_index(it, s->arg, v_str(it, key, (size_t)(s->p - 1 - key)));
    s->used_key = true;
    return !IS_ERR(c->key);
}

// A number or '*'.
static bool read_size(percent *s, int64_t *out, const char *too_big)
{
    interp *it = s->it;
    if (s->p < s->end && *s->p == '*') {
        s->p++;
        value v;
        if (!next_value(s, &v)) {
            return false;
        }
        if (v.tag != V_INT && v.tag != V_BOOL) {
            type_error(it, "* wants int");
            return false;
        }
        *out = v.tag == V_INT ? v.u.i : v.u.b;
    } else {
        while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
            *out = (*out < 0 ? 0 : *out) * 10 + (*s->p++ - '0');
            if (*out > INT32_MAX) {
                break;
            }
        }
    }
    if (*out > MAX_TEXT_BYTES || *out < -MAX_TEXT_BYTES) {
        value_error(it, "%s", too_big);
        return false;
    }
    return true;
}

static bool read_conversion(percent *s, conversion *c)
{
    interp *it = s->it;
    *c = (conversion){.width = -1, .precision = -1};
    if (s->p < s->end && *s->p == '(') {
        s->p++;
        if (!read_key(s, c)) {
            return false;
        }
    }
    for (; s->p < s->end && strchr("-+ #0", *s->p) && *s->p; s->p++) {
        c->left |= *s->p == '-';
        c->plus |= *s->p == '+';
        c->space |= *s->p == ' ';
        c->alt |= *s->p == '#';
        c->zero |= *s->p == '0';
    }
    if (!read_size(s, &c->width, "width too big")) {
        return false;
    }
    if (c->width < -1) {
        c->left = true;
        c->width = -c->width;
    }
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        c->precision = 0;
        if (!read_size(s, &c->precision, "precision too big")) {
            return false;
        }
        c->precision = c->precision < 0 ? 0 : c->precision;
    }
    if (s->p < s->end && (*s->p == 'h' || *s->p == 'l' || *s->p == 'L')) {
        s->p++;
    }
    if (s->p >= s->end) {
        value_error(it, "incomplete format");
        return false;
    }
    c->type = utf8_next(&s->p, s->end, false);
    return true;
}

static void put_many(textbuf *out, char c, int64_t n)
{
    char run[64];
    memset(run, c, sizeof run);
    for (; n > 0; n -= (int64_t)sizeof run) {
        text_add(out, run, n < (int64_t)sizeof run ? (size_t)n : sizeof run);
    }
}

// A text of `chars` code points padded to the width; sign and prefix stay in front of zeros.
static void put_padded(const conversion *c, const char *head, const char *p, size_t len,
                       int64_t chars, bool zeros, textbuf *out)
{
    int64_t used = chars + (int64_t)strlen(head), pad = c->width > used ? c->width - used : 0;
    if (!c->left && !zeros) {
        put_many(out, ' ', pad);
    }
    text_cstr(out, head);
    if (!c->left && zeros) {
        put_many(out, '0', pad);
    }
    text_add(out, p, len);
    if (c->left) {
        put_many(out, ' ', pad);
    }
}

static void put_text(const conversion *c, const vstr *s, textbuf *out)
{
    const char *p = s->p, *end = p + s->len;
    int64_t chars = s->chars;
    if (c->precision >= 0 && c->precision < chars) {
        for (int64_t i = 0; i < c->precision; i++) {
            utf8_next(&p, end, false);
        }
        end = p;
        chars = c->precision;
    }
    put_padded(c, "", s->p, (size_t)(end - s->p), chars, false, out);
}

static const char *sign_of(const conversion *c, bool negative)
{
    return negative ? "-" : c->plus ? "+" : c->space ? " " : "";
}

static value payload_of(value v)
{
    return v.tag == V_OBJ && v.u.obj->base.tag != V_UNDEF ? v.u.obj->base : v;
}

static bool whole_number(interp *it, const conversion *c, value v, int64_t *out)
{
    bool bits = c->type == 'o' || c->type == 'x' || c->type == 'X';
    value w = payload_of(v);
    if (w.tag == V_OBJ) {
        value r = call_special(it, w, bits ? N(__index__) : N(__int__), NULL, 0);
        if (r.tag == V_UNDEF && !bits) {
            r = call_special(it, w, N(__index__), NULL, 0);
        }
        if (IS_ERR(r)) {
            return false;
        }
        w = r.tag == V_UNDEF ? v : r;
    }
    if (w.tag == V_OBJ && w.u.obj->cls->is_int_enum) {
        w = attrs_get(&w.u.obj->attrs, N(_value_));
    }
    if (w.tag == V_INT || w.tag == V_BOOL) {
        *out = w.tag == V_INT ? w.u.i : w.u.b;
        return true;
    }
    if (w.tag == V_FLOAT && !bits) {
        if (!isfinite(w.u.d)) {
            raise_msg(it, isnan(w.u.d) ? "ValueError" : "OverflowError",
                      "cannot convert float %s to integer", isnan(w.u.d) ? "NaN" : "infinity");
            return false;
        }
        if (fabs(w.u.d) >= 9.2233720368547758e18) {
            raise_msg(it, "OverflowError", "integer result of %%%c does not fit in 64 bits",
                      (char)c->type);
            return false;
        }
        *out = (int64_t)w.u.d;
        return true;
    }
    type_error(it,
               bits ? "%%%c format: an integer is required, not %s"
                    : "%%%c format: a real number is required, not %s",
               (char)c->type, type_name(it, v));
    return false;
}

static bool put_int(interp *it, const conversion *c, value v, textbuf *out)
{
    int64_t i;
    if (!whole_number(it, c, v, &i)) {
        return false;
    }
    uint32_t base = c->type == 'o' ? 8 : c->type == 'x' || c->type == 'X' ? 16 : 10;
    char buf[65], head[4];
    const char *p =
        format_int_digits(i < 0 ? 0 - (uint64_t)i : (uint64_t)i, base, c->type == 'X', buf);
    size_t len = strlen(p), nhead = 0;
    const char *sign = sign_of(c, i < 0);
    if (*sign) {
        head[nhead++] = *sign;
    }
    if (c->alt && base != 10) {
        head[nhead++] = '0';
        head[nhead++] = (char)c->type;
    }
    head[nhead] = '\0';
    if (c->precision > (int64_t)len) {
        textbuf t;
        text_init(&t, it->mem);
        put_many(&t, '0', c->precision - (int64_t)len);
        text_add(&t, p, len);
        p = t.at;
        len = t.len;
    }
    put_padded(c, head, p, len, (int64_t)len, c->zero, out);
    return true;
}

static bool put_float(interp *it, const conversion *c, value v, textbuf *out)
{
    value w = payload_of(v);
    if (w.tag == V_OBJ) {
        w = call_special(it, w, N(__float__), NULL, 0);
        if (IS_ERR(w)) {
            return false;
        }
    }
    double d;
    if (w.tag == V_FLOAT) {
        d = w.u.d;
    } else if (w.tag == V_INT || w.tag == V_BOOL) {
        d = w.tag == V_INT ? (double)w.u.i : w.u.b;
    } else {
        type_error(it, "must be real number, not %s", type_name(it, v));
        return false;
    }
    textbuf t;
    text_init(&t, it->mem);
    if (!format_float_digits(it, fabs(d), c->type, c->precision < 0 ? 6 : c->precision, c->alt,
                             &t)) {
        return false;
    }
    put_padded(c, sign_of(c, signbit(d) && !isnan(d)), t.at, t.len, (int64_t)t.len, c->zero, out);
    return true;
}

static bool put_char(interp *it, const conversion *c, value v, textbuf *out)
{
    value w = payload_of(v);
    if (w.tag == V_STR && w.u.str->chars == 1) {
        put_padded(c, "", w.u.str->p, w.u.str->len, 1, false, out);
        return true;
    }
    if (w.tag != V_INT && w.tag != V_BOOL) {
        type_error(it, "%%c requires int or char");
        return false;
    }
    int64_t i = w.tag == V_INT ? w.u.i : w.u.b;
    if (i < 0 || i >= 0x110000) {
        raise_msg(it, "OverflowError", "%%c arg not in range(0x110000)");
        return false;
    }
    char buf[4];
    put_padded(c, "", buf, utf8_put((uint32_t)i, buf), 1, false, out);
    return true;
}

static bool put_value(percent *s, const conversion *c, const char *at, textbuf *out)
{
    interp *it = s->it;
    value v = c->key;
    if (v.tag == V_UNDEF && !next_value(s, &v)) {
        return false;
    }
    switch (c->type) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': return put_int(it, c, v, out);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': return put_float(it, c, v, out);
    case 'c': return put_char(it, c, v, out);
    case 's':
    case 'r':
    case 'a': {
        value t = c->type == 's' ? v_strof(it, v) : c->type == 'r' ? v_repr(it, v) : v_ascii(it, v);
        if (IS_ERR(t)) {
            return false;
        }
        put_text(c, t.u.str, out);
        return true;
    }
    default: break;
    }
    uint32_t index = 0;
    for (const char *p = s->start; p < at; index++) {
        utf8_next(&p, at, false);
    }
    value_error(it, "unsupported format character '%c' (0x%x) at index %u",
                c->type > 31 && c->type < 128 ? (char)c->type : '?', (unsigned)c->type, index);
    return false;
}

static bool has_keys(value arg)
{
    value v = payload_of(arg);
    return v.tag == V_DICT || v.tag == V_LIST || v.tag == V_RANGE || v.tag == V_BYTES ||
           (v.tag == V_OBJ && v.u.obj->cls->is_dict);
}

value format_percent(interp *it, value fmt, value arg)
{
    percent s = {.it = it, .arg = arg};
    s.p = s.start = fmt.u.str->p;
    s.end = s.p + fmt.u.str->len;
    s.at = arg.tag == V_TUPLE ? arg.u.tuple->at : &s.arg;
    s.n = arg.tag == V_TUPLE ? arg.u.tuple->n : 1;
    s.keyed = has_keys(arg);
    if (arg.tag == V_OBJ && !s.keyed) {
        s.keyed = class_lookup(arg.u.obj->cls, N(__getitem__)).tag != V_UNDEF;
    }
    textbuf t;
    text_init(&t, it->mem);
    while (s.p < s.end) {
        const char *run = s.p;
        while (s.p < s.end && *s.p != '%') {
            s.p++;
        }
        text_add(&t, run, (size_t)(s.p - run));
        if (s.p == s.end) {
            break;
        }
        s.p++;
        if (s.p < s.end && *s.p == '%') {
            text_char(&t, *s.p++);
            continue;
        }
        conversion c;
        if (!read_conversion(&s, &c)) {
            return VERR;
        }
        const char *last = s.p - 1;
        while (((unsigned char)*last & 0xC0) == 0x80) {
            last--;
        }
        if (s.used_key && s.arg.tag != V_TUPLE && c.key.tag == V_UNDEF) {
            return type_error(it, "not enough arguments for format string");
        }
        if (!put_value(&s, &c, last, &t)) {
            return VERR;
        }
        if (t.len > MAX_TEXT_BYTES) {
            return raise_msg(it, "MemoryError", "a string of %llu bytes is too long",
                             (unsigned long long)t.len);
        }
    }
    if (s.next < s.n && !s.keyed) {
        return type_error(it, "not all arguments converted during string formatting");
    }
    return text_value(it, fmt, t.at, t.len);
}
