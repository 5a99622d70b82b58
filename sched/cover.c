#include "sched/cover.h"

typedef struct bytes_dim {
    uint64_t stride, count;
} bytes_dim;

// The free dimensions of v by ascending stride, in bytes, all strides positive; single-element and
// broadcast dimensions dropped. *off becomes the lowest byte touched.
static uint32_t sorted_dims(const ir *p, const ir_view *v, bytes_dim *out, uint64_t *off)
{
    const ir_tensor *t = &p->tensors.at[v->tensor];
    const ir_dim *d = ir_dims(p, v);
    int64_t size = (int64_t)dtype_size((dtype)v->dtype);
    int64_t low = v->offset * size;
    uint32_t n = 0;
    for (uint32_t i = buffer_on_chip((buffer_kind)t->buffer); i < ir_ndim(p, v); i++) {
        int64_t stride = d[i].stride * size;
        if (d[i].count == 1 || stride == 0) {
            continue;
        }
        if (stride < 0) {
            low += stride * (int64_t)(d[i].count - 1);
            stride = -stride;
        }
        uint32_t at = n++;
        for (; at && out[at - 1].stride > (uint64_t)stride; at--) {
            out[at] = out[at - 1];
        }
        out[at] = (bytes_dim){(uint64_t)stride, d[i].count};
    }
    *off = (uint64_t)low;
    return n;
}

static void partition_range(const ir *p, const ir_view *v, region *r)
{
    r->p0 = 0;
    r->p1 = 1;
    if (buffer_on_chip((buffer_kind)p->tensors.at[v->tensor].buffer)) {
        const ir_dim *d = ir_dims(p, v);
        r->p0 = v->part;
        r->p1 = v->part + (uint32_t)d->stride * (d->count - 1) + 1;
    }
}

bool region_exact(const ir *p, const ir_view *v, region *out)
{
    bytes_dim d[IR_MAX_DIMS];
    uint32_t n = sorted_dims(p, v, d, &out->off);
    partition_range(p, v, out);
    if (buffer_on_chip((buffer_kind)p->tensors.at[v->tensor].buffer)) {
        const ir_dim *d0 = ir_dims(p, v);
        if (d0->count > 1 && d0->stride > 1) {
            return false;
        }
    }
    out->run = dtype_size((dtype)v->dtype);
    out->stride = 0;
    out->count = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (out->count == 1 && d[i].stride == out->run) {
            out->run *= d[i].count;
        } else if (out->count == 1 && d[i].stride > out->run) {
            out->stride = d[i].stride;
            out->count = d[i].count;
        } else if (out->count > 1 && d[i].stride == out->stride * out->count) {
            out->count *= d[i].count;
        } else {
            return false;
        }
    }
    return true;
}

region region_bound(const ir *p, const ir_view *v)
{
    bytes_dim d[IR_MAX_DIMS];
    region r = {.count = 1};
    uint32_t n = sorted_dims(p, v, d, &r.off);
    partition_range(p, v, &r);
    r.run = dtype_size((dtype)v->dtype);
    for (uint32_t i = 0; i < n; i++) {
        r.run += d[i].stride * (d[i].count - 1);
    }
    return r;
}

region region_whole(const ir_tensor *t)
{
    return (region){
        0, buffer_on_chip((buffer_kind)t->buffer) ? t->partitions : 1, 0, t->size_bytes, 0, 1};
}

static bool within(const region *e, const region *r)
{
    if (r->p0 < e->p0 || r->p1 > e->p1 || r->off < e->off) {
        return false;
    }
    uint64_t rel = r->off - e->off;
    if (e->count == 1) {
        return rel + r->stride * (r->count - 1) + r->run <= e->run;
    }
    if (r->count > 1 && r->stride != e->stride) {
        return false;
    }
    return rel % e->stride + r->run <= e->run && rel / e->stride + r->count <= e->count;
}

// Unites b with a where the union is again a region.
static bool unite(region *a, const region *b)
{
    if (a->p0 == b->p0 && a->p1 == b->p1) {
        const region *lo = a->off <= b->off ? a : b, *hi = lo == a ? b : a;
        uint64_t rel = hi->off - lo->off;
        if (lo->count == 1 && hi->count == 1 && rel <= lo->run) {
            uint64_t end = rel + hi->run > lo->run ? rel + hi->run : lo->run;
            *a = (region){a->p0, a->p1, lo->off, end, 0, 1};
            return true;
        }
        if (lo->count > 1 && lo->count == hi->count && lo->stride == hi->stride && rel == lo->run) {
            region u = *lo;
            u.run += hi->run;
            if (u.run >= u.stride) {
                u = (region){u.p0, u.p1, u.off, u.stride * (u.count - 1) + u.run, 0, 1};
            }
            *a = u;
            return true;
        }
        uint64_t stride = lo->count > 1 ? lo->stride : hi->stride;
        if (stride && lo->run == hi->run && rel == stride * lo->count &&
            (lo->count == 1 || hi->count == 1 || lo->stride == hi->stride)) {
            *a = (region){a->p0, a->p1, lo->off, lo->run, stride, lo->count + hi->count};
            return true;
        }
        return false;
    }
    if (a->off == b->off && a->run == b->run && a->stride == b->stride && a->count == b->count &&
        a->p0 <= b->p1 && b->p0 <= a->p1) {
        a->p0 = a->p0 < b->p0 ? a->p0 : b->p0;
        a->p1 = a->p1 > b->p1 ? a->p1 : b->p1;
        return true;
    }
    return false;
}

void cover_add(cover *c, region r)
{
    for (uint32_t i = c->n; i-- > 0;) {
        if (within(&c->at[i], &r)) {
            return;
        }
        if (within(&r, &c->at[i]) || unite(&r, &c->at[i])) {
            c->at[i] = c->at[--c->n];
            i = c->n;  // a larger r may reach what it did not before
        }
    }
    if (c->n < COVER_MAX) {
        c->at[c->n++] = r;
    }
}

bool cover_has(const cover *c, const region *r)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (within(&c->at[i], r)) {
            return true;
        }
    }
    return false;
}
