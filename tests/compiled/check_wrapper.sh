#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_wrapper.sh -- xac-cc as a compiler, and hooks at all times and places (anywhere.c).
#
# GOAL    What build systems ask of a compiler works; what would leave accesses unnoticed is refused or
#         warned of, with -Werror as an error that leaves no object; programs and shared libraries
#         with hooks run under each engine and policy.
set -eu

. "${srcdir:-.}/tests/compiled/installed.sh"
cases=0
failures=0
tests=$srcdir/tests/compiled

# holds COMMAND... -- it succeeds; fails_with WORD COMMAND... -- it fails and says WORD.
holds()
{
    cases=$((cases + 1))
    "$@" >"$tmp/output" 2>&1 && return
    failures=$((failures + 1))
    echo "fails: $*"
    tail -n 20 "$tmp/output"
}
fails_with()
{
    word=$1
    shift
    cases=$((cases + 1))
    if "$@" >"$tmp/output" 2>&1 || ! grep -q -e "$word" "$tmp/output"; then
        failures=$((failures + 1))
        echo "should fail and say '$word': $*"
        tail -n 20 "$tmp/output"
    fi
}
says()
{
    word=$1
    shift
    holds "$@"
    grep -q -e "$word" "$tmp/output" && return
    failures=$((failures + 1))
    echo "does not say '$word': $*"
}

cd "$tmp"
mkdir "a b"
cat >"a b/one.c" <<'END'
#include <stdio.h>
#include "two.h"
int main(void) { printf("%d\n", two(VALUE)); return 0; }
END
echo 'int two(int);' >"a b/two.h"
echo 'int two(int v) { return 2 * v; }' >two.c
echo 'struct s { long a, b, c; } make(void); void f(struct s *p); void f(struct s *p) { *p = make(); }' >hole.c

# Types with names that a compiler writes with spaces and brackets.
cat >names.cc <<'END'
namespace { template <typename T> struct thing { T v; }; }
template <typename T> struct outer { T *p; T **q; };
void f(void *o, void *t);
void f(void *o, void *t) { ((outer<thing<long>> *)o)->p = (thing<long> *)t; }
END

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    with=--with=$compiler
    says . "$cc" $with --version
    holds "$cc" $with -O2 -I "a b" -D VALUE=21 "a b/one.c" two.c -o program
    says '^42$' ./program
    holds "$cc" $with -MD -MF one.d -I"a b" -DVALUE=1 -c "a b/one.c"
    holds grep -q two.h one.d
    # Where both compilers put it: beside what is linked, and it is made of that.
    mkdir -p out.d
    holds "$cc" $with -MD -I"a b" -DVALUE=1 "a b/one.c" two.c -o out.d/two.exe
    holds grep -q '^out.d/two.exe:.* two.c' out.d/two.d
    holds "$cc" $with -MMD -MP -I"a b" -DVALUE=1 "a b/one.c" two.c -o out.d/two
    holds grep -q '^out.d/two: two.c' out.d/two.d
    holds "$cc" $with -MD -MF two.dep -MT other -I"a b" -DVALUE=1 two.c "a b/one.c" -o out.d/one
    holds grep -q '^other:.*one.c' two.dep
    holds "$cc" $with -MD -I"a b" -DVALUE=1 two.c "a b/one.c"
    holds grep -q '^one.o:.*one.c' one.d
    holds "$cc" $with -c two.c -o two.o
    holds "$cc" $with one.o two.o -oprogram
    says '^2$' ./program
    if [ -e "$libdir/libxac.a" ]; then
        holds "$cc" $with -static "$tests/checked.c" "$tests/forgotten.c" -o static
        holds sh -c '! readelf -lW static | grep INTERP'
        rm -rf db input.db
        holds timeout 60 ./static announced
        holds "$cc" $with -static-pie "$tests/checked.c" "$tests/forgotten.c" -o static
        rm -rf db input.db
        holds timeout 60 ./static announced
    fi
    holds "$cc" $with -shared -fPIC two.c -o libtwo.so
    holds "$cc" $with one.o -L. -Wl,-rpath,"$tmp" -l two -o program
    says '^2$' ./program
    says 'xac_noticed_memcpy' "$cc" $with -E -include "$tests/holes.h" -x c -dD two.c
    plus=g++
    [ $compiler = gcc ] || plus=clang++
    holds "$cxx" --with=$plus -O0 -Werror -c names.cc
    fails_with 'not together' "$cc" $with -fsanitize=address -c two.c
    fails_with 'not be noticed' "$cc" $with -flto -c two.c
    fails_with 'not read' "$cc" $with @two.c
    for option in -Wl,@two.c -Wl,-s,@two.c -Wp,@two.c -Wa,@two.c "-Xlinker @two.c"; do
        # shellcheck disable=SC2086
        fails_with 'not read' "$cc" $with -c two.c $option
    done
    says '^Usage: xac-cc .*--with=COMPILER' "$cc" $with --help
    fails_with 'no_such_file' "$cc" $with -c no_such_file.c
    fails_with 'several' "$cc" $with -c two.c hole.c -o x.o
    rm -f x.o
    echo 'int x' >x.c
    fails_with x.c "$cc" $with -c x.c
    holds test ! -e x.o
    # Options that the wrapper must know to have a value; one that it does not know ends in words.
    for option in "-B /usr/bin/" "-isysroot /" "--sysroot /" "--include-directory ."; do
        rm -f two.o
        # shellcheck disable=SC2086
        holds "$cc" $with -Werror $option -c two.c
        holds sh -c 'nm -u two.o | grep __tsan_init'
    done
    rm -f two.o
    holds "$cc" $with -c two.c --output=three.o
    holds test -e three.o
    cp two.c 'a,b|&.c'
    holds "$cc" $with -c 'a,b|&.c'
    holds "$cc" $with -S -c two.c -o two.s
    holds "$cc" $with -M -c two.c
    cp two.c nosuffix
    fails_with 'without a source' "$cc" $with -x c -c nosuffix
    fails_with 'value is missing' "$cc" $with -c two.c -o
    fails_with 'first argument' "$cc" -O2 $with -c two.c
    holds "$cc" $with -O2 "$tests/anywhere.c" -o anywhere
    for engine in uffd sigsegv; do
        for policy in 0 4 5; do # oldest-wins, optimistic, serial
            rm -rf db input.db
            holds env XAC_ENGINE=$engine XAC_POLICY=$policy timeout 60 ./anywhere
            rm -rf db input.db
            holds env XAC_ENGINE=$engine XAC_POLICY=$policy XAC_CHECKING=strict timeout 60 ./anywhere
        done
    done
done
fails_with 'no such command' "$cc" --with=no_such_compiler -c two.c
says 'hole.c:1:.*warning: in f()' "$cc" -c hole.c
rm -f hole.o
fails_with 'Werror' "$cc" -Werror -c hole.c
holds test ! -e hole.o
echo "$(((cases - failures) * 100 / cases))%: Checks: $cases, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
