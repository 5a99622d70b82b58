#include "sched/program_text.h"

#include <inttypes.h>
#include <string.h>

// ---- printing

static const struct {
    const char *word, *relation;
} sync_text[SYNC_KIND_COUNT] = {
    [SYNC_WAIT] = {"wait", ">="},        [SYNC_SIGNAL] = {"signal", "+="},
    [SYNC_CREDIT] = {"credit", "+="},    [SYNC_TAKE] = {"take", "-="},
    [SYNC_DRAIN_WAIT] = {"drain", ">="}, [SYNC_DRAIN] = {"drain", "-="},
};

static void print_sync(const sync_op *o, textbuf *out)
{
    if (o->kind < SYNC_KIND_COUNT) {
        text_printf(out, " %s s%u%s%" PRIu32, sync_text[o->kind].word, o->semaphore,
                    sync_text[o->kind].relation, o->value);
    }
}

static void print_slot(const program *pr, const queue_slot *q, uint32_t *depth, textbuf *out)
{
    const ir_instr *in = &pr->ir->instrs.at[q->instr];
    if (in->op == ISA_loop_end && *depth) {
        --*depth;
    }
    text_printf(out, "  %*s@%" PRIu32 " %s", (int)(2 * *depth), "", q->instr,
                isa_table[in->op].name);
    if (in->op == ISA_loop_for || in->op == ISA_loop_while) {
        ++*depth;
    }
    for (uint32_t k = 0; k < q->nsync; k++) {
        print_sync(&pr->syncs.at[q->sync + k], out);
    }
    text_char(out, '\n');
}

void program_print_streams(const program *pr, textbuf *out)
{
    for (uint32_t k = 0; k < pr->semaphores.n; k++) {
        const semaphore_info *s = &pr->semaphores.at[k];
        text_printf(out, "semaphore s%" PRIu32 " %s -> %s\n", k, stream_name(s->producer),
                    stream_name(s->consumer));
    }
    for (uint32_t k = 0; k < pr->dmas.n; k++) {
        const dma_info *d = &pr->dmas.at[k];
        text_printf(out,
                    "dma @%" PRIu32 " ring=%s trigger=%s dge=%s engines=0x%04x descriptors=%" PRIu32
                    " bytes=%" PRIu64,
                    d->instr, stream_name((uint32_t)STREAM_RING0 + d->ring) + 4,
                    engine_name((engine_id)d->trigger), isa_enum_member(ISA_ENUM_dge_mode, d->dge),
                    d->engines, d->descriptors, d->bytes);
        if (d->priority) {
            text_printf(out, " priority=%u", d->priority);
        }
        text_char(out, '\n');
    }
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        uint32_t lo = pr->stream_first[s], hi = pr->stream_first[s + 1], depth = 0;
        if (lo == hi) {
            continue;
        }
        text_printf(out, "queue %s %" PRIu32 "\n", stream_name(s), hi - lo);
        for (uint32_t k = lo; k < hi; k++) {
            print_slot(pr, &pr->slots.at[k], &depth, out);
        }
    }
}

void program_print(const program *pr, textbuf *out)
{
    text_printf(out, "memory hbm=%" PRIu64 " sbuf_peak=%" PRIu32 " psum_peak=%" PRIu32 "\n",
                pr->hbm_bytes, pr->sbuf_peak_bytes, pr->psum_peak_bytes);
    text_printf(out, "pairs exact=%" PRIu64 " conservative=%" PRIu64 "\n", pr->pairs_exact,
                pr->pairs_conservative);
    if (pr->spills.stores || pr->spills.loads) {
        text_printf(out, "spills stores=%" PRIu32 " loads=%" PRIu32 " bytes=%" PRIu64 "\n",
                    pr->spills.stores, pr->spills.loads, pr->spills.bytes);
    }
    program_print_streams(pr, out);
}

// ---- parsing

typedef struct reader {
    arena *mem;
    program *pr;
    const char *at, *end;  // of the line
    uint32_t line;
    const char **err;
} reader;

#define FAIL(r, ...)                                                                               \
    (*(r)->err = arena_printf((r)->mem, "line %" PRIu32 ": %s", (r)->line,                         \
                              arena_printf((r)->mem, __VA_ARGS__)),                                \
     false)

// The next characters, for "%.*s".
#define REST(r) (int)((r)->end - (r)->at < 20 ? (r)->end - (r)->at : 20), (r)->at

static bool take(reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) {
        return false;
    }
    r->at += n;
    return true;
}

static bool expect(reader *r, const char *word)
{
    return take(r, word) || FAIL(r, "'%s' expected at '%.*s'", word, REST(r));
}

// A number of at most `most`, in base 10 or, after 0x, 16.
static bool number(reader *r, uint64_t most, uint64_t *out)
{
    unsigned base = take(r, "0x") ? 16 : 10, digits = 0;
    for (*out = 0; r->at < r->end; r->at++, digits++) {
        static const char all[] = "0123456789abcdef";
        const char *at = memchr(all, *r->at, base);
        if (!at) {
            break;
        }
        uint64_t digit = (uint64_t)(at - all);
        if (digit > most || *out > (most - digit) / base) {
            return FAIL(r, "a number of at most %" PRIu64 " expected", most);
        }
        *out = *out * base + digit;
    }
    return digits || FAIL(r, "a number expected at '%.*s'", REST(r));
}

static bool field(reader *r, const char *word, uint64_t most, uint64_t *out)
{
    return expect(r, word) && number(r, most, out);
}

static bool stream(reader *r, const char *prefix, uint32_t *out)
{
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        const char *name = stream_name(s) + strlen(prefix), *at = r->at;
        if (strncmp(stream_name(s), prefix, strlen(prefix)) == 0 && take(r, name) &&
            (r->at == r->end || *r->at == ' ')) {
            *out = s;
            return true;
        }
        r->at = at;
    }
    return FAIL(r, "a stream expected at '%.*s'", REST(r));
}

static bool parse_semaphore(reader *r)
{
    uint64_t k;
    uint32_t from, to;
    if (!number(r, UINT16_MAX, &k) || !expect(r, " ") || !stream(r, "", &from) ||
        !expect(r, " -> ") || !stream(r, "", &to)) {
        return false;
    }
    if (k != r->pr->semaphores.n) {
        return FAIL(r, "semaphore s%" PRIu64 " where s%" PRIu32 " is next", k, r->pr->semaphores.n);
    }
    vec_push(r->mem, &r->pr->semaphores, ((semaphore_info){(uint8_t)from, (uint8_t)to, 0}));
    return true;
}

static bool parse_instr(reader *r, uint64_t *instr)
{
    uint32_t n = r->pr->ir->instrs.n;
    return (n || FAIL(r, "the program has no instructions")) && field(r, "@", n - 1, instr);
}

static bool parse_dge(reader *r, uint8_t *out)
{
    for (int v = 0; v < 16; v++) {
        const char *m = isa_enum_member(ISA_ENUM_dge_mode, v), *at = r->at;
        if (m && take(r, m) && r->at < r->end && *r->at == ' ') {
            *out = (uint8_t)v;
            return true;
        }
        r->at = at;
    }
    return FAIL(r, "a dge mode expected at '%.*s'", REST(r));
}

static bool parse_dma(reader *r)
{
    uint64_t instr, engines, descriptors, bytes, priority = 0;
    uint32_t ring, trigger;
    dma_info d = {0};
    if (!parse_instr(r, &instr) || !expect(r, " ring=") || !stream(r, "DMA.", &ring) ||
        !expect(r, " trigger=") || !stream(r, "", &trigger) || !expect(r, " dge=") ||
        !parse_dge(r, &d.dge) || !field(r, " engines=", UINT16_MAX, &engines) ||
        !field(r, " descriptors=", UINT32_MAX, &descriptors) ||
        !field(r, " bytes=", UINT64_MAX, &bytes) ||
        (r->at < r->end && !field(r, " priority=", 3, &priority))) {
        return false;
    }
    if (trigger >= ENG_COUNT) {
        return FAIL(r, "a transfer is started by an engine");
    }
    d.instr = (uint32_t)instr;
    d.ring = (uint8_t)(ring - STREAM_RING0);
    d.trigger = (uint8_t)trigger;
    d.priority = (uint8_t)priority;
    d.engines = (uint16_t)engines;
    d.descriptors = (uint32_t)descriptors;
    d.bytes = bytes;
    vec_push(r->mem, &r->pr->dmas, d);
    return true;
}

static bool parse_sync(reader *r, sync_op *o)
{
    for (uint8_t k = 0; k < SYNC_KIND_COUNT; k++) {
        const char *at = r->at;
        uint64_t s, v;
        if (take(r, sync_text[k].word) && take(r, " s") && number(r, UINT16_MAX, &s) &&
            take(r, sync_text[k].relation) && number(r, UINT32_MAX, &v)) {
            if (s >= r->pr->semaphores.n) {
                return FAIL(r, "semaphore s%" PRIu64 " does not exist", s);
            }
            *o = (sync_op){k, 0, (uint16_t)s, (uint32_t)v};
            return true;
        }
        r->at = at;
    }
    return FAIL(r, "a semaphore operation expected at '%.*s'", REST(r));
}

static bool parse_slot(reader *r)
{
    uint64_t instr;
    while (take(r, " ")) {
    }
    if (!parse_instr(r, &instr) || !expect(r, " ")) {
        return false;
    }
    const char *name = isa_table[r->pr->ir->instrs.at[instr].op].name;
    if (!take(r, name) || (r->at < r->end && *r->at != ' ')) {
        return FAIL(r, "@%" PRIu64 " is a %s", instr, name);
    }
    queue_slot q = {(uint32_t)instr, r->pr->syncs.n, 0};
    for (; r->at < r->end; q.nsync++) {
        sync_op o;
        if (!expect(r, " ") || !parse_sync(r, &o)) {
            return false;
        }
        vec_push(r->mem, &r->pr->syncs, o);
    }
    vec_push(r->mem, &r->pr->slots, q);
    return true;
}

static bool parse_memory(reader *r)
{
    uint64_t hbm, sbuf, psum;
    if (!field(r, "hbm=", UINT64_MAX, &hbm) || !field(r, " sbuf_peak=", UINT32_MAX, &sbuf) ||
        !field(r, " psum_peak=", UINT32_MAX, &psum)) {
        return false;
    }
    r->pr->hbm_bytes = hbm;
    r->pr->sbuf_peak_bytes = (uint32_t)sbuf;
    r->pr->psum_peak_bytes = (uint32_t)psum;
    return true;
}

static bool parse_spills(reader *r)
{
    uint64_t stores, loads, bytes;
    if (!field(r, "stores=", UINT32_MAX, &stores) || !field(r, " loads=", UINT32_MAX, &loads) ||
        !field(r, " bytes=", UINT64_MAX, &bytes)) {
        return false;
    }
    r->pr->spills = (spill_count){(uint32_t)stores, (uint32_t)loads, bytes};
    return true;
}

// Streams come in ascending order; each says how many slots follow.
static bool parse_queue(reader *r, uint32_t *next, uint64_t *left)
{
    uint32_t s;
    if (!stream(r, "", &s) || !field(r, " ", UINT32_MAX, left)) {
        return false;
    }
    if (s < *next) {
        return FAIL(r, "stream %s comes too late", stream_name(s));
    }
    for (; *next <= s; ++*next) {
        r->pr->stream_first[*next] = r->pr->slots.n;
    }
    return true;
}

static bool parse_line(reader *r, uint32_t *next, uint64_t *left)
{
    program *pr = r->pr;
    if (*left) {
        --*left;
        return parse_slot(r);
    }
    if (take(r, "memory ")) {
        return parse_memory(r);
    }
    if (take(r, "pairs ")) {
        return field(r, "exact=", UINT64_MAX, &pr->pairs_exact) &&
               field(r, " conservative=", UINT64_MAX, &pr->pairs_conservative);
    }
    if (take(r, "spills ")) {
        return parse_spills(r);
    }
    if (take(r, "semaphore s")) {
        return parse_semaphore(r);
    }
    if (take(r, "dma ")) {
        return parse_dma(r);
    }
    return expect(r, "queue ") && parse_queue(r, next, left);
}

program *program_parse(arena *mem, ir *p, const char *text, size_t len, const char **err)
{
    program *pr = NEW(mem, program);
    pr->ir = p;
    reader r = {.mem = mem, .pr = pr, .err = err};
    *err = NULL;
    uint32_t next = 0;
    uint64_t left = 0;
    for (const char *at = text, *end = text + len; at < end; at = r.end + 1) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        r.at = at;
        r.end = stop ? stop : end;
        r.line++;
        if (!parse_line(&r, &next, &left) ||
            (r.at != r.end && !FAIL(&r, "nothing expected at '%.*s'", REST(&r)))) {
            return NULL;
        }
    }
    if (left && !FAIL(&r, "%" PRIu64 " more slots expected", left)) {
        return NULL;
    }
    for (; next <= STREAM_COUNT; next++) {
        pr->stream_first[next] = pr->slots.n;
    }
    return pr;
}
