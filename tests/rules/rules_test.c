// Holds tests/rules/*.rules: the kernel that breaks a rule gives the rule's diagnostic and no other
// error, on each target of the rule; the nearest legal kernel compiles without a word. The messages
// are pinned in messages.txt (NKI_GOLDEN_UPDATE=1 rewrites it). Then the tables are asked whether a
// rule is missing: what lang/isa.def and lower/check_table.def restrict must be a rule here.
//
//   rules_test RULES_DIR [WORD]      WORD: only rules whose topic or diagnostic has it
#include "lang/diag.h"
#include "lower/check.h"
#include "tests/rules/rules.h"

#include <nki/context.h>
#include <nki/kernel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct state {
    nki_context *ctx[RULE_TARGETS];
    char *prelude;
    unsigned faults;
} state;

enum { MESSAGE_MAX = 700 };

static void say(state *s, const rule *r, int on, const char *what, const char *detail)
{
    s->faults++;
    printf("%s:%u: %s: %s [%s]: %s\n%s", r->file, r->line, r->topic, r->says, rule_target[on],
           what, detail);
}

static nki_diags *compile_text(state *s, const rule *r, int on, int which, nki_status *st)
{
    nki_diags *ds;
    nki_kernel *k = NULL;
    char *text = rule_source(r, s->prelude, which);
    nki_source src = {"rule.nki", text, strlen(text)};
    nki_compile_opts opts = NKI_COMPILE_OPTS_INIT;
    opts.grid = r->grid;
    if (nki_diags_create(&ds) != NKI_OK) {
        abort();
    }
    *st = nki_kernel_compile(s->ctx[on], &src, "kernel", NULL, 0, &opts, ds, &k);
    nki_kernel_release(k);
    free(text);
    return ds;
}

static const char *rendered(nki_diags *ds)
{
    const char *text;
    return nki_diags_render(ds, NKI_DIAG_TEXT, 0, &text) == NKI_OK ? text : "?\n";
}

// The rule's own diagnostic goes to message; another error, or none, is a fault.
static void breaks(state *s, const rule *r, int on, char message[MESSAGE_MAX])
{
    nki_status st;
    nki_diags *ds = compile_text(s, r, on, 0, &st);
    bool hit = false, other = false;
    for (size_t i = 0; i < nki_diags_count(ds); i++) {
        nki_diag d;
        if (nki_diags_at(ds, i, &d) != NKI_OK) {
            continue;
        }
        bool same = strcmp(d.name, r->diag) == 0;
        if (same && !hit) {
            (void)snprintf(message, MESSAGE_MAX, "%s", d.text);
        }
        hit |= same;
        other |= !same && d.severity == NKI_ERROR;
    }
    if (!hit || other) {
        say(s, r, on, hit ? "another error as well" : "not refused so", rendered(ds));
    }
    nki_diags_release(ds);
}

static void passes(state *s, const rule *r, int on)
{
    nki_status st;
    nki_diags *ds = compile_text(s, r, on, 1, &st);
    if (st != NKI_OK || nki_diags_count(ds)) {
        say(s, r, on, "the legal kernel does not pass in silence", rendered(ds));
    }
    nki_diags_release(ds);
}

// ---- messages.txt

typedef struct growing {
    char *at;
    size_t n, cap;
} growing;

static void append(growing *g, const char *text)
{
    size_t n = strlen(text);
    if (g->n + n + 1 > g->cap) {
        g->cap = 2 * (g->cap + n) + 4096;
        g->at = realloc(g->at, g->cap);
        if (!g->at) {
            abort();
        }
    }
    memcpy(g->at + g->n, text, n + 1);
    g->n += n;
}

static void add_messages(growing *g, const rule *r, char m[RULE_TARGETS][MESSAGE_MAX])
{
    append(g, r->topic);
    append(g, ": ");
    append(g, r->says);
    append(g, "\n");
    bool done[RULE_TARGETS] = {0};
    for (int t = 0; t < RULE_TARGETS; t++) {
        if (!r->on[t] || done[t]) {
            continue;
        }
        append(g, "   ");
        for (int u = t; u < RULE_TARGETS; u++) {
            if (r->on[u] && strcmp(m[t], m[u]) == 0) {
                append(g, " ");
                append(g, rule_target[u]);
                done[u] = true;
            }
        }
        append(g, ": ");
        append(g, m[t]);
        append(g, "\n");
    }
}

static void compare_messages(state *s, const char *dir, const char *got)
{
    char *want = rules_slurp(dir, "messages.txt");
    const char *update = getenv("NKI_GOLDEN_UPDATE");
    if (update && *update == '1') {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/messages.txt", dir);
        FILE *f = fopen(path, "wb");
        if (!f || fputs(got, f) == EOF || fclose(f) == EOF) {
            abort();
        }
    } else if (!want || strcmp(want, got) != 0) {
        const char *a = want ? want : "", *b = got;
        while (*a && *a == *b) {
            a++;
            b++;
        }
        while (a > want && a[-1] != '\n') {
            a--;
            b--;
        }
        printf("messages.txt: expected %.*s\n                   got %.*s\n", (int)strcspn(a, "\n"), a,
               (int)strcspn(b, "\n"), b);
        s->faults++;
    }
    free(want);
}

// ---- what must be a rule

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word)) {
        char before = p == text ? ' ' : p[-1], after = p[n];
        if (!strchr("_abcdefghijklmnopqrstuvwxyz0123456789", before) &&
            (after == '\0' || !strchr("_abcdefghijklmnopqrstuvwxyz0123456789", after))) {
            return true;
        }
    }
    return false;
}

// A rule of that instruction with one of the diagnostics (a list with spaces), about the parameter.
static bool covered(const rules *rs, char (*messages)[RULE_TARGETS][MESSAGE_MAX], const char *insn,
                    const char *names, const char *param)
{
    for (size_t i = 0; i < rs->count; i++) {
        if (strcmp(rs->at[i].topic, insn) != 0 || !has_word(names, rs->at[i].diag)) {
            continue;
        }
        for (int t = 0; t < RULE_TARGETS; t++) {
            if (!param || has_word(messages[i][t], param)) {
                return true;
            }
        }
    }
    return false;
}

static void want(state *s, bool there, const char *insn, const char *names, const char *param)
{
    if (!there) {
        s->faults++;
        printf("%s: no rule with %s%s%s\n", insn, names, param ? " about " : "", param ? param : "");
    }
}

static void ask_row(state *s, const rules *rs, char (*m)[RULE_TARGETS][MESSAGE_MAX], int op)
{
    static const char spaces[] = "space_not_allowed dma_psum gpsimd_psum";
    const isa_info *info = &isa_table[op];
    const check_row *row = &check_table[op];
#define WANT(diags, param) want(s, covered(rs, m, info->name, diags, param), info->name, diags, param)
    if (!info->engines[0] || !info->engines[1]) {
        WANT("not_on_target", NULL);
    }
    for (uint8_t i = 0; i < info->nparams; i++) {
        const isa_param *p = &info->params[i];
        if (p->spaces && p->spaces != (SPACE_B | SPACE_Q | SPACE_H) && p->type != PT_TENSORS) {
            WANT(spaces, p->name);
        }
        if (p->type == PT_SCAL) {
            WANT("operand_not_per_partition", p->name);
        }
        if (p->type == PT_OP) {
            WANT("op_not_allowed op_not_on_target", p->name);
        }
        if (p->type == PT_ENGINE && info->engines[2] != E_ALL) {
            WANT("engine_not_allowed hwdge_engine", NULL);
        }
        if (p->type == PT_REDCMD) {
            WANT("reduce_cmd_not_allowed", NULL);
        }
    }
    for (int i = 0; i < 4 && row->dtypes[i].mask; i++) {
        WANT("dtype_not_allowed", info->params[row->dtypes[i].param].name);
    }
    if (row->shape == SHAPE_SAME || row->shape == SHAPE_ROWS) {
        WANT("shape_mismatch", NULL);
    }
    if (row->flags & ROW_ONE_PSUM) {
        WANT("both_psum", NULL);
    }
    if (row->flags & ROW_SAME_DTYPE) {
        WANT("dtype_mismatch", NULL);
    }
#undef WANT
}

static void ask_tables(state *s, const rules *rs, char (*m)[RULE_TARGETS][MESSAGE_MAX])
{
    for (int op = 0; op < ISA_COUNT; op++) {
        if (isa_table[op].group == ISAG_NISA) {
            ask_row(s, rs, m, op);
        }
    }
    // Every diagnostic of the machine and of placement. Those of the device need a run: goldens.
    for (int d = 0; d < D_COUNT; d++) {
        const char *name = diag_name((diag_id)d);
        bool ours = false, ruled = false;
        static const char *const of_machine[] = {
#define DIAG(ident, ...)  #ident,
#define DIAG0(ident, ...) #ident,
#include "lang/diag_isa.def"
#include "lang/diag_sched.def"
#undef DIAG0
#undef DIAG
        };
        for (size_t i = 0; i < sizeof of_machine / sizeof *of_machine; i++) {
            ours |= strcmp(of_machine[i], name) == 0;
        }
        for (size_t i = 0; i < rs->count; i++) {
            ruled |= strcmp(rs->at[i].diag, name) == 0;
        }
        want(s, !ours || ruled, "lang/diag", name, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    rules rs = {0};
    state s = {.prelude = rules_slurp(argv[1], "prelude.nki")};
    if (!s.prelude || !rules_read(&rs, argv[1])) {
        return 1;
    }
    for (int t = 0; t < RULE_TARGETS; t++) {
        nki_context_opts opts = NKI_CONTEXT_OPTS_INIT;
        opts.target = rule_target[t];
        if (nki_context_create(&opts, &s.ctx[t], NULL) != NKI_OK) {
            return 1;
        }
    }
    char(*messages)[RULE_TARGETS][MESSAGE_MAX] = calloc(rs.count + 1, sizeof *messages);
    growing text = {0};
    append(&text, "");
    for (size_t i = 0; messages && i < rs.count; i++) {
        const rule *r = &rs.at[i];
        if (argc > 2 && !strstr(r->topic, argv[2]) && !strstr(r->diag, argv[2])) {
            continue;
        }
        for (int t = 0; t < RULE_TARGETS; t++) {
            if (r->on[t]) {
                breaks(&s, r, t, messages[i][t]);
                passes(&s, r, t);
            }
        }
        add_messages(&text, r, messages[i]);
    }
    if (argc == 2) {
        compare_messages(&s, argv[1], text.at);
        ask_tables(&s, &rs, messages);
    }
    printf("%zu rules, %u faults\n", rs.count, s.faults);
    for (int t = 0; t < RULE_TARGETS; t++) {
        nki_context_release(s.ctx[t]);
    }
    free(text.at);
    free(messages);
    free(s.prelude);
    rules_free(&rs);
    return s.faults ? 1 : 0;
}
