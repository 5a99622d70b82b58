#ifndef LANG_DIAG_H
#define LANG_DIAG_H

#include "base/arena.h"
#include "base/source.h"
#include "base/text.h"

typedef enum severity { SEV_ERROR, SEV_WARNING, SEV_NOTE } severity;

// lang/diag.def: the one table. The typed functions below come from it.
typedef enum diag_id {
#define DIAG0(ident, sev, exc, fmt)             D_##ident,
#define DIAG(ident, sev, exc, fmt, params, ...) D_##ident,
#include "lang/diag.def"
#undef DIAG0
#undef DIAG
    D_COUNT
} diag_id;

// A further place with a sentence: "called from ...", "with i = 3", "allocated here".
typedef struct diag_note {
    struct diag_note *next;
    loc at;  // at.src NULL: no place
    const char *text;
} diag_note;

typedef struct diag {
    struct diag *next;
    diag_id id;
    severity sev;      // after -W options
    loc at;            // at.src NULL: no place (printed as "nki: error[...]")
    const char *text;
    const char *help;  // or NULL: a mechanical change that would fix it
    diag_note *notes, **notes_tail;
} diag;

typedef struct diags {
    arena *mem;
    diag *first, **tail;
    unsigned errors, warnings;
    unsigned limit;                    // errors kept; further ones are only counted
    const struct diag_policy *policy;  // NULL: defaults
} diags;

// What -W, -Wno-NAME, -Werror, -Werror=NAME say.
typedef struct diag_policy {
    bool all_errors;            // -Werror
    signed char warn[D_COUNT];  // 0 default (on), 1 on, -1 off, 2 an error
} diag_policy;

void diags_init(diags *ds, arena *mem);

// One typed constructor a row: diag_syntax(ds, at, got, wanted). The format is a literal at
// the point of expansion, so -Wformat still checks it. Returns the diagnostic, to which notes
// and a help line may be added; a switched-off warning is returned too, but not kept.
#define DIAG_UNPAREN(...)           __VA_ARGS__
#define DIAG0(ident, sev, exc, fmt) diag *diag_##ident(diags *ds, loc at);
#define DIAG(ident, sev, exc, fmt, params, ...)                                                    \
    diag *diag_##ident(diags *ds, loc at, DIAG_UNPAREN params);
#include "lang/diag.def"
#undef DIAG0
#undef DIAG

void diag_note_add(diags *ds, diag *d, loc at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_help(diags *ds, diag *d, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// Moves a diagnostic made elsewhere (a pending exception) to the end of ds.
void diags_adopt(diags *ds, diag *d);

const char *diag_name(diag_id id);
severity diag_severity(diag_id id);
// The Python exception class that a kernel may catch it as: "TypeError"; "" when it cannot be caught.
const char *diag_exception(diag_id id);
// The id of a name; D_COUNT when there is none.
diag_id diag_find(const char *ident);
// docs: what it means and how to mend it (lang/diag_explain.def). Never NULL.
const char *diag_meaning(diag_id id);
const char *diag_example(diag_id id);
const char *diag_fix(diag_id id);

typedef enum diag_format { DIAG_TEXT, DIAG_SHORT, DIAG_JSON } diag_format;
// Renders all. TEXT: path:line:col: error[name]: text, source line with caret, notes, help.
// SHORT: the first line only. JSON: one object a line.
void diags_render(const diags *ds, diag_format format, bool color, textbuf *out);

#endif
