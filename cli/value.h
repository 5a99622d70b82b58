#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "cli/cli.h"

// One VALUE of the command line, ready to be an argument.
typedef struct value {
    char *name;  // NULL: binds in order
    enum { VALUE_EXPR, VALUE_SPEC, VALUE_TENSOR } kind;
    const char *expr;      // VALUE_EXPR: as written
    nki_tensor_info spec;  // VALUE_SPEC: shape and type without data
    nki_tensor *tensor;    // VALUE_TENSOR
} value;

typedef struct value_list {
    value *at;
    size_t count;
    nki_arg *args;  // the same, for the library
} value_list;

// Parses the words. data: false makes shapes of generated tensors and keeps files' contents unread
// where that is possible. Returns an exit status after a message.
int values_parse(session *s, char **words, size_t n, bool data, value_list *out);
void values_free(value_list *v);

#endif
