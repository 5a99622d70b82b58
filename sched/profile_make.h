#ifndef SCHED_PROFILE_MAKE_H
#define SCHED_PROFILE_MAKE_H

#include "sched/profile.h"
#include "sched/spill_list.h"

// What the parts of profile_make() share.
typedef struct maker {
    arena *mem;
    profile *pr;
    coster cs;
    double *critical_ns;  // of each instruction
} maker;

// Which executions lie on the critical path, and how much of it.
void make_critical(maker *mk);
// Lines and stalls.
void make_lines(maker *mk);
// Names of tensors.
void make_names(maker *mk);
// On-chip tensors over time.
void make_areas(maker *mk);
// Findings by rule. Requires: all others.
void make_findings(maker *mk);

// Time covered by the kept events that `in` accepts.
double events_cover_ns(const maker *mk, bool (*in)(const maker *mk, const clock_event *e));

#endif
