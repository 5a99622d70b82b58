#include "sched/profile.h"
#include "sched/profile_page.h"

#include <inttypes.h>
#include <math.h>

// One page that needs nothing else: its text around the data, which is a JSON object. Numbers of
// many rows stand in columns. Times of columns are tenths of a nanosecond; those marked so are
// differences to the row before. sched/page/data.js reads it.

typedef struct strings {
    textbuf *out;
    const char **at;  // open addressing
    uint32_t *number;
    uint32_t size, n;
} strings;

typedef struct page {
    const profile *cores;
    uint32_t n;
    textbuf *out;
    strings str;
    // One core's first instruction, place, event, tensor and semaphore among those of all.
    uint32_t ins0[2], place0[2], event0[2], tensor0[2], semaphore0[2];
    uint32_t track_of[2][TRACK_COUNT];  // number in the page; UINT32_MAX: not used
} page;

static int64_t tenths(int64_t ps)
{
    return ps / 100;
}

// ---- a table of the strings that occur

static uint64_t hash(const char *s)
{
    uint64_t h = 14695981039346656037u;
    for (; *s; s++) {
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    }
    return h ^ h >> 29;
}

static void strings_grow(strings *t, arena *mem)
{
    uint32_t size = t->size ? t->size * 2 : 1024;
    const char **at = NEW_N(mem, const char *, size);
    uint32_t *number = NEW_N(mem, uint32_t, size);
    for (uint32_t i = 0; i < t->size; i++) {
        if (t->at[i]) {
            uint64_t h = hash(t->at[i]) & (size - 1);
            while (at[h]) {
                h = (h + 1) & (size - 1);
            }
            at[h] = t->at[i];
            number[h] = t->number[i];
        }
    }
    t->at = at;
    t->number = number;
    t->size = size;
}

// The number of a string; a new one is written to the table's text.
static uint32_t string_of(page *pg, const char *s)
{
    strings *t = &pg->str;
    arena *mem = pg->out->mem;
    if (t->n * 2 >= t->size) {
        strings_grow(t, mem);
    }
    uint64_t h = hash(s) & (t->size - 1);
    for (; t->at[h]; h = (h + 1) & (t->size - 1)) {
        if (strcmp(t->at[h], s) == 0) {
            return t->number[h];
        }
    }
    t->at[h] = arena_text(mem, s, strlen(s));
    t->number[h] = t->n++;
    text_cstr(t->out, t->number[h] ? ",\n" : "");
    json_quoted(t->out, s);
    return t->number[h];
}

// ---- columns: `"name":[` v, v, ... `],`

static void column(page *pg, const char *name)
{
    text_printf(pg->out, "\"%s\":[", name);
}

static void put(page *pg, int64_t v, bool first)
{
    char b[24];
    char *p = b + sizeof b;
    uint64_t u = v < 0 ? (uint64_t)-v : (uint64_t)v;
    do {
        *--p = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (v < 0) {
        *--p = '-';
    }
    if (!first) {
        *--p = ',';
    }
    text_add(pg->out, p, (size_t)(b + sizeof b - p));
}

static void close_column(page *pg, const char *end)
{
    text_cstr(pg->out, "]");
    text_cstr(pg->out, end);
}

// ---- what instructions are

static int file_of(const ir *p, const char *path)
{
    for (uint32_t i = 0; i < p->files.n; i++) {
        const ir_file *f = &p->files.at[i];
        if (strcmp(f->src ? f->src->name : ir_text(p, f->name), path) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static void files(page *pg)
{
    const ir *p = pg->cores->p;  // both programs of a launch come from the same files
    text_cstr(pg->out, "\"files\":[");
    for (uint32_t i = 0; i < p->files.n; i++) {
        const ir_file *f = &p->files.at[i];
        text_cstr(pg->out, i ? ",\n[" : "[");
        json_quoted(pg->out, f->src ? f->src->name : ir_text(p, f->name));
        text_char(pg->out, ',');
        json_quoted(pg->out, f->src ? arena_text(pg->out->mem, f->src->text, f->src->len) : "");
        text_char(pg->out, ']');
    }
    text_cstr(pg->out, "],\n");
}

typedef int64_t instr_value(page *pg, uint32_t core, uint32_t instr);

static int64_t op_value(page *pg, uint32_t core, uint32_t i)
{
    return string_of(pg, isa_table[pg->cores[core].p->instrs.at[i].op].name);
}

static int64_t text_value(page *pg, uint32_t core, uint32_t i)
{
    textbuf t;
    text_init(&t, pg->out->mem);
    operands_text(&pg->cores[core], i, &t);
    return string_of(pg, t.len ? t.at : "");
}

static int64_t place_value(page *pg, uint32_t core, uint32_t i)
{
    return pg->place0[core] + pg->cores[core].p->instrs.at[i].place;
}

static int64_t line_value(page *pg, uint32_t core, uint32_t i)
{
    const ir *p = pg->cores[core].p;
    uint32_t line, col;
    place_path(p, p->instrs.at[i].place, &line, &col);
    return line;
}

static int64_t file_value(page *pg, uint32_t core, uint32_t i)
{
    const ir *p = pg->cores[core].p;
    uint32_t line, col;
    return file_of(pg->cores->p, place_path(p, p->instrs.at[i].place, &line, &col));
}

static void instr_column(page *pg, const char *name, instr_value *value)
{
    bool first = true;
    column(pg, name);
    for (uint32_t c = 0; c < pg->n; c++) {
        for (uint32_t i = 0; i < pg->cores[c].p->instrs.n; i++) {
            put(pg, value(pg, c, i), first);
            first = false;
        }
    }
    close_column(pg, ",\n");
}

static const char *place_label(page *pg, const ir *p, const ir_place *at)
{
    arena *mem = pg->out->mem;
    switch ((place_kind)at->kind) {
    case PLACE_CALL: {
        uint32_t line, col;
        const char *path = place_path(p, (uint32_t)(at - p->places.at), &line, &col);
        return arena_printf(mem, "%s, called in %s:%" PRIu32, ir_text(p, at->what), path, line);
    }
    case PLACE_ITER:
        return arena_printf(mem, "%s = %" PRId64, ir_text(p, at->what),
                            (int64_t)((uint64_t)at->hi << 32 | at->lo));
    default: return "";
    }
}

// The contexts of instructions: parent and label of each place.
static void places(page *pg)
{
    column(pg, "place_parent");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const ir *p = pg->cores[c].p;
        for (uint32_t i = 0; i < p->places.n; i++, k++) {
            put(pg, pg->place0[c] + p->places.at[i].parent, k == 0);
        }
    }
    close_column(pg, ",\n");
    column(pg, "place_label");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const ir *p = pg->cores[c].p;
        for (uint32_t i = 0; i < p->places.n; i++, k++) {
            put(pg, string_of(pg, place_label(pg, p, &p->places.at[i])), k == 0);
        }
    }
    close_column(pg, ",\n");
}

// ---- executions

typedef int64_t event_value(page *pg, uint32_t core, uint32_t i);

static const clock_event *event(const page *pg, uint32_t core, uint32_t i)
{
    return &pg->cores[core].clock.events.at[i];
}

static int64_t ev_track(page *pg, uint32_t c, uint32_t i)
{
    return pg->track_of[c][event(pg, c, i)->track];
}

static int64_t ev_instr(page *pg, uint32_t c, uint32_t i)
{
    return (int64_t)pg->ins0[c] + event(pg, c, i)->instr;
}

static int64_t ev_start(page *pg, uint32_t c, uint32_t i)  // a difference
{
    return tenths(event(pg, c, i)->start_ps) - (i ? tenths(event(pg, c, i - 1)->start_ps) : 0);
}

static int64_t ev_issued(page *pg, uint32_t c, uint32_t i)
{
    return tenths(event(pg, c, i)->issued_ps) - tenths(event(pg, c, i)->start_ps);
}

static int64_t ev_end(page *pg, uint32_t c, uint32_t i)
{
    return tenths(event(pg, c, i)->end_ps) - tenths(event(pg, c, i)->start_ps);
}

static int64_t ev_wait(page *pg, uint32_t c, uint32_t i)
{
    return tenths(event(pg, c, i)->wait_ps);
}

// How many events before this one; 0: none.
static int64_t ev_from(page *pg, uint32_t c, uint32_t i)
{
    const clock_event *e = event(pg, c, i);
    return e->from ? (int64_t)i + 1 - (int64_t)e->from : 0;
}

// 1: Tensor at half clock; 2: after a load of a function table.
static int64_t ev_flags(page *pg, uint32_t c, uint32_t i)
{
    const clock_event *e = event(pg, c, i);
    return (e->cold ? 1 : 0) + (e->table ? 2 : 0);
}

// Semaphore + 1 that told it; 0: none.
static int64_t ev_semaphore(page *pg, uint32_t c, uint32_t i)
{
    const clock_event *e = event(pg, c, i);
    return e->semaphore == CLOCK_NO_SEMAPHORE ? 0 : (int64_t)pg->semaphore0[c] + e->semaphore + 1;
}

static void event_column(page *pg, const char *name, event_value *value)
{
    bool first = true;
    column(pg, name);
    for (uint32_t c = 0; c < pg->n; c++) {
        for (uint32_t i = 0; i < pg->cores[c].clock.events.n; i++) {
            put(pg, value(pg, c, i), first);
            first = false;
        }
    }
    close_column(pg, ",\n");
}

static void tracks(page *pg)
{
    text_cstr(pg->out, "\"tracks\":[");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const profile *pr = &pg->cores[c];
        for (unsigned t = 0; t < TRACK_COUNT; t++) {
            const track_time *k0 = &pr->clock.track[t];
            if (pg->track_of[c][t] == UINT32_MAX) {
                continue;
            }
            text_printf(
                pg->out,
                "%s{\"name\":\"%s\",\"core\":%" PRIu32
                ",\"kind\":%u,\"active\":%.1f,\"busy\":%.1f,\"wait\":%.1f,\"count\":%" PRIu64
                ",\"critical\":%.1f,\"bytes\":%" PRIu64 ",\"packets\":%" PRIu64 ",\"moving\":%.1f}",
                k++ ? ",\n" : "", track_name(t), c, t < TRACK_DMA0 ? t : ENG_DMA,
                ns_of_ps(k0->active_ps), ns_of_ps(k0->busy_ps), ns_of_ps(k0->wait_ps), k0->count,
                pr->critical_ns[t], pr->queue[t].bytes, pr->queue[t].packets,
                pr->queue[t].moving_ns);
        }
    }
    text_cstr(pg->out, "],\n");
}

static void critical(page *pg)
{
    column(pg, "critical");
    bool first = true;
    for (uint32_t c = 0; c < pg->n; c++) {
        for (uint32_t i = pg->cores[c].critical.n; i--;) {
            put(pg, (int64_t)pg->event0[c] + pg->cores[c].critical.at[i], first);
            first = false;
        }
    }
    close_column(pg, ",\n");
}

// ---- memory

static void tensors(page *pg)
{
    text_cstr(pg->out, "\"tensors\":[");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const ir *p = pg->cores[c].p;
        for (uint32_t i = 0; i < p->tensors.n; i++) {
            const ir_tensor *t = &p->tensors.at[i];
            uint32_t line, col;
            int file = file_of(pg->cores->p, place_path(p, t->place, &line, &col));
            text_cstr(pg->out, k++ ? ",\n[" : "[");
            json_quoted(pg->out, pg->cores[c].tensor_names[i]);
            text_printf(pg->out, ",\"%s[", dtype_name((dtype)t->dtype));
            for (unsigned d = 0; d < t->ndim; d++) {
                text_printf(pg->out, "%s%" PRIu32, d ? "," : "", t->shape[d]);
            }
            text_printf(pg->out, "]\",%d,%" PRIu32 "]", file, line);
        }
    }
    text_cstr(pg->out, "],\n");
}

// [tensor, memory, core, first byte, bytes, first partition, partitions, from, to]
static void areas(page *pg)
{
    text_cstr(pg->out, "\"areas\":[");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const profile *pr = &pg->cores[c];
        for (uint32_t i = 0; i < pr->areas.n; i++) {
            const profile_area *a = &pr->areas.at[i];
            const ir_tensor *t = &pr->p->tensors.at[a->tensor];
            text_printf(pg->out,
                        "%s[%" PRIu32 ",%d,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32
                        ",%u,%" PRId64 ",%" PRId64 "]",
                        k++ ? ",\n" : "", pg->tensor0[c] + a->tensor, t->buffer == BUF_PSUM, c,
                        t->addr_bytes, t->size_bytes, t->addr_part, t->partitions,
                        tenths(a->from_ps), tenths(a->to_ps));
        }
    }
    text_cstr(pg->out, "],\n");
}

// ---- semaphores

typedef enum update_part { UPDATE_SEMAPHORE, UPDATE_AT, UPDATE_BY } update_part;

// AT is a difference.
static void update_column(page *pg, const char *name, profile_update *const *u, const uint32_t *n,
                          update_part part)
{
    bool first = true;
    column(pg, name);
    for (uint32_t c = 0; c < pg->n; c++) {
        int64_t last = 0;
        for (uint32_t i = 0; i < n[c]; i++) {
            int64_t at = tenths(u[c][i].at_ps);
            int64_t v = part == UPDATE_AT   ? at - last
                        : part == UPDATE_BY ? u[c][i].by
                                            : (int64_t)pg->semaphore0[c] + u[c][i].semaphore;
            put(pg, v, first);
            last = at;
            first = false;
        }
    }
    close_column(pg, ",\n");
}

static void semaphores(page *pg)
{
    profile_update *u[2];
    uint32_t n[2] = {0, 0};
    text_cstr(pg->out, "\"semaphores\":[");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const profile *pr = &pg->cores[c];
        n[c] = profile_updates(pr, pg->out->mem, &u[c]);
        for (uint32_t i = 0; i < pr->program->semaphores.n; i++) {
            const semaphore_info *s = &pr->program->semaphores.at[i];
            text_printf(pg->out,
                        "%s{\"number\":%" PRIu32 ",\"core\":%" PRIu32
                        ",\"from\":\"%s\",\"to\":\"%s\"}",
                        k++ ? ",\n" : "", i, c, stream_name(s->producer), stream_name(s->consumer));
        }
    }
    text_printf(pg->out, "],\n\"core_changes\":[0,%" PRIu32 "],\n", n[0]);
    update_column(pg, "sem_id", u, n, UPDATE_SEMAPHORE);
    update_column(pg, "sem_at", u, n, UPDATE_AT);
    update_column(pg, "sem_by", u, n, UPDATE_BY);
}

// ---- tables

static void lines(page *pg)
{
    text_cstr(pg->out, "\"lines\":[");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const profile *pr = &pg->cores[c];
        for (uint32_t i = 0; i < pr->lines.n; i++) {
            const profile_line *l = &pr->lines.at[i];
            text_printf(pg->out, "%s[%d,%" PRIu32 ",%" PRIu64 ",%.1f,%.1f,%.1f]", k++ ? ",\n" : "",
                        file_of(pg->cores->p, l->path), l->line, l->count, l->busy_ns, l->wait_ns,
                        l->critical_ns);
        }
    }
    text_cstr(pg->out, "],\n");
}

static void stalls(page *pg)
{
    text_cstr(pg->out, "\"stalls\":[");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const profile *pr = &pg->cores[c];
        for (uint32_t i = 0; i < pr->stalls.n; i++) {
            const profile_stall *s = &pr->stalls.at[i];
            text_printf(pg->out, "%s[%" PRIu32 ",%" PRId64 ",%" PRIu64 ",%.1f,%.1f]",
                        k++ ? ",\n" : "", pg->ins0[c] + s->instr,
                        s->by ? (int64_t)pg->ins0[c] + s->by - 1 : -1, s->count, s->lost_ns,
                        s->worst_ns);
        }
    }
    text_cstr(pg->out, "],\n");
}

static void findings(page *pg)
{
    text_cstr(pg->out, "\"findings\":[");
    for (uint32_t c = 0, k = 0; c < pg->n; c++) {
        const profile *pr = &pg->cores[c];
        for (uint32_t i = 0; i < pr->findings.n; i++) {
            const finding *f = &pr->findings.at[i];
            text_printf(pg->out, "%s[\"%s\",%.1f,%.1f,[", k++ ? ",\n" : "", finding_name(f->kind),
                        f->cost_ns, f->gain_ns);
            for (uint32_t j = 0; j < f->places; j++) {
                put(pg, (int64_t)pg->ins0[c] + f->at[j], j == 0);
            }
            text_cstr(pg->out, "],");
            json_quoted(pg->out, f->text);
            text_printf(pg->out, ",%" PRIu32 "]", c);
        }
    }
    text_cstr(pg->out, "],\n");
}

static void summary(page *pg)
{
    text_cstr(pg->out, "\"summary\":[");
    const char *sep = "";
#define METRIC(name, unit)                                                                         \
    text_printf(pg->out, "%s[\"" #name "\",\"" #unit "\"", sep);                                   \
    for (uint32_t c = 0; c < pg->n; c++) {                                                         \
        double v = pg->cores[c].sum.name##_##unit;                                                 \
        isnan(v) ? text_cstr(pg->out, ",null") : text_printf(pg->out, ",%.9g", v);                 \
    }                                                                                              \
    text_char(pg->out, ']');                                                                       \
    sep = ",\n";
#include "sched/profile.def"
    text_cstr(pg->out, "],\n");
}

static void head(page *pg)
{
    const profile *pr = pg->cores;
    const machine *m = &pr->m;
    bool cut = false;
    int64_t end = 0;
    for (uint32_t c = 0; c < pg->n; c++) {
        cut |= pg->cores[c].clock.events_cut;
        end = pg->cores[c].clock.end_ps > end ? pg->cores[c].clock.end_ps : end;
    }
    text_cstr(pg->out, "\"kernel\":");
    json_quoted(pg->out, ir_text(pr->p, pr->p->kernel));
    text_printf(pg->out,
                ",\"target\":\"%s\",\"cores\":%" PRIu32 ",\"cut\":%s,\"end\":%" PRId64
                ",\"sbuf_bytes\":%" PRIu32 ",\"psum_bytes\":%" PRIu32
                ",\n\"roof\":{\"peak\":%.6g,\"fp32\":%.6g,\"hbm\":%.6g},\n",
                pr->p->target->name, pg->n, cut ? "true" : "false", tenths(end),
                pr->p->target->sbuf_partition_bytes, pr->p->target->psum_partition_bytes,
                2.0 * 128 * 128 * m->pe_ghz, 2.0 * 128 * 128 * m->pe_ghz / m->pe_fp32_cycles,
                m->hbm_stack_rate);
}

static void number_all(page *pg)
{
    uint32_t track = 0;
    for (uint32_t c = 0; c < pg->n; c++) {
        const profile *pr = &pg->cores[c];
        for (unsigned t = 0; t < TRACK_COUNT; t++) {
            pg->track_of[c][t] = pr->clock.track[t].count ? track++ : UINT32_MAX;
        }
        if (c + 1 < pg->n) {
            pg->ins0[c + 1] = pg->ins0[c] + pr->p->instrs.n;
            pg->place0[c + 1] = pg->place0[c] + pr->p->places.n;
            pg->event0[c + 1] = pg->event0[c] + pr->clock.events.n;
            pg->semaphore0[c + 1] = pg->semaphore0[c] + pr->program->semaphores.n;
            pg->tensor0[c + 1] = pg->tensor0[c] + pr->p->tensors.n;
        }
    }
}

static void data(page *pg)
{
    head(pg);
    files(pg);
    instr_column(pg, "ins_op", op_value);
    instr_column(pg, "ins_text", text_value);
    instr_column(pg, "ins_file", file_value);
    instr_column(pg, "ins_line", line_value);
    instr_column(pg, "ins_place", place_value);
    places(pg);
    event_column(pg, "ev_track", ev_track);
    event_column(pg, "ev_ins", ev_instr);
    event_column(pg, "ev_start", ev_start);
    event_column(pg, "ev_issued", ev_issued);
    event_column(pg, "ev_end", ev_end);
    event_column(pg, "ev_wait", ev_wait);
    event_column(pg, "ev_from", ev_from);
    event_column(pg, "ev_flags", ev_flags);
    event_column(pg, "ev_semaphore", ev_semaphore);
    text_printf(pg->out, "\"core_events\":[%" PRIu32 ",%" PRIu32 "],\n", pg->event0[0],
                pg->event0[1]);
    tracks(pg);
    critical(pg);
    tensors(pg);
    areas(pg);
    semaphores(pg);
    lines(pg);
    stalls(pg);
    findings(pg);
    summary(pg);
}

void profile_html(const profile *cores, uint32_t n, textbuf *out)
{
    textbuf table;
    text_init(&table, out->mem);
    page *pg = NEW(out->mem, page);
    *pg = (page){.cores = cores, .n = n, .out = out, .str = {.out = &table}};
    number_all(pg);
    text_add(out, profile_page_head, profile_page_head_len);
    text_cstr(out, "{");
    data(pg);
    text_cstr(out, "\"strings\":[");
    text_add(out, table.len ? table.at : "", table.len);
    text_cstr(out, "]}");
    text_add(out, profile_page_tail, profile_page_tail_len);
}
