// Runs a fuzz target on files: what past fuzzing found stays a test without libFuzzer.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    enum { INPUT_MAX_BYTES = 4 << 20 };
    uint8_t *buf = malloc(INPUT_MAX_BYTES);
    for (int i = 1; buf && i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) {
            perror(argv[i]);
            free(buf);
            return 1;
        }
        size_t n = fread(buf, 1, INPUT_MAX_BYTES, f);
        fclose(f);
        // A block of its own size, so that AddressSanitizer sees a read past the end.
        uint8_t *own = malloc(n ? n : 1);
        for (size_t k = 0; own && k < n; k++) {
            own[k] = buf[k];
        }
        if (own) {
            LLVMFuzzerTestOneInput(own, n);
        }
        free(own);
    }
    free(buf);
    printf("%d inputs replayed\n", argc - 1);
    return argc < 2;
}
