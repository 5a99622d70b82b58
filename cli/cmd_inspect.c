#include "cli/cli.h"

#include <nki/tool.h>

#include <stdio.h>
#include <stdlib.h>

static int inspect_file(session *s, const char *path)
{
    size_t len, text_len;
    const char *why, *text;
    char *bytes = read_file(path, &len, &why);
    if (!bytes) {
        return other_error("cannot read '%s': %s", path, why);
    }
    nki_inspect_form form = s->o->memory_map == MEMORY_SVG    ? NKI_INSPECT_MEMORY_SVG
                            : s->o->memory_map == MEMORY_TEXT ? NKI_INSPECT_MEMORY
                                                              : NKI_INSPECT_ALL;
    nki_status ns = nki_tool_inspect(s->ctx, bytes, len, form, &text, &text_len);
    int st = EXIT_DONE;
    if (ns == NKI_ERR_FORMAT) {
        st = other_error("'%s': %s", path, nki_context_error(s->ctx));
    } else {
        st = session_result(s, ns);
    }
    if (st == EXIT_DONE) {
        st = write_file("-", text, text_len);
    }
    free(bytes);
    return st;
}

static int inspect(cli_opts *o)
{
    if (o->word_count != 1) {
        return usage_error("inspect wants one .neff file; see nki inspect --help");
    }
    session s = {0};
    int st = session_open(&s, o);
    if (st == EXIT_DONE) {
        st = inspect_file(&s, o->words[0]);
    }
    session_close(&s);
    return st;
}

const command command_inspect = {
    "inspect",
    "IN.neff [--memory[=text|svg]]",
    "show what a container file holds",
    "The header, the sections, the tensors with their addresses, the instructions below their "
    "source lines, and what each engine and DMA ring issues with its waits and signals "
    "(docs/sched.md). The file is verified first.\n",
    WORDS_FILES,
    inspect};
