#include "cli/value.h"

#include <nki/tool.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A header that holds the compiled kernel and a typed C function of it.

static const char *c_type(nki_dtype d)
{
    switch (d) {
    case NKI_FLOAT32:
    case NKI_TFLOAT32: return "float";
    case NKI_INT8: return "int8_t";
    case NKI_INT16: return "int16_t";
    case NKI_INT32: return "int32_t";
    case NKI_UINT32:
    case NKI_FLOAT8_E5M2_X4:
    case NKI_FLOAT8_E4M3FN_X4: return "uint32_t";
    case NKI_BFLOAT16:
    case NKI_FLOAT16:
    case NKI_UINT16:
    case NKI_FLOAT4_E2M1FN_X4: return "uint16_t";
    case NKI_FLOAT8_E5M2:
    case NKI_FLOAT8_E4M3:
    case NKI_FLOAT8_E4M3FN:
    case NKI_FLOAT8_E8M0FNU:
    case NKI_UINT8:
    case NKI_BOOL: break;
    }
    return "uint8_t";
}

static bool is_keyword(const char *name)
{
    static const char *const words[] = {
        "auto",   "break",    "case",     "char",     "const",    "continue", "default",  "do",
        "double", "else",     "enum",     "extern",   "float",    "for",      "goto",     "if",
        "inline", "int",      "long",     "register", "restrict", "return",   "short",    "signed",
        "sizeof", "static",   "struct",   "switch",   "typedef",  "union",    "unsigned", "void",
        "while",  "volatile", "_Bool",    "class",    "new",      "this",     "template", "private",
        "public", "delete",   "operator", "bool",     "true",     "false"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i], name) == 0) {
            return true;
        }
    }
    return false;
}

// The kernel's name as a C identifier: "Class.method" is Class_method.
static void identifier(const char *name, char *out, size_t room)
{
    size_t n = 0;
    for (; name[n] && n + 1 < room; n++) {
        out[n] = (char)(isalnum((unsigned char)name[n]) ? name[n] : '_');
    }
    out[n] = '\0';
}

static void put_shape(FILE *f, const nki_tensor_info *t)
{
    fprintf(f, "%s[", nki_dtype_name(t->dtype));
    for (size_t d = 0; d < t->ndim; d++) {
        fprintf(f, "%s%zu", d ? ", " : "", t->shape[d]);
    }
    fputc(']', f);
}

enum { NAME_BYTES = 128 };

static void param_name(const nki_tensor_info *t, char out[NAME_BYTES])
{
    identifier(t->name, out, NAME_BYTES - 1);
    strcat(out, is_keyword(out) ? "_" : "");
}

// "out0", with as many "_" as tell it from the parameters.
static void output_name(const nki_kernel *k, size_t output, char out[NAME_BYTES])
{
    nki_tensor_info t;
    char other[NAME_BYTES];
    snprintf(out, NAME_BYTES, "out%zu", output);
    for (size_t i = 0; nki_kernel_param(k, i, &t) == NKI_OK; i++) {
        param_name(&t, other);
        if (strcmp(other, out) == 0 && strlen(out) + 1 < NAME_BYTES) {
            strcat(out, "_");
            i = (size_t)-1;  // again from the first
        }
    }
}

static void put_params(FILE *f, const nki_kernel *k)
{
    nki_tensor_info t;
    char name[NAME_BYTES];
    for (size_t i = 0; nki_kernel_param(k, i, &t) == NKI_OK; i++) {
        param_name(&t, name);
        fprintf(f, "%s%s%s *%s", i ? ", " : "", nki_tool_param_written(k, i) ? "" : "const ",
                c_type(t.dtype), name);
    }
    for (size_t i = 0; nki_kernel_output(k, i, &t) == NKI_OK; i++) {
        output_name(k, i, name);
        fprintf(f, "%s%s *%s", i || nki_kernel_param_count(k) ? ", " : "", c_type(t.dtype), name);
    }
}

static void put_comment(FILE *f, const nki_kernel *k)
{
    nki_tensor_info t;
    char name[NAME_BYTES];
    for (size_t i = 0; nki_kernel_param(k, i, &t) == NKI_OK; i++) {
        param_name(&t, name);
        fprintf(f, "//   %s  ", name);
        put_shape(f, &t);
        fprintf(f, "%s\n", nki_tool_param_written(k, i) ? ", read and written" : "");
    }
    for (size_t i = 0; nki_kernel_output(k, i, &t) == NKI_OK; i++) {
        output_name(k, i, name);
        fprintf(f, "//   %s  ", name);
        put_shape(f, &t);
        fprintf(f, ", written\n");
    }
}

static void put_bytes(FILE *f, const unsigned char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        fprintf(f, "%s%u,", i % 24 == 0 ? "\n    " : "", p[i]);
    }
}

// What the kernel was specialised on, as the command line had it; a value cannot end the comment.
static void put_values(FILE *f, const cli_opts *o)
{
    for (size_t i = 1; i < o->word_count; i++) {
        fputs(i == 1 ? "// Compiled for: " : ", ", f);
        for (const char *c = o->words[i]; *c; c++) {
            fputc(*c == '\n' || *c == '\\' ? ' ' : *c, f);
        }
    }
    fputs(o->word_count > 1 ? "\n" : "", f);
}

static int write_header(FILE *f, const cli_opts *o, nki_kernel *k, const char *signature)
{
    char name[NAME_BYTES];
    size_t len;
    const unsigned char *bytes = nki_kernel_neff(k, &len);
    identifier(o->as ? o->as : nki_kernel_name(k), name, sizeof name);
    fprintf(f,
            "// Made by nki bindgen from %s; do not edit.\n#ifndef NKI_KERNEL_%s_H\n"
            "#define NKI_KERNEL_%s_H\n\n#include <nki/nki.h>\n\n",
            o->words[0], name, name);
    put_values(f, o);
    fprintf(f, "// Runs the kernel and waits; returns its nki_status. Packed row-major memory:\n");
    put_comment(f, k);
    fprintf(f, "typedef int32_t (*%s_fn)(", name);
    put_params(f, k);
    fprintf(f, ");\n\nstatic const unsigned char %s_neff[] = {", name);
    put_bytes(f, bytes, len);
    fprintf(f,
            "\n};\n\n// *k is a reference for the caller; *fn lives as long as it.\n"
            "static inline nki_status %s_load(nki_context *ctx, nki_kernel **k, %s_fn *fn)\n{\n"
            "    nki_fn any = NULL;\n"
            "    nki_status st = nki_kernel_load(ctx, %s_neff, sizeof %s_neff, k);\n"
            "    if (st == NKI_OK) {\n"
            "        st = nki_kernel_function(*k, \"%s\", &any);\n"
            "        if (st != NKI_OK) {\n"
            "            nki_kernel_release(*k);\n            *k = NULL;\n        }\n    }\n"
            "    *fn = (%s_fn)any;\n    return st;\n}\n\n#endif\n",
            name, name, name, name, signature, name);
    return EXIT_DONE;
}

static int write_kernel(session *s, nki_kernel *k)
{
    const char *signature;
    if (nki_kernel_signature(k, &signature) != NKI_OK) {
        return other_error("%s", nki_context_error(s->ctx));
    }
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f) {
        return other_error("out of memory");
    }
    int st = write_header(f, s->o, k, signature);
    bool ok = fclose(f) == 0;
    if (st == EXIT_DONE) {
        st = ok ? write_file(s->o->out_file ? s->o->out_file : "-", text, len)
                : other_error("out of memory");
    }
    free(text);
    return st;
}

static int bindgen(cli_opts *o)
{
    if (o->word_count == 0) {
        return usage_error("bindgen wants a kernel file; see nki bindgen --help");
    }
    if (o->as &&
        (isdigit((unsigned char)*o->as) || !*o->as ||
         strspn(o->as, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
             strlen(o->as))) {
        return usage_error("--as wants a C name, not '%s'", o->as);
    }
    session s = {0};
    value_list v = {0};
    target_file t;
    nki_kernel *k = NULL;
    int st = target_open(o->words[0], &t);
    if (st != EXIT_DONE) {
        return st;
    }
    st = session_open(&s, o);
    if (st == EXIT_DONE) {
        st = values_parse(&s, o->words + 1, o->word_count - 1, false, &v);
    }
    if (st == EXIT_DONE) {
        nki_source src = target_source(&t);
        nki_compile_opts c = session_compile_opts(&s);
        st = session_result(
            &s, nki_kernel_compile(s.ctx, &src, t.kernel, v.args, v.count, &c, s.diags, &k));
    }
    if (st == EXIT_DONE) {
        st = write_kernel(&s, k);
    }
    nki_kernel_release(k);
    values_free(&v);
    session_close(&s);
    target_close(&t);
    return st;
}

const command command_bindgen = {
    "bindgen",
    "FILE[::KERNEL] [NAME=VALUE ...] [-o OUT.h] [options]",
    "write a C header with a compiled kernel and its typed function",
    "A tensor needs only its type and shape: x=bfloat16[128,512]. The "
    "header holds the container, so "
    "that a program needs neither the kernel's file nor a compile; "
    "KERNEL_load() makes the function; it is C and C++. One program may include the "
    "headers of several kernels, and with --as of one kernel several "
    "times. "
    "16- and 8-bit floats are uint16_t and uint8_t: their bits.\n",
    WORDS_KERNEL,
    bindgen};
