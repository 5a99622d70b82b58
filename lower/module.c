// Modules and imports. Module level is lazy: a statement runs when a name that it binds or changes
// is first needed, in the order of the text.
#include "lower/interp.h"

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

static bool is_variable(const vmodule *m, sym id)
{
    for (uint32_t i = 0; i < m->binders->at.n; i++) {
        if (m->binders->at.at[i].id == id) {
            return m->binders->at.at[i].value;
        }
    }
    return false;
}

static void bind_to(interp *it, vmodule *m, sym id, uint32_t stmt)
{
    // The list is short-lived in the making; names are found through the interned record.
    for (uint32_t i = 0; i < m->binders->at.n; i++) {
        binder *b = &m->binders->at.at[i];
        if (b->id == id) {
            if (b->stmts.n == 0 || b->stmts.at[b->stmts.n - 1] != stmt) {
                vec_push(it->mem, &b->stmts, stmt);
            }
            return;
        }
    }
    vec_push(it->mem, &m->binders->at, ((binder){.id = id}));
    binder *b = &m->binders->at.at[m->binders->at.n - 1];
    vec_push(it->mem, &b->stmts, stmt);
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

static void bind_target(interp *it, vmodule *m, const ast *t, uint32_t stmt)
{
    if (t->kind == AST_TUPLE || t->kind == AST_LIST) {
        for (const ast *i = t->u.list.first; i; i = i->next) {
            bind_target(it, m, i, stmt);
        }
    } else if (t->kind == AST_STARRED) {
        bind_target(it, m, t->u.bin.l, stmt);
    } else if (root(t)->kind == AST_NAME) {
        bind_to(it, m, root(t)->u.id, stmt);
        for (uint32_t i = 0; t->kind == AST_NAME && i < m->binders->at.n; i++) {
            m->binders->at.at[i].value |= m->binders->at.at[i].id == t->u.id;
        }
    }
}

static void bind_stmts(interp *it, vmodule *m, const ast *s, uint32_t stmt);

static void bind_stmt(interp *it, vmodule *m, const ast *s, uint32_t stmt)
{
    switch ((ast_kind)s->kind) {
    case AST_EXPR:
        if (s->u.bin.l->kind == AST_CALL && s->u.bin.l->u.call.fn->kind != AST_NAME) {
            const ast *r = root(s->u.bin.l);  // TABLE.append(x) changes TABLE
            if (r->kind == AST_NAME && is_variable(m, r->u.id)) {
                bind_to(it, m, r->u.id, stmt);
            }
        } else if (s->u.bin.l->kind == AST_CALL) {
            for (const ast *a = s->u.bin.l->u.call.args; a; a = a->next) {  // register(TABLE)
                if (a->u.named.value->kind == AST_NAME && is_variable(m, a->u.named.value->u.id) &&
                    strcmp(s->u.bin.l->u.call.fn->u.id->text, "print") != 0) {
                    bind_to(it, m, a->u.named.value->u.id, stmt);
                }
            }
        } else if (s->u.bin.l->kind == AST_WALRUS) {
            bind_target(it, m, s->u.bin.l->u.bin.l, stmt);
        }
        break;
    case AST_ASSIGN:
    case AST_ANNASSIGN:
        for (const ast *t = s->u.assign.targets; t; t = t->next) {
            bind_target(it, m, t, stmt);
        }
        break;
    case AST_AUGASSIGN: bind_target(it, m, s->u.bin.l, stmt); break;
    case AST_DEL:
        for (const ast *t = s->u.list.first; t; t = t->next) {
            bind_target(it, m, t, stmt);
        }
        break;
    case AST_IMPORT:
        for (const ast *a = s->u.list.first; a; a = a->next) {
            const char *p = a->u.alias.path->text, *dot = strchr(p, '.');
            sym id = a->u.alias.as ? a->u.alias.as
                     : dot         ? intern_add(it->names, p, (size_t)(dot - p))
                                   : a->u.alias.path;
            bind_to(it, m, id, stmt);
        }
        break;
    case AST_FROM:
        for (const ast *a = s->u.from.aliases; a; a = a->next) {
            if (strcmp(a->u.alias.path->text, "*") == 0) {
                vec_push(it->mem, &m->binders->stars, stmt);
            } else {
                bind_to(it, m, a->u.alias.as ? a->u.alias.as : a->u.alias.path, stmt);
            }
        }
        break;
    case AST_IF:
    case AST_WHILE:
    case AST_FOR:
        if (s->kind == AST_FOR) {
            bind_target(it, m, s->u.flow.target, stmt);
        }
        bind_stmts(it, m, s->u.flow.body, stmt);
        bind_stmts(it, m, s->u.flow.orelse, stmt);
        break;
    case AST_TRY:
        bind_stmts(it, m, s->u.try_.body, stmt);
        for (const ast *h = s->u.try_.handlers; h; h = h->next) {
            bind_stmts(it, m, h->u.handler.body, stmt);
        }
        bind_stmts(it, m, s->u.try_.orelse, stmt);
        bind_stmts(it, m, s->u.try_.final, stmt);
        break;
    case AST_WITH:
        for (const ast *w = s->u.with.items; w; w = w->next) {
            if (w->u.withitem.target) {
                bind_target(it, m, w->u.withitem.target, stmt);
            }
        }
        bind_stmts(it, m, s->u.with.body, stmt);
        break;
    case AST_DEF:
    case AST_CLASS: bind_to(it, m, s->u.def.id, stmt); break;
    case AST_MATCH:
        for (const ast *c = s->u.match.cases; c; c = c->next) {
            bind_stmts(it, m, c->u.match.body, stmt);
        }
        break;
    case AST_TYPE_ALIAS: bind_to(it, m, s->u.type.id, stmt); break;
    default: break;
    }
}

static void bind_stmts(interp *it, vmodule *m, const ast *s, uint32_t stmt)
{
    for (; s; s = s->next) {
        bind_stmt(it, m, s, stmt);
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
        bind_stmt(it, m, s, i);
    }
    // From here a name is found through a table: its binder's number, kept as an attribute of its
    // own.
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

static binder *find_binder(const vmodule *m, sym id)
{
    for (uint32_t i = 0; i < m->binders->at.n; i++) {
        if (m->binders->at.at[i].id == id) {
            return &m->binders->at.at[i];
        }
    }
    return NULL;
}

// ---- names read when a statement runs (not by the functions that it makes)

static bool reads_stmts(const ast *n, sym id);

static bool reads(const ast *e, sym id)
{
    for (; e; e = e->next) {
        bool r = false;
        switch ((ast_kind)e->kind) {
        case AST_NAME: r = e->u.id == id; break;
        case AST_FSTRING:
        case AST_TUPLE:
        case AST_LIST:
        case AST_SET:
        case AST_DICT: r = reads(e->u.list.first, id); break;
        case AST_FORMAT: r = reads(e->u.format.value, id) || reads(e->u.format.spec, id); break;
        case AST_PAIR:
        case AST_UNARY:
        case AST_BINARY:
        case AST_BOOLOP:
        case AST_COMPARE:
        case AST_CMP:
        case AST_STARRED:
        case AST_WALRUS: r = reads(e->u.bin.l, id) || reads(e->u.bin.r, id); break;
        case AST_CALL: r = reads(e->u.call.fn, id) || reads(e->u.call.args, id); break;
        case AST_ARG:
        case AST_ATTR: r = reads(e->u.named.value, id); break;
        case AST_INDEX: r = reads(e->u.index.value, id) || reads(e->u.index.key, id); break;
        case AST_SLICE:
        case AST_TERNARY:
            r = reads(e->u.three.a, id) || reads(e->u.three.b, id) || reads(e->u.three.c, id);
            break;
        case AST_LISTCOMP:
        case AST_SETCOMP:
        case AST_DICTCOMP:
        case AST_GENEXP:
            r = reads(e->u.comp.elt, id) || reads(e->u.comp.value, id);
            for (const ast *c = e->u.comp.clauses; c && !r; c = c->next) {
                r = reads(c->u.clause.iter, id) || reads(c->u.clause.conds, id);
            }
            break;
        default: break;
        }
        if (r) {
            return true;
        }
    }
    return false;
}

static bool reads_def(const ast *s, sym id)
{
    if (reads(s->u.def.decorators, id)) {
        return true;
    }
    if (s->kind == AST_CLASS) {
        return reads(s->u.def.params, id) || reads_stmts(s->u.def.body, id);
    }
    for (const ast *p = s->u.def.params; p; p = p->next) {
        if (reads(p->u.param.dflt, id)) {
            return true;
        }
    }
    return false;
}

static bool reads_stmt(const ast *s, sym id)
{
    switch ((ast_kind)s->kind) {
    case AST_EXPR:
    case AST_ASSERT:
    case AST_RAISE:
    case AST_AUGASSIGN: return reads(s->u.bin.l, id) || reads(s->u.bin.r, id);
    case AST_ASSIGN:
    case AST_ANNASSIGN: return reads(s->u.assign.targets, id) || reads(s->u.assign.value, id);
    case AST_DEL: return reads(s->u.list.first, id);
    case AST_IF:
    case AST_WHILE:
    case AST_FOR:
        return reads(s->u.flow.cond, id) || reads_stmts(s->u.flow.body, id) ||
               reads_stmts(s->u.flow.orelse, id);
    case AST_TRY:
        for (const ast *h = s->u.try_.handlers; h; h = h->next) {
            if (reads_stmts(h->u.handler.body, id)) {
                return true;
            }
        }
        return reads_stmts(s->u.try_.body, id) || reads_stmts(s->u.try_.orelse, id) ||
               reads_stmts(s->u.try_.final, id);
    case AST_WITH:
        for (const ast *w = s->u.with.items; w; w = w->next) {
            if (reads(w->u.withitem.value, id)) {
                return true;
            }
        }
        return reads_stmts(s->u.with.body, id);
    case AST_DEF:
    case AST_CLASS: return reads_def(s, id);
    default: return false;
    }
}

static bool reads_stmts(const ast *n, sym id)
{
    for (; n; n = n->next) {
        if (reads_stmt(n, id)) {
            return true;
        }
    }
    return false;
}

// Statements from..to that use the name's value before statement `to` changes it.
static bool run_readers(interp *it, vmodule *m, sym id, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (m->stmts[i].state == 0 && reads_stmt(m->stmts[i].node, id) && !run_stmt(it, m, i)) {
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
