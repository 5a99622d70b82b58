// Calls: arguments to parameters, frames, bound methods.
#include "lower/interp.h"

#include <string.h>

enum { SMALL_ARGS = 16 };

value make_function(interp *it, const ast *def)
{
    unit *u = def->cache;
    vfunc *f = NEW(it->mem, vfunc);
    f->def = def;
    f->unit = u;
    f->module = it->top->module;
    f->op = -1;
    f->id = def->kind == AST_DEF ? def->u.def.id : intern_cstr(it->names, "<lambda>");
    for (const ast *d = def->kind == AST_DEF ? def->u.def.decorators : NULL; d; d = d->next) {
        f->jit |= is_kernel_decorator(d);
    }
    f->owner = it->top->unit->kind == UNIT_CLASS ? it->top->cls : NULL;
    if (u->nparams) {
        f->defaults = NEW_N(it->mem, value, u->nparams);
    }
    for (uint32_t i = 0; i < u->nparams; i++) {
        if (u->params[i]->u.param.dflt) {
            f->defaults[i] = eval(it, u->params[i]->u.param.dflt);
            if (IS_ERR(f->defaults[i])) {
                return VERR;
            }
        }
    }
    if (u->nfree) {
        f->free = NEW_N(it->mem, cell *, u->nfree);
        for (uint32_t i = 0; i < u->nfree; i++) {
            f->free[i] = it->top->cells[u->free_from[i]];
        }
    }
    return (value){.tag = V_FUNC, .u.func = f};
}

static const char *unit_name(const unit *u)
{
    switch ((ast_kind)u->node->kind) {
    case AST_DEF:
    case AST_CLASS: return u->node->u.def.id->text;
    case AST_LAMBDA: return "<lambda>";
    case AST_GENEXP: return "<genexpr>";
    case AST_LISTCOMP: return "<listcomp>";
    case AST_SETCOMP: return "<setcomp>";
    default: return "<dictcomp>";
    }
}

const char *qualified_name(interp *it, const unit *u, sym id)
{
    const char *name = id->text;
    for (const unit *p = u->parent; p && p->kind != UNIT_MODULE; p = p->parent) {
        name = arena_printf(it->mem, p->kind == UNIT_FUNC ? "%s.<locals>.%s" : "%s.%s",
                            unit_name(p), name);
    }
    return name;
}

static const char *func_name(interp *it, const vfunc *f)
{
    return qualified_name(it, f->unit, f->id);
}

// What a call by * or ** names: the module, too.
static const char *callee_name(interp *it, value fn)
{
    if (fn.tag == V_METHOD) {
        fn = fn.u.method->fn;
    }
    switch ((vtag)fn.tag) {
    case V_FUNC:
        return arena_printf(it->mem, "%s.%s()", fn.u.func->module->id->text,
                            func_name(it, fn.u.func));
    case V_CLASS:
        return fn.u.cls->module ? arena_printf(it->mem, "%s.%s()", fn.u.cls->module->id->text,
                                               class_qualname(fn.u.cls))
                                : arena_printf(it->mem, "%s()", class_qualname(fn.u.cls));
    case V_TYPE: return arena_printf(it->mem, "%s()", vtype_name((vtype)fn.u.i));
    case V_NATIVE: return arena_printf(it->mem, "%s()", fn.u.native->name);
    default: {
        value r = v_repr(it, fn);
        return IS_ERR(r) ? "function" : r.u.str->p;
    }
    }
}

const char *name_list(interp *it, const sym *ids, uint32_t n)
{
    textbuf t;
    text_init(&t, it->mem);
    for (uint32_t i = 0; i < n; i++) {
        text_printf(&t, "%s'%s'",
                    i == 0       ? ""
                    : i + 1 == n ? (n > 2 ? ", and " : " and ")
                                 : ", ",
                    ids[i]->text);
    }
    return t.at;
}

static bool missing_error(interp *it, const vfunc *f, const value *got, bool kwonly)
{
    const unit *u = f->unit;
    sym *ids = NEW_N(it->mem, sym, u->nparams);
    uint32_t n = 0;
    for (uint32_t i = 0; i < u->nparams; i++) {
        bool kw = u->params[i]->op == PARAM_KWONLY;
        bool pos = u->params[i]->op == PARAM_NORMAL || u->params[i]->op == PARAM_POSONLY;
        if ((kwonly ? kw : pos) && got[i].tag == V_UNDEF) {
            ids[n++] = u->params[i]->u.param.id;
        }
    }
    type_error(it, "%s() missing %u required %s argument%s: %s", func_name(it, f), n,
               kwonly ? "keyword-only" : "positional", n == 1 ? "" : "s", name_list(it, ids, n));
    return false;
}

static bool too_many(interp *it, const vfunc *f, uint32_t given, const value *got)
{
    const unit *u = f->unit;
    uint32_t dflt = 0, kwonly = 0;
    for (uint32_t i = 0; i < u->nparams; i++) {
        bool pos = u->params[i]->op == PARAM_NORMAL || u->params[i]->op == PARAM_POSONLY;
        dflt += pos && f->defaults[i].tag != V_UNDEF;
        kwonly += u->params[i]->op == PARAM_KWONLY && got[i].tag != V_UNDEF;
    }
    const char *takes = dflt ? arena_printf(it->mem, "from %u to %u", u->npos - dflt, u->npos)
                             : arena_printf(it->mem, "%u", u->npos);
    const char *more = "";
    if (kwonly) {
        more = arena_printf(it->mem, " positional argument%s (and %u keyword-only argument%s)",
                            given == 1 ? "" : "s", kwonly, kwonly == 1 ? "" : "s");
    }
    type_error(it, "%s() takes %s positional argument%s but %u%s %s given", func_name(it, f), takes,
               !dflt && u->npos == 1 ? "" : "s", given, more,
               given == 1 && !kwonly ? "was" : "were");
    return false;
}

// The parameter most like a misspelt keyword, for the message.
static const char *similar(const unit *u, sym kw)
{
    for (uint32_t i = 0; i < u->nparams; i++) {
        const char *p = u->params[i]->u.param.id->text, *q = kw->text;
        size_t n = strlen(p), m = strlen(q), k = 0;
        while (k < n && k < m && p[k] == q[k]) {
            k++;
        }
        if (k >= 3 && (n > m ? n - m : m - n) <= 2) {
            return p;
        }
    }
    return NULL;
}

// Puts arguments into got[], one a parameter.
static bool bind(interp *it, const vfunc *f, const args *a, value *got)
{
    const unit *u = f->unit;
    uint32_t n = a->n < u->npos ? a->n : u->npos, k = 0;
    for (uint32_t i = 0; i < u->nparams && k < n; i++) {
        if (u->params[i]->op == PARAM_NORMAL || u->params[i]->op == PARAM_POSONLY) {
            got[i] = a->at[k++];
        }
    }
    if (u->star >= 0) {
        got[u->star] = v_tuple(it, a->at + n, a->n - n);
    }
    value extra = VUNDEF;
    for (uint32_t j = 0; j < a->nkw; j++) {
        uint32_t i = 0;
        while (i < u->nparams &&
               !(u->params[i]->u.param.id == a->kw[j] &&
                 (u->params[i]->op == PARAM_NORMAL || u->params[i]->op == PARAM_KWONLY))) {
            i++;
        }
        if (i < u->nparams) {
            if (got[i].tag != V_UNDEF) {
                type_error(it, "%s() got multiple values for argument '%s'", func_name(it, f),
                           a->kw[j]->text);
                return false;
            }
            got[i] = a->at[a->n + j];
            continue;
        }
        if (u->starstar < 0) {
            for (i = 0; i < u->nparams; i++) {
                if (u->params[i]->u.param.id == a->kw[j] && u->params[i]->op == PARAM_POSONLY) {
                    type_error(
                        it,
                        "%s() got some positional-only arguments passed as keyword arguments: '%s'",
                        func_name(it, f), a->kw[j]->text);
                    return false;
                }
            }
            const char *s = f->module->builtin ? similar(u, a->kw[j]) : NULL;
            type_error(it, "%s() got an unexpected keyword argument '%s'%s%s%s", func_name(it, f),
                       a->kw[j]->text, s ? "; did you mean '" : "", s ? s : "", s ? "'?" : "");
            return false;
        }
        if (extra.tag == V_UNDEF) {
            extra = v_dict(it);
        }
        dict_set(it, extra.u.dict, v_sym(it, a->kw[j]), a->at[a->n + j]);
    }
    if (u->star < 0 && a->n > u->npos) {
        return too_many(it, f, a->n, got);
    }
    if (u->starstar >= 0) {
        got[u->starstar] = extra.tag == V_UNDEF ? v_dict(it) : extra;
    }
    bool miss_pos = false, miss_kw = false;
    for (uint32_t i = 0; i < u->nparams; i++) {
        if (got[i].tag == V_UNDEF) {
            got[i] = f->defaults[i];
            bool miss = got[i].tag == V_UNDEF;
            miss_kw |= miss && u->params[i]->op == PARAM_KWONLY;
            miss_pos |= miss && u->params[i]->op != PARAM_KWONLY;
        }
    }
    return miss_pos || miss_kw ? missing_error(it, f, got, !miss_pos) : true;
}

static void fill_frame(interp *it, const vfunc *f, frame *fr)
{
    const unit *u = f->unit;
    fr->prev = it->top;
    fr->unit = f->unit;
    fr->module = f->module;
    fr->cls = f->owner;
    fr->id = f->id;
    fr->call = it->top ? it->top->at : NULL;
    fr->at = f->def;
    if (u->nown + u->nfree) {
        fr->cells = NEW_N(it->mem, cell *, u->nown + u->nfree);
        for (uint32_t i = 0; i < u->nown; i++) {
            fr->cells[i] = NEW(it->mem, cell);
            fr->cells[i]->v = fr->locals[u->own_slot[i]];
        }
        for (uint32_t i = 0; i < u->nfree; i++) {
            fr->cells[u->nown + i] = f->free[i];
        }
    }
    fr->ret = VNONE;
}

static value run_frame(interp *it, const vfunc *f, frame *fr)
{
    fill_frame(it, f, fr);
    it->top = fr;
    value r;
    if (f->def->kind == AST_LAMBDA) {
        r = eval(it, f->def->u.lambda.body);
    } else {
        flow fl = exec_block(it, f->def->u.def.body);
        r = fl == FLOW_ERROR ? VERR : fr->ret;
    }
    it->top = fr->prev;
    return r;
}

static value call_func(interp *it, const vfunc *f, const args *a)
{
    if (!stack_ok(it) || !interp_step(it)) {
        return VERR;
    }
    const unit *u = f->unit;
    value small[SMALL_ARGS * 2];
    frame fr = {0};
    uint32_t n = u->nlocals > u->nparams ? u->nlocals : u->nparams;
    if (u->is_generator) {
        frame *own = NEW(it->mem, frame);
        own->locals = NEW_N(it->mem, value, n);
        if (!bind(it, f, a, own->locals)) {
            return VERR;
        }
        fill_frame(it, f, own);
        return gen_of_function(it, f->def, own);
    }
    fr.locals = n <= SMALL_ARGS * 2 ? small : NEW_N(it->mem, value, n);
    memset(fr.locals, 0, n * sizeof *fr.locals);
    // Parameters have the first slots, in order.
    if (!bind(it, f, a, fr.locals)) {
        return VERR;
    }
    return run_frame(it, f, &fr);
}

// Prepends self.
static value call_bound(interp *it, value fn, value self, const args *a)
{
    uint32_t n = a->n + a->nkw;
    value small[SMALL_ARGS], *at = n + 1 <= SMALL_ARGS ? small : NEW_N(it->mem, value, n + 1);
    at[0] = self;
    if (n) {
        memcpy(at + 1, a->at, n * sizeof *at);
    }
    args b = {at, a->n + 1, a->nkw, a->kw};
    return call(it, fn, &b);
}

static value call_scheduled(interp *it, const vfunc *f, const args *a)
{
    uint32_t begin = it->p->instrs.n;
    value r = call_func(it, f, a);
    return IS_ERR(r) || !schedule_apply(it, f->schedule, begin) ? VERR : r;
}

value call(interp *it, value fn, const args *a)
{
    switch ((vtag)fn.tag) {
    case V_FUNC:
        return fn.u.func->schedule ? call_scheduled(it, fn.u.func, a) : call_func(it, fn.u.func, a);
    case V_METHOD: return call_bound(it, fn.u.method->fn, fn.u.method->self, a);
    case V_NATIVE: it->native_self = fn.u.native->self; return fn.u.native->fn(it, a);
    case V_CLASS: return instantiate(it, fn.u.cls, a);
    case V_TYPE: return type_call(it, (vtype)fn.u.i, a);
    case V_ISA: return isa_call(it, (isa_id)fn.u.i, a);
    case V_OBJ: {
        value m = class_lookup(fn.u.obj->cls, N(__call__));
        if (m.tag != V_UNDEF) {
            return call_bound(it, m, fn, a);
        }
        break;
    }
    case V_DESCR:
        if (fn.u.descr->kind == DESCR_STATIC) {
            return call(it, fn.u.descr->get, a);
        }
        break;
    case V_OPAQUE:
        // A decorator from a package that is not here leaves its function as it is.
        if (a->n == 1 && a->nkw == 0 && (a->at[0].tag == V_FUNC || a->at[0].tag == V_CLASS)) {
            return a->at[0];
        }
        if (!it->in_kernel) {
            return fn;
        }
        return raise_msg(it, "ImportError", "'%s' is not available here and was called",
                         fn.u.opaque->path);
    case V_DTYPE: return dtype_call(it, (dtype)fn.u.i, a);
    case V_OP:
        return type_error(it, "nl.%s is an operator for op= arguments and cannot be called",
                          op_table[fn.u.i].name);
    default: break;
    }
    return type_error(it, "'%s' object is not callable", type_name(it, fn));
}

value call_values(interp *it, value fn, const value *at, uint32_t n)
{
    value small[SMALL_ARGS], *copy = n <= SMALL_ARGS ? small : NEW_N(it->mem, value, n);
    if (n) {
        memcpy(copy, at, n * sizeof *copy);
    }
    args a = {copy, n, 0, NULL};
    return call(it, fn, &a);
}

value call_special(interp *it, value self, sym id, const value *at, uint32_t n)
{
    vclass *c = class_of(self);
    if (!c) {
        return VUNDEF;
    }
    value f = class_lookup(c, id);
    if (f.tag == V_UNDEF || f.tag == V_NONE) {
        return f;
    }
    if (f.tag == V_DESCR) {
        f = f.u.descr->get;
        return call_values(it, f, at, n);
    }
    args a = {(value *)(uintptr_t)at, n, 0, NULL};
    return f.tag == V_FUNC || f.tag == V_NATIVE ? call_bound(it, f, self, &a) : call(it, f, &a);
}

value call_method(interp *it, value self, sym id, const value *at, uint32_t n)
{
    value f = get_attr(it, self, id);
    return IS_ERR(f) ? f : call_values(it, f, at, n);
}

// ---- call expressions

typedef struct arg_buf {
    VEC(value) pos;
    VEC(value) kwv;
    VEC(sym) kw;
} arg_buf;

static bool star_arg(interp *it, const ast *n, value v, value fn, arg_buf *b)
{
    if (n->op == 1) {
        uint32_t m;
        if (v.tag == V_OPAQUE || v.tag == V_NONE || v.tag == V_INT || v.tag == V_FLOAT ||
            v.tag == V_BOOL) {
            type_error(it, "%s argument after * must be an iterable, not %s", callee_name(it, fn),
                       type_name(it, v));
            return false;
        }
        value *at = items_of(it, v, &m);
        for (uint32_t i = 0; at && i < m; i++) {
            vec_push(it->mem, &b->pos, at[i]);
        }
        return at != NULL;
    }
    value d = v.tag == V_OBJ && v.u.obj->base.tag == V_DICT ? v.u.obj->base : v;
    if (d.tag != V_DICT) {
        type_error(it, "%s argument after ** must be a mapping, not %s", callee_name(it, fn),
                   type_name(it, v));
        return false;
    }
    for (uint32_t i = 0; i < d.u.dict->n; i++) {
        value k = d.u.dict->at[i].key;
        if (k.tag == V_UNDEF) {
            continue;
        }
        if (k.tag != V_STR) {
            type_error(it, "keywords must be strings");
            return false;
        }
        sym id = str_sym(it, k);
        for (uint32_t j = 0; j < b->kw.n; j++) {
            if (b->kw.at[j] == id) {
                type_error(it, "%s got multiple values for keyword argument '%s'",
                           callee_name(it, fn), id->text);
                return false;
            }
        }
        vec_push(it->mem, &b->kw, id);
        vec_push(it->mem, &b->kwv, d.u.dict->at[i].val);
    }
    return true;
}

static value call_general(interp *it, const ast *e, value fn, value self, bool bound)
{
    arg_buf b = {0};
    if (bound) {
        vec_push(it->mem, &b.pos, self);
    }
    for (const ast *n = e->u.call.args; n; n = n->next) {
        value v = eval(it, n->u.named.value);
        if (IS_ERR(v)) {
            return v;
        }
        it->top->at = e;
        if (n->op) {
            if (!star_arg(it, n, v, fn, &b)) {
                return VERR;
            }
        } else if (n->u.named.id) {
            for (uint32_t j = 0; j < b.kw.n; j++) {
                if (b.kw.at[j] == n->u.named.id) {
                    return type_error(it, "%s got multiple values for keyword argument '%s'",
                                      callee_name(it, fn), n->u.named.id->text);
                }
            }
            vec_push(it->mem, &b.kw, n->u.named.id);
            vec_push(it->mem, &b.kwv, v);
        } else {
            vec_push(it->mem, &b.pos, v);
        }
    }
    uint32_t npos = b.pos.n;
    for (uint32_t i = 0; i < b.kw.n; i++) {
        vec_push(it->mem, &b.pos, b.kwv.at[i]);
    }
    args a = {b.pos.at, npos, b.kw.n, b.kw.at};
    it->top->at = e;
    return call(it, fn, &a);
}

// The receiver and the function of obj.name(...), without making a bound method where possible.
static bool method_callee(interp *it, const ast *e, value *fn, value *self, bool *bound)
{
    const ast *f = e->u.call.fn;
    value obj = eval(it, f->u.named.value);
    if (IS_ERR(obj)) {
        return false;
    }
    it->top->at = f;
    *bound = false;
    if (obj.tag == V_OBJ) {
        value own = attrs_get(&obj.u.obj->attrs, f->u.named.id);
        if (own.tag == V_UNDEF) {
            value m = class_lookup(obj.u.obj->cls, f->u.named.id);
            if (m.tag == V_FUNC) {
                *fn = m;
                *self = obj;
                *bound = true;
                return true;
            }
        }
    }
    *fn = get_attr(it, obj, f->u.named.id);
    if (fn->tag == V_METHOD) {
        *self = fn->u.method->self;
        *fn = fn->u.method->fn;
        *bound = true;
    }
    return !IS_ERR(*fn);
}

value eval_call(interp *it, const ast *e)
{
    value fn, self = VUNDEF;
    bool bound = false;
    if (e->u.call.fn->kind == AST_ATTR) {
        if (!method_callee(it, e, &fn, &self, &bound)) {
            return VERR;
        }
    } else {
        fn = eval(it, e->u.call.fn);
        if (IS_ERR(fn)) {
            return fn;
        }
    }
    if (fn.tag == V_ISA) {
        return isa_call_node(it, (isa_id)fn.u.i, e);
    }
    uint32_t n = e->u.call.n + bound;
    bool simple = n <= SMALL_ARGS;
    for (const ast *a = e->u.call.args; a && simple; a = a->next) {
        simple = a->op == 0;
    }
    if (!simple) {
        return call_general(it, e, fn, self, bound);
    }
    value at[SMALL_ARGS];
    sym kw[SMALL_ARGS];
    uint32_t i = 0, nkw = 0;
    if (bound) {
        at[i++] = self;
    }
    for (const ast *a = e->u.call.args; a; a = a->next) {
        at[i] = eval(it, a->u.named.value);
        if (IS_ERR(at[i++])) {
            return VERR;
        }
        if (a->u.named.id) {
            kw[nkw++] = a->u.named.id;
        }
    }
    args a = {at, i - nkw, nkw, kw};
    it->top->at = e;
    return call(it, fn, &a);
}

bool bind_native(interp *it, const char *fname, const args *a, const char *const *params,
                 uint32_t nparams, uint32_t nrequired, value *out)
{
    if (a->n > nparams) {
        type_error(it, "%s() takes at most %u argument%s (%u given)", fname, nparams,
                   nparams == 1 ? "" : "s", a->n + a->nkw);
        return false;
    }
    for (uint32_t i = 0; i < nparams; i++) {
        out[i] = i < a->n ? a->at[i] : VUNDEF;
    }
    for (uint32_t j = 0; j < a->nkw; j++) {
        uint32_t i = 0;
        while (i < nparams && strcmp(params[i], a->kw[j]->text) != 0) {
            i++;
        }
        if (i == nparams) {
            type_error(it, "%s() got an unexpected keyword argument '%s'", fname, a->kw[j]->text);
            return false;
        }
        if (out[i].tag != V_UNDEF) {
            type_error(it, "%s() got multiple values for argument '%s'", fname, a->kw[j]->text);
            return false;
        }
        out[i] = a->at[a->n + j];
    }
    for (uint32_t i = 0; i < nrequired; i++) {
        if (out[i].tag == V_UNDEF) {
            type_error(it, "%s() missing required argument '%s' (pos %u)", fname, params[i], i + 1);
            return false;
        }
    }
    return true;
}
