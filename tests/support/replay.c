// Runs a fuzz target without libFuzzer: on files, so that what past fuzzing found stays a test, and
// on random bytes of a fixed generator.
//
//   TARGET FILE...   TARGET --random COUNT BYTES
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX_BYTES = 4 << 20 };

// In a block of its own size, so that AddressSanitizer sees a read past the end.
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *own = malloc(size ? size : 1);
    if (own) {
        memcpy(own, data, size);
        LLVMFuzzerTestOneInput(own, size);
    }
    free(own);
}

static void feed_random(uint8_t *buf, unsigned long count, unsigned long bytes)
{
    uint64_t state = 1;
    for (unsigned long i = 0; i < count; i++) {
        for (unsigned long k = 0; k < bytes; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            buf[k] = (uint8_t)(state >> 56);
        }
        feed(buf, i % (bytes + 1));
    }
    printf("%lu random inputs\n", count);
}

int main(int argc, char **argv)
{
    uint8_t *buf = malloc(INPUT_MAX_BYTES);
    if (!buf || argc < 2) {
        free(buf);
        return 1;
    }
    if (argc == 4 && strcmp(argv[1], "--random") == 0) {
        unsigned long bytes = strtoul(argv[3], NULL, 10);
        feed_random(buf, strtoul(argv[2], NULL, 10), bytes < INPUT_MAX_BYTES ? bytes : 0);
        free(buf);
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) {
            perror(argv[i]);
            free(buf);
            return 1;
        }
        size_t n = fread(buf, 1, INPUT_MAX_BYTES, f);
        fclose(f);
        feed(buf, n);
    }
    free(buf);
    printf("%d inputs replayed\n", argc - 1);
    return 0;
}
