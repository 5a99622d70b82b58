# nki run --check: statuses, formats, what -W does. The findings' texts are goldens (golden/check), what is
# found where is planted.sh.
. "$ROOT/tests/cli/lib.sh"
partial=$ROOT/tests/golden/check/output_partial.nki
legal=$ROOT/tests/golden/check/partial_legal.nki
x='x=float32[128,8]:arange'

# Findings: status 1, the results are there all the same.
check 1 'out0 *out1 *' '*warning\[output_partial\]*' "$NKI" run --check "$partial" "$x"
check 0 'out0 *' '*' "$NKI" run "$partial" "$x"
check 0 'out0 *' '' "$NKI" run --check "$legal" 'x=float32[64,8]:arange'
"$NKI" run -q --check --out with "$partial" "$x" 2>/dev/null
"$NKI" run -q --out without "$partial" "$x" 2>/dev/null
cmp with/out0.npy without/out0.npy || failed=1

# While somebody looks on: the same findings, every write shown, the same results.
"$NKI" run -q --check "$partial" "$x" 2>alone.txt
"$NKI" run -q --watch out0 "$partial" "$x" >watch.txt
printf 'c\n' >go.commands
"$NKI" run -q --check --watch out0 --break start --commands go.commands --out looked "$partial" "$x" >both.txt 2>both.err
same 1 "$?"
same "$(cat alone.txt)" "$(cat both.err)"
[ -s watch.txt ] && same "$(cat watch.txt)" "$(sed -n '/^(nki)/,$p' both.txt | sed 1d)"
cmp looked/out0.npy without/out0.npy || failed=1

# A kind that is switched off is not found; one that is an error does not end the run either.
check 0 '' '' "$NKI" run -q --check -Wno-output_partial -Wno-output_unwritten "$partial" "$x"
check 1 'out0*' '*error\[output_partial\]*' "$NKI" run --print --check -Werror=output_partial "$partial" "$x"

# Once for all repetitions.
check 1 '' '*' "$NKI" run -q --check --repeat 3 --diag-format=short "$partial" "$x"
same 2 "$(grep -c 'warning.output_partial' .err)"
# A comparison that fails says more than the findings.
check 3 '*' '*output_partial*' "$NKI" run --check --expect out0=with/out1.npy "$partial" "$x"

check 1 '' '*"name":"output_partial"*"path":"*output_partial.nki","line":9,*"notes":\[*' \
    "$NKI" run -q --check --diag-format=json "$partial" "$x"

# A container that carries its source names it.
"$NKI" compile "$partial" "$x" -o partial.neff 2>/dev/null
check 1 '' '*warning\[output_partial\]: output 0: 256 of 1024 elements were never written, the first is *' \
    "$NKI" run -q --check partial.neff "$x"

# Out of bounds ends the run.
check 1 '' '*error\[oob_access\]*' "$NKI" run -q --check "$ROOT/tests/golden/device/oob_access.nki" \
    'table=float32[8,16]:arange' 'rows=int32[4,1]:full(11)'
done_testing
