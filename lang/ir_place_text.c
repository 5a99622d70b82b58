#include "lang/place.h"

#include <inttypes.h>

enum { CHAIN_HEAD = 16, CHAIN_TAIL = 8 };

static loc range_of(const ir *p, const ir_place *pl)
{
    const source *src = pl->file < p->files.n ? p->files.at[pl->file].src : NULL;
    if (!src) {
        return (loc){0};
    }
    uint32_t hi = pl->hi <= src->len ? pl->hi : src->len;
    return (loc){src, {pl->lo <= hi ? pl->lo : hi, hi}};
}

loc ir_place_loc(const ir *p, uint32_t place)
{
    while (place) {
        const ir_place *pl = &p->places.at[place];
        if (pl->kind == PLACE_SITE || pl->kind == PLACE_CALL) {
            return range_of(p, pl);
        }
        place = pl->parent;
    }
    return (loc){0};
}

// The function in whose body a place with this parent lies.
static const char *function_around(const ir *p, uint32_t place)
{
    for (; place; place = p->places.at[place].parent) {
        if (p->places.at[place].kind == PLACE_CALL) {
            return ir_text(p, p->places.at[place].what);
        }
    }
    return ir_text(p, p->kernel);
}

static bool in_chain(const ir_place *pl)
{
    return pl->kind == PLACE_CALL || pl->kind == PLACE_ITER;
}

void ir_place_notes(const ir *p, uint32_t place, diags *ds, diag *d)
{
    // The range printed with the message itself is not repeated as a note.
    while (place && p->places.at[place].kind == PLACE_ROOT) {
        place = p->places.at[place].parent;
    }
    if (place && p->places.at[place].kind == PLACE_SITE) {
        place = p->places.at[place].parent;
    }
    uint32_t n = 0;
    for (uint32_t at = place; at; at = p->places.at[at].parent) {
        n += in_chain(&p->places.at[at]);
    }
    uint32_t k = 0;
    for (uint32_t at = place; at; at = p->places.at[at].parent) {
        const ir_place *pl = &p->places.at[at];
        if (!in_chain(pl)) {
            continue;
        }
        bool shown = n <= CHAIN_HEAD + CHAIN_TAIL || k < CHAIN_HEAD || k >= n - CHAIN_TAIL;
        if (k == CHAIN_HEAD && !shown) {
            diag_note_add(ds, d, (loc){0}, "... %" PRIu32 " more ...", n - CHAIN_HEAD - CHAIN_TAIL);
        }
        k++;
        if (!shown) {
            continue;
        }
        if (pl->kind == PLACE_CALL) {
            diag_note_add(ds, d, range_of(p, pl), "called from `%s`",
                          function_around(p, pl->parent));
        } else {
            int64_t v = (int64_t)((uint64_t)pl->hi << 32 | pl->lo);
            diag_note_add(ds, d, (loc){0}, "with %s = %" PRId64, ir_text(p, pl->what), v);
        }
    }
}

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// The name before `=` that ends at `at`, on one line: "x = ", "f(x=".
static const char *assigned_name(const source *src, uint32_t at, arena *mem)
{
    const char *text = src->text;
    while (at && text[at - 1] == ' ') {
        at--;
    }
    if (!at || text[at - 1] != '=') {
        return "";
    }
    for (at--; at && text[at - 1] == ' '; at--) {
    }
    uint32_t hi = at;
    while (at && is_word(text[at - 1])) {
        at--;
    }
    return arena_text(mem, text + at, hi - at);
}

const char *ir_tensor_called(const ir *p, uint32_t tensor, arena *mem)
{
    const ir_tensor *t = &p->tensors.at[tensor];
    loc at = ir_place_loc(p, t->place);
    const char *name = ir_text(p, t->name);
    return *name || !at.src ? name : assigned_name(at.src, at.at.lo, mem);
}
