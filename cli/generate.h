#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include <nki/tensor.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum generator_kind {
    GEN_ZEROS,
    GEN_ONES,
    GEN_FULL,
    GEN_ARANGE,
    GEN_RANDN,
    GEN_RAND,
    GEN_RANDINT,
    GEN_EYE
} generator_kind;

// Tensors made on the command line: zeros ones full(v) arange randn rand(lo,hi) randint(lo,hi) eye,
// each with ",seed=N". The numbers are the same on every machine and in every version:
//
//   element i has its own bits: splitmix64's output function on seed * 0xD1342543DE82EF95 + i + 1
//   times 0x9E3779B97F4A7C15; u = upper 53 bits / 2^53
//   rand     lo + (hi - lo) * u
//   randint  lo + floor((hi - lo) * u), hi not included
//   randn    Box-Muller on elements 2i and 2i + 1 of the same stream:
//            sqrt(-2 ln(1 - u0)) cos(2 pi u1), in double
//
// Without a seed the stream comes from the parameter's name, so that two tensors differ.
typedef struct generator {
    generator_kind kind;
    double a, b;
    uint64_t seed;
} generator;

bool generator_parse(const char *text, const char *name, generator *out, const char **why);
// false: out of memory, or a type without conversion (packed words).
bool generator_fill(const generator *g, nki_tensor *t);

#endif
