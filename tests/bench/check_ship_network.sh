#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_ship_network.sh -- xship serve and follow between two network namespaces, by bench/ship/ship.sh.
#
# GOAL    The standby has the same records at the end, byte by byte, though the cable is pulled for longer than silence is
#         borne; figures are printed in both forms; no namespace and no file is left, also if the script is killed.
# METHOD  A run with a cut of 12 s, which begins while the source inserts: for XAC_SECONDS (4), or longer than the cut
#         (16) in the long form; a short one with delay and loss, if the kernel has netem; one that is
#         terminated, and one that is killed, whose namespaces the next one removes.
set -u

name=ship
. "$(dirname "$0")/bench_run.sh"
ship=$source_dir/bench/ship/ship.sh

# start SECONDS OPTIONS... -- in the background; $pid is it.
start()
{
    seconds=$1
    shift
    "$ship" "$build" --pairs 1 --seconds "$seconds" "$@" >out 2>&1 &
    pid=$!
}

start "${XAC_SECONDS:-4}" --cut 12 --delay 0
wait "$pid"
rc=$?
[ "$rc" != 77 ] || { cat out; exit 77; }
[ "$rc" = 0 ] || fail "exit code $rc"
grep -q 'all records equal' out || fail "no figures"
must_be_clean "$pid"

start 3 --delay 1 --loss 1 --json
wait "$pid" || fail "exit code $?"
python3 - out <<'SCRIPT' || fail "no JSON"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line["equal"] for line in lines] == [True, True], lines
assert all(line["slowdown"] > 0 and line["lag_ms_p99"] >= line["lag_ms_median"] for line in lines)
SCRIPT
must_be_clean "$pid"

start 30
sleep 3
kill "$pid"
wait "$pid" && fail "terminated, it succeeds"
must_be_clean "$pid"

start 30
sleep 3
kill -9 "$pid"
wait "$pid"
killed=$pid
start 1
wait "$pid" || fail "exit code $? after one that was killed"
must_be_clean "$killed"
exit 0
