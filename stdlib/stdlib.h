#ifndef STDLIB_STDLIB_H
#define STDLIB_STDLIB_H

#include <stddef.h>

// A module that kernels can import, written in the kernel language, embedded at build from
// stdlib/modules/ (nki/language.nki is nki.language; a folder's __init__.nki is the folder).
typedef struct stdlib_module {
    const char *name;  // "nki.language"
    const char *path;  // "<stdlib>/nki/language.nki"
    const char *text;  // zero-terminated
    size_t len;
    int is_package;
} stdlib_module;

// NULL when there is none. The module "_nki" holds the specializer's own functions and is not here.
const stdlib_module *stdlib_find(const char *dotted);
const stdlib_module *stdlib_at(size_t i);  // all, in name order; NULL past the end

// The op library: kernels of stdlib/ops/, by file name ("softmax").
const stdlib_module *stdlib_op_find(const char *name);
const stdlib_module *stdlib_op_at(size_t i);

#endif
