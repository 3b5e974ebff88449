#!/bin/sh
# SPDX-License-Identifier: MIT
# check_fileindex.sh -- the index says what find(1) says, whatever happens to the tree.
#
# A generated tree with odd and long names is indexed, changed, updated, and each time
# compared with find: the paths, and what ls would show of them.  EXAMPLES is the
# directory of the built programs (default: ./examples).
set -u
LC_ALL=C
TZ=UTC
export LC_ALL TZ
fileindex=$(cd "${EXAMPLES:-./examples}" && pwd)/fileindex || exit 1
work=$(mktemp -d) || exit 1
trap 'cd /; rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0
failures=0

# outcome WHAT STATUS: count a check; STATUS 0 is success.
outcome()
{
    checks=$((checks + 1))
    if [ "$2" -ne 0 ]; then
        failures=$((failures + 1))
        echo "failed: $1"
    fi
}

# expect STATUS COMMAND...: it ends with this exit status; output in `out`.
expect()
{
    want=$1
    shift
    timeout 120 "$@" >out 2>err
    status=$?
    [ "$status" -eq "$want" ] || { echo "exit status $status, not $want:"; cat err; }
    outcome "$*" "$([ "$status" -eq "$want" ]; echo $?)"
}

# same WHAT: the files `found` and `known` are equal.
same()
{
    cmp -s found known
    status=$?
    [ "$status" -eq 0 ] || diff found known | head -n 10
    outcome "$1" "$status"
}

# agree WHAT: index and disk agree, and the index is sound.
agree()
{
    find "$work/tree" -print0 | sort -z >found
    "$fileindex" query index "$work/tree" --null >known
    same "$1: paths"
    find "$work/tree" -printf '%M %12s %TY-%Tm-%Td %TH:%TM %p\n' |
        sed 's/^\(...\)[sS]/\1x/' | sort >found
    "$fileindex" query index "$work/tree" | sort >known
    same "$1: records"
    expect 0 "$fileindex" check index
}

# count NAME: the number that `fileindex stat` gives.
count()
{
    "$fileindex" stat index --json | tr ',{}' '\n\n\n' | sed -n "s/^\"$1\"://p"
}

# tree DIR FILES: a directory with subdirectories, files and links.
tree()
{
    mkdir -p "$1/sub" "$1/sub-way" "$1/sub way" "$1/empty"
    i=0
    while [ "$i" -lt "$2" ]; do
        echo "$i" >"$1/file.$i"
        echo "$i" >"$1/sub/file.$i"
        i=$((i + 1))
    done
    ln -s file.0 "$1/link"
    ln -s nowhere "$1/sub-way/dangling"
    : >"$1/sub way/new
line"
    : >"$1/sub way/$(printf '\374\001\042\134')"
}

# deep DEPTH: directories with names of 200 bytes in one another, in the current one.
# Made from the inside out: the shell cannot go where paths are too long.
deep()
{
    name=$(printf '%0200d' 0)
    mkdir inside
    i=0
    while [ "$i" -lt "$1" ]; do
        mkdir outside "outside/$name-side"
        : >inside/file
        : >"outside/$name-side/file"
        mv inside "outside/$name"
        mv outside inside
        i=$((i + 1))
    done
    mv inside "$name"
}

# ---- usage ------------------------------------------------------------------------------

expect 0 "$fileindex" --help
expect 2 "$fileindex"
expect 2 "$fileindex" wreck index
expect 2 "$fileindex" build tree
expect 2 "$fileindex" build tree index --procs 0
expect 2 "$fileindex" build tree index --procs 65
expect 2 "$fileindex" query index / --limit -1
expect 2 "$fileindex" build tree index --size 99999999999G
expect 2 "$fileindex" build tree index --no-such-option
expect 3 "$fileindex" build tree index
mkdir tree
expect 3 "$fileindex" update tree index
expect 3 "$fileindex" query index /
outcome "a query makes no index" "$([ ! -e index ]; echo $?)"
: >plain
expect 3 "$fileindex" build plain index

# ---- build and query --------------------------------------------------------------------

for d in a b c 'd d' e.f; do
    tree "$work/tree/$d" 100
done
mkdir "$work/tree/long"
(cd "$work/tree/long" && deep 30)
expect 0 "$fileindex" build tree index --procs 3
agree "build"
expect 3 "$fileindex" build tree index
outcome "paths longer than 4096 bytes" "$([ "$(count longest_path_bytes)" -gt 6000 ]; echo $?)"

find "$work/tree" | grep "^$work/tree/a/file.1" | sort >found
"$fileindex" query index "$work/tree/a/file.1" --paths >known
same "query of a prefix"
long=$work/tree/long/$(printf '%0200d' 0)/$(printf '%0200d' 0)
find "$work/tree" | grep -c "^$long" >found
"$fileindex" query index "$long" --count >known
same "query of a long prefix"
find "$work/tree" -print0 | sort -z | head -z -n 7 >found
"$fileindex" query index "$work/tree" --null --limit 7 >known
same "query with a limit"
expect 1 "$fileindex" query index "$work/tree/nothing"
expect 1 "$fileindex" query index "$work/tree/nothing" --count
expect 0 "$fileindex" query index "$work/tree/a/sub way" --json
printf '%s\n' '"path":"'"$work"'/tree/a/sub way/\udcfc\u0001\"\\"' >found
grep -o '"path":".*udcfc[^,]*"' out >known
same "JSON of an odd name"

# ---- update -----------------------------------------------------------------------------

expect 0 "$fileindex" update tree index --procs 2
outcome "nothing to do" "$(grep -q ' 0 added, 0 changed, 0 removed' out; echo $?)"

rm -r "$work/tree/b"                       # a directory goes
mv "$work/tree/c" "$work/tree/c-moved"     # moves
rm -r "$work/tree/a/sub"
echo file >"$work/tree/a/sub"              # becomes a file
rm "$work/tree/e.f/file.7"
mkdir "$work/tree/e.f/file.7"              # a file becomes a directory
: >"$work/tree/e.f/file.7/inside"
echo more >>"$work/tree/e.f/file.8"        # changes
chmod 4711 "$work/tree/e.f/file.9"
touch -d '2001-02-03 04:05' "$work/tree/e.f/file.10"
tree "$work/tree/new" 300                  # comes
(cd "$work/tree/long/$(printf '%0200d' 0)" && rm -r "$(printf '%0200d' 0)-side")
expect 0 "$fileindex" update tree index --procs 3
outcome "something to do" "$(grep -q ' 0 added' out; [ $? -ne 0 ]; echo $?)"
agree "update"

# Two at once, on a tree that changed again.
rm -r "$work/tree/d d" "$work/tree/long"
tree "$work/tree/newer" 300
"$fileindex" update tree index --procs 2 --quiet &
other=$!
expect 0 "$fileindex" update tree index --procs 2
wait "$other"
outcome "the other update" $?
agree "two updates at once"
outcome "groups of long names went with them" \
    "$([ "$(count entries)" -le "$(($(count paths) + 20))" ]; echo $?)"

# A second directory in the same index; the first one is not touched.
mkdir other
tree "$work/other/x" 50
expect 0 "$fileindex" update other index
agree "another directory"
find "$work/other" -print0 | sort -z >found
"$fileindex" query index "$work/other" --null >known
same "the other directory"

# Everything but the top goes.
rm -rf "$work/tree" && mkdir "$work/tree"
expect 0 "$fileindex" update tree index
agree "all gone"

# ---- trouble ----------------------------------------------------------------------------

# Killed in the middle: what is there is sound, and an update completes it.
tree "$work/tree/k1" 3000
tree "$work/tree/k2" 3000
for delay in 0.02 0.1 0.3; do
    rm -rf index
    "$fileindex" build tree index --procs 2 --quiet 2>/dev/null &
    victim=$!
    sleep "$delay"
    kill -9 "$victim" 2>/dev/null
    wait "$victim" 2>/dev/null
    if [ -e index/index.db ]; then
        expect 0 "$fileindex" update tree index --procs 2
    else
        expect 0 "$fileindex" build tree index --procs 2
    fi
    agree "killed after $delay s"
done

# A full index says so and stays sound.
rm -rf index
expect 3 "$fileindex" build tree index --size 256K --procs 2
outcome "full, in words" "$(grep -q 'full' err; echo $?)"
expect 0 "$fileindex" check index

# The summary line of a Check program, for scripts/run_test.sh.
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
