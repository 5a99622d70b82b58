#ifndef LOWER_CHARS_H
#define LOWER_CHARS_H

#include <stdbool.h>
#include <stdint.h>

// Texts of the interpreter are UTF-8; with `bytes` each byte is a character.
// *p < end on entry. An invalid sequence reads as one character.
uint32_t utf8_next(const char **p, const char *end, bool bytes);
uint32_t utf8_put(uint32_t c, char out[4]);  // number of bytes

uint32_t char_upper(uint32_t c);
uint32_t char_lower(uint32_t c);
bool char_is_upper(uint32_t c);
bool char_is_lower(uint32_t c);
bool char_is_alpha(uint32_t c);
bool char_is_decimal(uint32_t c);
bool char_is_digit(uint32_t c);
bool char_is_numeric(uint32_t c);
bool char_is_space(uint32_t c);
bool char_is_line_end(uint32_t c);
bool char_is_printable(uint32_t c);

#endif
