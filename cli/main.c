#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const command *const commands[] = {&command_check,   &command_run,     &command_compile,
                                          &command_diff,    &command_isa,     &command_explain,
                                          &command_profile, &command_bindgen, &command_inspect};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void help(FILE *to)
{
    fputs("usage: nki COMMAND ...\n\n"
          "Compiles and runs NeuronCore kernels (.nki, or public .py kernel files) on a simulated "
          "core.\n\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const char *text = commands[i]->help;
        fprintf(to, "    %-8s %.*s\n", commands[i]->name, (int)strcspn(text, "\n"), text);
    }
    fputs("\nnki COMMAND --help says more about each. nki --version prints the version.\n"
          "Exit status: 0 done; 1 the kernel has errors; 2 wrong usage; 3 a comparison failed;\n"
          "4 anything else (a file, memory, an internal fault).\n",
          to);
}

static const command *find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static cli_opts o;  // what it holds is needed until the process ends
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        const command *c = argc > 2 ? find(argv[2]) : NULL;
        if (c) {
            printf("usage: nki %s\n\n%s", c->usage, c->help);
        } else {
            help(stdout);
        }
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("nki %s\n", nki_version_string());
        return EXIT_DONE;
    }
    const command *c = find(argv[1]);
    if (!c) {
        return usage_error("there is no command '%s'; nki --help lists them", argv[1]);
    }
    int st = opts_parse(c, argc - 2, argv + 2, &o);
    if (st != EXIT_DONE) {
        return st;
    }
    if (o.help) {
        printf("usage: nki %s\n\n%s", c->usage, c->help);
        return EXIT_DONE;
    }
    st = c->run(&o);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return other_error("cannot write to standard output");
    }
    return st;
}
