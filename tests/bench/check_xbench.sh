#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_xbench.sh -- the front end of the benchmarks: xbench list, run, report.
#
# One short experiment is run; its file must be JSON line by line, the page well-formed, and
# what goes wrong must be said and cost nothing that was there.
set -u
. "$(dirname "$0")/xbench_run.sh"

"$xbench" list >list || fail "list"
# Names are different, and every experiment explains itself (how: check_help.sh).
names=$(sed -n '/^experiments:/,/^systems:/s/^  \([a-z0-9-][a-z0-9-]*\) .*/\1/p' list)
[ "$(echo "$names" | sort | uniq -d)" = "" ] || fail "names twice"
for name in $names; do
    "$xbench" "$name" --help >help || fail "$name --help"
    grep -q "^usage: xbench $name " help || fail "$name --help says no usage"
    n=$((n + 1))
done
[ "$n" -ge 5 ] || fail "list names $n experiments"

# Counters need permission (perf_event_paranoid), which is none of the front end's business.
perf=--perf
if "$xbench" run checksum --perf -- --rounds 10 2>err >log; then
    grep -q '"perf": {"[a-z_]*": [0-9]' results/checksum.jsonl || fail "--perf counts nothing"
else
    grep -q 'perf_event_open gives no event' err || fail "--perf: $(cat err)"
    perf=
fi
# Places of this machine are not part of the command that is kept, however they are given.
mkdir elsewhere
"$xbench" run checksum --quick $perf --dir "$dir/elsewhere" --out results -- --rounds 200 >log || fail "run"
"$xbench" run insert --di="$dir/elsewhere" --out="$dir/results" -- --procs 1 --count 60 --slices 3 --quiet \
    --dir "$dir" >>log || fail "run insert"
! grep -F "$dir" results/*.jsonl >out || fail "places in the results: $(sed -n '1s/.*"command": //p' out)"
# Simulated transactions that have failed each other do not go on so for ever, in step.
"$xbench" processors --part policies --procs 2 --pages 8 --ms 20 --line-ns 60 --transaction-ns 6000 \
    --page-ns 5000 --quiet >simulated || fail "processors"
awk '/^[a-z-]* +(short|long) / { n++; if ($6 > 95) print $1, $2 }
    END { if (n != 14) print n " rows" }' simulated >stuck
[ ! -s stuck ] || fail "processors: only aborts: $(cat stuck)"
# A query that has touched every page does not trap any more; the first touches do, where
# pages do not stay mapped.
for x in search-query search-query-cold; do
    "$xbench" $x --hints off --loaded 300 --count 60 --slices 3 --groups 20 \
        --systems btree-strict,cobtree-strict --quiet --json >"$x" || fail "$x"
done
python3 - <<'PYTHON' || fail "searches are not as warm as they should be"
import json
for name, warm in (("search-query", True), ("search-query-cold", False)):
    rows = [json.loads(line) for line in open(name)]
    assert [r["system"] for r in rows] == ["btree-strict", "cobtree-strict"], rows
    for r in rows:
        assert r["warm"] is warm and r["verified"] and (r["traps_per_search"] == 0) is warm, r
PYTHON
# Every peer of this build does what it can, in two processes or threads, and each record is
# found again by a new process; --over compares each with any.  (WiredTiger measures the
# processor's clock for 1.4 s whenever it is opened: few runs.)
peers=bdb,lmdb,lmdb-map,wiredtiger,rocksdb,rocksdb-nolog,rocksdb-txn,leveldb,pmdk
small="--loaded 200 --count 60 --slices 3 --systems btree,$peers --over btree,pmdk --quiet --json"
"$xbench" insert --both --workload insert,search-writer --procs 2 $small >peers 2>err &&
    "$xbench" insert --nondurable --workload ycsb-a,ycsb-e --procs 1 $small >>peers 2>>err ||
    fail "peers: $(cat err)"
python3 - list peers <<'PYTHON' || fail "peers are not as they should be"
import json
import re
import sys

THREADS = {"wiredtiger", "rocksdb", "rocksdb-nolog", "rocksdb-txn", "leveldb", "pmdk"}
NEVER_DURABLE = {"rocksdb-nolog", "pmdk"}
WANTED = THREADS | {"btree", "bdb", "lmdb", "lmdb-map"}
words = open(sys.argv[1]).read()
present = set(re.findall(r"^  ([a-z-]+) ", words.split("systems:")[1], re.M)) & WANTED
missing = set(re.findall(r"not in this build: ([a-z-]+):", words))
assert present | missing >= WANTED and not present & missing, (present, missing)
rows = [json.loads(line) for line in open(sys.argv[2])]
runs = {}
for r in rows:
    runs.setdefault((r["workload"], r["processes"], r["durable"]), {})[r["system"]] = r
assert len(runs) == 2 * 2 + 2, runs.keys()
for (workload, procs, durable), systems in runs.items():
    assert set(systems) == present - (NEVER_DURABLE if durable else set()), systems.keys()
    for name, r in systems.items():
        assert r["verified"] and r["are_threads"] == (name in THREADS), r
        assert (r["us_per_insert_of_writer"] is not None) == (workload == "search-writer"), r
        mean = f"us_per_{next(k[7:-7] for k in r if re.match('us_per_.*_median', k))}_mean"
        ratio = systems["btree"][mean] / r[mean]
        assert abs(r["btree_time_over_this_mean"] / ratio - 1) < 1e-3, r
        assert (r["pmdk_time_over_this_median"] is None) == ("pmdk" not in systems), r
    assert systems["btree"]["btree_time_over_this_median"] == 1, systems["btree"]
PYTHON
# The yardstick writes and syncs, once each; records that are loaded and checked are not counted.
"$xbench" calls --both --workload insert,search --loaded 20 --count 50 --slices 1 --systems sync,mmap,wiredtiger,btree \
    --quiet --json >calls 2>err || fail "calls: $(cat err)"
python3 - <<'PYTHON' || fail "system calls are not as they should be: $(cat calls)"
import json
rows = {(r["system"], r["durable"]): r["calls_per_1000_steps_by_name"]
        for r in map(json.loads, open("calls")) if r["workload"] == "insert"}
assert rows[("sync", True)] == {"pwrite64": 1000, "fdatasync": 1000}, rows
assert rows[("mmap", False)] == {} and rows[("mmap", True)] == {"fdatasync": 1000}, rows
assert rows[("btree", True)]["fdatasync"] >= 1000 > rows[("btree", False)].get("fdatasync", 0), rows
PYTHON
# Records that a workload needs are there without being asked for.
"$xbench" insert --nondurable --workload search --count 60 --slices 3 --systems mmap --over mmap --quiet --json >search ||
    fail "search: $(cat search)"
grep -q '"loaded": 100000' search || fail "search: $(cat search)"
"$xbench" insert --procs 8 --nondurable --count 64 --slices 2 --quiet --over btree \
    --systems btree,wiredtiger >table || fail "a table of eight"
grep -q 'btree/this' table || fail "--over: $(cat table)"
! grep -q '^wiredtiger ' table || grep -q '^wiredtiger  *insert  *1  *8t ' table ||
    fail "threads: $(cat table)"
grep -q 'measurements in results/checksum.jsonl' log || fail "run said: $(cat log)"
cp results/checksum.jsonl before
# LRU hits as often as distances say; searches that overlap share one round of the clock.  Of threads nothing
# is asked here: they overlap as the machine lets them.
python3 -c 'for i in range(40000): print(abs(i % 400 - 200))' >zigzag
"$xbench" frames --hits --sizes 100 zigzag >log
grep -q '^pass    lru: 1 of 1 plays equal' log || fail "frames --hits: $(cat log)"
grep -q '^pass    nb-gclock, 8 woven users .* against the same history' log || fail "frames --hits: $(cat log)"
# Why plays by eight users may differ: a loop a little longer than the pool, a much longer one, a pool smaller than what
# queues may hold; and pages that come back after about as many others as there are frames, but not each time.
why()
{
    python3 -c "for i in range(30000): print($1)" >references
    "$xbench" frames --hits --sizes "$2" references >log
    sed -n 's/^report  reasons of .*: //p' log | tr -d , |
        awk '{ for (i = 2; i <= NF; i += 2) n[i] += $i } END { print n[2], n[4], n[6], n[8], n[10] }'
}
[ "$(why 'i % 310' 300)" = "0 10 0 0 0" ] && [ "$(why 'i % 3000' 300)" = "0 0 0 0 10" ] &&
    [ "$(why 'i % 3000' 100)" = "10 0 0 0 0" ] && [ "$(why 'i % 110' 100)" = "0 0 10 0 0" ] &&
    [ "$(why 'abs(i % 4000 - 2000)' 1500)" = "0 0 0 10 0" ] || fail "frames --hits, reasons: $(cat log)"

# A row that has not passed its line is told by the exit code: whatever this machine measures.
rc=0
"$xbench" swizzle --part start --quick --pools 110 --intervals 4 --json >rows || rc=$?
grep -q '"verdict": "missed"' rows && want=3 || want=0
[ "$rc" -eq "$want" ] || fail "swizzle --part start: exit code $rc: $(cat rows)"
[ "$(grep -c '"verdict": ' rows)" -eq 3 ] || fail "swizzle --part start: $(cat rows)"
# A difference may be negative, and so may the line that it has to pass.
grep -q '"value": [-0-9].*"line": -0.02,' rows || fail "swizzle --part start: $(cat rows)"

refuses 'no experiment "checksumm"' "$xbench" run checksumm
refuses 'no experiment "checksumm"' "$xbench" checksumm
refuses 'run what?' "$xbench" run
refuses 'exclude each other' "$xbench" run checksum --quick --medium
refuses 'would not start' "$xbench" search --nondurable --warm --procs 2 --loaded 50 --count 40
refuses '--over: no system "nothing"' "$xbench" insert --over bdb,nothing
refuses 'go with one experiment' "$xbench" run all -- --rounds 1
refuses 'no such directory' "$xbench" run checksum --dir nowhere
refuses 'its results are not kept' "$xbench" run checksum -- --rounds none
cmp -s before results/checksum.jsonl || fail "a failed run changed the results"
[ ! -e results/checksum.jsonl.new ] || fail "a failed run left a file"
mkdir empty
refuses 'no results' "$xbench" report --out empty
cp -r results cut
sed -i '$d' cut/checksum.jsonl
refuses 'not a whole result' "$xbench" report --out cut

"$xbench" report >page || fail "report"
printf '# Title\n<!-- results checksum -->\nold\n<!-- end -->\ntail\n' >doc.md
"$xbench" report --markdown doc.md --figures figures >>page 2>err || fail "report --markdown"
python3 - <<'PYTHON' || fail "results or page are not as they should be"
import html.parser
import json

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Balanced(html.parser.HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        name = dict(attrs).get("id")
        assert name is None or name not in self.ids, f"id {name} twice"
        self.ids.add(name)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        self.text += data


rows = [json.loads(line) for line in open("results/checksum.jsonl")]
words = rows[0]["command"].replace(" --perf", "")
assert rows[0]["record"] == "run" and words == "xbench run checksum --quick -- --rounds 200", words
assert rows[0]["quick"] is True and rows[0]["date"].endswith("Z") and rows[0]["cpus"] > 0
assert rows[-1]["record"] == "end" and rows[-1]["seconds"] > 0
assert len(rows) == 8 and all(r["experiment"] == "checksum" for r in rows[:-1])
assert all(r["us_mean"] > 0 for r in rows[1:-1])
page = Balanced()
page.feed(open("results/report.html", encoding="utf-8").read())
page.close()
assert page.open == [], page.open
assert {"checksum", "insert"} <= page.ids
for words in ("Beside the Thesis", "C.8, p. 143", "1: 12.1 µs", "µs per insert"):
    assert words in page.text, words
doc = open("doc.md").read()
assert doc.startswith("# Title\n") and doc.endswith("<!-- end -->\n"), doc
assert "<!-- end -->\ntail\n\n### insert\n\n<!-- results insert -->\n" in doc, doc
assert "old" not in doc and "`xbench run checksum" in doc and "| MD5" not in doc, doc
PYTHON
ls xbench-* 2>/dev/null && fail "temporary files are left"
echo "check_xbench: $n refusals and manuals, 0 problems"
