#ifndef SCHED_PROGRAM_TEXT_H
#define SCHED_PROGRAM_TEXT_H

#include "lang/program.h"

// The scheduled part of a program as text: docs/sched.md, "Text".

// Memory, statistics, semaphores, transfers and streams.
void program_print(const program *pr, textbuf *out);
// The same without memory and statistics.
void program_print_streams(const program *pr, textbuf *out);
// Parses what program_print writes, for the placed program p that its numbers refer to. Ranges are
// checked; whether the streams order p is schedule_verify's to say. On failure returns NULL and a
// sentence with the line's number in *err (in mem).
program *program_parse(arena *mem, ir *p, const char *text, size_t len, const char **err);

#endif
