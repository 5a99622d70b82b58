// str.translate, str.encode, bytes.decode.
#include "lower/methods.h"

#include <string.h>

static void put_char(textbuf *t, uint32_t c)
{
    char buf[4];
    text_add(t, buf, utf8_put(c, buf));
}

static value ord_key(interp *it, value v)
{
    const vstr *s = text_payload(v, V_STR);
    if (!s) {
        return v.tag == V_INT || v.tag == V_BOOL
                   ? v
                   : type_error(it, "keys in translate table must be strings or integers");
    }
    if (s->chars != 1) {
        return value_error(it, "string keys in translate table must be of length 1");
    }
    const char *p = s->p;
    return VINT(utf8_next(&p, p + s->len, false));
}

static value m_maketrans(interp *it, const args *a)
{
    if (!method_args(it, a, "str", "maketrans", 1, 3)) {
        return VERR;
    }
    value out = v_dict(it);
    if (a->n == 1) {
        if (a->at[0].tag != V_DICT) {
            return type_error(it, "if you give only one argument to maketrans it must be a dict");
        }
        const vdict *d = a->at[0].u.dict;
        for (uint32_t i = 0; i < d->n; i++) {
            if (d->at[i].key.tag != V_UNDEF) {
                value k = ord_key(it, d->at[i].key);
                if (IS_ERR(k) || !dict_set(it, out.u.dict, k, d->at[i].val)) {
                    return VERR;
                }
            }
        }
        return out;
    }
    const vstr *s[3] = {0};
    for (uint32_t i = 0; i < a->n; i++) {
        s[i] = text_payload(a->at[i], V_STR);
        if (!s[i]) {
            return type_error(it, "maketrans() argument %u must be str, not %s", i + 1,
                              type_name(it, a->at[i]));
        }
    }
    if (s[0]->chars != s[1]->chars) {
        return value_error(it, "the first two maketrans arguments must have equal length");
    }
    const char *p = s[0]->p, *q = s[1]->p;
    while (p < s[0]->p + s[0]->len) {
        value k = VINT(utf8_next(&p, s[0]->p + s[0]->len, false));
        if (!dict_set(it, out.u.dict, k, VINT(utf8_next(&q, s[1]->p + s[1]->len, false)))) {
            return VERR;
        }
    }
    for (const char *r = s[2] ? s[2]->p : NULL; r && r < s[2]->p + s[2]->len;) {
        if (!dict_set(it, out.u.dict, VINT(utf8_next(&r, s[2]->p + s[2]->len, false)), VNONE)) {
            return VERR;
        }
    }
    return out;
}

static value translate_one(interp *it, value table, uint32_t c)
{
    if (table.tag == V_DICT && table.u.dict->dflt.tag == V_UNDEF) {
        return dict_get(it, table.u.dict, VINT(c));
    }
    value v = get_index(it, table, VINT(c));
    if (IS_ERR(v) && it->exc.tag == V_OBJ &&
        class_is(it->exc.u.obj->cls, exc_class(it, "LookupError"))) {
        it->exc = VUNDEF;
        return VUNDEF;
    }
    return v;
}

static value m_translate(interp *it, const args *a)
{
    value self = it->native_self;
    if (!text_args(it, a, self, "translate", 1, 1)) {
        return VERR;
    }
    textbuf t;
    text_init(&t, it->mem);
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    while (p < end) {
        const char *at = p;
        uint32_t c = utf8_next(&p, end, false);
        value v = translate_one(it, a->at[0], c);
        const vstr *s = text_payload(v, V_STR);
        if (IS_ERR(v)) {
            return VERR;
        }
        if (v.tag == V_UNDEF) {
            text_add(&t, at, (size_t)(p - at));
        } else if (s) {
            text_add(&t, s->p, s->len);
        } else if (v.tag == V_INT) {
            if (v.u.i < 0 || v.u.i >= 0x110000) {
                return value_error(it, "character mapping must be in range(0x110000)");
            }
            put_char(&t, (uint32_t)v.u.i);
        } else if (v.tag != V_NONE) {
            return type_error(it, "character mapping must return integer, None or str");
        }
        if (t.len > MAX_TEXT_BYTES) {
            break;
        }
    }
    return text_value(it, self, t.at, t.len);
}

typedef enum codec { CODEC_NONE, CODEC_UTF8, CODEC_ASCII, CODEC_LATIN1 } codec;

static codec find_codec(interp *it, const char *fname, value v)
{
    static const struct {
        const char *name;
        codec c;
    } known[] = {{"utf8", CODEC_UTF8},
                 {"ascii", CODEC_ASCII},
                 {"usascii", CODEC_ASCII},
                 {"latin1", CODEC_LATIN1},
                 {"iso88591", CODEC_LATIN1}};
    if (v.tag == V_UNDEF) {
        return CODEC_UTF8;
    }
    if (v.tag != V_STR) {
        type_error(it, "%s() argument 'encoding' must be str, not %s", fname, type_name(it, v));
        return CODEC_NONE;
    }
    char plain[16] = "";
    size_t n = 0;
    for (const char *p = v.u.str->p; *p && n + 1 < sizeof plain; p++) {
        if (*p != '-' && *p != '_') {
            plain[n++] = (char)char_lower((unsigned char)*p);
        }
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(plain, known[i].name) == 0) {
            return known[i].c;
        }
    }
    raise_msg(it, "LookupError", "unknown encoding: %s", v.u.str->p);
    return CODEC_NONE;
}

// 'i' ignore, 'r' replace, 's' strict; 0: TypeError set
static char error_mode(interp *it, const char *fname, value v)
{
    if (v.tag != V_STR && v.tag != V_UNDEF) {
        type_error(it, "%s() argument 'errors' must be str, not %s", fname, type_name(it, v));
        return 0;
    }
    if (v.tag == V_STR && strcmp(v.u.str->p, "ignore") == 0) {
        return 'i';
    }
    return v.tag == V_STR && strcmp(v.u.str->p, "replace") == 0 ? 'r' : 's';
}

static const char *const codec_params[] = {"encoding", "errors"};

static value m_encode(interp *it, const args *a)
{
    value self = it->native_self, v[2];
    if (!bind_native(it, "encode", a, codec_params, 2, 0, v)) {
        return VERR;
    }
    codec c = find_codec(it, "encode", v[0]);
    char mode = error_mode(it, "encode", v[1]);
    if (c == CODEC_NONE || !mode) {
        return VERR;
    }
    value bytes = {.tag = V_BYTES};
    if (c == CODEC_UTF8 || !text_is_wide(self)) {
        return text_value(it, bytes, self.u.str->p, self.u.str->len);
    }
    uint32_t limit = c == CODEC_ASCII ? 0x80 : 0x100;
    textbuf t;
    text_init(&t, it->mem);
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    for (uint32_t i = 0; p < end; i++) {
        uint32_t ch = utf8_next(&p, end, false);
        if (ch < limit) {
            text_char(&t, (char)(unsigned char)ch);
        } else if (mode == 'r') {
            text_char(&t, '?');
        } else if (mode == 's') {
            return value_error(it,
                               "'%s' codec can't encode character '%s%0*x' in position %u: ordinal "
                               "not in range(%u)",
                               c == CODEC_ASCII ? "ascii" : "latin-1",
                               ch < 0x100     ? "\\x"
                               : ch < 0x10000 ? "\\u"
                                              : "\\U",
                               ch < 0x100     ? 2
                               : ch < 0x10000 ? 4
                                              : 8,
                               (unsigned)ch, i, limit);
        }
    }
    return text_value(it, bytes, t.at, t.len);
}

// Length of the valid UTF-8 character at p, 0 when there is none.
static uint32_t valid_char(const char *p, const char *end)
{
    const char *q = p;
    unsigned char c = (unsigned char)*p;
    uint32_t n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (n == 0 || (size_t)(end - p) < n) {
        return 0;
    }
    uint32_t cp = utf8_next(&q, end, false);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool ok =
        q - p == (ptrdiff_t)n && cp >= least[n] && cp < 0x110000 && (cp < 0xD800 || cp > 0xDFFF);
    return ok ? n : 0;
}

static value m_decode(interp *it, const args *a)
{
    value self = it->native_self, v[2];
    if (!bind_native(it, "decode", a, codec_params, 2, 0, v)) {
        return VERR;
    }
    codec c = find_codec(it, "decode", v[0]);
    char mode = error_mode(it, "decode", v[1]);
    if (c == CODEC_NONE || !mode) {
        return VERR;
    }
    textbuf t;
    text_init(&t, it->mem);
    const char *start = self.u.str->p, *p = start, *end = p + self.u.str->len;
    while (p < end) {
        unsigned char b = (unsigned char)*p;
        uint32_t n = c == CODEC_UTF8 ? valid_char(p, end) : b < 0x80;
        if (n) {
            text_add(&t, p, n);
            p += n;
        } else if (c == CODEC_LATIN1) {
            put_char(&t, b);
            p++;
        } else if (mode == 's') {
            return value_error(it, "'%s' codec can't decode byte 0x%02x in position %td: %s",
                               c == CODEC_ASCII ? "ascii" : "utf-8", b, p - start,
                               c == CODEC_ASCII ? "ordinal not in range(128)"
                                                : "invalid start byte");
        } else {
            if (mode == 'r') {
                put_char(&t, 0xFFFD);
            }
            p++;
        }
    }
    return text_value(it, (value){.tag = V_STR}, t.at, t.len);
}

static value m_hex(interp *it, const args *a)
{
    value self = it->native_self;
    if (!text_args(it, a, self, "hex", 0, 0)) {
        return VERR;
    }
    textbuf t;
    text_init(&t, it->mem);
    for (uint32_t i = 0; i < self.u.str->len; i++) {
        text_printf(&t, "%02x", (unsigned char)self.u.str->p[i]);
    }
    return text_value(it, (value){.tag = V_STR}, t.at, t.len);
}

value codec_method(interp *it, value self, sym id)
{
    static const method only_str[] = {METHOD("translate", m_translate),
                                      METHOD("maketrans", m_maketrans), METHOD("encode", m_encode)};
    static const method only_bytes[] = {METHOD("decode", m_decode), METHOD("hex", m_hex)};
    if (self.tag == V_BYTES) {
        return method_bind(it, only_bytes, sizeof only_bytes / sizeof only_bytes[0], self, id);
    }
    return method_bind(it, only_str, sizeof only_str / sizeof only_str[0], self, id);
}
