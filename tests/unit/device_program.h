#ifndef TESTS_DEVICE_PROGRAM_H
#define TESTS_DEVICE_PROGRAM_H

// Small programs for the device's tests, built by hand: tensors with addresses, instructions, run.

#include "device/device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct prog {
    arena mem;
    jmp_buf oom;
    ir *p;
    program pr;
    uint32_t sbuf_at, psum_at;  // next free byte of a partition
    uint64_t hbm_at;
    void *params[16], *outs[16];
    diags ds;
    device_core *core;
    device_program *dp;
} prog;

static inline void prog_init(prog *g, int gen)
{
    memset(g, 0, sizeof *g);
    arena_init(&g->mem, 0, &g->oom);
    if (setjmp(g->oom)) {
        abort();
    }
    g->p = ir_new(&g->mem, target_by_gen(gen));
    g->pr.ir = g->p;
    diags_init(&g->ds, &g->mem);
    g->core = device_core_create(g->p->target);
    assert_non_null(g->core);
}

static inline void prog_fini(prog *g)
{
    device_program_release(g->dp);
    device_core_release(g->core);
    arena_fini(&g->mem);
}

// On chip shapes are (partitions, free...). Returns the tensor.
static inline uint32_t prog_tensor(prog *g, buffer_kind buf, dtype d, uint32_t ndim,
                                   const uint32_t *shape)
{
    ir_tensor t = {.dtype = (uint8_t)d, .buffer = (uint8_t)buf, .ndim = (uint8_t)ndim};
    bool chip = buffer_on_chip(buf);
    uint64_t n = dtype_size(d);
    t.name = ir_str(g->p, "t", 1);
    for (uint32_t i = 0; i < ndim; i++) {
        t.shape[i] = shape[i];
        n *= chip && i == 0 ? 1 : shape[i];
    }
    t.size_bytes = n;
    uint64_t padded = (n + 63) & ~63ull;
    if (chip) {
        uint32_t *at = buf == BUF_PSUM ? &g->psum_at : &g->sbuf_at;
        t.partitions = (uint16_t)shape[0];
        t.addr_bytes = *at;
        *at += (uint32_t)padded;
    } else {
        t.addr_bytes = g->hbm_at;
        g->hbm_at += padded;
        g->pr.hbm_bytes = g->hbm_at;
    }
    return ir_tensor_add(g->p, t);
}

static inline uint32_t prog_view(prog *g, uint32_t tensor)
{
    return ir_view_add(g->p, ir_view_whole(g->p, tensor));
}

// SBUF tile [parts, n]: its view.
static inline uint32_t prog_sbuf(prog *g, dtype d, uint32_t parts, uint32_t n)
{
    return prog_view(g, prog_tensor(g, BUF_SBUF, d, 2, (uint32_t[]){parts, n}));
}

static inline uint32_t prog_psum(prog *g, dtype d, uint32_t parts, uint32_t n)
{
    return prog_view(g, prog_tensor(g, BUF_PSUM, d, 2, (uint32_t[]){parts, n}));
}

// A view with its own pattern over the tensor of `base`.
static inline uint32_t prog_ap(prog *g, uint32_t base, int64_t offset, uint32_t part, uint32_t ndim,
                               const int64_t (*dims)[2])
{
    ir_dim d[IR_MAX_DIMS];
    memset(d, 0, sizeof d);
    for (uint32_t i = 0; i < ndim; i++) {
        d[i].stride = dims[i][0];
        d[i].count = (uint32_t)dims[i][1];
    }
    ir_view v = ir_view_at(g->p, base);
    v.ap = ir_ap_of(g->p, d, ndim);
    v.offset = offset;
    v.part = (uint8_t)part;
    return ir_view_add(g->p, v);
}

// An HBM parameter of shape [rows, n] backed by `data`: its view.
static inline uint32_t prog_param(prog *g, dtype d, uint32_t rows, uint32_t n, void *data)
{
    ir_tensor t = {.dtype = (uint8_t)d, .buffer = BUF_HBM, .role = ROLE_ARG, .ndim = 2};
    t.name = ir_str(g->p, "arg", 3);
    t.shape[0] = rows;
    t.shape[1] = n;
    t.size_bytes = (uint64_t)rows * n * dtype_size(d);
    t.param = g->p->params.n;
    uint32_t id = ir_tensor_add(g->p, t);
    g->params[g->p->params.n] = data;
    vec_push(&g->mem, &g->p->params, ((ir_param){t.name, id}));
    return prog_view(g, id);
}

static inline void prog_emit(prog *g, isa_id op, engine_id e, const ir_arg *args)
{
    ir_emit(g->p, op, e, args, 0, IR_NONE);
}

#define EMIT(g, name, engine, ...) prog_emit((g), ISA_##name, engine, (ir_arg[]){__VA_ARGS__})
#define V(v)                       ira_view(v)
#define F(f)                       ira_f32(f)
#define I(i)                       ira_int(i)
#define OP(o)                      ira_kind(IRA_OP, OPR_##o)
#define OPID(o)                    ira_kind(IRA_OP, (uint32_t)(o))
#define EN(v)                      ira_kind(IRA_ENUM, (uint32_t)(v))
#define B(v)                       ira_kind(IRA_BOOL, (v) ? 1 : 0)
#define R(r)                       ira_kind(IRA_REG, (uint32_t)(r))
#define NONE                       ira_none()

static inline ir_arg prog_ints(prog *g, uint32_t n, const int64_t *v)
{
    ir_arg a[64];
    for (uint32_t i = 0; i < n; i++) {
        a[i] = ira_int(v[i]);
    }
    return (ir_arg){IRA_LIST, 0, (int16_t)n, ir_list(g->p, a, n)};
}

static inline void prog_copy(prog *g, uint32_t dst, uint32_t src)
{
    EMIT(g, dma_copy, ENG_DMA, V(dst), V(src), NONE, EN(0), EN(0), EN(0));
}

// A tile loaded with `data` (rows of n values of its dtype).
static inline uint32_t prog_load(prog *g, dtype d, uint32_t parts, uint32_t n, void *data)
{
    uint32_t t = prog_sbuf(g, d, parts, n);
    prog_copy(g, t, prog_param(g, d, parts, n, data));
    return t;
}

static inline void prog_out(prog *g, uint32_t view, void *data)
{
    g->outs[g->p->outputs.n] = data;
    vec_push(&g->mem, &g->p->outputs, view);
}

static inline nki_status prog_run(prog *g)
{
    const char *err = NULL;
    nki_status st = device_bind(&g->pr, &g->dp, &err);
    if (st != NKI_OK) {
        print_message("bind: %s\n", err);
        return st;
    }
    return device_run(g->core, g->dp, g->params, g->outs, NULL, &g->ds);
}

#endif
