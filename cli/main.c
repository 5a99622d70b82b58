#include "cli/table.h"

#include <errno.h>
#include <string.h>

static int run_command(int argc, char **argv, cli_opts *o)
{
    if (argc < 2) {
        help_all(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        printf("nki %s\n", nki_version_string());
        return EXIT_DONE;
    }
    bool helps = strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    const command *c = helps ? &command_help : command_find(word);
    if (!c) {
        return *word == '-'
                   ? usage_error("the command comes before its options: nki COMMAND %s ...", word)
                   : unknown_command(word);
    }
    int st = opts_parse(c, argc - 2, argv + 2, o);
    if (st == EXIT_DONE && o->help) {
        help_command(stdout, c);
        return EXIT_DONE;
    }
    return st == EXIT_DONE ? c->run(o) : st;
}

int main(int argc, char **argv)
{
    static cli_opts o;  // what it holds is needed until the process ends
    int st = run_command(argc, argv, &o);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return other_error("cannot write to standard output%s%s", errno ? ": " : "",
                           errno ? strerror(errno) : "");
    }
    return st;
}
