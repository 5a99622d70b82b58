#ifndef DRIVER_DIAG_STORE_H
#define DRIVER_DIAG_STORE_H

#include "lang/diag.h"

#include <nki/diag.h>

// Appends copies of src's diagnostics, with the sources that they point into, to d (NULL: dropped).
// Returns NKI_ERR_NOMEM when that fails.
nki_status diag_store_take(nki_diags *d, const diags *src);

// The same from another store; either may be NULL.
nki_status diag_store_append(nki_diags *d, const nki_diags *from);

// Sets *policy from "NAME", "no-NAME", "error", "error=NAME". false: no such
// warning.
bool diag_store_policy(diag_policy *policy, const char *word);

#endif
