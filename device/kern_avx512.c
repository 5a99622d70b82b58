#if defined(__x86_64__)
#include <immintrin.h>
#define KERN_TABLE kernels_avx512
#define KERN_NAME  "avx512"
#define KERN_LEVEL 2
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")
#endif
#include "device/kern.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int kern_avx512_unused;
#endif
