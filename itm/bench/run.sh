#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh BUILD-DIR [ROUNDS [STEPS]] -- language transactions over libxac beside gcc's own libitm.
#
# Each round runs every system once, one after the other; the table has medians, microseconds of wall
# time and of processor time for each step.  gcc's library is volatile: it has no file, no log, and
# serves one process.  Half of the steps look only.  The files lie in $TMPDIR, or /tmp.
set -eu
build=$(cd "$1" && pwd)
rounds=${2:-9}
steps=${3:-40000}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# once NAME COMMAND... -- its figures, to a file of this name.
once()
{
    name=$1
    shift
    (mkdir "$tmp/run" && cd "$tmp/run" && "$@") >>"$tmp/$name"
    rm -rf "$tmp/run"
}

median()
{
    cut -d' ' -f"$2" "$tmp/$1" | sort -n | sed -n "$(((rounds + 1) / 2))p"
}

xac=$build/itm/bench/stamp_xac
gcc=$build/itm/bench/stamp_gcc
printf '%-10s %7s | %15s | %15s | %15s | %15s\n' load threads "gcc's libitm" nondurable durable \
    "durable, 2 processes"
for load in list tree hash vacation; do
    for threads in 1 2 8; do
        round=0
        while [ $round -lt "$rounds" ]; do
            round=$((round + 1))
            once gcc "$gcc" $load $threads "$steps"
            once xac "$xac" $load $threads "$steps" nondurable
            once durable "$xac" $load $threads "$steps" durable
            once two "$xac" $load $threads "$steps" durable 2
        done
        printf '%-10s %7s' $load $threads
        for system in gcc xac durable two; do
            printf ' | %7s %7s' "$(median $system 1)" "$(median $system 2)"
            rm "$tmp/$system"
        done
        echo
    done
done
