#include "cli/value.h"

#include <nki/tool.h>

#include <stdio.h>
#include <string.h>

static void print_dump(void *ctx, const char *stage, const char *text, size_t len)
{
    (void)ctx;
    (void)stage;
    fwrite(text, 1, len, stdout);
}

// Parses one file; *alone: it holds one kernel, which needs no arguments.
static int parse(session *s, const target_file *t, bool *alone)
{
    enum { ENTRY_MAX = 64 };
    nki_entry e[ENTRY_MAX];
    size_t n = 0;
    nki_source src = target_source(t);
    bool dump = s->o->dump && strcmp(s->o->dump, "ast") == 0 && s->o->parse_only;
    nki_status st =
        nki_tool_parse(s->ctx, &src, dump ? print_dump : NULL, NULL, s->diags, e, ENTRY_MAX, &n);
    *alone = n == 1 && e[0].required_count == 0;
    for (size_t i = 0; t->kernel && i < n && i < ENTRY_MAX; i++) {
        *alone = *alone || (strcmp(e[i].name, t->kernel) == 0 && e[i].required_count == 0);
    }
    return session_result(s, st);
}

// One line a file. A file that cannot be read does not stop the others; its status counts most.
static int parse_only(session *s)
{
    int worst = EXIT_DONE;
    for (size_t i = 0; i < s->o->word_count; i++) {
        target_file t;
        bool alone;
        int st = target_open(s->o->words[i], &t);
        if (st == EXIT_DONE) {
            st = parse(s, &t, &alone);
            if (st == EXIT_DONE && !s->o->dump && !s->o->quiet) {
                printf("%s: ok\n", t.path);
            }
            target_close(&t);
        }
        worst = st > worst ? st : worst;
    }
    return worst;
}

static int compile(session *s, const target_file *t, const value_list *v)
{
    nki_kernel *k = NULL;
    nki_source src = target_source(t);
    nki_compile_opts c = session_compile_opts(s);
    if (!c.stop_after) {
        c.stop_after = "sched";
    }
    nki_status st =
        nki_kernel_compile(s->ctx, &src, t->kernel, v->args, v->count, &c, s->diags, &k);
    nki_kernel_release(k);
    return session_result(s, st);
}

static int check_file(session *s, const target_file *t)
{
    value_list v = {0};
    bool alone = false;
    int st = EXIT_DONE;
    if (s->o->word_count == 1) {
        st = parse(s, t, &alone);
    }
    if (st == EXIT_DONE && (s->o->word_count > 1 || alone)) {
        st = values_parse(s, s->o->words + 1, s->o->word_count - 1, false, &v);
        if (st == EXIT_DONE) {
            st = compile(s, t, &v);
        }
    }
    if (st == EXIT_DONE && s->o->verbose) {
        printf("%s: ok%s\n", t->path,
               s->o->word_count > 1 || alone ? "" : " (parsed; give values to specialize)");
    }
    values_free(&v);
    return st;
}

static int check(cli_opts *o)
{
    if (o->word_count == 0) {
        return usage_error("check wants a kernel file; see nki check --help");
    }
    session s = {0};
    int st = session_open(&s, o);
    if (st == EXIT_DONE && o->parse_only) {
        st = parse_only(&s);
    } else if (st == EXIT_DONE) {
        target_file t;
        st = target_open(o->words[0], &t);
        if (st == EXIT_DONE) {
            st = check_file(&s, &t);
            target_close(&t);
        }
    }
    session_close(&s);
    return st;
}

const command command_check = {
    "check",
    "FILE[::KERNEL] [NAME=VALUE ...] [options]\n--parse-only FILE...",
    "look for errors without running",
    "Without values the file is parsed, and its kernel is specialized when it is the only one and "
    "needs none. With values the kernel is specialized, verified for the target and placed. A "
    "tensor "
    "needs only its type and shape: x=bfloat16[128,512]. See nki run --help for the other "
    "values.\n",
    WORDS_KERNEL,
    check};
