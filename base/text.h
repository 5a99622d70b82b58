#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"

#include <stdbool.h>

// A growing text, zero-terminated after every call.
typedef struct textbuf {
    arena *mem;
    char *at;
    size_t len, cap;
} textbuf;

void text_init(textbuf *t, arena *mem);
void text_add(textbuf *t, const char *p, size_t len);
void text_cstr(textbuf *t, const char *p);
void text_char(textbuf *t, char c);
void text_printf(textbuf *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Shortest decimal that reads back as v, as Python's repr(float): 1.0, 1e-05, inf, nan.
// buf holds at least 32 bytes. Returns the length. Independent of the locale.
int text_double(char *buf, double v);
// Shortest decimal that reads back as the fp32 v, in the same form.
int text_float(char *buf, float v);
// strtod in the C locale on len bytes; false when the bytes are not wholly a number.
bool text_to_double(const char *p, size_t len, double *out);

#endif
