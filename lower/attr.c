// Attributes: found, set and deleted, through descriptors and super().
#include "lower/class.h"

#include <string.h>

bool attr_is_descriptor(value v)
{
    return v.tag == V_FUNC || v.tag == V_DESCR || v.tag == V_CLASS || v.tag == V_NATIVE;
}

value attr_bind(interp *it, value self, value f)
{
    vmethod *m = NEW(it->mem, vmethod);
    *m = (vmethod){self, f};
    return VPTR(V_METHOD, m);
}

// What an attribute found in a class means for an instance (or, self a class, for the class).
static value through_descriptor(interp *it, value self, vclass *c, value v, bool on_class)
{
    if (v.tag == V_FUNC) {
        return on_class ? v : attr_bind(it, self, v);
    }
    if (v.tag != V_DESCR) {
        return v;
    }
    switch (v.u.descr->kind) {
    case DESCR_STATIC: return v.u.descr->get;
    case DESCR_CLASS: return attr_bind(it, (value){.tag = V_CLASS, .u.cls = c}, v.u.descr->get);
    case DESCR_PROPERTY: return on_class ? v : call_values(it, v.u.descr->get, &self, 1);
    case DESCR_CACHED: {
        if (on_class) {
            return v;
        }
        value r = call_values(it, v.u.descr->get, &self, 1);
        if (!IS_ERR(r) && self.tag == V_OBJ) {
            attrs_set(it, &self.u.obj->attrs, v.u.descr->set.u.func->id, r);
        }
        return r;
    }
    }
    return v;
}

value class_value(vclass *c)
{
    return (value){.tag = V_CLASS, .u.cls = c};
}

static value native_with_traceback(interp *it, const args *a)
{
    value self = it->native_self;
    return a->n == 1
               ? self
               : type_error(it, "with_traceback() takes exactly one argument (%u given)", a->n);
}

static value exception_attr(interp *it, value obj, sym id)
{
    if (id == N(__suppress_context__)) {
        return VBOOL(false);
    }
    if (id == N(value) && class_is(obj.u.obj->cls, exc_class(it, "StopIteration"))) {
        value a = attrs_get(&obj.u.obj->attrs, N(args));
        return a.tag == V_TUPLE && a.u.tuple->n ? a.u.tuple->at[0] : VNONE;
    }
    if (strcmp(id->text, "with_traceback") == 0) {
        return v_bound_native(it, "with_traceback", native_with_traceback, obj);
    }
    return VUNDEF;
}

static value obj_attr(interp *it, value obj, sym id)
{
    vobj *o = obj.u.obj;
    vclass *c = o->cls;
    value v = attrs_get(&o->attrs, id);
    value k = VUNDEF;
    if (v.tag == V_UNDEF) {
        k = class_lookup(c, id);
    } else {
        k = class_lookup(c, id);
        if (k.tag != V_DESCR || k.u.descr->kind != DESCR_PROPERTY) {
            return v;
        }
    }
    if (k.tag != V_UNDEF) {
        return through_descriptor(it, obj, c, k, false);
    }
    if (c->is_enum) {
        if (id == N(value)) {
            return attrs_get(&o->attrs, N(_value_));
        }
        if (id == N(name)) {
            return attrs_get(&o->attrs, N(_name_));
        }
    }
    if (id == N(__class__)) {
        return class_value(c);
    }
    if (id == N(__dict__)) {
        value d = v_dict(it);
        for (uint32_t i = 0; i < o->attrs.n; i++) {
            dict_set(it, d.u.dict, v_sym(it, o->attrs.at[i].id), o->attrs.at[i].val);
        }
        return d;
    }
    if (id == N(__doc__) || (c->is_exception && (id == N(__cause__) || id == N(__context__) ||
                                                 id == N(__traceback__)))) {
        return VNONE;
    }
    if (c->is_exception) {
        v = exception_attr(it, obj, id);
        if (v.tag != V_UNDEF) {
            return v;
        }
    }
    if (o->base.tag != V_UNDEF) {
        v = find_method(it, o->base, id);
        if (v.tag != V_UNDEF) {
            return v;
        }
    }
    if (c->is_dataclass && id == N(__match_args__)) {
        value l = v_list(it, NULL, 0);
        for (uint32_t i = 0; i < c->nfields; i++) {
            list_push(it, l.u.list, v_sym(it, c->fields[i].id));
        }
        return v_tuple(it, l.u.list->at, l.u.list->n);
    }
    if (c->is_dataclass && c->eq && id == N(__eq__)) {
        return VNONE;
    }
    value hook = class_lookup(c, N(__getattr__));
    if (hook.tag != V_UNDEF) {
        return call_values(it, hook, (value[]){obj, v_sym(it, id)}, 2);
    }
    return VUNDEF;
}

value v_bound_native(interp *it, const char *name, native_fn fn, value self)
{
    value v = v_native(it, name, fn);
    vnative *n = NEW(it->mem, vnative);
    *n = (vnative){name, fn, self};
    v.u.native = n;
    return v;
}

static value class_fromkeys(interp *it, const args *a)
{
    value cls = it->native_self;
    if (a->n < 1 || a->n > 2) {
        return type_error(it, "fromkeys expected at least 1 argument, got %u", a->n);
    }
    value keys = list_from(it, a->at[0]);
    value self = IS_ERR(keys) ? keys : instantiate(it, cls.u.cls, &(args){NULL, 0, 0, NULL});
    for (uint32_t i = 0; !IS_ERR(self) && i < keys.u.list->n; i++) {
        if (!set_index(it, self, keys.u.list->at[i], a->n > 1 ? a->at[1] : VNONE)) {
            return VERR;
        }
    }
    return self;
}

static value native_mro(interp *it, const args *a)
{
    (void)a;
    return list_from(it, attr_of_class(it, it->native_self, N(__mro__)));
}

value attr_of_class(interp *it, value obj, sym id)
{
    vclass *c = obj.u.cls;
    value v = class_lookup(c, id);
    if (v.tag != V_UNDEF) {
        if (id == N(__annotations__) || id == N(__module__)) {
            return v;
        }
        if (id == N(__doc__)) {
            v = attrs_get(&c->attrs, id);
            return v.tag == V_UNDEF ? VNONE : v;
        }
        return through_descriptor(it, obj, c, v, true);
    }
    if (id == N(__name__) || id == N(__qualname__)) {
        return id == N(__name__) ? v_sym(it, c->id) : v_cstr(it, class_qualname(c));
    }
    if (id == N(__mro__) || id == N(__bases__)) {
        uint32_t n = id == N(__mro__) ? c->nmro : c->nbases;
        value *at = NEW_N(it->mem, value, n + 1);
        for (uint32_t i = 0; i < n; i++) {
            at[i] = class_value(id == N(__mro__) ? c->mro[i] : c->bases[i]);
        }
        if (id == N(__mro__) || n == 0) {
            at[n++] = VID(V_TYPE, T_OBJECT);
        }
        return v_tuple(it, at, n);
    }
    if (id == N(mro)) {
        return v_bound_native(it, "mro", native_mro, obj);
    }
    if (id == N(_field_defaults) && c->is_namedtuple) {
        value d = v_dict(it);
        for (uint32_t i = 0; i < c->nfields; i++) {
            if (c->fields[i].dflt.tag != V_UNDEF) {
                dict_set(it, d.u.dict, v_sym(it, c->fields[i].id), c->fields[i].dflt);
            }
        }
        return d;
    }
    if (id == N(__members__) && c->is_enum) {
        value d = v_dict(it);
        for (uint32_t i = 0; i < c->attrs.n; i++) {
            value m = c->attrs.at[i].val;
            if (m.tag == V_OBJ && m.u.obj->cls == c) {
                dict_set(it, d.u.dict, v_sym(it, c->attrs.at[i].id), m);
            }
        }
        return d;
    }
    if (id == N(__dict__)) {
        value d = v_dict(it);
        for (uint32_t i = 0; i < c->attrs.n; i++) {
            dict_set(it, d.u.dict, v_sym(it, c->attrs.at[i].id), c->attrs.at[i].val);
        }
        return d;
    }
    if (id == N(__class__)) {
        return VID(V_TYPE, T_TYPE);
    }
    if (id == N(__doc__)) {
        return VNONE;
    }
    if ((id == N(_fields) || id == N(__match_args__)) && c->has_fields) {
        value l = v_list(it, NULL, 0);
        for (uint32_t i = 0; i < c->nfields; i++) {
            list_push(it, l.u.list, v_sym(it, c->fields[i].id));
        }
        return v_tuple(it, l.u.list->at, l.u.list->n);
    }
    if (c->is_dict && strcmp(id->text, "fromkeys") == 0) {
        return v_bound_native(it, "fromkeys", class_fromkeys, obj);
    }
    if (class_payload_type(c) != T_OBJECT && !c->is_enum && id != N(__new__)) {
        v = type_attr(it, class_payload_type(c), id);
        if (v.tag != V_UNDEF) {
            return v;
        }
    }
    if (id == N(__dataclass_fields__) && c->is_dataclass) {
        value d = v_dict(it);
        for (uint32_t i = 0; i < c->nfields; i++) {
            dict_set(it, d.u.dict, v_sym(it, c->fields[i].id), VNONE);
        }
        return d;
    }
    return VUNDEF;
}

static value func_attr(interp *it, value obj, sym id)
{
    vfunc *f = obj.u.func;
    value v = attrs_get(&f->attrs, id);
    if (v.tag != V_UNDEF) {
        return v;
    }
    if (id == N(__name__)) {
        return v_sym(it, f->id);
    }
    if (id == N(__qualname__)) {
        return v_cstr(it, qualified_name(it, f->unit, f->id));
    }
    if (id == N(__defaults__)) {
        value l = v_list(it, NULL, 0);
        for (uint32_t i = 0; i < f->unit->nparams; i++) {
            bool pos =
                f->unit->params[i]->op == PARAM_NORMAL || f->unit->params[i]->op == PARAM_POSONLY;
            if (pos && f->defaults[i].tag != V_UNDEF) {
                list_push(it, l.u.list, f->defaults[i]);
            }
        }
        return l.u.list->n ? v_tuple(it, l.u.list->at, l.u.list->n) : VNONE;
    }
    if (id == N(__module__)) {
        return v_sym(it, f->module->id);
    }
    if (id == N(__doc__)) {
        const ast *b = f->def->kind == AST_DEF ? f->def->u.def.body : NULL;
        if (b && b->kind == AST_EXPR && b->u.bin.l->kind == AST_STR) {
            return v_str(it, b->u.bin.l->u.str.p, b->u.bin.l->u.str.len);
        }
        return VNONE;
    }
    if (id == N(__dict__) || id == N(__annotations__)) {
        return v_dict(it);
    }
    if (strcmp(id->text, "func") == 0 && f->jit) {
        return obj;
    }
    if (strcmp(id->text, "with_schedule") == 0 && f->jit) {
        return kernel_with_schedule(it, obj);
    }
    return VUNDEF;
}

static value native_set(interp *it, const args *a);

static value descr_attr(interp *it, value obj, sym id)
{
    // @x.setter, @x.getter, @x.deleter
    if (obj.u.descr->kind == DESCR_PROPERTY &&
        (strcmp(id->text, "setter") == 0 || strcmp(id->text, "getter") == 0 ||
         strcmp(id->text, "deleter") == 0)) {
        return v_bound_native(it, id->text, native_set,
                              v_tuple(it, (value[]){obj, VINT(id->text[0])}, 2));
    }
    if (id == N(__doc__)) {
        return obj.u.descr->get.tag == V_FUNC ? find_attr(it, obj.u.descr->get, id) : VNONE;
    }
    if (strcmp(id->text, "fset") == 0) {
        return obj.u.descr->set.tag == V_UNDEF ? VNONE : obj.u.descr->set;
    }
    if (strcmp(id->text, "fget") == 0 || strcmp(id->text, "__func__") == 0 ||
        strcmp(id->text, "func") == 0) {
        return obj.u.descr->get;
    }
    return VUNDEF;
}

static value native_set(interp *it, const args *a)
{
    value d = it->native_self.u.tuple->at[0];
    int64_t which = it->native_self.u.tuple->at[1].u.i;
    bool getter = which == 'g', setter = which == 's';
    if (a->n != 1 || a->at[0].tag != V_FUNC) {
        return type_error(it, "a property accessor must be a function");
    }
    vdescr *n = NEW(it->mem, vdescr);
    *n = *d.u.descr;
    n->get = getter ? a->at[0] : n->get;
    n->set = setter ? a->at[0] : n->set;
    n->del = getter || setter ? n->del : a->at[0];
    return VPTR(V_DESCR, n);
}

value find_attr(interp *it, value obj, sym id)
{
    switch ((vtag)obj.tag) {
    case V_OBJ: return obj_attr(it, obj, id);
    case V_CLASS:
        if (id == N(_make) && obj.u.cls->is_namedtuple) {
            return v_bound_native(it, "_make", namedtuple_make, obj);
        }
        return attr_of_class(it, obj, id);
    case V_MODULE: {
        value v = module_attr(it, obj.u.module, id, UINT32_MAX);
        if (v.tag == V_UNDEF) {
            v = attrs_get(&obj.u.module->subs, id);
        }
        if (v.tag == V_UNDEF && id == N(__name__)) {
            return v_sym(it, obj.u.module->id);
        }
        if (v.tag == V_UNDEF && !(id->text[0] == '_' && id->text[1] == '_')) {
            value hook = module_attr(it, obj.u.module, N(__getattr__), UINT32_MAX);
            if (hook.tag != V_UNDEF) {
                value nm = v_sym(it, id);
                return IS_ERR(hook) ? hook : call_values(it, hook, &nm, 1);
            }
        }
        return v;
    }
    case V_TENSOR: return tensor_attr(it, obj, id);
    case V_TUPLE: return namedtuple_attr(it, obj, id);
    case V_FUNC: return func_attr(it, obj, id);
    case V_SUPER: return attr_of_super(it, obj, id);
    case V_DESCR: return descr_attr(it, obj, id);
    case V_METHOD: {
        if (strcmp(id->text, "__self__") == 0) {
            return obj.u.method->self;
        }
        if (strcmp(id->text, "__func__") == 0) {
            return obj.u.method->fn;
        }
        return find_attr(it, obj.u.method->fn, id);
    }
    case V_OPAQUE: {
        if (id->len > 4 && strncmp(id->text, "__", 2) == 0) {
            return VUNDEF;
        }
        vopaque *o = NEW(it->mem, vopaque);
        o->path = arena_printf(it->mem, "%s.%s", obj.u.opaque->path, id->text);
        return VPTR(V_OPAQUE, o);
    }
    case V_DTYPE:
        if (id == N(name) || id == N(__name__)) {
            return v_cstr(it, dtype_name((dtype)obj.u.i));
        }
        if (id == N(itemsize)) {
            return VINT(dtype_size((dtype)obj.u.i));
        }
        if (strcmp(id->text, "type") == 0) {
            return obj;
        }
        break;
    case V_BUFFER: {
        static const char *const names[] = {"sbuf", "psum", "private_hbm", "shared_hbm"};
        if (id == N(name)) {
            return v_cstr(it, names[obj.u.i]);
        }
        if (id == N(value)) {
            return VINT(obj.u.i);
        }
        break;
    }
    case V_TYPE:
        if (id == N(__name__) || id == N(__qualname__)) {
            return v_cstr(it, vtype_name((vtype)obj.u.i));
        }
        return type_attr(it, (vtype)obj.u.i, id);
    case V_NATIVE:
        if (id == N(__name__) || id == N(__qualname__)) {
            return v_cstr(it, obj.u.native->name);
        }
        break;
    case V_ISA:
        if (id == N(__name__)) {
            return v_cstr(it, isa_table[obj.u.i].name);
        }
        break;
    case V_OP:
        if (id == N(__name__)) {
            return v_cstr(it, op_table[obj.u.i].name);
        }
        break;
    case V_DS:
        if (id == N(start)) {
            return obj.u.ds->start;
        }
        if (id == N(size)) {
            return VINT(obj.u.ds->size);
        }
        break;
    case V_INSTR:
    case V_REG: return handle_attr(it, obj, id);
    default: break;
    }
    if (id == N(__class__)) {
        return VID(V_TYPE, type_of(obj));
    }
    if (id == N(__doc__)) {
        return VNONE;
    }
    return find_method(it, obj, id);
}

value get_attr(interp *it, value obj, sym id)
{
    value v = find_attr(it, obj, id);
    if (v.tag != V_UNDEF) {
        return v;
    }
    switch ((vtag)obj.tag) {
    case V_MODULE:
        return raise_msg(it, "AttributeError", "module '%s' has no attribute '%s'",
                         obj.u.module->id->text, id->text);
    case V_CLASS:
        if (obj.u.cls->is_enum) {
            return raise_msg(it, "AttributeError", "%s", id->text);
        }
        return raise_msg(it, "AttributeError", "type object '%s' has no attribute '%s'",
                         obj.u.cls->id->text, id->text);
    case V_METHOD: return get_attr(it, obj.u.method->fn, id);
    case V_FUNC:
        return raise_msg(it, "AttributeError", "'function' object has no attribute '%s'", id->text);
    case V_SUPER:
        return raise_msg(it, "AttributeError", "'super' object has no attribute '%s'", id->text);
    default:
        return raise_msg(it, "AttributeError", "'%s' object has no attribute '%s'",
                         type_name(it, obj), id->text);
    }
}

static value native_object_init(interp *it, const args *a)
{
    (void)it;
    (void)a;
    return VNONE;
}

static value native_exception_init(interp *it, const args *a)
{
    value self = it->native_self;
    attrs_set(it, &self.u.obj->attrs, N(args), v_tuple(it, a->at, a->n));
    return VNONE;
}

static value native_field_init(interp *it, const args *a)
{
    value self = it->native_self;
    return dataclass_init(it,
                          self.u.obj->cls->is_dataclass || self.u.obj->cls->has_fields
                              ? self.u.obj->cls
                              : self.u.obj->cls,
                          self, a)
               ? VNONE
               : VERR;
}

static value native_object_new(interp *it, const args *a)
{
    if (a->n < 1 || a->at[0].tag != V_CLASS) {
        return type_error(it, "object.__new__(X): X is not a type object");
    }
    vclass *c = a->at[0].u.cls;
    vobj *o = NEW(it->mem, vobj);
    o->cls = c;
    args rest = {a->at + 1, a->n - 1, 0, NULL};
    o->base = class_payload_new(it, c, &rest);
    return IS_ERR(o->base) ? VERR : (value){.tag = V_OBJ, .u.obj = o};
}

static value native_object_setattr(interp *it, const args *a)
{
    value self = it->native_self;
    if (a->n != 2 || a->at[0].tag != V_STR) {
        return type_error(it, "__setattr__() takes a name and a value");
    }
    attrs_set(it, &self.u.obj->attrs, str_sym(it, a->at[0]), a->at[1]);
    return VNONE;
}

static value native_object_repr(interp *it, const args *a)
{
    (void)a;
    textbuf t;
    text_init(&t, it->mem);
    value self = it->native_self;
    text_printf(&t, "<%s.%s object>",
                self.u.obj->cls->module ? self.u.obj->cls->module->id->text : "builtins",
                self.u.obj->cls->id->text);
    return v_str(it, t.at, t.len);
}

value attr_of_super(interp *it, value obj, sym id)
{
    const vsuper *s = obj.u.super;
    bool on_class = s->self.tag == V_CLASS;
    vclass *c = on_class ? s->self.u.cls : class_of(s->self);
    bool past = false;
    for (uint32_t i = 0; i < c->nmro; i++) {
        if (past) {
            value v = attrs_get(&c->mro[i]->attrs, id);
            if (v.tag != V_UNDEF) {
                if (v.tag == V_FUNC && id == N(__new__)) {
                    return v;
                }
                if (v.tag == V_FUNC && on_class) {
                    return attr_bind(it, s->self, v);
                }
                return through_descriptor(it, s->self, c, v, on_class && v.tag != V_DESCR);
            }
            if (id == N(__init__) && c->mro[i]->has_fields) {
                return v_bound_native(it, "__init__", native_field_init, s->self);
            }
        }
        past |= c->mro[i] == s->after;
    }
    if (id == N(__init__) && s->self.tag == V_OBJ &&
        (s->self.u.obj->base.tag == V_LIST || s->self.u.obj->base.tag == V_DICT ||
         s->self.u.obj->base.tag == V_SET)) {
        return find_method(it, s->self.u.obj->base, id);
    }
    if (id == N(__init__)) {
        return v_bound_native(
            it, "__init__", c->is_exception ? native_exception_init : native_object_init, s->self);
    }
    if (id == N(__new__)) {
        return v_native(it, "__new__", native_object_new);
    }
    if (id == N(__setattr__)) {
        return v_bound_native(it, "__setattr__", native_object_setattr, s->self);
    }
    if (id == N(__init_subclass__) || id == N(__post_init__)) {
        return v_bound_native(it, "__init_subclass__", native_object_init, s->self);
    }
    if (id == N(__repr__) || id == N(__str__)) {
        if (s->self.tag == V_OBJ && s->self.u.obj->base.tag == V_UNDEF && !c->is_exception &&
            !c->is_dataclass) {
            return v_bound_native(it, "__repr__", native_object_repr, s->self);
        }
        value plain = s->self.tag == V_OBJ && s->self.u.obj->base.tag != V_UNDEF
                          ? s->self.u.obj->base
                          : s->self;
        return repr_of_base(it, plain, id == N(__str__));
    }
    if (s->self.tag == V_OBJ && s->self.u.obj->base.tag != V_UNDEF) {
        return find_method(it, s->self.u.obj->base, id);
    }
    return VUNDEF;
}

bool set_attr(interp *it, value obj, sym id, value v)
{
    switch ((vtag)obj.tag) {
    case V_OBJ: {
        vclass *c = obj.u.obj->cls;
        value hook = class_lookup(c, N(__setattr__));
        if (hook.tag == V_FUNC) {
            return !IS_ERR(call_values(it, hook, (value[]){obj, v_sym(it, id), v}, 3));
        }
        value d = class_lookup(c, id);
        if (d.tag == V_DESCR && d.u.descr->kind == DESCR_PROPERTY) {
            if (d.u.descr->set.tag == V_UNDEF) {
                raise_msg(it, "AttributeError", "property '%s' of '%s' object has no setter",
                          id->text, c->id->text);
                return false;
            }
            return !IS_ERR(call_values(it, d.u.descr->set, (value[]){obj, v}, 2));
        }
        if (c->frozen) {
            raise_msg(it, "FrozenInstanceError", "cannot assign to field '%s'", id->text);
            return false;
        }
        if (c->is_enum && (id == N(value) || id == N(name))) {
            raise_msg(it, "AttributeError", "<enum '%s'> cannot set attribute '%s'", c->id->text,
                      id->text);
            return false;
        }
        attrs_set(it, &obj.u.obj->attrs, id, v);
        return true;
    }
    case V_CLASS:
        if (obj.u.cls->is_enum && attrs_get(&obj.u.cls->attrs, id).tag == V_OBJ) {
            raise_msg(it, "AttributeError", "cannot reassign member '%s'", id->text);
            return false;
        }
        attrs_set(it, &obj.u.cls->attrs, id, v);
        return true;
    case V_MODULE:
        module_attr(it, obj.u.module, id, UINT32_MAX);
        attrs_set(it, &obj.u.module->attrs, id, v);
        return true;
    case V_FUNC:
        if (id == N(__name__) && v.tag == V_STR) {
            obj.u.func->id = str_sym(it, v);
            return true;
        }
        attrs_set(it, &obj.u.func->attrs, id, v);
        return true;
    case V_METHOD: return set_attr(it, obj.u.method->fn, id, v);
    case V_OPAQUE: return true;
    case V_TUPLE:
        if (obj.u.tuple->cls) {
            raise_msg(it, "AttributeError", "can't set attribute");
            return false;
        }
        break;
    default: break;
    }
    if (find_attr(it, obj, id).tag != V_UNDEF) {
        raise_msg(it, "AttributeError", "'%s' object attribute '%s' is read-only",
                  type_name(it, obj), id->text);
    } else {
        raise_msg(it, "AttributeError", "'%s' object has no attribute '%s'", type_name(it, obj),
                  id->text);
    }
    return false;
}

bool del_attr(interp *it, value obj, sym id)
{
    bool ok = false;
    if (obj.tag == V_OBJ) {
        if (obj.u.obj->cls->frozen) {
            raise_msg(it, "FrozenInstanceError", "cannot delete field '%s'", id->text);
            return false;
        }
        value r = call_special(it, obj, N(__delattr__), (value[]){v_sym(it, id)}, 1);
        if (r.tag != V_UNDEF) {
            return !IS_ERR(r);
        }
        value d = class_lookup(obj.u.obj->cls, id);
        if (d.tag == V_DESCR && d.u.descr->kind == DESCR_PROPERTY) {
            if (d.u.descr->del.tag == V_UNDEF) {
                raise_msg(it, "AttributeError", "property '%s' of '%s' object has no deleter",
                          id->text, obj.u.obj->cls->id->text);
                return false;
            }
            return !IS_ERR(call_values(it, d.u.descr->del, &obj, 1));
        }
        ok = attrs_del(&obj.u.obj->attrs, id);
    } else if (obj.tag == V_CLASS) {
        ok = attrs_del(&obj.u.cls->attrs, id);
    } else if (obj.tag == V_FUNC) {
        ok = attrs_del(&obj.u.func->attrs, id);
    }
    if (!ok) {
        raise_msg(it, "AttributeError", "'%s' object has no attribute '%s'", type_name(it, obj),
                  id->text);
    }
    return ok;
}
