# Every example, both schedules, each proven: the results of the program's order, bit for bit, in
# orders that the queues and semaphores allow, for any number of threads.
. "$ROOT/tests/cli/lib.sh"
check 2 '' 'nki: --schedule takes program, list; not*' "$NKI" run "$add" --schedule=fast
check 2 '' 'nki: --order wants a whole number*' "$NKI" run "$add" --order=x
a=$("$NKI" check "$ROOT/examples/flash_attention.nki" $(sed -n 's/^# try: //p' "$ROOT/examples/flash_attention.nki") --dump=sched)
b=$("$NKI" check "$ROOT/examples/flash_attention.nki" $(sed -n 's/^# try: //p' "$ROOT/examples/flash_attention.nki") --dump=sched --schedule=list)
[ "$a" != "$b" ] || { failed=1; echo 'FAILED: --schedule=list changes nothing'; }

run() {
    rm -rf out
    "$NKI" run "$file" --verify --raw -q --out out "$@" >/dev/null 2>.err || {
        failed=1
        echo "FAILED: run $file $*"
        cat .err
        return
    }
    [ "$(ls out)" = "$(ls want)" ] || { failed=1; echo "FAILED: $file $*: other outputs"; }
    for f in want/*; do
        cmp "$f" "out/${f#want/}" || { failed=1; echo "FAILED: $file $*"; }
    done
}
# A launch of two: each core in an order of its own.
cores="$ROOT/tests/cli/cores.nki"
want=$("$NKI" run "$cores" 'x=float32[4,3]:arange' --grid 2 --print)
for o in --order=1 --order=2 --schedule=list '--order=3 --schedule=list --threads 4'; do
    same "$want" "$("$NKI" run "$cores" 'x=float32[4,3]:arange' --grid 2 --print --verify $o)"
done
for file in "$ROOT"/examples/*.nki; do
    rm -rf want
    "$NKI" run "$file" --raw -q --out want >/dev/null 2>&1
    run --schedule=list
    run --threads 2
    run --threads 3 --schedule=list
    run --threads 16
    for seed in 1 2; do
        run --order $seed
        run --order $seed --schedule=list --threads 8
    done
done
done_testing
