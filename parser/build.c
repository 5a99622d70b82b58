#include "parser/build.h"

#include <string.h>

ast *ring_add(ast *ring, ast *n)
{
    n->next = ring ? ring->next : n;
    if (ring) {
        ring->next = n;
    }
    return n;
}

ast *ring_join(ast *a, ast *b)
{
    if (!a || !b) {
        return a ? a : b;
    }
    ast *first = a->next;
    a->next = b->next;
    b->next = first;
    return b;
}

ast *ring_list(ast *ring)
{
    ast *first = ring ? ring->next : NULL;
    if (ring) {
        ring->next = NULL;
    }
    return first;
}

ast *build_node(lexer *lx, ast_kind kind, span at)
{
    ast *n = NEW(lx->mem, ast);
    n->kind = (uint8_t)kind;
    n->at = at;
    return n;
}

void build_under(lexer *lx, ast *n, const ast *child)
{
    for (; child; child = child->next) {
        if (child->slot >= n->slot) {
            n->slot = child->slot + 1;
        }
    }
    if (n->slot > AST_HEIGHT_MAX) {
        lexer_too_deep(lx, n->at, AST_HEIGHT_MAX, "expressions or statements");
        n->slot = 0;
    }
}

ast *build_bin(lexer *lx, ast_kind kind, ast_op op, span at, ast *l, ast *r)
{
    ast *n = build_node(lx, kind, at);
    n->op = (uint8_t)op;
    n->u.bin.l = kind == AST_CMP ? NULL : l;
    n->u.bin.r = r;
    build_under(lx, n, l);
    build_under(lx, n, r);
    return n;
}

ast *build_name(lexer *lx, span at, sym id)
{
    ast *n = build_node(lx, AST_NAME, at);
    n->u.id = id;
    return n;
}

ast *build_const(lexer *lx, span at, ast_op op)
{
    ast *n = build_node(lx, AST_CONST, at);
    n->op = (uint8_t)op;
    return n;
}

ast *build_list(lexer *lx, ast_kind kind, span at, ast *ring)
{
    ast *n = build_node(lx, kind, at);
    n->u.list.first = ring_list(ring);
    for (const ast *i = n->u.list.first; i; i = i->next) {
        n->u.list.n++;
    }
    build_under(lx, n, n->u.list.first);
    return n;
}

ast *build_compare(lexer *lx, span at, ast *first, ast *cmp_ring)
{
    ast *n = build_node(lx, AST_COMPARE, at);
    n->u.bin.l = first;
    n->u.bin.r = ring_list(cmp_ring);
    build_under(lx, n, first);
    build_under(lx, n, n->u.bin.r);
    return n;
}

ast *build_named(lexer *lx, ast_kind kind, span at, ast *value, sym id)
{
    ast *n = build_node(lx, kind, at);
    n->u.named.value = value;
    n->u.named.id = id;
    build_under(lx, n, value);
    return n;
}

ast *build_three(lexer *lx, ast_kind kind, span at, ast *a, ast *b, ast *c)
{
    ast *n = build_node(lx, kind, at);
    n->u.three.a = a;
    n->u.three.b = b;
    n->u.three.c = c;
    build_under(lx, n, a);
    build_under(lx, n, b);
    build_under(lx, n, c);
    return n;
}

ast *build_index(lexer *lx, span at, ast *value, ast *key)
{
    ast *n = build_node(lx, AST_INDEX, at);
    if (key->kind == AST_STARRED) {  // x[*a] is x[(*a,)]
        key = build_list(lx, AST_TUPLE, key->at, ring_add(NULL, key));
    }
    n->u.index.value = value;
    n->u.index.key = key;
    build_under(lx, n, value);
    build_under(lx, n, key);
    return n;
}

ast *build_call(lexer *lx, span at, ast *fn, ast *arg_ring, bool comma)
{
    ast *n = build_node(lx, AST_CALL, at);
    n->u.call.fn = fn;
    n->u.call.args = build_args(lx, arg_ring, !comma);
    for (const ast *a = n->u.call.args; a; a = a->next) {
        n->u.call.n++;
    }
    build_under(lx, n, fn);
    build_under(lx, n, n->u.call.args);
    return n;
}

ast *build_comp(lexer *lx, ast_kind kind, span at, ast *elt, ast *value, ast *clause_ring)
{
    ast *n = build_node(lx, kind, at);
    bool unpacks = elt->kind == AST_STARRED;
    if (elt->kind == AST_WITHITEM) {
        diag_with_target(lx->ds, lexer_loc(lx, elt->at));
    }
    if (kind == AST_DICTCOMP) {
        unpacks = !elt->u.bin.l;
        value = elt->u.bin.r;
        elt = elt->u.bin.l;
    }
    if (unpacks) {
        diag_comprehension_unpacking(lx->ds, lexer_loc(lx, elt ? elt->at : value->at));
    }
    n->u.comp.elt = elt;
    n->u.comp.value = value;
    n->u.comp.clauses = ring_list(clause_ring);
    build_under(lx, n, elt);
    build_under(lx, n, value);
    build_under(lx, n, n->u.comp.clauses);
    return n;
}

ast *build_clause(lexer *lx, span at, bool async, ast *target, ast *iter, ast *cond_ring)
{
    ast *n = build_node(lx, AST_CLAUSE, at);
    n->flag = async;
    n->u.clause.target = build_target(lx, target, "assign to");
    n->u.clause.iter = iter;
    n->u.clause.conds = ring_list(cond_ring);
    build_under(lx, n, target);
    build_under(lx, n, iter);
    build_under(lx, n, n->u.clause.conds);
    return n;
}

ast *build_lambda(lexer *lx, span at, ast *params, ast *body)
{
    ast *n = build_node(lx, AST_LAMBDA, at);
    n->u.lambda.params = params;
    n->u.lambda.body = body;
    build_under(lx, n, params);
    build_under(lx, n, body);
    return n;
}

ast *build_exprs(lexer *lx, span at, ast *ring, bool comma)
{
    return comma || ring->next != ring ? build_list(lx, AST_TUPLE, at, ring) : ring_list(ring);
}

ast *build_paren(lexer *lx, span at, ast *ring, bool comma)
{
    ast *as = NULL;
    if (ring) {
        ast *n = ring;
        do {
            n = n->next;
            as = !as && n->kind == AST_WITHITEM ? n : as;
        } while (n != ring);
        if (!comma && !as && ring->next == ring) {
            if (ring->kind == AST_STARRED) {
                diag_lone_starred(lx->ds, lexer_loc(lx, ring->at));
                lx->line_error = true;
            }
            return ring_list(ring);
        }
    }
    ast *n = build_list(lx, AST_TUPLE, at, ring);
    lx->paren_tuple = n;
    if (as) {
        if (lx->as_tuple) {
            diag_with_target(lx->ds, lexer_loc(lx, as->at));
        } else {
            lx->as_tuple = n;
        }
    }
    return n;
}

ast *build_format(lexer *lx, span at, ast *value, span inside, bool equals, sym conv, span conv_at,
                  ast *spec)
{
    ast *n = build_node(lx, AST_FORMAT, at);
    n->u.format.value = value;
    n->u.format.spec = spec;
    if (equals) {
        n->u.format.text = arena_text(lx->mem, lx->src->text + inside.lo, inside.hi - inside.lo);
        n->u.format.conv = spec || conv ? 0 : 'r';
    }
    if (conv) {
        if (conv->len != 1 || !strchr("rsa", conv->text[0]) || conv_at.hi - conv_at.lo != 2) {
            diag_fstring_field(lx->ds, lexer_loc(lx, conv_at),
                               "has an unknown conversion; there are !r, !s and !a");
            lx->line_error = true;
        } else {
            n->u.format.conv = conv->text[0];
        }
    }
    build_under(lx, n, value);
    build_under(lx, n, spec);
    return n;
}

// --- arguments and parameters ---

// The first item of the list that has the keyword, up to `stop`.
static bool keyword_seen(const ast *list, const ast *stop, sym id)
{
    for (; list != stop; list = list->next) {
        if (list->u.named.id == id) {
            return true;
        }
    }
    return false;
}

ast *build_args(lexer *lx, ast *arg_ring, bool genexp)
{
    ast *list = ring_list(arg_ring);
    bool keyword = false, unpacked = false;
    uint32_t keywords = 0;
    for (ast *a = list; a; a = a->next) {
        if (a->flag && (a->next || a != list || !genexp)) {
            diag_genexp_parentheses(lx->ds, lexer_loc(lx, a->at));
            lx->line_error = true;
        }
        a->flag = 0;
        if (a->u.named.id) {
            // The names are few, or the file is not written by a person.
            if (++keywords <= 300 && keyword_seen(list, a, a->u.named.id)) {
                diag_repeated_argument(lx->ds, lexer_loc(lx, a->at), a->u.named.id->text);
                lx->line_error = true;
            }
            keyword = true;
        } else if (a->op == 2) {
            unpacked = true;
        } else if (a->op == 1 ? unpacked : keyword || unpacked) {
            if (a->op == 1) {
                diag_argument_unpacking(lx->ds, lexer_loc(lx, a->at));
            } else {
                diag_positional_after_keyword(lx->ds, lexer_loc(lx, a->at));
            }
            lx->line_error = true;
        }
    }
    return list;
}

static const char *describe(const ast *n)
{
    switch ((ast_kind)n->kind) {
    case AST_INT:
    case AST_FLOAT:
    case AST_IMAG:
    case AST_STR:
    case AST_BYTES: return "a literal";
    case AST_FSTRING: return "an f-string";
    case AST_CONST:
        return n->op == OP_C_NONE    ? "None"
               : n->op == OP_C_TRUE  ? "True"
               : n->op == OP_C_FALSE ? "False"
                                     : "an ellipsis";
    case AST_NAME: return "a name";
    case AST_ATTR: return "an attribute";
    case AST_INDEX: return "a subscript";
    case AST_TUPLE: return "a tuple";
    case AST_LIST: return "a list";
    case AST_SET: return "a set";
    case AST_DICT: return "a dict";
    case AST_CALL: return "the result of a call";
    case AST_LAMBDA: return "a lambda";
    case AST_TERNARY: return "a conditional expression";
    case AST_COMPARE: return "a comparison";
    case AST_LISTCOMP:
    case AST_SETCOMP:
    case AST_DICTCOMP: return "a comprehension";
    case AST_GENEXP: return "a generator expression";
    case AST_YIELD:
    case AST_YIELD_FROM: return "a yield expression";
    case AST_AWAIT: return "an await expression";
    case AST_WALRUS: return "an assignment expression";
    case AST_STARRED: return "a starred expression";
    default: return "an expression";
    }
}

ast *build_keyword(lexer *lx, span at, ast *key, span key_at, ast *value)
{
    ast *n = build_named(lx, AST_ARG, at, value, NULL);
    if (key->kind == AST_NAME && key->at.lo == key_at.lo) {
        n->u.named.id = key->u.id;
    } else {
        diag_keyword_argument(lx->ds, lexer_loc(lx, key_at),
                              key->kind == AST_NAME ? "a name in parentheses" : describe(key));
        lx->line_error = true;
    }
    return n;
}

ast *build_param(lexer *lx, span at, param_kind kind, sym id, ast *ann, ast *dflt)
{
    ast *n = build_node(lx, AST_PARAM, at);
    n->op = (uint8_t)kind;
    n->u.param.id = id;
    n->u.param.ann = ann;
    n->u.param.dflt = dflt;
    build_under(lx, n, ann);
    build_under(lx, n, dflt);
    return n;
}

static void bad_order(lexer *lx, const ast *p, const char *what)
{
    diag_parameter_order(lx->ds, lexer_loc(lx, p->at), what);
    lx->line_error = true;
}

ast *build_params(lexer *lx, ast *param_ring)
{
    ast *list = NULL, **tail = &list;
    bool slash = false, star = false, dflt = false, bare = false, last = false;
    for (ast *p = ring_list(param_ring); p; p = p->next) {
        if (last) {
            bad_order(lx, p, "no parameter can follow the '**' parameter");
        }
        bare = bare && p->op != PARAM_NORMAL;
        if (bare) {
            bad_order(lx, p, "a name must follow the bare '*'");
            bare = false;
        }
        switch (p->op) {
        case PARAM_SLASH:
            if (slash || star || !list) {
                bad_order(lx, p,
                          !list && !slash ? "at least one parameter must precede '/'"
                          : slash         ? "'/' can occur only once"
                                          : "'/' must come before '*'");
            }
            slash = true;
            for (ast *q = list; q && !star; q = q->next) {
                q->op = PARAM_POSONLY;
                if (!q->next || q->next == p) {
                    break;
                }
            }
            *tail = p->next;  // the marker itself is no parameter
            continue;
        case PARAM_STAR:
            if (star) {
                bad_order(lx, p, "'*' can occur only once");
            }
            star = true;
            bare = !p->u.param.id;
            if (bare && !p->next) {
                bad_order(lx, p, "a name must follow the bare '*'");
            }
            break;
        case PARAM_STARSTAR: last = true; break;
        default:
            if (star) {
                p->op = PARAM_KWONLY;
            } else if (p->u.param.dflt) {
                dflt = true;
            } else if (dflt) {
                bad_order(lx, p, "a parameter without a default follows one with a default");
            }
        }
        *tail = p;
        tail = &p->next;
    }
    return list;
}

// --- targets ---

ast *build_target(lexer *lx, ast *n, const char *verb)
{
    bool deletes = *verb == 'd';
    switch (n->kind) {
    case AST_NAME:
    case AST_ATTR:
    case AST_INDEX: return n;
    case AST_TUPLE:
    case AST_LIST: {
        int starred = 0;
        for (ast *i = n->u.list.first; i; i = i->next) {
            if (i->kind == AST_STARRED && !deletes) {
                if (starred++ == 1) {
                    diag_two_starred(lx->ds, lexer_loc(lx, i->at));
                    lx->line_error = true;
                }
                build_target(lx, i->u.bin.l, verb);
            } else {
                build_target(lx, i, verb);
            }
        }
        return n;
    }
    default: break;
    }
    if (n->kind == AST_STARRED && !deletes) {
        diag_lone_starred(lx->ds, lexer_loc(lx, n->at));
    } else {
        diag *d = diag_bad_target(lx->ds, lexer_loc(lx, n->at), verb, describe(n));
        if (!deletes && (n->kind == AST_CALL || n->kind == AST_COMPARE || n->kind == AST_BINARY)) {
            diag_help(lx->ds, d, "'==' compares");
        }
    }
    lx->line_error = true;
    return n;
}

// --- statements ---

ast *build_del(lexer *lx, span at, ast *ring)
{
    ast *n = build_list(lx, AST_DEL, at, ring);
    for (ast *t = n->u.list.first; t; t = t->next) {
        build_target(lx, t, "delete");
    }
    return n;
}

ast *build_assign(lexer *lx, span at, ast *ring)
{
    ast *n = build_node(lx, AST_ASSIGN, at);
    ast *list = ring_list(ring), *t = list;
    while (t->next->next) {
        t = t->next;
    }
    n->u.assign.value = t->next;
    t->next = NULL;
    n->u.assign.targets = list;
    for (t = list; t; t = t->next) {
        build_target(lx, t, "assign to");
    }
    if (n->u.assign.value->kind == AST_STARRED) {
        diag_lone_starred(lx->ds, lexer_loc(lx, n->u.assign.value->at));
    }
    build_under(lx, n, list);
    build_under(lx, n, n->u.assign.value);
    return n;
}

ast *build_augassign(lexer *lx, span at, ast_op op, ast *target, ast *value)
{
    if (target->kind != AST_NAME && target->kind != AST_ATTR && target->kind != AST_INDEX) {
        diag_bad_augmented_target(lx->ds, lexer_loc(lx, target->at), describe(target));
        lx->line_error = true;
    }
    return build_bin(lx, AST_AUGASSIGN, op, at, target, value);
}

ast *build_annassign(lexer *lx, span at, ast *target, ast *ann, ast *value)
{
    if (target->kind != AST_NAME && target->kind != AST_ATTR && target->kind != AST_INDEX) {
        diag_bad_annotation_target(lx->ds, lexer_loc(lx, target->at), describe(target));
        lx->line_error = true;
    }
    ast *n = build_node(lx, AST_ANNASSIGN, at);
    n->u.assign.targets = target;
    n->u.assign.ann = ann;
    n->u.assign.value = value;
    build_under(lx, n, target);
    build_under(lx, n, ann);
    build_under(lx, n, value);
    return n;
}

sym build_dotted(lexer *lx, sym path, sym part)
{
    char *p = NEW_N(lx->mem, char, path->len + 1 + part->len);
    memcpy(p, path->text, path->len);
    p[path->len] = '.';
    memcpy(p + path->len + 1, part->text, part->len);
    return intern_add(lx->names, p, path->len + 1 + part->len);
}

ast *build_alias(lexer *lx, span at, sym path, sym as)
{
    ast *n = build_node(lx, AST_ALIAS, at);
    n->u.alias.path = path;
    n->u.alias.as = as;
    return n;
}

ast *build_from(lexer *lx, span at, uint32_t level, sym path, ast *alias_ring)
{
    ast *n = build_node(lx, AST_FROM, at);
    n->u.from.level = level;
    n->u.from.path = path;
    n->u.from.aliases = ring_list(alias_ring);
    build_under(lx, n, n->u.from.aliases);
    return n;
}

ast *build_flow(lexer *lx, ast_kind kind, span at, ast *cond, ast *target, ast *body, ast *orelse)
{
    ast *n = build_node(lx, kind, at);
    n->u.flow.cond = cond;
    n->u.flow.target = target;
    n->u.flow.body = body;
    n->u.flow.orelse = orelse;
    build_under(lx, n, cond);
    build_under(lx, n, target);
    build_under(lx, n, body);
    build_under(lx, n, orelse);
    return n;
}

ast *build_if(lexer *lx, ast *first, ast *elif_ring, ast *orelse)
{
    // From the last clause to the first, so that each knows its height.
    ast *rest = NULL;
    for (ast *c = ring_list(elif_ring); c;) {
        ast *next = c->next;
        c->next = rest;
        rest = c;
        c = next;
    }
    ast *tail = orelse;
    while (rest) {
        ast *c = rest;
        rest = c->next;
        c->next = NULL;
        c->u.flow.orelse = tail;
        c->at.hi = first->at.hi;
        build_under(lx, c, tail);
        tail = c;
    }
    first->u.flow.orelse = tail;
    build_under(lx, first, tail);
    return first;
}

ast *build_try(lexer *lx, span at, ast *body, ast *handler_ring, ast *orelse, ast *final)
{
    ast *n = build_node(lx, AST_TRY, at);
    n->u.try_.body = body;
    n->u.try_.handlers = ring_list(handler_ring);
    n->u.try_.orelse = orelse;
    n->u.try_.final = final;
    const ast *first = n->u.try_.handlers;
    n->flag = first && first->flag;
    for (const ast *h = first; h; h = h->next) {
        if (h->flag != first->flag) {
            diag_bad_try(lx->ds, lexer_loc(lx, h->at),
                         "a 'try' has either 'except' or 'except*' clauses, not both");
        } else if (!h->u.handler.type && h->next && !h->flag) {
            diag_bad_try(lx->ds, lexer_loc(lx, h->at),
                         "an 'except:' without a type must be the last clause");
        }
    }
    build_under(lx, n, body);
    build_under(lx, n, n->u.try_.handlers);
    build_under(lx, n, orelse);
    build_under(lx, n, final);
    return n;
}

ast *build_handler(lexer *lx, span at, bool group, ast *type, sym as, ast *body)
{
    ast *n = build_node(lx, AST_HANDLER, at);
    n->flag = group;
    n->u.handler.type = type;
    n->u.handler.as = as;
    n->u.handler.body = body;
    build_under(lx, n, type);
    build_under(lx, n, body);
    return n;
}

ast *build_withitem(lexer *lx, span at, ast *value, ast *target)
{
    ast *n = build_node(lx, AST_WITHITEM, at);
    n->u.withitem.value = value;
    n->u.withitem.target = target ? build_target(lx, target, "assign to") : NULL;
    build_under(lx, n, value);
    build_under(lx, n, target);
    return n;
}

ast *build_withitems(lexer *lx, ast *item_ring)
{
    ast *list = ring_list(item_ring), *tuple = list->u.withitem.value, *ring = NULL;
    if (list->next || list->u.withitem.target || tuple != lx->paren_tuple ||
        tuple->kind != AST_TUPLE || !tuple->u.list.first) {
        return list;
    }
    for (const ast *i = tuple->u.list.first; i; i = i->next) {
        if (i->kind == AST_STARRED || i->kind == AST_WALRUS) {
            return list;  // only a tuple may hold these
        }
    }
    for (ast *i = tuple->u.list.first; i;) {
        ast *next = i->next;
        i->next = NULL;
        ring = ring_add(ring, i->kind == AST_WITHITEM ? i : build_withitem(lx, i->at, i, NULL));
        i = next;
    }
    if (tuple == lx->as_tuple) {
        lx->as_tuple = NULL;
    }
    return ring_list(ring);
}

ast *build_with(lexer *lx, span at, ast *items, ast *body)
{
    ast *n = build_node(lx, AST_WITH, at);
    n->u.with.items = items;
    n->u.with.body = body;
    build_under(lx, n, items);
    build_under(lx, n, body);
    return n;
}

ast *build_def(lexer *lx, ast_kind kind, span at, sym id, ast *tparams, ast *params, ast *returns,
               ast *body)
{
    ast *n = build_node(lx, kind, at);
    n->u.def.id = id;
    n->u.def.tparams = tparams;
    n->u.def.params = params;
    n->u.def.returns = returns;
    n->u.def.body = body;
    build_under(lx, n, tparams);
    build_under(lx, n, params);
    build_under(lx, n, returns);
    build_under(lx, n, body);
    return n;
}

ast *build_decorated(lexer *lx, ast *n, ast *decorator_ring)
{
    n->u.def.decorators = ring_list(decorator_ring);
    build_under(lx, n, n->u.def.decorators);
    return n;
}

ast *build_async(ast *n, span at)
{
    n->flag = 1;
    n->at = at;
    return n;
}

ast *build_match(lexer *lx, ast_kind kind, span at, ast *subject, ast *guard, ast *list)
{
    ast *n = build_node(lx, kind, at);
    n->u.match.subject = subject;
    n->u.match.guard = guard;
    *(kind == AST_MATCH ? &n->u.match.cases : &n->u.match.body) = list;
    build_under(lx, n, subject);
    build_under(lx, n, guard);
    build_under(lx, n, list);
    return n;
}

ast *build_type(lexer *lx, ast_kind kind, span at, int op, sym id, ast *tparams, ast *value)
{
    ast *n = build_node(lx, kind, at);
    n->op = (uint8_t)op;
    n->u.type.id = id;
    n->u.type.tparams = tparams;
    n->u.type.value = value;
    build_under(lx, n, tparams);
    build_under(lx, n, value);
    return n;
}

ast *build_complex(lexer *lx, span at, ast_op op, ast *l, ast *r)
{
    const ast *real = l->kind == AST_UNARY ? l->u.bin.l : l;
    if (real->kind == AST_IMAG || r->kind != AST_IMAG) {
        diag_bad_pattern(lx->ds, lexer_loc(lx, at),
                         "a sum in a pattern is a real and an imaginary number");
        lx->line_error = true;
    }
    return build_bin(lx, AST_BINARY, op, at, l, r);
}

ast *build_pattern(lexer *lx, ast_kind kind, span at, ast *a, ast *b, sym id)
{
    ast *n = build_node(lx, kind, at);
    n->u.pat.a = a;
    n->u.pat.b = b;
    bool wildcard = id && id->len == 1 && id->text[0] == '_' &&
                    (kind == AST_PAT_CAPTURE || kind == AST_PAT_STAR);
    n->u.pat.id = wildcard ? NULL : id;
    build_under(lx, n, a);
    build_under(lx, n, b);
    return n;
}
