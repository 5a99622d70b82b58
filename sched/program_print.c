#include "sched/program_print.h"

#include <inttypes.h>

static void print_sync(const sync_op *o, textbuf *out)
{
    static const struct {
        const char *word, *relation;
    } text[SYNC_KIND_COUNT] = {
        [SYNC_WAIT] = {"wait", ">="},        [SYNC_SIGNAL] = {"signal", "+="},
        [SYNC_CREDIT] = {"credit", "+="},    [SYNC_TAKE] = {"take", "-="},
        [SYNC_DRAIN_WAIT] = {"drain", ">="}, [SYNC_DRAIN] = {"drain", "-="},
    };
    if (o->kind < SYNC_KIND_COUNT) {
        text_printf(out, " %s s%u%s%" PRIu32, text[o->kind].word, o->semaphore,
                    text[o->kind].relation, o->value);
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
                    " bytes=%" PRIu64 "\n",
                    d->instr, stream_name((uint32_t)STREAM_RING0 + d->ring) + 4,
                    engine_name((engine_id)d->trigger), isa_enum_member(ISA_ENUM_dge_mode, d->dge),
                    d->engines, d->descriptors, d->bytes);
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
    if (pr->spills.stores) {
        text_printf(out, "spills stores=%" PRIu32 " loads=%" PRIu32 " bytes=%" PRIu64 "\n",
                    pr->spills.stores, pr->spills.loads, pr->spills.bytes);
    }
    program_print_streams(pr, out);
}
