#ifndef LOWER_VALUE_H
#define LOWER_VALUE_H

#include "base/intern.h"
#include "lang/ast.h"
#include "lang/diag.h"
#include "lang/ir.h"

// Values of the kernel's meta-language. Scalars are held in place; everything else is a pointer
// into the compile's arena, shared by reference as in Python, and never freed alone.
typedef enum vtag {
    V_UNDEF,  // an unbound variable; never visible to a program
    V_ERROR,  // an exception is pending in the interpreter
    V_NONE,
    V_BOOL,
    V_INT,
    V_FLOAT,
    V_ELLIPSIS,
    V_NOTIMPLEMENTED,
    V_STR,
    V_BYTES,
    V_TUPLE,
    V_LIST,
    V_DICT,
    V_SET,
    V_RANGE,
    V_SLICE,
    V_ITER,
    V_FUNC,            // a function of the program
    V_METHOD,          // a callable with its receiver
    V_NATIVE,          // a function of ours
    V_BUILTIN_METHOD,  // list.append of one list
    V_CLASS,
    V_OBJ,    // an instance of a class of the program (or of stdlib)
    V_DESCR,  // staticmethod, classmethod, property
    V_SUPER,
    V_MODULE,
    V_OPAQUE,  // from a package that is not here: an error when used
    V_TYPE,    // int, str, list ... as a value
    V_DTYPE,
    V_BUFFER,
    V_OP,   // an operator without a function (bypass)
    V_ISA,  // an instruction as a function
    V_TENSOR,
    V_REG,
    V_INSTR,     // handle of an emitted instruction
    V_DS,        // nl.ds(start, size)
    V_DYNRANGE,  // nl.dynamic_range
} vtag;

typedef struct value value;
typedef struct interp interp;

struct value {
    uint8_t tag;
    union {
        bool b;
        int64_t i;  // INT; TYPE (a vtype), DTYPE, BUFFER, OP, ISA, REG, INSTR hold an id here
        double d;
        void *p;
        struct vstr *str;
        struct vtuple *tuple;
        struct vlist *list;
        struct vdict *dict;  // DICT and SET
        struct vrange *range;
        struct vslice *slice;
        struct viter *iter;
        struct vfunc *func;
        struct vmethod *method;
        const struct vnative *native;
        struct vclass *cls;
        struct vobj *obj;
        struct vdescr *descr;
        struct vsuper *super;
        struct vmodule *module;
        struct vopaque *opaque;
        struct vtensor *tensor;
        struct vreg *reg;
        struct vds *ds;
    } u;
};

typedef struct vstr {
    uint32_t len;    // bytes of UTF-8
    uint32_t chars;  // code points; = len: ASCII
    const char *p;   // zero-terminated
} vstr;

typedef struct vtuple {
    struct vclass *cls;  // a named tuple's class, or NULL
    uint32_t n;
    value at[];
} vtuple;

typedef struct vlist {
    value *at;
    uint32_t n, cap;
} vlist;

typedef struct dict_entry {
    uint32_t hash;
    value key;  // V_UNDEF: deleted
    value val;
} dict_entry;

// Insertion-ordered hash table; a set is one whose values are None.
typedef struct vdict {
    dict_entry *at;
    uint32_t n, cap;  // entries used, deleted ones included
    uint32_t live;
    uint32_t *slot;  // power of two; entry + 1, 0 free; NULL while n <= 8
    uint32_t slots;
    uint32_t settled;    // a set: entries whose order is CPython's
    value dflt;          // defaultdict's factory, else V_UNDEF
    struct vclass *cls;  // a subclass instance's class (OrderedDict ...), or NULL
} vdict;

typedef struct vrange {
    int64_t start, stop, step;
} vrange;

typedef struct vslice {
    value start, stop, step;
} vslice;

// Attributes of instances, classes and modules, in order of definition.
typedef struct attr {
    sym id;
    value val;
} attr;

typedef struct attrs {
    attr *at;
    uint32_t n, cap;
    uint32_t *slot;  // made when n > 8
    uint32_t slots;
} attrs;

typedef struct cell {
    value v;
} cell;

typedef struct vfunc {
    const ast *def;          // DEF or LAMBDA
    struct unit *unit;       // resolved code
    struct vmodule *module;  // globals
    cell **free;             // captured variables
    value *defaults;         // one a parameter; V_UNDEF: none
    sym id;
    struct vclass *owner;  // class whose body defined it, for super()
    int op;                // op_id, or -1: nl operators are functions too
    attrs attrs;           // f.x = ...
    uint8_t jit;           // decorated with nki.jit
    const struct vschedule *schedule;  // what with_schedule() gave; NULL: nothing
} vfunc;

// The edges of one call of with_schedule().
typedef struct vschedule {
    const struct vschedule *before;  // of an earlier call
    const struct vtuple *edges;      // pairs: a name, a name or a list of them
    loc at;
} vschedule;

typedef struct vmethod {
    value self, fn;
} vmethod;

// Arguments of a native call. Keyword names follow the positional values.
typedef struct args {
    value *at;
    uint32_t n;    // positional
    uint32_t nkw;  // keyword values at at[n .. n+nkw)
    const sym *kw;
} args;

typedef value (*native_fn)(interp *it, const args *a);

typedef struct vnative {
    const char *name;
    native_fn fn;
    value self;  // bound receiver or V_UNDEF
} vnative;

typedef struct vfield {  // of a dataclass, an NKIObject or a named tuple
    sym id;
    value dflt;     // V_UNDEF: required
    value factory;  // V_UNDEF: none
    bool init, repr, compare, kw_only;
} vfield;

typedef struct vclass {
    sym id;
    const char *qual;  // "f.<locals>.C"; NULL: as id
    struct vmodule *module;
    struct vclass **mro;  // this class first
    uint32_t nmro;
    struct vclass **bases;
    uint32_t nbases;
    attrs attrs;
    vfield *fields;  // auto __init__ when has_fields
    uint32_t nfields;
    bool has_fields, is_dataclass, frozen, eq, order, is_enum, is_exception, is_namedtuple,
        is_nkiobject;
    bool is_int_enum, is_flag, no_repr, unsafe_hash, is_dict, is_list, is_str, is_int, is_tuple,
        is_set, is_float;
    value enum_members;                                                // list, in order
    value (*native_new)(interp *it, struct vclass *c, const args *a);  // or NULL
} vclass;

typedef struct vobj {
    vclass *cls;
    attrs attrs;
    diag *diag;               // exceptions raised by a check: what it will be reported as
    value base;               // payload of a subclass of dict/list/str/int; V_UNDEF
    struct exc_trace *trace;  // exceptions: where raised
} vobj;

typedef enum descr_kind { DESCR_STATIC, DESCR_CLASS, DESCR_PROPERTY, DESCR_CACHED } descr_kind;
typedef struct vdescr {
    descr_kind kind;
    value get, set, del;
} vdescr;

typedef struct vsuper {
    vclass *after;  // look in self's MRO after this class
    value self;
} vsuper;

typedef struct vopaque {
    const char *path;  // "torch.float32"
} vopaque;

typedef struct vtensor {
    uint32_t id;  // in the IR
    uint8_t dtype, buffer, ndim, dyn_dim;
    uint32_t shape[IR_MAX_DIMS];
    int64_t strides[IR_MAX_DIMS];  // elements of dtype, in the flat storage (partition: row)
    int64_t offset;                // elements of dtype
    int64_t row;                   // on chip: elements of dtype a partition holds
    uint32_t dyn;                  // ir_dyn, or IR_NONE
    uint32_t view;                 // ir_view made for it, or IR_NONE
    bool fixed_rows;               // vector_select or vector_offset: dimension 0 is indexed
} vtensor;

typedef struct vreg {
    uint32_t id;
    bool frozen;  // an induction variable
} vreg;

typedef struct vds {
    value start;
    int64_t size;
} vds;

typedef struct vdynrange {
    value lo, hi;
    int64_t step;
} vdynrange;

// Built-in types as values (isinstance, constructors).
typedef enum vtype {
    T_OBJECT,
    T_INT,
    T_FLOAT,
    T_BOOL,
    T_STR,
    T_BYTES,
    T_LIST,
    T_TUPLE,
    T_DICT,
    T_SET,
    T_FROZENSET,
    T_RANGE,
    T_SLICE,
    T_TYPE,
    T_FUNCTION,
    T_NONETYPE,
    T_TENSOR,
    T_REGISTER,
    T_INSTR,
    T_DTYPE,
    T_REGION,
    T_MODULE,
    T_PROPERTY,
    T_STATICMETHOD,
    T_CLASSMETHOD,
    T_SUPER,
    T_ENUMERATE,
    T_ZIP,
    T_MAP,
    T_FILTER,
    T_REVERSED,
    T_ELLIPSIS,
    T_METHOD,
    T_GENERATOR,
    T_COMPLEX,
    T_BUILTIN,
    T_COUNT
} vtype;

#define VTAG(t)    ((value){.tag = (t)})
#define VERR       VTAG(V_ERROR)
#define VNONE      VTAG(V_NONE)
#define VUNDEF     VTAG(V_UNDEF)
#define VBOOL(x)   ((value){.tag = V_BOOL, .u.b = (x)})
#define VINT(x)    ((value){.tag = V_INT, .u.i = (x)})
#define VFLT(x)    ((value){.tag = V_FLOAT, .u.d = (x)})
#define VID(t, x)  ((value){.tag = (t), .u.i = (x)})
#define VPTR(t, x) ((value){.tag = (t), .u.p = (x)})
#define IS_ERR(v)  ((v).tag == V_ERROR)

#endif
