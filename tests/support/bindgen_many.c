// Headers that `nki bindgen` wrote for kernels with several results, compile-time values, a tensor
// that is written in place, and one kernel twice; as C and as C++ (bindgen_many.cpp).
#include "bump.h"
#include "plain.h"
#include "ten.h"

#include <stdio.h>

static int wrong(nki_context *ctx, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, nki_context_error(ctx));
    return 1;
}

int main(void)
{
    nki_context *ctx = NULL;
    nki_kernel *k[3] = {NULL, NULL, NULL};
    plain_fn plain = NULL;
    ten_fn ten = NULL;
    bump_fn bump = NULL;
    float x[6] = {1, 2, 3, 4, 5, 6}, a[6], b[6];
    int32_t numbers[4] = {7, -8, 9, 10}, same[4] = {0};
    int bad = 0;
    if (nki_context_create(NULL, &ctx, NULL) != NKI_OK) {
        return 2;
    }
    if (plain_load(ctx, &k[0], &plain) != NKI_OK || ten_load(ctx, &k[1], &ten) != NKI_OK ||
        bump_load(ctx, &k[2], &bump) != NKI_OK) {
        return wrong(ctx, "load");
    }
    // scale 2, mode "plain", taps (1, 2): the defaults.
    if (plain(x, a, b) != NKI_OK) {
        return wrong(ctx, "plain");
    }
    for (int i = 0; i < 6; i++) {
        bad |= a[i] != x[i] * 2 + 3 || b[i] != x[i];
    }
    // scale 0.5, mode "ten", flip, taps [1, 2, 3].
    if (ten(x, a, b) != NKI_OK) {
        return wrong(ctx, "ten");
    }
    for (int i = 0; i < 6; i++) {
        bad |= a[i] != x[i] * 5 + 6 || b[i] != -x[i];
    }
    if (bump(x, numbers, same) != NKI_OK) {
        return wrong(ctx, "bump");
    }
    for (int i = 0; i < 6; i++) {
        bad |= x[i] != (float)(i + 2);
    }
    bad |= same[0] != 7 || same[1] != -8 || same[3] != 10;
    for (int i = 0; i < 3; i++) {
        nki_kernel_release(k[i]);
    }
    nki_context_release(ctx);
    fputs(bad ? "a result is wrong\n" : "", stderr);
    return bad;
}
