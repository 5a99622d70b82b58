#include "runtime/expression.h"
#include "runtime/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The library's ops: each finds its kernel in stdlib/ops and calls it as a user's would be.

static nki_status fail_arg(nki_context *ctx, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static nki_status fail_arg(nki_context *ctx, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return context_fail(ctx, NKI_ERR_ARG, "%s", text);
}

static bool usable(nki_context *ctx, const nki_tensor *t)
{
    if (!t || t->ctx != ctx) {
        fail_arg(ctx, "a tensor is NULL or belongs to another context");
        return false;
    }
    return true;
}

static nki_status call(nki_context *ctx, const char *name, nki_stream *s, const nki_arg *args,
                       size_t n, nki_tensor **outputs, size_t output_count)
{
    nki_op *op;
    nki_status st = nki_op_builtin(ctx, name, &op);
    if (st == NKI_OK) {
        st = nki_op_call(op, s, args, n, outputs, output_count, NULL);
        nki_op_release(op);
    }
    return st;
}

// ---- element by element

static bool broadcast(nki_context *ctx, nki_tensor *const *in, size_t n, size_t *rank,
                      size_t shape[NKI_MAX_DIMS])
{
    *rank = 0;
    for (size_t i = 0; i < n; i++) {
        *rank = in[i]->ndim > *rank ? in[i]->ndim : *rank;
    }
    for (size_t d = 0; d < *rank; d++) {
        shape[d] = 1;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t d = 0; d < in[i]->ndim; d++) {
            size_t at = *rank - in[i]->ndim + d, size = in[i]->shape[d];
            if (size != 1 && shape[at] != 1 && size != shape[at]) {
                fail_arg(ctx,
                         "the shapes do not broadcast: dimension %zu of input %zu is %zu, not "
                         "%zu or 1",
                         d, i, size, shape[at]);
                return false;
            }
            shape[at] = size != 1 ? size : shape[at];
        }
    }
    return true;
}

static expr_type type_of(nki_dtype d)
{
    return nki_dtype_is_float(d) ? EXPR_FLOAT
           : d == NKI_UINT32     ? EXPR_UINT
           : d == NKI_BOOL       ? EXPR_BOOL
                                 : EXPR_INT;
}

// What the inputs that are (not) floats have in common; `mixed` when they differ, none when there
// are none.
static nki_dtype common(nki_tensor *const *in, size_t n, bool floats, nki_dtype mixed,
                        nki_dtype none)
{
    nki_dtype d = none;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (nki_dtype_is_float(in[i]->dtype) == floats) {
            d = any && d != in[i]->dtype ? mixed : in[i]->dtype;
            any = true;
        }
    }
    return d;
}

static bool is_truth(const expression *e, const expr_operand *o)
{
    op_id op = o->kind == EXPR_STEP ? e->step[o->index].op : EXPR_WHERE;
    return op != EXPR_WHERE && (op_table[op].cls == OPC_C || op_table[op].cls == OPC_L);
}

static nki_dtype result_type(const expression *e, const expr_operand *o, nki_tensor *const *in,
                             size_t n)
{
    if (o->kind == EXPR_INPUT) {
        return in[o->index]->dtype;
    }
    if (is_truth(e, o)) {
        return NKI_FLOAT32;
    }
    switch (expression_type(e, o)) {
    case EXPR_BOOL: return NKI_BOOL;
    case EXPR_UINT: return NKI_UINT32;
    case EXPR_INT: return common(in, n, false, NKI_INT32, NKI_INT32);
    case EXPR_FLOAT: break;
    }
    return common(in, n, true, NKI_FLOAT32, NKI_FLOAT32);
}

enum { STEPS_BYTES = EXPR_STEPS_MAX * 160, RESULTS_BYTES = EXPR_RESULTS_MAX * 64 };

typedef struct plan {
    expression e;
    nki_dtype type[EXPR_RESULTS_MAX];
    size_t rank, shape[NKI_MAX_DIMS];
    char steps[STEPS_BYTES], results[RESULTS_BYTES], types[EXPR_RESULTS_MAX * 24];
} plan;

static nki_status make_plan(nki_context *ctx, plan *p, const char *text, nki_tensor *const *in,
                            size_t n, const nki_dtype *types, size_t output_count)
{
    char why[300];
    p->e.input_count = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        if (!usable(ctx, in[i])) {
            return NKI_ERR_ARG;
        }
        if (dtype_class_of((dtype)in[i]->dtype) == DTC_X) {
            return fail_arg(ctx, "input %zu has packed words", i);
        }
        p->e.input[i] = type_of(in[i]->dtype);
    }
    if (!expression_parse(text, &p->e, why, sizeof why)) {
        return fail_arg(ctx, "%s", why);
    }
    if (p->e.result_count != output_count) {
        return fail_arg(ctx, "the expression has %u results; there is room for %zu",
                        p->e.result_count, output_count);
    }
    if (!broadcast(ctx, in, n, &p->rank, p->shape)) {
        return NKI_ERR_ARG;
    }
    size_t len = 1;
    p->types[0] = '(';
    for (size_t i = 0; i < output_count; i++) {
        p->type[i] = types ? types[i] : result_type(&p->e, &p->e.result[i], in, n);
        const char *name = nki_dtype_name(p->type[i]);
        if (!name || dtype_class_of((dtype)p->type[i]) == DTC_X) {
            return fail_arg(ctx, "result %zu cannot have this type", i);
        }
        len += (size_t)snprintf(p->types + len, sizeof p->types - len, "'%s%s',", name,
                                p->type[i] == NKI_BOOL ? "_" : "");
    }
    snprintf(p->types + len, sizeof p->types - len, ")");
    if (!expression_steps(&p->e, p->steps, sizeof p->steps) ||
        !expression_results(&p->e, p->results, sizeof p->results)) {
        return fail_arg(ctx, "the expression is too long");
    }
    return NKI_OK;
}

// A tensor without elements needs no kernel.
static nki_status make_empty(nki_context *ctx, const plan *p, nki_tensor **outputs, size_t n)
{
    nki_status st = NKI_OK;
    for (size_t i = 0; i < n && st == NKI_OK; i++) {
        st = nki_tensor_create(ctx, p->type[i], p->rank, p->shape, &outputs[i]);
    }
    return st;
}

// Kernels have no scalars in memory: () goes in and comes out as (1,).
static nki_status reshape_scalar(nki_tensor **t)
{
    nki_tensor *v;
    nki_status st = nki_tensor_reshape(*t, 0, NULL, &v);
    if (st == NKI_OK) {
        nki_tensor_release(*t);
        *t = v;
    }
    return st;
}

static nki_status run_plan(nki_context *ctx, nki_stream *s, const plan *p, nki_tensor *const *in,
                           size_t n, nki_tensor **outputs, size_t output_count)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    nki_arg args[EXPR_INPUTS_MAX + 3] = {
        {.expr = p->steps}, {.expr = p->results}, {.expr = p->types}};
    nki_tensor *views[EXPR_INPUTS_MAX] = {NULL};
    nki_status st = NKI_OK;
    for (size_t i = 0; i < n && st == NKI_OK; i++) {
        args[3 + i] = (nki_arg){.name = names[i], .tensor = in[i]};
        if (in[i]->ndim == 0) {
            st = nki_tensor_reshape(in[i], 1, (const size_t[]){1}, &views[i]);
            args[3 + i].tensor = views[i];
        }
    }
    if (st == NKI_OK) {
        st = call(ctx, "elementwise", s, args, 3 + n, outputs, output_count);
    }
    for (size_t i = 0; i < n; i++) {
        nki_tensor_release(views[i]);
    }
    for (size_t i = 0; p->rank == 0 && i < output_count && st == NKI_OK; i++) {
        st = reshape_scalar(&outputs[i]);
    }
    return st;
}

static void drop(nki_tensor **outputs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        nki_tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
}

nki_status nki_elementwise(nki_context *ctx, nki_stream *s, const char *text,
                           nki_tensor *const *inputs, size_t input_count, const nki_dtype *types,
                           nki_tensor **outputs, size_t output_count)
{
    for (size_t i = 0; outputs && i < output_count; i++) {
        outputs[i] = NULL;
    }
    if (!ctx || !text || !inputs || !outputs || !context_alive(ctx)) {
        return NKI_ERR_ARG;
    }
    if (input_count == 0 || input_count > EXPR_INPUTS_MAX) {
        return fail_arg(ctx, "there are %zu inputs; there can be 1 to %d", input_count,
                        EXPR_INPUTS_MAX);
    }
    plan *p = calloc(1, sizeof *p);
    if (!p) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory");
    }
    nki_status st = make_plan(ctx, p, text, inputs, input_count, types, output_count);
    if (st == NKI_OK) {
        bool empty = false;
        for (size_t d = 0; d < p->rank; d++) {
            empty = empty || p->shape[d] == 0;
        }
        st = empty ? make_empty(ctx, p, outputs, output_count)
                   : run_plan(ctx, s, p, inputs, input_count, outputs, output_count);
    }
    free(p);
    if (st != NKI_OK) {
        drop(outputs, output_count);
    }
    return st;
}

// ---- the others

static nki_status check_float(nki_context *ctx, const char *name, const nki_tensor *t)
{
    return nki_dtype_is_float(t->dtype)
               ? NKI_OK
               : fail_arg(ctx, "%s is for float types, not %s", name, nki_dtype_name(t->dtype));
}

static nki_status one_input(nki_context *ctx, nki_stream *s, const char *name, nki_tensor *x,
                            size_t out_rank, nki_tensor **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !out || !context_alive(ctx) || !usable(ctx, x)) {
        return NKI_ERR_ARG;
    }
    if (x->ndim == 0) {
        return fail_arg(ctx, "%s needs an axis; the tensor is a scalar", name);
    }
    nki_status st = check_float(ctx, name, x);
    if (st != NKI_OK) {
        return st;
    }
    if (x->count == 0) {
        return nki_tensor_create(ctx, x->dtype, out_rank, x->shape, out);  // sums of nothing are 0
    }
    st = call(ctx, name, s, &(nki_arg){.tensor = x}, 1, out, 1);
    if (st == NKI_OK && out_rank == 0) {
        st = reshape_scalar(out);
    }
    return st;
}

nki_status nki_softmax(nki_context *ctx, nki_stream *s, nki_tensor *x, nki_tensor **out)
{
    return one_input(ctx, s, "softmax", x, x ? x->ndim : 0, out);
}

nki_status nki_sum(nki_context *ctx, nki_stream *s, nki_tensor *x, nki_tensor **out)
{
    return one_input(ctx, s, "sum", x, x && x->ndim ? x->ndim - 1 : 0, out);
}

nki_status nki_matmul(nki_context *ctx, nki_stream *s, nki_tensor *a, nki_tensor *b,
                      nki_tensor **out)
{
    if (out) {
        *out = NULL;
    }
    if (!ctx || !out || !context_alive(ctx) || !usable(ctx, a) || !usable(ctx, b)) {
        return NKI_ERR_ARG;
    }
    nki_status st = check_float(ctx, "matmul", a);
    st = st == NKI_OK ? check_float(ctx, "matmul", b) : st;
    if (st != NKI_OK) {
        return st;
    }
    if (a->ndim < 2 || b->ndim < 2 || (b->ndim != 2 && b->ndim != a->ndim)) {
        return fail_arg(ctx, "matmul of %zu and %zu dimensions", a->ndim, b->ndim);
    }
    size_t k = a->shape[a->ndim - 1], n = b->shape[b->ndim - 1];
    if (b->shape[b->ndim - 2] != k) {
        return fail_arg(ctx, "matmul: a has %zu columns, b has %zu rows", k, b->shape[b->ndim - 2]);
    }
    for (size_t d = 0; b->ndim > 2 && d < a->ndim - 2; d++) {
        if (a->shape[d] != b->shape[d]) {
            return fail_arg(ctx, "matmul: dimension %zu is %zu and %zu", d, a->shape[d],
                            b->shape[d]);
        }
    }
    if (a->count == 0 || b->count == 0) {
        size_t shape[NKI_MAX_DIMS];
        memcpy(shape, a->shape, sizeof shape);
        shape[a->ndim - 1] = n;
        return nki_tensor_create(ctx, a->dtype, a->ndim, shape, out);
    }
    const nki_arg args[] = {{.tensor = a}, {.tensor = b}};
    return call(ctx, "matmul", s, args, 2, out, 1);
}
