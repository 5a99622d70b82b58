#include "cli/table.h"

static const char *command_name(void *ctx, size_t i)
{
    (void)ctx;
    return i < COMMAND_COUNT ? command_table[i]->name : NULL;
}

int unknown_command(const char *word)
{
    const char *near = closest_name(word, command_name, NULL);
    return near ? usage_error("there is no command '%s'; did you mean %s?", word, near)
                : usage_error("there is no command '%s'; nki --help lists them", word);
}

static int help(cli_opts *o)
{
    if (o->man) {
        manual_print(stdout);
        return EXIT_DONE;
    }
    if (o->word_count == 0) {
        help_all(stdout);
    }
    for (size_t i = 0; i < o->word_count; i++) {
        const command *c = command_find(o->words[i]);
        if (!c) {
            return unknown_command(o->words[i]);
        }
        if (i) {
            putchar('\n');
        }
        help_command(stdout, c);
    }
    return EXIT_DONE;
}

const command command_help = {"help",
                              "[COMMAND...] [--man]",
                              "what commands do",
                              "Without a command: the list of them, and the exit statuses.\n",
                              WORDS_COMMANDS,
                              help};
