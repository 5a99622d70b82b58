#include "lower/check.h"

#include <assert.h>

#define F32    DTM(float32)
#define TF32   DTM(tfloat32)
#define BF16   DTM(bfloat16)
#define F16    DTM(float16)
#define F8E5   DTM(float8_e5m2)
#define F8E4   DTM(float8_e4m3)
#define I8     DTM(int8)
#define U8     DTM(uint8)
#define I16    DTM(int16)
#define U16    DTM(uint16)
#define I32    DTM(int32)
#define U32    DTM(uint32)
#define INTS   (I8 | U8 | I16 | U16 | I32 | U32)
#define FLOATS (F32 | TF32 | BF16 | F16 | F8E5 | F8E4 | DTM(float8_e4m3fn))
#define NOT32  (F32 | BF16 | F16 | F8E5 | F8E4 | DTM(float8_e4m3fn) | I8 | U8 | I16 | U16)
#define X48    (DTM(float8_e5m2_x4) | DTM(float8_e4m3fn_x4))
#define X4     (X48 | DTM(float4_e2m1fn_x4))
#define SCALE  (DTM(float8_e8m0fnu) | U8)

#define ANY_START           ROW_ANY_START
#define ONE_PSUM            ROW_ONE_PSUM
#define SAME_DTYPE          ROW_SAME_DTYPE
#define I(insn, param)      (1u << ARG(insn, param))
#define D(insn, param, set) {ARG(insn, param), (set)},

const check_row check_table[ISA_COUNT] = {
#define ROW(name, shape, flags, special, indirect, ...)                                            \
    [ISA_##name] = {SHAPE_##shape, (flags), (indirect), (special), {__VA_ARGS__}},
#include "lower/check_table.def"
#undef ROW
};

#define ROW(name, ...) +1
static_assert(0
#include "lower/check_table.def"
                  == ISA_COUNT,
              "lower/check_table.def needs one row an instruction");
#undef ROW
