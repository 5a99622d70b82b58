// Generators: functions that yield run on fibers; generator expressions are loops that keep their
// place.
#include "lower/fiber.h"
#include "lower/methods.h"

#include <string.h>

// Generators that run inside one another; CPython counts them as calls.
static const unsigned GENERATORS_DEEP = 1000;

typedef enum gen_state { GEN_NEW, GEN_PAUSED, GEN_RUNNING, GEN_DONE } gen_state;

typedef struct gen {
    interp *it;
    gen_state state;
    frame *fr;
    const ast *made_by;  // the call that made it
    value ret;           // of the function, once, when it ended

    // A function's: its fiber, from the first next() to its end.
    const ast *def;
    fiber *fib;
    jmp_buf *oom;  // on the fiber's stack
    bool out_of_memory, failed;
    value sent;  // result of the yield that waits, or the exception that it raises
    bool throwing;
    value yielded;
    uint32_t dyn_depth;  // of the one who resumed it

    // An expression's: one iterator a clause, the first `depth` of them under way.
    const ast *comp;
    viter *at;
    const ast **clause;
    uint32_t nclauses, depth;
} gen;

static value gen_value(interp *it, gen *g)
{
    viter *s = NEW(it->mem, viter);
    iter_of_gen(s, g);
    return VPTR(V_ITER, s);
}

value gen_of_function(interp *it, const ast *def, frame *fr)
{
    gen *g = NEW(it->mem, gen);
    g->it = it;
    g->fr = fr;
    g->def = def;
    g->made_by = it->top ? it->top->at : NULL;
    g->ret = g->sent = VNONE;
    fr->gen = g;
    return gen_value(it, g);
}

value gen_of_expression(interp *it, const ast *e, frame *fr, value first)
{
    gen *g = NEW(it->mem, gen);
    g->it = it;
    g->fr = fr;
    g->comp = e;
    g->ret = VNONE;
    for (const ast *c = e->u.comp.clauses; c; c = c->next) {
        g->nclauses++;
    }
    g->at = NEW_N(it->mem, viter, g->nclauses);
    g->clause = NEW_N(it->mem, const ast *, g->nclauses);
    uint32_t i = 0;
    for (const ast *c = e->u.comp.clauses; c; c = c->next) {
        g->clause[i++] = c;
    }
    g->depth = 1;
    return iter_init(it, &g->at[0], first) ? gen_value(it, g) : VERR;
}

// A StopIteration that leaves a generator's body would end the loop over it: CPython makes it a
// RuntimeError.
static void no_stop_iteration(interp *it)
{
    value e = it->exc;
    if (e.tag == V_OBJ && class_is(e.u.obj->cls, exc_class(it, "StopIteration"))) {
        it->exc = VUNDEF;
        raise_msg(it, "RuntimeError", "generator raised StopIteration");
        attrs_set(it, &it->exc.u.obj->attrs, N(__cause__), e);
        attrs_set(it, &it->exc.u.obj->attrs, N(__context__), e);
    }
}

// ---- functions

static void run_body(gen *g)
{
    interp *it = g->it;
    if (g->def->kind == AST_LAMBDA) {
        value v = eval(it, g->def->u.lambda.body);
        g->failed = IS_ERR(v);
        g->ret = v;
    } else {
        g->failed = exec_block(it, g->def->u.def.body) == FLOW_ERROR;
        g->ret = g->fr->ret;
    }
    if (g->failed) {
        no_stop_iteration(it);
    }
}

// The fiber's own function. Running out of memory ends here: a jump may not leave the stack.
static void run_fiber(void *arg)
{
    gen *g = arg;
    jmp_buf oom;
    if (setjmp(oom) == 0) {
        g->oom = &oom;
        g->it->mem->oom = &oom;
        run_body(g);
    } else {
        g->out_of_memory = true;
    }
    g->state = GEN_DONE;
}

static int resume(interp *it, gen *g, value *out)
{
    if (it->gen_depth == GENERATORS_DEEP) {
        raise_msg(it, "RecursionError", "generators nest too deeply: the limit is %u",
                  GENERATORS_DEEP);
        return -1;
    }
    if (g->state == GEN_NEW) {
        g->fib = fiber_get(&it->fibers);
        if (!g->fib) {
            g->state = GEN_DONE;
            raise_msg(it, "MemoryError", "too many generators are under way (%u)", it->fibers.made);
            return -1;
        }
        fiber_start(g->fib, run_fiber, g);
    }
    frame *top = it->top, *f = g->fr;
    jmp_buf *oom = it->mem->oom;
    char *limit = it->stack_limit;
    f->prev = top;
    f->call = top ? top->at : NULL;
    f->place = IR_NONE;
    for (loop_ctx *l = f->loops; l; l = l->prev) {
        l->place = IR_NONE;
    }
    it->top = f;
    it->stack_limit = fiber_stack_limit(g->fib);
    if (g->oom) {
        it->mem->oom = g->oom;
    }
    g->dyn_depth = it->dyn_depth;
    g->state = GEN_RUNNING;
    it->gen_depth++;
    fiber_enter(g->fib);
    it->gen_depth--;
    it->top = top;
    it->mem->oom = oom;
    it->stack_limit = limit;
    if (g->state != GEN_DONE) {
        g->state = GEN_PAUSED;
        *out = g->yielded;
        return 1;
    }
    fiber_put(&it->fibers, g->fib);
    g->fib = NULL;
    if (g->out_of_memory) {
        longjmp(*oom, 1);
    }
    return g->failed ? -1 : 0;
}

value gen_yield(interp *it, value v)
{
    gen *g = it->top->gen;
    if (!g) {
        return raise_msg(it, "SyntaxError", "'yield' outside function");
    }
    if (it->dyn_depth != g->dyn_depth) {
        return raise_msg(it, "NotImplementedError",
                         "yield inside a loop of the device is not supported");
    }
    if (!interp_step(it)) {
        return VERR;
    }
    g->yielded = v;
    fiber_leave(g->fib);
    value sent = g->sent;
    g->sent = VNONE;
    if (g->throwing) {
        g->throwing = false;
        it->exc = sent;
        return VERR;
    }
    return sent;
}

// ---- expressions

static int comp_step(interp *it, gen *g, value *out)
{
    while (g->depth) {
        const ast *c = g->clause[g->depth - 1];
        value x;
        int r = iter_next(it, &g->at[g->depth - 1], &x);
        if (r == 0) {
            g->depth--;
            continue;
        }
        if (r < 0 || !interp_step(it) || !assign_to(it, c->u.clause.target, x)) {
            return -1;
        }
        int keep = 1;
        for (const ast *k = c->u.clause.conds; k && keep == 1; k = k->next) {
            value t = eval(it, k);
            keep = IS_ERR(t) ? -1 : truth(it, t);
        }
        if (keep < 0) {
            return -1;
        }
        if (!keep) {
            continue;
        }
        if (g->depth == g->nclauses) {
            *out = eval(it, g->comp->u.comp.elt);
            return IS_ERR(*out) ? -1 : 1;
        }
        value src = eval(it, g->clause[g->depth]->u.clause.iter);
        if (IS_ERR(src) || !iter_init(it, &g->at[g->depth], src)) {
            return -1;
        }
        g->depth++;
    }
    return 0;
}

static int next_of_comp(interp *it, gen *g, value *out)
{
    if (!stack_ok(it)) {
        return -1;
    }
    frame *top = it->top, *f = g->fr;
    f->prev = top;
    f->call = top ? top->at : NULL;
    f->place = IR_NONE;
    it->top = f;
    g->state = GEN_RUNNING;
    int r = comp_step(it, g, out);
    if (r < 0) {
        no_stop_iteration(it);
    }
    it->top = top;
    g->state = r == 1 ? GEN_PAUSED : GEN_DONE;
    return r;
}

// ---- both

static int advance(interp *it, gen *g, value *out)
{
    if (g->state == GEN_RUNNING) {
        value_error(it, "generator already executing");
        return -1;
    }
    if (g->state == GEN_DONE) {
        g->ret = VNONE;
        return 0;
    }
    return g->comp ? next_of_comp(it, g, out) : resume(it, g, out);
}

int gen_next(interp *it, gen *g, value *out)
{
    return advance(it, g, out);
}

value gen_result(const gen *g)
{
    return g->ret;
}

static int gen_send(interp *it, gen *g, value v, value *out)
{
    if (g->state == GEN_NEW && v.tag != V_NONE && !g->comp) {
        type_error(it, "can't send non-None value to a just-started generator");
        return -1;
    }
    if (g->state == GEN_PAUSED) {
        g->sent = v;
    }
    return advance(it, g, out);
}

static int gen_throw(interp *it, gen *g, value exc, value *out)
{
    if (g->state == GEN_PAUSED && !g->comp) {
        g->sent = exc;
        g->throwing = true;
        return advance(it, g, out);
    }
    if (g->state == GEN_RUNNING) {
        return advance(it, g, out);
    }
    g->state = GEN_DONE;
    it->exc = exc;
    return -1;
}

static bool is_exit(interp *it, value e)
{
    return e.tag == V_OBJ && (class_is(e.u.obj->cls, exc_class(it, "GeneratorExit")) ||
                              class_is(e.u.obj->cls, exc_class(it, "StopIteration")));
}

static bool gen_close(interp *it, gen *g)
{
    if (g->state == GEN_NEW || g->comp) {
        if (g->state != GEN_RUNNING) {
            g->state = GEN_DONE;
        }
        return true;
    }
    if (g->state == GEN_DONE) {
        return true;
    }
    value x;
    int r = gen_throw(it, g, exc_new(it, exc_class(it, "GeneratorExit"), VUNDEF), &x);
    if (r == 1) {
        raise_msg(it, "RuntimeError", "generator ignored GeneratorExit");
        return false;
    }
    if (r < 0 && is_exit(it, it->exc)) {
        it->exc = VUNDEF;
        r = 0;
    }
    g->ret = VNONE;
    return r == 0;
}

bool gen_leave_loop(interp *it, value v, const ast *call)
{
    gen *g = v.tag == V_ITER ? v.u.iter->gen : NULL;
    if (!g || g->comp || g->state != GEN_PAUSED || g->made_by != call || call->kind != AST_CALL) {
        return true;
    }
    value exc = it->exc;
    it->exc = VUNDEF;
    if (exc.tag == V_OBJ && exc.u.obj->cls == exc_class(it, "_Stop")) {
        it->exc = exc;
        return true;
    }
    bool ok = gen_close(it, g);
    if (ok) {
        it->exc = exc;
    }
    return ok;
}

// ---- yield from

// One step of what is delegated to: 1, 0, -1 as iter_next.
static int delegate(interp *it, viter *s, value got, bool throwing, value *out)
{
    gen *sub = iter_gen(s);
    if (throwing) {
        if (sub && is_exit(it, got) && class_is(got.u.obj->cls, exc_class(it, "GeneratorExit"))) {
            if (gen_close(it, sub)) {
                it->exc = got;
            }
            return -1;
        }
        if (sub) {
            return gen_throw(it, sub, got, out);
        }
        value f =
            s->src.tag == V_OBJ ? find_attr(it, s->src, intern_cstr(it->names, "throw")) : VUNDEF;
        if (f.tag == V_UNDEF) {
            it->exc = got;
            return -1;
        }
        *out = IS_ERR(f) ? f : call_values(it, f, &got, 1);
    } else if (got.tag == V_NONE) {
        return iter_next(it, s, out);
    } else if (sub) {
        return gen_send(it, sub, got, out);
    } else {
        *out = call_method(it, s->src, intern_cstr(it->names, "send"), &got, 1);
    }
    return IS_ERR(*out) ? (iter_stopped(it, s) ? 0 : -1) : 1;
}

value gen_yield_from(interp *it, value src)
{
    if (!it->top->gen) {
        return raise_msg(it, "SyntaxError", "'yield from' outside function");
    }
    viter s;
    if (!iter_init(it, &s, src)) {
        return VERR;
    }
    value got = VNONE, out;
    bool throwing = false;
    for (;;) {
        int r = delegate(it, &s, got, throwing, &out);
        if (r <= 0) {
            return r < 0 ? VERR : iter_result(&s);
        }
        got = gen_yield(it, out);
        throwing = IS_ERR(got);
        if (throwing) {
            got = it->exc;
            if (got.tag == V_OBJ && got.u.obj->cls == exc_class(it, "_Stop")) {
                return VERR;
            }
            it->exc = VUNDEF;
        }
    }
}

// ---- methods

static value finish(interp *it, gen *g, int r, value out)
{
    if (r == 0) {
        value ret = g->ret;
        return raise_obj(
            it, exc_new(it, exc_class(it, "StopIteration"), ret.tag == V_NONE ? VUNDEF : ret));
    }
    return r < 0 ? VERR : out;
}

static value m_send(interp *it, const args *a)
{
    gen *g = it->native_self.u.iter->gen;
    value out;
    if (!method_args(it, a, "generator", "send", 1, 1)) {
        return VERR;
    }
    int r = gen_send(it, g, a->at[0], &out);
    return finish(it, g, r, out);
}

static value m_throw(interp *it, const args *a)
{
    gen *g = it->native_self.u.iter->gen;
    value out;
    if (!method_args(it, a, "generator", "throw", 1, 3)) {
        return VERR;
    }
    value e = a->at[0];
    if (e.tag == V_CLASS && a->n > 1 && a->at[1].tag != V_NONE) {
        e = a->at[1].tag == V_OBJ && a->at[1].u.obj->cls->is_exception
                ? a->at[1]
                : call_values(it, e, &a->at[1], 1);
        if (IS_ERR(e)) {
            return e;
        }
    }
    raise_obj(it, e);
    e = it->exc;
    it->exc = VUNDEF;
    int r = gen_throw(it, g, e, &out);
    return finish(it, g, r, out);
}

static value m_close(interp *it, const args *a)
{
    gen *g = it->native_self.u.iter->gen;
    return method_args(it, a, "generator", "close", 0, 0) && gen_close(it, g) ? VNONE : VERR;
}

static value m_next(interp *it, const args *a)
{
    value self = it->native_self, out;
    if (!method_args(it, a, "iterator", "__next__", 0, 0)) {
        return VERR;
    }
    int r = iter_next(it, self.u.iter, &out);
    if (r == 0) {
        value ret = iter_result(self.u.iter);
        return raise_obj(
            it, exc_new(it, exc_class(it, "StopIteration"), ret.tag == V_NONE ? VUNDEF : ret));
    }
    return r < 0 ? VERR : out;
}

static value m_iter(interp *it, const args *a)
{
    value self = it->native_self;
    return method_args(it, a, "iterator", "__iter__", 0, 0) ? self : VERR;
}

value iter_method(interp *it, value self, sym id)
{
    static const method any[] = {METHOD("__next__", m_next), METHOD("__iter__", m_iter)};
    static const method gens[] = {METHOD("send", m_send), METHOD("throw", m_throw),
                                  METHOD("close", m_close)};
    value v = self.u.iter->gen ? method_bind(it, gens, 3, self, id) : VUNDEF;
    return v.tag == V_UNDEF ? method_bind(it, any, 2, self, id) : v;
}
