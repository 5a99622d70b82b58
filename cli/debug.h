#ifndef CLI_DEBUG_H
#define CLI_DEBUG_H

#include "cli/npy.h"
#include "cli/table.h"

#include <nki/tool.h>

// --watch, --save, --break and --commands of nki run: debug.c follows the run and decides where it
// stops; place.c are the lines it may stop at; prompt.c is what a stop says and asks; peek.c finds
// and prints tensors; line.c reads a line.

enum { CORES_MAX = 2, BREAKS_MAX = 64, WATCHES_MAX = 64, LINE_MAX_BYTES = 1024 };

// A line of source that a run may come to.
typedef struct location {
    char file[256];
    size_t line;
    // By core and instruction: 1 + the depth of its frame on the line; 0: it has none there.
    uint8_t *depth[CORES_MAX];
    // By core: whether the last instruction was on the line, which, in which call and iteration.
    struct {
        bool on;
        size_t instr;
        uint64_t context;
    } last[CORES_MAX];
} location;

typedef struct breakpoint {
    unsigned number;
    uint64_t hits;
    location at;
} breakpoint;

typedef struct saving {
    const char *name;          // of the tensor
    const char *path;          // of the file
    bool placed;               // at a place, else after the last write
    uint32_t *due[CORES_MAX];  // by instruction: 1 + the tensor to be kept after it; not placed
    location at;
    nki_tensor *value;  // the latest
} saving;

typedef enum run_mode { MODE_RUN, MODE_STEP, MODE_NEXT, MODE_FINISH } run_mode;

typedef struct debugger {
    session *s;
    nki_kernel *k;
    uint32_t cores;
    size_t *first_write[CORES_MAX], *last_write[CORES_MAX];  // by tensor; NKI_NOWHERE: none
    breakpoint breaks[BREAKS_MAX];
    size_t break_count;
    unsigned last_break;  // number of the newest
    char *watches[WATCHES_MAX];
    size_t watch_count;
    uint8_t *watched[CORES_MAX];  // by tensor
    char **registers[CORES_MAX];  // names, found when first asked for; NULL: not yet
    size_t register_count[CORES_MAX];
    saving *saves;
    size_t save_count;
    // Where it stops next.
    run_mode mode;
    uint64_t count;  // steps, lines or breakpoints still to pass
    uint32_t core;   // of MODE_NEXT and MODE_FINISH
    size_t instr;    // where they began
    // The prompt.
    nki_step *step;      // during a stop
    uint32_t looked_at;  // core that print, where, list and engines show
    size_t listed;       // last line that `list` showed
    FILE *commands;      // NULL: standard input
    char previous[LINE_MAX_BYTES];
    int quit;     // the run is to end
    bool failed;  // the run has ended with an error
    int status;   // of the tool, when something failed
} debugger;

// Follows the runs of k as the options ask. *out NULL: they ask nothing. Returns an exit status.
int debug_open(session *s, nki_kernel *k, debugger **out);
// Writes what --save asked for, unless the run failed (st) or was ended. Returns the exit status.
int debug_close(debugger *d, int st);

// ---- lines (place.c)

// "FILE:LINE", or "LINE" of the kernel's own file. false after a sentence in why.
bool location_find(const debugger *d, const char *text, location *out, char *why, size_t room);
void location_free(location *l);
// Whether the core comes to the line with this instruction: once a time it gets there.
bool location_reached(debugger *d, location *l, uint32_t core, size_t instr);

// ---- tensors (peek.c)

// The tensor that is called so, as seen from instruction instr: the newest that is written by then.
// NKI_NOWHERE after a sentence in why that names what is near.
size_t tensor_find(const debugger *d, uint32_t core, size_t instr, const char *name, char *why,
                   size_t room);
// Sets marks[t] for each tensor t that is called so; a result of the kernel hides the temporaries
// of the call that made it. false: there is none.
bool tensors_mark(const debugger *d, uint32_t core, const char *name, uint8_t *marks);
// Fills in d->watched for d->watches. false: no memory.
bool watches_mark(debugger *d);
// Elements of TENSOR[SLICES], a register (rN or its name) or $PARAM[SLICES] on standard output.
// false after a sentence.
bool print_expression(debugger *d, nki_step *s, uint32_t core, const char *text, char *why,
                      size_t room);
// All of a tensor. NULL: no memory, or the core has not begun.
nki_tensor *tensor_now(const nki_step *s, const debugger *d, uint32_t core, size_t tensor);
// "i (r3)", or "r3" where the source has no name for it.
const char *register_label(debugger *d, uint32_t core, size_t reg, char *buf, size_t cap);
// "i (r3) = 2 (trip 3)" or "trip 3" of a register loop that the core is in, after `between`.
void print_loop(debugger *d, const nki_step *s, uint32_t core, const nki_loop *l,
                const char *between);
// What an instruction has written to watched tensors.
void show_writes(debugger *d, nki_step *s);

// Whether Ctrl-C was pressed since the last time it was asked.
bool debug_interrupted(void);

// ---- the prompt (prompt.c)

// Says where the run is, and asks until a command lets it go on. why: "breakpoint 1", or "".
void prompt(debugger *d, nki_step *s, const char *why);
// "core 1: ", or "" when there is one core only.
const char *core_prefix(const debugger *d, uint32_t core, char *buf, size_t cap);

// ---- lines (line.c)

// The next line of the input, without its end; false at the end of the input. Interactive input is
// edited, with a history and completion of commands and tensors, where the build has libedit.
bool line_read(debugger *d, char *buf, size_t cap);

#endif
