#ifndef NKI_STATUS_H
#define NKI_STATUS_H

#include <nki/export.h>

#ifdef __cplusplus
extern "C" {
#endif

// Numbers are appended and never reused. Row: name, number, text.
#define NKI_STATUS_LIST(X)                                               \
    X(OK,           0, "success")                                        \
    X(ERR_NOMEM,    1, "out of memory")                                  \
    X(ERR_ARG,      2, "invalid argument")                               \
    X(ERR_IO,       3, "a file could not be read or written")            \
    X(ERR_FORMAT,   4, "malformed or truncated file")                    \
    X(ERR_LIMIT,    5, "a limit of time, steps or memory was reached")   \
    X(ERR_DIAG,     6, "the kernel has errors")                          \
    X(ERR_RUN,      7, "the kernel failed while it ran")                 \
    X(ERR_INTERNAL, 8, "internal error in nki")                          \
    X(ERR_TIMEOUT,  9, "the time given to wait has passed")              \
    X(ERR_CANCELLED, 10, "the work was cancelled")                       \
    X(ERR_HOST,    11, "a host function reported a failure")

typedef enum nki_status {
#define NKI_STATUS_ENUM(name, number, text) NKI_##name = number,
    NKI_STATUS_LIST(NKI_STATUS_ENUM)
#undef NKI_STATUS_ENUM
} nki_status;

// "ERR_NOMEM" and "out of memory"; never NULL.
NKI_API const char *nki_status_name(nki_status st);
NKI_API const char *nki_status_text(nki_status st);

#ifdef __cplusplus
}
#endif

#endif
