#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sanitize.sh thread|address [TEST...] -- build with a sanitizer and run tests under it.
#
#   thread   data races between the threads of a process.  Memory that processes share looks
#            to it like any other; what another process does with it, it does not see.
#   address  memory errors, and undefined behaviour (address,undefined).
#
# Without names: of `thread` the tests with threads, of `address` those of make check-quick.
# Builds in $XAC_BUILD/tsan or asan, default build/ in the source tree, and leaves the build
# there.  A report is a failure even if the test passes: it may be of a child whose exit code
# nobody looks at.  Exit code 1 if a test failed or there was a report.
#
#   XAC_SECONDS, XAC_TRANSACTIONS, ... as in tests/README.md
set -eu

cd "$(dirname "$0")/.."
mkdir -p "${XAC_BUILD:-build}"
base=$(cd "${XAC_BUILD:-build}" && pwd)
case ${1:-} in
thread)
    dir=$base/tsan
    # gcc 12 fails on transactions of the language (itm/bench) with this sanitizer.  Tests of helper threads
    # are not here: a page is protected before the handler reads it, which the sanitizer does not see, so
    # it reports the stores that wait for that as races.
    options="--enable-sanitize=thread --disable-shared --disable-bench --disable-examples"
    tests="tests/stress/stress_threads tests/api/isolation/check_threads
        tests/frames/stress_frames tests/frames/check_policies tests/frames/check_bpwrapper
        tests/frames/check_hit_ratio tests/frames/check_file
        tests/swizzle/check_edges tests/swizzle/check_liveness tests/swizzle/check_pages
        tests/swizzle/check_tree"
    ;;
address)
    dir=$base/asan
    options="--enable-sanitize=address,undefined --enable-debug --disable-shared"
    tests=
    ;;
*)
    echo "usage: sanitize.sh thread|address [TEST...]" >&2
    exit 2
    ;;
esac
shift
[ $# -eq 0 ] || tests=$*
tests=$(echo $tests) # in one line, for make

# shellcheck disable=SC2086
scripts/build.sh "$dir" $options
find "$dir" \( -name '*.trs' -o -path '*/tests/*.log' \) -delete
rm -f "$dir"/report.*

# Segmentation faults are the library's business and stay out of it.
CK_TIMEOUT_MULTIPLIER=4
ASAN_OPTIONS="handle_segv=0:handle_sigbus=0:log_path=$dir/report"
UBSAN_OPTIONS="print_stacktrace=1:log_path=$dir/report"
# Tests fork beside threads and start threads in the child.
TSAN_OPTIONS="second_deadlock_stack=1:die_after_fork=0"
export CK_TIMEOUT_MULTIPLIER ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
failed=0
if [ -n "$tests" ]; then
    # Only these programs, and what they need.
    make -C "$dir" -s --no-print-directory check check_PROGRAMS="$tests" \
        check_LTLIBRARIES= TESTS="$tests" VERBOSE=1 || failed=1
else
    make -C "$dir" -s --no-print-directory check-quick VERBOSE=1 || failed=1
fi

scripts/sanitizer_reports "$dir" || failed=1
exit "$failed"
