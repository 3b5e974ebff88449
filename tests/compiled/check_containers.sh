#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_containers.sh -- container libraries, unchanged, compiled by xac-cc (containers.c).
#
# GOAL    They are right after kills and roll-backs, and in check mode nothing is reported: no store
#         of theirs is left unnoticed.  Processes of gcc, of clang and without hooks share an
#         environment.
# METHOD  XAC_ROUNDS kills (25), XAC_SEED.  Optimized by gcc and not by clang; XAC_LONG=1: both by both.
set -eu

. "${srcdir:-.}/tests/compiled/installed.sh"
cases=0
failures=0
tests=$srcdir/tests/compiled
seed=${XAC_SEED:-1}
programs=
include=$(dirname "$(find "$dest" -name xac_touch.h)")

# has HEADER -- is it installed?
has()
{
    printf '#include <stddef.h>\n#include <%s>\n' "$1" | ${CC:-gcc} -E -o /dev/null - 2>/dev/null
}

has bsd/sys/tree.h || { echo "libbsd is not installed, not tested"; exit 77; }
options="-O2 -g"
if has uthash.h; then
    options="$options -DHAVE_UTHASH"
else
    echo "uthash is not installed, not tested"
fi

if printf '#include <boost/container/map.hpp>\n' | ${CXX:-g++} -x c++ -E -o /dev/null - 2>/dev/null; then
    options="$options -DHAVE_BOOST"
else
    echo "Boost is not installed, not tested"
fi

# holds WORD... -- in a directory of its own, the command succeeds.
holds()
{
    cases=$((cases + 1))
    rm -rf "$tmp/run"
    mkdir "$tmp/run"
    (cd "$tmp/run" && timeout 60 env "$@") >"$tmp/output" 2>&1 && return
    echo "exit code $?, seed $seed: $*"
    failures=$((failures + 1))
    cat "$tmp/output"
    [ $failures -lt 3 ] || fail "and so on"
}

# compile NAME C C++ OPTION... -- all three sources by these compilers to a program of that name.
compile()
{
    program=$tmp/$1
    by_c=$2
    by_cxx=$3
    shift 3
    # shellcheck disable=SC2086
    $by_c $options "$@" -c "$tests/containers.c" -o "$program.o" &&
        $by_c $options "$@" -c "$tests/containers_c.c" -o "$program.c.o" &&
        $by_cxx $options "$@" -c "$tests/containers_cc.cc" -o "$program.cc.o" ||
        fail "$program: does not compile"
    programs="$programs $program"
}

compile traps "${CC:-gcc}" "${CXX:-g++}" "-I$include"
${CXX:-g++} "$tmp"/traps*.o "-L$libdir" -lxac -o "$tmp/traps" || fail "traps: does not link"
for compiler in gcc clang; do
    plus=g++
    [ $compiler = gcc ] || plus=clang++
    command -v $plus >/dev/null || {
        echo "$compiler is not installed, not tested"
        continue
    }
    levels="-O2 -O0"
    [ -n "${XAC_LONG:-}" ] || levels=-O2
    [ -n "${XAC_LONG:-}" ] || [ $compiler = gcc ] || levels=-O0
    for level in $levels; do
        name=$compiler$level
        compile "$name" "$cc --with=$compiler -Werror" "$cxx --with=$plus -Werror" -DANNOUNCES $level
        "$cxx" --with=$plus "$tmp/$name".*o -o "$tmp/$name" || fail "$name: does not link"
        for engine in uffd sigsegv; do
            for checking in strict fast; do
                holds XAC_ENGINE=$engine XAC_CHECKING=$checking "$tmp/$name" alone 600 "$seed"
            done
            holds XAC_ENGINE=$engine "$tmp/$name" alone 2000 "$seed"
        done
    done
done
for policy in 0 4 5; do # oldest-wins, optimistic, serial
    # shellcheck disable=SC2086
    {
        holds XAC_POLICY=$policy "$tmp/traps" kill "${XAC_ROUNDS:-25}" "$seed" $programs
        tail -n 1 "$tmp/output"
        holds XAC_POLICY=$policy DURABLY= "$tmp/traps" kill "${XAC_ROUNDS:-25}" "$seed" $programs
        tail -n 1 "$tmp/output"
        holds XAC_POLICY=$policy XAC_CHECKING=strict "$tmp/traps" kill 5 "$seed" $programs
    }
done
echo "$(((cases - failures) * 100 / cases))%: Checks: $cases, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
