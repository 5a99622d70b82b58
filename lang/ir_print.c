#include "lang/ir_text.h"

#include <inttypes.h>

// Start offsets of a file's lines, so that a place's line is one binary search.
typedef struct line_table {
    uint32_t *start;
    uint32_t n;
} line_table;

typedef struct printer {
    const ir *p;
    textbuf *out;
    line_table *lines;  // of each file; NULL: places are left out
    uint8_t *labelled;  // of each instruction: another one depends on it; NULL: none
} printer;

bool ir_default_arg(const isa_param *par, ir_arg *out)
{
    switch ((default_kind)par->dflt) {
    case DK_REQ: return false;
    case DK_NONE: *out = ira_none(); return true;
    case DK_F: *out = ira_f32((float)par->f); return true;
    case DK_I: *out = ira_int(par->i); return true;
    case DK_FALSE: *out = ira_kind(IRA_BOOL, 0); return true;
    case DK_TRUE: *out = ira_kind(IRA_BOOL, 1); return true;
    case DK_ENUM: *out = ira_kind(IRA_ENUM, (uint32_t)par->i); return true;
    case DK_OP: *out = ira_kind(IRA_OP, (uint32_t)par->i); return true;
    case DK_EMPTY: *out = ira_kind(IRA_LIST, 0); return true;
    }
    return false;
}

bool ir_view_slices(const ir *p, const ir_view *v, ir_slice *out)
{
    const ir_tensor *t = &p->tensors.at[v->tensor];
    const ir_dim *d = ir_dims(p, v);
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    if (v->dtype != t->dtype || ir_ndim(p, v) != t->ndim || v->offset < 0) {
        return false;
    }
    uint64_t row[IR_MAX_DIMS], elems = 1;  // elements from one index to the next
    for (uint32_t k = t->ndim; k-- > 0;) {
        row[k] = elems;
        elems *= k || !chip ? t->shape[k] : 1;
    }
    uint64_t rest = (uint64_t)v->offset;
    for (uint32_t k = 0; k < t->ndim; k++) {
        bool part = chip && k == 0;
        uint64_t unit = part ? 1 : row[k];
        if (d[k].stride <= 0 || (uint64_t)d[k].stride % unit) {
            return false;
        }
        uint64_t step = (uint64_t)d[k].stride / unit, lo = part ? v->part : rest / unit;
        rest -= part ? 0 : lo * unit;
        if (step > UINT32_MAX || lo >= t->shape[k] || lo + step * (d[k].count - 1) >= t->shape[k] ||
            (d[k].count == 1 && step != 1)) {
            return false;
        }
        out[k] = (ir_slice){(uint32_t)lo, (uint32_t)step, d[k].count};
    }
    return rest == 0;
}

// ---- pieces

static void put_escaped(textbuf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            text_char(out, '\\');
            text_char(out, *s);
        } else if (c < 0x20 || c == 0x7f) {
            text_printf(out, "\\x%02x", c);
        } else {
            text_char(out, *s);
        }
    }
}

static void put_quoted(printer *pr, uint32_t str)
{
    text_char(pr->out, '"');
    put_escaped(pr->out, ir_text(pr->p, str));
    text_char(pr->out, '"');
}

static line_table *lines_of(printer *pr, uint32_t file)
{
    line_table *t = &pr->lines[file];
    const source *s = pr->p->files.at[file].src;
    if (!t->start && s) {
        uint32_t n = 1;
        for (uint32_t i = 0; i < s->len; i++) {
            n += s->text[i] == '\n';
        }
        t->start = NEW_N(pr->out->mem, uint32_t, n);
        t->n = 1;
        for (uint32_t i = 0; i < s->len; i++) {
            if (s->text[i] == '\n') {
                t->start[t->n++] = i + 1;
            }
        }
    }
    return t;
}

// "  ; softmax.nki:12"
static void put_place(printer *pr, uint32_t place)
{
    const ir *p = pr->p;
    while (place && p->places.at[place].kind == PLACE_ITER) {
        place = p->places.at[place].parent;
    }
    const ir_place *pl = &p->places.at[place];
    if (!pr->lines || !place || pl->kind == PLACE_ROOT || !p->files.at[pl->file].src) {
        return;
    }
    const line_table *t = lines_of(pr, pl->file);
    uint32_t lo = 0, hi = t->n;  // the last line that starts at or before pl->lo
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (t->start[mid] <= pl->lo) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    text_cstr(pr->out, "  ; ");
    put_escaped(pr->out, ir_text(p, p->files.at[pl->file].name));
    text_printf(pr->out, ":%" PRIu32, lo + 1);
}

static void put_view(printer *pr, uint32_t view);

static void put_dyn(printer *pr, uint32_t dyn)
{
    const ir_dyn *d = &pr->p->dyns.at[dyn];
    textbuf *out = pr->out;
    switch ((dyn_kind)d->kind) {
    case DYN_NONE: return;
    case DYN_REG: text_printf(out, ".register(r%" PRIu32, d->src); break;
    case DYN_SCALAR: text_cstr(out, ".scalar("); break;
    case DYN_VECTOR: text_cstr(out, ".vector("); break;
    case DYN_INDIRECT: text_cstr(out, ".indirect("); break;
    }
    if (d->kind != DYN_REG) {
        put_view(pr, d->src);
    }
    if (d->step != 1) {
        text_printf(out, ", step=%" PRId64, d->step);
    }
    if (d->partition) {
        text_cstr(out, ", partition=1");
    }
    if (d->num_elem) {
        text_printf(out, ", num_elem=%" PRIu32, d->num_elem);
    }
    if (d->limit) {
        text_printf(out, ", limit=%" PRIu32, d->limit);
    }
    text_char(out, ')');
}

static void put_slices(printer *pr, const ir_view *v, const ir_slice *s)
{
    const ir_tensor *t = &pr->p->tensors.at[v->tensor];
    bool whole = true;
    for (uint32_t k = 0; k < t->ndim; k++) {
        whole = whole && s[k].count == t->shape[k];
    }
    if (whole) {
        return;
    }
    for (uint32_t k = 0; k < t->ndim; k++) {
        text_cstr(pr->out, k ? ", " : "[");
        if (s[k].count == t->shape[k]) {
            text_char(pr->out, ':');
            continue;
        }
        text_printf(pr->out, "%" PRIu32 ":%" PRIu32, s[k].lo,
                    s[k].lo + s[k].step * (s[k].count - 1) + 1);
        if (s[k].step != 1) {
            text_printf(pr->out, ":%" PRIu32, s[k].step);
        }
    }
    text_char(pr->out, ']');
}

static void put_ap(printer *pr, const ir_view *v)
{
    const ir_tensor *t = &pr->p->tensors.at[v->tensor];
    const ir_dim *d = ir_dims(pr->p, v);
    text_cstr(pr->out, ".ap([");
    for (uint32_t k = 0; k < ir_ndim(pr->p, v); k++) {
        text_printf(pr->out, "%s[%" PRId64 ", %" PRIu32 "]", k ? ", " : "", d[k].stride,
                    d[k].count);
    }
    text_char(pr->out, ']');
    if (v->part) {
        text_printf(pr->out, ", part=%u", v->part);
    }
    if (v->offset) {
        text_printf(pr->out, ", offset=%" PRId64, v->offset);
    }
    if (v->dtype != t->dtype) {
        text_printf(pr->out, ", dtype=%s", dtype_name((dtype)v->dtype));
    }
    text_char(pr->out, ')');
}

static void put_view(printer *pr, uint32_t view)
{
    const ir_view *v = ir_view_ref(pr->p, view);
    ir_slice s[IR_MAX_DIMS];
    text_printf(pr->out, "%%%" PRIu32, v->tensor);
    if (ir_view_slices(pr->p, v, s)) {
        put_slices(pr, v, s);
    } else {
        put_ap(pr, v);
    }
    if (v->dyn) {
        put_dyn(pr, v->dyn);
    }
}

static void put_float(textbuf *out, ir_arg a)
{
    float f = ira_float(a);
    if (f != f) {
        text_printf(out, "nan(0x%08" PRIx32 ")", a.v);
        return;
    }
    char buf[40];
    text_float(buf, f);
    text_cstr(out, buf);
}

// par NULL: an element of a list, whose enum is not known from the place it stands in.
static void put_arg(printer *pr, const isa_param *par, ir_arg a)
{
    textbuf *out = pr->out;
    switch ((ir_arg_kind)a.kind) {
    case IRA_NONE: text_cstr(out, "None"); return;
    case IRA_VIEW: put_view(pr, a.v); return;
    case IRA_F32: put_float(out, a); return;
    case IRA_INT: text_printf(out, "%" PRId64, ira_integer(a)); return;
    case IRA_BOOL: text_cstr(out, a.v ? "True" : "False"); return;
    case IRA_ENUM: {
        bool named = par && par->type >= PT_ENGINE && par->type <= PT_DMAENG;
        const char *m =
            named ? isa_enum_member(isa_param_enum((param_type)par->type), (int)a.v) : NULL;
        if (m) {
            text_cstr(out, m);
        } else {
            text_printf(out, "enum:%" PRIu32, a.v);
        }
        return;
    }
    case IRA_OP:
        text_printf(out, "%s%s", par && par->type == PT_OP ? "" : "op:", op_table[a.v].name);
        return;
    case IRA_REG: text_printf(out, "r%" PRIu32, a.v); return;
    case IRA_LIST:
        text_char(out, '[');
        for (uint32_t i = 0; i < (uint32_t)a.aux; i++) {
            text_cstr(out, i ? ", " : "");
            put_arg(pr, NULL, pr->p->args.at[a.v + i]);
        }
        text_char(out, ']');
        return;
    case IRA_STR: put_quoted(pr, a.v); return;
    }
}

static bool is_default(const isa_param *par, ir_arg a)
{
    ir_arg d;
    if (!ir_default_arg(par, &d) || d.kind != a.kind) {
        return false;
    }
    return a.kind == IRA_NONE || (a.kind == IRA_LIST ? a.aux == 0 : a.v == d.v && a.aux == d.aux);
}

// ---- lines

static void put_head(printer *pr)
{
    const ir *p = pr->p;
    text_cstr(pr->out, "kernel ");
    put_quoted(pr, p->kernel);
    text_printf(pr->out, " target=%s grid=%" PRIu32 " core=%" PRIu32 " registers=%" PRIu32 "%s\n",
                p->target->name, p->grid, p->core, p->registers,
                p->fp32_store ? " precise_fp=off" : "");
}

static void put_tensor(printer *pr, uint32_t i)
{
    static const char *const role[] = {"", " param=", " out", " const="};
    const ir_tensor *t = &pr->p->tensors.at[i];
    textbuf *out = pr->out;
    text_printf(out, "%%%" PRIu32 " ", i);
    put_quoted(pr, t->name);
    text_printf(out, " %s[", dtype_name((dtype)t->dtype));
    for (uint32_t k = 0; k < t->ndim; k++) {
        text_printf(out, "%s%" PRIu32, k ? ", " : "", t->shape[k]);
    }
    text_printf(out, "] %s%s", buffer_name((buffer_kind)t->buffer), role[t->role]);
    if (t->role == ROLE_ARG) {
        text_printf(out, "%" PRIu32 " ", t->param);
        put_quoted(pr, pr->p->params.at[t->param].name);
    } else if (t->role == ROLE_CONST) {
        text_printf(out, "%" PRIu32, t->data);
    }
    if (t->addr_bytes != ADDR_AUTO) {
        text_printf(out, " %s=(%" PRIu32 ", %" PRIu64 ")", t->manual ? "address" : "placed",
                    t->addr_part, t->addr_bytes);
    }
    if (t->shared) {
        text_printf(out, " shared=%" PRIu32, t->shared);
    }
    if (t->fill) {
        text_cstr(out, " fill");
    }
    put_place(pr, t->place);
    text_char(out, '\n');
}

static void put_blob(printer *pr)
{
    enum { ROW = 32 };
    const ir *p = pr->p;
    for (uint32_t i = 0; i < p->blob.n; i++) {
        if (i % ROW == 0) {
            text_cstr(pr->out, "data ");
        }
        text_printf(pr->out, "%02x", p->blob.at[i]);
        if (i % ROW == ROW - 1 || i + 1 == p->blob.n) {
            text_char(pr->out, '\n');
        }
    }
}

static void put_instr(printer *pr, uint32_t i, uint32_t depth)
{
    const ir *p = pr->p;
    const ir_instr *in = &p->instrs.at[i];
    const isa_info *row = &isa_table[in->op];
    textbuf *out = pr->out;
    for (uint32_t k = 0; k < depth; k++) {
        text_cstr(out, "  ");
    }
    if (pr->labelled && pr->labelled[i]) {
        text_printf(out, "@%" PRIu32 " ", i);
    }
    text_printf(out, "%s.%s", engine_name((engine_id)in->engine), row->name);
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (!is_default(&row->params[k], a)) {
            text_printf(out, " %s=", row->params[k].name);
            put_arg(pr, &row->params[k], a);
        }
    }
    if (in->name) {
        text_cstr(out, " name=");
        put_quoted(pr, in->name);
    }
    if (in->deps) {
        text_cstr(out, " after=[");
        for (uint32_t k = in->deps; p->deps.at[k] != IR_DEPS_END; k++) {
            text_printf(out, "%s@%" PRIu32, k == in->deps ? "" : ", ", p->deps.at[k]);
        }
        text_char(out, ']');
    }
    put_place(pr, in->place);
}

static void put_instrs(printer *pr)
{
    const ir *p = pr->p;
    pr->labelled = NEW_N(pr->out->mem, uint8_t, p->instrs.n);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        for (uint32_t k = p->instrs.at[i].deps; k && p->deps.at[k] != IR_DEPS_END; k++) {
            pr->labelled[p->deps.at[k]] = 1;
        }
    }
    uint32_t depth = 1;
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        uint16_t op = p->instrs.at[i].op;
        depth -= op == ISA_loop_end;
        put_instr(pr, i, depth);
        text_char(pr->out, '\n');
        depth += op == ISA_loop_for || op == ISA_loop_while;
    }
}

void ir_print(const ir *p, textbuf *out)
{
    printer pr = {.p = p, .out = out, .lines = NEW_N(out->mem, line_table, p->files.n)};
    put_head(&pr);
    for (uint32_t i = 0; i < p->tensors.n; i++) {
        put_tensor(&pr, i);
    }
    put_blob(&pr);
    put_instrs(&pr);
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        text_cstr(out, "return ");
        put_view(&pr, p->outputs.at[i]);
        text_char(out, '\n');
    }
}

void ir_print_instr(const ir *p, uint32_t instr, textbuf *out)
{
    printer pr = {.p = p, .out = out};
    put_instr(&pr, instr, 0);
}
