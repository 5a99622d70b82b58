// Classes: creation, attributes, instances; and what dataclass, Enum and NKIObject add.
#include "lower/interp.h"

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

// ---- enums

static bool is_descriptor(value v)
{
    return v.tag == V_FUNC || v.tag == V_DESCR || v.tag == V_CLASS || v.tag == V_NATIVE;
}

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

static bool finish_enum(interp *it, vclass *c)
{
    c->enum_members = v_list(it, NULL, 0);
    int64_t last = 0;
    bool any = false;
    uint32_t n = c->attrs.n;
    for (uint32_t i = 0; i < n; i++) {
        sym id = c->attrs.at[i].id;
        value v = c->attrs.at[i].val;
        if (id->text[0] == '_' || is_descriptor(v)) {
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

static value enum_lookup(interp *it, vclass *c, const args *a)
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

// ---- fields: dataclass, NKIObject, NamedTuple

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

// Collects a class's fields: inherited ones, then its annotations (and, for NKIObject, its plain
// class attributes) in the order of the text.
static bool collect_fields(interp *it, vclass *c, bool plain_too, bool kw_only)
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
        if (!known && id->text[0] != '_' && !is_descriptor(d)) {
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

static bool init_fields(interp *it, vclass *c, value self, const args *a)
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

static value new_namedtuple(interp *it, vclass *c, const args *a)
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
        return finish_enum(it, c);
    }
    if (c->is_namedtuple && c->nbases && c->bases[0] == it->namedtuple_cls) {
        return collect_fields(it, c, false, false);
    }
    if (c->is_nkiobject) {
        bool own_init = attrs_get(&c->attrs, N(__init__)).tag != V_UNDEF;
        for (uint32_t i = 1; i < c->nmro && !own_init; i++) {
            own_init = attrs_get(&c->mro[i]->attrs, N(__init__)).tag != V_UNDEF;
        }
        if (!own_init) {
            return collect_fields(it, c, true, false);
        }
        c->has_fields = false;
    }
    return true;
}

// ---- instances

static vtype payload_type(const vclass *c)
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

static value payload_new(interp *it, vclass *c, const args *a)
{
    vtype t = payload_type(c);
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
        return new_namedtuple(it, c, a);
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
        o->base = payload_new(it, c, a);
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
        return init_fields(it, c, self, a) ? self : VERR;
    }
    if ((a->n || a->nkw) && !c->is_exception && self.u.obj->base.tag == V_UNDEF &&
        maker.tag == V_UNDEF) {
        return type_error(it, "%s() takes no arguments", c->id->text);
    }
    return self;
}

// ---- attributes

static value bind_method(interp *it, value self, value f)
{
    vmethod *m = NEW(it->mem, vmethod);
    *m = (vmethod){self, f};
    return VPTR(V_METHOD, m);
}

// What an attribute found in a class means for an instance (or, self a class, for the class).
static value through_descriptor(interp *it, value self, vclass *c, value v, bool on_class)
{
    if (v.tag == V_FUNC) {
        return on_class ? v : bind_method(it, self, v);
    }
    if (v.tag != V_DESCR) {
        return v;
    }
    switch (v.u.descr->kind) {
    case DESCR_STATIC: return v.u.descr->get;
    case DESCR_CLASS: return bind_method(it, (value){.tag = V_CLASS, .u.cls = c}, v.u.descr->get);
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

static value class_value(vclass *c)
{
    return (value){.tag = V_CLASS, .u.cls = c};
}

static value bound_native(interp *it, const char *name, native_fn fn, value self);

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
        return bound_native(it, "with_traceback", native_with_traceback, obj);
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

static value class_attr(interp *it, value obj, sym id);

static value bound_native(interp *it, const char *name, native_fn fn, value self)
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
    return list_from(it, class_attr(it, it->native_self, N(__mro__)));
}

static value class_attr(interp *it, value obj, sym id)
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
        return bound_native(it, "mro", native_mro, obj);
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
        return bound_native(it, "fromkeys", class_fromkeys, obj);
    }
    if (payload_type(c) != T_OBJECT && !c->is_enum && id != N(__new__)) {
        v = type_attr(it, payload_type(c), id);
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

static value super_attr(interp *it, value obj, sym id);

static value native_make(interp *it, const args *a)
{
    value cls = it->native_self;
    uint32_t n;
    value *at = a->n ? items_of(it, a->at[0], &n) : NULL;
    if (!at) {
        return type_error(it, "_make() takes an iterable");
    }
    args b = {at, n, 0, NULL};
    return new_namedtuple(it, cls.u.cls, &b);
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

static value tuple_attr(interp *it, value obj, sym id)
{
    vclass *c = obj.u.tuple->cls;
    if (c) {
        for (uint32_t i = 0; i < c->nfields; i++) {
            if (c->fields[i].id == id) {
                return obj.u.tuple->at[i];
            }
        }
        if (id == N(_asdict)) {
            return bound_native(it, "_asdict", native_asdict, obj);
        }
        if (id == N(_replace)) {
            return bound_native(it, "_replace", native_replace, obj);
        }
        value v = class_attr(it, class_value(c), id);
        if (v.tag == V_FUNC) {
            return bind_method(it, obj, v);
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
    return VUNDEF;
}

static value native_set(interp *it, const args *a);

static value descr_attr(interp *it, value obj, sym id)
{
    // @x.setter, @x.getter, @x.deleter
    if (obj.u.descr->kind == DESCR_PROPERTY &&
        (strcmp(id->text, "setter") == 0 || strcmp(id->text, "getter") == 0 ||
         strcmp(id->text, "deleter") == 0)) {
        return bound_native(it, id->text, native_set,
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
            return bound_native(it, "_make", native_make, obj);
        }
        return class_attr(it, obj, id);
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
    case V_TUPLE: return tuple_attr(it, obj, id);
    case V_FUNC: return func_attr(it, obj, id);
    case V_SUPER: return super_attr(it, obj, id);
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
    return init_fields(it,
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
    o->base = payload_new(it, c, &rest);
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

static value super_attr(interp *it, value obj, sym id)
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
                    return bind_method(it, s->self, v);
                }
                return through_descriptor(it, s->self, c, v, on_class && v.tag != V_DESCR);
            }
            if (id == N(__init__) && c->mro[i]->has_fields) {
                return bound_native(it, "__init__", native_field_init, s->self);
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
        return bound_native(it, "__init__",
                            c->is_exception ? native_exception_init : native_object_init, s->self);
    }
    if (id == N(__new__)) {
        return v_native(it, "__new__", native_object_new);
    }
    if (id == N(__setattr__)) {
        return bound_native(it, "__setattr__", native_object_setattr, s->self);
    }
    if (id == N(__init_subclass__) || id == N(__post_init__)) {
        return bound_native(it, "__init_subclass__", native_object_init, s->self);
    }
    if (id == N(__repr__) || id == N(__str__)) {
        if (s->self.tag == V_OBJ && s->self.u.obj->base.tag == V_UNDEF && !c->is_exception &&
            !c->is_dataclass) {
            return bound_native(it, "__repr__", native_object_repr, s->self);
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

static int fields_equal(interp *it, value a, value b, bool *lt)
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
            return fields_equal(it, a, b, NULL);
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

// ---- natives for stdlib's dataclasses, enum and typing

static value data_order(interp *it, const args *a);

static value make_dataclass(interp *it, value cls, value frozen, value order, value eq,
                            value kw_only, value repr, value hash)
{
    if (cls.tag != V_CLASS) {
        return type_error(it, "dataclass() should be applied to a class");
    }
    vclass *c = cls.u.cls;
    bool plain = c->is_nkiobject;
    if (!collect_fields(it, c, plain, kw_only.tag == V_BOOL && kw_only.u.b) ||
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
            attrs_set(it, &c->attrs, ids[i], bound_native(it, names[i], data_order, VINT(i)));
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
    int e = fields_equal(it, a->at[0], a->at[1], &lt);
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
        return bound_native(it, "dataclass", native_dataclass_apply, v_tuple(it, p, 11));
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

// Enum("Color", "RED GREEN") is rare; classes are what kernels use.
static value enum_new(interp *it, vclass *c, const args *a)
{
    (void)a;
    return type_error(it, "%s is not instantiated by a call; define a class", c->id->text);
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

static vclass *native_class(interp *it, vmodule *m, const char *name, vclass *base)
{
    vclass **bases = NEW_N(it->mem, vclass *, 1);
    bases[0] = base;
    vclass *c = class_new(it, intern_cstr(it->names, name), bases, base ? 1 : 0, NULL);
    attrs_set(it, &m->attrs, intern_cstr(it->names, name), class_value(c));
    return c;
}

void class_natives(interp *it, vmodule *m)
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
    it->enum_cls = native_class(it, m, "Enum", NULL);
    it->enum_cls->is_enum = true;
    it->enum_cls->enum_members = v_list(it, NULL, 0);
    it->int_enum_cls = native_class(it, m, "IntEnum", it->enum_cls);
    it->int_enum_cls->is_int_enum = true;
    it->int_enum_cls->enum_members = v_list(it, NULL, 0);
    vclass *str_enum = native_class(it, m, "StrEnum", it->enum_cls);
    str_enum->is_int_enum = str_enum->is_str = true;
    str_enum->enum_members = v_list(it, NULL, 0);
    it->flag_cls = native_class(it, m, "Flag", it->enum_cls);
    it->flag_cls->is_flag = true;
    it->flag_cls->enum_members = v_list(it, NULL, 0);
    vclass *int_flag = native_class(it, m, "IntFlag", it->flag_cls);
    int_flag->is_int_enum = true;
    int_flag->enum_members = v_list(it, NULL, 0);
    const sym ops[] = {N(__or__),     N(__and__),  N(__xor__),
                       N(__invert__), N(__bool__), N(__contains__)};
    for (int i = 0; i < 6; i++) {
        attrs_set(it, &it->flag_cls->attrs, ops[i],
                  bound_native(it, ops[i]->text, flag_op, VINT(i)));
    }
    native_class(it, m, "auto", NULL)->native_new = auto_new;
    (void)enum_new;
    it->nkiobject_cls = native_class(it, m, "NKIObject", NULL);
    it->nkiobject_cls->is_nkiobject = true;
    it->namedtuple_cls = native_class(it, m, "NamedTuple", NULL);
    it->namedtuple_cls->is_namedtuple = true;
    it->namedtuple_cls->has_fields = true;
    attrs_set(it, &m->attrs, intern_cstr(it->names, "FrozenInstanceError"),
              class_value(exc_class(it, "FrozenInstanceError")));
    attrs_set(it, &m->attrs, intern_cstr(it->names, "NkiValidationError"),
              class_value(exc_class(it, "NkiValidationError")));
}
