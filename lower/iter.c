// Iteration: one state struct for every kind of iterable.
#include "lower/interp.h"

#include <string.h>

enum iter_kind {
    IT_LIST,
    IT_TUPLE,
    IT_RANGE,
    IT_STR,
    IT_DICT,
    IT_NEXT,
    IT_GETITEM,
    IT_ENUMERATE,
    IT_ZIP,
    IT_MAP,
    IT_FILTER,
    IT_REVERSED,
    IT_COUNT,
    IT_NATIVE,
    IT_SHARED,
    IT_GEN,
};

static uint32_t char_bytes(unsigned char c)
{
    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

bool iter_init(interp *it, viter *s, value v)
{
    memset(s, 0, sizeof *s);
    s->src = v;
    switch ((vtag)v.tag) {
    case V_LIST: s->kind = IT_LIST; return true;
    case V_TUPLE: s->kind = IT_TUPLE; return true;
    case V_RANGE:
        s->kind = IT_RANGE;
        s->a = v.u.range->start;
        s->b = v.u.range->stop;
        s->c = v.u.range->step;
        return true;
    case V_STR: s->kind = IT_STR; return true;
    case V_DICT:
    case V_SET:
        if (v.tag == V_SET) {
            set_settle(it, v.u.dict);
        }
        s->kind = IT_DICT;
        s->b = v.u.dict->live;
        return true;
    case V_ITER: s->kind = IT_SHARED; return true;
    case V_CLASS:
        if (v.u.cls->is_enum) {
            return iter_init(it, s, v.u.cls->enum_members);
        }
        break;
    case V_OBJ: {
        value r = call_special(it, v, N(__iter__), NULL, 0);
        if (IS_ERR(r)) {
            return false;
        }
        if (r.tag == V_OBJ) {
            s->kind = IT_NEXT;
            s->src = r;
            return true;
        }
        if (r.tag != V_UNDEF) {
            return iter_init(it, s, r);
        }
        if (v.u.obj->base.tag != V_UNDEF) {
            return iter_init(it, s, v.u.obj->base);
        }
        if (class_lookup(v.u.obj->cls, N(__getitem__)).tag != V_UNDEF) {
            s->kind = IT_GETITEM;
            return true;
        }
        break;
    }
    case V_DYNRANGE:
        type_error(it, "nl.dynamic_range can only be looped over by a for statement");
        return false;
    case V_OPAQUE:
        raise_msg(it, "ImportError", "'%s' is not available here and cannot be iterated",
                  v.u.opaque->path);
        return false;
    case V_TENSOR:
        type_error(it, "a tensor is not iterable; loop over range(x.shape[0]) and index it");
        return false;
    default: break;
    }
    type_error(it, "'%s' object is not iterable", type_name(it, v));
    return false;
}

bool iter_stopped(interp *it, viter *s)
{
    value e = it->exc;
    if (e.tag == V_OBJ && class_is(e.u.obj->cls, exc_class(it, "StopIteration"))) {
        value a = attrs_get(&e.u.obj->attrs, N(args));
        s->fn = a.tag == V_TUPLE && a.u.tuple->n ? a.u.tuple->at[0] : VNONE;
        it->exc = VUNDEF;
        return true;
    }
    return false;
}

void iter_of_gen(viter *s, struct gen *g)
{
    s->kind = IT_GEN;
    s->gen = g;
}

struct gen *iter_gen(const viter *s)
{
    return s->kind == IT_SHARED ? iter_gen(s->src.u.iter) : s->gen;
}

value iter_result(const viter *s)
{
    switch ((enum iter_kind)s->kind) {
    case IT_SHARED: return iter_result(s->src.u.iter);
    case IT_GEN: return gen_result(s->gen);
    case IT_NEXT: return s->fn.tag == V_UNDEF ? VNONE : s->fn;
    default: return VNONE;
    }
}

const char *iter_type_name(const viter *s)
{
    static const char *const names[] = {
        [IT_LIST] = "list_iterator",
        [IT_TUPLE] = "tuple_iterator",
        [IT_RANGE] = "range_iterator",
        [IT_STR] = "str_ascii_iterator",
        [IT_DICT] = "dict_keyiterator",
        [IT_NEXT] = "iterator",
        [IT_GETITEM] = "iterator",
        [IT_ENUMERATE] = "enumerate",
        [IT_ZIP] = "zip",
        [IT_MAP] = "map",
        [IT_FILTER] = "filter",
        [IT_REVERSED] = "reversed",
        [IT_COUNT] = "count",
        [IT_NATIVE] = "iterator",
        [IT_SHARED] = "iterator",
        [IT_GEN] = "generator",
    };
    return s->kind == IT_DICT && s->src.tag == V_SET ? "set_iterator" : names[s->kind];
}

vtype iter_type(const viter *s)
{
    switch ((enum iter_kind)s->kind) {
    case IT_ENUMERATE: return T_ENUMERATE;
    case IT_ZIP: return T_ZIP;
    case IT_MAP: return T_MAP;
    case IT_FILTER: return T_FILTER;
    case IT_REVERSED: return T_REVERSED;
    default: return T_GENERATOR;
    }
}

// 0 when a function called for the next item raised StopIteration, which ends map and filter; else
// -1.
static int stopped_inside(interp *it)
{
    viter none = {0};
    return iter_stopped(it, &none) ? 0 : -1;
}

static int next_subs(interp *it, viter *s, value *out)
{
    value vs[16];
    value *at = s->nsubs <= 16 ? vs : NEW_N(it->mem, value, s->nsubs);
    for (uint32_t i = 0; i < s->nsubs; i++) {
        int r = iter_next(it, s->subs[i], &at[i]);
        if (r < 0) {
            return r;
        }
        if (r == 0) {
            if (s->strict) {
                value x;
                bool ended = i > 0, longer = ended;
                for (uint32_t j = i + 1; !longer && j < s->nsubs; j++) {
                    longer = iter_next(it, s->subs[j], &x) == 1;
                    i = longer ? j : i;
                }
                if (longer) {
                    // i: the one that ended early, or the one that goes on when the first has ended
                    value_error(it, "zip() argument %u is %s than argument%s%u", i + 1,
                                ended ? "shorter" : "longer", i > 1 ? "s 1-" : " ", i);
                    return -1;
                }
            }
            return 0;
        }
    }
    if (s->kind == IT_ZIP) {
        *out = v_tuple(it, at, s->nsubs);
        return 1;
    }
    *out = call_values(it, s->fn, at, s->nsubs);
    return IS_ERR(*out) ? stopped_inside(it) : 1;
}

static int next_reversed(interp *it, viter *s, value *out)
{
    if (s->i == 0) {
        return 0;
    }
    s->i--;
    if (s->src.tag == V_OBJ) {
        *out = get_index(it, s->src, VINT((int64_t)s->i));
        return IS_ERR(*out) ? -1 : 1;
    }
    *out = s->src.tag == V_LIST ? s->src.u.list->at[s->i] : s->src.u.tuple->at[s->i];
    return 1;
}

int iter_next(interp *it, viter *s, value *out)
{
    if (s->nsubs && !stack_ok(it)) {
        return -1;
    }
    switch ((enum iter_kind)s->kind) {
    case IT_LIST:
        if (s->i >= s->src.u.list->n) {
            return 0;
        }
        *out = s->src.u.list->at[s->i++];
        return 1;
    case IT_TUPLE:
        if (s->i >= s->src.u.tuple->n) {
            return 0;
        }
        *out = s->src.u.tuple->at[s->i++];
        return 1;
    case IT_RANGE:
        if (s->c > 0 ? s->a >= s->b : s->a <= s->b) {
            return 0;
        }
        *out = VINT(s->a);
        if (__builtin_add_overflow(s->a, s->c, &s->a)) {
            s->a = s->b;
        }
        return 1;
    case IT_STR: {
        const vstr *t = s->src.u.str;
        if (s->i >= t->len) {
            return 0;
        }
        uint32_t n = char_bytes((unsigned char)t->p[s->i]);
        *out = v_str(it, t->p + s->i, n);
        s->i += n;
        return 1;
    }
    case IT_DICT: {
        const vdict *d = s->src.u.dict;
        if ((int64_t)d->live != s->b) {
            raise_msg(it, "RuntimeError", "%s changed size during iteration",
                      s->src.tag == V_SET ? "Set" : "dictionary");
            return -1;
        }
        while (s->i < d->n && d->at[s->i].key.tag == V_UNDEF) {
            s->i++;
        }
        if (s->i >= d->n) {
            return 0;
        }
        *out = d->at[s->i++].key;
        return 1;
    }
    case IT_SHARED: return iter_next(it, s->src.u.iter, out);
    case IT_NEXT:
        *out = call_special(it, s->src, N(__next__), NULL, 0);
        if (IS_ERR(*out)) {
            return iter_stopped(it, s) ? 0 : -1;
        }
        if (out->tag == V_UNDEF) {
            type_error(it, "iter() returned non-iterator of type '%s'", type_name(it, s->src));
            return -1;
        }
        return 1;
    case IT_GETITEM:
        *out = get_index(it, s->src, VINT((int64_t)s->i++));
        if (IS_ERR(*out)) {
            if (it->exc.tag == V_OBJ && class_is(it->exc.u.obj->cls, exc_class(it, "IndexError"))) {
                it->exc = VUNDEF;
                return 0;
            }
            return -1;
        }
        return 1;
    case IT_ENUMERATE: {
        value v;
        int r = iter_next(it, s->subs[0], &v);
        if (r == 1) {
            *out = v_tuple(it, (value[]){VINT(s->a++), v}, 2);
        }
        return r;
    }
    case IT_ZIP:
    case IT_MAP: return next_subs(it, s, out);
    case IT_FILTER:
        for (;;) {
            int r = iter_next(it, s->subs[0], out);
            if (r != 1) {
                return r;
            }
            value keep = s->fn.tag == V_NONE ? *out : call_values(it, s->fn, out, 1);
            if (IS_ERR(keep) || !interp_step(it)) {
                return stopped_inside(it);
            }
            int t = truth(it, keep);
            if (t) {
                return t;
            }
        }
    case IT_REVERSED: return next_reversed(it, s, out);
    case IT_COUNT:
        *out = VINT(s->a);
        if (__builtin_add_overflow(s->a, s->b, &s->a)) {
            raise_msg(it, "OverflowError", "integer result of + does not fit in 64 bits");
            return -1;
        }
        return interp_step(it) ? 1 : -1;
    case IT_GEN: return gen_next(it, s->gen, out);
    case IT_NATIVE: {
        *out = s->next(it, s);
        return IS_ERR(*out) ? -1 : out->tag != V_UNDEF;
    }
    }
    return 0;
}

static viter *sub(interp *it, value v)
{
    viter *s = NEW(it->mem, viter);
    return iter_init(it, s, v) ? s : NULL;
}

value iter_new(interp *it, value v)
{
    if (v.tag == V_ITER) {
        return v;
    }
    viter *s = sub(it, v);
    return s ? VPTR(V_ITER, s) : VERR;
}

static value with_subs(interp *it, enum iter_kind kind, value fn, const value *vs, uint32_t n)
{
    viter *s = NEW(it->mem, viter);
    s->kind = (uint8_t)kind;
    s->fn = fn;
    s->nsubs = n;
    s->subs = NEW_N(it->mem, viter *, n);
    for (uint32_t i = 0; i < n; i++) {
        s->subs[i] = sub(it, vs[i]);
        if (!s->subs[i]) {
            return VERR;
        }
    }
    return VPTR(V_ITER, s);
}

value iter_enumerate(interp *it, value v, int64_t start)
{
    value r = with_subs(it, IT_ENUMERATE, VNONE, &v, 1);
    if (!IS_ERR(r)) {
        r.u.iter->a = start;
    }
    return r;
}

value iter_zip(interp *it, const value *vs, uint32_t n, bool strict)
{
    if (n == 0) {
        return iter_new(it, v_tuple(it, NULL, 0));
    }
    value r = with_subs(it, IT_ZIP, VNONE, vs, n);
    if (!IS_ERR(r)) {
        r.u.iter->strict = strict;
    }
    return r;
}

value iter_map(interp *it, value fn, const value *vs, uint32_t n)
{
    return with_subs(it, IT_MAP, fn, vs, n);
}

value iter_filter(interp *it, value fn, value v)
{
    return with_subs(it, IT_FILTER, fn, &v, 1);
}

value iter_reversed(interp *it, value v)
{
    value r = call_special(it, v, N(__reversed__), NULL, 0);
    if (r.tag != V_UNDEF) {
        return IS_ERR(r) ? r : iter_new(it, r);
    }
    viter *s = NEW(it->mem, viter);
    if (v.tag == V_RANGE) {
        const vrange *g = v.u.range;
        int64_t n = g->step > 0
                        ? (g->start < g->stop ? (g->stop - g->start - 1) / g->step + 1 : 0)
                        : (g->start > g->stop ? (g->start - g->stop - 1) / -g->step + 1 : 0);
        s->kind = IT_RANGE;
        s->a = g->start + (n - 1) * g->step;
        s->b = g->start - g->step;
        s->c = -g->step;
        if (n == 0) {
            s->a = s->b = 0;
        }
        return VPTR(V_ITER, s);
    }
    s->kind = IT_REVERSED;
    if (v.tag == V_OBJ) {
        value len = call_special(it, v, N(__len__), NULL, 0);
        if (len.tag != V_INT) {
            return IS_ERR(len) ? len
                               : type_error(it, "'%s' object is not reversible", type_name(it, v));
        }
        s->src = v;
        s->i = (uint64_t)len.u.i;
        return VPTR(V_ITER, s);
    }
    if (v.tag != V_LIST && v.tag != V_TUPLE && v.tag != V_STR && v.tag != V_DICT) {
        return type_error(it, "'%s' object is not reversible", type_name(it, v));
    }
    value l = v.tag == V_LIST || v.tag == V_TUPLE ? v : list_from(it, v);
    if (IS_ERR(l)) {
        return l;
    }
    s->src = l;
    s->i = l.tag == V_LIST ? l.u.list->n : l.u.tuple->n;
    return VPTR(V_ITER, s);
}

value iter_count(interp *it, int64_t start, int64_t step)
{
    viter *s = NEW(it->mem, viter);
    s->kind = IT_COUNT;
    s->a = start;
    s->b = step;
    return VPTR(V_ITER, s);
}

value list_from(interp *it, value v)
{
    if (v.tag == V_TUPLE) {
        return v_list(it, v.u.tuple->at, v.u.tuple->n);
    }
    if (v.tag == V_LIST) {
        return v_list(it, v.u.list->at, v.u.list->n);
    }
    viter s;
    return iter_init(it, &s, v) ? iter_rest(it, &s) : VERR;
}

value iter_rest(interp *it, viter *s)
{
    value l = v_list(it, NULL, 0), x;
    int r;
    while ((r = iter_next(it, s, &x)) == 1) {
        list_push(it, l.u.list, x);
        if ((l.u.list->n & 15) == 0 && !interp_step(it)) {
            return VERR;
        }
    }
    return r < 0 ? VERR : l;
}

value *items_of(interp *it, value v, uint32_t *n)
{
    static value none;
    if (v.tag == V_TUPLE) {
        *n = v.u.tuple->n;
        return v.u.tuple->at;
    }
    value l = v.tag == V_LIST ? v : list_from(it, v);
    if (IS_ERR(l)) {
        return NULL;
    }
    *n = l.u.list->n;
    return l.u.list->n ? l.u.list->at : &none;
}
