#include "neff/layout.h"
#include "neff/neff.h"

#include <inttypes.h>
#include <string.h>

// Nothing of the file is believed before it is checked: the header's own fields, its checksum, the
// body's checksum, then each section against the layout that its lengths imply, then the records
// (ir_verify). Sections whose records are this machine's arrays are used where they lie.

typedef struct reader {
    arena *mem;
    const unsigned char *bytes;
    size_t len;
    neff_header h;
    ir *p;
    program *pr;
    const char **err;
} reader;

#define FAIL(r, ...) (*(r)->err = arena_printf((r)->mem, __VA_ARGS__), false)

static bool check_header(reader *r)
{
    if (r->len < NEFF_HEADER_BYTES) {
        return FAIL(r, "the file ends at byte %zu, inside the header of %d bytes at offset 0",
                    r->len, NEFF_HEADER_BYTES);
    }
    memcpy(&r->h, r->bytes, sizeof r->h);
    const neff_header *h = &r->h;
    if (memcmp(h->magic, NEFF_MAGIC, sizeof h->magic) != 0) {
        return FAIL(r, "offset 0 (magic): this is not a NEFF of nki");
    }
    if (h->version != NEFF_VERSION) {
        return FAIL(r, "offset 8 (version): %" PRIu32 "; this tool reads version %d", h->version,
                    NEFF_VERSION);
    }
    if (h->header_bytes != NEFF_HEADER_BYTES) {
        return FAIL(r, "offset 12 (header_bytes): %" PRIu32 ", not %d", h->header_bytes,
                    NEFF_HEADER_BYTES);
    }
    if (h->file_bytes != r->len) {
        return FAIL(r, "offset 16 (file_bytes): %" PRIu64 ", but the file has %zu bytes",
                    h->file_bytes, r->len);
    }
    if (neff_header_hash(h) != h->header_xxh3) {
        return FAIL(r, "offset 32 (header_xxh3): the header's bytes are damaged");
    }
    if (h->tables_xxh3 != neff_tables_hash()) {
        return FAIL(r,
                    "offset 80 (tables_xxh3): written by another version of the tool; compile the "
                    "kernel again");
    }
    if (h->nsections != SEC_COUNT) {
        return FAIL(r, "offset 40 (nsections): %" PRIu32 ", not %d", h->nsections, SEC_COUNT);
    }
    const target *t = target_by_gen(h->gen <= 16 ? (int)h->gen : 0);
    if (!t) {
        return FAIL(r, "offset 44 (gen): no target of generation %" PRIu32, h->gen);
    }
    if (h->sbuf_peak_bytes > t->sbuf_partition_bytes) {
        return FAIL(r, "offset 64 (sbuf_peak_bytes): %" PRIu32 ", more than %s has",
                    h->sbuf_peak_bytes, t->name);
    }
    if (h->psum_peak_bytes > t->psum_partition_bytes) {
        return FAIL(r, "offset 68 (psum_peak_bytes): %" PRIu32 ", more than %s has",
                    h->psum_peak_bytes, t->name);
    }
    return true;
}

static bool check_zero(reader *r)
{
    if (r->h.flags & ~(uint32_t)NEFF_FP32_STORE) {
        return FAIL(r, "offset %zu (flags): not known: %#" PRIx32, offsetof(neff_header, flags),
                    r->h.flags);
    }
    for (size_t i = 0; i < sizeof r->h.reserved; i++) {
        if (r->h.reserved[i]) {
            return FAIL(r, "offset %zu (reserved): not zero", offsetof(neff_header, reserved) + i);
        }
    }
    static const neff_section none;
    for (int i = SEC_COUNT; i < NEFF_MAX_SECTIONS; i++) {
        if (memcmp(&r->h.section[i], &none, sizeof none) != 0) {
            return FAIL(r, "offset %zu (section %d): not zero",
                        offsetof(neff_header, section) + (size_t)i * sizeof none, i);
        }
    }
    return true;
}

static bool check_section(reader *r, int id, uint64_t end)
{
    const neff_section *s = &r->h.section[id];
    size_t field = offsetof(neff_header, section) + (size_t)id * sizeof *s;
    const char *name = neff_section_name[id];
    if (s->id != (uint32_t)id || s->zero) {
        return FAIL(r, "offset %zu (section %s, id): %" PRIu32 ", not %d", field + 24, name, s->id,
                    id);
    }
    if (s->record != neff_section_record[id]) {
        return FAIL(r, "offset %zu (section %s, record): %" PRIu32 " bytes, not %" PRIu32,
                    field + 16, name, s->record, neff_section_record[id]);
    }
    if (s->length != (uint64_t)s->record * s->count) {
        return FAIL(r,
                    "offset %zu (section %s, length): %" PRIu64 " bytes for %" PRIu32
                    " records of %" PRIu32,
                    field + 8, name, s->length, s->count, s->record);
    }
    uint64_t want = end + neff_filler_bytes(end, s->length) + TAR_BLOCK;
    if (s->offset != want) {
        return FAIL(r, "offset %zu (section %s, offset): %" PRIu64 ", not %" PRIu64, field, name,
                    s->offset, want);
    }
    if (s->offset > r->len || neff_padded(s->length) > r->len - s->offset) {
        return FAIL(r,
                    "offset %zu (section %s, length): %" PRIu64 " bytes at %" PRIu64
                    " pass the end of the file",
                    field + 8, name, s->length, s->offset);
    }
    unsigned char head[TAR_BLOCK];
    tar_header(head, name, s->length, '0');
    if (memcmp(head, r->bytes + s->offset - TAR_BLOCK, TAR_BLOCK) != 0) {
        return FAIL(r, "offset %" PRIu64 " (tar header of %s): not what section %s needs",
                    s->offset - TAR_BLOCK, name, name);
    }
    return true;
}

static bool check_body(reader *r)
{
    uint64_t end = NEFF_HEADER_BYTES;
    for (int id = 0; id < SEC_COUNT; id++) {
        if (!check_section(r, id, end)) {
            return false;
        }
        end = r->h.section[id].offset + neff_padded(r->h.section[id].length);
    }
    if (r->len - end != 2 * TAR_BLOCK) {
        return FAIL(r, "offset %" PRIu64 " (end of the tar): %" PRIu64 " bytes follow, not %d", end,
                    r->len - end, 2 * TAR_BLOCK);
    }
    if (neff_hash(r->bytes + NEFF_HEADER_BYTES, r->len - NEFF_HEADER_BYTES) != r->h.body_xxh3) {
        return FAIL(r, "offset 24 (body_xxh3): the bytes from %d on are damaged",
                    NEFF_HEADER_BYTES);
    }
    return true;
}

// The records of a section, where they lie when the file's bytes are aligned, else a copy.
static void *records(reader *r, int id)
{
    const neff_section *s = &r->h.section[id];
    if (!s->length) {
        return NULL;
    }
    const unsigned char *at = r->bytes + s->offset;
    if ((uintptr_t)at % _Alignof(max_align_t) == 0) {
        return (void *)(uintptr_t)at;  // never written: a loaded program is not changed
    }
    void *copy = arena_alloc(r->mem, 1, _Alignof(max_align_t), s->length);
    memcpy(copy, at, s->length);
    return copy;
}

#define TAKE(r, v, id) ((v)->at = records((r), (id)), (v)->n = (v)->cap = (r)->h.section[id].count)

static bool take_strs(reader *r)
{
    const neff_section *s = &r->h.section[SEC_STRS];
    uint32_t n = r->h.section[SEC_STR_OFFSETS].count;
    const char *text = records(r, SEC_STRS);
    const uint32_t *off = records(r, SEC_STR_OFFSETS);
    if (n == 0 || s->length == 0 || text[s->length - 1]) {
        return FAIL(r, "offset %" PRIu64 " (strs): does not end with a zero byte", s->offset);
    }
    r->p->strs.at = NEW_N(r->mem, const char *, n);
    r->p->strs.n = r->p->strs.cap = n;
    for (uint32_t i = 0; i < n; i++) {
        bool good =
            i == 0 ? off[0] == 0 : off[i] > off[i - 1] && off[i] < s->length && !text[off[i] - 1];
        if (!good) {
            return FAIL(
                r, "offset %" PRIu64 " (str_offsets): record %" PRIu32 " does not begin a string",
                r->h.section[SEC_STR_OFFSETS].offset + 4 * (uint64_t)i, i);
        }
        r->p->strs.at[i] = text + off[i];
    }
    return true;
}

static bool take_files(reader *r)
{
    uint32_t n = r->h.section[SEC_FILES].count;
    uint64_t text_len = r->h.section[SEC_TEXT].length;
    const neff_file *f = records(r, SEC_FILES);
    const char *text = records(r, SEC_TEXT);
    r->p->files.at = NEW_N(r->mem, ir_file, n);
    r->p->files.n = r->p->files.cap = n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = r->h.section[SEC_FILES].offset + i * sizeof *f;
        if (f[i].name >= r->p->strs.n || f[i].has_text > 1) {
            return FAIL(r, "offset %" PRIu64 " (files): record %" PRIu32 " has no name", at, i);
        }
        r->p->files.at[i].name = f[i].name;
        if (!f[i].has_text) {
            continue;
        }
        if (f[i].text >= text_len || f[i].text_len >= text_len - f[i].text ||
            text[f[i].text + f[i].text_len]) {
            return FAIL(r,
                        "offset %" PRIu64 " (files): the text of record %" PRIu32
                        " is not in section text",
                        at, i);
        }
        source *src = NEW(r->mem, source);
        *src = (source){ir_text(r->p, f[i].name), text + f[i].text, f[i].text_len};
        r->p->files.at[i].src = src;
    }
    return true;
}

static bool take_streams(reader *r)
{
    const neff_section *s = &r->h.section[SEC_STREAMS];
    if (s->count != STREAM_COUNT + 1) {
        return FAIL(r, "offset %" PRIu64 " (streams): %" PRIu32 " records, not %d", s->offset,
                    s->count, STREAM_COUNT + 1);
    }
    memcpy(r->pr->stream_first, records(r, SEC_STREAMS), sizeof r->pr->stream_first);
    return true;
}

static bool take_sections(reader *r)
{
    ir *p = r->p = NEW(r->mem, ir);
    program *pr = r->pr = NEW(r->mem, program);
    pr->ir = p;
    pr->hbm_bytes = r->h.hbm_bytes;
    pr->sbuf_peak_bytes = r->h.sbuf_peak_bytes;
    pr->psum_peak_bytes = r->h.psum_peak_bytes;
    pr->spills = (spill_count){r->h.spill_stores, r->h.spill_loads, r->h.spill_bytes};
    p->mem = r->mem;
    p->target = target_by_gen((int)r->h.gen);
    p->kernel = r->h.kernel;
    p->grid = r->h.grid;
    p->core = r->h.core;
    p->registers = r->h.registers;
    p->fp32_store = r->h.flags & NEFF_FP32_STORE;
    if (!take_strs(r) || !take_files(r)) {
        return false;
    }
    TAKE(r, &p->instrs, SEC_INSTRS);
    TAKE(r, &p->args, SEC_ARGS);
    TAKE(r, &p->views, SEC_VIEWS);
    TAKE(r, &p->forms, SEC_FORMS);
    TAKE(r, &p->aps, SEC_APS);
    TAKE(r, &p->dims, SEC_DIMS);
    TAKE(r, &p->dyns, SEC_DYNS);
    TAKE(r, &p->tensors, SEC_TENSORS);
    TAKE(r, &p->places, SEC_PLACES);
    TAKE(r, &p->deps, SEC_DEPS);
    TAKE(r, &p->params, SEC_PARAMS);
    TAKE(r, &p->outputs, SEC_OUTPUTS);
    TAKE(r, &p->blob, SEC_BLOB);
    TAKE(r, &pr->slots, SEC_SLOTS);
    TAKE(r, &pr->syncs, SEC_SYNCS);
    TAKE(r, &pr->semaphores, SEC_SEMAPHORES);
    TAKE(r, &pr->dmas, SEC_DMAS);
    if (!take_streams(r)) {
        return false;
    }
    const char *why = ir_verify(p, r->mem);
    return !why || FAIL(r, "section instrs and its tables: %s", why);
}

static bool bad_record(reader *r, int id, uint32_t i)
{
    const neff_section *s = &r->h.section[id];
    return FAIL(r, "offset %" PRIu64 " (%s): record %" PRIu32 " is out of range",
                s->offset + (uint64_t)i * s->record, neff_section_name[id], i);
}

// Ranges only: that the semaphores order the program is the scheduler's to prove.
static bool check_streams(reader *r)
{
    const program *pr = r->pr;
    for (uint32_t s = 0; s <= STREAM_COUNT; s++) {
        uint32_t lowest = s ? pr->stream_first[s - 1] : 0;
        uint32_t at = pr->stream_first[s];
        if (at < lowest || at > pr->slots.n || (s == 0 && at) ||
            (s == STREAM_COUNT && at != pr->slots.n)) {
            return bad_record(r, SEC_STREAMS, s);
        }
    }
    for (uint32_t i = 0; i < pr->slots.n; i++) {
        const queue_slot *q = &pr->slots.at[i];
        if (q->instr >= r->p->instrs.n || q->sync > pr->syncs.n ||
            q->nsync > pr->syncs.n - q->sync) {
            return bad_record(r, SEC_SLOTS, i);
        }
    }
    for (uint32_t i = 0; i < pr->syncs.n; i++) {
        const sync_op *o = &pr->syncs.at[i];
        if (o->kind >= SYNC_KIND_COUNT || o->pad || o->semaphore >= pr->semaphores.n) {
            return bad_record(r, SEC_SYNCS, i);
        }
    }
    for (uint32_t i = 0; i < pr->semaphores.n; i++) {
        const semaphore_info *m = &pr->semaphores.at[i];
        if (m->producer >= STREAM_COUNT || m->consumer >= STREAM_COUNT || m->pad) {
            return bad_record(r, SEC_SEMAPHORES, i);
        }
    }
    for (uint32_t i = 0; i < pr->dmas.n; i++) {
        const dma_info *d = &pr->dmas.at[i];
        if (d->instr >= r->p->instrs.n || r->p->instrs.at[d->instr].engine != ENG_DMA ||
            (i && d->instr <= d[-1].instr) || d->ring >= DMA_RINGS || d->trigger >= ENG_COUNT ||
            d->priority > 3 || d->pad || !isa_enum_member(ISA_ENUM_dge_mode, d->dge)) {
            return bad_record(r, SEC_DMAS, i);
        }
    }
    return true;
}

// Whatever an instruction touches has an address, and HBM's lie in the segment.
static bool check_placed(reader *r, uint32_t view)
{
    const ir *p = r->p;
    const ir_view *v = ir_view_ref(p, view);
    const ir_tensor *t = &p->tensors.at[v->tensor];
    if (v->dyn && p->dyns.at[v->dyn].kind != DYN_REG && !check_placed(r, p->dyns.at[v->dyn].src)) {
        return false;
    }
    if (t->role == ROLE_ARG) {
        return true;
    }
    bool hbm = !buffer_on_chip((buffer_kind)t->buffer);
    if (t->addr_bytes == ADDR_AUTO || (hbm && (t->addr_bytes > r->h.hbm_bytes ||
                                               t->size_bytes > r->h.hbm_bytes - t->addr_bytes))) {
        return FAIL(r, "offset %" PRIu64 " (tensors): record %" PRIu32 " is used but has no place",
                    r->h.section[SEC_TENSORS].offset + v->tensor * sizeof *t, v->tensor);
    }
    return true;
}

static bool check_program(reader *r)
{
    const ir *p = r->p;
    if (!check_streams(r)) {
        return false;
    }
    uint8_t *used = NEW_N(r->mem, uint8_t, p->views.n);
    for (uint32_t i = 0; i < p->args.n; i++) {
        if (p->args.at[i].kind == IRA_VIEW) {
            used[p->args.at[i].v] = 1;
        }
    }
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        used[p->outputs.at[i]] = 1;
    }
    for (uint32_t i = 0; i < p->views.n; i++) {
        if (used[i] && !check_placed(r, i)) {
            return false;
        }
    }
    return true;
}

static bool has_header(const unsigned char *bytes, size_t len)
{
    return len >= NEFF_HEADER_BYTES && memcmp(bytes, NEFF_MAGIC, sizeof(NEFF_MAGIC) - 1) == 0;
}

size_t neff_file_bytes(const unsigned char *bytes)
{
    uint64_t n;
    memcpy(&n, bytes + offsetof(neff_header, file_bytes), sizeof n);
    return (size_t)n;
}

uint32_t neff_parts(const unsigned char *bytes, size_t len, uint32_t max)
{
    uint32_t n = 1;
    while (n < max && has_header(bytes, len)) {
        size_t part = neff_file_bytes(bytes);
        if (part < NEFF_HEADER_BYTES || part > len || !has_header(bytes + part, len - part)) {
            break;
        }
        bytes += part;
        len -= part;
        n++;
    }
    return n;
}

const target *neff_target(const unsigned char *bytes, size_t len)
{
    uint32_t gen = 0;
    if (has_header(bytes, len)) {
        memcpy(&gen, bytes + offsetof(neff_header, gen), sizeof gen);
    }
    return target_by_gen(gen <= 16 ? (int)gen : 0);
}

nki_status neff_read(arena *mem, const unsigned char *bytes, size_t len, program **out,
                     const char **err)
{
    reader *r = NEW(mem, reader);
    r->mem = mem;
    r->bytes = bytes;
    r->len = len;
    r->err = err;
    *out = NULL;
    *err = NULL;
    if (!check_header(r) || !check_zero(r) || !check_body(r) || !take_sections(r) ||
        !check_program(r)) {
        return NKI_ERR_FORMAT;
    }
    *out = r->pr;
    return NKI_OK;
}
