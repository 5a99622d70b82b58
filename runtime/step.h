#ifndef RUNTIME_STEP_H
#define RUNTIME_STEP_H

#include "device/device.h"
#include "runtime/kernel.h"

// The observer that nki_tool_observe() asked for: the state of one run of a kernel.
typedef struct step_run step_run;

// NULL: no memory. *ob is filled in.
step_run *step_run_create(nki_kernel *k, device_observer *ob);
void step_run_free(step_run *r);

#endif
