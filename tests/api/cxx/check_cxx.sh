#!/bin/sh
# SPDX-License-Identifier: MIT
# check_cxx.sh -- heaps and containers of C++ with both compilers and their sanitizers.
#
# check_containers.cpp, check_heap.cpp and check_hpp.cpp, compiled by g++ and clang++, with and without exceptions:
# optimized, and under the address sanitizer and that of undefined behaviour; the library is the
# built one.  A compiler that has no sanitizers is used without.  Each two of these three choices
# meet once for check_heap.cpp; check_containers.cpp, which takes half a minute to compile, is
# compiled once by each compiler; check_hpp.cpp once, optimized.  XAC_LONG=1: all of them.
set -u
here=$(cd "${srcdir:-.}" && pwd) || exit 1
build=$(cd "${top_builddir:-.}" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
long=${XAC_LONG:-0}
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
checks=0
failures=0
skipped=0

if ! [ -e "$build/.libs/libxac.so" ]; then
    echo "the library is not shared in this build, not tested"
    exit 77
fi
export LD_LIBRARY_PATH="$build/.libs"
# Segmentation faults are how the library works; see CONTRIBUTING.md.
export ASAN_OPTIONS=handle_segv=0:handle_sigbus=0

# runs COMPILER OPTIONS PROGRAM -- it compiles without warnings, and its run succeeds.
runs()
{
    checks=$((checks + 1))
    # shellcheck disable=SC2086 # several options
    if timeout 300 $1 -std=c++17 -Wall -Wextra -Werror $2 -I"$here/include" \
        "$here/tests/api/$3.cpp" -o "$work/program" -L"$build/.libs" -lxac >"$work/log" 2>&1 &&
        timeout 300 "$work/program" >"$work/log" 2>&1; then
        echo "$1 $2: $(tail -n 1 "$work/log")"
    else
        failures=$((failures + 1))
        echo "$1 $2 $3: fails"
        head -n 40 "$work/log"
    fi
}

for compiler in g++ clang++; do
    if ! command -v $compiler >/dev/null; then
        skipped=$((skipped + 1))
        continue
    fi
    how=$sanitize
    if ! echo 'int main() {}' | $compiler -x c++ $sanitize -o "$work/empty" - 2>/dev/null; then
        echo "$compiler has no sanitizers installed, its programs run without"
        how=
    fi
    if [ "$long" = 1 ]; then
        for options in "-O2" "-O2 -fno-exceptions" "$how" "$how -fno-exceptions"; do
            runs $compiler "$options" cxx/check_containers
            runs $compiler "$options" cxx/check_heap
            runs $compiler "$options" basics/check_hpp
        done
    elif [ $compiler = g++ ]; then
        runs $compiler "-O2" cxx/check_containers
        runs $compiler "-O2" cxx/check_heap
        runs $compiler "-O2" basics/check_hpp
        runs $compiler "$how -fno-exceptions" cxx/check_heap
    else
        runs $compiler "$how -fno-exceptions" cxx/check_containers
        runs $compiler "-O2 -fno-exceptions" cxx/check_heap
        runs $compiler "$how" cxx/check_heap
    fi
done

echo "$skipped compilers skipped"
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
