#include "driver/compile.h"
#include "neff/layout.h"

#include <nki/version.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

// A digest of everything, each part with its length, so that no two requests run together.

static void add(XXH3_state_t *h, const void *p, size_t len)
{
    uint64_t n = len;
    XXH3_128bits_update(h, &n, sizeof n);
    if (len) {
        XXH3_128bits_update(h, p, len);
    }
}

static void add_number(XXH3_state_t *h, uint64_t v)
{
    XXH3_128bits_update(h, &v, sizeof v);
}

// NULL and "" differ.
static void add_text(XXH3_state_t *h, const char *s)
{
    add_number(h, s != NULL);
    if (s) {
        add(h, s, strlen(s));
    }
}

static void add_args(XXH3_state_t *h, const compile_request *rq, bool values)
{
    add_number(h, rq->arg_count);
    for (size_t i = 0; i < rq->arg_count; i++) {
        const compile_arg *a = &rq->args[i];
        if ((a->expr != NULL) != values) {
            continue;
        }
        add_number(h, i);
        add_text(h, a->name);
        if (values) {
            add_text(h, a->expr);
        } else {
            add_number(h, (uint64_t)a->type);
            add(h, a->shape, a->ndim * sizeof *a->shape);
        }
    }
}

static uint64_t tables_hash(void)
{
    static _Atomic uint64_t tables;  // the same whoever stores it
    uint64_t build = tables;
    if (!build) {
        tables = build = neff_tables_hash();
    }
    return build;
}

static void add_settings(XXH3_state_t *h, const compile_request *rq)
{
    add_number(h, rq->root_count);
    for (size_t i = 0; i < rq->root_count; i++) {
        add_text(h, rq->roots[i]);
    }
    add_number(h, rq->env_count);
    for (uint32_t i = 0; i < rq->env_count; i++) {
        add_text(h, rq->env[i].name);
        add_text(h, rq->env[i].value);
    }
    // Warnings may be errors, and limits end a compile.
    add_number(h, rq->policy->all_errors);
    add(h, rq->policy->warn, sizeof rq->policy->warn);
    add_number(h, rq->memory_limit_bytes);
    add_number(h, rq->step_limit);
}

static void add_part(XXH3_state_t *h, const compile_request *rq, compile_part part)
{
    switch (part) {
    case PART_TOOL:
        add_number(h, NKI_VERSION_MAJOR * 1000000 + NKI_VERSION_MINOR * 1000 + NKI_VERSION_PATCH);
        add_number(h, tables_hash());
        break;
    case PART_SOURCE:
        add_text(h, rq->path);
        add(h, rq->text, rq->text ? rq->text_len : 0);
        break;
    case PART_ENTRY: add_text(h, rq->entry); break;
    case PART_TENSORS: add_args(h, rq, false); break;
    case PART_VALUES: add_args(h, rq, true); break;
    case PART_LAUNCH:
        add_number(h, rq->grid);
        add_number(h, rq->rank);
        add_number(h, rq->list);
        add_number(h, rq->verify);
        add_number(h, rq->spill);
        add_number(h, rq->fp32_store);
        add_text(h, rq->target->name);
        break;
    case PART_SETTINGS: add_settings(h, rq); break;
    case PART_COUNT: break;
    }
}

const char *const compile_part_words[PART_COUNT] = {
#define COMPILE_PART_WORDS(id, words) words,
    COMPILE_PARTS(COMPILE_PART_WORDS)
#undef COMPILE_PART_WORDS
};

compile_digest compile_key(const compile_request *rq)
{
    XXH3_state_t h;
    XXH3_INITSTATE(&h);
    XXH3_128bits_reset(&h);
    for (int part = 0; part < PART_COUNT; part++) {
        add_part(&h, rq, (compile_part)part);
    }
    XXH128_hash_t d = XXH3_128bits_digest(&h);
    return (compile_digest){d.low64, d.high64};
}

void compile_parts(const compile_request *rq, uint64_t out[PART_COUNT])
{
    XXH3_state_t h;
    XXH3_INITSTATE(&h);
    for (int part = 0; part < PART_COUNT; part++) {
        XXH3_128bits_reset(&h);
        add_part(&h, rq, (compile_part)part);
        out[part] = XXH3_128bits_digest(&h).low64;
    }
}
