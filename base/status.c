#include <nki/status.h>

const char *nki_status_name(nki_status st)
{
    switch (st) {
#define ROW(name, number, text) \
    case NKI_##name: return #name;
        NKI_STATUS_LIST(ROW)
#undef ROW
    }
    return "unknown";
}

const char *nki_status_text(nki_status st)
{
    switch (st) {
#define ROW(name, number, text) \
    case NKI_##name: return text;
        NKI_STATUS_LIST(ROW)
#undef ROW
    }
    return "unknown status";
}
