#ifndef SCHED_CLOCK_INTERNAL_H
#define SCHED_CLOCK_INTERNAL_H

#include "sched/clock.h"
#include "sched/live.h"
#include "sched/reach.h"
#include "sched/stream.h"

// What the files of the clock share.

#define CLOCK_NEVER INT64_MAX

// Who caused something to be late.
typedef struct culprit {
    uint32_t instr, event;  // + 1; 0: nobody, not kept
    uint16_t semaphore;
} culprit;

// A signal on its way. sum: all that its producer has added so far, this one included.
typedef struct arrival {
    uint64_t sum;
    int64_t at;
    culprit by;
} arrival;

// A semaphore. What its consumer takes off is kept apart, so that sums only grow.
typedef struct counter {
    uint64_t posted, seen;
    int64_t taken;  // by the consumer, less its credits
    int64_t seen_at;
    culprit seen_by;
    arrival *ring;  // from first, of size cap (a power of two)
    uint32_t cap, first, n;
} counter;

typedef struct open_loop {
    uint32_t slot;  // of its loop_for or loop_while
    uint32_t reg;   // counter + 1
    uint64_t left;
    int64_t value, step;
} open_loop;

typedef enum lane_state {
    LANE_READY,    // the slot at pc can start at `ready`
    LANE_BLOCKED,  // it waits for a signal that has not been given
    LANE_MEETS,    // it waits for the other core
    LANE_ENDED,
} lane_state;

// What an engine has begun and may not have written yet.
enum { PIPELINE_VIEWS = 4 };
typedef struct in_pipeline {
    culprit by;
    int64_t end;
    uint32_t n, writes[PIPELINE_VIEWS];  // views
} in_pipeline;

// A stream under way.
typedef struct lane {
    uint32_t pc, end;  // slots
    uint32_t looked;   // semaphore operations of the slot at pc that hold
    uint16_t blocked;  // by this semaphore
    uint8_t state;     // lane_state
    bool met;          // the other core is at its barrier too
    int64_t ready;     // all that the slot waits for has happened
    culprit late;      // why not earlier
    int64_t free;      // when the engine can start another
    int64_t done;      // all that was started is complete
    int64_t active_until;
    culprit last;      // the last that did work
    open_loop open[IR_MAX_LOOPS];
    uint32_t depth;
    in_pipeline recent[2];  // on an engine; the latest first
    cost c;                 // of the slot at pc
} lane;

// A transfer between its trigger and its completion, or a place in the ring that takes no time.
typedef struct transfer {
    uint32_t slot, instr;
    bool empty;           // moves nothing: a fill, the end of a loop
    bool meets, reached;  // an exchange with the other core; waits for its side
    uint16_t engines;
    uint32_t pieces;
    int64_t work, tail;
    uint64_t bytes, hbm_bytes;
    int64_t start, data, wait, issue;
    culprit late;
} transfer;

typedef struct transfers {
    transfer *ring;
    uint32_t cap, first, n;
} transfers;

typedef struct reg_value {
    bool known;
    int64_t v;
} reg_value;

typedef struct clock_core {
    const program *pr;
    const ir *p;
    clock_result *r;
    coster cs;
    objects objs;
    access_list acc;
    lane lane[STREAM_COUNT];
    transfers out[DMA_RINGS];
    counter *counters;
    // Control (clock_control.c). A loop, or a transfer of which a trace says what it moved, has a
    // number; NULL: the program has none.
    uint32_t *number;  // of each instruction: + 1
    uint32_t numbers;
    uint32_t *entry_first;         // of each number, and one more: its entries
    const control_entry **entries;
    uint32_t *entry_at;            // of each stream and number: entries used
    reg_value *reg;                // of each stream and register
    // The machine (clock_machine.c).
    int64_t unit_free[DU_COUNT];
    int64_t engine_free[16];
    int64_t port_until[ENG_COUNT];
    int64_t dma_until;
    uint8_t table;
    int64_t pe_start, pe_free, window_at, window_busy;
    bool pe_began, warm;
    unsigned busy_windows, idle_windows;
    int64_t first_dma, last_end;
} clock_core;

typedef struct sim {
    arena *mem;
    const clock_opts *opts;
    const machine *m;
    clock_core core[CLOCK_CORES];
    uint32_t n;
    int64_t hbm_until;
    uint64_t steps;  // of all cores, control included
} sim;

// ---- clock_control.c: registers, loops and traces

void clock_control_init(sim *s, clock_core *c, const control_trace *trace);
// The loop that `instr` begins, as this stream enters it now. false: c->r says why not.
bool clock_loop_enter(sim *s, clock_core *c, unsigned stream, uint32_t instr, open_loop *l);
void clock_loop_next(clock_core *c, unsigned stream, open_loop *l);
void clock_set_register(clock_core *c, unsigned stream, uint32_t instr);
// What the next execution of a transfer moves, of what it names: 0 to 1.
double clock_share_moved(clock_core *c, unsigned stream, uint32_t instr);

// ---- clock_machine.c: one instruction on the machine. They fill what e does not have yet.

void clock_run_pe(sim *s, clock_core *c, int64_t start, clock_event *e);
void clock_run_engine(sim *s, clock_core *c, unsigned engine, int64_t start, clock_event *e);
// When the unit that starts the lane's transfer can start another.
int64_t clock_unit_free(const clock_core *c, const lane *l);
void clock_run_trigger(clock_core *c, lane *l, int64_t start, transfer *t);
// Moves t's bytes. *first: when the first one moves. Returns when the last one is there.
int64_t clock_run_data(sim *s, clock_core *c, const transfer *t, int64_t *first);

#endif
