# Each rule of nki profile: tests/findings/RULE.nki has a kernel that trips it and the nearest that does not.
. "$ROOT/tests/cli/lib.sh"
kinds() { "$NKI" profile "$ROOT/tests/findings/$1.nki::$2" --spill --json - 2>err.txt | sed -n 's/.*{"kind": "\([a-z0-9-]*\)".*"cost_ns".*/\1/p'; }
rules=$(sed -n 's/^FINDING(.*"\(.*\)")$/\1/p' "$ROOT/sched/profile.def")
[ "$(echo $rules | wc -w)" -ge 14 ] || { failed=1; echo "FAILED: rules: $rules"; }
for rule in $rules; do
    file=$(echo "$rule" | tr - _)
    kinds "$file" trips | grep -qx "$rule" || { failed=1; echo "FAILED: $rule is not found in trips: $(kinds "$file" trips)"; cat err.txt; }
    kinds "$file" clean >clean.txt
    [ -s err.txt ] && { failed=1; echo "FAILED: $rule: clean"; cat err.txt; }
    grep -qx "$rule" clean.txt && { failed=1; echo "FAILED: $rule is found in clean"; }
done
done_testing
