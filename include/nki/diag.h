#ifndef NKI_DIAG_H
#define NKI_DIAG_H

#include <nki/export.h>
#include <nki/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a compile or a run has to say about a kernel. Calls append to it; it is read at any time
// between calls. Owns all its text, so it may outlive the kernel and the context.
typedef struct nki_diags nki_diags;

typedef enum nki_severity { NKI_ERROR, NKI_WARNING, NKI_NOTE } nki_severity;
typedef enum nki_diag_format { NKI_DIAG_TEXT, NKI_DIAG_SHORT, NKI_DIAG_JSON } nki_diag_format;

// Borrowed: lives until the nki_diags is cleared or released.
typedef struct nki_diag {
    nki_severity severity;
    const char *name;  // "bad_dedent": the name in brackets, what `nki explain` takes
    const char *text;  // one line, without place and name
    const char *help;  // or NULL
    const char *path;  // or NULL: no place
    size_t line, col;  // from 1; col counts bytes. 0 when path is NULL
} nki_diag;

// Owns: *out is the caller's. Errors: NKI_ERR_NOMEM, NKI_ERR_ARG.
NKI_API nki_status nki_diags_create(nki_diags **out);
NKI_API void nki_diags_release(nki_diags *d);
NKI_API void nki_diags_clear(nki_diags *d);

// Errors counts those past the limit that are not kept; see nki_diags_count for what can be read.
NKI_API size_t nki_diags_errors(const nki_diags *d);
NKI_API size_t nki_diags_warnings(const nki_diags *d);
NKI_API size_t nki_diags_count(const nki_diags *d);
// Errors: NKI_ERR_ARG when i is past the end.
NKI_API nki_status nki_diags_at(const nki_diags *d, size_t i, nki_diag *out);

// All of them as text, each with its source line, caret, notes and help (TEXT), one line each
// (SHORT) or one JSON object a line (JSON). color: escape sequences for a terminal, not 0.
//
// Owns:   *out is zero-terminated and belongs to d: valid until the next call with d.
// Errors: NKI_ERR_NOMEM, NKI_ERR_ARG.
NKI_API nki_status nki_diags_render(nki_diags *d, nki_diag_format format, int color,
                                    const char **out);

#ifdef __cplusplus
}
#endif

#endif
