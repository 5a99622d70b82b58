#include "cli/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Written whole or not at all: a temporary beside it, then a rename.
static int write_whole(const char *path, const void *bytes, size_t len)
{
    if (strcmp(path, "-") == 0) {
        return fwrite(bytes, 1, len, stdout) == len
                   ? EXIT_DONE
                   : other_error("cannot write to standard output");
    }
    char temp[4096];
    if ((size_t)snprintf(temp, sizeof temp, "%s.part", path) >= sizeof temp) {
        return other_error("the path '%s' is too long", path);
    }
    FILE *f = fopen(temp, "wb");
    bool ok = f && fwrite(bytes, 1, len, f) == len;
    int e = errno;
    if (f && fclose(f) != 0 && ok) {
        ok = false;
        e = errno;
    }
    if (ok && rename(temp, path) != 0) {
        ok = false;
        e = errno;
    }
    if (!ok) {
        if (f) {
            remove(temp);
        }
        return other_error("cannot write '%s': %s", path, strerror(e));
    }
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
        st = write_whole(s->o->out_file, bytes, len);
        if (st == EXIT_DONE && s->o->verbose) {
            fprintf(stderr, "%s: %zu bytes\n", s->o->out_file, len);
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
    "compile", "compile FILE[::KERNEL] [NAME=VALUE ...] -o OUT.neff [options]",
    "compile a kernel to a container file\n\n"
    "A tensor needs only its type and shape: x=bfloat16[128,512]. See nki run --help for the "
    "other\n"
    "values. The same input gives the same bytes.\n\n"
    "    -o OUT.neff             where to write; - is standard output\n"
    "    --target trn1|trn2|trn3, --grid N, -I DIR, --env NAME=VALUE\n"
    "    -WNAME -Wno-NAME -Werror -Werror=NAME\n"
    "    --dump=ast,ir,placed,sched  --stop-after=STAGE\n"
    "    --schedule=program|list     order in which engines issue; --verify proves it\n"
    "    --spill                     move what does not fit in SBUF to HBM and back\n"
    "    --memory-limit SIZE  --step-limit N      of the compile\n"
    "    --diag-format=text|short|json  --color=auto|always|never  -q  -v\n",
    "-o --target --grid -I --env -W --dump --stop-after --schedule --verify --spill --memory-limit "
    "--step-limit --diag-format "
    "--color -q -v",
    compile};
