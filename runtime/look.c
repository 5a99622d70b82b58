#include "runtime/kernel.h"

#include "lang/place.h"

#include <nki/tool.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is known of a kernel without running it: places, names, queues.

static const ir *program_of(const nki_kernel *k, uint32_t core)
{
    return k && core < k->core_count ? k->core[core].pr->ir : NULL;
}

static const ir_instr *instr_of(const nki_kernel *k, uint32_t core, size_t instr)
{
    const ir *p = program_of(k, core);
    return p && instr < p->instrs.n ? &p->instrs.at[instr] : NULL;
}

size_t nki_tool_core_count(const nki_kernel *k)
{
    return k ? k->core_count : 0;
}

size_t nki_tool_instr_count(const nki_kernel *k, uint32_t core)
{
    const ir *p = program_of(k, core);
    return p ? p->instrs.n : 0;
}

// ---- places

// Place number `depth` of the chain from `place` outwards that has a source range; 0: none.
static uint32_t frame_place(const ir *p, uint32_t place, size_t depth)
{
    for (; place; place = p->places.at[place].parent) {
        uint8_t kind = p->places.at[place].kind;
        if ((kind == PLACE_SITE || kind == PLACE_CALL) && depth-- == 0) {
            return place;
        }
    }
    return 0;
}

static void put_values(const ir *p, uint32_t place, char *buf, size_t cap)
{
    size_t at = 0;
    *buf = '\0';
    for (; place && p->places.at[place].kind != PLACE_CALL; place = p->places.at[place].parent) {
        const ir_place *pl = &p->places.at[place];
        if (pl->kind == PLACE_ITER && at < cap) {
            int64_t v = (int64_t)((uint64_t)pl->hi << 32 | pl->lo);
            at += (size_t)snprintf(buf + at, cap - at, "%s%s = %" PRId64, at ? ", " : "",
                                   ir_text(p, pl->what), v);
        }
    }
}

// Starts of the lines of a file, by binary search instead of from its beginning each time. NULL: no
// memory.
static const uint32_t *lines_of(const nki_kernel *k, uint32_t core, uint32_t file, uint32_t *n)
{
    nki_kernel *own = (nki_kernel *)(uintptr_t)k;  // fills in what can be found at any time
    const ir *p = k->core[core].pr->ir;
    const source *src = p->files.at[file].src;
    if (setjmp(own->oom)) {
        return NULL;
    }
    if (!own->lines[core]) {
        own->lines[core] = NEW_N(&own->mem, uint32_t *, p->files.n);
    }
    uint32_t *starts = own->lines[core][file];
    if (!starts) {
        uint32_t count = 1;
        for (uint32_t i = 0; i < src->len; i++) {
            count += src->text[i] == '\n';
        }
        starts = NEW_N(&own->mem, uint32_t, count + 1);
        starts[0] = count;
        starts[1] = 0;
        for (uint32_t i = 0, line = 2; i < src->len; i++) {
            if (src->text[i] == '\n') {
                starts[line++] = i + 1;
            }
        }
        own->lines[core][file] = starts;
    }
    *n = starts[0];
    return starts + 1;
}

static void locate(const nki_kernel *k, uint32_t core, const ir_place *pl, nki_frame *out)
{
    const source *src = k->core[core].pr->ir->files.at[pl->file].src;
    uint32_t n = 0, lo = 0, at = pl->lo < src->len ? pl->lo : src->len;
    const uint32_t *starts = lines_of(k, core, pl->file, &n);
    while (starts && n - lo > 1) {
        uint32_t mid = lo + (n - lo) / 2;
        if (starts[mid] <= at) {
            lo = mid;
        } else {
            n = mid;
        }
    }
    out->line = starts ? lo + 1 : 0;
    out->col = starts ? at - starts[lo] + 1 : 0;
}

static nki_status frame(const nki_kernel *k, uint32_t core, uint32_t place, size_t depth,
                        nki_frame *out)
{
    const ir *p = k->core[core].pr->ir;
    uint32_t at = frame_place(p, place, depth);
    if (!at) {
        return NKI_ERR_ARG;
    }
    const ir_place *pl = &p->places.at[at];
    *out = (nki_frame){.file = "", .function = ir_text(p, p->kernel), .context = pl->parent};
    if (pl->file < p->files.n) {
        out->file = ir_text(p, p->files.at[pl->file].name);
        if (p->files.at[pl->file].src) {
            locate(k, core, pl, out);
        }
    }
    for (uint32_t up = pl->parent; up; up = p->places.at[up].parent) {
        if (p->places.at[up].kind == PLACE_CALL) {
            out->function = ir_text(p, p->places.at[up].what);
            break;
        }
    }
    put_values(p, pl->parent, out->values, sizeof out->values);
    return NKI_OK;
}

nki_status nki_tool_instr_frame(const nki_kernel *k, uint32_t core, size_t instr, size_t depth,
                                nki_frame *out)
{
    const ir_instr *in = instr_of(k, core, instr);
    return in && out ? frame(k, core, in->place, depth, out) : NKI_ERR_ARG;
}

nki_status nki_tool_tensor_frame(const nki_kernel *k, uint32_t core, size_t tensor, size_t depth,
                                 nki_frame *out)
{
    const ir *p = program_of(k, core);
    return p && out && tensor < p->tensors.n
               ? frame(k, core, p->tensors.at[tensor].place, depth, out)
               : NKI_ERR_ARG;
}

nki_status nki_tool_source(const nki_kernel *k, size_t i, const char **name, const char **text,
                           size_t *len)
{
    const ir *p = program_of(k, 0);
    if (!p || i >= p->files.n || !name || !text || !len) {
        return NKI_ERR_ARG;
    }
    const source *src = p->files.at[i].src;
    *name = ir_text(p, p->files.at[i].name);
    *text = src ? src->text : NULL;
    *len = src ? src->len : 0;
    return NKI_OK;
}

// ---- names of tensors

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// The variable that the expression at `lo` is assigned to: the text before it is a line's
// "NAME =" or "NAME: TYPE =". 0: there is none.
static size_t assigned_to(const source *src, uint32_t lo, char *out, size_t cap)
{
    const char *start = src->text + lo, *text = src->text;
    while (start > text && start[-1] != '\n') {
        start--;
    }
    start += strspn(start, " \t");
    size_t n = 0, len = (size_t)(text + lo - start);
    while (n < len && is_word(start[n])) {
        n++;
    }
    const char *eq = start + len;
    while (eq > start && (eq[-1] == ' ' || eq[-1] == '\t')) {
        eq--;
    }
    size_t gap = n + strspn(start + n, " \t");
    bool plain =
        eq > start && eq[-1] == '=' && (start + gap == eq - 1 || (gap < len && start[gap] == ':'));
    if (n == 0 || n >= cap || isdigit((unsigned char)*start) || !plain) {
        return 0;
    }
    memcpy(out, start, n);
    out[n] = '\0';
    return n;
}

// The variable at a depth of the chain that made the tensor. false: beyond the last.
static bool variable_at(const ir *p, const ir_tensor *t, size_t depth, char *out, size_t cap)
{
    uint32_t place = frame_place(p, t->place, depth);
    *out = '\0';
    if (!place) {
        return false;
    }
    const ir_place *pl = &p->places.at[place];
    const source *src = pl->file < p->files.n ? p->files.at[pl->file].src : NULL;
    if (src && pl->lo <= src->len) {
        assigned_to(src, pl->lo, out, cap);
    }
    return true;
}

static size_t output_of(const ir *p, uint32_t tensor)
{
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        if (p->views.at[p->outputs.at[i]].tensor == tensor) {
            return i;
        }
    }
    return NKI_NOWHERE;
}

static void tensor_name(const ir *p, uint32_t tensor, char *out, size_t cap)
{
    const ir_tensor *t = &p->tensors.at[tensor];
    const char *own =
        t->role == ROLE_ARG ? ir_text(p, p->params.at[t->param].name) : ir_text(p, t->name);
    if (*own) {
        snprintf(out, cap, "%s", own);
        return;
    }
    *out = '\0';
    for (size_t d = 0; !*out && variable_at(p, t, d, out, cap); d++) {
    }
}

// "name", "name%3" when another one is called so too, or "%3".
static void tensor_label(const ir *p, uint32_t tensor, char *out, size_t cap)
{
    char name[NKI_NAME_MAX], other[NKI_NAME_MAX];
    bool shared = false;
    tensor_name(p, tensor, name, sizeof name);
    for (uint32_t t = 0; *name && !shared && t < p->tensors.n; t++) {
        tensor_name(p, t, other, sizeof other);
        shared = t != tensor && strcmp(name, other) == 0;
    }
    if (*name && !shared) {
        snprintf(out, cap, "%s", name);
    } else {
        snprintf(out, cap, "%s%%%" PRIu32, name, tensor);
    }
}

nki_status nki_tool_tensor_label(const nki_kernel *k, uint32_t core, size_t tensor, char *buf,
                                 size_t cap)
{
    const ir *p = program_of(k, core);
    if (!p || tensor >= p->tensors.n || !buf || cap == 0) {
        return NKI_ERR_ARG;
    }
    tensor_label(p, (uint32_t)tensor, buf, cap);
    return NKI_OK;
}

size_t nki_tool_tensor_count(const nki_kernel *k, uint32_t core)
{
    const ir *p = program_of(k, core);
    return p ? p->tensors.n : 0;
}

nki_status nki_tool_tensor_at(const nki_kernel *k, uint32_t core, size_t tensor,
                              nki_tensor_row *out)
{
    const ir *p = program_of(k, core);
    if (!p || !out || tensor >= p->tensors.n) {
        return NKI_ERR_ARG;
    }
    const ir_tensor *t = &p->tensors.at[tensor];
    *out = (nki_tensor_row){.buffer = buffer_name((buffer_kind)t->buffer),
                            .dtype = (nki_dtype)t->dtype,
                            .ndim = t->ndim,
                            .output = output_of(p, (uint32_t)tensor)};
    tensor_name(p, (uint32_t)tensor, out->name, sizeof out->name);
    for (uint32_t d = 0; d < t->ndim; d++) {
        out->shape[d] = t->shape[d];
    }
    return NKI_OK;
}

int nki_tool_tensor_is(const nki_kernel *k, uint32_t core, size_t tensor, const char *name)
{
    const ir *p = program_of(k, core);
    char text[NKI_NAME_MAX];
    if (!p || !name || tensor >= p->tensors.n) {
        return 0;
    }
    // "%12" and "tile%12", whatever stands before the number.
    snprintf(text, sizeof text, "%%%zu", tensor);
    const char *number = strchr(name, '%');
    if (number) {
        return strcmp(number, text) == 0;
    }
    tensor_name(p, (uint32_t)tensor, text, sizeof text);
    if (*text && strcmp(text, name) == 0) {
        return 1;
    }
    for (size_t d = 0; variable_at(p, &p->tensors.at[tensor], d, text, sizeof text); d++) {
        if (*text && strcmp(text, name) == 0) {
            return 1;
        }
    }
    size_t output = output_of(p, (uint32_t)tensor);
    snprintf(text, sizeof text, "out%zu", output);
    return output != NKI_NOWHERE && strcmp(text, name) == 0;
}

// ---- registers

// The identifier at `at`, of at most n bytes; 0: there is none.
static size_t identifier(const char *at, size_t n, char *out, size_t cap)
{
    size_t len = 0;
    while (len < n && is_word(at[len])) {
        len++;
    }
    if (len == 0 || len >= cap || isdigit((unsigned char)*at)) {
        return 0;
    }
    memcpy(out, at, len);
    out[len] = '\0';
    return len;
}

// NAME of "f(dst=NAME" or "f(NAME".
static void destination(const char *text, size_t n, char *out, size_t cap)
{
    const char *open = memchr(text, '(', n);
    if (!open) {
        return;
    }
    const char *at = open + 1;
    n -= (size_t)(at - text);
    for (size_t i = 0; i + 4 < n; i++) {
        if (strncmp(at + i, "dst=", 4) == 0 && (i == 0 || !is_word(at[i - 1]))) {
            identifier(at + i + 4, n - i - 4, out, cap);
            return;
        }
    }
    size_t len = identifier(at, n, out, cap);
    if (len && len < n && at[len] != ',' && at[len] != ')') {
        *out = '\0';  // of an expression, or a keyword
    }
}

// What the source of an instruction that writes a register calls it.
static void register_variable(const ir *p, const ir_instr *in, char *out, size_t cap)
{
    for (size_t depth = 0; !*out; depth++) {
        uint32_t place = frame_place(p, in->place, depth);
        if (!place) {
            return;
        }
        const ir_place *pl = &p->places.at[place];
        const source *src = pl->file < p->files.n ? p->files.at[pl->file].src : NULL;
        if (!src || pl->lo > src->len || pl->hi > src->len || pl->hi < pl->lo) {
            continue;
        }
        const char *text = src->text + pl->lo;
        size_t n = pl->hi - pl->lo;
        if (in->op == ISA_loop_for) {
            while (text > src->text && text[-1] != '\n') {
                text--;
                n++;
            }
            size_t lead = strspn(text, " \t");
            if (lead + 4 < n && strncmp(text + lead, "for ", 4) == 0) {
                identifier(text + lead + 4, n - lead - 4, out, cap);
            }
        } else if (!assigned_to(src, pl->lo, out, cap)) {
            destination(text, n, out, cap);
        }
    }
}

nki_status nki_tool_register_name(const nki_kernel *k, uint32_t core, size_t reg, char *buf,
                                  size_t cap)
{
    const ir *p = program_of(k, core);
    bool written = false;
    if (!p || !buf || cap == 0) {
        return NKI_ERR_ARG;
    }
    *buf = '\0';
    for (uint32_t i = 0; i < p->instrs.n && !*buf; i++) {
        const ir_instr *in = &p->instrs.at[i];
        for (uint32_t a = 0; a < in->nargs; a++) {
            ir_arg arg = p->args.at[in->args + a];
            if (isa_table[in->op].params[a].type == PT_REGOUT && arg.kind == IRA_REG &&
                arg.v == reg) {
                written = true;
                register_variable(p, in, buf, cap);
                break;
            }
        }
    }
    return written ? NKI_OK : NKI_ERR_ARG;
}

// ---- instructions

const char *nki_tool_instr_name(const nki_kernel *k, uint32_t core, size_t instr)
{
    const ir_instr *in = instr_of(k, core, instr);
    return in ? isa_table[in->op].name : NULL;
}

// Copies the text with each "%12" that has a name under its name.
static void with_names(const ir *p, const char *text, size_t len, char *buf, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < cap;) {
        char name[NKI_NAME_MAX + 16] = "";
        char *end = NULL;
        if (text[i] == '%' && isdigit((unsigned char)text[i + 1])) {
            unsigned long t = strtoul(text + i + 1, &end, 10);
            if (t < p->tensors.n) {
                tensor_label(p, (uint32_t)t, name, sizeof name);
            }
        }
        if (*name) {
            n += (size_t)snprintf(buf + n, cap - n, "%s", name);
            i = (size_t)(end - text);
        } else {
            buf[n++] = text[i++];
        }
    }
    buf[n < cap ? n : cap - 1] = '\0';
}

nki_status nki_tool_instr_text(const nki_kernel *k, uint32_t core, size_t instr, char *buf,
                               size_t cap)
{
    arena mem;
    jmp_buf oom;
    if (!instr_of(k, core, instr) || !buf || cap == 0) {
        return NKI_ERR_ARG;
    }
    arena_init(&mem, 0, &oom);
    if (setjmp(oom)) {
        arena_fini(&mem);
        return NKI_ERR_NOMEM;
    }
    textbuf t;
    text_init(&t, &mem);
    ir_print_instr(program_of(k, core), (uint32_t)instr, &t);
    with_names(program_of(k, core), t.at, t.len, buf, cap);
    arena_fini(&mem);
    return NKI_OK;
}

static bool is_loop(uint16_t op)
{
    return op == ISA_loop_for || op == ISA_loop_while;
}

nki_status nki_tool_instr_loop(const nki_kernel *k, uint32_t core, size_t instr, size_t depth,
                               nki_loop *out)
{
    const ir *p = program_of(k, core);
    if (!instr_of(k, core, instr) || !out) {
        return NKI_ERR_ARG;
    }
    // Backwards over whole loops; a loop's own first and last instruction are inside.
    size_t closed = 0;
    for (size_t i = instr + 1; i-- > 0;) {
        uint16_t op = p->instrs.at[i].op;
        closed += op == ISA_loop_end && i != instr;
        if (!is_loop(op) || (closed && closed--) || depth-- > 0) {
            continue;
        }
        *out = (nki_loop){.begin = i, .counter = NKI_NOWHERE};
        if (op == ISA_loop_for) {
            out->counter = p->args.at[p->instrs.at[i].args].v;
        }
        size_t open = 1;
        for (out->end = i; open;) {
            op = p->instrs.at[++out->end].op;
            open = op == ISA_loop_end ? open - 1 : open + is_loop(op);
        }
        return NKI_OK;
    }
    return NKI_ERR_ARG;
}

// Tensor number *i among those that the argument writes; NKI_NOWHERE, with *i less those passed.
static size_t written_by(const ir *p, param_type t, ir_arg a, size_t *i)
{
    if (a.kind == IRA_LIST) {
        for (int e = 0; e < a.aux; e++) {
            size_t found = written_by(p, t, p->args.at[a.v + (uint32_t)e], i);
            if (found != NKI_NOWHERE) {
                return found;
            }
        }
    } else if ((t == PT_OUT || t == PT_INOUT || t == PT_TENSORS) && a.kind == IRA_VIEW &&
               (*i)-- == 0) {
        return p->views.at[a.v].tensor;
    }
    return NKI_NOWHERE;
}

size_t nki_tool_instr_writes(const nki_kernel *k, uint32_t core, size_t instr, size_t i)
{
    const ir *p = program_of(k, core);
    const ir_instr *in = instr_of(k, core, instr);
    for (uint32_t a = 0; in && a < in->nargs; a++) {
        param_type t = (param_type)isa_table[in->op].params[a].type;
        size_t found = written_by(p, t, p->args.at[in->args + a], &i);
        if (found != NKI_NOWHERE) {
            return found;
        }
    }
    return NKI_NOWHERE;
}

// ---- queues

nki_status nki_tool_queue(const nki_kernel *k, uint32_t core, size_t q, const char **name,
                          size_t *slots)
{
    if (!program_of(k, core) || q >= STREAM_COUNT || !name || !slots) {
        return NKI_ERR_ARG;
    }
    const program *pr = k->core[core].pr;
    *name = stream_name((uint32_t)q);
    *slots = pr->stream_first[q + 1] - pr->stream_first[q];
    return NKI_OK;
}

nki_status nki_tool_queue_slot(const nki_kernel *k, uint32_t core, size_t q, size_t slot,
                               size_t *instr, char *waits, size_t cap)
{
    if (!program_of(k, core) || q >= STREAM_COUNT || !instr || !waits || cap == 0) {
        return NKI_ERR_ARG;
    }
    const program *pr = k->core[core].pr;
    if (slot >= pr->stream_first[q + 1] - pr->stream_first[q]) {
        return NKI_ERR_ARG;
    }
    const queue_slot *at = &pr->slots.at[pr->stream_first[q] + slot];
    *instr = at->instr;
    *waits = '\0';
    uint32_t named = 0;  // a set of queues
    for (uint32_t i = 0; i < at->nsync; i++) {
        const sync_op *op = &pr->syncs.at[at->sync + i];
        uint32_t from = pr->semaphores.at[op->semaphore].producer;
        size_t n = strlen(waits);
        if (op->kind == SYNC_WAIT && !(named >> from & 1) && n < cap) {
            snprintf(waits + n, cap - n, "%s%s", n ? ", " : "", stream_name(from));
            named |= UINT32_C(1) << from;
        }
    }
    return NKI_OK;
}
