#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_swizzle.sh -- all parts of `xbench swizzle` in one process: what one part sets is not there in the next.
#
# Whether a row passes its line is not asked: so small, and with other tests beside it, it tells nothing.
set -u
. "$(dirname "$0")/xbench_run.sh"

rc=0
"$xbench" swizzle --all --quick --json >rows 2>err || rc=$?
grep -q '"verdict": "missed"' rows && want=3 || want=0
[ "$rc" -eq "$want" ] || fail "exit code $rc, and not $want: $(tail -n 3 err)"

parts=$("$xbench" swizzle --help | sed -n 's/^Parts: //p')
[ -n "$parts" ] || fail "the help names no parts"
for part in $parts; do
    grep -q "\"part\": \"$part\"" rows || fail "part $part measured nothing"
done
for row in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16; do
    grep -q "\"part\": \"B$row\"" rows || fail "there is no row B$row"
done
echo "check_swizzle: $(grep -c . rows) rows, $(echo "$parts" | wc -w) parts"
