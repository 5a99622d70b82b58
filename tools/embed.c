// nki_embed OUT.c PREFIX SHOWN ROOT MODULE.nki...
// Writes a C file that implements a part of stdlib/stdlib.h, PREFIX_find and PREFIX_at: each
// module's text as an array, and a table sorted by dotted name. ROOT/nki/language.nki is
// nki.language; a folder's __init__.nki is the folder. Paths begin with SHOWN.
//
// nki_embed --text OUT.c NAME FILE...
// Writes `const char NAME[]`, the files one after another, and `const size_t NAME_len`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct module {
    char name[512];
    const char *rel;
    int is_package;
} module;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const module *)a)->name, ((const module *)b)->name);
}

static void name_of(const char *rel, module *m)
{
    m->rel = rel;
    size_t n = strlen(rel) - strlen(".nki");
    static const char init[] = "/__init__";
    if (n > sizeof init - 1 && memcmp(rel + n - (sizeof init - 1), init, sizeof init - 1) == 0) {
        n -= sizeof init - 1;
        m->is_package = 1;
    }
    for (size_t i = 0; i < n; i++) {
        m->name[i] = (char)(rel[i] == '/' ? '.' : rel[i]);
    }
}

// The bytes of a file as members of an array.
static int put_bytes(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    long n = 0;
    for (int c; (c = getc(in)) != EOF; n++) {
        fprintf(out, "%s%d,", n % 24 == 0 ? "\n" : "", (signed char)c);
    }
    int bad = ferror(in);
    fclose(in);
    return bad;
}

static int embed(FILE *out, const char *root, const module *m, int number)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, m->rel);
    fprintf(out, "static const char text_%d[] = {", number);
    int bad = put_bytes(out, path);
    fprintf(out, "\n0};\n");
    return bad;
}

static int embed_text(const char *to, const char *name, int n, char **files)
{
    FILE *out = fopen(to, "w");
    if (!out) {
        perror(to);
        return 1;
    }
    int bad = 0;
    fprintf(out,
            "#include <stddef.h>\n\nextern const char %s[];\nextern const size_t %s_len;\n"
            "const char %s[] = {",
            name, name, name);
    for (int i = 0; i < n; i++) {
        bad |= put_bytes(out, files[i]);
    }
    fprintf(out, "\n0};\nconst size_t %s_len = sizeof %s - 1;\n", name, name);
    if (fclose(out) || bad) {
        remove(to);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "--text") == 0) {
        return embed_text(argv[2], argv[3], argc - 4, argv + 4);
    }
    if (argc < 5) {
        fprintf(stderr, "usage: nki_embed OUT.c PREFIX SHOWN ROOT MODULE.nki...\n");
        return 2;
    }
    int n = argc - 5, bad = 0;
    module *m = calloc((size_t)n + 1, sizeof *m);
    FILE *out = fopen(argv[1], "w");
    if (!m || !out) {
        perror(argv[1]);
        free(m);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        const char *rel = argv[i + 5];
        if (strlen(rel) < 5 || strlen(rel) >= sizeof m->name) {
            fprintf(stderr, "nki_embed: bad module path '%s'\n", rel);
            fclose(out);
            free(m);
            return 1;
        }
        name_of(rel, &m[i]);
    }
    qsort(m, (size_t)n, sizeof *m, by_name);
    fprintf(out, "#include \"stdlib/stdlib.h\"\n\n#include <string.h>\n\n");
    for (int i = 0; i < n; i++) {
        bad |= embed(out, argv[4], &m[i], i);
    }
    fprintf(out, "static const stdlib_module table[] = {\n");
    for (int i = 0; i < n; i++) {
        fprintf(out, "{\"%s\", \"%s/%s\", text_%d, sizeof text_%d - 1, %d},\n", m[i].name, argv[3],
                m[i].rel, i, i, m[i].is_package);
    }
    fprintf(
        out,
        "{0, 0, 0, 0, 0}};\n\n"
        "const stdlib_module *%s_at(size_t i)\n{\n"
        "    return i < %d ? &table[i] : 0;\n}\n\n"
        "const stdlib_module *%s_find(const char *dotted)\n{\n"
        "    size_t lo = 0, hi = %d;\n"
        "    while (lo < hi) {\n"
        "        size_t mid = (lo + hi) / 2;\n"
        "        int c = strcmp(dotted, table[mid].name);\n"
        "        if (c == 0) {\n            return &table[mid];\n        }\n"
        "        if (c < 0) {\n            hi = mid;\n        } else {\n            lo = mid + 1;\n"
        "        }\n    }\n    return 0;\n}\n",
        argv[2], n, argv[2], n);
    free(m);
    if (fclose(out) || bad) {
        remove(argv[1]);
        return 1;
    }
    return 0;
}
