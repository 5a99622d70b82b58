// Classes made of fields: dataclass, NKIObject, NamedTuple.
#include "lower/class.h"

#include <string.h>

// ---- fields

static void add_field(interp *it, vclass *c, vfield **out, uint32_t *n, uint32_t *cap, vfield f)
{
    (void)c;
    for (uint32_t i = 0; i < *n; i++) {
        if ((*out)[i].id == f.id) {
            (*out)[i] = f;
            return;
        }
    }
    if (*n == *cap) {
        *out = vec_grow(it->mem, *out, *n, cap, *n + 1, sizeof **out, _Alignof(vfield));
    }
    (*out)[(*n)++] = f;
}

static value field_key(interp *it, value f, sym id)
{
    (void)it;
    return attrs_get(&f.u.obj->attrs, id);
}

static bool is_field_obj(value v)
{
    return v.tag == V_OBJ && strcmp(v.u.obj->cls->id->text, "Field") == 0 &&
           v.u.obj->cls->native_new == NULL && v.u.obj->cls->no_repr;
}

bool dataclass_collect(interp *it, vclass *c, bool plain_too, bool kw_only)
{
    vfield *out = NULL;
    uint32_t n = 0, cap = 0;
    for (uint32_t i = c->nmro; i-- > 1;) {
        const vclass *b = c->mro[i];
        for (uint32_t k = 0; b->has_fields && k < b->nfields; k++) {
            add_field(it, c, &out, &n, &cap, b->fields[k]);
        }
    }
    value ann = attrs_get(&c->attrs, N(__annotations__));
    for (uint32_t i = 0; ann.tag == V_DICT && i < ann.u.dict->n; i++) {
        value k = ann.u.dict->at[i].key, how = ann.u.dict->at[i].val;
        if (k.tag != V_STR || (how.tag == V_STR && strcmp(how.u.str->p, "ClassVar") == 0)) {
            continue;
        }
        sym id = str_sym(it, k);
        if (how.tag == V_STR && strcmp(how.u.str->p, "KW_ONLY") == 0) {
            kw_only = true;
            continue;
        }
        value d = attrs_get(&c->attrs, id);
        vfield f = {.id = id,
                    .dflt = d,
                    .factory = VUNDEF,
                    .init = true,
                    .repr = true,
                    .compare = true,
                    .kw_only = kw_only};
        if (is_field_obj(d)) {
            f.dflt = field_key(it, d, N(default_));
            f.factory = field_key(it, d, N(default_factory));
            f.init = truth(it, field_key(it, d, N(init))) == 1;
            f.repr = truth(it, field_key(it, d, N(repr))) == 1;
            f.compare = truth(it, field_key(it, d, N(compare))) == 1;
            f.kw_only |= truth(it, field_key(it, d, N(kw_only))) == 1;
            if (f.dflt.tag == V_UNDEF) {
                attrs_del(&c->attrs, id);
            } else {
                attrs_set(it, &c->attrs, id, f.dflt);
            }
        } else if (d.tag == V_LIST || d.tag == V_DICT || d.tag == V_SET) {
            if (!plain_too) {
                value_error(it,
                            "mutable default %s for field %s is not allowed: use default_factory",
                            arena_printf(it->mem, "<class '%s'>", type_name(it, d)), id->text);
                return false;
            }
        }
        add_field(it, c, &out, &n, &cap, f);
    }
    for (uint32_t i = 0; plain_too && i < c->attrs.n; i++) {
        sym id = c->attrs.at[i].id;
        value d = c->attrs.at[i].val;
        bool known = false;
        for (uint32_t k = 0; k < n; k++) {
            known |= out[k].id == id;
        }
        if (!known && id->text[0] != '_' && !attr_is_descriptor(d)) {
            vfield f = {.id = id,
                        .dflt = d,
                        .factory = VUNDEF,
                        .init = true,
                        .repr = true,
                        .compare = true};
            add_field(it, c, &out, &n, &cap, f);
        }
    }
    c->fields = out;
    c->nfields = n;
    c->has_fields = true;
    return true;
}

static bool check_default_order(interp *it, const vclass *c)
{
    bool seen = false;
    for (uint32_t i = 0; i < c->nfields; i++) {
        const vfield *f = &c->fields[i];
        if (!f->init || f->kw_only) {
            continue;
        }
        bool has = f->dflt.tag != V_UNDEF || f->factory.tag != V_UNDEF;
        if (seen && !has) {
            type_error(it, "non-default argument '%s' follows default argument", f->id->text);
            return false;
        }
        seen |= has;
    }
    return true;
}

bool dataclass_init(interp *it, vclass *c, value self, const args *a)
{
    attrs *o = &self.u.obj->attrs;
    uint32_t pos = 0;
    bool *taken = NEW_N(it->mem, bool, a->nkw + 1);
    uint32_t nmissing = 0;
    sym *missing = NEW_N(it->mem, sym, c->nfields + 1);
    bool *missing_kw = NEW_N(it->mem, bool, c->nfields + 1);
    uint32_t kw_missing = 0;
    for (uint32_t i = 0; i < c->nfields; i++) {
        const vfield *f = &c->fields[i];
        value v = VUNDEF;
        if (f->init) {
            if (!f->kw_only && pos < a->n) {
                v = a->at[pos++];
            }
            for (uint32_t j = 0; j < a->nkw; j++) {
                if (a->kw[j] == f->id) {
                    if (v.tag != V_UNDEF) {
                        type_error(it, "%s.__init__() got multiple values for argument '%s'",
                                   class_qualname(c), f->id->text);
                        return false;
                    }
                    v = a->at[a->n + j];
                    taken[j] = true;
                }
            }
        }
        if (v.tag == V_UNDEF) {
            v = f->factory.tag != V_UNDEF ? call_values(it, f->factory, NULL, 0) : f->dflt;
            if (IS_ERR(v)) {
                return false;
            }
            // A mutable default of an NKIObject is each instance's own.
            if (c->is_nkiobject && !c->is_dataclass && v.tag == V_LIST) {
                v = list_from(it, v);
            } else if (c->is_nkiobject && !c->is_dataclass && v.tag == V_DICT) {
                v.u.dict = dict_copy(it, v.u.dict);
            }
        }
        if (v.tag == V_UNDEF) {
            // nki-library leaves fields of an NKIObject out and sets them later, or never reads
            // them.
            if (f->init && !c->is_nkiobject) {
                missing_kw[nmissing] = f->kw_only;
                kw_missing += f->kw_only;
                missing[nmissing++] = f->id;
            }
            continue;
        }
        attrs_set(it, o, f->id, v);
    }
    for (uint32_t j = 0; j < a->nkw; j++) {
        if (!taken[j]) {
            type_error(it, "%s.__init__() got an unexpected keyword argument '%s'",
                       class_qualname(c), a->kw[j]->text);
            return false;
        }
    }
    if (pos < a->n) {
        uint32_t most = 1, need = 1;
        for (uint32_t i = 0; i < c->nfields; i++) {
            most += c->fields[i].init && !c->fields[i].kw_only;
            need += c->fields[i].init && !c->fields[i].kw_only &&
                    c->fields[i].dflt.tag == V_UNDEF && c->fields[i].factory.tag == V_UNDEF;
        }
        if (need == most) {
            type_error(it, "%s.__init__() takes %u positional argument%s but %u were given",
                       class_qualname(c), most, most == 1 ? "" : "s", a->n + 1);
        } else {
            type_error(it,
                       "%s.__init__() takes from %u to %u positional arguments but %u were given",
                       class_qualname(c), need, most, a->n + 1);
        }
        return false;
    }
    if (nmissing) {
        bool kw_only = kw_missing == nmissing;  // positional ones are named first, and alone
        sym *names = NEW_N(it->mem, sym, nmissing);
        uint32_t n = 0;
        for (uint32_t i = 0; i < nmissing; i++) {
            if (kw_only || !missing_kw[i]) {
                names[n++] = missing[i];
            }
        }
        type_error(it, "%s.__init__() missing %u required %s argument%s: %s", class_qualname(c), n,
                   kw_only ? "keyword-only" : "positional", n == 1 ? "" : "s",
                   name_list(it, names, n));
        return false;
    }
    value post = class_lookup(c, N(__post_init__));
    if (post.tag != V_UNDEF) {
        return !IS_ERR(call_values(it, post, &self, 1));
    }
    return true;
}

int dataclass_equal(interp *it, value a, value b, bool *lt)
{
    if (!stack_ok(it)) {
        return -1;
    }
    const vclass *c = a.u.obj->cls;
    for (uint32_t i = 0; i < c->nfields; i++) {
        if (!c->fields[i].compare) {
            continue;
        }
        value x = find_attr(it, a, c->fields[i].id), y = find_attr(it, b, c->fields[i].id);
        int e = is_same(x, y) ? 1 : equal(it, x, y);
        if (e < 0) {
            return -1;
        }
        if (e == 0) {
            if (lt) {
                int l = less(it, x, y);
                if (l < 0) {
                    return -1;
                }
                *lt = l;
            }
            return 0;
        }
    }
    return 1;
}

// ---- natives for stdlib's dataclasses

static value data_order(interp *it, const args *a);

static value make_dataclass(interp *it, value cls, value frozen, value order, value eq,
                            value kw_only, value repr, value hash)
{
    if (cls.tag != V_CLASS) {
        return type_error(it, "dataclass() should be applied to a class");
    }
    vclass *c = cls.u.cls;
    bool plain = c->is_nkiobject;
    if (!dataclass_collect(it, c, plain, kw_only.tag == V_BOOL && kw_only.u.b) ||
        (!plain && !check_default_order(it, c))) {
        return VERR;
    }
    c->is_dataclass = true;
    c->frozen = frozen.tag == V_BOOL && frozen.u.b;
    c->order = order.tag == V_BOOL && order.u.b;
    c->eq = !(eq.tag == V_BOOL && !eq.u.b);
    c->no_repr = repr.tag == V_BOOL && !repr.u.b;
    c->unsafe_hash = hash.tag == V_BOOL && hash.u.b;
    if (c->order) {
        sym ids[] = {N(__lt__), N(__le__), N(__gt__), N(__ge__)};
        static const char *const names[] = {"__lt__", "__le__", "__gt__", "__ge__"};
        for (int i = 0; i < 4; i++) {
            attrs_set(it, &c->attrs, ids[i], v_bound_native(it, names[i], data_order, VINT(i)));
        }
    }
    return cls;
}

static value data_order(interp *it, const args *a)
{
    int64_t which = it->native_self.u.i;
    if (a->n != 2 || a->at[0].tag != V_OBJ || a->at[1].tag != V_OBJ ||
        a->at[0].u.obj->cls != a->at[1].u.obj->cls) {
        return VTAG(V_NOTIMPLEMENTED);
    }
    bool lt = false;
    int e = dataclass_equal(it, a->at[0], a->at[1], &lt);
    if (e < 0) {
        return VERR;
    }
    switch (which) {
    case 0: return VBOOL(!e && lt);
    case 1: return VBOOL(e || lt);
    case 2: return VBOOL(!e && !lt);
    default: return VBOOL(e || !lt);
    }
}

static const char *const data_params[] = {"cls",     "init",        "repr",        "eq",
                                          "order",   "unsafe_hash", "frozen",      "match_args",
                                          "kw_only", "slots",       "weakref_slot"};

static value native_dataclass_apply(interp *it, const args *a)
{
    value o = it->native_self;
    const value *p = o.u.tuple->at;
    return a->n == 1 ? make_dataclass(it, a->at[0], p[6], p[4], p[3], p[8], p[2], p[5])
                     : type_error(it, "dataclass() takes a class");
}

static value native_dataclass(interp *it, const args *a)
{
    value p[11];
    if (!bind_native(it, "dataclass", a, data_params, 11, 0, p)) {
        return VERR;
    }
    if (p[0].tag == V_UNDEF || p[0].tag == V_NONE) {
        for (int i = 0; i < 11; i++) {
            p[i] = p[i].tag == V_UNDEF ? VNONE : p[i];
        }
        return v_bound_native(it, "dataclass", native_dataclass_apply, v_tuple(it, p, 11));
    }
    return make_dataclass(it, p[0], p[6], p[4], p[3], p[8], p[2], p[5]);
}

static value native_field(interp *it, const args *a)
{
    static const char *const params[] = {"default", "default_factory", "init",     "repr",
                                         "hash",    "compare",         "metadata", "kw_only"};
    value p[8];
    if (!bind_native(it, "field", a, params, 8, 0, p)) {
        return VERR;
    }
    if (p[0].tag != V_UNDEF && p[1].tag != V_UNDEF) {
        return value_error(it, "cannot specify both default and default_factory");
    }
    vclass *c = class_new(it, intern_cstr(it->names, "Field"), NULL, 0, NULL);
    c->no_repr = true;
    vobj *o = NEW(it->mem, vobj);
    o->cls = c;
    o->base = VUNDEF;
    const sym ids[] = {N(default_), N(default_factory), N(init), N(repr),
                       NULL,        N(compare),         NULL,    N(kw_only)};
    for (int i = 0; i < 8; i++) {
        if (ids[i] && (p[i].tag != V_UNDEF || i >= 2)) {
            attrs_set(it, &o->attrs, ids[i], p[i].tag == V_UNDEF ? VBOOL(i != 7) : p[i]);
        }
    }
    return (value){.tag = V_OBJ, .u.obj = o};
}

static value native_fields(interp *it, const args *a)
{
    value v = a->n ? a->at[0] : VNONE;
    vclass *c = v.tag == V_CLASS ? v.u.cls : class_of(v);
    if (!c || !c->is_dataclass) {
        return type_error(it, "must be called with a dataclass type or instance");
    }
    value l = v_list(it, NULL, 0);
    vclass *fc = class_new(it, intern_cstr(it->names, "Field"), NULL, 0, NULL);
    for (uint32_t i = 0; i < c->nfields; i++) {
        vobj *o = NEW(it->mem, vobj);
        o->cls = fc;
        o->base = VUNDEF;
        attrs_set(it, &o->attrs, N(name), v_sym(it, c->fields[i].id));
        attrs_set(it, &o->attrs, N(default_),
                  c->fields[i].dflt.tag == V_UNDEF ? VNONE : c->fields[i].dflt);
        attrs_set(it, &o->attrs, N(init), VBOOL(c->fields[i].init));
        attrs_set(it, &o->attrs, N(repr), VBOOL(c->fields[i].repr));
        attrs_set(it, &o->attrs, N(compare), VBOOL(c->fields[i].compare));
        value ann = class_lookup(c, N(__annotations__));
        value t = ann.tag == V_DICT ? dict_get(it, ann.u.dict, v_sym(it, c->fields[i].id)) : VUNDEF;
        attrs_set(it, &o->attrs, intern_cstr(it->names, "type"), t.tag == V_UNDEF ? VNONE : t);
        list_push(it, l.u.list, (value){.tag = V_OBJ, .u.obj = o});
    }
    return v_tuple(it, l.u.list->at, l.u.list->n);
}

static value native_data_replace(interp *it, const args *a)
{
    if (a->n != 1 || a->at[0].tag != V_OBJ || !a->at[0].u.obj->cls->has_fields) {
        return type_error(it, "replace() should be called on dataclass instances");
    }
    value o = a->at[0];
    vclass *c = o.u.obj->cls;
    value *at = NEW_N(it->mem, value, c->nfields + a->nkw);
    sym *kw = NEW_N(it->mem, sym, c->nfields + a->nkw);
    uint32_t n = 0;
    for (uint32_t j = 0; j < a->nkw; j++) {
        at[n] = a->at[a->n + j];
        kw[n++] = a->kw[j];
    }
    for (uint32_t i = 0; i < c->nfields; i++) {
        bool given = false;
        for (uint32_t j = 0; j < a->nkw; j++) {
            given |= a->kw[j] == c->fields[i].id;
        }
        if (given && !c->fields[i].init) {
            return value_error(
                it, "field %s is declared with init=False, it cannot be specified with replace()",
                c->fields[i].id->text);
        }
        if (!given && c->fields[i].init) {
            at[n] = get_attr(it, o, c->fields[i].id);
            if (IS_ERR(at[n])) {
                return VERR;
            }
            kw[n++] = c->fields[i].id;
        }
    }
    args b = {at, 0, n, kw};
    return instantiate(it, c, &b);
}

static value deep(interp *it, value v, bool dict)
{
    if (!stack_ok(it)) {
        return VERR;
    }
    if (v.tag == V_OBJ && v.u.obj->cls->is_dataclass) {
        const vclass *c = v.u.obj->cls;
        value d = v_dict(it), l = v_list(it, NULL, 0);
        for (uint32_t i = 0; i < c->nfields; i++) {
            value f = get_attr(it, v, c->fields[i].id);
            f = IS_ERR(f) ? f : deep(it, f, dict);
            if (IS_ERR(f)) {
                return f;
            }
            dict_set(it, d.u.dict, v_sym(it, c->fields[i].id), f);
            list_push(it, l.u.list, f);
        }
        return dict ? d : v_tuple(it, l.u.list->at, l.u.list->n);
    }
    if (v.tag == V_LIST || v.tag == V_TUPLE) {
        value l = list_from(it, v);
        for (uint32_t i = 0; i < l.u.list->n; i++) {
            l.u.list->at[i] = deep(it, l.u.list->at[i], dict);
            if (IS_ERR(l.u.list->at[i])) {
                return VERR;
            }
        }
        return v.tag == V_LIST ? l : v_tuple(it, l.u.list->at, l.u.list->n);
    }
    if (v.tag == V_DICT) {
        vdict *d = dict_copy(it, v.u.dict);
        for (uint32_t i = 0; i < d->n; i++) {
            if (d->at[i].key.tag != V_UNDEF) {
                d->at[i].val = deep(it, d->at[i].val, dict);
                if (IS_ERR(d->at[i].val)) {
                    return VERR;
                }
            }
        }
        return (value){.tag = V_DICT, .u.dict = d};
    }
    return v;
}

static value native_data_asdict(interp *it, const args *a)
{
    if (a->n < 1 || a->at[0].tag != V_OBJ || !a->at[0].u.obj->cls->is_dataclass) {
        return type_error(it, "asdict() should be called on dataclass instances");
    }
    return deep(it, a->at[0], true);
}

static value native_data_astuple(interp *it, const args *a)
{
    if (a->n < 1 || a->at[0].tag != V_OBJ || !a->at[0].u.obj->cls->is_dataclass) {
        return type_error(it, "astuple() should be called on dataclass instances");
    }
    return deep(it, a->at[0], false);
}

static value native_is_dataclass(interp *it, const args *a)
{
    (void)it;
    value v = a->n ? a->at[0] : VNONE;
    const vclass *c = v.tag == V_CLASS ? v.u.cls : class_of(v);
    return VBOOL(c && c->is_dataclass);
}

// ---- named tuples

value namedtuple_new(interp *it, vclass *c, const args *a)
{
    value small[64], *at = c->nfields <= 64 ? small : NEW_N(it->mem, value, c->nfields);
    uint32_t required = 0, nmissing = 0;
    for (uint32_t i = 0; i < c->nfields; i++) {
        required += c->fields[i].dflt.tag == V_UNDEF;
    }
    if (a->n > c->nfields) {
        if (required < c->nfields) {
            return type_error(
                it, "%s.__new__() takes from %u to %u positional arguments but %u were given",
                c->id->text, required + 1, c->nfields + 1, a->n + 1);
        }
        return type_error(it, "%s.__new__() takes %u positional argument%s but %u were given",
                          c->id->text, c->nfields + 1, c->nfields ? "s" : "", a->n + 1);
    }
    sym missing[8];
    for (uint32_t i = 0; i < c->nfields; i++) {
        at[i] = i < a->n ? a->at[i] : VUNDEF;
        for (uint32_t j = 0; j < a->nkw; j++) {
            if (a->kw[j] == c->fields[i].id) {
                at[i] = a->at[a->n + j];
            }
        }
        if (at[i].tag == V_UNDEF) {
            at[i] = c->fields[i].dflt;
        }
        if (at[i].tag == V_UNDEF) {
            if (nmissing < 8) {
                missing[nmissing] = c->fields[i].id;
            }
            nmissing += nmissing < 8;
        }
    }
    if (nmissing) {
        return type_error(it, "%s.__new__() missing %u required positional argument%s: %s",
                          c->id->text, nmissing, nmissing == 1 ? "" : "s",
                          name_list(it, missing, nmissing));
    }
    for (uint32_t j = 0; j < a->nkw; j++) {
        bool known = false;
        for (uint32_t i = 0; i < c->nfields; i++) {
            known |= c->fields[i].id == a->kw[j];
        }
        if (!known) {
            return type_error(it, "%s.__new__() got an unexpected keyword argument '%s'",
                              c->id->text, a->kw[j]->text);
        }
    }
    value t = v_tuple(it, at, c->nfields);
    t.u.tuple->cls = c;
    return t;
}

value namedtuple_make(interp *it, const args *a)
{
    value cls = it->native_self;
    uint32_t n;
    value *at = a->n ? items_of(it, a->at[0], &n) : NULL;
    if (!at) {
        return type_error(it, "_make() takes an iterable");
    }
    args b = {at, n, 0, NULL};
    return namedtuple_new(it, cls.u.cls, &b);
}

static value native_asdict(interp *it, const args *a)
{
    (void)a;
    value t = it->native_self, d = v_dict(it);
    for (uint32_t i = 0; i < t.u.tuple->n; i++) {
        dict_set(it, d.u.dict, v_sym(it, t.u.tuple->cls->fields[i].id), t.u.tuple->at[i]);
    }
    return d;
}

static value native_replace(interp *it, const args *a)
{
    value t = it->native_self;
    value r = v_tuple(it, t.u.tuple->at, t.u.tuple->n);
    r.u.tuple->cls = t.u.tuple->cls;
    for (uint32_t j = 0; j < a->nkw; j++) {
        bool known = false;
        for (uint32_t i = 0; i < r.u.tuple->n; i++) {
            if (t.u.tuple->cls->fields[i].id == a->kw[j]) {
                r.u.tuple->at[i] = a->at[a->n + j];
                known = true;
            }
        }
        if (!known) {
            return value_error(it, "Got unexpected field names: ['%s']", a->kw[j]->text);
        }
    }
    return r;
}

value namedtuple_attr(interp *it, value obj, sym id)
{
    vclass *c = obj.u.tuple->cls;
    if (c) {
        for (uint32_t i = 0; i < c->nfields; i++) {
            if (c->fields[i].id == id) {
                return obj.u.tuple->at[i];
            }
        }
        if (id == N(_asdict)) {
            return v_bound_native(it, "_asdict", native_asdict, obj);
        }
        if (id == N(_replace)) {
            return v_bound_native(it, "_replace", native_replace, obj);
        }
        value v = attr_of_class(it, class_value(c), id);
        if (v.tag == V_FUNC) {
            return attr_bind(it, obj, v);
        }
        if (v.tag == V_DESCR && v.u.descr->kind == DESCR_PROPERTY) {
            return call_values(it, v.u.descr->get, &obj, 1);
        }
        if (v.tag != V_UNDEF) {
            return v;
        }
    }
    return find_method(it, obj, id);
}

// namedtuple("Point", "x y") or (..., ["x", "y"], defaults=...)
static value native_namedtuple(interp *it, const args *a)
{
    static const char *const params[] = {"typename", "field_names", "rename", "defaults", "module"};
    value p[5];
    if (!bind_native(it, "namedtuple", a, params, 5, 2, p)) {
        return VERR;
    }
    value names = p[1];
    if (names.tag == V_STR) {
        textbuf t;
        text_init(&t, it->mem);
        names = v_list(it, NULL, 0);
        for (const char *s = p[1].u.str->p;; s++) {
            if (*s == ' ' || *s == ',' || *s == '\0') {
                if (t.len) {
                    list_push(it, names.u.list, v_str(it, t.at, t.len));
                    t.len = 0;
                }
                if (!*s) {
                    break;
                }
            } else {
                text_char(&t, *s);
            }
        }
    }
    uint32_t n, nd = 0;
    value *at = items_of(it, names, &n), *dflt = NULL;
    if (!at || p[0].tag != V_STR) {
        return VERR;
    }
    if (p[3].tag != V_UNDEF && p[3].tag != V_NONE && !(dflt = items_of(it, p[3], &nd))) {
        return VERR;
    }
    vclass **bases = NEW_N(it->mem, vclass *, 1);
    bases[0] = it->namedtuple_cls;
    vclass *c = class_new(it, str_sym(it, p[0]), bases, 1, it->top->module);
    c->has_fields = true;
    c->fields = NEW_N(it->mem, vfield, n);
    c->nfields = n;
    for (uint32_t i = 0; i < n; i++) {
        value name = at[i].tag == V_TUPLE && at[i].u.tuple->n ? at[i].u.tuple->at[0] : at[i];
        if (name.tag != V_STR) {
            return type_error(it, "Type names and field names must be strings");
        }
        c->fields[i] = (vfield){.id = str_sym(it, name),
                                .dflt = i + nd >= n ? dflt[i + nd - n] : VUNDEF,
                                .factory = VUNDEF,
                                .init = true,
                                .repr = true,
                                .compare = true};
    }
    return class_value(c);
}

void dataclass_natives(interp *it, vmodule *m)
{
    static const struct {
        const char *name;
        native_fn fn;
    } fns[] = {
        {"dataclass", native_dataclass},
        {"field", native_field},
        {"fields", native_fields},
        {"replace", native_data_replace},
        {"asdict", native_data_asdict},
        {"astuple", native_data_astuple},
        {"is_dataclass", native_is_dataclass},
        {"namedtuple", native_namedtuple},
    };
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) {
        attrs_set(it, &m->attrs, intern_cstr(it->names, fns[i].name),
                  v_native(it, fns[i].name, fns[i].fn));
    }
}
