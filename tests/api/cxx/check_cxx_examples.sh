#!/bin/sh
# SPDX-License-Identifier: MIT
# check_cxx_examples.sh -- the programs of examples/cxx find their data after kill -9.
#
# Each runs several times, is killed while it commits, and then checks itself; what it had said to be
# committed must be there.  Of one of them a version with another layout is compiled: it is refused.
# EXAMPLES is the directory of the built programs (default: ./examples/cxx).
set -u
here=$(cd "${srcdir:-.}" && pwd) || exit 1
build=$(cd "${top_builddir:-.}" && pwd) || exit 1
examples=$(cd "${EXAMPLES:-./examples/cxx}" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
rounds=3
checks=0
failures=0

# holds WHAT COMMAND... -- the command succeeds.
holds()
{
    what=$1
    shift
    checks=$((checks + 1))
    "$@" && return
    failures=$((failures + 1))
    echo "not so: $what"
    cat output checked 2>/dev/null | tail -n 5
}

# killed LINES PROGRAM ARGUMENT... -- run it until it has said so many lines, and kill it.
killed()
{
    lines=$1
    shift
    : >output
    "$@" >output 2>errors &
    victim=$!
    waited=0
    while [ "$(wc -l <output)" -lt "$lines" ] && [ $waited -lt 600 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    kill -9 $victim
    # The shell's own words about the end of the process are of no interest.
    wait $victim 2>/dev/null
    holds "$1 was killed while it worked" [ $? -eq 137 ]
}

# first_number FILE -- the number that its last line begins with; 0 if there is none.
first_number()
{
    tail -n 1 "$1" | sed -n 's/^\([0-9][0-9]*\).*/\1/p' | grep . || echo 0
}

# found PROGRAM -- it finds its data sound, at least what it has said, and one more at the most.
found()
{
    name=$1
    holds "$name finds its data sound" eval '"$examples/$name" check >checked 2>errors'
    said=$(grep -x '[0-9]*' output | tail -n 1)
    [ "$name" != wordindex ] || said=$(grep -c . output)
    there=$(first_number checked)
    holds "$name: $said committed, $there found" [ "$there" -ge "${said:-0}" ]
    holds "$name: $said committed, $there found" [ "$there" -le $((${said:-0} + 1)) ]
}

for program in graph orderbook; do
    verb=grow
    [ $program = graph ] || verb=trade
    for round in $(seq $rounds); do
        killed $((30 * round)) "$examples/$program" $verb 100000000 "$round"
        found $program
    done
done

# Files of words, more than can be read before the program is killed.
mkdir text
awk 'BEGIN { for (f = 0; f < 3000; f++) for (i = 0; i < 60; i++)
    print "word" f * 7 % 101 " and Word" i * f % 997 " of line " i >"text/" f }'
for round in $(seq $rounds); do
    killed $((40 * round)) "$examples/wordindex" add text/*
    found wordindex
done
"$examples/wordindex" add text/?? >output
holds "what is there is known" eval '[ "$("$examples/wordindex" add text/?? | grep -c ^known)" = 90 ]'
# Of all files in the index, what find says is what grep says.
for word in word77 word0 Of nowhere; do
    "$examples/wordindex" find "$(echo $word | tr A-Z a-z)" | grep '^text/..:' | uniq | sort >ours
    grep -niw $word text/?? | cut -d: -f1,2 | sort >theirs
    holds "find $word, as grep finds it" cmp ours theirs
done

# Another layout: an element of a member has become larger, and nothing has been renamed.
sed 's/std::uint32_t line;/std::uint64_t line;/' "$here/examples/cxx/wordindex.cpp" >later.cpp
if [ -e "$build/.libs/libxac.so" ]; then
    holds "it compiles" "${CXX:-g++}" -std=c++17 -I"$here/include" later.cpp -o later \
        -L"$build/.libs" -lxac
    "$examples/wordindex" check >before
    holds "another layout is refused" eval '! LD_LIBRARY_PATH="$build/.libs" ./later check 2>errors'
    holds "in words" grep -q 'was written as wordindex/1 (.* bytes' errors
    holds "adding is refused" eval '! LD_LIBRARY_PATH="$build/.libs" ./later add text/20 2>errors'
    "$examples/wordindex" check >after
    holds "nothing has changed" cmp before after
else
    echo "the library is not shared in this build: another layout is not tested"
fi

echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
