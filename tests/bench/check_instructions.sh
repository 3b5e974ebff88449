#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_instructions.sh -- a page is fixed and unfixed by no more instructions than the page frames promise (row nb-7): a count,
# which does not depend on the machine's load.
set -u
. "$(dirname "$0")/xbench_run.sh"

rc=0
"$xbench" frames --all --rows nb-7 --json >rows 2>err || rc=$?
if grep -q '"verdict": "not run"' rows; then
    echo "valgrind is not installed, or does not run here: not tested"
    exit 77
fi
[ "$rc" -eq 0 ] || fail "exit code $rc: $(cat rows err)"
grep -q '"row": "nb-7".*"verdict": "pass"' rows || fail "no row nb-7 that passes: $(cat rows)"
echo "check_instructions: $(sed -n 's/.*"measured": "\(.*\)".*/\1/p' rows)"
