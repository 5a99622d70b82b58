// docs/diagnostics.md and docs/constraints.md: the rows of lang/diag.def, their explanations and
// the goldens that reach them.
#include "lang/diag.h"
#include "lang/target.h"
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
    static const char *const folders[] = {"isa",    "lower",  "parser", "limits",
                                          "device", "stdlib", "regress"};
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

// The text after "error[name]: " up to the line's end.
static const char *message_of(arena *mem, const golden *g, const char *tag)
{
    const char *line = line_of(g, tag);
    const char *text = line ? strstr(line, "]: ") : NULL;
    return text ? arena_text(mem, text + 3, strcspn(text + 3, "\n")) : "";
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

// ---- constraints.md

static void add_limits(textbuf *out)
{
#define LIMIT(label, field, unit)                                                                  \
    text_printf(out, "| %s |", label);                                                             \
    for (int gen = 2; gen <= 4; gen++) {                                                           \
        text_printf(out, " %lu%s |", (unsigned long)target_by_gen(gen)->field, unit);              \
    }                                                                                              \
    text_char(out, '\n');
    text_cstr(out, "\n## Sizes\n\n| limit | trn1 | trn2 | trn3 |\n|---|---|---|---|\n");
    LIMIT("partitions of SBUF and PSUM", partitions, "")
    LIMIT("SBUF, a partition", sbuf_partition_bytes / 1024, " KiB")
    LIMIT("PSUM, a partition", psum_partition_bytes / 1024, " KiB")
    LIMIT("PSUM banks", psum_banks, "")
    LIMIT("PSUM bank, a partition", psum_bank_bytes, " bytes")
    LIMIT("matmul: columns of the stationary tile", matmul_stationary_max, "")
    LIMIT("matmul: fp32 columns of the moving tile", matmul_moving_max, "")
    LIMIT("bn_stats: elements a partition", bn_stats_max, "")
    LIMIT("registers, a sequencer", registers, "")
    LIMIT("semaphores, a core", semaphores, "")
    LIMIT("DMA engines", dma_engines, "")
#undef LIMIT
    text_cstr(out, "\nWhich engine runs which instruction on which target is the table of "
                   "`docs/isa.md`. The number of\n"
                   "semaphores is not published; `docs/machine.md` says what is assumed.\n");
}

// "trn1" of a "# try: --target trn1 ..." line; trn2, the default, without one.
static const char *target_of(arena *mem, const golden *g)
{
    size_t lines = strcspn(g->source, "\n");
    const char *mark = strstr(g->source, "--target");
    const char *head = strstr(g->source, "\nimport");
    if (mark && (!head || mark < head || (size_t)(mark - g->source) < lines)) {
        mark += strlen("--target");
        mark += strspn(mark, " =");
        return arena_text(mem, mark, strcspn(mark, " \n"));
    }
    return "trn2";
}

static bool has_legal(arena *mem, const char *root, const golden *g)
{
    const char *dir = arena_printf(mem, "tests/golden/%s", g->folder);
    const char *want = arena_printf(mem, "%s_legal.nki", g->stem);
    size_t n;
    char **names = names_in(mem, root, dir, "_legal.nki", &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], want) == 0) {
            return true;
        }
    }
    return false;
}

// Every golden of the folder isa whose messages include the row, so each target where it differs.
static void add_constraint(textbuf *out, const char *root, diag_id id, const goldens *g)
{
    const char *name = diag_name(id), *tag = arena_printf(out->mem, "[%s]", name);
    text_printf(out, "\n### %s\n\n", name);
    if (diag_severity(id) == SEV_WARNING) {
        text_cstr(out, "Warning: runs here, and the compiler or the chip may not take it. ");
    }
    add_sentence(out, diag_meaning(id));
    text_cstr(out, " ");
    add_sentence(out, diag_fix(id));
    text_char(out, '\n');
    bool first = true;
    const golden *own = golden_of(g, name, tag);
    for (size_t i = 0; i < g->count; i++) {
        const golden *x = &g->at[i];
        size_t n = strlen(name);
        bool named = strncmp(x->stem, name, n) == 0 && (x->stem[n] == '\0' || x->stem[n] == '_');
        if (!line_of(x, tag) || !(x == own || named)) {
            continue;
        }
        const char *path = arena_printf(out->mem, "../tests/golden/%s/%s", x->folder, x->stem);
        text_printf(out, "%s* %s: ", first ? "\n" : "", target_of(out->mem, x));
        first = false;
        add_code(out, message_of(out->mem, x, tag));
        text_printf(out, "  \n  [%s](%s.nki)", x->stem, path);
        if (has_legal(out->mem, root, x)) {
            text_printf(out, ", and [the nearest that passes](%s_legal.nki)", path);
        }
        text_char(out, '\n');
    }
}

void write_constraints(textbuf *out, const char *root)
{
    goldens g = load_goldens(out->mem, root);
    text_printf(
        out,
        "# What the chip refuses\n\n%sEach rule with the message that a kernel gets which "
        "breaks it, on the target where it was broken, the kernel\nthat does, and the nearest "
        "one that passes. Both run in the tests. `docs/diagnostics.md` has all diagnostics.\n",
        generated);
    add_limits(out);
    static const char *const files[] = {"diag_isa", "diag_sched", "diag_device"};
    static const char *const titles[] = {NULL, "Capacity", "While the program runs"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        const char *name, *title;
        const char *at = slurp(out->mem, root, arena_printf(out->mem, "lang/%s.def", files[f]));
        if (titles[f]) {
            text_printf(out, "\n## %s\n", titles[f]);
        }
        while ((at = next_item(out->mem, at, &name, &title)) != NULL) {
            if (*title) {
                text_printf(out, "\n## %c%s\n",
                            *title >= 'a' && *title <= 'z' ? *title - 'a' + 'A' : *title,
                            title + 1);
            } else if (diag_find(name) != D_COUNT) {
                add_constraint(out, root, diag_find(name), &g);
            }
        }
    }
}
