#ifndef NKI_TOOL_H
#define NKI_TOOL_H

#include <nki/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    NKI_INSPECT_SPILLS,      // a line for each tensor that was moved to HBM and back; empty: none was
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

// ---- looking inside a run
//
// Cores, queues, instructions, tensors and registers are numbered from 0, instructions and tensors
// as `nki inspect` shows them. Texts that are not in the caller's memory live as long as the
// kernel.

enum { NKI_NAME_MAX = 64 };
#define NKI_NOWHERE ((size_t)-1)

// A place in the chain that led to an instruction or a tensor.
typedef struct nki_frame {
    const char *file;  // "": not known
    size_t line, col;
    const char *function;  // in whose body it lies
    char values[160];      // loop and parameter values there, "i = 3, j = 0"; "": none
    uint64_t context;      // equal in the same call and the same iteration
} nki_frame;

NKI_API size_t nki_tool_core_count(const nki_kernel *k);
NKI_API size_t nki_tool_instr_count(const nki_kernel *k, uint32_t core);
// Frame 0 is the instruction's own place, the next ones the calls around it.
// Errors: NKI_ERR_ARG beyond the last.
NKI_API nki_status nki_tool_instr_frame(const nki_kernel *k, uint32_t core, size_t instr,
                                        size_t depth, nki_frame *out);
// The instruction with its operands, tensors by name where they have one; cut at cap bytes.
NKI_API nki_status nki_tool_instr_text(const nki_kernel *k, uint32_t core, size_t instr, char *buf,
                                       size_t cap);
NKI_API const char *nki_tool_instr_name(const nki_kernel *k, uint32_t core, size_t instr);

// A register loop around an instruction; depth 0 is the innermost.
// Errors: NKI_ERR_ARG beyond the last.
typedef struct nki_loop {
    size_t begin, end;  // its first and last instruction: loop_for or loop_while, loop_end
    size_t counter;     // register; NKI_NOWHERE: a while loop has none
} nki_loop;
NKI_API nki_status nki_tool_instr_loop(const nki_kernel *k, uint32_t core, size_t instr,
                                       size_t depth, nki_loop *out);

// The variable that a register was made for, as the source has it: n of `n = register_alloc(0)` or
// of `register_load(dst=n, ...)`, i of `for i in dynamic_range(...)`. "": not known. Cut at cap
// bytes. Errors: NKI_ERR_ARG: no instruction writes it.
NKI_API nki_status nki_tool_register_name(const nki_kernel *k, uint32_t core, size_t reg, char *buf,
                                          size_t cap);

// Tensor i written by an instruction, as far as the instruction alone says; NKI_NOWHERE beyond the
// last.
NKI_API size_t nki_tool_instr_writes(const nki_kernel *k, uint32_t core, size_t instr, size_t i);

typedef struct nki_tensor_row {
    char name[NKI_NAME_MAX];  // parameter, the kernel's own, or the variable it was assigned to; ""
    const char *buffer;       // "sbuf", "psum", "hbm", "shared_hbm"
    nki_dtype dtype;
    size_t ndim, shape[NKI_MAX_DIMS];
    size_t output;  // which result of the kernel it is; NKI_NOWHERE: none
} nki_tensor_row;

NKI_API size_t nki_tool_tensor_count(const nki_kernel *k, uint32_t core);
NKI_API nki_status nki_tool_tensor_at(const nki_kernel *k, uint32_t core, size_t tensor,
                                      nki_tensor_row *out);
// What tells it from the others: "out", "tile%12" when several have the name, "%12"; cut at cap
// bytes.
NKI_API nki_status nki_tool_tensor_label(const nki_kernel *k, uint32_t core, size_t tensor,
                                         char *buf, size_t cap);
// As nki_tool_instr_frame: where it was made. Parameters have no place.
NKI_API nki_status nki_tool_tensor_frame(const nki_kernel *k, uint32_t core, size_t tensor,
                                         size_t depth, nki_frame *out);
// Whether it is called so: by its name, a variable of a caller that it was returned to, its label,
// "out0", "%12".
NKI_API int nki_tool_tensor_is(const nki_kernel *k, uint32_t core, size_t tensor, const char *name);

// Source files. text NULL: the container carries none. Errors: NKI_ERR_ARG beyond the last.
NKI_API nki_status nki_tool_source(const nki_kernel *k, size_t i, const char **name,
                                   const char **text, size_t *len);

// Queues of engines and DMA rings, those without instructions included. Errors: NKI_ERR_ARG.
NKI_API nki_status nki_tool_queue(const nki_kernel *k, uint32_t core, size_t queue,
                                  const char **name, size_t *slots);
// waits: the queues that it waits for before it issues, "DMA.load, Vector"; "": none.
NKI_API nki_status nki_tool_queue_slot(const nki_kernel *k, uint32_t core, size_t queue,
                                       size_t slot, size_t *instr, char *waits, size_t cap);

// A moment of a run: before or after an instruction. Lives during the call of the function.
typedef struct nki_step nki_step;
typedef int (*nki_step_fn)(void *fn_ctx, nki_step *s);  // not 0 ends the run: NKI_ERR_CANCELLED

// From now on each run of k calls before and after around each instruction, in the order in which
// they are carried out, on the thread that runs the device; failed instead of after for the one
// that ends the run with an error, when memory and registers are as it found them (what it returns
// is not looked at). Each may be NULL. Copies are made as they are written. The functions must not
// use k to run, nor submit work. Not while k runs.
NKI_API nki_status nki_tool_observe(nki_kernel *k, nki_step_fn before, nki_step_fn after,
                                    nki_step_fn failed, void *fn_ctx);
// The sentence of the error in `failed`, "" when it has none; elsewhere NULL.
NKI_API const char *nki_step_failure(const nki_step *s);

NKI_API uint32_t nki_step_core(const nki_step *s);
// What the core is at: the instruction of this step, or for another core the one that it waits in.
// NKI_NOWHERE: it has not begun, or has ended.
NKI_API size_t nki_step_instr(const nki_step *s, uint32_t core);
// How often the register loop that begins at `begin` has come round, from 1; 0: not inside.
NKI_API uint64_t nki_step_trip(const nki_step *s, uint32_t core, size_t begin);
NKI_API size_t nki_step_register_count(const nki_step *s, uint32_t core);
// Errors: NKI_ERR_ARG: there is none, or the core has not begun.
NKI_API nki_status nki_step_register(const nki_step *s, uint32_t core, size_t reg, int32_t *out);

// Indices lo, lo + step, ..., count of them.
typedef struct nki_range {
    size_t lo, count, step;
} nki_range;

// Elements of a tensor as they are now; ranges: one a dimension. Memory that another tensor has
// taken since is read as it is.
//
// Owns:   *out is a reference for the caller.
// Errors: NKI_ERR_ARG (out of range, a core that has not begun), NKI_ERR_NOMEM.
NKI_API nki_status nki_step_read(const nki_step *s, uint32_t core, size_t tensor,
                                 const nki_range *ranges, nki_tensor **out);

// An operand of the step's instruction.
typedef struct nki_step_operand {
    const char *param;  // "dst"
    size_t tensor;
    int written;
    nki_dtype dtype;
    size_t ndim, shape[NKI_MAX_DIMS];  // as it is seen
} nki_step_operand;

// Errors: NKI_ERR_ARG beyond the last; tensor is NKI_NOWHERE for one that is absent.
NKI_API nki_status nki_step_operand_at(const nki_step *s, size_t i, nki_step_operand *out);
// Where it lies in its tensor now, a range a dimension of that. Errors: NKI_ERR_ARG also when it is
// no such box, or of another type than the tensor.
NKI_API nki_status nki_step_operand_ranges(const nki_step *s, size_t i, nki_range *ranges);
// Its elements. Those that the instruction skips are 0. Owns and errors as nki_step_read.
NKI_API nki_status nki_step_operand_read(const nki_step *s, size_t i, nki_tensor **out);

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

#ifdef __cplusplus
}
#endif

#endif
