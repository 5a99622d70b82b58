#ifndef TESTS_RANDOM_PROGRAM_H
#define TESTS_RANDOM_PROGRAM_H

// Random programs for the scheduler's tests: tiles that overlap on purpose, strided and dynamic
// views, register loops, DMA in all directions, stated dependences. They verify and place. A source
// of choices is a string of bytes (a fuzzer's) or, past its end, a generator.

#include "lang/ir.h"

typedef struct chooser {
    const uint8_t *at, *end;
    uint64_t state;
} chooser;

static inline uint32_t choose(chooser *c, uint32_t below)
{
    if (c->at < c->end) {
        return *c->at++ % below;
    }
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->state >> 33) % below;
}

enum { RP_TENSORS = 14, RP_PARAMS = 2, RP_DEPTH = 3, RP_WIDTH = 32 };

typedef struct random_program {
    chooser c;
    ir *p;
    uint32_t depth;
    uint32_t counter[RP_DEPTH];  // register of each open loop
    uint32_t loads;              // registers 4 and 5 that hold a value from memory
} random_program;

static inline uint32_t rp_tensor(random_program *g, buffer_kind b, tensor_role role, uint32_t rows,
                                 uint32_t cols)
{
    bool chip = buffer_on_chip(b);
    ir_tensor t = {.dtype = DT_int32, .buffer = (uint8_t)b, .role = (uint8_t)role, .ndim = 2};
    t.name = ir_str(g->p, "t", 1);
    t.shape[0] = rows;
    t.shape[1] = cols;
    t.partitions = (uint16_t)(chip ? rows : 0);
    t.size_bytes = (uint64_t)cols * 4 * (chip ? 1 : rows);
    t.addr_bytes = ADDR_AUTO;
    if (b == BUF_SBUF && choose(&g->c, 3) == 0) {
        t.manual = 1;
        t.addr_part = 32 * choose(&g->c, 2);
        t.addr_bytes = 1024 + 32 * choose(&g->c, 8);
    }
    return ir_tensor_add(g->p, t);
}

static inline void rp_tensors(random_program *g)
{
    ir *p = g->p;
    for (uint32_t k = 0; k < RP_PARAMS; k++) {
        uint32_t t = rp_tensor(g, BUF_HBM, ROLE_ARG, 64, RP_WIDTH);
        p->tensors.at[t].param = k;
        ir_param par = {ir_str(p, k ? "b" : "a", 1), t};
        vec_push(p->mem, &p->params, par);
    }
    for (uint32_t k = RP_PARAMS; k < RP_TENSORS; k++) {
        uint32_t rows = 8u << choose(&g->c, 4);
        if (k == RP_PARAMS) {
            rp_tensor(g, BUF_SHARED, ROLE_OUT, 64, RP_WIDTH);
        } else if (k == RP_PARAMS + 1) {
            rp_tensor(g, BUF_HBM, ROLE_TEMP, 64, RP_WIDTH);
        } else {
            rp_tensor(g, k % 5 == 0 ? BUF_PSUM : BUF_SBUF, ROLE_TEMP, rows, RP_WIDTH);
        }
    }
    ir_view out = ir_view_whole(p, RP_PARAMS);
    vec_push(p->mem, &p->outputs, ir_view_add(p, out));
}

// A view of rows x a x b elements of a tensor of at least `rows` rows.
static inline uint32_t rp_view(random_program *g, uint32_t tensor, uint32_t rows, uint32_t a,
                               uint32_t b)
{
    ir *p = g->p;
    const ir_tensor *t = &p->tensors.at[tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    uint32_t row = choose(&g->c, t->shape[0] - rows + 1);
    uint32_t sb = 1 + choose(&g->c, 3), sa = 1 + choose(&g->c, 12);
    while ((a - 1) * sa + (b - 1) * sb >= RP_WIDTH) {
        sb = sb > 1 ? sb - 1 : 1;
        sa = sa > 1 ? sa - 1 : 1;
        if (sa == 1 && sb == 1) {
            break;
        }
    }
    uint32_t room = RP_WIDTH - ((a - 1) * sa + (b - 1) * sb);
    ir_dim d[3] = {{chip ? 1 : RP_WIDTH, rows, 0}, {sa, a, 0}, {sb, b, 0}};
    ir_view v = {.tensor = tensor, .ap = ir_ap_of(p, d, 3), .dtype = t->dtype};
    v.offset = choose(&g->c, room);
    if (chip) {
        v.part = (uint8_t)row;
    } else {
        v.offset += (int64_t)row * RP_WIDTH;
    }
    if (g->depth && choose(&g->c, 3) == 0) {
        // Counters stay below 4: in bounds by construction.
        uint32_t reg = g->counter[choose(&g->c, g->depth)];
        bool part = chip && choose(&g->c, 2) && t->shape[0] >= rows + 4;
        if (part) {
            v.part = 0;
        } else if (chip || t->shape[0] < rows + 4) {
            v.offset = 0;
        } else {
            v.offset = choose(&g->c, room);
        }
        int64_t step = part                      ? 1
                       : chip                    ? (room > 4 ? 1 : 0)
                       : t->shape[0] >= rows + 4 ? RP_WIDTH
                                                 : 0;
        v.dyn =
            ir_dyn_add(p, (ir_dyn){.kind = DYN_REG, .partition = part, .src = reg, .step = step});
    }
    return ir_view_add(p, v);
}

static inline uint32_t rp_pick(random_program *g, bool chip, bool psum, uint32_t rows)
{
    for (uint32_t t = choose(&g->c, RP_TENSORS), n = 0; n < RP_TENSORS;
         n++, t = (t + 1) % RP_TENSORS) {
        const ir_tensor *ten = &g->p->tensors.at[t];
        bool on = buffer_on_chip((buffer_kind)ten->buffer);
        if (on == chip && (psum || ten->buffer != BUF_PSUM) && ten->shape[0] >= rows) {
            return t;
        }
    }
    return RP_PARAMS + 2;
}

static inline void rp_compute(random_program *g)
{
    static const uint8_t engines[] = {ENG_VECTOR, ENG_GPSIMD, ENG_SCALAR};
    uint8_t e = engines[choose(&g->c, 3)];
    uint32_t rows = 1u << choose(&g->c, 4), a = 1 + choose(&g->c, 4), b = 1 + choose(&g->c, 6);
    bool psum = e != ENG_GPSIMD;
    ir_arg arg[5];
    memset(arg, 0, sizeof arg);
    uint32_t v[3];
    for (int k = 0; k < 3; k++) {
        v[k] = rp_view(g, rp_pick(g, true, psum, rows), rows, a, b);
    }
    arg[0] = ira_view(v[0]);
    arg[1] = ira_view(v[1]);
    switch (choose(&g->c, 4)) {
    case 0:
        if (e != ENG_SCALAR) {
            arg[1] = ira_int((int64_t)choose(&g->c, 100));
            arg[2] = ira_none();
            ir_emit(g->p, ISA_memset, (engine_id)e, arg, 0, 0);
            break;
        }
        // fall through
    case 1: ir_emit(g->p, ISA_tensor_copy, (engine_id)e, arg, 0, 0); break;
    default:
        if (e == ENG_SCALAR) {
            ir_emit(g->p, ISA_tensor_copy, ENG_SCALAR, arg, 0, 0);
        } else {
            arg[2] = ira_view(v[2]);
            arg[3] = ira_kind(IRA_OP, OPR_add);
            ir_emit(g->p, ISA_tensor_tensor, (engine_id)e, arg, 0, 0);
        }
    }
}

static inline void rp_dma(random_program *g)
{
    uint32_t rows = 1u << choose(&g->c, 4), a = 1 + choose(&g->c, 4), b = 1 + choose(&g->c, 6);
    ir_arg arg[6];
    memset(arg, 0, sizeof arg);
    uint32_t way = choose(&g->c, 5);
    uint32_t to = rp_pick(g, way == 0 || way == 2 || way == 4, false, rows);
    uint32_t from = rp_pick(g, way == 1 || way == 2, false, rows);
    arg[0] = ira_view(rp_view(g, to, rows, a, b));
    arg[1] = ira_view(rp_view(g, from, rows, a, b));
    ir_emit(g->p, ISA_dma_copy, ENG_DMA, arg, 0, 0);
}

static inline void rp_register(random_program *g)
{
    uint32_t reg = 4 + choose(&g->c, 2);
    ir_arg arg[2] = {ira_kind(IRA_REG, reg), ira_none()};
    uint32_t v = rp_view(g, rp_pick(g, choose(&g->c, 2), false, 1), 1, 1, 1);
    if (choose(&g->c, 2) && g->loads) {
        arg[0] = ira_view(v);
        arg[1] = ira_kind(IRA_REG, 4 + (g->loads == 2));
        ir_emit(g->p, ISA_register_store, choose(&g->c, 2) ? ENG_SYNC : ENG_SCALAR, arg, 0, 0);
    } else if (!g->depth) {
        arg[1] = ira_view(v);
        ir_emit(g->p, ISA_register_load, ENG_SYNC, arg, 0, 0);
        g->loads = reg == 5 ? 2 : 1;
    }
}

static inline void rp_body(random_program *g, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        uint32_t what = choose(&g->c, 16);
        if (what == 0 && g->depth < RP_DEPTH) {
            uint32_t reg = g->depth;
            ir_arg arg[4] = {ira_kind(IRA_REG, reg), ira_int(0), ira_int((int64_t)choose(&g->c, 4)),
                             ira_int(1)};
            ir_emit(g->p, ISA_loop_for, ENG_SYNC, arg, 0, 0);
            g->counter[g->depth++] = reg;
            rp_body(g, 1 + choose(&g->c, 6));
            g->depth--;
            ir_emit(g->p, ISA_loop_end, ENG_SYNC, NULL, 0, 0);
        } else if (what == 1) {
            rp_register(g);
        } else if (what < 7) {
            rp_dma(g);
        } else {
            rp_compute(g);
        }
        // A stated dependence on an earlier instruction of no loop.
        if (!g->depth && choose(&g->c, 12) == 0 && g->p->instrs.n > 1) {
            uint32_t last = g->p->instrs.n - 1;
            g->p->instrs.at[last].deps = g->p->deps.n;
            vec_push(g->p->mem, &g->p->deps, choose(&g->c, last));
            vec_push(g->p->mem, &g->p->deps, IR_DEPS_END);
        }
    }
}

// A program of about n instructions.
static inline ir *random_program_make(arena *mem, chooser c, uint32_t n)
{
    random_program g = {.c = c};
    g.p = ir_new(mem, target_by_gen(3));
    g.p->registers = 6;
    rp_tensors(&g);
    rp_body(&g, n);
    return g.p;
}

#endif
