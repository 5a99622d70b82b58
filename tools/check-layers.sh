#!/bin/sh
# Fails when a file includes a header of a layer that its own layer may not use. The rules are the
# nki_layer() calls in CMakeLists.txt; include/nki is open to all; cli/ sees nothing but that.
set -eu
cd "$1"
layers=$(sed -n 's/^nki_layer(\([a-z]*\).*/\1/p' CMakeLists.txt)
find $layers cli examples \( -name '*.[chy]' -o -name '*.re' -o -name '*.def' -o -name '*.inc' \) |
sort | xargs awk '
FNR == NR {
    if ($0 ~ /^nki_layer\(/) { call = ""; open = 1 }
    if (open) call = call " " $0
    if (open && $0 ~ /\)/) {
        open = 0
        gsub(/^ *nki_layer\(|\).*/, "", call)
        n = split(call, w, /[ \t]+/); on = 0; layer[w[1]] = 1; ok[w[1], w[1]] = 1
        for (i = 2; i <= n; i++) if (w[i] == "DEPENDS") on = 1; else if (on) ok[w[1], w[i]] = 1
    }
    next
}
FNR == 1 { from = FILENAME; sub(/\/.*/, "", from) }
/^[ \t]*#[ \t]*include[ \t]+"/ {
    to = $0; sub(/^[^"]*"/, "", to); sub(/\/.*/, "", to)
    if (layer[to] && !ok[from, to]) { print FILENAME ":" FNR ": " from "/ may not include " to "/"; bad = 1 }
}
END { exit bad }
' CMakeLists.txt
