#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fuzz.sh [--seconds N] [--total N] [--json] [TARGET...] -- look for inputs that do harm, guided by
# coverage.
#
# Builds with clang and libFuzzer (Debian: clang, libclang-rt-14-dev or that of your clang),
# address and undefined behaviour sanitizers, and runs every target, or those named, for N
# seconds (60) each, one after the other.  Targets: those of tests/fuzz/fuzz_*.c (target.h).  Then
# says for each how many inputs were run and how many are kept, and what was found.  Exit code 1
# if something was.
#
# What is kept lies in $XAC_BUILD/fuzz/corpus/TARGET, and findings in found/TARGET, default
# build/ in the source tree.  An input that found something belongs, once that is mended, into
# tests/fuzz/corpus/TARGET, where tests/fuzz/check_corpus runs it.
#
#   --total N  seconds of all targets together, at least 5 of each, instead of --seconds
#   --json     one JSON object a target instead of the table
#   --store    put a minimised corpus, inputs of at most 200 bytes, into tests/fuzz/corpus
set -eu

cd "$(dirname "$0")/.."
source_dir=$PWD
seconds=60
total=
json=no
store=no
targets=
while [ $# -gt 0 ]; do
    case $1 in
    --seconds)
        seconds=$2
        shift
        ;;
    --total)
        total=$2
        shift
        ;;
    --json) json=yes ;;
    --store) store=yes ;;
    -*)
        sed -n 's/^# \(fuzz.sh .*\) -- .*/usage: \1/p' scripts/fuzz.sh >&2
        exit 2
        ;;
    *) targets="$targets $1" ;;
    esac
    shift
done
CC=${FUZZ_CC:-clang}
CXX=${FUZZ_CXX:-clang++}
if ! command -v "${CC##* }" >/dev/null; then
    echo "fuzz.sh: needs clang with libFuzzer (Debian: clang libclang-rt-14-dev)" >&2
    exit 77
fi

base=${XAC_BUILD:-build}/fuzz
mkdir -p "$base"
base=$(cd "$base" && pwd)
CFLAGS="-O1 -g -fsanitize=fuzzer-no-link"
export CC CXX CFLAGS
scripts/build.sh "$base/build" --enable-sanitize=address,undefined --disable-shared >&2
make -C "$base/build" -s tests/fuzz/fuzz_run >&2
program=$base/build/tests/fuzz/fuzz_run
: "${targets:=$(XAC_FUZZ=list "$program" | tr '\n' ' ')}"
if [ -n "$total" ]; then
    # shellcheck disable=SC2086  # names
    set -- $targets
    seconds=$((total / $#))
    [ "$seconds" -ge 5 ] || seconds=5
fi

# What the library maps for itself, and what it catches, is its own business.
ASAN_OPTIONS="detect_leaks=1:allow_user_segv_handler=1:allocator_may_return_null=1:\
max_allocation_size_mb=2048:${ASAN_OPTIONS:-}"
UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS:-}"
# Where the targets work: who is stopped by a finding removes nothing.
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
    XAC_TEST_DIR=$(mktemp -d /dev/shm/xac-fuzz-run-XXXXXX)
else
    XAC_TEST_DIR=$(mktemp -d)
fi
trap 'rm -rf "$XAC_TEST_DIR"' EXIT
trap 'exit 1' INT TERM
export ASAN_OPTIONS UBSAN_OPTIONS XAC_TEST_DIR

# field LOG NAME -- a number that libFuzzer has printed at its end.
field()
{
    sed -n "s/^stat::$2: *//p" "$1" | tail -n 1
}

run_target()
{
    kept=$base/corpus/$1
    found=$base/found/$1
    log=$base/$1.log
    mkdir -p "$kept" "$found"
    begin=$(date +%s)
    rc=0
    XAC_FUZZ=$1 "$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
        -malloc_limit_mb=2048 -max_len=1024 -print_final_stats=1 -close_fd_mask=1 \
        -artifact_prefix="$found/" "$kept" "$source_dir/tests/fuzz/corpus/$1" \
        >"$log" 2>&1 || rc=$?
    took=$(($(date +%s) - begin))
    runs=$(field "$log" number_of_executed_units)
    n_kept=$(find "$kept" -type f | wc -l)
    n_found=$(find "$found" -type f | wc -l)
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    if [ "$json" = yes ]; then
        printf '{"target": "%s", "seconds": %s, "executions": %s, "edges": %s, ' \
            "$1" "$took" "${runs:-0}" "${edges:-0}"
        printf '"corpus": %s, "findings": %s}\n' "$n_kept" "$n_found"
    else
        printf '%-10s %9s %12s %9s %9s %9s\n' "$1" "$took" "${runs:-0}" "${edges:-0}" \
            "$n_kept" "$n_found"
    fi
    [ "$rc" -eq 0 ] || {
        failed=1
        echo "fuzz.sh: $1: see $log" >&2
    }
}

# store_target -- few and short inputs that reach what all of them reach.
store_target()
{
    short=$base/short/$1
    rm -rf "$short"
    mkdir -p "$short" "$source_dir/tests/fuzz/corpus/$1"
    XAC_FUZZ=$1 "$program" -set_cover_merge=1 -use_counters=0 -max_len=200 "$short" \
        "$source_dir/tests/fuzz/corpus/$1" "$base/corpus/$1" >"$base/$1.merge.log" 2>&1
    find "$short" -type f -exec cp {} "$source_dir/tests/fuzz/corpus/$1/" \;
}

failed=0
[ "$json" = yes ] ||
    printf '%-10s %9s %12s %9s %9s %9s\n' target seconds executions edges corpus findings
for target in $targets; do
    mkdir -p "tests/fuzz/corpus/$target"
    run_target "$target"
    [ "$store" = no ] || store_target "$target"
done
exit "$failed"
