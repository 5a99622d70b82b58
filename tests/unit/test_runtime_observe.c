// Counters, log lines and traces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nki/nki.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Behind the JSON value at p; NULL: it is none.
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

static int fail_3(void *ctx)
{
    (void)ctx;
    return 3;
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
        *strchr(p, '\n') = '\0';
        const char *end = skip_json(p, 0);
        assert_true(end && *end == '\0');
        p[strlen(p)] = '\n';
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

static void log__says_what_each_level_promises(void **state)
{
    (void)state;
    static const struct {
        nki_log_level level;
        const char *says;
    } steps[] = {
        {NKI_LOG_ERROR, "nki error failure: work=\"host function\" stream=line serial="},
        {NKI_LOG_ERROR, "status=ERR_HOST why=\"a host function on line returned 3\""},
        {NKI_LOG_WARN, "nki warn compile: source=bad.nki entry=\"\" "},
        {NKI_LOG_INFO, "nki info load: kernel=softmax "},
        {NKI_LOG_DEBUG, "nki debug submit: work=softmax stream=line serial="},
        {NKI_LOG_DEBUG, "nki debug run: kernel=softmax stream=line serial="},
    };
    static lines l;
    for (nki_log_level level = NKI_LOG_OFF; level <= NKI_LOG_DEBUG; level++) {
        nki_context *ctx = NULL;
        nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
        memset(&l, 0, sizeof l);
        o.log = keep;
        o.log_ctx = &l;
        o.log_level = level;
        assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
        nki_stream *s = NULL;
        nki_stream_opts so = NKI_STREAM_OPTS_INIT;
        so.name = "line";
        assert_int_equal(nki_stream_create(ctx, NULL, &so, &s), NKI_OK);
        nki_tensor *x = NULL, *y = NULL;
        nki_kernel *k = NULL;
        const nki_source bad = {"bad.nki", "x = (\n", 6};
        assert_int_equal(nki_kernel_compile(ctx, &bad, NULL, NULL, 0, NULL, NULL, &k),
                         NKI_ERR_DIAG);
        assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 4}, &x),
                         NKI_OK);
        assert_int_equal(nki_softmax(ctx, s, x, &y), NKI_OK);
        assert_int_equal(nki_stream_submit_host(s, fail_3, NULL), NKI_OK);
        assert_int_equal(nki_stream_synchronize(s, NKI_FOREVER, NULL), NKI_ERR_HOST);
        nki_tensor_release(x);
        nki_tensor_release(y);
        nki_stream_release(s);
        nki_context_release(ctx);
        assert_int_equal(l.count == 0, level == NKI_LOG_OFF);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            if ((strstr(l.text, steps[i].says) != NULL) != (steps[i].level <= level)) {
                fail_msg("level %d, '%s':\n%s", (int)level, steps[i].says, l.text);
            }
        }
    }
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

// ---- a trace, event by event

enum { EVENTS_MAX = 4000 };

typedef struct row {
    char ph, cat[24], name[64];
    long pid, tid, id;
    double ts, dur;
} row;

// A member's text in an event's line, without quotes; "" where it has none.
static void member(const char *line, const char *key, char *out, size_t cap)
{
    char want[32];
    snprintf(want, sizeof want, "\"%s\":", key);
    const char *at = strstr(line, want);
    at = at ? at + strlen(want) : "";
    size_t n = *at == '"' ? strcspn(at + 1, "\"") : strcspn(at, ",}");
    at += *at == '"';
    n = n < cap ? n : cap - 1;
    memcpy(out, at, n);
    out[n] = '\0';
}

static double number(const char *line, const char *key)
{
    char text[32];
    member(line, key, text, sizeof text);
    return strtod(text, NULL);
}

// The events of the file, one a line, and what stands behind them.
static size_t read_trace(const char *path, row *rows, char *rest, size_t cap)
{
    static char text[1 << 20];
    size_t n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t len = fread(text, 1, sizeof text - 1, f);
    assert_true(len < sizeof text - 1);
    fclose(f);
    text[len] = '\0';
    const char *end = skip_json(text, 0);
    assert_true(end && *end == '\0');
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char ph[4];
        member(line, "ph", ph, sizeof ph);
        if (!*ph) {
            snprintf(rest, cap, "%s", line);
            continue;
        }
        assert_true(n < EVENTS_MAX);
        row *r = &rows[n++];
        *r = (row){.ph = *ph,
                   .pid = (long)number(line, "pid"),
                   .tid = (long)number(line, "tid"),
                   .id = (long)number(line, "id"),
                   .ts = number(line, "ts"),
                   .dur = number(line, "dur")};
        member(line, "cat", r->cat, sizeof r->cat);
        const char *args = strstr(line, "\"args\":");
        member(r->ph == 'M' && args ? args + 7 : line, "name", r->name, sizeof r->name);
    }
    return n;
}

static bool has(const row *rows, size_t n, char ph, const char *cat, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].ph == ph && strcmp(rows[i].cat, cat) == 0 && strcmp(rows[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// Every span lies on a track with a name, spans of a track follow each other or lie inside each
// other, an arrow goes from inside one span to inside another and not back in time.
static void check_events(const row *rows, size_t n)
{
    const double eps = 0.0015;  // of what is printed
    size_t arrows = 0;
    for (size_t i = 0; i < n; i++) {
        const row *e = &rows[i];
        bool named = false, source = false, inside = false;
        if (e->ph == 'M') {
            assert_true(*e->name);
            continue;
        }
        assert_true(e->ph == 'X' || e->ph == 's' || e->ph == 'f');
        assert_true(e->ts >= 0 && e->dur >= 0);
        for (size_t k = 0; k < n; k++) {
            const row *o = &rows[k];
            if (o->pid != e->pid || (o->tid != e->tid && !(e->ph == 'f' && o->ph == 's'))) {
                continue;
            }
            named |= o->ph == 'M';
            if (o->ph == 'X' && e->ph == 'X' && k != i && o->tid == e->tid &&
                strcmp(e->cat, "submit") != 0 && strcmp(o->cat, "submit") != 0) {
                double a0 = e->ts, a1 = e->ts + e->dur, b0 = o->ts, b1 = o->ts + o->dur;
                bool apart = a1 <= b0 + eps || b1 <= a0 + eps;
                bool within =
                    (a0 >= b0 - eps && a1 <= b1 + eps) || (b0 >= a0 - eps && b1 <= a1 + eps);
                if (!apart && !within) {
                    fail_msg("%s '%s' [%f, %f] crosses %s '%s' [%f, %f] on track %ld.%ld", e->cat,
                             e->name, a0, a1, o->cat, o->name, b0, b1, e->pid, e->tid);
                }
            }
            inside |= o->ph == 'X' && o->tid == e->tid && e->ts >= o->ts - eps &&
                      e->ts <= o->ts + o->dur + eps;
            source |= e->ph == 'f' && o->ph == 's' && o->id == e->id && o->ts <= e->ts + eps;
        }
        assert_true(named);
        assert_true(e->ph == 'X' || inside);
        assert_true(e->ph != 'f' || source);
        arrows += e->ph == 'f';
    }
    assert_true(arrows > 0);
}

static const char two_text[] =
    "import nki\n"
    "import nki.isa as nisa\n"
    "import nki.language as nl\n"
    "@nki.jit\n"
    "def halves(x):\n"
    "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    n = x.shape[0] // 2\n"
    "    mine = slice(nl.program_id(0) * n, nl.program_id(0) * n + n)\n"
    "    t = nl.ndarray((n, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=t, src=x[mine])\n"
    "    nisa.reciprocal(dst=t, data=t)\n"
    "    nisa.dma_copy(dst=out[mine], src=t)\n"
    "    return out\n"
    "@nki.jit\n"
    "def counted(x, n):\n"
    "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    t = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=t, src=n)\n"
    "    r = nisa.register_alloc(0)\n"
    "    nisa.register_load(dst=r, src=t)\n"
    "    for i in nl.dynamic_range(r):\n"
    "        nisa.dma_copy(dst=out, src=x)\n"
    "    return out\n";

static void trace__every_kind_of_event(void **state)
{
    (void)state;
    static row rows[EVENTS_MAX];
    char path[] = "/tmp/nki_trace_XXXXXX", rest[512] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    nki_context *ctx = NULL;
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.device_count = 2;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    assert_int_equal(nki_trace_start(ctx, 0), NKI_OK);
    nki_stream *s[2] = {NULL, NULL};
    nki_stream_opts so = NKI_STREAM_OPTS_INIT;
    for (int i = 0; i < 2; i++) {
        so.name = i ? "second" : "first";
        assert_int_equal(nki_stream_create(ctx, nki_context_device(ctx, (size_t)i), &so, &s[i]),
                         NKI_OK);
    }
    nki_tensor *x = NULL, *y = NULL, *n = NULL;
    nki_kernel *two = NULL, *counted = NULL;
    const int32_t times = 3;
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){8, 4}, &x), NKI_OK);
    assert_int_equal(
        nki_tensor_from(ctx, NKI_INT32, 2, (const size_t[]){1, 1}, &times, NKI_INT32, &n), NKI_OK);
    const nki_source src = {"two.nki", two_text, sizeof two_text - 1};
    nki_compile_opts co = NKI_COMPILE_OPTS_INIT;
    co.grid = 2;
    assert_int_equal(nki_kernel_compile(ctx, &src, "halves", NKI_ARGS(NKI_T(x)), &co, NULL, &two),
                     NKI_OK);
    assert_int_equal(nki_kernel_compile(ctx, &src, "counted", NKI_ARGS(NKI_T(x), NKI_T(n)), NULL,
                                        NULL, &counted),
                     NKI_OK);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(nki_kernel_submit(two, s[i % 2], NKI_ARGS(NKI_T(x)), &y, 1), NKI_OK);
        nki_tensor_release(y);
    }
    assert_int_equal(nki_softmax(ctx, s[0], x, &y), NKI_OK);
    nki_tensor_release(y);
    assert_int_equal(nki_kernel_submit(counted, s[1], NKI_ARGS(NKI_T(x), NKI_T(n)), &y, 1), NKI_OK);
    nki_tensor_release(y);
    assert_int_equal(nki_stream_submit_host(s[1], fail_3, NULL), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s[0], NKI_FOREVER, NULL), NKI_OK);
    assert_int_equal(nki_stream_synchronize(s[1], NKI_FOREVER, NULL), NKI_ERR_HOST);
    assert_int_equal(nki_kernel_call(two, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_OK);
    nki_tensor_release(y);
    // Gone before the trace is written: their names stay.
    nki_stream_release(s[0]);
    nki_stream_release(s[1]);
    assert_int_equal(nki_trace_stop(ctx, path), NKI_OK);
    size_t count = read_trace(path, rows, rest, sizeof rest);
    check_events(rows, count);
    static const char *const names[] = {"host",
                                        "first",
                                        "second",
                                        "device 0",
                                        "Vector",
                                        "core 1, Vector",
                                        "device 0, simulated time",
                                        "device 1, simulated time"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!has(rows, count, 'M', "", names[i])) {
            fail_msg("no track is called '%s'", names[i]);
        }
    }
    static const char *const spans[][2] = {
        {"compile", "compile halves"}, {"load", "load softmax"},       {"run", "halves"},
        {"stream", "softmax"},         {"stream", "host function"},    {"submit", "halves"},
        {"device", "reciprocal"},      {"device", "activation_reduce"}};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        if (!has(rows, count, 'X', spans[i][0], spans[i][1])) {
            fail_msg("no %s is called '%s'", spans[i][0], spans[i][1]);
        }
    }
    // Both cores of a launch have their own tracks, both devices theirs (softmax has one too).
    uint32_t seen[2][2] = {{0, 0}, {0, 0}};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].cat, "device") == 0 && strcmp(rows[i].name, "reciprocal") == 0) {
            seen[rows[i].pid - 10][rows[i].tid > 100]++;
        }
    }
    assert_true(seen[0][0] == 4 + 1 && seen[0][1] == 4 && seen[1][0] == 3 && seen[1][1] == 3);
    assert_non_null(strstr(rest, "\"dropped\":0"));
    assert_non_null(strstr(rest, "\"counted\":\"its length depends on data\""));
    // Events past the limit are counted.
    assert_int_equal(nki_trace_start(ctx, 2), NKI_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(nki_kernel_call(two, NKI_ARGS(NKI_T(x)), &y, 1, NULL, NULL), NKI_OK);
        nki_tensor_release(y);
    }
    assert_int_equal(nki_trace_stop(ctx, path), NKI_OK);
    read_trace(path, rows, rest, sizeof rest);
    assert_non_null(strstr(rest, "\"dropped\":3"));
    unlink(path);
    nki_kernel_release(two);
    nki_kernel_release(counted);
    nki_tensor_release(x);
    nki_tensor_release(n);
    nki_context_release(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log__has_levels_and_json),
        cmocka_unit_test(log__says_what_each_level_promises),
        cmocka_unit_test(counters__count),
        cmocka_unit_test(trace__holds_host_and_device_time),
        cmocka_unit_test(trace__every_kind_of_event),
    };
    return cmocka_run_group_tests_name("runtime.observe", tests, NULL, NULL);
}
