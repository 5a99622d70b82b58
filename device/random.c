#include "device/internal.h"

// Random generators. A lane of the Vector engine has a 32-bit linear feedback register (targets of
// generation 2 and 3) and four XORWOW generators (generation 4); a lane of the GpSimd engine one
// XORWOW generator. docs/numerics.md has the seeding.

enum { STATES = 4, WORDS = 6 };

// A 64-bit mix (SplitMix64's finalizer).
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void seed_xorwow(uint32_t w[WORDS], uint64_t *s, uint64_t salt)
{
    for (int i = 0; i < WORDS; i++) {
        *s += 0x9e3779b97f4a7c15u;
        w[i] = (uint32_t)(mix(*s + salt) >> 32);
    }
    w[0] |= 1;  // x..v must not all be zero
}

static void seed_lane(rng_lane *l, uint32_t lane, uint32_t seed, bool vector, bool gpsimd)
{
    uint64_t s = (uint64_t)seed << 32 | lane;
    for (int k = 0; vector && k < STATES; k++) {
        seed_xorwow(l->vector + k * WORDS, &s, 0);
    }
    if (vector) {
        uint32_t f = (uint32_t)mix(s + 0x5851f42d4c957f2du);
        l->lfsr = f ? f : 1;
    }
    if (gpsimd) {
        seed_xorwow(l->gpsimd, &s, 0x632be59bd9b4e019u);
    }
}

void rng_seed_all(device_core *c, uint32_t seed)
{
    c->rng_seed = seed;
    c->rng_ready = false;
}

// Most runs draw nothing: the lanes are seeded at the first draw.
static void ready(device_core *c)
{
    for (uint32_t i = 0; i < PARTS && !c->rng_ready; i++) {
        seed_lane(&c->rng[i], i + PARTS * c->rank, c->rng_seed, true, true);
    }
    c->rng_ready = true;
}

static inline uint32_t next_xorwow(uint32_t *w)
{
    uint32_t t = w[0] ^ w[0] >> 2;
    w[0] = w[1];
    w[1] = w[2];
    w[2] = w[3];
    w[3] = w[4];
    w[4] = w[4] ^ w[4] << 4 ^ t ^ t << 1;
    w[5] += 362437;
    return w[4] + w[5];
}

static inline uint32_t next_lfsr(uint32_t *s)
{
    uint32_t v = *s;
    v ^= v << 13;
    v ^= v >> 17;
    v ^= v << 5;
    return *s = v;
}

// n words of a lane; a further call within one instruction starts at a multiple of STATES. engine:
// ENG_VECTOR or ENG_GPSIMD.
static void draw(const exec *x, uint32_t lane, engine_id engine, size_t n, uint32_t *out)
{
    rng_lane *l = &x->core->rng[lane % PARTS];
    ready(x->core);
    if (engine == ENG_GPSIMD) {
        for (size_t i = 0; i < n; i++) {
            out[i] = next_xorwow(l->gpsimd);
        }
    } else if (x->core->t->gen >= 4) {
        for (size_t i = 0; i < n; i++) {
            out[i] = next_xorwow(l->vector + i % STATES * WORDS);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            out[i] = next_lfsr(&l->lfsr);
        }
    }
}

static uint8_t lane_of(const binder *b, const opnd *o)
{
    int64_t stride =
        o->base == BASE_PSUM ? core_psum_stride(b->p->target) : core_sbuf_stride(b->p->target);
    return (uint8_t)(o->base <= BASE_PSUM ? o->offset / stride : 0);
}

static void run_rng(exec *x, const bound *b, const tile *t)
{
    engine_id e = (engine_id)x->dp->p->instrs.at[b->instr].engine;
    for (uint32_t r = 0; r < t[0].parts; r++) {
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            draw(x, b->lane0 + r, e, n, x->s->raw[1]);
            store_bits(x, &t[0], r, e0, n, x->s->raw[1]);
        }
    }
}

bool bind_rng(binder *b)
{
    if (bind_operand(b, 0, true) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    b->b->lane0 = lane_of(b, &b->o[0]);
    return bind_done(b, run_rng, NULL, true);
}

static void run_seed(exec *x, const bound *b, const tile *t)
{
    uint32_t seed = 0;
    (void)b;
    gather(&seed, t[0].p, t[0].l, 0, 1, t[0].size);
    ready(x->core);
    for (uint32_t i = 0; i < PARTS; i++) {
        seed_lane(&x->core->rng[i], i, seed, true, false);
    }
}

bool bind_set_rng_seed(binder *b)
{
    if (bind_operand(b, 0, false) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    return bind_done(b, run_seed, NULL, true);
}

// The words of a generator in the order x y z w v d, of the Vector engine state after state.
static uint32_t *state_of(const exec *x, uint32_t lane, uint32_t words)
{
    rng_lane *l = &x->core->rng[lane % PARTS];
    return words == WORDS ? l->gpsimd : l->vector;
}

static void run_set_state(exec *x, const bound *b, const tile *t)
{
    ready(x->core);
    for (uint32_t r = 0; r < t[0].parts; r++) {
        uint32_t *w = state_of(x, b->lane0 + r, (uint32_t)t[0].l->n);
        gather(w, t[0].p + (int64_t)r * t[0].ps, t[0].l, 0, t[0].l->n, sizeof *w);
    }
}

static void run_get_state(exec *x, const bound *b, const tile *t)
{
    ready(x->core);
    for (uint32_t r = 0; r < t[0].parts; r++) {
        const uint32_t *w = state_of(x, b->lane0 + r, (uint32_t)t[0].l->n);
        scatter(t[0].p + (int64_t)r * t[0].ps, t[0].l, 0, w, t[0].l->n, sizeof *w);
    }
}

static bool bind_state(binder *b, exec_fn run, bool out)
{
    uint32_t words = b->in->engine == ENG_GPSIMD ? WORDS : STATES * WORDS;
    if (bind_operand(b, 0, out) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    if (b->o[0].l->n != words || b->o[0].size != sizeof(uint32_t)) {
        return bind_fail(b, "a state is %u words of 32 bits", words);
    }
    b->b->lane0 = lane_of(b, &b->o[0]);
    return bind_done(b, run, NULL, true);
}

bool bind_rand_set_state(binder *b)
{
    return bind_state(b, run_set_state, false);
}

bool bind_rand_get_state(binder *b)
{
    return bind_state(b, run_get_state, true);
}

typedef struct rand_args {
    int8_t opnd[2];
    float imm[2];
} rand_args;

static bool rand_scalar(binder *b, rand_args *a, int i, uint32_t param)
{
    ir_arg v = bind_arg(b, param);
    a->opnd[i] = -1;
    if (v.kind != IRA_VIEW) {
        a->imm[i] = v.kind == IRA_F32    ? ira_float(v)
                    : v.kind == IRA_NONE ? 0
                                         : (float)ira_integer(v);
        return true;
    }
    int o = bind_operand(b, param, false);
    a->opnd[i] = (int8_t)o;
    return o >= 0 && bind_computes(b, o) &&
           (b->o[o].l->n == 1 && b->o[o].l->parts == b->o[0].l->parts
                ? true
                : bind_fail(b, "%s is not one value a partition", b->info->params[param].name));
}

static float row_value(exec *x, const tile *t, const rand_args *a, int i, uint32_t r)
{
    float v = a->imm[i];
    if (a->opnd[i] >= 0) {
        crows c = load_rows(x, &t[a->opnd[i]], r, 1, 0, 1, &v);
        memcpy(&v, c.p, sizeof v);
    }
    return v;
}

// min + (max - min) * u, u = the top 24 bits / 2^24: [min, max).
static void run_rand2(exec *x, const bound *b, const tile *t)
{
    const rand_args *a = b->a;
    float *out = x->s->buf[2];
    for (uint32_t r = 0; r < t[0].parts; r++) {
        float lo = row_value(x, t, a, 0, r), hi = row_value(x, t, a, 1, r);
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            uint32_t *w = x->s->raw[1];
            draw(x, b->lane0 + r, ENG_VECTOR, n, w);
            for (size_t i = 0; i < n; i++) {
                float u = (float)(w[i] >> 8) * 0x1p-24f;
                out[i] = lo + (hi - lo) * u;
            }
            store_rows(x, &t[0], r, 1, e0, n, (crows){out, 0});
        }
    }
}

bool bind_rand2(binder *b)
{
    rand_args *a = BIND_ARGS(b, rand_args);
    if (bind_operand(b, 0, true) < 0 || !b->o[0].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    b->b->lane0 = lane_of(b, &b->o[0]);
    return bind_computes(b, 0) && rand_scalar(b, a, 0, 1) && rand_scalar(b, a, 1, 2) &&
           bind_done(b, run_rand2, a, false);
}

// An element is zeroed where u < prob, u as in rand2: prob 0 keeps all, prob 1 none.
static void run_dropout(exec *x, const bound *b, const tile *t)
{
    const rand_args *a = b->a;
    for (uint32_t r = 0; r < t[0].parts; r++) {
        float prob = row_value(x, t, a, 0, r);
        for (uint64_t e0 = 0; e0 < t[0].l->n; e0 += CHUNK) {
            size_t n = t[0].l->n - e0 < CHUNK ? (size_t)(t[0].l->n - e0) : CHUNK;
            uint32_t *w = x->s->raw[1], *v = x->s->raw[2];
            draw(x, b->lane0 + r, ENG_VECTOR, n, w);
            load_bits(x, &t[1], r, e0, n, v);
            for (size_t i = 0; i < n; i++) {
                v[i] = (float)(w[i] >> 8) * 0x1p-24f < prob ? 0 : v[i];
            }
            store_bits(x, &t[0], r, e0, n, v);
        }
    }
}

bool bind_dropout(binder *b)
{
    rand_args *a = BIND_ARGS(b, rand_args);
    if (bind_operand(b, 0, true) < 0 || bind_operand(b, 1, false) < 0 || !b->o[0].l || !b->o[1].l) {
        return b->err ? false : bind_fail(b, "a tensor is missing");
    }
    if (b->o[0].dtype != b->o[1].dtype) {
        return bind_fail(b, "dst is %s, data is %s", dtype_name((dtype)b->o[0].dtype),
                         dtype_name((dtype)b->o[1].dtype));
    }
    b->b->lane0 = lane_of(b, &b->o[1]);
    return bind_same_shape(b, 0, 1) && rand_scalar(b, a, 0, 2) &&
           bind_done(b, run_dropout, a, true);
}
