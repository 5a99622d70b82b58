#include "device/internal.h"

void device_convert(void *dst, dtype dd, ptrdiff_t dst_stride_bytes, const void *src, dtype sd,
                    ptrdiff_t src_stride_bytes, size_t n)
{
    convert_with(kern_get(), dst, dd, dst_stride_bytes, src, sd, src_stride_bytes, n);
}

void convert_with(const kernels *k, void *dst, dtype dd, ptrdiff_t dst_stride_bytes,
                  const void *src, dtype sd, ptrdiff_t src_stride_bytes, size_t n)
{
    enum { STEP = 256 };
    unsigned dsize = dtype_size(dd), ssize = dtype_size(sd);
    char *d = dst;
    const char *s = src;
    if (dd == sd) {
        copy_strided(d, dst_stride_bytes, s, src_stride_bytes, n, ssize);
        return;
    }
    if (!k->load[sd] || !k->store[dd]) {
        return;  // packed types have no values
    }
    while (n) {
        size_t m = n < STEP ? n : STEP;
        float v[STEP];
        uint32_t raw[STEP];
        const void *in = s;
        if (src_stride_bytes != (ptrdiff_t)ssize) {
            copy_strided((char *)raw, ssize, s, src_stride_bytes, m, ssize);
            in = raw;
        }
        k->load[sd](v, in, m);
        if (dst_stride_bytes == (ptrdiff_t)dsize) {
            k->store[dd](d, v, m);
        } else {
            k->store[dd](raw, v, m);
            copy_strided(d, dst_stride_bytes, (const char *)raw, dsize, m, dsize);
        }
        d += (ptrdiff_t)m * dst_stride_bytes;
        s += (ptrdiff_t)m * src_stride_bytes;
        n -= m;
    }
}
