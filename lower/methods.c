// Methods and attributes of built-in values other than texts.
#include "lower/methods.h"

#include <math.h>
#include <string.h>

#define COUNT(t) (sizeof(t) / sizeof(t)[0])

value method_bind(interp *it, const method *table, size_t n, value self, sym id)
{
    for (size_t i = 0; i < n; i++) {
        const method *m = &table[i];
        if (m->len == id->len && m->name[0] == id->text[0] &&
            memcmp(m->name, id->text, m->len) == 0) {
            vnative *v = NEW(it->mem, vnative);
            *v = (vnative){m->name, m->fn, self};
            return (value){.tag = V_NATIVE, .u.native = v};
        }
    }
    return VUNDEF;
}

bool method_args(interp *it, const args *a, const char *type, const char *name, uint32_t lo,
                 uint32_t hi)
{
    if (a->nkw) {
        type_error(it, "%s.%s() takes no keyword arguments", type, name);
        return false;
    }
    if (a->n >= lo && a->n <= hi) {
        return true;
    }
    if (hi == 0) {
        type_error(it, "%s.%s() takes no arguments (%u given)", type, name, a->n);
    } else if (lo == 1 && hi == 1) {
        type_error(it, "%s.%s() takes exactly one argument (%u given)", type, name, a->n);
    } else {
        uint32_t bound = a->n < lo ? lo : hi;
        type_error(it, "%s expected %s%u argument%s, got %u", name,
                   lo == hi    ? ""
                   : a->n < lo ? "at least "
                               : "at most ",
                   bound, bound == 1 ? "" : "s", a->n);
    }
    return false;
}

value key_error(interp *it, value key)
{
    return raise_obj(it, exc_new(it, exc_class(it, "KeyError"), key));
}

static int same_item(interp *it, value a, value b)
{
    return is_same(a, b) ? 1 : equal(it, a, b);
}

static int64_t clamp_index(int64_t i, int64_t n)
{
    i = i < 0 ? (i < -n ? 0 : i + n) : i;
    return i > n ? n : i;
}

// Position of v in at[lo..hi), -1 absent, -2 error. *n is read again: the comparison may change it.
static int64_t find_item(interp *it, value *const *at, const uint32_t *n, int64_t lo, int64_t hi,
                         value v)
{
    for (int64_t i = lo; i < hi && i < (int64_t)*n; i++) {
        int e = same_item(it, (*at)[i], v);
        if (e) {
            return e < 0 ? -2 : i;
        }
    }
    return -1;
}

static bool bounds_args(interp *it, const args *a, int64_t n, int64_t *lo, int64_t *hi)
{
    *lo = 0;
    *hi = n;
    if (a->n > 1) {
        if (!as_index(it, a->at[1], lo)) {
            return false;
        }
        *lo = clamp_index(*lo, n);
    }
    if (a->n > 2) {
        if (!as_index(it, a->at[2], hi)) {
            return false;
        }
        *hi = clamp_index(*hi, n);
    }
    return true;
}

// ---- list

static value list_append(interp *it, const args *a)
{
    value self = it->native_self;
    if (!method_args(it, a, "list", "append", 1, 1)) {
        return VERR;
    }
    list_push(it, self.u.list, a->at[0]);
    return VNONE;
}

static value list_extend(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    if (!method_args(it, a, "list", "extend", 1, 1)) {
        return VERR;
    }
    value more = list_from(it, a->at[0]);
    if (IS_ERR(more)) {
        return VERR;
    }
    uint32_t n = more.u.list->n;
    if (n) {
        vec_reserve(it->mem, l, n);
        memcpy(l->at + l->n, more.u.list->at, n * sizeof *l->at);
        l->n += n;
    }
    return VNONE;
}

static value list_insert(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    int64_t i;
    if (!method_args(it, a, "list", "insert", 2, 2) || !as_index(it, a->at[0], &i)) {
        return VERR;
    }
    i = clamp_index(i, l->n);
    value v = a->at[1];
    list_push(it, l, v);
    memmove(l->at + i + 1, l->at + i, (l->n - 1 - (size_t)i) * sizeof *l->at);
    l->at[i] = v;
    return VNONE;
}

static void remove_at(vlist *l, int64_t i)
{
    memmove(l->at + i, l->at + i + 1, (l->n - 1 - (size_t)i) * sizeof *l->at);
    l->n--;
}

static value list_remove(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    if (!method_args(it, a, "list", "remove", 1, 1)) {
        return VERR;
    }
    int64_t i = find_item(it, &l->at, &l->n, 0, INT64_MAX, a->at[0]);
    if (i < 0) {
        return i == -2 ? VERR : value_error(it, "list.remove(x): x not in list");
    }
    if (i < (int64_t)l->n) {
        remove_at(l, i);
    }
    return VNONE;
}

static value list_pop(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    int64_t i = -1;
    if (!method_args(it, a, "list", "pop", 0, 1) || (a->n && !as_index(it, a->at[0], &i))) {
        return VERR;
    }
    if (l->n == 0) {
        return raise_msg(it, "IndexError", "pop from empty list");
    }
    i = i < 0 ? i + l->n : i;
    if (i < 0 || i >= (int64_t)l->n) {
        return raise_msg(it, "IndexError", "pop index out of range");
    }
    value v = l->at[i];
    remove_at(l, i);
    return v;
}

static value list_clear(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    if (!method_args(it, a, "list", "clear", 0, 0)) {
        return VERR;
    }
    l->n = 0;
    return VNONE;
}

static value list_index(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    int64_t lo, hi;
    if (!method_args(it, a, "list", "index", 1, 3) || !bounds_args(it, a, l->n, &lo, &hi)) {
        return VERR;
    }
    int64_t i = find_item(it, &l->at, &l->n, lo, hi, a->at[0]);
    if (i >= 0) {
        return VINT(i);
    }
    value r = i == -2 ? VERR : v_repr(it, a->at[0]);
    return IS_ERR(r) ? VERR : value_error(it, "%s is not in list", r.u.str->p);
}

static value count_items(interp *it, value *const *at, const uint32_t *n, value v)
{
    int64_t found = 0;
    for (uint32_t i = 0; i < *n; i++) {
        int e = same_item(it, (*at)[i], v);
        if (e < 0) {
            return VERR;
        }
        found += e;
    }
    return VINT(found);
}

static value list_count(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    return method_args(it, a, "list", "count", 1, 1) ? count_items(it, &l->at, &l->n, a->at[0])
                                                     : VERR;
}

static value list_reverse(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    if (!method_args(it, a, "list", "reverse", 0, 0)) {
        return VERR;
    }
    for (uint32_t i = 0; i < l->n / 2; i++) {
        value v = l->at[i];
        l->at[i] = l->at[l->n - 1 - i];
        l->at[l->n - 1 - i] = v;
    }
    return VNONE;
}

static value list_copy(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    return method_args(it, a, "list", "copy", 0, 0) ? v_list(it, l->at, l->n) : VERR;
}

static value list_sort(interp *it, const args *a)
{
    static const char *const params[] = {"key", "reverse"};
    vlist *l = it->native_self.u.list;
    value v[2];
    if (a->n) {
        return type_error(it, "sort() takes no positional arguments");
    }
    if (!bind_native(it, "sort", a, params, 2, 0, v)) {
        return VERR;
    }
    int reverse = v[1].tag == V_UNDEF ? 0 : truth(it, v[1]);
    return reverse < 0 ? VERR : sort_list(it, l, v[0].tag == V_UNDEF ? VNONE : v[0], reverse);
}

static value list_init(interp *it, const args *a)
{
    vlist *l = it->native_self.u.list;
    if (!method_args(it, a, "list", "__init__", 0, 1)) {
        return VERR;
    }
    value from = a->n ? list_from(it, a->at[0]) : v_list(it, NULL, 0);
    if (IS_ERR(from)) {
        return VERR;
    }
    *l = *from.u.list;
    return VNONE;
}

static const method list_table[] = {
    METHOD("append", list_append), METHOD("extend", list_extend),   METHOD("pop", list_pop),
    METHOD("insert", list_insert), METHOD("remove", list_remove),   METHOD("index", list_index),
    METHOD("sort", list_sort),     METHOD("reverse", list_reverse), METHOD("copy", list_copy),
    METHOD("clear", list_clear),   METHOD("count", list_count),     METHOD("__init__", list_init),
};

// ---- tuple

static value tuple_index(interp *it, const args *a)
{
    vtuple *t = it->native_self.u.tuple;
    value *at = t->at;
    int64_t lo, hi;
    if (!method_args(it, a, "tuple", "index", 1, 3) || !bounds_args(it, a, t->n, &lo, &hi)) {
        return VERR;
    }
    int64_t i = find_item(it, &at, &t->n, lo, hi, a->at[0]);
    return i >= 0 ? VINT(i) : i == -2 ? VERR : value_error(it, "tuple.index(x): x not in tuple");
}

static value tuple_count(interp *it, const args *a)
{
    vtuple *t = it->native_self.u.tuple;
    value *at = t->at;
    return method_args(it, a, "tuple", "count", 1, 1) ? count_items(it, &at, &t->n, a->at[0])
                                                      : VERR;
}

static const method tuple_table[] = {METHOD("index", tuple_index), METHOD("count", tuple_count)};

// ---- range, slice

static int64_t range_size(const vrange *r)
{
    if (r->step > 0) {
        return r->start < r->stop
                   ? (int64_t)(((uint64_t)r->stop - (uint64_t)r->start - 1) / (uint64_t)r->step) + 1
                   : 0;
    }
    return r->start > r->stop
               ? (int64_t)(((uint64_t)r->start - (uint64_t)r->stop - 1) / (0 - (uint64_t)r->step)) +
                     1
               : 0;
}

// Position of v in the range, -1 absent, -2 error.
static int64_t range_find(interp *it, value range, value v)
{
    const vrange *r = range.u.range;
    if (v.tag == V_BOOL) {
        v = VINT(v.u.b);
    }
    if (v.tag == V_FLOAT && v.u.d == floor(v.u.d) && fabs(v.u.d) < 9e18) {
        v = VINT((int64_t)v.u.d);
    }
    if (v.tag == V_INT) {
        bool in = r->step > 0 ? v.u.i >= r->start && v.u.i < r->stop
                              : v.u.i <= r->start && v.u.i > r->stop;
        uint64_t d = r->step > 0 ? (uint64_t)v.u.i - (uint64_t)r->start
                                 : (uint64_t)r->start - (uint64_t)v.u.i;
        uint64_t step = r->step > 0 ? (uint64_t)r->step : 0 - (uint64_t)r->step;
        return in && d % step == 0 ? (int64_t)(d / step) : -1;
    }
    if (v.tag != V_OBJ) {
        return -1;
    }
    int64_t n = range_size(r);
    for (int64_t i = 0; i < n; i++) {
        int e = interp_step(it) ? equal(it, VINT(r->start + i * r->step), v) : -1;
        if (e) {
            return e < 0 ? -2 : i;
        }
    }
    return -1;
}

static value range_index(interp *it, const args *a)
{
    value self = it->native_self;
    if (!method_args(it, a, "range", "index", 1, 1)) {
        return VERR;
    }
    int64_t i = range_find(it, self, a->at[0]);
    if (i >= 0) {
        return VINT(i);
    }
    value r = i == -2 ? VERR : v_repr(it, a->at[0]);
    return IS_ERR(r) ? VERR : value_error(it, "%s is not in range", r.u.str->p);
}

static value range_count(interp *it, const args *a)
{
    value self = it->native_self;
    if (!method_args(it, a, "range", "count", 1, 1)) {
        return VERR;
    }
    int64_t i = range_find(it, self, a->at[0]);
    return i == -2 ? VERR : VINT(i >= 0);
}

static const method range_table[] = {METHOD("index", range_index), METHOD("count", range_count)};

static value slice_method_indices(interp *it, const args *a)
{
    value self = it->native_self;
    int64_t n, start, step, count;
    if (!method_args(it, a, "slice", "indices", 1, 1) || !as_index(it, a->at[0], &n)) {
        return VERR;
    }
    if (n < 0) {
        return value_error(it, "length should not be negative");
    }
    if (!slice_indices(it, self.u.slice, n, &start, &step, &count)) {
        return VERR;
    }
    int64_t stop;
    slice_bounds(self.u.slice, n, &start, &stop, &step);
    return v_tuple(it, (value[]){VINT(start), VINT(stop), VINT(step)}, 3);
}

static const method slice_table[] = {METHOD("indices", slice_method_indices)};

// ---- special methods by name: super().__setitem__(k, v), x.__len__()

static value dunder_args(interp *it, const args *a, const char *name, uint32_t n)
{
    if (a->nkw || a->n != n) {
        return type_error(it, "%s expected %u argument%s, got %u", name, n, n == 1 ? "" : "s",
                          a->n);
    }
    return VNONE;
}

#define DUNDER(name, n, expr)                                                                      \
    static value d_##name(interp *it, const args *a)                                               \
    {                                                                                              \
        value self = it->native_self;                                                              \
        if (IS_ERR(dunder_args(it, a, "__" #name "__", n))) {                                      \
            return VERR;                                                                           \
        }                                                                                          \
        return (expr);                                                                             \
    }

static value size_of(value v)
{
    switch ((vtag)v.tag) {
    case V_LIST: return VINT(v.u.list->n);
    case V_TUPLE: return VINT(v.u.tuple->n);
    case V_DICT:
    case V_SET: return VINT(v.u.dict->live);
    case V_STR: return VINT(v.u.str->chars);
    case V_BYTES: return VINT(v.u.str->len);
    case V_RANGE: return VINT(range_size(v.u.range));
    default: return VUNDEF;
    }
}

static value ok_or_error(bool ok)
{
    return ok ? VNONE : VERR;
}

static value hash_of(interp *it, value v)
{
    uint32_t h;
    return hash_value(it, v, &h) ? VINT(h) : VERR;
}

static value truth_of(interp *it, value v)
{
    int t = truth(it, v);
    return t < 0 ? VERR : VBOOL(t);
}

DUNDER(len, 0, size_of(self))
DUNDER(iter, 0, iter_new(it, self))
DUNDER(reversed, 0, iter_reversed(it, self))
DUNDER(contains, 1, contains(it, self, a->at[0]))
DUNDER(getitem, 1, get_index(it, self, a->at[0]))
DUNDER(setitem, 2, ok_or_error(set_index(it, self, a->at[0], a->at[1])))
DUNDER(delitem, 1, ok_or_error(del_index(it, self, a->at[0])))
DUNDER(eq, 1, compare(it, OP_EQ, self, a->at[0]))
DUNDER(ne, 1, compare(it, OP_NE, self, a->at[0]))
DUNDER(lt, 1, compare(it, OP_LT, self, a->at[0]))
DUNDER(le, 1, compare(it, OP_LE, self, a->at[0]))
DUNDER(gt, 1, compare(it, OP_GT, self, a->at[0]))
DUNDER(ge, 1, compare(it, OP_GE, self, a->at[0]))
DUNDER(add, 1, binary_op(it, OP_ADD, self, a->at[0]))
DUNDER(radd, 1, binary_op(it, OP_ADD, a->at[0], self))
DUNDER(sub, 1, binary_op(it, OP_SUB, self, a->at[0]))
DUNDER(rsub, 1, binary_op(it, OP_SUB, a->at[0], self))
DUNDER(mul, 1, binary_op(it, OP_MUL, self, a->at[0]))
DUNDER(rmul, 1, binary_op(it, OP_MUL, a->at[0], self))
DUNDER(truediv, 1, binary_op(it, OP_DIV, self, a->at[0]))
DUNDER(floordiv, 1, binary_op(it, OP_FLOORDIV, self, a->at[0]))
DUNDER(mod, 1, binary_op(it, OP_MOD, self, a->at[0]))
DUNDER(pow, 1, binary_op(it, OP_POW, self, a->at[0]))
DUNDER(lshift, 1, binary_op(it, OP_LSHIFT, self, a->at[0]))
DUNDER(rshift, 1, binary_op(it, OP_RSHIFT, self, a->at[0]))
DUNDER(and, 1, binary_op(it, OP_BITAND, self, a->at[0]))
DUNDER(or, 1, binary_op(it, OP_BITOR, self, a->at[0]))
DUNDER(xor, 1, binary_op(it, OP_BITXOR, self, a->at[0]))
DUNDER(neg, 0, unary_op(it, OP_NEG, self))
DUNDER(pos, 0, unary_op(it, OP_POS, self))
DUNDER(invert, 0, unary_op(it, OP_INVERT, self))
DUNDER(abs, 0,
       type_of(self) == T_FLOAT ? VFLT(fabs(self.u.d))
       : as_int(self) < 0   ? unary_op(it, OP_NEG, self)
                                : VINT(as_int(self)))
DUNDER(bool, 0, truth_of(it, self))
DUNDER(index, 0, VINT(as_int(self)))
DUNDER(float, 0, self.tag == V_FLOAT ? self : VFLT((double)as_int(self)))
DUNDER(int, 0, type_call(it, T_INT, &(args){&self, 1, 0, NULL}))
DUNDER(hash, 0, hash_of(it, self))
DUNDER(repr, 0, v_repr(it, self))
DUNDER(str, 0, v_strof(it, self))
DUNDER(format, 1, format_value(it, self, a->at[0]))

#define D(name) METHOD("__" #name "__", d_##name)
static const method any_table[] = {D(eq), D(ne), D(repr), D(str), D(format), D(hash)};
static const method order_table[] = {D(lt), D(le), D(gt), D(ge), D(add), D(radd), D(mul), D(rmul)};
static const method container_table[] = {D(len),     D(iter),     D(contains),
                                         D(getitem), D(reversed), D(bool)};
static const method change_table[] = {D(setitem), D(delitem)};
static const method number_table[] = {
    D(sub), D(rsub), D(truediv), D(floordiv), D(mod), D(pow),
    D(neg), D(pos),  D(abs),     D(bool),     D(int), D(float),
};
static const method bits_table[] = {D(and),    D(or),     D(xor),  D(lshift),
                                    D(rshift), D(invert), D(index)};
static const method algebra_table[] = {D(and), D(or), D(xor), D(sub)};

#define TRY(table)                                                                                 \
    do {                                                                                           \
        value v_ = method_bind(it, table, COUNT(table), self, id);                                 \
        if (v_.tag != V_UNDEF) {                                                                   \
            return v_;                                                                             \
        }                                                                                          \
    } while (0)

static value dunder(interp *it, value self, sym id)
{
    if (id->len < 5 || id->text[0] != '_' || id->text[1] != '_') {
        return VUNDEF;
    }
    bool number = self.tag == V_INT || self.tag == V_BOOL || self.tag == V_FLOAT;
    bool sized = size_of(self).tag != V_UNDEF;
    if (!number && !sized && self.tag != V_NONE && self.tag != V_SLICE) {
        return VUNDEF;
    }
    TRY(any_table);
    if (number || self.tag == V_STR || self.tag == V_BYTES || self.tag == V_TUPLE ||
        self.tag == V_LIST || self.tag == V_SET) {
        TRY(order_table);
    }
    if (sized) {
        TRY(container_table);
    }
    if (self.tag == V_LIST || self.tag == V_DICT) {
        TRY(change_table);
    }
    if (number) {
        TRY(number_table);
    }
    if (self.tag == V_INT || self.tag == V_BOOL) {
        TRY(bits_table);
    }
    if (self.tag == V_SET || self.tag == V_DICT) {
        TRY(algebra_table);
    }
    return VUNDEF;
}

// ---- lookup

static value own_method(interp *it, value self, sym id)
{
    switch ((vtag)self.tag) {
    case V_LIST: return method_bind(it, list_table, COUNT(list_table), self, id);
    case V_TUPLE: return method_bind(it, tuple_table, COUNT(tuple_table), self, id);
    case V_DICT: return dict_method(it, self, id);
    case V_SET: return set_method(it, self, id);
    case V_STR:
    case V_BYTES: return str_method(it, self, id);
    case V_INT:
    case V_BOOL:
    case V_FLOAT: return number_method(it, self, id);
    case V_RANGE:
        if (id == N(start) || id == N(stop) || id == N(step)) {
            const vrange *r = self.u.range;
            return VINT(id == N(start) ? r->start : id == N(stop) ? r->stop : r->step);
        }
        return method_bind(it, range_table, COUNT(range_table), self, id);
    case V_SLICE:
        if (id == N(start) || id == N(stop) || id == N(step)) {
            const vslice *s = self.u.slice;
            return id == N(start) ? s->start : id == N(stop) ? s->stop : s->step;
        }
        return method_bind(it, slice_table, COUNT(slice_table), self, id);
    case V_ITER: return iter_method(it, self, id);
    default: return VUNDEF;
    }
}

value find_method(interp *it, value self, sym id)
{
    if (self.tag == V_OBJ && self.u.obj->base.tag != V_UNDEF) {
        self = self.u.obj->base;
    }
    value v = own_method(it, self, id);
    return v.tag == V_UNDEF ? dunder(it, self, id) : v;
}
