#ifndef DRIVER_READ_SOURCE_H
#define DRIVER_READ_SOURCE_H

#include "base/arena.h"
#include "base/source.h"

#include <nki/status.h>

enum { SOURCE_MAX_BYTES = 64 * 1024 * 1024 };

// Reads a whole kernel file (a pipe too) into mem as out->text; out->name is `shown`.
// Directories, unreadable, oversized and binary files are refused with a sentence in *why (in mem).
// *fd is the file while it is open and -1 otherwise: mem's oom jump may leave it open, and the
// boundary closes it then.
nki_status read_source(arena *mem, const char *path, const char *shown, int *fd, source *out,
                       const char **why);

#endif
