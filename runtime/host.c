#include "runtime/host.h"

#include "runtime/host_ffi.h"
#include "runtime/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_BYTES = 400 };

void host_fn_release(host_fn *h)
{
    if (h && atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1) {
        host_ffi_free(h->ffi);
        free(h->name);
        free(h);
    }
}

void host_release_all(nki_context *ctx)
{
    while (ctx->hosts) {
        host_fn *h = ctx->hosts;
        ctx->hosts = h->next;
        host_fn_release(h);
    }
}

static nki_status check_text(nki_context *ctx, const char *text, signature *sig)
{
    char why[WHY_BYTES];
    return signature_parse(text, sig, why, sizeof why) ? NKI_OK
                                                       : context_fail(ctx, NKI_ERR_ARG, "%s", why);
}

// ---- C as an op

// Sizes of results must follow from what is given.
static nki_status check_outputs(nki_context *ctx, const signature *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const sig_param *p = &s->param[i];
        for (size_t d = 0; p->kind == SIG_TENSOR && p->mode == SIG_OUT && d < p->ndim; d++) {
            bool known = !p->dim[d].name[0];
            for (size_t j = 0; j < s->count && !known; j++) {
                const sig_param *o = &s->param[j];
                known = o->kind != SIG_TENSOR && strcmp(o->name, p->dim[d].name) == 0;
                for (size_t e = 0; e < o->ndim && o->mode != SIG_OUT; e++) {
                    known = known || strcmp(o->dim[e].name, p->dim[d].name) == 0;
                }
            }
            if (!known) {
                return context_fail(ctx, NKI_ERR_ARG,
                                    "signature: nothing given says how large '%s' of out '%s' is",
                                    p->dim[d].name, p->name);
            }
        }
    }
    return NKI_OK;
}

nki_status nki_host_function(nki_context *ctx, const char *name, const char *signature_text,
                             nki_fn fn, void *ptr)
{
    if (!ctx || !name || !signature_text || !fn || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    host_fn *h = calloc(1, sizeof *h);
    if (!h) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    atomic_init(&h->refs, 1);
    h->name = strdup(name);
    h->fn = fn;
    h->ptr = ptr;
    nki_status st = h->name ? check_text(ctx, signature_text, &h->sig)
                            : context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    if (st == NKI_OK) {
        st = check_outputs(ctx, &h->sig);
    }
    if (st == NKI_OK) {
        const char *why;
        st = host_ffi_prepare(&h->sig, &h->ffi, &why);
        if (st != NKI_OK) {
            context_fail(ctx, st, "%s", why);
        }
    }
    if (st != NKI_OK) {
        host_fn_release(h);
        return st;
    }
    pthread_mutex_lock(&ctx->lock);
    host_fn **at = &ctx->hosts;
    while (*at && strcmp((*at)->name, name) != 0) {
        at = &(*at)->next;
    }
    host_fn *old = *at;
    h->next = old ? old->next : NULL;
    *at = h;
    pthread_mutex_unlock(&ctx->lock);
    host_fn_release(old);
    return NKI_OK;
}

host_fn *host_fn_find(nki_context *ctx, const char *name)
{
    pthread_mutex_lock(&ctx->lock);
    host_fn *h = ctx->hosts;
    while (h && strcmp(h->name, name) != 0) {
        h = h->next;
    }
    if (h) {
        atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&ctx->lock);
    return h;
}

nki_status nki_op_host(nki_context *ctx, const char *name, nki_op **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !name || !out || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    host_fn *h = host_fn_find(ctx, name);
    if (!h) {
        return context_fail(ctx, NKI_ERR_ARG, "no host function is registered as '%s'", name);
    }
    nki_op *op;
    nki_status st = op_new(ctx, &op);
    if (st != NKI_OK) {
        host_fn_release(h);
        return st;
    }
    op->host = h;
    *out = op;
    return NKI_OK;
}

// One call: values by parameter; tensors are the command's, in parameter order.
typedef struct host_call {
    host_fn *h;
    host_value value[SIG_PARAMS_MAX];
} host_call;

static failure *run_host(command *c)
{
    host_call *call = c->arg[0];
    nki_context *ctx = c->stream->ctx;
    const signature *s = &call->h->sig;
    void *packed[SIG_PARAMS_MAX] = {NULL};
    uint32_t n = 0;
    bool ok = true;
    for (size_t i = 0; i < s->count; i++) {
        if (s->param[i].kind != SIG_TENSOR) {
            continue;
        }
        nki_tensor *t = c->tensors[n];
        call->value[i].p = t->data;
        if (!t->contiguous) {
            packed[n] = context_take(ctx, t->size_bytes);
            ok = ok && packed[n];
            if (packed[n] && s->param[i].mode != SIG_OUT) {
                tensor_pack(t, packed[n]);
            }
            call->value[i].p = packed[n];
            COUNT(ctx, packed_copies, 1);
        }
        n++;
    }
    COUNT(ctx, host_calls, 1);
    int32_t r = ok ? host_ffi_call(call->h->ffi, call->h->fn, call->value) : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (packed[i]) {
            if (ok && r == 0 && c->writes[i]) {
                tensor_unpack(c->tensors[i], packed[i]);
            }
            context_give(ctx, packed[i], c->tensors[i]->size_bytes);
        }
    }
    if (!ok) {
        return failure_nomem();
    }
    if (r == 0) {
        return NULL;
    }
    char text[256];
    snprintf(text, sizeof text, "host function '%s' returned %d", call->h->name, (int)r);
    return failure_create(NKI_ERR_HOST, NULL, text);
}

static void fini_host(command *c)
{
    host_call *call = c->arg[0];
    host_fn_release(call->h);
    free(call);
}

static bool number(const nki_arg *a, sig_kind k, host_value *out)
{
    const nki_value *v = a->value;
    bool is_int = v && (v->kind == NKI_VALUE_INT || v->kind == NKI_VALUE_BOOL);
    bool is_float = v && v->kind == NKI_VALUE_FLOAT;
    switch (k) {
    case SIG_I32: out->i32 = is_int ? (int32_t)v->i : 0; return is_int && v->i == (int32_t)v->i;
    case SIG_I64: out->i64 = is_int ? v->i : 0; return is_int;
    case SIG_F32: out->f32 = is_int ? (float)v->i : is_float ? (float)v->f : 0; break;
    case SIG_F64: out->f64 = is_int ? (double)v->i : is_float ? v->f : 0; break;
    case SIG_TENSOR:
    case SIG_PTR: return false;
    }
    return is_int || is_float;
}

typedef struct binding {
    nki_context *ctx;
    const signature *s;
    const nki_arg *args;
    size_t arg_count, output_count;
    nki_tensor *in[SIG_PARAMS_MAX];  // by parameter
    sig_sizes sizes;
} binding;

// The arguments in order: tensors that are given, and numbers that are no sizes of them.
static nki_status bind_inputs(binding *b, host_call *call)
{
    size_t a = 0, outs = 0;
    char why[WHY_BYTES];
    for (size_t i = 0; i < b->s->count; i++) {
        const sig_param *p = &b->s->param[i];
        if (p->kind == SIG_PTR) {
            call->value[i].p = call->h->ptr;
        } else if (p->kind == SIG_TENSOR && p->mode == SIG_OUT) {
            outs++;
        } else if (p->is_size) {
            continue;
        } else if (a == b->arg_count) {
            return context_fail(b->ctx, NKI_ERR_ARG, "host function '%s' also needs '%s'",
                                call->h->name, p->name);
        } else if (p->kind != SIG_TENSOR) {
            if (!number(&b->args[a++], p->kind, &call->value[i])) {
                return context_fail(b->ctx, NKI_ERR_ARG,
                                    "'%s' of host function '%s' is no number of its type", p->name,
                                    call->h->name);
            }
        } else {
            nki_tensor *t = b->args[a++].tensor;
            if (!t || t->ctx != b->ctx) {
                return context_fail(b->ctx, NKI_ERR_ARG,
                                    "'%s' of host function '%s' is no tensor of this context",
                                    p->name, call->h->name);
            }
            if (!signature_bind(p, t->dtype, t->ndim, t->shape, &b->sizes, why, sizeof why)) {
                return context_fail(b->ctx, NKI_ERR_ARG, "host function '%s': %s", call->h->name,
                                    why);
            }
            b->in[i] = t;
        }
    }
    if (a != b->arg_count || outs != b->output_count) {
        return context_fail(b->ctx, NKI_ERR_ARG,
                            "host function '%s' takes %zu arguments and returns %zu tensors; %zu "
                            "and room for %zu are given",
                            call->h->name, a, outs, b->arg_count, b->output_count);
    }
    return NKI_OK;
}

static nki_status bind_sizes(binding *b, host_call *call)
{
    for (size_t i = 0; i < b->s->count; i++) {
        const sig_param *p = &b->s->param[i];
        size_t v = 0;
        if (!p->is_size) {
            continue;
        }
        if (!signature_size(&b->sizes, p->name, &v) || (p->kind == SIG_I32 && v > INT32_MAX)) {
            return context_fail(b->ctx, NKI_ERR_ARG, "size '%s' of host function '%s' is not known",
                                p->name, call->h->name);
        }
        if (p->kind == SIG_I32) {
            call->value[i].i32 = (int32_t)v;
        } else {
            call->value[i].i64 = (int64_t)v;
        }
    }
    return NKI_OK;
}

static nki_status bind_tensors(binding *b, command *c, nki_tensor **outputs)
{
    size_t o = 0;
    for (size_t i = 0; i < b->s->count; i++) {
        const sig_param *p = &b->s->param[i];
        if (p->kind != SIG_TENSOR) {
            continue;
        }
        if (p->mode != SIG_OUT) {
            command_use(c, b->in[i], p->mode == SIG_IN ? ACCESS_READ : ACCESS_CHANGE);
            continue;
        }
        size_t shape[NKI_MAX_DIMS];
        for (size_t d = 0; d < p->ndim; d++) {
            shape[d] = p->dim[d].size;
            if (p->dim[d].name[0] && !signature_size(&b->sizes, p->dim[d].name, &shape[d])) {
                return context_fail(b->ctx, NKI_ERR_ARG, "size '%s' is not known", p->dim[d].name);
            }
        }
        nki_status st = tensor_make(b->ctx, p->dtype, p->ndim, shape, true, &outputs[o]);
        if (st != NKI_OK) {
            return st;
        }
        command_use(c, outputs[o++], ACCESS_REPLACE);
    }
    return NKI_OK;
}

nki_status host_op_call(nki_op *op, nki_stream *s, const nki_arg *args, size_t arg_count,
                        nki_tensor **outputs, size_t output_count)
{
    nki_context *ctx = op->ctx;
    if ((arg_count && !args) || (output_count && !outputs) || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    if (s && s->ctx != ctx) {
        return context_fail(ctx, NKI_ERR_ARG, "the stream belongs to another context");
    }
    bool waits = !s;
    s = s ? s : ctx->queue->devices[0].stream;
    command *c = command_create(ctx, s, SIG_PARAMS_MAX);
    host_call *call = c ? calloc(1, sizeof *call) : NULL;
    binding *b = call ? calloc(1, sizeof *b) : NULL;
    nki_status st = NKI_ERR_NOMEM;
    if (!b) {
        free(call);
        context_fail(ctx, st, "out of memory");
    } else {
        *b = (binding){.ctx = ctx, .s = &op->host->sig, .args = args, .arg_count = arg_count};
        b->output_count = output_count;
        call->h = op->host;
        atomic_fetch_add_explicit(&op->host->refs, 1, memory_order_relaxed);
        c->run = run_host;
        c->fini = fini_host;
        c->arg[0] = call;
        c->label = op->host->name;
        st = bind_inputs(b, call);
        st = st == NKI_OK ? bind_sizes(b, call) : st;
        st = st == NKI_OK ? bind_tensors(b, c, outputs) : st;
    }
    free(b);
    if (st == NKI_OK) {
        COUNT(ctx, submits, !waits);
        st = waits ? queue_call(c, NULL) : queue_submit(c);
    } else if (c) {
        command_release(c);
    }
    for (size_t i = 0; st != NKI_OK && i < output_count; i++) {
        nki_tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
    return st;
}

// ---- kernels as C

struct host_closure {
    struct host_closure *next;
    nki_kernel *k;  // not retained: it owns the closure
    signature sig;
    host_ffi *ffi;
    host_closure_code *code;
};

void host_closures_free(nki_kernel *k)
{
    while (k->closures) {
        struct host_closure *c = k->closures;
        k->closures = c->next;
        host_ffi_closure_free(c->code);
        host_ffi_free(c->ffi);
        free(c);
    }
}

// The caller's memory as tensors, for the length of one call.
static int32_t call_kernel(void *data, void *const *values)
{
    struct host_closure *h = data;
    nki_kernel *k = h->k;
    nki_context *ctx = k->ctx;
    if (!context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    nki_tensor *t[SIG_PARAMS_MAX] = {NULL};
    nki_arg args[SIG_PARAMS_MAX];
    nki_status st = NKI_OK;
    for (size_t i = 0; i < h->sig.count && st == NKI_OK; i++) {
        const nki_tensor_info *info =
            i < k->param_count ? &k->params[i] : &k->outputs[i - k->param_count];
        void *at;
        memcpy(&at, values[i], sizeof at);
        st =
            nki_tensor_wrap(ctx, info->dtype, info->ndim, info->shape, NULL, at, NULL, NULL, &t[i]);
        args[i] = (nki_arg){.name = info->name, .tensor = t[i]};
    }
    command *c = NULL;
    if (st == NKI_OK) {
        st = call_prepare(k, ctx->queue->devices[0].stream, args, k->param_count,
                          t + k->param_count, k->output_count, true, &c);
    }
    if (st == NKI_OK) {
        st = queue_call(c, NULL);
    }
    for (size_t i = 0; i < h->sig.count; i++) {
        nki_tensor_release(t[i]);
    }
    return (int32_t)st;
}

// "out0", with as many "_" as tell it from the parameters.
static void name_output(const nki_kernel *k, size_t output, sig_param *p)
{
    snprintf(p->name, sizeof p->name, "out%zu", output);
    for (size_t i = 0; i < k->param_count; i++) {
        size_t n = strlen(p->name);
        if (strcmp(k->params[i].name, p->name) == 0 && n + 1 < sizeof p->name) {
            memcpy(p->name + n, "_", 2);
            i = (size_t)-1;  // again from the first
        }
    }
}

static nki_status describe(nki_kernel *k, signature *s)
{
    const uint8_t *written = kernel_written(k);
    memset(s, 0, sizeof *s);
    if (!written) {
        return context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory");
    }
    if (k->param_count + k->output_count > SIG_PARAMS_MAX) {
        return context_fail(k->ctx, NKI_ERR_ARG, "%s has more than %d tensors", nki_kernel_name(k),
                            SIG_PARAMS_MAX);
    }
    s->returns_i32 = true;
    for (size_t i = 0; i < k->param_count + k->output_count; i++) {
        sig_param *p = &s->param[s->count++];
        bool out = i >= k->param_count;
        const nki_tensor_info *t = out ? &k->outputs[i - k->param_count] : &k->params[i];
        p->kind = SIG_TENSOR;
        p->mode = out ? SIG_OUT : written[i] ? SIG_INOUT : SIG_IN;
        p->dtype = t->dtype;
        p->ndim = t->ndim;
        for (size_t d = 0; d < t->ndim; d++) {
            p->dim[d].size = t->shape[d];
        }
        if (out) {
            name_output(k, i - k->param_count, p);
        } else {
            snprintf(p->name, sizeof p->name, "%s", t->name);
        }
    }
    return NKI_OK;
}

nki_status nki_kernel_signature(nki_kernel *k, const char **out)
{
    if (!k || !out || !context_alive(k->ctx)) {
        return NKI_ERR_ARG;
    }
    *out = atomic_load(&k->signature);
    if (*out) {
        return NKI_OK;
    }
    signature *s = malloc(sizeof *s);
    nki_status st = s ? describe(k, s) : context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory");
    if (st == NKI_OK) {
        size_t len = signature_print(s, NULL, 0);
        char *text = malloc(len + 1), *none = NULL;
        if (!text) {
            st = context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory");
        } else {
            signature_print(s, text, len + 1);
            if (!atomic_compare_exchange_strong(&k->signature, &none, text)) {
                free(text);
                text = none;
            }
            *out = text;
        }
    }
    free(s);
    return st;
}

// Whether what the caller wrote is what the kernel is.
static nki_status match(nki_kernel *k, const signature *given, const signature *own)
{
    if (given->count != own->count) {
        return context_fail(k->ctx, NKI_ERR_ARG,
                            "the signature has %zu parameters; %s has %zu tensors", given->count,
                            nki_kernel_name(k), own->count);
    }
    sig_sizes z = {0};
    for (size_t i = 0; i < own->count; i++) {
        const sig_param *g = &given->param[i], *o = &own->param[i];
        size_t shape[NKI_MAX_DIMS];
        char why[WHY_BYTES];
        if (g->kind != SIG_TENSOR || g->mode != o->mode) {
            static const char *const modes[] = {"in", "out", "inout"};
            return context_fail(k->ctx, NKI_ERR_ARG, "parameter '%s' of %s is %s %s[...]", g->name,
                                nki_kernel_name(k), modes[o->mode], nki_dtype_name(o->dtype));
        }
        for (size_t d = 0; d < o->ndim; d++) {
            shape[d] = o->dim[d].size;
        }
        if (!signature_bind(g, o->dtype, o->ndim, shape, &z, why, sizeof why)) {
            return context_fail(k->ctx, NKI_ERR_ARG, "%s: %s", nki_kernel_name(k), why);
        }
    }
    return NKI_OK;
}

nki_status nki_kernel_function(nki_kernel *k, const char *signature_text, nki_fn *out)
{
    if (out) {
        *out = NULL;
    }
    if (!k || !signature_text || !out || !context_alive(k->ctx)) {
        return NKI_ERR_ARG;
    }
    nki_context *ctx = k->ctx;
    struct host_closure *h = calloc(1, sizeof *h);
    signature *own = malloc(sizeof *own);
    nki_status st = h && own ? check_text(ctx, signature_text, &h->sig)
                             : context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    st = st == NKI_OK ? describe(k, own) : st;
    st = st == NKI_OK ? match(k, &h->sig, own) : st;
    if (st == NKI_OK) {
        const char *why = "out of memory for a function";
        h->k = k;
        st = host_ffi_prepare(&h->sig, &h->ffi, &why);
        if (st == NKI_OK) {
            h->code = host_ffi_closure(h->ffi, call_kernel, h, out);
            st = h->code ? NKI_OK : NKI_ERR_NOMEM;
        }
        if (st != NKI_OK) {
            context_fail(ctx, st, "%s", why);
        }
    }
    if (st == NKI_OK) {
        pthread_mutex_lock(&ctx->lock);
        h->next = k->closures;
        k->closures = h;
        pthread_mutex_unlock(&ctx->lock);
        h = NULL;
    }
    if (h) {
        host_ffi_free(h->ffi);
    }
    free(h);
    free(own);
    return st;
}
