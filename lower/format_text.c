// f-strings and str.format.
#include "lower/methods.h"

// ---- f-strings

static bool fstring_into(interp *it, const ast *e, textbuf *out);

static bool fstring_field(interp *it, const ast *e, textbuf *out)
{
    char conv = e->u.format.conv;
    const ast *spec = e->u.format.spec;
    if (e->u.format.text) {
        text_cstr(out, e->u.format.text);
        conv = conv || spec ? conv : 'r';
    }
    value v = eval(it, e->u.format.value);
    if (IS_ERR(v)) {
        return false;
    }
    if (!spec && conv == 'r') {
        return repr_into(it, v, out);
    }
    v = format_convert(it, v, (uint8_t)conv);
    if (IS_ERR(v)) {
        return false;
    }
    if (!spec) {
        return format_into(it, v, &format_no_spec, out);
    }
    textbuf t;
    text_init(&t, it->mem);
    if (!fstring_into(it, spec, &t)) {
        return false;
    }
    value s = text_value(it, (value){.tag = V_STR}, t.at, t.len);
    return !IS_ERR(s) && format_into(it, v, s.u.str, out);
}

static bool fstring_into(interp *it, const ast *e, textbuf *out)
{
    if (e->kind == AST_STR) {
        text_add(out, e->u.str.p, e->u.str.len);
        return true;
    }
    for (const ast *part = e->u.list.first; part; part = part->next) {
        if (part->kind == AST_FORMAT) {
            if (!fstring_field(it, part, out)) {
                return false;
            }
        } else if (!fstring_into(it, part, out)) {
            return false;
        }
    }
    return true;
}

value eval_fstring(interp *it, const ast *e)
{
    textbuf t;
    text_init(&t, it->mem);
    return fstring_into(it, e, &t) ? text_value(it, (value){.tag = V_STR}, t.at, t.len) : VERR;
}

// ---- str.format

enum { AUTO_NONE, AUTO_ON, AUTO_OFF };

typedef struct formatter {
    interp *it;
    const args *a;  // NULL: format_map
    value mapping;  // format_map
    int64_t next;   // automatic number
    int mode;       // AUTO_*
} formatter;

typedef struct part {
    const char *p, *end;
} part;

typedef struct field {
    part name, spec;
    uint32_t conv;
    bool nested;  // the spec has fields of its own
} field;

static bool fail(interp *it, const char *message)
{
    value_error(it, "%s", message);
    return false;
}

// Reads a field after its '{'; *at moves past its '}'.
static bool parse_field(interp *it, part *at, field *f)
{
    *f = (field){.name = {at->p, at->p}};
    char c = 0;
    while (at->p < at->end) {
        c = *at->p++;
        if (c == '{') {
            return fail(it, "unexpected '{' in field name");
        }
        if (c == '[') {
            while (at->p < at->end && *at->p != ']') {
                at->p++;
            }
            continue;
        }
        if (c == '}' || c == ':' || c == '!') {
            break;
        }
    }
    f->name.end = at->p - (c == '}' || c == ':' || c == '!' ? 1 : 0);
    f->spec = (part){at->p, at->p};
    if (c == '}') {
        return true;
    }
    if (c != ':' && c != '!') {
        return fail(it, "expected '}' before end of string");
    }
    if (c == '!') {
        if (at->p >= at->end) {
            return fail(it, "end of string while looking for conversion specifier");
        }
        f->conv = utf8_next(&at->p, at->end, false);
        if (at->p < at->end) {
            c = *at->p++;
            if (c == '}') {
                return true;
            }
            if (c != ':') {
                return fail(it, "expected ':' after conversion specifier");
            }
        }
    }
    f->spec = (part){at->p, at->p};
    for (int depth = 1; at->p < at->end;) {
        c = *at->p++;
        if (c == '{') {
            f->nested = true;
            depth++;
        } else if (c == '}' && --depth == 0) {
            f->spec.end = at->p - 1;
            return true;
        }
    }
    return fail(it, "unmatched '{' in format spec");
}

static bool set_mode(formatter *s, int mode)
{
    if (s->mode == AUTO_NONE) {
        s->mode = mode;
    } else if (s->mode != mode) {
        return fail(
            s->it,
            mode == AUTO_ON
                ? "cannot switch from manual field specification to automatic field numbering"
                : "cannot switch from automatic field numbering to manual field specification");
    }
    return true;
}

// 1: a number; 0: not one; -1: too large.
static int all_digits(interp *it, part s, int64_t *out)
{
    const char *p = s.p;
    int r = format_read_number(it, &p, s.end, out);
    return r < 0 ? -1 : r && p == s.end;
}

static value field_first(formatter *s, part name)
{
    interp *it = s->it;
    int64_t i = 0;
    bool numbered = name.p == name.end;
    if (numbered) {
        if (!set_mode(s, AUTO_ON)) {
            return VERR;
        }
        i = s->next++;
    } else {
        int r = all_digits(it, name, &i);
        if (r < 0 || (r && !set_mode(s, AUTO_OFF))) {
            return VERR;
        }
        numbered = r == 1;
    }
    if (numbered) {
        if (!s->a) {
            return value_error(it, "Format string contains positional fields");
        }
        if (i >= (int64_t)s->a->n) {
            return raise_msg(it, "IndexError",
                             "Replacement index %lld out of range for positional args tuple",
                             (long long)i);
        }
        return s->a->at[i];
    }
    value key = v_str(it, name.p, (size_t)(name.end - name.p));
    if (!s->a) {
        return get_index(it, s->mapping, key);
    }
    sym id = str_sym(it, key);
    for (uint32_t k = 0; k < s->a->nkw; k++) {
        if (s->a->kw[k] == id) {
            return s->a->at[s->a->n + k];
        }
    }
    return key_error(it, key);
}

// name(.attr | [index])*
static value field_value(formatter *s, part name)
{
    interp *it = s->it;
    part first = {name.p, name.p};
    while (first.end < name.end && *first.end != '.' && *first.end != '[') {
        first.end++;
    }
    value v = field_first(s, first);
    const char *p = first.end;
    while (p < name.end && !IS_ERR(v)) {
        bool index = *p++ == '[';
        part key = {p, p};
        while (key.end < name.end &&
               (index ? *key.end != ']' : *key.end != '.' && *key.end != '[')) {
            key.end++;
        }
        if (index && key.end == name.end) {
            return value_error(it, "Missing ']' in format string");
        }
        if (key.p == key.end) {
            return value_error(it, "Empty attribute in format string");
        }
        p = key.end + (index ? 1 : 0);
        if (index && p < name.end && *p != '.' && *p != '[') {
            return value_error(it, "Only '.' or '[' may follow ']' in format field specifier");
        }
        if (index) {
            int64_t i = 0;
            int r = all_digits(it, key, &i);
            if (r < 0) {
                return VERR;
            }
            v = get_index(it, v, r ? VINT(i) : v_str(it, key.p, (size_t)(key.end - key.p)));
        } else {
            v = get_attr(it, v, intern_add(it->names, key.p, (size_t)(key.end - key.p)));
        }
    }
    return v;
}

static bool format_text(formatter *s, part at, int depth, textbuf *out);

static bool format_field(formatter *s, const field *f, int depth, textbuf *out)
{
    interp *it = s->it;
    value v = field_value(s, f->name);
    if (IS_ERR(v)) {
        return false;
    }
    if (f->conv && f->conv != 'r' && f->conv != 's' && f->conv != 'a') {
        if (f->conv > 32 && f->conv < 127) {
            value_error(it, "Unknown conversion specifier %c", (char)f->conv);
        } else {
            value_error(it, "Unknown conversion specifier \\x%x", (unsigned)f->conv);
        }
        return false;
    }
    v = format_convert(it, v, f->conv);
    if (IS_ERR(v)) {
        return false;
    }
    if (f->spec.p == f->spec.end) {
        return format_into(it, v, &format_no_spec, out);
    }
    textbuf t;
    text_init(&t, it->mem);
    if (!f->nested) {
        text_add(&t, f->spec.p, (size_t)(f->spec.end - f->spec.p));
    } else if (!format_text(s, f->spec, depth - 1, &t)) {
        return false;
    }
    value spec = text_value(it, (value){.tag = V_STR}, t.at, t.len);
    return !IS_ERR(spec) && format_into(it, v, spec.u.str, out);
}

static bool format_text(formatter *s, part at, int depth, textbuf *out)
{
    if (depth < 0) {
        return fail(s->it, "Max string recursion exceeded");
    }
    while (at.p < at.end) {
        const char *start = at.p;
        while (at.p < at.end && *at.p != '{' && *at.p != '}') {
            at.p++;
        }
        text_add(out, start, (size_t)(at.p - start));
        if (at.p == at.end) {
            break;
        }
        char c = *at.p++;
        if (at.p < at.end && *at.p == c) {
            text_char(out, c);
            at.p++;
            continue;
        }
        if (c == '}') {
            return fail(s->it, "Single '}' encountered in format string");
        }
        if (at.p == at.end) {
            return fail(s->it, "Single '{' encountered in format string");
        }
        field f;
        if (!parse_field(s->it, &at, &f) || !format_field(s, &f, depth, out)) {
            return false;
        }
    }
    return true;
}

static value run_format(formatter *s, value fmt)
{
    textbuf t;
    text_init(&t, s->it->mem);
    part all = {fmt.u.str->p, fmt.u.str->p + fmt.u.str->len};
    return format_text(s, all, 1, &t) ? text_value(s->it, (value){.tag = V_STR}, t.at, t.len)
                                      : VERR;
}

value str_format(interp *it, value fmt, const args *a)
{
    return run_format(&(formatter){.it = it, .a = a}, fmt);
}

value str_format_map(interp *it, value fmt, value mapping)
{
    return run_format(&(formatter){.it = it, .mapping = mapping}, fmt);
}
