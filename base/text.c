#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_init(textbuf *t, arena *mem)
{
    *t = (textbuf){.mem = mem, .cap = 64};
    t->at = NEW_N(mem, char, t->cap);
}

static void room(textbuf *t, size_t more)
{
    if (t->len + more + 1 > t->cap) {
        size_t cap = t->cap * 2;
        while (cap < t->len + more + 1) {
            cap *= 2;
        }
        char *p = NEW_N(t->mem, char, cap);
        memcpy(p, t->at, t->len);
        t->at = p;
        t->cap = cap;
    }
}

void text_add(textbuf *t, const char *p, size_t len)
{
    room(t, len);
    if (len) {
        memcpy(t->at + t->len, p, len);
    }
    t->len += len;
    t->at[t->len] = '\0';
}

void text_cstr(textbuf *t, const char *p)
{
    text_add(t, p, strlen(p));
}

void text_char(textbuf *t, char c)
{
    text_add(t, &c, 1);
}

void text_printf(textbuf *t, const char *fmt, ...)
{
    char small[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) {
        return;
    }
    if ((size_t)n < sizeof small) {
        text_add(t, small, (size_t)n);
        return;
    }
    room(t, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(t->at + t->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->len += (size_t)n;
}

// snprintf and strtod follow the locale's decimal point; put the C locale's back.
static void unlocale(char *buf)
{
    const struct lconv *lc = localeconv();
    char *p = *lc->decimal_point == '.' ? NULL : strchr(buf, *lc->decimal_point);
    if (p) {
        *p = '.';
    }
}

// digits: the significant decimal digits in scientific form d.ddde+xx -> Python's repr layout.
static int layout(char *buf, const char *sci)
{
    char digits[32];
    int n = 0, neg = *sci == '-';
    const char *p = sci + neg;
    for (; *p && *p != 'e'; p++) {
        if (*p != '.') {
            digits[n++] = *p;
        }
    }
    int exp = (int)strtol(p + 1, NULL, 10);
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    char *o = buf;
    if (neg) {
        *o++ = '-';
    }
    if (exp < -4 || exp >= 16) {
        *o++ = digits[0];
        if (n > 1) {
            *o++ = '.';
            memcpy(o, digits + 1, (size_t)n - 1);
            o += n - 1;
        }
        o += snprintf(o, 8, "e%c%02d", exp < 0 ? '-' : '+', abs(exp));
    } else if (exp < 0) {
        *o++ = '0';
        *o++ = '.';
        for (int i = -1; i > exp; i--) {
            *o++ = '0';
        }
        memcpy(o, digits, (size_t)n);
        o += n;
    } else {
        for (int i = 0; i <= exp; i++) {
            *o++ = i < n ? digits[i] : '0';
        }
        *o++ = '.';
        if (n > exp + 1) {
            memcpy(o, digits + exp + 1, (size_t)(n - exp - 1));
            o += n - exp - 1;
        } else {
            *o++ = '0';
        }
    }
    *o = '\0';
    return (int)(o - buf);
}

static int special(char *buf, double v)
{
    const char *s = isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
    strcpy(buf, s);
    return (int)strlen(s);
}

// Adds one unit to the last digit of d.ddde+xx; false when it would carry out of the first digit.
static bool bump(char *sci)
{
    char *p = strchr(sci, 'e');
    while (p > sci) {
        p--;
        if (*p < '0' || *p > '9') {
            continue;
        }
        if (*p < '9') {
            ++*p;
            return true;
        }
        *p = '0';
    }
    return false;
}

int text_double(char *buf, double v)
{
    if (!isfinite(v)) {
        return special(buf, v);
    }
    char sci[40];
    for (int prec = 0; prec < 18; prec++) {
        snprintf(sci, sizeof sci, "%.*e", prec, v);
        if (strtod(sci, NULL) == v) {
            break;
        }
        // Below a power of two the nearest decimal of this length may lie outside the interval that
        // reads back as v while the next one up lies inside.
        char up[40];
        memcpy(up, sci, sizeof up);
        if (prec >= 14 && bump(up) && strtod(up, NULL) == v) {
            memcpy(sci, up, sizeof sci);
            break;
        }
    }
    unlocale(sci);
    return layout(buf, sci);
}

int text_float(char *buf, float v)
{
    if (!isfinite(v)) {
        return special(buf, (double)v);
    }
    char sci[40];
    for (int prec = 0; prec < 10; prec++) {
        snprintf(sci, sizeof sci, "%.*e", prec, (double)v);
        if (strtof(sci, NULL) == v) {
            break;
        }
    }
    unlocale(sci);
    return layout(buf, sci);
}

bool text_to_double(const char *p, size_t len, double *out)
{
    char small[128], *buf = len < sizeof small ? small : malloc(len + 1);
    if (!buf) {
        return false;
    }
    memcpy(buf, p, len);
    buf[len] = '\0';
    char *dot = strchr(buf, '.');
    if (dot) {
        *dot = *localeconv()->decimal_point;
    }
    char *end;
    *out = strtod(buf, &end);
    bool ok = len && *end == '\0';
    if (buf != small) {
        free(buf);
    }
    return ok;
}
