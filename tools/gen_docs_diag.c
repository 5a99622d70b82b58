// docs/diagnostics.md: the rows of lang/diag.def, their explanations and the goldens that reach
// them.
#include "lang/diag.h"
#include "tools/gen_docs.h"

#include <string.h>

typedef struct row {
    const char *fmt, *args;  // args: the conversions' values by name, "insn, what, n"
} row;

static const row rows[D_COUNT] = {
#define DIAG0(ident, sev, exc, fmt)             {fmt, ""},
#define DIAG(ident, sev, exc, fmt, params, ...) {fmt, #__VA_ARGS__},
#include "lang/diag.def"
#undef DIAG0
#undef DIAG
};

// In the order of lang/diag.def.
static const struct {
    const char *file, *title, *where;
} parts[] = {
    {"diag_parse", "Reading a file", "Raised by the parser."},
    {"diag_lower", "Running the meta-program",
     "Raised while the kernel's Python runs at compile time, and where a kernel is chosen and "
     "called."},
    {"diag_isa", "What the machine refuses",
     "Raised where an instruction or a tensor is made. `docs/constraints.md` shows each at work."},
    {"diag_sched", "Placement", "Raised when tensors are placed in the memories of the target."},
    {"diag_device", "While the program runs", "Raised by the simulated device."},
    {"diag_check", "Run-time checks",
     "Found by `nki run --check` (`docs/checks.md`). None of them ends the run."},
    {"diag_tool", "Files", "Raised where files are found and read."},
};

static const char *const severities[] = {"error", "warning", "note"};

// ---- goldens

typedef struct golden {
    const char *folder, *stem, *diag, *source;
} golden;

typedef struct goldens {
    golden *at;
    size_t count;
} goldens;

static goldens load_goldens(arena *mem, const char *root)
{
    static const char *const folders[] = {"isa",    "lower", "parser", "limits",
                                          "device", "check", "stdlib", "regress"};
    goldens g = {NEW_N(mem, golden, 8192), 0};
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        const char *dir = arena_printf(mem, "tests/golden/%s", folders[f]);
        size_t n;
        char **names = names_in(mem, root, dir, ".diag", &n);
        for (size_t i = 0; i < n && g.count < 8192; i++) {
            const char *stem = arena_text(mem, names[i], strlen(names[i]) - strlen(".diag"));
            const char *nki = arena_printf(mem, "%s/%s.nki", dir, stem);
            const char *text = slurp(mem, root, arena_printf(mem, "%s/%s", dir, names[i]));
            g.at[g.count++] = (golden){folders[f], stem, text, slurp(mem, root, nki)};
        }
    }
    return g;
}

// The line of the golden's messages that has "[name]"; NULL when there is none.
static const char *line_of(const golden *g, const char *tag)
{
    const char *hit = strstr(g->diag, tag);
    while (hit && hit > g->diag && hit[-1] != '\n') {
        hit--;
    }
    return hit;
}

// The golden of that name, else the first whose messages include it.
static const golden *golden_of(const goldens *g, const char *name, const char *tag)
{
    const golden *best = NULL;
    for (size_t i = 0; i < g->count; i++) {
        if (line_of(&g->at[i], tag)) {
            if (strcmp(g->at[i].stem, name) == 0) {
                return &g->at[i];
            }
            best = best ? best : &g->at[i];
        }
    }
    return best;
}

// ---- diagnostics.md

// The format with its conversions as {name}.
static void add_format(textbuf *out, const row *r)
{
    const char *args = r->args;
    for (const char *p = r->fmt; *p; p++) {
        if (p[0] != '%' || p[1] == '%') {
            p += p[0] == '%';
            text_char(out, *p);
            continue;
        }
        p += strspn(p + 1, "0123456789.*-+ #hlzjt") + 1;
        args += strspn(args, ", ");
        size_t n = strcspn(args, ",");
        text_printf(out, "{%.*s}", (int)n, args);
        args += n;
    }
}

// text as a code span, whatever backquotes it has.
static void add_code(textbuf *out, const char *text)
{
    const char *fence = strchr(text, '`') ? "`` " : "`", *end = strchr(text, '`') ? " ``" : "`";
    text_printf(out, "%s%s%s", fence, text, end);
}

static void add_block(textbuf *out, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        text_printf(out, "    %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

// A paragraph of plain text: capital first (not of code such as engine=), full stop last, no
// mark-up.
static void add_sentence(textbuf *out, const char *text)
{
    size_t n = strlen(text);
    if (n == 0) {
        return;
    }
    bool code = strcspn(text, "=_(.") < strcspn(text, " ");
    bool lower = *text >= 'a' && *text <= 'z';
    text_char(out, lower && !code ? (char)(*text - 'a' + 'A') : *text);
    for (const char *p = text + 1; *p; p++) {
        if (strchr("*<", *p)) {
            text_char(out, '\\');
        }
        text_char(out, *p == '\n' ? ' ' : *p);
    }
    if (!strchr(".!?)", text[n - 1])) {
        text_char(out, '.');
    }
}

static void add_diagnostic(textbuf *out, diag_id id, const goldens *g)
{
    const char *name = diag_name(id);
    text_printf(out, "\n### %s\n\n%s", name, severities[diag_severity(id)]);
    if (*diag_exception(id)) {
        text_printf(out, ", caught as `%s`", diag_exception(id));
    }
    textbuf format;
    text_init(&format, out->mem);
    add_format(&format, &rows[id]);
    text_cstr(out, ": ");
    add_code(out, format.at);
    text_cstr(out, "\n\n");
    add_sentence(out, diag_meaning(id));
    text_cstr(out, "\n\n");
    if (*diag_example(id)) {
        add_block(out, diag_example(id));
        text_char(out, '\n');
    }
    if (*diag_fix(id)) {
        text_cstr(out, "**Fix.** ");
        add_sentence(out, diag_fix(id));
        text_char(out, '\n');
    }
    const golden *hit = golden_of(g, name, arena_printf(out->mem, "[%s]", name));
    if (hit) {
        text_printf(out, "\nAs a test: `tests/golden/%s/%s.nki`\n", hit->folder, hit->stem);
    }
}

// The next row or section of a table's text: fills name or title (the other is ""), returns what
// follows, NULL at the end.
static const char *next_item(arena *mem, const char *at, const char **name, const char **title)
{
    *name = *title = "";
    while (*at) {
        size_t n = strcspn(at, "\n");
        const char *after = at + n + (at[n] == '\n');
        if (strncmp(at, "// ---- ", 8) == 0) {
            *title = arena_text(mem, at + 8, n - 8);
            return after;
        }
        if (strncmp(at, "DIAG", 4) == 0 && memchr(at, '(', n)) {
            const char *open = strchr(at, '(') + 1;
            open += strspn(open, " ");
            *name = arena_text(mem, open, strcspn(open, ", "));
            return after;
        }
        at = after;
    }
    return NULL;
}

static const char generated[] = "<!-- Written by tools/gen_docs.c from the tables; build the "
                                "target `docs` after a change. -->\n\n";

void write_diagnostics(textbuf *out, const char *root)
{
    goldens g = load_goldens(out->mem, root);
    size_t warnings = 0;
    for (int i = 0; i < D_COUNT; i++) {
        warnings += diag_severity((diag_id)i) == SEV_WARNING;
    }
    text_printf(
        out,
        "# Diagnostics\n\n%s%d diagnostics, %zu of them warnings. A message shows its name in "
        "brackets, `error[partition_limit]`;\n`nki explain NAME` prints what stands here. "
        "`-Wno-NAME` switches a warning off, `-Werror=NAME` makes it an\nerror. \"Caught "
        "as\" names the Python class under which the kernel's own `try` may catch it.\n"
        "`{words}` in a message are filled in. Notes below a message give the chain of calls "
        "and loop values that led there.\n",
        generated, (int)D_COUNT, warnings);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        text_printf(out, "\n## %s\n\n%s\n", parts[i].title, parts[i].where);
        const char *name, *title;
        const char *at =
            slurp(out->mem, root, arena_printf(out->mem, "lang/%s.def", parts[i].file));
        while ((at = next_item(out->mem, at, &name, &title)) != NULL) {
            diag_id id = diag_find(name);
            if (id != D_COUNT) {
                add_diagnostic(out, id, &g);
            }
        }
    }
}
