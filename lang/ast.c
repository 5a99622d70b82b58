#include "lang/ast.h"

#include <inttypes.h>
#include <string.h>

const char *ast_kind_name(ast_kind k)
{
    static const char *const name[AST_KIND_COUNT] = {
#define X(kind, head) [AST_##kind] = head,
        AST_KINDS(X)
#undef X
    };
    return name[k];
}

const char *ast_op_text(ast_op op)
{
    static const char *const spelling[AST_OP_COUNT] = {
#define X(id, text) [OP_##id] = text,
        AST_OPS(X)
#undef X
    };
    return spelling[op];
}

typedef struct printer {
    textbuf *out;
    int depth;
} printer;

static void expr(printer *p, const ast *n);
static void block(printer *p, const ast *list);

static void put(printer *p, const char *s)
{
    text_cstr(p->out, s);
}

static void open(printer *p, const ast *n)
{
    text_char(p->out, '(');
    put(p, ast_kind_name((ast_kind)n->kind));
}

static void spaced(printer *p, const ast *n)
{
    text_char(p->out, ' ');
    expr(p, n);
}

static void spaced_list(printer *p, const ast *list)
{
    for (; list; list = list->next) {
        spaced(p, list);
    }
}

// " (head item item)"; nothing for an empty list.
static void group(printer *p, const char *head, const ast *list)
{
    if (list) {
        put(p, " (");
        put(p, head);
        spaced_list(p, list);
        text_char(p->out, ')');
    }
}

static void spaced_name(printer *p, sym id)
{
    text_char(p->out, ' ');
    put(p, id ? id->text : "_");
}

// Printable ASCII and UTF-8 as they are; the rest as \xHH, \n, \t, \r, \", \\.
static void quoted(printer *p, const char *s, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    text_char(p->out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        const char *short_form = c == '\n'   ? "\\n"
                                 : c == '\t' ? "\\t"
                                 : c == '\r' ? "\\r"
                                 : c == '"'  ? "\\\""
                                 : c == '\\' ? "\\\\"
                                             : NULL;
        if (short_form) {
            put(p, short_form);
        } else if (c < ' ' || c == 127) {
            char x[] = {'\\', 'x', hex[c >> 4], hex[c & 15], '\0'};
            put(p, x);
        } else {
            text_char(p->out, (char)c);
        }
    }
    text_char(p->out, '"');
}

static void bytes(printer *p, const ast *n)
{
    static const char hex[] = "0123456789abcdef";
    put(p, "b\"");
    for (uint32_t i = 0; i < n->u.str.len; i++) {
        unsigned char c = (unsigned char)n->u.str.p[i];
        if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
            text_char(p->out, (char)c);
        } else {
            char x[] = {'\\', 'x', hex[c >> 4], hex[c & 15], '\0'};
            put(p, x);
        }
    }
    text_char(p->out, '"');
}

static void number(printer *p, double v, const char *suffix)
{
    char buf[32];
    text_double(buf, v);
    put(p, buf);
    put(p, suffix);
}

static void arg(printer *p, const ast *n)
{
    if (!n->u.named.id && !n->op) {
        expr(p, n->u.named.value);
        return;
    }
    open(p, n);
    if (n->u.named.id) {
        spaced_name(p, n->u.named.id);
    } else {
        put(p, n->op == 1 ? " *" : " **");
    }
    spaced(p, n->u.named.value);
    text_char(p->out, ')');
}

static void param(printer *p, const ast *n)
{
    static const char *const kind[] = {" /", "", " *", " kw", " **"};
    open(p, n);
    put(p, kind[n->op]);
    if (n->u.param.id) {
        spaced_name(p, n->u.param.id);
    }
    group(p, "ann", n->u.param.ann);
    group(p, "default", n->u.param.dflt);
    text_char(p->out, ')');
}

static void format(printer *p, const ast *n)
{
    open(p, n);
    spaced(p, n->u.format.value);
    if (n->u.format.text) {
        put(p, " (text ");
        quoted(p, n->u.format.text, strlen(n->u.format.text));
        text_char(p->out, ')');
    }
    if (n->u.format.conv) {
        text_printf(p->out, " !%c", n->u.format.conv);
    }
    group(p, "spec", n->u.format.spec);
    text_char(p->out, ')');
}

static void op_list(printer *p, const char *op, const ast *l, const ast *r)
{
    text_char(p->out, '(');
    put(p, op);
    if (l) {
        spaced(p, l);
    }
    if (r) {
        spaced(p, r);
    }
    text_char(p->out, ')');
}

static void clause(printer *p, const ast *n)
{
    open(p, n);
    put(p, n->flag ? " async" : "");
    spaced(p, n->u.clause.target);
    spaced(p, n->u.clause.iter);
    for (const ast *c = n->u.clause.conds; c; c = c->next) {
        put(p, " (if");
        spaced(p, c);
        text_char(p->out, ')');
    }
    text_char(p->out, ')');
}

static void three(printer *p, const ast *n)
{
    const ast *part[] = {n->u.three.a, n->u.three.b, n->u.three.c};
    if (n->kind == AST_TERNARY) {  // in the order of the text
        part[1] = n->u.three.c;
        part[2] = n->u.three.b;
    }
    open(p, n);
    for (int i = 0; i < 3; i++) {
        if (part[i]) {
            spaced(p, part[i]);
        } else {
            put(p, " _");
        }
    }
    text_char(p->out, ')');
}

static void type_param(printer *p, const ast *n)
{
    open(p, n);
    put(p, n->op == 1 ? " *" : n->op == 2 ? " **" : "");
    spaced_name(p, n->u.type.id);
    if (n->u.type.value) {
        spaced(p, n->u.type.value);
    }
    text_char(p->out, ')');
}

static void pattern(printer *p, const ast *n)
{
    open(p, n);
    switch ((ast_kind)n->kind) {
    case AST_PAT_CAPTURE:
    case AST_PAT_STAR:
    case AST_PAT_REST: spaced_name(p, n->u.pat.id); break;
    case AST_PAT_AS:
        spaced(p, n->u.pat.a);
        spaced_name(p, n->u.pat.id);
        break;
    default: spaced_list(p, n->u.pat.a); spaced_list(p, n->u.pat.b);
    }
    text_char(p->out, ')');
}

static void expr(printer *p, const ast *n)
{
    switch ((ast_kind)n->kind) {
    case AST_NAME: put(p, n->u.id->text); return;
    case AST_INT:
        if (n->flag & 1) {
            text_add(p->out, n->u.str.p, n->u.str.len);
        } else {
            text_printf(p->out, "%" PRId64, n->u.i);
        }
        return;
    case AST_FLOAT: number(p, n->u.d, ""); return;
    case AST_IMAG: number(p, n->u.d, "j"); return;
    case AST_STR: quoted(p, n->u.str.p, n->u.str.len); return;
    case AST_BYTES: bytes(p, n); return;
    case AST_CONST: put(p, ast_op_text((ast_op)n->op)); return;
    case AST_UNARY:
    case AST_BINARY:
    case AST_BOOLOP:
    case AST_CMP: op_list(p, ast_op_text((ast_op)n->op), n->u.bin.l, n->u.bin.r); return;
    case AST_FORMAT: format(p, n); return;
    case AST_ARG: arg(p, n); return;
    case AST_PARAM: param(p, n); return;
    case AST_CLAUSE: clause(p, n); return;
    case AST_SLICE:
    case AST_TERNARY: three(p, n); return;
    case AST_TYPE_PARAM: type_param(p, n); return;
    case AST_PAT_VALUE:
    case AST_PAT_CAPTURE:
    case AST_PAT_STAR:
    case AST_PAT_MAP:
    case AST_PAT_REST:
    case AST_PAT_CLASS:
    case AST_PAT_AS: pattern(p, n); return;
    default: break;
    }
    open(p, n);
    switch ((ast_kind)n->kind) {
    case AST_FSTRING:
    case AST_TUPLE:
    case AST_LIST:
    case AST_SET:
    case AST_DICT:
    case AST_PAT_SEQ:
    case AST_PAT_OR: spaced_list(p, n->u.list.first); break;
    case AST_PAIR:
        if (n->u.bin.l) {
            spaced(p, n->u.bin.l);
        } else {
            put(p, " **");
        }
        spaced(p, n->u.bin.r);
        break;
    case AST_COMPARE:
        spaced(p, n->u.bin.l);
        spaced_list(p, n->u.bin.r);
        break;
    case AST_CALL:
        spaced(p, n->u.call.fn);
        spaced_list(p, n->u.call.args);
        break;
    case AST_ATTR:
        spaced(p, n->u.named.value);
        spaced_name(p, n->u.named.id);
        break;
    case AST_INDEX:
        spaced(p, n->u.index.value);
        spaced(p, n->u.index.key);
        break;
    case AST_LAMBDA:
        put(p, " (params");
        spaced_list(p, n->u.lambda.params);
        text_char(p->out, ')');
        spaced(p, n->u.lambda.body);
        break;
    case AST_LISTCOMP:
    case AST_SETCOMP:
    case AST_DICTCOMP:
    case AST_GENEXP:
        if (n->u.comp.elt) {
            spaced(p, n->u.comp.elt);
        }
        if (n->u.comp.value) {
            spaced(p, n->u.comp.value);
        }
        spaced_list(p, n->u.comp.clauses);
        break;
    case AST_WITHITEM:
        spaced(p, n->u.withitem.value);
        if (n->u.withitem.target) {
            spaced(p, n->u.withitem.target);
        }
        break;
    default:  // STARRED, WALRUS, AWAIT, YIELD, YIELD_FROM
        if (n->u.bin.l) {
            spaced(p, n->u.bin.l);
        }
        if (n->u.bin.r) {
            spaced(p, n->u.bin.r);
        }
    }
    text_char(p->out, ')');
}

// --- statements ---

// A nested block on lines of its own: "(head" and its statements.
static void sub_block(printer *p, const char *head, const ast *list)
{
    if (!list) {
        return;
    }
    p->depth++;
    text_printf(p->out, "\n%*s(%s", p->depth * 2, "", head);
    block(p, list);
    text_char(p->out, ')');
    p->depth--;
}

static void aliases(printer *p, const ast *list)
{
    for (; list; list = list->next) {
        put(p, " (alias");
        spaced_name(p, list->u.alias.path);
        if (list->u.alias.as) {
            spaced_name(p, list->u.alias.as);
        }
        text_char(p->out, ')');
    }
}

static void definition(printer *p, const ast *n)
{
    put(p, n->flag ? " async" : "");
    spaced_name(p, n->u.def.id);
    group(p, "typeparams", n->u.def.tparams);
    put(p, n->kind == AST_DEF ? " (params" : " (bases");
    spaced_list(p, n->u.def.params);
    text_char(p->out, ')');
    group(p, "returns", n->u.def.returns);
    group(p, "decorators", n->u.def.decorators);
    block(p, n->u.def.body);
}

static void clauses(printer *p, const ast *n)
{
    for (; n; n = n->next) {
        p->depth++;
        text_printf(p->out, "\n%*s", p->depth * 2, "");
        open(p, n);
        if (n->kind == AST_CASE) {
            spaced(p, n->u.match.subject);
            group(p, "guard", n->u.match.guard);
            block(p, n->u.match.body);
        } else {
            group(p, "type", n->u.handler.type);
            if (n->u.handler.as) {
                spaced_name(p, n->u.handler.as);
            }
            block(p, n->u.handler.body);
        }
        text_char(p->out, ')');
        p->depth--;
    }
}

static void compound(printer *p, const ast *n)
{
    switch ((ast_kind)n->kind) {
    case AST_IF:
    case AST_WHILE:
        spaced(p, n->u.flow.cond);
        block(p, n->u.flow.body);
        sub_block(p, "else", n->u.flow.orelse);
        break;
    case AST_FOR:
        put(p, n->flag ? " async" : "");
        spaced(p, n->u.flow.target);
        spaced(p, n->u.flow.cond);
        block(p, n->u.flow.body);
        sub_block(p, "else", n->u.flow.orelse);
        break;
    case AST_TRY:
        put(p, n->flag ? " *" : "");
        block(p, n->u.try_.body);
        clauses(p, n->u.try_.handlers);
        sub_block(p, "else", n->u.try_.orelse);
        sub_block(p, "finally", n->u.try_.final);
        break;
    case AST_WITH:
        put(p, n->flag ? " async" : "");
        spaced_list(p, n->u.with.items);
        block(p, n->u.with.body);
        break;
    case AST_MATCH:
        spaced(p, n->u.match.subject);
        clauses(p, n->u.match.cases);
        break;
    default: definition(p, n); break;
    }
}

static void simple(printer *p, const ast *n)
{
    switch ((ast_kind)n->kind) {
    case AST_ASSIGN:
        put(p, " (");
        for (const ast *t = n->u.assign.targets; t; t = t->next) {
            expr(p, t);
            put(p, t->next ? " " : "");
        }
        text_char(p->out, ')');
        spaced(p, n->u.assign.value);
        break;
    case AST_ANNASSIGN:
        spaced(p, n->u.assign.targets);
        spaced(p, n->u.assign.ann);
        spaced_list(p, n->u.assign.value);
        break;
    case AST_AUGASSIGN:
        text_char(p->out, ' ');
        put(p, ast_op_text((ast_op)n->op));
        spaced(p, n->u.bin.l);
        spaced(p, n->u.bin.r);
        break;
    case AST_DEL:
    case AST_GLOBAL:
    case AST_NONLOCAL: spaced_list(p, n->u.list.first); break;
    case AST_IMPORT: aliases(p, n->u.list.first); break;
    case AST_FROM:
        text_printf(p->out, " %" PRIu32, n->u.from.level);
        spaced_name(p, n->u.from.path);
        aliases(p, n->u.from.aliases);
        break;
    case AST_TYPE_ALIAS:
        spaced_name(p, n->u.type.id);
        group(p, "typeparams", n->u.type.tparams);
        spaced(p, n->u.type.value);
        break;
    case AST_PASS:
    case AST_BREAK:
    case AST_CONTINUE: break;
    default:  // EXPR, RETURN, RAISE, ASSERT
        spaced_list(p, n->u.bin.l);
        spaced_list(p, n->u.bin.r);
    }
}

static void stmt(printer *p, const ast *n)
{
    open(p, n);
    switch ((ast_kind)n->kind) {
    case AST_IF:
    case AST_WHILE:
    case AST_FOR:
    case AST_TRY:
    case AST_WITH:
    case AST_MATCH:
    case AST_DEF:
    case AST_CLASS: compound(p, n); break;
    default: simple(p, n); break;
    }
    text_char(p->out, ')');
}

static void block(printer *p, const ast *list)
{
    p->depth++;
    for (; list; list = list->next) {
        text_printf(p->out, "\n%*s", p->depth * 2, "");
        stmt(p, list);
    }
    p->depth--;
}

void ast_print(const module_ast *m, textbuf *out)
{
    printer p = {.out = out};
    for (const ast *n = m->body; n; n = n->next) {
        stmt(&p, n);
        text_char(out, '\n');
    }
}
