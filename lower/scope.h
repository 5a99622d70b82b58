#ifndef LOWER_SCOPE_H
#define LOWER_SCOPE_H

#include "lang/ast_children.h"
#include "lower/interp.h"

// What a name means: shared by scope.c, scope_bind.c, scope_fix.c and module.c.

enum { SYM_LOCAL = 1, SYM_CELL = 2, SYM_GLOBAL = 4, SYM_NONLOCAL = 8, SYM_FREE = 16 };

typedef struct var {
    sym id;
    uint8_t flags;
    uint32_t slot;  // local slot
    uint32_t cell;  // own cell, or own count + index of a free one
} var;

typedef struct builder {
    struct builder *up;
    interp *it;
    unit *u;
    VEC(var) vars;
    VEC(uint32_t) own;   // var indices that are own cells
    VEC(uint32_t) free;  // cell numbers in the parent
    VEC(sym) slots;
    VEC(sym) hidden;  // comprehension variables in scope, innermost last; slots beside them
    VEC(uint32_t) hidden_slot;
} builder;

// A comprehension that is a function: its node's `scope`.
enum { COMP_FUNCTION = 1 };

// ---- scope_bind.c: pass 1, what a unit binds. These are visitors; ctx is the builder.
var *scope_find_var(builder *b, sym id);
var *scope_add_var(builder *b, sym id, uint8_t flags);
void scope_bind(void *b, ast *list, ast_role role);
// global and nonlocal count for the whole unit, wherever they stand.
void scope_declare(void *b, ast *list, ast_role role);
// ast_bound_name, but the root of a dotted import: "a" of "a.b.c".
sym scope_bound_name(interp *it, const ast *n);

// ---- scope.c
// Does the node make a unit of its own? n->cache is that unit once names are resolved.
bool scope_is_unit(const ast *n);
// The children of n that the unit around evaluates, and those of the unit that n makes. fn must
// leave lists with ROLE_INNER alone.
void scope_outside(const ast *n, ast_role role, ast_visit *fn, void *ctx);
void scope_inside(const ast *n, ast_visit *fn, void *ctx);

// ---- scope_fix.c
// Names of variables of b that turned out to be cells, and cell numbers.
void scope_fix(void *b, ast *list, ast_role role);
// Cell numbers of the units inside u (ctx), when all are final.
void scope_fix_units(void *u, ast *list, ast_role role);

#endif
