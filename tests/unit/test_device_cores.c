#include "tests/unit/device_program.h"

// device_launch: two programs built by hand. What kernels see of it is in tests/ops (cores_*).

enum { N = 8 };

typedef struct pair {
    prog g[2];
    float in[N], out[2 * N];
} pair;

static uint32_t shared_tensor(prog *g, uint32_t number, uint32_t rows)
{
    uint32_t t = prog_tensor(g, BUF_SHARED, DT_float32, 2, (const uint32_t[]){rows, N});
    g->p->tensors.at[t].shared = number;
    g->p->tensors.at[t].fill = 1;
    return prog_view(g, t);
}

static void setup(pair *p)
{
    memset(p, 0, sizeof *p);
    for (uint32_t r = 0; r < 2; r++) {
        prog_init(&p->g[r], 3);
        p->g[r].p->grid = 2;
        p->g[r].p->core = r;
    }
    for (int i = 0; i < N; i++) {
        p->in[i] = (float)i;
    }
}

static void fini(pair *p)
{
    prog_fini(&p->g[0]);
    prog_fini(&p->g[1]);
}

static void barrier(prog *g, uint32_t view)
{
    EMIT(g, core_barrier, ENG_GPSIMD, V(view), prog_ints(g, 2, (const int64_t[]){0, 1}), EN(3));
}

static nki_status launch(pair *p)
{
    const device_program *programs[2];
    device_core *cores[2];
    for (int r = 0; r < 2; r++) {
        const char *err = NULL;
        assert_int_equal(device_bind(&p->g[r].pr, &p->g[r].dp, &err), NKI_OK);
        programs[r] = p->g[r].dp;
        cores[r] = p->g[r].core;
    }
    return device_launch(cores, programs, 2, p->g[0].params, p->g[0].outs, NULL, &p->g[0].ds);
}

// Core r writes row r of one tensor, which the other program knows under another address.
static void programs__share_numbered_tensors(void **state)
{
    (void)state;
    pair p;
    setup(&p);
    prog_tensor(&p.g[1], BUF_HBM, DT_float32, 2, (const uint32_t[]){5, N});
    for (uint32_t r = 0; r < 2; r++) {
        prog *g = &p.g[r];
        uint32_t x = prog_param(g, DT_float32, 1, N, p.in), t = prog_sbuf(g, DT_float32, 1, N);
        uint32_t s = shared_tensor(g, 3, 2);
        prog_copy(g, t, x);
        EMIT(g, tensor_scalar, ENG_VECTOR, V(t), V(t), OP(add), F(10.0f * (float)r), B(0), NONE,
             NONE, B(0), EN(0));
        uint32_t mine = prog_ap(g, s, (int64_t)r * N, 0, 2, (const int64_t[][2]){{N, 1}, {1, N}});
        prog_copy(g, mine, t);
        prog_out(g, s, p.out);
    }
    assert_int_equal(launch(&p), NKI_OK);
    for (int i = 0; i < 2 * N; i++) {
        assert_true(p.out[i] == (float)(i % N + i / N * 10));
    }
    // Alone, or in the wrong order, they are no launch.
    prog *g = &p.g[0];
    assert_int_equal(device_run(g->core, g->dp, g->params, g->outs, NULL, &g->ds), NKI_ERR_ARG);
    device_core *cores[2] = {p.g[0].core, p.g[1].core};
    const device_program *swapped[2] = {p.g[1].dp, p.g[0].dp};
    assert_int_equal(device_launch(cores, swapped, 2, g->params, g->outs, NULL, &g->ds),
                     NKI_ERR_ARG);
    fini(&p);
}

static void shared_tensors__must_agree(void **state)
{
    (void)state;
    pair p;
    setup(&p);
    for (uint32_t r = 0; r < 2; r++) {
        shared_tensor(&p.g[r], 1, 2 + r);
    }
    assert_int_equal(launch(&p), NKI_ERR_ARG);
    fini(&p);
}

// A barrier in a loop that runs three times on one core and twice on the other.
static void cores_that_do_not_meet__are_reported(void **state)
{
    (void)state;
    pair p;
    setup(&p);
    for (uint32_t r = 0; r < 2; r++) {
        prog *g = &p.g[r];
        uint32_t s = shared_tensor(g, 1, 1);
        g->p->registers = 1;
        EMIT(g, loop_for, ENG_SYNC, R(0), I(0), I(2 + (int64_t)r), I(1));
        barrier(g, s);
        prog_emit(g, ISA_loop_end, ENG_SYNC, NULL);
    }
    assert_int_equal(launch(&p), NKI_ERR_DIAG);
    const diag *d = p.g[0].ds.first;
    assert_non_null(d);
    assert_int_equal(d->id, D_sync_mismatch);
    assert_string_equal(d->text, "core 1 waits in core_barrier, but core 0 has ended");
    fini(&p);
}

static void one_program__cannot_wait(void **state)
{
    (void)state;
    prog g;
    prog_init(&g, 3);
    barrier(&g, prog_param(&g, DT_float32, 1, 1, &g));
    const char *err = NULL;
    assert_int_equal(device_bind(&g.pr, &g.dp, &err), NKI_ERR_FORMAT);
    assert_string_equal(err, "core_barrier: the program is not one of two");
    prog_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs__share_numbered_tensors),
        cmocka_unit_test(shared_tensors__must_agree),
        cmocka_unit_test(cores_that_do_not_meet__are_reported),
        cmocka_unit_test(one_program__cannot_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
