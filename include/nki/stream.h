#ifndef NKI_STREAM_H
#define NKI_STREAM_H

#include <nki/diag.h>
#include <nki/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- devices

// A simulated device: cores with their memories, and one queue that its streams share. Belongs to
// its context: borrowed, never released.
typedef struct nki_device nki_device;

NKI_API size_t nki_context_device_count(const nki_context *ctx);
// NULL past the end.
NKI_API nki_device *nki_context_device(nki_context *ctx, size_t i);

typedef struct nki_device_info {
    const char *target;  // "trn2"
    size_t index;
    uint32_t core_count;  // that one launch may use
    uint32_t partitions;
    size_t sbuf_bytes, psum_bytes;  // of one core
} nki_device_info;
// Errors: NKI_ERR_ARG.
NKI_API nki_status nki_device_get_info(const nki_device *dev, nki_device_info *out);

#define NKI_FOREVER UINT64_MAX

// Waits for everything submitted to the device before the call, on all its streams. Returns the
// earliest kept error of those streams (by submission) and forgets them all; ds may be NULL.
//
// Errors: as nki_stream_synchronize.
NKI_API nki_status nki_device_synchronize(nki_device *dev, uint64_t timeout_ns, nki_diags *ds);

// ---- streams

// Work that runs in the order of its submission. Between streams nothing is promised but by events;
// in fact work that uses one tensor runs in the order of submission whatever the streams, so that a
// result never depends on time.
//
// A failure is kept, and what the stream still holds is skipped until the failure is returned by
// the next synchronisation. What was to be written by failed or skipped work is marked: work that
// reads it fails with the same error, on any stream, and so does nki_tensor_copy_out().
//
// Any number of threads may use a stream.
typedef struct nki_stream nki_stream;

typedef struct nki_stream_opts {
    size_t size;
    const char *name;  // shown in traces and logs; copied. NULL: "stream N"
    int priority;      // of ready work the highest runs first; equal: by submission
    int blocking;      // not 0: submissions run before they return, with their own error
    // A run that takes longer ends with NKI_ERR_LIMIT, as nki_stream_cancel ends one. 0: the
    // context's.
    uint64_t run_timeout_ns;
} nki_stream_opts;
// clang-format off
#define NKI_STREAM_OPTS_INIT {.size = sizeof(nki_stream_opts)}
// clang-format on

// dev NULL: device 0 of ctx. opts may be NULL.
//
// Errors: NKI_ERR_ARG, NKI_ERR_NOMEM.
NKI_API nki_status nki_stream_create(nki_context *ctx, nki_device *dev, const nki_stream_opts *opts,
                                     nki_stream **out);
// The device's own stream, used where a stream is NULL. Borrowed from the context.
NKI_API nki_stream *nki_device_stream(nki_device *dev);
NKI_API nki_stream *nki_stream_retain(nki_stream *s);
// The last reference does not wait: work goes on to its end.
NKI_API void nki_stream_release(nki_stream *s);

// Waits for what was submitted to s before the call; work that nobody runs yet runs on the calling
// thread. With a timeout it never does, so that the time holds.
//
// Errors: the earliest failure since the last synchronisation, with its sentence in
//         nki_context_error() and its diagnostics appended to ds (may be NULL); NKI_ERR_TIMEOUT
//         (the work goes on, failures stay kept); NKI_ERR_CANCELLED (nki_stream_cancel removed or
//         ended work); NKI_ERR_LIMIT (a run passed run_timeout_ns); NKI_ERR_ARG (called by a host
//         function that this device is running).
NKI_API nki_status nki_stream_synchronize(nki_stream *s, uint64_t timeout_ns, nki_diags *ds);
// *idle: nothing is pending. Never waits; a kept failure stays kept. Errors: NKI_ERR_ARG.
NKI_API nki_status nki_stream_query(nki_stream *s, int *idle);
// Takes back what has not begun, and ends the kernel that runs: between two instructions, with
// NKI_ERR_CANCELLED at the next synchronisation (or from the call that runs it) and the place where
// it was in the sentence; what it wrote counts as not written. How long that takes is one
// instruction: on chip, tens of milliseconds at most (all of SBUF); a DMA, the time to copy its
// bytes; a host function runs to its end, however long that is.
// Events recorded in what is taken back count as reached, with NKI_ERR_CANCELLED. Never waits.
//
// Errors: NKI_ERR_ARG.
NKI_API nki_status nki_stream_cancel(nki_stream *s);

// fn runs in stream order on the thread that runs the device. Not 0 fails the stream with
// NKI_ERR_HOST. fn may submit, but not synchronise with its own device.
//
// Errors: NKI_ERR_ARG, NKI_ERR_NOMEM.
NKI_API nki_status nki_stream_submit_host(nki_stream *s, int (*fn)(void *fn_ctx), void *fn_ctx);

// ---- events

// A place in a stream. May be recorded again; a wait means the record before it.
typedef struct nki_event nki_event;

// Owns: *out is a reference for the caller. Errors: NKI_ERR_ARG, NKI_ERR_NOMEM.
NKI_API nki_status nki_event_create(nki_context *ctx, nki_event **out);
NKI_API nki_event *nki_event_retain(nki_event *e);
NKI_API void nki_event_release(nki_event *e);

// Errors: NKI_ERR_ARG (e and s of two contexts), NKI_ERR_NOMEM. A blocking stream: also its
// failure.
NKI_API nki_status nki_event_record(nki_event *e, nki_stream *s);
// What is submitted to s from now on runs after e's last record is reached. Never recorded: no
// wait. A failure of the recorded stream becomes one of s. Errors: as nki_event_record.
NKI_API nki_status nki_stream_wait(nki_stream *s, nki_event *e);
// Errors: as nki_stream_synchronize; the failure that e was reached with is returned each time.
NKI_API nki_status nki_event_synchronize(nki_event *e, uint64_t timeout_ns, nki_diags *ds);
NKI_API nki_status nki_event_query(nki_event *e, int *reached);
// Wall-clock nanoseconds between two reached events. Errors: NKI_ERR_ARG when one is not reached.
NKI_API nki_status nki_event_elapsed(nki_event *from, nki_event *to, int64_t *ns);

#ifdef __cplusplus
}
#endif

#endif
