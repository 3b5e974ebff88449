# SPDX-License-Identifier: MIT
"""errata_models.py -- models of what the Thesis says in words: all states, or all orders of steps.

Each function judges one row of doc/thesis-errata.md: what is printed, and what would be right.
"""
import functools
import math


# ---- S2: does the transaction that began first succeed in the end? -------------------------

PROCESSES = 3
BEGIN, WRITE, END = range(3)
IDLE = (BEGIN, None, False)


def by_age(state):
    """The same with ages 0, 1, ...: only their order counts."""
    ages = sorted(age for _, age, _ in state if age is not None)
    return tuple((at, None if age is None else ages.index(age), failed) for at, age, failed in state)


def step(state, me, keeps_age):
    """One process goes on: it begins, writes the one page, or ends.  The next state, and whether it committed or aborted."""
    processes = [list(p) for p in state]
    at, age, failed = processes[me]
    if at == BEGIN:
        newest = max((a for _, a, _ in state if a is not None), default=-1)
        processes[me] = [WRITE, newest + 1 if age is None else age, False]
        return by_age(processes), ""
    if at == WRITE:
        # Of those that have written and have not failed, the oldest wins.
        has = [k for k, p in enumerate(processes) if k != me and p[0] == END and not p[2]]
        if any(processes[k][1] < age for k in has):
            processes[me] = [END, age, True]
        else:
            for k in has:
                processes[k][2] = True
            processes[me] = [END, age, False]
        return by_age(processes), ""
    processes[me] = [BEGIN, age if failed and keeps_age else None, False]
    return by_age(processes), "aborts" if failed else "commits"


def reached_from(first, edges):
    """All states that lead on from one, and that one."""
    seen, left = set(), [first]
    while left:
        state = left.pop()
        if state not in seen:
            seen.add(state)
            left += [to for _, to, _ in edges(state)]
    return seen


def starves(keeps_age):
    """Is there an endless run in which process 0 goes on aborting though all processes go on?"""
    @functools.lru_cache(maxsize=None)
    def edges(state):
        steps = [(me, *step(state, me, keeps_age)) for me in range(PROCESSES)]
        return [s for s in steps if s[0] != 0 or s[2] != "commits"]

    behind = {state: reached_from(state, edges) for state in reached_from((IDLE,) * PROCESSES, edges)}
    for state, later in behind.items():
        circle = {s for s in later if state in behind[s]}
        inside = {(me, what) for s in circle for me, to, what in edges(s) if to in circle}
        if (0, "aborts") in inside and {me for me, _ in inside} == set(range(PROCESSES)):
            return True
    return False


def oldest_wins(judge):
    """p. 30: three processes, each with transactions that write one page."""
    judge.check("S2 a transaction with a new number for each attempt may never succeed", starves(keeps_age=False), "")
    judge.check("S2 one that keeps its age does", not starves(keeps_age=True), "")


# ---- S7: blocks at two levels ---------------------------------------------------------------

def hierarchy(judge):
    """Section 6.2: a block of level 1 in one of level 2, and who must be asked, as the text says it."""
    def reached(asks):
        seen, left = set(), [("absent", "absent")]
        while left:
            low, high = left.pop()
            if (low, high) in seen:
                continue
            seen.add((low, high))
            for use in "RW":
                # Level 1: level 2 is asked for what is in one of the states `asks`, and its transaction ends first.
                left.append((use, "L" if low in asks else high))
                # Level 2: level 1 is asked to release what is in state L.
                left.append(("U" if high == "L" else low, use))
            if low in "RW":
                left.append(("N", "N"))  # the transaction of level 1 ends
            elif high in "RW":
                left.append((low if low != "U" else "N", "N"))
        return any(low in ("R", "W") and high in ("R", "W") for low, high in seen)
    judge.check("S7 two levels at once, as printed", reached({"absent", "U"}), "")
    judge.check("S7 two levels at once, if level 1 asks for N, too", not reached({"absent", "U", "N"}), "")


# ---- S8: inserts that need fewer transfers than a search ------------------------------------

def transfers_of_inserts(n, block):
    """Sorted runs of 1, 2, 4, ... keys: the i-th insert merges those before into one of i & -i keys, which is read and
    written.  What is less than a block stays in memory."""
    return sum(2 * ((i & -i) // block) for i in range(1, n + 1))


def dictionary(judge):
    """p. 99: each operation of a dictionary, and the least for a search that compares keys."""
    n, block = 2**16, 64
    search = math.log(n + 1) / math.log(block + 1)
    insert = transfers_of_inserts(n, block) / n
    judge.check("S8 an insert, amortized, needs fewer than log_B N", insert < 0.5 < 2.6 < search, f"{insert}, {search}")


# ---- S9: where subtrees of the van Emde Boas layout lie -------------------------------------

def layout(height):
    """Where each subtree of the recursion lies, (first, behind the last), in nodes."""
    pieces, placed = [], 0

    def place(h):
        nonlocal placed
        first = placed
        if h == 1:
            placed += 1
        else:
            place(h // 2)
            for _ in range(2 ** (h // 2)):
                place(h - h // 2)
        pieces.append((first, placed))
    place(height)
    return pieces


def subtrees(judge):
    """p. 101: blocks of a subtree that has at most as many nodes as a block."""
    for height, block in ((5, 4), (8, 8), (12, 64)):
        blocks = {(last - 1) // block - first // block + 1 for first, last in layout(height) if last - first <= block}
        judge.check(f"S9 blocks of a subtree, height {height}", blocks == {1, 2}, f"{blocks}")


# ---- S10: the versioned optimistic scheme ----------------------------------------------------

def orders(one, two):
    """All ways to weave two sequences."""
    if not one or not two:
        return [one + two]
    return [one[:1] + rest for rest in orders(one[1:], two)] + [two[:1] + rest for rest in orders(one, two[1:])]


PROGRAMS = {"A": ("x", "y"), "B": ("y", "x")}  # reads the one page, writes one more than that to the other
STEPS = ("begin", "read", "write", "end")


def play(order, looks_at_reads):
    """Who has committed, and the pages in the end."""
    pages = {page: {0: 0} for page in "xy"}  # of each its committed versions, by timestamp
    last, stamp, value, committed = 0, {}, {}, set()
    for who, what in order:
        read, written = PROGRAMS[who]
        if what == "begin":
            stamp[who] = last + 1
        elif what == "read":
            value[who] = pages[read][max(t for t in pages[read] if t < stamp[who])]
        elif what == "end":
            looked_at = {written, read} if looks_at_reads else {written}
            if all(max(pages[page]) < stamp[who] for page in looked_at):
                pages[written][stamp[who]] = value[who] + 1
                last = max(last, stamp[who])
                committed.add(who)
    return committed, {page: versions[max(versions)] for page, versions in pages.items()}


def versioned_optimistic(judge):
    """pp. 73, 74: both transactions, in all 70 orders of their steps, against one after the other."""
    one, two = ([(who, what) for what in STEPS] for who in "AB")
    serial = [play(order, False)[1] for order in (one + two, two + one)]
    for looks_at_reads in (False, True):
        ends = [play(order, looks_at_reads) for order in orders(one, two)]
        skewed = [pages for committed, pages in ends if len(committed) == 2 and pages not in serial]
        words = f"{len(skewed)} of {len(ends)} orders"
        if looks_at_reads:
            judge.check("S10 if pages that were read count, both commit only one after the other", not skewed, words)
        else:
            judge.check("S10 both commit, and neither can come first", len(ends) == 70 and len(skewed) == 68, words)
    judge.check("S10 one after the other both commit", serial == [{"x": 2, "y": 1}, {"x": 1, "y": 2}], f"{serial}")


MODELS = (oldest_wins, hierarchy, dictionary, subtrees, versioned_optimistic)
