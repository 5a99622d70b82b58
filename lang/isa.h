#ifndef LANG_ISA_H
#define LANG_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- operators (lang/op.def)

typedef enum op_id {
#define OP(name, cls, roles) OPR_##name,
#include "lang/op.def"
#undef OP
    OPR_COUNT
} op_id;

typedef enum op_class { OPC_A, OPC_C, OPC_L, OPC_B, OPC_U } op_class;

enum { OP_ALU = 1, OP_RED = 2, OP_ACT = 4, OP_SIM = 8 };

typedef struct op_info {
    const char *name;
    uint8_t cls;    // op_class
    uint8_t roles;  // OP_ALU | OP_RED | OP_ACT | OP_SIM
} op_info;

extern const op_info op_table[OPR_COUNT];
bool op_find(const char *name, op_id *out);

// ---- enums of nki.isa. Values as in the language's documentation.

// ENUM(type, name, value)
#define ISA_ENUM_LIST(X)                                                                       \
    X(engine, unknown, 0) X(engine, tensor, 1) X(engine, scalar, 2) X(engine, gpsimd, 3)       \
    X(engine, dma, 4) X(engine, vector, 5) X(engine, sync, 6)                                  \
    X(reduce_cmd, idle, 0) X(reduce_cmd, reset, 1) X(reduce_cmd, reduce, 2)                    \
    X(reduce_cmd, reset_reduce, 3) X(reduce_cmd, load_reduce, 4)                               \
    X(dge_mode, unknown, 0) X(dge_mode, swdge, 1) X(dge_mode, hwdge, 2) X(dge_mode, none, 3)   \
    X(oob_mode, error, 0) X(oob_mode, skip, 1)                                                 \
    X(matmul_perf_mode, none, 0) X(matmul_perf_mode, double_row, 1)                            \
    X(nc_version, gen2, 2) X(nc_version, gen3, 3) X(nc_version, gen4, 4)                       \
    X(dma_engine, dma, 1) X(dma_engine, gpsimd_dma, 2)

#define X(type, member, value) ISAE_##type##_##member = value,
enum isa_enum_values { ISA_ENUM_LIST(X) };
#undef X

typedef enum isa_enum {
    ISA_ENUM_engine,
    ISA_ENUM_reduce_cmd,
    ISA_ENUM_dge_mode,
    ISA_ENUM_oob_mode,
    ISA_ENUM_matmul_perf_mode,
    ISA_ENUM_nc_version,
    ISA_ENUM_dma_engine,
    ISA_ENUM_COUNT
} isa_enum;

const char *isa_enum_type(isa_enum e);                    // "engine"
const char *isa_enum_member(isa_enum e, int value);       // "vector", NULL when none
bool isa_enum_value(isa_enum e, const char *member, int *out);

// ---- engines

typedef enum engine_id { ENG_TENSOR, ENG_SCALAR, ENG_VECTOR, ENG_GPSIMD, ENG_SYNC, ENG_DMA, ENG_COUNT } engine_id;

enum {
    E_T = 1 << ENG_TENSOR,
    E_S = 1 << ENG_SCALAR,
    E_V = 1 << ENG_VECTOR,
    E_G = 1 << ENG_GPSIMD,
    E_Y = 1 << ENG_SYNC,
    E_D = 1 << ENG_DMA,
    E_ALL = E_T | E_S | E_V | E_G | E_Y | E_D
};

const char *engine_name(engine_id e);  // "Tensor", "Scalar", "Vector", "GpSimd", "Sync", "DMA"

// ---- instructions (lang/isa.def)

typedef enum isa_id {
#define ISA(name, group, gen2, gen3, gen4, cost, status, doc) ISA_##name,
#define P(name, kind, spaces, dflt)
#include "lang/isa.def"
#undef ISA
#undef P
    ISA_COUNT
} isa_id;

typedef enum isa_group { ISAG_NISA, ISAG_NCC, ISAG_CTRL } isa_group;
typedef enum isa_status { ISAS_DONE, ISAS_PLANNED } isa_status;
typedef enum isa_cost {
    COST_MATMUL, COST_TRANSPOSE, COST_ONE_INPUT, COST_TWO_INPUT, COST_MEMSET, COST_GPSIMD, COST_TOPK,
    COST_REDUCE_OUT, COST_RECIPROCAL, COST_EXPONENTIAL, COST_BN_AGGR, COST_QUANTIZE_MX, COST_RAND2,
    COST_DMA, COST_FIXED, COST_FREE
} isa_cost;

typedef enum param_type {
    PT_OUT, PT_INOUT, PT_IN, PT_SCAL, PT_SRC, PT_F32, PT_INT, PT_IREG, PT_BOOL, PT_TRI, PT_OP,
    PT_ENGINE, PT_REDCMD, PT_DGE, PT_OOB, PT_PERF, PT_DMAENG, PT_INTS, PT_PAIRS, PT_TENSORS,
    PT_FLOATS, PT_REGOUT, PT_REG, PT_STR, PT_LEGACY
} param_type;

enum { SPACE_B = 1, SPACE_Q = 2, SPACE_H = 4 };

typedef enum default_kind { DK_REQ, DK_NONE, DK_F, DK_I, DK_FALSE, DK_TRUE, DK_ENUM, DK_OP, DK_EMPTY } default_kind;

typedef struct isa_param {
    const char *name;
    uint8_t type;       // param_type
    uint8_t spaces;     // SPACE_B | SPACE_Q | SPACE_H
    uint8_t dflt;       // default_kind
    double f;           // DK_F
    int32_t i;          // DK_I, DK_ENUM (the value), DK_OP (op_id)
} isa_param;

typedef struct isa_info {
    const char *name;
    uint8_t group, status, cost;
    uint8_t engines[3];    // gen2, gen3, gen4
    uint8_t nparams;
    const isa_param *params;
    const char *doc;
} isa_info;

extern const isa_info isa_table[ISA_COUNT];
bool isa_find(const char *name, isa_id *out);
// The enum of a PT_ENGINE .. PT_DMAENG parameter.
isa_enum isa_param_enum(param_type t);

#endif
