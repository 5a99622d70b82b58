// Runs the operation tests through the `nki` tool: one small kernel and one expectation a case.
//
//   ops_test NKI CASES_DIR [only-values] [PATTERN...]
//
// PATTERN is a shell pattern of case names; without one all cases run. Each .nki must have its
// .expect and the other way round. Unless only-values is given, each case's `# try:` line is run
// too.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ops/expect.h"

enum { CASES_MAX = 2048, NAME_MAX_BYTES = 64 };

static const char *nki_path;
static const char *cases_dir;
static bool with_try_lines = true;
static char names[CASES_MAX][NAME_MAX_BYTES];
static struct CMUnitTest tests[CASES_MAX];

// Frees what the test holds and fails it with the reason and the tool's words.
static _Noreturn void give_up(struct tool *tool, struct expect *e, const char *what)
{
    char text[TOOL_LOG_BYTES + 1024];
    (void)snprintf(text, sizeof text, "%s\n%s", what, tool->log);
    expect_free(e);
    tool_close(tool);
    fail_msg("%s", text);
    abort();
}

static void add_arguments(struct tool *tool, struct expect *e, const char *name)
{
    tool_arg(tool, "run");
    tool_arg(tool, "%s/%s.nki::kernel", cases_dir, name);
    for (size_t i = 0; i < e->arg_count; i++) {
        struct expect_item *a = &e->args[i];
        if (a->literal[0]) {
            tool_arg(tool, "%s=%s", a->name, a->literal);
        } else if (!tool_tensor(tool, a->name, &a->tensor)) {
            give_up(tool, e, "an argument cannot be written");
        }
    }
    if (e->target[0]) {
        tool_arg(tool, "--target");
        tool_arg(tool, "%s", e->target);
    }
    if (e->grid[0]) {
        tool_arg(tool, "--grid");
        tool_arg(tool, "%s", e->grid);
    }
    tool_arg(tool, "--out");
    tool_arg(tool, "%s", tool->out_dir);
}

// The .npy type of a result: types without one come as float32.
static bool file_type_fits(const char *file_dtype, const char *dtype)
{
    bool in_float32 = strcmp(dtype, "bfloat16") == 0 || strncmp(dtype, "float8", 6) == 0;
    return strcmp(file_dtype, in_float32 ? "float32" : dtype) == 0;
}

static bool result_fits(struct tool *tool, const struct expect_item *want, char *why,
                        size_t why_bytes)
{
    char reason[512] = "";
    struct tensor got;
    bool ok = tool_result(tool, want->name, &got, reason, sizeof reason);
    if (ok && !file_type_fits(got.dtype, want->tensor.dtype)) {
        (void)snprintf(reason, sizeof reason, "its type is %s, expected %s", got.dtype,
                       want->tensor.dtype);
        ok = false;
    }
    ok = ok && tensor_close(&got, &want->tensor, want->tolerance, reason, sizeof reason);
    (void)snprintf(why, why_bytes, "%s (%s): %s", want->name, want->tensor.dtype, reason);
    tensor_free(&got);
    return ok;
}

static void run_try_line(struct tool *tool, struct expect *e, const char *name)
{
    tool->argc = 0;
    tool_arg(tool, "run");
    tool_arg(tool, "%s/%s.nki", cases_dir, name);
    if (e->target[0]) {
        tool_arg(tool, "--target");
        tool_arg(tool, "%s", e->target);
    }
    if (e->grid[0]) {
        tool_arg(tool, "--grid");
        tool_arg(tool, "%s", e->grid);
    }
    if (tool_run(tool) != 0) {
        give_up(tool, e, "the try line does not run");
    }
}

static void operation__gives(void **state)
{
    const char *name = *state;
    static struct expect e;
    struct tool tool;
    char why[1024] = "";
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s.nki", cases_dir, name);
    assert_true(tool_open(&tool, nki_path));
    if (access(path, R_OK) != 0) {
        give_up(&tool, &(struct expect){.arg_count = 0}, "the expectation has no kernel");
    }
    (void)snprintf(path, sizeof path, "%s/%s.expect", cases_dir, name);
    if (!expect_read(path, &e, why, sizeof why)) {
        give_up(&tool, &e, why);
    }
    add_arguments(&tool, &e, name);
    if (tool_run(&tool) != 0) {
        give_up(&tool, &e, "the run failed");
    }
    for (size_t i = 0; i < e.out_count; i++) {
        if (!result_fits(&tool, &e.outs[i], why, sizeof why)) {
            give_up(&tool, &e, why);
        }
    }
    if (with_try_lines) {
        run_try_line(&tool, &e, name);
    }
    expect_free(&e);
    tool_close(&tool);
}

static bool wanted(const char *name, char **patterns, int count)
{
    for (int i = 0; i < count; i++) {
        if (fnmatch(patterns[i], name, 0) == 0) {
            return true;
        }
    }
    return count == 0;
}

static int by_name(const void *a, const void *b)
{
    const char *x = a;
    const char *y = b;
    return strcmp(x, y);
}

// Collects the stems of all .nki and .expect files, each once, sorted.
static size_t collect(char **patterns, int pattern_count)
{
    size_t n = 0;
    DIR *d = opendir(cases_dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e && n < CASES_MAX; e = readdir(d)) {
        const char *dot = strrchr(e->d_name, '.');
        size_t stem = dot ? (size_t)(dot - e->d_name) : 0;
        bool ours = dot && (strcmp(dot, ".nki") == 0 || strcmp(dot, ".expect") == 0);
        if (!ours || stem == 0 || stem >= NAME_MAX_BYTES) {
            continue;
        }
        memcpy(names[n], e->d_name, stem);
        names[n][stem] = '\0';
        n += wanted(names[n], patterns, pattern_count) ? 1 : 0;
    }
    if (d) {
        (void)closedir(d);
    }
    qsort(names, n, sizeof names[0], by_name);
    size_t unique = 0;
    for (size_t i = 0; i < n; i++) {
        if (unique == 0 || strcmp(names[unique - 1], names[i]) != 0) {
            memmove(names[unique++], names[i], sizeof names[0]);
        }
    }
    return unique;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: ops_test NKI CASES_DIR [only-values] [PATTERN...]\n");
        return 2;
    }
    nki_path = argv[1];
    cases_dir = argv[2];
    int first = 3;
    if (argc > 3 && strcmp(argv[3], "only-values") == 0) {
        with_try_lines = false;
        first = 4;
    }
    size_t n = collect(argv + first, argc - first);
    if (n == 0) {
        (void)fprintf(stderr, "ops_test: no case in %s\n", cases_dir);
        return 2;
    }
    for (size_t i = 0; i < n; i++) {
        tests[i] = (struct CMUnitTest){names[i], operation__gives, NULL, NULL, names[i]};
    }
    return _cmocka_run_group_tests("ops", tests, n, NULL, NULL) == 0 ? 0 : 1;
}
