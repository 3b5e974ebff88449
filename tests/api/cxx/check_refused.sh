#!/bin/sh
# SPDX-License-Identifier: MIT
# check_refused.sh -- what cannot persist does not compile, and the message says why.
#
# Each case of refused.cpp, by g++ and clang++; the right one without exceptions, too.  What it
# includes is compiled once for each compiler.
set -u
here=$(cd "${srcdir:-.}" && pwd) || exit 1
source=$here/tests/api/cxx/refused.cpp
cases=$(sed -n 's/^#elif CASE == \([0-9]*\) .*/\1/p' "$source")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
out=$work/out
checks=0
failures=0
skipped=0

wrong()
{
    failures=$((failures + 1))
    echo "$1"
    head -n 20 "$out"
}

# headers COMPILER -- what refused.cpp includes, compiled for compile().
headers()
{
    grep '^#include' "$source" >"$work/headers.hpp"
    if [ "$1" = clang++ ]; then
        precompiled=$work/headers.pch
        include="-include-pch $precompiled"
    else # which looks for .gch itself
        precompiled=$work/headers.hpp.gch
        include="-include $work/headers.hpp"
    fi
    $1 -std=c++17 -x c++-header -I"$here/include" "$work/headers.hpp" -o "$precompiled"
}

# compile COMPILER CASE OPTION...
compile()
{
    compiler=$1
    number=$2
    shift 2
    timeout 120 "$compiler" -std=c++17 "$@" -DCASE="$number" -fsyntax-only -I"$here/include" \
        "$source" >"$out" 2>&1
}

for compiler in g++ clang++; do
    if ! command -v $compiler >/dev/null; then
        skipped=$((skipped + 1))
        continue
    fi
    checks=$((checks + 2))
    compile $compiler 0 || wrong "$compiler: the right case does not compile"
    compile $compiler 0 -fno-exceptions || wrong "$compiler: nor does it without exceptions"
    headers $compiler || exit 1
    for number in $cases; do
        words=$(sed -n "s/^#elif CASE == $number  *.. \(.*\) ..\$/\1/p" "$source")
        checks=$((checks + 1))
        # shellcheck disable=SC2086 # two options
        if compile $compiler "$number" $include; then
            wrong "$compiler: case $number compiles"
        elif [ -z "$words" ] || ! grep -qE "error:.*($words)" "$out"; then
            wrong "$compiler: case $number: no error with the words: $words"
        fi
    done
done

echo "$skipped compilers skipped"
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
