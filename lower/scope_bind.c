// Names, pass 1: what a unit binds.
#include "lower/scope.h"

#include <string.h>

var *scope_find_var(builder *b, sym id)
{
    for (uint32_t i = 0; i < b->vars.n; i++) {
        if (b->vars.at[i].id == id) {
            return &b->vars.at[i];
        }
    }
    return NULL;
}

var *scope_add_var(builder *b, sym id, uint8_t flags)
{
    var *v = scope_find_var(b, id);
    if (v) {
        v->flags |= flags;
        return v;
    }
    vec_push(b->it->mem, &b->vars, ((var){id, flags, UINT32_MAX, UINT32_MAX}));
    return &b->vars.at[b->vars.n - 1];
}

static void bind_name(builder *b, sym id)
{
    if (b->u->kind != UNIT_FUNC) {
        return;  // module and class variables go by name
    }
    var *v = scope_find_var(b, id);
    if (!v || !(v->flags & (SYM_GLOBAL | SYM_NONLOCAL))) {
        scope_add_var(b, id, SYM_LOCAL);
    }
}

sym scope_bound_name(interp *it, const ast *n)
{
    sym id = ast_bound_name(n);
    const char *dot = n->kind == AST_ALIAS && !n->u.alias.as ? strchr(id->text, '.') : NULL;
    return dot ? intern_add(it->names, id->text, (size_t)(dot - id->text)) : id;
}

void scope_bind(void *ctx, ast *list, ast_role role)
{
    builder *b = ctx;
    if (role == ROLE_INNER || role == ROLE_ANNOTATION) {
        return;
    }
    for (const ast *n = list; n; n = n->next) {
        sym id = n->kind == AST_NAME && role == ROLE_TARGET ? n->u.id : scope_bound_name(b->it, n);
        if (id) {
            bind_name(b, id);
        }
        if (n->kind == AST_YIELD || n->kind == AST_YIELD_FROM) {
            b->u->is_generator = true;
        }
        if (n->kind == AST_CLAUSE) {  // its variables are the comprehension's own
            scope_bind(b, n->u.clause.iter, ROLE_OPERAND);
            scope_bind(b, n->u.clause.conds, ROLE_OPERAND);
            continue;
        }
        ast_children(n, role, scope_bind, b);
    }
}

void scope_declare(void *ctx, ast *list, ast_role role)
{
    if (role != ROLE_BODY && role != ROLE_PART) {
        return;
    }
    for (const ast *n = list; n; n = n->next) {
        if (n->kind == AST_GLOBAL || n->kind == AST_NONLOCAL) {
            for (const ast *i = n->u.list.first; i; i = i->next) {
                scope_add_var(ctx, i->u.id, n->kind == AST_GLOBAL ? SYM_GLOBAL : SYM_NONLOCAL);
            }
        }
        ast_children(n, role, scope_declare, ctx);
    }
}
