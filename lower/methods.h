#ifndef LOWER_METHODS_H
#define LOWER_METHODS_H

#include "lower/chars.h"
#include "lower/interp.h"

// What the files of built-in methods share. A native method reads it->native_self first: a nested
// call overwrites it.

enum { MAX_TEXT_BYTES = 0x3fffffff };

typedef struct method {
    const char *name;
    uint8_t len;
    native_fn fn;
} method;
#define METHOD(name, fn)                                                                           \
    {                                                                                              \
        (name), sizeof(name) - 1, (fn)                                                             \
    }

// The method bound to self, or V_UNDEF.
value method_bind(interp *it, const method *table, size_t n, value self, sym id);
// Positional arguments only, lo to hi of them; false: TypeError set, in CPython's words.
bool method_args(interp *it, const args *a, const char *type, const char *name, uint32_t lo,
                 uint32_t hi);

// methods_case.c: case and classes of texts; methods_codec.c: translate, encode, decode
value case_method(interp *it, value self, sym id);
value codec_method(interp *it, value self, sym id);
// The str or bytes (tag) in v, a subclass instance included; NULL when it is none.
const vstr *text_payload(value v, uint8_t tag);
bool text_args(interp *it, const args *a, value self, const char *name, uint32_t lo, uint32_t hi);
bool text_is_wide(value v);  // has characters past ASCII
// methods_number.c: int, bool, float
value number_method(interp *it, value self, sym id);
// methods_dict.c: dict, its views, set and frozenset
value dict_method(interp *it, value self, sym id);
value set_method(interp *it, value self, sym id);

value key_error(interp *it, value key);
// ascii(v)
value v_ascii(interp *it, value v);
// A new str or bytes, like `like`; MemoryError when it is too long.
value text_value(interp *it, value like, const char *p, size_t len);
// "{...}".format_map(mapping)
value str_format_map(interp *it, value fmt, value mapping);

// A decimal number at *p: 1 read, 0 none, -1 too large (ValueError set).
int format_read_number(interp *it, const char **p, const char *end, int64_t *out);
extern const vstr format_no_spec;
bool format_into(interp *it, value v, const vstr *spec, textbuf *out);
// !r, !s, !a; 0: v itself
value format_convert(interp *it, value v, uint32_t conv);
// Digits of a magnitude; a pointer into buf.
const char *format_int_digits(uint64_t u, uint32_t base, bool upper, char buf[65]);
// |d| in a form of the format language: 0 (as repr), e f g n and capitals, %. precision -1: not
// given.
bool format_float_digits(interp *it, double d, uint32_t type, int64_t precision, bool alt,
                         textbuf *out);

#endif
