// Uses the installed package as a program outside the tree would: compiles a kernel file and runs
// it.
#include <nki/nki.h>

#include <stdio.h>

static int fail(nki_context *ctx, nki_status st)
{
    fprintf(stderr, "%s: %s\n", nki_status_name(st), nki_context_error(ctx));
    return 1;
}

int main(int argc, char **argv)
{
    nki_context *ctx = NULL;
    nki_tensor *x = NULL, *out = NULL;
    nki_kernel *k = NULL;
    const char *why = NULL;
    if (argc != 2 || nki_context_create(NULL, &ctx, &why) != NKI_OK) {
        fprintf(stderr, "usage: consumer vector_add.nki (%s)\n", why ? why : "");
        return 2;
    }
    const size_t shape[] = {3, 4};
    nki_status st = nki_tensor_create(ctx, NKI_FLOAT32, 2, shape, &x);
    if (st == NKI_OK) {
        float *p = nki_tensor_data(x);
        for (int i = 0; i < 12; i++) {
            p[i] = (float)i;
        }
        const nki_source src = {argv[1], NULL, 0};
        const nki_arg args[] = {{.name = "a", .tensor = x}, {.name = "b", .tensor = x}};
        st = nki_kernel_compile(ctx, &src, NULL, args, 2, NULL, NULL, &k);
        if (st == NKI_OK) {
            st = nki_kernel_call(k, args, 2, &out, 1, NULL, NULL);
        }
    }
    int bad = st != NKI_OK ? fail(ctx, st) : 0;
    for (int i = 0; !bad && i < 12; i++) {
        if (((float *)nki_tensor_data(out))[i] != (float)(2 * i)) {
            fprintf(stderr, "element %d is wrong\n", i);
            bad = 1;
        }
    }
    nki_tensor_release(out);
    nki_kernel_release(k);
    nki_tensor_release(x);
    nki_context_release(ctx);
    return bad;
}
