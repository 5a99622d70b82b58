#ifndef PARSER_CHECK_H
#define PARSER_CHECK_H

#include "lang/ast.h"
#include "lang/diag.h"

// Reports statements that are in the wrong place and declarations that contradict each other:
// what Python refuses before it runs a file, beyond its grammar. Requires: a tree that parsed
// without error. Linear in the tree, but for names of one function's declarations.
void check_module(const module_ast *m, diags *ds);

#endif
