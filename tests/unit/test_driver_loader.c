// Import rules: which file a dotted name means, and that one file is one module.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fixture {
    char root[64];
    arena mem;
    jmp_buf oom;
    intern names;
    diags ds;
    loader ld;
} fixture;

// Writes root/path with its folders.
static void put(const fixture *f, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", f->root, path);
    for (char *p = full + strlen(f->root) + 1; *p; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(full, 0777);
            *p = '/';
        }
    }
    FILE *o = fopen(full, "wb");
    assert_non_null(o);
    fputs(text, o);
    fclose(o);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    snprintf(f->root, sizeof f->root, "/tmp/nki_loader_XXXXXX");
    if (!mkdtemp(f->root) || chdir(f->root) != 0) {
        return -1;
    }
    arena_init(&f->mem, 0, &f->oom);
    intern_init(&f->names, &f->mem);
    diags_init(&f->ds, &f->mem);
    put(f, "app/kernel.py", "x = 1\n");
    put(f, "app/sibling.py", "x = 1\n");
    put(f, "app/both.nki", "x = 1\n");
    put(f, "app/both.py", "x = 1\n");
    put(f, "app/logging.py", "x = 1\n");
    put(f, "app/broken.py", "x = = 1\n");
    put(f, "lib/pack/__init__.py", "x = 1\n");
    put(f, "lib/pack/deep/mod.py", "x = 1\n");
    put(f, "lib/pack/sub/__init__.py", "x = 1\n");
    put(f, "lib/pack/sub/leaf.py", "x = 1\n");
    put(f, "second/src/inner.py", "x = 1\n");
    put(f, "second/sibling.py", "x = 1\n");
    put(f, "repo/src/nkilib_src/__init__.py", "");
    put(f, "repo/src/nkilib_src/nkilib/__init__.py", "import importlib\n");
    put(f, "repo/src/nkilib_src/nkilib/core/__init__.py", "");
    put(f, "repo/src/nkilib_src/nkilib/core/k.py", "x = 1\n");
    put(f, "repo/src/nkilib_src/nkilib/core/util/u.py", "x = 1\n");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", f->root);
    int st = chdir("/") || system(cmd);
    arena_fini(&f->mem);
    free(f);
    return st;
}

static const loaded_module *open_entry(fixture *f, const char *path, const char *const *roots,
                                       size_t n)
{
    const loaded_module *m = NULL;
    const char *why = NULL;
    loader_init(&f->ld, &f->mem, &f->names, roots, n);
    assert_int_equal(loader_open(&f->ld, path, NULL, 0, &f->ds, &m, &why), NKI_OK);
    return m;
}

static const loaded_module *import(fixture *f, const loaded_module *from, uint32_t level,
                                   const char *dotted)
{
    module_loader ml = loader_interface(&f->ld);
    return ml.load(ml.ctx, from, level, dotted, &f->ds);
}

static const char *shown(const loaded_module *m)
{
    return m && m->ast ? m->ast->src->name : NULL;
}

static void absolute__searches_folder_then_roots_then_src(void **state)
{
    fixture *f = *state;
    const char *const roots[] = {"lib", "second"};
    const loaded_module *k = open_entry(f, "app/kernel.py", roots, 2);
    assert_string_equal(k->name, "kernel");
    assert_string_equal(shown(k), "app/kernel.py");
    assert_string_equal(shown(import(f, k, 0, "sibling")), "app/sibling.py");
    assert_string_equal(shown(import(f, k, 0, "pack")), "lib/pack/__init__.py");
    assert_string_equal(shown(import(f, k, 0, "inner")), "second/src/inner.py");
    assert_null(import(f, k, 0, "torch"));
    assert_null(import(f, k, 0, "pack.gone"));
    assert_int_equal(f->ds.errors, 0);
}

static void absolute__prefers_our_suffix(void **state)
{
    fixture *f = *state;
    const loaded_module *k = open_entry(f, "app/kernel.py", NULL, 0);
    assert_string_equal(shown(import(f, k, 0, "both")), "app/both.nki");
}

static void absolute__builtin_first_and_python_library_never_a_sibling(void **state)
{
    fixture *f = *state;
    const loaded_module *k = open_entry(f, "app/kernel.py", NULL, 0);
    const loaded_module *m = import(f, k, 0, "logging");
    assert_true(!m || m->builtin);
}

static void folder__without_init_is_a_package(void **state)
{
    fixture *f = *state;
    const char *const roots[] = {"lib"};
    const loaded_module *k = open_entry(f, "app/kernel.py", roots, 1);
    const loaded_module *d = import(f, k, 0, "pack.deep");
    assert_non_null(d);
    assert_null(d->ast);
    assert_true(d->is_package);
    assert_string_equal(shown(import(f, k, 0, "pack.deep.mod")), "lib/pack/deep/mod.py");
}

static void relative__goes_by_path(void **state)
{
    fixture *f = *state;
    const char *const roots[] = {"lib"};
    const loaded_module *k = open_entry(f, "app/kernel.py", roots, 1);
    const loaded_module *leaf = import(f, k, 0, "pack.sub.leaf");
    const loaded_module *sub = import(f, leaf, 1, "");
    assert_string_equal(shown(sub), "lib/pack/sub/__init__.py");
    assert_ptr_equal(import(f, sub, 1, "leaf"), leaf);
    const loaded_module *mod = import(f, leaf, 2, "deep.mod");
    assert_ptr_equal(mod, import(f, k, 0, "pack.deep.mod"));
    assert_ptr_equal(import(f, leaf, 2, ""), import(f, k, 0, "pack"));
}

static void library__two_names_one_module(void **state)
{
    fixture *f = *state;
    const char *const roots[] = {"repo"};
    const loaded_module *k = open_entry(f, "app/kernel.py", roots, 1);
    const loaded_module *a = import(f, k, 0, "nkilib.core.k");
    assert_non_null(a);
    assert_ptr_equal(a, import(f, k, 0, "nkilib_src.nkilib.core.k"));
    const loaded_module *top = import(f, k, 0, "nkilib");
    assert_non_null(top);
    assert_null(top->ast);  // its __init__ is left out
}

static void entry__finds_its_own_package(void **state)
{
    fixture *f = *state;
    const loaded_module *k = open_entry(f, "repo/src/nkilib_src/nkilib/core/k.py", NULL, 0);
    const loaded_module *u = import(f, k, 1, "util.u");
    assert_non_null(u);
    assert_ptr_equal(u, import(f, k, 0, "nkilib.core.util.u"));
    assert_ptr_equal(u, import(f, k, 0, "nkilib_src.nkilib.core.util.u"));
    assert_ptr_equal(import(f, u, 2, "k"), k);  // the entry is not parsed twice
}

static void import__with_errors_is_reported_once(void **state)
{
    fixture *f = *state;
    const loaded_module *k = open_entry(f, "app/kernel.py", NULL, 0);
    assert_null(import(f, k, 0, "broken"));
    unsigned errors = f->ds.errors;
    assert_true(errors > 0);
    assert_null(import(f, k, 0, "broken"));
    assert_int_equal(f->ds.errors, errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(absolute__searches_folder_then_roots_then_src, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(absolute__prefers_our_suffix, setup, teardown),
        cmocka_unit_test_setup_teardown(absolute__builtin_first_and_python_library_never_a_sibling,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(folder__without_init_is_a_package, setup, teardown),
        cmocka_unit_test_setup_teardown(relative__goes_by_path, setup, teardown),
        cmocka_unit_test_setup_teardown(library__two_names_one_module, setup, teardown),
        cmocka_unit_test_setup_teardown(entry__finds_its_own_package, setup, teardown),
        cmocka_unit_test_setup_teardown(import__with_errors_is_reported_once, setup, teardown),
    };
    return cmocka_run_group_tests_name("driver.loader", tests, NULL, NULL);
}
