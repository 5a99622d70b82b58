#ifndef NEFF_LAYOUT_H
#define NEFF_LAYOUT_H

#include "lang/program.h"

#include <stddef.h>

// The bytes of a NEFF: docs/neff.md. Little-endian; every structure here is what the file holds.

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the container's sections are this machine's arrays: a little-endian machine is needed"
#endif

// NEFF_SECTION(id, member's name, bytes of a record). Order is the order in the file.
#define NEFF_SECTIONS(NEFF_SECTION)                                                                \
    NEFF_SECTION(JSON, "neff.json", 1)                                                             \
    NEFF_SECTION(STRS, "strs", 1)                                                                  \
    NEFF_SECTION(STR_OFFSETS, "str_offsets", 4)                                                    \
    NEFF_SECTION(INSTRS, "instrs", 20)                                                             \
    NEFF_SECTION(ARGS, "args", 8)                                                                  \
    NEFF_SECTION(VIEWS, "views", 8)                                                                \
    NEFF_SECTION(FORMS, "forms", 24)                                                               \
    NEFF_SECTION(APS, "aps", 8)                                                                    \
    NEFF_SECTION(DIMS, "dims", 16)                                                                 \
    NEFF_SECTION(DYNS, "dyns", 24)                                                                 \
    NEFF_SECTION(TENSORS, "tensors", 80)                                                           \
    NEFF_SECTION(PLACES, "places", 24)                                                             \
    NEFF_SECTION(FILES, "files", 16)                                                               \
    NEFF_SECTION(TEXT, "text", 1)                                                                  \
    NEFF_SECTION(DEPS, "deps", 4)                                                                  \
    NEFF_SECTION(PARAMS, "params", 8)                                                              \
    NEFF_SECTION(OUTPUTS, "outputs", 4)                                                            \
    NEFF_SECTION(BLOB, "blob", 1)                                                                  \
    NEFF_SECTION(STREAMS, "streams", 4)                                                            \
    NEFF_SECTION(SLOTS, "slots", 12)                                                               \
    NEFF_SECTION(SYNCS, "syncs", 8)                                                                \
    NEFF_SECTION(SEMAPHORES, "semaphores", 4)                                                      \
    NEFF_SECTION(DMAS, "dmas", 24)

typedef enum neff_section_id {
#define NEFF_ENUM(id, name, record) SEC_##id,
    NEFF_SECTIONS(NEFF_ENUM)
#undef NEFF_ENUM
        SEC_COUNT
} neff_section_id;

enum {
    NEFF_VERSION = 2,
    NEFF_HEADER_BYTES = 1024,
    NEFF_MAX_SECTIONS = 28,
    NEFF_FP32_STORE = 1,  // header.flags: ir.fp32_store
    NEFF_PAGE_BYTES = 4096,  // a member of at least this many bytes begins on a multiple of it
    TAR_BLOCK = 512,
};
#define NEFF_MAGIC "\x89NKI\r\n\x1a\n"

typedef struct neff_section {
    uint64_t offset;  // of the member's data, from the start of the file
    uint64_t length;  // bytes: record * count
    uint32_t record;  // bytes
    uint32_t count;
    uint32_t id;  // its own number
    uint32_t zero;
} neff_section;

typedef struct neff_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint64_t body_xxh3;    // XXH3-64 of the bytes from header_bytes to the end
    uint64_t header_xxh3;  // XXH3-64 of the header with this field as 0
    uint32_t nsections;
    uint32_t gen;
    uint32_t grid, core;
    uint32_t registers;
    uint32_t kernel;  // str
    uint32_t sbuf_peak_bytes, psum_peak_bytes;
    uint64_t hbm_bytes;
    uint64_t tables_xxh3;  // neff_tables_hash() of the tool that wrote it
    uint32_t spill_stores, spill_loads;
    uint64_t spill_bytes;
    uint32_t flags;  // NEFF_FP32_STORE; other bits are 0
    uint8_t reserved[20];
    neff_section section[NEFF_MAX_SECTIONS];
} neff_header;

typedef struct neff_file {
    uint32_t name;  // str
    uint32_t text;  // in section text; text_len bytes and a zero follow
    uint32_t text_len;
    uint32_t has_text;  // 0: the source was not at hand
} neff_file;

_Static_assert(sizeof(neff_section) == 32, "docs/neff.md");
_Static_assert(sizeof(neff_header) == NEFF_HEADER_BYTES, "docs/neff.md");
_Static_assert(offsetof(neff_header, section) == 128, "docs/neff.md");
_Static_assert(sizeof(ir_instr) == 20 && sizeof(ir_arg) == 8 && sizeof(ir_named) == 8,
               "docs/ir.md");
_Static_assert(sizeof(ir_form) == 24, "docs/ir.md");
_Static_assert(sizeof(ir_ap) == 8 && sizeof(ir_dim) == 16 && sizeof(ir_dyn) == 24, "docs/ir.md");
_Static_assert(sizeof(ir_tensor) == 80 && sizeof(ir_place) == 24, "docs/ir.md");
_Static_assert(sizeof(ir_param) == 8 && sizeof(neff_file) == 16, "docs/ir.md");
_Static_assert(sizeof(queue_slot) == 12 && sizeof(sync_op) == 8, "docs/neff.md");
_Static_assert(sizeof(semaphore_info) == 4 && sizeof(dma_info) == 24, "docs/neff.md");
_Static_assert((int)SEC_COUNT <= (int)NEFF_MAX_SECTIONS, "header");

extern const char *const neff_section_name[SEC_COUNT];
extern const uint32_t neff_section_record[SEC_COUNT];

uint64_t neff_hash(const void *p, size_t len);
uint64_t neff_header_hash(const neff_header *h);  // with header_xxh3 as 0
// Of the names and numbers that sections are written in: instructions, parameters, operators,
// enums, dtypes. Equal tables read each other's files.
uint64_t neff_tables_hash(void);

// Bytes of filler (0, or a tar extended header of at least 1024) between `end`, where the last
// member's padded data ended, and the header of a member of `length` bytes.
uint64_t neff_filler_bytes(uint64_t end, uint64_t length);
static inline uint64_t neff_padded(uint64_t length)
{
    return (length + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

// A ustar header: mode 0644, owner 0, time 0. type: '0' a file, 'x' an extended header.
void tar_header(unsigned char out[TAR_BLOCK], const char *name, uint64_t size, char type);
// Writes `bytes` (>= 1024, a multiple of 512) of an extended header that holds a comment only.
void tar_filler(unsigned char *out, uint64_t bytes);
#define TAR_MAX_BYTES 077777777777u  // 8 GiB - 1: what a header's size field holds

// neff.json of pr, in out's arena.
void neff_json(const program *pr, textbuf *out);

#endif
