#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pairs.py [--run PROGRAM | --self-test] -- the combinations of options that are supported, and
rows of settings in which each pair of values that can stand together does so at least once.

Without an option it prints the rows.  --run runs PROGRAM for each row, with NAME=VALUE for each
setting, and ends with the numbers of rows and pairs, and the time.  Exit code 1 if a row failed, or
if a pair is not covered.  --self-test takes rows away, and spoils one, and sees that verify() finds
that.

XAC_SEED gives other rows, XAC_RUNNERS runs so many at a time (2), XAC_ONLY=N runs row N alone.
"""
import concurrent.futures
import itertools
import os
import random
import subprocess
import sys
import time

SETTINGS = {
    "checking": ["strict", "fast", "trusted"],
    "engine": ["best", "uffd", "scan", "sigsegv"],
    "policy": ["oldest", "self", "selfish", "youngest", "optimistic", "serial"],
    "durable": ["no", "yes", "delayed"],
    "frames": ["none", "few"],
    "images": ["no", "yes"],
    "checksum": ["xxh3", "md5", "sha1"],
    "page-checksums": ["no", "yes"],
    "views": ["process", "threads"],
    "company": ["alone", "three"],
    "log-directory": ["own", "elsewhere"],
    "recycle": ["no", "yes"],
    "checkpoints": ["often", "rare"],
    "read-ahead": ["system", "own"],
}

# What cannot stand together, or where one setting has no effect: (setting, value) excludes values
# of others.
EXCLUDED = [
    # Bounded memory needs userfaultfd; it reads pages one by one.
    (("frames", "few"), {"engine": ["sigsegv"], "read-ahead": ["own"]}),
    (("read-ahead", "own"), {"engine": ["sigsegv"]}),
    # Without durability there is no log, and no checkpoint keeps checksums.
    (("durable", "no"), {"images": ["no"], "checksum": ["md5", "sha1"],
                         "page-checksums": ["yes"], "log-directory": ["elsewhere"],
                         "recycle": ["no"]}),
]
CANDIDATES = 40  # rows that are tried for each row that is taken
NAMES = list(SETTINGS)
CLASHES = {frozenset([one, (name, value)]) for one, others in EXCLUDED
           for name, values in others.items() for value in values}


def fits(row, item):
    """Can the item (setting, value) stand with all items of the row?"""
    return all(frozenset([other, item]) not in CLASHES for other in row.items())


def completed(row, rng=None, worth=None):
    """A whole row that has these items; None: there is none.  Prefers values that are worth most."""
    rest = [name for name in NAMES if name not in row]
    if not rest:
        return row
    name = rng.choice(rest) if rng else rest[0]
    values = list(SETTINGS[name])
    if rng:
        rng.shuffle(values)
        values.sort(key=lambda value: -worth(row, (name, value)))
    for value in values:
        if fits(row, (name, value)):
            whole = completed({**row, name: value}, rng, worth)
            if whole is not None:
                return whole
    return None


def pairs_of(row):
    """The pairs of items of a row."""
    return {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}


def possible_pairs():
    """All pairs for which there is a row."""
    items = [(name, value) for name in NAMES for value in SETTINGS[name]]
    return {frozenset(pair) for pair in itertools.combinations(items, 2)
            if pair[0][0] != pair[1][0] and fits(dict([pair[0]]), pair[1])
            and completed(dict(pair)) is not None}


def generate(seed):
    """Rows that cover all possible pairs: greedy, the same for the same seed."""
    rng = random.Random(seed)
    left = possible_pairs()
    rows = []
    while left:
        first = sorted(map(sorted, left))[0]

        def worth(row, item):
            return sum(frozenset([other, item]) in left for other in row.items())

        tried = [completed(dict(first), rng, worth) for _ in range(CANDIDATES)]
        best = max(tried, key=lambda row: len(pairs_of(row) & left))
        rows.append({name: best[name] for name in NAMES})
        left -= pairs_of(best)
    return rows


def verify(rows):
    """What is wrong with the rows: words, none if nothing is."""
    wrong = []
    for number, row in enumerate(rows, 1):
        if list(row) != NAMES or any(row[name] not in SETTINGS[name] for name in NAMES):
            wrong.append(f"row {number} is not whole")
        wrong += [f"row {number} has {sorted(pair)}, which is excluded"
                  for pair in pairs_of(row) & CLASHES]
    covered = set().union(*map(pairs_of, rows)) if rows else set()
    return wrong + [f"no row has {sorted(pair)}" for pair in
                    sorted(map(sorted, possible_pairs() - covered))]


def self_test(rows):
    """Damage the rows in several ways; each must be found."""
    spoiled = [dict(row) for row in rows]
    spoiled[0].update({"frames": "few", "engine": "sigsegv"})
    short = [dict(row) for row in rows]
    del short[0]["policy"]
    for what, damaged in (("the last row is missing", rows[:-1]), ("no rows", []),
                          ("a row is excluded", spoiled), ("a row is not whole", short)):
        if not verify(damaged):
            sys.exit(f"pairs.py: verify() does not find that {what}")
    if verify(rows):
        sys.exit("pairs.py: " + "; ".join(verify(rows)))
    print(f"self-test: {len(rows)} rows")


def words_of(row):
    return [f"{name}={value}" for name, value in row.items()]


def run(program, number, row, seed):
    """Run one row; ret (number, row, what it printed, whether it is right, seconds)."""
    began = time.monotonic()
    limit = float(os.environ.get("XAC_ROW_TIMEOUT", "120"))
    environment = dict(os.environ, XAC_SEED=str(seed + number))
    try:
        done = subprocess.run([program, *words_of(row)], env=environment, timeout=limit,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text, good = done.stdout, done.returncode == 0
    except subprocess.TimeoutExpired as e:
        text, good = (e.stdout or b"") + b"\nhangs", False
    return number, row, text.decode(errors="replace"), good, time.monotonic() - began


def run_all(program, rows, seed):
    """Run all rows; ret the number of those that failed."""
    only = int(os.environ.get("XAC_ONLY", "0"))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("XAC_RUNNERS", "2"))) as pool:
        started = [pool.submit(run, program, number, row, seed)
                   for number, row in enumerate(rows, 1) if only in (0, number)]
        for future in started:
            number, row, text, good, seconds = future.result()
            print(f"{'ok' if good else 'FAILED'} {number} ({seconds:.1f} s)", *words_of(row))
            print("   ", "\n    ".join(text.strip().splitlines()), flush=True)
            failed += not good
    return failed


def main():
    seed = int(os.environ.get("XAC_SEED", "1") or "1")
    rows = generate(seed)
    if sys.argv[1:] == ["--self-test"]:
        self_test(rows)
        return 0
    if len(sys.argv) == 3 and sys.argv[1] == "--run":
        began = time.monotonic()
        print(f"seed {seed} (XAC_SEED)", flush=True)
        failed = run_all(sys.argv[2], rows, seed)
        wrong = verify(rows)
        print("\n".join(wrong))
        print(f"{len(rows)} rows, {len(possible_pairs())} pairs, {len(wrong)} not covered; "
              f"{failed} rows failed, {time.monotonic() - began:.0f} s")
        return 1 if failed or wrong else 0
    for row in rows:
        print(*words_of(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
