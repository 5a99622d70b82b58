// The executor against NumPy and against the machine, program by program, in one run.
//
//   bench_exec KERNELS.nki NUMPY_OPS.py [--python PATH] [--reps N] [--threads N] [PROGRAM...]
//
// Prints TSV: name, iters, ns_per_op (median), spread ((third quartile - first) / median), ratio. A
// row PROGRAM.numpy is the ratio's base; PROGRAM.nki's ratio is how often it fits into that,
// PROGRAM.check's how often a run with the run-time checks does, PROGRAM.floor's how often the
// machine's own limit does. With --threads above 1 there are two more rows, of one thread and of N
// in turns, by the clock: PROGRAM.wall1 and PROGRAM.wallN, whose ratio is to wall1. Both sides compute the same numbers:
// their sums are compared, and a difference ends the run with status 3.
#include <math.h>
#include <nki/nki.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/floors.h"

enum { REPS_MAX = 200, LINE_BYTES = 512 };

struct program {
    const char *name;
    size_t a[2], b[2];
    double flops;         // multiply-adds of matmuls, two each
    double bytes;         // HBM bytes that must be read and written once
    size_t instructions;  // of kernels.nki and numpy_ops.py alike
};

// clang-format off
static const struct program PROGRAMS[] = {
    {"matmul",    {1024, 1024}, {1024, 1024}, 2.0 * 1024 * 1024 * 1024,       3.0 * 4 * 1024 * 1024, 432},
    {"rmsnorm",   {4096, 1024}, {128, 1024},  0.0,                            2.0 * 4 * 4096 * 1024, 193},
    {"softmax",   {4096, 2048}, {1, 1},       0.0,                            2.0 * 4 * 4096 * 2048, 224},
    {"attention", {128, 2048},  {256, 2048},  2.0 * 2 * 2048.0 * 2048 * 128,  4.0 * 4 * 2048 * 128,  1712},
    {"add",       {8192, 2048}, {8192, 2048}, 0.0,                            3.0 * 4 * 8192 * 2048, 1024},
    {"small",     {128, 8},     {128, 8},     0.0,                            3.0 * 4 * 128 * 8,     10003},
};
// clang-format on
enum { PROGRAM_COUNT = sizeof PROGRAMS / sizeof PROGRAMS[0] };

struct options {
    const char *kernels, *numpy_ops, *python;
    int reps;
    uint32_t threads;
};

struct sample {
    size_t iters;
    double median_ns, spread;
    double check;  // sum of |result|
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct sample summary(double *ns, size_t n, double check)
{
    qsort(ns, n, sizeof ns[0], by_value);
    double median = ns[n / 2];
    return (struct sample){n, median, (ns[n * 3 / 4] - ns[n / 4]) / median, check};
}

static void row(const char *program, const char *side, const struct sample *s, double ratio)
{
    (void)printf("%s.%s\t%zu\t%.0f\t%.3f\t%.2f\n", program, side, s->iters, s->median_ns, s->spread,
                 ratio);
    (void)fflush(stdout);
}

// ---- NumPy ----

// Runs numpy_ops.py for one program. false: it could not be run, or printed something else.
static bool run_numpy(const struct options *o, const struct program *p, const char *flag,
                      struct sample *out)
{
    char command[2048];
    (void)snprintf(command, sizeof command, "'%s' '%s' --reps %d %s %s", o->python, o->numpy_ops,
                   o->reps, flag, p->name);
    FILE *f = popen(command, "r");
    if (!f) {
        return false;
    }
    static bool blas_named = false;  // the same for every program
    char line[LINE_BYTES];
    char name[32];
    size_t instructions = 0;
    bool found = false;
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#') {
            (void)fputs(blas_named ? "" : line, stdout);
            blas_named = true;
        } else if (sscanf(line, "%31s %zu %zu %lf %lf %lf", name, &instructions, &out->iters,
                          &out->median_ns, &out->spread, &out->check) == 6) {
            found = strcmp(name, p->name) == 0 && instructions == p->instructions;
        }
    }
    return pclose(f) == 0 && found;
}

// ---- ours ----

enum { ONE, CHECKED, MANY, CONTEXTS };

static double wall_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// The inputs that numpy_ops.py makes too.
static nki_tensor *make_input(nki_context *ctx, const size_t *shape, size_t salt)
{
    nki_tensor *t = NULL;
    if (nki_tensor_create(ctx, NKI_FLOAT32, 2, shape, &t) != NKI_OK) {
        return NULL;
    }
    float *v = nki_tensor_data(t);
    for (size_t i = 0; i < shape[0] * shape[1]; i++) {
        v[i] = ((float)((i * 37 + salt) % 101) - 50.0f) / 64.0f;
    }
    return t;
}

static double sum_of(nki_tensor *t)
{
    const float *v = nki_tensor_data(t);
    double sum = 0.0;
    for (size_t i = 0; i < nki_tensor_count(t); i++) {
        sum += fabs((double)v[i]);
    }
    return sum;
}

// A program in a context.
struct side {
    nki_context *ctx;
    nki_kernel *k;
    nki_arg args[2];
    nki_diags *ds;
    double ns[REPS_MAX];
    double check;
};

static bool open_side(const struct options *o, nki_context *ctx, const struct program *p,
                      struct side *s)
{
    *s = (struct side){.ctx = ctx,
                       .args = {{.name = "a", .tensor = make_input(ctx, p->a, 1)},
                                {.name = "b", .tensor = make_input(ctx, p->b, 2)}}};
    nki_source source = {o->kernels, NULL, 0};
    return s->args[0].tensor && s->args[1].tensor && nki_diags_create(&s->ds) == NKI_OK &&
           nki_kernel_compile(ctx, &source, p->name, s->args, 2, NULL, s->ds, &s->k) == NKI_OK;
}

static void close_side(struct side *s)
{
    nki_kernel_release(s->k);
    nki_diags_release(s->ds);
    nki_tensor_release(s->args[0].tensor);
    nki_tensor_release(s->args[1].tensor);
}

// One call, number i; the one of number -1 is to warm up.
static bool call_side(struct side *s, int i, bool by_clock)
{
    nki_tensor *result = NULL;
    double wall = wall_ns();
    uint64_t cpu = cpu_ns();
    nki_status st = nki_kernel_call(s->k, s->args, 2, &result, 1, s->ds, NULL);
    double cpu_spent = (double)(cpu_ns() - cpu);
    double spent = by_clock ? wall_ns() - wall : cpu_spent;
    if (st != NKI_OK) {
        return false;
    }
    if (i >= 0) {
        s->ns[i] = spent;
    }
    s->check = sum_of(result);
    nki_tensor_release(result);
    return true;
}

// Every side in turns.
static bool time_sides(const struct options *o, const struct program *p, nki_context *const *ctx,
                       int n, bool by_clock, struct sample *out)
{
    static struct side sides[2];
    bool ok = true;
    int opened = 0;
    while (ok && opened < n) {
        ok = open_side(o, ctx[opened], p, &sides[opened]);
        opened++;
    }
    for (int i = -1; ok && i < o->reps; i++) {
        for (int s = 0; ok && s < n; s++) {
            ok = call_side(&sides[s], i, by_clock);
        }
    }
    for (int s = 0; s < opened; s++) {
        const char *text = NULL;
        if (!ok && sides[s].ds && nki_diags_render(sides[s].ds, NKI_DIAG_TEXT, 0, &text) == NKI_OK) {
            (void)fprintf(stderr, "%s: %s\n%s", p->name, nki_context_error(sides[s].ctx), text);
        }
        out[s] = summary(sides[s].ns, (size_t)o->reps, sides[s].check);
        close_side(&sides[s]);
    }
    return ok;
}

static bool parse_options(int argc, char **argv, struct options *o, char **programs,
                          int *program_count)
{
    if (argc < 3) {
        return false;
    }
    *o = (struct options){argv[1], argv[2], "/usr/bin/python3", 9, 1};
    *program_count = 0;
    for (int i = 3; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--python") == 0 && has_value) {
            o->python = argv[++i];
        } else if (strcmp(argv[i], "--reps") == 0 && has_value) {
            o->reps = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--threads") == 0 && has_value) {
            o->threads = (uint32_t)atoi(argv[++i]);
        } else if (argv[i][0] != '-') {
            programs[(*program_count)++] = argv[i];
        } else {
            return false;
        }
    }
    return o->reps >= 1 && o->reps <= REPS_MAX && o->threads >= 1;
}

static bool wanted(const char *name, char **programs, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(programs[i], name) == 0) {
            return true;
        }
    }
    return count == 0;
}

// ctx: one thread, with checks, N threads. All rows of one program. Returns an exit status.
static int measure(const struct options *o, nki_context *const *ctx, const struct floors *f,
                   const struct program *p)
{
    struct sample numpy;
    struct sample one_array;
    struct sample ours;
    struct sample check;
    if (!run_numpy(o, p, "", &numpy) || !run_numpy(o, p, "--one-array", &one_array)) {
        (void)fprintf(stderr, "%s: numpy_ops.py failed\n", p->name);
        return 4;
    }
    if (fabs(one_array.check - numpy.check) > 1e-6 * fabs(numpy.check)) {
        (void)fprintf(stderr, "%s: the two NumPy runs differ\n", p->name);
        return 3;
    }
    row(p->name, "numpy", &numpy, 1.0);
    row(p->name, "numpy_one_array", &one_array, numpy.median_ns / one_array.median_ns);
    struct sample floor = {1, fmax(p->flops / f->flop_per_ns, p->bytes / f->stream_bytes_per_ns),
                           0.0, 0.0};
    row(p->name, "floor", &floor, numpy.median_ns / floor.median_ns);
    if (!time_sides(o, p, &ctx[ONE], 1, false, &ours) ||
        !time_sides(o, p, &ctx[CHECKED], 1, false, &check)) {
        return 1;
    }
    if (check.check != ours.check) {
        (void)fprintf(stderr, "%s: a run with checks gives another result\n", p->name);
        return 3;
    }
    // A fast wrong answer is no result: its time is not shown.
    if (!(fabs(ours.check - numpy.check) <= 1e-4 * fabs(numpy.check))) {
        (void)fprintf(stderr, "%s: results differ: %.9g, NumPy %.9g\n", p->name, ours.check,
                      numpy.check);
        return 3;
    }
    row(p->name, "nki", &ours, numpy.median_ns / ours.median_ns);
    row(p->name, "check", &check, numpy.median_ns / check.median_ns);
    if (ours.median_ns < 0.9 * floor.median_ns) {
        (void)printf(
            "# %s.nki is faster than this machine can be: busy while the floors were measured?\n",
            p->name);
    }
    if (o->threads > 1) {
        struct sample wall[2];
        char many[16];
        nki_context *sides[] = {ctx[ONE], ctx[MANY]};
        if (!time_sides(o, p, sides, 2, true, wall)) {
            return 1;
        }
        if (wall[0].check != ours.check || wall[1].check != ours.check) {
            (void)fprintf(stderr, "%s: threads give another result\n", p->name);
            return 3;
        }
        (void)snprintf(many, sizeof many, "wall%u", o->threads);
        row(p->name, "wall1", &wall[0], 1.0);
        row(p->name, many, &wall[1], wall[0].median_ns / wall[1].median_ns);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o;
    char **programs = calloc((size_t)argc + 1, sizeof *programs);
    int program_count = 0;
    if (!programs || !parse_options(argc, argv, &o, programs, &program_count)) {
        (void)fprintf(stderr,
                      "usage: bench_exec KERNELS.nki NUMPY_OPS.py [--python PATH] [--reps N] "
                      "[--threads N] [PROGRAM...]\n");
        free(programs);
        return 2;
    }
    nki_context *ctx[CONTEXTS] = {NULL};
    const char *why = NULL;
    nki_status st = NKI_OK;
    for (int i = 0; i < CONTEXTS && st == NKI_OK; i++) {
        nki_context_opts opts = NKI_CONTEXT_OPTS_INIT;
        opts.threads = i == MANY ? o.threads : 1;
        opts.check = i == CHECKED;
        st = nki_context_create(&opts, &ctx[i], &why);
    }
    if (st != NKI_OK) {
        (void)fprintf(stderr, "bench_exec: %s\n", why ? why : "no context");
        free(programs);
        return 4;
    }
    struct floors f = floors_measure();
    (void)printf("# memcpy %.1f GB/s, streaming copy %.1f GB/s (read + written), multiply-add %.1f "
                 "GFLOP/s\n",
                 f.copy_bytes_per_ns, f.stream_bytes_per_ns, f.flop_per_ns);
    (void)printf("name\titers\tns_per_op\tspread\tratio\n");
    int status = 0;
    for (size_t i = 0; i < PROGRAM_COUNT; i++) {
        if (wanted(PROGRAMS[i].name, programs, program_count)) {
            int one = measure(&o, ctx, &f, &PROGRAMS[i]);
            status = one > status ? one : status;
        }
    }
    for (int i = 0; i < CONTEXTS; i++) {
        nki_context_release(ctx[i]);
    }
    free(programs);
    return status;
}
