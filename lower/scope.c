// Which variable a name means: decided once a function, so that running one is an array access.
#include "lower/scope.h"

// ---- pass 2: what each name means. The AST is ours to annotate.

static void resolve_stmts(builder *b, ast *n);
static void resolve_expr(builder *b, ast *e);

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

static void resolve_name(builder *b, ast *e)
{
    sym id = e->u.id;
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
static bool has_function(const ast *e)
{
    for (; e; e = e->next) {
        switch ((ast_kind)e->kind) {
        case AST_LAMBDA:
        case AST_GENEXP: return true;
        case AST_FSTRING:
        case AST_TUPLE:
        case AST_LIST:
        case AST_SET:
        case AST_DICT:
            if (has_function(e->u.list.first)) {
                return true;
            }
            break;
        case AST_FORMAT:
            if (has_function(e->u.format.value) || has_function(e->u.format.spec)) {
                return true;
            }
            break;
        case AST_PAIR:
        case AST_UNARY:
        case AST_BINARY:
        case AST_BOOLOP:
        case AST_COMPARE:
        case AST_CMP:
        case AST_STARRED:
        case AST_WALRUS:
        case AST_AWAIT:
        case AST_YIELD:
        case AST_YIELD_FROM:
            if (has_function(e->u.bin.l) || has_function(e->u.bin.r)) {
                return true;
            }
            break;
        case AST_CALL:
            if (has_function(e->u.call.fn) || has_function(e->u.call.args)) {
                return true;
            }
            break;
        case AST_ARG:
        case AST_ATTR:
            if (has_function(e->u.named.value)) {
                return true;
            }
            break;
        case AST_INDEX:
            if (has_function(e->u.index.value) || has_function(e->u.index.key)) {
                return true;
            }
            break;
        case AST_SLICE:
        case AST_TERNARY:
            if (has_function(e->u.three.a) || has_function(e->u.three.b) ||
                has_function(e->u.three.c)) {
                return true;
            }
            break;
        case AST_LISTCOMP:
        case AST_SETCOMP:
        case AST_DICTCOMP:
            if (has_function(e->u.comp.elt) || has_function(e->u.comp.value)) {
                return true;
            }
            for (const ast *c = e->u.comp.clauses; c; c = c->next) {
                if (has_function(c->u.clause.iter) || has_function(c->u.clause.conds)) {
                    return true;
                }
            }
            break;
        default: break;
        }
    }
    return false;
}

// A comprehension is run in place with variables of its own. When a function inside captures them
// it becomes a function itself (SCOPE on the comprehension node: 1), so that they live in cells. A
// generator expression always is one: it may outlive the function around it.
static void resolve_comp(builder *b, ast *e)
{
    bool function =
        e->kind == AST_GENEXP || has_function(e->u.comp.elt) || has_function(e->u.comp.value);
    for (const ast *c = e->u.comp.clauses; c && !function; c = c->next) {
        function = has_function(c->u.clause.conds) ||
                   (c != e->u.comp.clauses && has_function(c->u.clause.iter));
    }
    if (function) {
        resolve_expr(b, e->u.comp.clauses->u.clause.iter);  // evaluated outside
        unit *u = resolve_unit(b, b->it, UNIT_FUNC, e);
        e->cache = u;
        e->scope = 1;
        return;
    }
    uint32_t mark = b->hidden.n;
    for (ast *c = e->u.comp.clauses; c; c = c->next) {
        resolve_expr(b, c->u.clause.iter);
        hide(b, c->u.clause.target);
        if (c->u.clause.target->kind == AST_INDEX || c->u.clause.target->kind == AST_ATTR) {
            resolve_expr(b, c->u.clause.target);
        }
        resolve_expr(b, c->u.clause.conds);
    }
    resolve_expr(b, e->u.comp.elt);
    resolve_expr(b, e->u.comp.value);
    b->hidden.n = b->hidden_slot.n = mark;
}

static void resolve_params_outside(builder *b, ast *params)
{
    for (ast *p = params; p; p = p->next) {
        resolve_expr(b, p->u.param.dflt);
    }
}

// Calls fn with each list of operands of an expression that makes no scope of its own.
void scope_operands(const ast *e, void (*fn)(void *ctx, ast *list), void *ctx)
{
    switch ((ast_kind)e->kind) {
    case AST_FSTRING:
    case AST_TUPLE:
    case AST_LIST:
    case AST_SET:
    case AST_DICT: fn(ctx, e->u.list.first); break;
    case AST_FORMAT:
        fn(ctx, e->u.format.value);
        fn(ctx, e->u.format.spec);
        break;
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
    case AST_WALRUS:
        fn(ctx, e->u.bin.l);
        fn(ctx, e->u.bin.r);
        break;
    case AST_CALL:
        fn(ctx, e->u.call.fn);
        fn(ctx, e->u.call.args);
        break;
    case AST_ARG:
    case AST_ATTR: fn(ctx, e->u.named.value); break;
    case AST_INDEX:
        fn(ctx, e->u.index.value);
        fn(ctx, e->u.index.key);
        break;
    case AST_SLICE:
    case AST_TERNARY:
        fn(ctx, e->u.three.a);
        fn(ctx, e->u.three.b);
        fn(ctx, e->u.three.c);
        break;
    default: break;
    }
}

static void resolve_operand(void *b, ast *list)
{
    resolve_expr(b, list);
}

static void resolve_expr(builder *b, ast *e)
{
    for (; e; e = e->next) {
        switch ((ast_kind)e->kind) {
        case AST_NAME: resolve_name(b, e); break;
        case AST_LAMBDA:
            resolve_params_outside(b, e->u.lambda.params);
            e->cache = resolve_unit(b, b->it, UNIT_FUNC, e);
            break;
        case AST_LISTCOMP:
        case AST_SETCOMP:
        case AST_DICTCOMP:
        case AST_GENEXP: resolve_comp(b, e); break;
        default: scope_operands(e, resolve_operand, b); break;
        }
    }
}

static void resolve_pattern(builder *b, ast *p)
{
    for (; p; p = p->next) {
        switch ((ast_kind)p->kind) {
        case AST_PAT_VALUE: resolve_expr(b, p->u.pat.a); break;
        case AST_PAT_SEQ:
        case AST_PAT_OR: resolve_pattern(b, p->u.list.first); break;
        case AST_PAT_AS:
        case AST_PAT_MAP: resolve_pattern(b, p->u.pat.a); break;
        case AST_PAIR:
            resolve_expr(b, p->u.bin.l);
            resolve_pattern(b, p->u.bin.r);
            break;
        case AST_PAT_CLASS:
            resolve_expr(b, p->u.pat.a);
            for (ast *a = p->u.pat.b; a; a = a->next) {
                resolve_pattern(b, a->u.named.value);
            }
            break;
        default: break;
        }
        // A captured name is stored like an assignment to it.
        if (p->kind == AST_PAT_CAPTURE || p->kind == AST_PAT_STAR || p->kind == AST_PAT_REST ||
            p->kind == AST_PAT_AS) {
            if (p->u.pat.id) {
                ast nm = {.kind = AST_NAME, .u.id = p->u.pat.id};
                resolve_name(b, &nm);
                p->scope = nm.scope;
                p->slot = nm.slot;
            }
        }
    }
}

static void resolve_named(builder *b, ast *s, sym id)
{
    ast nm = {.kind = AST_NAME, .u.id = id};
    resolve_name(b, &nm);
    s->scope = nm.scope;
    s->slot = nm.slot;
}

static void resolve_stmts(builder *b, ast *n)
{
    for (; n; n = n->next) {
        switch ((ast_kind)n->kind) {
        case AST_EXPR:
        case AST_RETURN:
        case AST_ASSERT:
        case AST_RAISE:
        case AST_AUGASSIGN:
            resolve_expr(b, n->u.bin.l);
            resolve_expr(b, n->u.bin.r);
            break;
        case AST_ASSIGN:
        case AST_ANNASSIGN:
            resolve_expr(b, n->u.assign.targets);
            resolve_expr(b, n->u.assign.value);
            break;
        case AST_DEL: resolve_expr(b, n->u.list.first); break;
        case AST_IMPORT:
            for (ast *a = n->u.list.first; a; a = a->next) {
                resolve_named(
                    b, a, a->u.alias.as ? a->u.alias.as : scope_root_name(b->it, a->u.alias.path));
            }
            break;
        case AST_FROM:
            for (ast *a = n->u.from.aliases; a; a = a->next) {
                resolve_named(b, a, a->u.alias.as ? a->u.alias.as : a->u.alias.path);
            }
            break;
        case AST_IF:
        case AST_WHILE:
        case AST_FOR:
            resolve_expr(b, n->u.flow.cond);
            resolve_expr(b, n->u.flow.target);
            resolve_stmts(b, n->u.flow.body);
            resolve_stmts(b, n->u.flow.orelse);
            break;
        case AST_TRY:
            resolve_stmts(b, n->u.try_.body);
            for (ast *h = n->u.try_.handlers; h; h = h->next) {
                resolve_expr(b, h->u.handler.type);
                if (h->u.handler.as) {
                    resolve_named(b, h, h->u.handler.as);
                }
                resolve_stmts(b, h->u.handler.body);
            }
            resolve_stmts(b, n->u.try_.orelse);
            resolve_stmts(b, n->u.try_.final);
            break;
        case AST_WITH:
            for (ast *w = n->u.with.items; w; w = w->next) {
                resolve_expr(b, w->u.withitem.value);
                resolve_expr(b, w->u.withitem.target);
            }
            resolve_stmts(b, n->u.with.body);
            break;
        case AST_DEF:
            resolve_expr(b, n->u.def.decorators);
            resolve_params_outside(b, n->u.def.params);
            resolve_named(b, n, n->u.def.id);
            n->cache = resolve_unit(b, b->it, UNIT_FUNC, n);
            break;
        case AST_CLASS:
            resolve_expr(b, n->u.def.decorators);
            resolve_expr(b, n->u.def.params);
            resolve_named(b, n, n->u.def.id);
            n->cache = resolve_unit(b, b->it, UNIT_CLASS, n);
            break;
        case AST_MATCH:
            resolve_expr(b, n->u.match.subject);
            for (ast *c = n->u.match.cases; c; c = c->next) {
                resolve_pattern(b, c->u.match.subject);
                resolve_expr(b, c->u.match.guard);
                resolve_stmts(b, c->u.match.body);
            }
            break;
        case AST_TYPE_ALIAS: resolve_named(b, n, n->u.type.id); break;
        default: break;
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
    ast *body = NULL, *expr = NULL;
    bool comp = false;
    if (node->kind == AST_LAMBDA) {
        expr = node->u.lambda.body;
        add_params(&b, node->u.lambda.params);
        scope_bind_expr(&b, expr);
    } else if (kind == UNIT_FUNC && node->kind != AST_DEF) {
        comp = true;
        for (ast *c = node->u.comp.clauses; c; c = c->next) {
            scope_bind_target(&b, c->u.clause.target);
        }
    } else {
        body = node->u.def.body;
        u->has_body_list = true;
        scope_declare(&b, body);
        if (kind == UNIT_FUNC) {
            add_params(&b, node->u.def.params);
        }
        scope_bind_list(&b, body);
    }
    for (uint32_t i = 0; i < b.vars.n; i++) {
        var *v = &b.vars.at[i];
        if ((v->flags & SYM_LOCAL) && v->slot == UINT32_MAX) {
            v->slot = new_slot(&b, v->id);
        }
    }
    if (comp) {
        for (ast *c = node->u.comp.clauses; c; c = c->next) {
            resolve_expr(&b, c->u.clause.target);
            if (c != node->u.comp.clauses) {
                resolve_expr(&b, c->u.clause.iter);
            }
            resolve_expr(&b, c->u.clause.conds);
        }
        resolve_expr(&b, node->u.comp.elt);
        resolve_expr(&b, node->u.comp.value);
        for (ast *c = node->u.comp.clauses; c; c = c->next) {
            scope_fix_expr(&b, c->u.clause.target);
            if (c != node->u.comp.clauses) {
                scope_fix_expr(&b, c->u.clause.iter);
            }
            scope_fix_expr(&b, c->u.clause.conds);
        }
        scope_fix_expr(&b, node->u.comp.elt);
        scope_fix_expr(&b, node->u.comp.value);
    } else if (expr) {
        resolve_expr(&b, expr);
        scope_fix_expr(&b, expr);
    } else {
        resolve_stmts(&b, body);
        scope_fix_stmts(&b, body);
    }
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
    resolve_stmts(&b, body);
    scope_fix_stmts(&b, body);
    u->nlocals = b.slots.n;
    u->slot_name = b.slots.at;
    scope_fix_units(u, body);
    return u;
}
