#ifndef PARSER_BUILD_H
#define PARSER_BUILD_H

#include "parser/lexer.h"

// What the grammar's actions call. A "ring" is a list under construction: a pointer to its
// last node, whose `next` is the first, so that appending is O(1). An empty ring is NULL.
ast *ring_add(ast *ring, ast *n);
ast *ring_join(ast *a, ast *b);
ast *ring_list(ast *ring);  // the first node of a proper list

static inline span cover(span lo, span hi)
{
    return (span){lo.lo, hi.hi};
}

ast *build_node(lexer *lx, ast_kind kind, span at);
// Counts the list `child` as lying under n: n->slot becomes the height of the tree, and a
// tree higher than AST_HEIGHT_MAX is reported.
void build_under(lexer *lx, ast *n, const ast *child);

// op 0 where the kind has none; r may be NULL.
ast *build_bin(lexer *lx, ast_kind kind, ast_op op, span at, ast *l, ast *r);
ast *build_name(lexer *lx, span at, sym id);
ast *build_const(lexer *lx, span at, ast_op op);
ast *build_list(lexer *lx, ast_kind kind, span at, ast *ring);
ast *build_compare(lexer *lx, span at, ast *first, ast *cmp_ring);
ast *build_named(lexer *lx, ast_kind kind, span at, ast *value, sym id);
ast *build_three(lexer *lx, ast_kind kind, span at, ast *a, ast *b, ast *c);
ast *build_index(lexer *lx, span at, ast *value, ast *key);
// comma: one follows the last argument.
ast *build_call(lexer *lx, span at, ast *fn, ast *arg_ring, bool comma);
ast *build_comp(lexer *lx, ast_kind kind, span at, ast *elt, ast *value, ast *clause_ring);
ast *build_clause(lexer *lx, span at, bool async, ast *target, ast *iter, ast *cond_ring);
ast *build_lambda(lexer *lx, span at, ast *params, ast *body);
// One expression, or a TUPLE when there is a comma.
ast *build_exprs(lexer *lx, span at, ast *ring, bool comma);
// What stands between parentheses: a group or a tuple.
ast *build_paren(lexer *lx, span at, ast *ring, bool comma);
// inside: what stands between the brace and the conversion, the spec or the end.
ast *build_format(lexer *lx, span at, ast *value, span inside, bool equals, sym conv, span conv_at,
                  ast *spec);
// Checks the order of arguments and that no keyword occurs twice. Returns the list.
// genexp: a single argument may be a generator expression without parentheses.
ast *build_args(lexer *lx, ast *arg_ring, bool genexp);
// key_at: the key with its parentheses, which it must not have.
ast *build_keyword(lexer *lx, span at, ast *key, span key_at, ast *value);
// Assigns the parameters' kinds from the markers '/' and '*'. Returns the list.
ast *build_params(lexer *lx, ast *param_ring);
ast *build_param(lexer *lx, span at, param_kind kind, sym id, ast *ann, ast *dflt);
enum { PARAM_SLASH = PARAM_STARSTAR + 1 };  // the marker '/', which build_params removes

// Reports what cannot be bound. verb: "assign to", "delete". Returns n.
ast *build_target(lexer *lx, ast *n, const char *verb);

ast *build_del(lexer *lx, span at, ast *ring);
ast *build_assign(lexer *lx, span at, ast *ring);
ast *build_augassign(lexer *lx, span at, ast_op op, ast *target, ast *value);
ast *build_annassign(lexer *lx, span at, ast *target, ast *ann, ast *value);
ast *build_alias(lexer *lx, span at, sym path, sym as);
ast *build_from(lexer *lx, span at, uint32_t level, sym path, ast *alias_ring);
ast *build_flow(lexer *lx, ast_kind kind, span at, ast *cond, ast *target, ast *body, ast *orelse);
// An if statement with its elif clauses (a ring of IFs) and else.
ast *build_if(lexer *lx, ast *first, ast *elif_ring, ast *orelse);
ast *build_try(lexer *lx, span at, ast *body, ast *handler_ring, ast *orelse, ast *final);
ast *build_handler(lexer *lx, span at, bool group, ast *type, sym as, ast *body);
ast *build_with(lexer *lx, span at, ast *items, ast *body);
// The list of a with statement's items, where "(a, b as c)" is several.
ast *build_withitems(lexer *lx, ast *item_ring);
ast *build_withitem(lexer *lx, span at, ast *value, ast *target);
ast *build_def(lexer *lx, ast_kind kind, span at, sym id, ast *tparams, ast *params, ast *returns,
               ast *body);
ast *build_decorated(lexer *lx, ast *n, ast *decorator_ring);
ast *build_match(lexer *lx, ast_kind kind, span at, ast *subject, ast *guard, ast *list);
ast *build_type(lexer *lx, ast_kind kind, span at, int op, sym id, ast *tparams, ast *value);
ast *build_pattern(lexer *lx, ast_kind kind, span at, ast *a, ast *b, sym id);
// A complex literal in a pattern: real and imaginary part.
ast *build_complex(lexer *lx, span at, ast_op op, ast *l, ast *r);
ast *build_async(ast *n, span at);
// "path.part".
sym build_dotted(lexer *lx, sym path, sym part);

#endif
