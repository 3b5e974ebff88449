#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_group_bench.sh -- groups of three nodes beside each other, by bench/group/group.sh.
#
# GOAL    Each system that is there has figures, in both forms, and as many records as it has acknowledged; one that is not is
#         said to be skipped; a wrong option is refused; no process, file, shared memory or namespace is left, also after a
#         kill.
# METHOD  A turn of a second of each system, as JSON; a run of libxac alone with a delay between the nodes that is killed, and another
#         one, which prints a table.
set -u

name=group
. "$(dirname "$0")/bench_run.sh"
group=$source_dir/bench/group/group.sh

"$group" "$build" --writers >out 2>&1
[ $? = 2 ] || fail "an option without a value is not refused"
"$group" "$build" --systems paxos >out 2>&1
[ $? = 77 ] && grep -q '^skipped: paxos: ' out || fail "an unknown system is not named"

"$group" "$build" --seconds 1 --pairs 1 --writers 1,2 --json >out 2>&1 &
pid=$!
wait "$pid"
rc=$?
[ "$rc" = 0 ] || { [ "$rc" = 77 ] && grep -q '^skipped: ' out; } || fail "exit code $rc"
python3 - out <<'SCRIPT' || fail "not the JSON that is wanted"
import json, os, sys
text = open(sys.argv[1]).read().splitlines()
left_out = {line.split(":")[1].strip() for line in text if line.startswith("skipped: ")}
lines = [json.loads(line) for line in text if not line.startswith("skipped: ")]
disk = os.stat(".").st_dev
counts_disk = any(line.split()[:2] == [str(os.major(disk)), str(os.minor(disk))] for line in open("/proc/diskstats"))
for system in {"xac", "dqlite", "etcd"} - left_out:
    for writers in (1, 2):
        own = [line for line in lines if (line["system"], line["writers"]) == (system, writers)]
        turn, all_turns = own
        assert turn["turn"] == 1 and turn["commits"] > 0 and all_turns["turns"] == 1, own
        assert turn["commits_per_s"] == all_turns["commits_per_s"] > 0, own
        for line in own:
            assert 0 < line["latency_us_median"] <= line["latency_us_p99"] <= line["latency_us_max"], own
            assert line["cpu_us_per_commit"] > 0, own
            # Each of three nodes, or at least two, has written a value of 512 bytes, and synced it.
            assert not counts_disk or (line["bytes_per_commit"] > 2 * 512 and line["flushes_per_commit"] > 0), own
        assert all_turns["xac_over_this"] > 0, own
assert "xac" not in left_out, text
SCRIPT
must_be_clean "$pid"

"$group" "$build" --seconds 30 --delay 1 --systems xac >out 2>&1 &
pid=$!
sleep 4
if kill -9 "$pid" 2>/dev/null; then
    wait "$pid"
    killed=$pid
    "$group" "$build" --seconds 1 --pairs 1 --writers 1 --delay 10 --systems xac >out 2>&1 || fail "exit code $?"
    grep -q '^xac  *1  *[0-9]' out || fail "no table"
    # A commit needs one way to another node and back.
    awk '$1 == "xac" && $4 < 20000 { exit 1 }' out || fail "there is no delay"
    must_be_clean "$killed"
else
    wait "$pid"
    [ $? = 77 ] || fail "--delay ends at once"
fi
