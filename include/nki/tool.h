#ifndef NKI_TOOL_H
#define NKI_TOOL_H

#include <nki/kernel.h>

// What the `nki` tool needs beyond nki.h. Unstable: may change in any version.

// A function of a source that may be launched.
typedef struct nki_entry {
    const char *name;
    size_t line;
    size_t param_count, required_count;
} nki_entry;

// Parses only. entries (room for cap) receives the kernels found, in order, and *count their
// number. dump: the ast's text form, as in nki_compile_opts; NULL: none. Names live as long as ctx
// is not used for another parse.
NKI_API nki_status nki_tool_parse(nki_context *ctx, const nki_source *src,
                                  void (*dump)(void *dump_ctx, const char *stage, const char *text,
                                               size_t len),
                                  void *dump_ctx, nki_diags *ds, nki_entry *entries, size_t cap,
                                  size_t *count);

// Which parameter argument i of the compile was bound to; NULL when that is not known.
NKI_API const char *nki_tool_arg_name(const nki_kernel *k, size_t i);
// Whether the kernel has an instruction that writes into tensor parameter i.
NKI_API int nki_tool_param_written(const nki_kernel *k, size_t i);

// ---- containers

typedef enum nki_inspect_form {
    NKI_INSPECT_ALL,         // header, sections, tensors, code with source lines, streams
    NKI_INSPECT_MEMORY,      // SBUF and PSUM over instructions
    NKI_INSPECT_MEMORY_SVG,  // the same as a drawing
} nki_inspect_form;

// Reads and verifies a container of any target. The text lives as long as ctx is not used for
// another nki_tool_inspect or nki_tool_parse.
//
// Errors: NKI_ERR_FORMAT, NKI_ERR_NOMEM, NKI_ERR_ARG.
NKI_API nki_status nki_tool_inspect(nki_context *ctx, const void *neff, size_t len,
                                    nki_inspect_form form, const char **text, size_t *text_len);
// The target that the header names; NULL: this is no container.
NKI_API const char *nki_tool_neff_target(const void *neff, size_t len);

// From now on calls of k carry out its instructions in another order that its queues and semaphores
// allow (equal seeds, equal orders). The results are the same. A call in which a tensor that the
// kernel writes shares memory with another argument keeps the program's order, since the schedule
// takes parameters for separate memory. Not while k runs.
NKI_API nki_status nki_tool_reorder(nki_kernel *k, uint64_t seed);

// ---- the instruction table

typedef struct nki_isa_param {
    const char *name, *kind, *spaces, *dflt;  // spaces "" when it is no tensor; dflt NULL: required
} nki_isa_param;

typedef struct nki_isa_row {
    const char *name, *group, *cost, *status, *doc;
    const char *engines[3];  // trn1, trn2, trn3: "Vector, GpSimd"; "" when the target lacks it
    size_t param_count;
} nki_isa_row;

NKI_API size_t nki_isa_count(void);
NKI_API nki_status nki_isa_at(size_t i, nki_isa_row *out);
NKI_API nki_status nki_isa_param_at(size_t row, size_t i, nki_isa_param *out);

// ---- diagnostics

typedef struct nki_diag_row {
    const char *name, *meaning, *example, *fix;
    nki_severity severity;
    const char *exception;  // the Python class a kernel may catch it as; "" when it cannot
} nki_diag_row;

NKI_API size_t nki_diag_row_count(void);
NKI_API nki_status nki_diag_row_at(size_t i, nki_diag_row *out);

#endif
