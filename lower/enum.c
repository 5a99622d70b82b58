// Enum and Flag: members, lookup by value, operators.
#include "lower/class.h"

#include <string.h>

static value enum_member(interp *it, vclass *c, sym id, value v)
{
    vobj *o = NEW(it->mem, vobj);
    o->cls = c;
    o->base = VUNDEF;
    value inner = v;
    value init = class_lookup(c, N(__init__));
    if (init.tag == V_FUNC && init.u.func->module && !init.u.func->module->builtin) {
        // class Planet(Enum): EARTH = (a, b) calls __init__(self, a, b)
        value self = {.tag = V_OBJ, .u.obj = o};
        attrs_set(it, &o->attrs, N(_value_), v);
        attrs_set(it, &o->attrs, N(_name_), v_sym(it, id));
        value *parts = v.tag == V_TUPLE ? v.u.tuple->at : &v;
        uint32_t n = v.tag == V_TUPLE ? v.u.tuple->n : 1;
        if (IS_ERR(call_special(it, self, N(__init__), parts, n))) {
            return VERR;
        }
        inner = attrs_get(&o->attrs, N(_value_));
    }
    if (c->is_int_enum || c->is_str || c->is_int) {
        o->base = inner;
    }
    attrs_set(it, &o->attrs, N(_value_), inner);
    attrs_set(it, &o->attrs, N(_name_), v_sym(it, id));
    return (value){.tag = V_OBJ, .u.obj = o};
}

bool enum_finish(interp *it, vclass *c)
{
    c->enum_members = v_list(it, NULL, 0);
    int64_t last = 0;
    bool any = false;
    uint32_t n = c->attrs.n;
    for (uint32_t i = 0; i < n; i++) {
        sym id = c->attrs.at[i].id;
        value v = c->attrs.at[i].val;
        if (id->text[0] == '_' || attr_is_descriptor(v)) {
            continue;
        }
        if (v.tag == V_OBJ && strcmp(v.u.obj->cls->id->text, "auto") == 0) {
            if (c->is_flag) {
                int64_t bit = 1;
                while (any && bit <= last) {
                    bit <<= 1;
                }
                v = VINT(bit);
            } else {
                value gen = class_lookup(c, N(_generate_next_value_));
                if (gen.tag == V_FUNC || gen.tag == V_DESCR) {
                    value f = gen.tag == V_DESCR ? gen.u.descr->get : gen;
                    value lasts = v_list(it, NULL, 0);
                    v = call_values(it, f,
                                    (value[]){v_sym(it, id), VINT(1),
                                              VINT((int64_t)c->enum_members.u.list->n), lasts},
                                    4);
                    if (IS_ERR(v)) {
                        return false;
                    }
                } else if (c->is_str) {
                    textbuf t;
                    text_init(&t, it->mem);
                    for (const char *p = id->text; *p; p++) {
                        text_char(&t, *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p);
                    }
                    v = v_str(it, t.at, t.len);
                } else {
                    v = VINT(any ? last + 1 : 1);
                }
            }
        }
        if (v.tag == V_INT) {
            last = !any || v.u.i > last ? v.u.i : last;
            any = true;
        }
        // A second name for a value is an alias.
        value member = VUNDEF;
        for (uint32_t k = 0; k < c->enum_members.u.list->n; k++) {
            value m = c->enum_members.u.list->at[k];
            value mv = attrs_get(&m.u.obj->attrs, N(_value_));
            if (mv.tag == v.tag && equal(it, mv, v) == 1) {
                member = m;
            }
        }
        if (member.tag == V_UNDEF) {
            member = enum_member(it, c, id, v);
            if (IS_ERR(member)) {
                return false;
            }
            list_push(it, c->enum_members.u.list, member);
        }
        c->attrs.at[i].val = member;
    }
    return true;
}

static value flag_member(interp *it, vclass *c, int64_t bits)
{
    textbuf t;
    text_init(&t, it->mem);
    int64_t left = bits;
    for (uint32_t k = 0; k < c->enum_members.u.list->n; k++) {
        value m = c->enum_members.u.list->at[k];
        value mv = attrs_get(&m.u.obj->attrs, N(_value_));
        if (mv.u.i == bits) {
            return m;
        }
        if (mv.u.i && (mv.u.i & (mv.u.i - 1)) == 0 && (bits & mv.u.i)) {
            text_printf(&t, "%s%s", t.len ? "|" : "",
                        attrs_get(&m.u.obj->attrs, N(_name_)).u.str->p);
            left &= ~mv.u.i;
        }
    }
    if (left) {
        return value_error(it, "%lld is not a valid %s", (long long)bits, c->id->text);
    }
    value m = enum_member(it, c, intern_add(it->names, t.at, t.len), VINT(bits));
    if (!t.len) {
        attrs_set(it, &m.u.obj->attrs, N(_name_), VNONE);
    }
    return m;
}

value enum_lookup(interp *it, vclass *c, const args *a)
{
    if (a->n != 1) {
        return type_error(it, "%s() takes one value", c->id->text);
    }
    value v = a->at[0];
    if (v.tag == V_OBJ && v.u.obj->cls == c) {
        return v;
    }
    for (uint32_t k = 0; k < c->enum_members.u.list->n; k++) {
        value m = c->enum_members.u.list->at[k];
        int e = equal(it, attrs_get(&m.u.obj->attrs, N(_value_)), v);
        if (e) {
            return e < 0 ? VERR : m;
        }
    }
    if (c->is_flag && v.tag == V_INT) {
        return flag_member(it, c, v.u.i);
    }
    value miss = class_lookup(c, N(_missing_));
    if (miss.tag == V_DESCR) {
        value r = call_values(it, miss.u.descr->get, (value[]){{.tag = V_CLASS, .u.cls = c}, v}, 2);
        if (r.tag != V_NONE) {
            return r;
        }
    }
    value r = v_repr(it, v);
    return IS_ERR(r) ? r : value_error(it, "%s is not a valid %s", r.u.str->p, c->id->text);
}

static value auto_new(interp *it, vclass *c, const args *a)
{
    (void)a;
    vobj *o = NEW(it->mem, vobj);
    o->cls = c;
    o->base = VUNDEF;
    return (value){.tag = V_OBJ, .u.obj = o};
}

static value flag_op(interp *it, const args *a)
{
    int64_t which = it->native_self.u.i;
    value x = a->at[0];
    int64_t i = attrs_get(&x.u.obj->attrs, N(_value_)).u.i, j = 0;
    if (which < 3) {
        if (a->n < 2 || a->at[1].tag != V_OBJ || a->at[1].u.obj->cls != x.u.obj->cls) {
            return VTAG(V_NOTIMPLEMENTED);
        }
        j = attrs_get(&a->at[1].u.obj->attrs, N(_value_)).u.i;
    }
    int64_t all = 0;
    for (uint32_t k = 0; k < x.u.obj->cls->enum_members.u.list->n; k++) {
        all |= attrs_get(&x.u.obj->cls->enum_members.u.list->at[k].u.obj->attrs, N(_value_)).u.i;
    }
    switch (which) {
    case 0: return flag_member(it, x.u.obj->cls, i | j);
    case 1: return flag_member(it, x.u.obj->cls, i & j);
    case 2: return flag_member(it, x.u.obj->cls, i ^ j);
    case 3: return flag_member(it, x.u.obj->cls, all & ~i);
    case 4: return VBOOL(i != 0);
    default:
        return VBOOL(a->n == 2 && a->at[1].tag == V_OBJ &&
                     (i & attrs_get(&a->at[1].u.obj->attrs, N(_value_)).u.i) ==
                         attrs_get(&a->at[1].u.obj->attrs, N(_value_)).u.i);
    }
}

void enum_natives(interp *it, vmodule *m)
{
    it->enum_cls = class_native(it, m, "Enum", NULL);
    it->enum_cls->is_enum = true;
    it->enum_cls->enum_members = v_list(it, NULL, 0);
    it->int_enum_cls = class_native(it, m, "IntEnum", it->enum_cls);
    it->int_enum_cls->is_int_enum = true;
    it->int_enum_cls->enum_members = v_list(it, NULL, 0);
    vclass *str_enum = class_native(it, m, "StrEnum", it->enum_cls);
    str_enum->is_int_enum = str_enum->is_str = true;
    str_enum->enum_members = v_list(it, NULL, 0);
    it->flag_cls = class_native(it, m, "Flag", it->enum_cls);
    it->flag_cls->is_flag = true;
    it->flag_cls->enum_members = v_list(it, NULL, 0);
    vclass *int_flag = class_native(it, m, "IntFlag", it->flag_cls);
    int_flag->is_int_enum = true;
    int_flag->enum_members = v_list(it, NULL, 0);
    const sym ops[] = {N(__or__),     N(__and__),  N(__xor__),
                       N(__invert__), N(__bool__), N(__contains__)};
    for (int i = 0; i < 6; i++) {
        attrs_set(it, &it->flag_cls->attrs, ops[i],
                  v_bound_native(it, ops[i]->text, flag_op, VINT(i)));
    }
    class_native(it, m, "auto", NULL)->native_new = auto_new;
}
