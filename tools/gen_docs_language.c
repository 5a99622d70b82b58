// nki.language for docs/isa.md: signatures, first lines of documentation, and the instructions that
// a function's body reaches through calls by name. The modules are read as text: each definition
// begins in column 0 and each import is `from M import ...`, which is how stdlib/modules is
// written.
#include "tools/gen_docs.h"

#include <ctype.h>
#include <string.h>

#define FOLDER "stdlib/modules/nki/language"

typedef struct function {
    const char *module, *name, *signature, *doc;
    const char *body;
    size_t body_len;
    bool seen;
} function;

typedef struct import {
    const char *module, *alias;  // the importing module, the name there
    const char *from, *name;
} import;

typedef struct library {
    arena *mem;
    function *functions;
    size_t function_count;
    import *imports;
    size_t import_count;
} library;

enum { MOST_FUNCTIONS = 1024, MOST_IMPORTS = 4096 };

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t word_len(const char *p)
{
    size_t n = 0;
    while (is_word(p[n])) {
        n++;
    }
    return n;
}

static const char *line_after(const char *p)
{
    p += strcspn(p, "\n");
    return *p ? p + 1 : p;
}

// "M import a, b as c" or with the names in parentheses over several lines.
static void add_imports(library *l, const char *module, const char *p)
{
    size_t n = strcspn(p, " ");
    const char *from = arena_text(l->mem, p, n);
    p += n + strlen(" import ");
    char end = *p == '(' ? ')' : '\n';
    while (*p && *p != end) {
        size_t len = word_len(p);
        if (len == 0) {
            p++;
            continue;
        }
        const char *name = arena_text(l->mem, p, len), *alias = name;
        p += len;
        if (strncmp(p, " as ", 4) == 0) {
            p += 4;
            alias = arena_text(l->mem, p, word_len(p));
            p += word_len(p);
        }
        if (l->import_count < MOST_IMPORTS) {
            l->imports[l->import_count++] = (import){module, alias, from, name};
        }
    }
}

// The first line of the body's documentation, without the quotes.
static const char *doc_of(arena *mem, const char *body)
{
    body += strspn(body, " \n");
    if (strncmp(body, "\"\"\"", 3) != 0) {
        return "";
    }
    size_t n = 3;
    while (body[n] && body[n] != '\n' && strncmp(body + n, "\"\"\"", 3) != 0) {
        n++;
    }
    return arena_text(mem, body + 3, n - 3);
}

// p is behind "def " or "class ". The body ends where the next line begins in column 0.
static void add_function(library *l, const char *module, const char *p)
{
    size_t n = word_len(p);
    const char *close = p + n;
    for (int depth = 0; *close; close++) {
        depth += *close == '(' || *close == '[';
        depth -= *close == ')' || *close == ']';
        if (depth == 0) {
            break;
        }
    }
    const char *body = line_after(close), *end = body;
    while (*end && (*end == ' ' || *end == '\n')) {
        end = line_after(end);
    }
    if (l->function_count < MOST_FUNCTIONS) {
        l->functions[l->function_count++] =
            (function){module,
                       arena_text(l->mem, p, n),
                       arena_text(l->mem, p + n, (size_t)(close + (*close == ')') - p) - n),
                       doc_of(l->mem, body),
                       body,
                       (size_t)(end - body),
                       false};
    }
}

static const import *find_import(const library *l, const char *module, const char *alias,
                                 size_t len)
{
    for (size_t i = 0; i < l->import_count; i++) {
        const import *m = &l->imports[i];
        if (strcmp(m->module, module) == 0 && strlen(m->alias) == len &&
            memcmp(m->alias, alias, len) == 0) {
            return m;
        }
    }
    return NULL;
}

static function *find_function(const library *l, const char *module, const char *name, size_t len)
{
    const char *dot = strrchr(module, '.');
    module = dot ? dot + 1 : module;
    for (size_t i = 0; i < l->function_count; i++) {
        function *f = &l->functions[i];
        if (strcmp(f->module, module) == 0 && strlen(f->name) == len &&
            memcmp(f->name, name, len) == 0) {
            return f;
        }
    }
    return NULL;
}

// "other = name": the function under a second name.
static void add_alias(library *l, const char *module, const char *p)
{
    size_t n = word_len(p);
    if (n == 0 || strncmp(p + n, " = ", 3) != 0) {
        return;
    }
    const char *target = p + n + 3;
    size_t len = word_len(target);
    const function *f = target[len] == '\n' ? find_function(l, module, target, len) : NULL;
    if (f && l->function_count < MOST_FUNCTIONS) {
        function *g = &l->functions[l->function_count++];
        *g = *f;
        g->name = arena_text(l->mem, p, n);
    }
}

static void read_module(library *l, const char *root, const char *file)
{
    const char *module = arena_text(l->mem, file, strlen(file) - strlen(".nki"));
    const char *text = slurp(l->mem, root, arena_printf(l->mem, FOLDER "/%s", file));
    for (const char *p = text; *p; p = line_after(p)) {
        if (strncmp(p, "from ", 5) == 0) {
            add_imports(l, module, p + 5);
        } else if (strncmp(p, "def ", 4) == 0 || strncmp(p, "class ", 6) == 0) {
            add_function(l, module, strchr(p, ' ') + 1);
        } else {
            add_alias(l, module, p);
        }
    }
}

// ---- what a function becomes

typedef struct found {
    const char *names[64];
    size_t count;
} found;

static void add_found(found *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++) {
        if (strcmp(f->names[i], name) == 0) {
            return;
        }
    }
    if (f->count < sizeof f->names / sizeof *f->names) {
        f->names[f->count++] = name;
    }
}

// Behind a string or a comment that begins at p; p itself when none does.
static const char *skip_quoted(const char *p, const char *end)
{
    if (*p == '#') {
        while (p < end && *p != '\n') {
            p++;
        }
        return p;
    }
    if (*p != '"' && *p != '\'') {
        return p;
    }
    const char *mark = strncmp(p, "\"\"\"", 3) == 0 ? "\"\"\"" : *p == '"' ? "\"" : "'";
    size_t n = strlen(mark);
    for (p += n; p < end && strncmp(p, mark, n) != 0; p++) {
        p += *p == '\\';
    }
    return p < end ? p + n : end;
}

// Instructions that calls in f's body reach. operands: also through _tile, which brings operands
// where they are needed.
static void reach(library *l, function *f, bool operands, found *out)
{
    f->seen = true;
    const char *end = f->body + f->body_len;
    for (const char *p = f->body; p < end;) {
        const char *after = skip_quoted(p, end);
        size_t n = word_len(p);
        if (after != p || n == 0) {
            p = after != p ? after : p + 1;
            continue;
        }
        const char *word = p;
        p += n;
        if (*p != '(' || (word > f->body && word[-1] == '.')) {
            continue;
        }
        const import *m = find_import(l, f->module, word, n);
        if (m && (strcmp(m->from, "_nki_isa") == 0 || strcmp(m->from, "_nki_ctrl") == 0)) {
            add_found(out, m->name);
            continue;
        }
        function *g = m ? find_function(l, m->from, m->name, strlen(m->name))
                        : find_function(l, f->module, word, n);
        if (g && !g->seen && (operands || strcmp(g->module, "_tile") != 0)) {
            reach(l, g, operands, out);
        }
    }
}

static found instructions_of(library *l, function *f)
{
    found out = {{0}, 0};
    for (int operands = 0; operands < 2 && out.count == 0; operands++) {
        for (size_t i = 0; i < l->function_count; i++) {
            l->functions[i].seen = false;
        }
        reach(l, f, operands != 0, &out);
    }
    return out;
}

static void add_language_row(textbuf *out, library *l, const import *m, function *f)
{
    text_printf(out, "| `%s", m->alias);
    text_cell(out, f->signature);
    text_cstr(out, "` | ");
    found list = instructions_of(l, f);
    for (size_t i = 0; i < list.count; i++) {
        text_printf(out, "%s[%s](#%s)", i ? ", " : "", list.names[i], list.names[i]);
    }
    text_cstr(out, " | ");
    text_cell(out, f->doc);
    text_cstr(out, " |\n");
}

// Public names of __init__ that come from one module, sorted as there.
static void add_module(textbuf *out, library *l, const char *module, const char *title)
{
    text_printf(out, "\n### %s\n\n| function | instructions | |\n|---|---|---|\n", title);
    for (size_t i = 0; i < l->import_count; i++) {
        const import *m = &l->imports[i];
        const char *dot = strrchr(m->from, '.');
        if (strcmp(m->module, "__init__") != 0 || !dot || strcmp(dot + 1, module) != 0 ||
            *m->alias == '_') {
            continue;
        }
        function *f = find_function(l, m->from, m->name, strlen(m->name));
        if (f) {
            add_language_row(out, l, m, f);
        } else {
            text_printf(out, "| `%s` | | |\n", m->alias);
        }
    }
}

static void add_names(textbuf *out, const library *l, const char *from)
{
    size_t len = 0;
    for (size_t i = 0; i < l->import_count; i++) {
        const import *m = &l->imports[i];
        if (strcmp(m->module, "__init__") == 0 && strcmp(m->from, from) == 0) {
            if (len + strlen(m->alias) > 95) {
                text_char(out, '\n');
                len = 0;
            }
            text_printf(out, "%s`%s`", len ? " " : "", m->alias);
            len += strlen(m->alias) + 3;
        }
    }
    text_char(out, '\n');
}

void write_language(textbuf *out, const char *root)
{
    library l = {out->mem, NEW_N(out->mem, function, MOST_FUNCTIONS), 0,
                 NEW_N(out->mem, import, MOST_IMPORTS), 0};
    size_t n;
    char **files = names_in(out->mem, root, FOLDER, ".nki", &n);
    for (size_t i = 0; i < n; i++) {
        read_module(&l, root, files[i]);
    }
    text_cstr(
        out,
        "\n## nki.language\n\nEach function is a few lines over the instructions, in "
        "`" FOLDER
        "`. The middle column names every\ninstruction that it can reach; which of them it takes "
        "depends on shapes, dtypes and places. Operands are brought\nwhere they are needed first: "
        "what is in "
        "HBM is loaded with `dma_copy`, rows are repeated with `dma_copy`, other\ndtypes are "
        "converted with "
        "`tensor_copy`.\n");
    static const char *const modules[][2] = {
        {"_create", "Creation and random numbers"},
        {"_elementwise", "By element"},
        {"_reduce", "Folds"},
        {"_move", "Moving, products, selection"},
        {"_program", "Loops, launch grid, order, sizes"},
        {"_removed", "Removed names: each says what takes its place"}};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        add_module(out, &l, modules[i][0], modules[i][1]);
    }
    text_cstr(out, "\n### Types, buffers and built-in functions\n\n");
    add_names(out, &l, "_nki");
    text_cstr(out,
              "\n### Removed names\n\nUsing one is an error that says what takes its place.\n\n");
    add_names(out, &l, "nki.language._removed");
}
