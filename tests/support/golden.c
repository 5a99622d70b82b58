// golden NKI STEM: runs NKI on STEM.nki, in its folder, and compares with the sidecars present.
//   STEM.ast    standard output of `nki check --parse-only --dump=ast`
//   STEM.ir     standard output of `nki check --dump=ir --stop-after=ir`, with the `# try:` values
//   STEM.out    standard output of `nki check -v` when it ends in the line "STEM.nki: ok", else of
//               `nki run -q --print` when the file has a `# try:` line, else of `nki check`
//   STEM.diag   standard error of the same; the exit status is then 1 (0 when it holds no error,
//               unless --check is among the values)
// The oracle's version may stand in a first line "# CPython ..." of .out, which is not compared.
// NKI_GOLDEN_UPDATE=1 in the environment rewrites the sidecars that exist and never creates one.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *slurp(FILE *f)
{
    size_t cap = 65536, n = 0, got;
    char *buf = malloc(cap);
    while (buf && (got = fread(buf + n, 1, cap - n - 1, f)) > 0) {
        n += got;
        if (n + 1 == cap) {
            char *p = realloc(buf, cap *= 2);
            if (!p) {
                free(buf);
            }
            buf = p;
        }
    }
    if (buf) {
        buf[n] = '\0';
    }
    return buf;
}

static char *slurp_path(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? slurp(f) : NULL;
    if (f) {
        fclose(f);
    }
    return text;
}

// The rest of the file's "# try:" line; "" when it has none. `--target` and the like may stand in
// it.
static char *try_line(const char *text)
{
    static const char mark[] = "# try:";
    while (*text == '#') {
        size_t n = strcspn(text, "\n");
        if (strncmp(text, mark, sizeof mark - 1) == 0) {
            return strndup(text + sizeof mark - 1, n - (sizeof mark - 1));
        }
        text += n + (text[n] == '\n');
    }
    return strdup("");
}

// Runs `sh -c` and returns what `redirect` leaves on standard output.
static char *run(const char *cmd, int *status)
{
    FILE *p = popen(cmd, "r");
    char *got = p ? slurp(p) : NULL;
    *status = p ? pclose(p) : -1;
    return got;
}

typedef struct sidecar {
    const char *ext, *command;
    bool diag;
} sidecar;

static const char *oracle_skipped(const char *expect)
{
    const char *nl = strncmp(expect, "# CPython", 9) == 0 ? strchr(expect, '\n') : NULL;
    return nl ? nl + 1 : expect;
}

// 1: differs. 0: agrees. -1: no such sidecar.
static int check(const char *nki, const char *name, const sidecar *s, const char *values)
{
    char path[1024], cmd[8192];
    snprintf(path, sizeof path, "%s.%s", name, s->ext);
    char *expect = slurp_path(path);
    if (!expect) {
        return -1;
    }
    char ok[1024];  // the last line of `nki check -v`
    snprintf(ok, sizeof ok, "%s.nki: ok\n", name);
    size_t len = strlen(expect), ok_len = strlen(ok);
    bool checked = !s->diag && len >= ok_len && strcmp(expect + len - ok_len, ok) == 0;
    snprintf(cmd, sizeof cmd, "'%s' %s %s.nki %s 2>%s", nki, checked ? "check -v" : s->command,
             name, values, s->diag ? "&1 >/dev/null" : "/dev/null");
    bool findings = strstr(values, "--check") && *expect;  // of the run-time checks
    int status, want = s->diag && (findings || strstr(expect, ": error[")) ? 1 : 0;
    char *got = run(cmd, &status);
    bool bad = !got || !WIFEXITED(status) || WEXITSTATUS(status) != want;
    const char *body = oracle_skipped(expect);
    if (bad) {
        fprintf(stderr, "%s: %s\n  status %#x, wanted exit %d\n", path, cmd, (unsigned)status,
                want);
    }
    if (got && strcmp(body, got) != 0) {
        FILE *f = getenv("NKI_GOLDEN_UPDATE") ? fopen(path, "wb") : NULL;
        if (f) {
            fprintf(f, "%.*s%s", (int)(body - expect), expect, got);
            fclose(f);
            fprintf(stderr, "%s: updated\n", path);
        } else {
            fprintf(stderr, "--- %s\n%s+++ actual\n%s", path, body, got);
            bad = true;
        }
    }
    free(expect);
    free(got);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: golden NKI STEM\n");
        return 2;
    }
    char *name = strrchr(argv[2], '/');
    if (name) {
        *name++ = '\0';
        if (chdir(argv[2]) != 0) {
            perror(argv[2]);
            return 1;
        }
    } else {
        name = argv[2];
    }
    char input[1024];
    snprintf(input, sizeof input, "%s.nki", name);
    char *text = slurp_path(input);
    if (!text) {
        perror(input);
        return 1;
    }
    char *values = try_line(text);
    const sidecar all[] = {{"ast", "check --parse-only --dump=ast", false},
                           {"ir", "check --dump=ir --stop-after=ir", false},
                           {"out", *values ? "run -q --print" : "check", false},
                           {"diag", *values ? "run" : "check", true}};
    int found = 0, bad = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *given = strcmp(all[i].ext, "ast") == 0 ? "" : values;
        int r = check(argv[1], name, &all[i], given);
        found += r >= 0;
        bad |= r > 0;
    }
    if (!found) {
        fprintf(stderr, "%s: no sidecar, so nothing is tested\n", input);
        bad = 1;
    }
    free(text);
    free(values);
    return bad;
}
