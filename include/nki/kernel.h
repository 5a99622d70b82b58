#ifndef NKI_KERNEL_H
#define NKI_KERNEL_H

#include <nki/diag.h>
#include <nki/tensor.h>

// A kernel specialised on the shapes and types of its tensors and the values of its other
// arguments, ready to run.
typedef struct nki_kernel nki_kernel;

// Where the source is: a file (path), or len bytes of text under the name `path` (NULL: "<string>").
typedef struct nki_source {
    const char *path;
    const char *text;  // NULL: read from path
    size_t len;
} nki_source;

typedef struct nki_tensor_info {
    const char *name;  // a parameter's name; an output's, "" when the kernel gave none
    nki_dtype dtype;
    size_t ndim;
    size_t shape[NKI_MAX_DIMS];
} nki_tensor_info;

// An argument: exactly one of a tensor, a tensor's type and shape (compiles only), and a Python
// expression that is evaluated in the kernel's module ("2", "nl.bfloat16", "Config(a=1)"). At a
// compile a tensor's type and shape matter, not its contents.
// Arguments without name bind in order and stand before those with one.
typedef struct nki_arg {
    const char *name;
    nki_tensor *tensor;
    const char *expr;
    const nki_tensor_info *spec;  // its name is not read
} nki_arg;

// Wall-clock milliseconds of each stage.
typedef struct nki_times {
    double parse_ms;
    double specialize_ms;  // running the meta-program, checks included
    double compile_ms;     // placing, ordering, writing the container
    double load_ms;        // reading the container back and binding
    double run_ms;
} nki_times;

typedef struct nki_compile_opts {
    size_t size;     // sizeof(nki_compile_opts), set by the initialiser
    uint32_t grid;   // kernel[grid]: 0 (launched without), 1 or 2
    // Called after each stage with its text form: "ast", "ir", "placed", "sched". NULL: none.
    // stop_after: the stage after which the compile ends with NKI_OK and no kernel; NULL: none.
    void (*dump)(void *dump_ctx, const char *stage, const char *text, size_t len);
    void *dump_ctx;
    const char *dump_stages;  // comma list of those wanted; NULL: none
    const char *stop_after;
    nki_times *times;  // filled when not NULL
} nki_compile_opts;
#define NKI_COMPILE_OPTS_INIT {sizeof(nki_compile_opts), 0, NULL, NULL, NULL, NULL, NULL}

// Compiles and loads. entry: the kernel's name, "Class.method", or NULL when the source holds one.
// ds may be NULL; errors and warnings are appended.
//
// Owns:   *out is a reference for the caller; NULL unless NKI_OK (and after stop_after).
// Errors: NKI_ERR_DIAG (see ds), NKI_ERR_IO (the source; imports that cannot be read are
//         diagnostics), NKI_ERR_NOMEM, NKI_ERR_LIMIT, NKI_ERR_ARG.
NKI_API nki_status nki_kernel_compile(nki_context *ctx, const nki_source *src, const char *entry,
                                      const nki_arg *args, size_t arg_count,
                                      const nki_compile_opts *opts, nki_diags *ds,
                                      nki_kernel **out);

// From container bytes, which are copied and verified. Errors: NKI_ERR_FORMAT, NKI_ERR_NOMEM.
NKI_API nki_status nki_kernel_load(nki_context *ctx, const void *neff, size_t len,
                                   nki_kernel **out);
NKI_API nki_kernel *nki_kernel_retain(nki_kernel *k);
NKI_API void nki_kernel_release(nki_kernel *k);

// The container. Borrowed: lives as long as k.
NKI_API const void *nki_kernel_neff(const nki_kernel *k, size_t *len);

NKI_API const char *nki_kernel_name(const nki_kernel *k);
NKI_API size_t nki_kernel_param_count(const nki_kernel *k);  // tensor parameters only
NKI_API size_t nki_kernel_output_count(const nki_kernel *k);
// Errors: NKI_ERR_ARG when i is past the end. Names are borrowed from k.
NKI_API nki_status nki_kernel_param(const nki_kernel *k, size_t i, nki_tensor_info *out);
NKI_API nki_status nki_kernel_output(const nki_kernel *k, size_t i, nki_tensor_info *out);

// Runs the kernel and waits for its end. args are those of the compile (expressions are ignored);
// for a kernel that was loaded, one tensor a parameter. Tensors that the kernel writes in place are
// changed. outputs: room for output_count handles, filled in return order.
//
// Owns:   each outputs[i] is a reference for the caller; all NULL when the call fails.
// Errors: NKI_ERR_ARG (a missing tensor, a shape or type other than compiled for),
//         NKI_ERR_DIAG (a run-time error, in ds with its source place), NKI_ERR_NOMEM.
NKI_API nki_status nki_kernel_call(nki_kernel *k, const nki_arg *args, size_t arg_count,
                                   nki_tensor **outputs, size_t output_count, nki_diags *ds,
                                   nki_times *times);

#endif
