// Scheduled programs on the device: the results of the program's order in every order that queues
// and semaphores allow, also when arguments share memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "neff/neff.h"
#include "runtime/kernel.h"
#include "sched/linearise.h"
#include "sched/verify_schedule.h"

#include <nki/nki.h>
#include <nki/profile.h>
#include <nki/tool.h>

#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "import nki\n"                                                                                 \
    "import nki.isa as nisa\n"                                                                     \
    "import nki.language as nl\n"                                                                  \
    "def tile():\n"                                                                                \
    "    return nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)\n"                            \
    "@nki.jit\n"

// Reads y again after x was changed: with one tensor for both the second load sees the change.
static const char changes[] =
    HEAD "def k(x, y):\n"
         "    out = nl.ndarray((24, 8), dtype=x.dtype, "
         "buffer=nl.shared_hbm)\n"
         "    for i in range(6):\n"
         "        a, b, c = tile(), tile(), tile()\n"
         "        nisa.dma_copy(dst=a, src=x[4 * i:4 * i + 4, :])\n"
         "        nisa.dma_copy(dst=b, src=y[4 * i:4 * i + 4, :])\n"
         "        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)\n"
         "        nisa.dma_copy(dst=x[4 * i:4 * i + 4, :], src=a)\n"
         "        nisa.dma_copy(dst=c, src=y[4 * i:4 * i + 4, :])\n"
         "        nisa.tensor_tensor(dst=c, data1=a, data2=c, "
         "op=nl.multiply)\n"
         "        nisa.dma_copy(dst=out[4 * i:4 * i + 4, :], src=c)\n"
         "    return out\n";

static const char reads[] = HEAD "def k(x, y):\n"
                                 "    out = nl.ndarray((24, 8), dtype=x.dtype, "
                                 "buffer=nl.shared_hbm)\n"
                                 "    for i in range(6):\n"
                                 "        a, b = tile(), tile()\n"
                                 "        nisa.dma_copy(dst=a, src=x[4 * i:4 * i + 4, :])\n"
                                 "        nisa.dma_copy(dst=b, src=y[20 - 4 * i:24 - 4 * i, :])\n"
                                 "        nisa.tensor_tensor(dst=a, data1=a, data2=b, "
                                 "op=nl.subtract)\n"
                                 "        nisa.dma_copy(dst=out[4 * i:4 * i + 4, :], src=a)\n"
                                 "    return out\n";

enum { ROWS = 24, COLS = 8, ELEMS = ROWS * COLS, ORDERS = 12 };

typedef struct results {
    float x[ELEMS], y[ELEMS], out[ELEMS];
} results;

static nki_kernel *compile_it(nki_context *ctx, const char *text, nki_schedule order)
{
    nki_compile_opts o = NKI_COMPILE_OPTS_INIT;
    o.schedule = order;
    o.verify = 1;
    nki_tensor_info t = {.dtype = NKI_FLOAT32, .ndim = 2, .shape = {ROWS, COLS}};
    nki_arg args[] = {{.name = "x", .spec = &t}, {.name = "y", .spec = &t}};
    nki_kernel *k = NULL;
    nki_source src = {"k.nki", text, strlen(text)};
    nki_status st = nki_kernel_compile(ctx, &src, NULL, args, 2, &o, NULL, &k);
    assert_string_equal(st == NKI_OK ? "" : nki_context_error(ctx), "");
    return k;
}

static nki_tensor *fresh(nki_context *ctx, int seed)
{
    nki_tensor *t = NULL;
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 2, (size_t[]){ROWS, COLS}, &t), NKI_OK);
    for (int i = 0; i < ELEMS; i++) {
        ((float *)nki_tensor_data(t))[i] = (float)((i * 37 + seed * 11) % 101) / 7;
    }
    return t;
}

// shared: one tensor is both x and y.
static void call_it(nki_kernel *k, bool shared, results *r)
{
    nki_tensor *x = fresh(k->ctx, 1), *y = shared ? nki_tensor_retain(x) : fresh(k->ctx, 2);
    nki_tensor *out = NULL;
    nki_arg args[] = {{.name = "x", .tensor = x}, {.name = "y", .tensor = y}};
    nki_status st = nki_kernel_call(k, args, 2, &out, 1, NULL, NULL);
    assert_string_equal(st == NKI_OK ? "" : nki_context_error(k->ctx), "");
    memcpy(r->x, nki_tensor_data(x), sizeof r->x);
    memcpy(r->y, nki_tensor_data(y), sizeof r->y);
    memcpy(r->out, nki_tensor_data(out), sizeof r->out);
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_tensor_release(out);
}

static void same_in_every_order(const char *text, uint32_t threads)
{
    nki_context_opts co = NKI_CONTEXT_OPTS_INIT;
    co.threads = threads;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(&co, &ctx, NULL), NKI_OK);
    static results want[2], got;
    for (int list = 0; list < 2; list++) {
        nki_kernel *k = compile_it(ctx, text, list ? NKI_SCHEDULE_LIST : NKI_SCHEDULE_PROGRAM);
        for (int shared = 0; shared < 2; shared++) {
            call_it(k, shared, list ? &got : &want[shared]);
            if (list) {
                assert_memory_equal(&got, &want[shared], sizeof got);
            }
        }
        for (uint64_t seed = 0; seed < ORDERS; seed++) {
            assert_int_equal(nki_tool_reorder(k, seed), NKI_OK);
            for (int shared = 0; shared < 2; shared++) {
                call_it(k, shared, &got);
                assert_memory_equal(&got, &want[shared], sizeof got);
            }
        }
        nki_kernel_release(k);
    }
    assert_memory_not_equal(&want[0], &want[1], sizeof *want);
    nki_context_release(ctx);
}

static void schedules__a_parameter_that_is_written(void **state)
{
    (void)state;
    same_in_every_order(changes, 1);
    same_in_every_order(changes, 4);
}

static void schedules__parameters_that_are_read(void **state)
{
    (void)state;
    same_in_every_order(reads, 1);
    same_in_every_order(reads, 4);
}

// What the others rely on: the orders are others, and one that ignores the waits is seen.
static void schedules__the_orders_are_others(void **state)
{
    (void)state;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    nki_kernel *k = compile_it(ctx, changes, NKI_SCHEDULE_PROGRAM);
    program *pr = k->core[0].pr;
    arena mem;
    jmp_buf oom;
    arena_init(&mem, 0, &oom);
    uint32_t n = pr->ir->instrs.n, *order = NEW_N(&mem, uint32_t, n), moved = 0;
    for (uint64_t seed = 0; seed < ORDERS; seed++) {
        assert_true(sched_linearise(pr, &mem, seed, order));
        uint32_t before = moved;
        for (uint32_t i = 0; i < n && moved == before; i++) {
            moved += order[i] != i;
        }
    }
    assert_true(moved > ORDERS / 2);
    results want, got;
    call_it(k, false, &want);
    // Without waits: the same streams, but nothing holds them.
    program loose = *pr;
    loose.slots.at = NEW_N(&mem, queue_slot, pr->slots.n);
    for (uint32_t i = 0; i < pr->slots.n; i++) {
        loose.slots.at[i] = (queue_slot){pr->slots.at[i].instr, 0, 0};
    }
    assert_non_null(schedule_verify(&loose, &mem));
    k->core[0].pr = &loose;
    bool differs = false;
    for (uint64_t seed = 0; seed < ORDERS && !differs; seed++) {
        assert_int_equal(nki_tool_reorder(k, seed), NKI_OK);
        call_it(k, false, &got);
        differs = memcmp(&got, &want, sizeof got) != 0;
    }
    assert_true(differs);
    k->core[0].pr = pr;
    nki_kernel_release(k);
    nki_context_release(ctx);
    arena_fini(&mem);
}

// A container whose checksums hold but whose waits were taken out.
static void schedules__a_file_without_its_waits_is_refused(void **state)
{
    (void)state;
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    nki_kernel *k = compile_it(ctx, changes, NKI_SCHEDULE_LIST), *back = NULL;
    size_t len = 0;
    const void *bytes = nki_kernel_neff(k, &len);
    assert_int_equal(nki_kernel_load(ctx, bytes, len, &back), NKI_OK);
    nki_kernel_release(back);
    program loose = *k->core[0].pr;
    queue_slot slots[256];
    assert_true(loose.slots.n <= 256);
    for (uint32_t i = 0; i < loose.slots.n; i++) {
        slots[i] = (queue_slot){loose.slots.at[i].instr, 0, 0};
    }
    loose.slots.at = slots;
    unsigned char *bad = neff_write(&loose, &len);
    assert_non_null(bad);
    // It loads, since it runs in the written order; what relies on the schedule refuses it.
    nki_profile *profile = NULL;
    assert_int_equal(nki_kernel_load(ctx, bad, len, &back), NKI_OK);
    assert_int_equal(nki_kernel_verify(k), NKI_OK);
    assert_int_equal(nki_kernel_verify(back), NKI_ERR_FORMAT);
    assert_non_null(strstr(nki_context_error(ctx), "schedule is not sound"));
    assert_int_equal(nki_tool_reorder(back, 1), NKI_ERR_FORMAT);
    assert_int_equal(nki_profile_create(back, NULL, &profile), NKI_ERR_FORMAT);
    assert_null(profile);
    nki_kernel_release(back);
    setenv("NKI_VERIFY", "1", 1);
    assert_int_equal(nki_kernel_load(ctx, bad, len, &back), NKI_ERR_FORMAT);
    unsetenv("NKI_VERIFY");
    assert_null(back);
    free(bad);
    nki_kernel_release(k);
    nki_context_release(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules__a_parameter_that_is_written),
        cmocka_unit_test(schedules__parameters_that_are_read),
        cmocka_unit_test(schedules__the_orders_are_others),
        cmocka_unit_test(schedules__a_file_without_its_waits_is_refused),
    };
    return cmocka_run_group_tests_name("runtime.schedules", tests, NULL, NULL);
}
