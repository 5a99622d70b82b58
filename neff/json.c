#include "neff/layout.h"

#include <inttypes.h>

static void add_string(textbuf *out, const char *s)
{
    text_char(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            text_char(out, '\\');
            text_char(out, *s);
        } else if (c < 0x20 || c == 0x7f) {
            text_printf(out, "\\u%04x", c);
        } else {
            text_char(out, *s);
        }
    }
    text_char(out, '"');
}

static void add_field(textbuf *out, const char *key, const char *value)
{
    text_printf(out, "  \"%s\": ", key);
    add_string(out, value);
    text_cstr(out, ",\n");
}

// {"name": "x", "shape": [128, 512], "dtype": "float32"}
static void add_tensor(textbuf *out, const char *name, const uint32_t *shape, uint32_t ndim,
                       dtype d)
{
    text_cstr(out, "    {\"name\": ");
    add_string(out, name);
    text_cstr(out, ", \"shape\": [");
    for (uint32_t i = 0; i < ndim; i++) {
        text_printf(out, "%s%" PRIu32, i ? ", " : "", shape[i]);
    }
    text_printf(out, "], \"dtype\": \"%s\"}", dtype_name(d));
}

static void add_params(const ir *p, textbuf *out)
{
    text_cstr(out, "  \"parameters\": [\n");
    for (uint32_t i = 0; i < p->params.n; i++) {
        const ir_tensor *t = &p->tensors.at[p->params.at[i].tensor];
        add_tensor(out, ir_text(p, p->params.at[i].name), t->shape, t->ndim, (dtype)t->dtype);
        text_cstr(out, i + 1 < p->params.n ? ",\n" : "\n");
    }
    text_cstr(out, "  ],\n");
}

static void add_outputs(const ir *p, textbuf *out)
{
    text_cstr(out, "  \"outputs\": [\n");
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        const ir_view *v = ir_view_ref(p, p->outputs.at[i]);
        uint32_t shape[IR_MAX_DIMS], ndim = ir_ndim(p, v);
        for (uint32_t d = 0; d < ndim; d++) {
            shape[d] = ir_dims(p, v)[d].count;
        }
        add_tensor(out, ir_text(p, p->tensors.at[v->tensor].name), shape, ndim, (dtype)v->dtype);
        text_cstr(out, i + 1 < p->outputs.n ? ",\n" : "\n");
    }
    text_cstr(out, "  ],\n");
}

void neff_json(const program *pr, textbuf *out)
{
    const ir *p = pr->ir;
    text_cstr(out, "{\n");
    add_field(out, "format", "nki neff");
    text_printf(out, "  \"version\": %d,\n", NEFF_VERSION);
    add_field(out, "target", p->target->name);
    add_field(out, "kernel", ir_text(p, p->kernel));
    text_printf(out, "  \"grid\": %" PRIu32 ",\n  \"core\": %" PRIu32 ",\n", p->grid, p->core);
    add_params(p, out);
    add_outputs(p, out);
    text_printf(out, "  \"instructions\": %" PRIu32 ",\n", p->instrs.n);
    text_cstr(out, "  \"queues\": {");
    const char *comma = "";
    for (uint32_t q = 0; q < STREAM_COUNT; q++) {
        uint32_t n = pr->stream_first[q + 1] - pr->stream_first[q];
        if (n) {
            text_printf(out, "%s\"%s\": %" PRIu32, comma, stream_name(q), n);
            comma = ", ";
        }
    }
    uint32_t waits = 0;
    for (uint32_t k = 0; k < pr->syncs.n; k++) {
        waits += pr->syncs.at[k].kind == SYNC_WAIT || pr->syncs.at[k].kind == SYNC_DRAIN_WAIT;
    }
    text_printf(out,
                "},\n  \"schedule\": {\"semaphores\": %" PRIu32 ", \"waits\": %" PRIu32
                ", \"spill_stores\": %" PRIu32 ", \"spill_loads\": %" PRIu32
                ", \"spill_bytes\": %" PRIu64 "},\n",
                pr->semaphores.n, waits, pr->spills.stores, pr->spills.loads, pr->spills.bytes);
    text_printf(out,
                "  \"memory\": {\"sbuf_partition_bytes\": %" PRIu32
                ", \"psum_partition_bytes\": %" PRIu32 ", \"hbm_bytes\": %" PRIu64 "}\n}\n",
                pr->sbuf_peak_bytes, pr->psum_peak_bytes, pr->hbm_bytes);
}
