// The modules that stdlib's own modules stand on: _nki, _nki_isa, _nki_ncc, _nki_ctrl, _nki_math.
#include "lower/interp.h"

#include <math.h>
#include <string.h>

static bool constant_bytes(interp *it, value v, dtype d, unsigned char *out);
static double narrow_round(dtype d, double x);

bool dtype_of_value(interp *it, value v, dtype *out)
{
    if (v.tag == V_DTYPE) {
        *out = (dtype)v.u.i;
        return true;
    }
    if (v.tag == V_STR && dtype_find(v.u.str->p, v.u.str->len, out)) {
        return true;
    }
    if (v.tag == V_TYPE) {
        *out = v.u.i == T_FLOAT ? DT_float32 : v.u.i == T_INT ? DT_int32 : DT_bool_;
        if (v.u.i == T_FLOAT || v.u.i == T_INT || v.u.i == T_BOOL) {
            return true;
        }
    }
    if (v.tag == V_OBJ || v.tag == V_CLASS) {
        value d = find_attr(it, v, N(dtype));
        if (d.tag == V_DTYPE) {
            *out = (dtype)d.u.i;
            return true;
        }
        if (IS_ERR(d)) {
            return false;
        }
    }
    textbuf t;
    text_init(&t, it->mem);
    if (repr_into(it, v, &t)) {
        type_error(it, "%s is not a dtype of nki.language", t.at);
    }
    return false;
}

value dtype_call(interp *it, dtype d, const args *a)
{
    if (a->n > 1 || a->nkw) {
        return type_error(it, "%s() takes one number", dtype_name(d));
    }
    value v = a->n ? a->at[0] : VINT(0);
    if (v.tag == V_STR) {
        v = type_call(it, dtype_is_float(d) ? T_FLOAT : T_INT, a);
    }
    if (v.tag != V_INT && v.tag != V_FLOAT && v.tag != V_BOOL) {
        return IS_ERR(v) ? v : type_error(it, "%s() takes a number, not %s; use nl.copy(x, dtype=...) for a tile", dtype_name(d),
                                          type_name(it, v));
    }
    double x = v.tag == V_FLOAT ? v.u.d : v.tag == V_INT ? (double)v.u.i : v.u.b;
    if (d == DT_bool_) {
        return VBOOL(x != 0);
    }
    if (dtype_is_float(d)) {
        unsigned char raw[4];
        if (d == DT_float32 || d == DT_tfloat32) {
            return VFLT((double)(float)x);
        }
        if (d == DT_bfloat16) {
            value f = VFLT(x);
            uint32_t u = 0;
            if (!constant_bytes(it, f, d, raw)) {
                return VERR;
            }
            u = (uint32_t)raw[0] << 16 | (uint32_t)raw[1] << 24;
            float r;
            memcpy(&r, &u, 4);
            return VFLT((double)r);
        }
        return VFLT(narrow_round(d, x));
    }
    value i = type_call(it, T_INT, &(args){&v, 1, 0, NULL});
    if (i.tag != V_INT || dtype_size(d) > 4) {
        return i;
    }
    // As NumPy casts: the low bits.
    uint64_t bits = (uint64_t)i.u.i & (((uint64_t)1 << (8 * dtype_size(d))) - 1);
    bool neg = dtype_class_of(d) == DTC_I && bits >> (8 * dtype_size(d) - 1);
    return VINT(neg ? (int64_t)bits - ((int64_t)1 << (8 * dtype_size(d))) : (int64_t)bits);
}

bool buffer_of_value(interp *it, value v, buffer_kind *out)
{
    if (v.tag == V_BUFFER) {
        *out = (buffer_kind)v.u.i;
        return true;
    }
    textbuf t;
    text_init(&t, it->mem);
    if (repr_into(it, v, &t)) {
        type_error(it, "buffer must be nl.sbuf, nl.psum, nl.hbm, nl.private_hbm or nl.shared_hbm, not %s%s", t.at,
                   v.tag == V_STR ? " (string names were removed)" : "");
    }
    return false;
}

// ---- tensors

static value n_ndarray(interp *it, const args *a)
{
    static const char *const params[] = {"shape", "dtype", "buffer", "name", "address"};
    value p[5];
    dtype d;
    buffer_kind b = BUF_SBUF;
    if (!bind_native(it, "ndarray", a, params, 5, 2, p) || !dtype_of_value(it, p[1], &d) ||
        (p[2].tag != V_UNDEF && p[2].tag != V_NONE && !buffer_of_value(it, p[2], &b))) {
        return VERR;
    }
    ir_tensor t = {.dtype = (uint8_t)d, .buffer = (uint8_t)b, .addr_bytes = (uint64_t)ADDR_AUTO};
    const value *dims = &p[0];
    uint32_t n = 1;
    if (p[0].tag == V_TUPLE || p[0].tag == V_LIST) {
        dims = items_of(it, p[0], &n);
    } else if (p[0].tag != V_INT) {
        return type_error(it, "ndarray: shape is a tuple of integers, got %s", type_name(it, p[0]));
    }
    if (n > IR_MAX_DIMS) {
        return value_error(it, "ndarray: %u dimensions; a tensor has at most %d", n, IR_MAX_DIMS);
    }
    for (uint32_t i = 0; i < n; i++) {
        int64_t s;
        if (dims[i].tag == V_FLOAT) {
            return type_error(it, "ndarray: dimension %u of shape is the float %g; use // for integer division", i, dims[i].u.d);
        }
        if (!as_index(it, dims[i], &s)) {
            return VERR;
        }
        if (s < 0 || s > INT32_MAX) {
            return value_error(it, "ndarray: dimension %u of shape is %lld; it must be at least 1", i, (long long)s);
        }
        t.shape[i] = (uint32_t)s;
    }
    t.ndim = (uint8_t)n;
    if (p[3].tag == V_STR) {
        t.name = ir_str(it->p, p[3].u.str->p, p[3].u.str->len);
    }
    if (p[4].tag != V_UNDEF && p[4].tag != V_NONE) {
        uint32_t k;
        value *at = p[4].tag == V_TUPLE || p[4].tag == V_LIST ? items_of(it, p[4], &k) : NULL;
        int64_t part, byte;
        if (!at || k != 2 || !as_index(it, at[0], &part) || !as_index(it, at[1], &byte)) {
            it->exc = VUNDEF;
            return type_error(it, "ndarray: address is a tuple (partition, byte offset)");
        }
        if (part < 0 || byte < 0 || part > 127 || byte > INT32_MAX) {
            return raise_msg(it, "NkiValidationError", "ndarray: address (%lld, %lld) is outside the memory", (long long)part,
                             (long long)byte);
        }
        t.manual = 1;
        t.addr_part = (uint32_t)part;
        t.addr_bytes = (uint64_t)byte;
    }
    return tensor_new(it, t);
}

// Floats of fewer than 32 bits: fraction bits, exponent of the least normal, largest value.
typedef struct narrow {
    int frac, emin;
    double max;
    bool inf;  // overflow becomes infinity, else NaN
} narrow;

static narrow narrow_of(dtype d)
{
    switch (d) {
    case DT_float8_e5m2: return (narrow){2, -14, 57344, true};
    case DT_float8_e4m3: return (narrow){3, -6, 240, true};
    case DT_float8_e4m3fn: return (narrow){3, -6, 448, false};
    default: return (narrow){10, -14, 65504, true};
    }
}

// x rounded to the nearest, ties to even.
static double narrow_round(dtype d, double x)
{
    narrow f = narrow_of(d);
    if (!isfinite(x) || x == 0) {
        return isinf(x) && !f.inf ? NAN : x;
    }
    int e;
    frexp(x, &e);
    e = (e - 1 < f.emin ? f.emin : e - 1) - f.frac;
    double r = ldexp(nearbyint(ldexp(x, -e)), e);
    return fabs(r) <= f.max ? r : f.inf ? copysign(INFINITY, x) : NAN;
}

static uint32_t narrow_bits(dtype d, double x)
{
    narrow f = narrow_of(d);
    int ebits = (int)dtype_size(d) * 8 - 1 - f.frac;
    uint32_t sign = signbit(x) ? 1u << (f.frac + ebits) : 0, top = (1u << ebits) - 1;
    double r = fabs(narrow_round(d, x));
    if (isnan(r)) {
        return f.inf ? sign | top << f.frac | 1u << (f.frac - 1) : sign | ((1u << (f.frac + ebits)) - 1);
    }
    if (isinf(r)) {
        return sign | top << f.frac;
    }
    if (r < ldexp(1, f.emin)) {
        return sign | (uint32_t)ldexp(r, f.frac - f.emin);
    }
    int e;
    double m = frexp(r, &e);
    return sign | (uint32_t)(e - f.emin) << f.frac | ((uint32_t)ldexp(m, f.frac + 1) & ((1u << f.frac) - 1));
}

static bool constant_bytes(interp *it, value v, dtype d, unsigned char *out)
{
    double x;
    int64_t i = 0;
    if (v.tag == V_INT) {
        i = v.u.i;
        x = (double)i;
    } else if (v.tag == V_BOOL) {
        i = v.u.b;
        x = (double)i;
    } else if (v.tag == V_FLOAT) {
        x = v.u.d;
        i = x == x && fabs(x) < 9e18 ? (int64_t)x : 0;
    } else {
        type_error(it, "a constant holds numbers, got %s", type_name(it, v));
        return false;
    }
    switch (d) {
    case DT_float32: case DT_tfloat32: {
        float f = (float)x;
        memcpy(out, &f, 4);
        return true;
    }
    case DT_bfloat16: {
        float f = (float)x;
        uint32_t u;
        memcpy(&u, &f, 4);
        u = (u & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : u + 0x7fff + (u >> 16 & 1);
        out[0] = (unsigned char)(u >> 16);
        out[1] = (unsigned char)(u >> 24);
        return true;
    }
    case DT_float16: case DT_float8_e5m2: case DT_float8_e4m3: case DT_float8_e4m3fn: {
        uint32_t bits = narrow_bits(d, x);
        memcpy(out, &bits, dtype_size(d));
        return true;
    }
    case DT_float8_e8m0fnu: {
        int e = 0;
        frexp(x, &e);
        *out = x > 0 && isfinite(x) ? (unsigned char)(e - 1 < -127 ? 0 : e - 1 > 127 ? 254 : e - 1 + 127) : 255;
        return true;
    }
    default:
        if (dtype_class_of(d) == DTC_X) {
            type_error(it, "a constant of dtype %s is not supported", dtype_name(d));
            return false;
        }
        for (uint32_t k = 0; k < dtype_size(d); k++) {
            out[k] = (unsigned char)((uint64_t)i >> (8 * k));
        }
        return true;
    }
}

// constant(flat_list, shape, dtype): an HBM tensor loaded with the program.
static value n_constant(interp *it, const args *a)
{
    static const char *const params[] = {"values", "shape", "dtype"};
    value p[3];
    dtype d;
    uint32_t n, nd;
    if (!bind_native(it, "constant", a, params, 3, 3, p) || !dtype_of_value(it, p[2], &d)) {
        return VERR;
    }
    value *at = items_of(it, p[0], &n), *dims = at ? items_of(it, p[1], &nd) : NULL;
    if (!dims) {
        return VERR;
    }
    ir_tensor t = {.dtype = (uint8_t)d, .buffer = BUF_SHARED, .role = ROLE_CONST, .addr_bytes = (uint64_t)ADDR_AUTO};
    uint64_t total = 1;
    if (nd > IR_MAX_DIMS) {
        return value_error(it, "a constant has at most %d dimensions", IR_MAX_DIMS);
    }
    for (uint32_t i = 0; i < nd; i++) {
        if (dims[i].tag != V_INT || dims[i].u.i < 1) {
            return value_error(it, "a constant's shape holds positive integers");
        }
        t.shape[i] = (uint32_t)dims[i].u.i;
        total *= t.shape[i];
    }
    t.ndim = (uint8_t)nd;
    if (total != n) {
        return value_error(it, "constant: %u values for %llu elements", n, (unsigned long long)total);
    }
    uint32_t size = dtype_size(d), first = (it->p->blob.n + 63) & ~63u;
    vec_reserve(it->mem, &it->p->blob, first - it->p->blob.n + n * size);
    memset(it->p->blob.at + it->p->blob.n, 0, first - it->p->blob.n);
    it->p->blob.n = first + n * size;
    for (uint32_t i = 0; i < n; i++) {
        if (!constant_bytes(it, at[i], d, it->p->blob.at + first + i * size)) {
            return VERR;
        }
    }
    t.data = first;
    t.size_bytes = total * size;
    t.place = interp_place(it);
    return tensor_whole(it, ir_tensor_add(it->p, t));
}

static value n_is_tensor(interp *it, const args *a)
{
    (void)it;
    return VBOOL(a->n == 1 && a->at[0].tag == V_TENSOR);
}

static value n_is_register(interp *it, const args *a)
{
    (void)it;
    return VBOOL(a->n == 1 && a->at[0].tag == V_REG);
}

static value n_dtype(interp *it, const args *a)
{
    dtype d;
    if (a->n != 1) {
        return type_error(it, "dtype() takes one argument");
    }
    return dtype_of_value(it, a->at[0], &d) ? VID(V_DTYPE, d) : VERR;
}

static value n_dtype_kind(interp *it, const args *a)
{
    static const char *const kinds[] = {[DTC_F] = "f", [DTC_I] = "i", [DTC_U] = "u", [DTC_B] = "b", [DTC_X] = "x", [DTC_E] = "e"};
    dtype d;
    if (a->n != 1) {
        return type_error(it, "dtype_kind() takes one argument");
    }
    return dtype_of_value(it, a->at[0], &d) ? v_cstr(it, kinds[dtype_class_of(d)]) : VERR;
}

static value n_ds(interp *it, const args *a)
{
    static const char *const params[] = {"start", "size"};
    value p[2];
    int64_t size;
    if (!bind_native(it, "ds", a, params, 2, 2, p) || !as_index(it, p[1], &size)) {
        return VERR;
    }
    vds *d = NEW(it->mem, vds);
    *d = (vds){p[0], size};
    return (value){.tag = V_DS, .u.ds = d};
}

// ---- operators

static value op_mark(interp *it, const args *a)
{
    value o = it->native_self;
    if (a->n != 1 || a->at[0].tag != V_FUNC) {
        return type_error(it, "op() decorates a function");
    }
    a->at[0].u.func->op = (int)o.u.i;
    return a->at[0];
}

static bool op_named(interp *it, const args *a, op_id *out)
{
    if (a->n == 1 && a->at[0].tag == V_STR && op_find(a->at[0].u.str->p, out)) {
        return true;
    }
    value_error(it, "no operator of this name");
    return false;
}

static value n_op(interp *it, const args *a)
{
    op_id o;
    if (!op_named(it, a, &o)) {
        return VERR;
    }
    vnative *n = NEW(it->mem, vnative);
    *n = (vnative){"op", op_mark, VINT(o)};
    return (value){.tag = V_NATIVE, .u.native = n};
}

static value n_operator(interp *it, const args *a)
{
    op_id o;
    return op_named(it, a, &o) ? VID(V_OP, o) : VERR;
}

// ---- program

static value n_program_id(interp *it, const args *a)
{
    (void)a;
    return VINT(it->o->core);
}

static value n_num_programs(interp *it, const args *a)
{
    (void)a;
    return VINT(it->o->grid ? it->o->grid : 1);
}

static value n_grid(interp *it, const args *a)
{
    (void)a;
    return it->o->grid ? VINT(it->o->grid) : VNONE;
}

static value n_rank(interp *it, const args *a)
{
    (void)a;
    return VINT(it->o->rank);
}

static value n_target_gen(interp *it, const args *a)
{
    (void)a;
    return VINT(it->o->target->gen);
}

static value n_dynamic_range(interp *it, const args *a)
{
    static const char *const params[] = {"start", "stop", "step"};
    value p[3];
    if (!bind_native(it, "dynamic_range", a, params, 3, 1, p)) {
        return VERR;
    }
    vdynrange *r = NEW(it->mem, vdynrange);
    bool one = p[1].tag == V_UNDEF || p[1].tag == V_NONE;
    r->lo = one ? VINT(0) : p[0];
    r->hi = one ? p[0] : p[1];
    r->step = 1;
    if (p[2].tag != V_UNDEF && p[2].tag != V_NONE) {
        if (p[2].tag != V_INT) {
            return raise_msg(it, "AssertionError", "dynamic_range: step must be a positive integer known at compile time");
        }
        if (p[2].u.i < 1) {
            return interp_raise(it, diag_loop_step(&it->pend, interp_loc(it), "dynamic_range", (long long)p[2].u.i));
        }
        r->step = p[2].u.i;
    }
    value ends[] = {r->lo, r->hi};
    for (int i = 0; i < 2; i++) {
        if (ends[i].tag != V_INT && ends[i].tag != V_REG && ends[i].tag != V_BOOL) {
            return type_error(it, "dynamic_range: start and stop are integers or registers, got %s", type_name(it, ends[i]));
        }
    }
    return VPTR(V_DYNRANGE, r);
}

static value n_no_reorder_begin(interp *it, const args *a)
{
    (void)a;
    vec_push(it->mem, &it->reorder, it->p->instrs.n);
    return VNONE;
}

static value n_no_reorder_end(interp *it, const args *a)
{
    (void)a;
    // Of nested regions the outermost has all the instructions.
    if (it->reorder.n && --it->reorder.n == 0) {
        isa_keep_order(it, it->reorder.at[0]);
    }
    return VNONE;
}

static value n_warn(interp *it, const args *a)
{
    if (a->n != 2 || a->at[0].tag != V_STR || a->at[1].tag != V_STR) {
        return type_error(it, "warn() takes a name and a message");
    }
    bool sim = strcmp(a->at[0].u.str->p, "simulator_only") == 0;
    interp_warn_once(it, arena_printf(it->mem, "%s %s", a->at[0].u.str->p, a->at[1].u.str->p),
                     sim ? diag_simulator_only : diag_deprecated, a->at[1].u.str->p);
    return VNONE;
}

// nki.jit(f) without the decorator's sign: a kernel from here on.
static value n_mark_kernel(interp *it, const args *a)
{
    (void)it;
    if (a->n == 1 && a->at[0].tag == V_FUNC) {
        a->at[0].u.func->jit = 1;
    }
    return a->n ? a->at[0] : VNONE;
}

static value n_fail(interp *it, const args *a)
{
    if (a->n != 1 || a->at[0].tag != V_STR) {
        return type_error(it, "fail() takes a message");
    }
    return raise_obj(it, exc_new(it, exc_class(it, "NkiValidationError"), a->at[0]));
}

static value n_loop_depth(interp *it, const args *a)
{
    (void)a;
    return VINT(it->dyn_depth);
}

static value n_property_cached(interp *it, const args *a)
{
    if (a->n != 1 || a->at[0].tag != V_FUNC) {
        return type_error(it, "cached_property() decorates a method");
    }
    vdescr *d = NEW(it->mem, vdescr);
    *d = (vdescr){DESCR_CACHED, a->at[0], a->at[0], VUNDEF};
    return VPTR(V_DESCR, d);
}

static value n_count(interp *it, const args *a)
{
    int64_t start = 0, step = 1;
    if ((a->n > 0 && !as_index(it, a->at[0], &start)) || (a->n > 1 && !as_index(it, a->at[1], &step))) {
        return VERR;
    }
    return iter_count(it, start, step);
}

// ---- mathematics

typedef double (*math1)(double);

static value domain(interp *it)
{
    return value_error(it, "math domain error");
}

static value math_call(interp *it, const args *a)
{
    static const struct {
        const char *name;
        math1 fn;
    } fns[] = {
        {"sqrt", sqrt}, {"log", log}, {"log2", log2}, {"log10", log10}, {"log1p", log1p}, {"exp", exp}, {"expm1", expm1},
        {"sin", sin}, {"cos", cos}, {"tan", tan}, {"asin", asin}, {"acos", acos}, {"atan", atan}, {"sinh", sinh},
        {"cosh", cosh}, {"tanh", tanh}, {"fabs", fabs}, {"erf", erf}, {"gamma", tgamma}, {"lgamma", lgamma},
        {"cbrt", cbrt}, {"asinh", asinh}, {"acosh", acosh}, {"atanh", atanh}, {"exp2", exp2}, {"erfc", erfc},
    };
    int64_t which = it->native_self.u.i;
    if (a->n == 2 && strcmp(fns[which].name, "log") == 0) {
        // log(x, base), its errors those of log(x) and log(base)
        value x = math_call(it, &(args){a->at, 1, 0, NULL});
        it->native_self = VINT(which);
        value b = IS_ERR(x) ? x : math_call(it, &(args){a->at + 1, 1, 0, NULL});
        return IS_ERR(b) ? b : binary_op(it, OP_DIV, x, b);
    }
    if (a->n != 1 || a->nkw) {
        return type_error(it, "math.%s() takes exactly one argument (%u given)", fns[which].name, a->n + a->nkw);
    }
    value v = a->n ? type_call(it, T_FLOAT, &(args){a->at, 1, 0, NULL}) : VNONE;
    if (IS_ERR(v)) {
        if (a->at[0].tag != V_STR) {
            it->exc = VUNDEF;
        } else {
            it->exc = VUNDEF;
        }
        return type_error(it, "must be real number, not %s", type_name(it, a->at[0]));
    }
    if (v.tag != V_FLOAT || a->at[0].tag == V_STR) {
        return type_error(it, "must be real number, not %s", a->n ? type_name(it, a->at[0]) : "nothing");
    }
    double r = fns[which].fn(v.u.d);
    if (isnan(r) && !isnan(v.u.d)) {
        return domain(it);
    }
    if (isinf(r) && isfinite(v.u.d)) {
        bool pole = strncmp(fns[which].name, "log", 3) == 0 || strcmp(fns[which].name, "atanh") == 0 ||
                    strcmp(fns[which].name, "gamma") == 0 || strcmp(fns[which].name, "lgamma") == 0;
        return pole ? domain(it) : raise_msg(it, "OverflowError", "math range error");
    }
    return VFLT(r);
}

static bool two(interp *it, const args *a, double *x, double *y)
{
    if (a->n != 2) {
        type_error(it, "expected 2 arguments, got %u", a->n);
        return false;
    }
    value u = type_call(it, T_FLOAT, &(args){a->at, 1, 0, NULL});
    value v = IS_ERR(u) ? u : type_call(it, T_FLOAT, &(args){a->at + 1, 1, 0, NULL});
    if (IS_ERR(v) || v.tag != V_FLOAT || u.tag != V_FLOAT) {
        return false;
    }
    *x = u.u.d;
    *y = v.u.d;
    return true;
}

static value m_atan2(interp *it, const args *a)
{
    double x, y;
    return two(it, a, &x, &y) ? VFLT(atan2(x, y)) : VERR;
}

static value m_fmod(interp *it, const args *a)
{
    double x, y;
    return !two(it, a, &x, &y) ? VERR : y == 0 || isinf(x) ? domain(it) : VFLT(fmod(x, y));
}

static value m_copysign(interp *it, const args *a)
{
    double x, y;
    return two(it, a, &x, &y) ? VFLT(copysign(x, y)) : VERR;
}

static value m_remainder(interp *it, const args *a)
{
    double x, y;
    return two(it, a, &x, &y) ? VFLT(remainder(x, y)) : VERR;
}

static value m_nextafter(interp *it, const args *a)
{
    double x, y;
    return two(it, a, &x, &y) ? VFLT(nextafter(x, y)) : VERR;
}

static value m_pow(interp *it, const args *a)
{
    double x, y;
    if (!two(it, a, &x, &y)) {
        return VERR;
    }
    double r = pow(x, y);
    if (isnan(r) && !isnan(x) && !isnan(y)) {
        return domain(it);
    }
    if (isinf(r) && isfinite(x) && isfinite(y)) {
        return x == 0 ? domain(it) : raise_msg(it, "OverflowError", "math range error");
    }
    return VFLT(r);
}

static value m_hypot(interp *it, const args *a)
{
    double s = 0;
    if (a->n == 2) {
        double x, y;
        return two(it, a, &x, &y) ? VFLT(hypot(x, y)) : VERR;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        value v = type_call(it, T_FLOAT, &(args){a->at + i, 1, 0, NULL});
        if (IS_ERR(v)) {
            return v;
        }
        s = hypot(s, v.u.d);
    }
    return VFLT(s);
}

static value whole(interp *it, const args *a, double (*fn)(double), sym special)
{
    if (a->n != 1) {
        return type_error(it, "expected one argument, got %u", a->n);
    }
    value v = a->at[0];
    if (v.tag == V_INT || v.tag == V_BOOL) {
        return VINT(v.tag == V_INT ? v.u.i : v.u.b);
    }
    if (v.tag == V_OBJ) {
        value r = call_special(it, v, special, NULL, 0);
        if (r.tag != V_UNDEF) {
            return r;
        }
    }
    if (v.tag != V_FLOAT) {
        return type_error(it, "must be real number, not %s", type_name(it, v));
    }
    value r = VFLT(fn(v.u.d));
    return type_call(it, T_INT, &(args){&r, 1, 0, NULL});
}

static value m_ceil(interp *it, const args *a)
{
    return whole(it, a, ceil, intern_cstr(it->names, "__ceil__"));
}

static value m_floor(interp *it, const args *a)
{
    return whole(it, a, floor, intern_cstr(it->names, "__floor__"));
}

static value m_trunc(interp *it, const args *a)
{
    return whole(it, a, trunc, intern_cstr(it->names, "__trunc__"));
}

static value m_class(interp *it, const args *a)
{
    value v = a->n == 1 ? type_call(it, T_FLOAT, &(args){a->at, 1, 0, NULL}) : VNONE;
    if (v.tag != V_FLOAT) {
        return IS_ERR(v) ? v : type_error(it, "expected one argument");
    }
    switch (it->native_self.u.i) {
    case 0: return VBOOL(isnan(v.u.d));
    case 1: return VBOOL(isinf(v.u.d));
    default: return VBOOL(isfinite(v.u.d));
    }
}

static value m_frexp(interp *it, const args *a)
{
    value v = a->n == 1 ? type_call(it, T_FLOAT, &(args){a->at, 1, 0, NULL}) : VNONE;
    if (v.tag != V_FLOAT) {
        return IS_ERR(v) ? v : type_error(it, "expected one argument");
    }
    int e;
    double m = frexp(v.u.d, &e);
    return v_tuple(it, (value[]){VFLT(m), VINT(e)}, 2);
}

static value m_modf(interp *it, const args *a)
{
    value v = a->n == 1 ? type_call(it, T_FLOAT, &(args){a->at, 1, 0, NULL}) : VNONE;
    if (v.tag != V_FLOAT) {
        return IS_ERR(v) ? v : type_error(it, "expected one argument");
    }
    double w, f = modf(v.u.d, &w);
    return v_tuple(it, (value[]){VFLT(f), VFLT(w)}, 2);
}

static value m_ldexp(interp *it, const args *a)
{
    if (a->n != 2 || a->at[1].tag != V_INT) {
        return type_error(it, "Expected an int as second argument to ldexp.");
    }
    value v = type_call(it, T_FLOAT, &(args){a->at, 1, 0, NULL});
    int64_t e = a->at[1].u.i;
    e = e < -5000 ? -5000 : e > 5000 ? 5000 : e;
    return IS_ERR(v) ? v : VFLT(ldexp(v.u.d, (int)e));
}

static value m_degrees(interp *it, const args *a)
{
    value v = a->n == 1 ? type_call(it, T_FLOAT, &(args){a->at, 1, 0, NULL}) : VNONE;
    return v.tag == V_FLOAT ? VFLT(v.u.d * (180.0 / 3.14159265358979323846)) : v;
}

static value m_radians(interp *it, const args *a)
{
    value v = a->n == 1 ? type_call(it, T_FLOAT, &(args){a->at, 1, 0, NULL}) : VNONE;
    return v.tag == V_FLOAT ? VFLT(v.u.d * (3.14159265358979323846 / 180.0)) : v;
}

// ---- the modules

static vmodule *new_module(interp *it, const char *name)
{
    vmodule *m = NEW(it->mem, vmodule);
    m->id = intern_cstr(it->names, name);
    m->builtin = true;
    attrs_set(it, &it->modules, m->id, (value){.tag = V_MODULE, .u.module = m});
    return m;
}

static void put(interp *it, vmodule *m, const char *name, value v)
{
    attrs_set(it, &m->attrs, intern_cstr(it->names, name), v);
}

static void put_bound(interp *it, vmodule *m, const char *name, native_fn fn, value self)
{
    vnative *n = NEW(it->mem, vnative);
    *n = (vnative){name, fn, self};
    put(it, m, name, (value){.tag = V_NATIVE, .u.native = n});
}

static void fill_nki(interp *it, vmodule *m)
{
    for (int d = 0; d < DT_COUNT; d++) {
        put(it, m, dtype_name((dtype)d), VID(V_DTYPE, d));
    }
    put(it, m, "bool_", VID(V_DTYPE, DT_bool_));
    static const char *const buffers[] = {"sbuf", "psum", "private_hbm", "shared_hbm"};
    for (int b = 0; b < BUF_COUNT; b++) {
        put(it, m, buffers[b], VID(V_BUFFER, b));
    }
    static const struct {
        const char *name;
        vtype t;
    } types[] = {{"NkiTensor", T_TENSOR}, {"VirtualRegister", T_REGISTER}, {"NkiInstruction", T_INSTR},
                 {"MemoryRegion", T_REGION}, {"DType", T_DTYPE}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        put(it, m, types[i].name, VID(V_TYPE, types[i].t));
    }
    static const struct {
        const char *name;
        native_fn fn;
    } fns[] = {
        {"ndarray", n_ndarray}, {"constant", n_constant}, {"is_tensor", n_is_tensor}, {"is_register", n_is_register},
        {"dtype", n_dtype}, {"dtype_kind", n_dtype_kind}, {"ds", n_ds}, {"op", n_op}, {"operator", n_operator},
        {"program_id", n_program_id}, {"num_programs", n_num_programs}, {"grid", n_grid}, {"rank", n_rank},
        {"target_gen", n_target_gen}, {"dynamic_range", n_dynamic_range}, {"no_reorder_begin", n_no_reorder_begin},
        {"no_reorder_end", n_no_reorder_end}, {"loop_depth", n_loop_depth}, {"warn", n_warn}, {"fail", n_fail}, {"mark_kernel", n_mark_kernel},
        {"cached_property", n_property_cached}, {"count", n_count},
    };
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) {
        put(it, m, fns[i].name, v_native(it, fns[i].name, fns[i].fn));
    }
    value env = v_dict(it);
    for (uint32_t i = 0; i < it->o->env_n; i++) {
        dict_set(it, env.u.dict, v_cstr(it, it->o->env[i].name), v_cstr(it, it->o->env[i].value));
    }
    put(it, m, "environ", env);
    class_natives(it, m);
}

static void fill_math(interp *it, vmodule *m)
{
    static const char *const unary[] = {"sqrt", "log", "log2", "log10", "log1p", "exp", "expm1", "sin", "cos", "tan",
                                        "asin", "acos", "atan", "sinh", "cosh", "tanh", "fabs", "erf", "gamma", "lgamma",
                                        "cbrt", "asinh", "acosh", "atanh", "exp2", "erfc"};
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
        put_bound(it, m, unary[i], math_call, VINT((int64_t)i));
    }
    static const struct {
        const char *name;
        native_fn fn;
    } fns[] = {
        {"atan2", m_atan2}, {"fmod", m_fmod}, {"copysign", m_copysign}, {"pow", m_pow}, {"hypot", m_hypot},
        {"ceil", m_ceil}, {"floor", m_floor}, {"trunc", m_trunc}, {"frexp", m_frexp}, {"ldexp", m_ldexp},
        {"modf", m_modf}, {"degrees", m_degrees}, {"radians", m_radians}, {"remainder", m_remainder},
        {"nextafter", m_nextafter},
    };
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) {
        put(it, m, fns[i].name, v_native(it, fns[i].name, fns[i].fn));
    }
    put_bound(it, m, "isnan", m_class, VINT(0));
    put_bound(it, m, "isinf", m_class, VINT(1));
    put_bound(it, m, "isfinite", m_class, VINT(2));
}

vmodule *native_module(interp *it, const char *dotted)
{
    static const char *const names[] = {"_nki", "_nki_isa", "_nki_ncc", "_nki_ctrl", "_nki_math"};
    if (strncmp(dotted, "_nki", 4) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(dotted, names[i]) != 0) {
            continue;
        }
        value v = attrs_get(&it->modules, intern_cstr(it->names, dotted));
        if (v.tag == V_MODULE) {
            return v.u.module;
        }
        vmodule *m = new_module(it, dotted);
        if (i == 0) {
            fill_nki(it, m);
        } else if (i == 4) {
            fill_math(it, m);
        } else {
            isa_group g = i == 1 ? ISAG_NISA : i == 2 ? ISAG_NCC : ISAG_CTRL;
            for (int k = 0; k < ISA_COUNT; k++) {
                if (isa_table[k].group == g) {
                    put(it, m, isa_table[k].name, VID(V_ISA, k));
                }
            }
        }
        return m;
    }
    return NULL;
}
