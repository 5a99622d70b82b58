// Two streams and an event: a producer and a consumer that reads what the event promises, and an
// error that comes back where it is waited for.
#include <nki/nki.h>
#include <stdio.h>

int main(void)
{
    nki_context *ctx;
    nki_stream *producer = NULL, *consumer = NULL;
    nki_event *ready = NULL;
    nki_tensor *x = NULL, *y = NULL, *z = NULL;
    float out[8 * 8];
    if (nki_context_create(NULL, &ctx, NULL) != NKI_OK) {
        return 2;
    }
    nki_stream_opts urgent = NKI_STREAM_OPTS_INIT;
    urgent.name = "consumer";
    urgent.priority = 1;
    nki_status st = nki_stream_create(ctx, NULL, NULL, &producer);
    st = st ? st : nki_stream_create(ctx, NULL, &urgent, &consumer);
    st = st ? st : nki_event_create(ctx, &ready);
    st = st ? st : nki_tensor_create(ctx, NKI_FLOAT32, 2, (const size_t[]){8, 8}, &x);
    st = st ? st : nki_elementwise(ctx, producer, "x0 + 3", &x, 1, NULL, &y, 1);
    st = st ? st : nki_event_record(ready, producer);
    st = st ? st : nki_stream_wait(consumer, ready);
    st = st ? st : nki_elementwise(ctx, consumer, "x0 * x0", &y, 1, NULL, &z, 1);
    st = st ? st : nki_stream_synchronize(consumer, 10000000000u, NULL);
    st = st ? st : nki_tensor_copy_out(z, out, NKI_FLOAT32, 64);
    if (st != NKI_OK) {
        fprintf(stderr, "%s\n", nki_context_error(ctx));
    }
    printf("3 squared is %g\n", (double)out[0]);
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_tensor_release(z);
    nki_event_release(ready);
    nki_stream_release(producer);
    nki_stream_release(consumer);
    nki_context_release(ctx);
    return st == NKI_OK && out[0] == 9.0f ? 0 : 1;
}
