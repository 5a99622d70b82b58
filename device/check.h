#ifndef DEVICE_CHECK_H
#define DEVICE_CHECK_H

#include "device/internal.h"
#include "device/shadow.h"

// The run-time checks (device_run_opts.check): what they keep beside a launch, and what the files
// check*.c share.

typedef struct finding {
    diag_id id;
    const source *src;  // with lo, hi, op and detail: what is reported once
    uint32_t lo, hi;
    uint16_t op;
    uint8_t detail;  // parameter and kind
    diag *d;
    uint64_t times;
} finding;

enum { FINDINGS_MAX = 256 };

// Bytes of memory and what they held, to be put back.
typedef struct snapshot {
    struct snapshot_piece {
        char *at;
        uint64_t len, saved;  // in bytes
    } * piece;
    uint64_t n, cap;
    char *bytes;
    uint64_t used, room;
    bool failed;  // out of memory
} snapshot;

// The first integer that a conversion changed.
typedef struct lost_int {
    bool found;
    bool read;   // on the way in; else on the way to memory
    const void *at;  // the element, where it lies in memory or in scratch
    dtype dtype;
    double value, kept;
} lost_int;

typedef struct check_core {
    exec *x;
    shadow **space;     // by base
    uint32_t nspace;
    struct tensor_state {
        shadow_who last, before;  // who wrote to it last, and who did before; 0: nobody
        bool full;         // every byte was written in this lifetime; not asked where memory is shared
        uint64_t written;  // bytes that were
    } * tensor;
} check_core;

typedef struct tensor_state tensor_state;

// What the instruction table says of an instruction as a whole.
typedef struct op_traits {
    bool accumulates;  // has a flag for it
    bool inout;        // an operand that is written in part
    bool skips;        // has an oob_mode
    bool folds;        // has a reduce_cmd: reads and writes the accumulator registers
    bool moves;        // a DMA that computes nothing: bits stay bits when the types are equal
} op_traits;

struct check {
    diags *ds;
    uint32_t n;
    check_core core[SHADOW_CORES];
    shadow *shadows;
    uint32_t nshadows;
    finding finding[FINDINGS_MAX];
    uint32_t nfindings;
    kernels k;  // the CPU's, with conversions that look
    const kernels *plain;
    snapshot writes, reads, first;
    op_traits traits[ISA_COUNT];
    // Of the instruction at hand.
    lost_int lost;
    bool watch_reads;     // integers that are read end as integers
    bool watch_floats;    // integers that end in a float type
    bool had_nan, had_inf;  // in what the instruction reads and overwrites
};

// An operand, or the index of one, of the instruction at hand.
typedef struct at_hand {
    check *c;
    exec *x;
    const bound *b;
    const opnd *o;
    tile t;
    shadow *s;
    char *mem;      // the memory that s describes
    bool index;
    shadow_who me;  // who reads or writes
    tensor_state *ts;
    const ir_tensor *tensor;
} at_hand;

at_hand check_operand(check *c, exec *x, const bound *b, const tile *t, uint32_t k);
at_hand check_index(check *c, exec *x, const bound *b, const opnd *o);
bool check_overlap(const at_hand *a, const at_hand *b);
const op_traits *check_traits(const check *c, const exec *x, const bound *b);
// What the parameter of operand k is in the table.
const isa_param *check_param(const exec *x, const bound *b, const opnd *o);
// Whether the instruction adds to what dst holds.
bool check_accumulates(const check *c, const exec *x, const bound *b);

// Calls fn for all runs of adjacent bytes of the operand, until it returns false. at: in a->mem.
typedef bool (*piece_fn)(void *ctx, uint64_t at, uint64_t len);
bool check_pieces(const at_hand *a, piece_fn fn, void *ctx);

// ---- reading and writing (check_access.c)

void check_accesses(check *c, exec *x, const bound *b, const tile *t);

// ---- values (check_value.c)

void check_watch_conversions(check *c);
void check_values_before(check *c, exec *x, const bound *b, const tile *t);
void check_values_after(check *c, exec *x, const bound *b, const tile *t);

// ---- findings (check_report.c)

// Whether this kind of finding is the first of its source place; counts it.
finding *check_first(check *c, const exec *x, const bound *b, diag_id id, uint8_t detail);
// "t[3, 17]": the element of the tensor that byte `at` of the memory belongs to. In ds->mem.
const char *check_element(const at_hand *a, uint64_t at);
// The number there; "-" where it has no value.
const char *check_value(const at_hand *a, uint64_t at);
const char *check_number(const check *c, double v);
// Adds the call chain, where the tensor comes from and who wrote it last.
void check_explain(const at_hand *a, finding *f, diag *d);
// Who wrote to the operand's tensor before the instruction at hand.
shadow_who check_writer(const at_hand *a);
void check_note_writer(const at_hand *a, diag *d, shadow_who who, const char *did);

#endif
