// Fits y = x w by gradient descent, every step five kernels in one stream: no waiting inside the
// loop. Kernels are compiled in the first step and found in the cache after it.
#include <math.h>
#include <nki/nki.h>
#include <stdio.h>

enum { SAMPLES = 256, FEATURES = 16, STEPS = 60 };

static nki_context *ctx;

static void check(nki_status st)
{
    if (st != NKI_OK) {
        fprintf(stderr, "%s\n", nki_context_error(ctx));
    }
}

// A step's result takes the place of what was there.
static nki_status replace(nki_tensor **old, nki_tensor *by, nki_status st)
{
    if (st == NKI_OK) {
        nki_tensor_release(*old);
        *old = by;
    }
    return st;
}

static nki_status step(nki_stream *s, nki_tensor *x, nki_tensor *xt, nki_tensor *y, nki_tensor **w,
                       nki_tensor **error)
{
    nki_tensor *guess = NULL, *grad = NULL, *next = NULL, *diff = NULL;
    nki_status st = nki_matmul(ctx, s, x, *w, &guess);
    nki_tensor *pair[] = {guess, y};
    st = st ? st : nki_elementwise(ctx, s, "x0 - x1", pair, 2, NULL, &diff, 1);
    st = st ? st : nki_matmul(ctx, s, xt, diff, &grad);
    nki_tensor *update[] = {*w, grad};
    st = st ? st : nki_elementwise(ctx, s, "x0 - 0.004 * x1", update, 2, NULL, &next, 1);
    st = st ? st : replace(w, next, NKI_OK);
    nki_tensor *loss = NULL;
    st = st ? st : nki_elementwise(ctx, s, "x0 * x0", &diff, 1, NULL, &loss, 1);
    st = st ? st : replace(error, loss, NKI_OK);
    nki_tensor_release(guess);
    nki_tensor_release(diff);
    nki_tensor_release(grad);
    return st;
}

int main(void)
{
    static float data[SAMPLES * FEATURES], target[SAMPLES], error_data[SAMPLES];
    nki_stream *s = NULL;
    nki_tensor *x = NULL, *xt = NULL, *y = NULL, *w = NULL, *error = NULL;
    if (nki_context_create(NULL, &ctx, NULL) != NKI_OK) {
        return 2;
    }
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < FEATURES; j++) {
            data[i * FEATURES + j] = (float)((i * 7 + j * 13 + i * j) % 11 - 5) / 5.0f;
            target[i] += data[i * FEATURES + j] * (float)(j - 8) / 4.0f;
        }
    }
    const size_t xs[] = {SAMPLES, FEATURES}, ys[] = {SAMPLES, 1}, ws[] = {FEATURES, 1};
    nki_status st = nki_stream_create(ctx, NULL, NULL, &s);
    // The embedder's memory as it is; its transpose is a view.
    st = st ? st : nki_tensor_wrap(ctx, NKI_FLOAT32, 2, xs, NULL, data, NULL, NULL, &x);
    st = st ? st : nki_tensor_permute(x, (const size_t[]){1, 0}, &xt);
    st = st ? st : nki_tensor_wrap(ctx, NKI_FLOAT32, 2, ys, NULL, target, NULL, NULL, &y);
    st = st ? st : nki_tensor_create(ctx, NKI_FLOAT32, 2, ws, &w);
    for (int i = 0; i < STEPS && st == NKI_OK; i++) {
        st = step(s, x, xt, y, &w, &error);
    }
    st = st ? st : nki_stream_synchronize(s, NKI_FOREVER, NULL);
    st = st ? st : nki_tensor_copy_out(error, error_data, NKI_FLOAT32, SAMPLES);
    double loss = 0;
    for (int i = 0; i < SAMPLES; i++) {
        loss += error_data[i] / SAMPLES;
    }
    nki_counters c = NKI_COUNTERS_INIT;
    check(nki_context_counters(ctx, &c));
    check(st);
    printf("loss %.6f after %d steps; %d kernels compiled, %d runs\n", loss, STEPS, (int)c.compiles,
           (int)c.runs);
    nki_tensor_release(x);
    nki_tensor_release(xt);
    nki_tensor_release(y);
    nki_tensor_release(w);
    nki_tensor_release(error);
    nki_stream_release(s);
    nki_context_release(ctx);
    return st == NKI_OK && loss < 0.05 && c.compiles == 5 ? 0 : 1;
}
