#include "cli/npy.h"

#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *descr, *name;
    size_t size_bytes;
} types[] = {
    [NPY_F2] = {"f2", "float16", 2}, [NPY_F4] = {"f4", "float32", 4},
    [NPY_F8] = {"f8", "float64", 8}, [NPY_I1] = {"i1", "int8", 1},
    [NPY_U1] = {"u1", "uint8", 1},   [NPY_I2] = {"i2", "int16", 2},
    [NPY_U2] = {"u2", "uint16", 2},  [NPY_I4] = {"i4", "int32", 4},
    [NPY_U4] = {"u4", "uint32", 4},  [NPY_I8] = {"i8", "int64", 8},
    [NPY_U8] = {"u8", "uint64", 8},  [NPY_B1] = {"b1", "bool", 1},
    [NPY_V1] = {"V1", "void8", 1},   [NPY_V2] = {"V2", "void16", 2},
    [NPY_V4] = {"V4", "void32", 4},
};
enum { TYPE_COUNT = sizeof types / sizeof *types };

const char *npy_type_name(npy_type t)
{
    return types[t].name;
}

size_t npy_type_size_bytes(npy_type t)
{
    return types[t].size_bytes;
}

// ---- the header: a Python dict literal of three keys

typedef struct header {
    npy_type type;
    bool swap, fortran;
    size_t ndim;
    size_t shape[NKI_MAX_DIMS];
} header;

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip(cursor *c)
{
    while (c->p < c->end && isspace((unsigned char)*c->p)) {
        c->p++;
    }
}

static bool accept(cursor *c, char want)
{
    skip(c);
    if (c->p < c->end && *c->p == want) {
        c->p++;
        return true;
    }
    return false;
}

// A quoted string without escapes.
static bool quoted(cursor *c, char *out, size_t room)
{
    skip(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"')) {
        return false;
    }
    char q = *c->p++;
    size_t n = 0;
    while (c->p < c->end && *c->p != q) {
        if (n + 1 == room) {
            return false;
        }
        out[n++] = *c->p++;
    }
    out[n] = '\0';
    return c->p < c->end && *c->p++ == q;
}

static bool word(cursor *c, const char *w)
{
    skip(c);
    size_t n = strlen(w);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, w, n) != 0) {
        return false;
    }
    c->p += n;
    return true;
}

static bool dims(cursor *c, header *h)
{
    if (!accept(c, '(')) {
        return false;
    }
    while (!accept(c, ')')) {
        skip(c);
        size_t v = 0;
        const char *start = c->p;
        while (c->p < c->end && isdigit((unsigned char)*c->p)) {
            if (v > (SIZE_MAX - 9) / 10) {
                return false;
            }
            v = v * 10 + (size_t)(*c->p++ - '0');
        }
        if (c->p == start || h->ndim == NKI_MAX_DIMS) {
            return false;
        }
        word(c, "L");  // written by Python 2
        h->shape[h->ndim++] = v;
        if (!accept(c, ',')) {
            return accept(c, ')');
        }
    }
    return true;
}

static const char *descr(const char *text, header *h)
{
    static const uint16_t one = 1;
    bool little = *(const unsigned char *)&one == 1;
    char order = '|';
    if (*text && strchr("<>|=", *text)) {
        order = *text++;
    }
    h->swap = (order == '<' && !little) || (order == '>' && little);
    for (int i = 0; i < TYPE_COUNT; i++) {
        if (strcmp(types[i].descr, text) == 0) {
            h->type = (npy_type)i;
            h->swap = h->swap && types[i].size_bytes > 1;
            return NULL;
        }
    }
    return "has an element type that kernels do not know";
}

static const char *parse_header(const char *text, size_t len, header *h)
{
    cursor c = {text, text + len};
    bool has[3] = {false, false, false};
    if (!accept(&c, '{')) {
        return "has a malformed header";
    }
    while (!accept(&c, '}')) {
        char key[32], type[32];
        if (!quoted(&c, key, sizeof key) || !accept(&c, ':')) {
            return "has a malformed header";
        }
        if (strcmp(key, "descr") == 0) {
            if (!quoted(&c, type, sizeof type)) {
                return "holds records, not an array of numbers";
            }
            const char *wrong = descr(type, h);
            if (wrong) {
                return wrong;
            }
            has[0] = true;
        } else if (strcmp(key, "fortran_order") == 0) {
            h->fortran = word(&c, "True");
            if (!h->fortran && !word(&c, "False")) {
                return "has a malformed header";
            }
            has[1] = true;
        } else if (strcmp(key, "shape") == 0) {
            h->ndim = 0;
            if (!dims(&c, h)) {
                return "has a malformed shape, or more than 8 dimensions";
            }
            has[2] = true;
        } else {
            return "has a malformed header";
        }
        if (!accept(&c, ',')) {
            if (!accept(&c, '}')) {
                return "has a malformed header";
            }
            break;
        }
    }
    return has[0] && has[1] && has[2] ? NULL : "has a header that lacks a key";
}

// ---- contents

static void swap_bytes(unsigned char *p, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++, p += size) {
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            unsigned char t = p[a];
            p[a] = p[b];
            p[b] = t;
        }
    }
}

// Column-major to row-major: walks the output in order with an index that counts up.
static void transpose(unsigned char *dst, const unsigned char *src, const header *h, size_t count,
                      size_t size)
{
    size_t stride[NKI_MAX_DIMS], index[NKI_MAX_DIMS] = {0}, at = 0;
    for (size_t d = 0, s = 1; d < h->ndim; d++) {
        stride[d] = s;
        s *= h->shape[d];
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(dst + i * size, src + at * size, size);
        for (size_t d = h->ndim; d-- > 0;) {
            at += stride[d];
            if (++index[d] < h->shape[d]) {
                break;
            }
            at -= stride[d] * h->shape[d];
            index[d] = 0;
        }
    }
}

// Returns NULL and *data, or a sentence's end.
static const char *parse(const unsigned char *bytes, size_t len, npy_array *out)
{
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (len < 10 || memcmp(bytes, magic, sizeof magic) != 0) {
        return "is not an .npy file";
    }
    unsigned version = bytes[6];
    if (version < 1 || version > 3) {
        return "is an .npy file of a version that is not known here";
    }
    size_t at = version == 1 ? 10 : 12;
    if (len < at) {
        return "is truncated";
    }
    size_t head = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) {
        head |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (head > len - at) {
        return "is truncated";
    }
    header h = {0};
    const char *wrong = parse_header((const char *)bytes + at, head, &h);
    if (wrong) {
        return wrong;
    }
    at += head;
    size_t size = types[h.type].size_bytes, count = 1;
    bool empty = false;
    for (size_t d = 0; d < h.ndim; d++) {
        empty = empty || h.shape[d] == 0;
    }
    for (size_t d = 0; d < h.ndim && !empty; d++) {
        if (count > len / h.shape[d]) {
            return "is truncated: it has fewer bytes than its shape says";
        }
        count *= h.shape[d];
    }
    count = empty ? 0 : count;
    if (count > (len - at) / size) {
        return "is truncated: it has fewer bytes than its shape says";
    }
    unsigned char *data = malloc(count * size + 1);
    if (!data) {
        return "does not fit in memory";
    }
    if (h.fortran && h.ndim > 1) {
        transpose(data, bytes + at, &h, count, size);
    } else {
        memcpy(data, bytes + at, count * size);
    }
    if (h.swap) {
        swap_bytes(data, count, size);
    }
    *out = (npy_array){.type = h.type, .ndim = h.ndim, .count = count, .data = data};
    memcpy(out->shape, h.shape, sizeof h.shape);
    return NULL;
}

bool npy_read(const char *path, npy_array *out, char *why, size_t room)
{
    const char *wrong = NULL;
    size_t len = 0;
    const char *shown = strcmp(path, "-") == 0 ? "standard input" : path;
    unsigned char *bytes = (unsigned char *)read_file(path, &len, &wrong);
    if (!bytes) {
        snprintf(why, room, "cannot read '%s': %s", shown, wrong);
        return false;
    }
    wrong = parse(bytes, len, out);
    free(bytes);
    if (wrong) {
        snprintf(why, room, "'%s' %s", shown, wrong);
    }
    return !wrong;
}

void npy_free(npy_array *a)
{
    free(a->data);
    *a = (npy_array){0};
}

npy_type npy_written(nki_dtype d, bool raw)
{
    switch (d) {
    case NKI_FLOAT32: return NPY_F4;
    case NKI_FLOAT16: return NPY_F2;
    case NKI_INT8: return NPY_I1;
    case NKI_UINT8: return NPY_U1;
    case NKI_INT16: return NPY_I2;
    case NKI_UINT16: return NPY_U2;
    case NKI_INT32: return NPY_I4;
    case NKI_UINT32:
    case NKI_FLOAT8_E5M2_X4:
    case NKI_FLOAT8_E4M3FN_X4: return NPY_U4;
    case NKI_FLOAT4_E2M1FN_X4: return NPY_U2;
    case NKI_BOOL: return NPY_B1;
    case NKI_TFLOAT32: return raw ? NPY_U4 : NPY_F4;
    case NKI_BFLOAT16: return raw ? NPY_U2 : NPY_F4;
    case NKI_FLOAT8_E5M2:
    case NKI_FLOAT8_E4M3:
    case NKI_FLOAT8_E4M3FN:
    case NKI_FLOAT8_E8M0FNU: return raw ? NPY_U1 : NPY_F4;
    }
    return NPY_U1;
}

bool npy_of_tensor(const nki_tensor *t, bool raw, npy_array *out)
{
    nki_dtype d = nki_tensor_dtype(t);
    npy_type n = npy_written(d, raw);
    bool widened = n == NPY_F4 && d != NKI_FLOAT32;
    *out = (npy_array){.type = n, .ndim = nki_tensor_ndim(t), .count = nki_tensor_count(t)};
    memcpy(out->shape, nki_tensor_shape(t), out->ndim * sizeof *out->shape);
    out->data = malloc(out->count * types[n].size_bytes + 1);
    return out->data &&
           nki_tensor_copy_out(t, out->data, widened ? NKI_FLOAT32 : d, out->count) == NKI_OK;
}

bool npy_write(const char *path, const nki_tensor *t, bool raw, char *why, size_t room)
{
    static const uint16_t one = 1;
    bool little = *(const unsigned char *)&one == 1;
    npy_array a;
    if (!npy_of_tensor(t, raw, &a)) {
        npy_free(&a);
        snprintf(why, room, "out of memory for '%s'", path);
        return false;
    }
    char head[512];
    size_t size = types[a.type].size_bytes;
    int n = snprintf(head, sizeof head, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                     size == 1 ? '|'
                     : little  ? '<'
                               : '>',
                     types[a.type].descr);
    for (size_t d = 0; d < a.ndim; d++) {
        n += snprintf(head + n, sizeof head - (size_t)n, "%zu,%s", a.shape[d],
                      d + 1 < a.ndim ? " " : "");
    }
    if (a.ndim > 1) {
        n--;  // only a tuple of one keeps its comma
    }
    n += snprintf(head + n, sizeof head - (size_t)n, "), }");
    while ((10 + n + 1) % 64 != 0) {
        head[n++] = ' ';
    }
    head[n++] = '\n';
    const unsigned char start[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
    bool std = strcmp(path, "-") == 0;
    FILE *f = std ? stdout : fopen(path, "wb");
    bool ok = f && fwrite(start, 1, sizeof start, f) == sizeof start &&
              fwrite(head, 1, (size_t)n, f) == (size_t)n &&
              fwrite(a.data, size, a.count, f) == a.count && fflush(f) == 0;
    int e = errno;
    if (f && !std && fclose(f) != 0 && ok) {
        ok = false;
        e = errno;
    }
    if (!ok) {
        snprintf(why, room, "cannot write '%s': %s", path, strerror(e));
    }
    npy_free(&a);
    return ok;
}
