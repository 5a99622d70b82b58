// Bytes as a kernel file through the parser and the specializer, which finds the built-in modules
// and nothing else. Whatever the program does, it ends: by itself, at the step limit or out of
// memory. An IR comes back exactly when no error was recorded, and it verifies.
#include "lower/specialize.h"
#include "parser/parse.h"
#include "stdlib/stdlib.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 64 << 20, STEPS = 200000, ARGS_MAX = 8 };

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

typedef struct known {
    struct known *next;
    const stdlib_module *of;
    loaded_module mod;
    module_ast tree;
    source src;
} known;

typedef struct builtin_loader {
    arena *mem;
    intern *names;
    known *first;
} builtin_loader;

// "nki.isa" + level 1 + "x": "nki.x"
static const char *absolute(builtin_loader *l, const loaded_module *from, uint32_t level,
                            const char *dotted)
{
    if (!level) {
        return dotted;
    }
    char *base = arena_text(l->mem, from->name, strlen(from->name));
    for (uint32_t i = from->is_package ? 1 : 0; i < level; i++) {
        char *dot = strrchr(base, '.');
        if (!dot) {
            return dotted;
        }
        *dot = '\0';
    }
    return *dotted ? arena_printf(l->mem, "%s.%s", base, dotted) : base;
}

static const loaded_module *load(void *ctx, const loaded_module *from, uint32_t level,
                                 const char *dotted, diags *ds)
{
    builtin_loader *l = ctx;
    const stdlib_module *m = stdlib_find(absolute(l, from, level, dotted));
    for (const known *k = l->first; k; k = k->next) {
        if (k->of == m) {
            return &k->mod;
        }
    }
    if (!m) {
        return NULL;
    }
    known *k = NEW(l->mem, known);
    k->of = m;
    k->src = (source){m->path, m->text, (uint32_t)m->len};
    require(parse_module(&k->src, l->mem, l->names, ds, &k->tree));
    k->mod = (loaded_module){.path = m->path, .name = m->name, .ast = &k->tree, .builtin = true};
    k->mod.is_package = m->is_package;
    k->next = l->first;
    l->first = k;
    return &k->mod;
}

static void printed(void *ctx, const char *text, size_t len)
{
    *(size_t *)ctx += len + (size_t)(len && text[0] == '\0');
}

// A tensor for each parameter that needs a value.
static uint32_t arguments(const module_ast *m, lower_arg *out)
{
    kernel_info k;
    if (kernels_of(m, &k, 1) != 1 || k.nrequired > ARGS_MAX) {
        return 0;
    }
    for (uint32_t i = 0; i < k.nrequired; i++) {
        out[i] = (lower_arg){.is_tensor = true, .type = DT_float32, .ndim = 2, .shape = {128, 512}};
    }
    return k.nrequired;
}

static void specialize_text(const source *src, arena *mem)
{
    intern names;
    diags ds;
    module_ast tree;
    intern_init(&names, mem);
    diags_init(&ds, mem);
    if (!parse_module(src, mem, &names, &ds, &tree)) {
        return;
    }
    unsigned before = ds.errors;
    require(before == 0);
    loaded_module entry = {.path = "fuzz.nki", .name = "fuzz", .ast = &tree};
    builtin_loader l = {.mem = mem, .names = &names};
    module_loader loader = {&l, load};
    size_t bytes = 0;
    lower_opts o = {.target = target_find("trn2"),
                    .loader = &loader,
                    .step_limit = STEPS,
                    .print = printed,
                    .print_ctx = &bytes,
                    .names = &names};
    lower_arg args[ARGS_MAX];
    uint32_t n = arguments(&tree, args);
    ir *p = specialize(mem, &o, &entry, NULL, args, n, &ds);
    require(!p == (ds.errors != 0));
    require(!p || !ir_verify(p, mem));
    textbuf out;
    text_init(&out, mem);
    diags_render(&ds, DIAG_TEXT, false, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) {
        return 0;
    }
    if (size) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    source src = {"fuzz.nki", text, (uint32_t)size};
    jmp_buf oom;
    arena mem;
    arena_init(&mem, ARENA_BYTES, &oom);
    if (setjmp(oom) == 0) {
        specialize_text(&src, &mem);
    }
    arena_fini(&mem);
    free(text);
    return 0;
}
