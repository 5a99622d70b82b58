#include "tests/unit/device_program.h"

#include "device/kern.h"

// nc_matmul_mx at its largest depth (512) with columns that fill no vector, on every CPU level.

enum { PARTS = 128, M = 6, N = 37 };

static uint32_t rng = 11;

static uint32_t next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return rng;
}

// e4m3fn codes 0x30 .. 0x3f: (1 + m / 8) * 2^-1 or 2^0, with a sign.
static double value_of(unsigned code)
{
    double v = (1 + (code & 7) / 8.0) * (code & 8 ? 1.0 : 0.5);
    return code & 128 ? -v : v;
}

static unsigned char stat[PARTS * M * 4], mov[PARTS * N * 4], ss[PARTS * M], ms[PARTS * N];
static float out[M * N];

static double expected(int m, int n)
{
    double sum = 0;
    for (int p = 0; p < PARTS; p++) {
        int row = p / 32 * 32 + p % 32 / 8;
        double scale = ldexp(1, ss[row * M + m] + ms[row * N + n] - 254);
        for (int j = 0; j < 4; j++) {
            sum += scale * value_of(stat[(p * M + m) * 4 + j]) * value_of(mov[(p * N + n) * 4 + j]);
        }
    }
    return sum;
}

static void fill(unsigned char *at, size_t n, unsigned base, unsigned mask)
{
    for (size_t i = 0; i < n; i++) {
        at[i] = (unsigned char)(base + (next() >> 7 & mask));
    }
}

static void whole_depth__is_exact(void **state)
{
    (void)state;
    fill(stat, sizeof stat, 0x30, 15);
    fill(mov, sizeof mov, 0x30, 15);
    for (size_t i = 0; i < sizeof mov; i++) {
        mov[i] |= next() & 64 ? 128 : 0;
    }
    fill(ss, sizeof ss, 126, 1);
    fill(ms, sizeof ms, 127, 1);
    static const char *const levels[] = {"portable", "avx2", "avx512"};
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        if (!kern_force(levels[l])) {
            continue;
        }
        prog g;
        prog_init(&g, 4);
        uint32_t s = prog_load(&g, DT_float8_e4m3fn_x4, PARTS, M, stat),
                 m = prog_load(&g, DT_float8_e4m3fn_x4, PARTS, N, mov),
                 sb = prog_load(&g, DT_uint8, PARTS, M, ss),
                 mb = prog_load(&g, DT_uint8, PARTS, N, ms);
        uint32_t d = prog_psum(&g, DT_float32, M, N), y = prog_sbuf(&g, DT_float32, M, N);
        ir_arg empty = prog_ints(&g, 0, NULL);
        EMIT(&g, nc_matmul_mx, ENG_TENSOR, V(d), V(s), V(m), V(sb), V(mb), empty, empty, B(0));
        EMIT(&g, tensor_copy, ENG_VECTOR, V(y), V(d), EN(0), NONE);
        prog_out(&g, y, out);
        assert_int_equal(prog_run(&g), NKI_OK);
        for (int i = 0; i < M * N; i++) {
            assert_true((double)out[i] == expected(i / N, i % N));
        }
        prog_fini(&g);
    }
    kern_force(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_depth__is_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
