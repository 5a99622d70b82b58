#include "cli/cli.h"

#include <nki/tool.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void print_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    fwrite(text, 1, len, stdout);
}

int session_open(session *s, cli_opts *o)
{
    *s = (session){.o = o};
    nki_context_opts c = NKI_CONTEXT_OPTS_INIT;
    const char *from_env = getenv("NEURON_PLATFORM_TARGET_OVERRIDE");
    c.target = o->target ? o->target : from_env && *from_env ? from_env : NULL;
    c.import_roots = o->roots;
    c.import_root_count = o->root_count;
    c.env = o->env;
    c.env_count = o->env_count;
    c.warnings = o->warnings;
    c.warning_count = o->warning_count;
    c.memory_limit_bytes = o->memory_limit_bytes;
    c.step_limit = o->step_limit;
    c.threads = o->threads;
    c.seed = o->seed;
    c.check = o->run_checks;
    c.print = print_text;
    const char *why = NULL;
    nki_status st = nki_context_create(&c, &s->ctx, &why);
    if (st == NKI_ERR_ARG) {
        return usage_error("%s", why);
    }
    if (st != NKI_OK || nki_diags_create(&s->diags) != NKI_OK) {
        session_close(s);
        return other_error("out of memory");
    }
    return EXIT_DONE;
}

void session_close(session *s)
{
    nki_diags_release(s->diags);
    nki_context_release(s->ctx);
    s->diags = NULL;
    s->ctx = NULL;
}

void session_show(session *s)
{
    const char *text;
    if (nki_diags_render(s->diags, s->o->diag_format, s->o->color, &text) == NKI_OK && *text) {
        fflush(stdout);
        fputs(text, stderr);
    }
    nki_diags_clear(s->diags);
}

int session_result(session *s, nki_status st)
{
    session_show(s);
    switch (st) {
    case NKI_OK: return EXIT_DONE;
    case NKI_ERR_DIAG: return EXIT_DIAG;
    case NKI_ERR_ARG: return usage_error("%s", nki_context_error(s->ctx));
    case NKI_ERR_CANCELLED: return EXIT_OTHER;  // by a command of ours, which says why
    case NKI_ERR_NOMEM:
    case NKI_ERR_IO:
    case NKI_ERR_FORMAT:
    case NKI_ERR_LIMIT:
    case NKI_ERR_RUN:
    case NKI_ERR_INTERNAL:
    case NKI_ERR_TIMEOUT:
    case NKI_ERR_HOST: break;
    }
    const char *why = nki_context_error(s->ctx);
    return other_error("%s", *why ? why : nki_status_text(st));
}

static void print_dump(void *ctx, const char *stage, const char *text, size_t len)
{
    const cli_opts *o = ctx;
    if (o->dump && strchr(o->dump, ',')) {
        printf("# %s\n", stage);
    }
    fwrite(text, 1, len, stdout);
}

nki_compile_opts session_compile_opts(session *s)
{
    nki_compile_opts c = NKI_COMPILE_OPTS_INIT;
    c.grid = s->o->grid;
    c.rank = s->o->rank;
    c.dump = s->o->dump ? print_dump : NULL;
    c.dump_ctx = s->o;
    c.dump_stages = s->o->dump;
    c.stop_after = s->o->stop_after;
    c.schedule = s->o->list_schedule ? NKI_SCHEDULE_LIST : NKI_SCHEDULE_PROGRAM;
    c.verify = s->o->verify;
    c.spill = s->o->spill;
    c.fp32_store = s->o->fp32_store;
    c.times = &s->times;
    return c;
}

int target_open(const char *word, target_file *t)
{
    *t = (target_file){0};
    t->path = strdup(word);
    if (!t->path) {
        return other_error("out of memory");
    }
    char *colons = NULL;
    for (char *p = strstr(t->path, "::"); p; p = strstr(p + 2, "::")) {
        colons = p;
    }
    if (colons) {
        *colons = '\0';
        t->kernel = colons + 2;
        if (!*t->kernel || !*t->path) {
            target_close(t);
            return usage_error("'%s' should be FILE or FILE::KERNEL", word);
        }
    }
    if (strcmp(t->path, "-") == 0) {
        const char *why;
        t->text = read_file("-", &t->len, &why);
        if (!t->text) {
            target_close(t);
            return other_error("cannot read standard input: %s", why);
        }
    }
    return EXIT_DONE;
}

void target_close(target_file *t)
{
    free(t->path);
    free(t->text);
    *t = (target_file){0};
}

nki_source target_source(const target_file *t)
{
    return (nki_source){t->text ? "<stdin>" : t->path, t->text, t->len};
}

// Splits at blanks outside quotes and brackets; quotes are kept, since values are expressions.
static int split(char *text, char **words, int cap)
{
    int n = 0, depth = 0;
    char quote = 0;
    for (char *p = text; *p && n < cap;) {
        while (isspace((unsigned char)*p)) {
            p++;
        }
        if (!*p) {
            break;
        }
        words[n++] = p;
        for (; *p && (quote || depth > 0 || !isspace((unsigned char)*p)); p++) {
            if (quote) {
                quote = *p == quote ? 0 : quote;
            } else if (*p == '"' || *p == '\'') {
                quote = *p;
            } else if (strchr("([{", *p)) {
                depth++;
            } else if (strchr(")]}", *p)) {
                depth--;
            }
        }
        if (*p) {
            *p++ = '\0';
        }
    }
    return n;
}

char **try_words(const target_file *t, int *count)
{
    enum { WORDS_MAX = 64 };
    static const char mark[] = "# try:";
    const char *why;
    size_t len = t->len;
    char *text = t->text ? t->text : read_file(t->path, &len, &why);
    char **words = NULL;
    *count = 0;
    // Only the comment lines that the file begins with.
    for (char *p = text; p && *p == '#'; p++) {
        size_t n = strcspn(p, "\n");
        if (strncmp(p, mark, sizeof mark - 1) == 0) {
            words = calloc(WORDS_MAX + 1, sizeof *words);
            char *line = words ? strndup(p + sizeof mark - 1, n - (sizeof mark - 1)) : NULL;
            if (line) {
                words[WORDS_MAX] = line;
                *count = split(line, words, WORDS_MAX);
            }
            break;
        }
        p += n;
        if (!*p) {
            break;
        }
    }
    if (text != t->text) {
        free(text);
    }
    return words;
}

bool is_container(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".neff") == 0;
}

char *read_file(const char *path, size_t *len, const char **why)
{
    bool std = strcmp(path, "-") == 0;
    FILE *f = std ? stdin : fopen(path, "rb");
    char *buf = NULL;
    size_t cap = 0, n = 0, got = 1;
    struct stat sb;
    if (!f) {
        *why = strerror(errno);
        return NULL;
    }
    if (fstat(fileno(f), &sb) == 0 && S_ISDIR(sb.st_mode)) {
        *why = "it is a directory";
        fclose(f);
        return NULL;
    }
    if (S_ISREG(sb.st_mode) && sb.st_size > 0) {
        cap = (size_t)sb.st_size;
        buf = malloc(cap + 1);
    }
    while (got && (buf || !cap)) {
        if (n == cap) {
            cap = cap ? cap + cap / 2 + 4096 : 65536;
            char *p = realloc(buf, cap + 1);
            if (!p) {
                free(buf);
            }
            buf = p;
            if (!buf) {
                break;
            }
        }
        got = fread(buf + n, 1, cap - n, f);
        n += got;
    }
    if (!buf) {
        *why = "out of memory";
    } else if (ferror(f)) {
        *why = strerror(errno);
        free(buf);
        buf = NULL;
    } else {
        buf[n] = '\0';
    }
    if (!std) {
        fclose(f);
    }
    *len = n;
    return buf;
}

void target_from_container(cli_opts *o, const char *path)
{
    enum { HEADER_BYTES = 1024 };
    char head[HEADER_BYTES];
    FILE *f = o->target || !is_container(path) ? NULL : fopen(path, "rb");
    if (f) {
        o->target = nki_tool_neff_target(head, fread(head, 1, sizeof head, f));
        fclose(f);
    }
}

int session_load(session *s, const char *path, nki_kernel **k)
{
    size_t len;
    const char *why;
    char *bytes = read_file(path, &len, &why);
    if (!bytes) {
        return other_error("cannot read '%s': %s", path, why);
    }
    nki_status st = nki_kernel_load(s->ctx, bytes, len, k);
    free(bytes);
    st = st == NKI_OK ? nki_kernel_verify(*k) : st;
    return st == NKI_ERR_FORMAT ? other_error("'%s': %s", path, nki_context_error(s->ctx))
                                : session_result(s, st);
}

// A regular file is written whole or not at all: a temporary beside it, then a rename. A device or
// a pipe is written as it is.
int write_file(const char *path, const void *bytes, size_t len)
{
    char temp[4096];
    struct stat sb;
    bool std = strcmp(path, "-") == 0;
    bool special = stat(path, &sb) == 0 && !S_ISREG(sb.st_mode);
    if ((size_t)snprintf(temp, sizeof temp, special ? "%s" : "%s.part", path) >= sizeof temp) {
        return other_error("the path '%s' is too long", path);
    }
    errno = 0;
    FILE *f = std ? stdout : fopen(temp, "wb");
    bool ok = f && fwrite(bytes, 1, len, f) == len && fflush(f) == 0;
    int e = errno;
    if (f && !std && fclose(f) != 0 && ok) {
        ok = false;
        e = errno;
    }
    if (ok && !std && !special && rename(temp, path) != 0) {
        ok = false;
        e = errno;
    }
    if (ok) {
        return EXIT_DONE;
    }
    if (std) {
        return EXIT_OTHER;  // main says so of standard output, once
    }
    if (f && !special) {
        remove(temp);
    }
    return other_error("cannot write '%s': %s", path, strerror(e));
}

bool make_dirs(const char *path)
{
    char *p = strdup(path);
    if (!p) {
        errno = ENOMEM;
        return false;
    }
    bool ok = true;
    for (char *s = p + 1; ok && *s; s++) {
        if (*s == '/') {
            *s = '\0';
            ok = mkdir(p, 0777) == 0 || errno == EEXIST;
            *s = '/';
        }
    }
    ok = ok && (mkdir(p, 0777) == 0 || errno == EEXIST);
    struct stat sb;
    if (ok && (stat(p, &sb) != 0 || !S_ISDIR(sb.st_mode))) {
        errno = ENOTDIR;
        ok = false;
    }
    free(p);
    return ok;
}
