// nki_tool_observe: what a step tells, what it refuses, and that a run can be ended from inside.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nki/nki.h>
#include <nki/tool.h>

#include <string.h>

static const char source[] =
    "import nki\n"
    "import nki.isa as nisa\n"
    "import nki.language as nl\n"
    "@nki.jit\n"
    "def k(x):\n"
    "    out = nl.ndarray((2, 2), dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    tile = nl.ndarray((2, 8), dtype=x.dtype, buffer=nl.sbuf)\n"
    "    nisa.dma_copy(dst=tile, src=x)\n"
    "    for i in nl.dynamic_range(0, 2):\n"
    "        nisa.dma_copy(dst=out[nl.ds(i, 1), :], src=tile[1:2, 2:8:4])\n"
    "    return out\n";

enum { LOAD, FILL, LOOP, STORE, END, INSTRS };

typedef struct seen {
    nki_kernel *k;
    int steps, stop_at;
    uint64_t trips;
    size_t row;  // of the last store's destination
} seen;

static int after(void *ctx, nki_step *s)
{
    seen *w = ctx;
    size_t instr = nki_step_instr(s, 0);
    nki_tensor *t = NULL;
    nki_step_operand o;
    nki_range r[NKI_MAX_DIMS] = {{1, 1, 1}, {2, 2, 4}};
    if (instr == LOAD) {
        // Element [1, 2] and [1, 6] of 0 .. 15.
        assert_int_equal(nki_step_operand_at(s, 0, &o), NKI_OK);
        assert_string_equal(o.param, "dst");
        assert_true(o.written && o.ndim == 2 && o.shape[1] == 8);
        assert_int_equal(nki_step_read(s, 0, o.tensor, r, &t), NKI_OK);
        const float *v = nki_tensor_data(t);
        assert_true(v[0] == 10 && v[1] == 14);
        nki_tensor_release(t);
        r[1].step = 6;  // the second would be 8, beyond the last
        assert_int_equal(nki_step_read(s, 0, o.tensor, r, &t), NKI_ERR_ARG);
        assert_int_equal(nki_step_read(s, 1, o.tensor, r, &t), NKI_ERR_ARG);
        assert_int_equal(nki_step_read(s, 0, 99, r, &t), NKI_ERR_ARG);
    } else if (instr == STORE) {
        assert_int_equal(nki_step_operand_ranges(s, 0, r), NKI_OK);
        w->row = r[0].lo;
        w->trips += nki_step_trip(s, 0, LOOP);
        assert_int_equal(nki_step_operand_ranges(s, 1, r), NKI_OK);
        assert_true(r[0].lo == 1 && r[1].lo == 2 && r[1].count == 2 && r[1].step == 4);
        assert_int_equal(nki_step_operand_read(s, 1, &t), NKI_OK);
        assert_true(((const float *)nki_tensor_data(t))[1] == 14);
        nki_tensor_release(t);
        int32_t i;
        assert_int_equal(nki_step_register(s, 0, 0, &i), NKI_OK);
        assert_int_equal((size_t)i, w->row);
        assert_int_equal(nki_step_register(s, 0, 1, &i), NKI_ERR_ARG);
    }
    return w->steps++ == w->stop_at;
}

static void steps(void **state)
{
    (void)state;
    nki_context *ctx = NULL;
    nki_context_opts co = NKI_CONTEXT_OPTS_INIT;
    nki_kernel *k = NULL;
    nki_tensor *x = NULL, *out = NULL;
    float values[16];
    for (int i = 0; i < 16; i++) {
        values[i] = (float)i;
    }
    assert_int_equal(nki_context_create(&co, &ctx, NULL), NKI_OK);
    assert_int_equal(
        nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){2, 8}, values, NKI_FLOAT32, &x),
        NKI_OK);
    nki_source src = {"k.nki", source, sizeof source - 1};
    const nki_arg arg = {.tensor = x};
    assert_int_equal(nki_kernel_compile(ctx, &src, NULL, &arg, 1, NULL, NULL, &k), NKI_OK);

    // Without running.
    nki_frame f;
    nki_loop l;
    assert_int_equal(nki_tool_instr_count(k, 0), INSTRS);
    assert_int_equal(nki_tool_instr_count(k, 1), 0);
    assert_int_equal(nki_tool_instr_frame(k, 0, STORE, 0, &f), NKI_OK);
    assert_true(f.line == 10 && f.col == 9 && strcmp(f.function, "k") == 0);
    assert_int_equal(nki_tool_instr_frame(k, 0, STORE, 1, &f), NKI_ERR_ARG);
    assert_int_equal(nki_tool_instr_loop(k, 0, STORE, 0, &l), NKI_OK);
    assert_true(l.begin == LOOP && l.end == END && l.counter == 0);
    assert_int_equal(nki_tool_instr_loop(k, 0, STORE, 1, &l), NKI_ERR_ARG);
    assert_int_equal(nki_tool_instr_loop(k, 0, LOAD, 0, &l), NKI_ERR_ARG);
    assert_int_equal(nki_tool_instr_writes(k, 0, LOOP, 0), NKI_NOWHERE);
    assert_true(nki_tool_tensor_is(k, 0, nki_tool_instr_writes(k, 0, LOAD, 0), "tile"));
    assert_true(nki_tool_tensor_is(k, 0, nki_tool_instr_writes(k, 0, STORE, 0), "out0"));

    // Running: twice round the loop, rows 0 and 1.
    seen w = {.k = k, .stop_at = -1};
    assert_int_equal(nki_tool_observe(k, NULL, after, NULL, &w), NKI_OK);
    assert_int_equal(nki_kernel_call(k, &arg, 1, &out, 1, NULL, NULL), NKI_OK);
    assert_int_equal(w.steps, LOOP + 1 + 2 * 2);
    assert_int_equal(w.trips, 1 + 2);
    assert_int_equal(w.row, 1);
    nki_tensor_release(out);
    // Ended from inside; then without an observer.
    seen early = {.k = k, .stop_at = 1};
    assert_int_equal(nki_tool_observe(k, NULL, after, NULL, &early), NKI_OK);
    assert_int_equal(nki_kernel_call(k, &arg, 1, &out, 1, NULL, NULL), NKI_ERR_CANCELLED);
    assert_int_equal(early.steps, 2);
    assert_int_equal(nki_tool_observe(k, NULL, NULL, NULL, NULL), NKI_OK);
    assert_int_equal(nki_kernel_call(k, &arg, 1, &out, 1, NULL, NULL), NKI_OK);
    assert_true(((const float *)nki_tensor_data(out))[3] == 14);
    nki_tensor_release(out);
    nki_tensor_release(x);
    nki_kernel_release(k);
    nki_context_release(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
