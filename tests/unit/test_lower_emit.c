#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lower/emit.h"

#include <string.h>

static jmp_buf oom;

typedef struct bench {
    arena mem;
    ir *p;
    diags pend, warn;
    emitter *e;
} bench;

static bench *bench_new(const char *name)
{
    bench *b = malloc(sizeof *b);
    arena_init(&b->mem, 0, &oom);
    b->p = ir_new(&b->mem, target_find(name));
    diags_init(&b->pend, &b->mem);
    diags_init(&b->warn, &b->mem);
    b->e = emitter_new(&b->mem, b->p, &b->pend, &b->warn);
    return b;
}

static void bench_free(bench *b)
{
    arena_fini(&b->mem);
    free(b);
}

// ---- building

static uint32_t tensor_of(bench *b, buffer_kind buffer, dtype dt, uint32_t p, uint32_t n)
{
    ir_tensor t = {.dtype = (uint8_t)dt, .buffer = (uint8_t)buffer, .ndim = 2, .shape = {p, n}};
    uint32_t id = 0;
    diag *d = emit_tensor(b->e, t, (loc){0}, &id);
    if (d) {
        print_error("%s\n", d->text);
    }
    assert_null(d);
    return id;
}

static ir_arg whole(bench *b, uint32_t tensor)
{
    return ira_view(ir_view_add(b->p, ir_view_whole(b->p, tensor)));
}

static ir_arg tile(bench *b, buffer_kind buffer, dtype dt, uint32_t p, uint32_t n)
{
    return whole(b, tensor_of(b, buffer, dt, p, n));
}

// Rows [p0, p0 + p) and columns [n0, n0 + n) of a tensor.
static ir_arg part(bench *b, uint32_t tensor, uint32_t p0, uint32_t p, uint32_t n0, uint32_t n)
{
    ir_dim dims[2];
    memset(dims, 0, sizeof dims);
    dims[0] = (ir_dim){1, p, 0};
    dims[1] = (ir_dim){1, n, 0};
    ir_view v = {.tensor = tensor,
                 .ap = ir_ap_of(b->p, dims, 2),
                 .offset = n0,
                 .dtype = b->p->tensors.at[tensor].dtype,
                 .part = (uint8_t)p0};
    return ira_view(ir_view_add(b->p, v));
}

static ir_arg op(const char *name)
{
    op_id o;
    assert_true(op_find(name, &o));
    return ira_kind(IRA_OP, o);
}

typedef struct named {
    const char *name;
    ir_arg arg;
} named;

// Emits with the table's defaults for what is not named.
static diag *emit(bench *b, const char *insn, uint32_t *first, const named *given, size_t n)
{
    isa_id id;
    assert_true(isa_find(insn, &id));
    const isa_info *info = &isa_table[id];
    ir_arg args[16];
    for (uint8_t i = 0; i < info->nparams; i++) {
        const isa_param *q = &info->params[i];
        args[i] = q->dflt == DK_F       ? ira_f32((float)q->f)
                  : q->dflt == DK_I     ? ira_int(q->i)
                  : q->dflt == DK_FALSE ? ira_kind(IRA_BOOL, 0)
                  : q->dflt == DK_TRUE  ? ira_kind(IRA_BOOL, 1)
                  : q->dflt == DK_ENUM  ? ira_kind(IRA_ENUM, (uint32_t)q->i)
                  : q->dflt == DK_OP    ? ira_kind(IRA_OP, (uint32_t)q->i)
                  : q->dflt == DK_EMPTY ? (ir_arg){IRA_LIST, 0, 0, 0}
                                        : ira_none();
        for (size_t k = 0; k < n; k++) {
            if (strcmp(given[k].name, q->name) == 0) {
                args[i] = given[k].arg;
            }
        }
    }
    uint32_t at = 0;
    diag *d = emit_instr(b->e, id, args, 0, IR_NONE, (loc){0}, &at);
    if (first) {
        *first = at;
    }
    return d;
}

#define EMIT(b, insn, first, ...)                                                                  \
    emit((b), (insn), (first), (const named[]){__VA_ARGS__},                                       \
         sizeof((const named[]){__VA_ARGS__}) / sizeof(named))

#define REFUSED(d, row)                                                                            \
    do {                                                                                           \
        diag *d_ = (d);                                                                            \
        assert_non_null(d_);                                                                       \
        assert_string_equal(diag_name(d_->id), #row);                                              \
    } while (0)

static void legal(diag *d)
{
    if (d) {
        print_error("%s: %s\n", diag_name(d->id), d->text);
    }
    assert_null(d);
}

static int engine_at(const bench *b, uint32_t i)
{
    return b->p->instrs.at[i].engine;
}

static ir_arg *arg_at(const bench *b, uint32_t i, const char *param)
{
    const ir_instr *in = &b->p->instrs.at[i];
    for (uint8_t k = 0; k < in->nargs; k++) {
        if (strcmp(isa_table[in->op].params[k].name, param) == 0) {
            return &b->p->args.at[in->args + k];
        }
    }
    fail();
    return NULL;
}

// ---- spaces and shapes

static void operand__space_and_shape(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_arg s = tile(b, BUF_SBUF, DT_float32, 128, 512), q = tile(b, BUF_PSUM, DT_float32, 128, 512);
    ir_arg q2 = tile(b, BUF_PSUM, DT_float32, 128, 512), h = tile(b, BUF_HBM, DT_float32, 128, 512);
    ir_arg row = tile(b, BUF_SBUF, DT_float32, 1, 512),
           narrow = tile(b, BUF_SBUF, DT_float32, 128, 256);
    REFUSED(EMIT(b, "tensor_copy", NULL, {"dst", s}, {"src", h}), space_not_allowed);
    REFUSED(EMIT(b, "dma_copy", NULL, {"dst", h}, {"src", q}), dma_psum);
    REFUSED(
        EMIT(b, "tensor_tensor", NULL, {"dst", s}, {"data1", q}, {"data2", q2}, {"op", op("add")}),
        both_psum);
    diag *d =
        EMIT(b, "tensor_tensor", NULL, {"dst", s}, {"data1", s}, {"data2", row}, {"op", op("add")});
    REFUSED(d, shape_mismatch);
    assert_non_null(strstr(d->text, "[1, 512] float32 @sbuf"));
    assert_non_null(strstr(d->text, "partition"));
    REFUSED(EMIT(b, "tensor_copy", NULL, {"dst", narrow}, {"src", s}), shape_mismatch);
    REFUSED(EMIT(b, "dma_copy", NULL, {"dst", narrow}, {"src", h}), dma_count_mismatch);
    REFUSED(EMIT(b, "activation", NULL, {"dst", s}, {"op", op("exp")}, {"data", s}, {"bias", s}),
            operand_not_per_partition);
    assert_int_equal(b->p->instrs.n, 0);
    legal(
        EMIT(b, "tensor_tensor", NULL, {"dst", s}, {"data1", q}, {"data2", s}, {"op", op("add")}));
    bench_free(b);
}

static void operand__start_partition(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    uint32_t t = tensor_of(b, BUF_SBUF, DT_float32, 128, 64);
    for (uint32_t p0 = 0; p0 < 128; p0 += 16) {
        for (uint32_t n = 16; p0 + n <= 128; n += 16) {
            bool ok = n > 64 ? p0 == 0 : n > 32 ? p0 % 64 == 0 : p0 % 32 == 0;
            ir_arg v = part(b, t, p0, n, 0, 64);
            diag *d = EMIT(b, "tensor_copy", NULL, {"dst", v}, {"src", v});
            assert_true((d == NULL) == ok);
            ir_arg h = tile(b, BUF_HBM, DT_float32, n, 64);
            legal(EMIT(b, "dma_copy", NULL, {"dst", h}, {"src", v}));
        }
    }
    bench_free(b);
}

static void tensor__shape_and_address(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    uint32_t id;
    ir_tensor t = {.dtype = DT_float32, .buffer = BUF_SBUF, .ndim = 2, .shape = {256, 8}};
    REFUSED(emit_tensor(b->e, t, (loc){0}, &id), partition_limit);
    t.shape[0] = 128;
    t.shape[1] = 60000;
    diag *d = emit_tensor(b->e, t, (loc){0}, &id);
    REFUSED(d, tensor_too_large);
    assert_non_null(strstr(d->text, "240000"));
    assert_non_null(strstr(d->text, "229376"));
    t.shape[1] = 0;
    REFUSED(emit_tensor(b->e, t, (loc){0}, &id), empty_dimension);
    t.shape[1] = 8;
    t.manual = 1;
    t.addr_bytes = 400000;
    d = emit_tensor(b->e, t, (loc){0}, &id);
    REFUSED(d, address_out_of_range);
    assert_non_null(strstr(d->text, "400000"));
    t.addr_bytes = 229376 - 32;
    legal(emit_tensor(b->e, t, (loc){0}, &id));
    assert_int_equal(b->p->tensors.at[id].size_bytes, 32);
    assert_int_equal(b->p->tensors.at[id].partitions, 128);
    t.buffer = BUF_PSUM;
    t.addr_bytes = 1024;
    REFUSED(emit_tensor(b->e, t, (loc){0}, &id), psum_address_bank);
    t.addr_bytes = 2048;
    legal(emit_tensor(b->e, t, (loc){0}, &id));
    t.manual = 0;
    t.shape[1] = 8192;
    REFUSED(emit_tensor(b->e, t, (loc){0}, &id), tensor_too_large);
    t.ndim = 1;
    REFUSED(emit_tensor(b->e, t, (loc){0}, &id), tensor_rank);
    t.buffer = BUF_HBM;
    t.shape[0] = 1u << 31;
    legal(emit_tensor(b->e, t, (loc){0}, &id));
    t.ndim = 3;
    t.shape[1] = t.shape[2] = 1u << 31;
    REFUSED(emit_tensor(b->e, t, (loc){0}, &id), tensor_too_large);
    bench_free(b);
}

// ---- engines and operators

static void engine__follows_the_operator(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_arg f = tile(b, BUF_SBUF, DT_float32, 32, 32), i = tile(b, BUF_SBUF, DT_int32, 32, 32);
    ir_arg q = tile(b, BUF_PSUM, DT_int32, 32, 32);
    ir_arg gpsimd = ira_kind(IRA_ENUM, ISAE_engine_gpsimd),
           vector = ira_kind(IRA_ENUM, ISAE_engine_vector);
    ir_arg scalar = ira_kind(IRA_ENUM, ISAE_engine_scalar),
           tensor = ira_kind(IRA_ENUM, ISAE_engine_tensor);
    uint32_t at;
    legal(EMIT(b, "tensor_tensor", &at, {"dst", f}, {"data1", f}, {"data2", f}, {"op", op("add")}));
    assert_int_equal(engine_at(b, at), ENG_VECTOR);
    legal(EMIT(b, "tensor_tensor", &at, {"dst", i}, {"data1", i}, {"data2", i}, {"op", op("add")}));
    assert_int_equal(engine_at(b, at), ENG_GPSIMD);
    legal(EMIT(b, "tensor_tensor", &at, {"dst", i}, {"data1", i}, {"data2", i}, {"op", op("add")},
               {"engine", vector}));
    assert_int_equal(engine_at(b, at), ENG_VECTOR);
    legal(EMIT(b, "tensor_tensor", &at, {"dst", q}, {"data1", i}, {"data2", i}, {"op", op("add")}));
    assert_int_equal(engine_at(b, at), ENG_VECTOR);
    legal(EMIT(b, "tensor_tensor", &at, {"dst", i}, {"data1", i}, {"data2", i},
               {"op", op("bitwise_xor")}));
    assert_int_equal(engine_at(b, at), ENG_VECTOR);
    legal(
        EMIT(b, "tensor_tensor", &at, {"dst", f}, {"data1", f}, {"data2", f}, {"op", op("power")}));
    assert_int_equal(engine_at(b, at), ENG_GPSIMD);
    REFUSED(EMIT(b, "tensor_tensor", NULL, {"dst", q}, {"data1", i}, {"data2", i},
                 {"op", op("add")}, {"engine", gpsimd}),
            gpsimd_psum);
    legal(EMIT(b, "tensor_scalar", &at, {"dst", f}, {"data", f}, {"op0", op("rsqrt")},
               {"operand0", ira_none()}));
    assert_int_equal(engine_at(b, at), ENG_GPSIMD);
    legal(EMIT(b, "tensor_scalar", &at, {"dst", f}, {"data", f}, {"op0", op("multiply")},
               {"operand0", ira_int(3)}, {"op1", op("add")}, {"operand1", ira_f32(1)},
               {"engine", scalar}));
    assert_int_equal(engine_at(b, at), ENG_SCALAR);
    assert_int_equal(arg_at(b, at, "operand0")->kind, IRA_F32);
    REFUSED(EMIT(b, "tensor_scalar", NULL, {"dst", f}, {"data", f}, {"op0", op("subtract")},
                 {"operand0", ira_int(3)}, {"engine", scalar}),
            engine_not_allowed);
    REFUSED(EMIT(b, "tensor_copy", NULL, {"dst", f}, {"src", f}, {"engine", tensor}),
            engine_not_allowed);
    bench_free(b);
    b = bench_new("trn1");
    f = tile(b, BUF_SBUF, DT_float32, 32, 32);
    REFUSED(EMIT(b, "tensor_copy", NULL, {"dst", f}, {"src", f}, {"engine", scalar}),
            engine_not_allowed);
    REFUSED(EMIT(b, "activation", NULL, {"dst", f}, {"op", op("exp")}, {"data", f},
                 {"bias", ira_f32(1)}),
            operand_kind);
    REFUSED(EMIT(b, "exponential", NULL, {"dst", f}, {"src", f}), not_on_target);
    bench_free(b);
}

static void operator__class_and_role(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_arg f = tile(b, BUF_SBUF, DT_float32, 32, 32), i = tile(b, BUF_SBUF, DT_int32, 32, 32);
    uint32_t at;
    REFUSED(EMIT(b, "tensor_scalar", NULL, {"dst", i}, {"data", i}, {"op0", op("bitwise_and")},
                 {"operand0", ira_int(7)}, {"op1", op("add")}, {"operand1", ira_int(1)}),
            op_class_mixed);
    REFUSED(EMIT(b, "tensor_scalar", NULL, {"dst", f}, {"data", f}, {"op0", op("bitwise_and")},
                 {"operand0", ira_int(7)}),
            bitvec_needs_int);
    diag *d = EMIT(b, "tensor_scalar", NULL, {"dst", i}, {"data", i}, {"op0", op("left_shift")},
                   {"operand0", ira_f32(2)});
    REFUSED(d, bitvec_needs_int);
    assert_string_equal(d->help, "write operand0=2");
    legal(EMIT(b, "tensor_scalar", &at, {"dst", i}, {"data", i}, {"op0", op("left_shift")},
               {"operand0", ira_int(2)}));
    assert_int_equal(arg_at(b, at, "operand0")->kind, IRA_INT);
    REFUSED(EMIT(b, "tensor_scalar", NULL, {"dst", f}, {"data", f}, {"op0", op("square")},
                 {"operand0", ira_none()}),
            op_not_on_target);
    REFUSED(EMIT(b, "tensor_scalar", NULL, {"dst", f}, {"data", f}, {"op0", op("abs")},
                 {"operand0", ira_int(2)}),
            unary_operand);
    REFUSED(EMIT(b, "tensor_scalar", NULL, {"dst", f}, {"data", f}, {"op0", op("add")},
                 {"operand0", ira_none()}),
            op_needs_operand);
    REFUSED(EMIT(b, "activation", NULL, {"dst", f}, {"op", op("add")}, {"data", f}),
            op_not_allowed);
    REFUSED(EMIT(b, "memset", NULL, {"dst", i}, {"value", ira_f32(2.5f)}), memset_value_type);
    legal(EMIT(b, "memset", &at, {"dst", i}, {"value", ira_int(0x7fffffff)}));
    assert_int_equal(arg_at(b, at, "value")->kind, IRA_INT);
    legal(EMIT(b, "memset", &at, {"dst", f}, {"value", ira_int(2)}));
    assert_int_equal(arg_at(b, at, "value")->kind, IRA_F32);
    bench_free(b);
}

static void reduce__axis(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_tensor t = {.dtype = DT_float32, .buffer = BUF_SBUF, .ndim = 3, .shape = {16, 4, 8}};
    uint32_t id, at;
    legal(emit_tensor(b->e, t, (loc){0}, &id));
    ir_arg x = whole(b, id), four = tile(b, BUF_SBUF, DT_float32, 16, 4),
           one = tile(b, BUF_SBUF, DT_float32, 16, 1);
    legal(EMIT(b, "tensor_reduce", &at, {"dst", four}, {"op", op("add")}, {"data", x},
               {"axis", ira_int(-1)}));
    ir_arg axis = *arg_at(b, at, "axis");
    assert_int_equal(axis.kind, IRA_LIST);
    assert_int_equal(axis.aux, 1);
    assert_int_equal(ira_integer(b->p->args.at[axis.v]), 2);
    ir_arg both[2] = {ira_int(1), ira_int(2)};
    ir_arg list = {IRA_LIST, 0, 2, ir_list(b->p, both, 2)};
    legal(EMIT(b, "tensor_reduce", NULL, {"dst", one}, {"op", op("maximum")}, {"data", x},
               {"axis", list}));
    REFUSED(EMIT(b, "tensor_reduce", NULL, {"dst", four}, {"op", op("add")}, {"data", x},
                 {"axis", ira_int(1)}),
            axis_not_trailing);
    REFUSED(EMIT(b, "tensor_reduce", NULL, {"dst", four}, {"op", op("add")}, {"data", x},
                 {"axis", ira_int(0)}),
            axis_partition);
    REFUSED(EMIT(b, "tensor_reduce", NULL, {"dst", four}, {"op", op("add")}, {"data", x},
                 {"axis", ira_int(3)}),
            axis_range);
    REFUSED(EMIT(b, "tensor_reduce", NULL, {"dst", one}, {"op", op("add")}, {"data", x},
                 {"axis", ira_int(2)}),
            shape_mismatch);
    bench_free(b);
}

// ---- matmul

static diag *matmul(bench *b, ir_arg dst, ir_arg s, ir_arg m, ir_arg acc, uint32_t *at)
{
    return EMIT(b, "nc_matmul", at, {"dst", dst}, {"stationary", s}, {"moving", m},
                {"accumulate", acc});
}

static void matmul__limits(void **state)
{
    (void)state;
    static const char *const targets[] = {"trn1", "trn2", "trn3"};
    for (int g = 0; g < 3; g++) {
        bench *b = bench_new(targets[g]);
        ir_arg s = tile(b, BUF_SBUF, DT_bfloat16, 128, 128), none = ira_none();
        ir_arg m = tile(b, BUF_SBUF, DT_bfloat16, 128, 1024),
               q = tile(b, BUF_PSUM, DT_float32, 128, 1024);
        diag *d = matmul(b, q, s, m, none, NULL);
        if (g < 2) {
            REFUSED(d, matmul_moving_limit);
        } else {
            legal(d);
        }
        uint32_t qt = tensor_of(b, BUF_PSUM, DT_float32, 128, 1024),
                 mt = tensor_of(b, BUF_SBUF, DT_bfloat16, 128, 512);
        d = matmul(b, part(b, qt, 0, 128, 256, 512), s, whole(b, mt), none, NULL);
        if (g < 2) {
            REFUSED(d, matmul_bank_overflow);
        } else {
            legal(d);
        }
        legal(matmul(b, part(b, qt, 0, 128, 512, 512), s, whole(b, mt), none, NULL));
        d = matmul(b, tile(b, BUF_PSUM, DT_bfloat16, 128, 512), s, whole(b, mt), none, NULL);
        if (g < 2) {
            REFUSED(d, matmul_dst_dtype);
        } else {
            legal(d);
        }
        REFUSED(matmul(b, tile(b, BUF_PSUM, DT_float32, 128, 512),
                       tile(b, BUF_SBUF, DT_int8, 128, 128), whole(b, mt), none, NULL),
                dtype_not_allowed);
        REFUSED(matmul(b, tile(b, BUF_PSUM, DT_float32, 128, 512),
                       tile(b, BUF_SBUF, DT_float32, 128, 128), whole(b, mt), none, NULL),
                matmul_dtype_pair);
        REFUSED(matmul(b, tile(b, BUF_PSUM, DT_float32, 128, 512),
                       tile(b, BUF_SBUF, DT_bfloat16, 64, 128), whole(b, mt), none, NULL),
                matmul_contract);
        REFUSED(matmul(b, tile(b, BUF_PSUM, DT_float32, 128, 512),
                       tile(b, BUF_SBUF, DT_bfloat16, 128, 256), whole(b, mt), none, NULL),
                matmul_stationary_limit);
        bench_free(b);
    }
}

static void transpose__engine(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    uint32_t at;
    ir_arg big = tile(b, BUF_SBUF, DT_float32, 64, 64),
           small = tile(b, BUF_SBUF, DT_float32, 32, 16);
    diag *d = EMIT(b, "nc_transpose", NULL, {"dst", tile(b, BUF_SBUF, DT_float32, 64, 64)},
                   {"data", big}, {"engine", ira_kind(IRA_ENUM, ISAE_engine_vector)});
    REFUSED(d, transpose_limit);
    assert_non_null(strstr(d->text, "32"));
    legal(EMIT(b, "nc_transpose", &at, {"dst", tile(b, BUF_PSUM, DT_float32, 64, 64)},
               {"data", big}));
    assert_int_equal(engine_at(b, at), ENG_TENSOR);
    legal(EMIT(b, "nc_transpose", &at, {"dst", tile(b, BUF_SBUF, DT_float32, 16, 32)},
               {"data", small}));
    assert_int_equal(engine_at(b, at), ENG_VECTOR);
    ir_arg half = tile(b, BUF_SBUF, DT_bfloat16, 64, 64);
    legal(EMIT(b, "nc_transpose", NULL, {"dst", tile(b, BUF_PSUM, DT_float32, 64, 64)},
               {"data", half}));
    assert_int_equal(b->warn.warnings, 1);
    REFUSED(EMIT(b, "nc_transpose", NULL, {"dst", tile(b, BUF_PSUM, DT_bfloat16, 64, 64)},
                 {"data", big}),
            dtype_mismatch);
    bench_free(b);
}

// What a chip does with every matmul's accumulate=None, element by element, against what the
// emitted instructions say. dst is [16, 24] float32.
enum { ROWS = 16, COLS = 24 };

static void run_emitted(const bench *b, uint32_t first, int count[ROWS][COLS])
{
    for (uint32_t i = first; i < b->p->instrs.n; i++) {
        const ir_view *v = ir_view_ref(b->p, arg_at(b, i, "dst")->v);
        const ir_arg *acc = arg_at(b, i, "accumulate");
        const ir_dim *d = ir_dims(b->p, v);
        uint64_t n = ir_free_elems(b->p, v);
        assert_int_equal(acc->kind, IRA_BOOL);
        assert_int_equal(ir_free_elems(b->p, ir_view_ref(b->p, arg_at(b, i, "moving")->v)), n);
        assert_int_equal(ir_free_elems(b->p, ir_view_ref(b->p, arg_at(b, i, "stationary")->v)),
                         d[0].count);
        for (uint32_t r = 0; r < d[0].count; r++) {
            for (uint64_t k = 0; k < n; k++) {
                int64_t at = v->offset;
                uint64_t rest = k;
                for (uint32_t j = ir_ndim(b->p, v); j-- > 1;) {
                    at += (int64_t)(rest % d[j].count) * d[j].stride;
                    rest /= d[j].count;
                }
                int *c = &count[v->part + r][at];
                *c = acc->v ? *c + 1 : 1;
            }
        }
    }
}

static void accumulate__matches_every_location(void **state)
{
    (void)state;
    uint32_t seed = 12345;
    for (int round = 0; round < 200; round++) {
        bench *b = bench_new("trn2");
        uint32_t q = tensor_of(b, BUF_PSUM, DT_float32, ROWS, COLS);
        int want[ROWS][COLS] = {{0}}, got[ROWS][COLS] = {{0}};
        for (int step = 0; step < 6; step++) {
            uint32_t r[6];
            for (int k = 0; k < 6; k++) {
                seed = seed * 1664525u + 1013904223u;
                r[k] = seed >> 8;
            }
            // Rows start at 0 (the start-partition rule); columns in two dimensions, strided.
            uint32_t rows = 1 + r[0] % ROWS, outer = 1 + r[1] % 3, inner = 1 + r[2] % 4;
            ir_dim dims[3];
            memset(dims, 0, sizeof dims);
            dims[0] = (ir_dim){1, rows, 0};
            dims[1] = (ir_dim){4 + r[3] % 3, outer, 0};
            dims[2] = (ir_dim){1 + r[4] % 2, inner, 0};
            int64_t reach = dims[1].stride * (outer - 1) + dims[2].stride * (inner - 1);
            ir_view v = {.tensor = q,
                         .ap = ir_ap_of(b->p, dims, 3),
                         .dtype = DT_float32,
                         .offset = (int64_t)(r[5] % (uint32_t)(COLS - reach))};
            uint32_t first = b->p->instrs.n;
            ir_arg s = tile(b, BUF_SBUF, DT_float32, 8, rows),
                   m = tile(b, BUF_SBUF, DT_float32, 8, outer * inner);
            legal(matmul(b, ira_view(ir_view_add(b->p, v)), s, m, ira_none(), NULL));
            for (uint32_t p = 0; p < rows; p++) {
                for (uint32_t o = 0; o < outer; o++) {
                    for (uint32_t i = 0; i < inner; i++) {
                        want[p][v.offset + o * dims[1].stride + i * dims[2].stride]++;
                    }
                }
            }
            run_emitted(b, first, got);
            assert_memory_equal(want, got, sizeof want);
        }
        bench_free(b);
    }
}

static void accumulate__other_writers_and_fresh_tensors(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_arg s = tile(b, BUF_SBUF, DT_bfloat16, 64, 64), m = tile(b, BUF_SBUF, DT_bfloat16, 64, 256);
    ir_arg q = tile(b, BUF_PSUM, DT_float32, 64, 256);
    uint32_t at;
    legal(EMIT(b, "memset", NULL, {"dst", q}, {"value", ira_f32(0)}));
    legal(matmul(b, q, s, m, ira_none(), &at));
    assert_int_equal(arg_at(b, at, "accumulate")->v, 1);
    assert_int_equal(b->warn.warnings, 1);
    assert_string_equal(diag_name(b->warn.first->id), "accumulate_on_memset");
    q = tile(b, BUF_PSUM, DT_float32, 64, 256);
    legal(matmul(b, q, s, m, ira_kind(IRA_BOOL, 1), &at));
    assert_string_equal(diag_name(b->warn.first->next->id), "accumulate_unwritten");
    q = tile(b, BUF_PSUM, DT_float32, 64, 256);
    legal(matmul(b, q, s, m, ira_none(), &at));
    assert_int_equal(arg_at(b, at, "accumulate")->v, 0);
    legal(matmul(b, q, s, m, ira_none(), &at));
    assert_int_equal(arg_at(b, at, "accumulate")->v, 1);
    bench_free(b);
}

static diag *loop(bench *b, uint32_t reg, ir_arg lo, ir_arg hi, int64_t step, uint32_t *at)
{
    return EMIT(b, "loop_for", at, {"counter", ira_kind(IRA_REG, reg)}, {"lower", lo},
                {"upper", hi}, {"step", ira_int(step)});
}

static const char *shape_of(bench *b, uint32_t from)
{
    textbuf t;
    text_init(&t, &b->mem);
    text_cstr(&t, "");
    for (uint32_t i = from; i < b->p->instrs.n; i++) {
        const ir_instr *in = &b->p->instrs.at[i];
        if (in->op == ISA_loop_for) {
            const ir_arg *hi = arg_at(b, i, "upper");
            text_printf(&t, "for(%lld", (long long)ira_integer(*arg_at(b, i, "lower")));
            if (hi->kind == IRA_REG) {
                text_printf(&t, ",r%u", hi->v);
            } else {
                text_printf(&t, ",%lld", (long long)ira_integer(*hi));
            }
            text_printf(&t, ",%lld){", (long long)ira_integer(*arg_at(b, i, "step")));
        } else if (in->op == ISA_loop_end) {
            text_cstr(&t, "}");
        } else if (in->op == ISA_nc_matmul) {
            text_cstr(&t, arg_at(b, i, "accumulate")->v ? "+" : "=");
        } else {
            text_cstr(&t, ".");
        }
    }
    return t.at;
}

static void accumulate__first_iteration_is_peeled(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_arg s = tile(b, BUF_SBUF, DT_bfloat16, 64, 64), m = tile(b, BUF_SBUF, DT_bfloat16, 64, 256);
    ir_arg q = tile(b, BUF_PSUM, DT_float32, 64, 256), none = ira_none();
    legal(loop(b, 0, ira_int(0), ira_int(4), 1, NULL));
    legal(matmul(b, q, s, m, none, NULL));
    legal(EMIT(b, "loop_end", NULL, {"", none}));
    assert_string_equal(shape_of(b, 0), "for(0,1,1){=}for(1,4,1){+}");
    uint32_t from = b->p->instrs.n;

    // A tile of the body's own is fresh in every iteration.
    legal(loop(b, 1, ira_int(0), ira_int(4), 1, NULL));
    ir_arg own = tile(b, BUF_PSUM, DT_float32, 64, 256);
    legal(matmul(b, own, s, m, none, NULL));
    legal(matmul(b, own, s, m, none, NULL));
    legal(EMIT(b, "loop_end", NULL, {"", none}));
    assert_string_equal(shape_of(b, from), "for(0,4,1){=+}");
    from = b->p->instrs.n;

    // A register for the upper bound: one trip of a huge step, then the rest; afterwards whether
    // anything was written is not known.
    q = tile(b, BUF_PSUM, DT_float32, 64, 256);
    legal(loop(b, 2, ira_int(1), ira_kind(IRA_REG, 9), 2, NULL));
    legal(matmul(b, q, s, m, none, NULL));
    legal(EMIT(b, "loop_end", NULL, {"", none}));
    assert_string_equal(shape_of(b, from), "for(1,r9,2147483646){=}for(3,r9,2){+}");
    REFUSED(matmul(b, q, s, m, none, NULL), accumulate_unknown);
    legal(matmul(b, q, s, m, ira_kind(IRA_BOOL, 0), NULL));
    legal(matmul(b, q, s, m, none, NULL));
    from = b->p->instrs.n;

    // Nested: the tile is the outer loop's, the inner one fills it.
    q = tile(b, BUF_PSUM, DT_float32, 64, 256);
    legal(loop(b, 3, ira_int(0), ira_int(2), 1, NULL));
    legal(loop(b, 4, ira_int(0), ira_int(3), 1, NULL));
    legal(matmul(b, q, s, m, none, NULL));
    legal(EMIT(b, "loop_end", NULL, {"", none}));
    legal(EMIT(b, "loop_end", NULL, {"", none}));
    assert_string_equal(shape_of(b, from),
                        "for(0,1,1){for(0,1,1){=}for(1,3,1){+}}for(1,2,1){for(0,3,1){+}}");
    from = b->p->instrs.n;

    // The outer loop's body makes the tile: only the inner loop is peeled.
    legal(loop(b, 5, ira_int(0), ira_int(2), 1, NULL));
    q = tile(b, BUF_PSUM, DT_float32, 64, 256);
    legal(loop(b, 6, ira_int(0), ira_int(3), 1, NULL));
    legal(matmul(b, q, s, m, none, NULL));
    legal(EMIT(b, "loop_end", NULL, {"", none}));
    legal(EMIT(b, "loop_end", NULL, {"", none}));
    assert_string_equal(shape_of(b, from), "for(0,2,1){for(0,1,1){=}for(1,3,1){+}}");
    from = b->p->instrs.n;

    // No trips: nothing has been written.
    q = tile(b, BUF_PSUM, DT_float32, 64, 256);
    legal(loop(b, 7, ira_int(4), ira_int(4), 1, NULL));
    legal(matmul(b, q, s, m, none, NULL));
    legal(EMIT(b, "loop_end", NULL, {"", none}));
    legal(matmul(b, q, s, m, none, NULL));
    assert_string_equal(shape_of(b, from), "for(4,4,1){=}=");
    bench_free(b);
}

static void accumulate__loops_that_cannot_be_peeled(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_arg s = tile(b, BUF_SBUF, DT_bfloat16, 64, 64), m = tile(b, BUF_SBUF, DT_bfloat16, 64, 256);
    ir_arg q = tile(b, BUF_PSUM, DT_float32, 64, 256), none = ira_none();
    legal(EMIT(b, "loop_while", NULL, {"condition", ira_kind(IRA_REG, 0)}));
    legal(matmul(b, q, s, m, none, NULL));
    REFUSED(EMIT(b, "loop_end", NULL, {"", none}), accumulate_in_loop);
    bench_free(b);
    b = bench_new("trn2");
    s = tile(b, BUF_SBUF, DT_bfloat16, 64, 64);
    m = tile(b, BUF_SBUF, DT_bfloat16, 64, 256);
    q = tile(b, BUF_PSUM, DT_float32, 64, 256);
    legal(loop(b, 0, ira_kind(IRA_REG, 1), ira_int(9), 1, NULL));
    legal(matmul(b, q, s, m, none, NULL));
    REFUSED(EMIT(b, "loop_end", NULL, {"", none}), accumulate_in_loop);
    bench_free(b);
}

static void loop__counter_and_step(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    REFUSED(loop(b, 0, ira_int(0), ira_int(4), 0, NULL), loop_step);
    legal(loop(b, 0, ira_int(0), ira_int(4), 1, NULL));
    diag *d = EMIT(b, "register_move", NULL, {"dst", ira_kind(IRA_REG, 0)}, {"src", ira_int(4)});
    REFUSED(d, loop_var_write);
    assert_non_null(strstr(d->text, "induction"));
    legal(EMIT(b, "register_move", NULL, {"dst", ira_kind(IRA_REG, 1)},
               {"src", ira_kind(IRA_REG, 0)}));
    legal(EMIT(b, "loop_end", NULL, {"", ira_none()}));
    bench_free(b);
}

// ---- DMA

static void dma__rules(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_arg x = tile(b, BUF_HBM, DT_float32, 64, 32), y = tile(b, BUF_SBUF, DT_float32, 64, 32);
    ir_arg half = tile(b, BUF_SBUF, DT_bfloat16, 64, 32), t = tile(b, BUF_SBUF, DT_float32, 32, 64);
    ir_arg hw = ira_kind(IRA_ENUM, ISAE_dge_mode_hwdge),
           skip = ira_kind(IRA_ENUM, ISAE_oob_mode_skip);
    uint32_t at;
    legal(EMIT(b, "dma_copy", &at, {"dst", half}, {"src", x}));
    assert_int_equal(engine_at(b, at), ENG_DMA);
    REFUSED(EMIT(b, "dma_copy", NULL, {"dst", half}, {"src", x}, {"dge_mode", hw}), hwdge_dtype);
    REFUSED(EMIT(b, "dma_copy", NULL, {"dst", y}, {"src", x},
                 {"engine", ira_kind(IRA_ENUM, ISAE_engine_sync)}),
            hwdge_engine);
    REFUSED(EMIT(b, "dma_copy", NULL, {"dst", y}, {"src", x}, {"oob_mode", skip}), oob_skip_static);
    REFUSED(EMIT(b, "dma_copy", NULL, {"dst", y}, {"src", x}, {"priority", ira_int(1)}),
            not_on_target);
    REFUSED(EMIT(b, "dma_transpose", NULL, {"dst", y}, {"src", x}), dma_transpose_shape);
    legal(EMIT(b, "dma_transpose", NULL, {"dst", t}, {"src", x}));
    assert_string_equal(diag_name(b->warn.first->id), "dma_transpose_large");
    legal(EMIT(b, "dma_copy", &at, {"dst", y}, {"src", x}, {"dge_mode", ira_int(3)}));
    assert_int_equal(arg_at(b, at, "dge_mode")->kind, IRA_ENUM);
    bench_free(b);
}

static void finish__unwritten_output(void **state)
{
    (void)state;
    bench *b = bench_new("trn2");
    ir_arg x = tile(b, BUF_SBUF, DT_float32, 64, 32), out = tile(b, BUF_SHARED, DT_float32, 64, 32);
    tile(b, BUF_SHARED, DT_float32, 64, 16);
    legal(EMIT(b, "dma_copy", NULL, {"dst", out}, {"src", x}));
    legal(emit_finish(b->e, (loc){0}));
    assert_int_equal(b->warn.warnings, 1);
    assert_string_equal(b->warn.first->text,
                        "output [64, 16] float32 @shared_hbm is never written");
    bench_free(b);
}

// Whatever kinds the arguments have, each row answers with an instruction or a diagnostic.
static void emit__survives_any_arguments(void **state)
{
    (void)state;
    static const char *const targets[] = {"trn1", "trn2", "trn3"};
    uint32_t seed = 99;
    for (int g = 0; g < 3; g++) {
        bench *b = bench_new(targets[g]);
        b->p->grid = 2;
        ir_arg pool[24];
        int n = 0;
        pool[n++] = ira_none();
        pool[n++] = ira_f32(1.5f);
        pool[n++] = ira_int(-3);
        pool[n++] = ira_int(1);
        pool[n++] = ira_kind(IRA_BOOL, 1);
        pool[n++] = ira_kind(IRA_ENUM, 1);
        pool[n++] = ira_kind(IRA_ENUM, 5);
        pool[n++] = op("add");
        pool[n++] = op("bitwise_or");
        pool[n++] = ira_kind(IRA_REG, 3);
        pool[n++] = ira_kind(IRA_STR, 0);
        pool[n++] = (ir_arg){IRA_LIST, 0, 0, 0};
        ir_arg pair[2] = {ira_int(1), ira_int(8)};
        ir_arg inner = {IRA_LIST, 0, 2, ir_list(b->p, pair, 2)};
        pool[n++] = inner;
        pool[n++] = (ir_arg){IRA_LIST, 0, 1, ir_list(b->p, &inner, 1)};
        pool[n++] = tile(b, BUF_SBUF, DT_float32, 32, 8);
        pool[n++] = tile(b, BUF_SBUF, DT_int32, 32, 8);
        pool[n++] = tile(b, BUF_SBUF, DT_float32, 32, 1);
        pool[n++] = tile(b, BUF_PSUM, DT_float32, 32, 8);
        pool[n++] = tile(b, BUF_SHARED, DT_float32, 32, 8);
        ir_arg last = pool[n - 1];
        pool[n++] = (ir_arg){IRA_LIST, 0, 1, ir_list(b->p, &last, 1)};
        pool[n++] = tile(b, BUF_SBUF, DT_float8_e5m2_x4, 32, 8);
        uint32_t emitted = 0;
        for (int round = 0; round < 60000; round++) {
            isa_id id = (isa_id)(round % ISA_COUNT);
            ir_arg args[16];
            for (uint8_t i = 0; i < isa_table[id].nparams; i++) {
                seed = seed * 1664525u + 1013904223u;
                args[i] = pool[(seed >> 10) % (uint32_t)n];
            }
            if (isa_table[id].group == ISAG_CTRL && id != ISA_device_print &&
                id != ISA_fill_uninit) {
                continue;
            }
            emitted += emit_instr(b->e, id, args, 0, IR_NONE, (loc){0}, NULL) == NULL;
        }
        assert_true(emitted > 100);
        bench_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operand__space_and_shape),
        cmocka_unit_test(operand__start_partition),
        cmocka_unit_test(tensor__shape_and_address),
        cmocka_unit_test(engine__follows_the_operator),
        cmocka_unit_test(operator__class_and_role),
        cmocka_unit_test(reduce__axis),
        cmocka_unit_test(matmul__limits),
        cmocka_unit_test(transpose__engine),
        cmocka_unit_test(accumulate__matches_every_location),
        cmocka_unit_test(accumulate__other_writers_and_fresh_tensors),
        cmocka_unit_test(accumulate__first_iteration_is_peeled),
        cmocka_unit_test(accumulate__loops_that_cannot_be_peeled),
        cmocka_unit_test(loop__counter_and_step),
        cmocka_unit_test(dma__rules),
        cmocka_unit_test(finish__unwritten_output),
        cmocka_unit_test(emit__survives_any_arguments),
    };
    return cmocka_run_group_tests_name("lower_emit", tests, NULL, NULL);
}
