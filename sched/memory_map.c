#include "sched/memory_map.h"

#include "lang/place.h"
#include "sched/live.h"

#include <inttypes.h>

enum { COLUMNS = 72, ROWS = 24 };

// A tensor on chip that some instruction touches.
typedef struct block {
    uint32_t tensor, first, last;
    uint64_t lo, hi;  // bytes of a partition
} block;

typedef struct memory {
    buffer_kind kind;
    const char *name;
    uint32_t limit_bytes, peak_bytes;
    block *at;  // in order of first use, then of address
    uint32_t n;
    uint64_t most_bytes;  // live at one instruction, the same byte of several tensors each time
    uint32_t most_at;
} memory;

static bool before(const block *a, const block *b)
{
    return a->first != b->first ? a->first < b->first : a->lo < b->lo;
}

// Merge sort: stable, and the same order on every machine.
static void sort_blocks(block *at, block *spare, uint32_t n)
{
    for (uint32_t run = 1; run < n; run *= 2) {
        for (uint32_t lo = 0; lo < n; lo += 2 * run) {
            uint32_t mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n;
            uint32_t a = lo, b = mid;
            for (uint32_t k = lo; k < hi; k++) {
                bool left = a < mid && (b >= hi || !before(&at[b], &at[a]));
                spare[k] = at[left ? a++ : b++];
            }
        }
        memcpy(at, spare, n * sizeof *at);
    }
}

static void find_most(arena *mem, memory *m, uint32_t instrs)
{
    int64_t *change = NEW_N(mem, int64_t, (size_t)instrs + 1), now = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        change[m->at[i].first] += (int64_t)(m->at[i].hi - m->at[i].lo);
        change[m->at[i].last + 1] -= (int64_t)(m->at[i].hi - m->at[i].lo);
    }
    for (uint32_t i = 0; i < instrs; i++) {
        now += change[i];
        if ((uint64_t)now > m->most_bytes) {
            m->most_bytes = (uint64_t)now;
            m->most_at = i;
        }
    }
}

static void collect(arena *mem, const program *pr, const liveness *lv, buffer_kind kind, memory *m)
{
    const ir *p = pr->ir;
    bool sbuf = kind == BUF_SBUF;
    *m = (memory){.kind = kind,
                  .name = sbuf ? "SBUF" : "PSUM",
                  .limit_bytes =
                      sbuf ? p->target->sbuf_partition_bytes : p->target->psum_partition_bytes,
                  .peak_bytes = sbuf ? pr->sbuf_peak_bytes : pr->psum_peak_bytes,
                  .at = NEW_N(mem, block, p->tensors.n)};
    for (uint32_t t = 0; t < p->tensors.n; t++) {
        const ir_tensor *ten = &p->tensors.at[t];
        if (ten->buffer == kind && lv->of[t].touched && ten->addr_bytes != ADDR_AUTO) {
            m->at[m->n++] = (block){t, lv->of[t].first, lv->of[t].last, ten->addr_bytes,
                                    ten->addr_bytes + ten->size_bytes};
        }
    }
    sort_blocks(m->at, NEW_N(mem, block, m->n), m->n);
    find_most(mem, m, p->instrs.n);
}

// ---- text

static char letter(uint32_t k)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return letters[k % (sizeof letters - 1)];
}

// Of each cell, the tensor with the largest part of it.
typedef struct cell {
    double area;
    char letter;
} cell;

typedef struct grid {
    uint32_t columns, rows;
    uint64_t instrs_a_column, bytes_a_row;
    cell at[ROWS][COLUMNS];
} grid;

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void paint(grid *g, const block *b, char c)
{
    uint64_t left = b->first, right = (uint64_t)b->last + 1;
    for (uint64_t y = b->lo / g->bytes_a_row; y < g->rows && y * g->bytes_a_row < b->hi; y++) {
        uint64_t lo = most(b->lo, y * g->bytes_a_row), hi = least(b->hi, (y + 1) * g->bytes_a_row);
        for (uint64_t x = left / g->instrs_a_column;
             x < g->columns && x * g->instrs_a_column < right; x++) {
            uint64_t from = most(left, x * g->instrs_a_column);
            uint64_t to = least(right, (x + 1) * g->instrs_a_column);
            double area = (double)(hi - lo) * (double)(to - from);
            cell *at = &g->at[y][x];
            if (area > at->area) {
                *at = (cell){area, c};
            }
        }
    }
}

static void put_grid(const memory *m, uint32_t instrs, grid *g, textbuf *out)
{
    for (uint32_t y = g->rows; y-- > 0;) {
        text_printf(out, "  %8" PRIu64 " |", y * g->bytes_a_row);
        for (uint32_t x = 0; x < g->columns; x++) {
            text_char(out, g->at[y][x].letter ? g->at[y][x].letter : '.');
        }
        text_cstr(out, "|\n");
    }
    text_printf(out,
                "      byte  @0, %" PRIu64 " instruction%s a column, to @%" PRIu32 "; %" PRIu64
                " bytes a row\n",
                g->instrs_a_column, g->instrs_a_column == 1 ? "" : "s", instrs - 1, g->bytes_a_row);
    if (m->n > 52) {
        text_cstr(out, "      letters repeat after 52 tensors\n");
    }
}

static void put_line(const ir *p, uint32_t place, textbuf *out)
{
    loc at = ir_place_loc(p, place);
    if (at.src) {
        text_printf(out, "%s:%" PRIu32, at.src->name, source_locate(at.src, at.at.lo).line);
    }
}

static void put_shape(const ir_tensor *t, textbuf *out)
{
    text_printf(out, "%s[", dtype_name((dtype)t->dtype));
    for (uint32_t k = 0; k < t->ndim; k++) {
        text_printf(out, "%s%" PRIu32, k ? ", " : "", t->shape[k]);
    }
    text_char(out, ']');
}

static void put_memory(const ir *p, const memory *m, textbuf *out)
{
    text_printf(out,
                "%s: %" PRIu32 " of %" PRIu32 " bytes a partition reached, %" PRIu32 " tensor%s",
                m->name, m->peak_bytes, m->limit_bytes, m->n, m->n == 1 ? "" : "s");
    if (!m->n) {
        text_char(out, '\n');
        return;
    }
    text_printf(out, "; most in use: %" PRIu64 " at @%" PRIu32 "\n", m->most_bytes, m->most_at);
    uint32_t instrs = p->instrs.n;
    uint64_t peak = most(m->peak_bytes, 1);
    grid *g = NEW(out->mem, grid);
    g->instrs_a_column = (instrs + COLUMNS - 1) / COLUMNS;
    g->columns = (uint32_t)((instrs + g->instrs_a_column - 1) / g->instrs_a_column);
    g->bytes_a_row = ((peak + ROWS - 1) / ROWS + 63) / 64 * 64;
    g->rows = (uint32_t)((peak + g->bytes_a_row - 1) / g->bytes_a_row);
    for (uint32_t i = 0; i < m->n; i++) {
        paint(g, &m->at[i], letter(i));
    }
    put_grid(m, instrs, g, out);
    for (uint32_t i = 0; i < m->n; i++) {
        const block *b = &m->at[i];
        const ir_tensor *t = &p->tensors.at[b->tensor];
        text_printf(out, "  %c %%%" PRIu32 " %s ", letter(i), b->tensor, ir_text(p, t->name));
        put_shape(t, out);
        text_printf(out,
                    " partitions %" PRIu32 "-%" PRIu32 " bytes %" PRIu64 "-%" PRIu64 " @%" PRIu32
                    "-@%" PRIu32 "%s  ",
                    t->addr_part, t->addr_part + t->partitions - 1, b->lo, b->hi - 1, b->first,
                    b->last, t->manual ? " (address by the kernel)" : "");
        put_line(p, t->place, out);
        text_char(out, '\n');
    }
}

static void collect_both(arena *mem, const program *pr, memory m[2])
{
    access_table acc;
    liveness lv;
    access_table_make(mem, pr->ir, &acc);
    live_compute(mem, pr->ir, &acc, &lv);
    collect(mem, pr, &lv, BUF_SBUF, &m[0]);
    collect(mem, pr, &lv, BUF_PSUM, &m[1]);
}

void memory_map_text(const program *pr, textbuf *out)
{
    memory m[2];
    collect_both(out->mem, pr, m);
    put_memory(pr->ir, &m[0], out);
    put_memory(pr->ir, &m[1], out);
}

// ---- SVG

enum { WIDTH = 1200, LEFT = 70, HEIGHT = 360, GAP = 60, TOP = 40 };

static void put_xml(textbuf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '<') {
            text_cstr(out, "&lt;");
        } else if (c == '>') {
            text_cstr(out, "&gt;");
        } else if (c == '&') {
            text_cstr(out, "&amp;");
        } else if (c == '"') {
            text_cstr(out, "&quot;");
        } else if (c < 0x20 || c == 0x7f) {
            text_char(out, ' ');
        } else {
            text_char(out, *s);
        }
    }
}

// Tenths of a pixel as text, whatever the locale.
static void put_tenths(textbuf *out, const char *name, uint64_t v)
{
    text_printf(out, " %s=\"%" PRIu64 ".%" PRIu64 "\"", name, v / 10, v % 10);
}

static void put_block(const ir *p, const block *b, uint64_t limit, uint32_t top, textbuf *out)
{
    const ir_tensor *t = &p->tensors.at[b->tensor];
    uint64_t n = most(p->instrs.n, 1), wide = (uint64_t)WIDTH * 10, high = (uint64_t)HEIGHT * 10;
    uint64_t x = b->first * wide / n, x2 = ((uint64_t)b->last + 1) * wide / n;
    uint64_t y = least(b->hi, limit) * high / limit, y2 = b->lo * high / limit;
    text_cstr(out, "<rect");
    put_tenths(out, "x", LEFT * 10 + x);
    put_tenths(out, "y", top * 10 + high - y);
    put_tenths(out, "width", most(x2 - x, 1));
    put_tenths(out, "height", most(y - y2, 1));
    text_printf(out, " fill=\"hsl(%" PRIu32 ",60%%,62%%)\"><title>", b->tensor * 137 % 360);
    text_printf(out, "%%%" PRIu32 " ", b->tensor);
    put_xml(out, ir_text(p, t->name));
    text_char(out, ' ');
    put_shape(t, out);
    text_printf(out, ", bytes %" PRIu64 "-%" PRIu64 ", @%" PRIu32 "-@%" PRIu32 ", ", b->lo,
                b->hi - 1, b->first, b->last);
    loc at = ir_place_loc(p, t->place);
    if (at.src) {
        put_xml(out, at.src->name);
        text_printf(out, ":%" PRIu32, source_locate(at.src, at.at.lo).line);
    }
    text_cstr(out, "</title></rect>\n");
}

static void put_chart(const ir *p, const memory *m, uint32_t top, textbuf *out)
{
    // As high as what is reached, so that a small program can be read.
    uint64_t limit = most(m->peak_bytes, 64);
    text_printf(out,
                "<text x=\"%d\" y=\"%u\">%s: %" PRIu32 " of %" PRIu32
                " bytes a partition; most in use %" PRIu64 " at @%" PRIu32 "</text>\n",
                LEFT, top - 8, m->name, m->peak_bytes, m->limit_bytes, m->most_bytes, m->most_at);
    text_printf(out,
                "<rect x=\"%d\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"none\" "
                "stroke=\"#888\"/>\n",
                LEFT, top, WIDTH, HEIGHT);
    for (uint32_t k = 0; k <= 4; k++) {
        text_printf(out, "<text x=\"%d\" y=\"%u\" text-anchor=\"end\">%" PRIu64 "</text>\n",
                    LEFT - 6, top + HEIGHT - HEIGHT / 4 * k + 4, limit * k / 4);
        text_printf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"middle\">@%" PRIu64 "</text>\n",
                    LEFT + WIDTH / 4 * k, top + HEIGHT + 16, (uint64_t)p->instrs.n * k / 4);
    }
    text_cstr(out, "<g stroke=\"#333\" stroke-width=\"0.3\" fill-opacity=\"0.75\">\n");
    for (uint32_t i = 0; i < m->n; i++) {
        put_block(p, &m->at[i], limit, top, out);
    }
    text_cstr(out, "</g>\n");
}

void memory_map_svg(const program *pr, textbuf *out)
{
    memory m[2];
    collect_both(out->mem, pr, m);
    int height = TOP + 2 * (HEIGHT + GAP);
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n<title>",
                LEFT + WIDTH + 30, height);
    put_xml(out, ir_text(pr->ir, pr->ir->kernel));
    text_cstr(out, "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    put_chart(pr->ir, &m[0], TOP, out);
    put_chart(pr->ir, &m[1], TOP + HEIGHT + GAP, out);
    text_cstr(out, "</svg>\n");
}
