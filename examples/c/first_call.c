// A kernel file from C: open it, make a tensor, call it, read the result.
//
//   first_call softmax.nki
#include <nki/nki.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static float in[200 * 700], out[200 * 700];
    nki_context *ctx;
    nki_op *op;
    nki_tensor *x, *y;
    for (int i = 0; i < 200 * 700; i++) {
        in[i] = (float)(i % 7);
    }
    if (argc != 2 || nki_context_create(NULL, &ctx, NULL) != NKI_OK) {
        return 2;
    }
    // The five lines. Each returns a status; the first that is not NKI_OK ends the chain.
    const size_t shape[] = {200, 700};
    nki_status st = nki_op_open(ctx, &(nki_source){.path = argv[1]}, NULL, NULL, &op);
    st = st ? st : nki_tensor_from(ctx, NKI_FLOAT32, 2, shape, in, NKI_FLOAT32, &x);
    st = st ? st : nki_op_call(op, NULL, NKI_ARGS(NKI_T(x)), &y, 1, NULL);
    st = st ? st : nki_tensor_copy_out(y, out, NKI_FLOAT32, 200 * 700);
    if (st != NKI_OK) {
        fprintf(stderr, "%s\n", nki_context_error(ctx));
        return 1;
    }
    double sum = 0;
    for (int i = 0; i < 700; i++) {
        sum += out[i];
    }
    printf("the first row sums to %.4f\n", sum);
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_op_release(op);
    nki_context_release(ctx);
    return sum > 0.999 && sum < 1.001 ? 0 : 1;
}
