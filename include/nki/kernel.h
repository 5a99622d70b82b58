#ifndef NKI_KERNEL_H
#define NKI_KERNEL_H

#include <nki/diag.h>
#include <nki/stream.h>
#include <nki/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

// A kernel specialised on the shapes and types of its tensors and the values of its other
// arguments, ready to run.
typedef struct nki_kernel nki_kernel;

// Where the source is: a file (path), or len bytes of text under the name `path` (NULL:
// "<string>").
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

typedef enum nki_value_kind {
    NKI_VALUE_NONE,
    NKI_VALUE_BOOL,
    NKI_VALUE_INT,
    NKI_VALUE_FLOAT,
    NKI_VALUE_TEXT,
    NKI_VALUE_TUPLE,
} nki_value_kind;

// A compile-time value.
typedef struct nki_value {
    nki_value_kind kind;
    int64_t i;  // INT; BOOL: 0 or not
    double f;
    const char *text;               // zero-terminated UTF-8
    const struct nki_value *items;  // TUPLE
    size_t count;
} nki_value;

// An argument: exactly one of a tensor, a tensor's type and shape (compiles only), a value, and a
// Python expression that is evaluated in the kernel's module ("2", "nl.bfloat16", "Config(a=1)").
// At a compile a tensor's type and shape matter, not its contents. Arguments without name bind in
// order and stand before those with one.
typedef struct nki_arg {
    const char *name;
    nki_tensor *tensor;
    const char *expr;
    const nki_tensor_info *spec;  // its name is not read
    const nki_value *value;
} nki_arg;

// clang-format off
// Arguments in place: nki_kernel_call(k, NKI_ARGS(NKI_T(x), NKI_I(4)), ...) passes array and count.
#define NKI_T(t) {.tensor = (t)}
#define NKI_I(v) {.value = &(const nki_value){.kind = NKI_VALUE_INT, .i = (v)}}
#define NKI_F(v) {.value = &(const nki_value){.kind = NKI_VALUE_FLOAT, .f = (v)}}
#define NKI_S(v) {.value = &(const nki_value){.kind = NKI_VALUE_TEXT, .text = (v)}}
#define NKI_E(v) {.expr = (v)}
#define NKI_ARGS(...)                                                                              \
    (const nki_arg[]){__VA_ARGS__}, sizeof((const nki_arg[]){__VA_ARGS__}) / sizeof(nki_arg)
// clang-format on

// Wall-clock milliseconds of each stage.
typedef struct nki_times {
    double parse_ms;
    double specialize_ms;  // running the meta-program, checks included
    double compile_ms;     // placing, ordering, writing the container
    double load_ms;        // reading the container back and binding
    double run_ms;
} nki_times;

// Order in which each engine and DMA ring issues its instructions. The result is the same.
typedef enum nki_schedule {
    NKI_SCHEDULE_PROGRAM,  // the kernel's
    NKI_SCHEDULE_LIST,     // by critical path
} nki_schedule;

typedef struct nki_compile_opts {
    size_t size;    // sizeof(nki_compile_opts), set by the initialiser
    uint32_t grid;  // kernel[grid]: 0 (launched without), 1 or 2
    // Called after each stage with its text form: "ast", "ir", "placed", "sched". NULL: none.
    // stop_after: the stage after which the compile ends with NKI_OK and no kernel; NULL: none.
    void (*dump)(void *dump_ctx, const char *stage, const char *text, size_t len);
    void *dump_ctx;
    const char *dump_stages;  // comma list of those wanted; NULL: none
    const char *stop_after;
    nki_times *times;  // filled when not NULL
    nki_schedule schedule;
    // Not 0: proves that the order is sound after it is made (debug builds, and the environment
    // variable NKI_VERIFY=1, always do); a fault is NKI_ERR_INTERNAL with a sentence.
    int verify;
    // Not 0: tensors that do not fit in SBUF are moved to HBM and back, outside register loops,
    // where the compile would end with sbuf_full.
    int spill;
    // Not 0: tensors of types below fp32 (tfloat32, bfloat16, float16, float8) hold fp32 inside the
    // device, at unchanged addresses, sizes and views; arguments and results are converted at its
    // borders. Reinterpreting the bits of such a tensor is an error, bit_cast_fp32.
    int fp32_store;
    // The rank of nki.collectives that the program is for. A kernel that calls a collective of
    // several ranks compiles; calling it is NKI_ERR_ARG, since nothing connects devices.
    uint32_t rank;
} nki_compile_opts;
// clang-format off
#define NKI_COMPILE_OPTS_INIT {.size = sizeof(nki_compile_opts)}
// clang-format on

// Compiles and loads. entry: the kernel's name, "Class.method", or NULL when the source holds one.
// ds may be NULL; errors and warnings are appended.
//
// Owns:   *out is a reference for the caller; NULL unless NKI_OK (and after stop_after).
// Errors: NKI_ERR_DIAG (see ds; also past step_limit), NKI_ERR_IO (the source; imports that cannot
// be
//         read are diagnostics), NKI_ERR_LIMIT (memory_limit_bytes), NKI_ERR_NOMEM, NKI_ERR_ARG.
NKI_API nki_status nki_kernel_compile(nki_context *ctx, const nki_source *src, const char *entry,
                                      const nki_arg *args, size_t arg_count,
                                      const nki_compile_opts *opts, nki_diags *ds,
                                      nki_kernel **out);

// From container bytes, which are copied. Lengths, ranges, checksums and every instruction are
// checked: a file made of anything gives a status or a kernel that stays inside its memories. The
// instructions run in the order they are written in; that the queues and semaphores beside them
// allow no other result is proven when something relies on it (nki_kernel_verify, a profile), or
// here where the environment has NKI_VERIFY=1.
//
// Errors: NKI_ERR_FORMAT, NKI_ERR_ARG (another target than the context's), NKI_ERR_NOMEM.
NKI_API nki_status nki_kernel_load(nki_context *ctx, const void *neff, size_t len,
                                   nki_kernel **out);
// From a file. Errors: also NKI_ERR_IO.
NKI_API nki_status nki_kernel_load_file(nki_context *ctx, const char *path, nki_kernel **out);
// Proves that the kernel's queues and semaphores order its instructions. Nothing to do for a kernel
// that was compiled here.
//
// Errors: NKI_ERR_FORMAT with what is not ordered, NKI_ERR_NOMEM, NKI_ERR_ARG.
NKI_API nki_status nki_kernel_verify(nki_kernel *k);
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

// Runs the kernel on device 0 and waits for its end; when the device is idle, on the calling
// thread. args are those of the compile (values and expressions are ignored); for a kernel that was
// loaded, one tensor a parameter. Tensors that the kernel writes in place are changed. outputs:
// room for output_count handles, filled in return order.
//
// Owns:    each outputs[i] is a reference for the caller; all NULL when the call fails.
// Threads: any number may call one kernel.
// Errors:  NKI_ERR_ARG (a missing tensor, a shape or type other than compiled for),
//          NKI_ERR_DIAG (a run-time error, in ds with its source place), NKI_ERR_NOMEM; those that
//          a tensor's contents already had.
NKI_API nki_status nki_kernel_call(nki_kernel *k, const nki_arg *args, size_t arg_count,
                                   nki_tensor **outputs, size_t output_count, nki_diags *ds,
                                   nki_times *times);

// The same without waiting: the outputs can be passed on at once, to be read when s (NULL: that of
// device 0) is synchronised. What the run needs is kept alive.
//
// Errors: NKI_ERR_ARG, NKI_ERR_NOMEM; failures of the run come at the synchronisation. A blocking
//         stream or context: as nki_kernel_call.
NKI_API nki_status nki_kernel_submit(nki_kernel *k, nki_stream *s, const nki_arg *args,
                                     size_t arg_count, nki_tensor **outputs, size_t output_count);
// Into tensors that exist, of the outputs' types and shapes, none with the memory of another
// argument. Errors: as nki_kernel_submit.
NKI_API nki_status nki_kernel_submit_into(nki_kernel *k, nki_stream *s, const nki_arg *args,
                                          size_t arg_count, nki_tensor *const *outputs,
                                          size_t output_count);

#ifdef __cplusplus
}
#endif

#endif
