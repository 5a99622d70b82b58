#ifndef LANG_IR_H
#define LANG_IR_H

#include "base/source.h"
#include "base/text.h"
#include "base/vec.h"
#include "lang/dtype.h"
#include "lang/isa.h"
#include "lang/target.h"

// A specialized kernel: a list of instructions over views of tensors. Everything refers to
// everything else by index, so that the NEFF's sections are these arrays. Index 0 of views, forms,
// aps, dyns, places and strs means "none". docs/ir.md: the text form and the sizes.

enum {
    IR_MAX_DIMS = 8,
    IR_CHIP_DIMS = 5,   // of an access pattern on chip, partitions included
    IR_MAX_LOOPS = 32,  // register loops inside each other
    IR_MAX_SHARED = 1 << 20,
    IR_NONE = 0
};
#define IR_DEPS_END UINT32_MAX  // ends a list in ir->deps

typedef enum buffer_kind { BUF_SBUF, BUF_PSUM, BUF_HBM, BUF_SHARED, BUF_COUNT } buffer_kind;
const char *buffer_name(buffer_kind b);  // "sbuf", "psum", "hbm" (private), "shared_hbm"
static inline bool buffer_on_chip(buffer_kind b)
{
    return b == BUF_SBUF || b == BUF_PSUM;
}

typedef enum tensor_role {
    ROLE_TEMP,   // lives inside the program
    ROLE_ARG,    // a parameter of the kernel (in HBM), read or written in place
    ROLE_OUT,    // allocated by the kernel in shared HBM and returned
    ROLE_CONST,  // loaded with the program
} tensor_role;

#define ADDR_AUTO UINT32_MAX  // never a legal address: those of HBM are multiples of 64

typedef struct ir_tensor {
    uint32_t name;               // str; "" is legal
    uint32_t place;              // where it was allocated
    uint8_t dtype, buffer, role, ndim;
    uint8_t manual;              // the kernel gave the address
    // 1: its lifetime starts as NaN/4. A fill_uninit stands before its first use; but shared HBM in a
    // launch of two programs is filled by the launch, since either program may write it first.
    uint8_t fill;
    uint16_t partitions;         // on chip: shape[0]; HBM: 0
    uint32_t shape[IR_MAX_DIMS];
    uint64_t size_bytes;         // on chip: bytes a partition; HBM: of the whole tensor
    // Set by the kernel (manual) or by sched/place: start partition and byte in each partition;
    // HBM temporaries and constants: addr_bytes is the offset in the program's HBM segment.
    uint32_t addr_part;
    // Shared HBM in a launch of two programs: tensors with one number are the same memory; 0: none.
    uint32_t shared;
    uint64_t addr_bytes;         // ADDR_AUTO: not placed
    uint32_t data;               // ROLE_CONST: offset in ir->blob
    uint32_t param;              // ROLE_ARG: number of the parameter
} ir_tensor;

// One dimension of an access pattern.
typedef struct ir_dim {
    int64_t stride;  // elements of the view's dtype; dimension 0 on chip: partitions
    uint32_t count;
    uint32_t pad;
} ir_dim;

typedef struct ir_ap {  // interned: equal patterns have equal ids
    uint32_t first;     // in ir->dims
    uint32_t ndim;      // on chip at least 1: dimension 0 is the partition dimension
} ir_ap;

typedef enum dyn_kind {
    DYN_NONE,
    DYN_REG,       // offset += register * step
    DYN_SCALAR,    // offset += value of a one-element view * step
    DYN_VECTOR,    // HBM: row i0 starts at offset + index[i0] * step instead of i0 * stride
    DYN_INDIRECT,  // gen4 .indirect: element i of partition p at index[...]; num_elem counts
} dyn_kind;

typedef struct ir_dyn {
    uint8_t kind;       // dyn_kind
    uint8_t partition;  // 1: step counts partitions (on chip, dimension 0)
    uint16_t pad;
    uint32_t src;       // DYN_REG: register; else a view
    int64_t step;       // elements (or partitions)
    uint32_t num_elem;  // DYN_INDIRECT
    uint32_t limit;     // size of the indexed dimension, for messages; 0 unknown
} ir_dyn;

// What of a tensor a view names. Views of many tensors share one.
typedef struct ir_form {  // interned: equal forms have equal ids
    int64_t offset;  // elements of dtype: HBM from the start of the tensor; on chip within a partition
    uint32_t ap;
    uint32_t dyn;    // ir_dyn or IR_NONE
    uint8_t dtype;   // may differ from the tensor's: a bit cast
    uint8_t part;    // on chip: start partition, relative to the tensor's
    uint16_t pad;
    uint32_t pad2;
} ir_form;

// A view as the table holds it.
typedef struct ir_named {
    uint32_t tensor;
    uint32_t form;
} ir_named;

// A view taken apart: ir_view_at and ir_view_ref make it.
typedef struct ir_view {
    uint32_t tensor;
    uint32_t ap;
    int64_t offset;
    uint8_t dtype;
    uint8_t part;
    uint32_t dyn;
} ir_view;

typedef enum ir_arg_kind {
    IRA_NONE,  // an absent optional parameter
    IRA_VIEW,  // v: view
    IRA_F32,   // v: bits of the fp32
    IRA_INT,   // v: low 32 bits; aux: 0 or -1, the upper bits
    IRA_BOOL,  // v: 0 or 1
    IRA_ENUM,  // v: value; the enum is the parameter's
    IRA_OP,    // v: op_id
    IRA_REG,   // v: register
    IRA_LIST,  // v: first element in ir->args; aux: count
    IRA_STR,   // v: str
} ir_arg_kind;

typedef struct ir_arg {
    uint8_t kind;
    uint8_t pad;
    int16_t aux;
    uint32_t v;
} ir_arg;

typedef struct ir_instr {
    uint16_t op;      // isa_id
    uint8_t engine;   // engine_id
    uint8_t nargs;    // = isa_table[op].nparams
    uint32_t args;    // first, in ir->args; in the order of the table's parameters
    uint32_t place;
    uint32_t name;    // str or IR_NONE
    uint32_t deps;    // user dependences: first in ir->deps, a list that ends with IR_DEPS_END; or IR_NONE
} ir_instr;

// Where an instruction comes from: a trie with parent pointers, root 0.
typedef enum place_kind {
    PLACE_ROOT,
    PLACE_SITE,  // file, lo, hi: source range; parent: the context it ran in
    PLACE_CALL,  // file, lo, hi: the call; what: str, the callee's name; parent: the caller's context
    PLACE_ITER,  // what: str, the loop variable; lo/hi: low and high half of its int64 value
} place_kind;

typedef struct ir_place {
    uint8_t kind;
    uint8_t pad[3];
    uint32_t parent;
    uint32_t what;
    uint32_t file;  // in ir->files
    uint32_t lo, hi;
} ir_place;

typedef struct ir_file {
    uint32_t name;      // str: relative to its import root
    const source *src;  // NULL when the program came from a file
} ir_file;

typedef struct ir_param {
    uint32_t name;    // str
    uint32_t tensor;  // ROLE_ARG tensor
} ir_param;

typedef struct ir {
    arena *mem;
    const target *target;
    uint32_t kernel;  // str
    uint32_t grid;    // programs in the launch: 1 or 2
    uint32_t core;    // which of them this is
    uint32_t registers;  // virtual registers used; ids 0 .. registers-1
    bool fp32_store;  // low-precision tensors hold fp32 (--precise-fp=off)
    VEC(ir_instr) instrs;
    VEC(ir_arg) args;
    VEC(ir_named) views;
    VEC(ir_form) forms;
    VEC(ir_ap) aps;
    VEC(ir_dim) dims;
    VEC(ir_dyn) dyns;
    VEC(ir_tensor) tensors;
    VEC(ir_place) places;
    VEC(ir_file) files;
    VEC(const char *) strs;
    VEC(uint32_t) deps;
    VEC(ir_param) params;
    VEC(uint32_t) outputs;  // views returned, in order
    VEC(uint8_t) blob;      // contents of ROLE_CONST tensors, 64-byte aligned each
    struct ir_intern *intern;  // of aps, forms, strs; NULL in a loaded program
} ir;

// ---- building (ir_build.c)

ir *ir_new(arena *mem, const target *t);
uint32_t ir_str(ir *p, const char *text, size_t len);  // interned
uint32_t ir_ap_of(ir *p, const ir_dim *dims, uint32_t ndim);  // interned
uint32_t ir_view_add(ir *p, ir_view v);  // its form is interned, the view is not
uint32_t ir_dyn_add(ir *p, ir_dyn d);
uint32_t ir_tensor_add(ir *p, ir_tensor t);
uint32_t ir_place_add(ir *p, ir_place pl);
uint32_t ir_file_add(ir *p, const char *name, const source *src);
// Appends args and the instruction; args has isa_table[op].nparams members. Returns its index.
uint32_t ir_emit(ir *p, isa_id op, engine_id engine, const ir_arg *args, uint32_t place, uint32_t nm);
uint32_t ir_list(ir *p, const ir_arg *args, uint32_t n);  // for IRA_LIST's v
ir_view ir_view_whole(ir *p, uint32_t tensor);  // row-major, all of it

static inline ir_arg ira_none(void)
{
    return (ir_arg){IRA_NONE, 0, 0, 0};
}
static inline ir_arg ira_view(uint32_t v)
{
    return (ir_arg){IRA_VIEW, 0, 0, v};
}
ir_arg ira_f32(float f);
ir_arg ira_int(int64_t v);  // -2^32 .. 2^32-1
static inline ir_arg ira_kind(ir_arg_kind k, uint32_t v)
{
    return (ir_arg){(uint8_t)k, 0, 0, v};
}
float ira_float(ir_arg a);      // of IRA_F32
int64_t ira_integer(ir_arg a);  // of IRA_INT, IRA_BOOL, IRA_ENUM

// ---- reading

static inline ir_view ir_view_at(const ir *p, uint32_t view)
{
    const ir_named *n = &p->views.at[view];
    const ir_form *f = &p->forms.at[n->form];
    return (ir_view){n->tensor, f->ap, f->offset, f->dtype, f->part, f->dyn};
}
// The same as a const ir_view *, good to the end of the block.
#define ir_view_ref(p, view) ((const ir_view[]){ir_view_at((p), (view))})
static inline const ir_dim *ir_dims(const ir *p, const ir_view *v)
{
    return &p->dims.at[p->aps.at[v->ap].first];
}
static inline uint32_t ir_ndim(const ir *p, const ir_view *v)
{
    return p->aps.at[v->ap].ndim;
}
uint32_t ir_partitions(const ir *p, const ir_view *v);  // count of dimension 0 (on chip)
uint64_t ir_free_elems(const ir *p, const ir_view *v);  // product of the other counts
uint64_t ir_elems(const ir *p, const ir_view *v);       // product of all counts
static inline const char *ir_text(const ir *p, uint32_t str)
{
    return p->strs.at[str];
}

// ---- text form (ir_print.c, ir_parse.c), checks (ir_verify.c)

void ir_print(const ir *p, textbuf *out);
void ir_print_instr(const ir *p, uint32_t instr, textbuf *out);  // without place and line end
// Parses what ir_print writes. On failure returns NULL and a sentence with line number in *err
// (in mem).
ir *ir_parse(arena *mem, const char *s, size_t len, const char **err);
// Everything in range, kinds as in the table, views within their tensors, loops closed, registers
// defined. NULL when sound, else a sentence in mem. Run after every pass in debug builds, and on
// every loaded program (a hostile one must not get past it).
const char *ir_verify(const ir *p, arena *mem);

#endif
