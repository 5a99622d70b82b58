// Placing, ordering and writing a program, by its length.
//
//   bench_sched [PROGRAM...]      tiles, sizes (of tensors), loops, columns (of a matrix); default: all
//
// Prints TSV: program, order, instructions, microseconds an instruction of placement, of order and
// semaphores, of writing, of all three, and bytes of memory that the first two take; CPU time, the
// best of some runs. After each program and order: the slope of log time over log instructions, by
// least squares.
#include "neff/neff.h"
#include "sched/issue.h"
#include "sched/passes.h"
#include "sched/place.h"
#include "tests/support/long_program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZES = 4 };
static const uint32_t sizes[SIZES] = {1000, 10000, 100000, 1000000};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

typedef struct sample {
    double place, order, write;
    double bytes;
    uint32_t instrs;
} sample;

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "bench_sched: %s\n", what);
        exit(1);
    }
}

static sample run(const char *name, bool list, uint32_t n)
{
    arena mem;
    jmp_buf oom;
    arena_init(&mem, 0, &oom);
    must(!setjmp(oom), "out of memory");
    ir *p = long_program(&mem, name, n);
    const char *why = ir_verify(p, &mem);
    must(!why, why);
    diags ds;
    diags_init(&ds, &mem);
    sample s = {.instrs = p->instrs.n};
    double start = now_us(), used = (double)mem.used_bytes;
    program *pr = NEW(&mem, program);
    pr->ir = p;
    arena *scratch = arena_scratch(&mem);
    digest dg;
    liveness lv;
    forget_addresses(p);
    digest_make(scratch, pr, &dg);
    live_compute(scratch, p, &dg.acc, &lv);
    must(place_tensors(scratch, pr, &lv, &dg, &ds), "does not fit");
    insert_fills(scratch, p, &lv);
    double placed = now_us();
    order_streams(scratch, pr, &dg, &(sched_opts){.list = list});
    arena_drop(scratch);
    double ordered = now_us();
    size_t len = 0;
    unsigned char *bytes = neff_write(pr, &len);
    must(bytes != NULL, "not written");
    s.place = placed - start;
    s.order = ordered - placed;
    s.write = now_us() - ordered;
    s.bytes = (double)mem.peak_bytes - used;
    free(bytes);
    arena_fini(&mem);
    return s;
}

static void measure(const char *name, bool list)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int k = 0; k < SIZES; k++) {
        sample best = {0};
        double least = INFINITY;
        for (int r = 0; r < (k < 2 ? 9 : 3); r++) {
            sample s = run(name, list, sizes[k]);
            double all = s.place + s.order + s.write;
            if (all < least) {
                least = all;
                best = s;
            }
        }
        double n = best.instrs, x = log(n), y = log(least);
        printf("%s\t%s\t%.0f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\n", name, list ? "list" : "program", n,
               best.place / n, best.order / n, best.write / n, least / n, best.bytes / n);
        fflush(stdout);
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    printf("%s\t%s\tslope\t%.3f\n", name, list ? "list" : "program",
           (SIZES * sxy - sx * sy) / (SIZES * sxx - sx * sx));
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? argc - 1 : LONG_PROGRAMS;
    printf("program\torder\tinstructions\tplace_us\torder_us\twrite_us\tall_us\tbytes\n");
    for (int i = 0; i < n; i++) {
        const char *name = argc > 1 ? argv[i + 1] : long_programs[i];
        measure(name, false);
        measure(name, true);
    }
    return 0;
}
