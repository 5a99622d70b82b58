#include "base/source.h"

linecol source_locate(const source *s, uint32_t at)
{
    linecol r = {.line = 1};
    for (uint32_t i = 0; i < at && i < s->len; i++) {
        if (s->text[i] == '\n' || (s->text[i] == '\r' && s->text[i + 1] != '\n')) {
            r.line++;
            r.line_lo = i + 1;
        }
    }
    r.line_hi = r.line_lo;
    while (r.line_hi < s->len && s->text[r.line_hi] != '\n' && s->text[r.line_hi] != '\r') {
        r.line_hi++;
    }
    r.col = at - r.line_lo + 1;
    return r;
}
