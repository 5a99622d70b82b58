#include "cli/debug.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

bool debug_interrupted(void)
{
    bool was = interrupted != 0;
    interrupted = 0;
    return was;
}

// ---- where it stops

static size_t frame_count(const debugger *d, uint32_t core, size_t instr)
{
    nki_frame f;
    size_t n = 0;
    while (nki_tool_instr_frame(d->k, core, instr, n, &f) == NKI_OK) {
        n++;
    }
    return n;
}

static bool same_frame(const debugger *d, size_t a, size_t depth_a, size_t b, size_t depth_b,
                       bool column)
{
    nki_frame x, y;
    return nki_tool_instr_frame(d->k, d->core, a, depth_a, &x) == NKI_OK &&
           nki_tool_instr_frame(d->k, d->core, b, depth_b, &y) == NKI_OK && x.line == y.line &&
           (!column || x.col == y.col) && x.context == y.context && strcmp(x.file, y.file) == 0;
}

// Whether `instr` is still in the line, or in the call, where the command began. Depths count from
// the innermost frame, so the frame there is n - was further out.
static bool still_there(const debugger *d, size_t instr)
{
    size_t was = frame_count(d, d->core, d->instr), n = frame_count(d, d->core, instr);
    if (n < was || instr <= d->instr) {
        return false;
    }
    return d->mode == MODE_FINISH ? same_frame(d, d->instr, 1, instr, n - was + 1, true)
                                  : same_frame(d, d->instr, 0, instr, n - was, false);
}

static bool mode_stops(debugger *d, nki_step *s)
{
    switch (d->mode) {
    case MODE_RUN: return false;
    case MODE_STEP: break;
    case MODE_NEXT:
    case MODE_FINISH:
        if (nki_step_core(s) != d->core) {
            // The core has ended: the other one goes on.
            if (nki_step_instr(s, d->core) != NKI_NOWHERE) {
                return false;
            }
            break;
        }
        if (still_there(d, nki_step_instr(s, d->core))) {
            return false;
        }
        d->instr = nki_step_instr(s, d->core);
        break;
    }
    return --d->count == 0;
}

// The breakpoint that the run has come to; each of them keeps count.
static const breakpoint *breaks_stop(debugger *d, uint32_t core, size_t instr)
{
    const breakpoint *found = NULL;
    for (size_t i = 0; i < d->break_count; i++) {
        if (location_reached(d, &d->breaks[i].at, core, instr)) {
            d->breaks[i].hits++;
            found = found ? found : &d->breaks[i];
        }
    }
    if (found && d->mode == MODE_RUN && d->count > 1) {
        d->count--;
        return NULL;
    }
    return found;
}

static void keep(debugger *d, saving *v, nki_step *s, uint32_t core, size_t tensor)
{
    nki_tensor *t = tensor_now(s, d, core, tensor);
    if (!t) {
        d->status = other_error("out of memory for '%s'", v->name);
        return;
    }
    nki_tensor_release(v->value);
    v->value = t;
}

static int before(void *ctx, nki_step *s)
{
    debugger *d = ctx;
    uint32_t core = nki_step_core(s);
    size_t instr = nki_step_instr(s, core);
    for (size_t i = 0; i < d->save_count; i++) {
        saving *v = &d->saves[i];
        char why[512];
        if (v->placed && location_reached(d, &v->at, core, instr)) {
            size_t t = tensor_find(d, core, instr, v->name, why, sizeof why);
            if (t != NKI_NOWHERE) {
                keep(d, v, s, core, t);
            }
        }
    }
    const breakpoint *b = breaks_stop(d, core, instr);
    char why[64] = "";
    if (b) {
        snprintf(why, sizeof why, "breakpoint %u", b->number);
    } else if (debug_interrupted()) {
        snprintf(why, sizeof why, "interrupted");
    }
    if (mode_stops(d, s) || *why) {
        prompt(d, s, why);
    }
    return d->quit || d->status != EXIT_DONE;
}

static int after(void *ctx, nki_step *s)
{
    debugger *d = ctx;
    uint32_t core = nki_step_core(s);
    size_t instr = nki_step_instr(s, core);
    if (d->watch_count) {
        show_writes(d, s);
    }
    for (size_t i = 0; i < d->save_count; i++) {
        saving *v = &d->saves[i];
        if (!v->placed && v->due[core][instr]) {
            keep(d, v, s, core, v->due[core][instr] - 1);
        }
    }
    return d->status != EXIT_DONE;
}

// The instruction that ends the run, where somebody is there to look.
static int failed(void *ctx, nki_step *s)
{
    debugger *d = ctx;
    d->failed = true;
    if (d->s->o->break_count || d->s->o->commands) {
        char why[512];
        const char *text = nki_step_failure(s);
        snprintf(why, sizeof why, "fails%s%s", *text ? ": " : "", text);
        prompt(d, s, why);
    }
    return 0;
}

// ---- from the options

// Which instructions write each tensor first and last.
static bool find_writes(debugger *d)
{
    for (uint32_t c = 0; c < d->cores; c++) {
        size_t n = nki_tool_tensor_count(d->k, c);
        d->first_write[c] = malloc((n + 1) * sizeof(size_t));
        d->last_write[c] = malloc((n + 1) * sizeof(size_t));
        if (!d->first_write[c] || !d->last_write[c]) {
            return false;
        }
        for (size_t t = 0; t < n; t++) {
            d->first_write[c][t] = d->last_write[c][t] = NKI_NOWHERE;
        }
        for (size_t i = 0; i < nki_tool_instr_count(d->k, c); i++) {
            size_t t;
            for (size_t w = 0; (t = nki_tool_instr_writes(d->k, c, i, w)) != NKI_NOWHERE; w++) {
                d->last_write[c][t] = i;
                if (d->first_write[c][t] == NKI_NOWHERE) {
                    d->first_write[c][t] = i;
                }
            }
        }
    }
    return true;
}

static int set_breaks(debugger *d)
{
    const cli_opts *o = d->s->o;
    for (size_t i = 0; i < o->break_count; i++) {
        char why[512];
        if (strcmp(o->breaks[i], "start") == 0) {
            d->mode = MODE_STEP;
            d->count = 1;
        } else if (d->break_count == BREAKS_MAX) {
            return usage_error("--break: at most %d", BREAKS_MAX);
        } else if (!location_find(d, o->breaks[i], &d->breaks[d->break_count].at, why,
                                  sizeof why)) {
            return usage_error("--break: %s", why);
        } else {
            d->breaks[d->break_count++].number = ++d->last_break;
        }
    }
    return EXIT_DONE;
}

static int set_watches(debugger *d)
{
    const cli_opts *o = d->s->o;
    for (size_t i = 0; i < o->watch_count; i++) {
        char why[512];
        if (i == WATCHES_MAX) {
            return usage_error("--watch: at most %d", WATCHES_MAX);
        }
        if (tensor_find(d, 0, NKI_NOWHERE, o->watches[i], why, sizeof why) == NKI_NOWHERE) {
            return usage_error("--watch: %s", why);
        }
        d->watches[d->watch_count] = strdup(o->watches[i]);
        if (!d->watches[d->watch_count++]) {
            return other_error("out of memory");
        }
    }
    return watches_mark(d) ? EXIT_DONE : other_error("out of memory");
}

// A tensor has its value after the last instruction that writes it; one that nothing writes, at the
// end.
static bool find_due(debugger *d, saving *v)
{
    for (uint32_t c = 0; c < d->cores; c++) {
        size_t n = nki_tool_tensor_count(d->k, c), instrs = nki_tool_instr_count(d->k, c);
        uint8_t *marks = malloc(n + 1);
        v->due[c] = calloc(instrs + 1, sizeof *v->due[c]);
        if (!marks || !v->due[c]) {
            free(marks);
            return false;
        }
        tensors_mark(d, c, v->name, marks);
        for (size_t t = 0; t < n && instrs; t++) {
            if (marks[t]) {
                size_t last = d->last_write[c][t];
                v->due[c][last == NKI_NOWHERE ? instrs - 1 : last] = (uint32_t)t + 1;
            }
        }
        free(marks);
    }
    return true;
}

// NAME=FILE.npy, NAME@FILE:LINE=FILE.npy
static int set_saves(debugger *d)
{
    const cli_opts *o = d->s->o;
    d->saves = calloc(o->save_count + 1, sizeof *d->saves);
    if (!d->saves) {
        return other_error("out of memory");
    }
    for (size_t i = 0; i < o->save_count; i++) {
        saving *v = &d->saves[d->save_count++];
        char why[512], *name = strdup(o->saves[i].name), *at = name ? strchr(name, '@') : NULL;
        if (!name) {
            return other_error("out of memory");
        }
        v->name = name;
        v->path = o->saves[i].value;
        v->placed = at != NULL;
        if (at) {
            *at = '\0';
            if (!location_find(d, at + 1, &v->at, why, sizeof why)) {
                return usage_error("--save: %s", why);
            }
        }
        if (tensor_find(d, 0, NKI_NOWHERE, v->name, why, sizeof why) == NKI_NOWHERE) {
            return usage_error("--save: %s", why);
        }
        if (!find_due(d, v)) {
            return other_error("out of memory");
        }
    }
    return EXIT_DONE;
}

static int set_commands(debugger *d)
{
    const cli_opts *o = d->s->o;
    if (o->commands && strcmp(o->commands, "-") != 0) {
        d->commands = fopen(o->commands, "r");
        if (!d->commands) {
            return other_error("cannot read '%s': %s", o->commands, strerror(errno));
        }
    }
    if (o->commands && o->break_count == 0) {
        d->mode = MODE_STEP;
        d->count = 1;
    }
    return EXIT_DONE;
}

int debug_open(session *s, nki_kernel *k, debugger **out)
{
    const cli_opts *o = s->o;
    *out = NULL;
    if (!o->break_count && !o->watch_count && !o->save_count && !o->commands) {
        return EXIT_DONE;
    }
    if (o->reorder) {
        return usage_error("--order does not go with --break, --watch and --save");
    }
    debugger *d = calloc(1, sizeof *d);
    if (!d) {
        return other_error("out of memory");
    }
    *out = d;
    d->s = s;
    d->k = k;
    d->cores = (uint32_t)nki_tool_core_count(k);
    int st = find_writes(d) ? set_breaks(d) : other_error("out of memory");
    st = st == EXIT_DONE ? set_watches(d) : st;
    st = st == EXIT_DONE ? set_saves(d) : st;
    st = st == EXIT_DONE ? set_commands(d) : st;
    if (st == EXIT_DONE) {
        st = session_result(s, nki_tool_observe(k, before, after, failed, d));
    }
    if (st == EXIT_DONE && o->break_count && isatty(STDIN_FILENO)) {
        struct sigaction sa = {.sa_handler = on_interrupt};
        sigaction(SIGINT, &sa, NULL);
    }
    return st;
}

static int write_saves(const debugger *d)
{
    for (size_t i = 0; i < d->save_count; i++) {
        const saving *v = &d->saves[i];
        char why[1024];
        if (!v->value) {
            return other_error("--save %s: the run never came to %s:%zu", v->name, v->at.file,
                               v->at.line);
        }
        if (!npy_write(v->path, v->value, d->s->o->raw, why, sizeof why)) {
            return other_error("%s", why);
        }
    }
    return EXIT_DONE;
}

int debug_close(debugger *d, int st)
{
    if (!d) {
        return st;
    }
    nki_tool_observe(d->k, NULL, NULL, NULL, NULL);
    if (d->status != EXIT_DONE) {
        st = d->status;
    } else if (d->quit && !d->failed) {
        st = EXIT_DONE;
    } else if (st == EXIT_DONE) {
        st = write_saves(d);
    }
    for (size_t i = 0; i < d->break_count; i++) {
        location_free(&d->breaks[i].at);
    }
    for (size_t i = 0; i < d->watch_count; i++) {
        free(d->watches[i]);
    }
    for (size_t i = 0; i < d->save_count; i++) {
        location_free(&d->saves[i].at);
        for (uint32_t c = 0; c < CORES_MAX; c++) {
            free(d->saves[i].due[c]);
        }
        nki_tensor_release(d->saves[i].value);
        free((char *)(uintptr_t)d->saves[i].name);  // a copy
    }
    for (uint32_t c = 0; c < CORES_MAX; c++) {
        free(d->watched[c]);
        for (size_t r = 0; r < d->register_count[c]; r++) {
            free(d->registers[c][r]);
        }
        free(d->registers[c]);
        free(d->first_write[c]);
        free(d->last_write[c]);
    }
    if (d->commands) {
        fclose(d->commands);
    }
    free(d->saves);
    free(d);
    return st;
}
