#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "cli/cli.h"

#include <stdio.h>

// The tables of commands and options (commands.def, options.def), which parsing, help, the manual
// page and completion are made from.

typedef enum command_id {
#define COMMAND(name) CMD_##name,
#include "cli/commands.def"
#undef COMMAND
    COMMAND_COUNT
} command_id;

typedef enum option_id {
#define GROUP(heading)
#define OPTION(id, name, takes, value, commands, text) OPT_##id,
#include "cli/options.def"
#undef GROUP
#undef OPTION
    OPTION_COUNT
} option_id;

typedef enum option_takes {
    TAKES_NONE,
    TAKES_VALUE,  // --name VALUE, --name=VALUE, -nVALUE
    TAKES_MAYBE,  // --name, --name=VALUE
    TAKES_GLUED,  // -nVALUE
} option_takes;

typedef struct option_row {
    const char *name, *value, *text;
    option_takes takes;
    uint32_t commands;  // bit CMD_x: that command takes it
} option_row;

// A heading, or an option below it (heading NULL), in the order of the table.
typedef struct option_line {
    const char *heading;
    option_id id;
} option_line;

extern const option_row option_table[OPTION_COUNT];
extern const option_line option_lines[];
extern const size_t option_line_count;
extern const command *const command_table[COMMAND_COUNT];

// NULL: there is none of that name.
const command *command_find(const char *name);
bool option_taken(option_id id, const command *c);
// The option as help spells it: "--dump=ast|ir", "-o FILE", "-W...".
void option_spelling(option_id id, char *buf, size_t cap);

// How a form offers or checks the words of a value "a|b|c": word i, or false beyond the last.
// FILE, DIR and other values in capitals have no words.
bool value_word(const char *value, size_t i, const char **word, size_t *len);

// ---- what is made from them

void help_all(FILE *to);
void help_command(FILE *to, const command *c);
void manual_print(FILE *to);  // mdoc
void completion_bash(FILE *to);
void completion_zsh(FILE *to);

// ---- names

// The closest of the names that next gives (NULL ends them; i counts from 0), or NULL when none is
// close enough to be meant.
const char *closest_name(const char *word, const char *(*next)(void *ctx, size_t i), void *ctx);

#endif
