#include "parser/parse.h"

#include "parser/check.h"
#include "parser/grammar.h"
#include "parser/lexer.h"

#include <stdlib.h>
#include <string.h>

// Offsets are 32 bits, and the parser's own tables are proportional to the text.
#define SOURCE_MAX_BYTES ((size_t)1 << 30)

static loc byte_at(const source *src, uint32_t at, uint32_t len)
{
    return (loc){src, {at, at + len}};
}

// Length of the UTF-8 sequence at p, 0 when it is none (overlong forms and surrogates are none).
static uint32_t utf8_len(const unsigned char *p, const unsigned char *end)
{
    uint32_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    if (n == 0 || n > (size_t)(end - p)) {
        return 0;
    }
    for (uint32_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
               (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : n;
}

// The encoding that a comment in the first two lines names (PEP 263), or NULL.
static const char *declared_encoding(const source *src, arena *mem, loc *at)
{
    const char *p = src->text;
    if (strncmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
    }
    for (int line = 0; line < 2; line++) {
        size_t n = strcspn(p, "\r\n");
        size_t blank = strspn(p, " \t\f");
        if (blank < n && p[blank] != '#') {
            return NULL;
        }
        for (size_t i = blank; i + 7 < n; i++) {
            if (memcmp(p + i, "coding", 6) == 0 && (p[i + 6] == ':' || p[i + 6] == '=')) {
                const char *name = p + i + 7 + strspn(p + i + 7, " \t");
                size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789-_.");
                if (len) {
                    *at = byte_at(src, (uint32_t)(name - src->text), (uint32_t)len);
                    return arena_text(mem, name, len);
                }
            }
        }
        p += n + (p[n] == '\r' && p[n + 1] == '\n') + (p[n] != '\0');
    }
    return NULL;
}

// "UTF_8-sig" and the like.
static bool is_utf8_name(const char *name)
{
    char plain[16];
    size_t n = 0;
    for (; *name && n + 1 < sizeof plain; name++) {
        if (*name != '-' && *name != '_') {
            plain[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name + 32 : *name);
        }
    }
    plain[n] = '\0';
    return strncmp(plain, "utf8", 4) == 0 || strcmp(plain, "ascii") == 0 ||
           strcmp(plain, "usascii") == 0;
}

// The bytes must be text before anything reads them as such.
static bool check_bytes(const source *src, arena *mem, diags *ds)
{
    if (src->len > SOURCE_MAX_BYTES) {
        diag_source_too_large(ds, (loc){src, {0, 0}}, src->len, SOURCE_MAX_BYTES);
        return false;
    }
    const unsigned char *text = (const unsigned char *)src->text, *end = text + src->len;
    const char *nul = memchr(src->text, '\0', src->len);
    if (nul) {
        diag_nul_byte(ds, byte_at(src, (uint32_t)(nul - src->text), 1));
        return false;
    }
    loc at;
    const char *encoding = declared_encoding(src, mem, &at);
    if (encoding && !is_utf8_name(encoding) && src->len && text[0] == 0xef) {  // a UTF-8 mark
        diag_encoding(ds, at, encoding);
        return false;
    }
    for (const unsigned char *p = text; p < end;) {
        if (*p < 0x80) {
            p++;
            continue;
        }
        if (encoding && !is_utf8_name(encoding)) {
            diag_encoding(ds, at, encoding);
            return false;
        }
        uint32_t n = utf8_len(p, end);
        if (n == 0) {
            diag_not_utf8(ds, byte_at(src, (uint32_t)(p - text), 1), *p);
            return false;
        }
        p += n;
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const diag *const *x = a, *const *y = b;
    uint32_t p = (*x)->at.at.lo, q = (*y)->at.at.lo;
    return p < q ? -1 : p > q;
}

// The lexer runs a token ahead and some checks come late; the reader wants the file's order.
// Sorts what follows `tail`, which are few.
static void sort_diags(diags *ds, diag **tail, arena *mem)
{
    size_t n = 0;
    for (diag *d = *tail; d; d = d->next) {
        n++;
    }
    if (n < 2) {
        return;
    }
    diag **all = NEW_N(mem, diag *, n);
    n = 0;
    for (diag *d = *tail; d; d = d->next) {
        all[n++] = d;
    }
    for (size_t i = 1; i < n; i++) {  // insertion sort: stable, nearly sorted input
        diag *d = all[i];
        size_t j = i;
        for (; j && by_place(&all[j - 1], &d) > 0; j--) {
            all[j] = all[j - 1];
        }
        all[j] = d;
    }
    for (size_t i = 0; i < n; i++) {
        *tail = all[i];
        tail = &all[i]->next;
    }
    *tail = NULL;
    ds->tail = tail;
}

static ast *run(const source *src, arena *mem, intern *names, diags *ds, int start)
{
    lexer *lx = NEW(mem, lexer);
    ast *out = NULL;
    lexer_init(lx, src, mem, names, ds, start);
    nki_yyparse(lx, &out);
    if (lx->as_tuple) {
        for (const ast *i = lx->as_tuple->u.list.first; i; i = i->next) {
            if (i->kind == AST_WITHITEM) {
                diag_with_target(ds, lexer_loc(lx, i->at));
                break;
            }
        }
    }
    return lx->too_deep ? NULL : out;  // a tree that is too high must not be walked
}

static void docstring(module_ast *m)
{
    const ast *first = m->body;
    if (first && first->kind == AST_EXPR && first->u.bin.l->kind == AST_STR) {
        m->docstring = first->u.bin.l->u.str.p;
    }
}

bool parse_module(const source *src, arena *mem, intern *names, diags *ds, module_ast *out)
{
    unsigned before = ds->errors;
    diag **tail = ds->tail;
    *out = (module_ast){.src = src};
    if (check_bytes(src, mem, ds)) {
        out->body = run(src, mem, names, ds, T_START_MODULE);
        docstring(out);
        if (ds->errors == before) {
            check_module(out, ds);
        }
        sort_diags(ds, tail, mem);
    }
    return ds->errors == before;
}

bool parse_expression(const source *src, arena *mem, intern *names, diags *ds, ast **out)
{
    unsigned before = ds->errors;
    diag **tail = ds->tail;
    *out = check_bytes(src, mem, ds) ? run(src, mem, names, ds, T_START_EXPRESSION) : NULL;
    if (ds->errors == before && (*out)->kind == AST_STARRED) {
        diag_lone_starred(ds, (loc){src, (*out)->at});
    }
    sort_diags(ds, tail, mem);
    if (ds->errors != before) {
        *out = NULL;
    }
    return ds->errors == before;
}
