#include "parser/literal.h"

#include <stdio.h>
#include <string.h>

static ast *node(lexer *lx, ast_kind kind, span at)
{
    ast *n = NEW(lx->mem, ast);
    n->kind = (uint8_t)kind;
    n->at = at;
    return n;
}

// The value of a digit of any base up to 16; 99 for other characters.
static unsigned digit(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
           : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                  : 99;
}

static ast *integer(lexer *lx, span at, const char *p, const char *end)
{
    unsigned base = 10;
    const char *q = p;
    if (end - p > 2 && p[0] == '0') {
        char c = (char)(p[1] | 0x20);
        base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
        q += base == 10 ? 0 : 2;
    }
    ast *n = node(lx, AST_INT, at);
    uint64_t v = 0;
    for (; q < end; q++) {
        if (*q == '_') {
            continue;
        }
        unsigned d = digit(*q);
        if (v > ((uint64_t)INT64_MAX - d) / base) {
            n->flag = 1;
            n->u.str.p = p;
            n->u.str.len = (uint32_t)(end - p);
            return n;
        }
        v = v * base + d;
    }
    n->u.i = (int64_t)v;
    return n;
}

ast *literal_number(lexer *lx, span at)
{
    const char *p = lx->src->text + at.lo, *end = lx->src->text + at.hi;
    bool hex = end - p > 1 && p[0] == '0' && (p[1] | 0x20) == 'x', real = false;
    bool imag = !hex && (end[-1] | 0x20) == 'j';
    for (const char *q = p; q < end && !hex; q++) {
        real |= *q == '.' || *q == 'e' || *q == 'E';
    }
    if (!imag && !real) {
        return integer(lx, at, p, end);
    }
    ast *n = node(lx, imag ? AST_IMAG : AST_FLOAT, at);
    char *digits = NEW_N(lx->mem, char, (size_t)(end - p) + 1);
    size_t len = 0;
    for (const char *q = p; q < end - imag; q++) {
        if (*q != '_') {
            digits[len++] = *q;
        }
    }
    text_to_double(digits, len, &n->u.d);
    return n;
}

// UTF-8; surrogates too, as three bytes.
static char *put_utf8(char *o, uint32_t c)
{
    if (c < 0x80) {
        *o++ = (char)c;
        return o;
    }
    if (c < 0x800) {
        *o++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *o++ = (char)(0xe0 | c >> 12);
        } else {
            *o++ = (char)(0xf0 | c >> 18);
            *o++ = (char)(0x80 | (c >> 12 & 63));
        }
        *o++ = (char)(0x80 | (c >> 6 & 63));
    }
    *o++ = (char)(0x80 | (c & 63));
    return o;
}

typedef struct decoder {
    lexer *lx;
    const char *p, *end;
    char *o;
    ast_kind kind;
} decoder;

static void bad_escape(decoder *d, const char *lo, const char *what)
{
    const char *text = d->lx->src->text;
    diag_bad_escape(d->lx->ds,
                    lexer_loc(d->lx, (span){(uint32_t)(lo - text), (uint32_t)(d->p - text)}), what);
    d->lx->line_error = true;
}

// \xHH, \uHHHH, \UHHHHHHHH; d->p is after the letter.
static void hex_escape(decoder *d, int digits)
{
    const char *lo = d->p - 2;
    uint32_t c = 0;
    for (int i = 0; i < digits; i++, d->p++) {
        if (d->p == d->end || digit(*d->p) > 15) {
            char what[48];
            snprintf(what, sizeof what, "\\%c takes %d hexadecimal digits", lo[1], digits);
            bad_escape(d, lo, what);
            return;
        }
        c = c << 4 | digit(*d->p);
    }
    if (c > 0x10ffff) {
        bad_escape(d, lo, "there is no such character; the last one is \\U0010ffff");
    } else if (d->kind == AST_BYTES) {
        *d->o++ = (char)c;
    } else {
        d->o = put_utf8(d->o, c);
    }
}

// \N{NAME}. The table of character names is not part of this tool, so U+FFFD stands for it.
static void named_escape(decoder *d)
{
    const char *lo = d->p - 2;
    const char *close =
        d->p < d->end && *d->p == '{' ? memchr(d->p, '}', (size_t)(d->end - d->p)) : NULL;
    if (!close || close == d->p + 1) {
        bad_escape(d, lo, "\\N takes a character name in braces");
        return;
    }
    d->p = close + 1;
    const char *text = d->lx->src->text;
    diag_character_name(d->lx->ds,
                        lexer_loc(d->lx, (span){(uint32_t)(lo - text), (uint32_t)(d->p - text)}));
    d->o = put_utf8(d->o, 0xfffd);
}

// d->p is after the backslash.
static void escape(decoder *d)
{
    char c = *d->p++;
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        *d->o++ = to[simple - from];
    } else if (c == '\n' || c == '\r') {
        d->p += c == '\r' && d->p < d->end && *d->p == '\n';
    } else if (c >= '0' && c <= '7') {
        unsigned v = digit(c);
        for (int i = 0; i < 2 && d->p < d->end && *d->p >= '0' && *d->p <= '7'; i++) {
            v = v * 8 + digit(*d->p++);
        }
        if (d->kind == AST_BYTES) {
            *d->o++ = (char)v;
        } else {
            d->o = put_utf8(d->o, v);
        }
    } else if (c == 'x') {
        hex_escape(d, 2);
    } else if (d->kind == AST_STR && (c == 'u' || c == 'U')) {
        hex_escape(d, c == 'u' ? 4 : 8);
    } else if (d->kind == AST_STR && c == 'N') {
        named_escape(d);
    } else {
        *d->o++ = '\\';  // an unknown escape stands for itself
        d->p--;
    }
}

ast *literal_string(lexer *lx, ast_kind kind, span at, const char *p, const char *end, bool raw,
                    bool braces)
{
    ast *n = node(lx, kind, at);
    // No escape is shorter than what it stands for, except \N{..} of one letter (5 bytes to 3).
    decoder d = {.lx = lx, .p = p, .end = end, .kind = kind};
    d.o = NEW_N(lx->mem, char, (size_t)(end - p) + 1);
    n->u.str.p = d.o;
    bool non_ascii = false;
    while (d.p < end) {
        char c = *d.p;
        if (c == '\\' && !raw && d.p + 1 < end) {
            d.p++;
            escape(&d);
        } else if (c == '\r') {
            d.p += d.p + 1 < end && d.p[1] == '\n' ? 2 : 1;
            *d.o++ = '\n';
        } else {
            d.p += braces && (c == '{' || c == '}') && d.p + 1 < end && d.p[1] == c ? 2 : 1;
            non_ascii |= (unsigned char)c >= 0x80;
            *d.o++ = c;
        }
    }
    n->u.str.len = (uint32_t)(d.o - n->u.str.p);
    if (kind == AST_BYTES && non_ascii) {
        diag_bytes_not_ascii(lx->ds, lexer_loc(lx, at));
        lx->line_error = true;
    }
    return n;
}

// One STR for a run of them that ends before `stop`.
static ast *merge(lexer *lx, ast *run, const ast *stop)
{
    size_t len = 0;
    uint32_t hi = run->at.hi;
    for (const ast *s = run; s != stop; s = s->next) {
        len += s->u.str.len;
        hi = s->at.hi;
    }
    ast *n = node(lx, (ast_kind)run->kind, (span){run->at.lo, hi});
    char *o = NEW_N(lx->mem, char, len + 1);
    n->u.str.p = o;
    n->u.str.len = (uint32_t)len;
    for (const ast *s = run; s != stop; s = s->next) {
        memcpy(o, s->u.str.p, s->u.str.len);
        o += s->u.str.len;
    }
    return n;
}

ast *literal_join(lexer *lx, ast *list, span at)
{
    bool any_bytes = false, any_text = false, any_format = false;
    for (const ast *s = list; s; s = s->next) {
        any_bytes |= s->kind == AST_BYTES;
        any_text |= s->kind != AST_BYTES;
        any_format |= s->kind == AST_FSTRING;
    }
    if (any_bytes && any_text) {
        diag_mixed_bytes(lx->ds, lexer_loc(lx, at));
        lx->line_error = true;
        return list;
    }
    if (!list->next) {
        return list;
    }
    if (!any_format) {
        ast *n = merge(lx, list, NULL);
        n->at = at;
        return n;
    }
    // One flat list of parts, then neighbouring texts become one.
    ast *first = NULL, **tail = &first;
    for (ast *s = list; s;) {
        ast *next = s->next;
        s->next = NULL;
        if (s->kind == AST_FSTRING) {
            *tail = s->u.list.first;
        } else if (s->u.str.len) {
            *tail = s;
        }
        while (*tail) {
            tail = &(*tail)->next;
        }
        s = next;
    }
    ast *n = node(lx, AST_FSTRING, at);
    tail = &n->u.list.first;
    for (ast *s = first; s;) {
        ast *stop = s;
        while (stop && stop->kind == AST_STR) {
            stop = stop->next;
        }
        ast *next;
        if (stop == s) {
            next = s->next;
            *tail = s;
            n->slot = s->slot > n->slot ? s->slot : n->slot;
        } else {
            next = stop;
            *tail = s->next == stop ? s : merge(lx, s, stop);
        }
        (*tail)->next = NULL;
        tail = &(*tail)->next;
        n->u.list.n++;
        s = next;
    }
    n->slot++;
    return n;
}
