#include "cli/value.h"

#include "cli/generate.h"
#include "cli/npy.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t identifier(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_' || (unsigned char)p[n] >= 128) {
        n++;
    }
    return n && !isdigit((unsigned char)*p) ? n : 0;
}

// ---- tensors from files

static int32_t to_i32(double v)
{
    v = nearbyint(v);
    return v != v ? 0 : v >= INT32_MAX ? INT32_MAX : v <= INT32_MIN ? INT32_MIN : (int32_t)v;
}

static uint32_t to_u32(double v)
{
    v = nearbyint(v);
    return !(v > 0) ? 0 : v >= UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

// 64-bit elements, which no core has, narrow to the 32-bit type that keeps them; *from is that
// type. Integers that do not fit are refused.
static const char *narrow(npy_array *a, bool to_int, bool to_unsigned, nki_dtype *from)
{
    void *out = malloc(a->count * 4 + 1);
    if (!out) {
        return "does not fit in memory";
    }
    const char *wrong = NULL;
    *from = a->type == NPY_F8 && !to_int       ? NKI_FLOAT32
            : a->type == NPY_U8 || to_unsigned ? NKI_UINT32
                                               : NKI_INT32;
    for (size_t i = 0; i < a->count && !wrong; i++) {
        if (a->type == NPY_F8) {
            double v = ((const double *)a->data)[i];
            if (*from == NKI_FLOAT32) {
                ((float *)out)[i] = (float)v;
            } else if (*from == NKI_INT32) {
                ((int32_t *)out)[i] = to_i32(v);
            } else {
                ((uint32_t *)out)[i] = to_u32(v);
            }
        } else if (a->type == NPY_I8) {
            int64_t v = ((const int64_t *)a->data)[i];
            bool fits =
                *from == NKI_INT32 ? v >= INT32_MIN && v <= INT32_MAX : v >= 0 && v <= UINT32_MAX;
            wrong = fits ? NULL : "holds a 64-bit integer that does not fit in 32 bits";
            ((uint32_t *)out)[i] = (uint32_t)v;
        } else {
            uint64_t v = ((const uint64_t *)a->data)[i];
            wrong = v <= UINT32_MAX ? NULL : "holds a 64-bit integer that does not fit in 32 bits";
            ((uint32_t *)out)[i] = (uint32_t)v;
        }
    }
    if (wrong) {
        free(out);
        return wrong;
    }
    free(a->data);
    a->data = out;
    return NULL;
}

// The nki type of a file's elements; those of 64 bits and void are handled before.
static nki_dtype own_type(npy_type t)
{
    switch (t) {
    case NPY_F2: return NKI_FLOAT16;
    case NPY_F4:
    case NPY_F8: return NKI_FLOAT32;
    case NPY_I1: return NKI_INT8;
    case NPY_U1:
    case NPY_V1: return NKI_UINT8;
    case NPY_I2: return NKI_INT16;
    case NPY_U2: return NKI_UINT16;
    case NPY_I4:
    case NPY_I8: return NKI_INT32;
    case NPY_U4:
    case NPY_U8:
    case NPY_V4: return NKI_UINT32;
    case NPY_B1: return NKI_BOOL;
    case NPY_V2: return NKI_BFLOAT16;  // how ml_dtypes' bfloat16 is saved
    }
    return NKI_FLOAT32;
}

static bool is_packed(nki_dtype d)
{
    return d == NKI_FLOAT8_E5M2_X4 || d == NKI_FLOAT8_E4M3FN_X4 || d == NKI_FLOAT4_E2M1FN_X4;
}

// want NULL: the file's own type.
static int from_file(session *s, const char *path, const nki_dtype *want, nki_tensor **out)
{
    npy_array a = {0};
    char why[1024];
    if (!npy_read(path, &a, why, sizeof why)) {
        return other_error("%s", why);
    }
    nki_dtype from = own_type(a.type), to = want ? *want : from;
    const char *wrong = NULL;
    bool is_void = a.type == NPY_V1 || a.type == NPY_V2 || a.type == NPY_V4;
    if (is_void || is_packed(to)) {  // stored bits
        from = to;
        if (nki_dtype_size_bytes(to) != npy_type_size_bytes(a.type)) {
            wrong = "has elements of another size than that type's bits";
        }
    } else if (npy_type_size_bytes(a.type) == 8) {
        bool to_int = want && !nki_dtype_is_float(to);
        bool to_unsigned = to == NKI_UINT32 || to == NKI_UINT16 || to == NKI_UINT8;
        wrong = narrow(&a, to_int, to_unsigned && (a.type != NPY_I8 || to_int), &from);
        to = want ? *want : from;
    }
    int st = EXIT_OTHER;
    if (wrong) {
        other_error("'%s' (%s) %s", path, npy_type_name(a.type), wrong);
    } else if (nki_tensor_create(s->ctx, to, a.ndim, a.shape, out) != NKI_OK ||
               nki_tensor_copy_in(*out, a.data, from, a.count) != NKI_OK) {
        other_error("'%s': %s", path, nki_context_error(s->ctx));
    } else {
        st = EXIT_DONE;
    }
    npy_free(&a);
    return st;
}

// ---- dtype[shape] and dtype[shape]:generator

static bool shape_of(const char **p, nki_tensor_info *t)
{
    const char *c = *p + 1;  // past '['
    t->ndim = 0;
    for (;;) {
        while (*c == ' ') {
            c++;
        }
        if (*c == ']') {
            break;
        }
        size_t v = 0;
        if (!isdigit((unsigned char)*c) || t->ndim == NKI_MAX_DIMS) {
            return false;
        }
        while (isdigit((unsigned char)*c)) {
            v = v > UINT32_MAX ? v : v * 10 + (size_t)(*c - '0');
            c++;
        }
        if (v > UINT32_MAX) {
            return false;
        }
        t->shape[t->ndim++] = v;
        while (*c == ' ') {
            c++;
        }
        if (*c == ',') {
            c++;
        } else if (*c != ']') {
            return false;
        }
    }
    *p = c + 1;
    return true;
}

static int generated(session *s, value *v, const char *text, const char *word)
{
    const char *why = NULL;
    generator g;
    if (!generator_parse(text, v->name ? v->name : "", &g, &why)) {
        return usage_error("'%s': %s", word, why);
    }
    if (nki_tensor_create(s->ctx, v->spec.dtype, v->spec.ndim, v->spec.shape, &v->tensor) !=
        NKI_OK) {
        return other_error("'%s': %s", word, nki_context_error(s->ctx));
    }
    if (!generator_fill(&g, v->tensor)) {
        return is_packed(v->spec.dtype)
                   ? usage_error("'%s': packed words can only be zeros; give a file", word)
                   : other_error("out of memory for '%s'", word);
    }
    v->kind = VALUE_TENSOR;
    return EXIT_DONE;
}

static int parse_value(session *s, const char *text, bool data, const char *word, value *v)
{
    size_t n = identifier(text);
    nki_dtype d = NKI_FLOAT32;
    bool is_dtype = n && nki_dtype_find(text, n, &d);
    size_t len = strlen(text);
    bool npy = len > 4 && strcmp(text + len - 4, ".npy") == 0;
    if (text[n] == '@' && (n == 0 || is_dtype || npy)) {
        if (n && !is_dtype) {
            return usage_error("'%s': there is no type '%.*s'", word, (int)n, text);
        }
        v->kind = VALUE_TENSOR;
        return from_file(s, text + n + 1, n ? &d : NULL, &v->tensor);
    }
    const char *p = text + n;
    if (n && *p == '[' && shape_of(&p, &v->spec) && (*p == ':' || (is_dtype && !*p))) {
        if (!is_dtype) {
            return usage_error("'%s': there is no type '%.*s'", word, (int)n, text);
        }
        v->spec.dtype = d;
        v->kind = VALUE_SPEC;
        if (!*p) {
            return data ? usage_error("'%s' has no data; add :randn, :zeros, ... or give a file",
                                      word)
                        : EXIT_DONE;
        }
        return generated(s, v, p + 1, word);
    }
    if (is_dtype && *p == '[') {
        return usage_error("'%s' should be TYPE[D0,D1,...], with at most %d dimensions", word,
                           NKI_MAX_DIMS);
    }
    v->kind = VALUE_EXPR;
    v->expr = text;
    return *text ? EXIT_DONE : usage_error("'%s' has no value", word);
}

// The value to the left that `text` names, when it is a tensor.
static const value *named_tensor(const value_list *l, const char *text)
{
    for (size_t i = 0; i + 1 < l->count; i++) {
        const value *v = &l->at[i];
        if (v->name && v->kind != VALUE_EXPR && strcmp(v->name, text) == 0) {
            return v;
        }
    }
    return NULL;
}

// Whether one of these words is a tensor that `name` is the name of.
static bool comes_later(char **words, size_t n, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < n; i++) {
        if (len && identifier(words[i]) == len && words[i][len] == '=' &&
            memcmp(words[i], name, len) == 0 && strpbrk(words[i] + len, "@[")) {
            return true;
        }
    }
    return false;
}

int values_parse(session *s, char **words, size_t n, bool data, value_list *out)
{
    *out = (value_list){0};
    out->at = calloc(n + 1, sizeof *out->at);
    out->args = calloc(n + 1, sizeof *out->args);
    if (!out->at || !out->args) {
        return other_error("out of memory");
    }
    bool named = false;
    for (size_t i = 0; i < n; i++) {
        char *w = words[i];
        size_t id = identifier(w);
        value *v = &out->at[i];
        const char *text = w;
        out->count = i + 1;
        if (id && w[id] == '=' && w[id + 1] != '=') {
            v->name = strndup(w, id);
            text = w + id + 1;
            named = true;
            if (!v->name) {
                return other_error("out of memory");
            }
        } else if (named) {
            return usage_error("'%s' has no name but stands after a value that has one", w);
        }
        const value *same = v->name ? named_tensor(out, text) : NULL;
        if (same) {
            v->kind = same->kind;
            v->spec = same->spec;
            v->tensor = same->tensor ? nki_tensor_retain(same->tensor) : NULL;
            continue;
        }
        if (v->name && comes_later(words + i + 1, n - i - 1, text)) {
            return usage_error("'%s': '%s' has to stand before it", w, text);
        }
        int st = parse_value(s, text, data, w, v);
        if (st != EXIT_DONE) {
            return st;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const value *v = &out->at[i];
        out->args[i] = (nki_arg){.name = v->name,
                                 .tensor = v->tensor,
                                 .expr = v->kind == VALUE_EXPR ? v->expr : NULL,
                                 .spec = v->kind == VALUE_SPEC ? &v->spec : NULL};
        for (size_t j = 0; j < i; j++) {
            if (v->name && out->at[j].name && strcmp(v->name, out->at[j].name) == 0) {
                return usage_error("'%s' is given twice", v->name);
            }
        }
    }
    return EXIT_DONE;
}

void values_free(value_list *v)
{
    for (size_t i = 0; i < v->count; i++) {
        free(v->at[i].name);
        nki_tensor_release(v->at[i].tensor);
    }
    free(v->at);
    free(v->args);
    *v = (value_list){0};
}
