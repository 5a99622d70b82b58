// Code points: UTF-8, case and classes.
#include "lower/chars.h"

#include <stddef.h>

uint32_t utf8_next(const char **p, const char *end, bool bytes)
{
    unsigned char c = (unsigned char)*(*p)++;
    if (c < 0xC0 || bytes) {
        return c;
    }
    uint32_t more = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    uint32_t cp = c & (0x3Fu >> more);
    while (more-- > 0 && *p < end && ((unsigned char)**p & 0xC0) == 0x80) {
        cp = cp << 6 | ((unsigned char)*(*p)++ & 0x3Fu);
    }
    return cp;
}

uint32_t utf8_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    uint32_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (uint32_t i = n - 1; i > 0; i--) {
        out[i] = (char)(unsigned char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    out[0] = (char)(unsigned char)((0xF00u >> n & 0xF0u) | c);
    return n;
}

typedef struct range {
    uint32_t first, last;
} range;

typedef struct case_range {
    uint32_t first, last;
    int32_t diff;
    uint32_t step;
} case_range;

#define COUNT(t) (sizeof(t) / sizeof(t)[0])

static const case_range to_upper[] = {
#define UPPER(first, last, diff, step) {first, last, diff, step},
#include "lower/chars.def"
};
static const case_range to_lower[] = {
#define LOWER(first, last, diff, step) {first, last, diff, step},
#include "lower/chars.def"
};
static const range alpha[] = {
#define ALPHA(first, last) {first, last},
#include "lower/chars.def"
};
static const range decimal[] = {
#define DECIMAL(first, last) {first, last},
#include "lower/chars.def"
};
static const range digit[] = {
#define DIGIT(first, last) {first, last},
#include "lower/chars.def"
};
static const range numeric[] = {
#define NUMERIC(first, last) {first, last},
#include "lower/chars.def"
};

static const range hidden[] = {
#define HIDDEN(first, last) {first, last},
#include "lower/chars.def"
};

static bool in_ranges(const range *t, size_t n, uint32_t c)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c > t[mid].last) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < n && c >= t[lo].first;
}

static uint32_t map_case(const case_range *t, size_t n, uint32_t c)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c > t[mid].last) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo < n && c >= t[lo].first && (c - t[lo].first) % t[lo].step == 0) {
        return (uint32_t)((int32_t)c + t[lo].diff);
    }
    return c;
}

uint32_t char_upper(uint32_t c)
{
    if (c < 0x80) {
        return c >= 'a' && c <= 'z' ? c - 32 : c;
    }
    return map_case(to_upper, COUNT(to_upper), c);
}

uint32_t char_lower(uint32_t c)
{
    if (c < 0x80) {
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    }
    return map_case(to_lower, COUNT(to_lower), c);
}

bool char_is_upper(uint32_t c)
{
    return char_lower(c) != c;
}

bool char_is_lower(uint32_t c)
{
    return char_upper(c) != c || c == 0xAA || c == 0xBA || c == 0xDF || c == 0x138 || c == 0x149;
}

bool char_is_alpha(uint32_t c)
{
    if (c < 0x80) {
        return (c | 32) >= 'a' && (c | 32) <= 'z';
    }
    return in_ranges(alpha, COUNT(alpha), c);
}

bool char_is_decimal(uint32_t c)
{
    return c < 0x80 ? c >= '0' && c <= '9' : in_ranges(decimal, COUNT(decimal), c);
}

bool char_is_digit(uint32_t c)
{
    return char_is_decimal(c) || (c >= 0x80 && in_ranges(digit, COUNT(digit), c));
}

bool char_is_numeric(uint32_t c)
{
    return char_is_digit(c) || (c >= 0x80 && in_ranges(numeric, COUNT(numeric), c));
}

bool char_is_space(uint32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool char_is_line_end(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

bool char_is_printable(uint32_t c)
{
    return c >= 0x20 && c != 0x7f && !in_ranges(hidden, COUNT(hidden), c);
}
