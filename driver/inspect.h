#ifndef DRIVER_INSPECT_H
#define DRIVER_INSPECT_H

#include "base/text.h"

#include <nki/status.h>

typedef enum inspect_form {
    INSPECT_ALL,  // header, sections, tensors, streams, instructions with their source lines
    INSPECT_MEMORY,
    INSPECT_MEMORY_SVG,
    INSPECT_SPILLS,
} inspect_form;

// One container, in words. Reads and verifies it. Errors: NKI_ERR_FORMAT, with a sentence in *err
// (in out's arena).
nki_status inspect_neff(const unsigned char *bytes, size_t len, inspect_form form, textbuf *out,
                        const char **err);

#endif
