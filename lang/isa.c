#include "lang/isa.h"

#include <string.h>

const op_info op_table[OPR_COUNT] = {
#define ALU OP_ALU
#define RED OP_RED
#define ACT OP_ACT
#define SIM OP_SIM
#define OP(name, cls, roles) [OPR_##name] = {#name, OPC_##cls, roles},
#include "lang/op.def"
#undef OP
#undef ALU
#undef RED
#undef ACT
#undef SIM
};

bool op_find(const char *name, op_id *out)
{
    for (int i = 0; i < OPR_COUNT; i++) {
        if (strcmp(op_table[i].name, name) == 0) {
            *out = (op_id)i;
            return true;
        }
    }
    return false;
}

static const struct {
    isa_enum type;
    const char *name;
    int value;
} members[] = {
#define X(type, member, value) {ISA_ENUM_##type, #member, value},
    ISA_ENUM_LIST(X)
#undef X
};

static const char *const enum_names[ISA_ENUM_COUNT] = {
    "engine", "reduce_cmd", "dge_mode", "oob_mode", "matmul_perf_mode", "nc_version", "dma_engine",
};

const char *isa_enum_type(isa_enum e)
{
    return enum_names[e];
}

const char *isa_enum_member(isa_enum e, int value)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (members[i].type == e && members[i].value == value) {
            return members[i].name;
        }
    }
    return NULL;
}

bool isa_enum_value(isa_enum e, const char *member, int *out)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (members[i].type == e && strcmp(members[i].name, member) == 0) {
            *out = members[i].value;
            return true;
        }
    }
    return false;
}

const char *engine_name(engine_id e)
{
    static const char *const text[ENG_COUNT] = {"Tensor", "Scalar", "Vector", "GpSimd", "Sync", "DMA"};
    return text[e];
}

#define B      SPACE_B
#define Q      SPACE_Q
#define H      SPACE_H
#define REQ    DK_REQ, 0, 0
#define NONE   DK_NONE, 0, 0
#define DF(x)  DK_F, (x), 0
#define DI(x)  DK_I, 0, (x)
#define DFALSE DK_FALSE, 0, 0
#define DTRUE  DK_TRUE, 0, 0
#define DEMPTY DK_EMPTY, 0, 0
#define DOP(x) DK_OP, 0, OPR_##x
// Members with one name and one value in every enum that has them.
#define DE(x)        DK_ENUM, 0, DE_##x
#define DE_unknown   0
#define DE_idle      0
#define DE_reset_reduce ISAE_reduce_cmd_reset_reduce
#define DE_error     ISAE_oob_mode_error
#define DE_none      ISAE_matmul_perf_mode_none
#define DE_vector    ISAE_engine_vector
#define DE_gpsimd    ISAE_engine_gpsimd
#define DE_dma       ISAE_dma_engine_dma

// One static array an instruction: { {0}, params... }, so that a row without parameters is legal.
#define P(name, kind, spaces, dflt) , {#name, PT_##kind, spaces, dflt}
#define ISA(name, group, gen2, gen3, gen4, cost, status, doc) \
    }                                                         \
    ;                                                         \
    static const isa_param params_##name[] = {{NULL, 0, 0, 0, 0, 0}
static const isa_param params_none[] = {{NULL, 0, 0, 0, 0, 0}
#include "lang/isa.def"
};
#undef ISA
#undef P

const isa_info isa_table[ISA_COUNT] = {
#define P(name, kind, spaces, dflt)
#define ISA(name, group, gen2, gen3, gen4, cost, status, doc)                                      \
    [ISA_##name] = {#name,          ISAG_##group,       ISAS_##status,                             \
                    COST_##cost,    {gen2, gen3, gen4},                                            \
                    (uint8_t)(sizeof params_##name / sizeof *params_##name - 1), params_##name + 1, doc},
#include "lang/isa.def"
#undef ISA
#undef P
};

bool isa_find(const char *name, isa_id *out)
{
    (void)params_none;
    for (int i = 0; i < ISA_COUNT; i++) {
        if (strcmp(isa_table[i].name, name) == 0) {
            *out = (isa_id)i;
            return true;
        }
    }
    return false;
}

isa_enum isa_param_enum(param_type t)
{
    switch (t) {
    case PT_REDCMD: return ISA_ENUM_reduce_cmd;
    case PT_DGE: return ISA_ENUM_dge_mode;
    case PT_OOB: return ISA_ENUM_oob_mode;
    case PT_PERF: return ISA_ENUM_matmul_perf_mode;
    case PT_DMAENG: return ISA_ENUM_dma_engine;
    default: return ISA_ENUM_engine;
    }
}
