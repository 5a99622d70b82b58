#include "neff/layout.h"
#include "neff/neff.h"

#include <stdlib.h>
#include <string.h>

// Writing is two steps: the length of every section is known from the program, so the layout comes
// first, then one allocation, then the bytes. Padding inside records is written as zero.

typedef struct writer {
    const program *pr;
    arena *mem;
    textbuf json;
    unsigned char *out;
    neff_header h;
} writer;

static uint64_t strs_bytes(const ir *p)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->strs.n; i++) {
        n += strlen(p->strs.at[i]) + 1;
    }
    return n;
}

static uint64_t text_bytes(const ir *p)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->files.n; i++) {
        n += p->files.at[i].src ? (uint64_t)p->files.at[i].src->len + 1 : 0;
    }
    return n;
}

static uint64_t count_of(const writer *w, int id)
{
    const ir *p = w->pr->ir;
    switch ((neff_section_id)id) {
    case SEC_JSON: return w->json.len;
    case SEC_STRS: return strs_bytes(p);
    case SEC_STR_OFFSETS: return p->strs.n;
    case SEC_INSTRS: return p->instrs.n;
    case SEC_ARGS: return p->args.n;
    case SEC_VIEWS: return p->views.n;
    case SEC_FORMS: return p->forms.n;
    case SEC_APS: return p->aps.n;
    case SEC_DIMS: return p->dims.n;
    case SEC_DYNS: return p->dyns.n;
    case SEC_TENSORS: return p->tensors.n;
    case SEC_PLACES: return p->places.n;
    case SEC_FILES: return p->files.n;
    case SEC_TEXT: return text_bytes(p);
    case SEC_DEPS: return p->deps.n;
    case SEC_PARAMS: return p->params.n;
    case SEC_OUTPUTS: return p->outputs.n;
    case SEC_BLOB: return p->blob.n;
    case SEC_STREAMS: return STREAM_COUNT + 1;
    case SEC_SLOTS: return w->pr->slots.n;
    case SEC_SYNCS: return w->pr->syncs.n;
    case SEC_SEMAPHORES: return w->pr->semaphores.n;
    case SEC_DMAS: return w->pr->dmas.n;
    case SEC_COUNT: break;
    }
    return 0;
}

// Offsets and lengths. false: a section is too long for its format.
static bool lay_out(writer *w)
{
    uint64_t at = NEFF_HEADER_BYTES;
    for (int id = 0; id < SEC_COUNT; id++) {
        uint64_t count = count_of(w, id), length = count * neff_section_record[id];
        if (count > UINT32_MAX || length > TAR_MAX_BYTES) {
            return false;
        }
        at += neff_filler_bytes(at, length) + TAR_BLOCK;
        w->h.section[id] =
            (neff_section){at, length, neff_section_record[id], (uint32_t)count, (uint32_t)id, 0};
        at += neff_padded(length);
    }
    w->h.file_bytes = at + 2 * TAR_BLOCK;  // two blocks of zeros end a tar
    return true;
}

static void put_tensors(const ir *p, unsigned char *out)
{
    for (uint32_t i = 0; i < p->tensors.n; i++) {
        const ir_tensor *t = &p->tensors.at[i];
        ir_tensor d;
        memset(&d, 0, sizeof d);
        d.name = t->name;
        d.place = t->place;
        d.dtype = t->dtype;
        d.buffer = t->buffer;
        d.role = t->role;
        d.ndim = t->ndim;
        d.manual = t->manual;
        d.fill = t->fill;
        d.partitions = t->partitions;
        memcpy(d.shape, t->shape, t->ndim * sizeof *d.shape);
        d.size_bytes = t->size_bytes;
        d.addr_part = t->addr_part;
        d.shared = t->shared;
        d.addr_bytes = t->addr_bytes;
        d.data = t->data;
        d.param = t->param;
        memcpy(out + i * sizeof d, &d, sizeof d);
    }
}

static void put_forms(const ir *p, unsigned char *out)
{
    for (uint32_t i = 0; i < p->forms.n; i++) {
        ir_form f = p->forms.at[i];
        f.pad = 0;
        f.pad2 = 0;
        memcpy(out + i * sizeof f, &f, sizeof f);
    }
}

static void put_args(const ir *p, unsigned char *out)
{
    for (uint32_t i = 0; i < p->args.n; i++) {
        ir_arg a = p->args.at[i];
        a.pad = 0;
        memcpy(out + i * sizeof a, &a, sizeof a);
    }
}

static void put_dyns(const ir *p, unsigned char *out)
{
    for (uint32_t i = 0; i < p->dyns.n; i++) {
        ir_dyn d = p->dyns.at[i];
        d.pad = 0;
        memcpy(out + i * sizeof d, &d, sizeof d);
    }
}

static void put_dims(const ir *p, unsigned char *out)
{
    for (uint32_t i = 0; i < p->dims.n; i++) {
        ir_dim d = p->dims.at[i];
        d.pad = 0;
        memcpy(out + i * sizeof d, &d, sizeof d);
    }
}

static void put_places(const ir *p, unsigned char *out)
{
    for (uint32_t i = 0; i < p->places.n; i++) {
        ir_place d = p->places.at[i];
        memset(d.pad, 0, sizeof d.pad);
        memcpy(out + i * sizeof d, &d, sizeof d);
    }
}

static void put_strs(const ir *p, unsigned char *bytes, unsigned char *offsets)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->strs.n; i++) {
        size_t n = strlen(p->strs.at[i]) + 1;
        memcpy(offsets + i * sizeof at, &at, sizeof at);
        memcpy(bytes + at, p->strs.at[i], n);
        at += (uint32_t)n;
    }
}

static void put_files(const ir *p, unsigned char *files, unsigned char *text)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->files.n; i++) {
        const source *src = p->files.at[i].src;
        neff_file f = {p->files.at[i].name, 0, 0, src != NULL};
        if (src) {
            f.text = at;
            f.text_len = src->len;
            memcpy(text + at, src->text, src->len);
            at += src->len + 1;
        }
        memcpy(files + i * sizeof f, &f, sizeof f);
    }
}

static void put_plain(writer *w, int id, const void *at)
{
    const neff_section *s = &w->h.section[id];
    if (s->length) {
        memcpy(w->out + s->offset, at, s->length);
    }
}

static void put_sections(writer *w)
{
    const ir *p = w->pr->ir;
    const neff_section *s = w->h.section;
    put_plain(w, SEC_JSON, w->json.at);
    put_strs(p, w->out + s[SEC_STRS].offset, w->out + s[SEC_STR_OFFSETS].offset);
    put_plain(w, SEC_INSTRS, p->instrs.at);
    put_args(p, w->out + s[SEC_ARGS].offset);
    put_plain(w, SEC_VIEWS, p->views.at);
    put_forms(p, w->out + s[SEC_FORMS].offset);
    put_plain(w, SEC_APS, p->aps.at);
    put_dims(p, w->out + s[SEC_DIMS].offset);
    put_dyns(p, w->out + s[SEC_DYNS].offset);
    put_tensors(p, w->out + s[SEC_TENSORS].offset);
    put_places(p, w->out + s[SEC_PLACES].offset);
    put_files(p, w->out + s[SEC_FILES].offset, w->out + s[SEC_TEXT].offset);
    put_plain(w, SEC_DEPS, p->deps.at);
    put_plain(w, SEC_PARAMS, p->params.at);
    put_plain(w, SEC_OUTPUTS, p->outputs.at);
    put_plain(w, SEC_BLOB, p->blob.at);
    put_plain(w, SEC_STREAMS, w->pr->stream_first);
    put_plain(w, SEC_SLOTS, w->pr->slots.at);
    put_plain(w, SEC_SYNCS, w->pr->syncs.at);
    put_plain(w, SEC_SEMAPHORES, w->pr->semaphores.at);
    put_plain(w, SEC_DMAS, w->pr->dmas.at);
}

static void put_tar(writer *w)
{
    uint64_t end = NEFF_HEADER_BYTES;
    for (int id = 0; id < SEC_COUNT; id++) {
        const neff_section *s = &w->h.section[id];
        uint64_t filler = neff_filler_bytes(end, s->length);
        if (filler) {
            tar_filler(w->out + end, filler);
        }
        tar_header(w->out + s->offset - TAR_BLOCK, neff_section_name[id], s->length, '0');
        end = s->offset + neff_padded(s->length);
    }
}

static void put_header(writer *w)
{
    const program *pr = w->pr;
    neff_header *h = &w->h;
    memcpy(h->magic, NEFF_MAGIC, sizeof h->magic);
    h->version = NEFF_VERSION;
    h->header_bytes = NEFF_HEADER_BYTES;
    h->nsections = SEC_COUNT;
    h->gen = (uint32_t)pr->ir->target->gen;
    h->grid = pr->ir->grid;
    h->core = pr->ir->core;
    h->registers = pr->ir->registers;
    h->kernel = pr->ir->kernel;
    h->flags = pr->ir->fp32_store ? NEFF_FP32_STORE : 0;
    h->sbuf_peak_bytes = pr->sbuf_peak_bytes;
    h->psum_peak_bytes = pr->psum_peak_bytes;
    h->hbm_bytes = pr->hbm_bytes;
    h->spill_stores = pr->spills.stores;
    h->spill_loads = pr->spills.loads;
    h->spill_bytes = pr->spills.bytes;
    h->tables_xxh3 = neff_tables_hash();
    h->body_xxh3 = neff_hash(w->out + NEFF_HEADER_BYTES, h->file_bytes - NEFF_HEADER_BYTES);
    h->header_xxh3 = neff_header_hash(h);
    memcpy(w->out, h, sizeof *h);
}

unsigned char *neff_write(const program *pr, size_t *len_bytes)
{
    arena mem;
    jmp_buf oom;
    arena_init(&mem, 0, &oom);
    if (setjmp(oom)) {
        arena_fini(&mem);
        return NULL;
    }
    writer *w = NEW(&mem, writer);
    w->pr = pr;
    w->mem = &mem;
    text_init(&w->json, &mem);
    neff_json(pr, &w->json);
    unsigned char *out = NULL;
    if (lay_out(w)) {
        out = calloc(1, w->h.file_bytes);
    }
    if (out) {
        w->out = out;
        put_sections(w);
        put_tar(w);
        put_header(w);
        *len_bytes = w->h.file_bytes;
    }
    arena_fini(&mem);
    return out;
}
