#ifndef RUNTIME_CONTROL_H
#define RUNTIME_CONTROL_H

#include "runtime/kernel.h"

// What a run does where control depends on data: the join of the executor, which knows data and no
// time, with the clock, which knows time and no data.
typedef struct control_record control_record;

// Whether control of one of the kernel's programs depends on data.
bool control_varies(const nki_kernel *k);
// Runs the kernel once on args and records it; parameters that it writes are written. Errors: those
// of nki_kernel_call. *out is the caller's.
nki_status control_run(nki_kernel *k, const nki_arg *args, size_t n, nki_diags *ds,
                       control_record **out);
void control_release(control_record *c);  // NULL is allowed
// One for each core.
const control_trace *control_traces(const control_record *c);

// For the run: what shows each instruction to the record.
const device_observer *control_observer(control_record *c);

#endif
