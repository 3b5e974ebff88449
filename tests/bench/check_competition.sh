#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_competition.sh -- xbench competition, as short as can be.
#
# Every pair of a hog and a contender must be measured, what is printed must belong together,
# what is wrong must be said; no file and no control group may be left.  Where there are no
# control groups that limit memory it must say so.
set -u
. "$(dirname "$0")/xbench_run.sh"

refuses '--slices 65: a number from 1 to 64' "$xbench" competition --slices 65
refuses '--limit 1M: a number from 16' "$xbench" competition --limit 1M
refuses '--dir nowhere: no such directory' "$xbench" competition --dir nowhere
if grep -q '^SwapTotal: *0 kB' /proc/meminfo; then
    refuses 'at most seven eighths of --limit' "$xbench" competition --limit 48M --frames 24M --hog 24M
fi

set -- --quiet --quick --data 32M --slices 2 --ms 15
"$xbench" run competition -- "$@" >log 2>&1 || fail "run: $(cat log)"
if grep -q '"skipped"' results/competition.jsonl; then
    grep -q '"skipped": "no control group' results/competition.jsonl || fail "no reason"
    sed -n 's/.*"skipped": "\([^"]*\)".*/check_competition: \1/p' results/competition.jsonl
    exit 77
fi
"$xbench" competition "$@" >table 2>&1 || fail "table: $(cat table)"
[ "$(grep -c 'bound kept' table)" = 6 ] || fail "a table without verdicts: $(cat table)"
"$xbench" report >log 2>&1 || fail "report: $(cat log)"
ls -d xbench-* 2>/dev/null && fail "temporary files are left"
find /sys/fs/cgroup -name "xbench-*-[012]" -type d 2>/dev/null |
    while read -r group; do
        # That of somebody else's run has a process.
        pid=${group##*/xbench-}
        kill -0 "${pid%-*}" 2>/dev/null || echo "$group"
    done | grep . && fail "control groups are left"

python3 - <<'PYTHON' || fail "results are not as they should be"
import json

rows = [json.loads(line) for line in open("results/competition.jsonl")][1:-1]
measured = [r for r in rows if "work" in r]
compared = [r for r in rows if "verdict" in r]
hogs, memories = ("none", "anonymous", "file"), ("page cache", "in order", "frames")
assert [(r["hog"], r["memory"], r["work"]) for r in measured] == [
    (h, m, w) for h in hogs for m in memories for w in ("insert", "search")], measured
assert [(r["hog"], r["beside"]) for r in compared] == [
    (h, m) for h in hogs for m in memories[:2]], compared
limit = measured[0]["limit_bytes"]
for r in measured:
    by_slice = r["us_per_operation_by_slice"]
    assert len(by_slice) == 2 and min(by_slice) > 0, r
    assert min(by_slice) <= r["us_per_operation"] <= max(by_slice), r
    assert abs(r["operations_per_second"] * r["us_per_operation"] / 1e6 - 1) < 1e-3, r
    assert 0 < r["resident_bytes_most"] < limit, r
    assert (r["hog_bytes"] == 0) == (r["hog"] == "none"), r
    assert (r["hog_mib_per_second"] is None) == (r["hog"] == "none"), r
    if r["memory"] == "frames":
        assert r["resident_bytes_most"] <= 1.1 * r["frames_bytes"], r
        # What is not in a frame is read from the device, past the page cache.
        assert r["work"] == "insert" or r["device_read_bytes_per_operation"] > 0, r
    else:
        assert r["frames_bytes"] == 0, r
for r in compared:
    assert r["insert_rate_ratio"] > 0 and r["search_rate_ratio"] > 0, r
PYTHON
echo "check_competition: 18 measurements, 0 problems"
