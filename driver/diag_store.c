#include "driver/diag_store.h"

#include <stdlib.h>
#include <string.h>

struct nki_diags {
    arena mem;      // the diagnostics and their sources
    arena scratch;  // the last rendering
    jmp_buf oom;
    diags ds;
    size_t count;
    unsigned kept[2];  // errors, warnings; at most ds.limit of each
};

static void reset(nki_diags *d)
{
    diags_init(&d->ds, &d->mem);
    d->count = 0;
    d->kept[0] = d->kept[1] = 0;
}

nki_status nki_diags_create(nki_diags **out)
{
    if (!out) {
        return NKI_ERR_ARG;
    }
    nki_diags *d = calloc(1, sizeof *d);
    *out = d;
    if (!d) {
        return NKI_ERR_NOMEM;
    }
    arena_init(&d->mem, 0, &d->oom);
    arena_init(&d->scratch, 0, &d->oom);
    reset(d);
    return NKI_OK;
}

void nki_diags_clear(nki_diags *d)
{
    if (d) {
        arena_fini(&d->mem);
        arena_fini(&d->scratch);
        reset(d);
    }
}

void nki_diags_release(nki_diags *d)
{
    if (d) {
        arena_fini(&d->mem);
        arena_fini(&d->scratch);
        free(d);
    }
}

// A source is copied once however many diagnostics of one take point into it.
typedef struct source_copy {
    struct source_copy *next;
    const source *from;
    source to;
} source_copy;

static loc copy_loc(nki_diags *d, source_copy **copies, loc at)
{
    if (!at.src) {
        return at;
    }
    source_copy *c = *copies;
    while (c && c->from != at.src) {
        c = c->next;
    }
    if (!c) {
        c = NEW(&d->mem, source_copy);
        c->from = at.src;
        c->to = (source){arena_text(&d->mem, at.src->name, strlen(at.src->name)),
                         arena_text(&d->mem, at.src->text, at.src->len), at.src->len};
        c->next = *copies;
        *copies = c;
    }
    return (loc){&c->to, at.at};
}

static const char *copy_text(nki_diags *d, const char *s)
{
    return s ? arena_text(&d->mem, s, strlen(s)) : NULL;
}

static void take(nki_diags *d, const diags *src)
{
    source_copy *copies = NULL;
    for (const diag *o = src->first; o; o = o->next) {
        if (d->kept[o->sev != SEV_ERROR]++ >= d->ds.limit) {
            continue;
        }
        diag *n = NEW(&d->mem, diag);
        n->id = o->id;
        n->sev = o->sev;
        n->at = copy_loc(d, &copies, o->at);
        n->text = copy_text(d, o->text);
        n->help = copy_text(d, o->help);
        n->notes_tail = &n->notes;
        for (const diag_note *on = o->notes; on; on = on->next) {
            diag_note *nn = NEW(&d->mem, diag_note);
            nn->at = copy_loc(d, &copies, on->at);
            nn->text = copy_text(d, on->text);
            *n->notes_tail = nn;
            n->notes_tail = &nn->next;
        }
        *d->ds.tail = n;
        d->ds.tail = &n->next;
        d->count++;
    }
    d->ds.errors += src->errors;
    d->ds.warnings += src->warnings;
}

nki_status diag_store_take(nki_diags *d, const diags *src)
{
    if (!d || (!src->first && !src->errors)) {
        return NKI_OK;
    }
    if (setjmp(d->oom)) {
        return NKI_ERR_NOMEM;
    }
    take(d, src);
    return NKI_OK;
}

nki_status diag_store_append(nki_diags *d, const nki_diags *from)
{
    return from && from != d ? diag_store_take(d, &from->ds) : NKI_OK;
}

bool diag_store_policy(diag_policy *policy, const char *word)
{
    if (strcmp(word, "error") == 0) {
        policy->all_errors = true;
        return true;
    }
    static const struct {
        const char *prefix;
        signed char value;
    } forms[] = {{"error=", 2}, {"no-", -1}, {"", 1}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t n = strlen(forms[i].prefix);
        if (strncmp(word, forms[i].prefix, n) == 0) {
            diag_id id = diag_find(word + n);
            if (id == D_COUNT || diag_severity(id) != SEV_WARNING) {
                return false;
            }
            policy->warn[id] = forms[i].value;
            return true;
        }
    }
    return false;
}

size_t nki_diags_errors(const nki_diags *d)
{
    return d ? d->ds.errors : 0;
}

size_t nki_diags_warnings(const nki_diags *d)
{
    return d ? d->ds.warnings : 0;
}

size_t nki_diags_count(const nki_diags *d)
{
    return d ? d->count : 0;
}

nki_status nki_diags_at(const nki_diags *d, size_t i, nki_diag *out)
{
    if (!d || !out || i >= d->count) {
        return NKI_ERR_ARG;
    }
    const diag *o = d->ds.first;
    for (; i; i--) {
        o = o->next;
    }
    *out = (nki_diag){.severity = (nki_severity)o->sev,
                      .name = diag_name(o->id),
                      .text = o->text,
                      .help = o->help};
    if (o->at.src) {
        linecol lc = source_locate(o->at.src, o->at.at.lo);
        out->path = o->at.src->name;
        out->line = lc.line;
        out->col = lc.col;
    }
    return NKI_OK;
}

nki_status nki_diags_render(nki_diags *d, nki_diag_format format, int color, const char **out)
{
    if (!d || !out) {
        return NKI_ERR_ARG;
    }
    *out = "";
    arena_fini(&d->scratch);
    if (setjmp(d->oom)) {
        return NKI_ERR_NOMEM;
    }
    textbuf t;
    text_init(&t, &d->scratch);
    diags_render(&d->ds, (diag_format)format, color != 0, &t);
    *out = t.len ? t.at : "";
    return NKI_OK;
}
