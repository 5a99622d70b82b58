#include "sched/access.h"

// What of an instruction's arguments changes how it treats memory.
typedef struct instr_traits {
    bool may_skip;     // oob_mode.skip: any write may leave bytes as they were
    bool accumulates;  // a matmul that adds to dst, or might
    bool res_idle;     // reduce_cmd idle: reduce_res may stay as it was
} instr_traits;

static instr_traits traits_of(const ir *p, const ir_instr *in)
{
    instr_traits t = {0};
    const isa_param *par = isa_table[in->op].params;
    bool matmul = in->op == ISA_nc_matmul || in->op == ISA_nc_matmul_mx;
    for (uint32_t i = 0; i < in->nargs; i++) {
        ir_arg a = p->args.at[in->args + i];
        if (par[i].type == PT_OOB) {
            t.may_skip = a.kind == IRA_ENUM && a.v == ISAE_oob_mode_skip;
        } else if (par[i].type == PT_REDCMD) {
            t.res_idle = a.kind == IRA_ENUM && a.v == ISAE_reduce_cmd_idle;
        } else if (matmul && par[i].type == PT_TRI) {
            t.accumulates = a.kind != IRA_BOOL || a.v != 0;
        }
    }
    return t;
}

static void add_access(arena *mem, const ir *p, access_list *out, uint32_t view, unsigned kind)
{
    uint32_t dyn = ir_view_at(p, view).dyn;
    if (dyn) {
        kind &= ~(unsigned)ACC_FULL;
        if (p->dyns.at[dyn].kind != DYN_REG) {
            vec_push(mem, out, ((access){p->dyns.at[dyn].src, ACC_READ}));
        }
    }
    vec_push(mem, out, ((access){view, (uint8_t)kind}));
}

static void add_arg(arena *mem, const ir *p, access_list *out, ir_arg a, unsigned kind)
{
    if (a.kind == IRA_VIEW) {
        add_access(mem, p, out, a.v, kind);
    } else if (a.kind == IRA_LIST) {
        for (uint32_t i = 0; i < (uint32_t)a.aux; i++) {
            add_arg(mem, p, out, p->args.at[a.v + i], kind);
        }
    }
}

static bool is_dst(const isa_param *par)
{
    return par->name[0] == 'd' && par->name[1] == 's' && par->name[2] == 't';
}

static unsigned access_of(const isa_param *par, instr_traits t)
{
    switch ((param_type)par->type) {
    case PT_OUT: {
        bool dst = is_dst(par) && !par->name[3];
        if (t.accumulates && dst) {
            return ACC_READ | ACC_WRITE;
        }
        bool sure = !t.may_skip && !(t.res_idle && !dst);
        return sure ? ACC_WRITE | ACC_FULL : ACC_WRITE;
    }
    case PT_INOUT: return ACC_READ | ACC_WRITE;
    case PT_TENSORS:
        // The collectives' lists: dsts, dsts_by_channel.
        return is_dst(par) ? ACC_WRITE : ACC_READ;
    default: return ACC_READ;
    }
}

// Adds what `in` does at the end of out.
static void append(arena *mem, const ir *p, const ir_instr *in, access_list *out)
{
    instr_traits t = traits_of(p, in);
    const isa_param *par = isa_table[in->op].params;
    for (int writes = 0; writes < 2; writes++) {
        for (uint32_t i = 0; i < in->nargs; i++) {
            ir_arg a = p->args.at[in->args + i];
            if (a.kind != IRA_VIEW && a.kind != IRA_LIST) {
                continue;
            }
            unsigned kind = access_of(&par[i], t);
            if (((kind & ACC_READ) == 0) == writes) {
                add_arg(mem, p, out, a, kind);
            }
        }
    }
}

void access_collect(arena *mem, const ir *p, const ir_instr *in, access_list *out)
{
    out->n = 0;
    append(mem, p, in, out);
}

void access_table_make(arena *mem, const ir *p, access_table *t)
{
    *t = (access_table){.first = NEW_N(mem, uint32_t, p->instrs.n + 1)};
    vec_reserve(mem, &t->all, p->views.n);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        append(mem, p, &p->instrs.at[i], &t->all);
        t->first[i + 1] = t->all.n;
    }
}
