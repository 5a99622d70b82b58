// docs/isa.md: the rows of lang/isa.def and lang/op.def, the enumerations, and nki.language as
// stdlib/modules defines it (gen_docs_language.c).
#include "lang/isa.h"
#include "tools/gen_docs.h"

#include <nki/tool.h>
#include <string.h>

static const char *const targets[] = {"trn1", "trn2", "trn3"};

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static size_t index_of(const char *name)
{
    nki_isa_row r;
    for (size_t i = 0; i < nki_isa_count(); i++) {
        nki_isa_at(i, &r);
        if (strcmp(r.name, name) == 0) {
            return i;
        }
    }
    return nki_isa_count();
}

static bool in_module(const nki_isa_row *r)
{
    return strcmp(r->group, "control") != 0;
}

// The row's own headings: fills name or title (the other is ""); NULL at the end.
static const char *next_item(arena *mem, const char *at, const char **name, const char **title)
{
    *name = *title = "";
    while (*at) {
        size_t n = strcspn(at, "\n");
        const char *line = at;
        at += n + (at[n] == '\n');
        if (strncmp(line, "// ---- ", 8) == 0) {
            size_t len = strcspn(line + 8, "\n:");
            *title = arena_text(mem, line + 8, len);
            return at;
        }
        if (strncmp(line, "ISA(", 4) == 0) {
            *name = arena_text(mem, line + 4, strcspn(line + 4, ","));
            return at;
        }
    }
    return NULL;
}

static void add_row(textbuf *out, size_t row)
{
    nki_isa_row r;
    nki_isa_param p;
    nki_isa_at(row, &r);
    text_printf(out, "\n#### %s\n\n`%s%s%s(", r.name, in_module(&r) ? r.group : "",
                in_module(&r) ? "." : "", r.name);
    for (size_t i = 0; i < r.param_count; i++) {
        nki_isa_param_at(row, i, &p);
        text_printf(out, "%s%s%s%s", i ? ", " : "", p.name, p.dflt ? "=" : "",
                    p.dflt ? p.dflt : "");
    }
    text_printf(out, ")`: %s", r.doc);
    text_cstr(out, strchr(".!?", r.doc[strlen(r.doc) - 1]) ? "\n\n" : ".\n\n");
    for (size_t g = 0; g < 3; g++) {
        text_printf(out, "%s%s", g ? "; " : "", targets[g]);
        text_printf(out, " %s", *r.engines[g] ? r.engines[g] : "**not available**");
    }
    text_printf(out, ". Cost: %s. Status: %s.\n", r.cost, r.status);
    if (r.param_count) {
        text_cstr(out, "\n| parameter | takes | in | default |\n|---|---|---|---|\n");
    }
    for (size_t i = 0; i < r.param_count; i++) {
        nki_isa_param_at(row, i, &p);
        text_printf(out, "| %s | ", p.name);
        text_cell(out, p.kind);
        text_printf(out, " | %s | %s |\n", p.spaces, p.dflt ? p.dflt : "required");
    }
}

static void add_table(textbuf *out)
{
    size_t done = 0;
    text_cstr(
        out,
        "\n## Engines by target\n\n| instruction | module | trn1 | trn2 | trn3 | cost | status |\n"
        "|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < nki_isa_count(); i++) {
        nki_isa_row r;
        nki_isa_at(i, &r);
        done += strcmp(r.status, "done") == 0;
        text_printf(out, "| [%s](#%s) | %s | %s | %s | %s | %s | %s |\n", r.name, r.name, r.group,
                    or_dash(r.engines[0]), or_dash(r.engines[1]), or_dash(r.engines[2]), r.cost,
                    r.status);
    }
    text_printf(out, "\n%zu of %zu are done.\n", done, nki_isa_count());
}

static void add_enums(textbuf *out)
{
    text_cstr(out, "\n## Enumerations of nki.isa\n\n| type | members |\n|---|---|\n");
    for (int e = 0; e < ISA_ENUM_COUNT; e++) {
        text_printf(out, "| %s | ", isa_enum_type((isa_enum)e));
        bool first = true;
        for (int v = 0; v < 16; v++) {
            const char *member = isa_enum_member((isa_enum)e, v);
            if (member) {
                text_printf(out, "%s%s", first ? "" : ", ", member);
                first = false;
            }
        }
        text_cstr(out, " |\n");
    }
}

static void add_operators(textbuf *out)
{
    static const char *const classes[] = {"arithmetic in fp32", "comparison, gives 1.0 or 0.0",
                                          "logical, gives 1.0 or 0.0", "bits of integers",
                                          "one operand, in fp32"};
    text_cstr(out, "\n## Operators\n\nMembers of `nki.language` that instructions take as `op=`. "
                   "Vector and GpSimd: may be\n"
                   "op0, op1 or op there. Fold: may fold a dimension. Activation: a function of "
                   "the Scalar engine.\n\n"
                   "| operator | kind | Vector and GpSimd | fold | activation | note "
                   "|\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < OPR_COUNT; i++) {
        const op_info *o = &op_table[i];
        text_printf(out, "| %s | %s | %s | %s | %s | %s |\n", o->name, classes[o->cls],
                    o->roles & OP_ALU ? "yes" : "", o->roles & OP_RED ? "yes" : "",
                    o->roles & OP_ACT ? "yes" : "",
                    o->roles & OP_SIM ? "no chip computes it: simulated, with a warning" : "");
    }
}

void write_isa(textbuf *out, const char *root)
{
    text_cstr(out, "# Instructions\n\n<!-- Written by tools/gen_docs.c from the tables; build the "
                   "target `docs` after a "
                   "change. -->\n\n`nki isa NAME` prints one of these. Every `nki.isa` and "
                   "`nki.collectives` function also "
                   "takes `name=None`\nlast, except those on registers. \"(P, 1)\" is one value a "
                   "partition. What an "
                   "instruction refuses is in\n`docs/constraints.md`, what it computes bit by bit "
                   "in `docs/numerics.md`, "
                   "what a cost class costs in `docs/machine.md`.\n");
    add_table(out);
    const char *name, *title, *at = slurp(out->mem, root, "lang/isa.def");
    text_cstr(out, "\n## The instructions\n");
    while ((at = next_item(out->mem, at, &name, &title)) != NULL) {
        if (*title) {
            text_printf(out, "\n### %s\n", title);
        } else if (index_of(name) < nki_isa_count()) {
            add_row(out, index_of(name));
        }
    }
    add_enums(out);
    add_operators(out);
    write_language(out, root);
}
