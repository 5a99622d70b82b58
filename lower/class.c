// Classes: creation, method resolution order, instances.
#include "lower/class.h"

#include <string.h>

vclass *class_of(value v)
{
    switch ((vtag)v.tag) {
    case V_OBJ: return v.u.obj->cls;
    case V_TUPLE: return v.u.tuple->cls;
    default: return NULL;
    }
}

bool class_is(const vclass *c, const vclass *base)
{
    for (uint32_t i = 0; i < c->nmro; i++) {
        if (c->mro[i] == base) {
            return true;
        }
    }
    return false;
}

value class_lookup(const vclass *c, sym id)
{
    for (uint32_t i = 0; i < c->nmro; i++) {
        value v = attrs_get(&c->mro[i]->attrs, id);
        if (v.tag != V_UNDEF) {
            return v;
        }
    }
    return VUNDEF;
}

const char *class_qualname(const vclass *c)
{
    return c->qual ? c->qual : c->id->text;
}

// C3 linearisation. false: no consistent order.
static bool make_mro(interp *it, vclass *c)
{
    uint32_t total = 1, n = c->nbases;
    for (uint32_t i = 0; i < n; i++) {
        total += c->bases[i]->nmro + 1;
    }
    c->mro = NEW_N(it->mem, vclass *, total);
    c->mro[c->nmro++] = c;
    it->steps += total;
    if (n == 1) {
        memcpy(c->mro + 1, c->bases[0]->mro, c->bases[0]->nmro * sizeof *c->mro);
        c->nmro += c->bases[0]->nmro;
        return true;
    }
    uint32_t *at = NEW_N(it->mem, uint32_t, n + 1);
    for (;;) {
        vclass *pick = NULL;
        bool left = false;
        for (uint32_t i = 0; i <= n && !pick; i++) {
            vclass **seq = i < n ? c->bases[i]->mro : c->bases;
            uint32_t len = i < n ? c->bases[i]->nmro : n;
            if (at[i] >= len) {
                continue;
            }
            left = true;
            vclass *head = seq[at[i]];
            bool in_tail = false;
            for (uint32_t j = 0; j <= n && !in_tail; j++) {
                vclass **s = j < n ? c->bases[j]->mro : c->bases;
                uint32_t l = j < n ? c->bases[j]->nmro : n;
                for (uint32_t k = at[j] + 1; k < l; k++) {
                    in_tail |= s[k] == head;
                }
            }
            pick = in_tail ? NULL : head;
        }
        if (!pick) {
            return !left;
        }
        c->mro[c->nmro++] = pick;
        for (uint32_t i = 0; i <= n; i++) {
            vclass **seq = i < n ? c->bases[i]->mro : c->bases;
            uint32_t len = i < n ? c->bases[i]->nmro : n;
            if (at[i] < len && seq[at[i]] == pick) {
                at[i]++;
            }
        }
    }
}

vclass *class_new(interp *it, sym id, vclass **bases, uint32_t nbases, vmodule *m)
{
    vclass *c = NEW(it->mem, vclass);
    c->id = id;
    c->module = m;
    c->bases = bases;
    c->nbases = nbases;
    if (!make_mro(it, c)) {
        type_error(it, "Cannot create a consistent method resolution order (MRO) for bases of %s",
                   id->text);
        return NULL;
    }
    for (uint32_t i = 0; i < nbases; i++) {
        const vclass *b = bases[i];
        c->is_enum |= b->is_enum;
        c->is_int_enum |= b->is_int_enum;
        c->is_flag |= b->is_flag;
        c->is_exception |= b->is_exception;
        c->is_nkiobject |= b->is_nkiobject;
        c->is_dict |= b->is_dict;
        c->is_list |= b->is_list;
        c->is_str |= b->is_str;
        c->is_int |= b->is_int;
        c->is_tuple |= b->is_tuple;
        c->is_set |= b->is_set;
        c->is_float |= b->is_float;
        c->is_namedtuple |= b->is_namedtuple;
        c->frozen |= b->frozen;
        if (b->has_fields && !c->has_fields) {
            c->has_fields = true;
            c->fields = b->fields;
            c->nfields = b->nfields;
            c->is_dataclass |= b->is_dataclass;
            c->eq |= b->eq;
            c->order |= b->order;
            c->no_repr = b->no_repr;
            c->unsafe_hash |= b->unsafe_hash;
        }
        if (!c->native_new) {
            c->native_new = b->native_new;
        }
    }
    return c;
}

// ---- making a class

static value type_base(interp *it, vtype t)
{
    // int, str, list, dict, tuple as bases: a class with a payload.
    static const char *const names[] = {
        [T_INT] = "int",     [T_STR] = "str",     [T_LIST] = "list", [T_DICT] = "dict",
        [T_TUPLE] = "tuple", [T_FLOAT] = "float", [T_SET] = "set"};
    if ((size_t)t >= sizeof names / sizeof *names || !names[t]) {
        return VNONE;
    }
    vclass *c = class_new(it, intern_cstr(it->names, names[t]), NULL, 0, NULL);
    c->is_int = t == T_INT;
    c->is_float = t == T_FLOAT;
    c->is_set = t == T_SET;
    c->is_str = t == T_STR;
    c->is_list = t == T_LIST;
    c->is_dict = t == T_DICT;
    c->is_tuple = t == T_TUPLE;
    return (value){.tag = V_CLASS, .u.cls = c};
}

value exec_class(interp *it, const ast *s)
{
    vclass **bases = NULL;
    uint32_t n = 0;
    for (const ast *a = s->u.def.params; a; a = a->next) {
        n++;
    }
    bases = NEW_N(it->mem, vclass *, n + 1);
    uint32_t nb = 0;
    value hook_kw[8];
    sym hook_id[8];
    uint32_t nhook = 0;
    for (const ast *a = s->u.def.params; a; a = a->next) {
        value b = eval(it, a->u.named.value);
        if (IS_ERR(b)) {
            return b;
        }
        it->top->at = s;
        if (a->u.named.id) {
            if (a->u.named.id != N(metaclass) && nhook < 8) {
                hook_kw[nhook] = b;
                hook_id[nhook++] = a->u.named.id;
            }
            continue;
        }
        if (b.tag == V_TYPE && b.u.i != T_OBJECT) {
            b = type_base(it, (vtype)b.u.i);
        }
        if (b.tag == V_CLASS) {
            bases[nb++] = b.u.cls;
        } else if (b.tag == V_OPAQUE || b.tag == V_NONE || b.tag == V_TYPE || b.tag == V_OBJ ||
                   b.tag == V_NATIVE) {
            continue;  // from a package that is not here, Generic[T], object
        } else {
            return type_error(it, "a class may not inherit from a value of type '%s'",
                              type_name(it, b));
        }
    }
    vclass *c = class_new(it, s->u.def.id, bases, nb, it->top->module);
    if (!c) {
        return VERR;
    }
    unit *u = s->cache;
    c->qual = qualified_name(it, u, c->id);
    attrs_set(it, &c->attrs, N(__module__), v_sym(it, it->top->module->id));
    attrs_set(it, &c->attrs, N(__annotations__), v_dict(it));
    const ast *first = s->u.def.body;
    bool doc = first && first->kind == AST_EXPR && first->u.bin.l->kind == AST_STR;
    attrs_set(it, &c->attrs, N(__doc__),
              doc ? v_str(it, first->u.bin.l->u.str.p, first->u.bin.l->u.str.len) : VNONE);
    frame f = {.prev = it->top,
               .unit = u,
               .module = it->top->module,
               .cls = c,
               .at = s,
               .call = s,
               .id = s->u.def.id};
    f.place = it->top->place;
    f.loops = it->top->loops;
    f.locals = NEW_N(it->mem, value, u->nlocals);
    f.cells = NEW_N(it->mem, cell *, u->nown + u->nfree);
    for (uint32_t i = 0; i < u->nown; i++) {
        f.cells[i] = NEW(it->mem, cell);
    }
    for (uint32_t i = 0; i < u->nfree; i++) {
        f.cells[u->nown + i] = it->top->cells[u->free_from[i]];
    }
    it->top = &f;
    flow fl = exec_block(it, s->u.def.body);
    it->top = f.prev;
    it->top->at = s;
    if (fl == FLOW_ERROR || !class_finish(it, c)) {
        return VERR;
    }
    value cv = {.tag = V_CLASS, .u.cls = c};
    for (uint32_t i = 1; i < c->nmro; i++) {
        value hook = attrs_get(&c->mro[i]->attrs, N(__init_subclass__));
        if (hook.tag != V_UNDEF) {
            value fn = hook.tag == V_DESCR ? hook.u.descr->get : hook, at[9] = {cv};
            memcpy(at + 1, hook_kw, nhook * sizeof *hook_kw);
            args a = {at, 1, nhook, hook_id};
            if (IS_ERR(call(it, fn, &a))) {
                return VERR;
            }
            break;
        }
    }
    return cv;
}

bool class_finish(interp *it, vclass *c)
{
    if (c->is_enum) {
        return enum_finish(it, c);
    }
    if (c->is_namedtuple && c->nbases && c->bases[0] == it->namedtuple_cls) {
        return dataclass_collect(it, c, false, false);
    }
    if (c->is_nkiobject) {
        bool own_init = attrs_get(&c->attrs, N(__init__)).tag != V_UNDEF;
        for (uint32_t i = 1; i < c->nmro && !own_init; i++) {
            own_init = attrs_get(&c->mro[i]->attrs, N(__init__)).tag != V_UNDEF;
        }
        if (!own_init) {
            return dataclass_collect(it, c, true, false);
        }
        c->has_fields = false;
    }
    return true;
}

// ---- instances

vtype class_payload_type(const vclass *c)
{
    return c->is_str     ? T_STR
           : c->is_int   ? T_INT
           : c->is_float ? T_FLOAT
           : c->is_list  ? T_LIST
           : c->is_dict  ? T_DICT
           : c->is_set   ? T_SET
           : c->is_tuple ? T_TUPLE
                         : T_OBJECT;
}

value class_payload_new(interp *it, vclass *c, const args *a)
{
    vtype t = class_payload_type(c);
    if (t == T_OBJECT) {
        return VUNDEF;
    }
    // What can change is filled by __init__, when the class has one.
    bool fixed = t == T_STR || t == T_INT || t == T_FLOAT || t == T_TUPLE;
    args none = {NULL, 0, 0, NULL};
    return type_call(it, t, !fixed && class_lookup(c, N(__init__)).tag == V_FUNC ? &none : a);
}

value instantiate(interp *it, vclass *c, const args *a)
{
    if (c->is_enum && c != it->enum_cls) {
        return enum_lookup(it, c, a);
    }
    if (c->is_namedtuple) {
        return namedtuple_new(it, c, a);
    }
    if (c->native_new) {
        return c->native_new(it, c, a);
    }
    value self = VUNDEF;
    value maker = class_lookup(c, N(__new__));
    if (maker.tag == V_FUNC || maker.tag == V_DESCR) {
        value fn = maker.tag == V_DESCR ? maker.u.descr->get : maker;
        value cv = {.tag = V_CLASS, .u.cls = c};
        value m = VPTR(V_METHOD, NEW(it->mem, vmethod));
        *m.u.method = (vmethod){cv, fn};
        self = call(it, m, a);
        if (IS_ERR(self) || self.tag != V_OBJ || !class_is(self.u.obj->cls, c)) {
            return self;
        }
    } else {
        vobj *o = NEW(it->mem, vobj);
        o->cls = c;
        o->base = class_payload_new(it, c, a);
        if (IS_ERR(o->base)) {
            return VERR;
        }
        self = (value){.tag = V_OBJ, .u.obj = o};
    }
    if (c->is_exception) {
        attrs_set(it, &self.u.obj->attrs, N(args), v_tuple(it, a->at, a->n));
    }
    value init = class_lookup(c, N(__init__));
    if (init.tag == V_FUNC) {
        // Own __init__ of a dataclass's subclass wins; a dataclass's generated one wins over
        // inherited ones.
        bool generated =
            c->has_fields && attrs_get(&c->attrs, N(__init__)).tag == V_UNDEF && c->is_dataclass;
        if (!generated) {
            value at[16];
            args b = *a;
            if (a->n + a->nkw + 1 <= 16) {
                b.at = at;
            } else {
                b.at = NEW_N(it->mem, value, a->n + a->nkw + 1);
            }
            b.at[0] = self;
            if (a->n + a->nkw) {
                memcpy(b.at + 1, a->at, (a->n + a->nkw) * sizeof *a->at);
            }
            b.n = a->n + 1;
            value r = call(it, init, &b);
            if (IS_ERR(r) || r.tag == V_NONE) {
                return IS_ERR(r) ? r : self;
            }
            return type_error(it, "__init__() should return None, not '%s'", type_name(it, r));
        }
    }
    if (c->has_fields) {
        return dataclass_init(it, c, self, a) ? self : VERR;
    }
    if ((a->n || a->nkw) && !c->is_exception && self.u.obj->base.tag == V_UNDEF &&
        maker.tag == V_UNDEF) {
        return type_error(it, "%s() takes no arguments", c->id->text);
    }
    return self;
}

// ---- repr, equality

bool obj_repr(interp *it, value v, textbuf *out)
{
    vobj *o = v.u.obj;
    vclass *c = o->cls;
    value r = call_special(it, v, N(__repr__), NULL, 0);
    if (IS_ERR(r)) {
        return false;
    }
    if (r.tag == V_STR) {
        text_add(out, r.u.str->p, r.u.str->len);
        return true;
    }
    if (r.tag != V_UNDEF) {
        type_error(it, "__repr__ returned non-string (type %s)", type_name(it, r));
        return false;
    }
    if (c->is_enum) {
        value nm = attrs_get(&o->attrs, N(_name_));
        value val = attrs_get(&o->attrs, N(_value_));
        text_printf(out, "<%s", c->id->text);
        if (nm.tag == V_STR) {
            text_printf(out, ".%s", nm.u.str->p);
        }
        text_cstr(out, ": ");
        if (!repr_into(it, val, out)) {
            return false;
        }
        text_char(out, '>');
        return true;
    }
    if (c->is_exception) {
        value a = attrs_get(&o->attrs, N(args));
        text_cstr(out, c->id->text);
        if (a.tag != V_TUPLE || a.u.tuple->n != 1) {
            return a.tag == V_TUPLE && a.u.tuple->n ? repr_into(it, a, out)
                                                    : (text_cstr(out, "()"), true);
        }
        text_char(out, '(');
        bool ok = repr_into(it, a.u.tuple->at[0], out);
        text_char(out, ')');
        return ok;
    }
    if (c->is_dataclass && !c->no_repr) {
        text_printf(out, "%s(", c->id->text);
        bool first = true;
        for (uint32_t i = 0; i < c->nfields; i++) {
            if (!c->fields[i].repr) {
                continue;
            }
            text_printf(out, "%s%s=", first ? "" : ", ", c->fields[i].id->text);
            first = false;
            value f = find_attr(it, v, c->fields[i].id);
            if (IS_ERR(f) || !repr_into(it, f.tag == V_UNDEF ? VNONE : f, out)) {
                return false;
            }
        }
        text_char(out, ')');
        return true;
    }
    if (o->base.tag != V_UNDEF) {
        return repr_into(it, o->base, out);
    }
    text_printf(out, "<%s object>", c->id->text);
    return true;
}

value obj_eq_special(interp *it, value a, value b)
{
    for (int side = 0; side < 2; side++) {
        value x = side ? b : a, y = side ? a : b;
        if (x.tag != V_OBJ) {
            continue;
        }
        value r = call_special(it, x, N(__eq__), &y, 1);
        if (r.tag != V_UNDEF && r.tag != V_NOTIMPLEMENTED) {
            return r;
        }
    }
    return VUNDEF;
}

// Equality of instances whose __eq__ is not the program's; -2: the class does not define it.
int obj_equal(interp *it, value a, value b)
{
    if (a.tag == V_OBJ && b.tag == V_OBJ) {
        const vclass *c = a.u.obj->cls;
        if (c == b.u.obj->cls && c->is_dataclass && c->eq) {
            return dataclass_equal(it, a, b, NULL);
        }
        if (c->is_enum || b.u.obj->cls->is_enum) {
            if (c->is_int_enum && b.u.obj->cls->is_int_enum) {
                return -2;
            }
            if (a.u.p == b.u.p) {
                return 1;
            }
            // Members are equal when class, name and value are: files may be loaded under two
            // names.
            return c->id == b.u.obj->cls->id && a.u.obj->cls->is_enum && b.u.obj->cls->is_enum &&
                   equal(it, attrs_get(&a.u.obj->attrs, N(_name_)),
                         attrs_get(&b.u.obj->attrs, N(_name_))) == 1 &&
                   equal(it, attrs_get(&a.u.obj->attrs, N(_value_)),
                         attrs_get(&b.u.obj->attrs, N(_value_))) == 1;
        }
    } else if (a.tag == V_OBJ || b.tag == V_OBJ) {
        const vclass *c = a.tag == V_OBJ ? a.u.obj->cls : b.u.obj->cls;
        if (c->is_enum && !c->is_int_enum && !c->is_str && !c->is_int) {
            return 0;
        }
    } else {
        return a.tag == b.tag && a.u.p == b.u.p;
    }
    return -2;
}

// ---- isinstance, issubclass

bool is_subclass(interp *it, value c, value cls, bool *out)
{
    if (cls.tag == V_TUPLE) {
        *out = false;
        if (!stack_ok(it)) {
            return false;
        }
        for (uint32_t i = 0; i < cls.u.tuple->n && !*out; i++) {
            if (!is_subclass(it, c, cls.u.tuple->at[i], out)) {
                return false;
            }
        }
        return true;
    }
    if (c.tag != V_CLASS && c.tag != V_TYPE) {
        type_error(it, "issubclass() arg 1 must be a class");
        return false;
    }
    if (cls.tag == V_TYPE) {
        *out = cls.u.i == T_OBJECT ||
               (c.tag == V_TYPE && (c.u.i == cls.u.i || (c.u.i == T_BOOL && cls.u.i == T_INT)));
        if (c.tag == V_CLASS) {
            const vclass *k = c.u.cls;
            *out |= (cls.u.i == T_INT && (k->is_int_enum || k->is_int)) ||
                    (cls.u.i == T_STR && k->is_str) || (cls.u.i == T_SET && k->is_set) ||
                    (cls.u.i == T_FLOAT && k->is_float) || (cls.u.i == T_LIST && k->is_list) ||
                    (cls.u.i == T_DICT && k->is_dict) ||
                    (cls.u.i == T_TUPLE && (k->is_tuple || k->is_namedtuple));
        }
        return true;
    }
    if (cls.tag == V_CLASS) {
        *out = c.tag == V_CLASS && class_is(c.u.cls, cls.u.cls);
        return true;
    }
    *out = false;
    if (cls.tag == V_OPAQUE || cls.tag == V_NONE) {
        return true;
    }
    type_error(it, "issubclass() arg 2 must be a class, a tuple of classes, or a union");
    return false;
}

bool is_instance(interp *it, value v, value cls, bool *out)
{
    switch ((vtag)cls.tag) {
    case V_TUPLE:
        *out = false;
        if (!stack_ok(it)) {
            return false;
        }
        for (uint32_t i = 0; i < cls.u.tuple->n && !*out; i++) {
            if (!is_instance(it, v, cls.u.tuple->at[i], out)) {
                return false;
            }
        }
        return true;
    case V_TYPE: {
        vtype t = type_of(v), want = (vtype)cls.u.i;
        *out = want == T_OBJECT || t == want || (want == T_INT && t == T_BOOL) ||
               (want == T_FROZENSET && v.tag == V_SET && v.u.dict->dflt.tag == V_ELLIPSIS);
        if (want == T_SET && v.tag == V_SET && v.u.dict->dflt.tag == V_ELLIPSIS) {
            *out = false;
        }
        if (want == T_STR && v.tag == V_DTYPE) {
            *out = true;  // nl.DType is str
        }
        if (class_of(v)) {
            value c = class_value(class_of(v));
            bool sub;
            if (!is_subclass(it, c, cls, &sub)) {
                return false;
            }
            *out |= sub;
        }
        if (want == T_FUNCTION && (v.tag == V_METHOD || v.tag == V_NATIVE)) {
            *out = v.tag == V_NATIVE;
        }
        return true;
    }
    case V_CLASS: {
        const vclass *c = class_of(v);
        *out = c && class_is(c, cls.u.cls);
        if (!*out) {
            // Native values stand for the language's own classes, found by name.
            const char *n = cls.u.cls->id->text;
            bool nki = cls.u.cls->module == NULL || cls.u.cls->module->builtin;
            *out = nki && ((v.tag == V_TENSOR &&
                            (strcmp(n, "NkiTensor") == 0 || strcmp(n, "NKIObject") == 0)) ||
                           (v.tag == V_DTYPE && strcmp(n, "DType") == 0) ||
                           (v.tag == V_BUFFER && strcmp(n, "MemoryRegion") == 0) ||
                           (v.tag == V_REG && strcmp(n, "VirtualRegister") == 0));
        }
        return true;
    }
    case V_NONE: *out = v.tag == V_NONE; return true;
    case V_OPAQUE: *out = v.tag == V_OPAQUE; return true;
    case V_OBJ:
    case V_FUNC:
    case V_NATIVE: *out = false; return true;  // typing constructs
    default: break;
    }
    type_error(it, "isinstance() arg 2 must be a type, a tuple of types, or a union");
    return false;
}

vclass *class_native(interp *it, vmodule *m, const char *name, vclass *base)
{
    vclass **bases = NEW_N(it->mem, vclass *, 1);
    bases[0] = base;
    vclass *c = class_new(it, intern_cstr(it->names, name), bases, base ? 1 : 0, NULL);
    attrs_set(it, &m->attrs, intern_cstr(it->names, name), class_value(c));
    return c;
}

void class_natives(interp *it, vmodule *m)
{
    dataclass_natives(it, m);
    enum_natives(it, m);
    it->nkiobject_cls = class_native(it, m, "NKIObject", NULL);
    it->nkiobject_cls->is_nkiobject = true;
    it->namedtuple_cls = class_native(it, m, "NamedTuple", NULL);
    it->namedtuple_cls->is_namedtuple = true;
    it->namedtuple_cls->has_fields = true;
    attrs_set(it, &m->attrs, intern_cstr(it->names, "FrozenInstanceError"),
              class_value(exc_class(it, "FrozenInstanceError")));
    attrs_set(it, &m->attrs, intern_cstr(it->names, "NkiValidationError"),
              class_value(exc_class(it, "NkiValidationError")));
}
