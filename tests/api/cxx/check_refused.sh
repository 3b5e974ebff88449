#!/bin/sh
# SPDX-License-Identifier: MIT
# check_refused.sh -- what cannot persist does not compile, and the message says why.
#
# Each case of refused.cpp, by g++ and clang++, with and without exceptions.
set -u
here=$(cd "${srcdir:-.}" && pwd) || exit 1
source=$here/tests/api/cxx/refused.cpp
cases=$(sed -n 's/^#elif CASE == \([0-9]*\) .*/\1/p' "$source")
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
checks=0
failures=0
skipped=0

wrong()
{
    failures=$((failures + 1))
    echo "$1"
    head -n 20 "$out"
}

# compile COMPILER OPTIONS CASE
compile()
{
    # shellcheck disable=SC2086 # several options
    timeout 120 $1 -std=c++17 $2 -DCASE="$3" -fsyntax-only -I"$here/include" "$source" >"$out" 2>&1
}

for compiler in g++ clang++; do
    if ! command -v $compiler >/dev/null; then
        skipped=$((skipped + 1))
        continue
    fi
    for options in "" "-fno-exceptions"; do
        checks=$((checks + 1))
        compile $compiler "$options" 0 || wrong "$compiler $options: the right case does not compile"
    done
    for number in $cases; do
        words=$(sed -n "s/^#elif CASE == $number  *.. \(.*\) ..\$/\1/p" "$source")
        checks=$((checks + 1))
        if compile $compiler "" "$number"; then
            wrong "$compiler: case $number compiles"
        elif [ -z "$words" ] || ! grep -qE "error:.*($words)" "$out"; then
            wrong "$compiler: case $number: no error with the words: $words"
        fi
    done
done

echo "$skipped compilers skipped"
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
