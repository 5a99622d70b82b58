#include "tests/examples/tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

bool tool_open(struct tool *tool, const char *path)
{
    *tool = (struct tool){.path = path};
    const char *base = getenv("TMPDIR");
    (void)snprintf(tool->dir, sizeof tool->dir, "%.200s/nki-test-XXXXXX",
                   base && *base ? base : "/tmp");
    if (!mkdtemp(tool->dir)) {
        return false;
    }
    (void)snprintf(tool->out_dir, sizeof tool->out_dir, "%s/out", tool->dir);
    return mkdir(tool->out_dir, 0700) == 0;
}

// Removes the files of one folder, then the folder. Folders inside it must be gone already.
static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    if (!d) {
        return;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            (void)unlinkat(dirfd(d), e->d_name, 0);
        }
    }
    (void)closedir(d);
    (void)rmdir(path);
}

void tool_close(struct tool *tool)
{
    remove_folder(tool->out_dir);
    remove_folder(tool->dir);
}

void tool_arg(struct tool *tool, const char *format, ...)
{
    if (tool->argc >= TOOL_ARGS_MAX - 2) {
        (void)fprintf(stderr, "tool_arg: too many arguments\n");
        exit(4);
    }
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(tool->argv[tool->argc++], TOOL_ARG_BYTES, format, ap);
    va_end(ap);
}

bool tool_tensor(struct tool *tool, const char *name, const struct tensor *t)
{
    char path[TOOL_ARG_BYTES / 2 + 100];
    (void)snprintf(path, sizeof path, "%s/%s.npy", tool->dir, name);
    tool_arg(tool, "%s=%s@%s", name, t->dtype, path);
    return npy_write(path, t);
}

static _Noreturn void become_tool(struct tool *tool, const char *log_path)
{
    char *argv[TOOL_ARGS_MAX + 1];
    char name[] = "nki";
    argv[0] = name;
    for (size_t i = 0; i < tool->argc; i++) {
        argv[i + 1] = tool->argv[i];
    }
    argv[tool->argc + 1] = NULL;
    int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int null = open("/dev/null", O_RDWR);
    if (log >= 0 && null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(log, 2) >= 0) {
        (void)alarm(TOOL_SECONDS_MAX);  // outlives exec: a run that hangs is killed and reported
        (void)execv(tool->path, argv);
    }
    _exit(127);
}

int tool_run(struct tool *tool)
{
    char log_path[sizeof tool->dir + 8];
    (void)snprintf(log_path, sizeof log_path, "%s/log", tool->dir);
    tool->status = 127;
    pid_t child = fork();
    if (child == 0) {
        become_tool(tool, log_path);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child) {
        tool->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    tool->log[0] = '\0';
    FILE *f = fopen(log_path, "r");
    if (f) {
        size_t n = fread(tool->log, 1, sizeof tool->log - 1, f);
        tool->log[n] = '\0';
        (void)fclose(f);
    }
    return tool->status;
}

bool tool_result(const struct tool *tool, const char *name, struct tensor *t, char *why,
                 size_t why_bytes)
{
    char path[sizeof tool->out_dir + 64];
    (void)snprintf(path, sizeof path, "%s/%.40s.npy", tool->out_dir, name);
    return npy_read(path, t, why, why_bytes);
}

static void shape_text(const struct tensor *t, char *out, size_t bytes)
{
    size_t at = (size_t)snprintf(out, bytes, "[");
    for (size_t i = 0; i < t->rank && at < bytes; i++) {
        at += (size_t)snprintf(out + at, bytes - at, i > 0 ? ",%zu" : "%zu", t->dims[i]);
    }
    if (at < bytes) {
        (void)snprintf(out + at, bytes - at, "]");
    }
}

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

static bool element_close(double got, double want, double allowed)
{
    if (isnan(want) || isnan(got)) {
        return isnan(want) && isnan(got);
    }
    if (isinf(want) || isinf(got)) {
        return isinf(want) && isinf(got) && signbit(want) == signbit(got);
    }
    return fabs(got - want) <= allowed;
}

bool tensor_close(const struct tensor *got, const struct tensor *want, struct tolerance tolerance,
                  char *why, size_t why_bytes)
{
    if (!same_shape(got, want)) {
        char a[80];
        char b[80];
        shape_text(got, a, sizeof a);
        shape_text(want, b, sizeof b);
        (void)snprintf(why, why_bytes, "shape is %s, expected %s", a, b);
        return false;
    }
    size_t bad = 0;
    size_t first = 0;
    double worst = 0.0;
    for (size_t i = 0; i < want->count; i++) {
        double allowed = tolerance.atol + tolerance.rtol * fabs(want->values[i]);
        allowed += tolerance.slack ? tolerance.slack[i] : 0.0;
        if (!element_close(got->values[i], want->values[i], allowed)) {
            first = bad == 0 ? i : first;
            bad++;
            worst = fmax(worst, fabs(got->values[i] - want->values[i]));
        }
    }
    if (bad > 0) {
        (void)snprintf(why, why_bytes,
                       "%zu of %zu elements differ, first at flat index %zu: got %.9g, expected "
                       "%.9g; worst by %.3g",
                       bad, want->count, first, got->values[first], want->values[first], worst);
    }
    return bad == 0;
}
