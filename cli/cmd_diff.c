#include "cli/result.h"

#include <stdio.h>
#include <string.h>

static int run_one(session *s, const char *word, value_list *v, result_list *out)
{
    target_file t;
    int st = target_open(word, &t);
    if (st != EXIT_DONE) {
        return st;
    }
    nki_kernel *k = NULL;
    nki_source src = target_source(&t);
    nki_compile_opts c = session_compile_opts(s);
    nki_status ns = nki_kernel_compile(s->ctx, &src, t.kernel, v->args, v->count, &c, s->diags, &k);
    st = session_result(s, ns);
    if (st == EXIT_DONE && k) {
        double min_ms, max_ms;
        st = results_run(s, k, v, out, &min_ms, &max_ms);
    }
    nki_kernel_release(k);
    target_close(&t);
    return st;
}

static int compare(const cli_opts *o, const result_list *a, const result_list *b)
{
    int differs = 0;
    size_t n = a->count < b->count ? a->count : b->count;
    if (a->count != b->count) {
        fprintf(stderr, "nki: %s wrote %zu tensors, %s wrote %zu\n", o->words[0], a->count,
                o->words[1], b->count);
        differs = 1;
    }
    for (size_t i = 0; i < n; i++) {
        differs |= result_compare(&a->at[i], &b->at[i], o->words[0], o->words[1], o->rtol, o->atol);
    }
    if (!differs && !o->quiet) {
        printf("%zu outputs agree (rtol %g, atol %g)\n", n, o->rtol, o->atol);
    }
    return differs ? EXIT_DIFFERS : EXIT_DONE;
}

// A tensor that the first kernel writes in place must reach the second as it was given: each
// kernel gets its own copy of the values.
static int diff(cli_opts *o)
{
    if (o->word_count < 2) {
        return usage_error("diff wants two kernels; see nki diff --help");
    }
    session s = {0};
    value_list v[2] = {{0}, {0}};
    result_list r[2] = {{0}, {0}};
    int st = session_open(&s, o);
    for (int i = 0; i < 2 && st == EXIT_DONE; i++) {
        st = values_parse(&s, o->words + 2, o->word_count - 2, true, &v[i]);
        if (st == EXIT_DONE) {
            st = run_one(&s, o->words[i], &v[i], &r[i]);
        }
    }
    if (st == EXIT_DONE) {
        st = compare(o, &r[0], &r[1]);
    }
    for (int i = 0; i < 2; i++) {
        results_free(&r[i]);
        values_free(&v[i]);
    }
    session_close(&s);
    return st;
}

const command command_diff = {
    "diff",
    "FILE::KERNEL FILE::KERNEL [NAME=VALUE ...] [options]",
    "run two kernels on the same inputs and compare what they write",
    "Exit status 3 when an output differs in shape, type or value: |b - a| > atol + rtol * |a|, or "
    "NaN on one side. See nki run --help for the values.\n",
    WORDS_KERNEL,
    diff};
