#include "lang/place.h"
#include "sched/passes.h"

#include <inttypes.h>

// What the user reads when memory is full.

enum { MAP_LINES = 8 };

typedef struct refusal {
    arena *mem;
    const ir *p;
    const liveness *lv;
    diags *ds;
} refusal;

static const char *shape_text(arena *mem, const ir_tensor *t)
{
    textbuf b;
    text_init(&b, mem);
    for (uint32_t i = 0; i < t->ndim; i++) {
        text_printf(&b, "%s%" PRIu32, i ? ", " : "[", t->shape[i]);
    }
    text_cstr(&b, t->ndim ? "]" : "[]");
    return b.at;
}

static void note_live(const refusal *r, diag *d, buffer_kind b, uint32_t at)
{
    uint32_t top[MAP_LINES], n = 0, more = 0;
    uint64_t more_bytes = 0;
    const ir *p = r->p;
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        const ir_tensor *ten = &p->tensors.at[t];
        const live_range *l = &r->lv->of[t];
        if (ten->buffer != b || !l->touched || l->first > at || l->last < at ||
            ten->addr_bytes == ADDR_AUTO) {
            continue;
        }
        uint32_t k = n < MAP_LINES ? n++ : MAP_LINES;
        uint32_t out = k == MAP_LINES ? top[MAP_LINES - 1] : t;
        if (k == MAP_LINES) {
            more++;
            if (p->tensors.at[out].size_bytes >= ten->size_bytes) {
                more_bytes += ten->size_bytes;
                continue;
            }
            more_bytes += p->tensors.at[out].size_bytes;
            k--;
        }
        for (; k && p->tensors.at[top[k - 1]].size_bytes < ten->size_bytes; k--) {
            top[k] = top[k - 1];
        }
        top[k] = t;
    }
    for (uint32_t i = 0; i < n; i++) {
        const ir_tensor *ten = &p->tensors.at[top[i]];
        diag_note_add(r->ds, d, ir_place_loc(p, ten->place),
                      "in use: `%s` %s %s, %" PRIu64 " bytes in each partition at %" PRIu64 "%s",
                      ir_text(p, ten->name), shape_text(r->mem, ten), dtype_name((dtype)ten->dtype),
                      ten->size_bytes, ten->addr_bytes,
                      ten->manual ? " (the kernel's address)" : "");
    }
    if (more) {
        diag_note_add(r->ds, d, (loc){0}, "in use: %" PRIu32 " smaller tensors, %" PRIu64 " bytes",
                      more, more_bytes);
    }
}

diag *refuse_full(arena *mem, const ir *p, const liveness *lv, uint32_t t, uint64_t avail,
                  uint64_t largest, diags *ds)
{
    refusal r = {mem, p, lv, ds};
    const ir_tensor *ten = &p->tensors.at[t];
    loc at = ir_place_loc(p, ten->place);
    const char *name = ir_text(p, ten->name), *shape = shape_text(mem, ten);
    name = *name ? arena_printf(mem, "`%s` ", name) : "";
    const char *type = dtype_name((dtype)ten->dtype);
    if (!buffer_on_chip((buffer_kind)ten->buffer)) {
        diag *d = diag_hbm_full(ds, at, name, shape, type, ten->size_bytes, CORE_HBM_BYTES);
        ir_place_notes(p, ten->place, ds, d);
        return d;
    }
    bool sbuf = ten->buffer == BUF_SBUF;
    uint64_t limit = sbuf ? p->target->sbuf_partition_bytes : p->target->psum_partition_bytes;
    diag *d = (sbuf ? diag_sbuf_full : diag_psum_full)(ds, at, name, shape, type, ten->size_bytes,
                                                       limit - avail + ten->size_bytes,
                                                       p->target->name, limit, avail, largest);
    ir_place_notes(p, ten->place, ds, d);
    note_live(&r, d, (buffer_kind)ten->buffer, lv->of[t].first);
    if (!sbuf) {
        diag_help(ds, d,
                  "copy a finished sum to SBUF (nisa.tensor_copy) before the next one starts; "
                  "--spill moves tensors of SBUF only, since a sum cannot leave PSUM and go on");
    }
    return d;
}

static void sum_up(const spill_report *report, spilled *sum)
{
    *sum = (spilled){0};
    for (uint32_t k = 0; k < report->tensors.n; k++) {
        sum->stores += report->tensors.at[k].stores;
        sum->loads += report->tensors.at[k].loads;
        sum->bytes += report->tensors.at[k].bytes;
    }
}

void refuse_says_spill(const ir *p, diags *ds, diag *d, bool fits, const spill_report *report)
{
    spilled sum;
    sum_up(report, &sum);
    if (fits) {
        diag_help(ds, d,
                  "--spill makes it fit: it moves %" PRIu32 " tensor%s to HBM and back, %" PRIu32
                  " transfers of %" PRIu64 " bytes in all; smaller tiles may need none",
                  report->tensors.n, report->tensors.n == 1 ? "" : "s", sum.stores + sum.loads,
                  sum.bytes);
    } else if (report->needs_bytes) {
        const ir_instr *in = &p->instrs.at[report->needs_instr];
        diag_note_add(ds, d, ir_place_loc(p, in->place),
                      "%s uses %" PRIu64 " bytes of each partition at once, so --spill cannot help",
                      isa_table[in->op].name, report->needs_bytes);
        diag_help(ds, d, "smaller tiles, or a 2-byte dtype");
    }
}
