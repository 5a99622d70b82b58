#ifndef LANG_DTYPE_H
#define LANG_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dtype {
#define DTYPE(id, name, size, cls, printed) DT_##id,
#include "lang/dtype.def"
#undef DTYPE
    DT_COUNT
} dtype;

typedef enum dtype_class { DTC_F, DTC_I, DTC_U, DTC_B, DTC_X, DTC_E } dtype_class;

const char *dtype_name(dtype d);
uint32_t dtype_size(dtype d);  // bytes
dtype_class dtype_class_of(dtype d);
bool dtype_is_float(dtype d);
bool dtype_is_int(dtype d);  // I or U (not bool)
bool dtype_is_low_precision(dtype d);  // a float type of fewer than 24 bits of mantissa: tfloat32 too
// Long and short names: float32 f32, bfloat16 bf16, float8_e4m3 f8e4m3 float8e4, bool bool_ ...
// false when there is none.
bool dtype_find(const char *p, size_t len, dtype *out);

#endif
