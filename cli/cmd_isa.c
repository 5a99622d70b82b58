#include "cli/table.h"

#include <nki/tool.h>

#include <stdio.h>
#include <string.h>

static void print_signature(size_t row, const nki_isa_row *r)
{
    bool in_module = strcmp(r->group, "control") != 0;
    int n = printf("%s%s%s(", in_module ? r->group : "", in_module ? "." : "", r->name);
    int indent = n, col = n;
    for (size_t i = 0; i < r->param_count; i++) {
        nki_isa_param p;
        char text[256];
        nki_isa_param_at(row, i, &p);
        int len = snprintf(text, sizeof text, "%s%s%s%s", p.name, p.dflt ? "=" : "",
                           p.dflt ? p.dflt : "", i + 1 < r->param_count ? ", " : "");
        if (col + len > 98 && col > indent) {
            printf("\n%*s", indent, "");
            col = indent;
        }
        fputs(text, stdout);
        col += len;
    }
    puts(")");
}

static void print_row(size_t row)
{
    static const char *const targets[3] = {"trn1", "trn2", "trn3"};
    nki_isa_row r;
    nki_isa_at(row, &r);
    print_signature(row, &r);
    printf("    %s\n\n", r.doc);
    for (size_t i = 0; i < r.param_count; i++) {
        nki_isa_param p;
        nki_isa_param_at(row, i, &p);
        printf("    %-22s %s%s%s%s%s%s\n", p.name, p.kind, *p.spaces ? " in " : "", p.spaces,
               p.dflt ? ", default " : "", p.dflt ? p.dflt : "", p.dflt ? "" : ", required");
    }
    putchar('\n');
    for (int g = 0; g < 3; g++) {
        printf("    %-10s %s\n", targets[g], *r.engines[g] ? r.engines[g] : "not available");
    }
    printf("    %-10s %s\n    %-10s %s\n", "cost class", r.cost, "status", r.status);
}

static void print_table(void)
{
    size_t done = 0, n = nki_isa_count();
    printf("%-32s %-16s %-8s %-24s %-24s %s\n", "instruction", "module", "status", "trn1", "trn2",
           "trn3");
    for (size_t i = 0; i < n; i++) {
        nki_isa_row r;
        nki_isa_at(i, &r);
        done += strcmp(r.status, "done") == 0;
        printf("%-32s %-16s %-8s %-24s %-24s %s\n", r.name, r.group, r.status,
               *r.engines[0] ? r.engines[0] : "-", *r.engines[1] ? r.engines[1] : "-",
               *r.engines[2] ? r.engines[2] : "-");
    }
    printf("%zu of %zu done\n", done, n);
}

static const char *row_name(void *ctx, size_t i)
{
    nki_isa_row *r = ctx;
    return nki_isa_at(i, r) == NKI_OK ? r->name : NULL;
}

static int unknown_instruction(const char *word, const char *name)
{
    nki_isa_row r;
    const char *near = closest_name(name, row_name, &r);
    return near ? usage_error("there is no instruction '%s'; did you mean %s?", word, near)
                : usage_error("there is no instruction '%s'; nki isa lists them", word);
}

static int isa(cli_opts *o)
{
    if (o->word_count == 0) {
        print_table();
        return EXIT_DONE;
    }
    for (size_t w = 0; w < o->word_count; w++) {
        const char *name = o->words[w], *dot = strrchr(name, '.');
        bool found = false;
        for (size_t i = 0; i < nki_isa_count() && !found; i++) {
            nki_isa_row r;
            nki_isa_at(i, &r);
            found = strcmp(r.name, dot ? dot + 1 : name) == 0;
            if (found) {
                if (w) {
                    putchar('\n');
                }
                print_row(i);
            }
        }
        if (!found) {
            return unknown_instruction(name, dot ? dot + 1 : name);
        }
    }
    return EXIT_DONE;
}

const command command_isa = {"isa",
                             "[NAME...]",
                             "what an instruction takes, where it runs, what it costs",
                             "Without a name: the table of all instructions, their engines by "
                             "target, and what is done. NAME "
                             "may carry its module: tensor_tensor, nisa.tensor_tensor.\n",
                             WORDS_INSTRUCTIONS,
                             isa};
