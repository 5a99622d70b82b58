#include "neff/layout.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

const char *const neff_section_name[SEC_COUNT] = {
#define NEFF_NAME(id, name, record) [SEC_##id] = name,
    NEFF_SECTIONS(NEFF_NAME)
#undef NEFF_NAME
};

const uint32_t neff_section_record[SEC_COUNT] = {
#define NEFF_RECORD(id, name, record) [SEC_##id] = record,
    NEFF_SECTIONS(NEFF_RECORD)
#undef NEFF_RECORD
};

uint64_t neff_hash(const void *p, size_t len)
{
    return XXH3_64bits(p, len);
}

uint64_t neff_header_hash(const neff_header *h)
{
    neff_header copy = *h;
    copy.header_xxh3 = 0;
    return XXH3_64bits(&copy, sizeof copy);
}

static void add_text(XXH3_state_t *st, const char *s)
{
    XXH3_64bits_update(st, s, strlen(s) + 1);
}

static void add_bytes(XXH3_state_t *st, uint8_t a, uint8_t b, uint8_t c)
{
    const uint8_t v[3] = {a, b, c};
    XXH3_64bits_update(st, v, sizeof v);
}

uint64_t neff_tables_hash(void)
{
    XXH3_state_t st;
    XXH3_INITSTATE(&st);
    XXH3_64bits_reset(&st);
    for (int i = 0; i < ISA_COUNT; i++) {
        add_text(&st, isa_table[i].name);
        for (uint32_t k = 0; k < isa_table[i].nparams; k++) {
            const isa_param *par = &isa_table[i].params[k];
            add_text(&st, par->name);
            add_bytes(&st, par->type, par->spaces, par->dflt);
        }
        add_bytes(&st, isa_table[i].nparams, 0xff, 0);
    }
    for (int i = 0; i < OPR_COUNT; i++) {
        add_text(&st, op_table[i].name);
    }
    for (int i = 0; i < DT_COUNT; i++) {
        add_text(&st, dtype_name((dtype)i));
        add_bytes(&st, (uint8_t)dtype_size((dtype)i), 0, 0);
    }
    for (int e = 0; e < ISA_ENUM_COUNT; e++) {
        for (int v = 0; v < 16; v++) {
            const char *m = isa_enum_member((isa_enum)e, v);
            add_text(&st, m ? m : "");
        }
    }
    return XXH3_64bits_digest(&st);
}

uint64_t neff_filler_bytes(uint64_t end, uint64_t length)
{
    if (length < NEFF_PAGE_BYTES) {
        return 0;
    }
    uint64_t over = (end + TAR_BLOCK) % NEFF_PAGE_BYTES;
    uint64_t gap = over ? NEFF_PAGE_BYTES - over : 0;
    return gap == TAR_BLOCK ? gap + NEFF_PAGE_BYTES : gap;
}

static void octal(unsigned char *out, uint64_t v, int digits)
{
    out[digits] = '\0';
    while (digits-- > 0) {
        out[digits] = (unsigned char)('0' + (v & 7));
        v >>= 3;
    }
}

// POSIX.1-1988 ustar: offsets of the fields of a header block.
enum {
    USTAR_MODE = 100,
    USTAR_UID = 108,
    USTAR_GID = 116,
    USTAR_SIZE = 124,
    USTAR_TIME = 136,
    USTAR_SUM = 148,
    USTAR_TYPE = 156,
    USTAR_MAGIC = 257,
    USTAR_MAJOR = 329,
    USTAR_MINOR = 337
};

void tar_header(unsigned char out[TAR_BLOCK], const char *name, uint64_t size, char type)
{
    memset(out, 0, TAR_BLOCK);
    memcpy(out, name, strlen(name));
    octal(out + USTAR_MODE, 0644, 7);
    octal(out + USTAR_UID, 0, 7);
    octal(out + USTAR_GID, 0, 7);
    octal(out + USTAR_SIZE, size, 11);
    octal(out + USTAR_TIME, 0, 11);
    memset(out + USTAR_SUM, ' ', 8);
    out[USTAR_TYPE] = (unsigned char)type;
    memcpy(out + USTAR_MAGIC,
           "ustar\0"
           "00",
           8);
    octal(out + USTAR_MAJOR, 0, 7);
    octal(out + USTAR_MINOR, 0, 7);
    unsigned sum = 0;
    for (int i = 0; i < TAR_BLOCK; i++) {
        sum += out[i];
    }
    octal(out + USTAR_SUM, sum, 6);
}

void tar_filler(unsigned char *out, uint64_t bytes)
{
    uint64_t len = bytes - TAR_BLOCK;
    tar_header(out, "pad", len, 'x');
    out += TAR_BLOCK;
    memset(out, '.', len);
    char head[40];
    int n = snprintf(head, sizeof head, "%llu comment=", (unsigned long long)len);
    memcpy(out, head, (size_t)n);
    out[len - 1] = '\n';
}
