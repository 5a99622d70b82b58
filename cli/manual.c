#include "cli/table.h"

#include <nki/version.h>

#include <string.h>

// Text for mdoc: nothing in it is a macro, an escape or a hyphen that may break; a sentence begins
// a line.
static void escaped(FILE *to, const char *text, size_t len)
{
    bool line_start = true;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (line_start && (c == '.' || c == '\'')) {
            fputs("\\&", to);
        }
        if (c == '\\') {
            fputs("\\e", to);
        } else if (c == '-') {
            fputs("\\-", to);
        } else {
            fputc(c, to);
        }
        line_start = c == '\n';
        if (c == '.' && i + 2 < len && text[i + 1] == ' ' && !line_start) {
            fputc('\n', to);
            i++;
            line_start = true;
        }
    }
}

static void line(FILE *to, const char *text)
{
    escaped(to, text, strlen(text));
    fputc('\n', to);
}

// Arguments of a macro line: each word stands for itself, also "No" or "Ar".
static void words(FILE *to, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        while (i + n < len && text[i + n] != ' ') {
            n++;
        }
        fputs(" \\&", to);
        escaped(to, text + i, n);
        i += n + (i + n < len);
    }
}

static void paragraphs(FILE *to, const char *text)
{
    bool literal = false;
    while (*text) {
        size_t n = strcspn(text, "\n");
        bool is_literal = *text == ' ';
        if (is_literal != literal) {
            fputs(is_literal ? ".Bd -literal\n" : ".Ed\n", to);
        }
        literal = is_literal;
        if (n == 0) {
            fputs(text[1] ? ".Pp\n" : "", to);
        } else {
            escaped(to, text, n);
            fputc('\n', to);
        }
        text += n + (text[n] == '\n');
    }
    if (literal) {
        fputs(".Ed\n", to);
    }
}

static void command_entry(FILE *to, const command *c)
{
    const char *form = c->usage;
    for (bool first = true; first || *form; first = false) {
        size_t n = strcspn(form, "\n");
        fprintf(to, ".It Nm nki Cm %s", c->name);
        words(to, form, n);
        fputc('\n', to);
        form += n + (form[n] == '\n');
    }
    escaped(to, c->summary, strlen(c->summary));
    fputs(".\n", to);
    paragraphs(to, c->text);
    fputs(".Pp\nOptions:", to);
    const char *between = "\n";
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (option_taken((option_id)id, c)) {
            fprintf(to, "%s.Fl ", between);
            escaped(to, option_table[id].name + 1, strlen(option_table[id].name) - 1);
            between = " ,\n";
        }
    }
    fputs(" .\n", to);
}

static void option_entry(FILE *to, option_id id)
{
    const option_row *r = &option_table[id];
    fputs(".It Fl ", to);
    escaped(to, r->name + 1, strlen(r->name) - 1);
    switch (r->takes) {
    case TAKES_NONE: break;
    case TAKES_VALUE:
        fputs(" Ar", to);
        words(to, r->value, strlen(r->value));
        break;
    case TAKES_MAYBE: fprintf(to, " Ns Op = Ns Ar %s", r->value); break;
    case TAKES_GLUED: fprintf(to, " Ns Ar %s", r->value); break;
    }
    fputc('\n', to);
    line(to, r->text);
}

static void options(FILE *to)
{
    bool open = false;
    for (size_t i = 0; i < option_line_count; i++) {
        if (!option_lines[i].heading) {
            option_entry(to, option_lines[i].id);
            continue;
        }
        fputs(open ? ".El\n" : "", to);
        fprintf(to, ".Ss %s\n.Bl -tag -width Ds\n", option_lines[i].heading);
        open = true;
    }
    fputs(".El\n", to);
}

void manual_print(FILE *to)
{
    fputs(".Dd " NKI_VERSION_DATE "\n.Dt NKI 1\n.Os\n"
          ".Sh NAME\n.Nm nki\n.Nd compile and run NeuronCore kernels on a simulated core\n"
          ".Sh SYNOPSIS\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, ".Nm nki\n.Cm %s\n.Ar ...\n", command_table[i]->name);
    }
    fputs(".Nm nki\n.Fl \\-version\n"
          ".Sh DESCRIPTION\n"
          "Kernels are written in the NKI language, in\n.Pa .nki\nfiles or public\n.Pa .py\n"
          "kernel files.\n"
          "A FILE of\n.Sq \\-\nis standard input; ::KERNEL may be left out when the file holds one "
          "kernel.\n"
          "After\n.Fl \\-\nall words are values.\n"
          ".Sh COMMANDS\n.Bl -tag -width Ds\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        command_entry(to, command_table[i]);
    }
    fputs(".El\n.Sh OPTIONS\nEach command says above which of these it takes.\n", to);
    options(to);
    fputs(
        ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
        ".It Ev NEURON_PLATFORM_TARGET_OVERRIDE\nThe target when none is given.\n"
        ".It Ev NO_COLOR\nMessages without colours.\n"
        ".It Ev NKI_LOG\nWhat the runtime says on standard error: error, warn, info or debug; with "
        ",json as JSON lines.\n"
        ".It Ev NKI_VERIFY\n1: every schedule is proven.\n"
        ".El\n"
        ".Sh EXIT STATUS\n.Bl -tag -width Ds\n"
        ".It 0\nDone.\n"
        ".It 1\nThe kernel has errors; they are on standard error.\n"
        ".It 2\nWrong usage.\n"
        ".It 3\nA comparison failed.\n"
        ".It 4\nAnything else: a file, memory, an internal fault.\n"
        ".El\n"
        ".Sh EXAMPLES\n"
        "Run a kernel on made data and show what it returns:\n"
        ".Pp\n.Dl nki run add.nki a=float32[128,512]:randn b=float32[128,512]:full(2) \\-\\-print\n"
        ".Pp\nCompile it for one shape, and run the container on files:\n"
        ".Bd -literal -offset indent\n"
        "nki compile add.nki a=float32[128,512] b=float32[128,512] \\-o add.neff\n"
        "nki run add.neff a=@a.npy b=@b.npy \\-\\-out results\n"
        ".Ed\n",
        to);
}
