// Built-in types as values: int(), float(), str(), dict() ..., and their attributes.
#include "lower/builtins.h"

#include <math.h>
#include <string.h>

static const char *const type_names[T_COUNT] = {
    [T_OBJECT] = "object",
    [T_INT] = "int",
    [T_FLOAT] = "float",
    [T_BOOL] = "bool",
    [T_STR] = "str",
    [T_BYTES] = "bytes",
    [T_LIST] = "list",
    [T_TUPLE] = "tuple",
    [T_DICT] = "dict",
    [T_SET] = "set",
    [T_FROZENSET] = "frozenset",
    [T_RANGE] = "range",
    [T_SLICE] = "slice",
    [T_TYPE] = "type",
    [T_FUNCTION] = "function",
    [T_NONETYPE] = "NoneType",
    [T_TENSOR] = "NkiTensor",
    [T_REGISTER] = "VirtualRegister",
    [T_INSTR] = "NkiInstruction",
    [T_DTYPE] = "DType",
    [T_REGION] = "MemoryRegion",
    [T_MODULE] = "module",
    [T_PROPERTY] = "property",
    [T_STATICMETHOD] = "staticmethod",
    [T_CLASSMETHOD] = "classmethod",
    [T_SUPER] = "super",
    [T_ENUMERATE] = "enumerate",
    [T_ZIP] = "zip",
    [T_MAP] = "map",
    [T_FILTER] = "filter",
    [T_REVERSED] = "reversed",
    [T_ELLIPSIS] = "ellipsis",
    [T_METHOD] = "method",
    [T_GENERATOR] = "generator",
    [T_COMPLEX] = "complex",
    [T_BUILTIN] = "builtin_function_or_method",
};

const char *vtype_name(vtype t)
{
    return type_names[t];
}

// ---- types as functions

static value parse_int(interp *it, const vstr *s, int base)
{
    const char *p = s->p, *end = p + s->len;
    while (p < end && strchr(" \t\n\r\f\v", *p)) {
        p++;
    }
    while (end > p && strchr(" \t\n\r\f\v", end[-1])) {
        end--;
    }
    bool neg = false;
    if (p < end && (*p == '+' || *p == '-')) {
        neg = *p++ == '-';
    }
    if (end - p > 2 && p[0] == '0' && (base == 0 || base == 16 || base == 8 || base == 2)) {
        char c = p[1] | 32;
        int b = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (b && (base == 0 || base == b)) {
            base = b;
            p += 2;
            if (p < end && *p == '_') {
                p++;
            }
        }
    }
    base = base == 0 ? 10 : base;
    uint64_t v = 0;
    bool ok = p < end, over = false, last_us = false, any = false;
    for (; p < end && ok; p++) {
        if (*p == '_') {
            ok = !last_us && any && p + 1 < end;
            last_us = true;
            continue;
        }
        last_us = false;
        any = true;
        int d = *p >= '0' && *p <= '9'   ? *p - '0'
                : *p >= 'a' && *p <= 'z' ? *p - 'a' + 10
                : *p >= 'A' && *p <= 'Z' ? *p - 'A' + 10
                                         : 99;
        ok = d < base;
        over |= v > (UINT64_MAX - (uint64_t)d) / (uint64_t)base;
        v = v * (uint64_t)base + (uint64_t)d;
    }
    if (!ok || last_us) {
        value r = v_repr(it, (value){.tag = V_STR, .u.str = (vstr *)(uintptr_t)s});
        return value_error(it, "invalid literal for int() with base %d: %s", base, r.u.str->p);
    }
    if (over || v > (neg ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX)) {
        return raise_msg(it, "OverflowError", "integer %s does not fit in 64 bits", s->p);
    }
    return VINT(neg ? (int64_t)(0 - v) : (int64_t)v);
}

static value make_int(interp *it, const args *a)
{
    if (a->n == 0) {
        return VINT(0);
    }
    value v = a->at[0];
    value basev = a->n > 1 ? a->at[1] : a->nkw == 1 ? a->at[a->n] : VUNDEF;
    if (basev.tag != V_UNDEF) {
        int64_t base;
        if (!as_index(it, basev, &base)) {
            return VERR;
        }
        basev = VINT(base);
        if (v.tag != V_STR) {
            return type_error(it, "int() can't convert non-string with explicit base");
        }
        if (basev.u.i != 0 && (basev.u.i < 2 || basev.u.i > 36)) {
            return value_error(it, "int() base must be >= 2 and <= 36, or 0");
        }
        return parse_int(it, v.u.str, (int)basev.u.i);
    }
    switch ((vtag)v.tag) {
    case V_INT: return v;
    case V_BOOL: return VINT(v.u.b);
    case V_FLOAT: return builtin_float_to_int(it, trunc(v.u.d), "int()");
    case V_STR: return parse_int(it, v.u.str, 10);
    case V_OBJ: {
        value r = call_special(it, v, N(__int__), NULL, 0);
        if (r.tag == V_UNDEF) {
            r = call_special(it, v, N(__index__), NULL, 0);
        }
        if (r.tag != V_UNDEF) {
            return r;
        }
        if (v.u.obj->base.tag == V_INT || v.u.obj->base.tag == V_STR) {
            args b = {&v.u.obj->base, 1, 0, NULL};
            return make_int(it, &b);
        }
        break;
    }
    case V_REG:
        return type_error(it,
                          "int() of a register: it has no value while the kernel is specialized");
    case V_TENSOR:
        return no_elements(it, "int() of a tensor",
                           "nisa.register_load reads one into a register on the device");
    default: break;
    }
    return type_error(
        it, "int() argument must be a string, a bytes-like object or a real number, not '%s'",
        type_name(it, v));
}

// NaNs made at two places are two objects: `is` tells them apart by the low bits of their payload.
static value fresh_nan(interp *it)
{
    uint64_t bits = 0x7ff8000000000000u | (++it->nans & 0xffffff);
    double d;
    memcpy(&d, &bits, sizeof d);
    return VFLT(d);
}

static value make_float(interp *it, const args *a)
{
    if (a->n == 0) {
        return VFLT(0);
    }
    value v = a->at[0];
    if (is_num(v)) {
        return VFLT(as_double(v));
    }
    if (v.tag == V_STR) {
        const char *p = v.u.str->p, *end = p + v.u.str->len;
        while (p < end && strchr(" \t\n\r\f\v", *p)) {
            p++;
        }
        while (end > p && strchr(" \t\n\r\f\v", end[-1])) {
            end--;
        }
        char buf[64];
        size_t n = 0;
        bool us = false;
        for (const char *q = p; q < end && n < sizeof buf - 1; q++) {
            us |= *q == '_';
            if (*q != '_') {
                buf[n++] = *q;
            }
        }
        double d;
        bool hex = memchr(p, 'x', (size_t)(end - p)) || memchr(p, 'X', (size_t)(end - p));
        if (end > p && !hex &&
            ((us && text_to_double(buf, n, &d)) ||
             (!us && text_to_double(p, (size_t)(end - p), &d)))) {
            return isnan(d) ? fresh_nan(it) : VFLT(d);
        }
        value r = v_repr(it, v);
        return value_error(it, "could not convert string to float: %s", r.u.str->p);
    }
    value r = call_special(it, v, N(__float__), NULL, 0);
    if (r.tag != V_UNDEF) {
        return r;
    }
    if (v.tag == V_OBJ && is_num(v.u.obj->base)) {
        return VFLT(as_double(v.u.obj->base));
    }
    if (v.tag == V_TENSOR) {
        return no_elements(it, "float() of a tensor",
                           "a (P, 1) tensor is the operand of an instruction as it is");
    }
    return type_error(it, "float() argument must be a string or a real number, not '%s'",
                      type_name(it, v));
}

static bool fill_dict(interp *it, vdict *d, value src)
{
    value m = src.tag == V_OBJ && src.u.obj->base.tag == V_DICT ? src.u.obj->base : src;
    if (m.tag == V_DICT) {
        for (uint32_t i = 0; i < m.u.dict->n; i++) {
            if (m.u.dict->at[i].key.tag != V_UNDEF &&
                !dict_set(it, d, m.u.dict->at[i].key, m.u.dict->at[i].val)) {
                return false;
            }
        }
        return true;
    }
    viter s;
    value x;
    if (!iter_init(it, &s, src)) {
        return false;
    }
    int r;
    uint32_t k = 0;
    while ((r = iter_next(it, &s, &x)) == 1) {
        uint32_t n;
        value *at = items_of(it, x, &n);
        if (!at) {
            it->exc = VUNDEF;
            type_error(it, "cannot convert dictionary update sequence element #%u to a sequence",
                       k);
            return false;
        }
        if (n != 2) {
            value_error(it, "dictionary update sequence element #%u has length %u; 2 is required",
                        k, n);
            return false;
        }
        if (!dict_set(it, d, at[0], at[1])) {
            return false;
        }
        k++;
    }
    return r == 0;
}

static value make_dict(interp *it, const args *a)
{
    value d = v_dict(it);
    if (a->n > 1) {
        return type_error(it, "dict expected at most 1 argument, got %u", a->n);
    }
    if (a->n == 1 && !fill_dict(it, d.u.dict, a->at[0])) {
        return VERR;
    }
    for (uint32_t j = 0; j < a->nkw; j++) {
        dict_set(it, d.u.dict, v_sym(it, a->kw[j]), a->at[a->n + j]);
    }
    return d;
}

static value make_set(interp *it, const args *a, bool frozen)
{
    value s = v_set(it), x;
    viter i;
    if (a->n == 1) {
        if (!iter_init(it, &i, a->at[0])) {
            return VERR;
        }
        int r;
        while ((r = iter_next(it, &i, &x)) == 1) {
            if (!dict_set(it, s.u.dict, x, VNONE) || !interp_step(it)) {
                return VERR;
            }
        }
        if (r < 0) {
            return VERR;
        }
    }
    if (frozen) {
        s.u.dict->dflt = VTAG(V_ELLIPSIS);
    }
    return s;
}

static value make_range(interp *it, const args *a)
{
    int64_t p[3] = {0, 0, 1};
    if (a->n < 1 || a->n > 3 || a->nkw) {
        return type_error(it, "range expected %s argument%s, got %u",
                          a->n < 1 ? "at least 1" : "at most 3", a->n < 1 ? "" : "s", a->n);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].tag == V_REG) {
            return type_error(
                it,
                "range() needs numbers known while the kernel is specialized, not a register; use "
                "nl.dynamic_range or nl.fori_loop");
        }
        if (!as_index(it, a->at[i], &p[a->n == 1 ? 1 : i])) {
            return VERR;
        }
    }
    if (p[2] == 0) {
        return value_error(it, "range() arg 3 must not be zero");
    }
    vrange *r = NEW(it->mem, vrange);
    *r = (vrange){p[0], p[1], p[2]};
    return VPTR(V_RANGE, r);
}

static value make_slice(interp *it, const args *a)
{
    if (a->n < 1 || a->n > 3) {
        return type_error(it, "slice expected 1 to 3 arguments, got %u", a->n);
    }
    vslice *s = NEW(it->mem, vslice);
    *s = a->n == 1 ? (vslice){VNONE, a->at[0], VNONE}
                   : (vslice){a->at[0], a->at[1], a->n == 3 ? a->at[2] : VNONE};
    return VPTR(V_SLICE, s);
}

static value make_type(interp *it, const args *a)
{
    if (a->n == 3 && a->at[0].tag == V_STR) {
        uint32_t n;
        value *bases = items_of(it, a->at[1], &n);
        if (!bases) {
            return VERR;
        }
        vclass **b = NEW_N(it->mem, vclass *, n + 1);
        uint32_t k = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (bases[i].tag == V_CLASS) {
                b[k++] = bases[i].u.cls;
            }
        }
        vclass *c = class_new(it, str_sym(it, a->at[0]), b, k, it->top->module);
        if (!c) {
            return VERR;
        }
        for (uint32_t i = 0; a->at[2].tag == V_DICT && i < a->at[2].u.dict->n; i++) {
            const dict_entry *e = &a->at[2].u.dict->at[i];
            if (e->key.tag == V_STR) {
                attrs_set(it, &c->attrs, str_sym(it, e->key), e->val);
            }
        }
        return class_finish(it, c) ? (value){.tag = V_CLASS, .u.cls = c} : VERR;
    }
    if (a->n != 1) {
        return type_error(it, "type() takes 1 or 3 arguments");
    }
    vclass *c = class_of(a->at[0]);
    return c ? (value){.tag = V_CLASS, .u.cls = c} : VID(V_TYPE, type_of(a->at[0]));
}

static value make_descr(interp *it, const args *a, descr_kind k)
{
    vdescr *d = NEW(it->mem, vdescr);
    d->kind = k;
    value p[4] = {VUNDEF, VUNDEF, VUNDEF, VUNDEF};
    static const char *const params[] = {"fget", "fset", "fdel", "doc"};
    if (!bind_native(it, "property", a, params, 4, 1, p)) {
        return VERR;
    }
    d->get = p[0];
    d->set = p[1].tag == V_NONE ? VUNDEF : p[1];
    d->del = p[2].tag == V_NONE ? VUNDEF : p[2];
    return VPTR(V_DESCR, d);
}

static value make_super(interp *it, const args *a)
{
    vsuper *s = NEW(it->mem, vsuper);
    if (a->n == 2 && a->at[0].tag == V_CLASS) {
        *s = (vsuper){a->at[0].u.cls, a->at[1]};
        return VPTR(V_SUPER, s);
    }
    const frame *f = it->top;
    if (!f->cls || !f->unit || f->unit->nparams == 0) {
        return raise_msg(it, "RuntimeError", "super(): no arguments");
    }
    // self may have become a cell.
    value self = f->locals[f->unit->param_slot[0]];
    for (uint32_t i = 0; i < f->unit->nown; i++) {
        if (f->unit->own_slot[i] == f->unit->param_slot[0]) {
            self = f->cells[i]->v;
        }
    }
    *s = (vsuper){f->cls, self};
    return VPTR(V_SUPER, s);
}

static value make_bool(interp *it, const args *a)
{
    if (a->n == 0) {
        return VBOOL(false);
    }
    int t = truth(it, a->at[0]);
    return t < 0 ? VERR : VBOOL(t);
}

static value make_str(interp *it, const args *a)
{
    if (a->n == 0) {
        return v_str(it, "", 0);
    }
    if (a->at[0].tag == V_BYTES && a->n > 1) {
        value s = a->at[0];
        s.tag = V_STR;
        return v_str(it, s.u.str->p, s.u.str->len);
    }
    return v_strof(it, a->at[0]);
}

static value make_bytes(interp *it, const args *a)
{
    textbuf t;
    text_init(&t, it->mem);
    if (a->n && a->at[0].tag == V_STR) {
        text_add(&t, a->at[0].u.str->p, a->at[0].u.str->len);
    } else if (a->n && a->at[0].tag == V_INT) {
        if (a->at[0].u.i < 0) {
            return value_error(it, "negative count");
        }
        if (a->at[0].u.i > MAX_TEXT_BYTES) {
            return raise_msg(it, "MemoryError", "%lld bytes are too many", (long long)a->at[0].u.i);
        }
        size_t zeros = (size_t)a->at[0].u.i;
        value z = v_str(it, NEW_N(it->mem, char, zeros + 1), zeros);
        z.tag = V_BYTES;
        return z;
    } else if (a->n) {
        uint32_t n;
        value *at = items_of(it, a->at[0], &n);
        if (!at) {
            return VERR;
        }
        for (uint32_t i = 0; i < n; i++) {
            int64_t b;
            if (!as_index(it, at[i], &b)) {
                return VERR;
            }
            if (b < 0 || b > 255) {
                return value_error(it, "bytes must be in range(0, 256)");
            }
            text_char(&t, (char)b);
        }
    }
    value v = v_str(it, t.at, t.len);
    v.tag = V_BYTES;
    return v;
}

value type_call(interp *it, vtype t, const args *a)
{
    switch (t) {
    case T_INT: return make_int(it, a);
    case T_FLOAT: return make_float(it, a);
    case T_BOOL: return make_bool(it, a);
    case T_STR: return make_str(it, a);
    case T_BYTES: return make_bytes(it, a);
    case T_LIST: return a->n ? list_from(it, a->at[0]) : v_list(it, NULL, 0);
    case T_TUPLE: {
        if (a->n == 0) {
            return v_tuple(it, NULL, 0);
        }
        if (a->at[0].tag == V_TUPLE && !a->at[0].u.tuple->cls) {
            return a->at[0];
        }
        value l = list_from(it, a->at[0]);
        return IS_ERR(l) ? l : v_tuple(it, l.u.list->at, l.u.list->n);
    }
    case T_DICT: return make_dict(it, a);
    case T_SET: return make_set(it, a, false);
    case T_FROZENSET: return make_set(it, a, true);
    case T_RANGE: return make_range(it, a);
    case T_SLICE: return make_slice(it, a);
    case T_TYPE: return make_type(it, a);
    case T_PROPERTY: return make_descr(it, a, DESCR_PROPERTY);
    case T_STATICMETHOD: return make_descr(it, a, DESCR_STATIC);
    case T_CLASSMETHOD: return make_descr(it, a, DESCR_CLASS);
    case T_SUPER: return make_super(it, a);
    case T_ENUMERATE: {
        static const char *const params[] = {"iterable", "start"};
        value p[2];
        if (!bind_native(it, "enumerate", a, params, 2, 1, p)) {
            return VERR;
        }
        return iter_enumerate(it, p[0], p[1].tag == V_INT ? p[1].u.i : 0);
    }
    case T_ZIP: {
        bool strict = a->nkw == 1 && a->kw[0] == N(strict) && truth(it, a->at[a->n]) == 1;
        return iter_zip(it, a->at, a->n, strict);
    }
    case T_MAP:
        return a->n < 2 ? type_error(it, "map() must have at least two arguments.")
                        : iter_map(it, a->at[0], a->at + 1, a->n - 1);
    case T_FILTER:
        return a->n != 2 ? type_error(it, "filter expected 2 arguments, got %u", a->n)
                         : iter_filter(it, a->at[0], a->at[1]);
    case T_REVERSED:
        return a->n != 1 ? type_error(it, "reversed expected 1 argument, got %u", a->n)
                         : iter_reversed(it, a->at[0]);
    case T_COMPLEX: {
        static const char *const params[] = {"real", "imag"};
        value p[2];
        if (!bind_native(it, "complex", a, params, 2, 0, p)) {
            return VERR;
        }
        vobj *o = NEW(it->mem, vobj);
        o->cls = class_new(it, intern_cstr(it->names, "complex"), NULL, 0, NULL);
        o->base = VUNDEF;
        for (int i = 0; i < 2; i++) {
            value x = p[i].tag == V_UNDEF ? VFLT(0) : make_float(it, &(args){&p[i], 1, 0, NULL});
            if (IS_ERR(x)) {
                return x;
            }
            attrs_set(it, &o->attrs, i ? N(imag) : N(real), x);
        }
        return (value){.tag = V_OBJ, .u.obj = o};
    }
    case T_OBJECT: {
        vobj *o = NEW(it->mem, vobj);
        o->cls = class_new(it, intern_cstr(it->names, "object"), NULL, 0, NULL);
        o->base = VUNDEF;
        return (value){.tag = V_OBJ, .u.obj = o};
    }
    default: return type_error(it, "cannot create '%s' instances", vtype_name(t));
    }
}

static value dict_fromkeys(interp *it, const args *a)
{
    uint32_t n;
    value *at = a->n ? items_of(it, a->at[0], &n) : NULL;
    if (!at) {
        return a->n ? VERR : type_error(it, "fromkeys expected at least 1 argument, got 0");
    }
    value d = v_dict(it);
    for (uint32_t i = 0; i < n; i++) {
        if (!dict_set(it, d.u.dict, at[i], a->n > 1 ? a->at[1] : VNONE)) {
            return VERR;
        }
    }
    return d;
}

// str.upper(s): the method of the first argument.
static value unbound(interp *it, const args *a)
{
    value id = it->native_self;
    if (a->n == 0) {
        return type_error(it, "unbound method %s() needs an argument", id.u.str->p);
    }
    // Of a subclass's instance it is the built-in type's own method that is meant.
    bool sub = a->at[0].tag == V_OBJ && a->at[0].u.obj->base.tag != V_UNDEF;
    value f =
        sub ? find_method(it, a->at[0], str_sym(it, id)) : find_attr(it, a->at[0], str_sym(it, id));
    if (f.tag == V_UNDEF) {
        return type_error(it, "descriptor '%s' doesn't apply to a '%s' object", id.u.str->p,
                          type_name(it, a->at[0]));
    }
    args b = {a->at + 1, a->n - 1, a->nkw, a->kw};
    return IS_ERR(f) ? f : call(it, f, &b);
}

static value object_new(interp *it, const args *a)
{
    if (a->n < 1 || a->at[0].tag != V_CLASS) {
        return type_error(it, "object.__new__(X): X is not a type object");
    }
    vobj *o = NEW(it->mem, vobj);
    o->cls = a->at[0].u.cls;
    o->base = VUNDEF;
    return (value){.tag = V_OBJ, .u.obj = o};
}

static value object_setattr(interp *it, const args *a)
{
    if (a->n != 3 || a->at[0].tag != V_OBJ || a->at[1].tag != V_STR) {
        return type_error(it, "object.__setattr__() takes an object, a name and a value");
    }
    attrs_set(it, &a->at[0].u.obj->attrs, str_sym(it, a->at[1]), a->at[2]);
    return VNONE;
}

value type_attr(interp *it, vtype t, sym id)
{
    if (t == T_DICT && strcmp(id->text, "fromkeys") == 0) {
        return v_native(it, "fromkeys", dict_fromkeys);
    }
    if (id == N(__new__)) {
        return v_native(it, "__new__", object_new);
    }
    if (t == T_OBJECT && id == N(__setattr__)) {
        return v_native(it, "__setattr__", object_setattr);
    }
    value sample;
    args none = {NULL, 0, 0, NULL};
    switch (t) {
    case T_STR:
    case T_INT:
    case T_FLOAT:
    case T_LIST:
    case T_DICT:
    case T_TUPLE:
    case T_SET:
    case T_BYTES: sample = type_call(it, t, &none); break;
    default: return VUNDEF;
    }
    value m = find_method(it, sample, id);
    if (m.tag == V_UNDEF) {
        return VUNDEF;
    }
    if (strcmp(id->text, "maketrans") == 0 || strcmp(id->text, "fromhex") == 0) {
        return m;
    }
    vnative *n = NEW(it->mem, vnative);
    *n = (vnative){id->text, unbound, v_sym(it, id)};
    return (value){.tag = V_NATIVE, .u.native = n};
}

static value base_repr(interp *it, const args *a)
{
    (void)a;
    return v_repr(it, it->native_self);
}

static value base_str(interp *it, const args *a)
{
    (void)a;
    return v_strof(it, it->native_self);
}

static value exception_text(interp *it, const args *a)
{
    (void)a;
    value args_of = attrs_get(&it->native_self.u.obj->attrs, N(args));
    if (args_of.tag != V_TUPLE || args_of.u.tuple->n == 0) {
        return v_str(it, "", 0);
    }
    return v_strof(it, args_of.u.tuple->n == 1 ? args_of.u.tuple->at[0] : args_of);
}

static value dataclass_repr(interp *it, const args *a)
{
    (void)a;
    textbuf t;
    text_init(&t, it->mem);
    value v = it->native_self;
    const vclass *c = v.u.obj->cls;
    text_printf(&t, "%s(", c->id->text);
    for (uint32_t i = 0; i < c->nfields; i++) {
        text_printf(&t, "%s%s=", i ? ", " : "", c->fields[i].id->text);
        value f = find_attr(it, v, c->fields[i].id);
        if (IS_ERR(f) || !repr_into(it, f, &t)) {
            return VERR;
        }
    }
    text_char(&t, ')');
    return v_str(it, t.at, t.len);
}

value repr_of_base(interp *it, value v, bool str)
{
    vnative *n = NEW(it->mem, vnative);
    native_fn fn = str ? base_str : base_repr;
    if (v.tag == V_OBJ) {
        fn = v.u.obj->cls->is_exception ? exception_text : dataclass_repr;
    }
    *n = (vnative){str ? "__str__" : "__repr__", fn, v};
    return (value){.tag = V_NATIVE, .u.native = n};
}
