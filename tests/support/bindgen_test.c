// The header that `nki bindgen` wrote for softmax of 4 x 8: its function against a formula.
#include "softmax.h"

#include <math.h>
#include <stdio.h>

int main(void)
{
    nki_context *ctx = NULL;
    nki_kernel *k = NULL;
    softmax_fn softmax = NULL;
    float x[32], y[32];
    for (int i = 0; i < 32; i++) {
        x[i] = (float)(i * 5 % 9) - 4;
    }
    if (nki_context_create(NULL, &ctx, NULL) != NKI_OK ||
        softmax_load(ctx, &k, &softmax) != NKI_OK || softmax(x, y) != NKI_OK) {
        fprintf(stderr, "%s\n", nki_context_error(ctx));
        return 1;
    }
    int bad = 0;
    for (int r = 0; r < 4; r++) {
        double total = 0;
        for (int i = 0; i < 8; i++) {
            total += exp(x[r * 8 + i]);
        }
        for (int i = 0; i < 8; i++) {
            double want = exp(x[r * 8 + i]) / total;
            bad |= fabs(y[r * 8 + i] - want) > 1e-5 * want;
        }
    }
    nki_kernel_release(k);
    nki_context_release(ctx);
    return bad;
}
