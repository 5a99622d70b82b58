// Runs every file of examples/ through the `nki` tool and compares with its formula.
//
//   examples_test NKI EXAMPLES_DIR [only-formulas]
//
// Each example has a comfortable shape and a ragged one. Further tests: its `# try:` line works as
// it stands, and a wrong call is refused with the example's own message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/examples/formulas.h"
#include "tests/examples/tool.h"

enum { ARGS_MAX = 5, CASES_MAX = 160 };

enum fill {
    FILL_NONE,     // no more arguments
    FILL_UNIFORM,  // lo <= v < hi
    FILL_INDEX,    // integers, lo <= v < hi
    FILL_SHUFFLE,  // 0 .. count - 1 in some order
    FILL_NUMBER,   // not a tensor: the number lo
    FILL_OPTION,   // not an argument of the kernel: the option `name`, with the number lo
};

struct arg {
    const char *name;
    enum fill fill;
    double lo, hi;
    const char *dtype;
    size_t rank;
    size_t dims[3];
};

struct example {
    const char *label;
    const char *file;
    const char *kernel;
    struct arg args[ARGS_MAX];
    formula_fn *formula;
    judge_fn *judge;
    double rtol, atol;    // for all results
    const char *refusal;  // not NULL: exit status 1, and standard error holds this
};

#define MAT(name, dt, r, c)                                                                        \
    {                                                                                              \
        name, FILL_UNIFORM, -1.0, 1.0, dt, 2,                                                      \
        {                                                                                          \
            r, c, 0                                                                                \
        }                                                                                          \
    }
#define POS(name, lo, hi, r, c)                                                                    \
    {                                                                                              \
        name, FILL_UNIFORM, lo, hi, "float32", 2,                                                  \
        {                                                                                          \
            r, c, 0                                                                                \
        }                                                                                          \
    }
#define VEC(name, dt, lo, hi, n)                                                                   \
    {                                                                                              \
        name, FILL_UNIFORM, lo, hi, dt, 1,                                                         \
        {                                                                                          \
            n, 0, 0                                                                                \
        }                                                                                          \
    }
#define CUBE(name, dt, a, b, c)                                                                    \
    {                                                                                              \
        name, FILL_UNIFORM, -1.0, 1.0, dt, 3,                                                      \
        {                                                                                          \
            a, b, c                                                                                \
        }                                                                                          \
    }
#define NUM(name, v)                                                                               \
    {                                                                                              \
        name, FILL_NUMBER, v, 0.0, "number", 0,                                                    \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }
#define OPTION(name, v)                                                                            \
    {                                                                                              \
        name, FILL_OPTION, v, 0.0, "number", 0,                                                    \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }
#define INT1(name, dt, v)                                                                          \
    {                                                                                              \
        name, FILL_INDEX, v, (v) + 1, dt, 2,                                                       \
        {                                                                                          \
            1, 1, 0                                                                                \
        }                                                                                          \
    }
#define MATMUL(label, file, kernel, dt, k, m, n, rtol)                                             \
    {                                                                                              \
        label, file, kernel, {MAT("lhs_t", dt, k, m), MAT("rhs", dt, k, n)}, formula_matmul, NULL, \
            rtol, 0.0, NULL                                                                        \
    }

// clang-format off
static const struct example EXAMPLES[] = {
    {"vector_add", "vector_add", "vector_add",
     {MAT("a", "float32", 256, 64), MAT("b", "float32", 256, 64)}, formula_vector_add, NULL, 0.0, 0.0, NULL},
    {"vector_add ragged", "vector_add", "vector_add",
     {MAT("a", "float32", 131, 33), MAT("b", "float32", 131, 33)}, formula_vector_add, NULL, 0.0, 0.0, NULL},

    MATMUL("matmul_1", "matmul_1_naive", "matmul_one_tile", "float32", 128, 128, 512, 0x1p-24),
    MATMUL("matmul_1 ragged", "matmul_1_naive", "matmul_one_tile", "float32", 37, 5, 301, 0x1p-24),
    MATMUL("matmul_2", "matmul_2_tiled", "matmul_tiled", "float32", 256, 128, 512, 0x1p-24),
    MATMUL("matmul_2 ragged", "matmul_2_tiled", "matmul_tiled", "float32", 200, 131, 601, 0x1p-24),
    MATMUL("matmul_3", "matmul_3_hoisted", "matmul_hoisted", "bfloat16", 256, 128, 512, 0x1p-8),
    MATMUL("matmul_3 ragged", "matmul_3_hoisted", "matmul_hoisted", "float32", 131, 130, 515, 0x1p-24),
    MATMUL("matmul_4", "matmul_4_blocked", "matmul_blocked", "bfloat16", 256, 256, 2048, 0x1p-8),
    MATMUL("matmul_4 ragged", "matmul_4_blocked", "matmul_blocked", "float32", 131, 260, 1030, 0x1p-24),
    MATMUL("matmul_5", "matmul_5_double_buffered", "matmul_double_buffered", "bfloat16", 512, 256, 1024, 0x1p-8),
    MATMUL("matmul_5 ragged", "matmul_5_double_buffered", "matmul_double_buffered", "float32", 300, 260, 1030, 0x1p-24),

    {"transpose_2d", "transpose_2d", "transpose_2d",
     {MAT("x", "float32", 128, 256)}, formula_transpose, NULL, 0.0, 0.0, NULL},
    {"transpose_2d ragged bf16", "transpose_2d", "transpose_2d",
     {MAT("x", "bfloat16", 131, 77)}, formula_transpose, NULL, 0.0, 0.0, NULL},
    {"transpose_dma", "transpose_dma", "transpose_dma",
     {MAT("x", "bfloat16", 16, 128)}, formula_transpose, NULL, 0.0, 0.0, NULL},
    {"transpose_dma ragged", "transpose_dma", "transpose_dma",
     {MAT("x", "bfloat16", 37, 201)}, formula_transpose, NULL, 0.0, 0.0, NULL},

    {"softmax", "softmax", "softmax", {POS("x", -4, 4, 128, 512)}, formula_softmax, NULL, 1e-5, 0.0, NULL},
    {"softmax ragged", "softmax", "softmax", {POS("x", -80, 80, 129, 77)}, formula_softmax, NULL, 5e-5, 1e-30, NULL},
    {"layernorm", "layernorm", "layernorm",
     {POS("x", -2, 2, 128, 512), VEC("gamma", "float32", 0.5, 1.5, 512), VEC("beta", "float32", -1, 1, 512), NUM("eps", 1e-5)},
     formula_layernorm, NULL, 1e-5, 1e-5, NULL},
    {"layernorm ragged, far from zero", "layernorm", "layernorm",
     {POS("x", 99, 101, 131, 601), VEC("gamma", "float32", 0.5, 1.5, 601), VEC("beta", "float32", -1, 1, 601), NUM("eps", 1e-3)},
     formula_layernorm, NULL, 1e-4, 1e-4, NULL},
    {"rmsnorm", "rmsnorm", "rmsnorm",
     {POS("x", -2, 2, 128, 256), VEC("gamma", "float32", 0.5, 1.5, 256), NUM("eps", 1e-6)},
     formula_rmsnorm, NULL, 1e-5, 0.0, NULL},
    {"rmsnorm ragged bf16", "rmsnorm", "rmsnorm",
     {MAT("x", "bfloat16", 130, 77), VEC("gamma", "bfloat16", 0.5, 1.5, 77), NUM("eps", 1e-6)},
     formula_rmsnorm, NULL, 0x1p-8, 0.0, NULL},

    {"flash_attention", "flash_attention", "flash_attention",
     {POS("q", -2, 2, 64, 128), POS("k", -2, 2, 64, 512), MAT("v", "float32", 512, 64), NUM("causal", 0)},
     formula_attention, NULL, 1e-4, 1e-5, NULL},
    {"flash_attention ragged", "flash_attention", "flash_attention",
     {POS("q", -2, 2, 37, 131), POS("k", -2, 2, 37, 601), MAT("v", "float32", 601, 37), NUM("causal", 0)},
     formula_attention, NULL, 1e-4, 1e-5, NULL},
    {"flash_attention causal", "flash_attention", "flash_attention",
     {POS("q", -2, 2, 32, 300), POS("k", -2, 2, 32, 300), MAT("v", "float32", 300, 32), NUM("causal", 1)},
     formula_attention, NULL, 1e-4, 1e-5, NULL},
    {"flash_attention causal long", "flash_attention", "flash_attention",
     {POS("q", -2, 2, 16, 700), POS("k", -2, 2, 16, 700), MAT("v", "float32", 700, 16), NUM("causal", 1)},
     formula_attention, NULL, 1e-4, 1e-5, NULL},

    {"rope", "rope", "rope",
     {CUBE("x", "float32", 128, 4, 32), MAT("cos", "float32", 128, 16), MAT("sin", "float32", 128, 16)},
     formula_rope, NULL, 1e-6, 2e-7, NULL},
    {"rope ragged", "rope", "rope",
     {CUBE("x", "float32", 131, 3, 10), MAT("cos", "float32", 131, 5), MAT("sin", "float32", 131, 5)},
     formula_rope, NULL, 1e-6, 2e-7, NULL},
    {"avgpool", "avgpool", "avgpool", {CUBE("image", "float32", 64, 8, 12), NUM("size", 2)}, formula_avgpool, NULL, 1e-6, 1e-6, NULL},
    {"avgpool ragged", "avgpool", "avgpool", {CUBE("image", "float32", 37, 11, 16), NUM("size", 3)},
     formula_avgpool, NULL, 1e-6, 1e-6, NULL},
    {"maxpool", "maxpool", "maxpool", {CUBE("image", "float32", 64, 9, 13), NUM("size", 3), NUM("stride", 2)},
     formula_maxpool, NULL, 0.0, 0.0, NULL},
    {"maxpool ragged", "maxpool", "maxpool", {CUBE("image", "float32", 130, 10, 11), NUM("size", 4), NUM("stride", 3)},
     formula_maxpool, NULL, 0.0, 0.0, NULL},
    {"conv1d", "conv1d", "conv1d", {MAT("x", "float32", 64, 259), CUBE("weight", "float32", 4, 64, 32)},
     formula_conv1d, NULL, 0x1p-24, 0.0, NULL},
    {"conv1d ragged", "conv1d", "conv1d", {MAT("x", "float32", 131, 601), CUBE("weight", "float32", 3, 131, 7)},
     formula_conv1d, NULL, 0x1p-24, 0.0, NULL},

    {"mamba_scan", "mamba_scan", "mamba_scan",
     {POS("delta", 0.01, 0.2, 64, 64), MAT("x", "float32", 64, 64), POS("a", -2, -0.5, 64, 4), MAT("b", "float32", 4, 64), MAT("c_out", "float32", 4, 64)},
     formula_mamba_scan, NULL, 1e-5, 1e-6, NULL},
    {"mamba_scan ragged", "mamba_scan", "mamba_scan",
     {POS("delta", 0.01, 0.2, 131, 201), MAT("x", "float32", 131, 201), POS("a", -2, -0.5, 131, 3), MAT("b", "float32", 3, 201), MAT("c_out", "float32", 3, 201)},
     formula_mamba_scan, NULL, 1e-5, 1e-6, NULL},
    {"cumsum", "cumsum", "cumsum", {MAT("x", "float32", 128, 512)}, formula_cumsum, NULL, 0.0, 1e-7, NULL},
    {"cumsum ragged", "cumsum", "cumsum", {MAT("x", "float32", 130, 1100)}, formula_cumsum, NULL, 0.0, 1e-7, NULL},
    {"topk", "topk", "topk", {MAT("x", "float32", 64, 128), NUM("k", 8)}, formula_topk, NULL, 0.0, 0.0, NULL},
    {"topk ragged", "topk", "topk", {POS("x", -1, 0.2, 130, 77), NUM("k", 24)}, formula_topk, NULL, 0.0, 0.0, NULL},
    {"topk ties", "topk", "topk", {{"x", FILL_INDEX, 0, 20, "float32", 2, {33, 50, 0}}, NUM("k", 16)}, formula_topk, NULL, 0.0, 0.0, NULL},
    {"gather_scatter", "gather_scatter", "gather_scatter",
     {MAT("table", "float32", 64, 32), {"source", FILL_INDEX, 0, 64, "int32", 2, {64, 1, 0}}, {"to", FILL_SHUFFLE, 0, 0, "int32", 2, {64, 1, 0}}, NUM("height", 64)},
     formula_gather_scatter, NULL, 0.0, 0.0, NULL},
    {"gather_scatter ragged", "gather_scatter", "gather_scatter",
     {MAT("table", "float32", 300, 7), {"source", FILL_INDEX, 0, 300, "int32", 2, {150, 1, 0}}, {"to", FILL_SHUFFLE, 0, 0, "int32", 2, {150, 1, 0}}, NUM("height", 201)},
     formula_gather_scatter, NULL, 0.0, 0.0, NULL},
    {"dynamic_loop", "dynamic_loop", "sum_blocks", {CUBE("x", "float32", 5, 64, 32), INT1("count", "int32", 3)},
     formula_sum_blocks, NULL, 1e-6, 1e-6, NULL},
    {"dynamic_loop all ragged", "dynamic_loop", "sum_blocks", {CUBE("x", "float32", 7, 101, 13), INT1("count", "int32", 7)},
     formula_sum_blocks, NULL, 1e-6, 1e-6, NULL},
    {"dynamic_loop none", "dynamic_loop", "sum_blocks", {CUBE("x", "float32", 2, 3, 5), INT1("count", "int32", 0)},
     formula_sum_blocks, NULL, 0.0, 0.0, NULL},
    {"quantize_int8", "quantize_int8", "quantize_int8", {POS("x", -3, 3, 128, 256)}, formula_quantize, NULL, 2e-7, 0.0, NULL},
    {"quantize_int8 ragged", "quantize_int8", "quantize_int8", {POS("x", -1000, 900, 131, 77)}, formula_quantize, NULL, 2e-7, 0.0, NULL},
    {"dropout_rng", "dropout_rng", "dropout_rng",
     {POS("x", 1, 2, 128, 256), INT1("seed", "uint32", 7), NUM("probability", 0.25)}, NULL, judge_dropout, 0.0, 0.0, NULL},
    {"dropout_rng ragged", "dropout_rng", "dropout_rng",
     {POS("x", 1, 2, 150, 333), INT1("seed", "uint32", 12345), NUM("probability", 0.5)}, NULL, judge_dropout, 0.0, 0.0, NULL},
    {"dropout_rng none", "dropout_rng", "dropout_rng",
     {POS("x", 1, 2, 5, 9), INT1("seed", "uint32", 1), NUM("probability", 0.0)}, NULL, judge_dropout, 0.0, 0.0, NULL},

    {"two_cores", "two_cores", "two_cores",
     {MAT("x", "float32", 256, 512), OPTION("--grid", 2)}, formula_two_cores, NULL, 1e-5, 1e-6, NULL},
    {"two_cores ragged bf16", "two_cores", "two_cores",
     {MAT("x", "bfloat16", 74, 77), OPTION("--grid", 2)}, formula_two_cores, NULL, 0x1p-8, 1e-6, NULL},
    {"refused: two_cores on one", "two_cores", "two_cores",
     {MAT("x", "float32", 4, 5)}, NULL, NULL, 0.0, 0.0, "--grid 2"},

    {"refused: vector_add of two shapes", "vector_add", "vector_add",
     {MAT("a", "float32", 4, 5), MAT("b", "float32", 4, 6)}, NULL, NULL, 0.0, 0.0, "a and b must have one shape"},
    {"refused: matmul_1 too deep", "matmul_1_naive", "matmul_one_tile",
     {MAT("lhs_t", "float32", 129, 5), MAT("rhs", "float32", 129, 6)}, NULL, NULL, 0.0, 0.0, "got 129"},
    {"refused: topk of 12", "topk", "topk", {MAT("x", "float32", 4, 64), NUM("k", 12)}, NULL, NULL, 0.0, 0.0, "multiple of 8"},
    {"refused: rope of an odd dimension", "rope", "rope",
     {CUBE("x", "float32", 4, 2, 7), MAT("cos", "float32", 4, 3), MAT("sin", "float32", 4, 3)}, NULL, NULL, 0.0, 0.0, "must be even"},
};
// clang-format on
enum { EXAMPLE_COUNT = sizeof EXAMPLES / sizeof EXAMPLES[0] };

static const char *nki_path;
static const char *examples_dir;

// splitmix64: small, and the same everywhere.
static double next_unit(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

// The nearest value that the dtype holds. bfloat16 here by arithmetic on the float's bits.
static double rounded(const char *dtype, double v)
{
    float f = (float)v;
    if (strcmp(dtype, "bfloat16") == 0) {
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        bits = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
        memcpy(&f, &bits, sizeof f);
    }
    return (double)f;
}

static struct tensor make_input(const struct arg *a, uint64_t seed)
{
    struct tensor t = tensor_make(a->dtype, a->rank, a->dims);
    for (size_t i = 0; i < t.count; i++) {
        switch (a->fill) {
        case FILL_NONE:
        case FILL_OPTION:
        case FILL_NUMBER: t.values[i] = a->lo; break;
        case FILL_UNIFORM:
            t.values[i] = rounded(a->dtype, a->lo + (a->hi - a->lo) * next_unit(&seed));
            break;
        case FILL_INDEX:
            t.values[i] = a->lo + (double)(uint64_t)((a->hi - a->lo) * next_unit(&seed));
            break;
        case FILL_SHUFFLE: {
            size_t j = (size_t)((double)(i + 1) * next_unit(&seed));
            t.values[i] = t.values[j];
            t.values[j] = (double)i;
            break;
        }
        }
    }
    return t;
}

// Fails the test with the example's name, the step, and what the tool said.
static _Noreturn void give_up(struct tool *tool, const char *label, const char *what)
{
    char text[TOOL_LOG_BYTES + 512];
    (void)snprintf(text, sizeof text, "%s: %s\n%s", label, what, tool->log);
    tool_close(tool);
    fail_msg("%s", text);
    abort();
}

static void compare(struct tool *tool, const struct example *e, const struct tensor *in)
{
    struct expected expected = {.count = 1};
    if (e->formula) {
        e->formula(in, &expected);
    }
    char why[512] = "";
    bool ok = true;
    for (size_t i = 0; i < expected.count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "out%zu", i);
        struct tensor got;
        if (ok && (ok = tool_result(tool, name, &got, why, sizeof why))) {
            struct tolerance t = {e->rtol, e->atol, expected.slack[i].values};
            ok = e->judge ? e->judge(in, &got, why, sizeof why)
                          : tensor_close(&got, &expected.want[i], t, why, sizeof why);
            tensor_free(&got);
        }
        tensor_free(&expected.want[i]);
        tensor_free(&expected.slack[i]);
    }
    if (!ok) {
        give_up(tool, e->label, why);
    }
}

static void example__agrees(void **state)
{
    const struct example *e = *state;
    struct tool tool;
    assert_true(tool_open(&tool, nki_path));
    tool_arg(&tool, "run");
    tool_arg(&tool, "%s/%s.nki::%s", examples_dir, e->file, e->kernel);
    struct tensor in[ARGS_MAX] = {{.rank = 0}};
    size_t n = 0;
    for (; n < ARGS_MAX && e->args[n].fill != FILL_NONE; n++) {
        in[n] = make_input(&e->args[n], 1000 * (uint64_t)(e - EXAMPLES) + n);
        if (e->args[n].fill == FILL_NUMBER) {
            tool_arg(&tool, "%s=%.17g", e->args[n].name, e->args[n].lo);
        } else if (e->args[n].fill == FILL_OPTION) {
            tool_arg(&tool, "%s", e->args[n].name);
            tool_arg(&tool, "%.17g", e->args[n].lo);
        } else if (!tool_tensor(&tool, e->args[n].name, &in[n])) {
            give_up(&tool, e->label, "an input cannot be written");
        }
    }
    tool_arg(&tool, "--out");
    tool_arg(&tool, "%s", tool.out_dir);
    int status = tool_run(&tool);
    if (e->refusal) {
        if (status != 1 || !strstr(tool.log, e->refusal)) {
            give_up(&tool, e->label, "expected status 1 and the example's own message");
        }
    } else if (status != 0) {
        give_up(&tool, e->label, "the run failed");
    } else {
        compare(&tool, e, in);
    }
    for (size_t i = 0; i < n; i++) {
        tensor_free(&in[i]);
    }
    tool_close(&tool);
}

// `nki run FILE` with nothing else takes the values of the file's own try line.
static void try_line__runs(void **state)
{
    const char *file = *state;
    struct tool tool;
    assert_true(tool_open(&tool, nki_path));
    tool_arg(&tool, "run");
    tool_arg(&tool, "%s/%s", examples_dir, file);
    if (tool_run(&tool) != 0) {
        give_up(&tool, file, "its try line does not run");
    }
    tool_close(&tool);
}

static int by_name(const void *a, const void *b)
{
    const struct CMUnitTest *x = a;
    const struct CMUnitTest *y = b;
    return strcmp(x->name, y->name);
}

// Adds a test for each .nki file; names live as long as the process.
static size_t add_try_lines(struct CMUnitTest *tests, size_t room)
{
    size_t n = 0;
    DIR *d = opendir(examples_dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e && n < room; e = readdir(d)) {
        size_t len = strlen(e->d_name);
        if (len > 4 && strcmp(e->d_name + len - 4, ".nki") == 0) {
            char *name = calloc(len + 8, 1);
            if (!name) {
                break;
            }
            (void)snprintf(name, len + 8, "try %s", e->d_name);
            tests[n++] = (struct CMUnitTest){name, try_line__runs, NULL, NULL, name + 4};
        }
    }
    if (d) {
        (void)closedir(d);
    }
    qsort(tests, n, sizeof tests[0], by_name);
    return n;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: examples_test NKI EXAMPLES_DIR [only-formulas]\n");
        return 2;
    }
    nki_path = argv[1];
    examples_dir = argv[2];
    static struct CMUnitTest tests[CASES_MAX];
    size_t n = 0;
    for (; n < EXAMPLE_COUNT; n++) {
        union {
            const struct example *in;
            void *out;
        } state = {&EXAMPLES[n]};
        tests[n] = (struct CMUnitTest){EXAMPLES[n].label, example__agrees, NULL, NULL, state.out};
    }
    if (argc < 4) {
        n += add_try_lines(tests + n, CASES_MAX - n);
    }
    return _cmocka_run_group_tests("examples", tests, n, NULL, NULL) == 0 ? 0 : 1;
}
