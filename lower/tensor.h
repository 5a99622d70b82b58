#ifndef LOWER_TENSOR_H
#define LOWER_TENSOR_H

#include "lower/interp.h"

// What tensor.c, tensor_methods.c and tensor_shape.c share; nothing else includes this.

typedef struct index_state {
    vtensor *n;   // result
    uint32_t nd;  // dimensions of it so far
} index_state;

// ---- tensor.c
const char *tensor_dims_text(interp *it, const uint32_t *shape, uint32_t n);  // "[128, 512]"
bool tensor_on_chip(const vtensor *t);
vtensor *tensor_derive(interp *it, const vtensor *t);  // a copy, to become another view
value tensor_wrap(vtensor *t);
uint64_t tensor_count(const vtensor *t);  // elements of the view
// Static part of a view stays inside its storage (and, on chip, its row).
bool tensor_in_bounds(interp *it, const vtensor *t);
value tensor_bad_index(interp *it, const vtensor *t, uint32_t d, int64_t i);
bool tensor_dyn(interp *it, value src, int64_t step, const vtensor *t, uint32_t limit,
                dyn_kind vector, uint32_t *out);
bool tensor_index_slice(interp *it, const vtensor *t, uint32_t d, int64_t a, int64_t b, int64_t c,
                        index_state *s);

// ---- tensor_methods.c: arguments of methods, and the method that others use
vtensor *tensor_self(interp *it);
bool tensor_int_list(interp *it, value v, int64_t *out, uint32_t *n, const char *what);
bool tensor_dim(interp *it, const vtensor *t, value v, uint32_t extra, uint32_t *out);
value tensor_invalid(interp *it, const char *text);
void tensor_drop_dim(vtensor *n, uint32_t d);
void tensor_insert_dim(vtensor *n, uint32_t d, uint32_t size, int64_t stride);
value tensor_permute(interp *it, const args *a);

// ---- tensor_shape.c: methods
value tensor_reshape(interp *it, const args *a);
value tensor_reshape_dim(interp *it, const args *a);
value tensor_flatten_dims(interp *it, const args *a);
value tensor_rearrange(interp *it, const args *a);

#endif
