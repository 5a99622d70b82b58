#include "lower/check.h"

#include <string.h>

// Instructions that move data between memories and between cores.

static uint64_t elems(const operand *o)
{
    return o->free_elems * o->partitions;
}

static bool packed(uint8_t dt)
{
    return dtype_class_of((dtype)dt) == DTC_X;
}

static diag *same_count(check *c, uint8_t a, uint8_t b)
{
    if (elems(&c->in[a]) == elems(&c->in[b])) {
        return NULL;
    }
    return diag_dma_count_mismatch(c->e->pend, c->at, INSN(c), check_what(c, a),
                                   (unsigned long long)elems(&c->in[a]), check_what(c, b),
                                   (unsigned long long)elems(&c->in[b]));
}

static diag *priority(check *c, uint8_t i)
{
    if (arg_none(c, i)) {
        return NULL;
    }
    int64_t v = ira_integer(c->args[i]);
    if (v < 0 || v > 3) {
        return diag_dma_priority(c->e->pend, c->at, INSN(c),
                                 check_text(c, "priority %lld is not 0 to 3", (long long)v));
    }
    if (c->e->gen < 4) {
        return diag_not_on_target(c->e->pend, c->at, check_text(c, "%s: priority", INSN(c)),
                                  "trn3 (gen4)", c->t->name);
    }
    return NULL;
}

// A gather or scatter: rows of HBM at indices that SBUF holds, one a partition.
static diag *vector_view(check *c, const operand *o, const char *what)
{
    if (o->dyn != DYN_VECTOR) {
        return NULL;
    }
    const ir_view *index = ir_view_ref(c->p, c->p->dyns.at[o->view->dyn].src);
    const ir_tensor *t = &c->p->tensors.at[index->tensor];
    const char *why = NULL;
    if (buffer_on_chip((buffer_kind)o->buffer)) {
        why = "vector_offset selects rows of HBM";
    } else if (t->buffer != BUF_SBUF) {
        why = check_text(c, "%s must be in SBUF", check_view_text(c->e, "vector_offset", index));
    } else if (index->dtype != DT_int32 && index->dtype != DT_uint32) {
        why = check_text(c, "%s must be int32 or uint32",
                         check_view_text(c->e, "vector_offset", index));
    } else if (ir_free_elems(c->p, index) != 1 || ir_partitions(c->p, index) < o->partitions) {
        why =
            check_text(c, "%s must hold one index for each of the %u rows: shape (%u, 1)",
                       check_view_text(c->e, "vector_offset", index), o->partitions, o->partitions);
    }
    return why ? diag_vector_offset(c->e->pend, c->at, INSN(c), what, why) : NULL;
}

static diag *dge(check *c, uint8_t dgei, uint8_t dst, uint8_t src)
{
    int mode = (int)c->args[dgei].v;
    if (mode == ISAE_dge_mode_hwdge && c->e->gen < 3) {
        return diag_not_on_target(c->e->pend, c->at, check_text(c, "%s: dge_mode hwdge", INSN(c)),
                                  "trn2 (gen3) or later", c->t->name);
    }
    if (mode == ISAE_dge_mode_hwdge && c->in[dst].dtype != c->in[src].dtype) {
        diag *d =
            diag_hwdge_dtype(c->e->pend, c->at, INSN(c), check_what(c, src), check_what(c, dst));
        diag_help(c->e->pend, d, "leave dge_mode out, or convert with tensor_copy");
        return d;
    }
    for (int k = 0; k < 2; k++) {
        uint8_t i = k ? src : dst;
        diag *d = vector_view(c, &c->in[i], c->in[i].dyn == DYN_VECTOR ? check_what(c, i) : "");
        if (!d && c->in[i].dyn == DYN_VECTOR && mode != ISAE_dge_mode_unknown &&
            mode != ISAE_dge_mode_swdge) {
            d = diag_vector_offset(c->e->pend, c->at, INSN(c), check_what(c, i),
                                   "only dge_mode swdge (or unknown) takes a vector_offset");
        }
        if (d) {
            return d;
        }
    }
    return NULL;
}

diag *check_dma_copy(check *c)
{
    enum { DST = ARG(dma_copy, dst), SRC = ARG(dma_copy, src) };
    int mode = (int)c->args[ARG(dma_copy, dge_mode)].v;
    int engine = (int)c->args[ARG(dma_copy, engine)].v;
    diag *d = same_count(c, DST, SRC);
    if (!d && c->in[DST].dtype != c->in[SRC].dtype &&
        (packed(c->in[DST].dtype) || packed(c->in[SRC].dtype))) {
        d = diag_dma_packed_cast(c->e->pend, c->at, INSN(c), check_what(c, SRC),
                                 check_what(c, DST));
    }
    if (!d) {
        d = dge(c, ARG(dma_copy, dge_mode), DST, SRC);
    }
    if (!d && engine != ISAE_engine_unknown) {
        const char *name = isa_enum_member(ISA_ENUM_engine, engine);
        if (engine != ISAE_engine_sync && engine != ISAE_engine_scalar &&
            mode == ISAE_dge_mode_hwdge) {
            d = diag_hwdge_engine(
                c->e->pend, c->at, INSN(c),
                check_text(c, "engine %s cannot trigger a hwdge DMA; sync and scalar can",
                           name ? name : "?"));
        } else if (mode != ISAE_dge_mode_hwdge) {
            d = diag_hwdge_engine(
                c->e->pend, c->at, INSN(c),
                "engine= chooses who triggers the DMA, and only dge_mode hwdge has a choice");
            diag_help(c->e->pend, d, "leave engine= out or add dge_mode=nisa.dge_mode.hwdge");
        }
    }
    if (!d && c->args[ARG(dma_copy, oob_mode)].v == ISAE_oob_mode_skip && !c->in[DST].dyn &&
        !c->in[SRC].dyn) {
        d = diag_oob_skip_static(c->e->pend, c->at, INSN(c));
        diag_help(c->e->pend, d, "leave oob_mode out");
    }
    return d ? d : priority(c, ARG(dma_copy, priority));
}

// ---- dma_transpose

static const char *shape_text(check *c, const uint32_t *shape, uint32_t n)
{
    textbuf out;
    text_init(&out, c->e->mem);
    text_char(&out, '[');
    for (uint32_t i = 0; i < n; i++) {
        text_printf(&out, i ? ", %u" : "%u", shape[i]);
    }
    text_char(&out, ']');
    return out.at;
}

// What the DMA hardware transposes by itself; NULL, or why it does not.
static const char *beyond_hardware(const operand *s)
{
    uint32_t n = s->ndim;
    if (dtype_size((dtype)s->dtype) != 2) {
        return "transposes 2-byte elements";
    }
    if (s->dims[n - 1].count > 128) {
        return "takes at most 128 elements in the last dimension";
    }
    uint32_t first = s->dims[0].count, last2 = s->dims[n - 2].count;
    if (n == 2) {
        return first == 16 ? NULL : "takes 16 rows of a 2-D operand";
    }
    if (first > 16 || (first & (first - 1))) {
        return "takes 1, 2, 4, 8 or 16 in the first dimension";
    }
    return (uint64_t)first * last2 % 16 ? "takes a multiple of 16 rows" : NULL;
}

static diag *transpose_hw(check *c, uint8_t src, int mode)
{
    const operand *s = &c->in[src];
    const char *why = beyond_hardware(s);
    if (mode == ISAE_dge_mode_hwdge && why) {
        diag *d =
            diag_dma_transpose_limit(c->e->pend, c->at, INSN(c), check_what(c, src), "hwdge", why);
        diag_help(c->e->pend, d, "leave dge_mode out");
        return d;
    }
    if (why && s->dyn != DYN_VECTOR && check_warn_first(c->e, D_dma_transpose_large, c->at)) {
        diag_dma_transpose_large(c->e->warn, c->at, INSN(c), check_what(c, src));
    }
    return NULL;
}

// Rows of HBM at the indices of a whole SBUF tile: the index count, not one a partition.
static diag *transpose_gather(check *c, uint8_t src, int mode)
{
    const operand *s = &c->in[src];
    const char *why = NULL;
    if (c->e->gen < 3) {
        return diag_not_on_target(c->e->pend, c->at,
                                  check_text(c, "%s: an indirect source", INSN(c)),
                                  "trn2 (gen3) or later", c->t->name);
    }
    if (mode == ISAE_dge_mode_hwdge || mode == ISAE_dge_mode_none) {
        return diag_vector_offset(c->e->pend, c->at, INSN(c), check_what(c, src),
                                  "only dge_mode swdge (or unknown) takes a vector_offset");
    }
    const ir_view *index = ir_view_ref(c->p, c->p->dyns.at[s->view->dyn].src);
    uint64_t rows = ir_partitions(c->p, index), cols = ir_free_elems(c->p, index);
    if (dtype_size((dtype)s->dtype) != 2) {
        why = "takes 2-byte elements";
    } else if (s->dims[s->ndim - 1].count > 128) {
        why = "takes at most 128 elements in the last dimension";
    } else if (s->dims[0].count % 16) {
        why = "takes a multiple of 16 rows";
    } else if (s->ndim == 4 && s->dims[1].count != 1 && s->dims[2].count != 1) {
        why = "takes 4-D sources whose dimension 1 or 2 is 1";
    } else if (rows < 16 || rows > 128 || rows % 16 || (cols > 1 && rows != 128)) {
        why = "takes indices of 16 to 128 rows, a multiple of 16, and of 128 when there are more "
              "columns";
    } else if (rows * cols < s->dims[0].count) {
        why = "takes an index for each row";
    }
    return why ? diag_dma_transpose_limit(c->e->pend, c->at, INSN(c), check_what(c, src), "swdge",
                                          why)
               : NULL;
}

diag *check_dma_transpose(check *c)
{
    enum { DST = ARG(dma_transpose, dst), SRC = ARG(dma_transpose, src) };
    static const int64_t orders[5][4] = {{0}, {0}, {1, 0}, {2, 1, 0}, {3, 1, 2, 0}};
    static const char *const texts[5] = {"", "", "(1, 0)", "(2, 1, 0)", "(3, 1, 2, 0)"};
    const operand *s = &c->in[SRC], *r = &c->in[DST];
    int mode = (int)c->args[ARG(dma_transpose, dge_mode)].v;
    int64_t axes[IR_MAX_DIMS];
    if (s->ndim < 2 || s->ndim > 4) {
        return diag_shape_expected(c->e->pend, c->at, INSN(c), check_what(c, SRC),
                                   "2, 3 or 4 dimensions");
    }
    uint32_t n = check_ints(c, ARG(dma_transpose, axes), axes, IR_MAX_DIMS);
    if (n && (n != s->ndim || memcmp(axes, orders[n], n * sizeof *axes) != 0)) {
        return diag_dma_transpose_axes(c->e->pend, c->at, INSN(c), check_what(c, SRC),
                                       texts[s->ndim]);
    }
    uint32_t want[4];
    bool same = r->ndim == s->ndim;
    for (uint32_t i = 0; i < s->ndim; i++) {
        want[i] = s->dims[orders[s->ndim][i]].count;
        same = same && r->dims[i].count == want[i];
    }
    if (!same) {
        return diag_dma_transpose_shape(c->e->pend, c->at, INSN(c), check_what(c, DST),
                                        shape_text(c, want, s->ndim), check_what(c, SRC),
                                        texts[s->ndim]);
    }
    diag *d = check_same_dtype(c, DST, SRC);
    if (!d && s->dyn == DYN_VECTOR) {
        d = transpose_gather(c, SRC, mode);
    } else if (!d) {
        d = dge(c, ARG(dma_transpose, dge_mode), DST, SRC);
    }
    if (!d) {
        d = transpose_hw(c, SRC, mode);
    }
    if (!d && c->args[ARG(dma_transpose, oob_mode)].v == ISAE_oob_mode_skip && !s->dyn && !r->dyn) {
        d = diag_oob_skip_static(c->e->pend, c->at, INSN(c));
    }
    return d ? d : priority(c, ARG(dma_transpose, priority));
}

// ---- dma_compute

static diag *compute_fault(check *c, const char *why)
{
    return diag_dma_compute_argument(c->e->pend, c->at, INSN(c), why);
}

static diag *compute_source(check *c, const ir_view *v, uint32_t k, bool *indirect)
{
    const ir_tensor *t = &c->p->tensors.at[v->tensor];
    const char *label = check_text(c, "srcs[%u]", k);
    if (t->buffer == BUF_PSUM) {
        return diag_dma_psum(c->e->pend, c->at, INSN(c), check_view_text(c->e, label, v));
    }
    if (ir_elems(c->p, v) != elems(&c->in[0])) {
        return diag_dma_count_mismatch(
            c->e->pend, c->at, INSN(c), check_what(c, 0), (unsigned long long)elems(&c->in[0]),
            check_view_text(c->e, label, v), (unsigned long long)ir_elems(c->p, v));
    }
    if (v->dyn && c->p->dyns.at[v->dyn].kind == DYN_VECTOR) {
        operand o = {.view = v,
                     .tensor = t,
                     .dyn = DYN_VECTOR,
                     .buffer = t->buffer,
                     .partitions = ir_partitions(c->p, v)};
        *indirect = true;
        return vector_view(c, &o, check_view_text(c->e, label, v));
    }
    return NULL;
}

static ir_view compute_view(const check *c, const ir_arg *srcs, uint32_t k)
{
    return ir_view_at(c->p, c->p->args.at[srcs->v + k].v);
}

static bool compute_static(const check *c, const ir_arg *srcs)
{
    bool fixed = !c->in[0].view->dyn;
    for (uint32_t k = 0; k < (uint16_t)srcs->aux; k++) {
        fixed = fixed && !compute_view(c, srcs, k).dyn;
    }
    return fixed;
}

static bool compute_in_place(const check *c, const ir_arg *srcs)
{
    uint32_t own = c->in[0].view->tensor;
    return compute_view(c, srcs, 0).tensor == own || compute_view(c, srcs, 1).tensor == own;
}

diag *check_dma_compute(check *c)
{
    const ir_arg *srcs = &c->args[ARG(dma_compute, srcs)],
                 *scales = &c->args[ARG(dma_compute, scales)];
    uint32_t n = (uint16_t)srcs->aux;
    bool indirect = c->in[0].dyn == DYN_VECTOR;
    if (arg_op(c, ARG(dma_compute, reduce_op)) != OPR_add) {
        return diag_op_not_allowed(c->e->pend, c->at, INSN(c), "reduce_op",
                                   op_table[arg_op(c, ARG(dma_compute, reduce_op))].name, "",
                                   "add");
    }
    if (n < 1 || n > 16) {
        return compute_fault(c, check_text(c, "srcs has %u tensors; it takes 1 to 16", n));
    }
    diag *d = vector_view(c, &c->in[0], indirect ? check_what(c, 0) : "");
    for (uint32_t k = 0; k < n && !d; k++) {
        ir_view v = compute_view(c, srcs, k);
        d = compute_source(c, &v, k, &indirect);
    }
    if (d) {
        return d;
    }
    if (scales->kind == IRA_LIST) {
        if ((uint16_t)scales->aux != n) {
            return compute_fault(c, check_text(c, "scales has %u numbers for %u sources",
                                               (unsigned)(uint16_t)scales->aux, n));
        }
        for (uint32_t k = 0; k < n; k++) {
            const ir_arg *x = &c->p->args.at[scales->v + k];
            float f = x->kind == IRA_F32 ? ira_float(*x) : (float)ira_integer(*x);
            if (f != 1.0f) {
                return compute_fault(c, "every scale must be 1.0");
            }
        }
    }
    if (!indirect && !compute_static(c, srcs)) {
        return compute_fault(c, "without a vector_offset every address must be known");
    }
    if (indirect && n == 2 && !compute_in_place(c, srcs)) {
        return compute_fault(c, "with a vector_offset it adds to dst: one source must be dst");
    }
    if (indirect && n != 2) {
        return compute_fault(c,
                             check_text(c, "with a vector_offset it takes 2 sources, not %u", n));
    }
    if (indirect && !ira_integer(c->args[ARG(dma_compute, unique_indices)])) {
        return compute_fault(c, "with a vector_offset unique_indices must be True");
    }
    if (c->args[ARG(dma_compute, oob_mode)].v == ISAE_oob_mode_skip && !indirect) {
        return diag_oob_skip_static(c->e->pend, c->at, INSN(c));
    }
    return NULL;
}

// ---- two cores

static diag *two_core(check *c, const char *why)
{
    return diag_two_core_argument(c->e->pend, c->at, INSN(c), why);
}

diag *check_core_barrier(check *c)
{
    int64_t cores[2] = {0};
    uint32_t n = check_ints(c, ARG(core_barrier, cores), cores, 2);
    if (c->p->grid != 2) {
        return two_core(c, "needs a kernel launched on two cores: kernel[2](...)");
    }
    if (n != 2 || cores[0] != 0 || cores[1] != 1) {
        return two_core(c, "cores must be (0, 1)");
    }
    // A tile in SBUF orders the barrier after what this core does with it.
    if (c->in[0].buffer != BUF_SBUF && c->in[0].buffer != BUF_SHARED &&
        c->in[0].tensor->role != ROLE_ARG) {
        return diag_space_not_allowed(c->e->pend, c->at, INSN(c), check_what(c, 0), "shared HBM");
    }
    return NULL;
}

diag *check_sendrecv(check *c)
{
    enum { SRC = ARG(sendrecv, src), DST = ARG(sendrecv, dst) };
    bool gpsimd = c->args[ARG(sendrecv, dma_engine)].v == ISAE_dma_engine_gpsimd_dma;
    c->engine = gpsimd ? ENG_GPSIMD : ENG_DMA;
    if (c->p->grid != 2) {
        return two_core(c, "needs a kernel launched on two cores: kernel[2](...)");
    }
    diag *d = check_same_dtype(c, SRC, DST);
    if (!d) {
        d = check_same_partitions(c, SRC, DST);
    }
    if (!d) {
        d = same_count(c, SRC, DST);
    }
    for (int k = 0; k < 2 && !d; k++) {
        uint8_t i = k ? ARG(sendrecv, recv_from_rank) : ARG(sendrecv, send_to_rank);
        int64_t rank = c->args[i].kind == IRA_REG ? 0 : ira_integer(c->args[i]);
        if (rank != 0 && rank != 1) {
            d = two_core(c, check_text(c, "%s %lld is not a core: 0 or 1", c->info->params[i].name,
                                       (long long)rank));
        }
    }
    if (!d && gpsimd) {
        uint64_t size = dtype_size((dtype)c->in[SRC].dtype), bytes = size * c->in[SRC].free_elems;
        if (bytes > 256 * size) {
            d = two_core(
                c, check_text(c, "%s has %llu bytes a partition; dma_engine gpsimd_dma moves %llu",
                              check_what(c, SRC), (unsigned long long)bytes,
                              (unsigned long long)(256 * size)));
        }
    }
    return d;
}
