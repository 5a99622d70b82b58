#include "cli/debug.h"

#include <stdlib.h>
#include <string.h>

// Whether a source is meant by what was typed: its whole name, or the end of it behind a slash.
static bool names_file(const char *source, const char *typed)
{
    size_t n = strlen(source), m = strlen(typed);
    return n >= m && strcmp(source + n - m, typed) == 0 &&
           (n == m || source[n - m - 1] == '/' || typed[0] == '/');
}

static const char *source_name(void *ctx, size_t i)
{
    const debugger *const *d = ctx;
    const char *name, *text;
    size_t len;
    return nki_tool_source((*d)->k, i, &name, &text, &len) == NKI_OK ? name : NULL;
}

static const char *find_file(const debugger *d, const char *typed)
{
    const char *name;
    for (size_t i = 0; (name = source_name(&d, i)); i++) {
        if (names_file(name, typed) || names_file(typed, name)) {
            return name;
        }
    }
    return NULL;
}

static const char *own_file(const debugger *d)
{
    nki_frame f;
    size_t depth = 0;
    const char *file = NULL;
    while (nki_tool_instr_count(d->k, 0) &&
           nki_tool_instr_frame(d->k, 0, 0, depth++, &f) == NKI_OK) {
        file = f.file;
    }
    return file ? file : source_name(&d, 0);
}

// Fills in l->depth; *next: the nearest line behind l->line that has instructions, 0: none.
static bool mark(const debugger *d, location *l, size_t *found, size_t *next)
{
    *found = *next = 0;
    for (uint32_t c = 0; c < d->cores; c++) {
        size_t n = nki_tool_instr_count(d->k, c);
        l->depth[c] = calloc(n + 1, 1);
        if (!l->depth[c]) {
            return false;
        }
        for (size_t i = 0; i < n; i++) {
            nki_frame f;
            for (size_t depth = 0;
                 depth < UINT8_MAX && nki_tool_instr_frame(d->k, c, i, depth, &f) == NKI_OK;
                 depth++) {
                if (strcmp(f.file, l->file) != 0) {
                    continue;
                }
                if (f.line == l->line) {
                    l->depth[c][i] = (uint8_t)(depth + 1);
                    ++*found;
                } else if (f.line > l->line && (!*next || f.line < *next)) {
                    *next = f.line;
                }
            }
        }
    }
    return true;
}

void location_free(location *l)
{
    for (uint32_t c = 0; c < CORES_MAX; c++) {
        free(l->depth[c]);
        l->depth[c] = NULL;
    }
}

static bool unknown_file(const debugger *d, const char *typed, char *why, size_t room)
{
    const char *near = closest_name(typed, source_name, &d), *name;
    size_t n = (size_t)snprintf(why, room, "the kernel has no source '%s'", typed);
    if (near && n < room) {
        snprintf(why + n, room - n, "; did you mean %s?", near);
        return false;
    }
    for (size_t i = 0; (name = source_name(&d, i)) && n < room; i++) {
        n += (size_t)snprintf(why + n, room - n, "%s%s", i ? ", " : "; it has ", name);
    }
    return false;
}

bool location_find(const debugger *d, const char *text, location *out, char *why, size_t room)
{
    *out = (location){.line = 0};
    const char *colon = strrchr(text, ':'), *number = colon ? colon + 1 : text;
    char *end, typed[256];
    unsigned long line = strtoul(number, &end, 10);
    if (end == number || *end || *number == '-' || line == 0) {
        snprintf(why, room, "'%s' should be FILE:LINE", text);
        return false;
    }
    snprintf(typed, sizeof typed, "%.*s", colon ? (int)(colon - text) : 0, text);
    const char *file = colon ? find_file(d, typed) : own_file(d);
    if (!file) {
        return unknown_file(d, typed, why, room);
    }
    size_t found = 0, next = 0;
    snprintf(out->file, sizeof out->file, "%s", file);
    out->line = line;
    if (!mark(d, out, &found, &next)) {
        snprintf(why, room, "out of memory");
    } else if (!found && next) {
        snprintf(why, room, "%s:%lu has no instructions; the next line that has is %s:%zu", file,
                 line, file, next);
    } else if (!found) {
        snprintf(why, room, "%s:%lu has no instructions, nor has a line below", file, line);
    }
    if (!found) {
        location_free(out);
    }
    return found > 0;
}

bool location_reached(debugger *d, location *l, uint32_t core, size_t instr)
{
    uint8_t depth = l->depth[core][instr];
    bool again = l->last[core].on && instr > l->last[core].instr;
    uint64_t context = 0;
    if (depth) {
        nki_frame f;
        nki_tool_instr_frame(d->k, core, instr, depth - 1u, &f);
        context = f.context;
    }
    bool reached = depth && !(again && context == l->last[core].context);
    l->last[core].on = depth != 0;
    l->last[core].instr = instr;
    l->last[core].context = context;
    return reached;
}
