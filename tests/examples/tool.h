// Runs the `nki` command for tests and compares what it wrote.
#ifndef NKI_TESTS_EXAMPLES_TOOL_H
#define NKI_TESTS_EXAMPLES_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/examples/npy.h"

enum { TOOL_ARGS_MAX = 32, TOOL_ARG_BYTES = 512, TOOL_LOG_BYTES = 2048, TOOL_SECONDS_MAX = 120 };

// One command line under construction, with a folder of its own for files.
struct tool {
    const char *path;   // the nki executable
    char dir[256];      // a fresh folder; removed by tool_close
    char out_dir[300];  // dir/out, where results go
    char argv[TOOL_ARGS_MAX][TOOL_ARG_BYTES];
    size_t argc;
    int status;                // exit status of the last run; 128 + signal when it was killed
    char log[TOOL_LOG_BYTES];  // the start of what the last run wrote to standard error
};

// false: no folder could be made.
bool tool_open(struct tool *tool, const char *path);
void tool_close(struct tool *tool);

// Appends an argument, printf style. Exits when there are too many: the tables are ours.
void tool_arg(struct tool *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Writes the tensor to dir/NAME.npy and appends NAME=DTYPE@file. false: it cannot be written.
bool tool_tensor(struct tool *tool, const char *name, const struct tensor *t);

// Runs it and waits, at most TOOL_SECONDS_MAX. Returns the exit status (also in tool->status).
int tool_run(struct tool *tool);

// Reads out_dir/NAME.npy.
bool tool_result(const struct tool *tool, const char *name, struct tensor *t, char *why,
                 size_t why_bytes);

// What may differ: |got - want| <= atol + rtol * |want| + slack[i]; slack may be NULL. A NaN equals
// a NaN and nothing else; an infinity equals itself. Shapes are the same. false: why names the
// first element that differs, how many do, and by how much at worst.
struct tolerance {
    double rtol, atol;
    const double *slack;
};
bool tensor_close(const struct tensor *got, const struct tensor *want, struct tolerance tolerance,
                  char *why, size_t why_bytes);

#endif
