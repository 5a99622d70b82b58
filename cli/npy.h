#ifndef CLI_NPY_H
#define CLI_NPY_H

#include <nki/tensor.h>

#include <stdbool.h>

// The element types of .npy files that are read. VOID: packed or bf16 bits that NumPy has no name
// for.
typedef enum npy_type {
    NPY_F2,
    NPY_F4,
    NPY_F8,
    NPY_I1,
    NPY_U1,
    NPY_I2,
    NPY_U2,
    NPY_I4,
    NPY_U4,
    NPY_I8,
    NPY_U8,
    NPY_B1,
    NPY_V1,
    NPY_V2,
    NPY_V4
} npy_type;

// An array as read: row-major, this machine's byte order.
typedef struct npy_array {
    npy_type type;
    size_t ndim;
    size_t shape[NKI_MAX_DIMS];
    size_t count;
    void *data;  // malloc'ed
} npy_array;

const char *npy_type_name(npy_type t);  // "float64"
size_t npy_type_size_bytes(npy_type t);

// Reads versions 1 to 3, any byte order, row- or column-major; "-" is standard input.
// false after a sentence in why (room bytes) that names the path.
bool npy_read(const char *path, npy_array *out, char *why, size_t room);
void npy_free(npy_array *a);

// Writes row-major elements of a nki type under the NumPy type that npy_written says. raw: as the
// stored bits (unsigned of the same size) where NumPy has no such type; else those become float32.
npy_type npy_written(nki_dtype d, bool raw);
bool npy_write(const char *path, const nki_tensor *t, bool raw, char *why, size_t room);
// A tensor as npy_write would store it. data is malloc'ed; false: out of memory.
bool npy_of_tensor(const nki_tensor *t, bool raw, npy_array *out);

#endif
