#include "cli/table.h"

#include <ctype.h>
#include <string.h>

const command *const command_table[COMMAND_COUNT] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
};

#define C(name)  (UINT32_C(1) << CMD_##name)
#define COMPILES (C(check) | C(run) | C(compile) | C(diff) | C(profile) | C(bindgen))
#define ALL      ((UINT32_C(1) << COMMAND_COUNT) - 1)

const option_row option_table[OPTION_COUNT] = {
#define GROUP(heading)
#define OPTION(id, name, takes, value, commands, text)                                             \
    [OPT_##id] = {name, value, text, TAKES_##takes, commands},
#include "cli/options.def"
#undef GROUP
#undef OPTION
};

const option_line option_lines[] = {
#define GROUP(heading)                                 {heading, OPTION_COUNT},
#define OPTION(id, name, takes, value, commands, text) {NULL, OPT_##id},
#include "cli/options.def"
#undef GROUP
#undef OPTION
};
const size_t option_line_count = sizeof option_lines / sizeof *option_lines;

const command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(command_table[i]->name, name) == 0) {
            return command_table[i];
        }
    }
    return NULL;
}

bool option_taken(option_id id, const command *c)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (command_table[i] == c) {
            return option_table[id].commands >> i & 1;
        }
    }
    return false;
}

void option_spelling(option_id id, char *buf, size_t cap)
{
    const option_row *r = &option_table[id];
    bool is_long = r->name[1] == '-', words = islower((unsigned char)*r->value);
    switch (r->takes) {
    case TAKES_NONE: snprintf(buf, cap, "%s", r->name); break;
    case TAKES_VALUE:
        snprintf(buf, cap, "%s%s%s", r->name, is_long && words ? "=" : " ", r->value);
        break;
    case TAKES_MAYBE: snprintf(buf, cap, "%s[=%s]", r->name, r->value); break;
    case TAKES_GLUED: snprintf(buf, cap, "%s%s", r->name, r->value); break;
    }
}

bool value_word(const char *value, size_t i, const char **word, size_t *len)
{
    if (!islower((unsigned char)*value)) {
        return false;
    }
    for (; *value; value += value[*len] == '|' ? *len + 1 : *len) {
        *len = strcspn(value, "|");
        if (i-- == 0) {
            *word = value;
            return true;
        }
    }
    return false;
}

// Edit distance, for names up to 63 bytes.
static size_t distance(const char *a, const char *b)
{
    size_t row[64], n = strlen(b);
    if (n > 63 || strlen(a) > 63) {
        return 64;
    }
    for (size_t j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i]; i++) {
        size_t diag = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diag + (a[i] != b[j]);
            diag = row[j + 1];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j + 1] = row[j + 1] + 1 < best ? row[j + 1] + 1 : best;
        }
    }
    return row[n];
}

const char *closest_name(const char *word, const char *(*next)(void *ctx, size_t i), void *ctx)
{
    const char *name;
    size_t letters = strlen(word + strspn(word, "-")), best = 0;
    size_t limit = letters < 6 ? 2 : letters / 3 + 1, least = limit;  // the first that is too far
    for (size_t i = 0; (name = next(ctx, i)); i++) {
        size_t d = distance(word, name);
        if (d < least) {
            least = d;
            best = i;
        }
    }
    return least < limit ? next(ctx, best) : NULL;
}
