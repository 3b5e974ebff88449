#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_larger.sh -- xbench larger, as short as can be.
#
# Of the cache-oblivious tree there must be one measurement just before its array grows, and one just behind.
# Where there are no control groups that limit memory it must say so.
set -u
. "$(dirname "$0")/xbench_run.sh"

refuses '--limit 3M: a number from 4' "$xbench" larger --limit 3M
refuses '--blocks: powers of two' "$xbench" larger --blocks 4K,5000
refuses '--trees: there is no "ctree"' "$xbench" larger --trees btree,ctree

if ! "$xbench" run larger -- --quiet --limit 4M --trees cobtree --searches 20 >log 2>&1; then
    # Where the disk is slow to take pages that were written, the kernel finds none to give up in so small a group.
    grep -q 'died (Killed)' log || fail "run: $(cat log)"
    echo "check_larger: skipped: the kernel has killed a process, for the group ran out of memory"
    exit 77
fi
if grep -q '"skipped"' results/larger.jsonl; then
    grep -q '"skipped": "no control group' results/larger.jsonl || fail "no reason"
    sed -n 's/.*"skipped": "\([^"]*\)".*/check_larger: \1/p' results/larger.jsonl
    exit 77
fi
"$xbench" report >log 2>&1 || fail "report: $(cat log)"
ls -d xbench-* 2>/dev/null && fail "temporary files are left"

python3 - <<'PYTHON' || fail "results are not as they should be"
import json

rows = [json.loads(line) for line in open("results/larger.jsonl")][1:-1]
keys = 3 * (4 << 20) // 128
assert [(r["tree"], r["test"], r["point"]) for r in rows] == [
    ("cobtree", "static", ""), ("cobtree", "dynamic", "before"), ("cobtree", "dynamic", "behind")], rows
_, before, behind = rows
assert keys <= before["count"] < 2 * keys, before
# One key more, and the array is twice as large.  As full as it may be: 24 of 32 cells.
assert behind["array_leaves"] == 2 * before["array_leaves"], (before, behind)
assert before["count"] >= 24 * before["array_leaves"], before
for r in rows:
    assert r["us_per_search"] > 0 and (r["us_per_insert"] is None) == (r["test"] == "static"), r
    if r["point"] == "":
        assert r["array_leaves"] is None, r
    assert r["count"] == (keys if r["test"] == "static" else before["count"] + (r is not before)), r
page = open("results/report.html", encoding="utf-8").read()
for words in ("440,000: just before its reorganization", "450,000: just behind its reorganization"):
    assert page.count(words) == 1, words
PYTHON
echo "check_larger: $(($(wc -l <results/larger.jsonl) - 2)) measurements, 0 problems"
