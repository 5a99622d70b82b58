#include "runtime/log.h"

#include "driver/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 2048 };

struct log {
    nki_log_level level;
    bool json;
    void (*sink)(void *ctx, nki_log_level level, const char *line, size_t len);
    void *sink_ctx;
    double start_ms;
    pthread_mutex_t lock;  // one line at a time
};

static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};

static void to_stderr(void *ctx, nki_log_level level, const char *line, size_t len)
{
    (void)ctx;
    (void)level;
    fprintf(stderr, "%.*s\n", (int)len, line);
}

// "info", "debug,json". What is not understood is as if it were not there.
static void from_environment(log *l)
{
    const char *p = getenv("NKI_LOG");
    while (p && *p) {
        size_t n = strcspn(p, ",");
        for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++) {
            if (strlen(level_names[i]) == n && memcmp(p, level_names[i], n) == 0) {
                l->level = (nki_log_level)i;
            }
        }
        l->json = l->json || (n == 4 && memcmp(p, "json", 4) == 0);
        p += n + (p[n] == ',');
    }
}

nki_status log_create(const nki_context_opts *opts, log **out)
{
    log *l = calloc(1, sizeof *l);
    *out = l;
    if (!l) {
        return NKI_ERR_NOMEM;
    }
    l->level = opts->log_level;
    l->sink = opts->log ? opts->log : to_stderr;
    l->sink_ctx = opts->log_ctx;
    l->start_ms = clock_ms();
    pthread_mutex_init(&l->lock, NULL);
    from_environment(l);
    return NKI_OK;
}

void log_release(log *l)
{
    if (l) {
        pthread_mutex_destroy(&l->lock);
        free(l);
    }
}

nki_log_level log_level(const log *l)
{
    return l->level;
}

typedef struct line {
    char at[LINE_BYTES];
    size_t len;
} line;

static void put(line *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(line *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(o->at + o->len, sizeof o->at - o->len, fmt, ap);
    va_end(ap);
    o->len += n > 0 ? (size_t)n : 0;
    o->len = o->len < sizeof o->at ? o->len : sizeof o->at - 1;
}

// Text that leaves room for the end of the line.
static void put_json(line *o, const char *text)
{
    put(o, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p && o->len + 64 < LINE_BYTES;
         p++) {
        if (*p == '"' || *p == '\\') {
            put(o, "\\%c", *p);
        } else if (*p < 32) {
            put(o, "\\u%04x", *p);
        } else {
            put(o, "%c", *p);
        }
    }
    put(o, "\"");
}

static void write_json(line *o, const log *l, nki_log_level level, const char *event,
                       const log_field *f)
{
    put(o, "{\"t\":%.6f,\"level\":\"%s\",\"event\":", (clock_ms() - l->start_ms) / 1e3,
        level_names[level]);
    put_json(o, event);
    for (; f->name && o->len + 256 < LINE_BYTES; f++) {
        put(o, ",");
        put_json(o, f->name);
        put(o, ":");
        if (f->text) {
            put_json(o, f->text);
        } else {
            put(o, "%.10g", f->number);
        }
    }
    put(o, "}");
}

static void write_text(line *o, nki_log_level level, const char *event, const log_field *f)
{
    put(o, "nki %s %s:", level_names[level], event);
    for (; f->name; f++) {
        if (!f->text) {
            put(o, " %s=%.10g", f->name, f->number);
        } else if (strpbrk(f->text, " \"\\\n") || !*f->text) {
            put(o, " %s=", f->name);
            put_json(o, f->text);
        } else {
            put(o, " %s=%s", f->name, f->text);
        }
    }
}

void log_write(log *l, nki_log_level level, const char *event, const log_field *fields)
{
    line o;
    o.len = 0;
    if (l->json) {
        write_json(&o, l, level, event, fields);
    } else {
        write_text(&o, level, event, fields);
    }
    pthread_mutex_lock(&l->lock);
    l->sink(l->sink_ctx, level, o.at, o.len);
    pthread_mutex_unlock(&l->lock);
}
