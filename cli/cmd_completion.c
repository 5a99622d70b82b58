#include "cli/table.h"

#include <string.h>

static const struct {
    const char *name;
    void (*print)(FILE *to);
} shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}};

static int completion(cli_opts *o)
{
    if (o->word_count != 1) {
        return usage_error("completion wants a shell: bash or zsh");
    }
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].name, o->words[0]) == 0) {
            shells[i].print(stdout);
            return EXIT_DONE;
        }
    }
    return usage_error("there is no completion for '%s'; the shells are bash and zsh", o->words[0]);
}

const command command_completion = {
    "completion",
    "bash|zsh",
    "print the completion script of a shell",
    "An installed nki has its scripts where the shells look for them. Otherwise:\n"
    "    source <(nki completion bash)\n"
    "    nki completion zsh >~/.zfunc/_nki      # a folder of $fpath\n",
    WORDS_SHELLS,
    completion};
