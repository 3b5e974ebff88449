#!/bin/sh
# SPDX-License-Identifier: MIT
#
# engines.sh [--list | NAME=VALUE...] -- every engine and policy, `make check-engines`; in a build
# directory.
#
# Runs the programs of engines_tests (Makefile.am) once for each line of settings, or once with
# those given, and ends with a table.  Exit code 1 if one failed; its output is shown.  --list prints the
# settings.
set -u

programs=$(make -s --no-print-directory print-engines-tests) || exit 1
settings='XAC_ENGINE=uffd
XAC_ENGINE=sigsegv
XAC_CHECKING=fast
XAC_CHECKING=fast XAC_ENGINE=sigsegv
XAC_CHECKING=fast XAC_ENGINE=scan
XAC_POLICY=0
XAC_POLICY=1
XAC_POLICY=2
XAC_POLICY=3
XAC_POLICY=4'

if [ "${1:-}" = --list ]; then
    echo "$settings"
    exit 0
fi

results=$(mktemp) && out=$(mktemp) || exit 1
trap 'rm -f "$results" "$out"' EXIT
trap 'exit 1' INT TERM
failed=0

# run_all NAME=VALUE... -- all programs with these settings.
run_all()
{
    passed=0 since=$(date +%s) bad=
    for program in $programs; do
        if env "$@" XAC_ROUNDS="${XAC_ROUNDS:-20}" "./$program" >"$out" 2>&1; then
            passed=$((passed + 1))
        else
            echo "== $* $program"
            cat "$out"
            bad="$bad $program" failed=1
        fi
    done
    echo "$*: $passed passed, failed:${bad:- none}, $(($(date +%s) - since)) s" |
        tee -a "$results"
}

if [ $# -gt 0 ]; then
    run_all "$@"
else
    while read -r line; do
        # shellcheck disable=SC2086 # words, on purpose
        run_all $line </dev/null
    done <<EOF
$settings
EOF
fi
echo "== totals"
cat "$results"
exit "$failed"
