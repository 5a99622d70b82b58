#ifndef DEVICE_KERN_H
#define DEVICE_KERN_H

#include "lang/dtype.h"
#include "lang/isa.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Inner loops, compiled once a CPU level from kern.inc, equal bit for bit (docs/numerics.md).
// Strides are bytes and pointers need no alignment. A destination may be exactly a source (same
// pointer, same stride), never overlap it otherwise.

// Element types as they lie in memory.
typedef float f32u __attribute__((aligned(1), may_alias));
typedef uint32_t u32u __attribute__((aligned(1), may_alias));
typedef uint16_t u16u __attribute__((aligned(1), may_alias));

// Rows of n elements.
typedef struct rows {
    void *p;
    ptrdiff_t stride;
} rows;
typedef struct crows {
    const void *p;
    ptrdiff_t stride;
} crows;

typedef enum kern_mode {
    KERN_VV,  // tile, tile
    KERN_VS,  // tile, one value a row
    KERN_SV,  // one value a row, tile
    KERN_MODES
} kern_mode;

typedef void (*kern_bin)(rows d, crows a, crows b, size_t nrows, size_t n);
typedef void (*kern_un)(rows d, crows a, size_t nrows, size_t n);
typedef void (*kern_fold)(float acc[16], const void *x, size_t n);

typedef void (*kern_folds)(float (*acc)[16], const void *x, ptrdiff_t stride, size_t nrows,
                           size_t n);

typedef struct kernels {
    const char *name;
    void (*load[DT_COUNT])(float *d, const void *s, size_t n);
    void (*store[DT_COUNT])(void *d, const float *s, size_t n);
    kern_bin bin[OPR_COUNT][KERN_MODES];  // classes A, C, L
    kern_un un[OPR_COUNT];                // class U
    // d = fma(a, scale[row], bias[row])
    void (*affine)(rows d, crows a, crows scale, crows bias, size_t nrows, size_t n);
    // d = a >= 0 ? a : slope[row] * a
    kern_bin prelu;
    // d = p != 0 ? a : b
    void (*select)(rows d, crows p, crows a, crows b, size_t nrows, size_t n, bool b_scalar);
    // Element i into acc[i mod 16].
    kern_fold fold[OPR_COUNT];
    // The same for rows, each into its own.
    kern_folds folds[OPR_COUNT];
    // Bits of 8, 16 or 32: d = a op b. b_scalar: b[0] for all.
    void (*bits)(op_id op, uint32_t *d, const uint32_t *a, const uint32_t *b, size_t n,
                 unsigned width, bool b_scalar);
    // s = s * a + b by element, each step rounded twice; state[row] in and out.
    void (*scan_mul_add)(rows d, crows a, crows b, float *state, size_t nrows, size_t n);
    // c[m][n] = chain of fma over k of a[k][m] * b[k][n], from zero, subnormals as zero; add: c plus
    // that, by one addition. at: a as `pack` leaves it, k * m floats. k <= 512, m <= 128.
    void (*pack)(float *at, crows a, size_t k, size_t m);
    void (*matmul)(rows c, const float *at, crows b, size_t k, size_t m, size_t n, bool add);
    // c = a + b with subnormals as zero.
    void (*add_ftz)(rows c, crows a, crows b, size_t nrows, size_t n);
    // Copies past the caches: what is written is not read soon.
    void (*stream)(void *d, const void *s, size_t size_bytes);
    // Whether no value is NaN or infinite.
    bool (*finite)(const void *s, size_t n);
    // d[j][i] = s[i][j]; size 1, 2 or 4 bytes.
    void (*transpose)(rows d, crows s, size_t nrows, size_t ncols, size_t size);
} kernels;

extern const kernels kernels_portable;
#if defined(__x86_64__)
extern const kernels kernels_avx2, kernels_avx512;
#endif

// The level of this CPU, chosen once.
const kernels *kern_get(void);
// For tests: "portable", "avx2", "avx512", or NULL for the CPU's own. false: not available here.
bool kern_force(const char *name);

// One operation on two values, as the loops compute it.
float kern_scalar(const kernels *k, op_id op, float a, float b);
// The tree 8, 4, 2, 1 over 16 partial results.
float kern_tree(const kernels *k, op_id op, float acc[16]);
// What partial results start from.
float kern_identity(op_id op);

#endif
