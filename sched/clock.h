#ifndef SCHED_CLOCK_H
#define SCHED_CLOCK_H

#include "sched/cost.h"

// The time a placed program takes, by discrete-event simulation of its engines and DMA rings.
// Looks at instructions and trip counts, never at data. Times are picoseconds from the first
// instruction.

// What issues in order: the five sequencers, numbered as the engines, then the DMA paths; and what
// else a timeline shows.
enum {
    TRACK_DMA0 = ENG_DMA,
    TRACK_COUNT = TRACK_DMA0 + DP_COUNT,
};
const char *track_name(unsigned track);  // "Vector", "DMA load"

typedef struct clock_trip {
    const char *name;  // the loop's variable, or the line of its start
    uint64_t count;
} clock_trip;

typedef struct clock_opts {
    const machine *m;  // NULL: the target's own
    const clock_trip *trips;
    uint32_t trip_count;
    uint32_t cores;       // that share the HBM stack; 0: as the program's grid
    uint32_t events_max;  // events kept; 0: none
    uint64_t steps_max;   // instruction executions; 0: 2^27
} clock_opts;

// One execution of an instruction.
typedef struct clock_event {
    uint32_t instr;
    uint32_t waited_for;  // instruction + 1 that it started after; 0: only its own queue
    uint8_t track;
    uint8_t cold;                         // Tensor at half clock
    uint16_t table;                       // ns of a function table load before it
    uint32_t from;                        // event + 1 of waited_for, when kept
    int64_t wait_ps;                      // its queue stood still this long for it
    int64_t start_ps, issued_ps, end_ps;  // DMA: issued_ps is when the first byte moves
} clock_event;

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

typedef struct clock_result {
    int64_t end_ps;    // of the last instruction
    int64_t body_ps;   // from the first DMA trigger to the last completion
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
    track_time track[TRACK_COUNT];
    instr_time *of;  // of each instruction
    VEC(clock_event) events;
    bool events_cut;
    const char *error;  // a sentence in mem: a loop of unknown length, or too many steps
    uint32_t error_instr;
} clock_result;

// Requires: every tensor placed. false: r->error says why. Time: linear in executed instructions.
bool clock_run(arena *mem, const ir *p, const clock_opts *opts, clock_result *r);

#endif
