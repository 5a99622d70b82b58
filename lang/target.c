#include "lang/target.h"

#include <string.h>

// Sources: Trainium/Inferentia2, Trainium2 and Trainium3 architecture guides for the sizes;
// the semaphore count is not published (256 is a choice, docs/machine.md).
static const target table[] = {
    {"trn1", 2, 128, 196608, 16384, 2048, 8, 128, 512, 512, 64, 256, 16},
    {"trn2", 3, 128, 229376, 16384, 2048, 8, 128, 512, 512, 64, 256, 16},
    {"trn3", 4, 128, 262144, 16384, 2048, 8, 128, 4096, 512, 64, 256, 16},
};

static const struct {
    const char *name;
    int gen;
} names[] = {
    {"trn1", 2}, {"trn1n", 2}, {"inf2", 2}, {"gen2", 2}, {"trn2", 3},
    {"trn2n", 3}, {"gen3", 3}, {"trn3", 4}, {"gen4", 4},
};

const target *target_by_gen(int gen)
{
    return gen >= 2 && gen <= 4 ? &table[gen - 2] : NULL;
}

const target *target_find(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, name) == 0) {
            return target_by_gen(names[i].gen);
        }
    }
    return NULL;
}
