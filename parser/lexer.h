#ifndef PARSER_LEXER_H
#define PARSER_LEXER_H

#include "base/intern.h"
#include "lang/ast.h"
#include "lang/diag.h"

#include <stdbool.h>

// Each bound has its own diagnostic and a file in tests/golden/limits/. Together they keep
// Bison's stack below YYMAXDEPTH for everything but long prefix chains ("- - - - x"), which
// AST_HEIGHT_MAX stops when their nodes are built; past that yyerror says the same sentence.
enum {
    LEX_INDENT_MAX = 100,   // nested blocks
    LEX_NEST_MAX = 200,     // open brackets, replacement fields of f-strings included
    LEX_FSTRING_MAX = 100,  // f-strings inside f-strings, fields inside format specs
    AST_HEIGHT_MAX = 1000,  // levels of a tree, which later stages walk by recursion
};

// One block level. A phantom level was opened by an indentation that the grammar does not
// expect: it is closed without a DEDENT.
typedef struct lex_indent {
    uint32_t col, altcol;  // with tabs to 8, and to 1
    bool phantom, cases;   // cases: the block of a match statement, where `case` is a keyword
} lex_indent;

typedef struct lex_bracket {
    uint32_t at;
    char open;
} lex_bracket;

// What the next bytes are: tokens (MODE_FIELD, or an empty stack), or the literal text of an
// f-string or of a format spec.
typedef enum lex_mode_kind { MODE_FSTRING, MODE_FIELD, MODE_SPEC } lex_mode_kind;
typedef struct lex_mode {
    lex_mode_kind kind;
    uint32_t at;  // the opening prefix or brace
    int nest;     // FIELD: the bracket depth inside its braces
    char quote;
    bool triple, raw;
} lex_mode;

typedef struct lex_token {
    int kind;
    span at;
} lex_token;

typedef struct lexer {
    const source *src;
    arena *mem;
    intern *names;
    diags *ds;
    const char *at;    // next byte to read
    int start;         // T_START_...: sent first, chooses the grammar's entry; then 0
    bool expression;   // no layout: newlines are space
    bool bol;          // at the beginning of a logical line
    bool synth_colon;  // a ':' was supplied for one that is missing; not yet reported
    bool owed_newline;

    lex_indent indent[LEX_INDENT_MAX + 1];
    int depth;        // indent[depth] is the current block
    int pending;      // DEDENTs still owed
    bool cases_next;  // the next INDENT opens a match statement's block

    lex_bracket bracket[LEX_NEST_MAX + 1];
    int nest;
    int nest_over;  // brackets opened past the limit

    lex_mode mode[2 * LEX_FSTRING_MAX + 1];  // a text and a field each; one spec more
    int modes;

    // The current logical line.
    lex_token head;        // its first token
    lex_token block_head;  // the first token of the last line that ended with ':'
    bool colon;            // a ':' outside brackets was read that belongs to no lambda
    int lambdas;           // lambdas outside brackets still without their ':'
    bool line_error;       // something was reported on it

    lex_token prev[3];  // [0] the token before the current one
    lex_token now;      // the last token returned
    uint32_t last_hi;   // end of the last token that is not layout

    ast *paren_tuple;   // the last tuple that was closed by its own parenthesis
    ast *as_tuple;      // one with "x as y" inside, which only a with statement may hold
    uint32_t too_deep;  // nesting_too_deep was reported up to this offset
} lexer;

void lexer_init(lexer *lx, const source *src, arena *mem, intern *names, diags *ds, int start);

static inline loc lexer_loc(const lexer *lx, span at)
{
    return (loc){lx->src, at};
}

// A statement begins at p with a word that no expression continues with.
bool lexer_statement_follows(const char *p);
// Leaves all f-strings and brackets: the logical line ends with the current one.
void lexer_give_up(lexer *lx);
// Whether token `kind` is a hard keyword.
bool lexer_is_keyword(int kind);
// The end of an identifier with letters beyond ASCII that begins at p; NULL when none does.
const char *lexer_unicode_name(const char *p);
// Reports, once for a run of levels, that `what` nests deeper than `limit`.
void lexer_too_deep(lexer *lx, span at, int limit, const char *what);

#endif
