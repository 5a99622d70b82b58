#include "tests/ops/expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Cuts the next blank-separated word off *at. Returns "" at the end.
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " ");
    char *end = word + strcspn(word, " ");
    *at = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

// "[2,3]" -> rank and dims.
static bool parse_shape(const char *text, size_t *rank, size_t *dims)
{
    *rank = 0;
    if (*text != '[') {
        return false;
    }
    const char *p = text + 1;
    while (*p && *p != ']' && *rank < TENSOR_RANK_MAX) {
        char *end;
        dims[(*rank)++] = (size_t)strtoull(p, &end, 10);
        if (end == p) {
            return false;
        }
        p = *end == ',' ? end + 1 : end;
    }
    return strcmp(p, "]") == 0;
}

// "DTYPE [dims] {rtol R atol A}: v v v"
static bool parse_tensor(char *text, struct expect_item *item)
{
    char *values = strchr(text, ':');
    if (!values) {
        return false;
    }
    *values++ = '\0';
    char *head = text;
    const char *dtype = next_word(&head);
    size_t rank;
    size_t dims[TENSOR_RANK_MAX];
    if (!parse_shape(next_word(&head), &rank, dims)) {
        return false;
    }
    if (strcmp(next_word(&head), "rtol") == 0) {
        item->tolerance.rtol = strtod(next_word(&head), NULL);
        (void)next_word(&head);
        item->tolerance.atol = strtod(next_word(&head), NULL);
    }
    item->tensor = tensor_make(dtype, rank, dims);
    char *p = values;
    for (size_t i = 0; i < item->tensor.count; i++) {
        char *end;
        double v = strtod(p, &end);
        if (end == p) {
            return false;
        }
        // What is written is the shortest text of a float32, or an integer: the nearest float32 is
        // the value.
        bool is_integer = strchr("iu", dtype[0]) != NULL;
        item->tensor.values[i] = is_integer ? v : (double)(float)v;
        p = end;
    }
    return p[strspn(p, " ")] == '\0';
}

static bool parse_line(char *line, struct expect *e)
{
    char *rest = line;
    const char *word = next_word(&rest);
    if (*word == '\0' || *word == '#') {
        return true;
    }
    if (strcmp(word, "target") == 0) {
        (void)snprintf(e->target, sizeof e->target, "%s", next_word(&rest));
        return e->target[0] != '\0';
    }
    if (strcmp(word, "grid") == 0) {
        (void)snprintf(e->grid, sizeof e->grid, "%s", next_word(&rest));
        return e->grid[0] != '\0';
    }
    bool is_arg = strcmp(word, "arg") == 0;
    size_t *count = is_arg ? &e->arg_count : &e->out_count;
    if (*count == EXPECT_ITEMS_MAX) {
        return false;
    }
    struct expect_item *item = is_arg ? &e->args[*count] : &e->outs[*count];
    (*count)++;
    (void)snprintf(item->name, sizeof item->name, "%s", is_arg ? next_word(&rest) : word);
    if (is_arg && strncmp(rest, "= ", 2) == 0) {
        (void)snprintf(item->literal, sizeof item->literal, "%s", rest + 2);
        return true;
    }
    return parse_tensor(rest, item);
}

bool expect_read(const char *path, struct expect *e, char *why, size_t why_bytes)
{
    *e = (struct expect){.arg_count = 0};
    FILE *f = fopen(path, "r");
    if (!f) {
        (void)snprintf(why, why_bytes, "%s: cannot be opened", path);
        return false;
    }
    char *line = NULL;
    size_t room = 0;
    size_t number = 0;
    bool ok = true;
    while (ok && getline(&line, &room, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        number++;
        ok = parse_line(line, e);
    }
    free(line);
    (void)fclose(f);
    if (!ok) {
        (void)snprintf(why, why_bytes, "%s:%zu: not a line of an expectation", path, number);
    } else if (e->out_count == 0) {
        (void)snprintf(why, why_bytes, "%s: expects nothing", path);
        ok = false;
    }
    return ok;
}

void expect_free(struct expect *e)
{
    for (size_t i = 0; i < e->arg_count; i++) {
        tensor_free(&e->args[i].tensor);
    }
    for (size_t i = 0; i < e->out_count; i++) {
        tensor_free(&e->outs[i].tensor);
    }
}
