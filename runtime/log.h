#ifndef RUNTIME_LOG_H
#define RUNTIME_LOG_H

#include "runtime/context.h"

// Lines for the sink: "nki info compile: kernel=softmax ms=3.1", or one JSON object.

typedef struct log log;

nki_status log_create(const nki_context_opts *opts, log **out);
void log_release(log *l);

static inline bool log_wants(const nki_context *ctx, nki_log_level level);

// One field; the list ends with a NULL name. A number where text is NULL.
typedef struct log_field {
    const char *name;
    const char *text;
    double number;
} log_field;

void log_write(log *l, nki_log_level level, const char *event, const log_field *fields);
nki_log_level log_level(const log *l);

static inline bool log_wants(const nki_context *ctx, nki_log_level level)
{
    return ctx->log && level <= log_level(ctx->log);
}

// LOG(ctx, NKI_LOG_INFO, "compile", {"kernel", name}, {"ms", NULL, ms});
#define LOG(ctx, level, event, ...)                                                                \
    do {                                                                                           \
        if (log_wants((ctx), (level))) {                                                           \
            log_write((ctx)->log, (level), (event),                                                \
                      (const log_field[]){__VA_ARGS__, {NULL, NULL, 0}});                          \
        }                                                                                          \
    } while (0)

#endif
