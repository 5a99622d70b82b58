#ifndef TESTS_GRID_H
#define TESTS_GRID_H

// A grid of cases for every instruction: one small program a case, its operands in some dtype, shape
// and access pattern with special values among random ones, each result compared with an interval
// that the case computes from the values (numerics_reference.h), at every CPU level.

#include "tests/unit/device_program.h"
#include "tests/unit/numerics_reference.h"

#include "device/kern.h"

// How the elements of a partition lie: element i of n.
typedef enum grid_kind {
    GRID_PLAIN,
    GRID_STEP2,
    GRID_REVERSED,
    GRID_COLUMNS,    // two dimensions, the inner one with the larger stride
    GRID_BROADCAST,  // sources only: n / m times the same m
    GRID_KINDS
} grid_kind;

// Which values a source has besides random ones: the crossing of two sources' special values.
typedef enum grid_values {
    GRID_CROSS0,
    GRID_CROSS1,
    GRID_MODERATE,  // no special values; magnitudes 2^-4 to 2^4
    GRID_SMALL,     // integers 0 to 7
} grid_values;

typedef struct side {
    const ref_format *f;
    uint32_t parts, n, width;  // width: stored elements a partition
    grid_kind kind;
    uint32_t view;
    double *v;            // source: parts * n values
    double *lo, *hi;      // destination: what the fp32 result may be, before its conversion
    bool raw;             // lo are values of the dtype, to be stored as they are
    unsigned char *host;  // parts * width elements as stored
} side;

extern prog grid_prog;
extern bool grid_all;       // the exhaustive run
extern uint32_t grid_turn;  // cases so far; what is not crossed is rotated by it

const ref_format *grid_format(dtype d);
void grid_begin(int gen);
side *grid_source(const ref_format *f, uint32_t parts, uint32_t n, grid_kind kind,
                  grid_values values);
// A source of given values.
side *grid_given(const ref_format *f, uint32_t parts, uint32_t n, const double *v);
side *grid_dest(const ref_format *f, uint32_t parts, uint32_t n, grid_kind kind);
side *grid_dest_psum(const ref_format *f, uint32_t parts, uint32_t n);
// Element i (of parts * n) of d is the fp32 value v, or within ulp units of fp32 of the exact e.
void grid_exact(side *d, size_t i, double v);
void grid_near(side *d, size_t i, long double e, double ulp);
// Records that the instruction has a case, and the operator in the role it has there.
void grid_seen(isa_id in, op_id op, unsigned role);
void grid_run(const char *what);

// Shapes in turn: one element, odd ones, all partitions, more than a chunk of the executor.
void grid_shape(uint32_t turn, uint32_t *parts, uint32_t *n);

#define GRID_EMIT(name, engine, ...)                                                               \
    (grid_seen(ISA_##name, OPR_COUNT, 0), EMIT(&grid_prog, name, engine, __VA_ARGS__))

void grid_elementwise(void **state);
void grid_functions(void **state);
void grid_bits(void **state);
void grid_selects(void **state);
void grid_folds(void **state);
void grid_scans(void **state);
void grid_statistics(void **state);
void grid_searches(void **state);
void grid_moves(void **state);
void grid_gathers(void **state);
void grid_dma(void **state);
void grid_matmul(void **state);
void grid_mx(void **state);
void grid_random(void **state);

#endif
