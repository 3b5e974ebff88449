# SPDX-License-Identifier: MIT
"""Transactions and queries: commit, roll-back, nesting, conflicts, what errors say."""
import errno
import io
import os
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


def test_item_assignment_commits(env, a):
    with env.transaction() as t:
        assert t.committed is None
        a[3] += 1
    assert t.committed is True
    assert elements(a)[3] == 1
    assert elements(a).sum() == 1


@pytest.mark.parametrize("change", [
    lambda a: a.__setitem__(3, a[3] + 1),
    lambda a: a.__setitem__(slice(None), np.arange(1000)),
    lambda a: a.sort(),
    lambda a: a[::2].fill(9),
    lambda a: np.add(a, 1, out=a),
    lambda a: a[a > 500].sum() and a.__setitem__(a > 500, 0),
    lambda a: np.random.default_rng(1).shuffle(a),
    lambda a: np.copyto(a, 8),
], ids=["item", "all", "sort", "stride", "ufunc", "mask", "shuffle", "copyto"])
def test_changes_commit_and_roll_back(env, a, change):
    with env.transaction():
        a[:] = np.arange(1000)[::-1]
    expected = elements(a)
    with pytest.raises(ZeroDivisionError):
        with env.transaction() as t:
            change(a)
            assert not np.array_equal(a, expected)
            raise ZeroDivisionError
    assert t.committed is False
    assert np.array_equal(elements(a), expected)
    change(expected)
    with env.transaction():
        change(a)
    assert np.array_equal(elements(a), expected)


def test_several_arrays_change_together(env, a):
    b = env.array("b", 10, "f8")
    with pytest.raises(KeyError):
        with env.transaction():
            a[0], b[0] = 1, 1.5
            raise KeyError
    assert elements(a)[0] == 0 and elements(b)[0] == 0
    with env.transaction():
        a[0], b[0] = 1, 1.5
    assert elements(a)[0] == 1 and elements(b)[0] == 1.5


def test_abort_rolls_back_quietly(env, a):
    with env.transaction() as t:
        a[0] = 1
        t.abort()
        assert a[0] == 1
    assert t.committed is False
    assert elements(a)[0] == 0


def test_arrays_are_read_only_in_queries_and_outside(env, a):
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    with env.query():
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 1
        with pytest.raises(ValueError):
            a.setflags(write=True)
        with pytest.raises(ValueError):
            a.sort()
    with pytest.raises(ValueError):
        a.setflags(write=True)
    assert elements(a).sum() == 0


def test_slices_are_read_only_outside_too(env, a):
    with env.transaction():
        views = [a[2:5], a[2:5][1:], a.reshape(10, 100), a.view("u8"), a[::-1], a.T]
        for view in views:
            view[0] = 3
    for view in views:
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 4
    with env.query():
        for view in views:
            with pytest.raises(ValueError, match="read-only"):
                view[0] = 4
    with env.transaction():
        for view in views:
            view[0] = 5  # and can be used again
    assert (elements(a)[:4] == [5] * 4).sum() >= 3


def test_a_slice_made_outside_can_be_used_inside(env, a):
    part = a[10:20]
    with env.transaction():
        part[:] = 6
    assert elements(a)[10:20].tolist() == [6] * 10


def test_a_view_that_was_made_read_only_stays_so(env, a):
    with env.transaction():
        part = a[:5]
        part.flags.writeable = False
    with env.transaction():
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1
        a[0] = 2


def test_writable_buffers_in_transactions_only(env, a):
    mapping = env.mapping("raw", 4096)
    assert memoryview(mapping).readonly
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(b"x" * 10).readinto(mapping)
    with env.transaction():
        view = memoryview(mapping)
        assert not view.readonly
        view[5:8] = b"abc"
        with env.query():
            assert memoryview(mapping).readonly
    with env.query():
        assert bytes(memoryview(mapping)[4:9]) == b"\0abc\0"


def test_nested_transactions_are_one(env, a):
    with env.transaction() as outer:
        a[0] = 1
        with env.transaction() as inner:
            a[1] = 2
        assert inner.committed is True
        with env.query():
            assert a[1] == 2
            with pytest.raises(ValueError):
                a[0] = 4
        a[2] = 3
    assert outer.committed
    assert elements(a)[:3].tolist() == [1, 2, 3]


def test_outer_failure_undoes_the_inner_one(env, a):
    with pytest.raises(KeyError):
        with env.transaction():
            with env.transaction():
                a[1] = 2
            raise KeyError
    assert elements(a)[1] == 0


def test_inner_failure_that_is_caught_undoes_the_outer_one(env, a):
    with pytest.raises(xac.RolledBack):
        with env.transaction() as outer:
            a[0] = 1
            try:
                with env.transaction():
                    a[1] = 2
                    raise KeyError
            except KeyError:
                pass
    assert outer.committed is False
    assert elements(a)[:2].tolist() == [0, 0]


def test_inner_abort_undoes_all(env, a):
    with env.transaction() as outer:
        a[0] = 1
        with env.transaction() as inner:
            inner.abort()
    assert outer.committed is False
    assert elements(a)[0] == 0


def test_a_transaction_in_a_query_is_refused(env, a):
    with env.query():
        with pytest.raises(xac.Error) as caught:
            with env.transaction():
                pass
        assert caught.value.name == "XAC_EINQUERY"
        assert a[0] == 0
    with env.transaction():
        a[0] = 1


def test_a_block_is_entered_once(env, a):
    t = env.transaction()
    with t:
        with pytest.raises(xac.Error):
            t.__enter__()
        a[0] = 1
    with pytest.raises(xac.Error):
        t.__enter__()
    with pytest.raises(xac.Error):
        t.__exit__(None, None, None)
    with pytest.raises(xac.Error):
        t.abort()
    assert elements(a)[0] == 1


def test_blocks_end_in_order(env, a):
    """A generator that is left in the middle of a transaction."""

    def left():
        with env.transaction():
            a[1] = 1
            yield

    generator = left()
    with pytest.raises(xac.Error) as caught:
        with env.transaction():
            a[0] = 1
            next(generator)
    assert caught.value.name == "XAC_EINTXN"
    assert elements(a)[:2].tolist() == [0, 0]
    with pytest.raises(xac.Error) as caught:
        next(generator)
    assert caught.value.name == "XAC_ENOTXN"
    with env.transaction():
        a[0] = 5
    assert elements(a)[0] == 5


def test_transact_returns_the_result(env, a):
    def add(i, n=1):
        a[i] += n
        return int(a[i])

    assert env.transact(add, 3) == 1
    assert env.transact(add, 3, n=4) == 5


def test_atomic_with_and_without_arguments(env, a):
    @env.atomic
    def add(i, retries):
        """Doc."""
        a[i] += retries
        return int(a[i])

    @env.atomic(retries=2)
    def fail():
        a[5] = 1
        raise KeyError("mine")

    assert add(2, retries=3) == 3
    assert add.__name__ == "add" and add.__doc__ == "Doc."
    with pytest.raises(KeyError, match="mine"):
        fail()
    assert elements(a)[[2, 5]].tolist() == [3, 0]


CONFLICTING = """
    import sys, xac
    env = xac.Env(sys.argv[1], policy="optimistic")
    a = env.array("a")
    for line in sys.stdin:
        with env.transaction():
            a[0] += 1
        print("done", flush=True)
"""


@pytest.fixture
def rival(db):
    """A second process, which commits to the page of a[0] when told; policy optimistic."""
    with xac.Env(db, policy="optimistic") as env:
        a = env.array("a", 1000, "i8")
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(CONFLICTING), db],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def commit():
            child.stdin.write("go\n")
            child.stdin.flush()
            assert child.stdout.readline() == "done\n"

        commit()  # it has joined
        a.commit = commit
        yield a
        child.communicate(timeout=30)
        assert child.returncode == 0


def test_conflict_is_raised_and_explained(rival):
    env, a = rival.env, rival
    with pytest.raises(xac.Conflict) as caught:
        with env.transaction() as t:
            a[1] = a[0] + 1
            a.commit()
    assert t.committed is False
    assert caught.value.code == 10001
    assert "rolled back" in str(caught.value)
    assert os.path.basename(caught.value.file) == "a"
    assert caught.value.offset == 4096  # the elements begin behind the header
    assert elements(a)[:2].tolist() == [2, 0]


def test_conflict_is_retried(rival):
    env, a = rival.env, rival
    attempts = []

    @env.atomic
    def add():
        attempts.append(int(a[0]))
        a[0] += 10
        if len(attempts) < 4:
            a.commit()
        return len(attempts)

    assert add() == 4
    assert attempts == [1, 2, 3, 4]
    assert elements(a)[0] == 14


def test_retries_are_bounded(rival):
    env, a = rival.env, rival
    attempts = []

    @env.atomic(retries=2)
    def add():
        attempts.append(1)
        a[0] += 10
        a.commit()

    with pytest.raises(xac.Conflict):
        add()
    assert len(attempts) == 3
    assert elements(a)[0] == 4


def test_nested_atomic_leaves_retrying_to_the_outermost(rival):
    env, a = rival.env, rival
    outer, inner = [], []

    @env.atomic
    def add_inside():
        inner.append(1)
        a[0] += 10

    @env.atomic
    def add():
        outer.append(1)
        add_inside()
        if len(outer) == 1:
            a.commit()

    add()
    assert (len(outer), len(inner)) == (2, 2)
    assert elements(a)[0] == 12


def test_a_query_sees_one_moment(rival):
    env, a = rival.env, rival
    with env.query():
        before = int(a[0])
        a.commit()
        assert a[0] == before
    assert elements(a)[0] == before + 1


def test_threads_take_turns(env, a):
    def work():
        for _ in range(50):
            with env.transaction():
                value = int(a[0])
                for _ in range(100):  # others may run meanwhile
                    pass
                a[0] = value + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert elements(a)[0] == 200


def test_a_block_belongs_to_its_thread(env, a):
    t = env.transaction()
    caught = []

    def end():
        try:
            t.__exit__(None, None, None)
        except xac.Error as error:
            caught.append(error.name)

    with t:
        a[0] = 1
        other = threading.Thread(target=end)
        other.start()
        other.join()
    assert caught == ["XAC_ENOTXN"]
    assert elements(a)[0] == 1


def test_tokens_name_what_was_committed(env, a):
    with env.transaction():
        a[0] = 5
    token = env.token()
    assert env.fate(token) is True
    with env.query(after=token, wait=1):
        assert a[0] == 5
        assert env.token() == token
    with env.query(latest=True, wait=1):
        assert a[0] == 5
    generation, rest = token.split(".", 1)
    later = f"{int(generation) + 1}.{rest}"
    assert env.fate(later, wait=0.01) is None
    with pytest.raises(xac.Error) as info:
        with env.query(after=later):
            pass
    assert info.value.code == errno.ETIMEDOUT
    for wrong in [dict(after="1.2"), dict(after=token, latest=True), dict(latest=True, wait=-1)]:
        with pytest.raises((xac.Error, ValueError)):
            env.query(**wrong)


def test_snapshots_are_held(env, a):
    ids = []
    for value in range(3):
        with env.transaction():
            a[0] = value
        ids.append(env.snapshot())
    with env.query():
        ids.append(env.snapshot())
    for value, id in zip([0, 1, 2, 2], ids):
        with env.query(at=id):
            assert a[0] == value
            with pytest.raises(xac.Error) as info:
                with env.query(at=id):
                    pass
            assert info.value.name == "XAC_EINTXN"
    env.keep_snapshot(ids[1], "one", seconds=1000)
    assert env.find_snapshot("one") == ids[1]
    for id in ids:
        env.release_snapshot(id)
        with pytest.raises(xac.Error) as info:
            with env.query(at=id):
                pass
        assert info.value.name == "XAC_ENOSTATE"
    with pytest.raises(xac.Error):
        env.find_snapshot("one")
    with pytest.raises(TypeError):
        env.query(at="one")
    with env.transaction():
        with pytest.raises(xac.Error):
            env.snapshot()


def test_savepoint_undoes_a_part(env, a):
    with env.transaction():
        a[0] = 1
        with env.savepoint() as part:
            a[0], a[999] = 2, 2
            part.rollback()
            assert a[0] == 1 and a[999] == 0
            a[999] = 3
            part.rollback()
            a[998] = 4
        with pytest.raises(KeyError):
            with env.savepoint():
                a[:] = 5
                raise KeyError
        assert a[0] == 1 and a[998] == 4
    assert elements(a).sum() == 5


def test_savepoints_nest(env, a):
    with env.transaction():
        with env.savepoint() as outer:
            a[1] = 1
            with env.savepoint() as inner:
                a[1] = 2
                inner.rollback()
                assert a[1] == 1
                a[1] = 3
            outer.rollback()
        assert a[1] == 0
        a[2] = 1
    assert elements(a).tolist()[:3] == [0, 0, 1]


def test_savepoint_in_the_wrong_place(env, a):
    with pytest.raises(xac.Error, match="savepoints are for transactions"):
        with env.savepoint():
            pass
    with env.query():
        with pytest.raises(xac.Error, match="savepoints are for transactions"):
            with env.savepoint():
                pass
    with pytest.raises(xac.Error, match="has not been entered"):
        env.savepoint().rollback()
    with env.transaction():
        part = env.savepoint()
        with part:
            with pytest.raises(xac.Error, match="entered once"):
                part.__enter__()
        with pytest.raises(xac.Error):
            part.rollback()  # it is over
        a[0] = 1
    with env.transaction():
        with pytest.raises(xac.Error):
            part.rollback()  # and its transaction, too
    assert elements(a)[0] == 1


def test_nested_transact_undoes_its_own_stores(env, a):
    def fail():
        a[1] = 9
        raise KeyError

    @env.atomic
    def outer():
        a[0] = 1
        with pytest.raises(KeyError):
            env.transact(fail)
        assert env.transact(lambda: int(a[1])) == 0
        return "done"

    assert outer() == "done"
    assert elements(a).tolist()[:2] == [1, 0]


def test_states_of_the_past(tmp_path):
    with xac.Env(tmp_path / "past", history="1000 commits") as env:
        a = env.array("a", 10, "i8")
        first = env.snapshot()
        with env.transaction():
            a[3] = 7
        then = time.time()
        number = env.stats()["commit_number"]
        with env.transaction():
            a[3] = 8
        second = env.snapshot()
        with env.query(at=xac.at_commit(number)):
            assert a[3] == 7
        with env.query(at=xac.at_time(then)):
            assert a[3] == 7
        with env.query(at=first):
            assert a[3] == 0
        (file, offset, length, before, after), = env.diff(first, second)
        assert os.path.basename(file) == "a" and length == 8
        assert (int.from_bytes(before, sys.byteorder), int.from_bytes(after, sys.byteorder)) == (0, 8)
        assert env.diff(first, first) == []
        with pytest.raises(xac.Error, match="no commit"):
            with env.query(at=xac.at_commit(10 ** 9)):
                pass
        with env.transaction():
            with pytest.raises(xac.Error, match="inside"):
                env.diff(first, second)


def test_history_is_seconds_or_words(tmp_path):
    for wrong in ("10", "ten commits", "10 years", "-1 bytes", ""):
        with pytest.raises(ValueError, match="history"):
            xac.Env(tmp_path / "e", history=wrong)
    for right in (60, "60 s", "10 commits", "100000 bytes"):
        xac.Env(tmp_path / "e", history=right).close()
