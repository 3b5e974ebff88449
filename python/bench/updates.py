# SPDX-License-Identifier: MIT
"""updates.py -- durable updates of array elements, beside other ways to keep an array on disk.

Each update adds 1 to some elements of an array of 64-bit integers, and is on disk before the next one
begins.  The systems take turns, round by round, so that all meet the same machine; for
each the median of the rounds is printed, and the median of the ratios to xac in the same round.
After each turn the sum of all elements is compared with the number of updates.

    python updates.py [--rounds 5] [--seconds 1] [--processes 1,2] [--work single,scattered,block]
                      [--systems xac,memmap,...] [--dir DIRECTORY] [--json FILE]

What the systems promise:
    xac      an update is atomic, isolated and durable
    memmap   numpy.memmap, flush() under flock(2): durable; a crash may leave half of an update
    h5py     HDF5, flush() and fsync(2) under flock(2): a crash may damage the file.  Beside other
             processes it is opened and closed for each update, as the library demands
    lmdb     py-lmdb, a key for each element: atomic, isolated, durable
    sqlite   a row for each element, WAL, synchronous=FULL: atomic, isolated, durable
"""
import argparse
import contextlib
import fcntl
import json
import multiprocessing
import os
import shutil
import sqlite3
import statistics
import struct
import tempfile
import time

import numpy as np

ELEMENTS = 100_000
WORK = {"single": 1, "scattered": 10, "block": 1000}  # elements of an update


def indices(work, rng):
    """The elements of one update, ascending."""
    if work == "block":
        start = int(rng.integers(ELEMENTS - WORK[work]))
        return slice(start, start + WORK[work])
    return np.sort(rng.choice(ELEMENTS, WORK[work], replace=False))


def numbers(where):
    """The same, one by one."""
    return range(where.start, where.stop) if isinstance(where, slice) else where.tolist()


class Xac:
    """The package."""

    def make(self, path):
        self.open(path, 1)
        self.close()

    def open(self, path, n_processes):
        import xac
        self.env = xac.Env(path)
        self.array = self.env.array("elements", ELEMENTS, "i8")

    def update(self, where):
        env, array = self.env, self.array
        with env.transaction():
            array[where] += 1

    def sum(self):
        with self.env.query():
            return int(self.array.sum())

    def close(self):
        self.env.close()


@contextlib.contextmanager
def locked(file):
    """Under an exclusive lock."""
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


class Memmap:
    """numpy.memmap."""

    def make(self, path):
        np.lib.format.open_memmap(path, "w+", "i8", (ELEMENTS,)).flush()

    def open(self, path, n_processes):
        self.array = np.load(path, mmap_mode="r+")
        self.lock = open(path + ".lock", "w", encoding="ascii")

    def update(self, where):
        with locked(self.lock):
            self.array[where] += 1
            self.array.flush()

    def sum(self):
        return int(self.array.sum())

    def close(self):
        del self.array
        self.lock.close()


class Hdf5:
    """h5py."""

    def make(self, path):
        import h5py
        os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"  # we have a lock of our own
        with h5py.File(path, "w") as file:
            file.create_dataset("elements", data=np.zeros(ELEMENTS, "i8"))

    def open(self, path, n_processes):
        import h5py
        self.path = path
        self.lock = open(path + ".lock", "w", encoding="ascii")
        self.file = h5py.File(path, "r+") if n_processes == 1 else None
        self.descriptor = os.open(path, os.O_RDWR)

    def change(self, file, where):
        data = file["elements"]
        data[where] = data[where] + 1
        file.flush()

    def update(self, where):
        import h5py
        with locked(self.lock):
            if self.file is not None:
                self.change(self.file, where)
            else:
                with h5py.File(self.path, "r+") as file:
                    self.change(file, where)
            os.fsync(self.descriptor)

    def sum(self):
        import h5py
        self.end()
        with h5py.File(self.path, "r") as file:
            return int(file["elements"][:].sum())

    def end(self):
        if self.file is not None:
            self.file.close()
            self.file = None

    def close(self):
        self.end()
        os.close(self.descriptor)
        self.lock.close()


class Lmdb:
    """py-lmdb."""

    def make(self, path):
        self.open(path, 1)
        with self.env.begin(write=True) as t:
            for i in range(ELEMENTS):
                t.put(struct.pack(">I", i), struct.pack("<q", 0))
        self.close()

    def open(self, path, n_processes):
        import lmdb
        self.env = lmdb.open(path, map_size=1 << 30)

    def update(self, where):
        with self.env.begin(write=True) as t:
            for i in numbers(where):
                key = struct.pack(">I", i)
                t.put(key, struct.pack("<q", struct.unpack("<q", t.get(key))[0] + 1))

    def sum(self):
        with self.env.begin() as t:
            return sum(struct.unpack("<q", value)[0] for _, value in t.cursor())

    def close(self):
        self.env.close()


class Sqlite:
    """sqlite3."""

    def make(self, path):
        self.open(path, 1)
        self.db.execute("CREATE TABLE elements (i INTEGER PRIMARY KEY, n INTEGER)")
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO elements VALUES (?, 0)",
                            ((i,) for i in range(ELEMENTS)))
        self.db.execute("COMMIT")
        self.close()

    def open(self, path, n_processes):
        self.db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")

    def update(self, where):
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        if isinstance(where, slice):
            db.execute("UPDATE elements SET n = n + 1 WHERE i >= ? AND i < ?",
                       (where.start, where.stop))
        else:
            db.executemany("UPDATE elements SET n = n + 1 WHERE i = ?",
                           ((i,) for i in numbers(where)))
        db.execute("COMMIT")

    def sum(self):
        return self.db.execute("SELECT sum(n) FROM elements").fetchone()[0]

    def close(self):
        self.db.close()


SYSTEMS = {"xac": Xac, "memmap": Memmap, "h5py": Hdf5, "lmdb": Lmdb, "sqlite": Sqlite}
MODULES = {"h5py": "h5py", "lmdb": "lmdb", "xac": "xac"}


def work_for(system, path, n_processes, work, seconds, seed, barrier, results):
    """One process: update until the time is up."""
    rng = np.random.default_rng(seed)
    system.open(path, n_processes)
    system.update(indices(work, rng))  # not measured
    barrier.wait()
    count, start = 0, time.perf_counter()
    while (now := time.perf_counter()) - start < seconds:
        system.update(indices(work, rng))
        count += 1
    results.put((count, now - start))
    system.close()


def measure(name, path, n_processes, work, seconds, seed):
    """Elements per second of a system, in one turn.  Fails if updates are missing."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(n_processes), context.SimpleQueue()
    system = SYSTEMS[name]()
    system.open(path, n_processes)
    before = system.sum()
    system.close()
    team = [context.Process(target=work_for, args=(SYSTEMS[name](), path, n_processes, work,
                                                   seconds, seed + i, barrier, results))
            for i in range(n_processes)]
    for process in team:
        process.start()
    found = [results.get() for _ in team]
    for process in team:
        process.join()
        assert process.exitcode == 0, f"{name}: exit code {process.exitcode}"
    updates = sum(count for count, _ in found)
    system.open(path, n_processes)
    after = system.sum()
    system.close()
    expected = (updates + n_processes) * WORK[work]
    assert after - before == expected, f"{name}: {after - before} additions, not {expected}"
    return sum(count / elapsed for count, elapsed in found) * WORK[work]


def is_there(name):
    """Can the system be imported?"""
    try:
        __import__(MODULES.get(name, "numpy"))
        return True
    except ImportError:
        print(f"{name}: left out, the module is not installed")
        return False


def table(options, systems, base, n_processes, work):
    """Measure and print one table; returns its rows."""
    rates = {name: [] for name in systems}
    paths = {name: os.path.join(base, f"{name}-{n_processes}-{work}") for name in systems}
    for name in systems:
        SYSTEMS[name]().make(paths[name])
    for turn in range(options.rounds):
        for name in systems[turn % len(systems):] + systems[:turn % len(systems)]:
            rates[name].append(measure(name, paths[name], n_processes, work, options.seconds,
                                       1000 * turn))
    print(f"\n{n_processes} process{'es' * (n_processes > 1)}, {WORK[work]} elements per update "
          f"({work})\n{'system':8} {'elements/s':>12} {'updates/s':>10} {'xac is':>8} times")
    rows = []
    for name in systems:
        rate = statistics.median(rates[name])
        ratio = statistics.median(x / r for x, r in zip(rates[systems[0]], rates[name]))
        print(f"{name:8} {rate:12,.0f} {rate / WORK[work]:10,.0f} {ratio:8.2f}")
        rows.append({"system": name, "processes": n_processes, "work": work,
                     "elements_per_update": WORK[work], "elements_per_second": rate,
                     "xac_ratio": ratio, "rounds": rates[name]})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    parser.add_argument("--processes", default="1,2")
    parser.add_argument("--work", default=",".join(WORK))
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="the first: xac")
    parser.add_argument("--dir", default=".", help="where files are made, on the disk to measure")
    parser.add_argument("--json", help="a file for all numbers")
    options = parser.parse_args()
    systems = [name for name in options.systems.split(",") if is_there(name)]
    base = tempfile.mkdtemp(prefix="xac-bench-", dir=options.dir)
    rows = []
    try:
        for n_processes in map(int, options.processes.split(",")):
            for work in options.work.split(","):
                rows += table(options, systems, base, n_processes, work)
    finally:
        shutil.rmtree(base)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
