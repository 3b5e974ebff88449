# SPDX-License-Identifier: MIT
"""report_spec -- what the report shows of each experiment: columns, figures, words.

An experiment that is not in SPECS gets a table of all its numbers and no figure.
"""
from dataclasses import dataclass, field


@dataclass
class Figure:
    """A figure: y against x, a line (or a group of bars) for each value of `series`.

    x, y     keys of a measurement; two lists of numbers in one measurement give a line
             of their own.  x="" with kind="bars": one group.
    series   keys whose values name a line
    where    only measurements that have these values; a value may be a list of values
    """

    title: str
    x: str
    y: str
    series: list
    xlabel: str = ""
    ylabel: str = ""
    where: dict = field(default_factory=dict)
    kind: str = "lines"  # or "bars", "points"
    logx: bool = False
    logy: bool = False


@dataclass
class Goal:
    """Something asked of us: a number of the first measurement that fits `where`."""

    what: str
    where: str  # "key=value key=value"
    key: str
    value: float
    at_least: bool = False  # else at most


@dataclass
class Spec:
    """Columns are (key, heading); a key that no measurement has makes no column."""

    columns: list = field(default_factory=list)
    figures: list = field(default_factory=list)
    goals: list = field(default_factory=list)
    words: str = ""  # a paragraph before the tables


INSERT_COLUMNS = [
    ("system", "system"),
    ("processes", "processes"),
    ("durable", "durable"),
    ("hints", "hints"),
    ("us_per_insert_median", "µs per insert"),
    ("insert_us_p99", "p99 µs"),
    ("insert_us_max", "max µs"),
    ("log_bytes_per_insert", "log bytes per insert"),
    ("inserts_per_fsync", "inserts per sync"),
    ("traps_per_insert", "traps per insert"),
    ("retries", "aborts"),
    ("bdb_time_over_this_median", "Berkeley DB's time over this"),
    ("this_time_over_sync_median", "this over bare sync"),
]

SPECS = {
    "insert": Spec(
        columns=INSERT_COLUMNS,
        figures=[
            Figure("Durable inserts, one process", "system", "us_per_insert_median", ["hints"],
                   ylabel="µs per insert", where={"durable": True, "processes": 1}, kind="bars"),
            Figure("Nondurable inserts, one process", "system", "us_per_insert_median",
                   ["hints"], ylabel="µs per insert",
                   where={"durable": False, "processes": 1}, kind="bars"),
        ],
    ),
    "contention": Spec(
        columns=[("policy", "policy"), ("length", "length"), ("processes", "processes"),
                 ("pages", "hot pages"), ("commits_per_second_median", "commits per second"),
                 ("abort_rate", "aborts over attempts"), ("max_retries", "most retries")],
        figures=[
            Figure(f"{length} transactions, {procs} processes", "pages",
                   "commits_per_second_median", ["policy"], xlabel="hot pages",
                   ylabel="commits per second",
                   where={"length": length, "processes": procs}, logx=True, logy=True)
            for length in ("short", "long") for procs in (2, 8)
        ],
    ),
    "checksum": Spec(
        columns=[("checksum", "checksum"), ("bytes", "bytes"),
                 ("kcycles_mean", "kcycles, mean"), ("kcycles_median", "median"),
                 ("kcycles_p99", "99 %"), ("us_median", "µs, median")],
        figures=[Figure("Checksum of a page of 4096 bytes", "checksum", "kcycles_median", [],
                        ylabel="thousands of cycles", where={"bytes": 4096}, kind="bars")],
    ),
    "recovery": Spec(
        columns=[("log_bytes", "log bytes"), ("data_bytes", "file bytes"),
                 ("cat_mb_per_s", "cat, MB/s"), ("recovery_mb_per_s", "recovery, MB/s"),
                 ("recovery_peak_kib", "peak KiB"), ("killed_at_work", "killed at work")],
    ),
    "frames": Spec(
        columns=[("policy", "policy"), ("batched", "BP-Wrapper"), ("threads", "threads"),
                 ("mega_fixes_per_second", "million fixes per second"),
                 ("locks_per_mega_fixes", "locks per million fixes"),
                 ("lock_waits_per_mega_fixes", "waits per million fixes")],
    ),
}
