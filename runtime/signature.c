#include "runtime/signature.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    const char *text, *at;
    char *why;
    size_t room;
    bool failed;
} reader;

static bool fail(reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fail(reader *r, const char *fmt, ...)
{
    if (!r->failed) {
        va_list ap;
        va_start(ap, fmt);
        int n =
            snprintf(r->why, r->room, "signature, character %zu: ", (size_t)(r->at - r->text) + 1);
        if (n > 0 && (size_t)n < r->room) {
            vsnprintf(r->why + n, r->room - (size_t)n, fmt, ap);
        }
        va_end(ap);
    }
    r->failed = true;
    return false;
}

static void blanks(reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// An identifier, without moving past it; 0: none.
static size_t word(reader *r)
{
    blanks(r);
    size_t n = 0;
    while (is_letter(r->at[n]) || (n && is_digit(r->at[n]))) {
        n++;
    }
    return n;
}

static bool word_is(const reader *r, size_t n, const char *what)
{
    return strlen(what) == n && memcmp(r->at, what, n) == 0;
}

static bool take(reader *r, char c)
{
    blanks(r);
    bool is = *r->at == c;
    r->at += is;
    return is;
}

static bool expect(reader *r, char c)
{
    return take(r, c) || fail(r, "expected '%c'", c);
}

static bool name(reader *r, char out[SIG_NAME_BYTES])
{
    size_t n = word(r);
    if (n == 0) {
        return fail(r, "expected a name");
    }
    if (n >= SIG_NAME_BYTES) {
        return fail(r, "a name is at most %d bytes", SIG_NAME_BYTES - 1);
    }
    memcpy(out, r->at, n);
    out[n] = '\0';
    r->at += n;
    return true;
}

static bool dim(reader *r, sig_dim *d)
{
    blanks(r);
    if (!is_digit(*r->at)) {
        return name(r, d->name);
    }
    uint64_t v = 0;
    for (; is_digit(*r->at); r->at++) {
        v = v * 10 + (uint64_t)(*r->at - '0');
        if (v > UINT32_MAX) {
            return fail(r, "a size is at most %u", UINT32_MAX);
        }
    }
    d->size = (size_t)v;
    return true;
}

static bool dims(reader *r, sig_param *p)
{
    if (!expect(r, '[')) {
        return false;
    }
    if (take(r, ']')) {
        return true;  // a scalar in memory
    }
    do {
        if (p->ndim == NKI_MAX_DIMS) {
            return fail(r, "a tensor has at most %d dimensions", NKI_MAX_DIMS);
        }
        if (!dim(r, &p->dim[p->ndim++])) {
            return false;
        }
    } while (take(r, ','));
    return expect(r, ']');
}

static const struct {
    const char *text;
    sig_kind kind;
} numbers[] = {
    {"i32", SIG_I32}, {"i64", SIG_I64}, {"f32", SIG_F32}, {"f64", SIG_F64}, {"ptr", SIG_PTR}};
enum { NUMBER_COUNT = sizeof numbers / sizeof *numbers };

// The word after the type decides: a bracket makes f32 and i32 tensors.
static bool type(reader *r, sig_param *p, bool has_mode)
{
    size_t n = word(r);
    if (n == 0) {
        return fail(r, "expected a type");
    }
    const char *start = r->at, *after = start + n;
    while (*after == ' ' || *after == '\t' || *after == '\r' || *after == '\n') {
        after++;
    }
    for (int i = 0; i < NUMBER_COUNT && *after != '['; i++) {
        if (word_is(r, n, numbers[i].text)) {
            p->kind = numbers[i].kind;
            r->at += n;
            return has_mode ? fail(r, "in, out and inout are for tensors") : true;
        }
    }
    if (!nki_dtype_find(start, n, &p->dtype)) {
        return fail(r, "'%.*s' is no type", (int)(n < 40 ? n : 40), start);
    }
    r->at += n;
    p->kind = SIG_TENSOR;
    return dims(r, p);
}

static bool param(reader *r, sig_param *p)
{
    static const char *const modes[] = {"in", "out", "inout"};
    size_t n = word(r);
    bool has_mode = false;
    for (int i = 0; i < 3 && !has_mode; i++) {
        if (word_is(r, n, modes[i])) {
            p->mode = (sig_mode)i;
            r->at += n;
            has_mode = true;
        }
    }
    return type(r, p, has_mode) && name(r, p->name);
}

static bool known_dim(const signature *s, const char *what)
{
    for (size_t i = 0; i < s->count; i++) {
        for (size_t d = 0; d < s->param[i].ndim; d++) {
            if (strcmp(s->param[i].dim[d].name, what) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool check(reader *r, signature *s)
{
    size_t pointers = 0;
    for (size_t i = 0; i < s->count; i++) {
        sig_param *p = &s->param[i];
        for (size_t j = 0; j < i; j++) {
            if (strcmp(s->param[j].name, p->name) == 0) {
                return fail(r, "two parameters are named '%s'", p->name);
            }
        }
        pointers += p->kind == SIG_PTR;
        if (pointers > 1) {
            return fail(r, "there is one registered pointer, and two parameters for it");
        }
        if (p->kind != SIG_TENSOR && known_dim(s, p->name)) {
            if (p->kind != SIG_I32 && p->kind != SIG_I64) {
                return fail(r, "'%s' is a size: i32 or i64", p->name);
            }
            p->is_size = true;
        }
    }
    return true;
}

bool signature_parse(const char *text, signature *out, char *why, size_t room)
{
    reader r = {text, text, why, room, false};
    memset(out, 0, sizeof *out);
    if (strnlen(text, SIG_TEXT_MAX + 1) > SIG_TEXT_MAX) {
        return fail(&r, "it is longer than %d bytes", SIG_TEXT_MAX);
    }
    size_t n = word(&r);
    out->returns_i32 = word_is(&r, n, "i32");
    if (!out->returns_i32 && !word_is(&r, n, "void")) {
        return fail(&r, "expected i32 or void");
    }
    r.at += n;
    if (!expect(&r, '(')) {
        return false;
    }
    if (!take(&r, ')')) {
        do {
            if (out->count == SIG_PARAMS_MAX) {
                return fail(&r, "there are at most %d parameters", SIG_PARAMS_MAX);
            }
            if (!param(&r, &out->param[out->count++])) {
                return false;
            }
        } while (take(&r, ','));
        if (!expect(&r, ')')) {
            return false;
        }
    }
    blanks(&r);
    return (*r.at == '\0' || fail(&r, "something follows")) && check(&r, out);
}

static void put(char *out, size_t room, size_t *len, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void put(char *out, size_t room, size_t *len, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(*len < room ? out + *len : NULL, *len < room ? room - *len : 0, fmt, ap);
    va_end(ap);
    *len += n > 0 ? (size_t)n : 0;
}

size_t signature_print(const signature *s, char *out, size_t room)
{
    static const char *const modes[] = {"in ", "out ", "inout "};
    size_t len = 0;
    put(out, room, &len, "%s(", s->returns_i32 ? "i32" : "void");
    for (size_t i = 0; i < s->count; i++) {
        const sig_param *p = &s->param[i];
        put(out, room, &len, "%s", i ? ", " : "");
        if (p->kind != SIG_TENSOR) {
            put(out, room, &len, "%s %s", numbers[p->kind - SIG_I32].text, p->name);
            continue;
        }
        put(out, room, &len, "%s%s[", modes[p->mode], nki_dtype_name(p->dtype));
        for (size_t d = 0; d < p->ndim; d++) {
            put(out, room, &len, d ? "," : "");
            if (p->dim[d].name[0]) {
                put(out, room, &len, "%s", p->dim[d].name);
            } else {
                put(out, room, &len, "%zu", p->dim[d].size);
            }
        }
        put(out, room, &len, "] %s", p->name);
    }
    put(out, room, &len, ")");
    return len;
}

bool signature_size(const sig_sizes *z, const char *what, size_t *out)
{
    for (size_t i = 0; i < z->count; i++) {
        if (strcmp(z->at[i].name, what) == 0) {
            *out = z->at[i].size;
            return true;
        }
    }
    return false;
}

bool signature_bind(const sig_param *p, nki_dtype d, size_t ndim, const size_t *shape, sig_sizes *z,
                    char *why, size_t room)
{
    if (d != p->dtype || ndim != p->ndim) {
        snprintf(why, room, "'%s' is %s with %zu dimensions; the signature says %s with %zu",
                 p->name, nki_dtype_name(d), ndim, nki_dtype_name(p->dtype), p->ndim);
        return false;
    }
    for (size_t i = 0; i < ndim; i++) {
        const sig_dim *want = &p->dim[i];
        size_t size = want->size;
        if (want->name[0] && !signature_size(z, want->name, &size)) {
            z->at[z->count].name = want->name;
            z->at[z->count++].size = size = shape[i];
        }
        if (size != shape[i]) {
            snprintf(why, room, "dimension %zu of '%s' is %zu; the signature says %s%s%zu", i,
                     p->name, shape[i], want->name, want->name[0] ? " = " : "", size);
            return false;
        }
    }
    return true;
}
