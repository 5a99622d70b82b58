#ifndef TESTS_NUMERICS_REFERENCE_H
#define TESTS_NUMERICS_REFERENCE_H

// What the numerics are tested against, written from the definitions and not from device/: number
// formats by ldexp of their fields, operators in double, functions in long double (64 bits of
// mantissa, the C library's), errors in units of the last place.

#include "lang/dtype.h"
#include "lang/isa.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// ---- bits and random numbers

static inline float ref_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t ref_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline uint32_t ref_next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

// ---- number formats

// eb 0: an integer of `bits` bits.
typedef struct ref_format {
    dtype d;
    int eb, mb;
    bool fn;  // no infinity, one NaN
    int bits;
    bool is_signed;
} ref_format;

static const ref_format ref_formats[] = {
    {DT_float32, 8, 23, false, 32, true},    {DT_tfloat32, 8, 23, false, 32, true},
    {DT_bfloat16, 8, 7, false, 16, true},    {DT_float16, 5, 10, false, 16, true},
    {DT_float8_e5m2, 5, 2, false, 8, true},  {DT_float8_e4m3, 4, 3, false, 8, true},
    {DT_float8_e4m3fn, 4, 3, true, 8, true}, {DT_float8_e8m0fnu, 8, 0, true, 8, false},
    {DT_int8, 0, 0, false, 8, true},         {DT_uint8, 0, 0, false, 8, false},
    {DT_int16, 0, 0, false, 16, true},       {DT_uint16, 0, 0, false, 16, false},
    {DT_int32, 0, 0, false, 32, true},       {DT_uint32, 0, 0, false, 32, false},
    {DT_bool_, 0, 0, false, 8, false},
};
enum { REF_FORMATS = sizeof ref_formats / sizeof *ref_formats };

// Ten mantissa bits: the nearest multiple of 2^(exponent - 10), ties to even.
static inline double ref_tf32(double x)
{
    if (!isfinite(x) || x == 0) {
        return x;
    }
    int e;
    frexp(x, &e);
    double unit = ldexp(1.0, (e - 1 < -126 ? -126 : e - 1) - 10);
    double r = nearbyint(x / unit) * unit;
    return fabs(r) > 0x1.fffffep127 ? copysign((double)INFINITY, x) : r;
}

// The value of a pattern.
static inline double ref_value(const ref_format *f, uint32_t u)
{
    if (f->d == DT_bool_) {
        return u & 0xff ? 1 : 0;
    }
    if (!f->eb) {
        uint32_t sign = f->is_signed ? 1u << (f->bits - 1) : 0;
        u = f->bits == 32 ? u : u & ((1u << f->bits) - 1);
        return (double)u - (u & sign ? ldexp(1, f->bits) : 0);
    }
    if (f->d == DT_float8_e8m0fnu) {
        return (u & 0xff) == 0xff ? (double)NAN : ldexp(1.0, (int)(u & 0xff) - 127);
    }
    int bias = (1 << (f->eb - 1)) - 1;
    int e = (int)(u >> f->mb) & ((1 << f->eb) - 1);
    int m = (int)(u & ((1u << f->mb) - 1));
    double sign = u >> (f->eb + f->mb) & 1 ? -1.0 : 1.0;
    if (e == (1 << f->eb) - 1) {
        if (!f->fn) {
            return m ? (double)NAN : sign * (double)INFINITY;
        }
        if (m == (1 << f->mb) - 1) {
            return (double)NAN;
        }
    }
    double v = sign * (e ? ldexp(1.0 + ldexp(m, -f->mb), e - bias) : ldexp(m, 1 - bias - f->mb));
    return f->d == DT_tfloat32 ? ref_tf32(v) : v;
}

// The value that is stored for x: nearest, ties to even; beyond the range infinity, or NaN without
// one; integers saturate and take NaN for 0. x: a value of fp32.
static inline double ref_stored(const ref_format *f, double x)
{
    if (f->d == DT_bool_) {
        return x != 0;
    }
    if (!f->eb) {
        double lo = f->is_signed ? -ldexp(1, f->bits - 1) : 0;
        double hi = ldexp(1, f->bits - f->is_signed) - 1;
        double r = isnan(x) ? 0 : nearbyint(x);
        return r < lo ? lo : r > hi ? hi : r + 0.0;
    }
    if (isnan(x) || f->d == DT_float32) {
        return x;
    }
    if (f->d == DT_tfloat32) {
        return ref_tf32(x);
    }
    if (f->d == DT_float8_e8m0fnu) {
        if (x < 0 || isinf(x)) {
            return (double)NAN;
        }
        int e = x < ldexp(1, -127) ? -127 : ilogb(x);
        double p = ldexp(1, e);
        e += x > 1.5 * p || (x == 1.5 * p && (e + 127) % 2);
        return e > 127 ? (double)NAN : ldexp(1, e);
    }
    int bias = (1 << (f->eb - 1)) - 1;
    double max = ref_value(f, f->fn ? (1u << (f->eb + f->mb)) - 2
                                    : (((1u << f->eb) - 1) << f->mb) - 1);
    int e = 0;
    if (x != 0 && isfinite(x)) {
        frexp(x, &e);
    }
    double unit = ldexp(1.0, (e - 1 < 1 - bias ? 1 - bias : e - 1) - f->mb);
    double r = isfinite(x) ? copysign(nearbyint(fabs(x) / unit) * unit, x) : x;
    return fabs(r) <= max ? r : f->fn ? (double)NAN : copysign((double)INFINITY, x);
}

// The pattern of a value that the format has.
static inline uint32_t ref_pattern(const ref_format *f, double v)
{
    if (!f->eb) {
        return (uint32_t)(int64_t)v & (f->bits == 32 ? UINT32_MAX : (1u << f->bits) - 1);
    }
    if (f->d == DT_float8_e8m0fnu) {
        return isnan(v) ? 0xff : (uint32_t)(ilogb(v) + 127);
    }
    uint32_t sign = signbit(v) ? 1u << (f->eb + f->mb) : 0;
    uint32_t top = ((1u << f->eb) - 1) << f->mb;
    if (isnan(v)) {
        return sign | (f->fn ? top + (1u << f->mb) - 1 : top | 1u << (f->mb - 1));
    }
    if (isinf(v)) {
        return sign | top;
    }
    int bias = (1 << (f->eb - 1)) - 1, e;
    if (v == 0) {
        return sign;
    }
    frexp(v, &e);
    e -= 1;
    if (e < 1 - bias) {
        return sign | (uint32_t)ldexp(fabs(v), f->mb + bias - 1);
    }
    uint32_t m = (uint32_t)(ldexp(fabs(v), f->mb - e) - ldexp(1, f->mb));
    return sign | (uint32_t)(e + bias) << f->mb | m;
}

static inline uint32_t ref_load(const ref_format *f, const void *p)
{
    uint32_t u = 0;
    memcpy(&u, p, (size_t)f->bits / 8);  // little-endian, as the formats are
    return u;
}

// Two values are the same result: NaN is NaN, zeros have their sign.
static inline bool ref_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

// ---- errors

// Size of a unit in the last place of fp32 at an exact value.
static inline long double ref_unit(long double exact)
{
    int e;
    frexpl(exact, &e);
    e = e - 24 < -149 ? -149 : e - 24;
    return ldexpl(1.0L, e > 104 ? 104 : e);
}

// Error of got in units of the last place of the exact value; 1e9: another class.
static inline double ref_ulp(float got, long double exact)
{
    if (isnan(exact)) {
        return isnan(got) ? 0 : 1e9;
    }
    if (fabsl(exact) >= 0x1.ffffffp127L) {  // halfway past the largest float
        return isinf(got) && (got < 0) == (exact < 0) ? 0 : 1e9;
    }
    // An infinity stands for 2^128.
    long double g = isinf(got) ? copysignl(0x1p128L, (long double)got) : (long double)got;
    return isnan(got) ? 1e9 : (double)fabsl((g - exact) / ref_unit(exact));
}

// ---- functions (class U); at minus infinity their limits, with the sign of what leads there

static const long double ref_pi = 3.14159265358979323846264338327950288L;

static inline long double r_square(long double x)
{
    return x * x;
}
static inline long double r_relu(long double x)
{
    return x > 0 || isnan(x) ? x : 0;
}
static inline long double r_rsqrt(long double x)
{
    return 1 / sqrtl(x);
}
static inline long double r_reciprocal(long double x)
{
    return 1 / x;
}
static inline long double r_copy(long double x)
{
    return x;
}
static inline long double r_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}
static inline long double r_silu(long double x)
{
    return isinf(x) && x < 0 ? -0.0L : x * r_sigmoid(x);
}
static inline long double r_silu_dx(long double x)
{
    return x > 9e3L ? 1 : x < -9e3L ? -0.0L : r_sigmoid(x) * (1 + x * r_sigmoid(-x));
}
static inline long double r_phi(long double x)
{
    return erfcl(-x / sqrtl(2)) / 2;
}
static inline long double r_gelu(long double x)
{
    return isinf(x) && x < 0 ? -0.0L : x * r_phi(x);
}
static inline long double r_gelu_dx(long double x)
{
    return x > 100 ? 1 : x < -100 ? -0.0L : r_phi(x) + x * expl(-x * x / 2) / sqrtl(2 * ref_pi);
}
static inline long double r_gelu_apprx_tanh(long double x)
{
    long double s = r_sigmoid(2 * sqrtl(2 / ref_pi) * (x + 0.044715L * x * x * x));
    return isinf(x) && x < 0 ? -0.0L : x * s;
}
static inline long double r_gelu_apprx_sigmoid(long double x)
{
    return isinf(x) && x < 0 ? -0.0L : x * r_sigmoid(1.702L * x);
}
static inline long double r_gelu_apprx_sigmoid_dx(long double x)
{
    long double y = 1.702L * x;
    return x > 9e3L ? 1 : x < -9e3L ? -0.0L : r_sigmoid(y) * (1 + y * r_sigmoid(-y));
}
static inline long double r_softplus(long double x)
{
    return isinf(x) ? (x > 0 ? x : 0) : x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}
static inline long double r_mish(long double x)
{
    return isinf(x) && x < 0 ? -0.0L : x * tanhl(r_softplus(x));
}
static inline long double r_erf_dx(long double x)
{
    return 2 / sqrtl(ref_pi) * expl(-x * x);
}
static inline long double r_sin(long double x)
{
    if (fabsl(x) <= 3.14159265358979323846L) {
        return sinl(x);
    }
    long double y = fabsl(x) - ref_pi, r = y * y * y / 6 - y;
    return x < 0 ? -r : r;
}
static inline long double r_sign(long double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}
static inline long double r_negative(long double x)
{
    return -x;
}

// Tolerances: docs/numerics.md, whose table test_device_functions checks.
typedef struct ref_function {
    op_id op;
    long double (*f)(long double);
    double ulp;       // largest error away from `zero`
    float lo, hi;     // where the function does something
    float zero;       // a zero that is no float: within 1/1024 of it the error is absolute; 0: none
    double absolute;  // largest error there
} ref_function;

static const ref_function ref_functions[] = {
#define REF_EXACT(op, f)             {OPR_##op, f, 0, -9, 9, 0, 0}
#define REF_FUN(op, f, ulp, lo, hi)  {OPR_##op, f, ulp, lo, hi, 0, 0}
#define REF_ZERO(op, f, ulp, lo, hi, zero, absolute) {OPR_##op, f, ulp, lo, hi, zero, absolute}
    REF_EXACT(abs, fabsl),
    REF_FUN(square, r_square, 0.5, -9, 9),
    REF_EXACT(relu, r_relu),
    REF_FUN(rsqrt, r_rsqrt, 1.5, 0, 100),
    REF_FUN(reciprocal, r_reciprocal, 0.5, -9, 9),
    REF_EXACT(copy, r_copy),
    REF_EXACT(bypass, r_copy),
    REF_FUN(exp, expl, 1.0, -104, 90),
    REF_FUN(log, logl, 0.51, 0, 10),
    REF_FUN(sqrt, sqrtl, 0.5, 0, 100),
    REF_FUN(tanh, tanhl, 1.5, -10, 10),
    REF_FUN(sigmoid, r_sigmoid, 2.2, -105, 20),
    REF_FUN(silu, r_silu, 3.0, -105, 20),
    REF_ZERO(silu_dx, r_silu_dx, 0.51, -110, 20, -1.27846454f, 2e-11),
    REF_FUN(gelu, r_gelu, 0.51, -14, 6),
    REF_ZERO(gelu_dx, r_gelu_dx, 0.65, -14, 6, -0.751791524f, 1e-10),
    REF_FUN(gelu_apprx_tanh, r_gelu_apprx_tanh, 0.51, -11, 6),
    REF_FUN(gelu_apprx_sigmoid, r_gelu_apprx_sigmoid, 0.51, -64, 20),
    REF_ZERO(gelu_apprx_sigmoid_dx, r_gelu_apprx_sigmoid_dx, 0.51, -64, 20, -0.751154254f, 2e-11),
    REF_FUN(softplus, r_softplus, 0.51, -104, 40),
    REF_FUN(mish, r_mish, 0.51, -104, 40),
    REF_FUN(erf, erfl, 0.51, -4, 4),
    REF_FUN(erf_dx, r_erf_dx, 0.51, -10.2f, 10.2f),
    REF_FUN(sin, r_sin, 0.51, -10, 10),
    REF_FUN(arctan, atanl, 0.51, -10, 10),
    REF_EXACT(sign, r_sign),
    REF_EXACT(prelu, r_relu),
    REF_FUN(cos, cosl, 0.51, -1000, 1000),
    REF_FUN(tan, tanl, 0.51, -1000, 1000),
    REF_EXACT(ceil, ceill),
    REF_EXACT(floor, floorl),
    REF_EXACT(trunc, truncl),
    REF_EXACT(negative, r_negative),
};
enum { REF_FUNCTIONS = sizeof ref_functions / sizeof *ref_functions };

static inline const ref_function *ref_function_of(op_id op)
{
    for (int i = 0; i < REF_FUNCTIONS; i++) {
        if (ref_functions[i].op == op) {
            return &ref_functions[i];
        }
    }
    return NULL;
}

// ---- operators of two operands (classes A, C, L), in double: correctly rounded by one cast to
// float, but for power

static inline double ref_operator(op_id op, double a, double b)
{
    bool nan = isnan(a) || isnan(b);
    switch (op) {
    case OPR_add:
    case OPR_average: return a + b;
    case OPR_subtract: return a - b;
    case OPR_multiply: return a * b;
    case OPR_maximum: return nan ? (double)NAN : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
    case OPR_minimum: return nan ? (double)NAN : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
    case OPR_power: return (double)powl((long double)a, (long double)b);
    case OPR_abs_max: return nan ? (double)NAN : fabs(a) > fabs(b) ? a : b;
    case OPR_abs_min: return nan ? (double)NAN : fabs(a) < fabs(b) ? a : b;
    case OPR_divide: return a / b;
    case OPR_fmod: return fmod(a, b);
    case OPR_mod: {  // the divisor's sign, zero too
        double r = fmod(a, b);
        if (r == 0) {
            return copysign(0.0, b);
        }
        return (r < 0) != (b < 0) ? r + b : r;
    }
    case OPR_equal: return a == b;
    case OPR_not_equal: return a != b;
    case OPR_less: return a < b;
    case OPR_less_equal: return a <= b;
    case OPR_greater: return a > b;
    case OPR_greater_equal: return a >= b;
    case OPR_logical_and: return a != 0 && b != 0;
    case OPR_logical_or: return a != 0 || b != 0;
    case OPR_logical_xor: return (a != 0) != (b != 0);
    default: return (double)NAN;
    }
}

static inline double ref_identity(op_id op)
{
    switch (op) {
    case OPR_multiply:
    case OPR_logical_and: return 1;
    case OPR_maximum: return -(double)INFINITY;
    case OPR_minimum:
    case OPR_abs_min: return (double)INFINITY;
    default: return 0;
    }
}

// Order of a fold written out: sixteen partial results in fp32, then halves.
static inline float ref_fold(op_id op, const double *v, size_t n)
{
    float p[16];
    for (int j = 0; j < 16; j++) {
        p[j] = (float)ref_identity(op);
    }
    for (size_t i = 0; i < n; i++) {
        p[i % 16] = (float)ref_operator(op, (double)p[i % 16], v[i]);
    }
    for (int h = 8; h; h /= 2) {
        for (int j = 0; j < h; j++) {
            p[j] = (float)ref_operator(op, (double)p[j], (double)p[j + h]);
        }
    }
    return p[0];
}

#endif
