// Tokens to AST: Python 3.12's grammar as LALR(1). Targets are parsed as expressions and
// checked in the action; soft keywords are told apart in the lexer. No conflicts.
%require "3.8"
%define api.pure full
%define api.prefix {nki_yy}
%define api.token.prefix {T_}
%define api.location.type {span}
%define api.value.type union
%define parse.error custom
%define lr.default-reduction consistent
%locations
%expect 0

%param { struct lexer *lx }
%parse-param { struct ast **out }

%code requires {
#include "base/intern.h"
#include "base/source.h"
#include "lang/ast.h"

struct lexer;
#define YYSTYPE NKI_YYSTYPE
#define YYLLOC_DEFAULT(cur, rhs, n)                                      \
    do {                                                                 \
        (cur).lo = (n) ? YYRHSLOC(rhs, 1).lo : YYRHSLOC(rhs, 0).hi;      \
        (cur).hi = (n) ? YYRHSLOC(rhs, n).hi : YYRHSLOC(rhs, 0).hi;      \
    } while (0)
}
%code provides {
int nki_yylex(NKI_YYSTYPE *val, span *at, struct lexer *lx);
}
%code {
#include "parser/build.h"
#include "parser/lexer.h"
#include "parser/literal.h"
#include "parser/slips.h"

// Stacks come from the arena, so that running out of memory (a longjmp) leaks nothing.
#define YYMALLOC(size) arena_alloc(lx->mem, 1, _Alignof(max_align_t), (size))
#define YYFREE(p)      ((void)(p))
#define YYMAXDEPTH     30000
#define YYSTACK_USE_ALLOCA 0

static void nki_yyerror(const span *at, struct lexer *lx, struct ast **out, const char *msg);
}

%initial-action { @$ = (span){0, 0}; }

%token EOF 0 "end of file"
%token START_MODULE START_EXPRESSION ERROR
%token NEWLINE "end of line" INDENT "indented block" DEDENT "end of block"
%token <sym> NAME "name"
%token <ast *> NUMBER "number" STRING "string" FSTRING_TEXT "text of an f-string"
%token FSTRING_START "f-string" FSTRING_END "end of f-string"
%token <ast_op> AUG "augmented assignment"
// The hard keywords, FALSE to YIELD (lexer_is_keyword), then the soft ones.
%token FALSE "'False'" NONE "'None'" TRUE "'True'" AND "'and'" AS "'as'" ASSERT "'assert'"
%token ASYNC "'async'" AWAIT "'await'" BREAK "'break'" CLASS "'class'" CONTINUE "'continue'"
%token DEF "'def'" DEL "'del'" ELIF "'elif'" ELSE "'else'" EXCEPT "'except'"
%token FINALLY "'finally'" FOR "'for'" FROM "'from'" GLOBAL "'global'" IF "'if'"
%token IMPORT "'import'" IN "'in'" IS "'is'" LAMBDA "'lambda'" NONLOCAL "'nonlocal'"
%token NOT "'not'" OR "'or'" PASS "'pass'" RAISE "'raise'" RETURN "'return'" TRY "'try'"
%token WHILE "'while'" WITH "'with'" YIELD "'yield'"
%token MATCH "'match'" CASE "'case'" TYPE "'type'"
%token ARROW "'->'" ELLIPSIS "'...'" WALRUS "':='"
%token EQ "'=='" NE "'!='" LE "'<='" GE "'>='"
%token LSHIFT "'<<'" RSHIFT "'>>'" POW "'**'" FLOORDIV "'//'"

%left OR
%left AND
%precedence NOT
%left '|'
%left '^'
%left '&'
%left LSHIFT RSHIFT
%left '+' '-'
%left '*' '@' '/' FLOORDIV '%'
%precedence SIGN
%right POW

%nterm <ast *> stmts stmt line simple_ring simple assign chain value suite block
%nterm <ast *> compound decorated definition async_stmt if_stmt elif_ring orelse for_stmt while_stmt
%nterm <ast *> try_stmt handler_ring handler finally with_stmt with_items with_ring with_item decorator_ring
%nterm <ast *> def class params_opt param_ring param annotation_opt returns_opt default_opt
%nterm <ast *> tparams_opt tparam_ring tparam bound_opt
%nterm <ast *> match_stmt case_ring case guard_opt
%nterm <ast *> patterns pattern or_pattern or_ring closed pat_ring pat_item map_ring map_item
%nterm <ast *> pat_arg_ring pat_arg literal_pattern number_pattern dotted_value
%nterm <ast *> exprs expr_ring star_expr star_test test or_test comparison cmp_ring cmp arith primary atom
%nterm <ast *> named named_star star_ring targets target_ring yield strings fparts fpart fspec_opt
%nterm <ast *> paren_item paren_ring subscripts sub_ring sub test_opt
%nterm <ast *> arg_ring arg clause_ring clause cond_ring dict_ring dict_item lambda_params lambda_ring lambda_param
%nterm <ast *> name_ring alias_ring alias from_ring from_alias import
%nterm <sym> dotted as_opt conv_opt
%nterm <uint32_t> dots
%nterm <bool> equals_opt opt_comma

%%

top
    : START_MODULE stmts EOF         { *out = ring_list($2); }
    | START_EXPRESSION exprs EOF     { *out = $2; }
    ;

// ---- statements ----

stmts
    : %empty                         { $$ = NULL; }
    | stmts stmt                     { $$ = ring_join($1, $2); }
    ;

stmt
    : line
    | compound
    | error NEWLINE                  { $$ = NULL; yyerrok; }
    | error NEWLINE block orphans    { $$ = NULL; yyerrok; }
    ;

// Clauses of a statement whose head had an error.
orphans
    : %empty
    | orphans ELSE ':' suite
    | orphans ELIF named ':' suite
    | orphans FINALLY ':' suite
    | orphans handler
    ;

line
    : simple_ring NEWLINE
    | simple_ring ';' NEWLINE
    ;

simple_ring
    : simple                         { $$ = ring_add(NULL, $1); }
    | simple_ring ';' simple         { $$ = ring_add($1, $3); }
    ;

suite
    : line                           { $$ = ring_list($1); }
    | NEWLINE block                  { $$ = $2; }
    | NEWLINE error                  { $$ = NULL; yyerrok; }
    ;

block: INDENT stmts DEDENT           { $$ = ring_list($2); } ;

simple
    : exprs                          { $$ = build_bin(lx, AST_EXPR, OP_NONE, @$, $1, NULL); }
    | yield                          { $$ = build_bin(lx, AST_EXPR, OP_NONE, @$, $1, NULL); }
    | assign
    | exprs AUG value                { $$ = build_augassign(lx, @$, $2, $1, $3); }
    | exprs ':' test                 { $$ = build_annassign(lx, @$, $1, $3, NULL); }
    | exprs ':' test '=' value       { $$ = build_annassign(lx, @$, $1, $3, $5); }
    | DEL target_ring opt_comma      { $$ = build_del(lx, @$, $2); }
    | PASS                           { $$ = build_node(lx, AST_PASS, @$); }
    | BREAK                          { $$ = build_node(lx, AST_BREAK, @$); }
    | CONTINUE                       { $$ = build_node(lx, AST_CONTINUE, @$); }
    | RETURN                         { $$ = build_node(lx, AST_RETURN, @$); }
    | RETURN exprs                   { $$ = build_bin(lx, AST_RETURN, OP_NONE, @$, $2, NULL); }
    | RAISE                          { $$ = build_node(lx, AST_RAISE, @$); }
    | RAISE test                     { $$ = build_bin(lx, AST_RAISE, OP_NONE, @$, $2, NULL); }
    | RAISE test FROM test           { $$ = build_bin(lx, AST_RAISE, OP_NONE, @$, $2, $4); }
    | ASSERT test                    { $$ = build_bin(lx, AST_ASSERT, OP_NONE, @$, $2, NULL); }
    | ASSERT test ',' test           { $$ = build_bin(lx, AST_ASSERT, OP_NONE, @$, $2, $4); }
    | GLOBAL name_ring               { $$ = build_list(lx, AST_GLOBAL, @$, $2); }
    | NONLOCAL name_ring             { $$ = build_list(lx, AST_NONLOCAL, @$, $2); }
    | TYPE NAME tparams_opt '=' test { $$ = build_type(lx, AST_TYPE_ALIAS, @$, 0, $2, $3, $5); }
    | import
    ;

assign: chain                        { $$ = build_assign(lx, @$, $1); } ;

chain
    : exprs '=' value                { $$ = ring_add(ring_add(NULL, $1), $3); }
    | chain '=' value                { $$ = ring_add($1, $3); }
    ;

value
    : exprs
    | yield
    ;

name_ring
    : NAME                           { $$ = ring_add(NULL, build_name(lx, @1, $1)); }
    | name_ring ',' NAME             { $$ = ring_add($1, build_name(lx, @3, $3)); }
    ;

import
    : IMPORT alias_ring              { $$ = build_list(lx, AST_IMPORT, @$, $2); }
    | FROM dotted IMPORT from_ring           { $$ = build_from(lx, @$, 0, $2, $4); }
    | FROM dots dotted IMPORT from_ring      { $$ = build_from(lx, @$, $2, $3, $5); }
    | FROM dots IMPORT from_ring             { $$ = build_from(lx, @$, $2, NULL, $4); }
    | FROM dotted IMPORT '(' from_ring opt_comma ')'       { $$ = build_from(lx, @$, 0, $2, $5); }
    | FROM dots dotted IMPORT '(' from_ring opt_comma ')'  { $$ = build_from(lx, @$, $2, $3, $6); }
    | FROM dots IMPORT '(' from_ring opt_comma ')'         { $$ = build_from(lx, @$, $2, NULL, $5); }
    | FROM dotted IMPORT '*'         { $$ = build_from(lx, @$, 0, $2, ring_add(NULL, build_alias(lx, @4, intern_cstr(lx->names, "*"), NULL))); }
    | FROM dots dotted IMPORT '*'    { $$ = build_from(lx, @$, $2, $3, ring_add(NULL, build_alias(lx, @5, intern_cstr(lx->names, "*"), NULL))); }
    | FROM dots IMPORT '*'           { $$ = build_from(lx, @$, $2, NULL, ring_add(NULL, build_alias(lx, @4, intern_cstr(lx->names, "*"), NULL))); }
    ;

alias_ring
    : alias                          { $$ = ring_add(NULL, $1); }
    | alias_ring ',' alias           { $$ = ring_add($1, $3); }
    ;

alias: dotted as_opt                 { $$ = build_alias(lx, @$, $1, $2); } ;

from_ring
    : from_alias                     { $$ = ring_add(NULL, $1); }
    | from_ring ',' from_alias       { $$ = ring_add($1, $3); }
    ;

from_alias: NAME as_opt              { $$ = build_alias(lx, @$, $1, $2); } ;

as_opt
    : %empty                         { $$ = NULL; }
    | AS NAME                        { $$ = $2; }
    ;

dotted
    : NAME
    | dotted '.' NAME                { $$ = build_dotted(lx, $1, $3); }
    ;

dots
    : '.'                            { $$ = 1; }
    | ELLIPSIS                       { $$ = 3; }
    | dots '.'                       { $$ = $1 + 1; }
    | dots ELLIPSIS                  { $$ = $1 + 3; }
    ;

opt_comma
    : %empty                         { $$ = false; }
    | ','                            { $$ = true; }
    ;

// ---- compound statements ----

compound
    : if_stmt                        { $$ = ring_add(NULL, $1); }
    | for_stmt                       { $$ = ring_add(NULL, $1); }
    | while_stmt                     { $$ = ring_add(NULL, $1); }
    | try_stmt                       { $$ = ring_add(NULL, $1); }
    | with_stmt                      { $$ = ring_add(NULL, $1); }
    | match_stmt                     { $$ = ring_add(NULL, $1); }
    | definition                     { $$ = ring_add(NULL, $1); }
    | async_stmt                     { $$ = ring_add(NULL, $1); }
    | decorated                      { $$ = ring_add(NULL, $1); }
    ;

if_stmt
    : IF named ':' suite elif_ring orelse
        { $$ = build_if(lx, build_flow(lx, AST_IF, @$, $2, NULL, $4, NULL), $5, $6); }
    ;

elif_ring
    : %empty                         { $$ = NULL; }
    | elif_ring ELIF named ':' suite { $$ = ring_add($1, build_flow(lx, AST_IF, cover(@2, @5), $3, NULL, $5, NULL)); }
    ;

orelse
    : %empty                         { $$ = NULL; }
    | ELSE ':' suite                 { $$ = $3; }
    ;

while_stmt: WHILE named ':' suite orelse
                                     { $$ = build_flow(lx, AST_WHILE, @$, $2, NULL, $4, $5); } ;

for_stmt: FOR targets IN exprs ':' suite orelse
                                     { $$ = build_flow(lx, AST_FOR, @$, $4, build_target(lx, $2, "assign to"), $6, $7); } ;

try_stmt
    : TRY ':' suite FINALLY ':' suite        { $$ = build_try(lx, @$, $3, NULL, NULL, $6); }
    | TRY ':' suite handler_ring orelse finally
                                             { $$ = build_try(lx, @$, $3, $4, $5, $6); }
    ;

finally
    : %empty                         { $$ = NULL; }
    | FINALLY ':' suite              { $$ = $3; }
    ;

handler_ring
    : handler                        { $$ = ring_add(NULL, $1); }
    | handler_ring handler           { $$ = ring_add($1, $2); }
    ;

handler
    : EXCEPT ':' suite               { $$ = build_handler(lx, @$, false, NULL, NULL, $3); }
    | EXCEPT test as_opt ':' suite   { $$ = build_handler(lx, @$, false, $2, $3, $5); }
    | EXCEPT '*' test as_opt ':' suite { $$ = build_handler(lx, @$, true, $3, $4, $6); }
    | EXCEPT test ',' exprs ':' suite
        {
            diag_except_comma(lx->ds, lexer_loc(lx, cover(@2, @4)));
            $$ = build_handler(lx, @$, false, $2, NULL, $6);
        }
    ;

with_stmt: WITH with_items ':' suite { $$ = build_with(lx, @$, $2, $4); } ;

// Reduced before the body is read, while the last parenthesis is still known.
with_items: with_ring                { $$ = build_withitems(lx, $1); } ;

with_ring
    : with_item                      { $$ = ring_add(NULL, $1); }
    | with_ring ',' with_item        { $$ = ring_add($1, $3); }
    ;

with_item
    : test                           { $$ = build_withitem(lx, @$, $1, NULL); }
    | test AS arith                  { $$ = build_withitem(lx, @$, $1, $3); }
    ;

async_stmt
    : ASYNC def                      { $$ = build_async($2, @$); }
    | ASYNC with_stmt                { $$ = build_async($2, @$); }
    | ASYNC for_stmt                 { $$ = build_async($2, @$); }
    ;

decorated
    : decorator_ring definition      { $$ = build_decorated(lx, $2, $1); }
    | decorator_ring ASYNC def       { $$ = build_decorated(lx, build_async($3, cover(@2, @3)), $1); }
    ;

decorator_ring
    : '@' named NEWLINE              { $$ = ring_add(NULL, $2); }
    | decorator_ring '@' named NEWLINE { $$ = ring_add($1, $3); }
    ;

definition
    : def
    | class
    ;

def: DEF NAME tparams_opt '(' params_opt ')' returns_opt ':' suite
                                     { $$ = build_def(lx, AST_DEF, @$, $2, $3, $5, $7, $9); } ;

class
    : CLASS NAME tparams_opt ':' suite
                                     { $$ = build_def(lx, AST_CLASS, @$, $2, $3, NULL, NULL, $5); }
    | CLASS NAME tparams_opt '(' ')' ':' suite
                                     { $$ = build_def(lx, AST_CLASS, @$, $2, $3, NULL, NULL, $7); }
    | CLASS NAME tparams_opt '(' arg_ring opt_comma ')' ':' suite
                                     { $$ = build_def(lx, AST_CLASS, @$, $2, $3, build_args(lx, $5, false), NULL, $9); }
    ;

returns_opt
    : %empty                         { $$ = NULL; }
    | ARROW test                     { $$ = $2; }
    ;

params_opt
    : %empty                         { $$ = NULL; }
    | param_ring opt_comma           { $$ = build_params(lx, $1); }
    ;

param_ring
    : param                          { $$ = ring_add(NULL, $1); }
    | param_ring ',' param           { $$ = ring_add($1, $3); }
    ;

param
    : NAME annotation_opt default_opt { $$ = build_param(lx, @$, PARAM_NORMAL, $1, $2, $3); }
    | '*'                            { $$ = build_param(lx, @$, PARAM_STAR, NULL, NULL, NULL); }
    | '*' NAME annotation_opt        { $$ = build_param(lx, @$, PARAM_STAR, $2, $3, NULL); }
    | '*' NAME ':' star_expr         { $$ = build_param(lx, @$, PARAM_STAR, $2, $4, NULL); }
    | POW NAME annotation_opt        { $$ = build_param(lx, @$, PARAM_STARSTAR, $2, $3, NULL); }
    | '/'                            { $$ = build_param(lx, @$, (param_kind)PARAM_SLASH, NULL, NULL, NULL); }
    ;

annotation_opt
    : %empty                         { $$ = NULL; }
    | ':' test                       { $$ = $2; }
    ;

default_opt
    : %empty                         { $$ = NULL; }
    | '=' test                       { $$ = $2; }
    ;

tparams_opt
    : %empty                         { $$ = NULL; }
    | '[' tparam_ring opt_comma ']'  { $$ = ring_list($2); }
    ;

tparam_ring
    : tparam                         { $$ = ring_add(NULL, $1); }
    | tparam_ring ',' tparam         { $$ = ring_add($1, $3); }
    ;

tparam
    : NAME bound_opt                 { $$ = build_type(lx, AST_TYPE_PARAM, @$, 0, $1, NULL, $2); }
    | '*' NAME                       { $$ = build_type(lx, AST_TYPE_PARAM, @$, 1, $2, NULL, NULL); }
    | POW NAME                       { $$ = build_type(lx, AST_TYPE_PARAM, @$, 2, $2, NULL, NULL); }
    ;

bound_opt
    : %empty                         { $$ = NULL; }
    | ':' test                       { $$ = $2; }
    ;

// ---- match ----

match_stmt: MATCH star_ring ':' NEWLINE INDENT case_ring DEDENT
                                     { $$ = build_match(lx, AST_MATCH, @$, build_exprs(lx, @2, $2, false), NULL, ring_list($6)); }
          | MATCH star_ring ',' ':' NEWLINE INDENT case_ring DEDENT
                                     { $$ = build_match(lx, AST_MATCH, @$, build_exprs(lx, cover(@2, @3), $2, true), NULL, ring_list($7)); }
          ;

case_ring
    : case                           { $$ = ring_add(NULL, $1); }
    | case_ring case                 { $$ = ring_add($1, $2); }
    ;

case: CASE patterns guard_opt ':' suite
                                     { $$ = build_match(lx, AST_CASE, @$, $2, $3, $5); } ;

guard_opt
    : %empty                         { $$ = NULL; }
    | IF named                       { $$ = $2; }
    ;

patterns
    : pat_item                       { $$ = $1; }
    | pat_ring ',' pat_item          { $$ = build_list(lx, AST_PAT_SEQ, @$, ring_add($1, $3)); }
    | pat_ring ','                   { $$ = build_list(lx, AST_PAT_SEQ, @$, $1); }
    ;

pat_ring
    : pat_item                       { $$ = ring_add(NULL, $1); }
    | pat_ring ',' pat_item          { $$ = ring_add($1, $3); }
    ;

pat_item
    : pattern
    | '*' NAME                       { $$ = build_pattern(lx, AST_PAT_STAR, @$, NULL, NULL, $2); }
    ;

pattern
    : or_pattern
    | or_pattern AS NAME             { $$ = build_pattern(lx, AST_PAT_AS, @$, $1, NULL, $3); }
    ;

or_pattern
    : closed
    | or_ring                        { $$ = build_list(lx, AST_PAT_OR, @$, $1); }
    ;

or_ring
    : closed '|' closed              { $$ = ring_add(ring_add(NULL, $1), $3); }
    | or_ring '|' closed             { $$ = ring_add($1, $3); }
    ;

closed
    : literal_pattern                { $$ = build_pattern(lx, AST_PAT_VALUE, @$, $1, NULL, NULL); }
    | NAME                           { $$ = build_pattern(lx, AST_PAT_CAPTURE, @$, NULL, NULL, $1); }
    | dotted_value                   { $$ = build_pattern(lx, AST_PAT_VALUE, @$, $1, NULL, NULL); }
    | '(' ')'                        { $$ = build_list(lx, AST_PAT_SEQ, @$, NULL); }
    | '(' pattern ')'                { $$ = $2; }
    | '(' pat_ring ',' ')'           { $$ = build_list(lx, AST_PAT_SEQ, @$, $2); }
    | '(' pat_ring ',' pat_item ')'  { $$ = build_list(lx, AST_PAT_SEQ, @$, ring_add($2, $4)); }
    | '(' '*' NAME ')'               { $$ = build_list(lx, AST_PAT_SEQ, @$, ring_add(NULL, build_pattern(lx, AST_PAT_STAR, cover(@2, @3), NULL, NULL, $3))); }
    | '[' ']'                        { $$ = build_list(lx, AST_PAT_SEQ, @$, NULL); }
    | '[' pat_ring opt_comma ']'     { $$ = build_list(lx, AST_PAT_SEQ, @$, $2); }
    | '{' '}'                        { $$ = build_pattern(lx, AST_PAT_MAP, @$, NULL, NULL, NULL); }
    | '{' map_ring opt_comma '}'     { $$ = build_pattern(lx, AST_PAT_MAP, @$, ring_list($2), NULL, NULL); }
    | NAME '(' ')'                   { $$ = build_pattern(lx, AST_PAT_CLASS, @$, build_name(lx, @1, $1), NULL, NULL); }
    | NAME '(' pat_arg_ring opt_comma ')' { $$ = build_pattern(lx, AST_PAT_CLASS, @$, build_name(lx, @1, $1), build_args(lx, $3, false), NULL); }
    | dotted_value '(' ')'           { $$ = build_pattern(lx, AST_PAT_CLASS, @$, $1, NULL, NULL); }
    | dotted_value '(' pat_arg_ring opt_comma ')' { $$ = build_pattern(lx, AST_PAT_CLASS, @$, $1, build_args(lx, $3, false), NULL); }
    ;

dotted_value
    : NAME '.' NAME                  { $$ = build_named(lx, AST_ATTR, @$, build_name(lx, @1, $1), $3); }
    | dotted_value '.' NAME          { $$ = build_named(lx, AST_ATTR, @$, $1, $3); }
    ;

literal_pattern
    : number_pattern
    | number_pattern '+' NUMBER      { $$ = build_complex(lx, @$, OP_ADD, $1, $3); }
    | number_pattern '-' NUMBER      { $$ = build_complex(lx, @$, OP_SUB, $1, $3); }
    | strings                        { $$ = literal_join(lx, ring_list($1), @$); }
    | NONE                           { $$ = build_const(lx, @$, OP_C_NONE); }
    | TRUE                           { $$ = build_const(lx, @$, OP_C_TRUE); }
    | FALSE                          { $$ = build_const(lx, @$, OP_C_FALSE); }
    ;

number_pattern
    : NUMBER
    | '-' NUMBER                     { $$ = build_bin(lx, AST_UNARY, OP_NEG, @$, $2, NULL); }
    ;

map_ring
    : map_item                       { $$ = ring_add(NULL, $1); }
    | map_ring ',' map_item          { $$ = ring_add($1, $3); }
    ;

map_item
    : literal_pattern ':' pattern    { $$ = build_bin(lx, AST_PAIR, OP_NONE, @$, $1, $3); }
    | dotted_value ':' pattern       { $$ = build_bin(lx, AST_PAIR, OP_NONE, @$, $1, $3); }
    | POW NAME                       { $$ = build_pattern(lx, AST_PAT_REST, @$, NULL, NULL, $2); }
    ;

pat_arg_ring
    : pat_arg                        { $$ = ring_add(NULL, $1); }
    | pat_arg_ring ',' pat_arg       { $$ = ring_add($1, $3); }
    ;

pat_arg
    : pattern                        { $$ = build_named(lx, AST_ARG, @$, $1, NULL); }
    | NAME '=' pattern               { $$ = build_named(lx, AST_ARG, @$, $3, $1); }
    ;

// ---- expressions ----

exprs
    : star_test                      { $$ = build_exprs(lx, @$, ring_add(NULL, $1), false); }
    | expr_ring ',' star_test        { $$ = build_exprs(lx, @$, ring_add($1, $3), true); }
    | expr_ring ','                  { $$ = build_exprs(lx, @$, $1, true); }
    ;

expr_ring
    : star_test                      { $$ = ring_add(NULL, $1); }
    | expr_ring ',' star_test        { $$ = ring_add($1, $3); }
    ;

star_test
    : test
    | star_expr
    ;

star_expr: '*' arith                 { $$ = build_bin(lx, AST_STARRED, OP_NONE, @$, $2, NULL); } ;

targets
    : target_ring                    { $$ = build_exprs(lx, @$, $1, false); }
    | target_ring ','                { $$ = build_exprs(lx, @$, $1, true); }
    ;

target_ring
    : arith                          { $$ = ring_add(NULL, $1); }
    | star_expr                      { $$ = ring_add(NULL, $1); }
    | target_ring ',' arith          { $$ = ring_add($1, $3); }
    | target_ring ',' star_expr      { $$ = ring_add($1, $3); }
    ;

named
    : test
    | NAME WALRUS test               { $$ = build_bin(lx, AST_WALRUS, OP_NONE, @$, build_name(lx, @1, $1), $3); }
    ;

named_star
    : named
    | star_expr
    ;

star_ring
    : named_star                     { $$ = ring_add(NULL, $1); }
    | star_ring ',' named_star       { $$ = ring_add($1, $3); }
    ;

yield
    : YIELD                          { $$ = build_node(lx, AST_YIELD, @$); }
    | YIELD exprs                    { $$ = build_bin(lx, AST_YIELD, OP_NONE, @$, $2, NULL); }
    | YIELD FROM test                { $$ = build_bin(lx, AST_YIELD_FROM, OP_NONE, @$, $3, NULL); }
    ;

test
    : or_test
    | or_test IF or_test ELSE test   { $$ = build_three(lx, AST_TERNARY, @$, $1, $5, $3); }
    | LAMBDA lambda_params ':' test  { $$ = build_lambda(lx, @$, $2, $4); }
    ;

test_opt
    : %empty                         { $$ = NULL; }
    | test
    ;

lambda_params
    : %empty                         { $$ = NULL; }
    | lambda_ring opt_comma          { $$ = build_params(lx, $1); }
    ;

lambda_ring
    : lambda_param                   { $$ = ring_add(NULL, $1); }
    | lambda_ring ',' lambda_param   { $$ = ring_add($1, $3); }
    ;

lambda_param
    : NAME default_opt               { $$ = build_param(lx, @$, PARAM_NORMAL, $1, NULL, $2); }
    | '*'                            { $$ = build_param(lx, @$, PARAM_STAR, NULL, NULL, NULL); }
    | '*' NAME                       { $$ = build_param(lx, @$, PARAM_STAR, $2, NULL, NULL); }
    | POW NAME                       { $$ = build_param(lx, @$, PARAM_STARSTAR, $2, NULL, NULL); }
    | '/'                            { $$ = build_param(lx, @$, (param_kind)PARAM_SLASH, NULL, NULL, NULL); }
    ;

or_test
    : comparison
    | NOT or_test                    { $$ = build_bin(lx, AST_UNARY, OP_NOT, @$, $2, NULL); }
    | or_test AND or_test            { $$ = build_bin(lx, AST_BOOLOP, OP_AND, @$, $1, $3); }
    | or_test OR or_test             { $$ = build_bin(lx, AST_BOOLOP, OP_OR, @$, $1, $3); }
    ;

comparison
    : arith
    | arith cmp_ring                 { $$ = build_compare(lx, @$, $1, $2); }
    ;

cmp_ring
    : cmp                            { $$ = ring_add(NULL, $1); }
    | cmp_ring cmp                   { $$ = ring_add($1, $2); }
    ;

cmp
    : EQ arith                       { $$ = build_bin(lx, AST_CMP, OP_EQ, @$, NULL, $2); }
    | NE arith                       { $$ = build_bin(lx, AST_CMP, OP_NE, @$, NULL, $2); }
    | '<' arith                      { $$ = build_bin(lx, AST_CMP, OP_LT, @$, NULL, $2); }
    | LE arith                       { $$ = build_bin(lx, AST_CMP, OP_LE, @$, NULL, $2); }
    | '>' arith                      { $$ = build_bin(lx, AST_CMP, OP_GT, @$, NULL, $2); }
    | GE arith                       { $$ = build_bin(lx, AST_CMP, OP_GE, @$, NULL, $2); }
    | IN arith                       { $$ = build_bin(lx, AST_CMP, OP_IN, @$, NULL, $2); }
    | NOT IN arith                   { $$ = build_bin(lx, AST_CMP, OP_NOT_IN, @$, NULL, $3); }
    | IS arith                       { $$ = build_bin(lx, AST_CMP, OP_IS, @$, NULL, $2); }
    | IS NOT arith                   { $$ = build_bin(lx, AST_CMP, OP_IS_NOT, @$, NULL, $3); }
    ;

arith
    : primary
    | AWAIT primary                  { $$ = build_bin(lx, AST_AWAIT, OP_NONE, @$, $2, NULL); }
    | arith '|' arith                { $$ = build_bin(lx, AST_BINARY, OP_BITOR, @$, $1, $3); }
    | arith '^' arith                { $$ = build_bin(lx, AST_BINARY, OP_BITXOR, @$, $1, $3); }
    | arith '&' arith                { $$ = build_bin(lx, AST_BINARY, OP_BITAND, @$, $1, $3); }
    | arith LSHIFT arith             { $$ = build_bin(lx, AST_BINARY, OP_LSHIFT, @$, $1, $3); }
    | arith RSHIFT arith             { $$ = build_bin(lx, AST_BINARY, OP_RSHIFT, @$, $1, $3); }
    | arith '+' arith                { $$ = build_bin(lx, AST_BINARY, OP_ADD, @$, $1, $3); }
    | arith '-' arith                { $$ = build_bin(lx, AST_BINARY, OP_SUB, @$, $1, $3); }
    | arith '*' arith                { $$ = build_bin(lx, AST_BINARY, OP_MUL, @$, $1, $3); }
    | arith '/' arith                { $$ = build_bin(lx, AST_BINARY, OP_DIV, @$, $1, $3); }
    | arith '%' arith                { $$ = build_bin(lx, AST_BINARY, OP_MOD, @$, $1, $3); }
    | arith '@' arith                { $$ = build_bin(lx, AST_BINARY, OP_MATMUL, @$, $1, $3); }
    | arith FLOORDIV arith           { $$ = build_bin(lx, AST_BINARY, OP_FLOORDIV, @$, $1, $3); }
    | arith POW arith                { $$ = build_bin(lx, AST_BINARY, OP_POW, @$, $1, $3); }
    | '-' arith %prec SIGN           { $$ = build_bin(lx, AST_UNARY, OP_NEG, @$, $2, NULL); }
    | '+' arith %prec SIGN           { $$ = build_bin(lx, AST_UNARY, OP_POS, @$, $2, NULL); }
    | '~' arith %prec SIGN           { $$ = build_bin(lx, AST_UNARY, OP_INVERT, @$, $2, NULL); }
    ;

primary
    : atom
    | primary '.' NAME               { $$ = build_named(lx, AST_ATTR, @$, $1, $3); }
    | primary '(' ')'                { $$ = build_call(lx, @$, $1, NULL, false); }
    | primary '(' arg_ring opt_comma ')' { $$ = build_call(lx, @$, $1, $3, $4); }
    | primary '[' subscripts ']'     { $$ = build_index(lx, @$, $1, $3); }
    ;

atom
    : NAME                           { $$ = build_name(lx, @$, $1); }
    | NUMBER
    | strings                        { $$ = literal_join(lx, ring_list($1), @$); }
    | NONE                           { $$ = build_const(lx, @$, OP_C_NONE); }
    | TRUE                           { $$ = build_const(lx, @$, OP_C_TRUE); }
    | FALSE                          { $$ = build_const(lx, @$, OP_C_FALSE); }
    | ELLIPSIS                       { $$ = build_const(lx, @$, OP_C_ELLIPSIS); }
    | '(' ')'                        { $$ = build_paren(lx, @$, NULL, true); }
    | '(' yield ')'                  { $$ = $2; }
    | '(' paren_ring ')'             { $$ = build_paren(lx, @$, $2, false); }
    | '(' paren_ring ',' ')'         { $$ = build_paren(lx, @$, $2, true); }
    | '(' paren_item clause_ring ')' { $$ = build_comp(lx, AST_GENEXP, @$, $2, NULL, $3); }
    | '[' ']'                        { $$ = build_list(lx, AST_LIST, @$, NULL); }
    | '[' star_ring opt_comma ']'    { $$ = build_list(lx, AST_LIST, @$, $2); }
    | '[' named_star clause_ring ']' { $$ = build_comp(lx, AST_LISTCOMP, @$, $2, NULL, $3); }
    | '{' '}'                        { $$ = build_list(lx, AST_DICT, @$, NULL); }
    | '{' dict_ring opt_comma '}'    { $$ = build_list(lx, AST_DICT, @$, $2); }
    | '{' dict_item clause_ring '}'  { $$ = build_comp(lx, AST_DICTCOMP, @$, $2, NULL, $3); }
    | '{' star_ring opt_comma '}'    { $$ = build_list(lx, AST_SET, @$, $2); }
    | '{' named_star clause_ring '}' { $$ = build_comp(lx, AST_SETCOMP, @$, $2, NULL, $3); }
    ;

paren_item
    : named_star
    | test AS arith                  { $$ = build_withitem(lx, @$, $1, $3); }
    ;

paren_ring
    : paren_item                     { $$ = ring_add(NULL, $1); }
    | paren_ring ',' paren_item      { $$ = ring_add($1, $3); }
    ;

dict_ring
    : dict_item                      { $$ = ring_add(NULL, $1); }
    | dict_ring ',' dict_item        { $$ = ring_add($1, $3); }
    ;

dict_item
    : test ':' test                  { $$ = build_bin(lx, AST_PAIR, OP_NONE, @$, $1, $3); }
    | POW arith                      { $$ = build_bin(lx, AST_PAIR, OP_NONE, @$, NULL, $2); }
    ;

subscripts
    : sub
    | sub_ring ',' sub               { $$ = build_list(lx, AST_TUPLE, @$, ring_add($1, $3)); }
    | sub_ring ','                   { $$ = build_list(lx, AST_TUPLE, @$, $1); }
    ;

sub_ring
    : sub                            { $$ = ring_add(NULL, $1); }
    | sub_ring ',' sub               { $$ = ring_add($1, $3); }
    ;

sub
    : named_star
    | test_opt ':' test_opt          { $$ = build_three(lx, AST_SLICE, @$, $1, $3, NULL); }
    | test_opt ':' test_opt ':' test_opt { $$ = build_three(lx, AST_SLICE, @$, $1, $3, $5); }
    ;

arg_ring
    : arg                            { $$ = ring_add(NULL, $1); }
    | arg_ring ',' arg               { $$ = ring_add($1, $3); }
    ;

arg
    : named                          { $$ = build_named(lx, AST_ARG, @$, $1, NULL); }
    | named clause_ring              { $$ = build_named(lx, AST_ARG, @$, build_comp(lx, AST_GENEXP, @$, $1, NULL, $2), NULL); $$->flag = 1; }
    | test '=' test                  { $$ = build_keyword(lx, @$, $1, @1, $3); }
    | '*' test                       { $$ = build_named(lx, AST_ARG, @$, $2, NULL); $$->op = 1; }
    | POW test                       { $$ = build_named(lx, AST_ARG, @$, $2, NULL); $$->op = 2; }
    ;

clause_ring
    : clause                         { $$ = ring_add(NULL, $1); }
    | clause_ring clause             { $$ = ring_add($1, $2); }
    ;

clause
    : FOR targets IN or_test cond_ring { $$ = build_clause(lx, @$, false, $2, $4, $5); }
    | ASYNC FOR targets IN or_test cond_ring { $$ = build_clause(lx, @$, true, $3, $5, $6); }
    ;

cond_ring
    : %empty                         { $$ = NULL; }
    | cond_ring IF or_test           { $$ = ring_add($1, $3); }
    ;

strings
    : STRING                         { $$ = ring_add(NULL, $1); }
    | FSTRING_START fparts FSTRING_END { $$ = ring_add(NULL, build_list(lx, AST_FSTRING, @$, $2)); }
    | strings STRING                 { $$ = ring_add($1, $2); }
    | strings FSTRING_START fparts FSTRING_END { $$ = ring_add($1, build_list(lx, AST_FSTRING, cover(@2, @4), $3)); }
    ;

fparts
    : %empty                         { $$ = NULL; }
    | fparts fpart                   { $$ = $2->kind == AST_STR && !$2->u.str.len ? $1 : ring_add($1, $2); }
    ;

fpart
    : FSTRING_TEXT
    | '{' value equals_opt conv_opt fspec_opt '}'
        {
            uint32_t hi = $4 ? @4.lo : $5 ? @5.lo : @6.lo;
            $$ = build_format(lx, @$, $2, (span){@1.hi, hi}, $3, $4, @4, $5);
        }
    ;

equals_opt
    : %empty                         { $$ = false; }
    | '='                            { $$ = true; }
    ;

conv_opt
    : %empty                         { $$ = NULL; }
    | '!' NAME                       { $$ = $2; }
    ;

fspec_opt
    : %empty                         { $$ = NULL; }
    | ':' fparts                     { $$ = build_list(lx, AST_FSTRING, @$, $2); }
    ;

%%

// Bison calls this only when its stack is exhausted.
static void nki_yyerror(const span *at, struct lexer *lx, struct ast **out, const char *msg)
{
    (void)out, (void)msg;
    lexer_too_deep(lx, *at, AST_HEIGHT_MAX, "expressions or statements");
}

static int yyreport_syntax_error(const yypcontext_t *ctx, struct lexer *lx, struct ast **out)
{
    (void)out;
    enum { SHOW = 4 };
    yysymbol_kind_t want[SHOW];
    const char *names[SHOW];
    int n = yypcontext_expected_tokens(ctx, want, SHOW);
    for (int i = 0; i < n; i++) {
        names[i] = yysymbol_name(want[i]);
    }
    slip got = {.token = yypcontext_token(ctx) == YYSYMBOL_YYEMPTY ? "nothing" : yysymbol_name(yypcontext_token(ctx)),
                .at = *yypcontext_location(ctx),
                .wanted = names, .nwanted = n,
                .wants_block = n == 1 && want[0] == YYSYMBOL_INDENT};
    slip_report(lx, &got);
    return 0;
}
