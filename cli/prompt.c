#include "cli/debug.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// What a command does with the run.
typedef enum outcome { ASK_AGAIN, GO_ON } outcome;

typedef outcome (*command_fn)(debugger *d, char *args);

#define COMMAND(name, letter, args, help) static outcome do_##name(debugger *d, char *text);
#include "cli/debug_commands.def"
#undef COMMAND

static const struct {
    const char *name;
    char letter;
    const char *args, *help;
    command_fn run;
} table[] = {
#define COMMAND(name, letter, args, help) {#name, letter, args, help, do_##name},
#include "cli/debug_commands.def"
#undef COMMAND
};
enum { COMMANDS = sizeof table / sizeof *table };

const char *core_prefix(const debugger *d, uint32_t core, char *buf, size_t cap)
{
    buf[0] = '\0';
    if (d->cores > 1) {
        snprintf(buf, cap, "core %u: ", core);
    }
    return buf;
}

static outcome complain(const char *why)
{
    printf("%s\n", why);
    return ASK_AGAIN;
}

static size_t at_instr(const debugger *d)
{
    return nki_step_instr(d->step, d->looked_at);
}

// ---- source

static bool source_text(const debugger *d, const char *file, const char **text, size_t *len)
{
    const char *name;
    for (size_t i = 0; nki_tool_source(d->k, i, &name, text, len) == NKI_OK; i++) {
        if (strcmp(name, file) == 0) {
            return *text != NULL;
        }
    }
    return false;
}

// "   12 | text"; false: the file has no such line.
static bool print_line(const debugger *d, const char *file, size_t line, const char *mark)
{
    const char *text;
    size_t len;
    if (!source_text(d, file, &text, &len)) {
        return false;
    }
    const char *end = text + len;
    for (size_t n = 1; n < line && text < end; text++) {
        n += *text == '\n';
        if (n == line) {
            text++;
            break;
        }
    }
    if (text >= end) {
        return false;
    }
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    int n = (int)((stop ? stop : end) - text);
    n -= n && text[n - 1] == '\r';
    printf("%s%5zu |%s%.*s\n", mark, line, n ? " " : "", n, text);
    return true;
}

static void print_breaks_mark(const debugger *d, const char *file, size_t line, bool here,
                              char *mark)
{
    bool stops = false;
    for (size_t i = 0; i < d->break_count; i++) {
        stops |= d->breaks[i].at.line == line && strcmp(d->breaks[i].at.file, file) == 0;
    }
    mark[0] = here ? '>' : ' ';
    mark[1] = stops ? 'b' : ' ';
    mark[2] = '\0';
}

static outcome do_list(debugger *d, char *text)
{
    enum { AROUND = 5 };
    nki_frame f = {.file = ""};
    size_t instr = at_instr(d), middle;
    if (instr == NKI_NOWHERE || nki_tool_instr_frame(d->k, d->looked_at, instr, 0, &f) != NKI_OK) {
        return complain("there is no instruction here");
    }
    middle = *text ? strtoul(text, NULL, 10) : d->listed ? d->listed + AROUND + 1 : f.line;
    if (middle == 0) {
        return complain("list wants a line");
    }
    size_t first = middle > AROUND ? middle - AROUND : 1, line;
    for (line = first; line <= middle + AROUND; line++) {
        char mark[3];
        print_breaks_mark(d, f.file, line, line == f.line, mark);
        if (!print_line(d, f.file, line, mark)) {
            break;
        }
    }
    if (line == first) {
        printf("%s has no line %zu\n", f.file, middle);
    }
    d->listed = line - 1;
    return ASK_AGAIN;
}

// ---- where

static outcome do_where(debugger *d, char *text)
{
    (void)text;
    nki_frame f;
    nki_loop l;
    size_t instr = at_instr(d);
    if (instr == NKI_NOWHERE) {
        return complain("this core has not begun, or has ended");
    }
    for (size_t i = 0; nki_tool_instr_frame(d->k, d->looked_at, instr, i, &f) == NKI_OK; i++) {
        printf("#%zu  %s at %s:%zu:%zu%s%s\n", i, f.function, f.file, f.line, f.col,
               *f.values ? ", with " : "", f.values);
        print_line(d, f.file, f.line, "  ");
    }
    for (size_t i = 0; nki_tool_instr_loop(d->k, d->looked_at, instr, i, &l) == NKI_OK; i++) {
        if (nki_step_trip(d->step, d->looked_at, l.begin)) {
            nki_tool_instr_frame(d->k, d->looked_at, l.begin, 0, &f);
            print_loop(d, d->step, d->looked_at, &l, "in the loop ");
            printf(" of %s:%zu\n", f.file, f.line);
        }
    }
    return ASK_AGAIN;
}

// ---- engines

static outcome do_engines(debugger *d, char *text)
{
    (void)text;
    const char *name;
    size_t slots, instr = at_instr(d);
    if (instr == NKI_NOWHERE) {
        return complain("this core has not begun, or has ended");
    }
    for (size_t q = 0; nki_tool_queue(d->k, d->looked_at, q, &name, &slots) == NKI_OK; q++) {
        size_t slot = 0, next = 0;
        char waits[128] = "", what[256];
        while (slot < slots &&
               nki_tool_queue_slot(d->k, d->looked_at, q, slot, &next, waits, sizeof waits) ==
                   NKI_OK &&
               next < instr) {
            slot++;
        }
        if (slots == 0) {
            continue;
        }
        if (slot == slots) {
            printf("%c %-12s %zu of %zu done\n", ' ', name, slots, slots);
            continue;
        }
        nki_tool_instr_text(d->k, d->looked_at, next, what, sizeof what);
        printf("%c %-12s %zu of %zu done; next @%zu %s%s%s\n", next == instr ? '>' : ' ', name,
               slot, slots, next, what, *waits ? "; after " : "", waits);
    }
    return ASK_AGAIN;
}

// ---- going on

static outcome go(debugger *d, run_mode mode, const char *text)
{
    char *end;
    unsigned long n = *text ? strtoul(text, &end, 10) : 1;
    if (*text && (*end || n == 0)) {
        return complain("that wants a number of times, from 1");
    }
    d->mode = mode;
    d->count = n;
    d->core = nki_step_core(d->step);
    d->instr = nki_step_instr(d->step, d->core);
    return GO_ON;
}

static outcome do_step(debugger *d, char *text)
{
    return go(d, MODE_STEP, text);
}

static outcome do_next(debugger *d, char *text)
{
    return go(d, MODE_NEXT, text);
}

static outcome do_finish(debugger *d, char *text)
{
    nki_frame f;
    uint32_t core = nki_step_core(d->step);
    (void)text;
    if (nki_tool_instr_frame(d->k, core, nki_step_instr(d->step, core), 1, &f) != NKI_OK) {
        return complain("this is the kernel itself; continue runs to its end");
    }
    return go(d, MODE_FINISH, "");
}

static outcome do_continue(debugger *d, char *text)
{
    return go(d, MODE_RUN, text);
}

static outcome do_quit(debugger *d, char *text)
{
    (void)text;
    d->quit = 1;
    return GO_ON;
}

// ---- breakpoints and watches

static outcome do_break(debugger *d, char *text)
{
    char why[512], place[300];
    nki_frame f;
    size_t instr = at_instr(d);
    if (!*text) {
        return complain("break wants FILE:LINE or LINE");
    }
    if (d->break_count == BREAKS_MAX) {
        return complain("there are too many breakpoints");
    }
    // A line alone is one of the file that is shown.
    bool own = strspn(text, "0123456789") == strlen(text) && instr != NKI_NOWHERE &&
               nki_tool_instr_frame(d->k, d->looked_at, instr, 0, &f) == NKI_OK;
    snprintf(place, sizeof place, "%s%s%s", own ? f.file : "", own ? ":" : "", text);
    breakpoint *b = &d->breaks[d->break_count];
    if (!location_find(d, place, &b->at, why, sizeof why)) {
        return complain(why);
    }
    b->number = ++d->last_break;
    b->hits = 0;
    d->break_count++;
    // It does not stop where the run stands already.
    uint32_t core = nki_step_core(d->step);
    location_reached(d, &b->at, core, nki_step_instr(d->step, core));
    printf("breakpoint %u at %s:%zu\n", b->number, b->at.file, b->at.line);
    return ASK_AGAIN;
}

static outcome do_delete(debugger *d, char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    size_t kept = 0;
    for (size_t i = 0; i < d->break_count; i++) {
        if (!*text || d->breaks[i].number == n) {
            location_free(&d->breaks[i].at);
        } else {
            d->breaks[kept++] = d->breaks[i];
        }
    }
    if (*text && kept == d->break_count) {
        printf("there is no breakpoint %s\n", text);
    }
    d->break_count = kept;
    return ASK_AGAIN;
}

static outcome do_watch(debugger *d, char *text)
{
    char why[512];
    if (!*text) {
        return complain("watch wants a tensor");
    }
    if (tensor_find(d, d->looked_at, NKI_NOWHERE, text, why, sizeof why) == NKI_NOWHERE) {
        return complain(why);
    }
    if (d->watch_count == WATCHES_MAX || !(d->watches[d->watch_count] = strdup(text))) {
        return complain("there are too many watches");
    }
    d->watch_count++;
    return watches_mark(d) ? ASK_AGAIN : complain("out of memory");
}

static outcome do_unwatch(debugger *d, char *text)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->watch_count; i++) {
        if (!*text || strcmp(d->watches[i], text) == 0) {
            free(d->watches[i]);
        } else {
            d->watches[kept++] = d->watches[i];
        }
    }
    if (*text && kept == d->watch_count) {
        printf("'%s' is not watched\n", text);
    }
    d->watch_count = kept;
    return watches_mark(d) ? ASK_AGAIN : complain("out of memory");
}

// ---- tensors

static outcome do_print(debugger *d, char *text)
{
    char why[512];
    if (!*text) {
        return complain("print wants TENSOR[SLICES], REGISTER or $PARAM; info tensors and info "
                        "registers list them");
    }
    return print_expression(d, d->step, d->looked_at, text, why, sizeof why) ? ASK_AGAIN
                                                                             : complain(why);
}

static outcome do_save(debugger *d, char *text)
{
    char why[1024];
    char *file = text + strcspn(text, " ");
    if (!*file) {
        return complain("save wants TENSOR FILE.npy");
    }
    *file++ = '\0';
    file += strspn(file, " ");
    size_t t = tensor_find(d, d->looked_at, at_instr(d), text, why, sizeof why);
    if (t == NKI_NOWHERE) {
        return complain(why);
    }
    nki_tensor *value = tensor_now(d->step, d, d->looked_at, t);
    if (!value) {
        return complain("this core has not begun");
    }
    bool ok = npy_write(file, value, d->s->o->raw, why, sizeof why);
    nki_tensor_release(value);
    return ok ? ASK_AGAIN : complain(why);
}

static outcome do_core(debugger *d, char *text)
{
    if (strlen(text) != 1 || *text < '0' || (uint32_t)(*text - '0') >= d->cores) {
        return complain(d->cores > 1 ? "the cores are 0 and 1" : "there is one core, 0");
    }
    d->looked_at = (uint32_t)(*text - '0');
    d->listed = 0;
    return ASK_AGAIN;
}

// ---- info

static void info_breakpoints(debugger *d)
{
    for (size_t i = 0; i < d->break_count; i++) {
        const breakpoint *b = &d->breaks[i];
        printf("%u  %s:%zu, reached %llu time%s\n", b->number, b->at.file, b->at.line,
               (unsigned long long)b->hits, b->hits == 1 ? "" : "s");
    }
    fputs(d->break_count ? "" : "there are no breakpoints\n", stdout);
}

static void info_watches(debugger *d)
{
    for (size_t i = 0; i < d->watch_count; i++) {
        puts(d->watches[i]);
    }
    fputs(d->watch_count ? "" : "nothing is watched\n", stdout);
}

static void info_tensors(debugger *d)
{
    nki_tensor_row row;
    for (size_t t = 0; nki_tool_tensor_at(d->k, d->looked_at, t, &row) == NKI_OK; t++) {
        nki_frame f;
        printf("%%%-4zu %-12s [", t, row.name);
        for (size_t i = 0; i < row.ndim; i++) {
            printf("%s%zu", i ? ", " : "", row.shape[i]);
        }
        printf("] %s @%s", nki_dtype_name(row.dtype), row.buffer);
        if (row.output != NKI_NOWHERE) {
            printf(", out%zu", row.output);
        }
        if (nki_tool_tensor_frame(d->k, d->looked_at, t, 0, &f) == NKI_OK) {
            printf(", %s:%zu", f.file, f.line);
        }
        putchar('\n');
    }
}

static void info_registers(debugger *d)
{
    size_t n = nki_step_register_count(d->step, d->looked_at);
    for (size_t r = 0; r < n; r++) {
        int32_t v = 0;
        nki_step_register(d->step, d->looked_at, r, &v);
        char label[NKI_NAME_MAX + 16];
        printf("%s = %d\n", register_label(d, d->looked_at, r, label, sizeof label), v);
    }
    fputs(n ? "" : "there are no registers\n", stdout);
}

static void info_cores(debugger *d)
{
    for (uint32_t c = 0; c < d->cores; c++) {
        size_t instr = nki_step_instr(d->step, c);
        char what[256] = "";
        nki_frame f = {.file = ""};
        if (instr == NKI_NOWHERE) {
            printf("  core %u has not begun, or has ended\n", c);
            continue;
        }
        nki_tool_instr_text(d->k, c, instr, what, sizeof what);
        nki_tool_instr_frame(d->k, c, instr, 0, &f);
        printf("%c core %u at %s:%zu, @%zu %s\n", c == d->looked_at ? '>' : ' ', c, f.file, f.line,
               instr, what);
    }
}

static outcome do_info(debugger *d, char *text)
{
    static const struct {
        const char *name;
        void (*print)(debugger *d);
    } kinds[] = {{"breakpoints", info_breakpoints},
                 {"watches", info_watches},
                 {"tensors", info_tensors},
                 {"registers", info_registers},
                 {"cores", info_cores}};
    size_t n = strlen(text);
    for (size_t i = 0; n && i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(kinds[i].name, text, n) == 0) {
            kinds[i].print(d);
            return ASK_AGAIN;
        }
    }
    return complain("info wants breakpoints, watches, tensors, registers or cores");
}

// ---- the prompt itself

// The command that a word begins; -1 after a sentence.
static int find(const char *word)
{
    size_t n = strlen(word);
    int found = -1, count = 0;
    for (int i = 0; i < COMMANDS; i++) {
        if ((n == 1 && table[i].letter == *word) || strcmp(table[i].name, word) == 0) {
            return i;
        }
        if (strncmp(table[i].name, word, n) == 0) {
            found = i;
            count++;
        }
    }
    if (count == 1) {
        return found;
    }
    printf(count ? "'%s' could be" : "there is no command '%s'; help lists them", word);
    for (int i = 0, shown = 0; count && i < COMMANDS; i++) {
        if (strncmp(table[i].name, word, n) == 0) {
            printf("%s %s", shown++ ? "," : "", table[i].name);
        }
    }
    putchar('\n');
    return -1;
}

static outcome do_help(debugger *d, char *text)
{
    (void)d;
    int only = *text ? find(text) : -1;
    for (int i = 0; i < COMMANDS && (only >= 0 || !*text); i++) {
        if (only >= 0 && i != only) {
            continue;
        }
        char usage[80];
        snprintf(usage, sizeof usage, "%s%s%s", table[i].name, *table[i].args ? " " : "",
                 table[i].args);
        printf("%c  %-26s %s\n", table[i].letter ? table[i].letter : ' ', usage, table[i].help);
    }
    if (!*text) {
        puts("An empty line repeats the command before it.");
    }
    return ASK_AGAIN;
}

static void trim(char *text)
{
    size_t n = strlen(text), lead = strspn(text, " \t");
    while (n > lead && isspace((unsigned char)text[n - 1])) {
        n--;
    }
    memmove(text, text + lead, n - lead);
    text[n - lead] = '\0';
}

static outcome obey(debugger *d, char *line)
{
    char *args = line + strcspn(line, " \t");
    if (*args) {
        *args++ = '\0';
    }
    trim(args);
    int c = find(line);
    return c < 0 ? ASK_AGAIN : table[c].run(d, args);
}

static void say_where(debugger *d, const char *why)
{
    uint32_t core = nki_step_core(d->step);
    size_t instr = nki_step_instr(d->step, core);
    nki_frame f = {.file = ""};
    nki_loop l;
    char prefix[16], what[512];
    nki_tool_instr_frame(d->k, core, instr, 0, &f);
    nki_tool_instr_text(d->k, core, instr, what, sizeof what);
    printf("%s%s:%zu", core_prefix(d, core, prefix, sizeof prefix), f.file, f.line);
    if (*why) {
        printf(", %s", why);
    }
    if (*f.values) {
        printf(", %s", f.values);
    }
    for (size_t i = 0; nki_tool_instr_loop(d->k, core, instr, i, &l) == NKI_OK; i++) {
        print_loop(d, d->step, core, &l, ", ");
    }
    putchar('\n');
    print_line(d, f.file, f.line, "");
    printf("   @%zu %s\n", instr, what);
}

void prompt(debugger *d, nki_step *s, const char *why)
{
    char line[LINE_MAX_BYTES];
    d->step = s;
    d->looked_at = nki_step_core(s);
    d->listed = 0;
    d->mode = MODE_RUN;
    d->count = 0;
    say_where(d, why);
    for (outcome o = ASK_AGAIN; o == ASK_AGAIN;) {
        if (!line_read(d, line, sizeof line)) {
            // A file has said all it had to; whoever closes the terminal wants to end.
            if (d->commands || d->s->o->commands) {
                d->mode = MODE_RUN;
                while (d->break_count) {
                    location_free(&d->breaks[--d->break_count].at);
                }
            } else {
                d->quit = 1;
            }
            break;
        }
        trim(line);
        if (*line) {
            snprintf(d->previous, sizeof d->previous, "%s", line);
        } else {
            snprintf(line, sizeof line, "%s", d->previous);
        }
        o = *line ? obey(d, line) : ASK_AGAIN;
    }
    fflush(stdout);
    d->step = NULL;
}
