#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include <stdint.h>

// Half-open byte range in one source text. Lines and columns are derived when a
// diagnostic is printed, never stored: 8 bytes a node instead of 24.
typedef struct span {
    uint32_t lo, hi;
} span;

typedef struct source {
    const char *name;  // as the user gave it, or found by an import
    const char *text;  // text[len] == '\0', which the lexer relies on
    uint32_t len;
} source;

typedef struct linecol {
    uint32_t line, col;         // 1-based; col counts bytes
    uint32_t line_lo, line_hi;  // the line's text, newline and carriage return excluded
} linecol;

linecol source_locate(const source *s, uint32_t at);

// A range of one source: what a diagnostic points at.
typedef struct loc {
    const source *src;
    span at;
} loc;

#endif
