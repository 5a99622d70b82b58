#include "tests/examples/npy.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct file_type {
    const char *descr;  // the .npy header's name
    const char *dtype;
    size_t bytes;
};

static const struct file_type FILE_TYPES[] = {
    {"<f4", "float32", 4}, {"<f2", "float16", 2}, {"<f8", "float64", 8}, {"|i1", "int8", 1},
    {"|u1", "uint8", 1},   {"<i2", "int16", 2},   {"<u2", "uint16", 2},  {"<i4", "int32", 4},
    {"<u4", "uint32", 4},  {"|b1", "bool", 1},    {"<i8", "int64", 8},
};
enum { FILE_TYPE_COUNT = sizeof FILE_TYPES / sizeof FILE_TYPES[0] };

struct tensor tensor_make(const char *dtype, size_t rank, const size_t *dims)
{
    struct tensor t = {.rank = rank, .count = 1};
    (void)snprintf(t.dtype, sizeof t.dtype, "%s", dtype);
    for (size_t i = 0; i < rank; i++) {
        t.dims[i] = dims[i];
        t.count *= dims[i];
    }
    t.values = calloc(t.count > 0 ? t.count : 1, sizeof *t.values);
    if (!t.values) {
        perror("tensor_make");
        exit(4);
    }
    return t;
}

void tensor_free(struct tensor *t)
{
    free(t->values);
    *t = (struct tensor){0};
}

static const struct file_type *type_for(const char *dtype)
{
    for (size_t i = 0; i < FILE_TYPE_COUNT; i++) {
        if (strcmp(FILE_TYPES[i].dtype, dtype) == 0) {
            return strcmp(dtype, "float16") == 0 ? &FILE_TYPES[0] : &FILE_TYPES[i];
        }
    }
    return &FILE_TYPES[0];  // the tool converts float32 files to the argument's type
}

static void encode(const struct file_type *type, double v, unsigned char *out)
{
    if (strcmp(type->descr, "<f4") == 0) {
        float f = (float)v;
        memcpy(out, &f, 4);
        return;
    }
    uint32_t bits = (uint32_t)(int64_t)v;  // two's complement of any integer up to 32 bits
    for (size_t i = 0; i < type->bytes; i++) {
        out[i] = (unsigned char)(bits >> (8 * i));
    }
}

bool npy_write(const char *path, const struct tensor *t)
{
    const struct file_type *type = type_for(t->dtype);
    char shape[96] = "";
    size_t at = 0;
    for (size_t i = 0; i < t->rank; i++) {
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%zu,", t->dims[i]);
    }
    char header[256];
    int n =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 type->descr, shape);
    // Magic, version, length and header end on a multiple of 64 with a newline.
    size_t padded = ((size_t)n + 1 + 10 + 63) / 64 * 64 - 10;
    unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    head[8] = (unsigned char)(padded & 0xff);
    head[9] = (unsigned char)(padded >> 8);

    FILE *f = fopen(path, "wb");
    if (!f) {
        return false;
    }
    bool ok = fwrite(head, 1, sizeof head, f) == sizeof head &&
              fprintf(f, "%-*s\n", (int)padded - 1, header) == (int)padded;
    for (size_t i = 0; ok && i < t->count; i++) {
        unsigned char bytes[8];
        encode(type, t->values[i], bytes);
        ok = fwrite(bytes, 1, type->bytes, f) == type->bytes;
    }
    return fclose(f) == 0 && ok;
}

static double half_value(uint32_t h)
{
    int exponent = (int)((h >> 10) & 31u);
    double fraction = (double)(h & 1023u);
    double v = exponent == 0    ? ldexp(fraction, -24)
               : exponent == 31 ? (fraction > 0 ? (double)NAN : (double)INFINITY)
                                : ldexp(1024.0 + fraction, exponent - 25);
    return (h & 0x8000u) ? -v : v;
}

static double decode(const struct file_type *type, const unsigned char *in)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < type->bytes; i++) {
        bits |= (uint64_t)in[i] << (8 * i);
    }
    switch (type->descr[1]) {
    case 'f':
        if (type->bytes == 2) {
            return half_value((uint32_t)bits);
        }
        if (type->bytes == 4) {
            uint32_t word = (uint32_t)bits;
            float v;
            memcpy(&v, &word, 4);
            return (double)v;
        } else {
            double v;
            memcpy(&v, &bits, 8);
            return v;
        }
    case 'i': {
        int64_t sign = (int64_t)1 << (8 * type->bytes - 1);
        return type->bytes == 8 ? (double)(int64_t)bits : (double)(((int64_t)bits ^ sign) - sign);
    }
    default: return (double)bits;
    }
}

// Fills t's type and shape from the header text. Returns the file type, NULL when it is none of
// ours.
static const struct file_type *parse_header(const char *header, struct tensor *t)
{
    const struct file_type *type = NULL;
    for (size_t i = 0; i < FILE_TYPE_COUNT; i++) {
        if (strstr(header, FILE_TYPES[i].descr)) {
            type = &FILE_TYPES[i];
        }
    }
    const char *shape = strstr(header, "'shape': (");
    if (!type || !shape || !strstr(header, "'fortran_order': False")) {
        return NULL;
    }
    size_t dims[TENSOR_RANK_MAX];
    size_t rank = 0;
    const char *p = shape + strlen("'shape': (");
    while (rank < TENSOR_RANK_MAX) {
        char *end;
        unsigned long long v = strtoull(p, &end, 10);
        if (end == p) {
            break;
        }
        dims[rank++] = (size_t)v;
        p = end + strspn(end, ", ");
    }
    if (*p != ')') {
        return NULL;
    }
    *t = tensor_make(type->dtype, rank, dims);
    return type;
}

bool npy_read(const char *path, struct tensor *t, char *why, size_t why_bytes)
{
    *t = (struct tensor){0};
    FILE *f = fopen(path, "rb");
    if (!f) {
        (void)snprintf(why, why_bytes, "%s: cannot be opened", path);
        return false;
    }
    unsigned char head[10];
    char header[1024] = "";
    const struct file_type *type = NULL;
    if (fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, "\x93NUMPY", 6) == 0) {
        size_t n = (size_t)head[8] | ((size_t)head[9] << 8);
        if (n < sizeof header && fread(header, 1, n, f) == n) {
            type = parse_header(header, t);
        }
    }
    bool ok = type != NULL;
    for (size_t i = 0; ok && i < t->count; i++) {
        unsigned char bytes[8];
        ok = fread(bytes, 1, type->bytes, f) == type->bytes;
        if (ok) {
            t->values[i] = decode(type, bytes);
        }
    }
    ok = ok && fgetc(f) == EOF;
    (void)fclose(f);
    if (!ok) {
        (void)snprintf(why, why_bytes, "%s: not the .npy file that its header says", path);
        tensor_free(t);
    }
    return ok;
}
