#ifndef TESTS_RULES_RULES_H
#define TESTS_RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>

// The rules of the chip as text files (docs/testing.md): read by rules_test, which holds
// them, and by tools/gen_docs_rules.c, which writes docs/constraints.md.

enum { RULE_TARGETS = 3, RULE_TEXT = 4096 };

typedef struct rule {
    char topic[48];                 // an instruction, or a subject such as "nl.ndarray"
    char diag[48];                  // the diagnostic that breaking it gives
    char says[200];                 // the rule in words
    bool on[RULE_TARGETS];          // trn1, trn2, trn3
    unsigned grid;                  // 0: launched without
    char body[RULE_TEXT];           // of the kernel, with {breaks|legal} where the two differ
    const char *file;
    unsigned line;
} rule;

typedef struct rules {
    rule *at;
    size_t count, cap;
} rules;

extern const char *const rule_target[RULE_TARGETS];

// Adds the rules of dir/NAME.rules, files in order of name. false: says what is wrong on stderr.
bool rules_read(rules *r, const char *dir);
void rules_free(rules *r);
// Source text of the kernel that breaks the rule (which 0) or of the nearest legal one (1).
// malloc'ed.
char *rule_source(const rule *r, const char *prelude, int which);
// dir/name whole, malloc'ed; NULL when it cannot be read.
char *rules_slurp(const char *dir, const char *name);

#endif
