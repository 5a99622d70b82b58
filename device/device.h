#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "lang/diag.h"
#include "lang/program.h"

#include <nki/status.h>

#include <stdatomic.h>

// The data side of a simulated NeuronCore: memories and an executor. It knows no time.

// Memories of one core: SBUF and PSUM as one mapping each with a padded partition stride. Reusable
// by one program after another; not by two threads at once.
typedef struct device_core device_core;
device_core *device_core_create(const target *t);  // NULL: out of memory
void device_core_release(device_core *c);

// A program bound once: operand layouts, dtypes and strides choose each instruction's function and
// its prepared arguments. Immutable after device_bind; shared by any number of runs.
typedef struct device_program device_program;
// It refers to pr, which must outlive it.
nki_status device_bind(const program *pr, device_program **out, const char **err);
// The same with memory from an allocator; NULL: the C library's.
nki_status device_bind_from(const program *pr, const nki_allocator *from, device_program **out,
                            const char **err);
void device_program_release(device_program *dp);

// What an observer is shown: the instruction that is about to run, or has just run, on one core.
typedef struct device_event {
    const ir *program;
    uint32_t core;        // of the launch
    uint32_t instr;       // in program->instrs
    const int32_t *regs;  // program->registers of them
    uint32_t operands;    // device_operand_at takes 0 .. operands - 1
    struct exec *x;       // these three are device/'s own
    const struct bound *b;
    const struct tile *t;
} device_event;

// Called in the order in which instructions are carried out, with every copy made as it was
// written; the order is the same in every run. A core that waits for the other has its `after`
// when both have met. An instruction that ends the run with an error has `failed` instead of
// `after`; one of whose operands there is none (an index out of range) has no `before` either, and
// the event no operands.
typedef struct device_observer {
    bool (*before)(void *ctx, const device_event *e);  // NULL: not asked. false ends the run:
    bool (*after)(void *ctx, const device_event *e);   // NKI_ERR_CANCELLED, no diagnostic
    void (*failed)(void *ctx, const device_event *e, const char *why);  // why: a sentence, or ""
    void *ctx;
} device_observer;

// An operand of the instruction. Dimension 0 has `rows` indices of `row_elems` elements each, in
// the order of the view's pattern. rows is 0 when an optional operand is absent.
typedef struct device_operand {
    uint32_t param;  // of isa_table[op]; several operands have that of a TENSORS parameter
    uint32_t view;   // in program->views
    bool written;
    dtype dtype;
    uint32_t rows;
    uint64_t row_elems;
} device_operand;
device_operand device_operand_at(const device_event *e, uint32_t operand);
// Where an element lies now: registers, offsets and indices from memory are added. NULL: outside
// the tensor (the instruction skips it or is going to fail). Valid during the call.
const void *device_element(const device_event *e, uint32_t operand, uint32_t row, uint64_t elem);
// Byte `at` of a tensor: on chip of a partition, counted from the tensor's own first; in HBM
// partition is 0. NULL: outside the tensor. Memory that another tensor has taken since reads as it
// is.
const void *device_tensor_byte(const device_event *e, uint32_t tensor, uint32_t partition,
                               uint64_t at);

enum { DEVICE_HOST_OPERANDS = 12 };

// Threads that help those who run programs: threads - 1, but no more threads than processors, made
// when there is first something to do. Any number of runs may share it; while it helps one the others do without. Whatever it is, the
// bits are the same. NULL: out of memory.
typedef struct device_pool device_pool;
device_pool *device_pool_create(uint32_t threads);
void device_pool_release(device_pool *p);

typedef struct device_run_opts {
    device_pool *pool;  // NULL: the caller's thread does all
    uint32_t seed;     // initial state of the random generators
    void (*print)(void *ctx, const char *text, size_t len);  // device_print
    void *print_ctx;
    // host_call, instruction `instr` of the launch's program `core`: its operands in0.., io0.. as
    // packed elements, NULL where absent. false ends the run with NKI_ERR_HOST. NULL: every call
    // does.
    bool (*host)(void *host_ctx, uint32_t core, uint32_t instr,
                 void *const data[DEVICE_HOST_OPERANDS]);
    void *host_ctx;
    bool as_written;                  // every copy is made, however little it matters
    uint64_t max_loop_trips;          // per dynamic loop entry, 0: 1e9; past it: loop_too_long
    const device_observer *observer;  // NULL: none, at no cost
    // Looked at between instructions. Not 0: the run ends with that nki_status. NULL: none.
    const _Atomic int *stop;
    int64_t deadline_ns;   // CLOCK_MONOTONIC; past it the run ends with NKI_ERR_LIMIT. 0: none
    uint32_t *stopped_at;  // receives the place of the instruction that was next. NULL: not asked
    bool check;            // the run-time checks: findings (lang/diag_check.def) are added to ds
} device_run_opts;

// params[i]: host memory of parameter i's tensor (row-major, its dtype's bits), read and written in
// place. outputs[i]: host memory for output i (written whole, from the view that is returned).
// A run-time error (out of bounds access, a loop that does not end) is recorded in ds with the
// instruction's source place, its call chain and the values found: NKI_ERR_DIAG.
nki_status device_run(device_core *core, const device_program *dp, void *const *params,
                      void *const *outputs, const device_run_opts *opts, diags *ds);

// The n programs of a launch (1 or 2, in rank order), each on a core of its own. They share the
// parameters and the HBM tensors with a shared index. Each runs to its next synchronisation point
// in rank order; what they wait for then happens at once. Cores that would wait for ever are a
// diagnostic (sync_mismatch, sendrecv_mismatch). outputs are those of program 0. NKI_ERR_ARG: the
// programs are not those of one launch.
nki_status device_launch(device_core *const *cores, const device_program *const *programs,
                         uint32_t n, void *const *params, void *const *outputs,
                         const device_run_opts *opts, diags *ds);

// Conversion of n elements between dtypes with the machine's rules (round to nearest even, integers
// saturate, NaN to 0); strides in bytes. Used for host-side conversion too.
void device_convert(void *dst, dtype dd, ptrdiff_t dst_stride_bytes, const void *src, dtype sd,
                    ptrdiff_t src_stride_bytes, size_t n);

#endif
