# The predicted time of every example, beside what it was when it was last looked at. After a change of
# the scheduler or the clock: NKI_UPDATE=1 ctest --preset dev -R cli.cycles, and look at git diff.
. "$ROOT/tests/cli/lib.sh"
golden=$ROOT/tests/golden/cycles.tsv
{
    printf '# example\tschedule\ttarget\tbody time, ns\n'
    for file in "$ROOT"/examples/*.nki; do
        name=${file##*/}
        for how in program/trn1 program/trn2 program/trn3 list/trn2; do
            ns=$("$NKI" profile "$file" --schedule=${how%/*} --target ${how#*/} --json - 2>/dev/null |
                sed -n 's/^    "body_time_ns": \([0-9.]*\),*$/\1/p' | head -1)
            printf '%s\t%s\t%s\t%s\n' "${name%.nki}" "${how%/*}" "${how#*/}" "${ns:-refused}"
        done
    done
} >cycles.tsv
if [ "${NKI_UPDATE:-}" ]; then
    cp cycles.tsv "$golden"
fi
diff "$golden" cycles.tsv || { failed=1; echo 'FAILED: times changed; if that is meant: NKI_UPDATE=1 ctest --preset dev -R cli.cycles'; }
done_testing
