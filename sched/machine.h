#ifndef SCHED_MACHINE_H
#define SCHED_MACHINE_H

#include "lang/target.h"

#include <stdbool.h>

// The timing constants of a target (machine.def, docs/machine.md).
typedef struct machine {
#define M(name, unit, g2, g3, g4, trust, source) double name;
#include "sched/machine.def"
#undef M
} machine;

typedef struct machine_row {
    const char *name, *unit, *trust, *source;
    double value[3];  // trn1, trn2, trn3
} machine_row;

const machine *machine_of(const target *t);
size_t machine_rows(const machine_row **rows);
// Sets one constant by name. false: no such constant, or not a finite number >= 0.
bool machine_set(machine *m, const char *name, double value);

#endif
