#ifndef DRIVER_LOADER_H
#define DRIVER_LOADER_H

#include "lower/specialize.h"

#include <nki/context.h>
#include <nki/status.h>

// Finds, reads and parses what a compile reaches. Lives in the compile's arena; a file is parsed
// once however many names lead to it.
typedef struct loader_entry loader_entry;

// A path that was looked for and not there: were it, an import might find something else.
typedef struct loader_absent {
    struct loader_absent *next;
    const char *path;
} loader_absent;

typedef struct loader {
    arena *mem;
    intern *names;
    const char *const *roots;  // -I, in order
    size_t root_count;
    // The embedder's modules; NULL: none. As in nki_context_opts.
    int (*resolve)(void *ctx, const char *dotted, nki_module_text *out);
    void *resolve_ctx;
    int fd;               // open while a file is read, else -1 (see read_source)
    double parse_ms;      // spent in the parser, imports included
    loader_entry *entry;  // the kernel's own file
    loader_entry *first, **tail;
    struct loader_absent *absent;  // looked for and not there, newest first
    bool searched;                 // folders were looked through for an import
    // Hash table of lookups already made, key "folder\0level\0dotted".
    struct loader_memo **memo;
    uint32_t memo_cap, memo_count;
} loader;

void loader_init(loader *ld, arena *mem, intern *names, const char *const *roots,
                 size_t root_count);

// The kernel's own file, or text with a name (path then says where its imports start; it need not
// exist). Parse errors are in ds and *out is still given; *why is a sentence when the status is not
// NKI_OK.
nki_status loader_open(loader *ld, const char *path, const char *text, size_t len, diags *ds,
                       const loaded_module **out, const char **why);

// What specialize() calls.
module_loader loader_interface(loader *ld);

// Every file read so far, in order: shown name, text. Returns NULL past the end.
const source *loader_source_at(const loader *ld, size_t i, const char **path);

#endif
