// Modules and imports. Module level is lazy: a statement runs when a name that it binds or changes
// is first needed, in the order of the text.
#include "lower/scope.h"

#include <string.h>

typedef struct binder {
    sym id;
    bool value;  // some statement assigns it; an imported module or a function is not changed by a
                 // call
    VEC(uint32_t) stmts;
} binder;

struct binders {
    VEC(binder) at;
    VEC(uint32_t) stars;  // from x import *
};

static binder *find_binder(const vmodule *m, sym id)
{
    for (uint32_t i = 0; i < m->binders->at.n; i++) {
        if (m->binders->at.at[i].id == id) {
            return &m->binders->at.at[i];
        }
    }
    return NULL;
}

static bool is_variable(const vmodule *m, sym id)
{
    const binder *b = find_binder(m, id);
    return b && b->value;
}

static binder *bind_to(interp *it, vmodule *m, sym id, uint32_t stmt)
{
    binder *b = find_binder(m, id);
    if (!b) {
        vec_push(it->mem, &m->binders->at, ((binder){.id = id}));
        b = &m->binders->at.at[m->binders->at.n - 1];
    }
    if (b->stmts.n == 0 || b->stmts.at[b->stmts.n - 1] != stmt) {
        vec_push(it->mem, &b->stmts, stmt);
    }
    return b;
}

static const ast *root(const ast *e)
{
    for (;;) {
        switch ((ast_kind)e->kind) {
        case AST_ATTR: e = e->u.named.value; break;
        case AST_INDEX: e = e->u.index.value; break;
        case AST_CALL: e = e->u.call.fn; break;
        default: return e;
        }
    }
}

// A call as a statement can change its receiver, TABLE.append(x), and its arguments,
// register(TABLE).
static void bind_changed(interp *it, vmodule *m, const ast *call, uint32_t stmt)
{
    const ast *fn = call->u.call.fn, *r = root(call);
    if (fn->kind != AST_NAME) {
        if (r->kind == AST_NAME && is_variable(m, r->u.id)) {
            bind_to(it, m, r->u.id, stmt);
        }
        return;
    }
    for (const ast *a = call->u.call.args; a && strcmp(fn->u.id->text, "print") != 0; a = a->next) {
        const ast *v = a->u.named.value;
        if (v->kind == AST_NAME && is_variable(m, v->u.id)) {
            bind_to(it, m, v->u.id, stmt);
        }
    }
}

// A visitor: what the statement binds or changes.
typedef struct statement {
    interp *it;
    vmodule *m;
    uint32_t number;
} statement;

static void bind(void *ctx, ast *list, ast_role role)
{
    const statement *s = ctx;
    if (role == ROLE_INNER || role == ROLE_ANNOTATION) {
        return;
    }
    for (const ast *n = list; n; n = n->next) {
        sym id = scope_bound_name(s->it, n);
        if (n->kind == AST_ALIAS && strcmp(n->u.alias.path->text, "*") == 0) {
            vec_push(s->it->mem, &s->m->binders->stars, s->number);
        } else if (id) {
            bind_to(s->it, s->m, id, s->number);
        } else if (role == ROLE_TARGET && n->kind == AST_NAME) {
            bind_to(s->it, s->m, n->u.id, s->number)->value = true;
        } else if (role == ROLE_TARGET && root(n)->kind == AST_NAME) {
            bind_to(s->it, s->m, root(n)->u.id, s->number);
        } else if (n->kind == AST_EXPR && n->u.bin.l->kind == AST_CALL) {
            bind_changed(s->it, s->m, n->u.bin.l, s->number);
        }
        if (n->kind == AST_CLAUSE) {  // its variables are the comprehension's own
            bind(ctx, n->u.clause.iter, ROLE_OPERAND);
            bind(ctx, n->u.clause.conds, ROLE_OPERAND);
            continue;
        }
        ast_children(n, role, bind, ctx);
    }
}

vmodule *module_of(interp *it, const loaded_module *lm)
{
    sym key = intern_cstr(it->names, lm->path);
    value v = attrs_get(&it->modules, key);
    if (v.tag == V_MODULE) {
        return v.u.module;
    }
    vmodule *m = NEW(it->mem, vmodule);
    m->lm = lm;
    m->id = intern_cstr(it->names, lm->name);
    m->builtin = lm->builtin;
    m->binders = NEW(it->mem, struct binders);
    attrs_set(it, &it->modules, key, (value){.tag = V_MODULE, .u.module = m});
    attrs_set(it, &m->attrs, N(__name__), v_cstr(it, lm->name));
    attrs_set(it, &m->attrs, N(__file__), v_cstr(it, lm->path));
    attrs_set(it, &m->attrs, N(__doc__), VNONE);
    if (!lm->ast) {
        return m;
    }
    m->unit = scope_module(it, m);
    for (const ast *s = lm->ast->body; s; s = s->next) {
        m->nstmts++;
    }
    m->stmts = NEW_N(it->mem, top_stmt, m->nstmts);
    uint32_t i = 0;
    for (const ast *s = lm->ast->body; s; s = s->next, i++) {
        m->stmts[i].node = s;
        statement of = {it, m, i};
        ast one = *s;  // without those after it
        one.next = NULL;
        bind(&of, &one, ROLE_BODY);
    }
    return m;
}

static bool run_stmt(interp *it, vmodule *m, uint32_t i)
{
    if (m->stmts[i].state != 0) {
        return true;
    }
    if (!stack_ok(it)) {
        return false;
    }
    m->stmts[i].state = 1;
    frame f = {.prev = it->top, .unit = m->unit, .module = m, .at = m->stmts[i].node, .limit = i};
    f.call = it->top ? it->top->at : NULL;
    f.locals = NEW_N(it->mem, value, m->unit->nlocals);
    f.id = m->id;
    it->top = &f;
    flow fl = exec_stmt(it, m->stmts[i].node);
    it->top = f.prev;
    m->stmts[i].state = 2;
    return fl != FLOW_ERROR;
}

// ---- names read when a statement runs (not by the functions that it makes)

typedef struct reading {
    sym id;
    bool found;
} reading;

static void find_read(void *ctx, ast *list, ast_role role)
{
    reading *r = ctx;
    if (role == ROLE_INNER || role == ROLE_ANNOTATION) {
        return;
    }
    for (const ast *n = list; n && !r->found; n = n->next) {
        r->found = n->kind == AST_NAME && n->u.id == r->id;
        ast_children(n, role, find_read, ctx);
        if (n->kind == AST_CLASS) {
            find_read(ctx, n->u.def.body, ROLE_BODY);
        }
    }
}

static bool reads(const ast *stmt, sym id)
{
    reading r = {id, false};
    ast one = *stmt;  // without those after it
    one.next = NULL;
    find_read(&r, &one, ROLE_BODY);
    return r.found;
}

// Statements from..to that use the name's value before statement `to` changes it.
static bool run_readers(interp *it, vmodule *m, sym id, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (m->stmts[i].state == 0 && reads(m->stmts[i].node, id) && !run_stmt(it, m, i)) {
            return false;
        }
    }
    return true;
}

value module_attr(interp *it, vmodule *m, sym id, uint32_t limit)
{
    if (!m->binders) {
        value v = attrs_get(&m->attrs, id);
        return v.tag == V_UNDEF && m->native_attr ? m->native_attr(it, m, id) : v;
    }
    if (limit == UINT32_MAX) {
        // Settled names are found at once: every statement that could bind them has run.
        value v = attrs_get(&m->attrs, id);
        if (v.tag != V_UNDEF && attrs_get(&m->settled, id).tag != V_UNDEF) {
            return v;
        }
    }
    binder *b = find_binder(m, id);
    bool all = true;
    for (uint32_t i = 0; b && i < b->stmts.n; i++) {
        uint32_t s = b->stmts.at[i];
        if (s >= limit) {
            all = false;
            break;
        }
        if (i && m->stmts[s].state == 0 && !run_readers(it, m, id, b->stmts.at[i - 1] + 1, s)) {
            return VERR;
        }
        b = find_binder(m, id);
        if (!run_stmt(it, m, s)) {
            return VERR;
        }
        all &= m->stmts[s].state == 2;
        b = find_binder(m, id);
    }
    value v = attrs_get(&m->attrs, id);
    for (uint32_t i = 0; v.tag == V_UNDEF && i < m->binders->stars.n; i++) {
        uint32_t s = m->binders->stars.at[i];
        if (s >= limit) {
            break;
        }
        if (!run_stmt(it, m, s)) {
            return VERR;
        }
        v = attrs_get(&m->attrs, id);
    }
    if (v.tag != V_UNDEF && all) {
        attrs_set(it, &m->settled, id, VBOOL(true));
    }
    return v;
}

static value opaque(interp *it, const char *path)
{
    vopaque *o = NEW(it->mem, vopaque);
    o->path = arena_printf(it->mem, "%s", path);
    return VPTR(V_OPAQUE, o);
}

static vmodule *load(interp *it, vmodule *from, uint32_t level, const char *dotted)
{
    if (level == 0) {
        vmodule *n = native_module(it, dotted);
        if (n) {
            return n;
        }
    }
    const loaded_module *lm = it->o->loader->load(
        it->o->loader->ctx, from->lm ? from->lm : it->entry->lm, level, dotted, it->ds);
    return lm ? module_of(it, lm) : NULL;
}

// level, dotted as in an import statement. leaf: the last module, else the first of the path.
// V_UNDEF: not found.
value import_module(interp *it, vmodule *from, uint32_t level, sym dotted, bool leaf)
{
    unsigned before = it->ds->errors;
    vmodule *first = NULL, *prev = NULL;
    const char *p = dotted->text;
    for (const char *dot = p;; dot++) {
        if (*dot != '.' && *dot != '\0') {
            continue;
        }
        const char *prefix = arena_text(it->mem, p, (size_t)(dot - p));
        vmodule *m = load(it, from, level, prefix);
        if (it->ds->errors > before) {
            // The imported file does not parse: said already.
            return raise_obj(it, exc_new(it, exc_class(it, "_Stop"), VUNDEF));
        }
        if (!m && *dot == '\0') {
            return VUNDEF;
        }
        if (m) {
            if (!first) {
                first = m;
            }
            if (prev && prev != m) {
                const char *last = strrchr(prefix, '.');
                attrs_set(it, &prev->subs, intern_cstr(it->names, last ? last + 1 : prefix),
                          (value){.tag = V_MODULE, .u.module = m});
            }
            prev = m;
        }
        if (*dot == '\0') {
            break;
        }
    }
    return (value){.tag = V_MODULE, .u.module = leaf ? prev : first};
}

static bool in_try(const interp *it)
{
    return it->top->try_import > 0;
}

static flow exec_import_stmt(interp *it, const ast *s)
{
    for (const ast *a = s->u.list.first; a; a = a->next) {
        value m = import_module(it, it->top->module, 0, a->u.alias.path, a->u.alias.as != NULL);
        if (m.tag == V_UNDEF) {
            if (in_try(it)) {
                raise_msg(it, "ModuleNotFoundError", "No module named '%s'", a->u.alias.path->text);
                return FLOW_ERROR;
            }
            const char *p = a->u.alias.path->text, *dot = strchr(p, '.');
            m = opaque(it, a->u.alias.as || !dot ? p : arena_text(it->mem, p, (size_t)(dot - p)));
        }
        if (IS_ERR(m) || !assign_to(it, a, m)) {
            return FLOW_ERROR;
        }
    }
    return FLOW_NEXT;
}

static bool import_star(interp *it, vmodule *to, value mod)
{
    if (mod.tag != V_MODULE) {
        return true;
    }
    vmodule *m = mod.u.module;
    value all = module_attr(it, m, N(__all__), UINT32_MAX);
    if (IS_ERR(all)) {
        return false;
    }
    if (all.tag == V_LIST || all.tag == V_TUPLE) {
        uint32_t n;
        value *at = items_of(it, all, &n);
        for (uint32_t i = 0; at && i < n; i++) {
            value v =
                at[i].tag == V_STR ? module_attr(it, m, str_sym(it, at[i]), UINT32_MAX) : VUNDEF;
            if (IS_ERR(v)) {
                return false;
            }
            if (v.tag != V_UNDEF) {
                attrs_set(it, &to->attrs, str_sym(it, at[i]), v);
            }
        }
        return true;
    }
    if (!m->binders) {
        if (m->native_attr) {
            m->native_attr(it, m, NULL);  // make all of them
        }
        for (uint32_t i = 0; i < m->attrs.n; i++) {
            if (m->attrs.at[i].id->text[0] != '_') {
                attrs_set(it, &to->attrs, m->attrs.at[i].id, m->attrs.at[i].val);
            }
        }
        return true;
    }
    for (uint32_t i = 0; i < m->binders->at.n; i++) {
        sym id = m->binders->at.at[i].id;
        if (id->text[0] == '_') {
            continue;
        }
        value v = module_attr(it, m, id, UINT32_MAX);
        if (IS_ERR(v)) {
            return false;
        }
        if (v.tag != V_UNDEF) {
            attrs_set(it, &to->attrs, id, v);
        }
    }
    for (uint32_t i = 0; i < m->binders->stars.n; i++) {
        if (!run_stmt(it, m, m->binders->stars.at[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < m->attrs.n; i++) {
        if (m->attrs.at[i].id->text[0] != '_') {
            attrs_set(it, &to->attrs, m->attrs.at[i].id, m->attrs.at[i].val);
        }
    }
    return true;
}

static flow exec_from(interp *it, const ast *s)
{
    vmodule *here = it->top->module;
    sym path = s->u.from.path ? s->u.from.path : intern_cstr(it->names, "");
    value m = import_module(it, here, s->u.from.level, path, true);
    if (IS_ERR(m)) {
        return FLOW_ERROR;
    }
    const char *shown =
        arena_printf(it->mem, "%.*s%s", (int)s->u.from.level, "....................", path->text);
    if (m.tag == V_UNDEF) {
        if (in_try(it)) {
            raise_msg(it, "ModuleNotFoundError", "No module named '%s'", shown);
            return FLOW_ERROR;
        }
        m = opaque(it, shown);
    }
    for (const ast *a = s->u.from.aliases; a; a = a->next) {
        if (strcmp(a->u.alias.path->text, "*") == 0) {
            if (!import_star(it, here, m)) {
                return FLOW_ERROR;
            }
            continue;
        }
        value v = m.tag == V_OPAQUE ? find_attr(it, m, a->u.alias.path)
                                    : module_attr(it, m.u.module, a->u.alias.path, UINT32_MAX);
        if (v.tag == V_UNDEF && m.tag == V_OPAQUE) {
            v = m;
        }
        if (v.tag == V_UNDEF) {
            const char *sub =
                *path->text ? arena_printf(it->mem, "%s.%s", path->text, a->u.alias.path->text)
                            : a->u.alias.path->text;
            unsigned before = it->ds->errors;
            vmodule *sm = load(it, here, s->u.from.level, sub);
            if (it->ds->errors > before) {
                raise_obj(it, exc_new(it, exc_class(it, "_Stop"), VUNDEF));
                return FLOW_ERROR;
            }
            if (sm) {
                v = (value){.tag = V_MODULE, .u.module = sm};
                attrs_set(it, &m.u.module->subs, a->u.alias.path, v);
            }
        }
        if (v.tag == V_UNDEF) {
            v = find_attr(it, m, a->u.alias.path);  // the module's own __getattr__
        }
        if (v.tag == V_UNDEF) {
            // A namespace package or a package's __init__ that we cannot run may hold it.
            if (m.u.module->lm && (!m.u.module->lm->ast) && !in_try(it)) {
                v = opaque(it, arena_printf(it->mem, "%s.%s", shown, a->u.alias.path->text));
            } else {
                raise_msg(it, "ImportError", "cannot import name '%s' from '%s'",
                          a->u.alias.path->text, m.u.module->id->text);
                return FLOW_ERROR;
            }
        }
        if (IS_ERR(v) || !assign_to(it, a, v)) {
            return FLOW_ERROR;
        }
    }
    return FLOW_NEXT;
}

flow exec_import(interp *it, const ast *s)
{
    return s->kind == AST_IMPORT ? exec_import_stmt(it, s) : exec_from(it, s);
}
