// npytool make PATH [version=N] [descr=D] [fortran] [shape=D0,D1,..] [bytes=HEX] [cut=N]
//     writes an .npy file piece by piece, also a wrong one: the contents are HEX, or else 0 1 2 ...
//     as elements of D; cut drops N bytes from the end
// npytool show PATH
//     prints the header's dictionary and the bytes of the contents in hexadecimal
// Written apart from cli/npy.c, from the format's description, so that the two check one another.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void store(unsigned char *p, const char *descr, unsigned v)
{
    size_t size = (size_t)(descr[strlen(descr) - 1] - '0');
    unsigned char raw[8] = {0};
    char kind = descr[strlen(descr) - 2];
    if (kind == 'f' && size == 4) {
        float f = (float)v;
        memcpy(raw, &f, 4);
    } else if (kind == 'f' && size == 8) {
        double f = v;
        memcpy(raw, &f, 8);
    } else if (kind == 'f') {  // fp16 of a small integer
        unsigned e = 0;
        while (v >> (e + 1)) {
            e++;
        }
        unsigned h = v ? (e + 15) << 10 | (v << (10 - e) & 1023) : 0;
        raw[0] = (unsigned char)(h & 255);
        raw[1] = (unsigned char)(h >> 8);
    } else {
        uint64_t u = v;
        memcpy(raw, &u, 8);  // little-endian machines only, as every one that runs these tests
    }
    for (size_t i = 0; i < size; i++) {
        p[i] = descr[0] == '>' ? raw[size - 1 - i] : raw[i];
    }
}

static int make(int argc, char **argv)
{
    const char *descr = "<f4", *shape = "2,3", *hex = NULL;
    int version = 1, cut = 0;
    bool fortran = false;
    for (int i = 3; i < argc; i++) {
        if (strncmp(argv[i], "version=", 8) == 0) {
            version = atoi(argv[i] + 8);
        } else if (strncmp(argv[i], "descr=", 6) == 0) {
            descr = argv[i] + 6;
        } else if (strcmp(argv[i], "fortran") == 0) {
            fortran = true;
        } else if (strncmp(argv[i], "shape=", 6) == 0) {
            shape = argv[i] + 6;
        } else if (strncmp(argv[i], "bytes=", 6) == 0) {
            hex = argv[i] + 6;
        } else if (strncmp(argv[i], "cut=", 4) == 0) {
            cut = atoi(argv[i] + 4);
        } else {
            fprintf(stderr, "npytool: '%s'?\n", argv[i]);
            return 2;
        }
    }
    static unsigned char out[1 << 20];
    size_t n = 0, count = 1;
    for (const char *p = shape; *p;) {
        char *end;
        count *= strtoul(p, &end, 10);
        p = *end == ',' ? end + 1 : end;
    }
    char head[256];
    int h = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s%s), }\n",
                     descr, fortran ? "True" : "False", shape,
                     *shape && !strchr(shape, ',') ? "," : "");
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    n = 8;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++) {
        out[n++] = (unsigned char)(h >> (8 * i) & 255);
    }
    memcpy(out + n, head, (size_t)h);
    n += (size_t)h;
    if (hex) {
        for (; hex[0] && hex[1]; hex += 2) {
            char two[3] = {hex[0], hex[1], 0};
            out[n++] = (unsigned char)strtoul(two, NULL, 16);
        }
    } else {
        size_t size = (size_t)(descr[strlen(descr) - 1] - '0');
        for (unsigned i = 0; i < count; i++, n += size) {
            store(out + n, descr, i);
        }
    }
    FILE *f = fopen(argv[2], "wb");
    if (!f) {
        perror(argv[2]);
        return 1;
    }
    n = (size_t)cut < n ? n - (size_t)cut : 0;
    bool ok = fwrite(out, 1, n, f) == n;
    return fclose(f) || !ok;
}

static int show(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    static unsigned char in[1 << 20];
    size_t n = fread(in, 1, sizeof in, f);
    fclose(f);
    if (n < 10 || memcmp(in, "\x93NUMPY", 6) != 0) {
        fprintf(stderr, "%s: not an .npy file\n", path);
        return 1;
    }
    size_t len = (size_t)in[8] | (size_t)in[9] << 8, at = 10 + len;
    if (in[6] != 1 || at > n || at % 64 != 0) {
        fprintf(stderr, "%s: version %d, data at %zu of %zu\n", path, in[6], at, n);
        return 1;
    }
    while (len && (in[10 + len - 1] == ' ' || in[10 + len - 1] == '\n')) {
        len--;
    }
    printf("%.*s\n", (int)len, (const char *)in + 10);
    for (size_t i = at; i < n; i++) {
        printf("%02x", in[i]);
    }
    putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "make") == 0) {
        return make(argc, argv);
    }
    if (argc == 3 && strcmp(argv[1], "show") == 0) {
        return show(argv[2]);
    }
    fprintf(stderr, "usage: npytool make PATH ... | npytool show PATH\n");
    return 2;
}
