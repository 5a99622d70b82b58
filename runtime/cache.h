#ifndef RUNTIME_CACHE_H
#define RUNTIME_CACHE_H

#include "runtime/context.h"

// Compiled kernels of a context by compile_key(). Two callers of one key compile once; who waits
// gets the kernel or the first's failure. Past the limit the least recently used that nobody else
// holds goes.
typedef struct cache cache;

cache *cache_create(size_t limit_bytes);  // 0: the default. NULL: no memory
void cache_release(cache *c);

// rq->text is given. *out is a reference for the caller.
nki_status cache_get(nki_context *ctx, const compile_request *rq, nki_diags *ds, nki_times *times,
                     nki_kernel **out);
// Gives up one reference of a kernel that a cache made. Kernels that only the cache has do not hold
// the context.
void cache_give_back(nki_kernel *k);

#endif
