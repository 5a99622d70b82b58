#include "cli/result.h"

#include "cli/npy.h"

#include <nki/tool.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---- running

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void restore(value_list *v, void **saved)
{
    for (size_t i = 0; i < v->count; i++) {
        if (saved[i]) {
            memcpy(nki_tensor_data(v->at[i].tensor), saved[i],
                   nki_tensor_size_bytes(v->at[i].tensor));
        }
    }
}

static bool save(value_list *v, void **saved)
{
    for (size_t i = 0; i < v->count; i++) {
        nki_tensor *t = v->at[i].tensor;
        if (t) {
            saved[i] = malloc(nki_tensor_size_bytes(t) + 1);
            if (!saved[i]) {
                return false;
            }
            memcpy(saved[i], nki_tensor_data(t), nki_tensor_size_bytes(t));
        }
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void release_all(nki_tensor **t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        nki_tensor_release(t[i]);
        t[i] = NULL;
    }
}

static int call_repeatedly(session *s, nki_kernel *k, value_list *v, void **saved,
                           nki_tensor **outputs, size_t n, double *ms)
{
    uint32_t calls = s->o->warmup + s->o->repeat;
    for (uint32_t i = 0; i < calls; i++) {
        if (i) {
            release_all(outputs, n);
            restore(v, saved);
        }
        double start = now_ms();
        nki_status st = nki_kernel_call(k, v->args, v->count, outputs, n, s->diags, NULL);
        if (st != NKI_OK) {
            return session_result(s, st);
        }
        if (i >= s->o->warmup) {
            ms[i - s->o->warmup] = now_ms() - start;
        }
        if (i == 0) {
            s->findings = nki_diags_errors(s->diags) + nki_diags_warnings(s->diags);
            session_show(s);
        }
        nki_diags_clear(s->diags);  // a repetition finds the same
    }
    return EXIT_DONE;
}

// The number of the tensor parameter that argument i was bound to; SIZE_MAX when none.
static size_t param_of(const nki_kernel *k, const value_list *v, size_t i, const char **name)
{
    nki_tensor_info own;
    *name = v->at[i].name ? v->at[i].name : nki_tool_arg_name(k, i);
    if (!*name && nki_kernel_param(k, i, &own) == NKI_OK) {
        *name = own.name;  // a kernel that was loaded: tensors only, in order
    }
    for (size_t p = 0; *name && p < nki_kernel_param_count(k); p++) {
        nki_tensor_info info;
        if (nki_kernel_param(k, p, &info) == NKI_OK && strcmp(info.name, *name) == 0) {
            return p;
        }
    }
    return SIZE_MAX;
}

static void collect(const nki_kernel *k, const value_list *v, void *const *saved,
                    nki_tensor **outputs, size_t n, result_list *out)
{
    for (size_t i = 0; i < n; i++) {
        result *r = &out->at[out->count++];
        snprintf(r->name, sizeof r->name, "out%zu", i);
        r->tensor = nki_tensor_retain(outputs[i]);
    }
    for (size_t i = 0; i < v->count; i++) {
        nki_tensor *t = v->at[i].tensor;
        const char *name;
        size_t p = t ? param_of(k, v, i, &name) : SIZE_MAX;
        if (p != SIZE_MAX &&
            (nki_tool_param_written(k, p) ||
             memcmp(saved[i], nki_tensor_data(t), nki_tensor_size_bytes(t)) != 0)) {
            result *r = &out->at[out->count++];
            snprintf(r->name, sizeof r->name, "%s", name);
            r->tensor = nki_tensor_retain(t);
            r->in_place = true;
        }
    }
}

int results_run(session *s, nki_kernel *k, value_list *v, result_list *out, double *min_ms,
                double *max_ms)
{
    size_t n = nki_kernel_output_count(k);
    *out = (result_list){0};
    out->at = calloc(n + v->count + 1, sizeof *out->at);
    void **saved = calloc(v->count + 1, sizeof *saved);
    nki_tensor **outputs = calloc(n + 1, sizeof(nki_tensor *));
    double *ms = calloc(s->o->repeat, sizeof *ms);
    int st;
    if (!out->at || !saved || !outputs || !ms || !save(v, saved)) {
        st = other_error("out of memory");
    } else {
        st = call_repeatedly(s, k, v, saved, outputs, n, ms);
        if (st == EXIT_DONE) {
            qsort(ms, s->o->repeat, sizeof *ms, by_value);
            s->times.run_ms = ms[s->o->repeat / 2];
            *min_ms = ms[0];
            *max_ms = ms[s->o->repeat - 1];
            collect(k, v, saved, outputs, n, out);
        }
        release_all(outputs, n);
    }
    for (size_t i = 0; saved && i < v->count; i++) {
        free(saved[i]);
    }
    free(saved);
    free(outputs);
    free(ms);
    return st;
}

void results_free(result_list *r)
{
    for (size_t i = 0; i < r->count; i++) {
        nki_tensor_release(r->at[i].tensor);
    }
    free(r->at);
    *r = (result_list){0};
}

// ---- showing

static double half_to_double(uint16_t h)
{
    int exp = h >> 10 & 31;
    double frac = h & 1023;
    double v = exp == 31 ? (frac != 0 ? NAN : INFINITY)
               : exp     ? ldexp(1024 + frac, exp - 25)
                         : ldexp(frac, -24);
    return h >> 15 ? -v : v;
}

static double get(const npy_array *a, size_t i)
{
    switch (a->type) {
    case NPY_F2: return half_to_double(((const uint16_t *)a->data)[i]);
    case NPY_F4: return (double)((const float *)a->data)[i];
    case NPY_F8: return ((const double *)a->data)[i];
    case NPY_I1: return ((const int8_t *)a->data)[i];
    case NPY_B1:
    case NPY_V1:
    case NPY_U1: return ((const uint8_t *)a->data)[i];
    case NPY_I2: return ((const int16_t *)a->data)[i];
    case NPY_V2:
    case NPY_U2: return ((const uint16_t *)a->data)[i];
    case NPY_I4: return ((const int32_t *)a->data)[i];
    case NPY_V4:
    case NPY_U4: return ((const uint32_t *)a->data)[i];
    case NPY_I8: return (double)((const int64_t *)a->data)[i];
    case NPY_U8: return (double)((const uint64_t *)a->data)[i];
    }
    return 0;
}

static void shape_text(const size_t *shape, size_t ndim, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "[");
    for (size_t d = 0; d < ndim && n < room; d++) {
        n += (size_t)snprintf(out + n, room - n, "%s%zu", d ? ", " : "", shape[d]);
    }
    if (n < room) {
        snprintf(out + n, room - n, "]");
    }
}

// printf writes some NaNs as "-nan".
static void print_number(double v)
{
    if (v != v) {
        fputs("nan", stdout);
    } else {
        printf("%.9g", v);
    }
}

void result_summary(const result *r)
{
    npy_array a;
    char shape[200];
    shape_text(nki_tensor_shape(r->tensor), nki_tensor_ndim(r->tensor), shape, sizeof shape);
    printf("%s %s %s", r->name, shape, nki_dtype_name(nki_tensor_dtype(r->tensor)));
    if (!npy_of_tensor(r->tensor, false, &a)) {
        npy_free(&a);
        printf(" (no memory for statistics)\n");
        return;
    }
    double lo = INFINITY, hi = -INFINITY, sum = 0;
    size_t nan = 0;
    for (size_t i = 0; i < a.count; i++) {
        double v = get(&a, i);
        if (v != v) {
            nan++;
            continue;
        }
        lo = v < lo ? v : lo;
        hi = v > hi ? v : hi;
        sum += v;
    }
    if (a.count > nan) {
        printf(" min %.9g max %.9g mean ", lo, hi);
        print_number(sum / (double)(a.count - nan));
    } else {
        printf(" min - max - mean -");
    }
    printf(" nan %zu%s\n", nan, r->in_place ? " (written in place)" : "");
    npy_free(&a);
}

static void print_element(const npy_array *a, size_t i)
{
    double v = get(a, i);
    if (a->type == NPY_B1) {
        fputs(v != 0 ? "True" : "False", stdout);
    } else if (v != v) {
        fputs("nan", stdout);
    } else {
        printf(a->type == NPY_F2 || a->type == NPY_F4 ? "%.7g" : "%.17g", v);
    }
}

// Dimension d, whose first element is number `at`.
static void print_dim(const npy_array *a, size_t d, size_t at, size_t stride, bool shorten)
{
    enum { EDGE = 3 };
    if (d == a->ndim) {
        print_element(a, at);
        return;
    }
    size_t n = a->shape[d], inner = n ? stride / n : 0;
    putchar('[');
    for (size_t i = 0; i < n; i++) {
        if (i) {
            fputs(",", stdout);
            if (d + 1 < a->ndim) {
                printf("\n%*s", (int)d + 1, "");
            } else {
                putchar(' ');
            }
        }
        if (shorten && n > 2 * EDGE + 1 && i == EDGE) {
            fputs("...", stdout);
            i = n - EDGE - 1;
            continue;
        }
        print_dim(a, d + 1, at + i * inner, inner, shorten);
    }
    putchar(']');
}

void array_print(const npy_array *a, size_t whole)
{
    print_dim(a, 0, 0, a->count, a->count > whole);
    putchar('\n');
}

void result_print(const result *r)
{
    enum { WHOLE = 1000 };
    npy_array a;
    char shape[200];
    shape_text(nki_tensor_shape(r->tensor), nki_tensor_ndim(r->tensor), shape, sizeof shape);
    printf("%s %s %s\n", r->name, shape, nki_dtype_name(nki_tensor_dtype(r->tensor)));
    if (npy_of_tensor(r->tensor, false, &a)) {
        array_print(&a, WHOLE);
    }
    npy_free(&a);
}

// ---- comparing

typedef struct difference {
    size_t bad, first, one_nan;
    double max_abs, max_rel;
} difference;

// |got - want| <= atol + rtol * |want|; NaN agrees with NaN, an infinity with itself.
static difference compare(const npy_array *got, const npy_array *want, double rtol, double atol)
{
    difference r = {0};
    for (size_t i = 0; i < got->count; i++) {
        double g = get(got, i), w = get(want, i);
        if (g == w || (g != g && w != w)) {
            continue;
        }
        double e = fabs(g - w);
        bool ok = isfinite(g) && isfinite(w) && e <= atol + rtol * fabs(w);
        r.one_nan += (g != g) != (w != w);
        if (isfinite(e)) {
            r.max_abs = e > r.max_abs ? e : r.max_abs;
            double rel = w != 0 ? e / fabs(w) : INFINITY;
            r.max_rel = rel > r.max_rel ? rel : r.max_rel;
        }
        if (!ok && r.bad++ == 0) {
            r.first = i;
        }
    }
    return r;
}

static void index_text(const npy_array *a, size_t i, char *out, size_t room)
{
    size_t at[NKI_MAX_DIMS] = {0};
    for (size_t d = a->ndim; d-- > 0;) {
        at[d] = i % a->shape[d];
        i /= a->shape[d];
    }
    shape_text(at, a->ndim, out, room);
}

// Says what differs; 1 when something does.
static int judge(const char *name, const npy_array *got, const npy_array *want,
                 const char *want_name, double rtol, double atol)
{
    char a[200], b[200];
    shape_text(got->shape, got->ndim, a, sizeof a);
    shape_text(want->shape, want->ndim, b, sizeof b);
    if (got->ndim != want->ndim ||
        memcmp(got->shape, want->shape, got->ndim * sizeof *got->shape) != 0) {
        fprintf(stderr, "nki: %s: shape %s, but %s has %s\n", name, a, want_name, b);
        return 1;
    }
    if (got->type != want->type) {
        fprintf(stderr, "nki: %s: type %s, but %s has %s\n", name, npy_type_name(got->type),
                want_name, npy_type_name(want->type));
        return 1;
    }
    difference r = compare(got, want, rtol, atol);
    if (r.bad) {
        index_text(got, r.first, a, sizeof a);
        fprintf(
            stderr,
            "nki: %s: %zu of %zu elements differ from %s (rtol %g, atol %g); first at %s: %.9g, "
            "expected %.9g; largest error %.3g absolute, %.3g relative; NaN on one side: %zu\n",
            name, r.bad, got->count, want_name, rtol, atol, a, get(got, r.first),
            get(want, r.first), r.max_abs, r.max_rel, r.one_nan);
        return 1;
    }
    return 0;
}

int result_expect(const result *r, const char *path, double rtol, double atol, bool raw)
{
    npy_array got = {0}, want = {0};
    char why[1024];
    if (!npy_read(path, &want, why, sizeof why)) {
        return other_error("%s", why);
    }
    int st;
    if (!npy_of_tensor(r->tensor, raw, &got)) {
        st = other_error("out of memory");
    } else {
        st = judge(r->name, &got, &want, path, rtol, atol) ? EXIT_DIFFERS : EXIT_DONE;
    }
    npy_free(&got);
    npy_free(&want);
    return st;
}

int result_compare(const result *a, const result *b, const char *what_a, const char *what_b,
                   double rtol, double atol)
{
    npy_array got = {0}, want = {0};
    char name[600];
    snprintf(name, sizeof name, "%s of %s", b->name, what_b);
    int st = 1;
    if (nki_tensor_dtype(a->tensor) != nki_tensor_dtype(b->tensor)) {
        fprintf(stderr, "nki: %s: type %s, but %s has %s\n", name,
                nki_dtype_name(nki_tensor_dtype(b->tensor)), what_a,
                nki_dtype_name(nki_tensor_dtype(a->tensor)));
    } else if (!npy_of_tensor(b->tensor, false, &got) || !npy_of_tensor(a->tensor, false, &want)) {
        other_error("out of memory");
    } else {
        st = judge(name, &got, &want, what_a, rtol, atol);
    }
    npy_free(&got);
    npy_free(&want);
    return st;
}
