// Bytes to tokens. Layout (NEWLINE, INDENT, DEDENT) follows the Python 3.12 reference,
// sections 2.1.5 to 2.1.8; f-strings follow section 2.4.3 through a stack of modes.
#include "parser/lexer.h"

#include "parser/grammar.h"
#include "parser/literal.h"

#include <stdio.h>
#include <string.h>

void lexer_init(lexer *lx, const source *src, arena *mem, intern *names, diags *ds, int start)
{
    memset(lx, 0, sizeof *lx);
    lx->src = src;
    lx->mem = mem;
    lx->names = names;
    lx->ds = ds;
    lx->at = src->text;
    lx->start = start;
    lx->expression = start == T_START_EXPRESSION;
    lx->bol = !lx->expression;
    if (src->len >= 3 && memcmp(src->text, "\xef\xbb\xbf", 3) == 0) {
        lx->at += 3;
    }
}

bool lexer_is_keyword(int kind)
{
    return kind >= T_FALSE && kind <= T_YIELD;
}

const char *lexer_unicode_name(const char *YYCURSOR)
{
    const char *YYMARKER;
    /*!include:re2c "unicode_categories.re" */
    /*!re2c
        re2c:define:YYCTYPE = "unsigned char";
        re2c:yyfill:enable = 0;
        re2c:flags:utf-8 = 1;
        re2c:flags:case-ranges = 0;

        // Other_ID_Start and Other_ID_Continue are listed by code point.
        start = L | Nl | [_\u1885\u1886\u2118\u212e\u309b\u309c];
        more  = start | Mn | Mc | Nd | Pc | [\u00b7\u0387\u1369-\u1371\u19da];

        *           { return NULL; }
        start more* { return YYCURSOR; }
    */
}

void lexer_too_deep(lexer *lx, span at, int limit, const char *what)
{
    if (at.lo >= lx->too_deep) {
        diag_nesting_too_deep(lx->ds, lexer_loc(lx, at), limit, what);
    }
    // One report for what belongs together: the rest of this line is not looked at again.
    const char *p = strpbrk(lx->src->text + at.hi, "\r\n");
    uint32_t until = p ? (uint32_t)(p - lx->src->text) : lx->src->len;
    lx->too_deep = until > lx->too_deep ? until : lx->too_deep;
    lx->line_error = true;
}

void lexer_give_up(lexer *lx)
{
    lx->modes = 0;
    lx->nest = lx->nest_over = 0;
}

static uint32_t offset(const lexer *lx, const char *p)
{
    return (uint32_t)(p - lx->src->text);
}

static bool at_end(const lexer *lx, const char *p)
{
    return p == lx->src->text + lx->src->len;
}

static const char *skip_newline(const char *p)
{
    return p + (p[0] == '\r' && p[1] == '\n' ? 2 : 1);
}

// Space and line joins.
static const char *skip_space(const char *p)
{
    for (;;) {
        if (*p == ' ' || *p == '\t' || *p == '\f') {
            p++;
        } else if (*p == '\\' && (p[1] == '\n' || p[1] == '\r')) {
            p = skip_newline(p + 1);
        } else {
            return p;
        }
    }
}

static bool is_name_byte(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

// The word at p is one of a space-separated list.
static bool word_in(const char *p, const char *list)
{
    size_t n = 0;
    while (is_name_byte(p[n])) {
        n++;
    }
    for (const char *w = list; n && *w;) {
        size_t k = strcspn(w, " ");
        if (k == n && memcmp(w, p, n) == 0) {
            return true;
        }
        w += k + (w[k] == ' ');
    }
    return false;
}

// --- strings ---

// p is at the first quote. Returns the byte after the string, or NULL when it is not closed;
// *stop is then where reading should go on.
static const char *string_end(const lexer *lx, const char *p, bool *triple, const char **stop)
{
    char q = *p++;
    *triple = p[0] == q && p[1] == q;
    if (*triple) {
        p += 2;
    }
    for (;;) {
        if (*p == q) {
            if (!*triple) {
                return p + 1;
            }
            if (p[1] == q && p[2] == q) {
                return p + 3;
            }
            p++;
        } else if (*p == '\\' && !at_end(lx, p + 1)) {
            p = p[1] == '\r' ? skip_newline(p + 1) : p + 2;
        } else if (at_end(lx, p) || ((*p == '\n' || *p == '\r') && !*triple)) {
            *stop = p;
            return NULL;
        } else {
            p++;
        }
    }
}

static lex_mode *top_mode(lexer *lx)
{
    return lx->modes ? &lx->mode[lx->modes - 1] : NULL;
}

// Gives up on all open f-strings: their text is unreliable.
static void drop_modes(lexer *lx)
{
    if (lx->modes) {
        lx->nest = lx->mode[0].nest;
        lx->modes = 0;
    }
}

static void unterminated(lexer *lx, uint32_t lo, char quote, bool triple, const char *stop)
{
    span at = {lo, triple ? lo + 1 : offset(lx, stop)};
    lx->line_error = true;
    // The quote that seems to open a string may be the one that ends the f-string around it.
    for (int i = lx->modes; i > 1; i--) {
        const lex_mode *m = &lx->mode[i - 1];
        if (m->kind == MODE_FIELD && m[-1].kind == MODE_FSTRING && m[-1].quote == quote &&
            lo > m->at) {
            diag_fstring_field(lx->ds, lexer_loc(lx, (span){m->at, m->at + 1}),
                               "is not closed by '}' before the string ends");
            drop_modes(lx);
            return;
        }
    }
    if (triple) {
        while (lx->src->text[at.hi - 1] != quote) {
            at.hi++;
        }
        at.hi += 2;
        diag_unterminated_triple(lx->ds, lexer_loc(lx, at), quote, quote, quote);
    } else {
        diag_unterminated_string(lx->ds, lexer_loc(lx, at), quote);
    }
    drop_modes(lx);
}

static int string_token(lexer *lx, NKI_YYSTYPE *val, const char *tok, const char *quote)
{
    bool raw = false, triple;
    ast_kind kind = AST_STR;
    for (const char *p = tok; p < quote; p++) {
        raw |= *p == 'r' || *p == 'R';
        if (*p == 'b' || *p == 'B') {
            kind = AST_BYTES;
        }
    }
    const char *stop, *end = string_end(lx, quote, &triple, &stop);
    if (!end) {
        unterminated(lx, offset(lx, tok), *quote, triple, stop);
        lx->at = stop;
        return T_ERROR;
    }
    int q = triple ? 3 : 1;
    lx->at = end;
    val->T_STRING = literal_string(lx, kind, (span){offset(lx, tok), offset(lx, end)}, quote + q,
                                   end - q, raw, false);
    return T_STRING;
}

// The rest of the line has no meaning then.
static int fstring_too_deep(lexer *lx, const char *at)
{
    lexer_too_deep(lx, (span){offset(lx, at), offset(lx, at) + 1}, LEX_FSTRING_MAX, "f-strings");
    lexer_give_up(lx);
    lx->at = at + strcspn(at, "\r\n");
    return T_ERROR;
}

static int fstring_begin(lexer *lx, const char *tok, const char *quote)
{
    if (lx->modes + 2 > 2 * LEX_FSTRING_MAX) {
        return fstring_too_deep(lx, tok);
    }
    lex_mode *m = &lx->mode[lx->modes++];
    *m = (lex_mode){.kind = MODE_FSTRING, .at = offset(lx, tok), .nest = lx->nest, .quote = *quote};
    m->triple = quote[1] == *quote && quote[2] == *quote;
    for (const char *p = tok; p < quote; p++) {
        m->raw |= *p == 'r' || *p == 'R';
    }
    lx->at = quote + (m->triple ? 3 : 1);
    return T_FSTRING_START;
}

static bool push_bracket(lexer *lx, const char *tok, char open)
{
    if (lx->nest == LEX_NEST_MAX) {
        lexer_too_deep(lx, (span){offset(lx, tok), offset(lx, tok) + 1}, LEX_NEST_MAX, "brackets");
        lx->nest_over++;
        return false;
    }
    lx->bracket[lx->nest++] = (lex_bracket){offset(lx, tok), open};
    return true;
}

// The literal text of an f-string, or of a format spec, up to a brace or the end.
static int fstring_text(lexer *lx, NKI_YYSTYPE *val)
{
    lex_mode *m = top_mode(lx);
    const lex_mode *owner = m;
    while (owner->kind != MODE_FSTRING) {
        owner--;
    }
    bool spec = m->kind == MODE_SPEC;
    const char *tok = lx->at, *p = tok;
    for (;;) {
        if (at_end(lx, p) || (!owner->triple && (*p == '\n' || *p == '\r'))) {
            unterminated(lx, owner->at, owner->quote, owner->triple, p);
            lx->at = p;
            return T_ERROR;
        }
        if (*p == owner->quote && (!owner->triple || (p[1] == *p && p[2] == *p))) {
            break;
        }
        if (*p == '{' && (spec || p[1] != '{')) {
            break;
        }
        if (*p == '}' && (spec || p[1] != '}')) {
            break;
        }
        if (*p == '\\' && !at_end(lx, p + 1)) {
            if (owner->raw ? p[1] == '{' || p[1] == '}' : p[1] == '{') {
                p++;
            } else if (!owner->raw && p[1] == 'N' && p[2] == '{') {
                p += 3;
                while (*p != '}' && *p != owner->quote && *p != '\n' && !at_end(lx, p)) {
                    p++;
                }
                p += *p == '}';
            } else {
                p = p[1] == '\r' ? skip_newline(p + 1) : p + 2;
            }
        } else {
            p += *p == '{' || *p == '}' ? 2 : 1;
        }
    }
    if (p > tok) {
        lx->at = p;
        val->T_FSTRING_TEXT = literal_string(lx, AST_STR, (span){offset(lx, tok), offset(lx, p)},
                                             tok, p, owner->raw, !spec);
        return T_FSTRING_TEXT;
    }
    lx->at = p + 1;
    if (*p == '{') {
        if (lx->modes + 2 > 2 * LEX_FSTRING_MAX) {
            return fstring_too_deep(lx, p);
        }
        if (!push_bracket(lx, p, '{')) {
            lx->nest_over--;
            drop_modes(lx);
            return T_ERROR;
        }
        lx->mode[lx->modes++] = (lex_mode){.kind = MODE_FIELD, .at = offset(lx, p), .nest = lx->nest};
        return '{';
    }
    if (*p == '}' && spec) {
        lx->modes -= 2;  // the spec and its field
        lx->nest--;
        return '}';
    }
    if (*p == '}') {
        diag_fstring_brace(lx->ds, lexer_loc(lx, (span){offset(lx, p), offset(lx, p) + 1}));
        lx->line_error = true;
        return T_ERROR;
    }
    if (spec) {
        diag_fstring_field(lx->ds, lexer_loc(lx, (span){m[-1].at, m[-1].at + 1}),
                           "is not closed by '}' before the string ends");
        lx->line_error = true;
        lx->at = p + (owner->triple ? 3 : 1);
        lx->nest = owner->nest;
        lx->modes = (int)(owner - lx->mode);
        return T_ERROR;
    }
    lx->at = p + (m->triple ? 3 : 1);
    lx->modes--;
    return T_FSTRING_END;
}

// --- layout ---

static int open_block(lexer *lx, span at, lex_indent level)
{
    bool expected = lx->now.kind == T_NEWLINE && lx->prev[0].kind == ':';
    if (lx->depth == LEX_INDENT_MAX) {
        lexer_too_deep(lx, at, LEX_INDENT_MAX, "blocks");
        lx->at = lx->src->text + lx->src->len;  // what is below has no meaning without them
        return T_ERROR;
    }
    level.phantom = !expected;
    level.cases = expected && lx->cases_next;
    lx->cases_next = false;
    lx->indent[++lx->depth] = level;
    if (expected) {
        return T_INDENT;
    }
    if (!lx->line_error) {
        diag_unexpected_indent(lx->ds, lexer_loc(lx, at));
    }
    return 0;
}

// Leaves the blocks that end here. Reports once and reads on as if the indentation had
// matched the outer block.
static void close_blocks(lexer *lx, span at, lex_indent level)
{
    while (lx->depth && level.col < lx->indent[lx->depth].col) {
        lx->pending += !lx->indent[lx->depth].phantom;
        lx->depth--;
    }
    if (level.col != lx->indent[lx->depth].col) {
        diag_bad_dedent(lx->ds, lexer_loc(lx, at));
        level.phantom = true;
        level.cases = lx->indent[lx->depth].cases;
        lx->indent[++lx->depth] = level;
    } else if (level.altcol != lx->indent[lx->depth].altcol) {
        diag_tab_mix(lx->ds, lexer_loc(lx, at));
    }
}

// At the beginning of a logical line: skips lines that hold nothing, compares the
// indentation. Returns a token or 0.
static int begin_line(lexer *lx)
{
    lex_indent level;
    const char *p, *line;
    for (;;) {
        uint32_t col = 0, altcol = 0, joined_col = 0, joined_altcol = 0;
        for (line = p = lx->at;; p++) {
            if (*p == ' ') {
                col++, altcol++;
            } else if (*p == '\t') {
                col = (col / 8 + 1) * 8, altcol++;
            } else if (*p == '\f') {
                col = altcol = 0;
            } else if (*p == '\\' && (p[1] == '\n' || p[1] == '\r')) {
                if (!joined_col) {
                    joined_col = col, joined_altcol = altcol;
                }
                const char *next = skip_newline(p + 1);
                if (at_end(lx, next)) {
                    break;  // an error, for the token after the indentation
                }
                p = next - 1;
                line = next;
                col = altcol = 0;
            } else {
                break;
            }
        }
        level = (lex_indent){.col = joined_col ? joined_col : col,
                             .altcol = joined_col ? joined_altcol : altcol};
        if (*p == '#') {
            p += strcspn(p, "\r\n");
        }
        if (*p != '\n' && *p != '\r') {
            break;
        }
        lx->at = skip_newline(p);
    }
    lx->at = p;
    if (at_end(lx, p)) {
        return 0;
    }
    bool was_error = lx->line_error;
    lx->bol = false;
    span at = {offset(lx, line), offset(lx, p) + (line == p)};
    const lex_indent *cur = &lx->indent[lx->depth];
    int token = 0;
    if (level.col > cur->col) {
        if (level.altcol <= cur->altcol) {
            diag_tab_mix(lx->ds, lexer_loc(lx, at));
        }
        token = open_block(lx, at, level);
    } else {
        lx->cases_next = false;
        if (level.col < cur->col) {
            close_blocks(lx, at, level);
        } else if (level.altcol != cur->altcol) {
            diag_tab_mix(lx->ds, lexer_loc(lx, at));
        }
    }
    lx->line_error = was_error && token == T_ERROR;
    lx->head = (lex_token){0};
    lx->colon = false;
    lx->lambdas = 0;
    if (!token && lx->pending) {
        lx->pending--;
        token = T_DEDENT;
    }
    return token;
}

bool lexer_statement_follows(const char *p)
{
    p = skip_space(p);
    return word_in(p, "assert async break class continue def del except finally global import "
                      "nonlocal pass raise return try while with") &&
           (!word_in(p, "async") || word_in(skip_space(p + 5), "def with"));
}

static void unclosed(lexer *lx)
{
    const lex_bracket *b = &lx->bracket[lx->nest - 1];
    diag_unclosed_bracket(lx->ds, lexer_loc(lx, (span){b->at, b->at + 1}), b->open);
    lx->line_error = true;
    lexer_give_up(lx);
}

static bool is_compound(int kind)
{
    switch (kind) {
    case T_IF:
    case T_ELIF:
    case T_ELSE:
    case T_WHILE:
    case T_FOR:
    case T_TRY:
    case T_EXCEPT:
    case T_FINALLY:
    case T_WITH:
    case T_DEF:
    case T_CLASS:
    case T_ASYNC:
    case T_MATCH:
    case T_CASE: return true;
    default: return false;
    }
}

// The end of a logical line, at p. The newline itself is consumed by begin_line's caller.
static int end_line(lexer *lx, const char *p)
{
    if (is_compound(lx->head.kind) && !lx->colon && !lx->line_error) {
        lx->synth_colon = true;
        lx->at = p;
        return ':';
    }
    if (lx->now.kind == ':') {
        lx->block_head = lx->head;
    }
    lx->bol = true;
    lx->at = at_end(lx, p) ? p : skip_newline(p);
    return T_NEWLINE;
}

// --- soft keywords ---

static bool statement_start(const lexer *lx)
{
    switch (lx->now.kind) {
    case T_NEWLINE:
    case T_INDENT:
    case T_DEDENT:
    case T_START_MODULE:
    case ';': return lx->nest == 0;
    default: return false;
    }
}

static const char *const operator_words = "and else for if in is not or";

// `match` begins a match statement when an operand follows that cannot continue an
// expression, or when the logical line ends with a colon outside brackets.
static bool is_match(const lexer *lx, const char *p)
{
    p = skip_space(p);
    if (*p == '"' || *p == '\'' || (is_name_byte(*p) && !word_in(p, operator_words))) {
        return true;
    }
    if (!*p || strchr("=,)]}:;\n\r#%/<>&|^@!", *p) ||
        (*p == '.' && !(p[1] >= '0' && p[1] <= '9') && strncmp(p, "...", 3) != 0)) {
        return false;
    }
    int depth = 0;
    char last = 0;
    while (!at_end(lx, p)) {
        if (*p == '"' || *p == '\'') {
            bool triple;
            const char *stop, *end = string_end(lx, p, &triple, &stop);
            if (!end) {
                return false;
            }
            p = end;
            last = 's';
            continue;
        }
        if (*p == '#') {
            p += strcspn(p, "\r\n");
            continue;
        }
        if (*p == '\n' || *p == '\r') {
            if (depth <= 0 || lexer_statement_follows(p + 1)) {
                break;
            }
        } else if (*p == '\\' && (p[1] == '\n' || p[1] == '\r')) {
            p = skip_newline(p + 1);
            continue;
        } else if (*p != ' ' && *p != '\t' && *p != '\f') {
            depth += (*p == '(' || *p == '[' || *p == '{') - (*p == ')' || *p == ']' || *p == '}');
            last = depth ? 'x' : *p;
        }
        p++;
    }
    return last == ':';
}

static bool is_type(const char *p)
{
    p = skip_space(p);
    if (!is_name_byte(*p) || (*p >= '0' && *p <= '9') || word_in(p, operator_words)) {
        return false;
    }
    while (is_name_byte(*p)) {
        p++;
    }
    p = skip_space(p);
    return *p == '[' || (*p == '=' && p[1] != '=');
}

static int name_token(lexer *lx, NKI_YYSTYPE *val, const char *tok, const char *end)
{
    size_t n = (size_t)(end - tok);
    lx->at = end;
    if (n == 5 && memcmp(tok, "match", 5) == 0 && statement_start(lx) && is_match(lx, end)) {
        lx->cases_next = true;
        return T_MATCH;
    }
    if (n == 4 && memcmp(tok, "case", 4) == 0 && statement_start(lx) &&
        lx->indent[lx->depth].cases) {
        return T_CASE;
    }
    if (n == 4 && memcmp(tok, "type", 4) == 0 &&
        (statement_start(lx) || (lx->now.kind == ':' && !lx->nest)) && is_type(end)) {
        return T_TYPE;
    }
    val->T_NAME = intern_add(lx->names, tok, n);
    return T_NAME;
}

// --- single tokens ---

// A number must not run into a name, except for a keyword operator: "1if x else y".
static int number_token(lexer *lx, NKI_YYSTYPE *val, const char *tok, const char *end)
{
    lx->at = end;
    if (is_name_byte(*end) && !word_in(end, operator_words)) {
        while (is_name_byte(*lx->at)) {
            lx->at++;
        }
        span at = {offset(lx, tok), offset(lx, lx->at)};
        diag_bad_number(lx->ds, lexer_loc(lx, at), (int)(lx->at - tok), tok);
        lx->line_error = true;
        return T_ERROR;
    }
    val->T_NUMBER = literal_number(lx, (span){offset(lx, tok), offset(lx, end)});
    return T_NUMBER;
}

// The depth after a bracket that does not match the innermost one: when it matches one further
// out, those between were forgotten; otherwise it is itself a slip for the innermost.
static int closes_outer(const lexer *lx, int floor, char close)
{
    char open = close == ')' ? '(' : close == ']' ? '[' : '{';
    for (int i = lx->nest; i > floor; i--) {
        if (lx->bracket[i - 1].open == open) {
            return i - 1;
        }
    }
    return lx->nest - 1;
}

static int close_bracket(lexer *lx, const char *tok, char close)
{
    span at = {offset(lx, tok), offset(lx, tok) + 1};
    lx->at = tok + 1;
    if (lx->nest_over) {
        lx->nest_over--;
        return T_ERROR;
    }
    lex_mode *m = top_mode(lx);
    if (!lx->nest && lx->line_error) {
        return T_ERROR;
    }
    if (!lx->nest) {
        diag_unmatched_bracket(lx->ds, lexer_loc(lx, at), close);
        lx->line_error = true;
        return T_ERROR;
    }
    lex_bracket b = lx->bracket[lx->nest - 1];
    char want = b.open == '(' ? ')' : b.open == '[' ? ']' : '}';
    bool field = m && lx->nest == m->nest;
    if (close != want) {
        if (!lx->line_error) {
            diag *d = diag_mismatched_bracket(lx->ds, lexer_loc(lx, at), close, b.open);
            diag_note_add(lx->ds, d, lexer_loc(lx, (span){b.at, b.at + 1}), "'%c' was opened here",
                          b.open);
            lx->line_error = true;
        }
        if (m && close == '}') {
            lx->nest = m->nest - 1;
            lx->modes--;
        } else if (!field) {
            lx->nest = closes_outer(lx, m ? m->nest : 0, close);
        }
        return T_ERROR;
    }
    lx->nest--;
    lx->modes -= field;
    return close;
}

static int bad_character(lexer *lx, const char *tok)
{
    unsigned char c = (unsigned char)*tok;
    char spelling[16];
    int n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (c < ' ' || c == 127) {
        snprintf(spelling, sizeof spelling, "\\x%02x", c);
    } else {
        snprintf(spelling, sizeof spelling, "%.*s", n, tok);
    }
    lx->at = tok + n;
    diag *d = diag_bad_character(
        lx->ds, lexer_loc(lx, (span){offset(lx, tok), offset(lx, lx->at)}), spelling);
    if (c == '!') {
        diag_help(lx->ds, d, "write 'not' for negation");
    } else if (strstr("\u2018 \u2019 \u201c \u201d", spelling)) {
        diag_help(lx->ds, d, "write a plain quote, ' or \"");
    } else if (strstr("\u2013 \u2014 \u2212", spelling)) {
        diag_help(lx->ds, d, "write a plain minus sign, -");
    }
    lx->line_error = true;
    return T_ERROR;
}

static int lex(lexer *lx, NKI_YYSTYPE *val, const char **token)
{
    const char *tok = *token = lx->at;
    if (lx->start) {
        int kind = lx->start;
        lx->start = 0;
        return kind;
    }
    if (lx->synth_colon) {
        lx->synth_colon = false;
        if (!lx->line_error) {
            span at = {offset(lx, tok), offset(lx, tok) + 1};
            diag_missing_colon(lx->ds, lexer_loc(lx, at), (int)(lx->head.at.hi - lx->head.at.lo),
                               lx->src->text + lx->head.at.lo);
            lx->line_error = true;
        }
        lx->colon = true;
    }
    if (lx->pending) {
        lx->pending--;
        return T_DEDENT;
    }
    if (lx->owed_newline) {
        lx->owed_newline = false;
        lx->bol = true;
        return T_NEWLINE;
    }
    const lex_mode *m = top_mode(lx);
    if (m && m->kind != MODE_FIELD) {
        return fstring_text(lx, val);
    }
    if (lx->bol && !lx->nest) {
        int kind = begin_line(lx);
        if (kind) {
            *token = lx->at;
            return kind;
        }
    }
    const char *YYCURSOR = lx->at, *YYMARKER;
    for (;;) {
        tok = *token = YYCURSOR;
#define TOKEN(kind) do { lx->at = YYCURSOR; return (kind); } while (0)
        /*!re2c
            re2c:flags:utf-8 = 0;

            nl      = "\r\n" | "\n" | "\r";
            digits  = [0-9] ("_"? [0-9])*;
            exp     = [eE] [+-]? digits;
            float   = digits exp | (digits "." digits? | "." digits) exp?;
            quote   = ['"];

            *        { return bad_character(lx, tok); }
            "\x00"   {
                         lx->at = tok;
                         if (lx->nest && !lx->expression) { unclosed(lx); lx->owed_newline = true; return T_ERROR; }
                         if (lx->nest) { unclosed(lx); return T_ERROR; }
                         if (lx->expression) return T_EOF;
                         if (!lx->bol) return end_line(lx, tok);
                         while (lx->depth && lx->indent[lx->depth].phantom) lx->depth--;
                         if (lx->depth) { lx->depth--; return T_DEDENT; }
                         return T_EOF;
                     }
            [ \t\f]+ { continue; }
            "#" [^\n\r\x00]* { continue; }
            "\\" nl  {
                         if (!at_end(lx, YYCURSOR)) continue;
                         span at = {offset(lx, tok), offset(lx, tok) + 1};
                         diag_line_join(lx->ds, lexer_loc(lx, at));
                         lx->line_error = true;
                         TOKEN(T_ERROR);
                     }
            "\\"     {
                         span at = {offset(lx, tok), offset(lx, tok) + 1};
                         diag_line_join(lx->ds, lexer_loc(lx, at));
                         lx->line_error = true;
                         TOKEN(T_ERROR);
                     }
            nl       {
                         if (lx->expression) continue;
                         if (!lx->nest) return end_line(lx, tok);
                         if (!lx->modes && lexer_statement_follows(YYCURSOR)) {
                             unclosed(lx);
                             lx->owed_newline = true;
                             TOKEN(T_ERROR);
                         }
                         continue;
                     }

            [rRuUbB]? quote | ([rR][bB] | [bB][rR]) quote { return string_token(lx, val, tok, YYCURSOR - 1); }
            ([fF] | [fF][rR] | [rR][fF]) quote { return fstring_begin(lx, tok, YYCURSOR - 1); }

            "0" ("_"? "0")* | [1-9] ("_"? [0-9])* | "0" [xX] ("_"? [0-9a-fA-F])+
            | "0" [oO] ("_"? [0-7])+ | "0" [bB] ("_"? [01])+ | float | (float | digits) [jJ]
                     { return number_token(lx, val, tok, YYCURSOR); }
            "0" [0-9_]+ {
                         lx->at = YYCURSOR;
                         span at = {offset(lx, tok), offset(lx, YYCURSOR)};
                         diag *d = diag_bad_number(lx->ds, lexer_loc(lx, at), (int)(YYCURSOR - tok), tok);
                         diag_help(lx->ds, d, "an octal number begins with 0o; a decimal one has no leading zeros");
                         lx->line_error = true;
                         return T_ERROR;
                     }

            "False"  { TOKEN(T_FALSE); }   "None"     { TOKEN(T_NONE); }
            "True"   { TOKEN(T_TRUE); }    "and"      { TOKEN(T_AND); }
            "as"     { TOKEN(T_AS); }      "assert"   { TOKEN(T_ASSERT); }
            "async"  { TOKEN(T_ASYNC); }   "await"    { TOKEN(T_AWAIT); }
            "break"  { TOKEN(T_BREAK); }   "class"    { TOKEN(T_CLASS); }
            "continue" { TOKEN(T_CONTINUE); } "def"   { TOKEN(T_DEF); }
            "del"    { TOKEN(T_DEL); }     "elif"     { TOKEN(T_ELIF); }
            "else"   { TOKEN(T_ELSE); }    "except"   { TOKEN(T_EXCEPT); }
            "finally" { TOKEN(T_FINALLY); } "for"     { TOKEN(T_FOR); }
            "from"   { TOKEN(T_FROM); }    "global"   { TOKEN(T_GLOBAL); }
            "if"     { TOKEN(T_IF); }      "import"   { TOKEN(T_IMPORT); }
            "in"     { TOKEN(T_IN); }      "is"       { TOKEN(T_IS); }
            "lambda" { TOKEN(T_LAMBDA); }  "nonlocal" { TOKEN(T_NONLOCAL); }
            "not"    { TOKEN(T_NOT); }     "or"       { TOKEN(T_OR); }
            "pass"   { TOKEN(T_PASS); }    "raise"    { TOKEN(T_RAISE); }
            "return" { TOKEN(T_RETURN); }  "try"      { TOKEN(T_TRY); }
            "while"  { TOKEN(T_WHILE); }   "with"     { TOKEN(T_WITH); }
            "yield"  { TOKEN(T_YIELD); }

            [A-Za-z_] [A-Za-z_0-9]* {
                         if ((unsigned char)*YYCURSOR < 0x80) return name_token(lx, val, tok, YYCURSOR);
                         const char *end = lexer_unicode_name(tok);
                         return name_token(lx, val, tok, end ? end : YYCURSOR);
                     }
            [\x80-\xff] {
                         const char *end = lexer_unicode_name(tok);
                         return end ? name_token(lx, val, tok, end) : bad_character(lx, tok);
                     }

            [([{]    { TOKEN(push_bracket(lx, tok, *tok) ? *tok : T_ERROR); }
            [)\]}]   { return close_bracket(lx, tok, *tok); }

            ":"      {
                         lex_mode *f = top_mode(lx);
                         lx->at = YYCURSOR;
                         if (f && lx->nest == f->nest) {
                             lx->mode[lx->modes++] = (lex_mode){.kind = MODE_SPEC, .at = offset(lx, tok), .nest = lx->nest};
                         }
                         return ':';
                     }
            ":="     {
                         lex_mode *f = top_mode(lx);
                         if (f && lx->nest == f->nest) {
                             lx->at = YYCURSOR - 1;
                             lx->mode[lx->modes++] = (lex_mode){.kind = MODE_SPEC, .at = offset(lx, tok), .nest = lx->nest};
                             return ':';
                         }
                         TOKEN(T_WALRUS);
                     }
            "!"      {
                         lex_mode *f = top_mode(lx);
                         if (f && lx->nest == f->nest) TOKEN('!');
                         return bad_character(lx, tok);
                     }
            [,;.=@~+*/%&|^<>-] { TOKEN(*tok); }
            "->"     { TOKEN(T_ARROW); }    "..."    { TOKEN(T_ELLIPSIS); }
            "=="     { TOKEN(T_EQ); }       "!="     { TOKEN(T_NE); }
            "<="     { TOKEN(T_LE); }       ">="     { TOKEN(T_GE); }
            "<<"     { TOKEN(T_LSHIFT); }   ">>"     { TOKEN(T_RSHIFT); }
            "**"     { TOKEN(T_POW); }      "//"     { TOKEN(T_FLOORDIV); }
            "+="  { val->T_AUG = OP_ADD; TOKEN(T_AUG); }      "-="  { val->T_AUG = OP_SUB; TOKEN(T_AUG); }
            "*="  { val->T_AUG = OP_MUL; TOKEN(T_AUG); }      "/="  { val->T_AUG = OP_DIV; TOKEN(T_AUG); }
            "//=" { val->T_AUG = OP_FLOORDIV; TOKEN(T_AUG); } "%="  { val->T_AUG = OP_MOD; TOKEN(T_AUG); }
            "**=" { val->T_AUG = OP_POW; TOKEN(T_AUG); }      "@="  { val->T_AUG = OP_MATMUL; TOKEN(T_AUG); }
            "<<=" { val->T_AUG = OP_LSHIFT; TOKEN(T_AUG); }   ">>=" { val->T_AUG = OP_RSHIFT; TOKEN(T_AUG); }
            "&="  { val->T_AUG = OP_BITAND; TOKEN(T_AUG); }   "|="  { val->T_AUG = OP_BITOR; TOKEN(T_AUG); }
            "^="  { val->T_AUG = OP_BITXOR; TOKEN(T_AUG); }
        */
    }
}

int nki_yylex(NKI_YYSTYPE *val, span *at, lexer *lx)
{
    const char *tok;
    int kind = lex(lx, val, &tok);
    bool layout = kind == T_DEDENT || kind == T_INDENT;
    *at = (span){offset(lx, tok), offset(lx, lx->at)};
    if (kind == T_NEWLINE) {
        at->hi = at->lo + 1;
    } else if (kind == T_DEDENT) {
        *at = (span){lx->last_hi, lx->last_hi};
    } else if (!layout && kind != T_EOF) {
        lx->last_hi = at->hi;
    }
    if (!lx->head.kind && !layout && kind != T_NEWLINE) {
        lx->head = (lex_token){kind, *at};
    }
    if (!lx->nest) {
        if (kind == T_LAMBDA) {
            lx->lambdas++;
        } else if (kind == ':' && lx->lambdas) {
            lx->lambdas--;
        } else if (kind == ':' && !lx->synth_colon) {
            lx->colon = true;
        }
    }
    lx->prev[2] = lx->prev[1];
    lx->prev[1] = lx->prev[0];
    lx->prev[0] = lx->now;
    lx->now = (lex_token){kind, *at};
    return kind;
}
