// Methods of str and bytes. Indexes are code points of a str, bytes of a bytes.
#include "lower/methods.h"

#include <string.h>

const vstr *text_payload(value v, uint8_t tag)
{
    if (v.tag == V_OBJ) {
        v = v.u.obj->base;
    }
    return v.tag == tag ? v.u.str : NULL;
}

value text_value(interp *it, value like, const char *p, size_t len)
{
    if (len > MAX_TEXT_BYTES) {
        return raise_msg(it, "MemoryError", "a string of %zu bytes is too long", len);
    }
    value v = v_str(it, p, len);
    v.tag = like.tag;
    return v;
}

static const char *tag_name(value v)
{
    return v.tag == V_BYTES ? "bytes" : "str";
}

bool text_args(interp *it, const args *a, value self, const char *name, uint32_t lo, uint32_t hi)
{
    return method_args(it, a, tag_name(self), name, lo, hi);
}

// Searches word their argument errors in their own way.
static bool search_arity(interp *it, const args *a, value self, const char *name)
{
    if (a->nkw == 0 && (a->n < 1 || a->n > 3)) {
        type_error(it, "%s() takes at %s (%u given)", name,
                   a->n ? "most 3 arguments" : "least 1 argument", a->n);
        return false;
    }
    return text_args(it, a, self, name, 1, 3);
}

bool text_is_wide(value v)
{
    return v.tag == V_STR && v.u.str->chars != v.u.str->len;
}

// Byte offset of a character, 0 <= i <= characters.
static size_t offset_of(value v, int64_t i)
{
    if (!text_is_wide(v)) {
        return (size_t)i;
    }
    const char *p = v.u.str->p, *end = p + v.u.str->len;
    while (i-- > 0 && p < end) {
        utf8_next(&p, end, false);
    }
    return (size_t)(p - v.u.str->p);
}

static int64_t length(value v)
{
    return v.tag == V_BYTES ? v.u.str->len : v.u.str->chars;
}

static int64_t chars_before(value v, size_t offset)
{
    if (!text_is_wide(v)) {
        return (int64_t)offset;
    }
    int64_t n = 0;
    for (size_t i = 0; i < offset; i++) {
        n += ((unsigned char)v.u.str->p[i] & 0xC0) != 0x80;
    }
    return n;
}

value str_slice(interp *it, value s, int64_t start, int64_t step, int64_t count)
{
    if (count <= 0) {
        return text_value(it, s, "", 0);
    }
    if (step == 1 || count == 1) {
        size_t lo = offset_of(s, start);
        if (!text_is_wide(s)) {
            return text_value(it, s, s.u.str->p + lo, (size_t)count);
        }
        const char *p = s.u.str->p + lo, *end = s.u.str->p + s.u.str->len;
        for (int64_t i = 0; i < count && p < end; i++) {
            utf8_next(&p, end, false);
        }
        return text_value(it, s, s.u.str->p + lo, (size_t)(p - s.u.str->p) - lo);
    }
    uint32_t *at = NULL;  // byte offsets of the characters, and the end
    if (text_is_wide(s)) {
        at = NEW_N(it->mem, uint32_t, (size_t)s.u.str->chars + 1);
        const char *p = s.u.str->p, *end = p + s.u.str->len;
        for (uint32_t i = 0; p < end && i < s.u.str->chars; i++) {
            utf8_next(&p, end, false);
            at[i + 1] = (uint32_t)(p - s.u.str->p);
        }
    }
    char *out = NEW_N(it->mem, char, (size_t)count *(at ? 4 : 1) + 1);
    size_t len = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t k = start + i * step;
        size_t from = at ? at[k] : (size_t)k, n = at ? at[k + 1] - at[k] : 1;
        memcpy(out + len, s.u.str->p + from, n);
        len += n;
    }
    return text_value(it, s, out, len);
}

// ---- search

// First position of needle in hay, or -1; reverse: the last one. Long needles by a rolling hash, so
// that repeated prefixes do not make it quadratic.
static int64_t search(const char *hay, size_t n, const char *needle, size_t m, bool reverse)
{
    if (m > n) {
        return -1;
    }
    if (m == 0) {
        return reverse ? (int64_t)n : 0;
    }
    size_t last = n - m;
    if (m <= 16) {
        for (size_t i = 0; i <= last; i++) {
            size_t k = reverse ? last - i : i;
            if (!reverse) {
                const char *q = memchr(hay + k, needle[0], last - k + 1);
                if (!q) {
                    return -1;
                }
                i = k = (size_t)(q - hay);
            }
            if (hay[k] == needle[0] && memcmp(hay + k, needle, m) == 0) {
                return (int64_t)k;
            }
        }
        return -1;
    }
    uint64_t base = 0x9e3779b97f4a7c15u, want = 0, have = 0, top = 1;
    for (size_t i = 0; i < m; i++) {
        want = want * base + (unsigned char)(reverse ? needle[m - 1 - i] : needle[i]);
        have = have * base + (unsigned char)(reverse ? hay[n - 1 - i] : hay[i]);
        top *= i ? base : 1;
    }
    for (size_t i = 0;; i++) {
        size_t k = reverse ? last - i : i;
        if (want == have && memcmp(hay + k, needle, m) == 0) {
            return (int64_t)k;
        }
        if (i == last) {
            return -1;
        }
        unsigned char gone = (unsigned char)(reverse ? hay[n - 1 - i] : hay[i]);
        unsigned char come = (unsigned char)(reverse ? hay[n - 1 - i - m] : hay[i + m]);
        have = (have - gone * top) * base + come;
    }
}

int64_t str_find(const vstr *s, const vstr *sub, int64_t from_byte)
{
    if (from_byte < 0 || from_byte > (int64_t)s->len) {
        return -1;
    }
    int64_t r = search(s->p + from_byte, s->len - (size_t)from_byte, sub->p, sub->len, false);
    return r < 0 ? -1 : r + from_byte;
}

// Arguments i and i + 1 as a slice of self, in bytes. *hi < *lo: an empty range beyond the end.
static bool range_args(interp *it, const args *a, uint32_t i, value self, size_t *lo, size_t *hi,
                       bool *inside)
{
    int64_t n = length(self), at[] = {0, n};
    for (uint32_t k = 0; k < 2; k++) {
        if (i + k >= a->n || a->at[i + k].tag == V_NONE) {
            continue;
        }
        if (!as_index(it, a->at[i + k], &at[k])) {
            it->exc = VUNDEF;
            type_error(it, "slice indices must be integers or None or have an __index__ method");
            return false;
        }
        at[k] = at[k] < 0 ? (at[k] < -n ? 0 : at[k] + n) : at[k];
    }
    at[1] = at[1] > n ? n : at[1];
    *inside = at[0] <= at[1];
    *lo = *inside ? offset_of(self, at[0]) : 0;
    *hi = *inside ? offset_of(self, at[1]) : 0;
    return true;
}

static const vstr *text_arg(interp *it, value self, value v)
{
    const vstr *s = text_payload(v, self.tag);
    if (!s) {
        type_error(it,
                   self.tag == V_BYTES ? "argument should be integer or bytes-like object, not '%s'"
                                       : "must be str, not %s",
                   type_name(it, v));
    }
    return s;
}

static value find_common(interp *it, const args *a, const char *name, bool reverse, bool must)
{
    value self = it->native_self;
    if (!search_arity(it, a, self, name)) {
        return VERR;
    }
    const vstr *sub = text_arg(it, self, a->at[0]);
    size_t lo, hi;
    bool inside;
    if (!sub || !range_args(it, a, 1, self, &lo, &hi, &inside)) {
        return VERR;
    }
    int64_t r = inside ? search(self.u.str->p + lo, hi - lo, sub->p, sub->len, reverse) : -1;
    if (r < 0) {
        return must ? value_error(it, self.tag == V_BYTES ? "subsection not found"
                                                          : "substring not found")
                    : VINT(-1);
    }
    return VINT(chars_before(self, lo + (size_t)r));
}

static value m_find(interp *it, const args *a)
{
    return find_common(it, a, "find", false, false);
}

static value m_rfind(interp *it, const args *a)
{
    return find_common(it, a, "rfind", true, false);
}

static value m_index(interp *it, const args *a)
{
    return find_common(it, a, "index", false, true);
}

static value m_rindex(interp *it, const args *a)
{
    return find_common(it, a, "rindex", true, true);
}

static uint32_t count_in(const char *p, size_t n, const vstr *sub)
{
    uint32_t found = 0;
    size_t at = 0;
    for (int64_t r; (r = search(p + at, n - at, sub->p, sub->len, false)) >= 0; found++) {
        at += (size_t)r + sub->len;
    }
    return found;
}

static value m_count(interp *it, const args *a)
{
    value self = it->native_self;
    if (!search_arity(it, a, self, "count")) {
        return VERR;
    }
    const vstr *sub = text_arg(it, self, a->at[0]);
    size_t lo, hi;
    bool inside;
    if (!sub || !range_args(it, a, 1, self, &lo, &hi, &inside)) {
        return VERR;
    }
    if (!inside) {
        return VINT(0);
    }
    if (sub->len == 0) {
        return VINT(chars_before(self, hi) - chars_before(self, lo) + 1);
    }
    return VINT(count_in(self.u.str->p + lo, hi - lo, sub));
}

static value affix_common(interp *it, const args *a, const char *name, bool end)
{
    value self = it->native_self;
    if (!search_arity(it, a, self, name)) {
        return VERR;
    }
    value what = a->at[0];
    const value *at = what.tag == V_TUPLE ? what.u.tuple->at : &what;
    uint32_t n = what.tag == V_TUPLE ? what.u.tuple->n : 1;
    size_t lo, hi;
    bool inside;
    if (!range_args(it, a, 1, self, &lo, &hi, &inside)) {
        return VERR;
    }
    for (uint32_t i = 0; i < n; i++) {
        const vstr *s = text_payload(at[i], self.tag);
        if (!s) {
            return what.tag == V_TUPLE
                       ? type_error(it, "tuple for %s must only contain %s, not %s", name,
                                    tag_name(self), type_name(it, at[i]))
                       : type_error(it, "%s first arg must be %s or a tuple of %s, not %s", name,
                                    tag_name(self), tag_name(self), type_name(it, at[i]));
        }
        if (inside && s->len <= hi - lo &&
            memcmp(self.u.str->p + (end ? hi - s->len : lo), s->p, s->len) == 0) {
            return VBOOL(true);
        }
    }
    return VBOOL(false);
}

static value m_startswith(interp *it, const args *a)
{
    return affix_common(it, a, "startswith", false);
}

static value m_endswith(interp *it, const args *a)
{
    return affix_common(it, a, "endswith", true);
}

static value remove_common(interp *it, const args *a, const char *name, bool end)
{
    value self = it->native_self;
    if (!text_args(it, a, self, name, 1, 1)) {
        return VERR;
    }
    const vstr *s = self.u.str, *x = text_payload(a->at[0], self.tag);
    if (!x) {
        return type_error(it, "%s() argument must be %s, not %s", name, tag_name(self),
                          type_name(it, a->at[0]));
    }
    if (x->len > s->len || memcmp(s->p + (end ? s->len - x->len : 0), x->p, x->len) != 0) {
        return self;
    }
    return text_value(it, self, s->p + (end ? 0 : x->len), s->len - x->len);
}

static value m_removeprefix(interp *it, const args *a)
{
    return remove_common(it, a, "removeprefix", false);
}

static value m_removesuffix(interp *it, const args *a)
{
    return remove_common(it, a, "removesuffix", true);
}

static value m_replace(interp *it, const args *a)
{
    static const char *const params[] = {"old", "new", "count"};
    value self = it->native_self, v[3];
    if (a->nkw == 0 && !text_args(it, a, self, "replace", 2, 3)) {
        return VERR;
    }
    if (!bind_native(it, "replace", a, params, 3, 2, v)) {
        return VERR;
    }
    const vstr *s = self.u.str, *x[2];
    for (int i = 0; i < 2; i++) {
        x[i] = text_payload(v[i], self.tag);
        if (!x[i]) {
            return type_error(it, "replace() argument %d must be %s, not %s", i + 1, tag_name(self),
                              type_name(it, v[i]));
        }
    }
    int64_t limit = -1;
    if (v[2].tag != V_UNDEF && !as_index(it, v[2], &limit)) {
        return VERR;
    }
    int64_t found = x[0]->len ? count_in(s->p, s->len, x[0]) : length(self) + 1;
    found = limit >= 0 && limit < found ? limit : found;
    if (found == 0) {
        return self;
    }
    uint64_t total = (uint64_t)s->len - (uint64_t)found * x[0]->len + (uint64_t)found * x[1]->len;
    if (total > MAX_TEXT_BYTES) {
        return raise_msg(it, "MemoryError", "a string of %llu bytes is too long",
                         (unsigned long long)total);
    }
    char *out = NEW_N(it->mem, char, total + 1), *w = out;
    const char *p = s->p, *end = p + s->len;
    for (int64_t i = 0; i < found; i++) {
        const char *q = p;
        if (x[0]->len) {
            q += search(p, (size_t)(end - p), x[0]->p, x[0]->len, false);
        } else if (i > 0) {
            utf8_next(&q, end, self.tag == V_BYTES);
        }
        memcpy(w, p, (size_t)(q - p));
        w += q - p;
        memcpy(w, x[1]->p, x[1]->len);
        w += x[1]->len;
        p = q + x[0]->len;
    }
    memcpy(w, p, (size_t)(end - p));
    return text_value(it, self, out, total);
}

// ---- split and join

static bool is_space(value self, uint32_t c)
{
    return self.tag == V_BYTES ? c == ' ' || (c >= 9 && c <= 13) : char_is_space(c);
}

// The character that ends at *p, which moves to its first byte.
static uint32_t prev_char(const char **p, const char *start, bool bytes)
{
    const char *q = *p - 1;
    while (!bytes && q > start && ((unsigned char)*q & 0xC0) == 0x80) {
        q--;
    }
    const char *end = *p;
    *p = q;
    return utf8_next(&q, end, bytes);
}

static void push_text(interp *it, value out, value like, const char *p, const char *end)
{
    value v = v_str(it, p, (size_t)(end - p));
    v.tag = like.tag;
    list_push(it, out.u.list, v);
}

static void split_spaces(interp *it, value self, int64_t limit, value out)
{
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    bool bytes = self.tag == V_BYTES;
    for (;;) {
        const char *q = p;
        while (p < end && is_space(self, utf8_next(&q, end, bytes))) {
            p = q;
        }
        if (p == end) {
            return;
        }
        const char *word = p;
        if (limit >= 0 && (int64_t)out.u.list->n >= limit) {
            push_text(it, out, self, word, end);
            return;
        }
        q = p;
        while (p < end && !is_space(self, utf8_next(&q, end, bytes))) {
            p = q;
        }
        push_text(it, out, self, word, p);
    }
}

static void rsplit_spaces(interp *it, value self, int64_t limit, value out)
{
    const char *start = self.u.str->p, *p = start + self.u.str->len;
    bool bytes = self.tag == V_BYTES;
    for (;;) {
        const char *q = p;
        while (p > start && is_space(self, prev_char(&q, start, bytes))) {
            p = q;
        }
        if (p == start) {
            return;
        }
        const char *end = p;
        if (limit >= 0 && (int64_t)out.u.list->n >= limit) {
            push_text(it, out, self, start, end);
            return;
        }
        q = p;
        while (p > start && !is_space(self, prev_char(&q, start, bytes))) {
            p = q;
        }
        push_text(it, out, self, p, end);
    }
}

static void reverse_list(vlist *l)
{
    for (uint32_t i = 0; i < l->n / 2; i++) {
        value v = l->at[i];
        l->at[i] = l->at[l->n - 1 - i];
        l->at[l->n - 1 - i] = v;
    }
}

static value split_common(interp *it, const args *a, const char *name, bool reverse)
{
    static const char *const params[] = {"sep", "maxsplit"};
    value self = it->native_self, v[2], out = v_list(it, NULL, 0);
    if (!bind_native(it, name, a, params, 2, 0, v)) {
        return VERR;
    }
    int64_t limit = -1;
    if (v[1].tag != V_UNDEF && !as_index(it, v[1], &limit)) {
        return VERR;
    }
    if (v[0].tag == V_UNDEF || v[0].tag == V_NONE) {
        (reverse ? rsplit_spaces : split_spaces)(it, self, limit, out);
    } else {
        const vstr *sep = text_payload(v[0], self.tag);
        if (!sep) {
            return type_error(it, "must be %s or None, not %s", tag_name(self),
                              type_name(it, v[0]));
        }
        if (sep->len == 0) {
            return value_error(it, "empty separator");
        }
        const char *p = self.u.str->p, *end = p + self.u.str->len;
        while (limit < 0 || (int64_t)out.u.list->n < limit) {
            int64_t r = search(p, (size_t)(end - p), sep->p, sep->len, reverse);
            if (r < 0) {
                break;
            }
            if (reverse) {
                push_text(it, out, self, p + r + sep->len, end);
                end = p + r;
            } else {
                push_text(it, out, self, p, p + r);
                p += (size_t)r + sep->len;
            }
        }
        push_text(it, out, self, p, end);
    }
    if (reverse) {
        reverse_list(out.u.list);
    }
    return out;
}

static value m_split(interp *it, const args *a)
{
    return split_common(it, a, "split", false);
}

static value m_rsplit(interp *it, const args *a)
{
    return split_common(it, a, "rsplit", true);
}

static bool line_end(value self, uint32_t c)
{
    return self.tag == V_BYTES ? c == '\n' || c == '\r' : char_is_line_end(c);
}

static value m_splitlines(interp *it, const args *a)
{
    static const char *const params[] = {"keepends"};
    value self = it->native_self, v, out = v_list(it, NULL, 0);
    if (!bind_native(it, "splitlines", a, params, 1, 0, &v)) {
        return VERR;
    }
    int keep = v.tag == V_UNDEF ? 0 : truth(it, v);
    if (keep < 0) {
        return VERR;
    }
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    while (p < end) {
        const char *line = p, *stop = end;
        while (p < end) {
            const char *at = p;
            uint32_t c = utf8_next(&p, end, self.tag == V_BYTES);
            if (line_end(self, c)) {
                stop = at;
                p += c == '\r' && p < end && *p == '\n';
                break;
            }
        }
        push_text(it, out, self, line, keep ? p : stop);
    }
    return out;
}

static value partition_common(interp *it, const args *a, const char *name, bool reverse)
{
    value self = it->native_self;
    if (!text_args(it, a, self, name, 1, 1)) {
        return VERR;
    }
    const vstr *sep = text_arg(it, self, a->at[0]), *s = self.u.str;
    if (!sep) {
        return VERR;
    }
    if (sep->len == 0) {
        return value_error(it, "empty separator");
    }
    int64_t r = search(s->p, s->len, sep->p, sep->len, reverse);
    value none = text_value(it, self, "", 0);
    if (r < 0) {
        value all[] = {reverse ? none : self, none, reverse ? self : none};
        return v_tuple(it, all, 3);
    }
    size_t after = (size_t)r + sep->len;
    value all[] = {text_value(it, self, s->p, (size_t)r), text_value(it, self, sep->p, sep->len),
                   text_value(it, self, s->p + after, s->len - after)};
    return v_tuple(it, all, 3);
}

static value m_partition(interp *it, const args *a)
{
    return partition_common(it, a, "partition", false);
}

static value m_rpartition(interp *it, const args *a)
{
    return partition_common(it, a, "rpartition", true);
}

static value m_join(interp *it, const args *a)
{
    value self = it->native_self;
    if (!text_args(it, a, self, "join", 1, 1)) {
        return VERR;
    }
    uint32_t n;
    const value *at = items_of(it, a->at[0], &n);
    if (!at) {
        return VERR;
    }
    uint64_t total = n > 1 ? (uint64_t)(n - 1) * self.u.str->len : 0;
    for (uint32_t i = 0; i < n; i++) {
        const vstr *s = text_payload(at[i], self.tag);
        if (!s) {
            return type_error(it,
                              self.tag == V_STR
                                  ? "sequence item %u: expected str instance, %s found"
                                  : "sequence item %u: expected a bytes-like object, %s found",
                              i, type_name(it, at[i]));
        }
        total += s->len;
    }
    if (total > MAX_TEXT_BYTES) {
        return raise_msg(it, "MemoryError", "a string of %llu bytes is too long",
                         (unsigned long long)total);
    }
    char *out = NEW_N(it->mem, char, total + 1), *w = out;
    for (uint32_t i = 0; i < n; i++) {
        if (i) {
            memcpy(w, self.u.str->p, self.u.str->len);
            w += self.u.str->len;
        }
        const vstr *s = text_payload(at[i], self.tag);
        memcpy(w, s->p, s->len);
        w += s->len;
    }
    return text_value(it, self, out, total);
}

// ---- strip and pad

static bool in_set(value self, const vstr *set, uint32_t c)
{
    if (!set) {
        return is_space(self, c);
    }
    const char *p = set->p, *end = p + set->len;
    while (p < end) {
        if (utf8_next(&p, end, self.tag == V_BYTES) == c) {
            return true;
        }
    }
    return false;
}

static value strip_common(interp *it, const args *a, const char *name, bool left, bool right)
{
    value self = it->native_self;
    if (!text_args(it, a, self, name, 0, 1)) {
        return VERR;
    }
    const vstr *set = NULL;
    if (a->n && a->at[0].tag != V_NONE) {
        set = text_payload(a->at[0], self.tag);
        if (!set) {
            return type_error(it, "%s arg must be None or %s", name, tag_name(self));
        }
    }
    bool bytes = self.tag == V_BYTES;
    const char *p = self.u.str->p, *end = p + self.u.str->len, *q = p;
    while (left && p < end && in_set(self, set, utf8_next(&q, end, bytes))) {
        p = q;
    }
    q = end;
    while (right && end > p && in_set(self, set, prev_char(&q, p, bytes))) {
        end = q;
    }
    return (size_t)(end - p) == self.u.str->len ? self : text_value(it, self, p, (size_t)(end - p));
}

static value m_strip(interp *it, const args *a)
{
    return strip_common(it, a, "strip", true, true);
}

static value m_lstrip(interp *it, const args *a)
{
    return strip_common(it, a, "lstrip", true, false);
}

static value m_rstrip(interp *it, const args *a)
{
    return strip_common(it, a, "rstrip", false, true);
}

// self with n characters of `fill` before it and m after it.
static value padded(interp *it, value self, int64_t n, const vstr *fill, int64_t m)
{
    const vstr *s = self.u.str;
    uint64_t total = s->len + ((uint64_t)n + (uint64_t)m) * fill->len;
    if (n > MAX_TEXT_BYTES || m > MAX_TEXT_BYTES || total > MAX_TEXT_BYTES) {
        return raise_msg(it, "MemoryError", "a string of %llu bytes is too long",
                         (unsigned long long)total);
    }
    char *out = NEW_N(it->mem, char, total + 1), *w = out;
    for (int64_t i = 0; i < n; i++, w += fill->len) {
        memcpy(w, fill->p, fill->len);
    }
    memcpy(w, s->p, s->len);
    w += s->len;
    for (int64_t i = 0; i < m; i++, w += fill->len) {
        memcpy(w, fill->p, fill->len);
    }
    return text_value(it, self, out, total);
}

static value justify(interp *it, const args *a, const char *name, char where)
{
    static const vstr space = {1, 1, " "};
    value self = it->native_self;
    int64_t width;
    if (!text_args(it, a, self, name, 1, 2) || !as_index(it, a->at[0], &width)) {
        return VERR;
    }
    const vstr *fill = &space;
    if (a->n > 1) {
        fill = text_payload(a->at[1], self.tag);
        if (!fill) {
            return type_error(it, "The fill character must be a unicode character, not %s",
                              type_name(it, a->at[1]));
        }
        if ((self.tag == V_BYTES ? fill->len : fill->chars) != 1) {
            return type_error(it, "The fill character must be exactly one character long");
        }
    }
    int64_t n = length(self);
    if (width <= n) {
        return self;
    }
    int64_t pad = width - n, left = where == 'r'   ? pad
                                    : where == 'c' ? pad / 2 + (pad & width & 1)
                                                   : 0;
    return padded(it, self, left, fill, pad - left);
}

static value m_ljust(interp *it, const args *a)
{
    return justify(it, a, "ljust", 'l');
}

static value m_rjust(interp *it, const args *a)
{
    return justify(it, a, "rjust", 'r');
}

static value m_center(interp *it, const args *a)
{
    return justify(it, a, "center", 'c');
}

static value m_zfill(interp *it, const args *a)
{
    static const vstr zero = {1, 1, "0"};
    value self = it->native_self;
    int64_t width;
    if (!text_args(it, a, self, "zfill", 1, 1) || !as_index(it, a->at[0], &width)) {
        return VERR;
    }
    if (width <= length(self)) {
        return self;
    }
    value r = padded(it, self, width - length(self), &zero, 0);
    const char *p = self.u.str->p;
    if (!IS_ERR(r) && (*p == '+' || *p == '-')) {
        char *out = (char *)(uintptr_t)r.u.str->p;
        out[width - length(self)] = '0';
        out[0] = *p;
    }
    return r;
}

static value m_expandtabs(interp *it, const args *a)
{
    static const char *const params[] = {"tabsize"};
    value self = it->native_self, v;
    int64_t size = 8, column = 0;
    if (!bind_native(it, "expandtabs", a, params, 1, 0, &v) ||
        (v.tag != V_UNDEF && !as_index(it, v, &size))) {
        return VERR;
    }
    textbuf t;
    text_init(&t, it->mem);
    const char *p = self.u.str->p, *end = p + self.u.str->len;
    while (p < end) {
        const char *at = p;
        uint32_t c = utf8_next(&p, end, self.tag == V_BYTES);
        if (c != '\t') {
            text_add(&t, at, (size_t)(p - at));
            column = c == '\n' || c == '\r' ? 0 : column + 1;
            continue;
        }
        int64_t n = size > 0 ? size - column % size : 0;
        if (n > MAX_TEXT_BYTES || t.len + (uint64_t)n > MAX_TEXT_BYTES) {
            return raise_msg(it, "MemoryError", "a string of more than %d bytes is too long",
                             MAX_TEXT_BYTES);
        }
        column += n;
        for (; n > 0; n--) {
            text_char(&t, ' ');
        }
    }
    return text_value(it, self, t.at, t.len);
}

static value m_format(interp *it, const args *a)
{
    return str_format(it, it->native_self, a);
}

static value m_format_map(interp *it, const args *a)
{
    value self = it->native_self;
    return text_args(it, a, self, "format_map", 1, 1) ? str_format_map(it, self, a->at[0]) : VERR;
}

value str_method(interp *it, value self, sym id)
{
    static const method both[] = {METHOD("join", m_join),
                                  METHOD("split", m_split),
                                  METHOD("startswith", m_startswith),
                                  METHOD("endswith", m_endswith),
                                  METHOD("strip", m_strip),
                                  METHOD("replace", m_replace),
                                  METHOD("find", m_find),
                                  METHOD("rfind", m_rfind),
                                  METHOD("index", m_index),
                                  METHOD("rindex", m_rindex),
                                  METHOD("count", m_count),
                                  METHOD("rsplit", m_rsplit),
                                  METHOD("lstrip", m_lstrip),
                                  METHOD("rstrip", m_rstrip),
                                  METHOD("partition", m_partition),
                                  METHOD("rpartition", m_rpartition),
                                  METHOD("splitlines", m_splitlines),
                                  METHOD("removeprefix", m_removeprefix),
                                  METHOD("removesuffix", m_removesuffix),
                                  METHOD("ljust", m_ljust),
                                  METHOD("rjust", m_rjust),
                                  METHOD("center", m_center),
                                  METHOD("zfill", m_zfill),
                                  METHOD("expandtabs", m_expandtabs)};
    static const method only_str[] = {METHOD("format", m_format),
                                      METHOD("format_map", m_format_map)};
    value v = method_bind(it, both, sizeof both / sizeof both[0], self, id);
    if (v.tag == V_UNDEF && self.tag == V_STR) {
        v = method_bind(it, only_str, sizeof only_str / sizeof only_str[0], self, id);
    }
    if (v.tag == V_UNDEF) {
        v = case_method(it, self, id);
    }
    return v.tag == V_UNDEF ? codec_method(it, self, id) : v;
}
