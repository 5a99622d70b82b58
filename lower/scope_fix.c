// Names, after pass 2: variables that turned out to be cells, and the cells' final numbers.
#include "lower/scope.h"

static void fix_slot(builder *b, uint8_t *scope, uint32_t *slot)
{
    uint32_t own = b->own.n;
    if (*scope == SCOPE_LOCAL && b->u->kind == UNIT_FUNC) {
        for (uint32_t i = 0; i < own; i++) {
            const var *v = &b->vars.at[b->own.at[i]];
            if (v->slot == *slot) {
                *scope = SCOPE_CELL;
                *slot = i;
                return;
            }
        }
    } else if (*scope == SCOPE_CELL && (*slot & 0x80000000u)) {
        *slot = own + (*slot & 0x7fffffffu);
    } else if (*scope == SCOPE_CLASS && *slot && ((*slot - 1) & 0x80000000u)) {
        *slot = own + ((*slot - 1) & 0x7fffffffu) + 1;
    }
}

static void fix_node(builder *b, ast *e)
{
    fix_slot(b, &e->scope, &e->slot);
}

static void fix_defaults(builder *b, ast *p)
{
    for (; p; p = p->next) {
        scope_fix_expr(b, p->u.param.dflt);
    }
}

static void fix_operand(void *b, ast *list)
{
    scope_fix_expr(b, list);
}

void scope_fix_expr(builder *b, ast *e)
{
    for (; e; e = e->next) {
        switch ((ast_kind)e->kind) {
        case AST_NAME: fix_node(b, e); break;
        case AST_LAMBDA: fix_defaults(b, e->u.lambda.params); break;
        case AST_LISTCOMP:
        case AST_SETCOMP:
        case AST_DICTCOMP:
        case AST_GENEXP:
            if (e->scope == 1) {
                scope_fix_expr(b, e->u.comp.clauses->u.clause.iter);
                break;
            }
            for (ast *c = e->u.comp.clauses; c; c = c->next) {
                scope_fix_expr(b, c->u.clause.target);
                scope_fix_expr(b, c->u.clause.iter);
                scope_fix_expr(b, c->u.clause.conds);
            }
            scope_fix_expr(b, e->u.comp.elt);
            scope_fix_expr(b, e->u.comp.value);
            break;
        default: scope_operands(e, fix_operand, b); break;
        }
    }
}

static void fix_pattern(builder *b, ast *p)
{
    for (; p; p = p->next) {
        fix_node(b, p);
        switch ((ast_kind)p->kind) {
        case AST_PAT_VALUE: scope_fix_expr(b, p->u.pat.a); break;
        case AST_PAT_SEQ:
        case AST_PAT_OR: fix_pattern(b, p->u.list.first); break;
        case AST_PAT_AS:
        case AST_PAT_MAP: fix_pattern(b, p->u.pat.a); break;
        case AST_PAIR:
            scope_fix_expr(b, p->u.bin.l);
            fix_pattern(b, p->u.bin.r);
            break;
        case AST_PAT_CLASS:
            scope_fix_expr(b, p->u.pat.a);
            for (ast *a = p->u.pat.b; a; a = a->next) {
                fix_pattern(b, a->u.named.value);
            }
            break;
        default: break;
        }
    }
}

void scope_fix_stmts(builder *b, ast *n)
{
    for (; n; n = n->next) {
        switch ((ast_kind)n->kind) {
        case AST_EXPR:
        case AST_RETURN:
        case AST_ASSERT:
        case AST_RAISE:
        case AST_AUGASSIGN:
            scope_fix_expr(b, n->u.bin.l);
            scope_fix_expr(b, n->u.bin.r);
            break;
        case AST_ASSIGN:
        case AST_ANNASSIGN:
            scope_fix_expr(b, n->u.assign.targets);
            scope_fix_expr(b, n->u.assign.value);
            break;
        case AST_DEL: scope_fix_expr(b, n->u.list.first); break;
        case AST_IMPORT:
        case AST_FROM: {
            ast *first = n->kind == AST_IMPORT ? n->u.list.first : n->u.from.aliases;
            for (ast *a = first; a; a = a->next) {
                fix_node(b, a);
            }
            break;
        }
        case AST_IF:
        case AST_WHILE:
        case AST_FOR:
            scope_fix_expr(b, n->u.flow.cond);
            scope_fix_expr(b, n->u.flow.target);
            scope_fix_stmts(b, n->u.flow.body);
            scope_fix_stmts(b, n->u.flow.orelse);
            break;
        case AST_TRY:
            scope_fix_stmts(b, n->u.try_.body);
            for (ast *h = n->u.try_.handlers; h; h = h->next) {
                fix_node(b, h);
                scope_fix_expr(b, h->u.handler.type);
                scope_fix_stmts(b, h->u.handler.body);
            }
            scope_fix_stmts(b, n->u.try_.orelse);
            scope_fix_stmts(b, n->u.try_.final);
            break;
        case AST_WITH:
            for (ast *w = n->u.with.items; w; w = w->next) {
                scope_fix_expr(b, w->u.withitem.value);
                scope_fix_expr(b, w->u.withitem.target);
            }
            scope_fix_stmts(b, n->u.with.body);
            break;
        case AST_DEF:
            scope_fix_expr(b, n->u.def.decorators);
            fix_defaults(b, n->u.def.params);
            fix_node(b, n);
            break;
        case AST_CLASS:
            scope_fix_expr(b, n->u.def.decorators);
            scope_fix_expr(b, n->u.def.params);
            fix_node(b, n);
            break;
        case AST_MATCH:
            scope_fix_expr(b, n->u.match.subject);
            for (ast *c = n->u.match.cases; c; c = c->next) {
                fix_pattern(b, c->u.match.subject);
                scope_fix_expr(b, c->u.match.guard);
                scope_fix_stmts(b, c->u.match.body);
            }
            break;
        case AST_TYPE_ALIAS: fix_node(b, n); break;
        default: break;
        }
    }
}

// The parent's own cells may grow after a child captured a free one of it: resolve at the end.
static void fix_free(unit *u, uint32_t parent_own)
{
    for (uint32_t i = 0; i < u->nfree; i++) {
        if (u->free_from[i] & 0x80000000u) {
            u->free_from[i] = parent_own + (u->free_from[i] & 0x7fffffffu);
        }
    }
}

static void fix_units_expr(unit *u, const ast *e);

static void fix_child(unit *u, const ast *node)
{
    unit *c = node->cache;
    fix_free(c, u->nown);
    if (node->kind == AST_LAMBDA) {
        fix_units_expr(c, node->u.lambda.body);
    } else if (node->kind == AST_DEF || node->kind == AST_CLASS) {
        scope_fix_units(c, node->u.def.body);
    } else {
        for (const ast *k = node->u.comp.clauses; k; k = k->next) {
            if (k != node->u.comp.clauses) {
                fix_units_expr(c, k->u.clause.iter);
            }
            fix_units_expr(c, k->u.clause.conds);
        }
        fix_units_expr(c, node->u.comp.elt);
        fix_units_expr(c, node->u.comp.value);
    }
}

static void fix_units_operand(void *u, ast *list)
{
    fix_units_expr(u, list);
}

static void fix_units_expr(unit *u, const ast *e)
{
    for (; e; e = e->next) {
        switch ((ast_kind)e->kind) {
        case AST_LAMBDA:
            for (const ast *p = e->u.lambda.params; p; p = p->next) {
                fix_units_expr(u, p->u.param.dflt);
            }
            fix_child(u, e);
            break;
        case AST_LISTCOMP:
        case AST_SETCOMP:
        case AST_DICTCOMP:
        case AST_GENEXP:
            if (e->scope == 1) {
                fix_units_expr(u, e->u.comp.clauses->u.clause.iter);
                fix_child(u, e);
                break;
            }
            for (const ast *c = e->u.comp.clauses; c; c = c->next) {
                fix_units_expr(u, c->u.clause.iter);
                fix_units_expr(u, c->u.clause.conds);
            }
            fix_units_expr(u, e->u.comp.elt);
            fix_units_expr(u, e->u.comp.value);
            break;
        default: scope_operands(e, fix_units_operand, u); break;
        }
    }
}

void scope_fix_units(unit *u, const ast *n)
{
    for (; n; n = n->next) {
        switch ((ast_kind)n->kind) {
        case AST_EXPR:
        case AST_RETURN:
        case AST_ASSERT:
        case AST_RAISE:
        case AST_AUGASSIGN:
            fix_units_expr(u, n->u.bin.l);
            fix_units_expr(u, n->u.bin.r);
            break;
        case AST_ASSIGN:
        case AST_ANNASSIGN:
            fix_units_expr(u, n->u.assign.targets);
            fix_units_expr(u, n->u.assign.value);
            break;
        case AST_IF:
        case AST_WHILE:
        case AST_FOR:
            fix_units_expr(u, n->u.flow.cond);
            scope_fix_units(u, n->u.flow.body);
            scope_fix_units(u, n->u.flow.orelse);
            break;
        case AST_TRY:
            scope_fix_units(u, n->u.try_.body);
            for (const ast *h = n->u.try_.handlers; h; h = h->next) {
                scope_fix_units(u, h->u.handler.body);
            }
            scope_fix_units(u, n->u.try_.orelse);
            scope_fix_units(u, n->u.try_.final);
            break;
        case AST_WITH:
            for (const ast *w = n->u.with.items; w; w = w->next) {
                fix_units_expr(u, w->u.withitem.value);
            }
            scope_fix_units(u, n->u.with.body);
            break;
        case AST_DEF:
        case AST_CLASS:
            fix_units_expr(u, n->u.def.decorators);
            if (n->kind == AST_DEF) {
                for (const ast *p = n->u.def.params; p; p = p->next) {
                    fix_units_expr(u, p->u.param.dflt);
                }
            } else {
                fix_units_expr(u, n->u.def.params);
            }
            fix_child(u, n);
            break;
        case AST_MATCH:
            fix_units_expr(u, n->u.match.subject);
            for (const ast *c = n->u.match.cases; c; c = c->next) {
                fix_units_expr(u, c->u.match.guard);
                scope_fix_units(u, c->u.match.body);
            }
            break;
        default: break;
        }
    }
}
