// Ops against formulas that share no code with them: random expressions over random shapes and
// types, element by element; matmul, softmax and sum in double.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/numerics_reference.h"

#include <nki/nki.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 3, RANK_MAX = 4, NODES_MAX = 64, ELEMENTS_MAX = 20000 };

typedef enum type { F, I, U, B } type;  // of a node; B: 0 or 1

typedef struct node {
    char op;  // x input, c number, else what make() writes for it
    int a, b, c;
    int input;
    double number;
    type type;
} node;

typedef struct input {
    nki_dtype dtype;
    size_t ndim, shape[RANK_MAX];
    size_t stride[RANK_MAX];  // of the joint shape; 0: broadcast
    double *v;
    nki_tensor *t;
} input;

typedef struct program {
    uint32_t random;
    bool whole;  // integers only
    int inputs;
    input in[INPUTS];
    size_t ndim, shape[RANK_MAX], count;
    node n[NODES_MAX];
    int nodes;
    char text[4096];
} program;

static uint32_t roll(program *p, uint32_t n)
{
    return ref_next(&p->random) % n;
}

static const ref_format *format_of(nki_dtype d)
{
    return &ref_formats[d];
}

// ---- the formula

static bool is_number(const program *p, int i)
{
    return p->n[i].op == 'c';
}

static type type_with(const program *p, int a, int b)
{
    const int k[] = {a, b};
    bool ints = true, u = true, bools = true;
    for (int i = 0; i < 2; i++) {
        const node *n = &p->n[k[i]];
        ints = ints && n->type != F;
        u = u && (n->op == 'c' || n->type == U);
        bools = bools && (n->op == 'c' ? n->number == 0 || n->number == 1 : n->type == B);
    }
    return !ints ? F : bools ? B : u ? U : I;
}

static int64_t wrap(type t, double v)
{
    uint32_t bits = (uint32_t)(int64_t)v;
    return t == U ? (int64_t)bits : (int64_t)(int32_t)bits;
}

// A number beside maximum, minimum and where: the nearest of the type.
static int64_t nearest(const program *p, int i, type t, double v)
{
    if (!is_number(p, i)) {
        return wrap(t, v);
    }
    double lo = t == U ? 0 : -0x1p31, hi = t == U ? 0x1p32 - 1 : 0x1p31 - 1;
    return (int64_t)(v < lo ? lo : v > hi ? hi : v);
}

static double eval(const program *p, int i, const double *x)
{
    const node *n = &p->n[i];
    if (n->op == 'x') {
        return x[n->input];
    }
    if (n->op == 'c') {
        return n->number;
    }
    double a = eval(p, n->a, x), b = n->b >= 0 ? eval(p, n->b, x) : 0;
    float fa = (float)a, fb = (float)b;
    int64_t ia = n->type == F ? 0 : wrap(n->type, a), ib = n->type == F ? 0 : wrap(n->type, b);
    switch (n->op) {
    case '<': return fa < fb;
    case '=': return fa == fb;
    case '+': return n->type == F ? (double)(fa + fb) : (double)wrap(n->type, (double)(ia + ib));
    case '-': return n->type == F ? (double)(fa - fb) : (double)wrap(n->type, (double)(ia - ib));
    case '*':
        return n->type == F ? (double)(fa * fb)
                            : (double)wrap(n->type, (double)((uint32_t)ia * (uint32_t)ib));
    case 'M':
    case 'm':
        if (n->type != F) {
            ia = nearest(p, n->a, n->type, a);
            ib = nearest(p, n->b, n->type, b);
            return (double)((ia > ib) == (n->op == 'M') ? ia : ib);
        }
        return (fa > fb) == (n->op == 'M') ? fa : fb;
    case '&': return (double)wrap(n->type, (double)(ia & ib));
    case '|': return (double)wrap(n->type, (double)(ia | ib));
    case '^': return (double)wrap(n->type, (double)(ia ^ ib));
    case '>': return (double)(ia >> (ib > 40 ? 40 : ib));
    case '~': return n->type == B ? !ia : (double)wrap(n->type, (double)~ia);
    case '?': {
        int yes = n->b, no = n->c;
        double v = fa != 0 ? b : eval(p, no, x);
        int from = fa != 0 ? yes : no;
        return n->type == F ? (double)(float)v : (double)nearest(p, from, n->type, v);
    }
    default: fail_msg("no operator '%c'", n->op);
    }
    return 0;
}

// ---- making one

static int add(program *p, node n)
{
    assert_true(p->nodes < NODES_MAX);
    p->n[p->nodes] = n;
    return p->nodes++;
}

static int leaf(program *p)
{
    static const double whole[] = {0, 1, 3, 255, -1, -5, 65536, 2147483647, 4294967295.0};
    static const double parts[] = {0.5, 2, -1.25, 100, 3};
    if (roll(p, 4) == 0) {
        double v = p->whole ? whole[roll(p, 9)] : parts[roll(p, 5)];
        return add(p, (node){.op = 'c', .number = v, .type = v == floor(v) ? I : F, .b = -1});
    }
    int i = (int)roll(p, (uint32_t)p->inputs);
    nki_dtype d = p->in[i].dtype;
    type t = nki_dtype_is_float(d) ? F : d == NKI_UINT32 ? U : d == NKI_BOOL ? B : I;
    return add(p, (node){.op = 'x', .input = i, .type = t, .b = -1});
}

static int make(program *p, int depth)
{
    if (depth == 0) {
        return leaf(p);
    }
    static const char ints[] = "+-*Mm&|^>~<=?", floats[] = "+-*Mm<=?";
    char op = p->whole ? ints[roll(p, sizeof ints - 1)] : floats[roll(p, sizeof floats - 1)];
    node n = {.op = op, .a = make(p, depth - 1), .b = -1, .c = -1};
    if (is_number(p, n.a)) {
        return n.a;  // of numbers alone nothing is computed
    }
    type a = p->n[n.a].type;
    if (op == '~') {
        n.type = a;
        return a == F ? n.a : add(p, n);
    }
    if (op == '>') {
        n.b = add(p, (node){.op = 'c', .number = roll(p, 35), .type = I, .b = -1});
        n.type = a == B ? I : a;
        return a == F ? n.a : add(p, n);
    }
    n.b = make(p, depth - 1);
    n.type = type_with(p, n.a, n.b);
    if (op == '?') {
        n.c = make(p, depth - 1);
        n.type = is_number(p, n.b) && is_number(p, n.c)
                     ? p->n[n.b].type == F || p->n[n.c].type == F ? F : I
                     : type_with(p, n.b, n.c);
    } else if (op == '<' || op == '=') {
        n.type = F;
    } else if (strchr("&|^", op) && n.type == F) {
        return n.a;
    } else if (n.type == B && strchr("+-*", op)) {
        n.type = I;
    }
    return add(p, n);
}

static void print(program *p, int i)
{
    size_t at = strlen(p->text), room = sizeof p->text - at;
    const node *n = &p->n[i];
    const char *name = n->op == 'M'   ? "maximum("
                       : n->op == 'm' ? "minimum("
                       : n->op == '?' ? "where("
                       : n->op == '~' ? "~("
                                      : "(";
    if (n->op == 'x') {
        snprintf(p->text + at, room, "x%d", n->input);
        return;
    }
    if (n->op == 'c') {
        snprintf(p->text + at, room, n->number < 0 ? "(%.12g)" : "%.12g", n->number);
        return;
    }
    snprintf(p->text + at, room, "%s", name);
    print(p, n->a);
    if (n->b >= 0) {
        const char *sign = n->op == '>'           ? " >> "
                           : n->op == '='         ? " == "
                           : strchr("Mm?", n->op) ? ", "
                                                  : NULL;
        at = strlen(p->text);
        if (sign) {
            snprintf(p->text + at, sizeof p->text - at, "%s", sign);
        } else {
            snprintf(p->text + at, sizeof p->text - at, " %c ", n->op);
        }
        print(p, n->b);
    }
    if (n->c >= 0 && n->op == '?') {
        at = strlen(p->text);
        snprintf(p->text + at, sizeof p->text - at, ", ");
        print(p, n->c);
    }
    at = strlen(p->text);
    snprintf(p->text + at, sizeof p->text - at, ")");
}

static void make_shapes(program *p)
{
    static const size_t sizes[] = {1, 2, 3, 7, 64, 127, 128, 129, 200, 257, 3000};
    p->ndim = roll(p, RANK_MAX + 1);
    p->count = 1;
    for (size_t d = 0; d < p->ndim; d++) {
        p->shape[d] = sizes[roll(p, 11)];
        p->shape[d] = p->shape[d] * p->count > ELEMENTS_MAX ? 1 : p->shape[d];
        p->count *= p->shape[d];
    }
    for (int i = 0; i < p->inputs; i++) {
        input *in = &p->in[i];
        // The first has the joint shape.
        size_t drop = i && roll(p, 3) == 0 ? roll(p, (uint32_t)p->ndim + 1) : 0, step = 1;
        in->ndim = p->ndim - drop;
        for (size_t d = p->ndim; d-- > drop;) {
            bool one = i && roll(p, 3) == 0;
            in->shape[d - drop] = one ? 1 : p->shape[d];
            in->stride[d] = in->shape[d - drop] == 1 ? 0 : step;
            step *= in->shape[d - drop];
        }
        for (size_t d = 0; d < drop; d++) {
            in->stride[d] = 0;
        }
    }
}

static void fill(program *p, nki_context *ctx, input *in)
{
    const ref_format *f = format_of(in->dtype);
    assert_int_equal(nki_tensor_create(ctx, in->dtype, in->ndim, in->shape, &in->t), NKI_OK);
    size_t n = nki_tensor_count(in->t), size = nki_dtype_size_bytes(in->dtype);
    in->v = malloc(n * sizeof *in->v);
    char *data = nki_tensor_data(in->t);
    for (size_t i = 0; i < n; i++) {
        double v = 0;
        if (nki_dtype_is_float(in->dtype)) {
            v = ref_stored(f, (double)((float)((int)roll(p, 20001) - 10000) * 0x1p-6f));
        } else if (in->dtype == NKI_BOOL) {
            v = roll(p, 2);
        } else {
            v = ref_value(f, ref_next(&p->random));
        }
        in->v[i] = v;
        uint32_t bits = in->dtype == NKI_BOOL ? v != 0 : ref_pattern(f, v);
        memcpy(data + i * size, &bits, size);
    }
}

static void make_program(program *p, nki_context *ctx, uint32_t seed)
{
    static const nki_dtype ints[] = {NKI_INT8,  NKI_UINT8,  NKI_INT16, NKI_UINT16,
                                     NKI_INT32, NKI_UINT32, NKI_BOOL};
    static const nki_dtype floats[] = {NKI_FLOAT32, NKI_FLOAT16, NKI_BFLOAT16};
    memset(p, 0, sizeof *p);
    p->random = seed * 2654435761u + 1;
    p->whole = roll(p, 2);
    p->inputs = 1 + (int)roll(p, INPUTS);
    for (int i = 0; i < p->inputs; i++) {
        p->in[i].dtype = p->whole ? ints[roll(p, 7)] : floats[roll(p, 3)];
    }
    make_shapes(p);
    for (int i = 0; i < p->inputs; i++) {
        fill(p, ctx, &p->in[i]);
    }
}

static void check_result(program *p, int root, nki_tensor *out, uint32_t seed)
{
    nki_dtype d = nki_tensor_dtype(out);
    const ref_format *f = format_of(d);
    size_t at[RANK_MAX] = {0}, size = nki_dtype_size_bytes(d);
    assert_int_equal(nki_tensor_ndim(out), p->ndim);
    assert_int_equal(nki_tensor_count(out), p->count);
    const char *data = nki_tensor_data(out);
    for (size_t i = 0; i < p->count; i++) {
        double x[INPUTS] = {0};
        for (int k = 0; k < p->inputs; k++) {
            size_t e = 0;
            for (size_t j = 0; j < p->ndim; j++) {
                e += at[j] * p->in[k].stride[j];
            }
            x[k] = p->in[k].v[e];
        }
        double want = eval(p, root, x);
        want = d == NKI_BOOL ? want != 0 : ref_stored(f, want);
        double got = d == NKI_BOOL ? data[i] != 0 : ref_value(f, ref_load(f, data + i * size));
        if (got != want && !(isnan(got) && isnan(want))) {
            fail_msg("seed %u: '%s', %s result, element %zu of inputs %.12g %.12g %.12g: %.12g, "
                     "not %.12g",
                     seed, p->text, nki_dtype_name(d), i, x[0], x[1], x[2], got, want);
        }
        for (size_t j = p->ndim; j-- > 0 && ++at[j] == p->shape[j];) {
            at[j] = 0;
        }
    }
}

static void elementwise__equals_its_formula(void **state)
{
    (void)state;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    static program p;
    int ran = 0;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        make_program(&p, ctx, seed);
        int root = make(&p, 1 + (int)roll(&p, 3));
        print(&p, root);
        nki_tensor *in[INPUTS], *out = NULL;
        for (int i = 0; i < p.inputs; i++) {
            in[i] = p.in[i].t;
        }
        nki_status st = nki_elementwise(ctx, NULL, p.text, in, (size_t)p.inputs, NULL, &out, 1);
        if (st != NKI_OK) {
            fail_msg("seed %u: '%s': %s", seed, p.text, nki_context_error(ctx));
        }
        if (!is_number(&p, root)) {
            check_result(&p, root, out, seed);
            ran++;
        }
        nki_tensor_release(out);
        for (int i = 0; i < p.inputs; i++) {
            nki_tensor_release(p.in[i].t);
            free(p.in[i].v);
        }
    }
    assert_true(ran > 200);
    nki_context_release(ctx);
}

// Each op against its values; that these are what the result is in each type.
static void elementwise__numbers_beside_integers(void **state)
{
    (void)state;
    enum { N = 3 };
    static const struct {
        const char *text;
        nki_dtype type;
        int64_t in[N], want[N];
    } cases[] = {
        {"~x0", NKI_UINT32, {1, 2147483653, 4294967295}, {4294967294, 2147483642, 0}},
        {"~x0", NKI_BOOL, {0, 1, 1}, {1, 0, 0}},
        {"~(x0 & 1)", NKI_BOOL, {0, 1, 1}, {1, 0, 0}},
        {"~x0", NKI_INT8, {0, -1, 127}, {-1, 0, -128}},
        {"x0 ^ (-5)", NKI_UINT32, {1, 0, 4}, {4294967290, 4294967291, 4294967295}},
        {"x0 & 4294967295", NKI_INT32, {1, -5, 2147483647}, {1, -5, 2147483647}},
        {"x0 * (-1)", NKI_UINT32, {0, 1, 4294967295}, {0, 4294967295, 1}},
        {"x0 - 1", NKI_UINT32, {0, 1, 2}, {4294967295, 0, 1}},
        {"maximum(x0, -1)", NKI_UINT32, {0, 1, 4294967295}, {0, 1, 4294967295}},
        {"minimum(x0, 4294967295)", NKI_INT32, {-1, 1, 2147483647}, {-1, 1, 2147483647}},
        {"where(x0 < 2, -5, x0)", NKI_UINT32, {0, 1, 7}, {0, 0, 7}},
        {"x0 >> 1", NKI_INT32, {-5, 5, -2147483647}, {-3, 2, -1073741824}},
        {"x0 >> 1", NKI_INT8, {-8, 7, -1}, {-4, 3, -1}},
        {"x0 >> 40", NKI_INT32, {-8, 7, -1}, {-1, 0, -1}},
        {"x0 >> 1", NKI_UINT32, {4294967295, 2, 1}, {2147483647, 1, 0}},
        {"right_shift(x0, 1)", NKI_INT32, {-8, 7, -1}, {2147483644, 3, 2147483647}},
        {"x0 << 1", NKI_UINT8, {200, 7, 0}, {255, 14, 0}},  // as a result, saturated
    };
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        nki_tensor *x = NULL, *out = NULL;
        size_t n = N, size = nki_dtype_size_bytes(cases[c].type);
        assert_int_equal(nki_tensor_create(ctx, cases[c].type, 1, &n, &x), NKI_OK);
        for (int i = 0; i < N; i++) {
            memcpy((char *)nki_tensor_data(x) + (size_t)i * size, &cases[c].in[i], size);
        }
        assert_int_equal(nki_elementwise(ctx, NULL, cases[c].text, &x, 1, NULL, &out, 1), NKI_OK);
        assert_int_equal(nki_tensor_dtype(out), cases[c].type);
        for (int i = 0; i < N; i++) {
            int64_t mask = ((int64_t)1 << size * 8) - 1, got = 0;
            memcpy(&got, (char *)nki_tensor_data(out) + (size_t)i * size, size);
            if (got != (cases[c].want[i] & mask)) {
                fail_msg("'%s' of %s %lld: %#llx", cases[c].text, nki_dtype_name(cases[c].type),
                         (long long)cases[c].in[i], (long long)got);
            }
        }
        nki_tensor_release(x);
        nki_tensor_release(out);
    }
    nki_tensor *x = NULL, *out = NULL;
    assert_int_equal(nki_tensor_create(ctx, NKI_INT32, 0, NULL, &x), NKI_OK);
    static const char *const wide[] = {"x0 + 4294967296", "where(x0, x0, -2147483649)"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nki_elementwise(ctx, NULL, wide[i], &x, 1, NULL, &out, 1), NKI_ERR_ARG);
        assert_non_null(strstr(nki_context_error(ctx), "has more than 32 bits"));
    }
    nki_tensor_release(x);
    nki_context_release(ctx);
}

// ---- over the last axis

static double *doubles(nki_tensor *t)
{
    const ref_format *f = format_of(nki_tensor_dtype(t));
    size_t n = nki_tensor_count(t), size = nki_dtype_size_bytes(nki_tensor_dtype(t));
    double *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        v[i] = ref_value(f, ref_load(f, (char *)nki_tensor_data(t) + i * size));
    }
    return v;
}

// Half a unit in the last place, of 1.
static double half_unit(nki_dtype d)
{
    return d == NKI_BFLOAT16 ? 0x1p-8 : d == NKI_FLOAT16 ? 0x1p-11 : 0x1p-24;
}

static void rows__of_any_length(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1},     {1, 129, 3},   {2, 70, 17},  {1, 300, 1},
                                       {1, 3, 8191},  {1, 2, 8192},  {1, 2, 8193}, {1, 1, 70000},
                                       {3, 1, 16385}, {1, 130, 2050}};
    static const nki_dtype types[] = {NKI_FLOAT32, NKI_BFLOAT16, NKI_FLOAT16};
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    static program p;
    for (size_t c = 0; c < sizeof shapes / sizeof *shapes; c++) {
        nki_dtype d = types[c % 3];
        input in = {.dtype = d, .ndim = 3};
        memcpy(in.shape, shapes[c], sizeof shapes[c]);
        p.random = (uint32_t)c + 1;
        fill(&p, ctx, &in);
        nki_tensor *soft = NULL, *sum = NULL;
        assert_int_equal(nki_softmax(ctx, NULL, in.t, &soft), NKI_OK);
        assert_int_equal(nki_sum(ctx, NULL, in.t, &sum), NKI_OK);
        assert_int_equal(nki_tensor_ndim(soft), 3);
        assert_int_equal(nki_tensor_ndim(sum), 2);
        double *s = doubles(soft), *y = doubles(sum);
        size_t cols = shapes[c][2], rows = shapes[c][0] * shapes[c][1];
        for (size_t r = 0; r < rows; r++) {
            const double *x = in.v + r * cols;
            double most = x[0], total = 0, exps = 0, sizes = 0;
            for (size_t i = 0; i < cols; i++) {
                most = x[i] > most ? x[i] : most;
            }
            for (size_t i = 0; i < cols; i++) {
                total += x[i];
                sizes += fabs(x[i]);
                exps += exp(x[i] - most);
            }
            // fp32 sums of pieces; then one rounding to the type.
            if (!(fabs(y[r] - total) <= sizes * 0x1p-20 + fabs(total) * half_unit(d))) {
                fail_msg("sum %zu, row %zu: %g, not %g", c, r, y[r], total);
            }
            for (size_t i = 0; i < cols; i++) {
                double want = exp(x[i] - most) / exps;
                if (!(fabs(s[r * cols + i] - want) <=
                      want * (1e-5 + half_unit(d)) + (d == NKI_FLOAT16 ? 0x1p-25 : 1e-38))) {
                    fail_msg("softmax %zu, row %zu, column %zu: %g, not %g", c, r, i,
                             s[r * cols + i], want);
                }
            }
        }
        free(s);
        free(y);
        free(in.v);
        nki_tensor_release(soft);
        nki_tensor_release(sum);
        nki_tensor_release(in.t);
    }
    nki_context_release(ctx);
}

static void matmul__of_any_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][4] = {{1, 1, 1, 1},     {1, 129, 130, 5}, {3, 7, 128, 513},
                                      {2, 128, 1, 600}, {1, 1, 300, 1},   {2, 130, 257, 3}};
    static const nki_dtype types[][2] = {{NKI_FLOAT32, NKI_FLOAT32},  {NKI_BFLOAT16, NKI_BFLOAT16},
                                         {NKI_FLOAT16, NKI_FLOAT32},  {NKI_BFLOAT16, NKI_FLOAT16},
                                         {NKI_FLOAT32, NKI_BFLOAT16}, {NKI_FLOAT16, NKI_FLOAT16}};
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    static program p;
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
        size_t batch = sizes[c][0], m = sizes[c][1], k = sizes[c][2], n = sizes[c][3];
        bool shared = c % 2;  // one b for all
        input a = {.dtype = types[c][0], .ndim = 3, .shape = {batch, m, k}};
        input b = {.dtype = types[c][1], .ndim = shared ? 2 : 3, .shape = {batch, k, n}};
        if (shared) {
            memcpy(b.shape, (const size_t[]){k, n}, 2 * sizeof(size_t));
        }
        p.random = (uint32_t)c + 77;
        fill(&p, ctx, &a);
        fill(&p, ctx, &b);
        nki_tensor *out = NULL;
        assert_int_equal(nki_matmul(ctx, NULL, a.t, b.t, &out), NKI_OK);
        assert_int_equal(nki_tensor_dtype(out), a.dtype);
        double *y = doubles(out);
        for (size_t i = 0; i < batch * m * n; i++) {
            size_t row = i / n, col = i % n, g = shared ? 0 : row / m;
            double want = 0, size = 0;
            for (size_t j = 0; j < k; j++) {
                double t = a.v[row * k + j] * b.v[(g * k + j) * n + col];
                want += t;
                size += fabs(t);
            }
            double limit = a.dtype == NKI_FLOAT16 && fabs(want) > 65504 ? INFINITY : 0;
            if (!(fabs(y[i] - want) <= size * 0x1p-20 + fabs(want) * half_unit(a.dtype) + 1e-7) &&
                !(limit > 0 && isinf(y[i]))) {
                fail_msg("case %zu, element %zu: %g, not %g", c, i, y[i], want);
            }
        }
        free(y);
        free(a.v);
        free(b.v);
        nki_tensor_release(a.t);
        nki_tensor_release(b.t);
        nki_tensor_release(out);
    }
    nki_context_release(ctx);
}

static nki_tensor *zeros(nki_context *ctx, nki_dtype d, size_t ndim, const size_t *shape)
{
    nki_tensor *t = NULL;
    assert_int_equal(nki_tensor_create(ctx, d, ndim, shape, &t), NKI_OK);
    return t;
}

static void check_shape(nki_tensor *t, nki_dtype d, size_t ndim, const size_t *shape)
{
    assert_int_equal(nki_tensor_dtype(t), d);
    assert_int_equal(nki_tensor_ndim(t), ndim);
    for (size_t i = 0; i < ndim; i++) {
        assert_int_equal(nki_tensor_shape(t)[i], shape[i]);
    }
    const char *p = nki_tensor_data(t);
    for (size_t i = 0; i < nki_tensor_size_bytes(t); i++) {
        assert_int_equal(p[i], 0);
    }
    nki_tensor_release(t);
}

// No elements, no axis, no terms.
static void nothing__has_a_shape(void **state)
{
    (void)state;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    nki_tensor *scalar = zeros(ctx, NKI_FLOAT16, 0, NULL);
    nki_tensor *none = zeros(ctx, NKI_FLOAT16, 2, (const size_t[]){0, 4});
    nki_tensor *thin = zeros(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 0});
    nki_tensor *wide = zeros(ctx, NKI_FLOAT32, 2, (const size_t[]){0, 5});
    nki_tensor *column = zeros(ctx, NKI_FLOAT16, 2, (const size_t[]){1, 4}), *out[2] = {NULL};
    nki_tensor *pair[] = {none, column}, *lone[] = {scalar, column};
    assert_int_equal(nki_elementwise(ctx, NULL, "x0 + x1; x0 < x1", pair, 2, NULL, out, 2), NKI_OK);
    check_shape(out[0], NKI_FLOAT16, 2, (const size_t[]){0, 4});
    check_shape(out[1], NKI_FLOAT32, 2, (const size_t[]){0, 4});
    assert_int_equal(nki_elementwise(ctx, NULL, "x0 * 2", &scalar, 1, NULL, out, 1), NKI_OK);
    check_shape(out[0], NKI_FLOAT16, 0, NULL);
    assert_int_equal(nki_elementwise(ctx, NULL, "x0 - x1", lone, 2, NULL, out, 1), NKI_OK);
    check_shape(out[0], NKI_FLOAT16, 2, (const size_t[]){1, 4});
    assert_int_equal(nki_softmax(ctx, NULL, none, out), NKI_OK);
    check_shape(out[0], NKI_FLOAT16, 2, (const size_t[]){0, 4});
    assert_int_equal(nki_sum(ctx, NULL, thin, out), NKI_OK);
    check_shape(out[0], NKI_FLOAT32, 1, (const size_t[]){3});
    assert_int_equal(nki_sum(ctx, NULL, none, out), NKI_OK);
    check_shape(out[0], NKI_FLOAT16, 1, (const size_t[]){0});
    assert_int_equal(nki_matmul(ctx, NULL, thin, wide, out), NKI_OK);
    check_shape(out[0], NKI_FLOAT32, 2, (const size_t[]){3, 5});
    assert_int_equal(nki_matmul(ctx, NULL, none, column, out), NKI_ERR_ARG);
    assert_int_equal(nki_sum(ctx, NULL, scalar, out), NKI_ERR_ARG);
    assert_non_null(strstr(nki_context_error(ctx), "needs an axis"));
    assert_int_equal(nki_softmax(ctx, NULL, scalar, out), NKI_ERR_ARG);
    nki_tensor_release(scalar);
    nki_tensor_release(none);
    nki_tensor_release(thin);
    nki_tensor_release(wide);
    nki_tensor_release(column);
    nki_context_release(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise__equals_its_formula),
        cmocka_unit_test(elementwise__numbers_beside_integers),
        cmocka_unit_test(rows__of_any_length),
        cmocka_unit_test(matmul__of_any_sizes),
        cmocka_unit_test(nothing__has_a_shape),
    };
    return cmocka_run_group_tests_name("runtime.formula", tests, NULL, NULL);
}
