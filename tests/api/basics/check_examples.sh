#!/bin/sh
# SPDX-License-Identifier: MIT
# check_examples.sh -- the Thesis programs print what examples/README.md says.
#
# Each runs in an empty directory; those whose second run differs run twice.
# EXAMPLES is the directory of the built programs (default: ./examples).
set -u
examples=$(cd "${EXAMPLES:-./examples}" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
checks=0
failures=0

# expect 'PROGRAM ARGUMENTS' DIRECTORY TEXT: run it there, compare its output and exit status.
expect()
{
    mkdir -p "$work/$2"
    printed=$(cd "$work/$2" && timeout 60 "$examples/"$1 2>"$work/stderr")
    status=$?
    checks=$((checks + 1))
    if [ "$status" -ne 0 ] || [ "$printed" != "$3" ]; then
        failures=$((failures + 1))
        echo "$1: exit status $status; expected:"
        echo "$3"
        echo "printed:"
        echo "$printed"
        cat "$work/stderr"
    fi
}

expect fig1_6 a '1000 transactions committed; 0 of 16 pages are wrong'
expect fig2_1 b 'x[0] was 0, is 1'
expect fig2_1 b 'x[0] was 1, is 2'
expect fig2_2 c '500 sums over 1000 pages: 0 pages differ'
expect fig2_3 d 'the tree was built
sum 523776; 0 walks wrong, 0 attempts inconsistent'
expect fig2_3 d 'the tree was there
sum 523776; 0 walks wrong, 0 attempts inconsistent'
expect past past 'before: apples costs 120
now: apples costs 135
shop/items, bytes 120 to 127: item 3
1 ranges differ'
expect fig2_4 e 'a == y: yes
b == z: yes
b is 41 or 42 for each attempt: yes
x[0] is 42 again: yes'

expect hashtable f '4000 keys, 0 wrong'
expect hashtable f '4000 keys, 0 wrong'
if [ -x "$examples/rbtree" ]; then
    expect rbtree h '1333 accounts in order, sum 0, 0 wrong'
    expect rbtree h '1333 accounts in order, sum 0, 0 wrong'
else
    echo "rbtree was not built, for want of libbsd"
fi
expect "list +pear +apple +fig" g '3 words: apple fig pear; 3 allocations'
expect "two apple pear ant" i '3 words, 2 with an a'
expect "two avocado" i '4 words, 3 with an a'
expect "words ant ape cow ant" j 'ant 2
ape 1
3 words'
expect "words ant bee" j 'ant 3
ape 1
4 words'
expect "list -pear +date -nothing" g '3 words: apple date fig; 3 allocations'

# The summary line of a Check program, for scripts/run_test.sh.
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
