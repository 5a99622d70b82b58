#include "cli/table.h"

#include <string.h>

enum { WIDTH = 80, INDENT = 4, TEXT_COL = 30 };

// The words of a paragraph in lines of WIDTH columns that begin at column `indent`; col: where the
// first line stands.
static void wrap(FILE *to, const char *text, size_t len, size_t indent, size_t col)
{
    bool first = true;
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        while (i + n < len && text[i + n] != ' ') {
            n++;
        }
        if (!first && col + 1 + n > WIDTH) {
            fprintf(to, "\n%*s", (int)indent, "");
            col = indent;
        } else if (!first) {
            fputc(' ', to);
            col++;
        }
        fprintf(to, "%.*s", (int)n, text + i);
        col += n;
        first = false;
        i += n + (i + n < len);
    }
    fputc('\n', to);
}

static void paragraphs(FILE *to, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (*text == ' ' || n == 0) {
            fprintf(to, "%.*s\n", (int)n, text);
        } else {
            wrap(to, text, n, 0, 0);
        }
        text += n + (text[n] == '\n');
    }
}

static void option_help(FILE *to, option_id id)
{
    char name[64];
    option_spelling(id, name, sizeof name);
    size_t n = strlen(name);
    fprintf(to, "%*s%s", INDENT, "", name);
    if (INDENT + n + 2 > TEXT_COL) {
        fputc('\n', to);
        n = 0;
        fprintf(to, "%*s", TEXT_COL, "");
    } else {
        fprintf(to, "%*s", (int)(TEXT_COL - INDENT - n), "");
    }
    wrap(to, option_table[id].text, strlen(option_table[id].text), TEXT_COL, TEXT_COL);
}

void help_command(FILE *to, const command *c)
{
    const char *form = c->usage;
    for (bool first = true; first || *form; first = false) {
        size_t n = strcspn(form, "\n");
        fprintf(to, "%s nki %s %.*s\n", first ? "usage:" : "      ", c->name, (int)n, form);
        form += n + (form[n] == '\n');
    }
    fprintf(to, "\n%s\n\n", c->summary);
    paragraphs(to, c->text);
    const char *heading = NULL;
    for (size_t i = 0; i < option_line_count; i++) {
        const option_line *l = &option_lines[i];
        if (l->heading) {
            heading = l->heading;
        } else if (option_taken(l->id, c)) {
            if (heading) {
                fprintf(to, "\n%s:\n", heading);
                heading = NULL;
            }
            option_help(to, l->id);
        }
    }
}

void help_all(FILE *to)
{
    fputs("usage: nki COMMAND ...\n\n"
          "Compiles and runs NeuronCore kernels (.nki, or public .py kernel files) on a simulated\n"
          "core.\n\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, "    %-11s %s\n", command_table[i]->name, command_table[i]->summary);
    }
    fputs("\nnki COMMAND --help says more about each. nki --version prints the version.\n"
          "Exit status: 0 done; 1 the kernel has errors; 2 wrong usage; 3 a comparison failed;\n"
          "4 anything else (a file, memory, an internal fault).\n",
          to);
}
