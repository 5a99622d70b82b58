#include "lang/ast_children.h"

#include <stddef.h>

typedef struct child {
    uint16_t at;   // offset of the list's head in a node; 0: no more
    uint8_t role;  // ast_role
} child;

enum { MOST = 5, ROLE_SAME = 255 };  // ROLE_SAME: the parent's own

#define AT(member) offsetof(ast, u.member)
#define LEFT_RIGHT                                                                                 \
    {                                                                                              \
        {AT(bin.l), ROLE_OPERAND},                                                                 \
        {                                                                                          \
            AT(bin.r), ROLE_OPERAND                                                                \
        }                                                                                          \
    }
#define LIST(role)                                                                                 \
    {                                                                                              \
        {                                                                                          \
            AT(list.first), role                                                                   \
        }                                                                                          \
    }
#define THREE                                                                                      \
    {                                                                                              \
        {AT(three.a), ROLE_OPERAND}, {AT(three.b), ROLE_OPERAND},                                  \
        {                                                                                          \
            AT(three.c), ROLE_OPERAND                                                              \
        }                                                                                          \
    }
#define COMPREHENSION                                                                              \
    {                                                                                              \
        {AT(comp.clauses), ROLE_PART}, {AT(comp.elt), ROLE_OPERAND},                               \
        {                                                                                          \
            AT(comp.value), ROLE_OPERAND                                                           \
        }                                                                                          \
    }
#define CONDITION                                                                                  \
    {                                                                                              \
        {AT(flow.cond), ROLE_OPERAND}, {AT(flow.target), ROLE_TARGET}, {AT(flow.body), ROLE_BODY}, \
        {                                                                                          \
            AT(flow.orelse), ROLE_BODY                                                             \
        }                                                                                          \
    }

static const child table[AST_KIND_COUNT][MOST] = {
    [AST_FSTRING] = LIST(ROLE_OPERAND),
    [AST_FORMAT] = {{AT(format.value), ROLE_OPERAND}, {AT(format.spec), ROLE_OPERAND}},
    [AST_TUPLE] = LIST(ROLE_SAME),
    [AST_LIST] = LIST(ROLE_SAME),
    [AST_SET] = LIST(ROLE_OPERAND),
    [AST_DICT] = LIST(ROLE_OPERAND),
    [AST_PAIR] = LEFT_RIGHT,
    [AST_UNARY] = LEFT_RIGHT,
    [AST_BINARY] = LEFT_RIGHT,
    [AST_BOOLOP] = LEFT_RIGHT,
    [AST_COMPARE] = LEFT_RIGHT,
    [AST_CMP] = LEFT_RIGHT,
    [AST_CALL] = {{AT(call.fn), ROLE_OPERAND}, {AT(call.args), ROLE_OPERAND}},
    [AST_ARG] = {{AT(named.value), ROLE_OPERAND}},
    [AST_ATTR] = {{AT(named.value), ROLE_OPERAND}},
    [AST_INDEX] = {{AT(index.value), ROLE_OPERAND}, {AT(index.key), ROLE_OPERAND}},
    [AST_SLICE] = THREE,
    [AST_STARRED] = {{AT(bin.l), ROLE_SAME}},
    [AST_TERNARY] = THREE,
    [AST_LAMBDA] = {{AT(lambda.params), ROLE_PART}, {AT(lambda.body), ROLE_INNER}},
    [AST_WALRUS] = {{AT(bin.l), ROLE_TARGET}, {AT(bin.r), ROLE_OPERAND}},
    [AST_LISTCOMP] = COMPREHENSION,
    [AST_SETCOMP] = COMPREHENSION,
    [AST_DICTCOMP] = COMPREHENSION,
    [AST_GENEXP] = COMPREHENSION,
    [AST_CLAUSE] = {{AT(clause.iter), ROLE_OPERAND},
                    {AT(clause.target), ROLE_TARGET},
                    {AT(clause.conds), ROLE_OPERAND}},
    [AST_AWAIT] = LEFT_RIGHT,
    [AST_YIELD] = LEFT_RIGHT,
    [AST_YIELD_FROM] = LEFT_RIGHT,
    [AST_EXPR] = LEFT_RIGHT,
    [AST_ASSIGN] = {{AT(assign.targets), ROLE_TARGET}, {AT(assign.value), ROLE_OPERAND}},
    [AST_AUGASSIGN] = {{AT(bin.l), ROLE_TARGET}, {AT(bin.r), ROLE_OPERAND}},
    [AST_ANNASSIGN] = {{AT(assign.targets), ROLE_TARGET},
                       {AT(assign.ann), ROLE_ANNOTATION},
                       {AT(assign.value), ROLE_OPERAND}},
    [AST_DEL] = LIST(ROLE_TARGET),
    [AST_RETURN] = LEFT_RIGHT,
    [AST_RAISE] = LEFT_RIGHT,
    [AST_ASSERT] = LEFT_RIGHT,
    [AST_GLOBAL] = {{0}},  // names, but of another scope
    [AST_NONLOCAL] = {{0}},
    [AST_IMPORT] = LIST(ROLE_PART),
    [AST_FROM] = {{AT(from.aliases), ROLE_PART}},
    [AST_IF] = CONDITION,
    [AST_FOR] = CONDITION,
    [AST_WHILE] = CONDITION,
    [AST_TRY] = {{AT(try_.body), ROLE_BODY},
                 {AT(try_.handlers), ROLE_PART},
                 {AT(try_.orelse), ROLE_BODY},
                 {AT(try_.final), ROLE_BODY}},
    [AST_HANDLER] = {{AT(handler.type), ROLE_OPERAND}, {AT(handler.body), ROLE_BODY}},
    [AST_WITH] = {{AT(with.items), ROLE_PART}, {AT(with.body), ROLE_BODY}},
    [AST_WITHITEM] = {{AT(withitem.value), ROLE_OPERAND}, {AT(withitem.target), ROLE_TARGET}},
    [AST_DEF] = {{AT(def.decorators), ROLE_OPERAND},
                 {AT(def.params), ROLE_PART},
                 {AT(def.returns), ROLE_ANNOTATION},
                 {AT(def.body), ROLE_INNER},
                 {AT(def.tparams), ROLE_ANNOTATION}},
    [AST_PARAM] = {{AT(param.dflt), ROLE_OPERAND}, {AT(param.ann), ROLE_ANNOTATION}},
    [AST_CLASS] = {{AT(def.decorators), ROLE_OPERAND},
                   {AT(def.params), ROLE_OPERAND},
                   {AT(def.body), ROLE_INNER},
                   {AT(def.tparams), ROLE_ANNOTATION}},
    [AST_MATCH] = {{AT(match.subject), ROLE_OPERAND}, {AT(match.cases), ROLE_PART}},
    [AST_CASE] = {{AT(match.subject), ROLE_PATTERN},
                  {AT(match.guard), ROLE_OPERAND},
                  {AT(match.body), ROLE_BODY}},
    [AST_TYPE_ALIAS] = {{AT(type.value), ROLE_ANNOTATION}, {AT(type.tparams), ROLE_ANNOTATION}},
    [AST_TYPE_PARAM] = {{AT(type.value), ROLE_ANNOTATION}},
    [AST_PAT_VALUE] = {{AT(pat.a), ROLE_OPERAND}},
    [AST_PAT_SEQ] = LIST(ROLE_PATTERN),
    [AST_PAT_MAP] = {{AT(pat.a), ROLE_PATTERN}},
    [AST_PAT_CLASS] = {{AT(pat.a), ROLE_OPERAND}, {AT(pat.b), ROLE_PATTERN}},
    [AST_PAT_OR] = LIST(ROLE_PATTERN),
    [AST_PAT_AS] = {{AT(pat.a), ROLE_PATTERN}},
};

void ast_children(const ast *n, ast_role role, ast_visit *fn, void *ctx)
{
    const child *c = table[n->kind];
    for (int i = 0; i < MOST && c[i].at; i++) {
        ast *list = *(ast *const *)(const void *)((const char *)n + c[i].at);
        if (list) {
            fn(ctx, list, c[i].role == ROLE_SAME ? role : (ast_role)c[i].role);
        }
    }
}

sym ast_bound_name(const ast *n)
{
    switch ((ast_kind)n->kind) {
    case AST_ALIAS: return n->u.alias.as ? n->u.alias.as : n->u.alias.path;
    case AST_HANDLER: return n->u.handler.as;
    case AST_DEF:
    case AST_CLASS: return n->u.def.id;
    case AST_TYPE_ALIAS: return n->u.type.id;
    case AST_PAT_CAPTURE:
    case AST_PAT_STAR:
    case AST_PAT_REST:
    case AST_PAT_AS: return n->u.pat.id;
    default: return NULL;
    }
}
