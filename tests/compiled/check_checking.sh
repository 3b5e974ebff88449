#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_checking.sh -- a program that has promised to announce all stores, and is checked.
#
# GOAL    With XAC_CHECKING=strict or =fast a store without a hook stops the program, with words that
#         name its instruction and function and those that have called it, under each engine;
#         nothing else stops it.
set -eu

. "${srcdir:-.}/tests/compiled/installed.sh"
cases=0
failures=0
tests=$srcdir/tests/compiled

cd "$tmp"
${CC:-gcc} -g -O2 -c "$tests/forgotten.c" -o forgotten.o
line=$(grep -n 'the forgotten store' "$tests/forgotten.c" | cut -d: -f1)

# run ARGUMENT -- the program, with this engine and checking.
run()
{
    rm -rf db input.db
    XAC_ENGINE=$engine XAC_CHECKING=$checking timeout 60 ./checked "$1" >output 2>&1
}

# wrong WORD... -- a case has failed.
wrong()
{
    failures=$((failures + 1))
    echo "$compiler, $engine, $checking: $*"
    cat output
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    "$cc" "--with=$compiler" -g -O2 "$tests/checked.c" forgotten.o -o checked
    for engine in uffd sigsegv; do
        for checking in strict fast; do
            cases=$((cases + 4))
            run announced || wrong "announced stores stop it"
            run loaded || wrong "loads stop it"
            if run library; then
                wrong "a store of the C library does not stop it"
            elif ! grep -q 'was not announced' output || ! grep -q 'memfrob' output; then
                wrong "memfrob is not named"
            fi
            if run forgotten; then
                wrong "a forgotten store does not stop it"
                continue
            fi
            grep -q 'store to .*input.db at offset 24576 was not announced' output || wrong "no words"
            frames=$(sed -n 's/.*[(]\([a-z_]*\)+0x.*/\1/p' output | head -n 3 | tr '\n' ' ')
            [ "$frames" = "store_forgotten call_forgotten main " ] || wrong "names $frames"
            at=$(sed -n 's/.*(store_forgotten+\(0x[0-9a-f]*\)).*/\1/p' output)
            start=0x$(nm checked | sed -n 's/ . store_forgotten$//p')
            addr2line -e checked "$(printf '0x%x' $((start + at)))" | grep -q "forgotten.c:$line" ||
                wrong "addr2line finds another line"
        done
    done
done
echo "$(((cases - failures) * 100 / cases))%: Checks: $cases, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
