#!/bin/sh
# SPDX-License-Identifier: MIT
#
# long.sh [PROGRAM...] -- the long campaign, `make check-long`; in a build directory.
#
# Runs the programs below, or those whose names are given, in their long forms, shows what
# they print, and ends with a table.  Exit code 1 if one failed.  Each line says what it was
# run with, so that it can be run again by itself.
#
#   XAC_SEED=n          of all of them
#   XAC_TRANSACTIONS=n  of tests/stress/stress_iso per policy and mode (1,000,000)
#   XAC_ROUNDS=n        of tests/crash/check_kill (500)
#   XAC_SLEEP=n         seconds of the query of tests/stress/slow_reader (3600)
set -u

source_dir=$(cd "$(dirname "$0")/.." && pwd) || exit 1
results=$(mktemp) || exit 1
trap 'rm -f "$results"' EXIT
trap 'exit 1' INT TERM
failed=0

# run NAME=VALUE... PROGRAM [ARGUMENT...] -- one of them, unless others were asked for.
run()
{
    for word; do
        case $word in
        tests/* | */tests/*) program=${word##*/} program=${program%.sh} ;;
        */python/test.sh) program=python ;;
        esac
    done
    case " $wanted " in
    "  " | *" $program "*) ;;
    *) return 0 ;;
    esac
    echo "== $*"
    since=$(date +%s)
    result=passed
    env srcdir="$source_dir" top_builddir="$PWD" "$@" 2>&1 || result="failed, exit code $?"
    [ "$result" = passed ] || failed=1
    echo "$program: $result, $(($(date +%s) - since)) s" | tee -a "$results"
}

wanted=$*
# The planted histories are for the short form: they print what the checker finds.
for case in stress serial; do
    run CK_RUN_CASE=$case XAC_TRANSACTIONS="${XAC_TRANSACTIONS:-1000000}" \
        tests/stress/stress_iso
done
run XAC_LONG=1 tests/iso/explore
for script in api/cxx/check_cxx.sh compiled/check_containers.sh compiled/check_holes.sh \
    surroundings/check_no_memory.sh; do
    run XAC_LONG=1 XAC_ROUNDS="${XAC_ROUNDS:-25}" \
        "$source_dir/tests/$script"
done
run XAC_LIVES="${XAC_LIVES:-6}" "$source_dir/tests/modes/check_modes.sh"
run XAC_ROUNDS="${XAC_ROUNDS:-500}" tests/crash/check_kill
run XAC_STEPS_LONG=1 tests/crash/check_steps
run XAC_STEPS_LONG=1 CK_TIMEOUT_MULTIPLIER=10 tests/crash/check_rename_steps
run XAC_STEPS_LONG=1 tests/crash/check_allocs
run XAC_STEPS_LONG=1 XAC_MOMENTS=100 CK_TIMEOUT_MULTIPLIER=10 tests/unit/tools/check_archive
run XAC_STRIDE=1 CK_TIMEOUT_MULTIPLIER=10 tests/unit/ship/check_rewind
run XAC_WAKES="${XAC_WAKES:-1000000}" CK_TIMEOUT_MULTIPLIER=10 tests/unit/ship/check_follow_races
run XAC_SECONDS="${XAC_SECONDS:-16}" "$source_dir/tests/bench/check_ship_network.sh"
run XAC_READS="${XAC_READS:-10000000}" CK_TIMEOUT_MULTIPLIER=10 \
    tests/unit/tools/check_query
run XAC_STEPS_LONG=1 CK_TIMEOUT_MULTIPLIER=10 \
    tests/unit/tools/check_query_steps
run CK_RUN_CASE="many pages" XAC_WRITTEN=300000 XAC_READ=1000000 tests/api/basics/check_more
run XAC_ROUNDS=40 CK_TIMEOUT_MULTIPLIER=30 tests/api/team/check_team_savepoints
run XAC_TRANSACTIONS=400 CK_TIMEOUT_MULTIPLIER=30 tests/api/isolation/check_savepoint_model
run XAC_GAMES=2000 CK_TIMEOUT_MULTIPLIER=30 tests/api/isolation/check_seq
run XAC_MANY="${XAC_MANY:-1000}" tests/stress/check_many
run XAC_TRANSACTIONS="${XAC_TRANSACTIONS:-1000000}" tests/stress/stress_threads
run XAC_OPS="${XAC_OPS:-1000000}" CK_TIMEOUT_MULTIPLIER=30 tests/swizzle/check_tree
run XAC_WINDOWS="${XAC_WINDOWS:-40}" CK_TIMEOUT_MULTIPLIER=30 tests/swizzle/check_liveness
run XAC_ROUNDS="${XAC_ROUNDS:-100000}" CK_TIMEOUT_MULTIPLIER=30 tests/swizzle/check_pages
run XAC_ROUNDS="${XAC_ROUNDS:-200}" tests/swizzle/check_crash
run XAC_REFS="${XAC_REFS:-1000000}" CK_TIMEOUT_MULTIPLIER=30 tests/swizzle/check_replacers
run XAC_SECONDS="${XAC_SECONDS:-60}" "$source_dir/python/test.sh" . -s -k kill
run tests/stress/slow_reader --write 20000 --seconds "${XAC_SLEEP:-3600}"
run tests/stress/long_query --seconds 60 --rounds 3
run tests/stress/long_query --seconds 60 --rounds 3 --durable
if [ ! -s "$results" ]; then
    echo "long.sh: there is none of: $wanted" >&2
    exit 2
fi
echo "== totals"
cat "$results"
exit "$failed"
