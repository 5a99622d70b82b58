#include "parser/slips.h"

#include "parser/grammar.h"

#include <stdio.h>
#include <string.h>

static const char *text_at(const lexer *lx, span at)
{
    return lx->src->text + at.lo;
}

static bool token_is(const lexer *lx, const lex_token *t, const char *word)
{
    size_t n = t->at.hi - t->at.lo;
    return n == strlen(word) && memcmp(text_at(lx, t->at), word, n) == 0;
}

// An operand may end, or begin, with this token.
static bool ends_operand(int kind)
{
    switch (kind) {
    case T_NAME:
    case T_NUMBER:
    case T_STRING:
    case T_FSTRING_END:
    case T_NONE:
    case T_TRUE:
    case T_FALSE:
    case T_ELLIPSIS:
    case ')':
    case ']':
    case '}': return true;
    default: return false;
    }
}

static bool begins_operand(int kind)
{
    switch (kind) {
    case T_NAME:
    case T_NUMBER:
    case T_STRING:
    case T_FSTRING_START:
    case T_NONE:
    case T_TRUE:
    case T_FALSE:
    case T_LAMBDA:
    case '{': return true;
    default: return false;
    }
}

// After these a name is expected, never an expression.
static bool wants_name(int kind)
{
    switch (kind) {
    case T_DEF:
    case T_CLASS:
    case T_IMPORT:
    case T_GLOBAL:
    case T_NONLOCAL:
    case T_AS:
    case '.': return true;
    default: return false;
    }
}

// What the text after an error says of the brackets that are open there.
typedef struct rest {
    enum { REST_CLOSED, REST_NEVER, REST_MISMATCH } kind;
    lex_bracket open;  // MISMATCH: the two that do not fit
    uint32_t close_at;
} rest;

static const char *skip_string(const char *p)
{
    char q = *p;
    bool triple = p[1] == q && p[2] == q;
    p += triple ? 3 : 1;
    while (*p && !(*p == q && (!triple || (p[1] == q && p[2] == q))) &&
           (triple || (*p != '\n' && *p != '\r'))) {
        p += *p == '\\' && p[1] ? 2 : 1;
    }
    return p + (!*p ? 0 : triple ? 3 : 1);
}

// Reads on until the innermost open bracket is closed. Strings are skipped without care for
// prefixes; the answer only chooses a sentence.
static rest read_on(const lexer *lx)
{
    lex_bracket open[LEX_NEST_MAX + 1] = {lx->bracket[lx->nest - 1]};
    int depth = 1;
    const char *p = lx->at;
    while (*p) {
        if (*p == '#') {
            p += strcspn(p, "\r\n");
        } else if (*p == '"' || *p == '\'') {
            p = skip_string(p);
        } else if (*p == '(' || *p == '[' || *p == '{') {
            if (depth == LEX_NEST_MAX) {
                break;
            }
            open[depth++] = (lex_bracket){(uint32_t)(p - lx->src->text), *p};
            p++;
        } else if (*p == ')' || *p == ']' || *p == '}') {
            lex_bracket o = open[--depth];
            if (*p != (o.open == '(' ? ')' : o.open == '[' ? ']' : '}')) {
                return (rest){REST_MISMATCH, o, (uint32_t)(p - lx->src->text)};
            }
            if (depth == 0) {
                return (rest){.kind = REST_CLOSED};
            }
            p++;
        } else if ((*p == '\n' || *p == '\r') && lexer_statement_follows(p + 1)) {
            break;
        } else {
            p++;
        }
    }
    return (rest){.kind = REST_NEVER};
}

// The field of an f-string in single quotes that runs into a later line: allowed, but when it
// makes no sense there, its brace was forgotten.
static bool field_unclosed(lexer *lx, const slip *s)
{
    const lex_mode *m = &lx->mode[lx->modes - 1];
    if (m->kind != MODE_FIELD || m[-1].triple ||
        !memchr(lx->src->text + m->at, '\n', s->at.lo - m->at)) {
        return false;
    }
    diag_fstring_field(lx->ds, lexer_loc(lx, (span){m->at, m->at + 1}),
                       "is not closed by '}' before the line ends");
    lexer_give_up(lx);
    return true;
}

// A bracket that was forgotten explains the error better than the place where it showed.
static bool unclosed(lexer *lx, const slip *s)
{
    if (lx->modes) {
        return field_unclosed(lx, s);
    }
    if (!lx->nest || lx->expression || lx->ds->errors >= lx->ds->limit) {
        return false;  // past the limit nobody sees the message, and reading on costs time
    }
    rest r = read_on(lx);
    if (r.kind == REST_CLOSED) {
        return false;
    }
    const lex_bracket *b = &lx->bracket[lx->nest - 1];
    if (r.kind == REST_NEVER) {
        diag *d = diag_unclosed_bracket(lx->ds, lexer_loc(lx, (span){b->at, b->at + 1}), b->open);
        diag_note_add(lx->ds, d, lexer_loc(lx, s->at),
                      "what follows it makes no sense from here on");
        lexer_give_up(lx);
        return true;
    }
    diag *d = diag_mismatched_bracket(lx->ds, lexer_loc(lx, (span){r.close_at, r.close_at + 1}),
                                      lx->src->text[r.close_at], r.open.open);
    diag_note_add(lx->ds, d, lexer_loc(lx, (span){r.open.at, r.open.at + 1}),
                  "'%c' was opened here", r.open.open);
    return true;
}

// Words and operators of other languages, and of Python 2.
static bool foreign(lexer *lx, const slip *s)
{
    const lex_token *now = &lx->now, *last = &lx->prev[0];
    if (last->kind == T_NAME && last->at.lo == lx->head.at.lo &&
        (token_is(lx, last, "print") || token_is(lx, last, "exec")) && begins_operand(now->kind)) {
        diag *d = diag_print_statement(lx->ds, lexer_loc(lx, last->at),
                                       (int)(last->at.hi - last->at.lo), text_at(lx, last->at));
        diag_help(lx->ds, d, "write %.*s(...)", (int)(last->at.hi - last->at.lo),
                  text_at(lx, last->at));
        return true;
    }
    if (now->kind == T_IF && last->kind == T_ELSE) {
        diag_else_if(lx->ds, lexer_loc(lx, (span){last->at.lo, now->at.hi}));
        return true;
    }
    if (now->kind == last->kind && (now->kind == '&' || now->kind == '|')) {
        diag *d = diag_syntax(lx->ds, lexer_loc(lx, s->at), s->token, "");
        diag_help(lx->ds, d, "write '%s'", now->kind == '&' ? "and" : "or");
        return true;
    }
    if (now->kind == '>' && last->kind == '<' && last->at.hi == now->at.lo) {
        diag *d = diag_syntax(lx->ds, lexer_loc(lx, s->at), s->token, "");
        diag_help(lx->ds, d, "write '!='");
        return true;
    }
    if (now->kind == ',' && lx->head.kind == T_RAISE && !lx->nest) {
        diag *d = diag_syntax(lx->ds, lexer_loc(lx, s->at), s->token, "");
        diag_help(lx->ds, d, "write raise E(message)");
        return true;
    }
    return false;
}

static bool keyword_as_name(lexer *lx)
{
    const lex_token *now = &lx->now, *last = &lx->prev[0], *word = NULL;
    const char *p = lx->at;
    p += strspn(p, " \t");
    bool assigned = *p == '=' && p[1] != '=';
    if (lexer_is_keyword(now->kind) &&
        (wants_name(last->kind) || (assigned && !ends_operand(last->kind)))) {
        word = now;
    } else if (now->kind == '=' && lexer_is_keyword(last->kind)) {
        word = last;
    } else {
        return false;
    }
    diag_keyword_as_name(lx->ds, lexer_loc(lx, word->at), (int)(word->at.hi - word->at.lo),
                         text_at(lx, word->at));
    return true;
}

static void generic(lexer *lx, const slip *s)
{
    char tail[200] = "";
    for (int i = 0; i < s->nwanted; i++) {
        size_t used = strlen(tail);
        snprintf(tail + used, sizeof tail - used, "%s%s",
                 i == 0                ? "; expected "
                 : i + 1 == s->nwanted ? " or "
                                       : ", ",
                 s->wanted[i]);
    }
    const char *got = s->token;
    if (lx->now.kind == T_NAME && s->at.hi - s->at.lo <= 40) {
        got = arena_printf(lx->mem, "name '%.*s'", (int)(s->at.hi - s->at.lo), text_at(lx, s->at));
    }
    diag_syntax(lx->ds, lexer_loc(lx, s->at), got, tail);
}

void slip_report(lexer *lx, const slip *s)
{
    const lex_token *now = &lx->now, *last = &lx->prev[0];
    bool told = now->kind == T_ERROR || (lx->line_error && now->kind == T_NEWLINE);
    lx->line_error = true;
    if (told) {
        return;
    }
    if (lx->synth_colon && now->kind == ':') {  // supplied by the lexer; the line ends here
        slip end = *s;
        end.token = "end of line";
        end.at.hi = end.at.lo + 1;
        generic(lx, &end);
        return;
    }
    slip moved = *s;
    if (now->kind == T_DEDENT || now->kind == T_EOF) {
        uint32_t lo = (uint32_t)(lx->at - lx->src->text);
        if (lo == lx->src->len) {  // the last line that there is
            lo -= lo && lx->src->text[lo - 1] == '\n';
            lo -= lo && lx->src->text[lo - 1] == '\r';
        }
        moved.at = (span){lo, lo + 1};
        s = &moved;
    }
    if (s->wants_block && last->kind == T_NEWLINE) {
        uint32_t n = lx->block_head.at.hi - lx->block_head.at.lo;
        char *head = arena_text(lx->mem, text_at(lx, lx->block_head.at), n);
        diag *d = diag_expected_block(lx->ds, lexer_loc(lx, s->at), head);
        diag_note_add(lx->ds, d, lexer_loc(lx, lx->block_head.at), "the block of this line");
        lx->line_error = false;  // the line itself may be sound
        return;
    }
    if (last->kind == '{' && (now->kind == '}' || now->kind == '!' || now->kind == ':')) {
        diag_fstring_field(lx->ds, lexer_loc(lx, last->at), "has no expression");
        return;
    }
    if (unclosed(lx, s) || foreign(lx, s) || keyword_as_name(lx)) {
        return;
    }
    if (now->kind == '=') {
        diag_assign_in_condition(lx->ds, lexer_loc(lx, s->at));
    } else if (lx->nest && ends_operand(last->kind) && begins_operand(now->kind)) {
        diag_missing_comma(lx->ds, lexer_loc(lx, s->at));
    } else {
        generic(lx, s);
    }
}
