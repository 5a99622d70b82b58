#include "cli/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int min_args, max_args;
} kinds[] = {
    [GEN_ZEROS] = {"zeros", 0, 0},     [GEN_ONES] = {"ones", 0, 0},   [GEN_FULL] = {"full", 1, 1},
    [GEN_ARANGE] = {"arange", 0, 0},   [GEN_RANDN] = {"randn", 0, 2}, [GEN_RAND] = {"rand", 0, 2},
    [GEN_RANDINT] = {"randint", 2, 2}, [GEN_EYE] = {"eye", 0, 0},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static bool read_number(const char **p, double *out)
{
    char *end;
    *out = strtod(*p, &end);
    bool ok = end != *p;
    *p = end;
    while (**p == ' ') {
        ++*p;
    }
    return ok;
}

static uint64_t name_seed(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;  // FNV-1a
    for (; *name; name++) {
        h = (h ^ (unsigned char)*name) * 0x100000001B3u;
    }
    return h;
}

bool generator_parse(const char *text, const char *name, generator *out, const char **why)
{
    *out = (generator){.b = 1, .seed = name_seed(name)};
    int kind = 0;
    size_t n = strcspn(text, "(,");
    while (kind < KIND_COUNT &&
           (strlen(kinds[kind].name) != n || memcmp(kinds[kind].name, text, n) != 0)) {
        kind++;
    }
    if (kind == KIND_COUNT) {
        *why = "the generators are zeros ones full(v) arange randn rand(lo,hi) randint(lo,hi) eye";
        return false;
    }
    out->kind = (generator_kind)kind;
    const char *p = text + n;
    int args = 0;
    if (*p == '(') {
        double *to[2] = {&out->a, &out->b};
        p++;
        while (*p != ')') {
            if (args == kinds[kind].max_args || !read_number(&p, to[args])) {
                *why = "the generator does not take these numbers";
                return false;
            }
            args++;
            if (*p == ',') {
                p++;
            } else if (*p != ')') {
                *why = "a ')' is missing";
                return false;
            }
        }
        p++;
    }
    if (args < kinds[kind].min_args || (args == 1 && kinds[kind].max_args == 2)) {
        *why = "the generator wants more numbers, in parentheses";
        return false;
    }
    static const char seed[] = ",seed=";
    if (strncmp(p, seed, sizeof seed - 1) == 0) {
        char *end;
        p += sizeof seed - 1;
        out->seed = strtoull(p, &end, 10);
        if (end == p || *p == '-') {
            *why = "seed= wants a whole number";
            return false;
        }
        p = end;
    }
    if (*p) {
        *why = "nothing but ,seed=N may follow the generator";
        return false;
    }
    if (out->kind == GEN_RANDINT && !(out->b > out->a)) {
        *why = "randint(lo,hi) wants lo below hi";
        return false;
    }
    return true;
}

// Uniform in [0, 1) with 53 bits.
static double uniform(uint64_t seed, uint64_t i)
{
    uint64_t z = (seed * 0xD1342543DE82EF95u + i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

static double element(const generator *g, uint64_t i, uint64_t row, uint64_t col)
{
    switch (g->kind) {
    case GEN_ZEROS: return 0;
    case GEN_ONES: return 1;
    case GEN_FULL: return g->a;
    case GEN_ARANGE: return (double)i;
    case GEN_RANDN: {
        double u0 = uniform(g->seed, 2 * i), u1 = uniform(g->seed, 2 * i + 1);
        return g->a + g->b * (sqrt(-2 * log1p(-u0)) * cos(6.283185307179586 * u1));
    }
    case GEN_RAND: return g->a + (g->b - g->a) * uniform(g->seed, i);
    case GEN_RANDINT: return g->a + floor((g->b - g->a) * uniform(g->seed, i));
    case GEN_EYE: return row == col ? 1 : 0;
    }
    return 0;
}

bool generator_fill(const generator *g, nki_tensor *t)
{
    size_t count = nki_tensor_count(t), ndim = nki_tensor_ndim(t);
    size_t cols = ndim ? nki_tensor_shape(t)[ndim - 1] : 1;
    size_t rows = ndim > 1 ? nki_tensor_shape(t)[ndim - 2] : 1;
    nki_dtype d = nki_tensor_dtype(t);
    bool is_float = nki_dtype_is_float(d);
    void *data = calloc(count + 1, sizeof(float));
    if (!data) {
        return false;
    }
    if (g->kind == GEN_ZEROS) {  // the one value that packed words have too
        bool ok = nki_tensor_copy_in(t, data, d, count) == NKI_OK;
        free(data);
        return ok;
    }
    for (size_t i = 0; i < count; i++) {
        double v = element(g, i, cols ? i / cols % rows : 0, cols ? i % cols : 0);
        if (is_float) {
            ((float *)data)[i] = (float)v;
        } else {  // through the 32 bits that hold every integer type
            v = v != v ? 0 : v;
            ((uint32_t *)data)[i] = v < 0 ? (uint32_t)(int32_t)(v < INT32_MIN ? INT32_MIN : v)
                                          : (uint32_t)(v > UINT32_MAX ? UINT32_MAX : v);
        }
    }
    bool is_signed = d == NKI_INT8 || d == NKI_INT16 || d == NKI_INT32;
    nki_dtype from = is_float ? NKI_FLOAT32 : is_signed ? NKI_INT32 : NKI_UINT32;
    bool ok = nki_tensor_copy_in(t, data, from, count) == NKI_OK;
    free(data);
    return ok;
}
