#ifndef PARSER_SLIPS_H
#define PARSER_SLIPS_H

#include "parser/lexer.h"

// Where the grammar stopped. The token itself is lx->now.
typedef struct slip {
    const char *token;  // its name
    span at;
    const char *const *wanted;  // names of what could have come; 0 when the list is long
    int nwanted;
    bool wants_block;
} slip;

// One message for a syntax error: the mistake that people usually make there, or what was
// found and what was expected. Silent when the lexer has already said it.
void slip_report(lexer *lx, const slip *s);

#endif
