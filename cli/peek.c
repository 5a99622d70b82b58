#include "cli/debug.h"
#include "cli/result.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WATCH_WHOLE = 64, PRINT_WHOLE = 256 };  // elements that are shown without leaving any out

// ---- names

typedef struct name_walk {
    const debugger *d;
    uint32_t core;
    nki_tensor_row row;
} name_walk;

// The i-th tensor's name, "" for one that has none.
static const char *name_at(void *ctx, size_t i)
{
    name_walk *w = ctx;
    return nki_tool_tensor_at(w->d->k, w->core, i, &w->row) == NKI_OK ? w->row.name : NULL;
}

// Whether an earlier tensor has the name too.
static bool seen_before(const debugger *d, uint32_t core, size_t tensor, const char *name)
{
    name_walk w = {.d = d, .core = core};
    for (size_t i = 0; i < tensor; i++) {
        if (strcmp(name_at(&w, i), name) == 0) {
            return true;
        }
    }
    return false;
}

static void no_tensor(const debugger *d, uint32_t core, const char *name, char *why, size_t room)
{
    enum { SHOWN = 12 };
    name_walk w = {.d = d, .core = core};
    const char *other = closest_name(name, name_at, &w);
    size_t n = (size_t)snprintf(why, room, "there is no tensor '%s'", name), listed = 0;
    n = n < room ? n : room;
    if (other) {
        snprintf(why + n, room - n, "; did you mean %s?", other);
        return;
    }
    for (size_t i = 0; (other = name_at(&w, i)) && n < room && listed < SHOWN; i++) {
        if (*other && !seen_before(d, core, i, other)) {
            n += (size_t)snprintf(why + n, room - n, "%s%s", listed++ ? ", " : "; there are ",
                                  other);
        }
    }
}

// Whether a tensor is written before an instruction: parameters always.
static bool written_before(const debugger *d, uint32_t core, size_t tensor, size_t before)
{
    nki_frame f;
    size_t first = d->first_write[core][tensor];
    return first == NKI_NOWHERE ? nki_tool_tensor_frame(d->k, core, tensor, 0, &f) != NKI_OK
                                : first < before;
}

bool tensors_mark(const debugger *d, uint32_t core, const char *name, uint8_t *marks)
{
    bool found = false, hides = false;
    nki_tensor_row row;
    size_t n = nki_tool_tensor_count(d->k, core);
    for (size_t t = 0; t < n; t++) {
        marks[t] = nki_tool_tensor_is(d->k, core, t, name) != 0;
        if (marks[t]) {
            nki_tool_tensor_at(d->k, core, t, &row);
            marks[t] = row.output == NKI_NOWHERE ? 1 : 2;
            hides |= marks[t] == 2;
            found = true;
        }
    }
    for (size_t t = 0; t < n; t++) {
        marks[t] = marks[t] > hides;  // what a result hides goes
    }
    return found;
}

size_t tensor_find(const debugger *d, uint32_t core, size_t instr, const char *name, char *why,
                   size_t room)
{
    size_t n = nki_tool_tensor_count(d->k, core), first = NKI_NOWHERE, newest = NKI_NOWHERE;
    size_t before = instr == NKI_NOWHERE ? instr : instr + 1;
    uint8_t *marks = malloc(n + 1);
    if (!marks) {
        snprintf(why, room, "out of memory");
        return NKI_NOWHERE;
    }
    if (!tensors_mark(d, core, name, marks)) {
        no_tensor(d, core, name, why, room);
    }
    for (size_t t = 0; t < n; t++) {
        if (marks[t]) {
            first = first == NKI_NOWHERE ? t : first;
            newest = written_before(d, core, t, before) ? t : newest;
        }
    }
    free(marks);
    return newest != NKI_NOWHERE ? newest : first;
}

// ---- slices

typedef struct slices {
    nki_range at[NKI_MAX_DIMS];
    bool dropped[NKI_MAX_DIMS];  // an index, not a slice
} slices;

static bool bad_slice(char *why, size_t room, const char *text)
{
    snprintf(why, room, "'%s' should be [i, a:b, a:b:step, ...]", text);
    return false;
}

// An integer at *p, or the default when there is none.
static bool optional(const char **p, long long dflt, long long *out)
{
    char *end;
    *p += strspn(*p, " ");
    *out = dflt;
    if (**p == '-' || isdigit((unsigned char)**p)) {
        *out = strtoll(*p, &end, 10);
        *p = end + strspn(end, " ");
        return true;
    }
    return false;
}

// One of the comma-separated parts, for a dimension of `size`.
static bool one_slice(const char **p, size_t size, nki_range *r, bool *index, char *why,
                      size_t room)
{
    long long n = (long long)size, lo, hi, step = 1;
    bool given = optional(p, 0, &lo);
    *index = **p != ':';
    if (*index && !given) {
        snprintf(why, room, "an index or a slice is missing at '%s'", *p);
        return false;
    }
    lo = lo < 0 ? lo + n : lo;
    hi = lo + 1;
    if (!*index) {
        ++*p;
        optional(p, n, &hi);
        hi = hi < 0 ? hi + n : hi > n ? n : hi;
        if (**p == ':') {
            ++*p;
            optional(p, 1, &step);
        }
    }
    if (lo < 0 || lo >= n || hi <= lo || step < 1) {
        snprintf(why, room, "nothing of a dimension of %zu is there", size);
        return false;
    }
    *r = (nki_range){(size_t)lo, (size_t)((hi - lo + step - 1) / step), (size_t)step};
    return true;
}

// text: "" or "[...]".
static bool parse_slices(const char *text, size_t ndim, const size_t *shape, slices *out, char *why,
                         size_t room)
{
    const char *p = text + strspn(text, " ");
    size_t d = 0, parts = 1;
    for (size_t i = 0; i < ndim; i++) {
        out->at[i] = (nki_range){0, shape[i], 1};
        out->dropped[i] = false;
    }
    if (!*p) {
        return true;
    }
    for (const char *c = p; *c; c++) {
        parts += *c == ',';
    }
    if (*p++ != '[') {
        return bad_slice(why, room, text);
    }
    for (;; p++) {
        p += strspn(p, " ");
        if (strncmp(p, "...", 3) == 0) {
            p += 3;
            d = parts - 1 < ndim ? d + ndim - (parts - 1) : d;
        } else if (d == ndim) {
            snprintf(why, room, "it has %zu dimension%s", ndim, ndim == 1 ? "" : "s");
            return false;
        } else if (one_slice(&p, shape[d], &out->at[d], &out->dropped[d], why, room)) {
            d++;
        } else {
            return false;
        }
        p += strspn(p, " ");
        if (*p == ']' && !p[1 + strspn(p + 1, " ")]) {
            return true;
        }
        if (*p != ',') {
            return bad_slice(why, room, text);
        }
    }
}

// ---- printing

// "[0:2, :]"; "" for all of it.
static void range_text(const nki_range *r, const size_t *shape, size_t ndim, char *buf, size_t cap)
{
    bool whole = true;
    size_t n = 0;
    for (size_t d = 0; d < ndim; d++) {
        whole = whole && r[d].count == shape[d];
    }
    *buf = '\0';
    for (size_t d = 0; !whole && d < ndim && n < cap; d++) {
        n += (size_t)snprintf(buf + n, cap - n, d ? ", " : "[");
        if (n < cap && r[d].count == shape[d]) {
            n += (size_t)snprintf(buf + n, cap - n, ":");
        } else if (n < cap) {
            n += (size_t)snprintf(buf + n, cap - n, "%zu:%zu", r[d].lo,
                                  r[d].lo + (r[d].count - 1) * r[d].step + 1);
        }
        if (n < cap && r[d].count > 1 && r[d].step > 1) {
            n += (size_t)snprintf(buf + n, cap - n, ":%zu", r[d].step);
        }
    }
    if (!whole && n < cap) {
        snprintf(buf + n, cap - n, "]");
    }
}

// The elements; dimensions that an index picked one of are left out.
static bool print_values(const nki_tensor *t, const bool *dropped, size_t whole)
{
    npy_array a;
    bool ok = t && npy_of_tensor(t, false, &a);
    if (ok) {
        size_t n = 0;
        for (size_t d = 0; d < a.ndim; d++) {
            if (!dropped || !dropped[d]) {
                a.shape[n++] = a.shape[d];
            }
        }
        a.ndim = n;
        array_print(&a, whole);
        npy_free(&a);
    }
    return ok;
}

static void print_head(const char *label, const nki_tensor *t, const bool *dropped,
                       const char *buffer)
{
    printf("%s [", label);
    for (size_t d = 0, n = 0; d < nki_tensor_ndim(t); d++) {
        if (!dropped || !dropped[d]) {
            printf("%s%zu", n++ ? ", " : "", nki_tensor_shape(t)[d]);
        }
    }
    printf("] %s%s%s\n", nki_dtype_name(nki_tensor_dtype(t)), *buffer ? " @" : "", buffer);
}

// Looked for once: a watch asks for each write.
static const char *register_name(debugger *d, uint32_t core, size_t reg)
{
    char found[NKI_NAME_MAX] = "";
    if (reg >= d->register_count[core]) {
        size_t n = reg + 16, old = d->register_count[core];
        char **names = realloc(d->registers[core], n * sizeof *names);
        if (!names) {
            return "";
        }
        memset(names + old, 0, (n - old) * sizeof *names);
        d->registers[core] = names;
        d->register_count[core] = n;
    }
    char **name = &d->registers[core][reg];
    if (!*name) {
        nki_tool_register_name(d->k, core, reg, found, sizeof found);
        *name = strdup(found);
    }
    return *name ? *name : "";
}

const char *register_label(debugger *d, uint32_t core, size_t reg, char *buf, size_t cap)
{
    const char *name = register_name(d, core, reg);
    snprintf(buf, cap, *name ? "%s (r%zu)" : "%sr%zu", name, reg);
    return buf;
}

// The register that is called so; NKI_NOWHERE: none.
static size_t register_find(debugger *d, const nki_step *s, uint32_t core, const char *name)
{
    for (size_t r = nki_step_register_count(s, core); r-- > 0;) {  // the newest of a name
        if (strcmp(register_name(d, core, r), name) == 0) {
            return r;
        }
    }
    return NKI_NOWHERE;
}

static bool print_register(debugger *d, nki_step *s, uint32_t core, size_t r, char *why,
                           size_t room)
{
    int32_t v;
    char label[NKI_NAME_MAX + 16];
    if (nki_step_register(s, core, r, &v) != NKI_OK) {
        snprintf(why, room, "the kernel has %zu registers", nki_step_register_count(s, core));
        return false;
    }
    printf("%s = %d\n", register_label(d, core, r, label, sizeof label), v);
    return true;
}

static bool is_register(const char *text)
{
    size_t n = *text == 'r' ? strspn(text + 1, "0123456789") : 0;
    return n > 0 && !text[1 + n];
}

static const char *param_at(void *ctx, size_t i)
{
    nki_step_operand o;
    return nki_step_operand_at(ctx, i, &o) == NKI_OK ? (o.param ? o.param : "") : NULL;
}

// The slices of t, which is released. NULL: no memory.
static nki_tensor *take(nki_tensor *t, const slices *sl)
{
    for (size_t d = 0; t && d < nki_tensor_ndim(t); d++) {
        const nki_range *r = &sl->at[d];
        nki_tensor *part = NULL;
        nki_tensor_slice(t, d, r->lo, r->lo + (r->count - 1) * r->step + 1, r->step, &part);
        nki_tensor_release(t);
        t = part;
    }
    return t;
}

// Shows what was read, which is released.
static bool show_tensor(const char *label, nki_tensor *t, const slices *sl, const char *buffer,
                        char *why, size_t room)
{
    bool ok = t != NULL;
    if (ok) {
        print_head(label, t, sl->dropped, buffer);
        ok = print_values(t, sl->dropped, PRINT_WHOLE);
        nki_tensor_release(t);
    }
    if (!ok) {
        snprintf(why, room, "out of memory");
    }
    return ok;
}

static bool print_operand(nki_step *s, const char *name, const char *rest, char *why, size_t room)
{
    nki_step_operand o;
    const char *param;
    size_t i = 0;
    while ((param = param_at(s, i)) && strcmp(param, name) != 0) {
        i++;
    }
    if (!param) {
        size_t n = (size_t)snprintf(why, room, "this instruction has no operand '%s'", name);
        for (size_t j = 0, listed = 0; (param = param_at(s, j)) && n < room; j++) {
            if (*param) {
                n += (size_t)snprintf(why + n, room - n, "%s%s", listed++ ? ", " : "; it has ",
                                      param);
            }
        }
        return false;
    }
    nki_tensor *t = NULL;
    slices sl;
    nki_step_operand_at(s, i, &o);
    if (!parse_slices(rest, o.ndim, o.shape, &sl, why, room)) {
        return false;
    }
    nki_step_operand_read(s, i, &t);
    char label[LINE_MAX_BYTES];
    snprintf(label, sizeof label, "$%s%s", name, rest);
    return show_tensor(label, take(t, &sl), &sl, "", why, room);
}

// As the language has it: on chip the partitions stay, and so do two dimensions.
static void keep_chip_dims(slices *sl, size_t ndim)
{
    size_t kept = ndim;
    sl->dropped[0] = false;
    for (size_t d = 1; d < ndim; d++) {
        kept -= sl->dropped[d];
    }
    for (size_t d = ndim; d-- > 1 && kept < 2;) {
        kept += sl->dropped[d];
        sl->dropped[d] = false;
    }
}

static bool print_tensor(debugger *d, nki_step *s, uint32_t core, const char *name,
                         const char *rest, char *why, size_t room)
{
    nki_tensor_row row;
    slices sl;
    nki_tensor *part = NULL;
    size_t instr = nki_step_instr(s, core);
    size_t t = tensor_find(d, core, instr, name, why, room);
    if (t == NKI_NOWHERE) {
        return false;
    }
    nki_tool_tensor_at(d->k, core, t, &row);
    if (!parse_slices(rest, row.ndim, row.shape, &sl, why, room)) {
        return false;
    }
    if (row.ndim && (strcmp(row.buffer, "sbuf") == 0 || strcmp(row.buffer, "psum") == 0)) {
        keep_chip_dims(&sl, row.ndim);
    }
    if (nki_step_read(s, core, t, sl.at, &part) == NKI_ERR_ARG) {
        snprintf(why, room, "core %u has not begun", core);
        return false;
    }
    char label[LINE_MAX_BYTES];
    snprintf(label, sizeof label, "%s%s", name, rest);
    bool ok = show_tensor(label, part, &sl, row.buffer, why, room);
    nki_loop l;
    bool once = nki_tool_instr_loop(d->k, core, instr, 0, &l) != NKI_OK;
    if (ok && instr != NKI_NOWHERE && once && !written_before(d, core, t, instr)) {
        puts("(nothing has been written to it yet)");
    }
    return ok;
}

bool print_expression(debugger *d, nki_step *s, uint32_t core, const char *text, char *why,
                      size_t room)
{
    char name[NKI_NAME_MAX];
    size_t n = strcspn(text, "[");
    const char *rest = text + n;
    while (n && text[n - 1] == ' ') {
        n--;
    }
    if (n == 0 || n >= sizeof name) {
        snprintf(why, room, "'%s' should be TENSOR[SLICES], REGISTER or $PARAM", text);
        return false;
    }
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    char unused[8];
    bool number = is_register(name);
    size_t reg = number ? strtoul(name + 1, NULL, 10) : register_find(d, s, core, name);
    if ((number || reg != NKI_NOWHERE) &&
        tensor_find(d, core, NKI_NOWHERE, name, unused, sizeof unused) == NKI_NOWHERE) {
        return print_register(d, s, core, reg, why, room);
    }
    return *name == '$' ? print_operand(s, name + 1, rest, why, room)
                        : print_tensor(d, s, core, name, rest, why, room);
}

nki_tensor *tensor_now(const nki_step *s, const debugger *d, uint32_t core, size_t tensor)
{
    nki_tensor_row row;
    nki_range all[NKI_MAX_DIMS];
    nki_tensor *t = NULL;
    nki_tool_tensor_at(d->k, core, tensor, &row);
    for (size_t i = 0; i < row.ndim; i++) {
        all[i] = (nki_range){0, row.shape[i], 1};
    }
    nki_step_read(s, core, tensor, all, &t);
    return t;
}

// ---- watching

bool watches_mark(debugger *d)
{
    for (uint32_t c = 0; c < d->cores; c++) {
        size_t n = nki_tool_tensor_count(d->k, c);
        uint8_t *marks = malloc(n + 1), *all = calloc(n + 1, 1);
        for (size_t i = 0; marks && all && i < d->watch_count; i++) {
            tensors_mark(d, c, d->watches[i], marks);
            for (size_t t = 0; t < n; t++) {
                all[t] |= marks[t];
            }
        }
        bool ok = marks && all;
        free(marks);
        free(d->watched[c]);
        d->watched[c] = all;
        if (!ok) {
            return false;
        }
    }
    return true;
}

void print_loop(debugger *d, const nki_step *s, uint32_t core, const nki_loop *l,
                const char *between)
{
    int32_t v;
    char label[NKI_NAME_MAX + 16];
    unsigned long long trip = nki_step_trip(s, core, l->begin);
    if (trip == 0) {
        return;  // at its beginning
    }
    if (l->counter != NKI_NOWHERE && nki_step_register(s, core, l->counter, &v) == NKI_OK) {
        printf("%s%s = %d (trip %llu)", between,
               register_label(d, core, l->counter, label, sizeof label), v, trip);
    } else {
        printf("%strip %llu", between, trip);
    }
}

// ", i = 0, r3 = 2 (trip 3)": compile-time values and the register loops around.
static void print_circumstances(debugger *d, nki_step *s)
{
    uint32_t core = nki_step_core(s);
    size_t instr = nki_step_instr(s, core);
    nki_frame f;
    nki_loop l;
    for (size_t i = 0; nki_tool_instr_frame(d->k, core, instr, i, &f) == NKI_OK; i++) {
        if (*f.values) {
            printf(", %s", f.values);
        }
    }
    for (size_t i = 0; nki_tool_instr_loop(d->k, core, instr, i, &l) == NKI_OK; i++) {
        print_loop(d, s, core, &l, ", ");
    }
}

void show_writes(debugger *d, nki_step *s)
{
    uint32_t core = nki_step_core(s);
    size_t instr = nki_step_instr(s, core);
    nki_step_operand o;
    for (size_t i = 0; nki_step_operand_at(s, i, &o) == NKI_OK; i++) {
        if (!o.written || o.tensor == NKI_NOWHERE || !d->watched[core][o.tensor]) {
            continue;
        }
        nki_tensor_row row;
        nki_frame f = {.file = ""};
        nki_tensor *t = NULL;
        char prefix[16], label[NKI_NAME_MAX + 16], ranges[256] = "";
        nki_tool_tensor_at(d->k, core, o.tensor, &row);
        nki_tool_instr_frame(d->k, core, instr, 0, &f);
        nki_tool_tensor_label(d->k, core, o.tensor, label, sizeof label);
        nki_range box[NKI_MAX_DIMS];
        if (nki_step_operand_ranges(s, i, box) == NKI_OK) {
            range_text(box, row.shape, row.ndim, ranges, sizeof ranges);
        } else {
            snprintf(ranges, sizeof ranges, " in parts");
        }
        printf("%s%s:%zu: %s%s, by %s", core_prefix(d, core, prefix, sizeof prefix), f.file, f.line,
               label, ranges, nki_tool_instr_name(d->k, core, instr));
        print_circumstances(d, s);
        putchar('\n');
        if (nki_step_operand_read(s, i, &t) != NKI_OK || !print_values(t, NULL, WATCH_WHOLE)) {
            d->status = other_error("out of memory for the value of '%s'", label);
        }
        nki_tensor_release(t);
    }
}
