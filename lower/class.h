#ifndef LOWER_CLASS_H
#define LOWER_CLASS_H

#include "lower/interp.h"

// What class.c, attr.c, dataclass.c and enum.c share; nothing else includes this.

// ---- class.c
vtype class_payload_type(const vclass *c);  // T_OBJECT: none
value class_payload_new(interp *it, vclass *c, const args *a);
vclass *class_native(interp *it, vmodule *m, const char *name, vclass *base);

// ---- attr.c
value class_value(vclass *c);
bool attr_is_descriptor(value v);
value attr_bind(interp *it, value self, value f);
value v_bound_native(interp *it, const char *name, native_fn fn, value self);
value attr_of_class(interp *it, value obj, sym id);
value attr_of_super(interp *it, value obj, sym id);

// ---- dataclass.c
// Collects a class's fields: inherited ones, then its annotations (and, with plain_too, its plain
// class attributes) in the order of the text.
bool dataclass_collect(interp *it, vclass *c, bool plain_too, bool kw_only);
bool dataclass_init(interp *it, vclass *c, value self, const args *a);
int dataclass_equal(interp *it, value a, value b, bool *lt);
value namedtuple_new(interp *it, vclass *c, const args *a);
value namedtuple_make(interp *it, const args *a);
value namedtuple_attr(interp *it, value obj, sym id);
void dataclass_natives(interp *it, vmodule *m);

// ---- enum.c
bool enum_finish(interp *it, vclass *c);
value enum_lookup(interp *it, vclass *c, const args *a);
void enum_natives(interp *it, vmodule *m);

#endif
