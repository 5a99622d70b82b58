#include "cli/table.h"

#include <nki/tool.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *severity_text(nki_severity s)
{
    return s == NKI_ERROR ? "error" : s == NKI_WARNING ? "warning" : "note";
}

// Words of text on lines of at most 96 columns; a line end in text stays one. col: columns already
// printed.
static void print_words(const char *text, int col)
{
    enum { WIDTH = 96 };
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (!first && col + 1 + (int)n > WIDTH) {
            putchar('\n');
            col = 0;
        } else if (!first && col) {
            putchar(' ');
            col++;
        }
        col += printf("%.*s", (int)n, text);
        text += n;
        first = false;
        if (*text == '\n') {
            putchar('\n');
            col = 0;
        }
        text += strspn(text, " \n");
    }
    putchar('\n');
}

static void print_verbatim(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        printf("    %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void print_row(const nki_diag_row *r)
{
    printf("%s[%s]\n\n", severity_text(r->severity), r->name);
    print_words(r->meaning, 0);
    if (*r->example) {
        puts("\nExample:\n");
        print_verbatim(r->example);
    }
    if (*r->fix) {
        print_words(r->fix, printf("\nFix: ") - 1);
    }
    if (*r->exception) {
        printf("\nA kernel may catch it as %s.\n", r->exception);
    }
    if (r->severity == NKI_WARNING) {
        printf("\n-Wno-%s switches it off, -Werror=%s makes it an error.\n", r->name, r->name);
    }
}

static const char *row_name(void *ctx, size_t i)
{
    nki_diag_row *r = ctx;
    return nki_diag_row_at(i, r) == NKI_OK ? r->name : NULL;
}

// Accepts what a message shows: bad_dedent, [bad_dedent], error[bad_dedent].
static int explain_name(const char *word)
{
    char name[128];
    const char *open = strchr(word, '[');
    snprintf(name, sizeof name, "%s", open ? open + 1 : word);
    name[strcspn(name, "]")] = '\0';
    nki_diag_row r;
    for (size_t i = 0; nki_diag_row_at(i, &r) == NKI_OK; i++) {
        if (strcmp(name, r.name) == 0) {
            print_row(&r);
            return EXIT_DONE;
        }
    }
    const char *near = closest_name(name, row_name, &r);
    return near ? usage_error("there is no diagnostic '%s'; did you mean %s?", name, near)
                : usage_error("there is no diagnostic '%s'; nki explain lists them", name);
}

// One line a diagnostic: the beginning of its meaning, up to the end of its first sentence.
static void print_line(const nki_diag_row *r)
{
    enum { WIDTH = 62 };
    size_t n = strcspn(r->meaning, "\n"), cut = n;
    for (size_t i = 0; i + 1 < n; i++) {
        if ((r->meaning[i] == '.' || r->meaning[i] == ':') && r->meaning[i + 1] == ' ') {
            cut = i;
            break;
        }
    }
    if (cut == n && n && r->meaning[n - 1] == '.') {
        cut--;
    }
    bool whole = cut <= WIDTH;
    if (!whole) {
        for (cut = WIDTH - 3; cut > 1 && r->meaning[cut] != ' '; cut--) {
        }
    }
    printf("%-8s %-26s %.*s%s\n", severity_text(r->severity), r->name, (int)cut, r->meaning,
           whole ? "" : "...");
}

static int explain(cli_opts *o)
{
    for (size_t i = 0; i < o->word_count; i++) {
        if (i) {
            putchar('\n');
        }
        int st = explain_name(o->words[i]);
        if (st != EXIT_DONE) {
            return st;
        }
    }
    for (size_t i = 0; !o->word_count && i < nki_diag_row_count(); i++) {
        nki_diag_row r;
        nki_diag_row_at(i, &r);
        print_line(&r);
    }
    if (!o->word_count) {
        puts("\nnki explain NAME prints the whole meaning, an example and the fix.");
    }
    return EXIT_DONE;
}

const command command_explain = {
    "explain",
    "[DIAGNOSTIC...]",
    "a diagnostic's meaning, an example, the fix",
    "DIAGNOSTIC is the name that a message shows in brackets. Without one: all, a line each.\n",
    WORDS_DIAGNOSTICS,
    explain};
