// Built-in functions and exceptions.
#include "lower/builtins.h"

#include <math.h>

bool builtin_arity(interp *it, const char *name, const args *a, uint32_t lo, uint32_t hi)
{
    if (a->nkw) {
        type_error(it, "%s() takes no keyword arguments", name);
        return false;
    }
    if (a->n >= lo && a->n <= hi) {
        return true;
    }
    if (lo == hi) {
        type_error(it,
                   lo == 1 ? "%s() takes exactly one argument (%u given)"
                           : "%s expected %u arguments, got %u",
                   name, lo == 1 ? a->n : lo, a->n);
    } else if (a->n < lo) {
        type_error(it, "%s expected at least %u argument%s, got %u", name, lo, lo == 1 ? "" : "s",
                   a->n);
    } else {
        type_error(it, "%s expected at most %u argument%s, got %u", name, hi, hi == 1 ? "" : "s",
                   a->n);
    }
    return false;
}

// ---- output

static value b_print(interp *it, const args *a)
{
    textbuf t;
    text_init(&t, it->mem);
    value sep = VNONE, end = VNONE, file = VNONE;
    for (uint32_t j = 0; j < a->nkw; j++) {
        value v = a->at[a->n + j];
        if (a->kw[j] == N(sep)) {
            sep = v;
        } else if (a->kw[j] == N(end)) {
            end = v;
        } else if (a->kw[j] == N(file)) {
            file = v;
        } else if (a->kw[j] != N(flush)) {
            return type_error(it, "'%s' is an invalid keyword argument for print()",
                              a->kw[j]->text);
        }
    }
    if ((sep.tag != V_NONE && sep.tag != V_STR) || (end.tag != V_NONE && end.tag != V_STR)) {
        bool bad_sep = sep.tag != V_NONE && sep.tag != V_STR;
        return type_error(it, "%s must be None or a string, not %s", bad_sep ? "sep" : "end",
                          type_name(it, bad_sep ? sep : end));
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (i) {
            if (sep.tag == V_STR) {
                text_add(&t, sep.u.str->p, sep.u.str->len);
            } else {
                text_char(&t, ' ');
            }
        }
        if (!str_into(it, a->at[i], &t)) {
            return VERR;
        }
    }
    if (end.tag == V_STR) {
        text_add(&t, end.u.str->p, end.u.str->len);
    } else {
        text_char(&t, '\n');
    }
    if (file.tag == V_OBJ) {
        return call_method(it, file, intern_cstr(it->names, "write"),
                           (value[]){v_str(it, t.at, t.len)}, 1);
    }
    if (it->o->print) {
        it->o->print(it->o->print_ctx, t.at, t.len);
    }
    return VNONE;
}

static value b_breakpoint(interp *it, const args *a)
{
    (void)a;
    interp_warn_once(it, "breakpoint", diag_breakpoint_ignored, "breakpoint");
    return VNONE;
}

// ---- sizes and characters

static value length(interp *it, value v)
{
    switch ((vtag)v.tag) {
    case V_STR: return VINT(v.u.str->chars);
    case V_BYTES: return VINT(v.u.str->len);
    case V_LIST: return VINT(v.u.list->n);
    case V_TUPLE: return VINT(v.u.tuple->n);
    case V_DICT:
    case V_SET: return VINT(v.u.dict->live);
    case V_RANGE: {
        const vrange *r = v.u.range;
        return VINT(r->step > 0
                        ? (r->start < r->stop ? (r->stop - r->start - 1) / r->step + 1 : 0)
                        : (r->start > r->stop ? (r->start - r->stop - 1) / -r->step + 1 : 0));
    }
    case V_CLASS:
        if (v.u.cls->is_enum) {
            return VINT(v.u.cls->enum_members.u.list->n);
        }
        break;
    case V_TENSOR: return VINT(v.u.tensor->ndim ? v.u.tensor->shape[0] : 0);
    case V_OBJ: {
        value r = call_special(it, v, N(__len__), NULL, 0);
        if (r.tag == V_UNDEF && v.u.obj->base.tag != V_UNDEF) {
            return length(it, v.u.obj->base);
        }
        if (r.tag == V_INT && r.u.i < 0) {
            return value_error(it, "__len__() should return >= 0");
        }
        if (r.tag != V_UNDEF) {
            return r;
        }
        break;
    }
    default: break;
    }
    return type_error(it, "object of type '%s' has no len()", type_name(it, v));
}

static value b_len(interp *it, const args *a)
{
    return builtin_arity(it, "len", a, 1, 1) ? length(it, a->at[0]) : VERR;
}

static value b_chr(interp *it, const args *a)
{
    int64_t c;
    if (!builtin_arity(it, "chr", a, 1, 1) || !as_index(it, a->at[0], &c)) {
        return VERR;
    }
    if (c < 0 || c > 0x10ffff) {
        return value_error(it, "chr() arg not in range(0x110000)");
    }
    char b[4];
    size_t n;
    if (c < 0x80) {
        b[0] = (char)c;
        n = 1;
    } else if (c < 0x800) {
        b[0] = (char)(0xC0 | c >> 6);
        b[1] = (char)(0x80 | (c & 63));
        n = 2;
    } else if (c < 0x10000) {
        b[0] = (char)(0xE0 | c >> 12);
        b[1] = (char)(0x80 | (c >> 6 & 63));
        b[2] = (char)(0x80 | (c & 63));
        n = 3;
    } else {
        b[0] = (char)(0xF0 | c >> 18);
        b[1] = (char)(0x80 | (c >> 12 & 63));
        b[2] = (char)(0x80 | (c >> 6 & 63));
        b[3] = (char)(0x80 | (c & 63));
        n = 4;
    }
    return v_str(it, b, n);
}

static value b_ord(interp *it, const args *a)
{
    if (!builtin_arity(it, "ord", a, 1, 1)) {
        return VERR;
    }
    if (a->at[0].tag != V_STR) {
        return type_error(it, "ord() expected string of length 1, but %s found",
                          type_name(it, a->at[0]));
    }
    const vstr *s = a->at[0].u.str;
    if (s->chars != 1) {
        return type_error(it, "ord() expected a character, but string of length %u found",
                          s->chars);
    }
    const unsigned char *p = (const unsigned char *)s->p;
    int64_t c = p[0];
    if (s->len == 2) {
        c = (p[0] & 31) << 6 | (p[1] & 63);
    } else if (s->len == 3) {
        c = (p[0] & 15) << 12 | (p[1] & 63) << 6 | (p[2] & 63);
    } else if (s->len == 4) {
        c = (p[0] & 7) << 18 | (p[1] & 63) << 12 | (p[2] & 63) << 6 | (p[3] & 63);
    }
    return VINT(c);
}

// ---- iteration

static value b_any_all(interp *it, const args *a, bool any)
{
    viter s;
    value x;
    if (!builtin_arity(it, any ? "any" : "all", a, 1, 1) || !iter_init(it, &s, a->at[0])) {
        return VERR;
    }
    int r;
    while ((r = iter_next(it, &s, &x)) == 1) {
        int t = truth(it, x);
        if (t < 0 || !interp_step(it)) {
            return VERR;
        }
        if (t == any) {
            return VBOOL(any);
        }
    }
    return r < 0 ? VERR : VBOOL(!any);
}

static value b_any(interp *it, const args *a)
{
    return b_any_all(it, a, true);
}

static value b_all(interp *it, const args *a)
{
    return b_any_all(it, a, false);
}

static value b_sorted(interp *it, const args *a)
{
    value key = VNONE, rev = VBOOL(false);
    for (uint32_t j = 0; j < a->nkw; j++) {
        if (a->kw[j] == N(key)) {
            key = a->at[a->n + j];
        } else if (a->kw[j] == N(reverse)) {
            rev = a->at[a->n + j];
        } else {
            return type_error(it, "sort() got an unexpected keyword argument '%s'", a->kw[j]->text);
        }
    }
    if (a->n != 1) {
        return type_error(it, "sorted expected 1 argument, got %u", a->n);
    }
    value l = list_from(it, a->at[0]);
    int r = truth(it, rev);
    return IS_ERR(l) || r < 0 || IS_ERR(sort_list(it, l.u.list, key, r)) ? VERR : l;
}

static value b_iter(interp *it, const args *a)
{
    return builtin_arity(it, "iter", a, 1, 1) ? iter_new(it, a->at[0]) : VERR;
}

static value b_next(interp *it, const args *a)
{
    if (!builtin_arity(it, "next", a, 1, 2)) {
        return VERR;
    }
    value v = a->at[0], out;
    int r;
    if (v.tag == V_ITER) {
        r = iter_next(it, v.u.iter, &out);
    } else {
        out = call_special(it, v, N(__next__), NULL, 0);
        if (out.tag == V_UNDEF) {
            return type_error(it, "'%s' object is not an iterator", type_name(it, v));
        }
        r = IS_ERR(out) ? -1 : 1;
        if (r < 0 && a->n == 2 && it->exc.tag == V_OBJ &&
            class_is(it->exc.u.obj->cls, exc_class(it, "StopIteration"))) {
            it->exc = VUNDEF;
            return a->at[1];
        }
    }
    if (r == 0) {
        value ret = iter_result(v.u.iter);
        return a->n == 2 ? a->at[1]
                         : raise_obj(it, exc_new(it, exc_class(it, "StopIteration"),
                                                 ret.tag == V_NONE ? VUNDEF : ret));
    }
    return r < 0 ? VERR : out;
}

// ---- objects

static value b_isinstance(interp *it, const args *a)
{
    bool r;
    return builtin_arity(it, "isinstance", a, 2, 2) && is_instance(it, a->at[0], a->at[1], &r)
               ? VBOOL(r)
               : VERR;
}

static value b_issubclass(interp *it, const args *a)
{
    bool r;
    return builtin_arity(it, "issubclass", a, 2, 2) && is_subclass(it, a->at[0], a->at[1], &r)
               ? VBOOL(r)
               : VERR;
}

static bool attr_name(interp *it, const char *fn, const args *a, sym *out)
{
    if (a->at[1].tag != V_STR) {
        type_error(it, "%s(): attribute name must be string", fn);
        return false;
    }
    *out = str_sym(it, a->at[1]);
    return true;
}

static bool is_attribute_error(interp *it)
{
    return it->exc.tag == V_OBJ && class_is(it->exc.u.obj->cls, exc_class(it, "AttributeError"));
}

static value b_getattr(interp *it, const args *a)
{
    sym id;
    if (!builtin_arity(it, "getattr", a, 2, 3) || !attr_name(it, "getattr", a, &id)) {
        return VERR;
    }
    value v = find_attr(it, a->at[0], id);
    if (IS_ERR(v) && a->n == 3 && is_attribute_error(it)) {
        it->exc = VUNDEF;
        return a->at[2];
    }
    if (v.tag != V_UNDEF) {
        return v;
    }
    return a->n == 3 ? a->at[2] : get_attr(it, a->at[0], id);
}

static value b_hasattr(interp *it, const args *a)
{
    sym id;
    if (!builtin_arity(it, "hasattr", a, 2, 2) || !attr_name(it, "hasattr", a, &id)) {
        return VERR;
    }
    value v = find_attr(it, a->at[0], id);
    if (IS_ERR(v)) {
        if (!is_attribute_error(it)) {
            return v;
        }
        it->exc = VUNDEF;
        return VBOOL(false);
    }
    return VBOOL(v.tag != V_UNDEF);
}

static value b_setattr(interp *it, const args *a)
{
    sym id;
    return builtin_arity(it, "setattr", a, 3, 3) && attr_name(it, "setattr", a, &id) &&
                   set_attr(it, a->at[0], id, a->at[2])
               ? VNONE
               : VERR;
}

static value b_delattr(interp *it, const args *a)
{
    sym id;
    return builtin_arity(it, "delattr", a, 2, 2) && attr_name(it, "delattr", a, &id) &&
                   del_attr(it, a->at[0], id)
               ? VNONE
               : VERR;
}

static value b_callable(interp *it, const args *a)
{
    if (!builtin_arity(it, "callable", a, 1, 1)) {
        return VERR;
    }
    switch ((vtag)a->at[0].tag) {
    case V_FUNC:
    case V_METHOD:
    case V_NATIVE:
    case V_CLASS:
    case V_TYPE:
    case V_ISA:
    case V_BUILTIN_METHOD: return VBOOL(true);
    case V_OBJ: return VBOOL(class_lookup(a->at[0].u.obj->cls, N(__call__)).tag != V_UNDEF);
    default: return VBOOL(false);
    }
}

static value b_repr(interp *it, const args *a)
{
    return builtin_arity(it, "repr", a, 1, 1) ? v_repr(it, a->at[0]) : VERR;
}

static value b_hash(interp *it, const args *a)
{
    uint32_t h;
    if (!builtin_arity(it, "hash", a, 1, 1)) {
        return VERR;
    }
    if (a->at[0].tag == V_INT || a->at[0].tag == V_BOOL) {
        int64_t i = as_int(a->at[0]), m = (int64_t)0x1fffffffffffffff;
        int64_t r = i % m;
        return VINT(r == -1 ? -2 : r);
    }
    if (a->at[0].tag == V_FLOAT && floor(a->at[0].u.d) == a->at[0].u.d &&
        fabs(a->at[0].u.d) < 9e18) {
        return b_hash(it, &(args){(value[]){VINT((int64_t)a->at[0].u.d)}, 1, 0, NULL});
    }
    if (a->at[0].tag == V_OBJ) {
        value r = call_special(it, a->at[0], N(__hash__), NULL, 0);
        if (r.tag == V_INT || IS_ERR(r)) {
            return r;
        }
    }
    return hash_value(it, a->at[0], &h) ? VINT(h) : VERR;
}

static value b_ascii(interp *it, const args *a)
{
    return builtin_arity(it, "ascii", a, 1, 1) ? v_ascii(it, a->at[0]) : VERR;
}

static value b_id(interp *it, const args *a)
{
    return builtin_arity(it, "id", a, 1, 1) ? VINT((int64_t)((uintptr_t)a->at[0].u.p >> 4)) : VERR;
}

static value b_format(interp *it, const args *a)
{
    if (!builtin_arity(it, "format", a, 1, 2)) {
        return VERR;
    }
    return format_value(it, a->at[0], a->n == 2 ? a->at[1] : v_str(it, "", 0));
}

static value b_vars(interp *it, const args *a)
{
    return builtin_arity(it, "vars", a, 1, 1) ? get_attr(it, a->at[0], N(__dict__)) : VERR;
}

static value b_dir(interp *it, const args *a)
{
    if (!builtin_arity(it, "dir", a, 1, 1)) {
        return VERR;
    }
    value l = v_list(it, NULL, 0), v = a->at[0];
    const attrs *own = v.tag == V_OBJ      ? &v.u.obj->attrs
                       : v.tag == V_MODULE ? &v.u.module->attrs
                                           : NULL;
    for (uint32_t i = 0; own && i < own->n; i++) {
        list_push(it, l.u.list, v_sym(it, own->at[i].id));
    }
    const vclass *c = v.tag == V_CLASS ? v.u.cls : class_of(v);
    for (uint32_t k = 0; c && k < c->nmro; k++) {
        for (uint32_t i = 0; i < c->mro[k]->attrs.n; i++) {
            list_push(it, l.u.list, v_sym(it, c->mro[k]->attrs.at[i].id));
        }
    }
    return IS_ERR(sort_list(it, l.u.list, VNONE, false)) ? VERR : l;
}

static value b_globals(interp *it, const args *a)
{
    (void)a;
    value d = v_dict(it);
    const frame *f = it->top;
    for (uint32_t i = 0; i < f->module->attrs.n; i++) {
        dict_set(it, d.u.dict, v_sym(it, f->module->attrs.at[i].id), f->module->attrs.at[i].val);
    }
    return d;
}

static value b_locals(interp *it, const args *a)
{
    (void)a;
    value d = v_dict(it);
    const frame *f = it->top;
    for (uint32_t i = 0; i < f->unit->nlocals; i++) {
        if (f->locals[i].tag != V_UNDEF) {
            dict_set(it, d.u.dict, v_sym(it, f->unit->slot_name[i]), f->locals[i]);
        }
    }
    return d;
}

static value b_import(interp *it, const args *a)
{
    if (a->n < 1 || a->at[0].tag != V_STR) {
        return type_error(it, "__import__() takes a module name");
    }
    value m = import_module(it, it->top->module, 0, str_sym(it, a->at[0]), false);
    return m.tag == V_UNDEF
               ? raise_msg(it, "ModuleNotFoundError", "No module named '%s'", a->at[0].u.str->p)
               : m;
}

static value b_refuse(interp *it, const args *a)
{
    (void)a;
    return raise_msg(it, "NotImplementedError",
                     "input(), open(), exec() and eval() are not available in kernels");
}

// ---- exceptions

static const struct {
    const char *name, *base;
} exceptions[] = {
    {"BaseException", NULL},
    {"_Stop", "BaseException"},
    {"Exception", "BaseException"},
    {"GeneratorExit", "BaseException"},
    {"KeyboardInterrupt", "BaseException"},
    {"SystemExit", "BaseException"},
    {"ArithmeticError", "Exception"},
    {"ZeroDivisionError", "ArithmeticError"},
    {"OverflowError", "ArithmeticError"},
    {"FloatingPointError", "ArithmeticError"},
    {"AssertionError", "Exception"},
    {"AttributeError", "Exception"},
    {"FrozenInstanceError", "AttributeError"},
    {"BufferError", "Exception"},
    {"EOFError", "Exception"},
    {"ImportError", "Exception"},
    {"ModuleNotFoundError", "ImportError"},
    {"LookupError", "Exception"},
    {"IndexError", "LookupError"},
    {"KeyError", "LookupError"},
    {"MemoryError", "Exception"},
    {"NameError", "Exception"},
    {"UnboundLocalError", "NameError"},
    {"OSError", "Exception"},
    {"FileNotFoundError", "OSError"},
    {"PermissionError", "OSError"},
    {"TimeoutError", "OSError"},
    {"RuntimeError", "Exception"},
    {"NotImplementedError", "RuntimeError"},
    {"RecursionError", "RuntimeError"},
    {"StopIteration", "Exception"},
    {"StopAsyncIteration", "Exception"},
    {"SyntaxError", "Exception"},
    {"IndentationError", "SyntaxError"},
    {"SystemError", "Exception"},
    {"TypeError", "Exception"},
    {"ValueError", "Exception"},
    {"UnicodeError", "ValueError"},
    {"UnicodeDecodeError", "UnicodeError"},
    {"UnicodeEncodeError", "UnicodeError"},
    {"NkiValidationError", "Exception"},
    {"Warning", "Exception"},
    {"UserWarning", "Warning"},
    {"DeprecationWarning", "Warning"},
    {"RuntimeWarning", "Warning"},
    {"FutureWarning", "Warning"},
};

void builtins_init(interp *it)
{
    static const struct {
        const char *name;
        native_fn fn;
    } fns[] = {
        {"print", b_print},
        {"breakpoint", b_breakpoint},
        {"len", b_len},
        {"chr", b_chr},
        {"ord", b_ord},
        {"any", b_any},
        {"all", b_all},
        {"sorted", b_sorted},
        {"iter", b_iter},
        {"next", b_next},
        {"isinstance", b_isinstance},
        {"issubclass", b_issubclass},
        {"getattr", b_getattr},
        {"hasattr", b_hasattr},
        {"setattr", b_setattr},
        {"delattr", b_delattr},
        {"callable", b_callable},
        {"repr", b_repr},
        {"ascii", b_ascii},
        {"hash", b_hash},
        {"id", b_id},
        {"format", b_format},
        {"vars", b_vars},
        {"dir", b_dir},
        {"globals", b_globals},
        {"locals", b_locals},
        {"__import__", b_import},
        {"input", b_refuse},
        {"open", b_refuse},
        {"exec", b_refuse},
        {"eval", b_refuse},
    };
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) {
        attrs_set(it, &it->builtins, intern_cstr(it->names, fns[i].name),
                  v_native(it, fns[i].name, fns[i].fn));
    }
    builtins_number_init(it);
    static const vtype public_types[] = {
        T_OBJECT,      T_INT,   T_FLOAT,     T_BOOL,  T_STR,   T_BYTES,  T_LIST,     T_TUPLE,
        T_DICT,        T_SET,   T_FROZENSET, T_RANGE, T_SLICE, T_TYPE,   T_PROPERTY, T_STATICMETHOD,
        T_CLASSMETHOD, T_SUPER, T_ENUMERATE, T_ZIP,   T_MAP,   T_FILTER, T_REVERSED, T_COMPLEX,
    };
    for (size_t i = 0; i < sizeof public_types / sizeof *public_types; i++) {
        attrs_set(it, &it->builtins, intern_cstr(it->names, vtype_name(public_types[i])),
                  VID(V_TYPE, public_types[i]));
    }
    attrs_set(it, &it->builtins, intern_cstr(it->names, "Ellipsis"), VTAG(V_ELLIPSIS));
    attrs_set(it, &it->builtins, intern_cstr(it->names, "NotImplemented"), VTAG(V_NOTIMPLEMENTED));
    attrs_set(it, &it->builtins, N(__debug__), VBOOL(true));
    attrs_set(it, &it->builtins, intern_cstr(it->names, "__builtins__"), VNONE);
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        vclass **bases = NEW_N(it->mem, vclass *, 1);
        uint32_t n = 0;
        if (exceptions[i].base) {
            value b = attrs_get(&it->builtins, intern_cstr(it->names, exceptions[i].base));
            bases[n++] = b.u.cls;
        }
        vclass *c = class_new(it, intern_cstr(it->names, exceptions[i].name), bases, n, NULL);
        c->is_exception = true;
        if (i == 0) {
            it->exc_base = c;
        }
        attrs_set(it, &it->builtins, c->id, (value){.tag = V_CLASS, .u.cls = c});
    }
    value os = attrs_get(&it->builtins, intern_cstr(it->names, "OSError"));
    attrs_set(it, &it->builtins, intern_cstr(it->names, "IOError"), os);
    attrs_set(it, &it->builtins, intern_cstr(it->names, "EnvironmentError"), os);
}
