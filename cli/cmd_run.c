#include "cli/debug.h"
#include "cli/npy.h"
#include "cli/result.h"

#include <nki/tool.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_results(const cli_opts *o, const result_list *r)
{
    if (!make_dirs(o->out_dir)) {
        return other_error("cannot make the folder '%s': %s", o->out_dir, strerror(errno));
    }
    for (size_t i = 0; i < r->count; i++) {
        char path[4096], why[1024];
        if ((size_t)snprintf(path, sizeof path, "%s/%s.npy", o->out_dir, r->at[i].name) >=
            sizeof path) {
            return other_error("the path of '%s' is too long", r->at[i].name);
        }
        if (!npy_write(path, r->at[i].tensor, o->raw, why, sizeof why)) {
            return other_error("%s", why);
        }
    }
    return EXIT_DONE;
}

// All comparisons are made; the worst status counts.
static int check_expected(const cli_opts *o, const result_list *r)
{
    int worst = EXIT_DONE;
    for (size_t e = 0; e < o->expect_count; e++) {
        const result *found = NULL;
        for (size_t i = 0; i < r->count; i++) {
            if (strcmp(r->at[i].name, o->expect[e].name) == 0) {
                found = &r->at[i];
            }
        }
        int st;
        if (found) {
            st = result_expect(found, o->expect[e].value, o->rtol, o->atol, o->raw);
        } else {
            fprintf(stderr, "nki: --expect %s: the kernel wrote no such tensor; there %s",
                    o->expect[e].name, r->count == 1 ? "is" : "are");
            for (size_t i = 0; i < r->count; i++) {
                fprintf(stderr, "%s %s", i ? "," : "", r->at[i].name);
            }
            fputs(r->count ? "\n" : " none\n", stderr);
            st = EXIT_DIFFERS;
        }
        worst = st > worst ? st : worst;
    }
    return worst;
}

static void print_times(const session *s, double min_ms, double max_ms)
{
    const nki_times *t = &s->times;
    printf(
        "time parse_ms=%.3f specialize_ms=%.3f compile_ms=%.3f load_ms=%.3f run_ms=%.3f cache=miss",
        t->parse_ms, t->specialize_ms, t->compile_ms, t->load_ms, t->run_ms);
    if (s->o->repeat > 1) {
        printf(" repeat=%u run_min_ms=%.3f run_max_ms=%.3f", s->o->repeat, min_ms, max_ms);
    }
    putchar('\n');
}

static int show(session *s, const result_list *r, double min_ms, double max_ms)
{
    const cli_opts *o = s->o;
    int st = EXIT_DONE;
    bool summary = !o->out_dir && !o->expect_count && !o->print && !o->quiet;
    for (size_t i = 0; i < r->count; i++) {
        if (o->print) {
            result_print(&r->at[i]);
        } else if (summary) {
            result_summary(&r->at[i]);
        }
    }
    if (o->out_dir) {
        st = write_results(o, r);
    }
    if (st == EXIT_DONE && o->expect_count) {
        st = check_expected(o, r);
        if (st == EXIT_DONE && !o->quiet) {
            printf("%zu as expected (rtol %g, atol %g)\n", o->expect_count, o->rtol, o->atol);
        }
    }
    if (o->times) {
        print_times(s, min_ms, max_ms);
    }
    return st;
}

// Runs k, which it releases.
static int run_kernel(session *s, nki_kernel *k, value_list *v)
{
    result_list r = {0};
    double min_ms = 0, max_ms = 0;
    int st = EXIT_DONE;
    if (s->o->reorder) {
        st = session_result(s, nki_tool_reorder(k, s->o->order_seed));
    }
    debugger *d = NULL;
    if (st == EXIT_DONE) {
        st = debug_open(s, k, &d);
    }
    if (st == EXIT_DONE) {
        st = results_run(s, k, v, &r, &min_ms, &max_ms);
    }
    if (st == EXIT_DONE) {
        st = show(s, &r, min_ms, max_ms);
    }
    if (st == EXIT_DONE && s->findings) {
        st = EXIT_DIAG;
    }
    st = debug_close(d, st);
    results_free(&r);
    nki_kernel_release(k);
    return st;
}

static int run_values(session *s, const target_file *t, value_list *v)
{
    nki_kernel *k = NULL;
    nki_source src = target_source(t);
    nki_compile_opts c = session_compile_opts(s);
    nki_status ns =
        nki_kernel_compile(s->ctx, &src, t->kernel, v->args, v->count, &c, s->diags, &k);
    int st = session_result(s, ns);
    return st == EXIT_DONE && k ? run_kernel(s, k, v) : st;
}

// ---- a container

static bool has_param(const nki_kernel *k, const char *name)
{
    nki_tensor_info info;
    for (size_t i = 0; nki_kernel_param(k, i, &info) == NKI_OK; i++) {
        if (strcmp(info.name, name) == 0) {
            return true;
        }
    }
    return false;
}

// A compiled kernel takes its tensors and nothing else; types and shapes are checked by the call.
static int check_values(const cli_opts *o, const nki_kernel *k, const value_list *v)
{
    size_t params = nki_kernel_param_count(k);
    for (size_t i = 0; i < v->count; i++) {
        if (v->at[i].kind != VALUE_TENSOR) {
            return usage_error("'%s' is no tensor; '%s' is compiled and takes tensors only",
                               o->words[i + 1], o->words[0]);
        }
        if (v->at[i].name && !has_param(k, v->at[i].name)) {
            return usage_error("%s has no tensor parameter '%s'; see nki inspect %s",
                               nki_kernel_name(k), v->at[i].name, o->words[0]);
        }
    }
    return v->count <= params ? EXIT_DONE
                              : usage_error("%s takes %zu tensor%s, not %zu", nki_kernel_name(k),
                                            params, params == 1 ? "" : "s", v->count);
}

static int run_container(cli_opts *o)
{
    session s = {0};
    value_list v = {0};
    nki_kernel *k = NULL;
    target_from_container(o, o->words[0]);
    int st = session_open(&s, o);
    if (st == EXIT_DONE) {
        st = session_load(&s, o->words[0], &k);
    }
    if (st == EXIT_DONE) {
        st = values_parse(&s, o->words + 1, o->word_count - 1, true, &v);
    }
    if (st == EXIT_DONE) {
        st = check_values(o, k, &v);
    }
    if (st == EXIT_DONE) {
        st = run_kernel(&s, k, &v);
    } else {
        nki_kernel_release(k);
    }
    values_free(&v);
    session_close(&s);
    return st;
}

// A file of ours without values: its `# try:` line. *n: how many words were taken from it.
static int use_try(cli_opts *o, const target_file *t, int *n)
{
    o->tried = try_words(t, n);
    return *n ? opts_more(&command_run, *n, o->tried, o) : EXIT_DONE;
}

static void announce(const cli_opts *o)
{
    fputs("# nki run", stdout);
    for (size_t i = 0; i < o->word_count; i++) {
        printf(" %s", o->words[i]);
    }
    putchar('\n');
    fflush(stdout);
}

static int run(cli_opts *o)
{
    if (o->word_count == 0) {
        return usage_error("run wants a kernel file; see nki run --help");
    }
    if (is_container(o->words[0])) {
        return run_container(o);
    }
    target_file t;
    int st = target_open(o->words[0], &t);
    if (st != EXIT_DONE) {
        return st;
    }
    session s = {0};
    value_list v = {0};
    int tried = 0;
    if (o->word_count == 1) {
        st = use_try(o, &t, &tried);
    }
    if (st == EXIT_DONE) {
        st = session_open(&s, o);
    }
    if (st == EXIT_DONE) {
        st = values_parse(&s, o->words + 1, o->word_count - 1, true, &v);
    }
    if (st == EXIT_DONE && tried && !o->quiet) {
        announce(o);
    }
    if (st == EXIT_DONE) {
        st = run_values(&s, &t, &v);
    }
    values_free(&v);
    session_close(&s);
    target_close(&t);
    return st;
}

const command command_run = {
    "run",
    "FILE[::KERNEL] [NAME=VALUE ...] [options]\nIN.neff [NAME=VALUE ...] [options]",
    "compile a kernel and run it",
    "VALUE is a tensor or a Python literal:\n"
    "    float32@x.npy  @x.npy        a tensor from a file, converted when the\n"
    "                                 type differs\n"
    "    bfloat16[128,512]:randn      made here: zeros ones full(v) arange randn\n"
    "                                 rand(lo,hi) randint(lo,hi) eye, each\n"
    "                                 with ,seed=N\n"
    "    a                            the tensor that is a's value, once more: in\n"
    "                                 a=@x.npy b=a both arguments are one\n"
    "    2  1.5  True  None  \"text\"  (1,2)  {\"a\":1}  nl.bfloat16  Config(a=1)\n\n"
    "A file with a line `# try: NAME=VALUE ...` in its first comment runs with it when no value is "
    "given.\n",
    WORDS_KERNEL,
    run};
