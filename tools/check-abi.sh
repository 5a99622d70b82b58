#!/bin/sh
# check-abi.sh ROOT [LIBNKI.so]: the functions that stable headers declare are those of
# tests/golden/abi/symbols, and a shared library exports them all. A line that goes, or changes, breaks
# programs; NKI_GOLDEN_UPDATE=1 writes the file anew.
set -eu
root=$1 lib=${2:-}
list=$root/tests/golden/abi/symbols
found=$(cd "$root/include/nki" && cat $(ls *.h | grep -v -e '^tool.h$' -e '^profile.h$') |
    tr '\n' ' ' | grep -o 'NKI_API[^(]*(' | sed 's/[ (]*$//; s/.*[ *]//' | LC_ALL=C sort -u)
if [ "${NKI_GOLDEN_UPDATE:-}" ]; then
    mkdir -p "$(dirname "$list")"
    printf '%s\n' "$found" >"$list"
fi
status=0
for s in $found; do
    grep -qx "$s" "$list" || { echo "$s is not in $list"; status=1; }
done
while read -r s; do
    printf '%s\n' "$found" | grep -qx "$s" || { echo "$s is gone from the headers"; status=1; }
    case $lib in
    *.so*) nm -D --defined-only "$lib" | grep -q " $s\$" || { echo "$lib lacks $s"; status=1; } ;;
    esac
done <"$list"
exit $status
