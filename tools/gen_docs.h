#ifndef TOOLS_GEN_DOCS_H
#define TOOLS_GEN_DOCS_H

#include "base/text.h"

// Writers of the generated pages. root: the source tree. Each appends a whole page to out.
void write_diagnostics(textbuf *out, const char *root);
void write_constraints(textbuf *out, const char *root);
void write_isa(textbuf *out, const char *root);

// The whole file root/path, zero-terminated; a file that cannot be read ends the program.
char *slurp(arena *mem, const char *root, const char *path);
// The functions of nki.language and what each becomes, as sections of docs/isa.md.
void write_language(textbuf *out, const char *root);

// Names in root/path that end in `suffix`, sorted; count in *n.
char **names_in(arena *mem, const char *root, const char *path, const char *suffix, size_t *n);
// p as a cell of a table: no line ends, '|' escaped.
void text_cell(textbuf *out, const char *p);

#endif
