// Tensors: memory of the embedder, views, DLPack both ways, an allocator of the embedder's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/dlpack.h"

#include <nki/nki.h>

#include <stdlib.h>
#include <string.h>

static nki_context *context(void)
{
    nki_context *ctx = NULL;
    assert_int_equal(nki_context_create(NULL, &ctx, NULL), NKI_OK);
    return ctx;
}

static void count_release(void *ctx, void *data)
{
    int *n = ctx;
    assert_non_null(data);
    ++*n;
}

static void wrap__uses_the_memory_and_gives_it_back_once(void **state)
{
    (void)state;
    nki_context *ctx = context();
    float data[12];
    int released = 0;
    for (int i = 0; i < 12; i++) {
        data[i] = (float)i;
    }
    nki_tensor *t = NULL, *row = NULL, *y = NULL;
    assert_int_equal(nki_tensor_wrap(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 4}, NULL, data,
                                     count_release, &released, &t),
                     NKI_OK);
    assert_ptr_equal(nki_tensor_data(t), data);
    assert_int_equal(nki_tensor_slice(t, 0, 1, 3, 1, &row), NKI_OK);
    nki_tensor_release(t);
    assert_int_equal(released, 0);  // the view keeps it
    assert_int_equal(nki_elementwise(ctx, NULL, "x0 * 2", &row, 1, NULL, &y, 1), NKI_OK);
    assert_true(((float *)nki_tensor_data(y))[0] == 8.0f);
    nki_tensor_release(row);
    assert_int_equal(released, 1);
    const ptrdiff_t back[] = {-4, 1};
    assert_int_equal(
        nki_tensor_wrap(ctx, NKI_FLOAT32, 2, (const size_t[]){3, 4}, back, data, NULL, NULL, &t),
        NKI_ERR_ARG);
    assert_int_equal(
        nki_tensor_wrap(ctx, NKI_FLOAT32, 1, (const size_t[]){3}, NULL, NULL, NULL, NULL, &t),
        NKI_ERR_ARG);
    nki_tensor_release(y);
    nki_context_release(ctx);
}

static void views__are_read_and_written_through(void **state)
{
    (void)state;
    nki_context *ctx = context();
    float data[24], out[24];
    for (int i = 0; i < 24; i++) {
        data[i] = (float)i;
    }
    nki_tensor *t = NULL, *p = NULL, *s = NULL, *r = NULL, *b = NULL;
    assert_int_equal(
        nki_tensor_from(ctx, NKI_FLOAT32, 3, (const size_t[]){2, 3, 4}, data, NKI_FLOAT32, &t),
        NKI_OK);
    assert_int_equal(nki_tensor_permute(t, (const size_t[]){2, 0, 1}, &p), NKI_OK);
    assert_false(nki_tensor_is_contiguous(p));
    assert_int_equal(nki_tensor_copy_out(p, out, NKI_FLOAT32, 24), NKI_OK);
    for (int i = 0; i < 24; i++) {
        assert_true(out[i] == data[i % 6 / 3 * 12 + i % 3 * 4 + i / 6]);
    }
    nki_tensor_release(p);
    // Every second column of the first matrix, as integers, changed in place.
    assert_int_equal(nki_tensor_slice(t, 2, 0, 4, 2, &s), NKI_OK);
    const int32_t ints[12] = {100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111};
    assert_int_equal(nki_tensor_copy_in(s, ints, NKI_INT32, 12), NKI_OK);
    assert_true(((float *)nki_tensor_data(t))[6] == 103.0f);
    assert_true(((float *)nki_tensor_data(t))[7] == 7.0f);
    assert_int_equal(nki_tensor_reshape(s, 1, (const size_t[]){12}, &r), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_reshape(t, 2, (const size_t[]){5, 5}, &r), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_reshape(t, 2, (const size_t[]){6, 4}, &r), NKI_OK);
    assert_int_equal(nki_tensor_bitcast(t, NKI_INT8, &b), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_bitcast(t, NKI_INT32, &b), NKI_OK);
    assert_int_equal(((int32_t *)nki_tensor_data(b))[1], 0x3f800000);
    assert_int_equal(nki_tensor_slice(t, 3, 0, 1, 1, &p), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_slice(t, 0, 1, 3, 1, &p), NKI_ERR_ARG);
    // A kernel takes such views, and one that it writes.
    nki_tensor *sum = NULL;
    assert_int_equal(nki_sum(ctx, NULL, s, &sum), NKI_OK);
    assert_true(((float *)nki_tensor_data(sum))[0] == 201.0f);
    nki_counters c = NKI_COUNTERS_INIT;
    assert_int_equal(nki_context_counters(ctx, &c), NKI_OK);
    assert_int_equal(c.packed_copies, 1);
    nki_tensor_release(sum);
    nki_tensor_release(b);
    nki_tensor_release(r);
    nki_tensor_release(s);
    nki_tensor_release(t);
    nki_context_release(ctx);
}

static void view__as_a_kernels_output(void **state)
{
    (void)state;
    nki_context *ctx = context();
    float data[8] = {0}, in[4] = {1, 2, 3, 4};
    nki_tensor *t = NULL, *v = NULL, *x = NULL;
    nki_op *op = NULL;
    nki_kernel *k = NULL;
    assert_int_equal(
        nki_tensor_wrap(ctx, NKI_FLOAT32, 2, (const size_t[]){2, 4}, NULL, data, NULL, NULL, &t),
        NKI_OK);
    assert_int_equal(nki_tensor_slice(t, 1, 1, 3, 1, &v), NKI_OK);
    assert_int_equal(
        nki_tensor_from(ctx, NKI_FLOAT32, 2, (const size_t[]){2, 2}, in, NKI_FLOAT32, &x), NKI_OK);
    assert_int_equal(nki_op_builtin(ctx, "matmul", &op), NKI_OK);
    assert_int_equal(nki_op_specialize(op, NKI_ARGS(NKI_T(x), NKI_T(x)), NULL, NULL, &k), NKI_OK);
    assert_int_equal(nki_kernel_submit_into(k, NULL, NKI_ARGS(NKI_T(x), NKI_T(x)), &v, 1), NKI_OK);
    assert_int_equal(nki_device_synchronize(nki_context_device(ctx, 0), NKI_FOREVER, NULL), NKI_OK);
    const float want[8] = {0, 7, 10, 0, 0, 15, 22, 0};
    assert_memory_equal(data, want, sizeof want);
    nki_kernel_release(k);
    nki_op_release(op);
    nki_tensor_release(x);
    nki_tensor_release(v);
    nki_tensor_release(t);
    nki_context_release(ctx);
}

static void count_deleted(struct DLManagedTensor *m)
{
    ++*(int *)m->manager_ctx;
}

static void dlpack__takes_and_gives_without_a_copy(void **state)
{
    (void)state;
    nki_context *ctx = context();
    uint16_t data[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    int64_t shape[] = {2, 3}, strides[] = {4, 1};
    int deleted = 0;
    struct DLManagedTensor m = {
        {data, {1, 0}, 2, {4, 16, 1}, shape, strides, 2}, &deleted, count_deleted};
    nki_tensor *t = NULL, *again = NULL;
    assert_int_equal(nki_tensor_from_dlpack(ctx, &m, &t), NKI_OK);
    assert_int_equal(nki_tensor_dtype(t), NKI_BFLOAT16);
    assert_ptr_equal(nki_tensor_data(t), data + 1);
    assert_int_equal(nki_tensor_strides(t)[0], 4);
    // Out again, and back in: still that memory.
    struct DLManagedTensorVersioned *v = NULL;
    assert_int_equal(nki_tensor_to_dlpack_versioned(t, &v), NKI_OK);
    nki_tensor_release(t);
    assert_int_equal(v->major, 1);
    assert_ptr_equal(v->t.data, data + 1);
    assert_int_equal(v->t.strides[0], 4);
    assert_int_equal(nki_tensor_from_dlpack_versioned(ctx, v, &again), NKI_OK);
    assert_ptr_equal(nki_tensor_data(again), data + 1);
    assert_int_equal(deleted, 0);
    nki_tensor_release(again);
    assert_int_equal(deleted, 1);
    // Refused, and still the caller's.
    struct DLManagedTensor gpu = m, odd = m;
    gpu.t.device.type = 2;
    odd.t.dtype.bits = 64;
    assert_int_equal(nki_tensor_from_dlpack(ctx, &gpu, &t), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_from_dlpack(ctx, &odd, &t), NKI_ERR_ARG);
    int64_t back[] = {-4, 1};
    struct DLManagedTensor reversed = m;
    reversed.t.strides = back;
    assert_int_equal(nki_tensor_from_dlpack(ctx, &reversed, &t), NKI_ERR_ARG);
    struct DLManagedTensorVersioned newer = {.major = 2, .t = m.t}, far = {.major = 1, .t = gpu.t};
    assert_int_equal(nki_tensor_from_dlpack_versioned(ctx, &newer, &t), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_from_dlpack_versioned(ctx, &far, &t), NKI_ERR_ARG);
    assert_int_equal(deleted, 1);
    assert_null(t);
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT8_E5M2_X4, 0, NULL, &t), NKI_OK);
    assert_int_equal(nki_tensor_to_dlpack_versioned(t, &v), NKI_ERR_ARG);
    nki_tensor_release(t);
    struct DLManagedTensor *old = NULL;
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT8_E5M2, 0, NULL, &t), NKI_OK);
    assert_int_equal(nki_tensor_to_dlpack(t, &old), NKI_ERR_ARG);
    assert_int_equal(nki_tensor_to_dlpack_versioned(t, &v), NKI_OK);
    assert_int_equal(v->t.dtype.code, 12);
    v->deleter(v);
    nki_tensor_release(t);
    nki_context_release(ctx);
}

typedef struct heap {
    size_t alive_bytes, calls, fail_after;
} heap;

static void *heap_alloc(void *ctx, size_t size, size_t align)
{
    heap *h = ctx;
    if (h->calls++ >= h->fail_after) {
        return NULL;
    }
    h->alive_bytes += size;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void heap_release(void *ctx, void *p, size_t size, size_t align)
{
    heap *h = ctx;
    (void)align;
    h->alive_bytes -= size;
    free(p);
}

static void allocator__is_the_embedders(void **state)
{
    (void)state;
    heap h = {0, 0, SIZE_MAX};
    const nki_allocator a = {heap_alloc, heap_release, &h};
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.allocator = &a;
    o.blocking = 1;
    nki_context *ctx = NULL;
    nki_tensor *t = NULL, *y = NULL;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 1, (const size_t[]){1000}, &t), NKI_OK);
    assert_true(h.alive_bytes >= 4000);
    assert_int_equal(nki_elementwise(ctx, NULL, "x0 + 1", &t, 1, NULL, &y, 1), NKI_OK);
    nki_tensor_release(y);
    h.fail_after = h.calls;
    assert_int_equal(nki_elementwise(ctx, NULL, "x0 + 1", &t, 1, NULL, &y, 1), NKI_ERR_NOMEM);
    assert_int_equal(nki_tensor_create(ctx, NKI_FLOAT32, 0, NULL, &y), NKI_ERR_NOMEM);
    nki_tensor_release(t);
    nki_context_release(ctx);
    assert_int_equal(h.alive_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrap__uses_the_memory_and_gives_it_back_once),
        cmocka_unit_test(views__are_read_and_written_through),
        cmocka_unit_test(view__as_a_kernels_output),
        cmocka_unit_test(dlpack__takes_and_gives_without_a_copy),
        cmocka_unit_test(allocator__is_the_embedders),
    };
    return cmocka_run_group_tests_name("runtime.tensor", tests, NULL, NULL);
}
