// C inside a kernel: between two parts that the chip does well, the kernel calls a function of this
// program on a tensor in HBM.
#include <nki/nki.h>
#include <stdio.h>
#include <string.h>

static const char text[] = "import nki\n"
                           "import nki.isa as nisa\n"
                           "import nki.language as nl\n"
                           "from nki.host import call\n"
                           "\n"
                           "@nki.jit\n"
                           "def squares_sorted(x):\n"
                           "    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
                           "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
                           "    nisa.dma_copy(dst=t, src=x)\n"
                           "    nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.multiply)\n"
                           "    nisa.dma_copy(dst=y, src=t)\n"
                           "    call('sort_rows', 'i32(inout f32[n,m] x, i64 n, i64 m)', y)\n"
                           "    return y\n";

static int32_t sort_rows(float *x, int64_t n, int64_t m)
{
    for (float *row = x; row < x + n * m; row += m) {
        for (int64_t i = 1; i < m; i++) {
            for (int64_t k = i; k > 0 && row[k - 1] > row[k]; k--) {
                float swap = row[k];
                row[k] = row[k - 1];
                row[k - 1] = swap;
            }
        }
    }
    return 0;
}

int main(void)
{
    nki_context *ctx;
    nki_op *op = NULL;
    nki_tensor *x = NULL, *y = NULL;
    const float in[2 * 4] = {3, -1, 2, -4, 0, 5, -5, 1};
    const float want[2 * 4] = {1, 4, 9, 16, 0, 1, 25, 25};
    float out[2 * 4] = {0};
    const nki_source src = {"squares.nki", text, sizeof text - 1};
    if (nki_context_create(NULL, &ctx, NULL) != NKI_OK) {
        return 2;
    }
    nki_status st = nki_host_function(ctx, "sort_rows", "i32(inout f32[n,m] x, i64 n, i64 m)",
                                      (nki_fn)sort_rows, NULL);
    st = st ? st : nki_op_open(ctx, &src, NULL, NULL, &op);
    st =
        st ? st : nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){2, 4}, in, NKI_FLOAT32, &x);
    st = st ? st : nki_op_call(op, NULL, NKI_ARGS(NKI_T(x)), &y, 1, NULL);
    st = st ? st : nki_tensor_copy_out(y, out, NKI_FLOAT32, 2 * 4);
    if (st != NKI_OK) {
        fprintf(stderr, "%s\n", nki_context_error(ctx));
    } else {
        printf("squares in order: %g %g %g %g\n", (double)out[0], (double)out[1], (double)out[2],
               (double)out[3]);
    }
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_op_release(op);
    nki_context_release(ctx);
    return st == NKI_OK && memcmp(out, want, sizeof want) == 0 ? 0 : 1;
}
