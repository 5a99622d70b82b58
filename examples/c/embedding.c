// Inside a program with its own memory, log and files: an allocator, a log sink, and imports that
// come from memory.
#include <nki/nki.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kernel[] = "import nki\n"
                             "import nki.isa as nisa\n"
                             "import nki.language as nl\n"
                             "from settings import scale\n"
                             "@nki.jit\n"
                             "def scaled(x, by):\n"
                             "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
                             "    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
                             "    nisa.dma_copy(dst=t, src=x)\n"
                             "    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply,\n"
                             "                       operand0=scale(by))\n"
                             "    nisa.dma_copy(dst=y, src=t)\n"
                             "    return y\n";

typedef struct arena {
    size_t alive_bytes, peak_bytes;
} arena;

static void *take(void *ctx, size_t size, size_t align)
{
    arena *a = ctx;
    a->alive_bytes += size;
    a->peak_bytes = a->alive_bytes > a->peak_bytes ? a->alive_bytes : a->peak_bytes;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void give(void *ctx, void *p, size_t size, size_t align)
{
    arena *a = ctx;
    (void)align;
    a->alive_bytes -= size;
    free(p);
}

static void log_line(void *ctx, nki_log_level level, const char *line, size_t len)
{
    ++*(int *)ctx;
    printf("[%d] %.*s\n", (int)level, (int)len, line);
}

static int find_module(void *ctx, const char *dotted, nki_module_text *out)
{
    static const char settings[] = "def scale(by):\n    return 2.0 * by\n";
    (void)ctx;
    if (strcmp(dotted, "settings") != 0) {
        return 0;
    }
    out->path = "memory/settings.nki";
    out->text = settings;
    out->len = sizeof settings - 1;
    return 1;
}

int main(void)
{
    arena a = {0, 0};
    int lines = 0;
    const nki_allocator allocator = {take, give, &a};
    nki_context_opts o = NKI_CONTEXT_OPTS_INIT;
    o.allocator = &allocator;
    o.log = log_line;
    o.log_ctx = &lines;
    o.log_level = NKI_LOG_INFO;
    o.resolve = find_module;
    o.blocking = 1;  // no thread of nki's in this process
    nki_context *ctx = NULL;
    const char *why = "";
    if (nki_context_create(&o, &ctx, &why) != NKI_OK) {
        fprintf(stderr, "%s\n", why);
        return 2;
    }
    nki_op *op = NULL;
    nki_tensor *x = NULL, *y = NULL;
    float in[4] = {1, 2, 3, 4}, out[4] = {0};
    const nki_source src = {"scaled.nki", kernel, sizeof kernel - 1};
    nki_status st = nki_op_open(ctx, &src, NULL, NULL, &op);
    st =
        st ? st
           : nki_tensor_wrap(ctx, NKI_FLOAT32, 2, (const size_t[]){1, 4}, NULL, in, NULL, NULL, &x);
    st = st ? st : nki_op_call(op, NULL, NKI_ARGS(NKI_T(x), NKI_I(5)), &y, 1, NULL);
    st = st ? st : nki_tensor_copy_out(y, out, NKI_FLOAT32, 4);
    if (st != NKI_OK) {
        fprintf(stderr, "%s\n", nki_context_error(ctx));
    }
    nki_tensor_release(x);
    nki_tensor_release(y);
    nki_op_release(op);
    nki_context_release(ctx);
    return st == NKI_OK && out[3] == 40.0f && lines > 0 && a.alive_bytes == 0 ? 0 : 1;
}
