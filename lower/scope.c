// Which variable a name means: decided once a function, so that running one is an array access.
#include "lower/scope.h"

// ---- pass 2: what each name means. The AST is ours to annotate.

static void resolve(void *ctx, ast *list, ast_role role);

static uint32_t new_slot(builder *b, sym id)
{
    vec_push(b->it->mem, &b->slots, id);
    return b->slots.n - 1;
}

// Makes id, a variable of some unit above, reachable from b: its cell number here, or UINT32_MAX.
static uint32_t capture(builder *b, sym id)
{
    if (!b) {
        return UINT32_MAX;
    }
    var *v = b->u->kind == UNIT_FUNC ? scope_find_var(b, id) : NULL;
    if (v && (v->flags & SYM_GLOBAL)) {
        return UINT32_MAX;
    }
    if (v && (v->flags & SYM_LOCAL)) {
        if (!(v->flags & SYM_CELL)) {
            v->flags |= SYM_CELL;
            v->cell = b->own.n;
            vec_push(b->it->mem, &b->own, (uint32_t)(v - b->vars.at));
        }
        return v->cell;
    }
    v = scope_find_var(b, id);
    if (v && (v->flags & SYM_FREE)) {
        return v->cell;
    }
    uint32_t up = capture(b->up, id);
    if (up == UINT32_MAX) {
        return up;
    }
    v = scope_add_var(b, id, SYM_FREE);
    v->cell = 0x80000000u | b->free.n;  // own cells come first: fixed up when their number is known
    vec_push(b->it->mem, &b->free, up);
    return v->cell;
}

static void resolve_name(builder *b, ast *e, sym id)
{
    for (uint32_t i = b->hidden.n; i-- > 0;) {
        if (b->hidden.at[i] == id) {
            if (b->hidden_slot.at[i] & 0x40000000u) {  // captured by a nested function
                e->scope = SCOPE_CELL;
                e->slot = b->hidden_slot.at[i] & ~0x40000000u;
            } else {
                e->scope = SCOPE_LOCAL;
                e->slot = b->hidden_slot.at[i];
            }
            return;
        }
    }
    var *v = scope_find_var(b, id);
    if (b->u->kind == UNIT_FUNC && v && (v->flags & SYM_LOCAL)) {
        e->scope = SCOPE_LOCAL;  // or CELL: known only when the whole unit is resolved
        e->slot = v->slot;
        return;
    }
    if (v && (v->flags & SYM_GLOBAL)) {
        e->scope = SCOPE_GLOBAL;
        return;
    }
    uint32_t c = capture(b, id);
    if (b->u->kind == UNIT_CLASS) {
        e->scope = SCOPE_CLASS;
        e->slot = c == UINT32_MAX ? 0 : c + 1;
        return;
    }
    e->scope = c == UINT32_MAX ? SCOPE_GLOBAL : SCOPE_CELL;
    e->slot = c;
}

// Variables that nested functions capture become cells. Which ones is known only after all nested
// functions are seen, so captures are found first (pre-pass), then names are resolved.

static unit *resolve_unit(builder *up, interp *it, unit_kind kind, ast *node);

static void hide(builder *b, ast *t)
{
    if (!t) {
        return;
    }
    if (t->kind == AST_NAME) {
        vec_push(b->it->mem, &b->hidden, t->u.id);
        vec_push(b->it->mem, &b->hidden_slot, new_slot(b, t->u.id));
        t->scope = SCOPE_LOCAL;
        t->slot = b->hidden_slot.at[b->hidden_slot.n - 1];
    } else if (t->kind == AST_TUPLE || t->kind == AST_LIST) {
        for (ast *i = t->u.list.first; i; i = i->next) {
            hide(b, i);
        }
    } else if (t->kind == AST_STARRED) {
        hide(b, t->u.bin.l);
    }
}

// Does an expression hold a function that could capture a comprehension's variables?
static void find_function(void *found, ast *list, ast_role role)
{
    for (const ast *n = list; n; n = n->next) {
        *(bool *)found |= n->kind == AST_LAMBDA || n->kind == AST_GENEXP;
        ast_children(n, role, find_function, found);
    }
}

bool scope_is_unit(const ast *n)
{
    return n->kind == AST_LAMBDA || n->kind == AST_DEF || n->kind == AST_CLASS ||
           (ast_is_comp(n) && n->scope == COMP_FUNCTION);
}

void scope_outside(const ast *n, ast_role role, ast_visit *fn, void *ctx)
{
    if (ast_is_comp(n) && scope_is_unit(n)) {
        fn(ctx, n->u.comp.clauses->u.clause.iter, ROLE_OPERAND);
    } else {
        ast_children(n, role, fn, ctx);  // fn leaves what is ROLE_INNER alone
    }
}

static void visit(ast_visit *fn, void *ctx, ast *list, ast_role role)
{
    if (list) {
        fn(ctx, list, role);
    }
}

void scope_inside(const ast *n, ast_visit *fn, void *ctx)
{
    if (n->kind == AST_LAMBDA) {
        fn(ctx, n->u.lambda.body, ROLE_OPERAND);
    } else if (n->kind == AST_DEF || n->kind == AST_CLASS) {
        fn(ctx, n->u.def.body, ROLE_BODY);
    } else {
        for (const ast *c = n->u.comp.clauses; c; c = c->next) {
            fn(ctx, c->u.clause.target, ROLE_TARGET);
            if (c != n->u.comp.clauses) {
                fn(ctx, c->u.clause.iter, ROLE_OPERAND);
            }
            visit(fn, ctx, c->u.clause.conds, ROLE_OPERAND);
        }
        fn(ctx, n->u.comp.elt, ROLE_OPERAND);
        visit(fn, ctx, n->u.comp.value, ROLE_OPERAND);
    }
}

// A comprehension is run in place with variables of its own. When a function inside captures them
// it becomes a function itself, so that they live in cells. A generator expression always is one:
// it may outlive the function around it.
static void resolve_comp(builder *b, ast *e)
{
    bool function = e->kind == AST_GENEXP;
    scope_inside(e, find_function, &function);
    if (function) {
        e->scope = COMP_FUNCTION;
        scope_outside(e, ROLE_OPERAND, resolve, b);
        e->cache = resolve_unit(b, b->it, UNIT_FUNC, e);
        return;
    }
    uint32_t mark = b->hidden.n;
    for (ast *c = e->u.comp.clauses; c; c = c->next) {
        resolve(b, c->u.clause.iter, ROLE_OPERAND);
        hide(b, c->u.clause.target);
        if (c->u.clause.target->kind == AST_INDEX || c->u.clause.target->kind == AST_ATTR) {
            resolve(b, c->u.clause.target, ROLE_TARGET);
        }
        resolve(b, c->u.clause.conds, ROLE_OPERAND);
    }
    resolve(b, e->u.comp.elt, ROLE_OPERAND);
    resolve(b, e->u.comp.value, ROLE_OPERAND);
    b->hidden.n = b->hidden_slot.n = mark;
}

static void resolve(void *ctx, ast *list, ast_role role)
{
    builder *b = ctx;
    if (role == ROLE_INNER || role == ROLE_ANNOTATION) {
        return;
    }
    for (ast *n = list; n; n = n->next) {
        sym id = n->kind == AST_NAME ? n->u.id : scope_bound_name(b->it, n);
        if (ast_is_comp(n)) {
            resolve_comp(b, n);
            continue;
        }
        ast_children(n, role, resolve, b);
        if (id) {
            resolve_name(b, n, id);
        }
        if (scope_is_unit(n)) {
            n->cache = resolve_unit(b, b->it, n->kind == AST_CLASS ? UNIT_CLASS : UNIT_FUNC, n);
        }
    }
}

// ---- a unit

static void add_params(builder *b, ast *first)
{
    unit *u = b->u;
    for (ast *p = first; p; p = p->next) {
        u->nparams += p->u.param.id != NULL;
    }
    u->params = NEW_N(b->it->mem, const ast *, u->nparams);
    u->param_slot = NEW_N(b->it->mem, uint32_t, u->nparams);
    uint32_t i = 0;
    for (ast *p = first; p; p = p->next) {
        if (!p->u.param.id) {
            continue;
        }
        var *v = scope_add_var(b, p->u.param.id, SYM_LOCAL);
        v->slot = new_slot(b, p->u.param.id);
        u->params[i] = p;
        u->param_slot[i] = v->slot;
        switch ((param_kind)p->op) {
        case PARAM_POSONLY:
        case PARAM_NORMAL: u->npos++; break;
        case PARAM_KWONLY: u->nkwonly++; break;
        case PARAM_STAR: u->star = (int)i; break;
        case PARAM_STARSTAR: u->starstar = (int)i; break;
        }
        i++;
    }
}

static unit *resolve_unit(builder *up, interp *it, unit_kind kind, ast *node)
{
    builder b = {.up = up, .it = it};
    unit *u = b.u = NEW(it->mem, unit);
    u->kind = kind;
    u->parent = up ? up->u : NULL;
    u->node = node;
    u->star = u->starstar = -1;
    if (node->kind == AST_LAMBDA) {
        add_params(&b, node->u.lambda.params);
    } else if (node->kind == AST_DEF || node->kind == AST_CLASS) {
        u->has_body_list = true;
        scope_declare(&b, node->u.def.body, ROLE_BODY);
        if (kind == UNIT_FUNC) {
            add_params(&b, node->u.def.params);
        }
    }
    if (node->kind == AST_LAMBDA || u->has_body_list) {
        scope_inside(node, scope_bind, &b);
    }
    for (ast *c = ast_is_comp(node) ? node->u.comp.clauses : NULL; c; c = c->next) {
        scope_bind(&b, c->u.clause.target, ROLE_TARGET);  // a walrus binds outside
    }
    for (uint32_t i = 0; i < b.vars.n; i++) {
        var *v = &b.vars.at[i];
        if ((v->flags & SYM_LOCAL) && v->slot == UINT32_MAX) {
            v->slot = new_slot(&b, v->id);
        }
    }
    scope_inside(node, resolve, &b);
    scope_inside(node, scope_fix, &b);
    u->nlocals = b.slots.n;
    u->slot_name = b.slots.at;
    u->nown = b.own.n;
    u->own_slot = NEW_N(it->mem, uint32_t, u->nown);
    for (uint32_t i = 0; i < u->nown; i++) {
        u->own_slot[i] = b.vars.at[b.own.at[i]].slot;
    }
    u->nfree = b.free.n;
    u->free_from = b.free.at;
    // A free cell's number in the parent may itself be a free one there: its own count is final
    // now.
    return u;
}

unit *scope_module(interp *it, vmodule *m)
{
    builder b = {.it = it};
    unit *u = b.u = NEW(it->mem, unit);
    u->kind = UNIT_MODULE;
    u->star = u->starstar = -1;
    ast *body = m->lm->ast->body;
    resolve(&b, body, ROLE_BODY);
    scope_fix(&b, body, ROLE_BODY);
    u->nlocals = b.slots.n;
    u->slot_name = b.slots.at;
    scope_fix_units(u, body, ROLE_BODY);
    return u;
}
