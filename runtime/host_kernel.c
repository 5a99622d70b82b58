#include "lang/place.h"
#include "runtime/host.h"
#include "runtime/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// host_call: a kernel's call of a C function. The container has the function's name and signature;
// which function it is, the context knows when the kernel is called.

enum { HALF = DEVICE_HOST_OPERANDS / 2, FIRST_OPERAND = 2, WHY_BYTES = 400 };

typedef struct host_site {
    uint32_t core, instr;
    const char *name, *text;  // of the function, of its signature; the container's
    signature sig;
    uint8_t operand[SIG_PARAMS_MAX];   // of a tensor parameter
    host_value value[SIG_PARAMS_MAX];  // of sizes
} host_site;

struct host_run {
    nki_kernel *k;
    failure *failed;
    host_fn *fn[];  // by site
};

static const ir *ir_of(const nki_kernel *k, const host_site *s)
{
    return k->core[s->core].pr->ir;
}

static nki_status site_fail(nki_kernel *k, const host_site *s, const char *what)
{
    const ir *p = ir_of(k, s);
    loc at = ir_place_loc(p, p->instrs.at[s->instr].place);
    if (!at.src) {
        return context_fail(k->ctx, NKI_ERR_ARG, "%s: host function '%s': %s", nki_kernel_name(k),
                            s->name, what);
    }
    linecol l = source_locate(at.src, at.at.lo);
    return context_fail(k->ctx, NKI_ERR_ARG, "%s:%zu:%zu: host function '%s': %s", at.src->name,
                        (size_t)l.line, (size_t)l.col, s->name, what);
}

static nki_status bind_tensor(nki_kernel *k, host_site *s, size_t param, uint32_t operand,
                              sig_sizes *sizes)
{
    const ir *p = ir_of(k, s);
    const ir_instr *in = &p->instrs.at[s->instr];
    ir_arg a = operand < DEVICE_HOST_OPERANDS ? p->args.at[in->args + FIRST_OPERAND + operand]
                                              : ira_none();
    if (a.kind != IRA_VIEW) {
        return site_fail(k, s, "its signature has more tensors than it is given");
    }
    const ir_view *v = ir_view_ref(p, a.v);
    size_t shape[NKI_MAX_DIMS], ndim = ir_ndim(p, v);
    for (size_t d = 0; d < ndim && d < NKI_MAX_DIMS; d++) {
        shape[d] = ir_dims(p, v)[d].count;
    }
    char why[WHY_BYTES];
    s->operand[param] = (uint8_t)operand;
    return signature_bind(&s->sig.param[param], (nki_dtype)v->dtype, ndim, shape, sizes, why,
                          sizeof why)
               ? NKI_OK
               : site_fail(k, s, why);
}

static nki_status bind_site(nki_kernel *k, host_site *s, sig_sizes *sizes)
{
    char why[WHY_BYTES];
    if (!signature_parse(s->text, &s->sig, why, sizeof why)) {
        return site_fail(k, s, why);
    }
    uint32_t ins = 0, ios = HALF, given = 0;
    for (size_t i = 0; i < s->sig.count; i++) {
        const sig_param *p = &s->sig.param[i];
        if (p->kind != SIG_TENSOR) {
            continue;
        }
        bool read = p->mode == SIG_IN;
        if (read && ins == HALF) {
            return site_fail(k, s, "its signature has more tensors than it is given");
        }
        nki_status st = bind_tensor(k, s, i, read ? ins++ : ios++, sizes);
        if (st != NKI_OK) {
            return st;
        }
    }
    const ir *p = ir_of(k, s);
    for (uint32_t i = 0; i < DEVICE_HOST_OPERANDS; i++) {
        given += p->args.at[p->instrs.at[s->instr].args + FIRST_OPERAND + i].kind == IRA_VIEW;
    }
    if (given != ins + ios - HALF) {
        return site_fail(k, s, "its signature has fewer tensors than it is given");
    }
    for (size_t i = 0; i < s->sig.count; i++) {
        const sig_param *q = &s->sig.param[i];
        size_t v = 0;
        if (q->kind == SIG_TENSOR || q->kind == SIG_PTR) {
            continue;
        }
        if (!q->is_size || !signature_size(sizes, q->name, &v) ||
            (q->kind == SIG_I32 && v > INT32_MAX)) {
            return site_fail(k, s, "a kernel passes no number but sizes of its tensors");
        }
        if (q->kind == SIG_I32) {
            s->value[i].i32 = (int32_t)v;
        } else {
            s->value[i].i64 = (int64_t)v;
        }
    }
    return NKI_OK;
}

static uint32_t count_calls(const ir *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        n += p->instrs.at[i].op == ISA_host_call;
    }
    return n;
}

static nki_status read_core(nki_kernel *k, uint32_t core, sig_sizes *sizes)
{
    const ir *p = k->core[core].pr->ir;
    nki_status st = NKI_OK;
    for (uint32_t i = 0; i < p->instrs.n && st == NKI_OK; i++) {
        const ir_instr *in = &p->instrs.at[i];
        if (in->op == ISA_host_call) {
            host_site *s = &k->host_sites[k->host_site_count++];
            s->core = core;
            s->instr = i;
            s->name = ir_text(p, p->args.at[in->args].v);
            s->text = ir_text(p, p->args.at[in->args + 1].v);
            sizes->count = 0;
            st = bind_site(k, s, sizes);
        }
    }
    return st;
}

nki_status host_sites_read(nki_kernel *k)
{
    size_t n = 0;
    for (uint32_t i = 0; i < k->core_count; i++) {
        n += count_calls(k->core[i].pr->ir);
    }
    if (n == 0) {
        return NKI_OK;
    }
    k->host_sites = NEW_N(&k->mem, host_site, n);
    sig_sizes *sizes = NEW(&k->mem, sig_sizes);
    nki_status st = NKI_OK;
    for (uint32_t i = 0; i < k->core_count && st == NKI_OK; i++) {
        st = read_core(k, i, sizes);
    }
    return st;
}

static bool same_signature(const signature *a, const signature *b)
{
    char x[SIG_TEXT_MAX], y[SIG_TEXT_MAX];
    return signature_print(a, x, sizeof x) < sizeof x &&
           signature_print(b, y, sizeof y) < sizeof y && strcmp(x, y) == 0;
}

nki_status host_run_open(nki_kernel *k, host_run **out)
{
    *out = NULL;
    if (k->host_site_count == 0) {
        return NKI_OK;
    }
    host_run *r = calloc(1, sizeof *r + k->host_site_count * sizeof *r->fn);
    if (!r) {
        return context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    r->k = k;
    for (size_t i = 0; i < k->host_site_count; i++) {
        const host_site *s = &k->host_sites[i];
        r->fn[i] = host_fn_find(k->ctx, s->name);
        nki_status st = NKI_OK;
        if (!r->fn[i]) {
            st = site_fail(k, s, "nothing is registered under this name (nki_host_function)");
        } else if (!same_signature(&s->sig, &r->fn[i]->sig)) {
            char text[SIG_TEXT_MAX], why[WHY_BYTES];
            signature_print(&r->fn[i]->sig, text, sizeof text);
            snprintf(why, sizeof why, "it is registered as %.160s; the kernel calls %.160s", text,
                     s->text);
            st = site_fail(k, s, why);
        }
        if (st != NKI_OK) {
            host_run_close(r);
            return st;
        }
    }
    *out = r;
    return NKI_OK;
}

void host_run_close(host_run *r)
{
    for (size_t i = 0; r && i < r->k->host_site_count; i++) {
        host_fn_release(r->fn[i]);
    }
    if (r) {
        failure_release(r->failed);
        free(r);
    }
}

failure *host_run_failure(host_run *r)
{
    failure *f = r ? r->failed : NULL;
    if (r) {
        r->failed = NULL;
    }
    return f;
}

// By core and instruction.
static size_t find_site(const nki_kernel *k, uint32_t core, uint32_t instr)
{
    size_t lo = 0, hi = k->host_site_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const host_site *s = &k->host_sites[mid];
        if (s->core < core || (s->core == core && s->instr < instr)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

bool host_run_call(void *host_ctx, uint32_t core, uint32_t instr, void *const *data)
{
    host_run *r = host_ctx;
    size_t i = find_site(r->k, core, instr);
    const host_site *s = &r->k->host_sites[i];
    host_value value[SIG_PARAMS_MAX];
    for (size_t p = 0; p < s->sig.count; p++) {
        value[p] = s->value[p];
        if (s->sig.param[p].kind == SIG_TENSOR) {
            value[p].p = data[s->operand[p]];
        } else if (s->sig.param[p].kind == SIG_PTR) {
            value[p].p = r->fn[i]->ptr;
        }
    }
    COUNT(r->k->ctx, host_calls, 1);
    int32_t got = host_ffi_call(r->fn[i]->ffi, r->fn[i]->fn, value);
    if (got != 0) {
        char what[64];
        snprintf(what, sizeof what, "it returned %d", (int)got);
        site_fail(r->k, s, what);
        r->failed = failure_create(NKI_ERR_HOST, NULL, nki_context_error(r->k->ctx));
    }
    return got == 0;
}
