#ifndef SCHED_CLOCK_H
#define SCHED_CLOCK_H

#include "lang/program.h"
#include "sched/cost.h"

// The time a scheduled program takes, by discrete-event simulation of its streams and semaphores.
// Looks at instructions, trip counts and traces of control, never at data. Times are picoseconds
// from the launch's first instruction.

// What issues in order, numbered as the streams: five sequencers, then the DMA rings.
enum { TRACK_COUNT = STREAM_COUNT, TRACK_DMA0 = STREAM_RING0, CLOCK_CORES = 2 };

const char *track_name(unsigned track);  // "Vector", "DMA.load"

typedef struct clock_trip {
    const char *name;  // the loop's variable, or the line of its start
    uint64_t count;
} clock_trip;

typedef struct clock_opts {
    const machine *m;  // NULL: the target's own
    const clock_trip *trips;
    uint32_t trip_count;
    const control_trace *traces;  // one for each core, or NULL; trips come first
    uint32_t events_max;          // events and semaphore changes kept, of each core; 0: none
    uint64_t steps_max;           // instruction executions; 0: 2^27
} clock_opts;

enum { CLOCK_NO_SEMAPHORE = UINT16_MAX };

// One execution of an instruction.
typedef struct clock_event {
    uint32_t instr;
    uint32_t waited_for;  // instruction + 1 that it started after; 0: only its own queue
    uint8_t track;
    uint8_t cold;                         // Tensor at half clock
    uint16_t table;                       // ns of a function table load before it
    uint16_t semaphore;                   // that told it; CLOCK_NO_SEMAPHORE: its own engine, or none
    uint32_t from;                        // event + 1 of waited_for, when kept
    int64_t wait_ps;                      // its queue stood still this long for it
    int64_t start_ps, issued_ps, end_ps;  // DMA: issued_ps is when the first byte moves
} clock_event;

// A semaphore's value changes as its consumer sees it.
typedef struct clock_change {
    int64_t at_ps;
    int32_t by;
    uint16_t semaphore;
} clock_change;

// All executions of one instruction.
typedef struct instr_time {
    uint64_t count;
    int64_t busy_ps;      // its engine could not start another
    int64_t wait_ps;      // sum over executions
    int64_t worst_ps;     // the longest wait
    uint32_t waited_for;  // in the longest wait: instruction + 1
    int64_t first_ps, last_ps;
} instr_time;

typedef struct track_time {
    uint64_t count;
    int64_t active_ps;  // at least one instruction in process
    int64_t busy_ps;    // sum of issue intervals
    int64_t first_ps, last_ps;
    int64_t wait_ps;
} track_time;

typedef enum clock_error {
    CLOCK_FINE,
    CLOCK_NEEDS_TRIP,  // of the loop that begins at error_instr
    CLOCK_TOO_LONG,    // more than steps_max
    CLOCK_STUCK,       // cores or streams that wait for each other
} clock_error;

// Of one core.
typedef struct clock_result {
    int64_t end_ps;    // of the last instruction
    int64_t body_ps;   // of the launch: from the first DMA trigger to the last completion
    int64_t total_ps;  // with launch and teardown
    uint64_t steps;    // instructions executed
    uint64_t hardware_multiplies;
    int64_t pe_cold_ps;  // of Tensor's busy time, at half clock
    uint32_t table_loads;
    int64_t table_ps;
    int64_t dma_active_ps;      // at least one engine moves data
    int64_t dma_engine_ps[16];  // each engine's moving time
    uint64_t dma_bytes, dma_count, dma_pieces;
    uint64_t dma_unit_count[DU_COUNT];
    int64_t port_ps;  // waited for a shared port
    int64_t core_ps;  // waited for the other core
    track_time track[TRACK_COUNT];
    instr_time *of;  // of each instruction
    VEC(clock_event) events;
    VEC(clock_change) changes;  // not in order of time
    bool events_cut;
    clock_error error;
    uint32_t error_instr;
} clock_result;

// Times the n programs of a launch (in rank order; one of two alone never waits for the other).
// r: n results. false: r->error says why, in the result of the core that has it, r[0] else fine.
// Time: linear in executed instructions.
bool clock_run(arena *mem, const program *const *cores, uint32_t n, const clock_opts *opts,
               clock_result *r);

// Whether the length of some loop depends on data.
bool clock_needs_trace(const ir *p);

#endif
