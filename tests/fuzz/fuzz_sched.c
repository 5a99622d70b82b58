// Random programs through the scheduler, in both orders: the proof of order holds, brute force
// finds no interleaving that breaks it, it survives the file, and the simulated device computes the
// same in any order that the queues and semaphores permit.
#include "device/device.h"
#include "neff/neff.h"
#include "sched/issue.h"
#include "sched/linearise.h"
#include "sched/passes.h"
#include "sched/place.h"
#include "sched/program_text.h"
#include "sched/verify_schedule.h"
#include "tests/unit/random_program.h"
#include "tests/unit/sched_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 64 * RP_WIDTH, GAMES = 6, ORDERS = 3 };

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz_sched: %s\n", what);
        abort();
    }
}

typedef struct results {
    int32_t param[RP_PARAMS][WORDS], out[WORDS];
} results;

static void run(const program *pr, results *r)
{
    // A core of its own, so that memory that nothing has written reads the same in every run.
    device_core *core = device_core_create(pr->ir->target);
    require(core != NULL, "no core");
    for (int32_t k = 0; k < WORDS; k++) {
        r->param[0][k] = k * 7 % 1001;
        r->param[1][k] = k * 11 % 997;
    }
    device_program *dp = NULL;
    const char *err = NULL;
    require(device_bind(pr, &dp, &err) == NKI_OK, err ? err : "does not bind");
    void *params[RP_PARAMS] = {r->param[0], r->param[1]}, *outs[1] = {r->out};
    require(device_run(core, dp, params, outs, NULL, NULL) == NKI_OK, "does not run");
    device_program_release(dp);
    device_core_release(core);
}

// The program with its instructions in another order.
static program reordered(arena *mem, const program *pr, const uint32_t *order)
{
    program q = *pr;
    ir *p = NEW(mem, ir);
    *p = *pr->ir;
    p->instrs.at = NEW_N(mem, ir_instr, p->instrs.n);
    for (uint32_t k = 0; k < p->instrs.n; k++) {
        p->instrs.at[k] = pr->ir->instrs.at[order[k]];
        p->instrs.at[k].deps = IR_NONE;
    }
    q.ir = p;
    return q;
}

static const char *text_of(arena *mem, const program *pr)
{
    program q = *pr;
    textbuf t;
    q.pairs_exact = q.pairs_conservative = 0;  // not in the file
    text_init(&t, mem);
    program_print(&q, &t);
    return t.at;
}

// The file carries the schedule.
static void through_file(arena *mem, const program *pr)
{
    size_t len = 0;
    unsigned char *bytes = neff_write(pr, &len);
    require(bytes != NULL, "not written");
    program *back = NULL;
    const char *err = NULL;
    require(neff_read(mem, bytes, len, &back, &err) == NKI_OK, err ? err : "not read");
    require(strcmp(text_of(mem, pr), text_of(mem, back)) == 0, "the file has another schedule");
    require(!schedule_verify(back, mem), "what was read is not ordered");
    free(bytes);
}

// The same with half the SBUF that it needs.
static void through_spills(arena *mem, chooser c, uint32_t n, uint64_t budget, const results *first)
{
    ir *p = random_program_make(mem, c, n);
    liveness lv = {0};
    spill_report report = {0};
    access_table acc;
    access_table_make(mem, p, &acc);
    live_compute(mem, p, &acc, &lv);
    if (!spill_sbuf(mem, p, &lv, budget, &report)) {
        require(report.needs_bytes > 0, "no reason why nothing can be spilled");
        return;
    }
    if (!report.tensors.n) {
        return;
    }
    const char *why = ir_verify(p, mem);
    require(!why, why);
    diags ds;
    diags_init(&ds, mem);
    program *pr = schedule(mem, p, NULL, &ds);
    require(pr != NULL, "does not fit after spills");
    why = schedule_verify(pr, mem);
    require(!why, why);
    results *again = NEW(mem, results);
    run(pr, again);
    require(memcmp(first, again, sizeof *first) == 0, "spills change the result");
}

static void pass_through(const uint8_t *data, size_t size, arena *mem)
{
    chooser c = {data, data + size, size};
    ir *p = random_program_make(mem, c, 12 + (uint32_t)(size % 40));
    require(!ir_verify(p, mem), "the random program is not sound");
    diags ds;
    diags_init(&ds, mem);
    program *pr = schedule(mem, p, NULL, &ds);
    require(!pr == (ds.errors != 0), "refused without a reason");
    if (!pr) {
        return;
    }
    results *first = NEW(mem, results), *again = NEW(mem, results);
    run(pr, first);
    through_spills(mem, c, 12 + (uint32_t)(size % 40), pr->sbuf_peak_bytes / 2, first);
    uint32_t *order = NEW_N(mem, uint32_t, p->instrs.n);
    for (int list = 0; list < 2; list++) {
        schedule_streams(mem, pr, &(sched_opts){.list = list});
        const char *why = schedule_verify(pr, mem);
        require(!why, why);
        through_file(mem, pr);
        oracle *o = oracle_new(mem, pr);
        for (uint64_t k = 0; k < GAMES; k++) {
            why = oracle_play(o, mem, k * 31 + size);
            require(!why, why);
        }
        for (uint64_t k = 0; k < ORDERS; k++) {
            require(sched_linearise(pr, mem, k + size, order), "the queues stop");
            program q = reordered(mem, pr, order);
            run(&q, again);
            require(memcmp(first, again, sizeof *first) == 0, "another order, another result");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena mem;
    jmp_buf oom;
    arena_init(&mem, (size_t)512 << 20, &oom);
    if (!setjmp(oom)) {
        pass_through(data, size, &mem);
    }
    arena_fini(&mem);
    return 0;
}
