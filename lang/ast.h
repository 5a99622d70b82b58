#ifndef LANG_AST_H
#define LANG_AST_H

#include "base/intern.h"
#include "base/source.h"
#include "base/text.h"

// Python 3.12's abstract syntax as kernel files use it. Lists are linked through `next`.
// A node's meaning is its kind, `op` (an operator or constant) and one member of `u`.
//
// AST(kind, text-form head)
#define AST_KINDS(X)                                                                      \
    /* expressions */                                                                     \
    X(NAME, "name") X(INT, "int") X(FLOAT, "float") X(IMAG, "imag") X(STR, "str")         \
    X(BYTES, "bytes") X(FSTRING, "fstring") X(FORMAT, "format") X(CONST, "const")         \
    X(TUPLE, "tuple") X(LIST, "list") X(SET, "set") X(DICT, "dict") X(PAIR, "pair")       \
    X(UNARY, "unary") X(BINARY, "binary") X(BOOLOP, "boolop") X(COMPARE, "compare")       \
    X(CMP, "cmp") X(CALL, "call") X(ARG, "arg") X(ATTR, "attr") X(INDEX, "index")         \
    X(SLICE, "slice") X(STARRED, "starred") X(TERNARY, "ternary") X(LAMBDA, "lambda")     \
    X(WALRUS, "walrus") X(LISTCOMP, "listcomp") X(SETCOMP, "setcomp")                     \
    X(DICTCOMP, "dictcomp") X(GENEXP, "genexp") X(CLAUSE, "clause") X(AWAIT, "await")     \
    X(YIELD, "yield") X(YIELD_FROM, "yield-from")                                         \
    /* statements */                                                                      \
    X(EXPR, "expr") X(ASSIGN, "assign") X(AUGASSIGN, "augassign")                         \
    X(ANNASSIGN, "annassign") X(DEL, "del") X(PASS, "pass") X(BREAK, "break")             \
    X(CONTINUE, "continue") X(RETURN, "return") X(RAISE, "raise") X(ASSERT, "assert")     \
    X(GLOBAL, "global") X(NONLOCAL, "nonlocal") X(IMPORT, "import") X(FROM, "from")       \
    X(ALIAS, "alias") X(IF, "if") X(FOR, "for") X(WHILE, "while") X(TRY, "try")           \
    X(HANDLER, "except") X(WITH, "with") X(WITHITEM, "withitem") X(DEF, "def")            \
    X(PARAM, "param") X(CLASS, "class") X(MATCH, "match") X(CASE, "case")                 \
    X(TYPE_ALIAS, "type") X(TYPE_PARAM, "typeparam")                                      \
    /* patterns of match */                                                               \
    X(PAT_VALUE, "pat-value") X(PAT_CAPTURE, "pat-capture") X(PAT_SEQ, "pat-seq")         \
    X(PAT_STAR, "pat-star") X(PAT_MAP, "pat-map") X(PAT_REST, "pat-rest")                 \
    X(PAT_CLASS, "pat-class") X(PAT_OR, "pat-or") X(PAT_AS, "pat-as")

typedef enum ast_kind {
#define X(kind, head) AST_##kind,
    AST_KINDS(X)
#undef X
    AST_KIND_COUNT
} ast_kind;

// OP(name, spelling)
#define AST_OPS(X)                                                                        \
    X(NONE, "")                                                                           \
    X(ADD, "+") X(SUB, "-") X(MUL, "*") X(DIV, "/") X(FLOORDIV, "//") X(MOD, "%")         \
    X(POW, "**") X(MATMUL, "@") X(LSHIFT, "<<") X(RSHIFT, ">>") X(BITAND, "&")            \
    X(BITOR, "|") X(BITXOR, "^")                                                          \
    X(NEG, "neg") X(POS, "pos") X(INVERT, "~") X(NOT, "not") X(AND, "and") X(OR, "or")    \
    X(EQ, "==") X(NE, "!=") X(LT, "<") X(LE, "<=") X(GT, ">") X(GE, ">=") X(IN, "in")     \
    X(NOT_IN, "not-in") X(IS, "is") X(IS_NOT, "is-not")                                   \
    X(C_NONE, "None") X(C_TRUE, "True") X(C_FALSE, "False") X(C_ELLIPSIS, "...")

typedef enum ast_op {
#define X(id, spelling) OP_##id,
    AST_OPS(X)
#undef X
    AST_OP_COUNT
} ast_op;

typedef enum param_kind { PARAM_POSONLY, PARAM_NORMAL, PARAM_STAR, PARAM_KWONLY, PARAM_STARSTAR } param_kind;

typedef struct ast ast;
struct ast {
    uint8_t kind;    // ast_kind
    uint8_t op;      // ast_op; for AST_ARG 0, 1 (*), 2 (**); for AST_PARAM a param_kind
    uint8_t flag;    // see the kinds below
    uint8_t scope;   // lower: how a NAME is found
    uint32_t slot;   // lower: where
    span at;
    ast *next;       // sibling in a list
    void *cache;     // lower: resolved data of this node; NULL from the parser
    union {
        sym id;     // NAME; GLOBAL/NONLOCAL list NAMEs in u.list
        int64_t i;   // INT; flag 1: the literal does not fit 64 bits (u.str holds its digits)
        double d;    // FLOAT, IMAG
        struct {     // STR, BYTES; INT with flag 1: the digits as written
            const char *p;
            uint32_t len;
        } str;
        struct {     // FSTRING parts (STR, FORMAT), TUPLE, LIST, SET, DICT (PAIRs), DEL, GLOBAL,
            ast *first;  // NONLOCAL, IMPORT (ALIASes), PAT_SEQ, PAT_OR
            uint32_t n;
        } list;
        struct {     // FORMAT: {value!conv:spec}; text is "expr=" of the self-documenting form
            ast *value, *spec;  // spec: FSTRING or NULL
            const char *text;   // zero-terminated, or NULL
            char conv;          // 'r', 's', 'a' or 0
        } format;
        struct {     // PAIR (key NULL: **value), BINARY, BOOLOP, WALRUS (l a NAME), AUGASSIGN (l target),
            ast *l, *r;  // CMP (r only), COMPARE (l first operand, r list of CMPs), EXPR/RETURN/UNARY/
        } bin;           // STARRED/AWAIT/YIELD/YIELD_FROM (l), ASSERT (l test, r message), RAISE (l, r cause)
        struct {     // CALL
            ast *fn, *args;  // ARGs
            uint32_t n;
        } call;
        struct {     // ARG (id: keyword or NULL), ATTR (value.id)
            ast *value;
            sym id;
        } named;
        struct {     // INDEX; key is a TUPLE for several, items may be SLICEs
            ast *value, *key;
        } index;
        struct {     // SLICE lo:hi:step; TERNARY lo if step else hi  (a=lo, b=hi, c=step)
            ast *a, *b, *c;
        } three;
        struct {     // LAMBDA
            ast *params, *body;
        } lambda;
        struct {     // comprehensions: value is DICTCOMP's; clauses are CLAUSEs
            ast *elt, *value, *clauses;
        } comp;
        struct {     // CLAUSE: for target in iter [if conds]; flag 1: async
            ast *target, *iter, *conds;
        } clause;
        struct {     // ASSIGN: t1 = t2 = value;   ANNASSIGN: one target, ann, value or NULL
            ast *targets, *ann, *value;
        } assign;
        struct {     // ALIAS: dotted path "a.b.c", asname or NULL; path "*" in a FROM
            sym path, as;
        } alias;
        struct {     // FROM: level dots, path or NULL
            sym path;
            ast *aliases;
            uint32_t level;
        } from;
        struct {     // IF, WHILE (cond); FOR (target, iter; flag 1: async)
            ast *cond, *target, *body, *orelse;  // FOR's iterable is cond
        } flow;
        struct {     // TRY (flag 1: except*)
            ast *body, *handlers, *orelse, *final;
        } try_;
        struct {     // HANDLER: type or NULL, as-name or NULL
            ast *type, *body;
            sym as;
        } handler;
        struct {     // WITH (flag 1: async); items are WITHITEMs
            ast *items, *body;
        } with;
        struct {     // WITHITEM: value as target
            ast *value, *target;
        } withitem;
        struct {     // DEF (flag 1: async), CLASS (args are bases and keywords)
            sym id;
            ast *decorators, *params, *returns, *body, *tparams;
        } def;       // CLASS: params holds the ARGs
        struct {     // PARAM; id NULL for a bare *
            sym id;
            ast *ann, *dflt;
        } param;
        struct {     // MATCH subject, cases;  CASE: pattern, guard, body
            ast *subject, *cases, *guard, *body;
        } match;     // CASE: subject is the pattern
        struct {     // patterns. PAT_VALUE: a expression. PAT_CAPTURE/PAT_STAR/PAT_REST: id (NULL: _).
            ast *a, *b;  // PAT_AS: a as id. PAT_MAP: a list of PAIRs (key expr, value pattern) and PAT_REST.
            sym id;     // PAT_CLASS: a class expression, b list of ARGs with patterns.
        } pat;
        struct {     // TYPE_ALIAS / TYPE_PARAM: id, tparams, value (bound); op 0, 1 (*), 2 (**)
            sym id;
            ast *tparams, *value;
        } type;
    } u;
};

// The result of a parse: a whole file.
typedef struct module_ast {
    const source *src;
    ast *body;            // statements
    const char *docstring;  // or NULL
} module_ast;

const char *ast_kind_name(ast_kind k);
const char *ast_op_text(ast_op op);

// The text form: one S-expression a statement, indented; documented in docs/ast.md.
void ast_print(const module_ast *m, textbuf *out);

#endif
