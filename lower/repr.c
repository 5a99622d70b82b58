// repr() and str() of values, in CPython's layout.
#include "lower/chars.h"
#include "lower/interp.h"

#include <stdio.h>
#include <string.h>

static void repr_str(const vstr *s, textbuf *out, bool bytes)
{
    bool single = memchr(s->p, '\'', s->len) != NULL, dbl = memchr(s->p, '"', s->len) != NULL;
    char q = single && !dbl ? '"' : '\'';
    if (bytes) {
        text_char(out, 'b');
    }
    text_char(out, q);
    for (const char *p = s->p, *end = p + s->len; p < end;) {
        const char *from = p;
        uint32_t c = utf8_next(&p, end, bytes);
        if (c == (unsigned char)q || c == '\\') {
            text_char(out, '\\');
            text_char(out, (char)c);
        } else if (c == '\n') {
            text_cstr(out, "\\n");
        } else if (c == '\r') {
            text_cstr(out, "\\r");
        } else if (c == '\t') {
            text_cstr(out, "\\t");
        } else if (c < 0x20 || c == 0x7f || (c >= 0x80 && (bytes || !char_is_printable(c)))) {
            text_printf(out,
                        c < 0x100     ? "\\x%02x"
                        : c < 0x10000 ? "\\u%04x"
                                      : "\\U%08x",
                        (unsigned)c);
        } else {
            text_add(out, from, (size_t)(p - from));
        }
    }
    text_char(out, q);
}

static bool repr_items(interp *it, const value *at, uint32_t n, textbuf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i) {
            text_cstr(out, ", ");
        }
        if (!repr_into(it, at[i], out)) {
            return false;
        }
    }
    return true;
}

static bool repr_dict(interp *it, const vdict *d, bool set, textbuf *out)
{
    bool first = true;
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->at[i].key.tag == V_UNDEF) {
            continue;
        }
        if (!first) {
            text_cstr(out, ", ");
        }
        first = false;
        if (!repr_into(it, d->at[i].key, out)) {
            return false;
        }
        if (!set) {
            text_cstr(out, ": ");
            if (!repr_into(it, d->at[i].val, out)) {
                return false;
            }
        }
    }
    return true;
}

// A container that is already being printed shows as [...]: linked list of those open.
typedef struct open_repr {
    const struct open_repr *prev;
    const void *p;
} open_repr;

static bool repr_container(interp *it, value v, textbuf *out)
{
    static const char *const opening[] = {
        [V_LIST] = "[", [V_TUPLE] = "(", [V_DICT] = "{", [V_SET] = "{"};
    static const char *const closing[] = {
        [V_LIST] = "]", [V_TUPLE] = ")", [V_DICT] = "}", [V_SET] = "}"};
    for (const open_repr *o = it->open_repr; o; o = o->prev) {
        if (o->p == v.u.p) {
            text_printf(out, "%s...%s", opening[v.tag], closing[v.tag]);
            return true;
        }
    }
    if (!stack_ok(it)) {
        return false;
    }
    if (v.tag == V_SET) {
        set_settle(it, v.u.dict);
    }
    open_repr me = {it->open_repr, v.u.p};
    it->open_repr = &me;
    bool ok = true;
    if (v.tag == V_SET && v.u.dict->dflt.tag == V_ELLIPSIS) {
        text_cstr(out, v.u.dict->live ? "frozenset({" : "frozenset(");
        ok = repr_dict(it, v.u.dict, true, out);
        text_cstr(out, v.u.dict->live ? "})" : ")");
    } else if (v.tag == V_SET && v.u.dict->live == 0) {
        text_cstr(out, "set()");
    } else {
        text_cstr(out, opening[v.tag]);
        if (v.tag == V_LIST) {
            ok = repr_items(it, v.u.list->at, v.u.list->n, out);
        } else if (v.tag == V_TUPLE) {
            ok = repr_items(it, v.u.tuple->at, v.u.tuple->n, out);
            if (v.u.tuple->n == 1) {
                text_char(out, ',');
            }
        } else {
            ok = repr_dict(it, v.u.dict, v.tag == V_SET, out);
        }
        text_cstr(out, closing[v.tag]);
    }
    it->open_repr = me.prev;
    return ok;
}

// An instance whose repr is ours: "..." inside itself.
static bool repr_object(interp *it, value v, textbuf *out)
{
    if (!stack_ok(it)) {
        return false;
    }
    if (!v.u.obj->cls->is_dataclass) {
        return obj_repr(it, v, out);
    }
    for (const open_repr *o = it->open_repr; o; o = o->prev) {
        if (o->p == v.u.p) {
            text_cstr(out, "...");
            return true;
        }
    }
    open_repr me = {it->open_repr, v.u.p};
    it->open_repr = &me;
    bool ok = obj_repr(it, v, out);
    it->open_repr = me.prev;
    return ok;
}

static bool repr_named_tuple(interp *it, const vtuple *t, textbuf *out)
{
    if (!stack_ok(it)) {
        return false;
    }
    text_printf(out, "%s(", t->cls->id->text);
    for (uint32_t i = 0; i < t->n; i++) {
        text_printf(out, "%s%s=", i ? ", " : "", t->cls->fields[i].id->text);
        if (!repr_into(it, t->at[i], out)) {
            return false;
        }
    }
    text_char(out, ')');
    return true;
}

bool repr_into(interp *it, value v, textbuf *out)
{
    char num[40];
    switch ((vtag)v.tag) {
    case V_NONE: text_cstr(out, "None"); return true;
    case V_BOOL: text_cstr(out, v.u.b ? "True" : "False"); return true;
    case V_INT: text_printf(out, "%lld", (long long)v.u.i); return true;
    case V_FLOAT:
        text_double(num, v.u.d);
        text_cstr(out, num);
        return true;
    case V_ELLIPSIS: text_cstr(out, "Ellipsis"); return true;
    case V_NOTIMPLEMENTED: text_cstr(out, "NotImplemented"); return true;
    case V_STR: repr_str(v.u.str, out, false); return true;
    case V_BYTES: repr_str(v.u.str, out, true); return true;
    case V_TUPLE:
        if (v.u.tuple->cls && v.u.tuple->cls->is_namedtuple) {
            return repr_named_tuple(it, v.u.tuple, out);
        }
        return repr_container(it, v, out);
    case V_LIST:
    case V_DICT:
    case V_SET: return repr_container(it, v, out);
    case V_RANGE: {
        const vrange *r = v.u.range;
        text_printf(out, "range(%lld, %lld", (long long)r->start, (long long)r->stop);
        if (r->step != 1) {
            text_printf(out, ", %lld", (long long)r->step);
        }
        text_char(out, ')');
        return true;
    }
    case V_SLICE:
        text_cstr(out, "slice(");
        if (!stack_ok(it) ||
            !repr_items(it, (value[]){v.u.slice->start, v.u.slice->stop, v.u.slice->step}, 3,
                        out)) {
            return false;
        }
        text_char(out, ')');
        return true;
    case V_FUNC: text_printf(out, "<function %s>", v.u.func->id->text); return true;
    case V_NATIVE: text_printf(out, "<built-in function %s>", v.u.native->name); return true;
    case V_METHOD: text_cstr(out, "<bound method>"); return true;
    case V_BUILTIN_METHOD: text_cstr(out, "<built-in method>"); return true;
    case V_CLASS:
        if (v.u.cls->is_enum) {
            text_printf(out, "<enum '%s'>", v.u.cls->id->text);
        } else if (v.u.cls->module && !v.u.cls->is_exception) {
            text_printf(out, "<class '%s.%s'>", v.u.cls->module->id->text, class_qualname(v.u.cls));
        } else {
            text_printf(out, "<class '%s'>", v.u.cls->id->text);
        }
        return true;
    case V_TYPE: text_printf(out, "<class '%s'>", vtype_name((vtype)v.u.i)); return true;
    case V_OBJ: return repr_object(it, v, out);
    case V_MODULE: text_printf(out, "<module '%s'>", v.u.module->id->text); return true;
    case V_OPAQUE: text_printf(out, "<unavailable '%s'>", v.u.opaque->path); return true;
    case V_DTYPE: text_cstr(out, dtype_name((dtype)v.u.i)); return true;
    case V_BUFFER: {
        static const char *const names[] = {"sbuf", "psum", "private_hbm", "shared_hbm"};
        text_printf(out, "MemoryRegion.%s", names[v.u.i]);
        return true;
    }
    case V_OP: text_printf(out, "nl.%s", op_table[v.u.i].name); return true;
    case V_ISA: text_printf(out, "<instruction %s>", isa_table[v.u.i].name); return true;
    case V_TENSOR:
        text_cstr(out, "tensor");
        tensor_describe(v.u.tensor, out);
        return true;
    case V_REG: text_printf(out, "register%u", v.u.reg->id); return true;
    case V_INSTR: text_cstr(out, "<instruction handle>"); return true;
    case V_DS:
        text_cstr(out, "ds(");
        if (!repr_into(it, v.u.ds->start, out)) {
            return false;
        }
        text_printf(out, ", %lld)", (long long)v.u.ds->size);
        return true;
    case V_ITER: text_cstr(out, "<iterator>"); return true;
    case V_DYNRANGE: text_cstr(out, "<dynamic_range>"); return true;
    case V_DESCR: text_printf(out, "<%s object>", vtype_name(type_of(v))); return true;
    case V_SUPER: text_cstr(out, "<super>"); return true;
    case V_UNDEF:
    case V_ERROR: break;
    }
    text_cstr(out, "<?>");
    return true;
}

// str() of an exception: its message.
static bool str_exception(interp *it, const vobj *o, textbuf *out)
{
    value a = attrs_get(&o->attrs, N(args));
    if (a.tag != V_TUPLE || a.u.tuple->n == 0) {
        return true;
    }
    if (a.u.tuple->n == 1) {
        if (class_is(o->cls, exc_class(it, "KeyError"))) {
            return repr_into(it, a.u.tuple->at[0], out);
        }
        return str_into(it, a.u.tuple->at[0], out);
    }
    return repr_into(it, a, out);
}

bool str_into(interp *it, value v, textbuf *out)
{
    if (v.tag == V_STR) {
        text_add(out, v.u.str->p, v.u.str->len);
        return true;
    }
    if (v.tag == V_OBJ) {
        value r = call_special(it, v, N(__str__), NULL, 0);
        if (IS_ERR(r)) {
            return false;
        }
        if (r.tag == V_STR) {
            return str_into(it, r, out);
        }
        if (r.tag != V_UNDEF) {
            type_error(it, "__str__ returned non-string (type %s)", type_name(it, r));
            return false;
        }
        if (v.u.obj->cls->is_exception && class_lookup(v.u.obj->cls, N(__repr__)).tag == V_UNDEF) {
            return str_exception(it, v.u.obj, out);
        }
        if (v.u.obj->cls->is_enum && class_lookup(v.u.obj->cls, N(__repr__)).tag == V_UNDEF) {
            if (v.u.obj->cls->is_int_enum) {
                return repr_into(it, attrs_get(&v.u.obj->attrs, N(_value_)), out);
            }
            value nm = attrs_get(&v.u.obj->attrs, N(_name_));
            text_printf(out, "%s.", v.u.obj->cls->id->text);
            return str_into(it, nm, out);
        }
        if (v.u.obj->base.tag == V_STR) {
            return str_into(it, v.u.obj->base, out);
        }
    }
    return repr_into(it, v, out);
}

value v_repr(interp *it, value v)
{
    textbuf t;
    text_init(&t, it->mem);
    return repr_into(it, v, &t) ? v_str(it, t.at, t.len) : VERR;
}

value v_strof(interp *it, value v)
{
    if (v.tag == V_STR) {
        return v;
    }
    textbuf t;
    text_init(&t, it->mem);
    return str_into(it, v, &t) ? v_str(it, t.at, t.len) : VERR;
}
