# SPDX-License-Identifier: MIT
"""Processes and signals: fork, spawn, handles, Ctrl-C, faulthandler, access outside."""
import errno
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import xac


@pytest.fixture
def a(env):
    return env.array("a", 1000, "i8")


def elements(a):
    with a.env.query():
        return np.array(a)


def in_child(work):
    """Fork, and run a function; returns the exit code, 0 if it has returned."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def add_one(a):
    with a.env.transaction():
        a[0] += 1


def test_a_forked_child_takes_part(env, a):
    add_one(a)
    for _ in range(3):
        assert in_child(lambda: add_one(a)) == 0
        add_one(a)
    assert elements(a)[0] == 7


def test_a_child_can_close_its_copy(env, a):
    assert in_child(env.close) == 0
    add_one(a)
    assert elements(a)[0] == 1


def test_fork_inside_of_a_transaction(env, a):
    """The transaction stays with the parent; the child cannot touch or end it."""

    def work():
        assert not env.in_transaction and not env.readable
        assert repr(a).startswith("<xac.Array")
        with env.query():
            assert a[0] == 0
        with pytest.raises(ValueError):
            a[0] = 7

    with env.transaction():
        a[0] = 1
        assert in_child(work) == 0
        a[1] = 1
    assert elements(a)[:2].tolist() == [1, 1]


def test_a_block_inherited_by_fork_ends_with_an_error(env, a):
    pids = []

    def enter_and_fork():
        with env.transaction():
            with env.transaction():
                a[0] = 1
                pids.append(os.fork())
                if pids[0] == 0:
                    os.environ["CHILD"] = "1"

    try:
        enter_and_fork()
    except xac.Error as error:
        assert pids == [0]
        code = 3
        if error.name == "XAC_EFORKED":
            with env.query():
                code = 0 if a[5] == 0 else 4
        os._exit(code)
    except BaseException:
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == 0
    assert elements(a)[0] == 1


def test_a_child_that_waits_for_its_parent_is_told(env, a):
    """The parent waits in its turn for the child, which waits for the turn."""

    def work():
        with pytest.raises(xac.Error) as caught:
            add_one(a)
        assert caught.value.code == errno.EDEADLK

    with env.transaction():
        a[0] = 1
        assert in_child(work) == 0
    assert elements(a)[0] == 1


SPAWNED = """
    import multiprocessing, sys
    import numpy as np
    import xac

    def work(env, a, n):
        assert a.env is env
        for _ in range(n):
            with env.transaction():
                a[0] += 1

    def read(a):
        with a.env.query():
            return int(a.sum())

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[2])
        with xac.Env(sys.argv[1]) as env:
            a = env.array("a", 100, "i8")
            children = [context.Process(target=work, args=(env, a, 20)) for _ in range(3)]
            for child in children:
                child.start()
            work(env, a, 20)
            for child in children:
                child.join()
            codes = [child.exitcode for child in children]
            with context.Pool(2) as pool:
                print(codes, read(a), pool.map(read, [a, a, a]))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(db, where, method):
    program = os.path.join(where, "program.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(SPAWNED))
    done = subprocess.run([sys.executable, program, db, method], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.stdout == "[0, 0, 0] 80 [80, 80, 80]\n", done.stderr


def test_a_handle_opens_the_environment_elsewhere(env, a, run):
    add_one(a)
    done = run("""
        import pickle, sys
        a = pickle.loads(bytes.fromhex(sys.argv[1]))
        b = pickle.loads(bytes.fromhex(sys.argv[1]))
        assert a.env is b.env
        with a.env.transaction():
            a[0] += 1
            print(b[0])
        """, pickle.dumps(a).hex())
    assert done.stdout == "2\n", done.stderr
    assert elements(a)[0] == 2


class Interrupted(Exception):
    pass


@pytest.fixture
def interruptions():
    """Exceptions at random moments, by a signal handler."""

    def interrupt(signum, frame):
        raise Interrupted

    old = signal.signal(signal.SIGALRM, interrupt)

    def arm():
        signal.setitimer(signal.ITIMER_REAL, np.random.default_rng().uniform(1e-5, 2e-3))

    yield arm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def test_exceptions_of_signal_handlers_roll_back(db, interruptions):
    with xac.Env(db, durable=False) as env:
        a = env.array("a", 10_000, "i8")
        n_interrupted = 0
        while n_interrupted < 300:
            try:
                interruptions()
                while True:
                    with env.transaction():
                        a[0] += 1
                        with env.query():
                            assert a[0] == a[9_999] + 1
                        with env.transaction():
                            a[9_999] += 1
            except Interrupted:
                n_interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert not env.busy
            with pytest.raises(ValueError):
                a[0] = 7
            with env.query():
                assert a[0] == a[9_999]
        assert elements(a)[0] > 0


def test_a_keyboard_interrupt_rolls_back(env, a):
    with pytest.raises(KeyboardInterrupt):
        with env.transaction():
            a[0] = 1
            signal.raise_signal(signal.SIGINT)
            a[1] = 1
    assert elements(a)[:2].tolist() == [0, 0]
    add_one(a)


def test_a_forgotten_block_is_rolled_back(env, a):
    t = env.transaction()
    t.__enter__()
    a[0] = 1
    del t
    assert not env.busy
    assert elements(a)[0] == 0


HOLDER = """
    import sys, time, xac
    env = xac.Env(sys.argv[1])
    a = env.array("a")
    with env.transaction():
        a[0] += 1
        print("holding", flush=True)
        sys.stdin.read()
"""


def test_wait_for_the_turn_has_a_limit(db):
    with xac.Env(db, wait_ms=100) as env:
        a = env.array("a", 10, "i8")
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(HOLDER), db],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "holding\n"
        with pytest.raises(xac.Error) as caught:
            add_one(a)
        assert caught.value.name == "ETIMEDOUT"
        assert not env.busy
        with env.query():
            assert a[0] == 0  # queries do not wait
        child.communicate("")
        assert child.returncode == 0
        add_one(a)
        assert elements(a)[0] == 2


def test_threads_run_while_one_waits_for_the_turn(env, a, db):
    """The interpreter's lock is given up."""
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(HOLDER), db],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "holding\n"
    waiter = threading.Thread(target=add_one, args=(a,))
    waiter.start()
    time.sleep(0.05)
    assert waiter.is_alive()  # and we are here
    child.communicate("")
    waiter.join()
    assert elements(a)[0] == 2


def test_ctrl_c_ends_the_wait_for_another_thread(env, a):
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with env.transaction():
            inside.set()
            leave.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    timer = threading.Timer(0.05, signal.pthread_kill,
                            (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        add_one(a)
    leave.set()
    holder.join()
    timer.join()
    add_one(a)
    assert elements(a)[0] == 1


OUTSIDE = """
    import faulthandler, sys, xac
    faulthandler.enable()
    env = xac.Env(sys.argv[1], checking="strict")
    a = env.array("a", 10, "i8")
    with env.transaction():
        a[0] = 1
    def touch_outside():
        return a[3]
    touch_outside()
"""


def test_access_outside_names_file_and_line(db, run):
    done = run(OUTSIDE, db)
    assert done.returncode == -signal.SIGABRT
    assert "load from a at offset 4120 outside" in done.stderr, done.stderr
    assert "touch_outside" in done.stderr  # the traceback of faulthandler


def test_faulthandler_does_not_disturb(db, run):
    done = run("""
        import faulthandler, sys, time, xac
        faulthandler.enable()
        env = xac.Env(sys.argv[1])
        a = env.array("a", 100_000, "i8")
        for i in range(100):
            with env.transaction():
                a[i * 1000] = i
        faulthandler.disable()
        time.sleep(0.02)  # a begin looks for handlers of others every 10 ms
        faulthandler.enable()
        for i in range(100):
            with env.transaction():
                a[i * 1000] += 1
            time.sleep(0.0005)
        with env.query():
            print(a.sum())
        faulthandler.dump_traceback()
        """, db)
    assert done.stdout == f"{sum(range(100)) + 100}\n", done.stderr
    assert "Current thread" in done.stderr


def test_outside_query_lets_elements_be_read(db):
    with xac.Env(db, outside="query", checking="strict") as env:
        a = env.array("a", 10, "i8")
        assert a[3] == 0 and a.sum() == 0
        assert repr(a) == "Array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0])"
        with pytest.raises(ValueError, match="read-only"):
            a[3] = 1
        with env.transaction():
            a[3] = 1
        assert a[3] == 1
        with pytest.raises(KeyError):
            with env.transaction():
                a[3] = 2
                raise KeyError
        assert a[3] == 1
        a = env.grow(a, 100_000)
        assert a[99_999] == 0 and a[3] == 1
        with env.query():
            assert a[3] == 1
        env.checkpoint()
        env.sync()
        assert env.stats()["participants"] == 1
        assert a[3] == 1
        b = env.array("b", 5)
        assert b.sum() == 0
        name = b.name
        del b
        env.refresh()
        env.forget(name)
    with xac.Env(db, outside="query") as env:
        assert env.array("a")[3] == 1


def test_outside_query_sees_one_moment_until_refresh(db, run):
    with xac.Env(db, outside="query") as env:
        a = env.array("a", 10, "i8")
        assert a[0] == 0
        done = run("""
            import sys, xac
            with xac.Env(sys.argv[1]) as env:
                a = env.array("a")
                with env.transaction():
                    a[0] = 5
            """, db)
        assert done.returncode == 0, done.stderr
        assert a[0] == 0
        env.refresh()
        assert a[0] == 5


def test_outside_query_serves_one_thread(db):
    caught = []

    def work():
        try:
            with env.transaction():
                a[0] = 1
        except xac.Error as error:
            caught.append(error.name)

    with xac.Env(db, outside="query") as env:
        a = env.array("a", 10, "i8")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert caught == ["EBUSY"]
        assert a[0] == 0
        with env.transaction():
            a[0] = 2
        assert a[0] == 2


def test_outside_query_and_fork(db):
    with xac.Env(db, outside="query", checking="strict") as env:
        a = env.array("a", 10, "i8")

        def work():
            with env.transaction():
                a[0] += 1
            assert a[0] == 1

        assert in_child(work) == 0
        assert a[0] == 0
        env.refresh()
        assert a[0] == 1


PLAIN_VIEW = """
    import sys, numpy as np, xac
    env = xac.Env(sys.argv[1], checking=sys.argv[2])
    a = env.array("a", 10, "i8")
    with env.transaction():
        plain = np.asarray(a)
        plain[0] = 1
    plain[0] = 2
    with env.transaction():
        a[1] = 1
    print("went on", flush=True)
"""


@pytest.mark.parametrize("checking", ["strict", "fast"])
def test_a_store_outside_by_a_plain_view_ends_the_process(db, run, checking):
    done = run(PLAIN_VIEW, db, checking)
    assert done.returncode == -signal.SIGABRT
    assert "store" in done.stderr and done.stdout == ""
    with xac.Env(db) as env:
        assert elements(env.array("a"))[:2].tolist() == [1, 0]


WRITES = """
    import sys, xac
    env = xac.Env(sys.argv[1])
    a = env.array("b", 10, "i8")
    print("writes", flush=True)
    while True:
        try:
            with env.transaction():
                a[0] += 1
        except xac.Conflict:  # it was stopped for long
            pass
"""


def test_nobody_knows_yet_what_is_uncertain(db):
    """Another process stands still, most often while it syncs the log for all."""
    program = [sys.executable, "-c", textwrap.dedent(WRITES), db]
    with xac.Env(db, wait_ms=50) as env, subprocess.Popen(program, stdout=subprocess.PIPE) as other:
        a = env.array("a", 10, "i8")
        other.stdout.readline()
        caught = None
        until = time.monotonic() + 60
        while time.monotonic() < until:
            os.kill(other.pid, signal.SIGSTOP)
            try:
                add_one(a)
            except xac.Error as error:
                caught = error
            os.kill(other.pid, signal.SIGCONT)
            if caught is not None and caught.name == "XAC_EUNCERTAIN":
                break
        other.kill()
        assert caught.name == "XAC_EUNCERTAIN" and caught.committed is None
