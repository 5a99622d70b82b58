#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "lang/diag.h"
#include "lang/program.h"

#include <nki/status.h>

// The data side of a simulated NeuronCore: memories and an executor. It knows no time.

// Memories of one core: SBUF and PSUM as one mapping each with a padded partition stride. Reusable
// by one program after another; not by two threads at once.
typedef struct device_core device_core;
device_core *device_core_create(const target *t);  // NULL: out of memory
void device_core_release(device_core *c);

// A program bound once: operand layouts, dtypes and strides choose each instruction's function and
// its prepared arguments. Immutable after device_bind; shared by any number of runs.
typedef struct device_program device_program;
nki_status device_bind(const program *pr, device_program **out, const char **err);
void device_program_release(device_program *dp);

typedef struct device_run_opts {
    uint32_t threads;  // 0, 1: the caller's; same bits for any number
    uint32_t seed;     // initial state of the random generators
    void (*print)(void *ctx, const char *text, size_t len);  // device_print
    void *print_ctx;
    bool as_written;          // every copy is made, however little it matters
    uint64_t max_loop_trips;  // per dynamic loop entry, 0: 1e9; past it: loop_too_long
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
