#ifndef SCHED_MEMORY_MAP_H
#define SCHED_MEMORY_MAP_H

#include "lang/program.h"

// What lies where in SBUF and PSUM, and when: bytes of a partition over instructions. A tensor
// counts from its first to its last use, over whole loops where it may carry a value
// (sched/live.h).

// A map of letters and a line for each tensor.
void memory_map_text(const program *pr, textbuf *out);
// A drawing: a rectangle for each tensor, with its name, shape and line as its title.
void memory_map_svg(const program *pr, textbuf *out);

#endif
