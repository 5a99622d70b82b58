#ifndef LOWER_SCOPE_H
#define LOWER_SCOPE_H

#include "lower/interp.h"

// What scope.c, scope_bind.c and scope_fix.c share; nothing else includes this.

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

// ---- scope_bind.c: pass 1, what a unit binds
var *scope_find_var(builder *b, sym id);
var *scope_add_var(builder *b, sym id, uint8_t flags);
// Names bound by a target, and by walrus anywhere in an expression (but not in nested functions).
void scope_bind_target(builder *b, const ast *t);
void scope_bind_expr(builder *b, const ast *e);
void scope_bind_list(builder *b, const ast *n);
// global and nonlocal count for the whole unit, wherever they stand.
void scope_declare(builder *b, const ast *n);
sym scope_root_name(interp *it, sym path);  // "a" of "a.b.c"

// ---- scope_fix.c
// Names of variables of b that turned out to be cells, and cell numbers.
void scope_fix_expr(builder *b, ast *e);
void scope_fix_stmts(builder *b, ast *n);
// Cell numbers of the units inside u, when all are final.
void scope_fix_units(unit *u, const ast *n);

// scope.c: what stands below an expression, for every walk over expressions.
void scope_operands(const ast *e, void (*fn)(void *ctx, ast *list), void *ctx);

#endif
