// Placing, ordering and writing a program, by its length.
//
//   bench_sched [PROGRAM...]      tiles, sizes (of tensors), loops; default: all
//
// Prints TSV: program, order, instructions, microseconds an instruction of placement, of order and
// semaphores, of writing, of all three, and bytes of memory that the first two take; CPU time, the
// best of some runs. After each program and order: the slope of log time over log instructions, by
// least squares.
#include "neff/neff.h"
#include "sched/issue.h"
#include "sched/passes.h"
#include "sched/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZES = 4, COLS = 512, TILES = 64 };
static const uint32_t sizes[SIZES] = {1000, 10000, 100000, 1000000};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static uint32_t tensor(ir *p, buffer_kind b, tensor_role role, uint32_t rows, uint32_t cols)
{
    bool chip = buffer_on_chip(b);
    ir_tensor t = {.dtype = DT_float32, .buffer = (uint8_t)b, .role = (uint8_t)role, .ndim = 2};
    t.shape[0] = rows;
    t.shape[1] = cols;
    t.partitions = (uint16_t)(chip ? rows : 0);
    t.size_bytes = (uint64_t)cols * 4 * (chip ? 1 : rows);
    t.addr_bytes = ADDR_AUTO;
    return ir_tensor_add(p, t);
}

static ir_arg whole(ir *p, uint32_t t)
{
    return ira_view(ir_view_add(p, ir_view_whole(p, t)));
}

static void emit(ir *p, isa_id op, engine_id e, ir_arg a, ir_arg b, ir_arg c)
{
    ir_arg args[UINT8_MAX] = {a, b, c};
    if (op == ISA_tensor_tensor) {
        args[3] = ira_kind(IRA_OP, OPR_add);
    }
    ir_emit(p, op, e, args, 0, 0);
}

static void copy(ir *p, ir_arg dst, ir_arg src)
{
    emit(p, ISA_dma_copy, ENG_DMA, dst, src, ira_none());
}

// Two loads, two engines, a store: new tiles in each round, as an unrolled loop makes them.
static void round_of(ir *p, uint32_t k, uint32_t x, uint32_t y, uint32_t cols)
{
    uint32_t a = tensor(p, BUF_SBUF, ROLE_TEMP, 128, cols);
    uint32_t b = tensor(p, BUF_SBUF, ROLE_TEMP, 128, cols);
    uint32_t c = tensor(p, BUF_SBUF, ROLE_TEMP, 128, cols);
    ir_dim d[2] = {{COLS, 128, 0}, {1, cols, 0}};
    ir_view from = {.tensor = x, .ap = ir_ap_of(p, d, 2), .dtype = DT_float32};
    from.offset = (int64_t)(k % TILES) * 128 * COLS;
    ir_view to = from;
    to.tensor = y;
    copy(p, whole(p, a), ira_view(ir_view_add(p, from)));
    copy(p, whole(p, b), ira_view(ir_view_add(p, to)));
    emit(p, ISA_tensor_tensor, ENG_VECTOR, whole(p, c), whole(p, a), whole(p, b));
    emit(p, ISA_tensor_copy, k % 2 ? ENG_SCALAR : ENG_GPSIMD, whole(p, a), whole(p, c), ira_none());
    copy(p, ira_view(ir_view_add(p, to)), whole(p, a));
}

static ir *make(arena *mem, const char *name, uint32_t n)
{
    ir *p = ir_new(mem, target_find("trn2"));
    p->registers = 1;
    uint32_t x = tensor(p, BUF_HBM, ROLE_ARG, TILES * 128, COLS);
    uint32_t y = tensor(p, BUF_HBM, ROLE_ARG, TILES * 128, COLS);
    for (uint32_t k = 0; k < 2; k++) {
        p->tensors.at[k].param = k;
        vec_push(mem, &p->params, ((ir_param){ir_str(p, k ? "y" : "x", 1), k}));
    }
    bool loops = strcmp(name, "loops") == 0, many = strcmp(name, "sizes") == 0;
    for (uint32_t k = 0; p->instrs.n < n; k++) {
        if (loops && k % 4 == 0) {
            ir_arg a[4] = {ira_kind(IRA_REG, 0), ira_int(0), ira_int(4), ira_int(1)};
            ir_emit(p, ISA_loop_for, ENG_SYNC, a, 0, 0);
        }
        // Of many sizes: 500 of them, in an order that mixes large and small.
        round_of(p, k, x, y, many ? 16 + k * 347 % 497 : COLS);
        if (loops && k % 4 == 3) {
            ir_emit(p, ISA_loop_end, ENG_SYNC, NULL, 0, 0);
        }
    }
    while (loops && p->instrs.at[p->instrs.n - 1].op != ISA_loop_end) {
        ir_emit(p, ISA_loop_end, ENG_SYNC, NULL, 0, 0);
    }
    return p;
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
    ir *p = make(&mem, name, n);
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
    static const char *const all[] = {"tiles", "sizes", "loops"};
    int n = argc > 1 ? argc - 1 : 3;
    printf("program\torder\tinstructions\tplace_us\torder_us\twrite_us\tall_us\tbytes\n");
    for (int i = 0; i < n; i++) {
        const char *name = argc > 1 ? argv[i + 1] : all[i];
        measure(name, false);
        measure(name, true);
    }
    return 0;
}
