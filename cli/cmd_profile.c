#include "cli/value.h"

#include <nki/profile.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 4000000 };

static int form(session *s, nki_profile *p, nki_profile_form f, const char *path)
{
    const char *text;
    size_t len;
    nki_status st = nki_profile_render(p, f, &text, &len);
    return st == NKI_OK ? write_file(path, text, len) : session_result(s, st);
}

// A folder, one file a table; or a file, `-` too, for the instructions alone.
static int tables(session *s, nki_profile *p, const char *path)
{
    size_t n = strlen(path);
    if (strcmp(path, "-") == 0 || (n > 4 && strcmp(path + n - 4, ".csv") == 0)) {
        return form(s, p, NKI_PROFILE_CSV, path);
    }
    if (!make_dirs(path)) {
        return other_error("cannot make the folder '%s': %s", path, strerror(errno));
    }
    int st = EXIT_DONE;
    const char *name;
    for (size_t i = 0; st == EXIT_DONE && (name = nki_profile_table_name(i)); i++) {
        char *file = malloc(n + strlen(name) + 6);
        const char *text;
        size_t len;
        if (!file) {
            return other_error("out of memory");
        }
        sprintf(file, "%s/%s.csv", path, name);
        nki_status ns = nki_profile_table(p, i, &text, &len);
        st = ns == NKI_OK ? write_file(file, text, len) : session_result(s, ns);
        free(file);
    }
    return st;
}

static int compile(session *s, const char *word, const value_list *v, nki_kernel **k)
{
    target_file t;
    if (is_container(word)) {
        return session_load(s, word, k);
    }
    int st = target_open(word, &t);
    if (st != EXIT_DONE) {
        return st;
    }
    nki_source src = target_source(&t);
    nki_compile_opts c = session_compile_opts(s);
    st = session_result(
        s, nki_kernel_compile(s->ctx, &src, t.kernel, v->args, v->count, &c, s->diags, k));
    target_close(&t);
    return st;
}

// Whether every tensor has data.
static bool all_data(const value_list *v)
{
    for (size_t i = 0; i < v->count; i++) {
        if (v->at[i].kind == VALUE_SPEC) {
            return false;
        }
    }
    return v->count > 0;
}

static int time_kernel(session *s, const value_list *v, nki_kernel *k, nki_profile **p)
{
    const cli_opts *o = s->o;
    nki_profile_opts po = NKI_PROFILE_OPTS_INIT;
    nki_trip *trips = calloc(o->trip_count + 1, sizeof *trips);
    nki_machine_value *values = calloc(o->machine_count + 1, sizeof *values);
    int st = trips && values ? EXIT_DONE : other_error("out of memory");
    for (size_t i = 0; st == EXIT_DONE && i < o->trip_count; i++) {
        char *end;
        errno = 0;
        trips[i] = (nki_trip){o->trips[i].name, strtoull(o->trips[i].value, &end, 10)};
        if (errno || *end || end == o->trips[i].value || *o->trips[i].value == '-') {
            st = usage_error("--trip wants NAME=COUNT, not '%s=%s'", o->trips[i].name,
                             o->trips[i].value);
        }
    }
    for (size_t i = 0; st == EXIT_DONE && i < o->machine_count; i++) {
        char *end;
        values[i] = (nki_machine_value){o->machine[i].name, strtod(o->machine[i].value, &end)};
        if (*end || end == o->machine[i].value) {
            st = usage_error("--machine wants NAME=NUMBER, not '%s=%s'", o->machine[i].name,
                             o->machine[i].value);
        }
    }
    if (st == EXIT_DONE) {
        po.diags = s->diags;
        po.args = v->args;
        po.arg_count = all_data(v) ? v->count : 0;
        po.trips = trips;
        po.trip_count = o->trip_count;
        po.machine = values;
        po.machine_count = o->machine_count;
        po.events_max = EVENTS_MAX;
        st = session_result(s, nki_profile_create(k, &po, p));
    }
    free(trips);
    free(values);
    return st;
}

static int show(session *s, nki_profile *p, nki_profile *other)
{
    const cli_opts *o = s->o;
    int st = EXIT_DONE;
    if (o->json_file) {
        st = form(s, p, o->instructions ? NKI_PROFILE_JSON_INSTRUCTIONS : NKI_PROFILE_JSON,
                  o->json_file);
    }
    if (st == EXIT_DONE && o->csv_file) {
        st = tables(s, p, o->csv_file);
    }
    if (st == EXIT_DONE && o->perfetto_file) {
        st = form(s, p, NKI_PROFILE_PERFETTO, o->perfetto_file);
    }
    if (st == EXIT_DONE && o->html_file) {
        st = form(s, p, NKI_PROFILE_HTML, o->html_file);
    }
    if (st == EXIT_DONE && other) {
        const char *text;
        size_t len;
        nki_status ns = nki_profile_compare(p, other, &text, &len);
        st = ns == NKI_OK ? write_file("-", text, len) : session_result(s, ns);
    } else if (st == EXIT_DONE && !o->json_file && !o->csv_file && !o->perfetto_file &&
               !o->html_file && !o->quiet) {
        st = form(s, p, NKI_PROFILE_TEXT, "-");
    }
    return st;
}

// A file of ours without values: those of its `# try:` line.
static int use_try(cli_opts *o)
{
    target_file t;
    if (o->word_count != 1 || is_container(o->words[0]) || strcmp(o->words[0], "-") == 0) {
        return EXIT_DONE;
    }
    int st = target_open(o->words[0], &t);
    if (st == EXIT_DONE) {
        int n = 0;
        o->tried = try_words(&t, &n);
        st = n ? opts_more(&command_profile, n, o->tried, o) : EXIT_DONE;
        target_close(&t);
    }
    return st;
}

static int profile(cli_opts *o)
{
    if (o->word_count == 0) {
        return usage_error("profile wants a kernel file or a .neff; see nki profile --help");
    }
    int tried = use_try(o);
    if (tried != EXIT_DONE) {
        return tried;
    }
    session s = {0};
    value_list v = {0};
    nki_kernel *k = NULL, *k2 = NULL;
    nki_profile *p = NULL, *p2 = NULL;
    target_from_container(o, o->words[0]);
    int st = session_open(&s, o);
    if (st == EXIT_DONE) {
        st = values_parse(&s, o->words + 1, o->word_count - 1, false, &v);
    }
    if (st == EXIT_DONE) {
        st = compile(&s, o->words[0], &v, &k);
    }
    if (st == EXIT_DONE && k) {
        st = time_kernel(&s, &v, k, &p);
    }
    if (st == EXIT_DONE && o->against) {
        st = compile(&s, o->against, &v, &k2);
        if (st == EXIT_DONE) {
            st = time_kernel(&s, &v, k2, &p2);
        }
    }
    if (st == EXIT_DONE && p) {
        st = show(&s, p, p2);
    }
    nki_profile_release(p2);
    nki_profile_release(p);
    nki_kernel_release(k2);
    nki_kernel_release(k);
    values_free(&v);
    session_close(&s);
    return st;
}

const command command_profile = {
    "profile",
    "FILE[::KERNEL] [NAME=VALUE ...] [options]\nIN.neff [options]",
    "say how long a kernel takes on the chip, and why",
    "Simulates the engines, the DMA engines and what they wait for; no data is needed, so a tensor "
    "needs only its type and shape: x=bfloat16[128,512]. A kernel whose loops or skipped rows "
    "depend "
    "on data is run once where every tensor has data (x=data.npy, x=float32[4]:arange), and the "
    "clock follows what it did; else --trip says how often a loop runs. Without an output option "
    "the report is "
    "printed: a summary, each engine, the lines that take longest, and what to do about it.\n",
    WORDS_KERNEL,
    profile};
