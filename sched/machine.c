#include "sched/machine.h"

#include <math.h>
#include <string.h>

static const machine table[3] = {
    {
#define M(name, unit, g2, g3, g4, trust, source) .name = g2,
#include "sched/machine.def"
#undef M
    },
    {
#define M(name, unit, g2, g3, g4, trust, source) .name = g3,
#include "sched/machine.def"
#undef M
    },
    {
#define M(name, unit, g2, g3, g4, trust, source) .name = g4,
#include "sched/machine.def"
#undef M
    },
};

static const machine_row rows_of[] = {
#define M(name, unit, g2, g3, g4, trust, source) {#name, #unit, #trust, source, {g2, g3, g4}},
#include "sched/machine.def"
#undef M
};

const machine *machine_of(const target *t)
{
    return &table[t->gen - 2];
}

size_t machine_rows(const machine_row **rows)
{
    *rows = rows_of;
    return sizeof rows_of / sizeof *rows_of;
}

bool machine_set(machine *m, const char *name, double value)
{
    if (!isfinite(value) || value < 0) {
        return false;
    }
#define M(field, unit, g2, g3, g4, trust, source)                                                  \
    if (strcmp(name, #field) == 0) {                                                               \
        m->field = value;                                                                          \
        return true;                                                                               \
    }
#include "sched/machine.def"
#undef M
    return false;
}
