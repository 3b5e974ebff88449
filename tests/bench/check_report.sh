#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_report.sh -- what xbench report sets beside the Thesis.
#
# Results are made up, so that the page must say what follows from them; one is measured, so that its record
# must say what this machine is.
set -u
. "$(dirname "$0")/xbench_run.sh"

"$xbench" run timer -- --rounds 200 --quiet >log 2>&1 || fail "run timer: $(cat log)"

XBENCH=$xbench python3 - <<'PYTHON' || fail "a page is not as it should be"
import html.parser
import json
import os
import pathlib
import subprocess

OLD = {"record": "run", "what": "made up", "thesis": "", "quick": False, "medium": True, "command": "xbench run",
       "library_version": "1.0", "date": "2026-01-01T00:00:00Z", "cpu": "Z80", "cpus": 2, "memory_bytes": 3 << 30,
       "page_bytes": 4096, "kernel": "6.1", "machine": "x86_64", "file_system": "ext2/3/4"}
NEW = OLD | {"cpu_mhz": 2000, "cpu_caches": "L1 Data 16K", "disk": "fd0, cache none", "file_system": "ext4",
             "c_library": "glibc 2.0", "compiler": "gcc 4.0"}


class Tables(html.parser.HTMLParser):
    """Rows of all tables: lists of their cells' texts."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.text, self.in_cell = [], "", False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.in_cell = False

    def handle_data(self, data):
        self.text += data
        if self.in_cell:
            self.rows[-1][-1] += data

    def row(self, first):
        """The only row that begins so."""
        found = [r for r in self.rows if r and r[0] == first]
        assert len(found) == 1, (first, found)
        return found[0]

    def has(self, first):
        return any(r and r[0] == first for r in self.rows)


def page(folder, **experiments):
    """The page of made-up results: name=(head, measurements, perf or None)."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    for name, (head, measurements, perf) in experiments.items():
        name = name.replace("_", "-")
        end = {"record": "end", "seconds": 1} | ({"perf": perf} if perf else {})
        rows = [head | {"experiment": name}, *measurements, end]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    subprocess.run([os.environ["XBENCH"], "report", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return Tables((folder / "report.html").read_text(encoding="utf-8"))


def insert(system, processes, hints, us):
    return {"system": system, "durable": True, "processes": processes, "hints": hints, "us_per_insert_mean": us,
            "us_per_insert_median": 1}


def cobtree(us, **more):
    return {"test": "dynamic", "tree": "cobtree", "us_per_insert": us, "us_per_search": 10 * us,
            "us_per_scanned_record": us / 10} | more


def spread(where, mean, stdev, least, median, p99, most):
    return where | {f"us_per_page_{k}": v for k, v in (("mean", mean), ("stdev", stdev), ("min", least),
                                                       ("median", median), ("p99", p99), ("max", most))}


READ = {"access": "read", "hint": "none", "pages": 1024}
BEFORE = "random insert, CO B-tree, 440,000: just before its reorganization"
BEHIND = "random insert, CO B-tree, 450,000: just behind its reorganization"
SPEEDUP = "durable insert, B+-tree, advisory function, speed-up of 2 processes"
CACHES_ON = "durable insert, disk caches on, B+-tree"

# Records of before these columns: what they do not have is not there, all else is.
old = page("old", larger=(OLD, [cobtree(70)], None), txn_trees=(OLD, [insert("btree", 1, True, 200)], None))
assert old.row(BEFORE)[1:4] == ["5.2, p. 104", "4: 35.9 µs", "70.0 µs"], old.row(BEFORE)
assert not old.has(BEHIND) and not old.has(SPEEDUP), old.rows
assert old.row("")[1:] == ["machine 1", "machine 2", "machine 3", "machine 4", "ours"], old.row("")
assert old.row("processors")[3:] == ["4 Opteron", "Pentium II", "2 × Z80"], old.row("processors")
assert old.row("file system")[-1] == "ext2/3/4" and old.row("compiler")[-1] == "not in the records"
assert "hardware counters" not in old.text

kernel = {"task_clock_us": 5, "page_faults": 6}
new = page("new", larger=(NEW, [cobtree(70, point="before"), cobtree(90, point="behind")], kernel),
           txn_trees=(OLD | {"kernel": "6.2", "cpu_mhz": None, "disk": ""}, [insert("btree", 1, True, 200), insert("btree", 2, True, 160)], kernel),
           touch_durable=(NEW, [spread(READ, 15, 2, 9, 10, 30, 50)], None))
assert new.row(BEFORE)[3] == "70.0 µs" and new.row(BEHIND)[2:4] == ["4: 122 µs", "90.0 µs"], new.rows
assert new.row(SPEEDUP)[2:4] == ["1: 1.25, 3(a): 1, 3(b): 1.03", "1.25"], new.row(SPEEDUP)
assert new.row(SPEEDUP)[5] == "about the same as machine 1", new.row(SPEEDUP)
# Not compared: the cache of the disk.
assert new.row(CACHES_ON)[3:5] == ["200 µs", "–"] and new.row(CACHES_ON)[5].startswith("no verdict: "), new.rows
# A machine is one column, whatever the age of its records.
for name, ours in (("clock", "2.00 GHz, 0.500 ns a cycle"), ("file system", "ext4"), ("caches", "L1 Data 16K"),
                   ("operating system", "Linux 6.1, Linux 6.2"), ("memory", "3.0 GiB"), ("disk", "fd0, cache none")):
    assert new.row(name)[5:] == [ours], new.row(name)
assert new.row("clock")[1:5] == ["3.00 GHz, 0.333 ns a cycle", "2.40 GHz, 0.417 ns a cycle",
                                 "1.40 GHz, 0.714 ns a cycle", "0.300 GHz, 3.33 ns a cycle"], new.row("clock")
# Spread: the columns of table C.5, ours last.
at = next(i for i, r in enumerate(new.rows) if r and r[0].startswith("durable, page read (C.5)"))
assert new.rows[at] == ["durable, page read (C.5): greatest over median 5.00, theirs 21.8 to 73.8"], new.rows[at]
assert [r[0] for r in new.rows[at + 1:at + 5]] == ["1", "3(a)", "3(b)", "ours"], new.rows[at:]
assert new.rows[at + 2][2:] == ["15.4 µs", "33.1 µs", "14.1 µs", "14.4 µs", "14.7 µs", "1.06 ms"], new.rows[at + 2]
assert new.rows[at + 4][2:] == ["15.0 µs", "2.00 µs", "9.00 µs", "10.0 µs", "30.0 µs", "50.0 µs"], new.rows[at + 4]
assert new.text.count("gives no hardware counters") == 1

# Two machines are two columns; a processor that counts is not said to count nothing.
two = page("two", larger=(NEW | {"cpu": "6502"}, [cobtree(70)], kernel), txn_trees=(OLD, [], kernel | {"cycles": 7}))
assert two.row("")[5:] == ["ours, 1", "ours, 2"], two.row("")
assert two.row("disk")[5:] == ["not in the records", "fd0, cache none"], two.row("disk")
assert "hardware counters" not in two.text

# What a real record says of this machine.
head, *rows, _ = map(json.loads, open("results/timer.jsonl"))
here = os.path.realpath(".")
mounts = [(m.encode().decode("unicode_escape"), line.split(" - ")[1].split()[0])
          for line in open("/proc/self/mountinfo") for m in [line.split()[4]]]
mounted = max((m for m in reversed(mounts) if here == m[0] or here.startswith(m[0].rstrip("/") + "/")), key=lambda m: len(m[0]))
assert head["file_system"] == mounted[1], (head["file_system"], mounted)
assert head["kernel"] == os.uname().release and head["cpus"] == os.sysconf("SC_NPROCESSORS_ONLN"), head
assert head["memory_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), head
cpuinfo = open("/proc/cpuinfo").read()
assert head["cpu"] in cpuinfo and (head["cpu_mhz"] is not None) == ("cpu MHz" in cpuinfo), head
disk = pathlib.Path(os.path.realpath(f"/sys/dev/block/{os.major(os.stat('.').st_dev)}:{os.minor(os.stat('.').st_dev)}"))
disk = disk.parent if (disk / "partition").exists() else disk
assert head["disk"].split(",")[0] == (disk.name if disk.exists() else ""), (head["disk"], disk)
for file, words in ((disk / "queue/write_cache", "cache {}"), (disk / "device/model", "{}"),
                    ("/sys/devices/system/cpu/cpu0/cache/index0/size", "{}")):
    text = pathlib.Path(file).read_text().strip() if pathlib.Path(file).exists() else ""
    assert words.format(text) in f"{head['disk']}, {head['cpu_caches']}" or not text, (file, head)
libc = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None
assert head.get("c_library") == libc and head["compiler"], head
subprocess.run([os.environ["XBENCH"], "report"], check=True, stdout=subprocess.DEVNULL)
real = Tables(pathlib.Path("results/report.html").read_text(encoding="utf-8"))
assert real.row("compiler")[-1] == head["compiler"] and real.row("operating system")[-1] == f"Linux {head['kernel']}"
clocks = [r[0].split(" (")[0] for r in real.rows if r and ("(C.1)" in r[0] or "(C.2)" in r[0])]
assert clocks == ["delay between successive rdtsc", "delay between successive gettimeofday"], clocks
PYTHON
echo "check_report: 4 pages, 0 problems"
