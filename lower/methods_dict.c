// Methods of dict and set, and the views of a dict.
#include "lower/methods.h"

#include <string.h>

#define COUNT(t) (sizeof(t) / sizeof(t)[0])

// ---- views
//
// A view is an instance of a class made here, one a kind, with the dict as its only attribute. It
// follows the dict. The special methods get the view as their first argument.

typedef enum view_kind { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS } view_kind;
static const char *const view_names[] = {"dict_keys", "dict_values", "dict_items"};

static vdict *view_dict(value v)
{
    return v.u.obj->attrs.at[0].val.u.dict;
}

static view_kind view_kind_of(value v)
{
    const char *name = v.u.obj->cls->id->text;
    return strcmp(name, "dict_keys") == 0     ? VIEW_KEYS
           : strcmp(name, "dict_values") == 0 ? VIEW_VALUES
                                              : VIEW_ITEMS;
}

static value entry_value(interp *it, const args *a)
{
    value self = it->native_self;
    return dict_get(it, self.u.dict, a->at[0]);
}

static value entry_pair(interp *it, const args *a)
{
    value self = it->native_self, key = a->at[0], v = dict_get(it, self.u.dict, key);
    return IS_ERR(v) ? v : v_tuple(it, (value[]){key, v}, 2);
}

static value view_iter(interp *it, const args *a)
{
    value d = a->at[0].u.obj->attrs.at[0].val;
    view_kind kind = view_kind_of(a->at[0]);
    if (kind == VIEW_KEYS) {
        return iter_new(it, d);
    }
    vnative *n = NEW(it->mem, vnative);
    *n = (vnative){"entry", kind == VIEW_VALUES ? entry_value : entry_pair, d};
    return iter_map(it, (value){.tag = V_NATIVE, .u.native = n}, &d, 1);
}

// The view's entries as a list.
static value view_list(interp *it, value view)
{
    const vdict *d = view_dict(view);
    view_kind kind = view_kind_of(view);
    value out = v_list(it, NULL, 0);
    for (uint32_t i = 0; i < d->n; i++) {
        const dict_entry *e = &d->at[i];
        if (e->key.tag != V_UNDEF) {
            list_push(it, out.u.list,
                      kind == VIEW_KEYS     ? e->key
                      : kind == VIEW_VALUES ? e->val
                                            : v_tuple(it, (value[]){e->key, e->val}, 2));
        }
    }
    return out;
}

static value view_reversed(interp *it, const args *a)
{
    return iter_reversed(it, view_list(it, a->at[0]));
}

static value view_len(interp *it, const args *a)
{
    (void)it;
    return VINT(view_dict(a->at[0])->live);
}

static value view_repr(interp *it, const args *a)
{
    textbuf t;
    text_init(&t, it->mem);
    text_printf(&t, "%s(", view_names[view_kind_of(a->at[0])]);
    if (!repr_into(it, view_list(it, a->at[0]), &t)) {
        return VERR;
    }
    text_char(&t, ')');
    return v_str(it, t.at, t.len);
}

static value view_contains(interp *it, const args *a)
{
    vdict *d = view_dict(a->at[0]);
    value v = a->at[1];
    switch (view_kind_of(a->at[0])) {
    case VIEW_KEYS: break;
    case VIEW_VALUES: return contains(it, view_list(it, a->at[0]), v);
    case VIEW_ITEMS:
        if (v.tag != V_TUPLE || v.u.tuple->n != 2) {
            return VBOOL(false);
        }
        value found = dict_get(it, d, v.u.tuple->at[0]);
        if (found.tag == V_UNDEF || IS_ERR(found)) {
            return IS_ERR(found) ? found : VBOOL(false);
        }
        return compare(it, OP_EQ, found, v.u.tuple->at[1]);
    }
    value found = dict_get(it, d, v);
    return IS_ERR(found) ? found : VBOOL(found.tag != V_UNDEF);
}

static bool add_all(interp *it, vdict *s, value from);

// A view or any iterable as a new set; NULL on error.
static vdict *set_from(interp *it, value v)
{
    if (v.tag == V_SET) {
        return v.u.dict;
    }
    vdict *s = NEW(it->mem, vdict);
    return add_all(it, s, v) ? s : NULL;
}

static bool is_set_like(interp *it, value v)
{
    return v.tag == V_SET || (v.tag == V_OBJ && v.u.obj->base.tag == V_SET) ||
           (v.tag == V_OBJ && v.u.obj->cls->module == NULL &&
            (strcmp(type_name(it, v), "dict_keys") == 0 ||
             strcmp(type_name(it, v), "dict_items") == 0));
}

static value view_compare(interp *it, const args *a, ast_op op)
{
    if (!is_set_like(it, a->at[1])) {
        return VTAG(V_NOTIMPLEMENTED);
    }
    vdict *x = set_from(it, a->at[0]), *y = set_from(it, a->at[1]);
    return x && y ? compare(it, op, VPTR(V_SET, x), VPTR(V_SET, y)) : VERR;
}

static value view_algebra(interp *it, const args *a, ast_op op)
{
    vdict *x = set_from(it, a->at[0]), *y = x ? set_from(it, a->at[1]) : NULL;
    return x && y ? binary_op(it, op, VPTR(V_SET, x), VPTR(V_SET, y)) : VERR;
}

static value view_algebra_r(interp *it, const args *a, ast_op op)
{
    return view_algebra(it, &(args){(value[]){a->at[1], a->at[0]}, 2, 0, NULL}, op);
}

#define VIEW_OP(name, fn, op)                                                                      \
    static value view_##name(interp *it, const args *a)                                            \
    {                                                                                              \
        return fn(it, a, op);                                                                      \
    }
VIEW_OP(eq, view_compare, OP_EQ)
VIEW_OP(ne, view_compare, OP_NE)
VIEW_OP(lt, view_compare, OP_LT)
VIEW_OP(le, view_compare, OP_LE)
VIEW_OP(gt, view_compare, OP_GT)
VIEW_OP(ge, view_compare, OP_GE)
VIEW_OP(and, view_algebra, OP_BITAND)
VIEW_OP(or, view_algebra, OP_BITOR)
VIEW_OP(xor, view_algebra, OP_BITXOR)
VIEW_OP(sub, view_algebra, OP_SUB)
VIEW_OP(rand, view_algebra_r, OP_BITAND)
VIEW_OP(ror, view_algebra_r, OP_BITOR)
VIEW_OP(rxor, view_algebra_r, OP_BITXOR)
VIEW_OP(rsub, view_algebra_r, OP_SUB)

static value set_isdisjoint(interp *it, const args *a);

static value view_disjoint(interp *it, const args *a)
{
    vdict *x = set_from(it, a->at[0]);
    return x ? method_bind(it, &(method)METHOD("isdisjoint", set_isdisjoint), 1, VPTR(V_SET, x),
                           intern_cstr(it->names, "isdisjoint"))
             : VERR;
}

static vclass *view_class(interp *it, view_kind kind)
{
    static const method any[] = {
        METHOD("__iter__", view_iter),         METHOD("__len__", view_len),
        METHOD("__repr__", view_repr),         METHOD("__contains__", view_contains),
        METHOD("__reversed__", view_reversed),
    };
    static const method sets[] = {
        METHOD("__eq__", view_eq),     METHOD("__ne__", view_ne),     METHOD("__lt__", view_lt),
        METHOD("__le__", view_le),     METHOD("__gt__", view_gt),     METHOD("__ge__", view_ge),
        METHOD("__and__", view_and),   METHOD("__or__", view_or),     METHOD("__xor__", view_xor),
        METHOD("__sub__", view_sub),   METHOD("__rand__", view_rand), METHOD("__ror__", view_ror),
        METHOD("__rxor__", view_rxor), METHOD("__rsub__", view_rsub),
    };
    // A blank keeps the name out of the program's reach.
    static const char *const hidden[] = {" dict_keys", " dict_values", " dict_items"};
    sym slot = intern_cstr(it->names, hidden[kind]);
    value known = attrs_get(&it->builtins, slot);
    if (known.tag == V_CLASS) {
        return known.u.cls;
    }
    vclass *c = class_new(it, intern_cstr(it->names, view_names[kind]), NULL, 0, NULL);
    for (size_t i = 0; i < COUNT(any); i++) {
        attrs_set(it, &c->attrs, intern_cstr(it->names, any[i].name),
                  v_native(it, any[i].name, any[i].fn));
    }
    for (size_t i = 0; kind != VIEW_VALUES && i < COUNT(sets); i++) {
        attrs_set(it, &c->attrs, intern_cstr(it->names, sets[i].name),
                  v_native(it, sets[i].name, sets[i].fn));
    }
    if (kind != VIEW_VALUES) {
        vdescr *d = NEW(it->mem, vdescr);
        *d = (vdescr){.kind = DESCR_PROPERTY, .get = v_native(it, "isdisjoint", view_disjoint)};
        attrs_set(it, &c->attrs, intern_cstr(it->names, "isdisjoint"), VPTR(V_DESCR, d));
    }
    attrs_set(it, &it->builtins, slot, (value){.tag = V_CLASS, .u.cls = c});
    return c;
}

static value view_new(interp *it, const args *a, value d, view_kind kind)
{
    static const char *const methods[] = {"keys", "values", "items"};
    if (!method_args(it, a, "dict", methods[kind], 0, 0)) {
        return VERR;
    }
    vobj *o = NEW(it->mem, vobj);
    o->cls = view_class(it, kind);
    attrs_set(it, &o->attrs, intern_cstr(it->names, " dict"), d);
    return (value){.tag = V_OBJ, .u.obj = o};
}

// ---- dict

static value dict_keys(interp *it, const args *a)
{
    return view_new(it, a, it->native_self, VIEW_KEYS);
}

static value dict_values(interp *it, const args *a)
{
    return view_new(it, a, it->native_self, VIEW_VALUES);
}

static value dict_items(interp *it, const args *a)
{
    return view_new(it, a, it->native_self, VIEW_ITEMS);
}

static value dict_m_get(interp *it, const args *a)
{
    vdict *d = it->native_self.u.dict;
    if (!method_args(it, a, "dict", "get", 1, 2)) {
        return VERR;
    }
    value v = dict_get(it, d, a->at[0]);
    return v.tag == V_UNDEF ? (a->n > 1 ? a->at[1] : VNONE) : v;
}

static value dict_pop(interp *it, const args *a)
{
    vdict *d = it->native_self.u.dict;
    if (!method_args(it, a, "dict", "pop", 1, 2)) {
        return VERR;
    }
    value v = dict_get(it, d, a->at[0]);
    if (v.tag == V_UNDEF) {
        return a->n > 1 ? a->at[1] : key_error(it, a->at[0]);
    }
    return IS_ERR(v) || dict_del(it, d, a->at[0]) < 0 ? VERR : v;
}

static value dict_popitem(interp *it, const args *a)
{
    vdict *d = it->native_self.u.dict;
    if (!method_args(it, a, "dict", "popitem", 0, 0)) {
        return VERR;
    }
    for (uint32_t i = d->n; i-- > 0;) {
        value key = d->at[i].key, v = d->at[i].val;
        if (key.tag != V_UNDEF) {
            return dict_del(it, d, key) < 0 ? VERR : v_tuple(it, (value[]){key, v}, 2);
        }
    }
    return key_error(it, v_cstr(it, "popitem(): dictionary is empty"));
}

static value dict_setdefault(interp *it, const args *a)
{
    vdict *d = it->native_self.u.dict;
    if (!method_args(it, a, "dict", "setdefault", 1, 2)) {
        return VERR;
    }
    value v = dict_get(it, d, a->at[0]);
    if (v.tag == V_UNDEF) {
        v = a->n > 1 ? a->at[1] : VNONE;
        return dict_set(it, d, a->at[0], v) ? v : VERR;
    }
    return v;
}

static bool merge_dict(interp *it, vdict *d, const vdict *from)
{
    for (uint32_t i = 0; i < from->n; i++) {
        if (from->at[i].key.tag != V_UNDEF && !dict_set(it, d, from->at[i].key, from->at[i].val)) {
            return false;
        }
    }
    return true;
}

static bool merge_keys(interp *it, vdict *d, value from, value keys)
{
    value list = call_values(it, keys, NULL, 0);
    uint32_t n;
    value *at = IS_ERR(list) ? NULL : items_of(it, list, &n);
    if (!at) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        value v = get_index(it, from, at[i]);
        if (IS_ERR(v) || !dict_set(it, d, at[i], v)) {
            return false;
        }
    }
    return true;
}

static bool merge_pairs(interp *it, vdict *d, value from)
{
    value pairs = list_from(it, from);
    if (IS_ERR(pairs)) {
        return false;
    }
    for (uint32_t i = 0; i < pairs.u.list->n; i++) {
        value p = pairs.u.list->at[i];
        uint32_t n;
        value *at = items_of(it, p, &n);
        if (!at) {
            if (it->exc.tag != V_OBJ || !class_is(it->exc.u.obj->cls, exc_class(it, "TypeError"))) {
                return false;
            }
            it->exc = VUNDEF;
            type_error(it, "cannot convert dictionary update sequence element #%u to a sequence",
                       i);
            return false;
        }
        if (n != 2) {
            value_error(it, "dictionary update sequence element #%u has length %u; 2 is required",
                        i, n);
            return false;
        }
        if (!dict_set(it, d, at[0], at[1])) {
            return false;
        }
    }
    return true;
}

static bool update_from(interp *it, vdict *d, value from)
{
    if (from.tag == V_OBJ) {
        value keys = find_attr(it, from, intern_cstr(it->names, "keys"));
        if (IS_ERR(keys)) {
            return false;
        }
        if (keys.tag != V_UNDEF && from.u.obj->base.tag != V_DICT) {
            return merge_keys(it, d, from, keys);
        }
        if (from.u.obj->base.tag == V_DICT) {
            from = from.u.obj->base;
        }
    }
    return from.tag == V_DICT ? merge_dict(it, d, from.u.dict) : merge_pairs(it, d, from);
}

static value update_named(interp *it, const args *a, const char *name)
{
    vdict *d = it->native_self.u.dict;
    if (a->n > 1) {
        return type_error(it, "%s expected at most 1 argument, got %u", name, a->n);
    }
    if (a->n && !update_from(it, d, a->at[0])) {
        return VERR;
    }
    for (uint32_t i = 0; i < a->nkw; i++) {
        if (!dict_set(it, d, v_sym(it, a->kw[i]), a->at[a->n + i])) {
            return VERR;
        }
    }
    return VNONE;
}

static value dict_update(interp *it, const args *a)
{
    return update_named(it, a, "update");
}

static value dict_init(interp *it, const args *a)
{
    return update_named(it, a, "dict");
}

static value dict_m_copy(interp *it, const args *a)
{
    vdict *d = it->native_self.u.dict;
    return method_args(it, a, "dict", "copy", 0, 0) ? VPTR(V_DICT, dict_copy(it, d)) : VERR;
}

static value dict_m_clear(interp *it, const args *a)
{
    vdict *d = it->native_self.u.dict;
    if (!method_args(it, a, "dict", "clear", 0, 0)) {
        return VERR;
    }
    dict_clear(it, d);
    return VNONE;
}

static value dict_fromkeys(interp *it, const args *a)
{
    if (!method_args(it, a, "dict", "fromkeys", 1, 2)) {
        return VERR;
    }
    value d = v_dict(it), keys = list_from(it, a->at[0]);
    for (uint32_t i = 0; !IS_ERR(keys) && i < keys.u.list->n; i++) {
        if (!dict_set(it, d.u.dict, keys.u.list->at[i], a->n > 1 ? a->at[1] : VNONE)) {
            return VERR;
        }
    }
    return IS_ERR(keys) ? keys : d;
}

value dict_method(interp *it, value self, sym id)
{
    static const method table[] = {
        METHOD("get", dict_m_get),         METHOD("items", dict_items),
        METHOD("keys", dict_keys),         METHOD("values", dict_values),
        METHOD("pop", dict_pop),           METHOD("setdefault", dict_setdefault),
        METHOD("update", dict_update),     METHOD("copy", dict_m_copy),
        METHOD("clear", dict_m_clear),     METHOD("popitem", dict_popitem),
        METHOD("fromkeys", dict_fromkeys), METHOD("__init__", dict_init),
    };
    if (self.u.dict->dflt.tag != V_UNDEF && id == N(default_factory)) {
        return self.u.dict->dflt;
    }
    return method_bind(it, table, COUNT(table), self, id);
}

// ---- set

static bool add_all(interp *it, vdict *s, value from)
{
    if (from.tag == V_SET || from.tag == V_DICT) {
        const vdict *d = from.u.dict;
        for (uint32_t i = 0; i < d->n; i++) {
            if (d->at[i].key.tag != V_UNDEF && !dict_set(it, s, d->at[i].key, VNONE)) {
                return false;
            }
        }
        return true;
    }
    value l = list_from(it, from);
    for (uint32_t i = 0; !IS_ERR(l) && i < l.u.list->n; i++) {
        if (!dict_set(it, s, l.u.list->at[i], VNONE)) {
            return false;
        }
    }
    return !IS_ERR(l);
}

// 1 in the set, 0 not, -1 error
static int has(interp *it, vdict *s, value v)
{
    value r = dict_get(it, s, v);
    return IS_ERR(r) ? -1 : r.tag != V_UNDEF;
}

// Removes from s what is in other (or, with keep, what is not).
static bool filter_set(interp *it, vdict *s, vdict *other, bool keep)
{
    const vdict *all = dict_copy(it, s);
    for (uint32_t i = 0; i < all->n; i++) {
        int in = has(it, other, all->at[i].key);
        if (in < 0 || ((in == 1) != keep && dict_del(it, s, all->at[i].key) < 0)) {
            return false;
        }
    }
    return true;
}

typedef enum set_op { SET_UNION, SET_AND, SET_MINUS, SET_XOR } set_op;

static bool apply(interp *it, vdict *s, set_op op, value with)
{
    if (op == SET_UNION) {
        return add_all(it, s, with);
    }
    vdict *other = set_from(it, with);
    if (!other) {
        return false;
    }
    if (op != SET_XOR) {
        return filter_set(it, s, other, op == SET_AND);
    }
    const vdict *both = dict_copy(it, other);
    for (uint32_t i = 0; i < both->n; i++) {
        int in = has(it, s, both->at[i].key);
        if (in < 0 || (in && dict_del(it, s, both->at[i].key) < 0) ||
            (!in && !dict_set(it, s, both->at[i].key, VNONE))) {
            return false;
        }
    }
    return true;
}

static value set_apply(interp *it, const args *a, set_op op, const char *name, bool in_place)
{
    value self = it->native_self;
    if (!method_args(it, a, "set", name, op == SET_XOR ? 1 : 0, op == SET_XOR ? 1 : UINT32_MAX)) {
        return VERR;
    }
    vdict *s = in_place ? self.u.dict : dict_copy(it, self.u.dict);
    for (uint32_t i = 0; i < a->n; i++) {
        if (!apply(it, s, op, a->at[i])) {
            return VERR;
        }
    }
    return in_place ? VNONE : VPTR(V_SET, s);
}

#define SET_OP(name, op, in_place)                                                                 \
    static value set_##name(interp *it, const args *a)                                             \
    {                                                                                              \
        return set_apply(it, a, op, #name, in_place);                                              \
    }
SET_OP(union, SET_UNION, false)
SET_OP(intersection, SET_AND, false)
SET_OP(difference, SET_MINUS, false)
SET_OP(symmetric_difference, SET_XOR, false)
SET_OP(update, SET_UNION, true)
SET_OP(intersection_update, SET_AND, true)
SET_OP(difference_update, SET_MINUS, true)
SET_OP(symmetric_difference_update, SET_XOR, true)

static value set_add(interp *it, const args *a)
{
    vdict *s = it->native_self.u.dict;
    return method_args(it, a, "set", "add", 1, 1) && dict_set(it, s, a->at[0], VNONE) ? VNONE
                                                                                      : VERR;
}

static value set_remove(interp *it, const args *a)
{
    vdict *s = it->native_self.u.dict;
    int r = method_args(it, a, "set", "remove", 1, 1) ? dict_del(it, s, a->at[0]) : -1;
    return r < 0 ? VERR : r ? VNONE : key_error(it, a->at[0]);
}

static value set_discard(interp *it, const args *a)
{
    vdict *s = it->native_self.u.dict;
    int r = method_args(it, a, "set", "discard", 1, 1) ? dict_del(it, s, a->at[0]) : -1;
    return r < 0 ? VERR : VNONE;
}

static value set_pop(interp *it, const args *a)
{
    value self = it->native_self;
    if (!method_args(it, a, "set", "pop", 0, 0)) {
        return VERR;
    }
    viter s;
    value v;
    if (!iter_init(it, &s, self)) {
        return VERR;
    }
    int r = iter_next(it, &s, &v);
    if (r == 0) {
        return key_error(it, v_cstr(it, "pop from an empty set"));
    }
    return r < 0 || dict_del(it, self.u.dict, v) < 0 ? VERR : v;
}

static value set_clear(interp *it, const args *a)
{
    vdict *s = it->native_self.u.dict;
    if (!method_args(it, a, "set", "clear", 0, 0)) {
        return VERR;
    }
    dict_clear(it, s);
    return VNONE;
}

static value set_copy(interp *it, const args *a)
{
    value self = it->native_self;
    if (!method_args(it, a, "set", "copy", 0, 0)) {
        return VERR;
    }
    return self.u.dict->dflt.tag == V_ELLIPSIS ? self : VPTR(V_SET, dict_copy(it, self.u.dict));
}

static value subset_of(interp *it, const vdict *x, vdict *y, bool disjoint)
{
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->at[i].key.tag == V_UNDEF) {
            continue;
        }
        int in = has(it, y, x->at[i].key);
        if (in < 0) {
            return VERR;
        }
        if ((in == 1) == disjoint) {
            return VBOOL(false);
        }
    }
    return VBOOL(true);
}

static value set_relation(interp *it, const args *a, const char *name, bool swap, bool disjoint)
{
    vdict *s = it->native_self.u.dict, *o = NULL;
    if (!method_args(it, a, "set", name, 1, 1) || !(o = set_from(it, a->at[0]))) {
        return VERR;
    }
    return swap ? subset_of(it, o, s, disjoint) : subset_of(it, s, o, disjoint);
}

static value set_issubset(interp *it, const args *a)
{
    return set_relation(it, a, "issubset", false, false);
}

static value set_issuperset(interp *it, const args *a)
{
    return set_relation(it, a, "issuperset", true, false);
}

static value set_isdisjoint(interp *it, const args *a)
{
    return set_relation(it, a, "isdisjoint", false, true);
}

static value set_init(interp *it, const args *a)
{
    vdict *s = it->native_self.u.dict;
    if (!method_args(it, a, "set", "__init__", 0, 1)) {
        return VERR;
    }
    value from = a->n ? list_from(it, a->at[0]) : v_list(it, NULL, 0);
    if (IS_ERR(from)) {
        return VERR;
    }
    dict_clear(it, s);
    return add_all(it, s, from) ? VNONE : VERR;
}

value set_method(interp *it, value self, sym id)
{
    static const method both[] = {
        METHOD("union", set_union),
        METHOD("intersection", set_intersection),
        METHOD("difference", set_difference),
        METHOD("symmetric_difference", set_symmetric_difference),
        METHOD("issubset", set_issubset),
        METHOD("issuperset", set_issuperset),
        METHOD("isdisjoint", set_isdisjoint),
        METHOD("copy", set_copy),
    };
    static const method mutable[] = {
        METHOD("add", set_add),
        METHOD("remove", set_remove),
        METHOD("discard", set_discard),
        METHOD("pop", set_pop),
        METHOD("clear", set_clear),
        METHOD("update", set_update),
        METHOD("intersection_update", set_intersection_update),
        METHOD("difference_update", set_difference_update),
        METHOD("symmetric_difference_update", set_symmetric_difference_update),
        METHOD("__init__", set_init),
    };
    if (self.u.dict->dflt.tag != V_ELLIPSIS) {
        value v = method_bind(it, mutable, COUNT(mutable), self, id);
        if (v.tag != V_UNDEF) {
            return v;
        }
    }
    return method_bind(it, both, COUNT(both), self, id);
}
