#include "lang/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    uint32_t size_bytes;
    dtype_class cls;
} table[DT_COUNT] = {
#define DTYPE(id, name, size, cls, printed) [DT_##id] = {name, size, DTC_##cls},
#include "lang/dtype.def"
#undef DTYPE
};

static const struct {
    const char *name;
    dtype d;
} alias[] = {
    {"f32", DT_float32},          {"tf32", DT_tfloat32},       {"bf16", DT_bfloat16},
    {"f16", DT_float16},          {"f8e5m2", DT_float8_e5m2},  {"f8e4m3", DT_float8_e4m3},
    {"f8e4m3fn", DT_float8_e4m3fn}, {"f8e8m0", DT_float8_e8m0fnu}, {"float8e4", DT_float8_e4m3},
    {"float8e5", DT_float8_e5m2}, {"i8", DT_int8},             {"u8", DT_uint8},
    {"i16", DT_int16},            {"u16", DT_uint16},          {"i32", DT_int32},
    {"u32", DT_uint32},           {"bool_", DT_bool_},         {"b8", DT_bool_},
};

const char *dtype_name(dtype d)
{
    return table[d].name;
}

uint32_t dtype_size(dtype d)
{
    return table[d].size_bytes;
}

dtype_class dtype_class_of(dtype d)
{
    return table[d].cls;
}

bool dtype_is_float(dtype d)
{
    return table[d].cls == DTC_F;
}

bool dtype_is_low_precision(dtype d)
{
    return dtype_class_of(d) == DTC_F && d != DT_float32;
}

bool dtype_is_int(dtype d)
{
    return table[d].cls == DTC_I || table[d].cls == DTC_U;
}

bool dtype_find(const char *p, size_t len, dtype *out)
{
    for (int d = 0; d < DT_COUNT; d++) {
        if (strlen(table[d].name) == len && memcmp(table[d].name, p, len) == 0) {
            *out = (dtype)d;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof alias / sizeof *alias; i++) {
        if (strlen(alias[i].name) == len && memcmp(alias[i].name, p, len) == 0) {
            *out = alias[i].d;
            return true;
        }
    }
    return false;
}
