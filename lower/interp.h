#ifndef LOWER_INTERP_H
#define LOWER_INTERP_H

#include "lower/emit.h"
#include "lower/fiber.h"
#include "lower/specialize.h"
#include "lower/value.h"

// The specializer's insides: one interpreter a compile. Functions that can fail return V_ERROR (or
// false) with it->exc set; callers pass it on at once.

enum { MAX_LOCALS = 4096 };

// A unit of resolved code: module level, a function, a class body. (scope.c)
typedef enum unit_kind { UNIT_MODULE, UNIT_FUNC, UNIT_CLASS } unit_kind;
typedef enum scope_kind {
    SCOPE_NONE,    // not resolved
    SCOPE_LOCAL,   // slot: locals[slot]
    SCOPE_CELL,    // slot: cells[slot], this unit's own captured variables first, then free ones
    SCOPE_GLOBAL,  // by name in the module, then the builtins
    SCOPE_CLASS,   // class body: by name in the class, then slot (cell + 1, or 0), then global
} scope_kind;

typedef struct unit {
    unit_kind kind;
    struct unit *parent;
    const ast *node;     // DEF, LAMBDA, CLASS; NULL for a module
    uint32_t nlocals;    // slots, parameters first
    uint32_t nown;       // own cells
    uint32_t *own_slot;  // parameter slot of an own cell's first value, or UINT32_MAX
    uint32_t nfree;
    uint32_t *free_from;  // cell index in the parent unit
    uint32_t nparams;     // all kinds
    const ast **params;
    uint32_t npos, nkwonly;  // positional (incl. posonly), keyword-only
    int star, starstar;      // parameter index or -1
    uint32_t *param_slot;    // local slot; a captured parameter's cell is filled from it
    sym *slot_name;          // nlocals, for messages
    bool is_generator;
    bool has_body_list;  // LAMBDA: false
} unit;

typedef struct loop_ctx {
    struct loop_ctx *prev;
    sym var;
    int64_t value;
    uint32_t place;  // IR_NONE: not made yet
} loop_ctx;

typedef struct frame {
    struct frame *prev;
    unit *unit;
    value *locals;
    cell **cells;
    struct vmodule *module;
    vclass *cls;      // UNIT_CLASS: the class being made; functions: owner, for super()
    const ast *call;  // the call in prev that made this frame; NULL for the first
    const ast *at;    // being evaluated
    const source *src;  // what `at` points into; NULL: the module's
    sym id;           // function's name
    loop_ctx *loops;
    uint32_t place;  // PLACE_CALL of this frame, IR_NONE: not made
    value ret;
    value exc_handling;  // for a bare raise
    struct gen *gen;     // a generator's frame
    uint32_t limit;      // UNIT_MODULE: number of the statement that runs
    int try_import;      // in a try with a handler for ImportError
} frame;

typedef struct top_stmt {
    const ast *node;
    uint8_t state;  // 0 not run, 1 running, 2 done
} top_stmt;

typedef struct vmodule {
    const loaded_module *lm;  // NULL: native (_nki)
    sym id;                   // dotted name
    attrs attrs;
    unit *unit;
    top_stmt *stmts;
    uint32_t nstmts;
    struct binders *binders;  // name -> statements that bind or change it
    attrs subs;               // submodules imported by "import a.b"
    attrs settled;            // names that no statement left to run can bind
    value (*native_attr)(interp *it, struct vmodule *m, sym id);  // lazily made attributes, or NULL
    bool builtin;
    uint32_t file;  // ir_file + 1
    bool star_done;
} vmodule;

typedef struct instr_range {
    uint32_t begin, end;
} instr_range;

struct interp {
    arena *mem;
    const lower_opts *o;
    intern *names;
    diags *ds;   // the caller's
    diags pend;  // diagnostics of exceptions not yet known to be uncaught
    ir *p;
    emitter *em;
    frame *top;
    value exc;  // V_OBJ while an exception is pending
    uint64_t steps, step_limit;
    char *stack_limit;
    attrs builtins;
    attrs modules;     // loaded, by path (interned)
    vclass *exc_base;  // BaseException
    vclass *enum_cls, *int_enum_cls, *flag_cls, *nkiobject_cls, *namedtuple_cls;
    vmodule *entry;
    uint32_t dyn_depth;     // nesting of register loops
    VEC(uint32_t) reorder;  // starts of open no_reorder regions
    VEC(instr_range) loops_ended;  // register loops that are complete
    uint32_t next_reg;
    struct name_table *n;  // interned names the interpreter itself uses
    value op_fn[OPR_COUNT];
    bool in_kernel;  // the kernel's own call has begun
    uint32_t outputs_seen;
    loc kernel_at;                      // its definition: the place of what the caller did wrong
    vlist *warned;                      // one-time warnings already given
    const struct open_repr *open_repr;  // containers being printed
    fiber_pool fibers;                  // stacks of generators
    uint32_t gen_depth;                 // generators that run, each inside another
    uint32_t nans;                      // made by float("nan")
    value native_self;                  // receiver of the native method being called: read it first
};

// Interned names. NAME(id) for identifiers used in C.
// clang-format off
#define INTERP_NAMES(X)                                                                          \
    X(__init__) X(__new__) X(__call__) X(__len__) X(__getitem__) X(__setitem__) X(__delitem__)   \
    X(__contains__) X(__iter__) X(__next__) X(__repr__) X(__str__) X(__eq__) X(__ne__) X(__lt__) \
    X(__le__) X(__gt__) X(__ge__) X(__hash__) X(__bool__) X(__enter__) X(__exit__)               \
    X(__getattr__) X(__setattr__) X(__delattr__) X(__getattribute__) X(__name__) X(__doc__)      \
    X(__class__) X(__dict__) X(__module__) X(__qualname__) X(__annotations__) X(__post_init__)   \
    X(__add__) X(__radd__) X(__sub__) X(__rsub__) X(__mul__) X(__rmul__) X(__truediv__)          \
    X(__rtruediv__) X(__floordiv__) X(__rfloordiv__) X(__mod__) X(__rmod__) X(__pow__)           \
    X(__rpow__) X(__matmul__) X(__rmatmul__) X(__lshift__) X(__rlshift__) X(__rshift__)          \
    X(__rrshift__) X(__and__) X(__rand__) X(__or__) X(__ror__) X(__xor__) X(__rxor__)            \
    X(__iadd__) X(__isub__) X(__imul__) X(__itruediv__) X(__ifloordiv__) X(__imod__) X(__ipow__) \
    X(__imatmul__) X(__ilshift__) X(__irshift__) X(__iand__) X(__ior__) X(__ixor__) X(__neg__)   \
    X(__pos__) X(__invert__) X(__abs__) X(__int__) X(__float__) X(__index__) X(__round__)        \
    X(__format__) X(__file__) X(__all__) X(__slots__) X(__mro__) X(__bases__) X(__members__)     \
    X(__init_subclass__) X(__set_name__) X(__wrapped__) X(__missing__) X(__reversed__)           \
    X(__cause__) X(__context__) X(__match_args__) X(__class_getitem__) X(__main__) X(__path__)   \
    X(__dataclass_fields__) X(__debug__) X(__import__) X(__package__) X(__divmod__) X(__fields__) \
    X(_fields) X(_asdict) X(_replace) X(_make) X(_value_) X(_name_) X(_missing_) X(_generate_next_value_) \
    X(args) X(name) X(value) X(self) X(key) X(reverse) X(sep) X(end) X(file) X(flush) \
    X(init) X(repr) X(compare) X(default_factory) X(kw_only) X(frozen) X(eq) X(order) X(start)   \
    X(strict) X(shape) X(dtype) X(buffer) X(ndim) X(size) X(strides) X(offset) X(itemsize) X(dst) \
    X(address) X(pattern) X(scalar_offset) X(vector_offset) X(indirect_dim) X(dim) X(dims)       \
    X(index) X(step) X(fixed_sizes) X(num_elem) X(ImportError) X(ModuleNotFoundError) X(Exception) \
    X(stop) X(real) X(imag) X(unsafe_hash) X(start_dim) X(end_dim) X(src_pattern) X(dst_pattern) \
    X(engine) X(data) X(group) X(encoding) X(code) X(metaclass) X(T) X(gi_frame) X(fset) X(storage) X(__suppress_context__) X(__defaults__) X(__traceback__) X(mro) X(_field_defaults)
// clang-format on
typedef struct name_table {
#define X(id) sym id;
    INTERP_NAMES(X)
#undef X
    sym default_;  // "default"
} name_table;
#define N(id) (it->n->id)

bool is_kernel_decorator(const ast *d);  // nki.jit and its relatives (specialize.c)
// ---- interp.c: exceptions and places
loc interp_loc(interp *it);  // innermost place outside stdlib
// Turns a diagnostic made in it->pend into the pending exception. Returns V_ERROR.
value interp_raise(interp *it, diag *d);
// An exception of a builtin class with a message: raise_msg(it, "TypeError", "..."). V_ERROR.
value raise_msg(interp *it, const char *cls, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define type_error(it, ...)  raise_msg((it), "TypeError", __VA_ARGS__)
#define value_error(it, ...) raise_msg((it), "ValueError", __VA_ARGS__)
value raise_obj(interp *it, value exc);  // raise an instance or class
void interp_report(interp *it);          // the pending exception becomes a diagnostic in it->ds
bool interp_step(interp *it);            // counts; false: limit reached, exception set
uint32_t interp_place(interp *it);       // PLACE_SITE for the current instruction
// Notes that e was raised while another exception was handled or pending.
void exc_set_context(interp *it, value e, value context);
bool interp_warn_first(interp *it, diag_id id);  // the first time at the place being evaluated
void interp_warn_once(interp *it, const char *key, diag *(*make)(diags *, loc, const char *),
                      const char *what);
bool stack_ok(interp *it);  // false: RecursionError set

// ---- with_schedule.c
value kernel_with_schedule(interp *it, value kernel);  // the bound method
// Adds the edges between the instructions made since `begin`, a call's own; false: raised.
bool schedule_apply(interp *it, const vschedule *s, uint32_t begin);

// ---- value.c
value v_str(interp *it, const char *p, size_t len);
value v_cstr(interp *it, const char *p);
value v_sym(interp *it, sym s);
sym str_sym(interp *it, value s);
value v_tuple(interp *it, const value *at, uint32_t n);
value v_list(interp *it, const value *at, uint32_t n);
value v_dict(interp *it);
value v_set(interp *it);
value v_native(interp *it, const char *name, native_fn fn);
void list_push(interp *it, vlist *l, value v);
const char *type_name(interp *it, value v);  // as Python's type(v).__name__
vtype type_of(value v);
int truth(interp *it, value v);           // 0, 1, -1 error
int equal(interp *it, value a, value b);  // 0, 1, -1 error
int less(interp *it, value a, value b);   // a < b; -1 error
value compare(interp *it, ast_op op, value a, value b);
value compare_identity(interp *it, ast_op op, value a, value b);  // is, is not
// The TypeError of asking for a tensor's contents: what asked, and what to do instead.
value no_elements(interp *it, const char *what, const char *instead);
bool hash_value(interp *it, value v, uint32_t *out);
bool repr_into(interp *it, value v, textbuf *out);
bool str_into(interp *it, value v, textbuf *out);
value v_repr(interp *it, value v);
value v_strof(interp *it, value v);
bool is_same(value a, value b);  // `is`

// ---- dict.c
value dict_get(interp *it, vdict *d, value key);  // V_UNDEF: absent; V_ERROR
bool dict_set(interp *it, vdict *d, value key, value val);
int dict_del(interp *it, vdict *d, value key);  // 1 deleted, 0 absent, -1 error
vdict *dict_copy(interp *it, const vdict *d);
void dict_clear(interp *it, vdict *d);
// Puts a set of ints in the order that CPython's table gives them. Sets are settled before they are
// walked.
void set_settle(interp *it, vdict *d);
value attrs_get(const attrs *a, sym id);  // V_UNDEF: absent
void attrs_set(interp *it, attrs *a, sym id, value v);
bool attrs_del(attrs *a, sym id);

// ---- iter.c
typedef struct viter {
    uint8_t kind;
    value src;
    uint64_t i;
    int64_t a, b, c;
    value fn;             // map, filter, user __next__
    struct viter **subs;  // zip, chain
    uint32_t nsubs;
    bool strict;
    value (*next)(interp *it, struct viter *s);  // native iterators (stdlib's)
    struct gen *gen;
} viter;
bool iter_init(interp *it, viter *s, value v);  // false: not iterable (exception set)
// 1: *out is the next value; 0: exhausted; -1: error.
int iter_next(interp *it, viter *s, value *out);
value iter_new(interp *it, value v);    // a V_ITER over v
value list_from(interp *it, value v);   // a new list of v's items; V_ERROR
value iter_rest(interp *it, viter *s);  // a list of what is left
// Unpacks v's items; NULL on error. *n: number.
value *items_of(interp *it, value v, uint32_t *n);
value iter_enumerate(interp *it, value v, int64_t start);
value iter_zip(interp *it, const value *vs, uint32_t n, bool strict);
value iter_map(interp *it, value fn, const value *vs, uint32_t n);
value iter_filter(interp *it, value fn, value v);
value iter_reversed(interp *it, value v);
value iter_count(interp *it, int64_t start, int64_t step);
void iter_of_gen(viter *s, struct gen *g);
struct gen *iter_gen(const viter *s);     // the generator that s draws from, or NULL
value iter_result(const viter *s);        // after its end: what it returned; None
bool iter_stopped(interp *it, viter *s);  // takes a pending StopIteration
const char *iter_type_name(const viter *s);
vtype iter_type(const viter *s);

// ---- gen.c
value gen_of_function(interp *it, const ast *def, frame *fr);
value gen_of_expression(interp *it, const ast *e, frame *fr,
                        value first);                 // first: of its first clause
int gen_next(interp *it, struct gen *g, value *out);  // as iter_next
value gen_result(const struct gen *g);
value gen_yield(interp *it, value v);  // what is sent; V_ERROR: an exception was thrown in
value gen_yield_from(interp *it, value src);
// A loop over v, the value of `call`, ended early: a generator that nobody else can hold is closed.
bool gen_leave_loop(interp *it, value v, const ast *call);
value iter_method(interp *it, value self, sym id);

// ---- scope.c
unit *scope_module(interp *it, vmodule *m);  // resolves everything in it
// ---- eval.c
value eval(interp *it, const ast *e);
value load_global(interp *it, vmodule *m, sym id);
bool assign_to(interp *it, const ast *target, value v);
// ---- arith.c
value unary_op(interp *it, ast_op op, value v);
value binary_op(interp *it, ast_op op, value a, value b);
static inline int64_t as_int(value v)  // of an int or a bool
{
    return v.tag == V_BOOL ? v.u.b : v.u.i;
}
// ---- container.c
value contains(interp *it, value container, value item);
value get_index(interp *it, value obj, value key);
bool set_index(interp *it, value obj, value key, value v);
bool del_index(interp *it, value obj, value key);
bool as_index(interp *it, value v, int64_t *out);  // __index__: ints and bools; else TypeError
void slice_bounds(const vslice *s, int64_t n, int64_t *start, int64_t *stop, int64_t *step);
bool slice_indices(interp *it, const vslice *s, int64_t n, int64_t *start, int64_t *step,
                   int64_t *count);
// ---- exec.c
typedef enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_ERROR } flow;
flow exec_block(interp *it, const ast *first);
flow exec_stmt(interp *it, const ast *s);
// ---- call.c
value call(interp *it, value fn, const args *a);
value call_values(interp *it, value fn, const value *at, uint32_t n);
value eval_call(interp *it, const ast *e);
value call_method(interp *it, value self, sym id, const value *at,
                  uint32_t n);  // AttributeError when absent
// Calls a special method when the class of an instance has it: V_UNDEF when it has not.
value call_special(interp *it, value self, sym id, const value *at, uint32_t n);
value make_function(interp *it, const ast *def);
const char *qualified_name(interp *it, const unit *u, sym id);  // "f.<locals>.g", "C.m"
// "'a', 'b', and 'c'" as CPython lists missing arguments.
const char *name_list(interp *it, const sym *ids, uint32_t n);
// Binds native arguments to names; "a b? c?" style: n required, then optional ones (V_UNDEF when
// absent).
bool bind_native(interp *it, const char *fname, const args *a, const char *const *params,
                 uint32_t nparams, uint32_t nrequired, value *out);
// ---- attr.c
value get_attr(interp *it, value obj, sym id);   // AttributeError when absent
value find_attr(interp *it, value obj, sym id);  // V_UNDEF when absent
bool set_attr(interp *it, value obj, sym id, value v);
bool del_attr(interp *it, value obj, sym id);
// ---- class.c
value class_lookup(const vclass *c, sym id);         // through the MRO; V_UNDEF
bool class_is(const vclass *c, const vclass *base);  // subclass
value exec_class(interp *it, const ast *s);
value instantiate(interp *it, vclass *c, const args *a);
vclass *class_new(interp *it, sym id, vclass **bases, uint32_t nbases, vmodule *m);
bool class_finish(interp *it, vclass *c);  // after its body: enum members, fields
bool is_instance(interp *it, value v, value cls, bool *out);
bool is_subclass(interp *it, value c, value cls, bool *out);
vclass *class_of(value v);                       // V_OBJ or a named tuple; NULL
void class_natives(interp *it, vmodule *nki);    // Enum, dataclass, ... into _nki
vclass *exc_class(interp *it, const char *cls);  // builtin exception class
value exc_new(interp *it, vclass *c, value message);
bool obj_repr(interp *it, value v, textbuf *out);    // default and dataclass reprs
int obj_equal(interp *it, value a, value b);         // without __eq__; -2: not decided by class
value obj_eq_special(interp *it, value a, value b);  // what __eq__ says; V_UNDEF: nothing
const char *class_qualname(const vclass *c);
// ---- builtins.c
void builtins_init(interp *it);
// ---- types.c
value type_call(interp *it, vtype t, const args *a);
const char *vtype_name(vtype t);
value type_attr(interp *it, vtype t, sym id);       // dict.fromkeys, str.upper; V_UNDEF
value repr_of_base(interp *it, value v, bool str);  // super().__repr__
// ---- methods.c: methods of built-in values
value find_method(interp *it, value self, sym id);  // V_BUILTIN_METHOD / V_NATIVE bound; V_UNDEF
value sort_list(interp *it, vlist *l, value key, bool reverse);
// ---- methods_str.c
value str_method(interp *it, value self, sym id);  // a bound native, or V_UNDEF
value str_slice(interp *it, value s, int64_t start, int64_t step, int64_t count);
int64_t str_find(const vstr *s, const vstr *sub, int64_t from_byte);
// ---- format.c
value format_value(interp *it, value v, value spec);     // format(v, spec)
value format_percent(interp *it, value fmt, value arg);  // "..." % arg
value str_format(interp *it, value fmt, const args *a);  // "...".format(...)
value eval_fstring(interp *it, const ast *e);
// ---- module.c
value import_module(interp *it, vmodule *from, uint32_t level, sym dotted, bool leaf);
vmodule *module_of(interp *it, const loaded_module *lm);
value module_attr(interp *it, vmodule *m, sym id, uint32_t limit);  // runs what binds it; V_UNDEF
flow exec_import(interp *it, const ast *s);
// ---- tensor.c
value tensor_index(interp *it, value t, value key);
value tensor_new(interp *it, ir_tensor t);  // emits the allocation; V_ERROR
value tensor_whole(interp *it, uint32_t id);
bool tensor_view(interp *it, vtensor *t, uint32_t *view);  // ir_view, made once
void tensor_describe(const vtensor *t, textbuf *out);      // "[128, 512] float32 @sbuf"
// ---- tensor_methods.c
value tensor_attr(interp *it, value t, sym id);  // V_UNDEF when it has none
// ---- isa_call.c
value isa_call_node(interp *it, isa_id op, const ast *e);  // a call expression
value isa_call(interp *it, isa_id op, const args *a);
bool value_op(interp *it, value v, op_id *out);  // operator of an op= argument
value handle_attr(interp *it, value v, sym id);  // of V_INSTR and V_REG
value reg_new(interp *it, bool frozen);
// Adds producers to the dependences that an instruction has.
void isa_add_deps(interp *it, uint32_t consumer, const uint32_t *producers, uint32_t n);
void isa_keep_order(interp *it, uint32_t begin);
flow exec_dynamic_for(interp *it, const ast *s, value range);
flow exec_dynamic_while(interp *it, const ast *s, value reg);
// ---- native.c: the modules _nki, _nki_isa, _nki_ncc, _nki_ctrl, _nki_math
vmodule *native_module(interp *it, const char *dotted);  // NULL: no such module
bool dtype_of_value(interp *it, value v,
                    dtype *out);  // a dtype, or a name of one; false: exception set
value dtype_call(interp *it, dtype d,
                 const args *a);  // nl.float32(x): the number rounded to the type
bool buffer_of_value(interp *it, value v, buffer_kind *out);

#endif
