#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh BUILD-DIR [ROUNDS [STEPS]] -- language transactions over libxac beside gcc's own libitm.
#
# Each round runs every system once, one after the other; the table has medians, microseconds of wall
# time and of processor time for each step, of all processes.  gcc's library is volatile: it has no file, no log, and
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
# The columns, and the arguments behind LOAD THREADS STEPS.
systems="gcc one one-durable two beside beside-durable beside-two"
once_as()
{
    case $1 in
    gcc) once gcc "$gcc" "$load" "$threads" "$steps" ;;
    one) once one "$xac" "$load" "$threads" "$steps" nondurable ;;
    one-durable) once "$1" "$xac" "$load" "$threads" "$steps" durable ;;
    two) once two "$xac" "$load" "$threads" "$steps" durable 2 ;;
    beside) once beside "$xac" "$load" "$threads" "$steps" nondurable 1 beside ;;
    beside-durable) once "$1" "$xac" "$load" "$threads" "$steps" durable 1 beside ;;
    beside-two) once "$1" "$xac" "$load" "$threads" "$steps" durable 2 beside ;;
    esac
}

printf '%-18s | %15s | %-51s | %-51s\n' "" "" "blocks of threads one by one" "side by side"
printf '%-10s %7s | %15s' load threads "gcc's libitm"
for column in nondurable durable "dur., 2 processes" nondurable durable "dur., 2 processes"; do
    printf ' | %17s' "$column"
done
echo
for load in list tree hash vacation; do
    for threads in 1 2 8; do
        round=0
        while [ $round -lt "$rounds" ]; do
            round=$((round + 1))
            for system in $systems; do
                once_as "$system"
            done
        done
        printf '%-10s %7s' $load $threads
        for system in $systems; do
            width=8
            [ "$system" != gcc ] || width=7
            printf " | %${width}s %${width}s" "$(median "$system" 1)" "$(median "$system" 2)"
            rm "$tmp/$system"
        done
        echo
    done
done
