#!/bin/sh
# Every public name (tests/names.txt) is used by a test that has expected results: a case of tests/ops,
# a golden with .out, an example. tests/rules shows refusals only and does not count.
set -eu
cd "$1"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
{
    ls tests/ops/cases/*.nki examples/*.nki
    find tests/golden -name '*.out' | sed 's/\.out$/.nki/'
} | xargs cat | sed 's/#.*//' >"$tmp/code"

# Names after a prefix, with and without their second part: "engine.vector" and "engine".
after() {
    grep -oE "$1\.[A-Za-z_0-9]+(\.[A-Za-z_0-9]+)?" "$tmp/code" | sed -E "s/^$1\.//" | sort -u >"$tmp/long"
    sed 's/\..*//' "$tmp/long" | cat - "$tmp/long" | sort -u >"$tmp/$2"
}
after '(^|[^A-Za-z_0-9.])nki' nki:
after '(^|[^A-Za-z_0-9.])(nisa|isa|ni)' nisa:
after '(^|[^A-Za-z_0-9.])(nl|language)' nl:
after '(^|[^A-Za-z_0-9.])(ncc|collectives)' ncc:
after '[])A-Za-z_0-9]' tensor:
after '\)' instruction:
after '[)A-Za-z_0-9]' kernel:

grep -v '^#' tests/names.txt | while read -r kind names; do
    for name in $names; do
        grep -qxF "$name" "$tmp/$kind" || echo "$kind $name: no test executes it"
    done
done >"$tmp/missing"
cat "$tmp/missing"
[ ! -s "$tmp/missing" ]
