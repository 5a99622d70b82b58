#ifndef NEFF_NEFF_H
#define NEFF_NEFF_H

#include "lang/program.h"

#include <nki/status.h>

// The container: docs/neff.md. Same program, same bytes.
// Returns malloc'ed bytes (NULL: out of memory).
unsigned char *neff_write(const program *pr, size_t *len_bytes);
// Where a file may hold several containers, one after the other: how many, at most max and at least
// 1 (damage is found by reading). Only headers are looked at.
uint32_t neff_parts(const unsigned char *bytes, size_t len, uint32_t max);
// Length of the container that begins here. Requires: neff_parts() found another one behind it.
size_t neff_file_bytes(const unsigned char *bytes);
// Its target, from the header alone; NULL when it has none.
const target *neff_target(const unsigned char *bytes, size_t len);
// Reads and verifies (lengths, ranges, checksum, ir_verify); a hostile file gives NKI_ERR_FORMAT
// and a sentence in *err (in mem). The bytes are copied or referred to: they must outlive mem.
nki_status neff_read(arena *mem, const unsigned char *bytes, size_t len, program **out,
                     const char **err);

#endif
