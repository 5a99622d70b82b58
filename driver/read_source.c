#include "driver/read_source.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static nki_status refuse(arena *mem, const char *shown, const char **why)
{
    int e = errno;
    *why = arena_printf(mem, "cannot read '%s': %s", shown, strerror(e));
    return e == ENOMEM ? NKI_ERR_NOMEM : NKI_ERR_IO;
}

// Text may hold a stray control character, which the parser points at; a file full of them was
// never text.
static bool looks_binary(const char *p, size_t len)
{
    size_t n = len < 8192 ? len : 8192, control = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        control += c < 32 && c != '\t' && c != '\n' && c != '\r' && c != '\f';
    }
    return control >= 8 && control > n / 16;
}

static void close_fd(int *fd)
{
    close(*fd);
    *fd = -1;
}

nki_status read_source(arena *mem, const char *path, const char *shown, int *fd, source *out,
                       const char **why)
{
    struct stat sb;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) {
        return refuse(mem, shown, why);
    }
    if (fstat(*fd, &sb) != 0) {
        nki_status st = refuse(mem, shown, why);
        close_fd(fd);
        return st;
    }
    if (S_ISDIR(sb.st_mode)) {
        close_fd(fd);
        *why = arena_printf(mem, "cannot read '%s': it is a directory", shown);
        return NKI_ERR_IO;
    }
    size_t cap = S_ISREG(sb.st_mode) && sb.st_size > 0 ? (size_t)sb.st_size : 0;
    if (cap > SOURCE_MAX_BYTES) {
        close_fd(fd);
        *why = arena_printf(mem, "'%s' is %zu bytes; the limit for a kernel file is %d", shown, cap,
                            SOURCE_MAX_BYTES);
        return NKI_ERR_LIMIT;
    }
    char *at = NEW_N(mem, char, cap + 1);
    size_t len = 0;
    // One byte beyond what fstat promised tells whether the file grew (or is a pipe).
    for (;;) {
        if (len == cap) {
            size_t more = cap ? cap * 2 : 65536;
            char extra;
            ssize_t n = read(*fd, &extra, 1);
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n <= 0) {
                if (n < 0) {
                    nki_status st = refuse(mem, shown, why);
                    close_fd(fd);
                    return st;
                }
                break;
            }
            if (more > SOURCE_MAX_BYTES + (size_t)65536) {
                close_fd(fd);
                *why =
                    arena_printf(mem, "'%s' is longer than %d bytes, the limit for a kernel file",
                                 shown, SOURCE_MAX_BYTES);
                return NKI_ERR_LIMIT;
            }
            char *wider = NEW_N(mem, char, more + 1);
            memcpy(wider, at, len);
            at = wider;
            cap = more;
            at[len++] = extra;
        }
        ssize_t n = read(*fd, at + len, cap - len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            nki_status st = refuse(mem, shown, why);
            close_fd(fd);
            return st;
        }
        if (n == 0) {
            break;
        }
        len += (size_t)n;
    }
    close_fd(fd);
    if (len > SOURCE_MAX_BYTES) {
        *why = arena_printf(mem, "'%s' is longer than %d bytes, the limit for a kernel file", shown,
                            SOURCE_MAX_BYTES);
        return NKI_ERR_LIMIT;
    }
    at[len] = '\0';
    if (looks_binary(at, len)) {
        *why = arena_printf(mem, "'%s' is a binary file, not kernel source", shown);
        return NKI_ERR_FORMAT;
    }
    *out = (source){arena_text(mem, shown, strlen(shown)), at, (uint32_t)len};
    return NKI_OK;
}
