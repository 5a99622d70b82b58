#ifndef NKI_OBSERVE_H
#define NKI_OBSERVE_H

#include <nki/context.h>

#ifdef __cplusplus
extern "C" {
#endif

// Row: name, meaning. Appended, never reordered.
#define NKI_COUNTER_LIST(X)                                                                        \
    X(compiles, "kernels compiled")                                                                \
    X(compile_failures, "compiles that ended with an error")                                       \
    X(cache_hits, "specialisations found in the cache")                                            \
    X(cache_waits, "specialisations that waited for another's compile")                            \
    X(cache_misses, "specialisations that were compiled")                                          \
    X(cache_evictions, "kernels dropped from the cache")                                           \
    X(cache_bytes, "bytes of kernels in the cache now")                                            \
    X(loads, "containers read and bound")                                                          \
    X(submits, "kernels and host functions submitted")                                             \
    X(runs, "kernels run")                                                                         \
    X(runs_inline, "of those, on the thread that waited")                                          \
    X(host_calls, "host functions run")                                                            \
    X(skipped, "submissions not run because of an earlier failure")                                \
    X(cancelled, "submissions taken back, or ended while they ran")                                \
    X(failures, "runs and host functions that failed")                                             \
    X(packed_copies, "views copied to and from packed memory for a kernel")                        \
    X(tensor_bytes, "bytes of tensors alive now")                                                  \
    X(tensor_bytes_peak, "the most there were")                                                    \
    X(cache_stale, "kernels dropped because a file changed that they import or looked for")

typedef struct nki_counters {
    size_t size;  // sizeof(nki_counters), set by the initialiser
#define NKI_COUNTER_FIELD(name, meaning) uint64_t name;
    NKI_COUNTER_LIST(NKI_COUNTER_FIELD)
#undef NKI_COUNTER_FIELD
} nki_counters;
// clang-format off
#define NKI_COUNTERS_INIT {.size = sizeof(nki_counters)}
// clang-format on

// Errors: NKI_ERR_ARG (a size that this library does not know).
NKI_API nki_status nki_context_counters(const nki_context *ctx, nki_counters *out);

// ---- logging
//
// The environment variable NKI_LOG, read by nki_context_create: off, error, warn, info or debug,
// and
// ",json" for one JSON object a line: {"t": seconds, "level": "info", "event": "compile", ...}.

// ---- tracing

// Records from now on, at most event_limit events (0: 1 million; later ones are counted).
//
// Errors: NKI_ERR_NOMEM, NKI_ERR_ARG (a trace is running).
NKI_API nki_status nki_trace_start(nki_context *ctx, size_t event_limit);
// Ends it and writes the file, for ui.perfetto.dev: threads with their compiles, loads,
// submissions, runs and waits; each stream; arrows from a submission to its run; and the simulated
// time of each run's cores, from its start on, in a process for each device. What the clock cannot
// know without data, and how many events were past the limit, is in "otherData".
//
// Errors: NKI_ERR_IO, NKI_ERR_ARG (no trace is running), NKI_ERR_NOMEM.
NKI_API nki_status nki_trace_stop(nki_context *ctx, const char *path);

#ifdef __cplusplus
}
#endif

#endif
