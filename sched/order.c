#include "sched/order.h"

#include "sched/live.h"

// Memory is a list of segments, in buckets so that few are looked at. A segment knows who wrote it
// last and who read it since, one reader for each engine.

enum { BUCKET_ROWS = 4096, RUNS_MAX = 64, DEPTH_MAX = 4 };

typedef struct segment {
    struct segment *next;
    uint64_t lo, hi;  // bytes
    uint32_t writer;  // instruction + 1
    uint32_t reader[ENG_COUNT];
} segment;

typedef struct space_map {
    segment **bucket;
    uint64_t bytes, shift;  // of a bucket: 1 << shift
} space_map;

typedef struct orderer {
    arena *mem;
    const ir *p;
    order *o;
    space_map chip[2][4];  // SBUF, PSUM; quadrants of 32 partitions
    space_map *hbm;        // of each tensor; none: bytes 0
    bool quadrants;        // some operand begins past partition 31
    segment *spare;
    // Edges of the instruction at hand.
    VEC(uint32_t) now;
    // Edges in the order found; a loop body is walked twice.
    VEC(uint64_t) edges;  // consumer << 32 | producer
    access_list acc;
    uint32_t *reg_writer;  // of each register: instruction + 1
} orderer;

static void map_init(orderer *od, space_map *m, uint64_t bytes, uint64_t shift)
{
    m->bytes = bytes;
    m->shift = shift;
    m->bucket = NEW_N(od->mem, segment *, (bytes >> shift) + 1);
}

static segment *segment_new(orderer *od, segment from, segment *next)
{
    segment *s = od->spare;
    if (s) {
        od->spare = s->next;
    } else {
        s = NEW(od->mem, segment);
    }
    *s = from;
    s->next = next;
    return s;
}

static void edge(orderer *od, uint32_t from, uint32_t to, bool same_engine_too)
{
    if (!from || from - 1 == to) {
        return;
    }
    engine_id e = (engine_id)od->p->instrs.at[from - 1].engine;
    if (e == (engine_id)od->p->instrs.at[to].engine && e != ENG_DMA &&
        (!same_engine_too || e == ENG_TENSOR)) {
        return;
    }
    for (uint32_t k = od->now.n; k-- > 0;) {
        if (od->now.at[k] == from - 1) {
            return;
        }
    }
    vec_push(od->mem, &od->now, from - 1);
}

static void touch(orderer *od, segment *s, uint32_t i, bool writes, bool reads)
{
    edge(od, s->writer, i, reads);
    if (!writes) {
        s->reader[od->p->instrs.at[i].engine] = i + 1;
        return;
    }
    for (unsigned e = 0; e < ENG_COUNT; e++) {
        edge(od, s->reader[e], i, false);
        s->reader[e] = 0;
    }
    s->writer = i + 1;
}

// Bytes [lo, hi) within one bucket.
static void touch_bucket(orderer *od, segment **at, uint64_t lo, uint64_t hi, uint32_t i,
                         bool writes, bool reads)
{
    segment *merged = NULL;
    while (lo < hi) {
        while (*at && (*at)->hi <= lo) {
            at = &(*at)->next;
        }
        segment *s = *at;
        if (!s || s->lo > lo) {  // untouched so far
            uint64_t end = s && s->lo < hi ? s->lo : hi;
            s = *at = segment_new(od, (segment){.lo = lo, .hi = end}, s);
        } else if (s->lo < lo) {
            segment head = *s;
            head.hi = lo;
            s->lo = lo;
            s = segment_new(od, head, s);
            *at = s;
            at = &s->next;
            s = *at;
        }
        if (s->hi > hi) {
            segment tail = *s;
            tail.lo = hi;
            s->hi = hi;
            s->next = segment_new(od, tail, s->next);
        }
        touch(od, s, i, writes, reads);
        lo = s->hi;
        if (writes && merged && merged->hi == s->lo) {
            merged->hi = s->hi;
            merged->next = s->next;
            s->next = od->spare;
            od->spare = s;
            at = &merged->next;
        } else {
            merged = s;
            at = &s->next;
        }
    }
}

static void touch_run(orderer *od, space_map *m, uint64_t lo, uint64_t hi, uint32_t i, bool writes,
                      bool reads)
{
    hi = hi < m->bytes ? hi : m->bytes;
    while (lo < hi) {
        uint64_t end = ((lo >> m->shift) + 1) << m->shift;
        end = end < hi ? end : hi;
        touch_bucket(od, &m->bucket[lo >> m->shift], lo, end, i, writes, reads);
        lo = end;
    }
}

typedef struct stride_span {
    uint64_t stride, count;
} stride_span;

// Runs of bytes that v touches in a partition (HBM: in its tensor): the two outer spans that are
// left after merging, and a run.
static uint64_t runs_of(const ir *p, const ir_view *v, stride_span out[2], uint64_t *lo)
{
    bool chip = buffer_on_chip((buffer_kind)p->tensors.at[v->tensor].buffer);
    const ir_dim *d = ir_dims(p, v);
    uint64_t size = dtype_size((dtype)v->dtype), run = size;
    stride_span s[IR_MAX_DIMS];
    uint32_t n = 0;
    int64_t low = v->offset * (int64_t)size;
    for (uint32_t k = chip ? 1 : 0; k < ir_ndim(p, v); k++) {
        int64_t stride = d[k].stride * (int64_t)size;
        if (d[k].count <= 1 || stride == 0) {
            continue;
        }
        if (stride < 0) {
            low += stride * (int64_t)(d[k].count - 1);
            stride = -stride;
        }
        uint32_t at = n++;
        for (; at && s[at - 1].stride > (uint64_t)stride; at--) {
            s[at] = s[at - 1];
        }
        s[at] = (stride_span){(uint64_t)stride, d[k].count};
    }
    uint32_t left = 0;
    uint64_t runs = 1;
    for (uint32_t k = 0; k < n; k++) {
        bool dense = s[k].stride <= run || runs * s[k].count > RUNS_MAX || left == 2;
        if (dense && left == 0) {
            run += s[k].stride * (s[k].count - 1);
        } else if (dense) {  // too many pieces: all between the first and the last byte
            for (uint32_t j = 0; j < left; j++) {
                run += out[j].stride * (out[j].count - 1);
            }
            run += s[k].stride * (s[k].count - 1);
            left = 0;
            runs = 1;
        } else {
            out[left++] = s[k];
            runs *= s[k].count;
        }
    }
    for (; left < 2; left++) {
        out[left] = (stride_span){0, 1};
    }
    *lo = (uint64_t)low;
    return run;
}

static void touch_view(orderer *od, uint32_t view, unsigned kind, uint32_t i)
{
    const ir *p = od->p;
    const ir_view *v = &p->views.at[view];
    const ir_tensor *t = &p->tensors.at[v->tensor];
    bool chip = buffer_on_chip((buffer_kind)t->buffer);
    bool writes = (kind & ACC_WRITE) != 0, reads = (kind & ACC_READ) != 0;
    stride_span s[2];
    uint64_t lo, run;
    if (v->dyn) {  // anywhere in the tensor
        lo = 0;
        run = t->size_bytes;
        s[0] = s[1] = (stride_span){0, 1};
    } else {
        run = runs_of(p, v, s, &lo);
    }
    unsigned q0 = 0, q1 = 0;
    space_map *m = &od->hbm[v->tensor];
    if (chip) {
        m = od->chip[t->buffer];
        lo += t->addr_bytes;
        if (od->quadrants) {
            const ir_dim *d = ir_dims(p, v);
            uint32_t part = t->addr_part + v->part;
            q0 = part / 32 & 3;
            q1 = (part + (uint32_t)d->stride * (d->count - 1)) / 32;
            q1 = q1 < 4 ? q1 : 3;
            if (v->dyn) {
                q0 = 0;
                q1 = 3;
            }
        }
    } else if (!m->bytes) {
        return;
    }
    for (unsigned q = q0; q <= q1; q++) {
        for (uint64_t a = 0; a < s[1].count; a++) {
            for (uint64_t b = 0; b < s[0].count; b++) {
                uint64_t at = lo + a * s[1].stride + b * s[0].stride;
                touch_run(od, &m[q], at, at + run, i, writes, reads);
            }
        }
    }
}

static void read_registers(orderer *od, ir_arg a, uint32_t i)
{
    const ir *p = od->p;
    if (a.kind == IRA_REG) {
        edge(od, od->reg_writer[a.v], i, false);
    } else if (a.kind == IRA_VIEW) {
        uint32_t dyn = p->views.at[a.v].dyn;
        if (dyn && p->dyns.at[dyn].kind == DYN_REG) {
            edge(od, od->reg_writer[p->dyns.at[dyn].src], i, false);
        }
    } else if (a.kind == IRA_LIST) {
        for (uint32_t k = 0; k < (uint32_t)a.aux; k++) {
            read_registers(od, p->args.at[a.v + k], i);
        }
    }
}

// Each sequencer counts its loops itself, so only registers that memory or the kernel sets order
// instructions.
static void visit_registers(orderer *od, uint32_t i)
{
    const ir *p = od->p;
    const ir_instr *in = &p->instrs.at[i];
    bool loop = in->op == ISA_loop_for;
    for (uint32_t k = 0; k < in->nargs; k++) {
        ir_arg a = p->args.at[in->args + k];
        if (isa_table[in->op].params[k].type != PT_REGOUT) {
            read_registers(od, a, i);
        } else if (a.kind == IRA_REG) {
            od->reg_writer[a.v] = loop ? 0 : i + 1;
        }
    }
}

static void visit(orderer *od, uint32_t i)
{
    const ir *p = od->p;
    const ir_instr *in = &p->instrs.at[i];
    if (in->op == ISA_fill_uninit || in->op == ISA_device_print || in->op == ISA_loop_end) {
        return;
    }
    od->now.n = 0;
    access_collect(od->mem, p, in, &od->acc);
    // A matmul that adds reads what it writes: one visit, as a write.
    for (uint32_t k = 0; k < od->acc.n; k++) {
        touch_view(od, od->acc.at[k].view, od->acc.at[k].kind, i);
    }
    if (p->registers) {
        visit_registers(od, i);
    }
    for (uint32_t k = in->deps; k && p->deps.at[k] != IR_DEPS_END; k++) {
        edge(od, p->deps.at[k] + 1, i, true);
    }
    for (uint32_t k = 0; k < od->now.n; k++) {
        vec_push(od->mem, &od->edges, (uint64_t)i << 32 | od->now.at[k]);
    }
}

// Instructions [i, end); a loop's body once more when it ends, for what it carries.
static uint32_t walk(orderer *od, uint32_t i, uint32_t end, unsigned depth)
{
    const ir *p = od->p;
    while (i < end) {
        const ir_instr *in = &p->instrs.at[i];
        if (in->op == ISA_loop_for || in->op == ISA_loop_while) {
            visit(od, i);
            uint32_t after = walk(od, i + 1, end, depth + 1);
            if (depth < DEPTH_MAX) {
                walk(od, i + 1, end, depth + 1);
            }
            i = after;
        } else if (in->op == ISA_loop_end) {
            return i + 1;
        } else {
            visit(od, i++);
        }
    }
    return i;
}

static void prepare_spaces(orderer *od)
{
    const ir *p = od->p;
    const target *t = p->target;
    bool *written = NEW_N(od->mem, bool, p->tensors.n), *seen = NEW_N(od->mem, bool, p->tensors.n);
    for (uint32_t i = 0; i < p->instrs.n; i++) {
        if (p->instrs.at[i].op == ISA_fill_uninit) {
            continue;
        }
        access_collect(od->mem, p, &p->instrs.at[i], &od->acc);
        for (uint32_t k = 0; k < od->acc.n; k++) {
            const ir_view *v = &p->views.at[od->acc.at[k].view];
            const ir_tensor *ten = &p->tensors.at[v->tensor];
            seen[v->tensor] |= (od->acc.at[k].kind & ACC_READ) != 0;
            written[v->tensor] |= (od->acc.at[k].kind & ACC_WRITE) != 0;
            od->quadrants |=
                buffer_on_chip((buffer_kind)ten->buffer) && ten->addr_part + v->part >= 32;
        }
    }
    for (unsigned q = 0; q < (od->quadrants ? 4u : 1u); q++) {
        map_init(od, &od->chip[BUF_SBUF][q], t->sbuf_partition_bytes, 11);
        map_init(od, &od->chip[BUF_PSUM][q], t->psum_partition_bytes, 11);
    }
    od->hbm = NEW_N(od->mem, space_map, p->tensors.n);
    for (uint32_t k = 0; k < p->tensors.n; k++) {
        const ir_tensor *ten = &p->tensors.at[k];
        if (!buffer_on_chip((buffer_kind)ten->buffer) && written[k] && seen[k]) {
            uint64_t shift = 11;
            while (ten->size_bytes >> shift > BUCKET_ROWS) {
                shift++;
            }
            map_init(od, &od->hbm[k], ten->size_bytes, shift);
        }
    }
}

// Counting sort of the edges by consumer; equal ones (of a loop walked twice) once.
static void pack(orderer *od)
{
    order *o = od->o;
    uint32_t n = od->p->instrs.n;
    o->first = NEW_N(od->mem, uint32_t, n + 1);
    uint32_t *at = NEW_N(od->mem, uint32_t, n + 1);
    for (uint32_t k = 0; k < od->edges.n; k++) {
        at[od->edges.at[k] >> 32]++;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= n; i++) {
        uint32_t c = i < n ? at[i] : 0;
        at[i] = o->first[i] = sum;
        sum += c;
    }
    vec_reserve(od->mem, &o->pred, sum);
    for (uint32_t k = 0; k < od->edges.n; k++) {
        o->pred.at[at[od->edges.at[k] >> 32]++] = (uint32_t)od->edges.at[k];
    }
    o->pred.n = sum;
}

void order_make(arena *mem, const ir *p, order *o)
{
    *o = (order){0};
    orderer od = {.mem = mem, .p = p, .o = o};
    od.reg_writer = NEW_N(mem, uint32_t, p->registers + 1);
    prepare_spaces(&od);
    walk(&od, 0, p->instrs.n, 0);
    pack(&od);
}
