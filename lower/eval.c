// Expressions, names, assignment.
#include "lower/interp.h"

#include <string.h>

#define TRY(v, e)                                                                                  \
    value v = eval(it, (e));                                                                       \
    if (IS_ERR(v)) {                                                                               \
        return VERR;                                                                               \
    }

// ---- names

static value unbound(interp *it, const ast *e)
{
    if (e->scope == SCOPE_LOCAL || e->scope == SCOPE_CELL) {
        const unit *u = it->top->unit;
        bool own = e->scope == SCOPE_LOCAL || e->slot < u->nown;
        if (own) {
            return raise_msg(
                it, "UnboundLocalError",
                "cannot access local variable '%s' where it is not associated with a value",
                e->u.id->text);
        }
        return raise_msg(it, "NameError",
                         "cannot access free variable '%s' where it is not associated with a value "
                         "in enclosing scope",
                         e->u.id->text);
    }
    return raise_msg(it, "NameError", "name '%s' is not defined", e->u.id->text);
}

value load_global(interp *it, vmodule *m, sym id)
{
    uint32_t limit = UINT32_MAX;
    // While the module's own top level runs, a name means what it meant up to that statement.
    for (const frame *f = it->top; f; f = f->prev) {
        if (f->module == m && f->unit && f->unit->kind == UNIT_MODULE) {
            limit = f->limit;
            break;
        }
        if (f->module != m) {
            continue;
        }
    }
    value v = module_attr(it, m, id, limit);
    if (v.tag != V_UNDEF) {
        return v;
    }
    return attrs_get(&it->builtins, id);
}

static value load_name(interp *it, const ast *e)
{
    frame *f = it->top;
    value v;
    switch ((scope_kind)e->scope) {
    case SCOPE_LOCAL: v = f->locals[e->slot]; break;
    case SCOPE_CELL: v = f->cells[e->slot]->v; break;
    case SCOPE_CLASS:
        v = attrs_get(&f->cls->attrs, e->u.id);
        if (v.tag == V_UNDEF && e->slot) {
            v = f->cells[e->slot - 1]->v;
        }
        if (v.tag == V_UNDEF) {
            v = load_global(it, f->module, e->u.id);
        }
        break;
    case SCOPE_GLOBAL:
    case SCOPE_NONE:
    default: v = load_global(it, f->module, e->u.id); break;
    }
    return v.tag == V_UNDEF ? unbound(it, e) : v;
}

static bool store_name(interp *it, uint8_t scope, uint32_t slot, sym id, value v)
{
    frame *f = it->top;
    switch ((scope_kind)scope) {
    case SCOPE_LOCAL: f->locals[slot] = v; return true;
    case SCOPE_CELL: f->cells[slot]->v = v; return true;
    case SCOPE_CLASS: attrs_set(it, &f->cls->attrs, id, v); return true;
    case SCOPE_GLOBAL:
    case SCOPE_NONE:
    default:
        // A global statement may write a name whose own statements have not run yet.
        if (f->unit->kind != UNIT_MODULE) {
            value old = module_attr(it, f->module, id, UINT32_MAX);
            if (IS_ERR(old)) {
                return false;
            }
        }
        attrs_set(it, &f->module->attrs, id, v);
        return true;
    }
}

// ---- assignment

static bool unpack_count(interp *it, uint32_t want, uint32_t star, uint32_t n, bool more)
{
    if (more) {
        value_error(it, "too many values to unpack (expected %u)", want);
    } else if (star == UINT32_MAX) {
        value_error(it, "not enough values to unpack (expected %u, got %u)", want, n);
    } else {
        value_error(it, "not enough values to unpack (expected at least %u, got %u)", want - 1, n);
    }
    return false;
}

// The items of an iterator that `want` targets ask for, and no more. NULL: exception set.
static value *unpack_iterator(interp *it, value v, uint32_t want, uint32_t star, uint32_t *n)
{
    viter s;
    if (!iter_init(it, &s, v)) {
        if (class_of(v) == NULL && v.tag != V_OPAQUE && v.tag != V_DYNRANGE) {
            it->exc = VUNDEF;
            type_error(it, "cannot unpack non-iterable %s object", type_name(it, v));
        }
        return NULL;
    }
    value out = v_list(it, NULL, 0), x;
    vlist *l = out.u.list;
    vec_reserve(it->mem, l, want + 1);
    uint32_t before = star == UINT32_MAX ? want : star;
    int r = 1;
    while (l->n < before && (r = iter_next(it, &s, &x)) == 1) {
        list_push(it, l, x);
    }
    if (r == 1 && star == UINT32_MAX) {
        r = iter_next(it, &s, &x);
        if (r == 1) {
            unpack_count(it, want, star, l->n, true);
            return NULL;
        }
    } else if (r == 1) {
        // CPython makes a list of the iterator, and so asks for its __iter__ again.
        value rest = s.src.tag == V_OBJ ? list_from(it, s.src) : iter_rest(it, &s);
        if (IS_ERR(rest)) {
            return NULL;
        }
        for (uint32_t i = 0; i < rest.u.list->n; i++) {
            list_push(it, l, rest.u.list->at[i]);
        }
    }
    *n = l->n;
    return r < 0 ? NULL : l->at;
}

static bool unpack(interp *it, const ast *to, value v)
{
    uint32_t want = to->u.list.n, n, star = UINT32_MAX, k = 0;
    for (const ast *t = to->u.list.first; t; t = t->next, k++) {
        if (t->kind == AST_STARRED) {
            star = k;
        }
    }
    value small[8], *items = small;
    if (v.tag == V_TUPLE || v.tag == V_LIST) {
        const value *at = v.tag == V_TUPLE ? v.u.tuple->at : v.u.list->at;
        n = v.tag == V_TUPLE ? v.u.tuple->n : v.u.list->n;
        // A target may change the list being unpacked.
        items = n <= 8 ? small : NEW_N(it->mem, value, n);
        if (n) {
            memcpy(items, at, n * sizeof *items);
        }
    } else {
        items = unpack_iterator(it, v, want, star, &n);
        if (!items) {
            return false;
        }
    }
    if (star == UINT32_MAX ? n != want : n + 1 < want) {
        return unpack_count(it, want, star, n, n > want);
    }
    uint32_t i = 0;
    k = 0;
    for (const ast *t = to->u.list.first; t; t = t->next, k++) {
        if (k == star) {
            uint32_t m = n - (want - 1);
            if (!assign_to(it, t->u.bin.l, v_list(it, items + i, m))) {
                return false;
            }
            i += m;
        } else if (!assign_to(it, t, items[i++])) {
            return false;
        }
    }
    return true;
}

bool assign_to(interp *it, const ast *to, value v)
{
    switch ((ast_kind)to->kind) {
    case AST_NAME: return store_name(it, to->scope, to->slot, to->u.id, v);
    case AST_ATTR: {
        value o = eval(it, to->u.named.value);
        it->top->at = to;
        return !IS_ERR(o) && set_attr(it, o, to->u.named.id, v);
    }
    case AST_INDEX: {
        value o = eval(it, to->u.index.value);
        if (IS_ERR(o)) {
            return false;
        }
        value k = eval(it, to->u.index.key);
        it->top->at = to;
        return !IS_ERR(k) && set_index(it, o, k, v);
    }
    case AST_TUPLE:
    case AST_LIST: return unpack(it, to, v);
    case AST_PAT_CAPTURE:
    case AST_PAT_STAR:
    case AST_PAT_REST:
    case AST_PAT_AS: return store_name(it, to->scope, to->slot, to->u.pat.id, v);
    case AST_DEF:
    case AST_CLASS: return store_name(it, to->scope, to->slot, to->u.def.id, v);
    case AST_HANDLER: return store_name(it, to->scope, to->slot, to->u.handler.as, v);
    case AST_ALIAS: {
        sym id = to->u.alias.as;
        if (!id) {
            const char *dot = strchr(to->u.alias.path->text, '.');
            id = dot ? intern_add(it->names, to->u.alias.path->text,
                                  (size_t)(dot - to->u.alias.path->text))
                     : to->u.alias.path;
        }
        return store_name(it, to->scope, to->slot, id, v);
    }
    case AST_TYPE_ALIAS: return store_name(it, to->scope, to->slot, to->u.type.id, v);
    default: type_error(it, "cannot assign to this expression"); return false;
    }
}

// ---- displays and comprehensions

static value eval_items(interp *it, const ast *e, bool list)
{
    bool star = false;
    for (const ast *i = e->u.list.first; i; i = i->next) {
        star |= i->kind == AST_STARRED;
    }
    if (!star) {
        uint32_t n = 0;
        value small[16], *at = e->u.list.n <= 16 ? small : NEW_N(it->mem, value, e->u.list.n);
        for (const ast *i = e->u.list.first; i; i = i->next) {
            at[n] = eval(it, i);
            if (IS_ERR(at[n++])) {
                return VERR;
            }
        }
        return list ? v_list(it, at, n) : v_tuple(it, at, n);
    }
    value l = v_list(it, NULL, 0);
    for (const ast *i = e->u.list.first; i; i = i->next) {
        if (i->kind != AST_STARRED) {
            TRY(v, i);
            list_push(it, l.u.list, v);
            continue;
        }
        TRY(v, i->u.bin.l);
        uint32_t n;
        value *at = items_of(it, v, &n);
        if (!at) {
            if (class_of(v) == NULL) {
                it->exc = VUNDEF;
                return type_error(it, "Value after * must be an iterable, not %s",
                                  type_name(it, v));
            }
            return VERR;
        }
        for (uint32_t k = 0; k < n; k++) {
            list_push(it, l.u.list, at[k]);
        }
    }
    return list ? l : v_tuple(it, l.u.list->at, l.u.list->n);
}

static bool is_int_constant(const ast *e)
{
    return e->kind == AST_INT || (e->kind == AST_UNARY && e->u.bin.l->kind == AST_INT);
}

static value eval_set(interp *it, const ast *e)
{
    value l = eval_items(it, e, true);
    if (IS_ERR(l)) {
        return l;
    }
    value s = v_set(it);
    for (uint32_t i = 0; i < l.u.list->n; i++) {
        if (!dict_set(it, s.u.dict, l.u.list->at[i], VNONE)) {
            return VERR;
        }
    }
    // CPython keeps three constants or more as a frozenset that it builds twice, which shows where
    // numbers collide.
    bool constant = e->u.list.n >= 3;
    for (const ast *i = e->u.list.first; i && constant; i = i->next) {
        constant = is_int_constant(i);
    }
    if (constant) {
        set_settle(it, s.u.dict);
        s.u.dict->settled = 0;
    }
    return s;
}

static value eval_dict(interp *it, const ast *e)
{
    value d = v_dict(it);
    for (const ast *p = e->u.list.first; p; p = p->next) {
        if (!p->u.bin.l) {
            TRY(m, p->u.bin.r);
            value src = m.tag == V_OBJ && m.u.obj->base.tag == V_DICT ? m.u.obj->base : m;
            if (src.tag != V_DICT) {
                return type_error(it, "'%s' object is not a mapping", type_name(it, m));
            }
            for (uint32_t i = 0; i < src.u.dict->n; i++) {
                if (src.u.dict->at[i].key.tag != V_UNDEF &&
                    !dict_set(it, d.u.dict, src.u.dict->at[i].key, src.u.dict->at[i].val)) {
                    return VERR;
                }
            }
            continue;
        }
        TRY(k, p->u.bin.l);
        TRY(v, p->u.bin.r);
        if (!dict_set(it, d.u.dict, k, v)) {
            return VERR;
        }
    }
    return d;
}

static bool comp_add(interp *it, const ast *e, value out)
{
    value v = eval(it, e->u.comp.elt);
    if (IS_ERR(v)) {
        return false;
    }
    if (out.tag == V_LIST) {
        list_push(it, out.u.list, v);
        return true;
    }
    if (out.tag == V_SET) {
        return dict_set(it, out.u.dict, v, VNONE);
    }
    value w = eval(it, e->u.comp.value);
    return !IS_ERR(w) && dict_set(it, out.u.dict, v, w);
}

static bool comp_clause(interp *it, const ast *e, const ast *c, value out, const value *first)
{
    if (!c) {
        return comp_add(it, e, out);
    }
    value src = first ? *first : eval(it, c->u.clause.iter);
    viter s;
    if (IS_ERR(src) || !iter_init(it, &s, src)) {
        return false;
    }
    value x;
    int r;
    while ((r = iter_next(it, &s, &x)) == 1) {
        if (!interp_step(it) || !assign_to(it, c->u.clause.target, x)) {
            return false;
        }
        int keep = 1;
        for (const ast *k = c->u.clause.conds; k && keep == 1; k = k->next) {
            value t = eval(it, k);
            keep = IS_ERR(t) ? -1 : truth(it, t);
        }
        if (keep < 0 || (keep && !comp_clause(it, e, c->next, out, NULL))) {
            return false;
        }
    }
    return r == 0;
}

static value comp_run(interp *it, const ast *e, const value *first)
{
    value out = e->kind == AST_SETCOMP    ? v_set(it)
                : e->kind == AST_DICTCOMP ? v_dict(it)
                                          : v_list(it, NULL, 0);
    return comp_clause(it, e, e->u.comp.clauses, out, first) ? out : VERR;
}

// Its variables outlive the expression or are captured by a function inside: a frame of its own.
static value comp_in_frame(interp *it, const ast *e)
{
    value first = eval(it, e->u.comp.clauses->u.clause.iter);
    if (IS_ERR(first)) {
        return first;
    }
    it->top->at = e;
    unit *u = e->cache;
    frame on_stack, *f = e->kind == AST_GENEXP ? NEW(it->mem, frame) : &on_stack;
    *f = (frame){.prev = it->top,
                 .unit = u,
                 .module = it->top->module,
                 .cls = it->top->cls,
                 .call = e,
                 .at = e,
                 .id = it->top->id};
    f->locals = NEW_N(it->mem, value, u->nlocals);
    f->cells = NEW_N(it->mem, cell *, u->nown + u->nfree);
    for (uint32_t i = 0; i < u->nown; i++) {
        f->cells[i] = NEW(it->mem, cell);
    }
    for (uint32_t i = 0; i < u->nfree; i++) {
        f->cells[u->nown + i] = it->top->cells[u->free_from[i]];
    }
    if (e->kind == AST_GENEXP) {
        return gen_of_expression(it, e, f, first);
    }
    f->place = it->top->place;
    f->loops = it->top->loops;
    it->top = f;
    value out = comp_run(it, e, &first);
    it->top = f->prev;
    return out;
}

static value eval_comp(interp *it, const ast *e)
{
    return e->scope == 1 ? comp_in_frame(it, e) : comp_run(it, e, NULL);
}

static value eval_compare(interp *it, const ast *e)
{
    TRY(a, e->u.bin.l);
    for (const ast *c = e->u.bin.r; c; c = c->next) {
        TRY(b, c->u.bin.r);
        value r;
        it->top->at = e;
        switch ((ast_op)c->op) {
        case OP_IS:
        case OP_IS_NOT: r = compare_identity(it, (ast_op)c->op, a, b); break;
        case OP_IN: r = contains(it, b, a); break;
        case OP_NOT_IN:
            r = contains(it, b, a);
            r = IS_ERR(r) ? r : VBOOL(!r.u.b);
            break;
        default: r = compare(it, (ast_op)c->op, a, b); break;
        }
        if (IS_ERR(r) || !c->next) {
            return r;
        }
        int t = truth(it, r);
        if (t <= 0) {
            return t < 0 ? VERR : r;
        }
        a = b;
    }
    return VBOOL(true);
}

static value eval_lambda(interp *it, const ast *e)
{
    return make_function(it, e);
}

static value eval_slice(interp *it, const ast *e)
{
    vslice *s = NEW(it->mem, vslice);
    s->start = e->u.three.a ? eval(it, e->u.three.a) : VNONE;
    if (IS_ERR(s->start)) {
        return VERR;
    }
    s->stop = e->u.three.b ? eval(it, e->u.three.b) : VNONE;
    if (IS_ERR(s->stop)) {
        return VERR;
    }
    s->step = e->u.three.c ? eval(it, e->u.three.c) : VNONE;
    return IS_ERR(s->step) ? VERR : VPTR(V_SLICE, s);
}

static value eval_constant(interp *it, const ast *e)
{
    switch ((ast_op)e->op) {
    case OP_C_NONE: return VNONE;
    case OP_C_TRUE: return VBOOL(true);
    case OP_C_FALSE: return VBOOL(false);
    default: (void)it; return VTAG(V_ELLIPSIS);
    }
}

// String constants are made once and kept on their node.
static value eval_str(interp *it, const ast *e)
{
    if (!e->cache) {
        value v = v_str(it, e->u.str.p, e->u.str.len);
        ((ast *)(uintptr_t)e)->cache = v.u.str;
    }
    return VPTR(e->kind == AST_BYTES ? V_BYTES : V_STR, e->cache);
}

// One part of a tensor's index; a slice goes into *room.
static value index_part(interp *it, const ast *k, vslice *room)
{
    if (k->kind != AST_SLICE) {
        return eval(it, k);
    }
    room->start = k->u.three.a ? eval(it, k->u.three.a) : VNONE;
    room->stop = k->u.three.b && !IS_ERR(room->start) ? eval(it, k->u.three.b) : VNONE;
    room->step = k->u.three.c && !IS_ERR(room->stop) ? eval(it, k->u.three.c) : VNONE;
    return IS_ERR(room->start) || IS_ERR(room->stop) || IS_ERR(room->step) ? VERR
                                                                           : VPTR(V_SLICE, room);
}

// t[a:b, c]: tensors are indexed several times an instruction, so the key lives on the stack and
// not in the arena.
static value index_tensor(interp *it, const ast *e, value t)
{
    const ast *k = e->u.index.key;
    vslice room[IR_MAX_DIMS];
    bool starred = false;
    for (const ast *i = k->kind == AST_TUPLE ? k->u.list.first : NULL; i; i = i->next) {
        starred |= i->kind == AST_STARRED;
    }
    value key;
    union {
        vtuple tuple;
        char bytes[sizeof(vtuple) + IR_MAX_DIMS * sizeof(value)];
    } keys;
    if (k->kind == AST_TUPLE && !starred && k->u.list.n <= IR_MAX_DIMS) {
        keys.tuple.cls = NULL;
        keys.tuple.n = 0;
        for (const ast *i = k->u.list.first; i; i = i->next) {
            value v = index_part(it, i, &room[keys.tuple.n]);
            if (IS_ERR(v)) {
                return VERR;
            }
            keys.tuple.at[keys.tuple.n++] = v;
        }
        key = VPTR(V_TUPLE, &keys.tuple);
    } else {
        key = index_part(it, k, room);
    }
    it->top->at = e;
    return IS_ERR(key) ? key : tensor_index(it, t, key);
}

value eval(interp *it, const ast *e)
{
    switch ((ast_kind)e->kind) {
    case AST_NAME: {
        if (e->scope == SCOPE_LOCAL) {
            value v = it->top->locals[e->slot];
            if (v.tag != V_UNDEF) {
                return v;
            }
        }
        if (e->scope == SCOPE_CELL) {
            value v = it->top->cells[e->slot]->v;
            if (v.tag != V_UNDEF) {
                return v;
            }
        }
        it->top->at = e;
        return load_name(it, e);
    }
    case AST_INT:
        if (e->flag) {
            it->top->at = e;
            return raise_msg(it, "OverflowError", "integer %s does not fit in 64 bits", e->u.str.p);
        }
        if (e->u.i > UINT32_MAX) {
            it->top->at = e;
            if (interp_warn_first(it, D_wide_constant)) {
                diag_wide_constant(it->ds, interp_loc(it),
                                   arena_printf(it->mem, "%lld", (long long)e->u.i));
            }
        }
        return VINT(e->u.i);
    case AST_FLOAT: return VFLT(e->u.d);
    case AST_IMAG: it->top->at = e; return type_error(it, "complex numbers are not supported");
    case AST_STR:
    case AST_BYTES: return eval_str(it, e);
    case AST_FSTRING: return eval_fstring(it, e);
    case AST_CONST: return eval_constant(it, e);
    default: break;
    }
    if (!stack_ok(it)) {
        return VERR;
    }
    switch ((ast_kind)e->kind) {
    case AST_TUPLE: return eval_items(it, e, false);
    case AST_LIST: return eval_items(it, e, true);
    case AST_SET: return eval_set(it, e);
    case AST_DICT: return eval_dict(it, e);
    case AST_UNARY: {
        TRY(v, e->u.bin.l);
        it->top->at = e;
        return unary_op(it, (ast_op)e->op, v);
    }
    case AST_BINARY: {
        TRY(a, e->u.bin.l);
        TRY(b, e->u.bin.r);
        if (a.tag == V_INT && b.tag == V_INT && e->op <= OP_MUL) {  // + - *
            int64_t r;
            bool over = e->op == OP_ADD   ? __builtin_add_overflow(a.u.i, b.u.i, &r)
                        : e->op == OP_SUB ? __builtin_sub_overflow(a.u.i, b.u.i, &r)
                                          : __builtin_mul_overflow(a.u.i, b.u.i, &r);
            if (!over) {
                return VINT(r);
            }
        }
        it->top->at = e;
        return binary_op(it, (ast_op)e->op, a, b);
    }
    case AST_BOOLOP: {
        TRY(a, e->u.bin.l);
        int t = truth(it, a);
        if (t < 0) {
            return VERR;
        }
        if (t == (e->op == OP_OR)) {
            return a;
        }
        return eval(it, e->u.bin.r);
    }
    case AST_COMPARE: return eval_compare(it, e);
    case AST_CALL: return eval_call(it, e);
    case AST_ATTR: {
        TRY(o, e->u.named.value);
        it->top->at = e;
        return get_attr(it, o, e->u.named.id);
    }
    case AST_INDEX: {
        TRY(o, e->u.index.value);
        if (o.tag == V_TENSOR) {
            return index_tensor(it, e, o);
        }
        TRY(k, e->u.index.key);
        it->top->at = e;
        return get_index(it, o, k);
    }
    case AST_SLICE: return eval_slice(it, e);
    case AST_TERNARY: {
        TRY(c, e->u.three.c);
        int t = truth(it, c);
        return t < 0 ? VERR : eval(it, t ? e->u.three.a : e->u.three.b);
    }
    case AST_LAMBDA: return eval_lambda(it, e);
    case AST_WALRUS: {
        TRY(v, e->u.bin.r);
        return assign_to(it, e->u.bin.l, v) ? v : VERR;
    }
    case AST_LISTCOMP:
    case AST_SETCOMP:
    case AST_DICTCOMP:
    case AST_GENEXP: return eval_comp(it, e);
    case AST_STARRED: it->top->at = e; return type_error(it, "can't use starred expression here");
    case AST_YIELD:
    case AST_YIELD_FROM: {
        value v = e->u.bin.l ? eval(it, e->u.bin.l) : VNONE;
        if (IS_ERR(v)) {
            return v;
        }
        it->top->at = e;
        return e->kind == AST_YIELD ? gen_yield(it, v) : gen_yield_from(it, v);
    }
    case AST_AWAIT:
        it->top->at = e;
        return raise_msg(it, "NotImplementedError", "await is not supported in kernels");
    default:
        it->top->at = e;
        return type_error(it, "this expression is not supported (%s)",
                          ast_kind_name((ast_kind)e->kind));
    }
}
