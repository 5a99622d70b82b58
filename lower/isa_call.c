// Calls of nki.isa functions: arguments bound by the instruction table, then checked and emitted.
#include "lower/interp.h"

#include <string.h>

enum { MAX_PARAMS = 16, MAX_LIST = 4096 };

// Which parameter each argument of a call expression fills; made at the first call.
typedef struct call_map {
    isa_id op;
    uint8_t param[MAX_PARAMS];  // of each argument in order; NAME_PARAM: name=
} call_map;

enum { NAME_PARAM = 255 };

static value bad_argument(interp *it, isa_id op, const isa_param *p, const char *wanted, value got)
{
    textbuf t;
    text_init(&t, it->mem);
    if (got.tag == V_TENSOR) {
        text_cstr(&t, "the tensor ");
        tensor_describe(got.u.tensor, &t);
    } else if (repr_into(it, got, &t) && t.len > 60) {
        t.len = 0;
        text_printf(&t, "a value of type %s", type_name(it, got));
    }
    it->exc = VUNDEF;
    return interp_raise(it, diag_operand_kind(&it->pend, interp_loc(it), isa_table[op].name,
                                              p->name, wanted, t.at));
}

bool value_op(interp *it, value v, op_id *out)
{
    (void)it;
    if (v.tag == V_OP) {
        *out = (op_id)v.u.i;
        return true;
    }
    if (v.tag == V_FUNC && v.u.func->op >= 0) {
        *out = (op_id)v.u.func->op;
        return true;
    }
    if (v.tag == V_METHOD) {
        return value_op(it, v.u.method->fn, out);
    }
    return false;
}

static bool number_arg(value v, ir_arg *out)
{
    switch ((vtag)v.tag) {
    case V_FLOAT: *out = ira_f32((float)v.u.d); return true;
    case V_INT:
        if (v.u.i < -((int64_t)1 << 32) || v.u.i >= (int64_t)1 << 32) {
            *out = ira_f32((float)v.u.i);
        } else {
            *out = ira_int(v.u.i);
        }
        return true;
    case V_BOOL: *out = ira_int(v.u.b); return true;
    case V_OBJ: return v.u.obj->base.tag != V_UNDEF && number_arg(v.u.obj->base, out);
    default: return false;
    }
}

static bool list_arg(interp *it, const ir_arg *at, uint32_t n, ir_arg *out)
{
    if (n > MAX_LIST) {
        value_error(it, "a list of %u members is too long; the limit is %d", n, MAX_LIST);
        return false;
    }
    *out = (ir_arg){IRA_LIST, 0, (int16_t)n, ir_list(it->p, at, n)};
    return true;
}

static bool ints_arg(interp *it, isa_id op, const isa_param *p, value v, bool pairs, ir_arg *out)
{
    ir_arg *at;
    uint32_t n = 0, m = 1;
    const value *items = &v;
    if (v.tag == V_LIST || v.tag == V_TUPLE || v.tag == V_RANGE) {
        items = items_of(it, v, &m);
        if (!items) {
            return false;
        }
    } else if (v.tag != V_INT || pairs) {
        bad_argument(it, op, p,
                     pairs ? "a list of [step, count] pairs" : "an integer or a list of integers",
                     v);
        return false;
    }
    at = NEW_N(it->mem, ir_arg, (size_t)m * 2 + 1);
    for (uint32_t i = 0; i < m; i++) {
        int64_t x;
        if (pairs) {
            uint32_t k = 0;
            value *q = items[i].tag == V_LIST || items[i].tag == V_TUPLE
                           ? items_of(it, items[i], &k)
                           : NULL;
            if (!q || k != 2) {
                bad_argument(it, op, p, "a list of [step, count] pairs", v);
                return false;
            }
            ir_arg pair[2];
            for (uint32_t j = 0; j < 2; j++) {
                if (!as_index(it, q[j], &x)) {
                    return false;
                }
                pair[j] = ira_int(x);
            }
            at[n++] = (ir_arg){IRA_LIST, 0, 2, ir_list(it->p, pair, 2)};
            continue;
        }
        if (items[i].tag != V_INT && items[i].tag != V_BOOL) {
            bad_argument(it, op, p, "an integer or a list of integers", v);
            return false;
        }
        at[n++] = ira_int(items[i].tag == V_INT ? items[i].u.i : items[i].u.b);
    }
    return list_arg(it, at, n, out);
}

static bool tensors_arg(interp *it, isa_id op, const isa_param *p, value v, bool floats,
                        ir_arg *out)
{
    uint32_t m = 1;
    const value *items = &v;
    if (v.tag == V_LIST || v.tag == V_TUPLE) {
        items = items_of(it, v, &m);
    }
    ir_arg *at = NEW_N(it->mem, ir_arg, m);
    for (uint32_t i = 0; i < m; i++) {
        uint32_t view;
        if (floats) {
            if (!number_arg(items[i], &at[i])) {
                bad_argument(it, op, p, "a list of numbers", v);
                return false;
            }
            if (at[i].kind == IRA_INT) {
                at[i] = ira_f32((float)ira_integer(at[i]));
            }
            continue;
        }
        if (items[i].tag != V_TENSOR) {
            bad_argument(it, op, p, "a list of tensors", v);
            return false;
        }
        if (!tensor_view(it, items[i].u.tensor, &view)) {
            return false;
        }
        at[i] = ira_view(view);
    }
    return list_arg(it, at, m, out);
}

static bool enum_arg(interp *it, isa_id op, const isa_param *p, value v, ir_arg *out)
{
    isa_enum e = isa_param_enum((param_type)p->type);
    int x;
    if (v.tag == V_OBJ && v.u.obj->cls->is_enum &&
        strcmp(v.u.obj->cls->id->text, isa_enum_type(e)) == 0) {
        value nm = attrs_get(&v.u.obj->attrs, N(_name_));
        if (nm.tag == V_STR && isa_enum_value(e, nm.u.str->p, &x)) {
            *out = ira_kind(IRA_ENUM, (uint32_t)x);
            return true;
        }
    }
    if (v.tag == V_INT && isa_enum_member(e, (int)v.u.i)) {
        *out = ira_int(v.u.i);  // the checks warn, once for each line
        return true;
    }
    if (v.tag == V_STR && isa_enum_value(e, v.u.str->p, &x) && e == ISA_ENUM_matmul_perf_mode) {
        *out = ira_kind(IRA_ENUM, (uint32_t)x);
        return true;
    }
    bad_argument(it, op, p, arena_printf(it->mem, "a member of nki.isa.%s", isa_enum_type(e)), v);
    return false;
}

static bool view_arg(interp *it, value v, ir_arg *out)
{
    uint32_t view;
    if (!tensor_view(it, v.u.tensor, &view)) {
        return false;
    }
    *out = ira_view(view);
    return true;
}

static bool reg_arg(interp *it, isa_id op, const isa_param *p, value v, bool write, ir_arg *out)
{
    if (v.tag == V_REG) {
        if (write && v.u.reg->frozen) {
            diag *d = diag_loop_var_write(&it->pend, interp_loc(it), isa_table[op].name);
            diag_help(
                &it->pend, d,
                "copy it to a register of your own: r = register_alloc(); register_move(r, i)");
            interp_raise(it, d);
            return false;
        }
        *out = ira_kind(IRA_REG, v.u.reg->id);
        return true;
    }
    if (!write && (v.tag == V_INT || v.tag == V_BOOL)) {
        *out = ira_int(v.tag == V_INT ? v.u.i : v.u.b);
        return true;
    }
    bad_argument(it, op, p, write ? "a register" : "a register or an integer", v);
    return false;
}

static bool to_arg(interp *it, isa_id op, const isa_param *p, value v, ir_arg *out)
{
    // None stands for the default of an optional parameter.
    if (v.tag == V_NONE && p->dflt != DK_REQ) {
        if (p->dflt == DK_NONE || p->type == PT_TRI) {
            *out = ira_none();
            return true;
        }
        if (p->dflt == DK_EMPTY) {
            return list_arg(it, NULL, 0, out);
        }
    }
    switch ((param_type)p->type) {
    case PT_OUT:
    case PT_INOUT:
    case PT_IN:
        if (v.tag == V_TENSOR) {
            return view_arg(it, v, out);
        }
        bad_argument(it, op, p, "a tensor", v);
        return false;
    case PT_SCAL:
    case PT_SRC:
        if (v.tag == V_TENSOR) {
            return view_arg(it, v, out);
        }
        if (number_arg(v, out)) {
            return true;
        }
        if (v.tag == V_NONE) {
            *out = ira_none();
            return true;
        }
        bad_argument(it, op, p, "a number or a tensor", v);
        return false;
    case PT_F32:
        if (number_arg(v, out)) {
            return true;
        }
        bad_argument(it, op, p, "a number", v);
        return false;
    case PT_IREG:
        if (v.tag == V_REG) {
            *out = ira_kind(IRA_REG, v.u.reg->id);
            return true;
        }
        /* fallthrough */
    case PT_INT: {
        int64_t i;
        if (v.tag == V_FLOAT || v.tag == V_TENSOR || !as_index(it, v, &i)) {
            it->exc = VUNDEF;
            bad_argument(it, op, p, "an integer", v);
            return false;
        }
        if (i < -((int64_t)1 << 31) || i >= (int64_t)1 << 32) {
            bad_argument(it, op, p, "an integer of 32 bits", v);
            return false;
        }
        *out = ira_int(i);
        return true;
    }
    case PT_BOOL:
    case PT_TRI: {
        int t = v.tag == V_TENSOR || v.tag == V_REG ? -1 : truth(it, v);
        if (t < 0) {
            it->exc = VUNDEF;
            bad_argument(it, op, p, "True or False", v);
            return false;
        }
        *out = ira_kind(IRA_BOOL, (uint32_t)t);
        return true;
    }
    case PT_OP: {
        op_id o;
        if (value_op(it, v, &o)) {
            *out = ira_kind(IRA_OP, o);
            return true;
        }
        bad_argument(it, op, p, "an operator such as nl.add", v);
        return false;
    }
    case PT_ENGINE:
    case PT_REDCMD:
    case PT_DGE:
    case PT_OOB:
    case PT_PERF:
    case PT_DMAENG: return enum_arg(it, op, p, v, out);
    case PT_INTS: return ints_arg(it, op, p, v, false, out);
    case PT_PAIRS: return ints_arg(it, op, p, v, true, out);
    case PT_TENSORS: return tensors_arg(it, op, p, v, false, out);
    case PT_FLOATS: return tensors_arg(it, op, p, v, true, out);
    case PT_REGOUT: return reg_arg(it, op, p, v, true, out);
    case PT_REG: return reg_arg(it, op, p, v, false, out);
    case PT_STR:
        if (v.tag == V_STR) {
            *out = ira_kind(IRA_STR, ir_str(it->p, v.u.str->p, v.u.str->len));
            return true;
        }
        bad_argument(it, op, p, "a string", v);
        return false;
    case PT_LEGACY:
        if (v.tag != V_NONE) {
            diag_legacy_keyword(it->ds, interp_loc(it), isa_table[op].name, p->name);
        }
        *out = ira_none();
        return true;
    }
    return false;
}

static bool default_arg(interp *it, isa_id op, const isa_param *p, ir_arg *out)
{
    switch ((default_kind)p->dflt) {
    case DK_REQ:
        type_error(it, "%s() missing required argument '%s'", isa_table[op].name, p->name);
        return false;
    case DK_NONE: *out = ira_none(); return true;
    case DK_F: *out = ira_f32((float)p->f); return true;
    case DK_I: *out = ira_int(p->i); return true;
    case DK_FALSE: *out = ira_kind(IRA_BOOL, 0); return true;
    case DK_TRUE: *out = ira_kind(IRA_BOOL, 1); return true;
    case DK_ENUM: *out = ira_kind(IRA_ENUM, (uint32_t)p->i); return true;
    case DK_OP: *out = ira_kind(IRA_OP, (uint32_t)p->i); return true;
    case DK_EMPTY: return list_arg(it, NULL, 0, out);
    }
    return false;
}

value reg_new(interp *it, bool frozen)
{
    vreg *r = NEW(it->mem, vreg);
    r->id = it->p->registers++;
    r->frozen = frozen;
    return (value){.tag = V_REG, .u.reg = r};
}

static value emit(interp *it, isa_id op, ir_arg *av, uint32_t nm)
{
    uint32_t first = 0;
    diag *d = emit_instr(it->em, op, av, interp_place(it), nm, interp_loc(it), &first);
    return d ? interp_raise(it, d) : VID(V_INSTR, first);
}

// register_alloc(x): not an instruction itself.
static value alloc_register(interp *it, value x)
{
    value r = reg_new(it, false);
    if (x.tag == V_UNDEF || x.tag == V_NONE) {
        return r;
    }
    ir_arg av[2] = {ira_kind(IRA_REG, r.u.reg->id)};
    isa_id op = x.tag == V_TENSOR ? ISA_register_load : ISA_register_move;
    if (!to_arg(it, op, &isa_table[op].params[1], x, &av[1])) {
        return VERR;
    }
    value v = emit(it, op, av, IR_NONE);
    return IS_ERR(v) ? v : r;
}

static value finish(interp *it, isa_id op, const value *vals, value nm);

// tensor_scalar with op0=None, as a kernel writes it for an absent limit: op1 alone, or a copy.
static value without_op0(interp *it, const value *vals, value nm)
{
    enum { DST, DATA, OP0, OPERAND0, REVERSE0, OP1, OPERAND1, REVERSE1, ENGINE };
    const isa_param *p = isa_table[ISA_tensor_scalar].params;
    for (uint32_t i = OPERAND0; i <= REVERSE0; i++) {
        if (vals[i].tag != V_UNDEF && vals[i].tag != V_NONE && truth(it, vals[i]) != 0) {
            return bad_argument(it, ISA_tensor_scalar, &p[OP0],
                                "an operator such as nl.add, since operand0 is given", VNONE);
        }
    }
    value v[MAX_PARAMS] = {vals[DST], vals[DATA]};
    if (vals[OP1].tag == V_UNDEF || vals[OP1].tag == V_NONE) {
        v[2] = vals[ENGINE];
        return finish(it, ISA_tensor_copy, v, nm);
    }
    memcpy(v + OP0, vals + OP1, 3 * sizeof *v);
    v[ENGINE] = vals[ENGINE];
    return finish(it, ISA_tensor_scalar, v, nm);
}

static value default_value(interp *it, isa_id op, const isa_param *p)
{
    switch ((default_kind)p->dflt) {
    case DK_REQ:
        return type_error(it, "%s() missing required argument '%s'", isa_table[op].name, p->name);
    case DK_FALSE:
    case DK_TRUE: return (value){.tag = V_BOOL, .u.b = p->dflt == DK_TRUE};
    case DK_I: return VINT(p->i);
    default: return VNONE;
    }
}

// Operations over ranks are written in the language: stdlib's module checks them and says what one
// rank does. An operation of several ranks comes back as a tuple, the operands of the instruction.
static value collective(interp *it, isa_id op, const value *vals)
{
    const isa_info *info = &isa_table[op];
    value at[MAX_PARAMS];
    for (uint32_t i = 0; i < info->nparams; i++) {
        at[i] = vals[i].tag == V_UNDEF ? default_value(it, op, &info->params[i]) : vals[i];
        if (IS_ERR(at[i])) {
            return VERR;
        }
    }
    value m =
        import_module(it, it->entry, 0, intern_cstr(it->names, "nki.collectives._ranks"), true);
    value fn = IS_ERR(m) ? m : find_attr(it, m, intern_cstr(it->names, info->name));
    args a = {at, info->nparams, 0, NULL};
    return IS_ERR(fn) ? VERR : call(it, fn, &a);
}

static value finish(interp *it, isa_id op, const value *vals, value nm)
{
    const isa_info *info = &isa_table[op];
    if (op == ISA_register_alloc) {
        return alloc_register(it, vals[0]);
    }
    if (info->group == ISAG_NCC) {
        value r = collective(it, op, vals);
        if (r.tag != V_TUPLE) {
            return r;
        }
        uint32_t n;
        vals = items_of(it, r, &n);
    }
    if (op == ISA_tensor_scalar && vals[2].tag == V_NONE) {
        return without_op0(it, vals, nm);
    }
    ir_arg av[MAX_PARAMS];
    for (uint32_t i = 0; i < info->nparams; i++) {
        const isa_param *p = &info->params[i];
        if (vals[i].tag == V_UNDEF ? !default_arg(it, op, p, &av[i])
                                   : !to_arg(it, op, p, vals[i], &av[i])) {
            return VERR;
        }
    }
    uint32_t name_str = IR_NONE;
    if (nm.tag == V_STR) {
        name_str = ir_str(it->p, nm.u.str->p, nm.u.str->len);
    }
    value r = emit(it, op, av, name_str);
    if (!IS_ERR(r) && info->group == ISAG_NISA && info->nparams &&
        info->params[0].type == PT_REGOUT) {
        return VNONE;
    }
    return r;
}

static int param_of(isa_id op, sym kw)
{
    const isa_info *info = &isa_table[op];
    for (uint32_t i = 0; i < info->nparams; i++) {
        if (strcmp(info->params[i].name, kw->text) == 0) {
            return (int)i;
        }
    }
    return strcmp(kw->text, "name") == 0 ? NAME_PARAM : -1;
}

static bool starts_same(const char *a, const char *b)
{
    return strncmp(a, b, 3) == 0;
}

static value unknown_keyword(interp *it, isa_id op, sym kw)
{
    const isa_info *info = &isa_table[op];
    const char *near = NULL;
    for (uint32_t i = 0; i < info->nparams && !near; i++) {
        if (starts_same(info->params[i].name, kw->text)) {
            near = info->params[i].name;
        }
    }
    static const struct {
        const char *old, *now;
    } gone[] = {{"mask", "clamp the slices instead"}, {"dtype", "the result has the dtype of dst"}};
    for (size_t i = 0; i < sizeof gone / sizeof *gone && !near; i++) {
        if (strcmp(kw->text, gone[i].old) == 0) {
            return type_error(it,
                              "%s() got an unexpected keyword argument '%s': it was removed; %s",
                              info->name, kw->text, gone[i].now);
        }
    }
    return type_error(it, "%s() got an unexpected keyword argument '%s'%s%s%s", info->name,
                      kw->text, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

value isa_call(interp *it, isa_id op, const args *a)
{
    const isa_info *info = &isa_table[op];
    value vals[MAX_PARAMS], nm = VUNDEF;
    memset(vals, 0, sizeof vals);
    if (a->n > info->nparams) {
        return type_error(it, "%s() takes %u arguments but %u were given", info->name,
                          info->nparams, a->n);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        vals[i] = a->at[i];
    }
    for (uint32_t j = 0; j < a->nkw; j++) {
        int p = param_of(op, a->kw[j]);
        if (p < 0) {
            return unknown_keyword(it, op, a->kw[j]);
        }
        value *slot = p == NAME_PARAM ? &nm : &vals[p];
        if (slot->tag != V_UNDEF) {
            return type_error(it, "%s() got multiple values for argument '%s'", info->name,
                              a->kw[j]->text);
        }
        *slot = a->at[a->n + j];
    }
    return finish(it, op, vals, nm);
}

// Fast path: the mapping of arguments to parameters is kept on the call's node.
value isa_call_node(interp *it, isa_id op, const ast *e)
{
    const isa_info *info = &isa_table[op];
    call_map *m = e->cache;
    if (!m || m->op != op) {
        bool simple = e->u.call.n <= info->nparams + 1u && e->u.call.n <= MAX_PARAMS;
        call_map fresh = {.op = op};
        uint32_t i = 0, seen = 0;
        for (const ast *a = e->u.call.args; a && simple; a = a->next, i++) {
            int p = a->op ? -1 : a->u.named.id ? param_of(op, a->u.named.id) : (int)i;
            simple = p >= 0 && (p == NAME_PARAM || (p < info->nparams && !(seen >> p & 1)));
            if (simple) {
                seen |= p == NAME_PARAM ? 0 : 1u << p;
                fresh.param[i] = (uint8_t)p;
            }
        }
        if (!simple) {
            // Star arguments, or a mistake: the general way says which.
            VEC(value) pos = {0};
            VEC(sym) kw = {0};
            VEC(value) kwv = {0};
            for (const ast *a = e->u.call.args; a; a = a->next) {
                value v = eval(it, a->u.named.value);
                if (IS_ERR(v)) {
                    return v;
                }
                if (a->op == 1) {
                    uint32_t n;
                    value *at = items_of(it, v, &n);
                    for (uint32_t k = 0; at && k < n; k++) {
                        vec_push(it->mem, &pos, at[k]);
                    }
                    if (!at) {
                        return VERR;
                    }
                } else if (a->op == 2) {
                    for (uint32_t k = 0; v.tag == V_DICT && k < v.u.dict->n; k++) {
                        if (v.u.dict->at[k].key.tag == V_STR) {
                            vec_push(it->mem, &kw, str_sym(it, v.u.dict->at[k].key));
                            vec_push(it->mem, &kwv, v.u.dict->at[k].val);
                        }
                    }
                } else if (a->u.named.id) {
                    vec_push(it->mem, &kw, a->u.named.id);
                    vec_push(it->mem, &kwv, v);
                } else {
                    vec_push(it->mem, &pos, v);
                }
            }
            uint32_t npos = pos.n;
            for (uint32_t k = 0; k < kwv.n; k++) {
                vec_push(it->mem, &pos, kwv.at[k]);
            }
            args a = {pos.at, npos, kw.n, kw.at};
            it->top->at = e;
            return isa_call(it, op, &a);
        }
        m = NEW(it->mem, call_map);
        *m = fresh;
        ((ast *)(uintptr_t)e)->cache = m;
    }
    value vals[MAX_PARAMS], nm = VUNDEF;
    memset(vals, 0, info->nparams * sizeof *vals);
    uint32_t i = 0;
    for (const ast *a = e->u.call.args; a; a = a->next, i++) {
        value v = eval(it, a->u.named.value);
        if (IS_ERR(v)) {
            return v;
        }
        *(m->param[i] == NAME_PARAM ? &nm : &vals[m->param[i]]) = v;
    }
    it->top->at = e;
    return finish(it, op, vals, nm);
}

// ---- handles

void isa_add_deps(interp *it, uint32_t consumer, const uint32_t *producers, uint32_t n)
{
    ir *p = it->p;
    uint32_t first = p->deps.n, had = p->instrs.at[consumer].deps;
    for (uint32_t k = had; had != IR_NONE && p->deps.at[k] != IR_DEPS_END; k++) {
        uint32_t old = p->deps.at[k];
        vec_push(it->mem, &p->deps, old);
    }
    for (uint32_t i = 0; i < n; i++) {
        vec_push(it->mem, &p->deps, producers[i]);
    }
    vec_push(it->mem, &p->deps, IR_DEPS_END);
    p->instrs.at[consumer].deps = first;
}

static bool in_ended_loop(const interp *it, uint32_t instr)
{
    for (uint32_t i = 0; i < it->loops_ended.n; i++) {
        if (it->loops_ended.at[i].begin < instr && instr < it->loops_ended.at[i].end) {
            return true;
        }
    }
    return false;
}

// nl.no_reorder(): each instruction made since `begin` waits for the one before.
void isa_keep_order(interp *it, uint32_t begin)
{
    for (uint32_t i = begin + 1; i < it->p->instrs.n; i++) {
        uint32_t before = i - 1;
        isa_add_deps(it, i, &before, 1);
    }
}

static value depends_on(interp *it, const args *a)
{
    value self = it->native_self;
    uint32_t consumer = (uint32_t)self.u.i;
    uint32_t *producers = NEW_N(it->mem, uint32_t, a->n + 1);
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].tag != V_INSTR) {
            return type_error(it, "depends_on() takes instruction handles, got %s",
                              type_name(it, a->at[i]));
        }
        if (a->at[i].u.i >= self.u.i) {
            return value_error(it, "depends_on(): the producer must come before the consumer");
        }
        producers[i] = (uint32_t)a->at[i].u.i;
        if (in_ended_loop(it, producers[i])) {
            return interp_raise(it, diag_depends_on_loop(&it->pend, interp_loc(it)));
        }
    }
    isa_add_deps(it, consumer, producers, a->n);
    return self;
}

value handle_attr(interp *it, value v, sym id)
{
    if (v.tag == V_INSTR && strcmp(id->text, "depends_on") == 0) {
        vnative *n = NEW(it->mem, vnative);
        *n = (vnative){"depends_on", depends_on, v};
        return (value){.tag = V_NATIVE, .u.native = n};
    }
    return VUNDEF;
}

// ---- loops on the device

static bool loop_allowed(interp *it, const char *loop)
{
    if (it->reorder.n) {
        interp_raise(it, diag_loop_in_no_reorder(&it->pend, interp_loc(it), loop));
    }
    return it->reorder.n == 0;
}

static flow loop_body(interp *it, const ast *s)
{
    uint32_t begin = it->p->instrs.n - 1;
    it->dyn_depth++;
    flow fl = exec_block(it, s->u.flow.body);
    it->dyn_depth--;
    if (fl == FLOW_BREAK || fl == FLOW_CONTINUE || fl == FLOW_RETURN) {
        static const char *const words[] = {
            [FLOW_BREAK] = "break", [FLOW_CONTINUE] = "continue", [FLOW_RETURN] = "return"};
        if (fl == FLOW_CONTINUE) {
            return FLOW_NEXT;  // the end of the body, decided at compile time
        }
        interp_raise(it, diag_break_in_dynamic_loop(&it->pend, interp_loc(it), words[fl]));
        return FLOW_ERROR;
    }
    it->top->at = s;
    ir_arg none;
    if (fl != FLOW_NEXT || IS_ERR(emit(it, ISA_loop_end, &none, IR_NONE))) {
        return FLOW_ERROR;
    }
    vec_push(it->mem, &it->loops_ended, ((instr_range){begin, it->p->instrs.n}));
    return FLOW_NEXT;
}

flow exec_dynamic_for(interp *it, const ast *s, value range)
{
    const vdynrange *r = range.u.p;
    value counter = reg_new(it, true);
    ir_arg av[4] = {ira_kind(IRA_REG, counter.u.reg->id), ira_none(), ira_none(), ira_int(r->step)};
    const isa_info *info = &isa_table[ISA_loop_for];
    if (!loop_allowed(it, "dynamic_range") ||
        !to_arg(it, ISA_loop_for, &info->params[1], r->lo, &av[1]) ||
        !to_arg(it, ISA_loop_for, &info->params[2], r->hi, &av[2]) ||
        IS_ERR(emit(it, ISA_loop_for, av, IR_NONE)) || !assign_to(it, s->u.flow.target, counter)) {
        return FLOW_ERROR;
    }
    return loop_body(it, s);
}

flow exec_dynamic_while(interp *it, const ast *s, value reg)
{
    ir_arg av[1] = {ira_kind(IRA_REG, reg.u.reg->id)};
    it->top->at = s->u.flow.cond;
    if (!loop_allowed(it, "while") || IS_ERR(emit(it, ISA_loop_while, av, IR_NONE))) {
        return FLOW_ERROR;
    }
    return loop_body(it, s);
}
