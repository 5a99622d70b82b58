#include "lang/diag.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DIAG_LIMIT = 20 };

static const struct {
    const char *name, *exception;
    severity sev;
} table[D_COUNT] = {
#define DIAG0(ident, sev, exc, fmt)             [D_##ident] = {#ident, exc, SEV_##sev},
#define DIAG(ident, sev, exc, fmt, params, ...) [D_##ident] = {#ident, exc, SEV_##sev},
#include "lang/diag.def"
#undef DIAG0
#undef DIAG
};

// A row of diag.def without its explanation is a gap in the count; one explained twice is a
// duplicate initializer, which the compiler refuses.
static const struct {
    const char *meaning, *example, *fix;
} explained[D_COUNT] = {
#define EXPLAIN(ident, meaning, example, fix) [D_##ident] = {meaning, example, fix},
#include "lang/diag_explain.def"
#undef EXPLAIN
};

// One member a row on each side: a missing explanation makes the structs differ in size.
struct explained_rows {
    char none;
#define EXPLAIN(ident, meaning, example, fix) char ident;
#include "lang/diag_explain.def"
#undef EXPLAIN
};
_Static_assert(sizeof(struct explained_rows) == D_COUNT + 1,
               "every row of lang/diag.def has one in lang/diag_explain.def");

void diags_init(diags *ds, arena *mem)
{
    *ds = (diags){.mem = mem, .limit = DIAG_LIMIT};
    ds->tail = &ds->first;
}

const char *diag_name(diag_id id)
{
    return table[id].name;
}

severity diag_severity(diag_id id)
{
    return table[id].sev;
}

const char *diag_exception(diag_id id)
{
    return table[id].exception;
}

const char *diag_meaning(diag_id id)
{
    return explained[id].meaning;
}

const char *diag_example(diag_id id)
{
    return explained[id].example;
}

const char *diag_fix(diag_id id)
{
    return explained[id].fix;
}

diag_id diag_find(const char *ident)
{
    unsigned id = 0;
    while (id < D_COUNT && strcmp(table[id].name, ident) != 0) {
        id++;
    }
    return (diag_id)id;
}

// --- recording ---

typedef enum verdict { KEEP, DROP } verdict;

// The severity after the policy. Only warnings can be changed.
static severity effective(const diags *ds, diag_id id, verdict *v)
{
    severity sev = table[id].sev;
    *v = KEEP;
    if (sev != SEV_WARNING || !ds->policy) {
        return sev;
    }
    signed char w = ds->policy->warn[id];
    if (w < 0) {
        *v = DROP;
        return sev;
    }
    return w == 2 || ds->policy->all_errors ? SEV_ERROR : sev;
}

// Past ds->limit errors are counted but not kept: one mistake can cascade. The same holds for
// warnings, which may come from a loop.
static void append(diags *ds, diag *d)
{
    unsigned *count = d->sev == SEV_ERROR ? &ds->errors : &ds->warnings;
    if ((*count)++ >= ds->limit) {
        return;
    }
    *ds->tail = d;
    ds->tail = &d->next;
}

__attribute__((format(printf, 4, 5))) static diag *put(diags *ds, diag_id id, loc at,
                                                       const char *fmt, ...)
{
    va_list ap;
    char small[512];
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n;
    char *text = NEW_N(ds->mem, char, len + 1);
    if (len < sizeof small) {
        memcpy(text, small, len);
    } else {
        va_start(ap, fmt);
        vsnprintf(text, len + 1, fmt, ap);
        va_end(ap);
    }
    verdict v;
    diag *d = NEW(ds->mem, diag);
    *d = (diag){.id = id, .sev = effective(ds, id, &v), .at = at, .text = text};
    d->notes_tail = &d->notes;
    if (v == KEEP) {
        append(ds, d);
    }
    return d;
}

#define DIAG0(ident, sev, exc, fmt)                                                                \
    diag *diag_##ident(diags *ds, loc at)                                                          \
    {                                                                                              \
        return put(ds, D_##ident, at, fmt);                                                        \
    }
#define DIAG(ident, sev, exc, fmt, params, ...)                                                    \
    diag *diag_##ident(diags *ds, loc at, DIAG_UNPAREN params)                                     \
    {                                                                                              \
        return put(ds, D_##ident, at, fmt, __VA_ARGS__);                                           \
    }
#include "lang/diag.def"
#undef DIAG0
#undef DIAG

__attribute__((format(printf, 2, 0))) static char *vformat(arena *mem, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = NEW_N(mem, char, n < 0 ? 1 : (size_t)n + 1);
    if (n > 0) {
        vsnprintf(text, (size_t)n + 1, fmt, ap);
    }
    return text;
}

void diag_note_add(diags *ds, diag *d, loc at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_note *n = NEW(ds->mem, diag_note);
    n->at = at;
    n->text = vformat(ds->mem, fmt, ap);
    va_end(ap);
    *d->notes_tail = n;
    d->notes_tail = &n->next;
}

void diag_help(diags *ds, diag *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    d->help = vformat(ds->mem, fmt, ap);
    va_end(ap);
}

void diags_adopt(diags *ds, diag *d)
{
    d->next = NULL;
    append(ds, d);
}

// --- rendering ---

static const char *const word[] = {"error", "warning", "note"};

typedef struct look {
    bool color;
    textbuf *out;
} look;

static void paint(const look *l, const char *code)
{
    if (l->color) {
        text_printf(l->out, "\033[%sm", code);
    }
}

static const char *severity_color(severity sev)
{
    return sev == SEV_ERROR ? "1;31" : sev == SEV_WARNING ? "1;35" : "1;36";
}

// Length of the UTF-8 sequence at p, 0 when it is none. Reads no further than a
// byte that does not continue it, so a zero-terminated text is safe.
static uint32_t sequence(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    uint32_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    for (unsigned i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
               (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : n;
}

// One character of a source line, or one byte that is none. Returns its length in bytes.
static uint32_t unit(const char *p)
{
    uint32_t n = sequence(p);
    return n ? n : 1;
}

// A source line goes to a terminal: what is no printable character is shown as '?'.
static void source_text(textbuf *out, const char *p, const char *end)
{
    while (p < end) {
        unsigned char c = (unsigned char)*p;
        uint32_t n = sequence(p);
        if (n == 0 || (c < ' ' && c != '\t') || c == 127) {
            text_char(out, '?');
        } else {
            text_add(out, p, n);
        }
        p += unit(p);
    }
}

enum { LINE_SHOWN_MAX = 160 };

// A line of thousands of bytes is cut around what is pointed at, between characters.
static void window(const source *s, uint32_t at, linecol *p)
{
    if (p->line_hi - p->line_lo <= LINE_SHOWN_MAX) {
        return;
    }
    uint32_t lo = p->line_lo, hi;
    while (at > LINE_SHOWN_MAX / 2 && lo < at - LINE_SHOWN_MAX / 2) {
        lo += unit(s->text + lo);
    }
    for (hi = lo; hi < p->line_hi && hi - lo < LINE_SHOWN_MAX;) {
        hi += unit(s->text + hi);
    }
    p->line_lo = lo;
    p->line_hi = hi;
}

static void snippet(const look *l, loc at, linecol p, const char *color)
{
    const char *text = at.src->text;
    window(at.src, at.at.lo, &p);
    text_printf(l->out, "%5" PRIu32 " | ", p.line);
    source_text(l->out, text + p.line_lo, text + p.line_hi);
    text_cstr(l->out, "\n      | ");
    uint32_t i = p.line_lo;
    for (; i < at.at.lo && i < p.line_hi; i += unit(text + i)) {
        text_char(l->out, text[i] == '\t' ? '\t' : ' ');
    }
    paint(l, color);
    text_char(l->out, '^');
    if (i < p.line_hi) {
        i += unit(text + i);
    }
    for (; i < at.at.hi && i < p.line_hi; i += unit(text + i)) {
        text_char(l->out, '~');
    }
    paint(l, "0");
    text_char(l->out, '\n');
}

// "path:line:col: " or "nki: ". Returns the place.
static linecol prefix(const look *l, loc at)
{
    linecol p = {0};
    paint(l, "1");
    if (at.src) {
        p = source_locate(at.src, at.at.lo);
        text_printf(l->out, "%s:%" PRIu32 ":%" PRIu32 ": ", at.src->name, p.line, p.col);
    } else {
        text_cstr(l->out, "nki: ");
    }
    paint(l, "0");
    return p;
}

static linecol headline(const look *l, const diag *d)
{
    linecol p = prefix(l, d->at);
    paint(l, severity_color(d->sev));
    text_printf(l->out, "%s[%s]:", word[d->sev], table[d->id].name);
    paint(l, "0");
    text_printf(l->out, " %s\n", d->text);
    return p;
}

static void render_text(const look *l, const diag *d)
{
    linecol p = headline(l, d);
    if (d->at.src) {
        snippet(l, d->at, p, severity_color(d->sev));
    }
    for (const diag_note *n = d->notes; n; n = n->next) {
        if (n->at.src) {
            p = prefix(l, n->at);
        } else {
            text_cstr(l->out, "      = ");
        }
        paint(l, severity_color(SEV_NOTE));
        text_cstr(l->out, "note:");
        paint(l, "0");
        text_printf(l->out, " %s\n", n->text);
        if (n->at.src) {
            snippet(l, n->at, p, severity_color(SEV_NOTE));
        }
    }
    if (d->help) {
        text_cstr(l->out, "      = ");
        paint(l, "1;32");
        text_cstr(l->out, "help:");
        paint(l, "0");
        text_printf(l->out, " %s\n", d->help);
    }
}

static void json_string(textbuf *out, const char *s)
{
    text_char(out, '"');
    for (; *s; s += unit(s)) {
        unsigned char c = (unsigned char)*s;
        uint32_t n = sequence(s);
        if (c == '"' || c == '\\') {
            text_char(out, '\\');
            text_char(out, *s);
        } else if (c < ' ' || c == 127) {
            text_printf(out, "\\u%04x", c);
        } else if (n) {
            text_add(out, s, n);
        } else {
            text_cstr(out, "\\ufffd");
        }
    }
    text_char(out, '"');
}

static void json_place(textbuf *out, loc at)
{
    if (!at.src) {
        return;
    }
    linecol lo = source_locate(at.src, at.at.lo), hi = source_locate(at.src, at.at.hi);
    text_cstr(out, ",\"path\":");
    json_string(out, at.src->name);
    text_printf(out,
                ",\"line\":%" PRIu32 ",\"column\":%" PRIu32 ",\"end_line\":%" PRIu32
                ",\"end_column\":%" PRIu32,
                lo.line, lo.col, hi.line, hi.col);
}

static void render_json(textbuf *out, const diag *d)
{
    text_printf(out, "{\"severity\":\"%s\",\"name\":\"%s\",\"text\":", word[d->sev],
                table[d->id].name);
    json_string(out, d->text);
    json_place(out, d->at);
    text_cstr(out, ",\"notes\":[");
    for (const diag_note *n = d->notes; n; n = n->next) {
        text_cstr(out, "{\"text\":");
        json_string(out, n->text);
        json_place(out, n->at);
        text_cstr(out, n->next ? "}," : "}");
    }
    text_char(out, ']');
    if (d->help) {
        text_cstr(out, ",\"help\":");
        json_string(out, d->help);
    }
    text_cstr(out, "}\n");
}

void diags_render(const diags *ds, diag_format format, bool color, textbuf *out)
{
    look l = {color && format != DIAG_JSON, out};
    for (const diag *d = ds->first; d; d = d->next) {
        switch (format) {
        case DIAG_TEXT: render_text(&l, d); break;
        case DIAG_SHORT: headline(&l, d); break;
        case DIAG_JSON: render_json(out, d); break;
        }
    }
    if (format == DIAG_JSON) {
        return;
    }
    const unsigned count[] = {ds->errors, ds->warnings};
    for (int i = 0; i < 2; i++) {
        if (count[i] > ds->limit) {
            text_printf(out, "nki: %u further %ss are not shown\n", count[i] - ds->limit, word[i]);
        }
    }
}
