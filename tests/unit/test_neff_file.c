#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "neff/layout.h"
#include "neff/neff.h"

#include <stdio.h>
#include <string.h>

static jmp_buf oom;

typedef struct fixture {
    arena mem;
    program *pr;
    unsigned char *bytes;
    size_t len;
} fixture;

static const char sample[] = "kernel \"k\\\"\\x0a\" target=trn2 grid=2 core=1 registers=4\n"
                             "%0 \"x\" float32[256, 512] shared_hbm param=0 \"x\"  ; add.nki:3\n"
                             "%1 \"\" float32[128, 512] sbuf placed=(0, 0)  ; add.nki:7\n"
                             "%2 \"acc\" float32[128, 512] psum placed=(0, 2048)\n"
                             "%3 \"o\" float32[256, 512] shared_hbm out placed=(0, 6144)\n"
                             "%4 \"c\" int32[1500] hbm const=0 placed=(0, 0)\n"
                             "%5 \"i\" uint32[128, 1] sbuf placed=(0, 2048)\n"
                             "%6 \"never used\" uint32[128, 1] sbuf\n";

static const char sample_code[] =
    "  Sync.loop_for counter=r1 lower=0 upper=4 step=1  ; add.nki:9\n"
    "    @1 DMA.dma_copy dst=%1 src=%0[0:128, :].vector(%5, step=512) oob_mode=skip\n"
    "    DMA.dma_compute dst=%3 srcs=[%0, %3] reduce_op=add\n"
    "    Vector.memset dst=%1[:, 0:8].register(r1, step=2) value=0.5 name=\"m\" after=[@1]\n"
    "    Vector.tensor_copy dst=%1 src=%2  ; lib/b.nki:2\n"
    "  Sync.loop_end\n"
    "return %3\n";

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    arena_init(&f->mem, 0, &oom);
    textbuf t;
    text_init(&t, &f->mem);
    text_cstr(&t, sample);
    text_cstr(&t, "data ");
    for (int i = 0; i < 6000; i++) {
        text_printf(&t, "%02x", i & 255);
    }
    text_char(&t, '\n');
    text_cstr(&t, sample_code);
    const char *err = NULL;
    f->pr = NEW(&f->mem, program);
    ir *p = f->pr->ir = ir_parse(&f->mem, t.at, t.len, &err);
    if (!p || (err = ir_verify(p, &f->mem))) {
        print_error("%s\n", err);
        return 1;
    }
    f->pr->hbm_bytes = 6144 + 524288;
    f->pr->sbuf_peak_bytes = 2052;
    f->pr->psum_peak_bytes = 4096;
    f->pr->spills = (spill_count){3, 5, (uint64_t)1 << 40};
    queue_slot slots[] = {{0, 0, 1}, {2, 1, 2}};
    sync_op syncs[] = {{SYNC_SIGNAL, 0, 0, 1}, {SYNC_WAIT, 0, 0, 1}, {SYNC_SIGNAL, 0, 1, 16}};
    for (uint32_t i = 0; i < 2; i++) {
        vec_push(&f->mem, &f->pr->slots, slots[i]);
        vec_push(&f->mem, &f->pr->semaphores, ((semaphore_info){(uint8_t)i, (uint8_t)(1 - i), 0}));
    }
    for (uint32_t i = 0; i < 3; i++) {
        vec_push(&f->mem, &f->pr->syncs, syncs[i]);
    }
    for (uint32_t s = 1; s <= STREAM_COUNT; s++) {
        f->pr->stream_first[s] = s == 1 ? 1 : 2;
    }
    vec_push(&f->mem, &f->pr->dmas, ((dma_info){.instr = 1, .engines = 3, .bytes = 64}));
    f->bytes = neff_write(f->pr, &f->len);
    *state = f;
    return f->bytes ? 0 : 1;
}

static int teardown(void **state)
{
    fixture *f = *state;
    free(f->bytes);
    arena_fini(&f->mem);
    free(f);
    return 0;
}

static const char *print(arena *a, const ir *p)
{
    textbuf b;
    text_init(&b, a);
    ir_print(p, &b);
    return b.at;
}

static void seal(unsigned char *bytes, size_t len)
{
    neff_header h;
    memcpy(&h, bytes, sizeof h);
    h.body_xxh3 = neff_hash(bytes + NEFF_HEADER_BYTES, len - NEFF_HEADER_BYTES);
    h.header_xxh3 = neff_header_hash(&h);
    memcpy(bytes, &h, sizeof h);
}

static void file__comes_back_the_same(void **state)
{
    fixture *f = *state;
    program *pr = NULL;
    const char *err = NULL;
    nki_status st = neff_read(&f->mem, f->bytes, f->len, &pr, &err);
    assert_string_equal(err ? err : "", "");
    assert_int_equal(st, NKI_OK);
    assert_string_equal(print(&f->mem, pr->ir), print(&f->mem, f->pr->ir));
    assert_int_equal(pr->hbm_bytes, f->pr->hbm_bytes);
    assert_int_equal(pr->sbuf_peak_bytes, 2052);
    assert_int_equal(pr->spills.stores, 3);
    assert_int_equal(pr->spills.loads, 5);
    assert_int_equal(pr->spills.bytes, (uint64_t)1 << 40);
    assert_int_equal(pr->slots.n, 2);
    assert_int_equal(pr->slots.at[1].instr, 2);
    assert_int_equal(pr->syncs.at[2].value, 16);
    assert_int_equal(pr->stream_first[1], 1);
    assert_int_equal(pr->semaphores.at[1].producer, 1);
    assert_int_equal(pr->dmas.at[0].bytes, 64);
    size_t len = 0;
    unsigned char *again = neff_write(pr, &len);
    assert_int_equal(len, f->len);
    assert_memory_equal(again, f->bytes, len);
    free(again);
}

static void file__may_lie_at_any_address(void **state)
{
    fixture *f = *state;
    unsigned char *moved = malloc(f->len + 1);
    memcpy(moved + 1, f->bytes, f->len);
    program *pr = NULL;
    const char *err = NULL;
    assert_int_equal(neff_read(&f->mem, moved + 1, f->len, &pr, &err), NKI_OK);
    assert_string_equal(print(&f->mem, pr->ir), print(&f->mem, f->pr->ir));
    free(moved);
}

static void file__places_keep_their_source_text(void **state)
{
    fixture *f = *state;
    program *pr = NULL;
    const char *err = NULL;
    assert_int_equal(neff_read(&f->mem, f->bytes, f->len, &pr, &err), NKI_OK);
    for (uint32_t i = 0; i < pr->ir->files.n; i++) {
        const source *a = pr->ir->files.at[i].src, *b = f->pr->ir->files.at[i].src;
        assert_int_equal(a->len, b->len);
        assert_memory_equal(a->text, b->text, a->len + 1);
    }
}

// Walks the tar from its definition (POSIX ustar), not from ours.
static void file__is_a_tar_behind_the_header(void **state)
{
    fixture *f = *state;
    size_t at = 1024;
    int members = 0;
    bool blob = false;
    while (f->bytes[at]) {
        const unsigned char *h = f->bytes + at;
        unsigned long sum = 0, size = strtoul((const char *)h + 124, NULL, 8);
        for (int i = 0; i < 512; i++) {
            sum += i >= 148 && i < 156 ? ' ' : h[i];
        }
        assert_int_equal(sum, strtoul((const char *)h + 148, NULL, 8));
        assert_memory_equal(h + 257,
                            "ustar\0"
                            "00",
                            8);
        at += 512;
        if (h[156] == '0') {
            assert_string_equal((const char *)h, neff_section_name[members]);
            members++;
            if (size >= 4096) {
                assert_int_equal(at % 4096, 0);
            }
            blob = blob || (strcmp((const char *)h, "blob") == 0 && size == 6000);
        } else {
            assert_int_equal(h[156], 'x');
            assert_int_equal(size, strtoul((const char *)f->bytes + at, NULL, 10));
            assert_int_equal(f->bytes[at + size - 1], '\n');
        }
        at += (size + 511) / 512 * 512;
    }
    assert_int_equal(members, SEC_COUNT);
    assert_true(blob);
    assert_int_equal(at + 1024, f->len);
}

static void file__json_says_what_it_holds(void **state)
{
    fixture *f = *state;
    textbuf t;
    text_init(&t, &f->mem);
    neff_json(f->pr, &t);
    assert_non_null(strstr(t.at, "\"kernel\": \"k\\\"\\u000a\""));
    assert_non_null(
        strstr(t.at, "{\"name\": \"x\", \"shape\": [256, 512], \"dtype\": \"float32\"}"));
    assert_non_null(strstr(t.at, "\"instructions\": 6"));
    assert_non_null(strstr(t.at, "\"semaphores\": 2, \"waits\": 1, \"spill_stores\": 3"));
    assert_memory_equal(f->bytes + 1024 + 512, t.at, t.len);
}

static const char *refusal(fixture *f, const unsigned char *bytes, size_t len)
{
    program *pr = NULL;
    const char *err = NULL;
    arena_mark m = arena_save(&f->mem);
    nki_status st = neff_read(&f->mem, bytes, len, &pr, &err);
    if (st == NKI_OK) {
        return NULL;
    }
    assert_int_equal(st, NKI_ERR_FORMAT);
    assert_null(pr);
    assert_non_null(err);
    static char text[512];
    snprintf(text, sizeof text, "%s", err);
    arena_restore(&f->mem, m);
    return text;
}

static void damage__cut_at_every_length(void **state)
{
    fixture *f = *state;
    for (size_t len = 0; len < f->len; len++) {
        // A block of its own, so that a read past the end is seen.
        unsigned char *cut = malloc(len ? len : 1);
        memcpy(cut, f->bytes, len);
        const char *err = refusal(f, cut, len);
        assert_non_null(err);
        assert_non_null(strstr(err, len < 1024 ? "inside the header" : "offset 16 (file_bytes)"));
        free(cut);
    }
}

static void damage__cut_and_sealed_again(void **state)
{
    fixture *f = *state;
    for (size_t len = 1024; len < f->len; len += len % 512 ? 1 : 511) {
        unsigned char *cut = malloc(len);
        memcpy(cut, f->bytes, len);
        uint64_t file_bytes = len;
        memcpy(cut + offsetof(neff_header, file_bytes), &file_bytes, 8);
        seal(cut, len);
        assert_non_null(refusal(f, cut, len));
        free(cut);
    }
}

static void damage__every_bit_of_the_header(void **state)
{
    fixture *f = *state;
    for (size_t bit = 0; bit < 8 * 1024; bit++) {
        f->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        const char *err = refusal(f, f->bytes, f->len);
        assert_non_null(err);
        assert_non_null(strstr(err, "offset "));
        f->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_null(refusal(f, f->bytes, f->len));
}

// The same with a valid checksum: what is left are fields whose every value is legal.
static void damage__every_bit_of_the_header_sealed(void **state)
{
    fixture *f = *state;
    unsigned char *copy = malloc(f->len);
    for (size_t bit = 0; bit < 8 * 1024; bit++) {
        memcpy(copy, f->bytes, f->len);
        copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
        seal(copy, f->len);
        const char *err = refusal(f, copy, f->len);
        size_t at = bit / 8;
        bool sum = at >= 24 && at < 40;  // put right again by seal
        // gen, grid, core, registers, kernel, peaks, hbm_bytes; spills
        bool free_value = (at >= 44 && at < 80) || (at >= 88 && at < 104);
        bool flag = bit == 8 * 104;  // fp32_store
        assert_true(err || sum || free_value || flag);
    }
    free(copy);
}

static void damage__every_section_lies(void **state)
{
    fixture *f = *state;
    static const uint64_t lies[] = {0,
                                    1,
                                    7,
                                    511,
                                    4096,
                                    1u << 20,
                                    UINT32_MAX,
                                    (uint64_t)1 << 40,
                                    UINT64_MAX / 2,
                                    UINT64_MAX - 511,
                                    UINT64_MAX};
    unsigned char *copy = malloc(f->len);
    for (size_t id = 0; id < SEC_COUNT; id++) {
        for (size_t i = 0; i < 4 * sizeof lies / sizeof *lies; i++) {
            memcpy(copy, f->bytes, f->len);
            neff_section s, old;
            size_t at = offsetof(neff_header, section) + id * sizeof s;
            memcpy(&s, copy + at, sizeof s);
            old = s;
            uint64_t lie = lies[i / 4];
            switch (i % 4) {
            case 0: s.length = lie; break;
            case 1: s.offset = lie; break;
            case 2:
                s.count = (uint32_t)lie;
                s.length = (uint64_t)s.record * s.count;
                break;
            default: s.record = (uint32_t)lie; break;
            }
            memcpy(copy + at, &s, sizeof s);
            seal(copy, f->len);
            const char *err = refusal(f, copy, f->len);
            if (memcmp(&s, &old, sizeof s) != 0) {
                assert_non_null(err);
                assert_non_null(strstr(err, neff_section_name[id]));
                assert_non_null(strstr(err, "offset "));
            }
        }
    }
    free(copy);
}

// Bytes of the records changed under a valid checksum: a program that verifies, or a sentence.
static void damage__records_sealed(void **state)
{
    fixture *f = *state;
    unsigned char *copy = malloc(f->len);
    uint32_t seed = 1;
    for (int round = 0; round < 8000; round++) {
        memcpy(copy, f->bytes, f->len);
        for (uint32_t k = 0; k < 1u + (uint32_t)round % 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            int id = SEC_STRS + (int)((seed >> 8) % (SEC_COUNT - SEC_STRS));
            neff_section s;
            memcpy(&s, copy + offsetof(neff_header, section) + (size_t)id * sizeof s, sizeof s);
            if (s.length) {
                seed = seed * 1664525u + 1013904223u;
                size_t at = s.offset + (seed >> 8) % s.length;
                seed = seed * 1664525u + 1013904223u;
                unsigned flip = copy[at] ^ 1u << (seed >> 16) % 8;
                copy[at] = (unsigned char)(round % 2 ? seed >> 16 : flip);
            }
        }
        seal(copy, f->len);
        program *pr = NULL;
        const char *err = NULL;
        arena_mark m = arena_save(&f->mem);
        if (neff_read(&f->mem, copy, f->len, &pr, &err) == NKI_OK) {
            print(&f->mem, pr->ir);
            size_t len;
            unsigned char *again = neff_write(pr, &len);
            free(again);
        }
        arena_restore(&f->mem, m);
    }
    free(copy);
}

static void damage__used_but_not_placed(void **state)
{
    fixture *f = *state;
    f->pr->ir->tensors.at[2].addr_bytes = ADDR_AUTO;
    size_t len;
    unsigned char *bytes = neff_write(f->pr, &len);
    const char *err = refusal(f, bytes, len);
    assert_non_null(err);
    assert_non_null(strstr(err, "record 2 is used but has no place"));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(file__comes_back_the_same),
        T(file__may_lie_at_any_address),
        T(file__places_keep_their_source_text),
        T(file__is_a_tar_behind_the_header),
        T(file__json_says_what_it_holds),
        T(damage__cut_at_every_length),
        T(damage__cut_and_sealed_again),
        T(damage__every_bit_of_the_header),
        T(damage__every_bit_of_the_header_sealed),
        T(damage__every_section_lies),
        T(damage__records_sealed),
        T(damage__used_but_not_placed),
#undef T
    };
    return cmocka_run_group_tests_name("neff.file", tests, NULL, NULL);
}
