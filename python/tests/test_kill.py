# SPDX-License-Identifier: MIT
"""kill -9: four processes move amounts between accounts, and one of them is killed every 50 ms.

XAC_SECONDS  how long (5 otherwise)
XAC_SEED     of the amounts
"""
import os
import random
import select
import signal
import time

import numpy as np
import pytest

import xac

SECONDS = float(os.environ.get("XAC_SECONDS", "5"))
SEED = int(os.environ.get("XAC_SEED", "1"))
WORKERS = 4
ACCOUNTS = 20_000  # 40 pages
TOTAL = ACCOUNTS * 1000
KILL_EVERY = 0.05  # seconds


def move(accounts, rng):
    """One of several ways to change many elements and keep their sum."""
    kind = rng.integers(4)
    if kind == 0:
        i, j, amount = rng.integers(ACCOUNTS), rng.integers(ACCOUNTS), rng.integers(1, 100)
        accounts[i] -= amount
        accounts[j] += amount
    elif kind == 1:
        start = rng.integers(ACCOUNTS - 2000)
        accounts[start:start + 2000].sort()
    elif kind == 2:
        where = rng.permutation(ACCOUNTS)[:200]
        accounts[where[:100]] -= 7
        accounts[where[100:]] += 7
    else:
        accounts[:] = np.roll(accounts, int(rng.integers(1, ACCOUNTS)))


def work(path, number, pipe, seed):
    """A worker: after each commit it writes the number of its commits to the pipe."""
    rng = np.random.default_rng(seed)
    env = xac.Env(path)
    accounts, done = env.array("accounts"), env.array("done")

    @env.atomic
    def step():
        move(accounts, rng)
        done[number] += 1
        return int(done[number])

    while True:
        count = step()
        os.write(pipe, count.to_bytes(8, "little"))
        with env.query():
            if accounts.sum() != TOTAL or done[number] < count:
                os._exit(9)


def start(path, number, pipe, seed):
    pid = os.fork()
    if pid == 0:
        try:
            work(path, number, pipe, seed)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(8)
    return pid


def drain(pipe, last):
    """The last acknowledged number that has come through a pipe."""
    while select.select([pipe], [], [], 0)[0]:
        data = os.read(pipe, 1 << 16)
        last = int.from_bytes(data[-8:], "little")  # a write of 8 bytes is whole
    return last


def test_sums_are_right_after_kills(db):
    print(f"seed {SEED}, {SECONDS} s")
    with xac.Env(db) as env:
        accounts = env.array("accounts", ACCOUNTS, "i8")
        env.array("done", WORKERS, "i8")
        with env.transaction():
            accounts[:] = 1000
        del accounts
    rng = random.Random(SEED)
    pipes = [os.pipe() for _ in range(WORKERS)]
    acknowledged = [0] * WORKERS
    workers = [start(db, i, pipes[i][1], SEED + i) for i in range(WORKERS)]
    n_kills = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(KILL_EVERY)
        i = rng.randrange(WORKERS)
        os.kill(workers[i], signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(workers[i], 0)[1])
        assert code == -signal.SIGKILL, f"worker {i}: {code}"
        acknowledged = [drain(p[0], last) for p, last in zip(pipes, acknowledged)]
        n_kills += 1
        workers[i] = start(db, i, pipes[i][1], SEED + WORKERS + n_kills)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers]
    assert codes == [-signal.SIGKILL] * WORKERS
    acknowledged = [drain(p[0], last) for p, last in zip(pipes, acknowledged)]
    for ends in pipes:
        for descriptor in ends:
            os.close(descriptor)
    with xac.Env(db) as env:
        accounts, done = env.array("accounts"), env.array("done")
        with env.query():
            assert accounts.sum() == TOTAL
            # At most the commit whose acknowledgement was cut off is more.
            extra = [int(n) - last for n, last in zip(done, acknowledged)]
            commits = int(done.sum())
    print(f"{n_kills} kills, {commits} commits, not acknowledged: {extra}")
    assert min(extra) >= 0
    assert commits > n_kills
    if n_kills < SECONDS:
        pytest.fail("the machine was too slow to kill anybody")
