// What is inside a value: `in`, indices and slices, read, set and deleted.
#include "lower/interp.h"

#include <math.h>
#include <string.h>

value contains(interp *it, value c, value item)
{
    switch ((vtag)c.tag) {
    case V_STR:
        if (item.tag != V_STR) {
            return type_error(it, "'in <string>' requires string as left operand, not %s",
                              type_name(it, item));
        }
        return VBOOL(str_find(c.u.str, item.u.str, 0) >= 0);
    case V_DICT:
    case V_SET: {
        value v = dict_get(it, c.u.dict, item);
        return IS_ERR(v) ? VERR : VBOOL(v.tag != V_UNDEF);
    }
    case V_RANGE:
        if (item.tag == V_FLOAT && item.u.d == floor(item.u.d) && fabs(item.u.d) < 9e18) {
            item = VINT((int64_t)item.u.d);
        }
        if (item.tag != V_OBJ && item.tag != V_INT && item.tag != V_BOOL) {
            return VBOOL(false);
        }
        if (item.tag == V_INT || item.tag == V_BOOL) {
            const vrange *r = c.u.range;
            int64_t i = as_int(item);
            bool in = r->step > 0 ? i >= r->start && i < r->stop : i <= r->start && i > r->stop;
            uint64_t d =
                r->step > 0 ? (uint64_t)i - (uint64_t)r->start : (uint64_t)r->start - (uint64_t)i;
            return VBOOL(in && d % (r->step > 0 ? (uint64_t)r->step : 0 - (uint64_t)r->step) == 0);
        }
        break;
    case V_OBJ: {
        value r = call_special(it, c, N(__contains__), &item, 1);
        if (r.tag != V_UNDEF) {
            int t = IS_ERR(r) ? -1 : truth(it, r);
            return t < 0 ? VERR : VBOOL(t);
        }
        if (c.u.obj->base.tag != V_UNDEF) {
            return contains(it, c.u.obj->base, item);
        }
        break;
    }
    case V_CLASS:
        if (c.u.cls->is_enum) {
            return VBOOL(item.tag == V_OBJ && item.u.obj->cls == c.u.cls);
        }
        break;
    default: break;
    }
    viter s;
    if (!iter_init(it, &s, c)) {
        it->exc = VUNDEF;
        return type_error(it, "argument of type '%s' is not iterable", type_name(it, c));
    }
    value x;
    int r;
    while ((r = iter_next(it, &s, &x)) == 1) {
        int e = is_same(x, item) ? 1 : equal(it, x, item);
        if (e) {
            return e < 0 ? VERR : VBOOL(true);
        }
        if (!interp_step(it)) {
            return VERR;
        }
    }
    return r < 0 ? VERR : VBOOL(false);
}

bool as_index(interp *it, value v, int64_t *out)
{
    if (v.tag == V_INT || v.tag == V_BOOL) {
        *out = as_int(v);
        return true;
    }
    value r = call_special(it, v, N(__index__), NULL, 0);
    if (r.tag == V_INT) {
        *out = r.u.i;
        return true;
    }
    if (v.tag == V_OBJ && v.u.obj->base.tag == V_INT) {
        *out = v.u.obj->base.u.i;
        return true;
    }
    if (v.tag == V_TENSOR) {
        no_elements(it, "a tensor as an integer",
                    "nisa.register_load reads one into a register on the device");
    } else if (!IS_ERR(r)) {
        type_error(it, "'%s' object cannot be interpreted as an integer", type_name(it, v));
    }
    return false;
}

void slice_bounds(const vslice *s, int64_t n, int64_t *start, int64_t *stop, int64_t *step)
{
    *step = s->step.tag == V_NONE ? 1 : as_int(s->step);
    int64_t lo = *step < 0 ? -1 : 0, hi = *step < 0 ? n - 1 : n;
    int64_t a = s->start.tag == V_NONE ? (*step < 0 ? hi : lo) : as_int(s->start);
    int64_t b = s->stop.tag == V_NONE ? (*step < 0 ? lo : hi) : as_int(s->stop);
    if (s->start.tag != V_NONE) {
        a = a < 0 ? (a + n < lo ? lo : a + n) : a > hi ? hi : a;
    }
    if (s->stop.tag != V_NONE) {
        b = b < 0 ? (b + n < lo ? lo : b + n) : b > hi ? hi : b;
    }
    *start = a;
    *stop = b;
}

bool slice_indices(interp *it, const vslice *s, int64_t n, int64_t *start, int64_t *step,
                   int64_t *count)
{
    value part[] = {s->start, s->stop, s->step};
    vslice t = *s;
    for (int i = 0; i < 3; i++) {
        if (part[i].tag != V_NONE && part[i].tag != V_INT) {
            int64_t x;
            if (!as_index(it, part[i], &x)) {
                it->exc = VUNDEF;
                type_error(it,
                           "slice indices must be integers or None or have an __index__ method");
                return false;
            }
            *(i == 0 ? &t.start : i == 1 ? &t.stop : &t.step) = VINT(x);
        }
    }
    if (t.step.tag == V_INT && t.step.u.i == 0) {
        value_error(it, "slice step cannot be zero");
        return false;
    }
    int64_t stop;
    slice_bounds(&t, n, start, &stop, step);
    *count = *step > 0 ? (*start < stop ? (stop - *start - 1) / *step + 1 : 0)
                       : (*start > stop ? (*start - stop - 1) / -*step + 1 : 0);
    return true;
}

static value index_seq(interp *it, value obj, value key, const value *at, uint32_t n)
{
    const char *what = obj.tag == V_LIST ? "list" : "tuple";
    if (key.tag == V_SLICE) {
        int64_t start, step, count;
        if (!slice_indices(it, key.u.slice, n, &start, &step, &count)) {
            return VERR;
        }
        value *out = NEW_N(it->mem, value, (size_t)count);
        for (int64_t i = 0; i < count; i++) {
            out[i] = at[start + i * step];
        }
        return obj.tag == V_LIST ? v_list(it, out, (uint32_t)count)
                                 : v_tuple(it, out, (uint32_t)count);
    }
    int64_t i;
    if (key.tag == V_INT) {
        i = key.u.i;
    } else if (!as_index(it, key, &i)) {
        it->exc = VUNDEF;
        return type_error(it, "%s indices must be integers or slices, not %s", what,
                          type_name(it, key));
    }
    i = i < 0 ? i + n : i;
    if (i < 0 || i >= n) {
        return raise_msg(it, "IndexError", "%s index out of range", what);
    }
    return at[i];
}

static value index_dict(interp *it, value obj, value key)
{
    vdict *d = obj.u.dict;
    value v = dict_get(it, d, key);
    if (v.tag != V_UNDEF) {
        return v;
    }
    if (d->dflt.tag != V_UNDEF && d->dflt.tag != V_NONE) {
        v = call_values(it, d->dflt, NULL, 0);
        if (IS_ERR(v) || !dict_set(it, d, key, v)) {
            return VERR;
        }
        return v;
    }
    value e = exc_new(it, exc_class(it, "KeyError"), key);
    return raise_obj(it, e);
}

value get_index(interp *it, value obj, value key)
{
    switch ((vtag)obj.tag) {
    case V_LIST: return index_seq(it, obj, key, obj.u.list->at, obj.u.list->n);
    case V_TUPLE: return index_seq(it, obj, key, obj.u.tuple->at, obj.u.tuple->n);
    case V_DICT: return index_dict(it, obj, key);
    case V_TENSOR: return tensor_index(it, obj, key);
    case V_STR:
    case V_BYTES: {
        int64_t start, step = 1, count = 1,
                       n = obj.tag == V_STR ? obj.u.str->chars : obj.u.str->len;
        if (key.tag == V_SLICE) {
            if (!slice_indices(it, key.u.slice, n, &start, &step, &count)) {
                return VERR;
            }
        } else {
            if (!as_index(it, key, &start)) {
                it->exc = VUNDEF;
                return type_error(it, "string indices must be integers, not '%s'",
                                  type_name(it, key));
            }
            start = start < 0 ? start + n : start;
            if (start < 0 || start >= n) {
                return raise_msg(it, "IndexError", "string index out of range");
            }
        }
        if (obj.tag == V_BYTES && key.tag != V_SLICE) {
            return VINT((unsigned char)obj.u.str->p[start]);
        }
        return str_slice(it, obj, start, step, count);
    }
    case V_RANGE: {
        const vrange *r = obj.u.range;
        int64_t n = r->step > 0
                        ? (r->start < r->stop ? (r->stop - r->start - 1) / r->step + 1 : 0)
                        : (r->start > r->stop ? (r->start - r->stop - 1) / -r->step + 1 : 0);
        if (key.tag == V_SLICE) {
            int64_t start, step, count;
            if (!slice_indices(it, key.u.slice, n, &start, &step, &count)) {
                return VERR;
            }
            vrange *s = NEW(it->mem, vrange);
            *s = (vrange){r->start + start * r->step, r->start + (start + count * step) * r->step,
                          r->step * step};
            return VPTR(V_RANGE, s);
        }
        int64_t i;
        if (!as_index(it, key, &i)) {
            return VERR;
        }
        i = i < 0 ? i + n : i;
        if (i < 0 || i >= n) {
            return raise_msg(it, "IndexError", "range object index out of range");
        }
        return VINT(r->start + i * r->step);
    }
    case V_OBJ: {
        value r = call_special(it, obj, N(__getitem__), &key, 1);
        if (r.tag != V_UNDEF) {
            return r;
        }
        if (obj.u.obj->base.tag == V_DICT) {
            value v = dict_get(it, obj.u.obj->base.u.dict, key);
            if (v.tag != V_UNDEF) {
                return v;
            }
            v = call_special(it, obj, N(__missing__), &key, 1);
            return v.tag != V_UNDEF ? v : index_dict(it, obj.u.obj->base, key);
        }
        if (obj.u.obj->base.tag != V_UNDEF) {
            return get_index(it, obj.u.obj->base, key);
        }
        break;
    }
    case V_CLASS:
        if (obj.u.cls->is_enum) {
            value v = key.tag == V_STR ? attrs_get(&obj.u.cls->attrs, str_sym(it, key)) : VUNDEF;
            if (v.tag == V_OBJ) {
                return v;
            }
            return raise_obj(it, exc_new(it, exc_class(it, "KeyError"), key));
        } else {
            value f = class_lookup(obj.u.cls, N(__class_getitem__));
            if (f.tag == V_DESCR) {
                return call_values(it, f.u.descr->get, (value[]){obj, key}, 2);
            }
        }
        return obj;           // Generic[T]
    case V_TYPE: return obj;  // list[int]
    case V_FUNC:
        if (obj.u.func->jit) {
            return obj;  // kernel[2](...) inside a kernel
        }
        break;
    case V_OPAQUE: return obj;
    case V_REG: return type_error(it, "a register cannot be indexed");
    default: break;
    }
    return type_error(it, "'%s' object is not subscriptable", type_name(it, obj));
}

static bool set_slice(interp *it, vlist *l, const vslice *s, value v)
{
    int64_t start, step, count;
    uint32_t n;
    if (!slice_indices(it, s, l->n, &start, &step, &count)) {
        return false;
    }
    viter probe;
    if (v.tag != V_LIST && v.tag != V_TUPLE && !iter_init(it, &probe, v)) {
        if (!class_of(v)) {
            it->exc = VUNDEF;
            type_error(it, step == 1 ? "can only assign an iterable"
                                     : "must assign iterable to extended slice");
        }
        return false;
    }
    value copy = list_from(it, v);
    if (IS_ERR(copy)) {
        return false;
    }
    n = copy.u.list->n;
    if (step != 1) {
        if (n != count) {
            value_error(it, "attempt to assign sequence of size %u to extended slice of size %lld",
                        n, (long long)count);
            return false;
        }
        for (uint32_t i = 0; i < n; i++) {
            l->at[start + i * step] = copy.u.list->at[i];
        }
        return true;
    }
    uint32_t tail = l->n - (uint32_t)(start + count), total = (uint32_t)start + n + tail;
    vec_reserve(it->mem, l, total > l->n ? total - l->n : 0);
    if (tail) {
        memmove(l->at + start + n, l->at + start + count, tail * sizeof *l->at);
    }
    if (n) {
        memcpy(l->at + start, copy.u.list->at, n * sizeof *l->at);
    }
    l->n = total;
    return true;
}

bool set_index(interp *it, value obj, value key, value v)
{
    switch ((vtag)obj.tag) {
    case V_LIST: {
        vlist *l = obj.u.list;
        if (key.tag == V_SLICE) {
            return set_slice(it, l, key.u.slice, v);
        }
        int64_t i;
        if (!as_index(it, key, &i)) {
            it->exc = VUNDEF;
            type_error(it, "list indices must be integers or slices, not %s", type_name(it, key));
            return false;
        }
        i = i < 0 ? i + l->n : i;
        if (i < 0 || i >= l->n) {
            raise_msg(it, "IndexError", "list assignment index out of range");
            return false;
        }
        l->at[i] = v;
        return true;
    }
    case V_DICT: return dict_set(it, obj.u.dict, key, v);
    case V_OBJ: {
        value r = call_special(it, obj, N(__setitem__), (value[]){key, v}, 2);
        if (r.tag != V_UNDEF) {
            return !IS_ERR(r);
        }
        if (obj.u.obj->base.tag != V_UNDEF) {
            return set_index(it, obj.u.obj->base, key, v);
        }
        break;
    }
    case V_TENSOR: {
        // t[...] = value: kept for kernels that commit a tile this way; a copy instruction.
        value view = tensor_index(it, obj, key);
        if (IS_ERR(view)) {
            return false;
        }
        value f = attrs_get(&it->builtins, intern_cstr(it->names, "__nki_assign__"));
        if (f.tag == V_UNDEF) {
            value m = import_module(it, it->top->module, 0,
                                    intern_cstr(it->names, "nki.language._move"), true);
            f = IS_ERR(m) ? m : find_attr(it, m, intern_cstr(it->names, "assign"));
            if (IS_ERR(f) || f.tag == V_UNDEF) {
                if (!IS_ERR(f)) {
                    type_error(it, "assignment into a tensor is not supported; use nl.store or "
                                   "nisa.tensor_copy");
                }
                return false;
            }
            attrs_set(it, &it->builtins, intern_cstr(it->names, "__nki_assign__"), f);
        }
        return !IS_ERR(call_values(it, f, (value[]){view, v}, 2));
    }
    default: break;
    }
    type_error(it, "'%s' object does not support item assignment", type_name(it, obj));
    return false;
}

bool del_index(interp *it, value obj, value key)
{
    switch ((vtag)obj.tag) {
    case V_LIST: {
        vlist *l = obj.u.list;
        if (key.tag == V_SLICE) {
            int64_t start, step, count;
            if (!slice_indices(it, key.u.slice, l->n, &start, &step, &count)) {
                return false;
            }
            if (step < 0) {
                start += (count - 1) * step;
                step = -step;
            }
            uint32_t out = 0;
            for (uint32_t i = 0; i < l->n; i++) {
                int64_t d = (int64_t)i - start;
                if (!(count > 0 && d >= 0 && d % step == 0 && d / step < count)) {
                    l->at[out++] = l->at[i];
                }
            }
            l->n = out;
            return true;
        }
        int64_t i;
        if (!as_index(it, key, &i)) {
            return false;
        }
        i = i < 0 ? i + l->n : i;
        if (i < 0 || i >= l->n) {
            raise_msg(it, "IndexError", "list assignment index out of range");
            return false;
        }
        memmove(l->at + i, l->at + i + 1, ((size_t)l->n - (size_t)i - 1) * sizeof *l->at);
        l->n--;
        return true;
    }
    case V_DICT: {
        int r = dict_del(it, obj.u.dict, key);
        if (r == 0) {
            raise_obj(it, exc_new(it, exc_class(it, "KeyError"), key));
        }
        return r == 1;
    }
    case V_OBJ: {
        value r = call_special(it, obj, N(__delitem__), &key, 1);
        if (r.tag != V_UNDEF) {
            return !IS_ERR(r);
        }
        if (obj.u.obj->base.tag != V_UNDEF) {
            return del_index(it, obj.u.obj->base, key);
        }
        break;
    }
    default: break;
    }
    type_error(it, "'%s' object doesn't support item deletion", type_name(it, obj));
    return false;
}
