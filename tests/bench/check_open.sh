#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_open.sh -- the experiments of the questions that the papers leave open, as short as can be.
#
# Each checks by itself that the records are what was committed.  Here: the numbers that it prints
# belong together, what a simulation must give exactly is exact, and what is wrong is said.
set -u
xbench=$(cd "${top_builddir:-.}" && pwd)/bench/xbench
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99

fail()
{
    echo "check_open: $*"
    exit 1
}

# refuses WORDS COMMAND... -- it fails and says WORDS.
refuses()
{
    words=$1
    shift
    if "$@" >out 2>err; then
        fail "\"$*\" succeeded"
    fi
    grep -qF -- "$words" err || fail "\"$*\" did not say \"$words\" but: $(cat err)"
}

# measure NAME FILE ARGUMENT... -- JSON into a file, and the same as a table.
measure()
{
    name=$1
    file=$2
    shift 2
    "$xbench" "$name" --quiet --json "$@" >"$file" 2>log || fail "$name $*: $(cat log)"
}

refuses '--policies: there is no "fastest"' "$xbench" backoff --policies fastest
refuses '--backoffs: there is no "long"' "$xbench" backoff --backoffs none,long
measure backoff backoff --procs 2 --count 64 --loaded 40 --rounds 2 --fixed-us 300
"$xbench" backoff --quiet --procs 2 --count 64 --rounds 1 --trees btree >table 2>&1 ||
    fail "backoff: $(cat table)"
grep -q '^| exponential ' table || fail "backoff printed no table: $(cat table)"
python3 - <<'PYTHON' || fail "backoff is not as it should be"
import json

rows = [json.loads(line) for line in open("backoff")]
cells = {(r["tree"], r["policy"], r["backoff"]): r for r in rows}
assert len(rows) == len(cells) == 2 * 6 * 4, len(rows)
for (tree, policy, backoff), r in cells.items():
    assert r["inserts"] == 128 and r["verified"] and r["rounds"] == 2, r
    assert r["us_per_insert_min"] > 0 and r["aborts"] >= r["max_retries"], r
    assert (r["abort_rate"] > 0) == (r["aborts"] > 0), r
    waited = r["us_waited_per_insert"] * r["inserts"]
    assert backoff != "none" or waited == 0, r
    assert backoff != "fixed" or waited >= 0.999 * r["fixed_us"] * r["aborts"], r
# Nobody loses under serial, unless its process is stopped.
assert sum(r["aborts"] for k, r in cells.items() if k[1] == "serial") <= 2, cells
PYTHON
ls -d xbench-* 2>/dev/null && fail "temporary files are left"
echo "check_open: 0 problems"
