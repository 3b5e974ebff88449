#!/bin/sh
# SPDX-License-Identifier: MIT
#
# demo.sh -- libxac at work: inserts beside Berkeley DB, an index of /usr, a crash.
#
# Installs what is missing, builds in build/demo, works in a directory there that it
# removes.  Exits 0 only if every part held.  Takes a few minutes.
set -eu

source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$source_dir/build/demo
started=$(date +%s)
work=

# On any way out: remove the work directory.
clean_up()
{
    status=$?
    trap - EXIT
    [ -z "$work" ] || rm -rf "$work"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# say TEXT -- what comes next, and after how many seconds.
say()
{
    printf '\n== %s (%s s)\n\n' "$1" "$(($(date +%s) - started))"
}

# run COMMAND... -- show it, then do it.
run()
{
    printf '$ %s\n' "$*"
    "$@"
}

# query PREFIX -- must find something; shows the first lines and how many there are.
query()
{
    printf '$ fileindex query index %s\n' "$1"
    fileindex query index "$1" >answer
    head -n 5 answer
    lines=$(wc -l <answer)
    [ "$lines" -le 5 ] || echo "... ($lines lines)"
    if ! grep -q "^.*$1" answer; then
        echo "demo.sh: the query found nothing" >&2
        return 1
    fi
}

# shm_left -- how many files of the library there are in /dev/shm.
shm_left()
{
    find /dev/shm -maxdepth 1 -name 'xac-*' | wc -l
}
shm_before=$(shm_left)

say "packages"
"$source_dir/scripts/setup.sh"

say "build in $build"
"$source_dir/scripts/build.sh" "$build"
PATH=$build:$build/bench:$build/examples:$PATH
work=$(mktemp -d "$build/run.XXXXXX")
cd "$work"

say "inserts, each a transaction: libxac beside Berkeley DB"
xbench insert --both --procs 1,2 --count 20000

say "an index of /usr"
run fileindex build /usr index --procs 2
run fileindex stat index
query /usr/bin/gcc
query /usr/share/doc/libc6

say "a crash: writers are killed, xrecover, nothing that was acknowledged is lost"
run crashdemo --procs 4 --xrecover xrecover crash

if [ "$(shm_left)" -gt "$shm_before" ]; then
    echo "demo.sh: something is left in /dev/shm" >&2
    exit 1
fi
say "all parts held"
