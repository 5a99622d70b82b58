#!/bin/sh
# The code in README.md and docs/*.md is true: check-doc-code.sh ROOT NKI.
#
# A ```python block that has a kernel (@nki.jit) goes to `nki check`. Its first comments may say more:
#     # NAME.nki          the block is kept under that name for the page's consoles
#     # try: VALUES       it is run with these values, and must end well
#     # error: NAME       it must be refused with that diagnostic (warning: NAME, reported with it)
# In a ```console block each `$ COMMAND` must print, on both outputs, exactly the lines below it.
set -eu
root=$(cd "$1" && pwd)
nki=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin"
ln -s "$nki" "$tmp/bin/nki"
PATH=$tmp/bin:$PATH
export PATH

bad() {
    echo "$page:$line: $*"
    : >"$tmp/bad"
}

kernel() { # FILE
    grep -q '^@nki\.jit' "$1" || return 0
    values=$(sed -n 's/^# try://p' "$1") want=$(sed -n 's/^# \(error\|warning\): *\([a-z_0-9]*\).*/\1[\2]/p' "$1")
    name=$(sed -n '1s/^# \([a-z_0-9]*\.nki\).*/\1/p' "$1")
    name=${name:-block.nki}
    cp "$1" "$name"
    case $want in error*) expect=1 ;; *) expect=0 ;; esac
    status=0
    if [ -n "$values" ]; then
        eval "nki run -q \"$name\" $values" >"$tmp/log" 2>&1 || status=$?
    else
        nki check "$name" >"$tmp/log" 2>&1 || status=$?
    fi
    [ "$status" = "$expect" ] || { bad "status $status, not $expect"; cat "$tmp/log"; }
    if [ -n "$want" ]; then
        grep -qF "$want" "$tmp/log" || { bad "no $want"; cat "$tmp/log"; }
    elif grep -q ': \(error\|warning\)\[' "$tmp/log"; then
        bad "unexpected diagnostic"
        cat "$tmp/log"
    fi
}

console() { # FILE
    : >"$tmp/got"
    sed -n 's/^\$ //p' "$1" >"$tmp/commands"
    while read -r command; do
        printf '$ %s\n' "$command" >>"$tmp/got"
        sh -c "$command" >>"$tmp/got" 2>&1 </dev/null || :
    done <"$tmp/commands"
    diff "$1" "$tmp/got" >"$tmp/log" || { bad "the console shows something else (<)"; cat "$tmp/log"; }
}

for page in "$root/README.md" "$root"/docs/*.md; do
    rm -rf "$tmp/blocks" "$tmp/work"
    mkdir "$tmp/blocks" "$tmp/work"
    # blocks/LINE.KIND in the order of the page
    awk -v out="$tmp/blocks" '
        /^```/ && !on { on = ($0 == "```python" || $0 == "```console"); other = !on
                        file = sprintf("%s/%05d.%s", out, NR, substr($0, 4)); if (on) printf "" >file; else on = 1; next }
        /^```/ { on = other = 0; next }
        on && !other { print >file }' "$page"
    cd "$tmp/work"
    for block in "$tmp"/blocks/*; do
        [ -e "$block" ] || continue
        line=$(basename "$block")
        line=${line%%.*}
        line=$(expr "$line" + 0)
        case $block in
        *.python) kernel "$block" ;;
        *.console) console "$block" ;;
        esac
    done
done
[ ! -e "$tmp/bad" ]
