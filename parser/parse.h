#ifndef PARSER_PARSE_H
#define PARSER_PARSE_H

#include "base/intern.h"
#include "lang/ast.h"
#include "lang/diag.h"

#include <stdbool.h>

// Parses a whole file into *out, in `mem`; src must outlive it. Errors go to ds. Returns
// false when one was recorded; *out then holds the statements that did parse.
// Out of memory is mem's longjmp.
bool parse_module(const source *src, arena *mem, intern *names, diags *ds, module_ast *out);

// One expression (a value on the command line). *out is NULL when false is returned.
bool parse_expression(const source *src, arena *mem, intern *names, diags *ds, ast **out);

#endif
