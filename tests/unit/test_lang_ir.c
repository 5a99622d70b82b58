#include "tests/support/ir_fixture.h"

#include "lang/place.h"

#include <stdio.h>

static ir *parse(arena *a, const char *text)
{
    const char *err = NULL;
    ir *p = ir_parse(a, text, strlen(text), &err);
    if (!p) {
        print_error("%s\n", err);
    }
    assert_non_null(p);
    return p;
}

static const char *print(arena *a, const ir *p)
{
    textbuf b;
    text_init(&b, a);
    ir_print(p, &b);
    return b.at;
}

#define HEAD "kernel \"k\" target=trn2 grid=1 core=0 registers=4\n"
#define TENSORS                                                                                    \
    HEAD "%0 \"x\" float32[256, 512] shared_hbm param=0 \"x\"  ; add.nki:3\n"                      \
         "%1 \"\" float32[128, 512] sbuf placed=(0, 0)  ; add.nki:7\n"                             \
         "%2 \"t\\\"q\" bfloat16[128, 4, 64] sbuf address=(0, 2048)\n"                             \
         "%3 \"acc\" float32[128, 512] psum\n"                                                     \
         "%4 \"o\" float32[256, 512] shared_hbm out  ; lib/a b.nki:12\n"                           \
         "%5 \"c\" int32[2] hbm const=0\n"                                                         \
         "%6 \"i\" uint32[128, 1] sbuf fill\n"                                                     \
         "data 0100000002000000\n"

// Each line is canonical: it must come back letter by letter.
static const char *const lines[] = {
    "  DMA.dma_copy dst=%1 src=%0[0:128, :]  ; add.nki:8\n",
    "  DMA.dma_copy dst=%1[0:64, :] src=%0[128:255:2, :]\n",
    "  Vector.tensor_scalar dst=%1 data=%1 op0=multiply operand0=2.0\n",
    "  Vector.tensor_scalar dst=%1 data=%1 op0=multiply operand0=2 reverse0=True op1=add "
    "operand1=%6.ap([[1, 128], [1, 1]], dtype=float32) engine=vector\n",
    "  Vector.memset dst=%2[:, 1:2, 0:63:2] value=-0.0\n",
    "  Vector.memset dst=%2[:, 1:2, :] value=nan(0x7fc00001)\n",
    "  Vector.memset dst=%2.ap([[1, 32], [0, 4], [-1, 64]], part=96, offset=255) value=-inf\n",
    "  Vector.memset dst=%2 value=3.4028235e+38\n",
    "  Vector.memset dst=%2 value=1e-45\n",
    "  GpSimd.iota dst=%6 pattern=[[1, 4], [0, 2]] offset=-5\n",
    "  Scalar.activation dst=%1 op=exp data=%3 bias=%6.ap([[1, 128], [1, 1]], dtype=float32)\n",
    "  Scalar.activation dst=%1 op=exp data=%3 scale=None name=\"soft\\\\max\\x0a\"\n",
    "  Tensor.nc_matmul dst=%3 stationary=%2.ap([[1, 128], [1, 128]]) moving=%2[:, 0:2, :] "
    "accumulate=False\n",
    "  DMA.dma_copy dst=%1 src=%0[0:128, :].vector(%6, step=512, limit=256) oob_mode=skip\n",
    "  DMA.dma_copy dst=%1[0:1, :] src=%0[0:1, :].scalar(%6[0:1, :], step=512)\n",
    "  DMA.dma_compute dst=%4 srcs=[%0, %4] reduce_op=add scales=[1.0, 0.5]\n",
    "  Vector.tensor_reduce dst=%6.ap([[1, 128], [1, 1]], dtype=float32) op=add data=%1 axis=[1]\n",
};

static void text__comes_back_the_same(void **state)
{
    arena *a = *state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *text = arena_printf(a, "%s%sreturn %%4\n", TENSORS, lines[i]);
        ir *p = parse(a, text);
        assert_string_equal(print(a, p), text);
        const char *why = ir_verify(p, a);
        assert_string_equal(why ? why : "sound", "sound");
    }
}

static void text__loops_registers_and_labels(void **state)
{
    arena *a = *state;
    const char *text =
        TENSORS "  Sync.register_move dst=r0 src=0\n"
                "  Sync.loop_for counter=r1 lower=r0 upper=4 step=1  ; add.nki:9\n"
                "    @2 DMA.dma_copy dst=%1 src=%0[0:128, :].register(r1, step=512)\n"
                "    Sync.loop_while condition=r1\n"
                "      Vector.memset dst=%1[:, 0:8].register(r1, step=8, limit=512) "
                "value=0.0 after=[@2]\n"
                "    Sync.loop_end\n"
                "  Sync.loop_end\n"
                "return %4[0:128, :]\n";
    ir *p = parse(a, text);
    assert_null(ir_verify(p, a));
    assert_string_equal(print(a, p), text);
}

static void text__defaults_are_filled_in(void **state)
{
    arena *a = *state;
    ir *p = parse(a, TENSORS "Scalar.activation dst=%1 op=exp data=%3\n");
    const ir_instr *in = &p->instrs.at[0];
    ir_arg scale = p->args.at[in->args + 4], bias = p->args.at[in->args + 3];
    assert_int_equal(scale.kind, IRA_F32);
    assert_true(ira_float(scale) == 1.0f);
    assert_int_equal(bias.kind, IRA_NONE);
}

static void text__reads_views_as_numpy_would(void **state)
{
    arena *a = *state;
    ir *p = parse(a, TENSORS "Vector.memset dst=%2[32:64, 1:4:2, 5:64:7] value=0.0\n");
    const ir_view *v = ir_view_ref(p, p->args.at[p->instrs.at[0].args].v);
    const ir_dim *d = ir_dims(p, v);
    assert_int_equal(v->part, 32);
    assert_int_equal(v->offset, 64 + 5);
    assert_int_equal(d[0].count, 32);
    assert_int_equal(d[1].count, 2);
    assert_int_equal(d[1].stride, 128);
    assert_int_equal(d[2].count, 9);
    assert_int_equal(d[2].stride, 7);
}

static void parse__says_where_it_stops(void **state)
{
    arena *a = *state;
    static const struct {
        const char *text, *err;
    } bad[] = {
        {"", "line 0: the text is empty"},
        {"kernel \"k\" target=trn9 grid=1", "line 1: target 'trn9' does not exist"},
        {HEAD "%1 \"x\" float32[1] sbuf\n", "line 2: tensor %1 where %0 is next"},
        {HEAD "%0 \"x\" float33[1] sbuf\n", "line 2: dtype 'float33' does not exist"},
        {HEAD "%0 \"x\" float32[129] sbuf\n", "line 2: on chip a tensor has 1 to 128 partitions"},
        {HEAD "%0 \"x\" float32[4294967295, 4294967295] hbm\n", "line 2: the tensor is too large"},
        {HEAD "%0 \"x\" float32[1] hbm param=1 \"x\"\n", "line 2: parameter 0 is missing"},
        {HEAD "%0 \"x", "line 2: a string without an end"},
        {HEAD "Vector.tensor_copy dst=%0\n", "line 2: tensor %0 does not exist"},
        {HEAD "Vector.no_such dst=1\n", "line 2: instruction 'no_such' does not exist"},
        {HEAD "Victor.memset dst=1\n", "line 2: an engine and a dot expected, not 'Victor'"},
        {HEAD "Vector.memset to=1\n", "line 2: memset has no parameter 'to'"},
        {HEAD "Vector.memset value=maybe\n", "line 2: 'maybe' is not a value here"},
        {HEAD "Vector.memset value=[[[[[1]]]]]\n", "line 2: lists too deep"},
        {HEAD "Vector.memset value=99999999999\n", "line 2: 99999999999 is outside 33 bits"},
        {TENSORS "Vector.memset dst=%1[0:129, :]\n",
         "line 10: a number from 1 to 128 expected, not '129'"},
        {TENSORS "Vector.memset dst=%1 ; x\n", "line 10: a place is 'file:line'"},
        {TENSORS "@7 Vector.memset dst=%1\n", "line 10: label @7 on instruction 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *err = NULL;
        assert_null(ir_parse(a, bad[i].text, strlen(bad[i].text), &err));
        assert_string_equal(err, bad[i].err);
    }
}

// Any prefix of a good text, and any byte of it replaced, ends in a program or a sentence.
static void parse__survives_damage(void **state)
{
    arena *a = *state;
    textbuf t;
    text_init(&t, a);
    text_cstr(&t, TENSORS);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        text_cstr(&t, lines[i]);
    }
    static const char junk[] = "%[]().,:=\"\\@;r0-9e\n\x80 ";
    for (size_t i = 0; i < t.len; i++) {
        arena_mark m = arena_save(a);
        const char *err;
        char *copy = arena_text(a, t.at, t.len);
        (void)ir_parse(a, copy, i, &err);
        copy[i] = junk[i * 7 % (sizeof junk - 1)];
        ir *p = ir_parse(a, copy, t.len, &err);
        if (p && !ir_verify(p, a)) {
            const char *once = print(a, p);
            assert_string_equal(print(a, parse(a, once)), once);
        }
        arena_restore(a, m);
    }
}

typedef void (*damage)(ir *p);

static ir *sample(arena *a)
{
    return parse(a, TENSORS "Sync.loop_for counter=r1 lower=0 upper=4 step=1  ; add.nki:9\n"
                            "DMA.dma_copy dst=%1 src=%0[0:128, :].vector(%6, step=512)\n"
                            "DMA.dma_compute dst=%4 srcs=[%0, %4] reduce_op=add\n"
                            "Vector.memset dst=%1[:, 0:8].register(r1) value=0.0\n"
                            "GpSimd.iota dst=%6 pattern=[[1, 4]]\n"
                            "Sync.loop_end\n"
                            "return %4\n");
}

static void d_op(ir *p)
{
    p->instrs.at[1].op = ISA_COUNT;
}
static void d_engine(ir *p)
{
    p->instrs.at[1].engine = ENG_COUNT;
}
static void d_wrong_engine(ir *p)
{
    p->instrs.at[1].engine = ENG_TENSOR;
}
static void d_nargs(ir *p)
{
    p->instrs.at[1].nargs--;
}
static void d_args(ir *p)
{
    p->instrs.at[1].args = UINT32_MAX - 2;
}
static void d_place(ir *p)
{
    p->instrs.at[0].place = p->places.n;
}
static void d_name(ir *p)
{
    p->instrs.at[0].name = UINT32_MAX;
}
static void d_deps(ir *p)
{
    p->instrs.at[0].deps = 77;
}
static void d_dep_forward(ir *p)
{
    vec_push(p->mem, &p->deps, 3);
    vec_push(p->mem, &p->deps, IR_DEPS_END);
    p->instrs.at[0].deps = 1;
}
static void d_dep_open(ir *p)
{
    vec_push(p->mem, &p->deps, 0);
    p->instrs.at[2].deps = 1;
}
static void d_loop(ir *p)
{
    p->instrs.n--;
}
static void d_loop_end(ir *p)
{
    p->instrs.at[0] = p->instrs.at[5];
}
static void d_parent(ir *p)
{
    p->places.at[1].parent = 1;
}
static void d_place_kind(ir *p)
{
    p->places.at[1].kind = 9;
}
static void d_place_file(ir *p)
{
    p->places.at[1].file = p->files.n;
}
static void d_file(ir *p)
{
    p->files.at[0].name = p->strs.n;
}
static void d_view_tensor(ir *p)
{
    p->views.at[1].tensor = p->tensors.n;
}
static void d_view_form(ir *p)
{
    p->views.at[1].form = p->forms.n;
}
static void d_view_ap(ir *p)
{
    p->forms.at[p->views.at[1].form].ap = p->aps.n;
}
static void d_view_dtype(ir *p)
{
    p->forms.at[p->views.at[1].form].dtype = DT_COUNT;
}
static void d_view_dyn(ir *p)
{
    p->forms.at[p->views.at[1].form].dyn = p->dyns.n;
}
static void d_view_offset(ir *p)
{
    p->forms.at[p->views.at[1].form].offset = 1;
}
static void d_view_offset_big(ir *p)
{
    p->forms.at[p->views.at[1].form].offset = INT64_MIN;
}
static void d_view_part(ir *p)
{
    p->forms.at[p->views.at[1].form].part = 1;
}
static void d_ap_first(ir *p)
{
    p->aps.at[1].first = UINT32_MAX;
}
static void d_ap_ndim(ir *p)
{
    p->aps.at[1].ndim = 9;
}
static void d_dim_count(ir *p)
{
    p->dims.at[0].count = 0;
}
static void d_dim_count_big(ir *p)
{
    p->dims.at[1].count = UINT32_MAX;
    p->dims.at[1].stride = (int64_t)1 << 40;
}
static void d_dim_stride(ir *p)
{
    p->dims.at[1].stride = INT64_MAX;
}
static void d_dyn_kind(ir *p)
{
    p->dyns.at[1].kind = 5;
}
static void d_dyn_src(ir *p)
{
    p->dyns.at[1].src = p->views.n;
}
static void d_dyn_chain(ir *p)
{
    p->forms.at[p->views.at[p->dyns.at[1].src].form].dyn = 1;
}
static void d_dyn_reg(ir *p)
{
    p->dyns.at[2].src = p->registers;
}
static void d_dyn_reg_unwritten(ir *p)
{
    p->dyns.at[2].src = 3;
}
static void d_tensor_dtype(ir *p)
{
    p->tensors.at[1].dtype = DT_COUNT;
}
static void d_tensor_buffer(ir *p)
{
    p->tensors.at[1].buffer = BUF_COUNT;
}
static void d_tensor_role(ir *p)
{
    p->tensors.at[1].role = 4;
}
static void d_tensor_ndim(ir *p)
{
    p->tensors.at[0].ndim = IR_MAX_DIMS + 1;
}
static void d_tensor_size(ir *p)
{
    p->tensors.at[1].size_bytes++;
}
static void d_tensor_shape(ir *p)
{
    p->tensors.at[0].shape[0] = p->tensors.at[0].shape[1] = UINT32_MAX;
}
static void d_tensor_parts(ir *p)
{
    p->tensors.at[1].partitions = 200;
}
static void d_tensor_addr(ir *p)
{
    p->tensors.at[1].addr_bytes = 229376 - 4;
}
static void d_tensor_addr_part(ir *p)
{
    p->tensors.at[1].addr_part = UINT32_MAX;
}
static void d_tensor_param(ir *p)
{
    p->tensors.at[0].param = 1;
}
static void d_tensor_data(ir *p)
{
    p->tensors.at[5].data = 64;
}
static void d_param(ir *p)
{
    p->params.at[0].tensor = 1;
}
static void d_output(ir *p)
{
    p->outputs.at[0] = p->views.n;
}
static void d_output_chip(ir *p)
{
    p->outputs.at[0] = 1;
}
static void d_registers(ir *p)
{
    p->registers = UINT32_MAX;
}
static void d_kernel(ir *p)
{
    p->kernel = p->strs.n;
}
static void d_grid(ir *p)
{
    p->grid = 3;
}
static void d_core(ir *p)
{
    p->core = 1;
}

static uint32_t list_at(const ir *p)
{
    uint32_t i = 0;
    while (p->args.at[i].kind != IRA_LIST) {
        i++;
    }
    return i;
}
static void d_list_self(ir *p)
{
    uint32_t i = list_at(p);
    p->args.at[i].v = i;
}
static void d_list_long(ir *p)
{
    p->args.at[list_at(p)].aux = INT16_MAX;
}
static void d_list_negative(ir *p)
{
    p->args.at[list_at(p)].aux = -1;
}
static void d_arg_kind(ir *p)
{
    p->args.at[0].kind = 77;
}
static void d_arg_view(ir *p)
{
    p->args.at[p->instrs.at[1].args].v = p->views.n;
}
static void d_arg_view_none(ir *p)
{
    p->args.at[p->instrs.at[1].args].v = 0;
}
static void d_arg_absent(ir *p)
{
    p->args.at[p->instrs.at[1].args] = ira_none();
}
static void d_arg_type(ir *p)
{
    p->args.at[p->instrs.at[1].args] = ira_int(3);
}
static void d_arg_enum(ir *p)
{
    p->args.at[p->instrs.at[1].args + 3] = ira_kind(IRA_ENUM, 99);
}
static void d_arg_reg(ir *p)
{
    p->args.at[p->instrs.at[0].args] = ira_kind(IRA_REG, 4);
}
static void d_arg_space(ir *p)
{
    p->forms.at[p->views.at[p->args.at[p->instrs.at[3].args].v].form].dyn = 0;
    p->args.at[p->instrs.at[3].args].v = p->args.at[p->instrs.at[2].args].v;
}

#define DAMAGE(name)                                                                               \
    {                                                                                              \
#name, d_##name                                                                            \
    }
static const struct {
    const char *name;
    damage apply;
} damages[] = {
    DAMAGE(op),
    DAMAGE(engine),
    DAMAGE(wrong_engine),
    DAMAGE(nargs),
    DAMAGE(args),
    DAMAGE(place),
    DAMAGE(name),
    DAMAGE(deps),
    DAMAGE(dep_forward),
    DAMAGE(dep_open),
    DAMAGE(loop),
    DAMAGE(loop_end),
    DAMAGE(parent),
    DAMAGE(place_kind),
    DAMAGE(place_file),
    DAMAGE(file),
    DAMAGE(view_tensor),
    DAMAGE(view_form),
    DAMAGE(view_ap),
    DAMAGE(view_dtype),
    DAMAGE(view_dyn),
    DAMAGE(view_offset),
    DAMAGE(view_part),
    DAMAGE(view_offset_big),
    DAMAGE(ap_first),
    DAMAGE(ap_ndim),
    DAMAGE(dim_count),
    DAMAGE(dim_count_big),
    DAMAGE(dim_stride),
    DAMAGE(dyn_kind),
    DAMAGE(dyn_src),
    DAMAGE(dyn_chain),
    DAMAGE(dyn_reg),
    DAMAGE(tensor_dtype),
    DAMAGE(tensor_buffer),
    DAMAGE(tensor_role),
    DAMAGE(tensor_ndim),
    DAMAGE(tensor_size),
    DAMAGE(tensor_shape),
    DAMAGE(tensor_parts),
    DAMAGE(tensor_addr),
    DAMAGE(tensor_addr_part),
    DAMAGE(tensor_param),
    DAMAGE(tensor_data),
    DAMAGE(param),
    DAMAGE(output),
    DAMAGE(output_chip),
    DAMAGE(registers),
    DAMAGE(kernel),
    DAMAGE(grid),
    DAMAGE(core),
    DAMAGE(list_self),
    DAMAGE(list_long),
    DAMAGE(list_negative),
    DAMAGE(arg_kind),
    DAMAGE(arg_view),
    DAMAGE(arg_view_none),
    DAMAGE(arg_absent),
    DAMAGE(arg_type),
    DAMAGE(arg_enum),
    DAMAGE(arg_reg),
    DAMAGE(arg_space),
    DAMAGE(dyn_reg_unwritten),
};

static void verify__refuses_every_damage(void **state)
{
    arena *a = *state;
    const char *why = ir_verify(sample(a), a);
    assert_string_equal(why ? why : "sound", "sound");
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        ir *p = sample(a);
        damages[i].apply(p);
        if (!ir_verify(p, a)) {
            fail_msg("accepted: %s", damages[i].name);
        }
    }
}

// Lists that name lists share elements; the walk over them stays linear.
static void verify__bounds_the_walk_over_shared_lists(void **state)
{
    arena *a = *state;
    ir *p = sample(a);
    enum { N = 1000 };
    ir_arg inner[N];
    for (int i = 0; i < N; i++) {
        inner[i] = ira_int(1);
    }
    ir_arg list = {IRA_LIST, 0, N, ir_list(p, inner, N)};
    for (int i = 0; i < N; i++) {
        inner[i] = list;
    }
    list.v = ir_list(p, inner, N);
    isa_id op;
    assert_true(isa_find("collective_permute", &op));
    ir_arg views = {IRA_LIST, 0, 0, 0};
    ir_arg args[4] = {views, views, list, ira_none()};
    ir_emit(p, op, ENG_DMA, args, 0, 0);
    const char *why = ir_verify(p, a);
    assert_non_null(why);
    assert_non_null(strstr(why, "lists overlap"));
}

// docs/ir.md states the sizes; ten million instructions depend on them.
static void records__have_the_stated_sizes(void **state)
{
    static const struct {
        const char *name;
        size_t size;
    } records[] = {
        {"ir_instr", sizeof(ir_instr)}, {"ir_arg", sizeof(ir_arg)},
        {"ir_named", sizeof(ir_named)}, {"ir_form", sizeof(ir_form)},
        {"ir_ap", sizeof(ir_ap)},       {"ir_dim", sizeof(ir_dim)},
        {"ir_dyn", sizeof(ir_dyn)},     {"ir_tensor", sizeof(ir_tensor)},
        {"ir_place", sizeof(ir_place)}, {"ir_param", sizeof(ir_param)},
    };
    FILE *f = fopen("../docs/ir.md", "rb");
    assert_non_null(f);
    char *text = NEW_N(*state, char, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        char row[64];
        snprintf(row, sizeof row, "\n| `%s` | %zu |", records[i].name, records[i].size);
        if (!strstr(text, row)) {
            fail_msg("docs/ir.md does not say:%s", row);
        }
    }
}

static size_t bytes_of(const ir *p)
{
    return p->instrs.n * sizeof(ir_instr) + p->args.n * sizeof(ir_arg) +
           p->views.n * sizeof(ir_named) + p->forms.n * sizeof(ir_form) + p->aps.n * sizeof(ir_ap) +
           p->dims.n * sizeof(ir_dim) + p->dyns.n * sizeof(ir_dyn);
}

// 1000 instructions over three tiles each that nothing else touches.
static void records__of_fresh_tiles_share_a_form(void **state)
{
    ir *p = ir_new(*state, target_find("trn2"));
    ir_tensor t = {.dtype = DT_float32,
                   .buffer = BUF_SBUF,
                   .ndim = 2,
                   .partitions = 128,
                   .shape = {128, 512},
                   .size_bytes = 2048,
                   .addr_bytes = ADDR_AUTO};
    size_t before = bytes_of(p);
    for (uint32_t i = 0; i < 1000; i++) {
        ir_arg a[5] = {[3] = ira_kind(IRA_OP, OPR_add), [4] = ira_kind(IRA_ENUM, 0)};
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t tensor = ir_tensor_add(p, t);
            a[k] = ira_view(ir_view_add(p, ir_view_whole(p, tensor)));
        }
        ir_emit(p, ISA_tensor_tensor, ENG_VECTOR, a, 0, 0);
    }
    assert_int_equal(p->forms.n, 2);  // the empty one, and theirs
    assert_in_range(bytes_of(p) - before, 1, 96 * 1000);
    ir_view v = ir_view_at(p, 3000);
    assert_int_equal(v.tensor, 2999);
    assert_int_equal(ir_elems(p, &v), 128 * 512);
    // Each field of a form tells two of them apart.
    ir_view w[5] = {v, v, v, v, v};
    w[0].offset++;
    w[1].part++;
    w[2].dtype = DT_int32;
    w[3].dyn = ir_dyn_add(p, (ir_dyn){.kind = DYN_REG, .step = 1});
    w[4].ap = ir_ap_of(p, &(ir_dim){1, 128, 0}, 1);
    for (uint32_t k = 0; k < 5; k++) {
        ir_view got = ir_view_at(p, ir_view_add(p, w[k]));
        assert_int_equal(p->forms.n, 3 + k);
        assert_int_equal(got.offset, w[k].offset);
        assert_int_equal(got.part, w[k].part);
        assert_int_equal(got.dtype, w[k].dtype);
        assert_int_equal(got.dyn, w[k].dyn);
        assert_int_equal(got.ap, w[k].ap);
    }
}

static void places__name_the_innermost_range_and_the_chain(void **state)
{
    arena *a = *state;
    ir *p = ir_new(a, target_find("trn2"));
    static const source src = {"k.nki", "one\ntwo\nthree\n", 14};
    p->kernel = ir_str(p, "kern", 4);
    uint32_t file = ir_file_add(p, "k.nki", &src), f = ir_str(p, "f", 1), i = ir_str(p, "i", 1);
    uint32_t iter = ir_place_add(
        p, (ir_place){.kind = PLACE_ITER, .what = i, .lo = 0xfffffffd, .hi = 0xffffffff});
    uint32_t call = ir_place_add(
        p,
        (ir_place){.kind = PLACE_CALL, .parent = iter, .what = f, .file = file, .lo = 4, .hi = 7});
    uint32_t inner =
        ir_place_add(p, (ir_place){.kind = PLACE_ITER, .parent = call, .what = i, .lo = 3});
    uint32_t site = ir_place_add(
        p, (ir_place){.kind = PLACE_SITE, .parent = inner, .file = file, .lo = 8, .hi = 99});
    loc at = ir_place_loc(p, site);
    assert_ptr_equal(at.src, &src);
    assert_int_equal(at.at.lo, 8);
    assert_int_equal(at.at.hi, 14);  // clamped to the text
    assert_int_equal(ir_place_loc(p, inner).at.lo, 4);
    assert_null(ir_place_loc(p, 0).src);
    diags ds;
    diags_init(&ds, a);
    diag *d = diag_hbm_full(&ds, at, "t", "[1]", "float32", 1, 1);
    ir_place_notes(p, site, &ds, d);
    const diag_note *n = d->notes;
    assert_string_equal(n->text, "with i = 3");
    n = n->next;
    assert_string_equal(n->text, "called from `kern`");
    assert_int_equal(n->at.at.lo, 4);
    n = n->next;
    assert_string_equal(n->text, "with i = -3");
    assert_null(n->next);
}

static void places__cut_a_long_chain(void **state)
{
    arena *a = *state;
    ir *p = ir_new(a, target_find("trn2"));
    uint32_t at = 0;
    for (int k = 0; k < 1000; k++) {
        at = ir_place_add(p, (ir_place){.kind = PLACE_ITER, .parent = at, .lo = (uint32_t)k});
    }
    diags ds;
    diags_init(&ds, a);
    diag *d = diag_hbm_full(&ds, (loc){0}, "t", "[1]", "float32", 1, 1);
    ir_place_notes(p, at, &ds, d);
    int notes = 0;
    bool said = false;
    const diag_note *last = NULL;
    for (const diag_note *n = d->notes; n; n = n->next) {
        notes++;
        said = said || strcmp(n->text, "... 976 more ...") == 0;
        last = n;
    }
    assert_int_equal(notes, 25);
    assert_true(said);
    assert_string_equal(last->text, "with  = 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IR_TEST(text__comes_back_the_same),
        IR_TEST(text__loops_registers_and_labels),
        IR_TEST(text__defaults_are_filled_in),
        IR_TEST(text__reads_views_as_numpy_would),
        IR_TEST(parse__says_where_it_stops),
        IR_TEST(parse__survives_damage),
        IR_TEST(verify__refuses_every_damage),
        IR_TEST(verify__bounds_the_walk_over_shared_lists),
        IR_TEST(records__have_the_stated_sizes),
        IR_TEST(records__of_fresh_tiles_share_a_form),
        IR_TEST(places__name_the_innermost_range_and_the_chain),
        IR_TEST(places__cut_a_long_chain),
    };
    return cmocka_run_group_tests_name("lang.ir", tests, NULL, NULL);
}
