#include "cli/debug.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef NKI_HAVE_EDIT
#include <editline/readline.h>

static const debugger *completed_for;

// The next name that begins with `text`: commands for the first word, tensors else.
static char *next_name(const char *text, int again, bool commands)
{
    static size_t i;
    static const char *const words[] = {
#define COMMAND(name, letter, args, help) #name,
#include "cli/debug_commands.def"
#undef COMMAND
    };
    size_t n = strlen(text);
    i = again ? i : 0;
    for (;; i++) {
        nki_tensor_row row;
        const char *name;
        if (commands) {
            name = i < sizeof words / sizeof *words ? words[i] : NULL;
        } else {
            name = nki_tool_tensor_at(completed_for->k, completed_for->looked_at, i, &row) == NKI_OK
                       ? row.name
                       : NULL;
        }
        if (!name) {
            return NULL;
        }
        if (*name && strncmp(name, text, n) == 0) {
            i++;
            return strdup(name);
        }
    }
}

static char *next_command(const char *text, int again)
{
    return next_name(text, again, true);
}

static char *next_tensor(const char *text, int again)
{
    return next_name(text, again, false);
}

static char **complete(const char *text, int start, int end)
{
    (void)end;
    return rl_completion_matches(text, start == 0 ? next_command : next_tensor);
}

static bool edited(const debugger *d, char *buf, size_t cap)
{
    completed_for = d;
    rl_attempted_completion_function = complete;
    fflush(stdout);
    char *line = readline("(nki) ");
    if (!line) {
        return false;
    }
    if (*line) {
        add_history(line);
    }
    snprintf(buf, cap, "%s", line);
    free(line);
    return true;
}
#endif

// Without its end; what does not fit is left out.
static bool plain(FILE *f, char *buf, size_t cap)
{
    size_t n = 0;
    int c = getc(f);
    if (c == EOF) {
        return false;
    }
    for (; c != EOF && c != '\n'; c = getc(f)) {
        if (n + 1 < cap) {
            buf[n++] = (char)c;
        }
    }
    buf[n] = '\0';
    return true;
}

static bool ask(const debugger *d, char *buf, size_t cap)
{
#ifdef NKI_HAVE_EDIT
    if (isatty(STDOUT_FILENO)) {
        return edited(d, buf, cap);
    }
#endif
    (void)d;
    fputs("(nki) ", stdout);
    fflush(stdout);
    return plain(stdin, buf, cap);
}

bool line_read(debugger *d, char *buf, size_t cap)
{
    bool got;
    if (!d->commands && isatty(STDIN_FILENO)) {
        // Ctrl-C gives up the line, the end of the input the run.
        while (!(got = ask(d, buf, cap)) && debug_interrupted()) {
            clearerr(stdin);
            putchar('\n');
        }
        fputs(got ? "" : "\n", stdout);
        return got;
    }
    // What did not come from a terminal is shown, so that the output reads as a session.
    do {
        got = plain(d->commands ? d->commands : stdin, buf, cap);
    } while (got && *buf == '#');
    printf("(nki) %s\n", got ? buf : "");
    return got;
}
