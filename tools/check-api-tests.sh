#!/bin/sh
# check-api-tests.sh ROOT: every function of the stable headers is called in tests/unit. Each that returns a
# status says which; every status that its comment names, out of memory aside (test_runtime_api fails each
# allocation in turn), is expected in a statement with it.
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# One statement a line.
cat tests/unit/*.c | tr '\n' ' ' | tr ';' '\n' >"$work/statements"
for h in context diag tensor stream kernel op host observe profile; do
    awk '
    /^\/\// { if (code) text = ""; code = 0; text = text " " $0; next }
    /^$/ { text = ""; code = 0; next }
    /^NKI_API/ {
        code = 1; d = $0
        while (d !~ /;/ && (getline more) > 0) d = d " " more
        match(d, /nki_[a-z0-9_]+\(/); f = substr(d, RSTART, RLENGTH - 1); s = ""
        status = d ~ /^NKI_API nki_status/
        i = status ? match(text, /[Ee]rrors/) : 0
        if (status && !i) s = " UNDOCUMENTED"
        n = i ? split(substr(text, i), w, /[^A-Z_a-z0-9]+/) : 0
        # "as nki_other" is that function'"'"'s to test.
        for (k = 1; k <= n; k++)
            if (w[k] ~ /^NKI_ERR_/ && w[k] != "NKI_ERR_NOMEM" && !seen[f w[k]]++) s = s " " w[k]
        print f s
    }' "include/nki/$h.h"
done >"$work/functions"
[ "$(wc -l <"$work/functions")" -gt 80 ] || { echo "check-api-tests.sh finds $(wc -l <"$work/functions") functions only"; exit 1; }
bad=0
while read -r f statuses; do
    grep "[^a-z_]$f(" "$work/statements" >"$work/of" || { echo "$f is called by no unit test"; bad=1; continue; }
    for s in $statuses; do
        [ "$s" != UNDOCUMENTED ] || { echo "$f: its comment names no errors"; bad=1; continue; }
        grep -q "[^A-Z_]$s\b" "$work/of" || { echo "$f: no unit test expects $s"; bad=1; }
    done
done <"$work/functions"
exit $bad
