#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int usage_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("nki: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return EXIT_USAGE;
}

int other_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("nki: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return EXIT_OTHER;
}

// Appends to a malloc'ed list.
static bool grow(void **list, size_t count, size_t size)
{
    void *p = realloc(*list, (count + 1) * size);
    if (p) {
        *list = p;
    }
    return p != NULL;
}

static int no_memory(void)
{
    return other_error("out of memory");
}

static int number(const char *name, const char *text, uint64_t lo, uint64_t hi, uint64_t *out)
{
    char *end;
    errno = 0;
    uint64_t v = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || v < lo || v > hi) {
        return usage_error("%s wants a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'",
                           name, lo, hi, text);
    }
    *out = v;
    return EXIT_DONE;
}

static int number32(const char *name, const char *text, uint32_t lo, uint32_t hi, uint32_t *out)
{
    uint64_t v = 0;
    int st = number(name, text, lo, hi, &v);
    if (st == EXIT_DONE) {
        *out = (uint32_t)v;
    }
    return st;
}

static int tolerance(const char *name, const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0)) {
        return usage_error("%s wants a number that is not negative, not '%s'", name, text);
    }
    *out = v;
    return EXIT_DONE;
}

// Bytes with an optional K, M or G.
static int size_of(const char *name, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    uint64_t v = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (errno || end == text || *text == '-' || end[shift ? 1 : 0] || v > UINT64_MAX >> 31) {
        return usage_error("%s wants bytes, or a number with K, M or G, not '%s'", name, text);
    }
    *out = v << shift;
    return EXIT_DONE;
}

static int pair(const char *name, char *text, const char *want, const char **left,
                const char **right)
{
    char *eq = strchr(text, '=');
    if (!eq || eq == text) {
        return usage_error("%s wants %s, not '%s'", name, want, text);
    }
    char *copy = strdup(text);
    if (!copy) {
        return no_memory();
    }
    copy[eq - text] = '\0';
    *left = copy;
    *right = copy + (eq - text) + 1;
    return EXIT_DONE;
}

static int stages(const char *name, const char *list)
{
    static const char *const known[] = {"ast", "ir", "placed", "sched"};
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        bool ok = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            ok = ok || (strlen(known[i]) == n && memcmp(p, known[i], n) == 0);
        }
        if (!ok) {
            return usage_error(
                "%s: there is no stage '%.*s'; the stages are ast, ir, placed, sched", name, (int)n,
                p);
        }
        p += n + (p[n] == ',');
    }
    return *list ? EXIT_DONE : usage_error("%s wants a stage: ast, ir, placed, sched", name);
}

static int choice(const char *name, const char *text, const char *const *words, size_t n, int *out)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = (int)i;
            return EXIT_DONE;
        }
    }
    fprintf(stderr, "nki: %s takes", name);
    for (size_t i = 0; i < n; i++) {
        fprintf(stderr, "%s %s", i ? "," : "", words[i]);
    }
    fprintf(stderr, "; not '%s'\n", text);
    return EXIT_USAGE;
}

static int set_color(const char *text, cli_opts *o)
{
    static const char *const words[] = {"auto", "always", "never"};
    int c;
    int st = choice("--color", text, words, 3, &c);
    if (st == EXIT_DONE) {
        const char *off = getenv("NO_COLOR");
        o->color = c == 1 || (c == 0 && isatty(STDERR_FILENO) && !(off && *off));
    }
    return st;
}

static int set_diag_format(const char *text, cli_opts *o)
{
    static const char *const words[] = {"text", "short", "json"};
    int c;
    int st = choice("--diag-format", text, words, 3, &c);
    if (st == EXIT_DONE) {
        o->diag_format = (nki_diag_format)c;
    }
    return st;
}

static int set_schedule(const char *text, cli_opts *o)
{
    static const char *const words[] = {"program", "list"};
    int c;
    int st = choice("--schedule", text, words, 2, &c);
    if (st == EXIT_DONE) {
        o->list_schedule = c == 1;
    }
    return st;
}

// --memory, --memory=text, --memory=svg
static int set_memory(const char *text, cli_opts *o)
{
    static const char *const words[] = {"text", "svg"};
    int c = 0;
    int st = text ? choice("--memory", text, words, 2, &c) : EXIT_DONE;
    o->memory_map = c == 1 ? MEMORY_SVG : MEMORY_TEXT;
    return st;
}

static int add_word(const char ***list, size_t *count, const char *word)
{
    void *p = *list;
    if (!grow(&p, *count, sizeof **list)) {
        return no_memory();
    }
    *list = p;
    (*list)[(*count)++] = word;
    return EXIT_DONE;
}

static int add_env(char *text, cli_opts *o)
{
    void *p = o->env;
    nki_env e;
    int st = pair("--env", text, "NAME=VALUE", &e.name, &e.value);
    if (st != EXIT_DONE) {
        return st;
    }
    if (!grow(&p, o->env_count, sizeof *o->env)) {
        return no_memory();
    }
    o->env = p;
    o->env[o->env_count++] = e;
    return EXIT_DONE;
}

static int add_named(const char *option, char *text, const char *want, named_text **list,
                     size_t *count)
{
    void *p = *list;
    named_text e;
    int st = pair(option, text, want, &e.name, &e.value);
    if (st != EXIT_DONE) {
        return st;
    }
    if (!grow(&p, *count, sizeof **list)) {
        return no_memory();
    }
    *list = p;
    (*list)[(*count)++] = e;
    return EXIT_DONE;
}

static int add_expect(char *text, cli_opts *o)
{
    return add_named("--expect", text, "NAME=FILE.npy", &o->expect, &o->expect_count);
}

typedef enum option_id {
    OPT_TARGET,
    OPT_GRID,
    OPT_INCLUDE,
    OPT_ENV,
    OPT_DUMP,
    OPT_STOP_AFTER,
    OPT_DIAG_FORMAT,
    OPT_COLOR,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_PARSE_ONLY,
    OPT_OUT,
    OPT_EXPECT,
    OPT_RTOL,
    OPT_ATOL,
    OPT_CHECK,
    OPT_TIME,
    OPT_REPEAT,
    OPT_WARMUP,
    OPT_THREADS,
    OPT_PRINT,
    OPT_RAW,
    OPT_SEED,
    OPT_OUTPUT,
    OPT_MEMORY_LIMIT,
    OPT_STEP_LIMIT,
    OPT_JSON,
    OPT_CSV,
    OPT_PERFETTO,
    OPT_HTML,
    OPT_AGAINST,
    OPT_INSTRUCTIONS,
    OPT_TRIP,
    OPT_MACHINE,
    OPT_SCHEDULE,
    OPT_VERIFY,
    OPT_SPILL,
    OPT_ORDER,
    OPT_MEMORY,
    OPT_COUNT
} option_id;

static const struct {
    const char *name;
    enum { TAKES_NONE, TAKES_VALUE, MAY_TAKE } takes;  // MAY_TAKE: only as --name=value
} options[OPT_COUNT] = {
    [OPT_TARGET] = {"--target", TAKES_VALUE},
    [OPT_GRID] = {"--grid", TAKES_VALUE},
    [OPT_INCLUDE] = {"-I", TAKES_VALUE},
    [OPT_ENV] = {"--env", TAKES_VALUE},
    [OPT_DUMP] = {"--dump", TAKES_VALUE},
    [OPT_STOP_AFTER] = {"--stop-after", TAKES_VALUE},
    [OPT_DIAG_FORMAT] = {"--diag-format", TAKES_VALUE},
    [OPT_COLOR] = {"--color", TAKES_VALUE},
    [OPT_QUIET] = {"-q", TAKES_NONE},
    [OPT_VERBOSE] = {"-v", TAKES_NONE},
    [OPT_HELP] = {"--help", TAKES_NONE},
    [OPT_PARSE_ONLY] = {"--parse-only", TAKES_NONE},
    [OPT_OUT] = {"--out", TAKES_VALUE},
    [OPT_EXPECT] = {"--expect", TAKES_VALUE},
    [OPT_RTOL] = {"--rtol", TAKES_VALUE},
    [OPT_ATOL] = {"--atol", TAKES_VALUE},
    [OPT_CHECK] = {"--check", TAKES_NONE},
    [OPT_TIME] = {"--time", TAKES_NONE},
    [OPT_REPEAT] = {"--repeat", TAKES_VALUE},
    [OPT_WARMUP] = {"--warmup", TAKES_VALUE},
    [OPT_THREADS] = {"--threads", TAKES_VALUE},
    [OPT_PRINT] = {"--print", TAKES_NONE},
    [OPT_RAW] = {"--raw", TAKES_NONE},
    [OPT_SEED] = {"--seed", TAKES_VALUE},
    [OPT_OUTPUT] = {"-o", TAKES_VALUE},
    [OPT_MEMORY_LIMIT] = {"--memory-limit", TAKES_VALUE},
    [OPT_STEP_LIMIT] = {"--step-limit", TAKES_VALUE},
    [OPT_JSON] = {"--json", TAKES_VALUE},
    [OPT_CSV] = {"--csv", TAKES_VALUE},
    [OPT_PERFETTO] = {"--perfetto", TAKES_VALUE},
    [OPT_HTML] = {"--html", TAKES_VALUE},
    [OPT_AGAINST] = {"--against", TAKES_VALUE},
    [OPT_INSTRUCTIONS] = {"--instructions", TAKES_NONE},
    [OPT_TRIP] = {"--trip", TAKES_VALUE},
    [OPT_MACHINE] = {"--machine", TAKES_VALUE},
    [OPT_SCHEDULE] = {"--schedule", TAKES_VALUE},
    [OPT_VERIFY] = {"--verify", TAKES_NONE},
    [OPT_SPILL] = {"--spill", TAKES_NONE},
    [OPT_ORDER] = {"--order", TAKES_VALUE},
    [OPT_MEMORY] = {"--memory", MAY_TAKE},
};

static int apply(option_id id, char *v, cli_opts *o)
{
    const char *name = options[id].name;
    switch (id) {
    case OPT_TARGET: o->target = v; return EXIT_DONE;
    case OPT_GRID: return number32(name, v, 1, 2, &o->grid);
    case OPT_INCLUDE: return add_word(&o->roots, &o->root_count, v);
    case OPT_ENV: return add_env(v, o);
    case OPT_DUMP: o->dump = v; return stages(name, v);
    case OPT_STOP_AFTER: o->stop_after = v; return stages(name, v);
    case OPT_DIAG_FORMAT: return set_diag_format(v, o);
    case OPT_COLOR: return set_color(v, o);
    case OPT_QUIET: o->quiet = true; return EXIT_DONE;
    case OPT_VERBOSE: o->verbose = true; return EXIT_DONE;
    case OPT_HELP: o->help = true; return EXIT_DONE;
    case OPT_PARSE_ONLY: o->parse_only = true; return EXIT_DONE;
    case OPT_OUT: o->out_dir = v; return EXIT_DONE;
    case OPT_EXPECT: return add_expect(v, o);
    case OPT_RTOL: return tolerance(name, v, &o->rtol);
    case OPT_ATOL: return tolerance(name, v, &o->atol);
    case OPT_CHECK: o->run_checks = true; return EXIT_DONE;
    case OPT_TIME: o->times = true; return EXIT_DONE;
    case OPT_REPEAT: return number32(name, v, 1, 1000000, &o->repeat);
    case OPT_WARMUP: return number32(name, v, 0, 1000000, &o->warmup);
    case OPT_THREADS: return number32(name, v, 1, 1024, &o->threads);
    case OPT_PRINT: o->print = true; return EXIT_DONE;
    case OPT_RAW: o->raw = true; return EXIT_DONE;
    case OPT_SEED: return number32(name, v, 0, UINT32_MAX, &o->seed);
    case OPT_OUTPUT: o->out_file = v; return EXIT_DONE;
    case OPT_MEMORY_LIMIT: return size_of(name, v, &o->memory_limit_bytes);
    case OPT_STEP_LIMIT: return number(name, v, 1, UINT64_MAX, &o->step_limit);
    case OPT_JSON: o->json_file = v; return EXIT_DONE;
    case OPT_CSV: o->csv_file = v; return EXIT_DONE;
    case OPT_PERFETTO: o->perfetto_file = v; return EXIT_DONE;
    case OPT_HTML: o->html_file = v; return EXIT_DONE;
    case OPT_AGAINST: o->against = v; return EXIT_DONE;
    case OPT_INSTRUCTIONS: o->instructions = true; return EXIT_DONE;
    case OPT_TRIP: return add_named(name, v, "NAME=COUNT", &o->trips, &o->trip_count);
    case OPT_MACHINE: return add_named(name, v, "NAME=NUMBER", &o->machine, &o->machine_count);
    case OPT_SCHEDULE: return set_schedule(v, o);
    case OPT_SPILL: o->spill = true; return EXIT_DONE;
    case OPT_VERIFY: o->verify = true; return EXIT_DONE;
    case OPT_ORDER: o->reorder = true; return number(name, v, 0, UINT64_MAX, &o->order_seed);
    case OPT_MEMORY: return set_memory(v, o);
    case OPT_COUNT: break;
    }
    return EXIT_USAGE;
}

static bool taken_by(const command *c, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = c->options; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, name, n) == 0) {
            return true;
        }
        p += len + (p[len] == ' ');
    }
    return strcmp(name, "--help") == 0;
}

// Finds the option that `word` spells: --name, --name=value, -Ivalue, -ovalue.
static option_id find(char *word, char **value)
{
    *value = NULL;
    for (int i = 0; i < OPT_COUNT; i++) {
        size_t n = strlen(options[i].name);
        if (strncmp(word, options[i].name, n) != 0) {
            continue;
        }
        if (!word[n]) {
            return (option_id)i;
        }
        bool is_short = n == 2;
        if (options[i].takes && (is_short || word[n] == '=')) {
            *value = word + n + (is_short ? 0 : 1);
            return (option_id)i;
        }
    }
    return strcmp(word, "-h") == 0 ? OPT_HELP : OPT_COUNT;
}

// A word that starts with '-' but is a value: -1, -.5, -inf.
static bool is_negative_number(const char *w)
{
    return w[0] == '-' && (w[1] == '.' || (w[1] >= '0' && w[1] <= '9') || strcmp(w, "-inf") == 0);
}

int opts_more(const command *c, int argc, char **argv, cli_opts *o)
{
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        char *w = argv[i], *value;
        if (only_words || w[0] != '-' || !w[1] || is_negative_number(w)) {
            void *p = o->words;
            if (!grow(&p, o->word_count, sizeof *o->words)) {
                return no_memory();
            }
            o->words = p;
            o->words[o->word_count++] = w;
            continue;
        }
        if (strcmp(w, "--") == 0) {
            only_words = true;
            continue;
        }
        if (strncmp(w, "-W", 2) == 0 && taken_by(c, "-W")) {
            int st = w[2] ? add_word(&o->warnings, &o->warning_count, w + 2)
                          : usage_error("-W wants a warning's name: -WNAME, -Wno-NAME, -Werror");
            if (st != EXIT_DONE) {
                return st;
            }
            continue;
        }
        option_id id = find(w, &value);
        if (id == OPT_COUNT || !taken_by(c, options[id].name)) {
            return usage_error("%s has no option '%s'; see nki %s --help", c->name, w, c->name);
        }
        if (options[id].takes == TAKES_VALUE && !value) {
            if (i + 1 == argc) {
                return usage_error("option %s wants a value", w);
            }
            value = argv[++i];
        }
        int st = apply(id, value, o);
        if (st != EXIT_DONE) {
            return st;
        }
    }
    return EXIT_DONE;
}

int opts_parse(const command *c, int argc, char **argv, cli_opts *o)
{
    *o = (cli_opts){.repeat = 1, .threads = 1, .rtol = 1e-5, .atol = 1e-6};
    set_color("auto", o);
    return opts_more(c, argc, argv, o);
}
