#ifndef NEFF_NEFF_H
#define NEFF_NEFF_H

#include "lang/program.h"

#include <nki/status.h>

// The container: docs/neff.md. Same program, same bytes.
// Returns malloc'ed bytes (NULL: out of memory).
unsigned char *neff_write(const program *pr, size_t *len_bytes);
// Reads and verifies (lengths, ranges, checksum, ir_verify); a hostile file gives NKI_ERR_FORMAT
// and a sentence in *err (in mem). The bytes are copied or referred to: they must outlive mem.
nki_status neff_read(arena *mem, const unsigned char *bytes, size_t len, program **out,
                     const char **err);

#endif
