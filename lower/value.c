// Construction, truth, equality, order, hashing and text of values.
#include "lower/interp.h"

#include <math.h>
#include <string.h>

value v_str(interp *it, const char *p, size_t len)
{
    vstr *s = NEW(it->mem, vstr);
    s->p = arena_text(it->mem, p, len);
    s->len = (uint32_t)len;
    for (size_t i = 0; i < len; i++) {
        s->chars += ((unsigned char)p[i] & 0xC0) != 0x80;
    }
    return (value){.tag = V_STR, .u.str = s};
}

value v_cstr(interp *it, const char *p)
{
    return v_str(it, p, strlen(p));
}

value v_sym(interp *it, sym s)
{
    return v_str(it, s->text, s->len);
}

sym str_sym(interp *it, value s)
{
    return intern_add(it->names, s.u.str->p, s.u.str->len);
}

value v_tuple(interp *it, const value *at, uint32_t n)
{
    vtuple *t = arena_alloc(it->mem, sizeof *t + n * sizeof(value), _Alignof(vtuple), 1);
    t->n = n;
    if (n) {
        memcpy(t->at, at, n * sizeof *at);
    }
    return (value){.tag = V_TUPLE, .u.tuple = t};
}

value v_list(interp *it, const value *at, uint32_t n)
{
    vlist *l = NEW(it->mem, vlist);
    if (n) {
        l->at = NEW_N(it->mem, value, n);
        memcpy(l->at, at, n * sizeof *at);
    }
    l->n = l->cap = n;
    return (value){.tag = V_LIST, .u.list = l};
}

void list_push(interp *it, vlist *l, value v)
{
    vec_push(it->mem, l, v);
}

value v_dict(interp *it)
{
    return (value){.tag = V_DICT, .u.dict = NEW(it->mem, vdict)};
}

value v_set(interp *it)
{
    return (value){.tag = V_SET, .u.dict = NEW(it->mem, vdict)};
}

value v_native(interp *it, const char *name, native_fn fn)
{
    vnative *n = NEW(it->mem, vnative);
    n->name = name;
    n->fn = fn;
    return (value){.tag = V_NATIVE, .u.native = n};
}

// ---- types

vtype type_of(value v)
{
    switch ((vtag)v.tag) {
    case V_NONE: return T_NONETYPE;
    case V_BOOL: return T_BOOL;
    case V_INT: return T_INT;
    case V_FLOAT: return T_FLOAT;
    case V_ELLIPSIS: return T_ELLIPSIS;
    case V_STR: return T_STR;
    case V_BYTES: return T_BYTES;
    case V_TUPLE: return T_TUPLE;
    case V_LIST: return T_LIST;
    case V_DICT: return T_DICT;
    case V_SET: return T_SET;
    case V_RANGE: return T_RANGE;
    case V_SLICE: return T_SLICE;
    case V_ITER: return iter_type(v.u.iter);
    case V_FUNC: return T_FUNCTION;
    case V_METHOD: return T_METHOD;
    case V_NATIVE:
    case V_BUILTIN_METHOD: return T_BUILTIN;
    case V_CLASS:
    case V_TYPE: return T_TYPE;
    case V_DESCR:
        return v.u.descr->kind == DESCR_STATIC  ? T_STATICMETHOD
               : v.u.descr->kind == DESCR_CLASS ? T_CLASSMETHOD
                                                : T_PROPERTY;
    case V_SUPER: return T_SUPER;
    case V_MODULE: return T_MODULE;
    case V_DTYPE: return T_DTYPE;
    case V_BUFFER: return T_REGION;
    case V_OP:
    case V_ISA: return T_FUNCTION;
    case V_TENSOR: return T_TENSOR;
    case V_REG: return T_REGISTER;
    case V_INSTR: return T_INSTR;
    case V_UNDEF:
    case V_ERROR:
    case V_NOTIMPLEMENTED:
    case V_OBJ:
    case V_OPAQUE:
    case V_DS:
    case V_DYNRANGE: return T_OBJECT;
    }
    return T_OBJECT;
}

const char *type_name(interp *it, value v)
{
    (void)it;
    vclass *c = class_of(v);
    if (c) {
        return c->id->text;
    }
    switch ((vtag)v.tag) {
    case V_NATIVE: return "builtin_function_or_method";
    case V_METHOD: return "method";
    case V_BUILTIN_METHOD: return "builtin_function_or_method";
    case V_ITER: return iter_type_name(v.u.iter);
    case V_OPAQUE: return "unavailable";
    case V_DS: return "ds";
    case V_DYNRANGE: return "dynamic_range";
    case V_NOTIMPLEMENTED: return "NotImplementedType";
    default: return vtype_name(type_of(v));
    }
}

int truth(interp *it, value v)
{
    switch ((vtag)v.tag) {
    case V_NONE: return 0;
    case V_BOOL: return v.u.b;
    case V_INT: return v.u.i != 0;
    case V_FLOAT: return v.u.d != 0;
    case V_STR:
    case V_BYTES: return v.u.str->len != 0;
    case V_TUPLE: return v.u.tuple->n != 0;
    case V_LIST: return v.u.list->n != 0;
    case V_DICT:
    case V_SET: return v.u.dict->live != 0;
    case V_RANGE: {
        const vrange *r = v.u.range;
        return r->step > 0 ? r->start < r->stop : r->start > r->stop;
    }
    case V_OBJ: {
        value r = call_special(it, v, N(__bool__), NULL, 0);
        if (r.tag == V_UNDEF) {
            r = call_special(it, v, N(__len__), NULL, 0);
            if (r.tag == V_UNDEF) {
                return v.u.obj->base.tag != V_UNDEF ? truth(it, v.u.obj->base) : 1;
            }
        }
        return IS_ERR(r) ? -1 : truth(it, r);
    }
    case V_REG:
        type_error(it, "a register has no value while the kernel is specialized; use nl.fori_loop, "
                       "nl.while_loop or `while register:` for control flow on the device");
        return -1;
    case V_OPAQUE:
        raise_msg(it, "ImportError", "'%s' is not available here and was used as a condition",
                  v.u.opaque->path);
        return -1;
    case V_TENSOR: {
        if (interp_warn_first(it, D_tensor_truth)) {
            textbuf t;
            text_init(&t, it->mem);
            tensor_describe(v.u.tensor, &t);
            diag_tensor_truth(it->ds, interp_loc(it), t.at);
        }
        return 1;
    }
    case V_ERROR: return -1;
    default: return 1;
    }
}

bool is_same(value a, value b)
{
    if (a.tag != b.tag) {
        return false;
    }
    switch ((vtag)a.tag) {
    case V_NONE:
    case V_ELLIPSIS:
    case V_NOTIMPLEMENTED: return true;
    case V_BOOL: return a.u.b == b.u.b;
    case V_FLOAT: return memcmp(&a.u.d, &b.u.d, sizeof a.u.d) == 0;
    case V_STR:
        return a.u.str == b.u.str ||
               (a.u.str->len == b.u.str->len && memcmp(a.u.str->p, b.u.str->p, a.u.str->len) == 0);
    case V_TUPLE: return a.u.tuple == b.u.tuple || (a.u.tuple->n == 0 && b.u.tuple->n == 0);
    case V_OPAQUE: return strcmp(a.u.opaque->path, b.u.opaque->path) == 0;
    default: return a.u.i == b.u.i;
    }
}

// Of two lists: a comparison may shorten them.
static int equal_lists(interp *it, const vlist *a, const vlist *b)
{
    if (a->n != b->n) {
        return 0;
    }
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        value x = a->at[i], y = b->at[i];
        int e = is_same(x, y) ? 1 : equal(it, x, y);
        if (e != 1) {
            return e;
        }
    }
    return a->n == b->n;
}

static int equal_items(interp *it, const value *a, const value *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int e = is_same(a[i], b[i]) ? 1 : equal(it, a[i], b[i]);
        if (e != 1) {
            return e;
        }
    }
    return 1;
}

static int equal_dicts(interp *it, vdict *a, vdict *b, bool set)
{
    if (a->live != b->live) {
        return 0;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].key.tag == V_UNDEF) {
            continue;
        }
        value v = dict_get(it, b, a->at[i].key);
        if (v.tag == V_UNDEF || IS_ERR(v)) {
            return IS_ERR(v) ? -1 : 0;
        }
        if (!set) {
            int e = is_same(a->at[i].val, v) ? 1 : equal(it, a->at[i].val, v);
            if (e != 1) {
                return e;
            }
        }
    }
    return 1;
}

static int64_t range_len(const vrange *r)
{
    if (r->step > 0) {
        return r->start < r->stop ? (r->stop - r->start - 1) / r->step + 1 : 0;
    }
    return r->start > r->stop ? (r->start - r->stop - 1) / -r->step + 1 : 0;
}

static bool number_of(value v, double *d)
{
    if (v.tag == V_INT) {
        *d = (double)v.u.i;
    } else if (v.tag == V_BOOL) {
        *d = v.u.b;
    } else if (v.tag == V_FLOAT) {
        *d = v.u.d;
    } else {
        return false;
    }
    return true;
}

static bool integer_of(value v, int64_t *i)
{
    if (v.tag == V_INT) {
        *i = v.u.i;
    } else if (v.tag == V_BOOL) {
        *i = v.u.b;
    } else {
        return false;
    }
    return true;
}

// Sign of a - b for numbers, exact between int and float; 2 when unordered (NaN).
static int compare_numbers(value a, value b)
{
    int64_t i = 0, j = 0;
    if (integer_of(a, &i) && integer_of(b, &j)) {
        return i < j ? -1 : i > j;
    }
    double x = 0, y = 0;
    number_of(a, &x);
    number_of(b, &y);
    if (isnan(x) || isnan(y)) {
        return 2;
    }
    if (x < y || x > y) {
        return x < y ? -1 : 1;
    }
    if (a.tag != V_FLOAT && fabs(y) < 9.3e18) {  // equal after rounding: compare exactly
        integer_of(a, &i);
        int64_t k = (int64_t)y;
        return fabs(y) >= 9.2233720368547758e18 ? (y > 0 ? -1 : 1) : i < k ? -1 : i > k;
    }
    if (b.tag != V_FLOAT && fabs(x) < 9.3e18) {
        integer_of(b, &j);
        int64_t k = (int64_t)x;
        return fabs(x) >= 9.2233720368547758e18 ? (x > 0 ? 1 : -1) : k < j ? -1 : k > j;
    }
    return 0;
}

static bool is_number(value v)
{
    return v.tag == V_INT || v.tag == V_FLOAT || v.tag == V_BOOL;
}

static value payload(value v)
{
    return v.tag == V_OBJ && v.u.obj->base.tag != V_UNDEF ? v.u.obj->base : v;
}

static int equal_without_special(interp *it, value a, value b);

int equal(interp *it, value a, value b)
{
    if (a.tag == V_OBJ || b.tag == V_OBJ) {
        value r = obj_eq_special(it, a, b);
        if (r.tag != V_UNDEF) {
            return truth(it, r);
        }
    }
    return equal_without_special(it, a, b);
}

static int equal_without_special(interp *it, value a, value b)
{
    if (a.tag == V_OBJ || b.tag == V_OBJ || a.tag == V_CLASS) {
        int e = obj_equal(it, a, b);
        if (e != -2) {
            return e;
        }
        a = payload(a);
        b = payload(b);
        if (a.tag == V_OBJ || b.tag == V_OBJ) {
            return a.tag == b.tag && a.u.p == b.u.p;
        }
    }
    if (is_number(a) && is_number(b)) {
        return compare_numbers(a, b) == 0;
    }
    if (a.tag != b.tag) {
        // A dtype equals its name, as public kernels compare them; None never does.
        if ((a.tag == V_DTYPE && b.tag == V_STR) || (a.tag == V_STR && b.tag == V_DTYPE)) {
            value d = a.tag == V_DTYPE ? a : b, s = a.tag == V_DTYPE ? b : a;
            dtype t;
            return dtype_find(s.u.str->p, s.u.str->len, &t) && (int64_t)t == d.u.i;
        }
        return 0;
    }
    bool nests = a.tag == V_TUPLE || a.tag == V_LIST || a.tag == V_DICT || a.tag == V_SLICE ||
                 a.tag == V_METHOD;
    if (nests && !stack_ok(it)) {
        return -1;
    }
    switch ((vtag)a.tag) {
    case V_STR:
    case V_BYTES:
        return a.u.str->len == b.u.str->len && memcmp(a.u.str->p, b.u.str->p, a.u.str->len) == 0;
    case V_TUPLE:
        return a.u.tuple->n == b.u.tuple->n
                   ? equal_items(it, a.u.tuple->at, b.u.tuple->at, a.u.tuple->n)
                   : 0;
    case V_LIST: return equal_lists(it, a.u.list, b.u.list);
    case V_DICT: return equal_dicts(it, a.u.dict, b.u.dict, false);
    case V_SET: return equal_dicts(it, a.u.dict, b.u.dict, true);
    case V_RANGE: {
        const vrange *r = a.u.range, *s = b.u.range;
        int64_t n = range_len(r);
        return n == range_len(s) &&
               (n == 0 || (r->start == s->start && (n == 1 || r->step == s->step)));
    }
    case V_SLICE: {
        const vslice *r = a.u.slice, *s = b.u.slice;
        value x[] = {r->start, r->stop, r->step}, y[] = {s->start, s->stop, s->step};
        return equal_items(it, x, y, 3);
    }
    case V_METHOD:
        return is_same(a.u.method->self, b.u.method->self) &&
               is_same(a.u.method->fn, b.u.method->fn);
    default: return is_same(a, b);
    }
}

static value order_error(interp *it, ast_op op, value a, value b)
{
    if (a.tag == V_TENSOR || b.tag == V_TENSOR) {
        return no_elements(it, arena_printf(it->mem, "operator %s", ast_op_text(op)),
                           arena_printf(it->mem, "nl.%s(x, y) compares on the device",
                                        op == OP_LT   ? "less"
                                        : op == OP_LE ? "less_equal"
                                        : op == OP_GT ? "greater"
                                                      : "greater_equal"));
    }
    return type_error(it, "'%s' not supported between instances of '%s' and '%s'", ast_op_text(op),
                      type_name(it, a), type_name(it, b));
}

// -1, 0, 1 of sequences in dictionary order; -2 error.
static int compare_items(interp *it, ast_op op, const value *a, uint32_t na, const value *b,
                         uint32_t nb)
{
    if (!stack_ok(it)) {
        return -2;
    }
    uint32_t n = na < nb ? na : nb;
    for (uint32_t i = 0; i < n; i++) {
        int e = is_same(a[i], b[i]) ? 1 : equal(it, a[i], b[i]);
        if (e < 0) {
            return -2;
        }
        if (e == 0) {
            value lt = compare(it, OP_LT, a[i], b[i]);
            if (IS_ERR(lt)) {
                return -2;
            }
            (void)op;
            int t = truth(it, lt);
            return t < 0 ? -2 : t ? -1 : 1;
        }
    }
    return na < nb ? -1 : na > nb;
}

static bool subset(interp *it, vdict *a, vdict *b)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].key.tag != V_UNDEF && dict_get(it, b, a->at[i].key).tag == V_UNDEF) {
            return false;
        }
    }
    return true;
}

static value compare_sets(interp *it, ast_op op, vdict *a, vdict *b)
{
    switch (op) {
    case OP_LE: return VBOOL(subset(it, a, b));
    case OP_LT: return VBOOL(a->live < b->live && subset(it, a, b));
    case OP_GE: return VBOOL(subset(it, b, a));
    default: return VBOOL(b->live < a->live && subset(it, b, a));
    }
}

static value from_sign(ast_op op, int sign)
{
    switch (op) {
    case OP_LT: return VBOOL(sign < 0);
    case OP_LE: return VBOOL(sign <= 0);
    case OP_GT: return VBOOL(sign > 0);
    default: return VBOOL(sign >= 0);
    }
}

static value compare_objects(interp *it, ast_op op, value a, value b)
{
    static const ast_op mirror[] = {OP_GT, OP_GE, OP_LT, OP_LE};
    sym fwd[] = {N(__lt__), N(__le__), N(__gt__), N(__ge__)};
    value r = call_special(it, a, fwd[op - OP_LT], &b, 1);
    if (r.tag == V_UNDEF || r.tag == V_NOTIMPLEMENTED) {
        r = call_special(it, b, fwd[mirror[op - OP_LT] - OP_LT], &a, 1);
    }
    if (r.tag != V_UNDEF && r.tag != V_NOTIMPLEMENTED) {
        return r;
    }
    value x = payload(a), y = payload(b);
    if (x.tag != V_OBJ && y.tag != V_OBJ) {
        return compare(it, op, x, y);
    }
    return order_error(it, op, a, b);
}

static bool is_value(value v)
{
    return is_number(v) || v.tag == V_STR || v.tag == V_BYTES || v.tag == V_TUPLE;
}

value compare_identity(interp *it, ast_op op, value a, value b)
{
    if (is_value(a) && is_value(b) && interp_warn_first(it, D_value_identity)) {
        diag_value_identity(it->ds, interp_loc(it), op == OP_IS ? "is" : "is not");
    }
    return VBOOL(is_same(a, b) == (op == OP_IS));
}

value no_elements(interp *it, const char *what, const char *instead)
{
    return type_error(it,
                      "%s: the elements of a tensor have no value while the kernel is specialized; %s",
                      what, instead);
}

// ==, !=, <, <=, >, >=
value compare(interp *it, ast_op op, value a, value b)
{
    if (op == OP_EQ || op == OP_NE) {
        if (a.tag == V_OBJ || b.tag == V_OBJ) {
            value r =
                op == OP_NE && a.tag == V_OBJ ? call_special(it, a, N(__ne__), &b, 1) : VUNDEF;
            if (r.tag != V_UNDEF && r.tag != V_NOTIMPLEMENTED) {
                return r;
            }
            r = obj_eq_special(it, a, b);
            if (r.tag != V_UNDEF) {
                return op == OP_EQ || IS_ERR(r) ? r : unary_op(it, OP_NOT, r);
            }
        }
        if (((a.tag == V_TENSOR && (b.tag == V_TENSOR || is_number(b))) ||
             (b.tag == V_TENSOR && is_number(a))) &&
            interp_warn_first(it, D_tensor_compare)) {
            diag_tensor_compare(it->ds, interp_loc(it), ast_op_text(op));
        }
        int e = equal_without_special(it, a, b);
        return e < 0 ? VERR : VBOOL(op == OP_EQ ? e : !e);
    }
    if (is_number(a) && is_number(b)) {
        int s = compare_numbers(a, b);
        return s == 2 ? VBOOL(false) : from_sign(op, s);
    }
    if (a.tag == V_OBJ || b.tag == V_OBJ) {
        return compare_objects(it, op, a, b);
    }
    if (a.tag == V_REG || b.tag == V_REG) {
        return type_error(
            it, "a register has no value while the kernel is specialized and cannot be compared");
    }
    if (a.tag != b.tag) {
        return order_error(it, op, a, b);
    }
    switch ((vtag)a.tag) {
    case V_STR:
    case V_BYTES: {
        uint32_t n = a.u.str->len < b.u.str->len ? a.u.str->len : b.u.str->len;
        int s = memcmp(a.u.str->p, b.u.str->p, n);
        s = s ? s : a.u.str->len < b.u.str->len ? -1 : a.u.str->len > b.u.str->len;
        return from_sign(op, s);
    }
    case V_TUPLE:
    case V_LIST: {
        const value *x = a.tag == V_LIST ? a.u.list->at : a.u.tuple->at;
        const value *y = b.tag == V_LIST ? b.u.list->at : b.u.tuple->at;
        uint32_t n = a.tag == V_LIST ? a.u.list->n : a.u.tuple->n;
        uint32_t m = b.tag == V_LIST ? b.u.list->n : b.u.tuple->n;
        int s = compare_items(it, op, x, n, y, m);
        return s == -2 ? VERR : from_sign(op, s);
    }
    case V_SET: return compare_sets(it, op, a.u.dict, b.u.dict);
    default: return order_error(it, op, a, b);
    }
}

int less(interp *it, value a, value b)
{
    value r = compare(it, OP_LT, a, b);
    return IS_ERR(r) ? -1 : truth(it, r);
}

static uint32_t mix(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(x ^ (x >> 32));
}

bool hash_value(interp *it, value v, uint32_t *out)
{
    switch ((vtag)v.tag) {
    case V_BOOL: *out = mix(v.u.b); return true;
    case V_INT: *out = mix((uint64_t)v.u.i); return true;
    case V_FLOAT:
        // Equal numbers hash alike, whatever their type.
        if (v.u.d == floor(v.u.d) && fabs(v.u.d) < 9e18) {
            *out = mix((uint64_t)(int64_t)v.u.d);
        } else {
            uint64_t bits;
            memcpy(&bits, &v.u.d, 8);
            *out = mix(bits);
        }
        return true;
    case V_STR:
    case V_BYTES: *out = hash_bytes(v.u.str->p, v.u.str->len); return true;
    case V_DTYPE: {
        const char *n = dtype_name((dtype)v.u.i);  // equal to its name
        *out = hash_bytes(n, strlen(n));
        return true;
    }
    case V_TUPLE: {
        if (!stack_ok(it)) {
            return false;
        }
        uint32_t h = 0x345678u;
        for (uint32_t i = 0; i < v.u.tuple->n; i++) {
            uint32_t e;
            if (!hash_value(it, v.u.tuple->at[i], &e)) {
                return false;
            }
            h = mix(((uint64_t)h << 32) | e);
        }
        *out = h;
        return true;
    }
    case V_OBJ: {
        value r = call_special(it, v, N(__hash__), NULL, 0);
        if (IS_ERR(r)) {
            return false;
        }
        if (r.tag == V_INT || r.tag == V_BOOL) {
            *out = mix((uint64_t)r.u.i);
            return true;
        }
        const vclass *c = v.u.obj->cls;
        if (r.tag == V_NONE || (c->is_dataclass && c->eq && !c->frozen && !c->unsafe_hash) ||
            (r.tag == V_UNDEF && class_lookup(c, N(__eq__)).tag == V_FUNC)) {
            type_error(it, "unhashable type: '%s'", c->id->text);
            return false;
        }
        if (c->is_dataclass && c->eq) {
            uint32_t h = 0x1234567u;
            for (uint32_t i = 0; i < c->nfields; i++) {
                uint32_t e = 0;
                value f = attrs_get(&v.u.obj->attrs, c->fields[i].id);
                if (c->fields[i].compare && f.tag != V_UNDEF && !hash_value(it, f, &e)) {
                    return false;
                }
                h = mix(((uint64_t)h << 32) | e);
            }
            *out = h;
            return true;
        }
        if (v.u.obj->base.tag != V_UNDEF) {
            return hash_value(it, v.u.obj->base, out);
        }
        // Objects are numbered by their place in the arena only within one table: order of
        // insertion, not of hashes, decides what a program sees.
        *out = mix((uint64_t)(uintptr_t)v.u.p);
        return true;
    }
    case V_RANGE:
        *out = mix((uint64_t)v.u.range->start ^ (uint64_t)v.u.range->stop << 20);
        return true;
    case V_SET:
        if (v.u.dict->dflt.tag == V_ELLIPSIS) {  // a frozenset
            uint32_t h = 0;
            for (uint32_t i = 0; i < v.u.dict->n; i++) {
                h += v.u.dict->at[i].key.tag == V_UNDEF ? 0 : v.u.dict->at[i].hash;
            }
            *out = h;
            return true;
        }
        type_error(it, "unhashable type: 'set'");
        return false;
    case V_LIST:
    case V_DICT:
    case V_SLICE: type_error(it, "unhashable type: '%s'", type_name(it, v)); return false;
    default: *out = mix((uint64_t)v.tag << 56 ^ (uint64_t)v.u.i); return true;
    }
}
