#ifndef LOWER_SPECIALIZE_H
#define LOWER_SPECIALIZE_H

#include "base/intern.h"
#include "lang/ast.h"
#include "lang/diag.h"
#include "lang/ir.h"

// A file or built-in module that an import reached. Owned by the loader; equal modules are one
// pointer, however they were named.
typedef struct loaded_module {
    const char *path;       // as shown in messages and stored in the IR (relative to its root); unique
    const char *name;       // dotted name, "nki.language"; the entry file: its stem
    const module_ast *ast;  // NULL: a folder without __init__ (a namespace package)
    bool is_package;
    bool builtin;           // one of stdlib's
} loaded_module;

// How lower finds imported code. driver supplies it: lower never reads files.
typedef struct module_loader {
    void *ctx;
    // `from ..a.b import c` in `from` is load(ctx, from, 2, "a.b"); then, when module a.b has no
    // name c, load(ctx, from, 2, "a.b.c"). dotted may be "" when level > 0. Searches: relative by
    // path; built-in modules; the importing file's folder; the entry file's; each -I; each -I/src.
    // NULL: not found (the import becomes an opaque value), or errors were recorded in ds.
    const loaded_module *(*load)(void *ctx, const loaded_module *from, uint32_t level,
                                 const char *dotted, diags *ds);
} module_loader;

// A value for a kernel parameter: a tensor, or a Python expression evaluated in the kernel's module
// (so that nl.bfloat16 and Config(a=1) mean what the file says; names nl, nisa, nki, np and math are
// known even when the file does not import them).
typedef struct lower_arg {
    const char *name;  // NULL: the next parameter in order
    bool is_tensor;
    dtype type;
    uint32_t ndim;
    uint32_t shape[IR_MAX_DIMS];
    const ast *expr;       // !is_tensor
    const source *expr_src;
} lower_arg;

typedef struct lower_env {  // os.environ as the kernel sees it
    const char *name, *value;
} lower_env;

typedef struct lower_opts {
    const target *target;
    uint32_t grid;  // 0: launched without [n]; else 1 or 2
    uint32_t core;  // program_id
    uint32_t rank;  // nki.collectives.rank_id()
    const module_loader *loader;
    const lower_env *env;
    uint32_t env_n;
    bool fp32_store;      // ir.fp32_store
    uint64_t step_limit;  // evaluated nodes; 0: the default (4e9)
    // Compile-time print(). NULL: dropped.
    void (*print)(void *ctx, const char *text, size_t len);
    void *print_ctx;
    intern *names;  // the table that the modules were parsed with
} lower_opts;

// Runs the kernel's meta-language and returns the instructions that remain, verified for the target.
// kernel: "name", "Class.method", or NULL when the file holds one kernel (a function that nki.jit
// decorates; if there is none, the only function). NULL when ds has errors: kernel_not_found,
// kernel_ambiguous, or anything the kernel did, with its call chain as notes.
// Memory: all in mem, whose oom jump is the caller's.
ir *specialize(arena *mem, const lower_opts *o, const loaded_module *entry, const char *kernel,
               const lower_arg *args, uint32_t nargs, diags *ds);

// A kernel function found in a parsed file, without running anything.
typedef struct kernel_info {
    const char *name;
    loc at;
    uint32_t nparams, nrequired;
    const ast *params;
} kernel_info;
// Functions decorated with nki.jit and its relatives, in order. Returns their number; writes at most cap.
uint32_t kernels_of(const module_ast *m, kernel_info *out, uint32_t cap);

#endif
