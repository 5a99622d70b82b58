#ifndef NKI_PROFILE_H
#define NKI_PROFILE_H

#include <nki/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

// How long a kernel takes on the cores it was compiled for, and why: a simulation of engines, DMA
// and semaphores that looks at no data. Unstable: may change in any version.
typedef struct nki_profile nki_profile;

// How often a register loop runs: name is the line of its start, its register ("r3") or its name.
typedef struct nki_trip {
    const char *name;
    uint64_t count;
} nki_trip;

// A timing constant to change (docs/machine.md).
typedef struct nki_machine_value {
    const char *name;
    double value;
} nki_machine_value;

typedef struct nki_profile_opts {
    size_t size;  // sizeof(nki_profile_opts), set by the initialiser
    const nki_trip *trips;
    size_t trip_count;
    const nki_machine_value *machine;
    size_t machine_count;
    uint32_t events_max;      // instruction executions kept for the forms that show them; 0: none
    uint64_t executions_max;  // of all instructions; 0: 2^27
    // Data, as for nki_kernel_call. Where the kernel's control depends on it, the kernel is run
    // once and the clock follows what it did; without it, trips have to say. Parameters that the
    // kernel writes are written.
    const nki_arg *args;
    size_t arg_count;
    nki_diags *diags;  // NULL: dropped
} nki_profile_opts;
#define NKI_PROFILE_OPTS_INIT                                                                      \
    {                                                                                              \
        sizeof(nki_profile_opts), NULL, 0, NULL, 0, 0, 0, NULL, 0, NULL                            \
    }

// opts may be NULL.
//
// Owns:   *out is the caller's. It keeps k alive.
// Errors: NKI_ERR_ARG (no such constant), NKI_ERR_DIAG (a loop whose length depends on data
//         and has no trip), NKI_ERR_LIMIT (executions_max), those of nki_kernel_call when args are
//         given, NKI_ERR_NOMEM; a sentence in nki_context_error.
NKI_API nki_status nki_profile_create(nki_kernel *k, const nki_profile_opts *opts,
                                      nki_profile **out);
NKI_API void nki_profile_release(nki_profile *p);

typedef enum nki_profile_form {
    NKI_PROFILE_TEXT,
    NKI_PROFILE_JSON,
    NKI_PROFILE_JSON_INSTRUCTIONS,
    NKI_PROFILE_CSV,       // the table "Instruction"
    NKI_PROFILE_PERFETTO,  // trace events
    NKI_PROFILE_HTML,      // a page with timelines beside the source
} nki_profile_form;

// Borrowed: lives as long as p. Errors, here and below: NKI_ERR_ARG, NKI_ERR_NOMEM.
NKI_API nki_status nki_profile_render(nki_profile *p, nki_profile_form form, const char **text,
                                      size_t *len);
// Tables of the CSV form: names as in Neuron Explorer's export ("Summary", "Instruction", ...);
// NULL past the last.
NKI_API const char *nki_profile_table_name(size_t i);
// Table i, with a header. Borrowed and errors as above.
NKI_API nki_status nki_profile_table(nki_profile *p, size_t i, const char **text, size_t *len);
// p against other, line by line, core by core; where one has two cores, each against the other's
// one. Borrowed and errors as above.
NKI_API nki_status nki_profile_compare(nki_profile *p, const nki_profile *other, const char **text,
                                       size_t *len);

// ---- the constants

typedef struct nki_machine_row {
    const char *name, *unit, *trust, *source;
    double value[3];  // trn1, trn2, trn3
} nki_machine_row;

NKI_API size_t nki_machine_count(void);
// Errors: NKI_ERR_ARG past the last.
NKI_API nki_status nki_machine_at(size_t i, nki_machine_row *out);

#ifdef __cplusplus
}
#endif

#endif
