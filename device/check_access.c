#include "device/check.h"
#include "lang/place.h"

#include <stdlib.h>

// Which bytes an instruction reads and writes. The instruction table says which operands it reads
// and which it writes wholly. Where that leaves it open - a destination that may be written in
// part, a source of which not every byte counts - the machine itself is asked: the instruction is
// carried out on trial with different bytes in the places in question, and everything is put back.

// ---- snapshots

static void snap_reset(snapshot *s)
{
    s->n = s->used = 0;
}

static bool room_for(void **at, uint64_t *cap, uint64_t want, size_t size)
{
    if (want <= *cap) {
        return true;
    }
    uint64_t room = want * 2;
    void *p = realloc(*at, room * size);
    if (p) {
        *at = p;
        *cap = room;
    }
    return p != NULL;
}

static void snap_add(snapshot *s, char *at, uint64_t len)
{
    if (!room_for((void **)&s->piece, &s->cap, s->n + 1, sizeof *s->piece) ||
        !room_for((void **)&s->bytes, &s->room, s->used + len, 1)) {
        s->failed = true;
        return;
    }
    s->piece[s->n++] = (struct snapshot_piece){at, len, s->used};
    memcpy(s->bytes + s->used, at, len);
    s->used += len;
}

static void snap_restore(const snapshot *s)
{
    for (uint64_t i = s->n; i-- > 0;) {
        memcpy(s->piece[i].at, s->bytes + s->piece[i].saved, s->piece[i].len);
    }
}

static void snap_fill(const snapshot *s, unsigned char byte)
{
    for (uint64_t i = 0; i < s->n; i++) {
        memset(s->piece[i].at, byte, s->piece[i].len);
    }
}

// What the pieces of `of` hold now, into s.
static void snap_look(snapshot *s, const snapshot *of)
{
    snap_reset(s);
    for (uint64_t i = 0; i < of->n; i++) {
        snap_add(s, of->piece[i].at, of->piece[i].len);
    }
}

static bool snap_same(const snapshot *s)
{
    for (uint64_t i = 0; i < s->n; i++) {
        if (memcmp(s->piece[i].at, s->bytes + s->piece[i].saved, s->piece[i].len) != 0) {
            return false;
        }
    }
    return true;
}

typedef struct snap_ctx {
    snapshot *s;
    const at_hand *a;
    bool unwritten_only;
} snap_ctx;

static bool snap_piece(void *ctx, uint64_t at, uint64_t len)
{
    const snap_ctx *k = ctx;
    uint64_t end = at + len;
    while (at < end) {
        uint64_t n = end - at;
        if (k->unwritten_only) {
            uint64_t hit = shadow_unwritten(k->a->s, at, n);
            if (hit == SHADOW_NONE) {
                break;
            }
            at = hit;
            for (n = 1; at + n < end && shadow_unwritten(k->a->s, at + n, 1) != SHADOW_NONE; n++) {
            }
        }
        snap_add(k->s, k->a->mem + at, n);
        at += n;
    }
    return true;
}

static void snap_operand(snapshot *s, const at_hand *a, bool unwritten_only)
{
    check_pieces(a, snap_piece, &(snap_ctx){s, a, unwritten_only});
}

static void snap_writes(check *c, exec *x, const bound *b, const tile *t)
{
    snap_reset(&c->writes);
    for (uint32_t k = 0; k < b->nops; k++) {
        if (b->outs >> k & 1) {
            at_hand a = check_operand(c, x, b, t, k);
            snap_operand(&c->writes, &a, false);
        }
    }
}

// ---- trials

// What has no effect outside the device. A host call has.
static bool may_try(const exec *x, const bound *b)
{
    return isa_table[x->dp->p->instrs.at[b->instr].op].group == ISAG_NISA;
}

// Carries the instruction out; its state outside the memories is put back. Its status.
static int trial(exec *x, const bound *b, const tile *t)
{
    device_core *core = x->core;
    float acc[2][PARTS];
    rng_lane *rng = malloc(sizeof core->rng);
    if (!rng) {
        return NKI_ERR_NOMEM;
    }
    diags *ds = x->ds;
    const kernels *k = x->k;
    memcpy(acc, core->acc, sizeof acc);
    memcpy(rng, core->rng, sizeof core->rng);
    bool ready = core->rng_ready;
    x->ds = NULL;
    x->k = kern_get();
    b->fn(x, b, t);
    int status = x->status;
    x->status = NKI_OK;
    x->ds = ds;
    x->k = k;
    core->rng_ready = ready;
    memcpy(core->acc, acc, sizeof acc);
    memcpy(core->rng, rng, sizeof core->rng);
    free(rng);
    return status;
}

// Whether the unwritten bytes of an operand can change what the instruction writes.
static bool matters(check *c, const at_hand *a, const tile *t)
{
    static const unsigned char other[] = {0x7f, 0xff, 0xfe};  // large, NaN or -1, large negative
    exec *x = a->x;
    if (a->index || !a->b->outs || !may_try(x, a->b)) {
        return true;
    }
    snap_writes(c, x, a->b, t);
    snap_reset(&c->reads);
    snap_operand(&c->reads, a, true);
    snap_fill(&c->reads, 0);
    bool differs = trial(x, a->b, t) != NKI_OK;
    snap_look(&c->first, &c->writes);
    for (size_t i = 0; i < sizeof other && !differs; i++) {
        snap_restore(&c->writes);
        snap_fill(&c->reads, other[i]);
        differs = trial(x, a->b, t) != NKI_OK || !snap_same(&c->first);
    }
    snap_restore(&c->writes);
    snap_restore(&c->reads);
    return differs || c->writes.failed || c->reads.failed || c->first.failed;
}

// ---- reading

typedef struct read_ctx {
    const at_hand *a;
    uint64_t first, bytes;  // unwritten
    uint64_t race;
    shadow_who other;
} read_ctx;

static bool read_piece(void *ctx, uint64_t at, uint64_t len)
{
    read_ctx *r = ctx;
    shadow *s = r->a->s;
    uint64_t hit = shadow_unwritten(s, at, len);
    if (hit != SHADOW_NONE) {
        r->first = r->bytes ? r->first : hit;
        r->bytes += shadow_count_unwritten(s, at, len);
    }
    if (s->shared) {
        shadow_who other;
        bool wrote;
        uint64_t race = shadow_race(s, SHADOW_READ, at, len, r->a->me, &other, &wrote);
        if (race != SHADOW_NONE && r->race == SHADOW_NONE) {
            r->race = race;
            r->other = other;
        }
    }
    return true;
}

static void found_race(check *c, const at_hand *a, uint64_t at, shadow_who other, const char *mine,
                       const char *theirs)
{
    const ir *p = a->x->dp->p;
    finding *f = check_first(c, a->x, a->b, D_core_race, a->o->param);
    if (f) {
        uint32_t place = p->instrs.at[a->b->instr].place;
        f->d = diag_core_race(c->ds, ir_place_loc(p, place), p->core, mine, check_element(a, at),
                              shadow_core(other), theirs);
        check_explain(a, f, f->d);
        check_note_writer(a, f->d, other, theirs);
    }
}

static void found_unwritten(check *c, const at_hand *a, const read_ctx *r)
{
    const ir *p = a->x->dp->p;
    finding *f = check_first(c, a->x, a->b, D_uninit_read, a->o->param);
    if (f) {
        const ir_instr *in = &p->instrs.at[a->b->instr];
        const char *what = a->index ? "the index of operand" : "operand";
        f->d = diag_uninit_read(c->ds, ir_place_loc(p, in->place), isa_table[in->op].name, what,
                                check_param(a->x, a->b, a->o)->name, check_element(a, r->first),
                                (unsigned long long)(r->bytes + a->o->size - 1) / a->o->size,
                                (unsigned long long)(a->o->l->parts * a->o->l->n));
        check_explain(a, f, f->d);
        if (a->ts->last) {
            check_note_writer(a, f->d, a->ts->last, "wrote to other parts of it last");
        } else {
            diag_note_add(c->ds, f->d, (loc){0}, "nothing has been written to it; it holds %s",
                          check_value(a, r->first));
        }
    }
}

static void read_operand(check *c, const at_hand *a, const tile *t)
{
    if (!a->s->shared && (!a->s->written || a->ts->full)) {
        return;
    }
    read_ctx r = {.a = a, .race = SHADOW_NONE};
    check_pieces(a, read_piece, &r);
    if (r.race != SHADOW_NONE) {
        found_race(c, a, r.race, r.other, "reads", "writes");
    }
    if (r.bytes && matters(c, a, t)) {
        found_unwritten(c, a, &r);
    }
}

// ---- writing

typedef struct write_ctx {
    const at_hand *a;
    uint64_t race;
    shadow_who other;
    bool wrote;
} write_ctx;

static bool write_piece(void *ctx, uint64_t at, uint64_t len)
{
    write_ctx *w = ctx;
    shadow *s = w->a->s;
    w->a->ts->written += shadow_write(s, at, len);
    if (s->shared) {
        shadow_who other;
        bool wrote;
        uint64_t race = shadow_race(s, SHADOW_WRITE, at, len, w->a->me, &other, &wrote);
        if (race != SHADOW_NONE && w->race == SHADOW_NONE) {
            w->race = race;
            w->other = other;
            w->wrote = wrote;
        }
    }
    return true;
}

static uint64_t tensor_bytes(const ir_tensor *t)
{
    return t->size_bytes * (buffer_on_chip((buffer_kind)t->buffer) ? t->partitions : 1u);
}

// Tensors that the kernel placed may lie over each other: theirs is counted by no one tensor.
static void written(check *c, const at_hand *a, const write_ctx *w)
{
    tensor_state *ts = a->ts;
    if (ts->last != a->me) {
        ts->before = ts->last;
        ts->last = a->me;
    }
    ts->full = !a->tensor->manual && ts->written == tensor_bytes(a->tensor);
    if (w->race != SHADOW_NONE) {
        found_race(c, a, w->race, w->other, "writes", w->wrote ? "writes" : "reads");
    }
}

// Whether a view that stays where it is covers its tensor.
static bool is_whole(const at_hand *a)
{
    const layout *l = a->t.l;
    uint64_t row = l->n * a->t.size;
    bool chip = a->o->base <= BASE_PSUM;
    return !a->o->dyn && l->contig && l->parts * row == tensor_bytes(a->tensor) &&
           (l->parts == 1 || (chip ? l->step0 == 1 : a->t.ps == (int64_t)row));
}

static void write_operand(check *c, const at_hand *a)
{
    write_ctx w = {.a = a, .race = SHADOW_NONE};
    if (a->s->shared || a->tensor->manual) {
        check_pieces(a, write_piece, &w);
    } else if (!a->ts->full && a->s->written) {
        if (is_whole(a)) {
            a->ts->written = tensor_bytes(a->tensor);
        } else {
            check_pieces(a, write_piece, &w);
        }
    }
    written(c, a, &w);
}

static bool forget_piece(void *ctx, uint64_t at, uint64_t len)
{
    shadow_forget(((const at_hand *)ctx)->s, at, len);
    return true;
}

enum { PATTERN_A = 0x55, PATTERN_B = 0xaa };

// The bytes of the destinations that come out the same whatever was there before, or that changed:
// those were written. c->writes: the destinations, c->first: what came out over PATTERN_A.
static void write_changed(check *c, const at_hand *a, uint64_t first, uint64_t end)
{
    write_ctx w = {.a = a, .race = SHADOW_NONE};
    for (uint64_t i = first; i < end; i++) {
        const struct snapshot_piece *p = &c->writes.piece[i];
        const char *was = c->first.bytes + c->first.piece[i].saved;
        uint64_t at = (uint64_t)(p->at - a->mem);
        for (uint64_t k = 0; k < p->len;) {
            uint64_t n = 0;
            while (k + n < p->len && (was[k + n] == p->at[k + n] || was[k + n] != PATTERN_A)) {
                n++;
            }
            if (n) {
                write_piece(&w, at + k, n);
            }
            k += n ? n : 1;
        }
    }
    written(c, a, &w);
}

// Destinations that may be written in part. false: a source lies there too.
static bool write_partly(check *c, exec *x, const bound *b, const tile *t)
{
    uint64_t end[MAX_OPNDS];
    snap_reset(&c->writes);
    for (uint32_t k = 0; k < b->nops; k++) {
        at_hand a = check_operand(c, x, b, t, k);
        for (uint32_t j = 0; b->outs >> k & 1 && j < b->nops; j++) {
            at_hand s = check_operand(c, x, b, t, j);
            if (!(b->outs >> j & 1) && b->o[j].l && check_overlap(&a, &s)) {
                return false;
            }
        }
        if (b->outs >> k & 1) {
            snap_operand(&c->writes, &a, false);
        }
        end[k] = c->writes.n;
    }
    snap_fill(&c->writes, PATTERN_A);
    int status = trial(x, b, t);
    snap_look(&c->first, &c->writes);
    snap_fill(&c->writes, PATTERN_B);
    status |= trial(x, b, t);
    bool known = status == NKI_OK && !c->writes.failed && !c->first.failed;
    for (uint32_t k = 0; k < b->nops && known; k++) {
        if (b->outs >> k & 1) {
            at_hand a = check_operand(c, x, b, t, k);
            write_changed(c, &a, k ? end[k - 1] : 0, end[k]);
        }
    }
    snap_restore(&c->writes);
    return known;
}

static bool may_write_partly(const check *c, const exec *x, const bound *b)
{
    const ir *p = x->dp->p;
    const ir_instr *in = &p->instrs.at[b->instr];
    const op_traits *t = check_traits(c, x, b);
    for (uint32_t i = 0; (t->skips || t->folds) && i < in->nargs; i++) {
        uint32_t v = p->args.at[in->args + i].v;
        param_type type = (param_type)isa_table[in->op].params[i].type;
        // reduce_cmd idle: the result of the fold may stay as it was.
        if ((type == PT_OOB && v == ISAE_oob_mode_skip) ||
            (type == PT_REDCMD && v == ISAE_reduce_cmd_idle && b->outs & (b->outs - 1))) {
            return true;
        }
    }
    return t->inout;
}

// ---- an instruction

static bool reads_operand(const exec *x, const bound *b, uint32_t k, bool accumulates)
{
    if (!(b->outs >> k & 1)) {
        return true;
    }
    return accumulates && check_param(x, b, &b->o[k])->type == PT_OUT && k == 0;
}

void check_accesses(check *c, exec *x, const bound *b, const tile *t)
{
    isa_id op = (isa_id)x->dp->p->instrs.at[b->instr].op;
    if (op == ISA_core_barrier) {
        return;  // its operand says what it orders
    }
    if (op == ISA_fill_uninit) {
        at_hand a = check_operand(c, x, b, t, 0);
        check_pieces(&a, forget_piece, &a);
        *a.ts = (tensor_state){0};
        return;
    }
    bool accumulates = check_accumulates(c, x, b);
    for (uint32_t k = 0; k < b->nops; k++) {
        const opnd *o = &b->o[k];
        if (!o->l) {
            continue;
        }
        if (o->dyn && x->dp->p->dyns.at[o->dyn].kind != DYN_REG) {
            at_hand ix = check_index(c, x, b, o);
            read_operand(c, &ix, t);
        }
        if (reads_operand(x, b, k, accumulates)) {
            at_hand a = check_operand(c, x, b, t, k);
            read_operand(c, &a, t);
        }
    }
    if (may_write_partly(c, x, b) && may_try(x, b) && write_partly(c, x, b, t)) {
        return;
    }
    for (uint32_t k = 0; k < b->nops; k++) {
        if (b->outs >> k & 1) {
            at_hand a = check_operand(c, x, b, t, k);
            write_operand(c, &a);
        }
    }
}
