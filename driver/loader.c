// realpath() is in POSIX 2008, but glibc shows it only to XSI programs.
#define _XOPEN_SOURCE 700

#include "driver/loader.h"

#include "driver/clock.h"
#include "driver/read_source.h"
#include "parser/parse.h"
#include "stdlib/stdlib.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Import rules. `from ..a import b` goes by path from the importing file. An absolute name is, in
// this order: a built-in module; the embedder's; looked for in the folder of the importing file,
// the folder of the entry file, the folders that hold their packages, each -I, each -I/src. In a
// folder, a.b is a/b.nki, a/b.py, a/b/__init__.nki, a/b/__init__.py, or, when nothing else is found
// anywhere, the folder a/b.

struct loader_entry {
    loaded_module mod;  // first: a loaded_module pointer is its entry
    module_ast tree;
    source src;
    const char *real;  // identity: the real path, or "<stdlib>/..."
    const char *dir;   // where relative imports start; without a file: its dotted package
    const char *top;   // the folder that holds the outermost package around the file, or NULL
    bool failed;       // errors were recorded when it was read
    bool no_file;      // built in, or the embedder's
    loader_entry *next;
};

typedef struct loader_memo {
    struct loader_memo *next;
    uint32_t hash, len;
    const loaded_module *found;
    char key[];
} loader_memo;

// The suffixes of a module, in order of preference.
static const char *const suffixes[] = {".nki", ".py", "/__init__.nki", "/__init__.py"};
enum { SUFFIX_COUNT = 4, FIRST_PACKAGE_SUFFIX = 2 };

// Modules of Python's own library that have no model here: a kernel folder's file of the same name
// (a package's logging.py) is not what `import logging` means.
static const char *const python_library[] = {
    "abc",      "argparse",  "ast",        "asyncio",   "collections", "contextlib", "copy",
    "datetime", "glob",      "hashlib",    "importlib", "inspect",     "io",         "json",
    "logging",  "os",        "pathlib",    "pickle",    "pkgutil",     "platform",   "pprint",
    "queue",    "random",    "re",         "shutil",    "signal",      "socket",     "statistics",
    "string",   "struct",    "subprocess", "sys",       "tempfile",    "textwrap",   "threading",
    "time",     "traceback", "types",      "unittest",  "uuid",        "warnings",   "weakref"};

void loader_init(loader *ld, arena *mem, intern *names, const char *const *roots, size_t root_count)
{
    *ld = (loader){.mem = mem, .names = names, .roots = roots, .root_count = root_count, .fd = -1};
    ld->tail = &ld->first;
    ld->memo_cap = 256;
    ld->memo = NEW_N(mem, loader_memo *, ld->memo_cap);
}

// path is in the loader's arena.
static bool found(loader *ld, const char *path, bool folder)
{
    struct stat sb;
    if (stat(path, &sb) == 0 && S_ISDIR(sb.st_mode) == folder) {
        return true;
    }
    loader_absent *a = NEW(ld->mem, loader_absent);
    *a = (loader_absent){ld->absent, path};
    ld->absent = a;
    return false;
}

static bool is_file(loader *ld, const char *path)
{
    return found(ld, path, false);
}

static bool is_dir(loader *ld, const char *path)
{
    return found(ld, path, true);
}

static const char *real_path(loader *ld, const char *path)
{
    char buf[PATH_MAX];
    const char *p = realpath(path, buf) ? buf : path;
    return arena_text(ld->mem, p, strlen(p));
}

// "a/b/c.py" -> "a/b"; "c.py" -> "."; "/c.py" -> "/".
static char *dir_of(arena *mem, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return arena_text(mem, ".", 1);
    }
    return arena_text(mem, path, slash == path ? 1 : (size_t)(slash - path));
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *join(arena *mem, const char *dir, const char *rel)
{
    if (strcmp(dir, ".") == 0) {
        return arena_text(mem, rel, strlen(rel));
    }
    return arena_printf(mem, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", rel);
}

static bool has_init(loader *ld, const char *dir)
{
    return is_file(ld, join(ld->mem, dir, "__init__.py")) ||
           is_file(ld, join(ld->mem, dir, "__init__.nki"));
}

// The library keeps its package under nkilib_src/ in its repository; both names mean one folder.
static bool is_library_source_dir(const char *dir)
{
    return strcmp(base_of(dir), "nkilib_src") == 0;
}

// The folder above the outermost package that `dir` belongs to; NULL when it belongs to none.
static const char *package_top(loader *ld, const char *dir)
{
    const char *d = real_path(ld, dir), *top = NULL;
    while (strcmp(d, "/") != 0 && (has_init(ld, d) || is_library_source_dir(d))) {
        d = dir_of(ld->mem, d);
        top = d;
    }
    return top;
}

// What relative names of `e` are shortened against in stored paths: the nearest search folder above
// it.
static const char *stored_path(loader *ld, const loader_entry *e)
{
    const char *best = base_of(e->real);
    const char *top = e->top ? e->top : dir_of(ld->mem, e->real);
    size_t n = strlen(top);
    if (strncmp(e->real, top, n) == 0 && e->real[n] == '/') {
        best = e->real + n + 1;
    }
    for (loader_entry *o = ld->first; o; o = o->next) {
        if (o != e && strcmp(o->mod.path, best) == 0) {
            return e->real;  // two files of one relative name: the whole path keeps them apart
        }
    }
    return best;
}

static void append(loader *ld, loader_entry *e)
{
    *ld->tail = e;
    ld->tail = &e->next;
}

static void parse_entry(loader *ld, loader_entry *e, diags *ds)
{
    double start = clock_ms();
    e->failed = !parse_module(&e->src, ld->mem, ld->names, ds, &e->tree);
    ld->parse_ms += clock_ms() - start;
    e->mod.ast = &e->tree;
}

static const loaded_module *result(const loader_entry *e)
{
    return e->failed ? NULL : &e->mod;
}

static loader_entry *find_real(loader *ld, const char *real)
{
    loader_entry *e = ld->first;
    while (e && strcmp(e->real, real) != 0) {
        e = e->next;
    }
    return e;
}

// "a.b" in a.b.c; a.b.c itself where that is a package.
static const char *package_of(loader *ld, const char *dotted, bool is_package)
{
    const char *dot = strrchr(dotted, '.');
    return is_package ? dotted : arena_text(ld->mem, dotted, dot ? (size_t)(dot - dotted) : 0);
}

// What the embedder answers to the name; NULL: nothing, or errors were recorded.
static const loaded_module *load_resolved(loader *ld, const char *dotted, diags *ds)
{
    nki_module_text t = {0};
    if (!ld->resolve || !*dotted || !ld->resolve(ld->resolve_ctx, dotted, &t) || !t.text) {
        return NULL;
    }
    const char *path = t.path ? t.path : dotted;
    const char *real = arena_printf(ld->mem, "<resolved>/%s", dotted);
    loader_entry *e = find_real(ld, real);
    if (e) {
        return result(e);
    }
    if (t.len > SOURCE_MAX_BYTES) {
        diag_import_unreadable(ds, (loc){0}, dotted, "it is larger than a kernel file may be");
        return NULL;
    }
    e = NEW(ld->mem, loader_entry);
    e->real = real;
    e->no_file = true;
    e->src = (source){arena_text(ld->mem, path, strlen(path)), arena_text(ld->mem, t.text, t.len),
                      (uint32_t)t.len};
    e->mod.name = arena_text(ld->mem, dotted, strlen(dotted));
    e->mod.path = e->src.name;
    for (loader_entry *o = ld->first; o; o = o->next) {
        if (strcmp(o->mod.path, e->mod.path) == 0) {
            e->mod.path = real;  // two modules of one path: the name keeps them apart
        }
    }
    e->mod.is_package = t.is_package != 0;
    e->dir = package_of(ld, e->mod.name, e->mod.is_package);
    append(ld, e);
    parse_entry(ld, e, ds);
    return result(e);
}

static const loaded_module *load_builtin(loader *ld, const stdlib_module *m, diags *ds)
{
    loader_entry *e = find_real(ld, m->path);
    if (!e) {
        e = NEW(ld->mem, loader_entry);
        e->real = m->path;
        e->src = (source){m->path, m->text, (uint32_t)m->len};
        e->mod = (loaded_module){.path = m->path, .name = m->name, .builtin = true};
        e->mod.is_package = m->is_package;
        e->no_file = true;
        e->dir = package_of(ld, m->name, m->is_package);
        append(ld, e);
        parse_entry(ld, e, ds);
    }
    return result(e);
}

// A file or a folder (a namespace package) that was found for the dotted name.
static const loaded_module *load_path(loader *ld, const char *path, const char *dotted,
                                      bool is_package, bool is_folder, diags *ds)
{
    const char *real = real_path(ld, path);
    loader_entry *e = find_real(ld, real);
    if (e) {
        return result(e);
    }
    e = NEW(ld->mem, loader_entry);
    e->real = real;
    e->dir = is_folder ? path : dir_of(ld->mem, path);
    e->top = package_top(ld, e->dir);
    e->mod.name = arena_text(ld->mem, dotted, strlen(dotted));
    e->mod.is_package = is_package || is_folder;
    e->mod.path = stored_path(ld, e);
    append(ld, e);
    // The library's outermost __init__ swaps two copies of itself through importlib; there is one
    // here, so it counts as an empty package.
    bool swaps = is_package && strcmp(base_of(e->dir), "nkilib") == 0;
    if (is_folder || swaps) {
        return &e->mod;
    }
    const char *why = NULL;
    if (read_source(ld->mem, path, path, &ld->fd, &e->src, &why) != NKI_OK) {
        e->failed = true;
        diag_import_unreadable(ds, (loc){0}, dotted, why);
        return NULL;
    }
    parse_entry(ld, e, ds);
    return result(e);
}

// a.b under dir. folders: accept a folder without __init__.
static const loaded_module *try_dir(loader *ld, const char *dir, const char *dotted, bool folders,
                                    diags *ds)
{
    ld->searched = true;
    char *rel = arena_text(ld->mem, dotted, strlen(dotted));
    for (char *p = rel; *p; p++) {
        *p = *p == '.' ? '/' : *p;
    }
    char *stem = *rel ? join(ld->mem, dir, rel) : arena_text(ld->mem, dir, strlen(dir));
    if (folders) {
        return is_dir(ld, stem) ? load_path(ld, stem, dotted, true, true, ds) : NULL;
    }
    for (int i = *rel ? 0 : FIRST_PACKAGE_SUFFIX; i < SUFFIX_COUNT; i++) {
        char *path = arena_printf(ld->mem, "%s%s", stem, suffixes[i]);
        if (is_file(ld, path)) {
            return load_path(ld, path, dotted, i >= FIRST_PACKAGE_SUFFIX, false, ds);
        }
    }
    return NULL;
}

static const loaded_module *load_relative(loader *ld, const loader_entry *from, uint32_t level,
                                          const char *dotted, diags *ds)
{
    if (from->no_file) {
        char *pkg = arena_text(ld->mem, from->dir, strlen(from->dir));
        for (uint32_t i = 1; i < level; i++) {
            char *dot = strrchr(pkg, '.');
            *(dot ? dot : pkg) = '\0';
        }
        const char *full = *pkg && *dotted ? arena_printf(ld->mem, "%s.%s", pkg, dotted)
                           : *pkg          ? pkg
                                           : dotted;
        const stdlib_module *m = from->mod.builtin ? stdlib_find(full) : NULL;
        return m ? load_builtin(ld, m, ds) : from->mod.builtin ? NULL : load_resolved(ld, full, ds);
    }
    const char *dir = from->dir;
    if (level > 1) {
        dir = real_path(ld, dir);
    }
    for (uint32_t i = 1; i < level; i++) {
        dir = dir_of(ld->mem, dir);
    }
    const loaded_module *m = try_dir(ld, dir, dotted, false, ds);
    return m ? m : try_dir(ld, dir, dotted, true, ds);
}

static bool is_python_library(const char *dotted)
{
    size_t n = strcspn(dotted, ".");
    for (size_t i = 0; i < sizeof python_library / sizeof *python_library; i++) {
        if (strlen(python_library[i]) == n && memcmp(python_library[i], dotted, n) == 0) {
            return true;
        }
    }
    return false;
}

// The folders of an absolute import, in order.
static const char *search_dir(loader *ld, const loader_entry *from, size_t i)
{
    size_t r = i - 4;
    switch (i) {
    case 0: return from->no_file ? NULL : from->dir;
    case 1: return ld->entry ? ld->entry->dir : NULL;
    case 2: return from->no_file ? NULL : from->top;
    case 3: return ld->entry ? ld->entry->top : NULL;
    default:
        return r < ld->root_count       ? ld->roots[r]
               : r < 2 * ld->root_count ? join(ld->mem, ld->roots[r - ld->root_count], "src")
                                        : NULL;
    }
}

static const loaded_module *search(loader *ld, const loader_entry *from, const char *dotted,
                                   bool folders, diags *ds)
{
    static const char library[] = "nkilib";
    bool in_library = strncmp(dotted, library, sizeof library - 1) == 0 &&
                      (dotted[sizeof library - 1] == '.' || !dotted[sizeof library - 1]);
    const char *alias = in_library ? arena_printf(ld->mem, "nkilib_src.%s", dotted) : NULL;
    unsigned errors = ds->errors;
    for (size_t i = 0; i < 4 + 2 * ld->root_count; i++) {
        const char *dir = search_dir(ld, from, i);
        if (!dir) {
            continue;
        }
        const loaded_module *m = try_dir(ld, dir, dotted, folders, ds);
        if (!m && alias) {
            m = try_dir(ld, dir, alias, folders, ds);
        }
        if (m || ds->errors != errors) {
            return m;
        }
    }
    return NULL;
}

static const loaded_module *load_absolute(loader *ld, const loader_entry *from, const char *dotted,
                                          diags *ds)
{
    const stdlib_module *b = stdlib_find(dotted);
    if (b) {
        return load_builtin(ld, b, ds);
    }
    size_t first = strcspn(dotted, ".");
    b = stdlib_find(arena_text(ld->mem, dotted, first));
    if (b || is_python_library(dotted)) {
        return NULL;  // a part of a modelled package that the model lacks
    }
    unsigned errors = ds->errors;
    const loaded_module *m = load_resolved(ld, dotted, ds);
    if (m || ds->errors != errors) {
        return m;
    }
    m = search(ld, from, dotted, false, ds);
    return m ? m : search(ld, from, dotted, true, ds);
}

static loader_memo *memo_of(loader *ld, const loader_entry *from, uint32_t level,
                            const char *dotted, bool *known)
{
    size_t fl = strlen(from->real), dl = strlen(dotted), len = fl + 1 + sizeof level + dl;
    loader_memo *m = arena_alloc(ld->mem, sizeof *m + len, _Alignof(loader_memo), 1);
    memcpy(m->key, from->real, fl + 1);
    memcpy(m->key + fl + 1, &level, sizeof level);
    memcpy(m->key + fl + 1 + sizeof level, dotted, dl);
    m->len = (uint32_t)len;
    m->hash = hash_bytes(m->key, len);
    loader_memo **slot = &ld->memo[m->hash & (ld->memo_cap - 1)];
    for (loader_memo *o = *slot; o; o = o->next) {
        if (o->hash == m->hash && o->len == m->len && memcmp(o->key, m->key, len) == 0) {
            *known = true;
            return o;
        }
    }
    m->next = *slot;
    *slot = m;
    *known = false;
    return m;
}

static const loaded_module *load(void *ctx, const loaded_module *from, uint32_t level,
                                 const char *dotted, diags *ds)
{
    loader *ld = ctx;
    const loader_entry *e = (const loader_entry *)from;
    bool known;
    loader_memo *memo = memo_of(ld, e, level, dotted, &known);
    if (!known) {
        memo->found =
            level ? load_relative(ld, e, level, dotted, ds) : load_absolute(ld, e, dotted, ds);
    }
    return memo->found;
}

module_loader loader_interface(loader *ld)
{
    return (module_loader){ld, load};
}

nki_status loader_open(loader *ld, const char *path, const char *text, size_t len, diags *ds,
                       const loaded_module **out, const char **why)
{
    loader_entry *e = NEW(ld->mem, loader_entry);
    *out = NULL;
    if (text) {
        if (len > SOURCE_MAX_BYTES) {
            *why = arena_printf(ld->mem, "'%s' is %zu bytes; the limit for a kernel file is %d",
                                path, len, SOURCE_MAX_BYTES);
            return NKI_ERR_LIMIT;
        }
        e->src = (source){arena_text(ld->mem, path, strlen(path)), arena_text(ld->mem, text, len),
                          (uint32_t)len};
    } else {
        nki_status st = read_source(ld->mem, path, path, &ld->fd, &e->src, why);
        if (st != NKI_OK) {
            return st;
        }
    }
    e->real = real_path(ld, path);
    e->dir = dir_of(ld->mem, path);
    e->top = package_top(ld, e->dir);
    const char *base = base_of(e->real);
    const char *dot = strrchr(base, '.');
    e->mod.name = arena_text(ld->mem, base, dot ? (size_t)(dot - base) : strlen(base));
    e->mod.is_package = strncmp(base, "__init__.", 9) == 0;
    e->mod.path = stored_path(ld, e);
    append(ld, e);
    ld->entry = e;
    parse_entry(ld, e, ds);
    *out = &e->mod;
    return NKI_OK;
}

const source *loader_source_at(const loader *ld, size_t i, const char **path)
{
    loader_entry *e = ld->first;
    while (e && (i || !e->src.text)) {
        i -= e->src.text != NULL;
        e = e->next;
    }
    if (!e) {
        return NULL;
    }
    *path = e->mod.path;
    return &e->src;
}
