// The text form through its parser, the verifier, the scheduler and the container. What parses
// prints to a text that comes back the same; what verifies is placed or refused with a diagnostic;
// what is placed verifies again and survives the file.
#include "neff/neff.h"
#include "sched/place.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static const char *print(const ir *p, arena *mem)
{
    textbuf out;
    text_init(&out, mem);
    ir_print(p, &out);
    return out.at;
}

static void pass_through(const char *text, size_t size, arena *mem)
{
    const char *err = NULL;
    ir *p = ir_parse(mem, text, size, &err);
    require(!p == (err != NULL));
    if (!p || ir_verify(p, mem)) {
        return;
    }
    const char *once = print(p, mem);
    ir *q = ir_parse(mem, once, strlen(once), &err);
    require(q && !ir_verify(q, mem));
    require(strcmp(print(q, mem), once) == 0);

    diags ds;
    diags_init(&ds, mem);
    program *pr = schedule(mem, p, NULL, &ds);
    require(!pr == (ds.errors != 0));
    if (!pr) {
        return;
    }
    require(!ir_verify(pr->ir, mem));
    size_t len = 0;
    unsigned char *file = neff_write(pr, &len);
    if (!file) {
        return;
    }
    unsigned char *own = NEW_N(mem, unsigned char, len);
    memcpy(own, file, len);
    free(file);
    program *back = NULL;
    require(neff_read(mem, own, len, &back, &err) == NKI_OK);
    require(strcmp(print(back->ir, mem), print(pr->ir, mem)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena mem;
    jmp_buf oom;
    arena_init(&mem, (size_t)64 << 20, &oom);
    if (!setjmp(oom)) {
        pass_through((const char *)data, size, &mem);
    }
    arena_fini(&mem);
    return 0;
}
