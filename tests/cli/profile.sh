# nki profile: forms, trips, constants, comparison. Works without data.
. "$ROOT/tests/cli/lib.sh"
attn=$ROOT/examples/flash_attention.nki loop=$ROOT/examples/dynamic_loop.nki
check 0 'usage: nki profile*--perfetto*' '' "$NKI" profile --help
check 2 '' 'nki: profile wants a kernel file*' "$NKI" profile
check 0 'kernel * on trn2*total_time*Vector*line*' '' "$NKI" profile "$attn"
check 0 '{*"summary": {*"total_time_ns": *"engine": \[*"finding": \[*"line": \[*}' '' \
    "$NKI" profile "$attn" --json -
check 0 '*"instruction": \[*"start_ns"*"waited_for"*' '' "$NKI" profile "$attn" --json - --instructions
check 0 'pcore_idx,start_ts,end_ts,*tensor_reduce*' '' "$NKI" profile "$attn" --csv -
"$NKI" profile "$attn" --csv tables || failed=1
for t in Summary Instruction DmaPacketAggregated ActiveTime OpcodeSummary Flow SemaphoreUpdate SbufAllocation TensorInfo \
    SourceLine Stall Finding; do
    # Every row has as many fields as the header; quoted fields aside, no field has a comma.
    sed 's/"[^"]*"//g' tables/$t.csv | awk -F, -v t=$t 'NR == 1 { n = NF } NF != n { print t ": row " NR " has " NF " fields, not " n; bad = 1 }
        END { exit bad || NR < 1 }' || failed=1
done
check 0 '{"displayTimeUnit"*"ph":"X"*"ph":"s"*}' '' "$NKI" profile "$attn" --perfetto -
check 0 '<!doctype html>*</html>' '' "$NKI" profile "$attn" --html -
check 0 '*total_time_ns*lines*' '' "$NKI" profile "$attn" --against "$attn"
# Each core of a launch; a program of one core against both.
two="$ROOT/examples/two_cores.nki"
check 0 'core 0 of 2 against core 0 of 2*total_time_ns*core 1 of 2 against core 1 of 2*total_time_ns*lines*' '' \
    "$NKI" profile "$two" --against "$two"
"$NKI" compile "$ROOT/examples/vector_add.nki" 'a=float32[200,300]' 'b=float32[200,300]' -o one.neff >/dev/null 2>&1
check 0 'core 0 of 2 against core 0 of 1*core 1 of 2 against core 0 of 1*' '' "$NKI" profile "$two" --against one.neff
check 0 '*is run once*where every tensor has*' '' "$NKI" profile --help
# The same program, the same text.
same "$("$NKI" profile "$attn" --json -)" "$("$NKI" profile "$attn" --json -)"
check 2 '' 'nki: --trip wants NAME=COUNT*' "$NKI" profile "$loop" --trip 40=x
check 4 '' '*' "$NKI" profile "$attn" --json no/such/folder/x
check 2 '' "nki: 'nothing_ns' = 1: no such timing constant*" "$NKI" profile "$attn" --machine nothing_ns=1
a=$("$NKI" profile "$attn" --json - | grep body_time) b=$("$NKI" profile "$attn" --machine dma_notify_ns=9000 --json - | grep body_time)
[ "$a" != "$b" ] || { failed=1; echo 'FAILED: a constant changed nothing'; }
# A container that was compiled before.
"$NKI" compile "$ROOT/examples/vector_add.nki" 'a=float32[200,300]' 'b=float32[200,300]' -o x.neff >/dev/null 2>&1 &&
    check 0 'kernel * on trn2*' '' "$NKI" profile x.neff
done_testing
