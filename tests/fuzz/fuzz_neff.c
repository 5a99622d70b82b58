// Bytes through the container's reader, as they are and with the header's checksums put right, so
// that the records behind them are reached. What is accepted verifies, prints, and is the same
// after one more write and read; its schedule is proven or refused, and when proven runs to its
// end.
#include "neff/layout.h"
#include "neff/neff.h"
#include "sched/linearise.h"
#include "sched/memory_map.h"
#include "sched/program_text.h"
#include "sched/verify_schedule.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static const char *print(const ir *p, arena *mem)
{
    textbuf out;
    text_init(&out, mem);
    ir_print(p, &out);
    return out.at;
}

static void load(const uint8_t *bytes, size_t size, arena *mem)
{
    program *pr = NULL, *again = NULL;
    const char *err = NULL;
    nki_status st = neff_read(mem, bytes, size, &pr, &err);
    require(st == NKI_OK ? pr && !err : st == NKI_ERR_FORMAT && !pr && err);
    if (!pr) {
        return;
    }
    require(!ir_verify(pr->ir, mem));
    const char *text = print(pr->ir, mem);
    textbuf t;
    text_init(&t, mem);
    program_print(pr, &t);
    memory_map_text(pr, &t);
    memory_map_svg(pr, &t);
    if (!schedule_verify(pr, mem)) {
        uint32_t *order = NEW_N(mem, uint32_t, pr->ir->instrs.n);
        require(sched_linearise(pr, mem, size, order));
    }
    size_t len = 0;
    unsigned char *file = neff_write(pr, &len);
    if (file) {
        // The copy is in mem, so that nothing is lost when memory runs out below.
        unsigned char *own = NEW_N(mem, unsigned char, len);
        memcpy(own, file, len);
        free(file);
        require(neff_read(mem, own, len, &again, &err) == NKI_OK);
        require(strcmp(print(again->ir, mem), text) == 0);
    }
}

static void seal(uint8_t *bytes, size_t size)
{
    neff_header h;
    memcpy(&h, bytes, sizeof h);
    memcpy(h.magic, NEFF_MAGIC, sizeof h.magic);
    h.version = NEFF_VERSION;
    h.header_bytes = NEFF_HEADER_BYTES;
    h.file_bytes = size;
    h.tables_xxh3 = neff_tables_hash();
    h.body_xxh3 = neff_hash(bytes + NEFF_HEADER_BYTES, size - NEFF_HEADER_BYTES);
    h.header_xxh3 = neff_header_hash(&h);
    memcpy(bytes, &h, sizeof h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena mem;
    jmp_buf oom;
    arena_init(&mem, (size_t)64 << 20, &oom);
    if (!setjmp(oom)) {
        load(data, size, &mem);
        if (size >= NEFF_HEADER_BYTES) {
            uint8_t *copy = NEW_N(&mem, uint8_t, size);
            memcpy(copy, data, size);
            seal(copy, size);
            load(copy, size, &mem);
        }
    }
    arena_fini(&mem);
    return 0;
}
