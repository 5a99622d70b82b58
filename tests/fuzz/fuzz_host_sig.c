// Signatures of any bytes: refused with a place, or printed as a text that parses to the same.
#include "runtime/signature.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static signature a, b;
    char why[200] = "";
    char *text = malloc(size + 1);
    if (!text) {
        return 0;
    }
    if (size) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    if (!signature_parse(text, &a, why, sizeof why)) {
        if (strncmp(why, "signature, character ", 21) != 0) {
            abort();
        }
    } else {
        static char once[1 << 15], twice[1 << 15];
        size_t n = signature_print(&a, once, sizeof once);
        if (n < sizeof once && n <= SIG_TEXT_MAX) {
            if (!signature_parse(once, &b, why, sizeof why) ||
                signature_print(&b, twice, sizeof twice) != n || strcmp(once, twice) != 0) {
                abort();
            }
        }
    }
    free(text);
    return 0;
}
