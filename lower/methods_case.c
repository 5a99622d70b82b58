// Case and character classes of str and bytes.
#include "lower/methods.h"

typedef enum case_mode {
    CASE_UPPER,
    CASE_LOWER,
    CASE_TITLE,
    CASE_CAPITAL,
    CASE_SWAP,
    CASE_FOLD
} case_mode;

static bool cased(uint32_t c)
{
    return char_is_upper(c) || char_is_lower(c);
}

static void put_char(textbuf *t, uint32_t c)
{
    char buf[4];
    text_add(t, buf, utf8_put(c, buf));
}

static void put_upper(textbuf *t, uint32_t c, bool title)
{
    if (c == 0xDF) {
        text_cstr(t, title ? "Ss" : "SS");
    } else {
        put_char(t, char_upper(c));
    }
}

// Lower case of a capital sigma depends on what is around it.
static void put_lower(textbuf *t, uint32_t c, bool after_letter, const char *next, const char *end)
{
    if (c == 0x3A3 && after_letter && (next == end || !cased(utf8_next(&next, end, false)))) {
        put_char(t, 0x3C2);
    } else {
        put_char(t, char_lower(c));
    }
}

static value case_text(interp *it, value self, case_mode mode)
{
    textbuf t;
    text_init(&t, it->mem);
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    bool after = false, bytes = self.tag == V_BYTES;
    for (bool first = true; p < end; first = false) {
        uint32_t c = utf8_next(&p, end, bytes);
        if (bytes && c >= 0x80) {
            text_char(&t, (char)(unsigned char)c);
            after = false;
            continue;
        }
        bool up = mode == CASE_UPPER || (mode == CASE_TITLE && !after) ||
                  (mode == CASE_CAPITAL && first) || (mode == CASE_SWAP && !char_is_upper(c));
        if (mode == CASE_FOLD) {
            if (c == 0xDF || c == 0x1E9E) {
                text_cstr(&t, "ss");
            } else {
                put_char(&t, c == 0x3C2 ? 0x3C3 : c == 0xB5 ? 0x3BC : char_lower(c));
            }
        } else if (up) {
            put_upper(&t, c, mode == CASE_TITLE || mode == CASE_CAPITAL);
        } else {
            put_lower(&t, c, after, p, end);
        }
        after = cased(c);
    }
    return text_value(it, self, t.at, t.len);
}

#define CASE_METHOD(name, mode)                                                                    \
    static value m_##name(interp *it, const args *a)                                               \
    {                                                                                              \
        value self = it->native_self;                                                              \
        return text_args(it, a, self, #name, 0, 0) ? case_text(it, self, mode) : VERR;             \
    }
CASE_METHOD(upper, CASE_UPPER)
CASE_METHOD(lower, CASE_LOWER)
CASE_METHOD(title, CASE_TITLE)
CASE_METHOD(capitalize, CASE_CAPITAL)
CASE_METHOD(swapcase, CASE_SWAP)
CASE_METHOD(casefold, CASE_FOLD)

// ---- predicates

static bool is_alnum(uint32_t c)
{
    return char_is_alpha(c) || char_is_numeric(c);
}

static bool is_ascii(uint32_t c)
{
    return c < 0x80;
}

static value all_chars(interp *it, const args *a, const char *name, bool (*is)(uint32_t),
                       bool empty)
{
    value self = it->native_self;
    if (!text_args(it, a, self, name, 0, 0)) {
        return VERR;
    }
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    while (p < end) {
        uint32_t c = utf8_next(&p, end, self.tag == V_BYTES);
        if ((self.tag == V_BYTES && c >= 0x80) || !is(c)) {
            return VBOOL(false);
        }
    }
    return VBOOL(empty || self.u.str->len > 0);
}

#define CLASS_METHOD(name, is, empty)                                                              \
    static value m_##name(interp *it, const args *a)                                               \
    {                                                                                              \
        return all_chars(it, a, #name, is, empty);                                                 \
    }
CLASS_METHOD(isalpha, char_is_alpha, false)
CLASS_METHOD(isdigit, char_is_digit, false)
CLASS_METHOD(isdecimal, char_is_decimal, false)
CLASS_METHOD(isnumeric, char_is_numeric, false)
CLASS_METHOD(isalnum, is_alnum, false)
CLASS_METHOD(isspace, char_is_space, false)
CLASS_METHOD(isascii, is_ascii, true)
CLASS_METHOD(isprintable, char_is_printable, true)

static value case_predicate(interp *it, const args *a, const char *name, bool (*want)(uint32_t),
                            bool (*other)(uint32_t))
{
    value self = it->native_self;
    if (!text_args(it, a, self, name, 0, 0)) {
        return VERR;
    }
    bool any = false;
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    while (p < end) {
        uint32_t c = utf8_next(&p, end, self.tag == V_BYTES);
        if (self.tag == V_BYTES && c >= 0x80) {
            continue;
        }
        if (other(c)) {
            return VBOOL(false);
        }
        any = any || want(c);
    }
    return VBOOL(any);
}

static value m_isupper(interp *it, const args *a)
{
    return case_predicate(it, a, "isupper", char_is_upper, char_is_lower);
}

static value m_islower(interp *it, const args *a)
{
    return case_predicate(it, a, "islower", char_is_lower, char_is_upper);
}

static value m_istitle(interp *it, const args *a)
{
    value self = it->native_self;
    if (!text_args(it, a, self, "istitle", 0, 0)) {
        return VERR;
    }
    bool after = false, any = false;
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    while (p < end) {
        uint32_t c = utf8_next(&p, end, self.tag == V_BYTES);
        bool up = char_is_upper(c), low = char_is_lower(c);
        if ((up && after) || (low && !after)) {
            return VBOOL(false);
        }
        after = up || low;
        any = any || after;
    }
    return VBOOL(any);
}

static value m_isidentifier(interp *it, const args *a)
{
    value self = it->native_self;
    if (!text_args(it, a, self, "isidentifier", 0, 0)) {
        return VERR;
    }
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    for (bool first = true; p < end; first = false) {
        uint32_t c = utf8_next(&p, end, false);
        if (c != '_' && !char_is_alpha(c) && (first || !char_is_decimal(c))) {
            return VBOOL(false);
        }
    }
    return VBOOL(self.u.str->len > 0);
}

value case_method(interp *it, value self, sym id)
{
    static const method both[] = {
        METHOD("upper", m_upper),       METHOD("lower", m_lower),
        METHOD("title", m_title),       METHOD("capitalize", m_capitalize),
        METHOD("swapcase", m_swapcase), METHOD("isalpha", m_isalpha),
        METHOD("isdigit", m_isdigit),   METHOD("isalnum", m_isalnum),
        METHOD("isspace", m_isspace),   METHOD("isascii", m_isascii),
        METHOD("isupper", m_isupper),   METHOD("islower", m_islower),
        METHOD("istitle", m_istitle)};
    static const method only_str[] = {
        METHOD("casefold", m_casefold), METHOD("isdecimal", m_isdecimal),
        METHOD("isnumeric", m_isnumeric), METHOD("isidentifier", m_isidentifier),
        METHOD("isprintable", m_isprintable)};
    value v = method_bind(it, both, sizeof both / sizeof both[0], self, id);
    if (v.tag != V_UNDEF || self.tag == V_BYTES) {
        return v;
    }
    return method_bind(it, only_str, sizeof only_str / sizeof only_str[0], self, id);
}
