#ifndef DRIVER_COMPILE_H
#define DRIVER_COMPILE_H

#include "driver/diag_store.h"
#include "lang/dtype.h"
#include "lang/target.h"
#include "lower/specialize.h"

#include <nki/context.h>
#include <nki/kernel.h>

// An argument of a compile: a tensor's type and shape, or the text of a Python expression.
typedef struct compile_arg {
    const char *name;  // NULL: the next parameter in order
    const char *expr;  // NULL: a tensor
    dtype type;
    uint32_t ndim;
    uint32_t shape[IR_MAX_DIMS];
} compile_arg;

typedef struct compile_request {
    // What is compiled.
    const char *path;
    const char *text;  // NULL: read from path
    size_t text_len;
    const char *entry;  // NULL: the file's one kernel
    const compile_arg *args;
    size_t arg_count;
    uint32_t grid;
    uint32_t rank;  // among those of nki.collectives
    bool spill;   // SBUF tensors that do not fit go to HBM and back
    bool fp32_store;  // low-precision tensors hold fp32
    bool list;    // order of issue by critical path, not the kernel's
    bool verify;  // proves the order; builds with NKI_VERIFY_SCHEDULE always do
    // Under which settings.
    const target *target;
    const char *const *roots;
    size_t root_count;
    const lower_env *env;
    uint32_t env_count;
    const diag_policy *policy;
    size_t memory_limit_bytes;
    uint64_t step_limit;
    const nki_allocator *allocator;  // of the compile's arena; NULL: the C library
    void (*print)(void *ctx, const char *text, size_t len);
    void *print_ctx;
    int (*resolve)(void *ctx, const char *dotted, nki_module_text *out);
    void *resolve_ctx;
    // What is watched.
    void (*dump)(void *ctx, const char *stage, const char *text, size_t len);
    void *dump_ctx;
    const char *dump_stages, *stop_after;
    // Parsing alone: called with the kernels found. entry and args are then not used.
    void (*found)(void *ctx, const kernel_info *k, uint32_t count);
    void *found_ctx;
} compile_request;

// One file that was read: what run-time errors point into. Both texts malloc'ed in one block.
typedef struct compile_source {
    struct compile_source *next;
    const char *path;  // as stored in the program
    source src;
} compile_source;

enum { COMPILE_CORES_MAX = 2 };

// Everything malloc'ed; compile_result_fini frees it.
typedef struct compile_result {
    uint32_t cores;  // containers: one a core of the grid. 0 when stopped early
    unsigned char *neff[COMPILE_CORES_MAX];
    size_t neff_len[COMPILE_CORES_MAX];
    // arg_names[i]: the parameter that argument i was bound to (NULL: not known).
    char **arg_names;
    size_t arg_count;
    compile_source *sources;
    char *absent;  // paths looked for and not there, one after the other, each with its zero
    size_t absent_bytes;
    nki_times times;
    char why[512];  // a sentence when the status is not NKI_OK
} compile_result;

// What a compile's bytes depend on, files that it imports apart: source text (rq->text is given),
// entry, arguments, grid, settings and the tool's own build. Equal keys, equal bytes.
typedef struct compile_digest {
    uint64_t lo, hi;
} compile_digest;
compile_digest compile_key(const compile_request *rq);

// What a key is made of, to say how two differ. COMPILE_PART(id, in words)
#define COMPILE_PARTS(COMPILE_PART)                                                                \
    COMPILE_PART(TOOL, "the tool's build")                                                         \
    COMPILE_PART(SOURCE, "the source text")                                                        \
    COMPILE_PART(ENTRY, "the kernel's name")                                                       \
    COMPILE_PART(TENSORS, "shapes or types")                                                       \
    COMPILE_PART(VALUES, "compile-time values")                                                    \
    COMPILE_PART(LAUNCH, "grid, schedule or target")                                               \
    COMPILE_PART(SETTINGS, "import roots, environment, warnings or limits")
typedef enum compile_part {
#define COMPILE_PART_ENUM(id, words) PART_##id,
    COMPILE_PARTS(COMPILE_PART_ENUM)
#undef COMPILE_PART_ENUM
        PART_COUNT
} compile_part;
extern const char *const compile_part_words[PART_COUNT];
void compile_parts(const compile_request *rq, uint64_t out[PART_COUNT]);

// Source to container. Never ends the process: out of memory and limits come back as a status.
nki_status compile(const compile_request *rq, nki_diags *ds, compile_result *out);
void compile_result_fini(compile_result *r);

#endif
