// C between kernels: a function registered with its signature becomes an op. And the other way: a
// kernel as a plain C function.
#include <nki/nki.h>
#include <stdio.h>

// Not something that a NeuronCore does well: a median of each row, by counting.
static int32_t medians(const float *x, float *out, int64_t n, int64_t m)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t a = 0; a < m; a++) {
            int64_t below = 0, equal = 0;
            for (int64_t b = 0; b < m; b++) {
                below += x[i * m + b] < x[i * m + a];
                equal += x[i * m + b] == x[i * m + a];
            }
            if (below <= m / 2 && m / 2 < below + equal) {
                out[i] = x[i * m + a];
            }
        }
    }
    return 0;
}

int main(void)
{
    nki_context *ctx;
    nki_op *median = NULL, *softmax = NULL;
    nki_tensor *x = NULL, *y = NULL, *m = NULL, *z = NULL;
    nki_kernel *k = NULL;
    nki_fn fn = NULL;
    float in[2 * 5] = {5, 1, 4, 2, 3, 10, 30, 20, 50, 40}, out[2];
    if (nki_context_create(NULL, &ctx, NULL) != NKI_OK) {
        return 2;
    }
    nki_status st = nki_host_function(
        ctx, "medians", "i32(f32[n,m] x, out f32[n] medians, i64 n, i64 m)", (nki_fn)medians, NULL);
    st = st ? st : nki_op_host(ctx, "medians", &median);
    st =
        st ? st : nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){2, 5}, in, NKI_FLOAT32, &x);
    nki_stream *s = nki_device_stream(nki_context_device(ctx, 0));
    st = st ? st : nki_elementwise(ctx, s, "x0 * 2", &x, 1, NULL, &y, 1);
    st = st ? st : nki_op_call(median, s, NKI_ARGS(NKI_T(y)), &m, 1, NULL);
    st = st ? st : nki_elementwise(ctx, s, "x0 + 1", &m, 1, NULL, &z, 1);
    st = st ? st : nki_tensor_copy_out(z, out, NKI_FLOAT32, 2);

    float soft[2 * 5] = {0};
    st = st ? st : nki_op_builtin(ctx, "softmax", &softmax);
    st = st ? st : nki_op_specialize(softmax, NKI_ARGS(NKI_T(x)), NULL, NULL, &k);
    st = st ? st : nki_kernel_function(k, "i32(f32[2,5] x, out f32[2,5] y)", &fn);
    if (st == NKI_OK) {
        st = (nki_status)((int32_t(*)(const float *, float *))fn)(in, soft);
    }
    if (st != NKI_OK) {
        fprintf(stderr, "%s\n", nki_context_error(ctx));
    } else {
        printf("medians %g and %g; softmax of 5 among 1..5: %.4f\n", (double)out[0], (double)out[1],
               (double)soft[0]);
    }
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_tensor_release(m);
    nki_tensor_release(z);
    nki_kernel_release(k);
    nki_op_release(softmax);
    nki_op_release(median);
    nki_context_release(ctx);
    return st == NKI_OK && out[0] == 7.0f && out[1] == 61.0f ? 0 : 1;
}
