#include "driver/inspect.h"
#include "neff/neff.h"
#include "runtime/kernel.h"
#include "sched/linearise.h"

#include <nki/tool.h>
#include <nki/version.h>

#include <stdio.h>
#include <string.h>

#define TEXT2(x) #x
#define TEXT(x)  TEXT2(x)

const char *nki_version_string(void)
{
    return TEXT(NKI_VERSION_MAJOR) "." TEXT(NKI_VERSION_MINOR) "." TEXT(NKI_VERSION_PATCH);
}

// ---- parsing alone

typedef struct found_list {
    nki_context *ctx;
    nki_entry *entries;
    size_t cap, count;
} found_list;

static void found(void *arg, const kernel_info *k, uint32_t n)
{
    found_list *f = arg;
    f->count = n;
    for (uint32_t i = 0; i < n && i < f->cap; i++) {
        f->entries[i] = (nki_entry){arena_text(&f->ctx->parse_mem, k[i].name, strlen(k[i].name)),
                                    source_locate(k[i].at.src, k[i].at.at.lo).line, k[i].nparams,
                                    k[i].nrequired};
    }
}

nki_status
nki_tool_parse(nki_context *ctx, const nki_source *src,
               void (*dump)(void *dump_ctx, const char *stage, const char *text, size_t len),
               void *dump_ctx, nki_diags *ds, nki_entry *entries, size_t cap, size_t *count)
{
    if (!ctx || !src || (!src->path && !src->text) || (cap && !entries)) {
        return NKI_ERR_ARG;
    }
    found_list f = {ctx, entries, cap, 0};
    arena_fini(&ctx->parse_mem);
    compile_request rq = context_request(ctx, src);
    rq.dump = dump;
    rq.dump_ctx = dump_ctx;
    rq.dump_stages = dump ? "ast" : NULL;
    rq.found = found;
    rq.found_ctx = &f;
    compile_result r;
    nki_status st = compile(&rq, ds, &r);
    if (st != NKI_OK) {
        context_fail(ctx, st, "%s", r.why);
    }
    compile_result_fini(&r);
    if (count) {
        *count = f.count;
    }
    return st;
}

// ---- containers

const char *nki_tool_neff_target(const void *neff, size_t len)
{
    const target *t = neff ? neff_target(neff, len) : NULL;
    return t ? t->name : NULL;
}

// Each container of the file, one after the other.
static nki_status inspect(nki_context *ctx, const unsigned char *bytes, size_t len,
                          inspect_form form, textbuf *out)
{
    uint32_t parts = neff_parts(bytes, len, COMPILE_CORES_MAX);
    for (uint32_t i = 0; i < parts; i++) {
        size_t part = i + 1 < parts ? neff_file_bytes(bytes) : len;
        const char *why = NULL;
        if (i && form != INSPECT_SPILLS) {
            text_char(out, '\n');
        }
        nki_status st = inspect_neff(bytes, part, form, out, &why);
        if (st != NKI_OK) {
            return context_fail(ctx, st, "%s", why ? why : nki_status_text(st));
        }
        bytes += part;
        len -= part;
    }
    return NKI_OK;
}

nki_status nki_tool_inspect(nki_context *ctx, const void *neff, size_t len, nki_inspect_form form,
                            const char **text, size_t *text_len)
{
    static const inspect_form forms[] = {[NKI_INSPECT_ALL] = INSPECT_ALL,
                                         [NKI_INSPECT_MEMORY] = INSPECT_MEMORY,
                                         [NKI_INSPECT_MEMORY_SVG] = INSPECT_MEMORY_SVG,
                                         [NKI_INSPECT_SPILLS] = INSPECT_SPILLS};
    if (!ctx || !neff || !text || !text_len || (unsigned)form > NKI_INSPECT_SPILLS) {
        return NKI_ERR_ARG;
    }
    arena_fini(&ctx->parse_mem);
    if (setjmp(ctx->oom)) {
        return context_fail(ctx, NKI_ERR_NOMEM, "out of memory while reading a container");
    }
    textbuf t;
    text_init(&t, &ctx->parse_mem);
    nki_status st = inspect(ctx, neff, len, forms[form], &t);
    *text = st == NKI_OK && t.len ? t.at : "";
    *text_len = st == NKI_OK ? t.len : 0;
    return st;
}

// ---- other orders

// The program with its instructions in another order; NULL: its streams come to a stop.
static program *reorder(arena *mem, const program *pr, uint64_t seed)
{
    uint32_t n = pr->ir->instrs.n, *order = NEW_N(mem, uint32_t, n);
    if (!sched_linearise(pr, mem, seed, order)) {
        return NULL;
    }
    program *q = NEW(mem, program);
    *q = *pr;
    q->ir = NEW(mem, ir);
    *q->ir = *pr->ir;
    q->ir->instrs.at = NEW_N(mem, ir_instr, n);
    for (uint32_t i = 0; i < n; i++) {
        q->ir->instrs.at[i] = pr->ir->instrs.at[order[i]];
        q->ir->instrs.at[i].deps = IR_NONE;  // they number instructions
    }
    return q;
}

nki_status nki_tool_reorder(nki_kernel *k, uint64_t seed)
{
    if (!k || k->shared) {
        return NKI_ERR_ARG;
    }
    nki_status sound = nki_kernel_verify(k);
    if (sound != NKI_OK) {
        return sound;
    }
    if (setjmp(k->oom)) {
        return context_fail(k->ctx, NKI_ERR_NOMEM, "out of memory while reordering a kernel");
    }
    for (uint32_t i = 0; i < k->core_count; i++) {
        kernel_core *c = &k->core[i];
        const char *why = "the streams of the schedule come to a stop";
        program *q = reorder(&k->mem, c->pr, seed + i);
        device_program *bound = NULL;
        nki_status st =
            q ? device_bind_from(q, &k->ctx->allocator, &bound, &why) : NKI_ERR_INTERNAL;
        if (st != NKI_OK) {
            return context_fail(k->ctx, st, "%s", why ? why : nki_status_text(st));
        }
        if (c->reordered) {
            device_program_release(c->reordered);
        }
        c->reordered = bound;
    }
    return NKI_OK;
}

// ---- the instruction table

static const char *const group_names[] = {
    [ISAG_NISA] = "nki.isa", [ISAG_NCC] = "nki.collectives", [ISAG_CTRL] = "control"};
static const char *const status_names[] = {[ISAS_DONE] = "done", [ISAS_PLANNED] = "planned"};
static const char *const cost_names[] = {[COST_MATMUL] = "matmul",
                                         [COST_TRANSPOSE] = "transpose",
                                         [COST_ONE_INPUT] = "one input",
                                         [COST_TWO_INPUT] = "two inputs",
                                         [COST_MEMSET] = "memset",
                                         [COST_GPSIMD] = "gpsimd",
                                         [COST_TOPK] = "top-k",
                                         [COST_REDUCE_OUT] = "reduce, small output",
                                         [COST_RECIPROCAL] = "reciprocal",
                                         [COST_EXPONENTIAL] = "exponential",
                                         [COST_BN_AGGR] = "bn_aggr",
                                         [COST_QUANTIZE_MX] = "quantize_mx",
                                         [COST_RAND2] = "random",
                                         [COST_DMA] = "dma",
                                         [COST_FIXED] = "fixed",
                                         [COST_FREE] = "free"};

static const char *const kind_names[] = {
    [PT_OUT] = "output tensor",
    [PT_INOUT] = "tensor, read and written",
    [PT_IN] = "tensor",
    [PT_SCAL] = "number or (P, 1) tensor",
    [PT_SRC] = "number or tensor",
    [PT_F32] = "number",
    [PT_INT] = "int",
    [PT_IREG] = "int or register",
    [PT_BOOL] = "bool",
    [PT_TRI] = "bool or None",
    [PT_OP] = "operator",
    [PT_ENGINE] = "nki.isa.engine",
    [PT_REDCMD] = "nki.isa.reduce_cmd",
    [PT_DGE] = "nki.isa.dge_mode",
    [PT_OOB] = "nki.isa.oob_mode",
    [PT_PERF] = "nki.isa.matmul_perf_mode",
    [PT_DMAENG] = "nki.isa.dma_engine",
    [PT_INTS] = "ints",
    [PT_PAIRS] = "list of [step, count]",
    [PT_TENSORS] = "tensors",
    [PT_FLOATS] = "numbers",
    [PT_REGOUT] = "register, written",
    [PT_REG] = "register or int",
    [PT_STR] = "str",
    [PT_LEGACY] = "accepted, ignored, warned about",
};

static const char *spaces_text(unsigned spaces)
{
    static const char *const texts[8] = {"",    "SBUF",      "PSUM",      "SBUF, PSUM",
                                         "HBM", "SBUF, HBM", "PSUM, HBM", "SBUF, PSUM, HBM"};
    return texts[spaces & 7];
}

// Text for a set of engines; one buffer a set, filled at most once with the same bytes.
static const char *engines_text(unsigned set)
{
    static const char *const texts[1 << ENG_COUNT] = {
        [E_T] = "Tensor",
        [E_S] = "Scalar",
        [E_V] = "Vector",
        [E_G] = "GpSimd",
        [E_Y] = "Sync",
        [E_D] = "DMA",
        [E_T | E_V] = "Tensor, Vector",
        [E_V | E_G] = "Vector, GpSimd",
        [E_V | E_S] = "Vector, Scalar",
        [E_S | E_G] = "Scalar, GpSimd",
        [E_V | E_S | E_G] = "Vector, Scalar, GpSimd",
        [E_D | E_G] = "DMA, GpSimd",
        [E_ALL] = "any",
        [E_T | E_S | E_V | E_G | E_Y] = "any but DMA",
        [E_T | E_S | E_V | E_G] = "Tensor, Scalar, Vector, GpSimd",
        [E_T | E_V | E_S | E_G | E_D] = "any but Sync",
    };
    const char *t = set < sizeof texts / sizeof *texts ? texts[set] : NULL;
    return set == 0 ? "" : t ? t : "several";
}

size_t nki_isa_count(void)
{
    return ISA_COUNT;
}

nki_status nki_isa_at(size_t i, nki_isa_row *out)
{
    if (!out || i >= ISA_COUNT) {
        return NKI_ERR_ARG;
    }
    const isa_info *r = &isa_table[i];
    *out = (nki_isa_row){.name = r->name,
                         .group = group_names[r->group],
                         .cost = cost_names[r->cost],
                         .status = status_names[r->status],
                         .doc = r->doc,
                         .param_count = r->nparams};
    for (int g = 0; g < 3; g++) {
        out->engines[g] = engines_text(r->engines[g]);
    }
    return NKI_OK;
}

// A default as kernel code would write it. Numbers that occur in the table have their own text.
static const char *default_text(const isa_param *p)
{
    switch ((default_kind)p->dflt) {
    case DK_REQ: return NULL;
    case DK_NONE: return "None";
    case DK_FALSE: return "False";
    case DK_TRUE: return "True";
    case DK_EMPTY: return "()";
    case DK_OP: return op_table[p->i].name;
    case DK_ENUM: return isa_enum_member(isa_param_enum((param_type)p->type), p->i);
    case DK_I: {
        static const char *const small[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
        return p->i >= 0 && p->i <= 8 ? small[p->i] : p->i == -1 ? "-1" : "int";
    }
    case DK_F: break;
    }
    return p->f == 0.0    ? "0.0"
           : p->f == 1.0  ? "1.0"
           : p->f < -3e38 ? "-3.4028235e+38"
           : p->f > 3e38  ? "3.4028235e+38"
                          : "float";
}

nki_status nki_isa_param_at(size_t row, size_t i, nki_isa_param *out)
{
    if (!out || row >= ISA_COUNT || i >= isa_table[row].nparams) {
        return NKI_ERR_ARG;
    }
    const isa_param *p = &isa_table[row].params[i];
    *out = (nki_isa_param){p->name, kind_names[p->type], spaces_text(p->spaces), default_text(p)};
    return NKI_OK;
}

// ---- diagnostics

size_t nki_diag_row_count(void)
{
    return D_COUNT;
}

nki_status nki_diag_row_at(size_t i, nki_diag_row *out)
{
    if (!out || i >= D_COUNT) {
        return NKI_ERR_ARG;
    }
    diag_id id = (diag_id)i;
    *out = (nki_diag_row){diag_name(id),
                          diag_meaning(id),
                          diag_example(id),
                          diag_fix(id),
                          (nki_severity)diag_severity(id),
                          diag_exception(id)};
    return NKI_OK;
}
