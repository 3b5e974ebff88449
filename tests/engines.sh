#!/bin/sh
# SPDX-License-Identifier: MIT
#
# engines.sh [NAME=VALUE...] -- every engine and policy, `make check-engines`; in a build
# directory.
#
# Runs the programs below once for each line of settings, or once with those given, and ends
# with a table.  Exit code 1 if one failed; its output is shown.
set -u

programs='api/heap/check_alloc api/heap/check_alloc_procs api/durable/check_backup
api/heap/check_btree_txn api/heap/check_cobtree_txn api/durable/check_damage
api/durable/check_durable api/engine/check_fault api/durable/check_full
api/isolation/check_iso api/durable/check_log_options api/mapping/check_map
api/mapping/check_map_grow api/isolation/check_model api/basics/check_more
api/isolation/check_multi api/isolation/check_procs api/isolation/check_seq
api/isolation/check_threads api/basics/check_txn api/heap/check_vtree_txn
crash/check_kill stress/stress_iso stress/stress_threads'
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

results=$(mktemp) && out=$(mktemp) || exit 1
trap 'rm -f "$results" "$out"' EXIT
trap 'exit 1' INT TERM
failed=0

# run_all NAME=VALUE... -- all programs with these settings.
run_all()
{
    passed=0 since=$(date +%s) bad=
    for program in $programs; do
        if env "$@" XAC_ROUNDS="${XAC_ROUNDS:-20}" "tests/$program" >"$out" 2>&1; then
            passed=$((passed + 1))
        else
            echo "== $* tests/$program"
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
