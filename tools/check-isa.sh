#!/bin/sh
# Every instruction that lang/isa.def marks DONE is whole: an entry in lower/check_table.def and in
# device/bind.c's table, a cost class that lang/isa.h knows, and a test that executes it. A collective:
# its expansion in stdlib/ and a test. Every public name of nki.language is executed by a test too.
#
# A test executes a call when it has expected results: a case of tests/ops, a golden with .out, an
# example. A unit test under tests/unit/test_device_* that names ISA_row counts as well.
set -eu
cd "$1"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
missing() {
    echo "$*"
    : >"$tmp/bad"
}

{
    ls tests/ops/cases/*.nki examples/*.nki
    find tests/golden -name '*.out' | sed 's/\.out$/.nki/'
} | xargs cat >"$tmp/executed"
sed 's/#.*//' "$tmp/executed" >"$tmp/code"
grep -oE '[a-z_]\.[A-Za-z_0-9]+' "$tmp/code" | sed 's/.*\.//' | sort -u >"$tmp/used"
grep -ohE 'ISA_[a-z_0-9]+' tests/unit/test_device_*.c | sed 's/ISA_//' | sort -u >"$tmp/unit"
sed -n 's/^ROW(\([a-z_0-9]*\),.*/\1/p' lower/check_table.def >"$tmp/checks"
sed -n 's/^ *ROW(\([a-z_0-9]*\)),.*/\1/p' device/bind.c >"$tmp/numerics"
grep -oE 'COST_[A-Z_0-9]+' lang/isa.h | sed 's/COST_//' >"$tmp/costs"
sed -n 's/^ *def \([a-z_0-9]*\)(.*/\1/p' stdlib/modules/nki/collectives/*.nki >"$tmp/collectives"

has() { grep -qxF "$2" "$tmp/$1"; }

# name group cost status, from ISA(name, group, gen2, gen3, gen4, cost, status, ...
sed -n 's/^ISA(\(.*\)/\1/p' lang/isa.def | awk -F, '{gsub(/ /, ""); print $1, $2, $6, $7}' >"$tmp/rows"
while read -r name group cost status; do
    case $status in
    DONE) ;;
    PLANNED) continue ;;
    *) missing "lang/isa.def: $name has status '$status'" ;;
    esac
    has costs "$cost" || missing "lang/isa.def: $name has the unknown cost class '$cost'"
    if [ "$group" = NCC ]; then
        has collectives "$name" || missing "$name: nki.collectives does not expand it"
        has used "$name" || missing "$name: no test executes it"
        continue
    fi
    has checks "$name" || missing "$name: no row in lower/check_table.def"
    has numerics "$name" || missing "$name: no row in device/bind.c"
    # What the specializer makes has no call of its own; loops come from the statements below.
    case $name in
    loop_for | loop_end) grep -qE 'dynamic_range\(|fori_loop\(' "$tmp/code" ;;
    loop_while) grep -qE 'while_loop\(' "$tmp/code" ;;
    *) has used "$name" || has unit "$name" ;;
    esac || missing "$name: no test executes it"
done <"$tmp/rows"

# Names that nki.language imports from its own modules, under the name that kernels see.
awk '/^from nki\.language\._/ { on = 1; removed = /_removed/; sub(/.*import/, "") }
     on && !removed { print }
     /\)/ || !/[(,]$/ { on = 0 }' stdlib/modules/nki/language/__init__.nki |
    tr '(),' '\n\n\n' | sed 's/.* as //; s/ //g' | grep -E '^[a-z]' | sort -u >"$tmp/language"
while read -r name; do
    grep -qE "(nl|language)\.$name([^A-Za-z_0-9]|\$)" "$tmp/code" || missing "nki.language.$name: no test executes it"
done <"$tmp/language"

[ ! -e "$tmp/bad" ]
