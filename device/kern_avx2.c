#if defined(__x86_64__)
#include <immintrin.h>
#define KERN_TABLE kernels_avx2
#define KERN_NAME  "avx2"
#define KERN_LEVEL 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#include "device/kern.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int kern_avx2_unused;
#endif
