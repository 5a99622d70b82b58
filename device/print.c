#include "device/internal.h"

#include <stdio.h>

// device_print: the prefix, then the tensor as nested lists.

typedef struct printer {
    exec *x;
    char buf[4096];
    size_t len;
} printer;

static void flush(printer *p)
{
    if (p->len) {
        p->x->opts->print(p->x->opts->print_ctx, p->buf, p->len);
        p->len = 0;
    }
}

static void add(printer *p, const char *s, size_t n)
{
    while (n) {
        if (p->len == sizeof p->buf) {
            flush(p);
        }
        size_t m = sizeof p->buf - p->len < n ? sizeof p->buf - p->len : n;
        memcpy(p->buf + p->len, s, m);
        p->len += m;
        s += m;
        n -= m;
    }
}

static void add_value(printer *p, const tile *t, uint32_t r, uint64_t e)
{
    char s[64];
    int n;
    dtype_class c = dtype_class_of((dtype)t->dtype);
    if (c == DTC_F || c == DTC_E) {
        float v;
        crows in = load_rows(p->x, t, r, 1, e, 1, &v);
        memcpy(&v, in.p, sizeof v);
        n = text_float(s, v);
    } else if (c == DTC_B) {
        n = snprintf(s, sizeof s, "%s", tile_int(p->x, t, r * t->l->n + e) ? "True" : "False");
    } else if (c == DTC_X) {
        uint32_t v = 0;
        load_bits(p->x, t, r, e, 1, &v);
        n = snprintf(s, sizeof s, "0x%0*x", t->size * 2, (unsigned)v);
    } else {
        n = snprintf(s, sizeof s, "%lld", (long long)tile_int(p->x, t, r * t->l->n + e));
    }
    add(p, s, (size_t)n);
}

static void run_print(exec *x, const bound *b, const tile *t)
{
    if (!x->opts->print) {
        return;
    }
    const ir *p = x->dp->p;
    const ir_view *v = ir_view_ref(p, b->o[0].view);
    const ir_dim *dims = ir_dims(p, v);
    uint32_t ndim = ir_ndim(p, v);
    printer out = {.x = x};
    const char *prefix = b->a;
    add(&out, prefix, strlen(prefix));
    add(&out, " ", 1);
    uint64_t n = t[0].l->n;
    for (uint32_t r = 0; r < t[0].parts; r++) {
        for (uint64_t e = 0; e < n; e++) {
            // Brackets open where all further indices are 0.
            uint64_t flat = r * n + e, block = 1;
            uint32_t open = 0;
            for (uint32_t d = ndim; d-- > 0;) {
                block *= dims[d].count;
                open += flat % block == 0;
            }
            if (flat) {
                if (open) {
                    add(&out, "\n", 1);
                    for (size_t i = strlen(prefix) + 1 + ndim - open; i-- > 0;) {
                        add(&out, " ", 1);
                    }
                } else {
                    add(&out, " ", 1);
                }
            }
            for (uint32_t i = 0; i < open; i++) {
                add(&out, "[", 1);
            }
            add_value(&out, &t[0], r, e);
            block = 1;
            for (uint32_t d = ndim; d-- > 0;) {
                block *= dims[d].count;
                if ((flat + 1) % block == 0) {
                    add(&out, "]", 1);
                }
            }
        }
    }
    add(&out, "\n", 1);
    flush(&out);
}

bool bind_device_print(binder *b)
{
    ir_arg s = bind_arg(b, 0);
    if (s.kind != IRA_STR || s.v >= b->p->strs.n) {
        return bind_fail(b, "prefix is not a text");
    }
    if (bind_operand(b, 1, false) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    return bind_done(b, run_print, b->p->strs.at[s.v], true);
}
