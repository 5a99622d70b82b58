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

// Parses only. entries (room for cap) receives the kernels found, in order, and *count their number.
// dump: the ast's text form, as in nki_compile_opts; NULL: none. Names live as long as ctx is not
// used for another parse.
NKI_API nki_status nki_tool_parse(nki_context *ctx, const nki_source *src,
                                  void (*dump)(void *dump_ctx, const char *stage, const char *text,
                                               size_t len),
                                  void *dump_ctx, nki_diags *ds, nki_entry *entries, size_t cap,
                                  size_t *count);

// Which parameter argument i of the compile was bound to; NULL when that is not known.
NKI_API const char *nki_tool_arg_name(const nki_kernel *k, size_t i);
// Whether the kernel has an instruction that writes into tensor parameter i.
NKI_API int nki_tool_param_written(const nki_kernel *k, size_t i);

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
