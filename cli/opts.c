#include "cli/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void __attribute__((format(printf, 1, 0))) say(const char *fmt, va_list ap)
{
    fputs("nki: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

int usage_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
    return EXIT_USAGE;
}

int other_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
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

// "a, b, c" of the words that a value may be.
static void list_words(const char *value, char *buf, size_t cap)
{
    const char *word;
    size_t n, used = 0;
    *buf = '\0';
    for (size_t i = 0; value_word(value, i, &word, &n) && used < cap; i++) {
        used += (size_t)snprintf(buf + used, cap - used, "%s%.*s", i ? ", " : "", (int)n, word);
    }
}

static bool find_word(const char *value, const char *text, size_t len, int *out)
{
    const char *word;
    size_t n;
    for (size_t i = 0; value_word(value, i, &word, &n); i++) {
        if (n == len && memcmp(word, text, n) == 0) {
            *out = (int)i;
            return true;
        }
    }
    return false;
}

static int stages(const option_row *r, const char *list)
{
    char known[128];
    int c;
    list_words(r->value, known, sizeof known);
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        if (!find_word(r->value, p, n, &c)) {
            return usage_error("%s: there is no stage '%.*s'; the stages are %s", r->name, (int)n,
                               p, known);
        }
        p += n + (p[n] == ',');
    }
    return *list ? EXIT_DONE : usage_error("%s wants a stage: %s", r->name, known);
}

// Which of the words that the option takes; -1 after a message.
static int choice(const option_row *r, const char *text)
{
    char known[128];
    int c;
    if (find_word(r->value, text, strlen(text), &c)) {
        return c;
    }
    list_words(r->value, known, sizeof known);
    usage_error("%s takes %s; not '%s'", r->name, known, text);
    return -1;
}

static void set_color(int c, cli_opts *o)
{
    const char *off = getenv("NO_COLOR");
    o->color = c == 1 || (c == 0 && isatty(STDERR_FILENO) && !(off && *off));
}

// Options whose value is one of a few words.
static int set_choice(option_id id, const char *text, cli_opts *o)
{
    int c = text ? choice(&option_table[id], text) : 0;
    if (c < 0) {
        return EXIT_USAGE;
    }
    if (id == OPT_COLOR) {
        set_color(c, o);
    } else if (id == OPT_DIAG_FORMAT) {
        o->diag_format = (nki_diag_format)c;
    } else if (id == OPT_SCHEDULE) {
        o->list_schedule = c == 1;
    } else if (id == OPT_PRECISE_FP) {
        o->fp32_store = c == 1;
    } else if (id == OPT_MEMORY) {  // text when it is not said
        o->memory_map = c == 1 ? MEMORY_SVG : MEMORY_TEXT;
    }
    return EXIT_DONE;
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

static int apply(option_id id, char *v, cli_opts *o)
{
    const char *name = option_table[id].name;
    switch (id) {
    case OPT_TARGET: o->target = v; return EXIT_DONE;
    case OPT_GRID: return number32(name, v, 1, 2, &o->grid);
    case OPT_RANK: return number32(name, v, 0, UINT32_MAX, &o->rank);
    case OPT_INCLUDE: return add_word(&o->roots, &o->root_count, v);
    case OPT_ENV: return add_env(v, o);
    case OPT_DUMP: o->dump = v; return stages(&option_table[id], v);
    case OPT_STOP_AFTER: o->stop_after = v; return stages(&option_table[id], v);
    case OPT_DIAG_FORMAT:
    case OPT_COLOR:
    case OPT_SCHEDULE:
    case OPT_PRECISE_FP:
    case OPT_MEMORY: return set_choice(id, v, o);
    case OPT_QUIET: o->quiet = true; return EXIT_DONE;
    case OPT_VERBOSE: o->verbose = true; return EXIT_DONE;
    case OPT_HELP: o->help = true; return EXIT_DONE;
    case OPT_PARSE_ONLY: o->parse_only = true; return EXIT_DONE;
    case OPT_OUT: o->out_dir = v; return EXIT_DONE;
    case OPT_EXPECT:
        return add_named(name, v, option_table[id].value, &o->expect, &o->expect_count);
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
    case OPT_AS: o->as = v; return EXIT_DONE;
    case OPT_AGAINST: o->against = v; return EXIT_DONE;
    case OPT_INSTRUCTIONS: o->instructions = true; return EXIT_DONE;
    case OPT_TRIP: return add_named(name, v, option_table[id].value, &o->trips, &o->trip_count);
    case OPT_MACHINE:
        return add_named(name, v, option_table[id].value, &o->machine, &o->machine_count);
    case OPT_SPILL: o->spill = true; return EXIT_DONE;
    case OPT_VERIFY: o->verify = true; return EXIT_DONE;
    case OPT_ORDER: o->reorder = true; return number(name, v, 0, UINT64_MAX, &o->order_seed);
    case OPT_WARNING: return add_word(&o->warnings, &o->warning_count, v);
    case OPT_WATCH: return add_word(&o->watches, &o->watch_count, v);
    case OPT_SAVE: return add_named(name, v, option_table[id].value, &o->saves, &o->save_count);
    case OPT_BREAK: return add_word(&o->breaks, &o->break_count, v);
    case OPT_COMMANDS: o->commands = v; return EXIT_DONE;
    case OPT_MAN: o->man = true; return EXIT_DONE;
    case OPTION_COUNT: break;
    }
    return EXIT_USAGE;
}

// Finds the option that `word` spells: --name, --name=value, -Ivalue, -ovalue, -Wname.
static option_id find(char *word, char **value)
{
    *value = NULL;
    for (int i = 0; i < OPTION_COUNT; i++) {
        const option_row *r = &option_table[i];
        size_t n = strlen(r->name);
        if (strncmp(word, r->name, n) != 0) {
            continue;
        }
        if (!word[n]) {
            return (option_id)i;
        }
        bool is_short = n == 2;
        if ((is_short && r->takes != TAKES_NONE) || word[n] == '=') {
            *value = word + n + (is_short ? 0 : 1);
            return (option_id)i;
        }
    }
    return strcmp(word, "-h") == 0 ? OPT_HELP : OPTION_COUNT;
}

static const char *option_of(void *ctx, size_t i)
{
    const command *const *c = ctx;
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (option_taken((option_id)id, *c) && i-- == 0) {
            return option_table[id].name;
        }
    }
    return NULL;
}

static int unknown_option(const command *c, char *word, option_id id)
{
    if (id == OPTION_COUNT) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
        const char *near = name[1] == '-' ? closest_name(name, option_of, &c) : NULL;
        if (near) {
            return usage_error("%s has no option '%s'; did you mean %s?", c->name, word, near);
        }
    } else {
        for (size_t i = 0; i < COMMAND_COUNT; i++) {
            if (option_taken(id, command_table[i])) {
                return usage_error("%s has no option '%s' (nki %s has); see nki %s --help", c->name,
                                   word, command_table[i]->name, c->name);
            }
        }
    }
    return usage_error("%s has no option '%s'; see nki %s --help", c->name, word, c->name);
}

// *next: the word after it, taken when the option needs a value; NULL: there is none.
static int one_option(const command *c, char *word, char *next, bool *took, cli_opts *o)
{
    char *value;
    option_id id = find(word, &value);
    if (id == OPTION_COUNT || !option_taken(id, c)) {
        return unknown_option(c, word, id);
    }
    const option_row *r = &option_table[id];
    if (r->takes == TAKES_NONE && value) {
        return usage_error("option %s takes no value", r->name);
    }
    if (r->takes == TAKES_GLUED && !value) {
        return usage_error("-W wants a warning's name: -WNAME, -Wno-NAME, -Werror");
    }
    if (r->takes == TAKES_VALUE && !value) {
        if (!next) {
            return usage_error("option %s wants a value: %s", word, r->value);
        }
        value = next;
        *took = true;
    }
    return apply(id, value, o);
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
        char *w = argv[i];
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
        bool took = false;
        int st = one_option(c, w, i + 1 < argc ? argv[i + 1] : NULL, &took, o);
        if (st != EXIT_DONE) {
            return st;
        }
        i += took;
    }
    return EXIT_DONE;
}

int opts_parse(const command *c, int argc, char **argv, cli_opts *o)
{
    *o = (cli_opts){.repeat = 1, .threads = 1, .rtol = 1e-5, .atol = 1e-6};
    set_color(0, o);
    return opts_more(c, argc, argv, o);
}
