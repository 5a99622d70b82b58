// What each public function refuses, with its status and sentence; and the small functions that
// other tests have no need of. tools/check-api-tests.sh asks that every function is called by a test, and
// every status that a header names is expected by one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nki/nki.h>
#include <nki/profile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "import nki\n"
                           "import nki.isa as nisa\n"
                           "import nki.language as nl\n"
                           "@nki.jit\n"
                           "def copied(x):\n"
                           "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
                           "    nisa.dma_copy(dst=y, src=x)\n"
                           "    return y\n"
                           "@nki.jit\n"
                           "def loops(x, n):\n"
                           "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
                           "    t = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
                           "    nisa.dma_copy(dst=t, src=n)\n"
                           "    r = nisa.register_alloc(0)\n"
                           "    nisa.register_load(dst=r, src=t)\n"
                           "    for i in nl.dynamic_range(r):\n"
                           "        nisa.dma_copy(dst=y, src=x)\n"
                           "    return y\n"
                           "def forever(n):\n"
                           "    while True:\n"
                           "        n = n + 1\n"
                           "@nki.jit\n"
                           "def endless(x):\n"
                           "    forever(0)\n"
                           "    return x\n";
static const nki_source src = {"errors.nki", text, sizeof text - 1};

typedef struct rig {
    nki_context *ctx, *other;
    nki_tensor *x, *foreign;  // [2, 3] float32 of each
    nki_kernel *k;            // copied
} rig;

static void expect(const nki_context *ctx, const char *call, nki_status got, nki_status want,
                   const char *says)
{
    const char *why = ctx ? nki_context_error(ctx) : "";
    if (got != want || !strstr(why, says)) {
        fail_msg("%s: %s, '%s'; not %s, '%s'", call, nki_status_name(got), why,
                 nki_status_name(want), says);
    }
}
// The status, and a piece of the sentence.
#define FAILS(status, says, call) expect(r.ctx, #call, (call), status, says)

static rig rig_open(void)
{
    rig r = {0};
    const size_t shape[] = {2, 3};
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.step_limit = 100000;
    assert_int_equal(nki_context_create(&o, &r.ctx, NULL), NKI_OK);
    assert_int_equal(nki_context_create(NULL, &r.other, NULL), NKI_OK);
    assert_int_equal(nki_tensor_create(r.ctx, NKI_FLOAT32, 2, shape, &r.x), NKI_OK);
    assert_int_equal(nki_tensor_create(r.other, NKI_FLOAT32, 2, shape, &r.foreign), NKI_OK);
    assert_int_equal(
        nki_kernel_compile(r.ctx, &src, "copied", NKI_ARGS(NKI_T(r.x)), NULL, NULL, &r.k), NKI_OK);
    return r;
}

static void rig_close(rig *r)
{
    nki_kernel_release(r->k);
    nki_tensor_release(r->x);
    nki_tensor_release(r->foreign);
    nki_context_release(r->ctx);
    nki_context_release(r->other);
}

static void context__options(void **state)
{
    (void)state;
    const struct {
        nki_context_opts o;
        const char *says;
    } cases[] = {
        {{.size = 8}, "a size that this library does not know"},
        {{.size = sizeof(nki_context_opts), .target = "trn9"}, "unknown target"},
        {{.size = sizeof(nki_context_opts), .warning_count = 1},
         "a list in nki_context_opts is NULL"},
        {{.size = sizeof(nki_context_opts),
          .warnings = (const char *const[]){"no-such-thing"},
          .warning_count = 1},
         "unknown warning"},
        {{.size = sizeof(nki_context_opts), .allocator = &(const nki_allocator){NULL, NULL, NULL}},
         "the allocator lacks a function"},
        {{.size = sizeof(nki_context_opts), .device_count = 1000}, "too many devices"},
        {{.size = sizeof(nki_context_opts),
          .import_roots = (const char *const[]){NULL},
          .import_root_count = 1},
         "an import root is NULL"},
        {{.size = sizeof(nki_context_opts), .env = &(const nki_env){NULL, ""}, .env_count = 1},
         "an environment entry has no name or value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nki_context *ctx = (nki_context *)(uintptr_t)1;
        const char *why = NULL;
        assert_int_equal(nki_context_create(&cases[i].o, &ctx, &why), NKI_ERR_ARG);
        assert_null(ctx);
        if (!why || !strstr(why, cases[i].says)) {
            fail_msg("case %zu: %s", i, why ? why : "nothing");
        }
    }
    // An options structure asks for what the others here do not.
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    nki_context *ctx = NULL;
    o.target = "gen4";
    o.device_count = 2;
    o.linger_ns = 1;
    assert_int_equal(nki_context_create(&o, &ctx, NULL), NKI_OK);
    assert_string_equal(nki_context_target(ctx), "trn3");
    assert_string_equal(nki_context_error(ctx), "");
    assert_ptr_equal(nki_context_retain(ctx), ctx);
    nki_context_release(ctx);
    assert_int_equal(nki_context_device_count(ctx), 2);
    nki_device_info info;
    assert_int_equal(nki_device_get_info(nki_context_device(ctx, 1), &info), NKI_OK);
    assert_true(info.index == 1 && info.core_count == 2 && info.partitions == 128);
    assert_true(info.sbuf_bytes > info.psum_bytes && strcmp(info.target, "trn3") == 0);
    assert_int_equal(nki_device_get_info(NULL, &info), NKI_ERR_ARG);
    assert_null(nki_context_device(ctx, 2));
    nki_context_release(ctx);
    nki_context_release(NULL);
    assert_string_equal(nki_status_text(NKI_ERR_FORMAT), "malformed or truncated file");
    assert_string_equal(nki_status_name(NKI_ERR_ARG), "ERR_ARG");
    assert_true(*nki_version_string() >= '0' && *nki_version_string() <= '9');
}

static void dtype__names(void **state)
{
    (void)state;
    nki_dtype d = NKI_BOOL;
    assert_true(nki_dtype_find("bf16 rest", 4, &d) && d == NKI_BFLOAT16);
    assert_true(nki_dtype_find("uint32", 6, &d) && d == NKI_UINT32);
    assert_false(nki_dtype_find("float", 5, &d));
    assert_null(nki_dtype_name((nki_dtype)99));
    assert_int_equal(nki_dtype_size_bytes((nki_dtype)99), 0);
    assert_true(nki_dtype_is_float(NKI_FLOAT8_E5M2) && !nki_dtype_is_float(NKI_FLOAT8_E5M2_X4));
}

static void diags__are_read(void **state)
{
    (void)state;
    rig r = rig_open();
    nki_diags *ds = NULL;
    nki_diag d;
    nki_kernel *k = NULL;
    const char *out = NULL;
    const nki_source bad = {"bad.nki", "x = (\n", 6};
    assert_int_equal(nki_diags_create(&ds), NKI_OK);
    assert_int_equal(nki_diags_create(NULL), NKI_ERR_ARG);
    FAILS(NKI_ERR_DIAG, "bad.nki", nki_kernel_compile(r.ctx, &bad, NULL, NULL, 0, NULL, ds, &k));
    assert_true(nki_diags_errors(ds) == 1 && nki_diags_count(ds) >= 1);
    assert_int_equal(nki_diags_warnings(ds), 0);
    assert_int_equal(nki_diags_at(ds, nki_diags_count(ds), &d), NKI_ERR_ARG);
    assert_int_equal(nki_diags_render(ds, NKI_DIAG_TEXT, 0, NULL), NKI_ERR_ARG);
    assert_int_equal(nki_diags_render(ds, NKI_DIAG_SHORT, 0, &out), NKI_OK);
    assert_non_null(strstr(out, "bad.nki:"));
    nki_diags_clear(ds);
    assert_int_equal(nki_diags_count(ds), 0);
    nki_diags_release(ds);
    nki_diags_release(NULL);
    rig_close(&r);
}

static void tensor__refusals(void **state)
{
    (void)state;
    rig r = rig_open();
    nki_tensor *t = NULL, *v = NULL;
    float six[6] = {0};
    const size_t shape[] = {2, 3};
    FAILS(NKI_ERR_ARG, "at most 8 dimensions",
          nki_tensor_create(r.ctx, NKI_FLOAT32, 9, (const size_t[9]){1}, &t));
    FAILS(NKI_ERR_NOMEM, "",
          nki_tensor_create(r.ctx, NKI_FLOAT32, 2, (const size_t[]){UINT32_MAX, UINT32_MAX}, &t));
    FAILS(NKI_ERR_ARG, "dimension 1 is",
          nki_tensor_create(r.ctx, NKI_FLOAT32, 2, (const size_t[]){1, SIZE_MAX}, &t));
    FAILS(NKI_ERR_ARG, "negative",
          nki_tensor_wrap(r.ctx, NKI_FLOAT32, 2, shape, (const ptrdiff_t[]){-3, 1}, six, NULL, NULL,
                          &t));
    FAILS(NKI_ERR_ARG, "",
          nki_tensor_wrap(r.ctx, NKI_FLOAT32, 2, shape, NULL, NULL, NULL, NULL, &t));
    FAILS(NKI_ERR_ARG, "", nki_tensor_from(r.ctx, NKI_FLOAT32, 2, shape, six, (nki_dtype)77, &t));
    FAILS(NKI_ERR_ARG, "", nki_tensor_slice(r.x, 2, 0, 1, 1, &v));
    FAILS(NKI_ERR_ARG, "", nki_tensor_slice(r.x, 1, 2, 1, 1, &v));
    FAILS(NKI_ERR_ARG, "", nki_tensor_slice(r.x, 1, 0, 4, 1, &v));
    FAILS(NKI_ERR_ARG, "", nki_tensor_slice(r.x, 1, 0, 3, 0, &v));
    FAILS(NKI_ERR_ARG, "", nki_tensor_permute(r.x, (const size_t[]){0, 0}, &v));
    FAILS(NKI_ERR_ARG, "", nki_tensor_permute(r.x, (const size_t[]){0, 2}, &v));
    FAILS(NKI_ERR_ARG, "", nki_tensor_reshape(r.x, 1, (const size_t[]){7}, &v));
    FAILS(NKI_ERR_ARG, "", nki_tensor_bitcast(r.x, NKI_FLOAT16, &v));
    FAILS(NKI_ERR_ARG, "", nki_tensor_copy_in(r.x, six, NKI_FLOAT32, 5));
    FAILS(NKI_ERR_ARG, "", nki_tensor_copy_out(r.x, six, NKI_FLOAT32, 7));
    // A view keeps the memory when its tensor goes.
    assert_int_equal(nki_tensor_permute(r.x, (const size_t[]){1, 0}, &v), NKI_OK);
    assert_false(nki_tensor_is_contiguous(v));
    assert_true(nki_tensor_shape(v)[0] == 3 && nki_tensor_strides(v)[0] == 1);
    FAILS(NKI_ERR_ARG, "", nki_tensor_reshape(v, 1, (const size_t[]){6}, &t));
    assert_ptr_equal(nki_tensor_retain(v), v);
    nki_tensor_release(v);
    assert_int_equal(nki_tensor_size_bytes(v), 24);
    nki_tensor_release(v);
    nki_tensor_release(NULL);
    rig_close(&r);
}

static void stream__refusals(void **state)
{
    (void)state;
    rig r = rig_open();
    nki_stream *s = NULL, *own = nki_device_stream(nki_context_device(r.ctx, 0));
    nki_event *e = NULL, *late = NULL;
    nki_stream_opts o = NKI_STREAM_OPTS_INIT;
    int64_t ns;
    int flag;
    o.size = 1;
    FAILS(NKI_ERR_ARG, "a size that this library does not know",
          nki_stream_create(r.ctx, NULL, &o, &s));
    FAILS(NKI_ERR_ARG, "the device belongs to another context",
          nki_stream_create(r.ctx, nki_context_device(r.other, 0), NULL, &s));
    assert_int_equal(nki_stream_create(r.ctx, NULL, NULL, &s), NKI_OK);
    assert_ptr_equal(nki_stream_retain(s), s);
    nki_stream_release(s);
    assert_int_equal(nki_stream_submit_host(s, NULL, NULL), NKI_ERR_ARG);
    assert_int_equal(nki_stream_query(s, NULL), NKI_ERR_ARG);
    assert_int_equal(nki_stream_cancel(NULL), NKI_ERR_ARG);
    assert_int_equal(nki_device_synchronize(NULL, NKI_FOREVER, NULL), NKI_ERR_ARG);
    assert_int_equal(nki_event_create(NULL, &e), NKI_ERR_ARG);
    assert_int_equal(nki_event_create(r.other, &e), NKI_OK);
    FAILS(NKI_ERR_ARG, "belong to two contexts", nki_event_record(e, s));
    FAILS(NKI_ERR_ARG, "belong to two contexts", nki_stream_wait(s, e));
    nki_event_release(e);
    assert_int_equal(nki_event_create(r.ctx, &e), NKI_OK);
    assert_int_equal(nki_event_create(r.ctx, &late), NKI_OK);
    assert_ptr_equal(nki_event_retain(e), e);
    nki_event_release(e);
    // Never recorded: nothing to wait for, no time.
    assert_int_equal(nki_stream_wait(s, e), NKI_OK);
    assert_int_equal(nki_event_synchronize(e, 0, NULL), NKI_OK);
    assert_true(nki_event_query(e, &flag) == NKI_OK && flag);
    FAILS(NKI_ERR_ARG, "an event is not reached yet", nki_event_elapsed(e, late, &ns));
    assert_int_equal(nki_event_query(e, NULL), NKI_ERR_ARG);
    FAILS(NKI_ERR_ARG, "the stream belongs to another context",
          nki_kernel_submit(r.k, nki_device_stream(nki_context_device(r.other, 0)),
                            NKI_ARGS(NKI_T(r.x)), (nki_tensor *[1]){NULL}, 1));
    FAILS(NKI_ERR_ARG, "output 0 of copied: no tensor of this context",
          nki_kernel_submit_into(r.k, own, NKI_ARGS(NKI_T(r.x)), &r.foreign, 1));
    nki_event_release(e);
    nki_event_release(late);
    nki_stream_release(s);
    rig_close(&r);
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void kernel__refusals(void **state)
{
    (void)state;
    rig r = rig_open();
    nki_kernel *k = NULL;
    nki_tensor *y = NULL;
    nki_tensor_info info;
    nki_diags *ds = NULL;
    size_t len;
    char path[] = "/tmp/nki_errors_XXXXXX";
    assert_int_equal(nki_diags_create(&ds), NKI_OK);
    // Compiles.
    nki_compile_opts o = NKI_COMPILE_OPTS_INIT;
    o.grid = 3;
    FAILS(NKI_ERR_ARG, "the grid is 3",
          nki_kernel_compile(r.ctx, &src, "copied", NKI_ARGS(NKI_T(r.x)), &o, ds, &k));
    o.size = 3;
    FAILS(NKI_ERR_ARG, "nki_compile_opts has a size",
          nki_kernel_compile(r.ctx, &src, "copied", NKI_ARGS(NKI_T(r.x)), &o, ds, &k));
    FAILS(NKI_ERR_ARG, "argument 1 must be one of",
          nki_kernel_compile(r.ctx, &src, "copied", NKI_ARGS({.tensor = r.x, .expr = "1"}), NULL,
                             ds, &k));
    FAILS(NKI_ERR_ARG, "argument 2 has no name but stands after one that has",
          nki_kernel_compile(r.ctx, &src, "copied",
                             NKI_ARGS({.name = "x", .tensor = r.x}, NKI_I(1)), NULL, ds, &k));
    FAILS(NKI_ERR_IO, "no/such.nki",
          nki_kernel_compile(r.ctx, &(const nki_source){"no/such.nki", NULL, 0}, NULL,
                             NKI_ARGS(NKI_T(r.x)), NULL, ds, &k));
    FAILS(NKI_ERR_DIAG, "",
          nki_kernel_compile(r.ctx, &src, "absent", NKI_ARGS(NKI_T(r.x)), NULL, ds, &k));
    FAILS(NKI_ERR_DIAG, "the kernel ran 100000 steps at compile time without ending",
          nki_kernel_compile(r.ctx, &src, "endless", NKI_ARGS(NKI_T(r.x)), NULL, ds, &k));
    nki_context *tiny = NULL;
    nki_context_opts to = NKI_CONTEXT_OPTS_INIT;
    to.memory_limit_bytes = 1 << 15;
    assert_int_equal(nki_context_create(&to, &tiny, NULL), NKI_OK);
    const nki_tensor_info spec = {.dtype = NKI_FLOAT32, .ndim = 2, .shape = {2, 3}};
    const nki_arg arg = {.spec = &spec};
    expect(tiny, "nki_kernel_compile",
           nki_kernel_compile(tiny, &src, "copied", &arg, 1, NULL, ds, &k), NKI_ERR_LIMIT, "");
    nki_context_release(tiny);
    assert_null(k);
    // Containers.
    const char *bytes = nki_kernel_neff(r.k, &len);
    FAILS(NKI_ERR_FORMAT, "inside the header", nki_kernel_load(r.ctx, bytes, 100, &k));
    nki_context *trn1 = NULL;
    nki_context_opts co = NKI_CONTEXT_OPTS_INIT;
    co.target = "trn1";
    assert_int_equal(nki_context_create(&co, &trn1, NULL), NKI_OK);
    expect(trn1, "nki_kernel_load", nki_kernel_load(trn1, bytes, len, &k), NKI_ERR_ARG,
           "the program is for trn2; the context is for trn1");
    nki_context_release(trn1);
    FAILS(NKI_ERR_IO, "cannot open 'no/such.neff'",
          nki_kernel_load_file(r.ctx, "no/such.neff", &k));
    FAILS(NKI_ERR_IO, "cannot read '/'", nki_kernel_load_file(r.ctx, "/", &k));
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, bytes, len - 1);
    FAILS(NKI_ERR_FORMAT, path, nki_kernel_load_file(r.ctx, path, &k));
    write_file(path, bytes, len);
    FAILS(NKI_OK, "", nki_kernel_load_file(r.ctx, path, &k));
    unlink(path);
    assert_string_equal(nki_kernel_name(k), "copied");
    assert_ptr_equal(nki_kernel_retain(k), k);
    nki_kernel_release(k);
    assert_true(nki_kernel_param_count(k) == 1 && nki_kernel_output_count(k) == 1);
    assert_true(nki_kernel_param(k, 0, &info) == NKI_OK && strcmp(info.name, "x") == 0);
    assert_true(nki_kernel_output(k, 0, &info) == NKI_OK && info.shape[1] == 3);
    assert_int_equal(nki_kernel_param(k, 1, &info), NKI_ERR_ARG);
    assert_int_equal(nki_kernel_output(k, 1, &info), NKI_ERR_ARG);
    assert_int_equal(nki_kernel_verify(NULL), NKI_ERR_ARG);
    // Calls.
    FAILS(NKI_ERR_ARG, "no tensor is given for parameter 'x' of copied",
          nki_kernel_call(k, NULL, 0, &y, 1, ds, NULL));
    FAILS(NKI_ERR_ARG, "the tensor for parameter 'x' belongs to another context",
          nki_kernel_call(k, NKI_ARGS(NKI_T(r.foreign)), &y, 1, ds, NULL));
    nki_tensor *small = NULL;
    assert_int_equal(nki_tensor_slice(r.x, 1, 0, 2, 1, &small), NKI_OK);
    FAILS(NKI_ERR_ARG,
          "parameter 'x' of copied got float32[2, 2]; it was compiled for float32[2, 3]",
          nki_kernel_call(k, NKI_ARGS(NKI_T(small)), &y, 1, ds, NULL));
    FAILS(NKI_ERR_ARG, "copied returns 1 tensors; there is room for 2",
          nki_kernel_submit(k, NULL, NKI_ARGS(NKI_T(r.x)), (nki_tensor *[2]){NULL, NULL}, 2));
    FAILS(NKI_ERR_ARG, "output 0 of copied got float32[2, 2]",
          nki_kernel_submit_into(k, NULL, NKI_ARGS(NKI_T(r.x)), &small, 1));
    assert_null(y);
    nki_tensor_release(small);
    nki_kernel_release(k);
    nki_kernel_release(NULL);
    nki_diags_release(ds);
    rig_close(&r);
}

static int32_t nothing(void)
{
    return 0;
}

static void op__refusals(void **state)
{
    (void)state;
    rig r = rig_open();
    nki_op *op = NULL;
    nki_tensor *y = NULL;
    nki_kernel *k = NULL;
    nki_fn fn = NULL;
    const char *signature = NULL;
    const nki_source bad = {"bad.nki", "x = (\n", 6};
    FAILS(NKI_ERR_DIAG, "bad.nki", nki_op_open(r.ctx, &bad, NULL, NULL, &op));
    FAILS(NKI_ERR_ARG, "errors.nki holds 3 kernels: name one",
          nki_op_open(r.ctx, &src, NULL, NULL, &op));
    FAILS(NKI_ERR_IO, "no/such.nki",
          nki_op_open(r.ctx, &(const nki_source){"no/such.nki", NULL, 0}, NULL, NULL, &op));
    FAILS(NKI_ERR_ARG, "", nki_op_open(r.ctx, &(const nki_source){NULL, NULL, 0}, NULL, NULL, &op));
    FAILS(NKI_ERR_ARG, "cosine", nki_op_builtin(r.ctx, "cosine", &op));
    FAILS(NKI_ERR_ARG, "cosine", nki_op_host(r.ctx, "cosine", &op));
    assert_null(op);
    assert_int_equal(nki_op_open(r.ctx, &src, "absent", NULL, &op), NKI_OK);
    FAILS(NKI_ERR_DIAG, "no kernel or function 'absent'",
          nki_op_call(op, NULL, NKI_ARGS(NKI_T(r.x)), &y, 1, NULL));
    nki_op_release(op);
    assert_int_equal(nki_op_open(r.ctx, &src, "copied", NULL, &op), NKI_OK);
    assert_ptr_equal(nki_op_retain(op), op);
    nki_op_release(op);
    FAILS(NKI_ERR_ARG, "another context",
          nki_op_call(op, NULL, NKI_ARGS(NKI_T(r.foreign)), &y, 1, NULL));
    FAILS(NKI_ERR_ARG, "argument 1 must be one of",
          nki_op_specialize(op, NKI_ARGS({.name = "x"}), NULL, NULL, &k));
    nki_op_release(op);
    nki_op_release(NULL);
    FAILS(NKI_ERR_ARG, "signature, character", nki_kernel_function(r.k, "i32(", &fn));
    FAILS(NKI_ERR_ARG, "has 1 parameters; copied has 2 tensors",
          nki_kernel_function(r.k, "i32(f32[2,3] x)", &fn));
    assert_int_equal(nki_kernel_signature(r.k, NULL), NKI_ERR_ARG);
    assert_int_equal(nki_kernel_signature(r.k, &signature), NKI_OK);
    assert_string_equal(signature, "i32(in float32[2,3] x, out float32[2,3] out0)");
    FAILS(NKI_ERR_ARG, "signature, character",
          nki_host_function(r.ctx, "f", "f32(i32 n)", (nki_fn)nothing, NULL));
    nki_tensor *row = NULL, *flat = NULL;
    assert_int_equal(nki_tensor_slice(r.x, 0, 0, 1, 1, &row), NKI_OK);
    assert_int_equal(nki_tensor_reshape(row, 1, (const size_t[]){3}, &flat), NKI_OK);
    FAILS(NKI_ERR_ARG, "matmul of 2 and 1 dimensions", nki_matmul(r.ctx, NULL, r.x, flat, &y));
    nki_tensor_release(row);
    nki_tensor_release(flat);
    rig_close(&r);
}

static void observe__refusals(void **state)
{
    (void)state;
    rig r = rig_open();
    nki_counters c = {.size = 4};
    assert_int_equal(nki_context_counters(r.ctx, &c), NKI_ERR_ARG);
    FAILS(NKI_ERR_ARG, "no trace is running", nki_trace_stop(r.ctx, "t.json"));
    assert_int_equal(nki_trace_start(r.ctx, 1), NKI_OK);
    FAILS(NKI_ERR_ARG, "a trace is running", nki_trace_start(r.ctx, 0));
    FAILS(NKI_ERR_IO, "no/such/t.json", nki_trace_stop(r.ctx, "no/such/t.json"));
    // Profiles.
    const nki_tensor_info one = {.dtype = NKI_INT32, .ndim = 2, .shape = {1, 1}};
    nki_kernel *k = NULL;
    nki_profile *p = NULL;
    const char *out;
    size_t len;
    assert_int_equal(nki_kernel_compile(r.ctx, &src, "loops", NKI_ARGS(NKI_T(r.x), {.spec = &one}),
                                        NULL, NULL, &k),
                     NKI_OK);
    nki_profile_opts o = NKI_PROFILE_OPTS_INIT;
    FAILS(NKI_ERR_DIAG, "", nki_profile_create(k, &o, &p));
    o.trips = &(const nki_trip){"16", 1000};
    o.trip_count = 1;
    o.executions_max = 10;
    FAILS(NKI_ERR_LIMIT, "", nki_profile_create(k, &o, &p));
    o.machine = &(const nki_machine_value){"nothing_ns", 1};
    o.machine_count = 1;
    FAILS(NKI_ERR_ARG, "no such timing constant", nki_profile_create(k, &o, &p));
    assert_null(p);
    o.machine_count = 0;
    o.executions_max = 0;
    FAILS(NKI_OK, "", nki_profile_create(k, &o, &p));
    assert_int_equal(nki_profile_render(p, NKI_PROFILE_TEXT, NULL, &len), NKI_ERR_ARG);
    assert_int_equal(nki_profile_compare(p, p, &out, &len), NKI_OK);
    assert_non_null(strstr(out, "total_time_ns"));
    assert_int_equal(nki_profile_compare(p, NULL, &out, &len), NKI_ERR_ARG);
    size_t tables = 0;
    while (nki_profile_table_name(tables)) {
        assert_int_equal(nki_profile_table(p, tables++, &out, &len), NKI_OK);
        assert_int_equal(strncmp(out, "pcore_idx,", 10), 0);
    }
    assert_true(tables > 5);
    assert_int_equal(nki_profile_table(p, tables, &out, &len), NKI_ERR_ARG);
    nki_profile_release(p);
    nki_profile_release(NULL);
    nki_machine_row row;
    assert_true(nki_machine_count() > 10);
    assert_int_equal(nki_machine_at(0, &row), NKI_OK);
    assert_int_equal(nki_machine_at(nki_machine_count(), &row), NKI_ERR_ARG);
    nki_kernel_release(k);
    rig_close(&r);
}

// NULL for each handle and each place for a result.
static void everything__takes_null(void **state)
{
    (void)state;
    rig r = rig_open();
    nki_tensor *t = NULL;
    nki_kernel *k = NULL;
    nki_op *op = NULL;
    nki_stream *s = NULL;
    nki_event *e = NULL;
    nki_profile *p = NULL;
    const size_t one = 1;
    float f = 0;
    size_t len;
    const void *bytes = nki_kernel_neff(r.k, &len);
    const nki_status got[] = {
        nki_tensor_create(NULL, NKI_FLOAT32, 1, &one, &t),
        nki_tensor_create(r.ctx, NKI_FLOAT32, 1, &one, NULL),
        nki_tensor_create(r.ctx, NKI_FLOAT32, 1, NULL, &t),
        nki_tensor_wrap(NULL, NKI_FLOAT32, 1, &one, NULL, &f, NULL, NULL, &t),
        nki_tensor_from(NULL, NKI_FLOAT32, 1, &one, &f, NKI_FLOAT32, &t),
        nki_tensor_from(r.ctx, NKI_FLOAT32, 1, &one, NULL, NKI_FLOAT32, &t),
        nki_tensor_slice(NULL, 0, 0, 1, 1, &t),
        nki_tensor_slice(r.x, 0, 0, 1, 1, NULL),
        nki_tensor_reshape(NULL, 1, &one, &t),
        nki_tensor_reshape(r.x, 1, NULL, &t),
        nki_tensor_permute(NULL, &one, &t),
        nki_tensor_permute(r.x, NULL, &t),
        nki_tensor_bitcast(NULL, NKI_INT32, &t),
        nki_tensor_copy_in(NULL, &f, NKI_FLOAT32, 1),
        nki_tensor_copy_in(r.x, NULL, NKI_FLOAT32, 6),
        nki_tensor_copy_out(NULL, &f, NKI_FLOAT32, 1),
        nki_tensor_copy_out(r.x, NULL, NKI_FLOAT32, 6),
        nki_tensor_from_dlpack(r.ctx, NULL, &t),
        nki_tensor_from_dlpack_versioned(r.ctx, NULL, &t),
        nki_tensor_to_dlpack(r.x, NULL),
        nki_tensor_to_dlpack_versioned(NULL, NULL),
        nki_kernel_compile(NULL, &src, NULL, NULL, 0, NULL, NULL, &k),
        nki_kernel_compile(r.ctx, NULL, NULL, NULL, 0, NULL, NULL, &k),
        nki_kernel_compile(r.ctx, &src, NULL, NULL, 1, NULL, NULL, &k),
        nki_kernel_compile(r.ctx, &src, NULL, NULL, 0, NULL, NULL, NULL),
        nki_kernel_load(NULL, bytes, len, &k),
        nki_kernel_load(r.ctx, NULL, len, &k),
        nki_kernel_load(r.ctx, bytes, len, NULL),
        nki_kernel_load_file(r.ctx, NULL, &k),
        nki_kernel_call(NULL, NULL, 0, &t, 1, NULL, NULL),
        nki_kernel_call(r.k, NULL, 1, &t, 1, NULL, NULL),
        nki_kernel_submit(NULL, NULL, NULL, 0, &t, 1),
        nki_kernel_submit_into(NULL, NULL, NULL, 0, &t, 1),
        nki_kernel_param(r.k, 0, NULL),
        nki_kernel_output(r.k, 0, NULL),
        nki_op_open(NULL, &src, NULL, NULL, &op),
        nki_op_open(r.ctx, NULL, NULL, NULL, &op),
        nki_op_builtin(NULL, "sum", &op),
        nki_op_builtin(r.ctx, NULL, &op),
        nki_op_specialize(NULL, NULL, 0, NULL, NULL, &k),
        nki_op_call(NULL, NULL, NULL, 0, &t, 1, NULL),
        nki_elementwise(NULL, NULL, "x0", &r.x, 1, NULL, &t, 1),
        nki_elementwise(r.ctx, NULL, NULL, &r.x, 1, NULL, &t, 1),
        nki_elementwise(r.ctx, NULL, "x0", NULL, 1, NULL, &t, 1),
        nki_elementwise(r.ctx, NULL, "x0", &r.x, 0, NULL, &t, 1),
        nki_elementwise(r.ctx, NULL, "x0", &r.x, 1, NULL, NULL, 1),
        nki_matmul(NULL, NULL, r.x, r.x, &t),
        nki_matmul(r.ctx, NULL, NULL, r.x, &t),
        nki_softmax(r.ctx, NULL, NULL, &t),
        nki_softmax(r.ctx, NULL, r.x, NULL),
        nki_sum(NULL, NULL, r.x, &t),
        nki_stream_create(NULL, NULL, NULL, &s),
        nki_stream_create(r.ctx, NULL, NULL, NULL),
        nki_stream_synchronize(NULL, 0, NULL),
        nki_stream_query(NULL, NULL),
        nki_stream_wait(NULL, NULL),
        nki_stream_submit_host(NULL, NULL, NULL),
        nki_event_create(NULL, &e),
        nki_event_create(r.ctx, NULL),
        nki_event_record(NULL, NULL),
        nki_event_synchronize(NULL, 0, NULL),
        nki_event_query(NULL, NULL),
        nki_event_elapsed(NULL, NULL, NULL),
        nki_device_synchronize(NULL, 0, NULL),
        nki_context_counters(NULL, NULL),
        nki_trace_start(NULL, 0),
        nki_trace_stop(NULL, NULL),
        nki_kernel_function(NULL, "i32()", NULL),
        nki_kernel_signature(NULL, NULL),
        nki_host_function(r.ctx, "f", "i32()", NULL, NULL),
        nki_host_function(NULL, "f", "i32()", (nki_fn)nothing, NULL),
        nki_op_host(r.ctx, NULL, &op),
        nki_profile_create(NULL, NULL, &p),
        nki_profile_create(r.k, NULL, NULL),
        nki_profile_render(NULL, NKI_PROFILE_TEXT, NULL, NULL),
        nki_machine_at(0, NULL),
    };
    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        if (got[i] != NKI_ERR_ARG) {
            fail_msg("call %zu: %s", i, nki_status_name(got[i]));
        }
    }
    assert_true(!t && !k && !op && !s && !e && !p);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context__options),       cmocka_unit_test(dtype__names),
        cmocka_unit_test(diags__are_read),        cmocka_unit_test(tensor__refusals),
        cmocka_unit_test(stream__refusals),       cmocka_unit_test(kernel__refusals),
        cmocka_unit_test(op__refusals),           cmocka_unit_test(observe__refusals),
        cmocka_unit_test(everything__takes_null),
    };
    return cmocka_run_group_tests_name("runtime.refusals", tests, NULL, NULL);
}
