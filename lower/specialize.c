// The specializer's entry: finds the kernel, binds its arguments, runs it, collects what it returns.
#include "lower/specialize.h"

#include "lower/interp.h"

#include <string.h>

// Stack that a compile may use; the rest is the embedder's.
enum { STACK_BYTES = 3 * 1024 * 1024 };
static const uint64_t STEP_LIMIT = 400000000;

bool is_kernel_decorator(const ast *d)
{
    static const char *const names[] = {"jit", "nki_jit", "trace", "baremetal", "benchmark", "profile"};
    if (d->kind == AST_CALL) {
        d = d->u.call.fn;
    }
    const char *id = d->kind == AST_NAME ? d->u.id->text : d->kind == AST_ATTR ? d->u.named.id->text : "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(id, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

typedef struct finder {
    const source *src;
    kernel_info *out;
    uint32_t n, cap;
    bool all;  // every function, decorated or not
} finder;

static void find_in(finder *f, const ast *s)
{
    for (; s; s = s->next) {
        switch ((ast_kind)s->kind) {
        case AST_DEF: {
            bool jit = f->all;
            for (const ast *d = s->u.def.decorators; d; d = d->next) {
                jit |= is_kernel_decorator(d);
            }
            if (!jit) {
                break;
            }
            kernel_info k = {.name = s->u.def.id->text, .at = {f->src, s->at}, .params = s->u.def.params};
            for (const ast *p = s->u.def.params; p; p = p->next) {
                k.nparams += p->u.param.id != NULL;
                k.nrequired += p->u.param.id && !p->u.param.dflt && p->op != PARAM_STAR && p->op != PARAM_STARSTAR;
            }
            if (f->n < f->cap) {
                f->out[f->n] = k;
            }
            f->n++;
            break;
        }
        case AST_IF:
            find_in(f, s->u.flow.body);
            find_in(f, s->u.flow.orelse);
            break;
        case AST_TRY:
            find_in(f, s->u.try_.body);
            find_in(f, s->u.try_.orelse);
            break;
        case AST_WITH: find_in(f, s->u.with.body); break;
        default: break;
        }
    }
}

uint32_t kernels_of(const module_ast *m, kernel_info *out, uint32_t cap)
{
    finder f = {.src = m->src, .out = out, .cap = cap};
    find_in(&f, m->body);
    return f.n;
}

static const char *list_names(arena *mem, const kernel_info *k, uint32_t n)
{
    textbuf t;
    text_init(&t, mem);
    for (uint32_t i = 0; i < n; i++) {
        text_printf(&t, "%s%s", i ? ", " : "", k[i].name);
    }
    return t.len ? t.at : "none";
}

enum { MAX_KERNELS = 256 };

// The kernel's name, or NULL with an error in ds.
static const char *choose(interp *it, const module_ast *m, const char *kernel)
{
    if (kernel) {
        return kernel;
    }
    kernel_info *k = NEW_N(it->mem, kernel_info, MAX_KERNELS);
    loc at = {m->src, {0, 0}};
    uint32_t n = kernels_of(m, k, MAX_KERNELS);
    if (n == 1) {
        return k[0].name;
    }
    if (n == 0) {
        finder f = {.src = m->src, .out = k, .cap = MAX_KERNELS, .all = true};
        find_in(&f, m->body);
        if (f.n == 1) {
            return k[0].name;
        }
        diag_kernel_not_found(it->ds, at);
        return NULL;
    }
    diag_kernel_ambiguous(it->ds, k[0].at, n, list_names(it->mem, k, n < MAX_KERNELS ? n : MAX_KERNELS));
    return NULL;
}

static value find_kernel(interp *it, vmodule *m, const char *kernel)
{
    value v = {.tag = V_MODULE, .u.module = m};
    const char *p = kernel;
    for (;;) {
        const char *dot = strchr(p, '.');
        sym id = intern_add(it->names, p, dot ? (size_t)(dot - p) : strlen(p));
        value next = find_attr(it, v, id);
        if (next.tag == V_UNDEF) {
            kernel_info *k = NEW_N(it->mem, kernel_info, MAX_KERNELS);
            finder f = {.src = m->lm->ast->src, .out = k, .cap = MAX_KERNELS, .all = true};
            find_in(&f, m->lm->ast->body);
            uint32_t shown = f.n < MAX_KERNELS ? f.n : MAX_KERNELS;
            diag_kernel_name_unknown(it->ds, (loc){m->lm->ast->src, {0, 0}}, kernel, list_names(it->mem, k, shown));
            return VUNDEF;
        }
        if (IS_ERR(next)) {
            return next;
        }
        v = next;
        if (!dot) {
            return v;
        }
        p = dot + 1;
    }
}

static value tensor_arg(interp *it, const lower_arg *a, const char *name)
{
    ir_tensor t = {.dtype = (uint8_t)a->type, .buffer = BUF_HBM, .role = ROLE_ARG, .ndim = (uint8_t)a->ndim,
                   .addr_bytes = (uint64_t)ADDR_AUTO};
    t.name = ir_str(it->p, name, strlen(name));
    t.size_bytes = dtype_size(a->type);
    for (uint32_t d = 0; d < a->ndim; d++) {
        t.shape[d] = a->shape[d];
        t.size_bytes *= a->shape[d];
    }
    t.param = it->p->params.n;
    uint32_t id = ir_tensor_add(it->p, t);
    vec_push(it->mem, &it->p->params, ((ir_param){t.name, id}));
    return tensor_whole(it, id);
}

static value expression_arg(interp *it, vmodule *m, const lower_arg *a)
{
    // A module of its own whose only statement is the expression, over the kernel's names.
    loaded_module *lm = NEW(it->mem, loaded_module);
    module_ast *ma = NEW(it->mem, module_ast);
    ast *st = NEW(it->mem, ast);
    st->kind = AST_EXPR;
    st->at = a->expr->at;
    st->u.bin.l = (ast *)(uintptr_t)a->expr;
    *ma = (module_ast){.src = a->expr_src, .body = st};
    *lm = (loaded_module){.path = arena_printf(it->mem, "<argument %u>", it->p->args.n + it->modules.n), .name = "<argument>", .ast = ma};
    vmodule *em = module_of(it, lm);
    frame f = {.unit = em->unit, .module = m, .at = a->expr, .limit = UINT32_MAX, .id = em->id, .prev = it->top, .src = a->expr_src};
    unit *u = NEW(it->mem, unit);
    *u = *em->unit;
    u->kind = UNIT_FUNC;  // names are looked up in m, without a limit
    f.unit = u;
    f.locals = NEW_N(it->mem, value, u->nlocals);
    it->top = &f;
    value v = eval(it, a->expr);
    it->top = f.prev;
    return v;
}

// Names that a fragment counts on its harness for.
static bool usual_names(interp *it, vmodule *m)
{
    static const struct {
        const char *name, *module;
    } usual[] = {{"nl", "nki.language"}, {"nisa", "nki.isa"}, {"nki", "nki"}, {"np", "numpy"}, {"math", "math"}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        sym id = intern_cstr(it->names, usual[i].name);
        value v = module_attr(it, m, id, UINT32_MAX);
        if (IS_ERR(v)) {
            return false;
        }
        if (v.tag == V_UNDEF) {
            v = import_module(it, m, 0, intern_cstr(it->names, usual[i].module), true);
            if (IS_ERR(v)) {
                return false;
            }
            if (v.tag == V_MODULE) {
                attrs_set(it, &m->attrs, id, v);
            }
        }
    }
    return true;
}

static bool collect(interp *it, value v, uint32_t i, loc at)
{
    if (v.tag != V_TENSOR) {
        diag_return_not_tensor(it->ds, at, i, type_name(it, v));
        return false;
    }
    vtensor *t = v.u.tensor;
    ir_tensor *s = &it->p->tensors.at[t->id];
    if (s->buffer != BUF_SHARED && s->role != ROLE_ARG) {
        textbuf b;
        text_init(&b, it->mem);
        tensor_describe(t, &b);
        if (s->buffer != BUF_HBM) {
            diag *d = diag_return_not_shared(it->ds, at, i, b.at);
            diag_help(it->ds, d, "copy it with nisa.dma_copy to nl.ndarray(..., buffer=nl.shared_hbm) and return that");
            return false;
        }
        diag_return_private(it->ds, at, i, b.at);
    }
    if (s->role == ROLE_TEMP) {
        s->role = ROLE_OUT;
    }
    uint32_t view;
    if (!tensor_view(it, t, &view)) {
        return false;
    }
    vec_push(it->mem, &it->p->outputs, view);
    return true;
}

static bool collect_all(interp *it, value r, loc at)
{
    if (r.tag == V_NONE) {
        return true;
    }
    if (r.tag == V_TUPLE || r.tag == V_LIST) {
        uint32_t n;
        value *v = items_of(it, r, &n);
        for (uint32_t i = 0; i < n; i++) {
            if (!collect(it, v[i], i, at)) {
                return false;
            }
        }
        return true;
    }
    return collect(it, r, 0, at);
}

static bool run_kernel(interp *it, vmodule *m, const char *kernel, const lower_arg *in, uint32_t n)
{
    if (!usual_names(it, m)) {
        return false;
    }
    value k = find_kernel(it, m, kernel);
    if (k.tag == V_UNDEF || IS_ERR(k)) {
        return false;
    }
    value fn = k.tag == V_METHOD ? k.u.method->fn : k;
    if (fn.tag != V_FUNC) {
        diag_kernel_args(it->ds, (loc){m->lm->ast->src, {0, 0}},
                         arena_printf(it->mem, "'%s' is not a function but a value of type %s", kernel, type_name(it, k)));
        return false;
    }
    value *at = NEW_N(it->mem, value, n + 1);
    sym *kw = NEW_N(it->mem, sym, n + 1);
    uint32_t npos = 0, nkw = 0;
    const unit *u = fn.u.func->unit;
    for (uint32_t pass = 0; pass < 2; pass++) {  // positional values first
        for (uint32_t i = 0; i < n; i++) {
            if ((in[i].name != NULL) != (pass == 1)) {
                continue;
            }
            uint32_t p = npos;
            const char *name = in[i].name ? in[i].name : p < u->nparams ? u->params[p]->u.param.id->text : "?";
            value v = in[i].is_tensor ? tensor_arg(it, &in[i], name) : expression_arg(it, m, &in[i]);
            if (IS_ERR(v)) {
                return false;
            }
            at[npos + nkw] = v;
            if (in[i].name) {
                kw[nkw++] = intern_cstr(it->names, in[i].name);
            } else {
                npos++;
            }
        }
    }
    args a = {at, npos, nkw, kw};
    loc end = {m->lm->ast->src, fn.u.func->def->at};
    it->kernel_at = end;
    it->in_kernel = true;
    value r = call(it, k, &a);
    if (IS_ERR(r)) {
        return false;
    }
    // A definition's own place is its first line.
    if (!collect_all(it, r, end)) {
        return false;
    }
    diag *d = emit_finish(it->em, end);
    if (d) {
        interp_raise(it, d);
        return false;
    }
    return true;
}

static ir *run(interp *it, const loaded_module *entry, const char *kernel, const lower_arg *in, uint32_t n)
{
    builtins_init(it);
    native_module(it, "_nki");
    const char *name = choose(it, entry->ast, kernel);
    if (!name) {
        return NULL;
    }
    it->p->kernel = ir_str(it->p, name, strlen(name));
    vmodule *m = module_of(it, entry);
    it->entry = m;
    if (!run_kernel(it, m, name, in, n)) {
        interp_report(it);
        return NULL;
    }
    if (it->o->fp32_store) {
        fp32_store(it->p, it->ds);
    }
    return it->ds->errors ? NULL : it->p;
}

ir *specialize(arena *mem, const lower_opts *o, const loaded_module *entry, const char *kernel, const lower_arg *in,
               uint32_t n, diags *ds)
{
    char here;
    interp *it = NEW(mem, interp);
    it->mem = mem;
    it->o = o;
    it->names = o->names;
    it->ds = ds;
    diags_init(&it->pend, mem);
    it->pend.limit = UINT32_MAX;
    it->p = ir_new(mem, o->target);
    it->p->grid = o->grid ? o->grid : 1;
    it->p->core = o->core;
    it->em = emitter_new(mem, it->p, &it->pend, ds);
    it->step_limit = o->step_limit ? o->step_limit : STEP_LIMIT;
    it->stack_limit = (char *)((uintptr_t)&here - STACK_BYTES);
    it->exc = VUNDEF;
    it->native_self = VUNDEF;
    it->warned = NEW(mem, vlist);
    it->n = NEW(mem, name_table);
#define X(id) it->n->id = intern_cstr(it->names, #id);
    INTERP_NAMES(X)
#undef X
    it->n->default_ = intern_cstr(it->names, "default");
    // The stacks of generators are no arena's: an exhausted arena stops here on its way out.
    jmp_buf *outer = mem->oom, here_too;
    mem->oom = &here_too;
    if (setjmp(here_too)) {
        fiber_pool_fini(&it->fibers);
        mem->oom = outer;
        longjmp(*outer, 1);
    }
    ir *p = run(it, entry, kernel, in, n);
    fiber_pool_fini(&it->fibers);
    mem->oom = outer;
    return p;
}
