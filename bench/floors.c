#include "bench/floors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { COPY_BYTES = 64 << 20, COPY_RUNS = 7, FMA_RUNS = 7, FMA_ROUNDS = 4000000 };

uint64_t cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// The best of several runs: a floor is what the machine can do, not what it did on average.
static double best(double so_far, double rate)
{
    return rate > so_far ? rate : so_far;
}

static void copy_plain(void *dst, const void *src)
{
    memcpy(dst, src, COPY_BYTES);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void copy_stream(void *dst, const void *src)
{
    __m256i *to = dst;
    const __m256i *from = src;
    for (size_t i = 0; i < COPY_BYTES / sizeof *to; i++) {
        _mm256_stream_si256(to + i, _mm256_load_si256(from + i));
    }
    _mm_sfence();
}

// Twelve independent chains, more than latency times throughput of any core so far. They are
// spelled out, so that each has a register of its own whatever the compiler's view on unrolling is.
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

__attribute__((target("avx512f"))) static float fma_wide(void)
{
    __m512 x = _mm512_set1_ps(0.999f);
    __m512 y = _mm512_set1_ps(0.001f);
    __m512 sum = _mm512_setzero_ps();
#define START(j) __m512 acc##j = _mm512_set1_ps((float)j);
#define STEP(j)  acc##j = _mm512_fmadd_ps(acc##j, x, y);
#define JOIN(j)  sum = _mm512_add_ps(sum, acc##j);
    CHAINS(START)
    for (int i = 0; i < FMA_ROUNDS; i++) {
        CHAINS(STEP)
    }
    CHAINS(JOIN)
#undef START
#undef STEP
#undef JOIN
    return _mm512_reduce_add_ps(sum);
}

__attribute__((target("avx2,fma"))) static float fma_narrow(void)
{
    __m256 x = _mm256_set1_ps(0.999f);
    __m256 y = _mm256_set1_ps(0.001f);
    __m256 sum = _mm256_setzero_ps();
#define START(j) __m256 acc##j = _mm256_set1_ps((float)j);
#define STEP(j)  acc##j = _mm256_fmadd_ps(acc##j, x, y);
#define JOIN(j)  sum = _mm256_add_ps(sum, acc##j);
    CHAINS(START)
    for (int i = 0; i < FMA_ROUNDS; i++) {
        CHAINS(STEP)
    }
    CHAINS(JOIN)
#undef START
#undef STEP
#undef JOIN
    float out[8];
    _mm256_storeu_ps(out, sum);
    return out[0];
}
#endif

static double copy_rate(void (*copy)(void *, const void *), void *dst, const void *src)
{
    double rate = 0.0;
    for (int i = 0; i < COPY_RUNS; i++) {
        uint64_t start = cpu_ns();
        copy(dst, src);
        rate = best(rate, 2.0 * COPY_BYTES / (double)(cpu_ns() - start));
    }
    return rate;
}

static double fma_rate(float (*run)(void), int lanes)
{
    double rate = 0.0;
    for (int i = 0; i < FMA_RUNS; i++) {
        uint64_t start = cpu_ns();
        volatile float kept = run();
        (void)kept;
        rate = best(rate, 2.0 * 12.0 * lanes * FMA_ROUNDS / (double)(cpu_ns() - start));
    }
    return rate;
}

struct floors floors_measure(void)
{
    void *src = aligned_alloc(64, COPY_BYTES);
    void *dst = aligned_alloc(64, COPY_BYTES);
    if (!src || !dst) {
        (void)fprintf(stderr, "floors: no memory\n");
        exit(4);
    }
    memset(src, 1, COPY_BYTES);
    memset(dst, 2, COPY_BYTES);
    struct floors f = {.copy_bytes_per_ns = copy_rate(copy_plain, dst, src)};
    f.stream_bytes_per_ns = f.copy_bytes_per_ns;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        f.stream_bytes_per_ns = best(f.copy_bytes_per_ns, copy_rate(copy_stream, dst, src));
        f.flop_per_ns = fma_rate(fma_narrow, 8);
    }
    if (__builtin_cpu_supports("avx512f")) {
        f.flop_per_ns = best(f.flop_per_ns, fma_rate(fma_wide, 16));
    }
#endif
    free(src);
    free(dst);
    return f;
}
