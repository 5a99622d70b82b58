#include "device/kern.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

static _Atomic(const kernels *) chosen;

static const kernels *detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        return &kernels_avx512;
    }
    if (fma) {
        return &kernels_avx2;
    }
#endif
    return &kernels_portable;
}

const kernels *kern_get(void)
{
    const kernels *k = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!k) {
        k = detect();
        atomic_store_explicit(&chosen, k, memory_order_relaxed);
    }
    return k;
}

bool kern_force(const char *name)
{
    const kernels *best = detect();
    const kernels *all[3] = {&kernels_portable, NULL, NULL};
#if defined(__x86_64__)
    all[1] = best == &kernels_portable ? NULL : &kernels_avx2;
    all[2] = best == &kernels_avx512 ? &kernels_avx512 : NULL;
#endif
    if (!name) {
        atomic_store_explicit(&chosen, best, memory_order_relaxed);
        return true;
    }
    for (int i = 0; i < 3; i++) {
        if (all[i] && strcmp(all[i]->name, name) == 0) {
            atomic_store_explicit(&chosen, all[i], memory_order_relaxed);
            return true;
        }
    }
    return false;
}

float kern_scalar(const kernels *k, op_id op, float a, float b)
{
    float r = 0;
    k->bin[op][KERN_VV]((rows){&r, 0}, (crows){&a, 0}, (crows){&b, 0}, 1, 1);
    return r;
}

float kern_tree(const kernels *k, op_id op, float acc[16])
{
    for (size_t half = 8; half; half /= 2) {
        k->bin[op][KERN_VV]((rows){acc, 0}, (crows){acc, 0}, (crows){acc + half, 0}, 1, half);
    }
    return acc[0];
}

float kern_identity(op_id op)
{
    switch (op) {
    case OPR_multiply:
    case OPR_logical_and: return 1.0f;
    case OPR_maximum: return -INFINITY;
    case OPR_minimum: return INFINITY;
    case OPR_abs_min: return INFINITY;
    default: return 0.0f;
    }
}
