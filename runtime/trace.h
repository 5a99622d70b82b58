#ifndef RUNTIME_TRACE_H
#define RUNTIME_TRACE_H

#include "runtime/queue.h"

// What happens when, while a trace is on. Times are queue_now_ns().
typedef struct trace trace;

// 0 when no trace is on.
int64_t trace_begin(nki_context *ctx);
// From `start` (0: nothing is recorded) to now, on this thread.
void trace_span(nki_context *ctx, const char *what, const char *detail, int64_t start);
// A command that has run, on its stream; and where its kernel's own timeline is not known yet,
// that.
void trace_command(nki_context *ctx, const command *c, int64_t start, bool failed);
uint32_t trace_thread(nki_context *ctx);   // this thread's number; 0 when no trace is on
void trace_thread_name(const char *name);  // of this thread; a constant
void trace_release(trace *t);

#endif
