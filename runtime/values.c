#include "runtime/kernel.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Compile-time values as the Python text that the specializer evaluates.

enum { DEPTH_MAX = 64 };

typedef struct out {
    char *at;
    size_t len, cap;
    bool failed;
} out;

static void put(out *o, const char *text, size_t n)
{
    if (o->failed || n > SIZE_MAX / 4) {
        o->failed = true;
        return;
    }
    if (o->len + n + 1 > o->cap) {
        size_t cap = (o->len + n + 1) * 2;
        char *p = realloc(o->at, cap);
        if (!p) {
            o->failed = true;
            return;
        }
        o->at = p;
        o->cap = cap;
    }
    memcpy(o->at + o->len, text, n);
    o->len += n;
    o->at[o->len] = '\0';
}

static void put_f(out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put_f(out *o, const char *fmt, ...)
{
    char buf[64];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    put(o, buf, n > 0 ? (size_t)n : 0);
}

static void put_float(out *o, double f)
{
    if (isnan(f)) {
        put_f(o, "float('nan')");
    } else if (isinf(f)) {
        put_f(o, f < 0 ? "float('-inf')" : "float('inf')");
    } else {
        char buf[64];
        snprintf(buf, sizeof buf, "%.17g", f);
        // "1" would be an int.
        put_f(o, strpbrk(buf, ".e") ? "(%s)" : "(%s.0)", buf);
    }
}

static void put_text(out *o, const char *s)
{
    put(o, "'", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '\'' || c == '\\') {
            put_f(o, "\\%c", c);
        } else if (c < 32 || c == 127) {
            put_f(o, "\\x%02x", c);
        } else {
            put(o, s, 1);
        }
    }
    put(o, "'", 1);
}

static bool put_value(out *o, const nki_value *v, int depth)
{
    if (depth > DEPTH_MAX) {
        return false;
    }
    switch (v->kind) {
    case NKI_VALUE_NONE: put_f(o, "None"); return true;
    case NKI_VALUE_BOOL: put_f(o, v->i ? "True" : "False"); return true;
    // The smallest integer has no literal of its own: its digits alone do not fit.
    case NKI_VALUE_INT:
        if (v->i == INT64_MIN) {
            put_f(o, "(%" PRId64 " - 1)", v->i + 1);
        } else {
            put_f(o, "(%" PRId64 ")", v->i);
        }
        return true;
    case NKI_VALUE_FLOAT: put_float(o, v->f); return true;
    case NKI_VALUE_TEXT:
        if (v->text) {
            put_text(o, v->text);
        }
        return v->text != NULL;
    case NKI_VALUE_TUPLE:
        put(o, "(", 1);
        for (size_t i = 0; i < v->count; i++) {
            if (!v->items || !put_value(o, &v->items[i], depth + 1)) {
                return false;
            }
            put(o, ",", 1);
        }
        put(o, ")", 1);
        return true;
    }
    return false;
}

char *value_text(const nki_value *v, bool *bad)
{
    out o = {0};
    *bad = !put_value(&o, v, 0);
    if (*bad || o.failed) {
        free(o.at);
        return NULL;
    }
    return o.at;
}
