#ifndef LOWER_CHECK_H
#define LOWER_CHECK_H

#include "lang/diag.h"
#include "lang/ir.h"
#include "lower/psum.h"

// Checks of one instruction: check_instr reads the row's entry of check_table, then calls its
// special function. Shared by emit.c, check*.c and psum.c; nothing else includes this.

enum { CHECK_MAX_PARAMS = 16 };

// Position of a parameter in its instruction's arguments: ARG(nc_matmul, moving).
#define ISA(name, group, gen2, gen3, gen4, cost, status, doc)                                      \
    }                                                                                              \
    ;                                                                                              \
    struct args_##name {                                                                           \
        char before_;
#define P(name, kind, spaces, dflt) char name;
struct args_none_ {
    char before_;
#include "lang/isa.def"
};
#undef ISA
#undef P
#define ARG(insn, param) ((uint8_t)(offsetof(struct args_##insn, param) - 1))

// A tensor operand, taken apart.
typedef struct operand {
    const ir_view *view;  // &at; NULL: this argument is no tensor
    ir_view at;
    ir_view index;        // where dyn is one of a view
    const ir_tensor *tensor;
    const ir_dim *dims;
    uint64_t free_elems;  // product of counts 1..
    uint32_t ndim;
    uint32_t partitions;  // count of dimension 0
    uint32_t start;       // first partition, relative to the tensor's when that is not placed
    uint8_t dtype, buffer, dyn;  // dyn: dyn_kind
} operand;

typedef struct emitter emitter;

typedef struct check {
    emitter *e;
    const ir *p;
    const target *t;
    isa_id op;
    const isa_info *info;
    ir_arg *args;
    loc at;
    uint8_t engine;  // engine_id, set by check_engine or the special function
    operand in[CHECK_MAX_PARAMS];
} check;

typedef diag *check_fn(check *c);

// What must agree with what.
typedef enum shape_rule {
    SHAPE_OWN,   // the special function says
    SHAPE_SAME,  // every full tile has the partitions and the free elements of the first
    SHAPE_ROWS,  // every full tile has the partitions of the first
} shape_rule;

enum {
    ROW_ONE_PSUM = 1,    // full-tile inputs: at most one in PSUM
    ROW_SAME_DTYPE = 2,  // dst and the first input
    ROW_ANY_START = 4,   // no start-partition rule (DMA, registers)
};

// Sets of dtypes.
#define DTM(x) (1u << DT_##x)
enum { DTM_ANY = 0 };

typedef struct check_dtypes {
    uint8_t param;
    uint32_t mask;
} check_dtypes;

typedef struct check_row {
    uint8_t shape;           // shape_rule
    uint8_t flags;           // ROW_*
    uint16_t indirect;       // bit a parameter: may be an indirect view
    check_fn *special;       // or NULL
    check_dtypes dtypes[4];  // ends at mask 0
} check_row;

extern const check_row check_table[ISA_COUNT];

// Part of a parameter in the shape rule, derived from lang/isa.def once for an emitter.
typedef enum part_kind { PART_NONE, PART_TILE, PART_COLUMN } part_kind;

typedef struct row_plan {
    uint8_t part[CHECK_MAX_PARAMS];     // part_kind
    uint32_t dtypes[CHECK_MAX_PARAMS];  // mask, 0 any
    uint8_t engine_arg;                 // parameter of type ENGINE, or 0xff
    uint8_t engines;                    // of the target
    uint8_t pick;                       // engine when none is asked for
    uint8_t views;                      // number of leading parameters that can be tensors
} row_plan;

typedef struct loop_frame {
    uint32_t begin;    // the loop instruction
    uint32_t tensors;  // tensors that existed when it began
    uint32_t log;      // first entry in emitter.log
    bool is_while, peel, replay;
    psum_save *saved;  // tensors from outside as they were before the loop
    ir_arg args[4];    // of loop_for: counter, lower, upper, step
    uint32_t place;
    const char *insn, *what;  // the matmul that asked for peeling and its tile, for messages
    loc what_at;
} loop_frame;

// What was asked of the emitter inside a loop, so that its body can be emitted once more.
typedef struct loop_log {
    uint16_t op;    // ISA_COUNT: a new tensor, `args` its id
    uint32_t args;  // first in emitter.log_args
    uint32_t place, nm;
    uint32_t first, again;  // instruction emitted; and by the latest replay
    loc at;
} loop_log;

typedef struct warn_key {
    const source *src;
    uint32_t lo, id;
} warn_key;

struct emitter {
    arena *mem;
    ir *p;
    diags *pend, *warn;
    const target *t;
    int gen;
    row_plan plan[ISA_COUNT];
    psum_maps psum;
    VEC(loop_frame) loops;
    VEC(loop_log) log;
    VEC(ir_arg) log_args;
    uint32_t replaying;      // 0, or 1 + the entry of log that is being emitted once more
    VEC(uint8_t) written;    // by tensor: 1 when some instruction writes it
    VEC(uint8_t) induction;  // by register: 1 for a loop's counter
    warn_key *warned;        // open addressing; src NULL and id 0: free
    uint32_t warned_n, warned_cap;
};

// ---- check.c
void check_plan(emitter *e);
diag *check_instr(check *c);
// "dst [128, 512] float32 @sbuf"
const char *check_what(check *c, uint8_t param);
const char *check_view_text(emitter *e, const char *label, const ir_view *v);
const char *check_dtype_list(arena *mem, uint32_t mask);
const char *check_engine_list(arena *mem, unsigned mask);
// The first warning of a kind at a place is kept: true when this one is to be made.
bool check_warn_first(emitter *e, diag_id id, loc at);
diag *check_start(check *c, uint8_t param, uint32_t partitions);
diag *check_same_dtype(check *c, uint8_t a, uint8_t b);
diag *check_same_partitions(check *c, uint8_t a, uint8_t b);
diag *check_dtype_in(check *c, uint8_t param, uint32_t mask);
// Explicit engine= or the row's default into c->engine.
diag *check_engine(check *c);
// Elements of a PT_INTS argument; false when it is absent.
uint32_t check_ints(const check *c, uint8_t param, int64_t *out, uint32_t cap);
const char *check_text(check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// The instruction's name, the first word of its diagnostics.
#define INSN(c) ((c)->info->name)

static inline bool arg_none(const check *c, uint8_t i)
{
    return c->args[i].kind == IRA_NONE;
}
static inline op_id arg_op(const check *c, uint8_t i)
{
    return (op_id)c->args[i].v;
}

// ---- check_ops.c: rows with op=
check_fn check_tensor_tensor, check_tensor_scalar, check_scalar_tensor_tensor,
    check_tensor_scalar_reduce, check_tensor_scalar_cumulative, check_tensor_tensor_scan,
    check_tensor_reduce, check_tensor_partition_reduce, check_activation, check_activation_reduce,
    check_activate2, check_exponential, check_range_select, check_select_reduce,
    check_affine_select, check_tensor_copy_predicated;
// Numbers given for fp32 operands as int or bool become fp32.
void check_to_f32(check *c, uint8_t param);
diag *check_pattern(check *c, uint8_t pattern, uint8_t dst);

// ---- check_matmul.c
check_fn check_nc_matmul, check_nc_matmul_mx, check_nc_transpose, check_quantize_mx;

// ---- check_dma.c
check_fn check_dma_copy, check_dma_transpose, check_dma_compute, check_core_barrier, check_sendrecv;

// ---- check_misc.c
check_fn check_memset, check_nc_stream_shuffle, check_iota, check_local_gather, check_nc_n_gather,
    check_sequence_bounds, check_nonzero_with_count, check_topk, check_max8, check_nc_find_index8,
    check_nc_match_replace8, check_bn_stats, check_bn_aggr, check_dropout, check_rng, check_rand2,
    check_set_rng_seed, check_rand_state, check_register_move, check_register_load,
    check_register_store, check_loop_for, check_float_args;

#endif
