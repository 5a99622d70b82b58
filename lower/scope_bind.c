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

void scope_bind_target(builder *b, const ast *t)
{
    if (!t) {
        return;
    }
    switch ((ast_kind)t->kind) {
    case AST_NAME: bind_name(b, t->u.id); break;
    case AST_TUPLE:
    case AST_LIST:
        for (const ast *i = t->u.list.first; i; i = i->next) {
            scope_bind_target(b, i);
        }
        break;
    case AST_STARRED: scope_bind_target(b, t->u.bin.l); break;
    default: break;
    }
}

void scope_bind_expr(builder *b, const ast *e)
{
    for (; e; e = e->next) {
        switch ((ast_kind)e->kind) {
        case AST_WALRUS:
            bind_name(b, e->u.bin.l->u.id);
            scope_bind_expr(b, e->u.bin.r);
            break;
        case AST_FSTRING:
        case AST_TUPLE:
        case AST_LIST:
        case AST_SET:
        case AST_DICT: scope_bind_expr(b, e->u.list.first); break;
        case AST_FORMAT: scope_bind_expr(b, e->u.format.value); break;
        case AST_PAIR:
        case AST_UNARY:
        case AST_BINARY:
        case AST_BOOLOP:
        case AST_COMPARE:
        case AST_CMP:
        case AST_STARRED:
        case AST_AWAIT:
        case AST_YIELD:
        case AST_YIELD_FROM:
            if (e->kind == AST_YIELD || e->kind == AST_YIELD_FROM) {
                b->u->is_generator = true;
            }
            scope_bind_expr(b, e->u.bin.l);
            scope_bind_expr(b, e->u.bin.r);
            break;
        case AST_CALL:
            scope_bind_expr(b, e->u.call.fn);
            scope_bind_expr(b, e->u.call.args);
            break;
        case AST_ARG:
        case AST_ATTR: scope_bind_expr(b, e->u.named.value); break;
        case AST_INDEX:
            scope_bind_expr(b, e->u.index.value);
            scope_bind_expr(b, e->u.index.key);
            break;
        case AST_SLICE:
        case AST_TERNARY:
            scope_bind_expr(b, e->u.three.a);
            scope_bind_expr(b, e->u.three.b);
            scope_bind_expr(b, e->u.three.c);
            break;
        case AST_LISTCOMP:
        case AST_SETCOMP:
        case AST_DICTCOMP:
        case AST_GENEXP:
            scope_bind_expr(b, e->u.comp.elt);
            scope_bind_expr(b, e->u.comp.value);
            for (const ast *c = e->u.comp.clauses; c; c = c->next) {
                scope_bind_expr(b, c->u.clause.iter);
                scope_bind_expr(b, c->u.clause.conds);
            }
            break;
        default: break;
        }
    }
}

static void bind_pattern(builder *b, const ast *p)
{
    for (; p; p = p->next) {
        switch ((ast_kind)p->kind) {
        case AST_PAT_CAPTURE:
        case AST_PAT_STAR:
        case AST_PAT_REST:
            if (p->u.pat.id) {
                bind_name(b, p->u.pat.id);
            }
            break;
        case AST_PAT_SEQ:
        case AST_PAT_OR: bind_pattern(b, p->u.list.first); break;
        case AST_PAT_AS:
            bind_pattern(b, p->u.pat.a);
            bind_name(b, p->u.pat.id);
            break;
        case AST_PAT_MAP: bind_pattern(b, p->u.pat.a); break;
        case AST_PAIR: bind_pattern(b, p->u.bin.r); break;
        case AST_PAT_CLASS: bind_pattern(b, p->u.pat.b); break;
        case AST_ARG: bind_pattern(b, p->u.named.value); break;
        default: break;
        }
    }
}

sym scope_root_name(interp *it, sym path)
{
    const char *dot = strchr(path->text, '.');
    return dot ? intern_add(it->names, path->text, (size_t)(dot - path->text)) : path;
}

static void bind_stmt(builder *b, const ast *s)
{
    switch ((ast_kind)s->kind) {
    case AST_EXPR:
    case AST_RETURN:
    case AST_ASSERT:
    case AST_RAISE:
        scope_bind_expr(b, s->u.bin.l);
        scope_bind_expr(b, s->u.bin.r);
        break;
    case AST_ASSIGN:
    case AST_ANNASSIGN:
        for (const ast *t = s->u.assign.targets; t; t = t->next) {
            scope_bind_target(b, t);
        }
        scope_bind_expr(b, s->u.assign.value);
        break;
    case AST_AUGASSIGN:
        scope_bind_target(b, s->u.bin.l);
        scope_bind_expr(b, s->u.bin.r);
        break;
    case AST_DEL: scope_bind_target(b, s->u.list.first); break;
    case AST_IMPORT:
        for (const ast *a = s->u.list.first; a; a = a->next) {
            bind_name(b, a->u.alias.as ? a->u.alias.as : scope_root_name(b->it, a->u.alias.path));
        }
        break;
    case AST_FROM:
        for (const ast *a = s->u.from.aliases; a; a = a->next) {
            bind_name(b, a->u.alias.as ? a->u.alias.as : a->u.alias.path);
        }
        break;
    case AST_IF:
    case AST_WHILE:
    case AST_FOR:
        if (s->kind == AST_FOR) {
            scope_bind_target(b, s->u.flow.target);
        }
        scope_bind_expr(b, s->u.flow.cond);
        scope_bind_list(b, s->u.flow.body);
        scope_bind_list(b, s->u.flow.orelse);
        break;
    case AST_TRY:
        scope_bind_list(b, s->u.try_.body);
        for (const ast *h = s->u.try_.handlers; h; h = h->next) {
            if (h->u.handler.as) {
                bind_name(b, h->u.handler.as);
            }
            scope_bind_list(b, h->u.handler.body);
        }
        scope_bind_list(b, s->u.try_.orelse);
        scope_bind_list(b, s->u.try_.final);
        break;
    case AST_WITH:
        for (const ast *w = s->u.with.items; w; w = w->next) {
            scope_bind_target(b, w->u.withitem.target);
            scope_bind_expr(b, w->u.withitem.value);
        }
        scope_bind_list(b, s->u.with.body);
        break;
    case AST_DEF:
    case AST_CLASS: bind_name(b, s->u.def.id); break;
    case AST_MATCH:
        scope_bind_expr(b, s->u.match.subject);
        for (const ast *c = s->u.match.cases; c; c = c->next) {
            bind_pattern(b, c->u.match.subject);
            scope_bind_expr(b, c->u.match.guard);
            scope_bind_list(b, c->u.match.body);
        }
        break;
    case AST_TYPE_ALIAS: bind_name(b, s->u.type.id); break;
    default: break;
    }
}

void scope_declare(builder *b, const ast *n)
{
    for (; n; n = n->next) {
        switch ((ast_kind)n->kind) {
        case AST_GLOBAL:
        case AST_NONLOCAL:
            for (const ast *i = n->u.list.first; i; i = i->next) {
                scope_add_var(b, i->u.id, n->kind == AST_GLOBAL ? SYM_GLOBAL : SYM_NONLOCAL);
            }
            break;
        case AST_IF:
        case AST_WHILE:
        case AST_FOR:
            scope_declare(b, n->u.flow.body);
            scope_declare(b, n->u.flow.orelse);
            break;
        case AST_TRY:
            scope_declare(b, n->u.try_.body);
            for (const ast *h = n->u.try_.handlers; h; h = h->next) {
                scope_declare(b, h->u.handler.body);
            }
            scope_declare(b, n->u.try_.orelse);
            scope_declare(b, n->u.try_.final);
            break;
        case AST_WITH: scope_declare(b, n->u.with.body); break;
        case AST_MATCH:
            for (const ast *c = n->u.match.cases; c; c = c->next) {
                scope_declare(b, c->u.match.body);
            }
            break;
        default: break;
        }
    }
}

void scope_bind_list(builder *b, const ast *n)
{
    for (; n; n = n->next) {
        bind_stmt(b, n);
    }
}
