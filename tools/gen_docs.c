// gen_docs ROOT [--check]: writes docs/diagnostics.md, docs/constraints.md and docs/isa.md from the
// tables of lang/, the modules of stdlib/ and the goldens; with --check compares them, and ends
// with 1 when one differs.
#include "tools/gen_docs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "gen_docs: cannot %s %s\n", what, path);
    exit(2);
}

static char *slurp_file(arena *mem, FILE *f)
{
    textbuf t;
    text_init(&t, mem);
    char part[16384];
    size_t n;
    while ((n = fread(part, 1, sizeof part, f)) > 0) {
        text_add(&t, part, n);
    }
    text_cstr(&t, "");
    return t.at;
}

char *slurp(arena *mem, const char *root, const char *path)
{
    const char *whole = arena_printf(mem, "%s/%s", root, path);
    FILE *f = fopen(whole, "rb");
    if (!f) {
        fail("read", whole);
        return NULL;
    }
    char *text = slurp_file(mem, f);
    fclose(f);
    return text;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **names_in(arena *mem, const char *root, const char *path, const char *suffix, size_t *n)
{
    enum { MOST = 4096 };
    char **names = NEW_N(mem, char *, MOST);
    const char *whole = arena_printf(mem, "%s/%s", root, path);
    DIR *d = opendir(whole);
    if (!d) {
        fail("list", whole);
    }
    *n = 0;
    for (struct dirent *e; d && (e = readdir(d)) && *n < MOST;) {
        size_t len = strlen(e->d_name), tail = strlen(suffix);
        if (e->d_name[0] != '.' && len > tail && strcmp(e->d_name + len - tail, suffix) == 0) {
            names[(*n)++] = arena_text(mem, e->d_name, len);
        }
    }
    closedir(d);
    qsort(names, *n, sizeof *names, by_name);
    return names;
}

void text_cell(textbuf *out, const char *p)
{
    for (; *p; p++) {
        if (*p == '|') {
            text_cstr(out, "\\|");
        } else {
            text_char(out, *p == '\n' ? ' ' : *p);
        }
    }
}

static int differs(arena *mem, const char *path, const textbuf *page)
{
    FILE *f = fopen(path, "rb");
    if (f) {
        const char *have = slurp_file(mem, f);
        fclose(f);
        if (strcmp(have, page->at) == 0) {
            return 0;
        }
    }
    fprintf(stderr, "%s is not what the tables say: build the target `docs`\n", path);
    return 1;
}

static void replace(const char *path, const textbuf *page)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(page->at, 1, page->len, f) != page->len || fclose(f) != 0) {
        fail("write", path);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*write)(textbuf *out, const char *root);
    } pages[] = {{"docs/diagnostics.md", write_diagnostics},
                 {"docs/constraints.md", write_constraints},
                 {"docs/isa.md", write_isa}};
    int check = argc == 3 && strcmp(argv[2], "--check") == 0;
    if (argc != 2 && !check) {
        fprintf(stderr, "usage: gen_docs ROOT [--check]\n");
        return 2;
    }
    arena mem;
    jmp_buf oom;
    if (setjmp(oom)) {
        fprintf(stderr, "gen_docs: out of memory\n");
        return 2;
    }
    arena_init(&mem, 0, &oom);
    int bad = 0;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        textbuf page;
        text_init(&page, &mem);
        pages[i].write(&page, argv[1]);
        const char *path = arena_printf(&mem, "%s/%s", argv[1], pages[i].path);
        if (check) {
            bad |= differs(&mem, path, &page);
        } else {
            replace(path, &page);
        }
    }
    arena_fini(&mem);
    return bad;
}
