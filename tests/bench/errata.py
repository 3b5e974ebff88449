# SPDX-License-Identifier: MIT
"""errata.py -- compute again what the tables of the Thesis derive from their own rows.

    errata.py THESIS.C      (bench/kit/thesis.c, which has the tables as printed)

Each printed number stands for all that are rounded to it.  A derived number agrees if some
values that are printed so give it.  All but those in WRONG must agree, and those in WRONG must
not: doc/thesis-errata.md says more about each of them.  A check whose name begins with a row of that list
judges that row.  The last line of the output names the rows that have been judged.
"""
import itertools
import re
import sys

import errata_models

ROW = re.compile(r'\{"([^"]+)", \d+, "([^"]*)", "[^"]*",\s*VALUES\((.*?)\),\s*"', re.S)
CELL = re.compile(r'\{"([^"]+)", \d+, \{([^}]*)\}\}')
GHZ = {"1": 3.0, "2": 2.4, "3": 1.4, "4": 0.3}
MEAN, SD, LEAST, MEDIAN, P99, MOST = range(6)

# What table 5.5, 5.6, 4.3, 4.4 and C.11 print, and bench/kit/thesis.c does not have so.
SAVED_55 = {("1", "B+"): "20.2", ("1", "CO"): "-16.3", ("1", "BDB"): "3.7",
            ("3(a)", "B+"): "0", ("3(a)", "CO"): "-4.0", ("3(a)", "BDB"): "31.1",
            ("3(b)", "B+"): "2.7", ("3(b)", "CO"): "-1.4", ("3(b)", "BDB"): "21.0"}
RATIO_55 = {("1", "B+"): "1.25", ("1", "CO"): "0.86", ("1", "BDB"): "1.04",
            ("3(a)", "B+"): "1.00", ("3(a)", "CO"): "0.96", ("3(a)", "BDB"): "1.45",
            ("3(b)", "B+"): "1.03", ("3(b)", "CO"): "0.99", ("3(b)", "BDB"): "1.28"}
SAVED_56 = {("1", "B+", 1): "60", ("1", "B+", 2): "67", ("1", "CO", 1): "71", ("1", "CO", 2): "65",
            ("3(a)", "B+", 1): "-4", ("3(a)", "B+", 2): "-51", ("3(a)", "CO", 1): "-1",
            ("3(a)", "CO", 2): "-53", ("3(b)", "B+", 1): "67", ("3(b)", "B+", 2): "59",
            ("3(b)", "CO", 1): "68", ("3(b)", "CO", 2): "59", ("4", "B+", 1): "-42",
            ("4", "CO", 1): "-15"}
MMAP_US = {"1": "5.05", "2": "4.19", "3": "2.31", "4": "7.61"}
FIRST_US = {"1": "5.6", "2": "2.2", "3": "2.3", "4": "13.3"}
DELTA_46 = {("read", "1"): "1.8", ("read", "2"): "1.3", ("read", "3"): "3.8", ("read", "4"): "1.6",
            ("read adv", "1"): "11.6", ("read adv", "2"): "5.7", ("read adv", "3"): "6.3",
            ("read adv", "4"): "1.7", ("write", "1"): "9.8", ("write", "2"): "19.6",
            ("write", "3"): "13.5", ("write", "4"): "125.6", ("write adv", "1"): "40.3",
            ("write adv", "2"): "26.5", ("write adv", "3"): "24.4", ("write adv", "4"): "134.5"}
TREES = {"B+": "B+-tree, advisory function", "CO": "CO B-tree, no advisory function", "BDB": "Berkeley DB"}

# What disagrees, and the row of doc/thesis-errata.md that says so.
WRONG = {
    "4.2 reads saved, machine 2": "E4",
    "4.4 us, machine 3": "E5",
    "4.6 estimate of read, machine 2": "E6", "4.6 estimate of read adv, machine 2": "E6",
    "4.6 estimate of write, machine 2": "E6", "4.6 estimate of write adv, machine 2": "E6",
    "4.6 difference of write adv, machine 2": "E7",
    "5.5 ratio, machine 3(b) BDB": "E3",
    "C.3 entering the SIGSEGV handler, machine 1: least above mean": "E18",
    "C.10 test B, machine 3(a)": "E19",
}


def read(path):
    """{(table, row): {machine: [printed number, ...]}}"""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for table, name, cells in ROW.findall(file.read()):
            rows[table, name] = {m: [v.strip() for v in values.split(",")] for m, values in CELL.findall(cells)}
    return rows


def span(text):
    """The least and the greatest number that is printed so."""
    decimals = len(text.partition(".")[2])
    return float(text) - 0.5 * 10**-decimals, float(text) + 0.5 * 10**-decimals


class Judge:
    """Notes which derived numbers disagree, and which rows of the list have been judged."""

    def __init__(self):
        self.n, self.wrong, self.rows = 0, {}, set()

    def begin(self, what):
        """One more."""
        self.n += 1
        self.rows.add(WRONG.get(what, what.split()[0]))

    def derived(self, what, printed, formula, *sources):
        """printed should be formula(*sources), all of them rounded; formulas are monotonic."""
        self.begin(what)
        values = [formula(*v) for v in itertools.product(*map(span, sources))]
        low, high = span(printed)
        if max(values) < low - 1e-9 or min(values) > high + 1e-9:
            exact = formula(*map(float, sources))
            self.wrong[what] = f"printed {printed}, computed {exact:.4g}"

    def check(self, what, right, words):
        """A statement about printed numbers."""
        self.begin(what)
        if not right:
            self.wrong[what] = words


def saved(before, after):
    """Percent of the time before that is no longer needed."""
    return 100 * (before - after) / before


def ratio(one, two):
    """Speed-up."""
    return one / two


def chapter_4(judge, rows):
    """Tables 4.2 to 4.6."""
    for access in ("read", "write"):
        for m, (percent,) in rows["4.2", f"speed-up of {access}s by the advisory function"].items():
            judge.derived(f"4.2 {access}s saved, machine {m}", percent, saved, rows["4.2", f"page {access}"][m][0],
                          rows["4.2", f"page {access}, advisory function"][m][0])
    for m, ghz in GHZ.items():
        judge.derived(f"4.3 us of mmap, machine {m}", MMAP_US[m], lambda c, g=ghz: c / g / 1e3,
                      rows["4.3", "mmap of a page"][m][0])
        judge.derived(f"4.4 us, machine {m}", FIRST_US[m], lambda c, g=ghz: c / g / 1e3,
                      rows["4.4", "first write to a page after mmap"][m][0])
        for access in ("read", "read adv", "write", "write adv"):
            model(judge, rows, m, access)


def model(judge, rows, m, access):
    """A line of table 4.6: equations 4.1 and 4.2, less the clock's delay for each value (footnote 4)."""
    enter, leave, show = (float(rows["4.3", name][m][0]) for name in (
        "entering the SIGSEGV handler", "leaving the SIGSEGV handler", "mmap of a page"))
    fault = float(rows["4.4", "first write to a page after mmap"][m][0])
    copy = float(rows["4.5", "memcpy of a page, of 1,000"][m][0])
    clock = float(rows["C.1", "delay between successive rdtsc"][m][MEAN])
    total, looks = {"read": (enter + leave + 2 * show + fault, 5), "read adv": (2 * show + fault, 3),
                    "write": (2 * enter + 2 * leave + 3 * show + fault + copy, 9),
                    "write adv": (2 * show + fault + copy, 4)}[access]
    name = "page " + access.replace(" adv", ", advisory function")
    estimate, actual = rows["4.6", name + ", estimate"][m][0], rows["4.6", name + ", actual"][m][0]
    # The copy was timed 1,000 at a time, so its delay may have been left out.
    sums = [(total - n * clock) / 1e3 for n in ({looks, looks - 1} if "write" in access else {looks})]
    low, high = span(estimate)
    judge.check(f"4.6 estimate of {access}, machine {m}", any(low <= s <= high for s in sums),
                f"printed {estimate}, computed {sums[0]:.4g}")
    judge.derived(f"4.6 difference of {access}, machine {m}", DELTA_46[access, m], lambda a, e: a - e, actual, estimate)
    judge.derived(f"4.6 percent of {access}, machine {m}", rows["4.6", name + ", not explained"][m][0],
                  lambda a, e: 100 * (a - e) / a, actual, estimate)


def trees(judge, rows):
    """Tables 5.5 and 5.6, with the formulas that their numbers follow, not those of their captions."""
    def time(machine, tree, n):
        words = f"durable insert, {TREES[tree]}, {n} process" + ("es" if n > 1 else "")
        return rows["5.5", words][machine][0]
    for (m, tree), percent in SAVED_55.items():
        judge.derived(f"5.5 percent, machine {m} {tree}", percent, saved, time(m, tree, 1), time(m, tree, 2))
        judge.derived(f"5.5 ratio, machine {m} {tree}", RATIO_55[m, tree], ratio, time(m, tree, 1), time(m, tree, 2))
    for (m, tree, n), percent in SAVED_56.items():
        judge.derived(f"5.6 percent, machine {m} {tree}, {n}", percent, saved, time(m, "BDB", n), time(m, tree, n))
    # As the captions say it, hardly anything would agree.
    caption = Judge()
    for (m, tree), percent in SAVED_55.items():
        caption.derived(f"{m} {tree}", percent, lambda one, two: 100 * (one - two) / two, time(m, tree, 1), time(m, tree, 2))
    for (m, tree, n), percent in SAVED_56.items():
        caption.derived(f"{m} {tree} {n}", percent, lambda own, bdb: 100 * (own - bdb) / bdb,
                        time(m, tree, n), time(m, "BDB", n))
    judge.check("E2 captions of 5.5 and 5.6", len(caption.wrong) == 18, f"{len(caption.wrong)} of {caption.n} disagree")
    best = max(float(percent) for (_, _, n), percent in SAVED_56.items() if n == 1)
    judge.check("E1 best of one process", best == 71, f"{best}")


def speedups(judge, rows):
    """Tables 4.9, 4.10, C.9, C.10."""
    for table in ("4.9", "4.10", "C.9", "C.10"):
        for test in "ABC":
            for m, (printed,) in rows[table, f"test {test}, speed-up of 2 processes"].items():
                judge.derived(f"{table} test {test}, machine {m}", printed, ratio,
                              rows[table, f"test {test}, 1 process"][m][0], rows[table, f"test {test}, 2 processes"][m][0])


def spreads(judge, rows):
    """Tables with mean, deviation, least, median, 99th percentile, greatest: what any numbers obey."""
    repetitions = {"C.1": 10000, "C.2": 10000, "C.3": 10000}
    for (table, name), cells in rows.items():
        for m, printed in cells.items():
            if len(printed) != 6:
                continue
            v = [float(p) for p in printed]
            where, half = f"{table} {name}, machine {m}", span(printed[MEAN])[1] - v[MEAN]
            judge.check(where + ": least above mean", v[LEAST] <= v[MEAN] + half, f"least {v[LEAST]:g}, mean {v[MEAN]:g}")
            judge.check(where + ": order", v[LEAST] <= v[MEDIAN] <= v[P99] <= v[MOST] and v[MEAN] - half <= v[MOST],
                        f"{v}")
            if table in repetitions or table in ("4.8", "C.4", "C.6", "C.7"):
                # One value alone makes the deviation as large as this.
                alone = (v[MOST] - v[MEAN] - half) / repetitions.get(table, 1000) ** 0.5
                judge.check(where + ": deviation", span(printed[SD])[1] >= alone * 0.999, f"{v[SD]:g}, at least {alone:g}")


def texts(judge, rows):
    """Sentences of the text that its tables contradict: each holds in the corrected form."""
    read_us = {m: float(rows["4.2", "page read"][m][0]) / g for m, g in GHZ.items()}
    b_over_a = {m: float(rows["4.2", "page write"][m][0]) / float(rows["4.2", "page read"][m][0]) for m in GHZ}
    judge.check("E8 b over a", b_over_a["2"] > 2 and b_over_a["3"] > 2 and b_over_a["4"] > 9, f"{b_over_a}")
    judge.check("E9 a of modern machines", max(read_us[m] for m in "123") < 37 < 53 < read_us["4"], f"{read_us}")
    durable = {"1": 1569.3, "3": 235.0}
    grows = {m: us / (float(rows["4.2", "page write"][m][0]) / GHZ[m]) for m, us in durable.items()}
    judge.check("E10 durable over nondurable", 7 < grows["3"] < 8 and 24 < grows["1"] < 25, f"{grows}")
    judge.check("E11 seconds of 1,024 durable writes", 1.3 < 1024 * 1297.4e-6 < 1024 * 1569.3e-6 < 1.7, "")
    share = float(rows["C.6", "fsync of a file of 10,000 pages, one modified"]["3(a)"][MEAN]) / 1024
    read = float(rows["C.5", "durable, page read"]["3(a)"][MEAN])
    judge.check("E12 a sync for 1,024 reads", share > 0.3 * read and read < read_us["3"], f"{share} of {read}")
    msync = {m: float(v[MEAN]) for m, v in rows["C.6", "asynchronous msync of the modified page"].items()}
    judge.check("E13 msync", sorted(m for m in msync if msync[m] > 10) == ["2", "4"], f"{msync}")
    faster = [float(rows["4.9", "test B, speed-up of 2 processes"][m][0]) for m in ("3(a)", "3(b)")]
    judge.check("E14 test B is faster on two", min(faster) > 1, f"{faster}")
    clock = {m: float(rows["C.1", "delay between successive rdtsc"][m][MEAN]) / g for m, g in GHZ.items()}
    judge.check("E15 ns of a look at the clock", clock["4"] > 130 > 50 > max(clock[m] for m in "123"), f"{clock}")
    rate = {m: 40.96 / float(v[MEAN]) * 1e6 for m, v in
            rows["C.7", "write of 10,000 pages, one at a time"].items()}
    judge.check("E16 MB/s of a disk", rate["3(a)"] > 320 and rate["3(b)"] > 320, f"{rate}")
    saved_42 = [int(v[0]) for access in ("read", "write") for m, v in
                rows["4.2", f"speed-up of {access}s by the advisory function"].items() if m != "4"]
    judge.check("E26 percent saved on modern machines", (min(saved_42), max(saved_42)) == (20, 55), f"{saved_42}")
    caches_on = [float(rows["C.12", f"durable insert, disk caches on, {tree}"]["3(b)"][0]) for tree in ("Berkeley DB", "B+-tree")]
    judge.check("E27 Berkeley DB over the B+-tree", caches_on[0] / caches_on[1] > 7, f"{caches_on}")
    judge.check("E17 2^16 mappings", (2**16 * 4096 >> 20, 2**16 * 2048 >> 20) == (256, 128), "")
    judge.check("5.1 sizes", 2**23 * 128 == 2**30 and 2**29 * 128 == 2**36, "")


def twice(judge, rows):
    """What the Thesis prints in two places."""
    differ = {(name, m) for (table, name), cells in rows.items() if table == "4.9"
              for m, printed in cells.items() if printed[0] != rows["C.9", name][m][0]}
    judge.check("E20 where tables 4.9 and C.9 differ",
                differ == {("test B, speed-up of 2 processes", "2"), ("test C, 1 process", "2")}, f"{differ}")
    for m, printed in rows["C.4", "1,000 times memcpy of a page"].items():
        judge.derived(f"E21 a thousandth of table C.4, machine {m}", rows["4.5", "memcpy of a page, of 1,000"][m][0],
                      lambda cycles: cycles / 1000, printed[MEAN])
    # The control file, p. 90, the 1,024 pages, and the copies of them that are written.
    judge.check("E22 MB that table 4.2 needs", 64 < 59 + 2 * 1024 * 4096 / 1e6 < 128, "")


def newer_machines(judge, rows):
    """Chapter 5."""
    measured = {m for (table, _), cells in rows.items() if table == "5.5" for m in cells}
    judge.check("E24 machines of table 5.5", measured == {"1", "3(a)", "3(b)", "4"}, f"{measured}")
    judge.check("E24 the slowest of two processes", min(float(p) for p in SAVED_56.values()) == -53, "")
    insert = {k: float(rows["5.2", f"random insert, B+-tree, blocks of {k} KiB"]["4"][0]) for k in (2, 4)}
    judge.check("E25 inserts by block", insert[2] > insert[4], f"{insert}")
    judge.derived("E25 percent that the CO B-tree is slower", "64", lambda co, bdb: 100 * (co - bdb) / bdb,
                  rows["5.3", "sorted insert, CO B-tree"]["4"][0], rows["5.3", "sorted insert, Berkeley DB"]["4"][0])


def listings(judge, rows):
    """What listings say, as far as it can be computed; tests/bench/errata_listings.c runs others."""
    pages = 100000
    judge.check("L4 locks that there are", sum(4096 * i < pages for i in range(pages)) == 25, "")
    judge.check("L4 numbers in the file", sum(4096 * i < 1024 * pages for i in range(pages)) == pages // 4, "")
    for m in ("2", "3(a)", "3(b)"):
        # An increment, in us, by test C.  10,000 of them in test A would take longer than the 1,024 of test B.
        a, b, c = (float(rows["4.9", f"test {test}, 1 process"][m][0]) for test in "ABC")
        one = c / 1024 / 1000
        judge.check(f"L14 increments of test A, machine {m}", a < b < a + (10000 - 1024) * one, f"{a}, {b}, {one}")


def main():
    """Judge, and compare with what is known to be wrong."""
    rows = read(sys.argv[1])
    judge = Judge()
    for part in (chapter_4, trees, speedups, spreads, texts, twice, newer_machines, listings):
        part(judge, rows)
    for model in errata_models.MODELS:
        model(judge)
    for what, words in sorted(judge.wrong.items()):
        print(f"{what}: {words}")
    for what in sorted(set(judge.wrong) ^ set(WRONG)):
        print(f"errata.py: {what}: " + ("not listed" if what in judge.wrong else "listed, but agrees"))
    print(f"{judge.n} numbers, {len(judge.wrong)} wrong")
    print("rows:", *sorted(row for row in judge.rows if re.fullmatch(r"[ELS]\d+", row)))
    return set(judge.wrong) != set(WRONG) or judge.n < 250


if __name__ == "__main__":
    sys.exit(main())
