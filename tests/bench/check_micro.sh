#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_micro.sh -- the experiments of the Thesis' chapter 4 and appendix C, as short as can be.
#
# What they print must be JSON with the numbers that belong together, and each number that the
# Thesis printed must find its counterpart; what is wrong must be said; no file may be left.
set -u
. "$(dirname "$0")/xbench_run.sh"

# measure NAME ARGUMENT... -- its results, and its table.
measure()
{
    name=$1
    shift
    "$xbench" run "$name" -- --quiet "$@" >log 2>&1 || fail "run $name $*: $(cat log)"
    "$xbench" "$name" --quiet "$@" >table 2>&1 || fail "$name $*: $(cat table)"
    grep -q '^\$ xbench' table || fail "$name $* printed no table"
}

refuses '--pages 0: a number from 1' "$xbench" touch --pages 1,0
refuses '--procs: the list is empty' "$xbench" concurrency --procs ,
refuses '--tests AD: letters' "$xbench" concurrency --tests AD
refuses '--dir nowhere: no such directory' "$xbench" msync --dir nowhere
refuses 'unexpected argument "more"' "$xbench" handler more

measure timer --rounds 200
measure touch --rounds 2 --pages 1,1024
measure touch-durable --rounds 2
measure touch-stay --rounds 2
measure touch-many --rounds 2 --pages 64 --of 256
measure handler --rounds 130
measure watch --rounds 2 --pages 64 --of 256
measure model --slices 2 --rounds 130 --touch-rounds 2
measure msync --rounds 3 --writes 2 --pages 1,3
measure concurrency --count 64 --slices 2 --procs 1,2
measure concurrency-durable --count 64 --slices 2 --procs 1,2
measure checksum --rounds 100
measure cold --data 1M --rounds 2
"$xbench" report >log 2>&1 || fail "report: $(cat log)"
ls -d xbench-* 2>/dev/null && fail "temporary files are left"

python3 - "$top/bench/kit/thesis.c" <<'PYTHON' || fail "results are not as they should be"
import collections
import json
import re
import sys


def load(name):
    rows = [json.loads(line) for line in open(f"results/{name}.jsonl")][1:-1]
    assert all(r["experiment"] == name.split("-")[0] for r in rows), name
    return rows


def in_order(row, unit):
    """The numbers of bench_json_summary() belong together."""
    v = [row[f"{unit}_{k}"] for k in ("min", "median", "p99", "max")]
    assert v == sorted(v) and v[0] <= row[f"{unit}_mean"] <= v[-1], row
    assert v[-1] > 0 and row[f"{unit}_stdev"] >= 0, row


clocks = load("timer")
assert [r["clock"] for r in clocks] == ["rdtsc", "clock_gettime", "gettimeofday"]
assert all(r["n"] == 200 and sum(r["delays"]) == 200 for r in clocks), clocks
for name, pages in (("touch", 2), ("touch-durable", 2), ("touch-stay", 3)):
    touched = load(name)
    assert len(touched) == pages * 4 * 3, touched
    for r in touched:
        in_order(r, "us_per_page")
        assert r["n"] == 2 and r["durable"] == (name == "touch-durable"), r
        assert r["stay_mapped"] == (name == "touch-stay"), r
        assert ("percent_saved_by_hint" in r) == (r["hint"] != "none"), r
for r in load("handler"):
    if r["available"]:
        in_order(r, "us")
        assert r["n"] >= 6 and "why" not in r, r
    else:
        assert r["why"], r
for r in load("model"):
    predicted, measured = r["us_per_page_predicted"], r["us_per_page_measured"]
    assert predicted > 0 and measured > 0, r
    assert abs(r["percent_unexplained"] - 100 * (1 - predicted / measured)) < 0.1, r
synced = load("msync")
assert collections.Counter(r["pages"] for r in synced) == {1: 4, 3: 4, 10000: 3}, synced
cold = {(r["work"], r["read_ahead"]): r for r in load("cold")}
assert len(cold) == 3 * 5, "cold"
for r in cold.values():
    assert 0 < r["ms_min"] <= r["ms_median"] <= r["ms_max"], r
few, whole = cold["random, few", "0"], cold["in order", "0"]
assert few["device_read_bytes"] <= whole["device_read_bytes"], (few, whole)

for r in synced + load("checksum"):
    in_order(r, "us")
for name in ("concurrency", "concurrency-durable"):
    for r in load(name):
        in_order(r, "us_per_transaction")
        assert r["transactions"] == 128 and r["aborts"] >= 0 and r["hint"], r
        assert r["processes"] > 1 or r["speedup"] == 1, r

# Each quantity of chapter 4 and of C.1 to C.10 has found its counterpart.
tables = re.compile(r'^    [{]"(4[.]\d+|C[.][1-9]|C[.]10)", (\d+),', re.M)
printed = collections.Counter(tables.findall(open(sys.argv[1]).read()))
page = open("results/report.html", encoding="utf-8").read()
shown = collections.Counter(re.findall(r"\b(4[.]\d+|C[.][1-9]|C[.]10), p[.] (\d+)", page))
assert printed == shown and sum(printed.values()) >= 80, (printed - shown, shown - printed)
PYTHON
echo "check_micro: 10 experiments, 0 problems"
