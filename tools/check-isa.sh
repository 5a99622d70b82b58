#!/bin/sh
# Every instruction that lang/isa.def marks DONE has its checks in lower/, its numerics in device/
# and its cost class; a collective its expansion in stdlib/. One that is PLANNED is refused by name in
# lower/.
set -eu
cd "$1"
bad=0
# A comma list "a, b" may span words: the name is the first argument, the status the seventh.
for row in $(sed -n 's/^ISA(\(.*\)/\1/p' lang/isa.def | awk -F, '{gsub(/ /, ""); print $1 ":" $2 ":" $7}'); do
    name=${row%%:*} rest=${row#*:}
    group=${rest%%:*} status=${rest#*:}
    case $status in
    DONE | PLANNED) ;;
    *) echo "lang/isa.def: $name has status '$status'"; bad=1 ;;
    esac
    [ "$status" = DONE ] || continue
    if [ "$group" = NCC ]; then
        grep -rqw "def $name" stdlib/modules/nki/collectives ||
            { echo "lang/isa.def: $name is DONE, but nki.collectives does not expand it"; bad=1; }
        continue
    fi
    grep -rqw "ISA_$name\|$name" device --include='*.c' --include='*.h' --include='*.def' --include='*.inc' ||
        { echo "lang/isa.def: $name is DONE, but nothing in device/ names it"; bad=1; }
    [ "$group" = CTRL ] || grep -rqw "ISA_$name\|$name" lower --include='*.c' --include='*.def' ||
        { echo "lang/isa.def: $name is DONE, but nothing in lower/ names it"; bad=1; }
done
exit $bad
