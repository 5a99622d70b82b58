#ifndef SCHED_PROGRAM_PRINT_H
#define SCHED_PROGRAM_PRINT_H

#include "lang/program.h"

// The streams of a scheduled program with their waits and signals: docs/sched.md, "Text".
void program_print(const program *pr, textbuf *out);
// The same without memory and statistics, which a program that was read does not have.
void program_print_streams(const program *pr, textbuf *out);

#endif
