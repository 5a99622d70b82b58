#ifndef DEVICE_INTERNAL_H
#define DEVICE_INTERNAL_H

#include "device/device.h"
#include "device/kern.h"

// What the files of device/ share.

// Where an operand's bytes are: index into exec.base. After the parameters come the outputs that
// lie in the caller's memory.
enum { BASE_SBUF, BASE_PSUM, BASE_HBM, BASE_STAGE, BASE_PARAM0 };
enum { BASE_ROWS = INT32_MAX };  // what a run of lanes.c keeps for the rows at hand; not in exec.base
enum { PARTS = 128, FREE_DIMS = 7, CHUNK = 4096, MAX_OPNDS = 20 };

// An access pattern in bytes, without its start. Shared by all views of the same ap and item size.
typedef struct layout {
    uint32_t parts;  // count of dimension 0
    uint32_t ndim;   // further dimensions, neighbours merged; 0 when n is 1
    int64_t step0;   // dimension 0: bytes in HBM, partitions on chip
    uint64_t n;      // elements of one index of dimension 0
    int64_t lo, hi;  // bytes that one index touches: [lo, hi) from its start
    bool contig;     // n adjacent elements
    struct {
        uint32_t count;
        int64_t stride;
    } dim[FREE_DIMS];
} layout;

typedef struct opnd {
    int64_t offset;  // bytes from the base
    int64_t ps;      // bytes from one index of dimension 0 to the next
    const layout *l;
    uint32_t base;
    uint32_t view;  // in ir->views; for messages
    uint32_t dyn;   // in ir->dyns, IR_NONE: fixed
    uint8_t dtype, size;
    uint8_t param;   // parameter of the instruction
    uint8_t late;    // the instruction adds the dynamic part itself
    uint32_t index;  // dyn with a view: number of its opnd in device_program.index
    uint32_t parts;  // of l; 0: absent
} opnd;

// An operand at run time, or some adjacent indices of its dimension 0.
typedef struct tile {
    char *p;  // NULL: absent
    int64_t ps;
    const layout *l;
    uint8_t dtype, size;
    uint32_t parts;  // of l, or fewer
} tile;

typedef struct exec exec;
typedef struct check check;
typedef struct bound bound;
typedef void (*exec_fn)(exec *x, const bound *b, const tile *t);

struct bound {
    exec_fn fn;
    exec_fn inner;  // what run_staged calls
    opnd *o;        // operands in the family's order
    const void *a;  // the family's prepared arguments
    uint32_t instr;
    uint8_t nops;
    uint8_t lane0;  // first lane, for the accumulators and generators
    uint8_t flags;  // BOUND_*
    uint8_t pad;
    uint32_t run;        // of device_program.runs, counted from 1, that begins here; 0: none
    uint32_t outs;       // operands that are written
    uint32_t stage_in;   // operands copied aside first (overlap, indirection)
    uint32_t stage_out;  // indirect destinations
};

enum {
    BOUND_STREAM = 1,  // what is written is not read again soon: past the caches
    BOUND_SKIP = 2,    // a copy that plan.c did away with
    BOUND_LANES = 4,   // uses registers of lanes lane0 and on
};

// A register or a number.
typedef struct regnum {
    bool is_reg;
    int32_t v;
} regnum;

typedef struct loop_info {
    uint32_t begin, end;  // bound indices
    bool is_while;
    regnum lower, upper;
    uint32_t reg;
    int64_t step;
    uint32_t slot;  // in exec.loops
} loop_info;

// Instructions that work row by row on the same rows (lanes.c).
typedef struct lane_run {
    uint32_t n;      // instructions
    uint32_t rows;   // of each
    uint32_t group;  // rows that stay in the cache
    uint32_t cost_ns;
    uint32_t row_bytes;  // of one row in BASE_ROWS
} lane_run;

struct device_program {
    arena mem;
    const ir *p;
    const ir *host;  // of a widened program, as it was: the types of host memory; else NULL
    bound *code;
    uint32_t ncode;
    opnd *index;  // operands of dynamic parts
    uint32_t nindex;
    opnd *out;  // returned views
    uint32_t nout;
    uint32_t *direct;     // of each tensor: the base of the output that it is, or 0
    bound *fast;          // the code without the copies that plan.c did away with; NULL: none
    lane_run *runs;       // of fast
    uint32_t nruns;
    uint8_t *param_used;  // PARAM_* of each parameter
    uint32_t nloops;
    uint64_t hbm_bytes;
    uint64_t stage_bytes;
    struct hbm_const {
        uint64_t at, data, size;
    } * consts;
    uint32_t nconsts;
    uint32_t *shared;  // tensors in HBM that all programs of the launch see; their bases follow
    uint32_t nshared;  // those of the parameters
};

// The base of output i when the kernel makes it in the caller's memory.
static inline uint32_t direct_base(const device_program *dp, uint32_t i)
{
    return BASE_PARAM0 + dp->p->params.n + dp->nshared + i;
}

enum { PARAM_READ = 1, PARAM_WRITTEN = 2 };

typedef struct loop_state {
    int64_t next, upper;
    uint64_t trips;
} loop_state;

// Generators of one lane.
typedef struct rng_lane {
    uint32_t lfsr;
    uint32_t vector[24];  // four XORWOW: x y z w v d; element i of an instruction: of i mod 4
    uint32_t gpsimd[6];
} rng_lane;

enum { SLOT_ROWS = 4, SLOT_PACKED, SLOTS };  // the first four are the families'

// Where an instruction puts things aside; each thread of a run has one.
typedef struct workspace {
    _Alignas(64) float buf[4][CHUNK];  // vectors in it do not cross cache lines
    uint32_t raw[3][CHUNK];
    float part[PARTS][16];  // partial results of the rows of a chunk
    float scal[6][PARTS];
    char *slot[SLOTS];
    size_t slot_cap[SLOTS];
} workspace;

struct device_core {
    const target *t;
    char *sbuf, *psum;
    size_t sbuf_map, psum_map;
    char *wide_sbuf, *wide_psum;  // of widened programs; NULL until one runs
    size_t wide_sbuf_cap, wide_psum_cap;
    char *hbm, *shared;
    size_t hbm_cap, shared_cap;
    char *stage;
    size_t stage_cap;
    struct shadow *shadow[2];  // of sbuf and psum, made by the first run with checks
    float acc[2][PARTS];  // accumulator registers: Vector, Scalar
    rng_lane rng[PARTS];
    uint32_t rank;      // in the launch
    uint32_t rng_seed;  // of this run
    bool rng_ready;     // rng holds the states
    int32_t *regs;
    uint32_t regs_cap;
    loop_state *loops;
    uint32_t loops_cap;
    char **base;
    uint32_t base_cap;
    workspace s;  // of the thread that runs it
};
enum { ACC_VECTOR, ACC_SCALAR };

// What a core waits for the other with (cores.c).
typedef struct sync_point {
    const bound *b;
    bool barrier;
    int64_t send_to, recv_from;  // ranks
    int64_t pipe;
    const char *sent;  // the source, packed
    tile dst;
} sync_point;

enum { EXEC_WAITS = -1 };  // exec.status: at exec.sync, to be resumed

struct exec {
    device_core *core;
    workspace *s;
    const device_program *dp;
    const bound *code;
    const kernels *k;
    char **base;
    int32_t *regs;
    const device_run_opts *opts;
    diags *ds;
    uint32_t row0;  // first row of the tiles at hand, among those of the instruction (lanes.c)
    uint32_t ip;
    uint32_t steps;  // instructions since the clock was first of interest
    check *check;    // NULL: no run-time checks
    int status;      // nki_status or EXEC_WAITS; not NKI_OK: run_code returns
    sync_point sync;
};

static inline tile exec_tile(const exec *x, const opnd *o)
{
    return (tile){o->l ? x->base[o->base] + o->offset : NULL, o->ps, o->l, o->dtype, o->size,
                  o->parts};
}

// ---- binding (bind.c)

enum { BIND_ARGS_BYTES = 2048 };

typedef struct binder {
    device_program *dp;
    const ir *p;
    const ir_instr *in;
    const isa_info *info;
    bound *b;
    opnd o[MAX_OPNDS];
    bool is_out[MAX_OPNDS];
    uint32_t n;
    const char *err;
    uint32_t *shared_of;     // by tensor: its number in device_program.shared
    const layout **layouts;  // by ap and log2 of the item size, made when first met
    opnd *index;
    uint32_t nindex, index_cap;
    // Prepared arguments of the instruction that is being bound: equal ones of one program are one.
    _Alignas(max_align_t) unsigned char args[BIND_ARGS_BYTES];
    size_t args_size;  // 0: not used yet
    struct bind_memo *args_memo;
    struct bind_memo *instr_memo;
    arena scratch;
} binder;

// Cleared prepared arguments, good until the instruction is bound.
void *bind_args(binder *b, size_t size);
#define BIND_ARGS(b, T) ((T *)bind_args((b), sizeof(T)))

bool bind_fail(binder *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
ir_arg bind_arg(const binder *b, uint32_t param);
// Appends the operand; its number, or -1 with an error. An absent one (IRA_NONE) is a NULL tile.
int bind_operand(binder *b, uint32_t param, bool out);
int bind_view(binder *b, uint32_t view, uint32_t param, bool out);
bool bind_has(const binder *b, uint32_t param);  // a view
regnum bind_reg(const binder *b, ir_arg a);
// Copies operands into the bound instruction. same_ok: a source that is exactly the destination
// needs no copy (element by element).
bool bind_done(binder *b, exec_fn fn, const void *args, bool same_ok);
bool bind_same_shape(binder *b, int x, int y);  // equal parts and n, else an error
bool bind_computes(binder *b, int o);           // not a packed type

typedef bool (*bind_fn)(binder *b);
extern const bind_fn bind_table[ISA_COUNT];

bool bind_tensor_tensor(binder *b);
bool bind_tensor_scalar(binder *b);
bool bind_scalar_tensor_tensor(binder *b);
bool bind_tensor_scalar_reduce(binder *b);
bool bind_reciprocal(binder *b);
bool bind_activation(binder *b);
bool bind_activation_reduce(binder *b);
bool bind_activate2(binder *b);
bool bind_exponential(binder *b);
bool bind_range_select(binder *b);
bool bind_select_reduce(binder *b);
bool bind_tensor_copy(binder *b);
bool bind_tensor_copy_predicated(binder *b);
bool bind_memset(binder *b);
bool bind_fill_uninit(binder *b);
bool bind_iota(binder *b);
bool bind_affine_select(binder *b);
bool bind_tensor_scalar_cumulative(binder *b);
bool bind_tensor_tensor_scan(binder *b);
bool bind_tensor_reduce(binder *b);
bool bind_tensor_partition_reduce(binder *b);
bool bind_bn_stats(binder *b);
bool bind_bn_aggr(binder *b);
bool bind_nc_matmul(binder *b);
bool bind_nc_transpose(binder *b);
bool bind_nc_stream_shuffle(binder *b);
bool bind_local_gather(binder *b);
bool bind_nc_n_gather(binder *b);
bool bind_sequence_bounds(binder *b);
bool bind_nonzero_with_count(binder *b);
bool bind_topk(binder *b);
bool bind_max8(binder *b);
bool bind_nc_find_index8(binder *b);
bool bind_nc_match_replace8(binder *b);
bool bind_dropout(binder *b);
bool bind_rng(binder *b);
bool bind_rand2(binder *b);
bool bind_set_rng_seed(binder *b);
bool bind_rand_set_state(binder *b);
bool bind_rand_get_state(binder *b);
bool bind_quantize_mx(binder *b);
bool bind_nc_matmul_mx(binder *b);
bool bind_core_barrier(binder *b);
bool bind_sendrecv(binder *b);
bool bind_dma_copy(binder *b);
bool bind_dma_transpose(binder *b);
bool bind_dma_compute(binder *b);
bool bind_register_alloc(binder *b);
bool bind_register_move(binder *b);
bool bind_register_load(binder *b);
bool bind_register_store(binder *b);
bool bind_loops(binder *b);  // after all instructions: matches begins and ends
bool bind_loop_for(binder *b);
bool bind_loop_while(binder *b);
bool bind_loop_end(binder *b);
bool bind_device_print(binder *b);
bool bind_host_call(binder *b);
bool bind_collective(binder *b);

// Bytes [lo, hi) of a partition and partitions [p0, p1); in HBM one interval.
typedef struct region {
    uint32_t base;
    int64_t lo, hi;
    int64_t p0, p1;
} region;
region region_of(const ir *p, const opnd *o);

// What an instruction does with its operands (plan.c). None of the bits: it may look at anything.
enum {
    KNOWN = 1,    // touches its operands and indices, nothing else of the memories
    VIEWS = 2,    // reads its sources as tiles, wherever they are
    FULL = 4,     // writes all of its destinations, reads none of them
    ROWWISE = 8,  // row r of a destination depends on row r of each source, and on lane r, alone
};
extern const uint8_t instr_classes[ISA_COUNT];

// Operand k of instruction `at`.
typedef struct ref {
    uint32_t at, k;
    struct ref *next;
} ref;
// A result on chip that only refs read, as rows.
typedef struct passing {
    uint32_t at, k;
    ref *refs;  // latest first
} passing;
// Whether it is worth a passing. refs: latest first.
bool lanes_may_keep(const region *r, uint32_t at, const ref *refs);
// Finds the runs of dp->fast, and what of `results` never leaves one (lanes.c).
void plan_lanes(device_program *dp, passing *results, uint32_t n, arena *scratch);
// Runs the one that begins with b; its instructions.
uint32_t run_lanes(exec *x, const bound *b);

// Does away with copies that only stage data (plan.c): fills dp->fast and dp->param_used.
// What is needed meanwhile comes from scratch.
void plan_copies(device_program *dp, arena *scratch);
// Of a dma_copy whose ends are rows of equal length, each adjacent bytes: the number of rows, their
// length and strides (dma.c). false: it is not.
typedef struct dma_rows {
    uint64_t nrows;
    int64_t row_bytes, d, s;  // strides
} dma_rows;
bool dma_as_rows(const bound *b, dma_rows *out);
// Whether it moves row by row, and no row of the source is another of the destination.
bool dma_is_rowwise(const bound *b);
// The arguments of a dma_copy for other ends of the same shapes. NULL: not possible.
const void *dma_retarget(arena *mem, const bound *b, const opnd *d, const opnd *s);
// The start of row i of an operand, whose dynamic part may be added row by row. NULL: out of
// bounds, reported unless skip.
char *dma_row_at(exec *x, const bound *b, const opnd *o, const tile *t, uint32_t i, bool skip);
// Element i of row p of a gen4 indirect operand; NULL: out of bounds, not reported (stage.c).
char *indirect_element(const exec *x, const bound *b, const opnd *o, const tile *t, uint32_t p,
                       uint64_t i);

// ---- low-precision tensors as fp32 (widen.c)

// The program in which they are float32, in memory that is larger: its target and *hbm_bytes say so.
const ir *widen_program(arena *mem, const ir *p, uint64_t *hbm_bytes);
// A launch of such programs: host memory keeps its types.
nki_status launch_widened(device_core *const *cores, const device_program *const *programs,
                          uint32_t n, void *const *params, void *const *outputs,
                          const device_run_opts *opts, diags *ds);
nki_status launch_bound(device_core *const *cores, const device_program *const *programs,
                        uint32_t n, void *const *params, void *const *outputs,
                        const device_run_opts *opts, diags *ds);

// ---- running (run.c, stage.c)

void run_staged(exec *x, const bound *b, const tile *t);
void run_nothing(exec *x, const bound *b, const tile *t);
// Prepares a core for a program; shared[k]: memory of the launch's tensor k + 1. false: out of
// memory.
bool exec_begin(exec *x, void *const *params, char *const *shared, void *const *outputs);
// Runs from x->ip until the end, an error or a synchronisation point.
void run_code(exec *x);
void run_observed(exec *x);
static inline bool exec_is_watched(const exec *x)
{
    return x->opts->observer || x->opts->check;
}
// What is due after an instruction that waited for the other core.
void observe_met(exec *x, const bound *b);
// Tiles of the fixed and register-addressed operands; false: out of bounds, reported.
bool exec_operands(exec *x, const bound *b, tile *t);
// Whether the run is to end before the next instruction: the status is then why.
bool exec_interrupted(exec *x);
void copy_outputs(exec *x, void *const *outputs);
static inline int64_t regnum_get(const exec *x, regnum r)
{
    return r.is_reg ? x->regs[r.v] : r.v;
}
// Scratch of at least size bytes; NULL: out of memory (status is set). Contents last until the next
// call with this slot.
void *exec_slot(exec *x, int slot, size_t size);
void workspace_fini(workspace *s);
// Cleared memory for what contains a workspace; free() releases it. NULL: out of memory.
void *aligned_new(size_t size);
// The value of a one-element tile, or of element i of the flattened tile, as an integer.
int64_t tile_int(const exec *x, const tile *t, uint64_t i);
// The tile of a fixed or register-addressed operand; false: out of bounds, reported.
bool exec_resolve(exec *x, const bound *b, const opnd *o, tile *t);
// The value of the dynamic part of kind DYN_REG or DYN_SCALAR.
bool exec_dyn_value(exec *x, const bound *b, const opnd *o, int64_t *v);
// Records that `found` is outside lo..hi.
void exec_oob(exec *x, const bound *b, const opnd *o, const char *what, int64_t found, int64_t lo,
              int64_t hi);

// The run-time checks (check.c). All programs of a launch have begun. NULL: out of memory. Findings
// are warnings in ds.

check *check_begin(exec *x, uint32_t n, diags *ds);
void check_before(check *c, exec *x, const bound *b, const tile *t);
void check_after(check *c, exec *x, const bound *b, const tile *t);
void check_met(check *c);             // at a barrier
void check_end(check *c, bool done);  // done: the outputs are there
void check_release(check *c);
void check_core_release(device_core *core);

// device_convert with given kernels.
void convert_with(const kernels *k, void *dst, dtype dd, ptrdiff_t dst_stride_bytes,
                  const void *src, dtype sd, ptrdiff_t src_stride_bytes, size_t n);

// d = stationary^T * moving, or d plus that (matmul.c). moving gives columns [e0, e0 + n) of its rows
// as fp32; it may use SLOT_B. stationary NULL: does nothing.
typedef crows (*moving_fn)(exec *x, const void *ctx, uint64_t e0, size_t n);
void multiply(exec *x, const tile *d, crows stationary, size_t k, bool accumulate, moving_fn moving,
              const void *ctx);

// Bytes from a partition to the next.
int64_t core_sbuf_stride(const target *t);
int64_t core_psum_stride(const target *t);
bool core_reserve_hbm(device_core *c, size_t size);
// SBUF and PSUM of a widened program, of that program's target. false: out of memory.
bool core_reserve_wide(device_core *c, const target *t);
// The launch's shared memory: at least size bytes, kept by the core of rank 0. NULL: out of memory.
char *core_reserve_shared(device_core *c, size_t size);
// The bits of an uninitialised element; as many low bytes as the dtype has.
uint32_t uninit_bits(dtype d);
void rng_seed_all(device_core *c, uint32_t seed);

// ---- helping threads (pool.c)

enum {
    SHARE_NS = 6000,  // work that is worth sharing
    WAKE_NS = 30000,  // work that is worth waking someone
};
typedef void (*pool_fn)(void *ctx, uint32_t item, workspace *s);
uint32_t pool_threads(const device_pool *p);  // the caller among them
// fn for each item, on the caller, with `own`, and on helpers, in any order; all are done when it
// returns. wake: also on helpers that sleep. p NULL: on the caller.
void pool_run(device_pool *p, uint32_t items, bool wake, pool_fn fn, void *ctx, workspace *own);

// For tests: whatever can be shared is, in small items, by as many threads as are asked for. Looked
// at when programs are bound and run and when pools are made.
void pool_force(bool all);
bool pool_is_forced(void);

// ---- moving elements (move.c)

// n elements from element e0 of a row of the pattern l, packed into dst; and back.
void gather(void *dst, const char *src, const layout *l, uint64_t e0, size_t n, unsigned size);
void scatter(char *dst, const layout *l, uint64_t e0, const void *src, size_t n, unsigned size);
void copy_strided(char *dst, int64_t ds, const char *src, int64_t ss, size_t n, unsigned size);
// Rows r0.. of a tile, elements e0.. as fp32: in place when they lie so, else converted into buf
// (nrows * n floats).
crows load_rows(exec *x, const tile *t, size_t r0, size_t nrows, uint64_t e0, size_t n, float *buf);
void store_rows(exec *x, const tile *t, size_t r0, size_t nrows, uint64_t e0, size_t n, crows s);
// Zero- or sign-extended integers of row r; and the low bits back.
void load_bits(exec *x, const tile *t, size_t r, uint64_t e0, size_t n, uint32_t *buf);
void store_bits(exec *x, const tile *t, size_t r, uint64_t e0, size_t n, const uint32_t *s);
// Bits moved between tiles of equal parts, n and item size.
void copy_tile(const tile *d, const tile *s);

#endif
