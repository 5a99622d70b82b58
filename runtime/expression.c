#include "runtime/expression.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Precedence is Python's, lowest first: comparisons, |, ^, &, shifts, + -, * /, unary, **.

enum { DEPTH_MAX = 200, NAMES_MAX = 64, NAME_BYTES = 32 };

typedef struct parser {
    const char *text, *at;
    expression *e;
    char *why;
    size_t room;
    bool failed;
    int depth;
    uint32_t name_count;
    struct {
        char text[NAME_BYTES];
        expr_operand value;
    } name[NAMES_MAX];
} parser;

static expr_operand fail(parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static expr_operand fail(parser *p, const char *fmt, ...)
{
    if (!p->failed) {
        va_list ap;
        va_start(ap, fmt);
        int n =
            snprintf(p->why, p->room, "expression, character %zu: ", (size_t)(p->at - p->text) + 1);
        if (n > 0 && (size_t)n < p->room) {
            vsnprintf(p->why + n, p->room - (size_t)n, fmt, ap);
        }
        va_end(ap);
    }
    p->failed = true;
    return (expr_operand){.kind = EXPR_CONST};
}

static void blanks(parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

// Takes the sign unless a longer one begins with it.
static bool take(parser *p, const char *sign, const char *not_before)
{
    blanks(p);
    size_t n = strlen(sign);
    if (strncmp(p->at, sign, n) != 0 || (p->at[n] && strchr(not_before, p->at[n]))) {
        return false;
    }
    p->at += n;
    return true;
}

static size_t word(const parser *p)
{
    size_t n = 0;
    for (char c = *p->at; (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                          (n && c >= '0' && c <= '9');
         c = p->at[n]) {
        n++;
    }
    return n;
}

expr_type expression_type(const expression *e, const expr_operand *o)
{
    switch (o->kind) {
    case EXPR_INPUT: return e->input[o->index];
    case EXPR_STEP: return e->step[o->index].type;
    case EXPR_CONST: break;
    }
    return o->whole ? EXPR_INT : EXPR_FLOAT;
}

static const char *op_name(op_id op)
{
    return op == EXPR_WHERE ? "where" : op_table[op].name;
}

static bool same(const expr_operand *a, const expr_operand *b)
{
    return a->kind == b->kind && a->index == b->index && a->whole == b->whole &&
           memcmp(&a->number, &b->number, sizeof a->number) == 0;
}

static expr_operand add_step(parser *p, const expr_step *s)
{
    expression *e = p->e;
    for (uint32_t i = 0; i < e->step_count; i++) {
        const expr_step *o = &e->step[i];
        bool equal = o->op == s->op && o->operands == s->operands && o->type == s->type;
        for (uint32_t k = 0; equal && k < s->operands; k++) {
            equal = same(&o->operand[k], &s->operand[k]);
        }
        if (equal) {
            return (expr_operand){.kind = EXPR_STEP, .index = i};
        }
    }
    if (e->step_count == EXPR_STEPS_MAX) {
        return fail(p, "there are more than %d operations", EXPR_STEPS_MAX);
    }
    e->step[e->step_count] = *s;
    return (expr_operand){.kind = EXPR_STEP, .index = e->step_count++};
}

static expr_operand whole_number(double v)
{
    return (expr_operand){.kind = EXPR_CONST, .number = v, .whole = true};
}

static bool is_bit(const expr_operand *o)
{
    return o->whole && (o->number == 0 || o->number == 1);
}

// The common type of the operands: integers when all are.
static expr_type common_type(const parser *p, const expr_operand *v, uint32_t n)
{
    bool ints = true, unsigned_only = true, bools = true, any = false;
    for (uint32_t i = 0; i < n; i++) {
        expr_type t = expression_type(p->e, &v[i]);
        ints = ints && t != EXPR_FLOAT;
        if (v[i].kind != EXPR_CONST) {
            any = true;
            unsigned_only = unsigned_only && t == EXPR_UINT;
            bools = bools && t == EXPR_BOOL;
        } else {
            bools = bools && is_bit(&v[i]);
        }
    }
    return !ints                  ? EXPR_FLOAT
           : any && bools         ? EXPR_BOOL
           : any && unsigned_only ? EXPR_UINT
                                  : EXPR_INT;
}

static bool is_shift(op_id op)
{
    return op == OPR_left_shift || op == OPR_right_shift;
}

// The result's type; integers stay integers where the machine can. false: was reported.
static bool type_of(parser *p, op_id op, const expr_operand *v, uint32_t n, expr_type *out)
{
    expr_type whole = common_type(p, v, n);
    bool ints = whole != EXPR_FLOAT;
    *out = EXPR_FLOAT;
    if (op_table[op].cls == OPC_B) {
        *out = whole == EXPR_BOOL && is_shift(op) ? EXPR_INT : whole;
        if (!ints) {
            fail(p, "'%s' is for integers", op_table[op].name);
        }
        return ints;
    }
    bool order = op == OPR_maximum || op == OPR_minimum;
    bool exact = order || op == OPR_add || op == OPR_subtract || op == OPR_multiply;
    if (exact && ints && n == 2) {
        *out = whole == EXPR_BOOL && !order ? EXPR_INT : whole;
    }
    return true;
}

// Numbers beside integers have 32 bits. false: was reported.
static bool check_width(parser *p, expr_type type, const expr_operand *v, uint32_t n)
{
    for (uint32_t i = 0; i < n && type != EXPR_FLOAT; i++) {
        if (v[i].kind == EXPR_CONST && (v[i].number < -0x1p31 || v[i].number >= 0x1p32)) {
            fail(p, "%.0f has more than 32 bits", v[i].number);
            return false;
        }
    }
    return true;
}

// Bits of two whole numbers, each of 32 bits.
static bool fold_bits(op_id op, const expr_operand *a, const expr_operand *b, double *out)
{
    if (op_table[op].cls != OPC_B || !a->whole || !b->whole || fabs(a->number) >= 0x1p31 ||
        fabs(b->number) >= 0x1p31) {
        return false;
    }
    uint32_t x = (uint32_t)(int64_t)a->number, y = (uint32_t)(int64_t)b->number;
    uint32_t v = op == OPR_bitwise_and   ? x & y
                 : op == OPR_bitwise_or  ? x | y
                 : op == OPR_bitwise_xor ? x ^ y
                 : y >= 32               ? 0
                 : op == OPR_left_shift  ? x << y
                                         : x >> y;
    *out = (double)(int32_t)v;
    return true;
}

static bool fold(op_id op, const expr_operand *a, const expr_operand *b, expr_operand *out)
{
    double x = a->number, y = b->number, v;
    if (fold_bits(op, a, b, &v)) {
        *out = whole_number(v);
        return true;
    }
    if (op == OPR_add) {
        v = x + y;
    } else if (op == OPR_subtract) {
        v = x - y;
    } else if (op == OPR_multiply) {
        v = x * y;
    } else if (op == OPR_divide && y != 0) {
        v = x / y;
    } else if (op == OPR_power) {
        v = pow(x, y);
    } else if (op == OPR_maximum) {
        v = x > y ? x : y;
    } else if (op == OPR_minimum) {
        v = x < y ? x : y;
    } else {
        return false;
    }
    bool whole = a->whole && b->whole && op != OPR_divide && v == floor(v) && fabs(v) < 9e15;
    *out = (expr_operand){.kind = EXPR_CONST, .number = v, .whole = whole};
    return isfinite(v);
}

static expr_operand apply(parser *p, op_id op, const expr_operand *v, uint32_t n)
{
    expr_operand folded;
    if (p->failed) {
        return v[0];
    }
    if (n == 2 && v[0].kind == EXPR_CONST && v[1].kind == EXPR_CONST) {
        return fold(op, &v[0], &v[1], &folded)
                   ? folded
                   : fail(p, "'%s' of two numbers is not computed here", op_table[op].name);
    }
    if (n == 1 && v[0].kind == EXPR_CONST && op != OPR_negative) {
        return fail(p, "'%s' of a number: write the number", op_table[op].name);
    }
    expr_step s = {.op = op, .operands = n};
    s.operand[0] = v[0];
    if (n == 2) {
        s.operand[1] = v[1];
    }
    bool good = type_of(p, op, v, n, &s.type) && check_width(p, s.type, v, n);
    return good ? add_step(p, &s) : v[0];
}

// >> of a number with a sign keeps it; the machine's shift brings in zeros. With s = -(x >> 31),
// all ones where x is negative: ((x ^ s) >> n) ^ s.
static expr_operand shift_right(parser *p, const expr_operand *v)
{
    if (p->failed || v[0].kind == EXPR_CONST || common_type(p, v, 2) != EXPR_INT) {
        return apply(p, OPR_right_shift, v, 2);
    }
    const expr_operand top[] = {v[0], whole_number(31)};
    const expr_operand sign[] = {whole_number(0), apply(p, OPR_right_shift, top, 2)};
    expr_operand pair[] = {v[0], apply(p, OPR_subtract, sign, 2)};
    pair[0] = apply(p, OPR_bitwise_xor, pair, 2);
    const expr_operand shift[] = {pair[0], v[1]};
    pair[0] = apply(p, OPR_right_shift, shift, 2);
    return apply(p, OPR_bitwise_xor, pair, 2);
}

// Of a truth the other one.
static expr_operand invert(parser *p, expr_operand v)
{
    bool truth = v.kind != EXPR_CONST && expression_type(p->e, &v) == EXPR_BOOL;
    const expr_operand pair[] = {v, whole_number(truth ? 1 : -1)};
    return apply(p, OPR_bitwise_xor, pair, 2);
}

// v: the condition, then, else.
static expr_operand select(parser *p, const expr_operand *v)
{
    if (p->failed) {
        return v[0];
    }
    if (v[0].kind == EXPR_CONST) {
        return v[0].number != 0 ? v[1] : v[2];
    }
    expr_step s = {.op = EXPR_WHERE, .operands = 3, .type = common_type(p, v + 1, 2)};
    memcpy(s.operand, v, sizeof s.operand);
    return check_width(p, s.type, v + 1, 2) ? add_step(p, &s) : v[0];
}

static expr_operand comparison(parser *p);

static expr_operand number(parser *p)
{
    char *end;
    double v = strtod(p->at, &end);
    bool whole = true;
    for (const char *c = p->at; c < end; c++) {
        whole = whole && *c >= '0' && *c <= '9';
    }
    if (!isfinite(v)) {
        return fail(p, "the number is too large");
    }
    p->at = end;
    return (expr_operand){.kind = EXPR_CONST, .number = v, .whole = whole && v < 9e15};
}

// What a name in front of a parenthesis means. want: its number of operands.
typedef struct function {
    enum { CALL_OP, CALL_INVERT, CALL_NOT, CALL_WHERE } how;
    op_id op;
    uint32_t want;
} function;

static bool find_function(const char *name, function *f)
{
    *f = (function){CALL_OP, OPR_COUNT, 2};
    if (strcmp(name, "where") == 0) {
        *f = (function){CALL_WHERE, EXPR_WHERE, 3};
        return true;
    }
    if (strcmp(name, "logical_not") == 0) {
        *f = (function){CALL_NOT, OPR_equal, 1};
        return true;
    }
    if (!op_find(name, &f->op) || f->op == OPR_prelu || !op_table[f->op].roles) {
        return false;
    }
    if (f->op == OPR_invert) {
        *f = (function){CALL_INVERT, OPR_bitwise_xor, 1};
    } else if (op_table[f->op].cls == OPC_U) {
        f->want = 1;
    }
    // Two that no chip has are made of others.
    return !(op_table[f->op].roles & OP_SIM) || f->op == OPR_divide || f->op == OPR_negative;
}

static expr_operand call(parser *p, size_t n)
{
    char name[NAME_BYTES];
    function f;
    const char *start = p->at;
    if (n >= sizeof name) {
        return fail(p, "no function has so long a name");
    }
    memcpy(name, p->at, n);
    name[n] = '\0';
    if (!find_function(name, &f)) {
        return fail(p, "there is no function '%s'", name);
    }
    p->at += n;
    take(p, "(", "");
    expr_operand v[3];
    uint32_t got = 0;
    do {
        expr_operand o = comparison(p);
        if (p->failed) {
            return o;
        }
        if (got < f.want) {
            v[got] = o;
        }
        got++;
    } while (take(p, ",", ""));
    if (!take(p, ")", "")) {
        return fail(p, "expected ')'");
    }
    if (got != f.want) {
        p->at = start;
        return fail(p, "'%s' takes %u operand%s", name, f.want, f.want == 1 ? "" : "s");
    }
    if (f.how == CALL_WHERE) {
        return select(p, v);
    }
    if (f.how == CALL_OP) {
        return apply(p, f.op, v, f.want);
    }
    if (f.how == CALL_INVERT) {
        return invert(p, v[0]);
    }
    v[1] = whole_number(0);
    return apply(p, f.op, v, 2);
}

static expr_operand name(parser *p)
{
    size_t n = word(p);
    const char *after = p->at + n + strspn(p->at + n, " \t\r\n");
    if (*after == '(') {
        return call(p, n);
    }
    for (uint32_t i = 0; i < p->name_count; i++) {
        if (strlen(p->name[i].text) == n && memcmp(p->name[i].text, p->at, n) == 0) {
            p->at += n;
            return p->name[i].value;
        }
    }
    if (n == 2 && p->at[0] == 'x' && p->at[1] >= '0' && p->at[1] <= '9') {
        uint32_t i = (uint32_t)(p->at[1] - '0');
        if (i >= p->e->input_count) {
            return fail(p, "there is no x%u: %u input%s given", i, p->e->input_count,
                        p->e->input_count == 1 ? " is" : "s are");
        }
        p->at += n;
        return (expr_operand){.kind = EXPR_INPUT, .index = i};
    }
    return fail(p, "'%.*s' has no value", (int)(n < 40 ? n : 40), p->at);
}

static expr_operand primary(parser *p)
{
    blanks(p);
    if (take(p, "(", "")) {
        expr_operand v = comparison(p);
        return p->failed || take(p, ")", "") ? v : fail(p, "expected ')'");
    }
    if ((*p->at >= '0' && *p->at <= '9') || *p->at == '.') {
        // Not what strtod also reads: 0x1p3 and the like.
        if (p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X')) {
            return fail(p, "numbers are decimal");
        }
        const char *c = p->at + strspn(p->at, "0123456789.");
        return c == p->at + 1 && *p->at == '.' ? fail(p, "expected a number") : number(p);
    }
    return word(p) ? name(p) : fail(p, *p->at ? "expected a value" : "it ends too soon");
}

static expr_operand unary(parser *p);

static expr_operand power(parser *p)
{
    expr_operand v[2] = {primary(p)};
    if (!p->failed && take(p, "**", "")) {
        v[1] = unary(p);
        return apply(p, OPR_power, v, 2);
    }
    return v[0];
}

static expr_operand unary(parser *p)
{
    if (++p->depth > DEPTH_MAX) {
        return fail(p, "it nests more than %d deep", DEPTH_MAX);
    }
    expr_operand v[2];
    if (take(p, "-", "")) {
        v[0] = unary(p);
        if (v[0].kind == EXPR_CONST) {
            v[0].number = -v[0].number;
        } else if (expression_type(p->e, &v[0]) != EXPR_FLOAT) {
            v[1] = v[0];
            v[0] = whole_number(0);
            v[0] = apply(p, OPR_subtract, v, 2);
        } else {
            v[0] = apply(p, OPR_negative, v, 1);
        }
    } else if (take(p, "+", "")) {
        v[0] = unary(p);
    } else if (take(p, "~", "")) {
        v[0] = invert(p, unary(p));
    } else {
        v[0] = power(p);
    }
    p->depth--;
    return v[0];
}

static const struct {
    const char *sign, *not_before;
    op_id op;
} levels[6][6] = {
    {{"==", "", OPR_equal},
     {"!=", "", OPR_not_equal},
     {"<=", "", OPR_less_equal},
     {">=", "", OPR_greater_equal},
     {"<", "<", OPR_less},
     {">", ">", OPR_greater}},
    {{"|", "", OPR_bitwise_or}},
    {{"^", "", OPR_bitwise_xor}},
    {{"&", "", OPR_bitwise_and}},
    {{"<<", "", OPR_left_shift}, {">>", "", OPR_right_shift}},
    {{"+", "", OPR_add}, {"-", "", OPR_subtract}},
};
enum { LEVEL_COUNT = 6 };

static expr_operand product(parser *p)
{
    expr_operand v[2] = {unary(p)};
    while (!p->failed) {
        op_id op = take(p, "*", "*") ? OPR_multiply : take(p, "/", "/") ? OPR_divide : OPR_COUNT;
        if (op == OPR_COUNT) {
            break;
        }
        v[1] = unary(p);
        v[0] = apply(p, op, v, 2);
    }
    return v[0];
}

static expr_operand binary(parser *p, int level)
{
    if (level == LEVEL_COUNT) {
        return product(p);
    }
    expr_operand v[2] = {binary(p, level + 1)};
    bool found = true;
    while (found && !p->failed) {
        found = false;
        for (int i = 0; i < 6 && !found && levels[level][i].sign; i++) {
            found = take(p, levels[level][i].sign, levels[level][i].not_before);
            if (found) {
                v[1] = binary(p, level + 1);
                op_id op = levels[level][i].op;
                v[0] = op == OPR_right_shift ? shift_right(p, v) : apply(p, op, v, 2);
            }
        }
    }
    return v[0];
}

static expr_operand comparison(parser *p)
{
    if (++p->depth > DEPTH_MAX) {
        return fail(p, "it nests more than %d deep", DEPTH_MAX);
    }
    expr_operand v = binary(p, 0);
    p->depth--;
    return v;
}

static bool is_input_name(const char *at, size_t n)
{
    return n == 2 && at[0] == 'x' && at[1] >= '0' && at[1] <= '9';
}

static void statement(parser *p)
{
    blanks(p);
    size_t n = word(p);
    const char *after = p->at + n + strspn(p->at + n, " \t\r\n");
    if (n && after[0] == '=' && after[1] != '=') {
        const char *start = p->at;
        if (n >= NAME_BYTES || is_input_name(p->at, n) || p->name_count == NAMES_MAX) {
            fail(p, n >= NAME_BYTES              ? "the name is too long"
                    : p->name_count == NAMES_MAX ? "there are too many names"
                                                 : "an input cannot be changed");
            return;
        }
        p->at = after + 1;
        expr_operand v = comparison(p);
        memcpy(p->name[p->name_count].text, start, n);
        p->name[p->name_count].text[n] = '\0';
        // The newest of a name counts.
        for (uint32_t i = 0; i < p->name_count; i++) {
            if (strcmp(p->name[i].text, p->name[p->name_count].text) == 0) {
                p->name[i].value = v;
                return;
            }
        }
        p->name[p->name_count++].value = v;
        return;
    }
    expr_operand v = comparison(p);
    if (!p->failed && p->e->result_count == EXPR_RESULTS_MAX) {
        fail(p, "there are more than %d results", EXPR_RESULTS_MAX);
    }
    if (!p->failed) {
        p->e->result[p->e->result_count++] = v;
    }
}

bool expression_parse(const char *text, expression *e, char *why, size_t room)
{
    parser p = {.text = text, .at = text, .e = e, .why = why, .room = room};
    e->step_count = e->result_count = 0;
    if (strnlen(text, EXPR_TEXT_MAX + 1) > EXPR_TEXT_MAX) {
        fail(&p, "it is longer than %d bytes", EXPR_TEXT_MAX);
        return false;
    }
    do {
        blanks(&p);
        if (*p.at == '\0' && e->result_count) {
            break;  // after the last semicolon
        }
        statement(&p);
    } while (!p.failed && take(&p, ";", ""));
    blanks(&p);
    if (!p.failed && *p.at) {
        fail(&p, "expected an operator or ';'");
    }
    if (!p.failed && !e->result_count) {
        fail(&p, "it has no result");
    }
    return !p.failed;
}

// ---- as values

typedef struct sink {
    char *at;
    size_t room, len;
} sink;

static void put(sink *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(sink *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(o->len < o->room ? o->at + o->len : NULL,
                      o->len < o->room ? o->room - o->len : 0, fmt, ap);
    va_end(ap);
    o->len += n > 0 ? (size_t)n : 0;
}

static void put_operand(sink *o, const expr_operand *v)
{
    if (v->kind == EXPR_CONST) {
        put(o, v->whole ? "('c',%.0f)," : "('c',float('%.17g')),", v->number);
    } else {
        put(o, "('%c',%u),", v->kind == EXPR_INPUT ? 'x' : 's', v->index);
    }
}

bool expression_steps(const expression *e, char *out, size_t room)
{
    static const char *const types[] = {"float32", "int32", "uint32", "int32"};
    sink o = {out, room, 0};
    put(&o, "(");
    for (uint32_t i = 0; i < e->step_count; i++) {
        const expr_step *s = &e->step[i];
        put(&o, "('%s','%s',", op_name(s->op), types[s->type]);
        for (uint32_t k = 0; k < s->operands; k++) {
            put_operand(&o, &s->operand[k]);
        }
        put(&o, "),");
    }
    put(&o, ")");
    return o.len < room;
}

bool expression_results(const expression *e, char *out, size_t room)
{
    sink o = {out, room, 0};
    put(&o, "(");
    for (uint32_t i = 0; i < e->result_count; i++) {
        put_operand(&o, &e->result[i]);
    }
    put(&o, ")");
    return o.len < room;
}
