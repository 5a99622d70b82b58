// Bytes through the lexer and the parser. Beyond not crashing: an error is recorded exactly when
// the parse says that it failed, the tree prints whatever the outcome, an expression either has
// a tree or an error, and every diagnostic renders in every format.
#include "parser/parse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void render(const diags *ds, arena *mem)
{
    for (int format = DIAG_TEXT; format <= DIAG_JSON; format++) {
        textbuf out;
        text_init(&out, mem);
        diags_render(ds, (diag_format)format, format == DIAG_TEXT, &out);
        require((ds->errors + ds->warnings != 0) == (out.len != 0));
    }
}

static void module(const source *src, arena *mem)
{
    intern names;
    diags ds;
    module_ast m;
    textbuf out;
    intern_init(&names, mem);
    diags_init(&ds, mem);
    bool ok = parse_module(src, mem, &names, &ds, &m);
    require(ok == (ds.errors == 0));
    for (const diag *d = ds.first; d; d = d->next) {
        require(d->at.at.lo <= src->len);
    }
    text_init(&out, mem);
    ast_print(&m, &out);
    render(&ds, mem);
}

static void expression(const source *src, arena *mem)
{
    intern names;
    diags ds;
    ast *e = NULL;
    intern_init(&names, mem);
    diags_init(&ds, mem);
    bool ok = parse_expression(src, mem, &names, &ds, &e);
    require(ok == (ds.errors == 0) && ok == (e != NULL));
    render(&ds, mem);
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
    arena_init(&mem, (size_t)256 << 20, &oom);
    if (setjmp(oom) == 0) {
        module(&src, &mem);
        expression(&src, &mem);
    }
    arena_fini(&mem);
    free(text);
    return 0;
}
