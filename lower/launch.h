#ifndef LOWER_LAUNCH_H
#define LOWER_LAUNCH_H

#include "lang/diag.h"
#include "lang/ir.h"

// Joins the two programs of a launch, as specialize left them: gives the shared HBM tensors that
// are one memory one number (ir_tensor.shared), and compares what they return. The n-th tensor of a
// name in one program is the n-th of that name in the other; one without a partner is shared by
// nobody. Warns of shared tensors that neither writes. false: errors in ds.
bool launch_link(arena *mem, ir *const programs[2], diags *ds);

#endif
