#!/bin/sh
# Every row of lang/diag.def is reached by a golden .diag file, a rule of tests/rules, a command-line test or a unit test.
set -eu
cd "$1"
bad=0
for slug in $(sed -n 's/^DIAG0\{0,1\} *(\([a-z0-9_]*\),.*/\1/p' lang/diag*.def); do
    grep -rqF "[$slug]" tests/golden || grep -qE "^--.*\b$slug: " tests/rules/*.rules || grep -rqw "$slug" tests/cli || grep -rqw "$slug\|D_$slug" tests/unit ||
        { echo "lang/diag.def: no test reaches '$slug'"; bad=1; }
done
exit $bad
