#include "lang/ir_text.h"

#include <inttypes.h>
#include <math.h>

// A line at a time, one cursor, no look-ahead beyond a token. Places come back as the file and line
// that the text shows: each file gets a stand-in source of empty lines, so that lines print the
// same.

enum { MAX_DEPTH = 4, MAX_LINE = 1 << 20, MAX_PARAMS = 1 << 16 };

typedef struct text_parser {
    ir *p;
    arena *mem;
    const char *begin, *at, *end;  // of the line
    const char *stop;              // of the text
    uint32_t line;
    const char *err;
    VEC(uint32_t) last_line;  // of each file, from 1
} text_parser;

#define BAD(ps, ...)                                                                               \
    ((ps)->err ? false : ((ps)->err = complain((ps), arena_printf((ps)->mem, __VA_ARGS__)), false))

static const char *complain(text_parser *ps, const char *what)
{
    return arena_printf(ps->mem, "line %" PRIu32 ": %s", ps->line, what);
}

// ---- tokens

static void skip_blanks(text_parser *ps)
{
    while (ps->at < ps->end && *ps->at == ' ') {
        ps->at++;
    }
}

static bool next_is(text_parser *ps, char c)
{
    skip_blanks(ps);
    return ps->at < ps->end && *ps->at == c;
}

static bool take(text_parser *ps, char c)
{
    if (next_is(ps, c)) {
        ps->at++;
        return true;
    }
    return false;
}

static bool want(text_parser *ps, char c)
{
    return take(ps, c) || BAD(ps, "'%c' expected at column %d", c, (int)(ps->at - ps->begin) + 1);
}

typedef struct token {
    const char *at;
    size_t len;
} token;

static bool word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '+' || c == '.' || c == ':';
}

// The longest run of word characters but `stop`; may be empty.
static token word(text_parser *ps, char stop)
{
    skip_blanks(ps);
    token t = {ps->at, 0};
    while (ps->at < ps->end && word_char(*ps->at) && *ps->at != stop) {
        ps->at++;
    }
    t.len = (size_t)(ps->at - t.at);
    return t;
}

static bool same(token t, const char *s)
{
    return strlen(s) == t.len && memcmp(t.at, s, t.len) == 0;
}

static const char *copy(text_parser *ps, token t)
{
    return arena_text(ps->mem, t.at, t.len);
}

static bool to_int(token t, int64_t *out)
{
    size_t i = t.len && t.at[0] == '-';
    bool neg = i;
    int64_t v = 0;
    if (i == t.len) {
        return false;
    }
    for (; i < t.len; i++) {
        int digit = t.at[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, neg ? -digit : digit, &v)) {
            return false;
        }
    }
    *out = v;
    return true;
}

static bool number(text_parser *ps, int64_t lo, int64_t hi, int64_t *out)
{
    skip_blanks(ps);
    token t = {ps->at, 0};
    while (ps->at < ps->end && (*ps->at == '-' || (*ps->at >= '0' && *ps->at <= '9'))) {
        ps->at++;
    }
    t.len = (size_t)(ps->at - t.at);
    t = t.len ? t : word(ps, ' ');
    return (to_int(t, out) && *out >= lo && *out <= hi) ||
           BAD(ps, "a number from %" PRId64 " to %" PRId64 " expected, not '%s'", lo, hi,
               copy(ps, t));
}

static bool number32(text_parser *ps, uint32_t *out)
{
    int64_t v = 0;
    bool good = number(ps, 0, UINT32_MAX, &v);
    *out = (uint32_t)v;
    return good;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// [at, end) with \" \\ and \xNN undone, interned.
static bool unescape(text_parser *ps, const char *at, const char *end, uint32_t *str)
{
    char *buf = NEW_N(ps->mem, char, (size_t)(end - at) + 1);
    size_t n = 0;
    while (at < end) {
        if (*at != '\\') {
            buf[n++] = *at++;
        } else if (end - at >= 2 && (at[1] == '"' || at[1] == '\\')) {
            buf[n++] = at[1];
            at += 2;
        } else if (end - at >= 4 && at[1] == 'x' && hex_digit(at[2]) >= 0 &&
                   hex_digit(at[3]) >= 0) {
            buf[n++] = (char)(hex_digit(at[2]) * 16 + hex_digit(at[3]));
            at += 4;
        } else {
            return BAD(ps, "a backslash that begins no escape");
        }
        if (!buf[n - 1]) {
            return BAD(ps, "a zero byte in a string");
        }
    }
    *str = ir_str(ps->p, buf, n);
    return true;
}

static bool quoted(text_parser *ps, uint32_t *str)
{
    if (!want(ps, '"')) {
        return false;
    }
    const char *lo = ps->at;
    while (ps->at < ps->end && *ps->at != '"') {
        ps->at += *ps->at == '\\' && ps->end - ps->at > 1 ? 2 : 1;
    }
    if (ps->at >= ps->end) {
        return BAD(ps, "a string without an end");
    }
    return unescape(ps, lo, ps->at++, str);
}

// key=
static bool key(text_parser *ps, const char *name)
{
    token t = word(ps, '=');
    return (same(t, name) && take(ps, '=')) || BAD(ps, "'%s=' expected", name);
}

// ---- places

// The rest of the line: nothing, or "; file:line".
static bool place_and_end(text_parser *ps, uint32_t *place)
{
    *place = 0;
    skip_blanks(ps);
    if (ps->at == ps->end) {
        return true;
    }
    if (!take(ps, ';')) {
        return BAD(ps, "'%c' is not expected here", *ps->at);
    }
    skip_blanks(ps);
    const char *colon = ps->end;
    while (colon > ps->at && colon[-1] != ':') {
        colon--;
    }
    colon -= colon > ps->at;
    uint32_t str;
    int64_t line = 0;
    if (colon == ps->at || !unescape(ps, ps->at, colon, &str)) {
        return BAD(ps, "a place is 'file:line'");
    }
    ps->at = colon + 1;
    if (!number(ps, 1, MAX_LINE, &line)) {
        return false;
    }
    if (ps->at != ps->end) {
        return BAD(ps, "a place ends the line");
    }
    uint32_t file = ir_file_add(ps->p, ir_text(ps->p, str), NULL);
    if (file == ps->last_line.n) {
        vec_push(ps->mem, &ps->last_line, 0);
    }
    if (line > ps->last_line.at[file]) {
        ps->last_line.at[file] = (uint32_t)line;
    }
    uint32_t lo = (uint32_t)line - 1;
    const ir_place *back = &ps->p->places.at[ps->p->places.n - 1];
    if (back->kind == PLACE_SITE && back->file == file && back->lo == lo) {
        *place = ps->p->places.n - 1;
        return true;
    }
    *place = ir_place_add(ps->p, (ir_place){.kind = PLACE_SITE, .file = file, .lo = lo, .hi = lo});
    return true;
}

static void make_sources(text_parser *ps)
{
    for (uint32_t i = 0; i < ps->p->files.n; i++) {
        source *s = NEW(ps->mem, source);
        uint32_t len = ps->last_line.at[i] - 1;
        char *text = NEW_N(ps->mem, char, (size_t)len + 1);
        memset(text, '\n', len);
        *s = (source){ir_text(ps->p, ps->p->files.at[i].name), text, len};
        ps->p->files.at[i].src = s;
    }
}

// ---- views

static bool tensor_number(text_parser *ps, uint32_t *tensor)
{
    if (!want(ps, '%') || !number32(ps, tensor)) {
        return false;
    }
    return *tensor < ps->p->tensors.n || BAD(ps, "tensor %%%" PRIu32 " does not exist", *tensor);
}

// [lo:hi:step, :, ...]; without brackets the whole tensor.
static bool slices(text_parser *ps, ir_view *v)
{
    const ir_tensor *t = &ps->p->tensors.at[v->tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer), some = take(ps, '[');
    ir_dim d[IR_MAX_DIMS];
    memset(d, 0, sizeof d);
    int64_t lo[IR_MAX_DIMS], unit = 1;
    for (uint32_t k = 0; k < t->ndim; k++) {
        int64_t hi = t->shape[k], step = 1;
        lo[k] = 0;
        if (some && k && !want(ps, ',')) {
            return false;
        }
        if (some && next_is(ps, ':')) {
            ps->at++;
        } else if (some) {
            if (!number(ps, 0, t->shape[k] - 1, &lo[k]) || !want(ps, ':') ||
                !number(ps, lo[k] + 1, t->shape[k], &hi) ||
                (take(ps, ':') && !number(ps, 1, UINT32_MAX, &step))) {
                return false;
            }
        }
        d[k].stride = step;
        d[k].count = (uint32_t)((hi - lo[k] + step - 1) / step);
    }
    if (some && !want(ps, ']')) {
        return false;
    }
    for (uint32_t k = t->ndim; k-- > 0;) {
        if (chip && k == 0) {
            v->part = (uint8_t)lo[0];
            break;
        }
        d[k].stride *= unit;
        v->offset += lo[k] * unit;
        unit *= t->shape[k];
    }
    v->ap = ir_ap_of(ps->p, d, t->ndim);
    return true;
}

// ([[stride, count], ...], part=, offset=, dtype=)
static bool pattern(text_parser *ps, ir_view *v)
{
    ir_dim d[IR_MAX_DIMS];
    memset(d, 0, sizeof d);
    uint32_t n = 0;
    if (!want(ps, '(') || !want(ps, '[')) {
        return false;
    }
    while (!next_is(ps, ']')) {
        int64_t count = 0;
        if (n == IR_MAX_DIMS) {
            return BAD(ps, "more than %d dimensions", IR_MAX_DIMS);
        }
        if ((n && !want(ps, ',')) || !want(ps, '[') ||
            !number(ps, INT64_MIN, INT64_MAX, &d[n].stride) || !want(ps, ',') ||
            !number(ps, 1, UINT32_MAX, &count) || !want(ps, ']')) {
            return false;
        }
        d[n++].count = (uint32_t)count;
    }
    ps->at++;
    v->ap = ir_ap_of(ps->p, d, n);
    while (take(ps, ',')) {
        token t = word(ps, '=');
        int64_t part = 0;
        if (!want(ps, '=')) {
            return false;
        }
        if (same(t, "part")) {
            if (!number(ps, 0, 255, &part)) {
                return false;
            }
            v->part = (uint8_t)part;
        } else if (same(t, "offset")) {
            if (!number(ps, INT64_MIN, INT64_MAX, &v->offset)) {
                return false;
            }
        } else if (same(t, "dtype")) {
            dtype type;
            token name = word(ps, ',');
            if (!dtype_find(name.at, name.len, &type)) {
                return BAD(ps, "dtype '%s' does not exist", copy(ps, name));
            }
            v->dtype = (uint8_t)type;
        } else {
            return BAD(ps, "'%s' is not a part of a pattern", copy(ps, t));
        }
    }
    return want(ps, ')');
}

static bool view(text_parser *ps, uint32_t *out, int depth);

static bool dynamic_rest(text_parser *ps, ir_dyn *d)
{
    while (take(ps, ',')) {
        token t = word(ps, '=');
        int64_t n = 0;
        if (!want(ps, '=') || !number(ps, INT64_MIN, INT64_MAX, &n)) {
            return false;
        }
        bool small = n >= 0 && n <= UINT32_MAX;
        if (same(t, "step")) {
            d->step = n;
        } else if (same(t, "partition") && (n == 0 || n == 1)) {
            d->partition = (uint8_t)n;
        } else if (same(t, "num_elem") && small) {
            d->num_elem = (uint32_t)n;
        } else if (same(t, "limit") && small) {
            d->limit = (uint32_t)n;
        } else {
            return BAD(ps, "'%s=%" PRId64 "' is not a part of a dynamic offset", copy(ps, t), n);
        }
    }
    return want(ps, ')');
}

static bool dynamic(text_parser *ps, token kind, uint32_t *out, int depth)
{
    static const char *const names[] = {"", "register", "scalar", "vector", "indirect"};
    ir_dyn d = {.step = 1};
    for (uint8_t k = DYN_REG; k <= DYN_INDIRECT; k++) {
        if (same(kind, names[k])) {
            d.kind = k;
        }
    }
    if (!d.kind || depth) {
        return BAD(ps, "'.%s' is not expected here", copy(ps, kind));
    }
    if (!want(ps, '(')) {
        return false;
    }
    if (d.kind == DYN_REG) {
        if (!want(ps, 'r') || !number32(ps, &d.src)) {
            return false;
        }
    } else if (!view(ps, &d.src, depth + 1)) {
        return false;
    }
    if (!dynamic_rest(ps, &d)) {
        return false;
    }
    *out = ir_dyn_add(ps->p, d);
    return true;
}

static bool view(text_parser *ps, uint32_t *out, int depth)
{
    ir_view v = {0};
    if (!tensor_number(ps, &v.tensor)) {
        return false;
    }
    v.dtype = ps->p->tensors.at[v.tensor].dtype;
    token t = {"", 0};
    bool dot = ps->at < ps->end && *ps->at == '.';
    if (dot) {
        ps->at++;
        t = word(ps, '.');
    }
    if (same(t, "ap")) {
        if (!pattern(ps, &v)) {
            return false;
        }
        dot = take(ps, '.');
        t = dot ? word(ps, '.') : t;
    } else if (!dot) {
        if (!slices(ps, &v)) {
            return false;
        }
        dot = take(ps, '.');
        t = dot ? word(ps, '.') : t;
    } else {
        ir_view whole = ir_view_whole(ps->p, v.tensor);
        v.ap = whole.ap;
    }
    if (dot && !dynamic(ps, t, &v.dyn, depth)) {
        return false;
    }
    *out = ir_view_add(ps->p, v);
    return true;
}

// ---- arguments

// The float that prints as t: (float)strtod rounds twice, which can miss by one.
static float nearest(double v, token t)
{
    float f = (float)v, next[2] = {nextafterf(f, INFINITY), nextafterf(f, -INFINITY)};
    char buf[40];
    text_float(buf, f);
    for (int i = 0; i < 2 && !same(t, buf); i++) {
        text_float(buf, next[i]);
        if (same(t, buf)) {
            return next[i];
        }
    }
    return f;
}

static bool nan_bits(text_parser *ps, ir_arg *out)
{
    uint32_t bits = 0;
    int n = 0;
    token t = {"", 0};
    if (!want(ps, '(') || (t = word(ps, ')'), t.len != 10) || t.at[0] != '0' || t.at[1] != 'x') {
        return BAD(ps, "nan(0x........) expected");
    }
    for (n = 2; n < 10 && hex_digit(t.at[n]) >= 0; n++) {
        bits = bits << 4 | (uint32_t)hex_digit(t.at[n]);
    }
    *out = ira_kind(IRA_F32, bits);
    float f = ira_float(*out);
    return (n == 10 && f != f && want(ps, ')')) || BAD(ps, "not the bits of a NaN");
}

// A word that is no punctuation: number, register, operator or enum member.
static bool scalar(text_parser *ps, const isa_param *par, ir_arg *out)
{
    token t = word(ps, ',');
    int64_t n;
    op_id op;
    int member;
    const char *s = copy(ps, t);
    if (same(t, "None")) {
        *out = ira_none();
    } else if (same(t, "True") || same(t, "False")) {
        *out = ira_kind(IRA_BOOL, t.len == 4);
    } else if (same(t, "nan")) {
        return nan_bits(ps, out);
    } else if (t.len > 1 && t.at[0] == 'r' && to_int((token){t.at + 1, t.len - 1}, &n) && n >= 0 &&
               n <= UINT32_MAX) {
        *out = ira_kind(IRA_REG, (uint32_t)n);
    } else if (t.len > 3 && memcmp(t.at, "op:", 3) == 0 && op_find(s + 3, &op)) {
        *out = ira_kind(IRA_OP, op);
    } else if (t.len > 5 && memcmp(t.at, "enum:", 5) == 0 &&
               to_int((token){t.at + 5, t.len - 5}, &n) && n >= 0 && n <= UINT32_MAX) {
        *out = ira_kind(IRA_ENUM, (uint32_t)n);
    } else if (par && par->type == PT_OP && op_find(s, &op)) {
        *out = ira_kind(IRA_OP, op);
    } else if (par && par->type >= PT_ENGINE && par->type <= PT_DMAENG &&
               isa_enum_value(isa_param_enum((param_type)par->type), s, &member)) {
        *out = ira_kind(IRA_ENUM, (uint32_t)member);
    } else if (to_int(t, &n)) {
        if (n < -((int64_t)1 << 32) || n > UINT32_MAX) {
            return BAD(ps, "%s is outside 33 bits", s);
        }
        *out = ira_int(n);
    } else {
        double v;
        bool numeric = t.len && (same(t, "inf") || same(t, "-inf") ||
                                 (t.at[t.len - 1] >= '0' && t.at[t.len - 1] <= '9'));
        if (!numeric || !text_to_double(t.at, t.len, &v) || v != v) {
            return BAD(ps, "'%s' is not a value here", s);
        }
        *out = ira_f32(nearest(v, t));
    }
    return true;
}

static bool argument(text_parser *ps, const isa_param *par, ir_arg *out, int depth)
{
    if (next_is(ps, '%')) {
        *out = ira_kind(IRA_VIEW, 0);
        return view(ps, &out->v, 0);
    }
    if (next_is(ps, '"')) {
        *out = ira_kind(IRA_STR, 0);
        return quoted(ps, &out->v);
    }
    if (!take(ps, '[')) {
        return scalar(ps, par, out);
    }
    if (depth == MAX_DEPTH) {
        return BAD(ps, "lists too deep");
    }
    VEC(ir_arg) list = {0};
    while (!next_is(ps, ']')) {
        ir_arg a;
        if ((list.n && !want(ps, ',')) || !argument(ps, NULL, &a, depth + 1)) {
            return false;
        }
        vec_push(ps->mem, &list, a);
    }
    ps->at++;
    if (list.n > INT16_MAX) {
        return BAD(ps, "a list of %" PRIu32 " elements", list.n);
    }
    *out = ira_kind(IRA_LIST, list.n ? ir_list(ps->p, list.at, list.n) : 0);
    out->aux = (int16_t)list.n;
    return true;
}

// ---- lines

// Nothing, or " precise_fp=off".
static bool precise_fp(text_parser *ps)
{
    skip_blanks(ps);
    if (ps->at == ps->end || *ps->at != 'p') {
        return true;
    }
    ps->p->fp32_store = key(ps, "precise_fp") && same(word(ps, ' '), "off");
    return ps->p->fp32_store || BAD(ps, "precise_fp is off or not written");
}

static bool kernel_line(text_parser *ps)
{
    token t = word(ps, ' ');
    uint32_t str;
    if (!same(t, "kernel") || !quoted(ps, &str) || !key(ps, "target")) {
        return BAD(ps, "the text begins with: kernel \"name\" target=");
    }
    const char *name = copy(ps, word(ps, ' '));
    ir *p = ps->p;
    p->target = target_find(name);
    if (!p->target) {
        return BAD(ps, "target '%s' does not exist", name);
    }
    p->kernel = str;
    uint32_t place;
    return key(ps, "grid") && number32(ps, &p->grid) && key(ps, "core") && number32(ps, &p->core) &&
           key(ps, "registers") && number32(ps, &p->registers) && precise_fp(ps) &&
           place_and_end(ps, &place);
}

static bool shape(text_parser *ps, ir_tensor *t)
{
    if (!want(ps, '[')) {
        return false;
    }
    t->size_bytes = dtype_size((dtype)t->dtype);
    while (!next_is(ps, ']')) {
        int64_t n = 0;
        if (t->ndim == IR_MAX_DIMS) {
            return BAD(ps, "more than %d dimensions", IR_MAX_DIMS);
        }
        if ((t->ndim && !want(ps, ',')) || !number(ps, 1, UINT32_MAX, &n)) {
            return false;
        }
        t->shape[t->ndim++] = (uint32_t)n;
    }
    ps->at++;
    return true;
}

static bool buffer_of(text_parser *ps, ir_tensor *t)
{
    token w = word(ps, '=');
    bool found = false;
    for (uint8_t b = 0; b < BUF_COUNT; b++) {
        if (same(w, buffer_name((buffer_kind)b))) {
            t->buffer = b;
            found = true;
        }
    }
    if (!found) {
        return BAD(ps, "buffer '%s' does not exist", copy(ps, w));
    }
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    if (chip && (t->ndim == 0 || t->shape[0] > ps->p->target->partitions)) {
        return BAD(ps, "on chip a tensor has 1 to %" PRIu32 " partitions",
                   ps->p->target->partitions);
    }
    t->partitions = (uint16_t)(chip ? t->shape[0] : 0);
    for (uint32_t k = chip; k < t->ndim; k++) {
        if (t->shape[k] > ((uint64_t)1 << 46) / t->size_bytes) {
            return BAD(ps, "the tensor is too large");
        }
        t->size_bytes *= t->shape[k];
    }
    return true;
}

static bool parameter(text_parser *ps, ir_tensor *t)
{
    ir *p = ps->p;
    int64_t n = 0;
    uint32_t str;
    if (!number(ps, 0, MAX_PARAMS, &n) || !quoted(ps, &str)) {
        return false;
    }
    t->role = ROLE_ARG;
    t->param = (uint32_t)n;
    while (p->params.n <= t->param) {
        vec_push(ps->mem, &p->params, ((ir_param){0, UINT32_MAX}));
    }
    if (p->params.at[n].tensor != UINT32_MAX) {
        return BAD(ps, "parameter %" PRId64 " is given twice", n);
    }
    p->params.at[n] = (ir_param){str, p->tensors.n};
    return true;
}

static bool address(text_parser *ps, ir_tensor *t)
{
    int64_t bytes = 0;
    if (!want(ps, '=') || !want(ps, '(') || !number32(ps, &t->addr_part) || !want(ps, ',') ||
        !number(ps, 0, INT64_MAX, &bytes) || !want(ps, ')')) {
        return false;
    }
    t->addr_bytes = (uint64_t)bytes;
    return true;
}

// %3 "acc" float32[128, 512] psum placed=(0, 2048)
static bool tensor_line(text_parser *ps)
{
    ir *p = ps->p;
    ir_tensor t = {.addr_bytes = ADDR_AUTO};
    uint32_t n = 0;
    if (!want(ps, '%') || !number32(ps, &n) || !quoted(ps, &t.name)) {
        return false;
    }
    if (n != p->tensors.n) {
        return BAD(ps, "tensor %%%" PRIu32 " where %%%" PRIu32 " is next", n, p->tensors.n);
    }
    token name = word(ps, '[');
    dtype type;
    if (!dtype_find(name.at, name.len, &type)) {
        return BAD(ps, "dtype '%s' does not exist", copy(ps, name));
    }
    t.dtype = (uint8_t)type;
    if (!shape(ps, &t) || !buffer_of(ps, &t)) {
        return false;
    }
    while (skip_blanks(ps), ps->at < ps->end && *ps->at != ';') {
        token w = word(ps, '=');
        bool good = true;
        if (same(w, "param")) {
            good = want(ps, '=') && parameter(ps, &t);
        } else if (same(w, "const")) {
            t.role = ROLE_CONST;
            good = want(ps, '=') && number32(ps, &t.data);
        } else if (same(w, "out")) {
            t.role = ROLE_OUT;
        } else if (same(w, "shared")) {
            good = want(ps, '=') && number32(ps, &t.shared);
        } else if (same(w, "fill")) {
            t.fill = 1;
        } else if (same(w, "address") || same(w, "placed")) {
            t.manual = same(w, "address");
            good = address(ps, &t);
        } else {
            return BAD(ps, "'%s' is not a property of a tensor", copy(ps, w));
        }
        if (!good) {
            return false;
        }
    }
    if (!place_and_end(ps, &t.place)) {
        return false;
    }
    ir_tensor_add(p, t);
    return true;
}

static bool data_line(text_parser *ps)
{
    skip_blanks(ps);
    while (ps->end - ps->at >= 2 && hex_digit(ps->at[0]) >= 0 && hex_digit(ps->at[1]) >= 0) {
        vec_push(ps->mem, &ps->p->blob,
                 (uint8_t)(hex_digit(ps->at[0]) * 16 + hex_digit(ps->at[1])));
        ps->at += 2;
    }
    uint32_t place;
    return place_and_end(ps, &place);
}

// after=[@3, @7]
static bool dependences(text_parser *ps, uint32_t *deps)
{
    ir *p = ps->p;
    *deps = p->deps.n;
    if (!want(ps, '[')) {
        return false;
    }
    while (!next_is(ps, ']')) {
        int64_t n = 0;
        if ((p->deps.n > *deps && !want(ps, ',')) || !want(ps, '@') ||
            !number(ps, 0, (int64_t)p->instrs.n - 1, &n)) {
            return false;
        }
        vec_push(ps->mem, &p->deps, (uint32_t)n);
    }
    ps->at++;
    vec_push(ps->mem, &p->deps, IR_DEPS_END);
    return true;
}

static bool named_argument(text_parser *ps, const isa_info *row, token name, ir_arg *args)
{
    for (uint32_t k = 0; k < row->nparams; k++) {
        if (same(name, row->params[k].name)) {
            return argument(ps, &row->params[k], &args[k], 0);
        }
    }
    return BAD(ps, "%s has no parameter '%s'", row->name, copy(ps, name));
}

// Vector.tensor_scalar dst=%3 data=%1 op0=multiply operand0=2.0 name="x" after=[@2]
static bool instr_line(text_parser *ps, token w)
{
    ir *p = ps->p;
    engine_id eng = ENG_COUNT;
    for (int e = 0; e < ENG_COUNT; e++) {
        eng = same(w, engine_name((engine_id)e)) ? (engine_id)e : eng;
    }
    if (eng == ENG_COUNT || !take(ps, '.')) {
        return BAD(ps, "an engine and a dot expected, not '%s'", copy(ps, w));
    }
    const char *name = copy(ps, word(ps, '.'));
    isa_id op;
    if (!isa_find(name, &op)) {
        return BAD(ps, "instruction '%s' does not exist", name);
    }
    const isa_info *row = &isa_table[op];
    ir_arg args[UINT8_MAX];
    for (uint32_t k = 0; k < row->nparams; k++) {
        if (!ir_default_arg(&row->params[k], &args[k])) {
            args[k] = ira_none();
        }
    }
    uint32_t str = 0, deps = 0, place = 0;
    while (skip_blanks(ps), ps->at < ps->end && *ps->at != ';') {
        token k = word(ps, '=');
        if (!want(ps, '=')) {
            return false;
        }
        bool good = same(k, "name")    ? quoted(ps, &str)
                    : same(k, "after") ? dependences(ps, &deps)
                                       : named_argument(ps, row, k, args);
        if (!good) {
            return false;
        }
    }
    if (!place_and_end(ps, &place)) {
        return false;
    }
    uint32_t i = ir_emit(p, op, eng, args, place, str);
    p->instrs.at[i].deps = deps;
    return true;
}

static bool other_line(text_parser *ps)
{
    if (take(ps, '@')) {
        uint32_t n = 0;
        if (!number32(ps, &n)) {
            return false;
        }
        if (n != ps->p->instrs.n) {
            return BAD(ps, "label @%" PRIu32 " on instruction %" PRIu32, n, ps->p->instrs.n);
        }
    }
    token w = word(ps, '.');
    if (same(w, "data")) {
        return data_line(ps);
    }
    if (same(w, "return")) {
        uint32_t v, place;
        if (!view(ps, &v, 0) || !place_and_end(ps, &place)) {
            return false;
        }
        vec_push(ps->mem, &ps->p->outputs, v);
        return true;
    }
    return instr_line(ps, w);
}

static bool next_line(text_parser *ps, const char **from)
{
    if (*from >= ps->stop) {
        return false;
    }
    const char *nl = memchr(*from, '\n', (size_t)(ps->stop - *from));
    ps->begin = ps->at = *from;
    ps->end = nl ? nl : ps->stop;
    *from = nl ? nl + 1 : ps->stop;
    ps->line++;
    return true;
}

static bool parse_all(text_parser *ps, const char *s)
{
    while (next_line(ps, &s)) {
        skip_blanks(ps);
        if (ps->at == ps->end || *ps->at == '#') {
            continue;
        }
        bool good = !ps->p->target   ? kernel_line(ps)
                    : *ps->at == '%' ? tensor_line(ps)
                                     : other_line(ps);
        if (!good) {
            return false;
        }
    }
    if (!ps->p->target) {
        return BAD(ps, "the text is empty");
    }
    for (uint32_t i = 0; i < ps->p->params.n; i++) {
        if (ps->p->params.at[i].tensor == UINT32_MAX) {
            return BAD(ps, "parameter %" PRIu32 " is missing", i);
        }
    }
    make_sources(ps);
    return true;
}

ir *ir_parse(arena *mem, const char *s, size_t len, const char **err)
{
    text_parser ps = {.p = ir_new(mem, NULL), .mem = mem, .stop = s + len};
    *err = NULL;
    if (!parse_all(&ps, s)) {
        *err = ps.err;
        return NULL;
    }
    return ps.p;
}
