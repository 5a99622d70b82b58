// waits FILE.neff...: the checker refuses each program of the files that lacks one semaphore
// operation. Prints the number of waits.
#include "neff/neff.h"
#include "tests/support/remove_waits.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    *len = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*len + 1);
    if (!bytes || fread(bytes, 1, *len, f) != *len) {
        perror(path);
        exit(2);
    }
    fclose(f);
    return bytes;
}

// What is wrong with the programs of a file, or NULL.
static const char *fault(arena *mem, const unsigned char *bytes, size_t len, uint32_t *waits)
{
    const char *err = NULL;
    uint32_t parts = neff_parts(bytes, len, 2);
    for (uint32_t k = 0; k < parts && !err; k++) {
        program *pr = NULL;
        size_t part = neff_file_bytes(bytes);
        if (neff_read(mem, bytes, part, &pr, &err) == NKI_OK) {
            err = remove_each(mem, pr, waits);
        }
        bytes += part;
    }
    return err;
}

static int check(const char *path, uint32_t *waits)
{
    arena mem;
    jmp_buf oom;
    size_t len;
    unsigned char *bytes = read_file(path, &len);
    arena_init(&mem, 0, &oom);
    volatile int bad = 1;
    if (!setjmp(oom)) {
        const char *err = fault(&mem, bytes, len, waits);
        bad = err != NULL;
        if (err) {
            fprintf(stderr, "%s: %s\n", path, err);
        }
    }
    arena_fini(&mem);
    free(bytes);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = argc < 2;
    uint32_t waits = 0;
    for (int i = 1; i < argc; i++) {
        bad |= check(argv[i], &waits);
    }
    printf("%" PRIu32 " waits\n", waits);
    return bad;
}
