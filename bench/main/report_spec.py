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



def tree_columns(unit):
    """Columns of an experiment made of `insert` with another workload."""
    return [
        ("system", "system"),
        ("workload", "workload"),
        ("processes", "processes"),
        ("durable", "durable"),
        ("hints", "hints"),
        ("group", "reads per query"),
        (f"us_per_{unit}_median", f"µs per {unit}"),
        (f"{unit}_us_p99", "p99 µs"),
        (f"{unit}_us_max", "most, µs"),
        ("us_per_insert_of_writer", "µs per insert of the writer"),
        (f"{unit}s_per_fsync", f"{unit}s per sync"),
        (f"log_bytes_per_{unit}", f"log bytes per {unit}"),
        (f"traps_per_{unit}", f"traps per {unit}"),
        ("retries", "aborts"),
        ("bdb_time_over_this_median", "Berkeley DB's time over this"),
        ("lmdb_time_over_this_median", "LMDB's"),
        ("sqlite_time_over_this_median", "SQLite's"),
        ("lmdb-map_time_over_this_median", "LMDB's on a writable map"),
        ("bdb-zero_time_over_this_median", "Berkeley DB's, log files of zeros"),
        ("wiredtiger_time_over_this_median", "WiredTiger's"),
        ("wiredtiger-dsync_time_over_this_median", "WiredTiger's, method=dsync"),
        ("rocksdb_time_over_this_median", "RocksDB's"),
        ("rocksdb-nolog_time_over_this_median", "RocksDB's, no log"),
        ("rocksdb-txn_time_over_this_median", "RocksDB's transactions'"),
        ("leveldb_time_over_this_median", "LevelDB's"),
        ("pmdk_time_over_this_median", "PMDK's"),
        ("this_time_over_mmap_median", "this over plain mmap"),
        ("this_time_over_sync_median", "this over bare sync"),
    ]


PEERS = ("Settings. Berkeley DB: DB_INIT_TXN|LOG|LOCK|MPOOL and DB_AUTO_COMMIT; durable is its default, "
         "nondurable DB_TXN_NOT_DURABLE. LMDB: durable is its default, nondurable MDB_NOSYNC. SQLite: WAL, "
         "integer primary key; durable synchronous=FULL, nondurable synchronous=OFF. All caches hold all "
         "data. mmap is the same B+-tree on a shared mapping, durable by fdatasync and not atomic.")


def tree_bars(title, unit, where, keys=("hints",)):
    """One group of bars for each system."""
    return Figure(title, "system", f"us_per_{unit}_median", list(keys),
                  ylabel=f"µs per {unit}", where=where, kind="bars", logy=True)


def durable_goals(system):
    """Issue 5: durable inserts beside the peers, at least these ratios, with hints."""
    where = f"system={system} durable=true processes=1"
    return [Goal(f"durable inserts, {name}'s time over {system}'s", where,
                 f"{key}_time_over_this_median", bound, at_least=True)
            for name, key, bound in (("Berkeley DB", "bdb", 1.3), ("LMDB", "lmdb", 2.0),
                                     ("SQLite", "sqlite", 1.3))] + [
        Goal(f"durable inserts, or {system}'s time over the bare sync's", where,
             "this_time_over_sync_median", 1.15)]


# Of what bench_json_ticks() and bench_json_summary() print.
TIMES_US = [("us_mean", "µs, mean"), ("us_stdev", "deviation"), ("us_min", "least"),
            ("us_median", "median"), ("us_p99", "99 %"), ("us_max", "most")]

TOUCH_COLUMNS = [
    ("access", "access"),
    ("hint", "hint"),
    ("pages", "pages"),
    ("us_per_page_mean", "µs per page, mean"),
    ("us_per_page_stdev", "deviation"),
    ("us_per_page_min", "least"),
    ("us_per_page_median", "median"),
    ("us_per_page_p99", "99 %"),
    ("us_per_page_max", "most"),
    ("percent_saved_by_hint", "% saved by the hint"),
]

INSERT_COLUMNS = [
    ("system", "system"),
    ("processes", "processes"),
    ("us_per_insert_median", "µs per insert"),
    ("insert_us_p99", "p99 µs"),
    ("log_bytes_per_insert", "log bytes per insert"),
    ("inserts_per_fsync", "inserts per sync"),
]


def touch_figure(hint, title):
    """Time per page by pages of a transaction, as figures 4-2 and 4-4."""
    return Figure(title, "pages", "us_per_page_median", ["access"],
                  xlabel="pages of a transaction", ylabel="µs per page",
                  where={"hint": hint}, logx=True, logy=True)


def concurrency(words):
    """Tests A, B and C: µs per transaction and speed-up by processes."""
    return Spec(
        columns=[("test", "test"), ("processes", "processes"),
                 ("us_per_transaction_mean", "µs per transaction, mean"),
                 ("us_per_transaction_stdev", "deviation"),
                 ("us_per_transaction_median", "median"), ("speedup", "speed-up"),
                 ("transactions", "transactions"), ("aborts", "aborts")],
        figures=[Figure("Speed-up over one process", "processes", "speedup", ["test"],
                        xlabel="processes", ylabel="speed-up")],
        words=words,
    )


def tpc(words):
    """Transactions over several tables: columns and figures of `tpcb` and `tpcc`."""
    return Spec(
        words=words,
        columns=[("system", "system"), ("durable", "durable"), ("processes", "processes"),
                 ("us_per_transaction_median", "µs per transaction"),
                 ("transactions_per_second", "transactions per second"),
                 ("bdb_time_over_this_median", "Berkeley DB's time over this"),
                 ("sqlite_time_over_this_median", "SQLite's"), ("retries", "tried again")],
        figures=[Figure(title, "processes", "transactions_per_second", ["system"], xlabel="processes",
                        ylabel="transactions per second", where={"durable": durable}, logy=True)
                 for title, durable in (("Durable", True), ("Nondurable", False))],
    )


SPECS = {
    "timer": Spec(
        columns=[("clock", "clock"), *TIMES_US],
        figures=[Figure("Delays between two looks at a clock (figure C-1)", "delay_us",
                        "delays", ["clock"], xlabel="µs", ylabel="how often",
                        kind="points", logy=True)],
    ),
    "touch": Spec(
        columns=TOUCH_COLUMNS,
        figures=[
            touch_figure("none", "Nothing announced (figure 4-2)"),
            touch_figure("page", "Each page announced by setPageAccess (figure 4-4)"),
            touch_figure("range", "All pages announced by one setRangeAccess"),
        ],
        words="A transaction touches so many consecutive pages; the time per page includes "
              "its share of beginning and commit.",
    ),
    "touch-durable": Spec(
        columns=TOUCH_COLUMNS,
        words="The Thesis logs whole pages: its page write is set beside `fill`, which "
              "changes every byte of a page. `write` changes four bytes.",
    ),
    "touch-stay": Spec(
        columns=TOUCH_COLUMNS,
        words="With `XAC_CHECKING_FAST` a participant that is alone keeps its segment "
              "readable from one transaction to the next: reads cost nothing, and the first "
              "store to a page is its only trap.",
    ),
    "touch-many": Spec(
        columns=[("engine", "engine"), ("pages", "pages"), ("of", "of"),
                 ("us_per_page_median", "µs per page, median"), ("us_per_page_min", "min"),
                 ("us_per_page_max", "max"), ("traps_per_page", "traps per page"),
                 ("sigsegv_over_this", "sigsegv/this")],
        words="One transaction touches so many random pages of a segment of `of`, and loads "
              "and then stores to every second one; processor time.",
    ),
    "handler": Spec(columns=[("operation", "operation"), ("what", "what"), *TIMES_US,
                             ("why", "not available")]),
    "watch": Spec(
        columns=[("way", "way"), ("knows", "knows"), ("pages", "pages"), ("of", "of"),
                 ("us_per_page_median", "µs per page, median"), ("us_per_page_min", "min"),
                 ("us_per_page_max", "max")],
        words="One transaction touches so many random pages of a segment of `of`, and stores "
              "to every second one; what finds that out, without the library; processor time.",
    ),
    "model": Spec(
        columns=[("equation", "equation"), ("pages", "pages"), ("access", "access"), ("hint", "hint"),
                 ("us_per_page_predicted", "predicted, µs per page"),
                 ("us_per_page_measured", "measured"),
                 ("measured_over_predicted", "measured/predicted"),
                 ("percent_unexplained", "% not explained"),
                 ("us_per_page_engine_thesis", "engine `thesis`"),
                 ("engine_thesis_over_measured", "`thesis`/ours")],
        words="The Thesis' equations 4.1 and 4.2 with this machine's constants say what its "
              "engine would need at least; ours undercuts that where the last column is "
              "negative. The equations of our own engine stand in `bench/cost/model.c`.",
    ),
    "commits": Spec(
        words="Durable transactions that change every byte of so many pages, in processes that take turns. Two syncs: "
              "the log is synced, its last 512 bytes are written again and synced, with the default checksum. Undo: "
              "before-images, each synced before its page is stored to (RMS), or all once by the commit (Rhino).",
        columns=[("way", "way"), ("change", "change"), ("pages", "pages"),
                 ("us_per_transaction_median", "µs per transaction"), ("us_per_transaction_p99", "99 %"),
                 ("time_over_xxh3_median", "over XXH3"), ("syncs_per_transaction_median", "syncs")],
        figures=[Figure("Durable transactions", "pages", "us_per_transaction_median", ["way"], xlabel="pages",
                        ylabel="µs per transaction", logx=True, logy=True)],
    ),
    "commits-ints": Spec(
        words="The same, with the first int of each page changed.",
        columns=[("way", "way"), ("pages", "pages"), ("us_per_transaction_median", "µs per transaction"),
                 ("us_per_transaction_p99", "99 %"), ("time_over_xxh3_median", "over XXH3"),
                 ("syncs_per_transaction_median", "syncs")],
        figures=[Figure("Durable transactions", "pages", "us_per_transaction_median", ["way"], xlabel="pages",
                        ylabel="µs per transaction", logx=True, logy=True)],
    ),
    "msync": Spec(
        columns=[("operation", "operation"), ("what", "what"), ("pages", "pages"), *TIMES_US,
                 ("mb_per_s_median", "MB/s")],
        figures=[Figure("Bringing modified pages to disk", "pages", "us_median",
                        ["operation"], xlabel="pages", ylabel="µs",
                        where={"operation": ["fsync", "msync_sync", "fdatasync"]},
                        logx=True, logy=True)],
    ),
    "concurrency": concurrency("Each process has a page of its own."),
    "concurrency-durable": concurrency(
        "Commits of several processes share a sync, which the Thesis did not have."),
    "insert": Spec(
        words=PEERS,
        columns=tree_columns("insert"),
        goals=durable_goals("btree") + durable_goals("cobtree"),
        figures=[
            tree_bars("Durable inserts, one process", "insert",
                      {"durable": True, "processes": 1}),
            tree_bars("Nondurable inserts, one process", "insert",
                      {"durable": False, "processes": 1}),
            tree_bars("Durable inserts, two processes", "insert",
                      {"durable": True, "processes": 2}),
        ],
    ),
    "txn-trees": Spec(
        words="hints is the Thesis' advisory function (setPageAccess).",
        columns=tree_columns("insert"),
        figures=[
            tree_bars(f"{'Durable' if durable else 'Nondurable'} inserts, {procs} "
                      f"process{'es' if procs > 1 else ''}", "insert",
                      {"durable": durable, "processes": procs})
            for durable in (True, False) for procs in (1, 2)
        ],
    ),
    "kth": Spec(
        columns=tree_columns("insert") + [("insert_us_max", "max µs")],
        figures=[Figure("Time of the k-th most expensive insert", "kth_rank", "kth_us",
                        ["system"], xlabel="k", ylabel="µs", logx=True, logy=True)],
    ),
    "logvolume": Spec(
        columns=tree_columns("insert") + [("log_bytes", "log bytes in all")],
        figures=[Figure("Log of a durable insert of 520 bytes", "system",
                        "log_bytes_per_insert", [], ylabel="bytes", kind="bars")],
    ),
    "sorted": Spec(columns=tree_columns("insert"),
                   figures=[tree_bars("Inserts in ascending order, nondurable", "insert", {})]),
    "paths": Spec(columns=tree_columns("insert"),
                  figures=[tree_bars("Durable inserts, keys as a walk of /usr meets them",
                                     "insert", {"durable": True})]),
    "larger": Spec(
        words="Trees on plain mmap, 128-byte keys three times as large as the memory, which a "
              "control group limits; and Berkeley DB without transactions, pages of 4 KiB, with its "
              "default cache and one of half the memory. Static: loaded in bulk, forgotten by the "
              "page cache, searched. Dynamic: random inserts, a scan of all, searches, with so many keys "
              "that the array of the cache-oblivious tree has just grown, and there with one key less, too.",
        columns=[("test", "test"), ("what", "tree"), ("limit_bytes", "limit, bytes"),
                 ("count", "keys"),
                 ("us_per_insert", "µs per insert"),
                 ("us_per_scanned_record", "µs per scanned record"),
                 ("us_per_search", "µs per search"),
                 ("disk_pages_per_search", "pages from disk per search"),
                 ("skipped", "skipped")],
        figures=[
            Figure("Searches in static trees", "what", "us_per_search", [],
                   ylabel="µs per search", where={"test": "static"}, kind="bars"),
            Figure("Random inserts", "what", "us_per_insert", [], ylabel="µs per insert",
                   where={"test": "dynamic"}, kind="bars", logy=True),
            Figure("Searches after random inserts", "what", "us_per_search", [],
                   ylabel="µs per search", where={"test": "dynamic"}, kind="bars"),
        ],
    ),
    "competition": Spec(
        words="A B+-tree larger than the memory that a control group allows. page cache: libxac as it is; in "
              "order: with XAC_OPT_READ_AHEAD_BYTES; frames: XAC_OPT_FRAMES. The hog keeps touching its memory in the same "
              "group. A ratio is the rate on frames by that beside it.",
        columns=[("hog", "hog"), ("hog_bytes", "its bytes"), ("memory", "memory"),
                 ("beside", "beside"), ("work", "work"),
                 ("us_per_operation", "µs per operation"),
                 ("major_faults_per_operation", "major faults per operation"),
                 ("device_read_bytes_per_operation", "bytes read per operation"),
                 ("resident_bytes_most", "most resident bytes"),
                 ("group_page_cache_bytes_least", "least page cache of the group"),
                 ("hog_mib_per_second", "hog, MiB/s"),
                 ("insert_rate_ratio", "inserts, ratio"),
                 ("search_rate_ratio", "searches, ratio"), ("verdict", "verdict"),
                 ("skipped", "skipped")],
        figures=[
            Figure("Searches beside a memory hog", "hog", "us_per_operation", ["memory"],
                   ylabel="µs per search", where={"work": "search"}, kind="bars", logy=True),
            Figure("Durable inserts beside a memory hog", "hog", "us_per_operation", ["memory"],
                   ylabel="µs per insert", where={"work": "insert"}, kind="bars", logy=True),
        ],
    ),
    "calls": Spec(
        words="Counted by a tracer, of all threads of one process. What goes by the clock counts more "
              "than in a run that nobody traces.",
        columns=[("system", "system"), ("workload", "workload"), ("durable", "durable"),
                 ("hints", "hints"), ("calls_per_1000_steps", "system calls per 1,000 steps")],
    ),
    "search": Spec(
        words="mmap and mmap-co are the same trees without libxac.",
        columns=tree_columns("search"),
        figures=[tree_bars("Random searches in a warm tree, each a query", "search", {})],
    ),
    "search-query": Spec(
        words="One query for all searches of a slice (LMDB, SQLite: one read transaction), which "
              "looks up every record before the clock starts; Berkeley DB's gets stand alone.",
        columns=tree_columns("search"),
        goals=[Goal(f"searches in one query, time of {system} over the plain mmap tree's",
                    f"system={system} hints=false", "this_time_over_mmap_median", 1.1)
               for system in ("btree", "btree-strict", "cobtree", "cobtree-strict")],
        figures=[tree_bars("Random searches in a warm tree, all in one query", "search", {})],
    ),
    "search-query-cold": Spec(
        words="As search-query, but the first touch of each page in each query is in the time; how "
              "much that is depends on how many searches share it.",
        columns=tree_columns("search"),
        figures=[tree_bars("Random searches in one query, first touches included", "search", {})],
    ),
    "scan": Spec(columns=tree_columns("scan"),
                 figures=[tree_bars("Scans of 100 records", "scan", {}, ("group",))]),
    "ycsb": Spec(
        words="Zipfian popularity (0.99), 512-byte values, updates replace the whole value; "
              "nondurable.",
        columns=tree_columns("operation"),
        figures=[Figure(f"YCSB, {procs} process{'es' if procs > 1 else ''}", "workload",
                        "us_per_operation_median", ["system"], ylabel="µs per operation",
                        where={"processes": procs}, kind="bars", logy=True)
                 for procs in (1, 2)],
    ),
    "ycsb-reads": Spec(columns=tree_columns("operation")),
    "search-writer": Spec(
        words="A search of one process while another inserts.",
        columns=tree_columns("search")),
    **{name: Spec(words=PEERS, columns=tree_columns("insert"))
       for name in ("peers", "peers-loaded", "peers-durable", "longest")},
    "multiversion": Spec(
        words="The same searches and inserts in the same trees, plain and on libxac (nondurable, "
              "without hints). Distinct pages are those that trap in a transaction; the plain "
              "build touches the same ones. Cache misses are those of cachegrind, data only, first "
              "level 32 KiB, last level 1 MiB; on libxac they include the library's own.",
        columns=[("tree", "tree"), ("build", "build"), ("workload", "workload"),
                 ("us_per_step", "µs per step"), ("page_faults_per_step", "page faults"),
                 ("distinct_pages_per_step", "distinct pages"),
                 ("data_references_per_step", "data references"),
                 ("d1_misses_per_step", "D1 misses"), ("ll_misses_per_step", "LL misses")],
        figures=[Figure(f"Misses of the last level, {w}", "tree", "ll_misses_per_step", ["build"],
                        ylabel="misses per step", where={"workload": w}, kind="bars")
                 for w in ("search", "insert")],
    ),
    "tpcb": tpc("An amount for an account, its teller and its branch, and a row of history: one serializable "
                "transaction. Rows are as in TPC-B; it is no TPC-B."),
    "tpcc": tpc("New orders of 5 to 15 lines and payments, 45 to 43: serializable transactions as in TPC-C; it "
                "is no TPC-C."),
    "transfers": Spec(
        words="A simulation: the loads and stores of the real trees, given to caches in which any block may lie "
              "anywhere and the least recently used one goes. Blocks per step, all processes together; lost are "
              "those that another process's store took away. With versions, a first store copies its page, and "
              "a commit takes it from all other caches. Shared is one cache of the same size for all.",
        columns=[("tree", "tree"), ("work", "work"), ("processes", "processes"),
                 ("block_bytes", "block, bytes"), ("memory_bytes", "cache, bytes"),
                 ("own_blocks_per_step", "own caches"), ("own_blocks_lost_per_step", "lost"),
                 ("version_blocks_per_step", "with versions"),
                 ("version_blocks_lost_per_step", "lost"), ("shared_blocks_per_step", "shared"),
                 ("retries_per_step", "run again")],
        figures=[Figure(f"Blocks of {block} bytes, {work}", "processes", "version_blocks_per_step", ["tree"],
                        xlabel="processes", ylabel="blocks per step",
                        where={"block_bytes": block, "work": work})
                 for work in ("search", "insert") for block in (512, 4096)],
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
    "insert-syncs": Spec(
        words="The library's own commit by one sync and a checksum, by XXH3 and by MD5, and with two syncs; the "
              "yardsticks write as many bytes and sync once, and twice.",
        columns=[*INSERT_COLUMNS,
                 ("btree-two-syncs_time_over_this_median", "two syncs' time over this"),
                 ("btree-md5_time_over_this_median", "MD5's"),
                 ("sync-twice_time_over_this_median", "two bare syncs'")],
    ),
    "insert-undo": Spec(
        words="Redo records beside before-images, each synced before its page is stored to (RMS), or all once by the "
              "commit (Rhino: a lower bound, as Linux does not ask before it writes a page out). mmap has no log.",
        columns=[*INSERT_COLUMNS, ("undo-rms_time_over_this_median", "RMS's time over this"),
                 ("undo-rhino_time_over_this_median", "Rhino's"),
                 ("mmap_time_over_this_median", "plain mmap's")],
    ),
    "backoff": Spec(
        words="Inserts into a small tree by several processes, nondurable, by policy and by what a transaction "
              "does between an abort and its next attempt; the median of rounds that each begin anew. "
              "oldest-wins waits for the older transaction by itself, whatever the back-off.",
        columns=[("tree", "tree"), ("processes", "processes"), ("policy", "policy"),
                 ("backoff", "back-off"), ("us_per_insert_median", "µs per insert"),
                 ("abort_rate", "aborts over attempts"), ("max_retries", "most retries"),
                 ("longest_insert_ms", "longest insert, ms"),
                 ("us_waited_per_insert", "µs waited per insert")],
        figures=[Figure(f"{tree}, 8 processes", "policy", "us_per_insert_median", ["backoff"],
                        ylabel="µs per insert", where={"tree": tree, "processes": 8},
                        kind="bars", logy=True)
                 for tree in ("btree", "cobtree")],
    ),
    "cold": Spec(
        words="A file that is not in the page cache, read through libxac, for each value of "
              "XAC_OPT_READ_AHEAD_BYTES.",
        columns=[("work", "work"), ("read_ahead", "read ahead"), ("ms_median", "ms, median"),
                 ("ms_min", "min"), ("ms_max", "max"),
                 ("device_read_bytes", "bytes read")],
        figures=[],
    ),
    "checksum": Spec(
        columns=[("checksum", "checksum"), ("bytes", "bytes"), *TIMES_US,
                 ("mb_per_s_median", "MB/s")],
        figures=[Figure("Checksum of a page of 4096 bytes", "checksum", "us_median", [],
                        ylabel="µs", where={"bytes": 4096}, kind="bars")],
    ),
    "savepoints": Spec(
        columns=[("way", "way"), ("pages", "pages stored to"), ("us_without_median", "µs of a transaction without"),
                 ("us_with_median", "with"), ("us_first_median", "µs of the first savepoint"),
                 ("us_store_after_first_median", "µs of a store behind it"),
                 ("us_second_median", "µs of the second"),
                 ("us_roll_back_per_page_median", "µs of a roll-back, each page")],
    ),
    "backups": Spec(
        columns=[("way", "way of the increment"), ("data_bytes", "file bytes"), ("changed_thousandths", "changed, thousandths"),
                 ("times_smaller", "times smaller"), ("times_faster", "times faster")],
    ),
    "outofcore": Spec(
        columns=[("system", "system"), ("data_bytes", "data, bytes"), ("frames_bytes", "frames, bytes"),
                 ("us_per_insert", "µs per insert"), ("us_per_search", "µs per search"),
                 ("most_bytes", "most memory, bytes"), ("most_by_bound", "over the bound"),
                 ("records_recovered", "records recovered"), ("recovery_seconds", "recovery, s")],
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
    "processors": Spec(
        words="A discrete-event simulation of machines with more processors, with costs that were measured here (row "
              "costs); no measurement of them. Measured: what two threads or processes do on this machine. vo is "
              "a rule that libxac does not have.",
        columns=[("part", "part"), ("row", "row"), ("policy", "policy"), ("compute_ns", "work between, ns"),
                 ("length", "length"), ("pages", "hot pages"), ("processors", "processors"),
                 ("fixes_per_us", "fixes per µs"), ("speedup", "speed-up"), ("share_waited", "waited for locks"),
                 ("measured_fixes_per_us", "measured"), ("commits_per_second", "commits per second"),
                 ("abort_rate", "aborts over attempts"), ("max_retries", "most retries"),
                 ("measured_commits_per_second", "measured"), ("line_ns", "line, ns"),
                 ("nb_gclock_ns", "Nb-GCLOCK, ns"), ("lru_ns", "LRU, ns"), ("lru_batch_ns", "batched, ns"),
                 ("lines_under_lock", "lines under a lock")],
        figures=[Figure(f"Hits, {ns} ns of work between (simulated)", "processors", "fixes_per_us", ["policy"],
                        xlabel="processors", ylabel="fixes per µs",
                        where={"part": "frames", "row": "simulated", "compute_ns": ns}, logx=True, logy=True)
                 for ns in (0, 1000)] +
                [Figure(f"{length} transactions, {pages} pages (simulated)", "processors", "commits_per_second",
                        ["policy"], xlabel="processors", ylabel="commits per second",
                        where={"part": "policies", "row": "simulated", "length": length, "pages": pages},
                        logx=True, logy=True)
                 for length in ("short", "long") for pages in (64, 4096)],
    ),
    "swizzle": Spec(
        words="Trees over page frames with references between resident pages (on), and without "
              "(off): the ratio is that of operations per second, on over off, median of pairs in "
              "turn.  doc/swizzling.md says what each part is about.",
        columns=[("part", "part"), ("what", "what"), ("memory", "memory"),
                 ("ops_per_s", "operations per second"),
                 ("ratio", "on over off"), ("ratio_min", "least"), ("ratio_max", "most"),
                 ("ops_per_s_on", "operations per second, on"), ("ops_per_s_off", "off"),
                 ("miss_rate_on", "misses per fix, on"), ("miss_rate_off", "off"),
                 ("lookups_per_fix_on", "look-ups per fix, on"), ("value", "value"),
                 ("wanted", "wanted"), ("line", "line"), ("verdict", "verdict"),
                 ("pool_percent", "pool, % of the pages"), ("side", "references"),
                 ("from_s", "from second"), ("phase", "phase"), ("tx_per_s", "transactions per second"),
                 ("misses_per_fix", "misses per fix"), ("gain_cold", "on over off, cold"),
                 ("gain_warm", "on over off, warm"),
                 ("thesis_10_minutes", "thesis, 10 minutes from cold"),
                 ("thesis_50_minutes", "thesis, 50 minutes, at most")],
        figures=[
                 *[Figure(f"Transactions like TPC-C's from an empty pool on, {pool} % of the pages",
                          "from_s", "tx_per_s", ["side"], xlabel="seconds of each side",
                          ylabel="transactions per second",
                          where={"part": "curve", "pool_percent": pool})
                   for pool in (7, 30, 110)],
                 Figure("Random look-ups of a tree, by memory", "what", "ops_per_s", ["memory"],
                        ylabel="per second", where={"part": ["figure", "pressure"]}, kind="bars",
                        logy=True)],
    ),
}
