#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run_test.sh -- run one test program, for `make check`.
#
# Output goes to stdout, that is to the test's .log file, and what processor time it took; a Check program's summary line
# also to descriptor 9, the terminal.  Exit code: the program's, 124 after
# XAC_TEST_TIMEOUT seconds (default 600), when its whole process group is killed.
summary='^[0-9]*%: Checks: [0-9]*, Failures: [0-9]*, Errors: [0-9]*'
out=$(mktemp) || exit 99
trap 'rm -f "$out" "$out.times"' EXIT

# Tests work in directories of their own.
top_builddir=$(cd "${top_builddir:-.}" && pwd) || exit 99
export top_builddir

shell=
case $1 in
*.sh) [ -x "$1" ] || shell=sh ;;
esac
timeout -k 5 "${XAC_TEST_TIMEOUT:-600}" $shell "$@" >"$out" 2>&1
rc=$?
cat "$out"
times >"$out.times" # of this shell, and of its children
echo "processor time, user and system: $(tail -n 1 "$out.times")"

if ! line=$(grep "$summary" "$out"); then
    line="exit code $rc"
fi
name=${1#./}
{ printf '%s: %s\n' "${name#"${srcdir:-.}/"}" "$line" >&9; } 2>/dev/null
exit "$rc"
