// docs/constraints.md: the rules of tests/rules with the messages that breaking them gives.
#include "lang/diag.h"
#include "lang/target.h"
#include "tests/rules/rules.h"
#include "tools/gen_docs.h"

#include <stdlib.h>
#include <string.h>

static void add_limits(textbuf *out)
{
#define LIMIT(label, field, unit)                                                                  \
    text_printf(out, "| %s |", label);                                                             \
    for (int gen = 2; gen <= 4; gen++) {                                                           \
        text_printf(out, " %lu%s |", (unsigned long)target_by_gen(gen)->field, unit);              \
    }                                                                                              \
    text_char(out, '\n');
    text_cstr(out, "\n## Sizes\n\n| limit | trn1 | trn2 | trn3 |\n|---|---|---|---|\n");
    LIMIT("partitions of SBUF and PSUM", partitions, "")
    LIMIT("SBUF, a partition", sbuf_partition_bytes / 1024, " KiB")
    LIMIT("PSUM, a partition", psum_partition_bytes / 1024, " KiB")
    LIMIT("PSUM banks", psum_banks, "")
    LIMIT("PSUM bank, a partition", psum_bank_bytes, " bytes")
    LIMIT("matmul: columns of the stationary tile", matmul_stationary_max, "")
    LIMIT("matmul: fp32 columns of the moving tile", matmul_moving_max, "")
    LIMIT("bn_stats: elements a partition", bn_stats_max, "")
    LIMIT("registers, a sequencer", registers, "")
    LIMIT("semaphores, a core", semaphores, "")
    LIMIT("DMA engines", dma_engines, "")
#undef LIMIT
    text_cstr(out, "\nWhich engine runs which instruction on which target is the table of "
                   "`docs/isa.md`. The number of\n"
                   "semaphores is not published; `docs/machine.md` says what is assumed.\n");
}

// The messages of the next rule of messages.txt: a line a set of targets, "    trn1 trn2: text".
static const char *add_messages(textbuf *out, const char *at)
{
    at += strcspn(at, "\n");
    at += *at == '\n';
    while (strncmp(at, "    ", 4) == 0) {
        size_t n = strcspn(at, "\n"), colon = strcspn(at, ":");
        text_printf(out, "  %.*s: `%.*s`  \n", (int)(colon - 4), at + 4, (int)(n - colon - 2),
                    at + colon + 2);
        at += n + (at[n] == '\n');
    }
    return at;
}

static void add_body(textbuf *out, const char *body)
{
    text_char(out, '\n');
    for (const char *p = body; *p;) {
        size_t n = strcspn(p, "\n");
        text_printf(out, "      %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static const char *add_rule(textbuf *out, const rule *r, const char *messages)
{
    diag_id id = diag_find(r->diag);
    bool all = r->on[0] && r->on[1] && r->on[2];
    text_printf(out, "\n* %s", r->says);
    for (int t = 0; t < RULE_TARGETS && !all; t++) {
        if (r->on[t]) {
            text_printf(out, ", %s", rule_target[t]);
        }
    }
    text_printf(out, "%s: `%s`%s  \n", r->grid ? ", on two cores" : "", r->diag,
                id != D_COUNT && diag_severity(id) == SEV_WARNING ? ", a warning" : "");
    messages = add_messages(out, messages);
    add_body(out, r->body);
    return messages;
}

static void add_device(textbuf *out, const char *root)
{
    text_cstr(out, "\n## While the program runs\n\n");
    for (const char *at = slurp(out->mem, root, "lang/diag_device.def"); *at;) {
        size_t n = strcspn(at, "\n");
        if (strncmp(at, "DIAG", 4) == 0) {
            const char *name = strchr(at, '(') + 1;
            name = arena_text(out->mem, name, strcspn(name, ", "));
            text_printf(out, "* `%s`: %s\n", name, diag_meaning(diag_find(name)));
        }
        at += n + (at[n] == '\n');
    }
}

void write_constraints(textbuf *out, const char *root)
{
    rules rs = {0};
    const char *dir = arena_printf(out->mem, "%s/tests/rules", root);
    if (!rules_read(&rs, dir)) {
        exit(2);
    }
    text_printf(out,
                "# What the chip refuses\n\n<!-- Written by tools/gen_docs.c from tests/rules; build "
                "the target `docs` after a change. -->\n\n%zu rules. Each with the diagnostic and the "
                "message that a kernel gets which breaks it, by target where targets\ndiffer, the "
                "statements that break it and the nearest that pass: `{this breaks it|this passes}`. The "
                "tests run both. B, Q and H\nmake a tensor of that shape in SBUF, PSUM and HBM, "
                "float32 unless `dt=` says otherwise; `tests/rules/prelude.nki` has\nthe short "
                "names. `docs/diagnostics.md` has all diagnostics.\n",
                rs.count);
    add_limits(out);
    const char *messages = slurp(out->mem, root, "tests/rules/messages.txt"), *topic = "";
    for (size_t i = 0; i < rs.count; i++) {
        if (strcmp(topic, rs.at[i].topic) != 0) {
            topic = rs.at[i].topic;
            text_printf(out, "\n## %s\n", topic);
        }
        messages = add_rule(out, &rs.at[i], messages);
    }
    add_device(out, root);
    rules_free(&rs);
}
