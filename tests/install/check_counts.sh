#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_counts.sh -- scripts/count_tests counts what passed, failed and was skipped.
#
# GOAL    A case that says "skipped: REASON" is not among those that passed; a program that fails is,
#         whatever its summary says; the exit code says whether all is well.
# METHOD  Results and logs as `make check` leaves them, written here.
set -u

count=$(cd "$(dirname "$0")/../.." && pwd)/scripts/count_tests
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0

# left NAME RESULT TEXT -- what a test program leaves.
left()
{
    echo ":test-result: $2" >"$dir/$1.trs"
    printf '%s\n' "$3" >"$dir/$1.log"
}

# must_say CODE LINE -- the exit code and the last line.
must_say()
{
    said=$("$count" "$dir")
    rc=$?
    said=$(printf '%s\n' "$said" | tail -n 1)
    [ "$rc $said" = "$1 $2" ] && return
    echo "check_counts: \"$rc $said\", not \"$1 $2\""
    failures=$((failures + 1))
}

must_say 1 "0 passed, 0 failed, 0 skipped"
left script PASS "all is well"
must_say 0 "1 passed, 0 failed, 0 skipped"
left check PASS "100%: Checks: 28, Failures: 0, Errors: 0"
must_say 0 "29 passed, 0 failed, 0 skipped"
left check PASS "skipped: only root may
what is skipped: nothing
skipped: only root may
100%: Checks: 28, Failures: 0, Errors: 0"
must_say 0 "27 passed, 0 failed, 2 skipped"
left whole SKIP "skipped: another build"
must_say 0 "27 passed, 0 failed, 3 skipped"
left python PASS "== 221 passed, 2 skipped in 30.1s =="
must_say 0 "248 passed, 0 failed, 5 skipped"
left check FAIL "skipped: only root may
50%: Checks: 4, Failures: 1, Errors: 1"
must_say 1 "223 passed, 2 failed, 4 skipped"
left check FAIL "100%: Checks: 4, Failures: 0, Errors: 0"
must_say 1 "226 passed, 1 failed, 3 skipped"
left script FAIL "Segmentation fault"
must_say 1 "225 passed, 2 failed, 3 skipped"
echo "check_counts: $failures failures"
[ "$failures" -eq 0 ]
