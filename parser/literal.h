#ifndef PARSER_LITERAL_H
#define PARSER_LITERAL_H

#include "parser/lexer.h"

// Values of literals. Each reports into lx->ds what it cannot make sense of and still
// returns a node, so that the parse goes on.

// A number token: INT, FLOAT or IMAG.
ast *literal_number(lexer *lx, span at);
// The text between a string's quotes. kind: AST_STR or AST_BYTES. `braces`: the text of an
// f-string, where {{ and }} stand for one brace.
ast *literal_string(lexer *lx, ast_kind kind, span at, const char *p, const char *end, bool raw,
                    bool braces);
// Adjacent string tokens (a list) as one node: STR, BYTES, or FSTRING when one of them is.
ast *literal_join(lexer *lx, ast *list, span at);

#endif
