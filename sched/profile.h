#ifndef SCHED_PROFILE_H
#define SCHED_PROFILE_H

#include "base/text.h"
#include "lang/program.h"
#include "sched/clock.h"

// What a timed program did with its time, and what to do about it. Names are Neuron Explorer's
// where it has them; docs/profile.md explains each.

// name_unit of each METRIC row; NAN: needs kept events, and not all were kept.
typedef struct profile_summary {
#define METRIC(name, unit) double name##_##unit;
#include "sched/profile.def"
} profile_summary;

typedef enum finding_kind {
#define FINDING(id, name) FIND_##id,
#include "sched/profile.def"
    FIND_KIND_COUNT
} finding_kind;
const char *finding_name(finding_kind k);  // "repeated-load"

enum { FINDING_PLACES = 4 };

// What a rule found.
typedef struct finding {
    finding_kind kind;
    uint32_t at[FINDING_PLACES], places;  // instructions, of different lines
    double cost_ns;                       // what it takes
    double gain_ns;                       // of that, at most this shortens the program
    const char *text;
} finding;

// A line whose instructions made their engine stand still.
typedef struct profile_stall {
    uint32_t instr;  // with the longest wait
    uint32_t by;     // what it waited for: instruction + 1; 0: unknown
    uint64_t count;  // executions of the line on this engine
    double lost_ns, worst_ns;
} profile_stall;

// A source line.
typedef struct profile_line {
    const char *path;  // "" unknown
    uint32_t line;
    uint64_t count;
    double busy_ns, wait_ns;
    double critical_ns;  // on the chain that decides the length; 0 without events
} profile_line;

// All executions of one instruction of the table.
typedef struct profile_opcode {
    uint16_t op;
    uint8_t engine;
    uint64_t count;
    double busy_ns, wait_ns;
    uint64_t flops, bytes;
} profile_opcode;

// An on-chip tensor: where it lies, and from its first to its last use in time.
typedef struct profile_area {
    uint32_t tensor;
    int64_t from_ps, to_ps;
} profile_area;

// A DMA queue.
typedef struct profile_queue {
    uint64_t bytes, packets;
    double moving_ns;  // sum of transfers, from the first byte to the last
} profile_queue;

typedef struct profile {
    const program *program;
    const ir *p;
    const char **tensor_names;  // of each tensor: its own, the variable it was made for, or "%7"
    machine m;
    clock_result clock;
    profile_summary sum;
    VEC(finding) findings;      // largest gain first
    VEC(profile_stall) stalls;  // most time lost first
    VEC(profile_line) lines;    // by time spent, most first
    VEC(profile_opcode) opcodes;
    VEC(profile_area) areas;
    profile_queue queue[TRACK_COUNT];
    // The chain of executions that decides the length: events, the last first. Empty without events.
    VEC(uint32_t) critical;
    double critical_ns[TRACK_COUNT];
} profile;

// The n programs of a launch, in rank order; out: n profiles. false: the clock.error of one of them
// says why.
bool profile_make(arena *mem, const program *const *cores, uint32_t n, const clock_opts *opts,
                  profile *out);

const char *place_path(const ir *p, uint32_t place, uint32_t *line, uint32_t *col);

// ---- forms. `cores`: a profile for each core of the launch. Rows of executions need kept events.
void profile_text(const profile *cores, uint32_t n, textbuf *out);
void profile_json(const profile *cores, uint32_t n, bool instructions, textbuf *out);
void profile_perfetto(const profile *cores, uint32_t n, textbuf *out);
void profile_html(const profile *cores, uint32_t n, textbuf *out);  // one self-contained page

// A table as in Neuron Explorer's export, header first.
typedef enum profile_table {
#define TABLE(id, name) TABLE_##id,
#include "sched/profile_tables.def"
    TABLE_COUNT
} profile_table;
const char *profile_table_name(profile_table t);  // "Instruction"
void profile_csv(const profile *cores, uint32_t n, profile_table table, textbuf *out);
// Two programs, line by line.
void profile_against(const profile *a, uint32_t na, const profile *b, uint32_t nb, textbuf *out);

// A value that changes at a time.
typedef struct profile_step {
    int64_t at_ps, value;
} profile_step;
// Bytes of a partition in use over time, one step a time, ascending. Returns how many.
uint32_t profile_memory_steps(const profile *pr, arena *mem, buffer_kind b, profile_step **out);

// A semaphore's new value. Returns how many; by time.
typedef struct profile_update {
    int64_t at_ps;
    uint32_t semaphore;
    int32_t by;
    int64_t value;
} profile_update;
uint32_t profile_updates(const profile *pr, arena *mem, profile_update **out);

// A JSON string; '<' is escaped, so that it may stand in a page.
void json_quoted(textbuf *out, const char *s);
// Operands of an instruction, "dst=x float32[128,512] op=add".
void operands_text(const profile *pr, uint32_t instr, textbuf *out);

static inline double ns_of_ps(int64_t ps)
{
    return (double)ps / 1000.0;
}

#endif
