#!/bin/sh
# docs/profile.md explains every metric, finding and table: check-profile.sh ROOT
set -eu
cd "$1"
bad=0
names=$(sed -n 's/^METRIC(\([a-z_0-9]*\),.*/\1/p; s/^FINDING(.*"\(.*\)")$/\1/p; s/^TABLE(.*"\(.*\)")$/\1/p' sched/profile.def sched/profile_tables.def)
for name in $names; do
    grep -Eq "^\|[^|]*(^|[ |,\`])$name[ ,|\`]" docs/profile.md || { echo "docs/profile.md has no row for $name"; bad=1; }
done
[ "$(echo "$names" | wc -l)" -gt 60 ] || { echo "check-profile.sh finds too few names"; bad=1; }
exit $bad
