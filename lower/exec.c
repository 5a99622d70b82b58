// Statements.
#include "lower/interp.h"

#include <string.h>

static int condition(interp *it, const ast *cond, value v)
{
    it->top->at = cond;
    return IS_ERR(v) ? -1 : truth(it, v);
}

static flow exec_if(interp *it, const ast *s)
{
    for (;;) {
        int t = condition(it, s->u.flow.cond, eval(it, s->u.flow.cond));
        if (t < 0) {
            return FLOW_ERROR;
        }
        if (t) {
            return exec_block(it, s->u.flow.body);
        }
        const ast *e = s->u.flow.orelse;
        if (!e) {
            return FLOW_NEXT;
        }
        if (e->kind != AST_IF || e->next) {
            return exec_block(it, e);
        }
        s = e;
        it->top->at = s;
    }
}

static flow exec_for(interp *it, const ast *s)
{
    value src = eval(it, s->u.flow.cond);
    if (IS_ERR(src)) {
        return FLOW_ERROR;
    }
    it->top->at = s->u.flow.cond;
    if (src.tag == V_DYNRANGE) {
        return exec_dynamic_for(it, s, src);
    }
    viter i;
    if (!iter_init(it, &i, src)) {
        return FLOW_ERROR;
    }
    const ast *t = s->u.flow.target;
    loop_ctx lc = {.prev = it->top->loops, .var = t->kind == AST_NAME ? t->u.id : NULL};
    frame *f = it->top;
    flow fl = FLOW_NEXT;
    value x;
    int r;
    while ((r = iter_next(it, &i, &x)) == 1) {
        if (!interp_step(it) || !assign_to(it, t, x)) {
            fl = FLOW_ERROR;
            break;
        }
        if (x.tag == V_INT && lc.var) {
            lc.value = x.u.i;
            lc.place = IR_NONE;
            f->loops = &lc;
        }
        fl = exec_block(it, s->u.flow.body);
        if (fl == FLOW_BREAK || fl == FLOW_RETURN || fl == FLOW_ERROR) {
            break;
        }
        fl = FLOW_NEXT;
    }
    f->loops = lc.prev;
    if (r < 0) {
        return FLOW_ERROR;
    }
    if (fl != FLOW_NEXT && src.tag == V_ITER && !gen_leave_loop(it, src, s->u.flow.cond)) {
        return FLOW_ERROR;
    }
    if (fl == FLOW_BREAK) {
        return FLOW_NEXT;
    }
    if (fl == FLOW_NEXT && s->u.flow.orelse) {
        return exec_block(it, s->u.flow.orelse);
    }
    return fl;
}

static flow exec_while(interp *it, const ast *s)
{
    for (;;) {
        value c = eval(it, s->u.flow.cond);
        if (c.tag == V_REG) {
            return exec_dynamic_while(it, s, c);
        }
        int t = condition(it, s->u.flow.cond, c);
        if (t < 0 || !interp_step(it)) {
            return FLOW_ERROR;
        }
        if (!t) {
            return s->u.flow.orelse ? exec_block(it, s->u.flow.orelse) : FLOW_NEXT;
        }
        flow fl = exec_block(it, s->u.flow.body);
        if (fl == FLOW_BREAK) {
            return FLOW_NEXT;
        }
        if (fl == FLOW_RETURN || fl == FLOW_ERROR) {
            return fl;
        }
    }
}

// In-place operators change lists, sets and dicts themselves.
static value inplace_op(interp *it, ast_op op, value a, value b)
{
    if (op == OP_ADD && a.tag == V_LIST) {
        value l = list_from(it, b);
        for (uint32_t i = 0; !IS_ERR(l) && i < l.u.list->n; i++) {
            list_push(it, a.u.list, l.u.list->at[i]);
        }
        return IS_ERR(l) ? l : a;
    }
    if (op == OP_BITOR && a.tag == V_DICT && b.tag != V_DICT && !class_of(b)) {
        value f = find_method(it, a, intern_cstr(it->names, "update"));
        return IS_ERR(f) || IS_ERR(call_values(it, f, &b, 1)) ? VERR : a;
    }
    if (op == OP_MUL && a.tag == V_LIST) {
        value l = binary_op(it, op, a, b);
        if (!IS_ERR(l)) {
            *a.u.list = *l.u.list;
        }
        return IS_ERR(l) ? l : a;
    }
    bool both_dicts = a.tag == V_DICT && b.tag == V_DICT && op == OP_BITOR;
    bool both_sets = a.tag == V_SET && b.tag == V_SET && a.u.dict->dflt.tag != V_ELLIPSIS &&
                     (op == OP_BITOR || op == OP_BITAND || op == OP_SUB || op == OP_BITXOR);
    if (both_dicts || both_sets) {
        value d = binary_op(it, op, a, b);
        if (!IS_ERR(d)) {
            *a.u.dict = *d.u.dict;
        }
        return IS_ERR(d) ? d : a;
    }
    if (class_of(a)) {
        const sym names[] = {[OP_ADD] = N(__iadd__),           [OP_SUB] = N(__isub__),
                             [OP_MUL] = N(__imul__),           [OP_DIV] = N(__itruediv__),
                             [OP_FLOORDIV] = N(__ifloordiv__), [OP_MOD] = N(__imod__),
                             [OP_POW] = N(__ipow__),           [OP_MATMUL] = N(__imatmul__),
                             [OP_LSHIFT] = N(__ilshift__),     [OP_RSHIFT] = N(__irshift__),
                             [OP_BITAND] = N(__iand__),        [OP_BITOR] = N(__ior__),
                             [OP_BITXOR] = N(__ixor__)};
        value r = call_special(it, a, names[op], &b, 1);
        if (r.tag != V_UNDEF && r.tag != V_NOTIMPLEMENTED) {
            return r;
        }
    }
    return binary_op(it, op, a, b);
}

static const char *augmented_name(interp *it, ast_op op)
{
    return arena_printf(it->mem, "%s=", ast_op_text(op));
}

static flow exec_augassign(interp *it, const ast *s)
{
    const ast *t = s->u.bin.l;
    value obj = VNONE, key = VNONE, old;
    if (t->kind == AST_ATTR) {
        obj = eval(it, t->u.named.value);
        it->top->at = t;
        old = IS_ERR(obj) ? obj : get_attr(it, obj, t->u.named.id);
    } else if (t->kind == AST_INDEX) {
        obj = eval(it, t->u.index.value);
        key = IS_ERR(obj) ? obj : eval(it, t->u.index.key);
        it->top->at = t;
        old = IS_ERR(key) ? key : get_index(it, obj, key);
    } else {
        old = eval(it, t);
    }
    if (IS_ERR(old)) {
        return FLOW_ERROR;
    }
    value by = eval(it, s->u.bin.r);
    if (IS_ERR(by)) {
        return FLOW_ERROR;
    }
    it->top->at = s;
    value v = inplace_op(it, (ast_op)s->op, old, by);
    if (IS_ERR(v)) {
        // CPython names the operator as it was written.
        if (it->exc.tag == V_OBJ && !it->exc.u.obj->diag && class_of(old) == NULL &&
            class_of(by) == NULL) {
            value a = attrs_get(&it->exc.u.obj->attrs, N(args));
            const char *pre = "unsupported operand type(s) for ";
            if (a.tag == V_TUPLE && a.u.tuple->n == 1 && a.u.tuple->at[0].tag == V_STR &&
                strncmp(a.u.tuple->at[0].u.str->p, pre, strlen(pre)) == 0) {
                const char *colon = strchr(a.u.tuple->at[0].u.str->p, ':');
                a.u.tuple->at[0] =
                    v_cstr(it, arena_printf(it->mem, "%s%s%s", pre,
                                            augmented_name(it, (ast_op)s->op), colon));
            }
        }
        return FLOW_ERROR;
    }
    bool ok = t->kind == AST_ATTR    ? set_attr(it, obj, t->u.named.id, v)
              : t->kind == AST_INDEX ? set_index(it, obj, key, v)
                                     : assign_to(it, t, v);
    return ok ? FLOW_NEXT : FLOW_ERROR;
}

static bool del_target(interp *it, const ast *t)
{
    switch ((ast_kind)t->kind) {
    case AST_NAME: {
        value v = eval(it, t);
        if (IS_ERR(v)) {
            return false;
        }
        frame *f = it->top;
        switch ((scope_kind)t->scope) {
        case SCOPE_LOCAL: f->locals[t->slot] = VUNDEF; return true;
        case SCOPE_CELL: f->cells[t->slot]->v = VUNDEF; return true;
        case SCOPE_CLASS: attrs_del(&f->cls->attrs, t->u.id); return true;
        case SCOPE_GLOBAL:
        case SCOPE_NONE: attrs_del(&f->module->attrs, t->u.id); return true;
        }
        return true;
    }
    case AST_ATTR: {
        value o = eval(it, t->u.named.value);
        return !IS_ERR(o) && del_attr(it, o, t->u.named.id);
    }
    case AST_INDEX: {
        value o = eval(it, t->u.index.value);
        value k = IS_ERR(o) ? o : eval(it, t->u.index.key);
        return !IS_ERR(k) && del_index(it, o, k);
    }
    case AST_TUPLE:
    case AST_LIST:
        for (const ast *i = t->u.list.first; i; i = i->next) {
            if (!del_target(it, i)) {
                return false;
            }
        }
        return true;
    default: return true;
    }
}

static flow exec_assert(interp *it, const ast *s)
{
    int t = condition(it, s->u.bin.l, eval(it, s->u.bin.l));
    if (t < 0) {
        return FLOW_ERROR;
    }
    if (t) {
        return FLOW_NEXT;
    }
    value msg = VUNDEF;
    if (s->u.bin.r) {
        msg = eval(it, s->u.bin.r);
        if (IS_ERR(msg)) {
            return FLOW_ERROR;
        }
    }
    it->top->at = s->u.bin.l;
    raise_obj(it, exc_new(it, exc_class(it, "AssertionError"), msg));
    return FLOW_ERROR;
}

static flow exec_raise(interp *it, const ast *s)
{
    if (!s->u.bin.l) {
        value cur = VUNDEF;
        for (const frame *f = it->top; f && cur.tag == V_UNDEF; f = f->prev) {
            cur = f->exc_handling;
        }
        if (cur.tag != V_OBJ) {
            raise_msg(it, "RuntimeError", "No active exception to reraise");
        } else {
            it->exc = cur;
        }
        return FLOW_ERROR;
    }
    value v = eval(it, s->u.bin.l);
    if (IS_ERR(v)) {
        return FLOW_ERROR;
    }
    value cause = VUNDEF;
    if (s->u.bin.r) {
        cause = eval(it, s->u.bin.r);
        if (IS_ERR(cause)) {
            return FLOW_ERROR;
        }
    }
    it->top->at = s;
    raise_obj(it, v);
    if (it->exc.tag == V_OBJ) {
        if (cause.tag != V_UNDEF) {
            value exc = it->exc;
            it->exc = VUNDEF;
            if (cause.tag == V_CLASS && cause.u.cls->is_exception) {
                cause = call_values(it, cause, NULL, 0);
            }
            if (IS_ERR(cause)) {
                return FLOW_ERROR;
            }
            if (cause.tag != V_NONE && (cause.tag != V_OBJ || !cause.u.obj->cls->is_exception)) {
                type_error(it, "exception causes must derive from BaseException");
                return FLOW_ERROR;
            }
            it->exc = exc;
            attrs_set(it, &it->exc.u.obj->attrs, N(__cause__), cause);
            attrs_set(it, &it->exc.u.obj->attrs, N(__suppress_context__), VBOOL(true));
        }
        const frame *f = it->top;
        while (f && f->exc_handling.tag != V_OBJ) {
            f = f->prev;
        }
        if (f) {
            exc_set_context(it, it->exc, f->exc_handling);
        }
    }
    return FLOW_ERROR;
}

// 1 matches, 0 does not, -1 error
static int exc_matches(interp *it, value exc, value type)
{
    uint32_t n = 1;
    const value *at = &type;
    if (type.tag == V_TUPLE) {
        n = type.u.tuple->n;
        at = type.u.tuple->at;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (at[i].tag == V_TUPLE) {
            if (!stack_ok(it)) {
                return -1;
            }
            int r = exc_matches(it, exc, at[i]);
            if (r) {
                return r;
            }
            continue;
        }
        if (at[i].tag == V_OPAQUE) {
            continue;
        }
        if (at[i].tag != V_CLASS || !at[i].u.cls->is_exception) {
            type_error(it,
                       "catching classes that do not inherit from BaseException is not allowed");
            return -1;
        }
        if (class_is(exc.u.obj->cls, at[i].u.cls)) {
            return 1;
        }
    }
    return 0;
}

static bool catches_import_error(const ast *s)
{
    for (const ast *h = s->u.try_.handlers; h; h = h->next) {
        const ast *t = h->u.handler.type;
        if (!t) {
            return true;
        }
        const ast *n = t->kind == AST_TUPLE ? t->u.list.first : t;
        for (; n; n = t->kind == AST_TUPLE ? n->next : NULL) {
            if (n->kind == AST_NAME && (strcmp(n->u.id->text, "ImportError") == 0 ||
                                        strcmp(n->u.id->text, "ModuleNotFoundError") == 0 ||
                                        strcmp(n->u.id->text, "Exception") == 0)) {
                return true;
            }
        }
    }
    return false;
}

static flow exec_handlers(interp *it, const ast *s)
{
    frame *f = it->top;
    value exc = it->exc;
    if (exc.tag != V_OBJ || exc.u.obj->cls == exc_class(it, "_Stop")) {
        return FLOW_ERROR;  // limits cannot be caught
    }
    for (const ast *h = s->u.try_.handlers; h; h = h->next) {
        int m = 1;
        if (h->u.handler.type) {
            it->exc = VUNDEF;
            value t = eval(it, h->u.handler.type);
            m = IS_ERR(t) ? -1 : exc_matches(it, exc, t);
        }
        if (m < 0) {
            return FLOW_ERROR;
        }
        if (m == 0) {
            continue;
        }
        it->exc = VUNDEF;
        value saved = f->exc_handling;
        f->exc_handling = exc;
        flow fl = FLOW_NEXT;
        if (h->u.handler.as && !assign_to(it, h, exc)) {
            fl = FLOW_ERROR;
        }
        fl = fl == FLOW_ERROR ? fl : exec_block(it, h->u.handler.body);
        f->exc_handling = saved;
        if (h->u.handler.as) {
            value pend = it->exc;
            assign_to(it, h, VUNDEF);
            it->exc = pend;
        }
        if (fl == FLOW_ERROR) {
            exc_set_context(it, it->exc, exc);
        }
        return fl;
    }
    it->exc = exc;
    return FLOW_ERROR;
}

static flow exec_try(interp *it, const ast *s)
{
    frame *f = it->top;
    bool imports = catches_import_error(s);
    f->try_import += imports;
    flow fl = exec_block(it, s->u.try_.body);
    f->try_import -= imports;
    if (fl == FLOW_ERROR) {
        it->top = f;
        fl = exec_handlers(it, s);
    } else if (fl == FLOW_NEXT && s->u.try_.orelse) {
        fl = exec_block(it, s->u.try_.orelse);
    }
    if (s->u.try_.final) {
        value exc = it->exc, ret = f->ret;
        if (fl == FLOW_ERROR && exc.tag == V_OBJ && exc.u.obj->cls == exc_class(it, "_Stop")) {
            return fl;
        }
        it->exc = VUNDEF;
        flow last = exec_block(it, s->u.try_.final);
        if (last == FLOW_ERROR && fl == FLOW_ERROR) {
            exc_set_context(it, it->exc, exc);
        }
        if (last != FLOW_NEXT) {
            return last;  // it replaces whatever was under way
        }
        it->exc = exc;
        f->ret = ret;
    }
    return fl;
}

static flow exec_with(interp *it, const ast *s, const ast *item)
{
    if (!item) {
        return exec_block(it, s->u.with.body);
    }
    value cm = eval(it, item->u.withitem.value);
    if (IS_ERR(cm)) {
        return FLOW_ERROR;
    }
    it->top->at = item->u.withitem.value;
    value v = call_special(it, cm, N(__enter__), NULL, 0);
    if (v.tag == V_UNDEF) {
        type_error(it, "'%s' object does not support the context manager protocol",
                   type_name(it, cm));
    }
    if (IS_ERR(v) || v.tag == V_UNDEF ||
        (item->u.withitem.target && !assign_to(it, item->u.withitem.target, v))) {
        return FLOW_ERROR;
    }
    flow fl = exec_with(it, s, item->next);
    frame *f = it->top;
    value exc = it->exc, ret = f->ret;
    value a[3] = {VNONE, VNONE, VNONE};
    if (fl == FLOW_ERROR) {
        if (exc.tag == V_OBJ && exc.u.obj->cls == exc_class(it, "_Stop")) {
            return fl;
        }
        a[0] = (value){.tag = V_CLASS, .u.cls = exc.u.obj->cls};
        a[1] = exc;
    }
    it->exc = VUNDEF;
    it->top->at = item->u.withitem.value;
    value r = call_special(it, cm, N(__exit__), a, 3);
    if (IS_ERR(r)) {
        return FLOW_ERROR;
    }
    f->ret = ret;
    if (fl == FLOW_ERROR) {
        int t = r.tag == V_UNDEF ? 0 : truth(it, r);
        if (t < 0) {
            return FLOW_ERROR;
        }
        if (t) {
            return FLOW_NEXT;
        }
        it->exc = exc;
    }
    return fl;
}

// ---- match

static int match_pattern(interp *it, const ast *p, value v);

static int match_sequence(interp *it, const ast *p, value v)
{
    if (v.tag != V_LIST && v.tag != V_TUPLE && v.tag != V_RANGE) {
        return 0;
    }
    uint32_t n, want = 0;
    value *at = items_of(it, v, &n);
    if (!at) {
        return -1;
    }
    const ast *star = NULL;
    for (const ast *i = p->u.list.first; i; i = i->next) {
        star = i->kind == AST_PAT_STAR ? i : star;
        want += i->kind != AST_PAT_STAR;
    }
    if (star ? n < want : n != want) {
        return 0;
    }
    uint32_t k = 0;
    for (const ast *i = p->u.list.first; i; i = i->next) {
        if (i == star) {
            if (i->u.pat.id && !assign_to(it, i, v_list(it, at + k, n - want))) {
                return -1;
            }
            k += n - want;
            continue;
        }
        int m = match_pattern(it, i, at[k++]);
        if (m != 1) {
            return m;
        }
    }
    return 1;
}

static int match_mapping(interp *it, const ast *p, value v)
{
    if (v.tag != V_DICT) {
        return 0;
    }
    vdict *rest = dict_copy(it, v.u.dict);
    for (const ast *i = p->u.pat.a; i; i = i->next) {
        if (i->kind == AST_PAT_REST) {
            if (i->u.pat.id && !assign_to(it, i, (value){.tag = V_DICT, .u.dict = rest})) {
                return -1;
            }
            continue;
        }
        value k = eval(it, i->u.bin.l);
        value x = IS_ERR(k) ? k : dict_get(it, v.u.dict, k);
        if (IS_ERR(x)) {
            return -1;
        }
        if (x.tag == V_UNDEF) {
            return 0;
        }
        int m = match_pattern(it, i->u.bin.r, x);
        if (m != 1) {
            return m;
        }
        dict_del(it, rest, k);
    }
    return 1;
}

static int match_class(interp *it, const ast *p, value v)
{
    value c = eval(it, p->u.pat.a);
    bool is;
    if (IS_ERR(c) || !is_instance(it, v, c, &is)) {
        return -1;
    }
    if (!is) {
        return 0;
    }
    uint32_t pos = 0;
    value names = VUNDEF;
    for (const ast *a = p->u.pat.b; a; a = a->next) {
        value x;
        if (a->u.named.id) {
            x = find_attr(it, v, a->u.named.id);
        } else if (c.tag == V_TYPE) {
            x = v;  // int(x): the whole subject
            pos++;
        } else {
            if (names.tag == V_UNDEF) {
                names = find_attr(it, c, N(__match_args__));
            }
            if (names.tag == V_TUPLE && pos < names.u.tuple->n) {
                x = find_attr(it, v, str_sym(it, names.u.tuple->at[pos++]));
            } else if (c.u.cls->has_fields && pos < c.u.cls->nfields) {
                x = find_attr(it, v, c.u.cls->fields[pos++].id);
            } else {
                type_error(it, "%s() accepts %u positional sub-patterns (%u given)",
                           c.u.cls->id->text, c.u.cls->nfields, pos + 1);
                return -1;
            }
        }
        if (IS_ERR(x)) {
            return -1;
        }
        if (x.tag == V_UNDEF) {
            return 0;
        }
        int m = match_pattern(it, a->u.named.value, x);
        if (m != 1) {
            return m;
        }
    }
    return 1;
}

// 1 matches (captures assigned), 0 does not, -1 error
static int match_pattern(interp *it, const ast *p, value v)
{
    switch ((ast_kind)p->kind) {
    case AST_PAT_VALUE: {
        value x = eval(it, p->u.pat.a);
        if (IS_ERR(x)) {
            return -1;
        }
        if (x.tag == V_NONE || x.tag == V_BOOL) {
            return is_same(x, v);
        }
        return equal(it, x, v);
    }
    case AST_PAT_CAPTURE: return !p->u.pat.id || assign_to(it, p, v) ? 1 : -1;
    case AST_PAT_SEQ: return match_sequence(it, p, v);
    case AST_PAT_MAP: return match_mapping(it, p, v);
    case AST_PAT_CLASS: return match_class(it, p, v);
    case AST_PAT_OR:
        for (const ast *i = p->u.list.first; i; i = i->next) {
            int m = match_pattern(it, i, v);
            if (m) {
                return m;
            }
        }
        return 0;
    case AST_PAT_AS: {
        int m = match_pattern(it, p->u.pat.a, v);
        return m != 1 ? m : assign_to(it, p, v) ? 1 : -1;
    }
    default: return 0;
    }
}

static flow exec_match(interp *it, const ast *s)
{
    value v = eval(it, s->u.match.subject);
    if (IS_ERR(v)) {
        return FLOW_ERROR;
    }
    for (const ast *c = s->u.match.cases; c; c = c->next) {
        int m = match_pattern(it, c->u.match.subject, v);
        if (m == 1 && c->u.match.guard) {
            value g = eval(it, c->u.match.guard);
            m = IS_ERR(g) ? -1 : truth(it, g);
        }
        if (m < 0) {
            return FLOW_ERROR;
        }
        if (m) {
            return exec_block(it, c->u.match.body);
        }
    }
    return FLOW_NEXT;
}

// ---- functions and classes

static value decorate(interp *it, const ast *d, value v)
{
    if (!d) {
        return v;
    }
    // Decorators are evaluated from the top, applied from the bottom.
    value f = eval(it, d);
    if (IS_ERR(f)) {
        return f;
    }
    v = decorate(it, d->next, v);
    if (IS_ERR(v)) {
        return v;
    }
    it->top->at = d;
    return call_values(it, f, &v, 1);
}

static flow exec_def(interp *it, const ast *s)
{
    value f = s->kind == AST_DEF ? make_function(it, s) : exec_class(it, s);
    if (!IS_ERR(f) && s->u.def.decorators) {
        f = decorate(it, s->u.def.decorators, f);
    }
    return !IS_ERR(f) && assign_to(it, s, f) ? FLOW_NEXT : FLOW_ERROR;
}

// What stands beside the name matters only for ClassVar and KW_ONLY: kept as its name.
static bool note_annotation(interp *it, const ast *s)
{
    value ann = attrs_get(&it->top->cls->attrs, N(__annotations__));
    const ast *a = s->u.assign.ann;
    const ast *root = a && a->kind == AST_INDEX ? a->u.index.value : a;
    sym id = root && root->kind == AST_NAME   ? root->u.id
             : root && root->kind == AST_ATTR ? root->u.named.id
                                              : NULL;
    return ann.tag != V_DICT || dict_set(it, ann.u.dict, v_sym(it, s->u.assign.targets->u.id),
                                         id ? v_sym(it, id) : VNONE);
}

static flow exec_assign(interp *it, const ast *s)
{
    bool in_class = s->kind == AST_ANNASSIGN && it->top->unit->kind == UNIT_CLASS &&
                    s->u.assign.targets->kind == AST_NAME;
    if (!s->u.assign.value) {  // x: int
        return !in_class || note_annotation(it, s) ? FLOW_NEXT : FLOW_ERROR;
    }
    value v = eval(it, s->u.assign.value);
    if (IS_ERR(v)) {
        return FLOW_ERROR;
    }
    if (in_class && !note_annotation(it, s)) {
        return FLOW_ERROR;
    }
    for (const ast *t = s->u.assign.targets; t; t = t->next) {
        if (!assign_to(it, t, v)) {
            return FLOW_ERROR;
        }
    }
    return FLOW_NEXT;
}

flow exec_stmt(interp *it, const ast *s)
{
    it->top->at = s;
    if (!interp_step(it)) {
        return FLOW_ERROR;
    }
    switch ((ast_kind)s->kind) {
    case AST_EXPR: return IS_ERR(eval(it, s->u.bin.l)) ? FLOW_ERROR : FLOW_NEXT;
    case AST_ASSIGN:
    case AST_ANNASSIGN: return exec_assign(it, s);
    case AST_AUGASSIGN: return exec_augassign(it, s);
    case AST_DEL:
        for (const ast *t = s->u.list.first; t; t = t->next) {
            if (!del_target(it, t)) {
                return FLOW_ERROR;
            }
        }
        return FLOW_NEXT;
    case AST_PASS:
    case AST_GLOBAL:
    case AST_NONLOCAL: return FLOW_NEXT;
    case AST_BREAK: return FLOW_BREAK;
    case AST_CONTINUE: return FLOW_CONTINUE;
    case AST_RETURN: {
        value v = s->u.bin.l ? eval(it, s->u.bin.l) : VNONE;
        if (IS_ERR(v)) {
            return FLOW_ERROR;
        }
        it->top->ret = v;
        return FLOW_RETURN;
    }
    case AST_RAISE: return exec_raise(it, s);
    case AST_ASSERT: return exec_assert(it, s);
    case AST_IMPORT:
    case AST_FROM: return exec_import(it, s);
    case AST_IF: return exec_if(it, s);
    case AST_FOR: return exec_for(it, s);
    case AST_WHILE: return exec_while(it, s);
    case AST_TRY: return exec_try(it, s);
    case AST_WITH: return exec_with(it, s, s->u.with.items);
    case AST_DEF:
    case AST_CLASS: return exec_def(it, s);
    case AST_MATCH: return exec_match(it, s);
    case AST_TYPE_ALIAS: return assign_to(it, s, VID(V_TYPE, T_OBJECT)) ? FLOW_NEXT : FLOW_ERROR;
    default:
        type_error(it, "this statement is not supported (%s)", ast_kind_name((ast_kind)s->kind));
        return FLOW_ERROR;
    }
}

flow exec_block(interp *it, const ast *first)
{
    for (const ast *s = first; s; s = s->next) {
        flow f = exec_stmt(it, s);
        if (f != FLOW_NEXT) {
            return f;
        }
    }
    return FLOW_NEXT;
}
