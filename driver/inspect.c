#include "driver/inspect.h"

#include "lang/place.h"
#include "neff/layout.h"
#include "neff/neff.h"
#include "sched/memory_map.h"
#include "sched/program_text.h"
#include "sched/spill_list.h"

#include <inttypes.h>

static void put_header(const neff_header *h, const program *pr, textbuf *out)
{
    const ir *p = pr->ir;
    text_printf(out,
                "kernel %s\ntarget %s\nlaunch core %" PRIu32 " of %" PRIu32
                "\nfile version %" PRIu32 ", %" PRIu64 " bytes, body %016" PRIx64
                "\ninstructions %" PRIu32 ", registers %" PRIu32 "\nmemory sbuf %" PRIu32
                ", psum %" PRIu32 " bytes a partition, hbm %" PRIu64 " bytes\n",
                ir_text(p, p->kernel), p->target->name, p->core, p->grid, h->version, h->file_bytes,
                h->body_xxh3, p->instrs.n, p->registers, pr->sbuf_peak_bytes, pr->psum_peak_bytes,
                pr->hbm_bytes);
    if (pr->spills.stores || pr->spills.loads) {
        text_printf(out, "spills stores=%" PRIu32 " loads=%" PRIu32 " bytes=%" PRIu64 "\n",
                    pr->spills.stores, pr->spills.loads, pr->spills.bytes);
        spills_text(pr, out);
    }
    text_cstr(out, "\nsections\n");
    for (int id = 0; id < SEC_COUNT; id++) {
        const neff_section *s = &h->section[id];
        text_printf(out, "  %-12s offset %8" PRIu64 "  bytes %8" PRIu64 "  records %" PRIu32 "\n",
                    neff_section_name[id], s->offset, s->length, s->count);
    }
}

// The source line of an instruction, once for a run of instructions of it.
static void put_source(const ir *p, uint32_t place, loc *last, textbuf *out)
{
    loc at = ir_place_loc(p, place);
    if (!at.src) {
        return;
    }
    linecol l = source_locate(at.src, at.at.lo);
    if (at.src == last->src && l.line_lo == last->at.lo) {
        return;
    }
    *last = (loc){at.src, {l.line_lo, l.line_hi}};
    while (l.line_lo < l.line_hi &&
           (at.src->text[l.line_lo] == ' ' || at.src->text[l.line_lo] == '\t')) {
        l.line_lo++;
    }
    text_printf(out, "%s:%" PRIu32 ": ", at.src->name, l.line);
    text_add(out, at.src->text + l.line_lo, l.line_hi - l.line_lo);
    text_char(out, '\n');
}

// ir_print's text, its instructions numbered and below their source lines; contents of constants
// are left out.
static void put_code(const ir *p, textbuf *out)
{
    textbuf t;
    text_init(&t, out->mem);
    ir_print(p, &t);
    uint32_t i = 0;
    loc last = {0};
    bool tensors = false, code = false;
    for (const char *at = t.at, *end; at && *at; at = end + 1) {
        end = strchr(at, '\n');
        size_t n = (size_t)(end - at);
        if (*at == '%') {
            text_cstr(out, tensors ? "" : "\ntensors\n");
            tensors = true;
            text_cstr(out, "  ");
        } else if (*at == ' ') {
            text_cstr(out, code ? "" : "\ncode\n");
            code = true;
            put_source(p, p->instrs.at[i].place, &last, out);
            text_printf(out, "  @%-5" PRIu32, i++);
        } else if (*at != 'r') {
            continue;  // header and data
        }
        text_add(out, at, n + 1);
    }
}

// Names and source lines come from the file: nothing of them reaches a terminal as a command.
static void clean(textbuf *out)
{
    for (size_t i = 0; i < out->len; i++) {
        unsigned char c = (unsigned char)out->at[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
            out->at[i] = '?';
        }
    }
}

nki_status inspect_neff(const unsigned char *bytes, size_t len, inspect_form form, textbuf *out,
                        const char **err)
{
    program *pr = NULL;
    nki_status st = neff_read(out->mem, bytes, len, &pr, err);
    if (st != NKI_OK) {
        return st;
    }
    if (form == INSPECT_MEMORY) {
        memory_map_text(pr, out);
    } else if (form == INSPECT_MEMORY_SVG) {
        memory_map_svg(pr, out);
    } else if (form == INSPECT_SPILLS) {
        spills_text(pr, out);
    } else {
        neff_header h;
        memcpy(&h, bytes, sizeof h);
        put_header(&h, pr, out);
        put_code(pr->ir, out);
        text_cstr(out, "\nstreams\n");
        program_print_streams(pr, out);
    }
    clean(out);
    return NKI_OK;
}
