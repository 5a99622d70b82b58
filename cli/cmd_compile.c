#include "cli/value.h"

#include <nki/tool.h>
#include <stdio.h>
#include <string.h>

// What -v says of a compile: its size, what was moved out of SBUF.
static int say(session *s, const void *bytes, size_t len)
{
    const char *text = "";
    size_t n = 0;
    fprintf(stderr, "%s: %zu bytes\n", s->o->out_file, len);
    nki_status ns = nki_tool_inspect(s->ctx, bytes, len, NKI_INSPECT_SPILLS, &text, &n);
    if (ns != NKI_OK) {
        return session_result(s, ns);
    }
    fwrite(text, 1, n, stderr);
    return EXIT_DONE;
}

static int compile_file(session *s, const target_file *t, const value_list *v)
{
    nki_kernel *k = NULL;
    nki_source src = target_source(t);
    nki_compile_opts c = session_compile_opts(s);
    nki_status ns =
        nki_kernel_compile(s->ctx, &src, t->kernel, v->args, v->count, &c, s->diags, &k);
    int st = session_result(s, ns);
    if (st == EXIT_DONE && k) {
        size_t len;
        const void *bytes = nki_kernel_neff(k, &len);
        st = write_file(s->o->out_file, bytes, len);
        if (st == EXIT_DONE && s->o->verbose) {
            st = say(s, bytes, len);
        }
    }
    nki_kernel_release(k);
    return st;
}

static int compile(cli_opts *o)
{
    if (o->word_count == 0) {
        return usage_error("compile wants a kernel file; see nki compile --help");
    }
    if (!o->out_file && !o->stop_after) {
        return usage_error("compile wants -o OUT.neff");
    }
    session s = {0};
    value_list v = {0};
    target_file t;
    int st = target_open(o->words[0], &t);
    if (st != EXIT_DONE) {
        return st;
    }
    st = session_open(&s, o);
    if (st == EXIT_DONE) {
        st = values_parse(&s, o->words + 1, o->word_count - 1, false, &v);
    }
    if (st == EXIT_DONE) {
        st = compile_file(&s, &t, &v);
    }
    values_free(&v);
    session_close(&s);
    target_close(&t);
    return st;
}

const command command_compile = {
    "compile",
    "FILE[::KERNEL] [NAME=VALUE ...] -o OUT.neff [options]",
    "compile a kernel to a container file",
    "A tensor needs only its type and shape: x=bfloat16[128,512]. See nki run --help for the other "
    "values. The same input gives the same bytes.\n",
    WORDS_KERNEL,
    compile};
