#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run_test.sh -- run one test program, for `make check`.
#
# Output goes to stdout, that is to the test's .log file; a Check program's summary line
# also to descriptor 9, the terminal.  Exit code: the program's.
summary='^[0-9]*%: Checks: [0-9]*, Failures: [0-9]*, Errors: [0-9]*'
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT

case $1 in
*.sh) sh "$@" >"$out" 2>&1 ;;
*) "$@" >"$out" 2>&1 ;;
esac
rc=$?
cat "$out"

if ! line=$(grep "$summary" "$out"); then
    line="exit code $rc"
fi
{ printf '%s: %s\n' "${1#./}" "$line" >&9; } 2>/dev/null
exit "$rc"
