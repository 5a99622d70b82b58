# Every example, both schedules: without any one of its semaphore operations the proof of order
# fails, so no wait is there for nothing and the checker sees each.
. "$ROOT/tests/cli/lib.sh"
for file in "$ROOT"/examples/*.nki; do
    stem=$(basename "$file" .nki)
    for order in program list; do
        "$NKI" compile "$file" $(sed -n 's/^# try: //p' "$file") --schedule=$order -q -o "$stem.$order.neff" 2>.err || {
            failed=1
            echo "FAILED: compile $file"
            cat .err
        }
    done
done
"$NKI" compile "$ROOT/tests/cli/cores.nki" 'x=float32[4,3]' --grid 2 -q -o cores.neff || failed=1
check 0 '[1-9][0-9][0-9]* waits' '' "$WAITS" *.neff
done_testing
