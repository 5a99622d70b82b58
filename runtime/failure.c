#include "runtime/queue.h"

#include <stdlib.h>
#include <string.h>

// What a failure becomes when there is no memory to describe it.
static failure nomem = {.st = NKI_ERR_NOMEM};

failure *failure_nomem(void)
{
    return &nomem;
}

failure *failure_create(nki_status st, nki_diags *ds, const char *text)
{
    size_t n = strlen(text) + 1;
    failure *f = st == NKI_ERR_NOMEM ? NULL : malloc(sizeof *f + n);
    if (!f) {
        nki_diags_release(ds);
        return failure_nomem();
    }
    atomic_init(&f->refs, 1);
    f->st = st;
    f->serial = 0;
    f->ds = ds;
    memcpy(f->text, text, n);
    return f;
}

failure *failure_retain(failure *f)
{
    if (f && f != &nomem) {
        atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    }
    return f;
}

void failure_release(failure *f)
{
    if (f && f != &nomem && atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1) {
        nki_diags_release(f->ds);
        free(f);
    }
}

nki_status failure_report(nki_context *ctx, const failure *f, nki_diags *ds)
{
    if (!f) {
        return NKI_OK;
    }
    const char *text = f == &nomem ? "out of memory" : f->text;
    diag_store_append(ds, f->ds);
    return context_fail(ctx, f->st, "%s", text);
}
