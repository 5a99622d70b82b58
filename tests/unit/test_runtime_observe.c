// Counters, log lines and traces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nki/nki.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct lines {
    char text[16384];
    size_t len, count;
} lines;

static void keep(void *ctx, nki_log_level level, const char *line, size_t len)
{
    lines *l = ctx;
    assert_true(level > NKI_LOG_OFF && level <= NKI_LOG_DEBUG);
    assert_true(l->len + len + 1 < sizeof l->text);
    memcpy(l->text + l->len, line, len);
    l->len += len;
    l->text[l->len++] = '\n';
    l->count++;
}

static nki_context *logged(lines *l, nki_log_level level)
{
    nki_context *ctx = NULL;
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    memset(l, 0, sizeof *l);
    o.log = keep;
    o.log_ctx = l;
    o.log_level = level;
    o.blocking = 1;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    return ctx;
}

static void work(nki_context *ctx)
{
    nki_tensor *x = NULL, *y = NULL;
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 4}, &x), NKI_OK);
    assert_int_equal(nki_softmax(ctx, NULL, x, &y), NKI_OK);
    nki_tensor_release(x);
    nki_tensor_release(y);
}

static void log__has_levels_and_json(void **state)
{
    (void)state;
    static lines l;
    unsetenv("NKI_LOG");
    nki_context *ctx = logged(&l, NKI_LOG_OFF);
    work(ctx);
    assert_int_equal(l.count, 0);
    nki_context_release(ctx);

    ctx = logged(&l, NKI_LOG_INFO);
    work(ctx);
    assert_int_equal(l.count, 3);
    assert_non_null(strstr(l.text, "nki info miss: source=<stdlib>/ops/softmax.nki "));
    assert_non_null(strstr(l.text, "nki info compile: source=<stdlib>/ops/softmax.nki "));
    assert_non_null(strstr(l.text, "nki info load: kernel=softmax bytes="));
    nki_context_release(ctx);

    setenv("NKI_LOG", "debug,json", 1);
    ctx = logged(&l, NKI_LOG_OFF);
    work(ctx);
    assert_int_equal(l.count, 4);
    for (char *p = l.text; *p; p = strchr(p, '\n') + 1) {
        assert_memory_equal(p, "{\"t\":", 5);
        assert_int_equal(strchr(p, '\n')[-1], '}');
    }
    assert_non_null(strstr(l.text, "\"event\":\"run\",\"kernel\":\"softmax\""));
    const nki_source bad = {"a \"quoted\" name", "x = = 1\n", 8};
    nki_kernel *k = NULL;
    assert_int_equal(nki_kernel_compile(ctx, &bad, NULL, NULL, 0, NULL, NULL, &k), NKI_ERR_DIAG);
    assert_non_null(strstr(l.text, "\"level\":\"warn\",\"event\":\"compile\",\"source\":"
                                   "\"a \\\"quoted\\\" name\""));
    nki_context_release(ctx);
    unsetenv("NKI_LOG");
}

static void counters__count(void **state)
{
    (void)state;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    work(ctx);
    work(ctx);
    nki_counters c = NKI_COUNTERS_INIT;
    assert_int_equal(nki_context_counters(ctx, &c), NKI_OK);
    assert_int_equal(c.compiles, 1);
    assert_int_equal(c.loads, 1);
    assert_int_equal(c.runs, 2);
    assert_int_equal(c.runs_inline, 2);
    assert_int_equal(c.cache_hits, 1);
    assert_true(c.cache_bytes > 0);
    assert_int_equal(c.tensor_bytes, 0);
    assert_int_equal(c.tensor_bytes_peak, 2 * 48);
    c.size--;
    assert_int_equal(nki_context_counters(ctx, &c), NKI_ERR_ARG);
    nki_context_release(ctx);
}

// Counts what a small JSON reader finds; NULL: it is not JSON.
static const char *skip_json(const char *p, int depth)
{
    p += strspn(p, " \n\t\r");
    if (depth > 20) {
        return NULL;
    }
    if (*p == '{' || *p == '[') {
        char end = *p == '{' ? '}' : ']';
        p++;
        p += strspn(p, " \n");
        while (p && *p != end) {
            if (end == '}') {
                p = skip_json(p, depth + 1);
                if (!p || *p++ != ':') {
                    return NULL;
                }
            }
            p = skip_json(p, depth + 1);
            if (p && *p == ',') {
                p++;
                p += strspn(p, " \n");
            } else if (p && *p != end) {
                return NULL;
            }
        }
        p = p ? p + 1 : NULL;
    } else if (*p == '"') {
        for (p++; *p != '"'; p++) {
            if (!*p) {
                return NULL;
            }
            p += *p == '\\';
        }
        p++;
    } else {
        size_t n = strspn(p, "-+.0123456789eEtrufalsn");
        p = n ? p + n : NULL;
    }
    return p ? p + strspn(p, " \n\t\r") : NULL;
}

static void trace__holds_host_and_device_time(void **state)
{
    (void)state;
    char path[] = "/tmp/nki_trace_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    assert_int_equal(nki_trace_stop(ctx, path), NKI_ERR_ARG);
    assert_int_equal(nki_trace_start(ctx, 0), NKI_OK);
    assert_int_equal(nki_trace_start(ctx, 0), NKI_ERR_ARG);
    nki_stream *s = NULL;
    nki_stream_opts o = NKI_STREAM_OPTS_INIT;
    o.name = "my \"stream\"";
    assert_int_equal(nki_stream_create(ctx, NULL, &o, &s), NKI_OK);
    nki_tensor *x = NULL, *y = NULL;
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 4}, &x), NKI_OK);
    assert_int_equal(nki_softmax(ctx, s, x, &y), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(nki_trace_stop(ctx, path), NKI_OK);
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *end = skip_json(text, 0);
    assert_non_null(end);
    assert_int_equal(*end, '\0');
    assert_non_null(strstr(text, "\"cat\":\"compile\""));
    assert_non_null(strstr(text, "\"cat\":\"stream\",\"name\":\"softmax\""));
    assert_non_null(strstr(text, "\"my \\\"stream\\\"\""));
    assert_non_null(strstr(text, "\"cat\":\"device\",\"name\":\"activation_reduce\""));
    assert_non_null(strstr(text, "\"ph\":\"s\""));
    assert_non_null(strstr(text, "\"ph\":\"f\""));
    unlink(path);
    assert_int_equal(nki_trace_start(ctx, 1), NKI_OK);
    assert_int_equal(nki_trace_stop(ctx, "/no/such/folder/t.json"), NKI_ERR_IO);
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_stream_release(s);
    nki_context_release(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log__has_levels_and_json),
        cmocka_unit_test(counters__count),
        cmocka_unit_test(trace__holds_host_and_device_time),
    };
    return cmocka_run_group_tests_name("runtime.observe", tests, NULL, NULL);
}
