// Tensors of the tests that go through the `nki` tool, and their .npy files.
//
// Values are held as doubles, which is exact for every type up to 32 bits. bfloat16 and the 8-bit
// floats have no .npy type: their files hold float32.
#ifndef NKI_TESTS_EXAMPLES_NPY_H
#define NKI_TESTS_EXAMPLES_NPY_H

#include <stdbool.h>
#include <stddef.h>

enum { TENSOR_RANK_MAX = 6 };

struct tensor {
    char dtype[24];  // a name of the language: "float32", "bfloat16", "int32", ...
    size_t rank;
    size_t dims[TENSOR_RANK_MAX];
    size_t count;    // product of dims; 1 for rank 0
    double *values;  // row-major; owned, freed by tensor_free
};

// Zeroed values; exits the process when memory runs out (a test can do nothing else).
struct tensor tensor_make(const char *dtype, size_t rank, const size_t *dims);
void tensor_free(struct tensor *t);

// Writes t's values in the file type that belongs to its dtype. false: the file cannot be written.
bool npy_write(const char *path, const struct tensor *t);

// Reads a C-ordered array of numbers of at most 32 bits, or float64. dtype is the file's own type.
// false: why says what is wrong.
bool npy_read(const char *path, struct tensor *t, char *why, size_t why_bytes);

#endif
