#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test.sh -- build libxac and test everything.
#
# Stages: all tests in an ordinary build; unit and API tests, and those of faults, under the address and
# undefined behaviour sanitizers, in a build without the libraries that can be done without (libsigsegv; zlib
# and libbsd are of benchmarks and examples); beside these, programs compiled against the installed library,
# the crates of rust/, where cargo is, the Python package, and style checks.  The last line counts the tests
# of all stages: "N passed, N failed, N skipped".  Exit code 0 if none failed.
#
# Most tests wait for syncs, deaths and pauses; so more of them run at a time than there are
# processors, and the second build is made beside tests of the first.  The ordinary build is tested on the
# file system of TMPDIR, the other one in memory.
#
# XAC_BUILD  directory to build in, default build/ in the source tree.
set -eu

cd "$(dirname "$0")/.."
mkdir -p "${XAC_BUILD:-build}"
base=$(cd "${XAC_BUILD:-build}" && pwd)
normal=$base/test
sanitized=$base/asan # and without what can be done without
others=$base/results # logs and results of what is not run by make check
failed=0
memory=

stage()
{
    printf '== %s (at %s s)\n' "$1" "$(($(date +%s) - start))"
}

# run_one NAME COMMAND... -- one test that is not part of make check; leaves a .log and a
# .trs file like those of automake's test driver.
run_one()
{
    name=$1
    shift
    rc=0
    "$@" >"$others/$name.log" 2>&1 || rc=$?
    case $rc in
    0) result=PASS ;;
    77) result=SKIP ;;
    *)
        result=FAIL
        failed=1
        cat "$others/$name.log"
        ;;
    esac
    echo ":test-result: $result" >"$others/$name.trs"
    echo "$result: $name"
}

# give_up NAME -- what failed is needed by all that follows: count it, and stop.
give_up()
{
    echo ":test-result: FAIL" >"$others/$1.trs"
    finish 1
}

# finish CODE -- print the totals.
finish()
{
    wait # for beside()
    stage "done"
    scripts/count_tests "$normal" "$sanitized" "$others" || exit 1
    exit "$1"
}

# build_tests DIR TARGET -- the test programs of a target.  They are compiled without optimization, and know their
# lines but not their variables: that takes a quarter of the time, and what they test is optimized.  Headers of C++ are
# optimized in tests/api/cxx/check_cxx.sh.
build_tests()
{
    ${polite:-} make -C "$1" -s -j2 "$2" TEST_LOGS= CFLAGS="-O0 -g1" CXXFLAGS="-O1 -g1" >"$1/check-build.log" 2>&1 || {
        tail -n 40 "$1/check-build.log"
        echo "test.sh: the test programs do not build, see $1/check-build.log"
        return 1
    }
}

# make_check DIR TARGET JOBS -- run the tests of a target, so many at a time: most wait for half of their time, those of
# groups for more; those of check-busy use all processors themselves, but not all the time.
make_check()
{
    build_tests "$1" "$2" || give_up "$(basename "$1")-check-build"
    CK_TIMEOUT_MULTIPLIER=4 make -C "$1" -s --no-print-directory -j"$3" "$2" VERBOSE=1 || failed=1
}

# build_other -- the other build and its tests, while tests of the first one wait for syncs.
build_other()
{
    polite=nice
    nice scripts/build.sh "$sanitized" --enable-debug --disable-shared --disable-bench --disable-examples \
        --enable-sanitize=address,undefined --without-libsigsegv ac_cv_header_zlib_h=no \
        ac_cv_header_bsd_sys_tree_h=no CFLAGS="-O1 -g1" || return 1
    build_tests "$sanitized" check-sanitized
}

# A child of a test may die of a sanitizer's report without anybody looking at its exit
# code; hence reports go to files, and any report is a failure.  Those of the undefined
# behaviour sanitizer go to stderr all the same, that is to the tests' logs.  Segmentation
# faults are the library's business and stay out of it.
sanitizer_check()
{
    rm -f "$sanitized"/report.*
    ASAN_OPTIONS="handle_segv=0:handle_sigbus=0:log_path=$sanitized/report"
    UBSAN_OPTIONS="print_stacktrace=1:log_path=$sanitized/report"
    export ASAN_OPTIONS UBSAN_OPTIONS
    make_check "$sanitized" check-sanitized 3
    unset ASAN_OPTIONS UBSAN_OPTIONS
    run_one sanitizer-reports scripts/sanitizer_reports "$sanitized"
}

# beside -- what needs no other build than the ordinary one.
beside()
{
    run_one install tests/install/check_install.sh "$normal"
    run_one configure tests/install/check_configure.sh
    run_one rust tests/rust/check_rust.sh "$normal"
    run_one python python/test.sh "$normal"
    for script in $(make -C "$normal" -s --no-print-directory print-check-scripts); do
        run_one "$(basename "$script")" "$script" "$normal"
    done
    return $failed
}

# in_memory -- have TMPDIR in memory from here on, if there is such a place.
in_memory()
{
    if memory=$(mktemp -d /dev/shm/xac-tests-XXXXXX 2>/dev/null); then
        chmod 711 "$memory" # tests take other accounts
        TMPDIR=$memory
        export TMPDIR
    fi
}

# nothing_left -- in /dev/shm, of the library or of its tests, but what was there before.
nothing_left()
{
    shm_names | comm -13 "$others/shm-before" - >"$others/shm-left"
    [ ! -s "$others/shm-left" ] || { cat "$others/shm-left"; return 1; }
}

shm_names()
{
    for file in /dev/shm/xac-*; do
        [ ! -e "$file" ] || echo "$file"
    done | LC_ALL=C sort
}

trap '[ -z "$memory" ] || rm -rf "$memory"' EXIT
start=$(date +%s)
stage "packages"
scripts/setup.sh
rm -rf "$others"
mkdir -p "$normal" "$sanitized" "$others"
shm_names >"$others/shm-before"
find "$normal" "$sanitized" \( -name '*.trs' -o -path '*/tests/*.log' \) -delete
stage "build"
scripts/build.sh "$normal" --enable-werror || give_up normal-build
stage "tests of units and of the API"
make_check "$normal" check-quick 4
stage "tests in surroundings, and of the whole system (beside the other build)"
build_other >"$others/build-other.out" 2>&1 &
builder=$!
# Optimized, for it counts states for a minute; at -O2 it takes as long, and longer to compile.
make -C "$normal" -s -j2 tests/iso/explore CFLAGS="-O1 -g1"
make_check "$normal" check-system 5
wait "$builder" || { cat "$others/build-other.out"; give_up other-build; }
stage "tests that use all processors"
make_check "$normal" check-busy 4
stage "programs with the installed library, Rust, Python, style (beside the next)"
beside >"$others/beside.out" 2>&1 &
beside=$!
in_memory
stage "tests under the sanitizers, without libsigsegv, zlib and libbsd"
sanitizer_check
stage "what ran beside"
wait "$beside" || failed=1
cat "$others/beside.out"
[ -z "$memory" ] || rmdir "$memory" || true # nothing_left tells of it
run_one nothing-left-in-shm nothing_left

finish "$failed"
