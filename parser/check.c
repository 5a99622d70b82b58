#include "parser/check.h"

#include "base/vec.h"
#include "lang/ast_children.h"

#include <string.h>

// Where a node stands. A class body is not a function; a lambda and a generator expression are.
typedef struct comp {
    const ast *clauses;
    bool generator;
    const struct comp *outer;
} comp;

// What a function's body holds, for the check at its end.
typedef struct function {
    const ast *returned;  // a return with a value
    bool yields;
} function;

typedef struct place {
    diags *ds;
    const source *src;
    function *fn;       // NULL outside functions
    const comp *comps;  // the comprehensions around, up to the function
    bool async, loop, module, cls;
    bool iterable;    // in the iterable of a comprehension
    bool group;       // in an except* block of this function
    bool group_loop;  // and in no loop that began in it
} place;

static void expr(const ast *n, place at);
static void exprs(const ast *n, place at);

static loc here(const place *at, const ast *n)
{
    return (loc){at->src, n->at};
}

static void params(const ast *list, place at)
{
    for (const ast *p = list; p; p = p->next) {
        for (const ast *q = list; q != p; q = q->next) {
            if (p->u.param.id && q->u.param.id == p->u.param.id) {
                diag_repeated_parameter(at.ds, here(&at, p), p->u.param.id->text);
                break;
            }
        }
        const ast *ann = p->u.param.ann;
        exprs(ann && ann->kind == AST_STARRED ? ann->u.bin.l : ann, at);
        exprs(p->u.param.dflt, at);
    }
}

static void comprehension(const ast *n, place at)
{
    const ast *first = n->u.comp.clauses;
    comp here_too = {first, n->kind == AST_GENEXP, at.comps};
    place iterable = at, in = at;
    iterable.iterable = true;
    exprs(first->u.clause.iter, iterable);  // evaluated outside
    in.comps = iterable.comps = &here_too;
    for (const ast *c = first; c; c = c->next) {
        if (c->flag && !at.async && n->kind != AST_GENEXP) {
            diag_outside_async(at.ds, here(&at, n), "an asynchronous comprehension");
        }
        exprs(c->u.clause.target, in);
        if (c != first) {
            exprs(c->u.clause.iter, iterable);
        }
        exprs(c->u.clause.conds, in);
    }
    exprs(n->u.comp.elt, in);
    exprs(n->u.comp.value, in);
}

static bool binds(const ast *target, sym id)
{
    switch ((ast_kind)target->kind) {
    case AST_NAME: return target->u.id == id;
    case AST_STARRED: return binds(target->u.bin.l, id);
    case AST_TUPLE:
    case AST_LIST:
        for (const ast *i = target->u.list.first; i; i = i->next) {
            if (binds(i, id)) {
                return true;
            }
        }
        return false;
    default: return false;
    }
}

static void walrus(const ast *n, const place *at)
{
    if (at->iterable) {
        diag_bad_walrus(at->ds, here(at, n), "in the iterable of a comprehension");
        return;
    }
    for (const comp *c = at->comps; c; c = c->outer) {
        for (const ast *k = c->clauses; k; k = k->next) {
            if (binds(k->u.clause.target, n->u.bin.l->u.id)) {
                diag_bad_walrus(at->ds, here(at, n), "to a comprehension's own variable");
                return;
            }
        }
    }
    if (at->comps && at->cls) {
        diag_bad_walrus(at->ds, here(at, n), "in a comprehension of a class body");
    }
}

static void yield(const ast *n, const place *at)
{
    if (at->fn) {
        at->fn->yields = true;
    }
    if (at->comps) {
        diag_bad_yield(at->ds, here(at, n), "'yield' inside a comprehension");
    } else if (!at->fn) {
        diag_outside_function(at->ds, here(at, n), "yield");
    } else if (n->kind == AST_YIELD_FROM && at->async) {
        diag_bad_yield(at->ds, here(at, n), "'yield from' inside an async function");
    }
}

static void operand(void *at, ast *list, ast_role role)
{
    (void)role;
    exprs(list, *(const place *)at);
}

static void expr(const ast *n, place at)
{
    switch ((ast_kind)n->kind) {
    case AST_TUPLE:
    case AST_LIST:
    case AST_SET:
        for (const ast *i = n->u.list.first; i; i = i->next) {
            expr(i->kind == AST_STARRED ? i->u.bin.l : i, at);
        }
        break;
    case AST_STARRED: diag_lone_starred(at.ds, here(&at, n)); break;
    case AST_YIELD:
    case AST_YIELD_FROM:
        yield(n, &at);
        exprs(n->u.bin.l, at);
        break;
    case AST_AWAIT:
        if (!at.async && !(at.comps && at.comps->generator && at.fn)) {
            diag_outside_async(at.ds, here(&at, n), "'await'");
        }
        exprs(n->u.bin.l, at);
        break;
    case AST_WALRUS:
        walrus(n, &at);
        exprs(n->u.bin.r, at);
        break;
    case AST_LAMBDA: {
        params(n->u.lambda.params, at);
        function fn = {0};
        at.fn = &fn;
        at.comps = NULL;
        at.async = at.module = at.cls = false;
        exprs(n->u.lambda.body, at);
        break;
    }
    case AST_LISTCOMP:
    case AST_SETCOMP:
    case AST_DICTCOMP:
    case AST_GENEXP: comprehension(n, at); break;
    default: ast_children(n, ROLE_OPERAND, operand, &at); break;
    }
}

static void exprs(const ast *n, place at)
{
    for (; n; n = n->next) {
        expr(n, at);
    }
}

// --- declarations ---

// Where each name of a scope is first used or bound, by offset. Made once for a scope that has
// declarations; open addressing, a power of two.
typedef struct first_use {
    sym id;
    uint32_t at;
} first_use;

typedef struct use {
    arena *mem;
    first_use *slot;
    uint32_t cap, count;
} use;

static first_use *use_slot(const use *u, sym id)
{
    uint32_t i = id->hash & (u->cap - 1);
    while (u->slot[i].id && u->slot[i].id != id) {
        i = (i + 1) & (u->cap - 1);
    }
    return &u->slot[i];
}

static void see(use *u, sym id, uint32_t at)
{
    if (u->count * 2 >= u->cap) {
        use old = *u;
        u->cap = old.cap ? old.cap * 2 : 64;
        u->slot = NEW_N(u->mem, first_use, u->cap);
        for (uint32_t i = 0; i < old.cap; i++) {
            if (old.slot[i].id) {
                *use_slot(u, old.slot[i].id) = old.slot[i];
            }
        }
    }
    first_use *f = use_slot(u, id);
    if (!f->id) {
        *f = (first_use){id, at};
        u->count++;
    } else if (at < f->at) {
        f->at = at;
    }
}

static void find_use(void *ctx, ast *list, ast_role role)
{
    for (const ast *n = list; n && role != ROLE_INNER; n = n->next) {
        sym id = n->kind == AST_NAME ? n->u.id : ast_bound_name(n);
        if (id) {
            see(ctx, id, n->at.lo);
        }
        if (n->kind == AST_CLAUSE) {  // only the outermost iterable belongs to this scope
            find_use(ctx, n->u.clause.iter, ROLE_OPERAND);
            return;
        }
        if (!ast_is_comp(n)) {
            ast_children(n, role, find_use, ctx);
        } else {
            find_use(ctx, n->u.comp.clauses, ROLE_PART);
        }
    }
}

// The scope whose declarations are being checked: its parameters and its body.
typedef struct scope {
    const ast *params;
    ast *body;
    use used;
    bool filled;  // used is, since the first declaration
} scope;

static void declaration(const ast *n, const place *at, scope *sc)
{
    if (!sc->filled) {
        sc->filled = true;
        sc->used.mem = at->ds->mem;
        find_use(&sc->used, sc->body, ROLE_BODY);
    }
    for (const ast *id = n->u.list.first; id; id = id->next) {
        const char *what = NULL;
        for (const ast *p = sc->params; p; p = p->next) {
            if (p->u.param.id == id->u.id) {
                what = "a parameter cannot be declared global or nonlocal";
            }
        }
        const first_use *f = sc->used.slot ? use_slot(&sc->used, id->u.id) : NULL;
        if (!what && f && f->id && f->at < n->at.lo) {
            what = "this name is used or assigned above its global or nonlocal declaration";
        }
        if (n->kind == AST_NONLOCAL && at->module) {
            what = "'nonlocal' at module level; there is no enclosing function";
        }
        if (what) {
            diag_scope_declaration(at->ds, here(at, id), what);
        }
    }
}

// --- statements ---

static bool is_future(const ast *n)
{
    return n->kind == AST_FROM && !n->u.from.level && n->u.from.path &&
           strcmp(n->u.from.path->text, "__future__") == 0;
}

static void from_import(const ast *n, const place *at)
{
    if (is_future(n) && !at->module) {
        diag_bad_import(at->ds, here(at, n),
                        "an import from __future__ must come before all other statements");
    }
    for (const ast *a = n->u.from.aliases; a; a = a->next) {
        if (strcmp(a->u.alias.path->text, "*") == 0 && !at->module) {
            diag_bad_import(at->ds, here(at, n), "'import *' is allowed only at module level");
        }
    }
}

static bool always_matches(const ast *p)
{
    switch ((ast_kind)p->kind) {
    case AST_PAT_CAPTURE: return true;
    case AST_PAT_AS: return always_matches(p->u.pat.a);
    case AST_PAT_OR:
        for (p = p->u.list.first; p->next; p = p->next) {
        }
        return always_matches(p);
    default: return false;
    }
}

// The names that a pattern binds.
typedef struct bound {
    VEC(sym) v;
    const place *at;
} bound;

static void bind_list(const ast *n, bound *b);

static void bind_name(const ast *n, sym id, bound *b)
{
    for (uint32_t i = 0; id && i < b->v.n; i++) {
        if (b->v.at[i] == id) {
            diag_bad_pattern(b->at->ds, here(b->at, n), "this pattern binds one name twice");
            return;
        }
    }
    if (id) {
        vec_push(b->at->ds->mem, &b->v, id);
    }
}

static bool same_names(const bound *a, const bound *b)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < a->v.n; i++) {
        for (uint32_t j = 0; j < b->v.n; j++) {
            found += a->v.at[i] == b->v.at[j];
        }
    }
    return found == a->v.n && a->v.n == b->v.n;
}

static void bind_alternatives(const ast *n, bound *b)
{
    bound first = {.at = b->at};
    for (const ast *i = n->u.list.first; i; i = i->next) {
        bound names = {.at = b->at};
        ast one = *i;
        one.next = NULL;
        bind_list(&one, &names);
        if (i == n->u.list.first) {
            first = names;
        } else if (!same_names(&first, &names)) {
            diag_bad_pattern(b->at->ds, here(b->at, i),
                             "the alternatives of a pattern bind different names");
            break;
        }
    }
    for (uint32_t i = 0; i < first.v.n; i++) {
        bind_name(n, first.v.at[i], b);
    }
}

static void bind_list(const ast *n, bound *b)
{
    for (; n; n = n->next) {
        switch ((ast_kind)n->kind) {
        case AST_PAT_CAPTURE:
        case AST_PAT_STAR:
        case AST_PAT_REST: bind_name(n, n->u.pat.id, b); break;
        case AST_PAT_AS:
            bind_list(n->u.pat.a, b);
            bind_name(n, n->u.pat.id, b);
            break;
        case AST_PAT_SEQ: bind_list(n->u.list.first, b); break;
        case AST_PAT_OR: bind_alternatives(n, b); break;
        case AST_PAT_MAP: bind_list(n->u.pat.a, b); break;
        case AST_PAT_CLASS: bind_list(n->u.pat.b, b); break;
        case AST_PAIR: bind_list(n->u.bin.r, b); break;
        case AST_ARG: bind_list(n->u.named.value, b); break;
        default: break;
        }
    }
}

static void patterns(const ast *n, place at);

static void pattern_value(const ast *v, const place *at)
{
    if (v->kind == AST_FSTRING) {
        diag_bad_pattern(at->ds, here(at, v), "an f-string is no pattern; only literals are");
    }
}

static bool same_literal(const ast *a, const ast *b)
{
    if (a->kind != b->kind || a->op != b->op || a->flag != b->flag) {
        return false;
    }
    switch ((ast_kind)a->kind) {
    case AST_CONST: return true;
    case AST_INT:
        if (!a->flag) {
            return a->u.i == b->u.i;
        }
        // fallthrough
    case AST_STR:
    case AST_BYTES:
        return a->u.str.len == b->u.str.len && memcmp(a->u.str.p, b->u.str.p, a->u.str.len) == 0;
    case AST_UNARY: return same_literal(a->u.bin.l, b->u.bin.l);
    default: return false;
    }
}

static void mapping_key(const ast *list, const ast *pair, const place *at)
{
    pattern_value(pair->u.bin.l, at);
    for (const ast *i = list; i != pair; i = i->next) {
        if (i->kind == AST_PAIR && same_literal(i->u.bin.l, pair->u.bin.l)) {
            diag_bad_pattern(at->ds, here(at, pair), "a mapping pattern has this key twice");
            return;
        }
    }
}

// Values inside a pattern, and what each may hold.
static void pattern(const ast *n, place at)
{
    switch ((ast_kind)n->kind) {
    case AST_PAT_SEQ: {
        int stars = 0;
        for (const ast *i = n->u.list.first; i; i = i->next) {
            if (i->kind == AST_PAT_STAR && stars++ == 1) {
                diag_bad_pattern(at.ds, here(&at, i),
                                 "only one part of a sequence pattern may be starred");
            }
        }
        patterns(n->u.list.first, at);
        break;
    }
    case AST_PAT_OR:
        for (const ast *i = n->u.list.first; i; i = i->next) {
            if (i->next && always_matches(i)) {
                diag_bad_pattern(
                    at.ds, here(&at, i),
                    "this alternative always matches; those after it are never reached");
            }
        }
        patterns(n->u.list.first, at);
        break;
    case AST_PAT_VALUE: pattern_value(n->u.pat.a, &at); break;
    case AST_PAT_MAP:
        for (const ast *i = n->u.pat.a; i; i = i->next) {
            if (i->kind == AST_PAIR) {
                mapping_key(n->u.pat.a, i, &at);
            }
            if (i->kind == AST_PAT_REST) {
                if (i->next) {
                    diag_bad_pattern(at.ds, here(&at, i),
                                     "'**' must come last in a mapping pattern");
                }
                if (i->u.pat.id->len == 1 && i->u.pat.id->text[0] == '_') {
                    diag_bad_pattern(at.ds, here(&at, i), "'**_' is not allowed; leave it out");
                }
            } else {
                pattern(i->u.bin.r, at);
            }
        }
        break;
    case AST_PAT_CLASS:
        for (const ast *a = n->u.pat.b; a; a = a->next) {
            pattern(a->u.named.value, at);
        }
        break;
    case AST_PAT_AS:
        if (n->u.pat.id->len == 1 && n->u.pat.id->text[0] == '_') {
            diag_bad_pattern(at.ds, here(&at, n), "'_' cannot be the name after 'as'");
        }
        pattern(n->u.pat.a, at);
        break;
    default: break;
    }
}

static void patterns(const ast *n, place at)
{
    for (; n; n = n->next) {
        pattern(n, at);
    }
}

static void match(const ast *n, place at, scope *sc);
static void body(const ast *n, place at, scope *sc);

static void definition(const ast *n, place at)
{
    exprs(n->u.def.decorators, at);
    place in = {.ds = at.ds, .src = at.src};
    if (n->kind == AST_CLASS) {
        exprs(n->u.def.params, at);
        in.cls = true;
        scope sc = {.body = n->u.def.body};
        body(n->u.def.body, in, &sc);
        return;
    }
    params(n->u.def.params, at);
    exprs(n->u.def.returns, at);
    function fn = {0};
    in.fn = &fn;
    in.async = n->flag;
    scope sc = {.params = n->u.def.params, .body = n->u.def.body};
    body(n->u.def.body, in, &sc);
    if (fn.returned && fn.yields && in.async) {
        diag_bad_yield(at.ds, here(&at, fn.returned),
                       "'return' with a value in an async generator");
    }
}

static void flow(const ast *n, place at, scope *sc)
{
    exprs(n->u.flow.target, at);
    exprs(n->u.flow.cond, at);
    place in = at;
    if (n->kind != AST_IF) {
        in.loop = true;
        in.group_loop = false;
    }
    body(n->u.flow.body, in, sc);
    body(n->u.flow.orelse, at, sc);
}

static void try_stmt(const ast *n, place at, scope *sc)
{
    body(n->u.try_.body, at, sc);
    for (const ast *h = n->u.try_.handlers; h; h = h->next) {
        exprs(h->u.handler.type, at);
        place in = at;
        in.group |= h->flag;
        in.group_loop |= h->flag;
        body(h->u.handler.body, in, sc);
    }
    body(n->u.try_.orelse, at, sc);
    body(n->u.try_.final, at, sc);
}

static void with(const ast *n, place at, scope *sc)
{
    for (const ast *i = n->u.with.items; i; i = i->next) {
        exprs(i->u.withitem.value, at);
        exprs(i->u.withitem.target, at);
    }
    body(n->u.with.body, at, sc);
}

static void stmt(const ast *n, place at, scope *sc)
{
    if (n->flag && (n->kind == AST_FOR || n->kind == AST_WITH) && !at.async) {
        diag_outside_async(at.ds, here(&at, n),
                           n->kind == AST_FOR ? "'async for'" : "'async with'");
    }
    switch ((ast_kind)n->kind) {
    case AST_RETURN:
        if (!at.fn) {
            diag_outside_function(at.ds, here(&at, n), "return");
        } else if (at.group) {
            diag_bad_try(at.ds, here(&at, n), "'return' cannot leave an 'except*' block");
        } else if (n->u.bin.l && !at.fn->returned) {
            at.fn->returned = n;
        }
        exprs(n->u.bin.l, at);
        break;
    case AST_BREAK:
    case AST_CONTINUE:
        if (!at.loop) {
            diag_outside_loop(at.ds, here(&at, n), n->kind == AST_BREAK ? "break" : "continue");
        } else if (at.group_loop) {
            diag_bad_try(at.ds, here(&at, n),
                         "'break' and 'continue' cannot leave an 'except*' block");
        }
        break;
    case AST_EXPR:
    case AST_RAISE:
    case AST_ASSERT:
    case AST_AUGASSIGN:
    case AST_ASSIGN:
    case AST_ANNASSIGN:
    case AST_DEL: ast_children(n, ROLE_BODY, operand, &at); break;
    case AST_GLOBAL:
    case AST_NONLOCAL: declaration(n, &at, sc); break;
    case AST_FROM: from_import(n, &at); break;
    case AST_IF:
    case AST_WHILE:
    case AST_FOR: flow(n, at, sc); break;
    case AST_TRY: try_stmt(n, at, sc); break;
    case AST_WITH: with(n, at, sc); break;
    case AST_DEF:
    case AST_CLASS: definition(n, at); break;
    case AST_MATCH: match(n, at, sc); break;
    default: break;
    }
}

static void match(const ast *n, place at, scope *sc)
{
    exprs(n->u.match.subject, at);
    for (const ast *c = n->u.match.cases; c; c = c->next) {
        const ast *p = c->u.match.subject;
        if (p->kind == AST_PAT_STAR) {
            diag_bad_pattern(at.ds, here(&at, p),
                             "a starred pattern stands only inside a sequence");
        } else if (c->next && !c->u.match.guard && always_matches(p)) {
            diag_bad_pattern(at.ds, here(&at, p),
                             "this pattern always matches; the cases after it are never reached");
        }
        pattern(p, at);
        bound names = {.at = &at};
        ast one = *p;
        one.next = NULL;
        bind_list(&one, &names);
        exprs(c->u.match.guard, at);
        body(c->u.match.body, at, sc);
    }
}

static void body(const ast *n, place at, scope *sc)
{
    for (; n; n = n->next) {
        stmt(n, at, sc);
    }
}

// from __future__ import ...: only features that exist, and before anything but a docstring.
static void future_imports(const ast *list, const place *at)
{
    static const char known[] = " nested_scopes generators division absolute_import with_statement "
                                "print_function unicode_literals barry_as_FLUFL generator_stop "
                                "annotations ";
    const ast *first = list;
    bool early = true;
    for (const ast *n = list; n; n = n->next) {
        bool doc = n == first && n->kind == AST_EXPR && n->u.bin.l->kind == AST_STR;
        if (!is_future(n)) {
            early = early && doc;
            continue;
        }
        if (!early) {
            diag_bad_import(at->ds, here(at, n),
                            "an import from __future__ must come before all other statements");
        }
        for (const ast *a = n->u.from.aliases; a; a = a->next) {
            const char *p = strstr(known, a->u.alias.path->text);
            if (!p || p[-1] != ' ' || p[a->u.alias.path->len] != ' ') {
                diag_bad_import(at->ds, here(at, a), "__future__ has no such feature");
            }
        }
    }
}

void check_module(const module_ast *m, diags *ds)
{
    place at = {.ds = ds, .src = m->src, .module = true};
    future_imports(m->body, &at);
    scope sc = {.body = m->body};
    body(m->body, at, &sc);
}
