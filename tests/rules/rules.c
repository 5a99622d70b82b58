#include "tests/rules/rules.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rule_target[RULE_TARGETS] = {"trn1", "trn2", "trn3"};

char *rules_slurp(const char *dir, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long n;
    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        text = calloc((size_t)n + 1, 1);
        if (text && fread(text, 1, (size_t)n, f) != (size_t)n) {
            free(text);
            text = NULL;
        }
    }
    if (f) {
        fclose(f);
    }
    return text;
}

static bool fault(const char *file, unsigned line, const char *what)
{
    (void)fprintf(stderr, "%s:%u: %s\n", file, line, what);
    return false;
}

static bool copy(char *to, size_t cap, const char *from, size_t n)
{
    if (n >= cap) {
        return false;
    }
    memcpy(to, from, n);
    to[n] = '\0';
    return true;
}

// "trn2 trn3 grid 2" of a rule's head.
static bool read_where(rule *r, const char *p, const char *end)
{
    memset(r->on, 0, sizeof r->on);
    while (p < end) {
        size_t n = strcspn(p, " :");
        bool known = false;
        for (int t = 0; t < RULE_TARGETS; t++) {
            if (n == 4 && strncmp(p, rule_target[t], 4) == 0) {
                r->on[t] = known = true;
            }
        }
        if (n == 4 && strncmp(p, "grid", 4) == 0 && p + 5 < end) {
            p += 5;
            n = 1;
            r->grid = (unsigned)(*p - '0');
            known = true;
        }
        if (!known) {
            return false;
        }
        p += n;
        p += strspn(p, " ");
    }
    return r->on[0] || r->on[1] || r->on[2];
}

// "-- on trn2: matmul_moving_limit: the rule in words"; without "on ...", every target.
static bool read_head(rule *r, const char *p, size_t n)
{
    const char *end = p + n;
    for (int t = 0; t < RULE_TARGETS; t++) {
        r->on[t] = true;
    }
    if (n > 3 && strncmp(p, "on ", 3) == 0) {
        const char *colon = memchr(p, ':', n);
        if (!colon || !read_where(r, p + 3, colon)) {
            return false;
        }
        p = colon + 1 + strspn(colon + 1, " ");
    }
    const char *colon = memchr(p, ':', (size_t)(end - p));
    if (!colon || !copy(r->diag, sizeof r->diag, p, (size_t)(colon - p))) {
        return false;
    }
    p = colon + 1 + strspn(colon + 1, " ");
    return p < end && copy(r->says, sizeof r->says, p, (size_t)(end - p));
}

static rule *add(rules *r)
{
    if (r->count == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 256;
        rule *at = realloc(r->at, r->cap * sizeof *at);
        if (!at) {
            abort();
        }
        r->at = at;
    }
    rule *x = &r->at[r->count++];
    memset(x, 0, sizeof *x);
    return x;
}

static bool read_file(rules *r, const char *file, const char *text)
{
    char topic[sizeof r->at->topic] = "";
    rule *now = NULL;
    unsigned line = 0;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        line++;
        if (strncmp(p, "== ", 3) == 0) {
            now = NULL;
            if (!copy(topic, sizeof topic, p + 3, n - 3)) {
                return fault(file, line, "the topic is too long");
            }
        } else if (strncmp(p, "-- ", 3) == 0) {
            now = add(r);
            now->file = file;
            now->line = line;
            memcpy(now->topic, topic, sizeof topic);
            if (!topic[0] || !read_head(now, p + 3, n - 3)) {
                return fault(file, line, "expected -- [on TARGETS:] DIAGNOSTIC: WORDS");
            }
        } else if (n && *p != '#') {
            size_t have = now ? strlen(now->body) : 0;
            if (!now || have + n + 2 > RULE_TEXT) {
                return fault(file, line, now ? "the body is too long" : "a body without a rule");
            }
            memcpy(now->body + have, p, n);
            now->body[have + n] = '\n';
        }
        p += n + (p[n] == '\n');
    }
    return true;
}

static int is_rules(const struct dirent *d)
{
    size_t n = strlen(d->d_name);
    return n > 6 && strcmp(d->d_name + n - 6, ".rules") == 0;
}

bool rules_read(rules *r, const char *dir)
{
    struct dirent **names;
    int n = scandir(dir, &names, is_rules, alphasort);
    bool ok = n > 0;
    for (int i = 0; i < n; i++) {
        char *file = strdup(names[i]->d_name);  // the rules point at it for the rest of the run
        char *text = rules_slurp(dir, names[i]->d_name);
        ok = ok && file && text && read_file(r, file, text);
        free(text);
        free(names[i]);
    }
    if (n >= 0) {
        free(names);
    }
    return ok;
}

void rules_free(rules *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (i + 1 == r->count || r->at[i].file != r->at[i + 1].file) {
            free((char *)(size_t)r->at[i].file);
        }
    }
    free(r->at);
    *r = (rules){0};
}

static void put(char **out, const char *p, size_t n)
{
    memcpy(*out, p, n);
    *out += n;
}

// Text with each {a|b} replaced by a or b; braces without a bar are the text's own.
static void choose(char **out, const char *p, int which)
{
    while (*p) {
        size_t n = strcspn(p, "{");
        put(out, p, n);
        p += n;
        if (!*p) {
            return;
        }
        const char *close = strchr(p, '}');
        const char *bar = strchr(p, '|');
        if (!close || !bar || bar > close) {
            put(out, p++, 1);
            continue;
        }
        if (which == 0) {
            put(out, p + 1, (size_t)(bar - p - 1));
        } else {
            put(out, bar + 1, (size_t)(close - bar - 1));
        }
        p = close + 1;
    }
}

static char *rule_body(const rule *r, int which)
{
    char *text = calloc(strlen(r->body) + 1, 1), *at = text;
    if (!text) {
        abort();
    }
    choose(&at, r->body, which);
    return text;
}

char *rule_source(const rule *r, const char *prelude, int which)
{
    char *body = rule_body(r, which);
    size_t lines = 1;
    for (const char *p = body; *p; p++) {
        lines += *p == '\n';
    }
    char *text = calloc(strlen(prelude) + strlen(body) + 4 * lines + 64, 1), *out = text;
    if (!text) {
        abort();
    }
    put(&out, prelude, strlen(prelude));
    bool whole = strncmp(body, "@nki.jit", 8) == 0 || strstr(body, "\n@nki.jit");
    if (!whole) {
        static const char head[] = "@nki.jit\ndef kernel():\n";
        put(&out, head, sizeof head - 1);
    }
    for (const char *p = body; *p;) {
        size_t n = strcspn(p, "\n") + 1;
        if (!whole) {
            put(&out, "    ", 4);
        }
        put(&out, p, n);
        p += n;
    }
    free(body);
    return text;
}
