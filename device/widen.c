#include "device/internal.h"

#include <stdlib.h>

// Programs whose low-precision tensors hold fp32 (ir.fp32_store). The program that is bound is a
// copy: such a tensor and its views are float32, and its memory is a region of its own, so that
// what lies at its addresses besides keeps its bytes. With C the capacity (of a partition, or HBM):
//
//   [0, C)       what is not low-precision, and tfloat32, where it was
//   [C, 3C)      two-byte types, byte a at C + 2a
//   [3C, 7C)     one-byte types, byte a at 3C + 4a
//
// Tensors of one type that share addresses thus still share elements. Host memory keeps its types:
// it is converted before and after a run.

enum { REGIONS = 7 };

static uint64_t widened_address(uint64_t at, uint32_t size, uint64_t capacity)
{
    return size == 2 ? capacity + 2 * at : size == 1 ? 3 * capacity + 4 * at : at;
}

static uint64_t capacity_of(const ir *p, const ir_tensor *t, uint64_t hbm_bytes)
{
    switch ((buffer_kind)t->buffer) {
    case BUF_SBUF: return p->target->sbuf_partition_bytes;
    case BUF_PSUM: return p->target->psum_partition_bytes;
    default: return hbm_bytes;
    }
}

// The contents of a constant as fp32, appended to the blob.
static void widen_const(arena *mem, ir *w, ir_tensor *t, dtype from)
{
    uint32_t size = dtype_size(from);
    uint64_t n = t->size_bytes / size;
    if (t->data > w->blob.n || t->size_bytes > w->blob.n - t->data) {
        return;  // bind_consts refuses it
    }
    float *v = NEW_N(mem, float, n ? n : 1);
    device_convert(v, DT_float32, 4, w->blob.at + t->data, from, (ptrdiff_t)size, n);
    t->data = w->blob.n;
    vec_reserve(mem, &w->blob, n * 4);
    memcpy(w->blob.at + t->data, v, n * 4);
    w->blob.n += (uint32_t)(n * 4);
}

static void widen_tensor(arena *mem, ir *w, ir_tensor *t, uint64_t hbm_bytes)
{
    dtype d = (dtype)t->dtype;
    if (!dtype_is_low_precision(d)) {
        return;
    }
    uint32_t size = dtype_size(d);
    if (t->addr_bytes != ADDR_AUTO) {
        t->addr_bytes = widened_address(t->addr_bytes, size, capacity_of(w, t, hbm_bytes));
    }
    if (t->role == ROLE_CONST) {
        widen_const(mem, w, t, d);
    }
    t->dtype = DT_float32;
    t->size_bytes *= 4 / size;
}

const ir *widen_program(arena *mem, const ir *p, uint64_t *hbm_bytes)
{
    ir *w = NEW(mem, ir);
    *w = *p;
    uint64_t hbm = (*hbm_bytes + 63) & ~(uint64_t)63;
    w->tensors.at = NEW_N(mem, ir_tensor, p->tensors.n + 1);
    w->views.at = NEW_N(mem, ir_named, p->views.n + 1);
    w->forms.at = NEW_N(mem, ir_form, p->forms.n + 1);
    w->blob.at = NEW_N(mem, uint8_t, p->blob.n + 1);
    w->blob.cap = p->blob.n + 1;
    memcpy(w->tensors.at, p->tensors.at, p->tensors.n * sizeof *w->tensors.at);
    memcpy(w->views.at, p->views.at, p->views.n * sizeof *w->views.at);
    if (p->blob.n) {
        memcpy(w->blob.at, p->blob.at, p->blob.n);
    }
    memcpy(w->forms.at, p->forms.at, p->forms.n * sizeof *w->forms.at);
    // One more form, of no dtype: for bit casts, which lower refuses, so that none is used.
    w->forms.at[w->forms.n] = w->forms.at[0];
    w->forms.at[w->forms.n++].dtype = DT_COUNT;
    for (uint32_t i = 0; i < p->views.n; i++) {
        const ir_named *v = &p->views.at[i];
        if (v->tensor >= p->tensors.n || v->form >= p->forms.n ||
            p->forms.at[v->form].dtype >= DT_COUNT) {
            continue;  // bind refuses it
        }
        dtype of = (dtype)p->tensors.at[v->tensor].dtype, as = (dtype)p->forms.at[v->form].dtype;
        if (as != of && (dtype_is_low_precision(as) || dtype_is_low_precision(of))) {
            w->views.at[i].form = p->forms.n;
        }
    }
    for (uint32_t i = 0; i < p->forms.n; i++) {
        ir_form *f = &w->forms.at[i];
        if (f->dtype < DT_COUNT && dtype_is_low_precision((dtype)f->dtype)) {
            f->dtype = DT_float32;
        }
    }
    for (uint32_t i = 0; i < w->tensors.n; i++) {
        widen_tensor(mem, w, &w->tensors.at[i], hbm);
    }
    target *t = NEW(mem, target);
    *t = *p->target;
    t->sbuf_partition_bytes *= REGIONS;
    t->psum_partition_bytes *= REGIONS;
    w->target = t;
    *hbm_bytes = hbm * REGIONS;
    return w;
}

// ---- host memory

typedef struct host_side {
    void **at;      // what the run is given
    float **owned;  // of at, those that are fp32 copies
    uint32_t n;
} host_side;

static void release_side(host_side *s)
{
    for (uint32_t i = 0; s->owned && i < s->n; i++) {
        free(s->owned[i]);
    }
    free(s->owned);
    free(s->at);
}

static bool new_side(host_side *s, uint32_t n)
{
    *s = (host_side){calloc(n + 1, sizeof *s->at), calloc(n + 1, sizeof *s->owned), n};
    return s->at && s->owned;
}

static const ir_tensor *param_tensor(const ir *p, uint32_t i)
{
    return &p->tensors.at[p->params.at[i].tensor];
}

// The fp32 copy of a low-precision parameter; parameters that are one memory have one copy.
static bool widen_params(const ir *p, void *const *params, host_side *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const ir_tensor *t = param_tensor(p, i);
        s->at[i] = params[i];
        if (!dtype_is_low_precision((dtype)t->dtype)) {
            continue;
        }
        bool same = false;
        for (uint32_t j = 0; j < i && !same; j++) {
            const ir_tensor *u = param_tensor(p, j);
            same = params[j] == params[i] && u->dtype == t->dtype && u->size_bytes == t->size_bytes;
            s->at[i] = same ? s->at[j] : params[i];
        }
        if (same) {
            continue;
        }
        uint32_t size = dtype_size((dtype)t->dtype);
        size_t n = (size_t)t->size_bytes / size;
        s->owned[i] = malloc((n + 1) * sizeof(float));
        if (!s->owned[i]) {
            return false;
        }
        s->at[i] = s->owned[i];
        device_convert(s->owned[i], DT_float32, 4, params[i], (dtype)t->dtype, (ptrdiff_t)size, n);
    }
    return true;
}

static bool widen_outputs(const ir *p, void *const *outputs, host_side *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const ir_view *v = ir_view_ref(p, p->outputs.at[i]);
        s->at[i] = outputs[i];
        if (dtype_is_low_precision((dtype)v->dtype)) {
            // As large as the tensor, which the output may be.
            size_t n = (size_t)p->tensors.at[v->tensor].size_bytes / dtype_size((dtype)v->dtype);
            size_t own = (size_t)ir_elems(p, v);
            s->at[i] = s->owned[i] = malloc(((n > own ? n : own) + 1) * sizeof(float));
            if (!s->owned[i]) {
                return false;
            }
        }
    }
    return true;
}

static void narrow(const ir *p, const device_program *const *programs, uint32_t n,
                   void *const *params, const host_side *in, void *const *outputs,
                   const host_side *out)
{
    for (uint32_t i = 0; i < in->n; i++) {
        const ir_tensor *t = param_tensor(p, i);
        bool written = false;
        for (uint32_t k = 0; k < n; k++) {
            written = written || programs[k]->param_used[i] & PARAM_WRITTEN;
        }
        if (written && dtype_is_low_precision((dtype)t->dtype)) {
            uint32_t size = dtype_size((dtype)t->dtype);
            device_convert(params[i], (dtype)t->dtype, (ptrdiff_t)size, in->at[i], DT_float32, 4,
                           (size_t)t->size_bytes / size);
        }
    }
    for (uint32_t i = 0; i < out->n; i++) {
        const ir_view *v = ir_view_ref(p, p->outputs.at[i]);
        if (out->owned[i]) {
            device_convert(outputs[i], (dtype)v->dtype, (ptrdiff_t)dtype_size((dtype)v->dtype),
                           out->owned[i], DT_float32, 4, (size_t)ir_elems(p, v));
        }
    }
}

nki_status launch_widened(device_core *const *cores, const device_program *const *programs,
                          uint32_t n, void *const *params, void *const *outputs,
                          const device_run_opts *opts, diags *ds)
{
    const ir *p = programs[0]->host;
    host_side in = {0}, out = {0};
    bool ok = new_side(&in, p->params.n) && new_side(&out, p->outputs.n) &&
              widen_params(p, params, &in) && widen_outputs(p, outputs, &out);
    nki_status st = NKI_ERR_NOMEM;
    if (ok) {
        st = launch_bound(cores, programs, n, in.at, out.at, opts, ds);
    }
    if (st == NKI_OK) {
        narrow(p, programs, n, params, &in, outputs, &out);
    }
    release_side(&in);
    release_side(&out);
    return st;
}
