#ifndef LANG_AST_CHILDREN_H
#define LANG_AST_CHILDREN_H

#include "lang/ast.h"

// What stands below a node, for every walk over the tree.
typedef enum ast_role {
    ROLE_OPERAND,     // an expression that is evaluated
    ROLE_TARGET,      // what is assigned to or deleted
    ROLE_BODY,        // statements of the same scope
    ROLE_PART,        // parts of the node: clauses, handlers, items, cases, aliases, parameters
    ROLE_PATTERN,     // of a match
    ROLE_ANNOTATION,  // never evaluated by the specializer
    ROLE_INNER,       // the body of a function, a lambda or a class: a scope of its own
} ast_role;

typedef void ast_visit(void *ctx, ast *list, ast_role role);

// Calls fn with the head of each list that is not empty, in the order of evaluation but for
// assignments (targets first). role is n's own: the parts of a tuple that is a target are targets.
// A pair or an argument in a pattern has its pattern as an operand: its kind says what it is.
// `global` and `nonlocal` have no children.
void ast_children(const ast *n, ast_role role, ast_visit *fn, void *ctx);

// The name that the node itself binds, by other means than a target: an import, a handler, a
// definition, a pattern's capture. "a.b" of `import a.b` as it stands. NULL: none.
sym ast_bound_name(const ast *n);

// A list, set or dict comprehension or a generator expression.
static inline bool ast_is_comp(const ast *n)
{
    return n->kind >= AST_LISTCOMP && n->kind <= AST_GENEXP;
}

#endif
