#!/bin/sh
# Writes the table of docs/machine.md from sched/machine.def, or with --check compares them.
#
# machine-doc.sh ROOT [--check]
set -eu
root=${1:?usage: machine-doc.sh ROOT [--check]}
doc=$root/docs/machine.md
table() {
    awk '
    /^\/\/ ---- / {
        title = substr($0, 9)
        printf "\n### %s\n\n| constant | unit | trn1 | trn2 | trn3 | trust | source |\n", title
        print "|---|---|---|---|---|---|---|"
    }
    /^M\(/ {
        row = substr($0, 3)
        at = index(row, "\"")
        text = substr(row, at + 1)
        sub(/"\)[^"]*$/, "", text)
        n = split(substr(row, 1, at - 1), f, /, */)
        printf "| %s | %s | %s | %s | %s | %s | %s |\n", f[1], f[2], f[3], f[4], f[5], tolower(f[6]), text
    }' "$root/sched/machine.def"
}
whole() {
    sed '/^<!-- table -->$/q' "$doc"
    table
}
if [ "${2:-}" = --check ]; then
    whole | diff - "$doc" >/dev/null || {
        echo "docs/machine.md differs from sched/machine.def: run tools/machine-doc.sh ." >&2
        exit 1
    }
else
    whole >"$doc.new"
    mv "$doc.new" "$doc"
fi
