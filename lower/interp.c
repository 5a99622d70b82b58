// Exceptions, places, limits.
#include "lower/check.h"
#include "lower/interp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TRACE = 64, MAX_CALLS = 12 };

// Where an exception was raised: kept, since the frames are gone when it is reported.
typedef struct trace_step {
    loc at;
    const char *text;  // "called from `f`", "with i = 3"
} trace_step;

struct exc_trace {
    loc at;
    uint32_t n;
    trace_step step[MAX_TRACE];
};

static const source *source_of(const vmodule *m)
{
    return m && m->lm && m->lm->ast ? m->lm->ast->src : NULL;
}

// What f->at points into.
static const source *frame_source(const frame *f)
{
    return f->src ? f->src : source_of(f->module);
}

static bool hidden(const frame *f)
{
    return f->module && f->module->builtin;
}

loc interp_loc(interp *it)
{
    const frame *f = it->top;
    while (f && f->prev && (hidden(f) || !f->at)) {
        f = f->prev;
    }
    if (!f || !f->at) {
        return it->kernel_at;
    }
    return (loc){frame_source(f), f->at->at};
}

// A parameter's value when it is short: "i=2". Locals hold what it was last set to.
static void show_param(interp *it, const frame *f, uint32_t i, textbuf *out)
{
    const unit *u = f->unit;
    value v = f->locals[u->param_slot[i]];
    if (v.tag == V_TENSOR) {
        text_printf(out, "%s%s=", out->len ? ", " : "", u->params[i]->u.param.id->text);
        tensor_describe(v.u.tensor, out);
        return;
    }
    if (v.tag != V_INT && v.tag != V_FLOAT && v.tag != V_BOOL && v.tag != V_NONE &&
        v.tag != V_DTYPE && !(v.tag == V_STR && v.u.str->len <= 24)) {
        return;
    }
    text_printf(out, "%s%s=", out->len ? ", " : "", u->params[i]->u.param.id->text);
    repr_into(it, v, out);
}

static const char *show_call(interp *it, const frame *f)
{
    textbuf t;
    text_init(&t, it->mem);
    const unit *u = f->unit;
    for (uint32_t i = 0; u->kind == UNIT_FUNC && i < u->nparams && t.len < 120; i++) {
        show_param(it, f, i, &t);
    }
    return arena_printf(it->mem, "called from here: %s(%s)", f->id ? f->id->text : "?", t.at);
}

static struct exc_trace *capture(interp *it)
{
    struct exc_trace *t = NEW(it->mem, struct exc_trace);
    t->at = interp_loc(it);
    const frame *f = it->top;
    while (f && f->prev && hidden(f)) {
        f = f->prev;
    }
    uint32_t calls = 0;
    for (; f; f = f->prev) {
        if (hidden(f)) {
            continue;
        }
        for (const loop_ctx *l = f->loops; l && t->n + 3 < MAX_TRACE; l = l->prev) {
            t->step[t->n++] = (trace_step){
                {0}, arena_printf(it->mem, "with %s = %lld", l->var->text, (long long)l->value)};
        }
        const frame *up = f->prev;
        while (up && hidden(up)) {
            up = up->prev;
        }
        if (up && up->at && f->unit && f->unit->kind != UNIT_MODULE) {
            // A runaway recursion shows its innermost calls.
            if (++calls > MAX_CALLS || t->n + 3 >= MAX_TRACE) {
                t->step[t->n++] = (trace_step){{0}, "further calls are not shown"};
                break;
            }
            t->step[t->n++] = (trace_step){{frame_source(up), up->at->at}, show_call(it, f)};
        }
    }
    return t;
}

vclass *exc_class(interp *it, const char *cls)
{
    value v = attrs_get(&it->builtins, intern_cstr(it->names, cls));
    return v.tag == V_CLASS ? v.u.cls : it->exc_base;
}

value exc_new(interp *it, vclass *c, value message)
{
    vobj *o = NEW(it->mem, vobj);
    o->cls = c;
    o->base = VUNDEF;
    attrs_set(it, &o->attrs, N(args), v_tuple(it, &message, message.tag == V_UNDEF ? 0 : 1));
    return (value){.tag = V_OBJ, .u.obj = o};
}

value raise_obj(interp *it, value e)
{
    if (e.tag == V_CLASS && e.u.cls->is_exception) {
        args none = {NULL, 0, 0, NULL};
        e = instantiate(it, e.u.cls, &none);
        if (IS_ERR(e)) {
            return e;
        }
    }
    if (e.tag != V_OBJ || !e.u.obj->cls->is_exception) {
        if (e.tag == V_OPAQUE) {
            return raise_msg(it, "RuntimeError", "an exception of '%s' was raised",
                             e.u.opaque->path);
        }
        return type_error(it, "exceptions must derive from BaseException");
    }
    if (!e.u.obj->trace) {
        e.u.obj->trace = capture(it);
    }
    it->exc = e;
    return VERR;
}

value raise_msg(interp *it, const char *cls, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    char small[256], *text = small;
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof small) {
        text = NEW_N(it->mem, char, (size_t)n + 1);
        vsnprintf(text, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    return raise_obj(it, exc_new(it, exc_class(it, cls), v_cstr(it, n < 0 ? "" : text)));
}

void exc_set_context(interp *it, value e, value context)
{
    if (e.tag == V_OBJ && context.tag == V_OBJ && e.u.p != context.u.p &&
        attrs_get(&e.u.obj->attrs, N(__context__)).tag == V_UNDEF) {
        attrs_set(it, &e.u.obj->attrs, N(__context__), context);
    }
}

value interp_raise(interp *it, diag *d)
{
    const char *cls = diag_exception(d->id);
    value e = exc_new(it, exc_class(it, *cls ? cls : "_Stop"), v_cstr(it, d->text));
    e.u.obj->diag = d;
    return raise_obj(it, e);
}

static const char *message_of(interp *it, value e)
{
    value pend = it->exc;
    it->exc = VUNDEF;
    value s = v_strof(it, e);
    it->exc = pend;
    return IS_ERR(s) ? "" : s.u.str->p;
}

static diag *diag_of(interp *it, value e, loc at)
{
    static const struct {
        const char *cls;
        diag *(*make)(diags *, loc, const char *);
    } rows[] = {
        {"NkiValidationError", diag_validation},   {"KeyError", diag_key_error},
        {"IndexError", diag_index_error},          {"TypeError", diag_type_error},
        {"AttributeError", diag_attribute_error},  {"NameError", diag_name_error},
        {"ZeroDivisionError", diag_zero_division}, {"OverflowError", diag_int_overflow},
        {"ImportError", diag_import_failed},       {"NotImplementedError", diag_not_supported},
        {"ValueError", diag_value_error},
    };
    const vclass *c = e.u.obj->cls;
    const char *msg = message_of(it, e);
    if (strcmp(c->id->text, "AssertionError") == 0) {
        return diag_assertion_failed(it->ds, at, *msg ? ": " : "", msg);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const vclass *k = exc_class(it, rows[i].cls);
        if (c == k || (c->mro[0]->module == NULL && class_is(c, k))) {
            return rows[i].make(it->ds, at, msg);
        }
    }
    return diag_raised(it->ds, at, c->id->text, *msg ? ": " : "", msg);
}

void interp_report(interp *it)
{
    value e = it->exc;
    if (e.tag != V_OBJ) {
        return;
    }
    const struct exc_trace *t = e.u.obj->trace;
    diag *d = e.u.obj->diag;
    if (d) {
        diags_adopt(it->ds, d);
    } else if (e.u.obj->cls == exc_class(it, "_Stop")) {
        return;  // reported already: errors of an imported file
    } else {
        d = diag_of(it, e, t ? t->at : interp_loc(it));
    }
    for (uint32_t i = 0; t && i < t->n; i++) {
        diag_note_add(it->ds, d, t->step[i].at, "%s", t->step[i].text);
    }
    value cause = attrs_get(&e.u.obj->attrs, N(__cause__));
    if (cause.tag == V_OBJ && cause.u.obj->trace) {
        diag_note_add(it->ds, d, cause.u.obj->trace->at, "caused by %s: %s",
                      cause.u.obj->cls->id->text, message_of(it, cause));
    }
}

bool interp_step(interp *it)
{
    if (++it->steps < it->step_limit) {
        return true;
    }
    if (it->exc.tag == V_UNDEF) {
        interp_raise(it, diag_step_limit(&it->pend, interp_loc(it), (unsigned long long)it->steps));
    }
    return false;
}

bool stack_ok(interp *it)
{
    char here;
    if (&here > it->stack_limit) {
        return true;
    }
    // The innermost call, wherever in it the stack ran out: the same place in every build.
    const frame *f = it->top;
    loc at =
        f && f->prev && f->call ? (loc){frame_source(f->prev), f->call->at} : interp_loc(it);
    interp_raise(it, diag_recursion_too_deep(&it->pend, at));
    return false;
}

// ---- places of instructions

static uint32_t file_of(interp *it, vmodule *m)
{
    if (!m->file) {
        const source *s = source_of(m);
        m->file = ir_file_add(it->p, m->lm ? m->lm->path : "<nki>", s) + 1;
    }
    return m->file - 1;
}

static frame *visible(frame *f)
{
    while (f && hidden(f)) {
        f = f->prev;
    }
    return f;
}

static uint32_t base_place(interp *it, frame *f);

static uint32_t loop_place(interp *it, frame *f, loop_ctx *l)
{
    if (!l) {
        return base_place(it, f);
    }
    if (l->place == IR_NONE) {
        uint32_t parent = loop_place(it, f, l->prev);
        ir_place p = {.kind = PLACE_ITER,
                      .parent = parent,
                      .lo = (uint32_t)(uint64_t)l->value,
                      .hi = (uint32_t)((uint64_t)l->value >> 32)};
        p.what = ir_str(it->p, l->var->text, l->var->len);
        l->place = ir_place_add(it->p, p);
    }
    return l->place;
}

static uint32_t base_place(interp *it, frame *f)
{
    frame *up = visible(f->prev);
    if (!up || !up->at || f->unit->kind != UNIT_FUNC) {
        return up && up->at ? loop_place(it, up, up->loops) : 0;
    }
    if (f->place == IR_NONE) {
        uint32_t parent = loop_place(it, up, up->loops);
        ir_place p = {
            .kind = PLACE_CALL, .parent = parent, .lo = up->at->at.lo, .hi = up->at->at.hi};
        p.what = ir_str(it->p, f->id->text, f->id->len);
        p.file = file_of(it, up->module);
        f->place = ir_place_add(it->p, p);
    }
    return f->place;
}

uint32_t interp_place(interp *it)
{
    frame *f = visible(it->top);
    if (!f || !f->at) {
        return 0;
    }
    ir_place p = {.kind = PLACE_SITE,
                  .parent = loop_place(it, f, f->loops),
                  .lo = f->at->at.lo,
                  .hi = f->at->at.hi};
    p.file = file_of(it, f->module);
    const ir_place *last = &it->p->places.at[it->p->places.n - 1];
    if (memcmp(last, &p, sizeof p) == 0) {
        return it->p->places.n - 1;
    }
    return ir_place_add(it->p, p);
}

bool interp_warn_first(interp *it, diag_id id)
{
    return check_warn_first(it->em, id, interp_loc(it));
}

void interp_warn_once(interp *it, const char *key, diag *(*make)(diags *, loc, const char *),
                      const char *what)
{
    value k = v_cstr(it, key);
    for (uint32_t i = 0; i < it->warned->n; i++) {
        if (is_same(it->warned->at[i], k)) {
            return;
        }
    }
    list_push(it, it->warned, k);
    make(it->ds, interp_loc(it), what);
}
