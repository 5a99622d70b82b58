#ifndef TESTS_SUPPORT_LONG_PROGRAM_H
#define TESTS_SUPPORT_LONG_PROGRAM_H

// Programs of any length, for what must grow with it linearly and no faster.

#include "lang/ir.h"

#include <string.h>

enum { LONG_PROGRAMS = 4, LP_COLS = 512, LP_TILES = 64 };
static const char *const long_programs[LONG_PROGRAMS] = {
    "tiles",    // of one size, round and round over the rows of two matrices
    "sizes",    // of 500 sizes
    "loops",    // four rounds in each of many register loops
    "columns",  // tiles that lie side by side in matrices that are as wide as the program is long
};

static inline uint32_t lp_tensor(ir *p, buffer_kind b, tensor_role role, uint32_t rows,
                                 uint32_t cols)
{
    bool chip = buffer_on_chip(b);
    ir_tensor t = {.dtype = DT_float32, .buffer = (uint8_t)b, .role = (uint8_t)role, .ndim = 2};
    t.shape[0] = rows;
    t.shape[1] = cols;
    t.partitions = (uint16_t)(chip ? rows : 0);
    t.size_bytes = (uint64_t)cols * 4 * (chip ? 1 : rows);
    t.addr_bytes = ADDR_AUTO;
    return ir_tensor_add(p, t);
}

static inline ir_arg lp_whole(ir *p, uint32_t t)
{
    return ira_view(ir_view_add(p, ir_view_whole(p, t)));
}

static inline void lp_emit(ir *p, isa_id op, engine_id e, ir_arg a, ir_arg b, ir_arg c)
{
    ir_arg args[UINT8_MAX] = {a, b, c};
    if (op == ISA_tensor_tensor) {
        args[3] = ira_kind(IRA_OP, OPR_add);
    }
    ir_emit(p, op, e, args, 0, 0);
}

static inline void lp_copy(ir *p, ir_arg dst, ir_arg src)
{
    lp_emit(p, ISA_dma_copy, ENG_DMA, dst, src, ira_none());
}

// Two loads, two engines, a store: new tiles in each round, as an unrolled loop makes them. x and y
// have rows of `width` elements; `at`: where in them.
static inline void lp_round(ir *p, uint32_t k, uint32_t x, uint32_t y, uint32_t cols, int64_t at,
                            int64_t width)
{
    uint32_t a = lp_tensor(p, BUF_SBUF, ROLE_TEMP, 128, cols);
    uint32_t b = lp_tensor(p, BUF_SBUF, ROLE_TEMP, 128, cols);
    uint32_t c = lp_tensor(p, BUF_SBUF, ROLE_TEMP, 128, cols);
    ir_dim d[2] = {{width, 128, 0}, {1, cols, 0}};
    ir_view from = {.tensor = x, .ap = ir_ap_of(p, d, 2), .dtype = DT_float32};
    from.offset = at;
    ir_view to = from;
    to.tensor = y;
    lp_copy(p, lp_whole(p, a), ira_view(ir_view_add(p, from)));
    lp_copy(p, lp_whole(p, b), ira_view(ir_view_add(p, to)));
    lp_emit(p, ISA_tensor_tensor, ENG_VECTOR, lp_whole(p, c), lp_whole(p, a), lp_whole(p, b));
    lp_emit(p, ISA_tensor_copy, k % 2 ? ENG_SCALAR : ENG_GPSIMD, lp_whole(p, a), lp_whole(p, c),
            ira_none());
    lp_copy(p, ira_view(ir_view_add(p, to)), lp_whole(p, a));
}

static inline ir *long_program(arena *mem, const char *name, uint32_t n)
{
    ir *p = ir_new(mem, target_find("trn2"));
    p->registers = 1;
    bool loops = strcmp(name, "loops") == 0, many = strcmp(name, "sizes") == 0,
         columns = strcmp(name, "columns") == 0;
    uint32_t rows = columns ? 128 : LP_TILES * 128;
    uint32_t width = columns ? (n / 5 + 1) * LP_COLS : LP_COLS;
    uint32_t x = lp_tensor(p, BUF_HBM, ROLE_ARG, rows, width);
    uint32_t y = lp_tensor(p, BUF_HBM, ROLE_ARG, rows, width);
    for (uint32_t k = 0; k < 2; k++) {
        p->tensors.at[k].param = k;
        vec_push(mem, &p->params, ((ir_param){ir_str(p, k ? "y" : "x", 1), k}));
    }
    for (uint32_t k = 0; p->instrs.n < n; k++) {
        if (loops && k % 4 == 0) {
            ir_arg a[4] = {ira_kind(IRA_REG, 0), ira_int(0), ira_int(4), ira_int(1)};
            ir_emit(p, ISA_loop_for, ENG_SYNC, a, 0, 0);
        }
        // Of many sizes: 500 of them, in an order that mixes large and small.
        uint32_t cols = many ? 16 + k * 347 % 497 : LP_COLS;
        int64_t at = columns ? (int64_t)k * LP_COLS : (int64_t)(k % LP_TILES) * 128 * LP_COLS;
        lp_round(p, k, x, y, cols, at, width);
        if (loops && k % 4 == 3) {
            ir_emit(p, ISA_loop_end, ENG_SYNC, NULL, 0, 0);
        }
    }
    while (loops && p->instrs.at[p->instrs.n - 1].op != ISA_loop_end) {
        ir_emit(p, ISA_loop_end, ENG_SYNC, NULL, 0, 0);
    }
    return p;
}

#endif
