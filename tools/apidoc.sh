#!/bin/sh
# apidoc.sh ROOT [--check]: the API reference in Markdown on standard output, from the comments of
# the public headers. docs/api.md is its output; --check compares them.
set -eu
if [ "${2:-}" = --check ]; then
    sh "$0" "$1" | diff -u "$1/docs/api.md" - && exit
    echo "docs/api.md is not what the headers say: cmake --build build/dev --target docs"
    exit 1
fi
cd "$1/include/nki"
cat <<'HEAD'
# C API

Made by `tools/apidoc.sh` from `include/nki/*.h`. `nki/tool.h` and `nki/profile.h` are for our own tool and may
change in any version. [docs/embedding.md](embedding.md) is the guide.
HEAD
for h in nki context status diag tensor stream kernel op host observe; do
    awk -v name="nki/$h.h" '
    BEGIN { print "\n## " name }
    function emit() {
        if (text != "") printf "\n%s", text
        sub(/\n+$/, "", code)
        if (code != "") printf "\n```c\n%s\n```\n", code
        text = code = ""
    }
    /^#ifdef __cplusplus/ { hidden = 1 }
    hidden { hidden = !/^#endif/; next }
    /^\/\/ clang-format/ || /^#(ifndef|endif|include)/ || /^#define NKI_[A-Z]+_H$/ { next }
    # A rule across the page.
    /^\/\/ ----/ { emit(); t = $0; sub(/^\/\/ -+ */, "", t); print "\n### " t; next }
    # Comment lines at the margin belong to the code after them.
    /^\/\// {
        if (code != "") emit()
        line = $0; sub(/^\/\/ ?/, "", line)
        text = text line "\n"; next
    }
    /^$/ { emit(); next }
    { code = code $0 "\n" }
    END { emit() }' "$h.h"
done
